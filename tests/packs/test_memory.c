#include "tests/packs/fixture.h"

#include <stdlib.h>
#include <string.h>

START_TEST(tags_are_kept_so_that_only_whole_ones_match)
{
    struct memory m;
    memory_init(&m, "proj_p1", "memory", NULL);
    memory_apply(&m, "memory.noted",
                 "{\"memory_id\":\"m1\",\"agent_name\":\"ada\",\"type\":\"learning\",\"content\":"
                 "\"c\",\"tags\":[\"cross-team\",\" b \",\"b\"]}");
    memory_apply(&m, "memory.noted",
                 "{\"memory_id\":\"m2\",\"agent_name\":\"ada\",\"type\":\"learning\",\"content\":"
                 "\"c\",\"tags\":\"not-cross-team, b,,\"}");
    memory_apply(&m, "memory.noted",
                 "{\"memory_id\":\"m3\",\"agent_name\":\"ada\",\"type\":\"learning\",\"content\":"
                 "\"c\"}");
    ck_memory(&m, "SELECT id, tags FROM agent_memory",
              "m1|,cross-team,b,\nm2|,not-cross-team,b,\nm3|\n");
    ck_memory(&m, "SELECT id FROM agent_memory WHERE tags LIKE '%,cross-team,%'", "m1\n");
    memory_done(&m);
}
END_TEST

START_TEST(a_promotion_makes_the_decision_and_marks_the_proposal_in_one_event)
{
    struct memory m;
    memory_init(&m, "proj_p1", "memory", NULL);
    memory_apply(&m, "decision.proposed",
                 "{\"entry_id\":\"i1\",\"slug\":\"tabs\",\"agent_name\":\"ada\",\"type\":\"scope\","
                 "\"title\":\"Tabs\",\"content\":\"Use tabs\"}");
    memory_apply(&m, "decision.promoted", "{\"entry_id\":\"i1\",\"decision_id\":\"d1\"}");
    memory_apply(&m, "decision.promoted", "{\"entry_id\":\"i1\",\"decision_id\":\"d2\"}");
    ck_memory(&m, "SELECT status, decision_id, merged_at IS NULL FROM decision_inbox",
              "merged|d1|0\n");
    ck_memory(&m, "SELECT id, title, content, status, inbox_entry_id FROM decisions",
              "d1|Tabs|Use tabs|active|i1\n");
    memory_done(&m);
}
END_TEST

START_TEST(an_event_of_a_run_is_a_row_with_its_sequence)
{
    struct memory m;
    memory_init(&m, "run_r1", "memory", NULL);
    memory_apply(&m, "agent.message", "{\"text\":\"a\"}");
    memory_apply(&m, "merge.failed", "{}");
    memory_apply(&m, "agent.message", "{\"text\":\"b\"}");
    ck_memory(&m, "SELECT RunId, Sequence, EventType, PayloadJson FROM RunEvents",
              "r1|1|agent.message|{\"text\":\"a\"}\nr1|2|merge.failed|{}\n"
              "r1|3|agent.message|{\"text\":\"b\"}\n");
    memory_done(&m);
}
END_TEST

Suite *suite_memory(void);
Suite *suite_memory(void)
{
    Suite *suite = suite_create("memory");
    TCase *tcase = tcase_create("memory");
    tcase_add_test(tcase, tags_are_kept_so_that_only_whole_ones_match);
    tcase_add_test(tcase, a_promotion_makes_the_decision_and_marks_the_proposal_in_one_event);
    tcase_add_test(tcase, an_event_of_a_run_is_a_row_with_its_sequence);
    suite_add_tcase(suite, tcase);
    return suite;
}
