-- SPDX-License-Identifier: Apache-2.0
-- sessions.db, without the tables of the core pack (index/packs/core/core.sql: sessions, turns).
--
-- event_index and snapshots are as the gvAgent design prints them. Additions, all with defaults,
-- so that its SQL runs unchanged:
--   event_index.offset, .length   place of the event's line in its journal, in bytes
--   idx_event_index_type_time     (type, timestamp, ...), covering. There are few types, so with
--                                 the statistics below SQLite also uses it for a time range alone:
--                                 it skips from type to type.
--   sessions, turns               the columns that core.sql adds
--   tables beginning with _       private: places of the indexer, counters, findings
--
-- PRAGMA application_id marks the file as ours, user_version is a hash of this file and of the core
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

-- Sessions whose journal is a fork: they share the history of parent_session_id up to
-- forked_at_seq. An event has one row here, under the session whose journal contains it:
-- event_index, sessions, turns and the tables of packs contain only a fork's own events, so sums
-- over sessions are right.
CREATE TABLE forks (
    session_id         TEXT PRIMARY KEY,
    parent_session_id  TEXT NOT NULL,
    forked_at_seq      INTEGER NOT NULL,
    created_at         TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX idx_forks_parent ON forks(parent_session_id);

-- The history of each session: its events from_seq to to_seq are events of ancestor_id. Every
-- session has a row for itself, with depth 0 and no end (9223372036854775807).
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

-- event_index as histories: the events that a fork shares with its ancestors appear as its own.
-- Select one session at a time: shared events appear once for each session that has them.
CREATE VIEW event_history AS
    SELECT l.session_id, e.seq, e.type, e.timestamp, l.ancestor_id AS journal, e.offset, e.length
    FROM lineage l CROSS JOIN event_index e
      ON e.session_id = l.ancestor_id AND e.seq BETWEEN l.from_seq AND l.to_seq;

-- The states that C reducers saved (snapshot/reduction.c): state is one zstd frame, offset and h
-- belong to the next event, every is the minimum number of events between two rows.
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

-- The place of the indexer in each journal: the next event, the offset of its line, and the hash at
-- the end of the line before it.
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

-- The number of events of each type in a session's journal, without counting them.
CREATE VIEW event_counts AS SELECT session_id, type, n AS events FROM _counts;

-- Findings of the indexer, after which it continued. kind: damage (of the journal), pack (a handler
-- could not accept the event).
CREATE TABLE _findings (
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    length      INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    what        TEXT NOT NULL,
    PRIMARY KEY(session_id, offset, kind)
) WITHOUT ROWID;

-- The id of this database, and the number of transactions of the indexer: a reader compares them to
-- notice that the file it opened is not the file that was caught up a moment ago.
CREATE TABLE _stamp (
    id       INTEGER NOT NULL,
    commits  INTEGER NOT NULL
);
INSERT INTO _stamp VALUES (random(), 0);

-- Statistics of a large store, so that plans do not change while it grows.
ANALYZE;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('event_index', 'sqlite_autoindex_event_index_1', '10000000 10000 1'),
    ('event_index', 'idx_event_index_type_time', '10000000 250000 2 1 1 1 1');
