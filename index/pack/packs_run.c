/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling the databases of packs, and attaching them for readers.
 *
 * (1) If a pack cannot be filled, the failure is logged, the events that its tables lack are
 *     reported as a lag, and all other packs are filled.
 * (2) The databases of single sessions are caught up only for the requested sessions, or if all
 *     databases are requested explicitly, so that a SELECT does not open a thousand files.
 * (3) A reader attaches the file that was caught up. If another file has its name by then, the file
 *     was deleted in the meantime, and the new file is caught up, too. This is repeated at least
 *     ATTEMPTS_MAX times and until the caller's time limit, because on a slow machine the file is
 *     replaced more often between the two steps.
 */
#include "index/db/db.h"
#include "index/db/files.h"
#include "index/follow/plan.h"
#include "index/index.h"
#include "index/pack/applier.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <stdio.h>
#include <string.h>

/* maximum number of databases that are attached to a connection: SQLite's default limit */
#define ATTACHED_MAX 10
#define ATTEMPTS_MAX 5
/* time in ms that opening and closing an index wait for a shell that is writing */
#define DRAIN_MS 1000

/* ---- All requested databases ---- */

struct visit {
    annal_index *index;
    struct pack_set *set;
    const struct pack_slot *slot; /* pack whose databases of single sessions are visited */
    pack_database_fn fn;
    void *arg;
    annal_error *err;
};

static annal_status visit_session(struct visit *visit, annal_slice session)
{
    struct pack_database *database = NULL;
    annal_status status = annal__packs_database(visit->index, visit->set, visit->slot, session,
                                                &database, visit->err);
    if (status < 0 || database == NULL)
        return status;
    /* if several packs share the database, call fn only for the first of them */
    return database->fills[0].slot == visit->slot
               ? visit->fn(visit->arg, database, session, visit->err)
               : ANNAL_OK;
}

static int visit_journal(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    const struct visit *visit = arg;
    if (annal__stray_is(visit->index->store, session))
        return 0;
    return visit_session(arg, session);
}

annal_status annal__packs_each(annal_index *index, struct pack_set *set, enum pack_scope scope,
                               const annal_slice *sessions, size_t count, pack_database_fn fn,
                               void *arg, annal_error *err)
{
    struct visit visit = {.index = index, .set = set, .fn = fn, .arg = arg, .err = err};
    annal_status status = ANNAL_OK;
    struct pack_database *database = annal__packs_next(index, set, NULL);
    for (; status == ANNAL_OK && database != NULL;
         database = annal__packs_next(index, set, database))
        status = fn(arg, database, (annal_slice){0}, err);
    for (size_t i = 0; status == ANNAL_OK && i < set->slot_count; i++) {
        visit.slot = &set->slots[i];
        if (visit.slot->pack == NULL || !annal__packs_slot_has_star(visit.slot))
            continue;
        for (size_t j = 0; status == ANNAL_OK && j < count; j++)
            status = visit_session(&visit, sessions[j]);
        if (status == ANNAL_OK && count == 0 && scope == PACK_EVERYONE)
            status = annal_session_each(index->store, visit_journal, &visit, err);
    }
    return status;
}

/* ---- Catching up ---- */

struct catch_up {
    annal_index *index;
    const annal_slice *sessions;
    size_t count;
    annal_catch_up_options options;
    int64_t deadline_us;
    struct plan journals; /* list of all journals, once for all packs */
    /* why the tables of the last database could not be brought up to date; status 0: they could */
    annal_error why_lags;
};

static void note_caught_up(annal_index *index, struct pack_database *database, struct stamp stamp)
{
    pthread_mutex_lock(&index->packs.mutex);
    if (database->caught_up.id != stamp.id || database->caught_up.commits < stamp.commits)
        database->caught_up = stamp;
    pthread_mutex_unlock(&index->packs.mutex);
}

/*
 * Return the milliseconds that are left, but at least 1, so that every database is caught up a
 * little even if the first used up the time.
 */
static uint32_t time_left(int64_t deadline_us)
{
    if (deadline_us == INT64_MAX)
        return ANNAL_NO_TIMEOUT;
    int64_t left_ms = (deadline_us - annal__clock_monotonic_us()) / 1000;
    return left_ms < 1 ? 1 : (uint32_t)left_ms;
}

static annal_status catch_up_fill(struct catch_up *work, struct pack_database *database,
                                  struct pack_fill *fill, annal_slice session, annal_error *err)
{
    const annal_slice *sessions = session.len > 0 ? &session : work->sessions;
    size_t count = session.len > 0 ? 1 : work->count;
    struct stamp stamp = {0};
    bool stuck = false;
    annal_error why = {0};
    bool all = count == 0 || session.len > 0;
    if (fill->left_out)
        return ANNAL_OK;
    work->options.timeout_ms = time_left(work->deadline_us);
    annal_status status = annal__pack_take_in(database, fill, work->deadline_us, &why);
    /* number of sections that ran too long: each time it grows, a section is left out and another
     * attempt gets further */
    size_t spent;
    do {
        spent = annal__applier_spent(fill->follower.applier);
        if (status >= 0 || status == ANNAL_ERR_LIMIT)
            status = annal__indexer_run(&fill->follower, sessions, count, &work->journals,
                                        &work->options, &stamp, &stuck, &why);
    } while (status == ANNAL_ERR_LIMIT && annal__applier_spent(fill->follower.applier) > spent &&
             !annal__deadline_passed(work->deadline_us));
    if (status == ANNAL_OK && all)
        note_caught_up(work->index, database, stamp);
    if (status >= 0 || fill->left_out)
        return status < 0 ? ANNAL_OK : status;
    /*
     * Several packs may fail. The caller reports one reason: prefer that of a pack that timed out.
     */
    if (work->why_lags.status != ANNAL_ERR_BUSY)
        work->why_lags = why;
    if (status == ANNAL_ERR_BUSY || status == ANNAL_ERR_NOMEM)
        return annal__error_pass(err, status, &why);
    annal__say(work->index->store, ANNAL_LOG_WARNING, "the tables of pack '%s' lag: %s",
               fill->slot->name, why.message);
    return ANNAL_OK;
}

static annal_status catch_up_database(void *arg, struct pack_database *database,
                                      annal_slice session, annal_error *err)
{
    struct catch_up *work = arg;
    annal_status status = ANNAL_OK, busy = ANNAL_OK;
    work->why_lags = (annal_error){0};
    for (size_t i = 0; status == ANNAL_OK && !database->derived.frozen && i < database->fill_count;
         i++) {
        status = catch_up_fill(work, database, &database->fills[i], session, err);
        if (status == ANNAL_ERR_BUSY) { /* the lock is busy: continue with the next pack (rule 1) */
            busy = status;
            status = ANNAL_OK;
        }
    }
    if (session.len > 0 && work->count == 0)
        annal__pack_rest(database);
    return status == ANNAL_OK ? busy : status;
}

annal_status annal__packs_catch_up(annal_index *index, enum pack_scope scope,
                                   const annal_slice *sessions, size_t count,
                                   const annal_catch_up_options *options, annal_error *err)
{
    static const annal_catch_up_options defaults;
    struct pack_set *set = NULL;
    struct catch_up work = {.index = index, .sessions = sessions, .count = count};
    work.options = options == NULL ? defaults : *options;
    work.deadline_us = annal__deadline_after(
        work.options.timeout_ms == 0 ? index->derived.wait_ms : work.options.timeout_ms);
    annal_status status = annal__packs_get(index, &set, err);
    if (status >= 0)
        status =
            annal__packs_each(index, set, scope, sessions, count, catch_up_database, &work, err);
    annal__plan_done(&work.journals);
    annal__packs_put(index, set);
    return status;
}

/* ---- Rows of users ---- */

/* Turn rows that users wrote into a database into events. The deadline is in monotonic
 * microseconds. */
static void drain_database(struct pack_database *database, int64_t deadline_us)
{
    annal_error why = {0};
    annal_status status = ANNAL_OK;
    if (!database->derived.rollback || database->derived.frozen || database->derived.private ||
        !annal__file_is_there(annal__store_io(database->derived.store), database->derived.path))
        return;
    for (size_t i = 0; status >= 0 && i < database->fill_count; i++)
        status = annal__pack_take_in(database, &database->fills[i], deadline_us, &why);
    if (status < 0)
        annal__say(database->derived.store, ANNAL_LOG_INFO,
                   "rows written to '%s' were not turned into events yet and will be retried: %s",
                   database->derived.path, why.message);
}

void annal__packs_drain(annal_index *index, struct pack_set *set, const struct pack_slot *slot,
                        annal_slice session, int64_t deadline_us)
{
    struct pack_database *database = NULL;
    annal_error why = {0};
    if (annal__packs_database(index, set, slot, session, &database, &why) < 0)
        annal__say(index->store, ANNAL_LOG_INFO, "%s", why.message);
    else if (database != NULL)
        drain_database(database, deadline_us);
}

/* Turn rows that users wrote into a database into events, and close it if it belongs to a single
 * session, because there may be many. arg: the deadline, an int64_t. */
static annal_status drain_and_rest(void *arg, struct pack_database *database, annal_slice session,
                                   annal_error *err)
{
    const int64_t *deadline_us = arg;
    (void)session;
    (void)err;
    drain_database(database, *deadline_us);
    if (database->star != NULL)
        annal__pack_rest(database);
    return ANNAL_OK;
}

void annal__packs_drain_all(annal_index *index)
{
    struct pack_set *set = NULL;
    annal_error why = {0};
    int64_t deadline_us = annal__deadline_after(DRAIN_MS);
    bool any = false;
    annal_status status = annal__packs_get(index, &set, &why);
    for (size_t i = 0; status >= 0 && i < set->slot_count; i++)
        any = any || (set->slots[i].pack != NULL && set->slots[i].pack->writable);
    if (any)
        status = annal__packs_each(index, set, PACK_EVERYONE, NULL, 0, drain_and_rest, &deadline_us,
                                   &why);
    if (status < 0)
        annal__say(index->store, ANNAL_LOG_INFO, "%s", why.message);
    annal__packs_put(index, set);
}

/* ---- Rebuilding ---- */

struct rebuild {
    struct catch_up work;
    const char *name; /* name of the pack to rebuild; NULL: all packs */
    /* why the tables of the first pack that failed could not be filled; status 0: all were
     * filled */
    annal_error why_lags;
};

static annal_status rebuild_database(void *arg, struct pack_database *database, annal_slice session,
                                     annal_error *err)
{
    struct rebuild *rebuild = arg;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < database->fill_count; i++) {
        struct pack_fill *fill = &database->fills[i];
        if (rebuild->name != NULL && strcmp(fill->slot->name, rebuild->name) != 0)
            continue;
        rebuild->work.why_lags = (annal_error){0};
        status = annal__pack_empty(database, fill, rebuild->work.deadline_us, err);
        if (status == ANNAL_OK)
            status = catch_up_fill(&rebuild->work, database, fill, session, err);
        if (status == ANNAL_OK && fill->left_out && rebuild->name != NULL)
            status = annal__fail(err, fill->why.status, "%s", fill->why.message);
        else if (status < 0 && fill->left_out && rebuild->name == NULL)
            status = ANNAL_OK; /* the pack cannot run: continue with the next pack (rule 1) */
        if (rebuild->why_lags.status == 0)
            rebuild->why_lags = rebuild->work.why_lags;
    }
    if (database->star != NULL)
        annal__pack_rest(database);
    return status;
}

static annal_status find_slot(const struct pack_set *set, const char *name, annal_error *err)
{
    for (size_t i = 0; i < set->slot_count; i++) {
        const struct pack_slot *slot = &set->slots[i];
        if (strcmp(slot->name, name) != 0)
            continue;
        return slot->pack != NULL ? ANNAL_OK
                                  : annal__fail(err, slot->error.status, "%s", slot->error.message);
    }
    return annal__fail(err, ANNAL_ERR_NOTFOUND, "pack '%s' is not enabled in this store", name);
}

annal_status annal__packs_rebuild(annal_index *index, const char *name,
                                  const annal_catch_up_options *options, annal_error *err)
{
    struct pack_set *set = NULL;
    struct rebuild rebuild = {.work = {.index = index, .options = *options}, .name = name};
    rebuild.work.deadline_us = annal__deadline_after(options->timeout_ms);
    annal_status status = annal__packs_get(index, &set, err);
    if (status >= 0 && name != NULL)
        status = find_slot(set, name, err);
    if (status >= 0)
        status =
            annal__packs_each(index, set, PACK_EVERYONE, NULL, 0, rebuild_database, &rebuild, err);
    if (status == ANNAL_OK && name != NULL && rebuild.why_lags.status < 0)
        status = annal__fail(err, rebuild.why_lags.status, "%s", rebuild.why_lags.message);
    annal__plan_done(&rebuild.work.journals);
    annal__packs_put(index, set);
    return status;
}

/* ---- Readers ---- */

struct reading {
    annal_index *index;
    sqlite3 *db;
    annal_slice session;
    bool as_indexed;
    struct catch_up work;
    annal_lag *lag;
    size_t attached;
};

/* Add the bytes of journals that the tables of a database lack to the lag: at least 1, even if the
 * number is not known. */
static void add_lag(struct reading *reading, struct pack_database *database, annal_slice session,
                    const annal_error *why)
{
    annal_lag *lag = reading->lag;
    uint64_t all = 0;
    for (size_t i = 0; lag != NULL && i < database->fill_count; i++) {
        struct plan plan = {0};
        uint64_t bytes = 0;
        if (annal__plan_make(&database->fills[i].follower, &session, session.len > 0, NULL,
                             database->derived.wait_ms, &plan, NULL) >= 0)
            annal__plan_look_ahead(&database->fills[i].follower, &plan, &bytes);
        annal__plan_done(&plan);
        all += bytes;
    }
    if (lag == NULL)
        return;
    lag->bytes += all == 0 ? 1 : all;
    if (lag->message[0] == '\0')
        snprintf(lag->message, sizeof lag->message, "the tables of pack '%.80s' lag: %.140s",
                 database->fills[0].slot->name, why->message);
}

/*
 * Fail with the reason why the tables are not filled, because a caller without an annal_lag would
 * not notice that rows are missing.
 */
static annal_status refuse_lag(struct pack_database *database, const annal_error *why,
                               annal_error *err)
{
    for (size_t i = 0; i < database->fill_count; i++) {
        char progress[PLAN_PROGRESS_BYTES];
        uint64_t left = 0;
        const struct pack_fill *fill = &database->fills[i];
        annal_status status =
            annal__plan_progress(&fill->follower, database->derived.wait_ms, progress, &left, err);
        if (status < 0)
            return status;
        if (left > 0)
            return annal__fail(err, ANNAL_ERR_BUSY, "the tables of pack '%s' %s: try again (%s)",
                               fill->slot->name, progress, why->message);
    }
    return annal__fail(err, ANNAL_ERR_BUSY, "the tables of pack '%s' lag: %s",
                       database->fills[0].slot->name, why->message);
}

static annal_status run_named(sqlite3 *db, const char *format, const char *path, const char *stem,
                              annal_error *err)
{
    char *sql = path == NULL ? sqlite3_mprintf(format, stem) : sqlite3_mprintf(format, path, stem);
    if (sql == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "attach '%s': out of memory", stem);
    annal_status status = annal__db_exec(db, sql, err);
    sqlite3_free(sql);
    return status;
}

/* Attach a database (rule 3). *out_same stays false if its file is not the file that was caught up;
 * it is detached then. */
static annal_status attach_once(struct reading *reading, struct pack_database *database,
                                bool *out_same, annal_error *err)
{
    struct stamp stamp = {0}, caught_up;
    sqlite3 *reader = NULL;
    /* annal__derived_reader() creates a missing file and refuses a foreign file; ATTACH would do
     * neither */
    annal_status status =
        annal__derived_reader(&database->derived, database->derived.wait_ms, &reader, &stamp, err);
    annal__db_close(reader);
    pthread_mutex_lock(&reading->index->packs.mutex);
    caught_up = database->caught_up;
    pthread_mutex_unlock(&reading->index->packs.mutex);
    if (status >= 0)
        status = run_named(reading->db, "ATTACH %Q AS \"%w\"", database->derived.path,
                           database->stem, err);
    if (status >= 0) {
        status = annal__derived_check(&database->derived, reading->db, database->stem, err);
        if (status >= 0)
            status = annal__derived_read_stamp(reading->db, database->stem, &stamp, err);
        *out_same = status >= 0 && (caught_up.id == 0 || database->derived.frozen ||
                                    annal__derived_stamp_holds(stamp, caught_up));
        if (!*out_same)
            (void)run_named(reading->db, "DETACH \"%w\"", NULL, database->stem, NULL);
    }
    return status;
}

static annal_status attach_database(void *arg, struct pack_database *database, annal_slice session,
                                    annal_error *err)
{
    struct reading *reading = arg;
    annal_error why = {0};
    annal_status status = ANNAL_OK;
    bool same = false, ended = false;
    reading->work.why_lags = (annal_error){0};
    if (reading->attached == ATTACHED_MAX) {
        annal__say(reading->index->store, ANNAL_LOG_WARNING,
                   "cannot attach the database '%s': %d other databases are attached, the maximum",
                   database->derived.path, ATTACHED_MAX);
        return ANNAL_OK;
    }
    for (unsigned attempt = 0, failed = 0; !same && !ended; attempt++) {
        annal_error why_lags = {0};
        why = (annal_error){0};
        if (attempt > 0 || !reading->as_indexed)
            status = catch_up_database(&reading->work, database, session, &why_lags);
        if (status == ANNAL_ERR_NOMEM)
            return annal__error_pass(err, status, &why_lags);
        status = attach_once(reading, database, &same, &why);
        failed = status < 0 && annal__derived_is_hopeless(&why) ? failed + 1 : 0;
        ended = failed == ATTEMPTS_MAX ||
                (attempt + 1 >= ATTEMPTS_MAX && annal__deadline_passed(reading->work.deadline_us));
        if (status < 0 && !ended)
            annal__deadline_pause(attempt);
    }
    if (reading->work.why_lags.status == ANNAL_ERR_BUSY && reading->lag == NULL)
        return refuse_lag(database, &reading->work.why_lags, err);
    if (reading->work.why_lags.status < 0)
        add_lag(reading, database, session, &reading->work.why_lags);
    if (same)
        reading->attached++;
    else /* the query continues without this database: rule (1) */
        annal__say(reading->index->store, ANNAL_LOG_WARNING, "cannot query the database '%s': %s",
                   database->derived.path,
                   why.status < 0 ? why.message
                                  : "another process deletes the database repeatedly");
    return ANNAL_OK;
}

static annal_status heal_database(void *arg, struct pack_database *database, annal_slice session,
                                  annal_error *err)
{
    bool *healed = arg;
    (void)session;
    (void)err;
    if (annal__file_is_there(annal__store_io(database->derived.store), database->derived.path))
        *healed = annal__derived_heal_if_corrupt(&database->derived) || *healed;
    return ANNAL_OK;
}

bool annal__packs_heal(annal_index *index, annal_slice session)
{
    struct pack_set *set = NULL;
    bool healed = false;
    annal_status status = annal__packs_get(index, &set, NULL);
    if (status >= 0)
        status = annal__packs_each(index, set, PACK_SHARED, &session, session.len > 0,
                                   heal_database, &healed, NULL);
    annal__packs_put(index, set);
    return healed;
}

/* ---- Findings ---- */

struct findings {
    annal_index *index;
    annal_slice session; /* session whose findings are reported; empty: all sessions */
    annal_index_finding_fn fn;
    void *arg;
    int verdict; /* last result of fn, which ended the calls if it is not 0 */
    bool begun;
};

static annal_status hand_out_findings(struct findings *findings, sqlite3 *db,
                                      const struct pack_database *database, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_DONE;
    annal_status status =
        annal__db_prepare(db,
                          "SELECT session_id, seq, offset, length, kind, what FROM _findings "
                          "WHERE ?1 IN ('', session_id) ORDER BY session_id, offset",
                          &stmt, err);
    if (status >= 0)
        annal__db_bind_text(stmt, 1, findings->session);
    while (status >= 0 && findings->verdict == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const annal_index_finding finding = annal__follower_read_finding(stmt);
        findings->begun = true;
        findings->verdict = findings->fn(findings->arg, &finding);
    }
    if (status >= 0 && rc != SQLITE_ROW && rc != SQLITE_DONE)
        status =
            annal__db_fail(err, db, rc, "cannot read the database '%s'", database->derived.path);
    sqlite3_finalize(stmt);
    return status;
}

static annal_status read_findings(struct findings *findings, struct pack_database *database,
                                  annal_error *err)
{
    struct stamp unused;
    sqlite3 *db = NULL;
    annal_status status =
        annal__derived_borrow(&database->derived, database->derived.wait_ms, &db, &unused, err);
    if (status >= 0)
        status = hand_out_findings(findings, db, database, err);
    annal__derived_give(&database->derived, db, status >= 0);
    return status;
}

/*
 * Report the findings of a database, if it exists. A damaged database is first rebuilt; a database
 * that cannot be read is reported as a finding.
 */
static annal_status find_in_database(void *arg, struct pack_database *database, annal_slice session,
                                     annal_error *err)
{
    struct findings *findings = arg;
    annal_error why = {0};
    if (findings->verdict != 0 || !annal__derived_exists(&database->derived))
        return ANNAL_OK;
    findings->begun = false;
    annal_status status = read_findings(findings, database, &why);
    if (status == ANNAL_ERR_CORRUPT && !findings->begun &&
        annal__derived_heal_if_corrupt(&database->derived)) {
        struct catch_up work = {.index = findings->index, .deadline_us = INT64_MAX};
        status = catch_up_database(&work, database, session, &why);
        annal__plan_done(&work.journals);
        if (status >= 0)
            status = read_findings(findings, database, &why);
    }
    if (database->star != NULL)
        annal__pack_rest(database);
    if (status == ANNAL_ERR_NOMEM && err != NULL)
        *err = why;
    if (status >= 0 || status == ANNAL_ERR_NOMEM)
        return status;
    const annal_index_finding finding = {.kind = ANNAL_SLICE("database"),
                                         .what = annal_slice_of(why.message)};
    findings->verdict = findings->fn(findings->arg, &finding);
    return ANNAL_OK;
}

annal_status annal__packs_findings(annal_index *index, annal_slice session,
                                   annal_index_finding_fn fn, void *arg, annal_error *err)
{
    struct stamp unused;
    struct pack_set *set = NULL;
    annal_index *used = annal__fallback_or_self(index, &unused);
    struct findings findings = {.index = used, .session = session, .fn = fn, .arg = arg};
    annal_status status = annal__packs_get(used, &set, err);
    if (status >= 0)
        status = annal__packs_each(used, set, PACK_EVERYONE, &session, session.len > 0,
                                   find_in_database, &findings, err);
    for (size_t i = 0; status >= 0 && session.len == 0 && i < set->slot_count; i++) {
        const struct pack_slot *slot = &set->slots[i];
        const annal_index_finding finding = {.kind = ANNAL_SLICE("pack"),
                                             .what = annal_slice_of(slot->error.message)};
        if (findings.verdict == 0 && slot->pack == NULL)
            findings.verdict = fn(arg, &finding);
    }
    annal__packs_put(used, set);
    return status < 0 ? status : (annal_status)findings.verdict;
}

annal_status annal__packs_attach(annal_index *index, sqlite3 *db, annal_slice session,
                                 bool as_indexed, uint32_t timeout_ms, annal_lag *lag,
                                 annal_error *err)
{
    struct pack_set *set = NULL;
    struct reading reading = {
        .index = index, .db = db, .session = session, .as_indexed = as_indexed, .lag = lag};
    reading.work = (struct catch_up){.index = index};
    reading.work.deadline_us =
        annal__deadline_after(timeout_ms == 0 ? index->derived.wait_ms : timeout_ms);
    annal_status status = annal__packs_get(index, &set, err);
    if (status >= 0)
        status =
            annal__packs_each(index, set, PACK_SHARED, NULL, 0, attach_database, &reading, err);
    for (size_t i = 0; status >= 0 && session.len > 0 && i < set->slot_count; i++) {
        struct visit visit = {index, set, &set->slots[i], attach_database, &reading, err};
        if (set->slots[i].pack != NULL && annal__packs_slot_has_star(&set->slots[i]))
            status = visit_session(&visit, session);
    }
    annal__plan_done(&reading.work.journals);
    annal__packs_put(index, set);
    return status;
}
