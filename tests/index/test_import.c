/* SPDX-License-Identifier: Apache-2.0 */
/* Running an importer: its tables and functions, and refusals. The importers themselves:
 * tests/tools. */
#include "index/sys/import.h"
#include "tests/support/runner.h"

#include <annal/import.h>
#include <stdio.h>
#include <string.h>

#define EVENTS                                                                                     \
    "SELECT 's', 0, 'a.b', hash, NULL, json_fields('json', json, 'text', unreadable), n FROM "     \
    "lines "

struct seen {
    int events;
    char data[4096];
    int64_t ts_us;
};

static annal_status see(void *arg, const annal_import_event *event, annal_error *err)
{
    struct seen *seen = arg;
    (void)err;
    seen->events++;
    seen->ts_us = event->draft.ts_us;
    snprintf(seen->data, sizeof seen->data, "%.*s", ANNAL_FMT(event->draft.data));
    return ANNAL_OK;
}

static annal_import *open_import(const char *sql)
{
    annal_import *import = NULL;
    annal_error err = {0};
    annal_import_source source = {.kind = "mine", .file = "log.old.jsonl"};
    ck_assert_msg(annal_import_open(annal_slice_of(sql), &source, &import, &err) == ANNAL_OK, "%s",
                  err.message);
    return import;
}

static annal_status feed(annal_import *import, uint64_t number, const char *line, struct seen *seen,
                         annal_error *err)
{
    annal_import_line one = {.number = number, .bytes = annal_slice_of(line)};
    return annal_import_feed(import, &one, 1, see, seen, err);
}

static void assert_no_import(const char *sql, const char *why)
{
    annal_import *import = NULL;
    annal_error err = {0};
    annal_import_source source = {.kind = "mine", .file = "log.jsonl"};
    ck_assert_int_eq(annal_import_open(annal_slice_of(sql), &source, &import, &err), ANNAL_ERR_SQL);
    ck_assert_msg(strstr(err.message, why) != NULL, "%s", err.message);
    ck_assert_ptr_null(import);
}

START_TEST(sql_that_is_not_an_importer_is_refused)
{
    assert_no_import("", "no SELECT");
    assert_no_import("-- once\nSELECT 1;\n", "no SELECT");
    assert_no_import("-- batch\nSELECT 1;\n", "1 columns");
    assert_no_import("-- once\nCREATE nonsense;\n-- batch\n" EVENTS, "nonsense");
    assert_no_import("-- once\nATTACH '/tmp/x' AS x;\n-- batch\n" EVENTS, "attached");
}
END_TEST

START_TEST(an_importer_without_detection_has_confidence_zero)
{
    annal_import *spare = NULL;
    annal_error err = {0};
    const annal_import_source source = {.kind = "mine", .file = "log.jsonl"};
    const annal_import_line line = {.number = 1, .bytes = ANNAL_SLICE("{}")};
    static const char silent[] = "-- batch\n" EVENTS,
                      sure[] = "-- detect\nSELECT 70\n-- batch\n" EVENTS;
    const struct {
        const char *sql;
        int sure;
    } cases[] = {{silent, 0}, {sure, 70}, {silent, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int got = -1;
        annal_status status = annal__import_detect(&spare, annal_slice_of(cases[i].sql), &source,
                                                   &line, 1, i > 0, &got, &err);
        ck_assert_msg(status == ANNAL_OK, "%s", err.message);
        ck_assert_int_eq(got, cases[i].sure);
    }
    annal_import_close(spare);
}
END_TEST

START_TEST(blank_and_repeated_lines_are_skipped_and_counted)
{
    annal_import *import = open_import("-- batch\n" EVENTS);
    struct seen seen = {0};
    static const char *const lines[] = {"{}", " \t\r", "", "{}", "{ }", "12"};
    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(feed(import, i + 1, lines[i], &seen, NULL), ANNAL_OK);
    annal_import_counts counts = annal_import_counts_get(import);
    ck_assert_uint_eq(counts.imported, 3);
    ck_assert_uint_eq(counts.blank, 2);
    ck_assert_uint_eq(counts.duplicate, 1);
    ck_assert_int_eq(seen.events, 3);
    annal_import_close(import);
}
END_TEST

START_TEST(the_json_of_a_line_is_selected_by_its_row)
{
    annal_import *import =
        open_import("-- batch\n"
                    "SELECT 's', 0, 'a.b', hash, NULL, json_object('row', row, 'same',"
                    "line_json(row) IS json, 'a', line_json(row) ->> '$.a', 'none',"
                    "line_json(row + 1)), n FROM lines");
    struct seen seen = {0};
    annal_import_line lines[] = {{.number = 1, .bytes = annal_slice_of("{\"a\":1}")},
                                 {.number = 2, .bytes = annal_slice_of("no")},
                                 {.number = 3, .bytes = annal_slice_of("{\"a\":3}")}};
    ck_assert_int_eq(annal_import_feed(import, lines, 3, see, &seen, NULL), ANNAL_OK);
    ck_assert_int_eq(seen.events, 3);
    ck_assert_str_eq(seen.data, "{\"row\":3,\"same\":1,\"a\":3,\"none\":null}");
    ck_assert_int_eq(feed(import, 4, "{", &seen, NULL), ANNAL_OK);
    ck_assert_str_eq(seen.data, "{\"row\":1,\"same\":1,\"a\":null,\"none\":null}");
    annal_import_close(import);
}
END_TEST

START_TEST(a_line_that_gives_no_event_is_an_error)
{
    annal_import *import = open_import("-- batch\n" EVENTS "WHERE json IS NOT NULL;\n");
    struct seen seen = {0};
    annal_error err = {0};
    ck_assert_int_eq(feed(import, 1, "{}", &seen, &err), ANNAL_OK);
    ck_assert_int_eq(feed(import, 2, "no", &seen, &err), ANNAL_ERR_SQL);
    ck_assert_ptr_nonnull(strstr(err.message, "line 2 yielded no event"));
    ck_assert_int_eq(feed(import, 3, "{}", &seen, &err), ANNAL_ERR_CLOSED);
    annal_import_close(import);
}
END_TEST

START_TEST(json_too_deep_for_an_event_is_kept_as_text)
{
    annal_import *import = open_import("-- batch\n" EVENTS);
    struct seen seen = {0};
    char line[1100] = "";
    memset(line, '[', 510);
    memset(line + 510, ']', 510);
    ck_assert_int_eq(feed(import, 1, line, &seen, NULL), ANNAL_OK);
    ck_assert_ptr_nonnull(strstr(seen.data, "{\"text\":{\"reason\":"));
    ck_assert_ptr_nonnull(strstr(seen.data, "\"text\":\"[[[["));
    annal_import_close(import);
}
END_TEST

START_TEST(an_event_without_time_does_not_get_the_time_of_the_import)
{
    annal_import *import = open_import("-- batch\n" EVENTS);
    struct seen seen = {0};
    ck_assert_int_eq(feed(import, 1, "{}", &seen, NULL), ANNAL_OK);
    ck_assert_int_eq(seen.ts_us, 1);
    annal_import_close(import);
}
END_TEST

START_TEST(an_importer_reads_the_table_source_and_calls_its_functions)
{
    annal_import *import = open_import("-- batch\nSELECT 's', 5, 'a', NULL, NULL, json_fields("
                                       "'stem', (SELECT json_text(stem) FROM source), 'none', "
                                       "NULL, 'good', json_text(session_id('a-1')), "
                                       "'time', time_us('1970-01-01T00:00:01Z'), 'no_time', "
                                       "time_us('soon'), 'odd', json_text(x'0A')), n "
                                       "FROM lines;");
    struct seen seen = {0};
    ck_assert_int_eq(feed(import, 1, "1", &seen, NULL), ANNAL_OK);
    ck_assert_str_eq(seen.data,
                     "{\"stem\":\"log.old\",\"good\":\"a-1\",\"time\":1000000,\"odd\":\"\\n\"}");
    annal_import_close(import);
}
END_TEST

START_TEST(ids_are_remembered_per_session)
{
    annal_import *import = open_import("-- batch\n" EVENTS);
    bool known = true;
    ck_assert_int_eq(annal__import_remember(import, ANNAL_SLICE("a"), ANNAL_SLICE("1"), NULL),
                     ANNAL_OK);
    ck_assert_int_eq(annal__import_knows(import, ANNAL_SLICE("b"), ANNAL_SLICE("1"), &known, NULL),
                     ANNAL_OK);
    ck_assert(!known);
    ck_assert_int_eq(annal__import_knows(import, ANNAL_SLICE("a"), ANNAL_SLICE("1"), &known, NULL),
                     ANNAL_OK);
    ck_assert(known);
    annal_import_close(import);
}
END_TEST

START_TEST(a_line_on_which_a_trigger_fails_is_kept_and_the_next_line_is_imported)
{
    annal_import *import = open_import(
        "-- once\nCREATE TABLE out (n, hash, data);\n"
        "CREATE TRIGGER line AFTER INSERT ON lines BEGIN\n"
        "INSERT INTO out VALUES (NEW.n, NEW.hash, coalesce(NEW.unreadable, json(NEW.json ->> "
        "'$.a')));\n"
        "END;\n-- batch\n"
        "SELECT 's', 0, 'a.b', hash, NULL, data, n FROM out ORDER BY n;\nDELETE FROM out;\n");
    struct seen seen = {0};
    ck_assert_int_eq(feed(import, 1, "{\"a\":\"no JSON\"}", &seen, NULL), ANNAL_OK);
    ck_assert_int_eq(seen.events, 1);
    ck_assert_str_eq(
        seen.data,
        "{\"reason\":\"the importer failed on it\",\"text\":\"{\\\"a\\\":\\\"no JSON\\\"}\"}");
    ck_assert_int_eq(feed(import, 2, "{\"a\":\"[1]\"}", &seen, NULL), ANNAL_OK);
    ck_assert_str_eq(seen.data, "[1]");
    ck_assert_uint_eq(annal_import_counts_get(import).imported, 2);
    annal_import_close(import);
}
END_TEST

static annal_status see_id(void *arg, const annal_import_event *event, annal_error *err)
{
    return annal_draft_check(&event->draft, err) < 0 ? ANNAL_ERR_INVALID : see(arg, event, err);
}

START_TEST(an_invalid_event_id_is_replaced_by_its_hash)
{
    annal_import *import =
        open_import("-- batch\nSELECT 's', 0, 'a.b', json ->> '$.id', NULL, json, n FROM lines");
    struct seen seen = {0};
    const annal_import_line line = {.number = 1, .bytes = ANNAL_SLICE("{\"id\":{\"a\":\"b\\n\"}}")};
    ck_assert_int_eq(annal_import_feed(import, &line, 1, see_id, &seen, NULL), ANNAL_OK);
    ck_assert_int_eq(seen.events, 1);
    annal_import_close(import);
}
END_TEST

Suite *suite_import(void)
{
    Suite *suite = suite_create("import");
    TCase *import = suite_case(suite, "import", NULL, NULL);
    tcase_add_test(import, sql_that_is_not_an_importer_is_refused);
    tcase_add_test(import, an_importer_without_detection_has_confidence_zero);
    tcase_add_test(import, a_line_on_which_a_trigger_fails_is_kept_and_the_next_line_is_imported);
    tcase_add_test(import, an_invalid_event_id_is_replaced_by_its_hash);
    tcase_add_test(import, blank_and_repeated_lines_are_skipped_and_counted);
    tcase_add_test(import, the_json_of_a_line_is_selected_by_its_row);
    tcase_add_test(import, a_line_that_gives_no_event_is_an_error);
    tcase_add_test(import, json_too_deep_for_an_event_is_kept_as_text);
    tcase_add_test(import, an_event_without_time_does_not_get_the_time_of_the_import);
    tcase_add_test(import, an_importer_reads_the_table_source_and_calls_its_functions);
    tcase_add_test(import, ids_are_remembered_per_session);
    return suite;
}
