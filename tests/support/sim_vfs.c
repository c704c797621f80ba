/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/sim_vfs.h"

#include "tests/support/sim_inode.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PATH_BYTES    512
#define SHM_SLOTS     8
#define SHM_BYTES_MAX ((size_t)2 << 20)
#define SECTOR_BYTES  512

/* A file that connections have open: its locks. */
struct node {
    const struct sim_disk *disk;
    ino_t inode;
    unsigned users;
    unsigned shared; /* connections with at least a shared lock */
    const struct sim_file *reserved, *pending, *exclusive;
    /* Of a -shm file. */
    unsigned slot_shared[SHM_SLOTS];
    const struct sim_file *slot_exclusive[SHM_SLOTS];
    struct node *next;
};

struct sim_file {
    sqlite3_file base;
    struct sim_process *process;
    int fd;
    int level;
    bool delete_on_close;
    bool sync_dir; /* with the next sync */
    struct node *node;
    char path[PATH_BYTES];
    /* The shared memory of its WAL. */
    struct node *shm;
    int shm_fd;
    char *shm_map;
    unsigned shm_shared; /* slots, as bits */
    unsigned shm_exclusive;
};

static struct node *nodes;

static sqlite3_vfs *system_vfs(void)
{
    return sqlite3_vfs_find("unix");
}

/* ---- Nodes ---- */

static struct node *node_take(const struct sim_process *process, int fd)
{
    struct stat file;
    if (process->io.fstat(process->io.arg, fd, &file) < 0)
        return NULL;
    struct node *node = nodes;
    while (node != NULL && (node->disk != process->disk || node->inode != file.st_ino))
        node = node->next;
    if (node == NULL) {
        node = sim_alloc(1, sizeof *node);
        node->disk = process->disk;
        node->inode = file.st_ino;
        node->next = nodes;
        nodes = node;
    }
    node->users++;
    return node;
}

static void node_give(struct node *node)
{
    struct node **at = &nodes;
    if (node == NULL || --node->users > 0)
        return;
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    free(node);
}

/* ---- Locks ---- */

static int f_lock(sqlite3_file *base, int level)
{
    struct sim_file *file = (struct sim_file *)base;
    struct node *node = file->node;
    if (level <= file->level)
        return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED) {
        if (node->pending != NULL || node->exclusive != NULL)
            return SQLITE_BUSY;
        node->shared++;
    } else if (level == SQLITE_LOCK_RESERVED) {
        if (node->reserved != NULL)
            return SQLITE_BUSY;
        node->reserved = file;
    } else {
        if ((node->reserved != NULL && node->reserved != file) ||
            (node->pending != NULL && node->pending != file))
            return SQLITE_BUSY;
        node->pending = file;
        if (level == SQLITE_LOCK_EXCLUSIVE && node->shared > 1) {
            file->level = SQLITE_LOCK_PENDING;
            return SQLITE_BUSY;
        }
        if (level == SQLITE_LOCK_EXCLUSIVE)
            node->exclusive = file;
    }
    file->level = level;
    return SQLITE_OK;
}

static int f_unlock(sqlite3_file *base, int level)
{
    struct sim_file *file = (struct sim_file *)base;
    struct node *node = file->node;
    if (level >= file->level)
        return SQLITE_OK;
    if (node->reserved == file)
        node->reserved = NULL;
    if (node->pending == file)
        node->pending = NULL;
    if (node->exclusive == file)
        node->exclusive = NULL;
    if (level == SQLITE_LOCK_NONE)
        node->shared--;
    file->level = level;
    return SQLITE_OK;
}

static int f_check_reserved(sqlite3_file *base, int *out)
{
    const struct sim_file *file = (struct sim_file *)base;
    *out = file->node->reserved != NULL;
    return SQLITE_OK;
}

/* ---- Shared memory ---- */

static int shm_open_file(struct sim_file *file)
{
    const struct io *io = &file->process->io;
    char path[PATH_BYTES + 8];
    struct stat found;
    snprintf(path, sizeof path, "%s-shm", file->path);
    file->shm_fd = io->open(io->arg, path, O_RDWR | O_CREAT, 0600);
    if (file->shm_fd < 0)
        return SQLITE_CANTOPEN;
    file->shm = node_take(file->process, file->shm_fd);
    if (file->shm == NULL || io->fstat(io->arg, file->shm_fd, &found) < 0)
        return SQLITE_IOERR_SHMOPEN;
    file->shm_map = io->map_shared(io->arg, file->shm_fd, SHM_BYTES_MAX);
    if (file->shm_map == MAP_FAILED) {
        file->shm_map = NULL;
        return SQLITE_IOERR_SHMMAP;
    }
    if (file->shm->users == 1 && found.st_size > 0 && io->ftruncate(io->arg, file->shm_fd, 0) < 0)
        return SQLITE_IOERR_SHMSIZE;
    return SQLITE_OK;
}

static int f_shm_unmap(sqlite3_file *base, int delete)
{
    struct sim_file *file = (struct sim_file *)base;
    const struct io *io = &file->process->io;
    bool last = file->shm != NULL && file->shm->users == 1;
    if (file->shm_map != NULL)
        io->unmap(io->arg, file->shm_map, SHM_BYTES_MAX);
    if (file->shm_fd >= 0)
        io->close(io->arg, file->shm_fd);
    if (last && delete) {
        char path[PATH_BYTES + 8];
        snprintf(path, sizeof path, "%s-shm", file->path);
        io->unlink(io->arg, path);
    }
    for (unsigned i = 0; i < SHM_SLOTS && file->shm != NULL; i++) {
        file->shm->slot_shared[i] -= file->shm_shared >> i & 1;
        if (file->shm->slot_exclusive[i] == file)
            file->shm->slot_exclusive[i] = NULL;
    }
    node_give(file->shm);
    file->shm = NULL;
    file->shm_map = NULL;
    file->shm_fd = -1;
    file->shm_shared = file->shm_exclusive = 0;
    return SQLITE_OK;
}

static int f_shm_map(sqlite3_file *base, int region, int bytes, int extend, void volatile **out)
{
    struct sim_file *file = (struct sim_file *)base;
    const struct io *io = &file->process->io;
    struct stat found;
    uint64_t end = (uint64_t)(region + 1) * (uint64_t)bytes;
    *out = NULL;
    if (file->shm == NULL) {
        int rc = shm_open_file(file);
        if (rc != SQLITE_OK) {
            f_shm_unmap(base, 0);
            return rc;
        }
    }
    if (io->fstat(io->arg, file->shm_fd, &found) < 0)
        return SQLITE_IOERR_SHMSIZE;
    if ((uint64_t)found.st_size < end && !extend)
        return SQLITE_OK;
    if (end > SHM_BYTES_MAX ||
        ((uint64_t)found.st_size < end && io->ftruncate(io->arg, file->shm_fd, end) < 0))
        return SQLITE_IOERR_SHMSIZE;
    *out = file->shm_map + (size_t)region * (size_t)bytes;
    return SQLITE_OK;
}

static int f_shm_lock(sqlite3_file *base, int first, int count, int flags)
{
    struct sim_file *file = (struct sim_file *)base;
    struct node *shm = file->shm;
    unsigned mask = ((1u << count) - 1) << first;
    if ((flags & SQLITE_SHM_UNLOCK) != 0) {
        for (int i = first; i < first + count; i++) {
            shm->slot_shared[i] -= file->shm_shared >> i & 1;
            if (shm->slot_exclusive[i] == file)
                shm->slot_exclusive[i] = NULL;
        }
        file->shm_shared &= ~mask;
        file->shm_exclusive &= ~mask;
        return SQLITE_OK;
    }
    bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
    for (int i = first; i < first + count; i++) {
        bool shared_by_others = shm->slot_shared[i] > (file->shm_shared >> i & 1);
        bool taken = shm->slot_exclusive[i] != NULL && shm->slot_exclusive[i] != file;
        if (taken || (exclusive && shared_by_others))
            return SQLITE_BUSY;
    }
    for (int i = first; i < first + count; i++) {
        if (exclusive)
            shm->slot_exclusive[i] = file;
        else if ((file->shm_shared >> i & 1) == 0)
            shm->slot_shared[i]++;
    }
    if (exclusive)
        file->shm_exclusive |= mask;
    else
        file->shm_shared |= mask;
    return SQLITE_OK;
}

static void f_shm_barrier(sqlite3_file *base)
{
    (void)base;
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- Bytes ---- */

static int sync_directory_of(const struct sim_process *process, const char *path)
{
    char directory[PATH_BYTES];
    snprintf(directory, sizeof directory, "%s", path);
    *strrchr(directory, '/') = '\0';
    return annal__io_sync_dir(&process->io, directory, NULL) < 0 ? SQLITE_IOERR_DIR_FSYNC
                                                                 : SQLITE_OK;
}

static int f_close(sqlite3_file *base)
{
    struct sim_file *file = (struct sim_file *)base;
    const struct io *io = &file->process->io;
    f_unlock(base, SQLITE_LOCK_NONE);
    f_shm_unmap(base, 0);
    io->close(io->arg, file->fd);
    if (file->delete_on_close)
        io->unlink(io->arg, file->path);
    node_give(file->node);
    return SQLITE_OK;
}

static int f_read(sqlite3_file *base, void *bytes, int len, sqlite3_int64 offset)
{
    const struct sim_file *file = (struct sim_file *)base;
    ssize_t got =
        annal__io_read_full(&file->process->io, file->fd, bytes, (size_t)len, (uint64_t)offset);
    if (got < 0)
        return SQLITE_IOERR_READ;
    memset((char *)bytes + got, 0, (size_t)(len - got));
    return got < len ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int f_write(sqlite3_file *base, const void *bytes, int len, sqlite3_int64 offset)
{
    const struct sim_file *file = (struct sim_file *)base;
    if (annal__io_write_all(&file->process->io, file->fd, bytes, (size_t)len, (uint64_t)offset) ==
        0)
        return SQLITE_OK;
    return errno == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int f_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    const struct sim_file *file = (struct sim_file *)base;
    const struct io *io = &file->process->io;
    return io->ftruncate(io->arg, file->fd, (uint64_t)size) < 0 ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

static int f_sync(sqlite3_file *base, int flags)
{
    struct sim_file *file = (struct sim_file *)base;
    const struct io *io = &file->process->io;
    (void)flags;
    if (io->fsync(io->arg, file->fd) < 0)
        return SQLITE_IOERR_FSYNC;
    int rc = file->sync_dir ? sync_directory_of(file->process, file->path) : SQLITE_OK;
    file->sync_dir = false;
    return rc;
}

static int f_size(sqlite3_file *base, sqlite3_int64 *out)
{
    const struct sim_file *file = (struct sim_file *)base;
    const struct io *io = &file->process->io;
    struct stat found;
    if (io->fstat(io->arg, file->fd, &found) < 0)
        return SQLITE_IOERR_FSTAT;
    *out = found.st_size;
    return SQLITE_OK;
}

static int f_control(sqlite3_file *base, int op, void *arg)
{
    const struct sim_file *file = (struct sim_file *)base;
    const struct io *io = &file->process->io;
    dev_t device;
    ino_t inode = 0;
    if (op != SQLITE_FCNTL_HAS_MOVED)
        return SQLITE_NOTFOUND;
    *(int *)arg =
        io->identify(io->arg, file->path, &device, &inode) < 0 || inode != file->node->inode;
    return SQLITE_OK;
}

static int f_sector_size(sqlite3_file *base)
{
    (void)base;
    return SECTOR_BYTES;
}

static int f_characteristics(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_check_reserved,
    .xFileControl = f_control,
    .xSectorSize = f_sector_size,
    .xDeviceCharacteristics = f_characteristics,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

/* ---- The VFS ---- */

static int v_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out_flags)
{
    struct sim_file *file = (struct sim_file *)base;
    struct sim_process *process = path == NULL ? NULL : sim_process_of(path);
    (void)vfs;
    if (process == NULL)
        return system_vfs()->xOpen(system_vfs(), path, base, flags, out_flags);
    const struct io *io = &process->io;
    struct stat found;
    *file = (struct sim_file){.process = process, .shm_fd = -1};
    snprintf(file->path, sizeof file->path, "%s", path);
    bool is_new = io->stat(io->arg, path, &found) < 0;
    file->fd = io->open(io->arg, path,
                        ((flags & SQLITE_OPEN_READWRITE) != 0 ? O_RDWR : O_RDONLY) |
                            ((flags & SQLITE_OPEN_CREATE) != 0 ? O_CREAT : 0) |
                            ((flags & SQLITE_OPEN_EXCLUSIVE) != 0 ? O_EXCL : 0),
                        0600);
    if (file->fd < 0)
        return SQLITE_CANTOPEN;
    file->node = node_take(process, file->fd);
    if (file->node == NULL) {
        io->close(io->arg, file->fd);
        return SQLITE_CANTOPEN;
    }
    file->delete_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    file->sync_dir =
        is_new &&
        (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL)) != 0;
    if (out_flags != NULL)
        *out_flags = flags;
    file->base.pMethods = &methods;
    return SQLITE_OK;
}

static int v_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    const struct sim_process *process = sim_process_of(path);
    (void)vfs;
    if (process == NULL)
        return system_vfs()->xDelete(system_vfs(), path, sync_dir);
    if (process->io.unlink(process->io.arg, path) < 0)
        return errno == ENOENT ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
    return sync_dir ? sync_directory_of(process, path) : SQLITE_OK;
}

static int v_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    const struct sim_process *process = sim_process_of(path);
    struct stat found;
    (void)vfs;
    if (process == NULL)
        return system_vfs()->xAccess(system_vfs(), path, flags, out);
    *out = process->io.stat(process->io.arg, path, &found) == 0 &&
           (flags != SQLITE_ACCESS_EXISTS || found.st_size > 0);
    return SQLITE_OK;
}

static int v_full_path(sqlite3_vfs *vfs, const char *path, int room, char *out)
{
    (void)vfs;
    if (sim_process_of(path) == NULL)
        return system_vfs()->xFullPathname(system_vfs(), path, room, out);
    snprintf(out, (size_t)room, "%s", path);
    return SQLITE_OK;
}

static int v_last_error(sqlite3_vfs *vfs, int bytes, char *out)
{
    (void)vfs;
    (void)bytes;
    (void)out;
    return errno;
}

void sim_vfs_register(void)
{
    static sqlite3_vfs vfs;
    if (vfs.zName != NULL)
        return;
    vfs = *system_vfs();
    vfs.zName = "simulated";
    vfs.pNext = NULL;
    vfs.szOsFile =
        (int)sizeof(struct sim_file) > vfs.szOsFile ? (int)sizeof(struct sim_file) : vfs.szOsFile;
    vfs.xOpen = v_open;
    vfs.xDelete = v_delete;
    vfs.xAccess = v_access;
    vfs.xFullPathname = v_full_path;
    vfs.xGetLastError = v_last_error;
    sqlite3_vfs_register(&vfs, 1);
}
