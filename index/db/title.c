/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The title of a session: the title in its log, or else the first words of its user.
 *
 * (1) A title is one line of at most TITLE_CHARS characters; a longer title is cut between two
 *     words, if it has several, and never within a character or before a mark that belongs to a
 *     character.
 * (2) Text that agents add to a message of the user is not a part of the title. An importer knows
 *     these texts, and stores the text after them as "said" in the data. A tag that no importer
 *     knows is an agent's if its name contains - or _ and it is closed: the tag is left out with
 *     its content, unless the message consists of it. Then the title is its content, because users
 *     write such prompts. Other markup is the user's own, and stays.
 * (3) A command is a title together with the text that follows its name (/review 36). A command
 *     without a text (/clear) does not describe the session: the core pack replaces such a title by
 *     the next message.
 */
#include "index/db/title.h"

#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

#include <stdio.h>
#include <string.h>

enum { TITLE_CHARS = 120, TAG_BYTES_MAX = 64 };

/* ---- Characters ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static annal_slice after(annal_slice text, size_t bytes)
{
    return (annal_slice){text.ptr + bytes, text.len - bytes};
}

static annal_slice skip_space(annal_slice text)
{
    while (text.len > 0 && is_space(text.ptr[0]))
        text = after(text, 1);
    return text;
}

/* Return the text after the first occurrence of `what`; empty if it does not occur. */
static annal_slice following(annal_slice text, const char *what)
{
    const char *found = text.len > 0 ? memmem(text.ptr, text.len, what, strlen(what)) : NULL;
    if (found == NULL)
        return (annal_slice){0};
    return after(text, (size_t)(found - text.ptr) + strlen(what));
}

/* Decode the character at the beginning of text. Returns its number of bytes; *out_code is 0xfffd
 * for invalid UTF-8. */
static size_t decode(annal_slice text, unsigned *out_code)
{
    unsigned char c = (unsigned char)text.ptr[0];
    const unsigned char *at = (const unsigned char *)text.ptr;
    size_t len = c < 0x80 ? 1 : annal__json_utf8_length(at, at + text.len);
    *out_code = len == 0 ? 0xfffd : len == 1 ? c : c & (0x7fU >> len);
    for (size_t i = 1; i < len; i++)
        *out_code = *out_code << 6 | (at[i] & 0x3fU);
    return len == 0 ? 1 : len;
}

/*
 * Return whether the character belongs to the character before it: an accent, a skin tone, half a
 * flag, a joiner.
 */
static bool joins(unsigned code)
{
    return (code >= 0x300 && code <= 0x36f) || (code >= 0x1ab0 && code <= 0x1aff) ||
           (code >= 0x20d0 && code <= 0x20ff) || code == 0x200d ||
           (code >= 0xfe00 && code <= 0xfe0f) || (code >= 0x1f1e6 && code <= 0x1f1ff) ||
           (code >= 0x1f3fb && code <= 0x1f3ff) || (code >= 0xe0100 && code <= 0xe01ef);
}

/* ---- One line ---- */

struct line {
    struct buf text;
    size_t chars;
    size_t word_end;  /* length of the title up to the end of its last complete word */
    size_t whole_end; /* length of the title up to the last place where it may be cut */
    /* whether the last character was a zero-width joiner, which joins the next character to it */
    bool joined;
};

/* Append a character to a title. Returns false if the title was full, and was cut, or memory ran
 * out. */
static bool put(struct line *line, const char *bytes, size_t len, unsigned code)
{
    if (!line->joined && !joins(code))
        line->whole_end = line->text.len;
    if (code == ' ')
        line->word_end = line->text.len;
    line->joined = code == 0x200d;
    if (line->chars++ < TITLE_CHARS)
        return annal__buf_append(&line->text, bytes, len) == ANNAL_OK;
    line->text.len = line->word_end > line->whole_end / 2 ? line->word_end : line->whole_end;
    (void)annal__buf_append(&line->text, "…", strlen("…"));
    return false;
}

/* Append text on one line; each sequence of white space becomes one space. */
static void put_line(struct line *line, annal_slice text)
{
    bool more = true;
    text = skip_space(text);
    while (more && text.len > 0) {
        unsigned code;
        size_t len = decode(text, &code);
        annal_slice rest = after(text, len);
        if (code == 0xa0 || is_space(text.ptr[0])) {
            rest = skip_space(rest);
            more = rest.len == 0 || put(line, " ", 1, ' ');
        } else if (code == 0xfffd) {
            more = put(line, "\xef\xbf\xbd", 3, code);
        } else {
            more = put(line, text.ptr, len, code);
        }
        text = rest;
    }
}

/* ---- The words of the user ---- */

struct tag {
    annal_slice name;
    bool closes;
    size_t len; /* length of the tag itself, from < to > */
};

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Read a tag, <name>, <name attribute="…"> or </name>, whose lower-case name has - or _. */
static bool take_tag(annal_slice text, struct tag *out)
{
    out->closes = text.len > 1 && text.ptr[1] == '/';
    size_t begin = 1 + out->closes, len = begin;
    while (len < text.len && len < TAG_BYTES_MAX && in_name(text.ptr[len]))
        len++;
    if (len == begin || len == text.len || text.ptr[0] != '<')
        return false;
    out->name = (annal_slice){text.ptr + begin, len - begin};
    const char *end = memchr(text.ptr + len, '>', text.len - len);
    if ((text.ptr[len] != '>' && !is_space(text.ptr[len])) || end == NULL)
        return false;
    out->len = (size_t)(end - text.ptr) + 1;
    return memchr(out->name.ptr, '-', out->name.len) != NULL ||
           memchr(out->name.ptr, '_', out->name.len) != NULL;
}

/* Return the text after </name>, and set *out_inside to the text before it. If the block does not
 * end: empty, and *out_inside is the rest of the text. */
static annal_slice following_block(annal_slice text, annal_slice name, annal_slice *out_inside)
{
    char end[TAG_BYTES_MAX + 4];
    snprintf(end, sizeof end, "</%.*s>", ANNAL_FMT(name));
    annal_slice rest = following(text, end);
    *out_inside = text;
    if (rest.ptr != NULL)
        out_inside->len = (size_t)(rest.ptr - text.ptr) - strlen(end);
    return rest;
}

/*
 * Read one of the tags command-… in which an agent writes a command of its user: the name of the
 * command goes to *command, and *text moves past the tag, or to the text in command-args. Returns
 * false if text begins with something else.
 */
static bool take_command(annal_slice *text, annal_slice *command)
{
    annal_slice inside = {0};
    struct tag tag;
    if (!take_tag(*text, &tag) || !annal__slice_begins(tag.name, "command-"))
        return false;
    annal_slice rest = after(*text, tag.len);
    if (!tag.closes)
        rest = following_block(rest, tag.name, &inside);
    if (annal__slice_is(tag.name, "command-name"))
        *command = inside;
    else if (annal__slice_is(tag.name, "command-args") && skip_space(inside).len > 0)
        rest = inside;
    *text = rest;
    return true;
}

static bool ends_line(annal_slice text)
{
    while (text.len > 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\t' || text.ptr[0] == '\r'))
        text = after(text, 1);
    return text.len == 0 || text.ptr[0] == '\n';
}

annal_slice annal__title_skip_block(annal_slice text)
{
    annal_slice inside = {0};
    struct tag tag;
    if (!take_tag(text, &tag) || annal__slice_begins(tag.name, "command-"))
        return text;
    annal_slice rest = after(text, tag.len);
    if (!tag.closes)
        rest = following_block(rest, tag.name, &inside);
    return rest.ptr != NULL && ends_line(rest) ? rest : text;
}

static annal_slice skip_marks(annal_slice text)
{
    text = skip_space(text);
    while (text.len > 1 && strchr("#>*`-", text.ptr[0]) != NULL)
        text = skip_space(after(text, 1));
    return text;
}

/* Return the text from the first word of the user on; empty if there is none. *command: name of a
 * command before this text, or empty. */
static annal_slice said_in(annal_slice text, annal_slice *command)
{
    const char *at = NULL;
    annal_slice whole = skip_space(text), inside = {0};
    struct tag tag;
    *command = (annal_slice){0};
    while (at != text.ptr) {
        at = text.ptr;
        text = skip_space(text);
        if (!take_command(&text, command))
            text = annal__title_skip_block(text);
    }
    if (text.len == 0 && command->len == 0 && take_tag(whole, &tag) && !tag.closes &&
        skip_space(following_block(after(whole, tag.len), tag.name, &inside)).len == 0)
        text = inside;
    return skip_marks(text);
}

static bool put_said(struct line *line, annal_slice raw)
{
    SCOPED_BUF text = {0};
    annal_slice command;
    bool half;
    if (raw.len <= 2 || raw.ptr[0] != '"')
        return false;
    if (annal__json_decode(raw, &text, &half) == ANNAL_OK) {
        annal_slice said = said_in(annal__buf_slice(&text), &command);
        put_line(line, command);
        if (said.len > 0 && command.len > 0)
            (void)put(line, " ", 1, ' ');
        put_line(line, said);
    }
    return line->chars > 0;
}

/* Append the user's words in a block of content: a string, or an object with a string. Returns
 * false if there are none. */
static bool put_block(struct line *line, annal_slice block)
{
    static const char *const members[] = {"text", "instruction", "content"};
    bool said = put_said(line, block);
    for (size_t i = 0; !said && i < sizeof members / sizeof *members; i++) {
        if (block.len > 0 && block.ptr[0] == '{')
            said = put_said(line, annal__json_member(block, members[i]));
    }
    return said;
}

/* ---- The functions ---- */

static void give(sqlite3_context *context, struct line *line)
{
    if (line->text.len > 0)
        sqlite3_result_text(context, line->text.ptr, (int)line->text.len, SQLITE_TRANSIENT);
    annal__buf_done(&line->text);
}

static annal_slice text_of(sqlite3_value *value)
{
    const char *text = NULL;
    if (sqlite3_value_type(value) == SQLITE_TEXT)
        text = (const char *)sqlite3_value_text(value);
    return (annal_slice){text, text == NULL ? 0 : (size_t)sqlite3_value_bytes(value)};
}

void annal__title(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct line line = {0};
    (void)count;
    put_line(&line, text_of(values[0]));
    give(context, &line);
}

void annal__title_said(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct line line = {0};
    struct json_walk walk;
    (void)count;
    annal_slice data = annal__json_trim(text_of(values[0])), block;
    if (data.len == 0 || data.ptr[0] != '{' ||
        !annal__slice_is(annal__json_member(data, "role"), "\"user\""))
        return;
    annal_slice said = annal__json_member(data, "said");
    annal_slice content = said.len > 0 ? said : annal__json_member(data, "content");
    if (content.len > 0 && content.ptr[0] == '[' && annal__json_walk_array(&walk, content)) {
        while (annal__json_walk_item(&walk, &block) && !put_block(&line, block))
            continue;
    } else {
        (void)put_block(&line, content);
    }
    give(context, &line);
}
