/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/real_logs.h"

#include "tests/support/runner.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

char *real_logs(const char *kind)
{
    const char *named = getenv("ANNAL_TEST_DATA");
    const char *data = named == NULL && full_or(1, 0) ? SHARED_DATA : named;
    char *path = NULL;
    struct stat info;
    if (data == NULL) {
        printf("skipped: real logs take long; ANNAL_TEST_DATA=DIR names some\n");
        return NULL;
    }
    ck_assert_int_ge(asprintf(&path, "%s/%s", data, kind), 0);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return path;
    printf("skipped: there are no real logs in %s\n", path);
    free(path);
    return NULL;
}
