/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/pull.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/sys/artifact.h"
#include "journal/sys/cursor.h"
#include "journal/sys/rebuild.h"
#include "journal/sys/seam.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"
#include "tools/export/staging.h"
#include "tools/ship/references.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <search.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPACE_BYTES = 8 << 20, ENVELOPE_BYTES = 512, TREE_MAX = 100000 };

struct name {
    char text[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

/* Session ids without duplicates, in the order in which they were added. */
struct names {
    struct name **all;
    size_t count;
    void *tree; /* the same ids; root of tsearch(3) */
};

struct pull {
    const struct pull_options *options;
    struct ship_target *target;
    struct staging staging;
    struct progress progress;
    struct ship_origin origin; /* origin of the requested session */
    uint64_t pulled;           /* number of downloaded events */
    uint64_t unchecked;        /* bytes written since free space was last checked */
    /* number of sessions that needed no download, because they were complete in this store */
    uint64_t there;
    struct names seen; /* ids of the sessions handled so far */
    struct names tree; /* with options->tree: sub-agents and forks */
    annal_error *err;
};

/* A session that is being downloaded. */
struct pulling {
    struct pull *pull;
    struct ship_origin origin;
    annal_session_info here; /* the local session; last_seq 0 if it does not exist */
    annal__rebuild *rebuild;
    uint64_t seq; /* seq of the last written event */
};

static annal_status refuse_history(struct pulling *pulling)
{
    return annal__fail(
        pulling->pull->err, ANNAL_ERR_CONFLICT,
        "session '%s' has a different history in this store than at the target; nothing was pulled",
        pulling->origin.info.session);
}

/* ---- Local events ---- */

static annal_status hash_of(annal_store *store, const char *session, uint64_t seq, uint64_t *out_h,
                            annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    annal_status status =
        annal__cursor_open_event(store, annal_slice_of(session), seq, &cursor, &event, err);
    *out_h = status == ANNAL_OK ? event.h : 0;
    annal_cursor_close(cursor);
    return status < 0 ? status : ANNAL_OK;
}

/* Compare the local session with the session at the target. Returns ANNAL_END if the local session
 * has all events already. */
static annal_status look_here(struct pulling *pulling)
{
    struct pull *pull = pulling->pull;
    const annal_session_info *there = &pulling->origin.info;
    annal_session_info *here = &pulling->here;
    annal_error err = {0};
    uint64_t h = 0;
    annal_status status =
        annal_session_info_get(pull->staging.store, annal_slice_of(there->session), here, &err);
    if (status == ANNAL_ERR_NOTFOUND || (status >= 0 && here->bytes == 0)) {
        *here = (annal_session_info){0};
        return ANNAL_OK;
    }
    if (status < 0) {
        *pull->err = err;
        return status;
    }
    if (strcmp(here->file, there->file) != 0)
        return refuse_history(pulling);
    if (here->last_seq < there->last_seq)
        return ANNAL_OK;
    status = hash_of(pull->staging.store, there->session, there->last_seq, &h, pull->err);
    if (status < 0)
        return status;
    return h == there->last_h ? ANNAL_END : refuse_history(pulling);
}

/* Copy the first `bytes` bytes of the store's file `within` to the open descriptor `to`. */
static annal_status copy_bytes(struct pull *pull, const char *within, int to, uint64_t bytes)
{
    struct below store = {0};
    int from = -1;
    annal_status status =
        annal__below_open(annal_store_path(pull->staging.store), &store, pull->err);
    if (status >= 0)
        status = annal__below_open_file(&store, within, O_RDONLY, NULL, &from, pull->err);
    annal__below_close(&store);
    if (status < 0)
        return status;
    if (ftruncate(to, 0) < 0)
        status = annal__fail_errno(pull->err, "pull: cannot truncate the file %s below %s", within,
                                   pull->staging.stage.ptr);
    while (status >= 0 && bytes > 0) {
        ssize_t copied = copy_file_range(from, NULL, to, NULL, bytes, 0);
        if (copied <= 0)
            status =
                annal__fail_errno(pull->err, "pull: cannot copy the file %s of the store to %s",
                                  within, pull->staging.stage.ptr);
        bytes -= copied > 0 ? (uint64_t)copied : 0;
    }
    close(from);
    return status;
}

/* Begin the downloaded journal with a copy of the local journal of the session, so that no event is
 * downloaded twice (pull.h, rule 3). */
static annal_status begin_with_what_is_here(struct pulling *pulling)
{
    struct pull *pull = pulling->pull;
    const annal_session_info *here = &pulling->here;
    char within[BUNDLE_PATH_BYTES];
    struct bundle_session as = {.format = here->format};
    struct stat info;
    int to = -1;
    if (here->last_seq <= pulling->origin.info.fork_seq)
        return ANNAL_OK;
    memcpy(as.session, here->session, sizeof as.session);
    bundle_session_path(&as, within);
    annal_status status = staging_open_file(&pull->staging, within, O_RDWR | O_CREAT, &to);
    if (status < 0)
        return status;
    if (fstat(to, &info) < 0 || (uint64_t)info.st_size < here->end_offset)
        status = copy_bytes(pull, within, to, here->end_offset);
    close(to);
    return status;
}

/* ---- Missing events ---- */

static annal_status fail_missing(const struct pulling *pulling, annal_error *err)
{
    return annal__fail(
        err, ANNAL_ERR_CORRUPT,
        "session '%s': event %" PRIu64
        " is missing at the target: retention dropped the event, or the event was lost",
        pulling->origin.info.session, pulling->seq + 1);
}

/* Add an event to the new journal; a row_fn. Events that were shipped after the pull read the
 * session's last seq are left for the next pull. */
static annal_status add_row(void *arg, const annal_event *event, annal_error *err)
{
    struct pulling *pulling = arg;
    struct pull *pull = pulling->pull;
    if (event->seq > pulling->origin.info.last_seq)
        return ANNAL_END;
    if (event->seq != pulling->seq + 1)
        return fail_missing(pulling, err);
    annal_status status = annal__rebuild_add(pulling->rebuild, event, err);
    if (status == ANNAL_ERR_CORRUPT && event->seq == pulling->here.last_seq + 1 &&
        pulling->here.last_seq > 0)
        return refuse_history(pulling);
    if (status < 0)
        return status;
    pulling->seq = event->seq;
    pull->pulled++;
    pull->unchecked += event->data.len + ENVELOPE_BYTES;
    if (pull->unchecked > SPACE_BYTES) {
        pull->unchecked = 0;
        status = staging_check_space(&pull->staging, SPACE_BYTES);
        if (status < 0)
            return status;
    }
    progress_set(&pull->progress, pull->pulled, pulling->origin.info.session);
    return ANNAL_OK;
}

static annal_status write_rows(struct pulling *pulling)
{
    struct pull *pull = pulling->pull;
    const annal_session_info *info = &pulling->origin.info;
    const struct below stage = staging_below(&pull->staging);
    annal_status status =
        annal__rebuild_open(&stage, info, &pulling->rebuild, &pulling->seq, pull->err);
    if (status >= 0)
        status = pull->options->kind->source->rows(pull->target, annal_slice_of(info->session),
                                                   pulling->seq, add_row, pulling, pull->err);
    if (pulling->rebuild != NULL) {
        annal_error err = {0};
        annal_status ended = annal__rebuild_end(pulling->rebuild, &err);
        if (status >= 0 && ended < 0) {
            *pull->err = err;
            status = ended;
        }
    }
    annal__rebuild_close(pulling->rebuild);
    if (status >= 0 && pulling->seq != info->last_seq)
        status = fail_missing(pulling, pull->err);
    return status < 0 ? status : ANNAL_OK;
}

/* Add the downloaded session to the staging bundle, with the properties that staging_finish()
 * checks. */
static annal_status describe(struct pulling *pulling)
{
    struct pull *pull = pulling->pull;
    const annal_session_info *info = &pulling->origin.info;
    struct bundle_session *session = bundle_add_session(&pull->staging.bundle);
    struct stat file;
    char within[BUNDLE_PATH_BYTES];
    int fd = -1;
    if (session == NULL)
        return annal__fail(pull->err, ANNAL_ERR_NOMEM, "pull a session: out of memory");
    *session = (struct bundle_session){.fork_seq = info->fork_seq,
                                       .last_seq = info->last_seq,
                                       .h = info->last_h,
                                       .format = ANNAL_FORMAT_MSGPACK};
    memcpy(session->session, info->session, sizeof session->session);
    memcpy(session->file, info->file, sizeof session->file);
    memcpy(session->fork, info->fork_session, sizeof session->fork);
    bundle_session_path(session, within);
    annal_status status = staging_open_file(&pull->staging, within, O_RDONLY, &fd);
    if (status == ANNAL_ERR_NOTFOUND) {
        session->format = ANNAL_FORMAT_JSON;
        bundle_session_path(session, within);
        status = staging_open_file(&pull->staging, within, O_RDONLY, &fd);
    }
    if (status < 0)
        return status;
    if (fstat(fd, &file) < 0)
        status =
            annal__fail_errno(pull->err, "pull: cannot examine the downloaded file %s", within);
    session->bytes = status < 0 ? 0 : (uint64_t)file.st_size;
    if (status >= 0)
        status = bundle_hash_file(fd, within, session->bytes, session->sha256, pull->err);
    close(fd);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Add a session id; *out_is_new: the list did not contain it. */
static annal_status add_name(struct pull *pull, struct names *names, annal_slice session,
                             bool *out_is_new)
{
    struct name **item = NULL, *name = annal__zalloc(sizeof *name);
    if (name != NULL) {
        snprintf(name->text, sizeof name->text, "%.*s", ANNAL_FMT(session));
        struct name **found = tsearch(name, &names->tree, compare_names);
        *out_is_new = found != NULL && *found == name;
        if (found != NULL && *found != name) {
            annal__free(name);
            return ANNAL_OK;
        }
        item = found != NULL ? annal__array_add(&names->all, &names->count, sizeof *item) : NULL;
    }
    if (item != NULL) {
        *item = name;
        return ANNAL_OK;
    }
    if (name != NULL)
        (void)tdelete(name, &names->tree, compare_names);
    annal__free(name);
    return annal__fail(pull->err, ANNAL_ERR_NOMEM, "pull a session: out of memory");
}

static void names_done(struct names *names)
{
    tdestroy(names->tree, annal__free);
    annal__free(names->all);
    *names = (struct names){0};
}

/* A session and its ancestors, the parent first, then the parent's parent, and so on. */
struct line_of {
    annal_session_info *all;
    size_t count;
};

/* Find an ancestor of the session at the target. If the ancestor is a fork too, its fork point must
 * be before event below_seq. */
static annal_status find_one(struct pull *pull, const char *session, uint64_t below_seq,
                             struct ship_origin *out)
{
    annal_status status =
        pull->options->kind->source->find(pull->target, annal_slice_of(session), out, pull->err);
    if (status < 0 || out->info.fork_seq < below_seq)
        return status;
    return annal__fail(pull->err, ANNAL_ERR_CORRUPT,
                       "session '%s': the target reports a wrong fork point: the fork point must "
                       "be before event %" PRIu64,
                       session, below_seq);
}

/* List a session and its ancestors (pull.h, rule 4), up to one that was handled before. The fork
 * point of each ancestor must be before the previous one, so the list is finite. */
static annal_status find_ancestors(struct pull *pull, const char *session, struct line_of *line)
{
    bool is_new = false;
    annal_status status = add_name(pull, &pull->seen, annal_slice_of(session), &is_new);
    while (status >= 0 && is_new) {
        struct ship_origin found;
        uint64_t below_seq = line->count > 0 ? line->all[line->count - 1].fork_seq : UINT64_MAX;
        status = find_one(pull, session, below_seq, &found);
        annal_session_info *item =
            status >= 0 ? annal__array_add(&line->all, &line->count, sizeof *item) : NULL;
        if (status >= 0 && item == NULL)
            status = annal__fail(pull->err, ANNAL_ERR_NOMEM, "pull a session: out of memory");
        if (status >= 0 && line->count > ANNAL_ANCESTORS_MAX + 1)
            status = annal__fail(pull->err, ANNAL_ERR_LIMIT,
                                 "session '%s' has more than %d ancestors at the target",
                                 line->all[0].session, ANNAL_ANCESTORS_MAX);
        if (status < 0)
            return status;
        if (line->count == 1 && session == pull->options->session)
            pull->origin = found;
        *item = found.info;
        session = item->fork_session;
        is_new = false;
        if (session[0] != '\0')
            status = add_name(pull, &pull->seen, annal_slice_of(session), &is_new);
    }
    return status;
}

/* Pull one session, whose ancestors exist locally. */
static annal_status pull_one(struct pull *pull, const annal_session_info *info)
{
    struct pulling pulling = {.pull = pull, .origin = {.info = *info}};
    annal_status status = look_here(&pulling);
    if (status == ANNAL_END) {
        pull->there++;
        return ANNAL_OK;
    }
    if (status >= 0)
        status = begin_with_what_is_here(&pulling);
    if (status >= 0)
        status = write_rows(&pulling);
    return status < 0 ? status : describe(&pulling);
}

static annal_status pull_session(struct pull *pull, const char *session)
{
    struct line_of line = {0};
    annal_status status = find_ancestors(pull, session, &line);
    for (size_t i = line.count; i > 0 && status >= 0; i--)
        status = pull_one(pull, &line.all[i - 1]);
    annal__free(line.all);
    return status;
}

static annal_status add_to_tree(void *arg, annal_slice session, annal_error *err)
{
    struct pull *pull = arg;
    bool is_new;
    annal_status status = annal_session_id_check(session, err);
    if (pull->tree.count >= TREE_MAX)
        return annal__fail(
            err, ANNAL_ERR_LIMIT,
            "pull: the target reports more than %d sub-agents and forks of session '%s'", TREE_MAX,
            pull->options->session);
    return status < 0 ? annal__fail(err, ANNAL_ERR_CORRUPT,
                                    "pull: the target returned an invalid session name")
                      : add_name(pull, &pull->tree, session, &is_new);
}

static annal_status pull_tree(struct pull *pull)
{
    annal_status status = pull->options->kind->source->tree(
        pull->target, annal_slice_of(pull->options->session), add_to_tree, pull, pull->err);
    for (size_t i = 0; i < pull->tree.count && status >= 0; i++)
        status = pull_session(pull, pull->tree.all[i]->text);
    return status;
}

/* ---- Artifacts ---- */

struct fetching {
    struct pull *pull;
    uint64_t missing;
};

/* Download the artifact artifacts/<session>/<sha256>.zst if this store does not have it. Its name
 * proves the content. */
static int fetch_artifact(void *arg, annal_slice path)
{
    struct fetching *fetching = arg;
    struct pull *pull = fetching->pull;
    const char *at = path.ptr + strlen("artifacts/");
    const annal_slice session = {at, (size_t)((const char *)memchr(at, '/', path.len) - at)};
    char name[ANNAL_SHA256_TEXT_BYTES] = "";
    memcpy(name, session.ptr + session.len + 1, sizeof name - 1);
    annal_status status = references_fetch(session, name, pull->staging.store, pull->options->kind,
                                           pull->target, pull->err);
    if (status != ANNAL_ERR_NOTFOUND)
        return status;
    fetching->missing++;
    return ANNAL_OK;
}

/* Download the artifacts that a session's own events refer to; its ancestors have their own calls.
 * All events are in the store by now, so after an interruption the next pull fetches the remaining
 * artifacts. */
static annal_status fetch_of_session(struct fetching *fetching, const char *session)
{
    struct pull *pull = fetching->pull;
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status = annal_cursor_open_at(pull->staging.store, annal_slice_of(session), 1, 0,
                                               0, &cursor, pull->err);
    while (status >= 0 && (status = annal_cursor_next(cursor, &event, pull->err)) != ANNAL_END)
        if (status == ANNAL_OK)
            status = annal__artifact_check_data(pull->staging.store, event.data, fetch_artifact,
                                                fetching, pull->err);
    annal_cursor_close(cursor);
    return status < 0 ? status : ANNAL_OK;
}

static annal_status fetch_artifacts(struct pull *pull)
{
    struct fetching fetching = {.pull = pull};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < pull->seen.count && status >= 0; i++)
        status = fetch_of_session(&fetching, pull->seen.all[i]->text);
    pull->staging.missing = fetching.missing;
    return status;
}

/* ---- The whole pull ---- */

/* Compute a key from the target and the session. A later pull with the same key continues what an
 * interrupted pull has written. */
static uint64_t key_of(const struct pull_options *options)
{
    uint64_t h = annal__hash(options->from.url, strlen(options->from.url), 1);
    if (options->from.store != NULL)
        h = annal__hash(options->from.store, strlen(options->from.store), h);
    return annal__hash(options->session, strlen(options->session), h) | 1;
}

static void print_done(const struct pull *pull)
{
    const struct ship_origin *origin = &pull->origin;
    const struct staging *staging = &pull->staging;
    uint64_t sessions = staging->bundle.session_count + pull->there;
    if (pull->options->json) {
        out_json("{\"session_id\":?,\"store\":?", annal_slice_of(pull->options->session),
                 annal_slice_of(origin->store));
        printf(",\"seq\":%" PRIu64 ",\"h\":\"%016" PRIx64 "\",\"sessions\":%" PRIu64
               ",\"events\":%" PRIu64 ",\"added\":%" PRIu64 ",\"extended\":%" PRIu64
               ",\"already_there\":%" PRIu64 ",\"missing_artifacts\":%" PRIu64 "}\n",
               origin->info.last_seq, origin->info.last_h, sessions, pull->pulled, staging->added,
               staging->extended, pull->there, staging->missing);
        return;
    }
    char events[HUMAN_BYTES];
    printf("pulled session '%s' of %s up to event %" PRIu64 " (%016" PRIx64 "): %s new event%s",
           pull->options->session, origin->store, origin->info.last_seq, origin->info.last_h,
           human_count(events, pull->pulled), pull->pulled == 1 ? "" : "s");
    if (sessions > 1)
        printf(", %" PRIu64 " sessions in total", sessions);
    fputc('\n', stdout);
}

static void say_more(const struct pull *pull)
{
    if (pull->origin.stores > 1 && pull->options->from.store == NULL)
        say("%" PRIu64 " stores shipped a session '%s'; pulled the session of store %s, which "
            "shipped last; --store-name chooses the store",
            pull->origin.stores, pull->options->session, pull->origin.store);
    if (pull->staging.missing > 0)
        say("%" PRIu64 " reference%s to artifacts that are missing in this store",
            pull->staging.missing, pull->staging.missing == 1 ? "" : "s");
}

static annal_status pull_all(struct pull *pull)
{
    const struct pull_options *options = pull->options;
    annal_status status = annal__unapplied_settle(pull->staging.store, pull->err);
    if (status >= 0)
        status = options->kind->open(&options->from, false, &pull->target, pull->err);
    if (status >= 0)
        status = staging_begin(&pull->staging, key_of(options));
    if (status >= 0)
        status = pull_session(pull, options->session);
    if (status >= 0 && options->tree)
        status = pull_tree(pull);
    bundle_sort(&pull->staging.bundle);
    if (status >= 0 && pull->staging.bundle.session_count > 0)
        status = staging_finish(&pull->staging);
    return status < 0 ? status : fetch_artifacts(pull);
}

static struct pull pull_of(annal_store *store, const struct pull_options *options, annal_error *err)
{
    return (struct pull){
        .options = options,
        .staging = {.store = store, .from = "the target", .stage_lock = -1, .err = err},
        .err = err};
}

static void pull_done(struct pull *pull, annal_status status)
{
    if (status == ANNAL_ERR_BUSY)
        staging_keep(&pull->staging);
    else
        staging_done(&pull->staging);
    pull->options->kind->close(pull->target);
    names_done(&pull->seen);
    names_done(&pull->tree);
}

annal_status pull_silently(annal_store *store, const struct pull_options *options, annal_error *err)
{
    annal_error ignored = {0};
    struct pull pull = pull_of(store, options, err != NULL ? err : &ignored);
    annal_status status = pull_all(&pull);
    pull_done(&pull, status);
    return status;
}

int pull_run(annal_store *store, const struct pull_options *options)
{
    annal_error err = {0};
    struct pull pull = pull_of(store, options, &err);
    progress_begin(&pull.progress, "pull", 0);
    annal_status status = pull_all(&pull);
    progress_hide(&pull.progress);
    if (status >= 0) {
        print_done(&pull);
        say_more(&pull);
    }
    pull_done(&pull, status);
    return status < 0 ? ship_fail_target(&err) : EXIT_DONE;
}
