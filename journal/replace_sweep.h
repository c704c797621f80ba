/* SPDX-License-Identifier: Apache-2.0 */
/* What crashes leave of conversions, and old tombstones. */
#pragma once

#include "journal/codec.h"

#include <annal/store.h>

/* Finish interrupted conversions, and remove tombstones that no log needs (rules 5 and 6). Does
 * nothing while another process holds locks/structure; call it again later. */
void annal__replace_sweep(annal_store *store);

/* Remove copies that interrupted conversions left. Only a process that has locks/structure, as this
 * process has, creates such files. */
void annal__replace_remove_unfinished(annal_store *store);

/* Read the header of a journal; out contains its frame, or is empty if the header is damaged. */
annal_status annal__replace_read_header(annal_store *store, const char *path,
                                        const struct codec *codec, struct buf *out,
                                        struct frame_header *out_header, annal_error *err);
