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
    const annal_slice *columns; /* their names */
    const bool *in_key;  /* which columns form the primary key; none if the table has no key: */
    int64_t rowid;       /* then this says which row. Else 0 */
    const bool *differs; /* which columns differ; all columns of an inserted or deleted row */
    const annal_value *before; /* by column; NULL if it was inserted */
    const annal_value *after;  /* NULL if it was deleted */
    /* Its index in its table's array of annal_state_json(), after all earlier changes were applied:
     * a JSON patch names it by that. */
    uint64_t position;
} annal_change;

/* Return 0 to continue; any other value stops, and is returned. What it gets is valid until it
 * returns. */
typedef int (*annal_change_fn)(void *arg, const annal_change *change);

/*
 * The rows that differ between two states of the same packs, in the order of annal_state_json(). It
 * walks both once, and keeps one row of each. Values are equal if they are the same JSON. fn must
 * not query either state.
 *
 * ANNAL_ERR_INVALID  the states have different tables
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_diff(annal_state *before, annal_state *after,
                                                         annal_change_fn fn, void *arg,
                                                         annal_error *err);

/*
 * As above, as a JSON patch (RFC 6902) that turns the annal_state_json() of before into
 * annal_state_json() of after: an array of "add", "remove" and "replace", to be applied in their
 * order. No newline at the end.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_state_patch(annal_state *before, annal_state *after,
                                                          annal_write_fn fn, void *arg,
                                                          annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
