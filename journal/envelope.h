/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for all members of an event and of a header except data, for writers and readers. The
 * hash of a line proves only that it was not changed by accident. So a reader checks all rules
 * again, and no caller of the library gets, for instance, a type that is too long, or a seq that
 * SQLite cannot store.
 */
#pragma once

#include "journal/codec.h"

bool annal__envelope_id_fits(annal_slice id);
bool annal__envelope_cause_fits(annal_slice cause);

/* Return what is invalid in the envelope of an event, as a sentence, or NULL. */
const char *annal__envelope_fault(const annal_event *event);

/* Return whether the names and numbers of a header are valid. A header of a newer version need not
 * pass. */
bool annal__envelope_header_fits(const struct frame_header *header);
