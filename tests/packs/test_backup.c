/* SPDX-License-Identifier: Apache-2.0 */
/* Backups of a store with enabled packs. */
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include <annal/backup.h>

#include <stdlib.h>
#include <string.h>

#define RUN "20260116-143052-a7b3c9"
#define DB  "prose/runs/" RUN "/state.db"

static const char *directory, *restored;

static void save_and_open(annal_store **out_store, annal_index **out_index)
{
    annal_backup_result result;
    directory = tmpdir_path(&p.dir, "backup");
    restored = tmpdir_path(&p.dir, "restored");
    ck_ok(annal_backup_create(p.index, directory, NULL, &result, err));
    ck_ok(annal_backup_restore(directory, restored, NULL, &result, err));
    ck_ok(annal_store_open(restored, &(annal_store_options){.no_keeper = true}, out_store, err));
    ck_ok(annal_index_open(*out_store, NULL, out_index, err));
}

static void ck_restored(annal_index *index, const char *session, const char *select,
                        const char *rows)
{
    struct text text = {0};
    const annal_sql_options options = {.session = annal_slice_of(session)};
    text_add(&text, "", 0);
    ck_ok(annal_index_sql(index, annal_slice_of(select), &options, text_row, &text, err));
    ck_assert_str_eq(text.ptr, rows);
    free(text.ptr);
}

/* No query has drained the rows: the backup itself makes events of them. */
START_TEST(a_backup_contains_rows_that_the_shell_wrote_before_it)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    struct text text = {0};
    const annal_sql_options options = {.session = ANNAL_SLICE("prose_" RUN)};
    PACKS_ENABLE(&p, "prose");
    ck_append(&p, "prose_" RUN, "run.started", "{\"id\":\"" RUN "\",\"program_path\":\"p.prose\"}");
    ck_ok(annal_index_sql(p.index, ANNAL_SLICE("SELECT 1"), &options, text_row, &text, err));
    free(text.ptr);
    char *said =
        packs_shell(&p, DB,
                    "INSERT INTO bindings (name, kind, value) VALUES ('tide','let','high');"
                    "CREATE TABLE x_notes (t TEXT); INSERT INTO x_notes VALUES ('mine');");
    ck_assert_str_eq(said, "");
    free(said);
    save_and_open(&store, &index);
    ck_restored(index, "prose_" RUN, "SELECT name, value FROM bindings", "tide|high\n");
    ck_restored(index, "prose_" RUN, "SELECT t FROM x_notes", "mine\n");
    annal_index_close(index);
    ck_ok(annal_store_close(store, err));
}
END_TEST

START_TEST(a_restored_store_has_the_same_tables_of_packs)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    PACKS_ENABLE(&p, "lionagi", "teams");
    packs_add(&p, "mine",
              "-- pack mine version 1 database mine.db\nCREATE TABLE calls (tool TEXT);\n"
              "-- on tool.called\nINSERT INTO calls VALUES ($tool);\n");
    ck_append(&p, "team_t1", "team.created", "{\"name\":\"tides\",\"members\":[\"ada\"]}");
    ck_append(&p, "s", "tool.called", "{\"call_id\":\"c\",\"tool\":\"grep\"}");
    save_and_open(&store, &index);
    ck_restored(index, "", "SELECT name, members FROM teams", "tides|[\"ada\"]\n");
    ck_restored(index, "", "SELECT tool FROM mine.calls", "grep\n");
    annal_index_close(index);
    ck_ok(annal_store_close(store, err));
}
END_TEST

Suite *suite_backup(void)
{
    Suite *suite = suite_create("backup");
    TCase *tcase = suite_case(suite, "backup", packs_setup, packs_teardown);
    tcase_add_test(tcase, a_backup_contains_rows_that_the_shell_wrote_before_it);
    tcase_add_test(tcase, a_restored_store_has_the_same_tables_of_packs);
    return suite;
}
