-- SPDX-License-Identifier: Apache-2.0
-- sessions.db, without the tables of the core pack (index/packs/core/core.sql: sessions, turns).
--
-- event_index and snapshots are as the gvAgent design prints them. Additions, all with defaults,
-- so that its SQL runs unchanged:
--   event_index.offset, .length   where the event's line is in its journal, in bytes
--   idx_event_index_type_time     (type, timestamp, ...), covering. There are few types, so with
--                                 the statistics below SQLite also uses it for a time range alone:
--                                 it skips from type to type.
--   sessions, turns               the columns that core.sql adds
--   tables beginning with _       private: how far the indexer is, counters, what it met
--
-- PRAGMA application_id says that the file is ours, user_version is a hash of this file and of the
-- core pack. A file made with others is rebuilt.

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

-- Sessions whose journal is a fork: they share the history of parent_session_id up to forked_at_seq.
-- An event has one row here, under the session in whose journal they are: event_index, sessions,
-- turns and the tables of packs hold a fork's own events only, so sums over sessions stay right.
CREATE TABLE forks (
    session_id         TEXT PRIMARY KEY,
    parent_session_id  TEXT NOT NULL,
    forked_at_seq      INTEGER NOT NULL,
    created_at         TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX idx_forks_parent ON forks(parent_session_id);

-- The one history of each session: its events from_seq to to_seq are those of ancestor_id. Every
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

-- event_index as histories: what a fork shares with its ancestors is given as its own. Ask for one
-- session at a time: what is shared comes once for each session that has it.
CREATE VIEW event_history AS
    SELECT l.session_id, e.seq, e.type, e.timestamp, l.ancestor_id AS journal, e.offset, e.length
    FROM lineage l CROSS JOIN event_index e
      ON e.session_id = l.ancestor_id AND e.seq BETWEEN l.from_seq AND l.to_seq;

-- What C reducers saved (snapshot/reduction.c): state is one zstd frame, offset and h are those of
-- the event that comes next, every is how many events lie between two rows at least.
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

-- Where the indexer stands in each journal: the event that comes next, where its line begins, and
-- the hash that the line before it ends with.
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

-- How many events of each type a session's journal has, without counting them.
CREATE VIEW event_counts AS SELECT session_id, type, n AS events FROM _counts;

-- What the indexer met and went on from. kind: damage (of the journal), pack (a handler could not
-- take the event).
CREATE TABLE _findings (
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    length      INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    what        TEXT NOT NULL,
    PRIMARY KEY(session_id, offset, kind)
) WITHOUT ROWID;

-- Which database this is, and how many transactions of the indexer it has seen: how a reader
-- notices that the file it opened is not the one that was caught up a moment ago.
CREATE TABLE _stamp (
    id       INTEGER NOT NULL,
    commits  INTEGER NOT NULL
);
INSERT INTO _stamp VALUES (random(), 0);

-- Statistics as of a large store, so that plans do not change while it grows.
ANALYZE;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('event_index', 'sqlite_autoindex_event_index_1', '10000000 10000 1'),
    ('event_index', 'idx_event_index_type_time', '10000000 250000 2 1 1 1 1');
