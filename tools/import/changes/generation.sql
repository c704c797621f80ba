-- SPDX-License-Identifier: Apache-2.0
-- ?4: log, type, number, bytes before and after, and INFO of a generation that ended.
, judged (log, event, generation, before, after, info) AS (
    SELECT ?4 ->> 0, ?4 ->> 1, ?4 ->> 2, ?4 ->> 3, ?4 ->> 4, ?4 -> 5)
SELECT s.value, event, printf('%s.%s.%d', substr(event, 8), log, generation),
       json_object('path', info ->> 'path', 'kind', info ->> 'kind', 'generation', generation,
                   'bytes_before', before, 'bytes_after', after, 'noticed_at', ?3)
FROM judged JOIN json_each(info, '$.sessions') s
WHERE s.value IN (SELECT session_id FROM session_sources WHERE source_host = ?1)
