/*
 * SQL that cannot be stopped: SQLite looks at its limits between two instructions, and one call of
 * a function like instr() may take hours. Then the process ends; nothing is lost by that which a
 * crash would not lose.
 */
#ifndef TOOLS_OVERDUE_H
#define TOOLS_OVERDUE_H

#include <stdint.h>

/*
 * For annal_limits.due_us: a second after that, say what the limit of so many seconds stopped and
 * exit with EXIT_REFUSED. NULL where no thread can be had. Once in a process.
 */
int64_t *overdue_watch(unsigned seconds);

#endif
