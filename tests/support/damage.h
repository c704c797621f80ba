/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way in which a file is damaged, one after the other.
 *
 *     struct damage damage;
 *     damage_init(&damage, bytes, len, DAMAGE_ALL);
 *     while (damage_next(&damage))
 *         … damage.bytes, damage.len …
 *     damage_done(&damage);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum damage_kind {
    DAMAGE_FLIP,   /* one bit */
    DAMAGE_CUT,    /* the file ends earlier */
    DAMAGE_ZERO,   /* one block of 512 bytes is zeros; the last one may be shorter */
    DAMAGE_SWAP,   /* two large blocks changed places */
    DAMAGE_DOUBLE, /* a large block overwrites another */
    DAMAGE_KINDS
};

#define DAMAGE_SMALL_BLOCK ((size_t)512)
#define DAMAGE_LARGE_BLOCK ((size_t)4096)

struct damage {
    const char *sound; /* borrowed */
    size_t sound_len;
    char *bytes; /* the damaged file */
    size_t len;
    enum damage_kind kind;
    size_t from, to;     /* the bytes that differ, or are missing, lie in here, */
    size_t from_2, to_2; /* or in here: the second of two swapped blocks */
    char what[80];       /* "bit 3 of byte 17 flipped" */
    size_t counts[DAMAGE_KINDS];
    size_t steps[DAMAGE_KINDS]; /* every one, every second one, …; 0: none of this kind */
    size_t next;
};

/* Every step is 1 for flip, cut and zero, and 0 for the kinds with large blocks; the caller may
 * change the steps. */
void damage_init(struct damage *damage, const char *sound, size_t len);

/* Go to the next damage; false if there is no other. Skips damage that changes nothing. */
bool damage_next(struct damage *damage);

/* Whether it hit bytes [from, to) of the sound file. */
bool damage_hits(const struct damage *damage, size_t from, size_t to);

/* Prints how many there were. */
void damage_done(struct damage *damage, const char *name);
