-- SPDX-License-Identifier: Apache-2.0
-- ?2: what was found at the paths, as put_source() writes it; paths where nothing changed are
-- missing. ?3: the time, in the statements that need it.
, looked AS MATERIALIZED (
    SELECT value ->> 0 AS path, value ->> 1 AS presence, value ->> 2 AS bytes, value ->> 3 AS since,
           value ->> 4 AS log, value ->> 5 AS kind, value ->> 6 AS generation, value ->> 7 AS copied,
           value ->> 8 AS unread
    FROM json_each(?2)),
-- CROSS: the index of session_sources is used, however few rows SQLite expects in the JSON.
found AS MATERIALIZED (
    SELECT DISTINCT s.session_id, l.*,
           coalesce((SELECT sum(what = 'deleted') > sum(what = 'returned') FROM source_events e
                     WHERE e.session_id = s.session_id AND e.path = l.path), 0) AS gone,
           (SELECT count(*) FROM source_events e
            WHERE e.session_id = s.session_id AND e.path = l.path AND what = 'deleted') AS deleted
    FROM looked l CROSS JOIN session_sources s ON s.source_path = l.path AND s.source_host = ?1)
