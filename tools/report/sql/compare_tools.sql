-- SPDX-License-Identifier: Apache-2.0
SELECT tool, count(*) FILTER (WHERE session_id = ?1->>0), count(*) FILTER (WHERE session_id = ?1->>1),
       count(*) FILTER (WHERE session_id = ?1->>0 AND status = 'failed'),
       count(*) FILTER (WHERE session_id = ?1->>1 AND status = 'failed'),
       median(CASE WHEN session_id = ?1->>0 THEN duration_ms END),
       median(CASE WHEN session_id = ?1->>1 THEN duration_ms END)
FROM calls GROUP BY tool ORDER BY count(*) DESC, 1 LIMIT ?4
