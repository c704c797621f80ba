/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts that events name, on their way to a target: rule 6 of ship.h. */
#ifndef TOOLS_SHIP_REFERENCES_H
#define TOOLS_SHIP_REFERENCES_H

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

/* An annal__artifact_reference_fn, for struct references. */
annal_status reference_note(void *arg, annal_slice session, annal_slice sha256, annal_error *err);

void references_sort(struct references *references); /* by content */
void references_clear(struct references *references);

/* After the last put() of a batch: what the target lacks and this store has. */
annal_status references_send(struct references *references, annal_store *store,
                             const struct ship_kind *kind, struct ship_target *target,
                             annal_error *err);

#endif
