/* Looking at the commit logs of a store, without changing or taking any: for verify and doctor. */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define LOGS_MAX     1000
#define SETTLE_TRIES 20 /* a group that is being written does not verify yet */
#define SETTLE_US    5000

struct log_numbers {
    uint32_t list[LOGS_MAX];
    size_t count;
};

static int add_number(void *arg, const char *name)
{
    struct log_numbers *numbers = arg;
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    if (name[0] >= '0' && name[0] <= '9' && strcmp(end, ".log") == 0 && number < LOGS_MAX &&
        numbers->count < LOGS_MAX)
        numbers->list[numbers->count++] = (uint32_t)number;
    return 0;
}

static int compare_numbers(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static annal_status path_of(const annal_store *store, struct buf *path, const char *part,
                            uint32_t number, const char *suffix, annal_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "%02" PRIu32 "%s", number, suffix);
    return annal__store_path(store, path, part, name, err);
}

/* Whether nobody has its lock. Tried under claim, so that nobody who claims finds it taken by us. */
static bool is_free(annal_store *store, struct log *log)
{
    bool locked = !store->read_only && annal__file_lock_take(store, &store->claim_lock, NULL) == 0;
    bool got = store->io->flock(store->io->arg, log->fd, LOCK_SH | LOCK_NB) == 0;
    if (got)
        (void)store->io->flock(store->io->arg, log->fd, LOCK_UN);
    if (locked)
        annal__file_lock_drop(store, &store->claim_lock);
    return got;
}

static void look_at_list(annal_store *store, struct log *log, annal_log_info *info)
{
    struct buf path = {0};
    struct held held = {.fd = -1};
    struct stat file;
    if (path_of(store, &path, "locks", info->number, ".held", NULL) < 0 || store->read_only ||
        annal__held_open(store->io, path.ptr, false, &held, NULL) < 0 ||
        store->io->fstat(store->io->arg, log->fd, &file) < 0)
        goto done;
    if (!annal__held_is_for(&held, store->boot, &file))
        goto done;
    info->pid = held.header->pid;
    for (uint32_t i = 0; i < annal__held_entries(&held); i++)
        info->sessions += atomic_load(&annal__held_entry(&held, i)->hash) != 0;

done:
    annal__held_close(&held);
    annal__buf_done(&path);
}

/* Count the groups; ANNAL_DAMAGE when some are missing in front of others. */
static annal_status look_at_groups(struct log *log, annal_log_info *info, annal_error *err)
{
    struct log_group *groups = NULL;
    size_t count = 0;
    uint64_t last;
    annal_status status = annal__log_find_groups(log, &groups, &count, err);
    if (status < 0)
        return status;
    uint64_t released = annal__log_released(groups, count);
    info->groups = info->unreleased = info->unreleased_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        info->groups += groups[i].records > 0;
        if (groups[i].epoch > released && groups[i].records > 0) {
            info->unreleased++;
            info->unreleased_bytes += groups[i].payload_bytes;
        }
    }
    if (annal__log_lost(log, groups, count, &last))
        status = ANNAL_DAMAGE;
    annal__free(groups);
    return status;
}

static annal_status look_at_log(annal_store *store, uint32_t number, annal_log_info *out_info,
                                annal_error *err)
{
    struct buf path = {0};
    struct log log = {.fd = -1};
    struct stat file;
    annal_log_info info = {.number = number};
    annal_status status = path_of(store, &path, "commit", number, ".log", err);
    if (status == ANNAL_OK && store->io->stat(store->io->arg, path.ptr, &file) == 0)
        info.bytes = (uint64_t)file.st_size;
    if (status == ANNAL_OK)
        status = annal__log_open(store->io, path.ptr, false, &log, err);
    if (status == ANNAL_ERR_CORRUPT) {
        info.what = "its first block is damaged: nobody can redo what it holds";
        status = ANNAL_OK;
        goto done;
    }
    if (status < 0)
        goto done;
    info.living = !is_free(store, &log);
    look_at_list(store, &log, &info);
    status = look_at_groups(&log, &info, err);
    for (int tries = 0; status == ANNAL_DAMAGE && info.living && tries < SETTLE_TRIES; tries++) {
        _Atomic uint32_t never = 0;
        annal__futex_wait(&never, 0, SETTLE_US);
        status = look_at_groups(&log, &info, err);
    }
    if (status == ANNAL_DAMAGE) {
        info.what = "a group is missing in front of another one: events may be lost";
        status = ANNAL_OK;
    }

done:
    annal__log_close(&log);
    annal__buf_done(&path);
    if (status == ANNAL_OK)
        *out_info = info;
    return status;
}

annal_status annal_store_logs(annal_store *store, annal_log_info_fn fn, void *arg, annal_error *err)
{
    struct buf path = {0};
    struct log_numbers numbers = {.count = 0};
    annal_status status = annal__store_check(store, err);
    if (status == ANNAL_OK)
        status = annal__store_path(store, &path, "commit", "", err);
    if (status == ANNAL_OK && store->io->list(store->io->arg, path.ptr, add_number, &numbers) < 0)
        status = annal__fail_errno(err, "list %s", path.ptr);
    qsort(numbers.list, numbers.count, sizeof numbers.list[0], compare_numbers);
    for (size_t i = 0; i < numbers.count && status == ANNAL_OK; i++) {
        annal_log_info info;
        status = look_at_log(store, numbers.list[i], &info, err);
        if (status == ANNAL_ERR_NOTFOUND)
            status = ANNAL_OK; /* closed by its owner since */
        else if (status == ANNAL_OK)
            status = fn(arg, &info);
    }
    annal__buf_done(&path);
    return status;
}
