/* SPDX-License-Identifier: Apache-2.0 */
/* Set the parameters of an SQL statement. A value borrows its text. */
#ifndef TOOLS_SHOW_VALUES_H
#define TOOLS_SHOW_VALUES_H

#include <annal/query.h>

static inline annal_value integer_value(int64_t integer)
{
    return (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = integer};
}

static inline annal_value text_value(annal_slice text)
{
    return (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = text};
}

/* Set a text; an empty text becomes NULL. */
static inline annal_value text_or_null(annal_slice text)
{
    return text.len > 0 ? text_value(text) : (annal_value){.kind = ANNAL_VALUE_NULL};
}

/* Set a text; NULL becomes SQL's NULL. */
static inline annal_value string_value(const char *string)
{
    return string == NULL ? (annal_value){.kind = ANNAL_VALUE_NULL}
                          : text_value(annal_slice_of(string));
}

/* Set a time in the form of the tables; NULL for 0. The value borrows text. */
static inline annal_value time_or_null(int64_t time_us, char text[ANNAL_TIME_BYTES])
{
    annal_time_format(time_us, text);
    return string_value(time_us == 0 ? NULL : text);
}

#endif
