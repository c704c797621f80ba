/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call fails: the loop, the record of what was answered, and the proof.
 *
 * A scene is a workload through the public API. It runs once for every call that it makes, for
 * every way in which that call may fail, failing once and failing from then on, until it runs
 * through without a failure: the fault loops of SQLite's tests. During a run each append is written
 * down as a claim with its answer; afterwards, on a disk that works, the claims are held against
 * the store:
 *
 * (1) what was acknowledged is there, once, at its seq, with its bytes, after what was appended
 *     before it;
 * (2) what was refused is not there; what is in doubt is there whole, or not at all;
 * (3) nothing else is there; verify finds nothing; the catalogue names every session;
 * (4) every session takes events again, and an append in doubt that has an id has its answer when
 *     repeated;
 * (5) no descriptor, no block of memory is left behind;
 * (6) a fault that came once: what is tried after it succeeds, unless the store said that it has
 *     stopped.
 *
 * A run that fails prints `scene source call way once|ever`; ANNAL_FAULT='…' repeats that one,
 * ANNAL_FAULT=scene one scene. A quick run (the default) tries some dozens of the calls, each in
 * one of its ways; ANNAL_FAULTS=all, which make faults sets, tries all calls in all ways;
 * ANNAL_FAULTS=calls all calls, each in one way.
 */
#ifndef TESTS_CRASH_FAULTS_H
#define TESTS_CRASH_FAULTS_H

#include "journal/store.h"
#include "tests/crash/failing_sqlite.h"
#include "tests/support/failing_io.h"
#include "tests/support/failing_libc.h"

#include <annal/pack.h>

#define CLAIMS_MOST 64
#define PARTS_MOST  3

enum source { FROM_DISK, FROM_HEAP, FROM_SYSTEM, FROM_SQLITE_DISK, FROM_SQLITE_HEAP, SOURCES };

enum answer { REFUSED, IN_DOUBT, PENDING /* of level batch */, ACKNOWLEDGED };

/* One append of count events, numbered from number on. */
struct claim {
    char session[16];
    uint64_t number;
    unsigned count;
    bool with_ids;
    unsigned text_bytes;
    bool in_parts; /* level os: a write that fails may leave the first of several */
    enum answer answer;
    uint64_t seq;
};

struct life {
    const char *path; /* of the store */
    struct failing_io disk;
    struct seams seams;
    int64_t now_us;
    bool once;    /* the fault of this run is gone after one call */
    bool stopped; /* the store said that it takes no more work */
    annal_store *store;
    annal_index *guards; /* appends ask the packs of this index; NULL: they ask nobody */
    struct claim claims[CLAIMS_MOST];
    size_t count;
    uint64_t numbers;
    annal_format format; /* of sessions that are begun */
    bool silent;         /* this run does not ask why */
    bool long_texts;     /* of the events to come */
};

struct scene {
    const char *name;
    unsigned sources;                   /* bits of enum source */
    unsigned runs;                      /* of each source in a quick run; 0: the usual number */
    void (*build)(struct life *life);   /* makes the store that every run begins with, or NULL */
    void (*prepare)(struct life *life); /* in each run, before anything fails, or NULL */
    void (*live)(struct life *life);
    void (*prove)(struct life *life); /* more than the journals, on a disk that works, or NULL */
};

/* Run it for every call of every source. */
void fail_everywhere(const struct scene *scene);

/* Stop the test with a sentence, and say how to repeat the run. */
void ck_fault(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the fault of this run has come; what is tried from now on succeeds when it came once. */
bool fault_came(const struct life *life);

/* What to pass as err: NULL in a third of the runs. */
annal_error *err_for(const struct life *life, annal_error *err);

/* Open life->store. After a fault that came once it must succeed the second time. */
bool open_store(struct life *life, const annal_store_options *options);

/* What any call answered that is no append: writes down what that says about the claims. */
void heard(struct life *life, annal_status status, bool makes_durable);

/* Append count events to session and write the answer down. Returns the claim. */
size_t attempt(struct life *life, const char *session, unsigned count, annal_level level,
               bool with_ids);
/* The same events once more, with their ids. */
void attempt_again(struct life *life, size_t claim, annal_level level);

/* Delete a session: what it held is gone, or in doubt. */
void delete_session(struct life *life, const char *session);

/* Put a journal of another format in the place of a session's: whatever the answer, every event is
 * there. */
void convert_session(struct life *life, const char *session, annal_format format);

/* Sync, then close life->store if it is open. */
void close_store(struct life *life);

/*
 * For scenes that read: how many events of a session were acknowledged; whether that is all there
 * can be; and that an event is the one that was appended at its seq.
 */
uint64_t expected_events(const struct life *life, const char *session);
bool is_certain(const struct life *life, const char *session);
void ck_event(const struct life *life, const char *session, const annal_event *event);

#endif
