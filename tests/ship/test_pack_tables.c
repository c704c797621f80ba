/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of packs at a PostgreSQL that the suite starts. */
#include "tests/ship/fixture.h"
#include "tests/support/runner.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_up(void)
{
    fleet_setup();
    if (url != NULL)
        fleet_do("ALTER DATABASE fleet SET search_path = annal");
}

#define H1(...) DONE(&cli, __VA_ARGS__)
#define H2(...) DONE(&cli, __VA_ARGS__, "--store", second)

static void write_pack(const char *text)
{
    (void)mkdir(tmpdir_path(&cli.dir, "store/packs"), 0755);
    file_write(tmpdir_path(&cli.dir, "store/packs/mine.sql"), text, strlen(text));
}

#define SENT(rows)                                                                                 \
    do {                                                                                           \
        H1("ship", "tables", url, "--as", "h1", "--json");                                         \
        ck_assert_str_eq(cli.out, "{\"rows\":" #rows ",\"behind\":0,\"other_history\":0,"          \
                                  "\"left_out\":0}\n");                                            \
    } while (0)

/* ---- Rows ---- */

START_TEST(documented_queries_of_packs_give_the_same_answers_at_the_target)
{
    NEEDS_SERVER();
    H1("pack", "enable", "agentweaver", "--create");
    H1("pack", "enable", "memory");
    DONE_WITH(&cli,
              "{\"type\":\"project.created\",\"data\":{\"name\":\"The shop\"}}\n"
              "{\"type\":\"backlog.captured\",\"data\":{\"title\":\"Add a cart\"}}\n"
              "{\"type\":\"memory.noted\",\"data\":{\"agent_name\":\"ada\",\"type\":\"learning\","
              "\"tags\":[\"a\"],\"content\":\"I say \\\"no\\\": C:\\\\\"}}\n",
              "append", "proj_shop");
    DONE_WITH(&cli,
              "{\"type\":\"run.created\",\"data\":{\"project_id\":\"shop\"}}\n"
              "{\"type\":\"run.worktree_set\",\"data\":{\"worktree_path\":\"/tmp/"
              "r1\",\"worktree_branch\":\"b\"}}\n"
              "{\"type\":\"run.started\",\"data\":{}}\n"
              "{\"type\":\"agent.turn.usage\",\"data\":{\"modelId\":\"m1\",\"inputTokens\":3}}\n"
              "{\"type\":\"run.review_ready\",\"data\":{\"tree_hash\":\"4b825dc\"}}\n",
              "append", "run_r1");
    H1("ship", url, "--as", "h1");
    H1("ship", "tables", url, "--as", "h1");
    fleet_same("SELECT operation, to_status FROM run_edges WHERE from_status = 'awaiting_review'"
               " ORDER BY 1, 2");
    fleet_same("SELECT Sequence, EventType FROM RunEvents WHERE RunId = 'r1' AND Sequence > 1"
               " ORDER BY Sequence");
    fleet_same("SELECT id, status, worktree_path, tree_hash, created_at FROM run_rows");
    fleet_same("SELECT id, title, state, order_key FROM backlog_tasks");
    fleet_same("SELECT id, total_tokens FROM token_usage_records");
    fleet_same("SELECT agent_name, content, tags, importance FROM agent_memory");
    ASK("SELECT store || ' ' || session_id FROM run_rows", "h1 run_r1");
    SENT(0);
    H1("run", "approve", "r1", "--tree", "4b825dc", "--reviewer", "bob");
    H1("ship", url, "--as", "h1");
    H1("ship", "tables", url, "--as", "h1");
    fleet_same("SELECT id, approved_by, approved_tree_hash, review_wait_ms FROM run_rows");
    fleet_same("SELECT Sequence, EventType FROM RunEvents ORDER BY RunId, Sequence");
}
END_TEST

/* Also with a name that exists at the target, and with a column that is added later. */
START_TEST(values_of_every_kind_arrive)
{
    NEEDS_SERVER();
    static const char head[] =
        "-- pack mine   version 1   database mine.db\n"
        "CREATE TABLE Sessions (session_id TEXT, N INTEGER, r REAL, t TEXT, b BLOB, any, ok "
        "BOOLEAN%s"
        ");\n-- on v\n"
        "INSERT INTO Sessions (session_id, N, r, t, b, any, ok) VALUES (:session, $n, $r,"
        " 'a' || char(0) || '\"\\' || COALESCE($t, ''), annal_blob($b), $any, $n);\n"
        "-- forget\nDELETE FROM Sessions WHERE session_id = :session -- no more\n";
    char text[800];
    DONE_WITH(&cli,
              "{\"type\":\"v\",\"data\":{\"n\":9223372036854775807,\"r\":1.5,\"t\":\"\u00e9\","
              "\"b\":\"AAEC\",\"any\":-9007199254740993}}\n"
              "{\"type\":\"v\",\"data\":{\"n\":-9223372036854775808,\"r\":1e300,\"any\":\"x\"}}\n"
              "{\"type\":\"v\",\"data\":{\"n\":\"no number\",\"r\":\"none\",\"t\":\"\\ud800\"}}\n"
              "{\"type\":\"v\",\"data\":{\"r\":1e999,\"b\":\"\"}}\n",
              "append", "s1");
    snprintf(text, sizeof text, head, "");
    write_pack(text);
    H1("ship", url, "--as", "h1");
    SENT(4);
    ASK("SELECT string_agg(concat_ws(' ', n, r, encode(b, 'hex'), any_, ok), '; ' ORDER BY row) "
        "FROM"
        " (SELECT n, r, t, b, \"any\" AS any_, ok, row_number() OVER () AS row FROM mine_sessions) "
        "AS m",
        "9223372036854775807 1.5 000102 -9007199254740993 9223372036854775807; "
        "-9223372036854775808 1e+300 x -9223372036854775808; ; Infinity ");
    ASK("SELECT string_agg(t, '|') FROM mine_sessions",
        "a\uFFFD\"\\\u00e9|a\uFFFD\"\\|a\uFFFD\"\\\uFFFD|a\uFFFD\"\\");
    ASK("SELECT count(*) FROM sessions", "1"); /* of core */
    ASK("SELECT collation_name FROM information_schema.columns WHERE table_name = 'mine_sessions'"
        " AND column_name = 't'",
        "C");
    snprintf(text, sizeof text, head, ", later TEXT DEFAULT 'now'");
    write_pack(text);
    SENT(4);
    ASK("SELECT string_agg(later || store, ' ') FROM mine_sessions WHERE session_id = 's1'",
        "nowh1 nowh1 nowh1 nowh1");
    SENT(0);
}
END_TEST

static const char counts[] =
    "-- pack mine   version 1   database mine.db\n"
    "CREATE TABLE counts (id TEXT PRIMARY KEY, n INTEGER);\n"
    "-- on t\n"
    "INSERT INTO counts VALUES (:session, 1) ON CONFLICT DO UPDATE SET n = n + 1;\n"
    "-- forget\nDELETE FROM counts WHERE id = :session;\n";

#define COUNTS                                                                                     \
    "SELECT coalesce(string_agg(concat_ws(' ', store, session_id, id, n), '; ' ORDER BY store, id" \
    "), '') FROM counts"

START_TEST(rows_follow_their_events_and_are_removed_with_their_session)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n{\"type\":\"t\",\"data\":2}\n", "append", "s2");
    write_pack(counts);
    H1("ship", url, "--as", "h1", "--session", "s1");
    CLI(&cli, NULL, "ship", "tables", url, "--as", "h1", "--json");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_ptr_nonnull(strstr(cli.err, "events that the target lacks: run 'annal ship'"));
    ck_assert_str_eq(cli.out, "{\"rows\":1,\"behind\":1,\"other_history\":0,\"left_out\":0}\n");
    ASK(COUNTS, "h1 s1 s1 1");
    H1("ship", url, "--as", "h1");
    SENT(1);
    ASK(COUNTS, "h1 s1 s1 1; h1 s2 s2 2");
    H1("fork", "s1", "--at", "1", "s1b"); /* without an event of its own */
    SENT(0);
    fleet_do("SELECT annal.forget('h1', 's1')");
    ASK(COUNTS, "h1 s2 s2 2");
    ASK("SELECT count(*) FROM annal._pack_rows", "1");
    H1("ship", url, "--as", "h1");
    SENT(1);
    ASK(COUNTS, "h1 s1 s1 1; h1 s2 s2 2");
    fleet_do("SELECT annal.drop_before('2999-01-01')");
    ASK(COUNTS, "h1 s1 s1 1; h1 s2 s2 2");
    H1("delete", "--yes", "s2");
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":3}\n", "append", "s2");
    CLI(&cli, NULL, "ship", "tables", url, "--as", "h1");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "have a different history at the target"));
    ASK(COUNTS, "h1 s1 s1 1; h1 s2 s2 2");
}
END_TEST

START_TEST(a_pack_dropped_at_the_target_is_created_again_from_the_store)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    write_pack(counts);
    H1("ship", url, "--as", "h1");
    SENT(1);
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    H1("ship", url, "--as", "h1");
    ASK("SELECT concat_ws(' ', session_id, pack, seq, behind, store) FROM pack_sessions",
        "s1 mine 1 1 h1");
    ASK("SELECT annal.drop_pack('mine')", "counts");
    ASK("SELECT concat_ws(' ', (SELECT count(*) FROM _pack_rows), (SELECT count(*) FROM"
        " _pack_sessions), (SELECT count(*) FROM _pack_tables), to_regclass('annal.counts'))",
        "0 0 0");
    ASK("SELECT count(*) FROM annal.drop_pack('none')", "0");
    SENT(1);
    ASK(COUNTS, "h1 s1 s1 2");
    ASK("SELECT behind FROM pack_sessions", "0");
    PGconn *conn = PQconnectdb(url); /* a shipper that knows the table by a number that is gone */
    PGresult *result =
        PQexec(conn, "SELECT annal._put_pack_rows('h1', 'mine', 1, '', '{s1}', '{2}',"
                     " '{0}', '{1}', '{1}', '{\"{}\"}')");
    ck_assert_str_eq(PQresultErrorField(result, PG_DIAG_SQLSTATE), "40001");
    PQclear(result);
    PQfinish(conn);
}
END_TEST

/* ---- Several stores ---- */

START_TEST(stores_that_share_a_session_keep_its_newest_rows)
{
    NEEDS_SERVER();
    static const char tasks[] = "SELECT string_agg(concat_ws(' ', id, state, store), ', ' ORDER BY"
                                " id) FROM backlog_tasks";
    H1("pack", "enable", "agentweaver", "--create");
    DONE_WITH(&cli,
              "{\"type\":\"project.created\",\"data\":{}}\n"
              "{\"type\":\"backlog.captured\",\"data\":{\"title\":\"mend the pump\"}}\n"
              "{\"type\":\"backlog.bulk_committed\",\"data\":{\"task_ids\":[\"t1\"]}}\n",
              "append", "proj_shop");
    H1("ship", url, "--as", "h1");
    H1("home", "share", "proj_shop", url);
    H2("pack", "enable", "agentweaver", "--create");
    H2("pull", "proj_shop", "--from", url);
    H2("home", "share", "proj_shop", url);
    H1("ship", "tables", url, "--as", "h1");
    ASK(tasks, "t1 ready *");
    H2("backlog", "claim", "shop", "t1", "--user", "h2");
    H1("ship", "tables", url, "--as", "h1");
    ASK(tasks, "t1 ready *");
    H2("ship", "tables", url, "--as", "h2");
    ASK(tasks, "t1 claimed *");
    H1("ship", "tables", url, "--as", "h1"); /* whose journal ends before that */
    ASK(tasks, "t1 claimed *");
    ASK("SELECT count(*) || ' ' || min(seq) || ' ' || min(store) FROM _pack_sessions WHERE key > 0",
        "1 4 h2");
}
END_TEST

START_TEST(rows_of_an_older_pack_do_not_replace_those_of_a_newer_one)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    write_pack(counts);
    H1("ship", url, "--as", "h1");
    SENT(1);
    fleet_do("UPDATE _pack_sessions SET version = 2, store = 'h2'");
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    H1("ship", url, "--as", "h1");
    SENT(0);
    ASK(COUNTS, "h1 s1 s1 1");
    fleet_do("UPDATE _pack_sessions SET version = 0");
    SENT(1);
    ASK(COUNTS, "h1 s1 s1 2");
}
END_TEST

/* ---- The target ---- */

START_TEST(a_shipper_needs_no_right_to_create_tables_of_packs)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    write_pack(counts);
    H1("ship", "schema");
    fleet_do(cli.out);
    fleet_do(
        "DROP ROLE IF EXISTS agent; CREATE ROLE agent LOGIN; DROP ROLE IF EXISTS reader;"
        "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA annal TO agent, reader;"
        "GRANT SELECT ON annal._schema TO agent, reader; GRANT SELECT ON annal.sessions TO reader;"
        "GRANT SELECT, INSERT, UPDATE ON annal._heads, annal._homes TO agent;"
        "GRANT SELECT, INSERT ON annal._events, annal.artifacts TO agent");
    const char *as_agent = strdup(pg_url(&pg, "fleet", "agent"));
    const char *as_reader = strdup(pg_url(&pg, "fleet", "reader"));
    H1("ship", as_agent, "--as", "h1");
    CLI(&cli, NULL, "ship", "tables", as_reader, "--as", "h1");
    cli_assert_refused(&cli, 1, "permission denied for the tables of packs (role reader)");
    H1("ship", "tables", as_agent, "--as", "h1");
    ASK("SET ROLE reader; SELECT n FROM annal.counts", "1");
    fleet_do("DROP OWNED BY agent, reader; DROP ROLE agent, reader");
    free((void *)(uintptr_t)as_agent);
    free((void *)(uintptr_t)as_reader);
}
END_TEST

START_TEST(a_lock_that_another_transaction_holds_is_retried)
{
    NEEDS_SERVER();
    static const char waiting[] = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    write_pack(counts);
    H1("ship", url, "--as", "h1");
    fleet_do("ALTER FUNCTION annal._put_pack_rows SET lock_timeout = '100ms'");
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; LOCK TABLE annal._pack_sessions IN SHARE MODE"));
    pid_t pid = fleet_spawn((const char *const[]){"ship", "tables", url, "--as", "h1", NULL});
    fleet_wait_for(waiting, "1");
    fleet_wait_for(waiting, "0");
    PQclear(PQexec(other, "COMMIT"));
    PQfinish(other);
    ck_assert_int_eq(fleet_join(pid), 0);
    ASK(COUNTS, "h1 s1 s1 1");
}
END_TEST

START_TEST(a_pack_without_a_section_forget_is_omitted)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    H1("ship", url, "--as", "h1");
    write_pack("-- pack mine   version 1   database mine.db\n"
               "CREATE TABLE counts (id TEXT PRIMARY KEY, n INTEGER);\n"
               "-- on t\nINSERT INTO counts VALUES (:session, 1);\n");
    CLI(&cli, NULL, "ship", "tables", url, "--as", "h1");
    ck_assert_str_eq(cli.out, "sent 0 rows of packs\n");
    ck_assert_ptr_nonnull(
        strstr(cli.err, "pack 'mine' are left out: the pack has no section '-- forget'"));
    write_pack("-- pack mine   version 1   database mine.db\n"
               "CREATE TABLE counts (id TEXT PRIMARY KEY, n INTEGER);\n"
               "-- on t\nINSERT INTO counts VALUES (:session, 1);\n"
               "-- forget\nUPDATE counts SET n = n - 1 WHERE id = :session;\n");
    CLI(&cli, NULL, "ship", "tables", url, "--as", "h1");
    ck_assert_ptr_nonnull(strstr(cli.err, "that is not DELETE FROM table WHERE"));
    write_pack("-- pack mine   version 1   database mine.db\n"
               "CREATE TABLE counts (id TEXT PRIMARY KEY, n INTEGER);\n"
               "-- on t\nINSERT INTO counts VALUES (:session, 1);\n"
               "-- forget\nDELETE FROM counts WHERE id = :session RETURNING id;\n");
    H1("pack", "enable", "agentweaver");
    CLI(&cli, NULL, "ship", "tables", url, "--as", "h1");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "pack 'mine' are left out: SQL: near \"RETURNING\""));
    ASK("SELECT count(*) FROM run_statuses", "12"); /* of the other pack */
    CLI(&cli, NULL, "ship", "tables", "file:///tmp/lake", "--as", "h1");
    cli_assert_refused(&cli, 2, "only a target that begins with postgresql:// has tables of packs");
}
END_TEST

START_TEST(tables_of_packs_follow_appends)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    write_pack(counts);
    H1("ship", url, "--as", "h1");
    int in, out;
    const char *const words[] = {"ship", "tables", url, "--as", "h1", "--follow", NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    fleet_wait_for("SELECT to_regclass('annal.counts') IS NOT NULL", "t");
    fleet_wait_for(COUNTS, "h1 s1 s1 1");
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":1}\n", "append", "s1");
    H1("ship", url, "--as", "h1");
    fleet_wait_for(COUNTS, "h1 s1 s1 2");
    kill(pid, SIGKILL);
    ck_assert_int_eq(fleet_join(pid), -1);
    close(in);
    close(out);
    SENT(0);
}
END_TEST

Suite *suite_pack_tables(void)
{
    Suite *suite = suite_create("pack_tables");
    TCase *cases = suite_case(suite, "pack_tables", set_up, fleet_teardown);
    tcase_add_unchecked_fixture(cases, fleet_start, fleet_stop);
    tcase_add_test(cases, documented_queries_of_packs_give_the_same_answers_at_the_target);
    tcase_add_test(cases, values_of_every_kind_arrive);
    tcase_add_test(cases, rows_follow_their_events_and_are_removed_with_their_session);
    tcase_add_test(cases, a_pack_dropped_at_the_target_is_created_again_from_the_store);
    tcase_add_test(cases, stores_that_share_a_session_keep_its_newest_rows);
    tcase_add_test(cases, rows_of_an_older_pack_do_not_replace_those_of_a_newer_one);
    tcase_add_test(cases, a_shipper_needs_no_right_to_create_tables_of_packs);
    tcase_add_test(cases, a_lock_that_another_transaction_holds_is_retried);
    tcase_add_test(cases, a_pack_without_a_section_forget_is_omitted);
    tcase_add_test(cases, tables_of_packs_follow_appends);
    return suite;
}
