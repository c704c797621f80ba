-- SPDX-License-Identifier: Apache-2.0
--
-- The old sessions without the pack lionagi. ?1 keep_n, ?2 the cutoff as text.
WITH created AS (SELECT DISTINCT session_id FROM event_index
  WHERE type IN ('session.created', 'session.imported', 'session_start')),
 ranked AS (SELECT s.id, s.last_activity_at AS at,
  ROW_NUMBER() OVER (ORDER BY s.last_activity_at DESC, s.id) AS n
  FROM main.sessions s JOIN created c ON c.session_id = s.id)
SELECT id, 0, 0, 0, '[]', '[]', 0, '' FROM ranked
 WHERE n > ?1 AND at < ?2 AND id <> '_state' AND ?3 IS NOT NULL AND ?4 + ?5 IS NOT NULL
ORDER BY id
