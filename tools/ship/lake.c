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
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/export/duckdb.h"
#include "tools/export/parquet.h"
#include "tools/ship/walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Opening ---- */

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
static void store_name(const char *store, struct buf *out)
{
    must_printf(out, "store=");
    for (const char *c = store; *c != '\0'; c++)
        must_printf(out,
                    strchr("/%\"\\,{}*?=", *c) != NULL || (signed char)*c < ' ' ? "%%%02x" : "%c",
                    (unsigned char)*c);
}

static annal_status open_files(struct ship_target *lake, const struct ship_where *where,
                               annal_error *err)
{
    SCOPED_BUF name = {0};
    store_name(where->store, &name);
    return lake->kind->open(where, name.ptr, lake->to_write, &lake->files, err);
}

static annal_status lake_open(const struct lake_files_kind *kind, const struct ship_where *where,
                              bool to_write, struct ship_target **out_target, annal_error *err)
{
    struct ship_target *lake = must_zalloc(sizeof *lake);
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
    struct lake_row *item = must_array_add(&lake->rows, &lake->row_count, sizeof *item);
    for (int i = 0; i < 4; i++) {
        row.lens[i] = texts[i].len;
        must_append_slice(&lake->texts, texts[i]);
    }
    *item = row;
    (void)err;
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
    if (status >= 0)
        lake_print_pieces(shipments, count, &manifest);
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
    annal_status status = lake_prove_file(proving->lake, file, &err);
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
        status = lake_read_next(lake, err);
    if (status == ANNAL_ERR_NOTFOUND)
        status = lake_fail_manifest(lake->number + 1, "is missing", err);
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

static const struct ship_source source = {.rows = lake_rows,
                                          .find = lake_find,
                                          .tree = lake_tree,
                                          .has = lake_has,
                                          .keep = lake_keep,
                                          .fetch = lake_fetch};
static const struct ship_files files = {.prove = lake_prove, .compact = lake_compact};

/* The functions of a lake. Only open() differs between a directory and a bucket. */
#define LAKE_KIND(opens)                                                                           \
    {                                                                                              \
        .pace_ms = 60000, .open = opens, .close = lake_close, .heads = lake_heads,                 \
        .begin = lake_begin, .put = lake_put, .commit = lake_commit, .source = &source,            \
        .files = &files                                                                            \
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
