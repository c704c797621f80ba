-- importer cline   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: ui.* history_item.json task_metadata.json ui_messages.json api_conversation_history.json user head
-- files: *.messages.json
-- recalls: turn.started turn.rolled_back turn.restored
-- split: $.messages
-- directory: history_item.json task_metadata.json ui_messages.json api_conversation_history.json
-- places: $CLINE_DATA_DIR/tasks $CLINE_DATA_DIR/sessions ~/.cline/data/tasks ~/.cline/data/sessions
-- places: ~/.config/*/User/globalStorage/saoudrizwan.claude-dev/tasks
-- places: ~/.config/*/User/globalStorage/rooveterinaryinc.roo-cline/tasks
-- places: ~/.config/*/User/globalStorage/kilocode.kilo-code/tasks
-- places: ~/.vscode-server/data/User/globalStorage/saoudrizwan.claude-dev/tasks
-- places: ~/.vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline/tasks
-- places: ~/.vscode-server/data/User/globalStorage/kilocode.kilo-code/tasks
-- places: ~/Library/Application?Support/*/User/globalStorage/saoudrizwan.claude-dev/tasks
-- places: ~/Library/Application?Support/*/User/globalStorage/rooveterinaryinc.roo-cline/tasks
-- places: ~/Library/Application?Support/*/User/globalStorage/kilocode.kilo-code/tasks
--
-- Tasks of Cline, Roo Code and Kilo Code in an editor: a directory with api_conversation_history.json,
-- the messages of the model, and ui_messages.json, what the user sees; and sessions of the newer
-- Cline, one document <session>.messages.json. docs/events.md lists the resulting events;
-- annal/import.h describes the tables that an importer can read.
--
-- The form was learnt from cline/cline 21cb8d25 (Apache-2.0: shared/ExtensionMessage.ts, shared/messages,
-- sdk/packages/core). Counts were compared with session.messages.json there, with the
-- api_conversation_history.json of mike4567/MRA04242026 76449138, and with the tokens of the
-- ui_messages.json of CoreGems/Cline-Xray 5123440, haram-333/fineye a95a94b and
-- Jeehunter/mcp-vscode-server 9b5eeda. A directory with both files was not found, nor a recorded task of
-- Roo or Kilo: their rules follow kenn-io/agentsview 538600744 (MIT).
--
--  (1) The session is the directory, or the sessionId of a document. A directory with a
--      history_item.json is a task of Roo Code or of its fork Kilo Code.
--  (2) tool_use and tool_result are calls and results. Cline also passes results as texts, "[tool for
--      'x'] Result:", in the order of the calls; without a tool_use, such a text is a call, too.
--  (3) A user's message begins a turn if it has a <task>, <feedback>, <user_message> or a text of its
--      own, and not only results and what the program adds.
--  (4) A call failed if its result says so: is_error, the words of Cline for errors and refusals, or
--      an exit code other than 0.
--  (5) Tokens are in api_req_started of ui_messages.json, without cached ones; with an apiProtocol, as
--      Roo Code writes, with them, if there are enough. If no request there has tokens, the metrics of
--      the messages count, which contain cached tokens. Requests that Cline removed (deleted_api_reqs)
--      are not counted.
--  (6) A message without a time has the time of what the user saw at its index.
--  (7) A message of the newer Cline that another session has (record_owner: role, time and first
--      call) is an import.record without calls and tokens; parent_session_id names that session.
--  (8) The other entries of ui_messages.json repeat the conversation, and are import.records.

-- detect
SELECT max(CASE
    WHEN json ->> '$.file' = 'ui_messages.json' AND json_type(json, '$.value[0].ts') = 'integer'
         AND json ->> '$.value[0].type' IN ('say', 'ask') THEN 95
    WHEN json ->> '$.file' = 'api_conversation_history.json' AND json_type(json, '$.value[0].role') = 'text' THEN 90
    WHEN json ->> '$.at' = '$' AND json_type(json, '$.value.sessionId') = 'text' AND json_type(json, '$.value.agent') = 'text'
         AND json_type(json, '$.value.version') = 'integer' AND json_type(json, '$.value.messages') = 'array' THEN 90
    ELSE 0 END) FROM lines

-- once
-- ms: the task id, a time in milliseconds; ui: whether ui_messages.json has tokens.
CREATE TABLE file (session TEXT, ts INTEGER, agent TEXT, ui INTEGER, made INTEGER, model TEXT, parent TEXT, cwd TEXT,
                   turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER, continued INTEGER, task TEXT);
INSERT INTO file
SELECT session_id(CASE container WHEN 'directory' THEN file ELSE stem END),
       CASE WHEN container = 'directory' AND length(file) = 13 AND file NOT GLOB '*[^0-9]*' THEN CAST(file AS INTEGER) * 1000 ELSE 1 END,
       'cline', 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL
FROM source;
-- The time of what the user saw when the messages of the model ended at an index.
CREATE TABLE seen (i INTEGER PRIMARY KEY, first_ts INTEGER, last_ts INTEGER);
-- The calls of the last answer, in their order.
CREATE TABLE calls (k INTEGER PRIMARY KEY, id TEXT, tool TEXT, copied INTEGER);
CREATE TABLE copied (call TEXT PRIMARY KEY) WITHOUT ROWID;
-- The turns of the log, to find those that it no longer has.
CREATE TABLE live (session TEXT, turn TEXT, ts INTEGER, n INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE out (ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TABLE now (n INTEGER, main TEXT, source TEXT, j TEXT);

-- The events of a line. what: user: begins a turn; answer: may end it; busy: it continues.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER, origin TEXT);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(f.session), 'agent_id', json_text(agent), 'status', '"idle"',
                       'working_directory', cwd, 'parent_session_id', json_text(session_id(parent)), 'source', n.source), NEW.n
    FROM file f, now n WHERE NOT made;
    UPDATE file SET made = 1;
    INSERT INTO out
    SELECT coalesce(f.rest_ts, NEW.ts), 'turn.completed', f.turn || '.ends',
           json_fields('turn_id', json_text(f.turn), 'reason', CASE WHEN f.rest_ts IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'source', n.source), NEW.n
    FROM file f, now n WHERE NEW.what = 'user' AND f.turn IS NOT NULL;
    INSERT INTO out
    SELECT NEW.ts, 'turn.started', NEW.id || '.begins',
           json_fields('turn_id', json_text(NEW.id), 'sequence', f.turns + 1, 'status', '"running"',
                       'prompt_ref', json_text(NEW.id), 'source', n.source), NEW.n
    FROM file f, now n WHERE NEW.what = 'user';
    INSERT OR IGNORE INTO live SELECT f.session, NEW.id, NEW.ts, NEW.n FROM file f WHERE NEW.what = 'user';
    UPDATE file SET turn = NEW.id, turns = turns + 1 WHERE NEW.what = 'user';
    INSERT INTO out
    SELECT NEW.ts, NEW.type, NEW.id,
           substr(NEW.data, 1, length(NEW.data) - 1) || coalesce(',"turn_id":' || json_text(f.turn), '') || ',"source":'
           || substr(n.source, 1, length(n.source) - 1)
           || CASE NEW.what WHEN 'copied' THEN ',"copied":true' ELSE coalesce(',"origin":' || json_text(NEW.origin), '') END || '}}', NEW.n
    FROM now n, file f;
    UPDATE file SET rest_ts = CASE NEW.what WHEN 'answer' THEN NEW.ts END, rest_n = NEW.n
    WHERE NEW.what IN ('user', 'answer', 'busy');
END;

-- The messages of the model. i: position, from 0; id: of its event; results: it passes results.
CREATE TABLE messages (i INTEGER, n INTEGER, m TEXT, id TEXT, ts INTEGER, role TEXT, origin TEXT, owner TEXT, own TEXT, first INTEGER);
-- The results in the message: of a tool_result, or a text that begins as one.
CREATE VIEW results AS
SELECT m.n, m.id, m.ts, m.owner, m.i, m.m AS m, e.key, e.value AS c, e.value ->> '$.type' AS type, e.value ->> '$.tool_use_id' AS use,
       row_number() OVER (ORDER BY e.key) - 1 AS k,
       CASE e.value ->> '$.type' WHEN 'tool_result' THEN coalesce(e.value ->> '$.content[0].text', e.value ->> '$.content', '')
       ELSE coalesce(nullif(trim(substr(e.value ->> '$.text', instr(e.value ->> '$.text', '] Result:') + 9), char(10, 13, 32)), ''),
                     m.m ->> ('$.content[' || (e.key + 1) || '].text'), '') END AS says,
       CASE WHEN e.value ->> '$.type' = 'text' THEN substr(e.value ->> '$.text', 2,
           min(instr(e.value ->> '$.text' || ' ', ' '), instr(e.value ->> '$.text', ']')) - 2) END AS tool
FROM messages m, json_each(m.m, '$.content') e
WHERE m.role = 'user' AND e.type = 'object'
  AND (e.value ->> '$.type' = 'tool_result'
       OR e.value ->> '$.type' = 'text' AND e.value ->> '$.text' GLOB '[[][a-z]*] Result:*');

CREATE TRIGGER message AFTER INSERT ON messages BEGIN
    UPDATE messages SET
        ts = coalesce(CASE WHEN m ->> '$.ts' > 1000000000000 THEN CAST(m ->> '$.ts' AS INTEGER) * 1000 END,
                      (SELECT CASE role WHEN 'user' THEN s.first_ts ELSE s.last_ts END FROM seen s
                       WHERE s.i = NEW.i - (NEW.role <> 'user')), (SELECT f.ts FROM file f)),
        -- A text of the user, without what the program adds.
        own = CASE role WHEN 'user' THEN coalesce(
            CASE WHEN json_type(m, '$.content') = 'text' THEN m ->> '$.content' END,
            (SELECT t.text FROM (
                SELECT e.key, CASE e.value ->> '$.type' WHEN 'text' THEN e.value ->> '$.text'
                                   ELSE coalesce(e.value ->> '$.content[0].text', e.value ->> '$.content') END AS text,
                       e.value ->> '$.type' AS type
                FROM json_each(m, '$.content') e WHERE e.type = 'object' AND e.value ->> '$.type' IN ('text', 'tool_result')) t
             WHERE instr(t.text, '<task>') OR instr(t.text, '<feedback>') OR instr(t.text, '<user_message>')
                OR t.type = 'text' AND t.text NOT GLOB '[[(]*' AND ltrim(t.text, char(9, 10, 13, 32)) NOT GLOB '<[a-z]*'
                   AND ltrim(t.text, char(9, 10, 13, 32)) NOT GLOB '#*' AND trim(t.text, char(9, 10, 13, 32)) <> ''
                   AND NOT EXISTS (SELECT 1 FROM results r WHERE r.key <= t.key)
             ORDER BY t.key LIMIT 1)) END
    WHERE i = NEW.i AND n = NEW.n;
    UPDATE messages SET own = trim(CASE WHEN instr(own, '<task>') THEN substr(own, instr(own, '<task>') + 6, instr(own || '</task>', '</task>') - instr(own, '<task>') - 6)
        WHEN instr(own, '<user_message>') THEN substr(own, instr(own, '<user_message>') + 14, instr(own || '</user_message>', '</user_message>') - instr(own, '<user_message>') - 14)
        WHEN instr(own, '<feedback>') THEN substr(own, instr(own, '<feedback>') + 10, instr(own || '</feedback>', '</feedback>') - instr(own, '<feedback>') - 10)
        ELSE own END, char(9, 10, 13, 32))
    WHERE own IS NOT NULL;
    UPDATE messages SET origin = 'cline ' || role || ' ' || (m ->> '$.ts') || ' '
        || coalesce((SELECT coalesce(e.value ->> '$.id', e.value ->> '$.tool_use_id') FROM json_each(m, '$.content') e
                     WHERE e.type = 'object' AND e.value ->> '$.type' IN ('tool_use', 'tool_result') LIMIT 1), '')
    WHERE (SELECT n.main FROM now n) = 'message' AND m ->> '$.ts' > 0;
    UPDATE messages SET owner = nullif(record_owner(origin, (SELECT f.session FROM file f)), (SELECT f.session FROM file f))
    WHERE origin IS NOT NULL;
    UPDATE file SET ts = m.ts, model = coalesce(m.m ->> '$.modelInfo.id', m.m ->> '$.modelInfo.modelId', file.model) FROM messages m;

    INSERT INTO parts
    SELECT 'note', m.ts, 'session.updated', 'session.continues', json_fields('set', json_fields('parent_session_id', json_text(m.owner))), m.n, NULL
    FROM messages m, file f WHERE m.owner IS NOT NULL AND NOT f.continued AND f.parent IS NULL;
    UPDATE file SET continued = 1 WHERE EXISTS (SELECT 1 FROM messages m WHERE m.owner IS NOT NULL);
    INSERT INTO parts
    SELECT 'note', m.ts, 'session.updated', m.id || '.model', json_fields('set', json_fields('model', json_text(f.model))), m.n, NULL
    FROM messages m, file f
    WHERE m.role = 'assistant' AND f.model IS NOT NULL AND f.model IS NOT (SELECT max(k.tool) FROM calls k WHERE k.k = -1);
    INSERT OR REPLACE INTO calls SELECT -1, NULL, f.model, 0 FROM file f WHERE f.model IS NOT NULL;

    INSERT INTO parts
    SELECT CASE WHEN m.owner IS NOT NULL THEN 'copied'
                WHEN m.role = 'user' AND m.own IS NOT NULL THEN 'user'
                WHEN m.role = 'assistant' THEN CASE WHEN called THEN 'busy' ELSE 'answer' END ELSE 'note' END,
           m.ts,
           CASE WHEN m.owner IS NOT NULL OR CASE m.role WHEN 'user' THEN m.own IS NULL ELSE said = '[]' END THEN 'import.record' ELSE 'message.added' END, m.id,
           CASE WHEN m.owner IS NOT NULL THEN json_fields('kind', '"message"', 'extra', m.m)
                WHEN CASE m.role WHEN 'user' THEN m.own IS NULL ELSE said = '[]' END THEN json_fields('kind', '"user"', 'extra', json_remove(m.m, '$.content'))
                ELSE json_fields('id', json_text(m.id), 'role', json_text(m.role),
                    -- The user's words in a result are part of the message, too.
                    'content', CASE WHEN EXISTS (SELECT 1 FROM results) THEN '[{"type":"text","text":' || json_text(m.own) || '}'
                                         || CASE said WHEN '[]' THEN ']' ELSE ',' || substr(said, 2) END ELSE said END,
                    'said', CASE m.role WHEN 'user' THEN json_text(substr(m.own, 1, 400)) END,
                    'model', CASE m.role WHEN 'assistant' THEN json_text(f.model) END,
                    'extra', json_remove(m.m, '$.content')) END, m.n, m.origin
    FROM file f, (SELECT m.*, EXISTS (SELECT 1 FROM json_each(m.m, '$.content') e WHERE e.type = 'object' AND e.value ->> '$.type' = 'tool_use') AS called,
                 CASE json_type(m.m, '$.content') WHEN 'array' THEN (
                     SELECT json_group_array(CASE e.type WHEN 'object' THEN json(e.value) WHEN 'array' THEN json(e.value) ELSE e.value END)
                     FROM json_each(m.m, '$.content') e
                     WHERE e.type <> 'object' OR (e.value ->> '$.type' IS NOT 'tool_use' AND e.value ->> '$.type' IS NOT 'tool_result'
                            AND NOT (m.role = 'user' AND e.value ->> '$.type' = 'text' AND e.value ->> '$.text' GLOB '[[][a-z]*] Result:*')))
                 ELSE m.m -> '$.content' END AS said
          FROM messages m) m;
    -- Texts that the program adds to results.
    INSERT INTO parts
    SELECT 'note', m.ts, 'import.record', m.id || '.adds.' || e.key, json_fields('kind', '"user"', 'extra', e.value), m.n, NULL
    FROM messages m, json_each(m.m, '$.content') e
    WHERE m.role = 'user' AND m.own IS NULL AND m.owner IS NULL AND e.type = 'object'
      AND NOT EXISTS (SELECT 1 FROM results r WHERE r.key = e.key);

    INSERT OR IGNORE INTO copied
    SELECT e.value ->> '$.id' FROM messages m, json_each(m.m, '$.content') e
    WHERE m.owner IS NOT NULL AND e.type = 'object' AND e.value ->> '$.type' = 'tool_use' AND e.value ->> '$.id' IS NOT NULL;
    INSERT INTO parts
    SELECT 'busy', r.ts, 'tool.called', r.id || '.call.' || r.key,
           json_fields('call_id', json_text(r.id || '.' || r.key), 'tool', json_text(r.tool)), r.n, NULL
    FROM results r WHERE r.type = 'text' AND r.owner IS NULL AND NOT EXISTS (SELECT 1 FROM calls k WHERE k.k = r.k);
    INSERT INTO parts
    SELECT CASE WHEN r.type = 'tool_result' AND r.use IN (SELECT c.call FROM copied c) THEN 'copied' ELSE 'busy' END, r.ts,
           CASE WHEN r.type = 'tool_result' AND r.use IN (SELECT c.call FROM copied c) THEN 'import.record'
                WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END,
           r.id || '.result.' || r.key,
           CASE WHEN r.type = 'tool_result' AND r.use IN (SELECT c.call FROM copied c) THEN json_fields('kind', '"user"', 'extra', r.c)
           ELSE json_fields(
               'call_id', coalesce(CASE r.type WHEN 'tool_result' THEN r.c -> '$.tool_use_id' END,
                                   (SELECT json_text(k.id) FROM calls k WHERE k.k = r.k), json_text(r.id || '.' || r.key)),
               'success', CASE WHEN failed THEN 'false' END, 'output', coalesce(CASE WHEN r.type = 'text' THEN CASE WHEN trim(r.c ->> '$.text', char(10, 13, 32)) GLOB '*] Result:'
                                     THEN coalesce(r.m -> ('$.content[' || (r.key + 1) || '].text'), r.c -> '$.text')
                                     ELSE r.c -> '$.text' END END, r.c -> '$.content'),
               'exit_code', code,
               'extra', CASE WHEN r.type = 'text' AND trim(r.c ->> '$.text', char(10, 13, 32)) GLOB '*] Result:' THEN r.c
                        ELSE json_remove(r.c, '$.tool_use_id', '$.text', '$.content') END) END, r.n, NULL
    FROM (SELECT r.*, coalesce(code, 0) <> 0 OR coalesce(r.c ->> '$.is_error', 0)
                 OR instr(substr(says, 1, 200), 'The tool execution failed with the following error') > 0
                 OR instr(substr(says, 1, 100), 'The user denied this operation') > 0
                 OR json_type(r.c, '$.content') = 'array' AND json_type(r.c, '$.content[0].success') IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM json_each(r.c, '$.content') x WHERE x.type = 'object' AND x.value ->> '$.success') AS failed
          FROM (SELECT r.*, CASE
                    WHEN ltrim(says, char(10, 32)) GLOB 'Command failed with exit code [-0-9]*'
                    THEN CAST(substr(ltrim(says, char(10, 32)), 31) AS INTEGER)
                    WHEN instr(substr(says, 1, 400), char(10) || 'Exit code: ') > 0
                    THEN CAST(substr(says, instr(says, char(10) || 'Exit code: ') + 12, 8) AS INTEGER) END AS code
                FROM results r) r) r
    WHERE r.owner IS NULL;
    DELETE FROM calls WHERE k >= 0 AND EXISTS (SELECT 1 FROM messages m WHERE m.role = 'assistant');
    INSERT INTO parts
    SELECT 'busy', m.ts, 'tool.called', m.id || '.call.' || e.key,
           json_fields('call_id', coalesce(e.value -> '$.id', json_text(m.id || '.' || e.key)), 'tool', coalesce(e.value -> '$.name', '"unknown"'),
               'input', e.value -> '$.input', 'message_id', json_text(m.id),
               'extra', json_remove(e.value, '$.id', '$.name', '$.input')), m.n, NULL
    FROM messages m, json_each(m.m, '$.content') e
    WHERE m.role <> 'user' AND m.owner IS NULL AND e.type = 'object' AND e.value ->> '$.type' = 'tool_use';
    INSERT OR IGNORE INTO calls
    SELECT row_number() OVER (ORDER BY e.key) - 1, coalesce(e.value ->> '$.id', m.id || '.' || e.key), e.value ->> '$.name', 0
    FROM messages m, json_each(m.m, '$.content') e WHERE m.role <> 'user' AND e.type = 'object' AND e.value ->> '$.type' = 'tool_use';
    INSERT INTO parts
    SELECT 'note', m.ts, 'agent.turn.usage', m.id || '.usage',
           json_fields('message_id', json_text(m.id), 'model', json_text(f.model),
               'input_tokens', coalesce(x -> '$.inputTokens', x -> '$.tokens.prompt'),
               'output_tokens', coalesce(x -> '$.outputTokens', x -> '$.tokens.completion'),
               'cached_input_tokens', coalesce(x -> '$.cacheReadTokens', x -> '$.tokens.cached'),
               'cache_write_tokens', x -> '$.cacheWriteTokens',
               'cost_usd', CASE WHEN x ->> '$.cost' > 0 THEN x -> '$.cost' END), m.n, NULL
    FROM file f, (SELECT m.*, CASE json_type(m.m, '$.metrics') WHEN 'object' THEN m.m -> '$.metrics' END AS x FROM messages m) m
    WHERE NOT f.ui AND m.owner IS NULL
      AND (coalesce(x ->> '$.inputTokens', x ->> '$.tokens.prompt') > 0 OR coalesce(x ->> '$.outputTokens', x ->> '$.tokens.completion') > 0);
    DELETE FROM messages;
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now
    SELECT NEW.n, CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' AND json_type(j, '$.value') = 'object' THEN 'head'
                WHEN j ->> '$.at' = '$.messages' AND json_type(j, '$.value.role') = 'text'
                     AND json_type(j, '$.value.content') IN ('array', 'text') THEN 'message'
                WHEN json_type(j, '$.value') = 'array' AND j ->> '$.file' = 'ui_messages.json' THEN 'ui'
                WHEN json_type(j, '$.value') = 'array' AND j ->> '$.file' = 'api_conversation_history.json' THEN 'api'
                WHEN j ->> '$.file' = 'history_item.json' AND json_type(j, '$.value') = 'object' THEN 'item'
                ELSE 'record' END,
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', CASE WHEN json_type(j, '$.value.id') = 'text' THEN j -> '$.value.id' END), j
    FROM source, (SELECT NEW.json AS j);
    UPDATE file SET
        session = CASE WHEN n.main = 'head' AND NOT file.made THEN coalesce(session_id(n.j ->> '$.value.sessionId'), file.session) ELSE file.session END,
        agent = CASE WHEN n.main = 'item' AND json_type(n.j, '$.value.number') = 'integer' THEN 'roo-code' ELSE file.agent END,
        parent = coalesce(CASE n.main WHEN 'item' THEN n.j ->> '$.value.parentTaskId' END, file.parent),
        cwd = coalesce(CASE WHEN json_type(n.j, '$.value.workspace') = 'text' AND n.main = 'item' THEN n.j -> '$.value.workspace'
                            WHEN json_type(n.j, '$.value.cwdOnTaskInitialization') = 'text' THEN n.j -> '$.value.cwdOnTaskInitialization' END, file.cwd),
        model = coalesce(n.j ->> '$.value.model_usage[0].model_id', file.model),
        task = CASE WHEN n.main = 'ui' AND n.j ->> '$.value[0].say' IN ('task', 'text') THEN n.j ->> '$.value[0].text' ELSE file.task END,
        ui = file.ui OR n.main = 'ui' AND EXISTS (
            SELECT 1 FROM json_each(n.j, '$.value') e WHERE e.type = 'object' AND e.value ->> '$.say' = 'api_req_started'
            AND json_valid(e.value ->> '$.text') AND (e.value ->> '$.text') ->> '$.tokensOut' > 0)
    FROM now n;
    INSERT OR REPLACE INTO seen
    SELECT i, min(ts) * 1000, max(ts) * 1000
    FROM (SELECT e.value ->> '$.conversationHistoryIndex' AS i, CAST(e.value ->> '$.ts' AS INTEGER) AS ts
          FROM now n, json_each(n.j, '$.value') e WHERE n.main = 'ui' AND e.type = 'object'
            AND json_type(e.value, '$.conversationHistoryIndex') = 'integer' AND e.value ->> '$.ts' > 1000000000000)
    GROUP BY i;

    -- The line itself, unless its items are events.
    INSERT INTO parts
    SELECT 'note', f.ts, CASE main WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END, NEW.hash,
           CASE main WHEN 'unreadable' THEN NEW.unreadable
           ELSE json_fields('kind', CASE main WHEN 'head' THEN '"head"' ELSE coalesce(json_text(j ->> '$.file'), '"line"') END, 'extra', j) END,
           NEW.n, NULL
    FROM now n, file f
    WHERE main IN ('unreadable', 'record', 'item', 'head') OR main IN ('ui', 'api') AND json_type(j, '$.value[0]') IS NULL;
    INSERT INTO parts
    SELECT 'note', coalesce(CASE WHEN e.value ->> '$.ts' > 1000000000000 THEN CAST(e.value ->> '$.ts' AS INTEGER) * 1000 END, f.ts),
           'import.record', 'ui.' || coalesce(e.value ->> '$.ts', e.key) || '.' || coalesce(e.value ->> '$.say', e.value ->> '$.ask', '')
               || '.' || length(e.value)
               || CASE row_number() OVER (PARTITION BY e.value ->> '$.ts', e.value ->> '$.say', length(e.value) ORDER BY e.key)
                  WHEN 1 THEN '' ELSE '.' || e.key END,
           json_fields('kind', json_text('ui.' || coalesce(e.value ->> '$.say', e.value ->> '$.ask', '')), 'extra',
                       CASE e.type WHEN 'object' THEN e.value WHEN 'array' THEN e.value ELSE coalesce(json_text(e.value), 'null') END), NEW.n, NULL
    FROM now n, file f, json_each(n.j, '$.value') e WHERE main = 'ui';
    INSERT INTO parts
    SELECT 'note', coalesce(CASE WHEN u.ts > 1000000000000 THEN u.ts * 1000 END, f.ts), 'agent.turn.usage', 'usage.' || u.ts || '.' || say,
           json_fields('model', u.model,
               'input_tokens', CASE WHEN said >= cached AND json_type(t, '$.apiProtocol') IS NOT NULL THEN said ELSE said + cached END,
               'output_tokens', t -> '$.tokensOut', 'cached_input_tokens', t -> '$.cacheReads', 'cache_write_tokens', t -> '$.cacheWrites',
               'cost_usd', CASE WHEN t ->> '$.cost' > 0 THEN t -> '$.cost' END, 'prompt_tokens', CASE say WHEN 'subagent_usage' THEN -1 END), NEW.n, NULL
    FROM file f, (
        SELECT u.*, CAST(coalesce(t ->> '$.tokensIn', 0) AS INTEGER) AS said,
               CAST(coalesce(t ->> '$.cacheReads', 0) + coalesce(t ->> '$.cacheWrites', 0) AS INTEGER) AS cached
        FROM (SELECT e.value ->> '$.say' AS say, CAST(e.value ->> '$.ts' AS INTEGER) AS ts, e.value -> '$.modelInfo.modelId' AS model,
                     CASE WHEN json_valid(e.value ->> '$.text') THEN json(e.value ->> '$.text') END AS t
              FROM now n, json_each(n.j, '$.value') e
              WHERE n.main = 'ui' AND e.type = 'object' AND e.value ->> '$.say' IN ('api_req_started', 'subagent_usage')) u) u
    WHERE json_type(t, '$.tokensIn') IS NOT NULL AND (said > 0 OR cached > 0 OR t ->> '$.tokensOut' > 0);
    INSERT INTO messages (i, n, m, id, role)
    SELECT e.key, NEW.n, e.value, 'api.' || e.key || '.' || coalesce(e.value ->> '$.ts', text_hash(e.value)), e.value ->> '$.role'
    FROM now n, json_each(n.j, '$.value') e
    WHERE main = 'api' AND e.type = 'object' AND json_type(e.value, '$.role') = 'text' AND json_type(e.value, '$.content') IN ('array', 'text');
    INSERT INTO parts
    SELECT 'note', f.ts, 'import.record', 'api.' || e.key || '.' || length(e.value),
           json_fields('kind', '"api_conversation_history.json"', 'extra', CASE e.type WHEN 'object' THEN e.value WHEN 'array' THEN e.value
                       ELSE coalesce(json_text(e.value), 'null') END), NEW.n, NULL
    FROM now n, file f, json_each(n.j, '$.value') e
    WHERE main = 'api' AND (e.type <> 'object' OR json_type(e.value, '$.role') IS NOT 'text'
                            OR coalesce(json_type(e.value, '$.content'), '') NOT IN ('array', 'text'));
    INSERT INTO messages (i, n, m, id, role)
    SELECT -1, NEW.n, j -> '$.value', CASE json_type(j, '$.value.id') WHEN 'text' THEN j ->> '$.value.id' ELSE NEW.hash END, j ->> '$.value.role'
    FROM now WHERE main = 'message';
    DELETE FROM parts;
END;

-- batch
SELECT f.session, o.ts, o.type, o.id, NULL, o.data, o.n FROM out o, file f ORDER BY o.rowid;
DELETE FROM out;

-- end
SELECT session, rest_ts, 'turn.completed', turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', rest_n)), rest_n
FROM file, source WHERE turn IS NOT NULL AND rest_ts IS NOT NULL
UNION ALL
-- A task without the messages of the model has the user's text as its title.
SELECT session, ts, 'session.updated', 'task', NULL,
       json_fields('set', json_fields('title', json_text(substr(task, 1, 200))),
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', 1)), 1
FROM file, source WHERE made AND turns = 0 AND task <> '';
-- Turns of earlier imports that the log no longer has were taken back.
INSERT INTO out SELECT ts, type, id, data, n FROM removed_turns;
SELECT f.session, o.ts, o.type, o.id, NULL, o.data, o.n FROM out o, file f ORDER BY o.rowid;
DELETE FROM out;
