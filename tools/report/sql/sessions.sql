-- SPDX-License-Identifier: Apache-2.0
-- A row for each session that was active in the range of time. If a session's only time is a guess, its duration is NULL.
SELECT id, turns, calls, failed, tokens, cost, computed, share,
       CASE WHEN time_from IS NOT 'of the file' THEN
           (SELECT CAST(round(86400000 * (julianday(max(timestamp)) - julianday(min(timestamp)))) AS INTEGER)
            FROM event_index AS e
            WHERE e.session_id = id AND (?2 IS NULL OR timestamp >= ?2) AND (?3 IS NULL OR timestamp < ?3)
              AND timestamp >= '1970-01-02' AND timestamp < replace(datetime('now', '+1 day'), ' ', 'T')) END, title
FROM (SELECT id, time_from, title, t.turns, c.calls, coalesce(c.failed + coalesce(r.n, 0), r.n) AS failed, u.*
      FROM active
      LEFT JOIN (SELECT session_id, count(*) AS turns FROM turns
                 WHERE (?1 IS NULL OR session_id IN (SELECT value FROM json_each(?1)))
                   AND (?2 IS NULL OR created_at >= ?2) AND (?3 IS NULL OR created_at < ?3)
                 GROUP BY 1) AS t ON t.session_id = id
      LEFT JOIN (SELECT session_id, count(*) AS calls, sum(status = 'failed') AS failed FROM made GROUP BY 1) AS c
                ON c.session_id = id
      LEFT JOIN (SELECT session_id, count(*) AS n FROM refused GROUP BY 1) AS r ON r.session_id = id
      LEFT JOIN (SELECT name, coalesce(input_tokens + output_tokens, input_tokens, output_tokens) AS tokens,
                        CAST(cost_microusd AS INTEGER) AS cost, CAST(computed_microusd AS INTEGER) AS computed,
                        1.0 * costed_tokens / NULLIF(tokens, 0) AS share FROM used) AS u ON u.name = id
      ORDER BY json_array_length(?1) = 2 AND id <> ?1->>0, u.tokens DESC, id LIMIT ?4)
