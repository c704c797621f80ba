/* The pages of a state: a database file in memory, over a source of pages; see state_vfs.c. */
#ifndef INDEX_STATE_STATE_VFS_H
#define INDEX_STATE_STATE_VFS_H

#include <annal/pack.h>

#include <sqlite3.h>

struct state_pages;

/*
 * Open a connection whose file is over source (NULL: an empty file). The source is ours on success.
 * Close the connection before the pages.
 *
 * ANNAL_ERR_CORRUPT  page 1 of the source begins no database of ours
 */
annal_status annal__pages_open(const annal_state_source *source, struct state_pages **out_pages,
                               sqlite3 **out_db, annal_error *err);
void annal__pages_free(struct state_pages *pages); /* NULL is fine */

/* The source is the caller's again, and must live as long as the pages. */
void annal__pages_disown(struct state_pages *pages);

/*
 * After a call on the connection that ended with status: why a page could not be had, in the place
 * of what SQLite says about it. Returns status where no page is to blame.
 */
annal_status annal__pages_why(struct state_pages *pages, annal_status status, annal_error *err);

bool annal__pages_failed(const struct state_pages *pages); /* whether that will be so */

/* The following speak of what was committed. Pages count from 1. */
uint64_t annal__pages_count(const struct state_pages *pages);
annal_status annal__pages_read(struct state_pages *pages, uint64_t page, void *out,
                               annal_error *err);

/* Whether a page may differ from what the source gives for it. */
bool annal__pages_changed(const struct state_pages *pages, uint64_t page);

/* From now on source, which has the same pages, in the place of the one before and of what was
 * written over it. It is ours. */
void annal__pages_rebase(struct state_pages *pages, const annal_state_source *source);

/* Give the memory of what was written back, as far as a file in this directory takes it. */
void annal__pages_put_away(struct state_pages *pages, const char *directory);

/* Bytes of memory that what was written takes. */
size_t annal__pages_own_bytes(const struct state_pages *pages);

#endif
