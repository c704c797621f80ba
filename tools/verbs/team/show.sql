-- SPDX-License-Identifier: Apache-2.0
--
-- Team ?1.
SELECT id, name, status, member_count, members, node_metadata,
 strftime('%Y-%m-%dT%H:%M:%SZ', created_at, 'unixepoch') AS created,
 strftime('%Y-%m-%dT%H:%M:%SZ', updated_at, 'unixepoch') AS updated,
 (SELECT json_group_array(session_id) FROM (SELECT session_id FROM team_sessions s
  WHERE s.team_id = t.id ORDER BY first_at, session_id)) AS sessions
FROM teams t WHERE id = ?1
