-- SPDX-License-Identifier: Apache-2.0
--
-- An overview of the session ?1: rows of facts (fact), a text of the journal (said), and the seq
-- from which the overview continues (next). ?2: the seq of the first turn.
--
--  (1) The facts, then each turn with its first and last message, then the last message, longer.
--  (2) What the user said is in said if the agent added text to it.

WITH began AS MATERIALIZED (
    SELECT seq, sequence, status, lead(seq) OVER (ORDER BY seq) AS next
    FROM (SELECT * FROM turns WHERE session_id = ?1 AND seq >= ?2 ORDER BY seq LIMIT 103)),

said AS (
    SELECT 1 AS part, seq AS next, 'turn ' || sequence || ', ' || status || '  ' AS fact, 300 AS most,
           coalesce((SELECT x.seq FROM event_index x WHERE x.session_id = ?1 AND x.seq BETWEEN t.seq AND t.seq + 19
                     AND +x.type = 'message.added' ORDER BY x.seq LIMIT 1), seq) AS seq
    FROM began t
    UNION ALL
    SELECT 1, seq, '  ended  ', 300, (SELECT x.seq FROM event_index x WHERE x.session_id = ?1 AND x.seq > t.seq + 1
        AND x.seq < t.next AND +x.type = 'message.added' ORDER BY x.seq DESC LIMIT 1)
    FROM began t WHERE next IS NOT NULL
    UNION ALL
    SELECT 2, NULL, 'last message  ', 1500, (SELECT x.seq FROM event_index x WHERE x.session_id = ?1
        AND +x.type = 'message.added' ORDER BY x.seq DESC LIMIT 1))

SELECT s.id || '  ' || s.status || '  ' || s.agent_id || ' ' || s.model || '  ' || s.events || ' events, ' || s.total_turns
       || ' turns, ' || coalesce(s.total_tokens, 0) || ' tokens, ' ||
       (SELECT count(*) || ' calls, ' || count(nullif(t.status <> 'failed', 1)) || ' failed' FROM tool_calls t WHERE t.session_id = s.id)
       || '  from ' || substr(s.created_at, 1, 19) || 'Z to ' || substr(s.last_activity_at, 1, 19) || 'Z  '
       || coalesce(s.working_directory, '') || coalesce('  branch ' || s.git_branch, '')
       || coalesce('  part of ' || s.parent_session_id, '')
       || coalesce('  fork of ' || f.parent_session_id || ':' || f.forked_at_seq, '')
       || coalesce('  sub-agents: ' || (SELECT group_concat(id, ' ') FROM
              (SELECT id FROM sessions c WHERE c.parent_session_id = s.id LIMIT 20)), '') AS fact,
       coalesce(s.title, p.title) AS said, NULL AS next, 0 AS part, 0 AS seq
FROM sessions s LEFT JOIN forks f ON f.session_id = s.id LEFT JOIN sessions p ON p.id = f.parent_session_id WHERE s.id = ?1
UNION ALL
SELECT said.fact || ':' || e.seq || '  ' || e.hash || '  ' || substr(e.timestamp, 1, 19) || 'Z  ' || coalesce(e.data ->> '$.role', ''),
       substr(coalesce(nullif(e.data ->> '$.said', ''), CASE json_type(e.data, '$.content') WHEN 'text' THEN e.data ->> '$.content'
              ELSE coalesce(e.data ->> '$.content[#-1].text', e.data ->> '$.content[0].text') END), 1, most), said.next, part, said.seq
FROM said CROSS JOIN events e ON e.session_id = ?1 AND e.seq = said.seq
ORDER BY part, seq
