/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/page.h"

#include "journal/base/json_walk.h"
#include "tools/cli/must.h"
#include "tools/cli/visible.h"
#include "tools/show/event_facts.h"
#include "tools/show/excerpt.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { FENCE_LEAST = 3, SPAN_BYTES_MAX = 4096, NAME_CHARS = 80, OTHER_CHARS = 200 };
/* shortest text that counts as base64, in a data URL and elsewhere */
enum { URL_BYTES_MIN = 16, ENCODED_BYTES_MIN = 512 };

/* ---- Base64 ---- */

static bool is_base64(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '/' || c == '=' || c == '-' || c == '_';
}

/* Return whether a run of characters of base64 is base64: a data URL, or a long text that is
 * neither a number, nor in hex, nor a line of dashes. */
static bool is_encoded(annal_slice raw, size_t at, size_t len)
{
    static const char mark[] = ";base64,";
    const size_t mark_len = sizeof mark - 1;
    bool upper = false, lower = false;
    if (at >= mark_len && memcmp(raw.ptr + at - mark_len, mark, mark_len) == 0)
        return len >= URL_BYTES_MIN;
    for (size_t i = at; len >= ENCODED_BYTES_MIN && i < at + len && !(upper && lower); i++) {
        upper = upper || isupper((unsigned char)raw.ptr[i]);
        lower = lower || islower((unsigned char)raw.ptr[i]);
    }
    return upper && lower;
}

annal_slice page_without_base64(annal_slice raw, struct buf *hold)
{
    size_t kept = 0;
    annal__buf_clear(hold);
    for (size_t at = 0, len; at < raw.len; at += len + 1) {
        for (len = 0; at + len < raw.len && is_base64(raw.ptr[at + len]); len++)
            continue;
        if (!is_encoded(raw, at, len))
            continue;
        must_append(hold, raw.ptr + kept, at - kept);
        must_printf(hold, "(%zu characters of base64, not shown)", len);
        kept = at + len;
    }
    if (kept == 0)
        return raw;
    must_append(hold, raw.ptr + kept, raw.len - kept);
    return annal__buf_slice(hold);
}

static void put_byte(struct buf *out, char c)
{
    must_append(out, &c, 1);
}

/* ---- One line ---- */

static size_t longest_run(annal_slice text, char of)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < text.len; i++) {
        run = text.ptr[i] == of ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static void put_times(struct buf *out, char c, size_t times)
{
    while (times-- > 0)
        put_byte(out, c);
}

/* Replace control characters by visible ones, because CommonMark, HTML and editors change or drop
 * them. If memory runs out, the line is empty. */
static void make_visible(struct buf *line)
{
    struct buf shown = {0};
    if (visible_append(&shown, annal__buf_slice(line)) < 0)
        annal__buf_clear(&shown);
    annal__buf_done(line);
    *line = shown;
}

static void take_excerpt(struct buf *line, annal_slice raw, size_t chars)
{
    excerpt_line(line, raw, chars);
    make_visible(line);
}

static bool is_alphanumeric(annal_slice line, size_t at)
{
    return at < line.len && (isalnum((unsigned char)line.ptr[at]) || (line.ptr[at] & 0x80) != 0);
}

/*
 * Return whether a character must be escaped within a line. An underscore inside a word need not,
 * nor a '#' that does not end a heading, nor a point or a colon that is not part of an address.
 */
static bool must_escape(annal_slice line, size_t at)
{
    char c = line.ptr[at], before = at > 0 ? line.ptr[at - 1] : ' ';
    size_t end = at;
    switch (c) {
    case '_':
        return !is_alphanumeric(line, at - 1) || !is_alphanumeric(line, at + 1);
    case '.':
        return before == 'w' || before == 'W';
    case ':':
        return at + 1 < line.len && line.ptr[at + 1] == '/';
    case '#':
        while (end < line.len && (line.ptr[end] == '#' || line.ptr[end] == ' '))
            end++;
        return at == 0 || end == line.len;
    default:
        return c != '\0' && strchr("\\`*[]<>|~&@$", c) != NULL;
    }
}

void page_inline(struct buf *out, annal_slice raw, size_t chars)
{
    SCOPED_BUF line = {0};
    take_excerpt(&line, raw, chars);
    must_reserve(out, line.len * 2);
    for (size_t i = 0; i < line.len; i++) {
        if (must_escape(annal__buf_slice(&line), i))
            out->ptr[out->len++] = '\\';
        out->ptr[out->len++] = line.ptr[i];
    }
}

/* Append a code span. A text with a backtick or a space at one end has a space at both ends, which
 * CommonMark removes. */
static void put_span(struct buf *out, annal_slice text)
{
    size_t ticks = longest_run(text, '`') + 1;
    bool spaced = text.len == 0 || text.ptr[0] == '`' || text.ptr[0] == ' ' ||
                  text.ptr[text.len - 1] == '`' || text.ptr[text.len - 1] == ' ';
    put_times(out, '`', ticks);
    must_append_text(out, spaced ? " " : "");
    must_append_slice(out, text);
    must_append_text(out, spaced ? " " : "");
    put_times(out, '`', ticks);
}

void page_code(struct buf *out, annal_slice raw, size_t chars)
{
    SCOPED_BUF line = {0};
    take_excerpt(&line, raw, chars);
    put_span(out, annal__buf_slice(&line));
}

/* ---- Lines of a value ---- */

/* Read the next line of a value, without its line break. Returns false after the last line. */
static bool next_line(struct letters *letters, struct buf *line)
{
    annal__buf_clear(line);
    if (letters->at >= letters->end)
        return false;
    for (;;) {
        size_t run = excerpt_letters_plain(letters, SIZE_MAX);
        must_append(line, letters->at, run);
        letters->at += run;
        struct letter letter = excerpt_letter_next(letters);
        if (letter.len == 0 || letter.bytes[0] == '\n')
            break;
        must_append(line, letter.bytes, letter.len);
    }
    make_visible(line);
    return true;
}

/* ---- Fences ---- */

static size_t fence_for(struct letters letters)
{
    size_t longest = FENCE_LEAST - 1, run = 0;
    for (;;) {
        size_t plain = excerpt_letters_plain(&letters, SIZE_MAX);
        for (size_t i = 0; i < plain; i++) {
            run = letters.at[i] == '`' ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
        letters.at += plain;
        struct letter letter = excerpt_letter_next(&letters);
        if (letter.len == 0)
            return longest + 1;
        run = letter.bytes[0] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
}

/* Cut a line that is too long after a complete character. Returns whether it was cut. */
static bool cut_line(struct buf *line)
{
    size_t len = PAGE_LINE_BYTES;
    if (line->len <= len)
        return false;
    while (len > 0 && ((unsigned char)line->ptr[len] & 0xc0) == 0x80)
        len--;
    line->len = len;
    must_append_text(line, "…");
    return true;
}

/* Append a value as a fenced block. Returns the number of lines that were left out or cut. */
static uint64_t put_fence(struct buf *out, annal_slice raw, int lines_max)
{
    struct letters letters = excerpt_letters_of(raw);
    SCOPED_BUF line = {0};
    uint64_t lines = 0, cut = 0;
    size_t ticks = fence_for(letters);
    put_times(out, '`', ticks);
    must_append_text(out, "text\n");
    while (next_line(&letters, &line)) {
        bool told = lines_max == 0 || lines++ < (uint64_t)lines_max;
        cut += !told || (lines_max > 0 && cut_line(&line)) ? 1 : 0;
        if (!told)
            continue;
        must_append_slice(out, annal__buf_slice(&line));
        put_byte(out, '\n');
    }
    put_times(out, '`', ticks);
    put_byte(out, '\n');
    return cut;
}

static void put_member(struct buf *out, annal_slice name, annal_slice value)
{
    struct letters letters = excerpt_letters_of(value);
    SCOPED_BUF line = {0};
    bool many =
        value.len > 0 && value.ptr[0] == '"' && memmem(value.ptr, value.len, "\\n", 2) != NULL;
    take_excerpt(&line, name, 100);
    must_append_slice(out, annal__buf_slice(&line));
    must_append_text(out, many ? ":\n" : ":");
    while (next_line(&letters, &line)) {
        must_append_text(out, many ? "    " : " ");
        must_append_slice(out, annal__buf_slice(&line));
        must_append_text(out, many ? "\n" : "");
    }
    must_append_text(out, many ? "" : "\n");
}

void page_members(struct buf *out, annal_slice raw)
{
    struct json_walk walk;
    annal_slice name, value;
    if (raw.len == 0 || raw.ptr[0] != '{' || !annal__json_walk_object(&walk, raw)) {
        (void)put_fence(out, raw, 0);
        return;
    }
    /* The fence must be longer than each run of backticks within it; every run in a name or value
     * is also a run in the whole text. */
    size_t ticks = fence_for((struct letters){raw.ptr, raw.ptr + raw.len, true});
    put_times(out, '`', ticks);
    must_append_text(out, "text\n");
    while (annal__json_walk_next(&walk, &name, &value))
        put_member(out, name, value);
    put_times(out, '`', ticks);
    put_byte(out, '\n');
}

/* ---- Quotes ---- */

static size_t run_at(annal_slice line, size_t at)
{
    size_t len = 0;
    while (at + len < line.len && line.ptr[at + len] == line.ptr[at])
        len++;
    return len;
}

/* Return where the next run of exactly `ticks` backticks begins, at most SPAN_BYTES_MAX bytes after
 * at; line.len if there is none. */
static size_t closing_run(annal_slice line, size_t at, size_t ticks)
{
    size_t end = line.len - at > SPAN_BYTES_MAX ? at + SPAN_BYTES_MAX : line.len;
    while (at < end) {
        size_t run = line.ptr[at] == '`' ? run_at(line, at) : 0;
        if (run == ticks)
            return at;
        at += run > 0 ? run : 1;
    }
    return line.len;
}

/* Return whether a line contains only = or - and spaces: Markdown would print it as a rule, or make
 * the line before it a heading. */
static bool is_underline(annal_slice line)
{
    size_t at = 0;
    while (at < line.len && (line.ptr[at] == '=' || line.ptr[at] == '-' || line.ptr[at] == ' '))
        at++;
    return at == line.len && at > 0;
}

/* Return whether a '#' at this position may begin a heading, because only spaces and list marks
 * precede it. */
static bool begins_heading(annal_slice line, size_t at)
{
    while (at > 0 && strchr(" -+*.)>#0123456789\\", line.ptr[at - 1]) != NULL)
        at--;
    return at == 0;
}

/* Return the text of a heading such as "## Review", without its marks; empty if the line is not a
 * heading. */
static annal_slice heading_of(annal_slice line)
{
    size_t at = 0, end = line.len;
    while (at < line.len && line.ptr[at] == ' ')
        at++;
    size_t marks = at < line.len && line.ptr[at] == '#' ? run_at(line, at) : 0;
    if (marks == 0 || marks > 6 || at + marks >= line.len || line.ptr[at + marks] != ' ')
        return (annal_slice){0};
    for (at += marks; at < end && line.ptr[at] == ' ';)
        at++;
    while (end > at && (line.ptr[end - 1] == '#' || line.ptr[end - 1] == ' '))
        end--;
    annal_slice text = {line.ptr + at, end - at};
    return begins_heading(text, text.len) || memchr(text.ptr, '*', text.len) != NULL
               ? (annal_slice){0}
               : text;
}

/* Return whether a character may have a meaning in Markdown. */
static bool is_mark(char c)
{
    return c == '`' || c == '\\' || c == '<' || c == '&' || c == '[' || c == ']' || c == '~' ||
           c == '#';
}

static void put_prose_line(struct buf *out, annal_slice line)
{
    size_t at = 0;
    annal_slice heading = heading_of(line);
    if (heading.len > 0) {
        must_append_text(out, "**");
        put_prose_line(out, heading);
        must_append_text(out, "**");
        return;
    }
    while (at < line.len && line.ptr[at] == ' ')
        put_byte(out, line.ptr[at++]);
    if (at < line.len && (line.ptr[at] == '>' || line.ptr[at] == '=' || is_underline(line)))
        put_byte(out, '\\');
    while (at < line.len) {
        size_t from = at;
        while (at < line.len && !is_mark(line.ptr[at]))
            at++;
        must_append(out, line.ptr + from, at - from);
        if (at == line.len)
            break;
        char c = line.ptr[at];
        if (c == '`') {
            size_t ticks = run_at(line, at), end = closing_run(line, at + ticks, ticks);
            if (end < line.len) {
                must_append_slice(out, (annal_slice){line.ptr + at, end + ticks - at});
                at = end + ticks;
                continue;
            }
            for (; ticks > 0; ticks--, at++)
                must_append_text(out, "\\`");
            continue;
        }
        if (c != '#' || begins_heading(line, at))
            put_byte(out, '\\');
        put_byte(out, c);
        at++;
    }
}

/* Return the length of the fence with which a line begins, and its indentation; 0 if the line does
 * not begin with a fence. */
static size_t fence_of(annal_slice line, size_t *out_indent)
{
    size_t at = 0;
    while (at < line.len && line.ptr[at] == ' ')
        at++;
    *out_indent = at;
    if (at >= line.len || (line.ptr[at] != '`' && line.ptr[at] != '~'))
        return 0;
    size_t run = run_at(line, at);
    return run >= FENCE_LEAST ? run : 0;
}

static bool is_blank(annal_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != ' ')
            return false;
    }
    return true;
}

/* Append the name of the language after a fence, such as "c" or "python". */
static void put_language(struct buf *out, annal_slice info)
{
    size_t at = 0, len = 0;
    while (at < info.len && info.ptr[at] == ' ')
        at++;
    while (at + len < info.len && len < 20) {
        char c = info.ptr[at + len];
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' &&
            c != '-')
            break;
        len++;
    }
    must_append_slice(out, (annal_slice){info.ptr + at, len});
}

/* Append a fenced block of a message, of which `line` is the first line, in a new fence. */
static void put_fenced(struct buf *out, struct letters *letters, struct buf *line, size_t ticks)
{
    size_t at, indent, least = fence_of(annal__buf_slice(line), &indent);
    char mark = line->ptr[indent];
    must_append_text(out, ">\n> ");
    put_times(out, '`', ticks);
    put_language(out, (annal_slice){line->ptr + indent + least, line->len - indent - least});
    put_byte(out, '\n');
    while (next_line(letters, line)) {
        annal_slice text = annal__buf_slice(line);
        size_t run = fence_of(text, &at);
        if (run >= least && text.ptr[at] == mark &&
            is_blank((annal_slice){text.ptr + at + run, text.len - at - run}))
            break;
        size_t skip = 0;
        while (skip < indent && skip < text.len && text.ptr[skip] == ' ')
            skip++;
        must_append_text(out, "> ");
        must_append_slice(out, (annal_slice){text.ptr + skip, text.len - skip});
        put_byte(out, '\n');
    }
    must_append_text(out, "> ");
    put_times(out, '`', ticks);
    must_append_text(out, "\n>\n");
}

/* Append a value as a quote. */
static void put_quote(struct buf *out, annal_slice raw)
{
    struct letters letters = excerpt_letters_of(raw);
    SCOPED_BUF line = {0};
    /* long enough for every fence in the text, so that the text is searched once */
    size_t ticks = fence_for(letters);
    while (next_line(&letters, &line)) {
        annal_slice text = annal__buf_slice(&line);
        size_t indent, run = fence_of(text, &indent);
        /* A line that begins with backticks, and contains another backtick after them, is not a
         * fence, but has a code span. */
        if (run > 0 && (text.ptr[indent] == '~' ||
                        memchr(text.ptr + indent + run, '`', text.len - indent - run) == NULL)) {
            put_fenced(out, &letters, &line, ticks);
            continue;
        }
        must_append_text(out, is_blank(text) ? ">" : "> ");
        put_prose_line(out, text);
        put_byte(out, '\n');
    }
    put_byte(out, '\n');
}

/* ---- Contents of messages, and results ---- */

static void put_media(struct buf *out, annal_slice type)
{
    must_append_text(out, "*");
    page_inline(out, type, NAME_CHARS);
    must_append_text(out, ", not shown*\n\n");
}

static void put_part(struct buf *out, annal_slice part)
{
    annal_slice text = event_block_text(part), type;
    bool thought = event_block_is_thought(part);
    if (event_block_is_empty(part))
        return;
    if (thought)
        must_append_text(out, "<details><summary>Thinking</summary>\n\n");
    if (excerpt_is_text(text)) {
        put_quote(out, text);
    } else if (event_block_is_media(part, &type)) {
        put_media(out, type);
    } else {
        must_append_text(out, "**Other**: ");
        /* a value in a form that only the agent's program understands: print it as code */
        page_code(out, part, OTHER_CHARS);
        must_append_text(out, "\n\n");
    }
    if (thought)
        must_append_text(out, "</details>\n\n");
}

void page_content(struct buf *out, annal_slice content)
{
    struct json_walk walk;
    annal_slice part;
    if (content.len > 0 && content.ptr[0] == '[' && annal__json_walk_array(&walk, content)) {
        while (annal__json_walk_item(&walk, &part))
            put_part(out, part);
    } else if (content.len > 0) {
        put_part(out, content);
    }
}

static void put_text(struct buf *out, annal_slice raw, int lines_max, annal_slice hint)
{
    uint64_t cut = put_fence(out, raw, lines_max);
    if (cut > 0)
        must_printf(out, "\n*%" PRIu64 " line%s cut: %.*s*\n", cut, cut == 1 ? "" : "s",
                    ANNAL_FMT(hint));
    put_byte(out, '\n');
}

void page_output(struct buf *out, annal_slice output, int lines_max, annal_slice hint)
{
    struct json_walk walk;
    annal_slice part, type;
    if (output.len == 0)
        return;
    if (output.ptr[0] != '[' || !annal__json_walk_array(&walk, output)) {
        put_text(out, output, lines_max, hint);
        return;
    }
    while (annal__json_walk_item(&walk, &part)) {
        annal_slice text = part.ptr[0] == '{' ? annal__json_member(part, "text") : part;
        if (event_block_is_media(part, &type))
            put_media(out, type);
        else
            put_text(out, excerpt_is_text(text) ? text : part, lines_max, hint);
    }
}
