/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/sim_inode.h"

#include "journal/base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *sim_alloc(size_t count, size_t size)
{
    void *memory = calloc(count == 0 ? 1 : count, size);
    if (memory == NULL) {
        fprintf(stderr, "simulated disk: no memory\n");
        abort();
    }
    return memory;
}

/* Room for one more of `size` bytes. */
void *sim_grow(void *list, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return list;
    *room = *room == 0 ? 8 : *room * 2;
    list = realloc(list, *room * size);
    if (list == NULL)
        abort();
    return list;
}

/* ---- Sectors ---- */

static struct sim_sector *sector_new(const void *bytes)
{
    static const uint8_t zeros[SIM_SECTOR];
    if (memcmp(bytes, zeros, SIM_SECTOR) == 0)
        return NULL;
    struct sim_sector *sector = sim_alloc(1, sizeof *sector);
    sector->references = 1;
    memcpy(sector->bytes, bytes, SIM_SECTOR);
    sector->hash = annal__hash(bytes, SIM_SECTOR, 0);
    return sector;
}

struct sim_sector *sim_sector_ref(struct sim_sector *sector)
{
    if (sector != NULL)
        sector->references++;
    return sector;
}

void sim_sector_drop(struct sim_sector *sector)
{
    if (sector != NULL && --sector->references == 0)
        free(sector);
}

bool sim_sector_same(const struct sim_sector *a, const struct sim_sector *b)
{
    return a == b || (a != NULL && b != NULL && a->hash == b->hash);
}

/* ---- Images ---- */

static struct sim_image *image_new(size_t room)
{
    struct sim_image *image = sim_alloc(1, sizeof *image);
    image->references = 1;
    image->room = room;
    image->sectors = sim_alloc(room, sizeof *image->sectors);
    return image;
}

struct sim_image *sim_image_ref(struct sim_image *image)
{
    image->references++;
    return image;
}

void sim_image_drop(struct sim_image *image)
{
    if (--image->references > 0)
        return;
    for (size_t i = 0; i < image->room; i++)
        sim_sector_drop(image->sectors[i]);
    free(image->sectors);
    free(image);
}

struct sim_sector *sim_image_sector(const struct sim_image *image, uint64_t sector)
{
    return sector < image->room ? image->sectors[sector] : NULL;
}

static void image_own(struct sim_image **image, uint64_t least_room)
{
    struct sim_image *old = *image;
    if (old->references == 1 && least_room <= old->room)
        return;
    size_t room = old->room;
    while (room < least_room)
        room = room < 8 ? 8 : room * 2;
    struct sim_image *own = image_new(room);
    own->size = old->size;
    for (size_t i = 0; i < old->room; i++)
        own->sectors[i] = sim_sector_ref(old->sectors[i]);
    sim_image_drop(old);
    *image = own;
}

void sim_image_put(struct sim_image **image, uint64_t sector, struct sim_sector *bytes)
{
    if (bytes == NULL && sim_image_sector(*image, sector) == NULL)
        return;
    image_own(image, sector + 1);
    sim_sector_drop((*image)->sectors[sector]);
    (*image)->sectors[sector] = bytes;
}

/* A sector with only its first `keep` bytes. */
static struct sim_sector *sector_cut(const struct sim_sector *sector, size_t keep)
{
    uint8_t bytes[SIM_SECTOR] = {0};
    if (sector != NULL)
        memcpy(bytes, sector->bytes, keep);
    return sector_new(bytes);
}

void sim_image_resize(struct sim_image **image, uint64_t size)
{
    if (size == (*image)->size)
        return;
    image_own(image, 0);
    for (uint64_t i = (size + SIM_SECTOR - 1) / SIM_SECTOR; i < (*image)->room; i++)
        sim_image_put(image, i, NULL);
    size_t keep = (size_t)(size % SIM_SECTOR);
    if (keep > 0)
        sim_image_put(image, size / SIM_SECTOR,
                      sector_cut(sim_image_sector(*image, size / SIM_SECTOR), keep));
    (*image)->size = size;
}

/* ---- Entries ---- */

static size_t entry_of(const struct sim_entries *entries, const char *name)
{
    size_t i = 0;
    while (i < entries->count && strcmp(entries->list[i].name, name) != 0)
        i++;
    return i;
}

uint64_t sim_entries_find(const struct sim_entries *entries, const char *name)
{
    size_t i = entry_of(entries, name);
    return i < entries->count ? entries->list[i].inode : 0;
}

void sim_entries_set(struct sim_entries *entries, const char *name, uint64_t inode)
{
    size_t i = entry_of(entries, name);
    if (i == entries->count) {
        entries->list =
            sim_grow(entries->list, entries->count, &entries->room, sizeof *entries->list);
        entries->list[entries->count++] = (struct sim_entry){0};
        snprintf(entries->list[i].name, SIM_NAME_BYTES, "%s", name);
    }
    entries->list[i].inode = inode;
}

void sim_entries_remove(struct sim_entries *entries, const char *name)
{
    size_t i = entry_of(entries, name);
    if (i == entries->count)
        return;
    entries->count--;
    memmove(&entries->list[i], &entries->list[i + 1], (entries->count - i) * sizeof *entries->list);
}

void sim_entries_copy(struct sim_entries *to, const struct sim_entries *from)
{
    to->list = sim_alloc(from->count, sizeof *to->list);
    if (from->count > 0)
        memcpy(to->list, from->list, from->count * sizeof *to->list);
    to->count = to->room = from->count;
}

/* ---- Inodes ---- */

struct sim_inode *sim_inode_get(const struct sim_disk *disk, uint64_t number)
{
    for (size_t i = 0; i < disk->inode_count; i++) {
        if (disk->inodes[i]->number == number)
            return disk->inodes[i];
    }
    return NULL;
}

void sim_inode_touch(struct sim_inode *inode, int64_t now_us)
{
    inode->changed_us = now_us;
    inode->written =
        (struct timespec){.tv_sec = now_us / 1000000, .tv_nsec = now_us % 1000000 * 1000};
}

struct sim_inode *sim_inode_add(struct sim_disk *disk, uint64_t number, bool is_dir, mode_t mode)
{
    struct sim_inode *inode = sim_alloc(1, sizeof *inode);
    inode->number = number;
    inode->is_dir = is_dir;
    inode->mode = mode;
    inode->map_fd = -1;
    sim_inode_touch(inode, disk->now_us);
    inode->cache = image_new(0);
    inode->durable = sim_image_ref(inode->cache);
    disk->inodes = (struct sim_inode **)sim_grow(disk->inodes, disk->inode_count, &disk->inode_room,
                                                 sizeof *disk->inodes);
    disk->inodes[disk->inode_count++] = inode;
    if (disk->last_inode < number)
        disk->last_inode = number;
    return inode;
}

static void note_write(struct sim_inode *inode, uint64_t sector, struct sim_sector *bytes)
{
    struct sim_change change = {.sector = sector, .bytes = sim_sector_ref(bytes)};
    uint32_t resizes = 0;
    uint64_t size = inode->durable->size;
    for (size_t i = 0; i < inode->change_count && inode->was_cut; i++) {
        const struct sim_change *before = &inode->changes[i];
        if (!before->resize)
            continue;
        resizes++;
        if (before->size < size && sector * SIM_SECTOR + SIM_SECTOR > before->size)
            change.after = resizes;
        size = before->size;
    }
    inode->changes =
        sim_grow(inode->changes, inode->change_count, &inode->change_room, sizeof *inode->changes);
    inode->changes[inode->change_count++] = change;
    sim_image_put(&inode->cache, sector, bytes);
}

void sim_inode_resize(struct sim_inode *inode, uint64_t size)
{
    if (size == inode->cache->size)
        return;
    inode->changes =
        sim_grow(inode->changes, inode->change_count, &inode->change_room, sizeof *inode->changes);
    inode->changes[inode->change_count++] = (struct sim_change){.resize = true, .size = size};
    inode->was_cut = inode->was_cut || size < inode->cache->size;
    sim_image_resize(&inode->cache, size);
}

void sim_inode_write(struct sim_inode *inode, const void *bytes, size_t len, uint64_t offset)
{
    const char *from = bytes;
    if (inode->map != NULL && offset < inode->map_len)
        memcpy(inode->map + offset, bytes,
               len < inode->map_len - offset ? len : (size_t)(inode->map_len - offset));
    if (offset + len > inode->cache->size)
        sim_inode_resize(inode, offset + len);
    while (len > 0) {
        uint64_t sector = offset / SIM_SECTOR;
        size_t at = (size_t)(offset % SIM_SECTOR);
        size_t piece = SIM_SECTOR - at < len ? SIM_SECTOR - at : len;
        uint8_t whole[SIM_SECTOR] = {0};
        const struct sim_sector *old = sim_image_sector(inode->cache, sector);
        if (old != NULL)
            memcpy(whole, old->bytes, SIM_SECTOR);
        memcpy(whole + at, from, piece);
        note_write(inode, sector, sector_new(whole));
        from += piece;
        len -= piece;
        offset += piece;
    }
}

void sim_inode_fold_map(struct sim_inode *inode)
{
    size_t end = inode->cache->size < inode->map_len ? (size_t)inode->cache->size : inode->map_len;
    for (size_t at = 0; inode->map != NULL && at < end; at += SIM_SECTOR) {
        uint8_t now[SIM_SECTOR] = {0};
        memcpy(now, inode->map + at, end - at < SIM_SECTOR ? end - at : SIM_SECTOR);
        struct sim_sector *stored = sector_new(now);
        if (sim_sector_same(stored, sim_image_sector(inode->cache, at / SIM_SECTOR)))
            sim_sector_drop(stored);
        else
            note_write(inode, at / SIM_SECTOR, stored);
    }
}

void sim_inode_forget_changes(struct sim_inode *inode)
{
    for (size_t i = 0; i < inode->change_count; i++)
        sim_sector_drop(inode->changes[i].bytes);
    inode->change_count = 0;
    inode->was_cut = false;
}
