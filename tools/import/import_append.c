/* SPDX-License-Identifier: Apache-2.0 */
/* Appends the events of an import. The rules 2 (nothing twice), 4 (when to sync) and 5 (missing
 * times) are in import.c. */
#include "index/sys/import.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/args.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/import/deleted.h"
#include "tools/import/file_time.h"
#include "tools/import/import_job.h"
#include "tools/import/owners.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define APPEND_BYTES ((size_t)4 << 20)
#define SYNC_BYTES   ((uint64_t)16 << 20)

/* Maximum bytes of data from a line; the rest is for the time and the source, which are added. */
#define EVENT_BYTES_MAX ((size_t)ANNAL_DATA_BYTES_MAX - ((size_t)32 << 10))

/* Number of tries of an append: another importer may append the same events after this importer
 * read the journal. */
#define APPEND_TRIES 3

/* ---- Groups ---- */

annal_status import_group_sync(struct import_group *group, annal_store *store, annal_error *err)
{
    places_done(&group->sessions);
    return annal_store_sync(store, err);
}

annal_status import_settle(struct import_job *job, annal_slice session, annal_error *err)
{
    struct import_group *group = job->options != NULL ? job->options->group : NULL;
    uint64_t hash = annal__hash(session.ptr, session.len, 0);
    if (group == NULL || places_next(&group->sessions, hash, &(size_t){0}) == SIZE_MAX)
        return ANNAL_OK;
    annal_status status = import_group_sync(group, job->store, err);
    job->report.store_failed |= status < 0;
    return status;
}

/* ---- Sessions ---- */

#define DIRECTORY_ID_BYTES sizeof "directory.0123456789abcdef"

/* Write the id that an event gets if it only records the directory of the session. Return false if
 * data names no directory. */
static bool directory_id(annal_slice data, char id[DIRECTORY_ID_BYTES])
{
    annal_slice directory = annal__json_member(data, "working_directory");
    if (directory.len == 0)
        directory = annal__json_member(annal__json_member(data, "set"), "working_directory");
    snprintf(id, DIRECTORY_ID_BYTES, "directory.%016" PRIx64,
             annal__hash(directory.ptr, directory.len, 0));
    return directory.len > 2 && directory.ptr[0] == '"';
}

#define SOURCE_ID       "source."
#define SOURCE_ID_BYTES sizeof((struct import_session){0}.new_source)

/* Write the id of the event that only records a source of the session. Return false if data has no
 * source. */
static bool source_id(annal_slice data, char id[SOURCE_ID_BYTES])
{
    annal_slice host = annal__json_member(data, "source_host");
    annal_slice path = annal__json_member(data, "source_path");
    snprintf(id, SOURCE_ID_BYTES, SOURCE_ID "%016" PRIx64,
             annal__hash(path.ptr, path.len, annal__hash(host.ptr, host.len, 0)));
    return path.len > 2 && path.ptr[0] == '"';
}

/* Pass a stored event of the session to the importer, if the section that the importer runs at the
 * end of a log reads events of this type. */
static annal_status recall(struct import_job *job, annal_slice session, annal_slice type,
                           annal_slice id, int64_t ts_us, annal_slice data, annal_error *err)
{
    for (size_t i = 0; i < job->recall_count; i++) {
        annal_slice want = job->recalls[i], prefix = {0};
        const char *slash = memchr(want.ptr, '/', want.len);
        if (slash != NULL) {
            prefix = (annal_slice){slash + 1, want.len - (size_t)(slash + 1 - want.ptr)};
            want.len = (size_t)(slash - want.ptr);
        }
        if (annal__slice_same(want, type) && id.len >= prefix.len &&
            (prefix.len == 0 || memcmp(id.ptr, prefix.ptr, prefix.len) == 0))
            return annal__import_recall(job->import, session, type, id, ts_us, data, err);
    }
    return ANNAL_OK;
}

/* Count what an import of this log could not read (import_note_recovered()). */
static void count_torn(const struct import_job *job, struct import_session *session,
                       const annal_event *event)
{
    bool unreadable = annal__slice_is(event->type, "import.unreadable");
    if (annal__slice_is(event->type, "import.recovered")) {
        session->torn = session->foreign = 0;
        session->recoveries++;
    } else if (unreadable || annal__slice_is(event->type, "import.unknown")) {
        const char *slash = strrchr(job->path, '/');
        annal_slice file = annal__json_inside(annal__json_member(event->data, "source.file"));
        bool own = annal__slice_is(file, slash != NULL ? slash + 1 : job->path);
        session->torn += own && unreadable;
        session->foreign += own && !unreadable;
    }
}

static annal_status read_known(struct import_job *job, struct import_session *into,
                               int64_t *out_last_us, annal_error *err)
{
    annal_slice session = annal_slice_of(into->id);
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    char directory[DIRECTORY_ID_BYTES], source[SOURCE_ID_BYTES];
    annal_status status = annal_cursor_open(job->store, session, 1, &cursor, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    into->torn = into->foreign = into->recoveries = 0;
    while (status >= 0) {
        status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_END)
            break;
        if (status == ANNAL_OK && event.id.len > 0)
            status = annal__import_remember(job->import, session, event.id, err);
        if (status == ANNAL_OK && annal__slice_begins(event.type, "session.") &&
            directory_id(event.data, directory))
            status = annal__import_remember(job->import, session, annal_slice_of(directory), err);
        if (status == ANNAL_OK && annal__slice_begins(event.type, "session.") &&
            source_id(event.data, source))
            status = annal__import_remember(job->import, session, annal_slice_of(source), err);
        if (status == ANNAL_OK)
            status = recall(job, session, event.type, event.id, event.ts_us, event.data, err);
        if (status == ANNAL_OK)
            count_torn(job, into, &event);
        *out_last_us = status == ANNAL_OK ? event.ts_us : *out_last_us;
    }
    annal_cursor_close(cursor);
    job->report.store_failed |= status < 0;
    return status < 0 ? status : ANNAL_OK;
}

/* Return whether the log is a text that belongs to another log. Then the ids of the session's
 * events are read once for all texts, because thousands may belong to one session. */
static bool is_shared(const struct import_job *job)
{
    return job->is_text && job->options != NULL && job->options->owners != NULL;
}

/* Read which events of the session the store contains, when the log first touches it. */
static annal_status know_session(struct import_job *job, struct import_session *session,
                                 annal_error *err)
{
    annal_slice id = annal_slice_of(session->id);
    annal_status status = import_settle(job, id, err);
    if (status >= 0)
        status = is_shared(job)
                     ? owners_read(job->options->owners, job->store, id, &session->last_us, err)
                     : read_known(job, session, &session->last_us, err);
    /* a text belongs to a log, and gets the time of the session's last event */
    if (job->is_text)
        job->last_us = session->last_us;
    if (status >= 0 && job->options != NULL && job->options->group != NULL)
        must_true(places_add(&job->options->group->sessions, annal__hash(id.ptr, id.len, 0), 0));
    session->known_read = status >= 0;
    return status;
}

static annal_status find_session(struct import_job *job, annal_slice id, size_t *out_index,
                                 annal_error *err)
{
    struct import_report *report = &job->report;
    uint64_t hash = annal__hash(id.ptr, id.len, 0);
    size_t at = 0, index;
    while ((index = places_next(&job->places, hash, &at)) != SIZE_MAX)
        if (annal__slice_is(id, report->sessions[index].id)) {
            *out_index = index;
            return ANNAL_OK;
        }
    annal_status status = annal_session_id_check(id, err);
    if (status < 0)
        return status;
    struct import_session *session =
        must_array_add(&report->sessions, &report->session_count, sizeof *session);
    must_true(places_add(&job->places, hash, report->session_count - 1));
    memcpy(session->id, id.ptr, id.len);
    *out_index = report->session_count - 1;
    const struct deleted *deleted = job->options != NULL ? job->options->deleted : NULL;
    annal_session_info info;
    session->left_out = deleted_has(deleted, id) &&
                        annal_session_info_get(job->store, id, &info, NULL) == ANNAL_ERR_NOTFOUND;
    if (session->left_out)
        say("import '%s': session '%s' was deleted, so the session is left out; --again imports "
            "the session",
            job->path, session->id);
    return ANNAL_OK;
}

/* ---- Appending ---- */

static annal_slice piece_of(const struct pending *pending, size_t at, size_t len)
{
    return (annal_slice){len > 0 ? pending->bytes.ptr + at : NULL, len};
}

/* Remove the events that the session contains already. */
static annal_status drop_known(struct import_job *job, annal_error *err)
{
    struct pending *pending = &job->pending;
    struct import_session *into = &job->report.sessions[pending->session];
    annal_slice session = annal_slice_of(into->id);
    size_t kept = 0;
    int64_t last_us = 0;
    annal_status status = read_known(job, into, &last_us, err);
    for (size_t i = 0; i < pending->count && status >= 0; i++) {
        struct waiting event = pending->events[i];
        bool known = false;
        if (event.id_len > 0)
            status = annal__import_knows(job->import, session,
                                         piece_of(pending, event.id, event.id_len), &known, err);
        if (!known)
            pending->events[kept++] = event;
    }
    pending->count = kept;
    return status;
}

/* Set the time of the events whose line has no time (ts_us 1), and the text that names its
 * source. */
static void give_time(struct pending *pending, int64_t ts_us, const char *from)
{
    for (size_t i = 0; i < pending->count && ts_us > 1; i++) {
        struct waiting *event = &pending->events[i];
        if (event->ts_us != 1)
            continue;
        event->ts_us = ts_us;
        event->time_from = from;
    }
}

static void give_times(struct import_job *job)
{
    struct pending *pending = &job->pending;
    const char *from = NULL;
    int64_t ts_us = 0;
    for (size_t i = 0; i < pending->count; i++) {
        if (pending->events[i].ts_us == 1 && from == NULL) {
            ts_us = file_time_us(job->path, &from);
            give_time(pending, ts_us, from);
        }
        struct waiting *event = &pending->events[i];
        if (event->time_from != NULL)
            file_time_say(&pending->bytes, event->time_from, &event->data, &event->data_len);
        event->time_from = NULL; /* the data names the source of the time now */
    }
}

static annal_status append_pending(struct import_job *job, annal_writer *writer, annal_error *err)
{
    struct pending *pending = &job->pending;
    annal_draft drafts[APPEND_EVENTS];
    uint64_t seq = 0;
    for (size_t i = 0; i < pending->count; i++) {
        const struct waiting *event = &pending->events[i];
        drafts[i] = (annal_draft){
            .type = piece_of(pending, event->type, event->type_len),
            .id = piece_of(pending, event->id, event->id_len),
            .cause = piece_of(pending, event->cause, event->cause_len),
            .data = piece_of(pending, event->data, event->data_len),
            .ts_us = event->ts_us,
        };
    }
    annal_append_options options = {.level = job->level};
    return annal_writer_append(writer, drafts, pending->count, &options, &seq, err);
}

annal_status import_flush(struct import_job *job, annal_error *err)
{
    struct pending *pending = &job->pending;
    annal_writer *writer = NULL;
    if (pending->count == 0)
        return ANNAL_OK;
    annal_slice session = annal_slice_of(job->report.sessions[pending->session].id);
    give_times(job);
    annal_status status = annal_writer_open(job->store, session, NULL, &writer, err);
    for (int tries = 1; status >= 0; tries++) {
        status = append_pending(job, writer, err);
        if (status != ANNAL_ERR_CONFLICT || tries == APPEND_TRIES)
            break;
        status = drop_known(job, err);
        if (status >= 0 && pending->count == 0)
            break;
    }
    annal_writer_close(writer);
    if (status >= 0)
        job->report.events += pending->count;
    pending->unsynced += pending->bytes.len;
    if (status >= 0 && pending->unsynced >= SYNC_BYTES) {
        status = annal_store_sync(job->store, err);
        pending->unsynced = 0;
    }
    pending->count = 0;
    annal__buf_clear(&pending->bytes);
    job->report.store_failed |= status < 0;
    return status;
}

static void keep(struct buf *bytes, annal_slice slice, size_t *out_at, size_t *out_len)
{
    *out_at = bytes->len;
    *out_len = slice.len;
    must_append_slice(bytes, slice);
}

/* Return whether an event with this id waits already, because a log may contain an id twice. */
static bool is_pending(const struct import_job *job, size_t session, annal_slice id)
{
    const struct pending *pending = &job->pending;
    if (id.len == 0 || pending->session != session)
        return false;
    for (size_t i = 0; i < pending->count; i++)
        if (pending->events[i].id_len == id.len &&
            memcmp(pending->bytes.ptr + pending->events[i].id, id.ptr, id.len) == 0)
            return true;
    return false;
}

/* Count an unreadable line, once even if it has several pieces. */
static void count_unreadable(struct import_report *report, const annal_import_event *event)
{
    if (!annal__slice_is(event->draft.type, "import.unreadable") ||
        (report->unreadable > 0 && event->line == report->last_unreadable))
        return;
    if (report->unreadable++ == 0)
        report->first_unreadable = event->line;
    report->last_unreadable = event->line;
}

/* ---- Unknown layouts ---- */

/* Return whether a directive of the importer has a pattern that matches this kind of records. */
static bool is_named(const struct import_job *job, const char *directive, const char *kind)
{
    const struct importer importer = {.kind = job->kind, .sql = job->text};
    size_t at = 0;
    for (annal_slice word; (word = importer_word(&importer, directive, &at)).len > 0;) {
        char pattern[IMPORT_KIND_BYTES];
        snprintf(pattern, sizeof pattern, "%.*s", ANNAL_FMT(word));
        if (fnmatch(pattern, kind, 0) == 0)
            return true;
    }
    return false;
}

/* Return what the directives say about a kind of records, from a cache, because a log has few
 * kinds. */
static const struct record_kind *find_record_kind(struct import_job *job, annal_slice name)
{
    const size_t size = sizeof job->record_kinds / sizeof *job->record_kinds;
    struct record_kind *kind = &job->record_kinds[job->record_kind_count % size];
    name.len = name.len < IMPORT_KIND_BYTES ? name.len : IMPORT_KIND_BYTES - 1;
    for (size_t i = 0; i < size && i < job->record_kind_count; i++)
        if (annal__slice_is(name, job->record_kinds[i].name))
            return &job->record_kinds[i];
    snprintf(kind->name, sizeof kind->name, "%.*s", ANNAL_FMT(name));
    kind->is_any = is_named(job, "records", "*");
    kind->is_named =
        kind->is_any ? is_named(job, "map", "session") : is_named(job, "records", kind->name);
    kind->is_read = is_named(job, "reads", kind->name);
    job->record_kind_count++;
    return kind;
}

static void count_record(struct import_job *job, struct import_session *session, annal_slice data)
{
    struct import_report *report = &job->report;
    SCOPED_BUF scratch = {0};
    annal_slice text = {0};
    annal_slice raw = annal__json_member(data, "kind");
    if (raw.len == 0 || raw.ptr[0] != '"' || annal__json_text(raw, &scratch, &text) < 0)
        text = ANNAL_SLICE("null");
    const struct record_kind *kind = find_record_kind(job, text);
    report->named += kind->is_named;
    if (kind->is_named)
        return;
    report->any += kind->is_any;
    report->foreign = report->foreign || (!kind->is_any && !kind->is_read);
    report->unknown += !kind->is_any;
    session->unknown += !kind->is_any;
    for (size_t i = 0; i < report->kind_count; i++)
        if (strcmp(report->kinds[i], kind->name) == 0)
            return;
    if (report->kind_count < IMPORT_KINDS)
        memcpy(report->kinds[report->kind_count++], kind->name, sizeof kind->name);
}

/* Return whether the importer marked the record as a copy from another session. */
static bool is_copied(annal_slice data)
{
    annal_slice source = annal__json_member(data, "source");
    return source.len > 0 && source.ptr[0] == '{' &&
           annal__slice_is(annal__json_member(source, "copied"), "true");
}

static void count_content(struct import_job *job, struct import_session *session,
                          const annal_import_event *event)
{
    static const char *const about[] = {"session.", "import."};
    bool record = annal__slice_is(event->draft.type, "import.record");
    bool copied = record && is_copied(event->draft.data);
    if (record && !copied)
        count_record(job, session, event->draft.data);
    for (size_t i = 0; i < sizeof about / sizeof *about && !copied; i++)
        if (annal__slice_begins(event->draft.type, about[i]))
            return;
    if (event->line != job->own_line) {
        job->report.own++;
        session->own++;
    }
    job->own_line = event->line;
}

/* Return whether the log has unreadable lines, and no line with content or with a record of a kind
 * that "-- records:" names. */
static bool has_no_content(const struct import_report *report)
{
    return report->own == 0 && report->unreadable > 0 && report->named == 0;
}

bool import_is_unknown(const struct import_report *report)
{
    bool rows = report->container != NULL && strcmp(report->container, "sqlite") == 0;
    bool alone = report->named == 0 && report->unreadable == 0;
    return (rows && report->foreign) ||
           (report->unknown > report->own && report->unknown > (rows || alone ? 0 : 1)) ||
           (report->own == 0 && (report->hollow || report->any > 0)) || has_no_content(report);
}

int import_say_unknown(const struct import_report *report, const char *path, const char *kind)
{
    SCOPED_BUF names = {0};
    uint64_t count = report->unknown + report->any;
    if (!import_is_unknown(report))
        return EXIT_DONE;
    if (has_no_content(report) && report->unreadable >= count) {
        say("import '%s': %" PRIu64 " line%s not valid JSON: kept as import.unreadable; nothing "
            "that the importer %s knows was found in the log",
            path, report->unreadable, report->unreadable == 1 ? " is" : "s are", kind);
        return EXIT_REFUSED;
    }
    if (count == 0) {
        say("import '%s': the log has none of the arrays that the importer %s reads: nothing was "
            "found in the log",
            path, kind);
        return EXIT_REFUSED;
    }
    for (size_t i = 0; i < report->kind_count; i++)
        must_printf(&names, "%s%s", i > 0 ? ", " : "", report->kinds[i]);
    say("import '%s': %" PRIu64
        " record%s of a layout that the importer %s does not know (%.*s): kept as import.record%s",
        path, count, count == 1 ? " is" : "s are", kind, (int)names.len, names.ptr,
        report->own == 0 ? "; nothing else was found in the log" : "");
    return report->own == 0 ? EXIT_REFUSED : EXIT_DONE;
}

static void put_unknown(struct buf *data, const struct import_job *job)
{
    const char *slash = strrchr(job->path, '/');
    must_json(data, "{\"importer\":?,\"records\":[", annal_slice_of(job->kind));
    for (size_t i = 0; i < job->report.kind_count; i++)
        must_json(data, "#?", annal_slice_of(i > 0 ? "," : ""),
                  annal_slice_of(job->report.kinds[i]));
    must_json(data, "],\"source\":{\"kind\":?,\"file\":?}}", annal_slice_of(job->kind),
              annal_slice_of(slash != NULL ? slash + 1 : job->path));
}

annal_status import_note_unknown(struct import_job *job, annal_error *err)
{
    SCOPED_BUF data = {0};
    annal_status status = ANNAL_OK;
    if (import_is_unknown(&job->report))
        put_unknown(&data, job);
    for (size_t i = 0; i < job->report.session_count && data.len > 0 && status >= 0; i++) {
        const struct import_session *session = &job->report.sessions[i];
        const annal_import_event event = {.session = annal_slice_of(session->id),
                                          .draft = {.type = ANNAL_SLICE("import.unknown"),
                                                    .id = ANNAL_SLICE("import.unknown"),
                                                    .data = annal__buf_slice(&data),
                                                    .ts_us = 1},
                                          .line = job->number};
        if (session->unknown > session->own || session->unknown == job->report.unknown)
            status = import_take_event(job, &event, err);
    }
    return status;
}

annal_status import_note_recovered(struct import_job *job, annal_error *err)
{
    char id[48];
    SCOPED_BUF data = {0};
    annal_status status = ANNAL_OK;
    if (import_is_unknown(&job->report) || job->report.unreadable > 0)
        return ANNAL_OK;
    for (size_t i = 0; i < job->report.session_count && status >= 0; i++) {
        const struct import_session *session = &job->report.sessions[i];
        if (session->torn + session->foreign == 0)
            continue;
        annal__buf_clear(&data);
        must_printf(&data, "{\"lines\":%" PRIu64 ",\"layouts\":%" PRIu64 "}", session->torn,
                    session->foreign);
        snprintf(id, sizeof id, "import.recovered.%" PRIu64, session->recoveries + 1);
        const annal_import_event event = {.session = annal_slice_of(session->id),
                                          .draft = {.type = ANNAL_SLICE("import.recovered"),
                                                    .id = annal_slice_of(id),
                                                    .data = annal__buf_slice(&data),
                                                    .ts_us = 1},
                                          .line = job->number};
        status = import_take_event(job, &event, err);
    }
    return status;
}

/* ---- Events ---- */

/* Store the long strings of the line as artifacts of the event's session, and also long strings of
 * data if it is still too long. */
static annal_status store_strings(struct import_job *job, const annal_import_event *event,
                                  struct buf *shortened, annal_slice *data, annal_error *err)
{
    struct long_strings own = {0};
    annal_status status = long_strings_store(&job->strings, job->store, event->session, *data, err);
    if (status >= 0 && data->len > EVENT_BYTES_MAX) {
        must_append_slice(shortened, *data);
        status = long_strings_move(&own, shortened, err);
        *data = annal__buf_slice(shortened);
        if (status >= 0)
            status = long_strings_store(&own, job->store, event->session, *data, err);
        long_strings_done(&own);
    }
    job->report.store_failed |= status < 0;
    return status;
}

/* Return 1 for a time that cannot be right (import.c, rule 5), else the time. */
static int64_t possible_time(int64_t ts_us)
{
    int64_t latest_us = (int64_t)time(NULL) * 1000000 + TIME_AHEAD_US;
    return ts_us < TIME_LEAST_US || ts_us > latest_us ? 1 : ts_us;
}

/* Add the source of the session to the data of its event. */
static void say_source(struct import_job *job, annal_slice session, struct waiting *waiting)
{
    struct buf *bytes = &job->pending.bytes;
    const struct log_session *named = log_session_of(job, session);
    file_time_say_source(bytes, job->path, &waiting->data, &waiting->data_len);
    annal_slice data = {bytes->ptr + waiting->data, waiting->data_len};
    if (named != NULL && annal__json_member(data, "source_host").len > 0 &&
        annal__json_member(data, "source_keys").len == 0) {
        bytes->len--; /* the closing brace */
        must_status(log_session_say(job, named, bytes));
        must_append_text(bytes, "}");
        waiting->data_len = bytes->len - waiting->data;
    }
}

static void add_waiting(struct import_job *job, const annal_import_event *event, int64_t ts_us,
                        size_t session, annal_slice data)
{
    struct pending *pending = &job->pending;
    struct waiting *waiting = &pending->events[pending->count];
    pending->session = session;
    waiting->ts_us = ts_us;
    waiting->time_from = NULL;
    if (ts_us == 1 && job->last_us > 1) {
        waiting->ts_us = job->last_us;
        waiting->time_from = "of the line before";
    }
    keep(&pending->bytes, event->draft.type, &waiting->type, &waiting->type_len);
    keep(&pending->bytes, event->draft.id, &waiting->id, &waiting->id_len);
    keep(&pending->bytes, event->draft.cause, &waiting->cause, &waiting->cause_len);
    keep(&pending->bytes, data, &waiting->data, &waiting->data_len);
    if (annal__slice_is(event->draft.type, "session.created") ||
        annal__slice_begins(event->draft.id, SOURCE_ID))
        say_source(job, event->session, waiting);
    pending->count++;
}

/*
 * Append the new directory of a session whose log was moved: the log begins the session in another
 * directory than the stored session, and nothing else in it is new.
 */
static annal_status note_move(struct import_job *job, const annal_import_event *event,
                              int64_t last_us, annal_error *err)
{
    char id[DIRECTORY_ID_BYTES];
    SCOPED_BUF data = {0};
    bool known = true;
    annal_status status = ANNAL_OK;
    if (directory_id(event->draft.data, id))
        status = annal__import_knows(job->import, event->session, annal_slice_of(id), &known, err);
    if (status >= 0 && !known) {
        annal_slice source = annal__json_member(event->draft.data, "source");
        annal_import_event moved = *event;
        moved.formerly = (annal_slice){0};
        moved.draft.type = ANNAL_SLICE("session.updated");
        moved.draft.id = annal_slice_of(id);
        moved.draft.ts_us = last_us > event->draft.ts_us ? last_us : event->draft.ts_us;
        must_printf(&data, "{\"set\":{\"working_directory\":%.*s},\"source\":%.*s}",
                    ANNAL_FMT(annal__json_member(event->draft.data, "working_directory")),
                    source.len > 0 ? (int)source.len : 4, source.len > 0 ? source.ptr : "null");
        moved.draft.data = annal__buf_slice(&data);
        status = import_take_event(job, &moved, err);
    }
    return status;
}

/* The log begins a session that the store has. If the stored session does not name the log as a
 * source yet, set session->new_source to the id of an event that does. */
static annal_status compare_source(struct import_job *job, struct import_session *session,
                                   annal_error *err)
{
    char id[SOURCE_ID_BYTES] = "";
    SCOPED_BUF data = {0};
    size_t at = 0, len = 2;
    bool known = true;
    annal_status status = ANNAL_OK;
    must_append(&data, "{}", len);
    file_time_say_source(&data, job->path, &at, &len);
    if (source_id((annal_slice){data.ptr + at, len}, id))
        status = annal__import_knows(job->import, annal_slice_of(session->id), annal_slice_of(id),
                                     &known, err);
    if (!known)
        memcpy(session->new_source, id, sizeof id);
    return status;
}

/* Append the new source of a session, before the first event that this log adds. */
static annal_status note_source(struct import_job *job, const annal_import_event *event,
                                struct import_session *session, annal_error *err)
{
    char id[SOURCE_ID_BYTES];
    memcpy(id, session->new_source, sizeof id);
    session->new_source[0] = '\0';
    annal_import_event noted = *event;
    noted.formerly = (annal_slice){0};
    noted.draft = (annal_draft){.type = ANNAL_SLICE("session.updated"),
                                .id = annal_slice_of(id),
                                .ts_us = event->draft.ts_us,
                                .data = ANNAL_SLICE("{}")};
    return import_take_event(job, &noted, err);
}

/* Take an event of the importer, and keep it for the next append. */
annal_status import_take_event(void *arg, const annal_import_event *event, annal_error *err)
{
    struct import_job *job = arg;
    struct pending *pending = &job->pending;
    SCOPED_BUF shortened = {0};
    annal_slice data = event->draft.data;
    bool known = false;
    size_t index = 0;
    int64_t ts_us = possible_time(event->draft.ts_us);
    annal_status status = find_session(job, event->session, &index, err);
    if (status < 0)
        goto done;
    if (job->report.sessions[index].left_out)
        goto done;
    count_unreadable(&job->report, event);
    count_content(job, &job->report.sessions[index], event);
    if (ts_us > 1 && job->last_us == 0)
        give_time(pending, ts_us, "of the first line that has one");
    if (ts_us > 1)
        job->last_us = ts_us;
    if (!job->report.sessions[index].known_read)
        status = know_session(job, &job->report.sessions[index], err);
    known = status >= 0 && is_shared(job) && owners_has(job->options->owners, event->draft.id);
    if (status >= 0 && !known && event->draft.id.len > 0)
        status = annal__import_knows(job->import, event->session, event->draft.id, &known, err);
    if (status >= 0 && !known && event->formerly.len > 0)
        status = annal__import_knows(job->import, event->session, event->formerly, &known, err);
    if (status >= 0 && known && !job->is_text &&
        annal__slice_is(event->draft.type, "session.created")) {
        status = compare_source(job, &job->report.sessions[index], err);
        if (status >= 0)
            status = note_move(job, event, job->report.sessions[index].last_us, err);
    }
    if (status < 0 || known || is_pending(job, index, event->draft.id))
        goto done;
    if (job->report.sessions[index].new_source[0] != '\0')
        status = note_source(job, event, &job->report.sessions[index], err);
    if (status < 0)
        goto done;

    status = store_strings(job, event, &shortened, &data, err);
    if (status < 0)
        goto done;
    if (pending->count == APPEND_EVENTS || pending->session != index ||
        pending->bytes.len + data.len > APPEND_BYTES)
        status = import_flush(job, err);
    if (status < 0)
        goto done;
    add_waiting(job, event, ts_us, index, data);
    status = recall(job, event->session, event->draft.type, event->draft.id, event->draft.ts_us,
                    data, err);

done:
    if (status < 0)
        annal__error_context(err, "line %" PRIu64, event->line);
    return status;
}
