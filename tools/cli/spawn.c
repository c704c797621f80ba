/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/spawn.h"

#include <signal.h>
#include <stdint.h>
#include <unistd.h>

int spawn_start(pid_t *out_pid, const char *program, const posix_spawn_file_actions_t *actions,
                const char *const *words, char *const *environment)
{
    posix_spawnattr_t attributes;
    sigset_t none, piped;
    sigemptyset(&none);
    sigemptyset(&piped);
    sigaddset(&piped, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &piped);
    int failed =
        posix_spawnp(out_pid, program, actions, &attributes, (char *const *)(uintptr_t)words,
                     environment != NULL ? environment : environ);
    posix_spawnattr_destroy(&attributes);
    return failed;
}
