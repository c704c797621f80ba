/* SPDX-License-Identifier: Apache-2.0 */
/* SELECTs that may call functions of the caller. */
#pragma once

#include "journal/base/buf.h"

#include <annal/query.h>

/*
 * An SQL function that always returns the same text for the same arguments. call() appends the text
 * to out, which is empty. ANNAL_END: the result is NULL.
 */
typedef struct annal__sql_function {
    const char *name;
    int arguments;
    annal_status (*call)(const annal_value *values, struct buf *out);
} annal__sql_function;

/* As annal_index_sql(). Besides the functions that are always allowed, the SELECT may call these,
 * of which the last has the name NULL; and it need not use all parameters. */
ANNAL_MUST_CHECK annal_status annal__view_select(annal_index *index, annal_slice sql,
                                                 const annal_sql_options *options,
                                                 const annal__sql_function *functions,
                                                 annal_row_fn fn, void *arg, annal_error *err);
