/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows logs while other programs write them.
 *
 * (1) A log of lines stays open, and complete lines are imported when they appear; a line without
 *     its line break waits. At most LIVE_MAX logs stay open, fewer if the process may open only few
 *     files, or if their importers need LIVE_BYTES of memory; the others are read again from their
 *     beginning when they grow. A log without writes for QUIET_US is imported to its end, and
 *     closed.
 * (2) Every other log is read again when it has changed. A half-written document, or file of a
 *     directory, waits until it is complete, or until it was not changed for a while (QUIET_US):
 *     then it is imported in its current state. So does a file that is still empty.
 * (3) A log that is truncated, overwritten or replaced under its name is reported, and read again.
 *     A file that was moved is imported to its end, until nothing was written to it for a while
 *     (LINGER_US).
 * (4) Nothing is appended twice: every import promises that (import.c, rule 2). So no state is
 *     needed: after a follow was killed, the same command starts again.
 * (5) inotify reports changes. In addition all logs are checked every POLL_US, or less often if
 *     there are many: a check takes a thousandth of the time, or a twentieth where inotify does not
 *     report every change. New places of agents are looked for every POLL_US.
 * (6) At the end each log is imported as by an import.
 * (7) Events that only the end of a log shows are added when it had no writes for QUIET_US.
 * (8) The cost depends on what is new: a log that did not change since its last import is not read
 *     (unchanged.h), and a prepared importer is used for one log after another.
 * (9) A log that is a file is copied when it was not written for COPY_US. After a copy, ten times
 *     its duration passes before the next copy of the log, up to COPY_PAUSE_US for a short copy. A
 *     log that was replaced is copied before it is imported again.
 * (10) A session that was deleted is left out from then on, unless the user wants it again. A log
 *      with lines of it is not copied.
 * (11) SETTLE_US after a log disappeared or appeared, or a generation of copies began, what
 *      happened to all logs is noted in their sessions (changes.h). So a log that its agent deletes
 *      and writes again at once was never gone.
 */
#pragma once

#include "tools/import/import.h"
#include "tools/import/log_places.h"

/* Sums over all logs. lines and skipped count the current content of the logs. */
struct follow_totals {
    uint64_t files, lines, skipped, unfinished, unreadable, events, unknown, same;
};

struct follow_options {
    annal_store *store;
    annal_index *index;
    const char *store_path;    /* path of the store, which is not searched for logs */
    struct log_places *places; /* places whose logs are followed */
    /* whether to add the places of agents that are installed later: log_places_find() */
    bool finds;
    bool all_users;
    const annal_import_option *map;
    size_t map_count;
    /* to find out whether another session of the store has a record already; NULL: this is not
     * checked */
    struct owners *owners;
    const annal_limits *limits; /* limits for the SQL that reads databases */
    bool again;                 /* whether to import sessions that were deleted, too */
    bool copies;                /* whether to copy the logs into the store */
    bool recheck;               /* whether to read unchanged logs, too */
    int signals;                /* descriptor from follow_signals() */

    /* called after a log was read for the first time, or when events were added; report->events
     * counts only the added events */
    void (*took)(void *arg, const char *path, const char *kind, const struct import_report *report);
    /* called once, after all logs were read for the first time */
    void (*all_read)(void *arg, size_t logs);
    void *arg;
};

/*
 * Receive SIGINT, SIGTERM and SIGHUP only through a descriptor from now on, unless they are
 * ignored. Call it before the process has threads. Return the descriptor, or -1 after a message.
 */
int follow_signals(void);

/* Follow the logs until a signal is received or the reader of stdout is gone. Return the exit
 * status. */
int follow_logs(const struct follow_options *options, struct follow_totals *out_totals);
