-- SPDX-License-Identifier: Apache-2.0
-- ==== Projects ====

-- on project.created   guarded "the session is not named proj_<project>, or the project exists already"
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

-- on workflow_run.created   guarded "the session is not named wf_<workflow run>, or the workflow run exists already"
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

-- on checkpoint.saved   guarded "the checkpoint has no id, or exists already"
INSERT INTO workflow_checkpoints (store_name, session_id, checkpoint_id, parent_checkpoint_id,
                                  payload, payload_ref, created_at)
SELECT COALESCE($store_name, 'default'), :session, $checkpoint_id,
       COALESCE($parent_checkpoint_id, $parent), $payload, $payload_ref,
       COALESCE(annal_time($created_at), :ts)
WHERE $checkpoint_id IS NOT NULL;
