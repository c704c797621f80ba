/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in the grammar of JSON.
 *
 * A double represents a decimal if the shortest text that yields that double is the same number:
 * 0.1 is represented, although no double is exactly a tenth, and 3.14159265358979323846 is not. A
 * number that no double represents must not become one.
 */
#pragma once

#include <annal/base.h>

#define NUMBER_TEXT_BYTES 32

enum number_kind {
    NUMBER_UINT,
    NUMBER_INT, /* an integer below 0 */
    NUMBER_DOUBLE,
    NUMBER_OTHER /* neither a 64-bit integer nor a double represents it */
};

struct number {
    enum number_kind kind;
    uint64_t uint;
    int64_t sint;
    double real;
};

/* Read a number in the grammar of JSON, independent of the locale. Any other JSON value, and an
 * empty text, is NUMBER_OTHER. */
struct number annal__number_read(annal_slice text);

/* Write the shortest text that yields this finite double, with a point or an exponent, and return
 * its length. */
size_t annal__number_print(double real, char out[NUMBER_TEXT_BYTES]);

/* Write the digits of a number at `at`, at most 20, and return the position after them. */
char *annal__number_put(char *at, uint64_t value);

/* Return whether two numbers in the grammar of JSON are equal, digit for digit: 1.0 and 10e-1 are,
 * 0 and -0 are not. */
bool annal__number_equal(annal_slice a, annal_slice b);
