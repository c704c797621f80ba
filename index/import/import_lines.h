/* SPDX-License-Identifier: Apache-2.0 */
/* A running import, and the batch of lines that it is inserting. */
#pragma once

#include "index/import/import_json.h"
#include "journal/base/buf.h"

#include <annal/import.h>

#include <sqlite3.h>

/* maximum number of statements in the sections batch and end together */
#define STATEMENTS_MAX 16

/* maximum number of statements of the section once that are kept to run again for the next log; an
 * importer with more statements is not reused */
#define AGAIN_MAX 16

#define HASH_TEXT_BYTES     33
#define HASH_NUMBERED_BYTES (HASH_TEXT_BYTES + 20)

/* maximum number of texts in the section "-- repeats", and length of a line that is searched for
 * them */
#define REPEATED_MAX       8
#define REPEATED_BYTES_MAX 4096

/* maximum number of importers whose sections detect can be prepared */
#define DETECTS_MAX 64

struct annal_import {
    sqlite3 *db;
    struct import_json *json;
    sqlite3_stmt *insert;
    sqlite3_stmt *clear;
    sqlite3_stmt *remember;
    sqlite3_stmt *knows;
    sqlite3_stmt *repeat;
    sqlite3_stmt *recall;
    int64_t recalled; /* number of events passed to annal__import_recall() */
    /* statements of the section batch, then of the section end */
    sqlite3_stmt *statements[STATEMENTS_MAX];
    size_t batch_count;
    size_t statement_count;
    /* statements of the section "-- once" that create no object; they run again for the next log */
    sqlite3_stmt *again[AGAIN_MAX];
    size_t again_count;
    /* statements that empty the importer's tables for the next log; NULL until the importer is
     * reused */
    sqlite3_stmt **emptying;
    size_t emptying_count;
    /* whether each of several lines with the same bytes is a record: the importer has the section
     * "-- repeats" */
    bool repeats;
    struct buf repeated; /* the lines of this section: texts in the lines that may be repeated */
    char last_with[REPEATED_MAX][HASH_TEXT_BYTES]; /* hash of the last line with each of them */
    bool text;   /* whether lines are passed as text: the importer has the section "-- text" */
    bool single; /* whether the import can be used for one log only */
    struct {
        const char *sql; /* text of the importer; its address identifies the importer */
        sqlite3_stmt *statement;
        /* importers whose section "-- detect" is prepared; statement is NULL for an importer
         * without this section */
    } detects[DETECTS_MAX];
    size_t detect_count;
    struct buf scratch;
    annal_import_counts counts;
    uint64_t last_counted; /* number of the last line that was added to counts.imported */
    /* whether a trigger of the importer failed on the line that is being inserted */
    bool refused;
    /* whether lines with the same bytes are different lines, because the log is not a file of
     * lines */
    bool may_repeat;
    bool has_ids; /* whether annal__import_remember() was called */
    bool failed;
    annal_import_owner_fn owner;
    void *owner_arg;
    annal_import_session_fn session;
    void *session_arg;
};

/* The lines of a batch that were not skipped, and whether each yielded an event. */
struct batch {
    struct row {
        uint64_t number;
        bool gave;
    } * rows; /* rows of the batch, in the order of their line numbers */
    size_t count;
    struct buf *mended; /* lines with U+FFFD for bytes that are not UTF-8 */
    size_t mended_count;
};

/* Free the members of a batch of lines. */
void annal__import_batch_done(annal_import *import, struct batch *batch);

/* Fail with the error of the importer's database. */
annal_status annal__import_fail(annal_import *import, annal_error *err, const char *what);

/* Write 128 bits of hash as 32 hex digits. */
void annal__import_hash(annal_slice bytes, uint64_t seed, char out[HASH_TEXT_BYTES]);

/* Insert a line into the table lines, in one or several rows, unless it is skipped. */
annal_status annal__import_insert(annal_import *import, struct batch *batch,
                                  const annal_import_line *line, annal_error *err);
