/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O seam: every system call that touches the store goes through a struct io, so that tests
 * can replace the disk. Functions behave like the system calls of their name: -1 and errno on
 * failure. Short reads and writes are possible; annal__io_write_all() and annal__io_read_full()
 * loop.
 *
 * Not covered: SQLite (it has its own VFS), and memory that is shared through map_shared, which
 * contains nothing that must not be lost. The other folders get the struct io of a store through
 * seam.h.
 */
#pragma once

#include <annal/base.h>

#include <sys/stat.h>
#include <sys/types.h>

struct io_space {
    uint64_t free_bytes;  /* bytes that an unprivileged user can write */
    uint64_t block_bytes; /* block size of the filesystem */
    uint64_t fs_type;     /* f_type of statfs(2) */
    uint64_t total_bytes; /* bytes of the filesystem; 0: unknown */
};

/* Return the name of a filesystem on which locks, syncs or shared memory may not work, or only on
 * one machine; NULL for other filesystems. */
const char *annal__io_shared_filesystem(uint64_t fs_type);

/* Called for each name in a directory except "." and ".."; return 0 to continue. */
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
    /* As pread, but read only what is in memory: fewer bytes, or -1 with EAGAIN, instead of waiting
     * for the disk. */
    ssize_t (*pread_now)(void *arg, int fd, void *bytes, size_t len, uint64_t offset);
    /* Ask the system to read these bytes from the disk in the background. */
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
    /* Extend a file to this length and reserve disk space for it; bytes that were never written
     * read as zeros. Fails on filesystems and systems that cannot do this. */
    int (*reserve)(void *arg, int fd, uint64_t len);
    int (*fstat)(void *arg, int fd, struct stat *out);
    int (*futimens)(void *arg, int fd, const struct timespec times[2]);
    /* Examine a file as lstat() does, without following a link. */
    int (*stat)(void *arg, const char *path, struct stat *out);
    /*
     * Find the device and inode of the file that has this name. Asks for nothing else: on Linux
     * from 6.13 on, a stat that asks for times makes the next write to that file change its
     * metadata, which costs half a sync.
     */
    int (*identify)(void *arg, const char *path, dev_t *out_device, ino_t *out_inode);
    /*
     * Find the size of a file, and whether it is a regular file, without asking for times (see
     * identify). Returns 1 if the user may not read the file according to its permissions (an ACL
     * may allow it). The user is that of geteuid(), which a caller with many files calls once.
     */
    int (*measure)(void *arg, const char *path, uid_t user, bool *out_regular, uint64_t *out_bytes);
    int (*rename)(void *arg, const char *from, const char *to);
    int (*unlink)(void *arg, const char *path);
    int (*mkdir)(void *arg, const char *path, mode_t mode);
    /* List a directory, but not through a link in the last component, because the caller may delete
     * the files that it finds. */
    int (*list)(void *arg, const char *path, io_list_fn fn, void *fn_arg);
    /*
     * Begin to watch a directory: return a descriptor from which `changes` reads. -1 if it is not
     * known that the filesystem reports every change. `watch` may be NULL: changes are not
     * reported.
     */
    int (*watch)(void *arg, const char *path);
    /* Call fn for the name of each file in the directory that any program of this machine created,
     * wrote, renamed, deleted or gave other permissions since the last call. Returns -1 if
     * changes were lost; then close the descriptor. */
    int (*changes)(void *arg, int fd, io_list_fn fn, void *fn_arg);
    int (*flock)(void *arg, int fd, int operation); /* retries EINTR */
    int (*space)(void *arg, int fd, struct io_space *out);
    /* drop clean pages of the file from memory, so that the next read reads the disk */
    int (*drop_cache)(void *arg, int fd);
    void *(*map_shared)(void *arg, int fd, size_t len); /* MAP_FAILED on failure */
    int (*unmap)(void *arg, void *map, size_t len);
};

/* The system calls of the operating system. */
extern const struct io annal__system_io;

/* Write len bytes. Return 0, or -1 and set errno (EIO if the kernel accepts no byte). */
int annal__io_write_all(const struct io *io, int fd, const void *bytes, size_t len,
                        uint64_t offset);

/* Write bytes to a descriptor that need not be a file, at its own position. Return false and set
 * errno on failure. */
bool annal__io_write_fd(int fd, annal_slice bytes);

/* Read len bytes, or fewer at the end of the file. Return their number, or -1 and set errno. */
ssize_t annal__io_read_full(const struct io *io, int fd, void *bytes, size_t len, uint64_t offset);

/* Sync a directory, so that names in it survive a power cut. */
annal_status annal__io_sync_dir(const struct io *io, const char *path, annal_error *err);

/* Find out why mkdir failed with the errno `why`: ANNAL_OK if the path is a directory, else a
 * failure. A symbolic link is not followed, and the message says so. */
annal_status annal__io_check_dir(const struct io *io, const char *path, int why, annal_error *err);

/* Create a directory if it is missing, with mode 0770 (see open), and sync its parent. */
annal_status annal__io_make_dir(const struct io *io, const char *path, annal_error *err);

/* As annal__io_make_dir(), but with permissions for its owner only (0700): for a store or a
 * backup. */
annal_status annal__io_make_private_dir(const struct io *io, const char *path, annal_error *err);

/* Return whether a file has a temporary name of annal__io_publish_file(): ….tmp- and 16 hex
 * digits. */
bool annal__io_is_temporary(const char *name);

/* Write a file completely: under a temporary name beside it, synced, renamed, and its directory
 * synced. */
annal_status annal__io_publish_file(const struct io *io, const char *path, const void *bytes,
                                    size_t len, annal_error *err);
