/* SPDX-License-Identifier: Apache-2.0 */
/* What the times of a disk say; tests/commands/doctor.test has the rest. */
#include "tests/support/runner.h"
#include "tools/cmd/disk_probe.h"

#include <string.h>

static struct disk_probe judged(double write_us, double sync_us, int rotational)
{
    struct disk_probe probe = {.filesystem = "ext4",
                               .device = "sda",
                               .rotational = rotational,
                               .plain = {.rounds = 100, .p50_us = write_us},
                               .overwrite = {.rounds = 100, .p50_us = sync_us}};
    disk_probe_judge(&probe);
    return probe;
}

START_TEST(a_sync_faster_than_the_disk_can_be_is_suspicious)
{
    ck_assert(judged(1, 1.5, 0).suspicious);
    ck_assert(judged(5, 4, 0).suspicious);
    ck_assert(!judged(1, 110, 0).suspicious);
    ck_assert(!judged(1, 110, -1).suspicious);
    ck_assert(judged(1, 110, 1).suspicious);
    ck_assert(!judged(1, 8300, 1).suspicious);
    struct disk_probe memory = {.filesystem = "tmpfs", .in_memory = true};
    disk_probe_judge(&memory);
    ck_assert(memory.suspicious);
    ck_assert_ptr_nonnull(strstr(memory.conclusion, "memory"));
    ck_assert_ptr_nonnull(strstr(judged(1, 110, 0).conclusion, "only a power cut can prove it"));
}
END_TEST

Suite *suite_doctor(void)
{
    Suite *suite = suite_create("doctor");
    TCase *disk = suite_case(suite, "disk", NULL, NULL);
    tcase_add_test(disk, a_sync_faster_than_the_disk_can_be_is_suspicious);
    return suite;
}
