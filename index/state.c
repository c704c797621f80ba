#include "index/state.h"
#include "index/apply.h"
#include "index/database.h"
#include "index/pack.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <stdio.h>
#include <string.h>

static annal_slice session_of(const annal_state *state)
{
    return annal_slice_of(state->session);
}

/* ---- Making ---- */

uint64_t annal_packs_version(const annal_pack *const *packs, size_t count)
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
        annal_status status = annal_pack_core(&state->core, err);
        if (status < 0)
            return status;
        packs = (const annal_pack *const *)&state->core;
        count = 1;
    }
    state->packs = annal__zalloc((count + 1) * sizeof *state->packs);
    if (state->packs == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "state of session '%s'", state->session);
    memcpy(state->packs, packs, count * sizeof *state->packs);
    state->pack_count = count;
    return ANNAL_OK;
}

/* All but the tables. */
static annal_status state_alloc(annal_slice session, const annal_pack *const *packs, size_t count,
                                annal_state **out_state, annal_error *err)
{
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    annal_state *state = annal__zalloc(sizeof *state);
    if (state == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "state of session '%.*s'", ANNAL_FMT(session));
    memcpy(state->session, session.ptr, session.len);
    status = take_packs(state, packs, count, err);
    if (status >= 0)
        status =
            annal__db_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &state->db, err);
    for (size_t i = 0; status >= 0 && i < count; i++)
        if (packs[i]->writable) /* as in the pack's own database */
            sqlite3_db_config(state->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    if (status < 0) {
        annal_state_free(state);
        return status;
    }
    *out_state = state;
    return ANNAL_OK;
}

annal_status annal_state_new(annal_slice session, const annal_pack *const *packs, size_t pack_count,
                             annal_state **out_state, annal_error *err)
{
    annal_state *state = NULL;
    annal_status status = state_alloc(session, packs, pack_count, &state, err);
    if (status < 0)
        goto done;
    /* Small pages: a few small tables are snapshotted again and again. */
    status = annal__db_exec(state->db,
                            "PRAGMA page_size = 1024; "
                            "CREATE TABLE _state (session_id TEXT, seq INTEGER, refused INTEGER)",
                            err);
    for (size_t i = 0; status >= 0 && i < state->pack_count; i++)
        status = annal__pack_try_tables(state->packs[i], state->db, err);
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

/* A pack whose state can be made is right. */
annal_status annal_pack_parse(const char *name, annal_slice text, annal_pack **out_pack,
                              annal_error *err)
{
    annal_pack *pack = NULL;
    annal_state *trial = NULL;
    annal_status status = annal__pack_read(name, text, &pack, err);
    if (status >= 0)
        status = annal_state_new(ANNAL_SLICE("trial"), (const annal_pack *const[]){pack}, 1, &trial,
                                 err);
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
    annal__db_close(state->db);
    annal__free(state->packs);
    annal_pack_free(state->core);
    annal__free(state);
}

static annal_status add_delete(void *arg, const annal_row *row)
{
    return annal__buf_printf(arg, "DELETE FROM \"%.*s\";", ANNAL_FMT(row->values[0].bytes));
}

annal_status annal_state_reset(annal_state *state, annal_slice session, annal_error *err)
{
    struct buf sql = {0};
    annal_status status = annal_session_id_check(session, err);
    if (status >= 0 && state->in_transaction)
        status = annal__db_exec(state->db, "ROLLBACK", err);
    if (status >= 0)
        status = annal__db_select(state->db,
                                  ANNAL_SLICE("SELECT name FROM sqlite_schema WHERE type = 'table'"
                                              " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"),
                                  NULL, add_delete, &sql, err);
    if (status >= 0 && annal__buf_cstr(&sql) == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "state of session '%.*s'", ANNAL_FMT(session));
    if (status >= 0)
        status = annal__db_exec(state->db, sql.ptr, err);
    annal__buf_done(&sql);
    if (status < 0)
        return status;
    annal__applier_forget(state->applier);
    memset(state->session, 0, sizeof state->session);
    memcpy(state->session, session.ptr, session.len);
    state->seq = state->refused = 0;
    state->in_transaction = false;
    return ANNAL_OK;
}

uint64_t annal_state_seq(const annal_state *state)
{
    return state->seq;
}

uint64_t annal_state_refused(const annal_state *state)
{
    return state->refused;
}

/* ---- Applying ---- */

annal_status annal_state_apply(annal_state *state, const annal_event *event, annal_error *err)
{
    if (event->seq <= state->seq)
        return annal__fail(
            err, ANNAL_ERR_INVALID, "event %llu of session '%s' cannot follow event %llu",
            (unsigned long long)event->seq, state->session, (unsigned long long)state->seq);
    annal_status status = ANNAL_OK;
    if (!state->in_transaction) {
        status = annal__db_exec(state->db, "BEGIN", err);
        if (status < 0)
            return status;
        state->in_transaction = true;
    }
    const char *refused = NULL;
    status = annal__applier_event(state->applier, session_of(state), event, &refused, err);
    if (status < 0)
        return status;
    state->seq = event->seq;
    state->refused += refused != NULL;
    return ANNAL_OK;
}

annal_status annal__state_settle(annal_state *state, annal_error *err)
{
    if (!state->in_transaction)
        return ANNAL_OK;
    annal_status status = annal__applier_flush(state->applier, session_of(state), err);
    if (status < 0)
        return status;
    char sql[ANNAL_SESSION_ID_BYTES_MAX + 120]; /* a session id needs no quoting */
    snprintf(sql, sizeof sql, "DELETE FROM _state; INSERT INTO _state VALUES ('%s', %llu, %llu)",
             state->session, (unsigned long long)state->seq, (unsigned long long)state->refused);
    status = annal__db_exec(state->db, sql, err);
    if (status >= 0)
        status = annal__db_exec(state->db, "COMMIT", err);
    if (status >= 0)
        state->in_transaction = false;
    return status;
}

annal_status annal_state_sql(annal_state *state, annal_slice sql, const annal_sql_options *options,
                             annal_row_fn fn, void *arg, annal_error *err)
{
    annal_status status = annal__state_settle(state, err);
    if (status < 0)
        return status;
    return annal__db_select(state->db, sql, options, fn, arg, err);
}

/* ---- As bytes ---- */

annal_status annal_state_serialize(annal_state *state, annal_slice *out_bytes, annal_error *err)
{
    annal_status status = annal__state_settle(state, err);
    if (status < 0)
        return status;
    sqlite3_int64 size = 0;
    unsigned char *image = sqlite3_serialize(state->db, "main", &size, 0);
    char *copy = image == NULL ? NULL : annal__zalloc((size_t)size + 1);
    if (copy != NULL)
        memcpy(copy, image, (size_t)size);
    sqlite3_free(image);
    if (copy == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "state of session '%s'", state->session);
    *out_bytes = (annal_slice){copy, (size_t)size};
    return ANNAL_OK;
}

void annal_index_free(const void *bytes)
{
    annal__free((void *)(uintptr_t)bytes);
}

static annal_status load_image(annal_state *state, annal_slice bytes, annal_error *err)
{
    unsigned char *image = sqlite3_malloc64(bytes.len == 0 ? 1 : bytes.len);
    if (image == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "state of session '%s'", state->session);
    if (bytes.len > 0)
        memcpy(image, bytes.ptr, bytes.len);
    int rc = sqlite3_deserialize(state->db, "main", image, (sqlite3_int64)bytes.len,
                                 (sqlite3_int64)bytes.len,
                                 SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    if (rc != SQLITE_OK)
        return annal__db_fail(err, state->db, rc, "state of session '%s'", state->session);
    return ANNAL_OK;
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
        state->refused = (uint64_t)sqlite3_column_int64(stmt, 1);
        if (session.len != strlen(state->session) ||
            memcmp(session.ptr, state->session, session.len) != 0)
            status = ANNAL_ERR_CORRUPT;
    } else if (rc != SQLITE_DONE) { /* no row: nothing was applied yet */
        status = annal__db_fail(err, state->db, rc, "state of session '%s'", state->session);
    }
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal_state_deserialize(annal_slice session, const annal_pack *const *packs,
                                     size_t pack_count, annal_slice bytes, annal_state **out_state,
                                     annal_error *err)
{
    annal_state *state = NULL;
    annal_status status = state_alloc(session, packs, pack_count, &state, err);
    if (status < 0)
        goto done;
    status = load_image(state, bytes, err);
    if (status >= 0)
        status = read_position(state, err);
    if (status >= 0)
        status =
            annal__applier_new(state->db, state->packs, state->pack_count, &state->applier, err);
    if (status < 0) {
        if (status != ANNAL_ERR_NOMEM)
            status = annal__fail(err, ANNAL_ERR_CORRUPT,
                                 "these bytes are no state of session '%.*s'", ANNAL_FMT(session));
        goto done;
    }
    *out_state = state;
    state = NULL;

done:
    annal_state_free(state);
    return status;
}
