#include "tests/packs/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(tables_begin_with_the_printed_columns)
{
    struct memory m;
    memory_init(&m, "s1", "lionagi", NULL);
    ck_memory(&m,
              "SELECT group_concat(name || ' ' || type, ', ') FROM pragma_table_info('messages') "
              "WHERE cid < 10",
              "id TEXT, created_at REAL, node_metadata JSON, content JSON, embedding BLOB, sender "
              "TEXT, recipient TEXT, channel TEXT, role TEXT, lion_class INTEGER\n");
    ck_memory(&m,
              "SELECT group_concat(name || ' ' || type, ', ') FROM pragma_table_info('sessions') "
              "WHERE cid < 9",
              "id TEXT, created_at REAL, node_metadata JSON, name TEXT, user TEXT, progression_id "
              "TEXT, first_msg_id TEXT, last_msg_id TEXT, updated_at REAL\n");
    ck_memory(&m,
              "SELECT group_concat(name || ' ' || type, ', ') FROM pragma_table_info('branches') "
              "WHERE cid < 8",
              "id TEXT, created_at REAL, node_metadata JSON, user TEXT, name TEXT, session_id "
              "TEXT, progression_id TEXT, system_msg_id TEXT\n");
    ck_memory(&m,
              "SELECT group_concat(name || ' ' || type, ', ') FROM "
              "pragma_table_info('progressions') WHERE cid < 3",
              "id TEXT, created_at REAL, collection TEXT\n");
    memory_done(&m);
}
END_TEST

START_TEST(at_l1_six_message_types_are_there_from_the_beginning)
{
    struct memory m;
    memory_init(&m, "s1", "lionagi", NULL);
    ck_memory(&m, "SELECT count(*), min(lion_class) FROM message_types", "6|__unknown__\n");
    memory_apply(&m, "message.added", "{\"id\":\"m1\",\"role\":\"user\",\"content\":{}}");
    memory_apply(&m, "message.added",
                 "{\"id\":\"m2\",\"role\":\"user\",\"content\":{},\"lion_class\":"
                 "\"lionagi.protocols.messages.system.System\"}");
    memory_apply(&m, "message.added",
                 "{\"id\":\"m3\",\"role\":\"user\",\"content\":{},\"node_metadata\":{"
                 "\"lion_class\":\"lionagi.protocols.messages.instruction.Instruction\"}}");
    ck_memory(&m, "SELECT id, lion_class FROM messages ORDER BY id", "m1|0\nm2|1\nm3|2\n");
    memory_done(&m);
}
END_TEST

START_TEST(at_l3_a_progression_keeps_its_order_and_each_id_once)
{
    struct memory m;
    memory_init(&m, "s1", "lionagi", NULL);
    memory_apply(&m, "progression.created", "{\"id\":\"p\"}");
    ck_memory(&m, "SELECT collection FROM progressions WHERE id = 'p'", "[]\n");
    memory_apply(&m, "progression.appended", "{\"progression_id\":\"p\",\"message_id\":\"a\"}");
    memory_apply(&m, "progression.appended", "{\"progression_id\":\"p\",\"message_id\":\"b\"}");
    memory_apply(&m, "progression.appended", "{\"progression_id\":\"p\",\"message_id\":\"c\"}");
    memory_apply(&m, "progression.appended", "{\"progression_id\":\"p\",\"message_id\":\"a\"}");
    ck_memory(&m, "SELECT collection FROM progressions WHERE id = 'p'", "[\"a\",\"b\",\"c\"]\n");
    memory_apply(&m, "progression.created",
                 "{\"id\":\"q\",\"collection\":[\"z\",\"y\",\"z\",\"x\"]}");
    ck_memory(&m, "SELECT collection FROM progressions WHERE id = 'q'", "[\"z\",\"y\",\"x\"]\n");
    memory_done(&m);
}
END_TEST

START_TEST(a_fork_has_what_its_parent_had_there_and_its_own)
{
    struct memory m;
    memory_init(&m, "s1", "lionagi", NULL);
    memory_apply(&m, "session.created", "{\"name\":\"n\",\"invocation_kind\":\"agent\"}");
    memory_apply(&m, "branch.created", "{\"id\":\"b0\"}");
    for (char c = 'a'; c <= 'd'; c++) {
        char data[100];
        snprintf(data, sizeof data,
                 "{\"id\":\"%c\",\"role\":\"user\",\"content\":{},\"branch_id\":\"b0\"}", c);
        memory_apply(&m, "message.added", data);
    }
    memory_apply(&m, "branch.forked",
                 "{\"id\":\"b1\",\"parent_branch_id\":\"b0\",\"forked_at_ord\":2}");
    memory_apply(&m, "message.added",
                 "{\"id\":\"x\",\"role\":\"user\",\"content\":{},\"branch_id\":\"b1\"}");
    memory_apply(&m, "message.added",
                 "{\"id\":\"y\",\"role\":\"user\",\"content\":{},\"branch_id\":\"b1\"}");
    memory_apply(&m, "branch.forked",
                 "{\"id\":\"b2\",\"parent_branch_id\":\"b1\",\"forked_at_ord\":3}");
    memory_apply(&m, "message.added",
                 "{\"id\":\"z\",\"role\":\"user\",\"content\":{},\"branch_id\":\"b2\"}");
    memory_apply(&m, "branch.forked",
                 "{\"id\":\"b3\",\"parent_branch_id\":\"b2\",\"forked_at_ord\":1}");
    ck_memory(&m,
              "SELECT branch_id, group_concat(message_id, '') FROM branch_history "
              "GROUP BY branch_id ORDER BY branch_id",
              "b0|abcd\nb1|abxy\nb2|abxz\nb3|a\n");
    ck_memory(&m, "SELECT collection FROM progressions WHERE id = 'b3'", "[]\n");
    ck_memory(&m, "SELECT node_metadata FROM branches WHERE id = 'b1'",
              "{\"parent_branch_id\":\"b0\",\"forked_at_ord\":2}\n");
    ck_memory(&m, "SELECT group_concat(id, '') FROM session_messages", "abcdxyz\n");
    ck_memory(&m, "SELECT first_msg_id, last_msg_id FROM sessions", "a|z\n");
    memory_done(&m);
}
END_TEST

Suite *suite_lionagi(void)
{
    Suite *suite = suite_create("lionagi");
    TCase *tcase = tcase_create("pack");
    tcase_add_test(tcase, tables_begin_with_the_printed_columns);
    tcase_add_test(tcase, at_l1_six_message_types_are_there_from_the_beginning);
    tcase_add_test(tcase, at_l3_a_progression_keeps_its_order_and_each_id_once);
    tcase_add_test(tcase, a_fork_has_what_its_parent_had_there_and_its_own);
    suite_add_tcase(suite, tcase);
    return suite;
}
