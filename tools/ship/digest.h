/*
 * What annal._fold() (tables.sql) gets of the events of a batch, so that it reads only those
 * that change a row: as arrays in PostgreSQL's syntax, which are collected while the events are
 * sent.
 */
#ifndef TOOLS_SHIP_DIGEST_H
#define TOOLS_SHIP_DIGEST_H

#include "journal/base/buf.h"

#include <annal/event.h>

enum { DIGEST_ARRAYS = 6 };

struct digest {
    /* Of each session: key, ts of the first event, the latest ts, the latest but for
     * session.updated. Of each event to be read: key, seq. */
    struct buf arrays[DIGEST_ARRAYS];
    int64_t key; /* of the session whose events come now; 0: of none */
    int64_t first_us, updated_us, active_us;
    bool is_active;
    bool failed; /* there was no memory */
};

void digest_add(struct digest *digest, int64_t key, const annal_event *event);

/* The arrays are complete. False: there was no memory. */
bool digest_end(struct digest *digest);

void digest_clear(struct digest *digest);
void digest_done(struct digest *digest);

#endif
