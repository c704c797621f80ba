-- pack memory   version 2   database memory.db
--
-- The second half of Agentweaver, which is more than memory: decisions and proposals for them, what
-- agents remember, the current focus of a project, the events of runs as rows, plans of
-- coordinators, steering, and the facts about OAuth tokens (never a token).
--
-- Which session writes what:
--   proj_<project>   decisions, decision_inbox, agent_memory, session_contexts
--   run_<run>        RunEvents (also of its sub-streams run_<run>-rai, run_<run>-scribe)
--   wf_<workflow>    outcome_specs, work_plans, subtasks, subtask_dependencies,
--                    steering_directives
--   _state           oauth_refresh_tokens, oauth_revoked_tokens, oauth_clients
--   any              closed_streams
-- The first column of each key comes from the name of the session, so no session can write a row of
-- another one.
--
-- Ids, slugs and what a promotion copies are allocated when the event is appended (fill) and stand
-- in it: the next number behind the id of the last row, or behind all where that is taken. Tags are kept as ,a,b, so that LIKE '%,a,%' finds a whole tag and no part of one.

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
    -- addition: the slug that was asked for
    requested_slug TEXT,
    PRIMARY KEY (project_id, id),
    UNIQUE (project_id, slug),
    FOREIGN KEY (project_id, decision_id) REFERENCES decisions(project_id, id)
);

CREATE INDEX ix_decision_inbox_seq ON decision_inbox(project_id, seq);
CREATE INDEX ix_decision_inbox_status ON decision_inbox(project_id, status, type);
CREATE INDEX ix_decision_inbox_agent ON decision_inbox(project_id, agent_name);
CREATE INDEX ix_decision_inbox_requested ON decision_inbox(project_id, requested_slug, agent_name);

-- Who may merge a whole batch, and what: boundaries are the coordinator's, routine is the scribe's.
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

-- What the compiler of contexts chooses from: boundaries first, oldest first; then memory by score,
-- newer first; then the current session. docs/packs/agentweaver.md has the whole SELECT.
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

-- Runs whose journal is gone, while their rows go. Empty otherwise.
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

-- INSERT OR REPLACE would delete without asking the trigger above.
CREATE TRIGGER run_events_once BEFORE INSERT ON RunEvents
WHEN EXISTS (SELECT 1 FROM RunEvents WHERE RunId = NEW.RunId AND Sequence = NEW.Sequence)
BEGIN
    SELECT RAISE(ABORT, 'RunEvents is append-only: this one is there already');
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

-- How far each run's stream is, and whether it has ended: in one SELECT, so both are of one moment.
CREATE VIEW run_streams AS
SELECT e.RunId, e.Sequence AS last_sequence, e.EventType AS last_type,
       e.EventType IN (SELECT type FROM terminal_event_types) AS ended,
       EXISTS (SELECT 1 FROM closed_streams c WHERE c.session_id = 'run_' || e.RunId) AS closed
FROM RunEvents e
WHERE e.Sequence = (SELECT MAX(l.Sequence) FROM RunEvents l WHERE l.RunId = e.RunId);

-- One row, for guards that only ask.
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

-- Pending subtasks that wait for nothing any more.
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

-- ==== Decisions ====

-- A slug is one proposal's. The agent that made it changes it by proposing once more, as long as it
-- is pending. Another agent's is called SLUG--AGENT (the agent's name in lower case, what is neither
-- a letter nor a digit as -), or else SLUG--AGENT--2, and so on, and is changed by asking for SLUG once
-- more, too; $slug itself is not changed so.

-- fill decision.proposed
WITH wish(slug) AS (
         SELECT COALESCE($slug, $requested_slug, lower(replace(trim($title), ' ', '-')))),
     own(id, slug) AS (
         SELECT i.id, i.slug FROM decision_inbox i, wish
         WHERE i.agent_name = $agent_name
           AND ((i.project_id = substr(:session, 6) AND i.slug = wish.slug)
             OR (i.project_id = substr(:session, 6) AND i.requested_slug = wish.slug
                 AND i.status = 'pending' AND $slug IS NULL))
         ORDER BY i.slug = wish.slug DESC, i.seq LIMIT 1),
     spelled(rest, agent) AS (
         SELECT lower($agent_name), ''
         UNION ALL
         SELECT substr(rest, 2),
                agent || CASE WHEN substr(rest, 1, 1) GLOB '[a-z0-9]' THEN substr(rest, 1, 1)
                              WHEN agent GLOB '*-' THEN '' ELSE '-' END
         FROM spelled WHERE rest <> ''),
     other(slug) AS (
         SELECT wish.slug || '--' || COALESCE(NULLIF(trim(spelled.agent, '-'), ''), 'agent')
         FROM wish, spelled WHERE spelled.rest = ''),
     tries(n, slug) AS (
         SELECT 1, slug FROM wish
         UNION ALL
         SELECT n + 1, (SELECT slug FROM other) || CASE n WHEN 1 THEN '' ELSE '--' || n END
         FROM tries
         WHERE (SELECT id FROM own) IS NULL
           AND EXISTS (SELECT 1 FROM decision_inbox i
                       WHERE i.project_id = substr(:session, 6) AND i.slug = tries.slug))
SELECT COALESCE((SELECT id FROM own),
                (SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM decision_inbox
                                              WHERE project_id = substr(:session, 6)
                                                AND id = w.id)
                             THEN w.id
                             ELSE (SELECT 'i' || (1 + MAX(CAST(substr(id, 2) AS INTEGER)))
                                   FROM decision_inbox
                                   WHERE project_id = substr(:session, 6)
                                     AND id GLOB 'i[0-9]*') END
                 FROM (SELECT 'i' || (1 + COALESCE((SELECT CAST(substr(id, 2) AS INTEGER)
                                                    FROM decision_inbox
                                                    WHERE project_id = substr(:session, 6)
                                                    ORDER BY seq DESC LIMIT 1), 0)) AS id) w))
           AS entry_id,
       COALESCE((SELECT slug FROM own), (SELECT slug FROM tries ORDER BY n DESC LIMIT 1)) AS slug,
       (SELECT slug FROM wish) AS requested_slug;

-- on decision.proposed   guarded "the agent's proposal of this slug is merged or rejected already"
UPDATE gate SET id = id
WHERE NOT EXISTS (SELECT 1 FROM decision_inbox
                  WHERE project_id = substr(:session, 6) AND id = $entry_id AND slug = $slug
                    AND agent_name = $agent_name AND status <> 'pending');

-- on decision.proposed   guarded "the proposal needs agent_name, type, title and content, and a slug that no other one of the project has"
INSERT INTO decision_inbox (project_id, id, agent_name, slug, type, title, content, rationale,
                            created_at, updated_at, seq, requested_slug)
SELECT substr(:session, 6), $entry_id, $agent_name, $slug, $type, $title, $content, $rationale,
       COALESCE(annal_time($created_at), :ts), :ts, :seq, $requested_slug
WHERE :session GLOB 'proj_?*' AND $slug <> '' AND $agent_name <> '' AND $type <> ''
  AND $title <> '' AND $content <> ''
ON CONFLICT (project_id, id) DO UPDATE SET
    type = excluded.type, title = excluded.title, content = excluded.content,
    rationale = excluded.rationale, updated_at = excluded.updated_at
    WHERE status = 'pending' AND agent_name = excluded.agent_name AND slug = excluded.slug;

-- on decision.proposal_updated, decision.promoted, decision.rejected   guarded "there is no such proposal"
UPDATE decision_inbox SET id = id
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id;

-- on decision.proposal_updated, decision.promoted, decision.rejected   guarded "the proposal is merged or rejected already"
UPDATE decision_inbox SET id = id
WHERE project_id = substr(:session, 6) AND id = $entry_id AND status = 'pending';

-- on decision.proposal_updated   guarded "only the agent that made the proposal changes it"
UPDATE decision_inbox SET
    type = COALESCE($type, type), title = COALESCE($title, title),
    content = COALESCE($content, content), rationale = COALESCE($rationale, rationale),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id
  AND status = 'pending' AND agent_name = $agent_name;

-- What is promoted is written into the event: the decision stands as it was accepted.
-- fill decision.promoted
SELECT (SELECT 'd' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) FROM decisions
        WHERE project_id = substr(:session, 6) AND id GLOB 'd[0-9]*') AS decision_id,
       i.type AS "decision::type", i.title AS "decision::title", i.content AS "decision::content",
       i.rationale AS "decision::rationale", i.agent_name AS "decision::agent_name"
FROM decision_inbox i WHERE i.project_id = substr(:session, 6) AND i.id = $entry_id;

-- on decision.promoted   guarded "the scribe merges learnings, patterns and updates only"
UPDATE gate SET id = id
WHERE $by IS NOT 'scribe'
   OR EXISTS (SELECT 1 FROM promotion_rules r
                   JOIN decision_inbox i ON i.project_id = substr(:session, 6) AND i.id = $entry_id
              WHERE r.by = 'scribe' AND r.type = i.type);

-- on decision.promoted   guarded "the id of the decision is taken"
UPDATE decision_inbox SET
    status = 'merged', decision_id = $decision_id, merged_by = $by,
    merged_at = COALESCE(annal_time($merged_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id
  AND status = 'pending' AND $decision_id IS NOT NULL;
INSERT INTO decisions (project_id, id, type, title, content, rationale, agent_name, inbox_entry_id,
                       created_at, updated_at, seq)
SELECT project_id, decision_id, COALESCE($decision::type, type), COALESCE($decision::title, title),
       COALESCE($decision::content, content), COALESCE($decision::rationale, rationale),
       COALESCE($decision::agent_name, agent_name), id, merged_at, :ts, :seq
FROM decision_inbox
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id
  AND status = 'merged' AND decision_id = $decision_id;

-- All that the rules let this one merge, in one event.
-- fill decision.batch_promoted
SELECT (SELECT json_group_array(json_object('entry_id', id, 'decision_id', 'd' || (base + place)))
        FROM (SELECT i.id, ROW_NUMBER() OVER (ORDER BY i.seq, i.id) AS place,
                     (SELECT COALESCE(MAX(CAST(substr(d.id, 2) AS INTEGER)), 0) FROM decisions d
                      WHERE d.project_id = substr(:session, 6) AND d.id GLOB 'd[0-9]*') AS base
              FROM decision_inbox i JOIN promotion_rules r ON r.by = $by AND r.type = i.type
              WHERE i.project_id = substr(:session, 6) AND i.status = 'pending'
              ORDER BY place)) AS entries;

-- on decision.batch_promoted   guarded "there is nothing pending that this one may merge"
UPDATE decision_inbox SET
    status = 'merged', merged_by = $by, merged_at = COALESCE(annal_time($merged_at), :ts),
    decision_id = (SELECT value ->> 'decision_id' FROM json_each($entries)
                   WHERE value ->> 'entry_id' = decision_inbox.id),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND status = 'pending'
  AND id IN (SELECT value ->> 'entry_id' FROM json_each($entries))
  AND type IN (SELECT type FROM promotion_rules WHERE by = $by);
INSERT INTO decisions (project_id, id, type, title, content, rationale, agent_name, inbox_entry_id,
                       created_at, updated_at, seq)
SELECT i.project_id, i.decision_id, i.type, i.title, i.content, i.rationale, i.agent_name, i.id,
       i.merged_at, :ts, :seq
FROM decision_inbox i
WHERE i.project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND i.status = 'merged'
  AND i.decision_id IN (SELECT value ->> 'decision_id' FROM json_each($entries)
                        WHERE value ->> 'entry_id' = i.id)
  AND NOT EXISTS (SELECT 1 FROM decisions d
                  WHERE d.project_id = i.project_id AND d.inbox_entry_id = i.id)
ORDER BY i.seq, i.id;

-- on decision.rejected   guarded "the proposal is merged or rejected already"
UPDATE decision_inbox SET
    status = 'rejected', rejected_at = COALESCE(annal_time($rejected_at), :ts), reason = $reason,
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id
  AND status = 'pending';

-- fill decision.created
SELECT 'd' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS decision_id FROM decisions
WHERE project_id = substr(:session, 6) AND id GLOB 'd[0-9]*';

-- on decision.created   guarded "the decision needs type, title and content, and an id that is free"
INSERT INTO decisions (project_id, id, type, title, content, rationale, agent_name, created_at,
                       updated_at, seq)
SELECT substr(:session, 6), $decision_id, $type, $title, $content, $rationale, $agent_name,
       COALESCE(annal_time($created_at), :ts), :ts, :seq
WHERE :session GLOB 'proj_?*' AND $decision_id <> '' AND $type <> '' AND $title <> ''
  AND $content <> '';

-- on decision.updated, decision.superseded   guarded "there is no such decision"
UPDATE decisions SET id = id
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $decision_id;

-- on decision.updated
UPDATE decisions SET
    type = COALESCE($type, type), title = COALESCE($title, title),
    content = COALESCE($content, content), rationale = COALESCE($rationale, rationale),
    agent_name = COALESCE($agent_name, agent_name), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $decision_id;

-- on decision.superseded   guarded "the decision that takes its place is not there, is the same, or is superseded itself"
UPDATE decisions SET
    status = 'superseded', superseded_by_id = $superseded_by_id, updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $decision_id
  AND id <> $superseded_by_id
  AND EXISTS (SELECT 1 FROM decisions o
              WHERE o.project_id = decisions.project_id AND o.id = $superseded_by_id
                AND o.status = 'active');

-- ==== Memory ====

-- fill memory.noted
SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM agent_memory
                             WHERE project_id = substr(:session, 6) AND id = w.id)
            THEN w.id
            ELSE (SELECT 'm' || (1 + MAX(CAST(substr(id, 2) AS INTEGER))) FROM agent_memory
                  WHERE project_id = substr(:session, 6) AND id GLOB 'm[0-9]*') END AS memory_id
FROM (SELECT 'm' || (1 + COALESCE((SELECT CAST(substr(id, 2) AS INTEGER) FROM agent_memory
                                   WHERE project_id = substr(:session, 6)
                                   ORDER BY seq DESC LIMIT 1), 0)) AS id) w;

-- on memory.noted   guarded "a memory needs an agent, some content and one of the types core_context, learning, pattern, update"
INSERT INTO agent_memory (project_id, id, agent_name, session_id, type, importance, content, tags,
                          created_at, seq)
SELECT substr(:session, 6), $memory_id, $agent_name, $session_id, $type,
       COALESCE($importance, 'medium'), $content,
       (SELECT ',' || group_concat(tag, ',') || ','
        FROM (SELECT trim(value) AS tag
              FROM json_each('[' || replace(json_quote(
                       CASE WHEN NOT json_valid($tags) THEN $tags
                            WHEN json_type($tags) = 'array'
                            THEN (SELECT group_concat(value, ',') FROM json_each($tags))
                            ELSE $tags END), ',', '","') || ']')
              WHERE trim(value) <> '' GROUP BY trim(value) ORDER BY MIN(key))),
       COALESCE(annal_time($created_at), :ts), :seq
WHERE :session GLOB 'proj_?*' AND $agent_name <> '' AND trim($content) <> ''
  AND $type IN ('core_context', 'learning', 'pattern', 'update');

-- ==== Session contexts ====

-- fill session_context.started
SELECT w.row_id, COALESCE($session_id, w.row_id) AS session_id,
       (SELECT json_group_array(session_id) FROM session_contexts
        WHERE project_id = substr(:session, 6) AND ended_at IS NULL) AS closes
FROM (SELECT 'c' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS row_id
      FROM session_contexts WHERE project_id = substr(:session, 6) AND id GLOB 'c[0-9]*') w;

-- on session_context.started   guarded "the project has had a session of that id"
INSERT INTO session_contexts (project_id, session_id, id, focus_area, active_issues, summary,
                              serialized_state, started_at, updated_at, seq)
SELECT substr(:session, 6), $session_id, COALESCE($row_id, $session_id), $focus_area,
       $active_issues, $summary, $serialized_state,
       COALESCE(annal_time($started_at), :ts), :ts, :seq
WHERE :session GLOB 'proj_?*' AND $session_id <> '';
UPDATE session_contexts SET ended_at = COALESCE(annal_time($started_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND ended_at IS NULL
  AND session_id <> $session_id;

-- on session_context.updated   guarded "the project has no open session, or not this one"
UPDATE session_contexts SET
    focus_area = COALESCE($set::focus_area, $focus_area, focus_area),
    active_issues = COALESCE($set::active_issues, $active_issues, active_issues),
    summary = COALESCE($set::summary, $summary, summary),
    serialized_state = COALESCE($set::serialized_state, $serialized_state, serialized_state),
    ended_at = annal_time(COALESCE($set::ended_at, $ended_at)),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND ended_at IS NULL
  AND session_id = COALESCE($session_id, session_id)
  AND session_id = (SELECT c.session_id FROM session_contexts_current c
                    WHERE c.project_id = substr(:session, 6));

-- on session_context.ended   guarded "the project has no open session, or not this one"
UPDATE session_contexts SET ended_at = COALESCE(annal_time($ended_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND ended_at IS NULL
  AND session_id = COALESCE($session_id, session_id)
  AND session_id = (SELECT c.session_id FROM session_contexts_current c
                    WHERE c.project_id = substr(:session, 6));

-- ==== Events of runs ====

-- on run.created, run.worktree_set, run.started, run.review_ready, run.approved, run.transition, run.archived, run.workflow_graph, run.outcome, run.degraded, run.completed, run.failed, run.cancelled, run.assemble_ready, revision.recorded, lease.claimed, lease.renewed, lease.released, merge.completed, merge.failed, review.declined, review.requested, agent.message, agent.message.delta, agent.intent, agent.question_asked, agent.question_answered, tool.call, tool.result, tool.error, tool.approval_required, workflow.step, rai.verdict   guarded "the stream of this session is closed"
UPDATE gate SET id = id WHERE NOT EXISTS (SELECT 1 FROM closed_streams WHERE session_id = :session);

-- on *
INSERT INTO RunEvents (RunId, Sequence, EventType, PayloadJson, CreatedAt)
SELECT substr(:session, 5), :seq, :type, :data, :ts WHERE :session GLOB 'run_?*';

-- on stream.closed   guarded "the stream of this session is closed"
INSERT INTO closed_streams (session_id, reason, closed_at) VALUES (:session, $reason, :ts);

-- ==== Plans ====

-- fill outcome_spec.created
SELECT 'o' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS spec_id
FROM outcome_specs WHERE workflow_run_id = substr(:session, 4) AND id GLOB 'o[0-9]*';

-- on outcome_spec.created   guarded "this session is no wf_<workflow run>, or it has such a spec"
INSERT INTO outcome_specs (workflow_run_id, id, project_id, title, content, created_at, updated_at)
SELECT substr(:session, 4), $spec_id, $project_id, $title, $content,
       COALESCE(annal_time($created_at), :ts), :ts
WHERE :session GLOB 'wf_?*' AND $spec_id <> '';

-- on outcome_spec.updated   guarded "there is no such outcome spec"
UPDATE outcome_specs SET
    title = COALESCE($title, title), content = COALESCE($content, content), updated_at = :ts
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $spec_id;

-- on outcome_spec.status_changed   guarded "there is no such outcome spec, or its status does not change so"
UPDATE outcome_specs SET status = $to, updated_at = :ts
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $spec_id
  AND status = COALESCE($expected, status)
  AND EXISTS (SELECT 1 FROM plan_edges WHERE entity = 'outcome_spec'
                AND from_status = outcome_specs.status AND to_status = $to);

-- fill work_plan.created
SELECT 'p' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS plan_id
FROM work_plans WHERE workflow_run_id = substr(:session, 4) AND id GLOB 'p[0-9]*';

-- on work_plan.created   guarded "there is such a plan already, or no such outcome spec"
INSERT INTO work_plans (workflow_run_id, id, outcome_spec_id, project_id, coordinator_run_id,
                        isolation_summary, integration_branch, created_at, updated_at)
SELECT substr(:session, 4), $plan_id, $spec_id, $project_id, $coordinator_run_id,
       $isolation_summary, $integration_branch, COALESCE(annal_time($created_at), :ts), :ts
WHERE :session GLOB 'wf_?*' AND $plan_id <> ''
  AND ($spec_id IS NULL OR EXISTS (SELECT 1 FROM outcome_specs
                                   WHERE workflow_run_id = substr(:session, 4) AND id = $spec_id));

-- on work_plan.status_changed   guarded "there is no such plan, or its status is not the expected one"
UPDATE work_plans SET id = id
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $plan_id
  AND status = COALESCE($expected, status);

-- on work_plan.status_changed   guarded "a plan's status does not change so; only an override with a reason may"
UPDATE work_plans SET
    status = $to,
    assembly_stage = COALESCE($assembly_stage, assembly_stage),
    assembly_started_at = CASE WHEN $to = 'assembling'
                               THEN COALESCE(assembly_started_at, :ts)
                               ELSE assembly_started_at END,
    override_reason = CASE WHEN $override THEN $reason ELSE override_reason END,
    updated_at = :ts
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $plan_id
  AND status = COALESCE($expected, status)
  AND (EXISTS (SELECT 1 FROM plan_edges WHERE entity = 'work_plan'
                 AND from_status = work_plans.status AND to_status = $to)
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''
           AND $to IN (SELECT to_status FROM plan_edges WHERE entity = 'work_plan'
                       UNION SELECT 'planned')));

-- on work_plan.deleted   guarded "there is no such plan"
DELETE FROM work_plans
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $plan_id;
DELETE FROM subtask_dependencies
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*'
  AND subtask_id IN (SELECT id FROM subtasks WHERE workflow_run_id = substr(:session, 4)
                       AND work_plan_id = $plan_id);
DELETE FROM subtasks
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND work_plan_id = $plan_id;

-- fill subtask.created
SELECT 's' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS subtask_id
FROM subtasks WHERE workflow_run_id = substr(:session, 4) AND id GLOB 's[0-9]*';

-- on subtask.created   guarded "there is no such plan, no title, or such a subtask already"
INSERT INTO subtasks (workflow_run_id, id, work_plan_id, title, scope, assigned_agent, model_id,
                      phase, isolation_strategy, created_at, updated_at)
SELECT substr(:session, 4), $subtask_id, p.id, $title, $scope, $assigned_agent, $model_id,
       COALESCE($phase, 'none'), COALESCE($isolation_strategy, 'worktree'),
       COALESCE(annal_time($created_at), :ts), :ts
FROM work_plans p
WHERE p.workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND p.id = $plan_id
  AND $subtask_id <> '' AND $title <> '';

-- on subtask.updated   guarded "there is no such subtask"
UPDATE subtasks SET
    title = COALESCE($title, title), scope = COALESCE($scope, scope),
    assigned_agent = COALESCE($assigned_agent, assigned_agent),
    model_id = COALESCE($model_id, model_id), phase = COALESCE($phase, phase),
    child_run_id = COALESCE($child_run_id, child_run_id), updated_at = :ts
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $subtask_id;

-- on subtask.status_changed   guarded "there is no such subtask, or its status is not the expected one"
UPDATE subtasks SET id = id
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $subtask_id
  AND status = COALESCE($expected, status);

-- on subtask.status_changed   guarded "a subtask's status does not change so; only an override with a reason may"
UPDATE subtasks SET
    status = $to, child_run_id = COALESCE($child_run_id, child_run_id),
    override_reason = CASE WHEN $override THEN $reason ELSE override_reason END, updated_at = :ts
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $subtask_id
  AND status = COALESCE($expected, status)
  AND (EXISTS (SELECT 1 FROM plan_edges WHERE entity = 'subtask'
                 AND from_status = subtasks.status AND to_status = $to)
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''
           AND $to IN (SELECT to_status FROM plan_edges WHERE entity = 'subtask')));

-- on subtask.deleted   guarded "another subtask depends on this one"
UPDATE gate SET id = id
WHERE NOT EXISTS (SELECT 1 FROM subtask_dependencies
                  WHERE workflow_run_id = substr(:session, 4) AND depends_on_id = $subtask_id);

-- on subtask.deleted   guarded "there is no such subtask"
DELETE FROM subtasks
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $subtask_id
  AND NOT EXISTS (SELECT 1 FROM subtask_dependencies
                  WHERE workflow_run_id = substr(:session, 4) AND depends_on_id = $subtask_id);
DELETE FROM subtask_dependencies
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND subtask_id = $subtask_id
  AND NOT EXISTS (SELECT 1 FROM subtasks
                  WHERE workflow_run_id = substr(:session, 4) AND id = $subtask_id);

-- on subtask_dependency.added   guarded "both subtasks must be in one plan, and neither may wait for itself, through others or directly"
INSERT INTO subtask_dependencies (workflow_run_id, subtask_id, depends_on_id)
SELECT s.workflow_run_id, s.id, o.id
FROM subtasks s JOIN subtasks o ON o.workflow_run_id = s.workflow_run_id
                               AND o.work_plan_id = s.work_plan_id
WHERE s.workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*'
  AND s.id = $subtask_id AND o.id = $depends_on_id AND s.id <> o.id
  AND $subtask_id NOT IN (
      WITH RECURSIVE needed(id) AS (
          SELECT $depends_on_id
          UNION SELECT d.depends_on_id FROM subtask_dependencies d JOIN needed n ON d.subtask_id = n.id
          WHERE d.workflow_run_id = substr(:session, 4))
      SELECT id FROM needed WHERE id IS NOT NULL);

-- on subtask_dependency.removed   guarded "there is no such dependency"
DELETE FROM subtask_dependencies
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*'
  AND subtask_id = $subtask_id AND depends_on_id = $depends_on_id;

-- ==== Steering ====

-- fill steering.issued
SELECT 'g' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS id
FROM steering_directives WHERE workflow_run_id = substr(:session, 4) AND id GLOB 'g[0-9]*';

-- on steering.issued   guarded "a directive needs an instruction and a kind: redirect, pause, stop or amend"
INSERT INTO steering_directives (workflow_run_id, id, kind, target, instruction, created_by,
                                 created_at)
SELECT substr(:session, 4), $id, $kind, $target, $instruction, $created_by,
       COALESCE(annal_time($created_at), :ts)
WHERE :session GLOB 'wf_?*' AND $id <> '' AND trim($instruction) <> '' AND $kind IS NOT NULL;

-- on steering.queued, steering.relayed, steering.applied   guarded "there is no such directive, or it has come further already"
UPDATE steering_directives SET
    status = substr(:type, 10),
    queued_at = CASE :type WHEN 'steering.queued' THEN :ts ELSE queued_at END,
    relayed_at = CASE :type WHEN 'steering.relayed' THEN :ts ELSE relayed_at END,
    applied_at = CASE :type WHEN 'steering.applied' THEN :ts ELSE applied_at END
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $id
  AND EXISTS (SELECT 1 FROM plan_edges WHERE entity = 'steering'
                AND from_status = steering_directives.status AND to_status = substr(:type, 10));

-- ==== OAuth: hashes and identifiers, in the session _state ====

-- on oauth.token_issued, oauth.token_rotated, oauth.token_revoked   guarded "a token is never written down, only its hash"
UPDATE gate SET id = id
WHERE $token IS NULL AND $refresh_token IS NULL AND $access_token IS NULL;

-- on oauth.client_registered   guarded "this client is registered already"
INSERT INTO oauth_clients (client_id, client_name, redirect_uris, registered_at)
SELECT $client_id, $client_name, $redirect_uris, :ts WHERE :session = '_state' AND $client_id <> '';

-- on oauth.token_issued   guarded "this token hash was issued before"
INSERT INTO oauth_refresh_tokens (token_hash, chain_id, subject, client_id, issued_at, expires_at)
SELECT $token_hash, $chain_id, $subject, $client_id, :ts, annal_time($expires_at)
WHERE :session = '_state' AND $token_hash <> '';

-- on oauth.token_rotated   guarded "the token is unknown, revoked or was used before"
UPDATE oauth_refresh_tokens SET rotated_at = :ts, replaced_by = $new_token_hash
WHERE :session = '_state' AND token_hash = $token_hash AND rotated_at IS NULL
  AND revoked_at IS NULL AND $new_token_hash <> '';
INSERT INTO oauth_refresh_tokens (token_hash, chain_id, subject, client_id, issued_at, expires_at)
SELECT $new_token_hash, chain_id, subject, client_id, :ts, annal_time($expires_at)
FROM oauth_refresh_tokens
WHERE :session = '_state' AND token_hash = $token_hash AND replaced_by = $new_token_hash;

-- A token by its hash, all that came from one sign-in by chain_id, or an access token by its jti.
-- on oauth.token_revoked   guarded "nothing was named that can be revoked, or it is revoked already"
UPDATE gate SET id = id
WHERE :session = '_state'
  AND ((COALESCE($jti, '') <> '' AND NOT EXISTS (SELECT 1 FROM oauth_revoked_tokens
                                                 WHERE jti = $jti))
       OR EXISTS (SELECT 1 FROM oauth_refresh_tokens
                  WHERE (token_hash = $token_hash OR chain_id = $chain_id)
                    AND revoked_at IS NULL));
UPDATE oauth_refresh_tokens SET revoked_at = :ts
WHERE :session = '_state' AND (token_hash = $token_hash OR chain_id = $chain_id)
  AND revoked_at IS NULL;
INSERT INTO oauth_revoked_tokens (jti, revoked_at, expires_at)
SELECT $jti, :ts, annal_time($expires_at) WHERE :session = '_state' AND $jti <> ''
ON CONFLICT (jti) DO NOTHING;

-- ==== A project is deleted; a journal is gone ====

-- on project.deleted
DELETE FROM decision_inbox WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';
DELETE FROM decisions WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';
DELETE FROM agent_memory WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';
DELETE FROM session_contexts WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';

-- forget
DELETE FROM decision_inbox WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';
DELETE FROM decisions WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';
DELETE FROM agent_memory WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';
DELETE FROM session_contexts WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';
INSERT INTO streams_forgotten (run_id) SELECT substr(:session, 5) WHERE :session GLOB 'run_?*';
DELETE FROM RunEvents WHERE RunId = substr(:session, 5) AND :session GLOB 'run_?*';
DELETE FROM streams_forgotten;
DELETE FROM closed_streams WHERE session_id = :session;
DELETE FROM subtask_dependencies
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*';
DELETE FROM subtasks WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*';
DELETE FROM work_plans WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*';
DELETE FROM outcome_specs WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*';
DELETE FROM steering_directives WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*';
DELETE FROM oauth_refresh_tokens WHERE :session = '_state';
DELETE FROM oauth_revoked_tokens WHERE :session = '_state';
DELETE FROM oauth_clients WHERE :session = '_state';

-- ---- Verbs ----

-- noun decision   "what holds for a project, and proposals (memory)"

-- verb decision propose   appends decision.proposed   session proj_{PROJECT}
--      "put a proposal into the inbox of a project"
--   PROJECT           text                      "the project"
--   TITLE             text title                "what it says, in a line"
--   --agent WHO       text agent_name required  "who proposes it"
--   --type TYPE       text type = "learning"    "architectural, scope, pattern, … (learning)"
--   --content TEXT    body content required     "all of it; - reads standard input"
--   --rationale TEXT  body rationale            "why"
--   --slug SLUG       text requested_slug       "its short name; another's gives SLUG--WHO"
--   --only-slug SLUG  text slug                 "its short name; another's is refused"
--   --id ENTRY        text entry_id             "its id (the next i1, i2, …)"
--   says     proposal {entry_id} ({slug}) is pending
--   about    An inbox stands between what an agent thinks and what holds for all. Proposals
--            stay for ever, merged or rejected. A slug names one proposal in the project,
--            whoever made it; without one it is made from the title. The same agent and slug
--            once more change the proposal while it is pending; the proposal of another agent
--            gets the slug SLUG--WHO, then SLUG--WHO--2.
--   example  annal decision propose shop "Use SQLite" --agent ada --type architectural \
--                --content "One file a tenant." --rationale "No server to run."

-- verb decision revise   appends decision.proposal_updated   session proj_{PROJECT}
--      "change a proposal that is pending"
--   PROJECT           text                      "the project"
--   ENTRY             text entry_id             "the proposal"
--   --agent NAME      text agent_name required  "who made it"
--   --type TYPE       text type                 "another type"
--   --title TEXT      text title                "another title"
--   --content TEXT    body content              "another content"
--   --rationale TEXT  body rationale            "another rationale"
--   says     proposal {ENTRY} is changed
--   about    Only the agent that made it may.
--   example  annal decision revise shop i1 --agent ada --title "Use SQLite 3.40"

-- verb decision promote   appends decision.promoted   session proj_{PROJECT}
--      "accept a proposal: it becomes a decision"
--   PROJECT    text              "the project"
--   ENTRY      text entry_id     "the proposal"
--   --by NAME  text by           "who accepts it"
--   --id ID    text decision_id  "of the decision (the next d1, d2, …)"
--   says     proposal {ENTRY} is decision {decision_id}
--   about    The decision is made and the proposal merged in one event, so neither is ever
--            there without the other. A second time is refused. The scribe may merge
--            learnings, patterns and updates only.
--   example  annal decision promote shop i1 --by bob

-- verb decision promote-all   appends decision.batch_promoted   session proj_{PROJECT}
--      "accept all that is pending and WHO may merge"
--   PROJECT   text                                  "the project"
--   --by WHO  text by (coordinator|scribe) required  "coordinator or scribe"
--   says     merged: {entries}
--   about    In one event. The coordinator merges architectural and scope, the scribe
--            learning, pattern and update; the table promotion_rules says so. When nothing
--            is pending nothing is appended.
--   example  annal decision promote-all shop --by scribe

-- verb decision reject   appends decision.rejected   session proj_{PROJECT}
--      "turn a proposal down; it stays in the inbox"
--   PROJECT        text           "the project"
--   ENTRY          text entry_id  "the proposal"
--   --reason TEXT  text reason    "why not"
--   says     proposal {ENTRY} is rejected
--   about    Rejected ones tell why something did not become a rule.
--   example  annal decision reject shop i2 --reason "we tried that"

-- verb decision create   appends decision.created   session proj_{PROJECT}
--      "make a decision without a proposal"
--   PROJECT           text                   "the project"
--   TITLE             text title             "what it says, in a line"
--   --type TYPE       text type required     "architectural, scope, …"
--   --content TEXT    body content required  "all of it; - reads standard input"
--   --rationale TEXT  body rationale         "why"
--   --agent NAME      text agent_name        "who decided"
--   --id ID           text decision_id       "its id (the next d1, d2, …)"
--   says     decision {decision_id} holds
--   about    Active architectural and scope decisions stand first in every context.
--   example  annal decision create shop "No cookies" --type scope --content "None."

-- verb decision supersede   appends decision.superseded   session proj_{PROJECT}
--      "another decision takes the place of one"
--   PROJECT   text                   "the project"
--   DECISION  text decision_id       "that holds no more"
--   BY        text superseded_by_id  "that takes its place"
--   says     decision {DECISION} is superseded by {BY}
--   about    The old one stays, so that it can be explained.
--   example  annal decision supersede shop d1 d4

-- verb decision ls   selects   "list the decisions of a project, oldest first"
--   PROJECT          text  "the project"
--   --status STATUS  text  "active or superseded (all)"
--   about    Superseded ones too.
--   example  annal decision ls shop --status active
SELECT id, type, title, status, superseded_by_id, agent_name, created_at
FROM memory.decisions
WHERE project_id = ?1 AND (?2 IS NULL OR status = ?2)
ORDER BY created_at, seq, id;

-- verb decision inbox   selects   "list the proposals of a project"
--   PROJECT          text  "the project"
--   --status STATUS  text  "pending, merged or rejected (all)"
--   about    Oldest first.
--   example  annal decision inbox shop --status pending
SELECT id, slug, type, title, agent_name, status, decision_id, reason
FROM memory.decision_inbox
WHERE project_id = ?1 AND (?2 IS NULL OR status = ?2)
ORDER BY created_at, seq, id;

-- noun memory   "what agents remember, and contexts from it (memory)"

-- verb memory note   appends memory.noted   session proj_{PROJECT}
--      "write down what an agent is to remember"
--   PROJECT            text                                  "the project"
--   AGENT              text agent_name                       "who remembers"
--   CONTENT            body content                          "what; - reads standard input"
--   --type TYPE        text type = "learning" (core_context|learning|pattern|update)
--                      "core_context, learning, pattern or update"
--   --importance WORD  text importance                       "high, medium or low (medium)"
--   --tag TAG          list tags                            "cross-team shares it with all; repeat"
--   --session ID       text session_id                       "the session context it comes from"
--   says     {AGENT} remembers {memory_id}
--   about    core_context is what an agent always needs, like a charter.
--   example  annal memory note shop ada "Tests run with make test" --importance high \
--                --tag cross-team

-- verb memory ls   selects   "list what agents of a project remember"
--   PROJECT       text  "the project"
--   --agent NAME  text  "only of this agent"
--   --tag TAG     text  "only with this tag"
--   about    A tag matches as a whole.
--   example  annal memory ls shop --agent ada
SELECT id, agent_name, type, importance, tags, content, created_at
FROM memory.agent_memory
WHERE project_id = ?1
  AND (?2 IS NULL OR agent_name = ?2)
  AND (?3 IS NULL OR instr(tags, ',' || ?3 || ',') > 0)
ORDER BY created_at, seq, id;

-- verb memory compile   runs   "the context of an agent: what is in it, and why"
--   PROJECT       text           "the project"
--   --agent NAME  text required  "for whom"
--   --items N     number         "at most so many memories (20)"
--   --tokens N    number         "of at most so many tokens, 4 characters each (4000)"
--   --child       flag           "boundaries only, for the child run of a coordinator"
--   --all         flag           "also what is left out, and why"
--   about    First all active architectural and scope decisions, oldest first. Then memories:
--            the agent's core context, and learnings and patterns of high importance that are
--            its own or tagged cross-team; high scores 3, medium 2, low 1, other 0; higher
--            scores first, then newer ones. They are taken until there are --items of them,
--            or until the first that does not fit into --tokens (a line costs its label, its
--            content and 6 characters); a smaller one behind it is not taken. Last the
--            current session. With --json one object a line, with place, layer, why, label,
--            title, content, score and cost.
--   example  annal memory compile shop --agent ada
--            annal memory compile shop --agent ada --items 5 --tokens 500 --json

-- noun context   "what a project works on now (memory)"

-- verb context start   appends session_context.started   session proj_{PROJECT}
--      "a project works on something else from now on"
--   PROJECT         text                   "the project"
--   [SESSION]       text session_id        "its id (the next c1, c2, …)"
--   --focus TEXT    text focus_area        "what is worked on"
--   --issues TEXT   body active_issues     "what is open"
--   --summary TEXT  body summary           "how far it is"
--   --state JSON    json serialized_state  "state of programs"
--   says     {PROJECT} works on session {session_id}
--   about    Ends what is open. An id is used once in a project, also when it has ended.
--   example  annal context start shop s7 --focus "the cart"

-- verb context update   appends session_context.updated   session proj_{PROJECT}
--      "change what is written about the current session"
--   PROJECT         text                   "the project"
--   --focus TEXT    text focus_area        "what is worked on"
--   --issues TEXT   body active_issues     "what is open"
--   --summary TEXT  body summary           "how far it is"
--   --state JSON    json serialized_state  "state of programs"
--   says     the current session of {PROJECT} is changed
--   about    Refused when none is open.
--   example  annal context update shop --summary "the cart remembers"

-- verb context end   appends session_context.ended   session proj_{PROJECT}
--      "end the current session"
--   PROJECT   text  "the project"
--   says     {PROJECT} has no current session
--   about    It stays in the list.
--   example  annal context end shop

-- verb context current   selects   "the current session of a project"
--   PROJECT   text  "the project"
--   about    The newest that has not ended.
--   example  annal context current shop --json
SELECT session_id, focus_area, active_issues, summary, serialized_state, started_at, updated_at
FROM memory.session_contexts_current
WHERE project_id = ?1;

-- verb context ls   selects   "list the sessions of a project, newest first"
--   PROJECT   text  "the project"
--   about    Also those that have ended.
--   example  annal context ls shop
SELECT session_id, focus_area, started_at, ended_at
FROM memory.session_contexts
WHERE project_id = ?1
ORDER BY started_at DESC, seq DESC;

-- noun plan   "what a coordinator plans (memory)"

-- verb plan spec   appends outcome_spec.created   session wf_{WORKFLOW}
--      "write down what a workflow run is to reach"
--   WORKFLOW           text             "the workflow run"
--   TITLE              text title       "what is to come of it, in a line"
--   --content TEXT     body content     "all of it; - reads standard input"
--   --project PROJECT  text project_id  "for which project"
--   --id ID            text spec_id     "its id (the next o1, o2, …)"
--   says     outcome spec {spec_id} is a draft
--   about    It is a draft until it is confirmed (annal plan spec-status).
--   example  annal plan spec w1 "A cart that remembers"

-- verb plan spec-status   appends outcome_spec.status_changed   session wf_{WORKFLOW}
--      "confirm or withdraw an outcome spec"
--   WORKFLOW         text           "the workflow run"
--   SPEC             text spec_id   "the outcome spec"
--   STATUS           text to        "draft, confirmed or withdrawn"
--   --expect STATUS  text expected  "refused unless it is that now"
--   says     outcome spec {SPEC} is {STATUS}
--   about    Compare and set, as the table plan_edges allows.
--   example  annal plan spec-status w1 o1 confirmed

-- verb plan create   appends work_plan.created   session wf_{WORKFLOW}
--      "begin a plan of a workflow run"
--   WORKFLOW           text                     "the workflow run"
--   --spec ID          text spec_id             "the outcome spec that it is to reach"
--   --project PROJECT  text project_id          "for which project"
--   --coordinator RUN  text coordinator_run_id  "the run that coordinates"
--   --branch NAME      text integration_branch  "where the parts come together"
--   --id ID            text plan_id             "its id (the next p1, p2, …)"
--   says     plan {plan_id} is planned
--   about    A plan owns its subtasks: they go when it goes.
--   example  annal plan create w1 --spec o1

-- verb plan status   appends work_plan.status_changed   session wf_{WORKFLOW}
--      "change the status of a plan"
--   WORKFLOW         text                 "the workflow run"
--   PLAN             text plan_id         "the plan"
--   STATUS           text to              "the new status"
--   --expect STATUS  text expected        "refused unless it is that now"
--   --stage WORD     text assembly_stage  "how far the assembly is"
--   --override       flag override        "although the edges do not allow it"
--   --reason TEXT    text reason          "why; an override needs one"
--   says     plan {PLAN} is {STATUS}
--   about    Compare and set, as the table plan_edges allows: of those who begin to assemble
--            (--expect awaiting_assembly) one wins.
--   example  annal plan status w1 p1 assembling --expect awaiting_assembly

-- verb plan delete   appends work_plan.deleted   session wf_{WORKFLOW}
--      "delete a plan with its subtasks"
--   WORKFLOW  text          "the workflow run"
--   PLAN      text plan_id  "the plan"
--   says     plan {PLAN} is deleted
--   about    The journal keeps that they were there.
--   example  annal plan delete w1 p1

-- verb plan add   appends subtask.created   session wf_{WORKFLOW}   "add a subtask to a plan"
--   WORKFLOW       text                 "the workflow run"
--   PLAN           text plan_id         "the plan"
--   TITLE          text title           "what is to be done, in a line"
--   --scope TEXT   body scope           "how far it goes"
--   --agent NAME   text assigned_agent  "who is to do it"
--   --model MODEL  text model_id        "with which model"
--   --id ID        text subtask_id      "its id (the next s1, s2, …)"
--   says     subtask {subtask_id} is pending
--   about    It is pending.
--   example  annal plan add w1 p1 "the cart's tables" --agent ada

-- verb plan subtask   appends subtask.status_changed   session wf_{WORKFLOW}
--      "change the status of a subtask"
--   WORKFLOW         text               "the workflow run"
--   SUBTASK          text subtask_id    "the subtask"
--   STATUS           text to            "the new status"
--   --expect STATUS  text expected      "refused unless it is that now"
--   --run RUN        text child_run_id  "the run that does it"
--   --override       flag override      "although the edges do not allow it"
--   --reason TEXT    text reason        "why; an override needs one"
--   says     subtask {SUBTASK} is {STATUS}
--   about    Compare and set, as the table plan_edges allows.
--   example  annal plan subtask w1 s1 dispatched --run r2

-- verb plan remove   appends subtask.deleted   session wf_{WORKFLOW}
--      "delete a subtask on which no other one depends"
--   WORKFLOW  text             "the workflow run"
--   SUBTASK   text subtask_id  "the subtask"
--   says     subtask {SUBTASK} is deleted
--   about    Else it is refused.
--   example  annal plan remove w1 s1

-- verb plan depend   appends subtask_dependency.added   session wf_{WORKFLOW}
--      "a subtask waits for another one of its plan"
--   WORKFLOW  text                "the workflow run"
--   SUBTASK   text subtask_id     "the subtask"
--   ON        text depends_on_id  "the one that comes first"
--   says     subtask {SUBTASK} waits for {ON}
--   about    Refused when it would wait for itself, through others or directly.
--   example  annal plan depend w1 s2 s1

-- verb plan undepend   appends subtask_dependency.removed   session wf_{WORKFLOW}
--      "a subtask does not wait for another one any more"
--   WORKFLOW  text                "the workflow run"
--   SUBTASK   text subtask_id     "the subtask"
--   ON        text depends_on_id  "the one that comes first"
--   says     subtask {SUBTASK} does not wait for {ON}
--   about    Refused when it did not.
--   example  annal plan undepend w1 s2 s1

-- verb plan ls   selects   "list the subtasks of a workflow run's plans"
--   WORKFLOW  text  "the workflow run"
--   about    With what each waits for.
--   example  annal plan ls w1
SELECT p.id AS plan, p.status AS plan_status, s.id, s.title, s.status, s.assigned_agent,
       s.child_run_id,
       (SELECT group_concat(depends_on_id) FROM memory.subtask_dependencies d
        WHERE d.workflow_run_id = s.workflow_run_id AND d.subtask_id = s.id) AS waits_for
FROM memory.work_plans p
LEFT JOIN memory.subtasks s ON s.workflow_run_id = p.workflow_run_id AND s.work_plan_id = p.id
WHERE p.workflow_run_id = ?1
ORDER BY p.created_at, p.id, s.created_at, s.id;

-- verb plan ready   selects   "list pending subtasks that wait for nothing any more"
--   WORKFLOW  text  "the workflow run"
--   about    What can be dispatched now.
--   example  annal plan ready w1 --json
SELECT work_plan_id AS plan, id, title, assigned_agent
FROM memory.subtasks_ready
WHERE workflow_run_id = ?1
ORDER BY work_plan_id, id;

-- noun steering   "guidance into workflow runs (memory)"

-- verb steering issue   appends steering.issued   session wf_{WORKFLOW}
--      "guide a workflow run that is under way"
--   WORKFLOW      text              "the workflow run"
--   KIND          text kind         "redirect, pause, stop or amend"
--   TEXT          body instruction  "what to do; - reads standard input"
--   --target RUN  text target       "the run it is for (all)"
--   --by NAME     text created_by   "who says so"
--   says     directive {id} is pending
--   about    A directive is pending, then queued, relayed, applied; never back.
--   example  annal steering issue w1 amend "leave the tests alone" --by bob

-- verb steering queue   appends steering.queued   session wf_{WORKFLOW}
--      "a directive waits for its run"
--   WORKFLOW  text     "the workflow run"
--   ID        text id  "the directive"
--   says     directive {ID} is queued
--   about    Refused when it has come further.
--   example  annal steering queue w1 g1

-- verb steering relay   appends steering.relayed   session wf_{WORKFLOW}
--      "a directive was handed on to its run"
--   WORKFLOW  text     "the workflow run"
--   ID        text id  "the directive"
--   says     directive {ID} is relayed
--   about    Refused when it has come further.
--   example  annal steering relay w1 g1

-- verb steering apply   appends steering.applied   session wf_{WORKFLOW}
--      "a directive has been followed"
--   WORKFLOW  text     "the workflow run"
--   ID        text id  "the directive"
--   says     directive {ID} is applied
--   about    Refused the second time.
--   example  annal steering apply w1 g1

-- verb steering ls   selects   "list the directives of a workflow run"
--   WORKFLOW  text  "the workflow run"
--   about    Oldest first.
--   example  annal steering ls w1
SELECT id, kind, target, instruction, created_by, status, created_at
FROM memory.steering_directives
WHERE workflow_run_id = ?1
ORDER BY created_at, id;
