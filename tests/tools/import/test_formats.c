/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The importers of all kinds but the first two (test_importers.c), from the command line: an
 * import detects the kind of each log of tests/data, accounts for each of its lines, and loses no
 * value.
 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NAME.sql is the text of a database. */
static const struct log {
    const char *kind, *path, *container;
    int lines, events;
    int input_tokens, output_tokens, cached_tokens;
    const char *types; /* number of events of each type that begins with m, t or i */
} logs[] = {
    {"aider", "aider.chat.history.md", "lines", 77, 43, 14900, 1167, 500,
     "import.record 9, message.added 10, tool.called 3, tool.failed 1, tool.returned 2, "
     "turn.cancelled 1, turn.completed 4, turn.failed 1, turn.started 6"},
    {"pi", "2026-03-02_tides.jsonl", "lines", 10, 17, 725, 17, 660,
     "import.unreadable 1, message.added 4, tool.called 2, tool.failed 1, tool.returned 1, "
     "turn.completed 1, turn.started 2"},
    {"cline", "1772442846000", "directory", 3, 28, 2025, 43, 1900,
     "import.record 10, message.added 5, tool.called 3, tool.failed 1, tool.returned 2, "
     "turn.completed 2, turn.started 2"},
    {"cline", "1772443200000_ab1cd.messages.json", "document", 5, 13, 1100, 28, 400,
     "import.record 2, message.added 3, tool.called 1, tool.failed 1, turn.completed 1, "
     "turn.started 1"},
    {"copilot-cli", "events.jsonl", "lines", 22, 31, 1700, 80, 900,
     "import.record 6, import.unreadable 1, message.added 7, tool.called 3, tool.failed 2, "
     "tool.returned 1, turn.cancelled 1, turn.completed 1, turn.rolled_back 1, turn.started 2"},
    {"gemini-cli", "session-2026-03-02.jsonl", "lines", 9, 17, 1851, 21, 600,
     "import.record 3, message.added 6, tool.called 1, tool.returned 1, turn.completed 1, "
     "turn.started 1"},
    {"gemini-cli", "session-old.json", "document", 3, 7, 100, 20, 30,
     "message.added 2, tool.called 1, tool.failed 1, turn.started 1"},
    {"opencode", "export.json", "document", 4, 11, 537, 26, 400,
     "import.record 1, message.added 2, tool.called 2, tool.failed 1, tool.returned 1, "
     "turn.started 1"},
    {"opencode", "opencode.db.sql", "sqlite", 7, 11, 14, 3, 4,
     "import.record 1, message.added 4, tool.called 1, turn.started 2"},
    {"opencode", "opencode2.db.sql", "sqlite", 9, 17, 42, 6, 10,
     "import.record 3, message.added 5, tool.called 2, tool.failed 2, turn.cancelled 1, "
     "turn.started 1"},
    {"opencode", "opencode-both.db.sql", "sqlite", 9, 15, 28, 6, 8,
     "import.record 4, message.added 4, turn.completed 2, turn.started 2"},
    {"goose", "sessions.db.sql", "sqlite", 7, 10, 900, 30, 0,
     "import.record 2, message.added 3, tool.called 1, tool.failed 1, turn.started 1"},
    {"goose", "accumulated.db.sql", "sqlite", 5, 7, 1600, 50, 0, "message.added 1, turn.started 1"},
    {"goose", "old.jsonl", "lines", 3, 5, 0, 0, 0,
     "message.added 2, turn.completed 1, turn.started 1"},
    {"openai-agents", "agents.db.sql", "sqlite", 9, 12, 500, 40, 300,
     "import.record 3, message.added 3, tool.called 1, tool.returned 1, turn.completed 1, "
     "turn.started 1"},
    {"openhands", "tides", "directory", 6, 12, 800, 30, 500,
     "import.record 2, import.unreadable 1, message.added 2, tool.called 1, tool.failed 1, "
     "turn.started 1"},
    {"openhands", "trajectory.json", "document", 4, 7, 0, 0, 0,
     "import.record 1, message.added 2, tool.called 1, tool.returned 1, turn.started 1"},
    {"openhands", "responses.json", "document", 4, 9, 1100, 50, 300,
     "message.added 2, tool.called 2, tool.returned 2"},
    {"openhands", "output.jsonl", "lines", 2, 10, 900, 60, 0,
     "import.record 2, message.added 2, tool.called 2"},
    {"swe-agent", "tides-1.traj", "document", 7, 12, 1600, 96, 0,
     "import.record 2, message.added 4, tool.called 2, tool.returned 2"},
    {"mini-swe-agent", "tides.traj.json", "document", 5, 9, 700, 25, 256,
     "message.added 3, tool.called 1, tool.returned 1"},
    {"autogen", "messages.jsonl", "lines", 3, 8, 60, 9, 0,
     "message.added 3, tool.called 1, tool.failed 1, turn.started 1"},
    {"autogen", "team-state.json", "document", 1, 4, 0, 0, 0, "import.record 1, message.added 2"},
    {"autogen", "who-and-when.json", "document", 4, 6, 0, 0, 0,
     "import.record 1, message.added 3, turn.started 1"},
    {"qwen-code", "3b1c9a44-5d0e-4c27-8f61-9a2b7c3d4e5f.jsonl", "lines", 13, 25, 3900, 77, 800,
     "import.record 3, message.added 5, tool.called 3, tool.failed 2, tool.returned 1, "
     "turn.completed 1, turn.rolled_back 1, turn.started 2"},
    {"droid", "5d2e7a10-0c44-4b8e-9b77-3f1a2c4d5e6f.jsonl", "lines", 9, 16, 0, 0, 0,
     "import.record 2, message.added 5, tool.called 2, tool.failed 1, tool.returned 1, "
     "turn.completed 1, turn.started 2"},
    {"amp", "T-019cae51-7a10-7c33-9d02-4be0a1f35c70.json", "document", 7, 19, 15203, 52, 13100,
     "import.record 3, message.added 4, tool.called 2, tool.failed 2, turn.completed 1, "
     "turn.started 2"},
    {"crush", "crush.db.sql", "sqlite", 10, 24, 0, 0, 0,
     "import.record 7, message.added 4, tool.called 3, tool.failed 2, tool.returned 1, "
     "turn.completed 1, turn.failed 1, turn.started 2"},
    {"copilot-chat", "9e1d2c3b-4a5f-4e6d-8c7b-1a2b3c4d5e6f.jsonl", "lines", 11, 31, 0, 0, 0,
     "import.record 10, message.added 7, tool.called 2, tool.failed 1, tool.returned 1, "
     "turn.cancelled 1, turn.completed 2, turn.rolled_back 1, turn.started 3"},
    {"copilot-chat", "tides.json", "document", 3, 9, 0, 0, 0,
     "message.added 3, turn.completed 1, turn.failed 1, turn.started 2"},
    {"atif", "tides.json", "document", 8, 23, 4100, 60, 800,
     "import.record 2, message.added 6, tool.called 3, tool.failed 1, tool.returned 2, "
     "turn.completed 1, turn.started 2"},
    {"dsh", "session.jsonl", "lines", 18, 25, 2450, 52, 2200,
     "import.record 8, message.added 6, tool.called 1, tool.failed 1, turn.cancelled 1, "
     "turn.completed 1, turn.started 2"},
    {"cursor", "state.vscdb.sql", "sqlite", 11, 21, 0, 0, 0,
     "import.record 3, message.added 6, tool.called 2, tool.failed 1, tool.returned 1, "
     "turn.completed 2, turn.started 3"},
    {"inspect", "2026-03-02T09-14-06_tides.json", "document", 3, 20, 1340, 60, 1000,
     "import.record 3, message.added 5, tool.called 2, tool.failed 1, tool.returned 1, "
     "turn.completed 1, turn.failed 1, turn.started 2"},
    {"kimi", "5d1f7c3a-0b6e-4c1e-9a51-2f6f2c7d8e90/wire.jsonl", "lines", 21, 27, 2490, 45, 2200,
     "import.record 6, message.added 5, tool.called 3, tool.failed 1, tool.returned 1, "
     "turn.completed 1, turn.failed 1, turn.started 3"},
    {"kimi", "session_3f0c2d1e/agents/main/wire.jsonl", "lines", 25, 33, 2445, 40, 2200,
     "import.record 9, message.added 8, tool.called 2, tool.failed 1, tool.returned 1, "
     "turn.cancelled 1, turn.completed 1, turn.failed 1, turn.started 3"},
    {"inspect", "2026-03-02T09-14-06_tides.eval", "archive", 5, 22, 1340, 60, 1000,
     "import.record 5, message.added 5, tool.called 2, tool.failed 1, tool.returned 1, "
     "turn.completed 1, turn.failed 1, turn.started 2"},
    {"zed", "threads.db.sql", "sqlite", 14, 32, 1200, 60, 900,
     "import.record 2, message.added 8, tool.called 4, tool.failed 1, tool.returned 2, "
     "turn.completed 2, turn.started 4"},
    {"tau-bench", "runs.jsonl", "lines", 2, 16, 0, 0, 0,
     "message.added 6, tool.called 1, tool.returned 1, turn.completed 3, turn.started 3"},
    {"langgraph", "trajectory.jsonl", "lines", 4, 10, 0, 0, 0,
     "import.record 4, message.added 3, tool.called 1, tool.returned 1"},
    {"langgraph", "checkpoints.sqlite.sql", "sqlite", 4, 12, 70, 8, 40,
     "import.record 4, message.added 2, tool.called 1, tool.returned 1, turn.started 1"},
    {"otel", "export.otlp.jsonl", "lines", 2, 11, 900, 12, 600,
     "import.record 2, message.added 2, tool.called 1, tool.failed 1, turn.completed 1, "
     "turn.started 1"},
    {"otel", "langfuse.json", "document", 3, 6, 70, 9, 0, "import.record 2, message.added 1"},
    {"otel", "spans.json", "document", 1, 3, 245, 16, 0, "message.added 1"},
    {"otel", "spellings.otlp.jsonl", "lines", 2, 13, 157, 18, 60,
     "import.record 2, message.added 7"},
    {"otel-logs", "export.otlp.jsonl", "lines", 3, 24, 10610, 219, 10000,
     "import.record 5, message.added 4, tool.called 3, tool.failed 1, tool.returned 2"},
};
enum { LOGS = sizeof logs / sizeof *logs };

#define DATA(path) ANNAL_SOURCE "/tests/data/" path

static bool is_sql(const struct log *log)
{
    return strcmp(log->path + strlen(log->path) - 4, ".sql") == 0;
}

static void make_database(const char *path, const char *sql_path)
{
    sqlite3 *db = NULL;
    char *sql = file_read(sql_path, NULL), *why = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", sql_path, why);
    sqlite3_close(db);
    free(sql);
}

/* Find the log's path; creates the log if it is a database. */
static void find_log(const struct log *log, char path[512])
{
    snprintf(path, 512, "%s/tests/data/%s/%s", ANNAL_SOURCE, log->kind, log->path);
    if (is_sql(log)) {
        char name[64], sql[512];
        snprintf(name, sizeof name, "%.*s", (int)strlen(log->path) - 4, log->path);
        strcpy(sql, path);
        snprintf(path, 512, "%s", tmpdir_path(&cli.dir, name));
        make_database(path, sql);
    }
}

static void put_file(const char *name, const char *bytes, size_t len)
{
    FILE *file = fopen(tmpdir_path(&cli.dir, name), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

/* "name":number on a line of --json. */
static void assert_printed(const char *name, int number)
{
    char text[80];
    snprintf(text, sizeof text, "\"%s\":%d,", name, number);
    ck_assert_msg(strstr(cli.out, text) != NULL, "no %s in %s", text, cli.out);
}

/* ---- Every kind ---- */

START_TEST(a_log_of_each_kind_is_detected_and_each_of_its_lines_accounted_for)
{
    const struct log *log = &logs[_i];
    char path[512], kind[80];
    find_log(log, path);
    DONE(&cli, "import", "--detect", "--json", path);
    snprintf(kind, sizeof kind, "\"kind\":\"%s\",\"container\":\"%s\"", log->kind, log->container);
    ck_assert_msg(strstr(cli.out, kind) != NULL, "no %s in %s", kind, cli.out);
    DONE(&cli, "import", "auto", path, "--json");
    ck_assert_msg(strstr(cli.out, kind) != NULL, "no %s in %s", kind, cli.out);
    assert_printed("lines", log->lines);
    assert_printed("imported", log->lines);
    assert_printed("skipped", 0);
    assert_printed("events", log->events);
    CLI(&cli, NULL, "import", log->kind, path, "--json");
    assert_printed("events", 0);
}
END_TEST

START_TEST(an_import_of_each_kind_gives_the_types_and_tokens_of_its_log)
{
    const struct log *log = &logs[_i];
    char path[512], tokens[80];
    find_log(log, path);
    CLI(&cli, NULL, "import", log->kind, path);
    ck_assert_int_eq(cli.exit_status, 0);
    CLI(&cli, NULL, "sql", "--format", "csv",
        "SELECT group_concat(type || ' ' || n, ', ') AS types FROM (SELECT type, count(*) AS n "
        "FROM event_index WHERE type GLOB '[mti]*' GROUP BY type ORDER BY type)");
    ck_assert_msg(strstr(cli.out, log->types) != NULL, "%s: %s", log->path, cli.out);
    CLI(&cli, NULL, "sql", "--format", "csv",
        "SELECT CAST(total(input_tokens) AS INTEGER), CAST(total(output_tokens) AS INTEGER), "
        "CAST(total(cached_input_tokens) AS INTEGER) FROM sessions");
    snprintf(tokens, sizeof tokens, "%d,%d,%d", log->input_tokens, log->output_tokens,
             log->cached_tokens);
    ck_assert_msg(strstr(cli.out, tokens) != NULL, "%s: no %s in %s", log->path, tokens, cli.out);
    DONE(&cli, "verify");
}
END_TEST

/* Assert that the events contain each string and number of text, byte for byte. */
static void assert_values_found(const char *text, const char *events, const char *path)
{
    for (const char *at = text; *at != '\0';) {
        const char *begin = at;
        if (*at == '"') {
            for (at++; *at != '"' && *at != '\0'; at++)
                at += *at == '\\' && at[1] != '\0';
            at += *at == '"';
        } else if (*at == '-' || isdigit((unsigned char)*at)) {
            while (*at != '\0' && strchr("+-.eE0123456789", *at) != NULL)
                at++;
        } else {
            at++;
            continue;
        }
        char token[4096];
        ck_assert_uint_lt((size_t)(at - begin), sizeof token);
        snprintf(token, sizeof token, "%.*s", (int)(at - begin), begin);
        ck_assert_msg(at[strspn(at, " ")] == ':' || strstr(events, token) != NULL,
                      "%s: %s is in no event", path, token);
    }
}

START_TEST(no_value_of_a_log_is_lost)
{
    const struct log *log = &logs[_i];
    char path[512];
    if (is_sql(log) || strcmp(log->container, "directory") == 0)
        return; /* rows are other text; no_importer_loses_a_row_of_a_database */
    find_log(log, path);
    CLI(&cli, NULL, "import", log->kind, path);
    CLI(&cli, NULL, "query", "--raw");
    char *text = file_read(path, NULL);
    assert_values_found(text, cli.out, log->path);
    free(text);
}
END_TEST

START_TEST(usage_of_the_responses_of_a_branch_is_counted_once)
{
    DONE(&cli, "import", "lionagi", ANNAL_SOURCE "/tests/data/lionagi/branch.json");
    CLI(&cli, NULL, "sql", "--format", "csv",
        "SELECT CAST(total(input_tokens) AS INTEGER), CAST(total(output_tokens) AS INTEGER), "
        "CAST(total(cached_input_tokens) AS INTEGER) FROM sessions");
    ck_assert_ptr_nonnull(strstr(cli.out, "\n1000,70,60"));
    CLI(&cli, NULL, "import", "lionagi", ANNAL_SOURCE "/tests/data/lionagi/branch.json", "--json");
    assert_printed("events", 0);
}
END_TEST

START_TEST(a_session_of_goose_without_a_ledger_takes_the_sums_of_its_row)
{
    sqlite3 *db = NULL;
    const char *path = tmpdir_path(&cli.dir, "sessions.db");
    make_database(path, DATA("goose/accumulated.db.sql"));
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "DROP TABLE usage_ledger", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    DONE(&cli, "import", "goose", path);
    CLI(&cli, NULL, "sql", "--format", "csv",
        "SELECT id, input_tokens, output_tokens FROM sessions ORDER BY id");
    ck_assert_ptr_nonnull(strstr(cli.out, "20260302_1,700,20\r\n20260302_2,900,30\r\n"));
}
END_TEST

START_TEST(tokens_that_a_log_does_not_give_are_unknown)
{
    static const char log[] =
        "{\"info\":{\"model_stats\":{\"instance_cost\":0.25}},\"trajectory_format\":"
        "\"mini-swe-agent-1\",\"messages\":[{\"role\":\"user\",\"content\":\"go\"}]}";
    sqlite3 *db = NULL;
    const char *path = tmpdir_path(&cli.dir, "ledger.db");
    file_write(tmpdir_path(&cli.dir, "cost.traj.json"), log, sizeof log - 1);
    DONE(&cli, "import", "mini-swe-agent", tmpdir_path(&cli.dir, "cost.traj.json"));
    make_database(path, DATA("goose/sessions.db.sql"));
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(db, "UPDATE usage_ledger SET output_tokens = NULL", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    DONE(&cli, "import", "goose", path);
    CLI(&cli, NULL, "sql", "--format", "csv",
        "SELECT agent_id, sum(input_tokens), sum(output_tokens), sum(cost_microusd) FROM sessions"
        " WHERE input_tokens IS NOT NULL OR cost_microusd IS NOT NULL GROUP BY 1 ORDER BY 1");
    ck_assert_ptr_nonnull(strstr(cli.out, "goose,900,,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "mini-swe-agent,,,250000"));
}
END_TEST

/* ---- When a session began ---- */

static const struct {
    const char *kind, *path, *created_at;
} begins[] = {
    {"openhands", "trajectory.json", "2026-03-02T09:14:06.100000Z"},
    {"openhands", "tides", "2026-03-02T09:14:06.390505Z"},
    {"mini-swe-agent", "tides.traj.json", "2026-03-02T09:14:10.000000Z"},
    {"autogen", "array.json", "2026-03-02T09:14:06.250000Z"},
    {"otel", "langfuse.json", "2026-03-02T09:14:06.000000Z"},
    {"otel", "spans.json", "2026-03-02T09:14:06.000000Z"},
    {"otel", "parent-last.json", "2026-03-02T09:14:05.000000Z"},
};

START_TEST(a_session_is_as_old_as_the_first_time_in_its_log)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/data/%s/%s", ANNAL_SOURCE, begins[_i].kind,
             begins[_i].path);
    CLI(&cli, NULL, "import", begins[_i].kind, path);
    CLI(&cli, NULL, "sql", "--format", "csv", "SELECT created_at FROM sessions");
    ck_assert_msg(strstr(cli.out, begins[_i].created_at) != NULL, "%s: %s", path, cli.out);
    ck_assert_msg(strstr(cli.out, "1970") == NULL, "%s: %s", path, cli.out);
    CLI(&cli, NULL, "import", begins[_i].kind, path, "--json");
    assert_printed("events", 0);
}
END_TEST

/* ---- Containers ---- */

static void count_events(const char *kind, const char *path, int lines, int events)
{
    DONE(&cli, "import", kind, path, "--json");
    assert_printed("lines", lines);
    assert_printed("events", events);
}

START_TEST(a_document_that_grew_adds_what_is_new)
{
    static const char first[] = "{\"sessionId\":\"s\",\"projectHash\":\"p\",\n\"messages\":[\n"
                                "{\"id\":\"m1\",\"type\":\"user\",\"content\":\"a\"}";
    static const char more[] = ",\n{\"id\":\"m2\",\"type\":\"gemini\",\"content\":\"b\","
                               "\"tokens\":{\"input\":5,\"output\":2,\"cached\":0}}";
    char text[512];
    const char *path = tmpdir_path(&cli.dir, "session-1.json");
    snprintf(text, sizeof text, "%s]}\n", first);
    put_file("session-1.json", text, strlen(text));
    count_events("gemini-cli", path, 2, 3);
    snprintf(text, sizeof text, "%s%s]}\n", first, more);
    put_file("session-1.json", text, strlen(text));
    count_events("gemini-cli", path, 3, 3); /* the end of the turn is the third */
    count_events("gemini-cli", path, 3, 0);
}
END_TEST

START_TEST(a_document_cut_short_gives_its_whole_messages_and_keeps_the_rest)
{
    char *text = file_read(DATA("gemini-cli/session-old.json"), NULL);
    size_t len = strlen(text);
    for (size_t cut = 1; cut < len; cut += 61) {
        put_file("session-cut.json", text, cut);
        CLI(&cli, NULL, "import", "gemini-cli", tmpdir_path(&cli.dir, "session-cut.json"));
        /* 1: nothing is left of it but lines that cannot be read */
        ck_assert_msg(cli.exit_status <= (cut > 300 ? 0 : 1), "cut at %zu: %s", cut, cli.err);
        if (cut > 300) {
            CLI(&cli, NULL, "query", "--type", "message.added");
            ck_assert_ptr_nonnull(strstr(cli.out, "add a line"));
        }
        cli_teardown();
        cli_setup();
    }
    free(text);
}
END_TEST

START_TEST(an_import_waits_for_a_locked_database_and_then_names_it)
{
    sqlite3 *db = NULL;
    const char *path = tmpdir_path(&cli.dir, "sessions.db");
    make_database(path, DATA("goose/sessions.db.sql"));
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE; DELETE FROM messages", NULL, NULL, NULL),
                     SQLITE_OK);
    CLI(&cli, NULL, "import", "goose",
        path); /* a writer that has not committed does not block it */
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_int_eq(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}
END_TEST

START_TEST(no_importer_loses_a_row_of_a_database)
{
    const char *path = tmpdir_path(&cli.dir, "opencode.db");
    sqlite3 *db = NULL;
    make_database(path, DATA("opencode/opencode.db.sql"));
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(db,
                     "CREATE TABLE notes (a, b); INSERT INTO notes VALUES (9007199254740993, "
                     "X'00FF'), (1.5e300, NULL), ('only here', CAST(X'FF' AS TEXT))",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    CLI(&cli, NULL, "import", "opencode", path);
    CLI(&cli, NULL, "query");
    static const char *const values[] = {"9007199254740993", "{\"$base64\":\"AP8=\"}",
                                         "{\"$base64\":\"/w==\"}", "only here", "worktree"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        ck_assert_msg(strstr(cli.out, values[i]) != NULL, "no %s", values[i]);
}
END_TEST

START_TEST(pickled_values_are_kept_and_never_loaded)
{
    const char *path = tmpdir_path(&cli.dir, "checkpoints.sqlite");
    make_database(path, DATA("langgraph/checkpoints.sqlite.sql"));
    CLI(&cli, NULL, "import", "langgraph", path);
    CLI(&cli, NULL, "query");
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"$base64\":\"gASVAwAAAAAAAABLAS4=\"}"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"id\":\"h1\",\"role\":\"user\""));
}
END_TEST

/* ---- Mapping ---- */

START_TEST(a_mapping_gives_the_paths_of_the_parts_of_an_event)
{
    static const char text[] =
        "{\"run\":\"r1\",\"at\":1772442846.5,\"kind\":\"build.begun\",\"load\":{\"a\":1e400}}\n"
        "{\"run\":\"r1\",\"at\":\"2026-03-02T09:14:07Z\",\"kind\":\"Build Done\",\"load\":2}\n";
    put_file("x.jsonl", text, strlen(text));
    DONE(&cli, "import", "jsonl", "--map", "session=$.run", "--map", "ts=$.at", "--map",
         "type=$.kind", "--map", "data=$.load", tmpdir_path(&cli.dir, "x.jsonl"));
    CLI(&cli, NULL, "query", "r1");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"seq\":1,\"timestamp\":\"2026-03-02T09:14:06.500000Z\","
                                          "\"type\":\"build.begun\""));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"data\":{\"a\":1e400}"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"type\":\"import.record\""));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"kind\":\"Build Done\""));
    CLI(&cli, NULL, "import", "jsonl", "--map", "sesion=$.run", tmpdir_path(&cli.dir, "x.jsonl"));
    cli_assert_refused(&cli, 2,
                       "--map sesion=$.run: --map of jsonl names one of session, ts, type");
    CLI(&cli, NULL, "import", "jsonl", "--map", "ts=at", tmpdir_path(&cli.dir, "x.jsonl"));
    cli_assert_refused(&cli, 2, "write ts=$.at for the member at");
    CLI(&cli, NULL, "import", "jsonl", "--map", "ts=$.[", tmpdir_path(&cli.dir, "x.jsonl"));
    cli_assert_refused(&cli, 2, "--map ts=$.[: the value must be a JSON path");
    CLI(&cli, NULL, "import", "jsonl", "--map", "session=all", "--map", "ts=$.a[0].\"b c\"[#-1]",
        tmpdir_path(&cli.dir, "x.jsonl"));
    ck_assert_int_eq(cli.exit_status, 0);
    CLI(&cli, NULL, "import", "jsonl", "--map", "session", tmpdir_path(&cli.dir, "x.jsonl"));
    cli_assert_refused(&cli, 2, "needs NAME=VALUE");
}
END_TEST

START_TEST(an_import_of_the_output_of_query_gives_the_same_events)
{
    CLI(&cli,
        "{\"type\":\"a\",\"id\":\"x\",\"ts\":\"2026-01-01T00:00:00Z\",\"data\":{\"n\":1.50}}\n",
        "append", "s1");
    CLI(&cli, NULL, "query");
    char *printed = strdup(cli.out);
    put_file("events.jsonl", cli.out, cli.out_len);
    char *log = strdup(tmpdir_path(&cli.dir, "events.jsonl"));
    CLI(&cli, NULL, "delete", "s1");
    DONE(&cli, "import", "auto", log, "--again");
    CLI(&cli, NULL, "query");
    ck_assert_str_eq(cli.out, printed);
    free(printed);
    free(log);
}
END_TEST

START_TEST(a_log_of_unknown_kind_is_refused_and_nothing_is_written)
{
    put_file("x.json", "{\"a\":1}", 7);
    CLI(&cli, NULL, "import", "--detect", tmpdir_path(&cli.dir, "x.json"));
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.out, "unknown"));
    CLI(&cli, NULL, "import", "auto", tmpdir_path(&cli.dir, "x.json"));
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "is of an unknown kind"));
    ck_assert_int_eq(cli_journals(&cli), 0);
    put_file("y.jsonl", "{\"a\":1}\n{\"a\":2}\n", 16);
    CLI(&cli, NULL, "import", "--detect", tmpdir_path(&cli.dir, "y.jsonl"));
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "'annal import jsonl --map ...' reads"));
    CLI(&cli, NULL, "import", "auto", tmpdir_path(&cli.dir, "y.jsonl"));
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "'annal import jsonl --map ...' reads"));
    ck_assert_int_eq(cli_journals(&cli), 0);
    CLI(&cli, NULL, "import", "nonsense", tmpdir_path(&cli.dir, "x.json"));
    cli_assert_refused(&cli, 2, "tau-bench, zed, auto, or a file NAME.sql");
}
END_TEST

START_TEST(the_title_of_a_trace_is_its_first_question_or_its_name)
{
    CLI(&cli, NULL, "import", "otel", ANNAL_SOURCE "/tests/data/otel");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "sql", "SELECT id, title FROM sessions WHERE id LIKE 't%' ORDER BY id",
        "--format", "csv");
    ck_assert_str_eq(cli.out, "id,title\r\ntides-1,When is high water?\r\ntides-2,Agent.run\r\n");
    CLI(&cli, NULL, "sql", "SELECT id FROM sessions WHERE id IN ('spans', 'parent-last')",
        "--json");
    ck_assert_str_eq(cli.out, "");
}
END_TEST

START_TEST(a_tool_of_opencode_whose_status_is_unknown_keeps_its_output)
{
    static const char log[] =
        "{\"info\":{\"id\":\"ses_1\"},\"messages\":[{\"info\":{\"id\":\"m1\",\"role\":"
        "\"assistant\"},\"parts\":[{\"type\":\"tool\",\"tool\":\"bash\",\"callID\":\"c1\","
        "\"state\":{\"status\":\"stopped\",\"output\":\"half\"}},{\"type\":\"tool\",\"tool\":"
        "\"bash\",\"callID\":\"c2\",\"state\":{\"output\":\"none\",\"error\":\"odd\"}}]}]}";
    const char *path = tmpdir_path(&cli.dir, "export.json");
    file_write(path, log, sizeof log - 1);
    DONE(&cli, "import", "opencode", path);
    DONE(&cli, "sql", "--format", "csv",
         "SELECT data->>'$.extra.state.output', data->>'$.extra.state.error' FROM events"
         " WHERE type = 'tool.called' ORDER BY seq");
    ck_assert_ptr_nonnull(strstr(cli.out, "\r\nhalf,\r\nnone,odd\r\n"));
}
END_TEST

START_TEST(two_runs_of_tau_bench_stay_apart_if_one_has_no_task)
{
    static const char log[] = "{\"trial\":0,\"reward\":1.0,\"traj\":[]}\n"
                              "{\"task_id\":1,\"trial\":0,\"reward\":0.5,\"traj\":[]}\n";
    const char *path = tmpdir_path(&cli.dir, "runs.jsonl");
    file_write(path, log, sizeof log - 1);
    DONE(&cli, "import", "tau-bench", path);
    DONE(&cli, "sql", "--format", "csv", "SELECT id FROM sessions ORDER BY id");
    ck_assert_str_eq(cli.out, "id\r\nruns-line-1-trial-0\r\nruns-task-1-trial-0\r\n");
}
END_TEST

START_TEST(a_block_of_goose_without_a_type_stays_in_its_message)
{
    static const char log[] =
        "{\"working_dir\":\"/\"}\n{\"id\":\"m1\",\"role\":\"user\",\"created\":"
        "1772442846,\"content\":[{\"text\":\"When?\"}]}\n";
    const char *path = tmpdir_path(&cli.dir, "old.jsonl");
    file_write(path, log, sizeof log - 1);
    DONE(&cli, "import", "goose", path);
    DONE(&cli, "sql", "--format", "csv",
         "SELECT data->>'$.content[0].text' AS text FROM events WHERE type = 'message.added'");
    ck_assert_str_eq(cli.out, "text\r\nWhen?\r\n");
}
END_TEST

Suite *suite_formats(void)
{
    Suite *suite = suite_create("formats");
    TCase *tc = suite_case(suite, "formats", cli_setup, cli_teardown);
    tcase_add_loop_test(tc, a_log_of_each_kind_is_detected_and_each_of_its_lines_accounted_for, 0,
                        LOGS);
    tcase_add_loop_test(tc, an_import_of_each_kind_gives_the_types_and_tokens_of_its_log, 0, LOGS);
    tcase_add_loop_test(tc, no_value_of_a_log_is_lost, 0, LOGS);
    tcase_add_test(tc, the_title_of_a_trace_is_its_first_question_or_its_name);
    tcase_add_test(tc, usage_of_the_responses_of_a_branch_is_counted_once);
    tcase_add_test(tc, a_session_of_goose_without_a_ledger_takes_the_sums_of_its_row);
    tcase_add_test(tc, tokens_that_a_log_does_not_give_are_unknown);
    tcase_add_loop_test(tc, a_session_is_as_old_as_the_first_time_in_its_log, 0,
                        sizeof begins / sizeof *begins);
    tcase_add_test(tc, a_document_that_grew_adds_what_is_new);
    tcase_add_test(tc, a_document_cut_short_gives_its_whole_messages_and_keeps_the_rest);
    tcase_add_test(tc, an_import_waits_for_a_locked_database_and_then_names_it);
    tcase_add_test(tc, no_importer_loses_a_row_of_a_database);
    tcase_add_test(tc, pickled_values_are_kept_and_never_loaded);
    tcase_add_test(tc, a_mapping_gives_the_paths_of_the_parts_of_an_event);
    tcase_add_test(tc, an_import_of_the_output_of_query_gives_the_same_events);
    tcase_add_test(tc, a_log_of_unknown_kind_is_refused_and_nothing_is_written);
    tcase_add_test(tc, a_tool_of_opencode_whose_status_is_unknown_keeps_its_output);
    tcase_add_test(tc, two_runs_of_tau_bench_stay_apart_if_one_has_no_task);
    tcase_add_test(tc, a_block_of_goose_without_a_type_stays_in_its_message);
    return suite;
}
