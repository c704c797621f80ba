/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the values of --map for an importer with a directive such as
 *
 *   -- map: session ts type
 *
 * (1) Only the names in the directive are accepted. (2) A value that begins with $ is a JSON path.
 * (3) The value of ts is a JSON path or a time.
 */
#pragma once

#include "tools/import/importers.h"

#include <annal/import.h>

/* Return the exit status; errors were printed. */
int map_check(const struct importer *importer, const annal_import_option *options, size_t count);
