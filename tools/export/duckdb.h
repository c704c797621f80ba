/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the C API of DuckDB's library that annal uses; the library is loaded on demand.
 *
 * Names and types follow the public documentation (duckdb.org/docs/stable/clients/c/api); annal is
 * not linked with the library. Tested with DuckDB 1.2, 1.4 and 1.5.
 */
#pragma once

#include <stdint.h>

typedef uint64_t idx_t;
typedef int duckdb_state; /* 0 means success */
typedef struct duckdb_database_of *duckdb_database;
typedef struct duckdb_connection_of *duckdb_connection;
typedef struct duckdb_config_of *duckdb_config;
typedef struct duckdb_logical_type_of *duckdb_logical_type;
typedef struct duckdb_table_function_of *duckdb_table_function;
typedef struct duckdb_bind_info_of *duckdb_bind_info;
typedef struct duckdb_init_info_of *duckdb_init_info;
typedef struct duckdb_function_info_of *duckdb_function_info;
typedef struct duckdb_data_chunk_of *duckdb_data_chunk;
typedef struct duckdb_vector_of *duckdb_vector;

/* Result of a query: five members that annal does not use, then one that only the library uses. */
typedef struct duckdb_result {
    idx_t unused_counts[3];
    void *unused_columns;
    char *unused_message;
    void *internal;
} duckdb_result;

enum duckdb_type {
    DUCKDB_BIGINT = 5,
    DUCKDB_DOUBLE = 11,
    DUCKDB_VARCHAR = 17,
    DUCKDB_BLOB = 18,
    DUCKDB_TIMESTAMP_TZ = 31
};

typedef void (*duckdb_bind_fn)(duckdb_bind_info info);
typedef void (*duckdb_init_fn)(duckdb_init_info info);
typedef void (*duckdb_rows_fn)(duckdb_function_info info, duckdb_data_chunk output);

/* Each member is the function duckdb_<member>(). */
struct duckdb {
    const char *(*library_version)(void);
    duckdb_state (*create_config)(duckdb_config *out);
    duckdb_state (*set_config)(duckdb_config config, const char *name, const char *value);
    void (*destroy_config)(duckdb_config *config);
    duckdb_state (*open_ext)(const char *path, duckdb_database *out, duckdb_config config,
                             char **out_error);
    void (*close)(duckdb_database *database);
    duckdb_state (*connect)(duckdb_database database, duckdb_connection *out);
    void (*disconnect)(duckdb_connection *connection);
    duckdb_state (*query)(duckdb_connection connection, const char *sql, duckdb_result *out);
    const char *(*result_error)(duckdb_result *result);
    void (*destroy_result)(duckdb_result *result);
    void (*free)(void *block);

    duckdb_table_function (*create_table_function)(void);
    void (*destroy_table_function)(duckdb_table_function *function);
    void (*table_function_set_name)(duckdb_table_function function, const char *name);
    void (*table_function_set_extra_info)(duckdb_table_function function, void *info,
                                          void (*destroy)(void *info));
    void (*table_function_set_bind)(duckdb_table_function function, duckdb_bind_fn bind);
    void (*table_function_set_init)(duckdb_table_function function, duckdb_init_fn init);
    void (*table_function_set_function)(duckdb_table_function function, duckdb_rows_fn rows);
    duckdb_state (*register_table_function)(duckdb_connection connection,
                                            duckdb_table_function function);
    void *(*bind_get_extra_info)(duckdb_bind_info info);
    void (*bind_add_result_column)(duckdb_bind_info info, const char *name,
                                   duckdb_logical_type type);
    void (*init_set_max_threads)(duckdb_init_info info, idx_t threads);
    void *(*function_get_extra_info)(duckdb_function_info info);
    void (*function_set_error)(duckdb_function_info info, const char *message);

    duckdb_logical_type (*create_logical_type)(int type);
    void (*destroy_logical_type)(duckdb_logical_type *type);
    idx_t (*vector_size)(void);
    duckdb_vector (*data_chunk_get_vector)(duckdb_data_chunk chunk, idx_t column);
    void (*data_chunk_set_size)(duckdb_data_chunk chunk, idx_t rows);
    void *(*vector_get_data)(duckdb_vector vector);
    uint64_t *(*vector_get_validity)(duckdb_vector vector);
    void (*vector_ensure_validity_writable)(duckdb_vector vector);
    void (*validity_set_row_invalid)(uint64_t *validity, idx_t row);
    void (*vector_assign_string_element_len)(duckdb_vector vector, idx_t row, const char *bytes,
                                             idx_t len);
};

extern struct duckdb duckdb; /* valid after duckdb_load() */

/*
 * Load the library: the file in $ANNAL_DUCKDB, else libduckdb.so as the system's loader finds it.
 * The current directory and those above it are not searched, because loading a library runs its
 * code, and others may choose what is in a directory. The library stays loaded until the process
 * ends. Returns 0, or an exit status after one line on stderr.
 */
int duckdb_load(void);
