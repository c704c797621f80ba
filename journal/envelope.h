/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an event and a header may hold besides data, for those who write them and those who read
 * them. A hash proves only that a line was not changed by accident: a reader checks all of this
 * again, so that nothing above it meets a type of 65 bytes or a seq that SQLite cannot keep.
 */
#ifndef JOURNAL_ENVELOPE_H
#define JOURNAL_ENVELOPE_H

#include "journal/codec.h"

bool annal__envelope_id_fits(annal_slice id);
bool annal__envelope_cause_fits(annal_slice cause);

/* What is not valid in the envelope of an event; NULL: all of it is. */
const char *annal__envelope_fault(const annal_event *event);

/* Whether the names and numbers of a header are valid. A newer version may leave them out. */
bool annal__envelope_header_fits(const struct frame_header *header);

#endif
