-- SPDX-License-Identifier: Apache-2.0
-- Work in progress in the state of a session, for recovery.c: the status of the session, the calls without a result,
-- and the turns that have not ended, each list from its oldest item.
SELECT 's' AS kind, 0 AS seq, status AS id, NULL AS name, NULL AS since, NULL AS turn_id, 0 AS sequence
FROM sessions
UNION ALL
SELECT 'c', seq, call_id, tool, called_at, turn_id, seq FROM dangling
UNION ALL
SELECT 't', seq, turn_id, status, created_at, NULL, sequence FROM turns WHERE completed_at IS NULL
ORDER BY 1, sequence
