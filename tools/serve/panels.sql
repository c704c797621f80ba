-- SPDX-License-Identifier: Apache-2.0
--
-- All panels of the page about usage, from the rows `used` of show/usage.sql. Rows of tools have calls in the place of
-- requests, and the failed ones last. ?4: the maximum number of names of a panel, except for units of time.
SELECT panel, name, sessions, requests, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens,
       cost_microusd / 1e6 AS cost_usd, computed_microusd / 1e6 AS computed_cost_usd, costed_tokens, failed
FROM (SELECT *, NULL AS failed, row_number() OVER (PARTITION BY panel ORDER BY cost_microusd DESC, name) AS n FROM used
      UNION ALL
      SELECT 'tool', tool, count(DISTINCT session_id), count(*), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
             sum(status = 'failed'), row_number() OVER (ORDER BY count(*) DESC, tool)
      FROM tool_calls
      WHERE (?2 IS NULL OR coalesce(called_at, returned_at) >= (SELECT annal_instant(?2)))
        AND (?3 IS NULL OR coalesce(called_at, returned_at) < (SELECT annal_instant(?3))) GROUP BY tool)
WHERE panel = 'period' OR n <= ?4 ORDER BY panel, n
