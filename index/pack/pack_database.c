/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One database of packs.
 *
 * (1) Each pack in it has its own cursors, so that one pack can be rebuilt while the others stay.
 * (2) The table _pack records the version and hashes of the text from which a pack's tables were
 *     created and filled. If they differ from the pack's current text, its tables are dropped and
 *     created again and its cursors deleted, in one transaction; then they are filled like any
 *     tables that are not up to date, in slices. So a rebuild that is killed continues where it
 *     stopped. If only the text of the tables changed, and ALTER TABLE can make the change, the
 *     tables are changed in place instead (pack_reconcile.c).
 * (3) A pack that cannot be created here (a table of another pack has the name, its SQL is wrong
 *     for this database, a newer version created it) is left out, and all others run.
 * (4) If a journal was deleted or replaced, the pack's section `-- forget` deletes the rows of the
 *     session; a pack without such a section is rebuilt.
 * (5) Foreign keys are off: sessions are applied in any order, and handlers implement cascades
 *     themselves.
 * (6) A file with tables that this program does not create is rebuilt before it is queried
 *     (shape.h). Only objects of a pack may differ, if _pack says that another text created them.
 *     Its indexes, views and triggers that differ are dropped before anything is written. Then the
 *     pack's tables are changed or rebuilt (rule 2), or stay if the pack is left out (rule 3).
 * (7) If users write the database, too, each transaction first moves the rows that they wrote since
 *     the last transaction into the journal (outbox.c). Tables are not rebuilt before these rows
 *     are in the journal.
 */
#include "index/db/db.h"
#include "index/index.h"
#include "index/pack/outbox.h"
#include "index/pack/pack_follower.h"
#include "index/pack/pack_schema.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <stdio.h>
#include <string.h>

#define PACK_APPLICATION_ID 0x416e6e70 /* application id in the header of a pack database: "Annp" */
/* Versions of packs_schema.sql: of a database that only we write, and of a writable database. The
 * version of writable databases is never raised, because the rows of users in older files would be
 * lost. */
#define PACK_SCHEMA_VERSION   2
#define PACK_WRITABLE_VERSION 1

/* ---- Rows of users, rule 7 ---- */

/* Return the session of this database, in out. There is exactly one: packs.c refuses a writable
 * pack without a session. */
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
        pack_fill_db(fill),
        "SELECT seq, offset, h FROM _cursor WHERE pack = ?1 AND session_id = ?2", &stmt, err);
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
        status = annal__db_fail(err, pack_fill_db(fill), rc, "cannot read the cursor of pack '%s'",
                                fill->slot->name);
    sqlite3_finalize(stmt);
    return status;
}

/* Move the rows that users wrote into the journal of their session. */
static annal_status drain(struct pack_fill *fill, struct outbox_drained *out, annal_error *err)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct outbox_target target = {.store = fill->follower.derived->store,
                                   .session = session_of(fill, id),
                                   .pack = fill->slot->pack};
    annal_status status = read_applied(fill, target.session, &target.applied, err);
    return status < 0 ? status : annal__outbox_drain(pack_fill_db(fill), &target, out, err);
}

/*
 * Move rows that users wrote into the journal, at the beginning of each transaction. Their events
 * are then applied (or skipped, if the tables contain them) in the same transaction, so that no
 * reader sees incomplete tables.
 */
static annal_status take_in(struct pack_fill *fill, annal_error *err)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct outbox_drained drained = {0};
    bool is_waiting = false;
    annal_status status = ANNAL_OK;
    if (fill->outbox == NULL)
        status = annal__outbox_watch_new(pack_fill_db(fill), &fill->outbox, err);
    if (status >= 0)
        status = annal__outbox_watch_ask(fill->outbox, &is_waiting, err);
    if (status < 0 || !is_waiting)
        return status;
    status = drain(fill, &drained, err);
    if (status >= 0 && drained.must_rebuild)
        status = annal__pack_schema_remake(fill, err);
    if (status >= 0 && (drained.must_rebuild || drained.changes > 0))
        status = annal__indexer_catch_up(&fill->follower, session_of(fill, id), err);
    return status;
}

/* Create the tables of a pack, change them to its current text, or rebuild them, in a
 * transaction. */
static annal_status settle_tables(struct pack_fill *fill, annal_error *err)
{
    const annal_pack *pack = fill->slot->pack;
    struct made made = {0};
    annal_status status =
        annal__pack_schema_made_read(fill, pack_fill_db(fill), "main", &made, err);
    if (status < 0)
        return status;
    if (made.known && made.version > pack->version)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "the tables of pack '%s' were created by its version %lld, but this is "
                           "version %u; they stay unchanged",
                           pack->name, (long long)made.version, (unsigned)pack->version);
    if (annal__pack_schema_made_is_same(&made, pack))
        return ANNAL_OK;
    struct outbox_drained unused;
    bool mended = false;
    /* move the changes of users into the journal before the tables are rebuilt */
    if (made.known && pack->writable)
        status = drain(fill, &unused, err);
    else if (made.known && made.handlers_hash == pack->handlers_hash + INDEX_CODE_VERSION)
        status = annal__pack_schema_mend(fill, &made, &mended, err);
    return status < 0 || mended ? status : annal__pack_schema_remake(fill, err);
}

/* Return whether a failure is caused by the pack itself, so that only this pack is excluded, not
 * the whole database. */
static bool is_own_fault(annal_status status)
{
    return status == ANNAL_ERR_SQL || status == ANNAL_ERR_INVALID ||
           status == ANNAL_ERR_UNSUPPORTED;
}

/*
 * Prepare the handlers. They were tried when the pack was read, so if they cannot be prepared for
 * the tables here, a user of a writable database dropped a table or a column. All other rows of
 * users are then moved into the journal, and the tables are rebuilt, in this transaction.
 */
static annal_status prepare_fill(struct pack_fill *fill, annal_error *err)
{
    const annal_pack *const packs[] = {fill->slot->pack};
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct outbox_drained unused;
    annal_error why = {0};
    annal_status status = annal__pack_follower_open(&fill->follower, packs, 1, &why);
    if (status != ANNAL_ERR_SQL || !fill->slot->pack->writable)
        return annal__error_pass(err, status, &why);
    annal__pack_follower_close(&fill->follower);
    annal__say(
        fill->follower.derived->store, ANNAL_LOG_WARNING,
        "tables of pack '%s' were dropped or altered, and are being rebuilt from the journals: %s",
        fill->slot->name, why.message);
    status = drain(fill, &unused, err);
    if (status >= 0)
        status = annal__pack_schema_remake(fill, err);
    if (status >= 0)
        status = annal__pack_follower_open(&fill->follower, packs, 1, err);
    return status < 0 ? status
                      : annal__indexer_catch_up(&fill->follower, session_of(fill, id), err);
}

/* Create or change the tables of one pack, and prepare its handlers. If the pack itself is wrong,
 * its changes are rolled back and it is left out (rule 3). */
static annal_status settle_fill(struct pack_fill *fill, annal_error *err)
{
    annal_error why = {0};
    sqlite3 *db = pack_fill_db(fill);
    annal_status status = annal__db_exec(db, "BEGIN IMMEDIATE", err);
    if (status < 0)
        return status;
    status = settle_tables(fill, &why);
    if (status >= 0)
        status = prepare_fill(fill, &why);
    if (status >= 0)
        status = annal__db_exec(db, "COMMIT", &why);
    if (status < 0) {
        annal__pack_follower_close(&fill->follower);
        if (sqlite3_get_autocommit(db) == 0)
            (void)annal__db_exec(db, "ROLLBACK", NULL);
    }
    if (status < 0 && !is_own_fault(status))
        return annal__error_pass(err, status, &why);
    if (status < 0 && fill->why.status == 0) {
        annal__say(fill->follower.derived->store, ANNAL_LOG_WARNING, "pack '%s' is skipped: %s",
                   fill->slot->name, why.message);
        fill->why = why;
    }
    fill->left_out = status < 0;
    return ANNAL_OK;
}

/* Settle the tables with temporary storage in a file: an index that is created on a full table
 * sorts all its rows. */
static annal_status open_fill(struct pack_fill *fill, annal_error *err)
{
    annal_status status = annal__db_exec(pack_fill_db(fill), "PRAGMA temp_store = FILE", err);
    if (status >= 0)
        status = settle_fill(fill, err);
    (void)annal__db_exec(pack_fill_db(fill), "PRAGMA temp_store = MEMORY", NULL);
    return status;
}

/* ---- Functions of a pack as a follower ---- */

static annal_status flush(struct follower *follower, annal_slice session, annal_error *err)
{
    return annal__applier_flush(follower->applier, session, err);
}

/* Run a statement on the pack's database; its parameters are the pack's name (?1) and the session
 * (?2). */
static annal_status run_for_session(struct pack_fill *fill, const char *sql, annal_slice session,
                                    annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(pack_fill_db(fill), sql, &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(fill->slot->name));
    annal__db_bind_text(stmt, 2, session);
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

/* Delete the rows of a session whose journal was deleted, or rebuild the pack (rule 4). */
static annal_status forget(struct follower *follower, annal_slice session, annal_error *err)
{
    struct pack_fill *fill = follower->own;
    if (!annal__pack_forgets(fill->slot->pack))
        return annal__pack_schema_remake(fill, err);
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

static const struct follower_ops pack_follower = {.feeds = feeds,
                                                  .event = annal__pack_follower_event,
                                                  .flush = flush,
                                                  .settle = annal__pack_follower_settle,
                                                  .forget = forget};

/* ---- Functions of the derived database ---- */

/* Check the objects of one pack after the comparison (rule 6), or the outbox of a writable
 * database: they may be missing or differ only if the pack's tables were not created yet, or from
 * another text. */
static annal_status check_fill(const struct pack_database *database, const struct pack_fill *fill,
                               const struct shape_part *part, sqlite3 *db, const char *schema,
                               annal_error *err)
{
    struct made made = {0};
    const annal_pack *pack = fill->slot->pack;
    if (part->found == part->shape->count && !part->differs)
        return ANNAL_OK;
    annal_status status = annal__pack_schema_made_read(fill, db, schema, &made, err);
    if (status < 0)
        return status;
    /* no table of the pack was created in this database yet, so no object may differ */
    bool allowed = !part->differs;
    /*
     * if another text created the tables, objects may differ, because the writer changes them: but
     * not in a file that is never written, and no index, view or trigger of a newer version of the
     * pack
     */
    if (made.known)
        allowed = !annal__pack_schema_made_is_same(&made, pack) && !pack->writable &&
                  !(part->differs && database->derived.frozen) &&
                  !(part->moves && made.version > pack->version);
    return allowed ? ANNAL_OK
                   : annal__fail(err, ANNAL_ERR_CORRUPT,
                                 "the database '%s' has an unexpected schema: tables that pack "
                                 "'%s' created were dropped or replaced",
                                 database->derived.path, fill->slot->name);
}

/* Compare the schema of the database with the expected objects. In a writable database, in which
 * users create objects and change the pack's tables, only annal's internal tables are compared. */
static annal_status compare(struct pack_database *database, sqlite3 *db, const char *schema,
                            struct shape_part *parts, annal_error *err)
{
    bool writable = database->derived.rollback;
    parts[0] = (struct shape_part){.shape = &database->shape, .ours = true};
    parts[1] = (struct shape_part){.shape = &database->outbox};
    for (size_t i = 0; !writable && i < database->fill_count; i++)
        parts[1 + i].shape = &database->fills[i].slot->pack->shape;
    annal_status status = annal__shape_compare(
        db, schema, parts, 1 + (writable ? 1 : database->fill_count), writable, err);
    for (size_t i = 0; status >= 0 && i < database->fill_count; i++)
        status = check_fill(database, &database->fills[i], &parts[writable ? 1 : 1 + i], db, schema,
                            err);
    return status;
}

static struct shape_part *new_parts(const struct pack_database *database, annal_error *err)
{
    struct shape_part *parts = annal__zalloc((database->fill_count + 1) * sizeof *parts);
    if (parts == NULL)
        annal__fail(err, ANNAL_ERR_NOMEM, "prepare the database '%s': out of memory",
                    database->derived.path);
    return parts;
}

static annal_status check(void *arg, sqlite3 *db, const char *schema, annal_error *err)
{
    struct pack_database *database = arg;
    struct shape_part *parts = new_parts(database, err);
    annal_status status =
        parts == NULL ? ANNAL_ERR_NOMEM : compare(database, db, schema, parts, err);
    annal__free(parts);
    return status;
}

/* Drop the indexes, views and triggers that differ, before the tables are changed, because SQLite
 * would run them (rule 6). */
static annal_status drop_moves(struct pack_database *database, sqlite3 *db, annal_error *err)
{
    if (database->derived.rollback || database->derived.private)
        return ANNAL_OK;
    struct shape_part *parts = new_parts(database, err);
    if (parts == NULL)
        return ANNAL_ERR_NOMEM;
    bool moves = false;
    annal_status status = annal__db_exec(db, "BEGIN IMMEDIATE", err);
    if (status >= 0)
        status = compare(database, db, "main", parts, err);
    for (size_t i = 0; i <= database->fill_count; i++)
        moves |= parts[i].moves;
    if (status >= 0 && moves)
        status = annal__shape_drop_moves(db, parts, database->fill_count + 1, err);
    if (sqlite3_get_autocommit(db) == 0)
        (void)annal__db_exec(db, status >= 0 && moves ? "COMMIT" : "ROLLBACK", NULL);
    annal__free(parts);
    return status;
}

static annal_status make(void *arg, sqlite3 *db, annal_error *err)
{
    (void)arg;
    return annal__db_exec(db, annal__sql_packs_schema, err);
}

static annal_status opened(void *arg, sqlite3 *db, annal_error *err)
{
    struct pack_database *database = arg;
    /* triggers capture rows of users only, not ours: outbox.c, rule (2) */
    if (database->derived.rollback)
        sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    annal_status status = drop_moves(database, db, err);
    for (size_t i = 0; status >= 0 && i < database->fill_count; i++)
        status = open_fill(&database->fills[i], err);
    return status;
}

/* Find out whether the tables of a pack were created and filled from its current text; a pack that
 * is left out counts as current. */
static annal_status fill_is_current(struct pack_fill *fill, sqlite3 *db, bool *out,
                                    annal_error *err)
{
    struct made made = {0};
    annal_status status = db == NULL ? annal__pack_schema_made_read_own(fill, &made, err)
                                     : annal__pack_schema_made_read(fill, db, "main", &made, err);
    *out = fill->left_out || annal__pack_schema_made_is_same(&made, fill->slot->pack);
    return status;
}

static annal_status is_current(void *arg, sqlite3 *db, bool *out, annal_error *err)
{
    struct pack_database *database = arg;
    annal_status status = ANNAL_OK;
    *out = true;
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
        annal__pack_follower_close(&fill->follower);
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

static const struct derived_ops pack_ops = {.check = check,
                                            .make = make,
                                            .opened = opened,
                                            .is_current = is_current,
                                            .begun = begun,
                                            .closing = closing,
                                            .undone = undone};

/* ---- Functions for guards ---- */

annal_status annal__pack_catch_up(struct pack_database *database, annal_slice session,
                                  annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < database->fill_count; i++)
        if (database->fills[i].follower.applier != NULL &&
            annal__follower_feeds(&database->fills[i].follower, session))
            status = annal__indexer_catch_up(&database->fills[i].follower, session, err);
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
        status = annal__pack_schema_remake(fill, err);
    /* users see all rows or none, so the rows are filled in the same transaction */
    if (status >= 0 && fill->slot->pack->writable) {
        char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
        status = annal__indexer_catch_up(&fill->follower, session_of(fill, id), err);
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
    bool is_waiting = false;
    if (!fill->slot->pack->writable || database->derived.frozen || database->derived.private)
        return ANNAL_OK;
    annal_status status =
        annal__derived_reader(&database->derived, database->derived.wait_ms, &reader, &unused, err);
    if (status >= 0)
        status = annal__outbox_waits(reader, &is_waiting, err);
    annal__db_close(reader);
    if (status < 0 || !is_waiting)
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

/*
 * Compose the name of the lock's file, such as state.db: the path below the store, or the complete
 * path, with underscores for slashes and a leading dot. Only the end of a long path is used.
 */
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
        return annal__fail(err, ANNAL_ERR_NOMEM, "fill the database '%s': out of memory", path);
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
    database->derived.user_version =
        database->derived.rollback ? PACK_WRITABLE_VERSION : PACK_SCHEMA_VERSION;
    database->derived.ops = &pack_ops;
    database->derived.arg = database;
    lock_name(index, path, lock);
    annal_status status = annal__derived_init(&database->derived, index->store, path, lock, err);
    if (status >= 0)
        status = annal__shape_of_text(&database->shape, annal__sql_packs_schema, err);
    if (status >= 0 && database->derived.rollback)
        status = annal__shape_of_text(&database->outbox, annal__outbox_tables, err);
    if (status >= 0 && slots[0]->at != NULL && slots[0]->at[0] == '/')
        database->derived.given_bytes = strlen(slots[0]->at);
    if (status >= 0 && index->derived.private)
        status = annal__derived_make_private(&database->derived, err);
    else if (status >= 0 && annal__session_list_is_read_only(index->store))
        status = annal__derived_open_read_only(&database->derived, err);
    return status;
}

annal_status annal__pack_database_new(annal_index *index, const char *path, const char *star,
                                      const struct pack_slot *const *slots, size_t slot_count,
                                      struct pack_database **out_database, annal_error *err)
{
    struct pack_database *database = annal__zalloc(sizeof *database);
    if (database == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "prepare the database '%s': out of memory", path);
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
    annal__shape_done(&database->shape);
    annal__shape_done(&database->outbox);
    annal__free(database->fills);
    annal__free(database->stem);
    annal__free(database->star);
    annal__free(database);
}
