/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/index/json_patch.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <stdlib.h>
#include <string.h>

static void setup(void)
{
    cli_setup();
    CLI(&cli,
        "{\"type\":\"session.created\",\"data\":{\"model\":\"m\"},\"ts\":\"2026-01-06T07:24:00Z\"}"
        "\n"
        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\"},\"ts\":\"2026-01-06T07:24:01Z\"}"
        "\n"
        "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t1\",\"input_tokens\":5},"
        "\"ts\":\"2026-01-06T07:24:02Z\"}\n"
        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t2\"},\"ts\":\"2026-01-06T07:24:03Z\"}"
        "\n",
        "append", "s");
    ck_assert_int_eq(cli.exit_status, 0);
}

START_TEST(the_patch_turns_one_state_into_the_other)
{
    static const char *const pairs[][2] = {
        {"0", "4"}, {"4", "0"}, {"1", "3"}, {"3", "2"}, {"2", "2"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CLI(&cli, NULL, "replay", "s", "--at", pairs[i][0], "--json");
        char *before = strndup(cli.out, cli.out_len - 1);
        CLI(&cli, NULL, "replay", "s", "--at", pairs[i][1], "--json");
        char *after = strndup(cli.out, cli.out_len - 1);
        DONE(&cli, "diff", "s", pairs[i][0], pairs[i][1], "--patch");
        cli.out[cli.out_len - 1] = '\0';
        ck_text(json_patched(before, cli.out), after);
        free(before);
        free(after);
    }
}
END_TEST

#define CALL(id, command)                                                                          \
    "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"" id "\",\"tool\":\"Bash\",\"input\":{"     \
    "\"command\":\"" command "\"}}}\n"
#define RETURN(id, type) "{\"type\":\"tool." type "\",\"data\":{\"call_id\":\"" id "\"}}\n"

Suite *suite_diff(void)
{
    Suite *suite = suite_create("diff");
    TCase *tc = suite_case(suite, "diff", setup, cli_teardown);
    tcase_add_test(tc, the_patch_turns_one_state_into_the_other);
    return suite;
}
