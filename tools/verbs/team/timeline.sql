-- SPDX-License-Identifier: Apache-2.0
--
-- The events of team ?1 in order of time; events with the same time are sorted by session and seq.
WITH told(session) AS (SELECT 'team_' || ?1 UNION
 SELECT session_id FROM team_messages WHERE team_id = ?1 AND session_id IS NOT NULL)
SELECT e.timestamp, e.session_id, e.seq, e.type,
 COALESCE(e.data ->> '$.sender', e.data ->> '$.role', e.data ->> '$.member') AS who,
 substr(COALESCE(e.data ->> '$.summary', e.data ->> '$.content', e.data ->> '$.name',
  e.data ->> '$.to', ''), 1, 200) AS what
FROM told CROSS JOIN events e ON e.session_id = told.session
WHERE e.type GLOB 'team.*' OR e.type GLOB 'message.*' OR e.type GLOB 'session.*'
 OR e.type = 'run.transition'
ORDER BY e.timestamp, e.session_id, e.seq
