/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/due.h"

#include "index/sys/open.h"
#include "index/sys/pack.h"
#include "index/sys/reduction_rows.h"
#include "index/sys/snapshot_rows.h"
#include "index/sys/state.h"
#include "snapshot/storage.h"
#include "snapshot/sys/snapshot.h"

#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <string.h>

/* Value of `reducer` in the rows of _reductions that note where a snapshot did not fit. The names
 * of C reducers contain no space, so it is not one of these. */
#define REFUSED ANNAL_SLICE("refused snapshot")

static uint32_t version_of(annal_index *index)
{
    const annal_pack *core = annal__index_core(index);
    return (uint32_t)annal__state_packs_version(&core, 1);
}

void annal__due_refused(annal_index *index, annal_slice session, struct snapshot_mark here,
                        uint64_t patience)
{
    uint64_t every = 0;
    const annal__reduction_row row = {.session = session,
                                      .reducer = REFUSED,
                                      .version = version_of(index),
                                      .every = patience,
                                      .seq = here.seq,
                                      .offset = here.offset};
    (void)!annal__reduction_put(index, &row, UINT64_MAX, 0, &every, NULL);
}

static annal_status look_up_refused(annal_index *index, annal_slice session, struct due *due,
                                    annal_error *err)
{
    annal__reduction_row row;
    annal_status status = annal__reduction_newest(index, session, REFUSED, version_of(index),
                                                  due->end.seq, &row, err);
    if (status < 0)
        return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : status;
    if (row.seq > due->last.seq && row.offset <= due->end.offset) {
        due->last = (struct snapshot_mark){row.seq, row.offset};
        due->patience = row.every;
    }
    annal_free(row.state.ptr);
    return ANNAL_OK;
}

/* Read the header of a row into *arg, as an annal__snapshot_row_fn. Whether the snapshot is valid
 * is checked when the next snapshot is taken. */
static int note_header(void *arg, const annal__snapshot_row *row)
{
    struct snapshot_header *header = arg;
    /* the complete length is needed for a check; only the header's bytes are read */
    annal_slice whole = {row->head.ptr, (size_t)row->bytes};
    if (row->head.len < SNAPSHOT_HEADER_BYTES ||
        annal__container_header_read(whole, header) != NULL || header->seq != row->seq)
        *header = (struct snapshot_header){0};
    return 0;
}

/* Find out since when the first event after the snapshot has waited for a snapshot: since its time
 * or, if it is an older imported event, since the journal was created. */
static annal_status look_up_since(annal_store *store, annal_slice session,
                                  const struct snapshot_header *header,
                                  const annal_session_info *info, int64_t *out_us, annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status = header->seq > 0
                              ? annal_cursor_open_at(store, session, header->seq + 1,
                                                     header->offset, header->h, &cursor, err)
                              : annal_cursor_open(store, session, info->fork_seq + 1, &cursor, err);
    if (status >= 0)
        status = annal_cursor_next(cursor, &event, err);
    *out_us = status == ANNAL_OK && event.ts_us > info->created_us ? event.ts_us : info->created_us;
    annal_cursor_close(cursor);
    /*
     * not a failure: the snapshot writer reports damage, and replaces snapshots of another journal
     */
    return status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_CORRUPT ||
                   status == ANNAL_ERR_NOTFOUND
               ? ANNAL_OK
               : status;
}

static uint64_t waited_ms(int64_t since_us, int64_t now_us)
{
    return now_us > since_us ? (uint64_t)(now_us - since_us) / 1000 : 0;
}

static bool passes(uint64_t distance, uint64_t grown, uint64_t end)
{
    return grown >= end || (end - grown) / distance != end / distance;
}

/* Return whether a snapshot may be due, so that the newest snapshot must be read from the index to
 * decide. */
static bool may_be_due(const annal_snapshot_policy *policy, const struct due *due,
                       const struct snapshot_mark *grown, int64_t now_us)
{
    if (!annal__policy_is_due(policy, due->last, due->end))
        return grown == NULL && annal__policy_is_due_by_time(policy, due->last, due->end,
                                                             waited_ms(due->since_us, now_us));
    return grown == NULL ||
           passes(policy->every_events, grown->seq, due->end.seq - due->last.seq) ||
           passes(policy->every_bytes, grown->offset, due->end.offset);
}

annal_status annal__due_look(annal_index *index, annal_slice session,
                             const annal_snapshot_policy *policy, const struct snapshot_mark *grown,
                             struct due *out_due, annal_error *err)
{
    annal_store *store = annal__index_store(index);
    const struct clock *clock = annal__store_clock(store);
    int64_t now_us = clock->wall_us(clock->arg);
    annal_session_info info;
    annal_status status = annal_session_info_get(store, session, &info, err);
    if (status < 0)
        return status;
    struct due due = {.last = {info.fork_seq, 0},
                      .end = {info.last_seq, info.end_offset},
                      .stride = 1,
                      .patience = 1,
                      .since_us = info.created_us};
    struct snapshot_header header = {0};
    if (due.end.seq <= due.last.seq)
        due.since_us = 0;
    if (!may_be_due(policy, &due, grown, now_us)) {
        *out_due = due;
        return ANNAL_OK;
    }
    status = annal__reader_snapshot_last(index, session, note_header, &header, err);
    if (status >= 0 && strcmp(header.file, info.file) != 0)
        header = (struct snapshot_header){0};
    if (status >= 0 && header.seq > 0) {
        due.last = (struct snapshot_mark){header.seq, header.offset};
        due.stride = header.stride == 0 ? 1 : header.stride;
    }
    due.since_us = 0;
    due.known = true;
    if (status >= 0 && due.end.seq > due.last.seq)
        status = look_up_since(store, session, &header, &info, &due.since_us, err);
    for (int round = 0; status >= 0 && round < 2; round++) {
        const annal_snapshot_policy far = annal__policy_stretch(policy, due.stride * due.patience);
        due.now =
            annal__policy_is_due(&far, due.last, due.end) ||
            annal__policy_is_due_by_time(&far, due.last, due.end, waited_ms(due.since_us, now_us));
        if (due.now && round == 0)
            status = look_up_refused(index, session, &due, err);
    }
    if (status >= 0)
        *out_due = due;
    return status < 0 ? status : ANNAL_OK;
}

/* ---- All overdue snapshots ---- */

struct overdue_call {
    annal_index *index;
    annal_snapshot_policy policy;
    annal__snapshot_overdue_fn fn;
    void *arg;
};

/* Report a session if a snapshot of it is due, as an annal_session_fn. A journal that cannot be
 * read is reported elsewhere. */
static int report_overdue(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    const struct overdue_call *call = arg;
    struct due due;
    if (annal__due_look(call->index, session, &call->policy, NULL, &due, NULL) < 0 || !due.now)
        return 0;
    const annal__snapshot_overdue overdue = {.session = session,
                                             .events = due.end.seq - due.last.seq,
                                             .bytes = due.end.offset - due.last.offset,
                                             .since_us = due.since_us};
    return call->fn(call->arg, &overdue);
}

annal_status annal__due_each(annal_index *index, const annal_snapshot_policy *policy,
                             annal__snapshot_overdue_fn fn, void *arg, annal_error *err)
{
    struct overdue_call call = {index, annal__policy_fill(policy), fn, arg};
    return annal__session_list_read(annal__index_store(index), report_overdue, &call, err);
}
