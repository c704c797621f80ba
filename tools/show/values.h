/* SPDX-License-Identifier: Apache-2.0 */
/* Makes parameters of an SQL statement. A value points to the caller's text. */
#pragma once

#include <annal/query.h>

static inline annal_value integer_value(int64_t integer)
{
    return (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = integer};
}

static inline annal_value text_value(annal_slice text)
{
    return (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = text};
}

/* Return a text as a parameter; NULL if it is empty. */
static inline annal_value text_or_null(annal_slice text)
{
    return text.len > 0 ? text_value(text) : (annal_value){.kind = ANNAL_VALUE_NULL};
}

/* Return a text as a parameter; SQL's NULL if string is NULL. */
static inline annal_value string_value(const char *string)
{
    return string == NULL ? (annal_value){.kind = ANNAL_VALUE_NULL}
                          : text_value(annal_slice_of(string));
}

/* Return a time in the form of the tables as a parameter, which points into text; NULL if it is
 * 0. */
static inline annal_value time_or_null(int64_t time_us, char text[ANNAL_TIME_BYTES])
{
    annal_time_format(time_us, text);
    return string_value(time_us == 0 ? NULL : text);
}
