-- importer dsh   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: assistant/chunk *-chunks step/* turn/* request/* permission/* approval/* agent/* agent-preset/* command/* hook/* feedback/*
-- records: goal/* plan/* sandbox/* schedule/* session/* subagent/* todo/* tool/* tool-workflow/* compaction/* web/* llm/* assistant/message
-- files: *.jsonl *.jsonl.zstd
-- places: $DSH_HOME/sessions ~/.dsh/sessions
--
-- Sessions of the harness of DeepSeek (dsh): ~/.dsh/sessions/<project>/<session>/session.jsonl, or
-- session.jsonl.zstd. docs/events.md lists the resulting events; annal/import.h describes the tables
-- that an importer can read.
--
-- The form was learnt from the notes and readers of getagentseal/codeburn ed8fa3af (MIT) and
-- kenn-io/agentsview 538600744 (MIT), and from a recorded turn in the former, with which calls, results
-- and tokens were compared. That turn has no failed call, fork, compaction or sub-agent.
--
--  (1) The session is the id of the first line, else the file.
--  (2) The first message of the user in a turn of the program begins a turn; turn/end ends it, with its
--      reason. Messages of plugins are context, and begin none.
--  (3) Calls are the blocks tool-call of an answer; tool/call is a call if no answer had it. A result
--      with isError is a failure.
--  (4) inputTokens are without cached ones, outputTokens with reasoning. Usage in a chunk is the same
--      as in the answer, and does not count.
--  (5) A fork repeats its parent's events: those before seedLength are import.records.
--  (6) The first event of a line contains the rest of the line under "extra".

-- detect
SELECT max(CASE
    WHEN json_type(json, '$.data') IS NOT 'object' OR json_type(json, '$.time') IS NOT 'integer' OR json_type(json, '$.seq') IS NOT 'integer' THEN 0
    WHEN json ->> '$.type' = 'user/message' AND json_type(json, '$.data.content') = 'array' THEN 90
    WHEN json ->> '$.type' = 'assistant/message' AND json_type(json, '$.data.message.content') = 'array' THEN 90
    WHEN json ->> '$.type' IN ('turn/start', 'step/start', 'tool/call', 'tool/result') THEN 80
    ELSE 0 END) FROM lines

-- once
-- owned: the first seq that is not a copy; began: whether the turn of the program has a message of the
-- user, NULL before the first turn: each message then begins one.
CREATE TABLE file (session TEXT, named INTEGER, ts INTEGER, made INTEGER, model TEXT, owned INTEGER, began INTEGER, turn TEXT, turns INTEGER,
                   rest_ts INTEGER, rest_n INTEGER);
INSERT INTO file SELECT session_id(stem), 0, 1, 0, NULL, 0, NULL, NULL, 0, NULL, NULL FROM source;
CREATE TABLE calls (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE out (ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, type TEXT, id TEXT, called INTEGER, copied INTEGER, ts INTEGER, source TEXT, said TEXT, c TEXT, j TEXT);

-- The events of a line. what: user: begins a turn; answer: may end it; busy: it continues; abort: it
-- is cancelled; meta: of the session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(f.session), 'agent_id', '"dsh"', 'status', '"idle"', 'source', n.source), NEW.n
    FROM file f, now n WHERE NOT f.made AND NEW.what <> 'meta';
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
    UPDATE file SET turn = NEW.id, turns = turns + 1 WHERE NEW.what = 'user';
    INSERT INTO out
    SELECT NEW.ts, NEW.type, NEW.id,
           substr(NEW.data, 1, length(NEW.data) - 1)
           || CASE NEW.what WHEN 'meta' THEN '' ELSE coalesce(',"turn_id":' || json_text(f.turn), '') END
           || ',"source":' || n.source || '}', NEW.n
    FROM now n, file f;
    UPDATE file SET turn = CASE NEW.what WHEN 'abort' THEN NULL ELSE turn END,
                    rest_ts = CASE NEW.what WHEN 'answer' THEN NEW.ts END, rest_n = NEW.n
    WHERE NEW.what IN ('user', 'answer', 'busy', 'abort');
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, type, id, copied, main, c)
    SELECT j, j ->> '$.type', 'seq.' || (j ->> '$.seq') || '.' || NEW.hash,
           coalesce(CASE json_type(j, '$.seq') WHEN 'integer' THEN j ->> '$.seq' ELSE j ->> '$.seq0' END < f.owned, 0),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.type' = 'session' AND NOT f.named AND NOT f.made THEN 'meta'
                WHEN json_type(j, '$.data') IS NOT 'object' THEN 'record'
                WHEN j ->> '$.type' = 'user/message' AND json_type(j, '$.data.content') IN ('array', 'text') THEN 'user'
                WHEN j ->> '$.type' = 'assistant/message' AND json_type(j, '$.data.message.content') = 'array' THEN 'assistant'
                WHEN j ->> '$.type' = 'tool/call' AND json_type(j, '$.data.callId') = 'text'
                     AND NOT EXISTS (SELECT 1 FROM calls k WHERE k.id = j ->> '$.data.callId') THEN 'call'
                WHEN j ->> '$.type' = 'tool/result' AND json_type(j, '$.data.message.content') = 'array' THEN 'result'
                WHEN j ->> '$.type' = 'session/title' AND json_type(j, '$.data.title') = 'text' THEN 'title'
                WHEN j ->> '$.type' = 'compaction/end' THEN 'compaction'
                WHEN j ->> '$.type' = 'llm/retry' THEN 'error'
                WHEN j ->> '$.type' = 'turn/end' THEN 'end'
                ELSE 'record' END,
           coalesce(CASE json_type(j, '$.data.message.content') WHEN 'array' THEN j -> '$.data.message.content' END,
                    CASE json_type(j, '$.data.content') WHEN 'array' THEN j -> '$.data.content' END)
    FROM file f, (SELECT NEW.json AS j);
    UPDATE file SET session = CASE n.main WHEN 'meta' THEN coalesce(session_id(n.j ->> '$.id'), file.session) ELSE file.session END,
        named = file.named OR n.main = 'meta',
        owned = CASE WHEN n.main = 'meta' AND json_type(n.j, '$.seedLength') = 'integer' THEN n.j ->> '$.seedLength' ELSE file.owned END,
        began = CASE WHEN n.type = 'turn/start' THEN 0 ELSE file.began END,
        ts = coalesce(CASE WHEN n.j ->> '$.time' > 1000000000000 THEN CAST(n.j ->> '$.time' AS INTEGER) * 1000
                           WHEN n.j ->> '$.time0' > 1000000000000 THEN CAST(n.j ->> '$.time0' AS INTEGER) * 1000
                           WHEN n.j ->> '$.createdAt' > 1000000000000 THEN CAST(n.j ->> '$.createdAt' AS INTEGER) * 1000 END, file.ts)
    FROM now n;
    UPDATE now SET ts = f.ts, id = coalesce(id, NEW.hash), called = EXISTS (SELECT 1 FROM json_each(c) b WHERE b.type = 'object' AND b.value ->> '$.type' = 'tool-call'),
        said = CASE WHEN main IN ('user', 'assistant') THEN CASE WHEN c IS NULL THEN j -> '$.data.content' ELSE (
            SELECT json_group_array(json(CASE WHEN b.type = 'text' THEN json_text(b.value) WHEN b.type NOT IN ('object', 'array') THEN coalesce(b.value, 'null')
                                              ELSE b.value END))
            FROM json_each(c) b WHERE b.type <> 'object' OR b.value ->> '$.type' IS NOT 'tool-call') END END,
        source = json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', NEW.n,
            'record', CASE WHEN json_type(j, '$.seq') = 'integer' THEN json_text(j ->> '$.seq') END, 'copied', CASE WHEN copied THEN 'true' END)
    FROM file f, source s;
    UPDATE now SET said = NULL WHERE said = '[]';
    INSERT INTO parts
    SELECT 'note', n.ts, 'session.updated', n.id || '.model', json_fields('set', json_fields('model', j -> '$.data.message.source.model')), NEW.n
    FROM now n, file f WHERE main = 'assistant' AND NOT copied AND json_type(j, '$.data.message.source.model') = 'text'
      AND j ->> '$.data.message.source.model' IS NOT f.model;
    UPDATE file SET model = coalesce((SELECT CASE WHEN json_type(n.j, '$.data.message.source.model') = 'text' THEN n.j ->> '$.data.message.source.model' END
                                      FROM now n WHERE n.main = 'assistant'), model);
    INSERT INTO parts
    SELECT CASE WHEN main = 'meta' THEN 'meta' WHEN copied THEN 'note'
                WHEN main = 'user' THEN CASE WHEN human AND NOT coalesce(began, 0) THEN 'user' ELSE 'note' END
                WHEN main = 'assistant' THEN CASE WHEN called THEN 'busy' ELSE 'answer' END
                WHEN main IN ('call', 'result') THEN 'busy'
                WHEN main = 'end' AND turn IS NOT NULL THEN 'abort' ELSE 'note' END,
        ts,
        CASE WHEN copied AND main <> 'unreadable' THEN 'import.record' ELSE CASE main
        WHEN 'meta' THEN 'session.created' WHEN 'user' THEN 'message.added'
        WHEN 'assistant' THEN CASE WHEN said IS NULL THEN 'import.record' ELSE 'message.added' END
        WHEN 'call' THEN 'tool.called'
        WHEN 'title' THEN 'session.updated' WHEN 'compaction' THEN 'checkpoint.noted' WHEN 'error' THEN 'provider.failed'
        WHEN 'end' THEN CASE WHEN turn IS NULL THEN 'import.record' WHEN reason IN ('error', 'failed') THEN 'turn.failed'
                        WHEN reason IN ('completed', 'stop') THEN 'turn.completed' WHEN reason IS NULL THEN 'turn.completed' ELSE 'turn.cancelled' END
        WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END END,
        CASE main WHEN 'meta' THEN 'session.created' ELSE id END,
        CASE WHEN copied AND main <> 'unreadable' THEN json_fields('kind', json_text(type), 'extra', j) ELSE CASE main
        WHEN 'meta' THEN json_fields('id', json_text(session_id(j ->> '$.id')), 'agent_id', '"dsh"', 'status', '"idle"',
            'working_directory', CASE WHEN json_type(j, '$.cwd') = 'text' THEN j -> '$.cwd' END,
            'parent_session_id', json_text(session_id(j ->> '$.parentSession')), 'extra', j)
        WHEN 'user' THEN json_fields('id', json_text(id), 'role', CASE WHEN human THEN '"user"' ELSE '"system"' END, 'content', coalesce(said, '""'),
            'extra', json_remove(j, '$.data.content'))
        WHEN 'assistant' THEN CASE WHEN said IS NULL
            THEN json_fields('kind', '"assistant/message"', 'extra', CASE WHEN called THEN json_remove(j, '$.data.message.content') ELSE j END)
            ELSE json_fields('id', json_text(id), 'role', '"assistant"', 'content', said, 'model', json_text(model),
                'extra', json_remove(j, '$.data.message.content')) END
        WHEN 'call' THEN json_fields('call_id', j -> '$.data.callId', 'tool', coalesce(j -> '$.data.name', '"unknown"'), 'input', j -> '$.data.arguments',
            'extra', json_remove(j, '$.data.callId', '$.data.name', '$.data.arguments'))
        WHEN 'result' THEN json_fields('kind', '"tool/result"', 'extra', json_remove(j, '$.data.message.content'))
        WHEN 'title' THEN json_fields('set', json_fields('title', j -> '$.data.title'), 'extra', json_remove(j, '$.data.title'))
        WHEN 'compaction' THEN json_fields('note', '"compaction"', 'extra', j)
        WHEN 'error' THEN json_fields('provider', '"deepseek"', 'error', j -> '$.data', 'extra', json_remove(j, '$.data'))
        WHEN 'end' THEN CASE WHEN turn IS NULL THEN json_fields('kind', '"turn/end"', 'extra', j)
            ELSE json_fields('reason', CASE WHEN reason IN ('error', 'failed', 'completed', 'stop') OR reason IS NULL THEN '"answered"' ELSE '"interrupted"' END,
                'error', CASE WHEN reason IN ('error', 'failed') THEN j -> '$.data.reason' END, 'extra', j) END
        WHEN 'unreadable' THEN NEW.unreadable
        ELSE json_fields('kind', coalesce(json_text(type), '"line"'), 'extra', j) END END, NEW.n
    FROM (SELECT n.*, f.model, f.began, f.turn, coalesce(j ->> '$.data.source.kind', 'user') = 'user' AS human,
                 coalesce(CASE json_type(j, '$.data.reason') WHEN 'text' THEN j ->> '$.data.reason' END, j ->> '$.data.reason.kind') AS reason
          FROM now n, file f);
    UPDATE file SET began = 1
    WHERE began = 0 AND EXISTS (SELECT 1 FROM now n WHERE n.main = 'user' AND coalesce(n.j ->> '$.data.source.kind', 'user') = 'user');
    INSERT INTO parts
    SELECT 'busy', n.ts, 'tool.called', n.id || '.call.' || b.key,
           json_fields('call_id', coalesce(b.value -> '$.id', json_text(n.id || '.' || b.key)), 'tool', coalesce(b.value -> '$.name', '"unknown"'),
               'input', b.value -> '$.arguments', 'message_id', json_text(n.id), 'extra', json_remove(b.value, '$.id', '$.name', '$.arguments')), NEW.n
    FROM now n, json_each(n.c) b
    WHERE main = 'assistant' AND NOT copied AND b.type = 'object' AND b.value ->> '$.type' = 'tool-call';
    INSERT OR IGNORE INTO calls SELECT b.value ->> '$.id' FROM now n, json_each(n.c) b
    WHERE main = 'assistant' AND b.type = 'object' AND b.value ->> '$.type' = 'tool-call' AND b.value ->> '$.id' IS NOT NULL;
    INSERT OR IGNORE INTO calls SELECT j ->> '$.data.callId' FROM now WHERE main = 'call';
    INSERT INTO parts
    SELECT 'busy', n.ts, CASE WHEN b.type <> 'object' THEN 'import.record' WHEN b.value ->> '$.isError' THEN 'tool.failed' ELSE 'tool.returned' END,
           n.id || '.result.' || b.key,
           CASE WHEN b.type <> 'object' THEN json_fields('kind', '"tool/result"', 'extra', n.c)
           ELSE json_fields('call_id', coalesce(b.value -> '$.toolCallId', j -> '$.data.message.source.callId', json_text(n.id || '.' || b.key)),
               'success', CASE WHEN b.value ->> '$.isError' THEN 'false' ELSE 'true' END, 'output', b.value -> '$.content',
               'extra', json_remove(b.value, '$.toolCallId', '$.content')) END, NEW.n
    FROM now n, json_each(n.c) b WHERE main = 'result' AND NOT copied;
    INSERT INTO parts
    SELECT 'note', n.ts, 'agent.turn.usage', n.id || '.usage',
           json_fields('message_id', json_text(n.id), 'model', json_text(f.model),
               'input_tokens', CAST(coalesce(u ->> '$.inputTokens', 0) + coalesce(u ->> '$.cacheReadTokens', 0) + coalesce(u ->> '$.cacheWriteTokens', 0) AS INTEGER),
               'output_tokens', u -> '$.outputTokens', 'cached_input_tokens', u -> '$.cacheReadTokens', 'cache_write_tokens', u -> '$.cacheWriteTokens',
               'reasoning_output_tokens', u -> '$.reasoningTokens'), NEW.n
    FROM now n, file f, (SELECT CASE json_type(j, '$.data.usage') WHEN 'object' THEN j -> '$.data.usage' END AS u FROM now)
    WHERE main = 'assistant' AND NOT copied AND (u ->> '$.inputTokens' > 0 OR u ->> '$.outputTokens' > 0 OR u ->> '$.cacheReadTokens' > 0);
    DELETE FROM parts;
END;

-- batch
SELECT f.session, o.ts, o.type, o.id, NULL, o.data, o.n FROM out o, file f ORDER BY o.rowid;
DELETE FROM out;

-- end
SELECT session, rest_ts, 'turn.completed', turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', rest_n)), rest_n
FROM file, source WHERE turn IS NOT NULL AND rest_ts IS NOT NULL;
