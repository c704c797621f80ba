-- SPDX-License-Identifier: Apache-2.0
SELECT name, sessions, requests, input_tokens, output_tokens, CAST(cost_microusd AS INTEGER),
       CAST(computed_microusd AS INTEGER), 1.0 * costed_tokens / NULLIF(tokens, 0)
FROM used WHERE EXISTS (SELECT 1 FROM session_directories) ORDER BY input_tokens DESC, 1 LIMIT ?4
