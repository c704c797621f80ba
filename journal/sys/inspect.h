/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a store besides sessions, and which process owns which session: for annal doctor and
 * similar commands. */
#pragma once

#include <annal/store.h>

/*
 * Receives a stray file. name is the session in the name of the file or, if the session in it is
 * invalid, the name of the file. what is one sentence. Return 0 to continue; any other value stops,
 * and is returned.
 */
typedef int (*annal__stray_fn)(void *arg, annal_slice name, const char *what);

/*
 * Call fn for every file in events/ that has the name of a journal and is not the journal of its
 * session: a copied or renamed journal, whose header names another session; the second of two
 * journals of a session in two formats; a file whose name contains an invalid session id. Such
 * files are never read, written, moved or removed. Functions for all sessions omit them and report
 * them to the log callback; functions for one of them fail with ANNAL_ERR_CORRUPT. Reads the header
 * of each journal. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__stray_list(annal_store *store, annal__stray_fn fn, void *arg,
                                                annal_error *err);

/* The state of a commit log. */
typedef struct annal__log_info {
    uint32_t number;
    bool living; /* whether a process owns the log */
    /* id of the process that owns the log, or owned it last in this boot; 0: unknown */
    uint32_t pid;
    uint32_t sessions; /* number of sessions that the owner of the log owns */
    uint64_t bytes;    /* size of the file */
    uint64_t groups;   /* number of valid groups with events */
    /* number of these groups whose journals were not synced since, so that recovery needs them */
    uint64_t unreleased;
    uint64_t unreleased_bytes; /* number of bytes for journals in these groups */
    const char *what;          /* what is damaged; static; NULL: nothing */
} annal__log_info;

/* Receive the state of a commit log. Return 0 to continue; any other value stops, and is
 * returned. */
typedef int (*annal__log_info_fn)(void *arg, const annal__log_info *info);

/*
 * Call fn for every commit log, in the order of their numbers. Reads each log completely, and
 * changes nothing. For a log that is being written, the numbers describe a single moment. Any
 * thread.
 */
ANNAL_MUST_CHECK annal_status annal__log_each(annal_store *store, annal__log_info_fn fn, void *arg,
                                              annal_error *err);

/*
 * Find the living process that owns a session: *out_pid is its id in its own namespace, or 0 if no
 * process owns the session. The owner may have changed when this returns. Any thread.
 *
 * ANNAL_ERR_BUSY  the held list of a living process is not complete yet, so the owner is unknown
 */
ANNAL_MUST_CHECK annal_status annal__log_session_owner(annal_store *store, annal_slice session,
                                                       uint32_t *out_pid, annal_error *err);
