#include "tests/support/runner.h"

Suite *suite_agentweaver(void);
Suite *suite_append(void);
Suite *suite_args(void);
Suite *suite_artifact(void);
Suite *suite_backup(void);
Suite *suite_cat(void);
Suite *suite_convert(void);
Suite *suite_delete(void);
Suite *suite_diff(void);
Suite *suite_doctor(void);
Suite *suite_export(void);
Suite *suite_follow(void);
Suite *suite_fork(void);
Suite *suite_formats(void);
Suite *suite_import(void);
Suite *suite_import_odd(void);
Suite *suite_importers(void);
Suite *suite_pack(void);
Suite *suite_parquet(void);
Suite *suite_player(void);
Suite *suite_plot(void);
Suite *suite_prose(void);
Suite *suite_prune(void);
Suite *suite_query(void);
Suite *suite_recovery(void);
Suite *suite_repair(void);
Suite *suite_replay(void);
Suite *suite_runs(void);
Suite *suite_stats(void);
Suite *suite_table(void);
Suite *suite_team(void);
Suite *suite_verbs(void);
Suite *suite_verify(void);

static Suite *(*const suites[])(void) = {
    suite_agentweaver, suite_append,    suite_args,    suite_artifact, suite_backup, suite_cat,
    suite_convert,     suite_delete,    suite_diff,    suite_doctor,   suite_fork,   suite_import,
    suite_import_odd,  suite_importers, suite_pack,    suite_prune,    suite_query,  suite_repair,
    suite_replay,      suite_runs,      suite_stats,   suite_table,    suite_team,   suite_verbs,
    suite_verify,      suite_formats,   suite_player,  suite_recovery, suite_prose,  suite_export,
    suite_plot,        suite_follow,    suite_parquet, NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
