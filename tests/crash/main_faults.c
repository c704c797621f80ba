#include "tests/support/runner.h"

Suite *suite_failures(void);
Suite *suite_faults(void);
Suite *suite_faults_index(void);

static Suite *(*const suites[])(void) = {
    suite_failures,
    suite_faults,
    suite_faults_index,
    NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
