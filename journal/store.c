#include "journal/store.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/checkpoint.h"
#include "journal/keeper.h"
#include "journal/scan.h"
#include "journal/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#define BATCH_MS_DEFAULT 10
#define WAIT_MS_DEFAULT  10000

static const char *const directories[] = {"events", "commit", "locks"};

/* ---- Small things that all files use ---- */

annal_status annal__store_path(const annal_store *store, struct buf *out, const char *part,
                               const char *name, annal_error *err)
{
    annal__buf_clear(out);
    out->limit = PATH_BYTES_MAX;
    annal_status status =
        annal__buf_printf(out, "%s/%s%s%s", store->path, part, name[0] == '\0' ? "" : "/", name);
    if (status < 0)
        return annal__fail(err, status, "a path in store %.200s is too long", store->path);
    return ANNAL_OK;
}

annal_status annal__journal_path(const annal_store *store, annal_slice session, struct buf *out,
                                 annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 8];
    snprintf(name, sizeof name, "%.*s.jsonl", ANNAL_FMT(session));
    return annal__store_path(store, out, "events", name, err);
}

void annal__store_log(const annal_store *store, annal_log_level level, const char *format, ...)
{
    if (store->log == NULL)
        return;
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    store->log(store->log_arg, level, message);
}

int64_t annal__now_us(const annal_store *store)
{
    return store->clock->monotonic_us(store->clock->arg);
}

annal_status annal__store_check(const annal_store *store, annal_error *err)
{
    if (store->pid != getpid())
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "this store was opened by process %d; open it again after fork()",
                           (int)store->pid);
    return ANNAL_OK;
}

annal_status annal__store_check_writable(const annal_store *store, annal_error *err)
{
    annal_status status = annal__store_check(store, err);
    if (status < 0)
        return status;
    if (store->read_only)
        return annal__fail(err, ANNAL_ERR_IO, "store %s is open for reading only", store->path);
    return ANNAL_OK;
}

int annal__store_fdatasync(annal_store *store, int fd)
{
    atomic_fetch_add_explicit(&store->syncs, 1, memory_order_relaxed);
    return store->io->fdatasync(store->io->arg, fd);
}

int annal__store_sync_events(annal_store *store)
{
    int result = 0;
    pthread_mutex_lock(&store->events_lock);
    if (atomic_exchange(&store->events_dirty, false)) {
        atomic_fetch_add_explicit(&store->syncs, 1, memory_order_relaxed);
        result = store->io->fsync(store->io->arg, store->events_dir);
        if (result < 0)
            atomic_store(&store->events_dirty, true);
    }
    pthread_mutex_unlock(&store->events_lock);
    return result;
}

/* ---- Lock files ---- */

annal_status annal__file_lock_init(struct file_lock *lock, const char *name)
{
    lock->fd = -1;
    snprintf(lock->name, sizeof lock->name, "%s", name);
    return pthread_mutex_init(&lock->mutex, NULL) == 0 ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

/* Somebody may have removed the file while we waited; then the lock on it excludes nobody. */
static bool is_still_there(const annal_store *store, int fd, const char *path)
{
    struct stat ours, theirs;
    return store->io->fstat(store->io->arg, fd, &ours) == 0 &&
           store->io->stat(store->io->arg, path, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
           ours.st_dev == theirs.st_dev;
}

annal_status annal__file_lock_take(annal_store *store, struct file_lock *lock, annal_error *err)
{
    struct buf path = {0};
    annal_status status = annal__store_path(store, &path, "locks", lock->name, err);
    if (status < 0)
        goto done;
    pthread_mutex_lock(&lock->mutex);
    for (;;) {
        if (lock->fd < 0)
            lock->fd = store->io->open(store->io->arg, path.ptr, O_RDWR | O_CREAT, 0600);
        if (lock->fd < 0 || store->io->flock(store->io->arg, lock->fd, LOCK_EX) < 0) {
            status = annal__fail_errno(err, "lock %s", path.ptr);
            pthread_mutex_unlock(&lock->mutex);
            break;
        }
        if (is_still_there(store, lock->fd, path.ptr))
            break;
        store->io->close(store->io->arg, lock->fd);
        lock->fd = -1;
    }

done:
    annal__buf_done(&path);
    return status;
}

void annal__file_lock_drop(annal_store *store, struct file_lock *lock)
{
    store->io->flock(store->io->arg, lock->fd, LOCK_UN);
    pthread_mutex_unlock(&lock->mutex);
}

void annal__file_lock_done(annal_store *store, struct file_lock *lock)
{
    if (lock->fd >= 0)
        store->io->close(store->io->arg, lock->fd);
    pthread_mutex_destroy(&lock->mutex);
}

/* ---- Opening ---- */

static annal_status resolve_path(annal_store *store, const char *path, annal_error *err)
{
    char *absolute = NULL;
    if (path[0] == '/') {
        absolute = annal__strndup(path, strlen(path));
    } else {
        char here[4096];
        if (getcwd(here, sizeof here) == NULL)
            return annal__fail_errno(err, "find the current directory");
        struct buf joined = {.limit = PATH_BYTES_MAX};
        if (annal__buf_printf(&joined, "%s/%s", here, path) == ANNAL_OK)
            absolute = annal__strndup(joined.ptr, joined.len);
        annal__buf_done(&joined);
    }
    if (absolute == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open store %.200s: no memory", path);
    size_t length = strlen(absolute);
    while (length > 1 && absolute[length - 1] == '/')
        absolute[--length] = '\0';
    store->path = absolute;
    return ANNAL_OK;
}

/* Make the store's directory and the missing ones above it. */
static annal_status make_path(const annal_store *store, annal_error *err)
{
    annal_status status = ANNAL_OK;
    struct stat found;
    for (char *slash = strchr(store->path + 1, '/'); status == ANNAL_OK && slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        /* Whatever stands there already, also behind a link, is not ours to judge. */
        if (stat(store->path, &found) < 0)
            status = annal__make_dir(store->io, store->path, err);
        *slash = '/';
    }
    if (status == ANNAL_OK && stat(store->path, &found) < 0)
        status = annal__make_dir(store->io, store->path, err);
    return status;
}

static annal_status make_directories(const annal_store *store, annal_error *err)
{
    struct buf path = {0};
    annal_status status = make_path(store, err);
    for (size_t i = 0; status == ANNAL_OK && i < sizeof directories / sizeof *directories; i++) {
        status = annal__store_path(store, &path, directories[i], "", err);
        if (status == ANNAL_OK)
            status = annal__make_dir(store->io, path.ptr, err);
    }
    annal__buf_done(&path);
    return status;
}

static bool has_events(const annal_store *store)
{
    struct buf path = {0};
    struct stat found;
    bool there = annal__store_path(store, &path, "events", "", NULL) == ANNAL_OK &&
                 store->io->stat(store->io->arg, path.ptr, &found) == 0 && S_ISDIR(found.st_mode);
    annal__buf_done(&path);
    return there;
}

struct filesystem {
    uint64_t type; /* statfs f_type; linux/magic.h and statfs(2) */
    const char *name;
    bool refused;
};

/* Locks, syncs and shared memory do not hold across machines; copy-on-write is only slower. */
static const struct filesystem filesystems[] = {
    {0x6969, "NFS", true},        {0x517b, "SMB", true},      {0xff534d42, "CIFS", true},
    {0xfe534d42, "SMB2", true},   {0x564c, "NCP", true},      {0x73757245, "Coda", true},
    {0x5346414f, "AFS", true},    {0x00c36400, "Ceph", true}, {0x0bd00bd0, "Lustre", true},
    {0x01021997, "9P", true},     {0x65735546, "FUSE", true}, {0x47504653, "GPFS", true},
    {0x9123683e, "Btrfs", false}, {0x2fc12fc1, "ZFS", false}, {0xca451a4e, "bcachefs", false},
};

static annal_status check_filesystem(const annal_store *store, annal_error *err)
{
    struct io_space space;
    if (store->io->space(store->io->arg, store->events_dir, &space) < 0)
        return annal__fail_errno(err, "look at the filesystem of %s", store->path);
    for (size_t i = 0; i < sizeof filesystems / sizeof *filesystems; i++) {
        const struct filesystem *known = &filesystems[i];
        if (known->type != space.fs_type)
            continue;
        if (known->refused)
            return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                               "store %s is on a network filesystem (%s), where locks and syncs "
                               "cannot be trusted; put it on a local disk",
                               store->path, known->name);
        annal__store_log(store, ANNAL_LOG_WARNING,
                         "store %s is on %s, which copies on write: syncs cost more there",
                         store->path, known->name);
    }
    return ANNAL_OK;
}

/* locks/version holds the store's version as a decimal; a store without it is of version 1. */
static annal_status check_version(annal_store *store, annal_error *err)
{
    struct buf path = {0};
    char text[16] = {0};
    int fd = -1;
    annal_status status = annal__store_path(store, &path, "locks", "version", err);
    if (status < 0)
        goto done;
    fd = store->io->open(store->io->arg, path.ptr, O_RDONLY, 0);
    if (fd < 0 && errno == ENOENT) {
        if (!store->read_only) {
            int length = snprintf(text, sizeof text, "%d\n", STORE_VERSION);
            status = annal__publish_file(store->io, path.ptr, text, (size_t)length, err);
        }
        goto done;
    }
    if (fd < 0 || annal__read_full(store->io, fd, text, sizeof text - 1, 0) < 0) {
        status = annal__fail_errno(err, "read %s", path.ptr);
        goto done;
    }
    if (strtol(text, NULL, 10) > STORE_VERSION)
        status = annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                             "store %s is of version %ld, this library knows version %d",
                             store->path, strtol(text, NULL, 10), STORE_VERSION);

done:
    if (fd >= 0)
        store->io->close(store->io->arg, fd);
    annal__buf_done(&path);
    return status;
}

static annal_status open_events_dir(annal_store *store, annal_error *err)
{
    struct buf path = {0};
    annal_status status = annal__store_path(store, &path, "events", "", err);
    if (status == ANNAL_OK) {
        store->events_dir = store->io->open(store->io->arg, path.ptr, O_RDONLY | O_DIRECTORY, 0);
        if (store->events_dir < 0)
            status = annal__fail_errno(err, "open %s", path.ptr);
    }
    annal__buf_done(&path);
    return status;
}

static annal_status read_boot_id(uint8_t out[16], annal_error *err)
{
    char text[64] = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (got < 36)
        return annal__fail_errno(err, "read the boot id of the system");
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

static annal_status init_store(annal_store *store, const annal_store_options *options,
                               const struct seams *seams, annal_error *err)
{
    store->io = seams->io;
    store->clock = seams->clock;
    store->read_only = options->read_only;
    store->level = options->level != 0 ? options->level : ANNAL_LEVEL_SYNC;
    store->batch_ms = options->batch_ms != 0 ? options->batch_ms : BATCH_MS_DEFAULT;
    store->wait_ms = options->wait_ms != 0 ? options->wait_ms : WAIT_MS_DEFAULT;
    store->region_bytes = options->region_bytes != 0 ? options->region_bytes : LOG_REGION_DEFAULT;
    if (store->region_bytes < LOG_REGION_FIRST)
        store->region_bytes = LOG_REGION_FIRST;
    store->log = options->log;
    store->log_arg = options->log_arg;
    store->pid = getpid();
    store->events_dir = -1;
    store->slot.log.fd = store->slot.held.fd = -1;
    atomic_store(&store->keeper.bell, &store->keeper.local_bell);
    store->keeper.rotated_us = annal__now_us(store);
    store->descriptors_max = descriptor_limit();
    if (pthread_mutex_init(&store->slot.lock, NULL) != 0 ||
        pthread_mutex_init(&store->sessions_lock, NULL) != 0 ||
        pthread_mutex_init(&store->checkpoint_lock, NULL) != 0 ||
        pthread_mutex_init(&store->events_lock, NULL) != 0 ||
        pthread_mutex_init(&store->keeper.round, NULL) != 0 ||
        annal__file_lock_init(&store->claim_lock, "claim") < 0 ||
        annal__file_lock_init(&store->recovery_lock, "recovery") < 0 ||
        annal__commit_init(&store->commit, err) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open a store: no memory");
    if (seams->boot != NULL)
        memcpy(store->boot, seams->boot, 16);
    else
        return read_boot_id(store->boot, err);
    return ANNAL_OK;
}

/* Free everything; writes nothing. */
static void free_store(annal_store *store)
{
    if (store == NULL)
        return;
    annal__sessions_done(store);
    annal__log_close(&store->slot.log);
    annal__held_close(&store->slot.held);
    annal__commit_done(&store->commit);
    annal__file_lock_done(store, &store->claim_lock);
    annal__file_lock_done(store, &store->recovery_lock);
    pthread_mutex_destroy(&store->slot.lock);
    pthread_mutex_destroy(&store->sessions_lock);
    pthread_mutex_destroy(&store->checkpoint_lock);
    pthread_mutex_destroy(&store->events_lock);
    pthread_mutex_destroy(&store->keeper.round);
    if (store->events_dir >= 0)
        store->io->close(store->io->arg, store->events_dir);
    annal__free(store->path);
    annal__free(store);
}

annal_status annal__store_open(const char *path, const annal_store_options *options,
                               const struct seams *seams, annal_store **out_store, annal_error *err)
{
    static const annal_store_options defaults;
    if (options == NULL)
        options = &defaults;
    if (path == NULL || path[0] == '\0')
        return annal__fail(err, ANNAL_ERR_INVALID, "open a store: its path is empty");

    annal_store *store = annal__zalloc(sizeof *store);
    if (store == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open store %s: no memory", path);
    annal_status status = init_store(store, options, seams, err);
    if (status < 0)
        goto done;
    status = resolve_path(store, path, err);
    if (status < 0)
        goto done;
    /* Somebody may have removed locks/: nothing in it is needed. */
    if (!options->read_only && (options->create || has_events(store)))
        status = make_directories(store, err);
    else if (!has_events(store))
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no store at %s", store->path);
    if (status == ANNAL_OK)
        status = open_events_dir(store, err);
    if (status == ANNAL_OK)
        status = check_filesystem(store, err);
    if (status == ANNAL_OK)
        status = check_version(store, err);
    if (status == ANNAL_OK && !store->read_only)
        status = annal__slots_recover(store, err);
    if (status == ANNAL_OK && store->read_only)
        annal__slots_look(store);
    if (status == ANNAL_OK && !store->read_only && !options->no_keeper)
        status = annal__keeper_start(store, err);
    if (status < 0)
        goto done;

    *out_store = store;
    store = NULL; /* now the caller's */

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

static annal_status release_if_owned(void *arg, struct session *session, annal_error *err)
{
    annal_store *store = arg;
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&session->lock);
    if (session->state == SESSION_OWNED)
        status = annal__session_release(store, session, err);
    pthread_mutex_unlock(&session->lock);
    return status;
}

annal_status annal_store_close(annal_store *store, annal_error *err)
{
    if (store == NULL)
        return ANNAL_OK;
    annal_status status = ANNAL_OK;
    if (store->pid == getpid()) {
        annal__keeper_stop(store);
        if (store->slot.claimed) {
            status = annal_checkpoint(store, err);
            if (status == ANNAL_OK)
                status = annal__session_each(store, release_if_owned, store, err);
            if (status == ANNAL_OK)
                annal__slot_leave(store);
        }
    }
    free_store(store);
    return status;
}

/* ---- What callers ask ---- */

const char *annal_store_path(const annal_store *store)
{
    return store->path;
}

bool annal_store_is_read_only(const annal_store *store)
{
    return store->read_only;
}

struct names {
    char **names; /* session ids */
    size_t count;
    size_t room;
    bool no_memory;
};

static const char journal_suffix[] = ".jsonl";

static int collect_name(void *arg, const char *name)
{
    struct names *names = arg;
    size_t length = strlen(name);
    size_t suffix = sizeof journal_suffix - 1;
    if (length <= suffix || strcmp(name + length - suffix, journal_suffix) != 0 ||
        annal_session_id_check((annal_slice){name, length - suffix}, NULL) < 0)
        return 0;
    if (names->count == names->room) {
        size_t room = names->room == 0 ? 64 : names->room * 2;
        char **bigger = annal__realloc_array(names->names, room, sizeof *bigger);
        names->no_memory = bigger == NULL;
        if (bigger == NULL)
            return 1;
        names->names = bigger;
        names->room = room;
    }
    names->names[names->count] = annal__strndup(name, length - suffix);
    names->no_memory = names->names[names->count] == NULL;
    names->count += !names->no_memory;
    return names->no_memory;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
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
        qsort(names.names, names.count, sizeof *names.names, compare_names);
    for (size_t i = 0; i < names.count && status == ANNAL_OK; i++) {
        annal_slice session = annal_slice_of(names.names[i]);
        struct stat file;
        status = annal__journal_path(store, session, &path, err);
        if (status == ANNAL_OK && store->io->stat(store->io->arg, path.ptr, &file) == 0 &&
            S_ISREG(file.st_mode) && file.st_size > 0)
            status = fn(arg, session, (uint64_t)file.st_size);
    }

done:
    for (size_t i = 0; i < names.count; i++)
        annal__free(names.names[i]);
    annal__free(names.names);
    annal__buf_done(&path);
    return status;
}

annal_status annal_session_info_get(annal_store *store, annal_slice session,
                                    annal_session_info *out_info, annal_error *err)
{
    struct buf path = {0};
    struct journal_tail tail;
    int fd = -1;
    annal_status status = annal__store_check(store, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = annal__journal_path(store, session, &path, err);
    if (status < 0)
        goto done;
    fd = store->io->open(store->io->arg, path.ptr, O_RDONLY, 0);
    if (fd < 0) {
        status = errno == ENOENT ? annal__fail(err, ANNAL_ERR_NOTFOUND,
                                               "there is no session '%.*s'", ANNAL_FMT(session))
                                 : annal__fail_errno(err, "open %s", path.ptr);
        goto done;
    }
    status = annal__scan_tail(store->io, fd, &tail, err);
    if (status < 0) {
        annal__error_context(err, "session '%.*s'", ANNAL_FMT(session));
        goto done;
    }
    annal_session_info info = {.bytes = tail.size,
                               .last_seq = tail.seq,
                               .last_ts_us = tail.ts_us,
                               .last_h = tail.h,
                               .end_offset = tail.end};
    memcpy(info.session, session.ptr, session.len);
    if (tail.has_header) {
        annal__frame_file_id_text(tail.header.file, info.file);
        info.created_us = tail.header.created_us;
    }
    *out_info = info;

done:
    if (fd >= 0)
        store->io->close(store->io->arg, fd);
    annal__buf_done(&path);
    return status;
}

void annal_store_stats_get(annal_store *store, annal_store_stats *out_stats)
{
    *out_stats = (annal_store_stats){
        .events = atomic_load(&store->events),
        .payload_bytes = atomic_load(&store->payload_bytes),
        .groups = atomic_load(&store->groups),
        .log_bytes = atomic_load(&store->log_bytes),
        .journal_bytes = atomic_load(&store->journal_bytes),
        .syncs = atomic_load(&store->syncs),
        .checkpoints = atomic_load(&store->checkpoints),
        .recovered_groups = atomic_load(&store->recovered_groups),
        .torn_bytes = atomic_load(&store->torn_bytes),
        .sessions_owned = atomic_load(&store->sessions_owned),
    };
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
