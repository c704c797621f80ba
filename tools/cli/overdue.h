/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End SQL that cannot be stopped: SQLite checks its limits between two instructions, and one call
 * of a function like instr() may take hours. Then the process ends; nothing is lost that a crash
 * would keep.
 */
#ifndef TOOLS_CLI_OVERDUE_H
#define TOOLS_CLI_OVERDUE_H

#include <annal/query.h>

/*
 * From now on, a second after the time limit of SQL that runs under these limits, print a message
 * and exit with EXIT_REFUSED. Does nothing without a time limit, or if no thread can be started.
 * Call it once in a process.
 */
void overdue_watch(annal_limits *limits);

#endif
