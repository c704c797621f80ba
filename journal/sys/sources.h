/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in STORE/sources: copies of the logs from which sessions were imported. The command
 * writes and reads them (tools/source/copies.h); this file has only what every user of a store
 * needs: their names, and their deletion together with their sessions.
 *
 * (1) SESSION.LOG is the newest generation of a log, SESSION.LOG.N an older one. SESSION is the
 *     first session of the log, LOG has 16 lower-case hex digits, N is 1 to 9 digits, from 1.
 * (2) A log with events of several sessions has a file OTHER.LOG for each other session, which is a
 *     line: SOURCES_OTHER and the name of the first session.
 * (3) A process that changes files there holds the lock of the directory, LOCK_EX of flock(2).
 */
#pragma once

#include <annal/store.h>

#define SOURCES_OTHER      "annal source of "
#define SOURCES_LOG_DIGITS 16
#define SOURCES_NAME_BYTES 256

typedef struct annal__source_name {
    annal_slice session; /* first session of the log; points into the name */
    annal_slice log;
    uint32_t generation; /* number of an older generation; 0: the newest */
} annal__source_name;

/* Parse the name of a file in STORE/sources. Returns false if it does not have the form of rule
 * (1). */
bool annal__sources_read_name(const char *text, annal__source_name *out);

/*
 * Open and lock STORE/sources, with LOCK_SH or LOCK_EX of flock(2); with LOCK_EX it is created if
 * it is missing. Close *out_fd to release the lock. ANNAL_ERR_NOTFOUND: the directory does not
 * exist.
 */
ANNAL_MUST_CHECK annal_status annal__sources_open(annal_store *store, int operation, int *out_fd,
                                                  annal_error *err);

/* Receive a copy of a log: the name of its file, as text and parsed. Return 0 to continue; any
 * other value stops, and is returned. */
typedef int (*annal__sources_fn)(void *arg, const char *text, const annal__source_name *name);

/* Call fn for each copy of a log of this session, or of all sessions if session is empty; the
 * generations of a log are sorted from the oldest to the newest. Does not lock the directory. */
ANNAL_MUST_CHECK annal_status annal__sources_each(annal_store *store, annal_slice session,
                                                  annal__sources_fn fn, void *arg,
                                                  annal_error *err);

/* Remove the copies of all logs with events of a session that was deleted. Any thread. */
ANNAL_MUST_CHECK annal_status annal__sources_drop(annal_store *store, annal_slice session,
                                                  annal_error *err);
