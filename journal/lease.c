/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases of sessions: the files leases/<session>.
 *
 * (1) A lease is one line, replaced by a rename under locks/structure, so the epoch in a file never
 *     decreases.
 * (2) A process caches in session->lease_until_us the time until which it may append, and reads the
 *     file again after that time. A change that shortens this time first takes the session from its
 *     owner, which then reads the file when it owns the session again. So an append compares one
 *     number and, if the session has a lease, reads the clock.
 * (3) The line names the boot in which it was written. CLOCK_BOOTTIME starts again with each boot,
 *     so a lease from an earlier boot has expired.
 */
#include "journal/lease.h"

#include "journal/base/error.h"
#include "journal/filelock.h"
#include "journal/replace_claim.h"
#include "journal/store.h"

#include <annal/process.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LEASES         "leases"
#define LINE_BYTES_MAX 512
#define BOOT_BYTES     37

int64_t annal_lease_now(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static annal_status lease_path(const annal_store *store, annal_slice session, struct buf *out,
                               annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    return annal__context_path(&store->context, out, LEASES, name, err);
}

static annal_status find_boot(char out[BOOT_BYTES], annal_error *err)
{
    annal_process self;
    annal_status status = annal_process_self(&self, err);
    if (status == ANNAL_OK)
        memcpy(out, self.boot_id, BOOT_BYTES);
    return status;
}

/* Parse the line of a lease: "1 EPOCH UNTIL SECONDS BOOT GIVER\n"; it begins with 2 if the session
 * is shared. */
static annal_status parse(char *line, annal_lease *out, annal_error *err)
{
    char here[BOOT_BYTES] = "", boot[BOOT_BYTES] = "";
    unsigned version = 0;
    int at = 0;
    char *end = strchr(line, '\n');
    annal_status status = find_boot(here, err);
    if (status < 0)
        return status;
    if (end == NULL || end[1] != '\0' ||
        sscanf(line, "%u %" SCNu64 " %" SCNd64 " %" SCNu32 " %36s %n", &version, &out->epoch,
               &out->until_us, &out->seconds, boot, &at) != 5 ||
        at == 0 || version == 0 || version > 2 || out->epoch == 0)
        return annal__fail(err, ANNAL_ERR_CORRUPT, "the lease is damaged");
    *end = '\0';
    if (line + at <= end)
        snprintf(out->giver, sizeof out->giver, "%s", line + at);
    out->shared = version == 2;
    if (strcmp(boot, here) != 0)
        out->until_us = 0;
    return ANNAL_OK;
}

static annal_status read_line(annal_store *store, const char *path, char line[LINE_BYTES_MAX],
                              annal_error *err)
{
    const struct io *io = store->context.io;
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    if (fd < 0 && errno == ENOENT)
        return ANNAL_ERR_NOTFOUND;
    ssize_t got = fd < 0 ? -1 : annal__io_read_full(io, fd, line, LINE_BYTES_MAX - 1, 0);
    annal_status status = got < 0 ? annal__fail_errno(err, "cannot read %s", path) : ANNAL_OK;
    if (fd >= 0)
        io->close(io->arg, fd);
    line[got > 0 ? got : 0] = '\0';
    return status;
}

annal_status annal_lease_get(annal_store *store, annal_slice session, annal_lease *out_lease,
                             annal_error *err)
{
    char line[LINE_BYTES_MAX] = "";
    SCOPED_BUF path = {0};
    annal_lease lease = {0};
    annal_status status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = lease_path(store, session, &path, err);
    if (status == ANNAL_OK)
        status = read_line(store, path.ptr, line, err);
    if (status == ANNAL_ERR_NOTFOUND)
        annal__fail(err, status, "session '%.*s' has no lease", ANNAL_FMT(session));
    else if (status == ANNAL_OK && (status = parse(line, &lease, err)) < 0)
        annal__error_context(err, "read %s", path.ptr);
    else if (status == ANNAL_OK)
        *out_lease = lease;
    return status;
}

/* ---- Before an append ---- */

static annal_status refuse(const struct session *session, const annal_lease *lease,
                           annal_error *err)
{
    if (lease->shared)
        return annal__fail(err, ANNAL_ERR_REFUSED,
                           "append to session '%s': refused, because the session is shared: its "
                           "events are decided at %s first",
                           session->id, lease->giver);
    return annal__fail(
        err, ANNAL_ERR_REFUSED,
        "append to session '%s': refused, because this store is not the session's home now: the "
        "lease of epoch %" PRIu64 "%s%s has ended; 'annal home take' takes the home again",
        session->id, lease->epoch, lease->giver[0] != '\0' ? " from " : "", lease->giver);
}

annal_status annal__lease_check(annal_store *store, struct session *session, uint64_t decided_h,
                                annal_error *err)
{
    annal_lease lease = {0};
    annal_error read = {0};
    if (session->lease_until_us == INT64_MAX ||
        (session->lease_until_us > 0 && annal_lease_now() < session->lease_until_us))
        return ANNAL_OK;
    session->lease_until_us = 0;
    annal_status status = annal_lease_get(store, annal__session_id(session), &lease, &read);
    if (status == ANNAL_ERR_NOTFOUND) {
        session->lease_until_us = INT64_MAX;
        return ANNAL_OK;
    }
    if (status < 0) {
        if (err != NULL)
            *err = read;
        annal__error_context(err, "append to session '%s': check its lease", session->id);
        return status;
    }
    if (lease.shared && decided_h != 0)
        return ANNAL_OK;
    if (annal_lease_now() >= lease.until_us)
        return refuse(session, &lease, err);
    session->lease_until_us = lease.until_us;
    return ANNAL_OK;
}

/* ---- Setting ---- */

static annal_status write_lease(annal_store *store, annal_slice session, const annal_lease *lease,
                                annal_error *err)
{
    char boot[BOOT_BYTES] = "", line[LINE_BYTES_MAX];
    SCOPED_BUF path = {0};
    annal_status status = find_boot(boot, err);
    if (status == ANNAL_OK)
        status = annal__context_path(&store->context, &path, LEASES, "", err);
    if (status == ANNAL_OK)
        status = annal__io_make_dir(store->context.io, path.ptr, err);
    if (status == ANNAL_OK)
        status = lease_path(store, session, &path, err);
    if (status == ANNAL_OK) {
        bool ends = !lease->shared && lease->until_us > 0;
        int len = snprintf(line, sizeof line, "%d %" PRIu64 " %" PRId64 " %" PRIu32 " %s %s\n",
                           lease->shared ? 2 : 1, lease->epoch, ends ? lease->until_us : 0,
                           lease->shared ? 0 : lease->seconds, boot, lease->giver);
        status = annal__io_publish_file(store->context.io, path.ptr, line, (size_t)len, err);
    }
    return status;
}

/* Refuse a lease with an earlier epoch than the present lease. *out_longer is set to whether the
 * new lease has the same epoch and does not expire earlier. The caller holds locks/structure. */
static annal_status compare(annal_store *store, annal_slice session, const annal_lease *lease,
                            bool *out_longer, annal_error *err)
{
    annal_lease old = {0};
    annal_status status = annal_lease_get(store, session, &old, NULL);
    *out_longer = status == ANNAL_OK && !lease->shared && old.epoch == lease->epoch &&
                  old.until_us > 0 && lease->until_us >= old.until_us;
    if (status == ANNAL_OK && old.epoch > lease->epoch)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "set the lease of session '%.*s': the given epoch %" PRIu64
                           " is earlier than epoch %" PRIu64
                           " of the lease that the session already has",
                           ANNAL_FMT(session), lease->epoch, old.epoch);
    return ANNAL_OK;
}

/* Extend the session's lease until until_us, if it has this epoch. The caller holds the lock
 * locks/structure. */
static annal_status renew_held(annal_store *store, annal_slice session, uint64_t epoch,
                               int64_t until_us, annal_error *err)
{
    annal_lease lease = {0};
    annal_status status = annal_lease_get(store, session, &lease, err);
    if (status < 0)
        return status;
    if (lease.epoch != epoch || lease.seconds == 0)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "renew the lease of session '%.*s': the lease of epoch %" PRIu64
                           " was released or has expired",
                           ANNAL_FMT(session), epoch);
    if (until_us <= lease.until_us)
        return ANNAL_OK;
    lease.until_us = until_us;
    return write_lease(store, session, &lease, err);
}

annal_status annal_lease_renew(annal_store *store, annal_slice session, uint64_t epoch,
                               int64_t until_us, annal_error *err)
{
    annal_status status = annal__context_check_writable(&store->context, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = annal__filelock_take(&store->context, &store->structure_lock,
                                      annal__context_deadline(&store->context), 0, err);
    if (status < 0)
        return status;
    status = renew_held(store, session, epoch, until_us, err);
    annal__filelock_drop(&store->context, &store->structure_lock);
    return status;
}

/* Write the lease if it only extends the present lease: the session then stays with the process
 * that owns it (rule 2). *out_done says whether it was written. */
static annal_status make_longer(annal_store *store, annal_slice session, const annal_lease *lease,
                                bool *out_done, annal_error *err)
{
    annal_status status = annal__filelock_take(&store->context, &store->structure_lock,
                                               annal__context_deadline(&store->context), 0, err);
    if (status < 0)
        return status;
    status = compare(store, session, lease, out_done, err);
    if (status == ANNAL_OK && *out_done)
        status = write_lease(store, session, lease, err);
    annal__filelock_drop(&store->context, &store->structure_lock);
    return status;
}

annal_status annal_lease_set(annal_store *store, annal_slice session, const annal_lease *lease,
                             annal_error *err)
{
    struct change change;
    bool done = false, longer = false;
    annal_status status = annal__context_check_writable(&store->context, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    if (lease->epoch == 0 || strchr(lease->giver, '\n') != NULL ||
        memchr(lease->giver, '\0', sizeof lease->giver) == NULL)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "set the lease of session '%.*s': the epoch must be at least 1, and the "
                           "giver must be one line",
                           ANNAL_FMT(session));
    status = make_longer(store, session, lease, &done, err);
    if (status < 0 || done)
        return status;
    status = annal__replace_claim(&change, store, session, false, err);
    if (status == ANNAL_OK)
        status = compare(store, session, lease, &longer, err);
    if (status == ANNAL_OK)
        status = write_lease(store, session, lease, err);
    annal__replace_end(&change);
    return status;
}

annal_status annal__lease_forget(annal_store *store, annal_slice session, annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = lease_path(store, session, &path, err);
    if (status == ANNAL_OK && store->context.io->unlink(store->context.io->arg, path.ptr) < 0 &&
        errno != ENOENT)
        status = annal__fail_errno(err, "cannot remove %s", path.ptr);
    return status;
}

/* ---- All ---- */

struct walk {
    annal_session_fn fn;
    void *arg;
    int answer;
};

static int visit(void *arg, const char *name)
{
    struct walk *walk = arg;
    annal_slice session = annal_slice_of(name);
    if (annal__io_is_temporary(name) || annal_session_id_check(session, NULL) < 0)
        return 0;
    return walk->answer = walk->fn(walk->arg, session, 0);
}

annal_status annal_lease_each(annal_store *store, annal_session_fn fn, void *arg, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct walk walk = {fn, arg, 0};
    annal_status status = annal__context_path(&store->context, &path, LEASES, "", err);
    if (status == ANNAL_OK) {
        int listed = store->context.io->list(store->context.io->arg, path.ptr, visit, &walk);
        if (walk.answer != 0)
            status = (annal_status)walk.answer;
        else if (listed < 0 && errno != ENOENT)
            status = annal__fail_errno(err, "cannot list %s", path.ptr);
    }
    return status;
}
