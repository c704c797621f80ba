/* SPDX-License-Identifier: Apache-2.0 */
/* Recover what a crash left, and hold it against what was promised. */
#ifndef TESTS_CRASH_POWER_CHECK_H
#define TESTS_CRASH_POWER_CHECK_H

#include "tests/crash/power_model.h"
#include "tests/support/sim_disk.h"

#define POWER_STORE "store" /* the directory of the store on the disk */

struct power_check {
    const struct model *model;
    bool killed;     /* the processes died, the machine did not */
    bool with_index; /* also that index, tables and snapshots equal fresh ones: slow */

    char why[1200];      /* when it fails: what is wrong */
    char log[600];       /* the last that the store said */
    uint64_t recoveries; /* stores that were opened on what a crash left */
    uint64_t index_checks;
};

/* A store on a disk as one of its processes sees it; as annal__store_open(). */
annal_status power_open(struct sim_process *process, const annal_store_options *options,
                        annal_store **out_store, annal_error *err);

/*
 * That what is left keeps every promise:
 *   - each session holds a prefix of what was appended, byte for byte, with everything that was
 *     acknowledged; what was appended as one is there whole or not at all; nothing is damaged
 *   - opening it once more changes nothing
 *   - appends go on at the next seq
 *   - with_index: index, tables and snapshots are what a fresh rebuild gives
 * The disk is changed. False: check->why says what does not hold.
 */
bool power_check_disk(struct power_check *check, struct sim_disk *disk);

#endif
