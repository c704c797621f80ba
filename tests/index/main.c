#include "tests/support/runner.h"

Suite *suite_backup(void);
Suite *suite_backup_order(void);
Suite *suite_fields(void);
Suite *suite_history(void);
Suite *suite_import(void);
Suite *suite_indexer(void);
Suite *suite_maintain(void);
Suite *suite_open(void);
Suite *suite_outbox(void);
Suite *suite_pack(void);
Suite *suite_pack_base(void);
Suite *suite_packs(void);
Suite *suite_permit(void);
Suite *suite_query(void);
Suite *suite_readers(void);
Suite *suite_search(void);
Suite *suite_snapshots(void);
Suite *suite_sql(void);
Suite *suite_state(void);
Suite *suite_state_diff(void);
Suite *suite_state_vfs(void);
Suite *suite_vectors(void);
Suite *suite_virtual(void);

static Suite *(*const suites[])(void) = {
    suite_history,   suite_import,   suite_pack,         suite_packs,
    suite_pack_base, suite_state,    suite_state_diff,   suite_open,
    suite_indexer,   suite_query,    suite_sql,          suite_snapshots,
    suite_vectors,   suite_maintain, suite_permit,       suite_outbox,
    suite_fields,    suite_backup,   suite_backup_order, suite_state_vfs,
    suite_virtual,   suite_readers,  suite_search,       NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
