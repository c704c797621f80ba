#include "tests/support/runner.h"

Suite *suite_chore(void);
Suite *suite_container(void);
Suite *suite_load(void);
Suite *suite_policy(void);
Suite *suite_shelf(void);
Suite *suite_take(void);

static Suite *(*const suites[])(void) = {
    suite_policy, suite_container, suite_shelf, suite_load, suite_take, suite_chore, NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
