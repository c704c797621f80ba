-- pack memory   version 2   database memory.db   scope cluster proj_*, run_*, wf_*
-- SPDX-License-Identifier: Apache-2.0
--
-- The second half of Agentweaver, which is more than memory: decisions and proposals, the memory of
-- agents, the current focus of a project, the events of runs as rows, plans of coordinators,
-- steering, and the facts about OAuth tokens (never a token).
--
-- Which session writes what:
--   proj_<project>   decisions, decision_inbox, agent_memory, session_contexts
--   run_<run>        RunEvents (also of its sub-streams run_<run>-rai, run_<run>-scribe)
--   wf_<workflow>    outcome_specs, work_plans, subtasks, subtask_dependencies,
--                    steering_directives
--   _state           oauth_refresh_tokens, oauth_revoked_tokens, oauth_clients
--   any              closed_streams
-- The first column of each key is derived from the name of the session, so no session can write a
-- row of another.
--
-- Ids, slugs and copies for a promotion are allocated when the event is appended (fill) and are
-- stored in it: the next number after the id of the last row, or after all numbers if that is
-- taken. Tags are stored as ,a,b, so that LIKE '%,a,%' finds a complete tag and no part of a tag.

-- ---- Decisions ----

CREATE TABLE decisions (
    project_id       TEXT NOT NULL,
    id               TEXT NOT NULL,
    type             TEXT NOT NULL,
    title            TEXT NOT NULL,
    content          TEXT NOT NULL,
    rationale        TEXT,
    agent_name       TEXT,
    status           TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'superseded')),
    superseded_by_id TEXT,
    inbox_entry_id   TEXT,
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL,
    seq              INTEGER NOT NULL,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, superseded_by_id) REFERENCES decisions(project_id, id)
);

CREATE INDEX ix_decisions_status ON decisions(project_id, status, type);

CREATE TABLE decision_inbox (
    project_id  TEXT NOT NULL,
    id          TEXT NOT NULL,
    agent_name  TEXT NOT NULL,
    slug        TEXT NOT NULL,
    type        TEXT NOT NULL,
    title       TEXT NOT NULL,
    content     TEXT NOT NULL,
    rationale   TEXT,
    status      TEXT NOT NULL DEFAULT 'pending'
                CHECK (status IN ('pending', 'merged', 'rejected')),
    decision_id TEXT,
    merged_at   TEXT,
    merged_by   TEXT,
    rejected_at TEXT,
    reason      TEXT,
    created_at  TEXT NOT NULL,
    updated_at  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    -- addition: the requested slug
    requested_slug TEXT,
    PRIMARY KEY (project_id, id),
    UNIQUE (project_id, slug),
    FOREIGN KEY (project_id, decision_id) REFERENCES decisions(project_id, id)
);

CREATE INDEX ix_decision_inbox_seq ON decision_inbox(project_id, seq);
CREATE INDEX ix_decision_inbox_status ON decision_inbox(project_id, status, type);
CREATE INDEX ix_decision_inbox_agent ON decision_inbox(project_id, agent_name);
CREATE INDEX ix_decision_inbox_requested ON decision_inbox(project_id, requested_slug, agent_name);

-- Which role may merge which types in a batch: boundaries are the coordinator's, routine is the
-- scribe's.
CREATE TABLE promotion_rules (
    by   TEXT NOT NULL,
    type TEXT NOT NULL,
    PRIMARY KEY (by, type)
);

INSERT INTO promotion_rules (by, type) VALUES
    ('coordinator', 'architectural'), ('coordinator', 'scope'),
    ('scribe', 'learning'), ('scribe', 'pattern'), ('scribe', 'update');

-- ---- Memory ----

CREATE TABLE agent_memory (
    project_id TEXT NOT NULL,
    id         TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    session_id TEXT,
    type       TEXT NOT NULL CHECK (type IN ('core_context', 'learning', 'pattern', 'update')),
    importance TEXT NOT NULL DEFAULT 'medium',
    content    TEXT NOT NULL,
    tags       TEXT,
    created_at TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (project_id, id)
);

CREATE INDEX ix_agent_memory_seq ON agent_memory(project_id, seq);
CREATE INDEX ix_agent_memory_agent ON agent_memory(project_id, agent_name, type);
CREATE INDEX ix_agent_memory_importance ON agent_memory(project_id, importance, type);

CREATE TABLE session_contexts (
    project_id       TEXT NOT NULL,
    session_id       TEXT NOT NULL,
    id               TEXT NOT NULL,
    focus_area       TEXT,
    active_issues    TEXT,
    summary          TEXT,
    serialized_state TEXT,
    started_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL,
    ended_at         TEXT,
    seq              INTEGER NOT NULL,
    PRIMARY KEY (project_id, session_id)
);

CREATE INDEX ix_session_contexts_open ON session_contexts(project_id, ended_at, started_at);

CREATE VIEW session_contexts_current AS
SELECT s.project_id, s.session_id, s.id, s.focus_area, s.active_issues, s.summary,
       s.serialized_state, s.started_at, s.updated_at, s.seq
FROM session_contexts s
WHERE s.ended_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM session_contexts o
                  WHERE o.project_id = s.project_id AND o.ended_at IS NULL
                    AND (o.started_at, o.seq) > (s.started_at, s.seq));

-- The rows from which the compiler of contexts chooses: boundaries first, oldest first; then memory
-- by score, newer first; then the current session. docs/packs/agentweaver.md has the whole SELECT.
CREATE VIEW memory_boundaries AS
SELECT project_id, id, type, title, content, rationale, agent_name, created_at, seq
FROM decisions WHERE status = 'active' AND type IN ('architectural', 'scope');

CREATE VIEW memory_scored AS
SELECT project_id, id, agent_name, type, importance, content, tags, created_at, seq,
       CASE lower(importance) WHEN 'high' THEN 3 WHEN 'medium' THEN 2 WHEN 'low' THEN 1 ELSE 0 END
           AS score,
       COALESCE(tags LIKE '%,cross-team,%', 0) AS cross_team
FROM agent_memory
WHERE type = 'core_context' OR (lower(importance) = 'high' AND type IN ('learning', 'pattern'));

-- ---- Events of runs ----

CREATE TABLE RunEvents (
    RunId       TEXT NOT NULL,
    Sequence    INTEGER NOT NULL,
    EventType   TEXT NOT NULL,
    PayloadJson TEXT NOT NULL,
    CreatedAt   TEXT NOT NULL,
    PRIMARY KEY (RunId, Sequence)
) WITHOUT ROWID;

-- Runs whose journal was deleted, while their rows are deleted. Otherwise empty.
CREATE TABLE streams_forgotten (run_id TEXT PRIMARY KEY);

CREATE TRIGGER run_events_stay BEFORE DELETE ON RunEvents
WHEN NOT EXISTS (SELECT 1 FROM streams_forgotten WHERE run_id = OLD.RunId)
BEGIN
    SELECT RAISE(ABORT, 'RunEvents is append-only: an event is never deleted');
END;

CREATE TRIGGER run_events_stand BEFORE UPDATE ON RunEvents
BEGIN
    SELECT RAISE(ABORT, 'RunEvents is append-only: an event is never changed');
END;

-- INSERT OR REPLACE would delete without running the trigger above.
CREATE TRIGGER run_events_once BEFORE INSERT ON RunEvents
WHEN EXISTS (SELECT 1 FROM RunEvents WHERE RunId = NEW.RunId AND Sequence = NEW.Sequence)
BEGIN
    SELECT RAISE(ABORT, 'RunEvents is append-only: this event exists already');
END;

CREATE TABLE terminal_event_types (type TEXT PRIMARY KEY);

INSERT INTO terminal_event_types (type) VALUES
    ('run.completed'), ('run.failed'), ('run.cancelled'), ('merge.completed'), ('merge.failed'),
    ('review.declined'), ('run.assemble_ready');

CREATE TABLE closed_streams (
    session_id TEXT PRIMARY KEY,
    reason     TEXT,
    closed_at  TEXT NOT NULL
);

-- The length of each run's stream, and whether it has ended: in one SELECT, so both are of the same
-- moment.
CREATE VIEW run_streams AS
SELECT e.RunId, e.Sequence AS last_sequence, e.EventType AS last_type,
       e.EventType IN (SELECT type FROM terminal_event_types) AS ended,
       EXISTS (SELECT 1 FROM closed_streams c WHERE c.session_id = 'run_' || e.RunId) AS closed
FROM RunEvents e
WHERE e.Sequence = (SELECT MAX(l.Sequence) FROM RunEvents l WHERE l.RunId = e.RunId);

-- One row, for guards that only check.
CREATE TABLE gate (id INTEGER PRIMARY KEY);
INSERT INTO gate (id) VALUES (1);

-- ---- Plans ----

CREATE TABLE outcome_specs (
    workflow_run_id TEXT NOT NULL,
    id              TEXT NOT NULL,
    project_id      TEXT,
    title           TEXT,
    content         TEXT,
    status          TEXT NOT NULL DEFAULT 'draft'
                    CHECK (status IN ('draft', 'confirmed', 'withdrawn')),
    created_at      TEXT NOT NULL,
    updated_at      TEXT NOT NULL,
    PRIMARY KEY (workflow_run_id, id)
);

CREATE TABLE plan_edges (
    entity      TEXT NOT NULL,
    from_status TEXT NOT NULL,
    to_status   TEXT NOT NULL,
    PRIMARY KEY (entity, from_status, to_status)
);

INSERT INTO plan_edges (entity, from_status, to_status) VALUES
    ('outcome_spec', 'draft', 'confirmed'), ('outcome_spec', 'confirmed', 'draft'),
    ('outcome_spec', 'draft', 'withdrawn'), ('outcome_spec', 'confirmed', 'withdrawn'),
    ('work_plan', 'planned', 'dispatching'), ('work_plan', 'dispatching', 'awaiting_assembly'),
    ('work_plan', 'awaiting_assembly', 'assembling'),
    ('work_plan', 'awaiting_assembly', 'dispatching'),
    ('work_plan', 'assembling', 'awaiting_assembly'), ('work_plan', 'assembling', 'in_review'),
    ('work_plan', 'in_review', 'assembling'), ('work_plan', 'in_review', 'complete'),
    ('work_plan', 'assembling', 'complete'),
    ('work_plan', 'dispatching', 'assembly_blocked'),
    ('work_plan', 'awaiting_assembly', 'assembly_blocked'),
    ('work_plan', 'assembling', 'assembly_blocked'),
    ('work_plan', 'assembly_blocked', 'dispatching'),
    ('work_plan', 'assembly_blocked', 'awaiting_assembly'),
    ('work_plan', 'assembling', 'assembly_failed'), ('work_plan', 'in_review', 'assembly_failed'),
    ('work_plan', 'in_review', 'assembly_declined'),
    ('subtask', 'pending', 'dispatched'), ('subtask', 'dispatched', 'running'),
    ('subtask', 'dispatched', 'pending'), ('subtask', 'running', 'rai_flagged'),
    ('subtask', 'rai_flagged', 'pending'), ('subtask', 'rai_flagged', 'running'),
    ('subtask', 'running', 'assemble_ready'), ('subtask', 'running', 'completed'),
    ('subtask', 'assemble_ready', 'completed'), ('subtask', 'pending', 'failed'),
    ('subtask', 'dispatched', 'failed'), ('subtask', 'running', 'failed'),
    ('subtask', 'rai_flagged', 'failed'), ('subtask', 'assemble_ready', 'failed'),
    ('subtask', 'assemble_ready', 'pending'),
    ('steering', 'pending', 'queued'), ('steering', 'pending', 'relayed'),
    ('steering', 'pending', 'applied'), ('steering', 'queued', 'relayed'),
    ('steering', 'queued', 'applied'), ('steering', 'relayed', 'applied');

CREATE TABLE work_plans (
    workflow_run_id     TEXT NOT NULL,
    id                  TEXT NOT NULL,
    outcome_spec_id     TEXT,
    project_id          TEXT,
    coordinator_run_id  TEXT,
    isolation_summary   TEXT,
    integration_branch  TEXT,
    status              TEXT NOT NULL DEFAULT 'planned',
    assembly_stage      TEXT,
    assembly_started_at TEXT,
    override_reason     TEXT,
    created_at          TEXT NOT NULL,
    updated_at          TEXT NOT NULL,
    PRIMARY KEY (workflow_run_id, id),
    FOREIGN KEY (workflow_run_id, outcome_spec_id) REFERENCES outcome_specs(workflow_run_id, id)
);

CREATE TABLE subtasks (
    workflow_run_id    TEXT NOT NULL,
    id                 TEXT NOT NULL,
    work_plan_id       TEXT NOT NULL,
    title              TEXT NOT NULL,
    scope              TEXT,
    assigned_agent     TEXT,
    model_id           TEXT,
    phase              TEXT,
    isolation_strategy TEXT,
    status             TEXT NOT NULL DEFAULT 'pending',
    child_run_id       TEXT,
    override_reason    TEXT,
    created_at         TEXT NOT NULL,
    updated_at         TEXT NOT NULL,
    PRIMARY KEY (workflow_run_id, id),
    FOREIGN KEY (workflow_run_id, work_plan_id) REFERENCES work_plans(workflow_run_id, id)
        ON DELETE CASCADE
);

CREATE INDEX ix_subtasks_plan ON subtasks(workflow_run_id, work_plan_id, status);

CREATE TABLE subtask_dependencies (
    workflow_run_id TEXT NOT NULL,
    subtask_id      TEXT NOT NULL,
    depends_on_id   TEXT NOT NULL,
    PRIMARY KEY (workflow_run_id, subtask_id, depends_on_id),
    CHECK (subtask_id <> depends_on_id),
    FOREIGN KEY (workflow_run_id, subtask_id) REFERENCES subtasks(workflow_run_id, id)
        ON DELETE CASCADE,
    FOREIGN KEY (workflow_run_id, depends_on_id) REFERENCES subtasks(workflow_run_id, id)
        ON DELETE RESTRICT
);

CREATE INDEX ix_subtask_dependencies_on ON subtask_dependencies(workflow_run_id, depends_on_id);

-- Pending subtasks that no longer wait for others.
CREATE VIEW subtasks_ready AS
SELECT s.workflow_run_id, s.work_plan_id, s.id, s.title, s.assigned_agent
FROM subtasks s
WHERE s.status = 'pending'
  AND NOT EXISTS (SELECT 1 FROM subtask_dependencies d
                       JOIN subtasks o ON o.workflow_run_id = d.workflow_run_id
                                      AND o.id = d.depends_on_id
                  WHERE d.workflow_run_id = s.workflow_run_id AND d.subtask_id = s.id
                    AND o.status NOT IN ('assemble_ready', 'completed'));

CREATE TABLE steering_directives (
    workflow_run_id TEXT NOT NULL,
    id              TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('redirect', 'pause', 'stop', 'amend')),
    target          TEXT,
    instruction     TEXT NOT NULL,
    created_by      TEXT,
    status          TEXT NOT NULL DEFAULT 'pending',
    created_at      TEXT NOT NULL,
    queued_at       TEXT,
    relayed_at      TEXT,
    applied_at      TEXT,
    PRIMARY KEY (workflow_run_id, id)
);

CREATE INDEX ix_steering_directives_status ON steering_directives(workflow_run_id, status);

-- ---- OAuth ----

CREATE TABLE oauth_clients (
    client_id     TEXT PRIMARY KEY,
    client_name   TEXT,
    redirect_uris TEXT,
    registered_at TEXT NOT NULL
);

CREATE TABLE oauth_refresh_tokens (
    token_hash  TEXT PRIMARY KEY,
    chain_id    TEXT,
    subject     TEXT,
    client_id   TEXT,
    issued_at   TEXT NOT NULL,
    expires_at  TEXT,
    rotated_at  TEXT,
    replaced_by TEXT,
    revoked_at  TEXT
);

CREATE INDEX ix_oauth_refresh_tokens_chain ON oauth_refresh_tokens(chain_id);
CREATE INDEX ix_oauth_refresh_tokens_expiry ON oauth_refresh_tokens(expires_at);

CREATE TABLE oauth_revoked_tokens (
    jti        TEXT PRIMARY KEY,
    revoked_at TEXT NOT NULL,
    expires_at TEXT
);

CREATE INDEX ix_oauth_revoked_tokens_expiry ON oauth_revoked_tokens(expires_at);
