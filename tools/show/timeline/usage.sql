-- SPDX-License-Identifier: Apache-2.0
-- The events with usage, without the totals that the event at the end of a turn repeats.
SELECT u.seq, u.timestamp AS time, u.model, u.input_tokens, u.output_tokens, u.cached_input_tokens, u.cache_write_tokens,
       CAST(round(u.cost_microusd) AS INTEGER) AS cost_microusd, u.computed_microusd IS NOT NULL AS computed
FROM part CROSS JOIN usage_event_costs u
WHERE u.session_id = part.id AND u.seq BETWEEN max(part.from_seq, ?2) AND part.to_seq ORDER BY u.seq
