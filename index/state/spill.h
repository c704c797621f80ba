/* SPDX-License-Identifier: Apache-2.0 */
/* Changed pages of a state that were moved from memory to an unnamed file; see spill.c. */
#pragma once

#include <annal/pack.h>

struct spill {
    bool open;
    bool full; /* whether no more pages can be written */
    int fd;    /* descriptor of the file; -1: there is no file */
};

/* Create the unnamed file for pages in this directory, unless it is already open. */
void annal__spill_open(struct spill *spill, const char *directory);
void annal__spill_close(struct spill *spill);

/* Write a page to the unnamed temporary file. Returns false if the page cannot be written; all
 * later calls then return false, too. */
bool annal__spill_put(struct spill *spill, uint64_t page, const char *bytes);

/* Read a page that was written to the file. */
annal_status annal__spill_get(const struct spill *spill, uint64_t page, char *out,
                              annal_error *err);
