#include "tests/support/runner.h"

Suite *suite_artifact(void);
Suite *suite_externalize(void);
Suite *suite_frame(void);
Suite *suite_names(void);
Suite *suite_sweep(void);
Suite *suite_verify(void);

static Suite *(*const suites[])(void) = {
    suite_names, suite_frame, suite_artifact, suite_externalize, suite_sweep, suite_verify, NULL,
};

int main(int argc, char **argv)
{
    return run_suites(argc, argv, suites);
}
