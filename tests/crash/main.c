#include "tests/support/runner.h"

Suite *suite_flips(void);
Suite *suite_flips_log(void);
Suite *suite_kill(void);
Suite *suite_kill_forks(void);
Suite *suite_rot(void);
Suite *suite_share(void);

static Suite *(*const suites[])(void) = {
    suite_flips, suite_flips_log, suite_kill, suite_kill_forks, suite_rot, suite_share, NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
