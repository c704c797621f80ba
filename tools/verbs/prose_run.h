/* SPDX-License-Identifier: Apache-2.0 */
/* A run of an OpenProse program on disk: what verbs_prose.c and tests use of prose_run.c. */
#pragma once

#include "tools/cli/verbs.h"

/* Maximum size of a value in an event; a larger one is stored in attachments/. */
#define PROSE_INLINE_BYTES_MAX (100u << 10)

/* prose_run_check() returns whether a text is a run id, YYYYMMDD-HHMMSS-random6, where random6 is
 * six of [a-z0-9]; prose_run_new() creates one, and returns 0 or an exit status. */
#define PROSE_RUN_BYTES 22
bool prose_run_check(const char *run);
int prose_run_new(char out[PROSE_RUN_BYTES + 1]);

/* Functions that run before or after the append of a verb, or as the verb; each returns 0 or an
 * exit status. */
int prose_prepare_init(struct verb_call *call);
int prose_finish_init(struct verb_call *call);
int prose_prepare_bind(struct verb_call *call);
int prose_finish_bind(struct verb_call *call);
int prose_sync(const struct args *args);
int prose_attachments(const struct args *args);
