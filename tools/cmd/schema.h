/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the tables that SQL can query, for annal schema. */
#pragma once

#include "tools/cli/args.h"

/* List the columns of a table, NAME or DATABASE.NAME; NULL: list all tables. Return the exit
 * status. */
int schema_print(const struct args *args, const char *table);
