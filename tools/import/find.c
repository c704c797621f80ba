/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/find.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/hash.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/import/detect.h"
#include "tools/import/directory.h"
#include "tools/import/runs.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORIES_DEEP_MAX  64
#define DIRECTORIES_DEEP_TEXT "64"

static void leave_out(struct logs *logs, const char *path, const char *why)
{
    logs->left_out++;
    if (!logs->quiet)
        say("import '%s': %s; this path is left out", path, why);
}

static void add_log(struct logs *logs, const char *path, uint64_t bytes, bool named)
{
    struct log *log = must_array_add(&logs->all, &logs->count, sizeof *log);
    *log = (struct log){must_strndup(path, strlen(path)), bytes, named, *logs->importer};
    logs->bytes += bytes;
}

/* how the search came to a path */
struct place_in_walk {
    int depth;   /* number of directories between the path from the user and this path */
    bool hidden; /* whether a directory above has a name that begins with a dot */
    /* whether the path was reached by a symbolic link; then only files that were not found before
     * are added */
    bool linked;
};

static void find_at(struct logs *logs, const char *path, struct place_in_walk at);

/* Count a file that is neither a log nor a file that a program keeps beside its logs. Keep the path
 * of the first. */
static void count_other(struct logs *logs, const char *path, const struct stat *st,
                        struct place_in_walk at)
{
    static const char *const of_database[] = {"-wal", "-shm", "-journal"};
    size_t len = strlen(path);
    if (logs->quiet || logs->ignores_others || at.hidden || !S_ISREG(st->st_mode) ||
        detect_keeps_beside(path))
        return;
    for (size_t i = 0; i < sizeof of_database / sizeof *of_database; i++)
        if (len > strlen(of_database[i]) &&
            strcmp(path + len - strlen(of_database[i]), of_database[i]) == 0)
            return;
    if (logs->others++ == 0)
        logs->other = must_strndup(path, len);
}

static void say_others(struct logs *logs, const char *path)
{
    if (logs->others > 0)
        say("import '%s': %" PRIu64 " file%s no name of a log, such as '%s': left out", path,
            logs->others, logs->others == 1 ? " has" : "s have", logs->other);
    annal__free(logs->other);
    logs->other = NULL;
    logs->others = 0;
}

static void find_in_directory(struct logs *logs, const char *path, struct place_in_walk at)
{
    struct dirent **names = NULL;
    SCOPED_BUF below = {0};
    int count = scandir(path, &names, NULL, alphasort);
    if (count < 0)
        leave_out(logs, path, strerror(errno));
    at.depth++;
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        struct place_in_walk place = at;
        place.hidden = at.hidden || name[0] == '.';
        annal__buf_clear(&below);
        must_printf(&below, "%s/%s", path, name);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            find_at(logs, below.ptr, place);
        free(names[i]);
    }
    free(names);
}

static bool is_one_log(const struct logs *logs, const char *directory)
{
    if (logs->importer->kind == NULL)
        return detect_directory(directory);
    return runs_is_importer(logs->importer) ? run_is_here(directory)
                                            : directory_is_log(logs->importer, directory);
}

static bool wants_file(const struct logs *logs, const char *path)
{
    if (logs->importer->kind == NULL)
        return detect_wants_file(path);
    return !runs_is_importer(logs->importer) && importer_wants_file(logs->importer, path);
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

static void find_below(struct logs *logs, const char *path, const struct stat *st,
                       struct place_in_walk at)
{
    /* do not search the store itself: an import that reads a log in it would make the log longer */
    if (is_store(logs, st))
        return;
    if (logs->looked != NULL)
        logs->looked(logs->arg, path);
    if (is_one_log(logs, path))
        add_log(logs, path, (uint64_t)st->st_size, at.depth == 0);
    else if (at.depth < DIRECTORIES_DEEP_MAX)
        find_in_directory(logs, path, at);
    else
        leave_out(logs, path, "it is more than " DIRECTORIES_DEEP_TEXT " directories deep");
}

/* Add a file or directory to those that were found, by device and inode. Return
 * whether it was found before. */
static bool note_found(struct logs *logs, const struct stat *st)
{
    const struct found new = {st->st_dev, st->st_ino};
    uint64_t hash = annal__hash(&new.inode, sizeof new.inode, (uint64_t) new.device);
    size_t at = 0, index;
    while ((index = places_next(&logs->places, hash, &at)) != SIZE_MAX)
        if (logs->found[index].device == new.device && logs->found[index].inode == new.inode)
            return true;
    struct found *found = must_array_add(&logs->found, &logs->found_count, sizeof *found);
    must_true(places_add(&logs->places, hash, logs->found_count - 1));
    *found = new;
    return false;
}

static void keep_link(struct logs *logs, const char *path)
{
    char **link = must_array_add(&logs->links, &logs->link_count, sizeof *link);
    *link = must_strndup(path, strlen(path));
}

/*
 * Add a file to the logs if the user named it, or if its name is that of a log; otherwise count it.
 */
static void find_file(struct logs *logs, const char *path, const struct stat *st, int depth)
{
    if (!S_ISREG(st->st_mode))
        leave_out(logs, path, "the path is neither a file nor a directory");
    else if (depth == 0 && logs->importer->kind != NULL && runs_is_importer(logs->importer) &&
             !is_branch_of_run(path))
        leave_out(logs, path,
                  "the path is neither the directory of a run nor the .json file of a branch");
    else if (access(path, R_OK) != 0)
        leave_out(logs, path, strerror(errno));
    else
        add_log(logs, path, (uint64_t)st->st_size, depth == 0);
}

static void find_at(struct logs *logs, const char *path, struct place_in_walk at)
{
    struct stat st;
    if ((at.depth == 0 || at.linked ? stat(path, &st) : lstat(path, &st)) < 0) {
        if (at.depth == 0 || errno != ENOENT || (at.linked && wants_file(logs, path)))
            /* report the path, unless it was only removed after its name was read */
            leave_out(logs, path, strerror(errno));
    } else if (S_ISLNK(st.st_mode)) {
        keep_link(logs, path);
    } else if (at.depth > 0 && !S_ISDIR(st.st_mode) && !wants_file(logs, path) &&
               (!S_ISREG(st.st_mode) || !detect_database(logs->importer, path))) {
        count_other(logs, path, &st, at);
    } else if (!note_found(logs, &st) || !at.linked) {
        if (S_ISDIR(st.st_mode))
            find_below(logs, path, &st, at);
        else
            find_file(logs, path, &st, at.depth);
    }
}

/* Move the texts that belong to logs after the logs, because a log creates the session. */
static void put_texts_last(struct logs *logs, size_t first)
{
    size_t kept = first, texts = 0;
    struct log *moved = must_realloc_array(NULL, logs->count - first + 1, sizeof *moved);
    for (size_t i = first; i < logs->count; i++) {
        if (detect_wants_text(logs->all[i].path))
            moved[texts++] = logs->all[i];
        else
            logs->all[kept++] = logs->all[i];
    }
    for (size_t i = 0; i < texts; i++)
        logs->all[kept++] = moved[i];
    annal__free(moved);
}

static int find_from(struct logs *logs, const char *path, struct place_in_walk at)
{
    uint64_t left_out = logs->left_out;
    size_t first = logs->count;
    find_at(logs, path, at);
    /* following a link may find more links */
    for (size_t i = 0; i < logs->link_count; i++)
        find_at(logs, logs->links[i], (struct place_in_walk){.depth = 1, .linked = true});
    for (size_t i = 0; i < logs->link_count; i++)
        annal__free(logs->links[i]);
    annal__free(logs->links);
    logs->links = NULL;
    logs->link_count = 0;
    put_texts_last(logs, first);
    say_others(logs, path);
    return logs->left_out > left_out ? EXIT_REFUSED : EXIT_DONE;
}

int find_logs(struct logs *logs, const char *path)
{
    return find_from(logs, path, (struct place_in_walk){0});
}

int find_logs_below(struct logs *logs, const char *path)
{
    return find_from(logs, path, (struct place_in_walk){.depth = 1});
}

void find_logs_all(struct logs *logs)
{
    annal__free(logs->found);
    places_done(&logs->places);
    logs->found = NULL;
    logs->found_count = 0;
}

void find_logs_done(struct logs *logs)
{
    find_logs_all(logs);
    for (size_t i = 0; i < logs->count; i++)
        annal__free(logs->all[i].path);
    annal__free(logs->all);
    logs->all = NULL;
    logs->count = 0;
    logs->bytes = 0;
}
