/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions that a verb was asked to work on. */
#ifndef TOOLS_CLI_SESSIONS_H
#define TOOLS_CLI_SESSIONS_H

#include "tools/cli/fields.h"

#include <annal/store.h>

struct session_name {
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t bytes; /* of its journal */
};

struct session_list {
    struct session_name *names;
    size_t count;
    uint64_t bytes; /* of all their journals */
};

/* Add a session; 0 or an exit status. */
int sessions_add(struct session_list *list, annal_slice session, uint64_t journal_bytes);

/* The operands as sessions, or all sessions of the store when there are none; 0 or an exit status.
 */
int sessions_collect(annal_store *store, const struct args *args, struct session_list *list);

/* Add the sessions of their sub-agents, whose ids are theirs, a dot, and more; 0 or an exit
 * status. */
int sessions_add_sub_agents(annal_store *store, struct session_list *list);

/*
 * Replace what was given for FIELD_SESSION and FIELD_SESSIONS by the ids that it begins: at least
 * SESSION_PREFIX_LEAST letters that only one session has, apart from its sub-agents. What is an id
 * stays, and what begins none does, too: the verb says that it is not there. 0 or an exit status.
 */
#define SESSION_PREFIX_LEAST 4
int sessions_resolve(annal_store *store, const struct args *args);

void sessions_done(struct session_list *list);

#endif
