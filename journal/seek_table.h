/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets of some events of a journal, spread evenly over the seqs, which a scan notes while it
 * reads, so that a later seek is one read. See seek.c.
 *
 * (1) An offset only says where to look, and the event there is checked. So a table may even be
 *     from a file that was replaced since by a file with the same inode.
 * (2) Its memory does not grow with the journal.
 * (3) One scan uses a table at a time. When it ends, the store keeps the table for the next one
 *     that seeks in the same file: opening a cursor in a session that was read before is as cheap
 *     as moving one.
 * (4) No thread waits for the lock: a thread that cannot take it frees its table. So a child of
 *     fork() can close a cursor even if another thread of its parent held the lock during fork().
 */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#define SEEK_TABLES_KEPT 16

struct seek_table;

/* The tables that a store object keeps for later scans. */
struct seek_tables {
    pthread_mutex_t lock;
    /* kept tables, the most recently used first; the unused entries are NULL */
    struct seek_table *kept[SEEK_TABLES_KEPT];
};

struct seek_place {
    uint64_t seq; /* seq of the event at this offset; 0: unknown */
    uint64_t offset;
};

/* Return the kept table of this file, or an empty table; NULL: out of memory. tables may be
 * NULL. */
struct seek_table *annal__seek_table_take(struct seek_tables *tables, dev_t device, ino_t inode);

/* Keep a table for later scans, instead of the least recently used table. Frees the table if tables
 * is NULL or another thread holds the lock. */
void annal__seek_table_give(struct seek_tables *tables, struct seek_table *table);

void annal__seek_tables_done(struct seek_tables *tables);

/* Remove all offsets from a table. */
void annal__seek_table_clear(struct seek_table *table);

void annal__seek_table_note(struct seek_table *table, uint64_t seq, uint64_t offset);

/* Find the nearest known events: *low at or before seq, *high after it. *low or *high is unchanged
 * if the table has no such event. */
void annal__seek_table_near(const struct seek_table *table, uint64_t seq, struct seek_place *low,
                            struct seek_place *high);
