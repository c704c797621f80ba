-- SPDX-License-Identifier: Apache-2.0
-- ?2: what was found at the paths, as put_source() writes it; paths where nothing changed are
-- missing. ?3: the time, in the statements that need it.
, looked AS MATERIALIZED (
    SELECT value ->> 0 AS path, value ->> 1 AS presence, value ->> 2 AS bytes, value ->> 3 AS since,
           value ->> 4 AS log, value ->> 5 AS kind, value ->> 6 AS generation, value ->> 7 AS copied,
           value ->> 8 AS unread
    FROM json_each(?2)),
found AS MATERIALIZED (SELECT * FROM told JOIN looked USING (path))
