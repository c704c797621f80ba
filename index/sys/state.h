/* States: making them, and the pages that they consist of. */
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

/* Back before the first event, and of this session from now on. A failure as in
 * annal_state_apply(). */
ANNAL_MUST_CHECK annal_status annal__state_reset(annal_state *state, annal_slice session,
                                                 annal_error *err);

/*
 * Make the row that core keeps of the session, as of this time, before its first event: what the
 * index does for a fork, of which the header of the journal tells, so that a state of a fork's own
 * events says what the tables say. A session that is no fork begins with its first event.
 */
ANNAL_MUST_CHECK annal_status annal__state_begin(annal_state *state, int64_t ts_us,
                                                 annal_error *err);

/* Whose state it is; of a fork, the session at the root of its lineage. Lives as long as it. */
annal_slice annal__state_session(const annal_state *state);

/*
 * Events that a handler could not take. One more when a pack could not settle (`-- settle`) what
 * was applied by the last time that the state was asked.
 */
uint64_t annal__state_refused(const annal_state *state);

/*
 * Hash over the names, versions and texts of packs: their states are comparable only where it is
 * equal. Any thread.
 */
uint64_t annal__packs_version(const annal_pack *const *packs, size_t pack_count);

/*
 * A state is a SQLite database of pages, counted from 1. One that was kept somewhere opens over
 * where it was kept: a page is fetched when it is needed, and what is written from then on stands
 * in memory, over it. So a state of any size opens at once, and takes as much memory as is read and
 * changed of it.
 */
#define ANNAL_STATE_PAGE_BYTES 4096

typedef struct annal__state_source {
    uint64_t page_count;
    /*
     * Write page, 1 to page_count, to out (ANNAL_STATE_PAGE_BYTES). It may be asked for the same
     * one any number of times, and must give the same. A failure is handed through the call that
     * needed the page, with err, which it must fill.
     */
    annal_status (*read)(void *arg, uint64_t page, void *out, annal_error *err);
    void (*close)(void *arg); /* when the state needs it no more; may be NULL */
    void *arg;
} annal__state_source;

/*
 * The state whose pages source has. The packs must be those with which it was made: compare
 * annal__packs_version() before. On success the source is the state's, which closes it; on failure
 * it stays the caller's.
 *
 * ANNAL_ERR_CORRUPT  the pages are no state of this session
 * another status     that of source->read
 */
ANNAL_MUST_CHECK annal_status annal__state_open_over(annal_slice session,
                                                     const annal_pack *const *packs,
                                                     size_t pack_count,
                                                     const annal__state_source *source,
                                                     annal_state **out_state, annal_error *err);

/* How many pages the state has now. */
ANNAL_MUST_CHECK annal_status annal__state_page_count(annal_state *state, uint64_t *out_count,
                                                      annal_error *err);

/* Write page, 1 to the count of now, to out (ANNAL_STATE_PAGE_BYTES). */
ANNAL_MUST_CHECK annal_status annal__state_page(annal_state *state, uint64_t page, void *out,
                                                annal_error *err);

/* Return 0 to go on; anything else stops and is handed through. */
typedef int (*annal__state_page_fn)(void *arg, uint64_t page);

/*
 * The pages that may differ from the source's, in order: all of them in a state that has no source.
 * fn may call annal__state_page().
 */
ANNAL_MUST_CHECK annal_status annal__state_changed(annal_state *state, annal__state_page_fn fn,
                                                   void *arg, annal_error *err);

/*
 * When the pages that were changed take more than so many bytes of memory, put them away in a file
 * without a name in this directory: a fold of any length then takes a bounded amount of memory.
 * They still count as changed. The file is the state's, and goes with it. Where none can be made,
 * and when the disk is full, they stay in memory; that is no failure.
 */
ANNAL_MUST_CHECK annal_status annal__state_put_away(annal_state *state, const char *directory,
                                                    size_t bytes_max, annal_error *err);

/*
 * What the state is now is in source (its pages as annal__state_page() gives them): from now on
 * they are read from there, and the memory of those that were changed is given back. The old source
 * is closed. On success the source is the state's; on failure it stays the caller's.
 *
 * ANNAL_ERR_INVALID  source has another number of pages
 */
ANNAL_MUST_CHECK annal_status annal__state_rebase(annal_state *state,
                                                  const annal__state_source *source,
                                                  annal_error *err);

/*
 * A value of a state, such as those of a change, in the bytes that annal_state_json() has for it.
 */
ANNAL_MUST_CHECK annal_status annal__value_json(const annal_value *value, annal_write_fn fn,
                                                void *arg, annal_error *err);

#endif
