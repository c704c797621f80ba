/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/ship_pack_tables.h"

#include "index/sys/pack_rows.h"
#include "index/sys/view.h"
#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/hex.h"
#include "journal/base/json.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/rows.h"
#include "tools/ship/postgres.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    PAGE = 500,
    TABLES_MAX = 1000,
    PAUSES = 3,
    AGAIN_MS = 250,
    PAUSE_MS = 1000,
    PAUSE_MS_MAX = 30000
};

#define LOOK_US INT64_C(60000000)
/* maximum size of the rows of several sessions sent together */
#define ROWS_BYTES     ((size_t)8 << 20)
#define ROWS_BYTES_MAX ((size_t)64 << 20) /* maximum size of the rows of one session */

/* A session, and the event up to which its local rows are complete. */
struct position {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t seq, h;
};

struct pack_table {
    char *name, *quoted;
    char id[16]; /* number that the target gave the table */
    /* SELECT of the rows of the sessions in the JSON array ?1; first column: index of the session
     * in the array */
    struct buf sql;
};

/* The pack whose rows are being sent. */
struct pack {
    const struct annal__pack_rows *rows;
    char version[24], made[64];
    struct pack_table tables[TABLES_MAX];
    size_t table_count;
    struct position page[PAGE];
    size_t page_count;
};

struct sending {
    const struct ship_options *options;
    annal_index *index;
    annal__view *view;
    struct ship_target *target;
    struct pack *pack;
    annal_error err;
    bool is_reported; /* whether the packs that are left out were printed */
    /* number of transactions in each pack database at the last check; until look_us, nothing is
     * sent while these numbers are the same */
    struct buf stamps;
    int64_t look_us;
    /* results of a pass; left_out counts packs, and sessions with too many rows */
    uint64_t sessions, rows, behind, other, left_out;
};

static annal_status ask(struct sending *sending, const char *sql, const annal_value *params,
                        size_t count, annal_row_fn fn, void *arg)
{
    const annal_sql_options options = {.params = params, .param_count = count};
    return annal__view_sql(sending->view, annal_slice_of(sql), &options, fn, arg, &sending->err);
}

/* Open a new view, because an open view keeps the databases from freeing old data. */
static annal_status renew_view(struct sending *sending)
{
    annal__view_close(sending->view);
    sending->view = NULL;
    return annal__view_open(sending->index, &sending->view, &sending->err);
}

static annal_value text_of(const char *text)
{
    return (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(text)};
}

/* Run a SELECT on a table of the pack's database; ?1 is the name of the pack. */
static annal_status ask_pack(struct sending *sending, const struct annal__pack_rows *rows,
                             const char *columns, const char *from, annal_row_fn fn, void *arg)
{
    SCOPED_BUF sql = {0};
    const annal_value name = text_of(rows->pack);
    must_printf(&sql, "SELECT %s FROM \"%s\".%s", columns, rows->database, from);
    return ask(sending, sql.ptr, &name, 1, fn, arg);
}

/* Append an item to a PostgreSQL array. The text may contain all bytes except NUL. */
static annal_status add_escaped(struct buf *array, annal_slice text)
{
    annal_status status = annal__buf_reserve(array, text.len * 2 + 3);
    if (status < 0)
        return status;
    char *at = array->ptr + array->len;
    *at++ = array->len == 0 ? '{' : ',';
    *at++ = '"';
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"' || text.ptr[i] == '\\')
            *at++ = '\\';
        *at++ = text.ptr[i];
    }
    *at++ = '"';
    array->len = (size_t)(at - array->ptr);
    return ANNAL_OK;
}

/* ---- The tables of a pack ---- */

static int note_made(void *arg, const annal_row *row)
{
    struct pack *pack = arg;
    snprintf(pack->version, sizeof pack->version, "%" PRId64, row->values[0].integer);
    snprintf(pack->made, sizeof pack->made, "%.*s", ANNAL_FMT(row->values[1].bytes));
    return 0;
}

static int note_table(void *arg, const annal_row *row)
{
    struct pack *pack = arg;
    struct pack_table *table = &pack->tables[pack->table_count];
    if (pack->table_count == TABLES_MAX)
        return 0;
    table->name = must_strndup(row->values[0].bytes.ptr, row->values[0].bytes.len);
    table->quoted = must_strndup(row->values[1].bytes.ptr, row->values[1].bytes.len);
    pack->table_count++;
    return 0;
}

static int add_column(void *arg, const annal_row *row)
{
    struct buf *columns = arg;
    annal_status status = add_escaped(&columns[0], row->values[0].bytes);
    return status < 0 ? status : add_escaped(&columns[1], row->values[1].bytes);
}

/* Get the number of the table from the target, which creates the table and its view if they are
 * new. */
static annal_status find_id(struct sending *sending, struct pack_table *table)
{
    static const char columns_sql[] =
        "SELECT lower(name), CASE WHEN type LIKE '%INT%' OR type LIKE '%BOOL%' THEN 'bigint'"
        " WHEN type LIKE '%CHAR%' OR type LIKE '%CLOB%' OR type LIKE '%TEXT%' THEN 'text'"
        " WHEN type LIKE '%BLOB%' THEN 'bytea'"
        " WHEN type LIKE '%REAL%' OR type LIKE '%FLOA%' OR type LIKE '%DOUB%' THEN 'float8'"
        " ELSE 'text' END FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1 ORDER BY cid";
    struct buf columns[2] = {{0}};
    PGresult *result = NULL;
    const annal_value params[] = {text_of(table->name), text_of(sending->pack->rows->database)};
    const char *const values[] = {sending->pack->rows->pack, table->name};
    annal_status status = ask(sending, columns_sql, params, 2, add_column, columns);
    if (status >= 0)
        status = postgres_run_arrays(sending->target, "SELECT annal._pack_table($1, $2, $3, $4)",
                                     values, 2, columns, 2, &result, &sending->err);
    annal__buf_done(&columns[0]);
    annal__buf_done(&columns[1]);
    if (status < 0)
        return status;
    snprintf(table->id, sizeof table->id, "%s", postgres_text(result, 0, 0));
    PQclear(result);
    return ANNAL_OK;
}

/* Write the SELECT of a table. Rows for which `-- forget` names no session belong to the session
 * ''. A table that `-- forget` only empties has no rows outside of a catch-up. */
static annal_status write_select(struct sending *sending, struct pack_table *table)
{
    const struct annal__pack_rows *rows = sending->pack->rows;
    SCOPED_BUF conditions = {0};
    bool is_emptied = false;
    for (size_t i = 0; i < rows->count; i++) {
        if (strcasecmp(rows->forgotten[i].table, table->name) != 0)
            continue;
        is_emptied = true;
        if (rows->forgotten[i].condition != NULL)
            must_printf(&conditions, conditions.len == 0 ? "%s" : " OR %s",
                        rows->forgotten[i].condition);
    }
    if (conditions.len > 0 || !is_emptied)
        must_printf(
            &table->sql,
            "SELECT \"of row\", %s.* FROM (SELECT key AS \"of row\", value AS \"of session\" FROM"
            " json_each(?1)) CROSS JOIN \"%s\".%s WHERE \"of session\" %s '' AND (%.*s)",
            table->quoted, rows->database, table->quoted, conditions.len == 0 ? "=" : "<>",
            conditions.len == 0 ? 1 : (int)conditions.len,
            conditions.len == 0 ? "1" : conditions.ptr);
    return table->sql.len == 0 ? ANNAL_OK : find_id(sending, table);
}

static annal_status find_tables(struct sending *sending)
{
    struct pack *pack = sending->pack;
    annal_status status =
        ask_pack(sending, pack->rows, "version, tables_hash || ' ' || handlers_hash",
                 "_pack WHERE name = ?1", note_made, pack);
    if (status >= 0)
        status = ask_pack(sending, pack->rows, "name, '\"' || replace(name, '\"', '\"\"') || '\"'",
                          "_object WHERE pack = ?1 AND type = 'table'", note_table, pack);
    for (size_t i = 0; i < pack->table_count && status >= 0; i++)
        status = write_select(sending, &pack->tables[i]);
    return status;
}

/* ---- Rows ---- */

enum { SESSIONS, SEQS, HS, POSITIONS, TABS = POSITIONS, PLACES, ROWS, ARRAYS };

struct batch {
    struct buf arrays[ARRAYS];
    struct buf row; /* buffer for one row */
    const char *tab;
    uint64_t rows;
};

static void put_value(struct buf *out, const annal_value *value)
{
    if (value->kind == ANNAL_VALUE_REAL && (value->real > DBL_MAX || value->real < -DBL_MAX)) {
        must_printf(out, "\"%sInfinity\"", value->real < 0 ? "-" : "");
    } else if (value->kind != ANNAL_VALUE_BLOB) {
        must_status(rows_value_json(out, value));
    } else {
        must_append(out, "\"\\\\x", 4);
        must_status(annal__hex_append(out, value->bytes));
        must_append(out, "\"", 1);
    }
}

/* Print a row as a JSON object: a member for each column that is not NULL, with its name in lower
 * case. */
static void put_row(struct buf *out, const annal_row *row)
{
    annal__buf_clear(out);
    for (size_t i = 1; i < row->count; i++) {
        if (row->values[i].kind == ANNAL_VALUE_NULL)
            continue;
        must_append(out, out->len == 0 ? "{" : ",", 1);
        size_t name_at = out->len;
        must_quote(out, annal_slice_of(row->names[i]));
        for (size_t at = name_at; at < out->len; at++)
            if (out->ptr[at] >= 'A' && out->ptr[at] <= 'Z')
                out->ptr[at] = (char)(out->ptr[at] - 'A' + 'a');
        must_append(out, ":", 1);
        put_value(out, &row->values[i]);
    }
    must_append_text(out, out->len == 0 ? "{}" : "}");
}

static int add_row(void *arg, const annal_row *row)
{
    struct batch *batch = arg;
    size_t bytes = 0;
    for (size_t i = 1; i < row->count; i++)
        bytes += row->values[i].bytes.len;
    if (bytes > ROWS_BYTES_MAX)
        return ANNAL_ERR_LIMIT;
    put_row(&batch->row, row);
    annal_status status = add_escaped(&batch->arrays[ROWS], annal__buf_slice(&batch->row));
    if (status < 0)
        return status;
    postgres_add_text(&batch->arrays[TABS], batch->tab);
    postgres_add_number(&batch->arrays[PLACES], (uint64_t)row->values[0].integer + 1);
    batch->rows++;
    return 0;
}

static void add_position(struct buf *arrays, const struct position *position)
{
    postgres_add_text(&arrays[SESSIONS], position->session);
    postgres_add_number(&arrays[SEQS], position->seq);
    postgres_add_number(&arrays[HS], position->h);
}

static void add_empty(struct buf *array)
{
    if (array->len == 0)
        (void)annal__buf_append(array, "{", 1);
}

static annal_status collect(struct sending *sending, const struct position *positions, size_t count,
                            struct batch *batch)
{
    struct pack *pack = sending->pack;
    SCOPED_BUF sessions = {0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < count; i++) {
        add_position(batch->arrays, &positions[i]);
        must_json(&sessions, i == 0 ? "[?" : ",?", annal_slice_of(positions[i].session));
    }
    must_append(&sessions, "]", 1);
    batch->arrays[ROWS].limit = count > 1 ? ROWS_BYTES : ROWS_BYTES_MAX;
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = annal__buf_slice(&sessions)};
    for (size_t i = 0; i < pack->table_count && status == ANNAL_OK; i++) {
        batch->tab = pack->tables[i].id;
        if (pack->tables[i].sql.len > 0)
            status = ask(sending, pack->tables[i].sql.ptr, &param, 1, add_row, batch);
    }
    return status;
}

/* Send all rows of the sessions in `positions`; if the rows are too many, send each half of the
 * sessions separately. */
static annal_status send(struct sending *sending, const struct position *positions, size_t count)
{
    const struct pack *pack = sending->pack;
    const char *const values[] = {sending->options->target.store, pack->rows->pack, pack->version,
                                  pack->made};
    struct batch batch = {0};
    PGresult *result = NULL;
    annal_status status = collect(sending, positions, count, &batch);
    annal__buf_done(&batch.row);
    if (status >= 0)
        for (int i = TABS; i < ARRAYS; i++)
            add_empty(&batch.arrays[i]);
    if (status >= 0)
        status = postgres_run_arrays(
            sending->target, "SELECT annal._put_pack_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            values, 4, batch.arrays, ARRAYS, &result, &sending->err);
    for (int i = 0; i < ARRAYS; i++)
        annal__buf_done(&batch.arrays[i]);
    if (status == ANNAL_ERR_LIMIT && count > 1) {
        status = send(sending, positions, count / 2);
        return status < 0 ? status : send(sending, positions + count / 2, count - count / 2);
    }
    if (status == ANNAL_ERR_LIMIT) {
        say("session '%s': more than 64 MiB of rows in pack '%s'; the rows of this session and "
            "pack are not sent",
            positions->session, pack->rows->pack);
        sending->left_out++;
        return ANNAL_OK;
    }
    if (status < 0)
        return status;
    sending->sessions += strtoull(postgres_text(result, 0, 0), NULL, 10);
    sending->rows += batch.rows;
    PQclear(result);
    return ANNAL_OK;
}

/* ---- Which sessions ---- */

static int note_position(void *arg, const annal_row *row)
{
    struct pack *pack = arg;
    struct position *position = &pack->page[pack->page_count++];
    snprintf(position->session, sizeof position->session, "%.*s", ANNAL_FMT(row->values[0].bytes));
    position->seq = (uint64_t)row->values[1].integer;
    position->h = (uint64_t)row->values[2].integer;
    return 0;
}

/* Send the sessions of this page whose rows are older at the target. */
static annal_status send_page(struct sending *sending)
{
    struct pack *pack = sending->pack;
    const char *const values[] = {sending->options->target.store, pack->rows->pack, pack->version,
                                  pack->made};
    struct buf arrays[POSITIONS] = {{0}};
    PGresult *result = NULL;
    size_t older = 0;
    for (size_t i = 0; i < pack->page_count; i++)
        add_position(arrays, &pack->page[i]);
    annal_status status = postgres_run_arrays(
        sending->target,
        "SELECT state FROM annal._pack_states($1, $2, $3, $4, $5, $6, $7) ORDER BY n", values, 4,
        arrays, POSITIONS, &result, &sending->err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < pack->page_count && (int)i < PQntuples(result); i++) {
        const char *state = postgres_text(result, (int)i, 0);
        sending->behind += strcmp(state, "behind") == 0;
        sending->other += strcmp(state, "other") == 0;
        if (strcmp(state, "older") == 0)
            pack->page[older++] = pack->page[i];
    }
    PQclear(result);
    status = older == 0 ? ANNAL_OK : send(sending, pack->page, older);
    return status < 0 || older == 0 ? status : renew_view(sending);
}

/*
 * Send the rows that belong to no session, then the rows of each session in the order of ids.
 * Skipped are forks without own events, and sessions of which a pack's `-- settle` has not seen all
 * events (indexer.c, rule 9).
 */
static annal_status send_sessions(struct sending *sending)
{
    struct pack *pack = sending->pack;
    const char *glob = sending->options->glob;
    SCOPED_BUF sql = {0};
    annal_status status = ANNAL_OK;
    must_printf(
        &sql,
        "SELECT session_id, seq - 1, h FROM \"%s\"._cursor AS c WHERE pack = ?1 AND session_id > ?2"
        " AND seq > 1 AND session_id GLOB ?3 AND NOT EXISTS (SELECT 1 FROM \"%s\"._cursor AS s"
        " WHERE s.pack = ?1 || ' settled' AND s.session_id = c.session_id)"
        " AND NOT EXISTS (SELECT 1 FROM main.forks AS f WHERE f.session_id = c.session_id"
        " AND f.forked_at_seq = c.seq - 1) ORDER BY session_id LIMIT %d",
        pack->rows->database, pack->rows->database, PAGE);
    pack->page[0] = (struct position){0};
    pack->page_count = 1;
    while (status >= 0 && pack->page_count > 0) {
        char last[sizeof pack->page[0].session];
        memcpy(last, pack->page[pack->page_count - 1].session, sizeof last);
        const annal_value params[] = {text_of(pack->rows->pack), text_of(last),
                                      text_of(glob != NULL ? glob : "*")};
        status = send_page(sending);
        pack->page_count = 0;
        if (status >= 0)
            status = ask(sending, sql.ptr, params, 3, note_position, pack);
    }
    return status;
}

static int send_pack(void *arg, const struct annal__pack_rows *rows)
{
    struct sending *sending = arg;
    annal_status status = ANNAL_OK;
    if (rows->why != NULL) {
        if (!sending->is_reported)
            say("the tables of pack '%s' are left out: %s", rows->pack, rows->why);
        return 0;
    }
    struct pack *pack = sending->pack = must_zalloc(sizeof *pack);
    pack->rows = rows;
    status = find_tables(sending);
    if (status >= 0 && pack->made[0] != '\0')
        status = send_sessions(sending);
    for (size_t i = 0; i < pack->table_count; i++) {
        annal__free(pack->tables[i].name);
        annal__free(pack->tables[i].quoted);
        annal__buf_done(&pack->tables[i].sql);
    }
    annal__free(pack);
    if (status != ANNAL_ERR_SQL)
        return status;
    if (!sending->is_reported)
        say("the tables of pack '%s' are left out: %s", rows->pack, sending->err.message);
    sending->left_out++;
    return 0;
}

/* ---- Passes ---- */

static int note_stamp(void *arg, const annal_row *row)
{
    struct buf *stamps = arg;
    return annal__buf_append_slice(stamps, row->values[0].bytes);
}

/* Record the name of a database and its number of transactions. */
static int add_stamp(void *arg, const struct annal__pack_rows *rows)
{
    struct sending *sending = arg;
    if (rows->why != NULL)
        return 0;
    return ask_pack(sending, rows, "?1 || ' ' || id || ' ' || commits || ','", "_stamp", note_stamp,
                    &sending->stamps);
}

/* Return whether rows of pack tables may have changed since the last check. */
static bool has_changed(struct sending *sending)
{
    SCOPED_BUF before = sending->stamps;
    sending->stamps = (struct buf){0};
    bool failed = annal__pack_rows_each(sending->index, add_stamp, sending, &sending->err) < 0;
    bool same = !failed && before.len == sending->stamps.len &&
                (before.len == 0 || memcmp(before.ptr, sending->stamps.ptr, before.len) == 0);
    return !same;
}

/* Send the changed rows of all packs once. Returns ANNAL_END if no rows have changed. */
static annal_status pass(struct sending *sending)
{
    const struct ship_options *options = sending->options;
    sending->sessions = sending->rows = sending->behind = sending->other = sending->left_out = 0;
    annal_status status = ANNAL_OK;
    if (sending->target == NULL)
        status = options->kind->open(&options->target, true, &sending->target, &sending->err);
    if (status >= 0)
        status = renew_view(sending);
    if (status >= 0 && sending->options->follow && !has_changed(sending) &&
        annal__clock_monotonic_us() < sending->look_us)
        status = ANNAL_END;
    if (status == ANNAL_OK)
        status = annal__pack_rows_each(sending->index, send_pack, sending, &sending->err);
    annal__view_close(sending->view);
    sending->view = NULL;
    if (status == ANNAL_OK) {
        sending->is_reported = true;
        sending->look_us = sending->behind > 0 ? 0 : annal__clock_monotonic_us() + LOOK_US;
    }
    if (status >= 0)
        return status;
    sending->look_us = 0;
    options->kind->close(sending->target);
    sending->target = NULL;
    return status;
}

static void report(const struct sending *sending)
{
    if (sending->options->json)
        printf("{\"rows\":%" PRIu64 ",\"behind\":%" PRIu64 ",\"other_history\":%" PRIu64
               ",\"left_out\":%" PRIu64 "}\n",
               sending->rows, sending->behind, sending->other, sending->left_out);
    else
        printf("sent %" PRIu64 " rows of packs\n", sending->rows);
    (void)out_flush();
}

static void pause_for(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static int follow(struct sending *sending)
{
    int64_t retry_ms = 0;
    while (out_wanted() && !out_reader_is_gone()) {
        int64_t begun_us = annal__clock_monotonic_us();
        const annal_catch_up_options wholly = {.packs = true};
        annal_status status =
            annal_index_catch_up(sending->index, (annal_slice){0}, &wholly, &sending->err);
        /* BUSY: the catch-up is not complete, but some tables have all events and can be sent */
        if (status >= 0 || status == ANNAL_ERR_BUSY)
            status = pass(sending);
        if (status < 0 && status != ANNAL_ERR_BUSY)
            return fail_error(&sending->err);
        if (status < 0 && retry_ms == 0)
            say("%s; retrying", sending->err.message);
        if (status >= 0 && sending->sessions > 0)
            report(sending);
        retry_ms = status >= 0 ? 0 : retry_ms == 0 ? PAUSE_MS : retry_ms * 2;
        retry_ms = retry_ms < PAUSE_MS_MAX ? retry_ms : PAUSE_MS_MAX;
        int64_t pause_ms = (annal__clock_monotonic_us() - begun_us) * PAUSES / 1000;
        pause_for(retry_ms > 0 ? retry_ms : pause_ms > PAUSE_MS ? pause_ms : PAUSE_MS);
    }
    return EXIT_DONE;
}

/* Send once; retry failures that may be temporary until --wait is over. */
static int send_once(struct sending *sending)
{
    const int64_t until_us =
        annal__clock_monotonic_us() + (int64_t)sending->options->wait_ms * 1000;
    annal_status status;
    while ((status = pass(sending)) == ANNAL_ERR_BUSY && annal__clock_monotonic_us() < until_us)
        pause_for(AGAIN_MS);
    if (status < 0)
        return ship_fail_target(&sending->err);
    report(sending);
    if (sending->behind > 0)
        say("some sessions have events that the target lacks: run 'annal ship', then 'annal ship "
            "tables' again");
    if (sending->other > 0)
        return fail_refused("some sessions have a different history at the target, so their rows "
                            "were not sent: 'annal ship status' lists these sessions");
    return sending->left_out > 0 ? EXIT_REFUSED : EXIT_DONE;
}

int ship_pack_tables_run(annal_store *store, const struct ship_options *options)
{
    struct sending sending = {.options = options};
    int exit_status = catch_up_open_with_packs(store, &sending.index);
    if (exit_status == 0)
        exit_status = options->follow ? follow(&sending) : send_once(&sending);
    options->kind->close(sending.target);
    annal__buf_done(&sending.stamps);
    annal_index_close(sending.index);
    return exit_status;
}
