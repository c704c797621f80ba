/* What a store is found to hold besides sessions, and who holds those: for annal doctor and its
 * kin. */
#ifndef JOURNAL_SYS_INSPECT_H
#define JOURNAL_SYS_INSPECT_H

#include <annal/store.h>

/*
 * name: of the session that a file in events/ is named for, or of the file, when no session can
 * have that name. what is one sentence. Return 0 to go on, anything else to stop; that value is
 * handed through.
 */
typedef int (*annal__stray_fn)(void *arg, annal_slice name, const char *what);

/*
 * Call fn for every file in events/ that is named as a journal is and is not the one of its
 * session: a copy or a renamed journal, whose header names another session; the second of two
 * journals of one session in two formats; a file whose name no session can have. They are never
 * read, written, moved or removed. Calls that are about all sessions leave them out and name them
 * in the log; calls about one of them fail with ANNAL_ERR_CORRUPT. Reads the header of each
 * journal. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__store_strays(annal_store *store, annal__stray_fn fn, void *arg,
                                                  annal_error *err);

/* A commit log, as it was found. */
typedef struct annal__log_info {
    uint32_t number;
    bool living;         /* a process has it */
    uint32_t pid;        /* of the process that has it, or had it last in this boot; 0: not known */
    uint32_t sessions;   /* that it owns */
    uint64_t bytes;      /* of the file */
    uint64_t groups;     /* that verify and carry events */
    uint64_t unreleased; /* of them: which no checkpoint covers yet */
    uint64_t unreleased_bytes; /* of journal, in these */
    const char *what;          /* what is damaged; static; NULL: nothing */
} annal__log_info;

/* Return 0 to go on, anything else to stop; that value is handed through. */
typedef int (*annal__log_info_fn)(void *arg, const annal__log_info *info);

/*
 * Call fn for every commit log, in order of number. Reads them whole and changes nothing. The
 * groups of a log that somebody writes are those of one moment. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__store_logs(annal_store *store, annal__log_info_fn fn,
                                                void *arg, annal_error *err);

/*
 * Which living process has a session now, as far as can be seen from outside: *out_pid is its id,
 * in its own namespace, or 0 when nobody has it. It may have changed when this returns. Any thread.
 *
 * ANNAL_ERR_BUSY  a living process does not say which sessions it has: its list is being made
 */
ANNAL_MUST_CHECK annal_status annal__session_owner(annal_store *store, annal_slice session,
                                                   uint32_t *out_pid, annal_error *err);

#endif
