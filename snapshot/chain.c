/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/chain.h"

#include "index/sys/state.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <string.h>

/* Number of bytes of a snapshot's file that are read and hashed at a time. */
#define PIECE_BYTES  ((size_t)256 << 10)
#define CACHE_WAYS   4
#define CACHE_DELTAS 2048 /* number of unpacked deltas that are cached, of one page each: 8 MiB */
/* number of unpacked frames of whole pages that are cached, of up to four pages each: 4 MiB */
#define CACHE_WHOLE 256
/* maximum number of layers; the numbering needs at most 96 (container.c, rule 3) */
#define LAYERS_MAX 128

struct layer {
    /*
     * number of the layer; a number is never reused in this chain, so the cache can use it as a key
     */
    uint64_t id;
    struct snapshot_header header;
    struct snapshot_directory directory;
    /* body (the compressed pages) of the snapshot, in `row` or `bytes`; NULL: the body is in the
     * file */
    const char *body;
    annal_slice row;
    struct buf bytes;
    int fd; /* descriptor of the snapshot's file; -1: the snapshot has no file */
};

struct cached_frame {
    /* id of the layer whose pages this cache entry contains; 0: the entry is empty */
    uint64_t layer;
    uint32_t frame;
    uint32_t used; /* value of cache.now when the entry was last used */
    char *pages;
};

/* Frames (compressed groups of pages) that were unpacked recently. Adjacent pages are often deltas
 * of the same base pages, and a fold returns to pages for which SQLite's cache had no room. */
struct cache {
    struct cached_frame *frames; /* sets of CACHE_WAYS entries */
    size_t count;
    size_t bytes; /* size of the pages of one entry, in bytes */
    /* number of lookups, the clock of `used` */
    uint32_t now;
};

struct chain {
    unsigned refs;
    const struct io *io;
    struct body_reader *unpacker;
    struct layer *layers;
    size_t count;
    uint64_t next_id;
    struct cache deltas, whole;
    char frame[SNAPSHOT_FRAME_BYTES_MAX];
};

/* ---- Unpacked frames ---- */

static bool cache_init(struct cache *cache, size_t count, size_t bytes)
{
    *cache = (struct cache){
        .frames = annal__zalloc(count * sizeof *cache->frames), .count = count, .bytes = bytes};
    return cache->frames != NULL;
}

static void cache_done(struct cache *cache)
{
    for (size_t i = 0; cache->frames != NULL && i < cache->count; i++)
        annal__free(cache->frames[i].pages);
    annal__free(cache->frames);
}

/*
 * Return the cached pages of a frame; or NULL, and then *out_place is the entry to put them into.
 */
static const char *cache_find(struct cache *cache, uint64_t layer, uint32_t frame,
                              struct cached_frame **out_place)
{
    uint64_t hash = (layer << 32 ^ frame) * UINT64_C(0x9e3779b97f4a7c15);
    struct cached_frame *set =
        cache->frames + (hash >> 32) % (cache->count / CACHE_WAYS) * CACHE_WAYS;
    struct cached_frame *oldest = set;
    cache->now++;
    for (struct cached_frame *at = set; at < set + CACHE_WAYS; at++) {
        if (at->layer == layer && at->frame == frame) {
            at->used = cache->now;
            return at->pages;
        }
        if (cache->now - at->used > cache->now - oldest->used)
            oldest = at;
    }
    *out_place = oldest;
    return NULL;
}

/* Return the memory of a cache entry for the pages of a frame; the entry becomes valid by
 * cache_fill(). NULL: out of memory. */
static char *cache_room(const struct cache *cache, struct cached_frame *place)
{
    place->layer = 0;
    if (place->pages == NULL)
        place->pages = annal__alloc_aligned(64, cache->bytes);
    return place->pages;
}

static void cache_fill(const struct cache *cache, struct cached_frame *place, uint64_t layer,
                       uint32_t frame)
{
    place->layer = layer;
    place->frame = frame;
    place->used = cache->now;
}

/* ---- Creating ---- */

static void layer_done(const struct io *io, struct layer *layer)
{
    annal__container_directory_done(&layer->directory);
    annal_free(layer->row.ptr);
    annal__buf_done(&layer->bytes);
    if (layer->fd >= 0)
        io->close(io->arg, layer->fd);
}

static void chain_free(struct chain *chain)
{
    for (size_t i = 0; i < chain->count; i++)
        layer_done(chain->io, &chain->layers[i]);
    cache_done(&chain->deltas);
    cache_done(&chain->whole);
    annal__container_body_reader_free(chain->unpacker);
    annal__free(chain->layers);
    annal__free(chain);
}

annal_status annal__chain_new(const struct storage *shelf, struct chain **out_chain,
                              annal_error *err)
{
    struct chain *chain = annal__zalloc(sizeof *chain);
    annal_status status = chain == NULL ? ANNAL_ERR_NOMEM : ANNAL_OK;
    bool room = chain != NULL;
    if (room) {
        chain->layers = annal__zalloc(LAYERS_MAX * sizeof *chain->layers);
        room = cache_init(&chain->deltas, CACHE_DELTAS, SNAPSHOT_PAGE_BYTES) &&
               cache_init(&chain->whole, CACHE_WHOLE,
                          (size_t)SNAPSHOT_BLOCK_PAGES * SNAPSHOT_PAGE_BYTES) &&
               chain->layers != NULL;
    }
    if (!room)
        status =
            annal__fail(err, ANNAL_ERR_NOMEM, "open a snapshot of session '%.*s': out of memory",
                        ANNAL_FMT(shelf->session));
    else
        status = annal__container_body_reader_new(&chain->unpacker, err);
    if (status < 0) {
        if (chain != NULL)
            chain_free(chain);
        return status;
    }
    chain->refs = 1;
    chain->io = annal__store_io(shelf->store);
    chain->next_id = 1;
    *out_chain = chain;
    return ANNAL_OK;
}

struct chain *annal__chain_ref(struct chain *chain)
{
    chain->refs++;
    return chain;
}

void annal__chain_unref(struct chain *chain)
{
    if (chain != NULL && --chain->refs == 0)
        chain_free(chain);
}

/* ---- Opening ---- */

static annal_status damaged(const struct layer *layer, const char *why, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT, "read the snapshot at event %llu: %s",
                       (unsigned long long)layer->header.seq, why);
}

/* Hash the file of a snapshot piece by piece, and compare the hash with the header's. Copy the
 * directory of pages in the file to out. */
static annal_status check_file(const struct io *io, const struct layer *layer, struct buf *out,
                               annal_error *err)
{
    const struct snapshot_header *header = &layer->header;
    uint64_t from = header->body_bytes - header->directory_bytes;
    struct hash_stream *stream = annal__hash_begin(0);
    char *piece = annal__alloc_aligned(64, PIECE_BYTES);
    annal_status status = ANNAL_OK;
    if (stream == NULL || piece == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read the snapshot at event %llu: out of memory",
                             (unsigned long long)header->seq);
    for (uint64_t at = 0; status >= 0 && at < header->body_bytes;) {
        uint64_t left = header->body_bytes - at;
        size_t want = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        ssize_t got = annal__io_read_full(io, layer->fd, piece, want, at);
        if (got != (ssize_t)want) {
            /* a bad sector (EIO) is damage of the file; after any other failed read the file may be
             * undamaged */
            status = got < 0 && errno != EIO
                         ? annal__fail_errno(err, "cannot read the snapshot at event %llu",
                                             (unsigned long long)header->seq)
                         : damaged(layer, got < 0 ? strerror(errno) : "the file is cut short", err);
            break;
        }
        annal__hash_add(stream, piece, want);
        uint64_t skip = at < from ? from - at : 0;
        if (skip < want)
            status = annal__buf_append(out, piece + skip, want - (size_t)skip);
        at += want;
    }
    uint64_t hash = stream == NULL ? 0 : annal__hash_end(stream);
    annal__free(piece);
    if (status >= 0 && hash != header->body_hash)
        status = damaged(layer, "its file is damaged", err);
    return status;
}

/* Open the snapshot of a stored row as a layer, and check all its bytes. The layer owns the row
 * after that. */
static annal_status layer_open(const struct storage *shelf, struct shelf_row *row,
                               struct layer *layer, annal_error *err)
{
    const struct io *io = annal__store_io(shelf->store);
    const struct snapshot_header *header = &layer->header;
    SCOPED_BUF directory = {0};
    annal_status status = ANNAL_OK;
    annal_slice bytes = {0};
    *layer = (struct layer){.header = row->header, .row = row->bytes, .fd = -1};
    *row = (struct shelf_row){0};
    if (header->in_file) {
        status = annal__storage_open_file(shelf, header, &layer->fd, err);
        if (status >= 0)
            status = check_file(io, layer, &directory, err);
        bytes = annal__buf_slice(&directory);
    } else {
        layer->body = layer->row.ptr + SNAPSHOT_HEADER_BYTES;
        bytes = (annal_slice){layer->body + (header->body_bytes - header->directory_bytes),
                              (size_t)header->directory_bytes};
        if (annal__hash(layer->body, (size_t)header->body_bytes, 0) != header->body_hash)
            status = damaged(layer, "its body is damaged", err);
    }
    return status < 0 ? status
                      : annal__container_directory_read(header, bytes, &layer->directory, err);
}

/* Find the row of the snapshot on which the last (oldest) layer is based: the last layer stores
 * only its differences from it. */
static annal_status base_row(const struct storage *shelf, const struct layer *last,
                             struct shelf_row *out_row, annal_error *err)
{
    const struct snapshot_header *header = &last->header;
    struct shelf_row row = {0};
    annal_status status = annal__storage_row(shelf, header->base_seq, &row, err);
    if (status >= 0 && row.problem == NULL && row.seq == header->base_seq &&
        row.seq < header->seq && row.header.header_hash == header->base_hash) {
        *out_row = row;
        return ANNAL_OK;
    }
    annal__storage_row_done(&row);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return status;
    return annal__fail(
        err, ANNAL_ERR_CORRUPT,
        "cannot read the snapshot at event %llu: its base, the snapshot at event %llu, is missing",
        (unsigned long long)header->seq, (unsigned long long)header->base_seq);
}

annal_status annal__chain_open(const struct storage *shelf, struct shelf_row *row,
                               struct chain **out_chain, annal_error *err)
{
    struct chain *chain = NULL;
    annal_status status = annal__chain_new(shelf, &chain, err);
    while (status >= 0) {
        struct layer *layer = &chain->layers[chain->count];
        status = layer_open(shelf, row, layer, err);
        layer->id = chain->next_id++;
        chain->count++;
        if (status < 0 || layer->header.base_seq == 0)
            break;
        if (chain->count == LAYERS_MAX)
            status = damaged(layer, "the snapshot needs too many other snapshots", err);
        else
            status = base_row(shelf, layer, row, err);
    }
    annal__storage_row_done(row);
    if (status < 0) {
        annal__chain_unref(chain);
        return status;
    }
    *out_chain = chain;
    return ANNAL_OK;
}

/* ---- Reading ---- */

size_t annal__chain_layers(const struct chain *chain)
{
    return chain->count;
}

const struct snapshot_header *annal__chain_header(const struct chain *chain, size_t layer)
{
    return &chain->layers[layer].header;
}

const struct snapshot_directory *annal__chain_directory(const struct chain *chain, size_t layer)
{
    return &chain->layers[layer].directory;
}

/* Return the compressed bytes of a frame: within the body in memory, or read from the file into
 * chain->frame. */
static annal_status frame_bytes(struct chain *chain, const struct layer *layer,
                                const struct snapshot_frame *frame, const char **out_bytes,
                                annal_error *err)
{
    if (layer->body != NULL) {
        *out_bytes = layer->body + frame->offset;
        return ANNAL_OK;
    }
    ssize_t got =
        annal__io_read_full(chain->io, layer->fd, chain->frame, frame->bytes, frame->offset);
    if (got == (ssize_t)frame->bytes) {
        *out_bytes = chain->frame;
        return ANNAL_OK;
    }
    if (got < 0)
        return annal__fail_errno(err, "cannot read the snapshot at event %llu",
                                 (unsigned long long)layer->header.seq);
    return damaged(layer, "the file is cut short", err);
}

static annal_status whole_page(struct chain *chain, const struct layer *layer,
                               const struct snapshot_entry *entry, char *out, annal_error *err)
{
    const struct snapshot_frame *frame = &layer->directory.frames[entry->frame];
    struct cached_frame *place = NULL;
    const char *bytes = NULL;
    const char *pages = cache_find(&chain->whole, layer->id, entry->frame, &place);
    if (pages == NULL) {
        char *room = cache_room(&chain->whole, place);
        if (room == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read a page of a snapshot: out of memory");
        annal_status status = frame_bytes(chain, layer, frame, &bytes, err);
        if (status >= 0)
            status =
                annal__container_body_read_frame(chain->unpacker, frame, bytes, NULL, room, err);
        if (status < 0)
            return status;
        cache_fill(&chain->whole, place, layer->id, entry->frame);
        pages = room;
    }
    memcpy(out, pages + entry->at * (size_t)SNAPSHOT_PAGE_BYTES, SNAPSHOT_PAGE_BYTES);
    return ANNAL_OK;
}

static annal_status page_within(struct chain *chain, size_t layer, uint32_t page, uint32_t most,
                                char *out, uint32_t *out_cost, annal_error *err);

/* Unpack a delta, after the pages on which it is based. Each of these has a smaller cost than the
 * delta, so the recursion ends. */
static annal_status unpack_delta(struct chain *chain, size_t at, const struct snapshot_frame *frame,
                                 char *out, annal_error *err)
{
    const struct layer *layer = &chain->layers[at];
    char prefix[SNAPSHOT_BASES_MAX * SNAPSHOT_PAGE_BYTES];
    const char *bytes = NULL;
    uint32_t left = frame->cost - 1u;
    annal_status status = ANNAL_OK;
    for (unsigned i = 0; status >= 0 && i < frame->bases; i++) {
        uint32_t cost = 0;
        status = page_within(chain, at + 1, layer->directory.bases[frame->first_base + i], left,
                             prefix + i * (size_t)SNAPSHOT_PAGE_BYTES, &cost, err);
        left -= cost;
    }
    if (status >= 0)
        status = frame_bytes(chain, layer, frame, &bytes, err);
    if (status >= 0)
        status = annal__container_body_read_frame(chain->unpacker, frame, bytes, prefix, out, err);
    return status;
}

static annal_status delta_page(struct chain *chain, size_t at, const struct snapshot_entry *entry,
                               char *out, annal_error *err)
{
    const struct layer *layer = &chain->layers[at];
    struct cached_frame *place = NULL;
    const char *page = cache_find(&chain->deltas, layer->id, entry->frame, &place);
    if (page != NULL) {
        memcpy(out, page, SNAPSHOT_PAGE_BYTES);
        return ANNAL_OK;
    }
    annal_status status = unpack_delta(chain, at, &layer->directory.frames[entry->frame], out, err);
    if (status < 0)
        return status;
    /* unpacking the base pages may have used the cache entry that was found before */
    char *room = NULL;
    if (cache_find(&chain->deltas, layer->id, entry->frame, &place) == NULL)
        room = cache_room(&chain->deltas, place);
    if (room != NULL) {
        memcpy(room, out, SNAPSHOT_PAGE_BYTES);
        cache_fill(&chain->deltas, place, layer->id, entry->frame);
    }
    return ANNAL_OK;
}

static annal_status page_within(struct chain *chain, size_t layer, uint32_t page, uint32_t most,
                                char *out, uint32_t *out_cost, annal_error *err)
{
    const struct snapshot_entry *entry = NULL;
    size_t at = layer;
    for (; at < chain->count; at++) {
        entry = annal__container_directory_find(&chain->layers[at].directory, page);
        if (entry != NULL)
            break;
    }
    const struct snapshot_frame *frame =
        entry == NULL ? NULL : &chain->layers[at].directory.frames[entry->frame];
    if (frame == NULL || frame->cost > most)
        return damaged(&chain->layers[chain->count - 1], "a page is missing", err);
    *out_cost = frame->cost;
    return frame->bases == 0 ? whole_page(chain, &chain->layers[at], entry, out, err)
                             : delta_page(chain, at, entry, out, err);
}

annal_status annal__chain_page(struct chain *chain, size_t layer, uint32_t page, char *out,
                               uint32_t *out_cost, annal_error *err)
{
    return page_within(chain, layer, page, SNAPSHOT_COST_MAX, out, out_cost, err);
}

/* ---- Adding a layer ---- */

annal_status annal__chain_push(struct chain *chain, const struct storage *shelf,
                               const struct snapshot_header *header, struct buf *body, size_t base,
                               annal_error *err)
{
    struct layer layer = {.id = chain->next_id++, .header = *header, .fd = -1};
    if (chain->count - base >= LAYERS_MAX)
        return damaged(&layer, "the snapshot needs too many other snapshots", err);
    annal_slice directory = {body->ptr + (body->len - header->directory_bytes),
                             (size_t)header->directory_bytes};
    annal_status status = annal__container_directory_read(header, directory, &layer.directory, err);
    if (status >= 0 && header->in_file)
        status = annal__storage_open_file(shelf, header, &layer.fd, err);
    if (status < 0) {
        layer_done(chain->io, &layer);
        return status;
    }
    if (!header->in_file) {
        layer.bytes = *body;
        layer.body = layer.bytes.ptr;
        *body = (struct buf){0};
    }
    for (size_t i = 0; i < base; i++)
        layer_done(chain->io, &chain->layers[i]);
    memmove(chain->layers + 1, chain->layers + base, (chain->count - base) * sizeof layer);
    chain->layers[0] = layer;
    chain->count = chain->count - base + 1;
    return ANNAL_OK;
}

/* ---- The pages as a source of a state ---- */

static annal_status read_page(void *arg, uint64_t page, void *out, annal_error *err)
{
    uint32_t cost;
    return annal__chain_page(arg, 0, (uint32_t)(page - 1), out, &cost, err);
}

static void close_source(void *arg)
{
    annal__chain_unref(arg);
}

annal__state_source annal__chain_source(struct chain *chain)
{
    return (annal__state_source){.page_count = annal__container_pages(&chain->layers[0].header),
                                 .read = read_page,
                                 .close = close_source,
                                 .arg = chain};
}
