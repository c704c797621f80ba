-- SPDX-License-Identifier: Apache-2.0
-- The newest days, weeks or other units of time, in order.
SELECT * FROM (
SELECT name, requests, input_tokens, cached_input_tokens, output_tokens, CAST(cost_microusd AS INTEGER),
       CAST(computed_microusd AS INTEGER), 1.0 * costed_tokens / NULLIF(tokens, 0)
FROM used ORDER BY 1 DESC LIMIT ?4) ORDER BY 1
