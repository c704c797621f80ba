/* SPDX-License-Identifier: Apache-2.0 */
/* Creating states, and reading and replacing their database pages. */
#pragma once

#include <annal/diff.h>
#include <annal/pack.h>

/*
 * Create the state of a session before its first event. packs may be NULL: only the core pack. The
 * packs must outlive the state. One thread at a time.
 */
ANNAL_MUST_CHECK annal_status annal__state_new(annal_slice session, const annal_pack *const *packs,
                                               size_t pack_count, annal_state **out_state,
                                               annal_error *err);

/*
 * Reset a state to the state before the first event of this session. Fails as annal_state_apply()
 * does.
 */
ANNAL_MUST_CHECK annal_status annal__state_reset(annal_state *state, annal_slice session,
                                                 annal_error *err);

/*
 * Run a SELECT of this program as annal_state_sql() does; it is compiled once for the state. The
 * transaction of the applied events stays open, so that annal__state_reset() only rolls it back.
 */
ANNAL_MUST_CHECK annal_status annal__state_ask(annal_state *state, const char *sql,
                                               const annal_value *params, size_t count,
                                               annal_row_fn fn, void *arg, annal_error *err);

/*
 * Create the row of the core pack for the session at this time, before its first event. The index
 * creates this row for a fork, with the time in its journal header; with it, a state of the fork's
 * own events equals the tables of the index. For a session that is not a fork, its first event
 * creates the row.
 */
ANNAL_MUST_CHECK annal_status annal__state_begin(annal_state *state, int64_t ts_us,
                                                 annal_error *err);

/*
 * Return the session of the state; for a fork, the session at the root of its lineage. Valid as
 * long as the state.
 */
annal_slice annal__state_session(const annal_state *state);

/*
 * Return the number of events that a handler could not accept, plus 1 if a section `-- settle` of a
 * pack failed when the state was last read.
 */
uint64_t annal__state_refused(const annal_state *state);

/*
 * Compute a hash over the names, versions and texts of packs. States can be compared only if their
 * packs have the same hash. Any thread.
 */
uint64_t annal__state_packs_version(const annal_pack *const *packs, size_t pack_count);

/*
 * A state is a SQLite database of pages, counted from 1. A saved state is opened over a source of
 * its saved pages: a page is read from the source when it is needed, and changed pages stay in
 * memory. So a state of any size opens at once, and takes memory only for the pages that are read
 * or changed.
 */
#define ANNAL_STATE_PAGE_BYTES 4096

typedef struct annal__state_source {
    uint64_t page_count;
    /*
     * Write page, 1 to page_count, to out (ANNAL_STATE_PAGE_BYTES). The same page may be requested
     * any number of times, and must always have the same content. If it fails, it must fill err,
     * and the call that needed the page returns this failure.
     */
    annal_status (*read)(void *arg, uint64_t page, void *out, annal_error *err);
    void (*close)(void *arg); /* called when the state no longer needs the source; may be NULL */
    void *arg;
} annal__state_source;

/*
 * Open a saved state whose pages are in source. The packs must be the same as when it was saved:
 * compare annal__state_packs_version() first. On success the state owns the source and closes it;
 * on failure the caller keeps it.
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
 * annal__state_reopen(). Returns false if the state cannot be reused and can only be freed; also
 * for state NULL.
 */
bool annal__state_rest(annal_state *state);

/*
 * Reuse a state after annal__state_rest() for another session, with the same packs: open it as
 * annal__state_open_over() does, or as annal__state_new() if source is NULL. After a failure the
 * state can only be freed.
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

/* Free the pages in SQLite's cache, of a state of which only pages are read from now on. */
void annal__state_shrink(annal_state *state);

/* A function that is called with the number of a page. It returns 0 to continue; any other value
 * ends the calls, and is returned to the caller. */
typedef int (*annal__state_page_fn)(void *arg, uint64_t page);

/*
 * Call fn for the pages that may differ from the pages of the source, in order; for all pages if
 * the state has no source. fn may call annal__state_page().
 */
ANNAL_MUST_CHECK annal_status annal__state_changed(annal_state *state, annal__state_page_fn fn,
                                                   void *arg, annal_error *err);

/*
 * Move the changed pages to an unnamed file in this directory if they take more than bytes_max
 * bytes of memory, so that applying any number of events takes a bounded amount of memory. The
 * pages still count as changed. The file is deleted with the state. If the file cannot be created,
 * or the disk is full, the pages stay in memory; that is not a failure.
 */
ANNAL_MUST_CHECK annal_status annal__state_spill(annal_state *state, const char *directory,
                                                 size_t bytes_max, annal_error *err);

/*
 * Read the pages from this source from now on, and free the memory of the changed pages. source
 * must contain the current state: the pages that annal__state_page() returns. The old source is
 * closed. On success the state owns the source; on failure the caller keeps it.
 *
 * ANNAL_ERR_INVALID  source has another number of pages
 */
ANNAL_MUST_CHECK annal_status annal__state_rebase(annal_state *state,
                                                  const annal__state_source *source,
                                                  annal_error *err);

/*
 * Write a value of a state or of a change as JSON, in the same form as annal_state_json().
 */
ANNAL_MUST_CHECK annal_status annal__state_value_json(const annal_value *value, annal_write_fn fn,
                                                      void *arg, annal_error *err);
