-- SPDX-License-Identifier: Apache-2.0
-- The turns; prompt is the first message of the user in the turn, or in the event before the turn began.
SELECT t.seq, t.turn_id, t.sequence, t.status, t.created_at, t.completed_at, t.input_tokens, t.output_tokens,
       t.cached_input_tokens, t.cache_write_tokens, coalesce(t.cost_usd, t.cost_microusd / 1e6) AS cost_usd, t.timing,
       t.error,
       (SELECT substr(annal_said(e.data), 1, 160) FROM events e
        WHERE e.session_id = t.session_id AND e.type = 'message.added' AND e.seq BETWEEN t.seq - 1 AND t.next_seq - 2
          AND annal_said(e.data) IS NOT NULL ORDER BY e.seq LIMIT 1) AS prompt,
       (SELECT e.data ->> '$.said' IS '' FROM events e
        WHERE e.session_id = t.session_id AND e.type = 'message.added' AND e.seq BETWEEN t.seq - 1 AND t.next_seq - 2
          AND e.data ->> '$.role' = 'user' ORDER BY e.seq LIMIT 1) AS by_program
FROM (SELECT r.*, lead(r.seq, 1, 9223372036854775807) OVER (ORDER BY r.seq) AS next_seq FROM part CROSS JOIN turns r
      WHERE r.session_id = part.id AND r.seq BETWEEN max(part.from_seq, ?2) AND part.to_seq) AS t
ORDER BY t.seq
