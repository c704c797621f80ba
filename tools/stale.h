/* annal doctor --transition-stale: ending sessions whose process died without saying so. */
#ifndef TOOLS_STALE_H
#define TOOLS_STALE_H

#include "tools/args.h"

#include <annal/index.h>

int stale_transition(const struct args *args);

/* How many sessions run, and how many of these are stale; ANNAL_ERR_NOTFOUND: the packs that know
 * are not both on. */
annal_status stale_count(annal_index *index, uint64_t *out_running, uint64_t *out_stale,
                         annal_error *err);

#endif
