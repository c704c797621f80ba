/* SPDX-License-Identifier: Apache-2.0 */
/* The context of an agent, chosen from the tables of pack memory. */
#ifndef ANNAL_PACKS_MEMORY_H
#define ANNAL_PACKS_MEMORY_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annal_memory_layer {
    /* an active architectural or scope decision, which binds all agents */
    ANNAL_MEMORY_BOUNDARY = 1,
    ANNAL_MEMORY_MEMORY = 2, /* something that an agent of the project remembers */
    ANNAL_MEMORY_SESSION = 3 /* the current session, which overrides nothing */
} annal_memory_layer;

/* One item of a context. Slices are valid until the callback returns. A slice whose value in the
 * tables is NULL has the ptr NULL. */
typedef struct annal_memory_item {
    uint64_t place; /* number of the item in the context: 1, 2, … */
    annal_memory_layer layer;
    annal_slice id;        /* id of the decision, the memory or the session */
    annal_slice label;     /* kind of the item: "scope", "core", "learning from bob", "session" */
    annal_slice title;     /* title of a decision; focus of a session */
    annal_slice content;   /* may be empty */
    annal_slice rationale; /* rationale of a decision */
    annal_slice created;   /* time at which the item was created, in the format of the tables */
    int64_t score;         /* importance of a memory: 3 high, 2 medium, 1 low, 0; else 0 */
    int64_t cost;          /* cost of a memory in characters; 0 for other items */
    /* whether the item is in the context; false only with the option all, and why is then the
     * reason */
    bool included;
    annal_slice why;
} annal_memory_item;

/* A function that is called for each item. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller. */
typedef int (*annal_memory_fn)(void *arg, const annal_memory_item *item);

typedef struct annal_memory_options {
    uint32_t items;  /* largest number of memories; default 20 */
    uint32_t tokens; /* limit for the memories, in tokens of 4 characters; default 4000 */
    bool child; /* whether only boundaries are returned, for an agent that another agent began */
    bool all;   /* whether memories that are not in the context are returned, too */
} annal_memory_options;

/*
 * Call fn for each item of the context of an agent in a project, in the order in which the agent is
 * to read them: all boundaries, the oldest first; memories; the current session. Memories with a
 * higher score are first, then newer memories. They are added until their number reaches
 * options->items, or until the first memory that exceeds options->tokens; no memory after it is
 * added, however small. The cost of a memory is the number of characters of its label and its
 * content, plus 6. The tables are caught up first, as by annal_sql(). An unknown project has an
 * empty context. options may be NULL. Any thread.
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
