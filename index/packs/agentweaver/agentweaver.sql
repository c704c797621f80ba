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
