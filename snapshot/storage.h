/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store snapshots: rows of the table snapshots, and files for large bodies.
 *
 * A body above SNAPSHOT_ROW_BYTES_MAX is in STORE/snapshots/<session>/<seq>.zst. The file is
 * durable before the row that names it is written, and is removed after the row. A file that no row
 * names is not used, and is removed when the next large snapshot of the session is taken.
 */
#pragma once

#include "snapshot/container.h"

#include <annal/snapshot.h>

/*
 * A session whose snapshots are read or written, and the facts with which each snapshot must agree.
 */
struct storage {
    annal_index *index;
    annal_store *store;
    annal_slice session; /* session id, borrowed from the caller */
    /* id of the session at the root of the lineage; the session itself if it is not a fork */
    char root[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_session_info info;
    const annal_pack *core;         /* core pack of the index */
    const annal_pack *const *packs; /* packs of the caller, or `core` */
    size_t pack_count;
    uint64_t pack_version;
    /* address of a state that was emptied by annal__state_rest(), and that the next loaded state
     * reuses; may be NULL */
    annal_state **spare;
};

/*
 * Look up the session and fill the struct. packs may be NULL: the core pack. The states of a fork
 * belong to the session at the root of its lineage, because up to the fork point fork and parent
 * have the same state, byte for byte. Do not move the struct afterwards, because packs may point
 * into it. ANNAL_ERR_NOTFOUND: no such session. ANNAL_ERR_CORRUPT: the session is a fork that lacks
 * an ancestor.
 */
annal_status annal__storage_init(struct storage *shelf, annal_index *index, annal_slice session,
                                 const annal_pack *const *packs, size_t pack_count,
                                 annal_error *err);

/* A stored row of the table snapshots. */
struct shelf_row {
    uint64_t seq;
    annal_slice bytes;
    struct snapshot_header header; /* valid when problem is NULL */
    const char *problem;           /* phrase that says why the row is not a snapshot, or NULL */
};

/* Read the session's row with the largest seq that is at most at_most. ANNAL_ERR_NOTFOUND: no such
 * row. */
annal_status annal__storage_row(const struct storage *shelf, uint64_t at_most,
                                struct shelf_row *out_row, annal_error *err);
void annal__storage_row_done(struct shelf_row *row);

/*
 * Check whether a snapshot with this header belongs to the current journal and packs (container.c,
 * rule 1). *out_why is NULL, or a phrase that says why the snapshot is invalid. The content of its
 * frames is not checked. If the journal cannot be read, validity is not known, and the function
 * fails.
 */
annal_status annal__storage_stale(const struct storage *shelf, const struct snapshot_header *header,
                                  const char **out_why, annal_error *err);

/* The value of *out_why if the journal has the right file id but ends before the snapshot's
 * event. */
extern const char annal__storage_cut[];

/* Open the file of a body. The caller closes *out_fd. ANNAL_ERR_CORRUPT: the file is missing. */
annal_status annal__storage_open_file(const struct storage *shelf,
                                      const struct snapshot_header *header, int *out_fd,
                                      annal_error *err);

/*
 * Store a snapshot: first the file, if header->in_file, then the row. Set header->header_hash. base
 * is the header of the snapshot on which this one is based, or NULL. ANNAL_ERR_CONFLICT: the base
 * does not exist any more.
 */
annal_status annal__storage_put(const struct storage *shelf, struct snapshot_header *header,
                                const struct snapshot_header *base, annal_slice body,
                                uint32_t wait_ms, annal_error *err);

/* An item of a list: a row of which only the header was read. */
struct shelf_item {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t seq;
    uint64_t bytes; /* size of the snapshot in bytes: its row, and its file if it has one */
    int64_t created_us;
    struct snapshot_header header; /* valid when problem is NULL */
    const char *problem;
};

struct shelf_list {
    struct shelf_item *items; /* sorted by session and seq */
    size_t count;
};

/* List the rows of one session, or of all sessions if session is empty. */
annal_status annal__storage_list(annal_index *index, annal_slice session, struct shelf_list *list,
                                 annal_error *err);
void annal__storage_list_done(struct shelf_list *list);

/* Delete the session's rows for which goes() returns true, and their files. */
typedef bool (*shelf_goes_fn)(void *arg, const struct shelf_item *item);
annal_status annal__storage_delete(const struct storage *shelf, const struct shelf_list *list,
                                   shelf_goes_fn goes, void *arg, uint32_t wait_ms,
                                   annal_error *err);

/* Remove the session's files that no row names, or all its files if the session does not exist any
 * more. */
void annal__storage_sweep(const struct storage *shelf);
