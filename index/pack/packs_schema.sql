-- SPDX-License-Identifier: Apache-2.0
-- A pack database, beside the tables of its packs. All of this is private.
--
-- PRAGMA application_id says that the file is ours, user_version which version of this file made it.

-- The packs whose tables are here, as they were when those were made.
CREATE TABLE _pack (
    name           TEXT PRIMARY KEY,
    version        INTEGER NOT NULL,
    tables_hash    INTEGER NOT NULL,
    rest_hash      INTEGER NOT NULL, -- of triggers, and of rows that the pack brings along
    handlers_hash  INTEGER NOT NULL
) WITHOUT ROWID;

-- What each pack made: tables, indexes, views, triggers.
CREATE TABLE _object (
    pack  TEXT NOT NULL,
    type  TEXT NOT NULL,
    name  TEXT NOT NULL,
    PRIMARY KEY(pack, type, name)
) WITHOUT ROWID;

-- Where each pack stands in each journal: the event that comes next, where its line begins, and the
-- hash that the line before it ends with. A session whose events were applied further than it was
-- settled (indexer.c, rule 9) has a second row, with ' settled' behind the pack's name: up to where.
CREATE TABLE _cursor (
    pack        TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    h           INTEGER NOT NULL,
    PRIMARY KEY(pack, session_id)
) WITHOUT ROWID;

-- Events that a handler could not take.
CREATE TABLE _findings (
    pack        TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    length      INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    what        TEXT NOT NULL,
    PRIMARY KEY(pack, session_id, offset, kind)
) WITHOUT ROWID;

-- Which database this is, and how many transactions it has seen; see schema.sql.
CREATE TABLE _stamp (
    id       INTEGER NOT NULL,
    commits  INTEGER NOT NULL
);
INSERT INTO _stamp VALUES (random(), 0);
