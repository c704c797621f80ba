/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by verbs.c and verb_call.c: fields, as JSON. */
#ifndef TOOLS_CLI_VERB_DATA_H
#define TOOLS_CLI_VERB_DATA_H

#include "tools/cli/verbs.h"

enum { NAME_BYTES = 64 };

/* Append what a field adds to data: the given value, or else its preset; or nothing. 0 or an exit
 * status. */
int verb_field_json(const struct args *args, const struct field *field, struct buf *json);

#endif
