/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Playing a session: its events at the pace at which they came, as a conversation or as JSON lines.
 * On a terminal it is paused, stepped and searched with keys. Nothing is executed again: this is
 * what was recorded.
 */
#ifndef TOOLS_SHOW_PLAYER_H
#define TOOLS_SHOW_PLAYER_H

#include <annal/index.h>

struct player_options {
    uint64_t from_seq; /* the first event to show; 0 and 1: the first that exists */
    uint64_t to_seq;   /* the last */
    double speed;      /* 1: as it was; 0: without a pause */
    double gap;        /* the longest wait between two events, in seconds; 0: unlimited */
    bool json;         /* the events as JSON lines */
    bool full;         /* texts are not cut */
    const char *types; /* a glob of the types that are shown; NULL: the conversation */
    const char *cast;  /* the file that it is recorded in, without waiting; NULL: it is played */
};

/* 0 or an exit status. */
int player_run(annal_index *index, annal_slice session, const struct player_options *options);

#endif
