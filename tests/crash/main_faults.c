#include "tests/support/runner.h"

Suite *suite_faults(void);

static Suite *(*const suites[])(void) = {
    suite_faults,
    NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
