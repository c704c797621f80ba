/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sync.h"

#include "journal/base/error.h"
#include "journal/failure_late.h"
#include "journal/level_os.h"
#include "journal/store.h"

annal_status annal__sync_all(annal_store *store, annal_error *err)
{
    annal_status status = annal__context_check_writable(&store->context, err);
    if (status < 0)
        return status;
    /* annal__level_os_sync() may write groups; whether one of them was refused is visible only in
     * the number of refusals */
    uint64_t refusals = annal__commit_refusals(&store->commit);
    status = annal__level_os_sync(&store->commit, err);
    if (status == ANNAL_OK)
        status = annal__failure_refuse_unknown(&store->sessions, err);
    if (status == ANNAL_OK && annal__commit_refusals(&store->commit) != refusals)
        status = annal__fail(
            err, ANNAL_ERR_IO,
            "sync store %s: a write of the commit log failed in the meantime; try again",
            store->context.path);
    return status;
}

annal_status annal_store_sync(annal_store *store, annal_error *err)
{
    annal_status status = annal__sync_all(store, err);
    return status < 0 ? status : annal__commit_take_loss(&store->commit, err);
}

annal_status annal_store_checkpoint(annal_store *store, annal_error *err)
{
    annal_status status = annal_store_sync(store, err);
    if (status == ANNAL_OK && atomic_load(&store->slot.claimed))
        status = annal__commit_rotate(&store->commit, err);
    return status;
}
