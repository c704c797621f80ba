/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox of a writable database: how rows that users write get into the journal.
 *
 * (1) Triggers on every table copy each row that is inserted, updated or deleted into _outbox and
 *     _outbox_values, value by value as SQLite stores them, in the user's own transaction. They
 *     read the row from the table, so changes by other triggers are included. INSERT OR REPLACE is
 *     one insert (and, with recursive_triggers, a delete before it).
 * (2) Triggers are off on our connections that fill tables, so rows from the journal are not
 *     captured. A user's own triggers do not run on these connections either; the changes that they
 *     made were captured.
 * (3) A row is identified by its primary key if the key is not NULL, else by all its values: never
 *     by a rowid, which VACUUM and events in between may change.
 * (4) Draining happens under the lock of the database and in a transaction: objects that users
 *     created are adopted (outbox_schema.c). Then each change becomes a durable event sql.applied
 *     or schema.extended, and is removed from the outbox. The id of the event is the outbox's id,
 *     its number and a hash of its data: even if a crash interrupts the transaction, the change is
 *     in the journal exactly once.
 * (5) _outbox_state contains the number of the last change that was drained from this file: the
 *     tables contain the changes up to this number already, so their events are skipped when they
 *     are applied.
 * (6) Skipping is correct as long as the tables contain every earlier event of the journal. If
 *     other events that this pack uses were appended in between, or a copy of the file replaced it,
 *     the tables are rebuilt from the journal, in its order. So they always equal the result of a
 *     rebuild.
 * (7) In an event's data a value is a JSON value if JSON expresses it exactly: null, an integer, a
 *     real (the shortest text that yields it), a text in UTF-8 without U+0000. Other values are
 *     {"blob":"<base64>"}, {"text":"<base64>"} and {"real":"inf"}.
 */
#include "index/pack/outbox.h"

#include "index/db/db.h"
#include "index/db/index_lock.h"
#include "journal/base/alloc.h"
#include "journal/base/base64.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/number.h"
#include "journal/sys/say.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_EVENTS   512
#define BATCH_BYTES    ((size_t)8 << 20)
#define ATTEMPTS_MAX   100
#define OUTBOX_ID_TEXT 17 /* length of the outbox's id: 16 hex digits and NUL */

/* ---- Tables ---- */

/* Each statement begins a line and ends at the end of a line, because annal__shape_of_text() reads
 * this text. */
const char annal__outbox_tables[] =
    "CREATE TABLE _outbox (n INTEGER PRIMARY KEY AUTOINCREMENT, tbl TEXT NOT NULL,"
    " op TEXT NOT NULL, at TEXT);\n"
    "CREATE TABLE _outbox_values (n INTEGER NOT NULL, part TEXT NOT NULL, name TEXT NOT NULL,"
    " value);\n"
    "CREATE INDEX _outbox_values_n ON _outbox_values(n);\n"
    "CREATE TABLE _outbox_state (id TEXT NOT NULL, drained INTEGER NOT NULL,"
    " schema INTEGER NOT NULL);\n"
    "CREATE TABLE _outbox_schema (type TEXT NOT NULL, name TEXT NOT NULL, sql TEXT NOT NULL,"
    " columns TEXT, made TEXT, pack INTEGER NOT NULL, PRIMARY KEY(type, name)) WITHOUT ROWID;\n";

annal_status annal__outbox_make(sqlite3 *db, annal_error *err)
{
    char sql[96];
    uint64_t id = 0;
    sqlite3_randomness((int)sizeof id, &id);
    snprintf(sql, sizeof sql, "INSERT INTO _outbox_state VALUES ('%016" PRIx64 "', 0, -1)", id);
    annal_status status = annal__db_exec(db, annal__outbox_tables, err);
    if (status >= 0)
        status = annal__db_exec(db, sql, err);
    return status < 0 ? status : annal__outbox_baseline(db, true, err);
}

annal_status annal__outbox_drop(sqlite3 *db, annal_error *err)
{
    /* The statement that finds the objects that users created. Views and triggers come first,
     * because they refer to tables. */
    static const char made_by_users[] =
        "SELECT s.type, s.name FROM sqlite_schema AS s JOIN _outbox_schema AS o "
        "ON o.type = s.type AND o.name = s.name WHERE o.pack = 0 "
        "ORDER BY s.type = 'trigger' DESC, s.type = 'view' DESC, s.type = 'index' DESC LIMIT 1";
    int64_t there = 0;
    annal_status status = annal__db_integer(
        db, "SELECT COUNT(*) FROM sqlite_schema WHERE name = '_outbox_state'", &there, err);
    if (status >= 0 && there > 0)
        status = annal__outbox_uncapture(db, err);
    if (status >= 0 && there > 0)
        status = annal__outbox_drop_each(db, made_by_users, err);
    if (status >= 0)
        status = annal__db_exec(db,
                                "DROP TABLE IF EXISTS _outbox; DROP TABLE IF EXISTS _outbox_values;"
                                "DROP TABLE IF EXISTS _outbox_state;"
                                "DROP TABLE IF EXISTS _outbox_schema",
                                err);
    return status;
}

struct outbox_watch {
    sqlite3 *db;
    sqlite3_stmt *rows, *schema;
};

annal_status annal__outbox_watch_new(sqlite3 *db, struct outbox_watch **out_watch, annal_error *err)
{
    struct outbox_watch *watch = annal__zalloc(sizeof *watch);
    if (watch == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "prepare the outbox: out of memory");
    watch->db = db;
    annal_status status = annal__db_prepare(
        db, "SELECT EXISTS (SELECT 1 FROM main._outbox), schema FROM main._outbox_state",
        &watch->rows, err);
    if (status >= 0)
        status = annal__db_prepare(db, "PRAGMA main.schema_version", &watch->schema, err);
    if (status < 0)
        annal__outbox_watch_free(watch);
    else
        *out_watch = watch;
    return status;
}

void annal__outbox_watch_free(struct outbox_watch *watch)
{
    if (watch == NULL)
        return;
    sqlite3_finalize(watch->rows);
    sqlite3_finalize(watch->schema);
    annal__free(watch);
}

annal_status annal__outbox_watch_ask(struct outbox_watch *watch, bool *out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    int rc = sqlite3_step(watch->rows);
    int now_rc = rc == SQLITE_ROW ? sqlite3_step(watch->schema) : rc;
    if (rc == SQLITE_ROW && now_rc == SQLITE_ROW)
        *out = sqlite3_column_int64(watch->rows, 0) != 0 ||
               sqlite3_column_int64(watch->rows, 1) != sqlite3_column_int64(watch->schema, 0);
    else if (now_rc == SQLITE_DONE)
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "the outbox, the rows that users wrote, lost its state table");
    else
        status = annal__db_fail(err, watch->db, now_rc,
                                "cannot read the outbox, the rows that users wrote");
    sqlite3_reset(watch->rows);
    sqlite3_reset(watch->schema);
    return status;
}

annal_status annal__outbox_waits(sqlite3 *db, bool *out, annal_error *err)
{
    struct outbox_watch *watch = NULL;
    annal_status status = annal__outbox_watch_new(db, &watch, err);
    if (status >= 0)
        status = annal__outbox_watch_ask(watch, out, err);
    annal__outbox_watch_free(watch);
    return status;
}

/* ---- Changes as events, rule 7 ---- */

static annal_status add_base64(struct buf *json, const char *name, annal_slice bytes)
{
    annal__buf_printf(json, "{\"%s\":\"", name);
    annal__base64_put(json, bytes);
    return annal__buf_append(json, "\"}", 2);
}

static annal_status add_real(struct buf *json, double real)
{
    char text[NUMBER_TEXT_BYTES];
    if (isinf(real))
        return annal__buf_printf(json, "{\"real\":\"%sinf\"}", real < 0 ? "-" : "");
    return annal__buf_append(json, text, annal__number_print(real, text));
}

/* Append a text as a JSON string if the string is exact, and not longer than base64 because of many
 * escapes. */
static annal_status add_text(struct buf *json, annal_slice text)
{
    size_t begun = json->len;
    if (!annal__json_is_utf8(text) || (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL))
        return add_base64(json, "text", text);
    annal_status status = annal__json_quote(json, text);
    if (status < 0 || json->len - begun <= text.len / 3 * 4 + 64)
        return status;
    json->len = begun;
    return add_base64(json, "text", text);
}

static annal_status add_value(struct buf *json, sqlite3_stmt *stmt, int column)
{
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        return annal__buf_printf(json, "%lld", (long long)sqlite3_column_int64(stmt, column));
    case SQLITE_FLOAT:
        return add_real(json, sqlite3_column_double(stmt, column));
    case SQLITE_BLOB:
        return add_base64(json, "blob", annal__db_column(stmt, column));
    case SQLITE_TEXT:
        return add_text(json, annal__db_column(stmt, column));
    default:
        return annal__buf_append(json, "null", 4);
    }
}

/* The columns of the statement that returns the changes. */
enum { N, TABLE, OP, AT, PART, NAME, VALUE };

static const char changes_sql[] = "SELECT o.n, o.tbl, o.op, o.at, v.part, v.name, v.value "
                                  "FROM _outbox AS o LEFT JOIN _outbox_values AS v ON v.n = o.n "
                                  "WHERE o.n > ?1 ORDER BY o.n, v.part DESC, v.rowid";

static bool is_schema(sqlite3_stmt *stmt)
{
    return strcmp((const char *)sqlite3_column_text(stmt, OP), "schema") == 0;
}

static annal_status begin_change(struct buf *json, sqlite3_stmt *stmt)
{
    annal_status status =
        annal__json_put(json, "{\"#\":?", annal_slice_of(is_schema(stmt) ? "name" : "table"),
                        annal__db_column(stmt, TABLE));
    if (status >= 0 && !is_schema(stmt))
        status =
            annal__buf_printf(json, ",\"op\":\"%s\"", (const char *)sqlite3_column_text(stmt, OP));
    if (status >= 0 && sqlite3_column_type(stmt, AT) == SQLITE_TEXT) {
        status = annal__json_put(json, ",\"at\":?", annal__db_column(stmt, AT));
    }
    return status;
}

/*
 * Encode all values of one change, from the current row of stmt to the first row of the next
 * change.
 */
static annal_status encode_change(struct buf *json, sqlite3_stmt *stmt, int *rc)
{
    sqlite3_int64 n = sqlite3_column_int64(stmt, N);
    char open[8] = "";
    annal_status status = begin_change(json, stmt);
    for (; status >= 0 && *rc == SQLITE_ROW && sqlite3_column_int64(stmt, N) == n;
         *rc = sqlite3_step(stmt)) {
        if (sqlite3_column_type(stmt, PART) == SQLITE_NULL)
            continue;
        const char *part = (const char *)sqlite3_column_text(stmt, PART);
        bool same = strcmp(open, part) == 0;
        if (strcmp(part, "ddl") == 0)
            status = annal__buf_append(json, ",", 1);
        else if (same)
            status = annal__buf_append(json, ",", 1);
        else
            status = annal__buf_printf(json, "%s,\"%.3s\":{", open[0] == '\0' ? "" : "}", part);
        if (!same && strcmp(part, "ddl") != 0)
            snprintf(open, sizeof open, "%s", part);
        if (status >= 0)
            status = annal__json_put(json, "?:", annal__db_column(stmt, NAME));
        if (status >= 0)
            status = add_value(json, stmt, VALUE);
    }
    if (status >= 0)
        status = annal__buf_printf(json, "%s}", open[0] == '\0' ? "" : "}");
    return status;
}

/* ---- Draining, rules 4 to 6 ---- */

struct drain {
    sqlite3 *db;
    const struct outbox_target *target;
    annal_writer *writer;
    char id[OUTBOX_ID_TEXT];
    int64_t drained; /* number (n in _outbox) of the last change that is in the journal */
    uint64_t head;   /* last seq of the session; 0: the session has no event */
    /* whether the tables lack earlier events that matter to the pack, so that they must be rebuilt
     * (rule 6) */
    bool foreign;
    struct buf bytes; /* data and id of each draft of the current batch, one after the other */
    struct part {
        size_t data_at, data_len, id_at, id_len;
        bool schema;
    } parts[BATCH_EVENTS];
    size_t count;
    int64_t last; /* number (n in the outbox) of the last change in the batch */
    uint64_t changes;
};

static annal_status read_state(struct drain *drain, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status =
        annal__db_prepare(drain->db, "SELECT id, drained FROM _outbox_state", &stmt, err);
    if (status < 0)
        return status;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        snprintf(drain->id, sizeof drain->id, "%s", (const char *)sqlite3_column_text(stmt, 0));
        drain->drained = sqlite3_column_int64(stmt, 1);
    } else {
        status = rc == SQLITE_DONE
                     ? annal__fail(err, ANNAL_ERR_CORRUPT,
                                   "the outbox, the rows that users wrote, lost its state table")
                     : annal__db_fail(err, drain->db, rc,
                                      "cannot read the outbox, the rows that users wrote");
    }
    sqlite3_finalize(stmt);
    return status;
}

/* Encode the changes after the last drained change, up to the size of a batch. */
static annal_status fill_batch(struct drain *drain, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal__buf_clear(&drain->bytes);
    drain->count = 0;
    annal_status status = annal__db_prepare(drain->db, changes_sql, &stmt, err);
    if (status < 0)
        return status;
    sqlite3_bind_int64(stmt, 1, drain->drained);
    int rc = sqlite3_step(stmt);
    while (rc == SQLITE_ROW && status >= 0 && drain->count < BATCH_EVENTS &&
           drain->bytes.len < BATCH_BYTES) {
        struct part *part = &drain->parts[drain->count++];
        *part = (struct part){.data_at = drain->bytes.len, .schema = is_schema(stmt)};
        drain->last = sqlite3_column_int64(stmt, N);
        status = encode_change(&drain->bytes, stmt, &rc);
        part->data_len = drain->bytes.len - part->data_at;
        part->id_at = drain->bytes.len;
        if (status >= 0)
            status = annal__buf_printf(
                &drain->bytes, "%s:%lld:%016" PRIx64, drain->id, (long long)drain->last,
                annal__hash(drain->bytes.ptr + part->data_at, part->data_len, 0));
        part->id_len = drain->bytes.len - part->id_at;
    }
    if (status < 0)
        annal__fail(err, status, "cannot read a row of the outbox, the rows that users wrote");
    else if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status =
            annal__db_fail(err, drain->db, rc, "cannot read the outbox, the rows that users wrote");
    sqlite3_finalize(stmt);
    return status;
}

/* Return whether an event was appended for the change with this index in the batch. */
static bool is_change(const struct drain *drain, size_t place, const annal_event *event)
{
    const struct part *part = &drain->parts[place];
    return event->id.len == part->id_len &&
           memcmp(event->id.ptr, drain->bytes.ptr + part->id_at, part->id_len) == 0;
}

/* Return whether an event changes the pack's tables. */
static bool matters(const struct drain *drain, const annal_event *event)
{
    const annal_pack *pack = drain->target->pack;
    if (annal__outbox_takes(event->type))
        return true;
    for (size_t i = 0; i < pack->section_count; i++)
        if (pack->sections[i].kind == PACK_ON &&
            annal__pack_section_takes(&pack->sections[i], event->type))
            return true;
    return false;
}

/*
 * Read the events of the journal that are not in the tables. *out_there: number of changes of the
 * batch that are in the journal already, because of a crash after an earlier append.
 */
static annal_status read_tail(struct drain *drain, size_t *out_there, annal_error *err)
{
    const struct outbox_target *target = drain->target;
    const annal_position *from = &target->applied;
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status = ANNAL_ERR_CONFLICT;
    *out_there = 0;
    drain->head = 0;
    drain->foreign = false;
    if (from->seq > 0)
        status = annal_cursor_open_at(target->store, target->session, from->seq, from->offset,
                                      from->h_before, &cursor, err);
    if (status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_NOTFOUND) {
        /* read the journal from its first event: the tables contain no events, or events of another
         * journal, and must then be rebuilt */
        drain->foreign = from->seq > 0;
        status = annal_cursor_open_at(target->store, target->session, 1, 0, 0, &cursor, err);
    }
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    while (status >= 0 && status != ANNAL_END) {
        status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_OK && *out_there < drain->count && is_change(drain, *out_there, &event))
            ++*out_there;
        else if (status == ANNAL_OK)
            drain->foreign |= matters(drain, &event);
        else if (status == ANNAL_DAMAGE)
            drain->foreign = true;
    }
    if (status == ANNAL_END) {
        drain->head = annal_cursor_position(cursor).seq - 1;
        status = ANNAL_OK;
    }
    annal_cursor_close(cursor);
    return status;
}

static annal_status append_batch(struct drain *drain, size_t from, annal_error *err)
{
    annal_draft *drafts = annal__zalloc((drain->count + 1) * sizeof *drafts);
    if (drafts == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read %zu rows of an outbox: out of memory",
                           drain->count);
    for (size_t i = from; i < drain->count; i++) {
        const struct part *part = &drain->parts[i];
        drafts[i].type = part->schema ? ANNAL_SLICE("schema.extended") : ANNAL_SLICE("sql.applied");
        drafts[i].data = (annal_slice){drain->bytes.ptr + part->data_at, part->data_len};
        drafts[i].id = (annal_slice){drain->bytes.ptr + part->id_at, part->id_len};
    }
    const annal_append_options options = {.level = ANNAL_LEVEL_SYNC,
                                          .expect = drain->head == 0 ? ANNAL_EXPECT_NONE
                                                                     : ANNAL_EXPECT_SEQ,
                                          .expected_seq = drain->head};
    uint64_t seq = 0;
    annal_status status =
        annal_writer_append(drain->writer, drafts + from, drain->count - from, &options, &seq, err);
    if (status >= 0)
        drain->head = seq + (drain->count - from) - 1;
    annal__free(drafts);
    return status;
}

/* Append the changes of one batch to the journal, directly after its last event. Changes that the
 * journal contains already, from an attempt before a crash, are not appended again. */
static annal_status send_batch(struct drain *drain, bool first, annal_error *err)
{
    annal_error why = {0};
    annal_status status = ANNAL_ERR_CONFLICT;
    size_t there = 0;
    if (!first)
        status = append_batch(drain, 0, &why);
    for (int attempt = 0; status == ANNAL_ERR_CONFLICT && attempt < ATTEMPTS_MAX; attempt++) {
        if (attempt > 0)
            annal__deadline_pause((unsigned)attempt);
        bool foreign = drain->foreign;
        status = read_tail(drain, &there, &why);
        drain->foreign |= foreign;
        if (status >= 0 && there < drain->count)
            status = append_batch(drain, there, &why);
    }
    /* a corrupt journal must not return ANNAL_ERR_CORRUPT, for which the caller would rebuild the
     * database */
    if (status == ANNAL_ERR_CORRUPT)
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "rows written by users were not turned into events, because session "
                           "'%.*s' accepts none: %s",
                           ANNAL_FMT(drain->target->session), why.message);
    return annal__error_pass(err, status, &why);
}

static annal_status note_drained(struct drain *drain, annal_error *err)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "DELETE FROM _outbox WHERE n <= %lld; DELETE FROM _outbox_values WHERE n <= %lld; "
             "UPDATE _outbox_state SET drained = %lld",
             (long long)drain->last, (long long)drain->last, (long long)drain->last);
    return annal__db_exec(drain->db, sql, err);
}

static annal_status drain_all(struct drain *drain, annal_error *err)
{
    annal_status status = read_state(drain, err);
    if (status >= 0)
        status = fill_batch(drain, err);
    if (status >= 0 && drain->count > 0)
        status = annal_writer_open(drain->target->store, drain->target->session, NULL,
                                   &drain->writer, err);
    for (bool first = true; status >= 0 && drain->count > 0; first = false) {
        status = send_batch(drain, first, err);
        if (status >= 0)
            status = note_drained(drain, err);
        drain->drained = drain->last;
        drain->changes += drain->count;
        if (status >= 0)
            status = fill_batch(drain, err);
    }
    return status;
}

annal_status annal__outbox_drain(sqlite3 *db, const struct outbox_target *target,
                                 struct outbox_drained *out, annal_error *err)
{
    struct drain drain = {.db = db, .target = target};
    bool broken = false;
    uint64_t left_out = 0;
    annal_status status = annal__outbox_adopt(db, &broken, &left_out, err);
    if (left_out > 0)
        annal__say(target->store, ANNAL_LOG_WARNING,
                   "%llu rows that users wrote before their table was adopted are larger than %u "
                   "MiB: session '%.*s' does not receive them",
                   (unsigned long long)left_out, OUTBOX_ROW_BYTES_MAX >> 20,
                   ANNAL_FMT(target->session));
    if (status >= 0)
        status = drain_all(&drain, err);
    if (status >= 0)
        *out = (struct outbox_drained){drain.changes, drain.foreign || broken};
    annal_writer_close(drain.writer);
    annal__buf_done(&drain.bytes);
    return status;
}
