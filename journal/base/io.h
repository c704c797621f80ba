/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O seam: every system call that touches the store goes through a struct io, so that tests
 * can replace the disk. Functions behave like the system calls of their name: -1 and errno on
 * failure. Short reads and writes are possible; annal__io_write_all() and annal__io_read_full()
 * loop.
 *
 * Not covered: SQLite (it has its own VFS), and memory that is shared through map_shared, on which
 * no truth depends. The layers above the journal use it through seam.h.
 */
#ifndef JOURNAL_BASE_IO_H
#define JOURNAL_BASE_IO_H

#include <annal/base.h>

#include <sys/stat.h>
#include <sys/types.h>

struct io_space {
    uint64_t free_bytes;  /* for an unprivileged user */
    uint64_t block_bytes; /* the unit in which the filesystem prefers to write */
    uint64_t fs_type;     /* statfs f_type */
    uint64_t total_bytes; /* size of the filesystem; 0: not known */
};

/*
 * Return the name of a filesystem whose locks, syncs or shared memory may not work, or not across
 * machines; NULL for other filesystems, which may only be slow: annal doctor says so.
 */
const char *annal__io_shared_filesystem(uint64_t fs_type);

/* One name in a directory; return 0 to continue. "." and ".." are left out. */
typedef int (*io_list_fn)(void *arg, const char *name);

struct io {
    void *arg;
    /*
     * Adds O_CLOEXEC, O_NOFOLLOW, and O_NONBLOCK: opening a FIFO does not wait. A new file keeps
     * the group bits of the mode (0660) only if the group may write its directory, whatever the
     * umask is; the same holds for mkdir.
     */
    int (*open)(void *arg, const char *path, int flags, mode_t mode);
    int (*close)(void *arg, int fd);
    ssize_t (*pread)(void *arg, int fd, void *bytes, size_t len, uint64_t offset);
    /* As pread, but without what would have to be waited for: short, or -1 with EAGAIN. */
    ssize_t (*pread_now)(void *arg, int fd, void *bytes, size_t len, uint64_t offset);
    /* A hint: fetch these bytes from the disk in the background. */
    void (*will_need)(void *arg, int fd, uint64_t offset, size_t len);
    ssize_t (*pwrite)(void *arg, int fd, const void *bytes, size_t len, uint64_t offset);
    /*
     * Begin to write these bytes to the disk if they are dirty. This prepares a sync and does not
     * replace it. An error that it reports may not be reported by the next sync.
     */
    int (*write_back)(void *arg, int fd, uint64_t offset, size_t len);
    int (*fdatasync)(void *arg, int fd);
    int (*fsync)(void *arg, int fd);
    int (*ftruncate)(void *arg, int fd, uint64_t len);
    /*
     * Extend a file to this length and reserve disk space for all of it; unwritten bytes read as
     * zeros. Not every filesystem and system can do this.
     */
    int (*reserve)(void *arg, int fd, uint64_t len);
    int (*fstat)(void *arg, int fd, struct stat *out);
    int (*futimens)(void *arg, int fd, const struct timespec times[2]);
    /* lstat: does not follow links */
    int (*stat)(void *arg, const char *path, struct stat *out);
    /*
     * The file that a name belongs to. Asks for nothing else: on Linux from 6.13 on, a stat that
     * asks for times makes the next write to that file change its metadata, which costs half a
     * sync.
     */
    int (*identify)(void *arg, const char *path, dev_t *out_device, ino_t *out_inode);
    /*
     * The size of a file, and whether it is a regular one; asks for no times, like identify. 1: as
     * its mode says, this user may not read it (an ACL may say otherwise).
     */
    int (*measure)(void *arg, const char *path, bool *out_regular, uint64_t *out_bytes);
    int (*rename)(void *arg, const char *from, const char *to);
    int (*unlink)(void *arg, const char *path);
    int (*mkdir)(void *arg, const char *path, mode_t mode);
    /* Does not follow a link in the last component: what was found may be deleted. */
    int (*list)(void *arg, const char *path, io_list_fn fn, void *fn_arg);
    int (*flock)(void *arg, int fd, int operation); /* retries EINTR */
    int (*space)(void *arg, int fd, struct io_space *out);
    int (*drop_cache)(void *arg, int fd); /* forget clean pages, so that a read asks the disk */
    void *(*map_shared)(void *arg, int fd, size_t len); /* MAP_FAILED on failure */
    int (*unmap)(void *arg, void *map, size_t len);
};

/* The system calls themselves. */
extern const struct io annal__system_io;

/* Writes all of it, or returns -1 with errno (EIO if the kernel accepts nothing). */
int annal__io_write_all(const struct io *io, int fd, const void *bytes, size_t len,
                        uint64_t offset);

/* Reads len bytes, fewer only at the end of the file; -1 with errno. */
ssize_t annal__io_read_full(const struct io *io, int fd, void *bytes, size_t len, uint64_t offset);

/* Sync a directory, so that names in it survive a power cut. */
annal_status annal__io_sync_dir(const struct io *io, const char *path, annal_error *err);

/*
 * After mkdir failed with why: ANNAL_OK if there is a directory, or what is wrong. A symbolic link
 * is not followed, and the message says so.
 */
annal_status annal__io_check_dir(const struct io *io, const char *path, int why, annal_error *err);

/* Create a directory (0770: see open) if it is missing, and sync its parent. */
annal_status annal__io_make_dir(const struct io *io, const char *path, annal_error *err);

/* As above, for its owner alone, whatever the directory above it is: a store, a backup. */
annal_status annal__io_make_private_dir(const struct io *io, const char *path, annal_error *err);

/* Whether a file has a name that annal__io_publish_file() gives for a moment: ….tmp-, 16 digits. */
bool annal__io_is_temporary(const char *name);

/* Write a whole file: under a temporary name beside it, synced, renamed, directory synced. */
annal_status annal__io_publish_file(const struct io *io, const char *path, const void *bytes,
                                    size_t len, annal_error *err);

#endif
