-- SPDX-License-Identifier: Apache-2.0
SELECT session_id, n, tool, data, seq FROM (
    WITH c AS MATERIALIZED (
        SELECT session_id, seq, tool, row_number() OVER (PARTITION BY session_id ORDER BY seq) AS n,
               (SELECT e.data FROM events AS e WHERE e.session_id = c.session_id AND e.seq = c.seq) AS data
        FROM tool_calls AS c WHERE session_id IN (SELECT value FROM json_each(?1))),
    a AS (SELECT * FROM c WHERE session_id = ?1->>0),
    b AS (SELECT * FROM c WHERE session_id = ?1->>1),
    d AS (SELECT n FROM a FULL JOIN b USING (n)
          WHERE a.tool IS NOT b.tool OR a.data->'input' IS NOT b.data->'input' ORDER BY n LIMIT 1)
    SELECT * FROM c WHERE n = (SELECT n FROM d))
ORDER BY session_id <> ?1->>0 LIMIT ?4
