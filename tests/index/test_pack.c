/* SPDX-License-Identifier: Apache-2.0 */
#include "index/pack/builtin.h"
#include "index/pack/pack.h"
#include "index/sys/pack.h"
#include "journal/base/slice.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>

static const char HEAD[] = "-- pack p   version 3   database p.db\n"
                           "CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER NOT NULL);\n";

/* Parse HEAD and body: returns the message of the failure, or "" for a valid pack. */
static const char *parse(const char *body, annal_error *err)
{
    struct text text = {0};
    annal_pack *pack = NULL;
    *err = (annal_error){0};
    text_add(&text, HEAD, strlen(HEAD));
    text_add(&text, body, strlen(body));
    annal_status status = annal_pack_parse("p.sql", (annal_slice){text.ptr, text.len}, &pack, err);
    ck_assert_int_eq(status, err->status);
    annal_pack_free(pack);
    free(text.ptr);
    return err->message;
}

START_TEST(the_header_line_sets_pack_version_and_database)
{
    annal_pack *pack = NULL;
    ck_ok(annal_pack_parse("p.sql", annal_slice_of(HEAD), &pack, err));
    ck_assert_str_eq(annal__pack_name(pack), "p");
    ck_assert_uint_eq(annal__pack_version(pack), 3);
    ck_assert_str_eq(annal__pack_database(pack), "p.db");
    annal_pack_free(pack);
}
END_TEST

START_TEST(a_file_without_the_header_line_is_not_a_pack)
{
    static const char *const bad[] = {"",
                                      "CREATE TABLE t (id TEXT);",
                                      "-- pack p version 1",
                                      "-- pack p version x database p.db",
                                      "-- pack ../p version 1 database p.db",
                                      "-- pack p version 1 database /etc/p.db",
                                      "-- pack p version 1 database p.db more",
                                      "-- pack p version 1 database p.db scope",
                                      "-- pack p version 1 database p.db scope cluster",
                                      "-- pack p version 1 database p.db scope cluster a,",
                                      "-- pack p version 1 database p.db scope cluster a b",
                                      "-- pack p version 1 database p.db scope cluster ./a"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        annal_pack *pack = NULL;
        ck_assert_int_eq(annal_pack_parse("p.sql", annal_slice_of(bad[i]), &pack, NULL),
                         ANNAL_ERR_INVALID);
    }
}
END_TEST

START_TEST(a_section_may_name_several_types_and_a_guard)
{
    annal_error err;
    ck_assert_str_eq(parse("-- on a.b, c.d   guarded \"not now\"\nDELETE FROM t;\n", &err), "");
}
END_TEST

START_TEST(a_wrong_section_is_refused_with_file_and_line)
{
    annal_error err;
    ck_assert_ptr_nonnull(strstr(parse("-- on A.B\nDELETE FROM t;\n", &err), "p.sql:3: 'A.B'"));
    ck_assert_ptr_nonnull(strstr(parse("-- on a guarded why\nDELETE FROM t;\n", &err), "p.sql:3:"));
    ck_assert_ptr_nonnull(strstr(parse("-- on a.b\n-- nothing\n", &err), "p.sql:3:"));
}
END_TEST

START_TEST(wrong_sql_is_refused_with_the_line_of_its_statement)
{
    annal_error err;
    parse("-- on a.b\nDELETE FROM t;\n\n-- why\nDELETE FROM u;\n", &err);
    ck_assert_int_eq(err.status, ANNAL_ERR_SQL);
    ck_assert_str_eq(err.message, "p.sql:7: no such table: u");
    ck_assert_str_eq(parse("CREATE TABLE t (x);\n", &err), "p.sql:3: table t already exists");
}
END_TEST

START_TEST(a_handler_with_random_values_or_schema_changes_is_refused)
{
    annal_error err;
    ck_assert_ptr_nonnull(
        strstr(parse("-- on a\nDELETE FROM t WHERE n = random();\n", &err), ":4:"));
    ck_assert_ptr_nonnull(strstr(parse("-- on a\nDROP TABLE t;\n", &err), "p.sql:4:"));
    ck_assert_ptr_nonnull(strstr(parse("-- on a\nATTACH 'x.db' AS x;\n", &err), "p.sql:4:"));
}
END_TEST

START_TEST(only_fields_and_the_envelope_can_be_bound)
{
    annal_error err;
    ck_assert_str_eq(parse("-- on a\nINSERT INTO t VALUES ($x::y, :seq);\n", &err), "");
    ck_assert_ptr_nonnull(strstr(parse("-- on a\nINSERT INTO t VALUES (?, 1);\n", &err), "'?'"));
    ck_assert_ptr_nonnull(
        strstr(parse("-- on a\nINSERT INTO t VALUES (:now, 1);\n", &err), ":now"));
}
END_TEST

/* The product does not check its own pack. */
START_TEST(the_core_pack_parses)
{
    annal_pack *pack = NULL;
    ck_ok(annal_pack_parse("core.sql", annal_slice_of(annal__builtin_pack("core")), &pack, err));
    annal_pack_free(pack);
    ck_ok(annal__pack_core(&pack, err));
    ck_assert_str_eq(annal__pack_name(pack), "core");
    ck_assert_str_eq(annal__pack_database(pack), "sessions.db");
    annal_pack_free(pack);
}
END_TEST

/* The text is split without SQLite; a file with other tables is rebuilt (shape.h). */
START_TEST(the_text_of_a_built_in_pack_is_cut_as_sqlite_does)
{
    const char *name;
    for (size_t i = 0; (name = annal__builtin_name(i)) != NULL; i++) {
        annal_pack *pack = NULL;
        struct shape cut = {0};
        ck_ok(annal_pack_parse(name, annal_slice_of(annal__builtin_pack(name)), &pack, err));
        ck_ok(annal__shape_of_text(&cut, pack->tables, err));
        ck_assert_uint_gt(cut.count, 0);
        ck_assert_uint_eq(cut.count, pack->shape.count);
        for (size_t j = 0; j < cut.count; j++) {
            const struct shape_object *a = &cut.objects[j], *b = &pack->shape.objects[j];
            ck_assert_msg(strcmp(a->type, b->type) == 0 && annal__slice_same(a->name, b->name) &&
                              annal__slice_same(a->table, b->table) &&
                              annal__slice_same(a->head, b->head) &&
                              annal__slice_same(a->sql, b->sql),
                          "pack %s: %s '%.*s'", name, b->type, ANNAL_FMT(b->name));
        }
        annal__shape_done(&cut);
        annal_pack_free(pack);
    }
}
END_TEST

Suite *suite_pack(void)
{
    Suite *suite = suite_create("pack");
    TCase *all = suite_case(suite, "all", NULL, NULL);
    tcase_add_test(all, the_header_line_sets_pack_version_and_database);
    tcase_add_test(all, a_file_without_the_header_line_is_not_a_pack);
    tcase_add_test(all, a_section_may_name_several_types_and_a_guard);
    tcase_add_test(all, a_wrong_section_is_refused_with_file_and_line);
    tcase_add_test(all, wrong_sql_is_refused_with_the_line_of_its_statement);
    tcase_add_test(all, a_handler_with_random_values_or_schema_changes_is_refused);
    tcase_add_test(all, only_fields_and_the_envelope_can_be_bound);
    tcase_add_test(all, the_core_pack_parses);
    tcase_add_test(all, the_text_of_a_built_in_pack_is_cut_as_sqlite_does);
    return suite;
}
