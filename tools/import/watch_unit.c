/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/watch_unit.h"

#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/import/log_places.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNIT "annal-watch.service"

extern char **environ;

/* Create the directories above path. Return whether they exist. */
static bool make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    return true;
}

/* Find the path of the unit in the user's configuration, where systemd reads it. Return the exit
 * status. */
static int find_unit(struct buf *path)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool own = config != NULL && config[0] == '/';
    if (!own && (home == NULL || home[0] != '/'))
        return fail_usage("watch: $HOME is not set, so the place of the unit is unknown");
    must_printf(path, "%s%s/systemd/user/" UNIT, own ? config : home, own ? "" : "/.config");
    return EXIT_DONE;
}

/* Print one word in quotes, with the characters in `doubled` doubled: systemd.service(5), "Command
 * lines". */
static void print_word(FILE *unit, const char *word, const char *doubled)
{
    fputc('"', unit);
    for (; *word != '\0'; word++) {
        if (strchr("\"\\", *word) != NULL)
            fputc('\\', unit);
        else if (strchr(doubled, *word) != NULL)
            fputc(*word, unit);
        fputc(*word, unit);
    }
    fputc('"', unit);
}

/* Print a line that sets a variable with the place of logs. A variable with a line break is left
 * out, because a unit cannot contain it. */
static void print_variable(void *unit, const char *name, const char *value)
{
    SCOPED_BUF text = {0};
    must_printf(&text, "%s=%s", name, value);
    if (strchr(value, '\n') == NULL) {
        fputs("Environment=", unit);
        /* in a line Environment=, systemd expands only %, not variables */
        print_word(unit, text.ptr, "%");
        fputc('\n', unit);
    }
}

static bool write_unit(const char *path, const char *program, const char *store)
{
    FILE *unit = fopen(path, "we");
    if (unit == NULL)
        return false;
    fputs("# Written by annal watch --install; annal watch --uninstall removes it.\n"
          "[Unit]\n"
          "Description=Annal: keep the sessions of agents\n"
          "Documentation=man:annal(1)\n"
          "\n"
          "[Service]\n",
          unit);
    log_places_variables(print_variable, unit);
    fputs("ExecStart=", unit);
    print_word(unit, program, "%$");
    fputs(" watch --store ", unit);
    print_word(unit, store, "%$");
    fputs("\n"
          "Restart=on-failure\n"
          "RestartSec=5\n"
          "Nice=10\n"
          "NoNewPrivileges=yes\n"
          "LockPersonality=yes\n"
          "SystemCallArchitectures=native\n"
          "\n"
          "[Install]\n"
          "WantedBy=default.target\n",
          unit);
    return fclose(unit) == 0;
}

/* Run systemctl --user WORDS... Return whether it succeeded. */
static bool systemctl(const char *const words[])
{
    const char *all[8] = {"systemctl", "--user"};
    pid_t child;
    int status = 0;
    for (size_t i = 0; words[i] != NULL && i < 5; i++)
        all[i + 2] = words[i];
    if (posix_spawnp(&child, all[0], NULL, NULL, (char *const *)(uintptr_t)all, environ) != 0)
        return false;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int watch_unit_install(const char *store)
{
    SCOPED_BUF path = {0};
    char program[PATH_MAX], place[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    int exit_status = find_unit(&path);
    if (exit_status == EXIT_DONE && (len <= 0 || realpath(store, place) == NULL))
        exit_status = fail_storage("watch: cannot find the store '%s' or this program: %s", store,
                                   strerror(errno));
    program[len > 0 ? len : 0] = '\0';
    if (exit_status == EXIT_DONE && (strchr(program, '\n') != NULL || strchr(place, '\n') != NULL))
        exit_status = fail_usage("watch: a unit cannot name a file with a line break in its name");
    if (exit_status == EXIT_DONE &&
        (!make_parents(path.ptr) || !write_unit(path.ptr, program, place)))
        exit_status =
            fail_storage("watch: cannot write the unit '%s': %s", path.ptr, strerror(errno));
    if (exit_status == EXIT_DONE && (!systemctl((const char *[]){"daemon-reload", NULL}) ||
                                     !systemctl((const char *[]){"enable", "--now", UNIT, NULL})))
        exit_status = fail_refused("watch: systemd did not start the unit '%s'; without systemd, "
                                   "start 'annal watch' at login in another way",
                                   path.ptr);
    if (exit_status == EXIT_DONE)
        printf("annal watch runs now and after each login, for the store %s (%s)\n", place,
               path.ptr);
    return exit_status;
}

int watch_unit_uninstall(void)
{
    SCOPED_BUF path = {0};
    int exit_status = find_unit(&path);
    if (exit_status == EXIT_DONE && access(path.ptr, F_OK) != 0)
        exit_status = fail_refused("watch: the unit '%s' does not exist", path.ptr);
    if (exit_status == EXIT_DONE)
        (void)systemctl((const char *[]){"disable", "--now", UNIT, NULL});
    if (exit_status == EXIT_DONE && unlink(path.ptr) != 0)
        exit_status =
            fail_storage("watch: cannot remove the unit '%s': %s", path.ptr, strerror(errno));
    if (exit_status == EXIT_DONE) {
        (void)systemctl((const char *[]){"daemon-reload", NULL});
        printf("annal watch no longer runs after a login; the store stays\n");
    }
    return exit_status;
}
