/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/find.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"
#include "tools/import/detect.h"
#include "tools/import/directory.h"
#include "tools/import/runs.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORIES_DEEP_MAX 64

static int refuse(const struct logs *logs, const char *path, const char *why)
{
    return logs->quiet ? EXIT_DONE : fail_refused("import '%s': %s", path, why);
}

static int add_log(struct logs *logs, const char *path, uint64_t bytes)
{
    char *copy = annal__strndup(path, strlen(path));
    struct log *log = copy == NULL ? NULL : annal__array_add(&logs->all, &logs->count, sizeof *log);
    if (log == NULL) {
        annal__free(copy);
        return fail_storage("out of memory");
    }
    *log = (struct log){copy, bytes};
    logs->bytes += bytes;
    return EXIT_DONE;
}

static int find_at(struct logs *logs, const char *path, int depth);

static int find_in_directory(struct logs *logs, const char *path, int depth)
{
    struct dirent **names = NULL;
    struct buf below = {0};
    int exit_status = EXIT_DONE;
    int count = scandir(path, &names, NULL, alphasort);
    if (count < 0)
        return refuse(logs, path, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        bool wanted = exit_status == EXIT_DONE && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
        annal__buf_clear(&below);
        if (wanted && annal__buf_printf(&below, "%s/%s", path, name) < 0)
            exit_status = fail_storage("out of memory");
        else if (wanted)
            exit_status = find_at(logs, annal__buf_cstr(&below), depth + 1);
        free(names[i]);
    }
    free(names);
    annal__buf_done(&below);
    return exit_status;
}

static bool is_one_log(const struct logs *logs, const char *directory)
{
    if (logs->importer->kind == NULL)
        return detect_directory(directory);
    return importer_is_of_runs(logs->importer) ? run_is_here(directory)
                                               : directory_is_log(logs->importer, directory);
}

static bool wants_file(const struct logs *logs, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (logs->importer->kind == NULL)
        return detect_wants_file(name);
    return !importer_is_of_runs(logs->importer) && importer_wants_file(logs->importer, name);
}

static bool is_branch_of_run(const char *path)
{
    size_t len = strlen(path);
    return len > 5 && strcmp(path + len - 5, ".json") == 0;
}

static bool is_store(const struct logs *logs, const struct stat *directory)
{
    struct stat store;
    return logs->store != NULL && stat(logs->store, &store) == 0 &&
           store.st_ino == directory->st_ino && store.st_dev == directory->st_dev;
}

static int find_below(struct logs *logs, const char *path, const struct stat *st, int depth)
{
    if (is_store(logs, st)) /* what is appended there would be a log itself */
        return EXIT_DONE;
    if (logs->looked != NULL)
        logs->looked(logs->arg, path);
    if (is_one_log(logs, path))
        return add_log(logs, path, (uint64_t)st->st_size);
    if (depth < DIRECTORIES_DEEP_MAX)
        return find_in_directory(logs, path, depth);
    return logs->quiet ? EXIT_DONE
                       : fail_refused("import '%s': more than %d directories deep", path,
                                      DIRECTORIES_DEEP_MAX);
}

static int find_at(struct logs *logs, const char *path, int depth)
{
    struct stat st;
    if ((depth == 0 ? stat(path, &st) : lstat(path, &st)) < 0) /* gone since its name was read? */
        return depth > 0 && errno == ENOENT ? EXIT_DONE : refuse(logs, path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return find_below(logs, path, &st, depth);
    if (depth > 0 && !(S_ISREG(st.st_mode) && wants_file(logs, path)))
        return EXIT_DONE;
    if (!S_ISREG(st.st_mode))
        return refuse(logs, path, "neither a file nor a directory");
    if (logs->importer->kind != NULL && importer_is_of_runs(logs->importer) &&
        !is_branch_of_run(path))
        return refuse(logs, path, "neither a run nor the .json of a branch");
    if (access(path, R_OK) != 0)
        return refuse(logs, path, strerror(errno));
    return add_log(logs, path, (uint64_t)st.st_size);
}

int find_logs(struct logs *logs, const char *path)
{
    return find_at(logs, path, 0);
}

void logs_done(struct logs *logs)
{
    for (size_t i = 0; i < logs->count; i++)
        annal__free(logs->all[i].path);
    annal__free(logs->all);
    logs->all = NULL;
    logs->count = 0;
    logs->bytes = 0;
}
