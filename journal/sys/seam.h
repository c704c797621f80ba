/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seams of a store, for the layers above the journal: what tests replace for the journal is
 * replaced for everything. Implemented in journal/store_context.c.
 */
#ifndef JOURNAL_SYS_SEAM_H
#define JOURNAL_SYS_SEAM_H

#include "journal/base/clock.h"
#include "journal/base/io.h"

#include <annal/journal.h>
#include <annal/store.h>

#include <pthread.h>

/* Both live as long as the store. */
const struct io *annal__store_io(const annal_store *store);
const struct clock *annal__store_clock(const annal_store *store);

/* How much of the disk it leaves free. */
uint64_t annal__store_keep_free(const annal_store *store);

/* The boot of the system, 16 bytes. */
const uint8_t *annal__store_boot(const annal_store *store);

/* Whether it has a thread that does what is due. If not, a function that waits long calls
 * annal_keep(). */
bool annal__store_has_keeper(const annal_store *store);

/*
 * Whether the file named for this session is the journal of another session, copied or renamed, or
 * one that this user may not read. If so, the log reports it, once. Functions that go through all
 * sessions leave it out; see stray.h.
 */
bool annal__stray_is(annal_store *store, annal_slice session);

/* Whether a journal failed with what a stray fails with: then ask. */
static inline bool annal__may_be_stray(annal_status status)
{
    return status == ANNAL_ERR_CORRUPT || status == ANNAL_ERR_IO;
}

/* Whether a journal was left out because this user may not read it: the answer may be short. */
bool annal__stray_was_denied(const annal_store *store);

/*
 * Call fn with the path of each file in events/ that has the name of a journal and is not read for
 * a session: strays, the second of two journals, files whose name no session can have. Stops if fn
 * returns below 0, and returns that.
 */
typedef annal_status (*annal__stray_file_fn)(void *arg, const char *path);
annal_status annal__stray_files(const annal_store *store, annal__stray_file_fn fn, void *arg,
                                annal_error *err);

/* annal_store_sessions() that names no strays in the log, for internal work. */
annal_status annal__session_list_read(annal_store *store, annal_session_fn fn, void *arg,
                                      annal_error *err);

/* The wait_ms of its options: the longest wait for another process. */
uint32_t annal__store_wait_ms(const annal_store *store);

/*
 * How long this store object waits for other processes, in all: as long as the callers of each wait
 * say, unless the program sets a limit from now on (UINT32_MAX: none). Only waiting counts, not the
 * work in between, so a command keeps its --wait however many things it waits for. Time in which
 * several threads wait counts once. Each wait asks how much is left, and sleeps through
 * annal__store_wait(), or between the other two.
 */
void annal__store_limit_waits(annal_store *store, uint32_t limit_ms);
int64_t annal__store_may_wait(annal_store *store, int64_t wait_us);
uint32_t annal__store_may_wait_ms(annal_store *store, uint32_t wait_ms);
void annal__store_wait(annal_store *store, int64_t us);
void annal__store_wait_begin(annal_store *store);
void annal__store_wait_end(annal_store *store);

/* How long it has waited since it was opened, or since the limit was set. */
int64_t annal__store_waited_us(annal_store *store);

/*
 * This writer may use what the store keeps free of the disk, as long as there is room for its
 * events and 64 KiB: for events that make room.
 */
void annal__writer_spend_reserve(annal_writer *writer);

/* This writer appends events that the session already has elsewhere: it needs no lease. */
void annal__writer_ignore_lease(annal_writer *writer);

/*
 * A place in the store object for what its tails share (replay/hub.h), because the library has no
 * global state: created by the first tail, removed with the last.
 */
struct tails_place {
    pthread_mutex_t lock;
    void *hub; /* guarded by lock */
};
struct tails_place *annal__store_tails(annal_store *store);

/* Whether the store was opened for reading only. Any thread. */
bool annal__session_list_is_read_only(const annal_store *store);

/*
 * Return when every event that is durable now, of any process, is in its journal, where readers see
 * it. It always is, except for moments, unless a process could not write a journal because the disk
 * is full; or, in a store that is open for reading only, until a process opens it for writing.
 * Waits up to the store's wait_ms. Any thread.
 *
 * ANNAL_ERR_BUSY  some are still only in a commit log; the message names them
 */
ANNAL_MUST_CHECK annal_status annal__unapplied_settle(annal_store *store, annal_error *err);

/*
 * Call fn for each session that this store object appended to and whose journal has grown after
 * `since`. Returns the point to pass as since next time; begin with 0. Index tasks use it to know
 * what is new without looking at every file. Any thread.
 */
uint64_t annal__session_list_changed(annal_store *store, uint64_t since, annal_session_fn fn,
                                     void *arg);

/* The session of the writer. Valid as long as the writer. Any thread. */
annal_slice annal__writer_session(const annal_writer *writer);

#endif
