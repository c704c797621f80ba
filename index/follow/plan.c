/* SPDX-License-Identifier: Apache-2.0 */
#include "index/follow/plan.h"

#include "index/db/db.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <stdio.h>
#include <string.h>

annal_slice annal__plan_session(const struct plan *plan, const struct plan_entry *entry)
{
    return (annal_slice){plan->names.ptr + entry->name_at, entry->name_bytes};
}

void annal__plan_done(struct plan *plan)
{
    annal__buf_done(&plan->names);
    annal__free(plan->entries);
    plan->entries = NULL;
    plan->count = plan->next = 0;
}

annal_status annal__plan_add(struct plan *plan, annal_slice session, annal_position from,
                             uint64_t target, bool gone)
{
    struct plan_entry *entry = annal__array_add(&plan->entries, &plan->count, sizeof *entry);
    if (entry == NULL)
        return ANNAL_ERR_NOMEM;
    *entry = (struct plan_entry){.name_at = plan->names.len,
                                 .name_bytes = session.len,
                                 .from = from,
                                 .target = target,
                                 .gone = gone};
    annal_status status = annal__buf_append_slice(&plan->names, session);
    plan->count -= status < 0;
    return status;
}

/* A merge of the journals and the cursors, both in order of session id. */
struct merge {
    const struct follower *follower;
    struct plan *plan;
    sqlite3_stmt *cursors;
    int rc; /* result of the last sqlite3_step() of cursors */
};

static int compare(annal_slice a, annal_slice b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static annal_position cursor_row(sqlite3_stmt *stmt, int column)
{
    return (annal_position){.seq = (uint64_t)sqlite3_column_int64(stmt, column),
                            .offset = (uint64_t)sqlite3_column_int64(stmt, column + 1),
                            .h_before = (uint64_t)sqlite3_column_int64(stmt, column + 2)};
}

static void merge_step(struct merge *merge)
{
    merge->rc = sqlite3_step(merge->cursors);
}

/* Add entries for the cursors before `session` (NULL: all that are left), whose sessions have no
 * journal. */
static annal_status merge_gone(struct merge *merge, const annal_slice *session)
{
    annal_status status = ANNAL_OK;
    while (status >= 0 && merge->rc == SQLITE_ROW) {
        annal_slice name = annal__db_column(merge->cursors, 3);
        if (session != NULL && compare(name, *session) >= 0)
            break;
        status = annal__plan_add(merge->plan, name, cursor_row(merge->cursors, 0), 0, true);
        merge_step(merge);
    }
    return status;
}

static int merge_journal(void *arg, annal_slice session, uint64_t bytes)
{
    struct merge *merge = arg;
    annal_status status = merge_gone(merge, &session);
    merge->plan->journals++;
    annal_position from = {0};
    if (status >= 0 && merge->rc == SQLITE_ROW &&
        compare(annal__db_column(merge->cursors, 3), session) == 0) {
        from = cursor_row(merge->cursors, 0);
        merge_step(merge);
    }
    if (status >= 0 && from.offset != bytes && annal__follower_feeds(merge->follower, session))
        status = annal__plan_add(merge->plan, session, from, bytes, false);
    return status;
}

static int list_journal(void *arg, annal_slice session, uint64_t bytes)
{
    return annal__plan_add(arg, session, (annal_position){0}, bytes, false);
}

/* List every journal of the store as an entry, sorted by session id. The target of an entry is the
 * current size of its journal. */
static annal_status list_journals(annal_store *store, struct plan *journals, annal_error *err)
{
    annal_status status = annal_session_each(store, list_journal, journals, err);
    journals->listed = status >= 0;
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status, "cannot list the sessions to index");
    return status;
}

static annal_status merge_list(struct merge *merge, const struct plan *journals)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < journals->count; i++)
        status =
            (annal_status)merge_journal(merge, annal__plan_session(journals, &journals->entries[i]),
                                        journals->entries[i].target);
    return status;
}

static annal_status plan_all(const struct follower *follower, sqlite3 *db, struct plan *journals,
                             struct plan *plan, annal_error *err)
{
    struct merge merge = {.follower = follower, .plan = plan};
    annal_status status = ANNAL_OK;
    if (journals != NULL && !journals->listed) {
        journals->watched = plan->watched;
        status = list_journals(follower->derived->store, journals, err);
    }
    if (journals != NULL)
        plan->watched = journals->watched;
    if (status >= 0)
        status = annal__follower_all_cursors(follower, db, &merge.cursors, err);
    if (status >= 0) {
        merge_step(&merge);
        status = journals != NULL
                     ? merge_list(&merge, journals)
                     : annal_session_each(follower->derived->store, merge_journal, &merge, err);
    }
    if (status >= 0)
        status = merge_gone(&merge, NULL);
    if (status >= 0 && merge.rc != SQLITE_DONE)
        status = annal__db_fail(err, db, merge.rc, "cannot read the database '%s'",
                                follower->derived->path);
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status, "cannot list the sessions to index");
    sqlite3_finalize(merge.cursors);
    return status;
}

annal_status annal__plan_cursor(sqlite3_stmt *get_cursor, annal_slice session,
                                annal_position *out_from, bool *out_found, annal_error *err)
{
    annal_status status = ANNAL_OK;
    annal__db_bind_text(get_cursor, 1, session);
    int rc = sqlite3_step(get_cursor);
    *out_found = rc == SQLITE_ROW;
    *out_from = *out_found ? cursor_row(get_cursor, 0) : (annal_position){.seq = 1};
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status =
            annal__db_fail(err, sqlite3_db_handle(get_cursor), rc,
                           "cannot read how far session '%.*s' is indexed", ANNAL_FMT(session));
    sqlite3_reset(get_cursor);
    return status;
}

/*
 * Plan a single session, comparing the hash of its last event, too: a journal of the same size may
 * be another journal.
 */
static annal_status plan_one(const struct follower *follower, sqlite3 *db, annal_slice session,
                             struct plan *plan, annal_error *err)
{
    annal_position from;
    bool known = false;
    annal_session_info info;
    sqlite3_stmt *get_cursor = NULL;
    if (!annal__follower_feeds(follower, session))
        return ANNAL_OK;
    annal_status status = annal__follower_kept_cursor(follower, db, &get_cursor, err);
    if (status >= 0)
        status = annal__plan_cursor(get_cursor, session, &from, &known, err);
    if (status < 0)
        return status;
    if (!known)
        from = (annal_position){0};
    status = annal_session_info_get(follower->derived->store, session, &info, err);
    if (status == ANNAL_ERR_CORRUPT && annal__stray_is(follower->derived->store, session))
        status = ANNAL_ERR_NOTFOUND;
    if (annal__error_is_io(status) && annal__stray_is(follower->derived->store, session))
        /* this user may not read the journal: rows that another user indexed stay (rule (6) of
         * stray.h) */
        return ANNAL_OK;
    if (status == ANNAL_ERR_NOTFOUND && !known)
        return ANNAL_OK;
    if (status == ANNAL_ERR_NOTFOUND)
        status = annal__plan_add(plan, session, from, 0, true);
    else if (status >= 0 && !(known && info.end_offset == from.offset &&
                              info.last_h == from.h_before && info.bytes == from.offset))
        status = annal__plan_add(plan, session, from, info.bytes, false);
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status, "cannot list the sessions to index");
    return status;
}

/* ---- Plans for all sessions ---- */

/* Return the number of the last change of a journal that is in the tables of this database, or 0 if
 * it is not known. */
static uint64_t whole_until(const struct follower *follower, struct stamp stamp)
{
    pthread_mutex_lock(&follower->derived->readers.mutex);
    const struct whole *whole = &follower->whole;
    bool same = annal__derived_stamp_holds(stamp, whole->stamp);
    uint64_t number = same ? whole->watched : 0;
    pthread_mutex_unlock(&follower->derived->readers.mutex);
    return number;
}

void annal__plan_note_whole(struct follower *follower, const struct plan *plan)
{
    struct whole *whole = &follower->whole;
    pthread_mutex_lock(&follower->derived->readers.mutex);
    if (plan->journals >= WATCHED_LEAST)
        atomic_store(&follower->is_large, true);
    if (whole->stamp.id != plan->stamp.id || whole->watched < plan->watched)
        *whole = (struct whole){plan->stamp, plan->watched};
    pthread_mutex_unlock(&follower->derived->readers.mutex);
}

/* Plan the sessions whose journals changed since the follower was caught up on all. Returns false
 * if they are not known, or if one cannot be planned. */
static bool plan_changed(const struct follower *follower, sqlite3 *db, struct plan *plan)
{
    SCOPED_BUF names = {0};
    bool known = annal__journal_watch_changed(
        follower->derived->store, whole_until(follower, plan->stamp), &names, &plan->watched);
    for (size_t at = 0; known && at < names.len;) {
        annal_slice session = annal_slice_of(names.ptr + at);
        known = plan_one(follower, db, session, plan, NULL) >= 0;
        at += session.len + 1;
    }
    if (!known)
        annal__plan_done(plan);
    return known;
}

/*
 * Return whether an entry has something to index, before the lock is taken. If not: the end of its
 * journal is not valid, so that the journal stays longer than its cursor, or the file is the
 * journal of another session, which never has a cursor.
 */
static bool has_more(const struct follower *follower, annal_slice session,
                     const struct plan_entry *entry)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    if (entry->from.seq == 0 && !entry->gone)
        return !annal__stray_is(follower->derived->store, session);
    if (entry->gone || entry->from.offset > entry->target)
        return true;
    annal_status status =
        annal_cursor_open_at(follower->derived->store, session, entry->from.seq, entry->from.offset,
                             entry->from.h_before, &cursor, NULL);
    if (annal__error_is_io(status) && annal__stray_is(follower->derived->store, session))
        return false;
    if (status >= 0)
        status = annal_cursor_next(cursor, &event, NULL);
    annal_cursor_close(cursor);
    return status != ANNAL_END;
}

annal_status annal__plan_make(const struct follower *follower, const annal_slice *sessions,
                              size_t count, struct plan *journals, uint32_t wait_ms,
                              struct plan *plan, annal_error *err)
{
    sqlite3 *db = NULL;
    struct patience_limit limit;
    annal__patience_limit(&follower->derived->patience, &limit, annal__deadline_after(wait_ms));
    annal_status status = annal__derived_borrow(follower->derived, wait_ms, &db, &plan->stamp, err);
    if (status >= 0 && count == 0 &&
        !(atomic_load(&follower->is_large) && plan_changed(follower, db, plan)))
        status = plan_all(follower, db, journals, plan, err);
    for (size_t i = 0; status >= 0 && i < count; i++)
        status = plan_one(follower, db, sessions[i], plan, err);
    annal__derived_give(follower->derived, db, true);
    annal__patience_unlimit(&follower->derived->patience, &limit);
    return status;
}

void annal__plan_look_ahead(const struct follower *follower, struct plan *plan, uint64_t *out_bytes)
{
    size_t kept = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->count; i++) {
        struct plan_entry entry = plan->entries[i];
        if (!has_more(follower, annal__plan_session(plan, &entry), &entry))
            continue;
        plan->entries[kept++] = entry;
        if (entry.target > entry.from.offset)
            bytes += entry.target - entry.from.offset;
    }
    plan->count = kept;
    *out_bytes = bytes;
}

annal_status annal__plan_progress(const struct follower *follower, uint32_t wait_ms,
                                  char out[PLAN_PROGRESS_BYTES], uint64_t *out_left,
                                  annal_error *err)
{
    struct plan all = {0}, left = {0};
    uint64_t bytes = 0;
    annal_status status = list_journals(follower->derived->store, &all, err);
    if (status >= 0)
        status = annal__plan_make(follower, NULL, 0, &all, wait_ms, &left, err);
    if (status >= 0)
        annal__plan_look_ahead(follower, &left, out_left);
    for (size_t i = 0; i < all.count; i++)
        if (annal__follower_feeds(follower, annal__plan_session(&all, &all.entries[i])))
            bytes += all.entries[i].target;
    if (status >= 0)
        snprintf(out, PLAN_PROGRESS_BYTES, "hold %.1f of %.1f MB of the journals so far",
                 (double)(bytes - (*out_left < bytes ? *out_left : bytes)) / 1e6,
                 (double)bytes / 1e6);
    annal__plan_done(&all);
    annal__plan_done(&left);
    return status;
}
