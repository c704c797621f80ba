/* SPDX-License-Identifier: Apache-2.0 */
/* A run of an OpenProse program on disk: what verbs_prose.c uses of prose_run.c. */
#pragma once

#include "tools/cli/verbs.h"

/* Maximum size of a value in an event; a larger one is stored in attachments/. */
#define PROSE_INLINE_BYTES_MAX (100u << 10)

/* Functions that run before or after the append of a verb, or as the verb; each returns 0 or an
 * exit status. */
int prose_prepare_init(struct verb_call *call);
int prose_finish_init(struct verb_call *call);
int prose_prepare_bind(struct verb_call *call);
int prose_finish_bind(struct verb_call *call);
int prose_sync(const struct args *args);
int prose_attachments(const struct args *args);
