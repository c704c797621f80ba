-- pack agentweaver   version 4   database agentweaver.db
--
-- The operational half of Agentweaver: projects, workflow runs, runs and what may become of them,
-- the backlog, review revisions, leases, token usage. Its other half is the pack memory.
--
-- Which session writes what. A project, a run and a workflow run is a session each:
--   proj_<project>   projects, backlog_tasks, run_reservations, cast_proposals
--   run_<run>        run_rows, run_leases, run_revisions, token_usage_records
--   wf_<workflow>    workflow_runs
--   any              workflow_checkpoints (their session_id is the session that saved them)
-- Ids of rows come from the name of the session, so no session can write a row of another one.
--
-- runs is a view, because two sessions know of a run that was picked up from the backlog: the
-- project reserves it in the same event that claims the task, and the run's own session goes on
-- from there. Until its first event there the reservation is the run; that event takes the
-- reservation along (fill puts it into $.reserved), so that each session can be replayed by itself.
--
-- Statuses are data: run_statuses, and run_edges for what may follow what by which operation. A
-- terminal status is left only by run.transition with "override": true and a reason, which stays in
-- override_reason. What is asked with `UPDATE … SET id = id` changes nothing; it is there so that
-- each refusal has a sentence of its own. run.transition in a session that is no run's is another
-- pack's (lionagi), and let pass.
--
-- An approval is of one tree. Another tree takes it away, with the name of the reviewer; so does new
-- work (in_progress). merging and merged need an approval of exactly the tree that the run has, or an
-- override with a reason. Who approved is the reviewer of what is merged, unless it is overridden.
--
-- Order keys are texts, compared byte by byte. A caller names one (order_key: taken is refused), or
-- the wish for one (requested_key: taken gives the next greater free one, five tries), or none (the
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

-- ---- What a run's status may become ----

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

-- One row, for guards that only ask.
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

-- What a run's first event of its own takes along.
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

-- ---- Review revisions: written once, for ever ----

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

-- Runs whose journal is gone, while their rows go. Empty otherwise.
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

-- INSERT OR REPLACE would delete without asking the trigger above.
CREATE TRIGGER run_revisions_once BEFORE INSERT ON run_revisions
WHEN EXISTS (SELECT 1 FROM run_revisions
             WHERE run_id = new.run_id AND revision_number = new.revision_number)
BEGIN
    SELECT RAISE(ABORT, 'run_revisions is append-only: this revision is there already');
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

-- The keys that stand last, as what a further one begins with and counts on from:
-- stem || printf('%010d', number + 1000).
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

-- With the project and the workflow run that the run belongs to, where the record does not say.
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

-- Of all projects together: what belongs to none is not in it.
CREATE VIEW token_usage_by_app AS
SELECT COUNT(*) AS records, COUNT(DISTINCT run_id) AS runs,
       COALESCE(SUM(input_tokens), 0) AS input_tokens,
       COALESCE(SUM(output_tokens), 0) AS output_tokens,
       COALESCE(SUM(total_tokens), 0) AS total_tokens,
       COALESCE(SUM(total_nano_aiu), 0) AS total_nano_aiu
FROM token_usage WHERE project_id IS NOT NULL;

-- ==== Projects ====

-- on project.created   guarded "this session is no proj_<project>, or the project is there already"
INSERT INTO projects (id, name, location, default_branch, owner, model, provider,
                      allowed_workflows, sandbox_policy, review_policy, settings,
                      created_at, updated_at)
SELECT substr(:session, 6), $name, $location, $default_branch, $owner, $model, $provider,
       $allowed_workflows, $sandbox_policy, $review_policy, $settings,
       COALESCE(annal_time($created_at), :ts), COALESCE(annal_time($created_at), :ts)
WHERE :session GLOB 'proj_?*';

-- on project.configured   guarded "there is no such project"
UPDATE projects SET
    name = COALESCE($set::name, $name, name),
    location = COALESCE($set::location, $location, location),
    default_branch = COALESCE($set::default_branch, $default_branch, default_branch),
    owner = COALESCE($set::owner, $owner, owner),
    model = COALESCE($set::model, $model, model),
    provider = COALESCE($set::provider, $provider, provider),
    allowed_workflows = COALESCE($set::allowed_workflows, $allowed_workflows, allowed_workflows),
    sandbox_policy = COALESCE($set::sandbox_policy, $sandbox_policy, sandbox_policy),
    review_policy = COALESCE($set::review_policy, $review_policy, review_policy),
    settings = COALESCE($set::settings, $settings, settings),
    updated_at = :ts
WHERE id = substr(:session, 6) AND :session GLOB 'proj_?*';

-- on project.delete_begun   guarded "there is no such project, or its deletion has begun already"
UPDATE projects SET state = 'deleting', updated_at = :ts
WHERE id = substr(:session, 6) AND :session GLOB 'proj_?*' AND state = 'active';

-- on project.deleted   guarded "there is no such project"
DELETE FROM projects WHERE id = substr(:session, 6) AND :session GLOB 'proj_?*';
DELETE FROM backlog_tasks WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';
DELETE FROM cast_proposals WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*';

-- on cast.proposed   guarded "there is no such project"
INSERT INTO cast_proposals (project_id, id, owner, expires_at, proposal_json, created_at,
                            updated_at)
SELECT p.id, $id, $owner, annal_time($expires_at), COALESCE($proposal_json, $proposal), :ts, :ts
FROM projects p WHERE p.id = substr(:session, 6) AND :session GLOB 'proj_?*'
ON CONFLICT (project_id, id) DO UPDATE SET
    owner = excluded.owner, expires_at = excluded.expires_at,
    proposal_json = excluded.proposal_json, updated_at = excluded.updated_at;

-- ==== Workflow runs ====

-- on workflow_run.created   guarded "this session is no wf_<workflow run>, or it is there already"
INSERT INTO workflow_runs (id, project_id, task, submitting_user, worktree_path, worktree_branch,
                           created_at, updated_at)
SELECT substr(:session, 4), $project_id, $task, $submitting_user, $worktree_path, $worktree_branch,
       COALESCE(annal_time($created_at), :ts), COALESCE(annal_time($created_at), :ts)
WHERE :session GLOB 'wf_?*';

-- on workflow_run.worktree_set   guarded "there is no such workflow run, or it has another worktree"
UPDATE workflow_runs SET
    worktree_path = COALESCE($worktree_path, $path),
    worktree_branch = COALESCE(worktree_branch, $worktree_branch, $branch),
    updated_at = CASE WHEN worktree_path IS NULL THEN :ts ELSE updated_at END
WHERE id = substr(:session, 4) AND :session GLOB 'wf_?*'
  AND COALESCE($worktree_path, $path) IS NOT NULL
  AND (worktree_path IS NULL OR worktree_path = COALESCE($worktree_path, $path));

-- artifact checkpoint.saved   payload   over 102400

-- on checkpoint.saved   guarded "the checkpoint has no id, or is there already"
INSERT INTO workflow_checkpoints (store_name, session_id, checkpoint_id, parent_checkpoint_id,
                                  payload, payload_ref, created_at)
SELECT COALESCE($store_name, 'default'), :session, $checkpoint_id,
       COALESCE($parent_checkpoint_id, $parent), $payload, $payload_ref,
       COALESCE(annal_time($created_at), :ts)
WHERE $checkpoint_id IS NOT NULL;

-- ==== Runs ====

-- A child of a coordinator that says shared_worktree works where its workflow run does.
-- fill run.created   reads $project_session
SELECT CASE WHEN $project_id IS NOT NULL
            THEN COALESCE((SELECT state FROM projects WHERE id = $project_id), 'missing')
            END AS project_state,
       (SELECT 1 FROM run_reservations WHERE run_id = substr(:session, 5) LIMIT 1)
           AS reserved_already,
       (SELECT worktree_path FROM workflow_runs
        WHERE id = $workflow_run_id AND $shared_worktree) AS worktree_path,
       (SELECT worktree_branch FROM workflow_runs
        WHERE id = $workflow_run_id AND $shared_worktree) AS worktree_branch;

-- on run.created   guarded "the project of the run is not there, or is being deleted"
UPDATE run_gate SET id = id WHERE COALESCE($project_state, 'active') = 'active';

-- on run.created   guarded "this session is no run_<run>, or the run is there already"
INSERT INTO run_rows (id, project_id, workflow_run_id, parent_run_id, subtask_id, task_id,
                      retried_from, origin, status, task, agent_name, model_id, provider,
                      submitting_user, originating_branch, worktree_path, worktree_branch,
                      created_at, updated_at)
SELECT substr(:session, 5), $project_id, $workflow_run_id, $parent_run_id, $subtask_id, $task_id,
       $retried_from, COALESCE($origin, 'interactive'), 'pending', COALESCE($task, $prompt),
       $agent_name, COALESCE($model_id, $model), $provider, $submitting_user, $originating_branch,
       $worktree_path, $worktree_branch,
       COALESCE(annal_time($created_at), :ts), COALESCE(annal_time($created_at), :ts)
WHERE :session GLOB 'run_?*' AND $reserved_already IS NULL
  AND COALESCE($project_state, 'active') = 'active';

-- project_session (proj_<project>) has that session looked at first; a writer that crashed may have
-- left its tables behind its journal.
-- fill run.worktree_set, run.started   reads $project_session
SELECT (SELECT reserved FROM runs_not_begun WHERE run_id = substr(:session, 5) LIMIT 1) AS reserved;

-- fill run.review_ready, run.transition, run.cancelled, run.approved, run.archived
SELECT (SELECT reserved FROM runs_not_begun WHERE run_id = substr(:session, 5) LIMIT 1) AS reserved;

-- A run that was reserved by its project begins its own history.
-- on run.worktree_set, run.started, run.review_ready, run.transition, run.cancelled, run.approved, run.archived, revision.recorded, lease.claimed
INSERT INTO run_rows (id, project_id, workflow_run_id, parent_run_id, subtask_id, task_id,
                      retried_from, origin, status, task, agent_name, model_id, provider,
                      submitting_user, originating_branch, worktree_path, worktree_branch,
                      created_at, started_at, updated_at)
SELECT substr(:session, 5), $reserved ->> 'project_id', $reserved ->> 'workflow_run_id',
       $reserved ->> 'parent_run_id', $reserved ->> 'subtask_id', $reserved ->> 'task_id',
       $reserved ->> 'retried_from', $reserved ->> 'origin', 'in_progress', $reserved ->> 'task',
       $reserved ->> 'agent_name', $reserved ->> 'model_id', $reserved ->> 'provider',
       $reserved ->> 'submitting_user', $reserved ->> 'originating_branch',
       $reserved ->> 'worktree_path', $reserved ->> 'worktree_branch',
       $reserved ->> 'reserved_at', $reserved ->> 'reserved_at', $reserved ->> 'reserved_at'
WHERE :session GLOB 'run_?*' AND $reserved ->> 'reserved_at' IS NOT NULL
ON CONFLICT (id) DO NOTHING;

-- on run.worktree_set, run.review_ready, run.approved, run.archived, revision.recorded, lease.claimed   guarded "there is no such run"
UPDATE run_rows SET id = id WHERE id = substr(:session, 5) AND :session GLOB 'run_?*';

-- Runs of other kinds (a session of another name) may start and change too; that is not ours.
-- on run.started, run.transition   guarded "there is no such run"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*' OR EXISTS (SELECT 1 FROM run_rows WHERE id = substr(:session, 5));

-- on run.worktree_set, run.started, run.review_ready, run.transition   guarded "the lease on the run has passed on: the fencing token is not the last one"
UPDATE run_gate SET id = id
WHERE $fencing_token IS NULL
   OR $fencing_token = (SELECT fencing_token FROM run_leases WHERE run_id = substr(:session, 5));

-- on run.worktree_set   guarded "the run has another worktree, or none was named"
UPDATE run_rows SET
    worktree_path = COALESCE($worktree_path, $path),
    worktree_branch = COALESCE(worktree_branch, $worktree_branch, $branch),
    updated_at = CASE WHEN worktree_path IS NULL THEN :ts ELSE updated_at END
WHERE id = substr(:session, 5)
  AND COALESCE($worktree_path, $path) IS NOT NULL
  AND (worktree_path IS NULL OR worktree_path = COALESCE($worktree_path, $path))
  AND (worktree_branch IS NULL OR COALESCE($worktree_branch, $branch) IS NULL
       OR worktree_branch = COALESCE($worktree_branch, $branch));

-- on run.started   guarded "the run is not pending"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR EXISTS (SELECT 1 FROM run_rows WHERE id = substr(:session, 5) AND status = 'pending');

-- on run.started   guarded "the worktree of a run must be known before it starts: its path and branch, and no other than were set"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR EXISTS (SELECT 1 FROM run_rows
              WHERE id = substr(:session, 5)
                AND COALESCE(worktree_path, $worktree_path) = COALESCE($worktree_path, worktree_path)
                AND COALESCE(worktree_branch, $worktree_branch)
                    = COALESCE($worktree_branch, worktree_branch));
UPDATE run_rows SET
    status = 'in_progress',
    worktree_path = COALESCE(worktree_path, $worktree_path),
    worktree_branch = COALESCE(worktree_branch, $worktree_branch),
    started_at = COALESCE(annal_time($started_at), :ts),
    updated_at = :ts
WHERE id = substr(:session, 5) AND status = 'pending'
  AND COALESCE(worktree_path, $worktree_path) = COALESCE($worktree_path, worktree_path)
  AND COALESCE(worktree_branch, $worktree_branch) = COALESCE($worktree_branch, worktree_branch);

-- artifact run.review_ready, run.transition   diff   over 102400

-- on run.review_ready   guarded "the run has ended"
UPDATE run_rows SET
    status = 'awaiting_review',
    reviewer = CASE WHEN COALESCE($tree_hash, tree_hash) IS tree_hash THEN reviewer END,
    approved_tree_hash = CASE WHEN COALESCE($tree_hash, tree_hash) IS tree_hash
                              THEN approved_tree_hash END,
    approved_by = CASE WHEN COALESCE($tree_hash, tree_hash) IS tree_hash THEN approved_by END,
    approved_at = CASE WHEN COALESCE($tree_hash, tree_hash) IS tree_hash THEN approved_at END,
    tree_hash = COALESCE($tree_hash, tree_hash),
    diff = CASE WHEN $diff IS NULL AND $diff_ref IS NULL THEN diff ELSE $diff END,
    diff_ref = CASE WHEN $diff IS NULL AND $diff_ref IS NULL THEN diff_ref ELSE $diff_ref END,
    review_wait_ms = review_wait_ms
        + CASE WHEN status = 'awaiting_review' AND review_ready_at IS NOT NULL
               THEN MAX(0, CAST(ROUND((annal_unix(:ts) - annal_unix(review_ready_at)) * 1000)
                                AS INTEGER))
               ELSE 0 END,
    review_ready_at = COALESCE(annal_time($review_ready_at), :ts),
    updated_at = :ts
WHERE id = substr(:session, 5)
  AND status IN (SELECT from_status FROM run_edges WHERE operation = 'review_ready');

-- on run.approved   guarded "the run is not awaiting review"
UPDATE run_rows SET id = id WHERE id = substr(:session, 5) AND status = 'awaiting_review';

-- on run.approved   guarded "this is not the tree that awaits review"
UPDATE run_rows SET
    approved_tree_hash = COALESCE($tree_hash, $expect::tree_hash),
    approved_by = $reviewer,
    approved_at = COALESCE(annal_time($approved_at), :ts),
    reviewer = $reviewer,
    updated_at = :ts
WHERE id = substr(:session, 5) AND status = 'awaiting_review'
  AND tree_hash = COALESCE($tree_hash, $expect::tree_hash);

-- on run.transition   guarded "the status of the run is not the one that was expected"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR EXISTS (SELECT 1 FROM run_rows WHERE id = substr(:session, 5)
              AND CASE WHEN COALESCE($expected, $expect::status) IS NULL THEN 1
                    WHEN json_valid(COALESCE($expected, $expect::status))
                    THEN status IN (SELECT value FROM json_each(COALESCE($expected, $expect::status)))
                    ELSE status = COALESCE($expected, $expect::status) END);

-- on run.transition   guarded "the run has ended; only an override with a reason changes its status"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR EXISTS (SELECT 1 FROM run_rows WHERE id = substr(:session, 5)
              AND (($override AND trim($reason, ' ' || char(9, 10, 13)) <> '')
                OR status IN (SELECT status FROM run_statuses WHERE NOT terminal)));

-- on run.transition   guarded "the worktree of a run must be known before it starts: its path and branch"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR EXISTS (SELECT 1 FROM run_rows WHERE id = substr(:session, 5)
              AND (status <> 'pending' OR $to IS NOT 'in_progress'
                OR (COALESCE(worktree_path, $worktree_path) IS NOT NULL
                    AND COALESCE(worktree_branch, $worktree_branch) IS NOT NULL)));

-- on run.transition   guarded "the run's tree is not approved: merge it with override and a reason"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR ($to IS NOT 'merging' AND $to IS NOT 'merged')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '')
   OR EXISTS (SELECT 1 FROM run_rows
              WHERE id = substr(:session, 5) AND approved_tree_hash = tree_hash);

-- on run.transition   guarded "the reviewer is not who approved the tree"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR ($to IS NOT 'merging' AND $to IS NOT 'merged')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '')
   OR EXISTS (SELECT 1 FROM run_rows
              WHERE id = substr(:session, 5) AND COALESCE($reviewer, approved_by) IS approved_by);

-- on run.transition   guarded "this is not the tree that was approved"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR ($to IS NOT 'merging' AND $to IS NOT 'merged')
   OR EXISTS (SELECT 1 FROM run_rows
              WHERE id = substr(:session, 5)
                AND COALESCE($expect::tree_hash, tree_hash) IS tree_hash
                AND (COALESCE($tree_hash, tree_hash) IS tree_hash
                  OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '')));

-- on run.transition   guarded "a run's status does not change so; table run_edges says what may follow what"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR EXISTS (SELECT 1 FROM run_rows WHERE id = substr(:session, 5)
              AND CASE WHEN COALESCE($expected, $expect::status) IS NULL THEN 1
                       WHEN json_valid(COALESCE($expected, $expect::status))
                       THEN status IN (SELECT value FROM json_each(COALESCE($expected, $expect::status)))
                       ELSE status = COALESCE($expected, $expect::status) END
              AND (EXISTS (SELECT 1 FROM run_edges
                           WHERE from_status = run_rows.status AND to_status = $to
                             AND operation = COALESCE($operation, operation))
                   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''
                       AND $to IN (SELECT status FROM run_statuses))));
UPDATE run_rows SET
    status = $to,
    override_reason = CASE WHEN $override THEN $reason ELSE override_reason END,
    started_at = CASE WHEN $to = 'in_progress'
                      THEN COALESCE(started_at, annal_time($started_at), :ts)
                      ELSE started_at END,
    ended_at = CASE WHEN $to IN (SELECT status FROM run_statuses WHERE terminal)
                    THEN COALESCE(annal_time($ended_at), :ts) END,
    review_wait_ms = review_wait_ms
        + CASE WHEN status = 'awaiting_review' AND review_ready_at IS NOT NULL
               THEN MAX(0, CAST(ROUND((annal_unix(:ts) - annal_unix(review_ready_at)) * 1000)
                                AS INTEGER))
               ELSE 0 END,
    review_ready_at = CASE WHEN $to = 'awaiting_review'
                           THEN COALESCE(annal_time($review_ready_at), :ts)
                           WHEN $to IN ('in_progress', 'committing') THEN NULL
                           ELSE review_ready_at END,
    approved_tree_hash = CASE WHEN $to = 'in_progress'
                                   OR COALESCE($tree_hash, tree_hash) IS NOT tree_hash THEN NULL
                              ELSE approved_tree_hash END,
    approved_by = CASE WHEN $to = 'in_progress'
                            OR COALESCE($tree_hash, tree_hash) IS NOT tree_hash THEN NULL
                       ELSE approved_by END,
    approved_at = CASE WHEN $to = 'in_progress'
                            OR COALESCE($tree_hash, tree_hash) IS NOT tree_hash THEN NULL
                       ELSE approved_at END,
    tree_hash = COALESCE($tree_hash, tree_hash),
    worktree_path = COALESCE(worktree_path, $worktree_path),
    worktree_branch = COALESCE(worktree_branch, $worktree_branch),
    diff = CASE WHEN $diff IS NULL AND $diff_ref IS NULL THEN diff ELSE $diff END,
    diff_ref = CASE WHEN $diff IS NULL AND $diff_ref IS NULL THEN diff_ref ELSE $diff_ref END,
    reviewer = CASE WHEN $to IN ('merging', 'merged')
                         AND NOT COALESCE($override AND trim($reason, ' ' || char(9, 10, 13)) <> '', 0)
                    THEN CASE WHEN COALESCE($tree_hash, tree_hash) IS tree_hash THEN approved_by END
                    WHEN $reviewer IS NOT NULL THEN $reviewer
                    WHEN $to IS NOT 'in_progress' AND COALESCE($tree_hash, tree_hash) IS tree_hash
                    THEN reviewer END,
    result = COALESCE($result, result),
    conflicts = COALESCE($conflicts, conflicts),
    merged_commit_hash = COALESCE($merged_commit_hash, merged_commit_hash),
    updated_at = :ts
WHERE id = substr(:session, 5) AND :session GLOB 'run_?*'
  AND CASE WHEN COALESCE($expected, $expect::status) IS NULL THEN 1
           WHEN json_valid(COALESCE($expected, $expect::status))
           THEN status IN (SELECT value FROM json_each(COALESCE($expected, $expect::status)))
           ELSE status = COALESCE($expected, $expect::status) END
  AND (EXISTS (SELECT 1 FROM run_edges
               WHERE from_status = run_rows.status AND to_status = $to
                 AND operation = COALESCE($operation, operation))
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''
           AND $to IN (SELECT status FROM run_statuses)));

-- The event of a run's stream that says that it is over. Repeated, or of a run that has ended, it
-- changes nothing.
-- on run.cancelled
UPDATE run_rows SET
    status = 'cancelled',
    ended_at = COALESCE(annal_time($ended_at), :ts),
    review_wait_ms = review_wait_ms
        + CASE WHEN status = 'awaiting_review' AND review_ready_at IS NOT NULL
               THEN MAX(0, CAST(ROUND((annal_unix(:ts) - annal_unix(review_ready_at)) * 1000)
                                AS INTEGER))
               ELSE 0 END,
    result = COALESCE($result, $reason, result),
    updated_at = :ts
WHERE id = substr(:session, 5) AND :session GLOB 'run_?*'
  AND status IN (SELECT status FROM run_statuses WHERE NOT terminal);

-- on run.archived   guarded "the run is archived already"
UPDATE run_rows SET archived_at = COALESCE(annal_time($archived_at), :ts), updated_at = :ts
WHERE id = substr(:session, 5) AND archived_at IS NULL;

-- ==== Revisions ====

-- fill revision.recorded
SELECT (SELECT reserved FROM runs_not_begun WHERE run_id = substr(:session, 5) LIMIT 1) AS reserved,
       (SELECT COALESCE(MAX(revision_number), 0) + 1 FROM run_revisions
        WHERE run_id = substr(:session, 5)) AS revision_number,
       (SELECT tree_hash FROM run_rows WHERE id = substr(:session, 5)) AS previous_tree_hash;

-- on revision.recorded   guarded "the revision has no number of its own, or no comment"
INSERT INTO run_revisions (run_id, revision_number, reviewer_user, raw_comment, sanitized_comment,
                           previous_tree_hash, created_at)
SELECT substr(:session, 5), CAST($revision_number AS INTEGER), $reviewer_user, $raw_comment,
       COALESCE($sanitized_comment, $raw_comment), $previous_tree_hash,
       COALESCE(annal_time($created_at), :ts)
WHERE :session GLOB 'run_?*' AND $revision_number IS NOT NULL AND $raw_comment IS NOT NULL;

-- ==== Leases ====

-- fill lease.claimed   reads $project_session
SELECT (SELECT reserved FROM runs_not_begun WHERE run_id = substr(:session, 5) LIMIT 1) AS reserved,
       1 + COALESCE((SELECT fencing_token FROM run_leases WHERE run_id = substr(:session, 5)), 0)
           AS fencing_token,
       1 + COALESCE((SELECT attempt FROM run_leases WHERE run_id = substr(:session, 5)), 0)
           AS attempt;

-- on lease.claimed   guarded "somebody else holds the lease on the run, or nobody was named to get it"
INSERT INTO run_leases (run_id, owner_id, lease_expires_at, fencing_token, attempt, claimed_at)
SELECT substr(:session, 5), $owner_id,
       COALESCE(annal_time($lease_expires_at),
                strftime('%Y-%m-%dT%H:%M:%f', COALESCE(annal_time($claimed_at), :ts),
                         '+' || (annal_count($lease_ms, 60000) / 1000.0) || ' seconds') || '000Z'),
       COALESCE($fencing_token, 1 + COALESCE((SELECT fencing_token FROM run_leases
                                              WHERE run_id = substr(:session, 5)), 0)),
       COALESCE($attempt, 1), COALESCE(annal_time($claimed_at), :ts)
WHERE :session GLOB 'run_?*' AND $owner_id IS NOT NULL
ON CONFLICT (run_id) DO UPDATE SET
    owner_id = excluded.owner_id, lease_expires_at = excluded.lease_expires_at,
    fencing_token = excluded.fencing_token, attempt = excluded.attempt,
    claimed_at = excluded.claimed_at, released_at = NULL
WHERE (run_leases.owner_id IS NULL OR run_leases.lease_expires_at <= excluded.claimed_at)
  AND excluded.fencing_token = run_leases.fencing_token + 1;

-- on lease.renewed   guarded "the lease on the run is not held by this owner with this fencing token"
UPDATE run_leases SET
    lease_expires_at =
        COALESCE(annal_time($lease_expires_at),
                 strftime('%Y-%m-%dT%H:%M:%f', :ts,
                          '+' || (annal_count($lease_ms, 60000) / 1000.0) || ' seconds') || '000Z')
WHERE run_id = substr(:session, 5) AND :session GLOB 'run_?*'
  AND owner_id = $owner_id AND fencing_token = $fencing_token;

-- on lease.released   guarded "the lease on the run is not held by this owner with this fencing token"
UPDATE run_leases SET owner_id = NULL, lease_expires_at = NULL, released_at = :ts
WHERE run_id = substr(:session, 5) AND :session GLOB 'run_?*'
  AND owner_id = $owner_id AND fencing_token = $fencing_token;

-- ==== Token usage ====

-- on agent.turn.usage
INSERT OR IGNORE INTO token_usage_records (id, run_id, workflow_run_id, project_id, model_id,
                                           input_tokens, output_tokens, total_tokens,
                                           total_nano_aiu, timestamp)
SELECT substr(:session, 5) || ':' || :seq,
       CASE WHEN :session GLOB '*-rai' THEN substr(:session, 5, length(:session) - 8)
            WHEN :session GLOB '*-scribe' THEN substr(:session, 5, length(:session) - 11)
            ELSE substr(:session, 5) END,
       COALESCE($workflow_run_id, $workflowRunId,
                (SELECT workflow_run_id FROM run_rows WHERE id = substr(:session, 5))),
       COALESCE($project_id, $projectId,
                (SELECT project_id FROM run_rows WHERE id = substr(:session, 5))),
       COALESCE($modelId, $model_id),
       annal_count($inputTokens, $input_tokens), annal_count($outputTokens, $output_tokens),
       annal_count($totalTokens, $total_tokens,
                   annal_count($inputTokens, $input_tokens)
                       + annal_count($outputTokens, $output_tokens)),
       annal_count($totalNanoAiu, $total_nano_aiu),
       COALESCE(annal_time($timestamp), :ts)
WHERE :session GLOB 'run_?*' AND COALESCE($modelId, $model_id, '') <> '';

-- ==== Backlog ====

-- fill backlog.captured
SELECT 't' || CASE WHEN NOT EXISTS (SELECT 1 FROM backlog_tasks
                                    WHERE project_id = p.id AND id = 't' || p.next_task)
                   THEN p.next_task
                   ELSE (SELECT 1 + MAX(CAST(substr(id, 2) AS INTEGER)) FROM backlog_tasks
                         WHERE project_id = p.id AND id GLOB 't[0-9]*') END AS task_id,
       CASE WHEN $requested_key IS NULL THEN
           (SELECT stem || printf('%010d', number + 1000) FROM backlog_ends
            WHERE project_id = p.id AND state = 'backlog')
       ELSE
           (SELECT k FROM (SELECT 0 AS n, '' || $requested_key AS k
                           UNION ALL SELECT 1, $requested_key || 'n'
                           UNION ALL SELECT 2, $requested_key || 'nn'
                           UNION ALL SELECT 3, $requested_key || 'nnn'
                           UNION ALL SELECT 4, $requested_key || 'nnnn'
                           UNION ALL SELECT 5, $requested_key || 'nnnnn')
            WHERE NOT EXISTS (SELECT 1 FROM backlog_order o
                              WHERE o.project_id = p.id AND o.state = 'backlog'
                                AND o.order_key = k)
            ORDER BY n LIMIT 1) END AS order_key
FROM projects p WHERE p.id = substr(:session, 6);

-- on backlog.captured   guarded "there is no such project, or it is being deleted"
UPDATE projects SET next_task = next_task + 1
WHERE id = substr(:session, 6) AND :session GLOB 'proj_?*' AND state = 'active';

-- on backlog.captured   guarded "the task has no title, or its id or its order key is taken"
INSERT INTO backlog_tasks (project_id, id, title, description, state, order_key, overrides,
                           created_by, created_at, updated_at)
SELECT p.id, $task_id, $title, $description, 'backlog', '' || $order_key, $overrides, $created_by,
       COALESCE(annal_time($created_at), :ts), :ts
FROM projects p
WHERE p.id = substr(:session, 6) AND :session GLOB 'proj_?*' AND p.state = 'active'
  AND COALESCE($title, '') <> '';

-- on backlog.edited   guarded "there is no such task in the backlog"
UPDATE backlog_tasks SET
    title = COALESCE($set::title, $title, title),
    description = COALESCE($set::description, $description, description),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND archived_at IS NULL;

-- on backlog.override_set   guarded "there is no such task, or it is claimed already"
UPDATE backlog_tasks SET overrides = $overrides, updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND archived_at IS NULL AND state IN ('backlog', 'ready');

-- fill backlog.committed
SELECT stem || printf('%010d', number + 1000) AS order_key FROM backlog_ends
WHERE project_id = substr(:session, 6) AND state = 'ready';

-- on backlog.committed   guarded "the task is not in the backlog, or its order key is taken"
UPDATE backlog_tasks SET
    state = 'ready', order_key = '' || COALESCE($order_key, order_key),
    committed_at = COALESCE(annal_time($committed_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state = 'backlog' AND archived_at IS NULL;

-- Items are [{task_id, order_key}]. Whoever gives task_ids gets them put behind what is ready, in
-- the order that they had.
-- fill backlog.bulk_committed
SELECT (SELECT json_group_array(json_object('task_id', id, 'order_key',
                   e.stem || printf('%010d', e.number + 1000 * place)))
        FROM (SELECT t.id, ROW_NUMBER() OVER (ORDER BY t.order_key IS NULL, t.order_key, j.key)
                               AS place
              FROM (SELECT key, value AS id FROM json_each($task_ids)) j
                   LEFT JOIN backlog_tasks t
                       ON t.project_id = substr(:session, 6) AND t.id = j.id
              ORDER BY place)) AS items
FROM backlog_ends e
WHERE e.project_id = substr(:session, 6) AND e.state = 'ready' AND json_valid($task_ids);

-- on backlog.bulk_committed   guarded "not all of these tasks are in the backlog, or an order key is taken"
UPDATE backlog_tasks SET
    state = 'ready',
    order_key = (SELECT '' || (value ->> 'order_key') FROM json_each($items)
                 WHERE value ->> 'task_id' = backlog_tasks.id),
    committed_at = COALESCE(annal_time($committed_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*'
  AND id IN (SELECT value ->> 'task_id' FROM json_each($items))
  AND (SELECT COUNT(*) FROM backlog_tasks t
       WHERE t.project_id = substr(:session, 6) AND t.state = 'backlog' AND t.archived_at IS NULL
         AND t.id IN (SELECT value ->> 'task_id' FROM json_each($items)))
      = (SELECT COUNT(*) FROM json_each($items));

-- fill backlog.returned
SELECT stem || printf('%010d', number + 1000) AS order_key FROM backlog_ends
WHERE project_id = substr(:session, 6) AND state = 'backlog';

-- on backlog.returned   guarded "the task is not ready, or its order key is taken"
UPDATE backlog_tasks SET
    state = 'backlog', order_key = '' || COALESCE($order_key, order_key), committed_at = NULL,
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state = 'ready' AND run_id IS NULL AND archived_at IS NULL;

-- Behind the task $after, or at $requested_key or a little behind it.
-- fill backlog.reordered
SELECT (SELECT k FROM (SELECT 0 AS n, '' || $requested_key AS k
                       UNION ALL SELECT 1, w.base || 'n'
                       UNION ALL SELECT 2, w.base || CASE WHEN $after IS NULL THEN 'nn' ELSE 'g' END
                       UNION ALL SELECT 3, w.base || CASE WHEN $after IS NULL THEN 'nnn' ELSE 'd' END
                       UNION ALL SELECT 4, w.base || CASE WHEN $after IS NULL THEN 'nnnn' ELSE 'b' END
                       UNION ALL SELECT 5, w.base || CASE WHEN $after IS NULL THEN 'nnnnn' ELSE 'an' END)
        WHERE k IS NOT NULL
          AND ($after IS NULL
               OR k < COALESCE((SELECT MIN(o.order_key) FROM backlog_order o
                                WHERE o.project_id = w.project_id AND o.state = w.state
                                  AND o.order_key > w.base AND o.id <> w.id), k || 'n'))
          AND NOT EXISTS (SELECT 1 FROM backlog_order o
                          WHERE o.project_id = w.project_id AND o.state = w.state
                            AND o.order_key = k AND o.id <> w.id)
        ORDER BY n LIMIT 1) AS order_key
FROM (SELECT t.project_id, t.state, t.id,
             COALESCE('' || $requested_key,
                      (SELECT a.order_key FROM backlog_order a
                       WHERE a.project_id = t.project_id AND a.state = t.state AND a.id = $after))
                 AS base
      FROM backlog_tasks t WHERE t.project_id = substr(:session, 6) AND t.id = $task_id) w;

-- on backlog.reordered   guarded "the task is not where it was expected, or there is no free order key there"
UPDATE backlog_tasks SET order_key = '' || $order_key, updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state = COALESCE($expected, $expect::state, state) AND state IN ('backlog', 'ready')
  AND run_id IS NULL AND archived_at IS NULL AND $order_key IS NOT NULL;

-- The task that stands first when none is named; the run gets a name when it has none.
-- fill backlog.claimed
SELECT w.task_id, w.run_id AS "run::id",
       CASE WHEN EXISTS (SELECT 1 FROM run_rows r WHERE r.id = w.run_id)
                 OR EXISTS (SELECT 1 FROM run_reservations b WHERE b.run_id = w.run_id)
            THEN 1 END AS run_taken
FROM (SELECT task_id, COALESCE($run::id, substr(:session, 6) || '-' || task_id) AS run_id
      FROM (SELECT COALESCE($task_id,
                            (SELECT id FROM backlog_tasks
                             WHERE project_id = substr(:session, 6) AND state = 'ready'
                               AND state IN ('backlog', 'ready') AND archived_at IS NULL
                             ORDER BY order_key LIMIT 1)) AS task_id)) w;

-- on backlog.claimed   guarded "there is no such project, or it is being deleted"
UPDATE projects SET id = id
WHERE id = substr(:session, 6) AND :session GLOB 'proj_?*' AND state = 'active';

-- on backlog.claimed   guarded "there is a run of that name already"
UPDATE projects SET id = id
WHERE id = substr(:session, 6) AND :session GLOB 'proj_?*' AND $run_taken IS NULL
  AND NOT EXISTS (SELECT 1 FROM run_reservations
                  WHERE project_id = substr(:session, 6) AND run_id = $run::id);

-- on backlog.claimed   guarded "the task is not ready, or another run has claimed it"
UPDATE backlog_tasks SET
    state = 'claimed', run_id = $run::id, claimed_at = COALESCE(annal_time($claimed_at), :ts),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state = 'ready' AND run_id IS NULL AND archived_at IS NULL
  AND $run::id IS NOT NULL AND $run_taken IS NULL
  AND EXISTS (SELECT 1 FROM projects WHERE id = substr(:session, 6) AND state = 'active');
INSERT INTO run_reservations (project_id, run_id, task_id, workflow_run_id, parent_run_id,
                              subtask_id, retried_from, origin, task, agent_name, model_id,
                              provider, submitting_user, originating_branch, worktree_path,
                              worktree_branch, reserved_at)
SELECT t.project_id, t.run_id, t.id, $run::workflow_run_id, $run::parent_run_id, $run::subtask_id,
       $run::retried_from, COALESCE($origin, $run::origin, 'backlog_pickup'),
       COALESCE($run::task, $run::prompt, t.title), $run::agent_name,
       COALESCE($run::model_id, $run::model), $run::provider, $run::submitting_user,
       $run::originating_branch, $run::worktree_path, $run::worktree_branch, t.claimed_at
FROM backlog_tasks t
WHERE t.project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND t.id = $task_id
  AND t.run_id = $run::id
ON CONFLICT (project_id, run_id) DO NOTHING;

-- on backlog.archived   guarded "there is no such task, or it is archived already"
UPDATE backlog_tasks SET archived_at = COALESCE(annal_time($archived_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND archived_at IS NULL;
UPDATE run_reservations SET archived_at = COALESCE(annal_time($archived_at), :ts)
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND task_id = $task_id
  AND archived_at IS NULL;

-- on backlog.deleted   guarded "there is no such task, or a run has claimed it"
DELETE FROM backlog_tasks
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state IN ('backlog', 'ready') AND run_id IS NULL;

-- ==== A journal is gone ====

-- forget
DELETE FROM projects WHERE :session GLOB 'proj_?*' AND id = substr(:session, 6);
DELETE FROM backlog_tasks WHERE :session GLOB 'proj_?*' AND project_id = substr(:session, 6);
DELETE FROM cast_proposals WHERE :session GLOB 'proj_?*' AND project_id = substr(:session, 6);
DELETE FROM run_reservations WHERE :session GLOB 'proj_?*' AND project_id = substr(:session, 6);
DELETE FROM workflow_runs WHERE :session GLOB 'wf_?*' AND id = substr(:session, 4);
DELETE FROM workflow_checkpoints WHERE session_id = :session;
DELETE FROM run_rows WHERE :session GLOB 'run_?*' AND id = substr(:session, 5);
DELETE FROM run_leases WHERE :session GLOB 'run_?*' AND run_id = substr(:session, 5);
DELETE FROM token_usage_records WHERE id GLOB substr(:session, 5) || ':*' AND :session GLOB 'run_?*';
INSERT INTO runs_forgotten (run_id) SELECT substr(:session, 5) WHERE :session GLOB 'run_?*';
DELETE FROM run_revisions WHERE :session GLOB 'run_?*' AND run_id = substr(:session, 5);
DELETE FROM runs_forgotten;

-- ---- Verbs ----

-- noun project   "workspaces with their settings (agentweaver)"

-- verb project create   appends project.created   session proj_{PROJECT}   "begin a project"
--   PROJECT          text                    "the project"
--   --name NAME      text name               "what people call it"
--   --location DIR   text location           "its workspace"
--   --branch NAME    text default_branch     "its default branch"
--   --owner NAME     text owner              "who owns it"
--   --model MODEL    text model              "that its runs use by default"
--   --provider NAME  text provider           "that its runs use by default"
--   --workflow NAME  list allowed_workflows  "that may be run in it; repeat"
--   --sandbox JSON   json sandbox_policy     "its sandbox policy"
--   --review JSON    json review_policy      "its review policy"
--   --settings JSON  json settings           "everything else"
--   says     project {PROJECT} is there
--   about    A project is a workspace with its settings; it has a backlog, decisions and
--            what its agents remember. Its history is the session proj_PROJECT.
--   example  annal project create shop --name "The shop" --location ~/shop --branch main

-- verb project configure   appends project.configured   session proj_{PROJECT}
--      "change settings of a project"
--   PROJECT          text                    "the project"
--   --name NAME      text name               "what people call it"
--   --location DIR   text location           "its workspace"
--   --branch NAME    text default_branch     "its default branch"
--   --owner NAME     text owner              "who owns it"
--   --model MODEL    text model              "that its runs use by default"
--   --provider NAME  text provider           "that its runs use by default"
--   --workflow NAME  list allowed_workflows  "that may be run in it; repeat"
--   --sandbox JSON   json sandbox_policy     "its sandbox policy"
--   --review JSON    json review_policy      "its review policy"
--   --settings JSON  json settings           "everything else"
--   says     project {PROJECT} is changed
--   about    What is not named stays as it is.
--   example  annal project configure shop --model gpt-5 --workflow review --workflow fix

-- verb project retire   appends project.delete_begun   session proj_{PROJECT}
--      "begin to delete a project: no more runs and tasks"
--   PROJECT   text  "the project"
--   says     project {PROJECT} takes no more runs and tasks
--   about    The first half of deleting it: runs that are under way may end.
--   example  annal project retire shop

-- verb project delete   appends project.deleted   session proj_{PROJECT}
--      "delete a project, with its backlog, decisions and memory"
--   PROJECT   text  "the project"
--   says     project {PROJECT} is deleted
--   about    Its rows leave the tables; its journal keeps what happened. Its runs stay.
--   example  annal project delete shop

-- verb project ls   selects   "list the projects"
--   about    With the number of their open tasks and of their runs that are under way.
--   example  annal project ls
SELECT p.id, p.name, p.state, p.location, p.default_branch,
       (SELECT count(*) FROM agentweaver.backlog_tasks t
        WHERE t.project_id = p.id AND t.archived_at IS NULL AND t.run_id IS NULL) AS tasks,
       (SELECT count(*) FROM agentweaver.runs r
        JOIN agentweaver.run_statuses s ON s.status = r.status
        WHERE r.project_id = p.id AND NOT s.terminal) AS open_runs
FROM agentweaver.projects p
ORDER BY p.id;

-- verb project export   runs   "write a project's memory as files, for people and agents"
--   PROJECT   text  "the project"
--   DIR       text  "the workspace that gets the files"
--   about    Writes below DIR: .squad/decisions.md, .squad/decisions/inbox/SLUG.md for
--            what is pending, .squad/agents/AGENT/history.md, .squad/identity/now.md,
--            .agentweaver/context/boundaries.md and patterns.md there. The same tables
--            give the same bytes. Files of proposals that are pending no more are
--            deleted first; nothing else is. Symbolic links below DIR are not followed:
--            one in the way is an error. The tables are what counts: files are a mirror.
--   example  annal project export shop ~/shop

-- verb project import   appends decision.proposed
--      "take proposals from files that are not in the inbox yet"
--   PROJECT   text  "the project"
--   DIR       text  "the workspace that has the files"
--   about    Reads DIR/.squad/decisions/inbox/*.md: front matter with agent, slug, type and
--            title, then the content, with what follows **Rationale:** apart. A slug that the
--            project has stays untouched; a file that cannot be read so is named and passed
--            over.
--   example  annal project import shop ~/shop

-- noun cast   "proposals for who does what (agentweaver)"

-- verb cast propose   appends cast.proposed   session proj_{PROJECT}
--      "keep a proposal for who does what"
--   PROJECT         text                "the project"
--   ID              text id             "of the proposal"
--   JSON            json proposal_json  "the proposal; @FILE and - read it"
--   --owner NAME    text owner          "who made it"
--   --expires TIME  time expires_at     "until when it holds"
--   says     proposal {ID} of project {PROJECT} is kept
--   about    A second one of the same ID takes the place of the first.
--   example  annal cast propose shop c1 '{"lead":"ada"}' --owner bob

-- verb cast ls   selects   "list the proposals of a project"
--   PROJECT   text  "the project"
--   about    By their id.
--   example  annal cast ls shop
SELECT id, owner, expires_at, proposal_json
FROM agentweaver.cast_proposals
WHERE project_id = ?1
ORDER BY id;

-- noun workflow   "jobs of several runs (agentweaver)"

-- verb workflow create   appends workflow_run.created   session wf_{WORKFLOW}
--      "begin a workflow run, the envelope of a job"
--   WORKFLOW           text                  "the workflow run"
--   --project PROJECT  text project_id       "that it works for"
--   --task TEXT        body task             "what is to be done"
--   --user NAME        text submitting_user  "who asked for it"
--   says     workflow run {WORKFLOW} is there
--   about    It may have one or many runs. Its history is the session wf_WORKFLOW.
--   example  annal workflow create w1 --project shop --task "add a cart" --user bob

-- verb workflow worktree   appends workflow_run.worktree_set   session wf_{WORKFLOW}
--      "say which worktree its runs share"
--   WORKFLOW  text                  "the workflow run"
--   PATH      text worktree_path    "the shared worktree"
--   [BRANCH]  text worktree_branch  "its branch"
--   says     workflow run {WORKFLOW} works in {PATH}
--   about    The first one stays: another path is refused.
--   example  annal workflow worktree w1 /tmp/w1 squad/w1

-- verb workflow checkpoint   appends checkpoint.saved   session wf_{WORKFLOW}
--      "keep a checkpoint of a workflow run"
--   WORKFLOW           text                       "the workflow run"
--   ID                 text checkpoint_id         "of the checkpoint"
--   JSON               json payload               "what it holds; @FILE and - read it"
--   --store-name NAME  text store_name            "which series of them (default)"
--   --parent ID        text parent_checkpoint_id  "the one before"
--   says     checkpoint {ID} of workflow run {WORKFLOW} is kept
--   about    Large ones go to artifacts/. A checkpoint's id is given once in its series.
--   example  annal workflow checkpoint w1 step-3 @state.json --parent step-2

-- verb workflow ls   selects   "list workflow runs"
--   [PROJECT]  text  "the project (all)"
--   about    With the number of their runs.
--   example  annal workflow ls shop
SELECT w.id, w.project_id, w.task, w.worktree_path, w.created_at,
       (SELECT count(*) FROM agentweaver.runs r WHERE r.workflow_run_id = w.id) AS runs
FROM agentweaver.workflow_runs w
WHERE ?1 IS NULL OR w.project_id = ?1
ORDER BY w.created_at, w.id;

-- noun run   "executions of an agent (agentweaver)"

-- verb run create   appends run.created   session run_{RUN}
--      "begin a run, one execution of an agent"
--   RUN                text                     "the run"
--   --project PROJECT  text project_id          "that it works for"
--   --task TEXT        body task                "what it is to do"
--   --workflow ID      text workflow_run_id     "the workflow run it belongs to"
--   --shared           flag shared_worktree     "works in the worktree of its workflow run"
--   --parent RUN       text parent_run_id       "the run that began it"
--   --subtask ID       text subtask_id          "the subtask it works on"
--   --retry-of RUN     text retried_from        "the run it is a new try of"
--   --agent NAME       text agent_name          "who works"
--   --model MODEL      text model_id            "with which model"
--   --provider NAME    text provider            "of the model"
--   --user NAME        text submitting_user     "who asked for it"
--   --branch NAME      text originating_branch  "where its worktree begins"
--   says     run {RUN} is pending
--   about    It is pending until run start. Its history is the session run_RUN. A run for a
--            task of the backlog is made by annal backlog claim.
--   example  annal run create r1 --project shop --task "add a cart" --user bob

-- verb run worktree   appends run.worktree_set   session run_{RUN}
--      "say where a run works, before it works"
--   RUN        text                  "the run"
--   PATH       text worktree_path    "where it works"
--   BRANCH     text worktree_branch  "the branch there"
--   --token N  number fencing_token  "refused unless it is the last lease's"
--   says     run {RUN} works in {PATH}
--   about    So that a restart can find or make anew what it works in. The first one stays:
--            the same again changes nothing, another is refused.
--   example  annal run worktree r1 /tmp/r1 squad/r1

-- verb run start   appends run.started   session run_{RUN}   "a pending run begins to work"
--   RUN            text                  "the run"
--   --path PATH    text worktree_path    "its worktree, when not set yet"
--   --branch NAME  text worktree_branch  "its branch, when not set yet"
--   --token N      number fencing_token  "refused unless it is the last lease's"
--   says     run {RUN} is in progress
--   about    Refused as long as its worktree is not known.
--   example  annal run start r1

-- verb run review-ready   appends run.review_ready   session run_{RUN}
--      "what a run made can be reviewed"
--   RUN               text                  "the run"
--   --tree HASH       text tree_hash        "the tree that it produced"
--   --diff TEXT       body diff             "what it changed; - reads standard input"
--   --diff-file FILE  file diff             "the same, from a file"
--   --token N         number fencing_token  "refused unless it is the last lease's"
--   says     run {RUN} awaits review
--   about    From any status that is not terminal. Another tree than before takes approval
--            and reviewer away. A diff of more than 100 KB goes to artifacts/.
--   example  git diff main | annal run review-ready r1 --tree 4b825dc --diff -

-- verb run approve   appends run.approved   session run_{RUN}   "approve one tree of a run"
--   RUN              text                     "the run"
--   --tree HASH      text tree_hash required  "the tree that was looked at"
--   --reviewer NAME  text reviewer            "who approves"
--   says     tree {tree_hash} of run {RUN} is approved
--   about    Refused unless that tree awaits review. No other one can be merged then.
--   example  annal run approve r1 --tree 4b825dc --reviewer bob

-- verb run transition   appends run.transition   session run_{RUN}
--      "change the status of a run, as the table run_edges allows"
--   RUN               text                     "the run"
--   STATUS            text to                  "the new status"
--   --expect STATUS   list expected            "refused unless it is that now; repeat"
--   --operation NAME  text operation           "that must allow it, of run_edges"
--   --result TEXT     body result              "what came of it"
--   --reviewer NAME   text reviewer            "who decided"
--   --tree HASH       text tree_hash           "the tree it is about"
--   --conflict FILE   list conflicts           "a file that does not merge; repeat"
--   --commit HASH     text merged_commit_hash  "the commit of the merge"
--   --override        flag override            "although the edges do not allow it"
--   --reason TEXT     text reason              "why; an override needs one"
--   --token N         number fencing_token     "refused unless it is the last lease's"
--   says     run {RUN} is {STATUS}
--   about    Compare and set: refused unless the status is one of --expect, and unless an
--            edge leads from there to STATUS. Only --override with a reason, which stays in
--            the run's row, leaves a terminal status or merges a tree that nobody
--            approved.
--   example  annal run transition r1 declined --expect awaiting_review --reviewer bob
--            annal run transition r1 merged --expect merging --commit 1f2e3d
--            annal run transition r1 awaiting_review --override --reason "try again"

-- verb run merge   appends run.transition   session run_{RUN}
--      "begin to merge a run that was reviewed"
--   RUN              text                  "the run"
--   --tree HASH      text tree_hash        "refused unless it is the approved one"
--   --reviewer NAME  text reviewer         "refused unless it is who approved"
--   --token N        number fencing_token  "refused unless it is the last lease's"
--   to = "merging"
--   expected = ["awaiting_review","committing"]
--   says     run {RUN} is merging
--   about    Refused unless the tree that the run has is approved, and is --tree. One of
--            those who try wins. Then do the merge, and end with annal run transition RUN
--            merged or merge_failed. What nobody approved needs annal run transition with
--            --override.
--   example  annal run merge r1 --tree 4b825dc --reviewer bob

-- verb run archive   appends run.archived   session run_{RUN}   "put a run aside"
--   RUN       text  "the run"
--   says     run {RUN} is archived
--   about    Its rows and its history stay.
--   example  annal run archive r1

-- verb run close   appends stream.closed   session run_{RUN}
--      "end the stream of a run: no more events"
--   RUN            text         "the run"
--   --reason TEXT  text reason  "why"
--   says     the stream of run {RUN} is closed
--   about    A terminal event only tells tails to stop; this is what refuses more events.
--   example  annal run close r1 --reason "nothing comes after this"

-- verb run recover   appends run.transition
--      "runs that a restart cut off while merging await review again"
--   --project PROJECT  text  "only of this project"
--   --status STATUS    text  "only in this status"
--   --open             flag  "only those that have not ended"
--   about    Those that are committing or merging: for each one run.transition, guarded by
--            the status that it was seen in.
--   example  annal run recover --project shop

-- verb run ls   selects   "list runs"
--   --project PROJECT  text  "only of this project"
--   --status STATUS    text  "only in this status"
--   --open             flag  "only those that have not ended"
--   about    Those that were archived are left out.
--   example  annal run ls --project shop --open
SELECT id, project_id, status, origin, task, agent_name, worktree_path, worktree_branch, tree_hash
FROM agentweaver.runs
WHERE archived_at IS NULL
  AND (?1 IS NULL OR project_id = ?1)
  AND (?2 IS NULL OR status = ?2)
  AND (?3 IS NULL OR status IN (SELECT status FROM agentweaver.run_statuses WHERE NOT terminal))
ORDER BY created_at, id;

-- verb run show   selects   "one run"
--   RUN       text  "the run"
--   about    Its row, and the totals of its tokens.
--   example  annal run show r1 --json
SELECT r.*,
       (SELECT total_tokens FROM agentweaver.token_usage_by_run u
        WHERE u.run_id = r.id) AS total_tokens
FROM agentweaver.runs r
WHERE r.id = ?1;

-- verb run tail   runs   "replay a run's events, then follow it until it ends"
--   RUN         text    "the run"
--   --from SEQ  number  "begin with event SEQ (1)"
--   --all       flag    "history to its end, and do not wait"
--   about    Every event once, in order: those from --from on, then each new one once it is
--            durable, whichever process appends it. It stops behind an event that ends the
--            run (run.completed, run.failed, run.cancelled, run.assemble_ready,
--            merge.completed, merge.failed, review.declined, a run.transition to a terminal
--            status, stream.closed) when nothing stands behind it. With --all it prints what
--            is there, also behind such an event, and does not wait.
--   example  annal run tail r1 --from 17

-- noun backlog   "tasks of a project, in their order (agentweaver)"

-- verb backlog add   appends backlog.captured   session proj_{PROJECT}
--      "put a task into the backlog of a project"
--   PROJECT             text                "the project"
--   TITLE               text title          "what is to be done, in a line"
--   --description TEXT  body description    "more of it"
--   --id TASK           text task_id        "its id (the next t1, t2, …)"
--   --by NAME           text created_by     "who asks for it"
--   --key KEY           text order_key      "its order key; refused if it is taken"
--   --wish KEY          text requested_key  "or the next free one behind KEY"
--   says     task {task_id} is in the backlog of {PROJECT}
--   about    Tasks have an order key, which no other task in the same state has. Without one
--            it goes to the end.
--   example  annal backlog add shop "Add a cart" --by ada

-- verb backlog edit   appends backlog.edited   session proj_{PROJECT}
--      "change the words of a task"
--   PROJECT             text              "the project"
--   TASK                text task_id      "the task"
--   --title TEXT        text title        "another title"
--   --description TEXT  body description  "another description"
--   says     task {TASK} is changed
--   about    What is not named stays as it is.
--   example  annal backlog edit shop t1 --title "Add a cart that remembers"

-- verb backlog override   appends backlog.override_set   session proj_{PROJECT}
--      "settings for the run that will do a task"
--   PROJECT   text            "the project"
--   TASK      text task_id    "the task"
--   JSON      json overrides  "settings for its run"
--   says     task {TASK} has settings of its own
--   about    As long as no run has claimed it.
--   example  annal backlog override shop t1 '{"model":"gpt-5"}'

-- verb backlog commit   appends backlog.committed   session proj_{PROJECT}
--      "a task is ready to be claimed"
--   PROJECT    text            "the project"
--   TASK       text task_id    "the task"
--   --key KEY  text order_key  "its order key; refused if it is taken"
--   says     task {TASK} is ready
--   about    It goes behind those that are ready, or where --key says.
--   example  annal backlog commit shop t1

-- verb backlog commit-all   appends backlog.bulk_committed   session proj_{PROJECT}
--      "several tasks are ready, all or none"
--   PROJECT   text           "the project"
--   TASK      list task_ids  "the tasks"
--   says     the tasks are ready
--   about    They go behind those that are ready, in the order that they had.
--   example  annal backlog commit-all shop t1 t2 t3

-- verb backlog return   appends backlog.returned   session proj_{PROJECT}
--      "a task is not ready after all"
--   PROJECT    text            "the project"
--   TASK       text task_id    "the task"
--   --key KEY  text order_key  "its order key; refused if it is taken"
--   says     task {TASK} is in the backlog again
--   about    It goes to the end of the backlog, or where --key says.
--   example  annal backlog return shop t1

-- verb backlog move   appends backlog.reordered   session proj_{PROJECT}
--      "give a task another place"
--   PROJECT       text                "the project"
--   TASK          text task_id        "the task"
--   --key KEY     text order_key      "its order key; refused if it is taken"
--   --wish KEY    text requested_key  "or the next free one behind KEY"
--   --after TASK  text after          "behind that task"
--   says     task {TASK} has order key {order_key}
--   about    With --wish, a key that is taken gives the next greater free one; five tries.
--   example  annal backlog move shop t3 --after t1

-- verb backlog claim   appends backlog.claimed   session proj_{PROJECT}
--      "take a task and reserve its run, in one event"
--   PROJECT        text                         "the project"
--   [TASK]         text task_id                 "the task (the first that is ready)"
--   --run RUN      text run.id                  "the id of its run (PROJECT-TASK)"
--   --prompt TEXT  body run.task                "what the run is to do (the title)"
--   --agent NAME   text run.agent_name          "who works"
--   --model MODEL  text run.model_id            "with which model"
--   --user NAME    text run.submitting_user     "who asked for it"
--   --branch NAME  text run.originating_branch  "where its worktree begins"
--   says     task {task_id} is claimed by run {run.id}
--   about    The task must be ready. One of those who try gets it; the others are refused,
--            and nothing of theirs is there. The run is in progress at once; annal run
--            worktree goes on from there.
--   example  annal backlog claim shop --user worker-7 --json
--            annal backlog claim shop t1 --run r1

-- verb backlog archive   appends backlog.archived   session proj_{PROJECT}
--      "put a task aside, and its run with it"
--   PROJECT   text          "the project"
--   TASK      text task_id  "the task"
--   says     task {TASK} is archived
--   about    Its order key is free then.
--   example  annal backlog archive shop t1

-- verb backlog delete   appends backlog.deleted   session proj_{PROJECT}
--      "delete a task that no run has claimed"
--   PROJECT   text          "the project"
--   TASK      text task_id  "the task"
--   says     task {TASK} is deleted
--   about    The journal keeps that it was there.
--   example  annal backlog delete shop t1

-- verb backlog ls   selects   "list the tasks of a project, in their order"
--   PROJECT        text  "the project"
--   --state STATE  text  "backlog, ready or claimed (all)"
--   about    Those that were archived are left out.
--   example  annal backlog ls shop --state ready
SELECT id, state, order_key, title, run_id
FROM agentweaver.backlog_tasks
WHERE project_id = ?1 AND archived_at IS NULL AND (?2 IS NULL OR state = ?2)
ORDER BY CASE state WHEN 'ready' THEN 0 WHEN 'backlog' THEN 1 ELSE 2 END, order_key;

-- noun revision   "feedback to runs, append-only (agentweaver)"

-- verb revision record   appends revision.recorded   session run_{RUN}
--      "write down feedback to a run, for ever"
--   RUN               text                    "the run"
--   COMMENT           body raw_comment        "what is to be changed; - reads standard input"
--   --reviewer NAME   text reviewer_user      "who says so"
--   --sanitized TEXT  text sanitized_comment  "as an agent may read it"
--   --number N        number revision_number  "which one (the next)"
--   says     revision {revision_number} of run {RUN} is recorded
--   about    Revisions are only added: no event changes or deletes one. To send the run back
--            to work, follow with annal run transition RUN in_progress.
--   example  annal revision record r1 "the cart forgets its items" --reviewer bob

-- verb revision ls   selects   "list the revisions of a run"
--   RUN       text  "the run"
--   about    In their order.
--   example  annal revision ls r1
SELECT revision_number, reviewer_user, sanitized_comment, previous_tree_hash, created_at
FROM agentweaver.run_revisions
WHERE run_id = ?1
ORDER BY revision_number;

-- noun lease   "one worker per run, with fencing tokens (agentweaver)"

-- verb lease claim   appends lease.claimed   session run_{RUN}   "be the one that executes a run"
--   RUN       text             "the run"
--   OWNER     text owner_id    "who holds it"
--   --for MS  number lease_ms  "for so many milliseconds (60000)"
--   says     {OWNER} holds run {RUN} with token {fencing_token}
--   about    Refused while another holds it. The answer's fencing token is one more than the
--            last; events that carry an older one (--token) are refused from then on.
--   example  annal lease claim r1 worker-7 --for 30000 --json

-- verb lease renew   appends lease.renewed   session run_{RUN}   "hold a run longer"
--   RUN       text                  "the run"
--   OWNER     text owner_id         "who holds it"
--   TOKEN     number fencing_token  "that claiming it gave"
--   --for MS  number lease_ms       "for so many milliseconds (60000)"
--   says     {OWNER} holds run {RUN} longer
--   about    Refused when somebody else has claimed it meanwhile.
--   example  annal lease renew r1 worker-7 3

-- verb lease release   appends lease.released   session run_{RUN}   "let others execute a run"
--   RUN       text                  "the run"
--   OWNER     text owner_id         "who holds it"
--   TOKEN     number fencing_token  "that claiming it gave"
--   says     run {RUN} is free
--   about    Its token stays used: the next claim gets a greater one.
--   example  annal lease release r1 worker-7 3

-- verb lease show   selects   "who executes a run"
--   RUN       text  "the run"
--   about    Empty when nobody ever did.
--   example  annal lease show r1
SELECT * FROM agentweaver.run_leases WHERE run_id = ?1;

-- noun usage   "tokens that runs used (agentweaver)"

-- verb usage record   appends agent.turn.usage   session run_{RUN}
--      "write down what a turn of a run used"
--   RUN           text                 "the run"
--   MODEL         text modelId         "that was asked"
--   --input N     number inputTokens   "tokens that went in"
--   --output N    number outputTokens  "tokens that came out"
--   --total N     number totalTokens   "both (their sum)"
--   --nano-aiu N  number totalNanoAiu  "what it cost"
--   says     usage of run {RUN} is recorded
--   about    One agent.turn.usage event. Without a model it would not be counted.
--   example  annal usage record r1 gpt-5 --input 1200 --output 85

-- verb usage totals   selects   "tokens by run, workflow, project, model or hour, or of all"
--   --by WHAT     text = "run" (run|workflow|project|model|hour|app)
--                 "run, workflow, project, model, hour or app (run)"
--   --since TIME  time                                  "only from then on"
--   --until TIME  time                                  "only before then"
--   about    Of all time, or of a window of time. The total of the application, --by app,
--            is that of its projects: usage without a project is not in it.
--   example  annal usage totals --by project --since 7d
SELECT CASE ?1 WHEN 'run' THEN run_id
               WHEN 'workflow' THEN workflow_run_id
               WHEN 'project' THEN project_id
               WHEN 'model' THEN model_id
               WHEN 'hour' THEN substr(timestamp, 1, 13)
               ELSE 'app' END AS id,
       count(*) AS records, count(DISTINCT run_id) AS runs,
       sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
       sum(total_tokens) AS total_tokens, sum(total_nano_aiu) AS total_nano_aiu
FROM agentweaver.token_usage
WHERE (?2 IS NULL OR timestamp >= ?2)
  AND (?3 IS NULL OR timestamp < ?3)
  AND (?1 <> 'app' OR project_id IS NOT NULL)
GROUP BY 1
ORDER BY 1;
