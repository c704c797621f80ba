/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call fails in turn: the loop, the record of the answers, and the proof.
 *
 * A scene is a workload through the public API. It runs once for every call that it makes, for
 * every way in which that call may fail, failing once and failing from then on, until it runs
 * through without a failure: the fault loops of SQLite's tests. During a run each append is
 * recorded as a claim with its answer. Afterwards, on a disk that works, the store is checked
 * against the claims:
 *
 * (1) an acknowledged event exists once, at its seq, with its bytes, after every event appended
 *     before it;
 * (2) a refused event does not exist; an event with an unknown answer exists completely or not at
 *     all;
 * (3) no other event exists; verify finds no damage; the catalogue lists every session;
 * (4) every session accepts events again, and a repeated append with an id gets a certain answer;
 * (5) no descriptor and no block of memory leaks;
 * (6) after a fault that occurs once, every call succeeds, unless the store said that it has
 *     stopped.
 *
 * A run that fails prints `scene source call way once|ever`; ANNAL_FAULT='…' repeats that one,
 * ANNAL_FAULT=scene one scene. A quick run (the default) tries some dozens of the calls, each in
 * one of its ways; ANNAL_FAULTS=all, which make faults sets, tries all calls in all ways;
 * ANNAL_FAULTS=calls all calls, each in one way.
 */
#pragma once

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
    bool stopped; /* the store said that it accepts no more work */
    annal_store *store;
    annal_index *guards; /* appends ask the packs of this index; NULL: no guards */
    struct claim claims[CLAIMS_MOST];
    size_t count;
    uint64_t numbers;
    annal_format format; /* of sessions that are begun */
    bool silent;         /* this run does not ask why */
    bool long_texts;     /* for the next events */
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

/* Whether the fault of this run has occurred; if it occurs once, later calls succeed. */
bool fault_came(const struct life *life);

/* What to pass as err: NULL in a third of the runs. */
annal_error *err_for(const struct life *life, annal_error *err);

/* Open life->store. After a fault that occurs once, the second attempt must succeed. */
bool open_store(struct life *life, const annal_store_options *options);

/* Record the answer of a call other than an append, and what it means for the claims. */
void record_answer(struct life *life, annal_status status, bool makes_durable);

/* Append count events to session and write the answer down. Returns the claim. */
size_t attempt(struct life *life, const char *session, unsigned count, annal_level level,
               bool with_ids);
/* The same events once more, with their ids. */
void attempt_again(struct life *life, size_t claim, annal_level level);

/* Delete a session: what it held is gone, or in doubt. */
void delete_session(struct life *life, const char *session);

/* Convert a session to another format: whatever the answer, every event must exist. */
void convert_session(struct life *life, const char *session, annal_format format);

/* Sync, then close life->store if it is open. */
void close_store(struct life *life);

/*
 * For scenes that read: the number of acknowledged events of a session; whether no others can
 * exist; and a check that an event equals the event appended at its seq.
 */
uint64_t expected_events(const struct life *life, const char *session);
bool is_certain(const struct life *life, const char *session);
void ck_event(const struct life *life, const char *session, const annal_event *event);
