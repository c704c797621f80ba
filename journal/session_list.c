/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that only read a store: its sessions, the properties of a session, counters. */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/base/thread.h"
#include "journal/scan.h"
#include "journal/store.h"
#include "journal/store_journal.h"
#include "journal/sys/seam.h"
#include "journal/sys/session_trim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *annal_store_path(const annal_store *store)
{
    return store->context.path;
}

bool annal__session_list_is_read_only(const annal_store *store)
{
    return store->context.read_only;
}

struct name {
    size_t at; /* offset of the file's name in names->text */
    size_t session_bytes;
    uint64_t key; /* eight bytes of the id at which ids usually differ (make_keys()) */
    const struct codec *codec;
    /*
     * size of the file in bytes; 0: the file is empty, removed or not regular, or `failed` is set
     */
    uint64_t bytes;
    int failed;  /* errno with which the file could not be examined, or 0 */
    bool denied; /* whether the permissions of the file deny this user to read it */
};

struct names {
    annal_store *store;
    struct name *list;
    size_t count;
    struct buf text;
    bool no_memory;
    /* whether files that are not the journal of a session are reported to the log callback */
    bool is_reporting;
};

const struct codec *annal__session_list_codec(const char *name, size_t *out_length)
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
    const struct codec *codec = annal__session_list_codec(name, &length);
    if (codec == NULL) {
        if (names->is_reporting)
            annal__stray_note_name(names->store, name);
        return 0;
    }
    struct name *last = annal__array_add(&names->list, &names->count, sizeof *last);
    if (last != NULL)
        *last = (struct name){.at = names->text.len, .session_bytes = length, .codec = codec};
    names->no_memory = last == NULL || annal__buf_append(&names->text, name, strlen(name) + 1) < 0;
    names->count -= last != NULL && names->no_memory;
    return names->no_memory;
}

/* ---- Sorting names ---- */

static annal_slice session_at(const struct names *names, const struct name *name)
{
    return (annal_slice){names->text.ptr + name->at, name->session_bytes};
}

static size_t common_bytes(annal_slice a, annal_slice b, size_t most)
{
    size_t count = 0;
    while (count < most && count < a.len && count < b.len && a.ptr[count] == b.ptr[count])
        count++;
    return count;
}

/* Set the key of each name to the eight bytes of its id after the common prefix of all ids, so that
 * most comparisons need only the keys. */
static void make_keys(struct names *names)
{
    size_t common = SIZE_MAX;
    annal_slice first = session_at(names, &names->list[0]);
    for (size_t i = 0; i < names->count; i++)
        common = common_bytes(first, session_at(names, &names->list[i]), common);
    for (size_t i = 0; i < names->count; i++) {
        annal_slice id = session_at(names, &names->list[i]);
        uint64_t key = 0;
        for (size_t byte = common; byte < common + 8; byte++)
            key = key << 8 | (byte < id.len ? (unsigned char)id.ptr[byte] : 0);
        names->list[i].key = key;
    }
}

static int compare_names(const void *left, const void *right, void *arg)
{
    const struct name *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    annal_slice x = session_at(arg, a), y = session_at(arg, b);
    int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);
    if (order == 0 && x.len != y.len)
        order = x.len < y.len ? -1 : 1;
    return order != 0 ? order : (int)a->codec->format - (int)b->codec->format;
}

/* ---- Sizes of the files ---- */

/* A range of names whose files one thread examines. */
struct look {
    annal_store *store;
    const struct io *io;
    const char *directory;
    struct names *names;
    size_t from, to;
    uid_t user; /* for whom permissions are checked */
    struct buf path;
};

static void look_at(struct look *look, struct name *name)
{
    bool regular = false;
    const char *file = look->names->text.ptr + name->at;
    annal__buf_clear(&look->path);
    /* without a format, which would take as long as a third of the system call */
    if (annal__buf_append(&look->path, look->directory, strlen(look->directory)) < 0 ||
        annal__buf_append(&look->path, "/", 1) < 0 ||
        annal__buf_append(&look->path, file, strlen(file) + 1) < 0)
        name->failed = ENOMEM;
    else {
        int measured =
            look->io->measure(look->io->arg, look->path.ptr, look->user, &regular, &name->bytes);
        if (measured < 0)
            /* ENOENT: the file was deleted in the meantime, which is not a failure */
            name->failed = errno == ENOENT ? 0 : errno;
        name->denied = measured > 0;
    }
    if (!regular)
        name->bytes = 0;
}

static void *look_at_names(void *arg)
{
    struct look *look = arg;
    for (size_t i = look->from; i < look->to; i++)
        look_at(look, &look->names->list[i]);
    annal__buf_done(&look->path);
    return NULL;
}

#define NAMES_MANY 8192

/* Examine all files, in two threads. Used for many names, because examining the files takes most of
 * the time of a listing. */
static void look_at_all(const struct look *all)
{
    pthread_t helper;
    struct look first = *all, second = *all;
    first.to = second.from = all->to / 2;
    bool helped = annal__thread_start(&helper, look_at_names, &second) == 0;
    (void)look_at_names(&first);
    if (helped)
        pthread_join(helper, NULL);
    else
        (void)look_at_names(&second);
}

/* Return whether the next name in the list belongs to the same session, and is the name of its
 * journal. */
static bool is_next_right(const struct look *look, size_t i)
{
    const struct names *names = look->names;
    SCOPED_BUF path = {0};
    const struct codec *codec = NULL;
    annal_slice session = session_at(names, &names->list[i]);
    return i + 1 < names->count &&
           annal__slice_same(session_at(names, &names->list[i + 1]), session) &&
           annal__store_journal_find(&look->store->context, session, &path, &codec, NULL) ==
               ANNAL_OK &&
           codec == names->list[i + 1].codec;
}

/* Call fn for each session whose journal is not empty. */
static annal_status visit_names(struct look *look, annal_session_fn fn, void *arg, annal_error *err)
{
    annal_status status = ANNAL_OK;
    const struct names *names = look->names;
    bool many = names->count >= NAMES_MANY;
    const struct name *last = NULL; /* name of the last session that was passed to fn */
    for (size_t i = 0; i < names->count && status == ANNAL_OK; i++) {
        struct name *name = &names->list[i];
        annal_slice session = session_at(names, name);
        /* whether fn has received the session already: it may have journals in both formats */
        bool again = last != NULL && annal__slice_same(session_at(names, last), session);
        if (again || is_next_right(look, i)) {
            if (names->is_reporting)
                annal__stray_note_double(look->store, session);
            continue;
        }
        if (!many)
            look_at(look, name);
        /* fail: the list must not omit a session that exists */
        if (name->failed != 0) {
            errno = name->failed;
            return annal__fail_errno(err, "cannot examine %s/%s", look->directory,
                                     names->text.ptr + name->at);
        }
        if (name->bytes == 0)
            continue;
        last = name;
        if (names->is_reporting && name->denied)
            /* reports the journal to the log callback */
            (void)annal__stray_is(look->store, session);
        status = fn(arg, session, name->bytes);
    }
    return status;
}

static annal_status list_sessions(annal_store *store, bool is_reporting, annal_session_fn fn,
                                  void *arg, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct names names = {.store = store, .is_reporting = is_reporting};
    struct look look = {0};
    annal_status status = annal__context_check(&store->context, err);
    if (status == ANNAL_OK)
        status = annal__context_path(&store->context, &path, "events", "", err);
    if (status < 0)
        goto done;
    if (store->context.io->list(store->context.io->arg, path.ptr, collect_name, &names) < 0) {
        status = annal__fail_errno(err, "cannot list %s", path.ptr);
        goto done;
    }
    if (names.no_memory) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "list %s: out of memory", path.ptr);
        goto done;
    }
    if (names.count == 0)
        goto done;
    make_keys(&names);
    qsort_r(names.list, names.count, sizeof *names.list, compare_names, &names);
    look =
        (struct look){store, store->context.io, path.ptr, &names, 0, names.count, geteuid(), {0}};
    if (names.count >= NAMES_MANY)
        look_at_all(&look);
    status = visit_names(&look, fn, arg, err);

done:
    annal__buf_done(&look.path);
    annal__free(names.list);
    annal__buf_done(&names.text);
    return status;
}

annal_status annal_session_each(annal_store *store, annal_session_fn fn, void *arg,
                                annal_error *err)
{
    return list_sessions(store, true, fn, arg, err);
}

annal_status annal__session_list_read(annal_store *store, annal_session_fn fn, void *arg,
                                      annal_error *err)
{
    return list_sessions(store, false, fn, arg, err);
}

annal_status annal_session_info_get(annal_store *store, annal_slice session,
                                    annal_session_info *out_info, annal_error *err)
{
    const struct codec *codec = NULL;
    struct journal_tail tail;
    int fd = -1;
    annal_status status = annal__context_check(&store->context, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = annal__store_journal_open(&store->context, session, &fd, &codec, err);
    if (status < 0)
        return status;
    status = annal__scan_tail(store->context.io, fd, codec, &tail, err);
    if (status < 0) {
        annal__error_context(err, "session '%.*s'", ANNAL_FMT(session));
        goto done;
    }
    tail.header.session = annal_slice_of(tail.session);
    status = tail.has_header ? annal__codec_check_owner(&tail.header, session, err) : ANNAL_OK;
    if (status < 0)
        goto done;
    annal_session_info info = {.format = codec->format,
                               .bytes = tail.size,
                               .last_seq = tail.seq,
                               .last_ts_us = tail.ts_us,
                               .last_h = tail.h,
                               .end_offset = tail.end,
                               .torn = tail.state == TAIL_TORN};
    memcpy(info.session, session.ptr, session.len);
    if (tail.has_header) {
        annal__codec_file_id_text(tail.header.file, info.file);
        info.created_us = tail.header.created_us;
        if (tail.header.is_replacement)
            annal__codec_file_id_text(tail.header.replaces, info.replaces);
    }
    memcpy(info.fork_session, tail.fork, sizeof info.fork_session);
    info.fork_seq = tail.header.fork_seq;
    info.fork_h = tail.header.fork_h;
    info.first_seq = info.fork_seq + 1;
    *out_info = info;

done:
    store->context.io->close(store->context.io->arg, fd);
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
    /* If the callback stops early, the next call passes the remaining sessions. */
    return changed && walk->fn(walk->arg, annal__session_id(session), bytes) != 0 ? ANNAL_ERR_CLOSED
                                                                                  : ANNAL_OK;
}

uint64_t annal__session_list_changed(annal_store *store, uint64_t since, annal_session_fn fn,
                                     void *arg)
{
    uint64_t now = atomic_load(&store->sessions.changes);
    if (now == since)
        return now;
    struct changed_walk walk = {since, fn, arg};
    return annal__session_each(&store->sessions, visit_changed, &walk, NULL) < 0 ? since : now;
}

void annal__session_trim(annal_store *store, annal_slice id)
{
    struct session *session = annal__session_find(&store->sessions, id);
    if (session == NULL || pthread_mutex_trylock(&session->lock) != 0)
        return;
    if (session->pending == 0 && session->state != SESSION_BUSY) {
        annal__ids_done(&session->ids);
        session->ids_loaded = false;
        if (session->create_logged && session->exists)
            annal__buf_done(&session->header);
    }
    pthread_mutex_unlock(&session->lock);
}
