-- SPDX-License-Identifier: Apache-2.0
--
-- For DuckDB: the sub-agents in the files f, each with the session to which it belongs.
SELECT session_id, arg_max(regexp_extract(data, '"parent_session_id"\s*:\s*"([^"|\n]+)"', 1), seq) AS parent
 FROM f WHERE type IN ('session.created', 'session_start', 'session.updated')
 AND regexp_matches(data, '"parent_session_id"\s*:\s*"[^"|\n]+"') GROUP BY ALL
