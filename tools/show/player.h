/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Play a session: its events at their original pace, as a conversation or as JSON lines. On a
 * terminal, keys pause, step and search. Nothing is executed again: only the record is shown.
 */
#ifndef TOOLS_SHOW_PLAYER_H
#define TOOLS_SHOW_PLAYER_H

#include <annal/index.h>

struct player_options {
    uint64_t from_seq; /* first event to show; 0 and 1: the first that exists */
    uint64_t to_seq;   /* last event to show */
    double speed;      /* 1: original pace; 0: without a pause */
    double gap;        /* longest wait between two events, in seconds; 0: unlimited */
    bool json;         /* events as JSON lines */
    bool full;         /* long texts are not cut */
    const char *types; /* glob of the types to show; NULL: the conversation */
    const char *cast;  /* file to record without waiting; NULL: play */
};

/* Play the session. 0 or an exit status. */
int player_run(annal_index *index, annal_slice session, const struct player_options *options);

#endif
