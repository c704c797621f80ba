-- importer pi   version 5
-- SPDX-License-Identifier: Apache-2.0
-- records: thinking_level_change label custom* session_info branch_summary session
-- places: $PI_CODING_AGENT_SESSION_DIR $PI_CODING_AGENT_DIR/sessions ~/.pi/agent/sessions
--
-- Sessions of the pi coding agent: ~/.pi/agent/sessions/<cwd>/<time>_<session id>.jsonl. Both
-- generations of files are read: lines with id and parentId (a tree), and older lines without.
-- docs/events.md lists the resulting events; annal/import.h describes the tables that an importer
-- can read.
--
--  (1) The session is the session in the first line of type session, else the file. parentSession
--      names the parent of a fork.
--  (2) The first event of a line contains the line under "extra", without the members that are
--      fields of its events. All branches of the tree are imported, in the order of the file.
--  (3) A user's message begins a turn and ends the turn before. An answer without a tool call ends
--      it, too; the event is appended at the start of the next turn or at the end of the log. A
--      message of another session (record_owner: its id and time), which forks copy, and the
--      results of its calls, are import.record. So are those of a fork that are older than the fork
--      itself, if its parent is not imported yet.
--  (4) A session begins at the earliest time of its lines, which may be before the time of its own
--      line.
--  (5) input_tokens are input, cache reads and cache writes together: pi counts them separately.

--  (6) A message that continues from a point before the last turn marks the turns after that point
--      as abandoned, and the turns on its path to the root as live.
--  (7) session_info has the name that the user gave the session. A command that the user ran
--      (bashExecution) is a call and its result.
--  (8) The id of an event contains the line's own id, else a hash of the line. The ids of version 2
--      are recognized.

-- detect
-- The harness of DeepSeek writes a session with createdAt, Droid of Factory writes blocks tool_use
-- and tool_result.
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
-- The state of the file so far. kind and name are JSON; rest: how the open turn ends if nothing
-- follows; forked: the time at which the session was forked from another.
CREATE TABLE file (session TEXT, ts INTEGER, first INTEGER, named INTEGER, made INTEGER, turn TEXT, turns INTEGER,
                   model TEXT, rest TEXT, rest_error TEXT, rest_ts INTEGER, rest_n INTEGER, rested INTEGER,
                   kind TEXT, name TEXT, forked INTEGER);
INSERT INTO file
SELECT session_id(stem), 1, NULL, 0, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, json_text(kind), json_text(file), NULL
FROM source;

-- The lines so far, and the turn of each ('': it has none, as before the first prompt and in copied
-- lines); the turns, the turn that each continues, and whether it was abandoned.
CREATE TABLE nodes (id TEXT PRIMARY KEY, turn TEXT, copied INTEGER) WITHOUT ROWID;
CREATE TABLE branches (i INTEGER PRIMARY KEY, turn TEXT NOT NULL UNIQUE, up TEXT, gone INTEGER);
-- A search for live turns skips all abandoned turns.
CREATE INDEX live_branches ON branches (gone);

-- The facts of each line of the batch, and the state of the file after it. early: the session began
-- earlier than known; starts: the line begins a turn; calls: it calls tools; copied: it was seen
-- before, or another session owns it; up_turn, from_turn: the turn that it continues, and the turn
-- before it; end_…: columns of the turn that ends here.
CREATE TABLE facts (
    row INTEGER PRIMARY KEY, n INTEGER, main TEXT, id TEXT, session TEXT, ts INTEGER, first INTEGER, named INTEGER,
    is_new INTEGER, early INTEGER, turn TEXT, turns INTEGER, model TEXT, rest TEXT, rest_error TEXT, rest_ts INTEGER,
    rest_n INTEGER, rested INTEGER, starts INTEGER, calls INTEGER, copied INTEGER, origin TEXT, up_turn TEXT,
    up_copied INTEGER, from_turn TEXT, rooted INTEGER, end_reason TEXT, end_type TEXT, end_id TEXT, end_ts INTEGER,
    end_error TEXT, taken TEXT
);

-- The events that a line may produce, in their order.
CREATE TABLE kinds (k INTEGER PRIMARY KEY);
INSERT INTO kinds VALUES (0), (1), (2), (3), (4), (5), (6), (7);

-- Handle one line after the other. With a LIMIT SQLite computes a column once. SQLite copies the
-- rows of an INSERT of a SELECT into a table that its program has read, and of an UPDATE whose
-- WHERE has a SELECT: that costs more than everything else, so neither is used here.
CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    INSERT INTO facts
    SELECT NEW.row, NEW.n, main, id, session, ts, CASE WHEN ts > 1 THEN min(coalesce(first, ts), ts) ELSE first END,
           named, NOT made, ts < first, CASE WHEN starts THEN coalesce(id, NEW.hash) ELSE turn END, turns + starts,
           CASE WHEN main IN ('meta', 'model') THEN coalesce(NEW.json ->> '$.modelId', model) ELSE model END,
           rest_now, CASE WHEN settles THEN nullif(NEW.json -> '$.message.errorMessage', 'null') ELSE rest_error END,
           CASE WHEN settles THEN ts ELSE rest_ts END, CASE WHEN settles THEN NEW.n ELSE rest_n END,
           rest_now IS NOT NULL OR rested AND NOT starts, starts, calls, copied, origin, up_turn, up_copied, turn,
           json_type(NEW.json, '$.parentId') IS 'null',
           CASE WHEN rest IS NULL THEN '"next_turn"' ELSE '"answered"' END, coalesce(rest, 'turn.completed'),
           CASE WHEN rested THEN turn || '.ends' END, CASE WHEN rest IS NOT NULL THEN rest_ts ELSE ts END,
           CASE WHEN rest IS NOT NULL THEN rest_error END, NULL
    FROM (
        SELECT y.*, CASE WHEN NOT settles THEN CASE WHEN NOT starts AND NOT (rest = 'turn.completed' AND calls) THEN rest END
                         WHEN main = 'message' THEN
                             CASE coalesce(NEW.json ->> '$.message.stopReason', 'stop')
                             WHEN 'stop' THEN CASE WHEN NOT calls THEN 'turn.completed' END
                             WHEN 'error' THEN 'turn.failed' WHEN 'aborted' THEN 'turn.cancelled' END END AS rest_now
        FROM (
        SELECT x.*, CASE WHEN copied THEN 'record' ELSE itself END AS main,
               NOT copied AND itself = 'message' AND role = 'user' AS starts,
               NOT copied AND (itself = 'message' AND role = 'assistant' OR itself = 'result') AS settles,
               type IS 'message' AND itself <> 'result' AND EXISTS (
                   SELECT 1 FROM json_each(NEW.json, '$.message.content') b
                   WHERE b.type = 'object' AND b.value ->> '$.type' = 'toolCall') AS calls
        FROM (
        SELECT w.*, CASE WHEN p.id IS NOT NULL THEN coalesce(p.turn, '') END AS up_turn, p.copied AS up_copied,
               CASE WHEN ts < forked AND itself IN ('message', 'bash', 'result') THEN 1
                    ELSE coalesce(record_owner(origin, session) <> session, 0) END
                   OR EXISTS (SELECT 1 FROM nodes d WHERE d.id = w.id)
                   OR itself = 'result' AND coalesce(p.copied, 0) AS copied
        FROM (
        SELECT v.*, CASE WHEN itself IN ('message', 'bash') THEN 'pi ' || id || ' ' || at END AS origin
        FROM (
            SELECT type, coalesce(role, '') AS role, id, at, NEW.json ->> '$.parentId' AS up_id,
                   CASE WHEN NEW.json IS NULL THEN 'unreadable'
                        WHEN type = 'session' AND NOT made THEN 'meta'
                        WHEN type = 'model_change' THEN 'model'
                        WHEN type = 'compaction' THEN 'checkpoint'
                        WHEN type = 'session_info' AND NEW.json ->> '$.name' <> '' THEN 'name'
                        WHEN type = 'message' AND role = 'bashExecution'
                             AND json_type(NEW.json, '$.message.command') = 'text' THEN 'bash'
                        WHEN type = 'message' AND role = 'toolResult' THEN 'result'
                        WHEN type = 'message' AND role IS NOT NULL
                             AND json_type(NEW.json, '$.message.content') IS NOT NULL THEN 'message'
                        ELSE 'record' END AS itself,
                   CASE WHEN NOT named AND type = 'session' THEN coalesce(session_id(nullif(id, '')), session)
                        ELSE session END AS session,
                   coalesce(time_us(at), ts) AS ts, first, named OR type IS 'session' AS named, made, turn, turns, model,
                   rest, rest_error, rest_ts, rest_n, rested, forked
            FROM (SELECT f.*, NEW.json ->> '$.type' AS type, NEW.json ->> '$.message.role' AS role,
                         NEW.json ->> '$.id' AS id, NEW.json ->> '$.timestamp' AS at FROM file f LIMIT 1)
            LIMIT 1) v LIMIT 1) w LEFT JOIN nodes p ON p.id = w.up_id
        LIMIT 1) x LIMIT 1) y LIMIT 1);

    -- Rule (6).
    UPDATE facts SET taken = (
        WITH RECURSIVE way (turn) AS (
            SELECT facts.up_turn UNION SELECT p.up FROM way JOIN branches p USING (turn) WHERE p.up IS NOT NULL)
        SELECT nullif(json_group_array(json_array(turn, type)), '[]')
        FROM (SELECT i, turn, 'turn.abandoned' AS type FROM branches
              WHERE gone = 0 AND turn NOT IN (SELECT turn FROM way WHERE turn IS NOT NULL)
              UNION ALL
              SELECT b.i, b.turn, 'turn.restored' FROM way JOIN branches b USING (turn) WHERE b.gone
              ORDER BY i))
    WHERE row = NEW.row AND starts AND from_turn IS NOT NULL AND up_turn IS NOT from_turn
      AND (up_turn IS NOT NULL OR rooted);
    INSERT OR IGNORE INTO branches (turn, up, gone)
    VALUES ((SELECT turn FROM facts WHERE row = NEW.row AND starts),
            (SELECT coalesce(up_turn, from_turn) FROM facts WHERE row = NEW.row AND NOT rooted), 0);
    INSERT OR IGNORE INTO nodes
    VALUES ((SELECT id FROM facts WHERE row = NEW.row),
            (SELECT CASE WHEN starts THEN id ELSE coalesce(up_turn, from_turn) END FROM facts WHERE row = NEW.row),
            (SELECT main = 'record' AND (copied OR coalesce(up_copied, 0)) FROM facts WHERE row = NEW.row));
    UPDATE file SET (session, ts, first, named, made, turn, turns, model, rest, rest_error, rest_ts, rest_n, rested) = (
        SELECT session, ts, first, named, 1, turn, turns, model, rest, rest_error, rest_ts, rest_n, rested
        FROM facts WHERE row = NEW.row);
    UPDATE file SET forked = CASE
        WHEN json_type(NEW.json, '$.parentSession') = 'text'
             AND record_owner('log ' || session_id(replace(substr(NEW.json ->> '$.parentSession', -42), '.jsonl', '')), NULL) IS NULL THEN ts END
    WHERE NEW.json ->> '$.type' = 'session' AND record_owner('log ' || session, session) <> '';
END;
CREATE TRIGGER take AFTER UPDATE OF taken ON facts BEGIN
    UPDATE branches SET gone = NOT gone WHERE turn IN (SELECT t.value ->> 0 FROM json_each(NEW.taken) t);
END;

-- batch
-- CROSS JOIN keeps the order: line, kind, block.
SELECT session, CASE k WHEN 1 THEN end_ts ELSE ts END, type, CASE WHEN of_line THEN label || id ELSE id END, NULL, data, n,
       CASE WHEN of_line THEN hash || id END
FROM (
    SELECT session, ts, end_ts, n, k, hash,
           CASE k WHEN 0 THEN early WHEN 1 THEN end_id IS NULL ELSE k <> 5 END AS of_line,
           CASE WHEN NOT copied THEN coalesce(w.id, hash) ELSE hash END AS label,
           CASE k
           WHEN 0 THEN CASE WHEN is_new THEN 'session.created' ELSE 'session.updated' END
           WHEN 1 THEN end_type
           WHEN 2 THEN 'turn.started'
           WHEN 3 THEN CASE main
               WHEN 'message' THEN 'message.added' WHEN 'model' THEN 'session.updated' WHEN 'name' THEN 'session.updated'
               WHEN 'bash' THEN 'tool.called'
               WHEN 'checkpoint' THEN 'checkpoint.noted' WHEN 'unreadable' THEN 'import.unreadable'
               WHEN 'result' THEN CASE WHEN j ->> '$.message.isError' THEN 'tool.failed' ELSE 'tool.returned' END
               ELSE 'import.record' END
           WHEN 4 THEN 'tool.called'
           WHEN 5 THEN b.value ->> 1
           WHEN 7 THEN CASE WHEN j ->> '$.message.exitCode' <> 0 OR j ->> '$.message.cancelled' THEN 'tool.failed' ELSE 'tool.returned' END
           ELSE 'agent.turn.usage' END AS type,
           CASE k
           WHEN 0 THEN CASE WHEN is_new THEN 'session.created' ELSE '.0' END
           WHEN 1 THEN coalesce(end_id, '.1')
           WHEN 4 THEN '.call.' || b.key
           WHEN 5 THEN (b.value ->> 0) || substr(b.value ->> 1, 5) || '.' || turn
           WHEN 6 THEN '.usage'
           WHEN 7 THEN '.result'
           ELSE '.' || k END AS id,
           CASE k
           -- The session, at its own line or before the first other line; or an earlier time of it.
           WHEN 0 THEN CASE
               WHEN NOT is_new THEN json_fields('set', json_fields('created_at', j -> '$.timestamp'), 'source', source)
               WHEN main = 'meta' THEN json_fields(
                   'id', json_text(session), 'agent_id', '"pi"', 'provider', j -> '$.provider',
                   'model', j -> '$.modelId', 'status', '"idle"', 'working_directory', j -> '$.cwd',
                   'created_at', j -> '$.timestamp',
                   'parent_session_id', CASE WHEN j ->> '$.parentSession' LIKE '%\_%' ESCAPE '\' THEN json_text(session_id(
                       replace(substr(j ->> '$.parentSession', -42), '.jsonl', ''))) END, 'source', source,
                   'extra', json_remove(j, '$.provider', '$.modelId', '$.cwd', '$.timestamp'))
               ELSE json_fields('id', json_text(session), 'agent_id', '"pi"', 'status', '"idle"', 'source', source) END
           -- A turn ends at the start of the next turn.
           WHEN 1 THEN json_fields('turn_id', json_text(from_turn), 'reason', end_reason, 'error', end_error,
                                   'source', source)
           WHEN 2 THEN json_fields('turn_id', json_text(turn), 'sequence', turns, 'status', '"running"',
                                   'prompt_ref', json_text(turn), 'source', source)
           -- The event that contains the line.
           WHEN 3 THEN CASE main
               WHEN 'message' THEN json_fields(
                   'id', coalesce(nullif(j -> '$.id', 'null'), json_text(hash)), 'role', j -> '$.message.role',
                   'content', CASE WHEN calls
                              THEN (SELECT json_group_array(json(j -> o.fullkey)) FROM json_each(j, '$.message.content') o
                                    WHERE NOT (o.type = 'object' AND o.value ->> '$.type' IS 'toolCall'))
                              ELSE j -> '$.message.content' END,
                   'model', nullif(j -> '$.message.model', 'null'), 'turn_id', json_text(turn), 'source', source,
                   'extra', json_remove(j, '$.id', '$.message.role', '$.message.content', '$.message.model'))
               WHEN 'model' THEN json_fields(
                   'set', json_fields('provider', j -> '$.provider', 'model', j -> '$.modelId'),
                   'source', source, 'extra', json_remove(j, '$.provider', '$.modelId'))
               WHEN 'name' THEN json_fields('set', json_fields('title', j -> '$.name'), 'source', source, 'extra', json_remove(j, '$.name'))
               WHEN 'bash' THEN json_fields(
                   'call_id', coalesce(nullif(j -> '$.id', 'null'), json_text(hash)), 'tool', '"bash"',
                   'input', json_fields('command', j -> '$.message.command'), 'turn_id', json_text(turn), 'source', source,
                   'extra', json_remove(j, '$.message.command', '$.message.output'))
               WHEN 'result' THEN json_fields(
                   'call_id', coalesce(j -> '$.message.toolCallId', json_text(hash)),
                   'success', CASE WHEN j ->> '$.message.isError' THEN 'false' ELSE 'true' END,
                   'output', j -> '$.message.content', 'turn_id', json_text(turn), 'source', source,
                   'extra', json_remove(j, '$.message.toolCallId', '$.message.content'))
               WHEN 'checkpoint' THEN json_fields(
                   'note', '"compaction"', 'pre_tokens', j -> '$.tokensBefore', 'turn_id', json_text(turn),
                   'source', source, 'extra', j)
               WHEN 'unreadable' THEN json_set(unreadable, '$.source', json(source))
               ELSE json_fields('kind', j -> '$.type', 'turn_id', json_text(turn), 'source', source,
                                'extra', CASE json_type(j) WHEN 'object' THEN json_remove(j, '$.type') ELSE j END) END
           -- The calls in a message.
           WHEN 4 THEN json_fields(
               'call_id', coalesce(b.value -> '$.id', json_text(hash || '.' || b.key)),
               'tool', b.value -> '$.name', 'input', b.value -> '$.arguments',
               'message_id', nullif(j -> '$.id', 'null'), 'turn_id', json_text(turn), 'source', source,
               'extra', json_remove(b.value, '$.id', '$.name', '$.arguments'))
           -- The turns that a message abandons, and the turns that it restores.
           WHEN 5 THEN json_fields('turn_id', b.value -> 0, 'reason', '"edited"', 'source', source)
           WHEN 7 THEN json_fields(
               'call_id', coalesce(nullif(j -> '$.id', 'null'), json_text(hash)),
               'success', CASE WHEN j ->> '$.message.exitCode' <> 0 OR j ->> '$.message.cancelled' THEN 'false' ELSE 'true' END,
               'exit_code', nullif(j -> '$.message.exitCode', 'null'), 'output', j -> '$.message.output', 'turn_id', json_text(turn),
               'source', source)
           -- The cost of a message.
           ELSE json_fields(
               'message_id', nullif(j -> '$.id', 'null'), 'model', coalesce(j -> '$.message.model', json_text(w.model)),
               'input_tokens', CASE WHEN coalesce(j ->> '$.message.usage.input', j ->> '$.message.usage.cacheRead',
                                                  j ->> '$.message.usage.cacheWrite') IS NOT NULL
                   THEN CAST(coalesce(j ->> '$.message.usage.input', 0) + coalesce(j ->> '$.message.usage.cacheRead', 0)
                             + coalesce(j ->> '$.message.usage.cacheWrite', 0) AS INTEGER) END,
               'output_tokens', j -> '$.message.usage.output', 'cached_input_tokens', j -> '$.message.usage.cacheRead',
               'cache_write_tokens', j -> '$.message.usage.cacheWrite',
               'cache_write_1h_tokens', nullif(j -> '$.message.usage.cacheWrite1h', '0'),
               -- 0: pi does not know the price of the model.
               'cost_usd', CASE WHEN j ->> '$.message.usage.cost.total' > 0 THEN j -> '$.message.usage.cost.total' END, 'turn_id', json_text(turn), 'source', source) END AS data
    FROM (SELECT f.*, l.hash, l.j, l.unreadable,
                 json_fields('kind', i.kind, 'file', i.name, 'line', f.n, 'record', nullif(l.j -> '$.id', 'null'),
                             'origin', json_text(f.origin), 'copied', CASE WHEN f.copied THEN 'true' END) AS source
          FROM (SELECT row, hash, unreadable, line_json(row) AS j FROM lines) l
          CROSS JOIN facts f USING (row) CROSS JOIN file i) w
    CROSS JOIN kinds k ON CASE k.k
        WHEN 0 THEN is_new OR early
        WHEN 1 THEN starts AND from_turn IS NOT NULL
        WHEN 2 THEN starts
        WHEN 3 THEN main <> 'meta'
        WHEN 4 THEN calls AND main = 'message'
        WHEN 5 THEN taken IS NOT NULL
        WHEN 7 THEN main = 'bash'
        ELSE main = 'message' AND json_type(j, '$.message.usage') = 'object'
             AND (j ->> '$.message.usage.input' > 0 OR j ->> '$.message.usage.output' > 0
                  OR j ->> '$.message.usage.cacheRead' > 0 OR j ->> '$.message.usage.cacheWrite' > 0) END
    LEFT JOIN json_each(CASE k.k WHEN 4 THEN j WHEN 5 THEN taken END, CASE k.k WHEN 4 THEN '$.message.content' ELSE '$' END) b
        ON k.k = 5 OR b.type = 'object' AND b.value ->> '$.type' = 'toolCall'
);
DELETE FROM facts;

-- end
SELECT session, rest_ts, rest, turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"', 'error', rest_error,
                   'source', json_fields('kind', kind, 'file', name, 'line', rest_n)), rest_n
FROM file WHERE turn IS NOT NULL AND rest IS NOT NULL;
