/* A store in a directory of its own, and what the tests of this folder do with it. */
#ifndef TESTS_ARTIFACT_FIXTURE_H
#define TESTS_ARTIFACT_FIXTURE_H

#include "tests/support/tmpdir.h"

#include <annal/artifact.h>

#include <check.h>

struct fixture {
    struct tmpdir dir;
    const char *path; /* of the store */
    annal_store *store;
};

#define FIXTURE_INIT(f)                                                                            \
    do {                                                                                           \
        tmpdir_init(&(f)->dir);                                                                    \
        fixture_init(f);                                                                           \
    } while (0)
void fixture_init(struct fixture *f);
void fixture_done(struct fixture *f);

uint64_t fixture_append(struct fixture *f, const char *session, const char *data);

/* Store text; its info lives until the next call. */
const annal_artifact_info *fixture_put(struct fixture *f, const char *session, const char *text);

/* The path of the file; free() it. */
char *fixture_file(struct fixture *f, const annal_artifact_info *info);

/* As if it had been stored so long ago. */
void fixture_age(struct fixture *f, const annal_artifact_info *info, long seconds);

/* How many artifacts there are; an empty session: in all. */
unsigned fixture_count(struct fixture *f, const char *session);

#define ck_ok(call)                                                                                \
    do {                                                                                           \
        annal_error err_ = {0}, *err = &err_;                                                      \
        annal_status got_status_ = (call);                                                         \
        ck_assert_msg(got_status_ == ANNAL_OK, "%s: %s", annal_status_name(got_status_),           \
                      err_.message);                                                               \
    } while (0)

#endif
