/* SPDX-License-Identifier: Apache-2.0 */
/* Fills: the values that packs add to the data of an event before it is appended. */
#include "index/pack/applier_parts.h"

#include "index/db/db.h"
#include "index/pack/permit.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <stdio.h>

/* Write the JSON path of a field: $.run.id for run::id. */
static void path_of(const char *field, char *out, size_t room)
{
    size_t len = (size_t)snprintf(out, room, "$.");
    for (const char *c = field; *c != '\0' && len + 1 < room; c++) {
        out[len++] = *c == ':' ? '.' : *c;
        c += *c == ':';
    }
    out[len] = '\0';
}

/* Run stmt, which adds the field at path to data, and set data to its result. stmt returns no row,
 * and data is unchanged, if the field must not be added. */
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
            status = annal__fail(err, status,
                                 "fill an event: the data is too large with the field %s", path);
        }
    } else if (rc != SQLITE_DONE) {
        status = annal__db_fail(err, sqlite3_db_handle(stmt), rc,
                                "fill an event: cannot write the field %s of the data", path);
    }
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return status;
}

#define FIELD_PATH_BYTES 300

/* Add the columns of a fill's SELECT to data, if it returns a row. */
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
    annal__pack_members_read(&applier->members, asked.data);
    int rc = annal__pack_fields_read(handler->fields, &applier->members);
    if (rc == SQLITE_OK) {
        annal__handler_bind(handler, statement, session, &asked, ts);
        annal__permit_steps(applier->db, &spending);
        rc = sqlite3_step(statement->stmt);
        annal__permit_steps(applier->db, NULL);
    }
    if (rc == SQLITE_INTERRUPT)
        status = annal__fail(err, ANNAL_ERR_LIMIT, "fill an event '%.*s': %s",
                             ANNAL_FMT(event->type), spending.why);
    else if (annal__handler_is_refusal(rc)) {
        annal__db_reason(applier->db, rc, applier->refused, sizeof applier->refused);
        status = annal__fail(err, ANNAL_ERR_REFUSED, "fill an event '%.*s': %.400s",
                             ANNAL_FMT(event->type), applier->refused);
    } else if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = annal__db_fail(err, applier->db, rc, "cannot fill an event '%.*s'",
                                ANNAL_FMT(event->type));
    struct buf filled = {.limit = data->limit};
    if (status >= 0 && annal__buf_append_slice(&filled, asked.data) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "fill the data of an event: out of memory");
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
    annal__pack_fields_forget(handler->fields);
    annal__buf_done(status >= 0 ? data : &filled);
    if (status >= 0)
        *data = filled;
    return status;
}

/* Add the fields of this fill that data lacks, with their values from stored, the data of an
 * existing event. */
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
        if (section->kind != PACK_FILL || !annal__pack_section_takes(section, event->type))
            continue;
        status = prepare_fill(applier, err);
        if (status >= 0 && stored != NULL)
            status = fill_like(applier, handler, stored->data, data, err);
        else if (status >= 0)
            status = fill_from(applier, handler, session, event, data, err);
    }
    return status;
}
