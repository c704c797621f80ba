/* annal doctor --transition-stale: ending sessions whose process died without saying so. */
#ifndef TOOLS_STALE_H
#define TOOLS_STALE_H

#include "tools/args.h"

int stale_transition(const struct args *args);

#endif
