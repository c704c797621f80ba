-- importer zed   version 1
-- SPDX-License-Identifier: Apache-2.0
-- reads: threads
-- records: message
-- files: threads.db
-- places: $XDG_DATA_HOME/zed/threads ~/.local/share/zed/threads ~/Library/Application?Support/Zed/threads
--
-- Threads of Zed's own agent: the table threads of its threads.db, each row a document of JSON, mostly
-- under zstd. docs/events.md lists the resulting events; annal/import.h describes the tables that an
-- importer can read.
--
-- The form was learnt from zed-industries/zed 0642ec7e4 (GPL-3.0: crates/agent/src/db.rs and the
-- messages of that crate, version 0.3.0 of a thread), and from the readers of kenn-io/agentsview
-- 538600744 (MIT) and vshulcz/deja-vu b264ec72 (MIT). No database of the program was found in public:
-- no number was compared with a recorded thread. Only the database in the tests of deja-vu was read.
--
--  (1) A session is a row of threads; a sub-agent names its parent. Messages have no times: all have
--      the time when the thread was created, else changed.
--  (2) A message is {"User": …} or {"Agent": …}, before version 0.3.0 {"role": …, "segments": …}. A
--      message of the user begins a turn. An answer without a call ends it.
--  (3) ToolUse is a call, and tool_results of the same message has its result, which is a failure if it
--      has is_error.
--  (4) cumulative_token_usage is the sum of the thread: input is without tokens of the cache. It is one
--      event, which is not added again when it grows.
--  (5) Zed rewrites a thread as it grows. A message is known by its place and the number of its texts:
--      one that grew is a message again, its calls and results are not.
--  (6) The first event of a message contains the rest of it under "extra".

-- detect
SELECT max(CASE
    WHEN json ->> '$.table' = 'thread' AND json_type(json, '$.row.data_type') IS NOT NULL AND json_type(json, '$.row.summary') IS NOT NULL THEN 95
    ELSE 0 END) FROM lines

-- rows
-- Older databases lack some columns; "missing" names them, and a row then has NULL there.
SELECT json_object('table', 'thread', 'row', json_object('id', id, 'summary', summary, 'updated_at', updated_at, 'data_type', data_type,
                       'parent_id', parent, 'folder_paths', folders, 'created_at', created),
                   'more', json(CASE WHEN json_valid(d) THEN json_remove(d, '$.messages') END), 'text', CASE WHEN NOT json_valid(d) THEN d END,
                   'base64', CASE WHEN d IS NULL THEN base64(CAST(data AS BLOB)) END)
FROM (SELECT t.rowid AS at, t.id, t.summary, t.updated_at, t.data_type, t.data,
             (SELECT parent_id FROM threads u WHERE u.rowid = t.rowid) AS parent,
             (SELECT folder_paths FROM threads u WHERE u.rowid = t.rowid) AS folders,
             (SELECT created_at FROM threads u WHERE u.rowid = t.rowid) AS created,
             CASE t.data_type WHEN 'zstd' THEN unzstd(t.data) ELSE CAST(t.data AS TEXT) END AS d
      FROM threads t, (SELECT NULL AS parent_id, NULL AS folder_paths, NULL AS created_at) missing)
ORDER BY at;
SELECT json_object('table', 'message', 'thread', t.id, 'i', m.key, 'value', json(CASE WHEN m.type IN ('object', 'array') THEN m.value ELSE json_quote(m.value) END))
FROM (SELECT rowid AS at, id, CASE data_type WHEN 'zstd' THEN unzstd(data) ELSE CAST(data AS TEXT) END AS d FROM threads) t,
     json_each(CASE WHEN json_valid(d) THEN d ELSE 'null' END, '$.messages') m
ORDER BY at, m.key;

-- copies
ids: SELECT session_id(id), id FROM threads
threads: id IN ids

-- once
-- rest_ts, rest_n: an answer without a call is the last of the turn.
CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER, model TEXT, ts INTEGER) WITHOUT ROWID;
CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, role TEXT, id TEXT, session TEXT, ts INTEGER, source TEXT, said TEXT, v TEXT, j TEXT);

-- The events of a row. what: user: begins a turn; answer: may end it; busy: it continues; meta: of the
-- session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT n.session, NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(n.session), 'agent_id', '"zed"', 'status', '"idle"', 'source', n.source), NEW.n
    FROM now n WHERE NEW.what <> 'meta' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = n.session);
    INSERT OR IGNORE INTO sessions (session, turns) SELECT n.session, 0 FROM now n;
    INSERT INTO out
    SELECT n.session, coalesce(s.rest_ts, NEW.ts), 'turn.completed', s.turn || '.ends',
           json_fields('turn_id', json_text(s.turn), 'reason', CASE WHEN s.rest_ts IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'source', n.source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE NEW.what = 'user' AND s.turn IS NOT NULL;
    INSERT INTO out
    SELECT n.session, NEW.ts, 'turn.started', NEW.id || '.begins',
           json_fields('turn_id', json_text(NEW.id), 'sequence', s.turns + 1, 'status', '"running"',
                       'prompt_ref', json_text(NEW.id), 'source', n.source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE NEW.what = 'user';
    UPDATE sessions SET turn = NEW.id, turns = turns + 1 WHERE NEW.what = 'user' AND session = (SELECT n.session FROM now n);
    INSERT INTO out
    SELECT n.session, NEW.ts, NEW.type, NEW.id,
           substr(NEW.data, 1, length(NEW.data) - 1)
           || CASE NEW.what WHEN 'meta' THEN '' ELSE coalesce(',"turn_id":' || json_text(s.turn), '') END
           || ',"source":' || n.source || '}', NEW.n
    FROM now n JOIN sessions s USING (session);
    UPDATE sessions SET rest_ts = CASE NEW.what WHEN 'answer' THEN NEW.ts END, rest_n = NEW.n
    WHERE NEW.what IN ('user', 'answer', 'busy') AND session = (SELECT n.session FROM now n);
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, main, session, v, role, source)
    SELECT j, CASE WHEN j IS NULL THEN 'unreadable' WHEN j ->> '$.table' = 'thread' THEN 'meta'
                   WHEN j ->> '$.table' = 'message' AND role IS NOT NULL THEN 'message' ELSE 'record' END,
           coalesce(session_id(CASE j ->> '$.table' WHEN 'thread' THEN CAST(j ->> '$.row.id' AS TEXT) ELSE CAST(j ->> '$.thread' AS TEXT) END), session_id(stem)),
           CASE role WHEN 'User' THEN j -> '$.value.User' WHEN 'Agent' THEN j -> '$.value.Agent' ELSE j -> '$.value' END, role,
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n, 'record', CASE WHEN json_type(j, '$.i') = 'integer' THEN json_text(j ->> '$.i') END)
    FROM source, (SELECT j, CASE WHEN json_type(j, '$.value.User') = 'object' THEN 'User' WHEN json_type(j, '$.value.Agent') = 'object' THEN 'Agent'
                                 WHEN json_type(j, '$.value.segments') = 'array' THEN CASE j ->> '$.value.role' WHEN 'user' THEN 'user' WHEN 'assistant' THEN 'assistant' ELSE 'system' END
                                 END AS role FROM (SELECT NEW.json AS j));
    INSERT OR IGNORE INTO sessions (session, turns, ts)
    SELECT n.session, NULL, coalesce(time_us(n.j ->> '$.row.created_at'), time_us(n.j ->> '$.row.updated_at'), 1) FROM now n WHERE n.main = 'meta';
    UPDATE now SET ts = coalesce((SELECT s.ts FROM sessions s WHERE s.session = now.session), 1),
        id = CASE main WHEN 'message' THEN 'message.' || (j ->> '$.i') ELSE NEW.hash END,
        -- The blocks without calls. A thought becomes {"thinking": …}.
        said = CASE main WHEN 'message' THEN (
            SELECT json_group_array(json(CASE
                       WHEN b.type = 'text' THEN json_text(b.value)
                       WHEN b.type <> 'object' THEN coalesce(b.value, 'null')
                       WHEN json_type(b.value, '$.Text') = 'text' THEN json_fields('type', '"text"', 'text', b.value -> '$.Text', 'extra', nullif(json_remove(b.value, '$.Text'), '{}'))
                       WHEN json_type(b.value, '$.Thinking.text') = 'text'
                       THEN json_fields('type', '"thinking"', 'thinking', b.value -> '$.Thinking.text', 'extra', json_remove(b.value, '$.Thinking.text'))
                       WHEN b.value ->> '$.type' = 'thinking' AND json_type(b.value, '$.text') = 'text'
                       THEN json_fields('type', '"thinking"', 'thinking', b.value -> '$.text', 'extra', json_remove(b.value, '$.type', '$.text'))
                       ELSE b.value END))
            FROM json_each(coalesce(v -> '$.content', v -> '$.segments', '[]')) b
            WHERE b.type <> 'object' OR json_type(b.value, '$.ToolUse') IS NOT 'object') END;
    UPDATE now SET said = nullif(said, '[]');
    INSERT INTO parts
    SELECT CASE WHEN main = 'meta' THEN 'meta' WHEN main <> 'message' THEN 'note' WHEN role IN ('User', 'user') THEN CASE WHEN said IS NULL THEN 'note' ELSE 'user' END
                WHEN role IN ('Agent', 'assistant') THEN CASE WHEN called THEN 'busy' ELSE 'answer' END ELSE 'note' END,
        ts,
        CASE main WHEN 'meta' THEN 'session.created' WHEN 'unreadable' THEN 'import.unreadable'
        WHEN 'message' THEN CASE WHEN said IS NULL THEN 'import.record' ELSE 'message.added' END ELSE 'import.record' END,
        CASE main WHEN 'meta' THEN 'session.created' WHEN 'message' THEN id || '.' || coalesce(json_array_length(said), 0) ELSE id END,
        CASE main
        WHEN 'meta' THEN json_fields('id', json_text(session), 'agent_id', '"zed"', 'status', '"idle"',
            'title', CASE WHEN j ->> '$.row.summary' NOT IN ('', 'New Thread') THEN j -> '$.row.summary' END,
            'model', CASE WHEN json_type(j, '$.more.model.model') = 'text' THEN j -> '$.more.model.model' END,
            'provider', CASE WHEN json_type(j, '$.more.model.provider') = 'text' THEN j -> '$.more.model.provider' END,
            'working_directory', CASE WHEN json_type(j, '$.row.folder_paths') = 'text' AND j ->> '$.row.folder_paths' <> ''
                THEN json_text(substr(j ->> '$.row.folder_paths', 1, instr((j ->> '$.row.folder_paths') || char(10), char(10)) - 1)) END,
            'parent_session_id', json_text(session_id(nullif(j ->> '$.row.parent_id', ''))), 'extra', j)
        WHEN 'unreadable' THEN NEW.unreadable
        WHEN 'message' THEN CASE WHEN said IS NULL
            THEN json_fields('kind', '"message"', 'extra', CASE WHEN called OR returned THEN json_remove(v, '$.content', '$.segments', '$.tool_results', '$.tool_uses') ELSE j END)
            ELSE json_fields('id', json_text(id || '.' || json_array_length(said)), 'role', CASE role WHEN 'User' THEN '"user"' WHEN 'user' THEN '"user"' WHEN 'system' THEN '"system"' ELSE '"assistant"' END,
                'content', said, 'model', CASE WHEN role IN ('Agent', 'assistant') THEN json_text(model) END,
                'extra', json_remove(v, '$.content', '$.segments', '$.tool_results', '$.tool_uses')) END
        ELSE json_fields('kind', '"message"', 'extra', j) END, NEW.n
    FROM (SELECT n.*, s.model,
                 json_type(v, '$.tool_uses[0]') IS NOT NULL OR EXISTS (SELECT 1 FROM json_each(coalesce(v -> '$.content', '[]')) b
                     WHERE b.type = 'object' AND json_type(b.value, '$.ToolUse') = 'object') AS called,
                 coalesce(v -> '$.tool_results', '{}') NOT IN ('{}', '[]', 'null') AS returned
          FROM now n LEFT JOIN sessions s USING (session));
    UPDATE sessions SET turns = coalesce(turns, 0), model = coalesce(CASE WHEN n.main = 'meta' AND json_type(n.j, '$.more.model.model') = 'text'
        THEN n.j ->> '$.more.model.model' END, sessions.model)
    FROM now n WHERE sessions.session = n.session;
    -- The title of a thread, which is known later than its first message.
    INSERT INTO parts
    SELECT 'meta', ts, 'session.updated', 'title.' || (j ->> '$.row.summary'), json_fields('set', json_fields('title', j -> '$.row.summary')), NEW.n
    FROM now WHERE main = 'meta' AND json_type(j, '$.row.summary') = 'text' AND j ->> '$.row.summary' NOT IN ('', 'New Thread');
    INSERT INTO parts
    SELECT 'busy', n.ts, 'tool.called', n.id || '.call.' || b.key,
           json_fields('call_id', coalesce(u -> '$.id', json_text(n.id || '.' || b.key)), 'tool', coalesce(u -> '$.name', '"unknown"'),
               'input', coalesce(nullif(u -> '$.input', 'null'), u -> '$.raw_input'), 'message_id', json_text(n.id || '.' || coalesce(json_array_length(n.said), 0)),
               'extra', json_remove(b.value, '$.ToolUse.id', '$.ToolUse.name', CASE WHEN coalesce(u -> '$.input', 'null') = 'null' THEN '$.ToolUse.raw_input' ELSE '$.ToolUse.input' END)), NEW.n
    FROM now n, (SELECT b.key, b.value, b.value -> '$.ToolUse' AS u FROM now, json_each(coalesce(now.v -> '$.content', '[]')) b
                 WHERE now.main = 'message' AND b.type = 'object' AND json_type(b.value, '$.ToolUse') = 'object') b;
    INSERT INTO parts
    SELECT 'busy', n.ts, 'tool.called', n.id || '.use.' || b.key,
           json_fields('call_id', coalesce(b.value -> '$.id', json_text(n.id || '.' || b.key)), 'tool', coalesce(b.value -> '$.name', '"unknown"'),
               'input', b.value -> '$.input', 'message_id', json_text(n.id || '.' || coalesce(json_array_length(n.said), 0)), 'extra', json_remove(b.value, '$.id', '$.name', '$.input')), NEW.n
    FROM now n, json_each(coalesce(n.v -> '$.tool_uses', '[]')) b WHERE main = 'message' AND b.type = 'object';
    -- tool_results is an object by call, before version 0.3.0 an array.
    INSERT INTO parts
    SELECT CASE WHEN b.type = 'object' THEN 'busy' ELSE 'note' END, n.ts,
           CASE WHEN b.type <> 'object' THEN 'import.record' WHEN coalesce(b.value ->> '$.is_error', 0) THEN 'tool.failed' ELSE 'tool.returned' END,
           n.id || '.result.' || b.key,
           CASE WHEN b.type <> 'object' THEN json_fields('kind', '"message"', 'extra', n.v -> '$.tool_results')
           ELSE json_fields('call_id', coalesce(b.value -> '$.tool_use_id', json_text(CAST(b.key AS TEXT))),
               'success', CASE WHEN coalesce(b.value ->> '$.is_error', 0) THEN 'false' ELSE 'true' END,
               'output', coalesce(CASE json_type(b.value, '$.content') WHEN 'text' THEN b.value -> '$.content'
                                       WHEN 'object' THEN CASE WHEN json_type(b.value, '$.content.Text') = 'text' THEN b.value -> '$.content.Text' ELSE b.value -> '$.content' END
                                       WHEN 'array' THEN (SELECT json_group_array(json(CASE WHEN c.type = 'object' AND json_type(c.value, '$.Text') = 'text'
                                                              THEN json_fields('type', '"text"', 'text', c.value -> '$.Text')
                                                              WHEN c.type IN ('object', 'array') THEN c.value ELSE json_quote(c.value) END))
                                                          FROM json_each(b.value, '$.content') c) END, b.value -> '$.output'),
               'extra', json_remove(b.value, '$.tool_use_id', '$.content')) END, NEW.n
    FROM now n, json_each(coalesce(CASE WHEN json_type(n.v, '$.tool_results') IN ('object', 'array') THEN n.v -> '$.tool_results' END, '[]')) b WHERE main = 'message';
    INSERT INTO parts
    SELECT 'meta', n.ts, 'agent.turn.usage', 'usage',
           json_fields('model', json_text(s.model),
               'input_tokens', CAST(coalesce(u ->> '$.input_tokens', 0) + coalesce(u ->> '$.cache_read_input_tokens', 0) + coalesce(u ->> '$.cache_creation_input_tokens', 0) AS INTEGER),
               'output_tokens', u -> '$.output_tokens', 'cached_input_tokens', u -> '$.cache_read_input_tokens',
               'cache_write_tokens', u -> '$.cache_creation_input_tokens', 'prompt_tokens', -1), NEW.n
    FROM now n JOIN sessions s USING (session), (SELECT j -> '$.more.cumulative_token_usage' AS u FROM now)
    WHERE n.main = 'meta' AND (u ->> '$.input_tokens' > 0 OR u ->> '$.output_tokens' > 0);
    DELETE FROM parts;
END;

-- batch
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY rowid;
DELETE FROM out;

-- end
SELECT session, rest_ts, 'turn.completed', turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', rest_n)), rest_n
FROM sessions, source WHERE turn IS NOT NULL AND rest_ts IS NOT NULL;
