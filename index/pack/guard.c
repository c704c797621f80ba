/*
 * Appending through the packs: artifacts, fills, guards, and then the event.
 *
 * (1) The tables of every pack that guards or fills one of these types are locked, and brought up
 *     to the end of the event's own session and of the sessions that the section `reads`. Databases
 *     are locked in the order of their paths, so that two appends never wait for each other.
 * (2) The events are filled, and tried in a savepoint, one after the other; each sees the rows of
 *     those before it. Then the savepoint is rolled back: what the tables get is read from the
 *     journal, as it always is. But one event is not applied twice: its rows stay when the next
 *     event that each of the tables reads in the journal (5) is, byte for byte, the one that was
 *     tried, and trying it left nothing out. If it is another one, the savepoint is rolled back
 *     then.
 * (3) When a guard says no nothing was written anywhere, and its sentence is the answer.
 * (4) Else they are appended at level sync, on the condition that the session still ends where the
 *     tables stood. If somebody else came between, who need not ask any guard, it begins again at
 *     (2), with his events in the tables.
 * (5) Then the tables catch up and commit, and the locks are given back. A crash, or a full disk,
 *     between (4) and (5) costs nothing: the event is a fact, and the tables catch up when they are
 *     next looked at. So the answer of (4) is the answer.
 * (6) An event's time is chosen before its guard is asked, and is the one in the journal: a guard
 *     that compares times says the same of both.
 * (7) A retry (the same id, type, cause and data but for what a fill put there) is answered with
 *     its first seq, also when the guard would say no by now, because the first one happened. That
 *     is looked up when a guard refuses or the append is a conflict, among the session's last
 *     COPIES_MAX events.
 * (8) What users wrote into the session's own database goes first, also before an event that no
 *     pack asks for: what they saw is then in the journal behind what they did. When that fails,
 *     the log says so, and the rows stay where they are.
 * (9) While it waits for a lock, this process may own the session that the lock's holder wants to
 *     append to. The keeper gives it away; in a store without one, the waiter does.
 * (10) Guards look at rows of other sessions, too. A fact that was appended through guards is in
 *     the tables before anybody else is answered (5), but for three cases: its process died between
 *     (4) and (5), a power cut took the transaction, or the pack was not on. The note of the
 *     database's lock tells them (lock.h, rule 5): what may be missing is brought up first, in
 *     slices as every catch-up is, until nothing is missing under the lock. In all other cases that
 *     costs reading the note, and writing it before (4) and after (5). A journal that cannot be
 *     read is logged and passed over, as in every catch-up.
 * (11) Much may be missing: a pack was switched on, its tables were dropped, or a large import went
 *     past the guards. A guard that is asked over tables that lack sessions would let through what
 *     it forbids, and SQL does not say which rows of others it looks at. So the append works on
 *     what is missing for a twentieth of the time that it may wait; when more than a MiB is left it
 *     is refused, with how far the tables are: whoever tries again is further on, and nobody waits
 *     for minutes.
 */
#include "index/db/database.h"
#include "index/follow/plan.h"
#include "index/index.h"
#include "index/sys/pack.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/sys/artifact.h"
#include "journal/sys/draft.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <annal/artifact.h>

#include <stdlib.h>
#include <string.h>

#define ATTEMPTS_MAX   100
#define COPIES_MAX     65536
#define PATIENCE_MS    20 /* rule 9 */
#define ROUNDS_MAX     5  /* rule 10: then it is done in one transaction */
#define MUCH_BYTES     (1u << 20)
#define PATIENCE_PARTS 20 /* rule 11: half a second of ten */

/* One database that is asked; packs NULL: sessions.db, where the core pack is. */
struct place {
    struct pack_database *packs;
    struct derived *derived;
    bool begun;
    bool fresh;  /* rule 10: the note in its lock holds, */
    bool marked; /* and says what is under way */
};

/* One call of annal_pack_append(). */
struct call {
    annal_index *index;
    annal_writer *writer;
    annal_slice session;
    const annal_append_options *options;
    const annal_draft *given;
    size_t count;
    struct pack_set *set;
    struct place *places;
    size_t place_count;
    annal__artifact_hold *hold;
    annal_slice *plain;  /* data as JSON, large fields taken out, not yet filled; ours */
    annal_draft *drafts; /* what is appended; data points into filled */
    struct buf *filled;
    bool *smaller; /* plain is no longer what was given */
    int64_t deadline_us;
    uint64_t head;     /* the last seq of the session that the tables know */
    annal_event tried; /* the last one that was tried */
    bool whole;        /* and all of its rows are there */
};

/* ---- Who is asked ---- */

static bool is_of_interest(const struct pack_section *section, bool artifacts)
{
    if (artifacts)
        return section->kind == PACK_ARTIFACT;
    return section->kind == PACK_FILL || (section->kind == PACK_ON && section->guard != NULL);
}

/* Whether the pack has a guard or a fill (or an artifact) for one of the drafts. */
static bool cares(const struct call *call, const annal_pack *pack, bool artifacts)
{
    if (pack == NULL || !annal__pack_feeds(pack, call->session, NULL))
        return false;
    for (size_t i = 0; i < pack->section_count; i++) {
        if (!is_of_interest(&pack->sections[i], artifacts))
            continue;
        for (size_t j = 0; j < call->count; j++)
            if (annal__section_takes(&pack->sections[i], call->given[j].type))
                return true;
    }
    return false;
}

/* Pack number i of those that are on; the last one is core. */
static const annal_pack *pack_at(const struct call *call, size_t i)
{
    return i < call->set->slot_count ? call->set->slots[i].pack : call->index->core;
}

static int by_path(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    return strcmp(left->derived->path, right->derived->path);
}

static annal_status find_places(struct call *call, annal_error *err)
{
    struct pack_set *set = call->set;
    annal_status status = ANNAL_OK;
    call->places = annal__zalloc((set->slot_count + 1) * sizeof *call->places);
    if (call->places == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "append through the packs");
    for (size_t i = 0; status >= 0 && i <= set->slot_count; i++) {
        struct place place = {.derived = &call->index->derived};
        if (!cares(call, pack_at(call, i), false))
            continue;
        if (i < set->slot_count) {
            status = annal__packs_database(call->index, set, &set->slots[i], call->session,
                                           &place.packs, err);
            if (status < 0 || place.packs == NULL)
                continue;
            place.derived = &place.packs->derived;
        }
        size_t same = 0;
        while (same < call->place_count && call->places[same].derived != place.derived)
            same++;
        if (same == call->place_count)
            call->places[call->place_count++] = place;
    }
    if (call->place_count > 1)
        qsort(call->places, call->place_count, sizeof *call->places, by_path);
    return status;
}

/* Followers of a place, one after the other. NULL: no more. */
static struct follower *follower_at(const struct call *call, const struct place *place, size_t i)
{
    if (place->packs == NULL)
        return i == 0 ? &call->index->follower : NULL;
    return i < place->packs->fill_count ? &place->packs->fills[i].follower : NULL;
}

static const annal_pack *pack_of(const struct call *call, const struct place *place, size_t i)
{
    return place->packs == NULL ? call->index->core : place->packs->fills[i].slot->pack;
}

/* ---- Artifacts ---- */

static annal_status take_out(struct call *call, const struct pack_section *section, size_t draft,
                             annal_error *err)
{
    annal_store *store = call->index->store;
    annal_slice *plain = &call->plain[draft], smaller = {0};
    if (section->kind != PACK_ARTIFACT || plain->len <= section->over_bytes ||
        !annal__section_takes(section, call->given[draft].type))
        return ANNAL_OK;
    annal_status status = ANNAL_OK;
    if (call->hold == NULL)
        status = annal__artifact_hold_new(store, &call->hold, err);
    if (status >= 0)
        status = annal__artifact_externalize(store, call->session, section->field,
                                             section->over_bytes, *plain, &smaller, err);
    if (status < 0 || smaller.len == 0)
        return status;
    struct buf copy = {.limit = 2 * (size_t)ANNAL_DATA_BYTES_MAX};
    status = annal__buf_append_slice(&copy, smaller);
    annal_artifact_free(smaller.ptr);
    if (status < 0)
        return annal__fail(err, status, "the data of an event");
    annal__draft_free(plain->ptr);
    *plain = annal__buf_slice(&copy);
    call->smaller[draft] = true;
    return ANNAL_OK;
}

/* What is going to be appended: the caller's own bytes, unless the packs changed them. */
static void choose_data(struct call *call, size_t draft, annal_slice data)
{
    const annal_draft *given = &call->given[draft];
    annal_slice plain = call->plain[draft];
    bool is_given = !call->smaller[draft] && annal__slice_same(data, plain);
    call->drafts[draft].data = is_given ? given->data : data;
    call->drafts[draft].data_format = is_given ? given->data_format : ANNAL_FORMAT_JSON;
}

/* The drafts' data as JSON, without what is too large for an event. */
static annal_status make_plain(struct call *call, annal_error *err)
{
    annal_status status = ANNAL_OK;
    call->plain = annal__zalloc(call->count * sizeof *call->plain);
    call->drafts = annal__zalloc(call->count * sizeof *call->drafts);
    call->filled = annal__zalloc(call->count * sizeof *call->filled);
    call->smaller = annal__zalloc(call->count * sizeof *call->smaller);
    if (call->plain == NULL || call->drafts == NULL || call->filled == NULL ||
        call->smaller == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "append through the packs");
    for (size_t i = 0; status >= 0 && i < call->count; i++) {
        call->drafts[i] = call->given[i];
        call->filled[i].limit = 2 * (size_t)ANNAL_DATA_BYTES_MAX;
        status = annal__draft_json(&call->given[i], &call->plain[i], err);
    }
    for (size_t i = 0; status >= 0 && i <= call->set->slot_count; i++) {
        const annal_pack *pack = pack_at(call, i);
        if (!cares(call, pack, true))
            continue;
        for (size_t j = 0; status >= 0 && j < pack->section_count; j++)
            for (size_t k = 0; status >= 0 && k < call->count; k++)
                status = take_out(call, &pack->sections[j], k, err);
    }
    return status;
}

/* ---- Tables that are up to date, rule 1 ---- */

static annal_status catch_up(const struct call *call, const struct place *place,
                             annal_slice session, annal_error *err)
{
    if (place->packs != NULL)
        return annal__pack_catch_up(place->packs, session, err);
    return annal__follower_catch_up(&call->index->follower, session, err);
}

/* All sessions whose journals are longer than the tables know, and whose names begin so. */
static annal_status read_many(const struct call *call, const struct place *place,
                              struct follower *follower, annal_slice prefix, annal_error *err)
{
    struct plan plan = {0};
    annal_status status = annal__plan_make(follower, NULL, 0, NULL, 0, &plan, err);
    for (size_t i = 0; status >= 0 && i < plan.count; i++) {
        annal_slice session = annal__task_session(&plan, &plan.tasks[i]);
        if (session.len >= prefix.len && memcmp(session.ptr, prefix.ptr, prefix.len) == 0)
            status = catch_up(call, place, session, err);
    }
    annal__plan_done(&plan);
    return status;
}

/* The session that a field of data names; when it names none, there is nothing to read. */
static annal_status read_named(const struct call *call, const struct place *place,
                               const char *field, annal_slice data, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        place->derived->db, "SELECT ?1 ->> ('$.' || replace(?2, '::', '.'))", &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, data);
    annal__db_bind_text(stmt, 2, annal_slice_of(field));
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW && sqlite3_column_type(stmt, 0) == SQLITE_TEXT) {
        annal_slice session = annal__db_column(stmt, 0);
        if (annal_session_id_check(session, NULL) == ANNAL_OK)
            status = catch_up(call, place, session, err);
    } else if (rc != SQLITE_ROW) {
        status = annal__db_fail(err, place->derived->db, rc, "field %s of data", field);
    }
    sqlite3_finalize(stmt);
    return status;
}

static annal_status read_others(const struct call *call, const struct place *place,
                                struct follower *follower, const struct pack_section *section,
                                annal_slice data, annal_error *err)
{
    annal_status status = ANNAL_OK;
    const char *at = section->reads == NULL ? "" : section->reads;
    for (; status >= 0 && *at != '\0'; at += strlen(at) + 1) {
        size_t len = strlen(at);
        if (at[0] == '$')
            status = read_named(call, place, at + 1, data, err);
        else if (at[len - 1] == '*')
            status = read_many(call, place, follower, (annal_slice){at, len - 1}, err);
        else
            status = catch_up(call, place, annal_slice_of(at), err);
    }
    return status;
}

/* Everything that the place's guards and fills are going to look at. */
static annal_status read_all(const struct call *call, const struct place *place, annal_error *err)
{
    annal_status status = catch_up(call, place, call->session, err);
    struct follower *follower;
    for (size_t i = 0; status >= 0 && (follower = follower_at(call, place, i)) != NULL; i++) {
        const annal_pack *pack = pack_of(call, place, i);
        if (!cares(call, pack, false))
            continue;
        if (follower->applier == NULL)
            return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                               "append to session '%.*s': pack '%s' guards this event and cannot "
                               "be asked; annal pack list says why",
                               ANNAL_FMT(call->session), pack->name);
        for (size_t j = 0; status >= 0 && j < pack->section_count; j++)
            for (size_t k = 0; status >= 0 && k < call->count; k++)
                if (is_of_interest(&pack->sections[j], false) &&
                    annal__section_takes(&pack->sections[j], call->given[k].type))
                    status =
                        read_others(call, place, follower, &pack->sections[j], call->plain[k], err);
    }
    return status;
}

/* Rule 9. */
static annal_status begin(struct call *call, struct place *place, annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool patient = annal__store_has_keeper(call->index->store);
    do {
        int64_t until_us = patient ? call->deadline_us : annal__deadline_after(PATIENCE_MS);
        status = annal__derived_begin(
            place->derived, until_us < call->deadline_us ? until_us : call->deadline_us, err);
        if (status == ANNAL_ERR_BUSY && !patient && annal_keep(call->index->store, NULL) < 0)
            patient = true; /* it will not get better */
    } while (status == ANNAL_ERR_BUSY && !annal__deadline_passed(call->deadline_us));
    place->begun = status >= 0;
    return status;
}

/* Rule 10. session: what is under way; empty: nothing is. */
static bool write_note(const struct call *call, const struct place *place, int64_t transactions,
                       annal_slice session)
{
    struct lock_note note = {.packs = call->set->seen,
                             .database = place->derived->stamp.id,
                             .transactions = transactions,
                             .session_bytes = (uint32_t)session.len};
    memcpy(note.boot, annal__store_boot(call->index->store), sizeof note.boot);
    if (session.len > 0)
        memcpy(note.session, session.ptr, session.len);
    return annal__lock_note_write(&place->derived->lock, &note);
}

static annal_status end(struct call *call, bool keep, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < call->place_count; i++) {
        struct place *place = &call->places[i];
        if (!place->begun)
            continue;
        place->begun = false;
        annal_status ended = annal__derived_finish(place->derived, keep, status >= 0 ? err : NULL);
        if (keep && ended >= 0 && place->marked && !place->derived->lock.wiped)
            (void)write_note(call, place, place->derived->stamp.commits + 1, (annal_slice){0});
        annal__derived_release(place->derived);
        status = status < 0 ? status : ended;
    }
    return status;
}

/* The least that one of the tables knows of the session. */
static annal_status find_head(struct call *call, annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool first = true;
    for (size_t i = 0; status >= 0 && i < call->place_count; i++) {
        struct follower *follower;
        for (size_t j = 0; (follower = follower_at(call, &call->places[i], j)) != NULL; j++) {
            annal_position position;
            bool known = false;
            if (follower->applier == NULL || !annal__follower_feeds(follower, call->session))
                continue;
            status =
                annal__index_cursor(follower->get_cursor, call->session, &position, &known, err);
            uint64_t seq = status >= 0 && known ? position.seq - 1 : 0;
            if (first || seq < call->head)
                call->head = seq;
            first = false;
        }
    }
    return status;
}

/* ---- What somebody left behind, rule 10 ---- */

/* What the note says may be missing: nothing (count 0, all false), one session, or all. */
struct missing {
    struct lock_note note;
    annal_slice session;
    bool any, all;
};

static void find_missing(const struct call *call, const struct place *place, struct missing *out)
{
    const struct lock_note *note = &out->note;
    out->all = !annal__lock_note_read(&place->derived->lock, &out->note) ||
               memcmp(note->boot, annal__store_boot(call->index->store), sizeof note->boot) != 0 ||
               note->packs != call->set->seen || note->database != place->derived->stamp.id ||
               note->transactions > place->derived->stamp.commits;
    out->session = (annal_slice){note->session, out->all ? 0 : note->session_bytes};
    out->any = out->all || out->session.len > 0;
}

/* Under the lock: whether journals hold what the tables do not. */
static annal_status is_behind(const struct call *call, const struct place *place,
                              const struct missing *missing, bool *out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    struct follower *follower;
    *out = false;
    for (size_t i = 0; status >= 0 && !*out && (follower = follower_at(call, place, i)) != NULL;
         i++) {
        struct plan plan = {0};
        uint64_t unused;
        if (follower->applier == NULL)
            continue;
        status = annal__plan_make(follower, &missing->session, missing->all ? 0 : 1, NULL,
                                  place->derived->wait_ms, &plan, err);
        if (status >= 0)
            annal__plan_look_ahead(follower, &plan, &unused);
        *out = plan.count > 0;
        annal__plan_done(&plan);
    }
    return status;
}

/*
 * Rule 11: time was up. When much is left, how far the tables are, and what is in the way if
 * nothing went on meanwhile; a little is worth waiting for.
 */
static annal_status refuse_behind(const struct call *call, const struct follower *follower,
                                  uint64_t left_before, const annal_error *why, annal_error *err)
{
    char progress[PLAN_PROGRESS_BYTES];
    uint64_t left = 0;
    annal_status status =
        annal__plan_progress(follower, follower->derived->wait_ms, progress, &left, err);
    if (status < 0 || left <= MUCH_BYTES)
        return status;
    return annal__fail(err, ANNAL_ERR_BUSY,
                       "append to session '%.*s': the tables of pack '%s', whose guards are to be "
                       "asked, %s: try again%s%s",
                       ANNAL_FMT(call->session), follower->pack == NULL ? "core" : follower->pack,
                       progress, left < left_before ? "" : "; ",
                       left < left_before ? "" : why->message);
}

/* Of one follower, without the lock, in slices, but not for long. */
static annal_status run_one_behind(const struct call *call, struct follower *follower,
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
    if (status == ANNAL_ERR_BUSY) /* somebody makes the database: see what is missing then */
        return ANNAL_OK;
    if (status < 0 || !any)
        return status;
    annal_error why = {0};
    status = annal__follower_run(follower, &missing->session, missing->all ? 0 : 1, NULL, &options,
                                 &stamp, &stuck, &why);
    if (status == ANNAL_ERR_BUSY)
        return refuse_behind(call, follower, left, &why, err);
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

/* *out_unreadable: a journal was passed over. */
static annal_status run_behind(const struct call *call, const struct place *place,
                               const struct missing *missing, bool *out_unreadable,
                               annal_error *err)
{
    annal_status status = ANNAL_OK;
    struct follower *follower;
    for (size_t i = 0; status >= 0 && (follower = follower_at(call, place, i)) != NULL; i++) {
        annal_error why = {0};
        if (place->packs != NULL && place->packs->fills[i].left_out)
            continue;
        status = run_one_behind(call, follower, missing, &why);
        if (status < 0 && status != ANNAL_ERR_BUSY && status != ANNAL_ERR_NOMEM) {
            annal__say(call->index->store, ANNAL_LOG_WARNING,
                       "guards are asked although '%s' lags: %s", place->derived->path,
                       why.message);
            *out_unreadable = true;
            status = ANNAL_OK;
        } else if (status < 0 && err != NULL) {
            *err = why;
        }
    }
    return status;
}

/* Rule 11: whoever fills tables has their lock most of the time, so this is asked before it. */
static bool may_lack_much(const struct call *call, const struct place *place)
{
    struct lock_note note;
    annal_store *store = call->index->store;
    annal_status status =
        annal__lock_note_peek(&place->derived->lock, annal_store_path(store), &note);
    return status == ANNAL_ERR_NOTFOUND ||
           (status >= 0 && (memcmp(note.boot, annal__store_boot(store), sizeof note.boot) != 0 ||
                            note.packs != call->set->seen));
}

/* Begin, with tables that miss nothing. */
static annal_status begin_fresh(struct call *call, struct place *place, annal_error *err)
{
    bool passed_over = false;
    if (may_lack_much(call, place)) {
        const struct missing all = {.any = true, .all = true};
        annal_status status = run_behind(call, place, &all, &passed_over, err);
        if (status < 0)
            return status;
        passed_over = false;
    }
    for (unsigned round = 0;; round++) {
        struct missing missing;
        bool behind = false;
        annal_status status = begin(call, place, err);
        if (status < 0)
            return status;
        find_missing(call, place, &missing);
        place->fresh = !missing.any;
        place->marked = false;
        if (missing.any)
            status = is_behind(call, place, &missing, &behind, err);
        if (status >= 0 && missing.any && (!behind || passed_over))
            place->fresh = write_note(call, place, place->derived->stamp.commits, (annal_slice){0});
        if (status < 0 || !behind || passed_over)
            return status;
        if (round == ROUNDS_MAX) { /* others are quicker; the note stays until that is committed */
            for (size_t i = 0; status >= 0 && follower_at(call, place, i) != NULL; i++)
                status = read_many(call, place, follower_at(call, place, i), missing.session, err);
            return status;
        }
        place->begun = false;
        status = annal__derived_end(place->derived, true, err);
        if (status >= 0)
            status = run_behind(call, place, &missing, &passed_over, err);
        if (status < 0)
            return status;
    }
}

/* Whether tables were made anew under our hands: then they hold only what was asked for. */
static bool any_wiped(const struct call *call)
{
    for (size_t i = 0; i < call->place_count; i++)
        if (call->places[i].fresh && call->places[i].derived->lock.wiped)
            return true;
    return false;
}

static annal_status bring_up(struct call *call, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (unsigned round = 0; status >= 0 && (round == 0 || any_wiped(call)); round++) {
        if (round == ROUNDS_MAX)
            return annal__fail(err, ANNAL_ERR_BUSY, "tables are made anew again and again");
        if (round > 0)
            status = end(call, true, err);
        for (size_t i = 0; status >= 0 && i < call->place_count; i++) {
            if (!call->places[i].begun)
                status = begin_fresh(call, &call->places[i], err);
            if (status >= 0)
                status = read_all(call, &call->places[i], err);
        }
    }
    return status >= 0 ? find_head(call, err) : status;
}

/* Before the append: who dies now leaves the session's name. */
static annal_status mark(struct call *call, annal_error *err)
{
    for (size_t i = 0; i < call->place_count; i++) {
        struct place *place = &call->places[i];
        if (!place->fresh || place->marked)
            continue;
        place->marked = write_note(call, place, place->derived->stamp.commits, call->session);
        if (!place->marked)
            return annal__fail(err, ANNAL_ERR_IO, "write the lock '%s'", place->derived->lock.name);
    }
    return ANNAL_OK;
}

/* ---- Trying, rules 2 and 6 ---- */

static annal_status all_places(struct call *call, const char *sql, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < call->place_count; i++)
        status = annal__db_exec(call->places[i].derived->db, sql, err);
    return status;
}

/* stored as in annal__applier_fill(). */
static annal_status fill(struct call *call, size_t draft, const annal_event *event,
                         const annal_event *stored, annal_error *err)
{
    struct buf *data = &call->filled[draft];
    annal_status status = ANNAL_OK;
    annal__buf_clear(data);
    if (annal__buf_append_slice(data, call->plain[draft]) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "the data of an event");
    for (size_t i = 0; status >= 0 && i < call->place_count; i++) {
        struct follower *follower;
        for (size_t j = 0;
             status >= 0 && (follower = follower_at(call, &call->places[i], j)) != NULL; j++)
            if (follower->applier != NULL && annal__follower_feeds(follower, call->session))
                status =
                    annal__applier_fill(follower->applier, call->session, event, stored, data, err);
    }
    return status;
}

static annal_status ask_guards(struct call *call, const annal_event *event, annal_error *err)
{
    const char *refused = NULL;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < call->place_count; i++) {
        struct follower *follower;
        for (size_t j = 0;
             status >= 0 && (follower = follower_at(call, &call->places[i], j)) != NULL; j++) {
            if (follower->applier == NULL || !annal__follower_feeds(follower, call->session))
                continue;
            status = annal__applier_try(follower->applier, call->session, event, &refused,
                                        &call->whole, err);
            if (status >= 0 && refused != NULL)
                status = annal__fail(err, ANNAL_ERR_REFUSED, "%s", refused);
        }
    }
    return status;
}

/* The event that a draft is going to be; its data is not filled yet. */
static annal_event event_of(const struct call *call, size_t draft, int64_t now_us)
{
    const annal_draft *given = &call->given[draft];
    bool has_ts = given->has_ts || given->ts_us != 0;
    return (annal_event){.seq = call->head + 1 + draft,
                         .ts_us = annal__time_clamp(has_ts ? given->ts_us : now_us),
                         .type = given->type,
                         .id = given->id,
                         .cause = given->cause,
                         .data = call->plain[draft]};
}

static annal_status try_draft(struct call *call, size_t i, int64_t now_us, annal_error *err)
{
    annal_event event = event_of(call, i, now_us);
    annal_status status = fill(call, i, &event, NULL, err);
    if (status < 0)
        return status;
    event.data = annal__buf_slice(&call->filled[i]);
    choose_data(call, i, event.data);
    call->drafts[i].ts_us = event.ts_us;
    call->drafts[i].has_ts = true;
    call->tried = event;
    return ask_guards(call, &event, err);
}

static annal_status take_back(struct call *call, annal_error *err)
{
    call->whole = false;
    return all_places(call, "ROLLBACK TO guard; RELEASE guard", err);
}

/* When call->whole, the savepoint is still open. */
static annal_status try_all(struct call *call, annal_error *err)
{
    annal_session_info info = {.last_ts_us = INT64_MIN};
    annal_status status = ANNAL_OK;
    if (call->head > 0)
        status = annal_session_info_get(call->index->store, call->session, &info, err);
    if (status < 0)
        return status;
    const struct clock *clock = annal__store_clock(call->index->store);
    int64_t now_us = annal__clock_after(clock, info.last_ts_us);
    call->whole = call->count == 1;
    status = all_places(call, "SAVEPOINT guard", err);
    for (size_t i = 0; status >= 0 && i < call->count; i++)
        status = try_draft(call, i, now_us, err);
    if (status >= 0 && call->whole)
        return ANNAL_OK;
    annal_status undone = take_back(call, status >= 0 ? err : NULL);
    return status < 0 ? status : undone;
}

/* ---- A retry, rule 7 ---- */

static annal_status same_data(struct call *call, annal_slice a, annal_slice b, bool *out_same,
                              annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    *out_same = annal__slice_same(a, b);
    if (*out_same)
        return ANNAL_OK;
    annal_status status =
        annal__db_prepare(call->places[0].derived->db, "SELECT json(?1) = json(?2)", &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, a);
    annal__db_bind_text(stmt, 2, b);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        *out_same = sqlite3_column_int(stmt, 0) != 0;
    sqlite3_finalize(stmt);
    return ANNAL_OK;
}

/* Whether a draft is the one that became this event. */
static annal_status is_copy(struct call *call, size_t draft, const annal_event *event, bool *out,
                            annal_error *err)
{
    const annal_draft *given = &call->given[draft];
    *out = annal__slice_same(given->id, event->id) && annal__slice_same(given->type, event->type) &&
           annal__slice_same(given->cause, event->cause);
    if (!*out)
        return ANNAL_OK;
    annal_event as = {.type = event->type};
    annal_status status = fill(call, draft, &as, event, err);
    if (status < 0)
        return status;
    return same_data(call, annal__buf_slice(&call->filled[draft]), event->data, out, err);
}

/* Whether the events from seq on are the drafts. */
static annal_status compare_from(struct call *call, uint64_t seq, bool *out, annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_status status = annal_cursor_open(call->index->store, call->session, seq, &cursor, err);
    *out = status >= 0;
    for (size_t i = 0; status >= 0 && *out && i < call->count; i++) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, err);
        *out = status == ANNAL_OK && event.seq == seq + i;
        if (*out)
            status = is_copy(call, i, &event, out, err);
    }
    annal_cursor_close(cursor);
    return status < 0 ? status : ANNAL_OK;
}

/* The seq of the newest event with this id; 0: none of those that are looked at has it. */
static annal_status find_id(const struct call *call, annal_slice id, uint64_t *out_seq,
                            annal_error *err)
{
    annal_cursor *cursor = NULL;
    uint64_t from = call->head > COPIES_MAX ? call->head - COPIES_MAX + 1 : 1;
    annal_session_info info;
    *out_seq = 0;
    annal_status status = annal_session_info_get(call->index->store, call->session, &info, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status >= 0 && from < info.first_seq) /* ids of what a fork shares are free in it */
        from = info.first_seq;
    if (status >= 0)
        status = annal_cursor_open(call->index->store, call->session, from, &cursor, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    while (status >= 0) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_END)
            break;
        if (status == ANNAL_OK && annal__slice_same(event.id, id))
            *out_seq = event.seq;
    }
    annal_cursor_close(cursor);
    return status < 0 ? status : ANNAL_OK;
}

/*
 * The drafts were refused, or their id is taken, as *why says. *out_seq is their seq when they are
 * there already; else *why is the answer.
 */
static annal_status find_copy(struct call *call, const annal_error *why, uint64_t *out_seq,
                              annal_error *err)
{
    size_t with_id = 0;
    uint64_t seq = 0;
    bool found = false;
    while (with_id < call->count && call->given[with_id].id.len == 0)
        with_id++;
    annal_status status = ANNAL_OK;
    if (with_id < call->count)
        status = find_id(call, call->given[with_id].id, &seq, err);
    if (status >= 0 && seq > with_id)
        status = compare_from(call, seq - with_id, &found, err);
    if (status >= 0 && seq > 0 && !found)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "append to session '%.*s': id '%.*s' is taken by another event",
                           ANNAL_FMT(call->session), ANNAL_FMT(call->given[with_id].id));
    if (status >= 0 && found)
        *out_seq = seq - with_id;
    if (status < 0 || found)
        return status;
    if (err != NULL)
        *err = *why;
    return why->status;
}

/* ---- Appending ---- */

static bool is_expected(const struct call *call)
{
    const annal_append_options *options = call->options;
    return options->expect == ANNAL_EXPECT_ANY ||
           call->head == (options->expect == ANNAL_EXPECT_SEQ ? options->expected_seq : 0);
}

/* Rules 2 to 4, once. ANNAL_ERR_CONFLICT may mean that somebody came between. */
static annal_status attempt(struct call *call, uint64_t *out_seq, annal_error *err)
{
    const annal_append_options options = {
        .level = ANNAL_LEVEL_SYNC, .expect = ANNAL_EXPECT_SEQ, .expected_seq = call->head};
    if (!is_expected(call))
        return annal__fail(err, ANNAL_ERR_CONFLICT, "append to session '%.*s': it ends at seq %llu",
                           ANNAL_FMT(call->session), (unsigned long long)call->head);
    annal_status status = try_all(call, err);
    if (status < 0)
        return status;
    status = mark(call, err);
    if (status >= 0)
        status =
            annal_writer_append(call->writer, call->drafts, call->count, &options, out_seq, err);
    if (status >= 0 || !call->whole)
        return status;
    annal_status undone = take_back(call, NULL);
    return undone < 0 ? annal__fail(err, undone, "take back what was tried") : status;
}

/* With the tables locked and caught up. */
static annal_status append_guarded(struct call *call, uint64_t *out_seq, annal_error *err)
{
    annal_error why = {0};
    annal_status status = ANNAL_ERR_CONFLICT;
    for (unsigned tries = 0; status == ANNAL_ERR_CONFLICT && tries < ATTEMPTS_MAX; tries++) {
        uint64_t head = call->head;
        status = attempt(call, out_seq, &why);
        if (status != ANNAL_ERR_CONFLICT || !is_expected(call))
            break;
        /* Events of this process may be on their way to the journal. */
        status = annal_sync(call->index->store, err);
        if (status >= 0)
            status = bring_up(call, err);
        if (status < 0)
            return status;
        status = ANNAL_ERR_CONFLICT;
        if (call->head == head)
            break;
    }
    if (status == ANNAL_ERR_REFUSED || status == ANNAL_ERR_CONFLICT)
        return find_copy(call, &why, out_seq, err);
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

static annal_status catch_up_all(struct call *call, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < call->place_count; i++)
        status = catch_up(call, &call->places[i], call->session, err);
    return status;
}

/* Followers that were asked: what was tried (NULL: nothing) is theirs. True: nobody has it
 * still. */
static bool set_tried(struct call *call, const annal_event *tried)
{
    bool none = true;
    for (size_t i = 0; i < call->place_count; i++) {
        struct follower *follower;
        for (size_t j = 0; (follower = follower_at(call, &call->places[i], j)) != NULL; j++) {
            none = none && follower->tried == NULL;
            bool asked =
                follower->applier != NULL && annal__follower_feeds(follower, call->session);
            follower->tried = asked ? tried : NULL;
        }
    }
    return none;
}

/* Rule 2: the rows that were tried stay, or are taken back. */
static annal_status keep_tried(struct call *call, bool *out_kept, annal_error *err)
{
    (void)set_tried(call, &call->tried);
    annal_status status = catch_up_all(call, NULL);
    *out_kept = set_tried(call, NULL) && status >= 0;
    if (*out_kept)
        return ANNAL_OK;
    for (size_t i = 0; i < call->place_count; i++)
        call->places[i].derived->ops->undone(call->places[i].derived->arg);
    return take_back(call, err);
}

/* Rule 5. */
static void follow_up(struct call *call)
{
    annal_error why = {0};
    bool kept = false;
    annal_status status = call->whole ? keep_tried(call, &kept, &why) : ANNAL_OK;
    if (status >= 0 && !kept)
        status = catch_up_all(call, &why);
    annal_status ended = end(call, status >= 0, status >= 0 ? &why : NULL);
    if (status < 0 || ended < 0)
        annal__say(call->index->store, ANNAL_LOG_INFO, "%s", why.message);
}

static annal_status through_tables(struct call *call, uint64_t *out_seq, annal_error *err)
{
    annal_status status = bring_up(call, err);
    if (status >= 0)
        status = append_guarded(call, out_seq, err);
    if (status >= 0)
        follow_up(call);
    else
        (void)end(call, false, NULL);
    for (size_t i = 0; status == ANNAL_ERR_CORRUPT && i < call->place_count; i++)
        (void)annal__derived_heal_if_corrupt(call->places[i].derived); /* for who tries again */
    return status;
}

/*
 * Nobody fills or guards these, but perhaps something was taken out. Then a sweep must find the
 * event as soon as the hold ends: at level batch it would not stand in the journal yet.
 */
static annal_status past_tables(struct call *call, uint64_t *out_seq, annal_error *err)
{
    annal_append_options options = *call->options;
    if (call->hold != NULL && options.level != ANNAL_LEVEL_OS)
        options.level = ANNAL_LEVEL_SYNC;
    for (size_t i = 0; i < call->count; i++)
        choose_data(call, i, call->plain[i]);
    return annal_writer_append(call->writer, call->drafts, call->count, &options, out_seq, err);
}

/* The data of the last draft, which the call needs no more: after an append nothing fails. */
static void hand_out(struct call *call, uint64_t seq, annal_appended *out)
{
    size_t last = call->count - 1;
    if (out == NULL)
        return;
    out->seq = seq;
    if (call->place_count > 0) {
        out->data = annal__buf_slice(&call->filled[last]);
        call->filled[last] = (struct buf){0};
    } else {
        out->data = call->plain[last];
        call->plain[last] = (annal_slice){0};
    }
}

/* Nothing is asked. The copy is made before: after an append nothing fails. */
static annal_status append_unasked(const struct call *call, annal_appended *out, annal_error *err)
{
    uint64_t seq = 0;
    annal_slice data = {0};
    if (out != NULL && call->count > 0)
        data = call->given[call->count - 1].data;
    char *copy = data.len == 0 ? NULL : annal__strndup(data.ptr, data.len);
    if (data.len > 0 && copy == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "the data of an event");
    annal_status status =
        annal_writer_append(call->writer, call->given, call->count, call->options, &seq, err);
    if (status < 0)
        annal__free(copy);
    else if (out != NULL)
        *out = (annal_appended){.seq = seq, .data = {copy, data.len}};
    return status;
}

static void call_done(struct call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        if (call->plain != NULL)
            annal__draft_free(call->plain[i].ptr);
        if (call->filled != NULL)
            annal__buf_done(&call->filled[i]);
    }
    annal__artifact_hold_free(call->hold);
    annal__free(call->plain);
    annal__free(call->drafts);
    annal__free(call->filled);
    annal__free(call->smaller);
    annal__free(call->places);
    annal__packs_put(call->index, call->set);
}

static bool any_cares(const struct call *call)
{
    for (size_t i = 0; i <= call->set->slot_count; i++)
        if (cares(call, pack_at(call, i), false) || cares(call, pack_at(call, i), true))
            return true;
    return false;
}

/* Rule 8. Where a place is asked, its transaction begins so anyway. */
static void drain_own(struct call *call)
{
    for (size_t i = 0; i < call->set->slot_count; i++) {
        const struct pack_slot *slot = &call->set->slots[i];
        if (slot->pack != NULL && slot->pack->writable && !cares(call, slot->pack, false) &&
            annal__pack_feeds(slot->pack, call->session, NULL))
            annal__packs_drain(call->index, call->set, slot, call->session, call->deadline_us);
    }
}

annal_status annal_pack_append(annal_index *index, annal_writer *writer, const annal_draft *drafts,
                               size_t count, const annal_append_options *options,
                               annal_appended *out, annal_error *err)
{
    static const annal_append_options defaults;
    struct call call = {.index = index,
                        .writer = writer,
                        .session = annal__writer_session(writer),
                        .options = options == NULL ? &defaults : options,
                        .given = drafts,
                        .count = count,
                        .deadline_us = annal__deadline_after(
                            annal__store_may_wait_ms(index->store, index->derived.wait_ms))};
    uint64_t seq = 0;
    annal_status status = annal__packs_get(index, &call.set, err);
    if (status < 0)
        return status;
    if (count > 0 && !annal__store_is_read_only(index->store))
        drain_own(&call);
    if (count == 0 || annal__store_is_read_only(index->store) || !any_cares(&call)) {
        status = append_unasked(&call, out, err);
        goto done;
    }
    status = make_plain(&call, err);
    if (status >= 0)
        status = find_places(&call, err);
    if (status < 0)
        goto done;
    status =
        call.place_count > 0 ? through_tables(&call, &seq, err) : past_tables(&call, &seq, err);
    if (status >= 0)
        hand_out(&call, seq, out);

done:
    call_done(&call);
    return status;
}

annal_status annal__pack_asks(annal_index *index, annal_slice session, annal_slice type,
                              bool *out_asks, annal_error *err)
{
    const annal_draft draft = {.type = type};
    struct call call = {.index = index, .session = session, .given = &draft, .count = 1};
    annal_status status = annal__packs_get(index, &call.set, err);
    if (status < 0)
        return status;
    *out_asks = false;
    for (size_t i = 0; i < call.set->slot_count; i++)
        if (cares(&call, pack_at(&call, i), false) || cares(&call, pack_at(&call, i), true))
            *out_asks = true;
    annal__packs_put(index, call.set);
    return ANNAL_OK;
}
