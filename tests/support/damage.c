/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/damage.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void damage_init(struct damage *damage, const char *sound, size_t len)
{
    *damage = (struct damage){.sound = sound, .sound_len = len};
    damage->steps[DAMAGE_FLIP] = damage->steps[DAMAGE_CUT] = damage->steps[DAMAGE_ZERO] = 1;
    damage->bytes = malloc(len + 1);
    ck_assert_ptr_nonnull(damage->bytes);
}

static size_t blocks(const struct damage *damage, size_t size)
{
    return (damage->sound_len + size - 1) / size;
}

/* How many there are of the kind, those that change nothing included. */
static size_t total(const struct damage *damage)
{
    size_t large = damage->sound_len / DAMAGE_LARGE_BLOCK;
    switch (damage->kind) {
    case DAMAGE_FLIP:
        return damage->sound_len * 8;
    case DAMAGE_CUT:
        return damage->sound_len;
    case DAMAGE_ZERO:
        return blocks(damage, DAMAGE_SMALL_BLOCK);
    default:
        return large * large;
    }
}

static void two_blocks(struct damage *damage, size_t number)
{
    size_t large = damage->sound_len / DAMAGE_LARGE_BLOCK;
    size_t a = number / large * DAMAGE_LARGE_BLOCK, b = number % large * DAMAGE_LARGE_BLOCK;
    bool swap = damage->kind == DAMAGE_SWAP;
    if (swap && a >= b)
        return;
    memcpy(damage->bytes + a, damage->sound + b, DAMAGE_LARGE_BLOCK);
    if (swap)
        memcpy(damage->bytes + b, damage->sound + a, DAMAGE_LARGE_BLOCK);
    damage->from = a;
    damage->to = a + DAMAGE_LARGE_BLOCK;
    damage->from_2 = swap ? b : 0;
    damage->to_2 = swap ? b + DAMAGE_LARGE_BLOCK : 0;
    snprintf(damage->what, sizeof damage->what,
             swap ? "blocks at %zu and %zu swapped" : "block at %zu is that at %zu", a, b);
}

static void make(struct damage *damage, size_t number)
{
    damage->len = damage->sound_len;
    damage->from_2 = damage->to_2 = 0;
    memcpy(damage->bytes, damage->sound, damage->len);
    switch (damage->kind) {
    case DAMAGE_FLIP:
        damage->from = number / 8;
        damage->to = damage->from + 1;
        damage->bytes[damage->from] ^= (char)(1 << number % 8);
        snprintf(damage->what, sizeof damage->what, "bit %zu of byte %zu flipped", number % 8,
                 number / 8);
        break;
    case DAMAGE_CUT:
        damage->len = damage->from = number;
        damage->to = damage->sound_len;
        snprintf(damage->what, sizeof damage->what, "cut to %zu bytes", number);
        break;
    case DAMAGE_ZERO:
        damage->from = number * DAMAGE_SMALL_BLOCK;
        damage->to = damage->from + DAMAGE_SMALL_BLOCK;
        if (damage->to > damage->sound_len)
            damage->to = damage->sound_len;
        memset(damage->bytes + damage->from, 0, damage->to - damage->from);
        snprintf(damage->what, sizeof damage->what, "bytes %zu to %zu are zeros", damage->from,
                 damage->to);
        break;
    default:
        two_blocks(damage, number);
    }
}

bool damage_next(struct damage *damage)
{
    while (damage->kind < DAMAGE_KINDS) {
        size_t number = damage->next;
        size_t step = damage->steps[damage->kind];
        if (step == 0 || number >= total(damage)) {
            damage->kind++;
            damage->next = 0;
            continue;
        }
        damage->next += step;
        make(damage, number);
        if (damage->len == damage->sound_len &&
            memcmp(damage->bytes, damage->sound, damage->len) == 0)
            continue;
        damage->counts[damage->kind]++;
        return true;
    }
    return false;
}

bool damage_hits(const struct damage *damage, size_t from, size_t to)
{
    return (damage->from < to && damage->to > from) || (damage->from_2 < to && damage->to_2 > from);
}

void damage_done(struct damage *damage, const char *name)
{
    printf(
        "%s, %zu bytes: %zu bits flipped, %zu cuts, %zu blocks zeroed, %zu swapped, %zu doubled\n",
        name, damage->sound_len, damage->counts[DAMAGE_FLIP], damage->counts[DAMAGE_CUT],
        damage->counts[DAMAGE_ZERO], damage->counts[DAMAGE_SWAP], damage->counts[DAMAGE_DOUBLE]);
    free(damage->bytes);
    *damage = (struct damage){0};
}
