/* SPDX-License-Identifier: Apache-2.0 */
/* What a store contains besides sessions, and which process owns what: for annal doctor and the
 * like. */
#ifndef JOURNAL_SYS_INSPECT_H
#define JOURNAL_SYS_INSPECT_H

#include <annal/store.h>

/*
 * name: of the session in the name of a file in events/, or of the file, if no session can have
 * that name. what is one sentence. Return 0 to continue; any other value stops, and is returned.
 */
typedef int (*annal__stray_fn)(void *arg, annal_slice name, const char *what);

/*
 * Call fn for every file in events/ that has the name of a journal and is not the journal of its
 * session: a copied or renamed journal, whose header names another session; the second of two
 * journals of a session in two formats; a file whose name no session can have. They are never read,
 * written, moved or removed. Calls for all sessions leave them out and name them in the log; calls
 * for one of them fail with ANNAL_ERR_CORRUPT. Reads the header of each journal. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__stray_list(annal_store *store, annal__stray_fn fn, void *arg,
                                                annal_error *err);

/* The state of a commit log. */
typedef struct annal__log_info {
    uint32_t number;
    bool living;         /* a process holds it */
    uint32_t pid;        /* process that holds it, or held it last in this boot; 0: not known */
    uint32_t sessions;   /* number of sessions that it owns */
    uint64_t bytes;      /* size of the file */
    uint64_t groups;     /* number of valid groups with events */
    uint64_t unreleased; /* number of these groups that no checkpoint covers yet */
    uint64_t unreleased_bytes; /* journal bytes in those groups */
    const char *what;          /* what is damaged; static; NULL: nothing */
} annal__log_info;

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal__log_info_fn)(void *arg, const annal__log_info *info);

/*
 * Call fn for every commit log, in the order of their numbers. Reads them whole and changes
 * nothing. The groups of a log that is being written show a single moment. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__log_each(annal_store *store, annal__log_info_fn fn, void *arg,
                                              annal_error *err);

/*
 * Which living process has a session now, as far as can be seen from outside: *out_pid is its id,
 * in its own namespace, or 0 if no process owns it. It may have changed when this returns. Any
 * thread.
 *
 * ANNAL_ERR_BUSY  a living process does not say which sessions it has: its list is being written
 */
ANNAL_MUST_CHECK annal_status annal__log_session_owner(annal_store *store, annal_slice session,
                                                       uint32_t *out_pid, annal_error *err);

#endif
