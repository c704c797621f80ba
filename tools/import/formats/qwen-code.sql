-- importer qwen-code   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: system.* response
-- files: *.jsonl
-- places: $QWEN_RUNTIME_DIR/projects $QWEN_HOME/projects ~/.qwen/projects
--
-- Chats of Qwen Code: ~/.qwen/projects/<project>/chats/<session>.jsonl, and the transcripts of its
-- sub-agents, subagents/<session>/agent-*.jsonl. docs/events.md lists the resulting events;
-- annal/import.h describes the tables that an importer can read.
--
-- The form was learnt from the program itself: @qwen-code/qwen-code 0.15.10 and 0.24.4 (Apache-2.0),
-- whose chatRecordingService writes the lines. No recorded log was found in public: the rules follow
-- that code, and excerpts of logs in the tests of kenn-io/agentsview 538600744 (MIT).
--
--  (1) The session is that of the line, else the file. A line with an agentId belongs to a sub-agent,
--      <session>.agent-<agentId>.
--  (2) A message is parts, as in the API of Gemini: functionCall and functionResponse become calls and
--      results, the other parts the content of message.added; thoughts become blocks of thinking.
--  (3) A user's message begins a turn, except what the program sends in the user's name (subtype), and
--      in a sub-agent. An answer without a call ends it.
--  (4) A call failed if its status or its response says so, and a command if its exit code, a line of
--      the output, is not 0.
--  (5) Input contains cached tokens. Output contains thoughts, unless the sum of all shows that they
--      are extra.
--  (6) A rewind takes back the turns that began after its parent.
--  (7) A message of another session (record_owner: its uuid) is an import.record without its calls and
--      tokens; parent_session_id names that session.
--  (8) The first event of a line contains the rest of the line under "extra".

-- detect
SELECT max(CASE
    WHEN json_type(json, '$.uuid') IS NOT 'text' AND json_type(json, '$.sessionId') IS NOT 'text' THEN 0
    WHEN json_type(json, '$.message.parts') = 'array' AND (json ->> '$.type' IN ('assistant', 'tool_result')
         AND json ->> '$.message.role' IN ('model', 'user') OR json ->> '$.type' = 'user' AND json_type(json, '$.sessionId') = 'text')
    THEN CASE WHEN json_type(json, '$.version') = 'text' THEN 95 ELSE 80 END
    ELSE 0 END) FROM lines

-- once
CREATE TABLE file (session TEXT, ts INTEGER);
INSERT INTO file SELECT session_id(stem), 1 FROM source;

-- rest_ts, rest_n: an answer without a call is the last of the turn. main_session: of a sub-agent.
CREATE TABLE sessions (session TEXT PRIMARY KEY, main_session TEXT, turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER,
                       model TEXT, continued INTEGER) WITHOUT ROWID;
-- The number of each line, and the turns that began.
CREATE TABLE seen (id TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
CREATE TABLE turns (n INTEGER PRIMARY KEY, session TEXT, turn TEXT);
CREATE TABLE copied (call TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, type TEXT, id TEXT, session TEXT, main_session TEXT, ts INTEGER, owner TEXT, source TEXT,
                  called INTEGER, said TEXT, p TEXT, j TEXT);

-- The events of a line. what: user: begins a turn; answer: may end it; busy: it continues; raw: the
-- data says all.
CREATE TABLE parts (what TEXT, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT NEW.session, NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(NEW.session), 'agent_id', '"qwen-code"', 'status', '"idle"',
                       'working_directory', CASE WHEN json_type(j, '$.cwd') = 'text' THEN j -> '$.cwd' END,
                       'git_branch', CASE WHEN json_type(j, '$.gitBranch') = 'text' THEN j -> '$.gitBranch' END,
                       'title', CASE WHEN json_type(j, '$.agentName') = 'text' THEN j -> '$.agentName' END,
                       'parent_session_id', json_text(n.main_session), 'source', n.source), NEW.n
    FROM now n
    WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = NEW.session);
    INSERT OR IGNORE INTO sessions (session, main_session, turns, continued) SELECT NEW.session, n.main_session, 0, 0 FROM now n;
    INSERT INTO out
    SELECT NEW.session, coalesce(s.rest_ts, NEW.ts), 'turn.completed', s.turn || '.ends',
           json_fields('turn_id', json_text(s.turn),
                       'reason', CASE WHEN s.rest_ts IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'source', n.source), NEW.n
    FROM sessions s, now n WHERE s.session = NEW.session AND NEW.what = 'user' AND s.turn IS NOT NULL;
    INSERT INTO out
    SELECT NEW.session, NEW.ts, 'turn.started', NEW.id || '.begins',
           json_fields('turn_id', json_text(NEW.id), 'sequence', s.turns + 1, 'status', '"running"',
                       'prompt_ref', json_text(NEW.id), 'source', n.source), NEW.n
    FROM sessions s, now n WHERE s.session = NEW.session AND NEW.what = 'user';
    UPDATE sessions SET turn = NEW.id, turns = turns + 1 WHERE session = NEW.session AND NEW.what = 'user';
    INSERT INTO out
    SELECT NEW.session, NEW.ts, NEW.type, NEW.id, CASE WHEN NEW.what = 'raw' THEN NEW.data
           ELSE substr(NEW.data, 1, length(NEW.data) - 1) || coalesce(',"turn_id":' || json_text(s.turn), '')
                || ',"source":' || n.source || '}' END, NEW.n
    FROM now n, sessions s WHERE s.session = NEW.session;
    UPDATE sessions SET rest_ts = CASE NEW.what WHEN 'answer' THEN NEW.ts END, rest_n = NEW.n
    WHERE session = NEW.session AND NEW.what IN ('user', 'answer', 'busy');
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, type, p, id, main)
    SELECT j, j ->> '$.type', CASE json_type(j, '$.message.parts') WHEN 'array' THEN j -> '$.message.parts' END,
           CASE WHEN EXISTS (SELECT 1 FROM seen s WHERE s.id = j ->> '$.uuid') THEN NEW.hash ELSE coalesce(j ->> '$.uuid', NEW.hash) END,
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.type' = 'user' AND json_type(j, '$.message.parts') = 'array' THEN 'user'
                WHEN j ->> '$.type' = 'assistant' AND json_type(j, '$.message.parts') = 'array' THEN 'assistant'
                WHEN j ->> '$.type' = 'tool_result'
                     AND json_type(j, '$.message.parts[0].functionResponse') = 'object' THEN 'result'
                WHEN j ->> '$.type' = 'tool_result' AND json_type(j, '$.toolCallResult.callId') = 'text' THEN 'result'
                WHEN j ->> '$.type' = 'system' THEN CASE j ->> '$.subtype'
                    WHEN 'custom_title' THEN 'update' WHEN 'session_model' THEN 'update' WHEN 'parent_session' THEN 'update'
                    WHEN 'chat_compression' THEN 'compaction' WHEN 'rewind' THEN 'rewind'
                    WHEN 'ui_telemetry' THEN CASE WHEN j ->> '$.systemPayload.uiEvent."event.name"' GLOB '*api_error' THEN 'error'
                                             ELSE 'record' END
                    ELSE 'record' END
                ELSE 'record' END
    FROM (SELECT NEW.json AS j);
    UPDATE file SET session = coalesce(session_id(n.j ->> '$.sessionId'), file.session),
                    ts = coalesce(time_us(n.j ->> '$.timestamp'), file.ts)
    FROM now n;
    INSERT OR IGNORE INTO seen SELECT n.id, NEW.n FROM now n;
    UPDATE now SET ts = f.ts,
        session = CASE WHEN j ->> '$.agentId' <> '' THEN session_id(f.session || '.agent-' || (j ->> '$.agentId')) ELSE f.session END,
        main_session = CASE WHEN j ->> '$.agentId' <> '' THEN f.session END,
        called = EXISTS (SELECT 1 FROM json_each(p) e WHERE e.type = 'object' AND json_type(e.value, '$.functionCall') = 'object'),
        said = CASE WHEN main IN ('user', 'assistant') THEN (
            SELECT json_group_array(json(CASE WHEN e.value ->> '$.thought' = 1 AND json_type(e.value, '$.text') = 'text'
                                              THEN '{"type":"thinking",' || substr(e.value, 2) ELSE e.value END))
            FROM json_each(p) e
            WHERE e.type = 'object' AND json_type(e.value, '$.functionCall') IS NOT 'object'
              AND (json_type(e.value, '$.text') IS NOT 'text' OR e.value ->> '$.text' <> '')) END
    FROM file f;
    UPDATE now SET said = NULL WHERE said = '[]';
    UPDATE now SET owner = nullif(record_owner('qwen ' || id, session), session)
    WHERE main IN ('user', 'assistant') AND json_type(j, '$.uuid') = 'text';
    INSERT OR IGNORE INTO copied
    SELECT e.value ->> '$.functionCall.id' FROM now, json_each(p) e
    WHERE owner IS NOT NULL AND e.type = 'object' AND json_type(e.value, '$.functionCall.id') = 'text';
    UPDATE now SET main = 'copy'
    WHERE main = 'result' AND coalesce(p ->> '$[0].functionResponse.id', j ->> '$.toolCallResult.callId') IN (SELECT c.call FROM copied c);
    UPDATE now SET source = json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', NEW.n,
        'record', CASE WHEN json_type(now.j, '$.uuid') = 'text' THEN now.j -> '$.uuid' END,
        'origin', CASE WHEN main IN ('user', 'assistant') AND owner IS NULL AND json_type(now.j, '$.uuid') = 'text'
                  THEN json_text('qwen ' || id) END,
        'copied', CASE WHEN owner IS NOT NULL OR main = 'copy' THEN 'true' END)
    FROM source s;
    INSERT INTO parts
    SELECT 'note', n.session, n.ts, 'session.updated', 'session.continues',
           json_fields('set', json_fields('parent_session_id', json_text(owner))), NEW.n
    FROM now n WHERE owner IS NOT NULL AND NOT coalesce((SELECT s.continued FROM sessions s WHERE s.session = n.session), 0);
    UPDATE sessions SET continued = 1 WHERE session = (SELECT n.session FROM now n WHERE n.owner IS NOT NULL);
    -- The model that answers, if it is another than before.
    INSERT INTO parts
    SELECT 'note', n.session, n.ts, 'session.updated', n.id || '.model', json_fields('set', json_fields('model', j -> '$.model')), NEW.n
    FROM now n WHERE main = 'assistant' AND owner IS NULL AND json_type(j, '$.model') = 'text'
      AND j ->> '$.model' IS NOT (SELECT s.model FROM sessions s WHERE s.session = n.session);
    UPDATE sessions SET model = (SELECT n.j ->> '$.model' FROM now n)
    WHERE session = (SELECT n.session FROM now n WHERE n.main = 'assistant' AND n.owner IS NULL AND json_type(n.j, '$.model') = 'text');

    INSERT INTO parts
    SELECT CASE WHEN owner IS NOT NULL OR main = 'copy' THEN 'note' ELSE CASE main
           WHEN 'user' THEN CASE WHEN by_program OR main_session IS NOT NULL THEN 'note' ELSE 'user' END
           WHEN 'assistant' THEN CASE WHEN called OR said IS NULL THEN 'busy' ELSE 'answer' END
           WHEN 'result' THEN 'busy' ELSE 'note' END END,
        session, ts,
        CASE WHEN owner IS NOT NULL THEN 'import.record' ELSE CASE main
        WHEN 'user' THEN 'message.added'
        WHEN 'assistant' THEN CASE WHEN said IS NULL THEN 'import.record' ELSE 'message.added' END
        WHEN 'result' THEN CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END
        WHEN 'update' THEN 'session.updated' WHEN 'compaction' THEN 'checkpoint.noted' WHEN 'error' THEN 'provider.failed'
        WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END END,
        id,
        CASE WHEN owner IS NOT NULL OR main = 'copy' THEN json_fields('kind', '"message"', 'extra', j) ELSE CASE main
        WHEN 'user' THEN json_fields('id', json_text(id), 'role', '"user"', 'content', coalesce(said, '[]'),
            'said', CASE WHEN by_program THEN '""' END, 'extra', json_remove(j, '$.uuid', '$.message.parts'))
        WHEN 'assistant' THEN CASE WHEN said IS NULL
            THEN json_fields('kind', '"response"', 'extra', CASE WHEN called THEN json_remove(j, '$.message.parts') ELSE j END)
            ELSE json_fields('id', json_text(id), 'role', '"assistant"', 'content', said,
                'model', CASE WHEN json_type(j, '$.model') = 'text' THEN j -> '$.model' END,
                'extra', json_remove(j, '$.uuid', '$.message.parts')) END
        WHEN 'result' THEN json_fields(
            'call_id', coalesce(r -> '$.id', j -> '$.toolCallResult.callId', json_text(id)),
            'success', CASE WHEN failed THEN 'false' ELSE 'true' END,
            'output', coalesce(CASE WHEN failed THEN r -> '$.response.error' END, r -> '$.response.output', r -> '$.response',
                               j -> '$.toolCallResult.resultDisplay'),
            'exit_code', code, 'duration_ms', CASE WHEN j ->> '$.toolCallResult.durationMs' >= 0 THEN j -> '$.toolCallResult.durationMs' END,
            'extra', CASE WHEN r IS NULL THEN j ELSE json_remove(j, '$.message.parts[0].functionResponse.id',
                CASE WHEN failed AND r -> '$.response.error' IS NOT NULL THEN '$.message.parts[0].functionResponse.response.error'
                     WHEN r -> '$.response.output' IS NOT NULL THEN '$.message.parts[0].functionResponse.response.output'
                     ELSE '$.message.parts[0].functionResponse.response' END) END)
        WHEN 'update' THEN json_fields('set', json_fields(
                'title', CASE WHEN json_type(y, '$.customTitle') = 'text' THEN y -> '$.customTitle' END,
                'model', CASE WHEN j ->> '$.subtype' = 'session_model' AND json_type(y, '$.model') = 'text' THEN y -> '$.model' END,
                'parent_session_id', CASE WHEN json_type(y, '$.parentSessionId') = 'text'
                                     THEN json_text(session_id(y ->> '$.parentSessionId')) END), 'extra', j)
        WHEN 'compaction' THEN json_fields('note', '"compaction"',
            'pre_tokens', coalesce(y -> '$.info.originalTokenCount', y -> '$.originalTokenCount'), 'extra', j)
        WHEN 'error' THEN json_fields('provider', '"qwen"', 'error', y -> '$.uiEvent', 'extra', json_remove(j, '$.systemPayload.uiEvent'))
        WHEN 'unreadable' THEN NEW.unreadable
        ELSE json_fields('kind', CASE type WHEN 'system' THEN json_text('system.' || coalesce(j ->> '$.subtype', ''))
                                 ELSE coalesce(json_text(type), '"line"') END, 'extra', j) END END,
        NEW.n
    FROM (SELECT x.*, coalesce(j ->> '$.toolCallResult.status' IN ('error', 'cancelled'), 0)
                      OR coalesce(json_type(r, '$.response.error') <> 'null', 0) OR coalesce(code, 0) <> 0 AS failed
          FROM (SELECT w.*, CASE WHEN at > 0 AND substr(output, at + 12, 1) GLOB '[-0-9]'
                                 THEN CAST(substr(output, at + 12, 12) AS INTEGER) END AS code
                FROM (SELECT n.*, r, y, output, instr(output, char(10) || 'Exit Code: ') AS at,
                             coalesce(j ->> '$.subtype', '') NOT IN ('', 'realtime_message')
                                 OR json_type(j, '$.externalInputKind') IS NOT NULL AS by_program
                      FROM (SELECT v.*, CASE WHEN r ->> '$.name' = 'run_shell_command' THEN r ->> '$.response.output' END AS output
                            FROM (SELECT now.*, CASE main WHEN 'result' THEN p -> '$[0].functionResponse' END AS r,
                                         CASE json_type(j, '$.systemPayload') WHEN 'object' THEN j -> '$.systemPayload' END AS y
                                  FROM now) v) n) w) x);

    -- The calls in a message, more results of a line, the turns that were taken back, and tokens.
    INSERT INTO parts
    SELECT 'busy', n.session, n.ts, 'tool.called', n.id || '.call.' || e.key,
           json_fields('call_id', coalesce(e.value -> '$.functionCall.id', json_text(n.id || '.' || e.key)),
               'tool', coalesce(e.value -> '$.functionCall.name', '"unknown"'), 'input', e.value -> '$.functionCall.args',
               'message_id', json_text(n.id),
               'extra', json_remove(e.value, '$.functionCall.id', '$.functionCall.name', '$.functionCall.args')), NEW.n
    FROM now n, json_each(p) e
    WHERE main = 'assistant' AND owner IS NULL AND e.type = 'object' AND json_type(e.value, '$.functionCall') = 'object';
    INSERT INTO parts
    SELECT 'busy', n.session, n.ts,
           CASE WHEN coalesce(json_type(e.value, '$.functionResponse.response.error') <> 'null', 0) THEN 'tool.failed' ELSE 'tool.returned' END,
           n.id || '.result.' || e.key,
           json_fields('call_id', coalesce(e.value -> '$.functionResponse.id', json_text(n.id || '.' || e.key)),
               'output', coalesce(e.value -> '$.functionResponse.response.output', e.value -> '$.functionResponse.response')), NEW.n
    FROM now n, json_each(p) e
    WHERE main = 'result' AND e.key > 0 AND e.type = 'object' AND json_type(e.value, '$.functionResponse') = 'object';
    INSERT INTO turns SELECT NEW.n, n.session, s.turn FROM now n JOIN sessions s USING (session) WHERE main = 'user' AND s.turn = n.id;
    INSERT INTO parts
    SELECT 'raw', t.session, n.ts, 'turn.rolled_back', n.id || '.back.' || t.turn,
           json_fields('turn_id', json_text(t.turn), 'reason', '"rewind"', 'source', n.source), NEW.n
    FROM now n, turns t
    WHERE main = 'rewind' AND t.n > CASE json_type(n.j, '$.parentUuid') WHEN 'null' THEN 0
                                    ELSE (SELECT k.n FROM seen k WHERE k.id = n.j ->> '$.parentUuid') END;
    DELETE FROM turns WHERE turn IN (SELECT p.data ->> '$.turn_id' FROM parts p WHERE p.type = 'turn.rolled_back');
    INSERT INTO parts
    SELECT 'note', n.session, n.ts, 'agent.turn.usage', n.id || '.usage',
           json_fields('message_id', json_text(n.id), 'model', CASE WHEN json_type(j, '$.model') = 'text' THEN j -> '$.model' END,
               'input_tokens', u -> '$.promptTokenCount',
               'output_tokens', CASE WHEN u ->> '$.thoughtsTokenCount' > 0 AND u ->> '$.totalTokenCount' >= u ->> '$.promptTokenCount'
                                          + u ->> '$.candidatesTokenCount' + u ->> '$.thoughtsTokenCount'
                                THEN CAST(u ->> '$.candidatesTokenCount' + u ->> '$.thoughtsTokenCount' AS INTEGER)
                                ELSE u -> '$.candidatesTokenCount' END,
               'cached_input_tokens', u -> '$.cachedContentTokenCount', 'reasoning_output_tokens', u -> '$.thoughtsTokenCount'), NEW.n
    FROM (SELECT now.*, CASE json_type(j, '$.usageMetadata') WHEN 'object' THEN j -> '$.usageMetadata' END AS u FROM now) n
    WHERE main = 'assistant' AND owner IS NULL AND (u ->> '$.promptTokenCount' > 0 OR u ->> '$.candidatesTokenCount' > 0);
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
