#include "index/pack/apply.h"

#include "index/db/database.h"
#include "index/pack/fields.h"
#include "index/pack/outbox.h"
#include "index/pack/permit.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"

#include <stdio.h>
#include <string.h>

/* What a parameter of a statement is bound to. */
enum source { SESSION, SEQ, TS, TYPE, ID, CAUSE, DATA, FIELD };

struct param {
    enum source source;
    int field; /* FIELD: its number */
};

struct statement {
    sqlite3_stmt *stmt;
    struct param *params; /* params[i] is parameter i + 1 */
    int param_count;
};

/* A compiled section of a pack. */
struct handler {
    const struct pack_section *section; /* of the pack */
    struct statement *statements;
    size_t count;
    bool asks;             /* guarded, and the first statement only asks: it is not run at replay */
    struct fields *fields; /* that the statements name */
};

/*
 * What is added up until the flush, because one UPDATE per event would cost more than everything
 * else.
 */
struct fold {
    bool begun; /* the session's row exists */
    uint64_t events;
    int64_t latest_us;
    int64_t activity_us;
};

/* A section that ran for longer than it may for one event. */
struct spent {
    uint64_t session, seq, handler;
    const char *why; /* static */
};

/* The handlers for a type: looked up once, because sessions have few types. */
#define ROUTES     64
#define TYPE_BYTES 48 /* a longer type is looked up each time */

struct route {
    char type[TYPE_BYTES];
    size_t len; /* of type; 0: empty */
    const struct handler **handlers;
    size_t count;
};

struct applier {
    sqlite3 *db;
    struct handler *handlers;
    size_t handler_count;
    struct route routes[ROUTES];
    struct route long_route;
    bool has_core;
    bool settles; /* a pack has a section `-- settle` */
    struct fold fold;
    sqlite3_stmt *savepoint, *undo, *release;
    sqlite3_stmt *insert_session;
    sqlite3_stmt *update_session;
    struct buf spent;                     /* struct spent: sections that are not run again */
    struct outbox_reader *outbox;         /* NULL: no pack is writable */
    sqlite3_stmt *put_field, *copy_field; /* NULL until they are needed */
    char refused[512];
};

/* ---- Compiling ---- */

static annal_status envelope_source(const char *name, enum source *out)
{
    static const char *const names[] = {":session", ":seq",   ":ts",  ":type",
                                        ":id",      ":cause", ":data"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum source)i;
            return ANNAL_OK;
        }
    return ANNAL_ERR_INVALID;
}

/*
 * The names of the fields met so far, each followed by a NUL; returns the index of name among them.
 */
static int field_place(struct buf *fields, const char *name, annal_status *status)
{
    int place = 0;
    for (size_t at = 0; at < fields->len; at += strlen(fields->ptr + at) + 1, place++)
        if (strcmp(fields->ptr + at, name) == 0)
            return place;
    *status = annal__buf_append(fields, name, strlen(name) + 1);
    return place;
}

static annal_status bind_plan(const annal_pack *pack, const struct pack_section *source,
                              struct statement *statement, struct buf *fields, annal_error *err)
{
    statement->param_count = sqlite3_bind_parameter_count(statement->stmt);
    statement->params =
        annal__zalloc((size_t)(statement->param_count + 1) * sizeof *statement->params);
    if (statement->params == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file);
    for (int i = 0; i < statement->param_count; i++) {
        const char *name = sqlite3_bind_parameter_name(statement->stmt, i + 1);
        struct param *param = &statement->params[i];
        annal_status status = ANNAL_OK;
        if ((source->kind == PACK_FORGET || source->kind == PACK_SETTLE) &&
            (name == NULL || strcmp(name, ":session") != 0))
            return annal__fail(err, ANNAL_ERR_SQL, "%s:%u: to %s has no parameter but :session",
                               pack->file, source->line,
                               source->kind == PACK_FORGET ? "forget" : "settle");
        if (name != NULL && name[0] == '$' && strpbrk(name, "('\"") == NULL) {
            param->source = FIELD;
            param->field = field_place(fields, name + 1, &status);
        } else if (name == NULL || envelope_source(name, &param->source) < 0) {
            return annal__fail(err, ANNAL_ERR_SQL,
                               "%s:%u: parameter '%s' is neither $field nor one of :session :seq "
                               ":ts :type :id :cause :data",
                               pack->file, source->line, name == NULL ? "?" : name);
        }
        if (status < 0)
            return annal__fail(err, status, "pack '%s'", pack->file);
    }
    return ANNAL_OK;
}

/* An artifact section has no statement, a fill one SELECT, the others as many as they need. */
static annal_status check_count(const struct handler *handler, const annal_pack *pack,
                                annal_error *err)
{
    const struct pack_section *section = handler->section;
    unsigned line = section->line - 1;
    if (section->kind == PACK_ARTIFACT)
        return handler->count == 0
                   ? ANNAL_OK
                   : annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: an artifact has no statement",
                                 pack->file, line);
    if (handler->count == 0)
        return annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: this section has no statement",
                           pack->file, line);
    sqlite3_stmt *first = handler->statements[0].stmt;
    if (section->kind == PACK_FILL &&
        (handler->count > 1 || sqlite3_column_count(first) == 0 || !sqlite3_stmt_readonly(first)))
        return annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: to fill is one SELECT", pack->file,
                           line);
    for (int i = 0; section->kind == PACK_FILL && i < sqlite3_column_count(first); i++) {
        const char *name = sqlite3_column_name(first, i);
        if (!annal__is_field(annal_slice_of(name)))
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "%s:%u: column '%s' of a fill is no field of data", pack->file, line,
                               name);
    }
    return ANNAL_OK;
}

static annal_status compile_handler(struct handler *handler, const annal_pack *pack,
                                    const struct pack_section *source, sqlite3 *db,
                                    annal_error *err)
{
    struct buf fields = {0};
    const char *at = source->sql;
    annal_status status = ANNAL_OK;
    handler->section = source;
    for (;;) {
        sqlite3_stmt *stmt = NULL;
        status = annal__pack_next_statement(pack, source, &at, db, &stmt, err);
        if (status < 0 || stmt == NULL)
            break;
        struct statement *grown =
            annal__realloc_array(handler->statements, handler->count + 1, sizeof *grown);
        if (grown == NULL) {
            sqlite3_finalize(stmt);
            status = annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file);
            break;
        }
        handler->statements = grown;
        grown[handler->count] = (struct statement){.stmt = stmt};
        status = bind_plan(pack, source, &grown[handler->count++], &fields, err);
        if (status < 0)
            break;
    }
    if (status >= 0)
        status = check_count(handler, pack, err);
    if (status >= 0 && source->guard != NULL)
        handler->asks = sqlite3_stmt_readonly(handler->statements[0].stmt) != 0;
    if (status >= 0)
        status = annal__fields_new(db, annal__buf_slice(&fields), &handler->fields, err);
    annal__buf_done(&fields);
    return status;
}

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
        "last_activity_at) VALUES (?1, '', '', '', ?2, ?2, ?2) ON CONFLICT (id) DO NOTHING",
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
        status = annal__fail(err, ANNAL_ERR_NOMEM, "%zu sections of packs", handlers);
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
            if (packs[i]->sections[j].kind >= PACK_NOUN)
                continue;
            status = compile_handler(&applier->handlers[applier->handler_count++], packs[i],
                                     &packs[i]->sections[j], db, err);
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
    for (size_t i = 0; i < applier->handler_count; i++) {
        struct handler *handler = &applier->handlers[i];
        for (size_t j = 0; j < handler->count; j++) {
            sqlite3_finalize(handler->statements[j].stmt);
            annal__free(handler->statements[j].params);
        }
        annal__free(handler->statements);
        annal__fields_free(handler->fields);
    }
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

/* ---- Running ---- */

static void bind_optional(sqlite3_stmt *stmt, int at, annal_slice text)
{
    if (text.len == 0)
        sqlite3_bind_null(stmt, at);
    else
        annal__db_bind_text(stmt, at, text);
}

static void bind_params(const struct handler *handler, const struct statement *statement,
                        annal_slice session, const annal_event *event, const char *ts)
{
    for (int i = 0; i < statement->param_count; i++) {
        const struct param *param = &statement->params[i];
        sqlite3_stmt *stmt = statement->stmt;
        switch (param->source) {
        case SESSION:
            annal__db_bind_text(stmt, i + 1, session);
            break;
        case SEQ:
            sqlite3_bind_int64(stmt, i + 1, (sqlite3_int64)event->seq);
            break;
        case TS:
            sqlite3_bind_text(stmt, i + 1, ts, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
            break;
        case TYPE:
            annal__db_bind_text(stmt, i + 1, event->type);
            break;
        case ID:
            bind_optional(stmt, i + 1, event->id);
            break;
        case CAUSE:
            bind_optional(stmt, i + 1, event->cause);
            break;
        case DATA:
            annal__db_bind_text(stmt, i + 1, event->data);
            break;
        case FIELD:
            annal__fields_bind(handler->fields, param->field, stmt, i + 1);
            break;
        }
    }
}

/* Whether a failure is about this event, and not about the database. */
static bool is_refusal(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
    case SQLITE_TOOBIG:
        return true;
    default:
        return false;
    }
}

/* Of the first statement of a guarded section, after it was run. */
static bool guard_holds(const struct handler *handler, bool gave_row)
{
    sqlite3_stmt *first = handler->statements[0].stmt;
    return handler->asks ? gave_row : sqlite3_changes(sqlite3_db_handle(first)) > 0;
}

/*
 * *out_holds (NULL at replay): whether the first statement changed a row, or returned one if it
 * only asks; if not, the others are not run.
 */
static int run_statements(const struct handler *handler, annal_slice session,
                          const annal_event *event, bool *out_holds)
{
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(event->ts_us, ts);
    int rc = annal__fields_read(handler->fields, event->data);
    size_t i = out_holds == NULL && handler->asks ? 1 : 0;
    for (; i < handler->count && (rc == SQLITE_OK || rc == SQLITE_DONE); i++) {
        sqlite3_stmt *stmt = handler->statements[i].stmt;
        bool gave_row = false;
        bind_params(handler, &handler->statements[i], session, event, ts);
        while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
            gave_row = true;
        if (i == 0 && out_holds != NULL && rc == SQLITE_DONE) {
            *out_holds = guard_holds(handler, gave_row);
            if (!*out_holds)
                rc = SQLITE_CONSTRAINT;
        }
        sqlite3_reset(stmt);
        sqlite3_clear_bindings(stmt);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/*
 * If SQLite stops a statement that writes, it has rolled back the whole transaction. So this is
 * returned as a failure, and what stopped it is noted here: the next time it is a finding, and
 * everything else runs.
 */
static annal_status note_spent(struct applier *applier, const struct handler *handler,
                               annal_slice session, const annal_event *event, const char *why,
                               annal_error *err)
{
    const struct spent spent = {annal__hash(session.ptr, session.len, 0), event->seq,
                                (uint64_t)(handler - applier->handlers), why};
    if (annal__buf_append(&applier->spent, (const char *)&spent, sizeof spent) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "event %llu of session '%.*s'",
                           (unsigned long long)event->seq, ANNAL_FMT(session));
    return annal__fail(err, ANNAL_ERR_LIMIT, "event %llu of session '%.*s', %.*s: %s",
                       (unsigned long long)event->seq, ANNAL_FMT(session), ANNAL_FMT(event->type),
                       why);
}

/* Why the handler is not run for this event; NULL: it is. */
static const char *why_spent(const struct applier *applier, const struct handler *handler,
                             annal_slice session, const annal_event *event)
{
    struct spent spent;
    if (applier->spent.len == 0)
        return NULL;
    uint64_t hash = annal__hash(session.ptr, session.len, 0);
    for (size_t at = 0; at < applier->spent.len; at += sizeof spent) {
        memcpy(&spent, applier->spent.ptr + at, sizeof spent);
        if (spent.session == hash && spent.seq == event->seq &&
            spent.handler == (uint64_t)(handler - applier->handlers))
            return spent.why;
    }
    return NULL;
}

size_t annal__applier_spent(const struct applier *applier)
{
    return applier == NULL ? 0 : applier->spent.len;
}

/*
 * All or nothing of a section. *out_rc is SQLITE_OK, or why it cannot accept the event, which then
 * changed nothing; applier->refused has the reason: in our words if a guard is asked.
 */
static annal_status run_handler(struct applier *applier, const struct handler *handler,
                                annal_slice session, const annal_event *event, bool *out_holds,
                                int *out_rc, annal_error *err)
{
    /* One statement undoes itself; several need a savepoint. */
    bool several = handler->count > 1 || out_holds != NULL;
    const char *spent = why_spent(applier, handler, session, event);
    if (spent != NULL) {
        snprintf(applier->refused, sizeof applier->refused, "%s", spent);
        *out_rc = SQLITE_ERROR;
        return ANNAL_OK;
    }
    annal_status status = several ? annal__db_run(applier->savepoint, err) : ANNAL_OK;
    if (status < 0)
        return status;
    struct spending spending;
    annal__permit_steps(applier->db, &spending);
    int rc = run_statements(handler, session, event, out_holds);
    annal__permit_steps(applier->db, NULL);
    if (rc == SQLITE_INTERRUPT)
        status = note_spent(applier, handler, session, event, spending.why, err);
    else if (is_refusal(rc) && (out_holds != NULL || (rc & 0xff) == SQLITE_TOOBIG))
        annal__db_reason(applier->db, rc, applier->refused, sizeof applier->refused);
    else if (is_refusal(rc)) /* a finding, which is for the author of the pack */
        snprintf(applier->refused, sizeof applier->refused, "%s", sqlite3_errmsg(applier->db));
    else if (rc != SQLITE_OK)
        status = annal__db_fail(err, applier->db, rc, "event %llu of session '%.*s'",
                                (unsigned long long)event->seq, ANNAL_FMT(session));
    annal__fields_forget(handler->fields);
    if (several && status >= 0 && rc != SQLITE_OK)
        status = annal__db_run(applier->undo, err);
    if (several && status >= 0)
        status = annal__db_run(applier->release, err);
    *out_rc = rc;
    return status;
}

/* What users wrote: the same for every writable pack, so no handler does it. */
static annal_status run_outbox(struct applier *applier, annal_slice session,
                               const annal_event *event, const char **out_refused, annal_error *err)
{
    annal_status status = annal__db_run(applier->savepoint, err);
    if (status < 0)
        return status;
    const char *why = NULL;
    int rc = annal__outbox_apply(applier->outbox, event, &why);
    if (is_refusal(rc)) {
        snprintf(applier->refused, sizeof applier->refused, "%.*s: %s", ANNAL_FMT(event->type),
                 why == NULL ? sqlite3_errmsg(applier->db) : why);
        *out_refused = applier->refused;
    } else if (rc != SQLITE_OK) {
        status = annal__db_fail(err, applier->db, rc, "event %llu of session '%.*s'",
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

/* "type: why", in applier->refused, which has the reason. */
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
        annal__applier_forget(applier); /* its row is gone; the next event begins a new one */
}

/* NULL: no memory. */
static const struct route *find_route(struct applier *applier, annal_slice type)
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
    for (size_t i = 0; i < applier->handler_count; i++) {
        const struct pack_section *section = applier->handlers[i].section;
        if (section->kind == PACK_ON && annal__section_takes(section, type))
            route->handlers[route->count++] = &applier->handlers[i];
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
    const struct route *route = find_route(applier, event->type);
    if (route == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "an event '%.*s'", ANNAL_FMT(event->type));
    for (size_t i = 0; i < route->count; i++) {
        int rc = SQLITE_OK;
        annal_status status =
            run_handler(applier, route->handlers[i], session, event, NULL, &rc, err);
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
    applier->fold.begun = true; /* by the trial */
    count_event(&applier->fold, event);
    end_if_pruned(applier, event);
}

/* ---- Before an append ---- */

/* After a guard refused: its sentence, and after it why a row could not be written. */
static const char *refusal(struct applier *applier, const struct pack_section *section, bool holds)
{
    char why[sizeof applier->refused];
    memcpy(why, applier->refused, sizeof why);
    snprintf(applier->refused, sizeof applier->refused, "%.300s%s%.200s", section->guard,
             holds ? ": " : "", holds ? why : "");
    return applier->refused;
}

static annal_status try_all(struct applier *applier, annal_slice session, const annal_event *event,
                            bool own_only, const char **out_refused, bool *out_whole,
                            annal_error *err)
{
    annal_status status = ANNAL_OK;
    *out_refused = NULL;
    if (applier->outbox != NULL && annal__outbox_takes(event->type))
        *out_whole = false;
    if (applier->has_core)
        status = annal__applier_begin(applier, session, event->ts_us, err);
    for (size_t i = 0; status >= 0 && *out_refused == NULL && i < applier->handler_count; i++) {
        const struct handler *handler = &applier->handlers[i];
        const struct pack_section *section = handler->section;
        bool holds = true;
        int rc = SQLITE_OK;
        if (section->kind != PACK_ON || !annal__section_takes(section, event->type))
            continue;
        bool asked = section->guard != NULL && !(own_only && section->reads != NULL);
        status = run_handler(applier, handler, session, event, asked ? &holds : NULL, &rc, err);
        /* Without a guard it would be a finding, and is not a reason to refuse. */
        if (status >= 0 && rc != SQLITE_OK && asked)
            *out_refused = refusal(applier, section, holds);
        if (rc != SQLITE_OK)
            *out_whole = false;
    }
    return status;
}

annal_status annal__applier_try(struct applier *applier, annal_slice session,
                                const annal_event *event, const char **out_refused, bool *out_whole,
                                annal_error *err)
{
    return try_all(applier, session, event, false, out_refused, out_whole, err);
}

static bool is_guarded(const struct applier *applier, annal_slice type)
{
    for (size_t i = 0; i < applier->handler_count; i++) {
        const struct pack_section *section = applier->handlers[i].section;
        if (section->guard != NULL && annal__section_takes(section, type))
            return true;
    }
    return false;
}

annal_status annal__applier_check(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  annal_error *err)
{
    *out_refused = NULL;
    if (!is_guarded(applier, event->type))
        return ANNAL_OK;
    annal_status status = annal__db_exec(applier->db, "SAVEPOINT asked", err);
    if (status < 0)
        return status;
    bool unused = true;
    status = try_all(applier, session, event, true, out_refused, &unused, err);
    annal_status undone =
        annal__db_exec(applier->db, "ROLLBACK TO asked; RELEASE asked", status >= 0 ? err : NULL);
    return status < 0 ? status : undone;
}

/* The path of a field: $.run.id of run::id. */
static void path_of(const char *field, char *out, size_t room)
{
    size_t len = (size_t)snprintf(out, room, "$.");
    for (const char *c = field; *c != '\0' && len + 1 < room; c++) {
        out[len++] = *c == ':' ? '.' : *c;
        c += *c == ':';
    }
    out[len] = '\0';
}

/* Set data to what stmt returns for it; it returns a row only if the field is to be added. */
static annal_status put(sqlite3_stmt *stmt, const char *path, struct buf *data, annal_error *err)
{
    annal__db_bind_text(stmt, 1, annal__buf_slice(data));
    annal__db_bind_text(stmt, 2, annal_slice_of(path));
    annal_status status = ANNAL_OK;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        struct buf filled = {.limit = data->limit};
        status = annal__buf_append_slice(&filled, annal__db_column(stmt, 0));
        if (status >= 0) {
            annal__buf_done(data);
            *data = filled;
        } else {
            annal__buf_done(&filled);
            status = annal__fail(err, status, "field %s does not fit into data", path);
        }
    } else if (rc != SQLITE_DONE) {
        status = annal__db_fail(err, sqlite3_db_handle(stmt), rc, "field %s of data", path);
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return status;
}

#define FIELD_PATH_BYTES 300

/* Add what the SELECT of a fill returns, if anything. */
static annal_status fill_from(struct applier *applier, const struct handler *handler,
                              annal_slice session, const annal_event *event, struct buf *data,
                              annal_error *err)
{
    const struct statement *statement = &handler->statements[0];
    char ts[ANNAL_TIME_BYTES], path[FIELD_PATH_BYTES];
    annal_event asked = *event;
    struct spending spending = {0};
    asked.data = annal__buf_slice(data);
    annal_time_format(event->ts_us, ts);
    annal_status status = ANNAL_OK;
    int rc = annal__fields_read(handler->fields, asked.data);
    if (rc == SQLITE_OK) {
        bind_params(handler, statement, session, &asked, ts);
        annal__permit_steps(applier->db, &spending);
        rc = sqlite3_step(statement->stmt);
        annal__permit_steps(applier->db, NULL);
    }
    if (rc == SQLITE_INTERRUPT)
        status = annal__fail(err, ANNAL_ERR_LIMIT, "fill an event '%.*s': %s",
                             ANNAL_FMT(event->type), spending.why);
    else if (is_refusal(rc)) {
        annal__db_reason(applier->db, rc, applier->refused, sizeof applier->refused);
        status = annal__fail(err, ANNAL_ERR_REFUSED, "fill an event '%.*s': %.400s",
                             ANNAL_FMT(event->type), applier->refused);
    } else if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status =
            annal__db_fail(err, applier->db, rc, "fill an event '%.*s'", ANNAL_FMT(event->type));
    struct buf filled = {.limit = data->limit};
    if (status >= 0 && annal__buf_append_slice(&filled, asked.data) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "the data of an event");
    for (int i = 0; rc == SQLITE_ROW && status >= 0 && i < sqlite3_column_count(statement->stmt);
         i++) {
        sqlite3_value *value = sqlite3_column_value(statement->stmt, i);
        if (sqlite3_value_type(value) == SQLITE_NULL)
            continue;
        path_of(sqlite3_column_name(statement->stmt, i), path, sizeof path);
        sqlite3_bind_value(applier->put_field, 3, value);
        status = put(applier->put_field, path, &filled, err);
    }
    sqlite3_reset(statement->stmt);
    sqlite3_clear_bindings(statement->stmt);
    annal__fields_forget(handler->fields);
    annal__buf_done(status >= 0 ? data : &filled);
    if (status >= 0)
        *data = filled;
    return status;
}

/* Add what an existing event has in fields that data lacks. */
static annal_status fill_like(struct applier *applier, const struct handler *handler,
                              annal_slice stored, struct buf *data, annal_error *err)
{
    annal_status status = ANNAL_OK;
    sqlite3_stmt *select = handler->statements[0].stmt;
    char path[FIELD_PATH_BYTES];
    for (int i = 0; status >= 0 && i < sqlite3_column_count(select); i++) {
        path_of(sqlite3_column_name(select, i), path, sizeof path);
        annal__db_bind_text(applier->copy_field, 3, stored);
        status = put(applier->copy_field, path, data, err);
    }
    return status;
}

static annal_status prepare_fill(struct applier *applier, annal_error *err)
{
    if (applier->put_field != NULL)
        return ANNAL_OK;
    annal_status status = annal__db_prepare(
        applier->db, "SELECT json_set(?1, ?2, ?3) WHERE IFNULL(json_type(?1, ?2), 'null') = 'null'",
        &applier->put_field, err);
    if (status >= 0)
        status = annal__db_prepare(applier->db,
                                   "SELECT json_set(?1, ?2, json(?3 -> ?2)) "
                                   "WHERE IFNULL(json_type(?1, ?2), 'null') = 'null' "
                                   "AND IFNULL(json_type(?3, ?2), 'null') <> 'null'",
                                   &applier->copy_field, err);
    return status;
}

annal_status annal__applier_fill(struct applier *applier, annal_slice session,
                                 const annal_event *event, const annal_event *stored,
                                 struct buf *data, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < applier->handler_count; i++) {
        const struct handler *handler = &applier->handlers[i];
        const struct pack_section *section = handler->section;
        if (section->kind != PACK_FILL || !annal__section_takes(section, event->type))
            continue;
        status = prepare_fill(applier, err);
        if (status >= 0 && stored != NULL)
            status = fill_like(applier, handler, stored->data, data, err);
        else if (status >= 0)
            status = fill_from(applier, handler, session, event, data, err);
    }
    return status;
}

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
    for (size_t i = 0; applier->settles && i < applier->handler_count; i++) {
        const struct handler *handler = &applier->handlers[i];
        int rc = SQLITE_OK;
        if (handler->section->kind != PACK_SETTLE)
            continue;
        annal_status status = run_handler(applier, handler, session, &event, NULL, &rc, err);
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
