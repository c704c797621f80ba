/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the importers, tools/import/formats/<kind>.sql: the events of each line. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tests/tools/import/import_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = {"claude-code", "codex", "aider"};
#define KINDS       2 /* kinds of JSON lines */
#define KINDS_LINES 3 /* also of lines of text */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* ---- Rules that hold for every log ---- */

static void assert_same(const struct imported *a, const struct imported *b, const char *path)
{
    ck_assert_msg(a->text.len == b->text.len &&
                      (a->text.len == 0 || memcmp(a->text.ptr, b->text.ptr, a->text.len) == 0),
                  "%s: batches that end elsewhere give something else", path);
}

static void compare_batches(const char *kind, const char *path, annal_slice bytes)
{
    static const size_t batches[] = {1, 2, 3, 7};
    struct imported whole, other;
    import_log(kind, base_name(path), bytes, 1000, 0, &whole);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        import_log(kind, base_name(path), bytes, batches[i], 0, &other);
        assert_same(&whole, &other, path);
        imported_done(&other);
    }
    imported_done(&whole);
}

START_TEST(the_size_of_a_batch_changes_no_event)
{
    for_each_log(kinds[_i], false, compare_batches);
}
END_TEST

static void compare_prefixes(const char *kind, const char *path, annal_slice bytes)
{
    struct imported whole, part;
    import_log(kind, base_name(path), bytes, 100000, 0, &whole);
    for (size_t lines = 1; lines < whole.lines; lines++) {
        import_log(kind, base_name(path), bytes, 3, lines, &part);
        ck_assert_msg(part.text.len <= whole.text.len &&
                          memcmp(part.text.ptr, whole.text.ptr, part.text.len) == 0,
                      "%s: the first %zu lines give something else than in the whole file", path,
                      lines);
        imported_done(&part);
    }
    imported_done(&whole);
}

START_TEST(events_of_the_first_lines_stay_when_more_lines_arrive)
{
    for_each_log(kinds[_i], false, compare_prefixes);
}
END_TEST

/* ---- Nothing is lost ---- */

struct values {
    annal_slice *all;
    size_t count;
    size_t capacity;
};

static void add_value(struct values *values, const char *ptr, size_t len)
{
    if (values->count == values->capacity) {
        values->capacity = values->capacity * 2 + 256;
        values->all = realloc(values->all, values->capacity * sizeof *values->all);
        ck_assert_ptr_nonnull(values->all);
    }
    values->all[values->count++] = (annal_slice){ptr, len};
}

/* Collect the texts of the scalar values of a JSON text, without the names of members. */
static void collect_values(struct values *values, const char *at, const char *end)
{
    while (at < end) {
        const char *begin = at;
        if (*at == '"') {
            for (at++; *at != '"'; at++)
                at += *at == '\\';
            at++;
            const char *next = at;
            while (next < end && (*next == ' ' || *next == '\t'))
                next++;
            if (next == end || *next != ':')
                add_value(values, begin, (size_t)(at - begin));
        } else if (strchr("{}[],: \t\r\n", *at) != NULL) {
            at++;
        } else {
            at += strcspn(at, "}], \t\r\n");
            at = at < end ? at : end;
            add_value(values, begin, (size_t)(at - begin));
        }
    }
}

static int compare_values(const void *a, const void *b)
{
    const annal_slice *x = a, *y = b;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->ptr, y->ptr, len);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

/* Assert that the events hold each value of the line, as often as the line, byte for byte. */
static void check_line(const char *path, const struct imported *got, size_t first, size_t behind,
                       annal_slice line)
{
    struct values want = {0}, have = {0};
    collect_values(&want, line.ptr, line.ptr + line.len);
    const char *begin = got->text.ptr + got->events[first].data;
    for (size_t i = first; i < behind; i++) {
        begin = got->text.ptr + got->events[i].data;
        collect_values(&have, begin, strchr(begin, '\n'));
    }
    if (want.count > 0)
        qsort(want.all, want.count, sizeof *want.all, compare_values);
    if (have.count > 0)
        qsort(have.all, have.count, sizeof *have.all, compare_values);
    size_t at = 0;
    for (size_t i = 0; i < want.count; i++, at++) {
        while (at < have.count && compare_values(&have.all[at], &want.all[i]) < 0)
            at++;
        ck_assert_msg(at < have.count && compare_values(&have.all[at], &want.all[i]) == 0,
                      "%s: line %llu: %.*s is lost", path,
                      (unsigned long long)got->events[first].line, ANNAL_FMT(want.all[i]));
    }
    free(want.all);
    free(have.all);
}

static void assert_lossless(const struct imported *got, const char *path, annal_slice bytes)
{
    uint64_t number = 1, gave = 0;
    for (size_t i = 0; i < got->count; gave++) {
        size_t behind = i;
        while (behind < got->count && got->events[behind].line == got->events[i].line)
            behind++;
        for (; number < got->events[i].line; number++) {
            size_t skip =
                (size_t)((const char *)memchr(bytes.ptr, '\n', bytes.len) - bytes.ptr) + 1;
            bytes = (annal_slice){bytes.ptr + skip, bytes.len - skip};
        }
        const char *newline = memchr(bytes.ptr, '\n', bytes.len);
        size_t len = newline != NULL ? (size_t)(newline - bytes.ptr) : bytes.len;
        if (strcmp(got->events[behind - 1].type, "import.unreadable") != 0)
            check_line(path, got, i, behind, (annal_slice){bytes.ptr, len});
        i = behind;
    }
    ck_assert_uint_eq(gave, got->counts.imported);
    ck_assert_uint_eq(got->counts.imported + got->counts.blank + got->counts.duplicate, got->lines);
}

static void check_lossless(const char *kind, const char *path, annal_slice bytes)
{
    struct imported got;
    import_log(kind, base_name(path), bytes, 500, 0, &got);
    assert_lossless(&got, path, bytes);
    imported_done(&got);
}

START_TEST(every_line_is_skipped_or_its_events_hold_all_its_values)
{
    for_each_log(kinds[_i], false, check_lossless);
}
END_TEST

/* ---- Tokens ---- */

static long long number_after(const char *data, const char *name)
{
    const char *at = strstr(data, name);
    return at != NULL ? strtoll(at + strlen(name), NULL, 10) : 0;
}

static void count_by_hand(const char *kind, const char *path, char out[200])
{
    char command[8192];
    snprintf(command, sizeof command, "'%s/tests/tools/import/count_tokens.sh' %s '%s'",
             ANNAL_SOURCE, kind, path);
    FILE *pipe = popen(command, "re");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_ptr_nonnull(fgets(out, 200, pipe));
    ck_assert_int_eq(pclose(pipe), 0);
    out[strcspn(out, "\n")] = '\0';
}

static void assert_tokens(const struct imported *got, const char *kind, const char *path)
{
    char counted[200] = "", summed[200];
    long long input = 0, output = 0, cached = 0, written = 0, total = 0;
    for (size_t i = 0; i < got->count; i++) {
        if (strcmp(got->events[i].type, "agent.turn.usage") != 0)
            continue;
        char *data = imported_data(got, i);
        input += number_after(data, "\"input_tokens\":");
        output += number_after(data, "\"output_tokens\":");
        cached += number_after(data, "\"cached_input_tokens\":");
        written += number_after(data, "\"cache_write_tokens\":");
        total += number_after(data, "\"total_tokens\":");
        free(data);
    }
    snprintf(summed, sizeof summed, "%lld %lld %lld %lld", input, output, cached, written);
    count_by_hand(kind, path, counted);
    ck_assert_msg(strcmp(summed, counted) == 0, "%s: events say %s, jq counts %s", path, summed,
                  counted);
    ck_assert_int_eq(total, input + output);
}

static bool can_count(void)
{
    bool can = system("command -v jq >/dev/null 2>&1") == 0;
    if (!can)
        puts("skipped: no jq here to count tokens with");
    return can;
}

static void check_tokens(const char *kind, const char *path, annal_slice bytes)
{
    struct imported got;
    import_log(kind, base_name(path), bytes, 500, 0, &got);
    assert_tokens(&got, kind, path);
    imported_done(&got);
}

START_TEST(an_import_counts_the_same_tokens_as_jq)
{
    if (can_count())
        for_each_log(kinds[_i], false, check_tokens);
}
END_TEST

/* ---- All of it, on real logs ---- */

static void check_all(const char *kind, const char *path, annal_slice bytes)
{
    struct imported whole, single;
    import_log(kind, base_name(path), bytes, 500, 0, &whole);
    import_log(kind, base_name(path), bytes, 1, 0, &single);
    assert_same(&whole, &single, path);
    imported_done(&single);
    assert_lossless(&whole, path, bytes);
    if (can_count())
        assert_tokens(&whole, kind, path);
    imported_done(&whole);
}

START_TEST(real_logs_lose_nothing_with_any_batch_size_and_their_tokens_are_right)
{
    for_each_log(kinds[_i], true, check_all);
}
END_TEST

/* ---- What a line becomes ---- */

static void import_text(const char *kind, const char *name, const char *text, struct imported *out)
{
    import_log(kind, name, annal_slice_of(text), 500, 0, out);
}

#define ASSERT_DATA(imported, i, part)                                                             \
    do {                                                                                           \
        char *data = imported_data(imported, i);                                                   \
        ck_assert_msg(strstr(data, part) != NULL, "%s is not in %s", part, data);                  \
        free(data);                                                                                \
    } while (0)

#define PLACE "\"sessionId\":\"s-1\",\"timestamp\":\"2026-01-02T03:04:05.678Z\","

START_TEST(repeated_usage_of_a_message_counts_once_with_its_largest_value)
{
    struct imported got;
    import_text(
        "claude-code", "s-1.jsonl",
        "{" PLACE "\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[],"
        "\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":5,\"output_tokens\":1}}}\n"
        "{" PLACE "\"type\":\"assistant\",\"n\":2,\"message\":{\"id\":\"m\",\"content\":[],"
        "\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":5,\"output_tokens\":1}}}\n"
        "{" PLACE "\"type\":\"assistant\",\"n\":3,\"message\":{\"id\":\"m\",\"content\":[],"
        "\"usage\":{\"input_tokens\":4,\"cache_read_input_tokens\":5,\"output_tokens\":9}}}\n",
        &got);
    ck_assert_uint_eq(imported_count(&got, NULL, "agent.turn.usage"), 2);
    size_t first = imported_find(&got, "agent.turn.usage", 0);
    size_t second = imported_find(&got, "agent.turn.usage", 1);
    ASSERT_DATA(&got, first, "\"input_tokens\":8,\"output_tokens\":1,\"cached_input_tokens\":5");
    ASSERT_DATA(&got, second, "\"input_tokens\":1,\"output_tokens\":8,\"cached_input_tokens\":0");
    ck_assert_uint_eq(got.events[second].line, 3);
    imported_done(&got);
}
END_TEST

START_TEST(a_side_chain_becomes_a_child_session_that_names_its_parent)
{
    struct imported got;
    import_text(
        "claude-code", "s-1.jsonl",
        "{" PLACE "\"type\":\"user\",\"uuid\":\"u1\",\"isSidechain\":true,\"parentUuid\":null,"
        "\"message\":{\"role\":\"user\",\"content\":\"look\"}}\n"
        "{" PLACE "\"type\":\"assistant\",\"uuid\":\"u2\",\"isSidechain\":true,"
        "\"parentUuid\":\"u1\",\"message\":{\"role\":\"assistant\",\"content\":\"seen\"}}\n"
        "{" PLACE "\"type\":\"user\",\"uuid\":\"u3\",\"isSidechain\":true,\"agentId\":\"a7\","
        "\"message\":{\"role\":\"user\",\"content\":\"look\"}}\n",
        &got);
    ck_assert_uint_eq(imported_count(&got, "s-1.side-u1", "message.added"), 2);
    ck_assert_uint_eq(imported_count(&got, "s-1.agent-a7", "message.added"), 1);
    ck_assert_uint_eq(imported_count(&got, NULL, "session.created"), 2);
    ck_assert_uint_eq(imported_count(&got, NULL, "turn.started"), 0);
    ASSERT_DATA(&got, imported_find(&got, "session.created", 0), "\"parent_session_id\":\"s-1\"");
    ASSERT_DATA(&got, imported_find(&got, "session.created", 1), "\"parent_session_id\":\"s-1\"");
    imported_done(&got);
}
END_TEST

START_TEST(each_tool_block_of_a_line_is_an_event)
{
    struct imported got;
    import_text(
        "claude-code", "s-1.jsonl",
        "{" PLACE "\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":["
        "{\"type\":\"text\",\"text\":\"now\"},"
        "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"A\",\"input\":{\"x\":1e400}},"
        "{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"B\",\"input\":{}}]}}\n"
        "{" PLACE "\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":["
        "{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":\"no\",\"is_error\":true},"
        "{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"yes\"}]}}\n",
        &got);
    ck_assert_uint_eq(imported_count(&got, "s-1", "message.added"), 1);
    ck_assert_uint_eq(imported_count(&got, "s-1", "tool.called"), 2);
    ASSERT_DATA(&got, imported_find(&got, "message.added", 0),
                "\"content\":[{\"type\":\"text\",\"text\":\"now\"}]");
    ASSERT_DATA(&got, imported_find(&got, "tool.called", 0),
                "{\"call_id\":\"t1\",\"tool\":\"A\",\"input\":{\"x\":1e400}");
    ASSERT_DATA(&got, imported_find(&got, "tool.failed", 0),
                "{\"call_id\":\"t2\",\"success\":false,\"output\":\"no\"");
    ASSERT_DATA(&got, imported_find(&got, "tool.returned", 0),
                "{\"call_id\":\"t1\",\"success\":true,\"output\":\"yes\"");
    imported_done(&got);
}
END_TEST

#define CALL(uuid)                                                                                 \
    "{" PLACE "\"type\":\"assistant\",\"uuid\":\"" uuid "\",\"message\":{\"content\":["            \
    "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"A\",\"input\":{}}]}}\n"
#define RESULT(uuid)                                                                               \
    "{" PLACE "\"type\":\"user\",\"uuid\":\"" uuid "\",\"message\":{\"content\":["                 \
    "{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"is_error\":true}]}}\n"

START_TEST(a_call_that_a_resumed_session_copied_is_one_call)
{
    struct imported got;
    import_text("claude-code", "s-1.jsonl", CALL("u1") RESULT("u2") CALL("u3") RESULT("u4"), &got);
    ck_assert_uint_eq(imported_count(&got, "s-1", "tool.called"), 1);
    ck_assert_uint_eq(imported_count(&got, "s-1", "tool.failed"), 1);
    ck_assert_uint_eq(imported_count(&got, "s-1", "import.record"), 2);
    ASSERT_DATA(&got, imported_find(&got, "import.record", 0), "\"record\":\"u3\"");
    imported_done(&got);
}
END_TEST

START_TEST(a_line_that_is_not_json_is_kept_as_text_or_base64)
{
    struct imported got;
    for (int i = 0; i < KINDS; i++) {
        import_text(kinds[i], "s-1.jsonl", "// a \"comment\"\n{\"a\":1},[2]\n\xFF\xFE\n{\"a\":\n",
                    &got);
        ck_assert_uint_eq(imported_count(&got, "s-1", "import.unreadable"), 4);
        ASSERT_DATA(&got, imported_find(&got, "import.unreadable", 0),
                    "\"text\":\"// a \\\"comment\\\"\"");
        ASSERT_DATA(&got, imported_find(&got, "import.unreadable", 1),
                    "\"text\":\"{\\\"a\\\":1},[2]\"");
        ASSERT_DATA(&got, imported_find(&got, "import.unreadable", 2), "\"base64\":\"//4=\"");
        ASSERT_DATA(&got, imported_find(&got, "import.unreadable", 3), "\"line\":4}");
        imported_done(&got);
    }
}
END_TEST

START_TEST(any_json_value_is_a_record_of_the_log)
{
    static const char *const lines[] = {
        "12",
        "null",
        "[1,{\"type\":\"user\"}]",
        "\"\\ud800\"",
        "{}",
        "{\"type\":{\"a\":1}}",
        "{\"type\":\"user\",\"message\":7}",
        "{\"type\":\"user\",\"message\":{\"content\":[1,\"a\",[]]}}",
        ("{\"type\":\"assistant\",\"message\":{\"usage\":{\"input_tokens\":1e400,\"output_tokens\":"
         "\"x\"}}}"),
        "{\"type\":\"response_item\",\"payload\":\"x\"}",
        "{\"type\":\"event_msg\",\"payload\":null}",
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":[]}}",
        "{\"type\":\"session_meta\",\"payload\":{}}",
        "{\"type\":\"system\",\"subtype\":\"turn_duration\"}",
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"task_complete\"}}",
        "{\"a\":1,\"a\":2}"};
    struct imported got;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        for (int k = 0; k < KINDS; k++) {
            import_text(kinds[k], "s-1.jsonl", lines[i], &got);
            ck_assert_uint_eq(got.counts.imported, 1);
            ck_assert_uint_eq(imported_count(&got, "s-1", "session.created"), 1);
            ck_assert_uint_ge(got.count, 2);
            check_line(lines[i], &got, 0, got.count, annal_slice_of(lines[i]));
            imported_done(&got);
        }
    }
}
END_TEST

START_TEST(a_line_without_time_gets_the_time_of_the_previous_line)
{
    struct imported got;
    import_text("claude-code", "s-1.jsonl",
                "{\"type\":\"mode\",\"sessionId\":\"s-1\"}\n{" PLACE "\"type\":\"x\"}\n"
                "{\"type\":\"last-prompt\",\"sessionId\":\"s-1\"}\n",
                &got);
    int64_t time_us = 0;
    ck_assert_int_eq(annal_time_parse(ANNAL_SLICE("2026-01-02T03:04:05.678Z"), &time_us, NULL), 0);
    ck_assert_int_eq(got.events[0].ts_us, 1);
    ck_assert_int_eq(got.events[got.count - 1].ts_us, time_us);
    ASSERT_DATA(&got, imported_find(&got, "session.updated", 0),
                "{\"set\":{\"created_at\":\"2026-01-02T03:04:05.678Z\"}");
    imported_done(&got);
}
END_TEST

START_TEST(an_invalid_session_id_is_replaced_and_its_original_kept)
{
    struct imported got;
    import_text("claude-code", "f.jsonl", "{\"type\":\"user\",\"sessionId\":\"../x y\"}", &got);
    ck_assert_int_eq(strncmp(got.events[0].session, "_._x_y-", 7), 0);
    ck_assert_int_eq(annal_session_id_check(annal_slice_of(got.events[0].session), NULL), ANNAL_OK);
    ASSERT_DATA(&got, imported_find(&got, "import.record", 0), "\"sessionId\":\"../x y\"");
    imported_done(&got);
}
END_TEST

START_TEST(a_codex_count_that_falls_starts_from_zero)
{
    static const char text[] =
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":{\"total_token_"
        "usage\":"
        "{\"input_tokens\":100,\"output_tokens\":10,\"total_tokens\":110}}}}\n"
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":{\"total_token_"
        "usage\":"
        "{\"input_tokens\":150,\"output_tokens\":12,\"total_tokens\":162}}}}\n"
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":{\"total_token_"
        "usage\":"
        "{\"input_tokens\":7,\"output_tokens\":1,\"total_tokens\":8}}}}\n";
    struct imported got;
    import_text("codex", "s-1.jsonl", text, &got);
    ck_assert_uint_eq(imported_count(&got, "s-1", "agent.turn.usage"), 3);
    ASSERT_DATA(&got, imported_find(&got, "agent.turn.usage", 0),
                "\"input_tokens\":100,\"output_tokens\":10,");
    ASSERT_DATA(&got, imported_find(&got, "agent.turn.usage", 1),
                "\"input_tokens\":50,\"output_tokens\":2,");
    ASSERT_DATA(&got, imported_find(&got, "agent.turn.usage", 2),
                "\"input_tokens\":7,\"output_tokens\":1,");
    imported_done(&got);
}
END_TEST

#define FORK "rollout-2026-03-05T10-00-00-019cb377-ea00-7000-8000-000000000002.jsonl"
#define COUNT(at, input, total)                                                                    \
    "{\"timestamp\":\"2026-03-05T10:00:" at                                                        \
    "Z\",\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":{"                  \
    "\"total_token_usage\":{\"input_tokens\":" input                                               \
    ",\"output_tokens\":0,\"total_tokens\":" input                                                 \
    "},\"last_token_usage\":{\"input_tokens\":" total ",\"output_tokens\":0}}}}\n"

/* The head of a fork, as Codex writes it: the lines of the copy have the time of the copy. */
#define FORK_META                                                                                  \
    "{\"timestamp\":\"2026-03-05T10:00:00.010Z\",\"type\":\"session_meta\",\"payload\":{"          \
    "\"id\":\"019cb377-ea00-7000-8000-000000000002\",\"timestamp\":\"2026-03-05T10:00:00.000Z\","  \
    "\"forked_from_id\":\"019cb340-0000-7000-8000-000000000001\"}}\n"
#define PARENT_META                                                                                \
    "{\"timestamp\":\"2026-03-05T10:00:00.011Z\",\"type\":\"session_meta\",\"payload\":{"          \
    "\"id\":\"019cb340-0000-7000-8000-000000000001\",\"timestamp\":\"2026-03-05T09:00:00.000Z\"}}" \
    "\n"

/* The copied turn, and the fork's own turn, which begins at once. parent and own: the members that
 * date each turn. */
#define FORK_TURNS(parent, own)                                                                    \
    FORK_META PARENT_META                                                                          \
        "{\"timestamp\":\"2026-03-05T10:00:00.012Z\",\"type\":\"event_msg\",\"payload\":{"         \
        "\"type\":\"task_started\"" parent "}}\n" COUNT("00.012", "1000", "600")                   \
            COUNT("00.013", "1500", "500") "{\"timestamp\":\"2026-03-05T10:00:00.050Z\","          \
                                           "\"type\":\"event_msg\",\"payload\":{"                  \
                                           "\"type\":\"task_started\"" own                         \
                                           "}}\n" COUNT("04", "1700", "200")

static const char *const fork_logs[] = {
    FORK_TURNS(",\"turn_id\":\"019cb341-0000-7000-8000-00000000000a\"",
               ",\"turn_id\":\"019cb377-ea40-7000-8000-00000000000b\""),
    FORK_TURNS(",\"turn_id\":\"t-1\",\"started_at\":1772701260",
               ",\"turn_id\":\"t-2\",\"started_at\":1772704800"),
    /* No turn is dated, but the user took a while to answer. */
    FORK_META PARENT_META
    "{\"timestamp\":\"2026-03-05T10:00:00.012Z\",\"type\":\"event_msg\",\"payload\":{"
    "\"type\":\"user_message\",\"message\":\"a\"}}\n" COUNT("00.012", "1000", "600")
        COUNT("00.013", "1500", "500") "{\"timestamp\":\"2026-03-05T10:00:03Z\",\"type\":"
                                       "\"event_msg\",\"payload\":{\"type\":\"user_message\","
                                       "\"message\":\"b\"}}\n" COUNT("04", "1700", "200"),
    /* The copy has no counts, and the fork still counts on from the parent's total. */
    FORK_META PARENT_META
    "{\"timestamp\":\"2026-03-05T10:00:00.050Z\",\"type\":\"turn_context\",\"payload\":{"
    "\"turn_id\":\"019cb377-ea40-7000-8000-00000000000b\"}}\n" COUNT("04", "1700", "200"),
};

START_TEST(a_codex_fork_counts_its_own_tokens_only)
{
    struct imported got, single;
    import_text("codex", FORK, fork_logs[_i], &got);
    ck_assert_uint_eq(imported_count(&got, NULL, "agent.turn.usage"), 1);
    size_t own = imported_find(&got, "agent.turn.usage", 0);
    ASSERT_DATA(&got, own, "\"input_tokens\":200,");
    char *data = imported_data(&got, own), *meta = imported_data(&got, 1);
    ck_assert_ptr_null(strstr(data, "\"copied\""));
    ck_assert_ptr_nonnull(strstr(meta, "\"line\":2,\"record\":\"019cb340-0000-7000-8000-"
                                       "000000000001\",\"copied\":true}"));
    import_log("codex", FORK, annal_slice_of(fork_logs[_i]), 1, 0, &single);
    assert_same(&got, &single, FORK);
    imported_done(&single);
    imported_done(&got);
    free(data);
    free(meta);
}
END_TEST

/* Output of a call, and the members of its event. */
static const struct ended_call {
    const char *payload;
    const char *type;
    const char *facts;
} ended_calls[] = {
    {"\"Exit code: 2\\nWall time: 0.3 seconds\\nOutput:\\nExit code: 0\\n\"", "tool.failed",
     "\"exit_code\":2,\"duration_ms\":300,"},
    {"\"Chunk ID: 1f\\nWall time: 1.25 seconds\\nProcess exited with code 0\\nOutput:\\nno\\n\"",
     "tool.returned", "\"exit_code\":0,\"duration_ms\":1250,"},
    {"\"Chunk ID: 1f\\nWall time: 5 seconds\\nProcess running with session ID 7\\nOutput:\\n"
     "Process exited with code 1\\n\"",
     "tool.returned", "\\n\",\"duration_ms\":5000,"},
    {"\"{\\\"output\\\":\\\"no\\\",\\\"metadata\\\":{\\\"exit_code\\\":127,\\\"duration_seconds\\\""
     ":0.1}}\"",
     "tool.failed", "\"exit_code\":127,\"duration_ms\":100,"},
    {"\"{\\\"exit_code\\\":1}\"", "tool.failed", "\"exit_code\":1,"},
    {"[{\"type\":\"input_text\",\"text\":\"Wall time: 1 seconds\\nProcess exited with code 3\\n"
     "Output:\\n\"}]",
     "tool.failed", "\"exit_code\":3,\"duration_ms\":1000,"},
    {"{\"content\":\"Exit code: 0\\nWall time: 1 seconds\\nOutput:\\n\",\"success\":true}",
     "tool.returned", "\"exit_code\":0,\"duration_ms\":1000,"},
    {"\"apply_patch verification failed: no such lines\"", "tool.failed", "\"success\":false,"},
    {"\"The notes say: Exit code: 1\"", "tool.returned", "{\"call_id\":\"c\",\"output\":"},
};

START_TEST(a_codex_call_with_the_output_of_a_failure_failed)
{
    const struct ended_call *ended = &ended_calls[_i];
    struct imported got;
    char text[1000];
    snprintf(text, sizeof text,
             "{\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\","
             "\"call_id\":\"c\",\"output\":%s}}\n",
             ended->payload);
    import_text("codex", "s-1.jsonl", text, &got);
    ASSERT_DATA(&got, imported_find(&got, ended->type, 0), ended->facts);
    imported_done(&got);
}
END_TEST

START_TEST(a_codex_call_failed_if_an_earlier_event_reported_a_failure)
{
    struct imported got;
    import_text("codex", "s-1.jsonl",
                "{\"type\":\"event_msg\",\"payload\":{\"type\":\"exec_command_end\",\"call_id\":"
                "\"c\",\"exit_code\":9,\"duration\":{\"secs\":2,\"nanos\":5000000},"
                "\"status\":\"failed\"}}\n"
                "{\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\","
                "\"call_id\":\"c\",\"output\":\"killed\"}}\n"
                "{\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\","
                "\"call_id\":\"d\",\"output\":\"killed\"}}\n",
                &got);
    ASSERT_DATA(&got, imported_find(&got, "tool.failed", 0),
                "\"success\":false,\"output\":\"killed\",\"exit_code\":9,\"duration_ms\":2005,");
    ASSERT_DATA(&got, imported_find(&got, "tool.returned", 0), "{\"call_id\":\"d\",\"output\":");
    imported_done(&got);
}
END_TEST

START_TEST(a_codex_call_that_the_server_runs_is_complete_without_an_output)
{
    struct imported got;
    import_text("codex", "s-1.jsonl",
                "{\"type\":\"response_item\",\"payload\":{\"type\":\"web_search_call\",\"id\":"
                "\"ws_1\",\"status\":\"completed\",\"action\":{\"query\":\"moon\"}}}\n"
                "{\"type\":\"response_item\",\"payload\":{\"type\":\"web_search_call\","
                "\"status\":\"failed\"}}\n"
                "{\"type\":\"response_item\",\"payload\":{\"type\":\"local_shell_call\","
                "\"call_id\":\"c\",\"status\":\"completed\",\"action\":{}}}\n",
                &got);
    ck_assert_uint_eq(imported_count(&got, NULL, "tool.called"), 3);
    ck_assert_uint_eq(imported_count(&got, NULL, "tool.returned"), 1);
    ck_assert_uint_eq(imported_count(&got, NULL, "tool.failed"), 1);
    ASSERT_DATA(&got, imported_find(&got, "tool.returned", 0),
                "{\"call_id\":\"ws_1\",\"success\":true,");
    imported_done(&got);
}
END_TEST

START_TEST(a_codex_log_gives_the_turns_that_it_marks)
{
    struct imported got;
    import_text(
        "codex", "rollout-2026-01-02T03-04-05-0199b2c4-5e77-7d02-b1aa-2f60c8d9e413.jsonl",
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"user_message\",\"message\":\"a\"}}\n"
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"user_message\",\"message\":\"b\"}}\n"
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"task_started\",\"turn_id\":\"t1\"}}\n"
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"user_message\",\"message\":\"c\"}}\n"
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"turn_aborted\",\"reason\":\"stop\"}}\n",
        &got);
    const char *session = "0199b2c4-5e77-7d02-b1aa-2f60c8d9e413";
    ck_assert_uint_eq(imported_count(&got, session, "turn.started"), 3);
    ck_assert_uint_eq(imported_count(&got, session, "turn.completed"), 2);
    ck_assert_uint_eq(imported_count(&got, session, "turn.cancelled"), 1);
    ASSERT_DATA(&got, imported_find(&got, "turn.cancelled", 0),
                "{\"turn_id\":\"t1\",\"reason\":\"stop\"");
    imported_done(&got);
}
END_TEST

/* ---- Titles of Claude Code ---- */

#define TOLD(uuid, text)                                                                           \
    "{\"type\":\"user\",\"sessionId\":\"s1\",\"uuid\":\"" uuid                                     \
    "\",\"timestamp\":\"2026-01-02T03:04:05Z\",\"message\":{\"content\":\"" text "\"}}\n"
#define SUMMARY(leaf, text)                                                                        \
    "{\"type\":\"summary\",\"summary\":\"" text "\",\"leafUuid\":\"" leaf "\"}\n"

static const struct {
    const char *log;
    const char *want;
} title_logs[] = {
    {SUMMARY("x", "Of another") "{\"type\":\"file-history-snapshot\"}\n" TOLD("u1", "Hello"),
     "Hello"},
    {SUMMARY("u2", "Of this one") TOLD("u1", "Hello") TOLD("u2", "More"), "Of this one"},
    {TOLD("u1", "Hello") SUMMARY("u1", "Of this one"), "Of this one"},
    {TOLD("u1", "Hello") "{\"type\":\"ai-title\",\"sessionId\":\"s1\",\"aiTitle\":\"Tides\"}\n",
     "Tides"},
    {TOLD("u1",
          "Hello") "{\"type\":\"custom-title\",\"sessionId\":\"s1\",\"customTitle\":\"Mine\"}\n"
                   "{\"type\":\"ai-title\",\"sessionId\":\"s1\",\"aiTitle\":\"Tides\"}\n",
     "Mine"},
};

START_TEST(the_head_of_a_log_creates_no_session_and_a_log_gives_its_own_title)
{
    char want[100];
    const char *path = tmpdir_path(&cli.dir, "copy-of-a-log.jsonl");
    file_write(path, title_logs[_i].log, strlen(title_logs[_i].log));
    DONE(&cli, "import", "claude-code", path);
    CLI(&cli, NULL, "sql", "SELECT id, title FROM sessions", "--format", "csv");
    snprintf(want, sizeof want, "id,title\r\ns1,%s\r\n", title_logs[_i].want);
    ck_assert_str_eq(cli.out, want);
}
END_TEST

Suite *suite_importers(void)
{
    Suite *suite = suite_create("importers");
    TCase *every = suite_case(suite, "every log", NULL, NULL);
    tcase_add_loop_test(every, the_size_of_a_batch_changes_no_event, 0, KINDS_LINES);
    tcase_add_loop_test(every, events_of_the_first_lines_stay_when_more_lines_arrive, 0,
                        KINDS_LINES);
    tcase_add_loop_test(every, every_line_is_skipped_or_its_events_hold_all_its_values, 0, KINDS);
    tcase_add_loop_test(every, an_import_counts_the_same_tokens_as_jq, 0, KINDS);
    tcase_add_loop_test(
        every, real_logs_lose_nothing_with_any_batch_size_and_their_tokens_are_right, 0, KINDS);
    TCase *lines = suite_case(suite, "lines", NULL, NULL);
    tcase_add_test(lines, repeated_usage_of_a_message_counts_once_with_its_largest_value);
    tcase_add_test(lines, a_side_chain_becomes_a_child_session_that_names_its_parent);
    tcase_add_test(lines, each_tool_block_of_a_line_is_an_event);
    tcase_add_test(lines, a_call_that_a_resumed_session_copied_is_one_call);
    tcase_add_test(lines, a_line_that_is_not_json_is_kept_as_text_or_base64);
    tcase_add_test(lines, any_json_value_is_a_record_of_the_log);
    tcase_add_test(lines, a_line_without_time_gets_the_time_of_the_previous_line);
    tcase_add_test(lines, an_invalid_session_id_is_replaced_and_its_original_kept);
    tcase_add_test(lines, a_codex_count_that_falls_starts_from_zero);
    tcase_add_test(lines, a_codex_log_gives_the_turns_that_it_marks);
    tcase_add_loop_test(lines, a_codex_fork_counts_its_own_tokens_only, 0,
                        sizeof fork_logs / sizeof *fork_logs);
    tcase_add_loop_test(lines, a_codex_call_with_the_output_of_a_failure_failed, 0,
                        sizeof ended_calls / sizeof *ended_calls);
    tcase_add_test(lines, a_codex_call_failed_if_an_earlier_event_reported_a_failure);
    tcase_add_test(lines, a_codex_call_that_the_server_runs_is_complete_without_an_output);
    TCase *titles = suite_case(suite, "titles", cli_setup, cli_teardown);
    tcase_add_loop_test(titles, the_head_of_a_log_creates_no_session_and_a_log_gives_its_own_title,
                        0, sizeof title_logs / sizeof *title_logs);
    return suite;
}
