/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/sim_disk.h"

#include "tests/support/sim_inode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_FD   1000000 /* no descriptor of the system's */
#define DEVICE     77
#define TICK_US    20
#define START_US   INT64_C(1767225600000000) /* 2026-01-01 */
#define EXT4_MAGIC 0xEF53

/* An open file description. */
struct sim_handle {
    struct sim_process *process; /* NULL: free */
    struct sim_inode *inode;
    int flags;
    int lock; /* LOCK_SH, LOCK_EX, or 0 */
    uint64_t opened;
};

struct sim_map {
    struct sim_process *process;
    void *at;
    size_t len;
};

/* All processes of all disks, so that a path says whose it is. */
static struct {
    struct sim_process **list;
    size_t count, room;
    unsigned last;
    uint64_t opened;
    struct sim_map *maps;
    size_t map_count, map_room;
} all;

/* ---- Making and freeing ---- */

static int64_t look_at_clock(void *arg)
{
    struct sim_disk *disk = arg;
    return disk->now_us += disk->tick_us;
}

struct sim_disk *sim_disk_empty(const struct sim_disk *like)
{
    struct sim_disk *disk = sim_alloc(1, sizeof *disk);
    disk->clock = (struct clock){look_at_clock, look_at_clock, disk};
    disk->tick_us = TICK_US;
    disk->now_us = like == NULL ? START_US : like->now_us;
    disk->free_bytes = like == NULL ? UINT64_C(1) << 40 : like->free_bytes;
    disk->last_inode = like == NULL ? 0 : like->last_inode;
    if (like != NULL)
        memcpy(disk->boot, like->boot, sizeof disk->boot);
    else
        disk->boot[0] = 1;
    return disk;
}

struct sim_disk *sim_disk_new(void)
{
    struct sim_disk *disk = sim_disk_empty(NULL);
    sim_inode_add(disk, SIM_ROOT_INODE, true, 0700);
    return disk;
}

static void inode_free(struct sim_inode *inode)
{
    sim_inode_forget_changes(inode);
    sim_image_drop(inode->cache);
    sim_image_drop(inode->durable);
    if (inode->map != NULL)
        munmap(inode->map, inode->map_len);
    if (inode->map_fd >= 0)
        close(inode->map_fd);
    free(inode->changes);
    free(inode->names.list);
    free(inode->durable_names.list);
    free(inode);
}

static void process_free(struct sim_process *process)
{
    size_t i = 0;
    while (all.list[i] != process)
        i++;
    all.list[i] = all.list[--all.count];
    for (i = 0; i < all.map_count; i++) {
        if (all.maps[i].process == process) {
            munmap(all.maps[i].at, all.maps[i].len);
            all.maps[i--] = all.maps[--all.map_count];
        }
    }
    free(process);
    if (all.count == 0) {
        free(all.list);
        free(all.maps);
        all.list = NULL;
        all.maps = NULL;
        all.room = all.map_count = all.map_room = 0;
    }
}

void sim_disk_free(struct sim_disk *disk)
{
    if (disk == NULL)
        return;
    while (disk->processes != NULL) {
        struct sim_process *process = disk->processes;
        disk->processes = process->next;
        process_free(process);
    }
    for (size_t i = 0; i < disk->inode_count; i++)
        inode_free(disk->inodes[i]);
    free(disk->inodes);
    free(disk->handles);
    free(disk->names);
    free(disk);
}

const char *sim_op_name(enum sim_op_kind kind)
{
    static const char *const names[] = {"create", "write",  "sync",   "sync of a directory",
                                        "resize", "rename", "unlink", "mkdir"};
    return names[kind];
}

/* ---- Paths ---- */

static int fail(int with)
{
    errno = with;
    return -1;
}

/* Where a path leads: the directory, and the last name in it. */
struct place {
    struct sim_inode *dir;
    const char *name; /* "" : the root itself */
};

static bool find_place(const struct sim_process *process, const char *path, struct place *out)
{
    size_t root = strlen(process->root);
    *out = (struct place){sim_inode_get(process->disk, SIM_ROOT_INODE), ""};
    if (strncmp(path, process->root, root) != 0 || (path[root] != '/' && path[root] != '\0')) {
        fprintf(stderr, "%s is no path of process %s\n", path, process->root);
        abort();
    }
    for (path += root; *path == '/'; path++) {
        const char *slash = strchr(path + 1, '/');
        if (slash == NULL || slash[1] == '\0') {
            out->name = path + 1;
            return out->dir->is_dir;
        }
        char name[SIM_NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)(slash - path - 1), path + 1);
        out->dir = sim_inode_get(process->disk, sim_entries_find(&out->dir->names, name));
        if (out->dir == NULL || !out->dir->is_dir)
            return false;
        path = slash - 1;
    }
    return true;
}

static struct sim_inode *find(const struct sim_process *process, const char *path)
{
    struct place place;
    if (!find_place(process, path, &place))
        return NULL;
    if (place.name[0] == '\0')
        return place.dir;
    char name[SIM_NAME_BYTES];
    snprintf(name, sizeof name, "%s", place.name);
    name[strcspn(name, "/")] = '\0';
    return sim_inode_get(process->disk, sim_entries_find(&place.dir->names, name));
}

struct sim_process *sim_process_of(const char *path)
{
    for (size_t i = 0; i < all.count; i++) {
        size_t root = strlen(all.list[i]->root);
        if (strncmp(path, all.list[i]->root, root) == 0 && path[root] == '/')
            return all.list[i];
    }
    return NULL;
}

/* ---- Operations that change something ---- */

/* Call the hook, which returns the errno of the operation. */
static int operate(struct sim_process *process, struct sim_op op)
{
    struct sim_disk *disk = process->disk;
    if (process->dead)
        return EIO;
    op.number = ++disk->ops;
    int failed = disk->hook == NULL ? 0 : disk->hook(disk->hook_arg, disk, &op);
    return process->dead ? EIO : failed;
}

static void note_names(struct sim_disk *disk, const struct sim_name_change *change)
{
    disk->names = sim_grow(disk->names, disk->name_count, &disk->name_room, sizeof *disk->names);
    disk->names[disk->name_count++] = *change;
}

static struct sim_name_change name_change(enum sim_op_kind kind, uint64_t inode,
                                          const struct place *at)
{
    struct sim_name_change change = {.kind = kind, .inode = inode, .dir = at->dir->number};
    snprintf(change.name, sizeof change.name, "%s", at->name);
    return change;
}

/* ---- Descriptors ---- */

static struct sim_handle *handle_of(const struct sim_process *process, int fd)
{
    const struct sim_disk *disk = process->disk;
    size_t i = (size_t)(fd - FIRST_FD);
    if (fd < FIRST_FD || i >= disk->handle_count || disk->handles[i].process != process)
        return NULL;
    return &disk->handles[i];
}

static int add_handle(struct sim_process *process, struct sim_inode *inode, int flags)
{
    struct sim_disk *disk = process->disk;
    size_t i = 0;
    while (i < disk->handle_count && disk->handles[i].process != NULL)
        i++;
    if (i == disk->handle_count) {
        disk->handles = realloc(disk->handles, ++disk->handle_count * sizeof *disk->handles);
        if (disk->handles == NULL)
            abort();
    }
    disk->handles[i] = (struct sim_handle){process, inode, flags, 0, ++all.opened};
    return FIRST_FD + (int)i;
}

static int d_open(void *arg, const char *path, int flags, mode_t mode)
{
    struct sim_process *process = arg;
    struct place place;
    if (process->dead)
        return fail(EIO);
    struct sim_inode *inode = find(process, path);
    if (inode != NULL && (flags & O_EXCL) != 0)
        return fail(EEXIST);
    if (inode != NULL && inode->is_dir && (flags & O_ACCMODE) != O_RDONLY)
        return fail(EISDIR);
    if (inode != NULL && !inode->is_dir && (flags & O_DIRECTORY) != 0)
        return fail(ENOTDIR);
    if (inode == NULL && ((flags & O_CREAT) == 0 || !find_place(process, path, &place)))
        return fail(ENOENT);
    if (inode == NULL) {
        int failed = operate(process, (struct sim_op){.kind = SIM_CREATE, .name = place.name});
        if (failed != 0)
            return fail(failed);
        inode = sim_inode_add(process->disk, process->disk->last_inode + 1, false, mode);
        sim_entries_set(&place.dir->names, place.name, inode->number);
        struct sim_name_change change = name_change(SIM_CREATE, inode->number, &place);
        note_names(process->disk, &change);
    }
    return add_handle(process, inode, flags);
}

static int d_close(void *arg, int fd)
{
    struct sim_handle *handle = handle_of(arg, fd);
    if (handle == NULL)
        return fail(EBADF);
    *handle = (struct sim_handle){0};
    return 0;
}

static struct sim_inode *file_of(const struct sim_process *process, int fd)
{
    struct sim_handle *handle = handle_of(process, fd);
    errno = process->dead ? EIO : EBADF;
    return handle == NULL || process->dead ? NULL : handle->inode;
}

/* ---- Bytes ---- */

static ssize_t d_pread(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    const struct sim_inode *inode = file_of(arg, fd);
    if (inode == NULL)
        return -1;
    if (inode->is_dir)
        return fail(EISDIR);
    uint64_t size = inode->cache->size;
    if (offset >= size)
        return 0;
    if (len > size - offset)
        len = (size_t)(size - offset);
    char *to = bytes;
    for (size_t done = 0; done < len;) {
        uint64_t at = offset + done;
        size_t in = (size_t)(at % SIM_SECTOR);
        if (inode->map == NULL && at / SIM_SECTOR >= inode->cache->room) {
            memset(to + done, 0, len - done);
            break;
        }
        size_t piece = SIM_SECTOR - in < len - done ? SIM_SECTOR - in : len - done;
        const struct sim_sector *sector = sim_image_sector(inode->cache, at / SIM_SECTOR);
        if (inode->map != NULL && at + piece <= inode->map_len)
            memcpy(to + done, inode->map + at, piece);
        else if (sector == NULL)
            memset(to + done, 0, piece);
        else
            memcpy(to + done, sector->bytes + in, piece);
        done += piece;
    }
    return (ssize_t)len;
}

/* For the name of a file in an operation: any name that it has. */
static const char *name_of(const struct sim_disk *disk, const struct sim_inode *inode)
{
    for (size_t i = 0; i < disk->inode_count; i++) {
        const struct sim_entries *names = &disk->inodes[i]->names;
        for (size_t j = 0; j < names->count; j++) {
            if (names->list[j].inode == inode->number)
                return names->list[j].name;
        }
    }
    return "(no name)";
}

static int operate_on(struct sim_process *process, enum sim_op_kind kind,
                      const struct sim_inode *inode, const void *bytes, size_t len, uint64_t offset)
{
    return operate(process, (struct sim_op){.kind = kind,
                                            .name = name_of(process->disk, inode),
                                            .inode = inode->number,
                                            .bytes = bytes,
                                            .len = len,
                                            .offset = offset});
}

static ssize_t d_pwrite(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    struct sim_process *process = arg;
    struct sim_inode *inode = file_of(process, fd);
    if (inode == NULL || len == 0)
        return inode == NULL ? -1 : 0;
    if ((handle_of(process, fd)->flags & O_ACCMODE) == O_RDONLY)
        return fail(EBADF);
    int failed = operate_on(process, SIM_WRITE, inode, bytes, len, offset);
    if (failed != 0)
        return fail(failed);
    sim_inode_write(inode, bytes, len, offset);
    sim_inode_touch(inode, process->disk->now_us);
    return (ssize_t)len;
}

static int d_ftruncate(void *arg, int fd, uint64_t len)
{
    struct sim_process *process = arg;
    struct sim_inode *inode = file_of(process, fd);
    if (inode == NULL)
        return -1;
    int failed = operate_on(process, SIM_RESIZE, inode, NULL, 0, len);
    if (failed != 0)
        return fail(failed);
    if (inode->map != NULL && len < inode->map_len)
        memset(inode->map + len, 0, inode->map_len - (size_t)len);
    sim_inode_resize(inode, len);
    sim_inode_touch(inode, process->disk->now_us);
    return 0;
}

static int d_futimens(void *arg, int fd, const struct timespec times[2])
{
    struct sim_process *process = arg;
    struct sim_inode *inode = file_of(process, fd);
    if (inode == NULL)
        return -1;
    inode->changed_us = process->disk->now_us;
    inode->written = times[1];
    return 0;
}

/* ---- Syncs ---- */

/* Writing back failed: the dirty pages are called clean, whatever of them is on the disk. */
static void drop_dirty_pages(struct sim_inode *inode, bool reached_disk)
{
    size_t kept = 0;
    for (size_t i = 0; i < inode->change_count; i++) {
        if (inode->changes[i].resize)
            inode->changes[kept++] = inode->changes[i];
        else if (reached_disk && inode->changes[i].sector * SIM_SECTOR < inode->durable->size)
            sim_image_put(&inode->durable, inode->changes[i].sector, inode->changes[i].bytes);
        else
            sim_sector_drop(inode->changes[i].bytes);
    }
    inode->change_count = kept;
}

static void make_names_durable(struct sim_disk *disk, const struct sim_inode *dir)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk->name_count; i++) {
        struct sim_name_change change = disk->names[i];
        bool now = (change.kind == SIM_RENAME ? change.to_dir : change.dir) == dir->number;
        if (now)
            sim_names_apply(disk, &change);
        /* The earlier name of the file does not reappear. */
        for (size_t j = 0; now && j < kept; j++) {
            if (disk->names[j].inode == change.inode) {
                memmove(&disk->names[j], &disk->names[j + 1], (kept - j - 1) * sizeof *disk->names);
                j--;
                kept--;
            }
        }
        if (!now)
            disk->names[kept++] = change;
    }
    disk->name_count = kept;
}

static int d_fsync(void *arg, int fd)
{
    struct sim_process *process = arg;
    struct sim_inode *inode = file_of(process, fd);
    if (inode == NULL)
        return -1;
    enum sim_op_kind kind = inode->is_dir ? SIM_SYNC_DIR : SIM_SYNC;
    int failed = operate_on(process, kind, inode, NULL, 0, 0);
    if (failed != 0) {
        if (!process->dead && !inode->is_dir)
            drop_dirty_pages(inode, process->disk->failed_syncs_write);
        return fail(failed);
    }
    if (inode->is_dir) {
        make_names_durable(process->disk, inode);
        return 0;
    }
    sim_inode_fold_map(inode);
    /* After a sync that failed the cache has more than what is written now. */
    for (size_t i = 0; i < inode->change_count; i++) {
        struct sim_change *change = &inode->changes[i];
        if (change->resize)
            sim_image_resize(&inode->durable, change->size);
        else
            sim_image_put(&inode->durable, change->sector, sim_sector_ref(change->bytes));
    }
    sim_inode_forget_changes(inode);
    return 0;
}

static void d_will_need(void *arg, int fd, uint64_t offset, size_t len)
{
    (void)arg;
    (void)fd;
    (void)offset;
    (void)len;
}

/* Whether what is dirty has reached the disk is open at every power cut anyway. */
static int d_write_back(void *arg, int fd, uint64_t offset, size_t len)
{
    (void)offset;
    (void)len;
    return file_of(arg, fd) == NULL ? -1 : 0;
}

static int d_drop_cache(void *arg, int fd)
{
    struct sim_inode *inode = file_of(arg, fd);
    if (inode == NULL)
        return -1;
    if (inode->map != NULL)
        return 0; /* mapped pages stay */
    sim_image_drop(inode->cache);
    inode->cache = sim_image_ref(inode->durable);
    for (size_t i = 0; i < inode->change_count; i++) { /* dirty pages stay */
        const struct sim_change *change = &inode->changes[i];
        if (change->resize)
            sim_image_resize(&inode->cache, change->size);
        else
            sim_image_put(&inode->cache, change->sector, sim_sector_ref(change->bytes));
    }
    return 0;
}

/* ---- Names ---- */

static int d_rename(void *arg, const char *from, const char *to)
{
    struct sim_process *process = arg;
    struct place source, target;
    struct sim_inode *inode = find(process, from);
    struct sim_inode *there = find(process, to);
    if (process->dead)
        return fail(EIO);
    if (inode == NULL || !find_place(process, from, &source) || !find_place(process, to, &target))
        return fail(ENOENT);
    if (there != NULL && there->is_dir)
        return fail(EISDIR);
    int failed = operate_on(process, SIM_RENAME, inode, NULL, 0, 0);
    if (failed != 0)
        return fail(failed);
    struct sim_name_change change = name_change(SIM_RENAME, inode->number, &source);
    change.to_dir = target.dir->number;
    snprintf(change.to_name, sizeof change.to_name, "%s", target.name);
    note_names(process->disk, &change);
    sim_entries_remove(&source.dir->names, source.name);
    sim_entries_set(&target.dir->names, target.name, inode->number);
    return 0;
}

static int d_unlink(void *arg, const char *path)
{
    struct sim_process *process = arg;
    struct place place;
    struct sim_inode *inode = find(process, path);
    if (process->dead)
        return fail(EIO);
    if (inode == NULL || !find_place(process, path, &place))
        return fail(ENOENT);
    if (inode->is_dir)
        return fail(EISDIR);
    int failed = operate_on(process, SIM_UNLINK, inode, NULL, 0, 0);
    if (failed != 0)
        return fail(failed);
    struct sim_name_change change = name_change(SIM_UNLINK, inode->number, &place);
    note_names(process->disk, &change);
    sim_entries_remove(&place.dir->names, place.name);
    return 0;
}

static int d_mkdir(void *arg, const char *path, mode_t mode)
{
    struct sim_process *process = arg;
    struct place place;
    if (process->dead)
        return fail(EIO);
    if (find(process, path) != NULL)
        return fail(EEXIST);
    if (!find_place(process, path, &place))
        return fail(ENOENT);
    char name[SIM_NAME_BYTES];
    snprintf(name, sizeof name, "%s", place.name);
    name[strcspn(name, "/")] = '\0';
    place.name = name;
    int failed = operate(process, (struct sim_op){.kind = SIM_MKDIR, .name = name});
    if (failed != 0)
        return fail(failed);
    struct sim_inode *dir = sim_inode_add(process->disk, process->disk->last_inode + 1, true, mode);
    sim_entries_set(&place.dir->names, name, dir->number);
    struct sim_name_change change = name_change(SIM_MKDIR, dir->number, &place);
    note_names(process->disk, &change);
    return 0;
}

static int d_list(void *arg, const char *path, io_list_fn fn, void *fn_arg)
{
    const struct sim_process *process = arg;
    const struct sim_inode *dir = process->dead ? NULL : find(process, path);
    if (dir == NULL || !dir->is_dir)
        return fail(process->dead ? EIO : dir == NULL ? ENOENT : ENOTDIR);
    struct sim_entries names = {0}; /* fn may change them */
    int result = 0;
    sim_entries_copy(&names, &dir->names);
    for (size_t i = 0; result == 0 && i < names.count; i++)
        result = fn(fn_arg, names.list[i].name);
    free(names.list);
    return result;
}

/* ---- Looking ---- */

static int look(const struct sim_inode *inode, struct stat *out)
{
    *out = (struct stat){.st_dev = DEVICE,
                         .st_ino = inode->number,
                         .st_mode = inode->mode | (inode->is_dir ? S_IFDIR : S_IFREG),
                         .st_nlink = 1,
                         .st_blksize = 4096,
                         .st_size = (off_t)inode->cache->size,
                         .st_blocks = (blkcnt_t)(inode->cache->size + 511) / 512,
                         .st_mtim = inode->written,
                         .st_ctim = {.tv_sec = inode->changed_us / 1000000,
                                     .tv_nsec = inode->changed_us % 1000000 * 1000}};
    return 0;
}

static int d_fstat(void *arg, int fd, struct stat *out)
{
    const struct sim_inode *inode = file_of(arg, fd);
    return inode == NULL ? -1 : look(inode, out);
}

static int d_stat(void *arg, const char *path, struct stat *out)
{
    const struct sim_process *process = arg;
    const struct sim_inode *inode = process->dead ? NULL : find(process, path);
    if (inode == NULL)
        return fail(process->dead ? EIO : ENOENT);
    return look(inode, out);
}

static int d_measure(void *arg, const char *path, uid_t user, bool *out_regular,
                     uint64_t *out_bytes)
{
    (void)user;
    struct stat found;
    if (d_stat(arg, path, &found) < 0)
        return -1;
    *out_regular = S_ISREG(found.st_mode);
    *out_bytes = (uint64_t)found.st_size;
    return 0;
}

static int d_identify(void *arg, const char *path, dev_t *out_device, ino_t *out_inode)
{
    struct stat file;
    if (d_stat(arg, path, &file) < 0)
        return -1;
    *out_device = file.st_dev;
    *out_inode = file.st_ino;
    return 0;
}

static int d_space(void *arg, int fd, struct io_space *out)
{
    const struct sim_process *process = arg;
    if (file_of(process, fd) == NULL)
        return -1;
    *out = (struct io_space){process->disk->free_bytes, 4096, EXT4_MAGIC, 0};
    return 0;
}

/* ---- Locks and maps ---- */

static int d_flock(void *arg, int fd, int operation)
{
    const struct sim_process *process = arg;
    const struct sim_disk *disk = process->disk;
    struct sim_handle *ours = handle_of(process, fd);
    int wanted = operation & ~LOCK_NB;
    if (ours == NULL || process->dead)
        return fail(ours == NULL ? EBADF : EIO);
    for (size_t i = 0; wanted != LOCK_UN && i < disk->handle_count; i++) {
        const struct sim_handle *other = &disk->handles[i];
        if (other == ours || other->process == NULL || other->inode != ours->inode ||
            other->lock == 0 || (other->lock == LOCK_SH && wanted == LOCK_SH))
            continue;
        if ((operation & LOCK_NB) != 0)
            return fail(EWOULDBLOCK);
        fprintf(stderr, "%s waits for a lock for ever\n", process->root);
        abort();
    }
    ours->lock = wanted == LOCK_UN ? 0 : wanted;
    return 0;
}

static bool make_map(struct sim_inode *inode, size_t len)
{
    inode->map_fd = memfd_create("sim", MFD_CLOEXEC);
    if (inode->map_fd < 0 || ftruncate(inode->map_fd, (off_t)len) < 0)
        return false;
    inode->map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, inode->map_fd, 0);
    if (inode->map == MAP_FAILED)
        return false;
    inode->map_len = len;
    inode->was_mapped = true;
    for (size_t i = 0; i * SIM_SECTOR < len && i < inode->cache->room; i++) {
        if (inode->cache->sectors[i] != NULL)
            memcpy(inode->map + i * SIM_SECTOR, inode->cache->sectors[i]->bytes, SIM_SECTOR);
    }
    return true;
}

static void *d_map_shared(void *arg, int fd, size_t len)
{
    struct sim_process *process = arg;
    struct sim_inode *inode = file_of(process, fd);
    if (inode == NULL)
        return MAP_FAILED;
    if ((inode->map == NULL && !make_map(inode, len)) || inode->map_len != len) {
        fprintf(stderr, "simulated disk: all maps of a file have one length\n");
        abort();
    }
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, inode->map_fd, 0);
    if (at == MAP_FAILED)
        return at;
    all.maps = sim_grow(all.maps, all.map_count, &all.map_room, sizeof *all.maps);
    all.maps[all.map_count++] = (struct sim_map){process, at, len};
    return at;
}

static int d_unmap(void *arg, void *map, size_t len)
{
    (void)arg;
    for (size_t i = 0; i < all.map_count; i++) {
        if (all.maps[i].at == map) {
            all.maps[i] = all.maps[--all.map_count];
            return munmap(map, len);
        }
    }
    return fail(EINVAL);
}

/* ---- Processes ---- */

struct sim_process *sim_process_new(struct sim_disk *disk)
{
    struct sim_process *process = sim_alloc(1, sizeof *process);
    *process = (struct sim_process){
        .io = {.arg = process,
               .open = d_open,
               .close = d_close,
               .pread = d_pread,
               .pread_now = d_pread,
               .will_need = d_will_need,
               .pwrite = d_pwrite,
               .write_back = d_write_back,
               .fdatasync = d_fsync,
               .fsync = d_fsync,
               .ftruncate = d_ftruncate,
               .reserve = d_ftruncate,
               .fstat = d_fstat,
               .futimens = d_futimens,
               .stat = d_stat,
               .identify = d_identify,
               .measure = d_measure,
               .rename = d_rename,
               .unlink = d_unlink,
               .mkdir = d_mkdir,
               .list = d_list,
               .flock = d_flock,
               .space = d_space,
               .drop_cache = d_drop_cache,
               .map_shared = d_map_shared,
               .unmap = d_unmap},
        .disk = disk,
        .next = disk->processes,
    };
    snprintf(process->root, sizeof process->root, "/sim-%u", ++all.last);
    disk->processes = process;
    all.list = (struct sim_process **)sim_grow(all.list, all.count, &all.room, sizeof *all.list);
    all.list[all.count++] = process;
    return process;
}

void sim_process_kill(struct sim_process *process)
{
    process->dead = true;
    for (size_t i = 0; i < all.map_count; i++) {
        struct sim_map *map = &all.maps[i];
        if (map->process != process)
            continue;
        char *copy = sim_alloc(1, map->len);
        memcpy(copy, map->at, map->len);
        if (mmap(map->at, map->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0) == MAP_FAILED)
            abort();
        memcpy(map->at, copy, map->len);
        free(copy);
    }
}

static struct sim_handle *pick_handle(const struct sim_process *process, bool last)
{
    const struct sim_disk *disk = process->disk;
    struct sim_handle *picked = NULL;
    for (size_t i = 0; i < disk->handle_count; i++) {
        struct sim_handle *handle = &disk->handles[i];
        if (handle->process == process &&
            (picked == NULL || (handle->opened > picked->opened) == last))
            picked = handle;
    }
    return picked;
}

size_t sim_process_open_files(const struct sim_process *process)
{
    size_t count = 0;
    for (size_t i = 0; i < process->disk->handle_count; i++)
        count += process->disk->handles[i].process == process;
    return count;
}

void sim_process_close_first(struct sim_process *process)
{
    struct sim_handle *handle = pick_handle(process, false);
    if (handle != NULL)
        *handle = (struct sim_handle){0};
}

void sim_process_close_last(struct sim_process *process)
{
    struct sim_handle *handle = pick_handle(process, true);
    if (handle != NULL)
        *handle = (struct sim_handle){0};
}

void sim_process_close_all(struct sim_process *process)
{
    while (sim_process_open_files(process) > 0)
        sim_process_close_last(process);
}

void sim_disk_lose_writes(struct sim_process *process, const char *path)
{
    struct sim_inode *inode = find(process, path);
    if (inode == NULL)
        abort();
    drop_dirty_pages(inode, false);
}

void sim_disk_flip(struct sim_process *process, const char *path, uint64_t offset, uint8_t mask)
{
    struct sim_inode *inode = find(process, path);
    if (inode == NULL || offset >= inode->cache->size)
        abort();
    uint8_t bytes[SIM_SECTOR] = {0};
    const struct sim_sector *old = sim_image_sector(inode->cache, offset / SIM_SECTOR);
    if (old != NULL)
        memcpy(bytes, old->bytes, sizeof bytes);
    bytes[offset % SIM_SECTOR] ^= mask;
    sim_inode_write(inode, bytes + offset % SIM_SECTOR, 1, offset);
    struct sim_change *change = &inode->changes[inode->change_count - 1];
    sim_image_put(&inode->durable, change->sector, sim_sector_ref(change->bytes));
}
