/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interfaces of a store to the system, and other properties of a store, for the folders above
 * journal/: what tests replace for the journal is then replaced for these folders, too. Mostly
 * implemented in journal/store_context.c.
 */
#pragma once

#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/io.h"

#include <annal/journal.h>
#include <annal/store.h>

#include <pthread.h>

/* Return the interfaces to files and to the clock. Valid as long as the store. */
const struct io *annal__store_io(const annal_store *store);
const struct clock *annal__store_clock(const annal_store *store);

/* Return how many bytes of the disk the store keeps free. */
uint64_t annal__store_keep_free(const annal_store *store);

/* Return the boot id of the system, 16 bytes. */
const uint8_t *annal__store_boot(const annal_store *store);

/* Return whether a keeper thread is running. If not, a function that waits long calls
 * annal_store_keep() repeatedly. */
bool annal__store_has_keeper(const annal_store *store);

/*
 * Return whether the file with the name of this session's journal is the journal of another
 * session, copied or renamed, or a journal that this user may not read. If so, report it to the log
 * callback, once. Functions that read all sessions omit it; see stray.h.
 */
bool annal__stray_is(annal_store *store, annal_slice session);

/* Return whether a status of reading a journal may mean that the file is a stray: not the journal
 * of the session in its name. Then call annal__stray_is(). */
static inline bool annal__may_be_stray(annal_status status)
{
    return status == ANNAL_ERR_CORRUPT || annal__error_is_io(status);
}

/* Return whether a journal was omitted because this user may not read it, so that answers may be
 * incomplete. */
bool annal__stray_was_denied(const annal_store *store);

/*
 * Call fn with the path of each file in events/ that has the name of a journal and is not read for
 * a session: strays, the second of two journals, files whose name no session can have. Stops if fn
 * returns another value than 0, and returns it.
 */
typedef annal_status (*annal__stray_file_fn)(void *arg, const char *path);
annal_status annal__stray_files(const annal_store *store, annal__stray_file_fn fn, void *arg,
                                annal_error *err);

/* List sessions as annal_session_each() does, without reporting strays to the log callback: for
 * internal work. */
annal_status annal__session_list_read(annal_store *store, annal_session_fn fn, void *arg,
                                      annal_error *err);

/* Return wait_ms of the store's options: the longest wait for another process, in milliseconds. */
uint32_t annal__store_wait_ms(const annal_store *store);

/*
 * Limit the time that this store object waits for other processes, in all, from now on; UINT32_MAX:
 * no limit, as at first. Only waiting counts, not the work in between, so a command that waits for
 * several things stays within its --wait. Time in which several threads wait counts once.
 *
 * Each wait calls annal__store_may_wait(), which returns wait_us or what is left of the limit,
 * whichever is less; and sleeps by annal__store_wait(), or between annal__store_wait_begin() and
 * annal__store_wait_end().
 */
void annal__store_limit_waits(annal_store *store, uint32_t limit_ms);
int64_t annal__store_may_wait(annal_store *store, int64_t wait_us);
uint32_t annal__store_may_wait_ms(annal_store *store, uint32_t wait_ms);
void annal__store_wait(annal_store *store, int64_t us);
void annal__store_wait_begin(annal_store *store);
void annal__store_wait_end(annal_store *store);

/* Return how long this store object has waited since it was opened, or since the limit was set, in
 * microseconds. */
int64_t annal__store_waited_us(annal_store *store);

/* Let a writer use the space of the disk that the store keeps free, except 64 KiB: for events that
 * lead to free space, such as deletions. */
void annal__writer_spend_reserve(annal_writer *writer);

/* Let a writer append without a lease: for events that the session already has in another store. */
void annal__writer_ignore_lease(annal_writer *writer);

/* A place in the store object for the struct that its tails share (replay/hub.h), because the
 * library has no global state. The first tail creates the struct, and the last tail removes it. */
struct tails_place {
    pthread_mutex_t lock;
    void *hub; /* guarded by lock */
};
struct tails_place *annal__store_tails(annal_store *store);

/* Return whether the store was opened for reading only. Any thread. */
bool annal__session_list_is_read_only(const annal_store *store);

/*
 * Wait until every event of any process that is durable now is in its journal, where readers see
 * it. This is the case after moments, unless a process could not write a journal because the disk
 * is full; or, in a store that is open for reading only, until a process opens it for writing.
 * Waits up to the store's wait_ms. Any thread.
 *
 * ANNAL_ERR_BUSY  some events are still only in a commit log; the message names them
 */
ANNAL_MUST_CHECK annal_status annal__unapplied_settle(annal_store *store, annal_error *err);

/*
 * Append the ids of the sessions whose journals any program created, wrote or deleted after
 * `since`, each with a NUL: journal_watch.h. *out_now is the value to pass as `since` next time;
 * begin with 0. Returns false if it is not known which sessions these are; then any journal may
 * have changed. *out_now is valid also then; 0: changes are not known in this store. Any thread.
 */
bool annal__journal_watch_changed(annal_store *store, uint64_t since, struct buf *out_sessions,
                                  uint64_t *out_now);

/*
 * Call fn for each session that this store object appended to and whose journal has grown after
 * `since`. Returns the value to pass as `since` next time; begin with 0. Tasks of the index find
 * new events with it, without examining every file. Any thread.
 */
uint64_t annal__session_list_changed(annal_store *store, uint64_t since, annal_session_fn fn,
                                     void *arg);

/* Return the session of a writer. Valid as long as the writer. Any thread. */
annal_slice annal__writer_session(const annal_writer *writer);
