/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the output of the command. Data goes to stdout, everything else to stderr. A terminal
 * receives no control characters except those of the command itself (visible.h).
 *
 * A table is printed in one of three formats from the same calls: aligned for people, JSON lines,
 * or CSV (RFC 4180). An aligned table computes the widths of its columns from its first rows and
 * prints later rows at once, so that its memory is bounded.
 */
#pragma once

#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "tools/cli/command.h"
#include "tools/cli/human.h"

#include <annal/base.h>

#include <stdio.h>

/*
 * ---- Messages: "annal: <sentence>" on stderr, in one line: line breaks are printed as \u000a ----
 */

/* Print a message, and return the exit status in the name: EXIT_USAGE, EXIT_REFUSED or
 * EXIT_STORAGE. */
#define fail_usage(...)   out_fail(EXIT_USAGE, __VA_ARGS__)
#define fail_refused(...) out_fail(EXIT_REFUSED, __VA_ARGS__)
#define fail_storage(...) out_fail(EXIT_STORAGE, __VA_ARGS__)
int out_fail(int exit_status, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Return the exit status for a failure of the library; fail_error() also prints its message. */
int error_exit(annal_status status);
int fail_error(const annal_error *err);

/* Print a remark that does not change the exit status. */
void say(const char *format, ...) ANNAL_PRINTF(1, 2);

/* Print warnings of a library to stderr, as its log callback. arg is not used. */
void say_log(void *arg, annal_log_level level, const char *message);

/* ---- The streams ---- */

/*
 * Set up stdout and stderr. Call it before any output, and whenever descriptor 1 has become another
 * file. For a terminal, control characters are then made visible (visible.h).
 */
void out_open(void);

#define CLEAR_LINE "\r\033[K"

/* Print a control sequence of the command itself unchanged, such as one that clears a line. */
void out_control(FILE *stream, const char *sequence);

/* Set the colour of the following output on stdout: "1;31" is bold red, "0" the default. Does
 * nothing if colours are not used. */
void out_style(const char *code);

/*
 * Append all further output for stdout to text instead, as a terminal would receive it; with NULL,
 * print to stdout again.
 */
void out_capture(struct buf *text);

/* ---- stdout ---- */

/* out_flush() flushes stdout, out_wanted() does not; both return false after a failed write,
 * because no more output is needed then. A reader that closed its end, such as head, is not
 * reported as a failure. */
bool out_flush(void);
bool out_wanted(void);
/* Return whether the reader closed its end, for callers that wait without writing. */
bool out_reader_is_gone(void);

/* Flush stdout, and return the exit status of the command: EXIT_STORAGE if the output could not be
 * written, else exit_status. */
int out_finish(int exit_status);

void out_slice(annal_slice slice);
void out_plain(annal_slice text); /* print text on one line: line breaks and tabs become spaces */

/* Print JSON as annal__json_put() appends it: out_json("{\"type\":?,\"events\":#}", type,
 * JSON_U64(events)). */
#define out_json(format, ...)                                                                      \
    out_json_fill(format, (const annal_slice[]){__VA_ARGS__},                                      \
                  sizeof((const annal_slice[]){__VA_ARGS__}) / sizeof(annal_slice))
void out_json_fill(const char *format, const annal_slice *values, size_t count);

/* Print a text on one line in at most this many columns, with an ellipsis if it is cut. Returns the
 * number of columns used. */
int out_cut(int columns, annal_slice text);

/* A time as a value for out_json(), valid until the end of the block. */
#define JSON_TIME(time_us) out_json_time((char[ANNAL_TIME_BYTES]){0}, time_us)
annal_slice out_json_time(char text[ANNAL_TIME_BYTES], int64_t time_us);

/* Print a time: on a terminal as human_time(), otherwise as annal_time_format(). */
void out_shown_time(int64_t time_us);

/*
 * Append a text on one line as stdout would print it: line breaks and tabs become spaces; on a
 * terminal, control characters are made visible. So the width of the result is the width on the
 * screen. Fails only with ANNAL_ERR_NOMEM.
 */
annal_status out_line(struct buf *out, annal_slice text);

/* Return whether to use colours in a stream: only on a terminal, and not if NO_COLOR is set. */
bool out_colours(FILE *stream);
int out_columns(void); /* width of the terminal, or $COLUMNS; 0 for no limit */

/* ---- Tables ---- */

enum out_format { OUT_TABLE, OUT_JSONL, OUT_CSV };

struct column {
    const char *name;  /* name of the member in JSON, and of the column in CSV */
    const char *title; /* heading in an aligned table; NULL: the column is not printed in tables */
    bool right;        /* whether cells are aligned on the right */
    bool flexible;     /* whether cells may be cut if the terminal is too narrow */
    /* width, in characters, below which this column is cut only after other columns were left out;
     * 0 stands for 8 */
    int least;
    bool cut_left; /* whether to cut the beginning of a cell, because paths differ at the end */
    /* rank for leaving out columns if cutting is not enough: the column with the highest rank is
     * left out first; 0: this column never is */
    int spare;
};

struct table;

/* Create a table. columns must remain valid as long as the table exists. */
struct table *table_new(enum out_format format, const struct column *columns, int count);

/* Cut flexible columns to at most this many columns of text, even if stdout is not a terminal. */
void table_limit(struct table *table, int columns);

/* If rows are wider than the terminal, print each row as several lines, one for each column,
 * without cutting. */
void table_unfold(struct table *table);

/* Add the next cell of a row; after the last one, call table_row(). */
void table_text(struct table *table, annal_slice text);
void table_number(struct table *table, uint64_t number);
void table_count(struct table *table, uint64_t count); /* people see commas: "3,456" */
void table_signed(struct table *table, int64_t number);
void table_real(struct table *table, double number);
void table_null(struct table *table);
void table_time(struct table *table, int64_t time_us);  /* time in us; 0: no time */
void table_json(struct table *table, annal_slice json); /* adds a text that is JSON already */

/* Set the text that people see in the last cell, such as "3 min ago". */
void table_shown(struct table *table, const char *format, ...) ANNAL_PRINTF(2, 3);

void table_row(struct table *table);

/* Print the rows that were held back to compute the widths, and return whether the table shows a
 * column, which may have been left out. */
bool table_shows(struct table *table, int column);
void table_free(
    struct table *table); /* first prints the rows that were held back; table may be NULL */

/* table_real_text(): write the number to text with the fewest digits that read back as the same
 * number, and return text; "null" if the number is not finite, because JSON has no infinity. */
#define REAL_BYTES 40
const char *table_real_text(char text[REAL_BYTES], double number);
