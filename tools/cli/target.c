/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/target.h"

#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEEP_MODE ((mode_t)-1)

/* ---- The partial file ---- */

/* path of the partial file for the signal handler, which can use nothing else; or NULL */
static char *volatile unfinished_now;

void target_remove_unfinished(void)
{
    if (unfinished_now != NULL)
        (void)unlink(unfinished_now);
}

static void on_signal(int number)
{
    target_remove_unfinished();
    /* this handler is removed when it is called, so the signal now ends the process */
    raise(number);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction old, new = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
        sigemptyset(&new.sa_mask);
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &new, NULL);
    }
}

static mode_t mode_of(const char *path)
{
    struct stat old;
    if (stat(path, &old) == 0)
        return old.st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Make a path absolute and free of symbolic links, as far as it exists. Returns NULL on failure;
 * the caller frees the result. */
static char *resolve(const char *path)
{
    char *found = realpath(path, NULL);
    if (found != NULL || errno != ENOENT)
        return found;
    char *copy = strdup(path), *copy2 = strdup(path), *joined = NULL;
    char *directory = copy != NULL ? realpath(dirname(copy), NULL) : NULL;
    if (directory != NULL && copy2 != NULL &&
        asprintf(&joined, "%s/%s", directory, basename(copy2)) < 0)
        joined = NULL;
    int saved = errno;
    free(directory);
    free(copy);
    free(copy2);
    errno = saved;
    return joined;
}

static int find_place(struct aside *aside, const char *path)
{
    struct stat old;
    aside->path = resolve(path);
    aside->directory = aside->path != NULL ? strdup(aside->path) : NULL;
    if (aside->directory == NULL)
        return fail_storage("write the file '%s': %s", path, strerror(errno));
    char *slash = strrchr(aside->directory, '/');
    slash[slash == aside->directory ? 1 : 0] = '\0';
    if (stat(aside->path, &old) == 0 && !S_ISREG(old.st_mode))
        return fail_storage("write '%s': the path is not a regular file", aside->path);
    return EXIT_DONE;
}

static int make_unfinished(struct aside *aside, int *out_fd)
{
    uint64_t random = 0;
    char *name = NULL;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return fail_storage("write the file '%s': cannot choose a random temporary name: %s",
                            aside->path, strerror(errno));
    if (asprintf(&name, "%s.partial-%016" PRIx64, aside->path, random) < 0)
        return fail_storage("write the file '%s': out of memory", aside->path);
    unfinished_now = name;
    catch_signals();
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        int exit_status = fail_storage("create the temporary file '%s': %s", name, strerror(errno));
        unfinished_now = NULL;
        free(name);
        return exit_status;
    }
    aside->name = name;
    *out_fd = fd;
    return EXIT_DONE;
}

/* Use path itself, not a temporary file beside it, because the path is an open descriptor of the
 * caller (target.h, rule 6). */
static int keep_path(struct aside *aside, const char *path)
{
    aside->path = strdup(path);
    aside->name = strdup(path);
    return aside->path != NULL && aside->name != NULL
               ? EXIT_DONE
               : fail_storage("write the file '%s': out of memory", path);
}

int target_aside_begin(struct aside *aside, const char *path, int *out_fd)
{
    struct stat file;
    *aside = (struct aside){0};
    if (strncmp(path, "/proc/self/fd/", strlen("/proc/self/fd/")) == 0 && stat(path, &file) == 0 &&
        S_ISREG(file.st_mode))
        return keep_path(aside, path);
    int exit_status = find_place(aside, path);
    if (exit_status == EXIT_DONE)
        exit_status = make_unfinished(aside, out_fd);
    if (exit_status != EXIT_DONE)
        target_aside_done(aside);
    return exit_status;
}

static bool sync_path(const char *path, int flags, mode_t mode)
{
    int fd = open(path, flags | O_CLOEXEC);
    bool good = fd >= 0 && (mode == KEEP_MODE || fchmod(fd, mode) == 0) && fsync(fd) == 0;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return good;
}

int target_aside_finish(struct aside *aside)
{
    if (aside->directory == NULL)
        return EXIT_DONE;
    if (!sync_path(aside->name, O_RDONLY, mode_of(aside->path)) ||
        rename(aside->name, aside->path) != 0)
        return fail_storage("write the file '%s': %s", aside->path, strerror(errno));
    unfinished_now = NULL;
    free(aside->name);
    aside->name = NULL;
    if (!sync_path(aside->directory, O_RDONLY | O_DIRECTORY, KEEP_MODE))
        return fail_storage("sync the directory '%s': %s", aside->directory, strerror(errno));
    return EXIT_DONE;
}

void target_aside_done(struct aside *aside)
{
    if (aside->name != NULL && aside->directory != NULL) {
        (void)unlink(aside->name);
        unfinished_now = NULL;
    }
    free(aside->name);
    free(aside->directory);
    free(aside->path);
    *aside = (struct aside){0};
}

/* ---- Redirected output ---- */

static int open_target(struct target *target, int *out_fd)
{
    struct stat st;
    if (stat(target->path, &st) < 0 || (S_ISREG(st.st_mode) && st.st_nlink > 0)) {
        int exit_status = target_aside_begin(&target->aside, target->path, out_fd);
        if (exit_status != EXIT_DONE || *out_fd >= 0)
            return exit_status;
    }
    *out_fd = open(target->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    return *out_fd >= 0 ? EXIT_DONE
                        : fail_storage("write the file '%s': %s", target->path, strerror(errno));
}

int target_begin(struct target *target, const char *path)
{
    int fd = -1;
    *target = (struct target){.path = path, .saved_stdout = -1};
    if (path == NULL)
        return EXIT_DONE;
    fflush(stdout);
    int exit_status = open_target(target, &fd);
    if (exit_status != EXIT_DONE)
        return exit_status;
    target->saved_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (target->saved_stdout < 0 || dup2(fd, STDOUT_FILENO) < 0) {
        exit_status = fail_storage("write the file '%s': %s", path, strerror(errno));
        if (target->saved_stdout >= 0)
            close(target->saved_stdout);
        target->saved_stdout = -1;
        target_aside_done(&target->aside);
    }
    close(fd);
    out_open();
    return exit_status;
}

int target_end(struct target *target, bool whole)
{
    int exit_status = EXIT_DONE;
    if (target->saved_stdout < 0)
        return EXIT_DONE;
    errno = 0;
    bool written = out_flush();
    if (whole && !written)
        exit_status = fail_storage("write the file '%s': %s", target->path,
                                   errno != 0 ? strerror(errno) : "the file is incomplete");
    else if (whole && target->aside.name != NULL)
        exit_status = target_aside_finish(&target->aside);
    clearerr(stdout);
    (void)dup2(target->saved_stdout, STDOUT_FILENO);
    close(target->saved_stdout);
    target->saved_stdout = -1;
    out_open();
    target_aside_done(&target->aside);
    return exit_status;
}

bool target_make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    return true;
}
