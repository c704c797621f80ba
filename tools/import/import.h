/* SPDX-License-Identifier: Apache-2.0 */
/* Importing files: pass a log through its importer, and append what the store does not have yet. */
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
        bool known_read;       /* the ids of its events were read from the store, and */
        int64_t last_us;       /* the time of the last of them; 0: it had none */
        bool left_out;         /* it was deleted, and options.deleted says so */
        uint64_t own, unknown; /* as below, of its events */
    } * sessions;              /* that got events from its lines, in order of appearance */
    size_t session_count;
    uint64_t lines;    /* imported + blank + duplicate + unfinished */
    uint64_t imported; /* lines that the store now has as events */
    uint64_t blank;
    uint64_t duplicate;        /* the same bytes were in the file before */
    uint64_t unreadable;       /* imported as what is not JSON */
    uint64_t first_unreadable; /* number of the first of them, and */
    uint64_t last_unreadable;  /* of the last */
    uint64_t unfinished;       /* a last line without line break that is not a JSON value yet */
    uint64_t events;  /* appended now; of two importers at once, both may count the same one */
    uint64_t own;     /* lines with other events than of the session, and records as they are */
    uint64_t unknown; /* records of kinds that the importer's "-- records:" does not name */
    bool foreign;     /* one of them is not of "-- reads:", the tables that it reads */
    uint64_t named;   /* records of kinds that it names */
    uint64_t any;     /* records that only "-- records: *" names */
    bool hollow;      /* a document without any of the arrays of "-- split:" */
    char kinds[IMPORT_KINDS][IMPORT_KIND_BYTES]; /* the first of these kinds */
    size_t kind_count;
    const char *container; /* what the log was: "lines", "document", "directory", "sqlite" */
    bool unchanged;        /* it was not read: all of this was so at an earlier import */
    bool damaged;          /* it could be read up to there, and damage says why */
    annal_error damage;
    bool store_failed; /* a failure was one of the store, not of the log */
};

void import_report_done(struct import_report *report);

/*
 * Whether the log has a layout that its importer does not know: most of its content became records
 * as they are, a database has tables that the importer does not know, a document none of the arrays
 * that it reads, or a log of many kinds of records not one that says something.
 */
bool import_is_unknown(const struct import_report *report);

/* Say so, if it is so. An exit status: EXIT_REFUSED if the log has nothing else. */
int import_say_unknown(const struct import_report *report, const char *path, const char *kind);

/* Called with the number of bytes of the file that are read. */
typedef void (*import_progress_fn)(void *arg, uint64_t bytes_done);

/* Asked between two chunks of the file whether to stop after what was read. */
typedef bool (*import_stop_fn)(void *arg);

/* Importers that are prepared, to be used for the next logs of their kinds. */
struct import_spares {
    struct import_spare {
        annal_import *import; /* NULL: none of this place */
        const char *sql;
    } all[IMPORT_SPARES];
    size_t next; /* the place that is given up if all are taken */
};

void import_spares_done(struct import_spares *spares);

struct deleted;

struct import_options {
    struct import_spares *spares; /* NULL: each log has its own */
    size_t batch_lines;           /* lines in a batch, at most; 0: 512 */
    import_progress_fn progress;
    import_stop_fn stop;
    void *arg;
    struct owners *owners;              /* NULL: no record is looked for in other sessions */
    const annal_import_option *options; /* for the importer */
    size_t option_count;
    const annal_limits *limits;    /* of a database's SQL; NULL: the usual ones */
    const struct deleted *deleted; /* sessions that are left out; may be NULL */
};

/*
 * Import one log. Everything that was appended is durable when it returns, even if it fails: what
 * was read until then stays, and the next import continues from there. The report is filled in
 * either case. options may be NULL.
 */
annal_status import_file(annal_store *store, const struct importer *importer, const char *path,
                         const struct import_options *options, struct import_report *report,
                         annal_error *err);

/* ---- As above step by step, for a log that is being written ---- */

struct import_job;

/*
 * Open a log. options, if any, must be valid as long as the job. ANNAL_END: with only_whole, it is
 * half written, see source_container.h.
 */
annal_status import_open(annal_store *store, const struct importer *importer, const char *path,
                         const struct import_options *options, bool only_whole,
                         struct import_job **out, annal_error *err);

enum import_until {
    IMPORT_WHOLE, /* lines that have their line break */
    IMPORT_LAST,  /* and what follows the last line break */
    IMPORT_REST,  /* only what was read already, to its end */
    IMPORT_PAUSE  /* no line, but what follows if the log ends here */
};

/* Take what is there by now. What was taken is durable when it returns, even if it fails. */
annal_status import_take(struct import_job *job, enum import_until until, annal_error *err);

/* The result so far; valid as long as the job. */
struct import_report *import_report(struct import_job *job);

/* Whether its lines are those of the log itself, and not of a file that was made from it. */
bool import_is_log(const struct import_job *job);

/* Whether what is appended to the log can be taken later; false if it must be opened again. */
bool import_can_go_on(const struct import_job *job);

enum import_change {
    IMPORT_SAME,     /* path begins, and continues, as it did when it was read */
    IMPORT_OTHER,    /* it is another file, or none */
    IMPORT_REWRITTEN /* it is the same file with other content */
};
enum import_change import_change_of(const struct import_job *job, const char *path);

/* NULL is accepted. */
void import_close(struct import_job *job);

#endif
