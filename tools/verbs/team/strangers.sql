-- SPDX-License-Identifier: Apache-2.0
--
-- The names in ?2 and ?3, JSON, that are not members of team ?1.
SELECT DISTINCT value FROM (
 SELECT ?2 ->> '$' AS value UNION ALL SELECT value FROM json_each(?3))
WHERE value NOT IN ('all', '*', '_cli', 'system') AND value NOT IN (
 SELECT m.value FROM teams t, json_each(t.members) m WHERE t.id = ?1)
