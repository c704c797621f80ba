-- SPDX-License-Identifier: Apache-2.0
SELECT NULLIF(name, ''), requests, input_tokens, cached_input_tokens, output_tokens, CAST(cost_microusd AS INTEGER),
       CAST(computed_microusd AS INTEGER), 1.0 * costed_tokens / NULLIF(tokens, 0)
FROM used WHERE requests + tokens + coalesce(cost_microusd, 0) > 0 ORDER BY 3 DESC, 1 LIMIT ?4
