/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors: embeddings, and the distance between them.
 *
 *     annal_f32(x)               a JSON array of numbers as a BLOB of float32, in the byte order of
 *                                this machine; a BLOB of complete floats unchanged; else NULL
 *     vec_distance_l2(a, b)      the length of a - b
 *     vec_distance_cosine(a, b)  1 - cos(a, b); NULL if a or b has length 0
 *
 * The distances have the names, the arguments and the results of the sqlite-vec extension, so SQL
 * written for sqlite-vec works here; if sqlite-vec is loaded, its functions replace ours. A vector
 * is a BLOB of float32, or a JSON array of numbers. Anything else, or two vectors of different
 * dimensions, is an error. We add up in double precision, so the last digits may differ from the
 * results of sqlite-vec.
 */
#include "index/db/functions.h"

#include "journal/base/alloc.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct vector {
    float *values; /* the numbers of the vector; NULL: there is no vector */
    size_t count;
};

static void vector_done(struct vector *vector)
{
    annal__free(vector->values);
    *vector = (struct vector){0};
}

/* ---- JSON arrays ---- */

/* Read a JSON number as a float. Returns false if word is another value, or if the float is not
 * finite. */
static bool read_number(annal_slice word, float *out)
{
    *out = (float)strtod(word.ptr, NULL);
    return isfinite(*out) && (*word.ptr == '-' || (*word.ptr >= '0' && *word.ptr <= '9'));
}

/* Read the numbers of a JSON array into vector->values, which has room for all of them. Returns
 * false if text is not an array of numbers, or is empty. */
static bool parse_numbers(annal_slice text, struct vector *vector)
{
    struct json_walk walk;
    annal_slice word;
    bool good =
        annal__json_check(text, 1, NULL) == JSON_VALID && annal__json_walk_array(&walk, text);
    while (good && annal__json_walk_item(&walk, &word))
        good = read_number(word, &vector->values[vector->count++]);
    return good && vector->count > 0;
}

static const char no_memory[] = "out of memory";

/* Parse a JSON array. Returns a message if text is not a vector, or NULL. */
static const char *read_text(const char *text, struct vector *out)
{
    struct vector vector = {0};
    size_t commas = 0;
    for (const char *at = text; *at != '\0'; at++)
        commas += *at == ',';
    vector.values = annal__zalloc((commas + 1) * sizeof *vector.values);
    if (vector.values == NULL)
        return no_memory;

    /* strtod() must read a decimal point, whatever the caller's locale is */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(plain);
    bool good = parse_numbers(annal_slice_of(text), &vector);
    uselocale(before);
    if (plain != (locale_t)0)
        freelocale(plain);
    if (!good) {
        vector_done(&vector);
        return text[strspn(text, " \t\r\n[]")] == '\0' ? "zero-length vectors are not supported."
                                                       : "JSON parsing error";
    }
    *out = vector;
    return NULL;
}

static const char *read_vector(sqlite3_value *value, struct vector *out)
{
    if (sqlite3_value_type(value) == SQLITE_TEXT) {
        const char *text = (const char *)sqlite3_value_text(value);
        return text == NULL ? no_memory : read_text(text, out);
    }
    if (sqlite3_value_type(value) != SQLITE_BLOB)
        return "Input must have type BLOB (compact format) or TEXT (JSON)";
    const void *blob = sqlite3_value_blob(value);
    size_t bytes = (size_t)sqlite3_value_bytes(value);
    if (bytes == 0)
        return "zero-length vectors are not supported.";
    if (bytes % sizeof(float) != 0)
        return "invalid float32 vector BLOB length. Must be divisible by 4";
    out->values = annal__zalloc(bytes); /* copied, because a blob may not be aligned for floats */
    if (out->values == NULL)
        return no_memory;
    memcpy(out->values, blob, bytes);
    out->count = bytes / sizeof(float);
    return NULL;
}

/* ---- The functions ---- */

void annal__vectors_f32(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct vector vector = {0};
    const char *why = read_vector(values[0], &vector);
    /* if memory ran out, fail: a NULL result would be stored in the table without notice */
    if (why == no_memory)
        sqlite3_result_error_nomem(context);
    else if (why == NULL)
        sqlite3_result_blob64(context, vector.values, vector.count * sizeof(float),
                              SQLITE_TRANSIENT);
    vector_done(&vector);
}

static void fail_vector(sqlite3_context *context, const char *which, const char *why)
{
    char *message = sqlite3_mprintf("Error reading %s vector: %s", which, why);
    if (message == NULL)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_error(context, message, -1);
    sqlite3_free(message);
}

/* Read both arguments. Returns false if an error was set as the result. */
static bool take_pair(sqlite3_context *context, sqlite3_value **values, struct vector *a,
                      struct vector *b)
{
    const char *why = read_vector(values[0], a);
    if (why != NULL) {
        fail_vector(context, "1st", why);
        return false;
    }
    why = read_vector(values[1], b);
    if (why != NULL) {
        fail_vector(context, "2nd", why);
        return false;
    }
    if (a->count == b->count)
        return true;
    char *message = sqlite3_mprintf(
        "Vector dimension mismatch. First vector has %lld dimensions, while the second has %lld "
        "dimensions.",
        (long long)a->count, (long long)b->count);
    sqlite3_result_error(context, message == NULL ? "Vector dimension mismatch." : message, -1);
    sqlite3_free(message);
    return false;
}

void annal__vectors_l2(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct vector a = {0}, b = {0};
    double sum = 0;
    if (take_pair(context, values, &a, &b)) {
        for (size_t i = 0; i < a.count; i++) {
            double apart = (double)a.values[i] - (double)b.values[i];
            sum += apart * apart;
        }
        sqlite3_result_double(context, sqrt(sum));
    }
    vector_done(&a);
    vector_done(&b);
}

void annal__vectors_cosine(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct vector a = {0}, b = {0};
    double dot = 0, a2 = 0, b2 = 0;
    if (take_pair(context, values, &a, &b)) {
        for (size_t i = 0; i < a.count; i++) {
            double x = (double)a.values[i], y = (double)b.values[i];
            dot += x * y;
            a2 += x * x;
            b2 += y * y;
        }
        if (a2 > 0 && b2 > 0)
            sqlite3_result_double(context, 1 - dot / (sqrt(a2) * sqrt(b2)));
    }
    vector_done(&a);
    vector_done(&b);
}
