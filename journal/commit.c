/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/commit.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/thread.h"
#include "journal/checkpoint.h"
#include "journal/commit_stop.h"
#include "journal/failure.h"
#include "journal/failure_late.h"
#include "journal/keeper_wake.h"
#include "journal/session_file.h"
#include "journal/slot_log.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/*
 * How long a leader (the thread that writes a group) waits for the threads that the previous group
 * has woken, in us. If they did not append in this time, only one in GATHER_EVERY leaders waits
 * again.
 */
#define GATHER_US    100
#define GATHER_EVERY 16
/* longest sleep in us of a thread that waits for a group; nothing depends on the value */
#define WAIT_US 1000000
/*
 * A region that is full after less than REGION_QUICK_US microseconds is too small, because
 * checkpoints would disturb the syncs of the log. Regions of at least REGION_QUICK_MAX bytes do not
 * grow for this reason.
 */
#define REGION_QUICK_US  250000
#define REGION_QUICK_MAX ((uint64_t)16 << 20)
/* From this number of journals on, a checkpoint takes long, even if little was written to each; the
 * log then grows in one step. */
#define JOURNALS_MANY 256

/* A group with at least 2 * RECORDS_PER_APPLIER records is written into the journals by several
 * threads, at most APPLIERS_MAX. */
#define APPLIERS_MAX        4u
#define RECORDS_PER_APPLIER 32u

/*
 * Number of new bytes in a journal after which the kernel is asked to write them to the disk:
 * PIECE_OF_ONE if the group has one event, else PIECE_OF_MANY. The caller waits for this write.
 * Groups of many events wait often, so each time for few bytes; groups of one event wait once in
 * more than 100 groups.
 */
#define PIECE_OF_MANY ((uint64_t)64 << 10)
#define PIECE_OF_ONE  ((uint64_t)512 << 10)

/* A group of fewer than GROUP_BYTES_SOFT bytes accepts one more append of any size, with the bytes
 * of level os that precede it. */
#define GROUP_BYTES_MAX (GROUP_BYTES_SOFT + 2 * (size_t)ANNAL_APPEND_BYTES_MAX)

/* ---- Groups ---- */

static struct group *group_new(void)
{
    struct group *group = annal__zalloc(sizeof *group);
    if (group == NULL)
        return NULL;
    group->payload.limit = GROUP_BYTES_MAX;
    return group;
}

static void group_free(struct group *group)
{
    if (group == NULL)
        return;
    annal__buf_done(&group->payload);
    annal__free(group->records);
    annal__free(group);
}

/* Keep the memory of a group that no thread uses any more for the next group, unless it is
 * large. */
static void group_recycle(struct commit *commit, struct group *group)
{
    if (commit->spare != NULL || group->payload.cap > 2 * GROUP_BYTES_SOFT) {
        group_free(group);
        return;
    }
    annal__buf_clear(&group->payload);
    group->count = 0;
    group->waiting = 0;
    group->wanted = 0;
    atomic_store(&group->gathered, 0);
    group->events = group->data_bytes = 0;
    group->first_us = 0;
    group->outcome = ANNAL_OK;
    group->replaced = false;
    atomic_store(&group->word, 0);
    commit->spare = group;
}

static void drop_reference(struct commit *commit, struct group *group)
{
    if (--group->references == 0 && (atomic_load(&group->word) & GROUP_DONE) != 0 &&
        group != commit->current)
        group_recycle(commit, group);
}

annal_status annal__commit_init(struct commit *commit)
{
    commit->current = group_new();
    if (commit->current == NULL || pthread_mutex_init(&commit->lock, NULL) != 0 ||
        pthread_cond_init(&commit->turn, NULL) != 0)
        return ANNAL_ERR_NOMEM;
    commit->current->number = 1;
    return ANNAL_OK;
}

void annal__commit_done(struct commit *commit)
{
    group_free(commit->current);
    group_free(commit->last);
    group_free(commit->spare);
    pthread_cond_destroy(&commit->turn);
    pthread_mutex_destroy(&commit->lock);
}

/* ---- Adding ---- */

static bool is_full(const struct group *group)
{
    return group->payload.len >= GROUP_BYTES_SOFT;
}

static annal_status add_record(struct group *group, const struct group_record *record)
{
    /* Usually the new record begins where the group's last record ends, and is merged into it. */
    struct group_record *last = group->count > 0 ? &group->records[group->count - 1] : NULL;
    if (last != NULL && last->session == record->session && !record->create &&
        record->offset == last->offset + last->length - last->header_bytes) {
        last->mark = record->mark;
        if (last->length == 0)
            last->loose = record->loose;
        last->length += record->length;
        last->last_seq = record->last_seq;
        last->h_after = record->h_after;
        return ANNAL_OK;
    }
    if (group->count == group->room) {
        size_t room = group->room == 0 ? 16 : group->room * 2;
        struct group_record *bigger = annal__realloc_array(group->records, room, sizeof *bigger);
        if (bigger == NULL)
            return ANNAL_ERR_NOMEM;
        group->records = bigger;
        group->room = room;
    }
    struct session *session = record->session;
    struct group_record *added = &group->records[group->count];
    *added = *record;
    added->before = annal__failure_session_tail(session);
    added->next = 0;
    added->first = session->last_group != group->number;
    if (!added->first)
        group->records[session->last_record].next = group->count;
    session->last_group = group->number;
    session->last_record = group->count++;
    session->pending++;
    return ANNAL_OK;
}

annal_status annal__commit_add(struct commit *commit, struct group_record *record,
                               annal_slice header, annal_slice loose, annal_slice lines,
                               uint64_t events, uint64_t data_bytes, bool batch,
                               struct group **out_group, annal_error *err)
{
    bool ring = false;
    bool gathered = false;
    pthread_mutex_lock(&commit->lock);
    struct group *group = commit->current;
    record->at = group->payload.len;
    record->header_bytes = header.len;
    record->length = header.len + loose.len + lines.len;
    record->loose = header.len == 0 ? loose.len : 0;
    annal_status status =
        commit->failed || commit->refusing ? annal__commit_refuse(commit, err) : ANNAL_OK;
    if (status == ANNAL_OK && is_full(group))
        status = ANNAL_END;
    if (status != ANNAL_OK)
        goto done;
    status = annal__log_reserve(&group->payload, record->length);
    if (status == ANNAL_OK)
        status = add_record(group, record);
    if (status < 0) {
        annal__fail(err, status, "append to session '%s': out of memory", record->session->id);
        goto done;
    }
    (void)annal__buf_append_slice(&group->payload, header);
    (void)annal__buf_append_slice(&group->payload, loose);
    (void)annal__buf_append_slice(&group->payload, lines);
    group->waiting += !batch;
    gathered = !batch && group->waiting == group->wanted;
    group->events += events;
    group->data_bytes += data_bytes;
    group->references++;
    atomic_fetch_add(&commit->unapplied_bytes, record->length);
    if (batch && group->first_us == 0) {
        group->first_us = annal__context_now_us(commit->context);
        ring = true;
    }
    *out_group = group;

done:
    pthread_mutex_unlock(&commit->lock);
    if (gathered) {
        atomic_store(&group->gathered, 1);
        annal__futex_wake(&group->gathered);
    }
    if (ring)
        annal__keeper_wake(commit->sessions->alarm);
    return status;
}

/* ---- Leading ---- */

/* Append the toc entries of a record: one for the header of a new journal, one for its events, one
 * for the mark of level os. Add their number to *io_records. */
static annal_status put_record(struct buf *toc, const struct group_record *from,
                               uint32_t *io_records)
{
    const struct session *session = from->session;
    uint64_t length = from->length - from->header_bytes;
    struct record record = {.format = session->codec->format,
                            .session = annal__session_id(session)};
    memcpy(record.file, session->file, sizeof record.file);
    annal_status status = ANNAL_OK;
    if (from->create) {
        record.type = RECORD_CREATE;
        record.length = from->header_bytes;
        record.h_after = from->h_before;
        status = annal__log_put_record(toc, &record);
        ++*io_records;
    }
    record.offset = from->offset;
    record.first_seq = from->first_seq;
    record.last_seq = from->last_seq;
    record.h_before = from->h_before;
    record.h_after = from->h_after;
    if (status == ANNAL_OK && (length > 0 || !from->mark)) {
        record.type = RECORD_BYTES;
        record.length = length;
        status = annal__log_put_record(toc, &record);
        ++*io_records;
    }
    if (status == ANNAL_OK && from->mark) {
        record.type = RECORD_LOOSE;
        record.offset = from->offset + length;
        record.length = 0;
        record.first_seq = from->last_seq + 1;
        record.last_seq = from->last_seq;
        record.h_before = from->h_after;
        status = annal__log_put_record(toc, &record);
        ++*io_records;
    }
    return status;
}

/* Write a group to the log and sync it, measuring the sync. bytes is its size in the log. */
static annal_status log_group(struct commit *commit, uint64_t bytes, uint32_t records,
                              const struct buf *toc, const struct buf *payload, uint64_t released,
                              annal_error *err)
{
    int64_t begun_us = annal__context_now_us(commit->context);
    annal_status status =
        annal__log_write_group(&commit->own_log->log, records, toc, payload, released, err);
    annal__metrics_synced(commit->metrics, HISTOGRAM_SYNC_US, begun_us);
    if (status == ANNAL_OK)
        annal__metrics_add(commit->metrics, METRIC_LOG_BYTES, bytes);
    return status;
}

/* Record and log why a commit log can no longer be written. No event is lost, because the log is
 * replaced, but the user must learn that a disk fails. */
static void note_broken(struct commit *commit, const annal_error *why)
{
    if (commit->own_log->log.state != LOG_BROKEN)
        return;
    pthread_mutex_lock(&commit->lock);
    commit->broken = *why;
    pthread_mutex_unlock(&commit->lock);
    annal__context_say(commit->context, ANNAL_LOG_WARNING, "%s", why->message);
}

annal_error annal__commit_take_broken(struct commit *commit)
{
    pthread_mutex_lock(&commit->lock);
    annal_error why = commit->broken;
    commit->broken = (annal_error){0};
    pthread_mutex_unlock(&commit->lock);
    return why;
}

static annal_status write_released(struct commit *commit, annal_error *err)
{
    static const struct buf nothing;
    pthread_mutex_lock(&commit->lock);
    uint64_t released = commit->released;
    pthread_mutex_unlock(&commit->lock);
    struct log *log = &commit->own_log->log;
    annal_error why = {0};
    annal_status status = log_group(commit, log->block, 0, &nothing, &nothing, released, &why);
    if (status < 0)
        note_broken(commit, &why);
    return annal__error_pass(err, status, &why);
}

/* Make the other region of the log free for new groups, with a checkpoint if necessary: it may be
 * overwritten only after a durable group records that recovery does not need its epoch any more. */
static annal_status free_other_region(struct commit *commit, annal_error *err)
{
    struct log *log = &commit->own_log->log;
    uint64_t epoch = log->regions[(log->current + 1) % LOG_REGIONS].epoch;
    if (log->epoch == 0 || epoch <= log->durable_released)
        return ANNAL_OK;
    annal_status status = annal__failure_checkpoint(commit, epoch, err);
    if (status == ANNAL_OK)
        status = write_released(commit, err);
    return log->state == LOG_BROKEN ? annal__failure_renew_log(commit, err) : status;
}

/* Replace the log by a log with larger regions, for a group that does not fit into a region of this
 * log. */
static annal_status grow_on_need(struct commit *commit, uint64_t least, annal_error *err)
{
    struct log *log = &commit->own_log->log;
    struct log fresh = {.fd = -1};
    bool little = atomic_load(&commit->sessions->events->space_free) < FREE_RESERVE_BYTES;
    uint64_t unit = little ? LOG_REGION_LEAST : LOG_REGION_FIRST;
    uint64_t region = (least + unit - 1) / unit * unit;
    annal_status status = ANNAL_OK;
    if (log->epoch > 0)
        status = annal__failure_checkpoint(commit, log->epoch, err);
    if (status == ANNAL_OK)
        status = annal__slot_make_log(commit->context, region, &fresh, err);
    return status < 0 ? status : annal__slot_put_log(commit->own_log, &fresh, err);
}

static annal_status count_dirty(void *arg, struct session *session, annal_error *err)
{
    (void)err;
    pthread_mutex_lock(&session->lock);
    *(size_t *)arg += session->dirty;
    pthread_mutex_unlock(&session->lock);
    return ANNAL_OK;
}

/* Return the next size for regions of this size. Each increase needs a checkpoint, so a log of many
 * journals grows to the final size at once. */
static uint64_t larger_region(struct commit *commit, uint64_t region)
{
    size_t journals = 0;
    (void)annal__session_each(commit->sessions, count_dirty, &journals, NULL);
    bool one_step = journals >= JOURNALS_MANY || region * 4 > commit->region_bytes;
    return one_step ? commit->region_bytes : region * 4;
}

/*
 * Return the size of regions that the keeper should give our log, or 0 to leave it unchanged. A
 * region is too small if it is needed before its epoch was checkpointed (`behind`), or if it was
 * full after a short time. The log does not grow into the last free space of the disk.
 */
static uint64_t wish(struct commit *commit, bool behind)
{
    const struct log *log = &commit->own_log->log;
    uint64_t region = log->regions[0].bytes;
    bool quick = log->epoch > 0 && region < REGION_QUICK_MAX &&
                 annal__context_now_us(commit->context) - log->begun_us < REGION_QUICK_US;
    if (!behind && !quick)
        return 0;
    uint64_t larger = larger_region(commit, region);
    if (larger <= region || atomic_load(&commit->sessions->events->space_free) <
                                LOG_REGIONS * larger + FREE_RESERVE_BYTES)
        return 0;
    return larger;
}

/*
 * Make room for a group in the log (rule 5 of the commit log). Recovery ignores groups of an epoch
 * that is recorded as released, so if the current epoch is, the log switches to its other region,
 * however much room the current region has.
 */
static annal_status make_log_room(struct commit *commit, uint64_t bytes, annal_error *err)
{
    struct log *log = &commit->own_log->log;
    annal_status status = annal__failure_renew_log(commit, err);
    pthread_mutex_lock(&commit->lock);
    uint64_t released = commit->released;
    pthread_mutex_unlock(&commit->lock);
    bool counts = log->epoch > released;
    if (status < 0 || (counts && annal__log_fits(log, bytes)))
        return status;
    bool behind = log->regions[(log->current + 1) % LOG_REGIONS].epoch > released;
    uint64_t larger = counts ? wish(commit, behind) : 0;
    uint64_t least = bytes + 2 * (uint64_t)log->block;
    if (least <= log->regions[0].bytes)
        status = free_other_region(commit, err);
    /* free_other_region() may have replaced a broken log by a new log, which is small */
    if (status == ANNAL_OK && least > log->regions[0].bytes)
        status = grow_on_need(commit, least, err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&commit->lock);
    commit->full = log->epoch;
    commit->wish_bytes = larger > log->regions[0].bytes ? larger : 0;
    log->begun_us = annal__context_now_us(commit->context);
    commit->epoch_us[(log->epoch + 1) % LOG_REGIONS] = log->begun_us;
    pthread_mutex_unlock(&commit->lock);
    annal__log_switch(log);
    annal__keeper_wake(commit->sessions->alarm);
    return ANNAL_OK;
}

/*
 * Write a group to the log. ANNAL_ERR_UNKNOWN: its events may appear later. Any other failure: the
 * group was refused, and its events will never appear. After ANNAL_ERR_UNKNOWN and ANNAL_ERR_CLOSED
 * the store accepts no more work.
 */
static annal_status write_group(struct commit *commit, const struct group *group, annal_error *err)
{
    SCOPED_BUF toc = {0};
    struct log *log = &commit->own_log->log;
    uint32_t records = 0;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < group->count && status == ANNAL_OK; i++)
        status = put_record(&toc, &group->records[i], &records);
    if (status == ANNAL_OK)
        status = annal__log_align_toc(log, &toc, &group->payload);
    if (status < 0) {
        annal__fail(err, status, "write a group of events to the commit log: out of memory");
        return status;
    }
    uint64_t bytes = annal__log_group_bytes(log, toc.len, group->payload.len);
    status = make_log_room(commit, bytes, err);
    if (status == ANNAL_OK)
        /* After a removal of the log no process would recover a group in it, and other processes
         * would take the sessions of this process, because they do not see its slot. */
        status = annal__log_check_place(log, err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&commit->lock);
    uint64_t released = commit->released;
    pthread_mutex_unlock(&commit->lock);
    status = log_group(commit, bytes, records, &toc, &group->payload, released, err);
    if (status < 0) {
        status = annal__failure_settle(commit, err);
    } else if (group->payload.len > 0) { /* the group contains events, not only marks of level os */
        annal__metrics_add(commit->metrics, METRIC_GROUPS, 1);
        annal__metrics_record(commit->metrics, HISTOGRAM_GROUP_EVENTS, group->events);
        annal__metrics_record(commit->metrics, HISTOGRAM_GROUP_BYTES, group->payload.len);
    }
    return status;
}

/* Return the bytes of a record that are not in its journal yet; *out_offset is their offset in the
 * journal. */
static annal_slice bytes_of(const struct group *group, const struct group_record *record,
                            uint64_t *out_offset)
{
    *out_offset = record->offset - record->header_bytes + record->loose;
    return (annal_slice){group->payload.ptr + record->at + record->loose,
                         record->length - record->loose};
}

/* Return the bytes of the session's records from `first` on that are adjacent in its journal, as
 * one piece, which may be in scratch. *out_end is the index of the record after them, or 0. */
static annal_slice gather(const struct group *group, size_t first, struct buf *scratch,
                          uint64_t *out_offset, size_t *out_end)
{
    annal_slice bytes = bytes_of(group, &group->records[first], out_offset);
    size_t end = group->records[first].next;
    annal__buf_clear(scratch);
    while (end != 0) {
        uint64_t offset;
        annal_slice more = bytes_of(group, &group->records[end], &offset);
        if (offset != *out_offset + bytes.len ||
            (scratch->len == 0 && annal__buf_append_slice(scratch, bytes) < 0) ||
            annal__buf_append_slice(scratch, more) < 0)
            break;
        bytes = annal__buf_slice(scratch);
        end = group->records[end].next;
    }
    *out_end = end;
    return bytes;
}

/*
 * Write records of a session into its journal, from this index on: as many as a single write can
 * take. If the write fails, the events are still durable in the log. Return the index of the next
 * record to write, or 0.
 */
static size_t apply_run(struct commit *commit, const struct group *group, size_t index,
                        struct buf *scratch)
{
    struct session *session = group->records[index].session;
    annal_error failure;
    uint64_t offset;
    size_t end;
    annal_slice bytes = gather(group, index, scratch, &offset, &end);
    uint64_t piece = group->events > 1 ? PIECE_OF_MANY : PIECE_OF_ONE;
    /* Write nothing to a journal to which an earlier write failed: all its bytes are written later,
     * from the log and in order. */
    if (session->late != LATE_BYTES && bytes.len > 0 &&
        (annal__session_write(commit->sessions, session, offset, bytes, &failure) < 0 ||
         annal__session_write_back(commit->sessions, session, offset + bytes.len, piece, &failure) <
             0))
        annal__failure_set_late(commit->sessions, session, LATE_BYTES, &failure);
    do {
        struct group_record *record = &group->records[index];
        record->behind = session->late == LATE_BYTES;
        record->replaced = record->behind && session->refusal->status == ANNAL_ERR_UNKNOWN;
        session->pending--;
        index = record->next;
    } while (index != end);
    return end;
}

/* Write all records of a session into its journal; `first` is the index of the first of them. */
static void apply_session(struct commit *commit, const struct group *group, size_t first,
                          struct buf *scratch)
{
    struct session *session = group->records[first].session;
    size_t index = first;
    pthread_mutex_lock(&session->lock);
    do
        index = apply_run(commit, group, index, scratch);
    while (index != 0);
    pthread_mutex_unlock(&session->lock);
}

/* What one of several threads writes into journals. A session's records all belong to one thread,
 * chosen by the address of the session, so that their order is kept. */
struct share {
    struct commit *commit;
    struct group *group;
    size_t number;
    size_t of;
};

static void *apply_share(void *arg)
{
    const struct share *share = arg;
    SCOPED_BUF scratch = {.limit = GROUP_BYTES_SOFT};
    for (size_t i = 0; i < share->group->count; i++) {
        const struct group_record *record = &share->group->records[i];
        if (record->first &&
            (uintptr_t)record->session / sizeof *record->session % share->of == share->number)
            apply_session(share->commit, share->group, i, &scratch);
    }
    return NULL;
}

/* Write the records of a group into the journals, with several threads if they are many: each write
 * has a fixed cost besides its bytes. */
static void apply_records(struct commit *commit, struct group *group)
{
    pthread_t helpers[APPLIERS_MAX];
    struct share shares[APPLIERS_MAX];
    size_t started = 0;
    size_t of = commit->sessions->alarm->running ? group->count / RECORDS_PER_APPLIER : 1;
    of = of < 1 ? 1 : of > APPLIERS_MAX ? APPLIERS_MAX : of;
    for (size_t i = 0; i < of; i++)
        shares[i] = (struct share){commit, group, i, of};
    while (started + 1 < of &&
           annal__thread_start(&helpers[started], apply_share, &shares[started]) == 0)
        started++;
    for (size_t i = started; i < of; i++)
        apply_share(&shares[i]);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
    for (size_t i = 0; i < group->count; i++)
        group->replaced = group->replaced || group->records[i].replaced;
}

/* Announce new events on the wakeup page, after the complete group is in the journals (rule 2 of
 * wakeup_page.h). */
static void tell_news(struct commit *commit, const struct group *group, int64_t now_us)
{
    struct wakeup_page *page = annal__wakeup_page(commit->sessions->wakeup, now_us, false);
    for (size_t i = 0; i < group->count; i++) {
        const struct group_record *record = &group->records[i];
        if (record->length > record->header_bytes && !record->behind)
            annal__wakeup_announce(page, annal__session_id(record->session), record->last_seq);
    }
    annal__wakeup_wake(page);
}

/* Write a durable group into the journals. */
static void apply_group(struct commit *commit, struct group *group)
{
    apply_records(commit, group);
    int64_t now_us = annal__context_now_us(commit->context);
    tell_news(commit, group, now_us);
    annal__metrics_add(commit->metrics, METRIC_EVENTS, group->events);
    annal__metrics_add(commit->metrics, METRIC_PAYLOAD_BYTES, group->data_bytes);
    atomic_store(&commit->sessions->appended_us, now_us);
    if (atomic_load(&commit->sessions->alarm->idle))
        annal__keeper_wake(commit->sessions->alarm);
}

static void stop_leading(struct commit *commit)
{
    commit->leading = false;
    if (commit->current->references > 0)
        annal__commit_tell(commit->current, GROUP_LEAD, 1);
    pthread_cond_broadcast(&commit->turn);
}

/* Record that a group was refused, and wake the threads that wait for it. The caller holds
 * commit->lock. */
static void end_refused(struct commit *commit, struct group *group, const annal_error *why)
{
    group->outcome = why->status;
    group->failure = *why;
    commit->lost = commit->lost || group->first_us > 0;
    commit->loss = *why;
    atomic_fetch_sub(&commit->unapplied_bytes, group->payload.len);
    commit->applied = group->number;
    annal__commit_tell(group, GROUP_DONE, INT_MAX);
}

/* Refuse a group that could not be written, and the current group, whose events were encoded after
 * it (rule 4 of commit.h). */
static void refuse_groups(struct commit *commit, struct group *group, const annal_error *why)
{
    struct group *next = group_new();
    pthread_mutex_lock(&commit->lock);
    struct group *behind = commit->current;
    behind->references++;
    commit->refusing = true;
    commit->failure = *why;
    pthread_mutex_unlock(&commit->lock);
    annal__failure_roll_back(commit, group, behind);
    annal__context_say(commit->context, ANNAL_LOG_WARNING, "%s: %" PRIu64 " events were refused",
                       why->message, group->events + behind->events);

    pthread_mutex_lock(&commit->lock);
    commit->refusing = false;
    commit->refusals++;
    commit->flying = NULL;
    end_refused(commit, group, why);
    if (next == NULL) {
        annal__commit_stop(commit, why);
    } else {
        next->number = behind->number + 1;
        commit->current = next;
        end_refused(commit, behind, why);
    }
    drop_reference(commit, behind);
    pthread_mutex_unlock(&commit->lock);
    if (next == NULL)
        annal__commit_announce_stop(commit, why);
}

/*
 * Wait for the threads that the last group has just woken, which are probably about to append: one
 * sync for all of them is cheaper. If they do not append, most of the next leaders do not wait. The
 * caller holds commit->lock.
 */
static void await_crowd(struct commit *commit, struct group *group)
{
    if (group->waiting >= commit->last_waiting)
        commit->absent = 0;
    if (group->waiting < commit->last_waiting && commit->absent++ % GATHER_EVERY == 0) {
        group->wanted = commit->last_waiting;
        pthread_mutex_unlock(&commit->lock);
        annal__futex_wait(&group->gathered, 0, GATHER_US);
        pthread_mutex_lock(&commit->lock);
        if (group->waiting >= group->wanted)
            commit->absent = 0;
        group->wanted = 0;
    }
    commit->last_waiting = group->waiting;
}

/* Lead the current group, which is not empty: close it, write and sync it in the log, write it to
 * the journals, and wake its appenders. Called and returns with commit->lock held. */
static void lead(struct commit *commit)
{
    struct group *group = commit->current;
    struct group *next = commit->spare != NULL ? commit->spare : group_new();
    annal_error failure = {0};
    if (next == NULL) {
        annal__fail(&failure, ANNAL_ERR_NOMEM, "commit a group of events: out of memory");
        pthread_mutex_unlock(&commit->lock);
        annal__commit_fail(commit, &failure);
        pthread_mutex_lock(&commit->lock);
        return;
    }
    commit->spare = NULL;
    next->number = group->number + 1;
    group->references++;
    commit->leading = true;
    await_crowd(commit, group);
    /* the store failed in the meantime, and the group's waiters were woken with the failure */
    if (commit->failed) {
        group_free(next);
        stop_leading(commit);
        drop_reference(commit, group);
        return;
    }
    commit->flying = group;
    commit->current = next;
    pthread_mutex_unlock(&commit->lock);

    annal_status status = write_group(commit, group, &failure);
    if (status == ANNAL_OK) {
        pthread_mutex_lock(&commit->lock);
        commit->durable = group->number;
        pthread_mutex_unlock(&commit->lock);
        apply_group(commit, group);
    } else if (status == ANNAL_ERR_UNKNOWN || status == ANNAL_ERR_CLOSED) {
        annal__commit_fail(commit, &failure);
    } else {
        refuse_groups(commit, group, &failure);
        (void)annal__failure_renew_log(commit, NULL); /* if it fails, the next group tries again */
    }

    pthread_mutex_lock(&commit->lock);
    if (status == ANNAL_OK) {
        atomic_fetch_sub(&commit->unapplied_bytes, group->payload.len);
        commit->applied = group->number;
        annal__commit_tell(group, GROUP_DONE, INT_MAX);
    }
    commit->flying = NULL;
    stop_leading(commit);
    drop_reference(commit, group);
}

/* ---- Waiting ---- */

/* Lead the group (write it to the log) if it still accepts appends and no other thread leads. */
static void try_to_lead(struct commit *commit, const struct group *group)
{
    pthread_mutex_lock(&commit->lock);
    if (!commit->leading && !commit->failed && group == commit->current)
        lead(commit);
    pthread_mutex_unlock(&commit->lock);
}

/*
 * Wait until the group is in its journals or has failed. If no thread writes it, this thread does.
 */
static void wait_for_end(struct commit *commit, struct group *group)
{
    try_to_lead(commit, group);
    for (uint32_t word = atomic_load(&group->word); (word & GROUP_DONE) == 0;
         word = atomic_load(&group->word)) {
        if ((word & GROUP_LEAD) == 0)
            annal__futex_wait(&group->word, word, WAIT_US);
        else if (atomic_compare_exchange_strong(&group->word, &word, word & ~(uint32_t)GROUP_LEAD))
            try_to_lead(commit, group);
    }
}

static bool was_replaced(const struct group *group, const struct session *session)
{
    bool replaced = false;
    for (size_t i = 0; group->replaced && i < group->count && !replaced; i++)
        replaced = group->records[i].replaced && group->records[i].session == session;
    return replaced;
}

annal_status annal__commit_wait(struct commit *commit, struct group *group,
                                const struct session *session, annal_error *err)
{
    wait_for_end(commit, group);
    pthread_mutex_lock(&commit->lock);
    annal_status status = group->outcome;
    if (status == ANNAL_OK && was_replaced(group, session))
        status = annal__fail(err, ANNAL_ERR_UNKNOWN,
                             "the journal of session '%s' was replaced by another file while "
                             "events were being written to it",
                             session->id);
    else if (status == ANNAL_ERR_UNKNOWN)
        annal__fail(err, status,
                    "%.300s: reopen the store to learn whether the events were written",
                    group->failure.message);
    else if (status == ANNAL_ERR_CLOSED)
        status = annal__commit_refuse(commit, err);
    else if (status < 0 && err != NULL)
        *err = group->failure;
    drop_reference(commit, group);
    pthread_mutex_unlock(&commit->lock);
    return status;
}

void annal__commit_leave(struct commit *commit, struct group *group)
{
    pthread_mutex_lock(&commit->lock);
    drop_reference(commit, group);
    pthread_mutex_unlock(&commit->lock);
}

annal_status annal__commit_make_room(struct commit *commit, annal_error *err)
{
    pthread_mutex_lock(&commit->lock);
    struct group *group = commit->current;
    bool full = is_full(group);
    group->references += full;
    pthread_mutex_unlock(&commit->lock);
    if (!full)
        return ANNAL_OK;
    wait_for_end(commit, group);
    annal__commit_leave(commit, group);
    return annal__commit_check(commit, err);
}

annal_status annal__commit_flush(struct commit *commit, annal_error *err)
{
    pthread_mutex_lock(&commit->lock);
    struct group *group = commit->current;
    bool some = group->count > 0;
    uint64_t target = some ? group->number : group->number - 1;
    group->references += some;
    pthread_mutex_unlock(&commit->lock);
    if (some)
        wait_for_end(commit, group);

    pthread_mutex_lock(&commit->lock);
    if (some)
        drop_reference(commit, group);
    while (!commit->failed && commit->applied < target)
        pthread_cond_wait(&commit->turn, &commit->lock);
    annal_status status = commit->failed ? annal__commit_refuse(commit, err) : ANNAL_OK;
    pthread_mutex_unlock(&commit->lock);
    return status;
}

uint64_t annal__commit_refusals(struct commit *commit)
{
    pthread_mutex_lock(&commit->lock);
    uint64_t refusals = commit->refusals;
    pthread_mutex_unlock(&commit->lock);
    return refusals;
}

annal_status annal__commit_take_loss(struct commit *commit, annal_error *err)
{
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&commit->lock);
    if (commit->lost)
        status = annal__fail(err, commit->loss.status,
                             "events of level batch were refused after their append returned: "
                             "%.300s",
                             commit->loss.message);
    commit->lost = false;
    pthread_mutex_unlock(&commit->lock);
    return status;
}

static uint64_t first_seq_in(const struct group *group, const struct session *session)
{
    for (size_t i = 0; group != NULL && i < group->count; i++) {
        if (group->records[i].session == session)
            return group->records[i].before.seq + 1;
    }
    return UINT64_MAX;
}

void annal__commit_find_lost(struct commit *commit, const struct session *session,
                             uint64_t *out_unknown_seq, uint64_t *out_refused_seq,
                             annal_error *out_why)
{
    *out_unknown_seq = *out_refused_seq = UINT64_MAX;
    pthread_mutex_lock(&commit->lock);
    const struct group *last = commit->last;
    if (last != NULL && last->number > commit->durable)
        *(last->outcome == ANNAL_ERR_UNKNOWN ? out_unknown_seq : out_refused_seq) =
            first_seq_in(last, session);
    if (commit->failed && *out_refused_seq == UINT64_MAX)
        *out_refused_seq = first_seq_in(commit->current, session);
    *out_why = commit->failed ? commit->failure : commit->loss;
    pthread_mutex_unlock(&commit->lock);
}

/* ---- Leading without a group ---- */

static void take_lead(struct commit *commit)
{
    pthread_mutex_lock(&commit->lock);
    while (commit->leading)
        pthread_cond_wait(&commit->turn, &commit->lock);
    commit->leading = true;
    pthread_mutex_unlock(&commit->lock);
}

static void hand_lead_on(struct commit *commit)
{
    pthread_mutex_lock(&commit->lock);
    stop_leading(commit);
    pthread_mutex_unlock(&commit->lock);
}

annal_status annal__commit_catch_up(struct commit *commit, annal_error *err)
{
    take_lead(commit);
    annal_status status = annal__failure_catch_up(commit, err);
    hand_lead_on(commit);
    return status;
}

/*
 * Sync all journals with events that are still in the commit log, and record in the log that
 * recovery need not copy these events any more. Only the thread that writes the log (take_lead())
 * calls this.
 */
static annal_status empty_log(struct commit *commit, annal_error *err)
{
    struct log *log = &commit->own_log->log;
    annal_status status = annal__failure_renew_log(commit, err);
    if (status < 0 || log->epoch <= log->durable_released)
        return status;
    status = annal__failure_checkpoint(commit, log->epoch, err);
    if (status == ANNAL_OK)
        status = write_released(commit, err);
    if (log->state == LOG_BROKEN)
        return annal__failure_renew_log(commit, err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&commit->lock);
    commit->rotated = commit->durable;
    pthread_mutex_unlock(&commit->lock);
    return ANNAL_OK;
}

/* Replace the log by a log with regions of this size. A first checkpoint syncs most journals before
 * take_lead(), so that appends wait only for the second. */
static annal_status grow_to(struct commit *commit, uint64_t region, uint64_t full, annal_error *err)
{
    struct log *log = &commit->own_log->log;
    struct log fresh = {.fd = -1};
    annal_status status = annal__slot_make_log(commit->context, region, &fresh, err);
    if (status == ANNAL_OK)
        status = annal__checkpoint_epoch(commit, full, err);
    if (status < 0) {
        annal__slot_drop_log(commit->context, &fresh);
        return status;
    }
    take_lead(commit);
    status = annal__commit_check(commit, err);
    if (status == ANNAL_OK)
        status = annal__failure_renew_log(commit, err);
    if (status == ANNAL_OK)
        status = annal__failure_checkpoint(commit, log->epoch, err);
    if (status == ANNAL_OK && log->regions[0].bytes < region)
        status = annal__slot_put_log(commit->own_log, &fresh, err);
    hand_lead_on(commit);
    annal__slot_drop_log(commit->context, &fresh);
    return status;
}

annal_status annal__commit_grow(struct commit *commit, annal_error *err)
{
    pthread_mutex_lock(&commit->lock);
    uint64_t region = commit->failed ? 0 : commit->wish_bytes;
    uint64_t full = commit->full;
    commit->wish_bytes = 0;
    pthread_mutex_unlock(&commit->lock);
    /*
     * The log may have this size already: while an earlier call replaced it, a leader may have
     * asked for the same size again.
     */
    return region <= atomic_load(&commit->own_log->region_bytes)
               ? ANNAL_OK
               : grow_to(commit, region, full, err);
}

/* Become the leader, sync all journals so that the log is not needed, and then call step, unless it
 * is NULL. No other thread writes the log until this function returns. */
static annal_status empty_and(struct commit *commit,
                              annal_status (*step)(struct commit *commit, annal_error *err),
                              annal_error *err)
{
    annal_status status = annal__commit_flush(commit, err);
    if (status < 0)
        return status;
    take_lead(commit);
    status = annal__commit_check(commit, err);
    if (status == ANNAL_OK)
        status = empty_log(commit, err);
    if (status == ANNAL_OK && step != NULL)
        status = step(commit, err);
    hand_lead_on(commit);
    return status;
}

annal_status annal__commit_rotate(struct commit *commit, annal_error *err)
{
    return empty_and(commit, NULL, err);
}

/*
 * Overwrite the log with zeros, so that no earlier event can be read from it. The caller is the
 * leader, and recovery needs no epoch of the log. First a group that records this is written to the
 * other region, which is not overwritten: then recovery ignores whatever a power cut leaves of the
 * rest. A log that has grown is replaced by a small log, which is quicker; if the disk has no room
 * for a second log, it is overwritten.
 */
static annal_status wipe_log(struct commit *commit, annal_error *err)
{
    struct log *log = &commit->own_log->log;
    struct log fresh = {.fd = -1};
    if (log->epoch == 0 || log->wiped_group == log->group)
        return ANNAL_OK;
    if (log->regions[0].bytes > LOG_REGION_FIRST &&
        annal__slot_make_log(commit->context, LOG_REGION_FIRST, &fresh, NULL) == ANNAL_OK) {
        annal_status status = annal__slot_put_log(commit->own_log, &fresh, err);
        if (status == ANNAL_OK)
            log->wiped_group = log->group;
        return status;
    }
    log->begun_us = annal__context_now_us(commit->context);
    pthread_mutex_lock(&commit->lock);
    commit->epoch_us[(log->epoch + 1) % LOG_REGIONS] = log->begun_us;
    pthread_mutex_unlock(&commit->lock);
    annal__log_switch(log);
    annal_error why = {0};
    annal_status status = write_released(commit, err);
    if (status == ANNAL_OK && (status = annal__log_wipe(log, &why)) < 0) {
        note_broken(commit, &why);
        if (err != NULL)
            *err = why;
    }
    return log->state == LOG_BROKEN ? annal__failure_renew_log(commit, err) : status;
}

annal_status annal__commit_wipe(struct commit *commit, annal_error *err)
{
    return empty_and(commit, wipe_log, err);
}
