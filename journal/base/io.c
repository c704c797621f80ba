/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/io.h"

#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hex.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define GROUPS_MAX 256

/* Change errno after a file could not be created: ENOSPC becomes NO_INODE if no inode is free.
 * Return result. */
static int note_space(const char *path, int result)
{
    char parent[4096];
    struct statvfs disk;
    const char *slash = strrchr(path, '/');
    if (result >= 0 || errno != ENOSPC)
        return result;
    snprintf(parent, sizeof parent, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    bool used_up = statvfs(parent, &disk) == 0 && disk.f_files > 0 && disk.f_favail == 0;
    errno = used_up ? NO_INODE : ENOSPC;
    return result;
}

static int open_plain(const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode);
    } while (fd < 0 && errno == EINTR);
    return (flags & O_CREAT) != 0 ? note_space(path, fd) : fd;
}

/*
 * Return the permissions of a new file or directory: users other than its owner get the bits of
 * `most` if they may write the directory that contains it. *out_directory is the mode of that
 * directory.
 */
static mode_t shared_mode(const char *path, mode_t most, mode_t *out_directory)
{
    char parent[4096];
    struct stat info;
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    mode_t mode = most & 0700;
    *out_directory = 0;
    if (len >= sizeof parent)
        return mode;
    memcpy(parent, slash == NULL ? "." : path, slash == NULL ? 1 : len);
    parent[slash == NULL ? 1 : len] = '\0';
    if (stat(parent, &info) != 0)
        return mode;
    *out_directory = info.st_mode;
    if ((info.st_mode & 030) == 030)
        mode |= most & 070;
    if ((info.st_mode & 03) == 03 && (info.st_mode & S_ISVTX) == 0)
        mode |= (most & 070) >> 3;
    return mode;
}

/* Open a file, and create it if it is missing and flags has O_CREAT. An existing file keeps its
 * permissions; a new file gets what shared_mode() returns, whatever the umask is. */
static int open_shared(const char *path, int flags, mode_t most)
{
    for (;;) {
        int fd = (flags & O_EXCL) != 0 ? -1 : open_plain(path, flags & ~O_CREAT, 0);
        if ((flags & O_EXCL) == 0 && (fd >= 0 || errno != ENOENT))
            return fd;
        mode_t directory, mode = shared_mode(path, most, &directory);
        fd = open_plain(path, flags | O_EXCL, most & 0700);
        if (fd >= 0 && mode != (most & 0700))
            (void)fchmod(fd, mode);
        if (fd >= 0 || errno != EEXIST || (flags & O_EXCL) != 0)
            return fd;
    }
}

static int sys_open(void *arg, const char *path, int flags, mode_t mode)
{
    (void)arg;
    return (flags & O_CREAT) != 0 && (mode & 070) != 0 ? open_shared(path, flags, mode)
                                                       : open_plain(path, flags, mode);
}

static int sys_close(void *arg, int fd)
{
    (void)arg;
    return close(fd);
}

static ssize_t sys_pread(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    (void)arg;
    return pread(fd, bytes, len, (off_t)offset);
}

static ssize_t sys_pread_now(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    struct iovec into = {bytes, len};
    ssize_t got = preadv2(fd, &into, 1, (off_t)offset, RWF_NOWAIT);
    /* the filesystem does not support RWF_NOWAIT, so read normally */
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
        return sys_pread(arg, fd, bytes, len, offset);
    return got;
}

static void sys_will_need(void *arg, int fd, uint64_t offset, size_t len)
{
    (void)arg;
    (void)posix_fadvise(fd, (off_t)offset, (off_t)len, POSIX_FADV_WILLNEED);
}

static ssize_t sys_pwrite(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    (void)arg;
    return pwrite(fd, bytes, len, (off_t)offset);
}

static int sys_write_back(void *arg, int fd, uint64_t offset, size_t len)
{
    (void)arg;
    int failed = sync_file_range(fd, (off_t)offset, (off_t)len, SYNC_FILE_RANGE_WRITE);
    if (failed < 0 && errno != EIO && errno != ENOSPC && errno != EDQUOT && errno != EBADF)
        return 0; /* the kernel cannot begin to write these bytes, but the next sync writes them */
    return failed;
}

static int sys_fdatasync(void *arg, int fd)
{
    (void)arg;
    return fdatasync(fd);
}

static int sys_fsync(void *arg, int fd)
{
    (void)arg;
    return fsync(fd);
}

static int sys_ftruncate(void *arg, int fd, uint64_t len)
{
    (void)arg;
    return ftruncate(fd, (off_t)len);
}

static int sys_reserve(void *arg, int fd, uint64_t len)
{
    (void)arg;
    int failed;
    do
        failed = fallocate(fd, 0, 0, (off_t)len);
    while (failed < 0 && errno == EINTR);
    return failed;
}

static int sys_fstat(void *arg, int fd, struct stat *out)
{
    (void)arg;
    return fstat(fd, out);
}

static int sys_stat(void *arg, const char *path, struct stat *out)
{
    (void)arg;
    return lstat(path, out);
}

static int sys_identify(void *arg, const char *path, dev_t *out_device, ino_t *out_inode)
{
    (void)arg;
    struct statx found;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, STATX_INO, &found) < 0)
        return -1;
    *out_device = makedev(found.stx_dev_major, found.stx_dev_minor);
    *out_inode = (ino_t)found.stx_ino;
    return 0;
}

/* Return whether this process is in a group; also true if that cannot be found out. */
static bool is_member(gid_t gid)
{
    gid_t groups[GROUPS_MAX];
    int count = gid == getegid() ? 0 : getgroups(GROUPS_MAX, groups);
    bool member = gid == getegid() || count < 0;
    for (int i = 0; i < count && !member; i++)
        member = groups[i] == gid;
    return member;
}

static bool mode_lets_read(const struct statx *file, uid_t user)
{
    if (user == 0)
        return true;
    if (file->stx_uid == user)
        return (file->stx_mode & S_IRUSR) != 0;
    bool group = (file->stx_mode & S_IRGRP) != 0, others = (file->stx_mode & S_IROTH) != 0;
    return group == others ? group : is_member(file->stx_gid) == group;
}

static int sys_measure(void *arg, const char *path, uid_t user, bool *out_regular,
                       uint64_t *out_bytes)
{
    (void)arg;
    struct statx found;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC,
              STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID | STATX_SIZE, &found) < 0)
        return -1;
    *out_regular = S_ISREG(found.stx_mode);
    *out_bytes = found.stx_size;
    return mode_lets_read(&found, user) ? 0 : 1;
}

static int sys_rename(void *arg, const char *from, const char *to)
{
    (void)arg;
    return rename(from, to);
}

static int sys_unlink(void *arg, const char *path)
{
    (void)arg;
    return unlink(path);
}

static int sys_mkdir(void *arg, const char *path, mode_t mode)
{
    (void)arg;
    mode_t directory = 0, shared = (mode & 070) != 0 ? shared_mode(path, mode, &directory) : mode;
    int rc = note_space(path, mkdir(path, mode & 0700));
    if (rc == 0 && shared != (mode & 0700))
        (void)chmod(path, shared | (directory & S_ISGID));
    return rc;
}

static int sys_list(void *arg, const char *path, io_list_fn fn, void *fn_arg)
{
    (void)arg;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        errno = why;
        return -1;
    }
    int result = 0;
    const struct dirent *entry;
    errno = 0;
    while (result == 0 && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = fn(fn_arg, entry->d_name);
        if (result == 0)
            errno = 0;
    }
    int failed = errno;
    closedir(dir);
    if (result == 0 && failed != 0) {
        errno = failed;
        return -1;
    }
    return result;
}

static int sys_futimens(void *arg, int fd, const struct timespec times[2])
{
    (void)arg;
    return futimens(fd, times);
}

struct filesystem {
    uint64_t type; /* f_type of statfs(2), as in linux/magic.h */
    const char *name;
};

/* those that several machines may share */
static const struct filesystem shared[] = {{0x6969, "NFS"},
                                           {0x517b, "SMB"},
                                           {0xff534d42, "CIFS"},
                                           {0xfe534d42, "SMB2"},
                                           {0x564c, "NCP"},
                                           {0x73757245, "Coda"},
                                           {0x5346414f, "AFS"},
                                           {0x00c36400, "Ceph"},
                                           {0x0bd00bd0, "Lustre"},
                                           {0x01021997, "9P"},
                                           {0x65735546, "FUSE"},
                                           {0x47504653, "GPFS"},
                                           {0, NULL}};

/* those that only programs of this machine change: inotify reports every change */
static const struct filesystem local[] = {
    {0xef53, "ext4"},    {0x58465342, "XFS"},  {0x9123683e, "Btrfs"},    {0x01021994, "tmpfs"},
    {0x2fc12fc1, "ZFS"}, {0xf2f52010, "F2FS"}, {0x794c7630, "overlay"},  {0x858458f6, "ramfs"},
    {0x3153464a, "JFS"}, {0x3434, "NILFS2"},   {0xca451a4e, "bcachefs"}, {0, NULL},
};

static const char *filesystem_name(const struct filesystem *of, uint64_t type)
{
    while (of->name != NULL && of->type != (uint32_t)type)
        of++;
    return of->name;
}

const char *annal__io_shared_filesystem(uint64_t fs_type)
{
    return filesystem_name(shared, fs_type);
}

static int sys_watch(void *arg, const char *path)
{
    (void)arg;
    struct statfs fs;
    if (statfs(path, &fs) < 0 || filesystem_name(local, (uint64_t)fs.f_type) == NULL)
        return -1;
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0)
        return -1;
    if (inotify_add_watch(fd, path,
                          IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF |
                              IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW) >= 0)
        return fd;
    close(fd);
    return -1;
}

static int sys_changes(void *arg, int fd, io_list_fn fn, void *fn_arg)
{
    static const uint32_t lost =
        IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF;
    _Alignas(struct inotify_event) char bytes[16384];
    ssize_t got;
    (void)arg;
    while ((got = read(fd, bytes, sizeof bytes)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *event = (const struct inotify_event *)(bytes + at);
            if ((event->mask & lost) != 0)
                return -1;
            if (event->len > 0)
                (void)fn(fn_arg, event->name);
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
    return got < 0 && errno == EAGAIN ? 0 : -1;
}

static int sys_flock(void *arg, int fd, int operation)
{
    (void)arg;
    int result;
    do {
        result = flock(fd, operation);
    } while (result < 0 && errno == EINTR);
    return result;
}

static int sys_space(void *arg, int fd, struct io_space *out)
{
    (void)arg;
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return -1;
    out->free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    out->block_bytes = (uint64_t)fs.f_bsize;
    out->fs_type = (uint64_t)(uint32_t)fs.f_type;
    out->total_bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
    return 0;
}

static int sys_drop_cache(void *arg, int fd)
{
    (void)arg;
    int failed = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (failed != 0) {
        errno = failed;
        return -1;
    }
    return 0;
}

static void *sys_map_shared(void *arg, int fd, size_t len)
{
    (void)arg;
    return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static int sys_unmap(void *arg, void *map, size_t len)
{
    (void)arg;
    return munmap(map, len);
}

const struct io annal__system_io = {
    .open = sys_open,
    .close = sys_close,
    .pread = sys_pread,
    .pread_now = sys_pread_now,
    .will_need = sys_will_need,
    .pwrite = sys_pwrite,
    .write_back = sys_write_back,
    .fdatasync = sys_fdatasync,
    .fsync = sys_fsync,
    .ftruncate = sys_ftruncate,
    .reserve = sys_reserve,
    .fstat = sys_fstat,
    .futimens = sys_futimens,
    .stat = sys_stat,
    .identify = sys_identify,
    .measure = sys_measure,
    .rename = sys_rename,
    .unlink = sys_unlink,
    .mkdir = sys_mkdir,
    .list = sys_list,
    .watch = sys_watch,
    .changes = sys_changes,
    .flock = sys_flock,
    .space = sys_space,
    .drop_cache = sys_drop_cache,
    .map_shared = sys_map_shared,
    .unmap = sys_unmap,
};

int annal__io_write_all(const struct io *io, int fd, const void *bytes, size_t len, uint64_t offset)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t wrote = io->pwrite(io->arg, fd, at, len, offset);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -1;
        if (wrote == 0) {
            errno = EIO;
            return -1;
        }
        at += wrote;
        len -= (size_t)wrote;
        offset += (uint64_t)wrote;
    }
    return 0;
}

bool annal__io_write_fd(int fd, annal_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t wrote = write(fd, bytes.ptr, bytes.len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            errno = wrote == 0 ? EIO : errno;
            return false;
        }
        bytes = (annal_slice){bytes.ptr + wrote, bytes.len - (size_t)wrote};
    }
    return true;
}

ssize_t annal__io_read_full(const struct io *io, int fd, void *bytes, size_t len, uint64_t offset)
{
    size_t done = 0;
    while (done < len) {
        ssize_t got = io->pread(io->arg, fd, (char *)bytes + done, len - done, offset + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

annal_status annal__io_sync_dir(const struct io *io, const char *path, annal_error *err)
{
    int fd = io->open(io->arg, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return annal__fail_errno(err, "cannot open directory %s", path);
    annal_status status = ANNAL_OK;
    if (io->fsync(io->arg, fd) < 0)
        status = annal__fail_errno(err, "cannot sync directory %s", path);
    io->close(io->arg, fd);
    return status;
}

static annal_status sync_parent(const struct io *io, const char *path, annal_error *err)
{
    SCOPED_BUF parent = {.limit = 8192};
    const char *slash = strrchr(path, '/');
    annal_status status;
    if (slash == NULL)
        status = annal__buf_append(&parent, ".", 1);
    else
        status = annal__buf_append(&parent, path, slash == path ? 1 : (size_t)(slash - path));
    const char *name = status < 0 ? NULL : annal__buf_cstr(&parent);
    if (name == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "sync the directory of %s: out of memory", path);
    else
        status = annal__io_sync_dir(io, name, err);
    return status;
}

annal_status annal__io_check_dir(const struct io *io, const char *path, int why, annal_error *err)
{
    struct stat found = {0};
    if (why == EEXIST && io->stat(io->arg, path, &found) < 0)
        why = errno;
    else if (S_ISDIR(found.st_mode))
        return ANNAL_OK;
    bool link = S_ISLNK(found.st_mode);
    errno = link ? ELOOP : why;
    return annal__fail_errno(
        err, link ? "path %s is a symbolic link, which is not followed" : "create directory %s",
        path);
}

static annal_status make_dir(const struct io *io, const char *path, mode_t mode, annal_error *err)
{
    if (io->mkdir(io->arg, path, mode) < 0)
        return annal__io_check_dir(io, path, errno, err);
    return sync_parent(io, path, err);
}

annal_status annal__io_make_dir(const struct io *io, const char *path, annal_error *err)
{
    return make_dir(io, path, 0770, err);
}

annal_status annal__io_make_private_dir(const struct io *io, const char *path, annal_error *err)
{
    return make_dir(io, path, 0700, err);
}

bool annal__io_is_temporary(const char *name)
{
    static const char mark[] = ".tmp-";
    size_t len = strlen(name), tail = sizeof mark - 1 + 16;
    return len > tail && memcmp(name + len - tail, mark, sizeof mark - 1) == 0 &&
           annal__hex_fits(name + len - 16, 16);
}

annal_status annal__io_publish_file(const struct io *io, const char *path, const void *bytes,
                                    size_t len, annal_error *err)
{
    SCOPED_BUF temporary = {.limit = 8192};
    /* Two processes that publish the same file must not use the same temporary name. */
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return annal__fail_errno(err, "write %s: cannot choose a random name", path);
    annal_status status =
        annal__buf_printf(&temporary, "%s.tmp-%016llx", path, (unsigned long long)random);
    if (status < 0)
        return annal__fail(err, status, "write %.200s…: the name of the file is too long", path);

    int fd = io->open(io->arg, temporary.ptr, O_WRONLY | O_CREAT | O_EXCL, 0660);
    if (fd < 0) {
        status = annal__fail_errno(err, "cannot create %s", temporary.ptr);
        goto done;
    }
    if (annal__io_write_all(io, fd, bytes, len, 0) < 0 || io->fsync(io->arg, fd) < 0) {
        status = annal__fail_errno(err, "cannot write %s", temporary.ptr);
        goto done;
    }
    if (io->rename(io->arg, temporary.ptr, path) < 0) {
        status = annal__fail_errno(err, "cannot rename %s to %s", temporary.ptr, path);
        goto done;
    }
    status = sync_parent(io, path, err);

done:
    if (fd >= 0)
        io->close(io->arg, fd);
    if (status < 0)
        io->unlink(io->arg, temporary.ptr);
    return status;
}
