/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The storage of snapshots: rows of the table snapshots, and files for large bodies.
 *
 * A body above SNAPSHOT_ROW_BYTES_MAX is in STORE/snapshots/<session>/<seq>.zst. The file is
 * durable before the row that names it is written, and is removed after the row. A file without a
 * row is useless, and is removed when the session's next large snapshot is taken.
 */
#ifndef SNAPSHOT_STORAGE_H
#define SNAPSHOT_STORAGE_H

#include "snapshot/container.h"

#include <annal/snapshot.h>

/* One session, and what its snapshots must agree with. */
struct storage {
    annal_index *index;
    annal_store *store;
    annal_slice session; /* borrowed */
    /* root of its history; the session itself if it is not a fork */
    char root[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_session_info info;
    const annal_pack *core;         /* core pack of the index */
    const annal_pack *const *packs; /* packs of the caller, or core */
    size_t pack_count;
    uint64_t pack_version;
    annal_state **spare; /* released state that its states reuse; may be NULL */
};

/*
 * Look up the session. The states of a fork belong to the session at the root of its lineage: at
 * and before the fork point they are the same, byte for byte. packs may be NULL: the core pack. Do
 * not move the struct afterwards: packs may point into it. ANNAL_ERR_NOTFOUND: no such session.
 * ANNAL_ERR_CORRUPT: it is a fork that lacks an ancestor.
 */
annal_status annal__storage_init(struct storage *shelf, annal_index *index, annal_slice session,
                                 const annal_pack *const *packs, size_t pack_count,
                                 annal_error *err);

/* A stored row. */
struct shelf_row {
    uint64_t seq;
    annal_slice bytes;
    struct snapshot_header header; /* valid when problem is NULL */
    const char *problem;           /* phrase that says why it is not a snapshot, or NULL */
};

/*
 * Read the row with the largest seq that is at most at_most. ANNAL_ERR_NOTFOUND if there is none.
 */
annal_status annal__storage_row(const struct storage *shelf, uint64_t at_most,
                                struct shelf_row *out_row, annal_error *err);
void annal__storage_row_done(struct shelf_row *row);

/*
 * Check whether a snapshot with this header is valid (container.c, rule 1). *out_why: NULL, or a
 * phrase that says why not. The content of its frames is not checked. If the journal cannot be read
 * nothing is known: that is a failure.
 */
annal_status annal__storage_stale(const struct storage *shelf, const struct snapshot_header *header,
                                  const char **out_why, annal_error *err);

/* The value of *out_why if the journal has the right file id, and ends before the event does. */
extern const char annal__storage_cut[];

/* Open the file of a body. The caller closes *out_fd. ANNAL_ERR_CORRUPT if it is missing. */
annal_status annal__storage_open_file(const struct storage *shelf,
                                      const struct snapshot_header *header, int *out_fd,
                                      annal_error *err);

/*
 * Store a snapshot: first the file, if it is large, then the row. Sets header_hash. base: the
 * snapshot against which it is stored, or NULL; ANNAL_ERR_CONFLICT if that does not exist any more.
 */
annal_status annal__storage_put(const struct storage *shelf, struct snapshot_header *header,
                                const struct snapshot_header *base, annal_slice body,
                                uint32_t wait_ms, annal_error *err);

/* An item of a list: a row of which only the header was read. */
struct shelf_item {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t seq;
    uint64_t bytes; /* stored bytes: in the row, and in its file */
    int64_t created_us;
    struct snapshot_header header; /* valid when problem is NULL */
    const char *problem;
};

struct shelf_list {
    struct shelf_item *items; /* sorted by session and seq */
    size_t count;
};

/* List the rows of one session, or of all if session is empty. */
annal_status annal__storage_list(annal_index *index, annal_slice session, struct shelf_list *list,
                                 annal_error *err);
void annal__storage_list_done(struct shelf_list *list);

/* Delete the session's rows for which goes() returns true, and their files. */
typedef bool (*shelf_goes_fn)(void *arg, const struct shelf_item *item);
annal_status annal__storage_delete(const struct storage *shelf, const struct shelf_list *list,
                                   shelf_goes_fn goes, void *arg, uint32_t wait_ms,
                                   annal_error *err);

/*
 * Remove the session's files that no row names; all of them if the session does not exist any more.
 */
void annal__storage_sweep(const struct storage *shelf);

#endif
