-- SPDX-License-Identifier: Apache-2.0
-- search.db, beside the private tables of packs_schema.sql. docs/guide.md shows how to search.

-- Events with text; the text itself stays in the journal.
CREATE TABLE documents (
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- no number is used twice
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    timestamp   TEXT NOT NULL,
    type        TEXT NOT NULL,
    role        TEXT NOT NULL, -- user, assistant, system, tool, ...; '' if unknown
    tool        TEXT NOT NULL, -- tool of a call or result; else ''
    offset      INTEGER NOT NULL,
    length      INTEGER NOT NULL
);

CREATE UNIQUE INDEX documents_event ON documents(session_id, seq);

-- The tool of each call, for its result.
CREATE TABLE calls (
    session_id  TEXT NOT NULL,
    call_id     TEXT NOT NULL,
    tool        TEXT NOT NULL,
    PRIMARY KEY (session_id, call_id)
) WITHOUT ROWID;

-- annal_said() reads an event from its journal, and returns the text that search_text.c finds in
-- it.
CREATE VIEW texts (id, text) AS
    SELECT id, annal_said(session_id, seq, offset, length) FROM documents;

-- search_words.c defines what a word is.
CREATE VIRTUAL TABLE said USING fts5(
    text, content = 'texts', content_rowid = 'id', tokenize = 'annal_words');
