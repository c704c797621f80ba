/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The targets of annal handoff: each is a SQL file tools/export/handoff/AGENT.sql, and all files
 * there are built in. conversation.sql, which precedes every target, says what such a file returns.
 * Directives at its head:
 *
 *   -- base: PLACE...   directory of its files: the first of $VAR/NAME whose variable is set, or
 *                       ~/NAME; without this line, the current directory
 *   -- reads: NAME      a file below the base, whose text becomes task.file
 *   -- resume: COMMAND  how the agent continues; {id} and {path} are replaced
 */
#ifndef TOOLS_CMD_HANDOFF_H
#define TOOLS_CMD_HANDOFF_H

#include "tools/import/importers.h"

/* the built-in targets, sorted by name; the last has kind NULL */
extern const struct importer_text handoff_texts[];

extern const char annal__sql_handoff_conversation[];

#endif
