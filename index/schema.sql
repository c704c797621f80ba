-- SPDX-License-Identifier: Apache-2.0
-- sessions.db, without the tables of the core pack (index/packs/core/core.sql: sessions, turns).
--
-- event_index and snapshots are the tables of the gvAgent design. The following is added to the
-- design; added columns have defaults, so that SQL written for the design runs unchanged:
--   event_index.offset, .length   offset and length of the event's line in its journal, in bytes
--   idx_event_index_type_time     a covering index on (type, timestamp, ...). Because there are few
--                                 types, SQLite, with the statistics below, also uses it for a
--                                 condition on time only: it skips from type to type.
--   sessions, turns               the columns that core.sql adds
--   tables beginning with _       private tables: cursors of the indexer, counters, findings
--
-- PRAGMA application_id marks the file as ours; user_version is a hash of this file and of the core
-- pack. A file with another user_version is rebuilt.

CREATE TABLE event_index (
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    type        TEXT NOT NULL,
    timestamp   TEXT NOT NULL,
    offset      INTEGER NOT NULL DEFAULT 0,
    length      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY(session_id, seq)
);

CREATE INDEX idx_event_index_type_time
    ON event_index(type, timestamp, session_id, seq, offset, length);

CREATE TABLE snapshots (
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    state       BLOB NOT NULL,
    created_at  TEXT NOT NULL,
    PRIMARY KEY(session_id, seq)
);

-- Sessions that are forks: they share the history of parent_session_id up to event forked_at_seq.
-- event_index, sessions, turns and the tables of packs contain an event once, for the session
-- whose journal contains it, and not again for a fork that shares it. So sums over sessions are
-- right.
CREATE TABLE forks (
    session_id         TEXT PRIMARY KEY,
    parent_session_id  TEXT NOT NULL,
    forked_at_seq      INTEGER NOT NULL,
    created_at         TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX idx_forks_parent ON forks(parent_session_id);

-- The parts of each session's history: its events from_seq to to_seq are in the journal of
-- ancestor_id. Every session has a row with itself as ancestor_id, depth 0, and the to_seq
-- 9223372036854775807.
CREATE VIEW lineage (session_id, ancestor_id, from_seq, to_seq, depth) AS
    WITH RECURSIVE line (session_id, ancestor_id, to_seq, depth) AS (
        SELECT session_id, session_id, 9223372036854775807, 0 FROM _cursor
        UNION ALL
        SELECT line.session_id, f.parent_session_id, f.forked_at_seq, line.depth + 1
        FROM line JOIN forks f ON f.session_id = line.ancestor_id
        WHERE f.forked_at_seq < line.to_seq)
    SELECT line.session_id, line.ancestor_id, COALESCE(f.forked_at_seq, 0) + 1, line.to_seq,
           line.depth
    FROM line LEFT JOIN forks f ON f.session_id = line.ancestor_id;

-- The rows of event_index by history: a fork also has rows for the events that it shares with its
-- ancestors. Select one session at a time, because a shared event has a row for each session that
-- shares it.
CREATE VIEW event_history AS
    SELECT l.session_id, e.seq, e.type, e.timestamp, l.ancestor_id AS journal, e.offset, e.length
    FROM lineage l CROSS JOIN event_index e
      ON e.session_id = l.ancestor_id AND e.seq BETWEEN l.from_seq AND l.to_seq;

-- States that reducers in C saved after event seq (snapshot/reduction.c). state is one zstd frame;
-- offset is where the next event begins in its journal; h is the hash of event seq; every is the
-- minimum number of events between two rows.
CREATE TABLE _reductions (
    session_id  TEXT NOT NULL,
    reducer     TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    every       INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    h           INTEGER NOT NULL,
    state       BLOB NOT NULL,
    PRIMARY KEY(session_id, reducer, seq)
);

-- The cursor of the indexer in each journal: the seq of the next event, the offset of its line, and
-- the hash of the event before it.
CREATE TABLE _cursor (
    session_id  TEXT PRIMARY KEY,
    seq         INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    h           INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE _counts (
    session_id  TEXT NOT NULL,
    type        TEXT NOT NULL,
    n           INTEGER NOT NULL,
    PRIMARY KEY(session_id, type)
) WITHOUT ROWID;

-- The number of events of each type in a session's journal, which the indexer has counted.
CREATE VIEW event_counts AS SELECT session_id, type, n AS events FROM _counts;

-- What failed in each session: calls, turns, requests to a model, and lines of its log that could not
-- be read. Lines of a document that a later import found whole (log_recoveries: the newest `lines` of
-- its session before it) are left out, and so is what telemetry said before the log of its session
-- followed.
CREATE VIEW failures (session_id, seq, timestamp, what, tool) AS
    SELECT session_id, coalesce(result_seq, seq), coalesce(returned_at, called_at), 'call', tool
    FROM tool_calls WHERE status = 'failed'
    UNION ALL
    SELECT session_id, seq, timestamp, CASE type WHEN 'turn.failed' THEN 'turn' ELSE 'request' END,
           NULL
    FROM _counts AS n CROSS JOIN event_index AS e USING (session_id, type)
    WHERE type IN ('turn.failed', 'provider.failed', 'provider_error')
      AND NOT EXISTS (SELECT 1 FROM event_index AS x WHERE x.type = 'telemetry.superseded'
                      AND x.session_id = e.session_id AND x.seq > e.seq)
    UNION ALL
    SELECT session_id, seq, timestamp, 'line', NULL
    FROM (SELECT e.session_id, e.seq, e.timestamp, r.lines,
                 row_number() OVER (PARTITION BY e.session_id, r.seq ORDER BY e.seq DESC) AS place
          FROM _counts AS n CROSS JOIN event_index AS e USING (session_id, type)
          LEFT JOIN log_recoveries AS r ON r.session_id = e.session_id AND r.seq =
               (SELECT min(x.seq) FROM log_recoveries AS x
                WHERE x.session_id = e.session_id AND x.seq > e.seq)
          WHERE n.type = 'import.unreadable')
    WHERE lines IS NULL OR place > lines;

-- Problems that the indexer found, and after which it continued. kind: damage (the journal is
-- damaged), pack (a handler of the core pack could not accept the event).
CREATE TABLE _findings (
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    length      INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    what        TEXT NOT NULL,
    PRIMARY KEY(session_id, offset, kind)
) WITHOUT ROWID;

-- The id of this database, and the number of transactions of the indexer. A reader compares them
-- with those after the last catch-up, to notice that it opened another file.
CREATE TABLE _stamp (
    id       INTEGER NOT NULL,
    commits  INTEGER NOT NULL
);
INSERT INTO _stamp VALUES (random(), 0);

-- Statistics of a large store, so that SQLite's query plans do not change while a store grows.
ANALYZE;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('event_index', 'sqlite_autoindex_event_index_1', '10000000 10000 1'),
    ('event_index', 'idx_event_index_type_time', '10000000 250000 2 1 1 1 1');
