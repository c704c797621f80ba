-- SPDX-License-Identifier: Apache-2.0
SELECT (SELECT count(*) FROM active), (SELECT count(*) FROM calls),
       (SELECT count(*) FROM calls WHERE status = 'failed') + (SELECT count(*) FROM refused), input_tokens, output_tokens,
       CAST(cost_microusd AS INTEGER), CAST(computed_microusd AS INTEGER), 1.0 * costed_tokens / NULLIF(tokens, 0)
FROM (SELECT 1) LEFT JOIN used LIMIT ?4
