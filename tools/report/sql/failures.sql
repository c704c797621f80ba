-- SPDX-License-Identifier: Apache-2.0
SELECT returned_at, tool, (SELECT e.data FROM events AS e WHERE e.session_id = c.session_id AND e.seq = c.seq),
       (SELECT e.data FROM events AS e WHERE e.session_id = c.session_id AND e.seq = c.result_seq), session_id, seq
FROM made AS c WHERE status = 'failed' ORDER BY returned_at DESC LIMIT ?4
