/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/artifact/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct fixture f;

void fixture_setup(void)
{
    f = (struct fixture){0};
    tmpdir_init(&f.dir);
    f.path = tmpdir_path(&f.dir, "store");
    const annal_store_options options = {.create = true, .no_keeper = true};
    ck_ok(annal_store_open(f.path, &options, &f.store, err));
}

void fixture_teardown(void)
{
    ck_ok(annal_store_close(f.store, err));
    tmpdir_done(&f.dir);
}

uint64_t fixture_append(struct fixture *fixture, const char *session, const char *data)
{
    annal_writer *writer = NULL;
    uint64_t seq = 0;
    const annal_draft draft = {.type = ANNAL_SLICE("tool.returned"), .data = annal_slice_of(data)};
    ck_ok(annal_writer_open(fixture->store, annal_slice_of(session), NULL, &writer, err));
    ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
    return seq;
}

const annal_artifact_info *fixture_put(struct fixture *fixture, const char *session,
                                       const char *text)
{
    static annal_artifact_info info;
    ck_ok(annal_artifact_put(fixture->store, annal_slice_of(session), annal_slice_of(text), &info,
                             err));
    return &info;
}

char *fixture_file(struct fixture *fixture, const annal_artifact_info *info)
{
    char *path = NULL;
    ck_assert_int_gt(
        asprintf(&path, "%s/artifacts/%s/%s.zst", fixture->path, info->session, info->sha256), 0);
    return path;
}

void fixture_age(struct fixture *fixture, const annal_artifact_info *info, long seconds)
{
    char *path = fixture_file(fixture, info);
    const struct timespec then = {.tv_sec = time(NULL) - seconds};
    const struct timespec times[2] = {then, then};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

static int count_one(void *arg, const annal_artifact_info *info)
{
    ck_assert_uint_eq(strlen(info->sha256), 64);
    ++*(unsigned *)arg;
    return 0;
}

unsigned fixture_count(struct fixture *fixture, const char *session)
{
    unsigned count = 0;
    ck_ok(annal_artifact_each(fixture->store, annal_slice_of(session), count_one, &count, err));
    return count;
}
