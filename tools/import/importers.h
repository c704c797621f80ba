/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The importers: one SQL file each, tools/import/formats/<kind>.sql; every file there is built in.
 * Directives at its head describe the logs; annal/import.h describes the rest.
 */
#ifndef TOOLS_IMPORT_IMPORTERS_H
#define TOOLS_IMPORT_IMPORTERS_H

#include <annal/base.h>

#include <stdbool.h>

struct importer {
    const char *kind;
    annal_slice sql;
};

/* The built-in importers, by kind; kind NULL ends them. */
extern const struct importer_text {
    const char *kind;
    const char *sql;
} importer_texts[];

bool importer_find(const char *kind, struct importer *out_importer);

/* Return whether it has a section detect. */
bool importer_detects(const struct importer *importer);

/*
 * Read the words of a directive, as in "-- files: *.jsonl *.json", which may have several lines:
 * begin with *at = 0; empty at the end. Directives precede the first section.
 */
annal_slice importer_word(const struct importer *importer, const char *directive, size_t *at);

/*
 * Return whether a file below a directory is a log of this kind, by its name: it matches "--
 * files:", or *.jsonl, or "-- texts:", and not "-- beside:", which names other files of the
 * program.
 */
bool importer_wants_file(const struct importer *importer, const char *path);

/* Return whether the program keeps the file beside its logs, by its name: "-- beside: NAME". */
bool importer_keeps_beside(const struct importer *importer, const char *path);

/*
 * Return whether a file is a text that a log of this kind refers to, by the name of its directory
 * and its own, as in "-- texts: DIRECTORY/NAME". The directory around that directory has the name
 * of the session.
 */
bool importer_wants_text(const struct importer *importer, const char *path);

#endif
