/* SPDX-License-Identifier: Apache-2.0 */
/* A session as a row: the columns that `annal ls` and the server show, under the same names. */
#pragma once

#include "journal/base/buf.h"
#include "tools/show/session_findings.h"

#include <annal/query.h>
#include <annal/search.h>

/* Value of time_from of a session whose only time is the time of the imported file. This time is a
 * guess, so lists are not sorted by it. */
#define SESSION_GUESSED "of the file"

/* SQL condition: a time can be right, because it is neither before 1970-01-02 nor later than a day
 * from now. */
#define SESSION_LATEST           "replace(datetime('now', '+1 day'), ' ', 'T')"
#define SESSION_TIME_HOLDS(time) "(" time " >= '1970-01-02' AND " time " < " SESSION_LATEST ")"

/*
 * SQL for the time when a session was last active (SESSION_ACTIVE), and when it began
 * (SESSION_BEGAN). A time that cannot be right is replaced by the latest, or first, right time of
 * the session's other events. So no session with a wrong time remains at the top of a list.
 */
#define SESSION_ACTIVE(s)                                                                          \
    "iif(" SESSION_TIME_HOLDS(                                                                     \
        s ".last_activity_at") ", " s ".last_activity_at,"                                         \
                               " coalesce((SELECT max(x.timestamp) FROM event_index AS x WHERE "   \
                               "x.session_id = " s ".id"                                           \
                               " AND " SESSION_TIME_HOLDS("x.timestamp") "), ''))"
#define SESSION_BEGAN(s)                                                                           \
    "iif(" SESSION_TIME_HOLDS(s ".created_at") ", " s ".created_at,"                               \
                                               " coalesce((SELECT min(x.timestamp) FROM "          \
                                               "event_index AS x WHERE x.session_id = " s ".id"    \
                                               " AND " SESSION_TIME_HOLDS("x.timestamp") "), ''))"

/*
 * SQL condition: the time when a session was last active is certain: it can be right and is not a
 * guess. SESSION_DOUBTFUL is a table for WITH of the other sessions, which are few, from indexes.
 */
#define SESSION_SURE(s)                                                                            \
    " " SESSION_TIME_HOLDS(s ".last_activity_at") " AND " s ".time_from IS NOT '" SESSION_GUESSED  \
                                                  "'"
#define SESSION_DOUBTFUL                                                                           \
    "doubtful (id) AS (SELECT id FROM sessions WHERE time_from = '" SESSION_GUESSED "'"            \
    " UNION ALL SELECT id FROM sessions WHERE last_activity_at < '1970-01-02'"                     \
    " UNION ALL SELECT id FROM sessions WHERE last_activity_at >= " SESSION_LATEST ")"

/*
 * SQL condition: a session was active in a range of time, that is, has an event in it. Either bound
 * may be NULL.
 */
#define SESSION_ACTIVE_IN(s, since, until)                                                         \
    " (" since " IS NULL AND " until " IS NULL OR EXISTS (SELECT 1 FROM event_index AS x"          \
    " WHERE x.session_id = " s ".id AND (" since " IS NULL OR x.timestamp >= " since ")"           \
    " AND (" until " IS NULL OR x.timestamp < " until ")))"

/* SQL condition on events: a request to a model failed. */
#define REQUEST_FAILED "type IN ('provider.failed', 'provider_error')"

enum {
    SESSION_ID,
    SESSION_STATUS,
    SESSION_EVENTS,
    SESSION_TURNS,
    SESSION_TOKENS,
    SESSION_COST,
    SESSION_ACTIVITY,
    SESSION_CREATED,
    SESSION_AGENT,
    SESSION_MODEL,
    SESSION_PARENT,
    SESSION_FORK,
    SESSION_FORK_SEQ,
    SESSION_TITLE,
    SESSION_TIME_FROM,
    SESSION_COMPUTED, /* the part of the cost that was computed from prices */
    SESSION_COSTED,   /* number of tokens that the cost covers */
    SESSION_COLUMN_COUNT
};

/*
 * Parts of a SELECT of these columns. SESSION_SELECT may be followed by further columns; then
 * follow SESSION_JOINED, or another source of s and SESSION_PARENTS, and a join of c, which has the
 * columns of usage_by_session, for the sessions of the list.
 */
#define SESSION_SELECT                                                                             \
    "SELECT s.id AS session_id, s.status, s.events, s.total_turns, s.total_tokens,"                \
    " c.cost_usd AS total_cost_usd, s.last_activity_at, s.created_at, s.agent_id, s.model,"        \
    " s.parent_session_id, f.parent_session_id AS fork_session_id, f.forked_at_seq AS fork_seq,"   \
    " coalesce(s.title, p.title) AS title, s.time_from, c.computed_cost_usd, c.costed_tokens"
/* numbers of unreadable lines and unknown layouts of the logs of a session, without those of
 * documents that were whole later */
#define SESSION_FAULTS(id, type, column)                                                           \
    "(SELECT events - (SELECT coalesce(sum(" column "), 0) FROM log_recoveries r"                  \
    " WHERE r.session_id = " id ") FROM event_counts n WHERE n.session_id = " id                   \
    " AND n.type = '" type "')"
#define SESSION_UNREADABLE(id) SESSION_FAULTS(id, "import.unreadable", "lines")
#define SESSION_UNKNOWN(id)    SESSION_FAULTS(id, "import.unknown", "layouts")
/* further columns that are shown for a single session */
#define SESSION_MORE                                                                               \
    ", s.provider, s.working_directory, s.git_branch, s.ended_at, s.input_tokens,"                 \
    " s.output_tokens, s.cached_input_tokens, s.cache_write_tokens,"                               \
    " (SELECT coalesce(sum(events), 0) FROM event_counts n WHERE n.session_id = s.id"              \
    "  AND " REQUEST_FAILED ") AS failed_requests,"                                                \
    " (SELECT count(*) FROM tool_calls n WHERE n.session_id = s.id AND n.status = 'failed')"       \
    " AS failed_calls,"                                                                            \
    " (SELECT coalesce(sum(events), 0) FROM event_counts n WHERE n.session_id = s.id"              \
    "  AND type = 'turn.failed') AS failed_turns,"                                                 \
    " coalesce(" SESSION_UNREADABLE(                                                               \
        "s.id") ", 0) AS unreadable_lines,"                                                        \
                " coalesce(" SESSION_UNKNOWN(                                                      \
                    "s.id") ", 0) AS unknown_layouts,"                                             \
                            " (SELECT source_host FROM session_latest_sources o WHERE "            \
                            "o.session_id = s.id) AS "                                             \
                            "source_host,"                                                         \
                            " (SELECT source_path FROM session_latest_sources o WHERE "            \
                            "o.session_id = s.id) AS "                                             \
                            "source_path,"                                                         \
                            " (SELECT state FROM source_states o WHERE o.session_id = s.id) AS "   \
                            "source_state,"                                                        \
                            " (SELECT noticed_at FROM source_states o WHERE o.session_id = s.id) " \
                            "AS source_noticed_at"
/* SQL condition: something in the session failed: a call, a turn, a request, or a line of its log
 * that could not be read. The view `failures` has the rows, but SQLite would compute it for all
 * sessions. */
#define SESSION_FAILED(s)                                                                          \
    " (EXISTS (SELECT 1 FROM tool_calls n WHERE n.session_id = " s ".id AND n.status = 'failed')"  \
    " OR EXISTS (SELECT 1 FROM event_counts n WHERE n.session_id = " s ".id AND (" REQUEST_FAILED  \
    " OR n.type = 'turn.failed')) OR" SESSION_UNREADABLE(s ".id") " > 0)"
#define SESSION_PARENTS                                                                            \
    " LEFT JOIN forks f ON f.session_id = s.id"                                                    \
    " LEFT JOIN sessions p ON p.id = f.parent_session_id"
#define SESSION_JOINED " FROM sessions s" SESSION_PARENTS
/* The sort key of a list sorted by cost: the cost in usage_by_session. For a subquery, SQLite finds
 * the rates once and reads the usage of each session by its key; for a join, it would copy and
 * index the costs of all sessions. The view is in main: a table of session_costs_put() has the same
 * name. */
#define SESSION_COST_OF(s)                                                                         \
    "(SELECT round(round(sum(x.cost_microusd) * 1e6) / 1e6) / 1e6 FROM main.usage_costs AS x"      \
    " WHERE x.session_id = " s ".id)"

/* Return whether the tables of the pack annotations can be read. */
bool session_has_marks(annal_index *index);

/*
 * Return a table for WITH, marks (session_id, name, starred, tags, notes): what people noted on
 * each session; tags has spaces between the tags. Without session_has_marks() it is empty.
 * SESSION_OWN and the two conditions after it use it: a session of notes is not listed. With
 * SESSION_MARKED, m has its columns.
 */
const char *session_marks(annal_index *index);
#define SESSION_OWN(s) " " s ".id NOT IN (SELECT 'notes_' || session_id FROM marks)"
#define SESSION_STARRED(s, p)                                                                      \
    " (" p " IS NULL OR " s ".id IN (SELECT session_id FROM marks WHERE starred))"
#define SESSION_TAGGED(s, p)                                                                       \
    " (" p " IS NULL OR " s ".id IN (SELECT session_id FROM marks"                                 \
    " WHERE instr(' ' || tags || ' ', ' ' || " p " || ' ') > 0))"
#define SESSION_MARKED " LEFT JOIN marks m ON m.session_id = s.id"
#define SESSION_COLUMNS                                                                            \
    ", m.name, coalesce(m.starred, 0) AS starred, m.tags, coalesce(m.notes, 0) AS notes"

/*
 * Append tables for WITH, after another one, that stand for the views usage_costs and what it is
 * made of, with the rows of only the sessions that the SELECT `among` gives: SQLite computes the
 * views for all sessions before it chooses some.
 */
annal_status session_costs_put(annal_index *index, const char *among, struct buf *sql,
                               annal_error *err);

/* The complete SELECT of all columns of the session ?1. SESSION_ONE_MARKED follows session_marks()
 * and has SESSION_COLUMNS. */
#define SESSION_ONLY                                                                               \
    " LEFT JOIN (SELECT * FROM usage_by_session WHERE session_id = ?1) c WHERE s.id = ?1"
#define SESSION_ONE SESSION_SELECT SESSION_MORE SESSION_JOINED SESSION_ONLY
#define SESSION_ONE_MARKED                                                                         \
    SESSION_SELECT SESSION_MORE SESSION_COLUMNS SESSION_JOINED SESSION_MARKED SESSION_ONLY

/* The sessions that all conditions select; NULL, or no session, for any. */
struct session_match {
    const char *agent, *model;
    const char *status;
    const char *project; /* a value of session_project() */
    const annal_slice *sessions;
    size_t session_count;
};

/* Ids in order; begin with {0}. */
struct session_ids {
    annal_slice *ids; /* point into text */
    size_t count;
    struct buf text;
};

annal_status session_ids_find(struct session_ids *out, annal_index *index,
                              const struct session_match *match, annal_error *err);
void session_ids_done(struct session_ids *ids);

/*
 * SQL condition: a session belongs to the project p, which is a directory, a directory above, or
 * the last part of the name. Sessions in a directory that was moved belong to the project under its
 * old and its new name.
 */
#define SESSION_PROJECT_FITS(c, p)                                                                 \
    c " = " p " OR substr(" c ", 1, length(" p ") + 1) = " p " || '/' OR " c " GLOB " p            \
      " OR instr(" p ", '/') = 0 AND " c " GLOB '*/' || " p
#define SESSION_OF_PROJECT(s, p)                                                                   \
    " (" p " IS NULL OR " s ".id IN (SELECT session_id FROM session_projects WHERE project IN"     \
    " (SELECT project FROM session_projects WHERE " SESSION_PROJECT_FITS(                          \
        "project", p) " OR " SESSION_PROJECT_FITS("directory", p) ")))"

/* Return the value of --project: the absolute path of a relative directory, in room, else the value
 * itself. NULL if given is NULL. */
#define PROJECT_BYTES 4096
const char *session_project(const char *given, char room[PROJECT_BYTES]);

/* For verbs: read --agent, --model, --status and --project, and return whether one was given; then
 * find the sessions. Returns 0 or an exit status; it is an error if no session matches. */
struct args;
bool session_match_of(const struct args *args, char room[PROJECT_BYTES], struct session_match *out);
int session_ids_choose(struct session_ids *out, annal_index *index,
                       const struct session_match *match);

/* For verbs that search: restrict the search to the sessions of --session and of these options, as
 * long as out exists. Returns 0 or an exit status. */
int session_ids_restrict(struct session_ids *out, annal_index *index, const struct args *args,
                         annal_search_options *options);

/* SQL condition: the text of column c contains parameter p or matches it as a pattern; p may be
 * NULL. */
#define SESSION_FITS(c, p) " (" p " IS NULL OR " c " GLOB " p " OR instr(" c ", " p ") > 0)"

/* Return the beginning of an id for people: the first 8 letters of a UUID, which verbs accept as an
 * id; another id unchanged. */
annal_slice session_begin(annal_slice id);

/* Append the first columns of a row as one object, with the number of findings. tree is JSON to add
 * as a member, or NULL. */
annal_status session_row_json(struct buf *out, const annal_row *row, size_t columns,
                              const struct session_findings *findings, const annal_value *tree);
