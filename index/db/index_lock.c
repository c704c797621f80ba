/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/index_lock.h"

#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/lock_holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* the bytes "annlnot1", with which a note in the lock's file begins */
#define NOTE_MAGIC 0x31746f6e6c6e6e61u

annal_status annal__index_lock_init(struct index_lock *lock, const struct io *io, const char *name,
                                    annal_error *err)
{
    if (strlen(name) >= sizeof lock->name)
        return annal__fail(err, ANNAL_ERR_LIMIT, "the name of lock '%s' is too long", name);
    *lock = (struct index_lock){.io = io, .fd = -1, .pid = getpid()};
    memcpy(lock->name, name, strlen(name) + 1);
    int failed = pthread_mutex_init(&lock->mutex, NULL);
    if (failed != 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "create the lock of the index: out of memory");
    return ANNAL_OK;
}

void annal__index_lock_done(struct index_lock *lock)
{
    const struct io *io = lock->io;
    if (lock->fd >= 0)
        io->close(io->arg, lock->fd);
    pthread_mutex_destroy(&lock->mutex);
}

bool annal__index_lock_is_ours(const struct index_lock *lock)
{
    return lock->pid == getpid();
}

static annal_status open_lock_file(struct index_lock *lock, const char *store_path,
                                   annal_error *err)
{
    const struct io *io = lock->io;
    SCOPED_BUF path = {0};
    annal_status status = annal__buf_printf(&path, "%s/locks", store_path);
    const char *name = status < 0 ? NULL : annal__buf_cstr(&path);
    if (name != NULL)
        status = annal__io_make_dir(io, name, err);
    if (name != NULL && status >= 0) {
        status = annal__buf_printf(&path, "/%s", lock->name);
        name = status < 0 ? NULL : annal__buf_cstr(&path);
    }
    if (name == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "open the lock of the index: out of memory");
    } else if (status >= 0) {
        lock->fd = io->open(io->arg, name, O_RDWR | O_CREAT, 0660);
        if (lock->fd < 0)
            status = annal__fail_errno(err, "cannot open '%s'", name);
    }
    return status;
}

static annal_status refuse(const struct index_lock *lock, const char *store_path, annal_error *err)
{
    const struct io *io = lock->io;
    struct stat file;
    char name[HOLDER_BYTES];
    uint32_t pid =
        io->fstat(io->arg, lock->fd, &file) < 0 ? 0 : annal__lock_holder_of(&file, false);
    return annal__fail(err, ANNAL_ERR_BUSY, "%s is writing the index ('%.200s/locks/%s')",
                       annal__lock_holder_name(pid, name), store_path, lock->name);
}

static annal_status take_mutex(struct index_lock *lock, int64_t deadline_us, annal_error *err)
{
    for (unsigned attempt = 0; pthread_mutex_trylock(&lock->mutex) != 0; attempt++) {
        if (annal__deadline_passed(deadline_us))
            return annal__fail(err, ANNAL_ERR_BUSY,
                               "another thread of this process is writing the index");
        atomic_store(&lock->wanted_us, annal__clock_monotonic_us());
        annal__deadline_pause(attempt);
    }
    return ANNAL_OK;
}

/* ---- Waiters, rule 6 ---- */

/* offset in the lock's file of the time at which a process last waited for the lock */
#define WORD_AT      4096
#define STAY_AWAY_MS 25

/* Write the current time into the lock's file, so that its holder sees that this process waits. A
 * failure is ignored: it only delays the waiter. */
static void leave_word(const struct index_lock *lock)
{
    const struct io *io = lock->io;
    int64_t us = annal__clock_monotonic_us();
    (void)!io->pwrite(io->arg, lock->fd, &us, sizeof us, WORD_AT);
}

bool annal__index_lock_is_wanted(const struct index_lock *lock, int64_t since_us)
{
    const struct io *io = lock->io;
    int64_t us = 0;
    return atomic_load(&lock->wanted_us) >= since_us ||
           (lock->fd >= 0 &&
            io->pread(io->arg, lock->fd, &us, sizeof us, WORD_AT) == (ssize_t)sizeof us &&
            us >= since_us && us <= annal__clock_monotonic_us());
}

void annal__index_lock_leave_free(void)
{
    const struct timespec pause = {.tv_nsec = STAY_AWAY_MS * 1000000L};
    nanosleep(&pause, NULL);
}

annal_status annal__index_lock_take(struct index_lock *lock, const char *store_path,
                                    int64_t deadline_us, annal_error *err)
{
    const struct io *io = lock->io;
    if (!annal__index_lock_is_ours(lock))
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "this index was opened by process %d and cannot be used after fork(): "
                           "open an index in this process",
                           (int)lock->pid);
    annal_status status = take_mutex(lock, deadline_us, err);
    if (status < 0)
        return status;
    if (store_path == NULL)
        return ANNAL_OK;
    if (lock->fd < 0)
        status = open_lock_file(lock, store_path, err);
    for (unsigned attempt = 0; status >= 0; attempt++) {
        if (io->flock(io->arg, lock->fd, LOCK_EX | LOCK_NB) == 0)
            return ANNAL_OK;
        if (errno != EWOULDBLOCK) {
            status = annal__fail_errno(err, "cannot lock '%s/locks/%s'", store_path, lock->name);
        } else if (annal__deadline_passed(deadline_us)) {
            status = err == NULL ? ANNAL_ERR_BUSY : refuse(lock, store_path, err);
        } else {
            leave_word(lock);
            annal__deadline_pause(attempt);
        }
    }
    pthread_mutex_unlock(&lock->mutex);
    return status;
}

void annal__index_lock_give(struct index_lock *lock)
{
    const struct io *io = lock->io;
    if (lock->fd >= 0)
        io->flock(io->arg, lock->fd, LOCK_UN);
    pthread_mutex_unlock(&lock->mutex);
}

void annal__index_lock_rest(struct index_lock *lock)
{
    const struct io *io = lock->io;
    if (lock->fd >= 0)
        io->close(io->arg, lock->fd);
    lock->fd = -1;
    pthread_mutex_unlock(&lock->mutex);
}

/* ---- The note, rule 5 ---- */

static uint64_t note_hash(const struct lock_note *note)
{
    return annal__hash(note, offsetof(struct lock_note, hash), 0);
}

annal_status annal__index_lock_note_peek(struct index_lock *lock, const char *store_path,
                                         struct lock_note *out)
{
    annal_status status = ANNAL_OK;
    if (pthread_mutex_trylock(&lock->mutex) != 0)
        return ANNAL_ERR_BUSY;
    if (lock->fd < 0)
        status = open_lock_file(lock, store_path, NULL);
    if (status >= 0 && !annal__index_lock_note_read(lock, out))
        status = ANNAL_ERR_NOTFOUND;
    pthread_mutex_unlock(&lock->mutex);
    return status < 0 ? ANNAL_ERR_NOTFOUND : ANNAL_OK;
}

bool annal__index_lock_note_read(const struct index_lock *lock, struct lock_note *out)
{
    const struct io *io = lock->io;
    return lock->fd >= 0 && !lock->wiped &&
           io->pread(io->arg, lock->fd, out, sizeof *out, 0) == (ssize_t)sizeof *out &&
           out->magic == NOTE_MAGIC && out->hash == note_hash(out) &&
           out->session_bytes <= ANNAL_SESSION_ID_BYTES_MAX;
}

bool annal__index_lock_note_write(struct index_lock *lock, struct lock_note *note)
{
    const struct io *io = lock->io;
    note->magic = NOTE_MAGIC;
    note->hash = note_hash(note);
    if (lock->fd < 0 ||
        io->pwrite(io->arg, lock->fd, note, sizeof *note, 0) != (ssize_t)sizeof *note)
        return false;
    lock->wiped = false;
    return true;
}

/* Remove the note by truncating the lock's file, which needs no space on a full disk. */
void annal__index_lock_note_wipe(struct index_lock *lock)
{
    const struct io *io = lock->io;
    lock->wiped = true;
    if (lock->fd >= 0)
        (void)io->ftruncate(io->arg, lock->fd, 0);
}
