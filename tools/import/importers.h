/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds importers: each is a SQL file tools/import/formats/KIND.sql, and all files there are built
 * in. The directives at the head of a file describe the logs; annal/import.h describes the rest.
 * "-- keeps: PATTERN..." names the files of a directory that are copied into the store, if they are
 * others than those in "-- directory:".
 */
#pragma once

#include <annal/base.h>

#include <stdbool.h>

struct importer {
    const char *kind;
    annal_slice sql;
};

/* the built-in importers, sorted by kind; the last has kind NULL */
extern const struct importer_text {
    const char *kind;
    const char *sql;
} importer_texts[];

/* the targets of annal handoff, in the same form (tools/export/handoff/conversation.sql) */
extern const struct importer_text handoff_texts[];

/* the formats of annal export that are a SELECT, in the same form (tools/export/select.c) */
extern const struct importer_text export_texts[];

/* the SELECTs of annal report, in the same form (tools/report/report.h) */
extern const struct importer_text report_texts[];

bool importer_find(const char *kind, struct importer *out_importer);

/* Return whether the importer has a section "-- detect". */
bool importer_detects(const struct importer *importer);

/* Return whether the logs of an importer are text: it has the section "-- text". */
bool importer_reads_text(annal_slice sql);

/*
 * Return the next word of a directive such as "-- files: *.jsonl *.json", which may have several
 * lines. Set *at to 0 before the first call. The result is empty at the end. Only directives before
 * the first section are read.
 */
annal_slice importer_word(const struct importer *importer, const char *directive, size_t *at);

/*
 * Return whether a file below a directory has the name of a log of this kind: it matches "--
 * files:" (default *.jsonl) or "-- texts:", and not "-- beside:".
 */
bool importer_wants_file(const struct importer *importer, const char *path);

/* Return whether a file has a name in "-- beside:", the files that the program keeps beside its
 * logs. */
bool importer_keeps_beside(const struct importer *importer, const char *path);

/*
 * Return whether a file is a text that belongs to a log of this kind: its directory and its name
 * match a pattern of "-- texts: DIRECTORY/NAME". The directory above has the name of the session.
 */
bool importer_wants_text(const struct importer *importer, const char *path);
