-- SPDX-License-Identifier: Apache-2.0
--
-- The sessions to prune, without those to which messages of a team refer.
, candidates AS MATERIALIZED (SELECT id FROM old
   WHERE id NOT IN (SELECT session_id FROM state.team_messages WHERE session_id IS NOT NULL)),
