/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for events without a thread for each wait: one thread watches the descriptors of tails,
 * and the times.
 */
#pragma once

#include <annal/tail.h>

struct waits;

/* A member of the struct that waits. Set fn and arg before the first use, until_us before each. */
struct wait {
    /* Called in the thread of the waits. over: it is not possible to wait any more, because the
     * server ends. */
    void (*fn)(void *arg, bool over);
    void *arg;
    int64_t until_us; /* of the monotonic clock */

    /* Used by waits.c only. */
    struct wait *previous, *next;
    enum { WAIT_NOT, WAIT_LISTED, WAIT_DUE } state;
    bool is_ready; /* whether a tail has news since fn was called */
};

annal_status waits_new(struct waits **out, annal_error *err);

/* Watch a tail for a wait, until waits_unwatch(), which accepts NULL. A wait that has a tail is
 * freed in fn, so that the thread does not use it any more. */
annal_status waits_watch(struct waits *waits, struct wait *wait, annal_tail *tail,
                         annal_error *err);
void waits_unwatch(struct waits *waits, annal_tail *tail);

/* Call fn once: waits_for() when a tail has news, or at until_us; waits_call() soon. They return
 * false, and fn is not called, if the server ends. Any thread. */
bool waits_for(struct waits *waits, struct wait *wait);
bool waits_call(struct waits *waits, struct wait *wait);

/* waits_stop() calls fn of all waits; waits_free() frees the waits, when nothing uses them any
 * more. Both accept NULL. */
void waits_stop(struct waits *waits);
void waits_free(struct waits *waits);
