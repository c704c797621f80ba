/* SPDX-License-Identifier: Apache-2.0 */
#include "index/query/sql_functions.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <string.h>

enum { ARGUMENTS_MAX = 4 };

/* A function on a connection; text is kept between the calls. */
struct added {
    const annal__sql_function *function;
    struct buf text;
};

static annal_value value_of(sqlite3_value *value)
{
    annal_value out = {.kind = (annal_value_kind)(sqlite3_value_type(value) % SQLITE_NULL)};
    if (out.kind == ANNAL_VALUE_INTEGER)
        out.integer = sqlite3_value_int64(value);
    else if (out.kind == ANNAL_VALUE_REAL)
        out.real = sqlite3_value_double(value);
    else if (out.kind != ANNAL_VALUE_NULL)
        out.bytes = (annal_slice){sqlite3_value_blob(value), (size_t)sqlite3_value_bytes(value)};
    return out;
}

static void call(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct added *added = sqlite3_user_data(context);
    annal_value arguments[ARGUMENTS_MAX];
    for (int i = 0; i < count; i++)
        arguments[i] = value_of(values[i]);
    annal__buf_clear(&added->text);
    annal_status status = added->function->call(arguments, &added->text);
    if (status < 0)
        sqlite3_result_error_nomem(context);
    else if (status != ANNAL_END)
        sqlite3_result_text64(context, added->text.ptr == NULL ? "" : added->text.ptr,
                              added->text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static void forget(void *arg)
{
    struct added *added = arg;
    annal__buf_done(&added->text);
    annal__free(added);
}

annal_status annal__sql_functions_add(sqlite3 *db, const annal__sql_function *functions,
                                      struct buf *names, annal_error *err)
{
    for (; functions != NULL && functions->name != NULL; functions++) {
        struct added *added = annal__zalloc(sizeof *added);
        if (added == NULL ||
            annal__buf_append(names, functions->name, strlen(functions->name) + 1) < 0) {
            annal__free(added);
            return annal__fail(err, ANNAL_ERR_NOMEM, "add SQL functions: out of memory");
        }
        ANNAL_ASSERT(functions->arguments <= ARGUMENTS_MAX);
        *added = (struct added){.function = functions, .text = {.limit = SIZE_MAX}};
        /* SQLite frees `added`, also if this fails */
        int rc = sqlite3_create_function_v2(db, functions->name, functions->arguments,
                                            SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
                                            added, call, NULL, NULL, forget);
        if (rc != SQLITE_OK)
            return annal__db_fail(err, db, rc, "cannot add the SQL function %s", functions->name);
    }
    return names->len == 0 || annal__buf_append(names, "", 1) >= 0
               ? ANNAL_OK
               : annal__fail(err, ANNAL_ERR_NOMEM, "add SQL functions: out of memory");
}
