/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find the importer of a log: each importer says how sure it is, from the first lines that it would
 * read.
 */
#ifndef TOOLS_IMPORT_DETECT_H
#define TOOLS_IMPORT_DETECT_H

#include "journal/base/buf.h"
#include "tools/import/source_container.h"

#include <annal/import.h>

struct detected {
    struct importer importer; /* the surest importer; kind NULL: unknown kind */
    enum container container;
    int sure;   /* 1 to 100 */
    bool whole; /* a document is complete */
    bool plain; /* unknown kind, but JSON lines: jsonl reads them with --map */
};

/* Detect a log. *spare is NULL at first, speeds up the next log, and is passed to
 * annal_import_close(). */
annal_status detect_log(annal_import **spare, const char *path, struct detected *out,
                        annal_error *err);

/* Ask one importer how sure it is that a log has its kind: 0 to 100; 0 if it cannot read the
 * log. */
annal_status detect_how_sure(annal_import **spare, const struct importer *importer,
                             const char *path, int *out_sure, annal_error *err);

/* Report that a log of an unknown kind is left out; plain as in struct detected. */
void detect_say_left_out(const char *path, bool plain);

/*
 * Append the session id of a log. The importer's directive, such as "-- session: sessionId", names
 * one or more members; the id is the first of their values in the first line that has one. Appends
 * nothing if no line in the head of the log has one.
 */
annal_status detect_session(const struct importer *importer, int fd, struct buf *out,
                            annal_error *err);

/* Report that a log is left out because of its content. */
void detect_say_other(const char *path, const char *kind);

/* Return whether this directory is one log of some importer, or a file has the name of a log. */
bool detect_directory(const char *path);
bool detect_wants_file(const char *path);

/* Return whether a file is a text beside a log of some importer; or a database with a log of this
 * kind, or of any kind if NULL: some databases do not have the name that the program gives them. */
bool detect_database(const struct importer *importer, const char *path);

/* Return whether some program keeps the file beside its logs. */
bool detect_keeps_beside(const char *path);

bool detect_wants_text(const char *path);

/*
 * Return whether a log that was found by its name is not of this kind, but a file that the program
 * keeps beside its logs. False if it cannot be read.
 */
annal_status detect_is_other(annal_import **spare, const struct importer *importer,
                             const char *path, bool *out_other, annal_error *err);

#endif
