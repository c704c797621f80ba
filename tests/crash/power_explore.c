/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crash/power_explore.h"

#include "journal/base/hash.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define KILLS_IN_A_WRITE 2
#define KILL_STATES      1000000 /* states from here on are kills */

struct explorer {
    const struct power_workload *workload;
    const struct power_settings *settings;
    struct power_counts *counts;
    struct power_run run;
    uint64_t *seen; /* hashes of what was checked; a table with open addressing */
    size_t seen_count, seen_room;
    uint64_t only[4]; /* operation, state, and of the recovery; 0: all */
    uint64_t checked; /* states */
};

/* A recovery that is being crashed. */
struct recovery {
    struct explorer *explorer;
    bool killed;
    uint64_t op, state; /* the crash that it follows */
};

/* ---- Random ids ---- */

static uint64_t random_state;

/* In the place of the system's: the same case gives the same bytes. */
ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
    (void)flags;
    uint8_t *at = buffer;
    for (size_t i = 0; i < length; i++) {
        struct random random = {random_state++};
        at[i] = (uint8_t)random_next(&random);
    }
    return (ssize_t)length;
}

/* ---- What was seen ---- */

static bool seen_before(struct explorer *explorer, uint64_t hash)
{
    if (2 * explorer->seen_count >= explorer->seen_room) {
        size_t room = explorer->seen_room == 0 ? 1024 : explorer->seen_room * 2;
        uint64_t *bigger = calloc(room, sizeof *bigger);
        ck_assert_ptr_nonnull(bigger);
        for (size_t i = 0; i < explorer->seen_room; i++) {
            size_t at = explorer->seen[i] % room;
            while (explorer->seen[i] != 0 && bigger[at] != 0)
                at = (at + 1) % room;
            if (explorer->seen[i] != 0)
                bigger[at] = explorer->seen[i];
        }
        free(explorer->seen);
        explorer->seen = bigger;
        explorer->seen_room = room;
    }
    hash += hash == 0;
    size_t at = hash % explorer->seen_room;
    while (explorer->seen[at] != 0 && explorer->seen[at] != hash)
        at = (at + 1) % explorer->seen_room;
    bool was = explorer->seen[at] == hash;
    explorer->seen[at] = hash;
    explorer->seen_count += !was;
    return was;
}

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t three[3] = {a, b, c};
    return annal__hash((const char *)three, sizeof three, 0);
}

/* ---- Checking one state ---- */

static void fail_case(const struct explorer *explorer, const char *name, const char *why)
{
    ck_abort_msg("after a crash, case %s of seed %" PRIu64 ":\n  %s\n  to repeat it: "
                 "ANNAL_TEST_SEED=%" PRIu64 " test_power case %s",
                 name, explorer->settings->seed, why, explorer->settings->seed, name);
}

static bool is_wanted(const struct explorer *explorer, unsigned level, uint64_t op, uint64_t state)
{
    return (explorer->only[level] == 0 || explorer->only[level] == op) &&
           (state == 0 || explorer->only[level + 1] == 0 || explorer->only[level + 1] == state);
}

/* Takes the disk. */
static void check_state(struct explorer *explorer, struct sim_disk *left, bool killed,
                        const char *name)
{
    struct power_check check = {.model = &explorer->run.model, .killed = killed};
    uint64_t every = explorer->settings->index_every;
    uint64_t key = mix(sim_disk_hash(left, ""), explorer->run.model.version, killed);
    if (seen_before(explorer, key) && explorer->only[0] == 0) {
        sim_disk_free(left);
        return;
    }
    explorer->counts->distinct++;
    check.with_index = every > 0 && (++explorer->checked % every == 0 || explorer->only[0] != 0);
    if (!power_check_disk(&check, left))
        fail_case(explorer, name, check.why);
    explorer->counts->recoveries += check.recoveries;
    explorer->counts->index_checks += check.index_checks;
    sim_disk_free(left);
}

/* ---- Crashing a recovery ---- */

static int crash_recovery(void *arg, struct sim_disk *disk, const struct sim_op *op)
{
    struct recovery *recovery = arg;
    struct explorer *explorer = recovery->explorer;
    uint64_t ids = random_state;
    struct sim_choices choices;
    uint64_t subsets = explorer->settings->recovery_subsets;
    if (!is_wanted(explorer, 2, op->number, 0))
        return 0;
    explorer->counts->recovery_operations++;
    sim_choices_init(
        &choices, disk,
        mix(mix(explorer->settings->seed, recovery->op, recovery->state), op->number, 7),
        explorer->only[3] > subsets ? explorer->only[3] : subsets);
    while (sim_choices_next(&choices)) {
        char name[160];
        struct sim_disk *left = sim_disk_crash(disk, &choices);
        if (!is_wanted(explorer, 2, op->number, choices.number)) {
            sim_disk_free(left);
            continue;
        }
        snprintf(name, sizeof name, "%s:%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".%" PRIu64,
                 explorer->workload->name, recovery->op, recovery->state, op->number,
                 choices.number);
        explorer->counts->recovery_states++;
        /* A process that only died lost nothing, but the power went then. */
        check_state(explorer, left, false, name);
    }
    random_state = ids;
    return 0;
}

static void explore_recovery(struct explorer *explorer, struct sim_disk *left, bool killed,
                             uint64_t op, uint64_t state)
{
    struct recovery recovery = {explorer, killed, op, state};
    const annal_store_options options = {.no_keeper = true, .wait_ms = 1, .region_bytes = 1 << 20};
    annal_store *store = NULL;
    annal_error err = {0};
    uint64_t number = left->ops;
    left->hook = crash_recovery;
    left->hook_arg = &recovery;
    explorer->counts->recoveries_crashed++;
    /* Before there is a store, there is nothing to recover. */
    annal_status status = power_open(sim_process_new(left), &options, &store, &err);
    if (status == ANNAL_OK)
        status = annal_store_close(store, &err);
    ck_assert_msg(status == ANNAL_OK || status == ANNAL_ERR_NOTFOUND, "recovery: %s", err.message);
    left->hook = NULL;
    ck_assert_uint_ge(left->ops, number);
}

/* ---- Crashing the workload ---- */

/* Takes the disk. */
static void visit(struct explorer *explorer, struct sim_disk *left, bool killed, uint64_t op,
                  uint64_t state)
{
    char name[160];
    uint64_t every = explorer->settings->recovery_every;
    snprintf(name, sizeof name, "%s:%" PRIu64 ".%" PRIu64, explorer->workload->name, op, state);
    random_state = mix(explorer->settings->seed, op, state);
    bool recovery_too = explorer->only[2] != 0 || (explorer->only[0] == 0 && every > 0 &&
                                                   explorer->counts->states % every == 0);
    explorer->counts->states++;
    if (recovery_too) {
        struct sim_disk *copy = sim_disk_kill(left, NULL, 0);
        explore_recovery(explorer, copy, killed, op, state);
        sim_disk_free(copy);
        random_state = mix(explorer->settings->seed, op, state);
    }
    check_state(explorer, left, killed, name);
}

static void kill_processes(struct explorer *explorer, struct sim_disk *disk,
                           const struct sim_op *op)
{
    struct random random = {mix(explorer->settings->seed, op->number, 99)};
    size_t cuts = op->kind == SIM_WRITE && op->len > 1 ? KILLS_IN_A_WRITE : 0;
    for (size_t i = 0; i <= cuts; i++) {
        size_t written = i == 0 ? 0 : 1 + (size_t)random_below(&random, op->len - 1);
        uint64_t state = KILL_STATES + i;
        if (!is_wanted(explorer, 0, op->number, state))
            continue;
        explorer->counts->kills++;
        visit(explorer, sim_disk_kill(disk, op, written), true, op->number, state);
    }
}

/* What the workload wants to fail; the disk before it was crashed like any other. */
static int fails(struct power_run *run, const struct sim_op *op)
{
    size_t length = strlen(op->name);
    size_t wanted = run->fail_name == NULL ? 0 : strlen(run->fail_name);
    if (wanted == 0 || op->kind != run->fail_kind || length < wanted ||
        strcmp(op->name + length - wanted, run->fail_name) != 0)
        return 0;
    run->fail_name = NULL;
    return run->fail_errno;
}

static int crash_workload(void *arg, struct sim_disk *disk, const struct sim_op *op)
{
    struct explorer *explorer = arg;
    uint64_t ids = random_state;
    uint64_t subsets = explorer->settings->subsets;
    struct sim_choices choices;
    explorer->counts->operations++;
    if (!is_wanted(explorer, 0, op->number, 0))
        return fails(&explorer->run, op);
    sim_choices_init(&choices, disk, mix(explorer->settings->seed, op->number, 0), subsets);
    while (sim_choices_next(&choices)) {
        struct sim_disk *left = sim_disk_crash(disk, &choices);
        if (is_wanted(explorer, 0, op->number, choices.number))
            visit(explorer, left, false, op->number, choices.number);
        else
            sim_disk_free(left);
    }
    kill_processes(explorer, disk, op);
    if (explorer->settings->progress)
        fprintf(stderr, "\r%s: operation %" PRIu64 " (%s %.40s), %" PRIu64 " crash states  ",
                explorer->workload->name, op->number, sim_op_name(op->kind), op->name,
                explorer->counts->states + explorer->counts->recovery_states);
    random_state = ids;
    return fails(&explorer->run, op);
}

static void read_case(struct explorer *explorer)
{
    const char *only = explorer->settings->only;
    const char *at = only == NULL ? NULL : strchr(only, ':');
    for (size_t i = 0; i < 4 && at != NULL; i++) {
        explorer->only[i] = strtoull(at + 1, NULL, 10);
        at = strchr(at + 1, '.');
    }
}

void power_explore(const struct power_workload *workload, const struct power_settings *settings,
                   struct power_counts *counts)
{
    struct explorer explorer = {.workload = workload, .settings = settings, .counts = counts};
    size_t length = strlen(workload->name);
    if (settings->only != NULL &&
        (strncmp(settings->only, workload->name, length) != 0 || settings->only[length] != ':'))
        return;
    read_case(&explorer);
    random_state = settings->seed;
    explorer.run.disk = sim_disk_new();
    explorer.run.disk->hook = crash_workload;
    explorer.run.disk->hook_arg = &explorer;
    workload->run(&explorer.run);
    const struct sim_op end = {
        .kind = SIM_SYNC, .number = explorer.run.disk->ops + 1, .name = "the end"};
    crash_workload(&explorer, explorer.run.disk, &end);
    if (settings->progress)
        fprintf(stderr, "\n");
    sim_disk_free(explorer.run.disk);
    model_done(&explorer.run.model);
    free(explorer.seen);
}
