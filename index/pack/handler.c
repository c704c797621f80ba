/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling the sections of packs, and running them.
 *
 * A parameter is looked up once, when its statement is compiled: it is a member of the event, such
 * as :seq, or a field of its data. The fields that the statements of a section use are found in one
 * pass over the data (pack_fields.c), before the first statement runs.
 */
#include "index/pack/handler.h"

#include "index/db/db.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <string.h>

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
 * Return the index of name in fields, a list of names that each end with a NUL; a new name is
 * added.
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

/* Read the list after `when` of a section: names of fields, some with = and a text. */
static annal_status compile_conditions(struct handler *handler, struct buf *fields)
{
    const char *at = handler->section->when == NULL ? "" : handler->section->when;
    annal_status status = ANNAL_OK;
    for (; status >= 0 && *at != '\0'; at += strlen(at) + 1) {
        struct condition *condition = annal__array_add(
            &handler->conditions, &handler->condition_count, sizeof *handler->conditions);
        if (condition == NULL)
            return ANNAL_ERR_NOMEM;
        size_t name = strcspn(at, "=");
        condition->text = annal_slice_of(at[name] == '=' ? at + name + 1 : "");
        char *field = annal__strndup(at + 1, name - 1);
        if (field == NULL)
            return ANNAL_ERR_NOMEM;
        condition->field = field_place(fields, field, &status);
        annal__free(field);
    }
    return status;
}

static annal_status bind_plan(const annal_pack *pack, const struct pack_section *source,
                              struct statement *statement, struct buf *fields, annal_error *err)
{
    statement->param_count = sqlite3_bind_parameter_count(statement->stmt);
    statement->params =
        annal__zalloc((size_t)(statement->param_count + 1) * sizeof *statement->params);
    if (statement->params == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "prepare pack '%s': out of memory", pack->file);
    for (int i = 0; i < statement->param_count; i++) {
        const char *name = sqlite3_bind_parameter_name(statement->stmt, i + 1);
        struct param *param = &statement->params[i];
        annal_status status = ANNAL_OK;
        if ((source->kind == PACK_FORGET || source->kind == PACK_SETTLE) &&
            (name == NULL || strcmp(name, ":session") != 0))
            return annal__fail(
                err, ANNAL_ERR_SQL, "%s:%u: a section '-- %s' has no parameter except :session",
                pack->file, source->line, source->kind == PACK_FORGET ? "forget" : "settle");
        if (name != NULL && name[0] == '$' && strpbrk(name, "('\"") == NULL) {
            param->source = FIELD;
            param->field = field_place(fields, name + 1, &status);
        } else if (name == NULL || envelope_source(name, &param->source) < 0) {
            return annal__fail(err, ANNAL_ERR_SQL,
                               "%s:%u: unknown parameter '%s': use $field or one of :session :seq "
                               ":ts :type :id :cause :data",
                               pack->file, source->line, name == NULL ? "?" : name);
        }
        if (status < 0)
            return annal__fail(err, status, "cannot prepare the sections of pack '%s'", pack->file);
    }
    return ANNAL_OK;
}

/*
 * Check the number of statements: none for an artifact section, one SELECT for a fill, at least one
 * for the others.
 */
static annal_status check_count(const struct handler *handler, const annal_pack *pack,
                                annal_error *err)
{
    const struct pack_section *section = handler->section;
    unsigned line = section->line - 1;
    if (section->kind == PACK_ARTIFACT)
        return handler->count == 0 ? ANNAL_OK
                                   : annal__fail(err, ANNAL_ERR_INVALID,
                                                 "%s:%u: a section '-- artifact' has no statement",
                                                 pack->file, line);
    if (handler->count == 0)
        return annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: this section needs a statement",
                           pack->file, line);
    sqlite3_stmt *first = handler->statements[0].stmt;
    if (section->kind == PACK_FILL &&
        (handler->count > 1 || sqlite3_column_count(first) == 0 || !sqlite3_stmt_readonly(first)))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "%s:%u: a section '-- fill' needs exactly one SELECT", pack->file, line);
    for (int i = 0; section->kind == PACK_FILL && i < sqlite3_column_count(first); i++) {
        const char *name = sqlite3_column_name(first, i);
        if (!annal__pack_is_field(annal_slice_of(name)))
            return annal__fail(
                err, ANNAL_ERR_INVALID,
                "%s:%u: column '%s' of a fill is not a valid name of a field of data", pack->file,
                line, name);
    }
    return ANNAL_OK;
}

annal_status annal__handler_compile(struct handler *handler, const annal_pack *pack,
                                    const struct pack_section *source, sqlite3 *db,
                                    annal_error *err)
{
    SCOPED_BUF fields = {0};
    const char *at = source->sql;
    annal_status status = ANNAL_OK;
    handler->section = source;
    handler->built_in = annal__builtin_pack(pack->name) != NULL;
    for (;;) {
        sqlite3_stmt *stmt = NULL;
        status = annal__pack_next_statement(pack, source, &at, db, &stmt, err);
        if (status < 0 || stmt == NULL)
            break;
        struct statement *grown =
            annal__realloc_array(handler->statements, handler->count + 1, sizeof *grown);
        if (grown == NULL) {
            sqlite3_finalize(stmt);
            status =
                annal__fail(err, ANNAL_ERR_NOMEM, "prepare pack '%s': out of memory", pack->file);
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
    if (status >= 0 && compile_conditions(handler, &fields) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "prepare pack '%s': out of memory", pack->file);
    if (status >= 0)
        status = annal__pack_fields_new(db, annal__buf_slice(&fields), &handler->fields, err);
    return status;
}

void annal__handler_done(struct handler *handler)
{
    for (size_t i = 0; i < handler->count; i++) {
        sqlite3_finalize(handler->statements[i].stmt);
        annal__free(handler->statements[i].params);
    }
    annal__free(handler->statements);
    annal__free(handler->conditions);
    annal__pack_fields_free(handler->fields);
}

/* ---- Running ---- */

static void bind_optional(sqlite3_stmt *stmt, int at, annal_slice text)
{
    if (text.len == 0)
        sqlite3_bind_null(stmt, at);
    else
        annal__db_bind_text(stmt, at, text);
}

void annal__handler_bind(const struct handler *handler, const struct statement *statement,
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
            annal__pack_fields_bind(handler->fields, param->field, stmt, i + 1);
            break;
        }
    }
}

bool annal__handler_is_refusal(int rc)
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

/* Return whether the guard allows the event. The first statement of the guard's section was run;
 * gave_row: whether it returned a row. */
static bool guard_holds(const struct handler *handler, bool gave_row)
{
    sqlite3_stmt *first = handler->statements[0].stmt;
    return handler->asks ? gave_row : sqlite3_changes(sqlite3_db_handle(first)) > 0;
}

bool annal__handler_wants(const struct handler *handler)
{
    for (size_t i = 0; i < handler->condition_count; i++) {
        const struct condition *condition = &handler->conditions[i];
        if (annal__pack_fields_is(handler->fields, condition->field, condition->text))
            return true;
    }
    return handler->condition_count == 0;
}

size_t annal__handler_first(const struct handler *handler, bool asked)
{
    return handler->asks && !asked ? 1 : 0;
}

int annal__handler_run(const struct handler *handler, annal_slice session, const annal_event *event,
                       bool *out_holds)
{
    char ts[ANNAL_TIME_BYTES];
    int rc = SQLITE_OK;
    annal_time_format(event->ts_us, ts);
    size_t i = annal__handler_first(handler, out_holds != NULL);
    for (; i < handler->count && (rc == SQLITE_OK || rc == SQLITE_DONE); i++) {
        sqlite3_stmt *stmt = handler->statements[i].stmt;
        bool gave_row = false;
        annal__handler_bind(handler, &handler->statements[i], session, event, ts);
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
