/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find the pieces of a log that its previous generation contains, too: whole lines, in any order.
 */
#pragma once

#include <annal/base.h>

#include <stdbool.h>
#include <stddef.h>

struct copies_piece {
    uint64_t bytes;
    uint64_t from; /* offset of the same bytes in the previous generation, if is_same */
    bool is_same;  /* whether the previous generation has the same bytes; false: they are new */
};

struct copies_pieces {
    struct copies_piece *all; /* pieces in the order of their bytes in the log */
    size_t count;
};

/* Read the first `bytes` bytes of the descriptor log, and divide them into pieces that `before`,
 * the content of the previous generation, contains, and pieces that it does not. */
annal_status copies_match(annal_slice before, int log, uint64_t bytes, struct copies_pieces *out,
                          annal_error *err);
void copies_match_done(struct copies_pieces *pieces);
