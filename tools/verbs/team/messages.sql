-- SPDX-License-Identifier: Apache-2.0
--
-- For people: the messages of team ?1, or only those whose ids the array ?2 contains; ?3: with their whole content.
SELECT id, strftime('%Y-%m-%d %H:%M:%S', created_at, 'unixepoch'), sender, recipient,
 read_by, CASE WHEN ?3 THEN content ELSE COALESCE(summary,
  CASE WHEN length(content) > 200 THEN substr(content, 1, 200) || '…' ELSE content END)
 END
FROM team_messages WHERE team_id = ?1
 AND (?2 IS NULL OR id IN (SELECT value FROM json_each(?2))) ORDER BY created_at, id
