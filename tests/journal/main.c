#include "tests/support/runner.h"

Suite *suite_json(void);

int main(int argc, char **argv)
{
    return run_suites(argc, argv, (Suite * (*const[])(void)){suite_json, NULL});
}
