/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/state.h"
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Create a team of two in memory. */
static void memory_team(struct memory *m)
{
    memory_init(m, "team_t1", "teams", NULL);
    memory_apply(m, "team.created",
                 "{\"id\":\"t1\",\"name\":\"review-team\",\"members\":[\"alice\",\"bob\"]}");
}

/* Assert that an event changes nothing, as a guard or a constraint would refuse it. */
static void ck_nothing(struct memory *m, const char *type, const char *data)
{
    static const char all[] =
        "SELECT * FROM (SELECT json_array(id, name, member_count, members, status, updated_at) "
        "FROM teams UNION ALL SELECT json_array(id, recipient, read_by, sender) "
        "FROM team_messages) ORDER BY 1";
    char *before = memory_rows(m, all);
    memory_apply(m, type, data);
    char *after = memory_rows(m, all);
    ck_assert_msg(strcmp(before, after) == 0, "%s %s was taken", type, data);
    free(before);
    free(after);
}

START_TEST(a_team_has_the_columns_of_the_document_and_counts_its_members)
{
    struct memory m;
    memory_team(&m);
    ck_memory(
        &m,
        "SELECT id, name, created_at, updated_at, member_count, members, node_metadata, status "
        "FROM teams",
        "t1|review-team|1767684240|1767684240|2|[\"alice\",\"bob\"]||active\n");
    memory_apply(&m, "team.configured", "{\"node_metadata\":{\"mode\":\"round-robin\"}}");
    memory_apply(&m, "team.renamed", "{\"name\":\"reviewers\"}");
    memory_apply(&m, "team.archived", "{\"reason\":\"done\"}");
    ck_memory(&m, "SELECT name, updated_at, node_metadata, status FROM teams",
              "reviewers|1767684243|{\"mode\":\"round-robin\"}|archived\n");
    ck_nothing(&m, "team.archived", "{}");
    memory_done(&m);
}
END_TEST

START_TEST(an_invalid_team_is_not_created)
{
    static const char *const wrong[] = {
        "{}",
        "{\"name\":\"\"}",
        "{\"name\":\"n\",\"members\":\"alice\"}",
        "{\"name\":\"n\",\"members\":null}",
        "{\"name\":\"n\",\"members\":[\"alice\",\"alice\"]}",
        "{\"name\":\"n\",\"members\":[\"alice\",\"\"]}",
        "{\"name\":\"n\",\"members\":[\"alice,bob\"]}",
        "{\"name\":\"n\",\"members\":[\"all\"]}",
        "{\"name\":\"n\",\"members\":[\"*\"]}",
        "{\"name\":\"n\",\"members\":[7]}",
        "{\"name\":\"n\",\"members\":[null]}",
        "null",
        "[1]",
    };
    struct memory m;
    memory_init(&m, "team_t1", "teams", NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_nothing(&m, "team.created", wrong[i]);
    memory_apply(&m, "team.created", "{\"name\":\"n\"}");
    ck_memory(&m, "SELECT id, name, member_count, members FROM teams", "t1|n|0|[]\n");
    ck_nothing(&m, "team.created", "{\"name\":\"again\"}");
    memory_done(&m);
}
END_TEST

START_TEST(an_invalid_status_is_refused_and_a_deleted_team_removes_its_messages)
{
    struct memory m;
    memory_init(&m, "team_t1", "teams", NULL);
    ck_nothing(&m, "team.imported", "{\"name\":\"n\",\"status\":\"frozen\"}");
    ck_assert_uint_eq(annal__state_refused(m.state), 1);
    memory_apply(&m, "team.imported", "{\"name\":\"n\",\"status\":\"archived\"}");
    memory_apply(&m, "team.message", "{\"id\":\"m1\",\"sender\":\"a\",\"content\":\"c\"}");
    memory_apply(&m, "team.message_read", "{\"message_ids\":[\"m1\"],\"member\":\"b\"}");
    ck_memory(&m, "SELECT count(*) FROM team_messages JOIN x_team_reads ON message_id = id", "1\n");
    memory_apply(&m, "team.deleted", "{\"reason\":\"over\"}");
    ck_memory(&m,
              "SELECT (SELECT count(*) FROM teams), (SELECT count(*) FROM team_messages), "
              "(SELECT count(*) FROM x_team_reads)",
              "0|0|0\n");
    memory_apply(&m, "team.created", "{\"name\":\"again\"}");
    ck_memory(&m, "SELECT name FROM teams", "again\n");
    memory_done(&m);
}
END_TEST

START_TEST(the_member_count_follows_added_and_removed_members)
{
    struct memory m;
    memory_team(&m);
    memory_apply(&m, "team.members_changed",
                 "{\"add\":[\"carol\",\"bob\",\"carol\",\"dave\"],\"remove\":[\"alice\"]}");
    ck_memory(&m, "SELECT member_count, members FROM teams", "3|[\"bob\",\"carol\",\"dave\"]\n");
    ck_nothing(&m, "team.members_changed", "{\"add\":[\"bob\"],\"remove\":[\"nobody\"]}");
    ck_nothing(&m, "team.members_changed", "{\"add\":[\"eve\",\"a,b\"]}");
    ck_nothing(&m, "team.members_changed", "{\"remove\":null}");
    ck_nothing(&m, "team.members_changed", "{\"add\":null,\"remove\":[\"bob\"]}");
    ck_nothing(&m, "team.members_changed", "{}");
    memory_apply(&m, "team.archived", "{}");
    ck_nothing(&m, "team.members_changed", "{\"add\":[\"eve\"]}");
    memory_done(&m);
}
END_TEST

START_TEST(a_message_is_addressed_to_all_or_to_names)
{
    static const struct {
        const char *to;
        const char *recipient;
    } cases[] = {
        {"\"all\"", "all"},
        {"\"*\"", "all"},
        {"[\"*\"]", "all"},
        {"[\"all\"]", "all"},
        {"[]", "all"},
        {"null", "all"},
        {"\"bob\"", "bob"},
        {"[\"bob\"]", "bob"},
        {"[\"bob\",\"alice\",\"not a member\"]", "bob,alice,not a member"},
        {"[\"all\",\"bob\"]", "all"},
    };
    char data[200], select[200], row[200];
    struct memory m;
    memory_team(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(data, sizeof data,
                 "{\"id\":\"m%zu\",\"sender\":\"alice\",\"to\":%s,\"content\":\"hi\"}", i,
                 cases[i].to);
        memory_apply(&m, "team.message", data);
        snprintf(select, sizeof select, "SELECT recipient FROM team_messages WHERE id = 'm%zu'", i);
        snprintf(row, sizeof row, "%s\n", cases[i].recipient);
        ck_memory(&m, select, row);
    }
    ck_nothing(&m, "team.message",
               "{\"id\":\"x\",\"sender\":\"a\",\"to\":[\"b,c\"],\"content\":\"c\"}");
    ck_nothing(&m, "team.message",
               "{\"id\":\"x\",\"sender\":\"a\",\"to\":[\"\"],\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"x\",\"sender\":\"a\",\"to\":[7],\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"x\",\"sender\":\"a\",\"to\":{},\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"x\",\"sender\":\"a\",\"to\":\"\",\"content\":\"c\"}");
    memory_done(&m);
}
END_TEST

START_TEST(a_message_needs_an_id_sender_and_content_and_its_id_counts_once)
{
    struct memory m;
    memory_team(&m);
    ck_nothing(&m, "team.message", "{\"sender\":\"a\",\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"sender\":\"\",\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"sender\":\"a\"}");
    memory_apply(&m, "team.message", "{\"id\":\"m\",\"sender\":\"a\",\"content\":\"first\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"sender\":\"b\",\"content\":\"second\"}");
    ck_memory(&m, "SELECT content FROM team_messages", "first\n");
    memory_done(&m);

    memory_init(&m, "team_t2", "teams", NULL);
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"sender\":\"a\",\"content\":\"no team\"}");
    memory_done(&m);
}
END_TEST

START_TEST(a_message_drops_a_session_that_its_sender_did_not_know)
{
    struct memory m;
    memory_team(&m);
    memory_apply(&m, "team.message",
                 "{\"id\":\"m1\",\"sender\":\"a\",\"content\":\"c\",\"summary\":\"s\","
                 "\"session_id\":\"sess_1\",\"from_op\":\"o3\"}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m2\",\"sender\":\"a\",\"content\":\"c\",\"session_id\":\"sess_2\","
                 "\"session_known\":true}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m3\",\"sender\":\"a\",\"content\":\"c\",\"session_id\":\"gone\","
                 "\"session_known\":false}");
    ck_memory(&m, "SELECT id, session_id, summary, from_op FROM team_messages ORDER BY id",
              "m1|sess_1|s|o3\nm2|sess_2||\nm3|||\n");
    ck_memory(&m, "SELECT team_id, session_id, messages FROM team_sessions ORDER BY session_id",
              "t1|sess_1|1\nt1|sess_2|1\n");
    memory_done(&m);
}
END_TEST

START_TEST(a_member_reads_a_message_once_and_names_are_sorted)
{
    struct memory m;
    memory_team(&m);
    memory_apply(&m, "team.message", "{\"id\":\"m1\",\"sender\":\"zoe\",\"content\":\"c\"}");
    memory_apply(&m, "team.message", "{\"id\":\"m2\",\"sender\":\"zoe\",\"content\":\"c\"}");
    memory_apply(
        &m, "team.message_read",
        "{\"message_ids\":[\"m1\"],\"member\":\"bob\",\"read_at\":\"2026-05-21T15:06:00Z\"}");
    memory_apply(&m, "team.message_read", "{\"message_ids\":[\"m1\",\"m2\"],\"member\":\"alice\"}");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":[\"m1\",\"m2\"],\"member\":\"bob\"}");
    memory_apply(&m, "team.message_read", "{\"message_ids\":[\"m2\"],\"member\":\"bob\"}");
    ck_memory(&m, "SELECT id, read_by FROM team_messages ORDER BY id",
              "m1|[\"alice\",\"bob\"]\nm2|[\"alice\",\"bob\"]\n");
    ck_memory(&m, "SELECT * FROM x_team_reads ORDER BY 1, 2",
              "m1|alice|1767684244\nm1|bob|1779375960\nm2|alice|1767684244\nm2|bob|1767684246\n");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":[\"m1\"],\"member\":\"bob\"}");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":[\"m9\"],\"member\":\"bob\"}");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":null,\"member\":\"eve\"}");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":[\"m1\"]}");
    memory_done(&m);
}
END_TEST

START_TEST(an_imported_team_has_the_rows_of_its_file)
{
    struct memory m;
    memory_init(&m, "team_abc123", "teams", NULL);
    memory_apply(&m, "team.imported",
                 "{\"id\":\"abc123\",\"name\":\"review-team\",\"members\":[\"alice\",\"bob\"],"
                 "\"created_at\":\"2026-05-21T14:00:00+00:00\"}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m1\",\"sender\":\"alice\",\"to\":[\"bob\"],"
                 "\"content\":\"what's the verdict?\","
                 "\"created_at\":\"2026-05-21T15:00:00+00:00\",\"read_by\":{}}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m2\",\"sender\":\"bob\",\"to\":[\"*\"],\"content\":\"approve\","
                 "\"created_at\":\"2026-05-21T15:05:00+00:00\","
                 "\"read_by\":{\"alice\":\"2026-05-21T15:06:00+00:00\"}}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m3\",\"sender\":\"bob\",\"to\":[\"*\"],\"content\":\"old form\","
                 "\"created_at\":\"2026-05-21T15:07:00+00:00\",\"read_by\":[\"zoe\",\"alice\"]}");
    ck_memory(&m, "SELECT id, created_at, updated_at, member_count FROM teams",
              "abc123|1779372000|1779376020|2\n");
    ck_memory(&m, "SELECT id, team_id, created_at, sender, recipient, read_by FROM team_messages",
              "m1|abc123|1779375600|alice|bob|[]\n"
              "m2|abc123|1779375900|bob|all|[\"alice\"]\n"
              "m3|abc123|1779376020|bob|all|[\"alice\",\"zoe\"]\n");
    ck_memory(&m, "SELECT * FROM x_team_reads ORDER BY 1, 2",
              "m2|alice|1779375960\nm3|alice|\nm3|zoe|\n");
    ck_assert_uint_eq(annal__state_refused(m.state), 0);
    memory_done(&m);
}
END_TEST

/* ---- The SQL of the document in the stock shell ---- */

static const struct {
    const char *id;
    const char *sql;
    const char *said; /* "": no rows, as in the document's own schema */
} printed[] = {
    {"S-T1",
     "CREATE TABLE IF NOT EXISTS teams (\n"
     "id TEXT PRIMARY KEY,\n"
     "name TEXT NOT NULL,\n"
     "created_at REAL NOT NULL,\n"
     "updated_at REAL NOT NULL,\n"
     "member_count INTEGER NOT NULL DEFAULT 0,\n"
     "members JSON NOT NULL DEFAULT '[]', -- array of member name strings\n"
     "node_metadata JSON, -- team config, coordination mode\n"
     "status TEXT NOT NULL DEFAULT 'active' CHECK(\n"
     "status IN ('active', 'archived')\n"
     ")\n"
     ");",
     ""},
    {"S-T2", "CREATE INDEX IF NOT EXISTS idx_teams_name ON teams(name);", ""},
    {"S-T3", "CREATE INDEX IF NOT EXISTS idx_teams_updated ON teams(updated_at DESC);", ""},
    {"S-T4", "CREATE INDEX IF NOT EXISTS idx_teams_status ON teams(status);", ""},
    {"S-T5",
     "CREATE TABLE IF NOT EXISTS team_messages (\n"
     "id TEXT PRIMARY KEY,\n"
     "team_id TEXT NOT NULL REFERENCES teams(id) ON DELETE CASCADE,\n"
     "created_at REAL NOT NULL,\n"
     "sender TEXT NOT NULL, -- member name or \"system\"\n"
     "recipient TEXT NOT NULL DEFAULT 'all', -- member name or \"all\"\n"
     "content TEXT NOT NULL,\n"
     "summary TEXT, -- one-line distillation for collapsed display\n"
     "read_by JSON NOT NULL DEFAULT '[]', -- array of member names\n"
     "session_id TEXT REFERENCES sessions(id) -- optional link to coordinating session\n"
     "-- Note: the Studio teams page shows `summary` by default; full `content` is revealed\n"
     ");",
     ""},
    {"S-T6", "CREATE INDEX IF NOT EXISTS idx_team_msgs_team ON team_messages(team_id);", ""},
    {"S-T7", "CREATE INDEX IF NOT EXISTS idx_team_msgs_created ON team_messages(created_at);", ""},
    {"S-T8",
     "CREATE INDEX IF NOT EXISTS idx_team_msgs_session ON team_messages(session_id)\n"
     "WHERE session_id IS NOT NULL;",
     ""},
    {"S-T9", "ALTER TABLE sessions ADD COLUMN last_message_at REAL;",
     "duplicate column name: last_message_at"},
    {"S-T10",
     "SELECT count(*) FROM session_activity WHERE status = 'running' AND "
     "last_activity < unixepoch() - (stale_at - last_activity);",
     "1\n"},
    {"S-T11", "SELECT COUNT(*) FROM teams WHERE status = 'active';", "1\n"},
};

START_TEST(the_sql_of_the_document_runs_in_the_stock_shell)
{
    PACKS_ENABLE(&p, "lionagi", "teams");
    packs_append_past(&p, "s1", "session.created",
                      "{\"status\":\"running\",\"started_at\":1767684240}");
    packs_append_past(&p, "team_t1", "team.created", "{\"name\":\"n\",\"members\":[\"a\"]}");
    packs_append_past(&p, "team_t2", "team.imported", "{\"name\":\"n\",\"status\":\"archived\"}");
    packs_append_past(&p, "team_t1", "team.message",
                      "{\"id\":\"m1\",\"sender\":\"a\",\"content\":\"c\",\"session_id\":\"s1\"}");
    ck_packs(&p, "SELECT count(*) FROM teams", "2\n");
    char *before = packs_shell(&p, "state.db", ".schema");
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        char *said = packs_shell(&p, "state.db", printed[i].sql);
        bool same = strcmp(said, printed[i].said) == 0 ||
                    (strcmp(printed[i].id, "S-T9") == 0 && strstr(said, printed[i].said) != NULL);
        ck_assert_msg(same, "%s: %s", printed[i].id, said);
        free(said);
    }
    char *after = packs_shell(&p, "state.db", ".schema");
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}
END_TEST

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

START_TEST(the_shell_reads_the_views_and_reports_no_violated_key)
{
    static const struct {
        const char *sql, *said;
    } asked[] = {
        {"SELECT session_id, status, effective_health, message_count FROM run_list;",
         "s1|running|stale|1\n"},
        {"SELECT running, stale, failed_24h, slow, teams_active FROM dashboard;", "1|1|0|1|1\n"},
        {"SELECT DISTINCT session_id FROM team_messages WHERE team_id = 't1' AND session_id IS NOT "
         "NULL;",
         "s1\n"},
        {"PRAGMA foreign_key_check;", ""},
        {"PRAGMA integrity_check;", "ok\n"},
        {"UPDATE teams SET members = json_array('x', 'y', 'z');"
         "SELECT member_count FROM teams;",
         "3\n"},
        {"UPDATE teams SET member_count = 9; SELECT member_count FROM teams;", "3\n"},
        {"UPDATE teams SET status = 'frozen';", "CHECK constraint failed"},
        {"PRAGMA foreign_keys = ON; DELETE FROM teams; SELECT count(*) FROM team_messages;", "0\n"},
    };
    PACKS_ENABLE(&p, "lionagi", "teams");
    packs_append_past(&p, "s1", "session.created",
                      "{\"status\":\"running\",\"started_at\":1767684240}");
    packs_append_past(&p, "s1", "message.added",
                      "{\"id\":\"x\",\"role\":\"user\",\"content\":\"c\",\"type_id\":0,"
                      "\"created_at\":1767684241}");
    packs_append_past(&p, "team_t1", "team.created", "{\"name\":\"n\",\"members\":[\"a\"]}");
    packs_append_past(&p, "team_t1", "team.message",
                      "{\"id\":\"m1\",\"sender\":\"a\",\"content\":\"c\",\"session_id\":\"s1\"}");
    ck_packs(&p, "SELECT count(*) FROM teams", "1\n");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char *said = packs_shell(&p, "state.db", asked[i].sql);
        ck_assert_msg(strstr(said, asked[i].said) != NULL, "%s: %s", asked[i].sql, said);
        if (asked[i].said[0] == '\0')
            ck_assert_str_eq(said, "");
        free(said);
    }
}
END_TEST

/* ---- Staleness ---- */

/* session_activity equals the document's function at any moment. */
START_TEST(a_run_is_stale_only_after_the_threshold_of_its_kind)
{
    static const struct {
        const char *row; /* id, status, kind, last_message_at, updated_at */
        double quiet;    /* seconds before 2,000,000,000 */
        bool stale;
    } cases[] = {
        {"'running', 'agent', 2e9 - ?1, NULL", 6 * 3600 + 60, true},
        {"'running', 'agent', 2e9 - ?1, NULL", 17 * 60, false},
        {"'running', 'agent', 2e9 - ?1, NULL", 6 * 3600, false},
        {"'running', 'play', 2e9 - ?1, NULL", 6 * 3600 + 0.5, true},
        {"'running', 'agent', 2e9 - ?1, 2e9", 9 * 3600, true},
        {"'running', 'flow', 2e9 - ?1, NULL", 9 * 3600, false},
        {"'running', 'flow', 2e9 - ?1, NULL", 12 * 3600, false},
        {"'running', 'fanout', 2e9 - ?1, NULL", 12 * 3600 + 1, true},
        {"'running', 'show-play', 2e9 - ?1, NULL", 12 * 3600 + 1, true},
        {"'running', NULL, 2e9 - ?1, NULL", 6 * 3600 + 1, true},
        {"'running', NULL, 2e9 - ?1, NULL", 6 * 3600, false},
        {"'running', 'agent', NULL, 2e9 - ?1", 6 * 3600 + 1, true},
        {"'running', 'agent', NULL, 2e9 - ?1", 6 * 3600 - 1, false},
        {"'running', 'agent', 0, 2e9 - ?1", 6 * 3600 - 1, false},
        {"'running', 'agent', NULL, NULL", 0, true},
        {"'completed', 'agent', 2e9 - ?1, NULL", 360000, false},
        {"'failed', 'agent', 2e9 - ?1, NULL", 360000, false},
        {"'timed_out', 'agent', 2e9 - ?1, NULL", 360000, false},
        {"'aborted', 'agent', 2e9 - ?1, NULL", 360000, false},
        {"'cancelled', 'agent', 2e9 - ?1, NULL", 360000, false},
        {"NULL, 'agent', 2e9 - ?1, NULL", 360000, false},
    };
    PACKS_ENABLE(&p, "lionagi", "teams");
    ck_packs(&p, "SELECT count(*) FROM state.sessions", "0\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sql[600];
        snprintf(
            sql, sizeof sql,
            ".parameter init\n.parameter set ?1 %.1f\nBEGIN;\n"
            "INSERT INTO sessions (id, status, invocation_kind, last_message_at, updated_at) "
            "VALUES ('s', %s);\n"
            "SELECT count(*) FROM session_activity WHERE status = 'running' AND 2e9 > stale_at;\n"
            "ROLLBACK;\n",
            cases[i].quiet, cases[i].row);
        char *said = packs_shell(&p, "state.db", sql);
        ck_assert_msg(strcmp(said, cases[i].stale ? "1\n" : "0\n") == 0, "%s, %.1f: %s",
                      cases[i].row, cases[i].quiet, said);
        free(said);
    }
    ck_packs(&p,
             "SELECT count(*) FROM stale_thresholds WHERE kind IN "
             "('agent', 'play', 'flow', 'fanout', 'show-play', 'default')",
             "6\n");
}
END_TEST

/* ---- Guards ---- */

START_TEST(every_refusal_has_the_message_of_the_pack_and_writes_nothing)
{
    PACKS_ENABLE(&p, "teams");
    static const struct {
        const char *type, *data, *why;
    } refused[] = {
        {"team.message", "{\"id\":\"m\",\"sender\":\"a\",\"content\":\"c\"}",
         "there is no such team"},
        {"team.archived", "{}", "there is no such team"},
        {"team.created", "{\"members\":[]}", "a team needs a name"},
        {"team.created", "{\"name\":\"n\",\"members\":[\"a\",\"a\"]}",
         "members must be different names"},
        {"team.imported", "{\"name\":\"n\",\"status\":\"frozen\"}",
         "the status of a team must be active or archived"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ck_refused(&p, "team_t1", refused[i].type, refused[i].data, refused[i].why);
    ck_append(&p, "team_t1", "team.created", "{\"name\":\"n\",\"members\":[\"a\",\"b\"]}");
    ck_append(&p, "team_t1", "team.message", "{\"id\":\"m1\",\"sender\":\"a\",\"content\":\"c\"}");
    ck_append(&p, "team_t1", "team.message_read", "{\"message_ids\":[\"m1\"],\"member\":\"b\"}");
    ck_append(&p, "team_t2", "team.created", "{\"name\":\"n\"}");
    static const struct {
        const char *session, *type, *data, *why;
    } more[] = {
        {"team_t1", "team.created", "{\"name\":\"n\"}", "the team exists already"},
        {"team_t1", "team.renamed", "{\"name\":\"\"}", "a team needs a name"},
        {"team_t1", "team.members_changed", "{\"add\":[\"x,y\"]}", "a new member needs a name"},
        {"team_t1", "team.members_changed", "{\"add\":[\"a\"]}", "this changes no member"},
        {"team_t1", "team.message", "{\"id\":\"m2\",\"content\":\"c\"}",
         "a message needs an id, a sender and content"},
        {"team_t2", "team.message", "{\"id\":\"m1\",\"sender\":\"a\",\"content\":\"c\"}",
         "a message with this id exists already"},
        {"team_t1", "team.message",
         "{\"id\":\"m2\",\"sender\":\"a\",\"content\":\"c\",\"to\":[\"x,y\"]}",
         "names without a comma"},
        {"team_t1", "team.message_read", "{\"message_ids\":[\"m1\"],\"member\":\"b\"}",
         "the member has read one of them already"},
        {"team_t2", "team.message_read", "{\"message_ids\":[\"m1\"],\"member\":\"c\"}",
         "there is no such message in this team"},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        ck_refused(&p, more[i].session, more[i].type, more[i].data, more[i].why);
    ck_append(&p, "team_t1", "team.archived", "{}");
    ck_refused(&p, "team_t1", "team.archived", "{}", "the team is archived");
    ck_refused(&p, "team_t1", "team.members_changed", "{\"add\":[\"c\"]}", "the team is archived");
    ck_packs(&p, "SELECT count(*) FROM events", "5\n");
    packs_ck_rebuild(&p, "state.db", 1);
}
END_TEST

/* Past the guards: t2 wrote and read before t1 took the id. */
START_TEST(a_message_id_in_two_teams_belongs_to_the_first_team_in_any_order)
{
    static const char *const teams[] = {"team_t2", "team_t1", "team_t3"};
    PACKS_ENABLE(&p, "teams");
    for (int i = 0; i < 3; i++) {
        char data[200];
        packs_append_past(&p, teams[i], "team.created", "{\"name\":\"n\"}");
        snprintf(data, sizeof data,
                 "{\"id\":\"m\",\"sender\":\"a\",\"content\":\"%s\",\"read_by\":[\"r%d\"]}",
                 teams[i], i);
        packs_append_past(&p, teams[i], "team.message", data);
        snprintf(data, sizeof data, "{\"message_ids\":[\"m\"],\"member\":\"y%d\"}", i);
        packs_append_past(&p, teams[i], "team.message_read", data);
    }
    ck_packs(&p, "SELECT team_id, content, read_by FROM team_messages",
             "t1|team_t1|[\"r1\",\"y1\"]\n");
    ck_packs(&p, "SELECT member FROM x_team_reads ORDER BY 1", "r1\ny1\n");
    for (unsigned seed = 1; seed < 6; seed++)
        packs_ck_rebuild(&p, "state.db", seed);
}
END_TEST

START_TEST(names_with_a_comma_and_repeated_names_are_refused)
{
    PACKS_ENABLE(&p, "teams");
    ck_append(&p, "team_t1", "team.created", "{\"name\":\"n\"}");
    ck_refused(&p, "team_t1", "team.message", "{\"id\":\"m\",\"sender\":\"a,b\",\"content\":\"c\"}",
               "a name must not contain a comma");
    ck_refused(&p, "team_t1", "team.message",
               "{\"id\":\"m\",\"sender\":\"a\",\"content\":\"c\",\"to\":\"b,c\"}",
               "names without a comma");
    ck_refused(&p, "team_t1", "team.message",
               "{\"id\":\"m\",\"sender\":\"a\",\"content\":\"c\",\"read_by\":{\"b,c\":1}}",
               "a name must not contain a comma");
    ck_append(&p, "team_t1", "team.message",
              "{\"id\":\"m\",\"sender\":\"a\",\"content\":\"c\",\"to\":[\"z\",\"b\",\"z\"]}");
    ck_packs(&p, "SELECT recipient FROM team_messages", "z,b\n");
    ck_refused(&p, "team_t1", "team.message_read", "{\"message_ids\":[\"m\"],\"member\":\"b,z\"}",
               "must not contain a comma");
}
END_TEST

START_TEST(the_summary_of_a_long_message_defaults_to_its_first_200_characters)
{
    char data[900], body[400];
    PACKS_ENABLE(&p, "teams");
    ck_append(&p, "team_t1", "team.created", "{\"name\":\"n\"}");
    memset(body, 'x', sizeof body - 1);
    body[sizeof body - 1] = '\0';
    snprintf(data, sizeof data,
             "{\"id\":\"m1\",\"sender\":\"a\",\"content\":\"\u00e9 verdict\\n%s\"}", body);
    ck_append(&p, "team_t1", "team.message", data);
    snprintf(data, sizeof data,
             "{\"id\":\"m2\",\"sender\":\"a\",\"content\":\"%s\",\"summary\":\"xs\"}", body);
    ck_append(&p, "team_t1", "team.message", data);
    snprintf(data, sizeof data, "{\"id\":\"m3\",\"sender\":\"a\",\"content\":\"%s\"}", body);
    ck_append(&p, "team_t1", "team.message", data);
    body[200] = '\0';
    snprintf(data, sizeof data, "{\"id\":\"m4\",\"sender\":\"a\",\"content\":\"%s\"}", body);
    ck_append(&p, "team_t1", "team.message", data);
    ck_packs(&p,
             "SELECT id, length(summary), summary = substr(content, 1, 200) || '…' FROM "
             "team_messages ORDER BY id",
             "m1|201|1\nm2|2|0\nm3|201|1\nm4||\n");
}
END_TEST

START_TEST(a_stale_session_that_ended_or_became_active_is_not_ended_again)
{
    static const char stale[] =
        "{\"expected\":[\"running\"],\"to\":\"failed\",\"source\":\"admin\","
        "\"reason_code\":\"session.stale.no_heartbeat\",\"quiet_since\":1767684240}";
    PACKS_ENABLE(&p, "lionagi", "teams");
    ck_append(&p, "s1", "session.created",
              "{\"status\":\"running\",\"started_at\":\"2026-01-06T07:24:00Z\"}");
    ck_append(&p, "s2", "session.created",
              "{\"status\":\"running\",\"started_at\":\"2026-01-06T07:24:00Z\"}");
    ck_append(&p, "s3", "session.created",
              "{\"status\":\"running\",\"started_at\":\"2026-01-06T07:24:00Z\"}");
    ck_append(&p, "s1", "session.transition", "{\"to\":\"completed\",\"source\":\"executor\"}");
    ck_append(&p, "s2", "message.added", "{\"id\":\"m\",\"role\":\"user\",\"content\":\"awake\"}");
    ck_refused(&p, "s1", "session.transition", stale, "differs from the expected status");
    ck_refused(&p, "s2", "session.transition", stale,
               "the session has been active since quiet_since");
    ck_append(&p, "s3", "session.transition", stale);
    ck_packs(&p, "SELECT id, status FROM state.sessions ORDER BY id",
             "s1|completed\ns2|running\ns3|failed\n");
}
END_TEST

START_TEST(a_malformed_reason_code_is_refused_and_changes_no_row)
{
    static const char *const wrong[] = {
        "stale", "a.b", "a.b.c.d", "Run.failed.x", "run..x", "run.failed.a b", ".a.b", "a.b."};
    char data[200];
    PACKS_ENABLE(&p, "lionagi");
    ck_append(&p, "s1", "session.created", "{\"status\":\"running\"}");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(data, sizeof data, "{\"to\":\"failed\",\"reason_code\":\"%s\"}", wrong[i]);
        ck_refused(&p, "s1", "session.transition", data, "reason_code must be three");
    }
    ck_packs(&p, "SELECT status, status_reason_code FROM state.sessions", "running|\n");
    ck_packs(&p, "SELECT count(*) FROM status_transitions", "0\n");
    ck_append(&p, "s1", "session.transition",
              "{\"to\":\"failed\",\"reason_code\":\"run.failed.exit_nonzero\"}");
    ck_packs(&p,
             "SELECT s.status, s.status_reason_code, t.from_status, t.to_status, t.reason_code "
             "FROM state.sessions s JOIN status_transitions t ON t.entity_id = s.id",
             "failed|run.failed.exit_nonzero|running|failed|run.failed.exit_nonzero\n");
}
END_TEST

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
    TCase *tables = suite_case(suite, "tables", NULL, NULL);
    tcase_add_test(tables, a_team_has_the_columns_of_the_document_and_counts_its_members);
    tcase_add_test(tables, an_invalid_team_is_not_created);
    tcase_add_test(tables, an_invalid_status_is_refused_and_a_deleted_team_removes_its_messages);
    tcase_add_test(tables, the_member_count_follows_added_and_removed_members);
    tcase_add_test(tables, a_message_is_addressed_to_all_or_to_names);
    tcase_add_test(tables, a_message_needs_an_id_sender_and_content_and_its_id_counts_once);
    tcase_add_test(tables, a_message_drops_a_session_that_its_sender_did_not_know);
    tcase_add_test(tables, a_member_reads_a_message_once_and_names_are_sorted);
    tcase_add_test(tables, an_imported_team_has_the_rows_of_its_file);

    TCase *shell = suite_case(suite, "shell", packs_setup, packs_teardown);
    tcase_add_test(shell, the_sql_of_the_document_runs_in_the_stock_shell);
    tcase_add_test(shell, a_statement_examines_a_limited_number_of_names);
    tcase_add_test(shell, the_shell_reads_the_views_and_reports_no_violated_key);
    tcase_add_test(shell, a_run_is_stale_only_after_the_threshold_of_its_kind);

    TCase *guards = suite_case(suite, "guards", packs_setup, packs_teardown);
    tcase_add_test(guards, every_refusal_has_the_message_of_the_pack_and_writes_nothing);
    tcase_add_test(guards, a_message_id_in_two_teams_belongs_to_the_first_team_in_any_order);
    tcase_add_test(guards, names_with_a_comma_and_repeated_names_are_refused);
    tcase_add_test(guards, the_summary_of_a_long_message_defaults_to_its_first_200_characters);
    tcase_add_test(guards, a_stale_session_that_ended_or_became_active_is_not_ended_again);
    tcase_add_test(guards, a_malformed_reason_code_is_refused_and_changes_no_row);
    tcase_add_test(
        guards,
        no_sequence_of_accepted_transitions_leaves_a_terminal_status_without_override_and_reason);
    return suite;
}
