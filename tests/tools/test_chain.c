/* SPDX-License-Identifier: Apache-2.0 */
/* Forks of forks: verbs accept a chain of a thousand, and report longer chains. */
#include "journal/base/buf.h"
#include "journal/codec.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* c<from> is an ordinary session; c<n> is a fork of c<n-1> after its only event. */
static void put_chain(int from, int to)
{
    static uint64_t h; /* of the last event */
    for (int i = from; i <= to; i++) {
        char name[20], parent[20], path[60], data[20];
        struct buf bytes = {0};
        uint64_t before = 0;
        snprintf(name, sizeof name, "c%d", i);
        snprintf(parent, sizeof parent, "c%d", i - 1);
        struct frame_header header = {
            .version = FRAME_VERSION, .session = annal_slice_of(name), .created_us = i};
        memcpy(header.file, &i, sizeof i);
        if (i > from) {
            header.fork = annal_slice_of(parent);
            header.fork_seq = (uint64_t)(i - from);
            header.fork_h = h;
        }
        snprintf(data, sizeof data, "{\"n\":%d}", i);
        const annal_draft draft = {.type = ANNAL_SLICE("a"), .data = annal_slice_of(data)};
        ck_assert_int_eq(annal__codec_json.encode_header(&bytes, &header, &before), ANNAL_OK);
        const struct frame_place place = {
            .seq = (uint64_t)(i - from) + 1, .ts_us = i, .offset = bytes.len, .h_before = before};
        ck_assert_int_eq(annal__codec_json.encode_event(&bytes, &draft, &place, &h), ANNAL_OK);
        snprintf(path, sizeof path, "store/events/%s.jsonl", name);
        file_write(tmpdir_path(&cli.dir, path), bytes.ptr, bytes.len);
        annal__buf_done(&bytes);
    }
}

static void begin(int first, int last)
{
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "other");
    put_chain(first, last);
}

START_TEST(every_verb_accepts_a_chain_of_a_thousand_forks)
{
    static const char *const verbs[][8] = {
        {"verify"},
        {"verify", "c1000"},
        {"ls"},
        {"show", "c1000"},
        {"doctor"},
        {"stats"},
        {"stats", "--plot", "c1000"},
        {"cat", "c1000"},
        {"query", "c1000", "--count"},
        {"query", "c999", "c998", "c997", "c996", "--count"},
        {"sql", "SELECT count(*) FROM history WHERE session_id = 'c1000'"},
        {"search", "c1000", "--all"},
        {"tail", "c1000"},
        {"replay", "c1000", "--json"},
        {"replay", "c1000", "--at", "200", "--json"},
        {"diff", "c1000", "100", "200"},
        {"snapshot", "c1000"},
        {"export", "c1000", "--format", "jsonl"},
        {"export", "c1000", "--format", "html"},
        {"export", "c1000", "--format", "markdown"},
        {"export", "c1000", "--format", "otlp"},
        {"fork", "c1000", "new"},
        {"reindex"},
        {"delete", "new", "--yes"},
        {"delete", "c1000", "--yes"},
    };
    begin((int)full_or(0, 700), 1000);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        cli_run(&cli, NULL, verbs[i]);
        ck_assert_msg(
            cli.exit_status == 0 ||
                /* search finds nothing, and doctor warns of a store in memory */
                ((strcmp(verbs[i][0], "search") == 0 || strcmp(verbs[i][0], "doctor") == 0) &&
                 cli.exit_status == 1),
            "%s: %d: %s%s", verbs[i][0], cli.exit_status, cli.err, cli.out);
    }
}
END_TEST

START_TEST(a_bundle_of_a_chain_of_a_thousand_forks_is_imported)
{
    begin((int)full_or(0, 700), 1000);
    DONE(&cli, "export", "c1000", "--format", "bundle", "--to", tmpdir_path(&cli.dir, "b"));
    cli.store = tmpdir_path(&cli.dir, "second");
    DONE(&cli, "import", "bundle", tmpdir_path(&cli.dir, "b"));
    ck_assert_ptr_nonnull(strstr(cli.out, full_or(1, 0) ? "1,001 sessions, 1,001 events"
                                                        : "301 sessions, 301 events"));
    DONE(&cli, "verify");
}
END_TEST

START_TEST(a_session_has_at_most_1024_ancestors)
{
    begin(0, ANNAL_ANCESTORS_MAX);
    DONE(&cli, "verify", "c1024");
    CLI(&cli, NULL, "fork", "c1024", "new");
    cli_assert_refused(&cli, 1, "session 'c1024' has 1024 ancestors, the maximum");
    DONE(&cli, "fork", "c1023", "new");
}
END_TEST

/* Annal itself creates no such store. */
START_TEST(a_longer_chain_is_reported_and_other_sessions_are_answered)
{
    static const char *const verbs[][8] = {
        {"verify"},
        {"show", "c1100"},
        {"query", "c1100", "--count"},
        {"replay", "c1100", "--json"},
        {"tail", "c1100"},
    };
    begin(0, 1100);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        cli_run(&cli, NULL, verbs[i]);
        ck_assert_msg(cli.exit_status == 1 || cli.exit_status == 3, "%s: %d: %s", verbs[i][0],
                      cli.exit_status, cli.err);
        ck_assert_msg(strstr(i == 0 ? cli.out : cli.err, "more than 1024") != NULL, "%s: %s",
                      verbs[i][0], cli.err);
    }
    CLI(&cli, NULL, "export", "c1100", "--format", "bundle", "--to", "/dev/null");
    cli_assert_refused(&cli, 1, "session 'c1100' is damaged");
    DONE(&cli, "ls");
    DONE(&cli, "query", "c1000", "--count");
    DONE(&cli, "query", "--count");
}
END_TEST

Suite *suite_chain(void)
{
    Suite *suite = suite_create("chain");
    TCase *cases = suite_case(suite, "chain", cli_setup, cli_teardown);
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, every_verb_accepts_a_chain_of_a_thousand_forks);
    tcase_add_test(cases, a_bundle_of_a_chain_of_a_thousand_forks_is_imported);
    tcase_add_test(cases, a_session_has_at_most_1024_ancestors);
    tcase_add_test(cases, a_longer_chain_is_reported_and_other_sessions_are_answered);
    return suite;
}
