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

/*
 * The words of a directive, as "-- files: *.jsonl *.json": begin with *at = 0; empty if there are
 * no more. Directives come before the first section.
 */
annal_slice importer_word(const struct importer *importer, const char *directive, size_t *at);

/* Whether files below a directory are logs of this kind, by name: "-- files:", or *.jsonl. */
bool importer_wants_file(const struct importer *importer, const char *name);

#endif
