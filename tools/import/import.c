/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports one file.
 *
 * (1) Memory does not grow with the file: the file is read in chunks, its lines are passed to the
 *     importer in batches, and their events to the store in appends of limited size. In a line
 *     longer than ANNAL_IMPORT_LINE_BYTES_MAX, long strings become artifacts (long_strings.h); if
 *     the line is still longer, it is passed in pieces.
 * (2) Nothing is appended twice. The id of an event identifies its source; the ids of a session are
 *     read from its journal when the file first touches it. (unchanged.h is a hint that saves
 *     reading a log; nothing depends on it.)
 * (3) A last line without a line break may be incomplete. It is imported if it is a whole JSON
 *     object or array, which no further byte can turn into another; otherwise it waits, as
 *     unfinished. In a log that is text, it always waits.
 * (4) Every byte of a large file is written once: events are written to their journals at level os.
 *     They are made durable at the end of the file, before anything is reported, and every
 *     SYNC_BYTES. Several small files may be made durable together: then nothing is reported, noted
 *     or copied before, and before the journal of one of their sessions is read. After a power cut
 *     each session has a prefix of its events, and by (2) the next import adds the rest.
 * (5) Time 1 means that an event has no time in its line; so does a time that cannot be right: the
 *     epoch, or later than a day from now. It receives the time of the event before it, else the
 *     time of the next event with a time, if that is read before the append, else the time of the
 *     file; "time" in its data names the source.
 * (6) A byte order mark, and the CR of CRLF, are part of the file's encoding, not of a line.
 */
#include "tools/import/import.h"

#include "index/sys/import.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/sys/session_trim.h"
#include "tools/cli/must.h"
#include "tools/import/detect.h"
#include "tools/import/import_job.h"
#include "tools/import/source_container.h"
#include "tools/source/copies_zstd.h"

#include <annal/import.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES  ((size_t)1 << 20)
#define BATCH_LINES 512
#define BATCH_BYTES ((size_t)4 << 20)

/* Size in bytes from which a file is imported at level os. The events of a smaller file are written
 * through the commit log: twice the bytes, but fewer syncs. */
#define LARGE_BYTES ((off_t)256 << 10)

/* ---- Lines ---- */

/* Begin the turn of the log: check what was guessed, and take the events that were kept. */
static annal_status begin_turn(struct import_job *job, annal_error *err)
{
    struct ahead *ahead = job->ahead;
    annal_error *own = &job->turn_err;
    job->ahead = NULL;
    if (ahead != NULL && !job->options->turn(job->options->turn_arg, true)) {
        job->turn_status = annal__fail(own, ANNAL_ERR_CLOSED, "an earlier log failed");
    } else if (ahead != NULL && !ahead_holds(ahead)) {
        job->guessed_wrong = true;
        job->turn_status = annal__fail(own, ANNAL_ERR_CONFLICT, "an earlier log has its records");
    } else if (ahead != NULL) {
        job->turn_status = ahead_give(ahead, import_take_event, job, own);
    }
    ahead_free(ahead);
    if (job->turn_status < 0 && err != NULL)
        *err = *own;
    return job->turn_status;
}

static annal_status take_event(void *arg, const annal_import_event *event, annal_error *err)
{
    struct import_job *job = arg;
    if (job->ahead != NULL) {
        ahead_add(job->ahead, event);
        return ANNAL_OK;
    }
    annal_status status = begin_turn(job, err);
    return status < 0 ? status : import_take_event(job, event, err);
}

static annal_status feed(struct import_job *job, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (job->ahead != NULL &&
        (ahead_is_full(job->ahead) || job->options->turn(job->options->turn_arg, false)))
        status = begin_turn(job, err);
    if (status >= 0)
        status = annal_import_feed(job->import, job->lines, job->line_count, take_event, job, err);
    job->line_count = 0;
    job->line_bytes = 0;
    return status;
}

static annal_status add_line(struct import_job *job, annal_slice bytes, uint32_t part,
                             annal_error *err)
{
    job->lines[job->line_count++] =
        (annal_import_line){.number = job->number + 1, .part = part, .bytes = bytes};
    job->line_bytes += bytes.len;
    if (job->line_count == job->batch_lines || job->line_bytes >= BATCH_BYTES)
        return feed(job, err);
    return ANNAL_OK;
}

/* Pass the complete pieces of *inout, the beginning of a line that is too long, to the importer,
 * and remove them from *inout. With whole, pass the last, incomplete piece, too. */
static annal_status add_pieces(struct import_job *job, annal_slice *inout, bool whole,
                               annal_error *err)
{
    annal_status status = ANNAL_OK;
    while (status >= 0 && (inout->len >= ANNAL_IMPORT_PIECE_BYTES || (whole && inout->len > 0))) {
        size_t len = inout->len < ANNAL_IMPORT_PIECE_BYTES ? inout->len : ANNAL_IMPORT_PIECE_BYTES;
        status = add_line(job, (annal_slice){inout->ptr, len}, ++job->parts, err);
        *inout = (annal_slice){inout->ptr + len, inout->len - len};
    }
    return status;
}

/* Pass a complete line to the importer, without its CR. If it is too long, store its long strings
 * first, or pass it in pieces. */
static annal_status end_line(struct import_job *job, annal_slice bytes, annal_error *err)
{
    annal_status status = ANNAL_OK;
    SCOPED_BUF own = {0};
    if (bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\r')
        bytes.len--;
    if (job->parts == 0 && bytes.len > ANNAL_IMPORT_LINE_BYTES_MAX) {
        must_append_slice(&own, bytes);
        status = begin_turn(job, err);
        if (status >= 0)
            status = long_strings_move(&job->strings, &own, err);
        bytes = annal__buf_slice(&own);
    }
    if (status >= 0 && (job->parts > 0 || bytes.len > ANNAL_IMPORT_LINE_BYTES_MAX))
        status = add_pieces(job, &bytes, true, err);
    else if (status >= 0)
        status = add_line(job, bytes, 0, err);
    if (status >= 0 && own.len > 0)
        status = feed(job, err);
    job->number++;
    job->parts = 0;
    return status;
}

/* Shorten the incomplete, too long line at the beginning of the buffer: store its long strings, or
 * pass its pieces to the importer. */
static annal_status shorten_rest(struct import_job *job, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (job->strings.open)
        return status;
    if (job->parts == 0 && job->read.len > ANNAL_IMPORT_LINE_BYTES_MAX)
        status = begin_turn(job, err);
    if (status >= 0 && job->parts == 0 && job->read.len > ANNAL_IMPORT_LINE_BYTES_MAX)
        status = long_strings_move(&job->strings, &job->read, err);
    if (status < 0 || job->strings.open ||
        (job->parts == 0 && job->read.len <= ANNAL_IMPORT_LINE_BYTES_MAX))
        return status;
    annal_slice rest = annal__buf_slice(&job->read);
    status = add_pieces(job, &rest, false, err);
    if (status >= 0)
        status = feed(job, err);
    annal__buf_consume(&job->read, job->read.len - rest.len);
    return status;
}

/* Pass the complete lines of the buffer to the importer. The beginning of the next line remains in
 * the buffer. */
static annal_status take_lines(struct import_job *job, annal_error *err)
{
    annal_status status = ANNAL_OK;
    annal_slice rest = annal__buf_slice(&job->read);
    size_t scanned = job->scanned;
    uint64_t first = job->number;
    while (status >= 0) {
        const char *from = rest.ptr + scanned;
        const char *newline = rest.len > scanned ? memchr(from, '\n', rest.len - scanned) : NULL;
        if (newline == NULL)
            break;
        scanned = 0;
        size_t len = (size_t)(newline - rest.ptr);
        status = end_line(job, (annal_slice){rest.ptr, len}, err);
        rest = (annal_slice){rest.ptr + len + 1, rest.len - len - 1};
    }
    if (status >= 0)
        status = feed(job, err);
    annal__buf_consume(&job->read, job->read.len - rest.len);
    if (job->number > first)
        long_strings_done(&job->strings);
    if (status >= 0)
        status = shorten_rest(job, err);
    job->scanned = job->read.len;
    return status;
}

static bool is_blank(annal_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        if (strchr(" \t\r", bytes.ptr[i]) == NULL || bytes.ptr[i] == '\0')
            return false;
    }
    return true;
}

/* Pass the bytes after the last line break to the importer if they are a complete line (rule 3
 * above); otherwise count them as unfinished. */
static annal_status take_last(struct import_job *job, annal_error *err)
{
    annal_slice rest = annal__buf_slice(&job->read);
    while (rest.len > 0 && strchr(" \t\r", rest.ptr[rest.len - 1]) != NULL &&
           rest.ptr[rest.len - 1] != '\0')
        rest.len--;
    bool closed = rest.len > 0 && (rest.ptr[rest.len - 1] == '}' || rest.ptr[rest.len - 1] == ']');
    rest = annal__buf_slice(&job->read);
    if (rest.len == 0 && job->parts == 0)
        return ANNAL_OK;
    if (job->parts > 0) {
        /* pieces of this line were imported; the last piece follows when the line is complete */
        job->number++;
        return ANNAL_OK;
    }
    if (!importer_reads_text(job->text) &&
        (is_blank(rest) ||
         (closed && annal__json_check(rest, JSON_DEPTH_MAX, NULL) == JSON_VALID))) {
        annal_status status = end_line(job, rest, err);
        return status < 0 ? status : feed(job, err);
    }
    job->number++;
    job->report.unfinished++;
    return ANNAL_OK;
}

/* ---- The file ---- */

static void note_seen(struct import_job *job, const char *bytes, size_t len)
{
    if (job->offset < SEEN_BYTES) {
        size_t room = SEEN_BYTES - (size_t)job->offset;
        memcpy(job->head + job->offset, bytes, len < room ? len : room);
    }
    size_t keep = len < SEEN_BYTES ? SEEN_BYTES - len : 0;
    size_t from = len < SEEN_BYTES ? 0 : len - SEEN_BYTES;
    memmove(job->tail, job->tail + SEEN_BYTES - keep, keep);
    memcpy(job->tail + keep, bytes + from, len - from);
    job->offset += len;
}

static annal_status read_more(struct import_job *job, annal_error *err)
{
    must_reserve(&job->read, READ_BYTES);
    char *into = job->read.ptr + job->read.len;
    size_t most = READ_BYTES;
    if (job->is_log && job->number == 0 && job->judged - job->offset < most)
        most = (size_t)(job->judged - job->offset);
    ssize_t got = read(job->fd, into, most);
    if (got < 0)
        return annal__fail_errno(err, "cannot read the log");
    note_seen(job, into, (size_t)got);
    size_t from = job->read.len;
    job->read.len += (size_t)got;
    job->at_end = got == 0;
    return job->strings.open ? long_strings_more(&job->strings, &job->read, from, err) : ANNAL_OK;
}

/* Remove a byte order mark at the beginning of the file. */
static void drop_mark(struct import_job *job)
{
    if (job->offset == job->read.len && job->read.len >= 3 &&
        memcmp(job->read.ptr, "\xEF\xBB\xBF", 3) == 0) {
        annal__buf_consume(&job->read, 3);
        job->scanned = 0;
    }
}

static bool wants_to_stop(const struct import_job *job)
{
    return job->options != NULL && job->options->stop != NULL &&
           job->options->stop(job->options->arg);
}

/* Append an event that the importer adds at the end of the log, and remember its id: more lines may
 * follow, and then the end is processed again. */
static annal_status take_end(void *arg, const annal_import_event *event, annal_error *err)
{
    struct import_job *job = arg;
    annal_status status = import_take_event(job, event, err);
    return status < 0 ? status
                      : annal__import_remember(job->import, event->session, event->draft.id, err);
}

static annal_status import_lines(struct import_job *job, enum import_until until, annal_error *err)
{
    annal_error second = {0};
    bool stopped = false;
    bool reads = until == IMPORT_WHOLE || until == IMPORT_LAST;
    annal_status status = reads ? read_more(job, err) : ANNAL_OK;
    while (reads && status >= 0 && !job->at_end && !stopped) {
        drop_mark(job);
        status = take_lines(job, err);
        if (status >= 0 && job->ahead == NULL && job->options != NULL &&
            job->options->progress != NULL)
            job->options->progress(job->options->arg, job->offset - job->read.len);
        stopped = wants_to_stop(job);
        if (status >= 0 && !stopped)
            status = read_more(job, err);
    }
    if (status >= 0 && (until == IMPORT_LAST || until == IMPORT_REST) && !stopped)
        status = take_last(job, err);
    annal_status turned = begin_turn(job, status < 0 ? &second : err);
    if (turned < 0 && status < 0 && err != NULL)
        *err = second;
    status = turned < 0 ? turned : status;
    if (status >= 0 && until != IMPORT_WHOLE && !stopped)
        status = annal__import_end(job->import, take_end, job, err);
    if (status >= 0 && (until == IMPORT_LAST || until == IMPORT_REST) && !stopped)
        status = import_note_unknown(job, err);
    if (status >= 0 && until == IMPORT_LAST && !stopped && job->is_whole && !job->is_log)
        status = import_note_recovered(job, err);
    /* free the empty buffer, because the next bytes may arrive much later */
    if (job->read.len == 0)
        annal__buf_done(&job->read);
    return status;
}

annal_status import_take(struct import_job *job, enum import_until until, annal_error *err)
{
    annal_error second = {0};
    if (job->failed)
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "import '%s': the import of this log failed earlier", job->path);
    annal_status status = import_lines(job, until, err);
    if (status >= 0)
        status = import_flush(job, err);
    bool alone = job->options == NULL || job->options->group == NULL;
    annal_status synced = alone ? annal_store_sync(job->store, &second) : ANNAL_OK;
    job->report.store_failed |= synced < 0;
    if (status >= 0 && synced < 0) {
        status = synced;
        if (err != NULL)
            *err = second;
    }
    if (!job->guessed_wrong) /* else the log is read again, as if it had asked nothing */
        owners_pause(job->options != NULL ? job->options->owners : NULL);
    annal_import_counts counts = annal_import_counts_get(job->import);
    job->report.imported = counts.imported;
    job->report.blank = counts.blank;
    job->report.duplicate = counts.duplicate;
    job->report.lines = job->number;
    /* from now on the log grows by few bytes at a time, so write through the commit log */
    job->level = ANNAL_LEVEL_BATCH;
    job->failed = status < 0;
    if (status < 0)
        annal__error_context(err, "import '%s'", job->path);
    return status;
}

void import_report_done(struct import_report *report)
{
    annal__free(report->sessions);
    *report = (struct import_report){0};
}

size_t import_memory(const struct import_job *job)
{
    return annal__import_memory(job->import);
}

struct import_report *import_report(struct import_job *job)
{
    return &job->report;
}

bool import_is_log(const struct import_job *job)
{
    return job->is_log;
}

/* Before its first line was read, a file of lines may still become a document; then it must be
 * opened again. */
bool import_can_go_on(const struct import_job *job)
{
    return job->is_log && !job->failed && job->number > 0;
}

static bool still_holds(const struct import_job *job, off_t at, const char *seen, size_t len)
{
    char bytes[SEEN_BYTES];
    return pread(job->fd, bytes, len, at) == (ssize_t)len && memcmp(bytes, seen, len) == 0;
}

enum import_change import_change_of(const struct import_job *job, const char *path)
{
    struct stat here, there;
    size_t len = job->offset < SEEN_BYTES ? (size_t)job->offset : SEEN_BYTES;
    if (stat(path, &there) < 0 || fstat(job->fd, &here) < 0 || here.st_ino != there.st_ino ||
        here.st_dev != there.st_dev)
        return IMPORT_OTHER;
    return (uint64_t)here.st_size >= job->offset && still_holds(job, 0, job->head, len) &&
                   still_holds(job, (off_t)(job->offset - len), job->tail + SEEN_BYTES - len, len)
               ? IMPORT_SAME
               : IMPORT_REWRITTEN;
}

/* ---- Opening ---- */

static bool take_spare(struct import_job *job, const annal_import_source *source)
{
    struct import_spares *spares = job->options != NULL ? job->options->spares : NULL;
    for (size_t i = 0; spares != NULL && i < IMPORT_SPARES && job->import == NULL; i++) {
        struct import_spare *spare = &spares->all[i];
        if (spare->import == NULL || spare->sql != job->sql)
            continue;
        if (annal__import_again(spare->import, source, NULL) == ANNAL_OK)
            job->import = spare->import;
        else
            annal_import_close(spare->import);
        spare->import = NULL;
    }
    return job->import != NULL;
}

/* Keep the prepared importer of this job for the next log of the same kind, unless one is kept
 * already. */
static void leave_spare(struct import_job *job)
{
    struct import_spares *spares = job->options != NULL ? job->options->spares : NULL;
    size_t place = IMPORT_SPARES;
    if (spares == NULL || job->failed || job->import == NULL)
        return;
    for (size_t i = 0; i < IMPORT_SPARES; i++) {
        if (spares->all[i].import != NULL && spares->all[i].sql == job->sql)
            return;
        place = spares->all[i].import == NULL ? i : place;
    }
    if (place == IMPORT_SPARES)
        place = spares->next++ % IMPORT_SPARES;
    annal_import_close(spares->all[place].import);
    spares->all[place] = (struct import_spare){.import = job->import, .sql = job->sql};
    job->import = NULL;
}

void import_spares_done(struct import_spares *spares)
{
    for (size_t i = 0; i < IMPORT_SPARES; i++)
        annal_import_close(spares->all[i].import);
    copies_zstd_free(spares->zstd);
    *spares = (struct import_spares){0};
}

/* Return the name of the directory that contains a file; slash is the last / of its path, or NULL,
 * and then the name is empty. */
static annal_slice directory_name(const char *path, const char *slash)
{
    const char *from = slash;
    while (from != NULL && from > path && from[-1] != '/')
        from--;
    return (annal_slice){from, (size_t)(slash - from)};
}

static annal_slice find_owner(void *arg, annal_slice origin, annal_slice session)
{
    struct import_job *job = arg;
    return job->ahead != NULL ? ahead_owner(job->ahead, origin, session)
                              : owners_find(job->options->owners, origin, session);
}

static annal_slice find_session(void *arg, annal_slice name, annal_slice content)
{
    struct import_job *job = arg;
    /* after a failure the next event is refused, so the name does not matter */
    return begin_turn(job, NULL) < 0 ? name : log_session_find(job, name, content);
}

static annal_status open_importer(struct import_job *job, const struct importer *importer,
                                  annal_error *err)
{
    const struct import_options *options = job->options;
    const char *slash = strrchr(job->path, '/');
    annal_slice directory = directory_name(job->path, slash);
    annal_import_source source = {.kind = importer->kind,
                                  .file = slash != NULL ? slash + 1 : job->path,
                                  .container = job->report.container};
    size_t given = options != NULL ? options->option_count : 0;
    if (options != NULL && options->owners != NULL) {
        source.owner = find_owner;
        source.owner_arg = job;
        source.session = find_session;
        source.session_arg = job;
    }
    SCOPED_BUF session = {0};
    annal_import_option *all = must_realloc_array(NULL, given + 4, sizeof *all);
    char *path = realpath(job->path, NULL);
    job->batch_lines =
        options != NULL && options->batch_lines > 0 ? options->batch_lines : BATCH_LINES;
    job->lines = must_realloc_array(NULL, job->batch_lines, sizeof *job->lines);
    detect_session(importer, job->fd, &session);
    annal_status status = ANNAL_OK;
    memcpy(all, given > 0 ? options->options : all, given * sizeof *all);
    if (session.len > 0)
        all[given++] = (annal_import_option){ANNAL_SLICE("session"), annal__buf_slice(&session)};
    if (directory.len > 0)
        all[given++] = (annal_import_option){ANNAL_SLICE(":directory"), directory};
    if (path != NULL)
        all[given++] = (annal_import_option){ANNAL_SLICE(":path"), annal_slice_of(path)};
    if (job->is_whole)
        all[given++] = (annal_import_option){ANNAL_SLICE(":whole"), ANNAL_SLICE("1")};
    source.options = all;
    source.option_count = given;
    job->sql = importer->sql.ptr;
    job->kind = importer->kind;
    job->text = importer->sql;
    size_t at = 0;
    for (annal_slice type; job->recall_count < RECALLS_MAX &&
                           (type = importer_word(importer, "recalls", &at)).len > 0;)
        job->recalls[job->recall_count++] = type;
    if (!take_spare(job, &source))
        status = annal_import_open(importer->sql, &source, &job->import, err);
    annal__free(all);
    free(path);
    return status;
}

static annal_status open_lines(struct import_job *job, const struct importer *importer,
                               bool only_whole, annal_error *err)
{
    const struct container_options options = {
        .only_whole = only_whole, .limits = job->options != NULL ? job->options->limits : NULL};
    struct lines lines;
    struct stat file;
    annal_status status = source_container_open(importer, job->path, &options, &lines, err);
    if (status != ANNAL_OK)
        return status;
    job->fd = lines.fd;
    job->is_log = lines.is_log;
    job->is_text = lines.container == CONTAINER_TEXT;
    job->is_whole = lines.container == CONTAINER_SQLITE ? !lines.damaged : lines.whole;
    job->judged = lines.judged;
    job->report.container = source_container_name(lines.container);
    job->report.hollow = lines.unknown;
    job->report.damaged = lines.damaged;
    job->report.damage = lines.damage;
    if (fstat(job->fd, &file) < 0)
        return annal__fail_errno(err, "cannot read the log");
    job->level = file.st_size < LARGE_BYTES ? ANNAL_LEVEL_BATCH : ANNAL_LEVEL_OS;
    return open_importer(job, importer, err);
}

annal_status import_open(annal_store *store, const struct importer *importer, const char *path,
                         const struct import_options *options, bool only_whole,
                         struct import_job **out, annal_error *err)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    annal_status status = ANNAL_OK;
    struct import_job *job = must_zalloc(sizeof *job);
    job->store = store;
    job->path = must_strndup(path, len);
    job->options = options;
    job->fd = -1;
    if (options != NULL && options->turn != NULL)
        job->ahead = ahead_new(options->owners);
    status = open_lines(job, importer, only_whole, err);
    if (status == ANNAL_OK) {
        *out = job;
        return status;
    }
    if (status < 0)
        annal__error_context(err, "import '%s'", path);
    import_close(job);
    return status;
}

void import_close(struct import_job *job)
{
    if (job == NULL)
        return;
    for (size_t i = 0; i < job->report.session_count; i++)
        annal__session_trim(job->store, annal_slice_of(job->report.sessions[i].id));
    if (job->fd >= 0)
        close(job->fd);
    leave_spare(job);
    ahead_free(job->ahead);
    annal_import_close(job->import);
    annal__buf_done(&job->read);
    long_strings_done(&job->strings);
    annal__buf_done(&job->pending.bytes);
    annal__free(job->lines);
    places_done(&job->places);
    log_sessions_done(&job->log_sessions);
    annal__free(job->path);
    import_report_done(&job->report);
    annal__free(job);
}

annal_status import_file(annal_store *store, const struct importer *importer, const char *path,
                         const struct import_options *options, struct import_report *report,
                         annal_error *err)
{
    struct import_job *job = NULL;
    *report = (struct import_report){0};
    annal_status status = import_open(store, importer, path, options, false, &job, err);
    if (status < 0)
        return status;
    status = import_take(job, IMPORT_LAST, err);
    if (job->guessed_wrong) {
        struct import_options in_turn = *options;
        in_turn.turn = NULL;
        import_close(job);
        return import_file(store, importer, path, &in_turn, report, err);
    }
    *report = job->report;
    job->report = (struct import_report){0};
    import_close(job);
    return status;
}
