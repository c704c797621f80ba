/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/seek_table.h"

#include "journal/base/alloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PLACE_COUNT ((size_t)1 << 16)
#define PLACE_SHIFT 2 /* at first the offset of every fourth event (1 << 2) is noted */

/* A table of a journal: offsets[n] is where event (n << shift) + 1 begins, if bit n of `known` is
 * set. */
struct seek_table {
    dev_t device;
    ino_t inode;
    unsigned shift;
    uint64_t known[PLACE_COUNT / 64]; /* bit n: whether offsets[n] is known */
    uint64_t offsets[PLACE_COUNT];
};

/* ---- Tables that the store keeps ---- */

/* Remove the table at this index from the list of kept tables, and return it. The caller holds
 * tables->lock. */
static struct seek_table *take_out(struct seek_tables *tables, size_t index)
{
    struct seek_table *table = tables->kept[index];
    memmove(&tables->kept[index], &tables->kept[index + 1],
            (SEEK_TABLES_KEPT - index - 1) * sizeof(struct seek_table *));
    tables->kept[SEEK_TABLES_KEPT - 1] = NULL;
    return table;
}

struct seek_table *annal__seek_table_take(struct seek_tables *tables, dev_t device, ino_t inode)
{
    struct seek_table *table = NULL;
    if (tables != NULL && pthread_mutex_trylock(&tables->lock) == 0) {
        for (size_t i = 0; i < SEEK_TABLES_KEPT && table == NULL; i++) {
            const struct seek_table *kept = tables->kept[i];
            if (kept != NULL && kept->inode == inode && kept->device == device)
                table = take_out(tables, i);
        }
        pthread_mutex_unlock(&tables->lock);
    }
    if (table == NULL && (table = annal__realloc_array(NULL, 1, sizeof *table)) != NULL) {
        table->device = device;
        table->inode = inode;
        /* the offsets, 512 KiB, stay uninitialized until a bit of `known` is set */
        annal__seek_table_clear(table);
    }
    return table;
}

void annal__seek_table_give(struct seek_tables *tables, struct seek_table *table)
{
    if (table != NULL && tables != NULL && pthread_mutex_trylock(&tables->lock) == 0) {
        struct seek_table *dropped = take_out(tables, SEEK_TABLES_KEPT - 1);
        memmove(&tables->kept[1], &tables->kept[0],
                (SEEK_TABLES_KEPT - 1) * sizeof(struct seek_table *));
        tables->kept[0] = table;
        pthread_mutex_unlock(&tables->lock);
        table = dropped;
    }
    annal__free(table);
}

void annal__seek_tables_done(struct seek_tables *tables)
{
    for (size_t i = 0; i < SEEK_TABLES_KEPT; i++) {
        annal__free(tables->kept[i]);
        tables->kept[i] = NULL;
    }
}

/* ---- One table ---- */

void annal__seek_table_clear(struct seek_table *table)
{
    table->shift = PLACE_SHIFT;
    memset(table->known, 0, sizeof table->known);
}

static bool is_known(const struct seek_table *table, size_t index)
{
    return (table->known[index / 64] >> index % 64 & 1) != 0;
}

/* Keep only the offset of every other event, so that the table has room for twice as many
 * events. */
static void thin_out(struct seek_table *table)
{
    for (size_t i = 0; i < PLACE_COUNT; i++) {
        uint64_t bit = (uint64_t)1 << i % 64;
        bool known = i < PLACE_COUNT / 2 && is_known(table, 2 * i);
        table->known[i / 64] = (table->known[i / 64] & ~bit) | (known ? bit : 0);
        if (known)
            table->offsets[i] = table->offsets[2 * i];
    }
    table->shift++;
}

static bool is_between(const struct seek_table *table, uint64_t seq)
{
    return ((seq - 1) & (((uint64_t)1 << table->shift) - 1)) != 0;
}

void annal__seek_table_note(struct seek_table *table, uint64_t seq, uint64_t offset)
{
    while (!is_between(table, seq) && (seq - 1) >> table->shift >= PLACE_COUNT)
        thin_out(table);
    if (is_between(table, seq))
        return;
    size_t index = (size_t)((seq - 1) >> table->shift);
    table->known[index / 64] |= (uint64_t)1 << index % 64;
    table->offsets[index] = offset;
}

static struct seek_place place_at(const struct seek_table *table, size_t index)
{
    return (struct seek_place){((uint64_t)index << table->shift) + 1, table->offsets[index]};
}

void annal__seek_table_near(const struct seek_table *table, uint64_t seq, struct seek_place *low,
                            struct seek_place *high)
{
    uint64_t index = (seq - 1) >> table->shift;
    size_t from = index < PLACE_COUNT ? (size_t)index : PLACE_COUNT - 1;
    for (size_t word = from / 64 + 1; word-- > 0;) {
        uint64_t bits = table->known[word];
        if (word == from / 64)
            bits &= UINT64_MAX >> (63 - from % 64);
        if (bits != 0) {
            *low = place_at(table, word * 64 + 63 - (size_t)__builtin_clzll(bits));
            break;
        }
    }
    for (size_t word = from / 64; word < PLACE_COUNT / 64; word++) {
        uint64_t bits = table->known[word];
        if (word == from / 64)
            bits &= from % 64 == 63 ? 0 : UINT64_MAX << (from % 64 + 1);
        if (bits != 0) {
            *high = place_at(table, word * 64 + (size_t)__builtin_ctzll(bits));
            break;
        }
    }
}
