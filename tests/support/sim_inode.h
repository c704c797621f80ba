/* SPDX-License-Identifier: Apache-2.0 */
/* What sim_disk.c and sim_crash.c share. */
#pragma once

#include "tests/support/sim_disk.h"

#define SIM_SECTOR     512u
#define SIM_NAME_BYTES 120
#define SIM_ROOT_INODE 1u

/* Immutable bytes. NULL means zeros. */
struct sim_sector {
    unsigned references;
    uint64_t hash;
    uint8_t bytes[SIM_SECTOR];
};

/* A file's bytes: shared until a process writes. */
struct sim_image {
    unsigned references;
    uint64_t size;
    size_t room; /* in sectors; what lies beyond is zeros */
    struct sim_sector **sectors;
};

/* What happened to a file since it was last synced. */
struct sim_change {
    bool resize;
    uint64_t size;            /* of a resize: the new one */
    uint64_t sector;          /* of a write */
    struct sim_sector *bytes; /* of a write */
    uint32_t after;           /* of a write: the resize that had cut this sector off, 0: none */
};

struct sim_entry {
    char name[SIM_NAME_BYTES];
    uint64_t inode;
};

struct sim_entries {
    struct sim_entry *list;
    size_t count, room;
};

struct sim_inode {
    uint64_t number;
    bool is_dir;
    mode_t mode;
    int64_t changed_us;      /* st_ctim */
    struct timespec written; /* st_mtim */

    struct sim_image *cache; /* what processes see, but for `map` */
    struct sim_image *durable;
    struct sim_change *changes;
    size_t change_count, change_room;
    bool was_cut; /* one of the changes shortens the file */

    bool was_mapped;
    int map_fd; /* -1: never mapped; else the memory that its maps share */
    char *map;  /* our own look at it */
    size_t map_len;

    struct sim_entries names; /* of a directory */
    struct sim_entries durable_names;
};

struct sim_name_change {
    enum sim_op_kind kind;
    uint64_t inode;
    uint64_t dir;
    char name[SIM_NAME_BYTES];
    uint64_t to_dir; /* of a rename */
    char to_name[SIM_NAME_BYTES];
};

void *sim_alloc(size_t count, size_t size); /* zeros; aborts without memory */
void *sim_grow(void *list, size_t count, size_t *room, size_t size);

struct sim_sector *sim_sector_ref(struct sim_sector *sector);
void sim_sector_drop(struct sim_sector *sector);
bool sim_sector_same(const struct sim_sector *a, const struct sim_sector *b);

struct sim_image *sim_image_ref(struct sim_image *image);
void sim_image_drop(struct sim_image *image);
struct sim_sector *sim_image_sector(const struct sim_image *image, uint64_t sector);
/* These change *image, which becomes the caller's own if it is shared. Takes the reference of
 * bytes. */
void sim_image_put(struct sim_image **image, uint64_t sector, struct sim_sector *bytes);
/* Cut or extend, zeroing what is cut off. */
void sim_image_resize(struct sim_image **image, uint64_t size);

uint64_t sim_entries_find(const struct sim_entries *entries, const char *name); /* 0: none */
void sim_entries_set(struct sim_entries *entries, const char *name, uint64_t inode);
void sim_entries_remove(struct sim_entries *entries, const char *name);
void sim_entries_copy(struct sim_entries *to, const struct sim_entries *from);

struct sim_inode *sim_inode_get(const struct sim_disk *disk, uint64_t number);
/* Its times after a write. */
void sim_inode_touch(struct sim_inode *inode, int64_t now_us);
/* Of a disk that is being made: the same number, mode and kind, and nothing in it. */
struct sim_inode *sim_inode_add(struct sim_disk *disk, uint64_t number, bool is_dir, mode_t mode);
void sim_inode_write(struct sim_inode *inode, const void *bytes, size_t len, uint64_t offset);
void sim_inode_resize(struct sim_inode *inode, uint64_t size);
void sim_inode_forget_changes(struct sim_inode *inode);
/* Take what was stored into mapped memory over into the cache. */
void sim_inode_fold_map(struct sim_inode *inode);

/* Apply a change of names to the surviving entries of a disk. */
void sim_names_apply(struct sim_disk *disk, const struct sim_name_change *change);

struct sim_disk *sim_disk_empty(const struct sim_disk *like);
