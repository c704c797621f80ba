/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crash/failing_sqlite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAYS_MOST 3

enum call {
    OPEN,
    DELETE,
    ACCESS,
    READ,
    WRITE,
    TRUNCATE,
    SYNC,
    FILE_SIZE,
    LOCK,
    CHECK_RESERVED,
    SHM_MAP,
    SHM_LOCK,
    ALLOCATE
};

static const struct {
    const char *name;
    int ways[WAYS_MOST];
} table[] = {
    [OPEN] = {"xOpen", {SQLITE_CANTOPEN, SQLITE_IOERR, SQLITE_FULL}},
    [DELETE] = {"xDelete", {SQLITE_IOERR_DELETE}},
    [ACCESS] = {"xAccess", {SQLITE_IOERR_ACCESS}},
    [READ] = {"xRead", {SQLITE_IOERR_READ}},
    [WRITE] = {"xWrite", {SQLITE_IOERR_WRITE, SQLITE_FULL}},
    [TRUNCATE] = {"xTruncate", {SQLITE_IOERR_TRUNCATE}},
    [SYNC] = {"xSync", {SQLITE_IOERR_FSYNC, SQLITE_FULL}},
    [FILE_SIZE] = {"xFileSize", {SQLITE_IOERR_FSTAT}},
    [LOCK] = {"xLock", {SQLITE_IOERR_LOCK}},
    [CHECK_RESERVED] = {"xCheckReservedLock", {SQLITE_IOERR_CHECKRESERVEDLOCK}},
    [SHM_MAP] = {"xShmMap", {SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_SHMOPEN}},
    [SHM_LOCK] = {"xShmLock", {SQLITE_IOERR_SHMLOCK}},
    [ALLOCATE] = {"allocation", {SQLITE_NOMEM}},
};

static struct failing_sqlite *armed;

static int fails(enum call call)
{
    struct failing_sqlite *plan = armed;
    if (plan == NULL || plan->heap != (call == ALLOCATE))
        return SQLITE_OK;
    unsigned count = ++plan->calls;
    if (plan->fail_at == 0 || count < plan->fail_at || (count > plan->fail_at && !plan->for_good))
        return SQLITE_OK;
    unsigned ways = 0;
    while (ways < WAYS_MOST && table[call].ways[ways] != 0)
        ways++;
    int way = table[call].ways[plan->way % ways];
    if (count == plan->fail_at) {
        plan->ways = ways;
        snprintf(plan->failed, sizeof plan->failed, "%s %d", table[call].name, way);
    }
    return way;
}

void failing_sqlite_arm(struct failing_sqlite *plan)
{
    armed = plan;
}

int64_t failing_sqlite_bytes(void)
{
    return sqlite3_memory_used();
}

/* ---- Files: those of the system, with failures ---- */

struct file {
    sqlite3_file base;
    sqlite3_file *real; /* follows this struct in the same block */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct file *)(void *)file)->real;
}

static int f_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int f_read(sqlite3_file *file, void *out, int bytes, sqlite3_int64 offset)
{
    int failed = fails(READ);
    return failed ? failed : real_of(file)->pMethods->xRead(real_of(file), out, bytes, offset);
}

static int f_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 offset)
{
    int failed = fails(WRITE);
    return failed ? failed : real_of(file)->pMethods->xWrite(real_of(file), from, bytes, offset);
}

static int f_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
    int failed = fails(TRUNCATE);
    return failed ? failed : real_of(file)->pMethods->xTruncate(real_of(file), bytes);
}

static int f_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return fails(SYNC);
}

static int f_file_size(sqlite3_file *file, sqlite3_int64 *out)
{
    int failed = fails(FILE_SIZE);
    return failed ? failed : real_of(file)->pMethods->xFileSize(real_of(file), out);
}

static int f_lock(sqlite3_file *file, int level)
{
    int failed = fails(LOCK);
    return failed ? failed : real_of(file)->pMethods->xLock(real_of(file), level);
}

static int f_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int f_check_reserved(sqlite3_file *file, int *out)
{
    int failed = fails(CHECK_RESERVED);
    return failed ? failed : real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int f_control(sqlite3_file *file, int what, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), what, arg);
}

static int f_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int f_device(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int f_shm_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **out)
{
    int failed = fails(SHM_MAP);
    return failed ? failed
                  : real_of(file)->pMethods->xShmMap(real_of(file), page, bytes, extend, out);
}

static int f_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    int failed = (flags & SQLITE_SHM_LOCK) != 0 ? fails(SHM_LOCK) : SQLITE_OK;
    return failed ? failed : real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void f_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int f_shm_unmap(sqlite3_file *file, int delete)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), delete);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_file_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_check_reserved,
    .xFileControl = f_control,
    .xSectorSize = f_sector_size,
    .xDeviceCharacteristics = f_device,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

/* ---- The VFS ---- */

static sqlite3_vfs *real_vfs;

static int v_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *out, int flags, int *out_flags)
{
    (void)vfs;
    struct file *file = (struct file *)(void *)out;
    *file = (struct file){.real = (sqlite3_file *)(void *)(file + 1)};
    int rc = fails(OPEN);
    if (rc == SQLITE_OK)
        rc = real_vfs->xOpen(real_vfs, name, file->real, flags, out_flags);
    if (rc == SQLITE_OK)
        file->base.pMethods = &methods;
    return rc;
}

static int v_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    (void)sync;
    int failed = fails(DELETE);
    return failed ? failed : real_vfs->xDelete(real_vfs, name, 0);
}

static int v_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    (void)vfs;
    int failed = fails(ACCESS);
    return failed ? failed : real_vfs->xAccess(real_vfs, name, flags, out);
}

/* ---- The heap ---- */

static sqlite3_mem_methods real_heap;

static void *h_malloc(int bytes)
{
    return fails(ALLOCATE) ? NULL : real_heap.xMalloc(bytes);
}

static void *h_realloc(void *block, int bytes)
{
    return fails(ALLOCATE) ? NULL : real_heap.xRealloc(block, bytes);
}

void failing_sqlite_install(void)
{
    static sqlite3_vfs vfs;
    if (real_vfs != NULL)
        return;
    sqlite3_shutdown();
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_heap);
    sqlite3_mem_methods heap = real_heap;
    heap.xMalloc = h_malloc;
    heap.xRealloc = h_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &heap);
    sqlite3_initialize();
    real_vfs = sqlite3_vfs_find(NULL);
    vfs = *real_vfs;
    vfs.zName = "failing";
    vfs.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
    vfs.xOpen = v_open;
    vfs.xDelete = v_delete;
    vfs.xAccess = v_access;
    sqlite3_vfs_register(&vfs, 1);
}
