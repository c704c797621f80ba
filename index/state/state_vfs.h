/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a state: a database file that is implemented in memory, over a source of pages; see
 * state_vfs.c. */
#pragma once

#include "index/sys/state.h"

#include <annal/pack.h>

#include <sqlite3.h>

struct state_pages;

/*
 * Open a connection to a database file whose pages are those of source (NULL: an empty file). On
 * success the pages own the source. Close the connection before the pages.
 *
 * ANNAL_ERR_CORRUPT  page 1 of the source is not the beginning of a database of ours
 */
annal_status annal__state_vfs_open(const annal__state_source *source,
                                   struct state_pages **out_pages, sqlite3 **out_db,
                                   annal_error *err);
void annal__state_vfs_free(struct state_pages *pages); /* Free the pages. NULL is accepted. */

/*
 * Remove all pages, and close the source, between two transactions. The connection is unusable
 * until annal__state_vfs_fill() sets a source with the same schema, which the pages own on success.
 * empty() returns false if this version of SQLite cannot reset its cache.
 */
bool annal__state_vfs_empty(struct state_pages *pages, sqlite3 *db);
annal_status annal__state_vfs_fill(struct state_pages *pages, const annal__state_source *source,
                                   annal_error *err);

/* Give the ownership of the source back to the caller; the source must stay valid until the pages
 * are freed. */
void annal__state_vfs_disown(struct state_pages *pages);

/*
 * After a call on the connection that ended with status: if it failed because a page could not be
 * read, replace SQLite's error in err by the reason, and return its status; otherwise return
 * status.
 */
annal_status annal__state_vfs_why(struct state_pages *pages, annal_status status, annal_error *err);

/* Return whether a page could not be read since the last annal__state_vfs_why(). */
bool annal__state_vfs_failed(const struct state_pages *pages);

/*
 * Return the number of pages. Call this function and those below only between transactions. Pages
 * are counted from 1.
 */
uint64_t annal__state_vfs_count(const struct state_pages *pages);
annal_status annal__state_vfs_read(struct state_pages *pages, uint64_t page, void *out,
                                   annal_error *err);

/* Return whether a page may differ from the same page of the source. */
bool annal__state_vfs_changed(const struct state_pages *pages, uint64_t page);

/*
 * Replace the previous source, and the pages that were written since, by source, which must contain
 * the same pages. The pages own it.
 */
void annal__state_vfs_rebase(struct state_pages *pages, const annal__state_source *source);

/* Read all pages of the source into memory as if they had been written, and close the source. */
annal_status annal__state_vfs_own(struct state_pages *pages, annal_error *err);

/* Move written pages from memory to an unnamed file in this directory, as long as it has room for
 * them. */
void annal__state_vfs_spill(struct state_pages *pages, const char *directory);

/* Return the bytes of memory that written pages and their tables take. */
size_t annal__state_vfs_own_bytes(const struct state_pages *pages);
