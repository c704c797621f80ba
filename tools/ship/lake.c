/*
 * A lake: Parquet files that DuckDB, ClickHouse and Spark read, in a directory or in a bucket
 * (lake.h). DuckDB's library writes them (tools/export/parquet.h).
 *
 *     LAKE/store=<name>/day=<day of arrival>/<number>-<random>.parquet     a batch
 *     LAKE/store=<name>/_log/<number>.json                                 its manifest: 1, 2, 3, …
 *
 * (1) A batch is committed when its manifest has its name, which only one shipper can give: a
 *     second one fails and looks again.
 * (2) Before that the Parquet file is complete and durable under another name (….tmp); after it, it
 *     gets its own. If a crash comes between, whoever reads the log next does it, before it writes
 *     the next manifest: only the file of the last manifest can lack its name. So no file is read
 *     that has no manifest.
 * (3) The manifest names, for each session, the events that the file has and the hashes before and
 *     after them. Read in order, manifests give the heads; one that does not continue is damage.
 */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "tools/export/parquet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { NAME_BYTES = 200, NUMBER_MAX = 99999999 };

struct row {
    const char *session;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    size_t at; /* of its texts: type, id, cause, data, one after the other */
    size_t lens[4];
};

struct ship_target {
    const struct lake_files_kind *kind;
    struct lake_files *files;
    struct lanes heads;    /* there: as the manifests say */
    uint64_t number;       /* of the last manifest that was read */
    char last[NAME_BYTES]; /* the file of the last manifest; "": it has its name */
    uint64_t events;
    bool to_write;
    bool prove; /* read the Parquet files, too */

    struct row *rows;
    size_t row_count, row_room, row_given;
    struct buf texts;
    annal_value values[8];
};

/* ---- Files ---- */

annal_status lake_store_name(const char *store, struct buf *out)
{
    annal_status status = annal__buf_printf(out, "store=");
    for (const char *c = store; *c != '\0' && status >= 0; c++)
        status = annal__buf_printf(out, strchr("/%\"\\", *c) != NULL || *c < ' ' ? "%%%02x" : "%c",
                                   (unsigned char)*c);
    return status;
}

static annal_status add_text(void *arg, const void *bytes, size_t len)
{
    return annal__buf_append(arg, bytes, len);
}

struct sum {
    struct hash_stream *stream;
    uint64_t bytes;
};

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
    "{\"annal_lake\":1,\"file\":\"%s\",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64                    \
    ",\"hash\":\"%016" PRIx64 "\"}\n"
#define PIECE_LINE                                                                                 \
    "{\"session\":\"%s\",\"first_seq\":%" PRIu64 ",\"h_before\":\"%016" PRIx64                     \
    "\",\"last_seq\":%" PRIu64 ",\"h\":\"%016" PRIx64 "\",\"at\":%" PRIu64 "}\n"
#define LAST_LINE "{\"pieces\":%zu,\"h\":\"%016" PRIx64 "\"}\n"

/* Whoever only reads may lack the right to do it. */
static annal_status settle(struct ship_target *lake, annal_error *err)
{
    if (lake->last[0] == '\0')
        return ANNAL_OK;
    annal_status status = lake->kind->settle(lake->files, lake->last, err);
    if (status >= 0)
        lake->last[0] = '\0';
    return lake->to_write ? status : ANNAL_OK;
}

static annal_status prove_file(struct ship_target *lake, const char *name, uint64_t bytes,
                               uint64_t hash, annal_error *err)
{
    struct sum sum = {annal__hash_begin(0), 0};
    if (sum.stream == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    annal_status status = lake->kind->read(lake->files, name, add_sum, &sum, err);
    if (status == ANNAL_ERR_NOTFOUND && settle(lake, err) >= 0) /* a shipper is about to do it */
        status = lake->kind->read(lake->files, name, add_sum, &sum, err);
    uint64_t has_hash = annal__hash_end(sum.stream);
    if (status == ANNAL_ERR_NOTFOUND)
        return annal__fail(err, ANNAL_ERR_CORRUPT, "ship: '%s' is missing",
                           lake->kind->place(lake->files, name));
    return status < 0 || (sum.bytes == bytes && has_hash == hash)
               ? status
               : annal__fail(err, ANNAL_ERR_CORRUPT, "ship: '%s' is not the file that was written",
                             lake->kind->place(lake->files, name));
}

static annal_status take_file(struct ship_target *lake, const char *line, annal_error *err)
{
    char name[NAME_BYTES];
    uint64_t rows, bytes, hash;
    if (sscanf(line,
               "{\"annal_lake\":1,\"file\":\"%199[^\"]\",\"rows\":%" SCNu64 ",\"bytes\":%" SCNu64
               ",\"hash\":\"%" SCNx64 "\"}",
               name, &rows, &bytes, &hash) != 4)
        return fail_manifest(lake->number + 1, "is of another version, or damaged", err);
    snprintf(lake->last, sizeof lake->last, "%s", name);
    lake->events += rows;
    return lake->prove ? prove_file(lake, name, bytes, hash, err) : ANNAL_OK;
}

static annal_status take_piece(struct ship_target *lake, const char *line, annal_error *err)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t first, before;
    struct place last;
    if (sscanf(line,
               "{\"session\":\"%200[^\"]\",\"first_seq\":%" SCNu64 ",\"h_before\":\"%" SCNx64
               "\",\"last_seq\":%" SCNu64 ",\"h\":\"%" SCNx64 "\",\"at\":%" SCNu64 "}",
               session, &first, &before, &last.seq, &last.h, &last.at) != 6)
        return fail_manifest(lake->number + 1, "is damaged", err);
    struct lane *lane = lane_of(&lake->heads, annal_slice_of(session));
    if (lane == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    if (lane->has_head ? first != lane->there.seq + 1 || before != lane->there.h : before != 0)
        return fail_manifest(lake->number + 1, "does not continue those before it", err);
    lane->has_head = true;
    lane->there = last;
    return ANNAL_OK;
}

/* Its bytes are proven before any of it counts. */
static annal_status read_manifest(struct ship_target *lake, char *text, size_t len,
                                  annal_error *err)
{
    size_t pieces = 0, said = 0;
    uint64_t h = 0;
    char *end = len > 1 ? memrchr(text, '\n', len - 1) : NULL;
    if (end == NULL || sscanf(end + 1, "{\"pieces\":%zu,\"h\":\"%" SCNx64 "\"}", &said, &h) != 2 ||
        h != annal__hash(text, (size_t)(end + 1 - text), 0))
        return fail_manifest(lake->number + 1, "is damaged", err);
    *end = '\0';
    char *rest = NULL, *line = strtok_r(text, "\n", &rest);
    annal_status status = take_file(lake, line != NULL ? line : "", err);
    while (status >= 0 && (line = strtok_r(NULL, "\n", &rest)) != NULL) {
        status = take_piece(lake, line, err);
        pieces++;
    }
    if (status >= 0 && pieces != said)
        status = fail_manifest(lake->number + 1, "is damaged", err);
    return status;
}

/* Those that were written since; then the file of the last one gets its name. */
static annal_status read_log(struct ship_target *lake, annal_error *err)
{
    struct buf text = {0};
    annal_status status = ANNAL_OK;
    while (status >= 0) {
        char name[NAME_BYTES];
        log_name(name, lake->number + 1);
        annal__buf_clear(&text);
        status = lake->kind->read(lake->files, name, add_text, &text, err);
        if (status >= 0 && annal__buf_cstr(&text) == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
        if (status >= 0)
            status = read_manifest(lake, text.ptr, text.len, err);
        if (status >= 0)
            lake->number++;
    }
    annal__buf_done(&text);
    return status == ANNAL_ERR_NOTFOUND ? settle(lake, err) : status;
}

/* ---- Opening ---- */

static void lake_close(struct ship_target *lake)
{
    if (lake == NULL)
        return;
    lake->kind->close(lake->files);
    lanes_done(&lake->heads);
    annal__buf_done(&lake->texts);
    annal__free(lake->rows);
    annal__free(lake);
}

static annal_status lake_open(const struct lake_files_kind *kind, const struct ship_where *where,
                              bool to_write, struct ship_target **out_target, annal_error *err)
{
    struct ship_target *lake = annal__zalloc(sizeof *lake);
    if (lake == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    lake->kind = kind;
    lake->to_write = to_write;
    annal_status status = kind->open(where, to_write, &lake->files, err);
    if (status >= 0)
        status = read_log(lake, err);
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

static int give_head(void *arg, struct lane *lane)
{
    struct heads *heads = arg;
    if (lane->has_head)
        heads->status =
            heads->fn(heads->arg, annal_slice_of(lane->session), &lane->there, heads->err);
    return heads->status < 0;
}

static annal_status lake_heads(struct ship_target *lake, head_fn fn, void *arg, annal_error *err)
{
    struct heads heads = {fn, arg, err, read_log(lake, err)};
    if (heads.status >= 0)
        (void)lanes_each(&lake->heads, give_head, &heads);
    return heads.status;
}

/* ---- A batch ---- */

static annal_status lake_begin(struct ship_target *lake, struct lane **lanes, size_t count,
                               annal_error *err)
{
    annal_status status = read_log(lake, err);
    lake->row_count = lake->row_given = 0;
    annal__buf_clear(&lake->texts);
    for (size_t i = 0; status >= 0 && i < count; i++) {
        const struct lane *head = lane_of(&lake->heads, annal_slice_of(lanes[i]->session));
        if (head == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
        lanes[i]->has_head = head->has_head || lanes[i]->info != NULL;
        lanes[i]->there = head->has_head ? head->there
                          : lanes[i]->info != NULL
                              ? (struct place){.seq = lanes[i]->info->first_seq - 1}
                              : (struct place){0};
    }
    return status;
}

static annal_status lake_put(struct ship_target *lake, const struct lane *lane,
                             const annal_event *event, annal_error *err)
{
    const annal_slice texts[] = {event->type, event->id, event->cause, event->data};
    struct row row = {lane->session, event->seq, event->ts_us, event->h, lake->texts.len, {0}};
    annal_status status = ANNAL_OK;
    if (lake->row_count == lake->row_room) {
        size_t room = lake->row_room == 0 ? 4096 : lake->row_room * 2;
        struct row *rows = annal__realloc_array(lake->rows, room, sizeof *rows);
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
    const struct row *row = &lake->rows[lake->row_given++];
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

static annal_status write_rows(struct ship_target *lake, const char *path, annal_error *err)
{
    static const struct parquet_column columns[] = {
        {"session_id", PARQUET_TEXT}, {"seq", PARQUET_INTEGER}, {"timestamp", PARQUET_TIME},
        {"type", PARQUET_TEXT},       {"id", PARQUET_TEXT},     {"cause", PARQUET_TEXT},
        {"data", PARQUET_TEXT},       {"h", PARQUET_INTEGER}};
    struct parquet *parquet = NULL;
    int exit_status = parquet_open(path, &parquet);
    if (exit_status == 0)
        exit_status = parquet_write(parquet, columns, 8, next_row, lake);
    parquet_close(parquet);
    return exit_status == 0 ? ANNAL_OK
                            : annal__fail(err, ANNAL_ERR_IO, "ship: no Parquet file was written");
}

static annal_status print_manifest(const struct ship_target *lake, const char *name,
                                   const struct sum *sum, uint64_t hash, struct lane **lanes,
                                   size_t count, struct buf *text)
{
    size_t pieces = 0;
    annal_status status =
        annal__buf_printf(text, HEAD_LINE, name, (uint64_t)lake->row_count, sum->bytes, hash);
    for (size_t i = 0; i < count && status >= 0; i++) {
        const struct place *from = &lanes[i]->there, *to = &lanes[i]->next;
        if (to->seq == from->seq)
            continue;
        status = annal__buf_printf(text, PIECE_LINE, lanes[i]->session, from->seq + 1, from->h,
                                   to->seq, to->h, to->at);
        pieces++;
    }
    if (status >= 0)
        status = annal__buf_printf(text, LAST_LINE, pieces, annal__hash(text->ptr, text->len, 0));
    return status;
}

static annal_status sum_file(const char *path, struct sum *sum, uint64_t *out_hash,
                             annal_error *err)
{
    static char piece[1 << 16];
    FILE *file = fopen(path, "rbe");
    *sum = (struct sum){annal__hash_begin(0), 0};
    for (size_t len;
         file != NULL && sum->stream != NULL && (len = fread(piece, 1, sizeof piece, file)) > 0;)
        (void)add_sum(sum, piece, len);
    annal_status status = file == NULL || sum->stream == NULL || ferror(file)
                              ? annal__fail_errno(err, "ship: read '%s'", path)
                              : ANNAL_OK;
    *out_hash = sum->stream != NULL ? annal__hash_end(sum->stream) : 0;
    if (file != NULL)
        fclose(file);
    return status;
}

/* The file is at path; its manifest makes it part of the lake. */
static annal_status commit_file(struct ship_target *lake, const char *name, const char *path,
                                struct lane **lanes, size_t count, annal_error *err)
{
    char manifest[NAME_BYTES];
    struct buf text = {0};
    struct sum sum;
    uint64_t hash;
    annal_status status = sum_file(path, &sum, &hash, err);
    if (status >= 0 && print_manifest(lake, name, &sum, hash, lanes, count, &text) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    if (status >= 0)
        status = lake->kind->stage(lake->files, name, path, err);
    bool is_staged = status >= 0;
    log_name(manifest, lake->number + 1);
    if (is_staged)
        status = lake->kind->create(lake->files, manifest, annal__buf_slice(&text), err);
    annal__buf_done(&text);
    /* After another failure the manifest may be there: then its file is needed. */
    if (!is_staged || status == ANNAL_ERR_CONFLICT)
        lake->kind->drop(lake->files, name, path);
    return status != ANNAL_ERR_CONFLICT
               ? status
               : annal__fail(err, ANNAL_ERR_BUSY,
                             "ship: another shipper wrote to the lake meanwhile"); /* rule 1 */
}

static annal_status lake_commit(struct ship_target *lake, struct lane **lanes, size_t count,
                                annal_error *err)
{
    char now[ANNAL_TIME_BYTES], name[NAME_BYTES], path[PATH_BYTES];
    uint32_t chance = 0;
    if (lake->row_count == 0)
        return ANNAL_OK;
    if (lake->number >= NUMBER_MAX || getrandom(&chance, sizeof chance, 0) < 0)
        return annal__fail(err, ANNAL_ERR_LIMIT, "ship: the lake has too many files");
    annal_time_format(annal__system_clock.wall_us(annal__system_clock.arg), now);
    snprintf(name, sizeof name, "day=%.10s/%08" PRIu64 "-%08x.parquet", now, lake->number + 1,
             chance);
    annal_status status = lake->kind->local(lake->files, name, path, err);
    if (status >= 0)
        status = write_rows(lake, path, err);
    if (status >= 0)
        status = commit_file(lake, name, path, lanes, count, err);
    if (status < 0)
        return status;
    return read_log(lake, err); /* rule 2: this gives the file its name */
}

static annal_status lake_prove(struct ship_target *lake, uint64_t *out_events, annal_error *err)
{
    lanes_done(&lake->heads);
    lake->number = lake->events = 0;
    lake->prove = true;
    annal_status status = read_log(lake, err);
    *out_events = lake->events;
    return status;
}

#ifdef ANNAL_SHIP_S3
static annal_status open_bucket(const struct ship_where *where, bool to_write,
                                struct ship_target **out_target, annal_error *err)
{
    return lake_open(&lake_s3, where, to_write, out_target, err);
}

const struct ship_kind ship_bucket = {.pace_ms = 60000,
                                      .open = open_bucket,
                                      .close = lake_close,
                                      .heads = lake_heads,
                                      .begin = lake_begin,
                                      .put = lake_put,
                                      .commit = lake_commit,
                                      .prove = lake_prove};
#endif

const struct ship_kind ship_lake = {.pace_ms = 60000,
                                    .open = open_dir,
                                    .close = lake_close,
                                    .heads = lake_heads,
                                    .begin = lake_begin,
                                    .put = lake_put,
                                    .commit = lake_commit,
                                    .prove = lake_prove};
