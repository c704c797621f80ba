/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short ways of filling a store and of proving what is in it.
 *
 * Event n of a test says of itself which one it is: its data holds a number and a text that follows
 * from it, so that a wrong byte, a wrong place and a copy all show.
 */
#pragma once

#include "journal/store.h"
#include "tests/support/text.h"

/* That the call answers with this status, and says why. */
#define ck_status(expected, call)                                                                  \
    do {                                                                                           \
        annal_error err_ = {0}, *err = &err_;                                                      \
        annal_status got_status_ = (call);                                                         \
        ck_assert_msg(got_status_ == (expected), "%s: %s", annal_status_name(got_status_),         \
                      err_.message);                                                               \
        ck_assert(got_status_ >= 0 || err_.message[0] != '\0');                                    \
    } while (0)

/* Open a store without a keeper, and create it if necessary; failures fail the test. */
annal_store *store_open(const char *path);
annal_store *store_open_seams(const char *path, const struct seams *seams);

/* A clock that never moves: the keeper finds no pause, and every log fills up at once. */
extern const struct clock still_clock;
void store_close(annal_store *store);

/* Delete a session, and overwrite the logs that may contain its events, as annal_session_delete()
 * does. The store's log callback receives why a log was not overwritten. */
annal_status delete_wiped(annal_store *store, annal_slice session, annal_session_info *out_info,
                          annal_error *err);

/* Give the store up as a killed process does: nothing is written, its locks go. */
void store_abandon(annal_store *store);

/* The data of event number: number, and as many bytes of text as pad says. Lives in out. */
annal_slice event_data(char *out, size_t room, uint64_t number, size_t pad);

/* Append one event through a writer of its own. */
annal_status append_slice(annal_store *store, const char *session, annal_slice data, const char *id,
                          annal_level level, uint64_t *out_seq, annal_error *err);
annal_status append_number(annal_store *store, const char *session, uint64_t number, size_t pad,
                           annal_level level, uint64_t *out_seq, annal_error *err);

/* Append numbers from first to last, one at a time, with 40 bytes of text; failures fail the
 * test. */
void append_numbers(annal_store *store, const char *session, uint64_t first, uint64_t last,
                    annal_level level);

/*
 * Read a session from its first event: seqs without a gap, every event proven, no damage; call fn
 * (may be NULL) with each event. Also verifies. Returns the last seq, or 0 if there is no such
 * session.
 */
typedef void (*event_fn)(void *arg, const annal_event *event);
uint64_t read_session(annal_store *store, const char *session, event_fn fn, void *arg);

/* The number in an event's data. Checks that the text belongs to it. */
uint64_t event_number(const annal_event *event);

/* That the session holds exactly numbers 1 to last, in order. */
void ck_numbers(annal_store *store, const char *session, uint64_t last);

/* Copy commit/, then events/: what a plain copy of a store, in the order that is documented,
 * gives. */
void copy_store(const char *from, const char *to);
