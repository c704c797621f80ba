/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Print the output of the command. Data goes to stdout, everything else to stderr. A terminal
 * receives no control characters except those of the command itself; see visible.h.
 *
 * A table is printed in one of three formats from the same calls: aligned for people, JSON lines,
 * or CSV (RFC 4180). An aligned table takes its widths from its first rows and prints later rows at
 * once, so that its memory is bounded.
 */
#ifndef TOOLS_CLI_OUT_H
#define TOOLS_CLI_OUT_H

#include "journal/base/buf.h"
#include "tools/cli/human.h"

#include <annal/base.h>

#include <stdio.h>

/*
 * ---- Messages: "annal: <sentence>" on stderr, one line: line breaks in it are made visible ----
 */

/* Print a message, and return the exit status of that kind. */
int fail_usage(const char *format, ...) ANNAL_PRINTF(1, 2);
int fail_refused(const char *format, ...) ANNAL_PRINTF(1, 2);
int fail_storage(const char *format, ...) ANNAL_PRINTF(1, 2);

/* Find the exit status for a failure of the library; fail_error() prints its message, too. */
int error_exit(annal_status status);
int fail_error(const annal_error *err);

/* Print a remark that does not change the exit status. */
void say(const char *format, ...) ANNAL_PRINTF(1, 2);

/* Print warnings of a library to stderr, as its log callback. arg is not used. */
void say_log(void *arg, annal_log_level level, const char *message);

/* ---- The streams ---- */

/*
 * Set up the streams: call it before any output, and whenever descriptor 1 has become another file.
 * Control characters for a terminal are made visible, see visible.h.
 */
void out_open(void);

#define CLEAR_LINE "\r\033[K"

/* Print a control sequence of the command, such as one that clears a line, unchanged. */
void out_control(FILE *stream, const char *sequence);

/* Set the colour of what follows on stdout, "1;31", or "0"; does nothing without colours. */
void out_style(const char *code);

/*
 * From now on append the output for stdout to text, as a terminal would receive it; NULL: restore
 * stdout.
 */
void out_capture(struct buf *text);

/* ---- stdout ---- */

/* Flush. A reader that is gone (head) is not a failure. False: nothing more needs to be written. */
bool out_flush(void);
bool out_wanted(void);
bool out_reader_is_gone(void); /* for callers that wait without writing */

/* Find the exit status at the end of the output: exit_status, or EXIT_STORAGE if it could not be
 * written. */
int out_finish(int exit_status);

void out_slice(annal_slice slice);
void out_plain(annal_slice text); /* for people, on one line: breaks and tabs become spaces */
void out_json_string(annal_slice text);

/* Print a text on one line, in at most this many columns, with an ellipsis if it is cut. Returns
 * the columns that it took. */
int out_cut(int columns, annal_slice text);

void out_time(int64_t time_us);

/* Print a time as human_time() writes it on a terminal, and as out_time() does elsewhere. */
void out_shown_time(int64_t time_us);

/*
 * Append a text on one line as stdout would print it: breaks and tabs become spaces and, on a
 * terminal, the rest is made visible, so that its width is final. ANNAL_ERR_NOMEM only.
 */
annal_status out_line(struct buf *out, annal_slice text);

/* Return whether to use colours: false if stdout is not a terminal, or NO_COLOR is set. */
bool out_colours(FILE *stream);
int out_columns(void); /* columns of the terminal, or $COLUMNS, or 0: unlimited */

/* ---- Tables ---- */

enum out_format { OUT_TABLE, OUT_JSONL, OUT_CSV };

struct column {
    const char *name;  /* field in JSON and CSV */
    const char *title; /* heading of an aligned table; NULL: not shown there */
    bool right;        /* aligned right */
    bool flexible;     /* may be cut if the terminal is too narrow */
    int least;         /* narrowest width before other columns are left out (8) */
    bool cut_left;     /* cut on the left, because its end tells it apart: a path */
    int spare;         /* left out if cutting is not enough, the highest first; 0: never */
};

struct table;

/* Create a table. columns must live as long as the table. NULL: no memory. */
struct table *table_new(enum out_format format, const struct column *columns, int count);

/* Print flexible columns in at most this many columns, even without a terminal. */
void table_limit(struct table *table, int columns);

/* If rows are wider than the terminal, print each row with a line for each column, uncut. */
void table_unfold(struct table *table);

/* Add the cells of a row, in order; then call table_row(). */
void table_text(struct table *table, annal_slice text);
void table_number(struct table *table, uint64_t number);
void table_count(struct table *table, uint64_t count); /* shown as "3,456" */
void table_signed(struct table *table, int64_t number);
void table_real(struct table *table, double number);
void table_null(struct table *table);
void table_time(struct table *table, int64_t time_us);  /* 0: no time */
void table_json(struct table *table, annal_slice json); /* a value that is JSON already */

/* Set what people see instead of the last cell ("3 min ago"). */
void table_shown(struct table *table, const char *format, ...) ANNAL_PRINTF(2, 3);

void table_row(struct table *table);

/* Print the held rows, and return whether a column is shown: it may have been left out. */
bool table_shows(struct table *table, int column);
void table_free(struct table *table); /* prints the held rows */

/* Write the shortest digits that read back as the same number; "null", because JSON has no
 * infinity. */
#define REAL_BYTES 40
const char *table_real_text(char text[REAL_BYTES], double number);

#endif
