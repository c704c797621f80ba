/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by verbs_prose.c and its tests: a run on disk. */
#ifndef TOOLS_VERBS_PROSE_RUN_H
#define TOOLS_VERBS_PROSE_RUN_H

#include "tools/cli/verbs.h"

/* A larger value is stored in attachments/. */
#define PROSE_INLINE_BYTES_MAX (100u << 10)

/* Create an id, YYYYMMDD-HHMMSS-random6, six of [a-z0-9]. */
#define PROSE_RUN_BYTES 22
bool prose_run_check(const char *run);
int prose_run_new(char out[PROSE_RUN_BYTES + 1]);

/* Functions for verbs_prose.c. */
int prose_prepare_init(struct verb_call *call);
int prose_finish_init(struct verb_call *call);
int prose_prepare_bind(struct verb_call *call);
int prose_finish_bind(struct verb_call *call);
int prose_sync(const struct args *args);
int prose_attachments(const struct args *args);

#endif
