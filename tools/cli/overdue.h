/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL that cannot be stopped: SQLite checks its limits between two instructions, and one call of a
 * function like instr() may take hours. Then the process ends; nothing is lost by that which a
 * crash would not lose.
 */
#ifndef TOOLS_CLI_OVERDUE_H
#define TOOLS_CLI_OVERDUE_H

#include <annal/query.h>

/*
 * From now on, a second after the time limit of SQL that runs under these limits, print a message
 * and exit with EXIT_REFUSED. Does nothing without a limit of time, or if no thread can be started.
 * Once in a process.
 */
void overdue_watch(annal_limits *limits);

#endif
