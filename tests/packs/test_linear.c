/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a rebuild is linear in the journal. The test measures no time: SQLite counts the
 * instructions of its statements, and the pages that they read (a row that grows with its session
 * costs pages, not instructions); the test compares both at two lengths of a session.
 */
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 6

/* Events of a session; %u in data is the number of the round. */
struct stream {
    const char *pack;
    const char *session;
    const char *first[STEPS_MAX][2]; /* type, data; once */
    const char *each[STEPS_MAX][2];  /* in each round */
    unsigned rounds;                 /* and four times as many */
};

static const struct stream streams[] = {
    {.pack = "core",
     .session = "sess_core",
     .first = {{"session.created", "{\"agent_id\":\"a\"}"}},
     .each = {{"turn.started", "{\"turn_id\":\"t%u\"}"},
              {"tool.called", "{\"turn_id\":\"t%u\",\"call_id\":\"c%u\",\"tool\":\"Bash\"}"},
              {"tool.returned", "{\"turn_id\":\"t%u\",\"call_id\":\"c%u\",\"output\":\"x\"}"},
              {"turn.completed", "{\"turn_id\":\"t%u\",\"input_tokens\":5}"}},
     .rounds = 150},
    {.pack = "lionagi",
     .session = "sess_lion",
     .first = {{"session.created", "{}"}, {"branch.created", "{\"id\":\"b\"}"}},
     .each = {{"message.added",
               "{\"id\":\"message %u of a session whose ids are as long as those of lionagi\","
               "\"role\":\"user\",\"content\":\"x\",\"branch_id\":\"b\"}"}},
     .rounds = 500},
    {.pack = "lionagi",
     .session = "sess_appended",
     .first = {{"session.created", "{}"}, {"progression.created", "{\"id\":\"p\"}"}},
     .each = {{"progression.appended",
               "{\"progression_id\":\"p\",\"message_id\":\"message %u, by a long name of its "
               "own\"}"},
              {"message.added",
               "{\"id\":\"m%u\",\"role\":\"user\",\"content\":\"x\",\"append\":[\"p\"]}"}},
     .rounds = 300},
    {.pack = "lionagi",
     .session = "sess_forks",
     .first = {{"session.created", "{}"}, {"branch.created", "{\"id\":\"b\"}"}},
     .each = {{"message.added",
               "{\"id\":\"m%u\",\"role\":\"user\",\"content\":\"x\",\"branch_id\":\"b\"}"},
              {"branch.forked", "{\"id\":\"f%u\",\"parent_branch_id\":\"b\",\"forked_at_ord\":1}"}},
     .rounds = 200},
    {.pack = "teams",
     .session = "team_t",
     .first = {{"team.created", "{\"name\":\"n\",\"members\":[\"a\",\"b\"]}"}},
     .each = {{"team.message", "{\"id\":\"m%u\",\"sender\":\"a\",\"content\":\"It is done.\"}"},
              {"team.message_read", "{\"message_ids\":[\"m%u\"],\"member\":\"b\"}"}},
     .rounds = 200},
    {.pack = "agentweaver",
     .session = "proj_p",
     .first = {{"project.created", "{\"name\":\"P\"}"}},
     .each = {{"backlog.captured",
               "{\"task_id\":\"t%u\",\"title\":\"task\",\"order_key\":\"k%u\"}"},
              {"backlog.committed", "{\"task_id\":\"t%u\"}"},
              {"backlog.claimed", "{\"task_id\":\"t%u\",\"run\":{\"id\":\"run%u\"}}"}},
     .rounds = 150},
    {.pack = "memory",
     .session = "proj_m",
     .each = {{"decision.proposed",
               "{\"entry_id\":\"i%u\",\"agent_name\":\"a\",\"slug\":\"s%u\",\"type\":\"learning\","
               "\"title\":\"t\",\"content\":\"c\"}"},
              {"decision.promoted",
               "{\"entry_id\":\"i%u\",\"decision_id\":\"d%u\",\"by\":\"scribe\"}"},
              {"memory.noted",
               "{\"memory_id\":\"m%u\",\"agent_name\":\"a\",\"type\":\"learning\",\"content\":"
               "\"c\"}"},
              {"session_context.started", "{\"session_id\":\"c%u\",\"row_id\":\"c%u\"}"}},
     .rounds = 150},
    {.pack = "memory",
     .session = "run_r",
     .each = {{"agent.message", "{\"content\":\"message %u\"}"},
              {"tool.call", "{\"tool\":\"Bash\",\"id\":%u}"}},
     .rounds = 200},
    {.pack = "prose",
     .session = "prose_20261120-120000-abcdef",
     .first = {{"run.started", "{\"id\":\"20261120-120000-abcdef\",\"program_path\":\"p.prose\"}"}},
     .each = {{"execution.started",
               "{\"execution_id\":%u,\"statement_index\":%u,\"statement_text\":\"s\"}"},
              {"binding.set", "{\"name\":\"b%u\",\"value\":\"a finding of some words\"}"},
              {"execution.completed", "{\"execution_id\":%u}"}},
     .rounds = 150},
    {.pack = "core",
     .session = "sess_nameless",
     .first = {{"session.created", "{\"agent_id\":\"a\"}"}},
     .each = {{"turn.started", "{\"turn_id\":\"t%u\"}"},
              {"turn.completed", "{\"turn_id\":\"t%u\"}"},
              {"turn.streaming", "{}"},
              {"tool.called", "{\"call_id\":\"the same\",\"tool\":\"Bash\"}"},
              {"tool.returned", "{\"call_id\":\"the same\",\"output\":\"x\"}"}},
     .rounds = 300},
};

/* ---- Counts of SQLite ---- */

static struct work {
    uint64_t steps;
    uint64_t pages;
} work;

static int count(unsigned what, void *arg, void *stmt, void *unused)
{
    static const int of_pages[] = {SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS};
    (void)what;
    (void)arg;
    (void)unused;
    work.steps += (uint64_t)sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    for (size_t i = 0; i < sizeof of_pages / sizeof *of_pages; i++) {
        int now = 0, high = 0;
        sqlite3_db_status(sqlite3_db_handle(stmt), of_pages[i], &now, &high, 1);
        work.pages += (uint64_t)now;
    }
    return 0;
}

/* Register for every connection that is opened from now on. */
static int watch(sqlite3 *db, char **message, const struct sqlite3_api_routines *api)
{
    (void)message;
    (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, count, NULL);
}

/* ---- Rebuilding ---- */

static void append_all(annal_writer *writer, const char *const steps[STEPS_MAX][2], unsigned round)
{
    for (size_t i = 0; i < STEPS_MAX && steps[i][0] != NULL; i++) {
        char data[400];
        size_t len = 0;
        for (const char *c = steps[i][1]; *c != '\0'; c++)
            if (c[0] == '%' && c[1] == 'u') {
                len += (size_t)snprintf(data + len, sizeof data - len, "%u", round);
                c++;
            } else {
                data[len++] = *c;
            }
        const annal_draft draft = {.type = annal_slice_of(steps[i][0]), .data = {data, len}};
        uint64_t seq;
        ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    }
}

/* A refused event would be cheap and prove nothing. */
static int ck_no_findings(void *arg, const annal_pack_info *info)
{
    if (strcmp(info->name, arg) == 0) {
        ck_assert_uint_eq(info->findings, 0);
        ck_assert_uint_ge(info->sessions, 1);
    }
    return 0;
}

static struct work work_of_rebuild(const struct stream *stream, unsigned rounds)
{
    annal_writer *writer = NULL;
    packs_teardown();
    packs_setup(); /* opens connections that are counted */
    PACKS_ENABLE(&p, stream->pack);
    ck_ok(annal_writer_open(p.store, annal_slice_of(stream->session),
                            &(annal_writer_options){.level = ANNAL_LEVEL_OS}, &writer, err));
    append_all(writer, stream->first, 0);
    for (unsigned i = 1; i <= rounds; i++)
        append_all(writer, stream->each, i);
    annal_writer_close(writer);
    work = (struct work){0};
    ck_ok(annal_pack_rebuild(p.index, stream->pack, NULL, err));
    struct work done = work;
    ck_ok(annal_pack_each(p.index, ck_no_findings, (void *)(uintptr_t)stream->pack, err));
    return done;
}

START_TEST(a_rebuild_of_four_times_the_events_takes_four_times_the_work)
{
    const struct stream *stream = &streams[_i];
    ck_assert_int_eq(sqlite3_auto_extension((void (*)(void))watch), SQLITE_OK);
    unsigned rounds = stream->rounds / full_or(1, 2);
    struct work once = work_of_rebuild(stream, rounds);
    struct work more = work_of_rebuild(stream, 4 * rounds);
    sqlite3_reset_auto_extension();
    ck_assert_uint_gt(once.steps, 1000);
    ck_assert_uint_gt(once.pages, 1000);
    /* The additional half allows for deeper trees. */
    ck_assert_uint_le(more.steps, 6 * once.steps);
    ck_assert_uint_le(more.pages, 6 * once.pages);
}
END_TEST

/* ---- Settling ---- */

static const char settling[] = "-- pack settling   version 1   database settling.db\n"
                               "CREATE TABLE seen (session_id TEXT, n INTEGER);\n"
                               "CREATE TABLE settled (session_id TEXT, n INTEGER CHECK (n <> 7));\n"
                               "-- on a\n"
                               "INSERT INTO seen VALUES (:session, :seq);\n"
                               "-- settle\n"
                               "INSERT INTO settled SELECT :session, count(*) FROM seen\n"
                               "WHERE session_id = :session;\n"
                               "-- forget\n"
                               "DELETE FROM seen WHERE session_id = :session;\n"
                               "DELETE FROM settled WHERE session_id = :session;\n";

/* More events than a turn of a session. */
START_TEST(a_pack_settles_once_for_all_new_events_of_a_session)
{
    enum { EVENTS = 1500 };
    for (unsigned i = 0; i < EVENTS; i++)
        packs_append_past(&p, i % 2 == 0 ? "sess_1" : "sess_2", "a", "{}");
    packs_add(&p, "settling", settling);
    ck_packs(&p, "SELECT session_id, n FROM settled ORDER BY 1", "sess_1|750\nsess_2|750\n");
    packs_append_past(&p, "sess_1", "a", "{}");
    packs_append_past(&p, "sess_1", "a", "{}");
    ck_packs(&p, "SELECT session_id, n FROM settled ORDER BY 1, 2",
             "sess_1|750\nsess_1|752\nsess_2|750\n");
}
END_TEST

START_TEST(a_failed_settle_is_a_finding_and_later_events_are_settled)
{
    for (unsigned i = 0; i < 7; i++)
        packs_append_past(&p, "sess_1", "a", "{}");
    packs_add(&p, "settling", settling);
    ck_packs(&p, "SELECT count(*) FROM seen", "7\n");
    ck_packs(&p, "SELECT count(*) FROM settled", "0\n");
    ck_packs(&p, "SELECT seq, what FROM settling._findings",
             "7|settle: CHECK constraint failed: n <> 7\n");
    packs_append_past(&p, "sess_1", "a", "{}");
    ck_packs(&p, "SELECT n FROM settled", "8\n");
}
END_TEST

static int tell_finding(void *arg, const annal_pack_finding *finding)
{
    text_add(arg, finding->what, strlen(finding->what));
    text_add(arg, "\n", 1);
    return 0;
}

static void ck_sound(void)
{
    struct text text = {0};
    text_add(&text, "", 0);
    ck_ok(annal_pack_verify(p.index, tell_finding, &text, err));
    ck_assert_str_eq(text.ptr, "");
    free(text.ptr);
}

/* Each settle of a session inserts a row, the first included. */
START_TEST(a_session_that_was_never_settled_is_not_settled_by_verify)
{
    enum { EVENTS = 3000 };
    const annal_catch_up_options moment = {.timeout_ms = 1, .packs = true};
    for (unsigned i = 0; i < EVENTS; i++)
        packs_append_past(&p, "sess_1", "a", "{}");
    free(packs_rows(&p, "SELECT count(*) FROM event_index"));
    packs_add(&p, "settling",
              "-- pack settling   version 1   database settling.db\n"
              "CREATE TABLE seen (session_id TEXT, n INTEGER);\n"
              "CREATE TABLE settled (session_id TEXT);\n"
              "-- on a\n"
              "INSERT INTO seen VALUES (:session, :seq);\n"
              "-- settle\n"
              "INSERT INTO settled VALUES (:session);\n"
              "-- forget\n"
              "DELETE FROM seen WHERE session_id = :session;\n"
              "DELETE FROM settled WHERE session_id = :session;\n");
    ck_assert_int_eq(annal_index_catch_up(p.index, (annal_slice){0}, &moment, NULL),
                     ANNAL_ERR_BUSY);
    ck_text(packs_shell(&p, "settling.db",
                        "SELECT seq FROM _cursor WHERE pack = 'settling settled';"
                        "SELECT count(*) > 0 FROM seen; SELECT count(*) FROM settled"),
            "0\n1\n0\n");
    ck_sound();
    ck_packs(&p, "SELECT count(*) FROM settled", "1\n");
    ck_sound();
}
END_TEST

/* Apply for a millisecond, which ends within the session; only the column collection lags. */
static void cut_short(void)
{
    const annal_catch_up_options moment = {.timeout_ms = 1, .packs = true};
    free(packs_rows(&p, "SELECT count(*) FROM event_index"));
    ck_assert_int_eq(annal_index_catch_up(p.index, (annal_slice){0}, &moment, NULL),
                     ANNAL_ERR_BUSY);
    ck_text(packs_shell(&p, "state.db",
                        "SELECT count(*) FROM _cursor WHERE pack = 'lionagi settled';"
                        "SELECT json_array_length(collection) < (SELECT count(*) FROM messages) "
                        "FROM progressions;"
                        "SELECT count(*) - (SELECT count(*) FROM messages) FROM branch_messages;"
                        "SELECT count(*) - (SELECT count(*) FROM messages) FROM session_messages;"
                        "SELECT message_count - (SELECT count(*) FROM messages) FROM run_list;"),
            "1\n1\n1\n0\n0\n0\n");
}

START_TEST(tables_are_sound_after_a_catch_up_that_ended_within_a_session)
{
    const struct stream *stream = &streams[1];
    enum { MESSAGES = 1000 };
    annal_writer *writer = NULL;
    PACKS_ENABLE(&p, stream->pack, "teams");
    ck_ok(annal_writer_open(p.store, annal_slice_of(stream->session),
                            &(annal_writer_options){.level = ANNAL_LEVEL_OS}, &writer, err));
    append_all(writer, stream->first, 0);
    for (unsigned i = 1; i <= MESSAGES; i++)
        append_all(writer, stream->each, i);
    for (unsigned i = 0; i < 2; i++) { /* from empty tables, and from settled tables */
        cut_short();
        ck_sound();
        cut_short();
        ck_sound();
        ck_packs(&p, "SELECT count(*) FROM state._cursor WHERE pack = 'lionagi settled'", "0\n");
        ck_sound();
        for (unsigned j = 1; j <= MESSAGES; j++)
            append_all(writer, stream->each, (i + 1) * MESSAGES + j);
    }
    annal_writer_close(writer);
}
END_TEST

START_TEST(a_state_in_memory_is_settled_by_a_query)
{
    struct memory m;
    memory_init_text(&m, "sess_1", settling);
    memory_apply(&m, "a", "{}");
    memory_apply(&m, "a", "{}");
    ck_memory(&m, "SELECT n FROM settled", "2\n");
    memory_apply(&m, "a", "{}");
    ck_memory(&m, "SELECT n FROM settled", "2\n3\n");
    memory_done(&m);
}
END_TEST

Suite *suite_linear(void)
{
    Suite *suite = suite_create("linear");
    TCase *tcase = suite_case(suite, "rebuild", packs_setup, packs_teardown);
    tcase_add_loop_test(tcase, a_rebuild_of_four_times_the_events_takes_four_times_the_work, 0,
                        (int)(sizeof streams / sizeof *streams));
    tcase_add_test(tcase, a_pack_settles_once_for_all_new_events_of_a_session);
    tcase_add_test(tcase, tables_are_sound_after_a_catch_up_that_ended_within_a_session);
    tcase_add_test(tcase, a_session_that_was_never_settled_is_not_settled_by_verify);
    tcase_add_test(tcase, a_failed_settle_is_a_finding_and_later_events_are_settled);
    tcase_add_test(tcase, a_state_in_memory_is_settled_by_a_query);
    return suite;
}
