/* SPDX-License-Identifier: Apache-2.0 */
/* Import files: pass a log through its importer, and append the events that the store does not
 * have. */
#ifndef TOOLS_IMPORT_IMPORT_H
#define TOOLS_IMPORT_IMPORT_H

#include "tools/import/importers.h"
#include "tools/import/owners.h"

#include <annal/import.h>
#include <annal/store.h>

#define IMPORT_SPARES     8
#define IMPORT_KINDS      4
#define IMPORT_KIND_BYTES 48

/* The result of one file. */
struct import_report {
    struct import_session {
        char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
        bool known_read;       /* the ids of its events were read from the store */
        int64_t last_us;       /* time of its last event in the store; 0: it had none */
        bool left_out;         /* deleted earlier, according to options.deleted */
        char journal[33];      /* id of its journal, for import_copy() */
        uint64_t own, unknown; /* as below, for its events */
    } * sessions;              /* that received events from its lines, in order of appearance */
    size_t session_count;
    uint64_t lines;    /* imported + blank + duplicate + unfinished */
    uint64_t imported; /* lines that the store now contains as events */
    uint64_t blank;
    uint64_t duplicate;        /* lines with the same bytes as an earlier line */
    uint64_t unreadable;       /* imported as import.unreadable */
    uint64_t first_unreadable; /* number of the first of them */
    uint64_t last_unreadable;  /* number of the last of them */
    uint64_t unfinished;       /* a last line without line break that is not a JSON value yet */
    uint64_t events;           /* appended now; two importers at once may count the same event */
    uint64_t own;              /* lines with events other than the session's, or unknown records */
    uint64_t unknown; /* records of kinds that the importer's "-- records:" does not list */
    bool foreign;     /* a table is not in "-- reads:", the tables that it reads */
    uint64_t named;   /* records of kinds that it lists */
    uint64_t any;     /* records that only "-- records: *" covers */
    bool hollow;      /* a document without any of the arrays of "-- split:" */
    char kinds[IMPORT_KINDS][IMPORT_KIND_BYTES]; /* first of these kinds */
    size_t kind_count;
    const char *container; /* form of the log: "lines", "document", "directory", "sqlite" */
    bool unchanged;        /* it was not read: the result of an earlier import */
    bool damaged;          /* readable up to a fault, which damage describes */
    annal_error damage;
    bool store_failed; /* the store failed, not the log */
};

void import_report_done(struct import_report *report);

/*
 * Return whether the log has a layout that is unknown to its importer: most of its content became
 * unchanged records, a database has tables unknown to the importer, a document has none of the
 * arrays that it reads, a log of records of any kind has none with content, or lines of a log
 * cannot be read and it has no content.
 */
bool import_is_unknown(const struct import_report *report);

/* Report an unknown layout, if the log has one. An exit status: EXIT_REFUSED if the log has nothing
 * else. */
int import_say_unknown(const struct import_report *report, const char *path, const char *kind);

/* Callback with the number of bytes of the file that were read. */
typedef void (*import_progress_fn)(void *arg, uint64_t bytes_done);

/* Callback between two chunks of the file: whether to stop after what was read. */
typedef bool (*import_stop_fn)(void *arg);

/* Prepared importers, for the next logs of their kinds. */
struct import_spares {
    struct import_spare {
        annal_import *import; /* NULL: free */
        const char *sql;
    } all[IMPORT_SPARES];
    size_t next; /* the importer to replace if all are in use */
};

void import_spares_done(struct import_spares *spares);

/*
 * Copy the log as it is, so that it can be restored (tools/source/copies.h), if it is a file, not
 * a directory or a database. It is not copied if a session of it was deleted.
 */
bool import_is_file(const struct import_report *report);
enum import_copy {
    IMPORT_COPY_IF_OLD = 1, /* nothing is done if the copy has the time of the log */
    IMPORT_COPY_SYNC = 2,   /* it is durable on return */
    IMPORT_COPY_WAIT = 4,   /* wait some milliseconds if the log was just written */
};
annal_status import_copy(annal_store *store, const char *path, const char *kind,
                         struct import_report *report, unsigned flags, bool *out_settled,
                         annal_error *err);

struct deleted;

struct import_options {
    struct import_spares *spares; /* NULL: each log prepares its own */
    size_t batch_lines;           /* most lines in a batch; 0: 512 */
    import_progress_fn progress;
    import_stop_fn stop;
    void *arg;
    struct owners *owners;              /* NULL: no record is looked up in other sessions */
    const annal_import_option *options; /* options of the importer */
    size_t option_count;
    const annal_limits *limits;    /* limits of a database's SQL; NULL: the defaults */
    const struct deleted *deleted; /* sessions to leave out, or NULL */
};

/*
 * Import one log. All appended events are durable on return, even after a failure: the next import
 * continues from there. The report is filled in either case. options may be NULL.
 */
annal_status import_file(annal_store *store, const struct importer *importer, const char *path,
                         const struct import_options *options, struct import_report *report,
                         annal_error *err);

/* ---- The same step by step, for a log that is being written ---- */

struct import_job;

/*
 * Open a log. options, if any, must be valid as long as the job. ANNAL_END: with only_whole, it is
 * half written, see source_container.h.
 */
annal_status import_open(annal_store *store, const struct importer *importer, const char *path,
                         const struct import_options *options, bool only_whole,
                         struct import_job **out, annal_error *err);

enum import_until {
    IMPORT_WHOLE, /* lines with their line break */
    IMPORT_LAST,  /* and the bytes after the last line break */
    IMPORT_REST,  /* only what was read already, to its end */
    IMPORT_PAUSE  /* no line, but the events of an end at this position */
};

/* Import all complete lines so far. Imported events are durable on return, even after a failure. */
annal_status import_take(struct import_job *job, enum import_until until, annal_error *err);

/* Return the result so far; valid as long as the job. */
struct import_report *import_report(struct import_job *job);

/* Return the memory of its importer. */
size_t import_memory(const struct import_job *job);

/* Return whether the lines are read from the log itself, and not from a file made from it. */
bool import_is_log(const struct import_job *job);

/* Return whether bytes appended to the log can be read later; false if it must be opened again. */
bool import_can_go_on(const struct import_job *job);

enum import_change {
    IMPORT_SAME,     /* path begins, and continues, with the bytes that were read */
    IMPORT_OTHER,    /* it is another file, or missing */
    IMPORT_REWRITTEN /* it is the same file with other content */
};
enum import_change import_change_of(const struct import_job *job, const char *path);

/* Accepts NULL. */
void import_close(struct import_job *job);

#endif
