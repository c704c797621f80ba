-- SPDX-License-Identifier: Apache-2.0
--
-- The events that a search found, as lines: sessions, and below each its events. ?1: a list of
-- [number of the session, number of the event in it, session, seq, time, type, tool or role,
-- excerpt, why the session was found].
WITH found AS MATERIALIZED (
    SELECT value ->> 0 AS n, value ->> 1 AS k, value ->> 2 AS id, value ->> 3 AS seq, value ->> 4 AS time, value ->> 5 AS type,
           value ->> 6 AS who, value ->> 7 AS text, value ->> 8 AS why FROM json_each(?1))

SELECT n || '. ' || found.id || coalesce('  ' || substr(s.last_activity_at, 1, 16) || 'Z  ' || s.agent_id || ' ' || s.model || '  '
       || s.events || ' events, ' || s.total_turns || ' turns  ' || coalesce(s.working_directory, ''), '') AS fact,
       coalesce(s.title, p.title, '') || '  (' || why || ')' AS said, n, 0 AS k
FROM found LEFT JOIN sessions s ON s.id = found.id LEFT JOIN forks f ON f.session_id = s.id
     LEFT JOIN sessions p ON p.id = f.parent_session_id WHERE k = 1
UNION ALL
SELECT '   :' || seq || '  ' || coalesce((SELECT hash FROM events e WHERE e.session_id = found.id AND e.seq = found.seq), 'damaged')
       || '  ' || time || '  ' || type || '  ' || who, text, n, k FROM found
ORDER BY n, k
