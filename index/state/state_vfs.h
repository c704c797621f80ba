/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a state: a database file in memory, over a source of pages; see state_vfs.c. */
#ifndef INDEX_STATE_STATE_VFS_H
#define INDEX_STATE_STATE_VFS_H

#include "index/sys/state.h"

#include <annal/pack.h>

#include <sqlite3.h>

struct state_pages;

/*
 * Open a connection whose file is over source (NULL: an empty file). On success we own the source.
 * Close the connection before the pages.
 *
 * ANNAL_ERR_CORRUPT  page 1 of the source is not the beginning of a database of ours
 */
annal_status annal__state_vfs_open(const annal__state_source *source,
                                   struct state_pages **out_pages, sqlite3 **out_db,
                                   annal_error *err);
void annal__state_vfs_free(struct state_pages *pages); /* pages may be NULL */

/*
 * Drop all pages and the source, between two transactions. The connection is unusable until
 * annal__state_vfs_fill() gives it a source with the same schema; we own that on success. Returns
 * false if this SQLite cannot do it.
 */
bool annal__state_vfs_empty(struct state_pages *pages, sqlite3 *db);
annal_status annal__state_vfs_fill(struct state_pages *pages, const annal__state_source *source,
                                   annal_error *err);

/* Give the source back to the caller; it must live as long as the pages. */
void annal__state_vfs_disown(struct state_pages *pages);

/*
 * Replace SQLite's error by the reason why a page could not be fetched, after a call on the
 * connection that ended with status. Returns status if no page is to blame.
 */
annal_status annal__state_vfs_why(struct state_pages *pages, annal_status status, annal_error *err);

/* Return whether a page could not be read. */
bool annal__state_vfs_failed(const struct state_pages *pages);

/*
 * Return the number of pages. This function and those below refer to what was committed; pages
 * count from 1.
 */
uint64_t annal__state_vfs_count(const struct state_pages *pages);
annal_status annal__state_vfs_read(struct state_pages *pages, uint64_t page, void *out,
                                   annal_error *err);

/* Return whether a page may differ from the source's page. */
bool annal__state_vfs_changed(const struct state_pages *pages, uint64_t page);

/*
 * Use source, which has the same pages, from now on instead of the previous source and the pages
 * written over it. We own it.
 */
void annal__state_vfs_rebase(struct state_pages *pages, const annal__state_source *source);

/* Copy all pages of the source, as if they had been written, and close it. */
annal_status annal__state_vfs_own(struct state_pages *pages, annal_error *err);

/* Release the memory of written pages, as far as a file in this directory has room for them. */
void annal__state_vfs_spill(struct state_pages *pages, const char *directory);

/* Return the bytes of memory that written pages take. */
size_t annal__state_vfs_own_bytes(const struct state_pages *pages);

#endif
