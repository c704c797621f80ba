/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/log.h"

#include "journal/base/alloc.h"
#include "journal/base/hash.h"
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AHEAD_BYTES = 32 << 10, REGION_LARGE = 5 << 20 };

static struct log log_;
static const char *path;

static void set_up(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "00.log");
    ck_ok(annal__log_create(&annal__system_io, path, 1 << 16, 1, &log_, err));
    annal__log_switch(&log_);
}

static void tear_down(void)
{
    annal__log_close(&log_);
    tmpdir_teardown();
}

static const uint8_t file_id[FRAME_FILE_ID_BYTES] = {1, 2,  3,  4,  5,  6,  7,  8,
                                                     9, 10, 11, 12, 13, 14, 15, 16};

static void write_group_of(uint64_t released, annal_slice payload)
{
    struct buf toc = {0}, bytes = {0};
    struct record record = {.type = RECORD_BYTES,
                            .format = ANNAL_FORMAT_JSON,
                            .session = ANNAL_SLICE("sess_1"),
                            .offset = 100,
                            .length = payload.len,
                            .first_seq = 4,
                            .last_seq = 5,
                            .h_before = 6,
                            .h_after = 7};
    memcpy(record.file, file_id, sizeof record.file);
    ck_assert_int_eq(annal__log_put_record(&toc, &record), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append_slice(&bytes, payload), ANNAL_OK);
    ck_ok(annal__log_write_group(&log_, 1, &toc, &bytes, released, err));
    annal__buf_done(&toc);
    annal__buf_done(&bytes);
}

/* Write a group whose payload is length bytes of a pattern, from memory. */
static void write_pattern(struct log *log, size_t length)
{
    struct buf toc = {0}, bytes = {.limit = 1 << 20};
    struct record record = {.type = RECORD_BYTES,
                            .format = ANNAL_FORMAT_JSON,
                            .session = ANNAL_SLICE("sess_1"),
                            .length = length,
                            .first_seq = 1,
                            .last_seq = 1};
    ck_assert_int_eq(annal__log_put_record(&toc, &record), ANNAL_OK);
    ck_assert_int_eq(annal__log_reserve(&bytes, length / 2), ANNAL_OK);
    while (bytes.len < length && annal__log_reserve(&bytes, 1) == ANNAL_OK) { /* it may move */
        bytes.ptr[bytes.len] = (char)(bytes.len % 251);
        bytes.len++;
    }
    ck_assert_uint_eq(bytes.len, length);
    ck_assert_int_eq(annal__log_align_toc(log, &toc, &bytes), ANNAL_OK);
    ck_ok(annal__log_write_group(log, 1, &toc, &bytes, 0, err));
    annal__buf_done(&toc);
    annal__buf_done(&bytes);
}

static void ck_pattern(struct log *log, const struct log_group *group, size_t length)
{
    struct buf bytes = {0};
    struct record record;
    ck_ok(annal__log_read_group(log, group, &bytes, err));
    annal_slice toc = {bytes.ptr, (size_t)group->toc_bytes};
    ck_assert(annal__log_take_record(&toc, &record));
    ck_assert_uint_eq(record.length, length);
    ck_assert(!annal__log_take_record(&toc, &record));
    ck_assert_uint_eq(group->payload_bytes, length);
    size_t same = 0;
    while (same < length && (unsigned char)bytes.ptr[group->toc_bytes + same] == same % 251)
        same++;
    ck_assert_uint_eq(same, length);
    annal__buf_done(&bytes);
}

/* Open the log again, as recovery does, and find its groups. */
static struct log_group *find(size_t *out_count)
{
    struct log again;
    struct log_group *groups = NULL;
    ck_ok(annal__log_open(&annal__system_io, path, false, &again, err));
    ck_ok(annal__log_find_groups(&again, &groups, out_count, err));
    annal__log_close(&again);
    return groups;
}

static void flip(uint64_t at)
{
    size_t len;
    char *bytes = file_read(path, &len);
    ck_assert_uint_lt(at, len);
    bytes[at] ^= 1;
    file_write(path, bytes, len);
    free(bytes);
}

/* Reports each write of the log; the filesystem may not be able to reserve space. */
struct watched {
    struct io io;
    size_t writes;
    size_t bytes;
    int reserve_fails;
};

static ssize_t watch_write(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    struct watched *watched = arg;
    watched->writes++;
    watched->bytes += len;
    return annal__system_io.pwrite(NULL, fd, bytes, len, offset);
}

static int watch_reserve(void *arg, int fd, uint64_t len)
{
    const struct watched *watched = arg;
    errno = watched->reserve_fails;
    return errno != 0 ? -1 : annal__system_io.reserve(NULL, fd, len);
}

static void watch(struct watched *watched, int reserve_fails)
{
    *watched = (struct watched){.io = annal__system_io, .reserve_fails = reserve_fails};
    watched->io.arg = watched;
    watched->io.pwrite = watch_write;
    watched->io.reserve = watch_reserve;
}

static size_t written_for(struct log *log, struct watched *watched, size_t length)
{
    watched->bytes = 0;
    write_pattern(log, length);
    return watched->bytes;
}

START_TEST(small_groups_of_a_large_log_write_zeros_ahead_in_unwritten_space)
{
    struct watched watched;
    struct log log;
    struct log_group *groups = NULL;
    size_t count = 0;
    watch(&watched, 0);
    ck_ok(annal__log_create(&watched.io, tmpdir_path(&dir, "01.log"), REGION_LARGE, 1, &log, err));
    ck_assert_uint_eq(watched.writes, 2); /* the first block and its copy */
    annal__log_switch(&log);
    for (size_t i = 0; i < 2 * AHEAD_BYTES / 4096; i++)
        ck_assert_uint_eq(written_for(&log, &watched, 1), i % 8 == 0 ? AHEAD_BYTES : 4096);
    ck_assert_uint_eq(written_for(&log, &watched, 20000), 20480);
    while (log.end + (1 << 20) < REGION_LARGE)
        written_for(&log, &watched, 900000);
    while (log.end < log.regions[0].written || log.end + AHEAD_BYTES <= REGION_LARGE)
        written_for(&log, &watched, 1);
    uint64_t room = REGION_LARGE - log.end;
    ck_assert_uint_lt(room, AHEAD_BYTES);
    ck_assert_uint_eq(written_for(&log, &watched, 1), room);

    annal__log_switch(&log);
    log.durable_released = 1;
    ck_assert_uint_eq(written_for(&log, &watched, 1), AHEAD_BYTES);
    annal__log_switch(&log);
    ck_assert_uint_eq(written_for(&log, &watched, 1), 4096); /* the region was written before */
    ck_ok(annal__log_find_groups(&log, &groups, &count, err));
    ck_assert_uint_eq(count, log.group - 1); /* the last one overwrote the first */
    annal__free(groups);
    annal__log_close(&log);
}
END_TEST

START_TEST(a_filesystem_that_cannot_reserve_space_gets_a_log_of_zeros)
{
    struct watched watched;
    struct log log;
    struct stat file;
    annal_error failure;
    static const int cannot[] = {EOPNOTSUPP, ENOSYS, EPERM, EINVAL};
    for (size_t i = 0; i < sizeof cannot / sizeof *cannot; i++) {
        watch(&watched, cannot[i]);
        const char *log_path = tmpdir_path(&dir, "01.log");
        ck_ok(annal__log_create(&watched.io, log_path, REGION_LARGE, 1, &log, err));
        ck_assert_uint_eq(watched.bytes, 2 * REGION_LARGE + 4 * 4096);
        annal__log_switch(&log);
        ck_assert_uint_eq(written_for(&log, &watched, 1), 4096);
        annal__log_close(&log);
        ck_assert_int_eq(unlink(log_path), 0);
    }

    watch(&watched, ENOSPC);
    ck_assert_int_eq(annal__log_create(&watched.io, tmpdir_path(&dir, "02.log"), REGION_LARGE, 1,
                                       &log, &failure),
                     ANNAL_ERR_FULL);
    ck_assert_int_eq(failure.os_errno, ENOSPC);
    ck_assert_int_eq(stat(tmpdir_path(&dir, "02.log"), &file), -1);
}
END_TEST

START_TEST(large_payloads_are_written_without_a_copy_and_found_again)
{
    static const size_t lengths[] = {1, (128 << 10) - 1, 128 << 10, (128 << 10) + 1, 200000};
    enum { COUNT = sizeof lengths / sizeof *lengths };
    struct log log;
    struct log_group *groups = NULL;
    size_t count = 0;
    ck_ok(annal__log_create(&annal__system_io, tmpdir_path(&dir, "01.log"), 1 << 20, 1, &log, err));
    annal__log_switch(&log);
    for (size_t i = 0; i < COUNT; i++) {
        annal__free(log.scratch);
        log.scratch = NULL;
        log.scratch_bytes = 0;
        write_pattern(&log, lengths[i]);
        ck_assert_int_eq(log.scratch_bytes <= AHEAD_BYTES, i != 1); /* that length is copied */
    }
    ck_ok(annal__log_find_groups(&log, &groups, &count, err));
    ck_assert_uint_eq(count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        ck_pattern(&log, &groups[i], lengths[i]);

    /* Any byte counts: of the piece that is written last, and of that before. */
    int fd = open(tmpdir_path(&dir, "01.log"), O_RDWR);
    uint64_t places[] = {groups[3].offset + 20, groups[4].offset + log.block + 199999};
    for (size_t i = 0; i < 2; i++) {
        char byte;
        ck_assert_int_eq(pread(fd, &byte, 1, (off_t)places[i]), 1);
        byte ^= 1;
        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)places[i]), 1);
    }
    close(fd);
    annal__free(groups);
    ck_ok(annal__log_find_groups(&log, &groups, &count, err));
    ck_assert_uint_eq(count, COUNT - 2);
    annal__free(groups);
    annal__log_close(&log);
}
END_TEST

START_TEST(groups_are_found_in_order_with_all_their_records)
{
    write_group_of(0, ANNAL_SLICE("one"));
    write_group_of(0, ANNAL_SLICE("two"));
    annal__log_switch(&log_);
    write_group_of(1, ANNAL_SLICE("three"));
    size_t count = 0;
    struct log_group *groups = find(&count);
    ck_assert_uint_eq(count, 3);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(groups[i].group, i + 1);
        ck_assert_uint_eq(groups[i].epoch, i < 2 ? 1 : 2);
        ck_assert_uint_eq(groups[i].records, 1);
        ck_assert_uint_eq(groups[i].released, i < 2 ? 0 : 1);
    }
    struct buf bytes = {0};
    struct record record;
    ck_ok(annal__log_read_group(&log_, &groups[1], &bytes, err));
    annal_slice toc = {bytes.ptr, (size_t)groups[1].toc_bytes};
    ck_assert(annal__log_take_record(&toc, &record));
    ck_assert_uint_eq(toc.len, 0);
    ck_assert(!annal__log_take_record(&toc, &record));
    ck_assert_int_eq(record.type, RECORD_BYTES);
    ck_assert_uint_eq(record.session.len, 6);
    ck_assert_int_eq(memcmp(record.session.ptr, "sess_1", 6), 0);
    ck_assert_int_eq(record.format, ANNAL_FORMAT_JSON);
    ck_assert_int_eq(memcmp(record.file, file_id, sizeof file_id), 0);
    ck_assert_uint_eq(record.offset, 100);
    ck_assert_uint_eq(record.length, 3);
    ck_assert_uint_eq(record.first_seq, 4);
    ck_assert_uint_eq(record.last_seq, 5);
    ck_assert_uint_eq(record.h_before, 6);
    ck_assert_uint_eq(record.h_after, 7);
    ck_assert_int_eq(memcmp(bytes.ptr + groups[1].toc_bytes, "two", 3), 0);
    annal__buf_done(&bytes);
    annal__free(groups);
}
END_TEST

START_TEST(a_damaged_group_is_skipped_and_the_groups_after_it_are_found)
{
    for (int i = 0; i < 3; i++)
        write_group_of(0, ANNAL_SLICE("something"));
    /* In turn: a byte of the header, of the toc, of the payload of the second group. */
    static const unsigned places[] = {0, 20, 33, 57, 70, 64 + 80 + 2};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint64_t at = log_.block * 2 + places[i];
        size_t count = 0;
        flip(at);
        struct log_group *groups = find(&count);
        ck_assert_uint_eq(count, 2);
        ck_assert_uint_eq(groups[0].group, 1);
        ck_assert_uint_eq(groups[1].group, 3);
        annal__free(groups);
        flip(at);
    }
    size_t count = 0;
    annal__free(find(&count));
    ck_assert_uint_eq(count, 3);
}
END_TEST

/* A client appends, as data, a group of another log, aligned to a block. */
START_TEST(a_group_of_another_log_inside_a_payload_is_ignored)
{
    struct log other;
    struct buf none = {0}, payload = {0};
    const char *other_path = tmpdir_path(&dir, "01.log");
    ck_ok(annal__log_create(&annal__system_io, other_path, 1 << 16, 1, &other, err));
    annal__log_switch(&other);
    other.group = 8;
    ck_ok(annal__log_write_group(&other, 0, &none, &none, 1000, err));
    size_t len, block = other.block;
    annal__log_close(&other);
    char *bytes = file_read(other_path, &len);
    size_t before = block - 64 - 80; /* header and toc of the group around it */
    ck_assert_int_eq(annal__buf_append_zeros(&payload, before), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append(&payload, bytes + block, block), ANNAL_OK);
    write_group_of(0, annal__buf_slice(&payload));
    free(bytes);

    size_t count = 0;
    struct log_group *groups = find(&count);
    ck_assert_uint_eq(count, 1);
    annal__free(groups);
    flip(log_.block + 20); /* and with the group around it damaged, every block is looked at */
    groups = find(&count);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(annal__log_released(groups, count), 0);
    annal__free(groups);
    annal__buf_done(&payload);
}
END_TEST

START_TEST(the_released_epoch_is_the_largest_of_all_groups)
{
    static const struct log_group groups[] = {{.released = 2}, {.released = 7}, {.released = 5}};
    ck_assert_uint_eq(annal__log_released(groups, 0), 0);
    ck_assert_uint_eq(annal__log_released(groups, 1), 2);
    ck_assert_uint_eq(annal__log_released(groups, 3), 7);
}
END_TEST

START_TEST(a_group_fits_while_a_block_is_left_for_an_empty_one)
{
    uint64_t room = log_.regions[0].bytes;
    ck_assert(annal__log_fits(&log_, room - log_.block));
    ck_assert(!annal__log_fits(&log_, room));
    write_group_of(0, ANNAL_SLICE("x"));
    ck_assert_uint_eq(annal__log_group_bytes(&log_, 80, 1), log_.block);
    ck_assert(annal__log_fits(&log_, room - 2 * log_.block));
    ck_assert(!annal__log_fits(&log_, room - log_.block));
}
END_TEST

/* The same bytes as in log.h. */
START_TEST(the_first_block_and_its_copy_have_the_documented_bytes)
{
    size_t len;
    char *bytes = file_read(path, &len);
    ck_assert_int_eq(memcmp(bytes, bytes + len - LOG_BLOCK_BYTES, LOG_BLOCK_BYTES), 0);
    ck_assert_int_eq(memcmp(bytes, "ANNALLOG", 8), 0);
    ck_assert_uint_eq(annal__log_take(bytes + 8, 4), 1);
    ck_assert_uint_eq(annal__log_take(bytes + 12, 4), log_.block);
    ck_assert_int_eq(memcmp(bytes + 16, log_.slot_id, LOG_SLOT_ID_BYTES), 0);
    ck_assert_uint_eq(annal__log_take(bytes + 32, 8), log_.block);
    ck_assert_uint_eq(annal__log_take(bytes + 40, 8), 1 << 16);
    ck_assert_uint_eq(annal__log_take(bytes + 48, 8), log_.block + (1 << 16));
    ck_assert_uint_eq(annal__log_take(bytes + 56, 8), 1 << 16);
    ck_assert_uint_eq(annal__log_take(bytes + 64, 4), (uint64_t)getpid());
    ck_assert_uint_eq(annal__log_take(bytes + 68, 4), 0);
    ck_assert_uint_eq(annal__log_take(bytes + 72, 8), 1);
    ck_assert_uint_eq(annal__log_take(bytes + 80, 8), annal__hash(bytes, 80, 0));
    free(bytes);
}
END_TEST

START_TEST(one_sound_copy_of_the_first_block_repairs_the_other)
{
    struct log again;
    size_t len;
    write_group_of(0, ANNAL_SLICE("one"));
    annal__log_close(&log_);
    char *whole = file_read(path, &len);
    for (uint64_t at = 0; at < 88; at++) {
        flip(at);
        ck_ok(annal__log_open(&annal__system_io, path, true, &again, err));
        ck_assert(again.first_damaged);
        ck_ok(annal__log_mend(&again, err));
        annal__log_close(&again);
        size_t count = 0, mended_len;
        annal__free(find(&count));
        ck_assert_uint_eq(count, 1);
        char *mended = file_read(path, &mended_len);
        ck_assert_uint_eq(mended_len, len);
        ck_assert_int_eq(memcmp(mended, whole, len), 0);
        free(mended);
        flip(len - LOG_BLOCK_BYTES + at);
        ck_ok(annal__log_open(&annal__system_io, path, true, &again, err));
        ck_assert(!again.first_damaged);
        annal__log_close(&again);
        flip(at);
        ck_status(ANNAL_ERR_CORRUPT, annal__log_open(&annal__system_io, path, true, &again, err));
        flip(at);
        flip(len - LOG_BLOCK_BYTES + at);
    }
    free(whole);
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_status(ANNAL_ERR_CORRUPT, annal__log_open(&annal__system_io, path, true, &again, err));
    ck_assert_int_eq(unlink(path), 0);
    ck_status(ANNAL_ERR_NOTFOUND, annal__log_open(&annal__system_io, path, true, &again, err));
}
END_TEST

START_TEST(a_log_notices_that_another_file_took_its_name)
{
    ck_assert(annal__log_is_in_place(&log_));
    const char *aside = tmpdir_path(&dir, "aside");
    ck_assert_int_eq(rename(path, aside), 0);
    ck_assert(!annal__log_is_in_place(&log_));
    file_write(path, "", 0);
    ck_assert(!annal__log_is_in_place(&log_));
    ck_assert_int_eq(rename(aside, path), 0);
    ck_assert(annal__log_is_in_place(&log_));
}
END_TEST

/* Write a number into both first blocks, with a hash that is right. */
static void put_field(size_t at, uint64_t value, size_t bytes)
{
    size_t len;
    char *whole = file_read(path, &len);
    char *blocks[] = {whole, whole + len - LOG_BLOCK_BYTES};
    for (int i = 0; i < 2; i++) {
        memcpy(blocks[i] + at, &value, bytes);
        uint64_t hash = annal__hash(blocks[i], 80, 0);
        memcpy(blocks[i] + 80, &hash, sizeof hash);
    }
    file_write(path, whole, len);
    free(whole);
}

START_TEST(impossible_numbers_are_refused_even_with_a_correct_hash)
{
    static const struct {
        size_t at;
        uint64_t value;
        size_t bytes;
        annal_status status;
    } fields[] = {
        {8, 2, 4, ANNAL_ERR_UNSUPPORTED},
        {8, 0, 4, ANNAL_ERR_UNSUPPORTED},
        {12, 512, 4, ANNAL_ERR_CORRUPT},
        {12, 131072, 4, ANNAL_ERR_CORRUPT},
        {32, UINT64_MAX, 8, ANNAL_ERR_CORRUPT},
        {48, (uint64_t)1 << 30, 8, ANNAL_ERR_CORRUPT},
        {40, 4096, 8, ANNAL_ERR_CORRUPT},
        {56, 0, 8, ANNAL_ERR_CORRUPT},
        {40, (uint64_t)1 << 40, 8, ANNAL_ERR_CORRUPT},
        {56, UINT64_MAX, 8, ANNAL_ERR_CORRUPT},
    };
    size_t len;
    struct log again;
    annal__log_close(&log_);
    char *whole = file_read(path, &len);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        put_field(fields[i].at, fields[i].value, fields[i].bytes);
        ck_status(fields[i].status, annal__log_open(&annal__system_io, path, true, &again, err));
        file_write(path, whole, len);
    }
    ck_ok(annal__log_open(&annal__system_io, path, true, &again, err));
    annal__log_close(&again);
    free(whole);
}
END_TEST

static blksize_t reported_blksize;

static int fstat_with_blksize(void *arg, int fd, struct stat *out)
{
    (void)arg;
    int result = annal__system_io.fstat(NULL, fd, out);
    out->st_blksize = reported_blksize;
    return result;
}

static int open_without_direct(void *arg, const char *name, int flags, mode_t mode)
{
    (void)arg;
    if ((flags & O_DIRECT) != 0) {
        errno = EINVAL;
        return -1;
    }
    return annal__system_io.open(NULL, name, flags, mode);
}

START_TEST(a_log_uses_the_block_size_of_its_filesystem)
{
    static const struct {
        blksize_t reported;
        uint32_t block;
    } cases[] = {{512, 4096}, {4096, 4096}, {16384, 16384}, {65536, 65536}, {1 << 20, 4096}};
    struct io io = annal__system_io;
    io.fstat = fstat_with_blksize;
    io.open = open_without_direct;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct log made, again;
        struct buf nothing = {0};
        const char *name = tmpdir_path(&dir, "suited.log");
        reported_blksize = cases[i].reported;
        ck_ok(annal__log_create(&io, name, 1 << 20, 1, &made, err));
        ck_assert_uint_eq(made.block, cases[i].block);
        annal__log_switch(&made);
        ck_ok(annal__log_write_group(&made, 0, &nothing, &nothing, 0, err));
        ck_assert_uint_eq(made.end % cases[i].block, 0);
        annal__log_close(&made);
        ck_ok(annal__log_open(&io, name, false, &again, err));
        ck_assert_uint_eq(again.block, cases[i].block);
        annal__log_close(&again);
        ck_assert_int_eq(unlink(name), 0);
    }
}
END_TEST

START_TEST(a_first_block_that_cannot_be_repaired_is_a_failure_and_stays_damaged)
{
    struct failing_io disk;
    failing_io_init(&disk);
    annal__log_close(&log_);
    flip(3);
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        struct log again;
        ck_ok(annal__log_open(&disk.io, path, true, &again, err));
        ck_assert(again.first_damaged);
        disk.calls = 0;
        disk.fail_at = at;
        annal_status status = annal__log_mend(&again, NULL);
        failed = disk.calls >= at;
        disk.fail_at = 0;
        ck_assert(failed ? status == ANNAL_ERR_FULL && again.first_damaged
                         : status == ANNAL_OK && !again.first_damaged);
        ck_ok(annal__log_mend(&again, err));
        ck_ok(annal__log_mend(&again, err)); /* nothing is to be done */
        annal__log_close(&again);
        flip(3);
    }
}
END_TEST

START_TEST(a_record_with_an_impossible_field_is_refused)
{
    const struct record sound = {
        .type = RECORD_LOOSE, .format = ANNAL_FORMAT_MSGPACK, .session = ANNAL_SLICE("sess_1")};
    struct record cases[6], found;
    for (size_t i = 0; i < 6; i++)
        cases[i] = sound;
    cases[1].type = (enum record_type)0;
    cases[2].type = (enum record_type)4;
    cases[3].length = 1;
    cases[4].format = (annal_format)9;
    cases[5].session = ANNAL_SLICE("../../x");
    for (size_t i = 0; i < 6; i++) {
        struct buf toc = {0};
        ck_assert_int_eq(annal__log_put_record(&toc, &cases[i]), ANNAL_OK);
        annal_slice rest = annal__buf_slice(&toc);
        ck_assert_msg(annal__log_take_record(&rest, &found) == (i == 0), "case %zu", i);
        for (size_t len = 0; len < toc.len && i == 0; len++) {
            rest = (annal_slice){toc.ptr, len};
            ck_assert_msg(!annal__log_take_record(&rest, &found), "cut at byte %zu", len);
        }
        annal__buf_done(&toc);
    }
}
END_TEST

START_TEST(a_group_with_an_impossible_header_is_ignored)
{
    static const struct {
        unsigned at;
        uint64_t value;
    } cases[] = {
        {16, 0},       {16, UINT64_MAX}, {24, UINT64_MAX}, {40, UINT64_MAX},
        {40, 1 << 20}, {48, UINT64_MAX}, {48, 1 << 20},
    };
    write_group_of(0, ANNAL_SLICE("one"));
    write_group_of(0, ANNAL_SLICE("two"));
    size_t count = 0;
    struct log_group *groups = find(&count);
    ck_assert_uint_eq(count, 2);
    off_t second = (off_t)groups[1].offset;
    annal__free(groups);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char before[8], field[8];
        int fd = open(path, O_RDWR);
        for (size_t j = 0; j < 8; j++)
            field[j] = (char)(cases[i].value >> 8 * j);
        ck_assert_int_eq(pread(fd, before, 8, second + cases[i].at), 8);
        ck_assert_int_eq(pwrite(fd, field, 8, second + cases[i].at), 8);
        groups = find(&count);
        ck_assert_uint_eq(count, 1);
        ck_assert_uint_eq(groups[0].group, 1);
        annal__free(groups);
        ck_assert_int_eq(pwrite(fd, before, 8, second + cases[i].at), 8);
        close(fd);
    }
    annal__free(find(&count));
    ck_assert_uint_eq(count, 2);
}
END_TEST

Suite *suite_log(void)
{
    Suite *suite = suite_create("log");
    TCase *tests = suite_case(suite, "log", set_up, tear_down);
    tcase_add_test(tests, large_payloads_are_written_without_a_copy_and_found_again);
    tcase_add_test(tests, small_groups_of_a_large_log_write_zeros_ahead_in_unwritten_space);
    tcase_add_test(tests, a_filesystem_that_cannot_reserve_space_gets_a_log_of_zeros);
    tcase_add_test(tests, groups_are_found_in_order_with_all_their_records);
    tcase_add_test(tests, impossible_numbers_are_refused_even_with_a_correct_hash);
    tcase_add_test(tests, a_log_uses_the_block_size_of_its_filesystem);
    tcase_add_test(tests, a_first_block_that_cannot_be_repaired_is_a_failure_and_stays_damaged);
    tcase_add_test(tests, a_damaged_group_is_skipped_and_the_groups_after_it_are_found);
    tcase_add_test(tests, a_group_of_another_log_inside_a_payload_is_ignored);
    tcase_add_test(tests, the_released_epoch_is_the_largest_of_all_groups);
    tcase_add_test(tests, a_group_fits_while_a_block_is_left_for_an_empty_one);
    tcase_add_test(tests, the_first_block_and_its_copy_have_the_documented_bytes);
    tcase_add_test(tests, one_sound_copy_of_the_first_block_repairs_the_other);
    tcase_add_test(tests, a_log_notices_that_another_file_took_its_name);
    tcase_add_test(tests, a_group_with_an_impossible_header_is_ignored);
    tcase_add_test(tests, a_record_with_an_impossible_field_is_refused);
    return suite;
}
