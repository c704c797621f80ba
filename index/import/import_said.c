/* SPDX-License-Identifier: Apache-2.0 */
/*
 * said(content): the user's own words, in a message to which the agent added text.
 *
 * Agents put text of their own before the words of their user: instructions from files, the
 * environment, lists of plugins. The view added(begins, ends) of an importer lists the beginnings
 * and ends of such texts; ends is NULL if the text reaches to the end of the message. The view
 * around(begins, opens, closes) is for texts that are around the user's words: a text that begins
 * with begins contains the words between opens and closes. A text that has the beginning but not
 * the end is the user's own. The patterns are read when the function is first called.
 */
#include "index/import/import.h"

#include "index/db/db.h"
#include "index/db/title.h"
#include "journal/base/alloc.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"

#include <string.h>

/* maximum number of bytes of the result: enough for a title and an excerpt */
#define SAID_BYTES_MAX 400

struct pattern {
    struct buf begins;
    /* the text that ends the added text, or that precedes the user's words (column opens of the
     * view around); empty: the added text reaches to the end of the message */
    struct buf ends;
    /* the text after the user's words (column closes of the view around); empty: the words follow
     * after ends */
    struct buf closes;
};

struct said {
    struct pattern *patterns;
    size_t count;
    bool is_loaded;
    struct buf text; /* decoded text of the block of the message that is being read */
};

static void free_said(void *arg)
{
    struct said *said = arg;
    for (size_t i = 0; i < said->count; i++) {
        annal__buf_done(&said->patterns[i].begins);
        annal__buf_done(&said->patterns[i].ends);
        annal__buf_done(&said->patterns[i].closes);
    }
    annal__free(said->patterns);
    annal__buf_done(&said->text);
    annal__free(said);
}

static bool load_pattern(struct said *said, sqlite3_stmt *row)
{
    annal_slice begins = annal__db_column(row, 0);
    if (begins.len == 0)
        return true;
    struct pattern *pattern =
        annal__array_add(&said->patterns, &said->count, sizeof *said->patterns);
    if (pattern == NULL)
        return false;
    *pattern = (struct pattern){0};
    return annal__buf_append_slice(&pattern->begins, begins) >= 0 &&
           annal__buf_append_slice(&pattern->ends, annal__db_column(row, 1)) >= 0 &&
           annal__buf_append_slice(&pattern->closes, annal__db_column(row, 2)) >= 0;
}

/* Read the patterns, unless that was done. A view that the importer does not have is skipped.
 * Returns false if memory ran out. */
static bool load(struct said *said, sqlite3 *db)
{
    static const char *const views[] = {"SELECT begins, opens, closes FROM around",
                                        "SELECT begins, ends, NULL FROM added"};
    bool good = true;
    for (size_t i = 0; !said->is_loaded && i < sizeof views / sizeof *views; i++) {
        sqlite3_stmt *rows = NULL;
        if (sqlite3_prepare_v2(db, views[i], -1, &rows, NULL) == SQLITE_OK)
            while (good && sqlite3_step(rows) == SQLITE_ROW)
                good = load_pattern(said, rows);
        sqlite3_finalize(rows);
    }
    said->is_loaded = good;
    return good;
}

static annal_slice skip_space(annal_slice text)
{
    while (text.len > 0 && (text.ptr[0] == ' ' || (text.ptr[0] >= '\t' && text.ptr[0] <= '\r')))
        text = (annal_slice){text.ptr + 1, text.len - 1};
    return text;
}

static bool begins_with(annal_slice text, const struct buf *begins)
{
    size_t len = begins->len;
    /* a tag <name> also matches <name a="b"> */
    bool tag = begins->ptr[0] == '<' && begins->ptr[len - 1] == '>';
    if (text.len < len || memcmp(text.ptr, begins->ptr, len - tag) != 0)
        return false;
    char next = text.ptr[len - 1];
    return !tag || next == '>' || next == ' ' || next == '\n';
}

/* Return the text after the first occurrence of mark; its ptr is NULL if mark does not occur. */
static annal_slice text_after(annal_slice text, const struct buf *mark)
{
    const char *found = memmem(text.ptr, text.len, mark->ptr, mark->len);
    if (found == NULL)
        return (annal_slice){0};
    found += mark->len;
    return (annal_slice){found, text.len - (size_t)(found - text.ptr)};
}

/* Return the user's words in a text that begins as the pattern does, or text if it lacks the other
 * parts of the pattern. */
static annal_slice skip_pattern(annal_slice text, const struct pattern *pattern)
{
    if (pattern->ends.len == 0)
        return (annal_slice){text.ptr + text.len, 0};
    annal_slice words = text_after(text, &pattern->ends);
    if (words.ptr == NULL || pattern->closes.len == 0)
        return words.ptr == NULL ? text : words;
    annal_slice rest = text_after(words, &pattern->closes);
    if (rest.ptr == NULL)
        return text;
    words.len = (size_t)(rest.ptr - words.ptr) - pattern->closes.len;
    return words;
}

/* Return the text after all texts that the agent put at its beginning; unlisted: also after blocks
 * that no pattern lists. */
static annal_slice skip_added(const struct said *said, annal_slice text, bool unlisted)
{
    const char *at = NULL;
    while (at != text.ptr) {
        at = (text = skip_space(text)).ptr;
        for (size_t i = 0; i < said->count && text.len > 0 && at == text.ptr; i++)
            if (begins_with(text, &said->patterns[i].begins))
                text = skip_pattern(text, &said->patterns[i]);
        if (at == text.ptr && unlisted)
            text = annal__title_skip_block(text);
    }
    return text;
}

/* Return the JSON string in a block of content: the block itself, or its member text, instruction
 * or content; empty if there is none. */
static annal_slice block_text(annal_slice block)
{
    static const char *const members[] = {"text", "instruction", "content"};
    for (size_t i = 0; block.len > 0 && block.ptr[0] == '{' && i < 3; i++) {
        annal_slice raw = annal__json_member(block, members[i]);
        if (raw.len > 2 && raw.ptr[0] == '"')
            return raw;
    }
    return block.len > 2 && block.ptr[0] == '"' ? block : (annal_slice){0};
}

/*
 * Find the user's words in a block of content. *was_added becomes true if a text of the agent was
 * skipped. ANNAL_END: the block has no words of the user.
 */
static annal_status find_said(struct said *said, annal_slice block, bool unlisted, annal_slice *out,
                              bool *was_added)
{
    bool has_half;
    annal_slice raw = block_text(block);
    annal__buf_clear(&said->text);
    if (raw.len == 0)
        return ANNAL_END;
    annal_status status = annal__json_decode(raw, &said->text, &has_half);
    if (status < 0)
        return status;
    annal_slice whole = skip_space(annal__buf_slice(&said->text));
    *out = skip_added(said, whole, unlisted);
    *was_added = *was_added || out->ptr != whole.ptr;
    return out->len == 0 ? ANNAL_END : ANNAL_OK;
}

static annal_status find_in_content(struct said *said, annal_slice content, bool unlisted,
                                    annal_slice *out, bool *was_added)
{
    struct json_walk walk;
    annal_slice block;
    annal_status status = ANNAL_END;
    if (!annal__json_walk_array(&walk, content))
        return find_said(said, content, unlisted, out, was_added);
    while (status == ANNAL_END && annal__json_walk_item(&walk, &block))
        status = find_said(said, block, unlisted, out, was_added);
    return status;
}

/* Cut a text to SAID_BYTES_MAX bytes, between two characters. */
static annal_slice cut(annal_slice text)
{
    if (text.len <= SAID_BYTES_MAX)
        return text;
    text.len = SAID_BYTES_MAX;
    while (text.len > 0 && ((unsigned char)text.ptr[text.len] & 0xc0) == 0x80)
        text.len--;
    return text;
}

static void sql_said(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct said *said = sqlite3_user_data(context);
    SCOPED_BUF json = {0};
    annal_slice words = {0};
    bool was_added = false;
    (void)argc;
    const char *content = (const char *)sqlite3_value_text(argv[0]);
    annal_slice value = {content, (size_t)sqlite3_value_bytes(argv[0])};
    if (content == NULL)
        return;
    if (!load(said, sqlite3_context_db_handle(context))) {
        sqlite3_result_error_nomem(context);
        return;
    }
    value = annal__json_trim(value);
    annal_status status = find_in_content(said, value, true, &words, &was_added);
    if (status == ANNAL_END && was_added) {
        /* users write prompts in tags of their own, too */
        was_added = false;
        status = find_in_content(said, value, false, &words, &was_added);
    }
    if (status == ANNAL_END)
        words = (annal_slice){"", 0};
    if (status >= 0 && was_added)
        status = annal__json_quote(&json, cut(words));
    if (status < 0)
        sqlite3_result_error_nomem(context);
    else if (was_added)
        sqlite3_result_text64(context, json.ptr, json.len, SQLITE_TRANSIENT, SQLITE_UTF8);
}

int annal__import_said(sqlite3 *db)
{
    struct said *said = annal__zalloc(sizeof *said);
    if (said == NULL)
        return SQLITE_NOMEM;
    return sqlite3_create_function_v2(db, "said", 1, SQLITE_UTF8 | SQLITE_INNOCUOUS, said, sql_said,
                                      NULL, NULL, free_said);
}
