/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges many small files of a lake into a few large ones.
 *
 * (1) The small files of one day are merged, in the order of their names. The new file gets its
 *     final name first; then a manifest lists the files that it replaces (lake.c, rule 4). So one
 *     write changes the content of the lake: a reader of the manifests sees all rows exactly once,
 *     before and after it.
 * (2) Replaced files are kept for keep_us, because readers may have started with an older list. A
 *     later run removes them.
 * (3) If a shipper wrote a manifest in the meantime, the merged files are not affected: the
 *     manifest is written again with the next number. If another run has replaced one of the files
 *     first, the new file is removed.
 * (4) A missing file belongs to a day that was deleted: the other files are merged.
 */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "tools/cli/must.h"
#include "tools/export/parquet.h"
#include "tools/ship/walk.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* FILES_MAX: files in one merge; DAY_BYTES: length of YYYY-MM-DD; TRIES: manifests to try (rule 3).
 * Files of SMALL_BYTES or more are not merged; a merged file has at most MADE_BYTES. */
enum { FILES_MAX = 2000, DAY_BYTES = 10, TRIES = 100 };
#define SMALL_BYTES ((uint64_t)16 << 20)
#define MADE_BYTES  ((uint64_t)64 << 20)

struct merge {
    struct ship_target *lake;
    const struct ship_compact *options;
    struct ship_compacted *out;
    char today[ANNAL_TIME_BYTES];
    int64_t now_us;
    const char *names[FILES_MAX];
    size_t count;
    uint64_t bytes, rows;
    struct buf removed; /* lines for the next manifest: the files that this run removed */
    size_t removed_count;
    bool is_full; /* whether more files remain for another merged file */
    annal_error *err;
    annal_status status;
};

static bool is_same_day(const char *name, const char *other)
{
    return strncmp(name, other, strlen("day=") + DAY_BYTES) == 0;
}

/* Collect small files of the same day for one merge. Files are visited by name, and so by day. */
static void choose(const void *node, VISIT which, void *closure)
{
    struct merge *merge = closure;
    const struct lake_file *file = *(struct lake_file *const *)node;
    if ((which != postorder && which != leaf) || merge->is_full || file->replaced_us != 0 ||
        file->is_missing || file->bytes >= SMALL_BYTES ||
        (!merge->options->today &&
         strncmp(file->name + strlen("day="), merge->today, DAY_BYTES) >= 0))
        return;
    if (merge->count > 0 && (merge->count == FILES_MAX || merge->bytes + file->bytes > MADE_BYTES ||
                             !is_same_day(file->name, merge->names[0]))) {
        merge->is_full = merge->count > 1;
        if (merge->is_full)
            return;
        merge->count = 0;
        merge->bytes = merge->rows = 0;
    }
    merge->names[merge->count++] = file->name;
    merge->bytes += file->bytes;
    merge->rows += file->rows;
}

/* Open all files of the merge. ANNAL_ERR_NOTFOUND: one of them was deleted, so later merges leave
 * it out (rule 4). */
static annal_status fetch_all(struct merge *merge, struct opened *opened)
{
    struct ship_target *lake = merge->lake;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < merge->count && status >= 0; i++) {
        struct lake_file *file = lake_find_file(lake, merge->names[i]);
        status = lake_open_more(lake, file, opened, merge->err);
        file->is_missing = status == ANNAL_ERR_NOTFOUND;
    }
    return status;
}

static annal_status write_merged(struct merge *merge, const char *name, int *out_fd)
{
    struct ship_target *lake = merge->lake;
    struct opened opened = {0};
    struct parquet *parquet = NULL;
    char path[FD_PATH_BYTES];
    annal_status status = fetch_all(merge, &opened);
    if (status >= 0)
        status = lake->kind->local(lake->files, name, out_fd, merge->err);
    if (status >= 0)
        lake_fd_path(path, *out_fd);
    bool is_begun = status >= 0;
    if (is_begun && (parquet_open(path, &parquet) != 0 ||
                     parquet_merge(parquet, opened.paths, opened.count) != 0))
        status = annal__fail(merge->err, ANNAL_ERR_IO,
                             "ship: cannot write the merged Parquet file of the lake");
    if (is_begun && status < 0)
        lake->kind->drop(lake->files, name);
    parquet_close(parquet);
    lake_close_all(&opened);
    return status;
}

static bool are_all_live(const struct merge *merge)
{
    for (size_t i = 0; i < merge->count; i++)
        if (lake_find_file(merge->lake, merge->names[i])->replaced_us != 0)
            return false;
    return true;
}

/* Write the manifest of the merged file, again with the next number if a shipper wrote first (rules
 * 1 and 3). */
static annal_status replace(struct merge *merge, struct lake_manifest *manifest)
{
    struct ship_target *lake = merge->lake;
    annal_status status = ANNAL_ERR_CONFLICT;
    for (int i = 0; i < TRIES && status == ANNAL_ERR_CONFLICT; i++) {
        status = lake_publish(lake, manifest, merge->err);
        if (status != ANNAL_ERR_CONFLICT)
            break;
        annal_status read = lake_read_log(lake, merge->err);
        if (read < 0 || !are_all_live(merge)) {
            (void)lake->kind->remove(lake->files, manifest->name, NULL);
            return read < 0 ? read
                            : annal__fail(merge->err, ANNAL_ERR_BUSY,
                                          "ship: another process is compacting the lake");
        }
    }
    return status < 0 ? status : lake_read_log(lake, merge->err);
}

/* Append lines about the removed and the replaced files to the manifest. */
static void print_changes(struct merge *merge, struct lake_manifest *manifest)
{
    manifest->lines = merge->removed;
    manifest->count = merge->removed_count + merge->count;
    merge->removed = (struct buf){0};
    merge->removed_count = 0;
    for (size_t i = 0; i < merge->count; i++)
        must_printf(&manifest->lines, "{\"replaces\":\"%s\",\"at_us\":%" PRId64 "}\n",
                    merge->names[i], merge->now_us);
}

static annal_status merge_files(struct merge *merge)
{
    struct ship_target *lake = merge->lake;
    char name[NAME_BYTES];
    int fd = -1;
    struct lake_manifest manifest = {.version = LAKE_MERGE, .name = name, .rows = merge->rows};
    annal_slice day = {merge->names[0] + strlen("day="), DAY_BYTES};
    annal_status status = lake_new_name(lake, day, name, merge->err);
    if (status >= 0)
        status = write_merged(merge, name, &fd);
    if (status >= 0)
        status = lake_measure(&manifest, fd, merge->err);
    if (status >= 0)
        status = lake->kind->stage(lake->files, name, merge->err);
    if (status >= 0)
        status = lake->kind->settle(lake->files, name, merge->err);
    if (status >= 0) {
        print_changes(merge, &manifest);
        status = replace(merge, &manifest);
    }
    annal__buf_done(&manifest.lines);
    if (status >= 0) {
        merge->out->read += merge->count;
        merge->out->made++;
    }
    return status;
}

/* Remove a replaced file that is older than keep_us (rule 2). */
static void remove_old(const void *node, VISIT which, void *closure)
{
    struct merge *merge = closure;
    const struct lake_file *file = *(struct lake_file *const *)node;
    if ((which != postorder && which != leaf) || merge->status < 0 || file->replaced_us == 0 ||
        file->is_removed || merge->now_us - file->replaced_us < merge->options->keep_us)
        return;
    merge->status = merge->lake->kind->remove(merge->lake->files, file->name, merge->err);
    if (merge->status >= 0)
        must_printf(&merge->removed, "{\"removed\":\"%s\"}\n", file->name);
    merge->removed_count++;
}

annal_status lake_compact(struct ship_target *lake, const struct ship_compact *options,
                          struct ship_compacted *out, annal_error *err)
{
    struct merge *merge = must_zalloc(sizeof *merge);
    *merge = (struct merge){.lake = lake, .options = options, .out = out, .err = err};
    merge->now_us = annal__system_clock.wall_us(annal__system_clock.arg);
    annal_time_format(merge->now_us, merge->today);
    twalk_r(lake->tree, remove_old, merge);
    annal_status status = merge->status;
    out->removed = merge->removed_count;
    while (status >= 0) {
        merge->count = 0;
        merge->bytes = merge->rows = 0;
        merge->is_full = false;
        twalk_r(lake->tree, choose, merge);
        if (merge->count < 2)
            break;
        status = merge_files(merge);
        if (status == ANNAL_ERR_NOTFOUND)
            status = ANNAL_OK;
    }
    annal__buf_done(&merge->removed);
    annal__free(merge);
    return status < 0 ? status : lake_checkpoint_write(lake, err);
}
