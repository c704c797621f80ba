#include "journal/filelock.h"

#include "journal/base/error.h"
#include "journal/base/lock_holder.h"
#include "journal/store.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#define PAUSE_US_LEAST 50 /* most locks are held for less */
#define PAUSE_US_MOST  5000
#define TRIES_MOST     100 /* a filesystem may give a file another number each time it is asked */

annal_status annal__file_lock_init(struct file_lock *lock, const char *name)
{
    lock->fd = -1;
    snprintf(lock->name, sizeof lock->name, "%s", name);
    return pthread_mutex_init(&lock->mutex, NULL) == 0 ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

/*
 * The file may have been removed while we waited; then the lock on it excludes nobody. If that
 * cannot be checked we do not have the lock: taking it again would ask the same question without
 * end.
 */
static annal_status look_at_place(const annal_store *store, int fd, const char *path,
                                  bool *out_there, annal_error *err)
{
    struct stat ours, theirs;
    if (store->io->fstat(store->io->arg, fd, &ours) < 0)
        return annal__fail_errno(err, "look at lock file %s", path);
    bool found = store->io->stat(store->io->arg, path, &theirs) == 0;
    if (!found && errno != ENOENT)
        return annal__fail_errno(err, "look at lock file %s", path);
    *out_there = found && ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
    return ANNAL_OK;
}

static void close_file(annal_store *store, struct file_lock *lock)
{
    store->io->close(store->io->arg, lock->fd);
    lock->fd = -1;
}

static annal_status refuse(const annal_store *store, const struct file_lock *lock, annal_error *err)
{
    struct stat file = {0};
    char name[HOLDER_BYTES];
    uint32_t pid =
        store->io->fstat(store->io->arg, lock->fd, &file) < 0 ? 0 : annal__holder_of(&file, false);
    return annal__fail(err, ANNAL_ERR_BUSY, "locks/%s of store %.200s is held by %s", lock->name,
                       store->path, annal__holder_name(pid, name));
}

/* The mutex is held. */
static annal_status lock_file(annal_store *store, struct file_lock *lock, annal_error *err)
{
    struct buf path = {0};
    bool there = false;
    annal_status status = annal__store_path(store, &path, "locks", lock->name, err);
    for (int tries = 0; status == ANNAL_OK && !there; tries++) {
        if (tries == TRIES_MOST) {
            status = annal__fail(err, ANNAL_ERR_IO, "lock %s: its name keeps going to other files",
                                 path.ptr);
            break;
        }
        if (lock->fd < 0)
            lock->fd = store->io->open(store->io->arg, path.ptr, O_RDWR | O_CREAT, 0600);
        if (lock->fd < 0 || store->io->flock(store->io->arg, lock->fd, LOCK_EX | LOCK_NB) < 0) {
            status = lock->fd >= 0 && errno == EWOULDBLOCK
                         ? ANNAL_ERR_BUSY
                         : annal__fail_errno(err, "lock %s", path.ptr);
            break;
        }
        status = look_at_place(store, lock->fd, path.ptr, &there, err);
        if (!there)
            close_file(store, lock); /* and this releases the lock */
    }
    annal__buf_done(&path);
    return status;
}

/* The holder is looked up only if a message will name it. */
static annal_status try_lock(annal_store *store, struct file_lock *lock, bool tells,
                             annal_error *err)
{
    if (pthread_mutex_trylock(&lock->mutex) != 0)
        return annal__fail(err, ANNAL_ERR_BUSY, "locks/%s is taken by another thread", lock->name);
    annal_status status = lock_file(store, lock, err);
    if (status == ANNAL_ERR_BUSY && tells)
        status = refuse(store, lock, err);
    if (status < 0)
        pthread_mutex_unlock(&lock->mutex);
    return status;
}

annal_status annal__file_lock_try(annal_store *store, struct file_lock *lock, annal_error *err)
{
    return try_lock(store, lock, err != NULL, err);
}

annal_status annal__file_lock_take(annal_store *store, struct file_lock *lock, int64_t deadline_us,
                                   int64_t least_us, annal_error *err)
{
    int64_t begun_us = annal__now_us(store);
    int64_t pause_us = PAUSE_US_LEAST;
    for (;;) {
        int64_t now_us = annal__now_us(store);
        int64_t left_us = annal__store_may_wait(store, deadline_us - now_us);
        if (left_us < begun_us + least_us - now_us)
            left_us = begun_us + least_us - now_us;
        annal_status status = try_lock(store, lock, left_us <= 0, err);
        if (status != ANNAL_ERR_BUSY || left_us <= 0)
            return status;
        annal__store_wait(store, pause_us < left_us ? pause_us : left_us);
        pause_us = pause_us * 2 < PAUSE_US_MOST ? pause_us * 2 : PAUSE_US_MOST;
    }
}

annal_status annal__file_lock_reach(annal_store *store, struct file_lock *lock, annal_error *err)
{
    struct buf path = {0};
    pthread_mutex_lock(&lock->mutex);
    annal_status status = annal__store_path(store, &path, "locks", lock->name, err);
    if (status == ANNAL_OK && lock->fd < 0)
        lock->fd = store->io->open(store->io->arg, path.ptr, O_RDWR | O_CREAT, 0600);
    if (status == ANNAL_OK && lock->fd < 0)
        status = annal__fail_errno(err, "lock %s", path.ptr);
    pthread_mutex_unlock(&lock->mutex);
    annal__buf_done(&path);
    return status;
}

void annal__file_lock_drop(annal_store *store, struct file_lock *lock)
{
    store->io->flock(store->io->arg, lock->fd, LOCK_UN);
    pthread_mutex_unlock(&lock->mutex);
}

void annal__file_lock_done(annal_store *store, struct file_lock *lock)
{
    if (lock->fd >= 0)
        store->io->close(store->io->arg, lock->fd);
    pthread_mutex_destroy(&lock->mutex);
}
