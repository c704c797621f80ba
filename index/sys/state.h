/* SPDX-License-Identifier: Apache-2.0 */
/* States: creating them, and the pages that they consist of. */
#ifndef INDEX_SYS_STATE_H
#define INDEX_SYS_STATE_H

#include <annal/diff.h>
#include <annal/pack.h>

/*
 * Create the state of a session before its first event. packs may be NULL: the core pack only. They
 * must outlive the state. One thread at a time.
 */
ANNAL_MUST_CHECK annal_status annal__state_new(annal_slice session, const annal_pack *const *packs,
                                               size_t pack_count, annal_state **out_state,
                                               annal_error *err);

/*
 * Return to the state before the first event, for this session from now on. Fails as
 * annal_state_apply() does.
 */
ANNAL_MUST_CHECK annal_status annal__state_reset(annal_state *state, annal_slice session,
                                                 annal_error *err);

/*
 * Create the row of the core pack for the session at this time, before its first event. The index
 * does so for a fork, whose journal header has the time; with this row, a state of the fork's own
 * events equals the tables. A session that is not a fork begins with its first event.
 */
ANNAL_MUST_CHECK annal_status annal__state_begin(annal_state *state, int64_t ts_us,
                                                 annal_error *err);

/*
 * Return the session of the state; for a fork, the session at the root of its lineage. Valid as
 * long as the state.
 */
annal_slice annal__state_session(const annal_state *state);

/*
 * Return the number of events that a handler could not accept, plus one if a pack could not settle
 * (`-- settle`) what had been applied when the state was last read.
 */
uint64_t annal__state_refused(const annal_state *state);

/*
 * Compute a hash over the names, versions and texts of packs. States can be compared only if their
 * packs have the same hash. Any thread.
 */
uint64_t annal__state_packs_version(const annal_pack *const *packs, size_t pack_count);

/*
 * A state is a SQLite database of pages, counted from 1. A saved state opens over its saved pages:
 * a page is fetched when it is needed, and later writes stay in memory, over the saved pages. So a
 * state of any size opens at once, and takes as much memory as is read and changed of it.
 */
#define ANNAL_STATE_PAGE_BYTES 4096

typedef struct annal__state_source {
    uint64_t page_count;
    /*
     * Write page, 1 to page_count, to out (ANNAL_STATE_PAGE_BYTES). The same page may be requested
     * any number of times, and must always have the same content. On a failure, which must fill
     * err, the call that needed the page returns that failure.
     */
    annal_status (*read)(void *arg, uint64_t page, void *out, annal_error *err);
    void (*close)(void *arg); /* called when the state no longer needs the source; may be NULL */
    void *arg;
} annal__state_source;

/*
 * Open the state whose pages source has. The packs must be those that wrote it: compare
 * annal__state_packs_version() first. On success the state owns the source and closes it; on
 * failure the caller keeps it.
 *
 * ANNAL_ERR_CORRUPT  the pages are not a state of this session
 * another status     the status of source->read
 */
ANNAL_MUST_CHECK annal_status annal__state_open_over(annal_slice session,
                                                     const annal_pack *const *packs,
                                                     size_t pack_count,
                                                     const annal__state_source *source,
                                                     annal_state **out_state, annal_error *err);

/*
 * Release the pages of a state and its source, and keep its compiled statements for
 * annal__state_reopen(). Returns false if the state can only be freed. state may be NULL, which
 * cannot be reused.
 */
bool annal__state_rest(annal_state *state);

/*
 * As annal__state_open_over(), or annal__state_new() if source is NULL, with a released state of
 * the same packs. After a failure it can only be freed, and another state may be created.
 */
ANNAL_MUST_CHECK annal_status annal__state_reopen(annal_state *state, annal_slice session,
                                                  const annal__state_source *source,
                                                  annal_error *err);

/* Count the pages of the state. */
ANNAL_MUST_CHECK annal_status annal__state_page_count(annal_state *state, uint64_t *out_count,
                                                      annal_error *err);

/* Write page, 1 to the current count, to out (ANNAL_STATE_PAGE_BYTES). */
ANNAL_MUST_CHECK annal_status annal__state_page(annal_state *state, uint64_t page, void *out,
                                                annal_error *err);

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal__state_page_fn)(void *arg, uint64_t page);

/*
 * Call fn for the pages that may differ from the source's, in order; in a state without a source,
 * for all pages. fn may call annal__state_page().
 */
ANNAL_MUST_CHECK annal_status annal__state_changed(annal_state *state, annal__state_page_fn fn,
                                                   void *arg, annal_error *err);

/*
 * Move the changed pages to an unnamed file in this directory if they take more than this many
 * bytes of memory, so that a fold of any length takes a bounded amount of memory. They still count
 * as changed. The state owns the file, which disappears with it. If the file cannot be created, or
 * the disk is full, the pages stay in memory; that is not a failure.
 */
ANNAL_MUST_CHECK annal_status annal__state_spill(annal_state *state, const char *directory,
                                                 size_t bytes_max, annal_error *err);

/*
 * Read the pages from this source from now on, and free the memory of the changed pages. source
 * must have the current state (the pages that annal__state_page() returns). The old source is
 * closed. On success the state owns the source; on failure the caller keeps it.
 *
 * ANNAL_ERR_INVALID  source has another number of pages
 */
ANNAL_MUST_CHECK annal_status annal__state_rebase(annal_state *state,
                                                  const annal__state_source *source,
                                                  annal_error *err);

/*
 * Print a value of a state, for instance of a change, in the bytes that annal_state_json() writes
 * for it.
 */
ANNAL_MUST_CHECK annal_status annal__state_value_json(const annal_value *value, annal_write_fn fn,
                                                      void *arg, annal_error *err);

#endif
