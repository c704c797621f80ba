/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state as JSON: the same bytes for the same rows.
 *
 * (1) Tables are printed in the order in which the packs create them; tables that begin with _ are
 *     skipped.
 * (2) The rows of a table are sorted by primary key, compared as bytes; without a primary key, by
 *     rowid.
 *
 * state_diff.c compares two states in this order, and its JSON patch addresses rows by their
 * position in it.
 */
#include "index/db/db.h"
#include "index/state/state.h"
#include "index/sys/state.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hex.h"
#include "journal/base/json.h"
#include "journal/base/sha256.h"

#include <math.h>
#include <string.h>

/*
 * Append a real as SQLite prints it, because printf() of the C library depends on the locale. The
 * value is never a NaN, which SQLite does not store.
 */
static annal_status put_real(struct buf *out, double real)
{
    if (isinf(real))
        return annal__buf_printf(out, "%s1e999", real < 0 ? "-" : "");
    char text[40];
    sqlite3_snprintf((int)sizeof text, text, "%!.15g", real);
    return annal__buf_printf(out, "%s", text);
}

static annal_status put_integer(struct buf *out, int64_t integer)
{
    char text[24], *at = text + sizeof text;
    uint64_t rest = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (integer < 0)
        *--at = '-';
    return annal__buf_append(out, at, (size_t)(text + sizeof text - at));
}

annal_status annal__state_put_value(struct buf *out, const annal_value *value)
{
    switch (value->kind) {
    case ANNAL_VALUE_INTEGER:
        return put_integer(out, value->integer);
    case ANNAL_VALUE_REAL:
        return put_real(out, value->real);
    case ANNAL_VALUE_TEXT:
        return annal__json_quote(out, value->bytes);
    case ANNAL_VALUE_BLOB:
        return annal__hex_quote(out, value->bytes);
    default:
        return annal__buf_append(out, "null", 4);
    }
}

/*
 * Write the texts before the values of a row, which are the same for all rows of a table: `{"id":`,
 * `,"status":`, each followed by a NUL.
 */
static annal_status put_keys(struct buf *keys, sqlite3_stmt *stmt, int columns)
{
    annal_status status = ANNAL_OK;
    for (int i = 0; status >= 0 && i < columns; i++) {
        annal__buf_append(keys, i == 0 ? "{" : ",", 1);
        annal__json_quote(keys, annal_slice_of(sqlite3_column_name(stmt, i)));
        status = annal__buf_append(keys, ":", 2);
    }
    return status;
}

static annal_status put_row(struct buf *out, sqlite3_stmt *stmt, int columns,
                            const struct buf *keys)
{
    annal_status status = ANNAL_OK;
    const char *key = keys->ptr;
    for (int i = 0; status >= 0 && i < columns; i++) {
        const annal_value value = annal__db_value(stmt, i);
        size_t len = strlen(key);
        status = annal__buf_append(out, key, len);
        if (status >= 0)
            status = annal__state_put_value(out, &value);
        key += len + 1;
    }
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}

/*
 * Prepare a SELECT of the rows in order (rule 2): the columns of the table, followed by the columns
 * of the order.
 */
annal_status annal__state_rows(sqlite3 *db, annal_slice table, sqlite3_stmt **out_stmt,
                               int *out_keys, annal_error *err)
{
    sqlite3_stmt *keys = NULL;
    int count = 0, name_bytes = (int)table.len;
    sqlite3_str *columns = sqlite3_str_new(db), *order = sqlite3_str_new(db);
    annal_status status = annal__db_prepare(
        db, "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk", &keys, err);
    if (status >= 0) {
        annal__db_bind_text(keys, 1, table);
        for (; sqlite3_step(keys) == SQLITE_ROW; count++) {
            const unsigned char *name = sqlite3_column_text(keys, 0);
            sqlite3_str_appendf(columns, ", \"%w\"", name);
            sqlite3_str_appendf(order, "%s\"%w\" COLLATE BINARY", count == 0 ? "" : ", ", name);
        }
    }
    sqlite3_finalize(keys);
    char *columns_text = sqlite3_str_finish(columns), *order_text = sqlite3_str_finish(order);
    char *text = count == 0 ? sqlite3_mprintf("SELECT *, rowid FROM \"%.*w\" ORDER BY rowid",
                                              name_bytes, table.ptr)
                            : sqlite3_mprintf("SELECT *%s FROM \"%.*w\" ORDER BY %s", columns_text,
                                              name_bytes, table.ptr, order_text);
    if (status >= 0 && (text == NULL || (count > 0 && (!columns_text || !order_text))))
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read the rows of a table: out of memory");
    if (status >= 0)
        status = annal__db_prepare(db, text, out_stmt, err);
    if (status >= 0)
        *out_keys = count == 0 ? 1 : count;
    sqlite3_free(text);
    sqlite3_free(order_text);
    sqlite3_free(columns_text);
    return status;
}

annal_status annal__state_tables(sqlite3 *db, sqlite3_stmt **out_stmt, annal_error *err)
{
    return annal__db_prepare(db,
                             "SELECT name FROM sqlite_schema WHERE type = 'table'"
                             " AND name NOT GLOB '_*' ORDER BY rowid",
                             out_stmt, err);
}

int annal__state_sink_flush(struct sink *sink, size_t unless_below)
{
    if (sink->buf.len < unless_below || sink->buf.len == 0)
        return 0;
    int verdict = sink->fn(sink->arg, sink->buf.ptr, sink->buf.len);
    annal__buf_clear(&sink->buf);
    return verdict;
}

static annal_status write_rows(annal_state *state, sqlite3_stmt *stmt, int columns,
                               struct sink *sink, annal_error *err)
{
    SCOPED_BUF keys = {0};
    int verdict = 0, rc = SQLITE_ROW;
    annal_status status = put_keys(&keys, stmt, columns);
    for (bool first = true; status >= 0 && verdict == 0; first = false) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        status = annal__buf_append(&sink->buf, ",", first ? 0 : 1);
        if (status >= 0)
            status = put_row(&sink->buf, stmt, columns, &keys);
        if (status >= 0)
            verdict = annal__state_sink_flush(sink, SINK_BYTES);
    }
    if (status < 0)
        annal__fail(err, status, "cannot write the state of session '%s' as JSON", state->session);
    else if (verdict == 0 && rc != SQLITE_DONE)
        status = annal__db_fail(err, state->db, rc, "cannot build the state of session '%s'",
                                state->session);
    return verdict != 0 ? (annal_status)verdict : status;
}

static annal_status write_table(annal_state *state, annal_slice table, struct sink *sink,
                                annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int keys = 0;
    annal_status status = annal__json_put(&sink->buf, "?:[", table);
    if (status >= 0)
        status = annal__state_rows(state->db, table, &stmt, &keys, err);
    if (status >= 0)
        status = write_rows(state, stmt, sqlite3_column_count(stmt) - keys, sink, err);
    sqlite3_finalize(stmt);
    return status != ANNAL_OK ? status : annal__buf_append(&sink->buf, "]", 1);
}

static annal_status write_tables(annal_state *state, struct sink *sink, annal_error *err)
{
    sqlite3_stmt *tables = NULL;
    annal_status status = annal__state_tables(state->db, &tables, err);
    if (status >= 0)
        status = annal__buf_append(&sink->buf, "{", 1);
    int rc = SQLITE_DONE;
    for (bool first = true; status == ANNAL_OK; first = false) {
        rc = sqlite3_step(tables);
        if (rc != SQLITE_ROW)
            break;
        if (!first)
            status = annal__buf_append(&sink->buf, ",", 1);
        if (status >= 0)
            status = write_table(state, annal__db_column(tables, 0), sink, err);
    }
    if (status == ANNAL_OK && rc != SQLITE_DONE)
        status = annal__db_fail(err, state->db, rc, "cannot build the state of session '%s'",
                                state->session);
    if (status == ANNAL_OK)
        status = annal__buf_append(&sink->buf, "}", 1);
    if (status == ANNAL_OK)
        status = (annal_status)annal__state_sink_flush(sink, 0);
    sqlite3_finalize(tables);
    return status;
}

annal_status annal_state_json(annal_state *state, annal_write_fn fn, void *arg, annal_error *err)
{
    struct sink sink = {.fn = fn, .arg = arg};
    annal_status status = annal__state_settle(state, err);
    if (status >= 0)
        status = write_tables(state, &sink, err);
    annal__buf_done(&sink.buf);
    return annal__state_vfs_why(state->pages, status, err);
}

static int hash_add(void *arg, const char *bytes, size_t len)
{
    annal__sha256_add(arg, bytes, len);
    return 0;
}

annal_status annal_state_hash(annal_state *state, uint8_t out[ANNAL_STATE_HASH_BYTES],
                              annal_error *err)
{
    _Static_assert(ANNAL_STATE_HASH_BYTES == SHA256_BYTES, "one of the two is the other");
    struct sha256 *sha256 = annal__sha256_begin();
    if (sha256 == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM,
                           "compute the hash of the state of session '%s': out of memory",
                           state->session);
    annal_status status = annal_state_json(state, hash_add, sha256, err);
    annal__sha256_end(sha256, status < 0 ? NULL : out);
    return status;
}

annal_status annal__state_value_json(const annal_value *value, annal_write_fn fn, void *arg,
                                     annal_error *err)
{
    struct sink sink = {.fn = fn, .arg = arg};
    annal_status status = annal__state_put_value(&sink.buf, value);
    if (status < 0)
        annal__fail(err, status, "cannot write a value as JSON");
    else
        status = (annal_status)annal__state_sink_flush(&sink, 0);
    annal__buf_done(&sink.buf);
    return status;
}
