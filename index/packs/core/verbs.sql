-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun step   "functions that a run executes once"

-- verb step ls   selects   "list steps whose process ended before they did"
--   --session ID   text   "steps of this session"
--   about    A step is a call of a tool whose call_id begins with 'step:'. Steps that
--            are running now are listed, too. docs/steps.md has the rules.
--   example  annal step ls
SELECT session_id, substr(call_id, 6) AS step, seq, called_at
FROM dangling
WHERE call_id GLOB 'step:?*' AND session_id = coalesce(?1, session_id)
ORDER BY called_at, session_id, seq;
