#include "tests/support/real_logs.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

char *real_logs(const char *kind)
{
    const char *data = getenv("ANNAL_TEST_DATA");
    char *path = NULL;
    struct stat info;
    ck_assert_int_ge(asprintf(&path, "%s/%s", data == NULL ? SHARED_DATA : data, kind), 0);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return path;
    printf("skipped: no real logs in %s (ANNAL_TEST_DATA names another place)\n", path);
    free(path);
    return NULL;
}
