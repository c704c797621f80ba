#include "tests/support/runner.h"

Suite *suite_grammar(void);

static Suite *(*const suites[])(void) = {
    suite_grammar,
    NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
