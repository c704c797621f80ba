#include "journal/filelock.h"

#include "journal/base/error.h"
#include "journal/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

annal_status annal__file_lock_init(struct file_lock *lock, const char *name)
{
    lock->fd = -1;
    snprintf(lock->name, sizeof lock->name, "%s", name);
    return pthread_mutex_init(&lock->mutex, NULL) == 0 ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

/* Somebody may have removed the file while we waited; then the lock on it excludes nobody. */
static bool is_still_there(const annal_store *store, int fd, const char *path)
{
    struct stat ours, theirs;
    return store->io->fstat(store->io->arg, fd, &ours) == 0 &&
           store->io->stat(store->io->arg, path, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
           ours.st_dev == theirs.st_dev;
}

/* With the mutex held; operation is LOCK_EX, or that with LOCK_NB. */
static annal_status lock_file(annal_store *store, struct file_lock *lock, int operation,
                              annal_error *err)
{
    struct buf path = {0};
    annal_status status = annal__store_path(store, &path, "locks", lock->name, err);
    while (status == ANNAL_OK) {
        if (lock->fd < 0)
            lock->fd = store->io->open(store->io->arg, path.ptr, O_RDWR | O_CREAT, 0600);
        if (lock->fd < 0 || store->io->flock(store->io->arg, lock->fd, operation) < 0) {
            status = annal__fail_errno(err, "lock %s", path.ptr);
            if (lock->fd >= 0 && errno == EWOULDBLOCK)
                status = ANNAL_ERR_BUSY;
            break;
        }
        if (is_still_there(store, lock->fd, path.ptr))
            break;
        store->io->close(store->io->arg, lock->fd);
        lock->fd = -1;
    }
    annal__buf_done(&path);
    return status;
}

annal_status annal__file_lock_take(annal_store *store, struct file_lock *lock, annal_error *err)
{
    pthread_mutex_lock(&lock->mutex);
    annal_status status = lock_file(store, lock, LOCK_EX, err);
    if (status < 0)
        pthread_mutex_unlock(&lock->mutex);
    return status;
}

annal_status annal__file_lock_try(annal_store *store, struct file_lock *lock, annal_error *err)
{
    if (pthread_mutex_trylock(&lock->mutex) != 0)
        return annal__fail(err, ANNAL_ERR_BUSY, "locks/%s is taken by another thread", lock->name);
    annal_status status = lock_file(store, lock, LOCK_EX | LOCK_NB, err);
    if (status < 0)
        pthread_mutex_unlock(&lock->mutex);
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
