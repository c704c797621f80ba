/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/delta.h"

#include "index/sys/state.h"
#include "snapshot/similar_pages.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <string.h>

#define PAGE ((size_t)SNAPSHOT_PAGE_BYTES)

/* Maximum bytes of a delta against the page itself that is stored at once: a few rows of the page
 * are new or changed. */
#define OWN_BYTES_MAX 400

/* Maximum bytes of a delta against several pages; a page without bases takes about as many. */
#define DELTA_BYTES_MAX 1400

struct page_set {
    uint8_t *bits;
    uint64_t count; /* number of pages that the set has a bit for */
};

struct packing {
    annal_state *state;
    struct chain *chain;
    size_t base;
    uint64_t base_pages; /* number of pages of the base; 0: no base */
    struct body_writer *packer;
    struct similar_pages *similar;
    struct page_set changed;
    /* pages that second_look() stores, when the similar pages of the whole base are known */
    struct page_set moved;
    annal_error *err;
};

static annal_status set_init(struct page_set *set, uint64_t count, annal_error *err)
{
    set->count = count;
    set->bits = annal__zalloc(count / 8 + 1);
    return set->bits == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "write a snapshot: out of memory")
                             : ANNAL_OK;
}

static void set_add(struct page_set *set, uint64_t page)
{
    if (page < set->count)
        set->bits[page / 8] |= (uint8_t)(1u << page % 8);
}

static bool set_has(const struct page_set *set, uint64_t page)
{
    return (set->bits[page / 8] >> page % 8 & 1) != 0;
}

static int add_changed(void *arg, uint64_t page)
{
    set_add(arg, page - 1);
    return 0;
}

static annal_status find_changed(struct packing *packing)
{
    uint64_t count = 0;
    annal_status status = annal__state_page_count(packing->state, &count, packing->err);
    if (status >= 0 && count > SNAPSHOT_PAGES_MAX)
        status = annal__fail(packing->err, ANNAL_ERR_LIMIT, "cannot write a snapshot of %llu pages",
                             (unsigned long long)count);
    if (status >= 0)
        status = set_init(&packing->changed, count, packing->err);
    if (status >= 0)
        status = set_init(&packing->moved, count, packing->err);
    if (status < 0)
        return status;
    if (packing->base_pages == 0) {
        memset(packing->changed.bits, 0xff, count / 8 + 1);
        return ANNAL_OK;
    }
    for (size_t i = 0; i < packing->base; i++) {
        const struct snapshot_directory *held = annal__chain_directory(packing->chain, i);
        for (size_t at = 0; at < held->entry_count; at++)
            set_add(&packing->changed, held->entries[at].page);
    }
    return annal__state_changed(packing->state, add_changed, &packing->changed, packing->err);
}

static annal_status read_base(const struct packing *packing, uint32_t page, char *bytes,
                              struct packer_base *out_base)
{
    *out_base = (struct packer_base){.bytes = bytes, .page = page};
    return annal__chain_page(packing->chain, packing->base, page, bytes, &out_base->cost,
                             packing->err);
}

/* Store a page that hardly changed as a delta against itself; leave a new page, or a page that
 * changed more, to second_look(). */
static annal_status first_look(struct packing *packing, uint32_t page)
{
    char now[SNAPSHOT_PAGE_BYTES], before[SNAPSHOT_PAGE_BYTES];
    struct packer_base own;
    bool added = false;
    if (packing->base_pages == 0 || page >= packing->base_pages) {
        set_add(&packing->moved, page);
        return ANNAL_OK;
    }
    annal_status status = annal__state_page(packing->state, (uint64_t)page + 1, now, packing->err);
    if (status >= 0)
        status = read_base(packing, page, before, &own);
    if (status < 0 || memcmp(now, before, PAGE) == 0)
        return status;
    annal__similar_pages_add(packing->similar, page, before);
    status = annal__container_body_writer_delta(packing->packer, page, now, &own, 1, OWN_BYTES_MAX,
                                                &added, packing->err);
    if (status >= 0 && !added)
        set_add(&packing->moved, page);
    return status;
}

/*
 * Find the pages against which a page may be stored: itself, and pages whose rows were moved into
 * it, the best first, as many as the cost of a page allows.
 */
static annal_status find_bases(struct packing *packing, uint32_t page, const char *now,
                               struct packer_base *bases, char *bytes, size_t *out_count)
{
    uint32_t pages[SNAPSHOT_BASES_MAX];
    uint32_t cost = 1;
    size_t found = 0, count = 0;
    annal_status status = ANNAL_OK;
    if (page < packing->base_pages)
        pages[found++] = page;
    if (packing->base_pages > 0)
        found += annal__similar_pages_find(packing->similar, page, now, pages + found,
                                           SNAPSHOT_BASES_MAX - found);
    for (size_t i = 0; status >= 0 && i < found; i++) {
        /* put the most similar page last, nearest to the new data, so that zstd's window contains
         * it for certain */
        struct packer_base *base = &bases[SNAPSHOT_BASES_MAX - 1 - count];
        status = read_base(packing, pages[i], bytes + count * PAGE, base);
        if (status >= 0 && cost + base->cost <= SNAPSHOT_PACK_COST) {
            cost += base->cost;
            count++;
        }
    }
    *out_count = count;
    return status;
}

/* Store a page as a delta against some pages of the base, or else without bases. */
static annal_status second_look(struct packing *packing, uint32_t page)
{
    char now[SNAPSHOT_PAGE_BYTES], before[SNAPSHOT_BASES_MAX * SNAPSHOT_PAGE_BYTES];
    struct packer_base bases[SNAPSHOT_BASES_MAX];
    bool added = false;
    size_t count = 0;
    annal_status status = annal__state_page(packing->state, (uint64_t)page + 1, now, packing->err);
    if (status >= 0)
        status = find_bases(packing, page, now, bases, before, &count);
    if (status >= 0)
        status = annal__container_body_writer_delta(packing->packer, page, now,
                                                    bases + (SNAPSHOT_BASES_MAX - count), count,
                                                    DELTA_BYTES_MAX, &added, packing->err);
    if (status >= 0 && !added)
        status = annal__container_body_writer_whole(packing->packer, page, now, packing->err);
    return status;
}

annal_status annal__delta_write(annal_state *state, struct chain *chain, size_t base,
                                struct snapshot_header *header, struct buf *body, annal_error *err)
{
    struct packing packing = {.state = state, .chain = chain, .base = base, .err = err};
    if (base < annal__chain_layers(chain))
        packing.base_pages = annal__container_pages(annal__chain_header(chain, base));
    uint64_t count = 0;
    annal_status status = find_changed(&packing);
    for (uint64_t page = 0; status >= 0 && page < packing.changed.count; page++)
        count += set_has(&packing.changed, page) && page < packing.base_pages;
    if (status >= 0)
        status = annal__similar_pages_new(count, &packing.similar, err);
    if (status >= 0)
        status = annal__container_body_writer_new(&packing.packer, err);
    for (uint64_t page = 0; status >= 0 && page < packing.changed.count; page++)
        if (set_has(&packing.changed, page))
            status = first_look(&packing, (uint32_t)page);
    for (uint64_t page = 0; status >= 0 && page < packing.moved.count; page++)
        if (set_has(&packing.moved, page))
            status = second_look(&packing, (uint32_t)page);
    header->raw_bytes = packing.changed.count * PAGE;
    annal__buf_clear(body);
    if (status >= 0)
        status = annal__container_body_writer_end(packing.packer, header, body, err);
    annal__container_body_writer_free(packing.packer);
    annal__similar_pages_free(packing.similar);
    annal__free(packing.changed.bits);
    annal__free(packing.moved.bits);
    return status;
}
