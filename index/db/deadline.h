/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines, and the pauses between attempts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Return the monotonic time in microseconds wait_ms from now; INT64_MAX for ANNAL_NO_TIMEOUT. */
int64_t annal__deadline_after(uint32_t wait_ms);
bool annal__deadline_passed(int64_t deadline_us);

/* Sleep a little, longer with each attempt (1 to 20 ms). */
void annal__deadline_pause(unsigned attempt);
