/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the importer of a log: each importer says how sure it is that it can read the log, judging
 * by the first lines.
 */
#pragma once

#include "journal/base/buf.h"
#include "tools/import/source_container.h"

#include <annal/import.h>

struct detected {
    struct importer importer; /* surest importer; kind NULL: no importer knows the log */
    enum container container;
    int sure;   /* how sure the importer is, 1 to 100; 0: kind NULL */
    bool whole; /* whether the log is a complete JSON document */
    /* whether no importer knows the log, but its lines are JSON, which jsonl reads with --map */
    bool plain;
};

/* Detect the importer of a log, by its first lines. *spare, NULL before the first call, keeps an
 * importer for the next call, which is then faster; pass it to annal_import_close() at the end. */
annal_status detect_log(annal_import **spare, const char *path, struct detected *out,
                        annal_error *err);

/* Set *out_sure to how sure one importer is that a log has its kind: 0 to 100. 0 if it does not
 * know the log. */
annal_status detect_how_sure(annal_import **spare, const struct importer *importer,
                             const char *path, int *out_sure, annal_error *err);

/* Print that a log of unknown kind is left out. plain: as in struct detected. */
void detect_say_left_out(const char *path, bool plain);

/*
 * Append the session id of a log to out. The importer names the members with the id, as in "--
 * session: sessionId". The id is the first of their values in the first line with such a member. If
 * the head of the log has no such line, nothing is appended.
 */
void detect_session(const struct importer *importer, int fd, struct buf *out);

/* Print that a log is left out because of its content. */
void detect_say_other(const char *path, const char *kind);

/* detect_directory(): return whether the directory as a whole is one log of some importer.
 * detect_wants_file(): return whether the name of a file is that of a log of some importer. */
bool detect_directory(const char *path);
bool detect_wants_file(const char *path);

/* Return whether a file is a SQLite database with a log of this kind; kind NULL: of any kind. Some
 * databases have other names than their program usually gives them. */
bool detect_database(const struct importer *importer, const char *path);

/* Return whether the name is that of a file that a program keeps beside its logs, or of a text that
 * belongs to a log. */
bool detect_keeps_beside(const char *path);

bool detect_wants_text(const char *path);

/* Find out whether a file that was chosen by its name is not a log of this kind, but another file
 * of the same program. *out_other is false if the file cannot be read. */
annal_status detect_is_other(annal_import **spare, const struct importer *importer,
                             const char *path, bool *out_other, annal_error *err);
