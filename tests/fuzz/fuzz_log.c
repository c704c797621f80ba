/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a commit log: find its groups, read them, and recover them into a store.
 *
 * The input is cut into pieces of 512 bytes, which are the beginnings of the blocks of a small log.
 * Mutations hardly ever hit a hash, so the blocks that a mask names get a correct hash; their
 * tables of contents stay hostile. So does block 0 if the first byte says so.
 *
 * (1) Each group that is found lies inside its region, in order of number.
 * (2) Records that are read from a table of contents lie inside it, and name sessions.
 * (3) Recovery ends, and the store is open afterwards; the events in its journals can be read.
 */
#include "journal/base/alloc.h"
#include "journal/base/hash.h"
#include "journal/log.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/image_io.h"
#include "tests/support/page_io.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <unistd.h>

#define PIECE  512u
#define BLOCKS 6u /* of a region */

static struct {
    char path[64]; /* of a store */
    char *log;     /* an empty log */
    size_t len;
} bed;

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_bed(void)
{
    (void)nftw(bed.path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(bed.log);
}

static void read_log(const char *path)
{
    FILE *file = fopen(path, "rb");
    MUST(file != NULL && fseek(file, 0, SEEK_END) == 0);
    bed.len = (size_t)ftell(file);
    bed.log = malloc(bed.len);
    rewind(file);
    MUST(bed.log != NULL && fread(bed.log, 1, bed.len, file) == bed.len);
    fclose(file);
}

static void make_bed(void)
{
    char path[128];
    struct log log;
    const struct io io = page_io();
    const char *base = getenv("TMPDIR");
    if (base == NULL)
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(bed.path, sizeof bed.path, "%.40s/annal-fuzz-XXXXXX", base);
    MUST(mkdtemp(bed.path) != NULL);
    snprintf(path, sizeof path, "%s/00.log", bed.path);
    MUST(annal__log_create(&io, path, BLOCKS * LOG_BLOCK_BYTES, 1, &log, NULL) == ANNAL_OK);
    annal__log_close(&log);
    read_log(path);
    unlink(path);
    atexit(remove_bed);
}

static void put(char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (char)(uint8_t)(value >> (8 * i));
}

static uint64_t take(const char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)(uint8_t)at[i] << (8 * i);
    return value;
}

/* Make the block the beginning of a group that verifies; room is what is left of its region. */
static void mend_group(char *block, size_t room, uint64_t seed)
{
    uint64_t toc = take(block + 40, 8), payload = take(block + 48, 8);
    toc = toc > room - 64 ? toc % 1024 : toc;
    payload = payload > room - 64 - toc ? payload % 1024 : payload;
    memcpy(block, "ANNALGRP", 8);
    put(block + 8, 1, 4);
    put(block + 40, toc, 8);
    put(block + 48, payload, 8);
    put(block + 56, 0, 8);
    put(block + 56, annal__hash(block, 64 + toc + payload, seed), 8);
}

static void build(char *image, annal_slice input, uint16_t mask, bool first_too)
{
    uint64_t seed = take(bed.log + 24, 8);
    memcpy(image, bed.log, bed.len);
    if (first_too && input.len >= PIECE) {
        memcpy(image + 12, input.ptr, 68);
        put(image + 80, annal__hash(image, 80, 0), 8);
        seed = take(image + 24, 8);
        input.ptr += PIECE;
        input.len -= PIECE;
    }
    /* Behind block 0 the blocks of both regions lie one after the other. */
    for (unsigned i = 0; i < 2 * BLOCKS && input.len > 0; i++) {
        size_t piece = input.len < PIECE ? input.len : PIECE;
        memcpy(image + (size_t)(i + 1) * LOG_BLOCK_BYTES, input.ptr, piece);
        input.ptr += piece;
        input.len -= piece;
    }
    for (unsigned i = 2 * BLOCKS; i-- > 0;) {
        if (mask >> i & 1)
            mend_group(image + (size_t)(i + 1) * LOG_BLOCK_BYTES,
                       (size_t)(BLOCKS - i % BLOCKS) * LOG_BLOCK_BYTES, seed);
    }
}

/* ---- What is found ---- */

static void look_at_group(struct log *log, const struct log_group *group)
{
    struct buf bytes = {0};
    struct record record;
    const struct region *region = &log->regions[group->region];
    MUST(group->offset >= region->offset);
    MUST(group->offset + 64 + group->toc_bytes + group->payload_bytes <=
         region->offset + region->bytes);
    MUST(annal__log_read_group(log, group, &bytes, NULL) == ANNAL_OK);
    MUST(bytes.len == group->toc_bytes + group->payload_bytes);
    annal_slice toc = {bytes.ptr, (size_t)group->toc_bytes};
    while (annal__log_take_record(&toc, &record)) {
        MUST(toc.ptr <= bytes.ptr + group->toc_bytes && record.session.ptr >= bytes.ptr);
        MUST(annal_session_id_check(record.session, NULL) == ANNAL_OK);
    }
    annal__buf_done(&bytes);
}

static annal_status count_name(void *arg, annal_slice session, annal_error *err)
{
    (void)err;
    MUST(annal_session_id_check(session, NULL) == ANNAL_OK);
    ++*(size_t *)arg;
    return ANNAL_OK;
}

static void look(const char *bytes, size_t len)
{
    struct image_io image;
    struct log log;
    struct log_group *groups = NULL;
    size_t count = 0, names = 0;
    uint64_t lost;
    image_io_init(&image, (annal_slice){bytes, len});
    if (annal__log_open(&image.io, "log", false, &log, NULL) < 0)
        return;
    if (annal__log_find_groups(&log, &groups, &count, NULL) == ANNAL_OK) {
        for (size_t i = 0; i < count; i++) {
            MUST(i == 0 || groups[i].group >= groups[i - 1].group);
            look_at_group(&log, &groups[i]);
        }
        MUST(!annal__log_lost(&log, groups, count, &lost) || count > 0);
        MUST(annal__log_lost_names(&log, count_name, &names, NULL) == ANNAL_OK);
    }
    annal__free(groups);
    annal__log_close(&log);
}

/* ---- Recovery ---- */

static int read_one(void *arg, annal_slice session, uint64_t journal_bytes)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    uint64_t steps = 0;
    annal_status status = annal_cursor_open(arg, session, 1, &cursor, NULL);
    while (status >= 0 && status != ANNAL_END) {
        status = annal_cursor_next(cursor, &event, NULL);
        MUST(++steps <= 2 * journal_bytes + 2);
    }
    annal_cursor_close(cursor);
    return 0;
}

static void recover(const char *bytes, size_t len)
{
    static const uint8_t boot[16] = "a boot";
    const struct io io = page_io();
    const struct seams seams = page_seams(&io, boot);
    const annal_store_options options = {.create = true, .no_keeper = true, .wait_ms = 1};
    annal_store *store = NULL;
    char path[128];
    (void)nftw(bed.path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    MUST(annal__store_open(bed.path, &options, &seams, &store, NULL) == ANNAL_OK);
    MUST(annal_store_close(store, NULL) == ANNAL_OK);
    snprintf(path, sizeof path, "%s/commit/00.log", bed.path);
    FILE *file = fopen(path, "wb");
    MUST(file != NULL && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
    for (int again = 0; again < 2; again++) {
        MUST(annal__store_open(bed.path, &options, &seams, &store, NULL) == ANNAL_OK);
        MUST(annal_session_each(store, read_one, store, NULL) >= 0);
        (void)annal_store_close(store, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    annal_slice input = {(const char *)bytes, len};
    if (bed.log == NULL)
        make_bed();
    uint8_t how = take_byte(&input);
    uint16_t mask = take_byte(&input);
    mask = (uint16_t)(mask << 8 | take_byte(&input));
    char *image = malloc(bed.len);
    MUST(image != NULL);
    build(image, input, mask, (how & 1) != 0);
    look(image, bed.len);
    if (how % 16 >= 12)
        recover(image, bed.len);
    free(image);
    return 0;
}
