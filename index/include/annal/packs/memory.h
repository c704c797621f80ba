/* SPDX-License-Identifier: Apache-2.0 */
/* The context of an agent, chosen from the tables of pack memory. */
#ifndef ANNAL_PACKS_MEMORY_H
#define ANNAL_PACKS_MEMORY_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annal_memory_layer {
    ANNAL_MEMORY_BOUNDARY = 1, /* an active architectural or scope decision: binds all agents */
    ANNAL_MEMORY_MEMORY = 2,   /* what an agent of the project remembers */
    ANNAL_MEMORY_SESSION = 3   /* the current session: overrides nothing */
} annal_memory_layer;

/* One line of a context. Slices are valid until the callback returns; what is NULL in the tables
 * has no bytes (ptr NULL). */
typedef struct annal_memory_item {
    uint64_t place; /* 1, 2, … in the context */
    annal_memory_layer layer;
    annal_slice id;        /* id of the decision, the memory or the session */
    annal_slice label;     /* "scope", "core", "learning from bob", "session" */
    annal_slice title;     /* title of a decision; focus of a session */
    annal_slice content;   /* may be empty */
    annal_slice rationale; /* rationale of a decision */
    annal_slice created;   /* a time, in the format of the tables */
    int64_t score;         /* importance of a memory: 3 high, 2 medium, 1 low, 0; else 0 */
    int64_t cost;          /* length of a memory, in characters; else 0 */
    bool included;         /* false, only with all: left out, and why says the reason */
    annal_slice why;
} annal_memory_item;

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_memory_fn)(void *arg, const annal_memory_item *item);

typedef struct annal_memory_options {
    uint32_t items;  /* at most this many memories; default 20 */
    uint32_t tokens; /* limit in tokens of 4 characters; default 4000 */
    bool child;      /* only boundaries, for an agent that another agent began */
    bool all;        /* also what is left out */
} annal_memory_options;

/*
 * The context of an agent of a project, in the order in which the agent is to read it: boundaries,
 * oldest first, all of them; memories, a higher score first, then the newer one, until there are
 * enough or until the first that does not fit (none after it is taken, however small); the current
 * session. A memory costs the characters of its label and its content, plus 6. It catches up first,
 * as annal_sql() does. An unknown project has an empty context. options may be NULL. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  pack memory is not enabled in this store
 * and the statuses of annal_sql().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_memory_compile(annal_index *index,
                                                             annal_slice project, annal_slice agent,
                                                             const annal_memory_options *options,
                                                             annal_memory_fn fn, void *arg,
                                                             annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
