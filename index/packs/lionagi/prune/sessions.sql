-- SPDX-License-Identifier: Apache-2.0
--
-- The sessions to prune: what they need, and what is deleted with them.
 alive AS MATERIALIZED (SELECT id FROM state.sessions
  WHERE id NOT IN (SELECT id FROM candidates)),
 dropped AS MATERIALIZED (SELECT p.id, p.session_id FROM state.progressions p
  WHERE ?4 AND p.session_id IN (SELECT id FROM candidates)
   AND p.id NOT IN (SELECT progression_id FROM state.sessions WHERE id IN
         (SELECT id FROM alive) AND progression_id IS NOT NULL)
   AND p.id NOT IN (SELECT progression_id FROM state.branches WHERE session_id IN
         (SELECT id FROM alive) AND progression_id IS NOT NULL)),
 needed AS MATERIALIZED (SELECT message_id AS id FROM state.progression_items
   WHERE progression_id NOT IN (SELECT id FROM dropped)
  UNION SELECT first_msg_id FROM state.sessions WHERE id IN (SELECT id FROM alive)
  UNION SELECT last_msg_id FROM state.sessions WHERE id IN (SELECT id FROM alive)
  UNION SELECT system_msg_id FROM state.branches WHERE session_id IN (SELECT id FROM alive)),
 owned AS MATERIALIZED (SELECT m.id, m.session_id,
   m.id IN (SELECT id FROM needed WHERE id IS NOT NULL) AS stays
  FROM state.messages m WHERE m.session_id IN (SELECT id FROM candidates)),
 pointed AS (SELECT s.id AS source, s.progression_id AS progression,
    s.first_msg_id AS first, s.last_msg_id AS last FROM state.sessions s
  UNION ALL SELECT b.session_id, b.progression_id, b.system_msg_id, NULL
   FROM state.branches b),
 named AS MATERIALIZED (SELECT o.session_id AS owner, o.id AS message, p.session_id AS source
   FROM owned o JOIN state.progression_items i ON ?5 AND i.message_id = o.id
    JOIN state.progressions p ON p.id = i.progression_id
   WHERE p.session_id <> o.session_id AND p.id NOT IN (SELECT id FROM dropped)
  UNION SELECT p.session_id, NULL, t.source FROM pointed t
    JOIN state.progressions p ON ?5 AND p.id = t.progression
   WHERE t.source IN (SELECT id FROM alive) AND p.session_id IN (SELECT id FROM candidates)
  UNION SELECT m.session_id, m.id, t.source FROM pointed t
    JOIN state.messages m ON ?5 AND m.id IN (t.first, t.last)
   WHERE t.source IN (SELECT id FROM alive) AND m.session_id IN (SELECT id FROM candidates)),
 kept(id, message, source) AS (SELECT owner, message, source FROM named
   WHERE source NOT IN (SELECT id FROM candidates)
  UNION SELECT n.owner, n.message, n.source FROM kept k JOIN named n ON n.source = k.id),
 stay AS MATERIALIZED (SELECT id, count(DISTINCT message) AS n, min(source) AS source
   FROM kept GROUP BY id)
SELECT v.id, COALESCE(b.n, 0),
 CASE WHEN ?5 AND s.id IS NULL THEN (SELECT count(*) FROM state.progressions
  WHERE session_id = v.id) ELSE COALESCE(d.n, 0) END,
 CASE WHEN ?5 AND s.id IS NULL THEN COALESCE(m.total, 0) ELSE COALESCE(m.n, 0) END,
 COALESCE(k.ids, '[]'), COALESCE(m.ids, '[]'), COALESCE(s.n, 0), COALESCE(s.source, '')
 FROM candidates v LEFT JOIN stay s ON s.id = v.id
LEFT JOIN (SELECT session_id, count(*) AS n FROM state.branches GROUP BY session_id) b
 ON b.session_id = v.id
LEFT JOIN (SELECT session_id, count(*) AS n FROM dropped GROUP BY session_id) d
 ON d.session_id = v.id
LEFT JOIN (SELECT session_id, json_group_array(id) AS ids FROM state.progressions
  WHERE ?4 AND id NOT IN (SELECT id FROM dropped) GROUP BY session_id) k
 ON k.session_id = v.id
LEFT JOIN (SELECT session_id, sum(NOT stays) AS n, count(*) AS total,
  json_group_array(id) FILTER (WHERE stays = ?4) AS ids FROM owned GROUP BY session_id) m
 ON m.session_id = v.id ORDER BY v.id
