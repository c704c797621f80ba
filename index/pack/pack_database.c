/*
 * One database of packs.
 *
 * (1) Each pack in it has its own cursors, so that one can be rebuilt while the others stay.
 * (2) _pack says from which text a pack's tables were made and filled. If that differs from the
 *     pack's text now, its tables are dropped and created again and its cursors deleted, in one
 *     transaction; then they are filled like any that are not up to date, in slices. So a rebuild
 *     that is killed continues where it was. If only the tables changed, and little, they are
 *     mended instead (pack_reconcile.c).
 * (3) A pack that cannot be created here (a table of another pack has the name, its SQL is wrong
 *     for this database, it was made by a newer version) stops only itself.
 * (4) If a journal is gone or is another one, the pack's `-- forget` deletes that session's rows; a
 *     pack without such a section is rebuilt.
 * (5) Foreign keys are off: sessions come in any order, and handlers do cascades themselves.
 * (6) Tables that a user dropped or altered are rebuilt before they are asked: shape.h.
 * (7) If users write too, each transaction begins with what they wrote since the last one:
 *     outbox.c. Tables are not rebuilt before it is in the journal.
 */
#include "index/db/database.h"
#include "index/index.h"
#include "index/pack/outbox.h"
#include "index/pack/pack_reconcile.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <stdio.h>
#include <string.h>

#define PACK_APPLICATION_ID 0x416e6e70 /* "Annp" */
#define PACK_SCHEMA_VERSION 1          /* of packs_schema.sql */

/* ---- One pack's tables ---- */

static sqlite3 *db_of(const struct pack_fill *fill)
{
    return fill->follower.derived->db;
}

/* Run sql, whose ?1 is the pack's name. */
static annal_status run_for_pack(struct pack_fill *fill, const char *sql, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db_of(fill), sql, &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(fill->slot->name));
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

/* One statement that drops something of this pack, or NULL if nothing is left. */
static annal_status next_drop(struct pack_fill *fill, char **out_sql, annal_error *err)
{
    /* Views and triggers first: they name tables. Indexes go with their tables. */
    static const char select[] =
        "SELECT o.type, o.name FROM _object AS o JOIN sqlite_schema AS s ON s.type = o.type "
        "AND s.name = o.name WHERE o.pack = ?1 "
        "ORDER BY o.type = 'trigger' DESC, o.type = 'view' DESC, o.type = 'index' DESC LIMIT 1";
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db_of(fill), select, &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(fill->slot->name));
    *out_sql = NULL;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        *out_sql = sqlite3_mprintf("DROP %s main.\"%w\"", sqlite3_column_text(stmt, 0),
                                   sqlite3_column_text(stmt, 1));
        if (*out_sql == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "the tables of a pack");
    } else if (rc != SQLITE_DONE) {
        status = annal__db_fail(err, db_of(fill), rc, "the tables of pack '%s'", fill->slot->name);
    }
    sqlite3_finalize(stmt);
    return status;
}

static annal_status drop_tables(struct pack_fill *fill, annal_error *err)
{
    annal_status status = ANNAL_OK;
    char *sql = NULL;
    do {
        sqlite3_free(sql);
        sql = NULL;
        status = next_drop(fill, &sql, err);
        if (status >= 0 && sql != NULL)
            status = annal__db_exec(db_of(fill), sql, err);
    } while (status >= 0 && sql != NULL);
    sqlite3_free(sql);
    if (status >= 0)
        status = run_for_pack(fill, "DELETE FROM _object WHERE pack = ?1", err);
    return status;
}

/* Note what exists now and did not at `before` (a rowid of the schema), for the next drop. */
static annal_status note_objects(struct pack_fill *fill, int64_t before, annal_error *err)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "INSERT OR IGNORE INTO _object SELECT ?1, type, name FROM sqlite_schema "
             "WHERE rowid > %lld AND name NOT LIKE 'sqlite\\_%%' ESCAPE '\\'",
             (long long)before);
    return run_for_pack(fill, sql, err);
}

static annal_status last_object(struct pack_fill *fill, int64_t *out, annal_error *err)
{
    return annal__db_integer(db_of(fill), "SELECT IFNULL(MAX(rowid), 0) FROM sqlite_schema", out,
                             err);
}

static annal_status make_tables(struct pack_fill *fill, annal_error *err)
{
    int64_t before = 0;
    annal_status status = last_object(fill, &before, err);
    if (status >= 0)
        status = annal__pack_make_tables(fill->slot->pack, db_of(fill), err);
    return status < 0 ? status : note_objects(fill, before, err);
}

static annal_status note_made(struct pack_fill *fill, uint64_t rest_hash, annal_error *err)
{
    const annal_pack *pack = fill->slot->pack;
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        db_of(fill), "INSERT OR REPLACE INTO _pack VALUES (?1, ?2, ?3, ?4, ?5)", &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(pack->name));
    sqlite3_bind_int64(stmt, 2, pack->version);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)pack->tables_hash);
    sqlite3_bind_int64(stmt, 4, (sqlite3_int64)rest_hash);
    sqlite3_bind_int64(stmt, 5, (sqlite3_int64)(pack->handlers_hash + INDEX_CODE_VERSION));
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status < 0 ? status : annal__shape_note_pack(db_of(fill), pack->name, err);
}

/* Rule 2, inside a transaction. */
static annal_status make_anew(struct pack_fill *fill, annal_error *err)
{
    bool writable = fill->slot->pack->writable;
    sqlite3 *fresh = NULL;
    uint64_t rest_hash = 0;
    annal_status status = annal__pack_fresh(fill->slot->pack, &fresh, &rest_hash, err);
    annal__db_close(fresh);
    fill->follower.began_anew = true;
    if (status >= 0)
        status = annal__derived_renew(fill->follower.derived, err);
    if (status >= 0) /* guards must not trust tables that are being filled: lock.h, rule 5 */
        annal__lock_note_wipe(&fill->follower.derived->lock);
    if (status >= 0 && writable)
        status = annal__outbox_drop(db_of(fill), err);
    if (status >= 0)
        status = drop_tables(fill, err);
    if (status >= 0)
        status =
            run_for_pack(fill, "DELETE FROM _cursor WHERE pack IN (?1, ?1 || ' settled')", err);
    if (status >= 0)
        status = run_for_pack(fill, "DELETE FROM _findings WHERE pack = ?1", err);
    if (status >= 0)
        status = run_for_pack(fill, "DELETE FROM _pack WHERE name = ?1", err);
    if (status >= 0)
        status = make_tables(fill, err);
    if (status >= 0 && writable)
        status = annal__outbox_make(db_of(fill), err);
    if (status >= 0)
        status = note_made(fill, rest_hash, err);
    return status;
}

/* Whether its tables are as it created them. If users write, the outbox sees what they changed. */
static annal_status is_whole(struct pack_fill *fill, sqlite3 *db, bool *out, annal_error *err)
{
    *out = true;
    return fill->slot->pack->writable
               ? ANNAL_OK
               : annal__shape_holds(db, fill->slot->name, &fill->shape, out, err);
}

/* ---- What users wrote, rule 7 ---- */

/* The one session whose database this is: packs.c refuses writable packs without a session. */
static annal_slice session_of(const struct pack_fill *fill,
                              char out[ANNAL_SESSION_ID_BYTES_MAX + 1])
{
    const char *glob = fill->slot->pack->sessions;
    const char *star = strchr(glob, '*');
    size_t front = star == NULL ? strlen(glob) : (size_t)(star - glob);
    int len = snprintf(out, ANNAL_SESSION_ID_BYTES_MAX + 1, "%.*s%s%s", (int)front, glob,
                       star == NULL ? "" : fill->star, star == NULL ? "" : star + 1);
    ANNAL_ASSERT(len >= 0 && len <= ANNAL_SESSION_ID_BYTES_MAX);
    return (annal_slice){out, (size_t)len};
}

static annal_status read_applied(const struct pack_fill *fill, annal_slice session,
                                 annal_position *out, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        db_of(fill), "SELECT seq, offset, h FROM _cursor WHERE pack = ?1 AND session_id = ?2",
        &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(fill->slot->name));
    annal__db_bind_text(stmt, 2, session);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = (annal_position){(uint64_t)sqlite3_column_int64(stmt, 0),
                                (uint64_t)sqlite3_column_int64(stmt, 1),
                                (uint64_t)sqlite3_column_int64(stmt, 2)};
    else if (rc != SQLITE_DONE)
        status = annal__db_fail(err, db_of(fill), rc, "where pack '%s' stands", fill->slot->name);
    sqlite3_finalize(stmt);
    return status;
}

/* Move it into the journal. */
static annal_status drain(struct pack_fill *fill, struct outbox_drained *out, annal_error *err)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct outbox_target target = {.store = fill->follower.derived->store,
                                   .session = session_of(fill, id),
                                   .pack = fill->slot->pack};
    annal_status status = read_applied(fill, target.session, &target.applied, err);
    return status < 0 ? status : annal__outbox_drain(db_of(fill), &target, out, err);
}

/*
 * At the beginning of each transaction. What was drained is after the cursors, and is applied (or
 * skipped) at once, so that nobody sees half-made tables.
 */
static annal_status take_in(struct pack_fill *fill, annal_error *err)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct outbox_drained drained = {0};
    bool waits = false;
    annal_status status = ANNAL_OK;
    if (fill->outbox == NULL)
        status = annal__outbox_watch_new(db_of(fill), &fill->outbox, err);
    if (status >= 0)
        status = annal__outbox_watch_ask(fill->outbox, &waits, err);
    if (status < 0 || !waits)
        return status;
    status = drain(fill, &drained, err);
    if (status >= 0 && drained.anew) {
        status = make_anew(fill, err);
    }
    if (status >= 0 && (drained.anew || drained.changes > 0))
        status = annal__follower_catch_up(&fill->follower, session_of(fill, id), err);
    return status;
}

/* What the existing tables were made from. */
struct made {
    bool known;
    int64_t version;
    uint64_t tables_hash, rest_hash, handlers_hash;
};

static annal_status prepare_made(sqlite3 *db, sqlite3_stmt **out_stmt, annal_error *err)
{
    return annal__db_prepare(
        db, "SELECT version, tables_hash, rest_hash, handlers_hash FROM main._pack WHERE name = ?1",
        out_stmt, err);
}

static annal_status step_made(const struct pack_fill *fill, sqlite3_stmt *stmt, struct made *out,
                              annal_error *err)
{
    annal_status status = ANNAL_OK;
    annal__db_bind_text(stmt, 1, annal_slice_of(fill->slot->name));
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = (struct made){
            true, sqlite3_column_int64(stmt, 0), (uint64_t)sqlite3_column_int64(stmt, 1),
            (uint64_t)sqlite3_column_int64(stmt, 2), (uint64_t)sqlite3_column_int64(stmt, 3)};
    else if (rc != SQLITE_DONE)
        status = annal__db_fail(err, sqlite3_db_handle(stmt), rc, "what pack '%s' made",
                                fill->slot->name);
    sqlite3_reset(stmt);
    return status;
}

/* On the connection of a reader, which belongs to the caller, and may be on another thread. */
static annal_status read_made(const struct pack_fill *fill, sqlite3 *db, struct made *out,
                              annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = prepare_made(db, &stmt, err);
    if (status >= 0)
        status = step_made(fill, stmt, out, err);
    sqlite3_finalize(stmt);
    return status;
}

/* On the writer's connection, which asks in each transaction. */
static annal_status read_own_made(struct pack_fill *fill, struct made *out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (fill->get_made == NULL)
        status = prepare_made(db_of(fill), &fill->get_made, err);
    return status < 0 ? status : step_made(fill, fill->get_made, out, err);
}

static bool is_same(const struct made *made, const annal_pack *pack)
{
    return made->known && made->tables_hash == pack->tables_hash &&
           made->handlers_hash == pack->handlers_hash + INDEX_CODE_VERSION;
}

/* Only the tables differ: it may be possible to mend them in place. */
static annal_status mend(struct pack_fill *fill, const struct made *made, bool *out_mended,
                         annal_error *err)
{
    const annal_pack *pack = fill->slot->pack;
    sqlite3 *fresh = NULL;
    uint64_t rest_hash = 0;
    int64_t before = 0;
    annal_status status = annal__pack_fresh(pack, &fresh, &rest_hash, err);
    if (status >= 0 && rest_hash == made->rest_hash)
        status = last_object(fill, &before, err);
    if (status >= 0 && rest_hash == made->rest_hash)
        status = annal__pack_reconcile(db_of(fill), pack, fresh, out_mended, err);
    if (status >= 0 && *out_mended)
        status = note_objects(fill, before, err);
    if (status >= 0 && *out_mended)
        status = note_made(fill, rest_hash, err);
    annal__db_close(fresh);
    return status;
}

/* In a transaction: make the tables exist and be what the pack says. */
static annal_status settle_tables(struct pack_fill *fill, annal_error *err)
{
    const annal_pack *pack = fill->slot->pack;
    struct made made = {0};
    annal_status status = read_made(fill, db_of(fill), &made, err);
    if (status < 0)
        return status;
    if (made.known && made.version > pack->version)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "the tables of pack '%s' were made by its version %lld, this is "
                           "version %u; they stay as they are",
                           pack->name, (long long)made.version, (unsigned)pack->version);
    bool whole = false;
    status = is_whole(fill, db_of(fill), &whole, err);
    if (status < 0 || (is_same(&made, pack) && whole))
        return status;
    if (made.known && !whole)
        annal__say(fill->follower.derived->store, ANNAL_LOG_WARNING,
                   "tables of pack '%s' were dropped or altered, and are rebuilt from the "
                   "journals",
                   pack->name);
    struct outbox_drained unused;
    bool mended = false;
    if (made.known && pack->writable) /* what users changed in the tables is in the journal, too */
        status = drain(fill, &unused, err);
    else if (whole && made.known && made.handlers_hash == pack->handlers_hash + INDEX_CODE_VERSION)
        status = mend(fill, &made, &mended, err);
    return status < 0 || mended ? status : make_anew(fill, err);
}

/* Whether a failure is the pack's fault, and stops only that pack. */
static bool is_own_fault(annal_status status)
{
    return status == ANNAL_ERR_SQL || status == ANNAL_ERR_INVALID ||
           status == ANNAL_ERR_UNSUPPORTED;
}

/*
 * Handlers were tried when the pack was read, so if they cannot be prepared on the tables, these
 * are not the tables that the pack created: a user of a writable database dropped a table, or a
 * column. What else this user wrote goes into the journal first; then everything is created again,
 * in this transaction.
 */
static annal_status prepare_fill(struct pack_fill *fill, annal_error *err)
{
    const annal_pack *const packs[] = {fill->slot->pack};
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct outbox_drained unused;
    annal_error why = {0};
    annal_status status = annal__follower_open(&fill->follower, packs, 1, &why);
    if (status != ANNAL_ERR_SQL || !fill->slot->pack->writable) {
        if (status < 0 && err != NULL)
            *err = why;
        return status;
    }
    annal__follower_close(&fill->follower);
    annal__say(fill->follower.derived->store, ANNAL_LOG_WARNING,
               "tables of pack '%s' were dropped or altered, and are rebuilt from the "
               "journals: %s",
               fill->slot->name, why.message);
    status = drain(fill, &unused, err);
    if (status >= 0)
        status = make_anew(fill, err);
    if (status >= 0)
        status = annal__follower_open(&fill->follower, packs, 1, err);
    if (status >= 0)
        status = annal__follower_catch_up(&fill->follower, session_of(fill, id), err);
    return status;
}

/* Rule 3. If a pack is wrong, everything of it is undone. */
static annal_status settle_fill(struct pack_fill *fill, annal_error *err)
{
    annal_error why = {0};
    sqlite3 *db = db_of(fill);
    annal_status status = annal__db_exec(db, "BEGIN IMMEDIATE", err);
    if (status < 0)
        return status;
    status = settle_tables(fill, &why);
    if (status >= 0)
        status = prepare_fill(fill, &why);
    if (status >= 0)
        status = annal__db_exec(db, "COMMIT", &why);
    if (status < 0) {
        annal__follower_close(&fill->follower);
        if (sqlite3_get_autocommit(db) == 0)
            (void)annal__db_exec(db, "ROLLBACK", NULL);
    }
    if (status < 0 && !is_own_fault(status)) {
        if (err != NULL)
            *err = why;
        return status;
    }
    if (status < 0 && fill->why.status == 0) {
        annal__say(fill->follower.derived->store, ANNAL_LOG_WARNING, "pack '%s' is left out: %s",
                   fill->slot->name, why.message);
        fill->why = why;
    }
    fill->left_out = status < 0;
    return ANNAL_OK;
}

/* Creating an index on a full table sorts all of it: not in memory. */
static annal_status open_fill(struct pack_fill *fill, annal_error *err)
{
    annal_status status = annal__db_exec(db_of(fill), "PRAGMA temp_store = FILE", err);
    if (status >= 0)
        status = settle_fill(fill, err);
    (void)annal__db_exec(db_of(fill), "PRAGMA temp_store = MEMORY", NULL);
    return status;
}

/* ---- A pack as a follower ---- */

static annal_status event(struct follower *follower, annal_slice session, const annal_event *event,
                          annal_error *err)
{
    return annal__follower_apply(follower, session, event, err);
}

static annal_status flush(struct follower *follower, annal_slice session, annal_error *err)
{
    return annal__applier_flush(follower->applier, session, err);
}

/* Run sql, whose ?1 is the pack's name and ?2 the session. */
static annal_status run_for_session(struct pack_fill *fill, const char *sql, annal_slice session,
                                    annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db_of(fill), sql, &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(fill->slot->name));
    annal__db_bind_text(stmt, 2, session);
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

/* Rule 4. */
static annal_status forget(struct follower *follower, annal_slice session, annal_error *err)
{
    struct pack_fill *fill = follower->own;
    if (!annal__pack_forgets(fill->slot->pack)) {
        return make_anew(fill, err);
    }
    annal_status status = annal__applier_drop(follower->applier, session, err);
    if (status >= 0)
        status = run_for_session(fill, "DELETE FROM _findings WHERE pack = ?1 AND session_id = ?2",
                                 session, err);
    if (status >= 0)
        status = run_for_session(
            fill, "DELETE FROM _cursor WHERE pack IN (?1, ?1 || ' settled') AND session_id = ?2",
            session, err);
    return status;
}

static bool feeds(const struct follower *follower, annal_slice session)
{
    const struct pack_fill *fill = follower->own;
    annal_slice star;
    const char *only = fill->star;
    return annal__pack_feeds(fill->slot->pack, session, &star) &&
           (only == NULL || annal__slice_is(star, only));
}

static const struct follower_ops pack_follower = {
    .feeds = feeds, .event = event, .flush = flush, .forget = forget};

/* ---- As a derived database ---- */

static annal_status make(void *arg, sqlite3 *db, annal_error *err)
{
    (void)arg;
    annal_status status = annal__db_exec(db, annal__sql_packs_schema, err);
    return status < 0 ? status : annal__shape_note_own(db, err);
}

static annal_status opened(void *arg, sqlite3 *db, annal_error *err)
{
    struct pack_database *database = arg;
    annal_status status = ANNAL_OK;
    if (database->derived.rollback) /* outbox.c, rule 2 */
        sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    bool ours = true;
    if (!database->derived.rollback)
        status = annal__shape_holds(db, NULL, &database->shape, &ours, err);
    if (status >= 0 && !ours)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "tables of '%s' were dropped or altered",
                             database->derived.path);
    for (size_t i = 0; status >= 0 && i < database->fill_count; i++)
        status = open_fill(&database->fills[i], err);
    return status;
}

/* A pack that cannot be run here is as current as it can be. */
static annal_status fill_is_current(struct pack_fill *fill, sqlite3 *db, bool *out,
                                    annal_error *err)
{
    struct made made = {0};
    annal_status status =
        db == NULL ? read_own_made(fill, &made, err) : read_made(fill, db, &made, err);
    *out = fill->left_out || is_same(&made, fill->slot->pack);
    return status < 0 || fill->left_out || !*out
               ? status
               : is_whole(fill, db == NULL ? db_of(fill) : db, out, err);
}

static annal_status is_current(void *arg, sqlite3 *db, bool *out, annal_error *err)
{
    struct pack_database *database = arg;
    annal_status status = ANNAL_OK;
    *out = true;
    if (!database->derived.rollback)
        status = annal__shape_holds(db == NULL ? database->derived.db : db, NULL, &database->shape,
                                    out, err);
    for (size_t i = 0; status >= 0 && *out && i < database->fill_count; i++)
        status = fill_is_current(&database->fills[i], db, out, err);
    return status;
}

static annal_status begun(void *arg, annal_error *err)
{
    struct pack_database *database = arg;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < database->fill_count; i++)
        if (database->fills[i].slot->pack->writable && database->fills[i].follower.applier != NULL)
            status = take_in(&database->fills[i], err);
    return status;
}

static void closing(void *arg)
{
    struct pack_database *database = arg;
    for (size_t i = 0; i < database->fill_count; i++) {
        struct pack_fill *fill = &database->fills[i];
        annal__follower_close(&fill->follower);
        sqlite3_finalize(fill->get_made);
        annal__outbox_watch_free(fill->outbox);
        fill->get_made = NULL;
        fill->outbox = NULL;
    }
}

static void undone(void *arg)
{
    struct pack_database *database = arg;
    for (size_t i = 0; i < database->fill_count; i++)
        if (database->fills[i].follower.applier != NULL)
            annal__applier_forget(database->fills[i].follower.applier);
}

static const struct derived_ops pack_ops = {.make = make,
                                            .opened = opened,
                                            .is_current = is_current,
                                            .begun = begun,
                                            .closing = closing,
                                            .undone = undone};

/* ---- For guards ---- */

annal_status annal__pack_catch_up(struct pack_database *database, annal_slice session,
                                  annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < database->fill_count; i++)
        if (database->fills[i].follower.applier != NULL &&
            annal__follower_feeds(&database->fills[i].follower, session))
            status = annal__follower_catch_up(&database->fills[i].follower, session, err);
    return status;
}

annal_status annal__pack_empty(struct pack_database *database, struct pack_fill *fill,
                               int64_t deadline_us, annal_error *err)
{
    annal_status status = annal__derived_begin(&database->derived, deadline_us, err);
    if (status < 0)
        return status;
    if (fill->left_out)
        status = annal__fail(err, fill->why.status, "%s", fill->why.message);
    if (status >= 0)
        status = make_anew(fill, err);
    if (status >= 0 && fill->slot->pack->writable) { /* users see all of it or nothing */
        char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
        status = annal__follower_catch_up(&fill->follower, session_of(fill, id), err);
    }
    annal_status ended =
        annal__derived_end(&database->derived, status >= 0, status >= 0 ? err : NULL);
    return status < 0 ? status : ended;
}

annal_status annal__pack_take_in(struct pack_database *database, const struct pack_fill *fill,
                                 int64_t deadline_us, annal_error *err)
{
    sqlite3 *reader = NULL;
    struct stamp unused;
    bool waits = false;
    if (!fill->slot->pack->writable || database->derived.frozen || database->derived.private)
        return ANNAL_OK;
    annal_status status =
        annal__derived_reader(&database->derived, database->derived.wait_ms, &reader, &unused, err);
    if (status >= 0)
        status = annal__outbox_waits(reader, &waits, err);
    annal__db_close(reader);
    if (status < 0 || !waits)
        return status;
    status = annal__derived_begin(&database->derived, deadline_us, err);
    return status < 0 ? status : annal__derived_end(&database->derived, true, err);
}

void annal__pack_rest(struct pack_database *database)
{
    annal__derived_rest(&database->derived);
}

struct pack_fill *annal__pack_fill(struct pack_database *database, const struct pack_slot *slot)
{
    for (size_t i = 0; i < database->fill_count; i++)
        if (database->fills[i].slot == slot)
            return &database->fills[i];
    return NULL;
}

/* ---- New and free ---- */

/* locks/state.db; for a path that is not in the store, its slashes and stars become underscores. */
static void lock_name(const annal_index *index, const char *path, char out[ANNAL__LOCK_NAME_BYTES])
{
    const char *root = annal_store_path(index->store);
    size_t len = strlen(root);
    const char *from = strncmp(path, root, len) == 0 && path[len] == '/' ? path + len + 1 : path;
    size_t skipped = strlen(from) < ANNAL__LOCK_NAME_BYTES ? 0 : strlen(from) + 1 - 200;
    snprintf(out, ANNAL__LOCK_NAME_BYTES, "%s", from + skipped);
    for (char *c = out; *c != '\0'; c++)
        if (*c == '/' || (c == out && *c == '.'))
            *c = '_';
}

char *annal__pack_stem(const annal_pack *pack, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = pack->writable ? pack->name : slash == NULL ? path : slash + 1;
    char *stem = annal__strndup(name, strcspn(name, "."));
    for (char *c = stem; c != NULL && *c != '\0'; c++)
        if (pack->writable && *c == '-')
            *c = '_';
    return stem;
}

static annal_status fill_database(annal_index *index, struct pack_database *database,
                                  const char *path, const char *star,
                                  const struct pack_slot *const *slots, size_t slot_count,
                                  annal_error *err)
{
    char lock[ANNAL__LOCK_NAME_BYTES];
    database->stem = annal__pack_stem(slots[0]->pack, path);
    database->star = star == NULL ? NULL : annal__strndup(star, strlen(star));
    database->fills = annal__zalloc((slot_count + 1) * sizeof *database->fills);
    if (database->stem == NULL || database->fills == NULL ||
        (star != NULL && database->star == NULL))
        return annal__fail(err, ANNAL_ERR_NOMEM, "the database '%s'", path);
    for (size_t i = 0; i < slot_count; i++) {
        struct pack_fill *fill = &database->fills[database->fill_count++];
        fill->slot = slots[i];
        fill->star = database->star;
        fill->follower = (struct follower){.derived = &database->derived,
                                           .ops = &pack_follower,
                                           .pack = slots[i]->name,
                                           .own = fill};
        database->derived.rollback |= slots[i]->pack->writable;
    }
    database->derived.wait_ms = index->derived.wait_ms;
    database->derived.application_id = PACK_APPLICATION_ID;
    database->derived.user_version = PACK_SCHEMA_VERSION;
    database->derived.ops = &pack_ops;
    database->derived.arg = database;
    lock_name(index, path, lock);
    annal_status status = annal__derived_init(&database->derived, index->store, path, lock, err);
    if (status >= 0 && slots[0]->at != NULL && slots[0]->at[0] == '/')
        database->derived.given_bytes = strlen(slots[0]->at);
    if (status >= 0 && index->derived.private)
        status = annal__derived_make_private(&database->derived, err);
    else if (status >= 0 && annal__store_is_read_only(index->store))
        status = annal__derived_open_read_only(&database->derived, err);
    return status;
}

annal_status annal__pack_database_new(annal_index *index, const char *path, const char *star,
                                      const struct pack_slot *const *slots, size_t slot_count,
                                      struct pack_database **out_database, annal_error *err)
{
    struct pack_database *database = annal__zalloc(sizeof *database);
    if (database == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "the database '%s'", path);
    annal_status status = fill_database(index, database, path, star, slots, slot_count, err);
    if (status < 0)
        annal__pack_database_free(database);
    else
        *out_database = database;
    return status;
}

void annal__pack_database_free(struct pack_database *database)
{
    if (database == NULL)
        return;
    annal__derived_done(&database->derived);
    annal__free(database->fills);
    annal__free(database->stem);
    annal__free(database->star);
    annal__free(database);
}
