-- SPDX-License-Identifier: Apache-2.0
-- The events that are missing: session, type, id, data. An empty log has no session to which a copy
-- of it would belong, so it is noted here that it shrank.
, news AS (
    SELECT *, iif(gone, 'returned', 'deleted') AS what, deleted + NOT gone AS number,
           iif(gone, 0, copied) AS before, iif(gone, bytes, 0) AS after
    FROM found WHERE presence = iif(gone, 'there', 'gone')
    UNION ALL
    SELECT *, 'shrank', generation, copied, 0 FROM found f
    WHERE presence = 'there' AND bytes = 0 AND copied > 0
      AND NOT EXISTS (SELECT 1 FROM source_events e
                      WHERE e.session_id = f.session_id AND e.path = f.path
                        AND e.generation = f.generation AND e.what = 'shrank'))
SELECT session_id, 'source.' || what, printf('%s.%s.%d', what, log, number),
       json_object('path', path, 'kind', kind, 'generation', generation, 'bytes_before', before,
                   'bytes_after', after, 'noticed_at', ?3)
FROM news
