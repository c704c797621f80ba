/* A state as JSON: the same bytes for the same rows. */
#include "index/database.h"
#include "index/state.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"

#include <math.h>

/* SQLite's own digits: the C library's depend on the locale. A NaN is never stored. */
static annal_status put_real(struct buf *out, double real)
{
    if (isinf(real))
        return annal__buf_printf(out, "%s1e999", real < 0 ? "-" : "");
    char text[40];
    sqlite3_snprintf((int)sizeof text, text, "%!.15g", real);
    return annal__buf_printf(out, "%s", text);
}

static annal_status put_blob(struct buf *out, annal_slice blob)
{
    annal_status status = annal__buf_append(out, "\"", 1);
    for (size_t i = 0; status >= 0 && i < blob.len; i++)
        status = annal__buf_printf(out, "%02x", (unsigned)(unsigned char)blob.ptr[i]);
    return status < 0 ? status : annal__buf_append(out, "\"", 1);
}

annal_status annal__state_put_value(struct buf *out, sqlite3_stmt *stmt, int column)
{
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        return annal__buf_printf(out, "%lld", (long long)sqlite3_column_int64(stmt, column));
    case SQLITE_FLOAT:
        return put_real(out, sqlite3_column_double(stmt, column));
    case SQLITE_TEXT:
        return annal__json_quote(out, annal__db_column(stmt, column));
    case SQLITE_BLOB:
        return put_blob(out, annal__db_column(stmt, column));
    default:
        return annal__buf_append(out, "null", 4);
    }
}

static annal_status put_row(struct buf *out, sqlite3_stmt *stmt, bool first)
{
    annal_status status = annal__buf_append(out, first ? "{" : ",{", first ? 1 : 2);
    for (int i = 0; status >= 0 && i < sqlite3_column_count(stmt); i++) {
        if (i > 0)
            status = annal__buf_append(out, ",", 1);
        if (status >= 0)
            status = annal__json_quote(out, annal_slice_of(sqlite3_column_name(stmt, i)));
        if (status >= 0)
            status = annal__buf_append(out, ":", 1);
        if (status >= 0)
            status = annal__state_put_value(out, stmt, i);
    }
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}

/* SELECT * FROM table, by primary key; a table without one, by rowid. */
static annal_status prepare_rows(sqlite3 *db, annal_slice table, sqlite3_stmt **out_stmt,
                                 annal_error *err)
{
    sqlite3_stmt *keys = NULL;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "SELECT * FROM \"%.*w\" ORDER BY ", (int)table.len, table.ptr);
    annal_status status = annal__db_prepare(
        db, "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk", &keys, err);
    int count = 0;
    if (status >= 0) {
        annal__db_bind_text(keys, 1, table);
        for (; sqlite3_step(keys) == SQLITE_ROW; count++)
            sqlite3_str_appendf(sql, "%s\"%w\"", count == 0 ? "" : ", ",
                                sqlite3_column_text(keys, 0));
    }
    sqlite3_str_appendf(sql, "%s", count == 0 ? "rowid" : "");
    sqlite3_finalize(keys);
    char *text = sqlite3_str_finish(sql);
    if (status >= 0)
        status = text == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "the rows of a table")
                              : annal__db_prepare(db, text, out_stmt, err);
    sqlite3_free(text);
    return status;
}

/* What is handed out: a buffer is passed on when it has grown enough. */
struct sink {
    annal_write_fn fn;
    void *arg;
    struct buf buf;
};

#define SINK_BYTES 65536

static int sink_flush(struct sink *sink, size_t unless_below)
{
    if (sink->buf.len < unless_below || sink->buf.len == 0)
        return 0;
    int verdict = sink->fn(sink->arg, sink->buf.ptr, sink->buf.len);
    annal__buf_clear(&sink->buf);
    return verdict;
}

static annal_status write_table(annal_state *state, annal_slice table, struct sink *sink,
                                annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__json_quote(&sink->buf, table);
    if (status >= 0)
        status = annal__buf_append(&sink->buf, ":[", 2);
    if (status < 0)
        return annal__fail(err, status, "state of session '%s' as JSON", state->session);
    status = prepare_rows(state->db, table, &stmt, err);
    int rc = SQLITE_DONE;
    for (bool first = true; status == ANNAL_OK; first = false) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        status = put_row(&sink->buf, stmt, first);
        if (status < 0)
            annal__fail(err, status, "state of session '%s' as JSON", state->session);
        else
            status = (annal_status)sink_flush(sink, SINK_BYTES);
    }
    if (status == ANNAL_OK && rc != SQLITE_DONE)
        status = annal__db_fail(err, state->db, rc, "state of session '%s'", state->session);
    sqlite3_finalize(stmt);
    return status != ANNAL_OK ? status : annal__buf_append(&sink->buf, "]", 1);
}

static annal_status write_tables(annal_state *state, struct sink *sink, annal_error *err)
{
    sqlite3_stmt *tables = NULL;
    annal_status status = annal__db_prepare(
        state->db,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB '_*' "
        "ORDER BY rowid",
        &tables, err);
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
        status = annal__db_fail(err, state->db, rc, "state of session '%s'", state->session);
    if (status == ANNAL_OK)
        status = annal__buf_append(&sink->buf, "}", 1);
    if (status == ANNAL_OK)
        status = (annal_status)sink_flush(sink, 0);
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
    return status;
}
