-- pack annotations   version 1   database annotations.db   sessions notes_*   scope cluster notes_*
-- SPDX-License-Identifier: Apache-2.0
--
-- Stars, names, tags and notes that people give to sessions and events. docs/packs/annotations.md
-- is the page for users.
--
--  (1) The notes on a session are events of the session notes_<id>, never of the session itself: the
--      journal of an agent says only what the agent did. A session of its own for each subject can
--      be deleted alone, and people who write notes on different sessions never wait for each other.
--  (2) Each event is a row of note_changes. It changes a star, a name, a tag or a note (kind and
--      item) of the session (event_seq is 0) or of an event in it. The last change that is not
--      undone decides: its value, or NULL if the star, name, tag or note does not exist.
--  (3) event_id and event_hash are the id and the hash of the event's line. If the session is
--      deleted and imported again, its hashes are others, and the ids tell the same event.
--  (4) Guards refuse what is not a text of the right length. If an event bypassed them, the first
--      statement of its handler changes nothing.

CREATE TABLE note_changes (
    session_id TEXT NOT NULL,    -- of the subject
    seq        INTEGER NOT NULL, -- of the event in notes_<session_id>
    changed_at TEXT NOT NULL,
    kind       TEXT NOT NULL,    -- star, name, tag, note
    event_seq  INTEGER NOT NULL, -- 0: the session
    item       TEXT NOT NULL,    -- the tag; of a note, the seq of the change that wrote it first
    value      TEXT,
    event_id   TEXT,
    event_hash TEXT,
    by         TEXT,             -- who made the change
    undone     INTEGER,          -- seq of the event that undid the change
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

CREATE INDEX idx_note_changes ON note_changes (session_id, kind, event_seq, item, seq)
    WHERE undone IS NULL;

-- The changes that decide, without those that remove something.
CREATE VIEW note_things AS
    SELECT * FROM note_changes AS c
    WHERE undone IS NULL AND value IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM note_changes AS o
                      WHERE o.session_id = c.session_id AND o.kind = c.kind
                        AND o.event_seq = c.event_seq AND o.item = c.item AND o.seq > c.seq
                        AND o.undone IS NULL);

CREATE VIEW stars AS
    SELECT session_id, event_seq, changed_at AS starred_at, by, event_id, event_hash
    FROM note_things WHERE kind = 'star';
CREATE VIEW names AS
    SELECT session_id, value AS name, changed_at AS named_at, by
    FROM note_things WHERE kind = 'name';
CREATE VIEW tags AS
    SELECT session_id, event_seq, item AS tag, changed_at AS tagged_at, by, event_id, event_hash
    FROM note_things WHERE kind = 'tag';
CREATE VIEW notes AS
    SELECT session_id, CAST(item AS INTEGER) AS note, event_seq, value AS text,
           changed_at AS written_at, by, event_id, event_hash
    FROM note_things WHERE kind = 'note';

-- A row for each session on which something was noted, also if all of it is undone.
CREATE VIEW session_notes AS
    SELECT s.session_id, n.name,
           EXISTS (SELECT 1 FROM stars t
                   WHERE t.session_id = s.session_id AND t.event_seq = 0) AS starred,
           (SELECT group_concat(tag, ' ') FROM (SELECT DISTINCT tag FROM tags t
                                                WHERE t.session_id = s.session_id ORDER BY tag))
               AS tags,
           (SELECT count(*) FROM notes t WHERE t.session_id = s.session_id) AS notes
    FROM (SELECT DISTINCT session_id FROM note_changes) s
    LEFT JOIN names n ON n.session_id = s.session_id;
