/* SPDX-License-Identifier: Apache-2.0 */
#include "index/state/state.h"

#include "index/db/db.h"
#include "index/db/readers.h"
#include "index/sys/pack.h"
#include "index/sys/state.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"

#include <stdio.h>
#include <string.h>

static annal_slice session_of(const annal_state *state)
{
    return annal_slice_of(state->session);
}

/* ---- Creating ---- */

uint64_t annal__state_packs_version(const annal_pack *const *packs, size_t count)
{
    uint64_t hash = INDEX_CODE_VERSION;
    for (size_t i = 0; i < count; i++)
        hash = annal__hash(&packs[i]->hash, sizeof packs[i]->hash, hash);
    return hash;
}

static annal_status take_packs(annal_state *state, const annal_pack *const *packs, size_t count,
                               annal_error *err)
{
    if (packs == NULL) {
        annal_status status = annal__pack_core(&state->core, err);
        if (status < 0)
            return status;
        packs = (const annal_pack *const *)&state->core;
        count = 1;
    }
    state->packs = annal__zalloc((count + 1) * sizeof *state->packs);
    if (state->packs == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "build the state of session '%s': out of memory",
                           state->session);
    memcpy(state->packs, packs, count * sizeof *state->packs);
    state->pack_count = count;
    return ANNAL_OK;
}

/* Create a state without tables: its packs, pages and connection. */
static annal_status state_alloc(annal_slice session, const annal_pack *const *packs, size_t count,
                                const annal__state_source *source, annal_state **out_state,
                                annal_error *err)
{
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    annal_state *state = annal__zalloc(sizeof *state);
    if (state == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "build the state of session '%.*s': out of memory",
                           ANNAL_FMT(session));
    memcpy(state->session, session.ptr, session.len);
    status = take_packs(state, packs, count, err);
    if (status >= 0)
        status = annal__state_vfs_open(source, &state->pages, &state->db, err);
    for (size_t i = 0; status >= 0 && i < count; i++)
        /* the tables of a writable pack have triggers for rows that users write; switch them off,
         * as on the connection that fills the pack's database */
        if (packs[i]->writable)
            sqlite3_db_config(state->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    if (status < 0) {
        annal_state_free(state);
        return status;
    }
    *out_state = state;
    return ANNAL_OK;
}

#define OWN_TABLE "_state (session_id TEXT, seq INTEGER, refused INTEGER)"

static annal_status make_tables(annal_state *state, annal_error *err)
{
    annal_status status = annal__db_exec(state->db, "CREATE TABLE " OWN_TABLE, err);
    for (size_t i = 0; status >= 0 && i < state->pack_count; i++)
        status = annal__pack_try_tables(state->packs[i], state->db, err);
    return status;
}

/*
 * Store a copy of the pages of an empty state in the pack, from which later states are created:
 * creating the tables takes as long as applying some hundred events, and their pages are always the
 * same.
 */
static void keep_blank(const annal_state *state, const annal_pack *pack)
{
    uint64_t count = annal__state_vfs_count(state->pages);
    struct pack_blank *none = NULL;
    struct pack_blank *blank =
        annal__zalloc(sizeof *blank + (size_t)count * ANNAL_STATE_PAGE_BYTES);
    bool kept = blank != NULL;
    for (uint64_t page = 1; kept && page <= count; page++)
        kept = annal__state_vfs_read(state->pages, page,
                                     blank->pages + (page - 1) * ANNAL_STATE_PAGE_BYTES, NULL) >= 0;
    if (kept) {
        blank->count = count;
        kept = atomic_compare_exchange_strong(pack->blank, &none, blank);
    }
    /* not stored: memory ran out, a page could not be read, or another thread was first */
    if (!kept)
        annal__free(blank);
}

static annal_status read_blank(void *arg, uint64_t page, void *out, annal_error *err)
{
    const struct pack_blank *blank = arg;
    (void)err;
    memcpy(out, blank->pages + (page - 1) * ANNAL_STATE_PAGE_BYTES, ANNAL_STATE_PAGE_BYTES);
    return ANNAL_OK;
}

/* Return the copy of the pages of an empty state for these packs, or NULL. */
static struct pack_blank *find_blank(const annal_pack *const *packs, size_t count)
{
    return packs == NULL || count != 1 || packs[0]->blank == NULL ? NULL
                                                                  : atomic_load(packs[0]->blank);
}

static annal__state_source blank_source(struct pack_blank *blank)
{
    return (annal__state_source){.page_count = blank->count, .read = read_blank, .arg = blank};
}

annal_status annal__state_new(annal_slice session, const annal_pack *const *packs,
                              size_t pack_count, annal_state **out_state, annal_error *err)
{
    annal_state *state = NULL;
    bool copies = packs != NULL && pack_count == 1 && packs[0]->blank != NULL;
    struct pack_blank *blank = find_blank(packs, pack_count);
    annal__state_source source = {0};
    if (blank != NULL)
        source = blank_source(blank);
    annal_status status =
        state_alloc(session, packs, pack_count, blank == NULL ? NULL : &source, &state, err);
    if (status < 0)
        goto done;
    status = blank == NULL ? make_tables(state, err) : annal__state_vfs_own(state->pages, err);
    if (status >= 0 && copies && blank == NULL)
        keep_blank(state, packs[0]);
    if (status >= 0)
        status =
            annal__applier_new(state->db, state->packs, state->pack_count, &state->applier, err);
    if (status < 0)
        goto done;
    *out_state = state;
    state = NULL;

done:
    annal_state_free(state);
    return status;
}

/* Parse a pack, and check it by creating a state with it. */
annal_status annal_pack_parse(const char *name, annal_slice text, annal_pack **out_pack,
                              annal_error *err)
{
    annal_pack *pack = NULL;
    annal_state *trial = NULL;
    annal_status status = annal__pack_read(name, text, &pack, err);
    if (status >= 0)
        status = annal__state_new(ANNAL_SLICE("trial"), (const annal_pack *const[]){pack}, 1,
                                  &trial, err);
    if (status >= 0)
        status = annal__pack_check_verbs(pack, trial->db, err);
    if (status >= 0)
        status = annal__shape_of_database(&pack->shape, trial->db, err);
    annal_state_free(trial);
    if (status < 0) {
        annal_pack_free(pack);
        return status;
    }
    *out_pack = pack;
    return ANNAL_OK;
}

void annal_state_free(annal_state *state)
{
    if (state == NULL)
        return;
    annal__applier_free(state->applier);
    if (state->db != NULL)
        annal__db_finalize(state->db);
    annal__db_close(state->db);
    annal__state_vfs_free(state->pages);
    annal__free(state->deletes);
    annal__free(state->packs);
    annal_pack_free(state->core);
    annal__free(state);
}

/* Prepare a DELETE for each table. */
static annal_status prepare_deletes(annal_state *state, annal_error *err)
{
    SCOPED_BUF sql = {0};
    sqlite3_stmt *tables = NULL;
    int rc = SQLITE_DONE;
    annal_status status = annal__db_prepare(state->db,
                                            "SELECT name FROM sqlite_schema WHERE type = 'table'"
                                            " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
                                            &tables, err);
    while (status >= 0 && (rc = sqlite3_step(tables)) == SQLITE_ROW) {
        sqlite3_stmt **stmt =
            annal__array_add(&state->deletes, &state->delete_count, sizeof(sqlite3_stmt *));
        annal__buf_clear(&sql);
        if (stmt == NULL ||
            annal__buf_printf(&sql, "DELETE FROM \"%.*s\"",
                              ANNAL_FMT(annal__db_column(tables, 0))) < 0 ||
            annal__buf_cstr(&sql) == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM,
                                 "build the state of session '%s': out of memory", state->session);
        else
            status = annal__db_prepare(state->db, sql.ptr, stmt, err);
    }
    if (status >= 0 && rc != SQLITE_DONE)
        status =
            annal__db_fail(err, state->db, rc,
                           "cannot list the tables of the state of session '%s'", state->session);
    if (status < 0) {
        annal__free(state->deletes); /* the statements are finalized with the connection */
        state->deletes = NULL;
        state->delete_count = 0;
    }
    sqlite3_finalize(tables);
    return status;
}

/* Delete the rows that earlier transactions committed. */
static annal_status delete_rows(annal_state *state, annal_error *err)
{
    annal_status status = state->deletes == NULL ? prepare_deletes(state, err) : ANNAL_OK;
    if (status >= 0)
        status = annal__readers_run(state->db, "BEGIN", err);
    for (size_t i = 0; status >= 0 && i < state->delete_count; i++)
        status = annal__db_run(state->deletes[i], err);
    if (status >= 0)
        status = annal__readers_run(state->db, "COMMIT", err);
    if (status >= 0)
        state->has_rows = false;
    return status;
}

annal_status annal__state_reset(annal_state *state, annal_slice session, annal_error *err)
{
    annal_status status = annal_session_id_check(session, err);
    if (status >= 0 && state->in_transaction > 0)
        status = annal__readers_run(state->db, "ROLLBACK", err);
    if (status >= 0)
        state->in_transaction = 0;
    if (status >= 0 && state->has_rows)
        status = delete_rows(state, err);
    status = annal__state_vfs_why(state->pages, status, err);
    if (status < 0)
        return status;
    annal__applier_forget(state->applier);
    memset(state->session, 0, sizeof state->session);
    memcpy(state->session, session.ptr, session.len);
    state->seq = state->refused = 0;
    state->unsettled = false;
    return ANNAL_OK;
}

annal_slice annal__state_session(const annal_state *state)
{
    return session_of(state);
}

uint64_t annal_state_seq(const annal_state *state)
{
    return state->seq;
}

uint64_t annal__state_refused(const annal_state *state)
{
    return state->refused + state->unsettled;
}

/* ---- Applying ---- */

/* Maximum number of events in a transaction, which keeps the previous content of each changed page
 * in memory. */
#define TRANSACTION_EVENTS 16384

annal_status annal__state_begin(annal_state *state, int64_t ts_us, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (state->in_transaction == 0)
        status = annal__readers_run(state->db, "BEGIN", err);
    if (status >= 0) {
        state->in_transaction++;
        state->is_settled = false;
        status = annal__applier_begin(state->applier, session_of(state), ts_us, err);
    }
    return annal__state_vfs_why(state->pages, status, err);
}

/* Store the number of the last event in _state, and end the transaction. If a section `-- settle`
 * failed, refused is stored as -1 - refused. */
static annal_status commit(annal_state *state, annal_error *err)
{
    int64_t refused = (int64_t)state->refused;
    sqlite3_stmt *insert = NULL;
    annal_status status = annal__applier_flush(state->applier, session_of(state), err);
    if (status >= 0)
        status = annal__readers_run(state->db, "DELETE FROM _state", err);
    if (status >= 0)
        status = annal__readers_prepare(state->db, "INSERT INTO _state VALUES (?1, ?2, ?3)",
                                        &insert, err);
    if (status >= 0) {
        annal__db_bind_text(insert, 1, session_of(state));
        sqlite3_bind_int64(insert, 2, (sqlite3_int64)state->seq);
        sqlite3_bind_int64(insert, 3, state->unsettled ? ~refused : refused);
        status = annal__db_run(insert, err);
    }
    if (status >= 0)
        status = annal__readers_run(state->db, "COMMIT", err);
    if (status >= 0) {
        state->in_transaction = 0;
        state->has_rows = true;
    }
    return annal__state_vfs_why(state->pages, status, err);
}

annal_status annal_state_apply(annal_state *state, const annal_event *event, annal_error *err)
{
    if (event->seq <= state->seq)
        return annal__fail(
            err, ANNAL_ERR_INVALID, "event %llu of session '%s' cannot follow event %llu",
            (unsigned long long)event->seq, state->session, (unsigned long long)state->seq);
    annal_status status = ANNAL_OK;
    if (state->in_transaction >= TRANSACTION_EVENTS)
        status = commit(state, err);
    if (status >= 0 && state->in_transaction == 0)
        status = annal__readers_run(state->db, "BEGIN", err);
    const char *refused = NULL;
    if (status >= 0) {
        state->in_transaction++;
        state->is_settled = false;
        status = annal__applier_event(state->applier, session_of(state), event, &refused, err);
    }
    if (status < 0)
        return annal__state_vfs_why(state->pages, status, err);
    state->seq = event->seq;
    state->refused += refused != NULL;
    return ANNAL_OK;
}

/* Run the sections `-- settle` for the events that were applied, unless that is done. */
static annal_status settle(annal_state *state, annal_error *err)
{
    const char *refused = NULL;
    if (state->in_transaction == 0 || state->is_settled)
        return ANNAL_OK;
    annal_status status = annal__applier_flush(state->applier, session_of(state), err);
    if (status >= 0)
        status =
            annal__applier_settle(state->applier, session_of(state), state->seq, &refused, err);
    state->unsettled = refused != NULL;
    state->is_settled = status >= 0;
    return annal__state_vfs_why(state->pages, status, err);
}

annal_status annal__state_settle(annal_state *state, annal_error *err)
{
    annal_status status = settle(state, err);
    return status < 0 || state->in_transaction == 0 ? status : commit(state, err);
}

annal_status annal__state_ask(annal_state *state, const char *sql, const annal_value *params,
                              size_t count, annal_row_fn fn, void *arg, annal_error *err)
{
    const annal_sql_options options = {.params = params, .param_count = count};
    annal_status status = settle(state, err);
    if (status < 0)
        return status;
    status = annal__db_ask(state->db, sql, &options, fn, arg, err);
    return annal__state_vfs_why(state->pages, status, err);
}

annal_status annal_state_sql(annal_state *state, annal_slice sql, const annal_sql_options *options,
                             annal_row_fn fn, void *arg, annal_error *err)
{
    annal_status status = annal__state_settle(state, err);
    if (status < 0)
        return status;
    status = annal__db_select(state->db, sql, options, fn, arg, err);
    return annal__state_vfs_why(state->pages, status, err);
}

/* ---- Reading and writing pages ---- */

/*
 * Compare the schema of saved pages with the tables that make_tables() creates (shape.h), because a
 * program that can write snapshots could put a trigger or a view into their pages.
 */
static annal_status check_tables(const annal_state *state, annal_error *err)
{
    struct shape_object own = {.type = "table",
                               .name = ANNAL_SLICE("_state"),
                               .table = ANNAL_SLICE("_state"),
                               .head = ANNAL_SLICE("CREATE TABLE "),
                               .sql = ANNAL_SLICE(OWN_TABLE)};
    const struct shape shape = {.objects = &own, .count = 1};
    struct shape_part *parts = annal__zalloc((1 + state->pack_count) * sizeof *parts);
    if (parts == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "build the state of session '%s': out of memory",
                           state->session);
    parts[0] = (struct shape_part){.shape = &shape, .ours = true};
    for (size_t i = 0; i < state->pack_count; i++)
        parts[1 + i] = (struct shape_part){.shape = &state->packs[i]->shape, .ours = true};
    annal_status status =
        annal__shape_compare(state->db, "main", parts, 1 + state->pack_count, false, err);
    annal__free(parts);
    return status;
}

static annal_status read_position(annal_state *state, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status =
        annal__db_prepare(state->db, "SELECT seq, refused, session_id FROM _state", &stmt, err);
    int rc = status < 0 ? SQLITE_DONE : sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        annal_slice session = annal__db_column(stmt, 2);
        state->seq = (uint64_t)sqlite3_column_int64(stmt, 0);
        int64_t refused = sqlite3_column_int64(stmt, 1);
        state->unsettled = refused < 0;
        state->refused = (uint64_t)(state->unsettled ? ~refused : refused);
        if (!annal__slice_is(session, state->session))
            status = ANNAL_ERR_CORRUPT;
    } else if (rc != SQLITE_DONE) { /* SQLITE_DONE: no row, because no event was applied yet */
        status = annal__db_fail(err, state->db, rc, "cannot build the state of session '%s'",
                                state->session);
    }
    sqlite3_finalize(stmt);
    return status;
}

/* Fail with our own message, instead of SQLite's, for pages that are not a state of this
 * session. */
static annal_status no_state(annal_slice session, annal_status status, annal_error *err)
{
    if (status == ANNAL_ERR_NOMEM)
        return status;
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "the pages of a snapshot are not a state of session '%.*s'",
                       ANNAL_FMT(session));
}

annal_status annal__state_open_over(annal_slice session, const annal_pack *const *packs,
                                    size_t pack_count, const annal__state_source *source,
                                    annal_state **out_state, annal_error *err)
{
    annal_state *state = NULL;
    annal_status status = state_alloc(session, packs, pack_count, source, &state, err);
    if (status < 0)
        return status;
    state->has_rows = true;
    status = check_tables(state, err);
    if (status >= 0)
        status = read_position(state, err);
    if (status >= 0)
        status =
            annal__applier_new(state->db, state->packs, state->pack_count, &state->applier, err);
    if (status < 0 && !annal__state_vfs_failed(state->pages))
        status = no_state(session, status, err);
    status = annal__state_vfs_why(state->pages, status, err);
    if (status < 0) {
        annal__state_vfs_disown(state->pages);
        annal_state_free(state);
        return status;
    }
    *out_state = state;
    return ANNAL_OK;
}

/* ---- Reuse ---- */

/* Hash the page numbers at which tables and indexes begin, which must be unchanged if compiled
 * statements are reused, because they contain these numbers. */
static annal_status hash_roots(annal_state *state, uint64_t *out_hash, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        state->db, "SELECT group_concat(name || ' ' || rootpage) FROM sqlite_schema", &stmt, err);
    int rc = status < 0 ? SQLITE_DONE : sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        annal_slice text = annal__db_column(stmt, 0);
        *out_hash = annal__hash(text.ptr, text.len, 0);
    } else if (status >= 0) {
        status =
            annal__db_fail(err, state->db, rc,
                           "cannot list the tables of the state of session '%s'", state->session);
    }
    sqlite3_finalize(stmt);
    return status;
}

bool annal__state_rest(annal_state *state)
{
    if (state == NULL || annal__state_vfs_failed(state->pages))
        return false;
    if (state->roots == 0 && hash_roots(state, &state->roots, NULL) < 0)
        return false;
    if (state->in_transaction > 0 && annal__readers_run(state->db, "ROLLBACK", NULL) < 0)
        return false;
    annal__applier_forget(state->applier);
    memset(state->session, 0, sizeof state->session);
    state->seq = state->refused = 0;
    state->unsettled = false;
    state->in_transaction = 0;
    state->has_rows = true;
    return annal__state_vfs_empty(state->pages, state->db);
}

annal_status annal__state_reopen(annal_state *state, annal_slice session,
                                 const annal__state_source *source, annal_error *err)
{
    uint64_t roots = 0;
    annal__state_source fresh = {0};
    struct pack_blank *blank = find_blank(state->packs, state->pack_count);
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    if (source == NULL && blank == NULL)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "cannot reuse a state for session '%.*s': the packs have no empty state",
                           ANNAL_FMT(session));
    if (source == NULL)
        fresh = blank_source(blank);
    memcpy(state->session, session.ptr, session.len);
    status = annal__state_vfs_fill(state->pages, source == NULL ? &fresh : source, err);
    if (status >= 0 && source == NULL)
        status = annal__state_vfs_own(state->pages, err);
    if (status >= 0)
        status = hash_roots(state, &roots, err);
    if (status >= 0 && roots != state->roots)
        status = annal__fail(
            err, ANNAL_ERR_CONFLICT,
            "cannot reuse a state for session '%.*s': the tables of the state were replaced",
            ANNAL_FMT(session));
    if (status >= 0 && source != NULL)
        status = check_tables(state, err);
    if (status >= 0)
        status = read_position(state, err);
    status = annal__state_vfs_why(state->pages, status, err);
    if (status < 0)
        annal__state_vfs_disown(state->pages);
    return status;
}

annal_status annal__state_page_count(annal_state *state, uint64_t *out_count, annal_error *err)
{
    annal_status status = annal__state_settle(state, err);
    if (status >= 0)
        *out_count = annal__state_vfs_count(state->pages);
    return status;
}

annal_status annal__state_page(annal_state *state, uint64_t page, void *out, annal_error *err)
{
    annal_status status = annal__state_settle(state, err);
    if (status < 0)
        return status;
    if (page == 0 || page > annal__state_vfs_count(state->pages))
        return annal__fail(err, ANNAL_ERR_INVALID, "the state of session '%s' has no page %llu",
                           state->session, (unsigned long long)page);
    return annal__state_vfs_read(state->pages, page, out, err);
}

void annal__state_shrink(annal_state *state)
{
    (void)sqlite3_db_release_memory(state->db);
}

annal_status annal__state_changed(annal_state *state, annal__state_page_fn fn, void *arg,
                                  annal_error *err)
{
    annal_status status = annal__state_settle(state, err);
    for (uint64_t page = 1; status == ANNAL_OK && page <= annal__state_vfs_count(state->pages);
         page++)
        if (annal__state_vfs_changed(state->pages, page))
            status = (annal_status)fn(arg, page);
    return status;
}

annal_status annal__state_rebase(annal_state *state, const annal__state_source *source,
                                 annal_error *err)
{
    annal_status status = annal__state_settle(state, err);
    if (status < 0)
        return status;
    if (source->page_count != annal__state_vfs_count(state->pages))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the state of session '%s' has %llu pages, not %llu", state->session,
                           (unsigned long long)annal__state_vfs_count(state->pages),
                           (unsigned long long)source->page_count);
    annal__state_vfs_rebase(state->pages, source);
    return ANNAL_OK;
}

annal_status annal__state_spill(annal_state *state, const char *directory, size_t bytes_max,
                                annal_error *err)
{
    if (annal__state_vfs_own_bytes(state->pages) <= bytes_max)
        return ANNAL_OK;
    annal_status status = annal__state_settle(state, err);
    if (status >= 0)
        annal__state_vfs_spill(state->pages, directory);
    return status;
}
