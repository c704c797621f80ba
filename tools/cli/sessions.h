/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions that a verb works on. */
#ifndef TOOLS_CLI_SESSIONS_H
#define TOOLS_CLI_SESSIONS_H

#include "tools/cli/fields.h"

#include <annal/store.h>

struct session_name {
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t bytes; /* size of its journal */
};

struct session_list {
    struct session_name *names;
    size_t count;
    uint64_t bytes; /* size of all their journals */
};

/* Add a session; 0 or an exit status. */
int sessions_add(struct session_list *list, annal_slice session, uint64_t journal_bytes);

/* Add the operands as sessions, or all sessions of the store if there are none; 0 or an exit
 * status. */
int sessions_collect(annal_store *store, const struct args *args, struct session_list *list);

/* Add the sessions of their sub-agents, whose ids begin with the id of the session and a dot; 0 or
 * an exit status. */
int sessions_add_sub_agents(annal_store *store, struct session_list *list);

/*
 * Replace abbreviated sessions (FIELD_SESSION and FIELD_SESSIONS) by their ids: at least
 * SESSION_PREFIX_LEAST letters that begin only one session, apart from its sub-agents. Full ids and
 * unknown prefixes are left unchanged; the verb reports unknown sessions. 0 or an exit status.
 */
#define SESSION_PREFIX_LEAST 4
int sessions_resolve(annal_store *store, const struct args *args);

void sessions_done(struct session_list *list);

#endif
