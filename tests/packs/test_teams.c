#include "tests/packs/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A team of two in memory. */
static void memory_team(struct memory *m)
{
    memory_init(m, "team_t1", "teams", NULL);
    memory_apply(m, "team.created",
                 "{\"id\":\"t1\",\"name\":\"review-team\",\"members\":[\"alice\",\"bob\"]}");
}

/* An event that changes nothing, because a guard or a constraint would have refused it. */
static void ck_nothing(struct memory *m, const char *type, const char *data)
{
    static const char all[] =
        "SELECT * FROM (SELECT json_array(id, name, member_count, members, status, updated_at) "
        "FROM teams UNION ALL SELECT json_array(id, recipient, read_by, sender) "
        "FROM team_messages) ORDER BY 1";
    char *before = memory_rows(m, all);
    memory_apply(m, type, data);
    char *after = memory_rows(m, all);
    ck_assert_msg(strcmp(before, after) == 0, "%s %s was taken", type, data);
    free(before);
    free(after);
}

START_TEST(a_team_has_the_printed_columns_and_counts_its_members)
{
    struct memory m;
    memory_team(&m);
    ck_memory(
        &m,
        "SELECT id, name, created_at, updated_at, member_count, members, node_metadata, status "
        "FROM teams",
        "t1|review-team|1767684240|1767684240|2|[\"alice\",\"bob\"]||active\n");
    memory_apply(&m, "team.configured", "{\"node_metadata\":{\"mode\":\"round-robin\"}}");
    memory_apply(&m, "team.renamed", "{\"name\":\"reviewers\"}");
    memory_apply(&m, "team.archived", "{\"reason\":\"done\"}");
    ck_memory(&m, "SELECT name, updated_at, node_metadata, status FROM teams",
              "reviewers|1767684243|{\"mode\":\"round-robin\"}|archived\n");
    ck_nothing(&m, "team.archived", "{}");
    memory_done(&m);
}
END_TEST

START_TEST(what_is_no_team_is_not_made)
{
    static const char *const wrong[] = {
        "{}",
        "{\"name\":\"\"}",
        "{\"name\":\"n\",\"members\":\"alice\"}",
        "{\"name\":\"n\",\"members\":null}",
        "{\"name\":\"n\",\"members\":[\"alice\",\"alice\"]}",
        "{\"name\":\"n\",\"members\":[\"alice\",\"\"]}",
        "{\"name\":\"n\",\"members\":[\"alice,bob\"]}",
        "{\"name\":\"n\",\"members\":[\"all\"]}",
        "{\"name\":\"n\",\"members\":[\"*\"]}",
        "{\"name\":\"n\",\"members\":[7]}",
        "{\"name\":\"n\",\"members\":[null]}",
        "null",
        "[1]",
    };
    struct memory m;
    memory_init(&m, "team_t1", "teams", NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_nothing(&m, "team.created", wrong[i]);
    memory_apply(&m, "team.created", "{\"name\":\"n\"}");
    ck_memory(&m, "SELECT id, name, member_count, members FROM teams", "t1|n|0|[]\n");
    ck_nothing(&m, "team.created", "{\"name\":\"again\"}");
    memory_done(&m);
}
END_TEST

START_TEST(at_l31_a_status_that_is_none_is_refused_and_a_deleted_team_takes_its_messages_along)
{
    struct memory m;
    memory_init(&m, "team_t1", "teams", NULL);
    ck_nothing(&m, "team.imported", "{\"name\":\"n\",\"status\":\"frozen\"}");
    ck_assert_uint_eq(annal_state_refused(m.state), 1);
    memory_apply(&m, "team.imported", "{\"name\":\"n\",\"status\":\"archived\"}");
    memory_apply(&m, "team.message", "{\"id\":\"m1\",\"sender\":\"a\",\"content\":\"c\"}");
    memory_apply(&m, "team.message_read", "{\"message_ids\":[\"m1\"],\"member\":\"b\"}");
    ck_memory(&m, "SELECT count(*) FROM team_messages JOIN x_team_reads ON message_id = id", "1\n");
    memory_apply(&m, "team.deleted", "{\"reason\":\"over\"}");
    ck_memory(&m,
              "SELECT (SELECT count(*) FROM teams), (SELECT count(*) FROM team_messages), "
              "(SELECT count(*) FROM x_team_reads)",
              "0|0|0\n");
    memory_apply(&m, "team.created", "{\"name\":\"again\"}");
    ck_memory(&m, "SELECT name FROM teams", "again\n");
    memory_done(&m);
}
END_TEST

START_TEST(members_come_and_go_and_the_count_goes_with_them)
{
    struct memory m;
    memory_team(&m);
    memory_apply(&m, "team.members_changed",
                 "{\"add\":[\"carol\",\"bob\",\"carol\",\"dave\"],\"remove\":[\"alice\"]}");
    ck_memory(&m, "SELECT member_count, members FROM teams", "3|[\"bob\",\"carol\",\"dave\"]\n");
    ck_nothing(&m, "team.members_changed", "{\"add\":[\"bob\"],\"remove\":[\"nobody\"]}");
    ck_nothing(&m, "team.members_changed", "{\"add\":[\"eve\",\"a,b\"]}");
    ck_nothing(&m, "team.members_changed", "{\"remove\":null}");
    ck_nothing(&m, "team.members_changed", "{\"add\":null,\"remove\":[\"bob\"]}");
    ck_nothing(&m, "team.members_changed", "{}");
    memory_apply(&m, "team.archived", "{}");
    ck_nothing(&m, "team.members_changed", "{\"add\":[\"eve\"]}");
    memory_done(&m);
}
END_TEST

START_TEST(a_message_goes_to_all_or_to_names)
{
    static const struct {
        const char *to;
        const char *recipient;
    } cases[] = {
        {"\"all\"", "all"},
        {"\"*\"", "all"},
        {"[\"*\"]", "all"},
        {"[\"all\"]", "all"},
        {"[]", "all"},
        {"null", "all"},
        {"\"bob\"", "bob"},
        {"[\"bob\"]", "bob"},
        {"[\"bob\",\"alice\",\"not a member\"]", "bob,alice,not a member"},
        {"[\"all\",\"bob\"]", "all"},
    };
    char data[200], select[200], row[200];
    struct memory m;
    memory_team(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(data, sizeof data,
                 "{\"id\":\"m%zu\",\"sender\":\"alice\",\"to\":%s,\"content\":\"hi\"}", i,
                 cases[i].to);
        memory_apply(&m, "team.message", data);
        snprintf(select, sizeof select, "SELECT recipient FROM team_messages WHERE id = 'm%zu'", i);
        snprintf(row, sizeof row, "%s\n", cases[i].recipient);
        ck_memory(&m, select, row);
    }
    ck_nothing(&m, "team.message",
               "{\"id\":\"x\",\"sender\":\"a\",\"to\":[\"b,c\"],\"content\":\"c\"}");
    ck_nothing(&m, "team.message",
               "{\"id\":\"x\",\"sender\":\"a\",\"to\":[\"\"],\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"x\",\"sender\":\"a\",\"to\":[7],\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"x\",\"sender\":\"a\",\"to\":{},\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"x\",\"sender\":\"a\",\"to\":\"\",\"content\":\"c\"}");
    memory_done(&m);
}
END_TEST

START_TEST(a_message_without_id_sender_or_content_is_none_and_an_id_counts_once)
{
    struct memory m;
    memory_team(&m);
    ck_nothing(&m, "team.message", "{\"sender\":\"a\",\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"sender\":\"\",\"content\":\"c\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"sender\":\"a\"}");
    memory_apply(&m, "team.message", "{\"id\":\"m\",\"sender\":\"a\",\"content\":\"first\"}");
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"sender\":\"b\",\"content\":\"second\"}");
    ck_memory(&m, "SELECT content FROM team_messages", "first\n");
    memory_done(&m);

    memory_init(&m, "team_t2", "teams", NULL);
    ck_nothing(&m, "team.message", "{\"id\":\"m\",\"sender\":\"a\",\"content\":\"no team\"}");
    memory_done(&m);
}
END_TEST

START_TEST(a_message_keeps_its_session_only_where_the_sender_knew_of_it)
{
    struct memory m;
    memory_team(&m);
    memory_apply(&m, "team.message",
                 "{\"id\":\"m1\",\"sender\":\"a\",\"content\":\"c\",\"summary\":\"s\","
                 "\"session_id\":\"sess_1\",\"from_op\":\"o3\"}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m2\",\"sender\":\"a\",\"content\":\"c\",\"session_id\":\"sess_2\","
                 "\"session_known\":true}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m3\",\"sender\":\"a\",\"content\":\"c\",\"session_id\":\"gone\","
                 "\"session_known\":false}");
    ck_memory(&m, "SELECT id, session_id, summary, from_op FROM team_messages ORDER BY id",
              "m1|sess_1|s|o3\nm2|sess_2||\nm3|||\n");
    ck_memory(&m, "SELECT team_id, session_id, messages FROM team_sessions ORDER BY session_id",
              "t1|sess_1|1\nt1|sess_2|1\n");
    memory_done(&m);
}
END_TEST

START_TEST(a_member_reads_a_message_once_and_names_are_sorted)
{
    struct memory m;
    memory_team(&m);
    memory_apply(&m, "team.message", "{\"id\":\"m1\",\"sender\":\"zoe\",\"content\":\"c\"}");
    memory_apply(&m, "team.message", "{\"id\":\"m2\",\"sender\":\"zoe\",\"content\":\"c\"}");
    memory_apply(
        &m, "team.message_read",
        "{\"message_ids\":[\"m1\"],\"member\":\"bob\",\"read_at\":\"2026-05-21T15:06:00Z\"}");
    memory_apply(&m, "team.message_read", "{\"message_ids\":[\"m1\",\"m2\"],\"member\":\"alice\"}");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":[\"m1\",\"m2\"],\"member\":\"bob\"}");
    memory_apply(&m, "team.message_read", "{\"message_ids\":[\"m2\"],\"member\":\"bob\"}");
    ck_memory(&m, "SELECT id, read_by FROM team_messages ORDER BY id",
              "m1|[\"alice\",\"bob\"]\nm2|[\"alice\",\"bob\"]\n");
    ck_memory(&m, "SELECT * FROM x_team_reads ORDER BY 1, 2",
              "m1|alice|1767684244\nm1|bob|1779375960\nm2|alice|1767684244\nm2|bob|1767684246\n");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":[\"m1\"],\"member\":\"bob\"}");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":[\"m9\"],\"member\":\"bob\"}");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":null,\"member\":\"eve\"}");
    ck_nothing(&m, "team.message_read", "{\"message_ids\":[\"m1\"]}");
    memory_done(&m);
}
END_TEST

START_TEST(at_l32_an_imported_team_has_these_rows)
{
    struct memory m;
    memory_init(&m, "team_abc123", "teams", NULL);
    memory_apply(&m, "team.imported",
                 "{\"id\":\"abc123\",\"name\":\"review-team\",\"members\":[\"alice\",\"bob\"],"
                 "\"created_at\":\"2026-05-21T14:00:00+00:00\"}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m1\",\"sender\":\"alice\",\"to\":[\"bob\"],"
                 "\"content\":\"what's the verdict?\","
                 "\"created_at\":\"2026-05-21T15:00:00+00:00\",\"read_by\":{}}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m2\",\"sender\":\"bob\",\"to\":[\"*\"],\"content\":\"approve\","
                 "\"created_at\":\"2026-05-21T15:05:00+00:00\","
                 "\"read_by\":{\"alice\":\"2026-05-21T15:06:00+00:00\"}}");
    memory_apply(&m, "team.message",
                 "{\"id\":\"m3\",\"sender\":\"bob\",\"to\":[\"*\"],\"content\":\"old form\","
                 "\"created_at\":\"2026-05-21T15:07:00+00:00\",\"read_by\":[\"zoe\",\"alice\"]}");
    ck_memory(&m, "SELECT id, created_at, updated_at, member_count FROM teams",
              "abc123|1779372000|1779376020|2\n");
    ck_memory(&m, "SELECT id, team_id, created_at, sender, recipient, read_by FROM team_messages",
              "m1|abc123|1779375600|alice|bob|[]\n"
              "m2|abc123|1779375900|bob|all|[\"alice\"]\n"
              "m3|abc123|1779376020|bob|all|[\"alice\",\"zoe\"]\n");
    ck_memory(&m, "SELECT * FROM x_team_reads ORDER BY 1, 2",
              "m2|alice|1779375960\nm3|alice|\nm3|zoe|\n");
    ck_assert_uint_eq(annal_state_refused(m.state), 0);
    memory_done(&m);
}
END_TEST

Suite *suite_teams(void)
{
    Suite *suite = suite_create("teams");
    TCase *tables = tcase_create("tables");
    tcase_add_test(tables, a_team_has_the_printed_columns_and_counts_its_members);
    tcase_add_test(tables, what_is_no_team_is_not_made);
    tcase_add_test(
        tables,
        at_l31_a_status_that_is_none_is_refused_and_a_deleted_team_takes_its_messages_along);
    tcase_add_test(tables, members_come_and_go_and_the_count_goes_with_them);
    tcase_add_test(tables, a_message_goes_to_all_or_to_names);
    tcase_add_test(tables, a_message_without_id_sender_or_content_is_none_and_an_id_counts_once);
    tcase_add_test(tables, a_message_keeps_its_session_only_where_the_sender_knew_of_it);
    tcase_add_test(tables, a_member_reads_a_message_once_and_names_are_sorted);
    tcase_add_test(tables, at_l32_an_imported_team_has_these_rows);
    suite_add_tcase(suite, tables);
    return suite;
}
