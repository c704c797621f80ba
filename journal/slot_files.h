/* SPDX-License-Identifier: Apache-2.0 */
/* The files of slots: their numbers and paths, and who has locked them. */
#pragma once

#include "journal/context.h"

/*
 * Slots are numbered; a slot exists while it has a commit log. annal__slots_list() lists their
 * numbers in order; annal__slot_path() composes the path of a slot's file, where part is "commit"
 * (the log) or "locks" (the held list).
 */
#define SLOTS_MAX 1000
struct slot_list {
    uint32_t numbers[SLOTS_MAX];
    size_t count;
};
annal_status annal__slots_list(const struct context *context, struct slot_list *out_list,
                               annal_error *err);
annal_status annal__slot_path(const struct context *context, struct buf *out, const char *part,
                              uint32_t number, annal_error *err);

/* Return the id of the process that has locked a slot; 0 if no process has, or if the system does
 * not show it. */
uint32_t annal__slot_holder(const struct context *context, uint32_t number);
