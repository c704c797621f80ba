/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/ids.h"

#include "journal/base/alloc.h"
#include "journal/base/hash.h"

#include <stddef.h>

#define SLOTS_FIRST 16u

static uint64_t id_hash(annal_slice id)
{
    uint64_t hash = annal__hash(id.ptr, id.len, 1);
    return hash == 0 ? 1 : hash;
}

static struct ids_entry *place(const struct ids_table *table, uint64_t hash)
{
    uint32_t slot = (uint32_t)hash & (table->slots - 1);
    while (table->entries[slot].hash != 0 && table->entries[slot].hash != hash)
        slot = (slot + 1) & (table->slots - 1);
    return &table->entries[slot];
}

static annal_status grow(struct ids_table *table)
{
    struct ids_table bigger = {.slots = table->slots == 0 ? SLOTS_FIRST : table->slots * 2};
    bigger.entries = annal__zalloc(bigger.slots * sizeof *bigger.entries);
    if (bigger.entries == NULL)
        return ANNAL_ERR_NOMEM;
    for (uint32_t i = 0; i < table->slots; i++) {
        if (table->entries[i].hash != 0)
            *place(&bigger, table->entries[i].hash) = table->entries[i];
    }
    bigger.used = table->used;
    annal__free(table->entries);
    *table = bigger;
    return ANNAL_OK;
}

annal_status annal__ids_add(struct ids *ids, annal_slice id, uint64_t offset)
{
    if (ids->young.used == IDS_REMEMBERED) {
        annal__free(ids->old.entries);
        ids->old = ids->young;
        ids->young = (struct ids_table){0};
    }
    if (ids->young.used >= ids->young.slots / 2) {
        annal_status status = grow(&ids->young);
        if (status < 0)
            return status;
    }
    uint64_t hash = id_hash(id);
    struct ids_entry *entry = place(&ids->young, hash);
    ids->young.used += entry->hash == 0;
    *entry = (struct ids_entry){hash, offset};
    return ANNAL_OK;
}

bool annal__ids_find(const struct ids *ids, annal_slice id, uint64_t *out_offset)
{
    const struct ids_table *tables[] = {&ids->young, &ids->old};
    for (size_t i = 0; i < 2; i++) {
        if (tables[i]->slots == 0)
            continue;
        const struct ids_entry *entry = place(tables[i], id_hash(id));
        if (entry->hash != 0) {
            *out_offset = entry->offset;
            return true;
        }
    }
    return false;
}

void annal__ids_done(struct ids *ids)
{
    annal__free(ids->young.entries);
    annal__free(ids->old.entries);
    *ids = (struct ids){0};
}
