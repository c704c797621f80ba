#include "tests/support/runner.h"

Suite *suite_grammar(void);
Suite *suite_lionagi(void);
Suite *suite_teams(void);

static Suite *(*const suites[])(void) = {
    suite_grammar,
    suite_lionagi,
    suite_teams,
    NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
