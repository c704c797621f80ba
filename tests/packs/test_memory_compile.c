/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include <annal/packs/memory.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADA ANNAL_SLICE("ada")
#define P1  ANNAL_SLICE("p1")

/* "place layer id included|" of each item. */
static int add_item(void *arg, const annal_memory_item *item)
{
    char line[200];
    int len = snprintf(line, sizeof line, "%d %d %.*s %d|", (int)item->place, (int)item->layer,
                       ANNAL_FMT(item->id), item->included);
    text_add(arg, line, (size_t)len);
    return 0;
}

static bool is(annal_slice text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static int check_item(void *arg, const annal_memory_item *item)
{
    ++*(int *)arg;
    switch (item->layer) {
    case ANNAL_MEMORY_BOUNDARY:
        ck_assert(is(item->title, "Tabs"));
        ck_assert(is(item->label, "scope"));
        ck_assert_ptr_null(item->rationale.ptr);
        ck_assert_int_eq(item->cost, 0);
        break;
    case ANNAL_MEMORY_MEMORY:
        ck_assert_ptr_null(item->title.ptr);
        ck_assert_int_eq(item->score, 3);
        ck_assert_int_eq(item->cost, (int64_t)(item->label.len + item->content.len + 6));
        break;
    case ANNAL_MEMORY_SESSION:
        ck_assert(is(item->title, "packs"));
        break;
    }
    ck_assert_uint_gt(item->why.len, 0);
    ck_assert_uint_gt(item->created.len, 0);
    return 0;
}

static int stop(void *arg, const annal_memory_item *item)
{
    (void)item;
    ++*(int *)arg;
    return 7;
}

static void fill(void)
{
    ck_append(&p, "proj_p1", "memory.noted",
              "{\"memory_id\":\"m1\",\"agent_name\":\"ada\",\"type\":\"learning\",\"importance\":"
              "\"high\",\"content\":\"one\",\"created_at\":\"2026-01-01T00:00:00Z\"}");
    ck_append(&p, "proj_p1", "memory.noted",
              "{\"memory_id\":\"m2\",\"agent_name\":\"bob\",\"type\":\"pattern\",\"importance\":"
              "\"high\",\"content\":\"two\",\"tags\":[\"cross-team\"],\"created_at\":"
              "\"2026-01-02T00:00:00Z\"}");
    ck_append(&p, "proj_p1", "decision.proposed",
              "{\"entry_id\":\"i1\",\"slug\":\"tabs\",\"agent_name\":\"ada\",\"type\":\"scope\","
              "\"title\":\"Tabs\",\"content\":\"Use tabs\"}");
    ck_append(&p, "proj_p1", "decision.promoted", "{\"entry_id\":\"i1\",\"decision_id\":\"d1\"}");
    ck_append(&p, "proj_p1", "session_context.started",
              "{\"session_id\":\"s1\",\"focus_area\":\"packs\"}");
}

#define ck_compiled(p, options, items)                                                             \
    do {                                                                                           \
        struct text got_ = {0};                                                                    \
        ck_ok(annal_memory_compile((p)->index, P1, ADA, (options), add_item, &got_, err));         \
        ck_assert_str_eq(got_.ptr != NULL ? got_.ptr : "", (items));                               \
        free(got_.ptr);                                                                            \
    } while (0)

START_TEST(a_program_compiles_the_context_of_an_agent)
{
    int items = 0;
    PACKS_ENABLE(&p, "agentweaver", "memory");
    ck_compiled(&p, NULL, "");
    fill();
    ck_compiled(&p, NULL, "1 1 d1 1|2 2 m2 1|3 2 m1 1|4 3 s1 1|");
    ck_compiled(&p, (&(annal_memory_options){.child = true}), "1 1 d1 1|");
    ck_compiled(&p, (&(annal_memory_options){.items = 1}), "1 1 d1 1|2 2 m2 1|3 3 s1 1|");
    ck_compiled(&p, (&(annal_memory_options){.tokens = 1, .all = true}),
                "1 1 d1 1|2 2 m2 0|3 2 m1 0|4 3 s1 1|");
    ck_ok(annal_memory_compile(p.index, P1, ADA, NULL, check_item, &items, err));
    ck_assert_int_eq(items, 4);
    items = 0;
    ck_assert_int_eq(annal_memory_compile(p.index, P1, ADA, NULL, stop, &items, NULL), 7);
    ck_assert_int_eq(items, 1);
}
END_TEST

START_TEST(a_context_needs_its_pack)
{
    struct text got = {0};
    PACKS_ENABLE(&p, "agentweaver");
    ck_fails(ANNAL_ERR_NOTFOUND, "pack memory is not enabled in this store",
             annal_memory_compile(p.index, P1, ADA, NULL, add_item, &got, err));
}
END_TEST

Suite *suite_memory_compile(void)
{
    Suite *suite = suite_create("memory_compile");
    TCase *tcase = suite_case(suite, "memory_compile", packs_setup, packs_teardown);
    tcase_add_test(tcase, a_program_compiles_the_context_of_an_agent);
    tcase_add_test(tcase, a_context_needs_its_pack);
    return suite;
}
