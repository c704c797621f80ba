/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/home.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "tools/cli/out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_US INT64_C(5000000) /* interval of the checks for new leases, in us */

static annal_status take_home(void *arg, annal_slice session, const struct home *home,
                              annal_error *err)
{
    (void)session, (void)err;
    *(struct home *)arg = *home;
    return ANNAL_OK;
}

annal_status home_find(const struct home_kind *kind, struct ship_target *target,
                       const char *session, struct home *out, annal_error *err)
{
    struct shipments one = {0};
    *out = (struct home){0};
    annal_status status =
        shipment_try(&one, annal_slice_of(session)) == NULL
            ? annal__fail(err, ANNAL_ERR_NOMEM, "find the home of a session: out of memory")
            : kind->each(target, &one, take_home, out, err);
    shipments_done(&one);
    return status;
}

struct leases {
    annal_store *store;
    const char *giver;
    struct home_lease *list;
    size_t count;
    bool failed;
};

static int collect(void *arg, annal_slice session, uint64_t bytes)
{
    struct leases *leases = arg;
    annal_lease lease;
    (void)bytes;
    if (annal_lease_get(leases->store, session, &lease, NULL) < 0 || lease.seconds == 0 ||
        strcmp(lease.giver, leases->giver) != 0)
        return 0;
    struct home_lease *item = annal__array_add(&leases->list, &leases->count, sizeof *leases->list);
    leases->failed = item == NULL;
    if (item == NULL)
        return 1;
    *item = (struct home_lease){.lease = lease};
    memcpy(item->session, session.ptr, session.len);
    return 0;
}

/* End the lease, because another store took the session: appends are refused, and the lease is not
 * renewed again. */
static annal_status end_lease(annal_store *store, const char *session, annal_lease *lease,
                              annal_error *err)
{
    lease->until_us = 0;
    lease->seconds = 0;
    return annal_lease_set(store, annal_slice_of(session), lease, err);
}

static annal_status note(annal_store *store, struct home_lease *item, int64_t asked_us,
                         annal_error *err)
{
    annal_lease *lease = &item->lease;
    if (item->kept)
        return annal_lease_renew(store, annal_slice_of(item->session), lease->epoch,
                                 asked_us + (int64_t)lease->seconds * 1000000, err);
    annal_status status = end_lease(store, item->session, lease, err);
    if (status >= 0)
        say("session '%s' no longer has its home in this store: the lease of epoch %" PRIu64
            " was lost; appends to the session are refused, 'annal home take' prints what is "
            "missing",
            item->session, lease->epoch);
    return status;
}

/* Save the target's answer for each lease. A lease that another process changed in the meantime
 * (CONFLICT, NOTFOUND) is left to that process. A lease that another process is using (BUSY) is
 * tried again in the next round, so that it does not delay the others. */
static annal_status note_all(const struct leases *leases, int64_t asked_us, annal_error *err)
{
    annal_error first = {0};
    for (size_t i = 0; i < leases->count; i++) {
        annal_error why = {0};
        annal_status status = note(leases->store, &leases->list[i], asked_us, &why);
        if (status < 0 && status != ANNAL_ERR_CONFLICT && status != ANNAL_ERR_NOTFOUND &&
            status != ANNAL_ERR_BUSY && first.status == 0)
            first = why;
    }
    if (first.status < 0 && err != NULL)
        *err = first;
    return first.status;
}

static int64_t third_of(const struct leases *leases)
{
    int64_t shortest_us = INT64_MAX;
    for (size_t i = 0; i < leases->count; i++) {
        int64_t third_us = (int64_t)leases->list[i].lease.seconds * 1000000 / 3;
        shortest_us = third_us < shortest_us ? third_us : shortest_us;
    }
    return shortest_us;
}

int64_t home_pace(int64_t third_us)
{
    return third_us < LOOK_US ? third_us : LOOK_US;
}

annal_status home_renew(annal_store *store, const struct home_kind *kind,
                        struct ship_target *target, int64_t *out_third_us, annal_error *err)
{
    struct leases leases = {.store = store, .giver = kind->name(target)};
    int64_t asked_us = annal_lease_now();
    annal_status status = annal_lease_each(store, collect, &leases, err);
    if (leases.failed)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "renew the leases of sessions: out of memory");
    *out_third_us = third_of(&leases);
    if (status >= 0 && leases.count > 0)
        status = kind->renew(target, leases.list, leases.count, err);
    if (status >= 0)
        status = note_all(&leases, asked_us, err);
    annal__free(leases.list);
    return status < 0 ? status : ANNAL_OK;
}

annal_status home_lost(annal_store *store, const struct home_kind *kind, struct ship_target *target,
                       const char *session, uint64_t epoch, annal_error *err)
{
    annal_lease lease = {0};
    struct home_late late;
    if (annal_lease_get(store, annal_slice_of(session), &lease, NULL) >= 0 && lease.seconds > 0 &&
        lease.epoch == epoch)
        /* ignore a failure: if the lease is in use now, the next renewal ends it */
        (void)end_lease(store, session, &lease, NULL);
    annal_status status = home_late_keep(store, kind, target, session, epoch, &late, err);
    if (status >= 0 && late.copied > 0)
        say("session '%s': %" PRIu64 " event%s after event %" PRIu64
            ", appended after the lease expired, saved as session '%s'",
            session, late.events, late.events == 1 ? "" : "s", late.after_seq, late.name);
    return status;
}
