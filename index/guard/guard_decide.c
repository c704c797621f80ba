/*
 * Appending to a session that several stores share: whoever all of them reach decides.
 *
 * (1) First what was decided and is not here yet is brought, so that guards are asked over all of
 *     the session.
 * (2) After the guards (guard.c, rule 2), and unless events with these ids are there, the events
 *     are encoded, with seq, time and hash, and the decider commits them if the session ends there
 *     as it does here. They have ids, which are made here if the caller gave none: so no two stores
 *     ever decide the same event, and one whose outcome is not known can be looked for.
 * (3) Then these events are appended, and no others: the append is told the hash of the last. A
 *     process that dies before leaves events that the next append, or a pull, brings.
 * (4) If another store was first, all begins again at (1) after a pause by chance, with the same
 *     ids; most often a guard refuses then.
 */
#include "index/guard/guard.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/draft.h"
#include "journal/sys/seam.h"

#include <annal/lease.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { TRIES_MAX = 30, PAUSE_US = 2000, PAUSES_DOUBLED = 5, ID_BYTES = 33 };

bool annal__guard_is_shared(const annal_index *index, annal_slice session)
{
    annal_lease lease = {0};
    return index->decider != NULL &&
           annal_lease_get(index->store, session, &lease, NULL) == ANNAL_OK && lease.shared;
}

/* ---- Rules 2 and 3 ---- */

struct decided {
    annal_session_info end; /* of the journal, before them */
    annal_event *events;
    struct buf *data; /* of each of them */
};

static annal_status encode(struct guard_call *call, struct decided *decided, annal_error *err)
{
    annal_session_info at = decided->end;
    annal_status status = ANNAL_OK;
    decided->events = annal__zalloc(call->count * sizeof *decided->events);
    decided->data = annal__zalloc(call->count * sizeof *decided->data);
    if (decided->events == NULL || decided->data == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "append to session '%s': no memory", at.session);
    for (size_t i = 0; status >= 0 && i < call->count; i++) {
        annal_draft *draft = &call->drafts[i];
        if (draft->ts_us == 0)
            draft->ts_us =
                ANNAL_TS(annal__clock_after(annal__store_clock(call->index->store), at.last_ts_us));
        status = annal__draft_event(draft, &at, &decided->data[i], &decided->events[i], err);
    }
    return status;
}

/* Rule 3. What fails here does not undo the decision. */
static annal_status append_decided(struct guard_call *call, const struct decided *decided,
                                   uint64_t *out_seq, annal_error *err)
{
    annal_error why = {0};
    const annal_append_options options = {.level = ANNAL_LEVEL_SYNC,
                                          .expect = ANNAL_EXPECT_SEQ,
                                          .expected_seq = decided->end.last_seq,
                                          .h = decided->events[call->count - 1].h};
    annal_status status =
        annal_writer_append(call->writer, call->drafts, call->count, &options, out_seq, &why);
    if (status >= 0)
        return status;
    return annal__fail(err, ANNAL_ERR_UNKNOWN,
                       "session '%s': event %" PRIu64 " is decided, and not in the journal yet; "
                       "the next append brings it: %.300s",
                       decided->end.session, decided->events[0].seq, why.message);
}

/* ANNAL_ERR_REFUSED: these events are not there yet. No event has this hash, so nothing is
 * appended. */
static annal_status find_earlier(struct guard_call *call, const annal_append_options *options,
                                 uint64_t *out_seq, annal_error *err)
{
    annal_append_options probe = *options;
    probe.h = UINT64_MAX;
    return annal_writer_append(call->writer, call->drafts, call->count, &probe, out_seq, err);
}

static annal_status decide(struct guard_call *call, const annal_append_options *options,
                           struct decided *decided, uint64_t *out_seq, annal_error *err)
{
    if (!call->decision->ids_made) {
        annal_status found = find_earlier(call, options, out_seq, err);
        if (found != ANNAL_ERR_REFUSED)
            return found;
    }
    const annal_decider *decider = call->decision->decider;
    annal_session_info *end = &decided->end;
    annal_status status = annal_session_info_get(call->index->store, call->session, end, err);
    if (status < 0)
        return status;
    uint64_t expected = options->expect == ANNAL_EXPECT_SEQ ? options->expected_seq : 0;
    if (options->expect != ANNAL_EXPECT_ANY && expected != end->last_seq)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "append to session '%s': it ends at seq %" PRIu64 ", not at %" PRIu64,
                           end->session, end->last_seq, expected);
    status = encode(call, decided, err);
    if (status >= 0)
        status = decider->decide(decider->arg, end, decided->events, call->count, err);
    call->decision->overtaken = status == ANNAL_ERR_CONFLICT;
    return status < 0 ? status : append_decided(call, decided, out_seq, err);
}

annal_status annal__guard_write(struct guard_call *call, const annal_append_options *options,
                                uint64_t *out_seq, annal_error *err)
{
    struct decided decided = {0};
    if (call->decision == NULL)
        return annal_writer_append(call->writer, call->drafts, call->count, options, out_seq, err);
    annal_status status = decide(call, options, &decided, out_seq, err);
    for (size_t i = 0; decided.data != NULL && i < call->count; i++)
        annal__buf_done(&decided.data[i]);
    annal__free(decided.data);
    annal__free(decided.events);
    return status;
}

/* ---- Rules 1 and 4 ---- */

/* Rule 2: drafts that all have ids; texts is what the new ones are in. */
static annal_status name_drafts(struct guard_call *call, annal_draft **out_drafts, char **out_texts,
                                annal_error *err)
{
    annal_draft *drafts = annal__zalloc(call->count * sizeof *drafts);
    char *texts = annal__zalloc(call->count * ID_BYTES);
    *out_drafts = drafts;
    *out_texts = texts;
    if (drafts == NULL || texts == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "append through the packs");
    call->decision->ids_made = true;
    for (size_t i = 0; i < call->count; i++) {
        char *text = texts + i * ID_BYTES;
        uint64_t random[2];
        drafts[i] = call->given[i];
        call->decision->ids_made = call->decision->ids_made && drafts[i].id.len == 0;
        if (drafts[i].id.len > 0)
            continue;
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return annal__fail_errno(err, "get random bytes");
        snprintf(text, ID_BYTES, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
        drafts[i].id = (annal_slice){text, ID_BYTES - 1};
    }
    call->given = drafts;
    return ANNAL_OK;
}

static void pause_by_chance(annal_store *store, unsigned tries)
{
    uint32_t random = 0;
    (void)getrandom(&random, sizeof random, 0);
    unsigned doubled = tries < PAUSES_DOUBLED ? tries : PAUSES_DOUBLED;
    annal__store_wait(store, 1 + (int64_t)(random % ((uint32_t)PAUSE_US << doubled)));
}

annal_status annal__guard_shared(const struct guard_call *as, guard_append_fn append,
                                 annal_appended *out, annal_error *err)
{
    struct guard_decision decision = {.decider = as->index->decider};
    struct guard_call call = *as;
    annal_draft *drafts = NULL;
    char *texts = NULL;
    call.decision = &decision;
    annal_status status = name_drafts(&call, &drafts, &texts, err);
    for (unsigned tries = 0; status >= 0 && tries < TRIES_MAX; tries++) {
        if (tries > 0)
            pause_by_chance(call.index->store, tries);
        decision.overtaken = false;
        status = decision.decider->bring(decision.decider->arg, call.session, err);
        if (status >= 0)
            status = append(&call, out, err);
        if (!decision.overtaken)
            break;
        status = tries + 1 < TRIES_MAX ? ANNAL_OK : ANNAL_ERR_BUSY;
    }
    if (decision.overtaken && status == ANNAL_ERR_BUSY)
        annal__fail(err, status,
                    "append to session '%.*s': other stores were first %d times: try again",
                    ANNAL_FMT(call.session), TRIES_MAX);
    annal__free(drafts);
    annal__free(texts);
    return status;
}
