/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report on sessions: sections, each a table from one SELECT, printed in four forms.
 *
 * (1) A section contains each value in both forms, for programs and for people, so that each output
 *     format shows the same numbers.
 * (2) An unknown value is empty, and '-' for people: a cost without a log entry and without a price
 *     is not 0.
 */
#ifndef TOOLS_REPORT_REPORT_H
#define TOOLS_REPORT_REPORT_H

#include "journal/base/calendar.h"
#include "tools/cli/out.h"

#include <annal/query.h>

enum cell {
    CELL_TEXT,
    CELL_SESSION, /* people see the first letters of a UUID, which verbs accept as the id */
    CELL_COUNT,
    CELL_MS,
    CELL_COST,   /* microdollars; then come what of them was computed, and of which part of the
                     tokens they are the cost */
    CELL_TIME,   /* ISO 8601 */
    CELL_INPUT,  /* raw JSON: arguments of a call */
    CELL_OUTPUT, /* raw JSON: what a tool returned */
};

enum { COLUMNS_MAX = 10 };

struct report_column {
    const char *name, *title; /* title NULL: only for programs */
    enum cell cell;
    bool bar;     /* drawn as a bar in a picture */
    bool spared;  /* left out first if the terminal is narrow */
    bool differs; /* compares two rows: shown from where they differ */
};

/* The scope of a report; parameters ?1 to ?4 of every section. */
struct report_scope {
    annal_slice sessions;     /* JSON array; empty: all */
    annal_slice since, until; /* ISO 8601; empty: no limit */
    uint64_t limit;           /* most rows of a section */
    enum period by;           /* unit for tokens and cost */
};

struct report_row {
    char *shown[COLUMNS_MAX];
    annal_value values[COLUMNS_MAX]; /* text in shown, or in raw */
    char *raw[COLUMNS_MAX];
    char *whole; /* JSON of a column that differs */
};

struct report_section {
    const char *name, *title;
    bool if_any;    /* left out if it has no rows */
    bool of_period; /* printed if `by` is the period of the report; its title ends with the zone */
    enum period by;
    const char *sql;
    struct report_column columns[COLUMNS_MAX]; /* a name NULL ends them */

    struct report_row *rows;
    size_t count;
};

/* The sections; a name NULL ends them. The comparison requires a scope of two sessions. */
extern const struct report_section report_sections[], report_compare_sections[];

/* Run the SELECTs, and print the sections. 0, or an exit status. */
enum report_form { REPORT_TABLE, REPORT_JSONL, REPORT_MARKDOWN, REPORT_SVG };
int report_print(const struct report_section *from, annal_index *index,
                 const struct report_scope *scope, enum report_form form, const char *to);

/* Fill the rows. 0, or an exit status. */
int report_fill(struct report_section *section, annal_index *index,
                const struct report_scope *scope);
void report_clear(struct report_section *section);

int report_columns(const struct report_section *section);
static inline bool report_is_number(enum cell cell)
{
    return cell == CELL_COUNT || cell == CELL_MS || cell == CELL_COST;
}

void report_markdown(const struct report_section *section);

/* Print all sections as one picture. */
int report_svg(const struct report_section *sections, size_t count, annal_slice title);

#endif
