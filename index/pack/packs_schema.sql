-- SPDX-License-Identifier: Apache-2.0
-- A pack database, beside the tables of its packs. All of this is private.
--
-- PRAGMA application_id marks the file as ours, user_version is the version of this file that
-- created it.

-- The packs whose tables are here, as they were when the tables were created.
CREATE TABLE _pack (
    name           TEXT PRIMARY KEY,
    version        INTEGER NOT NULL,
    tables_hash    INTEGER NOT NULL,
    rest_hash      INTEGER NOT NULL, -- of triggers, and of rows that the pack inserts
    handlers_hash  INTEGER NOT NULL
) WITHOUT ROWID;

-- What each pack created: tables, indexes, views, triggers.
CREATE TABLE _object (
    pack  TEXT NOT NULL,
    type  TEXT NOT NULL,
    name  TEXT NOT NULL,
    PRIMARY KEY(pack, type, name)
) WITHOUT ROWID;

-- The place of each pack in each journal: the next event, the offset of its line, and the hash at
-- the end of the line before it. A session whose events were applied further than it was settled
-- (indexer.c, rule 9) has a second row, with ' settled' after the pack's name: up to where it was
-- settled.
CREATE TABLE _cursor (
    pack        TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    h           INTEGER NOT NULL,
    PRIMARY KEY(pack, session_id)
) WITHOUT ROWID;

-- Events that a handler could not accept.
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

-- The id of this database, and the number of its transactions; see schema.sql.
CREATE TABLE _stamp (
    id       INTEGER NOT NULL,
    commits  INTEGER NOT NULL
);
INSERT INTO _stamp VALUES (random(), 0);
