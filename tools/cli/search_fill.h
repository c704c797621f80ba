/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills search.db in a thread while an import appends, so that the first search does not wait. A
 * store of few events gets no search.db: its first search is quick, and there may be none.
 */
#pragma once

#include <annal/index.h>

struct search_fill;

/* Return NULL if memory runs out; the other functions accept NULL. */
struct search_fill *search_fill_new(annal_index *index);

/* Say how many events the import appended by now. */
void search_fill_note(struct search_fill *fill, uint64_t events);

/* Say that the import has ended. The rest is added in the thread. */
void search_fill_last(struct search_fill *fill);

/* Wait for the thread, with a progress bar, and free. */
void search_fill_free(struct search_fill *fill);
