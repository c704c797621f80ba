/* SPDX-License-Identifier: Apache-2.0 */
/* Writes times, sizes and counts for people. */
#pragma once

#include <stdint.h>

/* Write a time, in whole seconds and in the user's time zone, to text, and return text: "2026-03-02
 * 10:14:06". */
#define HUMAN_TIME_BYTES 24
void human_time(char text[HUMAN_TIME_BYTES], int64_t time_us);

/* Write the name of the user's time zone to text, and return text: --zone or TZ, else its
 * abbreviation. */
#define HUMAN_ZONE_BYTES 64
const char *human_zone(char text[HUMAN_ZONE_BYTES]);

/* Write a value to text, and return text: human_bytes() "1.2 MB", human_count() "3,456",
 * human_age() "3 min ago". */
#define HUMAN_BYTES 40
const char *human_bytes(char text[HUMAN_BYTES], uint64_t bytes);
const char *human_count(char text[HUMAN_BYTES], uint64_t count);
const char *human_age(char text[HUMAN_BYTES], int64_t time_us, int64_t now_us);
