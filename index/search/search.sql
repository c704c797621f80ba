-- SPDX-License-Identifier: Apache-2.0
-- search.db, beside the private tables of packs_schema.sql. docs/guide.md says how it is asked.

-- An event that says something: the text itself stays in the journal.
CREATE TABLE documents (
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- no number is given twice
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    timestamp   TEXT NOT NULL,
    type        TEXT NOT NULL,
    role        TEXT NOT NULL, -- user, assistant, system, tool, ...; '' where nobody said
    tool        TEXT NOT NULL, -- of its calls and their results; else ''
    offset      INTEGER NOT NULL,
    length      INTEGER NOT NULL
);

CREATE UNIQUE INDEX documents_event ON documents(session_id, seq);

-- Which tool a result belongs to.
CREATE TABLE calls (
    session_id  TEXT NOT NULL,
    call_id     TEXT NOT NULL,
    tool        TEXT NOT NULL,
    PRIMARY KEY (session_id, call_id)
) WITHOUT ROWID;

-- annal_said() reads an event from its journal, and gives what search_text.c finds in it.
CREATE VIEW texts (id, text) AS
    SELECT id, annal_said(session_id, seq, offset, length) FROM documents;

-- search_words.c says what a word is.
CREATE VIRTUAL TABLE said USING fts5(
    text, content = 'texts', content_rowid = 'id', tokenize = 'annal_words');
