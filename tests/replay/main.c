#include "tests/support/runner.h"

Suite *suite_annal(void);
Suite *suite_paths(void);
Suite *suite_reducer(void);
Suite *suite_replay(void);
Suite *suite_tail(void);
Suite *suite_tail_file(void);
Suite *suite_tails(void);
Suite *suite_travel(void);

static Suite *(*const suites[])(void) = {suite_annal,  suite_paths,  suite_reducer,
                                         suite_replay, suite_tail,   suite_tail_file,
                                         suite_tails,  suite_travel, NULL};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
