/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/store.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/thread.h"
#include "journal/keeper.h"
#include "journal/layout.h"
#include "journal/replace_sweep.h"
#include "journal/session_own.h"
#include "journal/slot.h"
#include "journal/unapplied.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define BATCH_MS_DEFAULT   10
#define WAIT_MS_DEFAULT    10000
#define NO_ADVICE          0x7fff /* a number that madvise(2) does not know as an advice */
#define SAME_PROCESS_BYTES sizeof(uint32_t)

/* ---- Opening ---- */

static annal_status resolve_path(annal_store *store, const char *path, annal_error *err)
{
    char *absolute = NULL;
    if (path[0] == '/') {
        absolute = annal__strndup(path, strlen(path));
    } else {
        char here[4096];
        if (getcwd(here, sizeof here) == NULL)
            return annal__fail_errno(err, "cannot find the current directory");
        SCOPED_BUF joined = {.limit = PATH_BYTES_MAX};
        if (annal__buf_printf(&joined, "%s/%s", here, path) == ANNAL_OK)
            absolute = annal__strndup(joined.ptr, joined.len);
    }
    if (absolute == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open store %.200s: out of memory", path);
    size_t length = strlen(absolute);
    while (length > 1 && absolute[length - 1] == '/')
        absolute[--length] = '\0';
    store->context.path = absolute;
    return ANNAL_OK;
}

static annal_status read_boot_id(uint8_t out[16], annal_error *err)
{
    char text[64] = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (got < 36)
        return annal__fail(
            err, ANNAL_ERR_UNSUPPORTED,
            "cannot read the boot id of the system, which writing needs: mount /proc");
    int nibbles = 0;
    memset(out, 0, 16);
    for (const char *at = text; *at != '\0' && nibbles < 32; at++) {
        char digit[2] = {*at, '\0'};
        char *end;
        unsigned long value = strtoul(digit, &end, 16);
        if (*end != '\0' || *at == ' ')
            continue;
        out[nibbles / 2] = (uint8_t)((unsigned)out[nibbles / 2] << 4 | (unsigned)value);
        nibbles++;
    }
    return ANNAL_OK;
}

static uint32_t descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > 65536)
        return 16384;
    if (limit.rlim_cur < 4 * DESCRIPTORS_RESERVED)
        return DESCRIPTORS_RESERVED / 4;
    return (uint32_t)limit.rlim_cur / 2;
}

/* Return whether the kernel implements MADV_WIPEONFORK. Linux refuses this advice for a shared
 * page; an emulator that accepts any advice, and does nothing, accepts it. */
static bool wipes_on_fork(void)
{
    void *page =
        mmap(NULL, SAME_PROCESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    bool refused = madvise(page, SAME_PROCESS_BYTES, MADV_WIPEONFORK) < 0;
    munmap(page, SAME_PROCESS_BYTES);
    return refused;
}

/*
 * Return a page that fork() sets to zero in a child, because every call checks whether this is
 * still the process that opened the store, and getpid(), a system call, costs as much as reading an
 * event. NULL if the kernel does not implement this: then getpid() is called.
 */
static uint32_t *map_same_process(void)
{
    if (!wipes_on_fork())
        return NULL;
    void *page =
        mmap(NULL, SAME_PROCESS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, SAME_PROCESS_BYTES, NO_ADVICE) == 0 ||
        madvise(page, SAME_PROCESS_BYTES, MADV_WIPEONFORK) < 0) {
        munmap(page, SAME_PROCESS_BYTES);
        return NULL;
    }
    *(uint32_t *)page = 1;
    return page;
}

static annal_status init_store(annal_store *store, const annal_store_options *options,
                               const struct seams *seams, annal_error *err)
{
    store->context.io = seams->io;
    store->context.clock = seams->clock;
    store->context.read_only = options->read_only;
    store->metrics.context = &store->context;
    store->sessions.context = &store->context;
    store->sessions.metrics = &store->metrics;
    store->sessions.alarm = &store->keeper.alarm;
    store->sessions.wakeup = &store->wakeup;
    store->sessions.events = &store->events;
    store->sessions.own_log = &store->own_log;
    store->events.context = &store->context;
    store->events.metrics = &store->metrics;
    store->events.commit = &store->commit;
    store->own_log.context = &store->context;
    store->commit.context = &store->context;
    store->commit.metrics = &store->metrics;
    store->commit.sessions = &store->sessions;
    store->commit.own_log = &store->own_log;
    store->level = options->level != 0 ? options->level : ANNAL_LEVEL_SYNC;
    store->codec = annal__codec_of(options->format);
    if (store->codec == NULL)
        store->codec = annal__codecs[0];
    store->batch_ms = options->batch_ms != 0 ? options->batch_ms : BATCH_MS_DEFAULT;
    store->context.wait_ms = options->wait_ms != 0 ? options->wait_ms : WAIT_MS_DEFAULT;
    store->context.waits.limit_us = INT64_MAX;
    store->commit.region_bytes =
        options->region_bytes != 0 ? options->region_bytes : LOG_REGION_DEFAULT;
    if (store->commit.region_bytes < LOG_REGION_FIRST)
        store->commit.region_bytes = LOG_REGION_FIRST;
    store->events.keep_free_bytes = options->keep_free_bytes;
    store->unsafe_filesystem = options->unsafe_filesystem;
    store->context.log = options->log;
    store->context.log_arg = options->log_arg;
    store->context.pid = getpid();
    store->context.same_process = map_same_process();
    store->events.fd = store->journal_watch.fd = -1;
    store->own_log.log.fd = store->own_log.held.fd = -1;
    store->claim_lock.fd = store->recovery_lock.fd = store->structure_lock.fd = -1;
    atomic_store(&store->keeper.alarm.wakeup_word, &store->keeper.alarm.local_word);
    store->keeper.rotated_us = annal__context_now_us(&store->context);
    atomic_store(&store->sessions.appended_us, store->keeper.rotated_us);
    store->sessions.descriptors_max = descriptor_limit();
    if (pthread_mutex_init(&store->context.waits.lock, NULL) != 0 ||
        pthread_mutex_init(&store->slot.lock, NULL) != 0 ||
        annal__thread_cond_init(&store->slot.moved) != 0 ||
        pthread_mutex_init(&store->sessions.lock, NULL) != 0 ||
        pthread_mutex_init(&store->commit.checkpoint_lock, NULL) != 0 ||
        pthread_mutex_init(&store->events.lock, NULL) != 0 ||
        pthread_mutex_init(&store->tails.lock, NULL) != 0 ||
        pthread_mutex_init(&store->strays.lock, NULL) != 0 ||
        pthread_mutex_init(&store->seek_tables.lock, NULL) != 0 ||
        pthread_mutex_init(&store->keeper.round, NULL) != 0 ||
        annal__filelock_init(&store->claim_lock, "claim") < 0 ||
        annal__filelock_init(&store->recovery_lock, "recovery") < 0 ||
        annal__filelock_init(&store->structure_lock, "structure") < 0 ||
        annal__wakeup_init(&store->wakeup, &store->context) < 0 ||
        annal__journal_watch_init(&store->journal_watch, &store->context) < 0 ||
        annal__commit_init(&store->commit) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open a store: out of memory");
    if (seams->boot != NULL)
        memcpy(store->context.boot, seams->boot, 16);
    /* a store that is open for reading only needs no boot id, because it takes no locks */
    else if (read_boot_id(store->context.boot, err) < 0 && !store->context.read_only)
        return ANNAL_ERR_UNSUPPORTED;
    return ANNAL_OK;
}

/* Free the store object, without writing anything. */
static void free_store(annal_store *store)
{
    if (store == NULL)
        return;
    annal__sessions_done(&store->sessions);
    annal__metrics_close(&store->metrics);
    annal__wakeup_done(&store->wakeup);
    annal__journal_watch_done(&store->journal_watch);
    annal__log_close(&store->own_log.log);
    annal__held_close(&store->own_log.held);
    annal__commit_done(&store->commit);
    annal__filelock_done(&store->context, &store->claim_lock);
    annal__filelock_done(&store->context, &store->recovery_lock);
    annal__filelock_done(&store->context, &store->structure_lock);
    pthread_mutex_destroy(&store->context.waits.lock);
    pthread_mutex_destroy(&store->slot.lock);
    pthread_cond_destroy(&store->slot.moved);
    pthread_mutex_destroy(&store->sessions.lock);
    pthread_mutex_destroy(&store->commit.checkpoint_lock);
    pthread_mutex_destroy(&store->events.lock);
    pthread_mutex_destroy(&store->tails.lock);
    pthread_mutex_destroy(&store->strays.lock);
    pthread_mutex_destroy(&store->seek_tables.lock);
    annal__seek_tables_done(&store->seek_tables);
    annal__buf_done(&store->strays.said);
    pthread_mutex_destroy(&store->keeper.round);
    if (store->events.fd >= 0)
        store->context.io->close(store->context.io->arg, store->events.fd);
    if (store->context.same_process != NULL)
        munmap(store->context.same_process, SAME_PROCESS_BYTES);
    annal__free(store->context.path);
    annal__free(store);
}

/* Find the store, or create it. An existing store that is opened for writing is completed, because
 * locks/ may have been removed, and nothing in locks/ is needed. */
static annal_status find_or_make(annal_store *store, const annal_store_options *options,
                                 annal_error *err)
{
    annal_error missing = {0};
    annal_status status = annal__layout_find(store, &missing);
    if (!options->read_only &&
        (status == ANNAL_OK || (options->create && status == ANNAL_ERR_NOTFOUND)))
        return annal__layout_make(store, err);
    return annal__error_pass(err, status, &missing);
}

annal_status annal__store_open(const char *path, const annal_store_options *options,
                               const struct seams *seams, annal_store **out_store, annal_error *err)
{
    static const annal_store_options defaults;
    if (options == NULL)
        options = &defaults;
    if (path == NULL || path[0] == '\0')
        return annal__fail(err, ANNAL_ERR_INVALID, "open a store: the path of the store is empty");

    annal_store *store = annal__zalloc(sizeof *store);
    if (store == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open store %s: out of memory", path);
    /*
     * number of a slot whose log may contain events that are in no journal, or SLOTS_MAX for none
     */
    uint32_t missing = SLOTS_MAX;
    annal_status status = init_store(store, options, seams, err);
    if (status < 0)
        goto done;
    status = resolve_path(store, path, err);
    if (status < 0)
        goto done;
    status = find_or_make(store, options, err);
    if (status == ANNAL_OK)
        status = annal__layout_open_events(store, err);
    if (status == ANNAL_OK)
        status = annal__layout_check_filesystem(store, err);
    if (status == ANNAL_OK)
        status = annal__layout_check_version(store, err);
    if (status == ANNAL_OK)
        annal__metrics_open(&store->metrics);
    if (status == ANNAL_OK && !store->context.read_only)
        status = annal__slots_recover(store, &missing, err);
    if (status == ANNAL_OK && !store->context.read_only)
        annal__replace_sweep(store);
    if (status == ANNAL_OK && store->context.read_only)
        missing = annal__slots_find_redone(store);
    if (status == ANNAL_OK && (store->context.read_only || missing != SLOTS_MAX))
        annal__unapplied_warn(store, missing);
    if (status == ANNAL_OK && !store->context.read_only && !options->no_keeper)
        status = annal__keeper_start(store, err);
    if (status < 0)
        goto done;

    *out_store = store;
    store = NULL; /* the store belongs to the caller now */

done:
    free_store(store);
    return status;
}

annal_status annal_store_open(const char *path, const annal_store_options *options,
                              annal_store **out_store, annal_error *err)
{
    static const struct seams system = {.io = &annal__system_io, .clock = &annal__system_clock};
    return annal__store_open(path, options, &system, out_store, err);
}

/* ---- Closing ---- */

struct leaving {
    annal_store *store;
    annal_status status; /* status of the first session that could not be released */
};

static annal_status release_if_owned(void *arg, struct session *session, annal_error *err)
{
    struct leaving *leaving = arg;
    annal_error failure;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&session->lock);
    if (session->state == SESSION_OWNED)
        status = annal__session_release(leaving->store, session, &failure);
    pthread_mutex_unlock(&session->lock);
    if (status < 0 && leaving->status == ANNAL_OK) {
        leaving->status = status;
        if (err != NULL)
            *err = failure;
    }
    return ANNAL_OK; /* continue after a failure, so that all other sessions are released */
}

/* Release this store object's slot, after a checkpoint. Sessions that could not be released stay in
 * the held list, and are recovered from the log when the store is opened next. */
static annal_status leave_slot(annal_store *store, annal_error *err)
{
    struct leaving leaving = {.store = store};
    (void)annal__commit_take_broken(
        &store->commit); /* forget the failure: it was logged when it happened */
    annal_status status = annal_store_checkpoint(store, err);
    annal_error *first = status < 0 ? NULL : err;
    (void)annal__session_each(&store->sessions, release_if_owned, &leaving, first);
    if (status == ANNAL_OK)
        status = leaving.status;
    if (status < 0)
        return status;
    annal__slot_leave(store);
    if (atomic_load(&store->tombstones))
        annal__replace_sweep(store);
    annal_error broken = annal__commit_take_broken(&store->commit);
    if (broken.status == ANNAL_OK)
        return ANNAL_OK;
    annal__fail(err, ANNAL_ERR_IO,
                "close store %.200s: %.300s; every event that was acknowledged is durable in its "
                "journal",
                store->context.path, broken.message);
    if (err != NULL)
        err->os_errno = broken.os_errno;
    return ANNAL_ERR_IO;
}

annal_status annal_store_close(annal_store *store, annal_error *err)
{
    if (store == NULL)
        return ANNAL_OK;
    annal_status status = ANNAL_OK;
    if (store->context.pid == getpid()) {
        uint32_t writers = atomic_load(&store->open_writers);
        annal__keeper_stop(store);
        if (atomic_load(&store->slot.claimed))
            status = leave_slot(store, err);
        if (status == ANNAL_OK && writers > 0)
            status = annal__fail(err, ANNAL_ERR_INVALID,
                                 "close store %.200s: %" PRIu32 " of its writers %s still open; "
                                 "close writers before their store",
                                 store->context.path, writers, writers == 1 ? "is" : "are");
    }
    free_store(store);
    return status;
}
