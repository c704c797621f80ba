-- SPDX-License-Identifier: Apache-2.0
--
-- The SELECT of tool_stats, limited to calls that began in a range of time, ?2 to ?3, each of which may be NULL.
SELECT tool, count(*) AS calls, sum(c.status = 'returned') AS returned,
 sum(c.status = 'failed') AS failed, sum(c.status = 'called') AS dangling,
 round(1.0 * sum(c.status = 'failed') / NULLIF(sum(c.status <> 'called'), 0), 4)
 AS failure_rate, median(d.duration_ms) AS p50_ms,
 percentile(d.duration_ms, 95) AS p95_ms, max(d.duration_ms) AS max_ms,
 sum(d.duration_ms) AS total_ms
 FROM (SELECT *, coalesce(called_at, returned_at) AS began FROM tool_calls) c
 LEFT JOIN (SELECT session_id, call_id, seq, duration_ms FROM tool_durations) d
 USING (session_id, call_id, seq)
 WHERE (?2 IS NULL OR began >= (SELECT annal_instant(?2)))
 AND (?3 IS NULL OR began < (SELECT annal_instant(?3)))
 GROUP BY tool ORDER BY calls DESC, tool LIMIT ?4
