/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/state.h"
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
    tcase_add_test(shell, the_sql_of_the_document_runs_in_the_stock_shell);
    tcase_add_test(shell, a_statement_examines_a_limited_number_of_names);
    tcase_add_test(shell, the_shell_reads_the_views_and_reports_no_violated_key);
    tcase_add_test(shell, a_run_is_stale_only_after_the_threshold_of_its_kind);

    TCase *guards = suite_case(suite, "guards", packs_setup, packs_teardown);
    tcase_add_test(
        guards,
        no_sequence_of_accepted_transitions_leaves_a_terminal_status_without_override_and_reason);
    return suite;
}
