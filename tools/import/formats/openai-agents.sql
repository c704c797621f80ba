-- importer openai-agents   version 4
-- SPDX-License-Identifier: Apache-2.0
-- reads: agent_messages
-- records: agent_sessions message_structure turn_usage
-- files: *.db *.sqlite
-- recalls: agent.turn.usage turn.started turn.rolled_back turn.restored
--
-- Sessions of the OpenAI Agents SDK: SQLite with the tables agent_sessions and agent_messages, and
-- the tables of its advanced sessions (message_structure, turn_usage). docs/events.md lists the
-- resulting events; annal/import.h describes the tables that an importer can read.
--
--  (1) A row of agent_messages is a line, by id. Its time is the time of the row, in whole seconds.
--  (2) Messages become message.added, function calls and their outputs tool.called and
--      tool.returned, reasoning message.added; anything else, and text that is not JSON, is
--      import.record.
--  (3) A user's message begins a turn, and an answer ends it. A turn of an earlier import that the
--      database no longer has was taken back (pop_item).
--  (4) turn_usage has the tokens of each turn and branch, a row that the SDK replaces when the turn
--      goes on: the difference to what earlier imports recorded of it is an event of the end. Other
--      rows are import.record.
--  (5) Items that were added to another session are recognized by their own id, or else by their
--      time and content (record_owner) if they are older than the session, and are records there; so is the result of such a call.
--      __fake_id__ does not count as an id.

-- detect
SELECT max(CASE WHEN json ->> '$.table' = 'agent_messages' AND json_type(json, '$.row.message_data') IS NOT NULL THEN 95
                WHEN json ->> '$.table' IN ('agent_sessions', 'message_structure') THEN 60 ELSE 0 END) FROM lines

-- tables
agent_sessions agent_messages turn_usage

-- copies
ids: SELECT DISTINCT session_id(session_id), session_id FROM agent_messages
ids: SELECT session_id(session_id), session_id FROM agent_sessions
*: session_id IN ids

-- once
-- Outputs that the SDK passes to the model for calls that failed.
CREATE VIEW failures (pattern) AS VALUES
    ('An error occurred while running the tool. Please try again. Error: *'),
    ('An error occurred while parsing tool arguments. Please try again with valid JSON. Error: *'),
    ('Tool execution was not approved.*'),
    ('Tool ''*'' timed out after * seconds.*');

CREATE TABLE file (session TEXT, ts INTEGER);
INSERT INTO file SELECT session_id(stem), 1 FROM source;
-- rest_ts, rest_n: an answer is the last of the turn.
CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, parent TEXT, rest_ts INTEGER, rest_n INTEGER) WITHOUT ROWID;
-- When a session was created.
CREATE TABLE births (session TEXT PRIMARY KEY, at TEXT) WITHOUT ROWID;
CREATE TABLE copied_calls (session TEXT, call TEXT, PRIMARY KEY (session, call)) WITHOUT ROWID;
-- The row of each turn; key: its branch and turn.
CREATE TABLE sums (session TEXT, key TEXT, ts INTEGER, data TEXT, n INTEGER, PRIMARY KEY (session, key)) WITHOUT ROWID;
CREATE VIEW counted AS
SELECT session, coalesce(data ->> '$.extra.branch_id', '') || '.' || (data ->> '$.extra.user_turn_number') AS key, count(*) AS times,
       max(ts) AS ts, sum(coalesce(data ->> '$.input_tokens', 0)) AS input, sum(coalesce(data ->> '$.output_tokens', 0)) AS output,
       sum(coalesce(data ->> '$.cached_input_tokens', 0)) AS cached, sum(coalesce(data ->> '$.requests', 1)) AS requests
FROM recorded WHERE type = 'agent.turn.usage' AND data ->> '$.extra.user_turn_number' IS NOT NULL GROUP BY 1, 2;
-- The turns of the log, to find those that it no longer has.
CREATE TABLE live (session TEXT, turn TEXT, ts INTEGER, n INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER, formerly TEXT);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (mid TEXT, source TEXT, session TEXT, ts INTEGER, turn TEXT, main TEXT,
                  origin TEXT, owner TEXT, j TEXT, r TEXT, m TEXT);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, r, m, mid, source, session, ts)
    SELECT j, j -> '$.row', CASE WHEN json_valid(j ->> '$.row.message_data') THEN json(j ->> '$.row.message_data') END,
           'm' || (j ->> '$.row.id'),
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n, 'record', j -> '$.row.id'),
           session_id(coalesce(j ->> '$.row.session_id', f.session)),
           coalesce(time_us(replace(j ->> '$.row.created_at', ' ', 'T')), f.ts)
    FROM source, file f, (SELECT NEW.json AS j);
    UPDATE file SET ts = (SELECT ts FROM now);
    INSERT OR REPLACE INTO births
    SELECT session, r ->> '$.created_at' FROM now WHERE j ->> '$.table' = 'agent_sessions' AND r ->> '$.created_at' IS NOT NULL;
    UPDATE now SET main = CASE
        WHEN j IS NULL THEN 'unreadable'
        WHEN j ->> '$.table' = 'turn_usage' THEN 'usage'
        WHEN m IS NULL THEN 'record'
        WHEN m ->> '$.type' GLOB '*_call' THEN 'call'
        WHEN m ->> '$.type' GLOB '*_call_output' THEN 'result'
        WHEN m ->> '$.type' = 'reasoning' THEN 'reasoning'
        WHEN json_type(m, '$.role') = 'text' AND json_type(m, '$.content') IS NOT NULL THEN 'message'
        ELSE 'record' END;
    UPDATE now SET origin = 'openai-agents ' || CASE
        WHEN main = 'usage' THEN 'usage ' || (r ->> '$.created_at') || ' ' || coalesce(r ->> '$.input_tokens', '') || ' '
            || coalesce(r ->> '$.output_tokens', '') || ' ' || coalesce(r ->> '$.user_turn_number', '')
        ELSE coalesce(nullif(m ->> '$.id', '__fake_id__'), r ->> '$.created_at') || ' ' || coalesce(m ->> '$.call_id', '')
            || ' ' || coalesce(m ->> '$.role', main) || ' ' || substr(coalesce(m ->> '$.content', m ->> '$.arguments', ''), 1, 200) END
    WHERE main IN ('usage', 'call', 'reasoning', 'message');
    UPDATE now SET owner = nullif(record_owner(origin, session), session),
        source = substr(source, 1, length(source) - 1) || ',"origin":' || json_text(origin) || '}'
    WHERE origin IS NOT NULL;
    UPDATE now SET owner = NULL
    WHERE main <> 'usage' AND coalesce(m ->> '$.id', '__fake_id__') = '__fake_id__'
      AND r ->> '$.created_at' >= (SELECT b.at FROM births b WHERE b.session = now.session);
    INSERT OR IGNORE INTO copied_calls SELECT session, m ->> '$.call_id' FROM now
    WHERE main = 'call' AND owner IS NOT NULL AND m ->> '$.call_id' IS NOT NULL;
    UPDATE now SET main = 'record', source = substr(source, 1, length(source) - 1) || ',"copied":true}'
    WHERE owner IS NOT NULL OR main = 'result' AND EXISTS (
        SELECT 1 FROM copied_calls c WHERE c.session = now.session AND c.call = m ->> '$.call_id');
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, session, ts, 'session.created', 'session.created',
           json_fields('id', json_text(session), 'agent_id', '"openai-agents"', 'provider', '"openai"', 'status', '"idle"',
                       'source', source), NEW.n
    FROM now WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = now.session);
    INSERT OR IGNORE INTO sessions (session, turns) SELECT session, 0 FROM now;
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 1, n.session, n.ts, 'session.updated', 'session.parent',
           json_fields('set', json_fields('parent_session_id', json_text(owner)),
                       'source', json_remove(source, '$.origin', '$.copied')), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE owner IS NOT NULL AND s.parent IS NULL;
    UPDATE sessions SET parent = coalesce(parent, (SELECT owner FROM now)) WHERE session = (SELECT session FROM now);
    INSERT INTO out
    SELECT NEW.row, 1, n.session, coalesce(s.rest_ts, n.ts), 'turn.completed', s.turn || '.ended',
           json_fields('turn_id', json_text(s.turn), 'reason', CASE WHEN s.rest_ts IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'source', source), NEW.n, mid || '.ends'
    FROM now n JOIN sessions s USING (session) WHERE main = 'message' AND m ->> '$.role' = 'user' AND s.turn IS NOT NULL;
    UPDATE sessions SET turn = (SELECT mid FROM now), turns = turns + 1
    WHERE session = (SELECT session FROM now WHERE main = 'message' AND m ->> '$.role' = 'user');
    INSERT OR IGNORE INTO live SELECT session, mid, ts, NEW.n FROM now WHERE main = 'message' AND m ->> '$.role' = 'user';
    UPDATE sessions SET (rest_ts, rest_n) = (
        SELECT CASE WHEN main = 'message' AND m ->> '$.role' = 'assistant' THEN ts END, NEW.n FROM now)
    WHERE session = (SELECT session FROM now WHERE main IN ('message', 'call', 'result', 'reasoning'));
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 2, n.session, n.ts, 'turn.started', mid || '.begins',
           json_fields('turn_id', json_text(mid), 'sequence', s.turns, 'status', '"running"', 'prompt_ref', json_text(mid),
                       'source', source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE main = 'message' AND m ->> '$.role' = 'user';
    UPDATE now SET turn = (SELECT s.turn FROM sessions s WHERE s.session = now.session);
    INSERT INTO out
    SELECT NEW.row, 3, session, ts,
           CASE main WHEN 'message' THEN 'message.added' WHEN 'reasoning' THEN 'message.added' WHEN 'call' THEN 'tool.called'
                WHEN 'result' THEN CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END WHEN 'usage' THEN 'agent.turn.usage'
                WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END,
           CASE WHEN main = 'usage' AND r ->> '$.user_turn_number' IS NOT NULL
                THEN 'usage.' || coalesce(r ->> '$.branch_id', '') || '.' || (r ->> '$.user_turn_number') ELSE NEW.hash || '.3' END,
           CASE main
           WHEN 'message' THEN json_fields('id', json_text(mid), 'role', m -> '$.role', 'content', m -> '$.content',
               'turn_id', json_text(turn), 'source', source,
               'extra', json_fields('row', json_remove(r, '$.message_data'), 'item', json_remove(m, '$.role', '$.content')))
           WHEN 'reasoning' THEN json_fields('id', json_text(mid), 'role', '"assistant"', 'content', '[' || m || ']',
               'turn_id', json_text(turn), 'source', source, 'extra', json_fields('row', json_remove(r, '$.message_data')))
           WHEN 'call' THEN json_fields('call_id', coalesce(m -> '$.call_id', m -> '$.id', json_text(mid)),
               'tool', coalesce(m -> '$.name', m -> '$.type'), 'input', coalesce(m -> '$.arguments', m -> '$.action'),
               'turn_id', json_text(turn), 'source', source,
               'extra', json_fields('row', json_remove(r, '$.message_data'),
                   'item', json_remove(m, '$.call_id', '$.name', '$.arguments',
                       CASE WHEN json_type(m, '$.arguments') IS NULL THEN '$.action' ELSE '$." "' END)))
           WHEN 'result' THEN json_fields('call_id', coalesce(m -> '$.call_id', json_text(mid)),
               'success', CASE WHEN failed THEN 'false' END, 'exit_code', code, 'output', m -> '$.output',
               'turn_id', json_text(turn), 'source', source,
               'extra', json_fields('row', json_remove(r, '$.message_data'), 'item', json_remove(m, '$.call_id', '$.output')))
           WHEN 'usage' THEN json_fields('input_tokens', nullif(r -> '$.input_tokens', 'null'),
               'output_tokens', nullif(r -> '$.output_tokens', 'null'), 'requests', nullif(r -> '$.requests', 'null'),
               -- The tokens are a sum: the length of each prompt is unknown.
               'prompt_tokens', CASE WHEN r ->> '$.requests' > 1 THEN -1 END,
               'cached_input_tokens', CASE WHEN json_valid(r ->> '$.input_tokens_details')
                                      THEN (r ->> '$.input_tokens_details') -> '$.cached_tokens' END,
               'source', source, 'extra', r)
           WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', coalesce(m -> '$.type', j -> '$.table', '"line"'), 'source', source, 'extra', j) END, NEW.n,
           CASE WHEN main = 'usage' THEN NEW.hash || '.3' END
    FROM (SELECT *, m ->> '$.status' IN ('failed', 'incomplete') OR coalesce(code <> 0, 0)
                    OR m ->> '$.output[0].outcome.type' = 'timeout'
                    OR EXISTS (SELECT 1 FROM failures
                               WHERE coalesce(CASE json_type(m, '$.output') WHEN 'text' THEN m ->> '$.output' END,
                                              m ->> '$.output[0].text', m ->> '$.output.text') GLOB pattern) AS failed
          FROM (SELECT *, coalesce((SELECT max(o.value ->> '$.outcome.exit_code') FROM json_each(m, '$.output') o
                                    WHERE o.type = 'object' AND json_type(o.value, '$.outcome.exit_code') = 'integer'),
                                   CASE WHEN m ->> '$.type' = 'local_shell_call_output' AND json_valid(m ->> '$.output')
                                        THEN (m ->> '$.output') ->> '$.metadata.exit_code' END) AS code FROM now));
    -- A call that the provider ran contains its result.
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 4, session, ts,
           CASE WHEN m ->> '$.status' IN ('failed', 'incomplete') OR coalesce(json_type(m, '$.error'), 'null') <> 'null'
                THEN 'tool.failed' ELSE 'tool.returned' END, NEW.hash || '.4',
           json_fields('call_id', coalesce(m -> '$.call_id', m -> '$.id', json_text(mid)),
               'output', coalesce(nullif(m -> '$.output', 'null'), nullif(m -> '$.error', 'null'), nullif(m -> '$.results', 'null')),
               'turn_id', json_text(turn), 'source', source), NEW.n
    FROM now WHERE main = 'call' AND m ->> '$.type' IN ('mcp_call', 'web_search_call', 'file_search_call', 'code_interpreter_call',
                                                       'image_generation_call')
      AND coalesce(m ->> '$.status', '') NOT IN ('in_progress', 'searching', 'interpreting', 'calling', 'generating');
END;

-- batch
INSERT OR REPLACE INTO sums
SELECT session, substr(id, 7), ts, data, n FROM out WHERE type = 'agent.turn.usage' AND id GLOB 'usage.*';
SELECT session, ts, type, id, NULL, data, n, formerly FROM out ORDER BY row, k;
DELETE FROM out;

-- end
INSERT INTO out (row, k, session, ts, type, id, data, n)
SELECT 0, 0, session, ts, 'agent.turn.usage', 'usage.' || key || '.' || (times + 1),
       json_fields('input_tokens', nullif(input, 0), 'output_tokens', nullif(output, 0), 'requests', requests,
                   'prompt_tokens', CASE WHEN data ->> '$.requests' > 1 THEN -1 END,
                   'cached_input_tokens', nullif(cached, 0), 'source', data -> '$.source', 'extra', data -> '$.extra'), n
FROM (SELECT s.session, s.ts, s.key, s.data, s.n, c.times, s.data ->> '$.input_tokens' - c.input AS input,
             s.data ->> '$.output_tokens' - c.output AS output, s.data ->> '$.cached_input_tokens' - c.cached AS cached,
             coalesce(s.data ->> '$.requests', c.requests) - c.requests AS requests
      FROM sums s JOIN counted c USING (session, key) WHERE s.ts >= c.ts)
WHERE input <> 0 OR output <> 0 OR cached <> 0 OR requests <> 0;
-- Turns of earlier imports that the log no longer has were taken back.
INSERT INTO out (row, k, session, ts, type, id, data, n) SELECT 0, 1, session, ts, type, id, data, n FROM removed_turns;
SELECT session, ts, type, id, NULL, data, n, NULL FROM out ORDER BY n;
DELETE FROM out;
SELECT session, rest_ts, 'turn.completed', turn || '.ended', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', rest_n)), rest_n
FROM sessions, source WHERE turn IS NOT NULL AND rest_ts IS NOT NULL ORDER BY rest_n;
