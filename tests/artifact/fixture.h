/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a directory of its own, and what the tests of this folder do with it. */
#pragma once

#include "tests/support/text.h"
#include "tests/support/tmpdir.h"

#include <annal/artifact.h>

#include <check.h>

struct fixture {
    struct tmpdir dir;
    const char *path; /* of the store */
    annal_store *store;
};

/* That of the test that runs: suite_case(suite, name, fixture_setup, fixture_teardown). */
extern struct fixture f;
void fixture_setup(void);
void fixture_teardown(void);

uint64_t fixture_append(struct fixture *fixture, const char *session, const char *data);

/* Store text; its info lives until the next call. */
const annal_artifact_info *fixture_put(struct fixture *fixture, const char *session,
                                       const char *text);

/* The path of the file; free() it. */
char *fixture_file(struct fixture *fixture, const annal_artifact_info *info);

/* Set the time of an artifact to so many seconds ago. */
void fixture_age(struct fixture *fixture, const annal_artifact_info *info, long seconds);

/* How many artifacts there are; an empty session: in all. */
unsigned fixture_count(struct fixture *fixture, const char *session);
