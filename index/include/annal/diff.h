/* SPDX-License-Identifier: Apache-2.0 */
/* The differences between two states: row by row, or as a JSON patch. */
#ifndef ANNAL_DIFF_H
#define ANNAL_DIFF_H

#include <annal/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annal_change_kind {
    ANNAL_ROW_INSERTED = 1,
    ANNAL_ROW_UPDATED = 2,
    ANNAL_ROW_DELETED = 3
} annal_change_kind;

/* One row that differs. Two rows are the same row if their primary keys are equal. */
typedef struct annal_change {
    annal_change_kind kind;
    annal_slice table;
    size_t column_count;
    const annal_slice *columns; /* names of the columns */
    /* whether each column belongs to the primary key; all false if the table has no key */
    const bool *in_key;
    int64_t rowid;       /* for a table without a primary key: rowid of the row; otherwise 0 */
    const bool *differs; /* whether each column differs; all true for an inserted or deleted row */
    const annal_value *before; /* old values of the columns; NULL for an inserted row */
    const annal_value *after;  /* new values of the columns; NULL for a deleted row */
    /* Index of the row in the array of its table in annal_state_json(), after all earlier changes
     * were applied: a JSON patch addresses the row by this index. */
    uint64_t position;
} annal_change;

/* A function that is called for each difference. It returns 0 to continue; any other value stops
 * the comparison, and is returned by it. change is valid until the function returns. */
typedef int (*annal_change_fn)(void *arg, const annal_change *change);

/*
 * Call fn for the rows that differ between two states of the same packs, in the order of
 * annal_state_json(). Each state is read once, and one row of each is kept in memory. Two values
 * are equal if their JSON is the same. fn must not query either state.
 *
 * ANNAL_ERR_INVALID  the states have different tables
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_diff(annal_state *before, annal_state *after,
                                                         annal_change_fn fn, void *arg,
                                                         annal_error *err);

/*
 * Write the differences as a JSON patch (RFC 6902) that turns annal_state_json() of before into
 * annal_state_json() of after: an array of "add", "remove" and "replace", to be applied in this
 * order. The patch ends without a newline.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_patch(annal_state *before, annal_state *after,
                                                          annal_write_fn fn, void *arg,
                                                          annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
