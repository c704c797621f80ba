/* SPDX-License-Identifier: Apache-2.0 */
/* States: creating them, and the pages that they consist of. */
#ifndef INDEX_SYS_STATE_H
#define INDEX_SYS_STATE_H

#include <annal/diff.h>
#include <annal/pack.h>

/*
 * The state of a session before its first event. packs may be NULL: the core pack alone. They must
 * outlive the state. One thread at a time.
 */
ANNAL_MUST_CHECK annal_status annal__state_new(annal_slice session, const annal_pack *const *packs,
                                               size_t pack_count, annal_state **out_state,
                                               annal_error *err);

/* Return to the state before the first event, of this session from now on. Fails as
 * annal_state_apply() does. */
ANNAL_MUST_CHECK annal_status annal__state_reset(annal_state *state, annal_slice session,
                                                 annal_error *err);

/*
 * Create the row of the core pack for the session, as of this time, before its first event. The
 * index does this for a fork, because the header of the journal says so; in this way a state of a
 * fork's own events says what the tables say. A session that is not a fork begins with its first
 * event.
 */
ANNAL_MUST_CHECK annal_status annal__state_begin(annal_state *state, int64_t ts_us,
                                                 annal_error *err);

/* The session whose state it is; of a fork, the one at the root of its lineage. Valid as long as
 * the state. */
annal_slice annal__state_session(const annal_state *state);

/*
 * Events that a handler could not accept; plus one if a pack could not settle (`-- settle`) what
 * had been applied when the state was last read.
 */
uint64_t annal__state_refused(const annal_state *state);

/*
 * Hash over the names, versions and texts of packs: their states can be compared only if it is
 * equal. Any thread.
 */
uint64_t annal__packs_version(const annal_pack *const *packs, size_t pack_count);

/*
 * A state is a SQLite database of pages, counted from 1. A state that was saved opens over the
 * saved pages: a page is fetched when it is needed, and what is written from then on is in memory,
 * over it. So a state of any size opens at once, and takes as much memory as is read and changed of
 * it.
 */
#define ANNAL_STATE_PAGE_BYTES 4096

typedef struct annal__state_source {
    uint64_t page_count;
    /*
     * Write page, 1 to page_count, to out (ANNAL_STATE_PAGE_BYTES). The same page may be requested
     * any number of times, and must always be the same. The call that needed the page returns a
     * failure of this function, with err, which it must fill.
     */
    annal_status (*read)(void *arg, uint64_t page, void *out, annal_error *err);
    void (*close)(void *arg); /* when the state does not need it any more; may be NULL */
    void *arg;
} annal__state_source;

/*
 * The state whose pages source has. The packs must be those with which it was made: compare
 * annal__packs_version() before. On success the state owns the source and closes it; on failure the
 * caller keeps it.
 *
 * ANNAL_ERR_CORRUPT  the pages are not a state of this session
 * another status     that of source->read
 */
ANNAL_MUST_CHECK annal_status annal__state_open_over(annal_slice session,
                                                     const annal_pack *const *packs,
                                                     size_t pack_count,
                                                     const annal__state_source *source,
                                                     annal_state **out_state, annal_error *err);

/*
 * Release the pages of a state and its source, and keep what is compiled: annal__state_reopen()
 * uses it again. False: it can only be freed. state may be NULL, which cannot be used again.
 */
bool annal__state_rest(annal_state *state);

/*
 * As annal__state_open_over(), or annal__state_new() if source is NULL, with a state at rest that
 * was made with the same packs. After a failure it can only be freed, and another one may be made.
 */
ANNAL_MUST_CHECK annal_status annal__state_reopen(annal_state *state, annal_slice session,
                                                  const annal__state_source *source,
                                                  annal_error *err);

/* How many pages the state has now. */
ANNAL_MUST_CHECK annal_status annal__state_page_count(annal_state *state, uint64_t *out_count,
                                                      annal_error *err);

/* Write page, 1 to the present count, to out (ANNAL_STATE_PAGE_BYTES). */
ANNAL_MUST_CHECK annal_status annal__state_page(annal_state *state, uint64_t page, void *out,
                                                annal_error *err);

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal__state_page_fn)(void *arg, uint64_t page);

/*
 * The pages that may differ from the source's, in order: all of them in a state without a source.
 * fn may call annal__state_page().
 */
ANNAL_MUST_CHECK annal_status annal__state_changed(annal_state *state, annal__state_page_fn fn,
                                                   void *arg, annal_error *err);

/*
 * If the changed pages take more than this many bytes of memory, move them to a file without a name
 * in this directory: a fold of any length then takes a bounded amount of memory. They still count
 * as changed. The state owns the file, which disappears with it. If no file can be created, or the
 * disk is full, they stay in memory; that is not a failure.
 */
ANNAL_MUST_CHECK annal_status annal__state_put_away(annal_state *state, const char *directory,
                                                    size_t bytes_max, annal_error *err);

/*
 * source has the state as it is now (the pages that annal__state_page() returns): from now on they
 * are read from there, and the memory of those that were changed is freed. The old source is
 * closed. On success the state owns the source; on failure the caller keeps it.
 *
 * ANNAL_ERR_INVALID  source has another number of pages
 */
ANNAL_MUST_CHECK annal_status annal__state_rebase(annal_state *state,
                                                  const annal__state_source *source,
                                                  annal_error *err);

/*
 * A value of a state, such as those of a change, in the bytes that annal_state_json() writes for
 * it.
 */
ANNAL_MUST_CHECK annal_status annal__value_json(const annal_value *value, annal_write_fn fn,
                                                void *arg, annal_error *err);

#endif
