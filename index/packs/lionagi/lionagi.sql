-- pack lionagi   version 1   database state.db
--
-- The runtime model of lionagi: messages, progressions, branches and sessions, beside each other in
-- state.db. The columns down to the comment "additions" stand as the lionagi design prints them.
--
-- Who writes a row. sessions.id is the id of the session, and its row is made by its first event
-- below. branches, progressions and messages have ids of their own and keep in session_id whose
-- journal they came from; only that session changes them. A guard refuses an id that another session
-- has; where somebody went round the guards (an import of logs that repeat each other), the session
-- with the smaller name has the row, whatever the order in which they are read. So it is with ids
-- whose rows were pruned: pruned_ids keeps them, for nobody else may have them afterwards. An id is
-- in its table or in pruned_ids, with the smallest session that ever had it.
--
-- Progressions. A session and a branch own one each. Where the event names none, its id is that of
-- its owner. message.added appends to the progression of the session, and to that of $branch_id;
-- with append, a list of {progression_id} or of ids, to those instead. An id stands in a progression
-- once. Events write progression_items. collection says the same as one JSON text, which grows with
-- the session: it is written when all events that there are have been applied (`-- settle`), and no
-- section here reads it.
--
-- Forks. A fork points at its parent: parent_branch_id and forked_at_ord, in node_metadata (and as
-- columns, where they are known to be right). forked_at_ord counts the parent's effective history,
-- what it inherits included. branch_history is the effective history of each branch.
--
-- Numbers of classes (message_types) are given out once, in session _state, by
-- message_type.registered; an event carries the number (type_id).
--
-- Times are REAL seconds since 1970, from ISO 8601 or a number; left out, they are the event's ts.

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

-- With the id: whose a progression is is answered without its row, which may be long.
CREATE INDEX idx_progressions_session ON progressions(session_id, id);

-- What stands in a progression, in order: ord counts from 0 without a gap.
CREATE TABLE progression_items (
    progression_id TEXT NOT NULL,
    ord            INTEGER NOT NULL,
    message_id     TEXT NOT NULL,
    PRIMARY KEY (progression_id, ord)
) WITHOUT ROWID;

CREATE UNIQUE INDEX idx_progression_items_message ON progression_items(message_id, progression_id);

-- Progressions whose collection does not hold their items from ord on; empty once all are settled.
CREATE TABLE progressions_behind (
    session_id     TEXT NOT NULL,
    progression_id TEXT NOT NULL,
    ord            INTEGER NOT NULL,
    PRIMARY KEY (session_id, progression_id)
) WITHOUT ROWID;

-- Where events put a message: at the end of a progression, unless it stands there.
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
-- Another session has the better claim to the id.
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

-- What a session's own events call a branch, also where another session has the row of that id.
CREATE TABLE branch_progressions (
    session_id     TEXT NOT NULL,
    branch_id      TEXT NOT NULL,
    progression_id TEXT NOT NULL,
    PRIMARY KEY (session_id, branch_id)
) WITHOUT ROWID;

-- Ids of rows that were pruned. Who has the better claim takes the id out of here, or keeps it from
-- being used again; a session may use its own again, for what it appends then begins anew.
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

-- What operators did: from session _state.
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
    SELECT RAISE(ABORT, 'admin_events is append-only: what an operator did is never deleted');
END;

CREATE TRIGGER admin_events_stand BEFORE UPDATE ON admin_events
BEGIN
    SELECT RAISE(ABORT, 'admin_events is append-only: what an operator did is never changed');
END;

-- INSERT OR REPLACE would delete without asking the trigger above.
CREATE TRIGGER admin_events_once BEFORE INSERT ON admin_events
WHEN EXISTS (SELECT 1 FROM admin_events WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'admin_events is append-only: this one is there already');
END;

-- Every change of status, with its reason. entity_type is session; written with the row it is about.
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

-- The session that is being pruned, while its rows go. Empty otherwise.
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

-- INSERT OR REPLACE would delete without asking the trigger above.
CREATE TRIGGER status_transitions_once BEFORE INSERT ON status_transitions
WHEN EXISTS (SELECT 1 FROM status_transitions WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'status_transitions is append-only: this one is there already');
END;

-- The life of a session, as data. Only what an edge allows is possible; anything else needs
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

-- The effective history of each branch: what it inherits, then its own. cut: how much of the
-- effective history of that ancestor the branch has.
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

-- How many that are, without looking at them.
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

-- The same with the messages; an id that has no message is skipped.
CREATE VIEW branch_messages AS
SELECT h.branch_id, h.ord, m.*
FROM branch_history h JOIN messages m ON m.id = h.message_id;

-- The pool of each session, in order.
CREATE VIEW session_messages AS
SELECT s.id AS in_session, i.ord, m.*
FROM sessions s JOIN progression_items i ON i.progression_id = s.progression_id
     JOIN messages m ON m.id = i.message_id;

-- on session.created, session.imported   guarded "invocation_kind is one of agent, play, flow, fanout and show-play"
SELECT 1
WHERE $invocation_kind IS NULL
   OR $invocation_kind IN ('agent', 'play', 'flow', 'fanout', 'show-play');

-- on session.created, session.imported   guarded "source_kind is one of live and imported_fs"
SELECT 1
WHERE $source_kind IS NULL OR $source_kind IN ('live', 'imported_fs');

-- on session.created, session.imported   guarded "status is none that a session can have"
SELECT 1
WHERE $status IS NULL OR $status IN ('idle', 'paused', 'ended')
   OR $status IN (SELECT status FROM session_statuses);

-- on session.created, session.imported   guarded "the session is there already"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = :session AND source_kind IS NOT NULL);

-- on session.created, session.imported   guarded "the progression belongs to another session"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM progressions
                  WHERE id = COALESCE($progression_id, :session) AND session_id <> :session);

-- on session.created, session.imported   guarded "the progression was of another session, which was pruned: its id is not used again"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'progression' AND id = COALESCE($progression_id, :session) AND session_id <> :session);

-- A status of another vocabulary (the core pack's idle, say) is none here.

-- on session.created, session.imported
INSERT INTO progressions (id, created_at, collection, session_id)
VALUES (COALESCE($progression_id, :session), COALESCE(annal_unix($created_at), annal_unix(:ts)),
        '[]', :session)
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, collection = '[]', session_id = excluded.session_id
    WHERE excluded.session_id < session_id;
INSERT INTO sessions (id, created_at, node_metadata, name, user, progression_id, updated_at,
                      playbook_name, agent_name, invocation_kind, show_topic, show_play_name,
                      artifacts_path, source_kind, status, started_at, ended_at, last_message_at,
                      health, delivery, reason_codes, process)
VALUES (:session,
        COALESCE(annal_unix($created_at), annal_unix(:ts)),
        NULLIF(COALESCE(:data -> '$.node_metadata', :data -> '$.metadata'), 'null'),
        $name, $user,
        COALESCE($progression_id, :session),
        COALESCE(annal_unix($updated_at), annal_unix(:ts)),
        $playbook_name, $agent_name,
        CASE WHEN $invocation_kind IN ('agent', 'play', 'flow', 'fanout', 'show-play')
             THEN $invocation_kind END,
        $show_topic, $show_play_name, $artifacts_path,
        CASE WHEN json_type(:data, '$.source_kind') = 'null' THEN NULL
             WHEN $source_kind IN ('live', 'imported_fs') THEN $source_kind
             WHEN :type = 'session.imported' THEN 'imported_fs' ELSE 'live' END,
        (SELECT status FROM session_statuses WHERE status = $status),
        annal_unix($started_at), annal_unix($ended_at),
        COALESCE(annal_unix($started_at), annal_unix($created_at), annal_unix(:ts)),
        $health, $delivery,
        COALESCE(NULLIF(:data -> '$.reason_codes', 'null'), '[]'),
        NULLIF(:data -> '$.process', 'null'))
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at,
    node_metadata = COALESCE(excluded.node_metadata, node_metadata),
    name = COALESCE(excluded.name, name),
    user = COALESCE(excluded.user, user),
    progression_id = COALESCE($progression_id, progression_id),
    updated_at = MAX(updated_at, excluded.updated_at),
    playbook_name = COALESCE(excluded.playbook_name, playbook_name),
    agent_name = COALESCE(excluded.agent_name, agent_name),
    invocation_kind = COALESCE(excluded.invocation_kind, invocation_kind),
    show_topic = COALESCE(excluded.show_topic, show_topic),
    show_play_name = COALESCE(excluded.show_play_name, show_play_name),
    artifacts_path = COALESCE(excluded.artifacts_path, artifacts_path),
    source_kind = excluded.source_kind,
    status = COALESCE(status, excluded.status),
    started_at = COALESCE(excluded.started_at, started_at),
    ended_at = COALESCE(excluded.ended_at, ended_at),
    last_message_at = MAX(last_message_at, excluded.last_message_at),
    process = COALESCE(excluded.process, process);

-- A session that began without session.created is a session all the same.

-- on message.added, branch.created, branch.forked, progression.created, session.transition, run.transition, session.opened
INSERT INTO progressions (id, created_at, collection, session_id)
SELECT :session, annal_unix(:ts), '[]', :session
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = :session)
  AND NOT (:type = 'run.transition' AND :session GLOB 'run_*')
ON CONFLICT (id) DO NOTHING;
INSERT INTO sessions (id, created_at, progression_id, updated_at, source_kind, last_message_at)
SELECT :session, annal_unix(:ts), :session, annal_unix(:ts), NULL, annal_unix(:ts)
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = :session)
  AND NOT (:type = 'run.transition' AND :session GLOB 'run_*')
ON CONFLICT (id) DO NOTHING;

-- Who has the session open; see annal/process.h.

-- on session.opened
UPDATE sessions SET
    process = COALESCE(NULLIF(:data -> '$.process', 'null'), process),
    updated_at = MAX(updated_at, annal_unix(:ts))
WHERE id = :session;

-- on session.updated   guarded "set names a column that sessions do not have, or that is not set so"
SELECT 1
WHERE NOT EXISTS (
    SELECT 1 FROM json_each(COALESCE(:data -> '$.set', '{}'))
    WHERE key NOT IN ('name', 'user', 'node_metadata', 'playbook_name', 'agent_name',
                      'invocation_kind', 'show_topic', 'show_play_name', 'artifacts_path',
                      'source_kind', 'started_at', 'ended_at', 'updated_at', 'health', 'delivery',
                      'reason_codes', 'process',
                      'flow_id', 'agent_id', 'provider', 'model', 'created_at', 'title',
                      'working_directory', 'git_branch', 'parent_session_id')
      AND NOT (key = 'status' AND NOT EXISTS (SELECT 1 FROM sessions
                                              WHERE id = :session AND status IS NOT NULL)));

-- on session.updated   guarded "invocation_kind and source_kind are closed vocabularies"
SELECT 1
WHERE ($set::invocation_kind IS NULL
       OR $set::invocation_kind IN ('agent', 'play', 'flow', 'fanout', 'show-play'))
  AND ($set::source_kind IS NULL OR $set::source_kind IN ('live', 'imported_fs'));

-- What has ended stays so for the pack core, too, whose sessions these events change.

-- on session.status_changed, session.paused, session.resumed, session.updated, session_pause, session_resume   guarded "the session has ended, and only a session.transition with override leads out of that"
SELECT 1
WHERE (:type = 'session.updated' AND COALESCE($status, $set::status) IS NULL)
   OR NOT EXISTS (SELECT 1 FROM sessions s JOIN session_statuses t ON t.status = s.status
                  WHERE s.id = :session AND t.terminal);

-- Never touches last_message_at: a change of the row is no sign of life.

-- on session.updated
UPDATE sessions SET
    name = CASE WHEN json_type(:data, '$.set.name') IS NULL THEN name ELSE $set::name END,
    user = CASE WHEN json_type(:data, '$.set.user') IS NULL THEN user ELSE $set::user END,
    node_metadata = CASE WHEN json_type(:data, '$.set.node_metadata') IS NULL THEN node_metadata
                         ELSE NULLIF(:data -> '$.set.node_metadata', 'null') END,
    playbook_name = CASE WHEN json_type(:data, '$.set.playbook_name') IS NULL THEN playbook_name
                         ELSE $set::playbook_name END,
    agent_name = CASE WHEN json_type(:data, '$.set.agent_name') IS NULL THEN agent_name
                      ELSE $set::agent_name END,
    invocation_kind =
        CASE WHEN json_type(:data, '$.set.invocation_kind') = 'null' THEN NULL
             WHEN $set::invocation_kind IN ('agent', 'play', 'flow', 'fanout', 'show-play')
             THEN $set::invocation_kind ELSE invocation_kind END,
    show_topic = CASE WHEN json_type(:data, '$.set.show_topic') IS NULL THEN show_topic
                      ELSE $set::show_topic END,
    show_play_name = CASE WHEN json_type(:data, '$.set.show_play_name') IS NULL THEN show_play_name
                          ELSE $set::show_play_name END,
    artifacts_path = CASE WHEN json_type(:data, '$.set.artifacts_path') IS NULL THEN artifacts_path
                          ELSE $set::artifacts_path END,
    source_kind = CASE WHEN json_type(:data, '$.set.source_kind') = 'null' THEN NULL
                       WHEN $set::source_kind IN ('live', 'imported_fs') THEN $set::source_kind
                       ELSE source_kind END,
    started_at = CASE WHEN json_type(:data, '$.set.started_at') IS NULL THEN started_at
                      ELSE annal_unix($set::started_at) END,
    ended_at = CASE WHEN json_type(:data, '$.set.ended_at') IS NULL THEN ended_at
                    ELSE annal_unix($set::ended_at) END,
    health = CASE WHEN json_type(:data, '$.set.health') IS NULL THEN health
                  ELSE $set::health END,
    delivery = CASE WHEN json_type(:data, '$.set.delivery') IS NULL THEN delivery
                    ELSE $set::delivery END,
    reason_codes = COALESCE(NULLIF(:data -> '$.set.reason_codes', 'null'), reason_codes),
    process = CASE WHEN json_type(:data, '$.set.process') IS NULL THEN process
                   ELSE NULLIF(:data -> '$.set.process', 'null') END,
    updated_at = COALESCE(annal_unix($set::updated_at), MAX(updated_at, annal_unix(:ts)))
WHERE id = :session;

-- run.transition is the same in another word, except in the session of a run (pack agentweaver).

-- on session.transition, run.transition   guarded "there is no such session"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR EXISTS (SELECT 1 FROM sessions WHERE id = :session);

-- on session.transition, run.transition   guarded "to is none of the statuses of a session"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR EXISTS (SELECT 1 FROM session_statuses WHERE status = $to);

-- on session.transition, run.transition   guarded "source is one of executor, agent, admin and system"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR $source IS NULL OR $source IN ('executor', 'agent', 'admin', 'system');

-- on session.transition, run.transition   guarded "a reason_code is three words, lower case, with dots between: session.stale.no_heartbeat"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR $reason_code IS NULL OR $reason_code = 'legacy.imported'
   OR ($reason_code GLOB '[a-z]*.[a-z]*.[a-z]*' AND NOT $reason_code GLOB '*[^a-z0-9_.]*'
       AND NOT $reason_code GLOB '*.*.*.*' AND NOT $reason_code GLOB '*..*');

-- quiet_since: who ends a session because nothing came from it says up to when he looked.

-- on session.transition, run.transition   guarded "the session has been active since"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR $quiet_since IS NULL
   OR EXISTS (SELECT 1 FROM sessions
              WHERE id = :session AND $quiet_since >=
                    COALESCE(NULLIF(last_message_at, 0), NULLIF(updated_at, 0), 0));

-- on session.transition, run.transition   guarded "the session has another status than expected"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR json_type(:data, '$.expected') IS NULL
   OR EXISTS (SELECT 1 FROM sessions s, json_each(:data, '$.expected') e
              WHERE s.id = :session AND s.status IS e.value);

-- on session.transition, run.transition   guarded "this status has no way there: only running ends, and what has ended stays so, unless override is given with a reason"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR EXISTS (SELECT 1 FROM sessions s JOIN session_edges e ON e.from_status = s.status
              WHERE s.id = :session AND e.to_status = $to)
   OR ($override = 1
       AND trim(COALESCE($reason_code, '') || COALESCE($reason_summary, ''),
                ' ' || char(9, 10, 13)) <> '');

-- on session.transition, run.transition   guarded "an admin may end a session as failed, aborted or cancelled, and no other"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR $source IS NOT 'admin'
   OR EXISTS (SELECT 1 FROM session_statuses WHERE status = $to AND admin_target)
   OR ($override = 1
       AND trim(COALESCE($reason_code, '') || COALESCE($reason_summary, ''),
                ' ' || char(9, 10, 13)) <> '');

-- on session.transition, run.transition
INSERT INTO status_transitions (id, entity_type, entity_id, from_status, to_status, reason_code,
                                reason_summary, evidence_refs, source, actor, override, metadata,
                                created_at)
SELECT :session || ':' || :seq, 'session', :session, s.status, $to, $reason_code, $reason_summary,
       NULLIF(COALESCE(:data -> '$.evidence_refs', :data -> '$.evidence'), 'null'), $source, $actor,
       COALESCE($override = 1, 0), NULLIF(:data -> '$.metadata', 'null'), annal_unix(:ts)
FROM sessions s
WHERE s.id = :session AND $to IN (SELECT status FROM session_statuses);
UPDATE sessions SET
    status = $to,
    started_at = CASE WHEN $to = 'running' THEN COALESCE(started_at, annal_unix(:ts))
                      ELSE started_at END,
    ended_at = CASE WHEN $to = 'running' THEN NULL
                    ELSE COALESCE(annal_unix($ended_at), annal_unix(:ts)) END,
    status_reason_code = $reason_code,
    status_reason_summary = $reason_summary,
    status_evidence_refs =
        NULLIF(COALESCE(:data -> '$.evidence_refs', :data -> '$.evidence'), 'null'),
    updated_at = MAX(updated_at, annal_unix(:ts))
WHERE id = :session AND $to IN (SELECT status FROM session_statuses);

-- on branch.created, branch.forked   guarded "a branch has an id"
SELECT 1 WHERE json_type(:data, '$.id') = 'text' AND $id <> '';

-- on branch.created, branch.forked   guarded "the branch or its progression belongs to another session"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM branches WHERE id = $id AND session_id <> :session)
  AND NOT EXISTS (SELECT 1 FROM progressions
                  WHERE id = COALESCE($progression_id, $id) AND session_id <> :session);

-- on branch.created, branch.forked   guarded "the branch or its progression was of another session, which was pruned: its id is not used again"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'branch' AND id = $id AND session_id <> :session)
  AND NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'progression' AND id = COALESCE($progression_id, $id)
                    AND session_id <> :session);

-- on branch.forked   guarded "the branch is there already"
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM branches WHERE id = $id);

-- on branch.forked   guarded "the session has no such parent branch"
SELECT 1
WHERE EXISTS (SELECT 1 FROM branches WHERE id = $parent_branch_id AND session_id = :session);

-- on branch.forked   guarded "forked_at_ord is not within the history of the parent"
SELECT 1
WHERE json_type(:data, '$.forked_at_ord') = 'integer' AND $forked_at_ord >= 0
  AND $forked_at_ord <= (SELECT length FROM branch_lengths
                         WHERE branch_id = $parent_branch_id);

-- A branch forks where its parent stands, unless the event says where.

-- fill branch.forked
SELECT COALESCE((SELECT length FROM branch_lengths WHERE branch_id = $parent_branch_id), 0)
       AS forked_at_ord;

-- on branch.created, branch.forked
INSERT INTO progressions (id, created_at, collection, session_id)
SELECT COALESCE($progression_id, $id), COALESCE(annal_unix($created_at), annal_unix(:ts)), '[]',
       :session
WHERE $id IS NOT NULL
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, collection = '[]', session_id = excluded.session_id
    WHERE excluded.session_id < session_id;
INSERT INTO branches (id, created_at, node_metadata, user, name, session_id, progression_id,
                      system_msg_id, parent_branch_id, forked_at_ord)
SELECT $id, COALESCE(annal_unix($created_at), annal_unix(:ts)),
       CASE WHEN :type = 'branch.forked'
            THEN json_set(CASE json_type(:data, '$.node_metadata') WHEN 'object'
                               THEN :data -> '$.node_metadata' ELSE '{}' END,
                          '$.parent_branch_id', $parent_branch_id,
                          '$.forked_at_ord', $forked_at_ord)
            ELSE NULLIF(COALESCE(:data -> '$.node_metadata', :data -> '$.metadata'), 'null') END,
       $user, $name, :session, COALESCE($progression_id, $id),
       COALESCE($system_msg_id, (SELECT system_msg_id FROM branches
                                 WHERE id = parent.id AND parent.ord > 0)),
       parent.id, CASE WHEN parent.id IS NOT NULL THEN parent.ord END
FROM (SELECT max(p.id) AS id,
             MAX(0, MIN(COALESCE($forked_at_ord, $node_metadata::forked_at_ord),
                        (SELECT length FROM branch_lengths
                         WHERE branch_id = COALESCE($parent_branch_id,
                                                    $node_metadata::parent_branch_id)))) AS ord
      FROM branches p
      WHERE p.id = COALESCE($parent_branch_id, $node_metadata::parent_branch_id)
        AND p.session_id = :session AND p.id <> $id) parent
WHERE $id IS NOT NULL
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, node_metadata = excluded.node_metadata,
    user = excluded.user, name = excluded.name, session_id = excluded.session_id,
    progression_id = excluded.progression_id, system_msg_id = excluded.system_msg_id,
    parent_branch_id = excluded.parent_branch_id, forked_at_ord = excluded.forked_at_ord
    WHERE excluded.session_id < session_id;
INSERT INTO branch_progressions (session_id, branch_id, progression_id)
SELECT :session, $id, COALESCE($progression_id, $id) WHERE $id IS NOT NULL
ON CONFLICT DO NOTHING;

-- on branch.updated   guarded "the session has no such branch"
SELECT 1
WHERE EXISTS (SELECT 1 FROM branches WHERE id = $id AND session_id = :session);

-- on branch.updated   guarded "set names a column that branches do not have, or that is not set so"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM json_each(COALESCE(:data -> '$.set', '{}'))
                  WHERE key NOT IN ('name', 'user', 'node_metadata'));

-- What a fork points at stays.

-- on branch.updated
UPDATE branches SET
    name = CASE WHEN json_type(:data, '$.set.name') IS NULL THEN name ELSE $set::name END,
    user = CASE WHEN json_type(:data, '$.set.user') IS NULL THEN user ELSE $set::user END,
    node_metadata =
        CASE WHEN json_type(:data, '$.set.node_metadata') IS NULL THEN node_metadata
             WHEN parent_branch_id IS NULL THEN NULLIF(:data -> '$.set.node_metadata', 'null')
             ELSE json_set(CASE json_type(:data, '$.set.node_metadata') WHEN 'object'
                                THEN :data -> '$.set.node_metadata' ELSE '{}' END,
                           '$.parent_branch_id', parent_branch_id,
                           '$.forked_at_ord', forked_at_ord) END
WHERE id = $id AND session_id = :session;
UPDATE sessions SET updated_at = MAX(updated_at, annal_unix(:ts)) WHERE id = :session;

-- on branch.system_set   guarded "the session has no such branch, or there is no such message"
SELECT 1
WHERE EXISTS (SELECT 1 FROM branches
              WHERE id = COALESCE($id, $branch_id) AND session_id = :session)
  AND EXISTS (SELECT 1 FROM messages WHERE id = $message_id);

-- on branch.system_set
UPDATE branches SET system_msg_id = $message_id
WHERE id = COALESCE($id, $branch_id) AND session_id = :session;

-- on progression.created   guarded "a progression has an id, and no other session has it"
SELECT 1
WHERE json_type(:data, '$.id') = 'text' AND $id <> ''
  AND NOT EXISTS (SELECT 1 FROM progressions WHERE id = $id AND session_id <> :session);

-- on progression.created   guarded "the progression was of another session, which was pruned: its id is not used again"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'progression' AND id = $id AND session_id <> :session);

-- on progression.created
INSERT INTO progressions (id, created_at, collection, session_id)
SELECT $id, COALESCE(annal_unix($created_at), annal_unix(:ts)),
       (SELECT json_group_array(value)
        FROM (SELECT value FROM json_each(COALESCE(:data -> '$.collection', '[]'))
              WHERE type = 'text' GROUP BY value ORDER BY MIN(key))),
       :session
WHERE $id IS NOT NULL
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, collection = excluded.collection,
    session_id = excluded.session_id
    WHERE excluded.session_id < session_id;

-- on progression.appended   guarded "the session has no such progression"
SELECT 1
WHERE $message_id <> ''
  AND EXISTS (SELECT 1 FROM progressions WHERE id = $progression_id AND session_id = :session);

-- on progression.appended
INSERT INTO progression_ends (session_id, progression_id, message_id)
SELECT :session, p.id, '' || $message_id
FROM progressions p
WHERE p.session_id = :session AND p.id = $progression_id AND $message_id IS NOT NULL;

-- The class that an event names gets its number; none is 0. A class without a number must be
-- registered first: the number is given out in one place.

-- fill message.added, message.amended   reads _state
SELECT CASE WHEN COALESCE($lion_class, $node_metadata::lion_class, $metadata::lion_class, '') = ''
            THEN 0
            ELSE (SELECT type_id FROM message_types
                  WHERE lion_class = COALESCE($lion_class, $node_metadata::lion_class,
                                              $metadata::lion_class)) END AS type_id;

-- on message.added   guarded "a message has an id, a role and content"
SELECT 1
WHERE json_type(:data, '$.id') = 'text' AND $id <> ''
  AND json_type(:data, '$.role') = 'text' AND $role <> ''
  AND ($content IS NOT NULL OR $content_ref IS NOT NULL);

-- on message.added, message.amended   guarded "this lion_class has no number yet: message_type.registered in session _state gives it one"   reads _state
SELECT 1
WHERE EXISTS (SELECT 1 FROM message_types WHERE type_id = $type_id);

-- on message.added   guarded "the message belongs to another session"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM messages WHERE id = $id AND session_id <> :session);

-- on message.added   guarded "the message was of another session, which was pruned: its id is not used again"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'message' AND id = $id AND session_id <> :session);

-- on message.added   guarded "the session has no such branch or progression"
SELECT 1
WHERE ($branch_id IS NULL
       OR EXISTS (SELECT 1 FROM branches WHERE id = $branch_id AND session_id = :session))
  AND NOT EXISTS (SELECT 1 FROM json_each(:data, '$.append') a
                  WHERE NOT EXISTS (SELECT 1 FROM progressions p WHERE p.session_id = :session
                                    AND p.id = CASE a.type WHEN 'object'
                                                    THEN a.value ->> '$.progression_id'
                                                    ELSE a.value END));

-- The number of a class that has none in the event: the ones above, which never change, or 0.

-- on message.added
UPDATE sessions SET
    first_msg_id = COALESCE(first_msg_id, $id),
    last_msg_id = CASE WHEN EXISTS (SELECT 1 FROM progression_items
                                    WHERE message_id = '' || $id
                                      AND progression_id = sessions.progression_id)
                       THEN last_msg_id ELSE $id END,
    last_message_at = MAX(COALESCE(last_message_at, 0),
                          COALESCE(annal_unix($created_at), annal_unix(:ts))),
    updated_at = MAX(updated_at, COALESCE(annal_unix($created_at), annal_unix(:ts)))
WHERE id = :session AND $id IS NOT NULL;

-- on message.added
INSERT INTO messages (id, created_at, node_metadata, content, embedding, sender, recipient, channel,
                      role, lion_class, session_id)
SELECT $id,
       COALESCE(annal_unix($created_at), annal_unix(:ts)),
       NULLIF(COALESCE(:data -> '$.node_metadata', :data -> '$.metadata'), 'null'),
       CASE WHEN $content IS NULL AND $content_ref IS NOT NULL
            THEN json_object('content_ref', json(:data -> '$.content_ref'))
            ELSE NULLIF(:data -> '$.content', 'null') END,
       COALESCE(annal_blob($embedding_b64), annal_f32($embedding)),
       $sender, $recipient, $channel, $role,
       COALESCE($type_id,
                (SELECT type_id FROM message_types
                 WHERE type_id <= 5
                   AND lion_class = COALESCE($lion_class, $node_metadata::lion_class,
                                             $metadata::lion_class)),
                0),
       :session
WHERE $id IS NOT NULL
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, node_metadata = excluded.node_metadata,
    content = excluded.content, embedding = excluded.embedding, sender = excluded.sender,
    recipient = excluded.recipient, channel = excluded.channel, role = excluded.role,
    lion_class = excluded.lion_class, session_id = excluded.session_id
    WHERE excluded.session_id <= session_id;

-- Where it stands from now on: in the progressions of append, else in those of session and branch.

-- on message.added
INSERT INTO progression_ends (session_id, progression_id, message_id)
SELECT :session, p.id, '' || $id
FROM progressions p
WHERE p.session_id = :session AND $id IS NOT NULL
  AND p.id IN (SELECT CASE type WHEN 'object' THEN value ->> '$.progression_id' ELSE value END
               FROM json_each(:data, '$.append')
               UNION ALL
               SELECT progression_id FROM sessions
               WHERE id = :session AND json_type(:data, '$.append') IS NULL
               UNION ALL
               SELECT progression_id FROM branch_progressions
               WHERE session_id = :session AND branch_id = $branch_id
                 AND json_type(:data, '$.append') IS NULL);

-- on message.amended, message.content_pruned   guarded "the session has no such message"
SELECT 1
WHERE EXISTS (SELECT 1 FROM messages WHERE id = $id AND session_id = :session);

-- What the event leaves out stays.

-- on message.amended
UPDATE messages SET
    created_at = COALESCE(annal_unix($created_at), created_at),
    node_metadata = CASE WHEN json_type(:data, '$.node_metadata') IS NULL THEN node_metadata
                         ELSE NULLIF(:data -> '$.node_metadata', 'null') END,
    content = COALESCE(NULLIF(:data -> '$.content', 'null'), content),
    embedding = COALESCE(annal_blob($embedding_b64), annal_f32($embedding), embedding),
    sender = CASE WHEN json_type(:data, '$.sender') IS NULL THEN sender ELSE $sender END,
    recipient = CASE WHEN json_type(:data, '$.recipient') IS NULL THEN recipient
                     ELSE $recipient END,
    channel = CASE WHEN json_type(:data, '$.channel') IS NULL THEN channel ELSE $channel END,
    role = CASE WHEN json_type(:data, '$.role') = 'text' THEN $role ELSE role END,
    lion_class = CASE WHEN COALESCE($lion_class, $node_metadata::lion_class,
                                    $metadata::lion_class, '') = '' THEN lion_class
                      ELSE COALESCE($type_id, lion_class) END
WHERE id = $id AND session_id = :session;
UPDATE sessions SET updated_at = MAX(updated_at, annal_unix(:ts)) WHERE id = :session;

-- on message.content_pruned
UPDATE messages SET
    content = json_object('pruned', json('true'), 'at', COALESCE($at, :ts),
                          'original_bytes', $original_bytes),
    embedding = NULL
WHERE id = $id AND session_id = :session;

-- on message_type.registered   guarded "message types are registered in session _state"
SELECT 1 WHERE :session = '_state';

-- on message_type.registered   guarded "this lion_class has a number already"
SELECT 1
WHERE $lion_class <> '' AND NOT EXISTS (SELECT 1 FROM message_types
                                        WHERE lion_class = $lion_class);

-- on message_type.registered   guarded "type_id is not the next number"
SELECT 1
WHERE $type_id = (SELECT MAX(type_id) + 1 FROM message_types);

-- fill message_type.registered
SELECT MAX(type_id) + 1 AS type_id FROM message_types;

-- on message_type.registered
INSERT INTO message_types (type_id, lion_class)
SELECT $type_id, $lion_class
WHERE :session = '_state' AND typeof($type_id) = 'integer' AND $type_id > 5
  AND $lion_class IS NOT NULL
ON CONFLICT DO NOTHING;

-- on admin.recorded   guarded "what operators do is recorded in session _state, with its action"
SELECT 1
WHERE :session = '_state'
  AND $action IN ('transition', 'prune', 'checkpoint', 'vacuum', 'classify', 'import');

-- on admin.recorded
INSERT INTO admin_events (id, created_at, action, target_id, details, actor)
SELECT :session || ':' || :seq, annal_unix(:ts), COALESCE($action, ''), $target_id,
       NULLIF(:data -> '$.details', 'null'), $actor
WHERE :session = '_state';

-- Pruning: the session's row and its branches go. What others still need was asked before, when the
-- event was made: its progressions stay, and of its messages those that are named in messages go;
-- with orphan_progressions all of both go but those that are named in keep_....

-- on session.pruned   guarded "the session has changed since it was chosen"
SELECT 1
WHERE $cutoff IS NULL
   OR EXISTS (SELECT 1 FROM sessions WHERE id = :session AND updated_at < annal_unix($cutoff));

-- on session.pruned
INSERT INTO pruned_ids (kind, id, session_id)
SELECT 'branch', id, session_id FROM branches WHERE session_id = :session
UNION ALL
SELECT 'progression', id, session_id FROM progressions
WHERE session_id = :session AND $orphan_progressions = 1
  AND id NOT IN (SELECT value FROM json_each(:data, '$.keep_progressions'))
UNION ALL
SELECT 'message', id, session_id FROM messages
WHERE session_id = :session
  AND CASE WHEN $orphan_progressions = 1
           THEN id NOT IN (SELECT value FROM json_each(:data, '$.keep_messages'))
           ELSE id IN (SELECT value FROM json_each(:data, '$.messages')) END;
DELETE FROM branches WHERE session_id = :session;
DELETE FROM branch_progressions WHERE session_id = :session;
INSERT INTO sessions_forgotten (session_id) VALUES (:session);
DELETE FROM status_transitions WHERE entity_type = 'session' AND entity_id = :session;
DELETE FROM sessions_forgotten;
DELETE FROM sessions WHERE id = :session;
DELETE FROM progressions
WHERE session_id = :session
  AND EXISTS (SELECT 1 FROM pruned_ids p WHERE p.kind = 'progression' AND p.id = progressions.id);
DELETE FROM messages
WHERE session_id = :session
  AND EXISTS (SELECT 1 FROM pruned_ids p WHERE p.kind = 'message' AND p.id = messages.id);

-- settle
UPDATE progressions SET
    collection = rtrim(collection, ']') || CASE collection WHEN '[]' THEN '' ELSE ',' END
        || (SELECT group_concat(json_quote(message_id), ',')
            FROM (SELECT message_id FROM progression_items
                  WHERE progression_id = behind.progression_id AND ord >= behind.ord
                  ORDER BY ord)) || ']'
FROM progressions_behind behind
WHERE behind.session_id = :session AND progressions.id = behind.progression_id;
DELETE FROM progressions_behind WHERE session_id = :session;

-- ---- Verbs ----

-- noun lionagi   "sessions, branches and messages of lionagi"

-- verb lionagi session   appends session.created   session {SESSION}   "begin a session"
--   SESSION            text id                               "its id"
--   --name NAME        text name                             "what people call it"
--   --user USER        text user                             "whose it is"
--   --metadata JSON    json node_metadata                    "anything"
--   --progression ID   text progression_id                   "of its messages (the session's id)"
--   --kind KIND        text invocation_kind (agent|play|flow|fanout|show-play)  "what ran"
--   --agent NAME       text agent_name                       "which agent"
--   --playbook NAME    text playbook_name                    "which playbook"
--   --show-topic TEXT  text show_topic                       "of a show"
--   --show-play NAME   text show_play_name                   "the play in that show"
--   --artifacts DIR    text artifacts_path                   "where its artifacts are"
--   --status STATUS    text status = "running"
--                      (running|completed|failed|timed_out|aborted|cancelled)
--                      "running, unless it is given"
--   --created TIME     time created_at                       "now, unless it is given"
--   --started TIME     time started_at                       "when it began to run (when created)"
--   --pid PID          number                                "the process that runs it, such as $$"
--   says     session {SESSION} is {status}
--   about    Its row in the table sessions of state.db, and its progression. With --pid the
--            process is recorded, so that 'annal doctor --transition-stale' can prove its
--            death.
--   example  annal lionagi session run-1 --kind agent --agent analyst --pid $$

-- verb lionagi open   appends session.opened   session {SESSION}
--      "say which process runs a session from now on"
--   SESSION    text             "the session"
--   --pid PID  number required  "the process that runs it now, such as $$"
--   says     session {SESSION} is run by process {pid}
--   about    For a session that is taken up again: what was recorded of the process before is
--            replaced, so that nobody takes the session for one whose process died.
--   example  annal lionagi open run-1 --pid $$

-- verb lionagi set   appends session.updated   session {SESSION}
--      "change what a session is called and where it comes from"
--   SESSION          text                     "the session"
--   --name NAME      text set.name            "what people call it"
--   --user USER      text set.user            "whose it is"
--   --metadata JSON  json set.node_metadata   "in the place of what was there"
--   --agent NAME     text set.agent_name      "which agent"
--   --playbook NAME  text set.playbook_name   "which playbook"
--   --artifacts DIR  text set.artifacts_path  "where its artifacts are"
--   --health WORD    text set.health          "second axis of its state"
--   --delivery WORD  text set.delivery        "third axis of its state"
--   says     session {SESSION} is changed
--   about    Is no sign of life: last_message_at stays. Its status has a verb of its own,
--            transition.
--   example  annal lionagi set run-1 --name "tide table"

-- verb lionagi transition   appends session.transition   session {SESSION}
--      "change the status of a session"
--   SESSION             text                                  "the session"
--   STATUS              text to                               "its status from now on"
--   --expect STATUS     list expected                     "refuse unless it is this now; repeat it"
--   --reason-code CODE  text reason_code                      "why, for programs"
--   --reason TEXT       text reason_summary                   "why, for people"
--   --source WHO        text source = "executor" (executor|agent|admin|system)
--                       "who says so (executor)"
--   --actor NAME        text actor                            "their name"
--   --evidence JSON     json evidence_refs                    "what shows it"
--   --ended TIME        time ended_at                         "now, unless it is given"
--   --override          flag override              "also out of a status that ends; needs a reason"
--   says     session {SESSION} is {to}
--   about    Only running has a way on; what has ended stays so, unless --override is given
--            with a reason. STATUS is running, completed, failed, timed_out, aborted or
--            cancelled. Each change is kept in status_transitions.
--   example  annal lionagi transition run-1 completed --expect running
--            annal lionagi transition run-1 running --override --reason "was cut off"

-- verb lionagi branch   appends branch.created   session {SESSION}   "add a branch to a session"
--   SESSION           text                 "the session"
--   --id ID           text id              "the branch's id (a new UUID)"
--   --name NAME       text name            "what people call it"
--   --user USER       text user            "whose it is"
--   --metadata JSON   json node_metadata   "provider, model, tools, effort"
--   --progression ID  text progression_id  "of its messages (the branch's id)"
--   --system MESSAGE  text system_msg_id   "its system message"
--   says     branch {id} of {SESSION}
--   about    A branch is a progression with a name: messages in their order.
--   example  annal lionagi branch run-1 --id b1 --name main

-- verb lionagi fork   appends branch.forked   session {SESSION}   "fork a branch"
--   SESSION          text                   "the session"
--   BRANCH           text parent_branch_id  "from which it forks"
--   --at N           number forked_at_ord   "it has the first N of its history (all)"
--   --id ID          text id                "the new branch's id (a new UUID)"
--   --name NAME      text name              "what people call it"
--   --user USER      text user              "whose it is"
--   --metadata JSON  json node_metadata     "provider, model, tools, effort"
--   says     branch {id} has the first {forked_at_ord} messages of {BRANCH}
--   about    The new branch has the first N messages of the other's history, what that
--            inherits included. Nothing is copied.
--   example  annal lionagi fork run-1 b1 --at 4 --id b2

-- verb lionagi system   appends branch.system_set   session {SESSION}
--      "say which message is the system message of a branch"
--   SESSION   text             "the session"
--   BRANCH    text id          "the branch"
--   MESSAGE   text message_id  "its system message from now on"
--   says     system message of {BRANCH} is {MESSAGE}
--   about    The message itself stays where it is; the branch points at it.
--   example  annal lionagi system run-1 b1 m1

-- verb lionagi message   appends message.added   session {SESSION}
--      "add a message to a session, and to a branch"
--   SESSION           text                "the session"
--   CONTENT           json content        "JSON; @FILE and - read it"
--   --role ROLE       text role = "user"  "user, assistant, system, tool, ... (user)"
--   --branch ID       text branch_id      "the branch that it belongs to"
--   --id ID           text id             "the message's id (a new UUID)"
--   --sender ID       text sender         "who says it"
--   --recipient ID    text recipient      "to whom"
--   --channel NAME    text channel        "on which channel"
--   --class NAME      text lion_class     "its class, a path of Python"
--   --metadata JSON   json node_metadata  "anything"
--   --embedding JSON  json embedding      "an array of numbers"
--   --created TIME    time created_at     "now, unless it is given"
--   says     message {id} of {SESSION}
--   about    It is appended to the progression of the session and, with --branch, to that of
--            the branch. The same id again overwrites the message. A class that was never
--            seen gets the next number (message_types).
--   example  annal lionagi message run-1 '"hello"' --branch b1
--            annal lionagi message run-1 @answer.json --role assistant --sender b1

-- verb lionagi amend   appends message.amended   session {SESSION}   "change a message"
--   SESSION           text                "the session"
--   MESSAGE           text id             "the message"
--   --content JSON    json content        "its content from now on"
--   --role ROLE       text role           "its role from now on"
--   --sender ID       text sender         "who says it"
--   --recipient ID    text recipient      "to whom"
--   --channel NAME    text channel        "on which channel"
--   --class NAME      text lion_class     "its class, a path of Python"
--   --metadata JSON   json node_metadata  "anything"
--   --embedding JSON  json embedding      "an array of numbers"
--   --created TIME    time created_at     "now, unless it is given"
--   says     message {MESSAGE} is changed
--   about    What is not given stays. The journal keeps both.
--   example  annal lionagi amend run-1 m1 --content '"hello, world"'

-- verb lionagi class   appends message_type.registered   session _state
--      "give a class of messages its number"
--   CLASS     text lion_class  "a path of Python"
--   says     {CLASS} is number {type_id}
--   about    'annal lionagi message' does so by itself. A class that has a number is refused.
--   example  annal lionagi class my.module.Note

-- verb lionagi history   selects   "print what a branch has, with what it inherits"
--   BRANCH    text  "the branch"
--   about    The messages in their order. An id without a message is left out.
--   example  annal lionagi history b2
SELECT ord, id, role, sender, created_at, content
FROM branch_messages
WHERE branch_id = ?1
ORDER BY ord;

-- verb lionagi branches   selects   "list the branches of a session"
--   SESSION   text  "the session"
--   about    The oldest first, with how many messages each has of its own.
--   example  annal lionagi branches run-1
SELECT b.id, b.name, b.created_at, b.parent_branch_id, b.forked_at_ord,
       (SELECT COALESCE(MAX(ord) + 1, 0) FROM progression_items
        WHERE progression_id = b.progression_id) AS messages,
       b.system_msg_id
FROM branches b
WHERE b.session_id = ?1
ORDER BY b.created_at, b.id;

-- verb lionagi inbox   selects   "list the messages to somebody"
--   RECIPIENT       text  "to whom"
--   --channel NAME  text  "only on this channel"
--   about    Of all sessions, by time.
--   example  annal lionagi inbox b1 --channel review
SELECT id, created_at, sender, channel, role, content, session_id
FROM messages
WHERE recipient = ?1 AND (?2 IS NULL OR channel = ?2)
ORDER BY created_at, id;

-- verb lionagi similar   selects   "list the messages whose embeddings are nearest"
--   VECTOR     json         "an array of numbers; @FILE and - read it"
--   --limit N  number = 10  "at most so many (10)"
--   about    By cosine distance, among those of the same number of dimensions.
--   example  annal lionagi similar '[0.1, 0.9]' --limit 3
SELECT id, vec_distance_cosine(embedding, annal_f32(?1)) AS distance, session_id, content
FROM messages
WHERE length(embedding) = length(annal_f32(?1))
ORDER BY distance, id LIMIT ?2;
