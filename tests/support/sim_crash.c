/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/sim_inode.h"

#include "journal/base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Choosing ---- */

enum policy { KEEP_NOTHING, KEEP_NEWEST, KEEP_SOME, KEEP_MOST, KEEP_LITTLE, POLICIES };

/* Choose one of `options`, of which 0 is the oldest. */
static uint32_t choose(struct sim_choices *choices, uint32_t options)
{
    if (options < 2)
        return 0;
    if (choices->all) {
        size_t digit = choices->digit++;
        if (digit >= sizeof choices->digits / sizeof *choices->digits)
            abort();
        if (digit == choices->count)
            choices->digits[choices->count++] = 0;
        choices->radices[digit] = options;
        return choices->digits[digit] < options ? choices->digits[digit] : options - 1;
    }
    bool any = random_below(&choices->random, 8) == 0;
    uint32_t one = (uint32_t)random_below(&choices->random, options);
    switch (choices->unit_policy) {
    case KEEP_NOTHING:
        return 0;
    case KEEP_NEWEST:
        return options - 1;
    case KEEP_MOST:
        return any ? one : options - 1;
    case KEEP_LITTLE:
        return any ? one : 0;
    default:
        return one;
    }
}

/* Another file, or the names: one of them may be whole on the disk and another not at all. */
static void begin_unit(struct sim_choices *choices)
{
    choices->unit_policy = choices->policy < POLICIES
                               ? choices->policy
                               : (int)random_below(&choices->random, POLICIES);
}

/* ---- What is left of a file ---- */

/* The writes of one file that may survive, in order of sector, then of time. */
struct writes {
    const struct sim_change **list;
    size_t count;
};

static int compare_writes(const void *left, const void *right)
{
    const struct sim_change *a = *(const struct sim_change *const *)left;
    const struct sim_change *b = *(const struct sim_change *const *)right;
    if (a->sector != b->sector)
        return a->sector < b->sector ? -1 : 1;
    return a < b ? -1 : a > b;
}

static uint32_t count_resizes(const struct sim_inode *inode)
{
    uint32_t count = 0;
    for (size_t i = 0; i < inode->change_count; i++)
        count += inode->changes[i].resize;
    return count;
}

/* With the first kept_resizes: rule (2). *image becomes what a disk has that kept no write. */
static struct writes possible_writes(const struct sim_inode *inode, uint32_t kept_resizes,
                                     struct sim_image **image)
{
    struct writes writes = {sim_alloc(inode->change_count, sizeof *writes.list), 0};
    uint32_t resizes = 0;
    for (size_t i = 0; i < inode->change_count; i++) {
        const struct sim_change *change = &inode->changes[i];
        if (!change->resize) {
            if (change->after <= kept_resizes)
                writes.list[writes.count++] = change;
            continue;
        }
        if (++resizes > kept_resizes)
            continue;
        sim_image_resize(image, change->size);
        size_t left = 0;
        for (size_t j = 0; j < writes.count && inode->was_cut; j++) {
            if (writes.list[j]->sector * SIM_SECTOR < change->size)
                writes.list[left++] = writes.list[j];
        }
        writes.count = inode->was_cut ? left : writes.count;
    }
    qsort(writes.list, writes.count, sizeof *writes.list, compare_writes);
    return writes;
}

/* How many writes of the same sector stand at the front; 0: the disk has that already. */
static size_t versions_at(const struct writes *writes, size_t at, const struct sim_image *image,
                          size_t *out_next)
{
    uint64_t sector = writes->list[at]->sector;
    bool differs = false;
    size_t end = at;
    for (; end < writes->count && writes->list[end]->sector == sector; end++)
        differs =
            differs || !sim_sector_same(writes->list[end]->bytes, sim_image_sector(image, sector));
    *out_next = end;
    return differs && sector * SIM_SECTOR < image->size ? end - at : 0;
}

/* A truncation in the middle of a sector leaves no bytes after it. */
static void trim(struct sim_image **image)
{
    uint64_t size = (*image)->size;
    if (size % SIM_SECTOR == 0)
        return;
    sim_image_resize(image, size + SIM_SECTOR - size % SIM_SECTOR);
    sim_image_resize(image, size);
}

static struct sim_image *surviving_image(const struct sim_inode *inode, struct sim_choices *choices)
{
    struct sim_image *image = sim_image_ref(inode->durable);
    if (inode->change_count == 0)
        return image;
    begin_unit(choices);
    uint32_t resizes = count_resizes(inode);
    uint32_t kept = choose(choices, resizes + 1);
    struct writes writes = possible_writes(inode, kept, &image);
    for (size_t at = 0, next; at < writes.count; at = next) {
        size_t versions = versions_at(&writes, at, image, &next);
        uint32_t chosen = versions == 0 ? 0 : choose(choices, (uint32_t)versions + 1);
        if (chosen > 0)
            sim_image_put(&image, writes.list[at]->sector,
                          sim_sector_ref(writes.list[at + chosen - 1]->bytes));
    }
    free(writes.list);
    trim(&image);
    return image;
}

/* Rule (4). Never one of the choices that are gone through: there would be too many. */
static struct sim_image *surviving_map(const struct sim_inode *inode, struct random *random)
{
    struct sim_choices sample = {.policy = (int)random_below(random, KEEP_SOME + 1),
                                 .random = {random_next(random)}};
    struct sim_image *image = surviving_image(inode, &sample);
    bool garbage = random_below(random, 4) == 0;
    for (uint64_t at = 0; garbage && at < image->size; at += SIM_SECTOR) {
        struct sim_sector *sector = sim_alloc(1, sizeof *sector);
        sector->references = 1;
        for (size_t i = 0; i < SIM_SECTOR; i++)
            sector->bytes[i] = (uint8_t)random_next(random);
        sector->hash = annal__hash(sector->bytes, SIM_SECTOR, 0);
        sim_image_put(&image, at / SIM_SECTOR, sector);
    }
    trim(&image);
    return image;
}

/* ---- What is left of the names ---- */

static void remove_names_of(struct sim_disk *disk, uint64_t inode)
{
    for (size_t i = 0; i < disk->inode_count; i++) {
        struct sim_entries *names = &disk->inodes[i]->durable_names;
        for (size_t j = 0; j < names->count; j++) {
            if (names->list[j].inode == inode) {
                sim_entries_remove(names, names->list[j].name);
                break;
            }
        }
    }
}

void sim_names_apply(struct sim_disk *disk, const struct sim_name_change *change)
{
    struct sim_entries *names = &sim_inode_get(disk, change->dir)->durable_names;
    switch (change->kind) {
    case SIM_RENAME:
        remove_names_of(disk, change->inode);
        sim_entries_set(&sim_inode_get(disk, change->to_dir)->durable_names, change->to_name,
                        change->inode);
        break;
    case SIM_UNLINK:
        if (sim_entries_find(names, change->name) == change->inode)
            sim_entries_remove(names, change->name);
        break;
    default:
        sim_entries_set(names, change->name, change->inode);
        break;
    }
}

/* Which inodes can be reached from the root by these names. */
static void mark_reachable(const struct sim_disk *disk, uint64_t inode, bool *reachable)
{
    const struct sim_inode *dir = sim_inode_get(disk, inode);
    reachable[inode] = true;
    for (size_t i = 0; dir != NULL && i < dir->durable_names.count; i++)
        mark_reachable(disk, dir->durable_names.list[i].inode, reachable);
}

/* ---- Power cuts ---- */

static void other_boot(struct sim_disk *disk)
{
    for (size_t i = sizeof disk->boot; i-- > 0 && ++disk->boot[i] == 0;)
        ;
}

struct sim_disk *sim_disk_crash(struct sim_disk *disk, struct sim_choices *choices)
{
    struct sim_disk *left = sim_disk_empty(disk);
    bool *reachable = sim_alloc(disk->last_inode + 1, sizeof *reachable);
    struct random maps = {choices->seed ^ choices->number << 32};
    other_boot(left);
    left->now_us += 60000000;
    choices->digit = 0;
    for (size_t i = 0; i < disk->inode_count; i++) {
        const struct sim_inode *dir = disk->inodes[i];
        if (dir->is_dir)
            sim_entries_copy(&sim_inode_add(left, dir->number, true, dir->mode)->durable_names,
                             &dir->durable_names);
    }
    begin_unit(choices);
    for (size_t i = 0; i < disk->name_count; i++) {
        if (choose(choices, 2) == 1)
            sim_names_apply(left, &disk->names[i]);
    }
    mark_reachable(left, SIM_ROOT_INODE, reachable);
    for (size_t i = 0; i < disk->inode_count; i++) {
        struct sim_inode *from = disk->inodes[i];
        if (from->is_dir || !reachable[from->number])
            continue;
        struct sim_inode *to = sim_inode_add(left, from->number, false, from->mode);
        sim_inode_fold_map(from);
        to->was_mapped = from->was_mapped;
        sim_image_drop(to->cache);
        sim_image_drop(to->durable);
        to->durable =
            from->was_mapped ? surviving_map(from, &maps) : surviving_image(from, choices);
        to->cache = sim_image_ref(to->durable);
    }
    for (size_t i = 0; i < left->inode_count; i++) {
        if (left->inodes[i]->is_dir)
            sim_entries_copy(&left->inodes[i]->names, &left->inodes[i]->durable_names);
    }
    free(reachable);
    return left;
}

/* The number of outcomes; counting stops above most. */
static double count_outcomes(const struct sim_disk *disk, uint64_t most)
{
    double outcomes = 1;
    bool *named = sim_alloc(disk->last_inode + 1, sizeof *named);
    mark_reachable(disk, SIM_ROOT_INODE, named);
    for (size_t i = 0; i < disk->name_count && outcomes <= (double)most; i++) {
        outcomes *= 2;
        named[disk->names[i].inode] = true;
    }
    for (size_t i = 0; i < disk->inode_count && outcomes <= (double)most; i++) {
        const struct sim_inode *inode = disk->inodes[i];
        if (inode->is_dir || inode->was_mapped || !named[inode->number])
            continue;
        struct sim_image *image = sim_image_ref(inode->durable);
        uint32_t resizes = count_resizes(inode);
        struct writes writes = possible_writes(inode, resizes, &image);
        outcomes *= resizes + 1;
        for (size_t at = 0, next; at < writes.count && outcomes <= (double)most; at = next)
            outcomes *= (double)versions_at(&writes, at, image, &next) + 1;
        free(writes.list);
        sim_image_drop(image);
    }
    free(named);
    return outcomes;
}

void sim_choices_init(struct sim_choices *choices, struct sim_disk *disk, uint64_t seed,
                      uint64_t most)
{
    *choices = (struct sim_choices){.disk = disk, .seed = seed, .most = most};
    choices->all = count_outcomes(disk, most) <= (double)most;
}

bool sim_choices_next(struct sim_choices *choices)
{
    uint64_t number = ++choices->number;
    choices->random = (struct random){choices->seed + number * 0x9E3779B97F4A7C15};
    if (!choices->all) {
        /* The two ends first; then one policy for everything, or one for each file. */
        choices->policy = number == 1   ? KEEP_NOTHING
                          : number == 2 ? KEEP_NEWEST
                                        : (int)random_below(&choices->random, 2 * POLICIES);
        if (choices->policy < KEEP_SOME && number > 2)
            choices->policy = POLICIES;
        return number <= choices->most;
    }
    if (number == 1)
        return true;
    while (choices->count > 0) {
        size_t last = choices->count - 1;
        if (++choices->digits[last] < choices->radices[last])
            return true;
        choices->count--;
    }
    return false;
}

bool sim_choices_goto(struct sim_choices *choices, uint64_t number)
{
    while (sim_choices_next(choices)) {
        if (choices->number == number)
            return true;
        if (choices->all)
            sim_disk_free(sim_disk_crash(choices->disk, choices));
    }
    return false;
}

/* ---- Processes die ---- */

static void copy_changes(struct sim_inode *to, const struct sim_inode *from)
{
    to->changes = sim_alloc(from->change_count, sizeof *to->changes);
    to->change_count = to->change_room = from->change_count;
    to->was_cut = from->was_cut;
    for (size_t i = 0; i < from->change_count; i++) {
        to->changes[i] = from->changes[i];
        (void)sim_sector_ref(to->changes[i].bytes);
    }
}

struct sim_disk *sim_disk_kill(struct sim_disk *disk, const struct sim_op *in_flight,
                               size_t written)
{
    struct sim_disk *left = sim_disk_empty(disk);
    for (size_t i = 0; i < disk->inode_count; i++) {
        struct sim_inode *from = disk->inodes[i];
        struct sim_inode *to = sim_inode_add(left, from->number, from->is_dir, from->mode);
        sim_inode_fold_map(from);
        to->was_mapped = from->was_mapped;
        sim_image_drop(to->cache);
        sim_image_drop(to->durable);
        to->cache = sim_image_ref(from->cache);
        to->durable = sim_image_ref(from->durable);
        copy_changes(to, from);
        sim_entries_copy(&to->names, &from->names);
        sim_entries_copy(&to->durable_names, &from->durable_names);
    }
    left->names = sim_alloc(disk->name_count, sizeof *left->names);
    left->name_count = left->name_room = disk->name_count;
    if (disk->name_count > 0)
        memcpy(left->names, disk->names, disk->name_count * sizeof *left->names);
    if (in_flight != NULL && written > 0)
        sim_inode_write(sim_inode_get(left, in_flight->inode), in_flight->bytes, written,
                        in_flight->offset);
    return left;
}

/* ---- Looking ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t pair[2] = {a, b};
    return annal__hash((const char *)pair, sizeof pair, 0);
}

static uint64_t hash_file(const struct sim_inode *inode)
{
    uint64_t hash = mix(inode->cache->size, 0);
    for (size_t i = 0; i < inode->cache->room; i++) {
        if (inode->cache->sectors[i] != NULL)
            hash += mix(i + 1, inode->cache->sectors[i]->hash);
    }
    return hash;
}

static uint64_t hash_dir(const struct sim_disk *disk, const struct sim_inode *dir)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < dir->names.count; i++) {
        const struct sim_entry *entry = &dir->names.list[i];
        const struct sim_inode *inode = sim_inode_get(disk, entry->inode);
        uint64_t name = annal__hash(entry->name, strlen(entry->name), 1);
        if (inode->is_dir)
            hash += mix(name, hash_dir(disk, inode) + 1);
        else if (!inode->was_mapped)
            hash += mix(name, hash_file(inode));
    }
    return hash;
}

uint64_t sim_disk_hash(struct sim_disk *disk, const char *directory)
{
    const struct sim_inode *dir = sim_inode_get(disk, SIM_ROOT_INODE);
    while (dir != NULL && *directory != '\0') {
        char name[SIM_NAME_BYTES];
        size_t length = strcspn(directory, "/");
        snprintf(name, sizeof name, "%.*s", (int)length, directory);
        dir = sim_inode_get(disk, sim_entries_find(&dir->names, name));
        directory += length + (directory[length] == '/');
    }
    return dir == NULL ? 0 : hash_dir(disk, dir);
}
