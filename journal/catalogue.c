/* What callers ask of a store without writing: which sessions there are, what is known of one,
 * counters. */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/scan.h"
#include "journal/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

const char *annal_store_path(const annal_store *store)
{
    return store->path;
}

bool annal_store_is_read_only(const annal_store *store)
{
    return store->read_only;
}

void annal_store_log(const annal_store *store, annal_log_level level, const char *message)
{
    annal__store_log(store, level, "%s", message);
}

struct name {
    char *session;
    const struct codec *codec;
};

struct names {
    struct name *list;
    size_t count;
    size_t room;
    bool no_memory;
};

/* The format that the name of a file says; NULL: it is no journal. *out_length: of the session's
 * id. */
static const struct codec *codec_of_name(const char *name, size_t *out_length)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        size_t suffix = strlen(annal__codecs[i]->suffix);
        if (length > suffix && strcmp(name + length - suffix, annal__codecs[i]->suffix) == 0 &&
            annal_session_id_check((annal_slice){name, length - suffix}, NULL) == ANNAL_OK) {
            *out_length = length - suffix;
            return annal__codecs[i];
        }
    }
    return NULL;
}

static int collect_name(void *arg, const char *name)
{
    struct names *names = arg;
    size_t length;
    const struct codec *codec = codec_of_name(name, &length);
    if (codec == NULL)
        return 0;
    if (names->count == names->room) {
        size_t room = names->room == 0 ? 64 : names->room * 2;
        struct name *bigger = annal__realloc_array(names->list, room, sizeof *bigger);
        names->no_memory = bigger == NULL;
        if (bigger == NULL)
            return 1;
        names->list = bigger;
        names->room = room;
    }
    struct name *last = &names->list[names->count];
    *last = (struct name){annal__strndup(name, length), codec};
    names->no_memory = last->session == NULL;
    names->count += !names->no_memory;
    return names->no_memory;
}

static int compare_names(const void *left, const void *right)
{
    const struct name *a = left, *b = right;
    int order = strcmp(a->session, b->session);
    return order != 0 ? order : (int)a->codec->format - (int)b->codec->format;
}

/* fn, unless there is nothing in it. */
static annal_status visit_name(annal_store *store, const struct name *name, annal_session_fn fn,
                               void *arg, bool *out_visited, annal_error *err)
{
    struct buf path = {0};
    struct stat file;
    annal_slice session = annal_slice_of(name->session);
    annal_status status = annal__journal_path(store, session, name->codec, &path, err);
    if (status < 0)
        goto done;
    if (store->io->stat(store->io->arg, path.ptr, &file) == 0) {
        *out_visited = S_ISREG(file.st_mode) && file.st_size > 0;
        if (*out_visited)
            status = fn(arg, session, (uint64_t)file.st_size);
    } else if (errno != ENOENT) { /* deleted meanwhile; a session that is there is not left out */
        status = annal__fail_errno(err, "look at %s", path.ptr);
    }

done:
    annal__buf_done(&path);
    return status;
}

annal_status annal_store_sessions(annal_store *store, annal_session_fn fn, void *arg,
                                  annal_error *err)
{
    struct buf path = {0};
    struct names names = {0};
    annal_status status = annal__store_check(store, err);
    if (status == ANNAL_OK)
        status = annal__store_path(store, &path, "events", "", err);
    if (status < 0)
        goto done;
    if (store->io->list(store->io->arg, path.ptr, collect_name, &names) < 0) {
        status = annal__fail_errno(err, "list %s", path.ptr);
        goto done;
    }
    if (names.no_memory) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "list %s: no memory", path.ptr);
        goto done;
    }
    if (names.count > 0)
        qsort(names.list, names.count, sizeof *names.list, compare_names);
    bool visited = false;
    for (size_t i = 0; i < names.count && status == ANNAL_OK; i++) {
        /* In both formats: one session all the same. */
        visited = visited && strcmp(names.list[i].session, names.list[i - 1].session) == 0;
        if (!visited)
            status = visit_name(store, &names.list[i], fn, arg, &visited, err);
    }

done:
    for (size_t i = 0; i < names.count; i++)
        annal__free(names.list[i].session);
    annal__free(names.list);
    annal__buf_done(&path);
    return status;
}

annal_status annal_session_info_get(annal_store *store, annal_slice session,
                                    annal_session_info *out_info, annal_error *err)
{
    const struct codec *codec = NULL;
    struct journal_tail tail;
    int fd = -1;
    annal_status status = annal__store_check(store, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = annal__journal_open(store, session, &fd, &codec, err);
    if (status < 0)
        return status;
    status = annal__scan_tail(store->io, fd, codec, &tail, err);
    if (status < 0) {
        annal__error_context(err, "session '%.*s'", ANNAL_FMT(session));
        goto done;
    }
    annal_session_info info = {.format = codec->format,
                               .bytes = tail.size,
                               .last_seq = tail.seq,
                               .last_ts_us = tail.ts_us,
                               .last_h = tail.h,
                               .end_offset = tail.end,
                               .torn = tail.state == TAIL_TORN};
    memcpy(info.session, session.ptr, session.len);
    if (tail.has_header) {
        annal__frame_file_id_text(tail.header.file, info.file);
        info.created_us = tail.header.created_us;
        if (tail.header.is_replacement)
            annal__frame_file_id_text(tail.header.replaces, info.replaces);
    }
    memcpy(info.fork_session, tail.fork, sizeof info.fork_session);
    info.fork_seq = tail.header.fork_seq;
    info.fork_h = tail.header.fork_h;
    info.first_seq = info.fork_seq + 1;
    *out_info = info;

done:
    store->io->close(store->io->arg, fd);
    return status;
}

struct changed_walk {
    uint64_t since;
    annal_session_fn fn;
    void *arg;
};

static annal_status visit_changed(void *arg, struct session *session, annal_error *err)
{
    (void)err;
    struct changed_walk *walk = arg;
    pthread_mutex_lock(&session->lock);
    bool changed = session->changed > walk->since;
    uint64_t bytes = session->end;
    pthread_mutex_unlock(&session->lock);
    /* A callback that wants to stop misses the rest, which comes again next time. */
    return changed && walk->fn(walk->arg, annal__session_id(session), bytes) != 0 ? ANNAL_ERR_CLOSED
                                                                                  : ANNAL_OK;
}

uint64_t annal_store_changed(annal_store *store, uint64_t since, annal_session_fn fn, void *arg)
{
    uint64_t now = atomic_load(&store->changes);
    if (now == since)
        return now;
    struct changed_walk walk = {since, fn, arg};
    return annal__session_each(store, visit_changed, &walk, NULL) < 0 ? since : now;
}
