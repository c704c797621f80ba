/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions that build the title of a session; title.c describes them. */
#pragma once

#include <annal/base.h>

#include <sqlite3.h>

/* annal_title() and annal_said() */
void annal__title(sqlite3_context *context, int count, sqlite3_value **values);
void annal__title_said(sqlite3_context *context, int count, sqlite3_value **values);

/*
 * Return the text after a block at the beginning of a message that an agent wrote, not the user: a
 * tag whose lower-case name has - or _, up to its closing tag, which ends a line; or a closing tag
 * with such a name. If text does not begin with such a block, return text.
 */
annal_slice annal__title_skip_block(annal_slice text);
