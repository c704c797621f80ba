-- importer autogen   version 4
-- SPDX-License-Identifier: Apache-2.0
-- records: document
-- files: *.json *.jsonl
-- recalls: turn.started turn.rolled_back turn.restored
-- split: $.history $
--
-- Conversations of AutoGen: its messages (one a line, or an array of them), the saved state of a
-- team or an agent, and documents with a history, such as Who&When. docs/events.md lists the
-- resulting events; annal/import.h describes the tables that an importer can read.
--
--  (1) The session is named after the file (log_session). A message has the time in its created_at, else the time
--      of the message before. The session's created_at follows in a session.updated once a time is
--      known.
--  (2) A message is message.added. Its role is user for messages of a user or human, except tool
--      results; else the role in the log, or assistant if that is an agent's name, which stays
--      under "extra".
--  (3) ToolCallRequestEvent and ToolCallExecutionEvent are calls and results; so is a
--      CodeExecutionEvent, of the blocks in the CodeGenerationEvent before it. models_usage is
--      counted with its message.
--  (4) In a saved state each agent's model context becomes messages. The id of an event contains
--      the agent and the position, so a larger state adds only the new messages.
--  (5) A message of another session (record_owner: its id, or its time, source and type), as in a
--      log that was saved twice, is an import.record without calls and tokens; parent_session_id
--      names that session.
--  (6) A line with neither id nor time has no identity but its place: lines with the same bytes are
--      messages of their own.
--  (7) A user's message begins a turn, except in a saved state, which repeats it for each agent. A
--      turn that a document lacks, which an earlier state of it had, is rolled back.

-- detect
SELECT max(CASE
    WHEN json_type(json, '$.models_usage') IS NOT NULL AND json_type(json, '$.source') = 'text' THEN 90
    WHEN json_type(json, '$.value.models_usage') IS NOT NULL AND json_type(json, '$.value.source') = 'text' THEN 90
    WHEN json_type(json, '$.value.agent_states') = 'object' THEN 90
    WHEN json_type(json, '$.value.mistake_agent') IS NOT NULL THEN 90
    WHEN json ->> '$.at' = '$.history' AND json_type(json, '$.value.name') = 'text'
         AND json_type(json, '$.value.role') = 'text' THEN 40
    ELSE 0 END) FROM lines

-- repeats

-- once
-- code: the call of the code that was generated last and not executed yet.
CREATE TABLE file (session TEXT, ts INTEGER, made INTEGER, code TEXT, turn TEXT, count INTEGER);
INSERT INTO file SELECT log_session(stem), 1, 0, NULL, NULL, 0 FROM source;
CREATE TABLE turns (session TEXT, turn TEXT, n INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (source TEXT, main TEXT, j TEXT, v TEXT);

-- The messages of the line; name: prefix of the ids of their events.
CREATE TABLE messages (i INTEGER PRIMARY KEY, name TEXT, m TEXT, role TEXT, type TEXT, owner TEXT, source TEXT);
CREATE TABLE continued (session TEXT);

-- The messages with code, and the events of each.
CREATE TABLE codes (row INTEGER, i INTEGER, n INTEGER);
CREATE TRIGGER code AFTER INSERT ON codes BEGIN
    INSERT INTO out
    SELECT NEW.row, 100 * i + 3, session, coalesce(time_us(m ->> '$.created_at'), ts), 'tool.called', name || '.code',
           json_fields('call_id', coalesce(m -> '$.id', json_text(name)), 'tool', '"code"', 'input', m -> '$.code_blocks',
                       'message_id', coalesce(m -> '$.id', json_text(name)), 'turn_id', json_text(turn), 'source', messages.source), NEW.n
    FROM file, messages
    WHERE i = NEW.i AND (messages.type = 'CodeGenerationEvent' AND json_type(m, '$.code_blocks[0]') IS NOT NULL
                         OR code IS NULL AND messages.type = 'CodeExecutionEvent' AND json_type(m, '$.result') = 'object');
    INSERT INTO out
    SELECT NEW.row, 100 * i + 4, session, coalesce(time_us(m ->> '$.created_at'), ts),
           CASE WHEN m ->> '$.result.exit_code' <> 0 THEN 'tool.failed' ELSE 'tool.returned' END, name || '.executed',
           json_fields('call_id', coalesce(code, m -> '$.id', json_text(name)),
                       'success', CASE WHEN m ->> '$.result.exit_code' <> 0 THEN 'false' ELSE 'true' END,
                       'exit_code', m -> '$.result.exit_code', 'output', m -> '$.result.output', 'source', messages.source,
                       'extra', json_remove(m, '$.result')), NEW.n
    FROM file, messages WHERE i = NEW.i AND messages.type = 'CodeExecutionEvent' AND json_type(m, '$.result') = 'object';
    UPDATE file SET code = (SELECT CASE m.type WHEN 'CodeGenerationEvent' THEN coalesce(m.m -> '$.id', json_text(m.name)) END
                            FROM messages m WHERE m.i = NEW.i);
    DELETE FROM codes;
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    DELETE FROM messages;
    INSERT INTO now (j, v, source, main)
    SELECT j, v, json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n, 'record', v -> '$.id'),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' AND json_type(j, '$.index') IS NULL THEN 'meta'
                WHEN json_type(v, '$.content') IS NOT NULL
                     OR v ->> '$.type' = 'CodeExecutionEvent' AND json_type(v, '$.result') = 'object' THEN 'message'
                ELSE 'record' END
    FROM source, (SELECT NEW.json AS j, CASE WHEN json_type(NEW.json, '$.at') = 'text' AND json_type(NEW.json, '$.value') IS NOT NULL
                                        THEN NEW.json -> '$.value' ELSE NEW.json END AS v);
    INSERT INTO messages (i, name, m)
    SELECT 0, CASE WHEN coalesce(v ->> '$.id', v ->> '$.created_at') IS NULL THEN NEW.hash ELSE substr(NEW.hash, 1, 32) END, v
    FROM now WHERE main = 'message'
    UNION ALL
    SELECT row_number() OVER () + 1, 'state.' || a.key || '.' || c.key,
           json_set(c.value, '$.agent', a.key)
    FROM now, json_each(v, '$.agent_states') a, json_each(a.value, '$.agent_state.llm_context.messages') c
    WHERE main = 'meta' AND a.type = 'object' AND c.type = 'object'
    UNION ALL
    SELECT 1000000 + c.key, 'state.' || c.key, c.value FROM now, json_each(v, '$.llm_context.messages') c
    WHERE main = 'meta' AND c.type = 'object';
    UPDATE messages SET type = coalesce(m ->> '$.type', ''),
        role = CASE WHEN lower(coalesce(m ->> '$.role', m ->> '$.source', '')) IN ('user', 'human', 'user_proxy')
                         OR m ->> '$.type' = 'UserMessage' THEN 'user'
                    WHEN m ->> '$.role' IN ('assistant', 'system', 'tool', 'function') THEN m ->> '$.role'
                    WHEN m ->> '$.type' = 'SystemMessage' THEN 'system'
                    ELSE 'assistant' END;
    UPDATE messages SET owner = coalesce('autogen ' || (m ->> '$.id'),
        'autogen ' || (m ->> '$.created_at') || ' ' || (m ->> '$.source') || ' ' || messages.type);
    UPDATE messages SET source = (SELECT CASE WHEN owner IS NULL THEN source
        ELSE substr(source, 1, length(source) - 1) || ',"origin":' || json_text(owner) || '}' END FROM now);
    UPDATE messages SET owner = nullif(record_owner(owner, (SELECT session FROM file)), (SELECT session FROM file));
    UPDATE file SET ts = coalesce((SELECT max(time_us(m ->> '$.created_at')) FROM messages), ts);
    INSERT INTO out
    SELECT NEW.row, 0, session, ts, 'session.created', 'session.created',
           json_fields('id', json_text(session), 'agent_id', '"autogen"', 'status', '"idle"',
                       'title', CASE WHEN main = 'meta' THEN v -> '$.question' END, 'source', source), NEW.n
    FROM file, now WHERE NOT made;
    INSERT INTO out
    SELECT NEW.row, 0, session, ts, 'session.updated', 'session.dated',
           json_fields('set', json_fields('created_at', strftime('"%Y-%m-%dT%H:%M:%S', ts / 1000000, 'unixepoch') || printf('.%06dZ"', ts % 1000000)),
                       'source', source), NEW.n
    FROM file, now WHERE made = 1 AND ts > 1;
    -- 1: created, before any time was known; 2: created_at was set.
    UPDATE file SET made = CASE WHEN ts > 1 THEN 2 ELSE 1 END;
    INSERT INTO out
    SELECT NEW.row, 1, session, ts, CASE main WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END,
           NEW.hash || '.line',
           CASE main WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', CASE main WHEN 'meta' THEN '"document"' ELSE coalesce(v -> '$.type', '"line"') END,
                            'source', source, 'extra', v) END, NEW.n
    FROM file, now WHERE main <> 'message';
    INSERT INTO out
    SELECT NEW.row, 1, session, ts, 'session.updated', 'session.continues',
           json_fields('set', json_fields('parent_session_id', json_text(owner)), 'source', now.source), NEW.n
    FROM file, now, messages WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM continued) LIMIT 1;
    INSERT INTO continued SELECT owner FROM messages WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM continued) LIMIT 1;
    INSERT INTO out
    SELECT NEW.row, 100 * i + 2, session, coalesce(time_us(m ->> '$.created_at'), ts), 'import.record', name || '.message',
           json_fields('kind', '"message"', 'source', json_set(json_remove(messages.source, '$.origin'), '$.copied', json('true')),
                       'extra', m), NEW.n
    FROM file, messages WHERE owner IS NOT NULL;
    DELETE FROM messages WHERE owner IS NOT NULL;
    -- The first message of a line; only a saved state has more.
    INSERT INTO out
    SELECT NEW.row, 1.1, session, coalesce(time_us(m ->> '$.created_at'), ts), 'turn.completed', name || '.turn.ends',
           json_fields('turn_id', json_text(turn), 'reason', '"next_turn"', 'source', now.source), NEW.n
    FROM file, now, messages WHERE i = 0 AND role = 'user' AND messages.type NOT LIKE 'ToolCall%' AND turn IS NOT NULL;
    UPDATE file SET (turn, count) = (SELECT name, count + 1 FROM messages WHERE i = 0)
    WHERE EXISTS (SELECT 1 FROM messages WHERE i = 0 AND role = 'user' AND messages.type NOT LIKE 'ToolCall%');
    INSERT OR IGNORE INTO turns SELECT session, turn, NEW.n FROM file WHERE turn IN (SELECT name FROM messages WHERE i = 0);
    INSERT INTO out
    SELECT NEW.row, 1.2, session, coalesce(time_us(m ->> '$.created_at'), ts), 'turn.started', name || '.turn',
           json_fields('turn_id', json_text(turn), 'sequence', count, 'status', '"running"',
                       'prompt_ref', coalesce(m -> '$.id', json_text(name)), 'source', now.source), NEW.n
    FROM file, now, messages WHERE i = 0 AND turn = name;
    INSERT INTO out
    SELECT NEW.row, 100 * i + 2, session, coalesce(time_us(m ->> '$.created_at'), ts), 'message.added', name || '.message',
           json_fields('id', coalesce(m -> '$.id', json_text(name)), 'role', json_text(role),
               'content', CASE WHEN messages.type IN ('ToolCallRequestEvent', 'ToolCallExecutionEvent')
                                    AND json_type(m, '$.content') = 'array'
                          THEN (SELECT json_group_array(json(m -> c.fullkey)) FROM json_each(m, '$.content') c
                                WHERE NOT (c.type = 'object' AND (json_type(c.value, '$.call_id') IS 'text'
                                           OR (json_type(c.value, '$.arguments') IS NOT NULL
                                               AND json_type(c.value, '$.name') IS 'text'))))
                          ELSE m -> '$.content' END,
               'name', coalesce(m -> '$.name', m -> '$.source', CASE WHEN m ->> '$.role' <> role THEN m -> '$.role' END,
                                m -> '$.agent'),
               'turn_id', CASE WHEN i = 0 THEN json_text(turn) END, 'source', messages.source,
               'extra', json_remove(m, '$.content', CASE WHEN m ->> '$.role' = role THEN '$.role' ELSE '$." "' END)), NEW.n
    FROM file, now, messages WHERE json_type(m, '$.content') IS NOT NULL;
    INSERT INTO codes SELECT NEW.row, i, NEW.n FROM messages WHERE messages.type IN ('CodeGenerationEvent', 'CodeExecutionEvent');
    INSERT INTO out
    SELECT NEW.row, 100 * i + 3 + c.key, session, coalesce(time_us(m ->> '$.created_at'), ts), 'tool.called',
           name || '.call.' || c.key,
           json_fields('call_id', coalesce(c.value -> '$.id', json_text(name || c.key)), 'tool', c.value -> '$.name',
                       'input', c.value -> '$.arguments', 'message_id', coalesce(m -> '$.id', json_text(name)),
                       'source', messages.source,
                       'extra', nullif(json_remove(c.value, '$.id', '$.name', '$.arguments'), '{}')), NEW.n
    FROM file, now, messages, json_each(m, '$.content') c
    WHERE c.type = 'object' AND json_type(c.value, '$.arguments') IS NOT NULL AND json_type(c.value, '$.name') = 'text';
    INSERT INTO out
    SELECT NEW.row, 100 * i + 3 + c.key, session, coalesce(time_us(m ->> '$.created_at'), ts),
           CASE WHEN c.value ->> '$.is_error' THEN 'tool.failed' ELSE 'tool.returned' END, name || '.result.' || c.key,
           json_fields('call_id', c.value -> '$.call_id', 'success', CASE WHEN c.value ->> '$.is_error' THEN 'false' ELSE 'true' END,
                       'output', c.value -> '$.content', 'source', now.source,
                       'extra', json_remove(c.value, '$.call_id', '$.content')), NEW.n
    FROM file, now, messages, json_each(m, '$.content') c
    WHERE c.type = 'object' AND json_type(c.value, '$.call_id') = 'text';
    INSERT INTO out
    SELECT NEW.row, 100 * i + 99, session, coalesce(time_us(m ->> '$.created_at'), ts), 'agent.turn.usage', name || '.usage',
           json_fields('message_id', coalesce(m -> '$.id', json_text(name)), 'input_tokens', m -> '$.models_usage.prompt_tokens',
                       'output_tokens', m -> '$.models_usage.completion_tokens',
                       'turn_id', CASE WHEN i = 0 THEN json_text(turn) END, 'source', messages.source), NEW.n
    FROM file, now, messages WHERE json_type(m, '$.models_usage') = 'object';
END;

-- batch
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY row, k;
DELETE FROM out;

-- end
-- Rule (7). Compute all events before the first is returned.
INSERT INTO out
SELECT 0, 0, session, ts, CASE WHEN gone THEN 'turn.rolled_back' ELSE 'turn.restored' END,
       turn || CASE WHEN gone THEN '.removed.' ELSE '.restored.' END || times,
       json_fields('turn_id', json_text(turn), 'reason', '"rewritten"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', n)), n
FROM (SELECT t.*, s.kind, m.n, NOT EXISTS (SELECT 1 FROM turns u WHERE u.session = t.session AND u.turn = t.turn) AS gone
      FROM source s, (SELECT session, max(n) AS n FROM turns GROUP BY session) m JOIN recorded_turns t ON t.session = m.session AND t.file = s.file
      WHERE EXISTS (SELECT 1 FROM options WHERE name = ':whole'))
WHERE gone <> was_gone;
SELECT session, ts, type, id, NULL, data, n FROM out;
DELETE FROM out;
