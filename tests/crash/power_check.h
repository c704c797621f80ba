/* SPDX-License-Identifier: Apache-2.0 */
/* Recover what a crash left, and hold it against what was promised. */
#pragma once

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
 * Check that the disk after a crash keeps every promise:
 *   - each session holds a prefix of the appended events, byte for byte, with every acknowledged
 *     event; the events of one append exist together or not at all; no event is damaged
 *   - opening it once more changes nothing
 *   - appends continue at the next seq
 *   - with_index: index, tables and snapshots equal those of a rebuild
 * Changes the disk. If it returns false, check->why names the broken promise.
 */
bool power_check_disk(struct power_check *check, struct sim_disk *disk);
