/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Similar pages: pages of the base that share text with a page.
 *
 * If a page of a B-tree is full, its rows and its neighbours' rows are redistributed over one more
 * page, so a page contains rows that were in other pages before. A table contains some strings of
 * eight bytes of each page of the base, chosen by their own content, so that the same rows yield
 * the same strings on any page. A string that is in two pages is ignored.
 */
#pragma once

#include <annal/base.h>

struct similar_pages;

/* Create a table for this many pages of the base. */
annal_status annal__similar_pages_new(uint64_t pages, struct similar_pages **out_similar,
                                      annal_error *err);
void annal__similar_pages_free(struct similar_pages *similar);

/* Add the chosen strings of a page of the base to the table. */
void annal__similar_pages_add(struct similar_pages *similar, uint32_t page, const char *bytes);

/* Find the pages of the base that share most strings with `bytes`, except `page` itself, the best
 * first. Returns their number, at most `most`. */
size_t annal__similar_pages_find(const struct similar_pages *similar, uint32_t page,
                                 const char *bytes, uint32_t *out_pages, size_t most);
