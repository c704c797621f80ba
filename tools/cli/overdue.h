/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends SQL that cannot be stopped. SQLite checks its limits between two instructions, but one call
 * of a function such as instr() may take hours. Then the process ends; the store loses nothing, as
 * after a crash.
 */
#pragma once

#include <annal/query.h>

/*
 * Start a thread that prints a message and exits with EXIT_REFUSED a second after the time limit of
 * a statement that runs under these limits. Does nothing without a time limit, or if no thread can
 * be started. Call it at most once in a process.
 */
void overdue_watch(annal_limits *limits);
