/* SPDX-License-Identifier: Apache-2.0 */
/* What verbs.c, verb_call.c and verb_rows.c share: fields as JSON, and templates. */
#pragma once

#include "tools/cli/verbs.h"

enum { NAME_BYTES = 64 };

/* Set json to what a field adds to an event's data: the given value, or else the preset; or
 * nothing. Returns 0 or an exit status. */
int verb_field_json(const struct args *args, const struct field *field, struct buf *json);

/* Append a template to out; {NAME} is replaced by the value of that operand or option. Returns 0,
 * or an exit status if one is missing. */
int verb_fill_in(const struct args *args, const char *template, struct buf *out);
