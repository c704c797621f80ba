/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/unapplied.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/lock_holder.h"
#include "journal/base/slice.h"
#include "journal/replace_tombstone.h"
#include "journal/slot.h"
#include "journal/store.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BUCKETS 1024u
/*
 * pause between two readings of the logs, in us: a process may be writing a group to its journals
 */
#define SETTLE_US  5000
#define NAMED_MOST 4 /* maximum number of sessions that a message names */

/* A journal for which the logs contain records. */
struct named {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint8_t file[FRAME_FILE_ID_BYTES];
    annal_format format;
    uint64_t last_seq;
    struct named *next;
};

struct unseen {
    annal_store *store;
    struct named *buckets[BUCKETS];
    uint64_t events;
    uint64_t sessions;
    /* sessions and their events, for the message: "a from 5 to 9, b from 1 to 2" */
    struct buf text;
};

static annal_status note_record(void *arg, const struct record *record, annal_error *err)
{
    struct unseen *unseen = arg;
    struct named **bucket =
        &unseen->buckets[annal__hash(record->file, sizeof record->file, 0) % BUCKETS];
    struct named *named = *bucket;
    while (named != NULL && (memcmp(named->file, record->file, sizeof named->file) != 0 ||
                             !annal__slice_is(record->session, named->session)))
        named = named->next;
    if (named == NULL) {
        named = annal__zalloc(sizeof *named);
        if (named == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read the commit logs: out of memory");
        memcpy(named->session, record->session.ptr, record->session.len);
        memcpy(named->file, record->file, sizeof named->file);
        named->format = record->format;
        named->next = *bucket;
        *bucket = named;
    }
    if (record->last_seq > named->last_seq)
        named->last_seq = record->last_seq;
    return ANNAL_OK;
}

/* Add the session's events that are in commit logs, but not in its journal, to the counts in
 * unseen. */
static void count(struct unseen *unseen, const struct named *named)
{
    annal_session_info info = {0};
    char file[2 * FRAME_FILE_ID_BYTES + 1];
    annal_slice session = annal_slice_of(named->session);
    annal_status status = annal_session_info_get(unseen->store, session, &info, NULL);
    annal__codec_file_id_text(named->file, file);
    bool gone = false;
    if (status == ANNAL_ERR_NOTFOUND)
        (void)annal__replace_is_gone(&unseen->store->context, session,
                                     annal__codec_of(named->format), named->file, &gone, NULL);
    bool other = status == ANNAL_OK && info.file[0] != '\0' && strcmp(info.file, file) != 0;
    if (gone || other || named->last_seq <= info.last_seq)
        return;
    unseen->events += named->last_seq - info.last_seq;
    if (unseen->sessions++ < NAMED_MOST)
        (void)annal__buf_printf(&unseen->text, "%s%s from %" PRIu64 " to %" PRIu64,
                                unseen->text.len == 0 ? "" : ", ", named->session,
                                info.last_seq + 1, named->last_seq);
}

/* Count the events that are in the logs and not in the journals. */
static annal_status find(struct unseen *unseen, enum slots_which which, annal_error *err)
{
    annal_status status = annal__slots_each_record(unseen->store, which, note_record, unseen, err);
    for (size_t i = 0; i < BUCKETS; i++) {
        while (unseen->buckets[i] != NULL) {
            struct named *named = unseen->buckets[i];
            unseen->buckets[i] = named->next;
            count(unseen, named);
            annal__free(named);
        }
    }
    return status;
}

static void describe(const struct unseen *unseen, char *out, size_t size)
{
    snprintf(out, size,
             "%" PRIu64 " durable event%s of %" PRIu64
             " session%s %s still only in the commit log: %.*s%s",
             unseen->events, unseen->events == 1 ? "" : "s", unseen->sessions,
             unseen->sessions == 1 ? "" : "s", unseen->events == 1 ? "is" : "are",
             (int)unseen->text.len, unseen->text.ptr == NULL ? "" : unseen->text.ptr,
             unseen->sessions > NAMED_MOST ? ", …" : "");
}

void annal__unapplied_warn(annal_store *store, uint32_t missing)
{
    char name[HOLDER_BYTES];
    struct unseen *unseen = annal__zalloc(sizeof *unseen);
    char what[600];
    if (unseen == NULL)
        return;
    unseen->store = store;
    unseen->text.limit = 400;
    annal_error err = {0};
    if (find(unseen, SLOTS_DEAD, &err) < 0)
        annal__say(store, ANNAL_LOG_WARNING,
                   "some events may be only in a commit log that cannot be read: %s", err.message);
    describe(unseen, what, sizeof what);
    if (unseen->events > 0 && missing != SLOTS_MAX)
        annal__say(store, ANNAL_LOG_WARNING,
                   "%s; these events are shown when %s has recovered the commit log", what,
                   annal__lock_holder_name(annal__slot_holder(&store->context, missing), name));
    else if (unseen->events > 0)
        annal__say(store, ANNAL_LOG_WARNING,
                   "%s; to see these events, open the store for writing once", what);
    annal__buf_done(&unseen->text);
    annal__free(unseen);
}

annal_status annal__unapplied_settle(annal_store *store, annal_error *err)
{
    struct unseen *unseen = annal__zalloc(sizeof *unseen);
    char what[600];
    if (unseen == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "search the commit logs: out of memory");
    int64_t deadline_us = annal__context_deadline(&store->context);
    annal_status status = annal__context_check(&store->context, err);
    while (status == ANNAL_OK) {
        annal__buf_done(&unseen->text);
        *unseen = (struct unseen){.store = store, .text = {.limit = 400}};
        status = find(unseen, SLOTS_ALL, err);
        if (status < 0 || unseen->events == 0)
            break;
        describe(unseen, what, sizeof what);
        if (annal__context_may_wait(&store->context,
                                    deadline_us - annal__context_now_us(&store->context)) <= 0)
            status = annal__fail(err, ANNAL_ERR_BUSY, "%.400s; try again", what);
        else
            annal__context_wait(&store->context, SETTLE_US);
    }
    annal__buf_done(&unseen->text);
    annal__free(unseen);
    return status;
}
