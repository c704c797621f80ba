/*
 * A lake: a directory of Parquet files, which DuckDB, ClickHouse and Spark read. DuckDB's library
 * writes them (tools/export/parquet.h).
 *
 *     LAKE/store=<name>/day=<day of arrival>/<number>-<random>.parquet     a batch
 *     LAKE/store=<name>/_log/<number>.json                                 its manifest: 1, 2, 3, …
 *
 * (1) A batch is committed when its manifest has its name, which only one shipper can give: the
 *     name is linked, not renamed, so a second one fails and looks again.
 * (2) Before that the Parquet file is complete and synced under another name (….tmp); after it, it
 *     gets its own. If a crash comes between, whoever reads the log next does it. So no file is
 *     read that has no manifest.
 * (3) The manifest names, for each session, the events that the file has and the hashes before and
 *     after them. Read in order, manifests give the heads; one that does not continue is damage.
 */
#include "tools/ship/ship.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "tools/export/parquet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 1024, NUMBER_MAX = 99999999 };

struct row {
    const char *session;
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
    size_t at; /* of its texts: type, id, cause, data, one after the other */
    size_t lens[4];
};

struct ship_target {
    char root[PATH_BYTES / 2]; /* LAKE/store=<name> */
    struct lanes heads;        /* there: as the manifests say */
    uint64_t number;           /* of the last manifest that was read */
    uint64_t events;
    bool prove; /* read the Parquet files, too */

    struct row *rows;
    size_t row_count, row_room, row_given;
    struct buf texts;
    annal_value values[8];
};

/* ---- Files ---- */

static void path_of(const struct ship_target *lake, char path[PATH_BYTES], const char *name)
{
    snprintf(path, PATH_BYTES, "%s/%s", lake->root, name);
}

static void log_path(const struct ship_target *lake, char path[PATH_BYTES], uint64_t number,
                     const char *end)
{
    snprintf(path, PATH_BYTES, "%s/_log/%08" PRIu64 ".json%s", lake->root, number, end);
}

static annal_status fail_file(annal_error *err, const char *what, const char *path)
{
    return annal__fail_errno(err, "ship: %s '%s'", what, path);
}

/* Sync a file, or the directory in which a file got its name. */
static annal_status sync_path(const char *path, bool its_directory, annal_error *err)
{
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "%s", path);
    if (its_directory)
        *strrchr(name, '/') = '\0';
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) < 0;
    annal_status status = failed ? fail_file(err, "sync", name) : ANNAL_OK;
    if (fd >= 0)
        close(fd);
    return status;
}

static annal_status make_directories(const char *path, annal_error *err)
{
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "%s", path);
    for (char *slash = strchr(name + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(name, 0777) < 0 && errno != EEXIST)
            return fail_file(err, "make", name);
        *slash = '/';
    }
    return ANNAL_OK;
}

static annal_status hash_file(const char *path, uint64_t *out_bytes, uint64_t *out_hash,
                              annal_error *err)
{
    static char piece[1 << 16];
    struct hash_stream *stream = annal__hash_begin(0);
    FILE *file = fopen(path, "rbe");
    *out_bytes = 0;
    for (size_t len;
         file != NULL && stream != NULL && (len = fread(piece, 1, sizeof piece, file)) > 0;
         *out_bytes += len)
        annal__hash_add(stream, piece, len);
    annal_status status =
        file == NULL || stream == NULL || ferror(file) ? fail_file(err, "read", path) : ANNAL_OK;
    *out_hash = stream != NULL ? annal__hash_end(stream) : 0;
    if (file != NULL)
        fclose(file);
    return status;
}

/* ---- Manifests ---- */

static annal_status fail_manifest(uint64_t number, const char *what, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT, "ship: manifest %08" PRIu64 " of the lake %s",
                       number, what);
}

#define HEAD_LINE                                                                                  \
    "{\"annal_lake\":1,\"file\":\"%s\",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64                    \
    ",\"hash\":\"%016" PRIx64 "\"}\n"
#define PIECE_LINE                                                                                 \
    "{\"session\":\"%s\",\"first_seq\":%" PRIu64 ",\"h_before\":\"%016" PRIx64                     \
    "\",\"last_seq\":%" PRIu64 ",\"h\":\"%016" PRIx64 "\",\"at\":%" PRIu64 "}\n"
#define LAST_LINE "{\"pieces\":%zu,\"h\":\"%016" PRIx64 "\"}\n"

/* Rule 2: give the file its name if that was not done, and prove it if asked for. */
static annal_status settle_file(struct ship_target *lake, const char *line, annal_error *err)
{
    char name[200], path[PATH_BYTES], tmp[PATH_BYTES];
    uint64_t rows, bytes, hash, has_bytes, has_hash;
    if (sscanf(line,
               "{\"annal_lake\":1,\"file\":\"%199[^\"]\",\"rows\":%" SCNu64 ",\"bytes\":%" SCNu64
               ",\"hash\":\"%" SCNx64 "\"}",
               name, &rows, &bytes, &hash) != 4)
        return fail_manifest(lake->number + 1, "is of another version, or damaged", err);
    path_of(lake, path, name);
    snprintf(tmp, sizeof tmp, "%.*s.tmp", PATH_BYTES - 5, path);
    if (rename(tmp, path) == 0) {
        annal_status status = sync_path(path, true, err);
        if (status < 0)
            return status;
    }
    lake->events += rows;
    if (!lake->prove)
        return ANNAL_OK;
    annal_status status = hash_file(path, &has_bytes, &has_hash, err);
    return status < 0 || (has_bytes == bytes && has_hash == hash)
               ? status
               : annal__fail(err, ANNAL_ERR_CORRUPT, "ship: '%s' is not the file that was written",
                             path);
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
    annal_status status = settle_file(lake, line != NULL ? line : "", err);
    while (status >= 0 && (line = strtok_r(NULL, "\n", &rest)) != NULL) {
        status = take_piece(lake, line, err);
        pieces++;
    }
    if (status >= 0 && pieces != said)
        status = fail_manifest(lake->number + 1, "is damaged", err);
    return status;
}

/* Those that were written since. */
static annal_status read_log(struct ship_target *lake, annal_error *err)
{
    annal_status status = ANNAL_OK;
    while (status >= 0) {
        char path[PATH_BYTES], *text = NULL;
        size_t room = 0;
        log_path(lake, path, lake->number + 1, "");
        FILE *file = fopen(path, "re");
        if (file == NULL && errno == ENOENT)
            return ANNAL_OK;
        ssize_t len = file != NULL ? getdelim(&text, &room, '\0', file) : -1;
        status =
            len < 0 ? fail_file(err, "read", path) : read_manifest(lake, text, (size_t)len, err);
        free(text);
        if (file != NULL)
            fclose(file);
        if (status >= 0)
            lake->number++;
    }
    return status;
}

/* ---- Opening ---- */

static void lake_close(struct ship_target *lake)
{
    if (lake == NULL)
        return;
    lanes_done(&lake->heads);
    annal__buf_done(&lake->texts);
    annal__free(lake->rows);
    annal__free(lake);
}

static annal_status lake_open(const struct ship_where *where, bool to_write,
                              struct ship_target **out_target, annal_error *err)
{
    char path[PATH_BYTES];
    struct buf root = {.limit = PATH_BYTES / 2 - 1};
    struct ship_target *lake = annal__zalloc(sizeof *lake);
    annal_status status = annal__buf_printf(&root, "%s/store=", where->url + strlen("file://"));
    for (const char *c = where->store; *c != '\0' && status >= 0; c++)
        status = annal__buf_printf(
            &root, strchr("/%\"\\", *c) != NULL || *c < ' ' ? "%%%02x" : "%c", (unsigned char)*c);
    if (lake == NULL || status < 0 || annal__buf_cstr(&root) == NULL)
        status = annal__fail(err, ANNAL_ERR_INVALID, "ship: the path of the lake is too long");
    if (status >= 0) {
        memcpy(lake->root, root.ptr, root.len);
        log_path(lake, path, 1, "");
        if (to_write)
            status = make_directories(path, err);
    }
    annal__buf_done(&root);
    if (status >= 0)
        status = read_log(lake, err);
    if (status >= 0 && !to_write && lake->number == 0)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "ship: nothing was shipped to '%s' yet",
                             lake->root);
    if (status < 0) {
        lake_close(lake);
        return status;
    }
    *out_target = lake;
    return ANNAL_OK;
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

static annal_status write_manifest(const struct ship_target *lake, const char *name,
                                   const char *file, struct lane **lanes, size_t count,
                                   annal_error *err)
{
    char path[PATH_BYTES], tmp[PATH_BYTES];
    struct buf text = {0};
    uint64_t bytes, hash;
    size_t pieces = 0;
    annal_status status = hash_file(file, &bytes, &hash, err);
    if (status >= 0)
        status = annal__buf_printf(&text, HEAD_LINE, name, (uint64_t)lake->row_count, bytes, hash);
    for (size_t i = 0; i < count && status >= 0; i++) {
        const struct place *from = &lanes[i]->there, *to = &lanes[i]->next;
        if (to->seq == from->seq)
            continue;
        status = annal__buf_printf(&text, PIECE_LINE, lanes[i]->session, from->seq + 1, from->h,
                                   to->seq, to->h, to->at);
        pieces++;
    }
    if (status >= 0)
        status = annal__buf_printf(&text, LAST_LINE, pieces, annal__hash(text.ptr, text.len, 0));
    log_path(lake, path, lake->number + 1, "");
    snprintf(tmp, sizeof tmp, "%.*s.tmp", PATH_BYTES - 5, file);
    FILE *out = status >= 0 ? fopen(tmp, "we") : NULL;
    bool written = out != NULL && fwrite(text.ptr, 1, text.len, out) == text.len;
    written = out != NULL && fclose(out) == 0 && written;
    if (status >= 0 && !written)
        status = fail_file(err, "write", tmp);
    if (status >= 0)
        status = sync_path(tmp, false, err);
    if (status >= 0 && link(tmp, path) < 0) /* rule 1 */
        status = errno == EEXIST ? annal__fail(err, ANNAL_ERR_BUSY,
                                               "ship: another shipper wrote to the lake meanwhile")
                                 : fail_file(err, "write", path);
    (void)unlink(tmp);
    annal__buf_done(&text);
    return status < 0 ? status : sync_path(path, true, err);
}

static annal_status lake_commit(struct ship_target *lake, struct lane **lanes, size_t count,
                                annal_error *err)
{
    char now[ANNAL_TIME_BYTES], name[100], path[PATH_BYTES], tmp[PATH_BYTES];
    uint32_t chance = 0;
    if (lake->row_count == 0)
        return ANNAL_OK;
    if (lake->number >= NUMBER_MAX || getrandom(&chance, sizeof chance, 0) < 0)
        return annal__fail(err, ANNAL_ERR_LIMIT, "ship: the lake has too many files");
    annal_time_format(annal__system_clock.wall_us(annal__system_clock.arg), now);
    snprintf(name, sizeof name, "day=%.10s/%08" PRIu64 "-%08x.parquet", now, lake->number + 1,
             chance);
    path_of(lake, path, name);
    snprintf(tmp, sizeof tmp, "%.*s.tmp", PATH_BYTES - 5, path);
    annal_status status = make_directories(path, err);
    if (status >= 0)
        status = write_rows(lake, tmp, err);
    if (status >= 0)
        status = write_manifest(lake, name, tmp, lanes, count, err);
    if (status < 0) {
        (void)unlink(tmp);
        return status;
    }
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

const struct ship_kind ship_lake = {.pace_ms = 60000,
                                    .open = lake_open,
                                    .close = lake_close,
                                    .heads = lake_heads,
                                    .begin = lake_begin,
                                    .put = lake_put,
                                    .commit = lake_commit,
                                    .prove = lake_prove};
