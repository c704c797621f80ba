/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a session over from another store. */
#include "journal/sys/adopt.h"
#include "journal/sys/delete.h"
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair {
    struct tmpdir dir;
    annal_store *here, *there;
};

static void pair_init(struct pair *pair)
{
    tmpdir_init(&pair->dir);
    pair->here = store_open(tmpdir_path(&pair->dir, "here"));
    pair->there = store_open(tmpdir_path(&pair->dir, "there"));
}

static void pair_done(struct pair *pair)
{
    store_close(pair->here);
    store_close(pair->there);
    tmpdir_done(&pair->dir);
}

START_TEST(an_adopted_session_keeps_its_bytes_and_accepts_appends)
{
    struct pair pair;
    size_t len, len_here;
    pair_init(&pair);
    append_numbers(pair.there, "s", 1, 5, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(pair.there, err));
    char *bytes = file_read(tmpdir_path(&pair.dir, "there/events/s.jsonl"), &len);
    ck_ok(annal__journal_adopt(pair.here, pair.there, ANNAL_SLICE("s"), err));
    char *here = file_read(tmpdir_path(&pair.dir, "here/events/s.jsonl"), &len_here);
    ck_assert_uint_eq(len, len_here);
    ck_assert_mem_eq(bytes, here, len);
    ck_assert_int_ne(access(tmpdir_path(&pair.dir, "there/events/s.jsonl"), F_OK), 0);
    append_numbers(pair.here, "s", 6, 9, ANNAL_LEVEL_SYNC);
    ck_numbers(pair.here, "s", 9);
    store_close(pair.here);
    pair.here = store_open(tmpdir_path(&pair.dir, "here"));
    ck_numbers(pair.here, "s", 9);
    free(bytes);
    free(here);
    pair_done(&pair);
}
END_TEST

START_TEST(an_existing_session_is_never_replaced)
{
    struct pair pair;
    pair_init(&pair);
    append_numbers(pair.there, "s", 1, 5, ANNAL_LEVEL_SYNC);
    append_numbers(pair.here, "s", 1, 2, ANNAL_LEVEL_SYNC);
    ck_status(ANNAL_ERR_CONFLICT,
              annal__journal_adopt(pair.here, pair.there, ANNAL_SLICE("s"), err));
    ck_numbers(pair.here, "s", 2);
    ck_numbers(pair.there, "s", 5);
    ck_status(ANNAL_ERR_NOTFOUND,
              annal__journal_adopt(pair.here, pair.there, ANNAL_SLICE("none"), err));
    ck_status(ANNAL_ERR_INVALID,
              annal__journal_adopt(pair.here, pair.there, ANNAL_SLICE("../s"), err));
    pair_done(&pair);
}
END_TEST

START_TEST(a_fork_is_adopted_only_beside_its_parent)
{
    struct pair pair;
    pair_init(&pair);
    append_numbers(pair.there, "p", 1, 5, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_fork(pair.there, ANNAL_SLICE("p"), 3, ANNAL_SLICE("f"), NULL, NULL, err));
    ck_status(ANNAL_ERR_CORRUPT,
              annal__journal_adopt(pair.here, pair.there, ANNAL_SLICE("f"), err));
    append_numbers(pair.here, "p", 1, 5, ANNAL_LEVEL_SYNC); /* the same events at other times */
    ck_status(ANNAL_ERR_CORRUPT,
              annal__journal_adopt(pair.here, pair.there, ANNAL_SLICE("f"), err));
    ck_ok(delete_wiped(pair.here, ANNAL_SLICE("p"), NULL, err));
    ck_ok(annal__journal_adopt(pair.here, pair.there, ANNAL_SLICE("p"), err));
    ck_ok(annal__journal_adopt(pair.here, pair.there, ANNAL_SLICE("f"), err));
    ck_numbers(pair.here, "f", 3);
    pair_done(&pair);
}
END_TEST

START_TEST(a_journal_with_redo_in_another_log_waits_for_a_checkpoint)
{
    struct pair pair;
    size_t len;
    pair_init(&pair);
    append_numbers(pair.there, "s", 1, 2, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(pair.there, err));
    char *bytes = file_read(tmpdir_path(&pair.dir, "there/events/s.jsonl"), &len);
    ck_ok(annal__journal_adopt(pair.here, pair.there, ANNAL_SLICE("s"), err));
    append_numbers(pair.here, "s", 3, 3, ANNAL_LEVEL_SYNC);
    annal_store *deleter = NULL;
    const annal_store_options hasty = {.no_keeper = true, .wait_ms = 20};
    ck_ok(annal_store_open(tmpdir_path(&pair.dir, "here"), &hasty, &deleter, err));
    ck_status(ANNAL_ERR_BUSY, delete_wiped(deleter, ANNAL_SLICE("s"), NULL, err));
    ck_ok(annal_store_keep(pair.here, err)); /* gives it back; its log is not overwritten in time */
    ck_ok(delete_wiped(deleter, ANNAL_SLICE("s"), NULL, err));
    annal_store *again = store_open(tmpdir_path(&pair.dir, "again"));
    store_close(again);
    file_write(tmpdir_path(&pair.dir, "again/events/s.jsonl"), bytes, len);
    again = store_open(tmpdir_path(&pair.dir, "again"));
    ck_status(ANNAL_ERR_BUSY, annal__journal_adopt(deleter, again, ANNAL_SLICE("s"), err));
    ck_ok(annal_store_checkpoint(pair.here, err));
    ck_ok(annal__journal_adopt(deleter, again, ANNAL_SLICE("s"), err));
    ck_numbers(deleter, "s", 2);
    store_close(again);
    store_close(deleter);
    free(bytes);
    pair_done(&pair);
}
END_TEST

/* Fail each call from the at-th on. False if the adoption makes fewer calls. */
static bool adopt_with_failure(struct pair *pair, unsigned at)
{
    struct failing_io disk;
    const char *path = tmpdir_path(&pair->dir, "here");
    append_numbers(pair->there, "s", 1, 5, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(pair->there, err));
    append_numbers(pair->here, "t", 1, 3, ANNAL_LEVEL_SYNC);
    store_close(pair->here);

    failing_io_init(&disk);
    disk.for_good = true;
    disk.with_errno = EIO;
    const struct seams broken = {.io = &disk.io, .clock = &annal__system_clock};
    pair->here = store_open_seams(path, &broken);
    disk.fail_at = disk.calls + at;
    annal_status status = annal__journal_adopt(pair->here, pair->there, ANNAL_SLICE("s"), NULL);
    bool failed = disk.calls >= disk.fail_at;
    ck_assert(failed || status == ANNAL_OK);
    store_abandon(pair->here);

    pair->here = store_open(path);
    uint64_t last = read_session(pair->here, "s", NULL, NULL);
    ck_assert_msg(last == 5 || (last == 0 && status != ANNAL_OK), "event %d", (int)last);
    ck_assert(last == 0 || status == ANNAL_OK || status == ANNAL_ERR_UNKNOWN);
    ck_numbers(pair->here, "t", 3);
    if (last == 0) /* it is still there, and can be taken again */
        ck_ok(annal__journal_adopt(pair->here, pair->there, ANNAL_SLICE("s"), err));
    append_numbers(pair->here, "s", 6, 6, ANNAL_LEVEL_SYNC);
    ck_numbers(pair->here, "s", 6);
    return failed;
}

START_TEST(an_adoption_that_fails_at_any_call_is_complete_or_absent)
{
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        struct pair pair;
        pair_init(&pair);
        failed = adopt_with_failure(&pair, at);
        ck_assert(!failed || at < 200);
        pair_done(&pair);
    }
}
END_TEST

Suite *suite_journal_adopt(void)
{
    Suite *suite = suite_create("journal_adopt");
    TCase *tests = suite_case(suite, "adopt", NULL, NULL);
    tcase_add_test(tests, an_adopted_session_keeps_its_bytes_and_accepts_appends);
    tcase_add_test(tests, an_existing_session_is_never_replaced);
    tcase_add_test(tests, a_fork_is_adopted_only_beside_its_parent);
    tcase_add_test(tests, an_adoption_that_fails_at_any_call_is_complete_or_absent);
    tcase_add_test(tests, a_journal_with_redo_in_another_log_waits_for_a_checkpoint);
    return suite;
}
