/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The power is cut after every operation of a workload.
 *
 *     test_power quick [WORKLOAD|I/N]  few states after each operation
 *     test_power full [WORKLOAD|I/N]   the whole: make power
 *     test_power case NAME             one case, as a failure names it
 *     test_power SUITE                 another suite of this program: sim_disk, power_cases,
 *                                      power_artifacts
 *
 * I/N is the I-th of N shares of the workloads, so that N processes do them all.
 *
 * ANNAL_TEST_SEED sets another seed.
 */
#include "tests/crash/power_workloads.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

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
static const char *workload_wanted; /* NULL: all of the share */
static int share = 1, shares = 1;
static struct power_counts counts;

START_TEST(no_power_cut_loses_an_acknowledged_event)
{
    const struct power_workload *workload = &power_workloads[_i];
    bool wanted = workload_wanted != NULL ? strcmp(workload_wanted, workload->name) == 0
                                          : _i % shares == share - 1;
    settings.seed = random_init(SEED).state;
    if (wanted)
        power_explore(workload, &settings, &counts);
}
END_TEST

static Suite *suite_power(void)
{
    int workloads = 0;
    while (power_workloads[workloads].name != NULL)
        workloads++;
    Suite *suite = suite_create("power");
    TCase *tests = suite_case(suite, "power", NULL, NULL);
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, no_power_cut_loses_an_acknowledged_event, 0, workloads);
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

static bool is(const char *word, const char *other)
{
    return word != NULL && strcmp(word, other) == 0;
}

/* NULL: the word names nothing. */
static Suite *chosen(const char *word, const char *of)
{
    static const struct {
        const char *name;
        Suite *(*suite)(void);
    } others[] = {
        {"sim_disk", suite_sim_disk},
        {"power_cases", suite_power_cases},
        {"power_artifacts", suite_power_artifacts},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is(word, others[i].name))
            return others[i].suite();
    settings = is(word, "quick") ? quick : full;
    settings.progress = is(word, "full") && isatty(STDERR_FILENO);
    if (is(word, "case"))
        settings.only = of;
    else if (!is(word, "quick") && !is(word, "full"))
        return NULL;
    else if (of != NULL && sscanf(of, "%d/%d", &share, &shares) != 2)
        workload_wanted = of;
    return shares >= 1 && share >= 1 && share <= shares ? suite_power() : NULL;
}

int main(int argc, char **argv)
{
    Suite *suite = chosen(argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
    if (suite == NULL) {
        fputs("test_power quick|full [WORKLOAD|I/N], case NAME, sim_disk, power_cases, "
              "power_artifacts\n",
              stderr);
        return EXIT_FAILURE;
    }
    mallopt(M_MMAP_THRESHOLD, 64 << 20); /* each store allocates and frees buffers of a megabyte */
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* it counts */
    srunner_run(runner, NULL, NULL, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (settings.subsets > 0)
        print_counts();
    if (settings.subsets > 0 && counts.operations == 0)
        failed = fprintf(stderr, "there is no workload of this name\n");
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
