/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending through the packs: artifacts, fills, guards, and then the event.
 *
 * (1) The tables of every pack that guards or fills one of these types are locked, and updated to
 *     the end of the event's own session and of the sessions in the section's `reads`. Databases
 *     are locked in the order of their paths, so that two appends never wait for each other.
 * (2) The events are filled, and tried in a savepoint, one after the other; each sees the rows of
 *     the events before it. Then the savepoint is rolled back: the tables are filled from the
 *     journal, as always. But a single event need not be applied twice: its rows stay if the event
 *     that each of the tables reads next from the journal (5) equals, byte for byte, the event that
 *     was tried, and the trial wrote all of its rows. Otherwise the savepoint is rolled back at
 *     (5).
 * (3) If a guard refuses, nothing was written anywhere, and the guard's sentence is the result,
 *     unless events of this process were not in the journal yet: these are then added to the
 *     tables, and the append begins again at (2).
 * (4) Otherwise the events are appended at level sync, on the condition that the session still ends
 *     where the tables end. If another process appended in between, without any guard, its events
 *     are added to the tables, and the append begins again at (2).
 * (5) Then the tables catch up and commit, and the locks are released. A crash, or a full disk,
 *     between (4) and (5) loses nothing: the event is in the journal, and the tables catch up when
 *     they are next used. So the result of (4) is returned.
 * (6) An event's time is chosen before its guard is checked, and is stored in the journal: a guard
 *     that compares times decides the same when the event is applied from the journal.
 * (7) A retry is answered with its first seq, even if the guard would refuse by now, because the
 *     first append happened: guard_retry.c.
 * (8) Rows that users wrote into the session's own database are appended first, even before an
 *     event that no pack guards: the journal then contains the rows before the event that may
 *     depend on them. If that fails, the failure is logged, and the rows stay in the database.
 * (9) The guards of a pack whose file has an error cannot be checked. Two sets of types are refused
 *     until the file is repaired: the types that the pack guards or fills, as far as the file can
 *     be read, and the types that it guarded when it was last valid (kept_guards.c). If neither is
 *     known, every type is refused.
 *
 * guard_decide.c describes what happens between (2) and (4) if several stores share the session;
 * guard_tables.c describes how the tables are updated, and which locks the append waits for.
 */
#include "index/guard/guard.h"
#include "index/pack/applier.h"

#include "index/db/db.h"
#include "index/sys/pack.h"
#include "index/sys/type_fields.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/sys/artifact.h"
#include "journal/sys/draft.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <stdlib.h>
#include <string.h>

#define ATTEMPTS_MAX 100

/* ---- Which packs take part ---- */

/* Return enabled pack number i; the last is core. */
static const annal_pack *pack_at(const struct guard_call *call, size_t i)
{
    return i < call->set->slot_count ? call->set->slots[i].pack : call->index->core;
}

static int by_path(const void *a, const void *b)
{
    const struct guard_database *left = a, *right = b;
    return strcmp(left->derived->path, right->derived->path);
}

static annal_status find_databases(struct guard_call *call, annal_error *err)
{
    struct pack_set *set = call->set;
    annal_status status = ANNAL_OK;
    call->databases = annal__zalloc((set->slot_count + 1) * sizeof *call->databases);
    if (call->databases == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "check guards for an append: out of memory");
    for (size_t i = 0; status >= 0 && i <= set->slot_count; i++) {
        struct guard_database database = {.derived = &call->index->derived};
        if (!annal__guard_cares(call, pack_at(call, i), false))
            continue;
        if (i < set->slot_count) {
            status = annal__packs_database(call->index, set, &set->slots[i], call->session,
                                           &database.packs, err);
            if (status < 0 || database.packs == NULL)
                continue;
            database.derived = &database.packs->derived;
        }
        size_t same = 0;
        while (same < call->database_count && call->databases[same].derived != database.derived)
            same++;
        if (same == call->database_count)
            call->databases[call->database_count++] = database;
    }
    if (call->database_count > 1)
        qsort(call->databases, call->database_count, sizeof *call->databases, by_path);
    return status;
}

/* ---- Artifacts ---- */

static annal_status take_out(struct guard_call *call, const struct pack_section *section,
                             size_t draft, annal_error *err)
{
    annal_store *store = call->index->store;
    annal_slice *plain = &call->plain[draft], smaller = {0};
    if (section->kind != PACK_ARTIFACT || plain->len <= section->over_bytes ||
        !annal__pack_section_takes(section, call->given[draft].type))
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
    annal_free(smaller.ptr);
    if (status < 0)
        return annal__fail(err, status,
                           "append to session '%.*s': cannot copy the data of an event",
                           ANNAL_FMT(call->session));
    annal_free(plain->ptr);
    *plain = annal__buf_slice(&copy);
    call->smaller[draft] = true;
    return ANNAL_OK;
}

/* Set the data of a draft to append: the caller's own bytes, unless the packs changed them. */
static void choose_data(struct guard_call *call, size_t draft, annal_slice data)
{
    const annal_draft *given = &call->given[draft];
    annal_slice plain = call->plain[draft];
    bool is_given = !call->smaller[draft] && annal__slice_same(data, plain);
    call->drafts[draft].data = is_given ? given->data : data;
    call->drafts[draft].data_format = is_given ? given->data_format : ANNAL_FORMAT_JSON;
}

/* Write the data of the drafts as JSON, with large fields moved into artifacts. */
static annal_status make_plain(struct guard_call *call, annal_error *err)
{
    annal_status status = ANNAL_OK;
    call->plain = annal__zalloc(call->count * sizeof *call->plain);
    call->drafts = annal__zalloc(call->count * sizeof *call->drafts);
    call->filled = annal__zalloc(call->count * sizeof *call->filled);
    call->smaller = annal__zalloc(call->count * sizeof *call->smaller);
    if (call->plain == NULL || call->drafts == NULL || call->filled == NULL ||
        call->smaller == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "check guards for an append: out of memory");
    for (size_t i = 0; status >= 0 && i < call->count; i++) {
        call->drafts[i] = call->given[i];
        call->filled[i].limit = 2 * (size_t)ANNAL_DATA_BYTES_MAX;
        status = annal__draft_json(&call->given[i], &call->plain[i], err);
    }
    for (size_t i = 0; status >= 0 && i <= call->set->slot_count; i++) {
        const annal_pack *pack = pack_at(call, i);
        if (!annal__guard_cares(call, pack, true))
            continue;
        for (size_t j = 0; status >= 0 && j < pack->section_count; j++)
            for (size_t k = 0; status >= 0 && k < call->count; k++)
                status = take_out(call, &pack->sections[j], k, err);
    }
    return status;
}

/* ---- Trying, rules 2 and 6 ---- */

static annal_status all_databases(struct guard_call *call, const char *sql, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < call->database_count; i++)
        status = annal__db_exec(call->databases[i].derived->db, sql, err);
    return status;
}

static annal_status ask_guards(struct guard_call *call, const annal_event *event, annal_error *err)
{
    const char *refused = NULL;
    struct follower *follower;
    annal_status status = ANNAL_OK;
    for (struct guard_walk walk = {0};
         status >= 0 && (follower = annal__guard_next(call, &walk)) != NULL;) {
        status = annal__applier_try(follower->applier, call->session, event, &refused, &call->whole,
                                    err);
        if (status >= 0 && refused != NULL)
            status = annal__fail(err, ANNAL_ERR_REFUSED, "%s", refused);
    }
    return status;
}

/* Return the event that a draft will become; its data is without filled values. */
static annal_event event_of(const struct guard_call *call, size_t draft, int64_t now_us)
{
    const annal_draft *given = &call->given[draft];
    return (annal_event){.seq = call->head + 1 + draft,
                         .ts_us = annal__draft_time(given, now_us),
                         .type = given->type,
                         .id = given->id,
                         .cause = given->cause,
                         .data = call->plain[draft]};
}

static annal_status try_draft(struct guard_call *call, size_t i, int64_t now_us, annal_error *err)
{
    annal_event event = event_of(call, i, now_us);
    annal_status status = annal__guard_fill(call, i, &event, NULL, err);
    if (status < 0)
        return status;
    event.data = annal__buf_slice(&call->filled[i]);
    choose_data(call, i, event.data);
    call->drafts[i].ts_us = ANNAL_TS(event.ts_us);
    call->tried = event;
    return ask_guards(call, &event, err);
}

static annal_status take_back(struct guard_call *call, annal_error *err)
{
    call->whole = false;
    return all_databases(call, "ROLLBACK TO guard; RELEASE guard", err);
}

/* Try all drafts in a savepoint. Afterwards the savepoint is open if call->whole, else rolled
 * back. */
static annal_status try_all(struct guard_call *call, annal_error *err)
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
    status = all_databases(call, "SAVEPOINT guard", err);
    for (size_t i = 0; status >= 0 && i < call->count; i++)
        status = try_draft(call, i, now_us, err);
    if (status >= 0 && call->whole)
        return ANNAL_OK;
    annal_status undone = take_back(call, status >= 0 ? err : NULL);
    return status < 0 ? status : undone;
}

/* ---- Appending ---- */

static bool is_expected(const struct guard_call *call)
{
    const annal_append_options *options = call->options;
    return options->expect == ANNAL_EXPECT_ANY ||
           call->head == (options->expect == ANNAL_EXPECT_SEQ ? options->expected_seq : 0);
}

/* Run one attempt: try the events, check the guards and append (rules 2 to 4). ANNAL_ERR_CONFLICT
 * may mean that another process appended in between. */
static annal_status attempt(struct guard_call *call, uint64_t *out_seq, annal_error *err)
{
    const annal_append_options options = {
        .level = ANNAL_LEVEL_SYNC, .expect = ANNAL_EXPECT_SEQ, .expected_seq = call->head};
    if (!is_expected(call))
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "append to session '%.*s': the session ends at seq %llu",
                           ANNAL_FMT(call->session), (unsigned long long)call->head);
    annal_status status = try_all(call, err);
    if (status < 0)
        return status;
    status = annal__guard_mark(call, err);
    if (status >= 0)
        status = annal__guard_write(call, &options, out_seq, err);
    if (status >= 0 || !call->whole)
        return status;
    annal_status undone = take_back(call, NULL);
    return undone < 0
               ? annal__fail(
                     err, undone,
                     "append to session '%.*s': cannot undo the rows of the events that were tried",
                     ANNAL_FMT(call->session))
               : status;
}

/* Append while the tables are locked and caught up, in several attempts if other processes append,
 * too. */
static annal_status append_guarded(struct guard_call *call, uint64_t *out_seq, annal_error *err)
{
    annal_error why = {0};
    annal_status status = ANNAL_ERR_CONFLICT;
    bool retry = true;
    for (unsigned tries = 0; retry && tries < ATTEMPTS_MAX; tries++) {
        uint64_t head = call->head;
        if (call->decision != NULL)
            call->decision->overtaken = false; /* reset the result of the previous attempt */
        status = attempt(call, out_seq, &why);
        if ((status != ANNAL_ERR_CONFLICT && status != ANNAL_ERR_REFUSED) || !is_expected(call))
            break;
        /* Write events of this process to the journal and into the tables: a guard must see
         * them. */
        annal_status synced = annal_store_sync(call->index->store, err);
        if (synced >= 0)
            synced = annal__guard_update(call, err);
        if (synced < 0)
            return synced;
        retry = call->head != head;
    }
    bool is_new = call->decision != NULL && (call->decision->overtaken || call->decision->ids_made);
    if ((status == ANNAL_ERR_REFUSED || status == ANNAL_ERR_CONFLICT) && !is_new)
        return annal__guard_find_copy(call, &why, out_seq, err);
    return annal__error_pass(err, status, &why);
}

/*
 * Give the followers of this session the event that was tried, or NULL. Returns true if before this
 * call no follower held such an event.
 */
static bool set_tried(struct guard_call *call, const annal_event *tried)
{
    bool none = true;
    for (size_t i = 0; i < call->database_count; i++) {
        struct follower *follower;
        for (size_t j = 0; (follower = annal__guard_follower(call, &call->databases[i], j)) != NULL;
             j++) {
            none = none && follower->tried == NULL;
            bool asked =
                follower->applier != NULL && annal__follower_feeds(follower, call->session);
            follower->tried = asked ? tried : NULL;
        }
    }
    return none;
}

/* Keep the rows that were tried if the tables read the same event from the journal, else roll them
 * back (rule 2). */
static annal_status keep_tried(struct guard_call *call, bool *out_kept, annal_error *err)
{
    (void)set_tried(call, &call->tried);
    annal_status status = annal__guard_catch_up(call, NULL);
    *out_kept = set_tried(call, NULL) && status >= 0;
    if (*out_kept)
        return ANNAL_OK;
    for (size_t i = 0; i < call->database_count; i++)
        call->databases[i].derived->ops->undone(call->databases[i].derived->arg);
    return take_back(call, err);
}

/* Catch up and commit the tables after the append, and release the locks (rule 5). A failure is
 * only logged. */
static void follow_up(struct guard_call *call)
{
    annal_error why = {0};
    bool kept = false;
    annal_status status = call->whole ? keep_tried(call, &kept, &why) : ANNAL_OK;
    if (status >= 0 && !kept)
        status = annal__guard_catch_up(call, &why);
    annal_status ended = annal__guard_end(call, status >= 0, status >= 0 ? &why : NULL);
    if (status < 0 || ended < 0)
        annal__say(call->index->store, ANNAL_LOG_INFO, "%s", why.message);
}

static annal_status through_tables(struct guard_call *call, uint64_t *out_seq, annal_error *err)
{
    annal_status status = annal__guard_update(call, err);
    if (status >= 0)
        status = append_guarded(call, out_seq, err);
    if (status >= 0)
        follow_up(call);
    else
        (void)annal__guard_end(call, false, NULL);
    for (size_t i = 0; status == ANNAL_ERR_CORRUPT && i < call->database_count; i++)
        /* delete a corrupt database, so that the caller can try again */
        (void)annal__derived_heal_if_corrupt(call->databases[i].derived);
    return status;
}

/*
 * Append events whose types no pack fills or guards, so that no tables are read (large fields may
 * have been replaced by artifacts). If an artifact was stored, the level is at least sync: a sweep
 * of unused artifacts must find the event as soon as the hold on them ends, and at level batch the
 * event would not be in the journal yet.
 */
static annal_status past_tables(struct guard_call *call, uint64_t *out_seq, annal_error *err)
{
    annal_append_options options = *call->options;
    if (call->hold != NULL && options.level != ANNAL_LEVEL_OS)
        options.level = ANNAL_LEVEL_SYNC;
    for (size_t i = 0; i < call->count; i++)
        choose_data(call, i, call->plain[i]);
    return annal__guard_write(call, &options, out_seq, err);
}

/*
 * Pass the data of the last draft to the caller. It is moved, not copied, because nothing may fail
 * after an append.
 */
static void hand_out(struct guard_call *call, uint64_t seq, annal_appended *out)
{
    size_t last = call->count - 1;
    if (out == NULL)
        return;
    out->seq = seq;
    if (call->database_count > 0) {
        out->data = annal__buf_slice(&call->filled[last]);
        call->filled[last] = (struct buf){0};
    } else {
        out->data = call->plain[last];
        call->plain[last] = (annal_slice){0};
    }
}

/* Append without packs. The data is copied before the append, because nothing may fail after it. */
static annal_status append_unasked(const struct guard_call *call, annal_appended *out,
                                   annal_error *err)
{
    uint64_t seq = 0;
    annal_slice data = {0};
    if (out != NULL && call->count > 0)
        data = call->given[call->count - 1].data;
    char *copy = data.len == 0 ? NULL : annal__strndup(data.ptr, data.len);
    if (data.len > 0 && copy == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read the data of an event: out of memory");
    annal_status status =
        annal_writer_append(call->writer, call->given, call->count, call->options, &seq, err);
    if (status < 0)
        annal__free(copy);
    else if (out != NULL)
        *out = (annal_appended){.seq = seq, .data = {copy, data.len}};
    return status;
}

static void call_done(struct guard_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        if (call->plain != NULL)
            annal_free(call->plain[i].ptr);
        if (call->filled != NULL)
            annal__buf_done(&call->filled[i]);
    }
    annal__artifact_hold_free(call->hold);
    annal__free(call->plain);
    annal__free(call->drafts);
    annal__free(call->filled);
    annal__free(call->smaller);
    annal__free(call->databases);
    annal__packs_put(call->index, call->set);
}

static bool any_cares(const struct guard_call *call)
{
    for (size_t i = 0; i <= call->set->slot_count; i++)
        if (annal__guard_cares(call, pack_at(call, i), false) ||
            annal__guard_cares(call, pack_at(call, i), true))
            return true;
    return false;
}

/*
 * Turn rows that users wrote into the databases of this session into events (rule 8). Databases in
 * which this append begins a transaction are left out, because such a transaction begins by turning
 * these rows into events.
 */
static void drain_own(struct guard_call *call)
{
    for (size_t i = 0; i < call->set->slot_count; i++) {
        const struct pack_slot *slot = &call->set->slots[i];
        if (slot->pack != NULL && slot->pack->writable &&
            !annal__guard_cares(call, slot->pack, false) &&
            annal__pack_feeds(slot->pack, call->session, NULL))
            annal__packs_drain(call->index, call->set, slot, call->session, call->deadline_us);
    }
}

/* Return a pack whose file has an error and which guards, or may guard, one of the drafts, and set
 * *out_type; NULL if there is none (rule 9). */
static const struct pack_slot *find_bar(const struct guard_call *call, annal_slice *out_type)
{
    for (size_t i = 0; i < call->set->slot_count; i++)
        for (size_t j = 0; j < call->count; j++)
            if (annal__packs_slot_bars(&call->set->slots[i], call->given[j].type)) {
                *out_type = call->given[j].type;
                return &call->set->slots[i];
            }
    return NULL;
}

static annal_status check_bars(const struct guard_call *call, annal_error *err)
{
    annal_slice type;
    const struct pack_slot *slot = find_bar(call, &type);
    if (slot == NULL)
        return ANNAL_OK;
    return annal__fail(err, ANNAL_ERR_REFUSED,
                       "cannot check the guards of pack '%s', because the pack's file has an "
                       "error; no event '%.*s' can be appended until this file is repaired: %s",
                       slot->name, ANNAL_FMT(type), slot->error.message);
}

static annal_status append(const struct guard_call *as, annal_appended *out, annal_error *err)
{
    struct guard_call call = *as;
    annal_index *index = call.index;
    uint64_t seq = 0;
    annal_status status = annal__packs_get(index, &call.set, err);
    if (status < 0)
        return status;
    status = check_bars(&call, err);
    if (status < 0)
        goto done;
    if (call.count > 0 && !annal__session_list_is_read_only(index->store))
        drain_own(&call);
    if (call.count == 0 || annal__session_list_is_read_only(index->store) ||
        (call.decision == NULL && !any_cares(&call))) {
        status = append_unasked(&call, out, err);
        goto done;
    }
    status = make_plain(&call, err);
    if (status >= 0)
        status = find_databases(&call, err);
    if (status >= 0)
        status = annal__guard_fetch_reads(&call, err);
    if (status < 0)
        goto done;
    status =
        call.database_count > 0 ? through_tables(&call, &seq, err) : past_tables(&call, &seq, err);
    if (status >= 0)
        hand_out(&call, seq, out);

done:
    call_done(&call);
    return status;
}

annal_status annal_pack_append(annal_index *index, annal_writer *writer, const annal_draft *drafts,
                               size_t count, const annal_append_options *options,
                               annal_appended *out, annal_error *err)
{
    static const annal_append_options defaults;
    const struct guard_call call = {.index = index,
                                    .writer = writer,
                                    .session = annal__writer_session(writer),
                                    .options = options == NULL ? &defaults : options,
                                    .given = drafts,
                                    .count = count,
                                    .deadline_us = annal__deadline_after(annal__store_may_wait_ms(
                                        index->store, index->derived.wait_ms))};
    bool is_shared = false;
    annal_status status = annal__draft_check_expect(call.session, call.options, err);
    if (status >= 0 && call.options->strict)
        status = annal__type_fields_check(index, call.session, drafts, count, err);
    if (status >= 0 && count > 0 && !annal__session_list_is_read_only(index->store))
        status = annal__guard_is_shared(index, call.session, &is_shared, err);
    if (status < 0)
        return status;
    return is_shared ? annal__guard_shared(&call, append, out, err) : append(&call, out, err);
}

annal_status annal__guard_pack_asks(annal_index *index, annal_slice session, annal_slice type,
                                    bool *out_asks, annal_error *err)
{
    const annal_draft draft = {.type = type};
    struct guard_call call = {.index = index, .session = session, .given = &draft, .count = 1};
    annal_status status = annal__guard_is_shared(index, session, out_asks, err);
    if (status >= 0)
        status = annal__packs_get(index, &call.set, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < call.set->slot_count; i++)
        if (annal__guard_cares(&call, pack_at(&call, i), false) ||
            annal__guard_cares(&call, pack_at(&call, i), true))
            *out_asks = true;
    annal_slice unused;
    *out_asks = *out_asks || find_bar(&call, &unused) != NULL;
    annal__packs_put(index, call.set);
    return ANNAL_OK;
}
