/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of packs, compiled: their statements, and what is bound to the statements'
 * parameters. */
#pragma once

#include "index/pack/pack.h"
#include "index/pack/pack_fields.h"

#include <sqlite3.h>

/* The source of a parameter's value. */
enum source { SESSION, SEQ, TS, TYPE, ID, CAUSE, DATA, FIELD };

struct param {
    enum source source;
    int field; /* index of the field in handler->fields, if source is FIELD */
};

struct statement {
    sqlite3_stmt *stmt;
    struct param *params; /* params[i] describes parameter ?(i + 1) */
    int param_count;
};

/* One condition after `when`: the field is not NULL, or, if text is not empty, it is this text. */
struct condition {
    int field;
    annal_slice text; /* a part of section->when */
};

/* A compiled section of a pack. */
struct handler {
    const struct pack_section *section;
    /* pack of the section, if it is compiled when it first runs; else NULL */
    const annal_pack *pack;
    struct statement *statements;
    size_t count;
    bool asks; /* whether the first statement only checks the guard, and does not run at replay */
    /* whether the pack is built in: a single statement of it that fails has changed nothing */
    bool built_in;
    /* fields of the event's data that the statements and conditions use */
    struct pack_fields *fields;
    struct condition *conditions; /* the section runs only if one of them holds; NULL: always */
    size_t condition_count;
};

/* Compile a section into *handler, which is all zero before. Call annal__handler_done() even after
 * a failure. */
annal_status annal__handler_compile(struct handler *handler, const annal_pack *pack,
                                    const struct pack_section *source, sqlite3 *db,
                                    annal_error *err);
void annal__handler_done(struct handler *handler);

/*
 * Bind the parameters of a statement. annal__pack_fields_read() must have read the event's data
 * before; ts is the event's time as text.
 */
void annal__handler_bind(const struct handler *handler, const struct statement *statement,
                         annal_slice session, const annal_event *event, const char *ts);

/* Return whether the section is for this event: one of its conditions holds, or it has none.
 * annal__pack_fields_read() must have read the event's data before. */
bool annal__handler_wants(const struct handler *handler);

/* Return the index of the first statement that annal__handler_run() runs; asked: whether it checks
 * a guard. */
size_t annal__handler_first(const struct handler *handler, bool asked);

/*
 * Run the statements; returns a result code of SQLite. annal__pack_fields_read() must have read the
 * event's data before. *out_holds: whether the guard allows the
 * event, because the first statement changed a row, or returned a row if it only checks; if not,
 * the other statements do not run. out_holds is NULL at replay.
 */
int annal__handler_run(const struct handler *handler, annal_slice session, const annal_event *event,
                       bool *out_holds);

/* Return whether a result code of SQLite is a failure to accept this event, and not a failure of
 * the database. */
bool annal__handler_is_refusal(int rc);
