-- SPDX-License-Identifier: Apache-2.0
-- Views for importers of logs that are rewritten: a turn of an earlier import that the log no longer
-- has was taken back.

-- The turns that the journals have of the logs. file: the log with which the turn began; ts:
-- of its last event; times: number of its events after the first; was_gone: whether it is taken back.
CREATE VIEW recorded_turns AS
    SELECT session, turn, sum(type <> 'turn.started') AS times, max(CASE WHEN type = 'turn.started' THEN file END) AS file,
           max(ts) AS ts, substr(max(printf('%012d', n) || type), 13) = 'turn.rolled_back' AS was_gone
    FROM (SELECT session, n, ts, type, data ->> '$.turn_id' AS turn, data ->> '$.source.file' AS file FROM recorded
          WHERE type GLOB 'turn.*') GROUP BY session, turn;

-- The events about turns that the log no longer has, or has again. The importer creates a table
-- live(session, turn, ts, n) of the turns that the log has. A log that was not read whole shows nothing.
CREATE VIEW removed_turns AS
    SELECT session, ts, CASE WHEN gone THEN 'turn.rolled_back' ELSE 'turn.restored' END AS type,
           turn || CASE WHEN gone THEN '.removed.' ELSE '.restored.' END || times AS id,
           json_fields('turn_id', json_text(turn), 'reason', '"removed"',
                       'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', n)) AS data, n
    FROM (SELECT a.session, a.ts, a.n, s.kind, s.file, t.turn, l.turn IS NULL AS gone, t.was_gone, t.times
          FROM source s, (SELECT session, max(ts) AS ts, max(n) AS n FROM live GROUP BY session) a
          JOIN recorded_turns t ON t.session = a.session AND t.file = s.file
          LEFT JOIN live l ON l.session = t.session AND l.turn = t.turn
          WHERE s.container = 'directory' OR EXISTS (SELECT 1 FROM options WHERE name = ':whole'))
    WHERE gone <> was_gone;
