/* SPDX-License-Identifier: Apache-2.0 */
/* Starts other programs. */
#pragma once

#include <spawn.h>
#include <sys/types.h>

/*
 * Start a program, which is looked up in PATH if its name has no slash. No signal is blocked in it,
 * and SIGPIPE ends it, whatever this process does with signals. actions may be NULL; environment
 * NULL: that of this process. NULL ends words. Return 0, or the reason as an errno.
 */
int spawn_start(pid_t *out_pid, const char *program, const posix_spawn_file_actions_t *actions,
                const char *const *words, char *const *environment);
