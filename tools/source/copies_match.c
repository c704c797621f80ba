/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/source/copies_match.h"

#include "journal/base/alloc.h"
#include "journal/base/hash.h"
#include "tools/cli/must.h"
#include "tools/cli/places.h"
#include "tools/source/copies_file.h"

#include <string.h>

#define LINE_BYTES ((size_t)64 << 10) /* a longer line is compared in parts of this size */
/* a piece that the previous generation contains, but that is shorter than this, costs less as new
 * bytes than as a record COPIES_SAME */
#define SAME_LEAST 4096

/* Hash table of the lines of `before`, the content of the previous generation. */
struct table {
    annal_slice before;
    struct places places; /* offsets of the lines in `before`; of equal lines, of the first */
};

static size_t line_of(const char *at, size_t len)
{
    size_t most = len < LINE_BYTES ? len : LINE_BYTES;
    const char *end = memchr(at, '\n', most);
    return end != NULL ? (size_t)(end - at) + 1 : most;
}

static void build(struct table *table)
{
    for (size_t at = 0; at < table->before.len;) {
        size_t len = line_of(table->before.ptr + at, table->before.len - at);
        uint64_t hash = annal__hash(table->before.ptr + at, len, 0);
        size_t next = 0;
        if (places_next(&table->places, hash, &next) == SIZE_MAX)
            must_true(places_add(&table->places, hash, at));
        at += len;
    }
}

static bool is_at(const struct table *table, uint64_t from, const char *line, size_t len)
{
    return from + len <= table->before.len && memcmp(table->before.ptr + from, line, len) == 0;
}

static bool find(const struct table *table, const char *line, size_t len, uint64_t *out_from)
{
    size_t next = 0, from = places_next(&table->places, annal__hash(line, len, 0), &next);
    if (from != SIZE_MAX)
        *out_from = from;
    return from != SIZE_MAX && is_at(table, from, line, len);
}

/* Add a line of the log to the pieces: extend the last piece, or begin a new one. */
static void add(const struct table *table, struct copies_pieces *pieces, const char *line,
                size_t len)
{
    struct copies_piece *last = pieces->count > 0 ? &pieces->all[pieces->count - 1] : NULL;
    uint64_t from = 0;
    bool continues =
        last != NULL && last->is_same && is_at(table, last->from + last->bytes, line, len);
    bool is_same = continues || find(table, line, len, &from);
    if (!continues && (last == NULL || is_same || last->is_same)) {
        /* the last piece has ended; if it is too short for a record COPIES_SAME, count it as new
         * bytes */
        if (last != NULL && last->is_same && last->bytes < SAME_LEAST) {
            last->is_same = false;
            if (pieces->count > 1 && !last[-1].is_same) {
                last[-1].bytes += last->bytes;
                pieces->count--;
            }
            last = &pieces->all[pieces->count - 1];
        }
        if (is_same || last == NULL || last->is_same) {
            last = must_array_add(&pieces->all, &pieces->count, sizeof *last);
            *last = (struct copies_piece){0, from, is_same};
        }
    }
    last->bytes += len;
}

static annal_status compare(const struct table *table, int log, uint64_t bytes,
                            struct copies_pieces *pieces, annal_error *err)
{
    char *block = must_zalloc(COPIES_PIECE);
    annal_status status = ANNAL_OK;
    for (uint64_t at = 0; at < bytes && status == ANNAL_OK;) {
        size_t len = bytes - at < COPIES_PIECE ? (size_t)(bytes - at) : COPIES_PIECE, used = 0;
        status = copies_file_get(log, block, len, at, err);
        /* pass complete lines; a line cut at the end of the block is read again with the next
         * block */
        while (status == ANNAL_OK && used < len &&
               (at + len == bytes || len - used > LINE_BYTES || used == 0)) {
            size_t line = line_of(block + used, len - used);
            add(table, pieces, block + used, line);
            used += line;
        }
        at += used;
    }
    annal__free(block);
    return status;
}

annal_status copies_match(annal_slice before, int log, uint64_t bytes, struct copies_pieces *out,
                          annal_error *err)
{
    struct table table = {.before = before};
    build(&table);
    annal_status status = compare(&table, log, bytes, out, err);
    if (out->count > 0 && out->all[out->count - 1].is_same &&
        out->all[out->count - 1].bytes < SAME_LEAST)
        out->all[out->count - 1].is_same = false;
    places_done(&table.places);
    return status;
}

void copies_match_done(struct copies_pieces *pieces)
{
    annal__free(pieces->all);
    *pieces = (struct copies_pieces){0};
}
