/*
 * The power is cut after every operation of a workload.
 *
 *     test_power                       the quick form: few states after each operation
 *     test_power full [WORKLOAD]       the whole: make power
 *     test_power case NAME             one case, as a failure names it
 *
 * ANNAL_TEST_SEED sets another seed.
 */
#include "tests/crash/power_workloads.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <check.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEED 20261120

Suite *suite_sim_disk(void);
Suite *suite_power_artifacts(void);
Suite *suite_power_cases(void);

static const struct power_settings full = {
    .subsets = 200, .recovery_every = 150, .recovery_subsets = 6, .index_every = 10};
static const struct power_settings quick = {
    .subsets = 2, .recovery_every = 151, .recovery_subsets = 1, .index_every = 40};

static struct power_settings settings;
static const char *workload_wanted;
static struct power_counts counts;

START_TEST(no_power_cut_takes_back_what_was_acknowledged)
{
    const struct power_workload *workload = &power_workloads[_i];
    settings.seed = random_init(SEED).state;
    if (workload_wanted == NULL || strcmp(workload_wanted, workload->name) == 0)
        power_explore(workload, &settings, &counts);
}
END_TEST

static Suite *suite_power(void)
{
    int workloads = 0;
    while (power_workloads[workloads].name != NULL)
        workloads++;
    Suite *suite = suite_create("power");
    TCase *tests = tcase_create("power");
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, no_power_cut_takes_back_what_was_acknowledged, 0, workloads);
    suite_add_tcase(suite, tests);
    return suite;
}

static void print_counts(void)
{
    printf("operations of the workloads  %12" PRIu64 "\n"
           "crash states                 %12" PRIu64 "  (%" PRIu64 " of them processes killed)\n"
           "recoveries crashed           %12" PRIu64 "  at %" PRIu64 " operations, in %" PRIu64
           " states\n"
           "different disks checked      %12" PRIu64 "\n"
           "recoveries                   %12" PRIu64 "\n"
           "indexes against a rebuild    %12" PRIu64 "\n",
           counts.operations, counts.states, counts.kills, counts.recoveries_crashed,
           counts.recovery_operations, counts.recovery_states, counts.distinct, counts.recoveries,
           counts.index_checks);
}

int main(int argc, char **argv)
{
    bool all = argc > 1 && strcmp(argv[1], "full") == 0;
    settings = argc > 1 ? full : quick;
    settings.progress = all && isatty(STDERR_FILENO);
    if (argc > 2 && all)
        workload_wanted = argv[2];
    if (argc > 2 && strcmp(argv[1], "case") == 0)
        settings.only = argv[2];
    mallopt(M_MMAP_THRESHOLD, 64 << 20); /* buffers of a megabyte come and go with every store */
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    SRunner *runner = srunner_create(suite_power());
    if (argc < 2) {
        srunner_add_suite(runner, suite_sim_disk());
        srunner_add_suite(runner, suite_power_cases());
        srunner_add_suite(runner, suite_power_artifacts());
    }
    srunner_set_fork_status(runner, CK_NOFORK); /* it counts */
    srunner_run(runner, NULL, NULL, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    print_counts();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
