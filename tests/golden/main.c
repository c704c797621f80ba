#include "tests/support/runner.h"

Suite *suite_golden(void);
Suite *suite_versions(void);

static Suite *(*const suites[])(void) = {
    suite_golden,
    suite_versions,
    NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
