/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void end_with_artifacts(const char *session, const char *directory)
{
    char data[400];
    snprintf(data, sizeof data, "{\"status\":\"completed\",\"artifacts_path\":\"%s\"}", directory);
    packs_append_past(&p, session, "session.created", data);
}

START_TEST(a_statement_examines_a_limited_number_of_names)
{
    enum { NAMES = 1000, SESSIONS = 110 };
    char name[400];
    PACKS_ENABLE(&p, "lionagi", "teams");
    const char *full = tmpdir_path(&p.dir, "full"), *locked = tmpdir_path(&p.dir, "locked");
    ck_assert_int_eq(mkdir(full, 0700), 0);
    ck_assert_int_eq(mkdir(locked, 0700), 0);
    file_write(tmpdir_path(&p.dir, "locked/of.lock"), "", 0);
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "%s/%u", full, i);
        file_write(name, "", 0);
    }
    end_with_artifacts("first", locked);
    for (unsigned i = 0; i < SESSIONS; i++) {
        snprintf(name, sizeof name, "full-%u", i);
        end_with_artifacts(name, full);
    }
    end_with_artifacts("last", locked);
    static const char zombies[] = "SELECT group_concat(session_id) FROM run_list "
                                  "WHERE effective_health = 'zombie'";
    ck_packs(&p, zombies, "first\n");
    ck_packs(&p, "SELECT effective_health FROM run_list WHERE session_id = 'last'", "zombie\n");
}
END_TEST

/* ---- Guards ---- */

/* Append random guarded events. */
START_TEST(no_sequence_of_accepted_transitions_leaves_a_terminal_status_without_override_and_reason)
{
    static const char *const words[] = {"running", "completed", "failed",  "timed_out",
                                        "aborted", "cancelled", "unknown", "idle"};
    static const char *const sources[] = {"executor", "agent", "admin", "system"};
    struct random random = random_init(19);
    PACKS_ENABLE(&p, "lionagi");
    ck_append(&p, "s0", "session.created", "{\"status\":\"running\"}");
    ck_append(&p, "s1", "session.created", "{\"status\":\"running\"}");
    int accepted = 0;
    for (int i = 0; i < 150; i++) {
        char session[8], data[300];
        snprintf(session, sizeof session, "s%u", (unsigned)random_below(&random, 2));
        snprintf(data, sizeof data, "{\"to\":\"%s\",\"source\":\"%s\",\"override\":%s%s}",
                 words[random_below(&random, 8)], sources[random_below(&random, 4)],
                 random_below(&random, 3) == 0 ? "true" : "false",
                 random_below(&random, 2) == 0 ? ",\"reason_summary\":\"why\"" : "");
        annal_error err = {0};
        annal_status status = packs_append(&p, session, "session.transition", data, &err);
        ck_assert_msg(status == ANNAL_OK || status == ANNAL_ERR_REFUSED, "%s", err.message);
        accepted += status == ANNAL_OK;
    }
    ck_assert_int_gt(accepted, 5);
    ck_packs(&p,
             "SELECT count(*) FROM status_transitions t JOIN session_statuses s "
             "ON s.status = t.from_status "
             "WHERE s.terminal AND (t.override = 0 OR t.reason_summary IS NULL)",
             "0\n");
    ck_packs(&p,
             "SELECT count(*) FROM status_transitions WHERE to_status NOT IN "
             "(SELECT status FROM session_statuses)",
             "0\n");
}
END_TEST

Suite *suite_teams(void)
{
    Suite *suite = suite_create("teams");

    TCase *shell = suite_case(suite, "shell", packs_setup, packs_teardown);
    tcase_add_test(shell, a_statement_examines_a_limited_number_of_names);

    TCase *guards = suite_case(suite, "guards", packs_setup, packs_teardown);
    tcase_add_test(
        guards,
        no_sequence_of_accepted_transitions_leaves_a_terminal_status_without_override_and_reason);
    return suite;
}
