/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays a session: prints its events at their original pace, as a conversation or as JSON lines. On
 * a terminal, keys pause, step and search. Nothing is executed again: only the record is shown.
 */
#pragma once

#include <annal/index.h>

struct player_options {
    uint64_t from_seq; /* seq of the first event to show; 0 or 1 for the first that exists */
    uint64_t to_seq;   /* seq of the last event to show */
    double speed;      /* factor of the pace: 1 for the original pace, 0 for no pauses */
    double gap;        /* longest pause between two events, in s; 0 for no limit */
    bool json;         /* whether to print events as JSON lines */
    bool full;         /* whether long texts are not cut */
    const char *types; /* glob of the types to show; NULL for the conversation */
    const char *cast;  /* path of a file in which to record, without pauses; NULL: play */
};

/* Play the session. Returns 0 or an exit status. */
int player_run(annal_index *index, annal_slice session, const struct player_options *options);
