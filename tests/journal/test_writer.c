/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/session.h"
#include "journal/sys/session_trim.h"
#include "tests/support/failing_io.h"
#include "tests/support/failing_libc.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct tmpdir dir;
    const char *path;
    annal_store *store;
};

static void fixture_open(struct fixture *f)
{
    f->path = tmpdir_path(&f->dir, "store");
    f->store = store_open(f->path);
}

#define FIXTURE_INIT(f) (tmpdir_init(&(f)->dir), fixture_open(f))

static void fixture_done(struct fixture *f)
{
    store_close(f->store);
    tmpdir_done(&f->dir);
}

static void fixture_reopen(struct fixture *f)
{
    store_close(f->store);
    f->store = store_open(f->path);
}

static annal_status append(struct fixture *f, const annal_draft *drafts, size_t count,
                           const annal_append_options *options, uint64_t *out_seq, annal_error *err)
{
    annal_writer *writer = NULL;
    annal_status status = annal_writer_open(f->store, ANNAL_SLICE("s"), NULL, &writer, err);
    if (status == ANNAL_OK)
        status = annal_writer_append(writer, drafts, count, options, out_seq, err);
    annal_writer_close(writer);
    return status;
}

static annal_draft draft(const char *id, const char *data)
{
    return (annal_draft){
        .type = ANNAL_SLICE("t"), .data = annal_slice_of(data), .id = annal_slice_of(id)};
}

static uint64_t count(struct fixture *f)
{
    return read_session(f->store, "s", NULL, NULL);
}

/* The size and the hash of the journal and of the commit log. */
struct bytes_on_disk {
    uint64_t hash[2];
    size_t len[2];
};

static struct bytes_on_disk look(struct fixture *f)
{
    struct bytes_on_disk disk;
    static const char *const names[] = {"store/events/s.jsonl", "store/commit/00.log"};
    for (int i = 0; i < 2; i++) {
        char *bytes = file_read(tmpdir_path(&f->dir, names[i]), &disk.len[i]);
        disk.hash[i] = annal__hash(bytes, disk.len[i], 0);
        free(bytes);
    }
    return disk;
}

static void ck_nothing_written(struct fixture *f, const struct bytes_on_disk *before)
{
    struct bytes_on_disk after = look(f);
    ck_assert_int_eq(memcmp(before, &after, sizeof after), 0);
}

/* ---- Exactly once ---- */

START_TEST(an_id_with_the_same_bytes_gives_the_first_seq)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq = 0;
    const annal_draft a = draft("a", "1"), b = draft("b", "2"), none = draft(NULL, "3");
    ck_ok(append(&f, &a, 1, NULL, &seq, err));
    ck_ok(append(&f, &none, 1, NULL, &seq, err));
    ck_ok(append(&f, &b, 1, NULL, &seq, err));
    for (int reopened = 0; reopened < 2; reopened++) {
        ck_ok(append(&f, &a, 1, NULL, &seq, err));
        ck_assert_uint_eq(seq, 1);
        ck_ok(append(&f, &b, 1, NULL, &seq, err));
        ck_assert_uint_eq(seq, 3);
        fixture_reopen(&f);
    }
    ck_assert_uint_eq(count(&f), 3);
    fixture_done(&f);
}
END_TEST

START_TEST(an_id_with_another_type_cause_or_data_is_a_conflict)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq = 77;
    const annal_draft first = draft("a", "{\"x\":1}");
    ck_ok(append(&f, &first, 1, NULL, &seq, err));
    struct bytes_on_disk before = look(&f);
    annal_draft others[3] = {first, first, first};
    others[0].type = ANNAL_SLICE("u");
    others[1].cause = ANNAL_SLICE("s:1");
    others[2].data = ANNAL_SLICE("{\"x\":1 }");
    for (int i = 0; i < 3; i++)
        ck_status(ANNAL_ERR_CONFLICT, append(&f, &others[i], 1, NULL, &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_nothing_written(&f, &before);
    fixture_done(&f);
}
END_TEST

START_TEST(a_trimmed_session_keeps_no_ids_in_memory_and_still_knows_them)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq = 0;
    const annal_draft a = draft("a", "1"), b = draft("b", "2"), other = draft("a", "3");
    annal__session_trim(f.store, ANNAL_SLICE("s"));
    ck_ok(append(&f, &a, 1, NULL, &seq, err));
    struct session *session = annal__session_get(&f.store->sessions, ANNAL_SLICE("s"), NULL);
    ck_assert_ptr_nonnull(session->ids.young.entries);
    annal__session_trim(f.store, ANNAL_SLICE("s"));
    ck_assert_ptr_null(session->ids.young.entries);
    ck_ok(append(&f, &a, 1, NULL, &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_status(ANNAL_ERR_CONFLICT, append(&f, &other, 1, NULL, &seq, err));
    annal__session_trim(f.store, ANNAL_SLICE("s"));
    ck_ok(append(&f, &b, 1, NULL, &seq, err));
    ck_assert_uint_eq(seq, 2);
    ck_assert_uint_eq(count(&f), 2);
    fixture_done(&f);
}
END_TEST

START_TEST(several_events_with_ids_are_appended_together_or_not_at_all)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq = 0;
    annal_draft three[] = {draft(NULL, "1"), draft("b", "2"), draft("c", "3")};
    ck_ok(append(&f, &(annal_draft){.type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("0")}, 1, NULL,
                 &seq, err));
    ck_ok(append(&f, three, 3, NULL, &seq, err));
    ck_assert_uint_eq(seq, 2);
    for (int reopened = 0; reopened < 2; reopened++) {
        ck_ok(append(&f, three, 3, NULL, &seq, err));
        ck_assert_uint_eq(seq, 2);
        fixture_reopen(&f);
    }
    annal_draft turned[] = {three[0], three[2], three[1]};
    ck_status(ANNAL_ERR_CONFLICT, append(&f, turned, 3, NULL, &seq, err));
    annal_draft half[] = {three[1], draft("d", "4")};
    ck_status(ANNAL_ERR_CONFLICT, append(&f, half, 2, NULL, &seq, err));
    annal_draft same[] = {draft("e", "5"), draft(NULL, "6"), draft("e", "7")};
    ck_status(ANNAL_ERR_INVALID, append(&f, same, 3, NULL, &seq, err));
    ck_assert_uint_eq(count(&f), 4);
    fixture_done(&f);
}
END_TEST

#define RETRIERS 8
#define RETRIES  40
#define ID_ROOM  16

struct retrier {
    pthread_t thread;
    annal_store *store;
    uint64_t seqs[RETRIES];
};

static void *retry(void *arg)
{
    struct retrier *self = arg;
    for (int i = 0; i < RETRIES; i++) {
        char id[ID_ROOM];
        snprintf(id, sizeof id, "id%d", i);
        ck_ok(append_slice(self->store, "s", ANNAL_SLICE("1"), id,
                           i % 3 == 0 ? ANNAL_LEVEL_BATCH : ANNAL_LEVEL_SYNC, &self->seqs[i], err));
    }
    return NULL;
}

START_TEST(many_threads_with_the_same_id_append_one_event)
{
    struct fixture f;
    struct retrier retriers[RETRIERS] = {0};
    FIXTURE_INIT(&f);
    for (int i = 0; i < RETRIERS; i++) {
        retriers[i].store = f.store;
        ck_assert_int_eq(pthread_create(&retriers[i].thread, NULL, retry, &retriers[i]), 0);
    }
    for (int i = 0; i < RETRIERS; i++)
        pthread_join(retriers[i].thread, NULL);
    for (int i = 1; i < RETRIERS; i++)
        ck_assert_int_eq(memcmp(retriers[i].seqs, retriers[0].seqs, sizeof retriers[0].seqs), 0);
    ck_assert_uint_eq(count(&f), RETRIES);
    fixture_done(&f);
}
END_TEST

/* ---- expected_seq ---- */

START_TEST(expected_seq_is_compared_with_the_last_seq_of_the_session)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq = 0;
    const annal_draft plain = draft(NULL, "1"), named = draft("n", "2");
    const annal_append_options none = {.expect = ANNAL_EXPECT_NONE};
    const annal_append_options zero = {.expect = ANNAL_EXPECT_SEQ};
    const annal_append_options one = {.expect = ANNAL_EXPECT_SEQ, .expected_seq = 1};
    const annal_append_options nine = {.expect = ANNAL_EXPECT_SEQ, .expected_seq = 9};
    ck_status(ANNAL_ERR_CONFLICT, append(&f, &plain, 1, &one, &seq, err));
    ck_assert_uint_eq(count(&f), 0);
    ck_ok(append(&f, &plain, 1, &none, &seq, err));
    ck_status(ANNAL_ERR_CONFLICT, append(&f, &plain, 1, &none, &seq, err));
    ck_status(ANNAL_ERR_CONFLICT, append(&f, &plain, 1, &zero, &seq, err));
    ck_ok(append(&f, &named, 1, &one, &seq, err));
    ck_assert_uint_eq(seq, 2);
    ck_status(ANNAL_ERR_CONFLICT, append(&f, &plain, 1, &one, &seq, err));
    ck_status(ANNAL_ERR_CONFLICT, append(&f, &plain, 1, &nine, &seq, err));
    /* A retry finds its event although the session has grown: the id is checked first. */
    ck_ok(append(&f, &plain, 1, NULL, &seq, err));
    ck_ok(append(&f, &named, 1, &one, &seq, err));
    ck_assert_uint_eq(seq, 2);
    ck_ok(append(&f, &named, 1, &nine, &seq, err));
    ck_assert_uint_eq(seq, 2);
    ck_assert_uint_eq(count(&f), 3);
    fixture_done(&f);
}
END_TEST

START_TEST(an_expected_seq_without_its_kind_of_expectation_is_refused)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq = 0;
    const annal_draft plain = draft(NULL, "1");
    const annal_append_options forgotten[] = {{.expected_seq = 7},
                                              {.expect = ANNAL_EXPECT_NONE, .expected_seq = 7}};
    for (size_t i = 0; i < sizeof forgotten / sizeof *forgotten; i++) {
        annal_error err = {0};
        ck_assert_int_eq(append(&f, &plain, 1, &forgotten[i], &seq, &err), ANNAL_ERR_INVALID);
        ck_assert_ptr_nonnull(strstr(err.message, "expected_seq 7"));
    }
    ck_assert_uint_eq(count(&f), 0);
    fixture_done(&f);
}
END_TEST

/* What a session remembers of its ids is bounded; here as after very many others. */
static void forget_ids(struct fixture *f)
{
    struct session *session = annal__session_get(&f->store->sessions, ANNAL_SLICE("s"), NULL);
    ck_assert(session != NULL && session->ids_loaded);
    annal__ids_done(&session->ids);
}

START_TEST(a_retry_with_its_expected_seq_is_recognised_without_limit)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq = 0;
    const annal_draft first = draft("one", "1"), other = draft("one", "2"),
                      plain = draft(NULL, "3");
    const annal_draft pair[] = {draft("two", "2"), draft("three", "3")};
    const annal_draft longer[] = {draft("two", "2"), draft("three", "3"), draft("four", "4")};
    const annal_append_options zero = {.expect = ANNAL_EXPECT_SEQ};
    const annal_append_options one = {.expect = ANNAL_EXPECT_SEQ, .expected_seq = 1};
    ck_ok(append(&f, &first, 1, &zero, &seq, err));
    ck_ok(append(&f, pair, 2, &one, &seq, err));
    forget_ids(&f);
    ck_ok(append(&f, &first, 1, &zero, &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_ok(append(&f, pair, 2, &one, &seq, err));
    ck_assert_uint_eq(seq, 2);
    ck_status(ANNAL_ERR_CONFLICT, append(&f, &other, 1, &zero, &seq, err));
    ck_status(ANNAL_ERR_CONFLICT, append(&f, longer, 3, &one, &seq, err));
    ck_status(ANNAL_ERR_CONFLICT, append(&f, &plain, 1, &one, &seq, err));
    ck_assert_uint_eq(count(&f), 3);
    /* An unreadable journal gives no answer. */
    ck_assert_int_eq(
        rename(tmpdir_path(&f.dir, "store/events/s.jsonl"), tmpdir_path(&f.dir, "aside")), 0);
    ck_status(ANNAL_ERR_IO, append(&f, &first, 1, &zero, &seq, err));
    ck_assert_int_eq(
        rename(tmpdir_path(&f.dir, "aside"), tmpdir_path(&f.dir, "store/events/s.jsonl")), 0);
    ck_ok(append(&f, &first, 1, &zero, &seq, err));
    ck_assert_uint_eq(seq, 1);
    fixture_done(&f);
}
END_TEST

START_TEST(an_id_is_found_even_after_many_events_without_ids)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    enum { MANY = ANNAL_APPEND_EVENTS_MAX };
    uint64_t seq = 0;
    const annal_draft named = draft("first", "1"), other = draft("first", "2");
    annal_draft *drafts = calloc(MANY, sizeof *drafts);
    ck_assert_ptr_nonnull(drafts);
    for (size_t i = 0; i < MANY; i++)
        drafts[i] = draft(NULL, "0");
    ck_ok(append(&f, &named, 1, NULL, &seq, err));
    ck_ok(append(&f, drafts, MANY, NULL, &seq, err));
    free(drafts);
    fixture_reopen(&f);
    ck_ok(append(&f, &named, 1, NULL, &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_status(ANNAL_ERR_CONFLICT, append(&f, &other, 1, NULL, &seq, err));
    fixture_done(&f);
}
END_TEST

/* ---- Levels ---- */

/* H1, H12: events of level os lie between others; no event may follow a hole. */
START_TEST(levels_may_be_mixed_in_any_order)
{
    static const annal_level levels[] = {ANNAL_LEVEL_OS, ANNAL_LEVEL_BATCH, ANNAL_LEVEL_SYNC};
    for (int order = 0; order < 81; order++) {
        struct fixture f;
        FIXTURE_INIT(&f);
        uint64_t number = 0;
        for (int step = 0, rest = order; step < 4; step++, rest /= 3)
            append_numbers(f.store, "s", number + 1, number + 2, levels[rest % 3]), number += 2;
        append_numbers(f.store, "s", 9, 9, ANNAL_LEVEL_SYNC);
        ck_numbers(f.store, "s", 9);
        /* The power fails: the journal is gone, and the log has everything. */
        store_abandon(f.store);
        ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/events/s.jsonl")), 0);
        static const uint8_t boot[16] = "next";
        const struct seams seams = {&annal__system_io, &annal__system_clock, boot};
        f.store = store_open_seams(f.path, &seams);
        ck_numbers(f.store, "s", 9);
        fixture_done(&f);
    }
}
END_TEST

START_TEST(a_session_continues_after_more_than_a_mebibyte_of_level_os)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq;
    for (uint64_t number = 1; number <= 40; number++)
        ck_ok(append_number(f.store, "s", number, 60000, ANNAL_LEVEL_OS, &seq, err));
    ck_ok(append_number(f.store, "s", 41, 60000, ANNAL_LEVEL_SYNC, &seq, err));
    ck_ok(annal_store_sync(f.store, err));
    ck_numbers(f.store, "s", 41);
    fixture_reopen(&f);
    ck_numbers(f.store, "s", 41);
    fixture_done(&f);
}
END_TEST

/* The disk fills up in the middle of a line. */
START_TEST(an_incomplete_write_of_level_os_is_undone)
{
    struct fixture f;
    struct failing_io disk;
    uint64_t seq;
    tmpdir_init(&f.dir);
    f.path = tmpdir_path(&f.dir, "store");
    failing_io_init(&disk);
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    f.store = store_open_seams(f.path, &seams);
    append_numbers(f.store, "s", 1, 3, ANNAL_LEVEL_OS);
    append_numbers(f.store, "other", 1, 1, ANNAL_LEVEL_SYNC);
    bool wrote = false;
    for (unsigned at = 1; !wrote; at++) {
        disk.short_len = 20;
        disk.fail_at = disk.calls + at;
        annal_status status = append_number(f.store, "s", 4, 40, ANNAL_LEVEL_OS, &seq, NULL);
        wrote = status == ANNAL_OK;
        ck_assert(wrote || annal__error_is_io(status));
    }
    disk.fail_at = 0;
    disk.short_len = 0;
    append_numbers(f.store, "s", 5, 8, ANNAL_LEVEL_OS);
    ck_numbers(f.store, "s", 8);
    fixture_reopen(&f);
    ck_numbers(f.store, "s", 8);
    fixture_done(&f);
}
END_TEST

/* The first of two events may be complete, so nothing is undone: the next open shows what
 * exists. */
START_TEST(closing_the_store_reports_a_session_that_cannot_be_released)
{
    struct fixture f;
    struct failing_io disk;
    uint64_t seq;
    tmpdir_init(&f.dir);
    f.path = tmpdir_path(&f.dir, "store");
    failing_io_init(&disk);
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    const annal_draft drafts[] = {{.type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("1")},
                                  {.type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("2")}};
    const annal_append_options options = {.level = ANNAL_LEVEL_OS};
    annal_writer *writer = NULL;
    annal_status status = ANNAL_OK;
    f.store = store_open_seams(f.path, &seams);
    append_numbers(f.store, "s", 1, 3, ANNAL_LEVEL_OS);
    append_numbers(f.store, "other", 1, 1, ANNAL_LEVEL_SYNC);
    ck_ok(annal_writer_open(f.store, ANNAL_SLICE("s"), NULL, &writer, err));
    for (unsigned at = 1; status != ANNAL_ERR_UNKNOWN; at++) {
        disk.short_len = 20;
        disk.fail_at = disk.calls + at;
        status = annal_writer_append(writer, drafts, 2, &options, &seq, NULL);
        ck_assert_int_ne(status, ANNAL_OK);
    }
    disk.fail_at = 0;
    disk.short_len = 0;
    annal_writer_close(writer);
    annal_error failure = {0};
    ck_assert_int_lt(annal_store_close(f.store, &failure), 0);
    ck_assert_msg(strstr(failure.message, "session 's' cannot be released") != NULL, "%s",
                  failure.message);
    f.store = store_open(f.path);
    append_numbers(f.store, "other", 2, 2, ANNAL_LEVEL_SYNC);
    ck_ok(append_number(f.store, "s", 9, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_ge(seq, 4);
    fixture_done(&f);
}
END_TEST

/* ---- Limits ---- */

static char *filled(size_t len, char c)
{
    char *bytes = malloc(len + 1);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, c, len);
    bytes[len] = '\0';
    return bytes;
}

static annal_slice json_string(char *bytes, size_t len)
{
    bytes[0] = bytes[len - 1] = '"';
    return (annal_slice){bytes, len};
}

START_TEST(the_largest_event_is_accepted_and_one_byte_more_is_refused)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq = 0;
    size_t most = ANNAL_DATA_BYTES_MAX;
    char *bytes = filled(most + 1, 'x');
    append_numbers(f.store, "before", 1, 1, ANNAL_LEVEL_SYNC);
    annal_draft large = {.type = ANNAL_SLICE("t"), .data = json_string(bytes, most)};
    ck_ok(append(&f, &large, 1, NULL, &seq, err));
    bytes[most - 1] = 'x';
    large.data = json_string(bytes, most + 1);
    ck_status(ANNAL_ERR_LIMIT, append(&f, &large, 1, NULL, &seq, err));
    free(bytes);
    append_numbers(f.store, "before", 2, 2, ANNAL_LEVEL_SYNC);
    fixture_reopen(&f);
    annal_verify_result result;
    ck_ok(annal_session_verify(f.store, ANNAL_SLICE("s"), NULL, NULL, &result, err));
    ck_assert(result.findings == 0 && result.last_seq == 1);
    fixture_done(&f);
}
END_TEST

START_TEST(every_limit_of_a_draft_is_exact)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq;
    static const struct {
        size_t most;
        size_t member;
        annal_status more;
    } limits[] = {
        {ANNAL_TYPE_BYTES_MAX, offsetof(annal_draft, type), ANNAL_ERR_INVALID},
        {ANNAL_ID_BYTES_MAX, offsetof(annal_draft, id), ANNAL_ERR_LIMIT},
    };
    for (size_t i = 0; i < 2; i++) {
        char *bytes = filled(limits[i].most + 1, 'a');
        annal_draft d = draft(NULL, "1");
        annal_slice *member = (annal_slice *)(void *)((char *)&d + limits[i].member);
        *member = (annal_slice){bytes, limits[i].most};
        ck_ok(append(&f, &d, 1, NULL, &seq, err));
        member->len++;
        ck_status(limits[i].more, append(&f, &d, 1, NULL, &seq, err));
        free(bytes);
    }
    char deep[2 * ANNAL_DATA_DEPTH_MAX + 3];
    memset(deep, '[', ANNAL_DATA_DEPTH_MAX + 1);
    memset(deep + ANNAL_DATA_DEPTH_MAX + 1, ']', ANNAL_DATA_DEPTH_MAX + 1);
    annal_draft d = draft(NULL, "1");
    d.data = (annal_slice){deep + 1, sizeof deep - 3};
    ck_ok(append(&f, &d, 1, NULL, &seq, err));
    d.data = (annal_slice){deep, sizeof deep - 1};
    ck_status(ANNAL_ERR_LIMIT, append(&f, &d, 1, NULL, &seq, err));

    char cause[ANNAL_CAUSE_BYTES_MAX + 2];
    memset(cause, 'c', ANNAL_SESSION_ID_BYTES_MAX + 1);
    snprintf(cause + ANNAL_SESSION_ID_BYTES_MAX, 22, ":18446744073709551615");
    d = draft(NULL, "1");
    d.cause = (annal_slice){cause, ANNAL_CAUSE_BYTES_MAX};
    ck_ok(append(&f, &d, 1, NULL, &seq, err));
    memmove(cause + 1, cause, ANNAL_CAUSE_BYTES_MAX);
    d.cause.len++;
    ck_status(ANNAL_ERR_INVALID, append(&f, &d, 1, NULL, &seq, err));
    fixture_done(&f);
}
END_TEST

START_TEST(one_append_has_at_most_65536_events)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    uint64_t seq = 0;
    size_t most = ANNAL_APPEND_EVENTS_MAX;
    annal_draft *drafts = calloc(most + 1, sizeof *drafts);
    ck_assert_ptr_nonnull(drafts);
    for (size_t i = 0; i <= most; i++)
        drafts[i] = draft(NULL, "1");
    ck_status(ANNAL_ERR_LIMIT, append(&f, drafts, most + 1, NULL, &seq, err));
    ck_status(ANNAL_ERR_INVALID, append(&f, drafts, 0, NULL, &seq, err));
    ck_ok(append(&f, drafts, most, NULL, &seq, err));
    free(drafts);
    fixture_reopen(&f);
    ck_assert_uint_eq(count(&f), most);
    fixture_done(&f);
}
END_TEST

START_TEST(a_refused_append_changes_no_byte)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    static const char *const types[] = {"", "A", "a b", "a\"", "ä", "a\n", "a/b"};
    static const char *const ids[] = {"\"", "\\", "a\nb", "\x7f", "\xff", "\xc3"};
    static const char *const causes[] = {
        "s", "s:", ":1", "s:x", "s:-1", ".s:1", "s/t:1", "s:1 ", "s:123456789012345678901"};
    static const char *const data[] = {"",      "{",         "{}x",   "1 2",    "{\"a\":1,}", "nul",
                                       "[\n1]", "{}\r",      "\t\n1", "\"\n\"", "\"\xff\"",   "'a'",
                                       "NaN",   "\"\\ud800", "01",    "{a:1}",  "// c\n1"};
    uint64_t seq = 0;
    const annal_draft good = draft("good", "1");
    ck_ok(append(&f, &good, 1, NULL, &seq, err));
    struct bytes_on_disk before = look(&f);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        annal_draft bad[] = {draft(NULL, "1"), draft(NULL, "1")};
        bad[1].type = annal_slice_of(types[i]);
        ck_status(ANNAL_ERR_INVALID, append(&f, bad, 2, NULL, &seq, err));
    }
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const annal_draft bad = draft(ids[i], "1");
        ck_status(ANNAL_ERR_INVALID, append(&f, &bad, 1, NULL, &seq, err));
    }
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        annal_draft bad = draft(NULL, "1");
        bad.cause = annal_slice_of(causes[i]);
        ck_status(ANNAL_ERR_INVALID, append(&f, &bad, 1, NULL, &seq, err));
    }
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        const annal_draft bad = draft(NULL, data[i]);
        ck_status(ANNAL_ERR_INVALID, append(&f, &bad, 1, NULL, &seq, err));
    }
    annal_draft with_nul = draft(NULL, "1");
    with_nul.data = (annal_slice){"1\0", 2};
    ck_status(ANNAL_ERR_INVALID, append(&f, &with_nul, 1, NULL, &seq, err));
    with_nul = draft(NULL, "1");
    with_nul.id = (annal_slice){"a\0b", 3};
    ck_status(ANNAL_ERR_INVALID, append(&f, &with_nul, 1, NULL, &seq, err));
    ck_nothing_written(&f, &before);
    ck_assert_uint_eq(count(&f), 1);
    fixture_done(&f);
}
END_TEST

START_TEST(a_session_id_must_be_a_plain_file_name)
{
    struct fixture f;
    FIXTURE_INIT(&f);
    static const char *const bad[] = {"", ".", "..", ".a", "-a", "a/b", "a b", "ä", "a\n", "a:b"};
    annal_writer *writer = NULL;
    char longest[ANNAL_SESSION_ID_BYTES_MAX + 2];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_status(ANNAL_ERR_INVALID,
                  annal_writer_open(f.store, annal_slice_of(bad[i]), NULL, &writer, err));
    memset(longest, 'L', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    ck_status(ANNAL_ERR_INVALID,
              annal_writer_open(f.store, annal_slice_of(longest), NULL, &writer, err));
    longest[sizeof longest - 2] = '\0';
    append_numbers(f.store, longest, 1, 2, ANNAL_LEVEL_SYNC);
    fixture_reopen(&f);
    append_numbers(f.store, longest, 3, 3, ANNAL_LEVEL_SYNC);
    ck_numbers(f.store, longest, 3);
    fixture_done(&f);
}
END_TEST

/* ---- Time ---- */

struct moving_clock {
    struct clock clock;
    int64_t wall_us;
};

static int64_t moving_wall(void *arg)
{
    return ((struct moving_clock *)arg)->wall_us;
}

static int64_t real_monotonic(void *arg)
{
    (void)arg;
    return annal__system_clock.monotonic_us(annal__system_clock.arg);
}

static int64_t last_time(annal_store *store)
{
    annal_session_info info;
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
    return info.last_ts_us;
}

#define MINUTE_US INT64_C(60000000)

START_TEST(time_does_not_go_back_unless_it_was_far_ahead)
{
    struct fixture f;
    tmpdir_init(&f.dir);
    f.path = tmpdir_path(&f.dir, "store");
    const int64_t start_us = INT64_C(1767684240000000);
    struct moving_clock moving = {.wall_us = start_us};
    moving.clock = (struct clock){moving_wall, real_monotonic, &moving};
    const struct seams seams = {&annal__system_io, &moving.clock, NULL};
    f.store = store_open_seams(f.path, &seams);
    append_numbers(f.store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    moving.wall_us = start_us - 4 * MINUTE_US;
    append_numbers(f.store, "s", 2, 2, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(last_time(f.store), start_us);
    /* The clock was ten minutes ahead once: that does not pin all that follows. */
    moving.wall_us = start_us + 10 * MINUTE_US;
    append_numbers(f.store, "s", 3, 3, ANNAL_LEVEL_SYNC);
    moving.wall_us = start_us;
    append_numbers(f.store, "s", 4, 4, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(last_time(f.store), start_us);
    ck_numbers(f.store, "s", 4);
    fixture_done(&f);
}
END_TEST

static annal_status append_msgpack(struct fixture *f, const annal_draft *event, uint64_t *out_seq)
{
    annal_writer *writer = NULL;
    const annal_writer_options options = {.format = ANNAL_FORMAT_MSGPACK};
    annal_status status = annal_writer_open(f->store, ANNAL_SLICE("s"), &options, &writer, NULL);
    if (status == ANNAL_OK)
        status = annal_writer_append(writer, event, 1, NULL, out_seq, NULL);
    annal_writer_close(writer);
    return status;
}

START_TEST(a_session_whose_first_append_failed_starts_again_in_the_requested_format)
{
    static const enum libc_family families[] = {LIBC_HEAP, LIBC_SYSTEM};
    for (size_t i = 0; i < 2; i++) {
        bool failed = true;
        for (unsigned at = 1; failed; at++) {
            struct fixture f;
            struct failing_libc plan = {.family = families[i], .fail_at = at};
            uint64_t seq = 0, first_seq = 0;
            const annal_draft one = draft(NULL, "1"), two = draft(NULL, "2");
            FIXTURE_INIT(&f);
            failing_libc_arm(&plan);
            annal_status first = append_msgpack(&f, &one, &first_seq);
            failing_libc_arm(NULL);
            failed = plan.failed[0] != '\0';
            ck_assert(failed || first == ANNAL_OK);
            annal_status second = append_msgpack(&f, &two, &seq);
            if (second == ANNAL_ERR_CLOSED) { /* the store stopped for lack of memory */
                (void)annal_store_close(f.store, NULL);
                f.store = store_open(f.path);
                second = append_msgpack(&f, &two, &seq);
            }
            ck_assert_int_eq(second, ANNAL_OK);
            ck_assert_uint_eq(seq, first == ANNAL_OK ? 2 : 1);
            fixture_reopen(&f);
            ck_assert_uint_eq(count(&f), seq);
            fixture_done(&f);
        }
    }
}
END_TEST

Suite *suite_writer(void)
{
    Suite *suite = suite_create("writer");
    TCase *once = suite_case(suite, "exactly once", NULL, NULL);
    tcase_add_test(once, an_id_with_the_same_bytes_gives_the_first_seq);
    tcase_add_test(once, an_id_with_another_type_cause_or_data_is_a_conflict);
    tcase_add_test(once, several_events_with_ids_are_appended_together_or_not_at_all);
    tcase_add_test(once, a_trimmed_session_keeps_no_ids_in_memory_and_still_knows_them);
    tcase_add_test(once, many_threads_with_the_same_id_append_one_event);
    tcase_add_test(once, expected_seq_is_compared_with_the_last_seq_of_the_session);
    tcase_add_test(once, an_expected_seq_without_its_kind_of_expectation_is_refused);
    tcase_add_test(once, a_retry_with_its_expected_seq_is_recognised_without_limit);
    tcase_add_test(once, an_id_is_found_even_after_many_events_without_ids);
    TCase *levels = suite_case(suite, "levels", NULL, NULL);
    tcase_add_test(levels, levels_may_be_mixed_in_any_order);
    tcase_add_test(levels,
                   a_session_whose_first_append_failed_starts_again_in_the_requested_format);
    tcase_add_test(levels, a_session_continues_after_more_than_a_mebibyte_of_level_os);
    tcase_add_test(levels, an_incomplete_write_of_level_os_is_undone);
    tcase_add_test(levels, closing_the_store_reports_a_session_that_cannot_be_released);
    TCase *limits = suite_case(suite, "limits", NULL, NULL);
    tcase_add_test(limits, the_largest_event_is_accepted_and_one_byte_more_is_refused);
    tcase_add_test(limits, every_limit_of_a_draft_is_exact);
    tcase_add_test(limits, one_append_has_at_most_65536_events);
    tcase_add_test(limits, a_refused_append_changes_no_byte);
    tcase_add_test(limits, a_session_id_must_be_a_plain_file_name);
    tcase_add_test(limits, time_does_not_go_back_unless_it_was_far_ahead);
    return suite;
}
