-- SPDX-License-Identifier: Apache-2.0
-- ==== A deleted project; a deleted journal ====

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
