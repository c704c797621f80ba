-- SPDX-License-Identifier: Apache-2.0
--
-- For programs: the messages of team ?1, or only those whose ids the array ?2 contains.
SELECT id, team_id, created_at, sender, recipient, content, summary, read_by, session_id,
 from_op FROM team_messages WHERE team_id = ?1 AND ?3 IS NOT NULL
 AND (?2 IS NULL OR id IN (SELECT value FROM json_each(?2))) ORDER BY created_at, id
