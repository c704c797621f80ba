/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a state that are not in memory but in a file without a name; see spill.c. */
#ifndef INDEX_STATE_SPILL_H
#define INDEX_STATE_SPILL_H

#include <annal/pack.h>

struct spill {
    bool open;
    bool full; /* it accepts no more pages */
    int fd;    /* -1: there is no file */
};

/* Create the file, unless it exists. */
void annal__spill_open(struct spill *spill, const char *directory);
void annal__spill_close(struct spill *spill);

/* Keep a page. False: it cannot be kept, nor can any other from now on. */
bool annal__spill_put(struct spill *spill, uint64_t page, const char *bytes);

/* A page that was kept. */
annal_status annal__spill_get(const struct spill *spill, uint64_t page, char *out,
                              annal_error *err);

#endif
