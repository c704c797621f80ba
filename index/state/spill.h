/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a state that are not in memory but in an unnamed file; see spill.c. */
#ifndef INDEX_STATE_SPILL_H
#define INDEX_STATE_SPILL_H

#include <annal/pack.h>

struct spill {
    bool open;
    bool full; /* whether it accepts no more pages */
    int fd;    /* -1: no file exists */
};

/* Create the file, unless it exists. */
void annal__spill_open(struct spill *spill, const char *directory);
void annal__spill_close(struct spill *spill);

/* Keep a page. Returns false if it cannot be kept; then no other page can be kept from now on. */
bool annal__spill_put(struct spill *spill, uint64_t page, const char *bytes);

/* Read a page that was kept. */
annal_status annal__spill_get(const struct spill *spill, uint64_t page, char *out,
                              annal_error *err);

#endif
