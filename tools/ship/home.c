#include "tools/ship/home.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RENEW_MS = 5000 }; /* without leases: how often to look for some */

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

/* The session belongs to another store now. */
static annal_status lose(const struct leases *leases, struct home_lease *item, annal_error *err)
{
    item->lease.until_us = 0;
    item->lease.seconds = 0; /* and is not asked for again */
    annal_status status =
        annal_lease_set(leases->store, annal_slice_of(item->session), &item->lease, err);
    if (status >= 0)
        say("session '%s' is not at home here any more: its lease of epoch %" PRIu64
            " was lost; appends are refused, 'annal home take' says what it needs",
            item->session, item->lease.epoch);
    return status;
}

static annal_status note(const struct leases *leases, int64_t asked_us, int64_t *out_next_us,
                         annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < leases->count && status >= 0; i++) {
        struct home_lease *item = &leases->list[i];
        int64_t length_us = (int64_t)item->lease.seconds * 1000000;
        if (!item->kept) {
            status = lose(leases, item, err);
            continue;
        }
        item->lease.until_us = asked_us + length_us;
        status = annal_lease_set(leases->store, annal_slice_of(item->session), &item->lease, err);
        if (asked_us + length_us / 3 < *out_next_us)
            *out_next_us = asked_us + length_us / 3;
    }
    return status;
}

annal_status home_renew(annal_store *store, const struct home_kind *kind,
                        struct ship_target *target, int64_t *out_next_us, annal_error *err)
{
    struct leases leases = {.store = store, .giver = kind->name(target)};
    int64_t asked_us = annal_lease_now();
    *out_next_us = asked_us + RENEW_MS * INT64_C(1000);
    annal_status status = annal_lease_sessions(store, collect, &leases, err);
    if (leases.failed)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    if (status >= 0 && leases.count > 0)
        status = kind->renew(target, leases.list, leases.count, err);
    if (status >= 0)
        status = note(&leases, asked_us, out_next_us, err);
    annal__free(leases.list);
    return status < 0 ? status : ANNAL_OK;
}
