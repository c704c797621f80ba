-- SPDX-License-Identifier: Apache-2.0
--
-- The running sessions that have been silent for longer than is allowed. ?1 is the time now, ?2 the least silence, in seconds.
SELECT a.session_id, COALESCE(a.invocation_kind, ''), a.last_activity,
 max(a.stale_at - a.last_activity, ?2) AS allowed,
 s.process ->> '$.pid', s.process ->> '$.start', s.process ->> '$.pid_ns',
 s.process ->> '$.boot_id'
FROM session_activity a JOIN state.sessions s ON s.id = a.session_id
WHERE a.status = 'running' AND ?1 > a.last_activity + max(a.stale_at - a.last_activity, ?2)
ORDER BY a.last_activity, a.session_id
