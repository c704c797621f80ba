-- SPDX-License-Identifier: Apache-2.0
-- ==== Plans ====

-- fill outcome_spec.created
SELECT 'o' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS spec_id
FROM outcome_specs WHERE workflow_run_id = substr(:session, 4) AND id GLOB 'o[0-9]*';

-- on outcome_spec.created   guarded "the session is not named wf_<workflow run>, or it has a spec with this id"
INSERT INTO outcome_specs (workflow_run_id, id, project_id, title, content, created_at, updated_at)
SELECT substr(:session, 4), $spec_id, $project_id, $title, $content,
       COALESCE(annal_time($created_at), :ts), :ts
WHERE :session GLOB 'wf_?*' AND $spec_id <> '';

-- on outcome_spec.updated   guarded "there is no such outcome spec"
UPDATE outcome_specs SET
    title = COALESCE($title, title), content = COALESCE($content, content), updated_at = :ts
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $spec_id;

-- on outcome_spec.status_changed   guarded "there is no such outcome spec, or it cannot change to this status"
UPDATE outcome_specs SET status = $to, updated_at = :ts
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $spec_id
  AND status = COALESCE($expected, status)
  AND EXISTS (SELECT 1 FROM plan_edges WHERE entity = 'outcome_spec'
                AND from_status = outcome_specs.status AND to_status = $to);

-- fill work_plan.created
SELECT 'p' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS plan_id
FROM work_plans WHERE workflow_run_id = substr(:session, 4) AND id GLOB 'p[0-9]*';

-- on work_plan.created   guarded "the plan exists already, or there is no such outcome spec"
INSERT INTO work_plans (workflow_run_id, id, outcome_spec_id, project_id, coordinator_run_id,
                        isolation_summary, integration_branch, created_at, updated_at)
SELECT substr(:session, 4), $plan_id, $spec_id, $project_id, $coordinator_run_id,
       $isolation_summary, $integration_branch, COALESCE(annal_time($created_at), :ts), :ts
WHERE :session GLOB 'wf_?*' AND $plan_id <> ''
  AND ($spec_id IS NULL OR EXISTS (SELECT 1 FROM outcome_specs
                                   WHERE workflow_run_id = substr(:session, 4) AND id = $spec_id));

-- on work_plan.status_changed   guarded "there is no such plan, or its status differs from the expected status"
UPDATE work_plans SET id = id
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $plan_id
  AND status = COALESCE($expected, status);

-- on work_plan.status_changed   guarded "a plan cannot change to this status, except by an override with a reason"
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

-- on subtask.created   guarded "there is no such plan, the title is missing, or the subtask exists already"
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

-- on subtask.status_changed   guarded "there is no such subtask, or its status differs from the expected status"
UPDATE subtasks SET id = id
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $subtask_id
  AND status = COALESCE($expected, status);

-- on subtask.status_changed   guarded "a subtask cannot change to this status, except by an override with a reason"
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

-- on subtask_dependency.added   guarded "both subtasks must be in one plan, and neither may wait for itself, directly or through others"
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

-- on steering.queued, steering.relayed, steering.applied   guarded "there is no such directive, or its status is later than that"
UPDATE steering_directives SET
    status = substr(:type, 10),
    queued_at = CASE :type WHEN 'steering.queued' THEN :ts ELSE queued_at END,
    relayed_at = CASE :type WHEN 'steering.relayed' THEN :ts ELSE relayed_at END,
    applied_at = CASE :type WHEN 'steering.applied' THEN :ts ELSE applied_at END
WHERE workflow_run_id = substr(:session, 4) AND :session GLOB 'wf_?*' AND id = $id
  AND EXISTS (SELECT 1 FROM plan_edges WHERE entity = 'steering'
                AND from_status = steering_directives.status AND to_status = substr(:type, 10));
