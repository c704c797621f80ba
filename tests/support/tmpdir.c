#include "tests/support/tmpdir.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tmpdir_init(struct tmpdir *dir)
{
    const char *base = getenv("TMPDIR");
    const char *suite = getenv("CK_RUN_SUITE");
    *dir = (struct tmpdir){0};
    snprintf(dir->path, sizeof dir->path, "%s/annal-%s-XXXXXX", base == NULL ? "/tmp" : base,
             suite == NULL ? "test" : suite);
    ck_assert_msg(mkdtemp(dir->path) != NULL, "no directory %s", dir->path);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void tmpdir_done(struct tmpdir *dir)
{
    ck_assert_int_eq(nftw(dir->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    for (size_t i = 0; i < dir->count; i++)
        free(dir->names[i]);
    free(dir->names);
}

const char *tmpdir_path(struct tmpdir *dir, const char *name)
{
    dir->names = realloc(dir->names, (dir->count + 1) * sizeof *dir->names);
    ck_assert_ptr_nonnull(dir->names);
    char **path = &dir->names[dir->count++];
    ck_assert_int_ge(asprintf(path, "%s/%s", dir->path, name), 0);
    return *path;
}

char *file_read(const char *path, size_t *out_len)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    size_t len = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(len + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, len, file), len);
    bytes[len] = '\0';
    fclose(file);
    if (out_len != NULL)
        *out_len = len;
    return bytes;
}

void file_write(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    ck_assert_msg(file != NULL, "cannot create %s", path);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

unsigned count_names(const char *dir, const char *part)
{
    unsigned count = 0;
    DIR *entries = opendir(dir);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        count += *part == '\0' ? entry->d_name[0] != '.' : strstr(entry->d_name, part) != NULL;
    if (entries != NULL)
        closedir(entries);
    return count;
}

unsigned grep_tree(const char *dir, const char *bytes, char *name, size_t name_bytes)
{
    unsigned found = 0;
    DIR *entries = opendir(dir);
    ck_assert_msg(entries != NULL, "open %s", dir);
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        char path[600];
        struct stat info;
        size_t len = 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            found += grep_tree(path, bytes, name, name_bytes);
            continue;
        }
        char opened[32];
        int fd = open(path, O_RDONLY);
        if (fd < 0)
            continue; /* a keeper has renamed its new log meanwhile */
        snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd);
        char *all = file_read(opened, &len);
        close(fd);
        bool has = memmem(all, len, bytes, strlen(bytes)) != NULL;
        free(all);
        found += has;
        if (has && name != NULL)
            snprintf(name, name_bytes, "%s", path);
    }
    closedir(entries);
    return found;
}
