-- importer copilot-cli   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: calls result session.* assistant.turn_* assistant.*_delta assistant.intent assistant.reasoning assistant.message_start
-- records: assistant.idle tool.execution_start tool.execution_partial_result tool.execution_progress tool.user_requested hook.*
-- records: permission.* subagent.* skill.* system.notification user_input.* elicitation.* command.* commands.* external_tool.*
-- records: mcp.* sampling.* capabilities.* model.call_* pending_messages.*
-- files: *.jsonl
-- places: $COPILOT_HOME/session-state ~/.copilot/session-state
--
-- Sessions of the GitHub Copilot CLI: ~/.copilot/session-state/<session>/events.jsonl, and the lines
-- that `copilot --output-format json` prints. The transcripts of Copilot Chat in VS Code have the same
-- form. docs/events.md lists the resulting events; annal/import.h describes the tables that an
-- importer can read.
--
-- The form was learnt from the types in @github/copilot-sdk 1.0.14 (session-events.d.ts, MIT), and from
-- logs in microsoft/vscode-copilot-chat 417210375b57 (MIT), SREGym/SREGym ba07faf1 (MIT) and
-- git-ai-project/git-ai 55a1d728f (Apache-2.0), with which calls, results, failures and turns were
-- compared. None of these logs has a session.shutdown, a sub-agent, a compaction or a rewind: these
-- rules follow the types, and no number of them was checked against a log of the program.
--
--  (1) session.start names the session; without it, the file does, or a hash of the first line of a
--      file events.jsonl.
--  (2) A user's message begins a turn, unless the program made it (its source, or a continuation of the
--      autopilot). An answer without a call, and abort, end it.
--  (3) A call is a request in a message; tool.execution_start is a call if no message requested it. A
--      command with an exit code other than 0 failed, also if the program calls that a success.
--  (4) Tokens are in session.shutdown: sums for each model since the start of the program. Each sum
--      becomes usage once. If assistant.usage gives the tokens of requests, the sums do not count. The
--      tokens of a session without a shutdown are unknown.
--  (5) What a sub-agent says (parentToolCallId, or agentId) is a session of its own,
--      <session>.agent-<call>; a prompt that only repeats the prompt of its call belongs there, too.
--  (6) session.snapshot_rewind takes back the turns that began at its event or later.
--  (7) A message of another session (record_owner: its id) is an import.record without its calls;
--      parent_session_id names that session.
--  (8) The first event of a line contains the rest of the line under "extra".

-- detect
SELECT max(CASE
    WHEN json_type(json, '$.data') IS NOT 'object' OR json_type(json, '$.id') IS NOT 'text' THEN 0
    WHEN json ->> '$.type' = 'session.start' AND json_type(json, '$.data.sessionId') = 'text'
         AND json_type(json, '$.data.producer') = 'text' THEN 98
    WHEN json ->> '$.type' IN ('tool.execution_start', 'tool.execution_complete')
         AND json_type(json, '$.data.toolCallId') = 'text' THEN 90
    WHEN json ->> '$.type' IN ('user.message', 'assistant.message') AND json_type(json, '$.data.content') = 'text' THEN 80
    ELSE 0 END) FROM lines

-- once
-- model: the last one named; usage: whether requests gave their tokens.
CREATE TABLE file (session TEXT, named INTEGER, ts INTEGER, model TEXT, usage INTEGER, agent TEXT, continued INTEGER);
INSERT INTO file SELECT CASE stem WHEN 'events' THEN NULL ELSE session_id(stem) END, 0, 1, NULL, 0, 'copilot-cli', 0 FROM source;

-- rest_ts, rest_n: an answer without a call is the last of the turn.
CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER) WITHOUT ROWID;
CREATE TABLE calls (id TEXT PRIMARY KEY, prompt TEXT) WITHOUT ROWID;
CREATE TABLE agents (id TEXT PRIMARY KEY, call TEXT) WITHOUT ROWID;
-- The number of each event, and the turns that began.
CREATE TABLE seen (id TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
CREATE TABLE turns (n INTEGER PRIMARY KEY, session TEXT, turn TEXT);

CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, type TEXT, id TEXT, sub TEXT, session TEXT, ts INTEGER, model TEXT, owner TEXT, source TEXT,
                  code INTEGER, j TEXT, d TEXT);

-- The events of a line. what: user: begins a turn; answer: may end it; busy: it continues; meta: of the session;
-- raw: the data says all.
CREATE TABLE parts (what TEXT, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT NEW.session, NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(NEW.session), 'agent_id', json_text(agent), 'status', '"idle"',
                       'parent_session_id', CASE WHEN NEW.session <> f.session THEN json_text(f.session) END,
                       'source', n.source), NEW.n
    FROM file f, now n
    WHERE NEW.what <> 'meta' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = NEW.session);
    INSERT OR IGNORE INTO sessions (session, turns) VALUES (NEW.session, 0);
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
    SELECT NEW.session, NEW.ts, NEW.type, NEW.id, CASE WHEN NEW.what IN ('meta', 'raw') THEN NEW.data
           ELSE substr(NEW.data, 1, length(NEW.data) - 1) || coalesce(',"turn_id":' || json_text(s.turn), '')
                || ',"source":' || n.source || '}' END, NEW.n
    FROM now n, sessions s WHERE s.session = NEW.session;
    UPDATE sessions SET turn = NULL WHERE session = NEW.session AND NEW.what = 'abort';
    UPDATE sessions SET rest_ts = CASE NEW.what WHEN 'answer' THEN NEW.ts END, rest_n = NEW.n
    WHERE session = NEW.session AND NEW.what IN ('user', 'answer', 'busy', 'abort');
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, d, type, id, main)
    SELECT j, CASE json_type(j, '$.data') WHEN 'object' THEN j -> '$.data' END, j ->> '$.type',
           CASE WHEN EXISTS (SELECT 1 FROM seen s WHERE s.id = j ->> '$.id') THEN NEW.hash ELSE coalesce(j ->> '$.id', NEW.hash) END,
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN json_type(j, '$.data') IS NOT 'object' THEN 'record'
                WHEN j ->> '$.type' = 'session.start' AND NOT f.named THEN 'meta'
                WHEN j ->> '$.type' = 'subagent.started' THEN 'agent'
                WHEN j ->> '$.type' = 'user.message' AND json_type(j, '$.data.content') IS NOT NULL THEN 'user'
                WHEN j ->> '$.type' = 'assistant.message' AND json_type(j, '$.data.content') IS NOT NULL THEN 'assistant'
                WHEN j ->> '$.type' = 'system.message' AND json_type(j, '$.data.content') IS NOT NULL THEN 'system'
                WHEN j ->> '$.type' = 'tool.execution_start' AND json_type(j, '$.data.toolCallId') = 'text'
                     AND NOT EXISTS (SELECT 1 FROM calls c WHERE c.id = j ->> '$.data.toolCallId') THEN 'call'
                WHEN j ->> '$.type' = 'tool.execution_complete' AND json_type(j, '$.data.toolCallId') = 'text' THEN 'result'
                WHEN j ->> '$.type' IN ('session.model_change', 'session.title_changed', 'session.context_changed',
                                        'session.resume') THEN 'update'
                WHEN j ->> '$.type' = 'session.compaction_complete' AND j ->> '$.data.success' THEN 'compaction'
                WHEN j ->> '$.type' = 'session.shutdown' AND NOT f.usage THEN 'shutdown'
                WHEN j ->> '$.type' = 'assistant.usage' THEN 'usage'
                WHEN j ->> '$.type' = 'session.error' THEN 'error'
                WHEN j ->> '$.type' = 'abort' THEN 'abort'
                WHEN j ->> '$.type' = 'session.snapshot_rewind' THEN 'rewind'
                ELSE 'record' END
    FROM file f, (SELECT NEW.json AS j);
    UPDATE file SET
        session = coalesce(CASE WHEN n.main = 'meta' THEN session_id(n.d ->> '$.sessionId') END, file.session,
                           session_id('events-' || NEW.hash)),
        named = named OR n.main = 'meta',
        agent = CASE WHEN n.main = 'meta' AND n.d ->> '$.vscodeVersion' <> '' THEN 'copilot-chat' ELSE agent END,
        ts = coalesce(time_us(n.j ->> '$.timestamp'), file.ts),
        model = coalesce(nullif(CASE n.type WHEN 'session.model_change' THEN n.d ->> '$.newModel'
                                WHEN 'assistant.message' THEN n.d ->> '$.model'
                                ELSE n.d ->> '$.selectedModel' END, 'auto'), file.model),
        usage = usage OR n.main = 'usage'
    FROM now n;
    INSERT OR IGNORE INTO seen SELECT n.id, NEW.n FROM now n;
    INSERT OR IGNORE INTO agents SELECT j ->> '$.agentId', d ->> '$.toolCallId' FROM now WHERE main = 'agent' AND j ->> '$.agentId' <> '';
    UPDATE now SET
        sub = coalesce(CASE WHEN main = 'agent' OR type IN ('subagent.completed', 'subagent.failed') THEN d ->> '$.toolCallId' END,
                       d ->> '$.parentToolCallId',
                       (SELECT a.call FROM agents a WHERE a.id = j ->> '$.agentId'), j ->> '$.agentId',
                       CASE main WHEN 'user' THEN (SELECT min(c.id) FROM calls c JOIN sessions s
                           ON s.session = session_id((SELECT f.session FROM file f) || '.agent-' || c.id)
                           WHERE c.prompt = d ->> '$.content') END),
        code = CASE main WHEN 'result' THEN coalesce(
            d ->> '$.shellExecution.exitCode',
            (SELECT e.value ->> '$.exitCode' FROM json_each(d, '$.result.contents') e
             WHERE e.type = 'object' AND json_type(e.value, '$.exitCode') = 'integer'),
            (SELECT CAST(substr(t, at + 15) AS INTEGER) FROM (SELECT t, instr(t, 'with exit code ') AS at FROM (
                 SELECT substr(d ->> '$.result.content', -60) AS t)) WHERE at > 0 AND t LIKE '%>')) END;
    UPDATE calls SET prompt = NULL
    WHERE prompt IS NOT NULL AND prompt = (SELECT d ->> '$.content' FROM now WHERE main = 'user' AND sub IS NOT NULL);
    UPDATE now SET session = CASE WHEN sub IS NULL THEN f.session ELSE session_id(f.session || '.agent-' || sub) END,
        ts = f.ts, model = coalesce(d ->> '$.model', f.model)
    FROM file f;
    UPDATE now SET owner = nullif(record_owner('copilot ' || id, session), session)
    WHERE main IN ('user', 'assistant') AND j ->> '$.id' <> '';
    UPDATE now SET source = json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', NEW.n,
        'record', now.j -> '$.id',
        'origin', CASE WHEN main IN ('user', 'assistant') AND owner IS NULL AND now.j ->> '$.id' <> '' THEN json_text('copilot ' || id) END,
        'copied', CASE WHEN owner IS NOT NULL THEN 'true' END)
    FROM source s;
    INSERT OR IGNORE INTO calls
    SELECT c.value ->> '$.toolCallId', NULL FROM now, json_each(d, '$.toolRequests') c
    WHERE owner IS NOT NULL AND c.type = 'object' AND c.value ->> '$.toolCallId' IS NOT NULL;
    INSERT INTO parts
    SELECT 'note', f.session, n.ts, 'session.updated', 'session.continues',
           json_fields('set', json_fields('parent_session_id', json_text(owner))), NEW.n
    FROM now n, file f WHERE owner IS NOT NULL AND NOT continued;
    UPDATE file SET continued = 1 WHERE (SELECT owner FROM now) IS NOT NULL;

    INSERT INTO parts
    SELECT CASE main
           WHEN 'user' THEN CASE WHEN owner IS NULL AND sub IS NULL AND NOT by_program THEN 'user' ELSE 'note' END
           WHEN 'assistant' THEN CASE WHEN owner IS NOT NULL THEN 'note' WHEN called THEN 'busy' ELSE 'answer' END
           WHEN 'call' THEN 'busy' WHEN 'result' THEN 'busy' WHEN 'abort' THEN 'abort'
           WHEN 'meta' THEN 'meta' WHEN 'agent' THEN CASE WHEN begun THEN 'note' ELSE 'meta' END ELSE 'note' END,
        session, ts,
        CASE WHEN owner IS NOT NULL THEN 'import.record' ELSE CASE main
        WHEN 'meta' THEN 'session.created'
        WHEN 'agent' THEN CASE WHEN begun THEN 'import.record' ELSE 'session.created' END
        WHEN 'user' THEN 'message.added' WHEN 'system' THEN 'message.added'
        WHEN 'assistant' THEN CASE WHEN called AND said IS NULL THEN 'import.record' ELSE 'message.added' END
        WHEN 'call' THEN 'tool.called' WHEN 'result' THEN CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END
        WHEN 'update' THEN 'session.updated' WHEN 'compaction' THEN 'checkpoint.noted' WHEN 'usage' THEN 'agent.turn.usage'
        WHEN 'error' THEN 'provider.failed'
        WHEN 'abort' THEN CASE WHEN open THEN 'turn.cancelled' ELSE 'import.record' END
        WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END END,
        CASE WHEN main = 'meta' OR main = 'agent' AND NOT begun THEN 'session.created'
             WHEN main = 'unreadable' THEN NEW.hash ELSE id END,
        CASE WHEN owner IS NOT NULL THEN json_fields('kind', json_text(type), 'extra', json_remove(j, '$.type'))
        ELSE CASE main
        WHEN 'meta' THEN json_fields('id', json_text(session), 'agent_id', json_text(agent), 'provider', '"github-copilot"',
            'model', json_text(model), 'status', '"idle"', 'working_directory', d -> '$.context.cwd',
            'git_branch', d -> '$.context.branch', 'created_at', d -> '$.startTime',
            'parent_session_id', json_text(session_id(d ->> '$.detachedFromSpawningParentSessionId')),
            'source', source, 'extra', json_remove(j, '$.data.context.cwd', '$.data.context.branch', '$.data.startTime'))
        WHEN 'agent' THEN CASE WHEN begun THEN json_fields('kind', json_text(type), 'extra', json_remove(j, '$.type'))
            ELSE json_fields('id', json_text(session), 'agent_id', json_text(agent), 'provider', '"github-copilot"',
            'model', json_text(model), 'status', '"idle"', 'title', coalesce(d -> '$.agentDisplayName', d -> '$.agentName'),
            'created_at', j -> '$.timestamp', 'parent_session_id', json_text(main_session),
            'source', source, 'extra', json_remove(j, '$.timestamp', '$.data.agentDisplayName')) END
        WHEN 'user' THEN json_fields('id', json_text(id), 'role', '"user"', 'content', d -> '$.content',
            'said', CASE WHEN by_program THEN '""' END,
            'extra', json_remove(j, '$.id', '$.data.content'))
        WHEN 'system' THEN json_fields('id', json_text(id), 'role', coalesce(d -> '$.role', '"system"'), 'content', d -> '$.content',
            'extra', json_remove(j, '$.id', '$.data.role', '$.data.content'))
        WHEN 'assistant' THEN CASE WHEN called AND said IS NULL
            THEN json_fields('kind', '"calls"', 'extra', json_remove(j, '$.data.toolRequests'))
            ELSE json_fields('id', json_text(id), 'role', '"assistant"', 'content', coalesce(said, '""'),
                'message_id', d -> '$.messageId', 'model', json_text(model),
                'extra', json_remove(j, '$.id', '$.data.content', '$.data.reasoningText', '$.data.messageId', '$.data.model',
                                     '$.data.toolRequests')) END
        WHEN 'call' THEN json_fields('call_id', d -> '$.toolCallId', 'tool', coalesce(d -> '$.toolName', '"unknown"'),
            'input', d -> '$.arguments',
            'extra', json_remove(j, '$.data.toolCallId', '$.data.toolName', '$.data.arguments'))
        WHEN 'result' THEN json_fields('call_id', d -> '$.toolCallId',
            'success', CASE WHEN failed THEN 'false' WHEN d ->> '$.success' THEN 'true' END, 'output', output, 'exit_code', code,
            'extra', json_remove(j, '$.data.toolCallId',
                CASE WHEN json_type(d, '$.error.message') IS NOT NULL THEN '$.data.error.message'
                     WHEN json_type(d, '$.result.content') IS NOT NULL THEN '$.data.result.content' ELSE '$.data.result' END))
        WHEN 'update' THEN json_fields('set', json_fields('model', CASE WHEN d ->> '$.newModel' <> 'auto' THEN d -> '$.newModel' END,
                'title', CASE type WHEN 'session.title_changed' THEN d -> '$.title' END,
                'working_directory', coalesce(d -> '$.context.cwd', d -> '$.cwd'),
                'git_branch', coalesce(d -> '$.context.branch', d -> '$.branch')), 'extra', j)
        WHEN 'compaction' THEN json_fields('note', '"compaction"', 'trigger', d -> '$.trigger',
            'pre_tokens', d -> '$.preCompactionTokens', 'extra', json_remove(j, '$.data.trigger', '$.data.preCompactionTokens'))
        WHEN 'usage' THEN json_fields('model', d -> '$.model', 'input_tokens', d -> '$.inputTokens', 'output_tokens', d -> '$.outputTokens',
            'cached_input_tokens', d -> '$.cacheReadTokens', 'cache_write_tokens', d -> '$.cacheWriteTokens',
            'reasoning_output_tokens', d -> '$.reasoningTokens',
            'extra', json_remove(j, '$.data.model', '$.data.inputTokens', '$.data.outputTokens', '$.data.cacheReadTokens',
                                 '$.data.cacheWriteTokens', '$.data.reasoningTokens'))
        WHEN 'error' THEN json_fields('provider', '"github-copilot"', 'error', d, 'extra', json_remove(j, '$.data'))
        WHEN 'abort' THEN CASE WHEN open THEN json_fields('reason', '"interrupted"', 'extra', j)
            ELSE json_fields('kind', json_text(type), 'extra', json_remove(j, '$.type')) END
        WHEN 'unreadable' THEN NEW.unreadable
        ELSE json_fields('kind', coalesce(json_text(type), '"line"'),
                         'extra', CASE json_type(j) WHEN 'object' THEN json_remove(j, '$.type') ELSE j END) END END,
        NEW.n
    FROM (SELECT n.*, f.agent, f.session AS main_session,
                 EXISTS (SELECT 1 FROM sessions s WHERE s.session = n.session) AS begun,
                 EXISTS (SELECT 1 FROM sessions s WHERE s.session = n.session AND s.turn IS NOT NULL) AS open,
                 coalesce(d ->> '$.source', 'user') <> 'user' OR coalesce(d ->> '$.isAutopilotContinuation', 0) AS by_program,
                 json_type(d, '$.toolRequests[0]') IS NOT NULL AS called,
                 CASE WHEN d ->> '$.reasoningText' <> '' THEN '[{"type":"thinking","thinking":' || (d -> '$.reasoningText') || '}'
                           || CASE WHEN d ->> '$.content' <> '' THEN ',{"type":"text","text":' || (d -> '$.content') || '}' ELSE '' END || ']'
                      WHEN d ->> '$.content' <> '' THEN d -> '$.content' END AS said,
                 NOT coalesce(d ->> '$.success', d ->> '$.result.result_type' IS NOT 'failure') OR coalesce(code, 0) <> 0 AS failed,
                 coalesce(d -> '$.error.message', d -> '$.result.content', d -> '$.result') AS output
          FROM now n, file f);

    -- The calls in a message, the turns that were taken back, and the sums of tokens.
    INSERT INTO parts
    SELECT 'busy', n.session, n.ts, 'tool.called', n.id || '.call.' || c.key,
           json_fields('call_id', coalesce(c.value -> '$.toolCallId', json_text(n.id || '.' || c.key)),
               'tool', coalesce(c.value -> '$.name', '"unknown"'), 'input', c.value -> '$.arguments', 'message_id', json_text(n.id),
               'extra', json_remove(c.value, '$.toolCallId', '$.name', '$.arguments')), NEW.n
    FROM now n, json_each(d, '$.toolRequests') c WHERE main = 'assistant' AND owner IS NULL AND c.type = 'object';
    INSERT OR IGNORE INTO calls
    SELECT c.value ->> '$.toolCallId', CASE json_type(c.value, '$.arguments') WHEN 'object' THEN c.value ->> '$.arguments.prompt' END
    FROM now n, json_each(d, '$.toolRequests') c
    WHERE main = 'assistant' AND c.type = 'object' AND json_type(c.value, '$.toolCallId') = 'text';
    INSERT OR IGNORE INTO calls
    SELECT d ->> '$.toolCallId', CASE json_type(d, '$.arguments') WHEN 'object' THEN d ->> '$.arguments.prompt' END
    FROM now n WHERE main = 'call';
    INSERT INTO turns SELECT NEW.n, n.session, s.turn FROM now n JOIN sessions s USING (session) WHERE main = 'user' AND s.turn = n.id;
    INSERT INTO parts
    SELECT 'raw', t.session, n.ts, 'turn.rolled_back', n.id || '.back.' || t.turn,
           json_fields('turn_id', json_text(t.turn), 'reason', '"rewind"', 'source', n.source), NEW.n
    FROM now n, turns t WHERE main = 'rewind' AND t.n >= (SELECT k.n FROM seen k WHERE k.id = n.d ->> '$.upToEventId');
    DELETE FROM turns WHERE n >= (SELECT k.n FROM seen k, now n WHERE n.main = 'rewind' AND k.id = n.d ->> '$.upToEventId');
    INSERT INTO parts
    SELECT 'note', n.session, n.ts, 'agent.turn.usage', n.id || '.usage.' || m.key,
           json_fields('model', json_text(m.key), 'requests', m.value -> '$.requests.count', 'prompt_tokens', -1,
               'input_tokens', m.value -> '$.usage.inputTokens', 'output_tokens', m.value -> '$.usage.outputTokens',
               'cached_input_tokens', m.value -> '$.usage.cacheReadTokens', 'cache_write_tokens', m.value -> '$.usage.cacheWriteTokens',
               'reasoning_output_tokens', m.value -> '$.usage.reasoningTokens'), NEW.n
    FROM now n, json_each(d, '$.modelMetrics') m
    WHERE main = 'shutdown' AND m.type = 'object' AND (m.value ->> '$.usage.inputTokens' > 0 OR m.value ->> '$.usage.outputTokens' > 0);
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
