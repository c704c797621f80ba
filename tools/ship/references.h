/* SPDX-License-Identifier: Apache-2.0 */
/* The artifacts that events refer to, and how they are sent to a target (ship.h, rule 6). */
#pragma once

#include "journal/sys/artifact.h"
#include "tools/ship/ship.h"

struct reference {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char sha256[ANNAL_SHA256_TEXT_BYTES];
};

struct references {
    struct reference *all;
    size_t count;
};

/* Add a reference to arg, a struct references; an annal__artifact_reference_fn. */
annal_status references_note(void *arg, annal_slice session, annal_slice sha256, annal_error *err);

void references_sort(struct references *references); /* by content hash */
void references_clear(struct references *references);

/* Send the artifacts that this store has and the target lacks. Call it after the last put() of a
 * batch. */
annal_status references_send(struct references *references, annal_store *store,
                             const struct ship_kind *kind, struct ship_target *target,
                             annal_error *err);

/* Return whether the content has this SHA-256. */
bool references_is_content(annal_slice content, const char *sha256);

/* Fetch an artifact from the target, and put it into the store if the content is right.
 * ANNAL_ERR_NOTFOUND: the target lacks the artifact. */
annal_status references_fetch(annal_slice session, const char *sha256, annal_store *store,
                              const struct ship_kind *kind, struct ship_target *target,
                              annal_error *err);
