-- SPDX-License-Identifier: Apache-2.0
-- ==== Runs ====

-- A child of a coordinator with shared_worktree works in the worktree of its workflow run.
-- fill run.created   reads $project_session, proj_$project_id
SELECT CASE WHEN $project_id IS NOT NULL
            THEN COALESCE((SELECT state FROM projects WHERE id = $project_id), 'missing')
            END AS project_state,
       (SELECT 1 FROM run_reservations WHERE run_id = substr(:session, 5) LIMIT 1)
           AS reserved_already,
       (SELECT worktree_path FROM workflow_runs
        WHERE id = $workflow_run_id AND $shared_worktree) AS worktree_path,
       (SELECT worktree_branch FROM workflow_runs
        WHERE id = $workflow_run_id AND $shared_worktree) AS worktree_branch;

-- on run.created   guarded "the project of the run does not exist, or is being deleted"
UPDATE run_gate SET id = id WHERE COALESCE($project_state, 'active') = 'active';

-- on run.created   guarded "the session is not named run_<run>, or the run exists already"
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

-- The guards read project_session (proj_<project>) first: after a crash of a writer its tables may
-- lag behind its journal.
-- fill run.worktree_set, run.started   reads $project_session
SELECT (SELECT reserved FROM runs_not_begun WHERE run_id = substr(:session, 5) LIMIT 1) AS reserved;

-- fill run.review_ready, run.transition, run.cancelled, run.approved, run.archived
SELECT (SELECT reserved FROM runs_not_begun WHERE run_id = substr(:session, 5) LIMIT 1) AS reserved;

-- A run that its project reserved begins its own history.
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

-- Other kinds of runs (in a session with another name) may start and change, too; they do not
-- belong to this pack.
-- on run.started, run.transition   guarded "there is no such run"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*' OR EXISTS (SELECT 1 FROM run_rows WHERE id = substr(:session, 5));

-- on run.worktree_set, run.started, run.review_ready, run.transition   guarded "another worker holds the run: the fencing token is out of date"
UPDATE run_gate SET id = id
WHERE $fencing_token IS NULL
   OR $fencing_token = (SELECT fencing_token FROM run_leases WHERE run_id = substr(:session, 5));

-- on run.worktree_set   guarded "the run has another worktree, or none was given"
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

-- on run.started   guarded "the worktree of a run must be known before it starts: its path and branch, which cannot change"
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

-- on run.transition   guarded "the status of the run differs from the expected status"
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

-- on run.transition   guarded "another reviewer approved the tree"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR ($to IS NOT 'merging' AND $to IS NOT 'merged')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '')
   OR EXISTS (SELECT 1 FROM run_rows
              WHERE id = substr(:session, 5) AND COALESCE($reviewer, approved_by) IS approved_by);

-- on run.transition   guarded "another tree was approved"
UPDATE run_gate SET id = id
WHERE :session NOT GLOB 'run_?*'
   OR ($to IS NOT 'merging' AND $to IS NOT 'merged')
   OR EXISTS (SELECT 1 FROM run_rows
              WHERE id = substr(:session, 5)
                AND COALESCE($expect::tree_hash, tree_hash) IS tree_hash
                AND (COALESCE($tree_hash, tree_hash) IS tree_hash
                  OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '')));

-- on run.transition   guarded "a run cannot change to this status; the table run_edges lists the allowed changes"
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

-- The event of a run's stream that ends it. If it is repeated, or the run has ended, it changes
-- nothing.
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

-- on revision.recorded   guarded "the revision needs an unused number and a comment"
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

-- on lease.claimed   guarded "another worker holds the lease on the run, or no owner was given"
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

-- on lease.renewed   guarded "this owner does not hold the lease on the run with this fencing token"
UPDATE run_leases SET
    lease_expires_at =
        COALESCE(annal_time($lease_expires_at),
                 strftime('%Y-%m-%dT%H:%M:%f', :ts,
                          '+' || (annal_count($lease_ms, 60000) / 1000.0) || ' seconds') || '000Z')
WHERE run_id = substr(:session, 5) AND :session GLOB 'run_?*'
  AND owner_id = $owner_id AND fencing_token = $fencing_token;

-- on lease.released   guarded "this owner does not hold the lease on the run with this fencing token"
UPDATE run_leases SET owner_id = NULL, lease_expires_at = NULL, released_at = :ts
WHERE run_id = substr(:session, 5) AND :session GLOB 'run_?*'
  AND owner_id = $owner_id AND fencing_token = $fencing_token;
