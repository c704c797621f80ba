/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/similar_pages.h"

#include "snapshot/container.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <string.h>

#define STRING_BYTES 8
#define ONE_OF_BITS  5 /* number of bits of a hash that must be 0: one string of 32 is chosen */
/* Chosen strings per page for which the table has room; when it is full, no more strings are
 * remembered. */
#define STRINGS_A_PAGE 96
#define VOTES_MIN      3
#define NO_PAGE        UINT32_MAX
#define MANY_PAGES     (UINT32_MAX - 1)
#define CANDIDATES     64

struct slot {
    uint32_t key;
    uint32_t page;
};

struct similar_pages {
    struct slot *slots;
    size_t mask;
    size_t used;
};

annal_status annal__similar_pages_new(uint64_t pages, struct similar_pages **out_similar,
                                      annal_error *err)
{
    struct similar_pages *similar = annal__zalloc(sizeof *similar);
    size_t count = 1024;
    while (count < pages * STRINGS_A_PAGE * 5 / 4)
        count *= 2;
    if (similar != NULL)
        similar->slots = annal__realloc_array(NULL, count, sizeof *similar->slots);
    if (similar == NULL || similar->slots == NULL) {
        annal__similar_pages_free(similar);
        return annal__fail(err, ANNAL_ERR_NOMEM, "write a snapshot: out of memory");
    }
    memset(similar->slots, 0xff, count * sizeof *similar->slots); /* NO_PAGE in each slot */
    similar->mask = count - 1;
    *out_similar = similar;
    return ANNAL_OK;
}

void annal__similar_pages_free(struct similar_pages *similar)
{
    if (similar == NULL)
        return;
    annal__free(similar->slots);
    annal__free(similar);
}

/* Find the next chosen string from *at on, and move *at after its beginning. Return false after the
 * last string of the page. */
static bool next_string(const char *bytes, size_t *at, uint32_t *out_key)
{
    while (*at + STRING_BYTES <= SNAPSHOT_PAGE_BYTES) {
        uint64_t string;
        memcpy(&string, bytes + (*at)++, STRING_BYTES);
        uint64_t hash = string * UINT64_C(0x9e3779b97f4a7c15);
        if (string != 0 && hash >> (64 - ONE_OF_BITS) == 0) {
            *out_key = (uint32_t)(hash >> 16);
            return true;
        }
    }
    return false;
}

static struct slot *find(const struct similar_pages *similar, uint32_t key)
{
    size_t at = (key * UINT32_C(2654435761)) & similar->mask;
    while (similar->slots[at].page != NO_PAGE && similar->slots[at].key != key)
        at = (at + 1) & similar->mask;
    return &similar->slots[at];
}

void annal__similar_pages_add(struct similar_pages *similar, uint32_t page, const char *bytes)
{
    uint32_t key;
    size_t at = 0;
    while (similar->used < similar->mask - similar->mask / 8 && next_string(bytes, &at, &key)) {
        struct slot *slot = find(similar, key);
        if (slot->page == NO_PAGE) {
            *slot = (struct slot){key, page};
            similar->used++;
        } else if (slot->page != page) {
            slot->page = MANY_PAGES;
        }
    }
}

struct candidate {
    uint32_t page;
    uint32_t votes;
};

static size_t vote(struct candidate *candidates, size_t count, uint32_t page)
{
    for (size_t i = 0; i < count; i++) {
        if (candidates[i].page == page) {
            candidates[i].votes++;
            return count;
        }
    }
    if (count < CANDIDATES)
        candidates[count++] = (struct candidate){page, 1};
    return count;
}

size_t annal__similar_pages_find(const struct similar_pages *similar, uint32_t page,
                                 const char *bytes, uint32_t *out_pages, size_t most)
{
    struct candidate candidates[CANDIDATES];
    size_t count = 0, found = 0, at = 0;
    uint32_t key;
    while (next_string(bytes, &at, &key)) {
        const struct slot *slot = find(similar, key);
        if (slot->page < MANY_PAGES && slot->page != page)
            count = vote(candidates, count, slot->page);
    }
    while (found < most) {
        struct candidate *best = NULL;
        for (size_t i = 0; i < count; i++) {
            if (candidates[i].votes >= VOTES_MIN &&
                (best == NULL || candidates[i].votes > best->votes))
                best = &candidates[i];
        }
        if (best == NULL)
            break;
        out_pages[found++] = best->page;
        best->votes = 0;
    }
    return found;
}
