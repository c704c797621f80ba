#include "journal/filelock.h"

#include "journal/base/error.h"
#include "journal/store.h"

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

annal_status annal__file_lock_take(annal_store *store, struct file_lock *lock, annal_error *err)
{
    struct buf path = {0};
    annal_status status = annal__store_path(store, &path, "locks", lock->name, err);
    if (status < 0)
        goto done;
    pthread_mutex_lock(&lock->mutex);
    for (;;) {
        if (lock->fd < 0)
            lock->fd = store->io->open(store->io->arg, path.ptr, O_RDWR | O_CREAT, 0600);
        if (lock->fd < 0 || store->io->flock(store->io->arg, lock->fd, LOCK_EX) < 0) {
            status = annal__fail_errno(err, "lock %s", path.ptr);
            pthread_mutex_unlock(&lock->mutex);
            break;
        }
        if (is_still_there(store, lock->fd, path.ptr))
            break;
        store->io->close(store->io->arg, lock->fd);
        lock->fd = -1;
    }

done:
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
