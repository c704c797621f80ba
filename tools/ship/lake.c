/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lake: Parquet files for DuckDB, ClickHouse and Spark, in a directory or in a bucket (lake.h).
 * DuckDB's library writes them (tools/export/parquet.h).
 *
 *     LAKE/store=<name>/day=<day of arrival>/<number>-<random>.parquet    a batch
 *     LAKE/store=<name>/_log/<number>.json                                its manifest: 1, 2, 3, …
 *     LAKE/store=<name>/_log/_checkpoint                                  what manifests 1 to n say
 *
 * (1) A batch is committed when its manifest exists under its final name. Only one shipper can
 *     create that name; another one fails and reads the log again.
 * (2) Before that, the Parquet file is complete and durable under a temporary name (….tmp);
 *     afterwards it is renamed. If a crash happens in between, the next shipper renames it before
 *     it writes the next manifest, so only the file of the last manifest can still have its
 *     temporary name. Files without a manifest are therefore never read. A reader does not rename
 *     anything and reads that file as ….tmp.
 * (3) For each session a manifest lists the events in the file and the hashes before and after
 *     them. Read in order, manifests give the heads; a manifest that does not continue the heads is
 *     damage.
 * (4) A manifest of version 2 belongs to a file that was merged from others, and lists these. From
 *     then on they are not part of the lake. They are kept for a while, for readers that started
 *     earlier (lake_compact.c).
 * (5) Manifests never change, so the content of the first n of them stays valid. A checkpoint
 *     summarizes them in one file, and only the later manifests are read (lake_checkpoint.c). If it
 *     is missing or damaged, all manifests are read.
 * (6) Other programs may write to the directory or the bucket: each field of a manifest and of the
 *     checkpoint has one spelling and limits (tools/cli/outside.h), and no name leads out of the
 *     lake.
 */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "tools/cli/out.h"
#include "tools/export/duckdb.h"
#include "tools/export/parquet.h"
#include "tools/ship/walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- Files ---- */

annal_status lake_add_text(void *arg, const void *bytes, size_t len)
{
    return annal__buf_append(arg, bytes, len);
}

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

static annal_status fail_manifest(uint64_t number, const char *what, annal_error *err)
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

static annal_status prove_file(struct ship_target *lake, const struct lake_file *file,
                               annal_error *err)
{
    struct sum sum = {annal__hash_begin(0), 0};
    if (sum.stream == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
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
    struct lake_file *kept = annal__zalloc(sizeof *kept);
    char *name = annal__strndup(file->name, strlen(file->name));
    if (kept != NULL && name != NULL) {
        *kept = *file;
        kept->name = name;
        if (tsearch(kept, &lake->tree, compare_files) != NULL)
            return ANNAL_OK;
    }
    annal__free(kept);
    annal__free(name);
    return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
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
        return fail_manifest(lake->number + 1,
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
        return fail_manifest(lake->number + 1, "is damaged", err);
    struct lake_file *file = lake_find_file(lake, name);
    struct lake_file *by = lake_find_file(lake, lake->last);
    if (file == NULL || file == by || (file->replaced_us != 0) != removed)
        return fail_manifest(lake->number + 1, "does not continue the manifests before it", err);
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
        return fail_manifest(lake->number + 1, "is damaged", err);
    annal_status status = lake->has_histories
                              ? lake_note_piece(lake, &piece, lake_find_file(lake, lake->last), err)
                              : ANNAL_OK;
    if (status < 0)
        return status;
    struct shipment *shipment = shipment_of(&lake->heads, annal_slice_of(piece.session));
    if (shipment == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    if (shipment->has_head
            ? piece.first != shipment->head.seq + 1 || piece.before != shipment->head.h
            : piece.before != 0)
        return fail_manifest(lake->number + 1, "does not continue the manifests before it", err);
    shipment->has_head = true;
    shipment->head = piece.last;
    return ANNAL_OK;
}

annal_status lake_end_text(struct buf *text, size_t count)
{
    return annal__buf_printf(text, LAST_LINE, count, annal__hash(text->ptr, text->len, 0));
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
        return fail_manifest(lake->number + 1, "is damaged", err);
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
        status = fail_manifest(lake->number + 1, "is damaged", err);
    return status;
}

annal_status lake_read_text(struct ship_target *lake, const char *name, struct buf *out,
                            annal_error *err)
{
    annal_status status = lake->kind->read(lake->files, name, out, err);
    return status >= 0 && annal__buf_cstr(out) == NULL
               ? annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory")
               : status;
}

/* Read the next manifest. ANNAL_ERR_NOTFOUND: there are no more. */
static annal_status read_next(struct ship_target *lake, annal_error *err)
{
    char name[NAME_BYTES];
    struct buf text = {.limit = MANIFEST_BYTES};
    if (lake->number >= NUMBER_MAX)
        return ANNAL_ERR_NOTFOUND;
    log_name(name, lake->number + 1);
    annal_status status = lake_read_text(lake, name, &text, err);
    if (status >= 0)
        status = read_manifest(lake, text.ptr, text.len, err);
    if (status >= 0)
        lake->number++;
    annal__buf_done(&text);
    return status;
}

/* Read the manifests written since the last call, then rename the file of the last one. */
annal_status lake_read_log(struct ship_target *lake, annal_error *err)
{
    annal_status status = ANNAL_OK;
    while (status >= 0)
        status = read_next(lake, err);
    return status == ANNAL_ERR_NOTFOUND ? settle(lake, err) : status;
}

/* ---- Opening ---- */

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

static void lake_close(struct ship_target *lake)
{
    if (lake == NULL)
        return;
    if (lake->files != NULL)
        lake->kind->close(lake->files);
    lake_forget(lake);
    annal__buf_done(&lake->texts);
    annal__free(lake->rows);
    annal__free(lake);
}

/* Print store=<name>, with % escapes for characters that a path or a query cannot contain. */
static annal_status store_name(const char *store, struct buf *out)
{
    annal_status status = annal__buf_printf(out, "store=");
    for (const char *c = store; *c != '\0' && status >= 0; c++)
        status = annal__buf_printf(
            out, strchr("/%\"\\,{}*?=", *c) != NULL || (signed char)*c < ' ' ? "%%%02x" : "%c",
            (unsigned char)*c);
    return status >= 0 && annal__buf_cstr(out) == NULL ? ANNAL_ERR_NOMEM : status;
}

static annal_status open_files(struct ship_target *lake, const struct ship_where *where,
                               annal_error *err)
{
    struct buf name = {0};
    annal_status status =
        store_name(where->store, &name) < 0
            ? annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory")
            : lake->kind->open(where, name.ptr, lake->to_write, &lake->files, err);
    annal__buf_done(&name);
    return status;
}

static annal_status lake_open(const struct lake_files_kind *kind, const struct ship_where *where,
                              bool to_write, struct ship_target **out_target, annal_error *err)
{
    struct ship_target *lake = annal__zalloc(sizeof *lake);
    if (lake == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    lake->kind = kind;
    lake->to_write = to_write;
    if (where->store == NULL) {
        lake_close(lake);
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "pull: --store-name is missing: a lake has a directory for each store, "
                           "so name the store that shipped the session");
    }
    snprintf(lake->store, sizeof lake->store, "%s", where->store);
    annal_status status =
        to_write && duckdb_load() != 0
            ? annal__fail(err, ANNAL_ERR_IO,
                          "ship: cannot load DuckDB, which writes the Parquet files of a lake")
            : ANNAL_OK;
    if (status >= 0)
        status = open_files(lake, where, err);
    if (status >= 0)
        status = lake_checkpoint_read(lake, err);
    if (status >= 0)
        status = lake_read_log(lake, err);
    if (status >= 0 && to_write && lake->number >= lake->checkpoint + CHECKPOINT_EVERY)
        status = lake_checkpoint_write(lake, err);
    if (status >= 0 && !to_write && lake->number == 0)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "ship: nothing was shipped to '%s' yet",
                             kind->place(lake->files, ""));
    if (status < 0) {
        lake_close(lake);
        return status;
    }
    *out_target = lake;
    return ANNAL_OK;
}

static annal_status open_dir(const struct ship_where *where, bool to_write,
                             struct ship_target **out_target, annal_error *err)
{
    return lake_open(&lake_dir, where, to_write, out_target, err);
}

struct heads {
    head_fn fn;
    void *arg;
    annal_error *err;
    annal_status status;
};

static int give_head(void *arg, struct shipment *shipment)
{
    struct heads *heads = arg;
    if (shipment->has_head)
        heads->status =
            heads->fn(heads->arg, annal_slice_of(shipment->session), &shipment->head, heads->err);
    return heads->status < 0;
}

static annal_status lake_heads(struct ship_target *lake, head_fn fn, void *arg, annal_error *err)
{
    struct heads heads = {fn, arg, err, lake_read_log(lake, err)};
    if (heads.status >= 0)
        (void)shipments_each(&lake->heads, give_head, &heads);
    return heads.status;
}

/* ---- A batch ---- */

static annal_status lake_begin(struct ship_target *lake, struct shipment **shipments, size_t count,
                               annal_error *err)
{
    annal_status status = lake_read_log(lake, err);
    lake->row_count = lake->row_given = 0;
    annal__buf_clear(&lake->texts);
    for (size_t i = 0; status >= 0 && i < count; i++) {
        const struct shipment *head =
            shipment_of(&lake->heads, annal_slice_of(shipments[i]->session));
        if (head == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
        shipments[i]->has_head = head->has_head || shipments[i]->info != NULL;
        shipments[i]->head = head->has_head ? head->head
                             : shipments[i]->info != NULL
                                 ? (struct place){.seq = shipments[i]->info->first_seq - 1}
                                 : (struct place){0};
    }
    return status;
}

static annal_status lake_put(struct ship_target *lake, const struct shipment *shipment,
                             const annal_event *event, annal_error *err)
{
    const annal_slice texts[] = {event->type, event->id, event->cause, event->data};
    struct lake_row row = {shipment->session, event->seq,      event->ts_us,
                           event->h,          lake->texts.len, {0}};
    annal_status status = ANNAL_OK;
    if (lake->row_count == lake->row_room) {
        size_t room = lake->row_room == 0 ? 4096 : lake->row_room * 2;
        struct lake_row *rows = annal__realloc_array(lake->rows, room, sizeof *rows);
        if (rows == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
        lake->rows = rows;
        lake->row_room = room;
    }
    for (int i = 0; i < 4 && status >= 0; i++) {
        row.lens[i] = texts[i].len;
        status = annal__buf_append_slice(&lake->texts, texts[i]);
    }
    if (status < 0)
        return annal__fail(err, status, "ship: out of memory");
    lake->rows[lake->row_count++] = row;
    return ANNAL_OK;
}

static int next_row(void *arg, const annal_value **out_values)
{
    struct ship_target *lake = arg;
    if (lake->row_given == lake->row_count)
        return 0;
    const struct lake_row *row = &lake->rows[lake->row_given++];
    size_t at = row->at;
    lake->values[0] =
        (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(row->session)};
    lake->values[1] = (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)row->seq};
    lake->values[2] = (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = row->ts_us};
    for (int i = 0; i < 4; at += row->lens[i++])
        lake->values[3 + i] =
            (annal_value){.kind = row->lens[i] > 0 ? ANNAL_VALUE_TEXT : ANNAL_VALUE_NULL,
                          .bytes = {lake->texts.ptr + at, row->lens[i]}};
    lake->values[7] = (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)row->h};
    *out_values = lake->values;
    return 0;
}

static annal_status write_rows(struct ship_target *lake, int fd, annal_error *err)
{
    char path[FD_PATH_BYTES];
    static const struct parquet_column columns[] = {
        {"session_id", PARQUET_TEXT}, {"seq", PARQUET_INTEGER}, {"timestamp", PARQUET_TIME},
        {"type", PARQUET_TEXT},       {"id", PARQUET_TEXT},     {"cause", PARQUET_TEXT},
        {"data", PARQUET_TEXT},       {"h", PARQUET_INTEGER}};
    struct parquet *parquet = NULL;
    lake_fd_path(path, fd);
    int exit_status = parquet_open(path, &parquet);
    if (exit_status == 0)
        exit_status = parquet_write(parquet, columns, 8, next_row, lake);
    bool is_full = parquet_is_full(parquet);
    parquet_close(parquet);
    if (exit_status == 0)
        return ANNAL_OK;
    errno = is_full ? ENOSPC : EIO;
    return annal__fail_errno(err, "ship: cannot write a Parquet file of the lake");
}

static annal_status print_pieces(struct shipment **shipments, size_t count,
                                 struct lake_manifest *manifest)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < count && status >= 0; i++) {
        const struct place *from = &shipments[i]->head, *to = &shipments[i]->next;
        if (to->seq == from->seq)
            continue;
        status = annal__buf_printf(&manifest->lines, PIECE, shipments[i]->session, from->seq + 1,
                                   from->h, to->seq, to->h, to->at);
        if (status >= 0 && shipments[i]->info != NULL)
            status = lake_print_header(shipments[i]->info, &manifest->lines);
        if (status >= 0)
            status = annal__buf_printf(&manifest->lines, "}\n");
        manifest->count++;
    }
    return status;
}

annal_status lake_measure(struct lake_manifest *manifest, int fd, annal_error *err)
{
    struct sum sum = {annal__hash_begin(0), 0};
    if (sum.stream == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    annal_status status = lake_read_fd(fd, manifest->name, OUTSIDE_BYTES_MAX, add_sum, &sum, err);
    manifest->bytes = sum.bytes;
    manifest->hash = annal__hash_end(sum.stream);
    return status;
}

annal_status lake_publish(struct ship_target *lake, const struct lake_manifest *manifest,
                          annal_error *err)
{
    char name[NAME_BYTES];
    struct buf text = {0};
    annal_status status = annal__buf_printf(&text, HEAD_LINE, manifest->version, manifest->name,
                                            manifest->rows, manifest->bytes, manifest->hash);
    if (status >= 0)
        status = annal__buf_append_slice(&text, annal__buf_slice(&manifest->lines));
    if (status >= 0)
        status = lake_end_text(&text, manifest->count);
    if (status < 0)
        status = annal__fail(err, status, "ship: out of memory");
    log_name(name, lake->number + 1);
    if (status >= 0)
        status = lake->kind->create(lake->files, name, annal__buf_slice(&text), err);
    annal__buf_done(&text);
    return status;
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

/* Add a complete Parquet file to the lake by writing its manifest. */
static annal_status commit_file(struct ship_target *lake, struct lake_manifest *manifest, int fd,
                                annal_error *err)
{
    annal_status status = lake_measure(manifest, fd, err);
    if (status >= 0)
        status = lake->kind->stage(lake->files, manifest->name, err);
    bool is_staged = status >= 0;
    if (is_staged)
        status = lake_publish(lake, manifest, err);
    /* Remove the file if no manifest can name it. After another failure the manifest may exist, and
     * then the file is needed. */
    if (!is_staged || status == ANNAL_ERR_CONFLICT)
        lake->kind->drop(lake->files, manifest->name);
    return status != ANNAL_ERR_CONFLICT
               ? status
               : annal__fail(err, ANNAL_ERR_BUSY,
                             /* rule 1: only one shipper creates a manifest name */
                             "ship: another shipper wrote to the lake at the same time, so this "
                             "batch was not added");
}

static annal_status lake_commit(struct ship_target *lake, struct shipment **shipments, size_t count,
                                annal_error *err)
{
    char now[ANNAL_TIME_BYTES], name[NAME_BYTES];
    int fd = -1;
    struct lake_manifest manifest = {
        .version = LAKE_BATCH, .name = name, .rows = (uint64_t)lake->row_count};
    if (lake->row_count == 0)
        return ANNAL_OK;
    annal_time_format(annal__system_clock.wall_us(annal__system_clock.arg), now);
    annal_status status = lake_new_name(lake, (annal_slice){now, 10}, name, err);
    if (status >= 0 && print_pieces(shipments, count, &manifest) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    if (status >= 0)
        status = lake->kind->local(lake->files, name, &fd, err);
    bool is_begun = status >= 0;
    if (is_begun)
        status = write_rows(lake, fd, err);
    if (is_begun && status < 0)
        lake->kind->drop(lake->files, name);
    if (status >= 0)
        status = commit_file(lake, &manifest, fd, err);
    annal__buf_done(&manifest.lines);
    if (status < 0)
        return status;
    /* read the new manifest, too, and rename its file to the final name (rule 2) */
    return lake_read_log(lake, err);
}

/* ---- Artifacts: LAKE/store=<name>/artifacts/<sha256>, the content ---- */

static void artifact_name(char name[NAME_BYTES], const char *sha256)
{
    snprintf(name, NAME_BYTES, "artifacts/%s", sha256);
}

/* Report every artifact as missing: creating its file, which fails if it exists, costs no more than
 * a check. */
static annal_status lake_has(struct ship_target *lake, const char *sha256, bool *out,
                             annal_error *err)
{
    (void)lake, (void)sha256, (void)err;
    *out = false;
    return ANNAL_OK;
}

static annal_status lake_keep(struct ship_target *lake, const char *sha256, annal_slice content,
                              annal_error *err)
{
    char name[NAME_BYTES];
    artifact_name(name, sha256);
    annal_status status = lake->kind->create(lake->files, name, content, err);
    return status == ANNAL_ERR_CONFLICT ? ANNAL_OK : status;
}

static annal_status lake_fetch(struct ship_target *lake, const char *sha256, struct buf *out,
                               annal_error *err)
{
    char name[NAME_BYTES];
    artifact_name(name, sha256);
    out->limit = SHIP_ARTIFACT_BYTES_MAX;
    return lake->kind->read(lake->files, name, out, err);
}

/* State of a check. Every error is printed, except the last one, which is in *err. */
struct proving {
    struct ship_target *lake;
    const char *missing; /* first missing file of a day, or NULL */
    uint64_t missing_count;
    bool is_unreachable;
    annal_error *err;
    annal_status status;
};

static void note_bad(struct proving *proving, const annal_error *err)
{
    if (proving->status < 0)
        say("%s", proving->err->message);
    *proving->err = *err;
    proving->status = err->status;
}

/* Report missing files. If many files of a day are missing, the day was probably deleted: one line
 * reports it. */
static void note_missing(struct proving *proving)
{
    annal_error err = {0};
    struct ship_target *lake = proving->lake;
    if (proving->missing == NULL)
        return;
    const char *place = lake->kind->place(lake->files, proving->missing);
    if (proving->missing_count == 1)
        annal__fail(&err, ANNAL_ERR_CORRUPT, "ship: the file '%s' of the lake is missing", place);
    else
        annal__fail(&err, ANNAL_ERR_CORRUPT,
                    "ship: the file '%s' of the lake is missing, and %" PRIu64
                    " more files of this day",
                    place, proving->missing_count - 1);
    proving->missing = NULL;
    proving->missing_count = 0;
    note_bad(proving, &err);
}

/* Check one file. A bad file does not end the check, an unreachable target does. */
static void prove_each(const void *node, VISIT which, void *closure)
{
    struct proving *proving = closure;
    const struct lake_file *file = *(struct lake_file *const *)node;
    annal_error err = {0};
    if ((which != postorder && which != leaf) || proving->is_unreachable || file->replaced_us != 0)
        return;
    if (proving->missing != NULL &&
        strncmp(file->name, proving->missing, strcspn(file->name, "/")) != 0)
        note_missing(proving);
    annal_status status = prove_file(proving->lake, file, &err);
    if (status == ANNAL_ERR_NOTFOUND) {
        proving->missing = proving->missing != NULL ? proving->missing : file->name;
        proving->missing_count++;
    } else if (status < 0) {
        note_bad(proving, &err);
        proving->is_unreachable = status == ANNAL_ERR_BUSY;
    }
}

/* Check all files, and that the checkpoint matches the manifests that it summarizes. */
static annal_status lake_prove(struct ship_target *lake, uint64_t *out_events, annal_error *err)
{
    annal_status status = ANNAL_OK;
    uint64_t checkpoint = lake->checkpoint;
    lake_forget(lake);
    while (lake->number < checkpoint && status >= 0)
        status = read_next(lake, err);
    if (status == ANNAL_ERR_NOTFOUND)
        status = fail_manifest(lake->number + 1, "is missing", err);
    if (status >= 0)
        status = lake_checkpoint_prove(lake, err);
    if (status >= 0)
        status = lake_read_log(lake, err);
    struct proving proving = {.lake = lake, .err = err};
    *out_events = lake->events;
    if (status < 0)
        return status;
    twalk_r(lake->tree, prove_each, &proving);
    note_missing(&proving);
    return proving.status;
}

/* The functions of a lake. Only open() differs between a directory and a bucket. */
#define LAKE_KIND(opens)                                                                           \
    {                                                                                              \
        .pace_ms = 60000, .open = opens, .close = lake_close, .heads = lake_heads,                 \
        .begin = lake_begin, .put = lake_put, .commit = lake_commit, .prove = lake_prove,          \
        .compact = lake_compact, .rows = lake_rows, .find = lake_find, .tree = lake_tree,          \
        .has = lake_has, .keep = lake_keep, .fetch = lake_fetch                                    \
    }

#ifdef ANNAL_SHIP_S3
static annal_status open_bucket(const struct ship_where *where, bool to_write,
                                struct ship_target **out_target, annal_error *err)
{
    return lake_open(&lake_s3, where, to_write, out_target, err);
}

const struct ship_kind ship_bucket = LAKE_KIND(open_bucket);
#endif

const struct ship_kind ship_lake = LAKE_KIND(open_dir);
