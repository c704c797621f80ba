/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing two states by merging their sorted tables.
 *
 * (1) Both are read in the order of state_json.c. Keys are compared as SQLite compares them with
 *     the collation BINARY: NULL, then numbers by value, then text, then blobs by bytes.
 * (2) The position of a change is the number of rows of `after` that precede it. If the changes are
 *     applied one by one, the rows before the position equal the rows of `after` when the change is
 *     applied, and all other rows equal those of `before`. So the position is correct at that
 *     moment.
 */
#include "index/db/db.h"
#include "index/state/state.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json.h"

#include <annal/diff.h>

#include <string.h>

/* ---- Comparing ---- */

static int sign(bool above, bool below)
{
    return above ? 1 : below ? -1 : 0;
}

static int compare_mixed(int64_t integer, double real)
{
    if (real < -9223372036854775808.0)
        return 1;
    if (real >= 9223372036854775808.0)
        return -1;
    int64_t whole = (int64_t)real;
    if (integer != whole)
        return sign(integer > whole, integer < whole);
    double rest = real - (double)whole;
    return sign(rest<0, rest> 0);
}

static int compare_bytes(annal_slice a, annal_slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter == 0 ? 0 : memcmp(a.ptr, b.ptr, shorter);
    return order != 0 ? order : sign(a.len > b.len, a.len < b.len);
}

/* Return the rank of a value's kind in the order of SQLite: NULL, numbers, text, blobs. */
static int class_of(const annal_value *value)
{
    return value->kind == ANNAL_VALUE_NULL   ? 0
           : value->kind == ANNAL_VALUE_TEXT ? 2
           : value->kind == ANNAL_VALUE_BLOB ? 3
                                             : 1;
}

static int compare_values(const annal_value *a, const annal_value *b)
{
    int class_a = class_of(a), class_b = class_of(b);
    if (class_a != class_b)
        return class_a - class_b;
    if (class_a == 0)
        return 0;
    if (class_a > 1)
        return compare_bytes(a->bytes, b->bytes);
    if (a->kind == ANNAL_VALUE_INTEGER && b->kind == ANNAL_VALUE_INTEGER)
        return sign(a->integer > b->integer, a->integer < b->integer);
    if (a->kind == ANNAL_VALUE_INTEGER)
        return compare_mixed(a->integer, b->real);
    if (b->kind == ANNAL_VALUE_INTEGER)
        return -compare_mixed(b->integer, a->real);
    return sign(a->real > b->real, a->real < b->real);
}

/* ---- One table of both states ---- */

/* One of the two states, with its rows of the current table. */
struct side {
    annal_state *state;
    sqlite3_stmt *stmt;
    /* values of the current row: its columns, followed by the columns of its key */
    annal_value *values;
    bool at_row;
};

struct diff {
    struct side before, after;
    annal_slice table;
    int columns;
    int keys;
    annal_slice *names;
    bool *in_key;
    bool by_rowid; /* whether the table has no primary key */
    bool *differs;
    uint64_t position;
    struct buf text[2]; /* two values as text, to be compared */
    annal_change_fn fn;
    void *arg;
    annal_error *err;
};

static annal_status step(struct diff *diff, struct side *side)
{
    int rc = sqlite3_step(side->stmt);
    side->at_row = rc == SQLITE_ROW;
    if (rc == SQLITE_DONE)
        return ANNAL_OK;
    if (rc != SQLITE_ROW)
        return annal__db_fail(diff->err, side->state->db, rc,
                              "cannot build the state of session '%s'", side->state->session);
    for (int i = 0; i < diff->columns + diff->keys; i++)
        side->values[i] = annal__db_value(side->stmt, i);
    return ANNAL_OK;
}

/* Compare the keys of the current rows. Returns a number below 0 if the row of `before` is
 * first. */
static int compare_keys(const struct diff *diff)
{
    if (!diff->before.at_row || !diff->after.at_row)
        return diff->before.at_row ? -1 : 1;
    int order = 0;
    for (int i = diff->columns; i < diff->columns + diff->keys && order == 0; i++)
        order = compare_values(&diff->before.values[i], &diff->after.values[i]);
    return order;
}

static annal_status same_value(struct diff *diff, const annal_value *a, const annal_value *b,
                               bool *out_same)
{
    *out_same = a->kind == b->kind;
    if (!*out_same || a->kind == ANNAL_VALUE_NULL)
        return ANNAL_OK;
    if (a->kind != ANNAL_VALUE_REAL) {
        *out_same = compare_values(a, b) == 0;
        return ANNAL_OK;
    }
    annal__buf_clear(&diff->text[0]);
    annal__buf_clear(&diff->text[1]);
    annal_status status = annal__state_put_value(&diff->text[0], a);
    if (status >= 0)
        status = annal__state_put_value(&diff->text[1], b);
    *out_same =
        compare_bytes(annal__buf_slice(&diff->text[0]), annal__buf_slice(&diff->text[1])) == 0;
    return status;
}

static annal_status hand_out(struct diff *diff, annal_change_kind kind)
{
    const struct side *side = kind == ANNAL_ROW_INSERTED ? &diff->after : &diff->before;
    const annal_change change = {
        .kind = kind,
        .table = diff->table,
        .column_count = (size_t)diff->columns,
        .columns = diff->names,
        .in_key = diff->in_key,
        .rowid = diff->by_rowid ? side->values[diff->columns].integer : 0,
        .differs = diff->differs,
        .before = kind == ANNAL_ROW_INSERTED ? NULL : diff->before.values,
        .after = kind == ANNAL_ROW_DELETED ? NULL : diff->after.values,
        .position = diff->position,
    };
    return (annal_status)diff->fn(diff->arg, &change);
}

static annal_status one_side_only(struct diff *diff, struct side *side, annal_change_kind kind)
{
    memset(diff->differs, true, (size_t)diff->columns * sizeof *diff->differs);
    annal_status status = hand_out(diff, kind);
    if (status == ANNAL_OK)
        status = step(diff, side);
    diff->position += kind == ANNAL_ROW_INSERTED;
    return status;
}

static annal_status both_sides(struct diff *diff)
{
    bool any = false;
    annal_status status = ANNAL_OK;
    for (int i = 0; i < diff->columns && status >= 0; i++) {
        bool same = false;
        status = same_value(diff, &diff->before.values[i], &diff->after.values[i], &same);
        diff->differs[i] = !same;
        any |= !same;
    }
    if (status < 0)
        return annal__fail(diff->err, status, "cannot compare the two given states of sessions");
    if (any)
        status = hand_out(diff, ANNAL_ROW_UPDATED);
    if (status == ANNAL_OK)
        status = step(diff, &diff->before);
    if (status == ANNAL_OK)
        status = step(diff, &diff->after);
    diff->position++;
    return status;
}

static annal_status merge(struct diff *diff)
{
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && (diff->before.at_row || diff->after.at_row)) {
        int order = compare_keys(diff);
        status = order < 0   ? one_side_only(diff, &diff->before, ANNAL_ROW_DELETED)
                 : order > 0 ? one_side_only(diff, &diff->after, ANNAL_ROW_INSERTED)
                             : both_sides(diff);
    }
    return status;
}

static void table_done(struct diff *diff)
{
    sqlite3_finalize(diff->before.stmt);
    sqlite3_finalize(diff->after.stmt);
    annal__free(diff->before.values);
    annal__free(diff->after.values);
    annal__free(diff->names);
    annal__free(diff->in_key);
    annal__free(diff->differs);
    diff->before.stmt = diff->after.stmt = NULL;
    diff->before.values = diff->after.values = NULL;
    diff->names = NULL;
    diff->in_key = diff->differs = NULL;
}

static annal_status fail_shape(struct diff *diff)
{
    return annal__fail(diff->err, ANNAL_ERR_INVALID,
                       "cannot compare the two given states: they were built with different packs");
}

static annal_status table_alloc(struct diff *diff)
{
    size_t cells = (size_t)(diff->columns + diff->keys);
    diff->before.values = annal__zalloc(cells * sizeof *diff->before.values);
    diff->after.values = annal__zalloc(cells * sizeof *diff->after.values);
    diff->names = annal__zalloc(cells * sizeof *diff->names);
    diff->in_key = annal__zalloc(cells * sizeof *diff->in_key);
    diff->differs = annal__zalloc(cells * sizeof *diff->differs);
    bool all = diff->before.values != NULL && diff->after.values != NULL && diff->names != NULL &&
               diff->in_key != NULL && diff->differs != NULL;
    return all ? ANNAL_OK
               : annal__fail(diff->err, ANNAL_ERR_NOMEM, "compare two states: out of memory");
}

/* Read the names of the columns, and which of them are in the primary key. */
static annal_status table_names(struct diff *diff)
{
    diff->by_rowid = true;
    for (int i = 0; i < diff->columns; i++) {
        diff->names[i] = annal_slice_of(sqlite3_column_name(diff->after.stmt, i));
        if (strcmp(diff->names[i].ptr, sqlite3_column_name(diff->before.stmt, i)) != 0)
            return fail_shape(diff);
        for (int key = 0; key < diff->keys && !diff->in_key[i]; key++)
            diff->in_key[i] = strcmp(sqlite3_column_name(diff->after.stmt, diff->columns + key),
                                     diff->names[i].ptr) == 0;
        diff->by_rowid &= !diff->in_key[i];
    }
    return ANNAL_OK;
}

static annal_status table_open(struct diff *diff)
{
    int keys = 0;
    annal_status status = annal__state_rows(diff->before.state->db, diff->table, &diff->before.stmt,
                                            &diff->keys, diff->err);
    if (status >= 0)
        status = annal__state_rows(diff->after.state->db, diff->table, &diff->after.stmt, &keys,
                                   diff->err);
    if (status < 0)
        return status;
    diff->columns = sqlite3_column_count(diff->before.stmt) - diff->keys;
    if (keys != diff->keys || sqlite3_column_count(diff->after.stmt) - keys != diff->columns)
        return fail_shape(diff);
    status = table_alloc(diff);
    if (status >= 0)
        status = step(diff, &diff->before);
    if (status >= 0)
        status = step(diff, &diff->after);
    return status < 0 ? status : table_names(diff);
}

static annal_status diff_table(struct diff *diff, annal_slice table)
{
    diff->table = table;
    diff->position = 0;
    annal_status status = table_open(diff);
    if (status == ANNAL_OK)
        status = merge(diff);
    table_done(diff);
    return status;
}

/* ---- All tables ---- */

/* Find the next table, which must have the same name in both states; *out_table is empty after the
 * last. */
static annal_status next_table(struct diff *diff, sqlite3_stmt *const tables[2],
                               annal_slice *out_table)
{
    const annal_state *const states[2] = {diff->before.state, diff->after.state};
    annal_slice names[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        int rc = sqlite3_step(tables[i]);
        if (rc == SQLITE_ROW)
            names[i] = annal__db_column(tables[i], 0);
        else if (rc != SQLITE_DONE)
            return annal__db_fail(diff->err, states[i]->db, rc,
                                  "cannot build the state of session '%s'", states[i]->session);
    }
    *out_table = names[0];
    return compare_bytes(names[0], names[1]) == 0 ? ANNAL_OK : fail_shape(diff);
}

static annal_status diff_tables(struct diff *diff)
{
    sqlite3_stmt *tables[2] = {NULL, NULL};
    annal_slice table = {0};
    annal_status status = annal__state_tables(diff->before.state->db, &tables[0], diff->err);
    if (status >= 0)
        status = annal__state_tables(diff->after.state->db, &tables[1], diff->err);
    if (status >= 0)
        status = next_table(diff, tables, &table);
    while (status == ANNAL_OK && table.len > 0) {
        status = diff_table(diff, table);
        if (status == ANNAL_OK)
            status = next_table(diff, tables, &table);
    }
    sqlite3_finalize(tables[0]);
    sqlite3_finalize(tables[1]);
    return status;
}

annal_status annal_state_diff(annal_state *before, annal_state *after, annal_change_fn fn,
                              void *arg, annal_error *err)
{
    struct diff diff = {
        .before.state = before, .after.state = after, .fn = fn, .arg = arg, .err = err};
    annal_status status = annal__state_settle(before, err);
    if (status >= 0)
        status = annal__state_settle(after, err);
    if (status >= 0)
        status = diff_tables(&diff);
    annal__buf_done(&diff.text[0]);
    annal__buf_done(&diff.text[1]);
    return status;
}

/* ---- The JSON patch ---- */

/* Append a name in a JSON pointer (RFC 6901) that is in a JSON string: with both kinds of
 * escapes. */
static annal_status put_name(struct buf *out, annal_slice name)
{
    SCOPED_BUF escaped = {0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < name.len && status >= 0; i++)
        status = name.ptr[i] == '~'   ? annal__buf_append(&escaped, "~0", 2)
                 : name.ptr[i] == '/' ? annal__buf_append(&escaped, "~1", 2)
                                      : annal__buf_append(&escaped, name.ptr + i, 1);
    size_t begin = out->len;
    if (status >= 0)
        status = annal__json_quote(out, annal__buf_slice(&escaped));
    if (status >= 0) { /* remove the quotes of the JSON string */
        memmove(out->ptr + begin, out->ptr + begin + 1, out->len - begin - 2);
        out->len -= 2;
    }
    return status;
}

/* Append the beginning of an operation, up to the position of the row:
 * ,{"op":"…","path":"/turns/3 */
static annal_status put_operation(struct buf *out, const char *op, const annal_change *change)
{
    annal_status status =
        annal__buf_printf(out, "%s{\"op\":\"%s\",\"path\":\"/", out->len == 0 ? "" : ",", op);
    if (status >= 0)
        status = put_name(out, change->table);
    return status < 0 ? status
                      : annal__buf_printf(out, "/%llu", (unsigned long long)change->position);
}

static annal_status put_inserted(struct buf *out, const annal_change *change)
{
    annal_status status = put_operation(out, "add", change);
    if (status >= 0)
        status = annal__buf_append(out, "\",\"value\":{", 11);
    for (size_t i = 0; i < change->column_count && status >= 0; i++) {
        status = annal__json_put(out, i > 0 ? ",?:" : "?:", change->columns[i]);
        if (status >= 0)
            status = annal__state_put_value(out, &change->after[i]);
    }
    return status < 0 ? status : annal__buf_append(out, "}}", 2);
}

static annal_status put_updated(struct buf *out, const annal_change *change)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < change->column_count && status >= 0; i++) {
        if (!change->differs[i])
            continue;
        status = put_operation(out, "replace", change);
        if (status >= 0)
            status = annal__buf_append(out, "/", 1);
        if (status >= 0)
            status = put_name(out, change->columns[i]);
        if (status >= 0)
            status = annal__buf_append(out, "\",\"value\":", 10);
        if (status >= 0)
            status = annal__state_put_value(out, &change->after[i]);
        if (status >= 0)
            status = annal__buf_append(out, "}", 1);
    }
    return status;
}

static annal_status put_deleted(struct buf *out, const annal_change *change)
{
    annal_status status = put_operation(out, "remove", change);
    return status < 0 ? status : annal__buf_append(out, "\"}", 2);
}

struct patch {
    struct sink sink;
    struct buf operations; /* operations of one change */
    bool begun;
    annal_error *err;
};

static int add_change(void *arg, const annal_change *change)
{
    struct patch *patch = arg;
    annal__buf_clear(&patch->operations);
    annal_status status =
        change->kind == ANNAL_ROW_INSERTED  ? put_inserted(&patch->operations, change)
        : change->kind == ANNAL_ROW_UPDATED ? put_updated(&patch->operations, change)
                                            : put_deleted(&patch->operations, change);
    if (status >= 0)
        status = annal__buf_append(&patch->sink.buf, patch->begun ? "," : "[", 1);
    if (status >= 0)
        status = annal__buf_append_slice(&patch->sink.buf, annal__buf_slice(&patch->operations));
    patch->begun = true;
    if (status < 0)
        return annal__fail(patch->err, status,
                           "cannot write the difference of two states as a patch");
    return annal__state_sink_flush(&patch->sink, SINK_BYTES);
}

annal_status annal_state_patch(annal_state *before, annal_state *after, annal_write_fn fn,
                               void *arg, annal_error *err)
{
    struct patch patch = {.sink = {.fn = fn, .arg = arg}, .err = err};
    annal_status status = annal_state_diff(before, after, add_change, &patch, err);
    if (status == ANNAL_OK &&
        annal__buf_append(&patch.sink.buf, patch.begun ? "]" : "[]", patch.begun ? 1 : 2) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM,
                             "write the difference of two states as a patch: out of memory");
    if (status == ANNAL_OK)
        status = (annal_status)annal__state_sink_flush(&patch.sink, 0);
    annal__buf_done(&patch.sink.buf);
    annal__buf_done(&patch.operations);
    return status;
}
