/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which importer a log is for: each says how sure it is, from the first lines that it would read.
 */
#ifndef TOOLS_IMPORT_DETECT_H
#define TOOLS_IMPORT_DETECT_H

#include "journal/base/buf.h"
#include "tools/import/source_container.h"

#include <annal/import.h>

struct detected {
    struct importer importer; /* the surest; kind NULL: of no known kind */
    enum container container;
    int sure;   /* 1 to 100 */
    bool whole; /* of a document: it is not cut off */
    bool plain; /* of no kind, but JSON lines: jsonl reads them if it is told how */
};

/* *spare is NULL at first, makes the next log cheaper, and is given to annal_import_close(). */
annal_status detect_log(annal_import **spare, const char *path, struct detected *out,
                        annal_error *err);

/* How sure one importer is that a log is of its kind: 0 to 100; 0 where it could not read it. */
annal_status detect_how_sure(annal_import **spare, const struct importer *importer,
                             const char *path, int *out_sure, annal_error *err);

/* Say that a log of no known kind is left out; it is plain as in struct detected. */
void detect_say_left_out(const char *path, bool plain);

/*
 * Append the session id of a log. The importer's directive, such as "-- session: sessionId", names
 * a member, or several; the id is the first of their values in the first line that has one. Appends
 * nothing if no line at the head of the log has it.
 */
annal_status detect_session(const struct importer *importer, int fd, struct buf *out,
                            annal_error *err);

/* Say that a log is left out because of what is in it. */
void detect_say_other(const char *path, const char *kind);

/* Whether this directory is one log of some importer, and whether a file has the name of a log. */
bool detect_directory(const char *path);
bool detect_wants_file(const char *path);

/* Whether a file is a text beside a log of some importer. */
/*
 * Whether a file is a database with a log of this kind, or of any if it has no kind: some have
 * other names than those that the program gives them.
 */
bool detect_database(const struct importer *importer, const char *path);

/* Whether it is a file that some program keeps beside its logs. */
bool detect_keeps_beside(const char *path);

bool detect_wants_text(const char *path);

/*
 * Whether a log that was found by its name is not of this kind after all: a file that the program
 * keeps beside its logs. What cannot be read as it should is not.
 */
annal_status detect_is_other(annal_import **spare, const struct importer *importer,
                             const char *path, bool *out_other, annal_error *err);

#endif
