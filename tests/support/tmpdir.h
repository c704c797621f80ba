/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory for one test, named after its suite.
 *
 *     struct tmpdir dir;
 *     tmpdir_init(&dir);
 *     … tmpdir_path(&dir, "events/a.jsonl") …
 *     tmpdir_done(&dir);
 *
 * A test that fails keeps its directory for inspection: run_test.c.
 */
#pragma once

#include <stddef.h>

struct tmpdir {
    char path[256];
    char **names; /* what tmpdir_path() gave out */
    size_t count;
};

void tmpdir_init(struct tmpdir *tmpdir);
void tmpdir_done(struct tmpdir *tmpdir);

/* The path of a name inside; lives until tmpdir_done(). */
const char *tmpdir_path(struct tmpdir *tmpdir, const char *name);

/* That of the test that runs: suite_case(suite, name, tmpdir_setup, tmpdir_teardown). */
extern struct tmpdir dir;
void tmpdir_setup(void);
void tmpdir_teardown(void);
void tmpdir_renew(void); /* an empty one in its place */

/* Whole small files; a failure fails the test. The bytes read are NUL-terminated; free() them. */
char *file_read(const char *path, size_t *out_len);
void file_write(const char *path, const void *bytes, size_t len);

/*
 * The number of names in a directory that contain part; "": all names that do not begin with a dot.
 * 0 if the directory is missing.
 */
unsigned count_names(const char *path, const char *part);

/*
 * The number of files in a directory and its subdirectories that contain these bytes; name (may be
 * NULL) becomes the path of one of them.
 */
unsigned grep_tree(const char *tree, const char *bytes, char *name, size_t name_bytes);
