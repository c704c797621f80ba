-- SPDX-License-Identifier: Apache-2.0
--
-- Session ?1, and its sub-agents and forks at every depth.
WITH RECURSIVE edges AS MATERIALIZED (SELECT s.id AS below,
 coalesce(f.parent_session_id, s.parent_session_id) AS above
 FROM sessions s LEFT JOIN forks f ON f.session_id = s.id),
 down (id) AS (SELECT ?1 UNION SELECT edges.below FROM down JOIN edges
 ON edges.above = down.id) SELECT id FROM down
