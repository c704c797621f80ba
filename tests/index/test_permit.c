/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/state.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HEAD[] = "-- pack p   version 1   database p.db\n"
                           "CREATE TABLE t (id INTEGER PRIMARY KEY, n, at TEXT);\n"
                           "CREATE TABLE d (id INTEGER PRIMARY KEY, n,\n"
                           "                at TEXT DEFAULT (datetime('now')));\n"
                           "CREATE VIEW v AS SELECT n FROM t;\n";

static void ck_parse(const char *body, const char *message)
{
    struct text text = {0};
    annal_pack *pack = NULL;
    annal_error err = {0};
    text_add(&text, HEAD, strlen(HEAD));
    text_add(&text, body, strlen(body));
    annal_status status = annal_pack_parse("p.sql", (annal_slice){text.ptr, text.len}, &pack, &err);
    ck_assert_int_eq(status, err.status);
    ck_assert_msg(strcmp(err.message, message) == 0, "%s\n%s, not\n%s", body, err.message, message);
    annal_pack_free(pack);
    free(text.ptr);
}

/* Parse a pack whose handler inserts a value. */
static annal_status parse_value(const char *value, annal_error *err)
{
    char text[1000];
    annal_pack *pack = NULL;
    snprintf(text, sizeof text, "%s-- on a\nINSERT INTO t (at) VALUES (%s);\n", HEAD, value);
    annal_status status = annal_pack_parse("p.sql", annal_slice_of(text), &pack, err);
    annal_pack_free(pack);
    return status;
}

START_TEST(a_section_sees_the_tables_of_its_pack_and_no_others)
{
    ck_parse("-- on a\nINSERT INTO t (n) SELECT n FROM v JOIN d USING (n);\n", "");
    ck_parse("-- on a\nINSERT INTO t (n) SELECT value FROM json_each(:data, '$.x');\n", "");
    ck_parse("-- on a\nINSERT INTO t (n) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1"
             " FROM c WHERE x < 5) SELECT x FROM c;\n",
             "");
    ck_parse("-- on a\nINSERT INTO t (n) SELECT name FROM sqlite_schema;\n",
             "p.sql:7: a pack can only read its own tables, not 'sqlite_master'");
    ck_parse("-- on a\nDELETE FROM _state;\n",
             "p.sql:7: names that begin with _ are reserved: '_state'");
    ck_parse("-- on a\nDELETE FROM other;\n", "p.sql:7: no such table: other");
    ck_parse("-- on a\nINSERT INTO t (n) SELECT name FROM pragma_table_info('t');\n",
             "p.sql:7: a pack can only read its own tables, not 'pragma_table_info'");
}
END_TEST

START_TEST(a_pack_may_not_write_internal_tables_of_sqlite)
{
    static const char counted[] = "CREATE TABLE c (x INTEGER PRIMARY KEY AUTOINCREMENT);\n"
                                  "-- on a\nINSERT INTO c DEFAULT VALUES;\n";
    char body[300];
    ck_parse(counted, "");
    snprintf(body, sizeof body, "%sUPDATE sqlite_sequence SET seq = 0;\n", counted);
    ck_parse(body, "p.sql:9: a pack can only write its own tables, not 'sqlite_sequence'");
}
END_TEST

START_TEST(a_section_may_only_read_and_write_rows)
{
    static const char *const wrong[] = {
        "PRAGMA user_version = 1;",
        "ATTACH 'x.db' AS x;",
        "DETACH main;",
        "BEGIN;",
        "COMMIT;",
        "SAVEPOINT a;",
        "DROP TABLE t;",
        "DROP VIEW v;",
        "ALTER TABLE t ADD COLUMN x;",
        "CREATE TABLE u (x);",
        "CREATE INDEX i ON t (n);",
        "ANALYZE;",
        "REINDEX t;",
        "VACUUM;",
        "EXPLAIN DELETE FROM t;",
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END;",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char body[200];
        snprintf(body, sizeof body, "-- on a\n%s\n", wrong[i]);
        ck_parse(body, "p.sql:7: a section can only read and write rows");
    }
    ck_parse("-- on a\nCREATE TEMP TABLE u (x);\n",
             "p.sql:7: a pack can only use its own database, not 'temp'");
}
END_TEST

START_TEST(only_create_and_insert_are_allowed_when_a_pack_creates_its_tables)
{
    static const char making[] = "only CREATE TABLE, INDEX, VIEW and TRIGGER, and INSERT are "
                                 "allowed before the first section";
    static const char *const wrong[] = {"PRAGMA user_version = 1;",
                                        "ATTACH 'x.db' AS x;",
                                        "BEGIN;",
                                        "DROP TABLE t;",
                                        "ALTER TABLE t ADD COLUMN x;",
                                        "CREATE VIRTUAL TABLE f USING fts5(x);"};
    char message[200];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(message, sizeof message, "p.sql:6: %s", making);
        ck_parse(wrong[i], message);
    }
    ck_parse("CREATE INDEX i ON t (n);\nCREATE UNIQUE INDEX j ON t (n) WHERE n > 0;\n"
             "CREATE TRIGGER g AFTER DELETE ON t BEGIN INSERT INTO d (n) VALUES (old.n); END;\n"
             "INSERT INTO t (n) VALUES (1), (2);\nCREATE TABLE s AS SELECT * FROM t;\n"
             "CREATE TABLE \"a b\" (x INTEGER PRIMARY KEY AUTOINCREMENT);\n"
             "-- on a\nINSERT INTO \"a b\" DEFAULT VALUES;\n",
             "");
    ck_parse("CREATE TABLE _mine (x);\n", "p.sql:6: names that begin with _ are reserved:"
                                          " '_mine'");
    ck_parse("CREATE TRIGGER _g AFTER DELETE ON t BEGIN SELECT 1; END;\n",
             "p.sql:6: names that begin with _ are reserved: '_g'");
    ck_parse("CREATE TEMP TABLE u (x);\n",
             "p.sql:6: a pack can only use its own database, not 'temp'");
    ck_parse("UPDATE t SET n = 1;\n",
             "p.sql:6: only INSERT is allowed here; UPDATE and DELETE belong in a section");
    ck_parse("\nINSERT INTO t (n)\n  VALUES (random());\n",
             "p.sql:7: packs must be deterministic, so this is not allowed: 'random'");
    ck_parse("INSERT INTO t (at)\n  VALUES (date('now'));\n",
             "p.sql:7: 'now' is not allowed, because packs must be deterministic: use the time of "
             "the event (:ts)");
}
END_TEST

START_TEST(creating_tables_may_use_neither_clock_nor_random_values)
{
    static const char clock[] =
        "p.sql:6: handlers must be deterministic: 'now', 'localtime' and 'utc' are not allowed";
    ck_parse("INSERT INTO t (at) VALUES (datetime());\n",
             "p.sql:6: datetime() without a time, with 'localtime' or with 'utc' is not allowed, "
             "because packs must be deterministic: use the time of the event (:ts)");
    ck_parse("INSERT INTO t (at) VALUES (strftime('%f', 'n' || 'ow'));\n", clock);
    ck_parse("INSERT INTO t (at) VALUES (datetime(x'6e6f77'));\n", clock);
    ck_parse("INSERT INTO d (n) VALUES (1);\n", clock);
    ck_parse("CREATE TABLE z AS SELECT datetime('now') AS n;\n", clock);
    ck_parse("CREATE TABLE z AS SELECT random() AS r;\n",
             "p.sql:6: handlers must be deterministic: random() is not allowed");
    ck_parse(
        "CREATE VIEW w AS SELECT hex(randomblob(4)) AS r;\nCREATE TABLE z AS SELECT r FROM w;\n",
        "p.sql:7: handlers must be deterministic: randomblob() is not allowed");
}
END_TEST

START_TEST(a_trigger_of_a_pack_has_the_rights_of_a_section)
{
    ck_parse("CREATE TRIGGER g AFTER DELETE ON t BEGIN\n  DELETE FROM sqlite_schema; END;\n"
             "-- on a\nDELETE FROM t;\n",
             "p.sql:9: table sqlite_master may not be modified");
    ck_parse("CREATE TRIGGER g AFTER DELETE ON t BEGIN\n  INSERT INTO d (n) VALUES (random()); END;"
             "\n-- on a\nDELETE FROM t;\n",
             "p.sql:9: packs must be deterministic, so this is not allowed: 'random'");
}
END_TEST

START_TEST(a_pack_that_uses_a_clock_or_random_values_is_refused)
{
    static const char *const calls[] = {"random()",     "randomblob(4)",       "CURRENT_TIMESTAMP",
                                        "current_date", "last_insert_rowid()", "total_changes()",
                                        "changes()",    "sqlite_version()"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char body[200], name[40], message[200];
        snprintf(body, sizeof body, "-- on a\nINSERT INTO t (n)\n\nVALUES (%s);\n", calls[i]);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(calls[i], "("), calls[i]);
        for (char *c = name; *c != '\0'; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        snprintf(message, sizeof message,
                 "p.sql:7: packs must be deterministic, so this is not allowed: '%s'", name);
        ck_parse(body, message);
    }
    ck_parse("-- on a\nINSERT INTO t (n) VALUES (load_extension('x'));\n",
             "p.sql:7: a pack may not use the function 'load_extension'");
    ck_parse("CREATE TABLE x (n CHECK (fts3_tokenizer('simple') > 0));\n",
             "p.sql:6: a pack may not use the function 'fts3_tokenizer'");
    ck_parse("-- on a\nINSERT INTO t (n)\n VALUES ( -- 'now'\n  date('NOW', '+1 day'));\n",
             "p.sql:9: 'now' is not allowed, because packs must be deterministic: use the time of "
             "the event (:ts)");
    ck_parse("-- fill a\nSELECT datetime('now') AS n;\n",
             "p.sql:7: 'now' is not allowed, because packs must be deterministic: use the time of "
             "the event (:ts)");
    ck_parse("-- on a\nINSERT INTO t (at) VALUES (date(:ts)); -- not 'now'\n", "");
}
END_TEST

START_TEST(a_handler_that_calls_a_date_function_for_the_time_of_now_is_refused)
{
    static const char *const refused[] = {"strftime('%s')",
                                          "unixepoch ( )",
                                          "\"julianday\"()",
                                          "datetime('subsec', '+1 day')",
                                          "coalesce($a, (SELECT max(unixepoch())))",
                                          "date(trim(:ts, ','), 'LocalTime')",
                                          "STRFTIME('%s', :ts, '+1 day', 'utc')"};
    static const char *const taken[] = {"strftime('now, utc', :ts)", "unixepoch(:ts, 'subsec')",
                                        "datetime(coalesce($utc, 'utc'))", "'date()'",
                                        "date(:ts, 'start of month')"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        annal_error err = {0};
        ck_assert_int_eq(parse_value(refused[i], &err), ANNAL_ERR_SQL);
        ck_assert_msg(strstr(err.message, "p.sql:7: ") != NULL &&
                          strstr(err.message, "use the time of the event (:ts)") != NULL,
                      "%s: %s", refused[i], err.message);
    }
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        annal_error err = {0};
        ck_assert_msg(parse_value(taken[i], &err) == ANNAL_OK, "%s: %s", taken[i], err.message);
    }
}
END_TEST

START_TEST(a_message_names_the_line_of_the_mistake_within_its_statement)
{
    ck_parse("-- on a\nINSERT INTO t (n)\nSELECT n\nFROM t\nWHERE wrong = 1;\n",
             "p.sql:10: no such column: wrong");
    ck_parse("\n\nCREATE TABLE u (\n  a,\n  b,\n  b\n);\n", "p.sql:8: duplicate column name: b");
    ck_parse("-- on a\nDELETE FROM t;\n\nINSERT INTO t (n)\n  VALUES (1,\n  ;\n",
             "p.sql:11: near \";\": syntax error");
}
END_TEST

/* ---- During the application of events ---- */

static annal_state *state_of(const char *body, annal_pack **out_pack)
{
    struct text text = {0};
    annal_state *state = NULL;
    text_add(&text, HEAD, strlen(HEAD));
    text_add(&text, body, strlen(body));
    ck_ok(annal_pack_parse("p.sql", (annal_slice){text.ptr, text.len}, out_pack, err));
    ck_ok(
        annal__state_new(ANNAL_SLICE("s"), (const annal_pack *const[]){*out_pack}, 1, &state, err));
    free(text.ptr);
    return state;
}

static void apply(annal_state *state, const char *data)
{
    const annal_event event = {.seq = annal_state_seq(state) + 1,
                               .ts_us = 1767684240000000,
                               .type = ANNAL_SLICE("a"),
                               .data = annal_slice_of(data)};
    ck_ok(annal_state_apply(state, &event, err));
}

static void ck_rows(annal_state *state, const char *select, const char *rows)
{
    struct text text = {0};
    text_add(&text, "", 0);
    ck_ok(annal_state_sql(state, annal_slice_of(select), NULL, text_row, &text, err));
    ck_assert_str_eq(text.ptr, rows);
    free(text.ptr);
}

START_TEST(a_payload_that_asks_for_the_time_is_a_finding)
{
    static const char *const asking[] = {
        "{\"f\":\"now\"}",
        "{\"f\":\"NOW\"}",
        "{\"f\":\"subsec\"}",
        "{\"f\":\"2026-01-06\",\"m\":\"localtime\"}",
        "{\"f\":\"2026-01-06\",\"m\":\"UTC\"}",
    };
    annal_pack *pack = NULL;
    annal_state *state = state_of("-- on a\nINSERT INTO t (at) VALUES (datetime($f,"
                                  " COALESCE($m, '+1 day')));\n",
                                  &pack);
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        apply(state, asking[i]);
    ck_assert_uint_eq(annal__state_refused(state), sizeof asking / sizeof *asking);
    apply(state, "{\"f\":\"2026-01-06 10:00\"}");
    apply(state, "{\"f\":\"no time\"}");
    apply(state, "{}");
    ck_assert_uint_eq(annal__state_refused(state), sizeof asking / sizeof *asking);
    ck_rows(state, "SELECT at FROM t", "2026-01-07 10:00:00\n\n\n");
    annal_state_free(state);
    annal_pack_free(pack);
}
END_TEST

START_TEST(a_blob_with_the_bytes_of_now_is_refused_as_now)
{
    annal_pack *pack = NULL;
    annal_state *state =
        state_of("-- on a\nINSERT INTO t (at) VALUES (datetime(x'6e6f77'));\n", &pack);
    apply(state, "{}");
    ck_assert_uint_eq(annal__state_refused(state), 1);
    annal_state_free(state);
    annal_pack_free(pack);
}
END_TEST

START_TEST(an_event_that_relies_on_the_time_as_default_of_a_column_is_a_finding)
{
    annal_pack *pack = NULL;
    annal_state *state = state_of("-- on a\nINSERT INTO d (n) VALUES ($n);\n", &pack);
    apply(state, "{\"n\":1}");
    ck_assert_uint_eq(annal__state_refused(state), 1);
    annal_state_free(state);
    annal_pack_free(pack);
    state = state_of("-- on a\nINSERT INTO d (n, at) VALUES ($n, datetime(:ts));\n", &pack);
    apply(state, "{\"n\":1}");
    ck_assert_uint_eq(annal__state_refused(state), 0);
    ck_rows(state, "SELECT n, at FROM d", "1|2026-01-06 07:24:00\n");
    annal_state_free(state);
    annal_pack_free(pack);
}
END_TEST

/* Without arguments, too. */
START_TEST(no_default_of_a_column_may_be_the_current_time)
{
    static const char *const defaults[] = {"(datetime('now'))", "(datetime())", "(strftime('%s'))",
                                           "CURRENT_TIMESTAMP"};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        char body[200];
        annal_pack *pack = NULL;
        snprintf(body, sizeof body,
                 "CREATE TABLE e (n INTEGER PRIMARY KEY, at TEXT DEFAULT %s);\n"
                 "-- on a\nINSERT INTO e (n) VALUES ($n);\n",
                 defaults[i]);
        annal_state *state = state_of(body, &pack);
        apply(state, "{\"n\":1}");
        ck_assert_msg(annal__state_refused(state) == 1, "%s", defaults[i]);
        annal_state_free(state);
        annal_pack_free(pack);
    }
}
END_TEST

START_TEST(date_functions_return_the_values_of_sqlite)
{
    annal_pack *pack = NULL;
    annal_state *state = state_of("", &pack);
    ck_rows(state,
            "SELECT date('2026-01-06T07:24:00Z'), time('07:24'), julianday('2000-01-01'),"
            " unixepoch('2026-01-06'), strftime('%Y %j', '2026-02-01', 'start of year'),"
            " datetime(NULL), datetime(1767684240, 'unixepoch')",
            "2026-01-06|07:24:00|2.45154e+06|1767657600|2026 001||2026-01-06 07:24:00\n");
    ck_rows(state,
            "SELECT abs(unixepoch() - unixepoch('now')) < 2, abs(unixepoch(CURRENT_TIMESTAMP) -"
            " unixepoch()) < 2, length(strftime('%s')), typeof(random()), length(randomblob(3)),"
            " length(CURRENT_DATE), length(CURRENT_TIME)",
            "1|1|10|integer|3|10|8\n");
    annal_state_free(state);
    annal_pack_free(pack);
}
END_TEST

Suite *suite_permit(void)
{
    Suite *suite = suite_create("permit");
    TCase *all = suite_case(suite, "all", NULL, NULL);
    tcase_add_test(all, a_section_sees_the_tables_of_its_pack_and_no_others);
    tcase_add_test(all, a_pack_may_not_write_internal_tables_of_sqlite);
    tcase_add_test(all, a_section_may_only_read_and_write_rows);
    tcase_add_test(all, only_create_and_insert_are_allowed_when_a_pack_creates_its_tables);
    tcase_add_test(all, creating_tables_may_use_neither_clock_nor_random_values);
    tcase_add_test(all, a_trigger_of_a_pack_has_the_rights_of_a_section);
    tcase_add_test(all, a_pack_that_uses_a_clock_or_random_values_is_refused);
    tcase_add_test(all, a_handler_that_calls_a_date_function_for_the_time_of_now_is_refused);
    tcase_add_test(all, a_message_names_the_line_of_the_mistake_within_its_statement);
    tcase_add_test(all, a_blob_with_the_bytes_of_now_is_refused_as_now);
    tcase_add_test(all, a_payload_that_asks_for_the_time_is_a_finding);
    tcase_add_test(all, an_event_that_relies_on_the_time_as_default_of_a_column_is_a_finding);
    tcase_add_test(all, no_default_of_a_column_may_be_the_current_time);
    tcase_add_test(all, date_functions_return_the_values_of_sqlite);
    return suite;
}
