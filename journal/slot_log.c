/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/slot_log.h"

#include "journal/base/error.h"

#include <stdio.h>
#include <unistd.h>

/* Create a log under a temporary name, which belongs to no slot. */
annal_status annal__slot_make_log(const struct context *context, uint64_t region_bytes,
                                  struct log *out_log, annal_error *err)
{
    SCOPED_BUF path = {0};
    char name[64];
    snprintf(name, sizeof name, ".new-%ld-%p", (long)getpid(), (void *)out_log);
    annal_status status = annal__context_path(context, &path, "commit", name, err);
    if (status == ANNAL_OK) {
        context->io->unlink(context->io->arg, path.ptr);
        status = annal__log_create(context->io, path.ptr, region_bytes,
                                   context->clock->wall_us(context->clock->arg), out_log, err);
    }
    return status;
}

void annal__slot_drop_log(const struct context *context, struct log *fresh)
{
    if (fresh->fd >= 0)
        context->io->unlink(context->io->arg, fresh->path);
    annal__log_close(fresh);
}

annal_status annal__slot_sync_name(const struct context *context, const struct held *held,
                                   annal_error *err)
{
    SCOPED_BUF path = {0};
    if (atomic_load(&held->header->named) != 0)
        return ANNAL_OK;
    annal_status status = annal__context_path(context, &path, "commit", "", err);
    if (status == ANNAL_OK)
        status = annal__io_sync_dir(context->io, path.ptr, err);
    if (status == ANNAL_OK)
        atomic_store(&held->header->named, 1);
    return status;
}

/*
 * Replace the log of this slot by the log `fresh`. Does so without locks/claim, because a stopped
 * process may hold locks/claim, and commits must not wait for that. At any moment, other processes
 * find a log that is locked and a list that is valid for it; a process that opened the old file
 * before notices that the name moved (other_try()).
 */
static annal_status swap_logs(struct own_log *own, struct log *fresh, annal_error *err)
{
    struct stat ours, file;
    if (own->context->io->fstat(own->context->io->arg, own->log.fd, &ours) < 0 ||
        own->context->io->fstat(own->context->io->arg, fresh->fd, &file) < 0)
        return annal__fail_errno(err, "cannot examine commit log %s", own->log.path);
    annal__held_bind_next(&own->held, &file);
    bool renamed = own->context->io->rename(own->context->io->arg, fresh->path, own->log.path) == 0;
    annal_status status =
        renamed ? ANNAL_OK : annal__fail_errno(err, "cannot rename %s", fresh->path);
    annal__held_bind_done(&own->held, renamed ? &file : &ours);
    if (!renamed)
        return status;
    snprintf(fresh->path, sizeof fresh->path, "%s", own->log.path);
    annal__log_close(&own->log);
    own->log = *fresh;
    atomic_store(&own->region_bytes, own->log.regions[0].bytes);
    *fresh = (struct log){.fd = -1};
    return ANNAL_OK;
}

annal_status annal__slot_put_log(struct own_log *own, struct log *fresh, annal_error *err)
{
    struct log *log = &own->log;
    fresh->epoch = fresh->durable_released = log->epoch;
    fresh->group = log->group;
    fresh->end = fresh->regions[0].bytes;
    annal_status status = swap_logs(own, fresh, err);
    if (status == ANNAL_OK) {
        status = annal__slot_sync_name(own->context, &own->held, err);
        if (status < 0)
            /* after a power cut, either of the two logs may have the name, so neither can be
             * written */
            log->state = LOG_BROKEN;
    }
    annal__slot_drop_log(own->context, fresh);
    return status;
}
