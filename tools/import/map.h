/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check the values of --map for an importer whose head has the directive
 *
 *   -- map: session ts type
 *
 * (1) Only these names are accepted. (2) A value that begins with $ is a JSON path. (3) ts is a
 *     path or a time.
 */
#ifndef TOOLS_IMPORT_MAP_H
#define TOOLS_IMPORT_MAP_H

#include "tools/import/importers.h"

#include <annal/import.h>

/* Returns an exit status; errors were printed. */
int map_check(const struct importer *importer, const annal_import_option *options, size_t count);

#endif
