/* SPDX-License-Identifier: Apache-2.0 */
/* What SQL can ask for, as 'annal schema' lists it. */
#ifndef TOOLS_CMD_SCHEMA_H
#define TOOLS_CMD_SCHEMA_H

#include "tools/cli/args.h"

/* The columns of a table, NAME or DATABASE.NAME; NULL: all tables. An exit status. */
int schema_print(const struct args *args, const char *table);

#endif
