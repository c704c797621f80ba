/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions on which a verb works. */
#pragma once

#include "tools/cli/fields.h"

#include <annal/store.h>

struct session_name {
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t bytes; /* size of the session's journal in bytes */
};

struct session_list {
    struct session_name *names;
    size_t count;
    uint64_t bytes; /* sum of the sizes of the sessions' journals, in bytes */
};

/* Add a session. */
void sessions_add(struct session_list *list, annal_slice session, uint64_t journal_bytes);

/* Add the sessions that are operands; without operands, all sessions of the store. Returns 0 or an
 * exit status. */
int sessions_collect(annal_store *store, const struct args *args, struct session_list *list);

/* Add the sub-agents of the listed sessions: their ids begin with the id of the session and a dot.
 * Returns 0 or an exit status. */
int sessions_add_sub_agents(annal_store *store, struct session_list *list);

/*
 * Replace abbreviated ids (FIELD_SESSION and FIELD_SESSIONS) by complete ids. An abbreviation has
 * at least SESSION_PREFIX_LEAST letters, and only one session, apart from its sub-agents, begins
 * with it. Complete ids and unknown abbreviations are left unchanged; the verb reports unknown
 * sessions. Returns 0 or an exit status.
 */
#define SESSION_PREFIX_LEAST 4
int sessions_resolve(annal_store *store, const struct args *args);

/* Replace one id in the same way; room is memory of ARGS_ID_BYTES that exists as long as *word. */
int sessions_resolve_word(annal_store *store, const char **word, char *room);

void sessions_done(struct session_list *list);
