/* SPDX-License-Identifier: Apache-2.0 */
/* Searching search.db: composing an expression of FTS5 from words, and a snippet for each hit. */
#include "index/search/search_ask.h"

#include "index/db/db.h"
#include "index/follow/plan.h"
#include "index/query/query.h"
#include "index/search/search.h"
#include "index/search/search_id.h"
#include "index/search/search_words.h"
#include "index/search/snippet.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <stdio.h>
#include <string.h>

#define SNIPPET_WORDS     16
#define SNIPPET_WORDS_MAX 64 /* maximum number of words of a snippet, as in FTS5 */
#define ATTEMPTS_MAX      5

/* The function of annal_search_each(). */
struct listing {
    annal_search_fn fn;
    void *arg;
};

/* ---- The expression ---- */

annal_status annal__search_ask_quote(struct buf *out, annal_slice text)
{
    annal_status status = annal__buf_append(out, "\"", 1);
    for (size_t i = 0; status >= 0 && i < text.len; i++)
        status = text.ptr[i] == '"'    ? annal__buf_append(out, "\"\"", 2)
                 : text.ptr[i] == '\0' ? annal__buf_append(out, " ", 1)
                                       : annal__buf_append(out, text.ptr + i, 1);
    return status < 0 ? status : annal__buf_append(out, "\"", 1);
}

/* Append a word or phrase in quotes, followed by * if its last word is a prefix. */
static annal_status put_word(struct buf *out, annal_slice word, bool is_short)
{
    bool any_rest = is_short || (word.len > 0 && word.ptr[word.len - 1] == '*');
    annal_status status = out->len > 0 ? annal__buf_append(out, " ", 1) : ANNAL_OK;
    if (status >= 0)
        status = annal__search_ask_quote(out, word);
    return status >= 0 && any_rest ? annal__buf_append(out, "*", 1) : status;
}

static annal_status put_expression(struct asking *asking, annal_error *err)
{
    const annal_search_options *options = asking->options;
    annal_status status = ANNAL_OK;
    if (options->expression.len > 0)
        status = annal__buf_append_slice(&asking->expression, options->expression);
    for (size_t i = 0; status >= 0 && options->expression.len == 0 && i < options->word_count;
         i++) {
        struct search_words words = annal__search_words_count(options->words[i]);
        if (words.rc != SQLITE_OK)
            status = ANNAL_ERR_NOMEM;
        else if (words.count > 0) /* leave out a text without a word, which would match nothing */
            status = put_word(&asking->expression, options->words[i], words.is_short);
    }
    if (status < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "prepare a search: out of memory");
    if (asking->expression.len == 0)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "nothing to search for: give a word with a letter or digit");
    return ANNAL_OK;
}

annal_status annal__search_ask_conditions(struct buf *sql, const annal_search_options *options)
{
    annal_status status = ANNAL_OK;
    if (options->role.len > 0)
        status = annal__buf_printf(sql, " AND d.role = ?2");
    if (status >= 0 && options->tool.len > 0)
        status = annal__buf_printf(sql, " AND d.tool = ?3");
    if (status >= 0 && options->since_us != 0)
        status = annal__buf_printf(sql, " AND d.timestamp >= ?4");
    if (status >= 0 && options->until_us != 0)
        status = annal__buf_printf(sql, " AND d.timestamp < ?5");
    if (status >= 0 && options->type_count == 0 && !options->bookkeeping)
        status = annal__buf_printf(sql, " AND d.id >> 4 & 3 <> %d", (int)SEARCH_BOOKKEEPING);
    return status < 0 ? status
                      : annal__query_put_types(sql, "d.type", options->types, options->type_count);
}

static annal_status put_hits(struct buf *sql, const struct asking *asking)
{
    const annal_search_options *options = asking->options;
    bool best = options->order == ANNAL_SEARCH_BEST;
    annal_status status = annal__buf_printf(
        sql,
        "SELECT " SEARCH_HIT_COLUMNS ", %s FROM said CROSS JOIN documents d ON d.id = said.rowid "
        "CROSS JOIN sessions s ON s.number = d.id >> 37 WHERE said MATCH ?1",
        best ? "said.rank" : "0.0");
    if (status >= 0 && options->session_count > 0)
        status = annal__buf_printf(sql, " AND EXISTS (SELECT 1 FROM temp.parts p WHERE p.journal = "
                                        "s.session_id AND d.id >> 6 & 0x7fffffff BETWEEN "
                                        "p.from_seq AND p.to_seq)");
    if (status >= 0)
        status = annal__search_ask_conditions(sql, options);
    if (status < 0)
        return status;
    return annal__buf_printf(sql, best ? " ORDER BY d.role = '' AND d.tool = '', said.rank LIMIT ?6"
                                       : " ORDER BY d.timestamp DESC, s.session_id, d.id DESC "
                                         "LIMIT ?6");
}

/* Bind a text unless *rc is an error, and set *rc. */
static void bind(sqlite3_stmt *stmt, int at, annal_slice text, int *rc)
{
    if (*rc == SQLITE_OK)
        *rc = sqlite3_bind_text64(stmt, at, text.len == 0 ? "" : text.ptr, text.len,
                                  SQLITE_TRANSIENT, SQLITE_UTF8);
}

int annal__search_ask_bind(sqlite3_stmt *stmt, const annal_search_options *options,
                           annal_slice expression, uint64_t limit)
{
    char since[ANNAL_TIME_BYTES], until[ANNAL_TIME_BYTES];
    annal_time_format(options->since_us, since);
    annal_time_format(options->until_us, until);
    int rc = SQLITE_OK;
    bind(stmt, 1, expression, &rc);
    bind(stmt, 2, options->role, &rc);
    bind(stmt, 3, options->tool, &rc);
    bind(stmt, 4, annal_slice_of(since), &rc);
    bind(stmt, 5, annal_slice_of(until), &rc);
    sqlite3_bind_int64(stmt, 6, limit == 0 || limit > INT64_MAX ? -1 : (sqlite3_int64)limit);
    for (size_t i = 0; i < options->type_count; i++)
        bind(stmt, (int)i + 7, options->types[i], &rc);
    return rc;
}

annal_status annal__search_ask_snippets(struct asking *asking, annal_slice expression,
                                        annal_error *err)
{
    const annal_search_options *options = asking->options;
    uint32_t words = options->snippet_words == 0 ? SNIPPET_WORDS : options->snippet_words;
    annal_status status = annal__db_prepare(asking->db,
                                            "SELECT annal_snippet(said, ?3, ?4, ?5) FROM said "
                                            "WHERE said MATCH ?1 AND rowid = ?2",
                                            &asking->snippet, err);
    if (status < 0)
        return status;
    int rc = SQLITE_OK;
    bind(asking->snippet, 1, expression, &rc);
    bind(asking->snippet, 3, annal_slice_of(options->mark_begin == NULL ? "" : options->mark_begin),
         &rc);
    bind(asking->snippet, 4, annal_slice_of(options->mark_end == NULL ? "" : options->mark_end),
         &rc);
    sqlite3_bind_int(asking->snippet, 5,
                     words > SNIPPET_WORDS_MAX ? SNIPPET_WORDS_MAX : (int)words);
    return rc == SQLITE_OK ? ANNAL_OK : annal__search_ask_fail(asking, rc, err);
}

static annal_status prepare_hits(struct asking *asking, annal_error *err)
{
    const annal_search_options *options = asking->options;
    annal_slice expression = annal__buf_slice(&asking->expression);
    SCOPED_BUF sql = {0};
    annal_status status = put_hits(&sql, asking);
    if (status < 0 || annal__buf_cstr(&sql) == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "prepare a search: out of memory");
    else
        status = annal__db_prepare(asking->db, sql.ptr, &asking->hits, err);
    if (status >= 0)
        status = annal__search_ask_snippets(asking, expression, err);
    int rc = status >= 0 ? annal__search_ask_bind(asking->hits, options, expression, options->limit)
                         : SQLITE_OK;
    return rc == SQLITE_OK ? status : annal__search_ask_fail(asking, rc, err);
}

/* ---- Answering ---- */

annal_status annal__search_ask_fail(const struct asking *asking, int rc, annal_error *err)
{
    annal_status status = annal__bound_fail(&asking->bound, rc, "search", err);
    if (status < 0)
        return status;
    if (rc == SQLITE_ERROR && asking->options->expression.len > 0)
        return annal__fail(err, ANNAL_ERR_SQL, "invalid search expression: %s",
                           sqlite3_errmsg(asking->db));
    return annal__db_fail(err, asking->db, rc, "cannot run a search");
}

annal_status annal__search_ask_hit(struct asking *asking, sqlite3_stmt *row,
                                   annal_search_hit *out_hit, annal_error *err)
{
    annal_search_hit hit = {.session = annal__db_column(row, 1),
                            .seq = (uint64_t)sqlite3_column_int64(row, 2),
                            .type = annal__db_column(row, 4),
                            .role = annal__db_column(row, 5),
                            .tool = annal__db_column(row, 6)};
    if (annal_time_parse(annal__db_column(row, 3), &hit.ts_us, NULL) < 0)
        hit.ts_us = 0;
    sqlite3_reset(asking->snippet);
    sqlite3_bind_int64(asking->snippet, 2, sqlite3_column_int64(row, 0));
    int rc = annal__bound_step(&asking->bound, asking->snippet);
    if (rc == SQLITE_ROW)
        hit.snippet = annal__db_column(asking->snippet, 0);
    else if (rc != SQLITE_DONE)
        return annal__search_ask_fail(asking, rc, err);
    *out_hit = hit;
    return ANNAL_OK;
}

static annal_status hand_out(struct asking *asking, annal_error *err)
{
    const struct listing *listing = asking->arg;
    annal_search_hit hit;
    annal_status status = annal__search_ask_hit(asking, asking->hits, &hit, err);
    if (status < 0)
        return status;
    hit.rank = sqlite3_column_double(asking->hits, 7);
    asking->begun = true;
    return (annal_status)listing->fn(listing->arg, &hit);
}

static annal_status list_hits(struct asking *asking, annal_error *err)
{
    annal_status status = prepare_hits(asking, err);
    while (status == ANNAL_OK) {
        int rc = annal__bound_step(&asking->bound, asking->hits);
        if (rc == SQLITE_DONE)
            break;
        status = rc == SQLITE_ROW ? hand_out(asking, err) : annal__search_ask_fail(asking, rc, err);
    }
    return status;
}

/* ---- Catching up search.db ---- */

static annal_status measure_lag(struct search *search, const struct history *history,
                                const annal_error *why, annal_lag *out_lag, annal_error *err)
{
    struct plan plan = {0};
    uint64_t bytes = 0;
    annal_status status =
        annal__plan_make(&search->follower, history->journals, history->journal_count, NULL,
                         search->derived.wait_ms, &plan, err);
    if (status >= 0) {
        annal__plan_look_ahead(&search->follower, &plan, &bytes);
        *out_lag = (annal_lag){.sessions = plan.count, .bytes = bytes};
        snprintf(out_lag->message, sizeof out_lag->message, "%.255s",
                 bytes > 0 ? why->message : "");
    }
    annal__plan_done(&plan);
    return status;
}

static annal_status connect(struct asking *asking, annal_lag *out_lag, annal_error *err)
{
    static const annal_catch_up_options patient = {.timeout_ms = ANNAL_NO_TIMEOUT};
    struct search *search = &asking->index->search;
    const struct history *history = &asking->history;
    const annal_catch_up_options *options =
        asking->options->catch_up == NULL ? &patient : asking->options->catch_up;
    for (unsigned attempt = 1;; attempt++) {
        struct stamp caught_up = {0}, opened = {0};
        bool stuck = false;
        annal_error why = {0};
        annal_status caught_up_status =
            search->derived.frozen
                ? ANNAL_ERR_IO
                : annal__indexer_run(&search->follower, history->journals, history->journal_count,
                                     NULL, options, &caught_up, &stuck, &why);
        annal_status status = annal__derived_reader(&search->derived, search->derived.wait_ms,
                                                    &asking->db, &opened, err);
        if (status < 0)
            return status;
        if (caught_up_status >= 0 && annal__derived_stamp_holds(opened, caught_up))
            return ANNAL_OK;
        if (search->derived.frozen)
            snprintf(why.message, sizeof why.message, "the store is open for reading only");
        if (caught_up_status < 0)
            return measure_lag(search, history, &why, out_lag, err);
        annal__db_close(asking->db);
        asking->db = NULL;
        if (attempt >= ATTEMPTS_MAX)
            return annal__fail(err, ANNAL_ERR_BUSY, "another process keeps deleting search.db");
    }
}

static annal_status ask(struct asking *asking, annal_lag *out_lag, annal_error *err)
{
    const annal_search_options *options = asking->options;
    annal_status status = annal__history_read(asking->index->store, options->sessions,
                                              options->session_count, &asking->history, err);
    if (status >= 0)
        status = connect(asking, out_lag, err);
    if (status >= 0 && options->session_count > 0)
        status = annal__history_put(&asking->history, asking->db, err);
    if (status >= 0)
        status = annal__search_add_functions(asking->db, asking->index->store, err);
    if (status >= 0)
        status = annal__snippet_add(asking->db, err);
    if (status >= 0) {
        annal__bound_begin(&asking->bound, asking->db, &options->limits);
        status = asking->answer(asking, err);
        annal__bound_end(&asking->bound);
    }
    sqlite3_finalize(asking->hits);
    sqlite3_finalize(asking->snippet);
    annal__db_close(asking->db);
    annal__history_done(&asking->history);
    asking->hits = asking->snippet = NULL;
    asking->db = NULL;
    asking->history = (struct history){0};
    return status;
}

annal_status annal__search_ask(struct asking *asking, annal_lag *out_lag, annal_error *err)
{
    annal_index *index = asking->index;
    const annal_search_options *options = asking->options;
    annal_error why = {0};
    annal_lag lag = {0};
    annal_status status;
    if (annal__search_is_off(&index->search))
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "search is disabled in this store; 'annal search --on' enables search, "
                           "and the next search reads all journals");
    status = annal__query_check(&(annal_filter){.sessions = options->sessions,
                                                .session_count = options->session_count,
                                                .types = options->types,
                                                .type_count = options->type_count},
                                &why);
    if (status >= 0)
        status = asking->prepare(asking, &why);
    if (status >= 0)
        status = ask(asking, &lag, &why);
    if (status == ANNAL_ERR_CORRUPT && !asking->begun &&
        annal__derived_heal(&index->search.derived))
        status = ask(asking, &lag, &why);
    if (status < 0 && err != NULL)
        *err = why;
    /* no space or no permission: search an index in memory, as for sessions.db */
    if (annal__error_is_io(status) && !asking->begun && !index->search.derived.frozen &&
        annal__derived_is_hopeless(&why)) {
        struct stamp unused;
        status = annal__fallback_begin(index, &why, err);
        asking->index = annal__fallback_or_self(index, &unused);
        if (status >= 0)
            status = ask(asking, &lag, err);
    }
    annal__buf_done(&asking->expression);
    if (out_lag != NULL)
        *out_lag = lag;
    return status;
}

annal_status annal_search_each(annal_index *index, const annal_search_options *options,
                               annal_search_fn fn, void *arg, annal_lag *out_lag, annal_error *err)
{
    struct listing listing = {.fn = fn, .arg = arg};
    struct asking asking = {.index = index,
                            .options = options,
                            .prepare = put_expression,
                            .answer = list_hits,
                            .arg = &listing};
    return annal__search_ask(&asking, out_lag, err);
}
