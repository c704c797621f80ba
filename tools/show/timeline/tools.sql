-- SPDX-License-Identifier: Apache-2.0
-- The calls that were made, or that returned, from ?2 on. A call of an ancestor may have its result there, or after the
-- fork: that result is a row without a call.
, calls AS MATERIALIZED (
    SELECT r.*, part.to_seq, coalesce(r.result_seq > part.to_seq, 0) AS late FROM part CROSS JOIN tool_calls r
    WHERE r.session_id = part.id AND r.seq BETWEEN part.from_seq AND part.to_seq),
answers AS MATERIALIZED (
    SELECT c.seq, min(a.seq) AS answer FROM calls c JOIN calls a ON a.call_id = c.call_id AND a.called_at IS NULL AND a.seq > c.to_seq
    WHERE c.called_at IS NOT NULL AND (c.result_seq IS NULL OR c.late) GROUP BY c.seq)
SELECT c.seq, r.result_seq, c.call_id, c.tool, coalesce(r.status, 'called') AS status, c.called_at, r.returned_at,
       coalesce(r.duration_ms, max(0, CAST(round((julianday(r.returned_at) - julianday(c.called_at)) * 86400000)
                                           AS INTEGER))) AS duration_ms, r.exit_code, r.output_bytes
FROM calls c LEFT JOIN answers a ON a.seq = c.seq
LEFT JOIN calls r ON r.seq = coalesce(a.answer, iif(c.late, NULL, c.seq))
WHERE c.seq NOT IN (SELECT answer FROM answers) AND coalesce(r.result_seq, c.seq) >= ?2
ORDER BY c.seq
