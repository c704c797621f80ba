/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/record_owner.h"

#include "index/db/db.h"
#include "index/index.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"

struct annal__records {
    annal_index *index;
    sqlite3 *db; /* borrowed connection, in a transaction */
    sqlite3_stmt *find;
};

/* Read the first column of the row that the statement returns; *out is empty if there is no row. */
static annal_status ask(annal__records *records, sqlite3_stmt *stmt, annal_slice *out,
                        annal_error *err)
{
    int rc = sqlite3_step(stmt);
    *out = rc == SQLITE_ROW ? annal__db_column(stmt, 0) : (annal_slice){0};
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return ANNAL_OK;
    annal_status status = annal__db_fail(err, records->db, rc, "cannot read the database '%s'",
                                         records->index->derived.path);
    if (status == ANNAL_ERR_CORRUPT)
        (void)annal__derived_heal(&records->index->derived);
    return status;
}

/* Open the snapshot of the table. If the table is empty, records->find stays NULL, and every owner
 * is empty. */
static annal_status begin(annal__records *records, annal_error *err)
{
    static const char find[] = "SELECT session_id FROM record_origins WHERE origin = ?1"
                               " ORDER BY session_id <> ?2, session_id LIMIT 1";
    sqlite3_stmt *any = NULL;
    annal_slice found = {0};
    annal_status status =
        annal__reader_borrow(records->index, NULL, 0, true, 0, &records->db, NULL, err);
    if (status >= 0)
        status = annal__db_begin(records->db, err);
    if (status >= 0)
        status =
            annal__readers_prepare(records->db, "SELECT 1 FROM record_origins LIMIT 1", &any, err);
    if (status >= 0)
        status = ask(records, any, &found, err);
    if (status >= 0 && found.len > 0)
        status = annal__readers_prepare(records->db, find, &records->find, err);
    sqlite3_reset(any);
    return status;
}

annal_status annal__record_owner_open(annal_index *index, annal__records **out_records,
                                      annal_error *err)
{
    annal__records *records = annal__zalloc(sizeof *records);
    if (records == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "look for records in '%s': out of memory",
                           index->derived.path);
    records->index = index;
    annal_status status = begin(records, err);
    if (status < 0) {
        annal__record_owner_close(records);
        return status;
    }
    *out_records = records;
    return ANNAL_OK;
}

annal_status annal__record_owner_find(annal__records *records, annal_slice origin,
                                      annal_slice session, annal_slice *out_owner, annal_error *err)
{
    *out_owner = (annal_slice){0};
    if (records->find == NULL)
        return ANNAL_OK;
    sqlite3_reset(records->find);
    annal__db_bind_text(records->find, 1, origin);
    annal__db_bind_text(records->find, 2, session);
    return ask(records, records->find, out_owner, err);
}

void annal__record_owner_close(annal__records *records)
{
    if (records == NULL)
        return;
    sqlite3_reset(records->find);
    annal__derived_give(&records->index->derived, records->db, true);
    annal__free(records);
}
