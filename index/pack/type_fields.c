/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what does not fit the fields of known types: type_fields.sql says how. */
#include "index/sys/type_fields.h"

#include "index/db/db.h"
#include "index/index.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/sys/draft.h"

#define TEXT(number)    TEXT_OF(number)
#define TEXT_OF(number) #number

extern const char annal__sql_type_fields[];
extern const char annal__sql_type_fields_json[];

/* Compose a query over the faults of the events that `drafts` selects. */
static annal_status type_fields_query(struct buf *out, const char *drafts, const char *wanted,
                                      annal_error *err)
{
    annal_status status =
        annal__buf_printf(out, "WITH draft(session_id, seq, type, data) AS (%s), %s %s", drafts,
                          annal__sql_type_fields, wanted);
    return status < 0 ? annal__fail(err, status, "compose a query over fields") : ANNAL_OK;
}

static annal_status type_fields_check_draft(sqlite3_stmt *stmt, annal_slice session,
                                            const annal_draft *draft, annal_error *err)
{
    annal_slice json = {0};
    annal_status status = annal__draft_json(draft, &json, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, annal_slice_of(annal__sql_type_fields_json));
    annal__db_bind_text(stmt, 2, draft->type);
    annal__db_bind_text(stmt, 3, json);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        status = annal__fail(err, ANNAL_ERR_INVALID,
                             "append to session '%.*s': refused, because of strict: %.*s: %.*s",
                             ANNAL_FMT(session), ANNAL_FMT(draft->type),
                             ANNAL_FMT(annal__db_column(stmt, 0)));
    else if (rc != SQLITE_DONE)
        status =
            annal__db_fail(err, sqlite3_db_handle(stmt), rc,
                           "append to session '%.*s': cannot check the fields", ANNAL_FMT(session));
    sqlite3_reset(stmt);
    annal_free(json.ptr);
    return status;
}

/* Prepare the statement that checks a draft, on a connection of its own. */
static annal_status type_fields_prepare(sqlite3_stmt **out_stmt, annal_error *err)
{
    sqlite3 *db = NULL;
    SCOPED_BUF sql = {0};
    annal_status status =
        annal__db_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, &db, err);
    if (status >= 0)
        status = type_fields_query(&sql, "SELECT '', 0, ?2, ?3", "SELECT what FROM fault", err);
    if (status >= 0)
        status = annal__db_prepare(db, sql.ptr, out_stmt, err);
    if (status < 0)
        annal__db_close(db);
    return status;
}

static void type_fields_free(sqlite3_stmt *stmt)
{
    sqlite3 *db = stmt == NULL ? NULL : sqlite3_db_handle(stmt);
    sqlite3_finalize(stmt);
    annal__db_close(db);
}

void annal__type_fields_done(annal_index *index)
{
    type_fields_free(atomic_exchange(&index->strict, NULL));
}

annal_status annal__type_fields_check(annal_index *index, annal_slice session,
                                      const annal_draft *drafts, size_t count, annal_error *err)
{
    sqlite3_stmt *stmt = atomic_exchange(&index->strict, NULL);
    annal_status status = stmt == NULL ? type_fields_prepare(&stmt, err) : ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < count; i++)
        status = type_fields_check_draft(stmt, session, &drafts[i], err);
    type_fields_free(atomic_exchange(&index->strict, stmt)); /* that another thread put there */
    return status;
}

annal_status annal__type_fields_each(annal_index *index, annal_row_fn fn, void *arg,
                                     annal_error *err)
{
    static const char newest[] =
        "SELECT e.session_id, e.seq, e.type, e.data FROM (SELECT session_id, seq FROM event_index"
        " ORDER BY timestamp DESC LIMIT " TEXT(
            TYPE_FIELDS_EVENTS_MAX) ") n"
                                    " JOIN events e ON e.session_id = n.session_id AND e.seq = "
                                    "n.seq";
    SCOPED_BUF sql = {0};
    const annal_value fields = {.kind = ANNAL_VALUE_TEXT,
                                .bytes = annal_slice_of(annal__sql_type_fields_json)};
    annal_status status = type_fields_query(
        &sql, newest,
        "SELECT type, what, count(*), min(session_id || ':' || seq) FROM fault GROUP BY 1, 2"
        " ORDER BY 3 DESC, 1, 2",
        err);
    return status < 0 ? status
                      : annal_index_sql(index, annal__buf_slice(&sql),
                                        &(annal_sql_options){.params = &fields, .param_count = 1},
                                        fn, arg, err);
}
