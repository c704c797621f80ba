/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the packs of a store, and finding a pack by its name. */
#include "index/db/db.h"
#include "index/index.h"
#include "index/sys/pack.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <stdio.h>
#include <string.h>

/* The state of a pack, while it is computed. */
struct examined {
    annal_pack_info info;
    struct buf path;
    annal_error error; /* error of the pack, to which info.error points */
    /* number of events in the journals of the sessions that are fed to the pack */
    uint64_t events;
};

struct look {
    annal_index *index;
    struct pack_set *set;
    struct examined *packs; /* core, followed by one pack for each slot */
    annal_error *err;
};

static int add_journal(void *arg, const annal_index_lag *lag)
{
    struct look *look = arg;
    struct examined *core = &look->packs[0];
    core->events += lag->journal_seq;
    core->info.sessions++;
    core->info.events_applied += lag->indexed_seq;
    for (size_t i = 0; i < look->set->slot_count; i++) {
        const annal_pack *pack = look->set->slots[i].pack;
        if (pack != NULL && annal__pack_feeds(pack, lag->session, NULL))
            look->packs[i + 1].events += lag->journal_seq;
    }
    return 0;
}

/* Run a query with a pack's name as its parameter, and add the number that it returns to *sum. */
static annal_status add_number(sqlite3 *db, const char *sql, const char *pack, uint64_t *sum,
                               annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db, sql, &stmt, err);
    if (status < 0)
        return status;
    if (sqlite3_bind_parameter_count(stmt) > 0)
        annal__db_bind_text(stmt, 1, annal_slice_of(pack));
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *sum += (uint64_t)sqlite3_column_int64(stmt, 0);
    else if (rc != SQLITE_DONE)
        status = annal__db_fail(err, db, rc, "cannot read the state of pack '%s'", pack);
    sqlite3_finalize(stmt);
    return status;
}

static annal_status add_counts(struct pack_database *database, const struct pack_slot *slot,
                               struct examined *examined, annal_error *err)
{
    sqlite3 *db = NULL;
    struct stamp stamp;
    annal_status status =
        annal__derived_reader(&database->derived, database->derived.wait_ms, &db, &stamp, err);
    if (status >= 0)
        status = add_number(db, "SELECT COUNT(*) FROM _cursor WHERE pack = ?1", slot->name,
                            &examined->info.sessions, err);
    if (status >= 0)
        status = add_number(db, "SELECT IFNULL(SUM(seq - 1), 0) FROM _cursor WHERE pack = ?1",
                            slot->name, &examined->info.events_applied, err);
    if (status >= 0)
        status = add_number(db, "SELECT COUNT(*) FROM _findings WHERE pack = ?1", slot->name,
                            &examined->info.findings, err);
    annal__db_close(db);
    return status;
}

/* Add the numbers of a database, if its file exists: reading the state of packs creates no
 * database. */
static annal_status add_database(struct look *look, struct pack_database *database,
                                 const struct pack_slot *slot, struct examined *examined,
                                 annal_error *err)
{
    const struct io *io = annal__store_io(look->index->store);
    annal_error why = {0};
    annal_status status = annal__file_is_there(io, database->derived.path)
                              ? add_counts(database, slot, examined, &why)
                              : ANNAL_OK;
    if (status == ANNAL_ERR_CORRUPT)
        status = ANNAL_OK; /* damaged, or of an earlier version: the next catch-up rebuilds it */
    if (status < 0 && err != NULL)
        *err = why;
    struct pack_fill *fill = annal__pack_fill(database, slot);
    if (fill->left_out)
        examined->error = fill->why;
    return status;
}

struct add_session {
    struct look *look;
    const struct pack_slot *slot;
    struct examined *examined;
};

static int add_session(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    struct add_session *add = arg;
    annal_index *index = add->look->index;
    struct pack_database *database = NULL;
    if (annal__stray_is(index->store, session))
        return 0;
    annal_status status =
        annal__packs_database(index, add->look->set, add->slot, session, &database, add->look->err);
    if (status < 0 || database == NULL)
        return status;
    return add_database(add->look, database, add->slot, add->examined, add->look->err);
}

static annal_status look_at_slot(struct look *look, const struct pack_slot *slot,
                                 struct examined *examined)
{
    struct pack_database *database = NULL;
    examined->info.name = slot->name;
    examined->info.source = slot->source;
    examined->error = slot->error;
    if (slot->pack == NULL)
        return ANNAL_OK;
    examined->info.version = slot->pack->version;
    annal_status status =
        annal__packs_path(look->index, slot, ANNAL_SLICE("*"), &examined->path, look->err);
    if (status < 0)
        return status;
    examined->info.database = examined->path.ptr;
    if (annal__packs_slot_has_star(slot)) {
        struct add_session add = {look, slot, examined};
        return annal_session_each(look->index->store, add_session, &add, look->err);
    }
    while ((database = annal__packs_next(look->index, look->set, database)) != NULL)
        if (annal__pack_fill(database, slot) != NULL &&
            add_database(look, database, slot, examined, &examined->error) < 0)
            break;
    return ANNAL_OK;
}

static annal_status look_at_core(struct look *look)
{
    struct examined *core = &look->packs[0];
    sqlite3 *db = NULL;
    core->info.name = annal__pack_name(look->index->core);
    core->info.version = annal__pack_version(look->index->core);
    core->info.database = look->index->derived.path;
    annal_status status = annal__fallback_borrow(look->index, &db, look->err);
    if (status >= 0)
        status = add_number(db, "SELECT COUNT(*) FROM _findings WHERE kind = 'pack'", "core",
                            &core->info.findings, look->err);
    annal__derived_give(&look->index->derived, db, true);
    return status;
}

static annal_status report(struct examined *examined, annal_pack_info_fn fn, void *arg)
{
    annal_pack_info *info = &examined->info;
    info->error = examined->error.status < 0 ? examined->error.message : NULL;
    info->events_behind =
        examined->events > info->events_applied ? examined->events - info->events_applied : 0;
    info->state = info->error != NULL        ? ANNAL_PACK_FAILED
                  : info->events_behind == 0 ? ANNAL_PACK_READY
                                             : ANNAL_PACK_BUILDING;
    return (annal_status)fn(arg, info);
}

annal_status annal_pack_each(annal_index *index, annal_pack_info_fn fn, void *arg, annal_error *err)
{
    struct look look = {.index = index, .err = err};
    annal_status status = annal__packs_get(index, &look.set, err);
    size_t count = status < 0 ? 0 : look.set->slot_count + 1;
    if (status >= 0)
        look.packs = annal__zalloc(count * sizeof *look.packs);
    if (status >= 0 && look.packs == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "list the packs: out of memory");
    if (status >= 0)
        status = annal_index_lag_each(index, (annal_slice){0}, add_journal, &look, err);
    if (status >= 0)
        status = look_at_core(&look);
    for (size_t i = 1; status >= 0 && i < count; i++)
        status = look_at_slot(&look, &look.set->slots[i - 1], &look.packs[i]);
    for (size_t i = 0; status == ANNAL_OK && i < count; i++)
        status = report(&look.packs[i], fn, arg);
    for (size_t i = 0; look.packs != NULL && i < count; i++)
        annal__buf_done(&look.packs[i].path);
    annal__free(look.packs);
    annal__packs_put(index, look.set);
    return status;
}

annal_status annal__packs_have(annal_index *index, const char *name, annal_error *err)
{
    struct pack_set *set = NULL;
    annal_status status = annal__packs_get(index, &set, err);
    if (status < 0)
        return status;
    bool is_on = strcmp(name, "core") == 0;
    for (size_t i = 0; !is_on && i < set->slot_count; i++) {
        const struct pack_slot *slot = &set->slots[i];
        is_on = strcmp(slot->name, name) == 0;
        if (is_on && slot->pack == NULL)
            status = annal__fail(err, slot->error.status, "pack %s: %s", name, slot->error.message);
    }
    if (!is_on)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "pack %s is not enabled in this store", name);
    annal__packs_put(index, set);
    return status;
}

/* ---- Finding a pack by its name ---- */

annal_status annal__pack_named(annal_index *index, const char *name, annal_pack **out_pack,
                               annal_error *err)
{
    struct pack_set *set = NULL;
    SCOPED_BUF text = {0};
    char file[160];
    const char *source = NULL;
    annal_status status = annal__packs_get(index, &set, err);
    for (size_t i = 0; status >= 0 && source == NULL && i < set->slot_count; i++)
        if (strcmp(set->slots[i].name, name) == 0)
            source = set->slots[i].source;
    if (status >= 0 && source != NULL) {
        status = annal__packs_read_text(annal__store_io(index->store), source, &text, err);
    } else if (status >= 0 && annal__builtin_pack(name) != NULL) {
        snprintf(file, sizeof file, "packs/%.100s.sql", name);
        source = file;
        if (annal__buf_append_slice(&text, annal_slice_of(annal__builtin_pack(name))) < 0)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "find pack '%s': out of memory", name);
    } else if (status >= 0) {
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "no pack is named '%s'", name);
    }
    if (status >= 0)
        status = annal_pack_parse(source, annal__buf_slice(&text), out_pack, err);
    annal__packs_put(index, set);
    return status;
}
