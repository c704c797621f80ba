-- SPDX-License-Identifier: Apache-2.0
--
-- The file of each team, or of team ?1. A time in seconds becomes ISO 8601 with microseconds, or, if that is not exact, the
-- number.
SELECT t.id, json_object('id', t.id, 'name', t.name, 'members', json(t.members),
 'created_at',
 CASE WHEN CAST(round(t.created_at * 1e6) AS INTEGER) / 1e6 = t.created_at
 THEN json_quote(strftime('%Y-%m-%dT%H:%M:%S', CAST(round(t.created_at * 1e6) AS INTEGER) / 1000000,
  'unixepoch') || printf('.%06d+00:00', CAST(round(t.created_at * 1e6) AS INTEGER) % 1000000))
 ELSE json(printf('%!.17g', t.created_at)) END,
 'updated_at', CASE WHEN CAST(round(t.updated_at * 1e6) AS INTEGER) / 1e6 = t.updated_at
 THEN json_quote(strftime('%Y-%m-%dT%H:%M:%S', CAST(round(t.updated_at * 1e6) AS INTEGER) / 1000000,
  'unixepoch') || printf('.%06d+00:00', CAST(round(t.updated_at * 1e6) AS INTEGER) % 1000000))
 ELSE json(printf('%!.17g', t.updated_at)) END,
 'status', t.status, 'node_metadata', json(COALESCE(t.node_metadata, 'null')), 'messages', json((
  SELECT json_group_array(json(message)) FROM (SELECT json_object('id', m.id, 'from', m.sender,
   'to', json(CASE m.recipient WHEN 'all' THEN '["*"]'
    ELSE replace(json_array(m.recipient), ',', '","') END),
   'content', m.content, 'summary', m.summary, 'timestamp',
 CASE WHEN CAST(round(m.created_at * 1e6) AS INTEGER) / 1e6 = m.created_at
 THEN json_quote(strftime('%Y-%m-%dT%H:%M:%S', CAST(round(m.created_at * 1e6) AS INTEGER) / 1000000,
  'unixepoch') || printf('.%06d+00:00', CAST(round(m.created_at * 1e6) AS INTEGER) % 1000000))
 ELSE json(printf('%!.17g', m.created_at)) END,
   'read_by', json((SELECT json_group_object(r.member,
     CASE WHEN r.read_at IS NULL THEN '' ELSE json(
 CASE WHEN CAST(round(r.read_at * 1e6) AS INTEGER) / 1e6 = r.read_at
 THEN json_quote(strftime('%Y-%m-%dT%H:%M:%S', CAST(round(r.read_at * 1e6) AS INTEGER) / 1000000,
  'unixepoch') || printf('.%06d+00:00', CAST(round(r.read_at * 1e6) AS INTEGER) % 1000000))
 ELSE json(printf('%!.17g', r.read_at)) END) END)
     FROM (SELECT * FROM x_team_reads WHERE message_id = m.id ORDER BY member) r)),
   'session_id', m.session_id, 'from_op', m.from_op) AS message
  FROM team_messages m WHERE m.team_id = t.id ORDER BY m.created_at, m.id))))
FROM teams t WHERE ?1 IS NULL OR t.id = ?1 ORDER BY t.id
