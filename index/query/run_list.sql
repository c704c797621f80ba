-- SPDX-License-Identifier: Apache-2.0
--
-- The view run_list of the pack lionagi, with the health that annal_health() finds.
CREATE TEMP VIEW run_list AS SELECT r.session_id, r.name, r.invocation_kind, r.status,
 annal_health(r.effective_health, COALESCE(r.status, (SELECT 'paused'
   FROM main.sessions c WHERE c.id = r.session_id AND c.status IN ('paused', 'running'))),
  r.session_id, s.artifacts_path,
  EXISTS (SELECT 1 FROM state.messages m WHERE m.session_id = r.session_id),
  s.process ->> '$.pid', s.process ->> '$.start', s.process ->> '$.pid_ns',
  s.process ->> '$.boot_id') AS effective_health,
 r.last_message_at, r.message_count, r.created_at, r.started_at, r.ended_at,
 r.duration_seconds, r.last_activity, r.stale_at
FROM state.run_list r JOIN state.sessions s ON s.id = r.session_id
