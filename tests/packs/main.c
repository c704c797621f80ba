#include "tests/support/runner.h"

Suite *suite_agentweaver(void);
Suite *suite_backup(void);
Suite *suite_contend(void);
Suite *suite_core(void);
Suite *suite_grammar(void);
Suite *suite_guard(void);
Suite *suite_lifecycle(void);
Suite *suite_lionagi(void);
Suite *suite_memory(void);
Suite *suite_memory_compile(void);
Suite *suite_mirror(void);
Suite *suite_prose(void);
Suite *suite_random(void);
Suite *suite_run(void);
Suite *suite_teams(void);
Suite *suite_user_pack(void);

static Suite *(*const suites[])(void) = {
    suite_agentweaver, suite_core,   suite_grammar,
    suite_lionagi,     suite_memory, suite_memory_compile,
    suite_mirror,      suite_random, suite_run,
    suite_lifecycle,   suite_teams,  suite_user_pack,
    suite_guard,       suite_prose,  suite_contend,
    suite_backup,      NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
