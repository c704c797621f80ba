/* SPDX-License-Identifier: Apache-2.0 */
/* The C functions that this folder provides for Python; build.py reads this file, too. */
#ifndef LIBANNAL_NATIVE_H
#define LIBANNAL_NATIVE_H

#include <annal/annal.h>

int libannal_own_locks(void);                          /* locks.c */
uint64_t libannal_hash(const char *bytes, size_t len); /* name.c */

/* ---- append.c ---- */

/* A draft without its bytes, which are in the order of the fields. */
typedef struct libannal_draft {
    uint64_t type_len, data_len, id_len, cause_len;
    int64_t ts_us;
} libannal_draft;

/*
 * Call annal_pack_append() for `count` drafts: `heads` is an array of libannal_draft, `bytes` their
 * bytes, one after the other. Returns the seq of the first, or the status of a failure.
 */
int64_t libannal_append(annal_index *index, annal_writer *writer, const char *heads, size_t count,
                        const char *bytes, const annal_append_options *options, annal_error *err);

/* As above, for one draft that has only a type and data, wherever the session ends. */
int64_t libannal_append_one(annal_index *index, annal_writer *writer, const char *type,
                            size_t type_len, const char *data, size_t data_len, annal_level level,
                            annal_error *err);

/* ---- python_delta.c ---- */

/*
 * Describes new = old[:begin] + new[begin:][:inserted] + old[begin + skipped:][:copied] + the rest
 * of new
 */
typedef struct libannal_delta {
    size_t begin, inserted, skipped, copied;
} libannal_delta;

void libannal_delta_find(const char *old_bytes, size_t old_len, const char *new_bytes,
                         size_t new_len, libannal_delta *out);

/* ---- python_table.c ---- */

/*
 * One column. `seen` has bit 1 << kind for each annal_value_kind in it. numbers[0] is 0. For row i,
 * numbers[i + 1] is the integer, the bits of the real, or the end of its bytes (NULL: the same as
 * the row before): a column of text or blobs has Arrow's layout.
 */
typedef struct libannal_column {
    char *name;
    uint8_t *kinds;
    int64_t *numbers;
    char *bytes;
    size_t bytes_len;
    size_t bytes_room;
    uint32_t seen;
} libannal_column;

typedef struct libannal_table {
    size_t rows;
    size_t room;
    size_t column_count;
    libannal_column *columns;
} libannal_table;

/* Create a table; NULL: no memory. Free it with libannal_table_free(), which accepts NULL. */
libannal_table *libannal_table_new(void);
void libannal_table_free(libannal_table *table);

/* Callbacks for annal_index_sql() and annal_state_sql() whose arg is a table. */
int libannal_table_columns(void *table, const annal_row *row);
int libannal_table_row(void *table, const annal_row *row);

/*
 * Add events until the table has `rows` rows, or `bytes` of text and data, or the last call
 * returned another status, which is returned. Columns are session, seq, timestamp, type, id, cause,
 * data; events of a cursor belong to `session`, and end with to_seq.
 */
annal_status libannal_table_read_cursor(libannal_table *table, annal_cursor *cursor,
                                        annal_slice session, uint64_t to_seq, size_t rows,
                                        size_t bytes, annal_error *err);
annal_status libannal_table_read_query(libannal_table *table, annal_query *query, size_t rows,
                                       size_t bytes, annal_error *err);

/* Write Arrow's bitmap of a column, (rows + 7) / 8 bytes: the rows that are not NULL. */
void libannal_column_valid(const libannal_column *column, size_t rows, uint8_t *bitmap);
/* Write its integers and reals as reals. */
void libannal_column_reals(const libannal_column *column, size_t rows, double *reals);

#endif
