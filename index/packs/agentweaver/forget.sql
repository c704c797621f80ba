-- SPDX-License-Identifier: Apache-2.0
-- ==== A deleted journal ====

-- forget
DELETE FROM projects WHERE :session GLOB 'proj_?*' AND id = substr(:session, 6);
DELETE FROM backlog_tasks WHERE :session GLOB 'proj_?*' AND project_id = substr(:session, 6);
DELETE FROM cast_proposals WHERE :session GLOB 'proj_?*' AND project_id = substr(:session, 6);
DELETE FROM run_reservations WHERE :session GLOB 'proj_?*' AND project_id = substr(:session, 6);
DELETE FROM workflow_runs WHERE :session GLOB 'wf_?*' AND id = substr(:session, 4);
DELETE FROM workflow_checkpoints WHERE session_id = :session;
DELETE FROM run_rows WHERE :session GLOB 'run_?*' AND id = substr(:session, 5);
DELETE FROM run_leases WHERE :session GLOB 'run_?*' AND run_id = substr(:session, 5);
DELETE FROM token_usage_records -- whose id begins with the run and a colon
WHERE :session GLOB 'run_?*' AND id > substr(:session, 5) || ':' AND id < substr(:session, 5) || ';';
INSERT INTO runs_forgotten (run_id) SELECT substr(:session, 5) WHERE :session GLOB 'run_?*';
DELETE FROM run_revisions WHERE :session GLOB 'run_?*' AND run_id = substr(:session, 5);
DELETE FROM runs_forgotten;
