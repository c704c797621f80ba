/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of a state.
 *
 * The state of a long session is large, and callers read little of it. So a state is a SQLite
 * database whose file is implemented here: written pages are in memory, and all others are read
 * from a source (a snapshot) when SQLite needs them.
 *
 * (1) The file consists of pages of 4 KiB, counted from 1. The content of a page is what was
 *     written to it last; if it was never written, the page of the source; if the source has no
 *     such page, zeros. Written pages are in memory or, if they take too much memory, in a file
 *     (spill.c).
 * (2) If the file was truncated before a page of the source, that page of the source is not used
 *     any more, even if the file grows again.
 * (3) A page is read from the source each time it is needed; the source must return the same
 *     content each time.
 * (4) There are no other files: SQLite's journal is in memory, so that handlers can be rolled back;
 *     locks do nothing, because one thread at a time has the only connection; there are no
 *     temporary files. SQLite may write changed pages before a transaction ends; if the transaction
 *     is rolled back, it writes them again.
 * (5) If a page cannot be read from the source, the call that needed it fails with the source's
 *     message. The next call that needs it reads it again.
 * (6) The VFS has a name of its own and is known to SQLite only while the connection opens, so an
 *     ATTACH cannot find it.
 * (7) Between two transactions a connection can be given another source with the same tables, so
 *     that compiled statements are reused. SQLite's cache is emptied then, because page 1 of both
 *     sources may tell SQLite that nothing has changed.
 * (8) Page 1 of the source is read once and stays in memory. It contains the cookie by which SQLite
 *     notices a change of the schema. So SQLite reads the schema only once, and uses the schema
 *     that was compared (state.c), even if another program changes the file of the source.
 */
#include "index/state/state_vfs.h"

#include "index/db/db.h"
#include "index/state/spill.h"
#include "index/sys/state.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <stdio.h>
#include <string.h>

#define PAGE_BYTES ((size_t)ANNAL_STATE_PAGE_BYTES)

/* Size of SQLite's cache in KiB: large enough that pages which change repeatedly stay in it, and
 * the largest table of a session of 150,000 events. */
#define CACHE_KIB "8192"

struct state_pages {
    sqlite3_vfs vfs; /* the VFS; its member pAppData points to this struct */
    sqlite3_vfs *usual;
    char name[40];
    annal__state_source source;
    /* copy of page 1 of the source, the database under this state (rule 8) */
    char first[PAGE_BYTES];
    /* number of pages of the source, from the first, that were never truncated (rule 2) */
    uint64_t shared;
    uint64_t count; /* number of pages of the file */
    /* own[i] is the content of page i + 1 if it was written and is in memory; else NULL */
    char **own;
    bool *spilled; /* spilled[i]: whether page i + 1 was written and is in the file spill */
    size_t own_cap;
    struct spill spill;
    size_t own_count;   /* number of pages in memory: entries of own that are not NULL */
    annal_error failed; /* why a page could not be read or written; status 0: none failed */
    char part[PAGE_BYTES];
};

struct pages_file {
    sqlite3_file base;
    struct state_pages *pages;
};

static struct state_pages *pages_of(sqlite3_file *file)
{
    return ((struct pages_file *)file)->pages;
}

/* ---- Pages ---- */

static bool is_spilled(const struct state_pages *pages, uint64_t page)
{
    return page <= pages->own_cap && pages->spilled[page - 1];
}

static const char *own_page(const struct state_pages *pages, uint64_t page)
{
    return page <= pages->own_cap ? pages->own[page - 1] : NULL;
}

annal_status annal__state_vfs_read(struct state_pages *pages, uint64_t page, void *out,
                                   annal_error *err)
{
    const char *own = own_page(pages, page);
    if (own != NULL)
        memcpy(out, own, PAGE_BYTES);
    else if (is_spilled(pages, page))
        return annal__spill_get(&pages->spill, page, out, err);
    else if (page == 1 && pages->shared > 0)
        memcpy(out, pages->first, PAGE_BYTES);
    else if (page <= pages->shared)
        return pages->source.read(pages->source.arg, page, out, err);
    else
        memset(out, 0, PAGE_BYTES);
    return ANNAL_OK;
}

uint64_t annal__state_vfs_count(const struct state_pages *pages)
{
    return pages->count;
}

bool annal__state_vfs_changed(const struct state_pages *pages, uint64_t page)
{
    return page > pages->shared || own_page(pages, page) != NULL || is_spilled(pages, page);
}

size_t annal__state_vfs_own_bytes(const struct state_pages *pages)
{
    return pages->own_count * PAGE_BYTES +
           pages->own_cap * (sizeof *pages->own + sizeof *pages->spilled);
}

static annal_status make_room(struct state_pages *pages, uint64_t page)
{
    if (page <= pages->own_cap)
        return ANNAL_OK;
    size_t cap = pages->own_cap == 0 ? 64 : 2 * pages->own_cap;
    if (cap < page)
        cap = (size_t)page;
    char **grown = annal__realloc_array(pages->own, cap, sizeof *grown);
    if (grown == NULL)
        return ANNAL_ERR_NOMEM;
    memset(grown + pages->own_cap, 0, (cap - pages->own_cap) * sizeof *grown);
    pages->own = grown;
    bool *spilled = annal__realloc_array(pages->spilled, cap, sizeof *spilled);
    if (spilled == NULL)
        return ANNAL_ERR_NOMEM;
    memset(spilled + pages->own_cap, 0, (cap - pages->own_cap) * sizeof *spilled);
    pages->spilled = spilled;
    pages->own_cap = cap;
    return ANNAL_OK;
}

/*
 * Return the memory of a page that is about to be written, or NULL if memory ran out. *out_new:
 * whether it was just allocated, so that its content is undefined.
 */
static char *block_of(struct state_pages *pages, uint64_t page, bool *out_new)
{
    if (make_room(pages, page) < 0)
        return NULL;
    char **own = &pages->own[page - 1];
    *out_new = *own == NULL;
    if (*out_new) {
        *own = annal__alloc_aligned(sizeof(void *), PAGE_BYTES);
        pages->own_count += *own != NULL;
    }
    return *own;
}

static void drop_from(struct state_pages *pages, uint64_t count)
{
    for (size_t i = (size_t)count; i < pages->own_cap; i++) {
        pages->own_count -= pages->own[i] != NULL;
        annal__free(pages->own[i]);
        pages->own[i] = NULL;
        pages->spilled[i] = false;
    }
}

void annal__state_vfs_spill(struct state_pages *pages, const char *directory)
{
    annal__spill_open(&pages->spill, directory);
    for (size_t i = 1;
         /* page 1 stays in memory, for annal__state_vfs_rebase() */ i < pages->own_cap; i++) {
        if (pages->own[i] == NULL)
            continue;
        if (!annal__spill_put(&pages->spill, i + 1, pages->own[i]))
            return; /* the temporary file is full: all further pages stay in memory */
        pages->spilled[i] = true;
        pages->own_count--;
        annal__free(pages->own[i]);
        pages->own[i] = NULL;
    }
}

static void close_source(struct state_pages *pages)
{
    if (pages->source.close != NULL)
        pages->source.close(pages->source.arg);
    pages->source = (annal__state_source){0};
}

void annal__state_vfs_rebase(struct state_pages *pages, const annal__state_source *source)
{
    if (own_page(pages, 1) != NULL)
        memcpy(pages->first, own_page(pages, 1), PAGE_BYTES);
    drop_from(pages, 0);
    close_source(pages);
    pages->source = *source;
    pages->shared = source->page_count;
}

annal_status annal__state_vfs_own(struct state_pages *pages, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (uint64_t page = 1; status >= 0 && page <= pages->shared; page++) {
        bool is_new = false;
        char *block = block_of(pages, page, &is_new);
        if (block == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "read page %llu of a state: out of memory",
                                 (unsigned long long)page);
        else if (is_new)
            status = pages->source.read(pages->source.arg, page, block, err);
    }
    if (status < 0)
        return status;
    close_source(pages);
    pages->shared = 0;
    return ANNAL_OK;
}

/* ---- Failing, rule (5) ---- */

static int fail_page(struct state_pages *pages, annal_status status)
{
    pages->failed.status = status;
    return status == ANNAL_ERR_NOMEM ? SQLITE_IOERR_NOMEM : SQLITE_IOERR_READ;
}

bool annal__state_vfs_failed(const struct state_pages *pages)
{
    return pages->failed.status < 0;
}

annal_status annal__state_vfs_why(struct state_pages *pages, annal_status status, annal_error *err)
{
    annal_error failed = pages->failed;
    pages->failed = (annal_error){0};
    if (status >= 0 || failed.status >= 0)
        return status;
    if (err != NULL)
        *err = failed;
    return failed.status;
}

/* ---- The file, called by SQLite ---- */

static int file_close(sqlite3_file *file)
{
    (void)file;
    return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *out, int amount, sqlite3_int64 offset)
{
    struct state_pages *pages = pages_of(file);
    char *to = out;
    size_t left = (size_t)amount;
    uint64_t at = (uint64_t)offset, end = pages->count * PAGE_BYTES;
    while (left > 0 && at < end) {
        size_t skip = at % PAGE_BYTES, some = PAGE_BYTES - skip < left ? PAGE_BYTES - skip : left;
        bool whole = some == PAGE_BYTES;
        annal_status status = annal__state_vfs_read(pages, at / PAGE_BYTES + 1,
                                                    whole ? to : pages->part, &pages->failed);
        if (status < 0)
            return fail_page(pages, status);
        if (!whole)
            memcpy(to, pages->part + skip, some);
        to += some;
        at += some;
        left -= some;
    }
    memset(to, 0, left);
    return left == 0 ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *bytes, int amount, sqlite3_int64 offset)
{
    struct state_pages *pages = pages_of(file);
    const char *from = bytes;
    size_t left = (size_t)amount;
    for (uint64_t at = (uint64_t)offset; left > 0;) {
        uint64_t page = at / PAGE_BYTES + 1;
        size_t skip = at % PAGE_BYTES, some = PAGE_BYTES - skip < left ? PAGE_BYTES - skip : left;
        if (some < PAGE_BYTES) { /* a part of a page, which SQLite never writes with our settings */
            annal_status status = annal__state_vfs_read(pages, page, pages->part, &pages->failed);
            if (status < 0)
                return fail_page(pages, status);
        }
        bool is_new = false;
        char *block = block_of(pages, page, &is_new);
        if (block == NULL) {
            annal__fail(&pages->failed, ANNAL_ERR_NOMEM,
                        "write page %llu of a state: out of memory", (unsigned long long)page);
            return fail_page(pages, ANNAL_ERR_NOMEM);
        }
        if (is_new && some < PAGE_BYTES)
            memcpy(block, pages->part, PAGE_BYTES);
        memcpy(block + skip, from, some);
        if (page > pages->count)
            pages->count = page;
        from += some;
        at += some;
        left -= some;
    }
    return SQLITE_OK;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct state_pages *pages = pages_of(file);
    uint64_t count = ((uint64_t)size + PAGE_BYTES - 1) / PAGE_BYTES;
    drop_from(pages, count);
    pages->count = count;
    if (pages->shared > count)
        pages->shared = count;
    return SQLITE_OK;
}

static int file_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *out_size)
{
    *out_size = (sqlite3_int64)(pages_of(file)->count * PAGE_BYTES);
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *file, int *out_reserved)
{
    (void)file;
    *out_reserved = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int what, void *arg)
{
    (void)file;
    (void)what;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int file_sector_size(sqlite3_file *file)
{
    (void)file;
    return (int)PAGE_BYTES;
}

static int file_characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_ATOMIC | SQLITE_IOCAP_SAFE_APPEND | SQLITE_IOCAP_SEQUENTIAL |
           SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_lock,
    .xCheckReservedLock = file_is_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
};

/* ---- The VFS ---- */

/* Open the database file; any other file is refused, because SQLite needs none (rule 4). */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *out_flags)
{
    (void)name;
    struct pages_file *opened = (struct pages_file *)file;
    *opened = (struct pages_file){.pages = vfs->pAppData};
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0)
        return SQLITE_CANTOPEN;
    opened->base.pMethods = &file_methods;
    if (out_flags != NULL)
        *out_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    (void)vfs;
    (void)name;
    (void)sync_dir;
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out_yes)
{
    (void)vfs;
    (void)name;
    (void)flags;
    *out_yes = 0;
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int room, char *out)
{
    (void)vfs;
    snprintf(out, (size_t)room, "%s", name);
    return SQLITE_OK;
}

/* Use the clock and random numbers of the default VFS. */
static int vfs_randomness(sqlite3_vfs *vfs, int count, char *out)
{
    struct state_pages *pages = vfs->pAppData;
    return pages->usual->xRandomness(pages->usual, count, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int time_us)
{
    struct state_pages *pages = vfs->pAppData;
    return pages->usual->xSleep(pages->usual, time_us);
}

static int vfs_time(sqlite3_vfs *vfs, double *out)
{
    struct state_pages *pages = vfs->pAppData;
    return pages->usual->xCurrentTime(pages->usual, out);
}

static int vfs_last_error(sqlite3_vfs *vfs, int room, char *out)
{
    (void)vfs;
    (void)room;
    (void)out;
    return 0;
}

static void vfs_init(struct state_pages *pages)
{
    pages->usual = sqlite3_vfs_find(NULL);
    snprintf(pages->name, sizeof pages->name, "annal-state-%p", (void *)pages);
    pages->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = (int)sizeof(struct pages_file),
        .mxPathname = 64,
        .zName = pages->name,
        .pAppData = pages,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
        .xGetLastError = vfs_last_error,
    };
}

/* ---- Opening ---- */

/*
 * Check that page 1 begins a database with our page size and without a write-ahead log, which would
 * need files.
 */
static annal_status check_header(struct state_pages *pages, annal_error *err)
{
    static const char header[] = "SQLite format 3\0\x10\0\1\1";
    if (pages->count == 0)
        return ANNAL_OK;
    annal_status status = pages->source.read(pages->source.arg, 1, pages->first, err);
    if (status >= 0 && memcmp(pages->first, header, sizeof header - 1) != 0)
        status = annal__fail(
            err, ANNAL_ERR_CORRUPT,
            "page 1 of the state of a session is not the first page of an SQLite database");
    return status;
}

static annal_status open_db(struct state_pages *pages, sqlite3 **out_db, annal_error *err)
{
    sqlite3 *db = NULL;
    /* the VFS is registered only while the connection is opened: rule (6) */
    int rc = sqlite3_vfs_register(&pages->vfs, 0);
    if (rc != SQLITE_OK)
        return annal__db_fail(err, NULL, rc,
                              "cannot open the state of a session as an SQLite database");
    annal_status status = annal__db_open_on(pages->name, "state",
                                            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, err);
    sqlite3_vfs_unregister(&pages->vfs);
    if (status >= 0)
        status = annal__db_exec(db,
                                "PRAGMA page_size = 4096; PRAGMA temp_store = MEMORY; "
                                "PRAGMA synchronous = OFF; "
                                "PRAGMA cache_size = -" CACHE_KIB "; PRAGMA journal_mode = MEMORY",
                                err);
    status = annal__state_vfs_why(pages, status, err);
    if (status < 0) {
        annal__db_close(db);
        return status;
    }
    *out_db = db;
    return ANNAL_OK;
}

annal_status annal__state_vfs_fill(struct state_pages *pages, const annal__state_source *source,
                                   annal_error *err)
{
    pages->source = *source;
    pages->shared = pages->count = source->page_count;
    return check_header(pages, err);
}

bool annal__state_vfs_empty(struct state_pages *pages, sqlite3 *db)
{
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_RESET_CACHE, NULL) != SQLITE_OK)
        return false;
    drop_from(pages, 0);
    annal__spill_close(&pages->spill);
    close_source(pages);
    pages->shared = pages->count = 0;
    return true;
}

annal_status annal__state_vfs_open(const annal__state_source *source,
                                   struct state_pages **out_pages, sqlite3 **out_db,
                                   annal_error *err)
{
    struct state_pages *pages = annal__zalloc(sizeof *pages);
    if (pages == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open the pages of a state: out of memory");
    vfs_init(pages);
    annal_status status = source == NULL ? ANNAL_OK : annal__state_vfs_fill(pages, source, err);
    if (status >= 0)
        status = open_db(pages, out_db, err);
    if (status < 0) {
        annal__state_vfs_disown(pages);
        annal__state_vfs_free(pages);
        return status;
    }
    *out_pages = pages;
    return ANNAL_OK;
}

void annal__state_vfs_disown(struct state_pages *pages)
{
    pages->source.close = NULL;
}

void annal__state_vfs_free(struct state_pages *pages)
{
    if (pages == NULL)
        return;
    drop_from(pages, 0);
    annal__free(pages->own);
    annal__free(pages->spilled);
    annal__spill_close(&pages->spill);
    close_source(pages);
    annal__free(pages);
}
