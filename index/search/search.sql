-- SPDX-License-Identifier: Apache-2.0
-- search.db, beside the private tables of packs_schema.sql. docs/guide.md shows how to search.

-- Sessions with text. No number is used twice.
CREATE TABLE sessions (
    number      INTEGER PRIMARY KEY AUTOINCREMENT CHECK (number < 1 << 26),
    session_id  TEXT NOT NULL UNIQUE,
    documents   INTEGER NOT NULL, -- number of its rows in documents
    last_us     INTEGER NOT NULL  -- latest ts of its documents
);

-- Events with text; the text itself stays in the journal. id is number << 37 | seq << 6 | kind << 4
-- | size, as search_id.h explains, so that a search knows these without reading the row.
CREATE TABLE documents (
    id          INTEGER PRIMARY KEY,
    timestamp   TEXT NOT NULL,
    type        TEXT NOT NULL,
    role        TEXT NOT NULL, -- user, assistant, system, tool, ...; '' if unknown
    tool        TEXT NOT NULL, -- tool of a call or result; else ''
    offset      INTEGER NOT NULL,
    length      INTEGER NOT NULL
);

-- The tool of each call, for its result.
CREATE TABLE calls (
    session_id  TEXT NOT NULL,
    call_id     TEXT NOT NULL,
    tool        TEXT NOT NULL,
    PRIMARY KEY (session_id, call_id)
) WITHOUT ROWID;

-- The vectors of events embedding.added (annal_embedding_put()). id as in documents, without kind and
-- size, of the event that a vector stands for; vector: float32 in the byte order of the machine.
CREATE TABLE vectors (
    id          INTEGER NOT NULL,
    model       TEXT NOT NULL,
    vector      BLOB NOT NULL,
    UNIQUE (id, model)
);

-- annal_said() reads an event from its journal, and returns the text that search_text.c finds in
-- it.
CREATE VIEW texts (id, text) AS
    SELECT d.id, annal_said(s.session_id, d.id >> 6 & 0x7fffffff, d.offset, d.length)
    FROM documents d JOIN sessions s ON s.number = d.id >> 37;

-- search_words.c defines what a word is.
CREATE VIRTUAL TABLE said USING fts5(
    text, content = 'texts', content_rowid = 'id', tokenize = 'annal_words');
