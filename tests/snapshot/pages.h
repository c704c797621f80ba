/* SPDX-License-Identifier: Apache-2.0 */
/* Images of pages, and their snapshots as rows. */
#pragma once

#include "snapshot/container.h"

/* A row with the pages of image, all of them, or those that differ from base. free() row.ptr. */
annal_slice pack_image(struct snapshot_header *header, annal_slice image, annal_slice base);

/* Unpack the image of a row over the image of its base, appending to out; false if it is
 * damaged. */
bool unpack_image(annal_slice row, annal_slice base, struct buf *out);

/* Fill a page with repeating words and with numbers that do not repeat. */
void fill_page(char *page, uint64_t seed);
