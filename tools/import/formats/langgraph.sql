-- importer langgraph   version 4
-- SPDX-License-Identifier: Apache-2.0
-- reads: checkpoints writes msgpack
-- records: stage_* trajectory metadata writes checkpoint*
-- files: *.sqlite *.db *.jsonl
--
-- Checkpoints of LangGraph in SQLite (tables checkpoints and writes), and trajectories whose lines
-- each list all messages so far. docs/events.md lists the resulting events; annal/import.h
-- describes the tables that an importer can read.
--
--  (1) A session is a thread (with its namespace, unless that is empty); for a trajectory, the
--      file. A checkpoint has the time in it; a trajectory has the time in its metadata.
--  (2) Each checkpoint repeats the messages so far. A message becomes an event once, by its id,
--      else by its stage and position; a message that changed under its id becomes another event.
--  (3) Values are msgpack or JSON. An ext of a LangChain message is read as the message itself.
--      Pickled data is never loaded: it is kept as base64.
--  (4) A checkpoint without its messages, and each write, are import.record: nothing is lost.
--  (5) Tokens become an event once a message (usage_metadata).
--  (6) A copied thread, and a subgraph that shares its graph's messages, contain messages of
--      another thread. A message with an id is recognized by its id, its type and its text
--      (record_owner); if another session owns it, it is a record, and so is the result of its
--      call.
--  (7) A user's message in a checkpoint begins a turn and ends the turn before. A checkpoint whose
--      parent is not the checkpoint before it begins a branch: turns whose prompt it lacks are
--      abandoned, and turns that it has are restored.

-- detect
SELECT max(CASE
    WHEN json_type(json, '$.checkpoint_id') = 'text' AND json_type(json, '$.thread_id') = 'text' THEN 95
    WHEN json ->> '$.type' = 'event' AND json ->> '$.messages[0].type' IN ('SystemMessage', 'HumanMessage', 'AIMessage') THEN 85
    ELSE 0 END) FROM lines

-- rows
SELECT json_object('thread_id', thread_id, 'checkpoint_ns', checkpoint_ns, 'checkpoint_id', checkpoint_id,
    'parent_checkpoint_id', parent_checkpoint_id, 'type', type,
    'checkpoint', json(CASE WHEN type = 'msgpack' THEN coalesce(msgpack_json(checkpoint), json_object('$base64', base64(checkpoint)))
                            WHEN type = 'json' AND json_valid(CAST(checkpoint AS TEXT)) THEN CAST(checkpoint AS TEXT)
                            ELSE json_object('$base64', base64(checkpoint)) END),
    'metadata', json(CASE WHEN json_valid(CAST(metadata AS TEXT)) THEN CAST(metadata AS TEXT)
                          ELSE coalesce(msgpack_json(metadata), json_object('$base64', base64(metadata))) END))
FROM checkpoints ORDER BY thread_id, checkpoint_ns, checkpoint_id;

-- rows
SELECT json_object('thread_id', thread_id, 'checkpoint_ns', checkpoint_ns, 'checkpoint_id', checkpoint_id,
    'task_id', task_id, 'idx', idx, 'channel', channel, 'type', type,
    'value', json(CASE WHEN type = 'msgpack' THEN coalesce(msgpack_json(value), json_object('$base64', base64(value)))
                       WHEN type = 'json' AND json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT)
                       WHEN value IS NULL THEN 'null'
                       ELSE json_object('$base64', base64(value)) END))
FROM writes ORDER BY thread_id, checkpoint_ns, checkpoint_id, task_id, idx;

-- copies
ids: SELECT DISTINCT session_id(thread_id || CASE WHEN checkpoint_ns <> '' THEN '.' || checkpoint_ns ELSE '' END), json_array(thread_id, checkpoint_ns) FROM checkpoints
ids: SELECT DISTINCT session_id(thread_id || CASE WHEN checkpoint_ns <> '' THEN '.' || checkpoint_ns ELSE '' END), json_array(thread_id, checkpoint_ns) FROM writes
checkpoint_migrations: 1
*: thread_id IN (SELECT id ->> 0 FROM ids) AND json_array(thread_id, checkpoint_ns) IN ids

-- once
CREATE TABLE file (stem TEXT, ts INTEGER, stage TEXT);
INSERT INTO file SELECT CASE container WHEN 'sqlite' THEN stem ELSE log_session(stem) END, 1, '' FROM source;
CREATE TABLE sessions (session TEXT PRIMARY KEY, ts INTEGER, parent TEXT) WITHOUT ROWID;
-- The last checkpoint of each session, and its turns.
CREATE TABLE lasts (session TEXT PRIMARY KEY, checkpoint TEXT, forked INTEGER) WITHOUT ROWID;
CREATE TABLE turns (i INTEGER PRIMARY KEY, session TEXT, turn TEXT, gone INTEGER, UNIQUE (session, turn));
CREATE TABLE copied_calls (session TEXT, call TEXT, PRIMARY KEY (session, call)) WITHOUT ROWID;
CREATE TABLE seen (session TEXT, key TEXT, m TEXT, PRIMARY KEY (session, key)) WITHOUT ROWID;
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (source TEXT, session TEXT, ts INTEGER, main TEXT, j TEXT);

-- The messages of the line; name: prefix of the ids of their events; fresh: new or changed.
CREATE TABLE messages (i INTEGER PRIMARY KEY, m TEXT, name TEXT, type TEXT, fresh INTEGER, known INTEGER,
                       origin TEXT, owner TEXT, source TEXT, turn TEXT);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    DELETE FROM messages;
    INSERT INTO now (j, source, session, ts, main)
    SELECT j, json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n, 'record', j -> '$.checkpoint_id'),
           session_id(coalesce((j ->> '$.thread_id') || CASE WHEN j ->> '$.checkpoint_ns' <> '' THEN '.' || (j ->> '$.checkpoint_ns')
                                                       ELSE '' END, f.stem)),
           coalesce(time_us(j ->> '$.checkpoint.ts'), time_us(j ->> '$.timestamp_readable'), time_us(j ->> '$.timestamp')),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN json_type(j, '$.checkpoint_id') = 'text' AND json_type(j, '$.checkpoint') IS NOT NULL THEN 'checkpoint'
                WHEN json_type(j, '$.messages') = 'array' THEN 'trajectory'
                ELSE 'record' END
    FROM source, file f, (SELECT NEW.json AS j);
    UPDATE file SET stage = coalesce(NEW.json ->> '$.stage', stage), ts = coalesce((SELECT ts FROM now), ts);
    UPDATE now SET ts = coalesce(ts, (SELECT s.ts FROM sessions s WHERE s.session = now.session), (SELECT ts FROM file));
    INSERT INTO messages (i, m)
    SELECT e.key, CASE WHEN json_type(e.value, '$."$ext"') = 'integer' AND json_type(e.value, '$.data[2]') = 'object'
                       THEN e.value -> '$.data[2]'
                       WHEN json_type(e.value, '$.kwargs') = 'object' THEN e.value -> '$.kwargs' ELSE e.value END
    FROM now, json_each(j, CASE main WHEN 'checkpoint' THEN '$.checkpoint.channel_values.messages' ELSE '$.messages' END) e
    WHERE main IN ('checkpoint', 'trajectory') AND e.type = 'object';
    UPDATE messages SET
        name = coalesce(m ->> '$.id', (SELECT stage FROM file) || '.' || i),
        type = CASE coalesce(m ->> '$.type', m ->> '$.role') WHEN 'HumanMessage' THEN 'user' WHEN 'human' THEN 'user'
               WHEN 'user' THEN 'user' WHEN 'AIMessage' THEN 'assistant' WHEN 'ai' THEN 'assistant' WHEN 'assistant' THEN 'assistant'
               WHEN 'ToolMessage' THEN 'tool' WHEN 'tool' THEN 'tool' ELSE 'system' END;
    UPDATE messages SET
        known = EXISTS (SELECT 1 FROM seen s, now n WHERE s.session = n.session AND s.key = name),
        fresh = NOT EXISTS (SELECT 1 FROM seen s, now n WHERE s.session = n.session AND s.key = name AND s.m = messages.m);
    INSERT INTO out
    SELECT NEW.row, 0, session, ts, 'session.created', 'session.created',
           json_fields('id', json_text(session), 'agent_id', '"langgraph"', 'status', '"idle"', 'source', source), NEW.n
    FROM now WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = now.session);
    UPDATE messages SET origin = 'langgraph ' || (m ->> '$.id') || ' ' || type || ' ' || substr(coalesce(m ->> '$.content', ''), 1, 200)
    WHERE fresh AND type <> 'tool';
    UPDATE messages SET owner = nullif(record_owner(origin, (SELECT session FROM now)), (SELECT session FROM now)),
        source = (SELECT CASE WHEN origin IS NULL THEN source
                         ELSE substr(source, 1, length(source) - 1) || ',"origin":' || json_text(origin) || '}' END FROM now)
    WHERE fresh;
    INSERT OR IGNORE INTO copied_calls
    SELECT session, c.value ->> '$.id' FROM now, messages, json_each(m, '$.tool_calls') c
    WHERE fresh AND owner IS NOT NULL AND c.type = 'object' AND c.value ->> '$.id' IS NOT NULL;
    UPDATE messages SET owner = (SELECT c.session FROM copied_calls c, now n
                                 WHERE c.session = n.session AND c.call = m ->> '$.tool_call_id')
    WHERE fresh AND type = 'tool';
    INSERT INTO out
    SELECT NEW.row, 100 * i + 2, session, ts, 'import.record', 'message.' || name || CASE WHEN known THEN '.' || NEW.hash ELSE '' END,
           json_fields('kind', '"message"', 'source', substr(messages.source, 1, length(messages.source) - 1) || ',"copied":true}',
                       'extra', m), NEW.n
    FROM now, messages WHERE fresh AND owner IS NOT NULL;
    INSERT INTO out
    SELECT NEW.row, 0.5, n.session, n.ts, 'session.updated', 'session.parent',
           json_fields('set', json_fields('parent_session_id', json_text(min(owner))), 'source', n.source), NEW.n
    FROM now n, messages WHERE fresh AND type <> 'tool' AND owner IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = n.session AND s.parent IS NOT NULL) GROUP BY n.session;
    INSERT INTO sessions SELECT session, ts, (SELECT min(owner) FROM messages WHERE fresh AND type <> 'tool')
    FROM now WHERE true ON CONFLICT (session) DO UPDATE SET ts = excluded.ts, parent = coalesce(parent, excluded.parent);
    INSERT INTO out
    SELECT NEW.row, 1, session, ts, CASE main WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END,
           NEW.hash || '.line',
           CASE main WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', coalesce(CASE main WHEN 'record' THEN j -> '$.type' END, json_text(main)), 'source', source,
                            'extra', CASE main WHEN 'checkpoint' THEN json_remove(j, '$.checkpoint.channel_values.messages')
                                     WHEN 'trajectory' THEN json_remove(j, '$.messages') ELSE j END) END, NEW.n
    FROM now;
    -- Turns.
    INSERT INTO lasts SELECT session, j ->> '$.checkpoint_id', 0 FROM now WHERE main = 'checkpoint'
    ON CONFLICT (session) DO UPDATE SET checkpoint = excluded.checkpoint,
        forked = NEW.json ->> '$.parent_checkpoint_id' <> checkpoint;
    INSERT INTO out
    SELECT NEW.row, 0.7, n.session, n.ts, CASE WHEN gone THEN 'turn.restored' ELSE 'turn.abandoned' END,
           turn || CASE WHEN gone THEN '.restored.' ELSE '.abandoned.' END || (j ->> '$.checkpoint_id'),
           json_fields('turn_id', json_text(turn), 'reason', '"branch"', 'source', source), NEW.n
    FROM now n JOIN lasts l ON l.session = n.session AND l.forked JOIN turns t ON t.session = n.session
    WHERE main = 'checkpoint' AND EXISTS (SELECT 1 FROM messages)
      AND gone = EXISTS (SELECT 1 FROM messages m WHERE m.name = t.turn);
    UPDATE turns SET gone = NOT gone
    WHERE session = (SELECT l.session FROM now n JOIN lasts l ON l.session = n.session AND l.forked WHERE main = 'checkpoint')
      AND EXISTS (SELECT 1 FROM messages) AND gone = EXISTS (SELECT 1 FROM messages m WHERE m.name = turns.turn);
    INSERT INTO out
    SELECT NEW.row, 100 * i + 0.3, n.session, n.ts, 'turn.completed', p.turn || '.ends',
           json_fields('turn_id', json_text(p.turn), 'reason', '"next_turn"', 'source', n.source), NEW.n
    FROM now n, messages m, (SELECT t.turn, max(t.i) FROM turns t, now o WHERE t.session = o.session AND NOT t.gone) p
    WHERE main = 'checkpoint' AND fresh AND NOT known AND owner IS NULL AND type = 'user' AND p.turn IS NOT NULL;
    INSERT INTO out
    SELECT NEW.row, 100 * i + 0.6, n.session, n.ts, 'turn.started', name || '.begins',
           json_fields('turn_id', json_text(name), 'status', '"running"', 'prompt_ref', json_text(name), 'source', n.source), NEW.n
    FROM now n, messages WHERE main = 'checkpoint' AND fresh AND NOT known AND owner IS NULL AND type = 'user';
    INSERT OR IGNORE INTO turns (session, turn, gone)
    SELECT n.session, name, 0 FROM now n, messages
    WHERE main = 'checkpoint' AND fresh AND NOT known AND owner IS NULL AND type = 'user' ORDER BY i;
    UPDATE messages SET turn = (SELECT t.turn FROM turns t, now n WHERE t.session = n.session AND t.turn = (
        SELECT u.name FROM messages u WHERE u.type = 'user' AND u.i <= messages.i ORDER BY u.i DESC LIMIT 1)) WHERE fresh;
    INSERT INTO out
    SELECT NEW.row, 100 * i + 2, session, ts,
           CASE type WHEN 'tool' THEN CASE WHEN m ->> '$.status' = 'error' THEN 'tool.failed' ELSE 'tool.returned' END
                ELSE 'message.added' END, 'message.' || name || CASE WHEN known THEN '.' || NEW.hash ELSE '' END,
           CASE type
           WHEN 'tool' THEN json_fields('call_id', coalesce(m -> '$.tool_call_id', json_text(name)), 'output', m -> '$.content',
               'turn_id', json_text(turn), 'source', messages.source, 'extra', json_remove(m, '$.tool_call_id', '$.content'))
           ELSE json_fields('id', json_text(name), 'role', json_text(type), 'content', coalesce(m -> '$.content', '""'),
               'model', coalesce(m -> '$.response_metadata.model_name', m -> '$.response_metadata.model'), 'turn_id', json_text(turn),
               'source', messages.source, 'extra', json_remove(m, '$.id', '$.content')) END, NEW.n
    FROM now, messages WHERE fresh AND owner IS NULL;
    INSERT INTO out
    SELECT NEW.row, 100 * i + 3 + c.key, session, ts, 'tool.called',
           'call.' || coalesce(c.value ->> '$.id', name || '.' || c.key),
           json_fields('call_id', coalesce(c.value -> '$.id', json_text(name || '.' || c.key)), 'tool', c.value -> '$.name',
                       'input', c.value -> '$.args', 'message_id', json_text(name), 'turn_id', json_text(turn), 'source', messages.source), NEW.n
    FROM now, messages, json_each(m, '$.tool_calls') c WHERE fresh AND owner IS NULL AND NOT known AND c.type = 'object';
    INSERT INTO out
    SELECT NEW.row, 100 * i + 99, session, ts, 'agent.turn.usage', 'usage.' || name,
           json_fields('message_id', json_text(name),
                       'model', coalesce(m -> '$.response_metadata.model_name', m -> '$.response_metadata.model'),
                       'input_tokens', coalesce(m -> '$.usage_metadata.input_tokens', m -> '$.response_metadata.token_usage.prompt_tokens'),
                       'output_tokens', coalesce(m -> '$.usage_metadata.output_tokens', m -> '$.response_metadata.token_usage.completion_tokens'),
                       'cached_input_tokens', coalesce(m -> '$.usage_metadata.input_token_details.cache_read',
                           m -> '$.response_metadata.token_usage.prompt_tokens_details.cached_tokens'),
                       'cache_write_tokens', m -> '$.usage_metadata.input_token_details.cache_creation',
                       'reasoning_output_tokens', m -> '$.usage_metadata.output_token_details.reasoning',
                       'turn_id', json_text(turn), 'source', messages.source), NEW.n
    FROM now, messages WHERE fresh AND owner IS NULL AND NOT known
      AND (json_type(m, '$.usage_metadata') = 'object' OR json_type(m, '$.response_metadata.token_usage.prompt_tokens') = 'integer');
    INSERT INTO seen SELECT n.session, name, m FROM now n, messages WHERE fresh
    ON CONFLICT (session, key) DO UPDATE SET m = excluded.m;
END;

-- batch
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY row, k;
DELETE FROM out;
