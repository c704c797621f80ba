/* SPDX-License-Identifier: Apache-2.0 */
/* An import costs in proportion to the number and length of its lines, not to their square. */
#include "index/sys/import.h"
#include "journal/base/buf.h"
#include "tests/support/runner.h"
#include "tools/import/importers.h"

#include <annal/import.h>

#include <string.h>
#include <time.h>

/* A log four times as long costs about four times as much; a square would cost sixteen times. */
#define TIMES 4
#define MOST  9

struct shape {
    const char *kind, *begin, *item, *end; /* item: # is its number */
    unsigned count;
    bool is_lines; /* each item is a line */
};

#define SPANS   "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":["
#define ENDED   "]}]}]}"
#define CHAT    "{\"key\":\"gen_ai.operation.name\",\"value\":{\"stringValue\":\"chat\"}}"
#define KEY(k)  ",{\"key\":\"" k "#\",\"value\":{\"stringValue\":\"x\"}}"
#define ONE     SPANS "{\"traceId\":\"ab\",\"spanId\":\"cd\",\"attributes\":[" CHAT
#define DETAILS "{\"name\":\"gen_ai.client.inference.operation.details\",\"attributes\":[" CHAT
#define PROMPT  ",{\"key\":\"gen_ai.prompt.#.content\",\"value\":{\"stringValue\":\"x#\"}}"

static const struct shape shapes[] = {
    {"otel", SPANS "{}", ",{}", ENDED, 8000, false},
    {"otel", "{\"resourceSpans\":[{\"scopeSpans\":[{}", ",{}", "]}]}", 70000, false},
    {"otel", SPANS "{}",
     ",{\"traceId\":\"ab\",\"spanId\":\"#\",\"name\":\"a name of some length\"}", ENDED, 2500,
     false},
    {"otel", SPANS "{}", ",{\"traceId\":\"#\",\"spanId\":\"#\",\"name\":\"n\"}", ENDED, 500, false},
    {"otel", ONE, KEY("k"), "]}" ENDED, 2000, false},
    {"otel", ONE, PROMPT, "]}" ENDED, 700, false},
    {"otel", ONE "],\"events\":[" DETAILS, KEY("e"), "]}]}" ENDED, 1200, false},
    {"otel", "", SPANS "{\"traceId\":\"#\",\"spanId\":\"#\",\"name\":\"n\"}" ENDED "\n", "", 150,
     true},
    {"otel-logs", "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{}", ",{\"traceId\":\"#\"}",
     ENDED, 800, false},
    {"otel-logs", "",
     "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"traceId\":\"#\"}" ENDED "\n", "", 300,
     true},
    {"otel-logs", "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{}",
     ",{\"traceId\":\"ab\",\"spanId\":\"#\",\"attributes\":[" CHAT KEY("k") "]}", ENDED, 800,
     false},
    {"pi", "",
     "{\"type\":\"message\",\"id\":\"#\",\"parentId\":\"1\",\"message\":{\"role\":\"user\","
     "\"content\":\"x\"}}\n",
     "", 150, true},
    {"claude-code", "",
     "{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"#\",\"parentUuid\":\"x\",\"message\":"
     "{\"role\":\"user\",\"content\":\"x\"}}\n",
     "", 150, true},
    {"codex", "",
     "{\"type\":\"event_msg\",\"payload\":{\"type\":\"user_message\",\"message\":\"#\"}}\n", "",
     150, true},
};

static annal_status ignore(void *arg, const annal_import_event *event, annal_error *err)
{
    (void)event;
    (void)err;
    ++*(unsigned *)arg;
    return ANNAL_OK;
}

/* Its number stands for each #. */
static void put_item(struct buf *text, const char *item, unsigned number)
{
    for (; *item != '\0'; item++)
        ck_assert_int_ge(*item == '#' ? annal__buf_printf(text, "%u", number)
                                      : annal__buf_append(text, item, 1),
                         0);
}

/* Processor time in seconds, without other processes. */
static double cost(const struct shape *shape, unsigned count)
{
    struct importer importer = {0};
    annal_import *import = NULL;
    annal_error err = {0};
    struct buf text = {0};
    struct timespec begin, end;
    unsigned events = 0;
    ck_assert(importer_find(shape->kind, &importer));
    const annal_import_source source = {.kind = shape->kind, .file = "x.jsonl"};
    ck_assert_int_eq(annal_import_open(importer.sql, &source, &import, &err), ANNAL_OK);
    ck_assert_int_ge(annal__buf_printf(&text, "%s", shape->begin), 0);
    for (unsigned i = 0; i < count; i++)
        put_item(&text, shape->item, i + 1);
    ck_assert_int_ge(annal__buf_printf(&text, "%s", shape->end), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    uint64_t number = 0;
    for (size_t at = 0, to; at < text.len; at = to + 1) {
        const char *newline = shape->is_lines ? memchr(text.ptr + at, '\n', text.len - at) : NULL;
        to = newline == NULL ? text.len : (size_t)(newline - text.ptr);
        const annal_import_line line = {.number = ++number, .bytes = {text.ptr + at, to - at}};
        ck_assert_msg(annal_import_feed(import, &line, 1, ignore, &events, &err) >= 0, "%s",
                      err.message);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    ck_assert_uint_gt(events, 0);
    annal_import_close(import);
    annal__buf_done(&text);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

static void ck_grows(size_t i)
{
    const struct shape *shape = &shapes[i];
    double least = 1e9;
    for (int round = 0; round < 3 && least > MOST; round++) {
        double once = cost(shape, shape->count), more = cost(shape, TIMES * shape->count);
        least = more / once < least ? more / once : least;
    }
    ck_assert_msg(least <= MOST, "shape %zu: %.1f times as much", i, least);
}

START_TEST(a_log_four_times_as_long_costs_about_four_times_as_much)
{
    ck_grows(2);
    ck_grows(5);
    ck_grows(10);
    ck_grows(11);
}
END_TEST

START_TEST(each_part_of_a_line_costs_no_more_than_its_length)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        ck_grows(i);
}
END_TEST

/* Compiling it takes longer than reading a small log. */
START_TEST(an_importer_is_compiled_once_for_all_logs_of_its_kind)
{
    for (size_t i = 0; importer_texts[i].kind != NULL; i++) {
        struct importer importer = {0};
        annal_import *import = NULL;
        annal_error err = {0};
        if (!importer_find(importer_texts[i].kind, &importer))
            continue;
        const annal_import_source source = {.kind = importer.kind, .file = "x.jsonl"};
        ck_assert_int_eq(annal_import_open(importer.sql, &source, &import, &err), ANNAL_OK);
        for (int again = 0; again < 2; again++)
            ck_assert_msg(annal__import_again(import, &source, &err) == ANNAL_OK, "%s: %s",
                          importer.kind, err.message);
        annal_import_close(import);
    }
}
END_TEST

Suite *suite_import_cost(void)
{
    Suite *suite = suite_create("import_cost");
    TCase *tc = tcase_create("import_cost");
    tcase_add_test(tc, a_log_four_times_as_long_costs_about_four_times_as_much);
    tcase_add_test(tc, an_importer_is_compiled_once_for_all_logs_of_its_kind);
    tcase_add_long_test(tc, each_part_of_a_line_costs_no_more_than_its_length);
    suite_add_tcase(suite, tc);
    return suite;
}
