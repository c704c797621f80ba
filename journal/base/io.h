/*
 * The I/O seam: every system call that touches the store goes through a struct io, so that tests
 * can put another disk under it. Functions behave like the system calls of their name: -1 and errno
 * on failure. Short reads and writes are possible; annal__write_all() and annal__read_full() loop.
 *
 * What stays outside: SQLite (it has a VFS of its own), memory that is shared through map_shared,
 * which nobody's truth depends on. The floors above the journal ask seam.h for it.
 */
#ifndef JOURNAL_BASE_IO_H
#define JOURNAL_BASE_IO_H

#include <annal/base.h>

#include <sys/stat.h>
#include <sys/types.h>

struct io_space {
    uint64_t free_bytes;  /* for an unprivileged user */
    uint64_t block_bytes; /* the unit the filesystem likes to write */
    uint64_t fs_type;     /* statfs f_type */
};

/* One name in a directory; return 0 to go on. "." and ".." are left out. */
typedef int (*io_list_fn)(void *arg, const char *name);

struct io {
    void *arg;
    /* Adds O_CLOEXEC, O_NOFOLLOW, and O_NONBLOCK: a FIFO makes nobody wait. */
    int (*open)(void *arg, const char *path, int flags, mode_t mode);
    int (*close)(void *arg, int fd);
    ssize_t (*pread)(void *arg, int fd, void *bytes, size_t len, uint64_t offset);
    /* As pread, but what would have to be waited for is left out: short, or -1 with EAGAIN. */
    ssize_t (*pread_now)(void *arg, int fd, void *bytes, size_t len, uint64_t offset);
    /* A hint: fetch these bytes from the disk meanwhile. */
    void (*will_need)(void *arg, int fd, uint64_t offset, size_t len);
    ssize_t (*pwrite)(void *arg, int fd, const void *bytes, size_t len, uint64_t offset);
    /*
     * Have these bytes written if they are dirty, and wait for that. A preparation, no sync: they
     * may stay in the device's cache. An error that is told here may not be told by the next sync.
     */
    int (*write_back)(void *arg, int fd, uint64_t offset, size_t len);
    int (*fdatasync)(void *arg, int fd);
    int (*fsync)(void *arg, int fd);
    int (*ftruncate)(void *arg, int fd, uint64_t len);
    int (*fstat)(void *arg, int fd, struct stat *out);
    /* lstat: does not follow links */
    int (*stat)(void *arg, const char *path, struct stat *out);
    /*
     * Which file a name stands for. Asks for nothing else: on Linux from 6.13 on, a stat that asks
     * for times makes the next write to that file change its metadata, which costs half a sync.
     */
    int (*identify)(void *arg, const char *path, dev_t *out_device, ino_t *out_inode);
    /* How long a file is, and whether it is a regular one; asks for no times, as identify. */
    int (*measure)(void *arg, const char *path, bool *out_regular, uint64_t *out_bytes);
    int (*rename)(void *arg, const char *from, const char *to);
    int (*unlink)(void *arg, const char *path);
    int (*mkdir)(void *arg, const char *path, mode_t mode);
    /* Does not follow a link in the last place: what was found may be deleted. */
    int (*list)(void *arg, const char *path, io_list_fn fn, void *fn_arg);
    int (*flock)(void *arg, int fd, int operation); /* retries EINTR */
    int (*space)(void *arg, int fd, struct io_space *out);
    int (*drop_cache)(void *arg, int fd); /* forget clean pages, so that a read asks the disk */
    void *(*map_shared)(void *arg, int fd, size_t len); /* MAP_FAILED on failure */
    int (*unmap)(void *arg, void *map, size_t len);
};

/* The system's. */
extern const struct io annal__system_io;

/* All of it, or -1 with errno (EIO when the kernel takes nothing). */
int annal__write_all(const struct io *io, int fd, const void *bytes, size_t len, uint64_t offset);

/* Up to len bytes, fewer only at the end of the file; -1 with errno. */
ssize_t annal__read_full(const struct io *io, int fd, void *bytes, size_t len, uint64_t offset);

/* Sync a directory, so that names in it survive a power cut. */
annal_status annal__sync_dir(const struct io *io, const char *path, annal_error *err);

/*
 * Whether a directory stands where mkdir failed with why: ANNAL_OK, or what is wrong. A symbolic
 * link is not followed, and named.
 */
annal_status annal__check_dir(const struct io *io, const char *path, int why, annal_error *err);

/* Make a directory (0700) if it is missing, and sync its parent. */
annal_status annal__make_dir(const struct io *io, const char *path, annal_error *err);

/* Write a whole file: under a temporary name beside it, synced, renamed, directory synced. */
annal_status annal__publish_file(const struct io *io, const char *path, const void *bytes,
                                 size_t len, annal_error *err);

#endif
