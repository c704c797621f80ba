/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following logs that are being written.
 *
 * (1) A log of lines stays open, and whole lines are taken as they come; one without its line break
 *     waits. At most LIVE_MAX stay open, fewer where the process may open few files; the others are
 *     read again from their beginning when they grow. A log that nobody has written to for QUIET_US
 *     is taken to its end and does not stay open.
 * (2) Every other log is read again when it has changed. A document, or a file of a directory, that
 *     is half written waits until it is whole, or until nobody has touched it for a while
 *     (QUIET_US): then it is taken as it is. So does a file that is still empty.
 * (3) A log that is truncated, overwritten or replaced under its name is reported as such, and read
 *     again. A file that was moved away is taken to its end, and until nothing has come for a while
 *     (LINGER_US).
 * (4) Nothing is appended twice: every import promises that (import.h, rule 2). So nothing has to
 *     be remembered, and after a follow was killed the same command is started again.
 * (5) inotify says when to look. In addition all logs are looked at every POLL_US.
 * (6) At the end each log is taken as an import would take it.
 * (7) What only the end of a log shows is added when nobody has written to it for QUIET_US.
 * (8) It costs what is new: a log that did not change since it was last imported is not read
 *     (unchanged.h), and an importer that is prepared is used for one log after another.
 */
#ifndef TOOLS_IMPORT_FOLLOW_H
#define TOOLS_IMPORT_FOLLOW_H

#include "tools/import/import.h"

/*
 * The results of all logs. lines, and what is skipped of them, refer to the logs as they are now.
 */
struct follow_totals {
    uint64_t files, lines, skipped, unfinished, unreadable, events, unknown, same;
};

struct follow_options {
    annal_store *store;
    const char *store_path;   /* is skipped */
    struct importer importer; /* kind NULL: each log says itself which */
    const char *const *paths;
    int path_count;
    const annal_import_option *map;
    size_t map_count;
    struct owners *owners;         /* as in import.h */
    const annal_limits *limits;    /* of a database's SQL */
    const struct deleted *deleted; /* sessions that are left out; may be NULL */
    bool recheck;                  /* read logs that did not change, too */
    int signals;                   /* follow_signals() */

    /* Called when a log was read, for the first time or because something was added. events: added
     * now. */
    void (*took)(void *arg, const char *path, const char *kind, const struct import_report *report);
    void (*all_read)(void *arg, size_t logs); /* once: the first pass is over */
    void *arg;
};

/*
 * From now on SIGINT, SIGTERM and SIGHUP are only received through this descriptor, except those
 * that are ignored. Call it before the process has threads. -1: it could not be created, which was
 * reported.
 */
int follow_signals(void);

/* Runs until a signal comes, or the reader of stdout is gone. An exit status. */
int follow_logs(const struct follow_options *options, struct follow_totals *out_totals);

#endif
