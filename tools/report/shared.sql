-- SPDX-License-Identifier: Apache-2.0
--
-- Tables that the SELECTs in sql/ use. ?1: ids of sessions as a JSON array, or NULL for all; ?2 and ?3: since, until, or
-- NULL for no bound; ?4: the limit. `used` is show/usage.sql. Without NOT MATERIALIZED, SQLite would store all
-- rows of a table that is used twice.
calls AS NOT MATERIALIZED (
    SELECT * FROM tool_durations
    WHERE (?1 IS NULL OR session_id IN (SELECT value FROM json_each(?1)))
      AND (?2 IS NULL OR coalesce(called_at, returned_at) >= ?2) AND (?3 IS NULL OR coalesce(called_at, returned_at) < ?3)),

-- The calls as tool_calls has them: those that have not returned, and the seq of the result.
made AS NOT MATERIALIZED (
    SELECT * FROM tool_calls
    WHERE (?1 IS NULL OR session_id IN (SELECT value FROM json_each(?1)))
      AND (?2 IS NULL OR coalesce(called_at, returned_at) >= ?2) AND (?3 IS NULL OR coalesce(called_at, returned_at) < ?3)),

-- The sessions that were active in the range of time: that have an event in it. A session of notes counts only
-- if ?1 names it; `marks` is described in show/session_rows.h.
active AS NOT MATERIALIZED (
    SELECT * FROM sessions
    WHERE iif(?1 IS NULL, id NOT IN (SELECT 'notes_' || session_id FROM marks), id IN (SELECT value FROM json_each(?1)))
      AND (?2 IS NULL AND ?3 IS NULL
           OR EXISTS (SELECT 1 FROM event_index AS x WHERE x.session_id = sessions.id
                      AND (?2 IS NULL OR x.timestamp >= ?2) AND (?3 IS NULL OR x.timestamp < ?3)))),

-- The requests to a model that failed.
refused AS NOT MATERIALIZED (
    SELECT session_id, seq, timestamp FROM event_index
    WHERE type IN ('provider.failed', 'provider_error')
      AND (?1 IS NULL OR session_id IN (SELECT value FROM json_each(?1)))
      AND (?2 IS NULL OR timestamp >= ?2) AND (?3 IS NULL OR timestamp < ?3)),

-- What `annal report --sources` sums up. Here ?1 has "copies", the files of copies.h, and "looked", of changes_look().
copies AS MATERIALIZED (
    SELECT value ->> 0 AS path, value ->> 1 AS kind, value ->> 2 AS newest, value ->> 3 AS bytes, value ->> 4 AS stored
    FROM json_each(?1, '$.copies')),
sources AS (
    SELECT path, max(kind) AS kind, sum(bytes) AS bytes, sum(copies) AS copies, sum(stored) AS stored, max(gone) AS gone,
           max(shrank) AS shrank, max(replaced) AS replaced
    FROM (SELECT path, kind, iif(newest, bytes, 0) AS bytes, 1 AS copies, stored, 0 AS gone, 0 AS shrank, 0 AS replaced
          FROM copies
          UNION ALL SELECT source_path, NULL, NULL, 0, 0, 0, 0, 0 FROM session_sources WHERE source_path <> ''
          UNION ALL SELECT value ->> 'path', NULL, NULL, 0, 0, 1, 0, 0 FROM json_each(?1, '$.looked')
                    WHERE value ->> 'is' = 'gone'
          UNION ALL SELECT path, kind, NULL, 0, 0, 0, shrank, replaced FROM source_logs)
    GROUP BY path)
