/*
 * Keeping up with logs that are being written.
 *
 * (1) A log of lines stays open, and whole lines are taken as they come; one without its line break
 *     waits. At most so many stay open (LIVE_MAX); the others are read anew from their beginning
 *     when they grow.
 * (2) Every other log is read anew when it has changed. A document, or a file of a directory, that
 *     is half written waits until it is whole, or until nobody has touched it for a while
 *     (QUIET_US): then it is taken as it stands.
 * (3) A log that is cut short, written over or replaced under its name is said to be so, and read
 *     anew. A file that was moved away is taken to its end, and until nothing has come for a while
 *     (LINGER_US).
 * (4) Nothing is appended twice: that is what an import promises anyway (import.h, rule 2). So
 *     nothing has to be remembered, and a follow that was killed is begun again as it was.
 * (5) inotify says when to look. Every POLL_US all logs are looked at all the same.
 * (6) At the end each log is taken as an import would take it.
 */
#ifndef TOOLS_IMPORT_FOLLOW_H
#define TOOLS_IMPORT_FOLLOW_H

#include "tools/import/import.h"

/* What became of all logs. lines, and what is skipped of them, stand in the logs now. */
struct follow_totals {
    uint64_t files, lines, skipped, unfinished, events, unknown;
};

struct follow_options {
    annal_store *store;
    const char *store_path;   /* is passed over */
    struct importer importer; /* kind NULL: each log says itself which */
    const char *const *paths;
    int path_count;
    const annal_import_option *map;
    size_t map_count;
    const annal_limits *limits; /* of a database's SQL */
    int signals;                /* follow_signals() */

    /* A log was read, for the first time or because something was added. events: added now. */
    void (*took)(void *arg, const char *path, const char *kind, const struct import_report *report);
    void (*all_read)(void *arg, size_t logs); /* once: the first pass is over */
    void *arg;
};

/*
 * From now on SIGINT, SIGTERM and SIGHUP are heard on this descriptor alone, but for those that are
 * ignored. Before the process has threads. -1: cannot be made, and was said.
 */
int follow_signals(void);

/* Until a signal comes, or the reader of stdout goes. An exit status. */
int follow_logs(const struct follow_options *options, struct follow_totals *out_totals);

#endif
