/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying events.
 *
 * An event is passed to the handlers of its type, in the order of the packs and of their sections;
 * these handlers are remembered for each type. Each handler makes all of its changes or none. If a
 * handler cannot accept the event, its reason becomes a finding and the next handler runs: no pack
 * stops another.
 */
#include "index/pack/applier_parts.h"

#include "index/db/db.h"
#include "index/pack/outbox.h"
#include "index/pack/permit.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"

#include <stdio.h>
#include <string.h>

/* A section that was stopped because it ran for longer than it may for one event, or ended the
 * transaction. If this happens before the event is appended, another event may get its seq. */
struct spent {
    uint64_t event; /* hash of the session and the data */
    uint64_t seq, handler;
    const char *why; /* static string that says why the section was stopped */
};

/* ---- New and free ---- */

static annal_status prepare_savepoint(struct applier *applier, annal_error *err)
{
    annal_status status =
        annal__db_prepare(applier->db, "SAVEPOINT handler", &applier->savepoint, err);
    if (status >= 0)
        status = annal__db_prepare(applier->db, "ROLLBACK TO handler", &applier->undo, err);
    if (status >= 0)
        status = annal__db_prepare(applier->db, "RELEASE handler", &applier->release, err);
    return status;
}

static annal_status prepare_fold(struct applier *applier, annal_error *err)
{
    annal_status status = annal__db_prepare(
        applier->db,
        "INSERT INTO sessions (id, agent_id, provider, model, created_at, updated_at, "
        "last_activity_at, total_tokens, total_cost_usd) VALUES (?1, '', '', '', ?2, ?2, ?2, NULL, "
        "NULL) ON CONFLICT (id) DO NOTHING",
        &applier->insert_session, err);
    if (status < 0)
        return status;
    return annal__db_prepare(applier->db,
                             "UPDATE sessions SET events = events + ?2, updated_at = "
                             "MAX(updated_at, ?3), last_activity_at = MAX(last_activity_at, ?4) "
                             "WHERE id = ?1",
                             &applier->update_session, err);
}

annal_status annal__applier_new(sqlite3 *db, const annal_pack *const *packs, size_t pack_count,
                                struct applier **out_applier, annal_error *err)
{
    annal_status status = ANNAL_OK;
    size_t handlers = 0;
    for (size_t i = 0; i < pack_count; i++)
        handlers += packs[i]->section_count;
    struct applier *applier = annal__zalloc(sizeof *applier);
    if (applier != NULL)
        applier->handlers = annal__zalloc((handlers + 1) * sizeof *applier->handlers);
    if (applier == NULL || applier->handlers == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "prepare %zu sections of packs: out of memory",
                             handlers);
        goto done;
    }
    applier->db = db;
    status = annal__permit_no_chance(db, err);
    if (status < 0)
        goto done;
    for (size_t i = 0; i < pack_count; i++) {
        applier->has_core |= strcmp(packs[i]->name, "core") == 0;
        applier->settles |= annal__pack_settles(packs[i]);
        for (size_t j = 0; j < packs[i]->section_count; j++) {
            const struct pack_section *section = &packs[i]->sections[j];
            if (section->kind >= PACK_NOUN)
                continue;
            struct handler *handler = &applier->handlers[applier->handler_count++];
            if (packs[i]->tried && section->kind == PACK_ON) {
                handler->section = section;
                handler->pack = packs[i];
                continue;
            }
            status = annal__handler_compile(handler, packs[i], section, db, err);
            if (status < 0)
                goto done;
        }
    }
    status = prepare_savepoint(applier, err);
    if (status >= 0 && applier->has_core)
        status = prepare_fold(applier, err);
    for (size_t i = 0; status >= 0 && i < pack_count && applier->outbox == NULL; i++)
        if (packs[i]->writable)
            status = annal__outbox_reader_new(db, &applier->outbox, err);
    if (status < 0)
        goto done;
    annal__applier_forget(applier);
    *out_applier = applier;
    applier = NULL;

done:
    annal__applier_free(applier);
    return status;
}

void annal__applier_free(struct applier *applier)
{
    if (applier == NULL)
        return;
    for (size_t i = 0; i < applier->handler_count; i++)
        annal__handler_done(&applier->handlers[i]);
    for (size_t i = 0; i < ROUTES; i++)
        annal__free(applier->routes[i].handlers);
    annal__free(applier->long_route.handlers);
    annal__free(applier->handlers);
    sqlite3_finalize(applier->savepoint);
    sqlite3_finalize(applier->undo);
    sqlite3_finalize(applier->release);
    sqlite3_finalize(applier->insert_session);
    sqlite3_finalize(applier->update_session);
    annal__outbox_reader_free(applier->outbox);
    annal__buf_done(&applier->spent);
    sqlite3_finalize(applier->put_field);
    sqlite3_finalize(applier->copy_field);
    annal__free(applier);
}

/* ---- Running a section ---- */

static uint64_t hash_event(annal_slice session, const annal_event *event)
{
    uint64_t hash = annal__hash(session.ptr, session.len, 0);
    return annal__hash(event->data.ptr, event->data.len, hash);
}

/*
 * Remember a section that was stopped, and fail. If SQLite stops a statement that writes, it has
 * rolled back the whole transaction; when the event is applied again, the section is left out with
 * a finding, and all other sections run.
 */
static annal_status note_spent(struct applier *applier, const struct handler *handler,
                               annal_slice session, const annal_event *event, const char *why,
                               annal_error *err)
{
    const struct spent spent = {hash_event(session, event), event->seq,
                                (uint64_t)(handler - applier->handlers), why};
    if (annal__buf_append(&applier->spent, (const char *)&spent, sizeof spent) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM,
                           "apply event %llu of session '%.*s': out of memory",
                           (unsigned long long)event->seq, ANNAL_FMT(session));
    return annal__fail(err, ANNAL_ERR_LIMIT, "event %llu of session '%.*s', %.*s: %s",
                       (unsigned long long)event->seq, ANNAL_FMT(session), ANNAL_FMT(event->type),
                       why);
}

/* Return which limit the handler exceeded when it ran for this event before, so that it is not run
 * again; NULL if it did not. */
static const char *why_spent(const struct applier *applier, const struct handler *handler,
                             annal_slice session, const annal_event *event)
{
    struct spent spent;
    if (applier->spent.len == 0)
        return NULL;
    uint64_t hash = hash_event(session, event);
    for (size_t at = 0; at < applier->spent.len; at += sizeof spent) {
        memcpy(&spent, applier->spent.ptr + at, sizeof spent);
        if (spent.event == hash && spent.seq == event->seq &&
            spent.handler == (uint64_t)(handler - applier->handlers))
            return spent.why;
    }
    return NULL;
}

size_t annal__applier_spent(const struct applier *applier)
{
    return applier == NULL ? 0 : applier->spent.len;
}

/* Compile the section of a handler when it first runs, if annal__applier_new() has not compiled
 * it. */
static annal_status compile_late(struct applier *applier, const struct handler *handler,
                                 annal_error *err)
{
    struct handler *own = &applier->handlers[handler - applier->handlers];
    const struct handler late = *own;
    if (late.pack == NULL)
        return ANNAL_OK;
    annal_status status = annal__handler_compile(own, late.pack, late.section, applier->db, err);
    if (status < 0)
        annal__handler_done(own);
    if (status < 0)
        *own = late;
    else
        own->pack = NULL;
    return status;
}

/*
 * Explain a result code of SQLite that is not SQLITE_OK: either fail, or write into
 * applier->refused why the section did not accept the event. asked: whether a guard was checked.
 */
static annal_status explain(struct applier *applier, const struct handler *handler,
                            annal_slice session, const annal_event *event, bool asked,
                            const struct spending *spending, int rc, annal_error *err)
{
    if (rc == SQLITE_INTERRUPT)
        return note_spent(applier, handler, session, event, spending->why, err);
    if (!annal__handler_is_refusal(rc))
        return annal__db_fail(err, applier->db, rc, "cannot apply event %llu of session '%.*s'",
                              (unsigned long long)event->seq, ANNAL_FMT(session));
    if (asked || (rc & 0xff) == SQLITE_TOOBIG)
        annal__db_reason(applier->db, rc, applier->refused, sizeof applier->refused);
    else /* SQLite's own message, because the author of the pack reads the finding */
        snprintf(applier->refused, sizeof applier->refused, "%s", sqlite3_errmsg(applier->db));
    return ANNAL_OK;
}

annal_status annal__applier_run(struct applier *applier, const struct handler *handler,
                                annal_slice session, const annal_event *event, bool *out_holds,
                                int *out_rc, annal_error *err)
{
    annal_status status = compile_late(applier, handler, err);
    if (status < 0)
        return status;
    const char *spent = why_spent(applier, handler, session, event);
    if (spent != NULL) {
        snprintf(applier->refused, sizeof applier->refused, "%s", spent);
        *out_rc = SQLITE_ERROR;
        return ANNAL_OK;
    }
    struct spending spending;
    annal__permit_steps(applier->db, &spending);
    int rc = annal__pack_fields_read(handler->fields, &applier->members);
    bool runs = rc == SQLITE_OK && annal__handler_wants(handler);
    /* several statements need a savepoint, and one that changes rows and then refuses. So does a
     * statement of a user: with OR FAIL, or if a type does not fit in its second row, SQLite keeps
     * the rows that it changed before it failed. */
    bool asked = out_holds != NULL;
    bool several = runs && (handler->count > 1 + annal__handler_first(handler, asked) ||
                            (asked && !handler->asks) || !handler->built_in);
    if (several)
        status = annal__db_run(applier->savepoint, err);
    if (runs && status >= 0)
        rc = annal__handler_run(handler, session, event, out_holds);
    if (several && annal__handler_is_refusal(rc) && sqlite3_get_autocommit(applier->db)) {
        rc = SQLITE_INTERRUPT; /* as if SQLite had stopped it: the transaction is gone, too */
        spending.why = "it rolled back the transaction: a pack uses ABORT instead of ROLLBACK";
    }
    annal__permit_steps(applier->db, NULL);
    if (rc != SQLITE_OK && status >= 0)
        status = explain(applier, handler, session, event, asked, &spending, rc, err);
    annal__pack_fields_forget(handler->fields);
    if (several && status >= 0 && rc != SQLITE_OK)
        status = annal__db_run(applier->undo, err);
    if (several && status >= 0)
        status = annal__db_run(applier->release, err);
    *out_rc = rc;
    return status;
}

/* ---- An event ---- */

/* Apply an event with rows that users wrote. This is the same for every writable pack, so no
 * section of a pack is run for it. */
static annal_status run_outbox(struct applier *applier, annal_slice session,
                               const annal_event *event, const char **out_refused, annal_error *err)
{
    annal_status status = annal__db_run(applier->savepoint, err);
    if (status < 0)
        return status;
    const char *why = NULL;
    int rc = annal__outbox_apply(applier->outbox, event, &why);
    if (annal__handler_is_refusal(rc)) {
        snprintf(applier->refused, sizeof applier->refused, "%.*s: %s", ANNAL_FMT(event->type),
                 why == NULL ? sqlite3_errmsg(applier->db) : why);
        *out_refused = applier->refused;
    } else if (rc != SQLITE_OK) {
        status = annal__db_fail(err, applier->db, rc, "cannot apply event %llu of session '%.*s'",
                                (unsigned long long)event->seq, ANNAL_FMT(session));
    }
    if (status >= 0 && rc != SQLITE_OK)
        status = annal__db_run(applier->undo, err);
    if (status >= 0)
        status = annal__db_run(applier->release, err);
    return status;
}

annal_status annal__applier_begin(struct applier *applier, annal_slice session, int64_t ts_us,
                                  annal_error *err)
{
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(ts_us, ts);
    annal__db_bind_text(applier->insert_session, 1, session);
    sqlite3_bind_text(applier->insert_session, 2, ts, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
    return annal__db_run(applier->insert_session, err);
}

/* Put the type of the event before the reason in applier->refused, and return the result. */
static const char *finding(struct applier *applier, annal_slice type)
{
    char why[sizeof applier->refused];
    memcpy(why, applier->refused, sizeof why);
    snprintf(applier->refused, sizeof applier->refused, "%.*s: %.400s", ANNAL_FMT(type), why);
    return applier->refused;
}

static void count_event(struct fold *fold, const annal_event *event)
{
    fold->events++;
    if (event->ts_us > fold->latest_us)
        fold->latest_us = event->ts_us;
    bool is_activity = !annal__slice_is(event->type, "session.updated");
    if (is_activity && event->ts_us > fold->activity_us)
        fold->activity_us = event->ts_us;
}

static void end_if_pruned(struct applier *applier, const annal_event *event)
{
    if (applier->has_core && annal__slice_is(event->type, "session.pruned"))
        /*
         * the row of the session was deleted: forget it, so that the next event creates a new row
         */
        annal__applier_forget(applier);
}

const struct route *annal__applier_route(struct applier *applier, annal_slice type)
{
    bool kept = type.len > 0 && type.len <= TYPE_BYTES;
    struct route *route =
        kept ? &applier->routes[annal__hash(type.ptr, type.len, 0) % ROUTES] : &applier->long_route;
    if (kept && route->len == type.len && memcmp(route->type, type.ptr, type.len) == 0)
        return route;
    if (route->handlers == NULL)
        route->handlers = annal__zalloc((applier->handler_count + 1) * sizeof(struct handler *));
    if (route->handlers == NULL)
        return NULL;
    route->count = 0;
    route->guarded = false;
    for (size_t i = 0; i < applier->handler_count; i++) {
        const struct pack_section *section = applier->handlers[i].section;
        if (section->kind != PACK_ON || !annal__pack_section_takes(section, type))
            continue;
        route->handlers[route->count++] = &applier->handlers[i];
        route->guarded = route->guarded || section->guard != NULL;
    }
    route->len = kept ? type.len : 0;
    if (kept)
        memcpy(route->type, type.ptr, type.len);
    return route;
}

annal_status annal__applier_event(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  annal_error *err)
{
    struct fold *fold = &applier->fold;
    *out_refused = NULL;
    if (applier->has_core && !fold->begun) {
        annal_status status = annal__applier_begin(applier, session, event->ts_us, err);
        if (status < 0)
            return status;
        fold->begun = true;
    }
    count_event(fold, event);
    if (applier->outbox != NULL && annal__outbox_takes(event->type)) {
        annal_status status = run_outbox(applier, session, event, out_refused, err);
        if (status < 0)
            return status;
    }
    const struct route *route = annal__applier_route(applier, event->type);
    if (route == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "apply an event '%.*s': out of memory",
                           ANNAL_FMT(event->type));
    annal__pack_members_read(&applier->members, event->data);
    for (size_t i = 0; i < route->count; i++) {
        int rc = SQLITE_OK;
        annal_status status =
            annal__applier_run(applier, route->handlers[i], session, event, NULL, &rc, err);
        if (status < 0)
            return status;
        if (rc != SQLITE_OK)
            *out_refused = finding(applier, event->type);
    }
    end_if_pruned(applier, event);
    return ANNAL_OK;
}

void annal__applier_keep(struct applier *applier, const annal_event *event)
{
    applier->fold.begun = true; /* the trial created the session's row */
    count_event(&applier->fold, event);
    end_if_pruned(applier, event);
}

/* ---- A session ---- */

annal_status annal__applier_drop(struct applier *applier, annal_slice session, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < applier->handler_count; i++) {
        const struct handler *handler = &applier->handlers[i];
        for (size_t j = 0; handler->section->kind == PACK_FORGET && j < handler->count; j++) {
            const struct statement *statement = &handler->statements[j];
            for (int k = 0; k < statement->param_count; k++)
                annal__db_bind_text(statement->stmt, k + 1, session);
            struct spending spending;
            annal__permit_steps(applier->db, &spending);
            status = annal__db_run(statement->stmt, err);
            annal__permit_steps(applier->db, NULL);
            if (status < 0)
                return status;
        }
    }
    return ANNAL_OK;
}

annal_status annal__applier_settle(struct applier *applier, annal_slice session, uint64_t seq,
                                   const char **out_refused, annal_error *err)
{
    static const annal_slice what = {"settle", 6};
    const annal_event event = {.seq = seq, .type = what};
    *out_refused = NULL;
    annal__pack_members_read(&applier->members, event.data);
    for (size_t i = 0; applier->settles && i < applier->handler_count; i++) {
        const struct handler *handler = &applier->handlers[i];
        int rc = SQLITE_OK;
        if (handler->section->kind != PACK_SETTLE)
            continue;
        annal_status status = annal__applier_run(applier, handler, session, &event, NULL, &rc, err);
        if (status < 0)
            return status;
        if (rc != SQLITE_OK)
            *out_refused = finding(applier, what);
    }
    return ANNAL_OK;
}

bool annal__applier_settles(const struct applier *applier)
{
    return applier->settles;
}

annal_status annal__applier_flush(struct applier *applier, annal_slice session, annal_error *err)
{
    struct fold *fold = &applier->fold;
    annal_status status = ANNAL_OK;
    if (applier->has_core && fold->events > 0) {
        char latest[ANNAL_TIME_BYTES], activity[ANNAL_TIME_BYTES];
        annal_time_format(fold->latest_us, latest);
        annal_time_format(fold->activity_us, activity);
        sqlite3_stmt *stmt = applier->update_session;
        annal__db_bind_text(stmt, 1, session);
        sqlite3_bind_int64(stmt, 2, (sqlite3_int64)fold->events);
        sqlite3_bind_text(stmt, 3, latest, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 4, activity, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
        status = annal__db_run(stmt, err);
    }
    annal__applier_forget(applier);
    return status;
}

void annal__applier_forget(struct applier *applier)
{
    applier->fold = (struct fold){.latest_us = INT64_MIN, .activity_us = INT64_MIN};
}
