/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where events begin in a journal: some of those that a scan has passed, evenly over the seqs, so
 * that the next seek is one read. See seek.c.
 *
 * (1) What a table says only tells where to look, and proves nothing. So it may be of a file that
 *     was replaced since, by one with the same inode.
 * (2) Its memory does not grow with the journal.
 * (3) One scan uses a table at a time. When it ends, the store keeps the table for the next one
 *     that seeks in the same file: opening a cursor in a session that was read before is as cheap
 *     as moving one.
 * (4) No thread waits for the lock: a thread that cannot take it does not keep its table. So a
 *     child of fork() can close a cursor while another thread of its parent had the lock.
 */
#ifndef JOURNAL_SEEK_TABLE_H
#define JOURNAL_SEEK_TABLE_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#define SEEK_TABLES_KEPT 16

struct seek_table;

/* Of a store object. */
struct seek_tables {
    pthread_mutex_t lock;
    struct seek_table *kept[SEEK_TABLES_KEPT]; /* most recently used first */
};

struct seek_place {
    uint64_t seq; /* 0: not known */
    uint64_t offset;
};

/* The table that is kept for this file, or an empty one; NULL: no memory. tables may be NULL. */
struct seek_table *annal__seek_table_take(struct seek_tables *tables, dev_t device, ino_t inode);

/* Keep it, instead of the least recently used table. Frees it if tables is NULL. */
void annal__seek_table_give(struct seek_tables *tables, struct seek_table *table);

void annal__seek_tables_done(struct seek_tables *tables);

/* Forget everything that it says. */
void annal__seek_table_clear(struct seek_table *table);

void annal__seek_table_note(struct seek_table *table, uint64_t seq, uint64_t offset);

/* The nearest places: one at or before seq, one after it. If there is none, *low or *high is
 * unchanged. */
void annal__seek_table_near(const struct seek_table *table, uint64_t seq, struct seek_place *low,
                            struct seek_place *high);

#endif
