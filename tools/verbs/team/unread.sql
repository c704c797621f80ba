-- SPDX-License-Identifier: Apache-2.0
--
-- The ids of the messages of team ?1 that member ?2 has not read; without a member, of all messages.
SELECT json_group_array(id) FROM (SELECT m.id FROM team_messages m
WHERE m.team_id = ?1 AND (?2 IS NULL OR (m.sender <> ?2
 AND (m.recipient = 'all' OR instr(',' || m.recipient || ',', ',' || ?2 || ','))
 AND NOT EXISTS (SELECT 1 FROM x_team_reads r WHERE r.message_id = m.id
                 AND r.member = ?2))) ORDER BY m.created_at, m.id)
