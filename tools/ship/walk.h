/* SPDX-License-Identifier: Apache-2.0 */
/* tsearch(3), and twalk_r() for C libraries other than glibc, which lack this GNU extension. */
#pragma once

#include <search.h>

#ifndef __GLIBC__
struct tree_walk {
    void (*visit)(const void *node, VISIT which, void *closure);
    void *closure;
};

static _Thread_local struct tree_walk tree_walk;

static void tree_visit(const void *node, VISIT which, int depth)
{
    (void)depth;
    tree_walk.visit(node, which, tree_walk.closure);
}

static inline void twalk_r(const void *root, void (*visit)(const void *, VISIT, void *),
                           void *closure)
{
    struct tree_walk outer = tree_walk;
    tree_walk = (struct tree_walk){.visit = visit, .closure = closure};
    twalk(root, tree_visit);
    tree_walk = outer;
}
#endif
