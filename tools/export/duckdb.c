/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/duckdb.h"

#include "tools/cli/out.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__aarch64__)
#define NPM_PACKAGE "@duckdb/node-bindings-linux-arm64"
#else
#define NPM_PACKAGE "@duckdb/node-bindings-linux-x64"
#endif

struct duckdb duckdb;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define FUNCTION(member)                                                                           \
    {                                                                                              \
        "duckdb_" #member, offsetof(struct duckdb, member)                                         \
    }
    FUNCTION(library_version),
    FUNCTION(create_config),
    FUNCTION(set_config),
    FUNCTION(destroy_config),
    FUNCTION(open_ext),
    FUNCTION(close),
    FUNCTION(connect),
    FUNCTION(disconnect),
    FUNCTION(query),
    FUNCTION(result_error),
    FUNCTION(destroy_result),
    FUNCTION(free),
    FUNCTION(create_table_function),
    FUNCTION(destroy_table_function),
    FUNCTION(table_function_set_name),
    FUNCTION(table_function_set_extra_info),
    FUNCTION(table_function_set_bind),
    FUNCTION(table_function_set_init),
    FUNCTION(table_function_set_function),
    FUNCTION(register_table_function),
    FUNCTION(bind_get_extra_info),
    FUNCTION(bind_add_result_column),
    FUNCTION(init_set_max_threads),
    FUNCTION(function_get_extra_info),
    FUNCTION(function_set_error),
    FUNCTION(create_logical_type),
    FUNCTION(destroy_logical_type),
    FUNCTION(vector_size),
    FUNCTION(data_chunk_get_vector),
    FUNCTION(data_chunk_set_size),
    FUNCTION(vector_get_data),
    FUNCTION(vector_get_validity),
    FUNCTION(vector_ensure_validity_writable),
    FUNCTION(validity_set_row_invalid),
    FUNCTION(vector_assign_string_element_len),
#undef FUNCTION
};

_Static_assert(sizeof functions / sizeof functions[0] * sizeof(void (*)(void)) ==
                   sizeof(struct duckdb),
               "each function of struct duckdb is looked up");

/*
 * Load Python's library before the module of DuckDB's wheel, _duckdb.cpython-311-….so: the module
 * contains DuckDB's functions for C, too, and needs the symbols of Python. No interpreter runs. The
 * library is the system's, or belongs to the Python whose site-packages contain the module.
 */
static void load_python(const char *named)
{
    const char *version = strstr(named, ".cpython-3"), *name = strrchr(named, '/');
    char file[32], path[4096];
    unsigned minor;
    if (version == NULL || sscanf(version, ".cpython-3%2u-", &minor) != 1)
        return;
    snprintf(file, sizeof file, "libpython3.%u.so.1.0", minor);
    if (dlopen(file, RTLD_NOW | RTLD_GLOBAL) != NULL || name == NULL)
        return;
    snprintf(path, sizeof path, "%.*s/../../%s", (int)(name - named), named, file);
    (void)!dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static int fail_load(const char *named, const char *why)
{
    if (named != NULL && strstr(why, "undefined symbol: Py") != NULL)
        return fail_storage("Parquet needs DuckDB's library, and $ANNAL_DUCKDB names the module of "
                            "its Python package, which needs the library libpython3.N.so.1.0 of "
                            "the same Python (Debian: libpython3.N): %s",
                            why);
    if (named != NULL)
        return fail_storage(
            "Parquet needs DuckDB's library, and $ANNAL_DUCKDB does not point to it: %s", why);
    return fail_storage("Parquet needs DuckDB's library, which is not installed: run 'pip install "
                        "duckdb', then set ANNAL_DUCKDB to the file _duckdb.*.so of that package; "
                        "or run 'npm install --prefix DIR " NPM_PACKAGE "', then set ANNAL_DUCKDB "
                        "to DIR/node_modules/" NPM_PACKAGE "/libduckdb.so");
}

int duckdb_load(void)
{
    struct duckdb loaded;
    const char *named = getenv("ANNAL_DUCKDB");
    if (duckdb.library_version != NULL)
        return 0;
    if (named != NULL && named[0] == '\0')
        named = NULL;
    if (named != NULL)
        load_python(named);
    void *library = dlopen(named != NULL ? named : "libduckdb.so", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return fail_load(named, dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(library, functions[i].name);
        if (found == NULL)
            return fail_storage("Parquet needs DuckDB 1.2 or later: %s has no %s()",
                                named != NULL ? named : "libduckdb.so", functions[i].name);
        memcpy((char *)&loaded + functions[i].offset, &found, sizeof found);
    }
    duckdb = loaded;
    return 0;
}
