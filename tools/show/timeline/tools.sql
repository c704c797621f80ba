-- SPDX-License-Identifier: Apache-2.0
-- The calls that were made, or that returned, from ?2 on.
SELECT r.seq, r.result_seq, r.call_id, r.tool, r.status, r.called_at, r.returned_at,
       coalesce(r.duration_ms, max(0, CAST(round((julianday(r.returned_at) - julianday(r.called_at)) * 86400000)
                                           AS INTEGER))) AS duration_ms, r.exit_code, r.output_bytes
FROM part CROSS JOIN tool_calls r
WHERE r.session_id = part.id AND r.seq BETWEEN part.from_seq AND part.to_seq AND coalesce(r.result_seq, r.seq) >= ?2
ORDER BY r.seq
