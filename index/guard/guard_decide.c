/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending to a session that several stores share. The decider (annal_index_options.decider),
 * which all of them reach, orders the events.
 *
 * (1) First, events that the decider has committed and that are missing locally are fetched, so
 *     that guards are checked against the complete session.
 * (2) After the guards allowed the events (guard.c, rule 2), and unless events with these ids
 *     exist, the events are encoded, with seq, time and hash, and the decider commits them if its
 *     session ends where the local session ends. Each event has an id, which is generated here if
 *     the caller gave none. So no two stores ever commit the same event, and an event whose outcome
 *     is unknown can be searched for.
 * (3) Then exactly these events are appended: the append passes the hash of the last event. If the
 *     process dies before the append, its committed events are fetched by the next append or pull.
 * (4) If another store committed events first, or the session was released in the meantime, the
 *     append begins again at (1) after a random pause, with the same ids; a guard usually refuses
 *     then.
 * (5) A session is shared if its lease says so, or if a pack declares it as shared (`scope
 *     cluster`) and the store belongs to a cluster, that is, it has the file `cluster`. Then the
 *     decider shares the session before its first append in this store, whatever the type of the
 *     event. A store with a valid lease on a session that is not shared decides itself.
 * (6) Shared sessions in a section's `reads` are fetched, too, and the events are committed only if
 *     these sessions still end where they ended when the guards were checked. Items of the form
 *     `name*` are not fetched or compared.
 */
#include "index/guard/guard.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/sys/draft.h"
#include "journal/sys/seam.h"

#include <annal/lease.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { TRIES_MAX = 30, PAUSE_US = 2000, PAUSES_DOUBLED = 5, ID_BYTES = 33 };

/* ---- Rule 5: which sessions are shared ---- */

static annal_status has_cluster(const annal_store *store, bool *out, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    if (annal__buf_printf(&path, "%s/cluster", annal_store_path(store)) < 0 ||
        annal__buf_cstr(&path) == NULL) {
        return annal__fail(err, ANNAL_ERR_NOMEM,
                           "compose the path of the file STORE/cluster: out of memory");
    }
    annal_status status = ANNAL_OK;
    int fd = io->open(io->arg, path.ptr, O_RDONLY, 0);
    *out = fd >= 0;
    if (fd >= 0)
        io->close(io->arg, fd);
    else if (errno != ENOENT)
        status = annal__fail_errno(err, "cannot open %s", path.ptr);
    return status;
}

annal_status annal__guard_is_shared(annal_index *index, annal_slice session, bool *out,
                                    annal_error *err)
{
    annal_lease lease = {0};
    struct pack_set *set = NULL;
    bool is_named = false;
    annal_status status = annal_lease_get(index->store, session, &lease, NULL);
    *out = lease.shared && index->decider != NULL;
    if (lease.shared || annal_lease_now() < lease.until_us || status == ANNAL_ERR_CORRUPT)
        return ANNAL_OK;
    status = annal__packs_get(index, &set, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < set->slot_count; i++)
        is_named = is_named ||
                   (set->slots[i].pack != NULL && annal__pack_shares(set->slots[i].pack, session));
    annal__packs_put(index, set);
    return is_named ? has_cluster(index->store, out, err) : ANNAL_OK;
}

/* Make the session shared between the stores of the cluster, unless it is: annal__guard_is_shared()
 * may have found only a pack that declares it as shared. */
static annal_status share(const annal_index *index, annal_slice session, annal_error *err)
{
    annal_lease lease = {0};
    const annal_decider *decider = index->decider;
    if (decider == NULL)
        return annal__fail(err, ANNAL_ERR_REFUSED,
                           "append to session '%.*s': refused, because a cluster shares the "
                           "session: use 'annal append', or set annal_index_options.decider",
                           ANNAL_FMT(session));
    if (annal_lease_get(index->store, session, &lease, NULL) == ANNAL_OK && lease.shared)
        return ANNAL_OK;
    return decider->share(decider->arg, session, err);
}

/* ---- Rule 6: sessions that guards read ---- */

/* Find the end of a session. Without a local journal, *out contains only the session's name. */
static annal_status find_end(const annal_index *index, annal_slice session, annal_session_info *out,
                             annal_error *err)
{
    annal_error why = {0};
    annal_status status = annal_session_info_get(index->store, session, out, &why);
    if (status == ANNAL_ERR_NOTFOUND) {
        *out = (annal_session_info){0};
        snprintf(out->session, sizeof out->session, "%.*s", ANNAL_FMT(session));
    } else if (status < 0) {
        return annal__error_pass(err, status, &why);
    }
    return ANNAL_OK;
}

static annal_status fetch_read(struct guard_call *call, annal_slice session, annal_error *err)
{
    struct guard_decision *decision = call->decision;
    const annal_decider *decider = call->index->decider;
    bool is_shared = false, is_known = annal__slice_same(session, call->session);
    for (size_t i = 0; i < decision->read_count; i++)
        is_known =
            is_known || annal__slice_same(session, annal_slice_of(decision->reads[i].session));
    if (is_known)
        return ANNAL_OK;
    annal_status status = annal__guard_is_shared(call->index, session, &is_shared, err);
    if (status < 0 || !is_shared)
        return status;
    status = share(call->index, session, err);
    if (status >= 0)
        status = decider->bring(decider->arg, session, err);
    decision->overtaken = status == ANNAL_ERR_CONFLICT;
    if (status < 0)
        return status;
    annal_session_info *read =
        annal__array_add(&decision->reads, &decision->read_count, sizeof *read);
    if (read == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "check the guards for an append: out of memory");
    return find_end(call->index, session, read, err);
}

static annal_status fetch_section(struct guard_call *call, const struct pack_section *section,
                                  annal_slice data, annal_error *err)
{
    annal_status status = ANNAL_OK;
    const char *at = section->reads == NULL ? "" : section->reads;
    for (; status >= 0 && *at != '\0'; at += strlen(at) + 1) {
        SCOPED_BUF text = {0};
        annal_slice session = annal_slice_of(at);
        if (strchr(at, '$') != NULL && annal__guard_named(data, at, &text, &session) < 0)
            session.len = 0;
        if (session.len > 0 && annal_session_id_check(session, NULL) == ANNAL_OK)
            status = fetch_read(call, session, err);
    }
    return status;
}

annal_status annal__guard_fetch_reads(struct guard_call *call, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (call->decision == NULL)
        return ANNAL_OK;
    call->decision->read_count = 0;
    for (size_t i = 0; status >= 0 && i < call->set->slot_count; i++) {
        const annal_pack *pack = call->set->slots[i].pack;
        if (!annal__guard_cares(call, pack, false))
            continue;
        for (size_t j = 0; j < pack->section_count; j++)
            for (size_t k = 0; status >= 0 && k < call->count; k++)
                if (annal__guard_is_of_interest(&pack->sections[j], false) &&
                    annal__pack_section_takes(&pack->sections[j], call->given[k].type))
                    status = fetch_section(call, &pack->sections[j], call->plain[k], err);
    }
    return status;
}

/* ---- Rules 2 and 3: commit, then append ---- */

struct decided {
    annal_session_info end; /* end of the journal before the events are appended */
    bool is_new;            /* whether the events are the first of the session: no journal exists */
    annal_event *events;
    struct buf *data; /* data[i] is the encoded data of events[i] */
};

static annal_status encode(struct guard_call *call, struct decided *decided, annal_error *err)
{
    annal_session_info at = decided->end;
    annal_status status = ANNAL_OK;
    decided->events = annal__zalloc(call->count * sizeof *decided->events);
    decided->data = annal__zalloc(call->count * sizeof *decided->data);
    if (decided->events == NULL || decided->data == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "append to session '%s': out of memory",
                           at.session);
    for (size_t i = 0; status >= 0 && i < call->count; i++) {
        annal_draft *draft = &call->drafts[i];
        if (draft->ts_us == 0)
            draft->ts_us =
                ANNAL_TS(annal__clock_after(annal__store_clock(call->index->store), at.last_ts_us));
        status = annal__draft_event(draft, &at, &decided->data[i], &decided->events[i], err);
    }
    return status;
}

/*
 * Write the first events of a session, which have been committed, into the journal: the decider
 * downloads them with the journal's file name and creation time, because an append would begin a
 * second journal. Fails if another journal was downloaded.
 */
static annal_status append_first(const struct guard_call *call, const struct decided *decided,
                                 uint64_t *out_seq, annal_error *err)
{
    annal_session_info info = {0};
    const annal_decider *decider = call->index->decider;
    annal_status status = decider->bring(decider->arg, call->session, err);
    if (status >= 0)
        status = annal_session_info_get(call->index->store, call->session, &info, err);
    if (status >= 0 && strcmp(info.file, decided->end.file) != 0)
        status = annal__fail(err, ANNAL_ERR_CONFLICT,
                             "append to session '%.*s': another process downloaded a different "
                             "journal of the session in the meantime; try again",
                             ANNAL_FMT(call->session));
    *out_seq = 1;
    return status;
}

/*
 * Append the committed events to the journal (rule 3), with the committed JSON data: msgpack has
 * several encodings of the same data, and the hash depends on the encoding. A failure does not undo
 * the commit of the decider.
 */
static annal_status append_decided(struct guard_call *call, const struct decided *decided,
                                   uint64_t *out_seq, annal_error *err)
{
    annal_error why = {0};
    const annal_append_options options = {.level = ANNAL_LEVEL_SYNC,
                                          .expect = ANNAL_EXPECT_SEQ,
                                          .expected_seq = decided->end.last_seq,
                                          .h = decided->events[call->count - 1].h};
    for (size_t i = 0; i < call->count; i++) {
        call->drafts[i].data = decided->events[i].data;
        call->drafts[i].data_format = ANNAL_FORMAT_JSON;
    }
    annal_status status =
        decided->is_new
            ? append_first(call, decided, out_seq, &why)
            : annal_writer_append(call->writer, call->drafts, call->count, &options, out_seq, &why);
    if (status >= 0)
        return status;
    return annal__fail(err, ANNAL_ERR_UNKNOWN,
                       "session '%s': event %" PRIu64
                       " is committed in the database, but not in the local journal yet; the next "
                       "append writes it: %.300s",
                       decided->end.session, decided->events[0].seq, why.message);
}

/*
 * Find an earlier copy of the events, or return ANNAL_ERR_REFUSED if they do not exist yet and
 * could be appended. annal_writer_append() gets a hash that no event has, so it finds copies but
 * appends nothing. Events whose ids were generated by this call can exist only after the known end
 * of the session.
 */
static annal_status find_earlier(struct guard_call *call, const annal_append_options *options,
                                 uint64_t last_seq, uint64_t *out_seq, annal_error *err)
{
    annal_append_options probe = *options;
    probe.h = UINT64_MAX;
    if (call->decision->ids_made) {
        probe.expect = ANNAL_EXPECT_SEQ;
        probe.expected_seq = last_seq;
    }
    return annal_writer_append(call->writer, call->drafts, call->count, &probe, out_seq, err);
}

static annal_status decide(struct guard_call *call, const annal_append_options *options,
                           struct decided *decided, uint64_t *out_seq, annal_error *err)
{
    struct guard_decision *decision = call->decision;
    const annal_decider *decider = call->index->decider;
    annal_session_info *end = &decided->end;
    annal_status status = find_end(call->index, call->session, end, err);
    decided->is_new = status >= 0 && end->file[0] == '\0';
    if (decided->is_new)
        status = annal__writer_begin(call->writer, call->drafts, call->count, end, err);
    if (status < 0)
        return status;
    uint64_t expected = options->expect == ANNAL_EXPECT_SEQ ? options->expected_seq : 0;
    bool is_expected = options->expect == ANNAL_EXPECT_ANY || expected == end->last_seq;
    if (!decided->is_new && (is_expected || !decision->ids_made)) {
        annal_status found = find_earlier(call, options, end->last_seq, out_seq, err);
        /* another process of this store appended to the session */
        if (found == ANNAL_ERR_CONFLICT && decision->ids_made)
            decision->overtaken = options->expect == ANNAL_EXPECT_ANY;
        if (found != ANNAL_ERR_REFUSED)
            return found;
    }
    if (!is_expected)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "append to session '%s': the session ends at seq %" PRIu64
                           ", not at %" PRIu64,
                           end->session, end->last_seq, expected);
    status = encode(call, decided, err);
    if (status >= 0)
        status = decider->decide(decider->arg,
                                 &(annal_decision){.end = end,
                                                   .events = decided->events,
                                                   .count = call->count,
                                                   .reads = decision->reads,
                                                   .read_count = decision->read_count},
                                 err);
    decision->overtaken = status == ANNAL_ERR_CONFLICT;
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

/* ---- Rules 1 and 4: fetch, and try again ---- */

/* Give an id to each draft that has none (rule 2). *out_texts contains the new ids; the caller
 * frees both results, also after a failure. */
static annal_status name_drafts(struct guard_call *call, annal_draft **out_drafts, char **out_texts,
                                annal_error *err)
{
    annal_draft *drafts = annal__zalloc(call->count * sizeof *drafts);
    char *texts = annal__zalloc(call->count * ID_BYTES);
    *out_drafts = drafts;
    *out_texts = texts;
    if (drafts == NULL || texts == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "check the guards for an append: out of memory");
    call->decision->ids_made = true;
    for (size_t i = 0; i < call->count; i++) {
        char *text = texts + i * ID_BYTES;
        uint64_t random[2];
        drafts[i] = call->given[i];
        call->decision->ids_made = call->decision->ids_made && drafts[i].id.len == 0;
        if (drafts[i].id.len > 0)
            continue;
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return annal__fail_errno(
                err, "append to session '%.*s': cannot get random bytes for the ids of its events",
                ANNAL_FMT(call->session));
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

/* Before another attempt, make sure that the session is still shared between the stores of the
 * cluster: it may have been released since the last attempt. */
static annal_status share_again(const struct guard_call *call, annal_error *err)
{
    bool is_shared = false;
    annal_status status = annal__guard_is_shared(call->index, call->session, &is_shared, err);
    if (status >= 0 && !is_shared)
        status = annal__fail(err, ANNAL_ERR_REFUSED,
                             "append to session '%.*s': refused, because the session is no longer "
                             "shared: 'annal home status' shows where its home is",
                             ANNAL_FMT(call->session));
    return status < 0 ? status : share(call->index, call->session, err);
}

annal_status annal__guard_shared(const struct guard_call *as, guard_append_fn append,
                                 annal_appended *out, annal_error *err)
{
    struct guard_decision decision = {0};
    struct guard_call call = *as;
    const annal_decider *decider = call.index->decider;
    annal_draft *drafts = NULL;
    char *texts = NULL;
    call.decision = &decision;
    annal_status status = name_drafts(&call, &drafts, &texts, err);
    for (unsigned tries = 0; status >= 0 && tries < TRIES_MAX; tries++) {
        if (tries > 0)
            pause_by_chance(call.index->store, tries);
        status = share_again(&call, err);
        if (status >= 0)
            status = decider->bring(decider->arg, call.session, err);
        decision.overtaken = status == ANNAL_ERR_CONFLICT;
        if (status >= 0)
            status = append(&call, out, err);
        if (!decision.overtaken)
            break;
        status = tries + 1 < TRIES_MAX ? ANNAL_OK : ANNAL_ERR_BUSY;
    }
    if (decision.overtaken && status == ANNAL_ERR_BUSY)
        annal__fail(
            err, status,
            "append to session '%.*s': gave up after %d conflicts with other stores: try again",
            ANNAL_FMT(call.session), TRIES_MAX);
    annal__free(decision.reads);
    annal__free(drafts);
    annal__free(texts);
    return status;
}
