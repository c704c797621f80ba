/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report on sessions: sections, each a table that one SELECT gives, printed in four forms.
 *
 * (1) A section holds the values as they are and as people see them, so that each form shows the
 *     same numbers.
 * (2) What is not known is empty, and '-' for people: a cost that no log and no price gives is not
 *     0.
 */
#ifndef TOOLS_REPORT_REPORT_H
#define TOOLS_REPORT_REPORT_H

#include "journal/base/calendar.h"
#include "tools/cli/out.h"

#include <annal/query.h>

enum cell {
    CELL_TEXT,
    CELL_SESSION, /* people see the beginning of a UUID, which verbs take as the id */
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
    const char *name, *title; /* title NULL: for programs alone */
    enum cell cell;
    bool bar;     /* what a bar shows in a picture */
    bool spared;  /* left out first if the terminal is narrow */
    bool differs; /* of two rows, shown from where they differ */
};

/* What is reported on; parameters ?1 to ?4 of every section. */
struct report_scope {
    annal_slice sessions;     /* a JSON array; empty: all */
    annal_slice since, until; /* ISO 8601; empty: without limit */
    uint64_t limit;           /* rows of a section */
    enum period by;           /* of tokens and cost */
};

struct report_row {
    char *shown[COLUMNS_MAX];
    annal_value values[COLUMNS_MAX]; /* text in shown, or in raw */
    char *raw[COLUMNS_MAX];
    char *whole; /* of a column that differs: its JSON */
};

struct report_section {
    const char *name, *title;
    bool if_any;    /* left out where it has no rows */
    bool of_period; /* printed if by is the period of the report; the title ends with the zone */
    enum period by;
    const char *sql;
    struct report_column columns[COLUMNS_MAX]; /* a name NULL ends them */

    struct report_row *rows;
    size_t count;
};

/* A name NULL ends them. Those that compare two sessions take both in scope. */
extern const struct report_section report_sections[], report_compare_sections[];

/* Ask and print sections. 0, or an exit status. */
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

/* All of them as one picture. */
int report_svg(const struct report_section *sections, size_t count, annal_slice title);

#endif
