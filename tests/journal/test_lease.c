/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/delete.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <annal/lease.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static annal_store *store;
static const annal_slice session = {"s1", 2};

static void setup(void)
{
    tmpdir_setup();
    store = store_open(tmpdir_path(&dir, "store"));
}

static void teardown(void)
{
    store_close(store);
    tmpdir_teardown();
}

static annal_status set(annal_store *in, uint64_t epoch, int64_t for_us, annal_error *err)
{
    const annal_lease lease = {
        .epoch = epoch, .until_us = annal_lease_now() + for_us, .seconds = 30, .giver = "db/fleet"};
    return annal_lease_set(in, session, &lease, err);
}

static annal_status append(annal_store *to, const char *id, annal_error *why)
{
    annal_writer *writer = NULL;
    const annal_draft draft = {
        .type = ANNAL_SLICE("a"), .data = ANNAL_SLICE("1"), .id = annal_slice_of(id)};
    uint64_t seq;
    ck_ok(annal_writer_open(to, session, NULL, &writer, err));
    annal_status status = annal_writer_append(writer, &draft, 1, NULL, &seq, why);
    annal_writer_close(writer);
    return status;
}

START_TEST(an_append_is_refused_once_the_lease_has_ended)
{
    annal_error why = {0};
    ck_ok(append(store, "one", err));
    ck_ok(set(store, 3, 60000000, err));
    ck_ok(append(store, "two", err));
    ck_ok(set(store, 3, -1, err));
    ck_assert_int_eq(append(store, "three", &why), ANNAL_ERR_REFUSED);
    ck_assert_str_eq(why.message, "append to session 's1': refused, because this store is not "
                                  "the session's home now: the lease of epoch 3 from db/fleet has "
                                  "ended; 'annal home take' takes the home again");
    ck_ok(append(store, "two", err)); /* the event exists already */
    ck_ok(set(store, 4, 60000000, err));
    ck_ok(append(store, "three", err));
}
END_TEST

START_TEST(the_owner_of_a_session_notices_the_end_of_its_lease)
{
    annal_error why = {0};
    annal_lease lease;
    ck_ok(set(store, 1, 200000, err));
    ck_ok(annal_lease_get(store, session, &lease, err));
    annal_status status = append(store, "one", &why);
    ck_assert(status == ANNAL_OK || annal_lease_now() >= lease.until_us);
    while (annal_lease_now() < lease.until_us)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    ck_assert_int_eq(append(store, "late", &why), ANNAL_ERR_REFUSED);
}
END_TEST

/* The other store object acts as another process. */
START_TEST(the_owner_of_a_session_notices_a_lease_of_another_process_at_once)
{
    annal_error why = {0};
    annal_store *other = store;
    ck_ok(annal_store_open(annal_store_path(other), NULL, &store, err)); /* its keeper releases */
    ck_ok(append(store, "one", err));
    ck_ok(set(other, 1, 60000000, err));
    ck_ok(append(store, "two", err));
    ck_ok(set(other, 1, -1, err));
    ck_assert_int_eq(append(store, "three", &why), ANNAL_ERR_REFUSED);
    store_close(other);
}
END_TEST

/* The other store object acts as another process. It keeps its lease in mind, and must not when the
 * session is shared, whatever the fields say that are not used. */
START_TEST(a_session_that_becomes_shared_refuses_undecided_events)
{
    annal_error why = {0};
    annal_store *other = store;
    ck_ok(annal_store_open(annal_store_path(other), NULL, &store, err));
    ck_ok(set(other, 1, 60000000, err));
    ck_ok(append(store, "one", err));
    const annal_lease shared = {
        .epoch = 1, .until_us = annal_lease_now() + 90000000, .shared = true, .giver = "db/fleet"};
    ck_ok(annal_lease_set(other, session, &shared, err));
    ck_assert_int_eq(append(store, "two", &why), ANNAL_ERR_REFUSED);
    ck_assert_ptr_nonnull(strstr(why.message, "the session is shared"));
    store_close(other);
}
END_TEST

START_TEST(an_earlier_epoch_cannot_replace_a_later_epoch)
{
    annal_error why = {0};
    annal_lease lease;
    ck_ok(set(store, 5, -1, err));
    const annal_lease old = {.epoch = 4, .until_us = annal_lease_now() + 60000000};
    ck_assert_int_eq(annal_lease_set(store, session, &old, &why), ANNAL_ERR_CONFLICT);
    ck_ok(annal_lease_get(store, session, &lease, err));
    ck_assert_uint_eq(lease.epoch, 5);
    ck_assert_str_eq(lease.giver, "db/fleet");
}
END_TEST

START_TEST(a_renewal_extends_a_lease_but_does_not_restore_a_released_lease)
{
    annal_error why = {0};
    annal_lease lease;
    const int64_t until_us = annal_lease_now() + 90000000;
    ck_assert_int_eq(annal_lease_renew(store, session, 3, until_us, &why), ANNAL_ERR_NOTFOUND);
    ck_ok(set(store, 3, -1, err));
    ck_ok(annal_lease_renew(store, session, 3, until_us, err));
    ck_ok(append(store, "one", err));
    ck_ok(annal_lease_renew(store, session, 3, until_us - 1, err)); /* asked for earlier */
    ck_ok(annal_lease_get(store, session, &lease, err));
    ck_assert_int_eq(lease.until_us, until_us);
    ck_assert_int_eq(annal_lease_renew(store, session, 2, until_us, &why), ANNAL_ERR_CONFLICT);
    lease.until_us = lease.seconds = 0; /* given back while a renewal was under way */
    ck_ok(annal_lease_set(store, session, &lease, err));
    ck_assert_int_eq(annal_lease_renew(store, session, 3, until_us, &why), ANNAL_ERR_CONFLICT);
    ck_assert_int_eq(append(store, "two", &why), ANNAL_ERR_REFUSED);
}
END_TEST

START_TEST(a_lease_of_another_boot_has_ended_and_a_damaged_lease_refuses_appends)
{
    annal_error why = {0};
    annal_lease lease;
    char path[400];
    ck_ok(set(store, 5, 60000000, err));
    snprintf(path, sizeof path, "%s/leases/s1", tmpdir_path(&dir, "store"));
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "1 5 9000000000000000 30 00000000-0000-0000-0000-000000000000 db/fleet\n");
    ck_assert_int_eq(fclose(file), 0);
    ck_ok(annal_lease_get(store, session, &lease, err));
    ck_assert_int_eq(lease.until_us, 0);
    ck_assert_int_eq(append(store, "one", &why), ANNAL_ERR_REFUSED);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "1 5 9000000000000000\n");
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(append(store, "one", &why), ANNAL_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(why.message, "the lease is damaged"));
}
END_TEST

static int count(void *arg, annal_slice name, uint64_t bytes)
{
    (void)bytes;
    ck_assert_mem_eq(name.ptr, "s1", 2);
    (*(int *)arg)++;
    return 0;
}

static int take_name(void *arg, annal_slice name, uint64_t bytes)
{
    (void)bytes;
    snprintf(arg, 60, "%.*s", ANNAL_FMT(name));
    return 0;
}

START_TEST(a_session_whose_name_looks_temporary_is_listed)
{
    char found[60] = "";
    const annal_lease lease = {.epoch = 1, .until_us = 1, .seconds = 1};
    const char *unfinished = tmpdir_path(&dir, "store/leases/s1.tmp-0123456789abcdef");
    ck_ok(annal_lease_set(store, ANNAL_SLICE("a.tmp-1"), &lease, err));
    FILE *file = fopen(unfinished, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
    ck_ok(annal_lease_each(store, take_name, found, err));
    ck_assert_str_eq(found, "a.tmp-1");
}
END_TEST

static int end_here(void *arg, annal_slice name, uint64_t bytes)
{
    (void)arg, (void)name, (void)bytes;
    errno = ENOENT; /* of something that it looked for */
    return ANNAL_ERR_BUSY;
}

START_TEST(the_list_of_leases_returns_the_status_of_its_callback)
{
    ck_ok(set(store, 1, 60000000, err));
    ck_assert_int_eq(annal_lease_each(store, end_here, NULL, NULL), ANNAL_ERR_BUSY);
}
END_TEST

START_TEST(a_deleted_session_leaves_no_lease)
{
    int found = 0;
    annal_lease lease;
    ck_ok(annal_lease_each(store, count, &found, err));
    ck_assert_int_eq(found, 0);
    ck_ok(set(store, 1, 60000000, err));
    ck_ok(append(store, "one", err));
    ck_ok(annal_lease_each(store, count, &found, err));
    ck_assert_int_eq(found, 1);
    ck_ok(delete_wiped(store, session, NULL, err));
    ck_assert_int_eq(annal_lease_get(store, session, &lease, NULL), ANNAL_ERR_NOTFOUND);
    ck_ok(append(store, "one", err));
}
END_TEST

Suite *suite_lease(void)
{
    Suite *suite = suite_create("lease");
    TCase *cases = suite_case(suite, "lease", setup, teardown);
    tcase_add_test(cases, an_append_is_refused_once_the_lease_has_ended);
    tcase_add_test(cases, the_owner_of_a_session_notices_the_end_of_its_lease);
    tcase_add_test(cases, the_owner_of_a_session_notices_a_lease_of_another_process_at_once);
    tcase_add_test(cases, a_session_that_becomes_shared_refuses_undecided_events);
    tcase_add_test(cases, an_earlier_epoch_cannot_replace_a_later_epoch);
    tcase_add_test(cases, a_renewal_extends_a_lease_but_does_not_restore_a_released_lease);
    tcase_add_test(cases, a_lease_of_another_boot_has_ended_and_a_damaged_lease_refuses_appends);
    tcase_add_test(cases, a_session_whose_name_looks_temporary_is_listed);
    tcase_add_test(cases, the_list_of_leases_returns_the_status_of_its_callback);
    tcase_add_test(cases, a_deleted_session_leaves_no_lease);
    return suite;
}
