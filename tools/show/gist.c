/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/gist.h"

#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/show/excerpt.h"

#include <inttypes.h>
#include <string.h>

enum { HEAD_BYTES = 300, DEPTH_MAX = 64 };

static void put(struct buf *out, const char *text)
{
    must_append_text(out, text);
}

static void put_raw(struct buf *out, annal_slice raw)
{
    excerpt_line(out, raw, GIST_CHARS);
}

/* Return the object inside a string, because Codex writes arguments as a string; any other value is
 * returned unchanged. */
static annal_slice unfold(annal_slice raw, struct buf *scratch)
{
    annal_slice text = raw;
    if (raw.len < 4 || raw.ptr[0] != '"' || raw.ptr[1] != '{' ||
        annal__json_text(raw, scratch, &text) < 0 ||
        annal__json_check(text, DEPTH_MAX, NULL) != JSON_VALID)
        return raw;
    return text;
}

/* Return the first member of object, in the order of names, that is not missing, null or an empty
 * string; empty if there is none. */
static annal_slice first_of(annal_slice object, const char *const *names)
{
    annal_slice value = {0};
    if (object.len == 0 || object.ptr[0] != '{')
        return value;
    for (; *names != NULL && value.len == 0; names++) {
        value = annal__json_member(object, *names);
        if (annal__slice_is(value, "null") || annal__slice_is(value, "\"\""))
            value = (annal_slice){0};
    }
    return value;
}

/* Return the last item of an array, such as "make" of ["bash", "-lc", "make"]; any other value is
 * returned unchanged. */
static annal_slice last_item(annal_slice value)
{
    struct json_walk walk;
    annal_slice item, last = value;
    if (value.len > 0 && value.ptr[0] == '[' && annal__json_walk_array(&walk, value)) {
        while (annal__json_walk_item(&walk, &item))
            last = item;
    }
    return last;
}

void gist_input(struct buf *out, annal_slice input)
{
    static const char *const subjects[] = {"command", "cmd",   "script", "pattern",
                                           "query",   "skill", NULL};
    static const char *const objects[] = {"file_path", "notebook_path", "filePath",    "path",
                                          "url",       "prompt",        "description", NULL};
    static const char *const paths[] = {"file_path", "path", NULL};
    SCOPED_BUF scratch = {0};
    annal_slice object = unfold(input, &scratch);
    annal_slice value = first_of(object, subjects);
    if (value.len > 0) {
        annal_slice path = first_of(object, paths);
        put_raw(out, last_item(value));
        put(out, path.len > 0 ? " " : "");
        put_raw(out, path);
    } else {
        value = first_of(object, objects);
        put_raw(out, value.len > 0 ? value : object);
    }
}

/* Return the output in a text before which Codex or mini-swe-agent has added lines. */
static const char *skip_head(const char *text)
{
    static const struct {
        const char *begins, *ends;
    } heads[] = {{"Chunk ID: ", " Output:"},
                 {"Exit code: ", " Output:"},
                 {"Wall time: ", " Output:"},
                 {"<returncode>", "<output>"}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (strncmp(text, heads[i].begins, strlen(heads[i].begins)) != 0)
            continue;
        const char *end = strstr(text, heads[i].ends);
        if (end != NULL && end - text < HEAD_BYTES)
            return end + strlen(heads[i].ends);
    }
    return text;
}

/* Return the last line of the last Python traceback in a text; empty without a traceback. */
static annal_slice end_of_traceback(annal_slice text)
{
    static const char begins[] = "Traceback (most recent call last):\n";
    const char *end = text.ptr + text.len, *line = NULL;
    for (const char *at = text.ptr; at != NULL;) {
        at = memmem(at, (size_t)(end - at), begins, sizeof begins - 1);
        if (at != NULL)
            line = at += sizeof begins - 1;
    }
    while (line != NULL && line < end && *line == ' ') {
        line = memchr(line, '\n', (size_t)(end - line));
        line = line == NULL ? end : line + 1;
    }
    if (line == NULL)
        return (annal_slice){0};
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    return (annal_slice){line, (size_t)((stop == NULL ? end : stop) - line)};
}

/* If the output contains a traceback, append only its last line, which names the failure: its first
 * lines are the same in all tracebacks. Returns whether it did. */
static bool put_traceback(struct buf *out, annal_slice raw)
{
    SCOPED_BUF scratch = {0};
    annal_slice text = {0}, line = {0};
    if (raw.len > 0 && raw.ptr[0] == '"' && annal__json_text(raw, &scratch, &text) >= 0)
        line = end_of_traceback(text);
    if (line.len > GIST_CHARS) {
        line.len = GIST_CHARS;
        /* do not cut inside a character of UTF-8 */
        while (((unsigned char)line.ptr[line.len] & 0xC0) == 0x80)
            line.len--;
    }
    must_append_slice(out, line);
    return line.len > 0;
}

void gist_output(struct buf *out, annal_slice output)
{
    SCOPED_BUF scratch = {0}, line = {0};
    annal_slice value = unfold(output, &scratch);
    annal_slice inner = first_of(value, (const char *const[]){"output", NULL});
    annal_slice text = event_content_text(inner.len > 0 ? inner : value);
    if (put_traceback(out, text))
        return;
    excerpt_line(&line, text.len > 0 ? text : value, GIST_CHARS + HEAD_BYTES);
    while (line.len > 0 && line.ptr[line.len - 1] == ' ')
        line.len--;
    const char *begin = skip_head(must_cstr(&line));
    begin += strspn(begin, " ");
    put(out, begin[0] == '\0' ? "(no output)" : begin);
}

/* Append the first block of a content without text: a thought with a mark, another block
 * unchanged. */
static void put_blocks(struct buf *out, annal_slice content)
{
    struct json_walk walk;
    annal_slice part = content;
    if (content.len > 0 && content.ptr[0] == '[' &&
        (!annal__json_walk_array(&walk, content) || !annal__json_walk_item(&walk, &part)))
        return;
    if (event_block_is_thought(part)) {
        put(out, "(thinks) ");
        put_raw(out, event_block_text(part));
    } else if (part.len > 0) {
        put(out, "[");
        put_raw(out, part);
        put(out, "]");
    }
}

static void put_message(struct buf *out, const annal_event *event)
{
    annal_slice content = event_member(event, "content"), text = event_content_text(content);
    if (text.len > 0)
        put_raw(out, text);
    else
        put_blocks(out, content);
}

static void put_result(struct buf *out, const annal_event *event)
{
    annal_slice exit_code = event_member(event, "exit_code");
    annal_slice output = event_either(event, "output", "output_ref");
    if (exit_code.len > 0 && !annal__slice_is(exit_code, "0")) {
        put(out, "exit ");
        put_raw(out, exit_code);
        put(out, "  ");
    }
    gist_output(out, output.len > 0 ? output : event_member(event, "error"));
}

static void put_usage(struct buf *out, const annal_event *event)
{
    char in[HUMAN_BYTES], produced[HUMAN_BYTES];
    annal_slice cost = event_member(event, "cost_usd");
    must_printf(out, "%s in, %s out",
                event_signed_text(in, event_raw_count(event_member(event, "input_tokens"))),
                event_signed_text(produced, event_raw_count(event_member(event, "output_tokens"))));
    if (cost.len > 0)
        must_printf(out, ", $%.*s", (int)(cost.len < 8 ? cost.len : 8), cost.ptr);
}

static void put_turn(struct buf *out, const annal_event *event)
{
    annal_slice why = event_either(event, "error", "reason");
    annal_slice ms = event_member(event, "timing.totalMs");
    if (event_fact_of(event) == FACT_TURN_BEGINS) {
        put_raw(out, event_either(event, "sequence", "turn_id"));
        why = event_member(event, "prompt");
        put(out, why.len > 0 ? "  " : "");
    } else if (ms.len > 0) {
        must_printf(out, "after %.1f s%s", (double)event_raw_count(ms) / 1e3,
                    why.len > 0 ? "  " : "");
    }
    put_raw(out, why);
}

/* Append the members of an object, without ids and without members that importers add. */
static void put_members(struct buf *out, annal_slice object)
{
    static const char *const added[] = {"\"source\"", "\"extra\"", "\"time\"", "\"turn_id\"",
                                        "\"id\""};
    struct json_walk walk;
    annal_slice name, value;
    if (object.len == 0 || object.ptr[0] != '{' || !annal__json_walk_object(&walk, object)) {
        put_raw(out, object);
        return;
    }
    for (bool first = true; out->len < GIST_CHARS && annal__json_walk_next(&walk, &name, &value);) {
        bool is_added = false;
        for (size_t i = 0; i < sizeof added / sizeof *added; i++)
            is_added = is_added || annal__slice_is(name, added[i]);
        if (is_added)
            continue;
        put(out, first ? "" : ", ");
        put_raw(out, name);
        put(out, ": ");
        put_raw(out, value);
        first = false;
    }
}

void gist(struct buf *out, const annal_event *event)
{
    annal_slice set = event_member(event, "set");
    switch (event_fact_of(event)) {
    case FACT_MESSAGE:
        put_message(out, event);
        break;
    case FACT_CALL:
        gist_input(out, event_either(event, "input", "arguments"));
        break;
    case FACT_RESULT:
        put_result(out, event);
        break;
    case FACT_USAGE:
        put_usage(out, event);
        break;
    case FACT_TURN_BEGINS:
    case FACT_TURN_ENDS:
        put_turn(out, event);
        break;
    case FACT_OTHER:
        /* turn.… that neither begins nor ends a turn: the turn was undone or restored */
        if (annal__slice_begins(event->type, "turn.")) {
            put_raw(out, event_member(event, "turn_id"));
            put(out, "  ");
        }
        put_members(out, set.len > 0 ? set : event->data);
    }
}
