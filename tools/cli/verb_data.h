/* SPDX-License-Identifier: Apache-2.0 */
/* What verbs.c and verb_call.c share: fields as JSON. */
#ifndef TOOLS_CLI_VERB_DATA_H
#define TOOLS_CLI_VERB_DATA_H

#include "tools/cli/verbs.h"

enum { NAME_BYTES = 64 };

/* Set json to what a field adds to an event's data: the given value, or else the preset; or
 * nothing. Returns 0 or an exit status. */
int verb_field_json(const struct args *args, const struct field *field, struct buf *json);

#endif
