-- SPDX-License-Identifier: Apache-2.0
-- The calls that were made, or that returned, from ?2 on. A call of an ancestor may have its result there, or after the
-- fork: that result is a row without a call.
, answers AS MATERIALIZED (
    SELECT c.seq, a.session_id, min(a.seq) AS answer
    FROM part after CROSS JOIN tool_calls a INDEXED BY idx_tool_calls_uncalled CROSS JOIN part CROSS JOIN tool_calls c
    WHERE a.session_id = after.id AND a.called_at IS NULL AND a.seq BETWEEN after.from_seq AND after.to_seq
      AND c.session_id = part.id AND c.call_id = a.call_id AND c.seq BETWEEN part.from_seq AND part.to_seq
      AND part.to_seq < after.from_seq AND c.called_at IS NOT NULL AND (c.result_seq IS NULL OR c.result_seq > part.to_seq)
    GROUP BY c.seq)
SELECT c.seq, r.result_seq, c.call_id, c.tool, coalesce(r.status, 'called') AS status, c.called_at, r.returned_at,
       coalesce(r.duration_ms, max(0, CAST(round((julianday(r.returned_at) - julianday(c.called_at)) * 86400000)
                                           AS INTEGER))) AS duration_ms, r.exit_code, r.output_bytes
FROM part CROSS JOIN tool_calls c LEFT JOIN answers a ON a.seq = c.seq
LEFT JOIN tool_calls r ON r.session_id = coalesce(a.session_id, c.session_id) AND r.call_id = c.call_id
    AND r.seq = coalesce(a.answer, iif(c.result_seq > part.to_seq, NULL, c.seq))
WHERE c.session_id = part.id AND c.seq BETWEEN part.from_seq AND part.to_seq
  AND coalesce(a.answer, iif(c.result_seq > part.to_seq, NULL, c.result_seq), c.seq) >= ?2
  AND c.seq NOT IN (SELECT answer FROM answers)
ORDER BY c.seq
