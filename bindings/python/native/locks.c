/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of our SQLite that the SQLite of Python, or of Node, cannot drop.
 *
 * A process that has two copies of SQLite breaks a rule that SQLite's locks need: a POSIX lock
 * belongs to the process, so that neither copy sees the other's locks, and closing a file drops
 * both. The copy that opens a database second even takes itself for the first, and truncates the
 * -shm file that the first copy has mapped.
 *
 * So the copy in this module locks open file descriptions instead (F_OFD_SETLK). Such locks
 * conflict with POSIX locks of every process, including this one, and exist until their descriptor
 * is closed.
 *
 * (1) A -shm file has one descriptor for each copy of SQLite, so its locks are taken on the
 *     descriptor that SQLite uses.
 * (2) A database has a descriptor for each connection, and SQLite takes a lock through one
 *     descriptor and may release it through another. All locks of a database are taken on the
 *     descriptor of its first lock. SQLite keeps it open while any lock exists: because of POSIX
 *     locks, it closes no descriptor before.
 * (3) A descriptor that was closed without a lock may belong to another file by now: it is compared
 *     before it is used.
 */
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#define DATABASE_LOCKS 0x40000000 /* SQLite's PENDING_BYTE; locks of -shm are below */

struct locked {
    dev_t dev;
    ino_t ino;
    int fd; /* descriptor that has its locks */
    struct locked *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct locked *all;

static struct locked **find(const struct stat *file)
{
    struct locked **at = &all;
    while (*at != NULL && ((*at)->dev != file->st_dev || (*at)->ino != file->st_ino))
        at = &(*at)->next;
    return at;
}

static bool is_file(int fd, const struct stat *file)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_dev == file->st_dev && now.st_ino == file->st_ino;
}

/* Handle F_SETLK and F_UNLCK of a database. */
static int lock_database(int fd, struct flock *lock)
{
    struct stat file;
    if (fstat(fd, &file) < 0)
        return -1;
    struct locked **at = find(&file);
    if (*at == NULL) {
        if (lock->l_type == F_UNLCK)
            return 0;
        struct locked *added = calloc(1, sizeof *added);
        if (added == NULL) {
            errno = ENOLCK;
            return -1;
        }
        *added = (struct locked){.dev = file.st_dev, .ino = file.st_ino, .fd = fd};
        *at = added;
    }
    if (!is_file((*at)->fd, &file))
        (*at)->fd = fd;

    int result = fcntl((*at)->fd, F_OFD_SETLK, lock);
    /* opened for reading by another connection, which has the lock */
    if (result < 0 && errno == EBADF)
        errno = EAGAIN;
    if (lock->l_type == F_UNLCK && lock->l_start == 0) { /* all locks */
        struct locked *gone = *at;
        *at = gone->next;
        free(gone);
    }
    return result;
}

static int ask_database(int fd, struct flock *lock)
{
    struct stat file;
    if (fstat(fd, &file) < 0)
        return -1;
    struct locked *has = *find(&file);
    return fcntl(has != NULL && is_file(has->fd, &file) ? has->fd : fd, F_OFD_GETLK, lock);
}

/* Replace fcntl(). */
static int own_fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (command != F_SETLK && command != F_GETLK)
        return fcntl(fd, command, argument);

    struct flock *lock = argument;
    lock->l_pid = 0;
    bool shm = lock->l_start < DATABASE_LOCKS && lock->l_start != 0;
    if (shm)
        return fcntl(fd, command == F_SETLK ? F_OFD_SETLK : F_OFD_GETLK, lock);
    pthread_mutex_lock(&mutex);
    int result = command == F_SETLK ? lock_database(fd, lock) : ask_database(fd, lock);
    int why = errno;
    pthread_mutex_unlock(&mutex);
    errno = why;
    return result;
}

/*
 * Give SQLite in this module locks of its own. Returns 0 on success. Call it before the first use
 * of SQLite.
 */
int libannal_own_locks(void)
{
    if (sqlite3_initialize() != SQLITE_OK)
        return -1;
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    return vfs != NULL &&
                   vfs->xSetSystemCall(vfs, "fcntl", (sqlite3_syscall_ptr)own_fcntl) == SQLITE_OK
               ? 0
               : -1;
}
