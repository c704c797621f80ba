-- SPDX-License-Identifier: Apache-2.0
--
-- The sub-agents and forks of session $2 of store $1, at every depth.
WITH RECURSIVE head AS MATERIALIZED (SELECT session, parent, said ->> 'parent_session_id'
 AS agent_of FROM annal._heads LEFT JOIN annal._session_rows USING (key) WHERE store = $1),
 link AS MATERIALIZED (SELECT session, parent AS above FROM head UNION ALL SELECT session,
 agent_of FROM head),
 tree AS (SELECT $2::text COLLATE "C" AS session UNION SELECT link.session FROM tree
 JOIN link ON link.above = tree.session)
 SELECT session FROM tree WHERE session <> $2
