-- importer pi   version 3
-- SPDX-License-Identifier: Apache-2.0
-- records: thinking_level_change label custom* session_info branch_summary session
--
-- Sessions of the pi coding agent: ~/.pi/agent/sessions/<cwd>/<time>_<session id>.jsonl. Files of both
-- generations: lines with id and parentId (a tree), and older ones without.
-- docs/events.md lists what comes out; annal/import.h says what an importer finds.
--
--  (1) The session is the one that the first line of type session names, else the file.
--      parentSession names the session that it was forked from.
--  (2) The first event made from a line carries it under "extra", less what is in the fields of its
--      events. All branches of the tree are imported, in the order of the file.
--  (3) A user's message begins a turn and ends the one before. An answer that asks for no tool ends it,
--      too; the event comes where the next turn begins or the log ends.
--      A message that another session has (record_owner: its id and time), as a fork copies them, and the
--      results of its calls, are import.record.
--  (4) A session is as old as the first time of its lines, which may be before that of its own line.
--  (5) input_tokens are input, cache reads and cache writes together: pi counts them apart.

--  (6) A message that continues from before the last turn leaves the turns after that point abandoned,
--      and those on its way to the root live.
--  (7) An event's id is made of the line's own, else of its bytes.  Ids that version 2 gave are recognized.

-- detect
-- The harness of DeepSeek writes a session with createdAt, Droid of Factory blocks tool_use and tool_result.
SELECT CASE WHEN max(json ->> '$.type' IN ('session_start', 'todo_state') OR json_type(json, '$.createdAt') IS NOT NULL
                     OR json ->> '$.message.content[0].type' IN ('tool_use', 'tool_result')
                     OR json ->> '$.message.content[1].type' IN ('tool_use', 'tool_result')) THEN 0
    ELSE max(CASE
    WHEN json ->> '$.type' = 'session' AND json_type(json, '$.cwd') = 'text'
         AND json_type(json, '$.timestamp') = 'text' THEN 95
    WHEN json ->> '$.type' = 'message' AND json ->> '$.message.role' IN ('user', 'assistant', 'toolResult')
         AND json_type(json, '$.message.timestamp') = 'integer' THEN 70
    ELSE 0 END) END FROM lines

-- once
CREATE TABLE file (session TEXT, ts INTEGER, first INTEGER, named INTEGER, made INTEGER, turn TEXT, turns INTEGER,
                   model TEXT, rest TEXT, rest_error TEXT, rest_ts INTEGER, rest_n INTEGER, rested INTEGER);
INSERT INTO file SELECT session_id(stem), 1, NULL, 0, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0 FROM source;

CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns first: SQLite reads them without what is behind them.
CREATE TABLE now (type TEXT, role TEXT, source TEXT, main TEXT, owner TEXT, up_turn TEXT, origin TEXT, j TEXT, m TEXT);

-- The lines that were seen, and the turn of each ('': it is known that it has none, as before the first prompt and
-- in what was copied); the turns, what each continues from, and whether it was abandoned.
CREATE TABLE nodes (id TEXT PRIMARY KEY, turn TEXT, copied INTEGER) WITHOUT ROWID;
CREATE TABLE branches (i INTEGER PRIMARY KEY, turn TEXT UNIQUE, up TEXT, gone INTEGER);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, m, type, role, source, main)
    SELECT j, j -> '$.message', j ->> '$.type', j ->> '$.message.role',
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', nullif(j -> '$.id', 'null')),
           NULL
    FROM source, (SELECT NEW.json AS j);
    UPDATE file SET ts = coalesce(time_us(NEW.json ->> '$.timestamp'), ts),
        session = CASE WHEN NOT named AND (SELECT type FROM now) = 'session'
                       THEN coalesce(session_id(nullif(NEW.json ->> '$.id', '')), session) ELSE session END,
        named = named OR coalesce((SELECT type = 'session' FROM now), 0);
    UPDATE now SET main = CASE
        WHEN j IS NULL THEN 'unreadable'
        WHEN type = 'session' AND NOT (SELECT made FROM file) THEN 'meta'
        WHEN type = 'model_change' THEN 'model'
        WHEN type = 'compaction' THEN 'checkpoint'
        WHEN type = 'message' AND role = 'toolResult' THEN 'result'
        WHEN type = 'message' AND role IS NOT NULL AND json_type(m, '$.content') IS NOT NULL THEN 'message'
        ELSE 'record' END;
    UPDATE now SET origin = 'pi ' || (j ->> '$.id') || ' ' || (j ->> '$.timestamp') WHERE main = 'message';
    UPDATE now SET source = substr(source, 1, length(source) - 1) || ',"origin":' || json_text(origin) || '}'
    WHERE origin IS NOT NULL;
    UPDATE now SET owner = nullif(record_owner(origin, (SELECT session FROM file)), (SELECT session FROM file)),
        up_turn = (SELECT coalesce(d.turn, '') FROM nodes d WHERE d.id = j ->> '$.parentId');
    UPDATE now SET main = 'record', source = substr(source, 1, length(source) - 1) || ',"copied":true}'
    WHERE owner IS NOT NULL OR EXISTS (SELECT 1 FROM nodes d WHERE d.id = j ->> '$.id')
       OR main = 'result' AND (SELECT d.copied FROM nodes d WHERE d.id = j ->> '$.parentId');

    -- The session, by its own line or before the first other one.
    INSERT INTO out
    SELECT NEW.row, 0, f.session, f.ts, 'session.created', 'session.created',
           CASE main WHEN 'meta' THEN json_fields(
               'id', json_text(f.session), 'agent_id', '"pi"', 'provider', j -> '$.provider',
               'model', j -> '$.modelId', 'status', '"idle"', 'working_directory', j -> '$.cwd',
               'created_at', j -> '$.timestamp',
               'parent_session_id', CASE WHEN j ->> '$.parentSession' LIKE '%\_%' ESCAPE '\' THEN json_text(session_id(
                   replace(substr(j ->> '$.parentSession', -42), '.jsonl', ''))) END, 'source', n.source,
               'extra', json_remove(j, '$.provider', '$.modelId', '$.cwd', '$.timestamp'))
           ELSE json_fields('id', json_text(f.session), 'agent_id', '"pi"', 'status', '"idle"',
                            'source', n.source) END, NEW.n
    FROM file f, now n WHERE NOT f.made;
    UPDATE file SET made = 1, model = coalesce(
        (SELECT CASE main WHEN 'meta' THEN j ->> '$.modelId' WHEN 'model' THEN j ->> '$.modelId' END
         FROM now), model);
    INSERT INTO out
    SELECT NEW.row, 0, f.session, f.ts, 'session.updated', NEW.hash || '.0',
           json_fields('set', json_fields('created_at', j -> '$.timestamp'), 'source', n.source), NEW.n
    FROM file f, now n WHERE f.ts < f.first;
    UPDATE file SET first = min(coalesce(first, ts), ts) WHERE ts > 1;

    -- The turns that a message leaves behind, and those that it returns to.
    INSERT INTO out
    SELECT NEW.row, 99999 + b.i, f.session, f.ts, CASE WHEN b.gone THEN 'turn.restored' ELSE 'turn.abandoned' END,
           b.turn || CASE WHEN b.gone THEN '.restored.' ELSE '.abandoned.' END || coalesce(NEW.json ->> '$.id', NEW.hash),
           json_fields('turn_id', json_text(b.turn), 'reason', '"edited"', 'source', n.source), NEW.n
    FROM file f, now n, branches b
    WHERE n.main = 'message' AND n.role = 'user' AND f.turn IS NOT NULL AND n.up_turn IS NOT f.turn
      AND (n.up_turn IS NOT NULL OR json_type(NEW.json, '$.parentId') IS 'null')
      AND b.gone = (b.turn IN (
        WITH RECURSIVE way (turn) AS (
            SELECT n.up_turn UNION SELECT p.up FROM way JOIN branches p USING (turn) WHERE p.up IS NOT NULL)
        SELECT turn FROM way WHERE turn IS NOT NULL));
    UPDATE branches SET gone = NOT gone
    WHERE turn IN (SELECT o.data ->> '$.turn_id' FROM out o WHERE o.row = NEW.row AND o.type IN ('turn.restored', 'turn.abandoned'));
    INSERT OR IGNORE INTO branches (turn, up, gone)
    SELECT coalesce(NEW.json ->> '$.id', NEW.hash),
           CASE WHEN json_type(NEW.json, '$.parentId') IS 'null' THEN NULL ELSE coalesce(n.up_turn, f.turn) END, 0
    FROM file f, now n WHERE n.main = 'message' AND n.role = 'user';
    INSERT OR IGNORE INTO nodes
    SELECT NEW.json ->> '$.id',
           CASE WHEN n.main = 'message' AND n.role = 'user' THEN NEW.json ->> '$.id' ELSE coalesce(n.up_turn, f.turn) END,
           n.owner IS NOT NULL OR coalesce((SELECT d.copied FROM nodes d WHERE d.id = NEW.json ->> '$.parentId'), 0)
               AND n.main = 'record'
    FROM file f, now n WHERE NEW.json ->> '$.id' IS NOT NULL;

    -- A turn ends where the next one begins.
    INSERT INTO out
    SELECT NEW.row, 1, f.session, CASE WHEN rest IS NOT NULL THEN rest_ts ELSE f.ts END,
           coalesce(rest, 'turn.completed'), CASE WHEN rested THEN f.turn || '.ends' ELSE NEW.hash || '.1' END,
           json_fields('turn_id', json_text(f.turn),
                       'reason', CASE WHEN rest IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'error', CASE WHEN rest IS NOT NULL THEN rest_error END, 'source', n.source), NEW.n
    FROM file f, now n WHERE n.main = 'message' AND n.role = 'user' AND f.turn IS NOT NULL;
    UPDATE file SET turn = coalesce(NEW.json ->> '$.id', NEW.hash), turns = turns + 1, rest = NULL, rested = 0
    WHERE (SELECT main = 'message' AND role = 'user' FROM now);
    UPDATE file SET
        rest = CASE WHEN (SELECT main FROM now) = 'message' THEN
                   CASE coalesce(NEW.json ->> '$.message.stopReason', 'stop')
                   WHEN 'stop' THEN 'turn.completed' WHEN 'error' THEN 'turn.failed'
                   WHEN 'aborted' THEN 'turn.cancelled' END END,
        rest_error = nullif(NEW.json -> '$.message.errorMessage', 'null'), rest_ts = ts, rest_n = NEW.n
    WHERE (SELECT main = 'message' AND role = 'assistant' OR main = 'result' FROM now);
    UPDATE file SET rest = NULL
    WHERE rest = 'turn.completed' AND EXISTS (
        SELECT 1 FROM json_each(NEW.json, '$.message.content') b
        WHERE b.type = 'object' AND b.value ->> '$.type' = 'toolCall');
    UPDATE file SET rested = 1 WHERE rest IS NOT NULL;
    INSERT INTO out
    SELECT NEW.row, 2, f.session, f.ts, 'turn.started', NEW.hash || '.2',
           json_fields('turn_id', json_text(f.turn), 'sequence', f.turns, 'status', '"running"',
                       'prompt_ref', json_text(f.turn), 'source', n.source), NEW.n
    FROM file f, now n WHERE n.main = 'message' AND n.role = 'user';

    -- The event that carries the line.
    INSERT INTO out
    SELECT NEW.row, 3, f.session, f.ts,
           CASE main WHEN 'message' THEN 'message.added' WHEN 'model' THEN 'session.updated'
                WHEN 'checkpoint' THEN 'checkpoint.noted' WHEN 'unreadable' THEN 'import.unreadable'
                WHEN 'result' THEN CASE WHEN m ->> '$.isError' THEN 'tool.failed' ELSE 'tool.returned' END
                ELSE 'import.record' END,
           NEW.hash || '.3',
           CASE main
           WHEN 'message' THEN json_fields(
               'id', coalesce(nullif(j -> '$.id', 'null'), json_text(NEW.hash)), 'role', m -> '$.role',
               'content', CASE WHEN EXISTS (SELECT 1 FROM json_each(m, '$.content')
                                            WHERE type = 'object' AND value ->> '$.type' = 'toolCall')
                          THEN (SELECT json_group_array(json(m -> fullkey)) FROM json_each(m, '$.content')
                                WHERE NOT (type = 'object' AND value ->> '$.type' IS 'toolCall'))
                          ELSE m -> '$.content' END,
               'model', nullif(m -> '$.model', 'null'), 'turn_id', json_text(f.turn), 'source', n.source,
               'extra', json_remove(j, '$.id', '$.message.role', '$.message.content', '$.message.model'))
           WHEN 'model' THEN json_fields(
               'set', json_fields('provider', j -> '$.provider', 'model', j -> '$.modelId'),
               'source', n.source, 'extra', json_remove(j, '$.provider', '$.modelId'))
           WHEN 'result' THEN json_fields(
               'call_id', coalesce(m -> '$.toolCallId', json_text(NEW.hash)),
               'success', CASE WHEN m ->> '$.isError' THEN 'false' ELSE 'true' END,
               'output', m -> '$.content', 'turn_id', json_text(f.turn), 'source', n.source,
               'extra', json_remove(j, '$.message.toolCallId', '$.message.content'))
           WHEN 'checkpoint' THEN json_fields(
               'note', '"compaction"', 'pre_tokens', j -> '$.tokensBefore', 'turn_id', json_text(f.turn),
               'source', n.source, 'extra', j)
           WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(n.source))
           ELSE json_fields('kind', j -> '$.type', 'turn_id', json_text(f.turn), 'source', n.source,
                            'extra', CASE json_type(j) WHEN 'object' THEN json_remove(j, '$.type')
                                     ELSE j END) END,
           NEW.n
    FROM file f, now n WHERE main <> 'meta';

    -- The calls in a message, and what it cost.
    INSERT INTO out
    SELECT NEW.row, 4 + b.key, f.session, f.ts, 'tool.called', NEW.hash || '.call.' || b.key,
           json_fields('call_id', coalesce(b.value -> '$.id', json_text(NEW.hash || '.' || b.key)),
                       'tool', b.value -> '$.name', 'input', b.value -> '$.arguments',
                       'message_id', nullif(j -> '$.id', 'null'), 'turn_id', json_text(f.turn),
                       'source', n.source,
                       'extra', json_remove(b.value, '$.id', '$.name', '$.arguments')),
           NEW.n
    FROM file f, now n, json_each(n.m, '$.content') b
    WHERE main = 'message' AND b.type = 'object' AND b.value ->> '$.type' = 'toolCall';
    INSERT INTO out
    SELECT NEW.row, 100000, f.session, f.ts, 'agent.turn.usage', NEW.hash || '.usage',
           json_fields('message_id', nullif(j -> '$.id', 'null'),
                       'model', coalesce(m -> '$.model', json_text(f.model)),
                       'input_tokens', CASE WHEN coalesce(u ->> '$.input', u ->> '$.cacheRead', u ->> '$.cacheWrite') IS NOT NULL
                           THEN CAST(coalesce(u ->> '$.input', 0) + coalesce(u ->> '$.cacheRead', 0)
                                     + coalesce(u ->> '$.cacheWrite', 0) AS INTEGER) END,
                       'output_tokens', u -> '$.output', 'cached_input_tokens', u -> '$.cacheRead',
                       'cache_write_tokens', u -> '$.cacheWrite',
                       'cache_write_1h_tokens', nullif(u -> '$.cacheWrite1h', '0'), 'cost_usd', u -> '$.cost.total',
                       'turn_id', json_text(f.turn), 'source', n.source), NEW.n
    FROM file f, now n, (SELECT NEW.json -> '$.message.usage' AS u)
    WHERE main = 'message' AND json_type(u) = 'object'
      AND (u ->> '$.input' > 0 OR u ->> '$.output' > 0 OR u ->> '$.cacheRead' > 0 OR u ->> '$.cacheWrite' > 0);
END;

-- batch
SELECT session, ts, type, CASE WHEN made_of_line AND name IS NOT NULL THEN name || substr(id, 33) ELSE id END, NULL, data, n,
       CASE WHEN made_of_line THEN id END
FROM (SELECT o.*, o.id GLOB l.hash || '.*' AS made_of_line,
             CASE WHEN o.data ->> '$.source.copied' IS NULL THEN l.json ->> '$.id' END AS name
      FROM out o CROSS JOIN lines l USING (row)) ORDER BY row, k;
DELETE FROM out;

-- end
SELECT session, rest_ts, rest, turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"', 'error', rest_error,
                   'source', json_fields('kind', json_text(kind), 'file', json_text(s.file), 'line', rest_n)), rest_n
FROM file, source s WHERE turn IS NOT NULL AND rest IS NOT NULL;
