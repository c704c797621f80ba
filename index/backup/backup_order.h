/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a backup copies the journals.
 *
 * (1) A fork is copied before the journal that it points at: that one only grows, so its copy
 *     contains the event at the fork point. Fork points get smaller from a fork to its parent, so
 *     the largest comes first.
 * (2) A session that became a fork since the list was made is left out: the session that had this
 *     name when the backup began was deleted.
 * (3) While a fork exists its parent is not replaced. If both are deleted while a backup is made,
 *     the copy of the fork may have lost its parent: that is checked when all are copied.
 */
#ifndef INDEX_BACKUP_BACKUP_ORDER_H
#define INDEX_BACKUP_BACKUP_ORDER_H

#include <annal/store.h>

struct backup_session {
    char *session;
    uint64_t fork_seq;
    char file[33]; /* of the journal that was copied; "": none was */
    /* of the fork that was copied; NULL if it is not a fork, or lost its parent */
    char *parent;
    char parent_file[33]; /* when it was copied */
};

struct backup_order {
    struct backup_session *list;
    size_t count;
};

/* All sessions of a store, in the order in which they are to be copied. */
annal_status annal__backup_order(annal_store *store, struct backup_order *out_order,
                                 annal_error *err);

/* Called before the journal of a fork is copied: note which file its parent is. */
annal_status annal__backup_note_parent(annal_store *store, const annal_session_info *fork,
                                       struct backup_session *entry, annal_error *err);

/* Rule (3), when all are copied. ANNAL_ERR_BUSY: one has lost its parent; begin again. */
annal_status annal__backup_check_parents(struct backup_order *order, annal_error *err);

void annal__backup_order_done(struct backup_order *order);

#endif
