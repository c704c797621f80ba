/* SPDX-License-Identifier: Apache-2.0 */
#include "index/search/snippet.h"

#include "index/db/db.h"
#include "index/search/search_words.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"

#include <string.h>

/* number of instances from the beginning of a text that are compared; further instances are
 * ignored */
#define INSTANCES_MAX 2000

/* A phrase of the expression that was found in the text. Tokens are counted from 0. */
struct instance {
    int phrase;
    int begin, end; /* index of the phrase's first token, and of the token after its last */
};

struct snippet {
    const struct instance *instances;
    int count, next;
    int begin, end; /* first token of the window, and the token after its last */
    int token;      /* number of the next token */
    bool marked;    /* whether the next token is inside a mark */
    int marked_end;
    const char *text, *mark_begin, *mark_end;
    int copied; /* offset in the text up to which it was copied to the snippet, or skipped */
    /* offset of the end of the last token; a pair of letters overlaps the next pair */
    int last_end;
    bool ends_early;
    struct buf out;
    annal_status status;
};

/* ---- Choosing the window ---- */

static int read_instances(const Fts5ExtensionApi *api, Fts5Context *fts,
                          struct instance instances[INSTANCES_MAX], int *out_count)
{
    int count = 0;
    int rc = api->xInstCount(fts, &count);
    *out_count = count < INSTANCES_MAX ? count : INSTANCES_MAX;
    for (int i = 0; rc == SQLITE_OK && i < *out_count; i++) {
        int column;
        rc = api->xInst(fts, i, &instances[i].phrase, &column, &instances[i].begin);
        instances[i].end = instances[i].begin + api->xPhraseSize(fts, instances[i].phrase);
    }
    return rc;
}

/*
 * Choose the window of this many words, in a text of this many tokens, that has the most different
 * phrases, and of windows with equally many phrases the window with the most instances. Both ends
 * of the window only move forward, so this takes time linear in the number of instances.
 */
static void choose_window(struct snippet *snippet, int *seen, int words, int tokens)
{
    const struct instance *instances = snippet->instances;
    int best = -1, phrases = 0, from = 0, best_from = 0, best_to = 0;
    for (int to = 0; to < snippet->count; to++) {
        phrases += seen[instances[to].phrase]++ == 0;
        while (from < to && instances[to].end - instances[from].begin > words)
            phrases -= --seen[instances[from++].phrase] == 0;
        int score = phrases * INSTANCES_MAX + (to - from);
        if (score > best) {
            best = score;
            best_from = from;
            best_to = to;
        }
    }
    if (best >= 0) {
        int around = words - (instances[best_to].end - instances[best_from].begin);
        snippet->begin = instances[best_from].begin - (around > 0 ? around / 2 : 0);
    }
    if (snippet->begin > tokens - words)
        snippet->begin = tokens - words;
    if (snippet->begin < 0)
        snippet->begin = 0;
    snippet->end = snippet->begin + words;
}

/* ---- Copying the text of the window ---- */

static void put(struct snippet *snippet, const char *bytes, size_t len)
{
    if (snippet->status >= 0)
        snippet->status = annal__buf_append(&snippet->out, bytes, len);
}

static void copy_to(struct snippet *snippet, int offset)
{
    if (offset > snippet->copied)
        put(snippet, snippet->text + snippet->copied, (size_t)(offset - snippet->copied));
    snippet->copied = offset;
}

static void end_mark(struct snippet *snippet)
{
    if (!snippet->marked)
        return;
    copy_to(snippet, snippet->last_end);
    put(snippet, snippet->mark_end, strlen(snippet->mark_end));
    snippet->marked = false;
}

/* Begin a mark if an instance of a searched word begins at this token. Overlapping instances share
 * one mark. */
static void begin_mark(struct snippet *snippet, int begin_byte)
{
    while (snippet->next < snippet->count &&
           snippet->instances[snippet->next].begin <= snippet->token) {
        const struct instance *instance = &snippet->instances[snippet->next++];
        if (instance->end <= snippet->token)
            continue;
        if (!snippet->marked) {
            copy_to(snippet, begin_byte);
            put(snippet, snippet->mark_begin, strlen(snippet->mark_begin));
            snippet->marked = true;
            snippet->marked_end = instance->end;
        } else if (instance->end > snippet->marked_end) {
            snippet->marked_end = instance->end;
        }
    }
}

/* Copy the text before a token, and begin or end marks. FTS5 calls this for each token; SQLITE_DONE
 * ends its walk. */
static int take_token(void *arg, int flags, const char *token, int len, int begin, int end)
{
    struct snippet *snippet = arg;
    (void)token;
    (void)len;
    if (flags & FTS5_TOKEN_COLOCATED)
        return SQLITE_OK;
    if (snippet->token >= snippet->end) {
        snippet->ends_early = true;
        return SQLITE_DONE;
    }
    if (snippet->token == snippet->begin && snippet->begin > 0) {
        put(snippet, "…", strlen("…"));
        snippet->copied = begin;
    }
    if (snippet->token >= snippet->begin) {
        begin_mark(snippet, begin);
        snippet->last_end = end;
        if (snippet->marked && snippet->token + 1 >= snippet->marked_end)
            end_mark(snippet);
    }
    snippet->token++;
    return snippet->status < 0 ? SQLITE_NOMEM : SQLITE_OK;
}

static int write_text(const Fts5ExtensionApi *api, Fts5Context *fts, struct snippet *snippet)
{
    int len = 0;
    int rc = api->xColumnText(fts, 0, &snippet->text, &len);
    if (rc == SQLITE_OK)
        rc = api->xTokenize(fts, snippet->text, len, snippet, take_token);
    if (rc == SQLITE_DONE)
        rc = SQLITE_OK;
    if (rc != SQLITE_OK)
        return rc;
    end_mark(snippet);
    if (snippet->ends_early) {
        copy_to(snippet, snippet->last_end);
        put(snippet, "…", strlen("…"));
    } else {
        copy_to(snippet, len);
    }
    return snippet->status < 0 ? SQLITE_NOMEM : SQLITE_OK;
}

/* Implement annal_snippet(said, mark_begin, mark_end, words). */
static void sql_snippet(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *context,
                        int count, sqlite3_value **values)
{
    struct snippet snippet = {.mark_begin = (const char *)sqlite3_value_text(values[0]),
                              .mark_end = (const char *)sqlite3_value_text(values[1])};
    (void)count;
    struct instance *instances = annal__zalloc(INSTANCES_MAX * sizeof *instances);
    int *seen = annal__zalloc(((size_t)api->xPhraseCount(fts) + 1) * sizeof *seen);
    int rc = SQLITE_NOMEM, tokens = 0;
    if (instances != NULL && seen != NULL && snippet.mark_begin != NULL && snippet.mark_end != NULL)
        rc = read_instances(api, fts, instances, &snippet.count);
    if (rc == SQLITE_OK)
        rc = api->xColumnSize(fts, 0, &tokens);
    snippet.instances = instances;
    if (rc == SQLITE_OK) {
        choose_window(&snippet, seen, sqlite3_value_int(values[2]), tokens);
        rc = write_text(api, fts, &snippet);
    }
    if (rc == SQLITE_OK)
        sqlite3_result_text64(context, snippet.out.len == 0 ? "" : snippet.out.ptr, snippet.out.len,
                              SQLITE_TRANSIENT, SQLITE_UTF8);
    else
        sqlite3_result_error_code(context, rc);
    annal__buf_done(&snippet.out);
    annal__free(instances);
    annal__free(seen);
}

annal_status annal__snippet_add(sqlite3 *db, annal_error *err)
{
    fts5_api *api;
    annal_status status = annal__search_fts5(db, &api, err);
    if (status < 0)
        return status;
    int rc = api->xCreateFunction(api, "annal_snippet", NULL, sql_snippet, NULL);
    return rc == SQLITE_OK ? ANNAL_OK
                           : annal__db_fail(err, db, rc, "cannot add the SQL functions of search");
}
