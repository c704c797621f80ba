/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Write a template of a name for mkdtemp(3) or mkostemp(3). Return false and set errno if the path
 * is too long. */
static bool set_path(char path[PATH_MAX], const char *directory, const char *what)
{
    directory = directory != NULL ? directory : getenv("TMPDIR");
    int len = snprintf(path, PATH_MAX, "%s/annal-%s-XXXXXX",
                       directory == NULL || *directory == '\0' ? "/tmp" : directory, what);
    errno = ENAMETOOLONG;
    return len > 0 && len < PATH_MAX;
}

int temporary_file(const char *directory)
{
    char path[PATH_MAX];
    if (!set_path(path, directory, "file"))
        return -1;
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int fd = open(*path == '\0' ? "/" : path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* a file that loses its name at once, because the file system has no unnamed files */
    *slash = '/';
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

FILE *temporary_stream(const char *directory)
{
    int fd = temporary_file(directory);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (file == NULL && fd >= 0)
        close(fd);
    return file;
}

bool temporary_directory(const char *what, char path[PATH_MAX])
{
    return set_path(path, NULL, what) && mkdtemp(path) != NULL;
}

void temporary_directory_remove(const char *path)
{
    const struct dirent *entry;
    DIR *directory = opendir(path);
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory != NULL)
        closedir(directory);
    (void)rmdir(path);
}
