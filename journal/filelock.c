/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/filelock.h"

#include "journal/base/error.h"
#include "journal/base/lock_holder.h"
#include "journal/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* Least and greatest pause between two tries of a lock, in microseconds; a pause is an eighth of
 * the time waited so far. Most locks are held for less than the least pause. */
#define PAUSE_US_LEAST 50
#define PAUSE_US_MOST  5000
/* maximum number of times that the file may be found replaced: some filesystems return another
 * inode number at each call */
#define TRIES_MOST 100

annal_status annal__filelock_init(struct file_lock *lock, const char *name)
{
    lock->fd = -1;
    snprintf(lock->name, sizeof lock->name, "%s", name);
    bool ready =
        pthread_mutex_init(&lock->mutex, NULL) == 0 && annal__thread_cond_init(&lock->freed) == 0;
    return ready ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

/*
 * Find out whether the lock file still has its name: if it was removed while this process waited, a
 * lock on it excludes no process. If that cannot be checked, fail: another try would probably fail
 * in the same way.
 */
static annal_status look_at_place(const struct context *context, int fd, const char *path,
                                  bool *out_there, annal_error *err)
{
    struct stat ours, theirs;
    if (context->io->fstat(context->io->arg, fd, &ours) < 0)
        return annal__fail_errno(err, "cannot examine lock file %s", path);
    bool found = context->io->stat(context->io->arg, path, &theirs) == 0;
    if (!found && errno != ENOENT)
        return annal__fail_errno(err, "cannot examine lock file %s", path);
    *out_there = found && ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
    return ANNAL_OK;
}

static void close_file(struct context *context, struct file_lock *lock)
{
    context->io->close(context->io->arg, lock->fd);
    lock->fd = -1;
}

/* Return ANNAL_ERR_BUSY with a message that names the holder; without err, the holder is not looked
 * up. */
static annal_status refuse(const struct context *context, const struct file_lock *lock,
                           annal_error *err)
{
    SCOPED_BUF path = {0};
    struct stat file;
    char name[HOLDER_BYTES];
    uint32_t pid = 0;
    if (err == NULL)
        return ANNAL_ERR_BUSY;
    if (annal__context_path(context, &path, "locks", lock->name, NULL) == ANNAL_OK &&
        context->io->stat(context->io->arg, path.ptr, &file) == 0)
        pid = annal__lock_holder_of(&file, false);
    if (pid == (uint32_t)getpid())
        return annal__fail(err, ANNAL_ERR_BUSY, "locks/%s is taken by another thread", lock->name);
    return annal__fail(err, ANNAL_ERR_BUSY, "locks/%s of store %.200s is held by %s", lock->name,
                       context->path, annal__lock_holder_name(pid, name));
}

/* Lock the file by flock(2). The caller has already excluded the other threads of this process. */
static annal_status lock_file(struct context *context, struct file_lock *lock, annal_error *err)
{
    SCOPED_BUF path = {0};
    bool there = false;
    annal_status status = annal__context_path(context, &path, "locks", lock->name, err);
    for (int tries = 0; status == ANNAL_OK && !there; tries++) {
        if (tries == TRIES_MOST) {
            status = annal__fail(err, ANNAL_ERR_IO, "lock %s: the lock file is replaced repeatedly",
                                 path.ptr);
            break;
        }
        if (lock->fd < 0)
            lock->fd = context->io->open(context->io->arg, path.ptr, O_RDWR | O_CREAT, 0660);
        if (lock->fd < 0 || context->io->flock(context->io->arg, lock->fd, LOCK_EX | LOCK_NB) < 0) {
            status = lock->fd >= 0 && errno == EWOULDBLOCK
                         ? ANNAL_ERR_BUSY
                         : annal__fail_errno(err, "cannot lock %s", path.ptr);
            break;
        }
        status = look_at_place(context, lock->fd, path.ptr, &there, err);
        if (!there)
            close_file(context, lock); /* closing the file also releases the lock on it */
    }
    return status;
}

/* Return how long this caller may still wait, in microseconds. */
static int64_t time_left(struct context *context, int64_t deadline_us, int64_t least_until_us)
{
    int64_t now_us = annal__context_now_us(context);
    int64_t left_us = annal__context_may_wait(context, deadline_us - now_us);
    return left_us > least_until_us - now_us ? left_us : least_until_us - now_us;
}

/* Lock out the other threads of this process. This wait is not added to the store's waiting time
 * (seam.h), because the thread that locks the file adds its own. */
static annal_status take_from_threads(struct context *context, struct file_lock *lock,
                                      int64_t deadline_us, int64_t least_until_us, annal_error *err)
{
    int64_t left_us = 1;
    pthread_mutex_lock(&lock->mutex);
    while (lock->taken && (left_us = time_left(context, deadline_us, least_until_us)) > 0)
        annal__thread_cond_wait_us(&lock->freed, &lock->mutex, left_us);
    bool ours = !lock->taken;
    lock->taken = true;
    pthread_mutex_unlock(&lock->mutex);
    return ours ? ANNAL_OK : refuse(context, lock, err);
}

static void give_to_threads(struct file_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    lock->taken = false;
    pthread_cond_signal(&lock->freed);
    pthread_mutex_unlock(&lock->mutex);
}

annal_status annal__filelock_take(struct context *context, struct file_lock *lock,
                                  int64_t deadline_us, int64_t least_us, annal_error *err)
{
    int64_t begun_us = annal__context_now_us(context);
    int64_t least_until_us = begun_us + least_us;
    annal_status status = take_from_threads(context, lock, deadline_us, least_until_us, err);
    if (status < 0)
        return status;
    while ((status = lock_file(context, lock, err)) == ANNAL_ERR_BUSY) {
        int64_t left_us = time_left(context, deadline_us, least_until_us);
        int64_t pause_us = (annal__context_now_us(context) - begun_us) / 8;
        if (left_us <= 0)
            break;
        pause_us = pause_us < PAUSE_US_LEAST  ? PAUSE_US_LEAST
                   : pause_us > PAUSE_US_MOST ? PAUSE_US_MOST
                                              : pause_us;
        annal__context_wait(context, pause_us < left_us ? pause_us : left_us);
    }
    if (status == ANNAL_ERR_BUSY)
        refuse(context, lock, err);
    if (status < 0)
        give_to_threads(lock);
    return status;
}

annal_status annal__filelock_try(struct context *context, struct file_lock *lock, annal_error *err)
{
    return annal__filelock_take(context, lock, 0, 0, err);
}

annal_status annal__filelock_reach(struct context *context, struct file_lock *lock,
                                   annal_error *err)
{
    SCOPED_BUF path = {0};
    pthread_mutex_lock(&lock->mutex);
    annal_status status = annal__context_path(context, &path, "locks", lock->name, err);
    bool opens = status == ANNAL_OK && !lock->taken && lock->fd < 0;
    if (opens)
        lock->fd = context->io->open(context->io->arg, path.ptr, O_RDWR | O_CREAT, 0660);
    if (opens && lock->fd < 0)
        status = annal__fail_errno(err, "cannot lock %s", path.ptr);
    pthread_mutex_unlock(&lock->mutex);
    return status;
}

void annal__filelock_drop(struct context *context, struct file_lock *lock)
{
    context->io->flock(context->io->arg, lock->fd, LOCK_UN);
    give_to_threads(lock);
}

void annal__filelock_done(struct context *context, struct file_lock *lock)
{
    if (lock->fd >= 0)
        context->io->close(context->io->arg, lock->fd);
    pthread_cond_destroy(&lock->freed);
    pthread_mutex_destroy(&lock->mutex);
}
