-- pack agentweaver   version 4   database agentweaver.db   scope cluster proj_*, run_*, wf_*
-- SPDX-License-Identifier: Apache-2.0
--
-- The operational half of Agentweaver: projects, workflow runs, runs and their statuses, the
-- backlog, review revisions, leases, token usage. The pack memory is its other half.
--
-- Which session writes what. Each project, run and workflow run is a session:
--   proj_<project>   projects, backlog_tasks, run_reservations, cast_proposals
--   run_<run>        run_rows, run_leases, run_revisions, token_usage_records
--   wf_<workflow>    workflow_runs
--   any              workflow_checkpoints (their session_id is the session that saved them)
-- Ids of rows are derived from the name of the session, so no session can write a row of another.
--
-- runs is a view, because two sessions know a run that was started from the backlog: the project
-- reserves it in the same event that claims the task, and the run's own session continues from
-- there. Until its first event there the reservation is the run; that event copies the reservation
-- (a fill puts it into $.reserved), so that each session can be replayed by itself.
--
-- Statuses are data: run_statuses, and run_edges for the changes that each operation allows. Only
-- run.transition with "override": true and a reason, which is stored in override_reason, can leave
-- a terminal status. A check by `UPDATE … SET id = id` changes nothing; each such check has a
-- sentence of its own for its refusal. A run.transition in a session of another kind belongs to
-- another pack (lionagi), and is accepted.
--
-- An approval is for one tree. Another tree removes it, with the name of the reviewer; so does new
-- work (in_progress). merging and merged need an approval of exactly the tree that the run has, or
-- an override with a reason. The merge keeps the reviewer who approved, unless it is overridden.
--
-- Order keys are texts, compared byte by byte. A caller gives a key (order_key: refused if taken),
-- a preferred key (requested_key: if taken, the next greater free key, five tries), or none (the
-- end of the list).

-- ---- Projects ----

CREATE TABLE projects (
    id                TEXT PRIMARY KEY,
    name              TEXT,
    location          TEXT,
    default_branch    TEXT,
    owner             TEXT,
    model             TEXT,
    provider          TEXT,
    allowed_workflows TEXT,
    sandbox_policy    TEXT,
    review_policy     TEXT,
    settings          TEXT,
    state             TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'deleting')),
    created_at        TEXT NOT NULL,
    updated_at        TEXT NOT NULL,
    next_task         INTEGER NOT NULL DEFAULT 1
);

CREATE TABLE cast_proposals (
    project_id    TEXT NOT NULL,
    id            TEXT NOT NULL,
    owner         TEXT,
    expires_at    TEXT,
    proposal_json TEXT,
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    PRIMARY KEY (project_id, id)
);

-- ---- Workflow runs ----

CREATE TABLE workflow_runs (
    id              TEXT PRIMARY KEY,
    project_id      TEXT,
    task            TEXT,
    submitting_user TEXT,
    worktree_path   TEXT,
    worktree_branch TEXT,
    created_at      TEXT NOT NULL,
    updated_at      TEXT NOT NULL
);

CREATE INDEX ix_workflow_runs_project ON workflow_runs(project_id);

CREATE TABLE workflow_checkpoints (
    store_name           TEXT NOT NULL,
    session_id           TEXT NOT NULL,
    checkpoint_id        TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    payload              TEXT,
    payload_ref          TEXT,
    created_at           TEXT NOT NULL,
    PRIMARY KEY (session_id, store_name, checkpoint_id)
);

-- ---- Allowed changes of a run's status ----

CREATE TABLE run_statuses (
    status   TEXT PRIMARY KEY,
    terminal INTEGER NOT NULL
);

INSERT INTO run_statuses (status, terminal) VALUES
    ('pending', 0), ('in_progress', 0), ('awaiting_review', 0), ('committing', 0), ('merging', 0),
    ('merged', 1), ('declined', 1), ('failed', 1), ('completed', 1), ('merge_failed', 1),
    ('assemble_ready', 1), ('cancelled', 1);

CREATE TABLE run_edges (
    operation   TEXT NOT NULL,
    from_status TEXT NOT NULL REFERENCES run_statuses(status),
    to_status   TEXT NOT NULL REFERENCES run_statuses(status),
    PRIMARY KEY (operation, from_status, to_status)
);

INSERT INTO run_edges (operation, from_status, to_status) VALUES
    ('start', 'pending', 'in_progress'),
    ('request_changes', 'awaiting_review', 'in_progress'),
    ('review', 'awaiting_review', 'declined'),
    ('review', 'awaiting_review', 'completed'),
    ('review', 'awaiting_review', 'failed'),
    ('review', 'awaiting_review', 'cancelled'),
    ('commit', 'awaiting_review', 'committing'),
    ('revert_commit', 'committing', 'awaiting_review'),
    ('start_merge', 'awaiting_review', 'merging'),
    ('start_merge', 'committing', 'merging'),
    ('revert_merge', 'merging', 'awaiting_review'),
    ('complete_merge', 'merging', 'merged'),
    ('complete_merge', 'merging', 'merge_failed');
INSERT INTO run_edges (operation, from_status, to_status)
SELECT 'review_ready', status, 'awaiting_review' FROM run_statuses WHERE terminal = 0;
INSERT INTO run_edges (operation, from_status, to_status)
SELECT 'assemble', status, 'assemble_ready' FROM run_statuses WHERE terminal = 0;
INSERT INTO run_edges (operation, from_status, to_status)
SELECT 'finish', s.status, t.status
FROM run_statuses s, run_statuses t
WHERE s.terminal = 0 AND t.status IN ('failed', 'completed', 'cancelled');

-- One row, for guards that only check.
CREATE TABLE run_gate (id INTEGER PRIMARY KEY);
INSERT INTO run_gate (id) VALUES (1);

-- ---- Runs ----

CREATE TABLE run_rows (
    id                  TEXT PRIMARY KEY,
    project_id          TEXT,
    workflow_run_id     TEXT,
    parent_run_id       TEXT,
    subtask_id          TEXT,
    task_id             TEXT,
    retried_from        TEXT,
    origin              TEXT NOT NULL,
    status              TEXT NOT NULL REFERENCES run_statuses(status),
    task                TEXT,
    agent_name          TEXT,
    model_id            TEXT,
    provider            TEXT,
    submitting_user     TEXT,
    originating_branch  TEXT,
    worktree_path       TEXT,
    worktree_branch     TEXT,
    tree_hash           TEXT,
    approved_tree_hash  TEXT,
    approved_by         TEXT,
    approved_at         TEXT,
    diff                TEXT,
    diff_ref            TEXT,
    review_ready_at     TEXT,
    review_wait_ms      INTEGER NOT NULL DEFAULT 0,
    reviewer            TEXT,
    result              TEXT,
    conflicts           TEXT,
    merged_commit_hash  TEXT,
    override_reason     TEXT,
    created_at          TEXT NOT NULL,
    started_at          TEXT,
    ended_at            TEXT,
    updated_at          TEXT NOT NULL,
    archived_at         TEXT
);

CREATE INDEX ix_run_rows_project ON run_rows(project_id, status);
CREATE INDEX ix_run_rows_status ON run_rows(status);
CREATE INDEX ix_run_rows_workflow ON run_rows(workflow_run_id);
CREATE INDEX ix_run_rows_parent ON run_rows(parent_run_id);

CREATE TABLE run_reservations (
    project_id         TEXT NOT NULL,
    run_id             TEXT NOT NULL,
    task_id            TEXT NOT NULL,
    workflow_run_id    TEXT,
    parent_run_id      TEXT,
    subtask_id         TEXT,
    retried_from       TEXT,
    origin             TEXT NOT NULL,
    task               TEXT,
    agent_name         TEXT,
    model_id           TEXT,
    provider           TEXT,
    submitting_user    TEXT,
    originating_branch TEXT,
    worktree_path      TEXT,
    worktree_branch    TEXT,
    reserved_at        TEXT NOT NULL,
    archived_at        TEXT,
    PRIMARY KEY (project_id, run_id)
);

CREATE INDEX ix_run_reservations_run ON run_reservations(run_id);

CREATE TABLE run_leases (
    run_id           TEXT PRIMARY KEY,
    owner_id         TEXT,
    lease_expires_at TEXT,
    fencing_token    INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    claimed_at       TEXT,
    released_at      TEXT
);

CREATE VIEW runs AS
SELECT r.id, r.project_id, r.workflow_run_id, r.parent_run_id, r.subtask_id, r.task_id,
       r.retried_from, r.origin, r.status, r.task, r.agent_name, r.model_id, r.provider,
       r.submitting_user, r.originating_branch, r.worktree_path, r.worktree_branch, r.tree_hash,
       r.approved_tree_hash, r.approved_by, r.approved_at, r.diff, r.diff_ref, r.review_ready_at,
       r.review_wait_ms, r.reviewer, r.result, r.conflicts, r.merged_commit_hash,
       r.override_reason, r.created_at, r.started_at, r.ended_at, r.updated_at,
       COALESCE(r.archived_at, (SELECT MIN(b.archived_at) FROM run_reservations b
                                WHERE b.run_id = r.id AND b.project_id = r.project_id))
           AS archived_at,
       l.owner_id AS lease_owner, l.lease_expires_at, l.fencing_token, l.attempt
FROM run_rows r LEFT JOIN run_leases l ON l.run_id = r.id
UNION ALL
SELECT b.run_id, b.project_id, b.workflow_run_id, b.parent_run_id, b.subtask_id, b.task_id,
       b.retried_from, b.origin, 'in_progress', b.task, b.agent_name, b.model_id, b.provider,
       b.submitting_user, b.originating_branch, b.worktree_path, b.worktree_branch, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL,
       0, NULL, NULL, NULL, NULL,
       NULL, b.reserved_at, b.reserved_at, NULL, b.reserved_at,
       b.archived_at,
       NULL, NULL, NULL, NULL
FROM run_reservations b
WHERE NOT EXISTS (SELECT 1 FROM run_rows r WHERE r.id = b.run_id);

-- The reservation that a run's first event of its own copies.
CREATE VIEW runs_not_begun AS
SELECT b.run_id,
       json_object('project_id', b.project_id, 'task_id', b.task_id,
                   'workflow_run_id', b.workflow_run_id, 'parent_run_id', b.parent_run_id,
                   'subtask_id', b.subtask_id, 'retried_from', b.retried_from,
                   'origin', b.origin, 'task', b.task, 'agent_name', b.agent_name,
                   'model_id', b.model_id, 'provider', b.provider,
                   'submitting_user', b.submitting_user,
                   'originating_branch', b.originating_branch,
                   'worktree_path', b.worktree_path, 'worktree_branch', b.worktree_branch,
                   'reserved_at', b.reserved_at) AS reserved
FROM run_reservations b
WHERE NOT EXISTS (SELECT 1 FROM run_rows r WHERE r.id = b.run_id);

-- ---- Review revisions: append-only ----

CREATE TABLE run_revisions (
    run_id             TEXT NOT NULL,
    revision_number    INTEGER NOT NULL,
    reviewer_user      TEXT,
    raw_comment        TEXT,
    sanitized_comment  TEXT,
    previous_tree_hash TEXT,
    created_at         TEXT NOT NULL,
    PRIMARY KEY (run_id, revision_number)
);

-- Runs whose journal was deleted, while their rows are deleted. Otherwise empty.
CREATE TABLE runs_forgotten (run_id TEXT PRIMARY KEY);

CREATE TRIGGER run_revisions_stay BEFORE DELETE ON run_revisions
WHEN NOT EXISTS (SELECT 1 FROM runs_forgotten WHERE run_id = old.run_id)
BEGIN
    SELECT RAISE(ABORT, 'run_revisions is append-only: a revision is never deleted');
END;

CREATE TRIGGER run_revisions_stand BEFORE UPDATE ON run_revisions
BEGIN
    SELECT RAISE(ABORT, 'run_revisions is append-only: a revision is never changed');
END;

-- INSERT OR REPLACE would delete without running the trigger above.
CREATE TRIGGER run_revisions_once BEFORE INSERT ON run_revisions
WHEN EXISTS (SELECT 1 FROM run_revisions
             WHERE run_id = new.run_id AND revision_number = new.revision_number)
BEGIN
    SELECT RAISE(ABORT, 'run_revisions is append-only: this revision exists already');
END;

-- ---- Backlog ----

CREATE TABLE backlog_tasks (
    project_id    TEXT NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
    id            TEXT NOT NULL,
    title         TEXT NOT NULL,
    description   TEXT,
    state         TEXT NOT NULL DEFAULT 'backlog' CHECK (state IN ('backlog', 'ready', 'claimed')),
    order_key     TEXT NOT NULL,
    run_id        TEXT,
    overrides     TEXT,
    created_by    TEXT,
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    committed_at  TEXT,
    claimed_at    TEXT,
    archived_at   TEXT,
    PRIMARY KEY (project_id, id)
);

CREATE UNIQUE INDEX ux_backlog_tasks_order ON backlog_tasks(project_id, state, order_key)
WHERE state IN ('backlog', 'ready') AND archived_at IS NULL;
CREATE UNIQUE INDEX ux_backlog_tasks_run ON backlog_tasks(project_id, run_id)
WHERE run_id IS NOT NULL;
CREATE INDEX ix_backlog_tasks_run ON backlog_tasks(run_id);

-- The last keys, in the form for computing the next one: stem || printf('%010d', number + 1000).
CREATE VIEW backlog_ends AS
SELECT project_id, state,
       CASE WHEN last IS NULL THEN 't'
            WHEN last GLOB '*t[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]'
            THEN substr(last, 1, length(last) - 10)
            ELSE last || 't' END AS stem,
       CASE WHEN last GLOB '*t[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]'
            THEN CAST(substr(last, -10) AS INTEGER) ELSE 0 END AS number
FROM (SELECT p.id AS project_id, s.state,
             (SELECT MAX(t.order_key) FROM backlog_tasks t
              WHERE t.project_id = p.id AND t.state = s.state
                AND t.state IN ('backlog', 'ready') AND t.archived_at IS NULL) AS last
      FROM projects p CROSS JOIN (SELECT 'backlog' AS state UNION ALL SELECT 'ready') s);

CREATE VIEW backlog_order AS
SELECT project_id, state, order_key, id, title, created_at
FROM backlog_tasks
WHERE state IN ('backlog', 'ready') AND archived_at IS NULL
ORDER BY project_id, state, order_key;

-- ---- Token usage ----

CREATE TABLE token_usage_records (
    id              TEXT PRIMARY KEY,
    run_id          TEXT NOT NULL,
    workflow_run_id TEXT,
    project_id      TEXT,
    model_id        TEXT NOT NULL,
    input_tokens    INTEGER NOT NULL DEFAULT 0,
    output_tokens   INTEGER NOT NULL DEFAULT 0,
    total_tokens    INTEGER NOT NULL DEFAULT 0,
    total_nano_aiu  INTEGER NOT NULL DEFAULT 0,
    timestamp       TEXT NOT NULL
);

CREATE INDEX ix_token_usage_run ON token_usage_records(run_id);
CREATE INDEX ix_token_usage_time ON token_usage_records(timestamp);

-- With the project and the workflow run of the run, where the record lacks them.
CREATE VIEW token_usage AS
SELECT t.id, t.run_id, COALESCE(t.workflow_run_id, r.workflow_run_id) AS workflow_run_id,
       COALESCE(t.project_id, r.project_id,
                (SELECT MIN(b.project_id) FROM run_reservations b WHERE b.run_id = t.run_id))
           AS project_id,
       t.model_id, t.input_tokens, t.output_tokens, t.total_tokens, t.total_nano_aiu, t.timestamp
FROM token_usage_records t LEFT JOIN run_rows r ON r.id = t.run_id;

CREATE VIEW token_usage_by_run AS
SELECT run_id, COUNT(*) AS records, SUM(input_tokens) AS input_tokens,
       SUM(output_tokens) AS output_tokens, SUM(total_tokens) AS total_tokens,
       SUM(total_nano_aiu) AS total_nano_aiu
FROM token_usage_records GROUP BY run_id;

CREATE VIEW token_usage_by_workflow_run AS
SELECT workflow_run_id, COUNT(*) AS records, COUNT(DISTINCT run_id) AS runs,
       SUM(input_tokens) AS input_tokens, SUM(output_tokens) AS output_tokens,
       SUM(total_tokens) AS total_tokens, SUM(total_nano_aiu) AS total_nano_aiu
FROM token_usage WHERE workflow_run_id IS NOT NULL GROUP BY workflow_run_id;

CREATE VIEW token_usage_by_project AS
SELECT project_id, COUNT(*) AS records, COUNT(DISTINCT run_id) AS runs,
       SUM(input_tokens) AS input_tokens, SUM(output_tokens) AS output_tokens,
       SUM(total_tokens) AS total_tokens, SUM(total_nano_aiu) AS total_nano_aiu
FROM token_usage WHERE project_id IS NOT NULL GROUP BY project_id;

CREATE VIEW token_usage_by_model AS
SELECT model_id, COUNT(*) AS records, SUM(input_tokens) AS input_tokens,
       SUM(output_tokens) AS output_tokens, SUM(total_tokens) AS total_tokens,
       SUM(total_nano_aiu) AS total_nano_aiu
FROM token_usage_records GROUP BY model_id;

CREATE VIEW token_usage_by_hour AS
SELECT substr(timestamp, 1, 13) AS hour, COUNT(*) AS records, SUM(input_tokens) AS input_tokens,
       SUM(output_tokens) AS output_tokens, SUM(total_tokens) AS total_tokens,
       SUM(total_nano_aiu) AS total_nano_aiu
FROM token_usage_records GROUP BY substr(timestamp, 1, 13);

-- The sum of all projects: usage without a project is not included.
CREATE VIEW token_usage_by_app AS
SELECT COUNT(*) AS records, COUNT(DISTINCT run_id) AS runs,
       COALESCE(SUM(input_tokens), 0) AS input_tokens,
       COALESCE(SUM(output_tokens), 0) AS output_tokens,
       COALESCE(SUM(total_tokens), 0) AS total_tokens,
       COALESCE(SUM(total_nano_aiu), 0) AS total_nano_aiu
FROM token_usage WHERE project_id IS NOT NULL;
