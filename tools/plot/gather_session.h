/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read the data of the timeline of one session: the times of its events, and what happened.
 *
 * (1) A fork shows its one history: shared events are taken from the rows of its ancestors, up to
 *     the fork point. A turn or call that was open there ends where the fork ended it, not where
 *     the ancestor did.
 * (2) Memory grows with the pauses and the kinds of tools, not with the events.
 * (3) Tokens are counted as in the pack core: tokens of a turn that has already ended are not
 *     counted again.
 */
#ifndef TOOLS_PLOT_GATHER_SESSION_H
#define TOOLS_PLOT_GATHER_SESSION_H

#include "index/sys/view.h"
#include "tools/plot/gather.h"

#include <annal/store.h>

/* A pause is at least this long without an event. */
#define PAUSE_US (5 * 60 * 1000000LL)

struct pause {
    int64_t from_us, to_us;
};

struct tool {
    char *name; /* "" if unknown */
    uint64_t calls;
};

struct session_part;

struct session {
    annal_slice id;
    struct time_range range;
    uint64_t events;        /* in the range, without events without a time */
    uint64_t untimed;       /* see gather.h; 0 if the range has a lower bound */
    uint64_t damaged;       /* damaged lines, which are not drawn */
    int64_t from_us, to_us; /* times of these events */
    struct pause *pauses;   /* by time */
    size_t pause_count;
    struct tool *tools; /* sorted by calls */
    size_t tool_count;
    struct session_part *parts; /* oldest first */
    size_t part_count;
};

enum happening_kind {
    HAPPENED_EVENT, /* any; reported only for sessions without turns */
    HAPPENED_TURN,
    HAPPENED_USER,
    HAPPENED_CALL,
    HAPPENED_TOKENS,
    HAPPENED_FAIL
};

struct happening {
    enum happening_kind kind;
    annal_slice name; /* name of the tool, turn or failure */
    int64_t from_us, to_us;
    bool failed;
    bool open; /* whether it has not ended: to_us is the session's end */
    int64_t input_tokens, output_tokens;
};

/*
 * Callback: 0 continues; any other value stops, and is returned. Slices are valid until it returns.
 */
typedef int (*happening_fn)(void *arg, const struct happening *what);

/* Read times, pauses and tools. id and range of out are set before. */
annal_status gather_session(annal_store *store, annal__view *view, struct session *out,
                            annal_error *err);

/* Then report everything that happened in the range, kind by kind. */
annal_status gather_happenings(annal_index *index, annal__view *view, struct session *session,
                               happening_fn fn, void *arg, annal_error *err);

void gather_session_done(struct session *session);

#endif
