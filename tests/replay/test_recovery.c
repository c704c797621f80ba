/* SPDX-License-Identifier: Apache-2.0 */
/* annal_recovery_get(): what was in progress at the end of a session. */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <annal/recovery.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define S ANNAL_SLICE("s")

static annal_recovery *recovery(annal_slice session)
{
    annal_recovery *found = NULL;
    ck_ok(annal_recovery_get(f.index, session, &found, err));
    return found;
}

static void begin(void)
{
    fixture_append(&f, "s", "session.created", "{\"status\":\"running\"}");
    fixture_append(&f, "s", "turn.started", "{\"turn_id\":\"t1\"}");
    fixture_append(&f, "s", "message.added",
                   "{\"id\":\"m1\",\"role\":\"user\",\"content\":\"Pay.\"}");
    fixture_append(&f, "s", "tool.called", "{\"call_id\":\"c1\",\"tool\":\"look\"}");
    fixture_append(&f, "s", "tool.returned", "{\"call_id\":\"c1\",\"output\":1}");
    fixture_append(&f, "s", "tool.called",
                   "{\"call_id\":\"c\\\"2\",\"tool\":\"pay\",\"turn_id\":\"t1\","
                   "\"input\":{\"bill\":[7]}}");
    fixture_append(&f, "s", "tool.called", "{\"call_id\":\"c3\",\"arguments\":\"x\"}");
}

START_TEST(a_recovery_has_open_calls_and_turns_and_the_last_messages)
{
    begin();
    annal_recovery *found = recovery(S);
    ck_assert_uint_eq(found->seq, 7);
    ck_assert_str_eq(found->status.ptr, "running");
    ck_assert_uint_eq(found->replay.folded, 7);

    ck_assert_uint_eq(found->call_count, 2);
    const annal_open_call *call = &found->calls[0];
    ck_assert_str_eq(call->call_id.ptr, "c\"2");
    ck_assert_str_eq(call->tool.ptr, "pay");
    ck_assert_str_eq(call->turn_id.ptr, "t1");
    ck_assert_str_eq(call->input.ptr, "{\"bill\":[7]}");
    ck_assert_uint_eq(call->seq, 6);
    ck_assert_uint_eq(call->called_at.len, ANNAL_TIME_BYTES - 1);
    call = &found->calls[1];
    ck_assert_str_eq(call->input.ptr, "\"x\"");
    ck_assert_ptr_null(call->tool.ptr);
    ck_assert_ptr_null(call->turn_id.ptr);

    ck_assert_uint_eq(found->turn_count, 1);
    ck_assert_str_eq(found->turns[0].turn_id.ptr, "t1");
    ck_assert_str_eq(found->turns[0].status.ptr, "started");
    ck_assert_uint_eq(found->turns[0].seq, 2);
    ck_assert_int_eq(found->turns[0].sequence, 1);

    ck_assert_uint_eq(found->user.seq, 3);
    ck_assert_ptr_nonnull(strstr(found->user.data.ptr, "\"content\":\"Pay.\""));
    ck_assert_uint_eq(found->assistant.seq, 0);
    ck_assert_ptr_null(found->assistant.data.ptr);
    annal_recovery_free(found);
}
END_TEST

START_TEST(a_recovery_of_a_fork_has_the_history_of_its_parent)
{
    annal_recovery *none = NULL;
    begin();
    ck_ok(annal_session_fork(f.store, S, 6, ANNAL_SLICE("s2"), NULL, NULL, err));
    fixture_append(&f, "s2", "tool.failed", "{\"call_id\":\"c\\\"2\"}");
    annal_recovery *found = recovery(ANNAL_SLICE("s2"));
    ck_assert_uint_eq(found->seq, 7);
    ck_assert_uint_eq(found->call_count, 0);
    ck_assert_uint_eq(found->turn_count, 1);
    ck_assert_uint_eq(found->user.seq, 3);
    annal_recovery_free(found);
    ck_assert_int_eq(annal_recovery_get(f.index, ANNAL_SLICE("none"), &none, NULL),
                     ANNAL_ERR_NOTFOUND);
    ck_assert_ptr_null(none);
    annal_recovery_free(none);
}
END_TEST

/* The process ended after it created the journal. */
START_TEST(a_session_without_events_has_a_recovery)
{
    char header[300] = "";
    begin();
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    const char *path = tmpdir_path(&f.dir, "store/events/s.jsonl");
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(fgets(header, sizeof header, file));
    fclose(file);
    ck_assert_int_eq(truncate(path, (off_t)strlen(header)), 0);
    fixture_open(&f);
    annal_recovery *found = recovery(S);
    ck_assert_uint_eq(found->seq, 0);
    ck_assert_str_eq(found->status.ptr, "");
    ck_assert_uint_eq(found->call_count + found->turn_count, 0);
    annal_recovery_free(found);
}
END_TEST

/* One append of many drafts. */
static void append_calls(unsigned count)
{
    annal_writer *writer = NULL;
    annal_draft *drafts = calloc(count, sizeof *drafts);
    char *texts = calloc(count, 64);
    uint64_t seq;
    for (unsigned i = 0; i < count; i++) {
        snprintf(texts + 64 * i, 64, "{\"call_id\":\"c%u\",\"tool\":\"t\",\"input\":%u}", i, i);
        drafts[i].type = ANNAL_SLICE("tool.called");
        drafts[i].data = annal_slice_of(texts + 64 * i);
    }
    ck_ok(annal_writer_open(f.store, S, NULL, &writer, err));
    ck_ok(annal_writer_append(writer, drafts, count, NULL, &seq, err));
    annal_writer_close(writer);
    free(texts);
    free(drafts);
}

START_TEST(the_inputs_of_the_newest_calls_are_read)
{
    enum { CALLS = ANNAL_RECOVERY_INPUTS + 10 };
    append_calls(CALLS);
    annal_recovery *found = recovery(S);
    ck_assert_uint_eq(found->call_count, CALLS);
    ck_assert_uint_eq(found->calls[9].input.len, 0);
    ck_assert_uint_eq(found->calls[9].seq, 10);
    ck_assert_str_eq(found->calls[10].input.ptr, "10");
    ck_assert_str_eq(found->calls[CALLS - 1].input.ptr, "1009");
    annal_recovery_free(found);
}
END_TEST

Suite *suite_recovery(void)
{
    Suite *suite = suite_create("recovery");
    TCase *tc = suite_case(suite, "recovery", fixture_setup, fixture_teardown);
    tcase_add_test(tc, a_recovery_has_open_calls_and_turns_and_the_last_messages);
    tcase_add_test(tc, a_recovery_of_a_fork_has_the_history_of_its_parent);
    tcase_add_test(tc, a_session_without_events_has_a_recovery);
    tcase_add_test(tc, the_inputs_of_the_newest_calls_are_read);
    return suite;
}
