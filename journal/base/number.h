/*
 * Numbers as JSON writes them.
 *
 * A double holds a decimal when the shortest text that gives that double is the same number: 0.1 is
 * held, although no double is exactly a tenth, and 3.14159265358979323846 is not. What is not held
 * must not become a double.
 */
#ifndef JOURNAL_BASE_NUMBER_H
#define JOURNAL_BASE_NUMBER_H

#include <annal/base.h>

#define NUMBER_TEXT_BYTES 32

enum number_kind {
    NUMBER_UINT,
    NUMBER_INT, /* below 0 */
    NUMBER_DOUBLE,
    NUMBER_OTHER /* none of these holds it */
};

struct number {
    enum number_kind kind;
    uint64_t uint;
    int64_t sint;
    double real;
};

/* Read a number of JSON grammar. Whatever the locale. */
struct number annal__number_read(annal_slice text);

/* The shortest text that gives this finite double, with a point or an exponent. Its length. */
size_t annal__number_print(double real, char out[NUMBER_TEXT_BYTES]);

/* Whether two numbers of JSON grammar are the same, digit for digit: 1.0 and 10e-1 are, 0 and -0
 * are not. */
bool annal__number_equal(annal_slice a, annal_slice b);

#endif
