#include "tests/support/runner.h"

Suite *suite_versions(void);

static Suite *(*const suites[])(void) = {
    suite_versions,
    NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
