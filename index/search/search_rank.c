/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranking sessions.
 *
 * (1) FTS5 lists, for each term of the search, the ids of the events that contain it. An id says of
 *     which session, kind and size the event is (search_id.h), so the lists alone decide the order;
 *     rows and texts are read only for the places that are shown.
 * (2) The score of a session is BM25 over sessions, where the frequency of a term is the number of
 *     events that contain it, plus the score of its best event: the weights of the terms in it,
 *     less for a long text. Both factors were chosen by tests/bench/recall.py.
 * (3) At most ROWS_MAX ids are read, divided among the terms. A list that is cut short consists of
 *     the latest ids; the weight of its term follows from how dense the list is. So the time of a
 *     search does not grow with the store, and a word that is everywhere costs as much as any
 *     other.
 * (4) With a vector of the caller, sessions have a second order: by their event whose vector is the
 *     nearest. The score is the sum of 1 / (FUSED + rank) in both orders.
 * (5) An expression of several tokens, a phrase, is read only if one of them has a list that was
 *     not cut short: FTS5 compares the positions of all tokens.
 */
#include "index/db/db.h"
#include "index/search/search_ask.h"
#include "index/search/search_forms.h"
#include "index/search/search_id.h"
#include "index/search/search_words.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ids that are read for one search; with conditions, a row of documents is read for each of them */
#define ROWS_MAX             150000u
#define ROWS_CONDITIONED_MAX 40000u
#define TERMS_MAX            48
#define FORMS_MAX            64 /* maximum number of words that a begin* stands for */
#define PHRASE_TOKENS_MAX    8
#define PLACES               3u
#define PLACES_MAX           50u

/* BM25 over sessions, and its weight beside the best event's */
#define K1             1.2
#define B              0.75
#define SESSION_WEIGHT 2.0
/* How much a long text of an event lessens its score: as in BM25, beside one of 256 bytes; beyond 8
 * times that no more. */
#define LONG_B    0.4
#define LONG_MOST 8.0

#define PART_WEIGHT  0.5 /* of a part of a name */
#define ERROR_WEIGHT 0.8 /* of a word that was read as another */
#define RECENT_MOST  0.05
#define RECENT_US    (30.0 * 86400e6) /* age at which half of that remains */
#define PREFERRED    1.1

#define NEAR_MAX 1000u /* maximum number of events whose vectors count */
#define FUSED    60.0  /* the usual constant of reciprocal rank fusion */

enum term_kind { TERM_WORD, TERM_BEGIN, TERM_PHRASE };

struct term {
    enum term_kind kind;
    struct buf text;       /* the typed word, or the token */
    struct buf expression; /* of FTS5; of a word: of the forms that were found */
    struct buf read_as;    /* the words that it was taken for, if it does not occur */
    bool is_part;          /* of a name */
    bool is_several;       /* a phrase of words, which are terms by themselves */
    int64_t *ids;          /* descending */
    size_t count, rows, at;
    bool is_cut;
    double of_session, of_event; /* weights */
    size_t found;                /* number of events of the session at hand */
};

struct ranked {
    int64_t number, documents, last_us;
    int64_t from_seq, to_seq; /* events that are searched; to_seq 0: none */
    bool preferred;
    double score;
    uint64_t events;
    int64_t near_id;  /* its event with the nearest vector; 0: none */
    size_t near_rank; /* among these events of all sessions, from 1 on */
};

/* An event and its score. */
struct place {
    int64_t id;
    double score;
    size_t words; /* number of words in it, without parts of names and phrases of words */
};

struct ranking {
    struct asking *asking;
    annal_search_session_fn fn;
    void *arg;
    struct term terms[TERMS_MAX];
    size_t term_count;
    /* all sessions, by number */
    struct ranked *sessions;
    size_t session_count;
    double documents, last_us;
    struct search_forms *forms;
    sqlite3_stmt *list, *row, *text;
    size_t rows_most; /* for each term */
    int64_t *ids;     /* rows_most ids that were read last */
    annal_error *err;
};

/* ---- The terms ---- */

static annal_status fail_memory(annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_NOMEM, "run a search: out of memory");
}

/* Append an alternative to an expression. */
static annal_status put_quoted(struct buf *out, annal_slice text)
{
    annal_status status = out->len > 0 ? annal__buf_append(out, " OR ", 4) : ANNAL_OK;
    return status < 0 ? status : annal__search_ask_quote(out, text);
}

/* Add a term, unless there is one with this text. *out_term may become NULL. */
static annal_status add_term(struct ranking *ranking, enum term_kind kind, annal_slice text,
                             struct term **out_term)
{
    *out_term = NULL;
    for (size_t i = 0; i < ranking->term_count; i++)
        if (ranking->terms[i].kind == kind &&
            annal__slice_same(annal__buf_slice(&ranking->terms[i].text), text))
            return ANNAL_OK;
    if (ranking->term_count == TERMS_MAX)
        return ANNAL_OK;
    struct term *term = &ranking->terms[ranking->term_count++];
    *term = (struct term){.kind = kind};
    *out_term = term;
    return annal__buf_append_slice(&term->text, text);
}

struct tokens {
    struct ranking *ranking;
    struct buf plain, parts, joined; /* tokens, and parts of names, with spaces; without spaces */
    size_t count, part_count;
    bool adds; /* whether to add terms for them, as parts */
    annal_status status;
};

static int take_token(void *arg, int flags, const char *token, int len, int begin, int end)
{
    struct tokens *tokens = arg;
    const annal_slice text = {token, (size_t)len};
    bool is_part = (flags & FTS5_TOKEN_COLOCATED) != 0;
    struct term *term = NULL;
    (void)begin, (void)end;
    tokens->count += !is_part;
    tokens->part_count += is_part;
    struct buf *out = is_part ? &tokens->parts : &tokens->plain;
    if (out->len > 0)
        tokens->status = annal__buf_append(out, " ", 1);
    if (tokens->status >= 0)
        tokens->status = annal__buf_append_slice(out, text);
    if (tokens->status >= 0 && !is_part)
        tokens->status = annal__buf_append_slice(&tokens->joined, text);
    if (tokens->status >= 0 && tokens->adds)
        tokens->status = add_term(tokens->ranking, TERM_WORD, text, &term);
    if (term != NULL)
        term->is_part = true;
    return tokens->status;
}

/* Add the term of a name: the phrase of its tokens; the name without marks between them, such as
 * getuserid for get_user_id; and the phrase of the parts of a name such as getUserId. Before it are
 * the terms of its tokens. */
static annal_status add_name(struct ranking *ranking, annal_slice text, struct tokens *tokens)
{
    struct term *term = NULL;
    struct tokens again = {.ranking = ranking, .adds = true};
    if (tokens->count + tokens->part_count > 1) {
        int rc = annal__search_words_split(text, take_token, &again);
        tokens->status = rc == SQLITE_OK ? again.status : ANNAL_ERR_NOMEM;
    }
    annal__buf_done(&again.plain);
    annal__buf_done(&again.parts);
    annal__buf_done(&again.joined);
    if (tokens->status >= 0)
        tokens->status = add_term(ranking, TERM_PHRASE, text, &term);
    if (tokens->status < 0 || term == NULL)
        return tokens->status;
    annal_status status = put_quoted(&term->expression, annal__buf_slice(&tokens->plain));
    if (status >= 0 && tokens->count > 1)
        status = put_quoted(&term->expression, annal__buf_slice(&tokens->joined));
    if (status >= 0 && tokens->part_count > 1)
        status = put_quoted(&term->expression, annal__buf_slice(&tokens->parts));
    return status;
}

/* Add the terms of a typed word without spaces. */
static annal_status add_word(struct ranking *ranking, annal_slice text)
{
    struct tokens tokens = {.ranking = ranking};
    struct term *term;
    struct search_words words = annal__search_words_count(text);
    bool begins = words.is_short || (text.len > 0 && text.ptr[text.len - 1] == '*');
    annal_status status = ANNAL_OK;
    int rc = annal__search_words_split(text, take_token, &tokens);
    status = rc == SQLITE_OK && words.rc == SQLITE_OK ? tokens.status : ANNAL_ERR_NOMEM;
    if (status >= 0 && tokens.count == 1 && (tokens.part_count < 2 || begins))
        status = add_term(ranking, begins ? TERM_BEGIN : TERM_WORD, annal__buf_slice(&tokens.plain),
                          &term);
    else if (status >= 0 && tokens.count > 0)
        status = add_name(ranking, text, &tokens);
    annal__buf_done(&tokens.plain);
    annal__buf_done(&tokens.parts);
    annal__buf_done(&tokens.joined);
    return status;
}

/* Add the terms of an entry of options->words: of each word, and of the phrase. */
static annal_status add_entry(struct ranking *ranking, annal_slice entry)
{
    annal_status status = ANNAL_OK;
    struct term *term = NULL;
    size_t words = 0;
    for (size_t at = 0, len; status >= 0 && at < entry.len; at += len) {
        len = 0;
        while (at + len < entry.len && strchr(" \t\r\n", entry.ptr[at + len]) == NULL)
            len++;
        if (len > 0)
            status = add_word(ranking, (annal_slice){entry.ptr + at, len});
        words += len > 0;
        len += len == 0;
    }
    if (status < 0 || words < 2 || annal__search_words_count(entry).count > PHRASE_TOKENS_MAX)
        return status;
    status = add_term(ranking, TERM_PHRASE, entry, &term);
    if (status < 0 || term == NULL)
        return status;
    term->is_several = true;
    return put_quoted(&term->expression, entry);
}

static void done_term(struct term *term)
{
    annal__buf_done(&term->text);
    annal__buf_done(&term->expression);
    annal__buf_done(&term->read_as);
    annal__free(term->ids);
}

/* Remove the common words, unless all words are common. */
static void drop_common(struct ranking *ranking)
{
    bool common[TERMS_MAX];
    size_t kept = 0, others = 0;
    for (size_t i = 0; i < ranking->term_count; i++) {
        const struct term *term = &ranking->terms[i];
        common[i] =
            term->kind == TERM_WORD && annal__search_forms_is_common(annal__buf_slice(&term->text));
        others += term->kind != TERM_PHRASE && !common[i];
    }
    for (size_t i = 0; others > 0 && i < ranking->term_count; i++) {
        if (common[i])
            done_term(&ranking->terms[i]);
        else
            ranking->terms[kept++] = ranking->terms[i];
    }
    if (others > 0)
        ranking->term_count = kept;
}

static annal_status prepare_terms(struct asking *asking, annal_error *err)
{
    struct ranking *ranking = asking->arg;
    const annal_search_options *options = asking->options;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < options->word_count; i++)
        status = add_entry(ranking, options->words[i]);
    if (status < 0)
        return fail_memory(err);
    drop_common(ranking);
    if (options->vector_count > 0 && (options->vector == NULL || options->vector_model.len == 0 ||
                                      options->vector_count > ANNAL_EMBEDDING_MAX))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "search: a vector needs the name of its model, and has at most %d "
                           "numbers",
                           ANNAL_EMBEDDING_MAX);
    return ranking->term_count > 0 || options->vector_count > 0
               ? ANNAL_OK
               : annal__fail(err, ANNAL_ERR_INVALID,
                             "nothing to search for: give a word with a letter or digit");
}

/* ---- The sessions ---- */

/* Read the sessions, and which of their events are searched. */
static annal_status read_sessions(struct ranking *ranking, annal_error *err)
{
    struct asking *asking = ranking->asking;
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_DONE;
    bool is_limited = asking->options->session_count > 0;
    annal_status status = annal__db_prepare(
        asking->db,
        is_limited
            ? "SELECT s.number, s.documents, s.last_us, coalesce(min(p.from_seq), 0),"
              " coalesce(max(p.to_seq), 0) FROM sessions s LEFT JOIN (SELECT journal,"
              " min(from_seq) AS from_seq, max(to_seq) AS to_seq FROM temp.parts GROUP BY journal) "
              "p"
              " ON p.journal = s.session_id GROUP BY s.number ORDER BY s.number"
            : "SELECT number, documents, last_us, 1, 2147483647 FROM sessions ORDER BY number",
        &stmt, err);
    while (status >= 0 && (rc = annal__bound_step(&asking->bound, stmt)) == SQLITE_ROW) {
        struct ranked *ranked =
            annal__array_add(&ranking->sessions, &ranking->session_count, sizeof *ranked);
        if (ranked == NULL) {
            status = fail_memory(err);
            break;
        }
        ranked->number = sqlite3_column_int64(stmt, 0);
        ranked->documents = sqlite3_column_int64(stmt, 1);
        ranked->last_us = sqlite3_column_int64(stmt, 2);
        ranked->from_seq = sqlite3_column_int64(stmt, 3);
        ranked->to_seq = sqlite3_column_int64(stmt, 4);
        ranking->documents += (double)ranked->documents;
        if ((double)ranked->last_us > ranking->last_us)
            ranking->last_us = (double)ranked->last_us;
    }
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__search_ask_fail(asking, rc, err);
    sqlite3_finalize(stmt);
    return status;
}

static int compare_numbers(const void *key, const void *item)
{
    int64_t a = *(const int64_t *)key, b = ((const struct ranked *)item)->number;
    return (a > b) - (a < b);
}

static annal_status mark_preferred(struct ranking *ranking, annal_error *err)
{
    const annal_search_options *options = ranking->asking->options;
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        ranking->asking->db, "SELECT number FROM sessions WHERE session_id = ?1", &stmt, err);
    for (size_t i = 0; status >= 0 && i < options->preferred_count; i++) {
        annal__db_bind_text(stmt, 1, options->preferred[i]);
        int rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            status = annal__search_ask_fail(ranking->asking, rc, err);
        if (rc == SQLITE_ROW) {
            int64_t number = sqlite3_column_int64(stmt, 0);
            struct ranked *ranked = bsearch(&number, ranking->sessions, ranking->session_count,
                                            sizeof *ranked, compare_numbers);
            if (ranked != NULL)
                ranked->preferred = true;
        }
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return status;
}

/* ---- The vectors ---- */

/* Prepare the SELECT of the events with the nearest vectors. */
static annal_status prepare_near(struct ranking *ranking, sqlite3_stmt **out, annal_error *err)
{
    const annal_search_options *options = ranking->asking->options;
    const size_t model = 7 + options->type_count;
    SCOPED_BUF sql = {0};
    annal_status status = annal__buf_printf(
        &sql,
        "SELECT d.id FROM (SELECT * FROM (SELECT id, vec_distance_cosine(vector, ?1) AS distance "
        "FROM vectors WHERE model = ?%zu AND length(vector) = length(?1)) WHERE distance IS NOT "
        "NULL ORDER BY distance, id LIMIT ?6) n CROSS JOIN documents d ON d.id BETWEEN n.id AND "
        "n.id + 63 WHERE 1",
        model);
    if (status >= 0)
        status = annal__search_ask_conditions(&sql, options);
    if (status >= 0)
        status = annal__buf_printf(&sql, " ORDER BY n.distance, d.id");
    if (status < 0 || annal__buf_cstr(&sql) == NULL)
        status = fail_memory(err);
    else
        status = annal__db_prepare(ranking->asking->db, sql.ptr, out, err);
    if (status < 0)
        return status;
    int rc = annal__search_ask_bind(*out, options, (annal_slice){0}, NEAR_MAX);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob64(*out, 1, options->vector,
                                 options->vector_count * sizeof *options->vector, SQLITE_STATIC);
    annal__db_bind_text(*out, (int)model, options->vector_model);
    return rc == SQLITE_OK ? ANNAL_OK : annal__search_ask_fail(ranking->asking, rc, err);
}

/* Find the nearest event of each session. */
static annal_status read_near(struct ranking *ranking, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    size_t rank = 0;
    int rc = SQLITE_DONE;
    if (ranking->asking->options->vector_count == 0)
        return ANNAL_OK;
    annal_status status = prepare_near(ranking, &stmt, err);
    while (status >= 0 && (rc = annal__bound_step(&ranking->asking->bound, stmt)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(stmt, 0), number = search_id_session(id);
        int64_t seq = (int64_t)search_id_seq(id);
        struct ranked *ranked = bsearch(&number, ranking->sessions, ranking->session_count,
                                        sizeof *ranked, compare_numbers);
        if (ranked == NULL || ranked->near_id != 0 || seq < ranked->from_seq ||
            seq > ranked->to_seq)
            continue;
        ranked->near_id = id;
        ranked->near_rank = ++rank;
    }
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__search_ask_fail(ranking->asking, rc, err);
    sqlite3_finalize(stmt);
    return status;
}

/* ---- The lists ---- */

/* Prepare the SELECT of the ids of an expression, latest first. */
static annal_status prepare_list(struct ranking *ranking, annal_error *err)
{
    const annal_search_options *options = ranking->asking->options;
    SCOPED_BUF sql = {0};
    bool has_conditions = options->role.len > 0 || options->tool.len > 0 ||
                          options->type_count > 0 || options->since_us != 0 ||
                          options->until_us != 0;
    static const char all[] =
        "SELECT rowid FROM said WHERE said MATCH ?1 ORDER BY rowid DESC LIMIT ?6";
    annal_status status = ANNAL_OK;
    if (has_conditions) {
        status = annal__buf_printf(
            &sql, "SELECT d.id FROM (SELECT rowid AS id FROM said WHERE said MATCH "
                  "?1 ORDER BY rowid DESC LIMIT ?6) l CROSS JOIN documents d ON "
                  "d.id = l.id WHERE 1");
        if (status >= 0)
            status = annal__search_ask_conditions(&sql, options);
        if (status >= 0)
            status = annal__buf_printf(&sql, " ORDER BY d.id DESC");
    } else {
        status = annal__buf_append(&sql, all, sizeof all - 1);
    }
    if (status < 0 || annal__buf_cstr(&sql) == NULL)
        status = fail_memory(err);
    else
        status = annal__db_prepare(ranking->asking->db, sql.ptr, &ranking->list, err);
    unsigned all_terms = ranking->asking->index->search.rows_most;
    if (all_terms == 0)
        all_terms = has_conditions ? ROWS_CONDITIONED_MAX : ROWS_MAX;
    ranking->rows_most = all_terms / (unsigned)ranking->term_count;
    ranking->ids = annal__zalloc(ranking->rows_most * sizeof *ranking->ids);
    return status >= 0 && ranking->ids == NULL ? fail_memory(err) : status;
}

/* Merge ids, descending, into the ids of a term. */
static annal_status merge(struct term *term, const int64_t *ids, size_t count)
{
    if (count == 0)
        return ANNAL_OK;
    int64_t *both = annal__realloc_array(NULL, term->count + count, sizeof *both);
    size_t kept = 0, i = 0, j = 0;
    if (both == NULL)
        return ANNAL_ERR_NOMEM;
    while (i < term->count || j < count) {
        bool left = j == count || (i < term->count && term->ids[i] >= ids[j]);
        j += left && j < count && term->ids[i] == ids[j];
        both[kept++] = left ? term->ids[i++] : ids[j++];
    }
    annal__free(term->ids);
    term->ids = both;
    term->count = kept;
    return ANNAL_OK;
}

/* Read the ids of an expression, and add them to the ids of the term. */
static annal_status read_list(struct ranking *ranking, struct term *term, annal_slice expression,
                              size_t *out_rows)
{
    struct asking *asking = ranking->asking;
    const annal_search_options *options = asking->options;
    bool all_kinds = options->bookkeeping || options->type_count > 0;
    size_t room = ranking->rows_most - term->rows, rows = 0, count = 0;
    int rc = SQLITE_DONE;
    *out_rows = 0;
    if (room == 0)
        return ANNAL_OK;
    sqlite3_reset(ranking->list);
    int bound = annal__search_ask_bind(ranking->list, options, expression, room);
    while (bound == SQLITE_OK &&
           (rc = annal__bound_step(&asking->bound, ranking->list)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(ranking->list, 0);
        rows++;
        if (all_kinds || search_id_kind(id) != SEARCH_BOOKKEEPING)
            ranking->ids[count++] = id;
    }
    sqlite3_reset(ranking->list);
    if (bound != SQLITE_OK || rc != SQLITE_DONE)
        return annal__search_ask_fail(asking, bound != SQLITE_OK ? bound : rc, ranking->err);
    term->rows += rows;
    asking->index->search.rows_read += rows;
    term->is_cut = term->is_cut || rows == room;
    *out_rows = rows;
    return merge(term, ranking->ids, count) < 0 ? fail_memory(ranking->err) : ANNAL_OK;
}

struct reading {
    struct ranking *ranking;
    struct term *term;
    bool is_error; /* whether the forms are read for a typing error */
};

/* Add the events with a form of the term's word. */
static int read_form(void *arg, annal_slice form)
{
    const struct reading *reading = arg;
    struct term *term = reading->term;
    SCOPED_BUF expression = {0};
    size_t rows = 0;
    annal_status status = put_quoted(&expression, form);
    if (status < 0)
        status = fail_memory(reading->ranking->err);
    if (status >= 0)
        status = read_list(reading->ranking, term, annal__buf_slice(&expression), &rows);
    if (status >= 0 && rows > 0 && put_quoted(&term->expression, form) < 0)
        status = fail_memory(reading->ranking->err);
    if (status >= 0 && rows > 0 && reading->is_error &&
        annal__buf_printf(&term->read_as, "%s%.*s", term->read_as.len > 0 ? " or " : "",
                          ANNAL_FMT(form)) < 0)
        status = fail_memory(reading->ranking->err);
    return status;
}

static annal_status read_word(struct ranking *ranking, struct term *term)
{
    struct reading reading = {.ranking = ranking, .term = term};
    annal_slice word = annal__buf_slice(&term->text);
    int rc =
        term->kind == TERM_BEGIN
            ? annal__search_forms_of_begin(ranking->forms, word, FORMS_MAX, read_form, &reading)
            : annal__search_forms_of_stem(ranking->forms, word, read_form, &reading);
    reading.is_error = true;
    if (rc >= 0 && term->count == 0 && term->kind == TERM_WORD)
        rc = annal__search_forms_of_error(ranking->forms, word, read_form, &reading);
    /* the messages of all other failures are written where they occur */
    return rc == ANNAL_ERR_NOMEM ? fail_memory(ranking->err) : (annal_status)rc;
}

/* Whether FTS5 can find a phrase in limited time (rule 5). */
struct bounding {
    const struct ranking *ranking;
    bool is_bounded;
};

static int look_up_token(void *arg, int flags, const char *token, int len, int begin, int end)
{
    struct bounding *bounding = arg;
    (void)flags, (void)begin, (void)end;
    for (size_t i = 0; i < bounding->ranking->term_count; i++) {
        const struct term *term = &bounding->ranking->terms[i];
        if (term->kind == TERM_WORD && !term->is_cut &&
            annal__slice_same(annal__buf_slice(&term->text), (annal_slice){token, (size_t)len}))
            bounding->is_bounded = true;
    }
    return SQLITE_OK;
}

static annal_status read_phrase(struct ranking *ranking, struct term *term)
{
    struct bounding bounding = {.ranking = ranking};
    size_t rows;
    if (annal__search_words_split(annal__buf_slice(&term->text), look_up_token, &bounding) !=
        SQLITE_OK)
        return fail_memory(ranking->err);
    return bounding.is_bounded
               ? read_list(ranking, term, annal__buf_slice(&term->expression), &rows)
               : ANNAL_OK;
}

/* BM25's weight of a term that `found` of `all` contain. */
static double rarity(double found, double all)
{
    found = found < all ? found : all;
    return log(1 + (all - found + 0.5) / (found + 0.5));
}

static void weigh(struct ranking *ranking, struct term *term)
{
    size_t sessions = 0;
    double covered = 0, documents = 0;
    int64_t last = 0;
    for (size_t i = 0; i < term->count; i++) {
        sessions += i == 0 || search_id_session(term->ids[i]) != last;
        last = search_id_session(term->ids[i]);
    }
    for (size_t i = ranking->session_count; i-- > 0;) {
        if (term->is_cut && ranking->sessions[i].number < last)
            break;
        covered++;
        documents += (double)ranking->sessions[i].documents;
    }
    double weight = term->is_part ? PART_WEIGHT : 1;
    weight *= term->read_as.len > 0 ? ERROR_WEIGHT : 1;
    term->of_session = weight * rarity((double)sessions, covered);
    term->of_event = weight * rarity((double)term->count, documents);
}

static annal_status read_terms(struct ranking *ranking, annal_error *err)
{
    annal_status status = ranking->term_count > 0 ? prepare_list(ranking, err) : ANNAL_OK;
    /* words first: they decide whether a phrase is read */
    for (size_t i = 0; status >= 0 && i < 2 * ranking->term_count; i++) {
        struct term *term = &ranking->terms[i % ranking->term_count];
        if ((term->kind == TERM_PHRASE) != (i >= ranking->term_count))
            continue;
        if (term->kind != TERM_PHRASE)
            term->expression.len = 0;
        status = term->kind == TERM_PHRASE ? read_phrase(ranking, term) : read_word(ranking, term);
        if (status >= 0)
            weigh(ranking, term);
    }
    return status;
}

/* ---- The scores ---- */

static double event_factor(int64_t id)
{
    double length = (double)(1u << search_id_size(id)) / 8; /* 1: 256 bytes */
    length = length < LONG_MOST ? length : LONG_MOST;
    return (1 + K1) / (1 + K1 * (1 - LONG_B + LONG_B * length));
}

/* Put a place among the best, at most `most`, sorted. */
static void keep_place(struct place *places, size_t most, size_t *count, struct place place)
{
    size_t at = *count < most ? (*count)++ : most;
    for (; at > 0 && (places[at - 1].score < place.score ||
                      (places[at - 1].score <= place.score && places[at - 1].id > place.id));
         at--)
        if (at < most)
            places[at] = places[at - 1];
    if (at < most)
        places[at] = place;
}

/* Score a session, and put its best events into places. The terms are at its ids or at later
 * ones. */
static void score_session(struct ranking *ranking, struct ranked *ranked, struct place *places,
                          size_t most, size_t *count)
{
    double average = ranking->documents / (double)ranking->session_count;
    int64_t begin = search_id(ranked->number, (uint64_t)ranked->from_seq, 0, 0);
    int64_t end = search_id(ranked->number + 1, 0, 0, 0);
    ranked->events = 0;
    ranked->score = 0;
    for (size_t i = 0; i < ranking->term_count; i++) {
        struct term *term = &ranking->terms[i];
        term->found = 0;
        while (term->at < term->count && term->ids[term->at] >= end)
            term->at++; /* of a session that is not searched */
    }
    for (;;) {
        struct place place = {.id = INT64_MIN};
        for (size_t i = 0; i < ranking->term_count; i++) {
            const struct term *term = &ranking->terms[i];
            if (term->at < term->count && term->ids[term->at] > place.id)
                place.id = term->ids[term->at];
        }
        if (place.id < begin)
            break;
        bool counts = (int64_t)search_id_seq(place.id) <= ranked->to_seq;
        for (size_t i = 0; i < ranking->term_count; i++) {
            struct term *term = &ranking->terms[i];
            if (term->at == term->count || term->ids[term->at] != place.id)
                continue;
            term->at++;
            term->found += counts;
            place.score += term->of_event;
            place.words += !term->is_part && !term->is_several;
        }
        place.score *= event_factor(place.id);
        ranked->events += counts;
        if (counts)
            keep_place(places, most, count, place);
    }
    for (size_t i = 0; i < ranking->term_count; i++) {
        double found = (double)ranking->terms[i].found;
        double length = 1 - B + B * (double)ranked->documents / average;
        ranked->score += SESSION_WEIGHT * ranking->terms[i].of_session * found * (K1 + 1) /
                         (found + K1 * length);
    }
    ranked->score += *count > 0 ? places[0].score : 0;
    ranked->score *=
        1 + RECENT_MOST / (1 + (ranking->last_us - (double)ranked->last_us) / RECENT_US);
    ranked->score *= ranked->preferred ? PREFERRED : 1;
}

/* Move each term to its first id that is in the session or before. */
static void move_to(struct ranking *ranking, const struct ranked *ranked)
{
    int64_t end = search_id(ranked->number + 1, 0, 0, 0);
    for (size_t i = 0; i < ranking->term_count; i++) {
        struct term *term = &ranking->terms[i];
        size_t from = 0, to = term->count;
        while (from < to) {
            size_t middle = from + (to - from) / 2;
            if (term->ids[middle] >= end)
                from = middle + 1;
            else
                to = middle;
        }
        term->at = from;
    }
}

static int compare_scores(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->score != right->score)
        return left->score < right->score ? 1 : -1;
    if (left->last_us != right->last_us)
        return left->last_us < right->last_us ? 1 : -1;
    return (left->number < right->number) - (left->number > right->number);
}

/* Sort the sessions by both orders; they are sorted by their words. */
static void fuse(struct ranking *ranking)
{
    for (size_t i = 0; i < ranking->session_count; i++) {
        struct ranked *ranked = &ranking->sessions[i];
        ranked->score = ranked->events > 0 ? 1 / (FUSED + (double)(i + 1)) : 0;
        ranked->score += ranked->near_id != 0 ? 1 / (FUSED + (double)ranked->near_rank) : 0;
    }
    qsort(ranking->sessions, ranking->session_count, sizeof *ranking->sessions, compare_scores);
}

static void score_all(struct ranking *ranking)
{
    size_t kept = 0;
    for (size_t i = 0; i < ranking->term_count; i++)
        ranking->terms[i].at = 0;
    for (size_t i = ranking->session_count; i-- > 0;) {
        struct ranked *ranked = &ranking->sessions[i];
        struct place best;
        size_t count = 0;
        if (ranked->to_seq > 0 && ranked->documents > 0)
            score_session(ranking, ranked, &best, 1, &count);
    }
    for (size_t i = 0; i < ranking->session_count; i++)
        if (ranking->sessions[i].events > 0 || ranking->sessions[i].near_id != 0)
            ranking->sessions[kept++] = ranking->sessions[i];
    ranking->session_count = kept;
    if (kept > 0)
        qsort(ranking->sessions, kept, sizeof *ranking->sessions, compare_scores);
    if (kept > 0 && ranking->asking->options->vector_count > 0)
        fuse(ranking);
}

/* ---- The answer ---- */

/* A session with its places, copied from SQLite. */
struct shown {
    struct buf why, texts[PLACES_MAX];
    annal_search_hit hits[PLACES_MAX];
    size_t count;
};

/* "high in 2 events, water in 3; both in event 4" */
static annal_status put_why(const struct ranking *ranking, const struct ranked *ranked,
                            const struct place *best, struct buf *out)
{
    size_t found = 0, all = 0;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < ranking->term_count; i++) {
        const struct term *term = &ranking->terms[i];
        all += !term->is_part && !term->is_several;
        if (term->is_part || term->found == 0)
            continue;
        status =
            annal__buf_printf(out, term->is_several ? "%s\"%.*s\"" : "%s%.*s",
                              found++ > 0 ? ", " : "", ANNAL_FMT(annal__buf_slice(&term->text)));
        if (status >= 0 && term->read_as.len > 0)
            status = annal__buf_printf(out, ", read as %.*s,",
                                       ANNAL_FMT(annal__buf_slice(&term->read_as)));
        status = annal__buf_printf(out, " in %zu%s", term->found,
                                   found > 1          ? ""
                                   : term->found == 1 ? " event"
                                                      : " events");
    }
    if (status >= 0 && found == 0 && ranked->events > 0)
        status = annal__buf_printf(out, "parts of the words");
    if (status >= 0 && best->words > 1)
        status = annal__buf_printf(out, "; %zu of %zu in event %" PRIu64, best->words, all,
                                   search_id_seq(best->id));
    if (status >= 0 && ranked->near_id != 0)
        status = annal__buf_printf(out, "%sevent %" PRIu64 " is near in meaning",
                                   out->len > 0 ? "; " : "", search_id_seq(ranked->near_id));
    return status;
}

static annal_status copy(struct buf *out, annal_slice *slice)
{
    annal_status status = annal__buf_append_slice(out, *slice);
    *slice = (annal_slice){out->ptr + out->len - slice->len, slice->len};
    return status;
}

static annal_status show_place(struct ranking *ranking, const struct place *place,
                               struct shown *shown, annal_error *err)
{
    annal_search_hit *hit = &shown->hits[shown->count];
    struct buf *text = &shown->texts[shown->count];
    sqlite3_stmt *row = ranking->row;
    sqlite3_reset(row);
    sqlite3_bind_int64(row, 1, place->id);
    int rc = annal__bound_step(&ranking->asking->bound, row);
    if (rc == SQLITE_DONE) /* its session was deleted in another way (rule 3 of search.c) */
        return ANNAL_OK;
    if (rc != SQLITE_ROW)
        return annal__search_ask_fail(ranking->asking, rc, err);
    annal_status status = annal__search_ask_hit(ranking->asking, row, hit, err);
    if (status < 0)
        return status;
    hit->rank = -place->score;
    if (hit->snippet.len == 0) { /* without a word of the search: the begin of its text */
        sqlite3_reset(ranking->text);
        sqlite3_bind_int64(ranking->text, 1, place->id);
        rc = annal__bound_step(&ranking->asking->bound, ranking->text);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            return annal__search_ask_fail(ranking->asking, rc, err);
        if (rc == SQLITE_ROW)
            hit->snippet = annal__db_column(ranking->text, 0);
    }
    annal__buf_clear(text);
    /* make room for all, so that the slices stay */
    status = annal__buf_reserve(text, hit->type.len + hit->role.len + hit->tool.len +
                                          hit->snippet.len + hit->session.len + 1);
    annal_slice *const slices[] = {&hit->session, &hit->type, &hit->role, &hit->tool,
                                   &hit->snippet};
    for (size_t i = 0; status >= 0 && i < sizeof slices / sizeof *slices; i++)
        status = copy(text, slices[i]);
    shown->count += status >= 0;
    return status < 0 ? fail_memory(err) : ANNAL_OK;
}

/* Add the event with the nearest vector to the places, in place of the last one if there are too
 * many. */
static void add_near(struct place *places, size_t most, size_t *count, int64_t id)
{
    for (size_t i = 0; i < *count; i++)
        if (places[i].id == id)
            return;
    *count -= *count == most;
    places[(*count)++] = (struct place){.id = id};
}

static annal_status show_session(struct ranking *ranking, struct ranked *ranked,
                                 struct shown *shown, annal_error *err)
{
    struct asking *asking = ranking->asking;
    struct place places[PLACES_MAX];
    size_t count = 0, most = asking->options->places == 0 ? PLACES : asking->options->places;
    most = most < PLACES_MAX ? most : PLACES_MAX;
    double score = ranked->score;
    annal_status status = ANNAL_OK;
    shown->count = 0;
    annal__buf_clear(&shown->why);
    move_to(ranking, ranked);
    score_session(ranking, ranked, places, most, &count);
    if (ranked->near_id != 0)
        add_near(places, most, &count, ranked->near_id);
    for (size_t i = 0; status >= 0 && i < count; i++)
        status = show_place(ranking, &places[i], shown, err);
    if (status < 0 || shown->count == 0)
        return status;
    if (put_why(ranking, ranked, &places[0], &shown->why) < 0)
        return fail_memory(err);
    const annal_search_session found = {.session = shown->hits[0].session,
                                        .last_us = ranked->last_us,
                                        .events = ranked->events,
                                        .score = score,
                                        .why = annal__buf_slice(&shown->why),
                                        .places = shown->hits,
                                        .place_count = shown->count};
    asking->begun = true;
    return (annal_status)ranking->fn(ranking->arg, &found);
}

static annal_status show_all(struct ranking *ranking, annal_error *err)
{
    struct asking *asking = ranking->asking;
    uint64_t most = asking->options->limit == 0 ? UINT64_MAX : asking->options->limit;
    SCOPED_BUF expression = {0};
    struct shown *shown = annal__zalloc(sizeof *shown);
    annal_status status = shown == NULL ? fail_memory(err) : ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < ranking->term_count; i++) {
        annal_slice one = annal__buf_slice(&ranking->terms[i].expression);
        if (one.len > 0 && annal__buf_printf(&expression, "%s%.*s",
                                             expression.len > 0 ? " OR " : "", ANNAL_FMT(one)) < 0)
            status = fail_memory(err);
    }
    if (status >= 0 && expression.len == 0 &&
        annal__search_ask_quote(&expression, (annal_slice){0}) < 0)
        status = fail_memory(err);
    if (status >= 0)
        status = annal__search_ask_snippets(asking, annal__buf_slice(&expression), err);
    if (status >= 0)
        status = annal__db_prepare(asking->db,
                                   "SELECT " SEARCH_HIT_COLUMNS " FROM documents d JOIN sessions s "
                                   "ON s.number = d.id >> 37 WHERE d.id = ?1",
                                   &ranking->row, err);
    if (status >= 0)
        status =
            annal__db_prepare(asking->db, "SELECT substr(text, 1, 120) FROM texts WHERE id = ?1",
                              &ranking->text, err);
    for (size_t i = 0; status == ANNAL_OK && i < ranking->session_count && i < most; i++)
        status = show_session(ranking, &ranking->sessions[i], shown, err);
    if (shown != NULL) {
        annal__buf_done(&shown->why);
        for (size_t i = 0; i < PLACES_MAX; i++)
            annal__buf_done(&shown->texts[i]);
    }
    annal__free(shown);
    return status;
}

static annal_status rank_sessions(struct asking *asking, annal_error *err)
{
    struct ranking *ranking = asking->arg;
    ranking->err = err;
    annal_status status = annal__search_forms_new(asking->db, &ranking->forms, err);
    if (status >= 0)
        status = read_sessions(ranking, err);
    if (status >= 0)
        status = mark_preferred(ranking, err);
    if (status >= 0 && ranking->session_count > 0)
        status = read_terms(ranking, err);
    if (status >= 0)
        status = read_near(ranking, err);
    if (status >= 0 && ranking->session_count > 0) {
        score_all(ranking);
        status = show_all(ranking, err);
    }
    sqlite3_finalize(ranking->list);
    sqlite3_finalize(ranking->row);
    sqlite3_finalize(ranking->text);
    annal__search_forms_free(ranking->forms);
    annal__free(ranking->sessions);
    annal__free(ranking->ids);
    ranking->list = ranking->row = ranking->text = NULL;
    ranking->forms = NULL;
    ranking->sessions = NULL;
    ranking->ids = NULL;
    ranking->session_count = 0;
    ranking->documents = ranking->last_us = 0;
    for (size_t i = 0; i < ranking->term_count; i++) {
        struct term *term = &ranking->terms[i];
        annal__free(term->ids);
        term->ids = NULL;
        term->count = term->rows = 0;
        term->is_cut = false;
        annal__buf_clear(&term->read_as);
    }
    return status;
}

annal_status annal_search_session_each(annal_index *index, const annal_search_options *options,
                                       annal_search_session_fn fn, void *arg, annal_lag *out_lag,
                                       annal_error *err)
{
    struct ranking *ranking = annal__zalloc(sizeof *ranking);
    struct asking asking = {.index = index,
                            .options = options,
                            .prepare = prepare_terms,
                            .answer = rank_sessions,
                            .arg = ranking};
    if (ranking == NULL)
        return fail_memory(err);
    ranking->asking = &asking;
    ranking->fn = fn;
    ranking->arg = arg;
    annal_status status = annal__search_ask(&asking, out_lag, err);
    for (size_t i = 0; i < ranking->term_count; i++)
        done_term(&ranking->terms[i]);
    annal__free(ranking);
    return status;
}
