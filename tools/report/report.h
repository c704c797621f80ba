/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report on sessions: sections, each a table from one SELECT, printed in one of four forms.
 *
 * (1) Rows contain each value in two forms, for programs and for people, so that each output form
 *     shows the same numbers.
 * (2) An unknown value is empty, and '-' for people: a cost that is neither in the log nor computed
 *     from a price is not 0.
 */
#pragma once

#include "journal/base/calendar.h"
#include "tools/cli/out.h"

#include <annal/query.h>

enum cell {
    CELL_TEXT,
    /* id of a session; people see the first letters of a UUID, which verbs accept as the id */
    CELL_SESSION,
    CELL_COUNT,
    CELL_MS,
    /* cost in microdollars; the next two columns are the part of it that was computed, and the
     * share of the tokens that it covers */
    CELL_COST,
    CELL_TIME,   /* time as ISO 8601 */
    CELL_INPUT,  /* arguments of a call, raw JSON */
    CELL_OUTPUT, /* result of a tool, raw JSON */
};

enum { COLUMNS_MAX = 10 };

struct report_column {
    /* name in JSON, and heading for people; a title of NULL: only for programs */
    const char *name, *title;
    enum cell cell;
    bool bar;    /* whether the column is drawn as a bar in a picture */
    bool spared; /* whether the column is left out first if the terminal is narrow */
    /* whether the column compares two rows: people see each text from the first difference on */
    bool differs;
};

/* The scope of a report: the parameters ?1 to ?4 of every section are sessions, since, until and
 * limit; show/usage.sql has two more. */
struct report_scope {
    annal_slice sessions;     /* ids as a JSON array; empty for all sessions */
    annal_slice since, until; /* ISO 8601; empty for no bound */
    uint64_t limit;           /* maximum number of rows of a section */
    enum period by;           /* unit of time for tokens and cost */
};

struct report_row {
    char *shown[COLUMNS_MAX];
    annal_value values[COLUMNS_MAX]; /* values for programs; a text is in shown or in raw */
    char *raw[COLUMNS_MAX];
    char *whole; /* complete JSON of the column that compares rows */
};

struct report_section {
    const char *name, *title;
    bool if_any; /* whether to leave out the section if it has no rows */
    /* whether to print the section only if `by` is the unit of time of the report; the title of the
     * section then ends with the time zone */
    bool of_period;
    enum period by;
    /* NULL, or the panels of show/usage.sql whose rows are `used` in the SQL, each between
     * spaces */
    const char *panels;
    const char *sql; /* the name of the file in sql/ that has the SELECT */
    struct report_column columns[COLUMNS_MAX]; /* a name of NULL ends them */

    struct report_row *rows;
    size_t count;
};

/* The sections of a report; of a comparison, whose scope has two sessions; and of a report on logs,
 * whose scope has JSON instead of sessions. A name of NULL ends them. */
extern const struct report_section report_sections[], report_compare_sections[],
    report_source_sections[];

/* Run the SELECTs, and print the sections in this form, to the file `to` or, if it is NULL, to
 * stdout. Returns 0 or an exit status. */
enum report_form { REPORT_TABLE, REPORT_JSONL, REPORT_MARKDOWN, REPORT_SVG };
int report_print(const struct report_section *from, annal_index *index,
                 const struct report_scope *scope, enum report_form form, const char *to);

/* Append the SQL of a section to out. Its parameters are the sessions, since, until and the limit;
 * for a section with panels also the word for the unit of time, and the panels. */
annal_status report_sql(const struct report_section *section, annal_index *index, struct buf *out);

/* Fill the rows of a section. Returns 0 or an exit status. */
int report_fill(struct report_section *section, annal_index *index,
                const struct report_scope *scope);
void report_clear(struct report_section *section);

int report_columns(const struct report_section *section);
static inline bool report_is_number(enum cell cell)
{
    return cell == CELL_COUNT || cell == CELL_MS || cell == CELL_COST;
}

void report_markdown(const struct report_section *section);

/* Print all sections as one SVG picture. Returns an exit status. */
void report_svg(const struct report_section *sections, size_t count, annal_slice title);
