-- SPDX-License-Identifier: Apache-2.0
--
-- The members of team ?1, with the numbers of the messages that each has sent and has not read.
SELECT m.value AS member,
 (SELECT count(*) FROM team_messages g WHERE g.team_id = t.id AND g.sender = m.value) AS sent,
 (SELECT count(*) FROM team_messages g WHERE g.team_id = t.id AND g.sender <> m.value
  AND (g.recipient = 'all' OR instr(',' || g.recipient || ',', ',' || m.value || ','))
  AND NOT EXISTS (SELECT 1 FROM x_team_reads r
                  WHERE r.message_id = g.id AND r.member = m.value)) AS unread
FROM teams t, json_each(t.members) m WHERE t.id = ?1 ORDER BY m.key
