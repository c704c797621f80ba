-- importer jsonl   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: *
-- files: *.jsonl *.ndjson
-- map: session ts type id cause data
--
-- Plain JSON lines, one event a line. --map gives the position of each part of an event in the
-- line, as a JSON path, or one value for all lines:
--
--   annal import jsonl --map session=$.run --map ts=$.at --map type=$.kind --map data=$.payload log.jsonl
--   annal import jsonl --map session=nightly --map type=build.step log.jsonl
--
--  (1) Without --map: session is $.session_id or $.session, else the file; ts is $.timestamp or
--      $.ts, else the time of the line before; type is $.type, else import.record; id is the line's
--      hash. data is $.data if the line contains only parts of an event (as annal query prints
--      them), else the whole line.
--  (2) A time is ISO 8601, or a number: seconds, milliseconds, microseconds or nanoseconds since 1970, by its
--      size.
--  (3) A type that is not valid becomes import.record, and data then contains the whole line as
--      extra.

-- detect
SELECT CASE WHEN count(*) > 0 AND min(coalesce(json_type(json, '$.seq') = 'integer' AND json_type(json, '$.type') = 'text'
                                      AND json_type(json, '$.data') IS NOT NULL, 0)) THEN 50
            WHEN min(coalesce(json_type(json) = 'object', 0)) AND (count(*) > 1 OR max(file GLOB '*.jsonl' OR file GLOB '*.ndjson'))
            THEN 10 ELSE 0 END
FROM lines, source WHERE container = 'lines'

-- once
CREATE TABLE known (name TEXT, value TEXT,
    CONSTRAINT "--map of jsonl names session, ts, type, id, cause or data"
    CHECK (name IN ('session', 'ts', 'type', 'id', 'cause', 'data')));
INSERT INTO known SELECT name, value FROM options WHERE name NOT GLOB ':*';

CREATE TABLE map (session TEXT, ts TEXT, type TEXT, id TEXT, cause TEXT, data TEXT);
INSERT INTO map SELECT (SELECT value FROM known WHERE name = 'session'), (SELECT value FROM known WHERE name = 'ts'),
    (SELECT value FROM known WHERE name = 'type'), (SELECT value FROM known WHERE name = 'id'),
    (SELECT value FROM known WHERE name = 'cause'), (SELECT value FROM known WHERE name = 'data');
CREATE TABLE file (ts INTEGER);
INSERT INTO file VALUES (1);
CREATE TABLE out (row INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, cause TEXT, data TEXT, n INTEGER);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (session TEXT, at TEXT, type TEXT, id TEXT, cause TEXT, whole INTEGER, j TEXT, data TEXT);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, session, at, type, id, cause, data, whole)
    SELECT j,
           CASE WHEN m.session LIKE '$%' THEN j ->> m.session ELSE coalesce(m.session, j ->> '$.session_id', j ->> '$.session') END,
           CASE WHEN m.ts LIKE '$%' THEN j ->> m.ts ELSE coalesce(m.ts, j ->> '$.timestamp', j ->> '$.ts') END,
           CASE WHEN m.type LIKE '$%' THEN j ->> m.type ELSE coalesce(m.type, j ->> '$.type') END,
           CASE WHEN m.id LIKE '$%' THEN j ->> m.id ELSE coalesce(m.id, CASE WHEN whole THEN NULL ELSE j ->> '$.id' END) END,
           CASE WHEN m.cause LIKE '$%' THEN j ->> m.cause ELSE coalesce(m.cause, CASE WHEN whole THEN NULL ELSE j ->> '$.cause' END) END,
           CASE WHEN m.data LIKE '$%' THEN j -> m.data WHEN whole THEN j ELSE j -> '$.data' END, whole
    FROM map m, (SELECT j, json_type(j) <> 'object' OR json_type(j, '$.data') IS NULL OR json_type(j, '$.type') IS NOT 'text'
                     OR EXISTS (SELECT 1 FROM json_each(j) WHERE key NOT IN ('session_id', 'session', 'seq', 'timestamp', 'ts',
                                'type', 'id', 'cause', 'data', 'h')) AS whole
                 FROM (SELECT NEW.json AS j));
    UPDATE file SET ts = coalesce((SELECT coalesce(time_us(at), CASE
        WHEN at NOT GLOB '*[0-9]*' OR at GLOB '*[^0-9.eE+-]*' THEN NULL
        WHEN abs(CAST(at AS REAL)) < 1e11 THEN CAST(CAST(at AS REAL) * 1e6 AS INTEGER)
        WHEN abs(CAST(at AS REAL)) < 1e14 THEN CAST(CAST(at AS REAL) * 1e3 AS INTEGER)
        WHEN abs(CAST(at AS REAL)) < 1e17 THEN CAST(at AS INTEGER)
        ELSE CAST(at AS INTEGER) / 1000 END) FROM now), ts);
    INSERT INTO out
    SELECT NEW.row, session_id(coalesce(nullif(CAST(session AS TEXT), ''), stem)), ts,
           CASE WHEN j IS NULL THEN 'import.unreadable' WHEN fits THEN type ELSE 'import.record' END,
           coalesce(nullif(CAST(id AS TEXT), ''), NEW.hash), CAST(cause AS TEXT),
           CASE WHEN j IS NULL THEN json_set(NEW.unreadable, '$.source', json(source))
                WHEN fits THEN coalesce(data, 'null')
                ELSE json_fields('kind', json_text(CAST(type AS TEXT)), 'source', source, 'extra', j) END, NEW.n
    FROM (SELECT now.*, stem, coalesce(length(type) BETWEEN 1 AND 64 AND type NOT GLOB '*[^a-z0-9_.-]*', 0) AS fits,
                 json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n) AS source
          FROM now, source), file;
END;

-- batch
SELECT session, ts, type, id, cause, data, n FROM out ORDER BY row;
DELETE FROM out;
