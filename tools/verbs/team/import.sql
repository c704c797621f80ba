-- SPDX-License-Identifier: Apache-2.0
--
-- The new events in a file. ?1 is the text of the file, ?2 its source as JSON, ?3 the time of its last change, ?4 the id of
-- its team.
WITH file(j, team) AS (SELECT ?1, ?4),
said AS (
 SELECT m.key AS n, m.value AS v, file.team,
  CASE WHEN EXISTS (SELECT 1 FROM team_messages o WHERE o.team_id <> file.team
                    AND o.id = COALESCE(m.value ->> '$.id', file.team || ':' || m.key))
       THEN file.team || ':' || (m.value ->> '$.id')
       ELSE COALESCE(m.value ->> '$.id', file.team || ':' || m.key) END AS id
 FROM file, json_each(file.j, '$.messages') m WHERE m.type = 'object'),
marks AS (
 SELECT said.id, CASE json_type(v, '$.read_by') WHEN 'object' THEN r.key ELSE r.value END AS member,
  CASE json_type(v, '$.read_by') WHEN 'object' THEN r.value END AS read_at
 FROM said, json_each(v, '$.read_by') r
 WHERE EXISTS (SELECT 1 FROM team_messages o WHERE o.id = said.id))
SELECT type, at, data FROM (
 SELECT 0 AS part, 0 AS n, 'team.imported' AS type, COALESCE(j ->> '$.created_at', ?3) AS at,
  json_object('id', team, 'name', COALESCE(NULLIF(j ->> '$.name', ''), team),
   'members', json((SELECT json_group_array(value) FROM (SELECT value FROM json_each(j, '$.members')
               WHERE type = 'text' AND value <> '' GROUP BY value ORDER BY min(key)))),
   'created_at', COALESCE(j -> '$.created_at', json_quote(?3)),
   'updated_at', j -> '$.updated_at', 'node_metadata', j -> '$.node_metadata',
   'status', j -> '$.status', 'source', json(?2)) AS data
 FROM file WHERE NOT EXISTS (SELECT 1 FROM teams WHERE id = team)
 UNION ALL
 SELECT 1, n, 'team.message', COALESCE(v ->> '$.timestamp', ?3),
  json_object('id', id, 'sender', COALESCE(NULLIF(v ->> '$.from', ''), '_cli'),
   'to', v -> '$.to', 'content', COALESCE(v ->> '$.content', ''), 'summary', v -> '$.summary',
   'created_at', COALESCE(v -> '$.timestamp', json_quote(?3)), 'read_by', v -> '$.read_by',
   'session_id', v -> '$.session_id', 'session_known', json(CASE
    WHEN v ->> '$.session_id' IS NULL THEN 'null'
    WHEN EXISTS (SELECT 1 FROM main.sessions WHERE id = v ->> '$.session_id') THEN 'true'
    ELSE 'false' END), 'from_op', v -> '$.from_op')
 FROM said WHERE NOT EXISTS (SELECT 1 FROM team_messages o WHERE o.id = said.id)
 UNION ALL
 SELECT 2, row_number() OVER (ORDER BY member, read_at), 'team.message_read',
  COALESCE(NULLIF(read_at, ''), ?3),
  json_object('message_ids', json(json_group_array(id)), 'member', member, 'read_at', NULLIF(read_at, ''))
 FROM marks WHERE member <> '' AND NOT EXISTS (SELECT 1 FROM x_team_reads r
  WHERE r.message_id = marks.id AND r.member = marks.member) GROUP BY member, read_at)
ORDER BY part, n
