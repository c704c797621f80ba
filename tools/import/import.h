/* SPDX-License-Identifier: Apache-2.0 */
/* Imports files: passes a log through its importer, and appends the events that the store does not
 * contain. */
#pragma once

#include "tools/cli/places.h"
#include "tools/import/importers.h"
#include "tools/import/owners.h"

#include <annal/import.h>
#include <annal/store.h>

#include <sys/stat.h>

#define IMPORT_SPARES     8
#define IMPORT_KINDS      4
#define IMPORT_KIND_BYTES 48

/* result of the import of one file */
struct import_report {
    struct import_session {
        char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
        /* whether the ids of the events that the session has in the store were read */
        bool known_read;
        int64_t
            last_us;   /* time of the session's last event in the store, in us; 0 without events */
        bool left_out; /* whether the session was deleted, and is left out: options.deleted */
        /* id of the event that names this log as a source of the session; empty if it is known */
        char new_source[24];
        char journal[33]; /* id of the session's journal, for import_copy() */
        /* numbers of the events import.unreadable and import.unknown of this log in the store
         * since the last import.recovered, and of those */
        uint64_t torn, foreign, recoveries;
        uint64_t own, unknown; /* the counts own and unknown below, for this session only */
        /* sessions that received events of this file, in the order of their first events */
    } * sessions;
    size_t session_count;
    uint64_t lines;    /* sum of imported, blank, duplicate and unfinished */
    uint64_t imported; /* number of lines whose events the store contains now */
    uint64_t blank;
    uint64_t duplicate;        /* number of lines that are the same as an earlier line */
    uint64_t unreadable;       /* number of lines imported as import.unreadable */
    uint64_t first_unreadable; /* number of the first unreadable line */
    uint64_t last_unreadable;  /* number of the last unreadable line */
    /* 1 if the last line has no line break and is not a complete JSON value */
    uint64_t unfinished;
    /* number of events appended now; if two importers run at once, both may count an event */
    uint64_t events;
    /* number of lines with content: with an event that is not about the session or the import, and
     * not a record of an unknown kind */
    uint64_t own;
    /* number of records of kinds that the importer's "-- records:" does not list */
    uint64_t unknown;
    /* whether a record is of a table that neither "-- records:" nor "-- reads:" lists */
    bool foreign;
    uint64_t named; /* number of records of kinds that "-- records:" lists */
    uint64_t any;   /* number of records that only "-- records: *" permits */
    /*
     * whether the log is a document without any of the arrays that the importer's "-- split:" names
     */
    bool hollow;
    char kinds[IMPORT_KINDS][IMPORT_KIND_BYTES]; /* first kinds of the records in unknown and any */
    size_t kind_count;
    /* number of sessions without a copy, because the importer does not say what belongs to
     * them, or the database does not have them */
    uint64_t uncopied;
    /* form of the log: "lines", "document", "directory", "sqlite" or "text" */
    const char *container;
    /*
     * whether the log was not read: it has not changed, and this is the result of an earlier import
     */
    bool unchanged;
    /* whether an error, in `damage`, ended the reading of the log before its end */
    bool damaged;
    annal_error damage;
    bool store_failed; /* whether the import failed because of the store, not because of the log */
};

void import_report_done(struct import_report *report);

/*
 * Return whether the importer does not know the layout of the log: most of its content became
 * unchanged records; or it is a database with unknown tables, a document with none of the arrays
 * that the importer reads, a log of records of any kind without content, or a log with unreadable
 * lines and no content.
 */
bool import_is_unknown(const struct import_report *report);

/* Print a message if the layout of the log is unknown. Return EXIT_REFUSED if the log contained
 * nothing else, else EXIT_DONE. */
int import_say_unknown(const struct import_report *report, const char *path, const char *kind);

/* callback with the number of bytes of the file that were read */
typedef void (*import_progress_fn)(void *arg, uint64_t bytes_done);

/* callback between two chunks of the file; returns whether to stop, after importing the chunks that
 * were read */
typedef bool (*import_stop_fn)(void *arg);

/* prepared importers, for the next logs of the same kinds */
struct import_spares {
    struct import_spare {
        annal_import *import; /* prepared importer, or NULL if the entry is free */
        const char *sql;
    } all[IMPORT_SPARES];
    size_t next;              /* number of the importer to replace if all are used */
    struct copies_zstd *zstd; /* compressor of copies; NULL: none yet */
};

void import_spares_done(struct import_spares *spares);

enum import_copy_flags {
    /* do nothing if the existing copy has the modification time of the log */
    IMPORT_COPY_IF_OLD = 1,
    IMPORT_COPY_SYNC = 2, /* sync the copy */
    IMPORT_COPY_WAIT = 4, /* wait some milliseconds if the log was just written */
};

struct import_copy {
    annal_store *store;
    const struct importer *importer;
    const char *path; /* of the log */
    struct import_report *report;
    const annal_limits *limits;   /* limits for reading a database; NULL: the defaults */
    struct import_spares *spares; /* NULL: a compressor is made for each log */
    unsigned flags;
};

/*
 * Copy a log into the store, so that a user can restore it (tools/source/copies.h): a file byte for
 * byte; of a directory the files that the importer names ("-- keeps:", else "-- directory:"); of a
 * database the rows of each session ("-- copies", index/sys/row_text.h). A file or directory with
 * events of a deleted session is not copied. *out_settled is false if the log was not copied
 * because it was just written. report->uncopied is set.
 */
annal_status import_copy(const struct import_copy *copy, bool *out_settled, annal_error *err);

/*
 * Look at a log that is not a file; form: COPIES_ROWS or COPIES_FILES. st_mtim is the time of the
 * newest write: to a database or its write-ahead log, or to a file of a directory, whose number of
 * files is st_size.
 */
annal_status import_copy_stat(const struct importer *importer, const char *path, const char *form,
                              struct stat *out, annal_error *err);

struct deleted;

/*
 * Logs that are synced together, because a sync costs as much for one log as for many. Zero is an
 * empty group. Their events are durable, and seen by readers, after import_group_sync().
 */
struct import_group {
    struct places sessions; /* the sessions with such events, by hash of their ids */
};

/* Make the events of these logs durable, and empty the group, even after a failure. */
annal_status import_group_sync(struct import_group *group, annal_store *store, annal_error *err);

/*
 * Return whether the turn of the log has come; with waits, wait for it first, and then return
 * whether the log is still to be imported. Once its turn has come, it stays.
 */
typedef bool (*import_turn_fn)(void *arg, bool waits);

struct import_options {
    struct import_spares *spares; /* NULL: each log prepares its own importer */
    size_t batch_lines;           /* maximum lines of a batch; 0: 512 */
    import_progress_fn progress;
    import_stop_fn stop;
    void *arg;
    /* to find out whether another session of the store has a record already; NULL: this is not
     * checked */
    struct owners *owners;
    const annal_import_option *options; /* options of the importer */
    size_t option_count;
    /* limits for the SQL that reads a database; NULL: the defaults */
    const annal_limits *limits;
    /* sessions whose events are not imported because they were deleted; NULL: none */
    const struct deleted *deleted;
    struct import_group *group; /* NULL: each log is synced at its end */
    /*
     * for import_file(), if other threads import logs at the same time, each with its own spares:
     * the log is read before its turn, and the store, and all above except spares, options and
     * limits, are used only in its turn (ahead.h). NULL: the log has its turn
     */
    import_turn_fn turn;
    void *turn_arg;
};

/*
 * Import one log. All appended events are durable on return, or with options.group after
 * import_group_sync(), even after a failure, so that the next import continues from there. report
 * is always filled. options may be NULL.
 */
annal_status import_file(annal_store *store, const struct importer *importer, const char *path,
                         const struct import_options *options, struct import_report *report,
                         annal_error *err);

/* ---- The same step by step, for a log that is being written ---- */

struct import_job;

/*
 * Open a log. options may be NULL; else it must be valid as long as the job. With only_whole,
 * ANNAL_END means that the log is not complete yet (source_container.h).
 */
annal_status import_open(annal_store *store, const struct importer *importer, const char *path,
                         const struct import_options *options, bool only_whole,
                         struct import_job **out, annal_error *err);

enum import_until {
    IMPORT_WHOLE, /* read lines that end with a line break */
    IMPORT_LAST,  /* read lines, and the bytes after the last line break */
    /* read nothing more; import the bytes that were read already as the end of the log */
    IMPORT_REST,
    IMPORT_PAUSE /* read nothing, but add the events that the importer adds at the end of a log */
};

/* Import the lines that exist now. Imported events are durable as after import_file(). */
annal_status import_take(struct import_job *job, enum import_until until, annal_error *err);

/* Return the result up to now; it is valid as long as the job. */
struct import_report *import_report(struct import_job *job);

/* Return the bytes of memory that the importer uses. */
size_t import_memory(const struct import_job *job);

/* Return whether the lines are read from the log itself, and not from a temporary file with its
 * content. */
bool import_is_log(const struct import_job *job);

/* Return whether this job can read bytes that are appended to the log later; if not, the log must
 * be opened again. */
bool import_can_go_on(const struct import_job *job);

enum import_change {
    IMPORT_SAME,     /* path is the same file, and still begins with the bytes that were read */
    IMPORT_OTHER,    /* path is a different file, or does not exist */
    IMPORT_REWRITTEN /* path is the same file, but the bytes that were read have changed */
};
enum import_change import_change_of(const struct import_job *job, const char *path);

/* Close a job; job may be NULL. */
void import_close(struct import_job *job);
