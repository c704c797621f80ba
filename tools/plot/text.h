/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that is composed in memory, and the words and numbers of pictures.
 *
 * A picture is complete before it is printed: a file is written at once, and a terminal never
 * receives half a picture.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/base.h>

#include <stdint.h>

/* Append a text, repeated. */
void text_repeat(struct buf *out, const char *text, int times);

/* Append text from an event in exactly `width` columns: a longer text is cut with a "…", a shorter
 * one is padded, on the left if right is set. */
void text_fit(struct buf *out, annal_slice text, int width, bool right);

/* Return the number of columns that a text needs. */
int text_width(annal_slice text);

/* What a number counts. */
enum unit { UNIT_COUNT, UNIT_MICROUSD };

/* Write a rounded value to text, and return text: "1,060", "12 k", "1.5 M"; "$0.50", "$12 k". */
#define TEXT_BYTES 64
const char *text_short(char text[TEXT_BYTES], int64_t value, enum unit unit);

/* Write a value with all digits to text, and return text: "12,345", "$12.35". */
const char *text_exact(char text[TEXT_BYTES], int64_t value, enum unit unit);

/* Write a duration to text, and return text: "350 ms", "2.5 s", "1 min 30 s", "1 h 28 min", "3 d 2
 * h". */
const char *text_span(char text[TEXT_BYTES], int64_t span_us);

/* Write a time to text, and return text: "2026-03-02T09:10:00Z", with the digits of a fraction that
 * are not 0. text_time_after() is for the second of two times: only "10:40:02Z" if the day is the
 * same. */
const char *text_time(char text[TEXT_BYTES], int64_t time_us);
const char *text_time_after(char text[TEXT_BYTES], int64_t time_us, int64_t first_us);
