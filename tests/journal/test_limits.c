/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a store, as docs/limits.md lists them. test_writer.c covers the limits of an event. */
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include "journal/ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static annal_store *store;
static annal_writer *writer;

static void set_up(void)
{
    tmpdir_setup();
    store = store_open(tmpdir_path(&dir, "store"));
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writer, err));
}

static void tear_down(void)
{
    annal_writer_close(writer);
    store_close(store);
    tmpdir_teardown();
}

static char *repeat(char c, size_t count)
{
    char *text = malloc(count + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, c, count);
    text[count] = '\0';
    return text;
}

static annal_slice first(const char *text, size_t count)
{
    return (annal_slice){text, count};
}

START_TEST(one_append_of_several_events_has_at_most_80_mib)
{
    uint64_t seq = 0;
    size_t half = (size_t)40 << 20;
    char *text = repeat('a', half);
    text[0] = text[half - 1] = '"';
    annal_draft drafts[2] = {{.type = ANNAL_SLICE("a"), .data = first(text, half)}};
    drafts[1] = drafts[0];
    ck_status(ANNAL_ERR_LIMIT, annal_writer_append(writer, drafts, 2, NULL, &seq, err));
    /* 512 bytes count for each envelope. */
    text[half - 513] = '"';
    drafts[0].data.len = drafts[1].data.len = half - 512;
    ck_ok(annal_writer_append(writer, drafts, 2, NULL, &seq, err));
    ck_assert_uint_eq(read_session(store, "s", NULL, NULL), 2);
    free(text);
}
END_TEST

START_TEST(a_region_has_the_configured_size_unless_one_append_needs_more)
{
    annal_store *small = NULL;
    const annal_store_options options = {.create = true, .no_keeper = true, .region_bytes = 1};
    char *text = repeat('a', (size_t)3 << 20);
    text[0] = text[((size_t)3 << 20) - 1] = '"';
    ck_ok(annal_store_open(tmpdir_path(&dir, "small"), &options, &small, err));
    append_numbers(small, "s", 1, 700, ANNAL_LEVEL_SYNC); /* nearly three regions full */
    ck_assert_uint_eq(small->own_log.log.regions[0].bytes, 1 << 20);
    uint64_t seq;
    ck_ok(
        append_slice(small, "t", first(text, (size_t)3 << 20), NULL, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_eq(small->own_log.log.regions[0].bytes, 4 << 20);
    store_close(small);
    free(text);
}
END_TEST

/*
 * A step in between would cost a checkpoint of all of them. Time stands still, so that neither a
 * pause of a busy machine nor the delay of a batch decides when the keeper writes.
 */
START_TEST(a_log_of_many_sessions_grows_to_its_largest_regions_in_one_step)
{
    annal_store *many = NULL;
    const annal_store_options options = {.create = true, .region_bytes = (uint64_t)8 << 20};
    const struct seams seams = {.io = &annal__system_io, .clock = &still_clock};
    char name[16];
    uint64_t seq;
    ck_ok(annal__store_open(tmpdir_path(&dir, "many"), &options, &seams, &many, err));
    ck_assert_uint_le(atomic_load(&many->own_log.region_bytes), LOG_REGION_FIRST);
    for (uint64_t round = 0; atomic_load(&many->own_log.region_bytes) <= LOG_REGION_FIRST;
         round++) {
        ck_assert_uint_lt(round, 1000);
        for (int i = 0; i < 300; i++) {
            snprintf(name, sizeof name, "s%d", i);
            ck_ok(append_number(many, name, round + 1, round == 0 ? 10 : 4000, ANNAL_LEVEL_BATCH,
                                &seq, err));
            if (i % 100 == 99) /* a group that is larger than a region would need another log */
                ck_ok(annal_store_sync(many, err));
        }
    }
    ck_assert_uint_eq(atomic_load(&many->own_log.region_bytes), 8 << 20);
    store_close(many);
}
END_TEST

START_TEST(a_slot_owns_at_most_16384_sessions)
{
    struct held held = {0};
    uint32_t index = 0;
    char name[16];
    ck_ok(annal__held_open(&annal__system_io, tmpdir_path(&dir, "held"), true, &held, err));
    struct stat log = {.st_ino = 1};
    annal__held_bind(&held, store->context.boot, &log);
    for (int i = 0; i < HELD_ENTRIES_MAX; i++) {
        snprintf(name, sizeof name, "s%d", i);
        ck_ok(annal__held_add(&held, annal_slice_of(name), &index, err));
    }
    ck_status(ANNAL_ERR_LIMIT, annal__held_add(&held, ANNAL_SLICE("more"), &index, err));
    annal__held_remove(&held, 4711);
    ck_ok(annal__held_add(&held, ANNAL_SLICE("more"), &index, err));
    ck_assert_uint_eq(index, 4711);
    annal__held_close(&held);
}
END_TEST

START_TEST(at_least_the_last_65536_ids_are_remembered)
{
    struct ids ids = {0};
    char id[16];
    uint64_t offset = 0;
    for (uint32_t i = 0; i < 3 * IDS_REMEMBERED; i++) {
        snprintf(id, sizeof id, "id-%u", i);
        ck_assert_int_eq(annal__ids_add(&ids, annal_slice_of(id), i), ANNAL_OK);
    }
    for (uint32_t i = 2 * IDS_REMEMBERED; i < 3 * IDS_REMEMBERED; i++) {
        snprintf(id, sizeof id, "id-%u", i);
        ck_assert(annal__ids_find(&ids, annal_slice_of(id), &offset) && offset == i);
    }
    ck_assert(!annal__ids_find(&ids, ANNAL_SLICE("id-0"), &offset)); /* and memory is bounded */
    annal__ids_done(&ids);
}
END_TEST

static int little_space(void *arg, int fd, struct io_space *out)
{
    (void)arg;
    int result = annal__system_io.space(annal__system_io.arg, fd, out);
    out->free_bytes = (uint64_t)16 << 20;
    return result;
}

START_TEST(below_16_mib_of_free_space_appends_are_refused)
{
    uint64_t seq = 0;
    struct io io = annal__system_io;
    io.space = little_space;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    const char *path = tmpdir_path(&dir, "full");
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    store_close(store_open(path));
    annal_store *full = store_open_seams(path, &seams);
    ck_status(ANNAL_ERR_FULL, append_number(full, "s", 1, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_eq(read_session(full, "s", NULL, NULL), 0);
    store_close(full);
}
END_TEST

static uint64_t small_free;

static int small_space(void *arg, int fd, struct io_space *out)
{
    (void)arg;
    int result = annal__system_io.space(annal__system_io.arg, fd, out);
    out->free_bytes = small_free;
    out->total_bytes = (uint64_t)8 << 20;
    return result;
}

/* On a disk of 8 MiB half a MiB is kept free, unless the options say otherwise. */
START_TEST(a_small_disk_is_used_and_a_refusal_names_the_reserved_space)
{
    uint64_t seq = 0;
    struct io io = annal__system_io;
    io.space = small_space;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    const uint64_t frees[] = {(uint64_t)8 << 20, (uint64_t)500 << 10};
    for (size_t i = 0; i < 3; i++) {
        const annal_store_options options = {
            .create = true, .no_keeper = true, .keep_free_bytes = i == 2 ? 1 : 0};
        annal_store *small = NULL;
        annal_error why = {0};
        small_free = frees[i > 0];
        ck_ok(annal__store_open(tmpdir_path(&dir, "small"), &options, &seams, &small, err));
        annal_status status = append_number(small, "s", i + 1, 40, ANNAL_LEVEL_SYNC, &seq, &why);
        ck_assert_int_eq(status, i == 1 ? ANNAL_ERR_FULL : ANNAL_OK);
        if (i == 1)
            ck_assert_ptr_nonnull(strstr(why.message,
                                         "0.5 MiB of its disk are free, the append "
                                         "needs 0.0, and 0.5 are kept free (--keep-free"));
        ck_assert_uint_eq(atomic_load(&small->own_log.region_bytes), i == 1 ? 0 : LOG_REGION_LEAST);
        store_close(small);
    }
}
END_TEST

Suite *suite_limits(void)
{
    Suite *suite = suite_create("limits");
    TCase *limits = suite_case(suite, "limits", set_up, tear_down);
    tcase_add_test(limits, one_append_of_several_events_has_at_most_80_mib);
    tcase_add_test(limits, a_region_has_the_configured_size_unless_one_append_needs_more);
    tcase_add_test(limits, a_log_of_many_sessions_grows_to_its_largest_regions_in_one_step);
    tcase_add_test(limits, a_slot_owns_at_most_16384_sessions);
    tcase_add_test(limits, at_least_the_last_65536_ids_are_remembered);
    tcase_add_test(limits, below_16_mib_of_free_space_appends_are_refused);
    tcase_add_test(limits, a_small_disk_is_used_and_a_refusal_names_the_reserved_space);
    return suite;
}
