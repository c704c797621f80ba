/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importers: a foreign log, line by line, becomes events. The rules of a format are a SQL file.
 *
 * An importer file has sections. "-- once" runs when the importer is opened: tables for what is
 * carried from line to line, triggers, views. "-- batch" runs for every batch of lines; its
 * statements that return columns return events, in this order:
 *
 *   session, ts, type, id, cause, data, line[, formerly]
 *
 * ts is in microseconds, 1 if no time is known (annal import then takes the time of a neighbouring
 * event, or of the file). id and cause may be NULL, line is the n of its line. formerly is NULL or
 * the id that an older version of the importer gave the event. All of it runs in a private database
 * in a temporary file, and finds there
 *
 *   source(kind, file, stem, container)
 *       one row: what annal_import_open() was given; stem is file without its last suffix
 *   options(name, value)
 *       further options of the caller; the names are the importer's own. annal import gives
 *       ":directory", the name of the directory of the log, and ":whole" for a document or a
 *       database that could be read to its end
 *   lines(row, n, hash, json, unreadable)
 *       the batch. row: 1, 2, …; n: number of the line in its file; hash: of its bytes, 32 hex
 *       digits; json: the line, if it is one JSON value, else NULL; unreadable: NULL, or a JSON
 *       object that wraps a line which is not: {"reason", "text", "base64" or "zero_bytes"[,
 *       "part"]}. Zero bytes before a value, as a power cut leaves them, are a row of their own
 *   session_id(text)
 *       text if it may be the id of a session, else an id made from it
 *   time_us(text)
 *       an ISO 8601 time in microseconds, NULL if it is not a time
 *   json_text(value)
 *       value as a JSON string, NULL for NULL
 *   json_fields(name, json, name, json, …)
 *       a JSON object of those fields whose value, a JSON text, is not NULL
 *   msgpack_json(blob)
 *       a msgpack value as JSON, NULL if it is not msgpack. Bytes are {"$base64":"…"}, an ext is
 *       {"$ext":type,"data":…}, in which data is decoded if it is msgpack itself
 *   otlp_json(value)
 *       a value of OpenTelemetry, such as {"intValue":"7"} or {"kvlistValue":…}, as plain JSON
 *   base64(blob)
 *   said(content)
 *       what the user said in a message, as a JSON string of at most 400 bytes: the content after
 *       the texts that the agent added before it. NULL if it added none, "" if nothing follows. The
 *       importer lists these texts in a view, added(begins, ends): ends is the text with which one
 *       ends, or NULL if it reaches to the end of the message; and what the agent puts around the
 *       words in a view, around(begins, opens, closes). Begins '<name>' is '<name a="b">', too. A
 *       block in tags that no view lists is added, too, if their lower-case name has - or _ and the
 *       closing tag ends a line
 *   record_owner(origin, session)
 *       the session that has the record with this identity (of the source, unique in the world):
 *       another session, from which this line was copied, or session itself. The event that session
 *       then has of the record must say it as data.source.origin. NULL for NULL. With a session
 *       of NULL: the session that has it, or NULL; it is not kept
 *   line_json(row)
 *       the json of a line of the batch. Unlike a column, it is not copied wherever it is used
 *
 * and ->, ->>, json_type(), json_remove() and json_each(), which give what SQLite's give, but list
 * the tokens of a line once for all statements. Other JSON functions of SQLite parse it again.
 *
 * Rows are inserted into lines one by one, in order, so what a trigger on lines keeps does not
 * depend on where a batch ends. Blank lines never arrive; nor, if container is lines, lines whose
 * bytes were in the file before: they are skipped and counted. With an empty section "-- repeats",
 * for logs whose lines have no identity but their place, these lines arrive, too: the hash of
 * the second is HASH.2. A line that does arrive must yield an event.
 *
 * "-- end", if there is one, is run by annal import for what only the end of the log shows, such as
 * that the last turn has ended: its statements return events, as statements of the batch do, and
 * find no lines. More lines may follow, and then another end. What is returned again must have the
 * same id. Facts that a log may change later, such as a title or a sum, are events of the end that
 * depend on the content of the store:
 *
 *   recorded(n, session, ts, type, id, data)
 *       events of the sessions that got events from the log, from earlier imports and from this
 *       import, in the order of n. The directive "-- recalls: TYPE TYPE/PREFIX …" at the head of
 *       the file lists their types, and prefixes of their ids. An event that the end returns is
 *       added to it at once: compute all of them into a table before
 *
 * "-- rows", as often as needed, is for logs that are SQLite databases: SELECTs that run there,
 * with the functions above, and return one column, a JSON object: a line. If a SELECT names a table
 * or column which this database does not have, the rest of its section is skipped. Rows of tables
 * that no SELECT reads are last, as {"table":"…","row":{…}}; rows of tables under "-- tables" have
 * this form, too, and precede all others.
 *
 * "-- detect" is one SELECT over source and lines (the first of a log) that returns how sure it is
 * that the log is of this kind: 0 to 100.
 *
 * How a log becomes lines is up to the caller: directives at the head of the file tell annal import
 * how to read directories and documents, see tools/import/directory.h and document.h.
 */
#ifndef ANNAL_IMPORT_H
#define ANNAL_IMPORT_H

#include <annal/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A longer line is cut into pieces of ANNAL_IMPORT_PIECE_BYTES, each an unreadable line of its own:
 * an importer's SQL needs up to forty times the bytes of a line in memory.
 */
#define ANNAL_IMPORT_LINE_BYTES_MAX ((64u << 20) - (64u << 10))
#define ANNAL_IMPORT_PIECE_BYTES    (8u << 20)

typedef struct annal_import annal_import;

typedef struct annal_import_option {
    annal_slice name;
    annal_slice value;
} annal_import_option;

/*
 * The session that has the record of this identity; session, if no session has it: then session
 * keeps it from now on, unless it is empty. Valid until the next call.
 */
typedef annal_slice (*annal_import_owner_fn)(void *arg, annal_slice origin, annal_slice session);

typedef struct annal_import_source {
    const char *kind;      /* "claude-code" */
    const char *file;      /* base name of the log */
    const char *container; /* source of the lines: "lines" (default), "document", … */
    const annal_import_option *options;
    size_t option_count;
    annal_import_owner_fn owner; /* for record_owner(); NULL: the record belongs to the session that
                                  * asks */
    void *owner_arg;
} annal_import_source;

/*
 * Prepare to import one file with the importer whose text is sql. One thread at a time.
 *
 * ANNAL_ERR_SQL  the importer is wrong; the message says where
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_import_open(annal_slice sql,
                                                          const annal_import_source *source,
                                                          annal_import **out_import,
                                                          annal_error *err);

typedef struct annal_import_line {
    uint64_t number;   /* 1, 2, … in the file */
    uint32_t part;     /* 0: the whole line. 1, 2, …: a piece of a line that is too long */
    annal_slice bytes; /* without the line break */
} annal_import_line;

typedef struct annal_import_event {
    annal_slice session;
    annal_draft draft;
    uint64_t line;
    annal_slice formerly; /* the id that an older importer gave it; empty: none */
} annal_import_event;

/* The event's slices are valid until it returns. A result below 0 stops the import, and is
 * returned. */
typedef annal_status (*annal_import_fn)(void *arg, const annal_import_event *event,
                                        annal_error *err);

/*
 * Turn the next lines of the file into events. Where a batch ends makes no difference to them.
 *
 * ANNAL_ERR_SQL  the importer failed, or yielded no event for a line; this import accepts no more
 *                lines
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_import_feed(annal_import *import,
                                                          const annal_import_line *lines,
                                                          size_t count, annal_import_fn fn,
                                                          void *arg, annal_error *err);

/* Totals of all lines given. Pieces of a line count once. */
typedef struct annal_import_counts {
    uint64_t imported;
    uint64_t blank;
    uint64_t duplicate;
} annal_import_counts;

/* Totals of all lines given. */
ANNAL_API annal_import_counts annal_import_counts_get(const annal_import *import);

/* Free it. NULL is accepted. */
ANNAL_API void annal_import_close(annal_import *import);

#ifdef __cplusplus
}
#endif

#endif
