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
 * the id that an older version of the importer gave the event. The sections run in a private
 * database in a temporary file, with these tables and functions:
 *
 *   source(kind, file, stem, container)
 *       one row, with the arguments of annal_import_open(); stem is file without its last suffix
 *   options(name, value)
 *       further options of the caller; the names are the importer's own. annal import gives
 *       ":directory", the name of the directory of the log, ":path", its path from the root, and
 *       ":whole" for a document or a database that could be read to its end
 *   lines(row, n, hash, json, unreadable, text)
 *       the lines of the batch. row: 1, 2, …; n: number of the line in its file; hash: hash of its
 *       bytes, 32 hex digits; json: the line, if it is one JSON value, else NULL; unreadable: NULL,
 *       or for a line that is not JSON an object that wraps it: {"reason", "text", "base64" or
 *       "zero_bytes"[, "part"]}. Zero bytes before a value, as a power cut leaves them, are a row
 *       of their own. text: the line, with a section "-- text"
 *   session_id(text)
 *       text if it is a valid session id, else an id derived from text
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
 *   unzstd(blob)
 *       the text in a zstd frame, NULL if it is not a complete frame with UTF-8, or larger than an
 *       event may be
 *   text_hash(text)
 *       a hash of text, 16 hex digits
 *   said(content)
 *       what the user said in a message, as a JSON string of at most 400 bytes: the content after
 *       the texts that the agent put before it. NULL if the agent put no text there, "" if nothing
 *       follows these texts. The importer lists these texts in a view, added(begins, ends): ends is
 *       the last part of such a text, or NULL if the text reaches to the end of the message. A view
 *       around(begins, opens, closes) lists what the agent puts around the user's words. Begins
 *       '<name>' is '<name a="b">', too. A block in tags that no view lists also counts as a text
 *       of the agent, if the tags' lower-case name has - or _ and the closing tag ends a line, and
 *       the message has other words
 *   log_session(name), log_session(name, content)
 *       the session of a log that has no id of its own: session_id(name), or another id if the
 *       store has a session of that name with another log. content identifies what the log has
 *       about this session, if it has several: the hash of a line
 *   record_owner(origin, session)
 *       the session that owns the record with the identity origin (given by the source, unique in
 *       the world): another session, from which this line was copied, or session itself. The event
 *       of the record in session must then contain origin as data.source.origin. NULL if origin is
 *       NULL. If session is NULL: the owner of the record or NULL, and no owner is recorded
 *   line_json(row)
 *       the column json of a row of lines. Unlike the column, the result is not copied at each use
 *
 * and ->, ->>, json_type(), json_remove() and json_each(), which return the same as SQLite's
 * functions, but parse a line once for all statements. Other JSON functions of SQLite parse the
 * line again.
 *
 * Rows are inserted into lines one by one, in order, so what a trigger on lines keeps does not
 * depend on where a batch ends. Blank lines never arrive; nor, if container is lines, lines whose
 * bytes were in the file before: they are skipped and counted. With a section "-- repeats",
 * for logs whose lines are identified only by their position, such repeated lines arrive, too: the
 * hash of the second is HASH.2. If the section has lines, at most 8, a repeated line arrives only
 * if it has at most 4 KiB and contains the text of one of them, and the last line with this text
 * had other bytes. Each line in the table lines must yield an event.
 *
 * A section "-- text", which is empty, is for logs that are text: every line arrives in the column
 * text, also a blank one, and hash as with "-- repeats". A line may be a part of an event that a
 * later line completes; "-- end" returns the last. Bytes that are not UTF-8, and zero bytes, are
 * U+FFFD in text, and such a line arrives as it is in a row before, in unreadable.
 *
 * annal import runs "-- end", which is optional, at the end of the log, for events that only the
 * end shows, such as the end of the last turn: its statements return events, as statements of the
 * batch do; the table lines is empty then. If more lines are appended to the log later, "-- end"
 * runs again after them. An event that it returns again must have the same id. Facts that a log may
 * change later, such as a title or a sum, are events of the end that depend on the content of the
 * store:
 *
 *   recorded(n, session, ts, type, id, data)
 *       events of the sessions that got events from the log, from earlier imports and from this
 *       import, in the order of n. The directive "-- recalls: TYPE TYPE/PREFIX …" at the head of
 *       the file lists their types, and prefixes of their ids. An event that "-- end" returns is
 *       added to recorded at once, so compute all of them into a table before returning the first
 *   recorded_turns(session, turn, times, file, ts, was_gone)
 *       the turns of these events, if the types turn.* are listed
 *   removed_turns(session, ts, type, id, data, n)
 *       events about turns that the log no longer has, or has again, if the importer creates the
 *       table live(session, turn, ts, n) of the turns that the log has
 *
 * "-- rows", as often as needed, is for logs that are SQLite databases: SELECTs that run in the
 * database of the log, with the functions above, and return one column: a JSON object, which
 * becomes a line. If a SELECT names a table or column which this database does not have, the rest
 * of its section is skipped. Rows of tables that no SELECT reads are last, as
 * {"table":"…","row":{…}}; rows of tables under "-- tables" have this form, too, and precede all
 * others.
 *
 * "-- copies" is for annal import, which also copies the rows of each session of such a database:
 * lines NAME: CONDITION say which rows belong to a session; index/sys/row_text.h describes them.
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
 * Longest line. A longer line is cut into pieces of ANNAL_IMPORT_PIECE_BYTES, each an unreadable
 * line of its own, because an importer's SQL needs up to forty times the bytes of a line in memory.
 */
#define ANNAL_IMPORT_LINE_BYTES_MAX ((64u << 20) - (64u << 10))
#define ANNAL_IMPORT_PIECE_BYTES    (8u << 20)

typedef struct annal_import annal_import;

typedef struct annal_import_option {
    annal_slice name;
    annal_slice value;
} annal_import_option;

/*
 * Return the session that owns the record with the identity origin. If no session owns it: return
 * session, which owns the record from now on, unless session is empty. The result is valid until
 * the next call.
 */
typedef annal_slice (*annal_import_owner_fn)(void *arg, annal_slice origin, annal_slice session);

/*
 * Return the session of the log whose name is `name`, a valid session id; content is empty, or
 * identifies the part of the log about this session. The result is valid until the next call.
 */
typedef annal_slice (*annal_import_session_fn)(void *arg, annal_slice name, annal_slice content);

typedef struct annal_import_source {
    const char *kind; /* format of the log: "claude-code" */
    const char *file; /* file name of the log, without its directory */
    /* form of the log from which the lines were made: "lines" (default), "document", … */
    const char *container;
    const annal_import_option *options;
    size_t option_count;
    /* function that the SQL function record_owner() calls; NULL: the session that the caller passes
     * owns the record */
    annal_import_owner_fn owner;
    void *owner_arg;
    /* function that the SQL function log_session() calls; NULL: the session is named after the
     * log */
    annal_import_session_fn session;
    void *session_arg;
} annal_import_source;

/*
 * Prepare to import one file with the importer whose text is sql. One thread at a time.
 *
 * ANNAL_ERR_SQL  the importer's text is not valid; the message says where
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_import_open(annal_slice sql,
                                                          const annal_import_source *source,
                                                          annal_import **out_import,
                                                          annal_error *err);

typedef struct annal_import_line {
    uint64_t number;   /* number of the line in the file: 1, 2, … */
    uint32_t part;     /* 0: the complete line. 1, 2, …: a piece of a line that is too long */
    annal_slice bytes; /* text of the line, without the line break */
} annal_import_line;

typedef struct annal_import_event {
    annal_slice session;
    annal_draft draft;
    uint64_t line;
    annal_slice formerly; /* id that an older importer gave the event, or empty */
} annal_import_event;

/* Called for each event; its slices are valid until the call returns. A result below 0 stops the
 * import, which returns it. */
typedef annal_status (*annal_import_fn)(void *arg, const annal_import_event *event,
                                        annal_error *err);

/*
 * Turn the next lines of the file into events. The events do not depend on where a batch of lines
 * ends.
 *
 * ANNAL_ERR_SQL  the importer failed, or yielded no event for a line; this import accepts no more
 *                lines
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_import_feed(annal_import *import,
                                                          const annal_import_line *lines,
                                                          size_t count, annal_import_fn fn,
                                                          void *arg, annal_error *err);

/* Totals of all lines given to annal_import_feed(). Pieces of one line count once. */
typedef struct annal_import_counts {
    uint64_t imported;
    uint64_t blank;
    uint64_t duplicate;
} annal_import_counts;

/* Return the totals of all lines given so far. */
ANNAL_API annal_import_counts annal_import_counts_get(const annal_import *import);

/* Free an import. NULL is accepted. */
ANNAL_API void annal_import_close(annal_import *import);

#ifdef __cplusplus
}
#endif

#endif
