/*
 * Importing files: stream a log through its importer, append what the store does not have yet.
 */
#ifndef TOOLS_IMPORT_IMPORT_H
#define TOOLS_IMPORT_IMPORT_H

#include "tools/import/importers.h"

#include <annal/import.h>
#include <annal/store.h>

/* What became of one file. */
struct import_report {
    struct import_session {
        char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
        bool known_read; /* the ids of its events were read from the store */
    } * sessions;        /* that its lines gave events to, in order of appearance */
    size_t session_count;
    size_t session_capacity;
    uint64_t lines;    /* imported + blank + duplicate + unfinished */
    uint64_t imported; /* lines that the store now holds as events */
    uint64_t blank;
    uint64_t duplicate;    /* the same bytes stood in the file before */
    uint64_t unfinished;   /* a last line without line break that is no JSON value yet */
    uint64_t events;       /* appended now; of two importers at once, both may count the same one */
    const char *container; /* what the log was: "lines", "document", "directory", "sqlite" */
};

void import_report_done(struct import_report *report);

/* Told how many bytes of the file are read. */
typedef void (*import_progress_fn)(void *arg, uint64_t bytes_done);

struct import_options {
    size_t batch_lines; /* at most so many lines at once; 0: 512 */
    import_progress_fn progress;
    void *arg;
    const annal_import_option *options; /* for the importer */
    size_t option_count;
};

/*
 * Import one log. Everything that was appended is durable when it returns, also when it fails:
 * what was read until then stays, and the next import goes on from there. The report is filled in
 * either case. options may be NULL.
 */
annal_status import_file(annal_store *store, const struct importer *importer, const char *path,
                         const struct import_options *options, struct import_report *report,
                         annal_error *err);

/* The same from a file of lines that is open, made of the log at path; it stays open. */
annal_status import_open_file(annal_store *store, const struct importer *importer, int fd,
                              const char *path, const char *container,
                              const struct import_options *options, struct import_report *report,
                              annal_error *err);

#endif
