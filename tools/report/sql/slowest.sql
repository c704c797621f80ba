-- SPDX-License-Identifier: Apache-2.0
SELECT duration_ms, tool, (SELECT e.data FROM events AS e WHERE e.session_id = c.session_id AND e.seq = c.seq), session_id,
       seq
FROM (SELECT * FROM calls WHERE duration_ms IS NOT NULL ORDER BY duration_ms DESC LIMIT ?4) AS c ORDER BY duration_ms DESC
