-- SPDX-License-Identifier: Apache-2.0
--
-- How a task was done: annal how. ?1: [[session, seq of a prompt or title, score], …], which a search for the words of the
-- task found; ?2 and ?3: since, until; ?4: number of rows.
--
--  (1) A prompt leads to the calls of its turn: the turn that began last before it, or else the first turn
--      after it, as for the title of a session. A session without turns is one turn.
--  (2) A turn ended well if it was completed or its log does not say, it was not taken back, and its last call succeeded.
--  (3) Only prompts with at least half of the best score count; of these the shortest sequence of calls is first. Calls
--      that failed are left out of a sequence, and counted.
hits AS MATERIALIZED (
    SELECT session_id, seq, max(score) AS score
    FROM (SELECT value ->> 0 AS session_id, value ->> 1 AS seq, value ->> 2 AS score FROM json_each(?1)) GROUP BY 1, 2),

turned AS MATERIALIZED (
    SELECT h.*, coalesce((SELECT max(seq) FROM turns t WHERE t.session_id = h.session_id AND t.seq <= h.seq),
                         (SELECT min(seq) FROM turns t WHERE t.session_id = h.session_id), 0) AS begun
    FROM hits h WHERE score >= (SELECT max(score) / 2 FROM hits)),

-- The first prompt of a turn stands for it.
tasks AS MATERIALIZED (
    SELECT t.session_id, min(t.seq) AS seq, max(t.score) AS score, begun,
           coalesce((SELECT min(o.seq) FROM turns o WHERE o.session_id = t.session_id AND o.seq > begun), 9223372036854775807) AS until_seq
    FROM turned t GROUP BY t.session_id, begun),

calls AS MATERIALIZED (
    SELECT t.session_id, t.begun, c.seq, c.tool, c.status,
           row_number() OVER (PARTITION BY t.session_id, t.begun ORDER BY coalesce(c.result_seq, c.seq) DESC) AS back
    FROM tasks t CROSS JOIN tool_calls c ON c.session_id = t.session_id
    WHERE c.seq >= t.begun AND c.seq < t.until_seq),

done AS MATERIALIZED (
    SELECT t.*, count(*) AS calls, sum(c.status = 'failed') AS failed, max(c.seq) AS end_seq,
           max(iif(c.back = 1, c.status, '')) AS last_status
    FROM tasks t JOIN calls c ON c.session_id = t.session_id AND c.begun = t.begun GROUP BY t.session_id, t.begun),

ranked AS MATERIALIZED (
    SELECT d.*, x.timestamp FROM done d
    LEFT JOIN turns u ON u.session_id = d.session_id AND u.seq = d.begun
    JOIN event_index x ON x.session_id = d.session_id AND x.seq = d.seq
    WHERE last_status = 'returned' AND u.live_status IS NULL AND coalesce(u.status, '') NOT IN ('failed', 'cancelled')
          AND (?2 IS NULL OR x.timestamp >= ?2) AND (?3 IS NULL OR x.timestamp < ?3)
    ORDER BY calls - failed, score DESC, x.timestamp DESC, d.session_id, d.seq LIMIT ?4),

steps AS MATERIALIZED (
    SELECT c.session_id, c.begun AS of, c.seq, c.tool
    FROM ranked r CROSS JOIN calls c ON c.session_id = r.session_id AND c.begun = r.begun WHERE c.status = 'returned')

SELECT r.session_id, r.seq, r.timestamp,
       coalesce((SELECT coalesce(annal_said(e.data), annal_title(coalesce(e.data ->> '$.title', e.data ->> '$.set.title')))
                 FROM events e WHERE e.session_id = r.session_id AND e.seq = r.seq),
                (SELECT title FROM sessions s WHERE s.id = r.session_id), '') AS said,
       (SELECT json_group_array(json_object('seq', seq, 'tool', tool, 'input', input)) FROM
           (SELECT * FROM told t WHERE t.session_id = r.session_id AND t.of = r.begun ORDER BY seq)) AS steps,
       (calls - failed) || iif(calls - failed = 1, ' call', ' calls') || iif(failed > 0, ', and ' || failed || ' that failed', '')
       || '; ended at ' || end_seq AS fact,
       calls - failed AS calls, failed, end_seq
FROM ranked r ORDER BY calls - failed, score DESC, r.timestamp DESC, r.session_id, r.seq
