/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which journals changed, as the kernel reports it, so that a reader that has looked at every
 * journal need not look at all of them again.
 *
 * (1) The kernel reports each change of a file in events/ by any program of this machine before the
 *     system call that makes the change returns. So a reader that asks after an append learns of
 *     it.
 * (2) The sessions of the last JOURNAL_WATCH_MAX changed journals are kept. A reader that has not
 *     asked for longer, or from which the kernel lost a change, looks at all journals.
 * (3) Nothing is watched before the first question, nor where it is not known that the kernel
 *     reports every change (io.watch). Then every reader looks at all journals.
 */
#pragma once

#include "journal/context.h"

#include <pthread.h>

#define JOURNAL_WATCH_MAX 1024

struct journal_watch {
    const struct context *context;
    pthread_mutex_t lock;
    int fd; /* descriptor of io.watch; -1: nothing is watched */
    dev_t device;
    ino_t inode;     /* of the directory that is watched */
    uint64_t number; /* number of the last change */
    uint64_t lost;   /* number of the last change whose session is not known any more */
    /* last change of each session after `lost` */
    struct journal_change *changes;
    size_t count;
};

annal_status annal__journal_watch_init(struct journal_watch *watch, const struct context *context);
void annal__journal_watch_done(struct journal_watch *watch);

/* ---- session_list.c ---- */

/* Return the format that the name of a file indicates, or NULL if it is not the name of a journal.
 * *out_length is the length of the session's id in it. */
const struct codec *annal__session_list_codec(const char *name, size_t *out_length);
