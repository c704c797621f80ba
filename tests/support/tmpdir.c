/* SPDX-License-Identifier: Apache-2.0 */
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

void tmpdir_init(struct tmpdir *tmpdir)
{
    const char *base = getenv("TMPDIR");
    const char *suite = getenv("CK_RUN_SUITE");
    *tmpdir = (struct tmpdir){0};
    snprintf(tmpdir->path, sizeof tmpdir->path, "%s/annal-%s-XXXXXX", base == NULL ? "/tmp" : base,
             suite == NULL ? "test" : suite);
    ck_assert_msg(mkdtemp(tmpdir->path) != NULL, "no directory %s", tmpdir->path);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void tmpdir_done(struct tmpdir *tmpdir)
{
    ck_assert_int_eq(nftw(tmpdir->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    for (size_t i = 0; i < tmpdir->count; i++)
        free(tmpdir->names[i]);
    free(tmpdir->names);
}

const char *tmpdir_path(struct tmpdir *tmpdir, const char *name)
{
    tmpdir->names = realloc(tmpdir->names, (tmpdir->count + 1) * sizeof *tmpdir->names);
    ck_assert_ptr_nonnull(tmpdir->names);
    char **path = &tmpdir->names[tmpdir->count++];
    ck_assert_int_ge(asprintf(path, "%s/%s", tmpdir->path, name), 0);
    return *path;
}

struct tmpdir dir;

void tmpdir_setup(void)
{
    tmpdir_init(&dir);
}

void tmpdir_teardown(void)
{
    tmpdir_done(&dir);
}

void tmpdir_renew(void)
{
    tmpdir_teardown();
    tmpdir_setup();
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

unsigned count_names(const char *path, const char *part)
{
    unsigned count = 0;
    DIR *entries = opendir(path);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        count += *part == '\0' ? entry->d_name[0] != '.' : strstr(entry->d_name, part) != NULL;
    if (entries != NULL)
        closedir(entries);
    return count;
}

unsigned grep_tree(const char *tree, const char *bytes, char *name, size_t name_bytes)
{
    unsigned found = 0;
    DIR *entries = opendir(tree);
    ck_assert_msg(entries != NULL, "open %s", tree);
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        char path[600];
        struct stat info;
        size_t len = 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", tree, entry->d_name);
        if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            found += grep_tree(path, bytes, name, name_bytes);
            continue;
        }
        char opened[32];
        int fd = open(path, O_RDONLY);
        if (fd < 0)
            continue; /* a keeper has renamed its new log in the meantime */
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
