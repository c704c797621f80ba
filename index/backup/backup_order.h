/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a backup copies the journals.
 *
 * (1) A fork is copied before its parent: the parent's journal only grows, so its copy contains the
 *     event at the fork point. Fork points get smaller from a fork to its parent, so the fork with
 *     the largest fork point is copied first.
 * (2) A session that became a fork after the list was read is skipped: the session that had this
 *     name when the backup began was deleted.
 * (3) While a fork exists its parent is not replaced. If both are deleted during a backup, the
 *     backup may contain the fork without its parent: this is checked after all journals were
 *     copied.
 */
#ifndef INDEX_BACKUP_BACKUP_ORDER_H
#define INDEX_BACKUP_BACKUP_ORDER_H

#include <annal/store.h>

struct backup_session {
    char *session;
    uint64_t fork_seq;
    char file[33]; /* file id of the journal that was copied; "": none was copied */
    /* parent of the session, if it is a fork whose parent existed when it was copied; else NULL */
    char *parent;
    char parent_file[33]; /* file id of the parent when the fork was copied */
};

struct backup_order {
    struct backup_session *list;
    size_t count;
};

/* List all sessions of a store, in the order in which they are to be copied. */
annal_status annal__backup_order(annal_store *store, struct backup_order *out_order,
                                 annal_error *err);

/* Record the parent of a fork and the parent's file id in entry, before the journal of the fork is
 * copied. */
annal_status annal__backup_note_parent(annal_store *store, const annal_session_info *fork,
                                       struct backup_session *entry, annal_error *err);

/* Check that the journal of each copied fork's parent was copied, too, after all journals were
 * copied (rule 3). ANNAL_ERR_BUSY: a parent was deleted or replaced; start the backup again. */
annal_status annal__backup_check_parents(struct backup_order *order, annal_error *err);

void annal__backup_order_done(struct backup_order *order);

#endif
