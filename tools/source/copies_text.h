/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text that stands for a log which is not one file: the rows of a session in a database
 * (index/sys/row_text.h), or the files of a directory (copies_files.h).
 *
 * (1) Each line is the key of a piece of the log, a tab, and its content; a line without a tab is
 *     the head. If several lines have the same key, the last line counts.
 * (2) A log has grown if it has all earlier pieces, the same head, and no piece that became
 *     shorter. Then its new and changed lines follow the text of its newest generation. Otherwise
 *     it begins a generation, and so it does when its text would be twice as long as its pieces.
 */
#pragma once

#include <annal/base.h>

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#define COPIES_ROWS  "rows"
#define COPIES_FILES "files"

struct copies_text {
    const char *form; /* COPIES_ROWS or COPIES_FILES */
    struct stat st;   /* of the log */
    FILE *lines;      /* the present pieces */
    uint64_t bytes;   /* of lines */
    uint64_t hash;    /* of lines */
    FILE *grown;      /* the text of a log that has grown, rule (2) */
    uint64_t grown_bytes;
};

/* Begin a text, which may have been used for another log before. */
annal_status copies_text_begin(struct copies_text *text, annal_error *err);
annal_status copies_text_add(struct copies_text *text, annal_slice line, annal_error *err);
annal_status copies_text_end(struct copies_text *text, annal_error *err);
void copies_text_done(struct copies_text *text);

/* Compare with the text of the newest generation, which fd has. *out_grown: rule (2). */
annal_status copies_text_compare(struct copies_text *text, int fd, bool *out_grown,
                                 annal_error *err);
