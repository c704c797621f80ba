/* SPDX-License-Identifier: Apache-2.0 */
/* Finish what crashes have left of conversions, and remove old tombstones (replace.h, rules 5 and
 * 6). */
#include "journal/replace_sweep.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/replace_tombstone.h"
#include "journal/scan.h"
#include "journal/slot.h"
#include "journal/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* ---- Names ---- */

struct names {
    struct name {
        char text[80];
        bool needed;
    } * list;
    size_t count;
    const char *prefix; /* prefix of the names of the files to list */
};

static int collect(void *arg, const char *text)
{
    struct names *names = arg;
    if (strncmp(text, names->prefix, strlen(names->prefix)) != 0 ||
        strlen(text) >= sizeof names->list->text)
        return 0;
    struct name *name = annal__array_add(&names->list, &names->count, sizeof *name);
    if (name == NULL)
        return 1; /* out of memory: the next sweep lists the rest */
    snprintf(name->text, sizeof name->text, "%s", text);
    return 0;
}

static void list_names(annal_store *store, const char *part, const char *prefix,
                       struct names *out_names)
{
    SCOPED_BUF path = {0};
    *out_names = (struct names){.prefix = prefix};
    if (annal__context_path(&store->context, &path, "events", part, NULL) == ANNAL_OK)
        (void)store->context.io->list(store->context.io->arg, path.ptr, collect, out_names);
}

static void remove_name(annal_store *store, const char *part, const char *text)
{
    SCOPED_BUF path = {0};
    char name[96];
    snprintf(name, sizeof name, "%s%s%s", part, part[0] == '\0' ? "" : "/", text);
    if (annal__context_path(&store->context, &path, "events", name, NULL) == ANNAL_OK)
        (void)store->context.io->unlink(store->context.io->arg, path.ptr);
}

static annal_status mark_needed(void *arg, const struct record *record, annal_error *err)
{
    (void)err;
    struct names *names = arg;
    char text[FILE_ID_TEXT + 1];
    annal__codec_file_id_text(record->file, text);
    for (size_t i = 0; i < names->count; i++)
        names->list[i].needed = names->list[i].needed || strcmp(names->list[i].text, text) == 0;
    return ANNAL_OK;
}

void annal__replace_remove_unfinished(annal_store *store)
{
    struct names unfinished;
    list_names(store, "", ".new-", &unfinished);
    for (size_t i = 0; i < unfinished.count; i++)
        remove_name(store, "", unfinished.list[i].text);
    annal__free(unfinished.list);
}

/* ---- Two journals of a session ---- */

annal_status annal__replace_read_header(annal_store *store, const char *path,
                                        const struct codec *codec, struct buf *out,
                                        struct frame_header *out_header, annal_error *err)
{
    const struct io *io = store->context.io;
    uint64_t h;
    annal__buf_clear(out);
    annal_status status = annal__buf_reserve(out, FRAME_ENVELOPE_BYTES);
    if (status < 0)
        return annal__fail(err, status, "read %s: out of memory", path);
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    ssize_t got = fd < 0 ? -1 : annal__io_read_full(io, fd, out->ptr, FRAME_ENVELOPE_BYTES, 0);
    if (got < 0)
        status = annal__fail_errno(err, "cannot read %s", path);
    if (fd >= 0)
        io->close(io->arg, fd);
    annal_slice bytes = {out->ptr, got > 0 ? (size_t)got : 0};
    if (annal__codec_first(codec, bytes, out_header, &h))
        out->len = codec->measure(bytes, 0, true);
    return status;
}

/* Read the header of a session's journal in this format; false if it has no valid header. */
static bool header_at(annal_store *store, annal_slice session, const struct codec *codec,
                      struct buf *path, struct buf *frame, struct frame_header *out_header)
{
    return annal__context_journal_path(&store->context, session, codec, path, NULL) == ANNAL_OK &&
           annal__replace_read_header(store, path->ptr, codec, frame, out_header, NULL) ==
               ANNAL_OK &&
           frame->len > 0;
}

static bool replaces(const struct frame_header *one, const struct frame_header *other)
{
    return one->is_replacement && memcmp(one->replaces, other->file, sizeof other->file) == 0;
}

/* Find the seq of the last event of a session's journal in this format; false if that fails. */
static bool last_seq_at(annal_store *store, annal_slice session, const struct codec *codec,
                        uint64_t *out_seq)
{
    SCOPED_BUF path = {0};
    struct journal_tail tail;
    const struct io *io = store->context.io;
    annal_status status = annal__context_journal_path(&store->context, session, codec, &path, NULL);
    int fd = status < 0 ? -1 : io->open(io->arg, path.ptr, O_RDONLY, 0);
    if (fd >= 0) {
        status = annal__scan_tail(io, fd, codec, &tail, NULL);
        io->close(io->arg, fd);
    }
    if (fd < 0 || status < 0 || tail.state != TAIL_WHOLE)
        return false;
    *out_seq = tail.seq;
    return true;
}

/*
 * Remove the second of two journals of a session, which an interrupted conversion leaves (rule 5).
 * Readers have always used the first, in the order of annal__codecs, whichever of the two is the
 * new journal. The second is kept if it has events that the first has not: then a user has copied
 * the old journal back.
 */
static void settle_pair(annal_store *store, annal_slice session)
{
    SCOPED_BUF path = {0};
    struct buf frames[CODEC_COUNT] = {0};
    struct frame_header headers[CODEC_COUNT];
    uint64_t last[CODEC_COUNT] = {0};
    bool all = true;
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        frames[i].limit = FRAME_ENVELOPE_BYTES;
        all = all && last_seq_at(store, session, annal__codecs[i], &last[i]) &&
              last[i] <= last[0] &&
              header_at(store, session, annal__codecs[i], &path, &frames[i], &headers[i]) &&
              annal__codec_check_owner(&headers[i], session, NULL) == ANNAL_OK;
    }
    if (all && (replaces(&headers[0], &headers[1]) || replaces(&headers[1], &headers[0]))) {
        /* path is now the path of the session's second journal */
        (void)store->context.io->unlink(store->context.io->arg, path.ptr);
        atomic_store(&store->events.dirty, true);
        (void)annal__events_dir_sync(&store->events);
    }
    for (size_t i = 0; i < CODEC_COUNT; i++)
        annal__buf_done(&frames[i]);
}

/* Remove the second of two journals of the session that a tombstone names. */
static void settle_double(annal_store *store, const char *tombstone)
{
    SCOPED_BUF path = {0}, frame = {.limit = FRAME_ENVELOPE_BYTES};
    struct frame_header header = {0};
    if (annal__replace_tombstone_path(&store->context, tombstone, &path, NULL) < 0)
        return;
    for (size_t i = 0; i < CODEC_COUNT && frame.len == 0; i++) {
        if (annal__replace_read_header(store, path.ptr, annal__codecs[i], &frame, &header, NULL) <
            0)
            break;
    }
    if (frame.len > 0)
        settle_pair(store, header.session);
}

/* ---- The sweep ---- */

void annal__replace_sweep(annal_store *store)
{
    struct names tombstones, unfinished = {0};
    list_names(store, TOMBSTONES, "", &tombstones);
    bool locked = tombstones.count > 0 &&
                  annal__filelock_try(&store->context, &store->structure_lock, NULL) == ANNAL_OK;
    if (!locked)
        goto done;
    list_names(store, "", ".new-", &unfinished);
    for (size_t i = 0; i < unfinished.count; i++)
        remove_name(store, "", unfinished.list[i].text);
    for (size_t i = 0; i < tombstones.count; i++)
        settle_double(store, tombstones.list[i].text);
    /* If a log cannot be read, every tombstone may still be needed. */
    if (annal__slots_each_record(store, SLOTS_ALL, mark_needed, &tombstones, NULL) < 0)
        goto done;
    bool some = false;
    for (size_t i = 0; i < tombstones.count; i++) {
        if (tombstones.list[i].needed)
            some = true;
        else
            remove_name(store, TOMBSTONES, tombstones.list[i].text);
    }
    atomic_store(&store->tombstones, some);

done:
    if (locked)
        annal__filelock_drop(&store->context, &store->structure_lock);
    annal__free(tombstones.list);
    annal__free(unfinished.list);
}
