/* SPDX-License-Identifier: Apache-2.0 */
/* The manifests of a lake: reading and writing them. lake.c has the rules. */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "tools/cli/must.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- Files ---- */

struct sum {
    struct hash_stream *stream;
    uint64_t bytes;
};

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct lake_file *)a)->name, ((const struct lake_file *)b)->name);
}

static annal_status add_sum(void *arg, const void *bytes, size_t len)
{
    struct sum *sum = arg;
    sum->bytes += len;
    annal__hash_add(sum->stream, bytes, len);
    return ANNAL_OK;
}

/* ---- Manifests ---- */

annal_status lake_fail_manifest(uint64_t number, const char *what, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT, "ship: manifest %08" PRIu64 " of the lake %s",
                       number, what);
}

static void log_name(char name[NAME_BYTES], uint64_t number)
{
    snprintf(name, NAME_BYTES, "_log/%08" PRIu64 ".json", number);
}

#define HEAD_LINE                                                                                  \
    "{\"annal_lake\":%d,\"file\":\"%s\",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64                   \
    ",\"hash\":\"%016" PRIx64 "\"}\n"
#define PIECE                                                                                      \
    "{\"session\":\"%s\",\"first_seq\":%" PRIu64 ",\"h_before\":\"%016" PRIx64                     \
    "\",\"last_seq\":%" PRIu64 ",\"h\":\"%016" PRIx64 "\",\"at\":%" PRIu64
#define LAST_LINE "{\"pieces\":%zu,\"h\":\"%016" PRIx64 "\"}\n"

struct manifest {
    int version;
    uint64_t rows, replaced_rows;
};

/* Rename the Parquet file of the last manifest to its final name (rule 2), unless the lake is open
 * for reading only. */
static annal_status settle(struct ship_target *lake, annal_error *err)
{
    if (lake->last[0] == '\0' || !lake->to_write)
        return ANNAL_OK;
    annal_status status = lake->kind->settle(lake->files, lake->last, err);
    if (status >= 0)
        lake->last[0] = '\0';
    return status;
}

/* Open the file under its final name, then as .tmp, then under its final name again: a shipper may
 * rename it between two attempts. */
annal_status lake_fetch_file(struct ship_target *lake, const struct lake_file *file, int *out_fd,
                             annal_error *err)
{
    char tmp[NAME_BYTES + 4];
    annal_status status = lake->kind->fetch(lake->files, file->name, file->bytes, out_fd, err);
    if (status != ANNAL_ERR_NOTFOUND || strcmp(file->name, lake->last) != 0)
        return status;
    snprintf(tmp, sizeof tmp, "%s.tmp", file->name);
    status = lake->kind->fetch(lake->files, tmp, file->bytes, out_fd, err);
    return status != ANNAL_ERR_NOTFOUND
               ? status
               : lake->kind->fetch(lake->files, file->name, file->bytes, out_fd, err);
}

annal_status lake_prove_file(struct ship_target *lake, const struct lake_file *file,
                             annal_error *err)
{
    struct sum sum = {annal__hash_begin(0), 0};
    must_true(sum.stream != NULL);
    int fd = -1;
    const char *place = lake->kind->place(lake->files, file->name);
    annal_status status = lake_fetch_file(lake, file, &fd, err);
    if (status >= 0) {
        status = lake_read_fd(fd, place, file->bytes, add_sum, &sum, err);
        close(fd);
    }
    uint64_t hash = annal__hash_end(sum.stream);
    return status < 0 || (sum.bytes == file->bytes && hash == file->hash)
               ? status
               : annal__fail(
                     err, ANNAL_ERR_CORRUPT,
                     "ship: the file '%s' of the lake differs from the file that was written",
                     lake->kind->place(lake->files, file->name));
}

annal_status lake_add_file(struct ship_target *lake, const struct lake_file *file, annal_error *err)
{
    if (lake_find_file(lake, file->name) != NULL)
        return annal__fail(err, ANNAL_ERR_CORRUPT, "ship: the lake lists the file '%s' twice",
                           file->name);
    struct lake_file *kept = must_zalloc(sizeof *kept);
    *kept = *file;
    kept->name = must_strndup(file->name, strlen(file->name));
    must_true(tsearch(kept, &lake->tree, compare_files) != NULL);
    return ANNAL_OK;
}

void lake_take_name(struct outside *line, char name[NAME_BYTES])
{
    char chance[9];
    const char *from = line->at;
    name[0] = '\0';
    outside_skip(line, "day=");
    outside_day(line);
    outside_skip(line, "/");
    for (int i = 0; i < 8 && !line->is_bad; i++, line->at++)
        line->is_bad = *line->at < '0' || *line->at > '9';
    outside_skip(line, "-");
    outside_hex(line, sizeof chance - 1, chance);
    outside_skip(line, ".parquet");
    if (!line->is_bad)
        snprintf(name, NAME_BYTES, "%.*s", (int)(line->at - from), from);
}

static annal_status take_file(struct ship_target *lake, const char *text, struct manifest *manifest,
                              annal_error *err)
{
    struct outside line = {.at = text};
    struct lake_file file = {.name = lake->last};
    outside_skip(&line, "{\"annal_lake\":");
    manifest->version = (int)outside_number(&line, LAKE_MERGE);
    outside_skip(&line, ",\"file\":\"");
    lake_take_name(&line, lake->last);
    outside_skip(&line, "\",\"rows\":");
    manifest->rows = file.rows = outside_number(&line, OUTSIDE_COUNT_MAX);
    outside_skip(&line, ",\"bytes\":");
    file.bytes = outside_number(&line, OUTSIDE_BYTES_MAX);
    outside_skip(&line, ",\"hash\":\"");
    file.hash = outside_hash(&line);
    outside_skip(&line, "\"}");
    if (!outside_end(&line) || manifest->version < LAKE_BATCH) {
        lake->last[0] = '\0';
        return lake_fail_manifest(lake->number + 1,
                                  "is damaged, or has a version that this annal cannot read", err);
    }
    lake->events += manifest->version == LAKE_BATCH ? file.rows : 0;
    return lake_add_file(lake, &file, err);
}

struct lake_file *lake_find_file(struct ship_target *lake, const char *name)
{
    struct lake_file **found = tfind(&(struct lake_file){.name = name}, &lake->tree, compare_files);
    return found != NULL ? *found : NULL;
}

/* Read a line about a file that a merged file replaces, or that was removed (rule 4). */
static annal_status take_replaced(struct ship_target *lake, const char *text,
                                  struct manifest *manifest, annal_error *err)
{
    char name[NAME_BYTES];
    struct outside line = {.at = text};
    int64_t at_us = 0;
    bool removed = outside_has(&line, "{\"removed\":\"");
    if (!removed)
        outside_skip(&line, "{\"replaces\":\"");
    lake_take_name(&line, name);
    outside_skip(&line, removed ? "\"}" : "\",\"at_us\":");
    if (!removed) {
        at_us = outside_time(&line);
        outside_skip(&line, "}");
    }
    if (!outside_end(&line) || (!removed && at_us <= 0))
        return lake_fail_manifest(lake->number + 1, "is damaged", err);
    struct lake_file *file = lake_find_file(lake, name);
    struct lake_file *by = lake_find_file(lake, lake->last);
    if (file == NULL || file == by || (file->replaced_us != 0) != removed)
        return lake_fail_manifest(lake->number + 1, "does not continue the manifests before it",
                                  err);
    file->is_removed = removed;
    if (!removed) {
        file->replaced_us = at_us;
        file->replaced_by = by;
        manifest->replaced_rows += file->rows;
    }
    return ANNAL_OK;
}

static bool read_piece(const char *text, struct lake_piece *piece)
{
    struct outside line = {.at = text};
    outside_skip(&line, "{\"session\":\"");
    outside_session(&line, piece->session);
    outside_skip(&line, "\",\"first_seq\":");
    piece->first = outside_number(&line, OUTSIDE_SEQ_MAX);
    outside_skip(&line, ",\"h_before\":\"");
    piece->before = outside_hash(&line);
    outside_skip(&line, "\",\"last_seq\":");
    piece->last.seq = outside_number(&line, OUTSIDE_SEQ_MAX);
    outside_skip(&line, ",\"h\":\"");
    piece->last.h = outside_hash(&line);
    outside_skip(&line, "\",\"at\":");
    piece->last.at = outside_number(&line, OUTSIDE_BYTES_MAX);
    piece->has_header = lake_take_header(&line, &piece->info);
    outside_skip(&line, "}");
    return outside_end(&line) && piece->first > 0 && piece->last.seq >= piece->first;
}

static annal_status take_piece(struct ship_target *lake, const char *text, annal_error *err)
{
    struct lake_piece piece = {0};
    if (!read_piece(text, &piece))
        return lake_fail_manifest(lake->number + 1, "is damaged", err);
    if (lake->has_histories)
        lake_note_piece(lake, &piece, lake_find_file(lake, lake->last));
    struct shipment *shipment = shipment_of(&lake->heads, annal_slice_of(piece.session));
    if (shipment->has_head
            ? piece.first != shipment->head.seq + 1 || piece.before != shipment->head.h
            : piece.before != 0)
        return lake_fail_manifest(lake->number + 1, "does not continue the manifests before it",
                                  err);
    shipment->has_head = true;
    shipment->head = piece.last;
    return ANNAL_OK;
}

void lake_end_text(struct buf *text, size_t count)
{
    must_printf(text, LAST_LINE, count, annal__hash(text->ptr, text->len, 0));
}

bool lake_check_text(char *text, size_t len, size_t *out_count)
{
    char *end = len > 1 ? memrchr(text, '\n', len - 1) : NULL;
    if (end == NULL || memchr(text, '\0', len) != NULL)
        return false;
    struct outside line = {.at = end + 1};
    outside_skip(&line, "{\"pieces\":");
    *out_count = outside_number(&line, NUMBER_MAX);
    outside_skip(&line, ",\"h\":\"");
    uint64_t h = outside_hash(&line);
    outside_skip(&line, "\"}\n");
    if (!outside_end(&line) || h != annal__hash(text, (size_t)(end + 1 - text), 0))
        return false;
    *end = '\0';
    return true;
}

/* Read a manifest. All bytes are verified by their hash before any of them is used. */
static annal_status read_manifest(struct ship_target *lake, char *text, size_t len,
                                  annal_error *err)
{
    size_t pieces = 0, said = 0;
    if (!lake_check_text(text, len, &said))
        return lake_fail_manifest(lake->number + 1, "is damaged", err);
    char *rest = NULL, *line = strtok_r(text, "\n", &rest);
    struct manifest manifest = {0};
    annal_status status = take_file(lake, line != NULL ? line : "", &manifest, err);
    while (status >= 0 && (line = strtok_r(NULL, "\n", &rest)) != NULL) {
        status = manifest.version == LAKE_MERGE ? take_replaced(lake, line, &manifest, err)
                                                : take_piece(lake, line, err);
        pieces++;
    }
    if (status >= 0 && (pieces != said || (manifest.version == LAKE_MERGE &&
                                           manifest.rows != manifest.replaced_rows)))
        status = lake_fail_manifest(lake->number + 1, "is damaged", err);
    return status;
}

annal_status lake_read_text(struct ship_target *lake, const char *name, struct buf *out,
                            annal_error *err)
{
    annal_status status = lake->kind->read(lake->files, name, out, err);
    if (status >= 0)
        (void)must_cstr(out);
    return status;
}

/* Read the next manifest. ANNAL_ERR_NOTFOUND: there are no more. */
annal_status lake_read_next(struct ship_target *lake, annal_error *err)
{
    char name[NAME_BYTES];
    SCOPED_BUF text = {.limit = MANIFEST_BYTES};
    if (lake->number >= NUMBER_MAX)
        return ANNAL_ERR_NOTFOUND;
    log_name(name, lake->number + 1);
    annal_status status = lake_read_text(lake, name, &text, err);
    if (status >= 0)
        status = read_manifest(lake, text.ptr, text.len, err);
    if (status >= 0)
        lake->number++;
    return status;
}

/* Read the manifests written since the last call, then rename the file of the last one. */
annal_status lake_read_log(struct ship_target *lake, annal_error *err)
{
    annal_status status = ANNAL_OK;
    while (status >= 0)
        status = lake_read_next(lake, err);
    return status == ANNAL_ERR_NOTFOUND ? settle(lake, err) : status;
}

static void free_file(void *arg)
{
    struct lake_file *file = arg;
    annal__free((void *)(uintptr_t)file->name);
    annal__free(file);
}

void lake_forget(struct ship_target *lake)
{
    shipments_done(&lake->heads);
    tdestroy(lake->tree, free_file);
    lake_forget_histories(lake);
    lake->tree = NULL;
    lake->number = lake->events = 0;
    lake->last[0] = '\0';
}

void lake_print_pieces(struct shipment **shipments, size_t count, struct lake_manifest *manifest)
{
    for (size_t i = 0; i < count; i++) {
        const struct place *from = &shipments[i]->head, *to = &shipments[i]->next;
        if (to->seq == from->seq)
            continue;
        must_printf(&manifest->lines, PIECE, shipments[i]->session, from->seq + 1, from->h, to->seq,
                    to->h, to->at);
        if (shipments[i]->info != NULL)
            lake_print_header(shipments[i]->info, &manifest->lines);
        must_printf(&manifest->lines, "}\n");
        manifest->count++;
    }
}

annal_status lake_measure(struct lake_manifest *manifest, int fd, annal_error *err)
{
    struct sum sum = {annal__hash_begin(0), 0};
    must_true(sum.stream != NULL);
    annal_status status = lake_read_fd(fd, manifest->name, OUTSIDE_BYTES_MAX, add_sum, &sum, err);
    manifest->bytes = sum.bytes;
    manifest->hash = annal__hash_end(sum.stream);
    return status;
}

annal_status lake_publish(struct ship_target *lake, const struct lake_manifest *manifest,
                          annal_error *err)
{
    char name[NAME_BYTES];
    SCOPED_BUF text = {0};
    must_printf(&text, HEAD_LINE, manifest->version, manifest->name, manifest->rows,
                manifest->bytes, manifest->hash);
    must_append_slice(&text, annal__buf_slice(&manifest->lines));
    lake_end_text(&text, manifest->count);
    log_name(name, lake->number + 1);
    return lake->kind->create(lake->files, name, annal__buf_slice(&text), err);
}

annal_status lake_new_name(const struct ship_target *lake, annal_slice day, char name[NAME_BYTES],
                           annal_error *err)
{
    uint32_t chance = 0;
    if (lake->number >= NUMBER_MAX || getrandom(&chance, sizeof chance, 0) < 0)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "ship: cannot name a new file of the lake: the lake has too many files");
    snprintf(name, NAME_BYTES, "day=%.*s/%08" PRIu64 "-%08x.parquet", ANNAL_FMT(day),
             lake->number + 1, chance);
    return ANNAL_OK;
}
