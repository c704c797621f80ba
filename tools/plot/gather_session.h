/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the data of the timeline of one session: the times of its events, and what happened.
 *
 * (1) A fork shows its complete history: shared events are taken from the rows of its ancestors, up
 *     to the fork point. A turn or call that was open at the fork point ends where the fork ended
 *     it, not where the ancestor did.
 * (2) Memory grows with the number of pauses and of tools, not with the number of events.
 * (3) Tokens are counted as in the pack core: tokens of a turn that has already ended are not
 *     counted again.
 */
#ifndef TOOLS_PLOT_GATHER_SESSION_H
#define TOOLS_PLOT_GATHER_SESSION_H

#include "index/sys/view.h"
#include "tools/plot/gather.h"

#include <annal/store.h>

/* Minimum length of a time without events that counts as a pause, in us. */
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
    uint64_t events; /* number of events in the range that have a time */
    /* number of events without a time (gather.h); 0 if the range has a lower bound */
    uint64_t untimed;
    uint64_t damaged;       /* number of damaged lines, which are not drawn */
    int64_t from_us, to_us; /* earliest and latest time of the events in the range, in us */
    struct pause *pauses;   /* sorted by time */
    size_t pause_count;
    struct tool *tools; /* sorted by number of calls, the most called first */
    size_t tool_count;
    struct session_part *parts; /* the journals with its history, the oldest first */
    size_t part_count;
};

enum happening_kind {
    HAPPENED_EVENT, /* any event; reported only for sessions without turns */
    HAPPENED_TURN,
    HAPPENED_USER,
    HAPPENED_CALL,
    HAPPENED_TOKENS,
    HAPPENED_FAIL
};

struct happening {
    enum happening_kind kind;
    annal_slice name; /* name of the tool, turn or failure; may be empty */
    int64_t from_us, to_us;
    bool failed;
    bool open; /* whether the span has not ended; to_us is then the end of the session */
    int64_t input_tokens, output_tokens;
};

/*
 * Receive one happening, whose slices are valid during the call. Return 0 to continue; another
 * value ends the calls and is returned.
 */
typedef int (*happening_fn)(void *arg, const struct happening *what);

/* Read the times, pauses and tools of a session. The members id and range of out must be set. */
annal_status gather_session(annal_store *store, annal__view *view, struct session *out,
                            annal_error *err);

/* After gather_session(): report everything that happened in the range, one kind after the
 * other. */
annal_status gather_happenings(annal_index *index, annal__view *view, struct session *session,
                               happening_fn fn, void *arg, annal_error *err);

void gather_session_done(struct session *session);

#endif
