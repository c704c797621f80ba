/* SPDX-License-Identifier: Apache-2.0 */
/* A section of a pack, compiled: its statements, and the meaning of their parameters. */
#ifndef INDEX_PACK_HANDLER_H
#define INDEX_PACK_HANDLER_H

#include "index/pack/pack.h"

#include <sqlite3.h>

/* The source of a parameter's value. */
enum source { SESSION, SEQ, TS, TYPE, ID, CAUSE, DATA, FIELD };

struct param {
    enum source source;
    int field; /* number of the field, for FIELD */
};

struct statement {
    sqlite3_stmt *stmt;
    struct param *params; /* params[i] is parameter i + 1 */
    int param_count;
};

/* A compiled section of a pack. */
struct handler {
    const struct pack_section *section; /* section of the pack */
    /* the pack, if the section is compiled when it is first run; else NULL */
    const annal_pack *pack;
    struct statement *statements;
    size_t count;
    bool asks; /* whether its first statement only checks the guard, and is not run at replay */
    struct pack_fields *fields; /* fields that the statements use */
};

/* Compile a section. *handler is all zero; call annal__handler_done() even after a failure. */
annal_status annal__handler_compile(struct handler *handler, const annal_pack *pack,
                                    const struct pack_section *source, sqlite3 *db,
                                    annal_error *err);
void annal__handler_done(struct handler *handler);

/*
 * Bind the parameters, after annal__pack_fields_read() of the event's data; ts is the event's time
 * as text.
 */
void annal__handler_bind(const struct handler *handler, const struct statement *statement,
                         annal_slice session, const annal_event *event, const char *ts);

/*
 * Run the statements; returns a result code of SQLite. *out_holds (NULL at replay): whether the
 * first statement changed a row, or returned a row if it only checks; if not, the others are not
 * run.
 */
int annal__handler_run(const struct handler *handler, annal_slice session, const annal_event *event,
                       bool *out_holds);

/* Return whether a failure is about this event, and not about the database. */
bool annal__handler_is_refusal(int rc);

#endif
