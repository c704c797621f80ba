/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The importers: one SQL file each, tools/import/formats/<kind>.sql, which is built in because it
 * is there. Directives at its head may say what its logs look like; annal/import.h describes the
 * rest.
 */
#ifndef TOOLS_IMPORT_IMPORTERS_H
#define TOOLS_IMPORT_IMPORTERS_H

#include <annal/base.h>

#include <stdbool.h>

struct importer {
    const char *kind;
    annal_slice sql;
};

/* Those that are built in, by kind; kind NULL ends them. */
extern const struct importer_text {
    const char *kind;
    const char *sql;
} importer_texts[];

bool importer_find(const char *kind, struct importer *out_importer);

/* Whether it has a section detect. */
bool importer_detects(const struct importer *importer);

/*
 * The words of a directive, as "-- files: *.jsonl *.json", which may have several lines: begin with
 * *at = 0; empty if there are no more. Directives come before the first section.
 */
annal_slice importer_word(const struct importer *importer, const char *directive, size_t *at);

/*
 * Whether a file below a directory is a log of this kind, by its name: it is one of "-- files:", or
 * *.jsonl, or of "-- texts:", and none of "-- beside:", which are other files of the program.
 */
bool importer_wants_file(const struct importer *importer, const char *path);

/* Whether it is a file that the program keeps beside its logs, by its name: "-- beside: NAME". */
bool importer_keeps_beside(const struct importer *importer, const char *path);

/*
 * Whether a file is a text that a log of this kind refers to, by the name of its directory and its
 * own, as "-- texts: DIRECTORY/NAME". The directory around that one has the name of the session.
 */
bool importer_wants_text(const struct importer *importer, const char *path);

#endif
