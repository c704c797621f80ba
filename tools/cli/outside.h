/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parse fields from outside: from a lake, a database, a stream, a server. Each kind of field has
 * one parser, with its limits, and a caller reads them from the front of a text one after the
 * other.
 *
 * (1) A field that does not fit sets is_bad, and then nothing more is read. The caller checks it
 *     once, at the end, with outside_end().
 * (2) Each field has one spelling, the spelling of annal: no sign, no leading zero, no space.
 * (3) After a failure the output of a parser is 0, or the empty text.
 */
#ifndef TOOLS_CLI_OUTSIDE_H
#define TOOLS_CLI_OUTSIDE_H

#include <annal/journal.h>

/* one less than the largest number, so that a next seq exists */
#define OUTSIDE_SEQ_MAX ((uint64_t)INT64_MAX - 1)
/* maximum of a number of events or rows: their sum does not overflow */
#define OUTSIDE_COUNT_MAX UINT64_C(1000000000000)
#define OUTSIDE_BYTES_MAX ((uint64_t)INT64_MAX)
enum { OUTSIDE_DAY_BYTES = 10 };

struct outside {
    const char *at; /* rest of the text, which ends with a NUL */
    bool is_bad;
};

/* Read the literal, which must follow. */
void outside_skip(struct outside *outside, const char *literal);

/* Read the literal if it follows. */
bool outside_has(struct outside *outside, const char *literal);

/* Read a session id, of all bytes that an id may have. */
void outside_session(struct outside *outside, char out[ANNAL_SESSION_ID_BYTES_MAX + 1]);

uint64_t outside_number(struct outside *outside, uint64_t most);
int64_t outside_signed(struct outside *outside); /* read a number of 64 bits */

/* Read microseconds since 1970, of the years 0000 to 9999. */
int64_t outside_time(struct outside *outside);

/* Read 16 hexadecimal digits. */
uint64_t outside_hash(struct outside *outside);

/* Read this many hexadecimal digits, such as the id of a journal (32) or a SHA-256 (64), and add a
 * NUL. */
void outside_hex(struct outside *outside, size_t digits, char *out);

/* Read a day, YYYY-MM-DD. */
void outside_day(struct outside *outside);

/* Return whether all of the text was read without an error. */
bool outside_end(const struct outside *outside);

#endif
