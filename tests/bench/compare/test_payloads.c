/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/payloads.h"
#include "tests/support/runner.h"

#include <annal/event.h>

#include <stdlib.h>
#include <string.h>

#define EVENTS 60000

static int compare(const void *left, const void *right)
{
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    return a < b ? -1 : a > b;
}

static void ck_about(size_t value, double wanted)
{
    ck_assert_msg((double)value > wanted * 0.93 && (double)value < wanted * 1.07, "%zu, not %.0f",
                  value, wanted);
}

START_TEST(payloads_have_the_sizes_of_real_events)
{
    struct payloads *payloads = payloads_new(1, 0, 10);
    struct batch batch = {0};
    size_t *sizes = calloc(EVENTS, sizeof *sizes), large = 0, total = 0;
    ck_assert_ptr_nonnull(payloads);
    for (unsigned i = 0; i < EVENTS; i++) {
        struct batch_key key = {i % 10, i / 10 + 1};
        sizes[i] = (size_t)batch_make(&batch, payloads, &key, 1);
        total += sizes[i];
        large += sizes[i] > 1000000;
    }
    qsort(sizes, EVENTS, sizeof *sizes, compare);
    ck_about(sizes[EVENTS / 2], 995);
    ck_about(sizes[EVENTS / 10 * 9], 5020);
    ck_about(sizes[EVENTS / 100 * 99], 41547);
    ck_assert(large >= 1 && large <= 12);
    ck_about(total / EVENTS, payloads_mean_bytes(payloads));
    free(sizes);
    batch_done(&batch);
    payloads_free(payloads);
}
END_TEST

START_TEST(an_event_depends_only_on_its_seed)
{
    struct payloads *one = payloads_new(7, 0, 2), *again = payloads_new(7, 0, 2);
    struct payloads *other = payloads_new(8, 0, 2);
    struct batch batch = {0}, next = {0};
    const struct batch_key key = {1, 41}, key_behind = {1, 42};
    ck_assert_uint_ne(batch_make(&batch, one, &key, 1), 0);
    ck_assert_uint_ne(batch_make(&next, one, &key_behind, 1), 0);
    ck_assert(payloads_same(again, batch.events));
    ck_assert(!payloads_same(other, batch.events));
    batch.events->seq++;
    ck_assert(!payloads_same(one, batch.events));
    ck_assert_int_ne(batch.events->ts_us, next.events->ts_us);
    batch_done(&batch);
    batch_done(&next);
    payloads_free(one);
    payloads_free(again);
    payloads_free(other);
}
END_TEST

START_TEST(every_payload_is_accepted_as_an_event)
{
    struct payloads *payloads = payloads_new(3, 0, 1);
    struct batch batch = {0};
    for (unsigned i = 1; i <= 2000; i++) {
        annal_error err = {0};
        struct batch_key key = {0, i};
        ck_assert_uint_ne(batch_make(&batch, payloads, &key, 1), 0);
        annal_draft draft = {.type = batch.events->type, .data = batch.events->data};
        ck_assert_msg(annal_draft_check(&draft, &err) == ANNAL_OK, "%s", err.message);
    }
    batch_done(&batch);
    payloads_free(payloads);
}
END_TEST

START_TEST(the_half_mix_has_half_the_bytes)
{
    struct payloads *mix = payloads_new(1, PAYLOADS_MIX, 1);
    struct payloads *half = payloads_new(1, PAYLOADS_HALF_MIX, 1);
    double part = payloads_mean_bytes(half) / payloads_mean_bytes(mix);
    ck_assert(part > 0.49 && part < 0.52);
    payloads_free(mix);
    payloads_free(half);
}
END_TEST

START_TEST(payloads_of_one_size_have_that_size)
{
    struct payloads *payloads = payloads_new(1, 10000, 1);
    struct batch batch = {0};
    const struct batch_key keys[] = {{0, 1}, {0, 2}};
    ck_assert_uint_eq(batch_make(&batch, payloads, keys, 2), 20000);
    ck_assert_uint_eq(batch.events[1].data.len, 10000);
    batch_done(&batch);
    payloads_free(payloads);
}
END_TEST

Suite *suite_payloads(void)
{
    Suite *suite = suite_create("payloads");
    TCase *tcase = suite_case(suite, "payloads", NULL, NULL);
    tcase_add_test(tcase, payloads_have_the_sizes_of_real_events);
    tcase_add_test(tcase, an_event_depends_only_on_its_seed);
    tcase_add_test(tcase, every_payload_is_accepted_as_an_event);
    tcase_add_test(tcase, the_half_mix_has_half_the_bytes);
    tcase_add_test(tcase, payloads_of_one_size_have_that_size);
    return suite;
}
