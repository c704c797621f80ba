-- SPDX-License-Identifier: Apache-2.0
--
-- In a store with the pack lionagi: the table old, of old sessions. ?1 keep_n, ?3 the cutoff in seconds, ?4 whether
-- progressions are deleted too, ?5 whether journals are deleted too. The SELECTs beside this file follow it.
WITH created AS (SELECT DISTINCT session_id FROM main.event_index
  WHERE type IN ('session.created', 'session.imported', 'session_start')),
 ranked AS (SELECT s.id, s.updated_at AS at,
  ROW_NUMBER() OVER (ORDER BY s.updated_at DESC, s.id) AS n
  FROM state.sessions s JOIN created c ON c.session_id = s.id),
 old AS (SELECT id FROM ranked
  WHERE n > ?1 AND at < ?3 AND id <> '_state' AND ?2 IS NOT NULL)
