-- pack lionagi   version 1   database state.db
-- SPDX-License-Identifier: Apache-2.0
--
-- The runtime model of lionagi: messages, progressions, branches and sessions, all in state.db. The
-- columns down to the comment "additions" are as the lionagi design prints them.
--
-- The owner of a row. sessions.id is the id of the session, and its row is created by its first
-- event below. branches, progressions and messages have ids of their own, and session_id is the
-- session whose journal created them; only that session changes them. A guard refuses an id that
-- another session has. If events bypassed the guards (an import of logs that repeat each other),
-- the session with the smaller name has the row, whatever the order in which they are read. The
-- same holds for ids whose rows were pruned: pruned_ids keeps them, because no other session may
-- use them afterwards. An id is in its table or in pruned_ids, with the smallest session that ever
-- had it.
--
-- Progressions. A session and a branch own one each. Unless the event gives an id, it is the id of
-- the owner. message.added appends to the progression of the session, and to the progression of
-- $branch_id; with append, a list of {progression_id} or of ids, to those instead. An id occurs in
-- a progression once. Events write progression_items. collection is the same as one JSON text,
-- which grows with the session: it is written when all existing events have been applied (`--
-- settle`), and no section here reads it.
--
-- Forks. A fork refers to its parent: parent_branch_id and forked_at_ord, in node_metadata (and as
-- columns, if they are known to be right). forked_at_ord counts the parent's effective history,
-- including what it inherits. branch_history is the effective history of each branch.
--
-- Numbers of classes (message_types) are assigned once, in session _state, by
-- message_type.registered; an event has the number (type_id).
--
-- Times are REAL seconds since 1970, from ISO 8601 or a number; the default is the event's ts.

CREATE TABLE message_types (
    type_id    INTEGER PRIMARY KEY,
    lion_class TEXT NOT NULL UNIQUE
);

INSERT INTO message_types (type_id, lion_class) VALUES
    (0, '__unknown__'),
    (1, 'lionagi.protocols.messages.system.System'),
    (2, 'lionagi.protocols.messages.instruction.Instruction'),
    (3, 'lionagi.protocols.messages.assistant_response.AssistantResponse'),
    (4, 'lionagi.protocols.messages.action_request.ActionRequest'),
    (5, 'lionagi.protocols.messages.action_response.ActionResponse');

CREATE TABLE messages (
    id            TEXT PRIMARY KEY,
    created_at    REAL,
    node_metadata JSON,
    content       JSON,
    embedding     BLOB,
    sender        TEXT,
    recipient     TEXT,
    channel       TEXT,
    role          TEXT,
    lion_class    INTEGER REFERENCES message_types(type_id),
    -- additions
    session_id    TEXT NOT NULL
);

CREATE INDEX idx_messages_session ON messages(session_id);
CREATE INDEX idx_messages_created ON messages(created_at);
CREATE INDEX idx_messages_sender ON messages(sender) WHERE sender IS NOT NULL;
CREATE INDEX idx_messages_recipient ON messages(recipient) WHERE recipient IS NOT NULL;

CREATE TABLE progressions (
    id         TEXT PRIMARY KEY,
    created_at REAL,
    collection TEXT NOT NULL DEFAULT '[]',
    -- additions
    session_id TEXT NOT NULL
);

-- With the id: the owner of a progression is found without reading its row, which may be long.
CREATE INDEX idx_progressions_session ON progressions(session_id, id);

-- The items of a progression, in order: ord counts from 0 without a gap.
CREATE TABLE progression_items (
    progression_id TEXT NOT NULL,
    ord            INTEGER NOT NULL,
    message_id     TEXT NOT NULL,
    PRIMARY KEY (progression_id, ord)
) WITHOUT ROWID;

CREATE UNIQUE INDEX idx_progression_items_message ON progression_items(message_id, progression_id);

-- Progressions whose collection lacks their items from ord on; empty once all are settled.
CREATE TABLE progressions_behind (
    session_id     TEXT NOT NULL,
    progression_id TEXT NOT NULL,
    ord            INTEGER NOT NULL,
    PRIMARY KEY (session_id, progression_id)
) WITHOUT ROWID;

-- Events put a message at the end of a progression, unless the progression has it.
CREATE VIEW progression_ends AS
SELECT p.session_id, p.id AS progression_id, NULL AS message_id FROM progressions p;

CREATE TRIGGER progression_grown INSTEAD OF INSERT ON progression_ends
WHEN NOT EXISTS (SELECT 1 FROM progression_items
                 WHERE message_id = NEW.message_id AND progression_id = NEW.progression_id) BEGIN
    INSERT INTO progression_items (progression_id, ord, message_id)
    SELECT NEW.progression_id, COALESCE(MAX(ord) + 1, 0), NEW.message_id FROM progression_items
    WHERE progression_id = NEW.progression_id;
    INSERT INTO progressions_behind (session_id, progression_id, ord)
    SELECT NEW.session_id, NEW.progression_id, MAX(ord) FROM progression_items
    WHERE progression_id = NEW.progression_id
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER progression_gone AFTER DELETE ON progressions BEGIN
    DELETE FROM progression_items WHERE progression_id = OLD.id;
    DELETE FROM progressions_behind WHERE session_id = OLD.session_id AND progression_id = OLD.id;
END;
CREATE TRIGGER progression_new AFTER INSERT ON progressions WHEN NEW.collection <> '[]' BEGIN
    INSERT INTO progression_items (progression_id, ord, message_id)
    SELECT NEW.id, key, value FROM json_each(NEW.collection);
END;
-- The id belongs to another session.
CREATE TRIGGER progression_taken AFTER UPDATE OF session_id ON progressions BEGIN
    DELETE FROM progression_items WHERE progression_id = OLD.id;
    DELETE FROM progressions_behind WHERE session_id = OLD.session_id AND progression_id = OLD.id;
    INSERT INTO progression_items (progression_id, ord, message_id)
    SELECT NEW.id, key, value FROM json_each(NEW.collection);
END;

CREATE TABLE sessions (
    id              TEXT PRIMARY KEY,
    created_at      REAL,
    node_metadata   JSON,
    name            TEXT,
    user            TEXT,
    progression_id  TEXT REFERENCES progressions(id),
    first_msg_id    TEXT REFERENCES messages(id),
    last_msg_id     TEXT REFERENCES messages(id),
    updated_at      REAL,
    playbook_name   TEXT,
    agent_name      TEXT,
    invocation_kind TEXT CHECK (invocation_kind IS NULL OR
                        invocation_kind IN ('agent', 'play', 'flow', 'fanout', 'show-play')),
    show_topic      TEXT,
    show_play_name  TEXT,
    artifacts_path  TEXT,
    source_kind     TEXT DEFAULT 'live' CHECK (source_kind IS NULL OR
                        source_kind IN ('live', 'imported_fs')),
    status          TEXT,
    started_at      REAL,
    ended_at        REAL,
    last_message_at REAL,
    -- additions
    status_reason_code    TEXT,
    status_reason_summary TEXT,
    status_evidence_refs  JSON,
    health          TEXT,
    delivery        TEXT,
    reason_codes    JSON DEFAULT '[]',
    process         JSON
);

CREATE INDEX idx_sessions_updated ON sessions(updated_at DESC);
CREATE INDEX idx_sessions_status_updated ON sessions(status, updated_at DESC);
CREATE INDEX idx_sessions_status_last_msg ON sessions(status, last_message_at)
    WHERE status = 'running';

CREATE TABLE branches (
    id               TEXT PRIMARY KEY,
    created_at       REAL,
    node_metadata    JSON,
    user             TEXT,
    name             TEXT,
    session_id       TEXT REFERENCES sessions(id) ON DELETE CASCADE,
    progression_id   TEXT REFERENCES progressions(id),
    system_msg_id    TEXT REFERENCES messages(id),
    -- additions
    parent_branch_id TEXT,
    forked_at_ord    INTEGER
);

CREATE INDEX idx_branches_session ON branches(session_id);

-- The names of branches in a session's own events, even if another session has the row of that id.
CREATE TABLE branch_progressions (
    session_id     TEXT NOT NULL,
    branch_id      TEXT NOT NULL,
    progression_id TEXT NOT NULL,
    PRIMARY KEY (session_id, branch_id)
) WITHOUT ROWID;

-- Ids of rows that were pruned. The session to which the id belongs removes it from here, or keeps
-- it from being used again; a session may reuse its own ids, because its later events start from
-- nothing.
CREATE TABLE pruned_ids (
    kind       TEXT NOT NULL, -- branch, progression, message
    id         TEXT NOT NULL,
    session_id TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;

CREATE TRIGGER branch_pruned BEFORE INSERT ON branches
WHEN EXISTS (SELECT 1 FROM pruned_ids
             WHERE kind = 'branch' AND id = NEW.id AND session_id < NEW.session_id) BEGIN
    SELECT RAISE(IGNORE);
END;
CREATE TRIGGER branch_again AFTER INSERT ON branches BEGIN
    DELETE FROM pruned_ids WHERE kind = 'branch' AND id = NEW.id;
END;
CREATE TRIGGER progression_pruned BEFORE INSERT ON progressions
WHEN EXISTS (SELECT 1 FROM pruned_ids
             WHERE kind = 'progression' AND id = NEW.id AND session_id < NEW.session_id) BEGIN
    SELECT RAISE(IGNORE);
END;
CREATE TRIGGER progression_again AFTER INSERT ON progressions BEGIN
    DELETE FROM pruned_ids WHERE kind = 'progression' AND id = NEW.id;
END;
CREATE TRIGGER message_pruned BEFORE INSERT ON messages
WHEN EXISTS (SELECT 1 FROM pruned_ids
             WHERE kind = 'message' AND id = NEW.id AND session_id < NEW.session_id) BEGIN
    SELECT RAISE(IGNORE);
END;
CREATE TRIGGER message_again AFTER INSERT ON messages BEGIN
    DELETE FROM pruned_ids WHERE kind = 'message' AND id = NEW.id;
END;

-- Actions of operators, from session _state.
CREATE TABLE admin_events (
    id         TEXT PRIMARY KEY,
    created_at REAL NOT NULL,
    action     TEXT NOT NULL,
    target_id  TEXT,
    details    JSON,
    actor      TEXT
);

CREATE TRIGGER admin_events_stay BEFORE DELETE ON admin_events
BEGIN
    SELECT RAISE(ABORT, 'admin_events is append-only: an action is never deleted');
END;

CREATE TRIGGER admin_events_stand BEFORE UPDATE ON admin_events
BEGIN
    SELECT RAISE(ABORT, 'admin_events is append-only: an action is never changed');
END;

-- INSERT OR REPLACE would delete without running the trigger above.
CREATE TRIGGER admin_events_once BEFORE INSERT ON admin_events
WHEN EXISTS (SELECT 1 FROM admin_events WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'admin_events is append-only: this action exists already');
END;

-- Every change of status, with its reason. entity_type is session; written with the row that it is
-- about.
CREATE TABLE status_transitions (
    id             TEXT PRIMARY KEY,
    entity_type    TEXT NOT NULL,
    entity_id      TEXT NOT NULL,
    from_status    TEXT,
    to_status      TEXT NOT NULL,
    reason_code    TEXT,
    reason_summary TEXT,
    evidence_refs  JSON,
    source         TEXT,
    actor          TEXT,
    override       INTEGER NOT NULL DEFAULT 0,
    metadata       JSON,
    created_at     REAL NOT NULL
);

CREATE INDEX idx_status_transitions_entity ON status_transitions(entity_type, entity_id, created_at);

-- The session that is being pruned, while its rows are deleted. Otherwise empty.
CREATE TABLE sessions_forgotten (session_id TEXT PRIMARY KEY);

CREATE TRIGGER status_transitions_stay BEFORE DELETE ON status_transitions
WHEN NOT EXISTS (SELECT 1 FROM sessions_forgotten WHERE session_id = OLD.entity_id)
BEGIN
    SELECT RAISE(ABORT, 'status_transitions is append-only: a transition is never deleted');
END;

CREATE TRIGGER status_transitions_stand BEFORE UPDATE ON status_transitions
BEGIN
    SELECT RAISE(ABORT, 'status_transitions is append-only: a transition is never changed');
END;

-- INSERT OR REPLACE would delete without running the trigger above.
CREATE TRIGGER status_transitions_once BEFORE INSERT ON status_transitions
WHEN EXISTS (SELECT 1 FROM status_transitions WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'status_transitions is append-only: this transition exists already');
END;

-- The life of a session, as data. Only changes with an edge are possible; any other change needs
-- override with a reason.
CREATE TABLE session_statuses (
    status       TEXT PRIMARY KEY,
    terminal     INTEGER NOT NULL,
    exit_code    INTEGER,
    admin_target INTEGER NOT NULL
);

INSERT INTO session_statuses (status, terminal, exit_code, admin_target) VALUES
    ('running',   0, NULL, 0),
    ('completed', 1, 0,    0),
    ('failed',    1, 1,    1),
    ('timed_out', 1, 124,  0),
    ('aborted',   1, 130,  1),
    ('cancelled', 1, 143,  1);

CREATE TABLE session_edges (
    from_status TEXT NOT NULL REFERENCES session_statuses(status),
    to_status   TEXT NOT NULL REFERENCES session_statuses(status),
    PRIMARY KEY (from_status, to_status)
);

INSERT INTO session_edges (from_status, to_status)
    SELECT 'running', status FROM session_statuses WHERE terminal;

-- The effective history of each branch: inherited items, then its own. cut: how much of the
-- effective history of that ancestor the branch shares.
CREATE VIEW branch_history AS
SELECT b.id AS branch_id, h.key AS ord, h.value AS message_id
FROM branches b, json_each((
    WITH RECURSIVE line(depth, progression_id, parent, base, cut) AS (
        SELECT 0, b.progression_id, b.parent_branch_id, COALESCE(b.forked_at_ord, 0), 1e18
        UNION ALL
        SELECT depth + 1, p.progression_id, p.parent_branch_id, COALESCE(p.forked_at_ord, 0),
               MIN(line.cut, line.base)
        FROM line JOIN branches p ON p.id = line.parent WHERE depth < 10000)
    SELECT json_group_array(message_id) FROM (
        SELECT own.message_id
        FROM line JOIN progression_items own ON own.progression_id = line.progression_id
        WHERE line.base + own.ord < line.cut
        ORDER BY line.depth DESC, own.ord))) h;

-- Their number, without reading them.
CREATE VIEW branch_lengths AS
SELECT b.id AS branch_id, (
    WITH RECURSIVE line(depth, progression_id, parent, base, cut) AS (
        SELECT 0, b.progression_id, b.parent_branch_id, COALESCE(b.forked_at_ord, 0), 1e18
        UNION ALL
        SELECT depth + 1, p.progression_id, p.parent_branch_id, COALESCE(p.forked_at_ord, 0),
               MIN(line.cut, line.base)
        FROM line JOIN branches p ON p.id = line.parent WHERE depth < 10000)
    SELECT COALESCE(SUM(MAX(0, MIN(
        line.cut - line.base,
        COALESCE((SELECT MAX(ord) + 1 FROM progression_items
                  WHERE progression_id = line.progression_id), 0)))), 0)
    FROM line) AS length
FROM branches b;

-- As branch_history, with the messages; an id that has no message is skipped.
CREATE VIEW branch_messages AS
SELECT h.branch_id, h.ord, m.*
FROM branch_history h JOIN messages m ON m.id = h.message_id;

-- The pool of each session, in order.
CREATE VIEW session_messages AS
SELECT s.id AS in_session, i.ord, m.*
FROM sessions s JOIN progression_items i ON i.progression_id = s.progression_id
     JOIN messages m ON m.id = i.message_id;
