/* SPDX-License-Identifier: Apache-2.0 */
/* annal pull: shipped sessions are downloaded to another store. */
#include "tests/ship/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *first_store;

static void set_up(void)
{
    fleet_setup();
    first_store = cli.store;
}

static void tear_down(void)
{
    cli.store = first_store;
    fleet_teardown();
}

#define PULL(...) CLI(&cli, NULL, "pull", "--from", url, __VA_ARGS__)

/* Other commands are about another host's store. */
static void go_to(const char *store)
{
    cli.store = store == NULL ? first_store : tmpdir_path(&cli.dir, store);
}

static char *read_journal(const char *store, const char *name, size_t *out_len)
{
    char path[300];
    snprintf(path, sizeof path, "%s/events/%s", store, name);
    return file_read(path, out_len);
}

static void assert_same_journal(const char *name)
{
    size_t there_len, here_len;
    char *here = read_journal(cli.store, name, &here_len);
    char *there = read_journal(first_store, name, &there_len);
    ck_assert_uint_eq(here_len, there_len);
    ck_assert_mem_eq(here, there, here_len);
    free(here);
    free(there);
}

START_TEST(a_pulled_session_is_the_same_byte_for_byte_and_accepts_appends)
{
    NEEDS_SERVER();
    DONE_WITH(&cli,
              "{\"type\":\"a.b\",\"id\":\"i\u00e91\",\"cause\":\"other:7\",\"data\":{\"t\":"
              "\"a\\u0000b\\ud800\",\"n\":123456789012345678901234567890, \"x\":1.50}}\n"
              "{\"type\":\"c\",\"ts\":\"1969-12-31T23:59:59.999999Z\",\"data\":null}\n",
              "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":{\"x\":[1,-0.0,2.5,\"t\"]}}\n", "append", "s2",
              "--format", "msgpack");
    DONE(&cli, "fork", "s1", "--at", "1", "s1b");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1b");
    DONE(&cli, "ship", url, "--as", "h1");
    go_to("other");
    PULL("s1b", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"store\":\"h1\",\"seq\":2,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"sessions\":2,\"events\":3,\"added\":2,"));
    PULL("s2");
    cli_assert_done(&cli);
    assert_same_journal("s1.jsonl");
    assert_same_journal("s1b.jsonl");
    assert_same_journal("s2.mpk");
    PULL("s1b", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"events\":0,\"added\":0,\"extended\":0,"));
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1b");
    PULL("s1b");
    cli_assert_done(&cli);
    DONE(&cli, "verify");
}
END_TEST

START_TEST(the_next_pull_downloads_events_shipped_since)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    DONE(&cli, "ship", url, "--as", "h2");
    go_to("other");
    PULL("s1", "--store-name", "h1");
    cli_assert_done(&cli);
    go_to(NULL);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":3}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    go_to("other");
    PULL("s1", "--store-name", "h2", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"store\":\"h2\",\"seq\":2,"));
    PULL("s1", "--json");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"store\":\"h1\",\"seq\":3,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"events\":1,\"added\":0,\"extended\":1,"));
    ck_assert_ptr_nonnull(
        strstr(cli.err, "2 stores shipped a session 's1'; pulled the session of store h1"));
    assert_same_journal("s1.jsonl");
}
END_TEST

START_TEST(a_pull_includes_sub_agents_and_forks)
{
    NEEDS_SERVER();
    static const char created[] =
        "{\"type\":\"session.created\",\"data\":{\"parent_session_id\":\"%s\"}}\n";
    char line[200];
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "lead");
    snprintf(line, sizeof line, created, "lead");
    DONE_WITH(&cli, line, "append", "agent");
    DONE(&cli, "fork", "agent", "--at", "1", "try2");
    snprintf(line, sizeof line, created, "try2");
    DONE_WITH(&cli, line, "append", "deep");
    snprintf(line, sizeof line, created, "deep");
    DONE_WITH(&cli, line, "append", "try2");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "other");
    DONE(&cli, "ship", url, "--as", "h1");
    go_to("other");
    PULL("lead", "--tree", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"session_id\":\"lead\",\"store\":\"h1\",\"seq\":1,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"sessions\":4,\"events\":4,\"added\":4,"));
    assert_same_journal("deep.jsonl");
    assert_same_journal("try2.jsonl");
    ck_assert_int_eq(cli_journals(&cli), 4);
    PULL("lead", "--tree", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"sessions\":4,\"events\":0,\"added\":0,"));
    CLI(&cli, NULL, "pull", "lead", "--from", "http://127.0.0.1:1", "--tree");
    cli_assert_refused(&cli, 2, "--tree needs a database or a lake");
}
END_TEST

START_TEST(artifacts_are_pulled_once_by_their_hash)
{
    NEEDS_SERVER();
    char *content = calloc(1, 3000), name[65];
    memset(content, 'x', 2999);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE_WITH(&cli, content, "artifact", "put", "s1", "-", "--name", "one");
    DONE_WITH(&cli, content, "artifact", "put", "s1", "-", "--name", "two", "--json");
    snprintf(name, sizeof name, "%s", strstr(cli.out, "\"sha256\":\"") + 10);
    DONE(&cli, "ship", url, "--as", "h1");
    ck_text(fleet_ask("SELECT count(*) || ' ' || sum(length(bytes)) FROM annal.artifacts"),
            "1 2999");
    DONE(&cli, "ship", "check", url, "--as", "h1", "--artifacts", "--json");
    ck_assert_str_eq(cli.out, "{\"events\":3,\"behind\":0,\"dropped\":0,\"artifacts\":1,"
                              "\"absent_artifacts\":0,\"sound\":true}\n");
    fleet_do("UPDATE annal.artifacts SET bytes = 'y'");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1", "--artifacts");
    cli_assert_refused(&cli, 1, "has different content at the target");
    go_to("other");
    PULL("s1");
    cli_assert_refused(&cli, 1, "has different content at the target");
    fleet_do("DELETE FROM annal.artifacts");
    cli.store = first_store;
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1", "--artifacts");
    cli_assert_refused(&cli, 1, "is missing at the target");
    go_to("other");
    fleet_do("INSERT INTO annal.artifacts SELECT encode(sha256(bytes), 'hex'), bytes FROM"
             " convert_to(repeat('x', 2999), 'UTF8') AS bytes");
    PULL("s1", "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"missing_artifacts\":0}"));
    DONE(&cli, "verify");
    DONE(&cli, "artifact", "get", "s1", name);
    ck_assert_str_eq(cli.out, content);
    free(content);
}
END_TEST

/* Its event is shipped, and no later batch will contain it. */
START_TEST(an_artifact_that_cannot_be_read_is_named)
{
    NEEDS_SERVER();
    char path[400];
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE_WITH(&cli, "content", "artifact", "put", "s1", "-", "--json");
    snprintf(path, sizeof path, "%s/artifacts/s1/%.64s.zst", cli.store,
             strstr(cli.out, "\"sha256\":\"") + 10);
    file_write(path, "damaged", 7);
    CLI(&cli, NULL, "ship", url, "--as", "h1");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_ptr_nonnull(strstr(cli.err, "the artifact was not shipped"));
    ASK("SELECT seq FROM annal._heads", "2");
}
END_TEST

/* Both sessions name one of the three artifacts. */
START_TEST(artifacts_are_removed_with_the_last_event_that_names_them)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE_WITH(&cli, "both", "artifact", "put", "s1", "-");
    DONE_WITH(&cli, "first", "artifact", "put", "s1", "-");
    DONE(&cli, "ship", url, "--as", "h1");
    fleet_do("CREATE TABLE annal.events_20200101 (LIKE annal._events INCLUDING ALL)");
    fleet_do("WITH old AS (DELETE FROM annal._events RETURNING *) INSERT INTO annal.events_20200101"
             " SELECT key, seq, '2020-01-01', ts, type, id, cause, data, h FROM old");
    fleet_do("ALTER TABLE annal._events ATTACH PARTITION annal.events_20200101"
             " FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')");
    DONE_WITH(&cli, "both", "artifact", "put", "s2", "-");
    DONE_WITH(&cli, "third", "artifact", "put", "s2", "-");
    DONE(&cli, "ship", url, "--as", "h1");
    const char *contents = "SELECT string_agg(convert_from(bytes, 'UTF8'), ' ' ORDER BY bytes)"
                           " FROM annal.artifacts";
    ASK(contents, "both first third");
    fleet_do("SELECT annal.drop_before('2020-01-02')");
    ASK(contents, "both third");
    go_to("other");
    PULL("s1");
    cli_assert_refused(&cli, 1, "event 1 is missing at the target: retention dropped the event");
    go_to(NULL);
    fleet_do("SELECT annal.forget('h1', 's2')");
    ASK(contents, "");
}
END_TEST

START_TEST(a_pull_does_not_change_a_session_with_another_history)
{
    NEEDS_SERVER();
    size_t len, len_after;
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    go_to("other");
    PULL("s1");
    go_to(NULL);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n{\"type\":\"a\",\"data\":3}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    go_to("other");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":\"x\"}\n", "append", "s1");
    char *before = cli_journal(&cli, "s1", &len);
    PULL("s1");
    cli_assert_refused(&cli, 1, "session 's1' has a different history in this store");
    char *after = cli_journal(&cli, "s1", &len_after);
    ck_assert_uint_eq(len, len_after);
    ck_assert_mem_eq(before, after, len);
    free(before);
    free(after);
    PULL("none");
    cli_assert_refused(&cli, 1, "there is no session 'none'");
}
END_TEST

START_TEST(an_event_that_was_changed_at_the_target_is_refused)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    fleet_do("UPDATE annal._events SET data = '3' WHERE seq = 2");
    go_to("other");
    PULL("s1");
    cli_assert_refused(&cli, 1, "session 's1': the hash of event 2 differs");
    ck_assert_int_eq(cli_journals(&cli), 0);
    fleet_do("DELETE FROM annal._events WHERE seq = 1");
    PULL("s1");
    cli_assert_refused(&cli, 1, "session 's1': event 1 is missing");
    ck_assert_int_eq(cli_journals(&cli), 0);
}
END_TEST

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

START_TEST(a_fork_of_a_local_session_is_pulled)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n{\"type\":\"t\",\"data\":2}\n", "append", "s1");
    DONE(&cli, "fork", "s1", "--at", "1", "s2");
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":3}\n", "append", "s2");
    DONE(&cli, "fork", "s2", "--at", "2", "s3");
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":4}\n", "append", "s3");
    DONE(&cli, "ship", url, "--as", "h1");
    DONE(&cli, "pull", "s1", "--from", url, "--store", second);
    DONE(&cli, "pull", "s3", "--from", url, "--store", second);
    fleet_same_journals("s2");
    fleet_same_journals("s3");
    DONE(&cli, "verify", "--store", second);
}
END_TEST

/* Killed wherever it is; then whole. A store in which it was done before it was killed is left
 * for another. */
START_TEST(a_killed_pull_is_resumed)
{
    NEEDS_SERVER();
    enum { EVENTS = 200000, ROUNDS = 50 };
    struct random random = random_init(1);
    char *input = malloc(EVENTS * 60), *at = input;
    int killed = 0, stores = 0;
    for (int i = 0; i < EVENTS; i++)
        at += sprintf(at, "{\"type\":\"t\",\"data\":{\"n\":%d}}\n", i);
    DONE_WITH(&cli, input, "append", "s1", "--level", "batch");
    free(input);
    DONE(&cli, "fork", "s1", "--at", "100000", "s2");
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":0}\n", "append", "s2");
    DONE(&cli, "ship", url, "--as", "h1");
    go_to("whole");
    double begun_s = now_s();
    PULL("s2");
    uint64_t whole_ms = (uint64_t)((now_s() - begun_s) * 1000);
    for (int round = 0; round < ROUNDS; round++) {
        int in, out, status;
        char name[20];
        sprintf(name, "other%d", stores);
        go_to(name);
        const char *const words[] = {"pull", "s2", "--from", url, NULL};
        pid_t pid = cli_start(&cli, words, &in, &out);
        const struct timespec wait = {.tv_nsec = (long)(random_below(&random, whole_ms) * 1000000)};
        nanosleep(&wait, NULL);
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        close(in);
        close(out);
        if (WIFSIGNALED(status) && ++killed % 10 != 0)
            continue;
        stores++;
        PULL("s2");
        cli_assert_done(&cli);
        assert_same_journal("s1.jsonl");
        assert_same_journal("s2.jsonl");
        DONE(&cli, "verify");
    }
    printf("pull: %d of %d were killed in the middle\n", killed, ROUNDS);
    ck_assert_int_gt(killed, ROUNDS / 2);
}
END_TEST

Suite *suite_pull(void)
{
    Suite *suite = suite_create("pull");
    TCase *cases = suite_case(suite, "pull", set_up, tear_down);
    tcase_add_unchecked_fixture(cases, fleet_start, fleet_stop);
    tcase_add_test(cases, a_pulled_session_is_the_same_byte_for_byte_and_accepts_appends);
    tcase_add_test(cases, the_next_pull_downloads_events_shipped_since);
    tcase_add_test(cases, a_pull_includes_sub_agents_and_forks);
    tcase_add_test(cases, artifacts_are_pulled_once_by_their_hash);
    tcase_add_test(cases, an_artifact_that_cannot_be_read_is_named);
    tcase_add_test(cases, artifacts_are_removed_with_the_last_event_that_names_them);
    tcase_add_test(cases, a_pull_does_not_change_a_session_with_another_history);
    tcase_add_test(cases, an_event_that_was_changed_at_the_target_is_refused);
    tcase_add_test(cases, a_fork_of_a_local_session_is_pulled);
    tcase_add_long_test(cases, a_killed_pull_is_resumed);
    return suite;
}
