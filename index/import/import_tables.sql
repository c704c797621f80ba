-- SPDX-License-Identifier: Apache-2.0
--
-- The database of an import: the log as rows, for the SQL of an importer.
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8192;
CREATE TABLE source (kind TEXT, file TEXT, stem TEXT, container TEXT);
CREATE TABLE options (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE lines (row INTEGER PRIMARY KEY, n INTEGER, hash TEXT, json TEXT, unreadable
TEXT, text TEXT);
CREATE TABLE recorded (n INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT,
PRIMARY KEY (session, id)) WITHOUT ROWID;
CREATE TABLE _seen (hash TEXT PRIMARY KEY, times INTEGER DEFAULT 1) WITHOUT ROWID;
