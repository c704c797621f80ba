/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/state.h"
#include "tests/index/fixture.h"
#include "tests/index/json_patch.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <annal/diff.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tables with every kind of key, and names that a JSON pointer must escape. */
static const char odd_pack[] =
    "-- pack odd   version 1   database odd.db\n"
    "\n"
    "CREATE TABLE anything (k PRIMARY KEY, v);\n"
    "CREATE TABLE \"a/b~c\" (k TEXT COLLATE NOCASE PRIMARY KEY, \"v/~1\" REAL);\n"
    "CREATE TABLE pairs (a INTEGER, b TEXT, v, PRIMARY KEY (b, a)) WITHOUT ROWID;\n"
    "CREATE TABLE plain (k, v);\n"
    "\n"
    "-- on odd.put\n"
    "INSERT OR REPLACE INTO anything VALUES ($k, $v);\n"
    "INSERT OR REPLACE INTO \"a/b~c\" VALUES ($k, $r);\n"
    "INSERT OR IGNORE INTO pairs VALUES ($a, $k, $v);\n"
    "INSERT INTO plain VALUES ($k, $v);\n"
    "\n"
    "-- on odd.blob\n"
    "INSERT OR REPLACE INTO anything VALUES (CAST($k AS BLOB), CAST($v AS BLOB));\n"
    "\n"
    "-- on odd.set\n"
    "UPDATE anything SET v = $v WHERE k = $k;\n"
    "UPDATE pairs SET v = $v WHERE a = $a;\n"
    "UPDATE plain SET v = $v WHERE k = $k;\n"
    "\n"
    "-- on odd.drop\n"
    "DELETE FROM anything WHERE k = $k;\n"
    "DELETE FROM \"a/b~c\" WHERE k = $k;\n"
    "DELETE FROM pairs WHERE b = $k;\n"
    "DELETE FROM plain WHERE k = $k;\n";

static annal_pack *pack;

static void setup(void)
{
    ck_ok(annal_pack_parse("odd", ANNAL_SLICE(odd_pack), &pack, err));
}

static void teardown(void)
{
    annal_pack_free(pack);
    pack = NULL;
}

static annal_state *state_new(void)
{
    annal_state *state = NULL;
    ck_ok(annal__state_new(ANNAL_SLICE("s"), (const annal_pack *const[]){pack}, 1, &state, err));
    return state;
}

static void apply(annal_state *state, const char *type, const char *data)
{
    const annal_event event = {.seq = annal_state_seq(state) + 1,
                               .ts_us = 1767684240000000,
                               .type = annal_slice_of(type),
                               .data = annal_slice_of(data)};
    ck_ok(annal_state_apply(state, &event, err));
}

static char *json(annal_state *state)
{
    struct text text = {0};
    ck_ok(annal_state_json(state, text_write, &text, err));
    return text.ptr;
}

static char *patch_of(annal_state *before, annal_state *after)
{
    struct text text = {0};
    ck_ok(annal_state_patch(before, after, text_write, &text, err));
    return text.ptr;
}

static int count_change(void *arg, const annal_change *change)
{
    unsigned *counts = arg;
    counts[change->kind]++;
    return 0;
}

/* ---- The patch ---- */

static void ck_patch(annal_state *before, annal_state *after)
{
    char *from = json(before), *to = json(after), *patch = patch_of(before, after);
    char *patched = json_patched(from, patch);
    ck_assert_str_eq(patched, to);
    ck_assert_int_eq(strcmp(patch, "[]") == 0, strcmp(from, to) == 0);
    free(patched);
    free(patch);
    free(from);
    free(to);
}

static const char *const keys[] = {"null",
                                   "0",
                                   "1",
                                   "-1",
                                   "1.5",
                                   "-0.5",
                                   "9007199254740993",
                                   "9007199254740992.0",
                                   "1e300",
                                   "\"\"",
                                   "\"a\"",
                                   "\"A\"",
                                   "\"b/c~d\"",
                                   "\"\\u00e9\"",
                                   "\"0\"",
                                   "\"a\\\"b\"",
                                   "-1e300",
                                   "\"aa\""};

static void apply_random(annal_state *state, struct random *random)
{
    static const char *const types[] = {"odd.put", "odd.put",  "odd.put", "odd.set",
                                        "odd.set", "odd.drop", "odd.blob"};
    char data[200];
    uint64_t value = random_below(random, 4);
    snprintf(data, sizeof data, "{\"k\":%s,\"v\":%s,\"r\":%" PRIu64 ".%d,\"a\":%" PRIu64 "}",
             keys[random_below(random, sizeof keys / sizeof *keys)],
             value == 3 ? "null" : keys[random_below(random, sizeof keys / sizeof *keys)], value,
             (int)(value * 2), random_below(random, 3));
    apply(state, types[random_below(random, sizeof types / sizeof *types)], data);
}

START_TEST(a_patch_turns_any_state_of_a_random_history_into_any_other)
{
    struct random random = random_init(41);
    for (int round = 0; round < 30; round++) {
        struct random twin = random;
        annal_state *before = state_new(), *after = state_new();
        uint64_t a = random_below(&random, 60);
        uint64_t b = a + random_below(&random, 40);
        twin = random;
        for (uint64_t i = 0; i < a; i++)
            apply_random(before, &twin);
        for (uint64_t i = 0; i < b; i++)
            apply_random(after, &random);
        ck_patch(before, after);
        ck_patch(after, before);
        ck_patch(before, before);
        annal_state_free(before);
        annal_state_free(after);
    }
}
END_TEST

START_TEST(a_patch_contains_only_the_changes)
{
    annal_state *before = state_new(), *after = state_new();
    apply(before, "odd.put", "{\"k\":\"x\",\"v\":1,\"r\":0.5,\"a\":1}");
    apply(after, "odd.put", "{\"k\":\"x\",\"v\":1,\"r\":0.5,\"a\":1}");
    apply(after, "odd.set", "{\"k\":\"x\",\"v\":\"two\",\"a\":1}");
    apply(before, "odd.drop", "{\"k\":\"nothing\"}");
    ck_text(patch_of(before, after),
            "[{\"op\":\"replace\",\"path\":\"/anything/0/v\",\"value\":\"two\"},"
            "{\"op\":\"replace\",\"path\":\"/pairs/0/v\",\"value\":\"two\"},"
            "{\"op\":\"replace\",\"path\":\"/plain/0/v\",\"value\":\"two\"}]");
    annal_state_free(before);
    annal_state_free(after);
}
END_TEST

START_TEST(states_of_different_packs_are_refused)
{
    annal_state *before = state_new(), *after = NULL;
    unsigned counts[4] = {0};
    ck_ok(annal__state_new(ANNAL_SLICE("s"), NULL, 0, &after, err));
    ck_assert_int_eq(annal_state_diff(before, after, count_change, counts, NULL),
                     ANNAL_ERR_INVALID);
    annal_state_free(before);
    annal_state_free(after);
}
END_TEST

/* ---- The rows ---- */

static int print_change(void *arg, const annal_change *change)
{
    char text[300];
    int len =
        snprintf(text, sizeof text, "%d %.*s@%" PRIu64 " rowid %" PRId64 ":", (int)change->kind,
                 ANNAL_FMT(change->table), change->position, change->rowid);
    text_add(arg, text, (size_t)len);
    for (size_t i = 0; i < change->column_count; i++) {
        len = snprintf(text, sizeof text, " %.*s%s%s", ANNAL_FMT(change->columns[i]),
                       change->in_key[i] ? "!" : "", change->differs[i] ? "*" : "");
        text_add(arg, text, (size_t)len);
    }
    ck_assert_int_eq(change->before == NULL, change->kind == ANNAL_ROW_INSERTED);
    ck_assert_int_eq(change->after == NULL, change->kind == ANNAL_ROW_DELETED);
    text_add(arg, "\n", 1);
    return 0;
}

START_TEST(each_differing_row_is_reported_once_with_its_key_and_columns)
{
    annal_state *before = state_new(), *after = state_new();
    struct text text = {0};
    apply(before, "odd.put", "{\"k\":\"gone\",\"v\":1,\"r\":0.5,\"a\":1}");
    apply(before, "odd.put", "{\"k\":\"stays\",\"v\":1,\"r\":0.5,\"a\":1}");
    apply(after, "odd.put", "{\"k\":\"new\",\"v\":1,\"r\":0.5,\"a\":1}");
    apply(after, "odd.put", "{\"k\":\"stays\",\"v\":2,\"r\":0.5,\"a\":1}");
    ck_ok(annal_state_diff(before, after, print_change, &text, err));
    ck_assert_str_eq(text.ptr, "3 anything@0 rowid 0: k!* v*\n"
                               "1 anything@0 rowid 0: k!* v*\n"
                               "2 anything@1 rowid 0: k! v*\n"
                               "3 a/b~c@0 rowid 0: k!* v/~1*\n"
                               "1 a/b~c@0 rowid 0: k!* v/~1*\n"
                               "3 pairs@0 rowid 0: a!* b!* v*\n"
                               "1 pairs@0 rowid 0: a!* b!* v*\n"
                               "2 pairs@1 rowid 0: a! b! v*\n"
                               "2 plain@0 rowid 1: k* v\n"
                               "2 plain@1 rowid 2: k v*\n");
    free(text.ptr);
    annal_state_free(before);
    annal_state_free(after);
}
END_TEST

static int stop(void *arg, const annal_change *change)
{
    (void)change;
    ++*(unsigned *)arg;
    return ANNAL_ERR_LIMIT;
}

START_TEST(the_callback_can_stop_a_diff)
{
    annal_state *before = state_new(), *after = state_new();
    unsigned calls = 0;
    apply(after, "odd.put", "{\"k\":1}");
    ck_assert_int_eq(annal_state_diff(before, after, stop, &calls, NULL), ANNAL_ERR_LIMIT);
    ck_assert_uint_eq(calls, 1);
    annal_state_free(before);
    annal_state_free(after);
}
END_TEST

Suite *suite_state_diff(void)
{
    Suite *suite = suite_create("state_diff");
    TCase *tc = suite_case(suite, "state_diff", setup, teardown);
    tcase_add_test(tc, a_patch_turns_any_state_of_a_random_history_into_any_other);
    tcase_add_test(tc, a_patch_contains_only_the_changes);
    tcase_add_test(tc, states_of_different_packs_are_refused);
    tcase_add_test(tc, each_differing_row_is_reported_once_with_its_key_and_columns);
    tcase_add_test(tc, the_callback_can_stop_a_diff);
    return suite;
}
