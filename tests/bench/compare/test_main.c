#include "tests/support/runner.h"

Suite *suite_payloads(void);
Suite *suite_run(void);
Suite *suite_svg(void);

static Suite *(*const suites[])(void) = {suite_payloads, suite_run, suite_svg, NULL};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
