/* SPDX-License-Identifier: Apache-2.0 */
/* A section of a pack, compiled: its statements, and what their parameters are. */
#ifndef INDEX_PACK_HANDLER_H
#define INDEX_PACK_HANDLER_H

#include "index/pack/pack.h"

#include <sqlite3.h>

/* What a parameter of a statement is bound to. */
enum source { SESSION, SEQ, TS, TYPE, ID, CAUSE, DATA, FIELD };

struct param {
    enum source source;
    int field; /* FIELD: its number */
};

struct statement {
    sqlite3_stmt *stmt;
    struct param *params; /* params[i] is parameter i + 1 */
    int param_count;
};

/* A compiled section of a pack. */
struct handler {
    const struct pack_section *section; /* of the pack */
    const annal_pack *pack;             /* not NULL: it is compiled when it is run */
    struct statement *statements;
    size_t count;
    bool asks; /* guarded, and the first statement only asks: it is not run at replay */
    struct pack_fields *fields; /* that the statements name */
};

/* *handler is all zero; annal__handler_done() must follow, also after a failure. */
annal_status annal__handler_compile(struct handler *handler, const annal_pack *pack,
                                    const struct pack_section *source, sqlite3 *db,
                                    annal_error *err);
void annal__handler_done(struct handler *handler);

/* After annal__pack_fields_read() of the event's data; ts is the event's time as text. */
void annal__handler_bind(const struct handler *handler, const struct statement *statement,
                         annal_slice session, const annal_event *event, const char *ts);

/*
 * Run the statements; returns a result code of SQLite. *out_holds (NULL at replay): whether the
 * first statement changed a row, or returned one if it only asks; if not, the others are not run.
 */
int annal__handler_run(const struct handler *handler, annal_slice session, const annal_event *event,
                       bool *out_holds);

/* Whether a failure is about this event, and not about the database. */
bool annal__is_refusal(int rc);

#endif
