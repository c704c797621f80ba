/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tables that a guarded append reads are locked, updated and released (guard.c, rules 1 and
 * 5).
 *
 * (1) While this process waits for a lock, it may own the session to which the holder of the lock
 *     wants to append, so that each waits for the other. The keeper releases it; in a store without
 *     a keeper, the waiting thread does.
 * (2) Guards read rows of other sessions, too. The rows of an event that was appended through
 *     guards are in the tables before the next guarded append reads them, with three exceptions:
 *     its process died between the append and the commit of the tables, a power cut removed the
 *     transaction, or the pack was not enabled. The note of the database's lock shows these cases
 *     (index_lock.h, rule 5): the sessions that may be missing are caught up first, in slices like
 *     every catch-up, until nothing is missing under the lock. Without these cases the note is only
 *     read, and written before and after the append. A journal that cannot be read is logged and
 *     skipped, as in every catch-up.
 * (3) Much may be missing: a pack was enabled, its tables were dropped, or a large import bypassed
 *     the guards. A guard over tables that lack sessions would allow what it forbids, and SQL does
 *     not say which rows of other sessions it reads. So the append catches up for a twentieth of
 *     the time that it may wait. If more than a MiB is left, it is refused, with a message that
 *     says how far the tables are: the next attempt gets further, and no caller waits for minutes.
 */
#include "index/guard/guard.h"

#include "index/follow/plan.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <string.h>

/* time in ms to wait for a lock before this process releases the sessions that it owns: rule (1) */
#define PATIENCE_MS 20
/* maximum number of rounds of catching up without the lock; after these, the rest is caught up in
 * one transaction: rule (2) */
#define ROUNDS_MAX 5
#define MUCH_BYTES (1u << 20)
/* one catch-up without the lock takes at most wait_ms / PATIENCE_PARTS: half a second of ten
 * seconds (rule 3) */
#define PATIENCE_PARTS 20

/* ---- What guards and fills read ---- */

static annal_status catch_up(const struct guard_call *call, const struct guard_database *database,
                             annal_slice session, annal_error *err)
{
    if (database->packs != NULL)
        return annal__pack_catch_up(database->packs, session, err);
    return annal__indexer_catch_up(&call->index->follower, session, err);
}

/*
 * Catch up all sessions with this prefix whose journals contain events that are not in the tables.
 */
static annal_status read_many(const struct guard_call *call, const struct guard_database *database,
                              struct follower *follower, annal_slice prefix, annal_error *err)
{
    struct plan plan = {0};
    annal_status status = annal__plan_make(follower, NULL, 0, NULL, 0, &plan, err);
    for (size_t i = 0; status >= 0 && i < plan.count; i++) {
        annal_slice session = annal__plan_session(&plan, &plan.entries[i]);
        if (session.len >= prefix.len && memcmp(session.ptr, prefix.ptr, prefix.len) == 0)
            status = catch_up(call, database, session, err);
    }
    annal__plan_done(&plan);
    return status;
}

annal_status annal__guard_named(annal_slice data, const char *item, struct buf *text,
                                annal_slice *out_session)
{
    SCOPED_BUF path = {0}, scratch = {0};
    annal_slice value = {0}, named = {0};
    const char *field = strchr(item, '$') + 1;
    for (const char *c = field; *c != '\0'; c++)
        if (c[0] != ':' || c[1] != ':')
            (void)annal__buf_append(&path, c[0] == ':' ? "." : c, 1);
    if (annal__buf_cstr(&path) != NULL)
        value = annal__json_member(data, path.ptr);
    bool found = value.len > 0 && value.ptr[0] == '"' &&
                 annal__json_text(value, &scratch, &named) == ANNAL_OK &&
                 annal__buf_append(text, item, (size_t)(field - item) - 1) == ANNAL_OK &&
                 annal__buf_append_slice(text, named) == ANNAL_OK;
    *out_session = annal__buf_slice(text);
    return found && annal_session_id_check(*out_session, NULL) == ANNAL_OK ? ANNAL_OK
                                                                           : ANNAL_ERR_NOTFOUND;
}

/* Catch up the session that an item "name$field" means for this data, if there is one. */
static annal_status read_named(const struct guard_call *call, const struct guard_database *database,
                               const char *item, annal_slice data, annal_error *err)
{
    SCOPED_BUF text = {0};
    annal_slice session;
    annal_status status = ANNAL_OK;
    if (annal__guard_named(data, item, &text, &session) == ANNAL_OK)
        status = catch_up(call, database, session, err);
    return status;
}

static annal_status read_others(const struct guard_call *call,
                                const struct guard_database *database, struct follower *follower,
                                const struct pack_section *section, annal_slice data,
                                annal_error *err)
{
    annal_status status = ANNAL_OK;
    const char *at = section->reads == NULL ? "" : section->reads;
    for (; status >= 0 && *at != '\0'; at += strlen(at) + 1) {
        size_t len = strlen(at);
        if (strchr(at, '$') != NULL)
            status = read_named(call, database, at, data, err);
        else if (at[len - 1] == '*')
            status = read_many(call, database, follower, (annal_slice){at, len - 1}, err);
        else
            status = catch_up(call, database, annal_slice_of(at), err);
    }
    return status;
}

static const annal_pack *pack_of(const struct guard_call *call,
                                 const struct guard_database *database, size_t i)
{
    return database->packs == NULL ? call->index->core : database->packs->fills[i].slot->pack;
}

/* Catch up the database on every session that its guards and fills will read. */
static annal_status read_all(const struct guard_call *call, const struct guard_database *database,
                             annal_error *err)
{
    annal_status status = catch_up(call, database, call->session, err);
    struct follower *follower;
    for (size_t i = 0; status >= 0 && (follower = annal__guard_follower(call, database, i)) != NULL;
         i++) {
        const annal_pack *pack = pack_of(call, database, i);
        if (!annal__guard_cares(call, pack, false))
            continue;
        if (follower->applier == NULL)
            return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                               "append to session '%.*s': cannot check the guards of pack '%s'; "
                               "run 'annal pack list' to see why",
                               ANNAL_FMT(call->session), pack->name);
        for (size_t j = 0; status >= 0 && j < pack->section_count; j++)
            for (size_t k = 0; status >= 0 && k < call->count; k++)
                if (annal__guard_is_of_interest(&pack->sections[j], false) &&
                    annal__pack_section_takes(&pack->sections[j], call->given[k].type))
                    status = read_others(call, database, follower, &pack->sections[j],
                                         call->plain[k], err);
    }
    return status;
}

/* ---- Locks and notes ---- */

/* Take the lock and begin a transaction. While waiting in a store without a keeper, release
 * sessions for which other processes wait (rule 1). */
static annal_status begin(struct guard_call *call, struct guard_database *database,
                          annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool patient = annal__store_has_keeper(call->index->store);
    do {
        int64_t until_us = patient ? call->deadline_us : annal__deadline_after(PATIENCE_MS);
        status = annal__derived_begin(
            database->derived, until_us < call->deadline_us ? until_us : call->deadline_us, err);
        if (status == ANNAL_ERR_BUSY && !patient && annal_store_keep(call->index->store, NULL) < 0)
            patient =
                true; /* annal_store_keep() failed to release sessions: from now on only wait */
    } while (status == ANNAL_ERR_BUSY && !annal__deadline_passed(call->deadline_us));
    database->begun = status >= 0;
    return status;
}

/* Write the note in the file of a database's lock: up to which transaction the tables are up to
 * date (rule 2), and the session of the running append; empty: no append is running. */
static bool write_note(const struct guard_call *call, const struct guard_database *database,
                       int64_t transactions, annal_slice session)
{
    struct lock_note note = {.packs = call->set->seen,
                             .database = database->derived->stamp.id,
                             .transactions = transactions,
                             .session_bytes = (uint32_t)session.len};
    memcpy(note.boot, annal__store_boot(call->index->store), sizeof note.boot);
    if (session.len > 0)
        memcpy(note.session, session.ptr, session.len);
    return annal__index_lock_note_write(&database->derived->lock, &note);
}

annal_status annal__guard_end(struct guard_call *call, bool keep, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < call->database_count; i++) {
        struct guard_database *database = &call->databases[i];
        if (!database->begun)
            continue;
        database->begun = false;
        annal_status ended =
            annal__derived_finish(database->derived, keep, status >= 0 ? err : NULL);
        if (keep && ended >= 0 && database->marked && !database->derived->lock.wiped)
            (void)write_note(call, database, database->derived->stamp.commits + 1,
                             (annal_slice){0});
        annal__derived_release(database->derived);
        status = status < 0 ? status : ended;
    }
    return status;
}

/* Find the last seq of the session up to which all tables of the call are filled: call->head. */
static annal_status find_head(struct guard_call *call, annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool first = true;
    struct follower *follower;
    for (struct guard_walk walk = {0};
         status >= 0 && (follower = annal__guard_next(call, &walk)) != NULL;) {
        annal_position position;
        bool known = false;
        status = annal__plan_cursor(follower->get_cursor, call->session, &position, &known, err);
        uint64_t seq = status >= 0 && known ? position.seq - 1 : 0;
        if (first || seq < call->head)
            call->head = seq;
        first = false;
    }
    return status;
}

/* ---- Missing rows, rule 2 ---- */

/* The rows that may be missing according to the note: of all sessions (all), of one session, or
 * none (any is false). */
struct missing {
    struct lock_note note;
    annal_slice session;
    bool any, all;
};

static void find_missing(const struct guard_call *call, const struct guard_database *database,
                         struct missing *out)
{
    const struct lock_note *note = &out->note;
    out->all = !annal__index_lock_note_read(&database->derived->lock, &out->note) ||
               memcmp(note->boot, annal__store_boot(call->index->store), sizeof note->boot) != 0 ||
               note->packs != call->set->seen || note->database != database->derived->stamp.id ||
               note->transactions > database->derived->stamp.commits;
    out->session = (annal_slice){note->session, out->all ? 0 : note->session_bytes};
    out->any = out->all || out->session.len > 0;
}

/* Find out, under the lock, whether the journals contain events that are not in the tables. */
static annal_status lags(const struct guard_call *call, const struct guard_database *database,
                         const struct missing *missing, bool *out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    struct follower *follower;
    *out = false;
    for (size_t i = 0;
         status >= 0 && !*out && (follower = annal__guard_follower(call, database, i)) != NULL;
         i++) {
        struct plan plan = {0};
        uint64_t unused;
        if (follower->applier == NULL)
            continue;
        status = annal__plan_make(follower, &missing->session, missing->all ? 0 : 1, NULL,
                                  database->derived->wait_ms, &plan, err);
        if (status >= 0)
            annal__plan_look_ahead(follower, &plan, &unused);
        *out = plan.count > 0;
        annal__plan_done(&plan);
    }
    return status;
}

/*
 * Fail if the tables still lack more than MUCH_BYTES of the journals after the time for catching up
 * (rule 3). The message says how far the tables are filled, and why, if no progress was made. If
 * they lack less, return ANNAL_OK: the holder of the lock catches up the rest.
 */
static annal_status refuse_lag(const struct guard_call *call, const struct follower *follower,
                               uint64_t left_before, const annal_error *why, annal_error *err)
{
    char progress[PLAN_PROGRESS_BYTES];
    uint64_t left = 0;
    annal_status status =
        annal__plan_progress(follower, follower->derived->wait_ms, progress, &left, err);
    if (status < 0 || left <= MUCH_BYTES)
        return status;
    return annal__fail(err, ANNAL_ERR_BUSY,
                       "append to session '%.*s': cannot check guards yet, because the tables of "
                       "pack '%s' %s: try again%s%s",
                       ANNAL_FMT(call->session), follower->pack == NULL ? "core" : follower->pack,
                       progress, left < left_before ? "" : "; ",
                       left < left_before ? "" : why->message);
}

/* Catch up a follower without holding the lock, in slices, within a part of the time limit (rule
 * 3). */
static annal_status run_one_lagging(const struct guard_call *call, struct follower *follower,
                                    const struct missing *missing, annal_error *err)
{
    const annal_catch_up_options options = {.timeout_ms =
                                                1 + follower->derived->wait_ms / PATIENCE_PARTS};
    struct plan plan = {0};
    struct stamp stamp;
    uint64_t left = 0;
    bool stuck;
    annal_status status = annal__plan_make(follower, &missing->session, missing->all ? 0 : 1, NULL,
                                           options.timeout_ms, &plan, err);
    if (status >= 0)
        annal__plan_look_ahead(follower, &plan, &left);
    bool any = plan.count > 0;
    annal__plan_done(&plan);
    /* another process is creating the database: do nothing now, because begin_fresh() looks for
     * missing rows again under the lock */
    if (status == ANNAL_ERR_BUSY)
        return ANNAL_OK;
    if (status < 0 || !any)
        return status;
    annal_error why = {0};
    status = annal__indexer_run(follower, &missing->session, missing->all ? 0 : 1, NULL, &options,
                                &stamp, &stuck, &why);
    if (status == ANNAL_ERR_BUSY)
        return refuse_lag(call, follower, left, &why, err);
    return annal__error_pass(err, status, &why);
}

/* Apply missing events to all tables of a database that may lack rows. *out_unreadable is set to
 * true if a journal was skipped because it cannot be read. */
static annal_status run_lagging(const struct guard_call *call,
                                const struct guard_database *database,
                                const struct missing *missing, bool *out_unreadable,
                                annal_error *err)
{
    annal_status status = ANNAL_OK;
    struct follower *follower;
    for (size_t i = 0; status >= 0 && (follower = annal__guard_follower(call, database, i)) != NULL;
         i++) {
        annal_error why = {0};
        if (database->packs != NULL && database->packs->fills[i].left_out)
            continue;
        status = run_one_lagging(call, follower, missing, &why);
        if (status < 0 && status != ANNAL_ERR_BUSY && status != ANNAL_ERR_NOMEM) {
            annal__say(call->index->store, ANNAL_LOG_WARNING,
                       "guards are checked although '%s' lags: %s", database->derived->path,
                       why.message);
            *out_unreadable = true;
            status = ANNAL_OK;
        } else if (status < 0 && err != NULL) {
            *err = why;
        }
    }
    return status;
}

/*
 * Find out from the note, without the lock, whether the tables may lack many rows (rule 3): a
 * process that fills tables holds the lock most of the time.
 */
static bool may_lack_much(const struct guard_call *call, const struct guard_database *database)
{
    struct lock_note note;
    annal_store *store = call->index->store;
    annal_status status =
        annal__index_lock_note_peek(&database->derived->lock, annal_store_path(store), &note);
    return status == ANNAL_ERR_NOTFOUND ||
           (status >= 0 && (memcmp(note.boot, annal__store_boot(store), sizeof note.boot) != 0 ||
                            note.packs != call->set->seen));
}

/* Begin a transaction on a database whose tables lack no rows that the note reports. */
static annal_status begin_fresh(struct guard_call *call, struct guard_database *database,
                                annal_error *err)
{
    bool passed_over = false;
    if (may_lack_much(call, database)) {
        const struct missing all = {.any = true, .all = true};
        annal_status status = run_lagging(call, database, &all, &passed_over, err);
        if (status < 0)
            return status;
        passed_over = false;
    }
    for (unsigned round = 0;; round++) {
        struct missing missing;
        bool lagging = false;
        annal_status status = begin(call, database, err);
        if (status < 0)
            return status;
        find_missing(call, database, &missing);
        database->fresh = !missing.any;
        database->marked = false;
        if (missing.any)
            status = lags(call, database, &missing, &lagging, err);
        if (status >= 0 && missing.any && (!lagging || passed_over))
            database->fresh =
                write_note(call, database, database->derived->stamp.commits, (annal_slice){0});
        if (status < 0 || !lagging || passed_over)
            return status;
        /* other processes append faster than this one catches up: apply the rest in this
         * transaction. The note in the lock's file stays as it is until the commit. */
        if (round == ROUNDS_MAX) {
            for (size_t i = 0; status >= 0 && annal__guard_follower(call, database, i) != NULL; i++)
                status = read_many(call, database, annal__guard_follower(call, database, i),
                                   missing.session, err);
            return status;
        }
        database->begun = false;
        status = annal__derived_end(database->derived, true, err);
        if (status >= 0)
            status = run_lagging(call, database, &missing, &passed_over, err);
        if (status < 0)
            return status;
    }
}

/* ---- All steps ---- */

/* Return whether tables were emptied and rebuilt since the note was read: they then contain only
 * the sessions that were requested. */
static bool any_wiped(const struct guard_call *call)
{
    for (size_t i = 0; i < call->database_count; i++)
        if (call->databases[i].fresh && call->databases[i].derived->lock.wiped)
            return true;
    return false;
}

annal_status annal__guard_update(struct guard_call *call, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (unsigned round = 0; status >= 0 && (round == 0 || any_wiped(call)); round++) {
        if (round == ROUNDS_MAX)
            return annal__fail(err, ANNAL_ERR_BUSY,
                               "append to session '%.*s': other processes keep rebuilding the "
                               "tables that the guards read; try again",
                               ANNAL_FMT(call->session));
        if (round > 0)
            status = annal__guard_end(call, true, err);
        for (size_t i = 0; status >= 0 && i < call->database_count; i++) {
            if (!call->databases[i].begun)
                status = begin_fresh(call, &call->databases[i], err);
            if (status >= 0)
                status = read_all(call, &call->databases[i], err);
        }
    }
    return status >= 0 ? find_head(call, err) : status;
}

annal_status annal__guard_mark(struct guard_call *call, annal_error *err)
{
    for (size_t i = 0; i < call->database_count; i++) {
        struct guard_database *database = &call->databases[i];
        if (!database->fresh || database->marked)
            continue;
        database->marked =
            write_note(call, database, database->derived->stamp.commits, call->session);
        if (!database->marked)
            return annal__fail(err, ANNAL_ERR_IO,
                               "append to session '%.*s': cannot write the lock file '%s'",
                               ANNAL_FMT(call->session), database->derived->lock.name);
    }
    return ANNAL_OK;
}

annal_status annal__guard_catch_up(struct guard_call *call, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < call->database_count; i++)
        status = catch_up(call, &call->databases[i], call->session, err);
    return status;
}
