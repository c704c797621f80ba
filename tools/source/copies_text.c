/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/source/copies_text.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "tools/cli/must.h"
#include "tools/cli/places.h"
#include "tools/cli/temporary.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM ((uint64_t)64 << 10) /* bytes by which a text may exceed twice its pieces */

static annal_status begin_file(FILE **inout, annal_error *err)
{
    if (*inout == NULL)
        *inout = temporary_stream(NULL);
    else
        rewind(*inout);
    return *inout != NULL && ftruncate(fileno(*inout), 0) == 0
               ? ANNAL_OK
               : annal__fail_errno(err, "create a temporary file");
}

annal_status copies_text_begin(struct copies_text *text, annal_error *err)
{
    text->bytes = text->hash = 0;
    return begin_file(&text->lines, err);
}

annal_status copies_text_add(struct copies_text *text, annal_slice line, annal_error *err)
{
    text->hash = annal__hash(line.ptr, line.len, text->hash);
    text->bytes += line.len + 1;
    return fwrite(line.ptr, 1, line.len, text->lines) == line.len && putc('\n', text->lines) != EOF
               ? ANNAL_OK
               : annal__fail_errno(err, "write a temporary file");
}

annal_status copies_text_end(struct copies_text *text, annal_error *err)
{
    return fflush(text->lines) == 0 ? ANNAL_OK : annal__fail_errno(err, "write a temporary file");
}

void copies_text_done(struct copies_text *text)
{
    if (text->lines != NULL)
        fclose(text->lines);
    if (text->grown != NULL)
        fclose(text->grown);
    *text = (struct copies_text){0};
}

/* ---- The pieces of a generation, by their keys ---- */

struct pieces {
    struct piece {
        uint64_t line; /* hash of the line */
        size_t len;
        bool is_seen;
    } * all;
    size_t count;
    struct places places; /* by the hashes of the keys */
};

static size_t key_len(const char *line, size_t len)
{
    const char *tab = memchr(line, '\t', len);
    return tab != NULL ? (size_t)(tab - line) : 0;
}

/* Return the piece with the key of a line, or NULL. */
static struct piece *find(const struct pieces *pieces, const char *line, size_t len)
{
    size_t at = 0;
    size_t index = places_next(&pieces->places, annal__hash(line, key_len(line, len), 1), &at);
    return index != SIZE_MAX ? &pieces->all[index] : NULL;
}

static void add(struct pieces *pieces, const char *line, size_t len)
{
    struct piece *piece = find(pieces, line, len);
    if (piece == NULL) {
        piece = must_array_add(&pieces->all, &pieces->count, sizeof *piece);
        must_true(places_add(&pieces->places, annal__hash(line, key_len(line, len), 1),
                             pieces->count - 1));
    }
    *piece = (struct piece){annal__hash(line, len, 0), len, false};
}

/* ---- Comparing ---- */

/* Copy the text of the generation to text->grown, and note its pieces. */
static annal_status read_before(struct copies_text *text, FILE *before, struct pieces *pieces,
                                annal_error *err)
{
    char *line = NULL;
    size_t room = 0;
    annal_status status = ANNAL_OK;
    for (ssize_t len; status == ANNAL_OK && (len = getline(&line, &room, before)) > 0;) {
        text->grown_bytes += (uint64_t)len;
        add(pieces, line, (size_t)len);
        if (fwrite(line, 1, (size_t)len, text->grown) != (size_t)len)
            status = annal__fail_errno(err, "write a temporary file");
    }
    free(line);
    return status == ANNAL_OK && ferror(before) ? annal__fail_errno(err, "read a copy") : status;
}

/* Add the new and changed lines to text->grown. */
static annal_status add_changes(struct copies_text *text, struct pieces *pieces, bool *out_grown,
                                annal_error *err)
{
    char *line = NULL;
    size_t room = 0, seen = 0;
    annal_status status = ANNAL_OK;
    bool grown = true;
    rewind(text->lines);
    for (ssize_t got;
         grown && status == ANNAL_OK && (got = getline(&line, &room, text->lines)) > 0;) {
        size_t len = (size_t)got;
        struct piece *piece = find(pieces, line, len);
        bool is_old = piece != NULL, same = is_old && piece->line == annal__hash(line, len, 0);
        seen += is_old && !piece->is_seen;
        grown = same || (key_len(line, len) > 0 && (!is_old || len >= piece->len));
        if (is_old)
            piece->is_seen = true;
        if (same || !grown)
            continue;
        text->grown_bytes += len;
        if (fwrite(line, 1, len, text->grown) != len)
            status = annal__fail_errno(err, "write a temporary file");
    }
    free(line);
    if (status == ANNAL_OK && fflush(text->grown) != 0)
        status = annal__fail_errno(err, "write a temporary file");
    *out_grown = grown && seen == pieces->count && text->grown_bytes <= 2 * text->bytes + ROOM;
    return status;
}

annal_status copies_text_compare(struct copies_text *text, int fd, bool *out_grown,
                                 annal_error *err)
{
    struct pieces pieces = {0};
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *before = own >= 0 ? fdopen(own, "r") : NULL;
    *out_grown = false;
    text->grown_bytes = 0;
    annal_status status = begin_file(&text->grown, err);
    if (status == ANNAL_OK && before == NULL)
        status = annal__fail_errno(err, "read a copy");
    if (status == ANNAL_OK) {
        rewind(before);
        status = read_before(text, before, &pieces, err);
    }
    if (status == ANNAL_OK && pieces.count > 0)
        status = add_changes(text, &pieces, out_grown, err);
    if (before != NULL)
        fclose(before);
    else if (own >= 0)
        close(own);
    annal__free(pieces.all);
    places_done(&pieces.places);
    return status;
}
