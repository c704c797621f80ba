#include "tests/support/runner.h"

Suite *suite_kill(void);

static Suite *(*const suites[])(void) = {
    suite_kill,
    NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
