/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checking that the tables of packs contain the rows that the journals yield.
 *
 * (1) A database is read in its current state, in one transaction; nothing is caught up or created.
 * (2) The same packs are filled a second time, in memory, from the journals: each session up to the
 *     pack's cursor, and the sections `-- settle` run at the same event as in the database. (If a
 *     catch-up was interrupted within a long session, its last events are applied and not settled.)
 *     Then every table must contain the same rows, with the same types of values.
 * (3) If a cursor does not match the journal, the journal was replaced: the tables cannot be
 *     compared, and the next catch-up updates them.
 * (4) Rows that refer to rows which do not exist are reported as a remark, not as an error.
 *     (Sessions are applied in any order, so foreign keys are not enforced while tables are
 *     filled.)
 * (5) Then the second filling continues to the end of the journals, whether or not the database
 *     exists and is up to date. Its findings are those that the database contains or will contain:
 *     events that a handler could not accept, and events that were appended although their guard
 *     refuses them. Such an event stays in the journal, but the rows then violate the condition of
 *     the guard.
 * (6) A database in which users wrote rows that are not in the journal yet differs from the
 *     journal, and is not compared.
 */
#include "index/db/db.h"
#include "index/follow/plan.h"
#include "index/index.h"
#include "index/pack/outbox.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <stdio.h>
#include <string.h>

struct verify {
    annal_index *index;
    annal_index *fresh; /* index in memory, for the second filling */
    struct pack_set *set;
    struct pack_set *fresh_set;
    annal_pack_finding_fn fn;
    void *arg;
    annal_error *err;
};

/* The tables of a pack in a database. */
struct part {
    struct verify *verify;
    struct pack_database *database;
    const struct pack_slot *slot;
    /* connection to the existing database; NULL if it does not exist, or its tables were not
     * created from the pack's text */
    sqlite3 *db;
    sqlite3 *fresh; /* connection to the database in memory that is filled a second time */
};

static annal_status tell(const struct part *part, const char *table, bool remark, const char *what)
{
    const annal_pack_finding finding = {.pack = part->slot->name,
                                        .database = part->database->derived.path,
                                        .table = table,
                                        .what = what,
                                        .remark = remark,
                                        .count = remark ? 0 : 1};
    return (annal_status)part->verify->fn(part->verify->arg, &finding);
}

/* ---- Rows, rule 2 ---- */

static bool same_value(sqlite3_value *a, sqlite3_value *b)
{
    int type = sqlite3_value_type(a);
    if (type != sqlite3_value_type(b))
        return false;
    if (type == SQLITE_NULL)
        return true;
    if (type == SQLITE_INTEGER)
        return sqlite3_value_int64(a) == sqlite3_value_int64(b);
    if (type == SQLITE_FLOAT) {
        double one = sqlite3_value_double(a), other = sqlite3_value_double(b);
        return memcmp(&one, &other, sizeof one) == 0;
    }
    const void *bytes = type == SQLITE_BLOB ? sqlite3_value_blob(a) : sqlite3_value_text(a);
    const void *others = type == SQLITE_BLOB ? sqlite3_value_blob(b) : sqlite3_value_text(b);
    int len = sqlite3_value_bytes(a);
    return len == sqlite3_value_bytes(b) && (len == 0 || memcmp(bytes, others, (size_t)len) == 0);
}

static bool same_row(sqlite3_stmt *a, sqlite3_stmt *b)
{
    int count = sqlite3_column_count(a);
    if (count != sqlite3_column_count(b))
        return false;
    for (int i = 0; i < count; i++)
        if (!same_value(sqlite3_column_value(a, i), sqlite3_column_value(b, i)))
            return false;
    return true;
}

/* Select all rows of a table, ordered by all columns, so that equal rows have the same order in
 * both databases. */
static annal_status prepare_rows(sqlite3 *db, const char *table, sqlite3_stmt **out_stmt,
                                 annal_error *err)
{
    sqlite3_stmt *columns = NULL;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "SELECT * FROM main.\"%w\" ORDER BY 1", table);
    annal_status status =
        annal__db_prepare(db, "SELECT COUNT(*) FROM pragma_table_info(?1)", &columns, err);
    if (status >= 0) {
        annal__db_bind_text(columns, 1, annal_slice_of(table));
        int count = sqlite3_step(columns) == SQLITE_ROW ? sqlite3_column_int(columns, 0) : 0;
        for (int i = 2; i <= count; i++)
            sqlite3_str_appendf(sql, ", %d", i);
    }
    sqlite3_finalize(columns);
    char *text = sqlite3_str_finish(sql);
    if (status >= 0)
        status = text == NULL ? annal__fail(err, ANNAL_ERR_NOMEM,
                                            "verify the rows of a table: out of memory")
                              : annal__db_prepare(db, text, out_stmt, err);
    sqlite3_free(text);
    return status;
}

static annal_status compare_rows(const struct part *part, sqlite3_stmt *existing,
                                 sqlite3_stmt *expected, bool *out_same, annal_error *err)
{
    for (uint64_t row = 1;; row++) {
        int one = sqlite3_step(existing), other = sqlite3_step(expected);
        if (one != SQLITE_ROW && one != SQLITE_DONE)
            return annal__db_fail(err, part->db, one, "cannot read the database '%s'",
                                  part->database->derived.path);
        if (other != SQLITE_ROW && other != SQLITE_DONE)
            return annal__db_fail(err, part->fresh, other, "cannot fill pack '%s'",
                                  part->slot->name);
        *out_same = one == other && (one == SQLITE_DONE || same_row(existing, expected));
        if (!*out_same || one == SQLITE_DONE)
            return ANNAL_OK;
    }
}

static annal_status compare_table(const struct part *part, const char *table, bool *out_same,
                                  annal_error *err)
{
    sqlite3_stmt *existing = NULL, *expected = NULL;
    annal_error why = {0};
    annal_status status = prepare_rows(part->db, table, &existing, &why);
    if (status >= 0)
        status = prepare_rows(part->fresh, table, &expected, &why);
    if (status >= 0)
        status = compare_rows(part, existing, expected, out_same, &why);
    sqlite3_finalize(existing);
    sqlite3_finalize(expected);
    if (status == ANNAL_ERR_SQL) { /* one of the databases lacks the table: they differ */
        *out_same = false;
        return ANNAL_OK;
    }
    return annal__error_pass(err, status, &why);
}

typedef annal_status (*text_fn)(const struct part *part, const char *text, sqlite3_stmt *row);

/*
 * Run select, in which ?1 is the pack's name, on the existing database, and call fn with the text
 * of the first column of each row.
 */
static annal_status each_text(const struct part *part, const char *select, text_fn fn)
{
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_DONE;
    annal_status status = annal__db_prepare(part->db, select, &stmt, part->verify->err);
    if (status >= 0 && sqlite3_bind_parameter_count(stmt) > 0)
        annal__db_bind_text(stmt, 1, annal_slice_of(part->slot->name));
    while (status == ANNAL_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        status = fn(part, (const char *)sqlite3_column_text(stmt, 0), stmt);
    if (status == ANNAL_OK && rc != SQLITE_DONE)
        status = annal__db_fail(part->verify->err, part->db, rc, "cannot read the database '%s'",
                                part->database->derived.path);
    sqlite3_finalize(stmt);
    return status;
}

static annal_status check_table(const struct part *part, const char *table, sqlite3_stmt *row)
{
    bool same = true;
    (void)row;
    annal_status status = compare_table(part, table, &same, part->verify->err);
    return status < 0 || same
               ? status
               : tell(part, table, false, "its rows differ from what the events yield");
}

/* ---- The second filling ---- */

/*
 * SELECTs of offsets in journals. settled: up to where `-- settle` has seen each session (for a
 * pack without this section: up to where its events were applied). applied: up to where the
 * sessions with such a record were applied.
 */
static const char settled[] = "SELECT session_id, MIN(offset) FROM _cursor "
                              "WHERE pack IN (?1, ?1 || ' settled') GROUP BY session_id "
                              "HAVING MIN(seq) > 0",
                  applied[] =
                      "SELECT session_id, offset FROM _cursor WHERE pack = ?1 AND session_id "
                      "IN (SELECT session_id FROM _cursor WHERE pack = ?1 || ' settled')";

static annal_status add_entries(const struct part *part, const char *select, struct plan *plan)
{
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_DONE;
    annal_status status = annal__db_prepare(part->db, select, &stmt, part->verify->err);
    if (status >= 0)
        annal__db_bind_text(stmt, 1, annal_slice_of(part->slot->name));
    while (status >= 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        status = annal__plan_add(plan, annal__db_column(stmt, 0), (annal_position){.seq = 1},
                                 (uint64_t)sqlite3_column_int64(stmt, 1), false);
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(part->verify->err, status, "cannot list the sessions of pack '%s'",
                    part->slot->name);
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__db_fail(part->verify->err, part->db, rc, "cannot read the database '%s'",
                                part->database->derived.path);
    sqlite3_finalize(stmt);
    return status;
}

static annal_status run_plan(const struct part *part, struct pack_fill *fill, struct plan *plan)
{
    annal_index_progress progress = {0};
    annal_status status = ANNAL_OK;
    while (status >= 0 && plan->next < plan->count)
        status = annal__indexer_batch(&fill->follower, plan, INT64_MAX, INT64_MAX, false, &progress,
                                      part->verify->err);
    return status;
}

static annal_status fill_up_to(const struct part *part, struct pack_fill *fill, const char *select,
                               bool unsettled)
{
    struct plan plan = {.unsettled = unsettled};
    annal_status status = add_entries(part, select, &plan);
    if (status >= 0)
        status = run_plan(part, fill, &plan);
    annal__plan_done(&plan);
    return status;
}

static annal_status fill_anew(const struct part *part, struct pack_fill *fill)
{
    annal_status status = fill_up_to(part, fill, settled, false);
    return status < 0 ? status : fill_up_to(part, fill, applied, true);
}

/* Apply the events that `fill`, the second copy of the pack's tables, lacks, up to the end of the
 * journals (rule 5). */
static annal_status fill_to_end(const struct part *part, struct pack_fill *fill,
                                annal_slice session)
{
    struct plan plan = {0};
    annal_status status = annal__plan_make(&fill->follower, &session, session.len > 0, NULL,
                                           INT32_MAX, &plan, part->verify->err);
    if (status >= 0)
        status = run_plan(part, fill, &plan);
    annal__plan_done(&plan);
    return status;
}

/* Find the database in memory that corresponds to this database, and the pack's part of it; NULL if
 * the pack does not run in memory. */
static annal_status find_fresh(const struct part *part, annal_slice session,
                               struct pack_fill **out_fill, struct pack_database **out_database)
{
    struct verify *verify = part->verify;
    *out_fill = NULL;
    *out_database = NULL;
    for (size_t i = 0; i < verify->fresh_set->slot_count; i++) {
        const struct pack_slot *slot = &verify->fresh_set->slots[i];
        struct pack_database *database = NULL;
        if (slot->pack == NULL || strcmp(slot->name, part->slot->name) != 0)
            continue;
        annal_status status = ANNAL_OK;
        if (annal__packs_slot_has_star(slot))
            status = annal__packs_database(verify->fresh, verify->fresh_set, slot, session,
                                           &database, verify->err);
        else
            while ((database = annal__packs_next(verify->fresh, verify->fresh_set, database)) !=
                       NULL &&
                   annal__pack_fill(database, slot) == NULL)
                ;
        *out_database = database;
        *out_fill = database == NULL ? NULL : annal__pack_fill(database, slot);
        return status;
    }
    return ANNAL_OK;
}

/* ---- Missing references, rule 4 ---- */

static annal_status report_orphans(const struct part *part, const char *table, sqlite3_stmt *row)
{
    char what[200];
    snprintf(what, sizeof what, "%lld rows refer to rows of '%.100s' that do not exist",
             (long long)sqlite3_column_int64(row, 2), (const char *)sqlite3_column_text(row, 1));
    return tell(part, table, true, what);
}

/* ---- The findings of the second filling, rule 5 ---- */

/* findings of one pack in one database that are reported singly; further findings are only
 * counted */
#define FINDINGS_REPORTED 20

static annal_status report_finding(const struct part *part, const char *session, sqlite3_stmt *row)
{
    char what[900];
    snprintf(what, sizeof what, "event %lld of session '%s': %s",
             (long long)sqlite3_column_int64(row, 1), session,
             (const char *)sqlite3_column_text(row, 2));
    return tell(part, NULL, false, what);
}

static annal_status report_more(const struct part *part, const char *count, sqlite3_stmt *row)
{
    char what[100];
    snprintf(what, sizeof what, "%s further events of this kind", count);
    const annal_pack_finding finding = {.pack = part->slot->name,
                                        .database = part->database->derived.path,
                                        .what = what,
                                        .count = (uint64_t)sqlite3_column_int64(row, 0)};
    return (annal_status)part->verify->fn(part->verify->arg, &finding);
}

static annal_status report_findings(const struct part *part)
{
    const struct part fresh = {
        .verify = part->verify, .database = part->database, .slot = part->slot, .db = part->fresh};
    char select[200];
    snprintf(select, sizeof select,
             "SELECT session_id, seq, what FROM _findings WHERE pack = ?1 "
             "ORDER BY session_id, offset LIMIT %d",
             FINDINGS_REPORTED);
    annal_status status = each_text(&fresh, select, report_finding);
    snprintf(select, sizeof select,
             "SELECT count(*) - %d AS more FROM _findings WHERE pack = ?1 HAVING more > 0",
             FINDINGS_REPORTED);
    return status != ANNAL_OK ? status : each_text(&fresh, select, report_more);
}

/* ---- A database ---- */

/* Compare the cursors in the existing database with those after the second filling (rule 3). */
static annal_status compare_cursors(const struct part *part, bool *out_same, annal_error *err)
{
    sqlite3_stmt *existing = NULL, *expected = NULL;
    const char *select = "SELECT * FROM _cursor WHERE pack IN (?1, ?1 || ' settled') "
                         "ORDER BY pack, session_id";
    annal_status status = annal__db_prepare(part->db, select, &existing, err);
    if (status >= 0)
        status = annal__db_prepare(part->fresh, select, &expected, err);
    if (status >= 0) {
        annal__db_bind_text(existing, 1, annal_slice_of(part->slot->name));
        annal__db_bind_text(expected, 1, annal_slice_of(part->slot->name));
        status = compare_rows(part, existing, expected, out_same, err);
    }
    sqlite3_finalize(existing);
    sqlite3_finalize(expected);
    return status;
}

/* Compare the existing tables of a pack with a copy that is filled from the journals for this
 * comparison (rules 2 to 4). */
static annal_status compare_part(struct part *part, struct pack_fill *fill)
{
    struct verify *verify = part->verify;
    bool same = false, is_waiting = false, writable = part->slot->pack->writable;
    annal_status status = each_text(part,
                                    "SELECT \"table\", parent, COUNT(*) FROM "
                                    "pragma_foreign_key_check WHERE \"table\" IN (SELECT name FROM "
                                    "_object WHERE pack = ?1 AND type = 'table') GROUP BY 1, 2",
                                    report_orphans);
    if (status == ANNAL_OK && writable)
        status = annal__outbox_waits(part->db, &is_waiting, verify->err);
    if (status == ANNAL_OK && is_waiting) /* rows of users are not in the journal yet (rule 6) */
        return tell(
            part, NULL, true,
            "rows of users are not in the journal yet; the next use of the database appends them");
    if (status == ANNAL_OK)
        status = fill_anew(part, fill);
    if (status == ANNAL_OK)
        status = compare_cursors(part, &same, verify->err);
    if (status == ANNAL_OK && !same)
        status =
            tell(part, NULL, true,
                 "the tables contain rows of deleted journals; the next catch-up removes them");
    else if (status == ANNAL_OK)
        status = each_text(part,
                           "SELECT name FROM _object WHERE pack = ?1 AND type = 'table' "
                           "ORDER BY name",
                           check_table);
    /* tables of users are rebuilt from the journal, too */
    if (status == ANNAL_OK && same && writable)
        status = each_text(part,
                           "SELECT name FROM _outbox_schema WHERE pack = 0 AND type = 'table' "
                           "ORDER BY name",
                           check_table);
    return status;
}

static annal_status verify_part(struct part *part, annal_slice session)
{
    struct verify *verify = part->verify;
    struct pack_database *database = NULL;
    struct pack_fill *fill = NULL;
    struct stamp stamp;
    annal_status status = find_fresh(part, session, &fill, &database);
    if (status != ANNAL_OK || fill == NULL)
        return status;
    status = annal__derived_reader(&database->derived, database->derived.wait_ms, &part->fresh,
                                   &stamp, verify->err);
    if (status == ANNAL_OK && fill->left_out)
        status = tell(part, NULL, false, fill->why.message);
    else if (status == ANNAL_OK && part->db != NULL)
        status = compare_part(part, fill);
    if (status == ANNAL_OK && !fill->left_out)
        status = fill_to_end(part, fill, session);
    if (status == ANNAL_OK)
        status = report_findings(part);
    annal__db_close(part->fresh);
    part->fresh = NULL;
    return status;
}

/* Return whether the existing tables were created from the current text of this pack. */
static bool is_run(const struct pack_database *database, const struct pack_fill *fill, sqlite3 *db)
{
    bool current = false;
    return !fill->left_out &&
           database->derived.ops->is_current(database->derived.arg, db, &current, NULL) >= 0 &&
           current;
}

static annal_status verify_database(void *arg, struct pack_database *database, annal_slice session,
                                    annal_error *err)
{
    struct verify *verify = arg;
    sqlite3 *db = NULL;
    struct stamp stamp;
    annal_status status = ANNAL_OK;
    if (!database->derived.private &&
        annal__file_is_there(annal__store_io(verify->index->store), database->derived.path)) {
        status =
            annal__derived_reader(&database->derived, database->derived.wait_ms, &db, &stamp, err);
        if (status >= 0)
            status = annal__db_begin(db, err);
    }
    for (size_t i = 0; status == ANNAL_OK && i < database->fill_count; i++) {
        struct pack_fill *fill = &database->fills[i];
        struct part part = {.verify = verify, .database = database, .slot = fill->slot};
        if (db != NULL && is_run(database, fill, db))
            part.db = db;
        status = fill->left_out ? tell(&part, NULL, false, fill->why.message)
                                : verify_part(&part, session);
    }
    annal__db_close(db);
    if (database->star != NULL)
        annal__pack_rest(database);
    return status;
}

static annal_status report_not_run(const struct verify *verify, const struct pack_slot *slot)
{
    char what[700];
    snprintf(what, sizeof what, "the pack is not run: %s", slot->error.message);
    const annal_pack_finding finding = {.pack = slot->name, .what = what, .count = 1};
    return (annal_status)verify->fn(verify->arg, &finding);
}

annal_status annal_pack_verify(annal_index *index, annal_pack_finding_fn fn, void *arg,
                               annal_error *err)
{
    struct verify verify = {.index = index, .fn = fn, .arg = arg, .err = err};
    annal_status status = annal__packs_get(index, &verify.set, err);
    if (status >= 0 && verify.set->slot_count > 0)
        status =
            annal__index_open_private(index->store, index->derived.wait_ms, &verify.fresh, err);
    if (status >= 0 && verify.fresh != NULL)
        status = annal__packs_get(verify.fresh, &verify.fresh_set, err);
    if (status < 0 || verify.fresh == NULL)
        goto done;
    for (size_t i = 0; status == ANNAL_OK && i < verify.set->slot_count; i++)
        if (verify.set->slots[i].pack == NULL)
            status = report_not_run(&verify, &verify.set->slots[i]);
    if (status == ANNAL_OK)
        status = annal__packs_each(index, verify.set, PACK_EVERYONE, NULL, 0, verify_database,
                                   &verify, err);

done:
    if (verify.fresh != NULL)
        annal__packs_put(verify.fresh, verify.fresh_set);
    annal_index_close(verify.fresh);
    annal__packs_put(index, verify.set);
    return status;
}
