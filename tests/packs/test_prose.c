/* SPDX-License-Identifier: Apache-2.0 */
/* OpenProse runs: the effect of their events, and writes of the stock shell to their databases. */
#include "index/sys/state.h"
#include "tests/packs/fixture.h"
#include "tests/packs/openprose_sql.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN     "20260116-143052-a7b3c9"
#define SESSION "prose_" RUN
#define FOLDER  ".prose/runs/" RUN
#define DB      "prose/runs/" RUN "/state.db"

/* ---- Short forms ---- */

/* Without a time limit: a query waits ten seconds and then returns the existing rows. */
static void catch_up(const char *session)
{
    const annal_catch_up_options options = {.packs = true, .timeout_ms = ANNAL_NO_TIMEOUT};
    ck_ok(annal_index_catch_up(p.index, annal_slice_of(session), &options, err));
}

static char *rows(const char *select)
{
    struct text text = {0};
    const annal_sql_options options = {.session = ANNAL_SLICE(SESSION)};
    text_add(&text, "", 0);
    ck_ok(annal_index_sql(p.index, annal_slice_of(select), &options, text_row, &text, err));
    return text.ptr;
}

#define ck_rows(p, select, expected)                                                               \
    do {                                                                                           \
        char *got_ = rows(select);                                                                 \
        ck_assert_str_eq(got_, expected);                                                          \
        free(got_);                                                                                \
    } while (0)

static void ck_shell(const char *sql, const char *expected)
{
    char *got = packs_shell(&p, DB, sql);
    ck_assert_msg(strcmp(got, expected) == 0, "%s: %s", sql, got);
    free(got);
}

static int collect(void *arg, const annal_pack_finding *finding)
{
    text_add(arg, finding->remark ? "remark: " : "finding: ", finding->remark ? 8 : 9);
    text_add(arg, finding->what, strlen(finding->what));
    text_add(arg, "\n", 1);
    return 0;
}

/* Dump every row of the tables of the run, in a fixed order. */
static char *dump(const char *path)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    sqlite3 *db = NULL;
    sqlite3_stmt *tables = NULL, *row = NULL;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(
            db,
            "SELECT 'SELECT ''' || name || ''' || ''|'' || ' || (SELECT group_concat('quote(\"' || "
            "c.name || '\")', '||''|''||') FROM pragma_table_info(t.name) AS c) || ' FROM \"' || "
            "name || '\" ORDER BY 1' FROM sqlite_schema AS t WHERE type = 'table' AND name NOT "
            "GLOB '_*' AND name NOT GLOB 'sqlite_*' UNION ALL SELECT 'SELECT group_concat(type || "
            "name || sql, char(10)) FROM (SELECT * FROM sqlite_schema WHERE name NOT GLOB ''_*'' "
            "AND name NOT GLOB ''sqlite_*'' ORDER BY type, name)' ORDER BY 1",
            -1, &tables, NULL),
        SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        ck_assert_int_eq(
            sqlite3_prepare_v2(db, (const char *)sqlite3_column_text(tables, 0), -1, &row, NULL),
            SQLITE_OK);
        while (sqlite3_step(row) == SQLITE_ROW)
            fprintf(out, "%s\n", (const char *)sqlite3_column_text(row, 0));
        sqlite3_finalize(row);
    }
    sqlite3_finalize(tables);
    sqlite3_close(db);
    fclose(out);
    return text;
}

/* Assert that the database equals a rebuild from the journal. */
static void ck_rebuild_of(const char *session, const char *path)
{
    catch_up(session);
    char *live = dump(path);
    ck_assert_int_eq(unlink(path), 0);
    catch_up(session);
    char *anew = dump(path);
    ck_assert_str_eq(live, anew);
    free(live);
    free(anew);
}

static void ck_rebuild(void)
{
    ck_rebuild_of(SESSION, tmpdir_path(&p.dir, "store/" DB));
}

static void run_init(void)
{
    ck_append(&p, SESSION, "run.started", "{\"id\":\"" RUN "\",\"program_path\":\"p.prose\"}");
    catch_up(SESSION);
}

static void run_setup(void)
{
    packs_setup();
    PACKS_ENABLE(&p, "prose");
    run_init();
}

#define ck_run_refused(p, type, data, text) ck_refused(p, SESSION, type, data, text)
#define ck_run(p, type, data)               ck_append(p, SESSION, type, data)

/* ---- The document's SQL ---- */

static char *said_by(const char *command)
{
    char bytes[4096];
    struct text text = {0};
    text_add(&text, "", 0);
    FILE *shell = popen(command, "r");
    ck_assert_ptr_nonnull(shell);
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, shell)) > 0;)
        text_add(&text, bytes, got);
    ck_assert_msg(pclose(shell) == 0, "%s: %s", command, text.ptr);
    /* Times differ by the second in which they were written. */
    for (char *c = text.ptr; strlen(c) >= 19; c++)
        if (c[4] == '-' && c[7] == '-' && c[10] == ' ' && c[13] == ':' && c[16] == ':')
            memcpy(c, "yyyy-mm-dd hh:mm:ss", 19);
    return text.ptr;
}

static void run_in(const char *folder, const char *line, struct text *out)
{
    char command[2000];
    const char *script = tmpdir_path(&p.dir, "line.sh");
    file_write(script, line, strlen(line));
    snprintf(command, sizeof command, "cd '%s' && sh -e '%s' 2>&1", folder, script);
    char *said = said_by(command);
    text_add(out, said, strlen(said));
    text_add(out, "\n", 1);
    free(said);
}

static void run_sql_in(const char *folder, const char *sql, struct text *out)
{
    char line[1000];
    const char *script = tmpdir_path(&p.dir, "statement.sql");
    file_write(script, sql, strlen(sql));
    snprintf(line, sizeof line, "sqlite3 -bail " FOLDER "/state.db < '%s'", script);
    run_in(folder, line, out);
}

/*
 * Two folders: ours holds a run of a store whose pack is enabled there, theirs the document's own
 * tables with its two mends: bindings has its key as a unique index, execution the column that the
 * loop example sets.
 */
static void documents_init(const char **ours, const char **theirs)
{
    char at[600];
    struct text said = {0};
    PACKS_ENABLE(&p, "core");
    *ours = tmpdir_path(&p.dir, "ours");
    *theirs = tmpdir_path(&p.dir, "theirs");
    snprintf(at, sizeof at, "mkdir -p '%s' '%s/" FOLDER "'", *ours, *theirs);
    ck_assert_int_eq(system(at), 0);
    snprintf(at, sizeof at, "%s/.prose", *ours);
    ck_ok(annal_pack_enable(p.store, "prose", at, err));
    run_init();
    run_sql_in(*theirs,
               "CREATE TABLE bindings (name TEXT, execution_id INTEGER, kind TEXT, value TEXT,"
               " source_statement TEXT, created_at TEXT DEFAULT (datetime('now')),"
               " updated_at TEXT DEFAULT (datetime('now')), attachment_path TEXT);"
               "CREATE UNIQUE INDEX b ON bindings(name, IFNULL(execution_id, -1));"
               "CREATE TABLE execution (id INTEGER PRIMARY KEY AUTOINCREMENT,"
               " statement_index INTEGER, statement_text TEXT, status TEXT, started_at TEXT,"
               " completed_at TEXT, error_message TEXT, parent_id INTEGER REFERENCES execution(id),"
               " metadata TEXT, updated_at TEXT);",
               &said);
    free(said.ptr);
}

static void ck_same_tables(const char *ours, const char *theirs)
{
    static const char *const tables[] = {
        "run", "execution", "bindings", "agents", "agent_segments", "imports", "x_metrics"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char sql[100];
        struct text a = {0}, b = {0};
        if (strcmp(tables[i], "run") == 0) /* ours has the run's own row */
            continue;
        snprintf(sql, sizeof sql, "SELECT * FROM %s", tables[i]);
        run_sql_in(ours, sql, &a);
        run_sql_in(theirs, sql, &b);
        ck_assert_str_eq(a.ptr, b.ptr);
        free(a.ptr);
        free(b.ptr);
    }
}

START_TEST(the_sql_of_the_document_gives_the_rows_of_the_documents_tables)
{
    const char *ours, *theirs;
    documents_init(&ours, &theirs);
    for (size_t i = 0; i < sizeof openprose / sizeof *openprose; i++) {
        const struct printed *printed = &openprose[i];
        struct text a = {0}, b = {0};
        if (printed->sql != NULL) {
            run_sql_in(ours, printed->sql, &a);
            run_sql_in(theirs, printed->sql, &b);
        } else {
            run_in(ours, printed->line, &a);
            run_in(theirs, printed->line, &b);
        }
        ck_assert_msg(strcmp(a.ptr, b.ptr) == 0, "%s: %s and not %s", printed->id, a.ptr, b.ptr);
        free(a.ptr);
        free(b.ptr);
    }
    catch_up(SESSION);
    ck_same_tables(ours, theirs);
    ck_rebuild_of(SESSION, tmpdir_path(&p.dir, "ours/" FOLDER "/state.db"));
    ck_same_tables(ours, theirs);
}
END_TEST

/* The document itself, if the environment names it: its blocks, unchanged and with comments. */
static char *read_document(void)
{
    const char *data = getenv("ANNAL_TEST_DATA");
    char command[600];
    snprintf(command, sizeof command, "cat '%s'/../seeds/002_*.txt 2>/dev/null || true",
             data == NULL ? "../shared/data" : data);
    FILE *file = popen(command, "r");
    struct text text = {0};
    char bytes[4096];
    text_add(&text, "", 0);
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
        text_add(&text, bytes, got);
    pclose(file);
    return text.ptr;
}

/* Find the next line for a shell in [*at, end): from `sqlite3` to its closing quote. */
static char *next_line(char **at, const char *end)
{
    char *begin = strstr(*at, "sqlite3 ");
    if (begin == NULL || begin >= end)
        return NULL;
    bool quoted = false;
    char *c = begin;
    for (; c < end && (quoted || *c != '\n'); c++)
        if (*c == '"' && c[-1] != '\\')
            quoted = !quoted;
    *at = c;
    return strndup(begin, (size_t)(c - begin));
}

static void run_block(const char *folder, char *begin, char *end, struct text *out)
{
    if (strncmp(begin, "```sql\n", 7) == 0) {
        char *sql = strndup(begin + 7, (size_t)(end - begin - 7));
        run_sql_in(folder, sql, out);
        free(sql);
        return;
    }
    char *line;
    while ((line = next_line(&begin, end)) != NULL) {
        if (strstr(line, "EXISTS...") == NULL) /* a placeholder, no SQL */
            run_in(folder, line, out);
        free(line);
    }
}

START_TEST(every_block_of_the_document_runs_unchanged)
{
    const char *ours, *theirs;
    char *document = read_document();
    unsigned blocks = 0;
    documents_init(&ours, &theirs);
    for (char *at = document; (at = strstr(at, "\n```")) != NULL; at += 4) {
        char *end = strstr(at + 4, "\n```");
        ck_assert_ptr_nonnull(end);
        struct text a = {0}, b = {0};
        text_add(&a, "", 0);
        text_add(&b, "", 0);
        run_block(ours, at + 1, end, &a);
        run_block(theirs, at + 1, end, &b);
        ck_assert_str_eq(a.ptr, b.ptr);
        blocks += a.len > 0;
        free(a.ptr);
        free(b.ptr);
        at = end;
    }
    if (blocks > 0) {
        ck_assert_uint_ge(blocks, 12);
        catch_up(SESSION);
        ck_same_tables(ours, theirs);
        ck_rebuild_of(SESSION, tmpdir_path(&p.dir, "ours/" FOLDER "/state.db"));
    }
    free(document);
}
END_TEST

/* ---- Acceptance ---- */

static const char RESOLVE[] =
    "WITH RECURSIVE scope_chain AS (SELECT id, parent_id FROM execution WHERE id = %d UNION ALL "
    "SELECT e.id, e.parent_id FROM execution e JOIN scope_chain s ON e.id = s.parent_id) "
    "SELECT b.value FROM bindings b LEFT JOIN scope_chain s ON b.execution_id = s.id "
    "WHERE b.name = '%s' AND (b.execution_id IN (SELECT id FROM scope_chain) "
    "OR b.execution_id IS NULL) ORDER BY CASE WHEN b.execution_id IS NULL THEN 1 ELSE 0 END, "
    "s.id DESC NULLS LAST LIMIT 1;";

static void ck_resolves(int from, const char *name, const char *value)
{
    char sql[1000], expected[100];
    snprintf(sql, sizeof sql, RESOLVE, from, name);
    snprintf(expected, sizeof expected, "%s%s", value, value[0] == '\0' ? "" : "\n");
    ck_shell(sql, expected);
}

START_TEST(frames_shadow_each_other_and_ids_are_never_reused)
{
    ck_run(&p, "execution.started", "{\"statement_text\":\"do process(data, 5)\"}");
    ck_run(&p, "binding.set", "{\"name\":\"parts\",\"execution_id\":1,\"value\":\"outer\"}");
    ck_run(&p, "execution.started", "{\"statement_text\":\"do process(part, 4)\",\"parent_id\":1}");
    ck_run(&p, "binding.set", "{\"name\":\"parts\",\"execution_id\":2,\"value\":\"inner\"}");
    ck_run(&p, "binding.set", "{\"name\":\"parts\",\"value\":\"root\"}");
    catch_up(SESSION);
    ck_resolves(2, "parts", "inner");
    ck_resolves(1, "parts", "outer");
    ck_resolves(0, "parts", "root");
    ck_run(&p, "binding.set", "{\"name\":\"only\",\"value\":\"root only\"}");
    catch_up(SESSION);
    ck_resolves(2, "only", "root only");
    ck_resolves(2, "nothing", "");
    ck_shell("DELETE FROM execution WHERE id = 2", "");
    ck_run_refused(&p, "execution.started", "{\"execution_id\":2,\"statement_text\":\"again\"}",
                   "not the next");
    ck_run(&p, "execution.started", "{\"statement_text\":\"third\"}");
    ck_rows(&p, "SELECT id FROM execution", "1\n3\n");
    ck_run_refused(&p, "binding.set", "{\"name\":\"x\",\"execution_id\":0,\"value\":\"1\"}",
                   "the execution is unknown");
    ck_rebuild();
}
END_TEST

static void start_chain(int from, int to, const char *rest)
{
    for (int i = from; i <= to; i++) {
        char data[200];
        snprintf(data, sizeof data, "{\"statement_text\":\"f\",\"parent_id\":%d%s}", i - 1, rest);
        ck_run(&p, "execution.started", data);
    }
}

START_TEST(blocks_nest_100_deep_and_no_deeper_unless_allowed)
{
    ck_run(&p, "execution.started", "{\"statement_text\":\"f\",\"max_depth\":50}");
    start_chain(2, 50, ",\"max_depth\":50");
    ck_run_refused(&p, "execution.started",
                   "{\"statement_text\":\"f\",\"parent_id\":50,\"max_depth\":50}",
                   "nested deeper than");
    start_chain(51, 100, "");
    ck_run_refused(&p, "execution.started", "{\"statement_text\":\"f\",\"parent_id\":100}",
                   "nested deeper than");
    ck_run(&p, "binding.set", "{\"name\":\"result\",\"execution_id\":1,\"value\":\"top\"}");
    catch_up(SESSION);
    ck_resolves(100, "result", "top");
    /* More than a thousand, by the shell: no walk needs a stack that SQLite limits to 1,000. */
    ck_shell("WITH RECURSIVE c(i) AS (SELECT 101 UNION ALL SELECT i + 1 FROM c WHERE i < 1100)"
             "INSERT INTO execution (id, statement_text, parent_id) SELECT i, 'f', i - 1 FROM c",
             "");
    ck_resolves(1100, "result", "top");
    ck_run_refused(&p, "execution.started", "{\"statement_text\":\"f\",\"parent_id\":1100}",
                   "nested deeper than");
    ck_run(&p, "execution.started",
           "{\"statement_text\":\"f\",\"parent_id\":1100,\"max_depth\":11000}");
    ck_rebuild();
}
END_TEST

START_TEST(no_execution_is_its_own_ancestor)
{
    static const char refused[] = "an execution cannot be its own ancestor";
    static const char *const wrong[] = {
        "INSERT INTO execution (id, parent_id) VALUES (9, 9)",
        "UPDATE execution SET parent_id = 2 WHERE id = 1",
        "UPDATE execution SET parent_id = 3 WHERE id = 1",
        "UPDATE execution SET parent_id = 1 WHERE id = 1",
        "INSERT INTO execution (id, parent_id) VALUES (7, 8), (8, 7)",
        "INSERT OR REPLACE INTO execution (id, parent_id) VALUES (1, 3)",
    };
    ck_run_refused(&p, "execution.started", "{\"statement_text\":\"a\",\"parent_id\":1}",
                   "the parent is unknown or not older");
    ck_shell("INSERT INTO execution (id, parent_id) VALUES (1, NULL), (2, 1), (3, 2)", "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *said = packs_shell(&p, DB, wrong[i]);
        ck_assert_msg(strstr(said, refused) != NULL, "%s: %s", wrong[i], said);
        free(said);
    }
    ck_run_refused(&p, "execution.started", "{\"statement_text\":\"a\",\"parent_id\":77}",
                   "the parent is unknown");
    ck_rows(&p, "SELECT id, parent_id FROM execution", "1|\n2|1\n3|2\n");
    ck_rebuild();
}
END_TEST

/* Assert the result of a block of branches a, b and c after the listed branches ended. */
static void ck_join(struct memory *m, const char *how, const char *ended, const char *result)
{
    static unsigned number;
    char data[300], sql[200];
    snprintf(data, sizeof data, "\"parallel_id\":\"p%u\"", ++number);
    snprintf(sql, sizeof sql, "SELECT COALESCE(MAX(id), 0) + 1 FROM execution");
    char *next = memory_rows(m, sql);
    int id = atoi(next);
    free(next);
    snprintf(data, sizeof data,
             "{\"execution_id\":%d,\"parallel_id\":\"p%u\",\"branches\":[\"a\",\"b\",\"c\"]%s}", id,
             number, how);
    memory_apply(m, "parallel.started", data);
    for (const char *c = ended; *c != '\0'; c++) {
        bool failed = *c >= 'A' && *c <= 'C';
        snprintf(data, sizeof data,
                 "{\"parallel_id\":\"p%u\",\"branch\":\"%c\",\"execution_id\":%d}", number,
                 failed ? *c - 'A' + 'a' : *c, id + 1 + (failed ? *c - 'A' : *c - 'a'));
        memory_apply(m, failed ? "parallel.branch_failed" : "parallel.branch_completed", data);
    }
    snprintf(sql, sizeof sql,
             "SELECT COALESCE(result, '-') FROM x_parallel_join WHERE parallel_id = 'p%u'", number);
    char *got = memory_rows(m, sql);
    got[strcspn(got, "\n")] = '\0';
    snprintf(data, sizeof data, "{\"parallel_id\":\"p%u\",\"execution_id\":%d,\"result\":\"%s\"}",
             number, id, got);
    memory_apply(m, "parallel.joined", data);
    free(got);
    snprintf(sql, sizeof sql,
             "SELECT group_concat(status, ' ') FROM (SELECT status FROM execution WHERE id BETWEEN "
             "%d AND %d ORDER BY id)",
             id, id + 3);
    got = memory_rows(m, sql);
    got[strcspn(got, "\n")] = '\0';
    ck_assert_msg(strcmp(got, result) == 0, "%s with %s: %s and not %s", how, ended, got, result);
    free(got);
}

START_TEST(strategies_and_policies_decide_a_parallel_block)
{
    struct memory m;
    memory_init(&m, SESSION, "prose", NULL);
    /* Capital letters are branches that failed. */
    ck_join(&m, "", "ab", "executing completed completed executing");
    ck_join(&m, "", "abc", "completed completed completed completed");
    ck_join(&m, "", "aB", "failed completed failed skipped");
    ck_join(&m, ",\"failure\":\"continue\"", "aB", "executing completed failed executing");
    ck_join(&m, ",\"failure\":\"continue\"", "aBc", "failed completed failed completed");
    ck_join(&m, ",\"failure\":\"ignore\"", "ABC", "completed failed failed failed");
    ck_join(&m, ",\"strategy\":\"first\"", "", "executing executing executing executing");
    ck_join(&m, ",\"strategy\":\"first\"", "b", "completed skipped completed skipped");
    ck_join(&m, ",\"strategy\":\"first\"", "B", "failed skipped failed skipped");
    ck_join(&m, ",\"strategy\":\"first\",\"failure\":\"continue\"", "B",
            "executing executing failed executing");
    ck_join(&m, ",\"strategy\":\"first\",\"failure\":\"continue\"", "Bc",
            "completed skipped failed completed");
    ck_join(&m, ",\"strategy\":\"first\",\"failure\":\"continue\"", "ABC",
            "failed failed failed failed");
    ck_join(&m, ",\"strategy\":\"first\",\"failure\":\"ignore\"", "B",
            "completed skipped failed skipped");
    ck_join(&m, ",\"strategy\":\"any\"", "A", "executing failed executing executing");
    ck_join(&m, ",\"strategy\":\"any\"", "Ab", "completed failed completed skipped");
    ck_join(&m, ",\"strategy\":\"any\"", "ABC", "failed failed failed failed");
    ck_join(&m, ",\"strategy\":\"any\",\"count\":2", "a",
            "executing completed executing executing");
    ck_join(&m, ",\"strategy\":\"any\",\"count\":2", "ac", "completed completed skipped completed");
    ck_join(&m, ",\"strategy\":\"any\",\"count\":2", "AB", "failed failed failed skipped");
    ck_join(&m, ",\"strategy\":\"any\",\"count\":2,\"failure\":\"ignore\"", "AB",
            "completed failed failed skipped");
    ck_assert_uint_eq(annal__state_refused(m.state), 0);
    memory_done(&m);
}
END_TEST

START_TEST(a_query_by_name_returns_all_scopes_in_the_order_written)
{
    ck_run(&p, "execution.started", "{\"statement_text\":\"a\"}");
    ck_run(&p, "binding.set", "{\"name\":\"research\",\"value\":\"root\"}");
    ck_run(&p, "binding.set", "{\"name\":\"research\",\"value\":\"scoped\",\"execution_id\":1}");
    catch_up(SESSION);
    ck_shell("SELECT value FROM bindings WHERE name = 'research'", "root\nscoped\n");
}
END_TEST

START_TEST(an_agent_of_the_same_name_in_three_scopes_is_three_agents)
{
    PACKS_ENABLE(&p, "prose", "prose-agents", "prose-user");
    run_init();
    ck_run(&p, "agent.memory_set", "{\"name\":\"captain\",\"memory\":\"of the run\"}");
    ck_append(&p, "pagent_project", "agent.memory_set",
              "{\"name\":\"captain\",\"memory\":\"of the project\"}");
    ck_append(&p, "pagent_user", "agent.memory_set",
              "{\"name\":\"captain\",\"memory\":\"of the user\"}");
    ck_refused(&p, "pagent_project", "agent.memory_set",
               "{\"name\":\"captain\",\"memory\":\"m\",\"scope\":\"user\"}",
               "another scope than this database");
    ck_run_refused(&p, "agent.memory_set",
                   "{\"name\":\"captain\",\"memory\":\"m\",\"scope\":\"project\"}",
                   "not one of the run's scopes");
    ck_rows(&p, "SELECT scope, memory FROM prose.agents", "execution|of the run\n");
    ck_rows(&p, "SELECT scope, memory FROM prose_agents.agents", "project|of the project\n");
    ck_rows(&p, "SELECT scope, memory FROM prose_user.agents", "user|of the user\n");
    ck_text(packs_shell(&p, "prose/agents.db",
                        "UPDATE agents SET memory = 'by hand' WHERE name = 'captain';"
                        "INSERT INTO agent_segments (agent_name, segment_number, prompt) "
                        "VALUES ('captain', 1, 'p')"),
            "");
    ck_append(&p, "pagent_project", "agent.segment_recorded", "{\"agent_name\":\"captain\"}");
    ck_rows(&p,
            "SELECT memory, (SELECT MAX(segment_number) FROM prose_agents.agent_segments) "
            "FROM prose_agents.agents",
            "by hand|2\n");
    ck_rebuild_of("pagent_project", tmpdir_path(&p.dir, "store/prose/agents.db"));
}
END_TEST

START_TEST(constant_bindings_stay_and_anonymous_sessions_are_numbered)
{
    ck_run(&p, "binding.set", "{\"name\":\"topic\",\"kind\":\"input\",\"value\":\"t\"}");
    ck_run_refused(&p, "binding.set", "{\"name\":\"topic\",\"value\":\"u\"}",
                   "the value of this name cannot change");
    ck_run(&p, "binding.set", "{\"name\":\"pi\",\"kind\":\"const\",\"value\":\"3\"}");
    ck_run_refused(&p, "binding.set", "{\"name\":\"pi\",\"kind\":\"const\",\"value\":\"4\"}",
                   "the value of this name cannot change");
    ck_run_refused(&p, "binding.set", "{\"name\":\"x\",\"kind\":\"var\",\"value\":\"4\"}", "kind");
    ck_run(&p, "binding.set", "{\"name\":\"x\",\"value\":\"1\"}");
    ck_run(&p, "binding.set", "{\"name\":\"x\",\"value\":\"2\"}");
    ck_run(&p, "binding.anonymous", "{\"value\":\"a\"}");
    ck_run(&p, "binding.anonymous", "{\"value\":\"b\"}");
    ck_shell("INSERT INTO bindings (name, value) VALUES ('anon_041', 'c')", "");
    ck_run(&p, "binding.anonymous", "{\"value\":\"d\"}");
    ck_run_refused(&p, "binding.anonymous", "{\"name\":\"anon_041\",\"value\":\"d\"}",
                   "not the next of");
    ck_run(&p, "binding.set", "{\"name\":\"research.findings\",\"value\":\"f\"}");
    ck_rows(&p, "SELECT name, value FROM bindings ORDER BY name",
            "anon_001|a\nanon_002|b\nanon_041|c\nanon_042|d\npi|3\nresearch.findings|f\ntopic|t\n"
            "x|2\n");
    ck_rebuild();
}
END_TEST

/* C-23: the document's query also counts the block's own row. */
START_TEST(the_view_counts_branches_only_and_the_documents_query_also_the_block)
{
    ck_shell("INSERT INTO execution (statement_text, status, metadata) VALUES ('parallel:', "
             "'executing', '{\"parallel_id\": \"p1\", \"strategy\": \"all\", \"branches\": "
             "[\"a\"]}'), ('a', 'completed', '{\"parallel_id\": \"p1\", \"branch\": \"a\"}');"
             "INSERT INTO execution (statement_text, metadata) VALUES ('odd', 'no JSON');"
             "SELECT COUNT(*) FROM execution WHERE json_valid(metadata) AND "
             "json_extract(metadata, '$.parallel_id') = 'p1' AND status != 'completed';"
             "SELECT pending, completed FROM x_parallel_status",
             "1\n0|1\n");
}
END_TEST

/* ---- Rows written with the shell ---- */

/* Count the events without a query of the run, which would drain it. */
static void ck_drained(const char *expected)
{
    ck_text(packs_rows(&p, "SELECT COUNT(*) FROM events WHERE session_id = '" SESSION
                           "' AND type = 'sql.applied'"),
            expected);
}

START_TEST(opening_closing_and_every_append_drain_rows_of_users_into_the_journal)
{
    annal_index *following = NULL;
    const annal_index_options follow = {.follow = true};
    ck_shell("INSERT INTO agents (name) VALUES ('a')", "");
    ck_drained("0\n");
    ck_append(&p, SESSION, "tool.called", "{}"); /* which no pack guards */
    ck_drained("1\n");
    ck_shell("INSERT INTO agents (name) VALUES ('b')", "");
    ck_append(&p, SESSION, "binding.set", "{\"name\":\"n\"}");
    ck_drained("2\n");
    ck_shell("INSERT INTO agents (name) VALUES ('c')", "");
    ck_append(&p, "another", "tool.called", "{}");
    ck_drained("2\n");
    ck_ok(annal_index_open(p.store, &follow, &following, err));
    ck_drained("3\n");
    ck_shell("INSERT INTO agents (name) VALUES ('d')", "");
    annal_index_close(following);
    ck_drained("4\n");
    ck_rebuild();
}
END_TEST

START_TEST(verify_reports_rows_of_users_that_a_guard_would_refuse)
{
    struct text text = {0};
    ck_run(&p, "binding.set", "{\"name\":\"k\",\"kind\":\"const\",\"value\":\"1\"}");
    ck_shell("UPDATE bindings SET source_statement = 's' WHERE name = 'k';" /* 3: harmless */
             "UPDATE bindings SET value = '2' WHERE name = 'k';"            /* 4 */
             "INSERT INTO execution (status) VALUES ('executing');"
             "UPDATE execution SET status = 'completed' WHERE id = 1;"
             "UPDATE execution SET status = 'executing' WHERE id = 1;"                 /* 7 */
             "INSERT INTO execution (parent_id, status) VALUES (99, 'executing');"     /* 8 */
             "INSERT INTO bindings (name, execution_id) VALUES ('u', 77);"             /* 9 */
             "UPDATE run SET status = 'completed'; UPDATE run SET status = 'running';" /* 11 */
             "INSERT INTO agent_segments (agent_name, segment_number) VALUES ('a', 1), ('a', 3);"
             "DELETE FROM bindings WHERE name = 'k';" /* 14 */,
             "");
    catch_up(SESSION);
    text_add(&text, "", 0);
    ck_ok(annal_pack_verify(p.index, collect, &text, err));
#define PAST(seq, why)                                                                             \
    "finding: event " seq " of session '" SESSION                                                  \
    "': sql.applied was appended although its guard refuses it: " why "\n"
    ck_assert_ptr_nonnull(strstr(
        text.ptr,
        PAST("4", "the value of this name cannot change (input, const)")
            PAST("7", "the status cannot change to this status") PAST(
                "8", "the parent is unknown or not older") PAST("9", "the execution is unknown")
                PAST("11", "the status cannot change to this status")
                    PAST("13", "segment_number is not the agent's next number")
                        PAST("14", "the value of this name cannot change (input, const)")));
    free(text.ptr);
    ck_rebuild();
}
END_TEST

/* ---- At random, and killed ---- */

static void some_write(struct random *random, struct text *sql)
{
    char line[400];
    unsigned a = (unsigned)random_below(random, 6), b = (unsigned)random_below(random, 6);
    switch (random_below(random, 9)) {
    case 0:
        snprintf(line, sizeof line, "INSERT INTO execution (statement_text) VALUES ('s%u');", a);
        break;
    case 1:
        snprintf(line, sizeof line, "UPDATE execution SET status = 's%u' WHERE id %% 6 = %u;", a,
                 b);
        break;
    case 2:
        snprintf(line, sizeof line,
                 "INSERT OR REPLACE INTO bindings (name, execution_id, value) VALUES ('n%u', "
                 "nullif(%u, 0), randomblob(20));",
                 a, b);
        break;
    case 3:
        snprintf(line, sizeof line, "DELETE FROM bindings WHERE name = 'n%u';", a);
        break;
    case 4:
        snprintf(line, sizeof line,
                 "UPDATE OR REPLACE bindings SET name = 'n%u' WHERE name = 'n%u';", a, b);
        break;
    case 5:
        snprintf(
            line, sizeof line,
            "CREATE TABLE IF NOT EXISTS x_%u (v, w REAL); INSERT INTO x_%u VALUES (%u, 0.%u1);", a,
            a, b, b);
        break;
    case 6:
        snprintf(line, sizeof line,
                 "CREATE TABLE IF NOT EXISTS x_%u (v, w REAL); DELETE FROM x_%u WHERE v = %u;", a,
                 a, b);
        break;
    case 7:
        snprintf(line, sizeof line,
                 "INSERT INTO agents (name, memory) VALUES ('a%u', 'm%u') "
                 "ON CONFLICT DO UPDATE SET memory = memory || 'x';",
                 a, b);
        break;
    default:
        snprintf(line, sizeof line, "DELETE FROM execution WHERE id %% 7 = %u; VACUUM;", a);
        break;
    }
    text_add(sql, line, strlen(line));
}

static void some_event(struct random *random)
{
    char data[300];
    unsigned a = (unsigned)random_below(random, 6), b = (unsigned)random_below(random, 6);
    static const char *const types[] = {"execution.started", "binding.set",
                                        "agent.memory_set",  "execution.completed",
                                        "binding.anonymous", "tool.called"};
    snprintf(data, sizeof data,
             "{\"name\":\"n%u\",\"value\":\"v%u\",\"memory\":\"m\",\"execution_id\":%s}", a, b,
             random_below(random, 2) == 0 ? "null" : "1");
    const char *type = types[random_below(random, sizeof types / sizeof *types)];
    if (random_below(random, 3) == 0)
        packs_append_past(&p, SESSION, type, data);
    else
        (void)packs_append(&p, SESSION, type, data, NULL);
}

START_TEST(the_tables_equal_a_rebuild_after_any_writes_of_users_and_events)
{
    struct random random = random_init(20260116);
    for (unsigned round = 0; round < full_or(60, 12); round++) {
        struct text sql = {0};
        text_add(&sql, "", 0);
        for (uint64_t i = random_below(&random, 4); i > 0; i--)
            some_write(&random, &sql);
        char *said = packs_shell(&p, DB, sql.ptr);
        free(said); /* a constraint may refuse */
        free(sql.ptr);
        for (uint64_t i = random_below(&random, 3); i > 0; i--)
            some_event(&random);
        if (random_below(&random, 4) == 0)
            catch_up(SESSION);
        if (random_below(&random, 20) == 0)
            packs_reopen(&p);
    }
    ck_rebuild();
}
END_TEST

/* Drain and append in a process of its own, until a kill. */
static _Noreturn void drain_for_ever(const char *path, int said)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    const annal_store_options options = {.no_keeper = true};
    const annal_draft draft = {.type = ANNAL_SLICE("binding.set"),
                               .data = ANNAL_SLICE("{\"name\":\"api\",\"value\":\"v\"}")};
    const annal_sql_options of_run = {.session = ANNAL_SLICE(SESSION)};
    struct text text = {0};
    bool good = annal_store_open(path, &options, &store, NULL) == ANNAL_OK &&
                annal_index_open(store, NULL, &index, NULL) == ANNAL_OK &&
                annal_writer_open(store, ANNAL_SLICE(SESSION), NULL, &writer, NULL) == ANNAL_OK;
    for (unsigned i = 0; good; i++) {
        annal_appended appended = {0};
        uint64_t seq;
        const annal_append_options append = {.level = ANNAL_LEVEL_SYNC};
        annal_status status =
            annal_index_sql(index, ANNAL_SLICE("SELECT 1"), &of_run, text_row, &text, NULL);
        if (i % 3 == 0) /* past the packs */
            status = annal_writer_append(writer, &draft, 1, &append, &seq, NULL);
        else
            status = annal_pack_append(index, writer, &draft, 1, &append, &appended, NULL);
        (void)status; /* may be busy; the next round tries again */
        annal_free(appended.data.ptr);
        good = write(said, "", 1) == 1;
    }
    _exit(1);
}

static void *end_reading(void *arg)
{
    usleep(100000);
    sqlite3_exec(arg, "COMMIT", NULL, NULL, NULL);
    return NULL;
}

/* Another program numbers its rows after the last row, so the row of an event must be present. */
START_TEST(a_reader_during_an_append_does_not_delay_its_row)
{
    sqlite3 *db = NULL;
    pthread_t thread;
    PACKS_ENABLE(&p, "prose");
    ck_append(&p, SESSION, "run.started", "{\"id\":\"" RUN "\"}");
    char path[1024];
    snprintf(path, sizeof path, "%s/" DB, p.path);
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM run", NULL, NULL, NULL),
                     SQLITE_OK);
    pthread_create(&thread, NULL, end_reading, db);
    ck_append(&p, SESSION, "execution.started", "{\"statement_text\":\"x\",\"statement_index\":1}");
    pthread_join(thread, NULL);
    sqlite3_close(db);
    ck_text(packs_shell(&p, DB, "SELECT id, statement_text FROM execution"), "1|x\n");
}
END_TEST

START_TEST(a_killed_drain_neither_loses_nor_repeats_rows_of_users)
{
    struct random random = random_init(20260117);
    unsigned written = 0;
    for (unsigned i = 0; i < full_or(8, 3); i++) {
        int status = 0, said[2];
        char byte;
        packs_reopen(&p); /* releases the session */
        ck_assert_int_eq(pipe(said), 0);
        pid_t child = fork();
        if (child == 0)
            drain_for_ever(p.path, said[1]);
        ck_assert_int_gt(child, 0);
        close(said[1]);
        ck_assert_int_eq(read(said[0], &byte, 1), 1);
        for (uint64_t left = 1 + random_below(&random, 4); left > 0; left--) {
            char sql[200];
            snprintf(sql, sizeof sql,
                     ".timeout 20000\nINSERT INTO bindings (name) VALUES ('u%u'), ('v%u');",
                     written, written);
            written++;
            ck_shell(sql, "");
        }
        usleep((useconds_t)random_below(&random, 8000));
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        close(said[0]);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSIGNALED(status), "the child failed");
        packs_reopen(&p);
        ck_rebuild();
    }
    char expected[100];
    snprintf(expected, sizeof expected, "%u|%u\n", 2 * written, 2 * written);
    ck_rows(&p,
            "SELECT COUNT(*), COUNT(DISTINCT data ->> '$.row.name') FROM events "
            "WHERE type = 'sql.applied'",
            expected);
    snprintf(expected, sizeof expected, "%u\n", 2 * written);
    ck_rows(&p, "SELECT COUNT(*) FROM prose.bindings WHERE name <> 'api'", expected);
}
END_TEST

/* ---- A program that divides and conquers, killed in the middle ---- */

enum { CHUNKS = 4, DEPTH = 4 };

struct vm {
    annal_index *index;
    sqlite3 *db;
    annal_writer *writer;
    int said; /* -1: not reported */
    bool good;
};

static void vm_append(struct vm *vm, const annal_draft *drafts, size_t count)
{
    annal_appended appended = {0};
    const annal_append_options options = {.level = ANNAL_LEVEL_SYNC};
    annal_error err = {0};
    annal_status status =
        annal_pack_append(vm->index, vm->writer, drafts, count, &options, &appended, &err);
    vm->good = vm->good && status == ANNAL_OK && (vm->said < 0 || write(vm->said, "", 1) == 1);
    if (status != ANNAL_OK)
        fprintf(stderr, "%s\n", err.message);
    annal_free(appended.data.ptr);
}

/* Query the database directly, as a VM does. Returns the first value for id as ?1, or -1. */
static int vm_number(struct vm *vm, const char *sql, int id)
{
    sqlite3_stmt *stmt = NULL;
    int number = -1;
    if (!vm->good || sqlite3_prepare_v2(vm->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        vm->good = false;
    sqlite3_bind_int(stmt, 1, id);
    if (vm->good && sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL)
        number = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

/* Build an event with data printed into a buffer. */
#define VM_EVENT(vm, type_, ...)                                                                   \
    do {                                                                                           \
        char data_[400];                                                                           \
        snprintf(data_, sizeof data_, __VA_ARGS__);                                                \
        const annal_draft draft_ = {.type = ANNAL_SLICE(type_), .data = annal_slice_of(data_)};    \
        vm_append(vm, &draft_, 1);                                                                 \
    } while (0)

/* Append the results and the ends of calls together: all or none. */
static void finish(struct vm *vm, const int *ids, size_t count)
{
    char result[CHUNKS][200], end[CHUNKS][100];
    annal_draft drafts[2 * CHUNKS];
    for (size_t i = 0; i < count; i++) {
        snprintf(result[i], sizeof result[i],
                 "{\"name\":\"result\",\"execution_id\":%d,\"value\":\"of %d\"}", ids[i], ids[i]);
        snprintf(end[i], sizeof end[i], "{\"execution_id\":%d}", ids[i]);
        drafts[2 * i] =
            (annal_draft){.type = ANNAL_SLICE("binding.set"), .data = annal_slice_of(result[i])};
        drafts[2 * i + 1] = (annal_draft){.type = ANNAL_SLICE("execution.completed"),
                                          .data = annal_slice_of(end[i])};
    }
    if (vm->good && count > 0)
        vm_append(vm, drafts, 2 * count);
}

/* Run a call of a block: all of it, or its rest after a crash. */
static void process(struct vm *vm, int id, int depth)
{
    static const char block_of[] = "SELECT id FROM execution WHERE parent_id = ?1";
    static const char is_open[] = "SELECT status = 'executing' FROM execution WHERE id = ?1";
    int leaves[CHUNKS];
    size_t leaf_count = 0;
    int block = vm_number(vm, block_of, id);
    if (block < 0) {
        VM_EVENT(vm, "parallel.started",
                 "{\"parallel_id\":\"p%d\",\"parent_id\":%d,\"branches\":[\"c1\",\"c2\",\"c3\","
                 "\"c4\"]}",
                 id, id);
        block = vm_number(vm, block_of, id);
    }
    for (int i = 1; i <= CHUNKS && vm->good; i++) {
        if (vm_number(vm, is_open, block + i) != 1)
            continue;
        if (depth + 1 < DEPTH)
            process(vm, block + i, depth + 1);
        else
            leaves[leaf_count++] = block + i;
    }
    finish(vm, leaves, leaf_count);
    if (vm_number(vm, is_open, block) == 1)
        VM_EVENT(vm, "parallel.joined", "{\"parallel_id\":\"p%d\"}", id);
    finish(vm, &id, 1);
}

/* Run the program from its beginning, or from the position in the tables. */
static bool run_program(const char *path, const char *database, int said)
{
    annal_store *store = NULL;
    const annal_store_options options = {.no_keeper = true};
    struct vm vm = {.said = said};
    if (sqlite3_open_v2(database, &vm.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", database, sqlite3_errmsg(vm.db));
        return false;
    }
    sqlite3_busy_timeout(vm.db, 60000);
    vm.good = annal_store_open(path, &options, &store, NULL) == ANNAL_OK &&
              annal_index_open(store, NULL, &vm.index, NULL) == ANNAL_OK &&
              annal_writer_open(store, ANNAL_SLICE(SESSION), NULL, &vm.writer, NULL) == ANNAL_OK;
    if (vm.good && vm_number(&vm, "SELECT COUNT(*) FROM execution WHERE id > ?1", 0) == 0)
        VM_EVENT(&vm, "execution.started", "{\"statement_text\":\"do process(data)\"}");
    if (vm.good)
        VM_EVENT(&vm, "run.resumed", "{}");
    if (vm_number(&vm, "SELECT status = 'executing' FROM execution WHERE id = ?1", 1) == 1)
        process(&vm, 1, 0);
    sqlite3_close(vm.db);
    annal_writer_close(vm.writer);
    annal_index_close(vm.index);
    return annal_store_close(store, NULL) == ANNAL_OK && vm.good;
}

START_TEST(a_killed_recursive_program_continues_where_it_stopped)
{
    struct random random = random_init(41);
    const char *database = tmpdir_path(&p.dir, "store/" DB);
    for (int kills = 0; kills < 3; kills++) {
        int said[2];
        char byte;
        packs_reopen(&p);
        ck_assert_int_eq(pipe(said), 0);
        pid_t child = fork();
        if (child == 0)
            _exit(run_program(p.path, database, said[1]) ? 0 : 1);
        ck_assert_int_gt(child, 0);
        close(said[1]);
        for (uint64_t left = 30 + random_below(&random, 50); left > 0; left--)
            ck_assert_int_eq(read(said[0], &byte, 1), 1);
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        close(said[0]);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        packs_reopen(&p);
        ck_rebuild();
    }
    ck_rows(&p, "SELECT status FROM prose.execution WHERE id = 1", "executing\n");
    packs_reopen(&p);
    ck_assert(run_program(p.path, database, -1));
    packs_reopen(&p);
    /* 1 + 4 + 16 + 64 + 256 calls, and a block for each call except the last. */
    ck_rows(&p, "SELECT status, COUNT(*), COUNT(DISTINCT id) FROM prose.execution GROUP BY status",
            "completed|426|426\n");
    ck_rows(&p,
            "SELECT COUNT(*), COUNT(DISTINCT execution_id), SUM(value = 'of ' || execution_id) "
            "FROM prose.bindings WHERE name = 'result'",
            "341|341|341\n");
    ck_resolves(426, "result", "of 426");
    ck_rebuild();
}
END_TEST

Suite *suite_prose(void)
{
    Suite *suite = suite_create("prose");
    TCase *printed = suite_case(suite, "printed", packs_setup, packs_teardown);
    tcase_add_test(printed, the_sql_of_the_document_gives_the_rows_of_the_documents_tables);
    tcase_add_test(printed, every_block_of_the_document_runs_unchanged);
    TCase *others = suite_case(suite, "others", packs_setup, packs_teardown);
    tcase_add_test(others, strategies_and_policies_decide_a_parallel_block);
    tcase_add_test(others, an_agent_of_the_same_name_in_three_scopes_is_three_agents);
    tcase_add_test(others, a_reader_during_an_append_does_not_delay_its_row);
    TCase *acceptance = suite_case(suite, "acceptance", run_setup, packs_teardown);
    tcase_add_test(acceptance, frames_shadow_each_other_and_ids_are_never_reused);
    tcase_add_test(acceptance, blocks_nest_100_deep_and_no_deeper_unless_allowed);
    tcase_add_test(acceptance, no_execution_is_its_own_ancestor);
    tcase_add_test(acceptance, a_query_by_name_returns_all_scopes_in_the_order_written);
    tcase_add_test(acceptance, constant_bindings_stay_and_anonymous_sessions_are_numbered);
    tcase_add_test(acceptance,
                   the_view_counts_branches_only_and_the_documents_query_also_the_block);
    TCase *shell = suite_case(suite, "shell", run_setup, packs_teardown);
    tcase_add_test(shell, opening_closing_and_every_append_drain_rows_of_users_into_the_journal);
    tcase_add_test(shell, verify_reports_rows_of_users_that_a_guard_would_refuse);
    TCase *chance = suite_case(suite, "chance", run_setup, packs_teardown);
    tcase_add_test(chance, the_tables_equal_a_rebuild_after_any_writes_of_users_and_events);
    tcase_add_test(chance, a_killed_drain_neither_loses_nor_repeats_rows_of_users);
    TCase *program = suite_case(suite, "program", run_setup, packs_teardown);
    tcase_set_timeout(program, 300);
    tcase_add_test(program, a_killed_recursive_program_continues_where_it_stopped);
    return suite;
}
