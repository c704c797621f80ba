-- SPDX-License-Identifier: Apache-2.0
--
-- The old sessions that messages of a team refer to, each with the id of one such team.
SELECT id, (SELECT min(team_id) FROM state.team_messages WHERE session_id = old.id)
 AS team FROM old WHERE team IS NOT NULL AND ?4 + ?5 IS NOT NULL ORDER BY id
