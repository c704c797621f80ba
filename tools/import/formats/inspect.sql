-- importer inspect   version 2
-- SPDX-License-Identifier: Apache-2.0
-- records: head calls events start reductions config_updates
-- files: *.eval *.json
-- archive: header.json _journal/start.json reductions.json _journal/config_updates/*.json samples/*.json samples/*/*.json
-- archive: samples/*/*/*.json
-- split: $.samples
-- places: $INSPECT_LOG_DIR
--
-- Logs of Inspect (inspect_ai): archives .eval with a file for each sample, and the JSON form, one
-- document with the evaluation and its samples. docs/events.md lists the resulting events;
-- annal/import.h describes the tables that an importer can read.
--
-- The form was learnt from recorded logs in UKGovernmentBEIS/inspect_ai 499e6152e (MIT: tests/analysis,
-- tests/log), with which samples, messages, calls, results, failures and tokens were compared. None of
-- them has a sample that failed or reached a limit. Samples in several files (samples/ID/), which its
-- newest code can write, are kept as import.records: no such log was found in public.
--
--  (1) Each sample is a session: its uuid, else the run with the id of the sample and its epoch. It has
--      the time of its start, else that of the evaluation.
--  (2) A user's message begins a turn. An answer without a call ends it. A message of a tool is the
--      result of its call, and a failure if it has an error.
--  (3) Tokens are in model_usage: sums for each model. All of total_tokens that is not output is input,
--      because versions differ in whether input_tokens contain cached ones.
--  (4) An error of a sample fails its last turn.
--  (5) The events of a sample repeat its messages, and are one import.record.
--  (6) The first event of a sample contains the rest of it under "extra".

-- detect
SELECT max(CASE
    WHEN coalesce(json ->> '$.at', json ->> '$.file') IN ('$', 'header.json', '_journal/start.json')
         AND json_type(json, '$.value.eval.task') = 'text' AND json_type(json, '$.value.eval.model') = 'text'
         AND json_type(json, '$.value.version') = 'integer'
         AND (json_type(json, '$.value.status') = 'text' OR json ->> '$.file' = '_journal/start.json') THEN 95
    ELSE 0 END) FROM lines

-- once
-- rest_ts, rest_n: an answer without a call is the last of the turn.
CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER) WITHOUT ROWID;
-- headed: whether the head was read; in an archive that is not complete, the start of the journal is it.
CREATE TABLE file (session TEXT, ts INTEGER, model TEXT, task TEXT, run TEXT, headed INTEGER);
INSERT INTO file SELECT session_id(stem), 1, NULL, NULL, stem, 0 FROM source;
CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, session TEXT, ts INTEGER, source TEXT, j TEXT, s TEXT);

-- The events of a sample. what: user: begins a turn; answer: may end it; busy: it continues; cancelled,
-- failed: it ends; meta: of the session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT n.session, NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(n.session), 'agent_id', '"inspect"', 'status', '"idle"', 'source', n.source), NEW.n
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
    UPDATE sessions SET turn = CASE WHEN NEW.what IN ('cancelled', 'failed') THEN NULL ELSE turn END,
                        rest_ts = CASE NEW.what WHEN 'answer' THEN NEW.ts END, rest_n = NEW.n
    WHERE NEW.what IN ('user', 'answer', 'busy', 'cancelled', 'failed') AND session = (SELECT n.session FROM now n);
END;

-- The messages of a sample, one after the other.
CREATE TABLE messages (k INTEGER, id TEXT, ts INTEGER, role TEXT, n INTEGER, m TEXT);
CREATE TABLE ids (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER message AFTER INSERT ON messages BEGIN
    UPDATE messages SET id = 'message.' || k WHERE EXISTS (SELECT 1 FROM ids i WHERE i.id = messages.id);
    INSERT OR IGNORE INTO ids SELECT x.id FROM messages x;
    INSERT INTO parts
    SELECT CASE role WHEN 'user' THEN 'user' WHEN 'assistant' THEN CASE WHEN json_type(m, '$.tool_calls[0]') IS NULL THEN 'answer' ELSE 'busy' END
                WHEN 'tool' THEN 'busy' ELSE 'note' END, ts,
           CASE WHEN role = 'tool' THEN CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END
                WHEN role = 'assistant' AND json_type(m, '$.tool_calls[0]') IS NOT NULL AND said IN ('""', '[]') THEN 'import.record'
                ELSE 'message.added' END, id,
           CASE WHEN role = 'tool' THEN json_fields('call_id', coalesce(m -> '$.tool_call_id', json_text(id)), 'success', CASE WHEN failed THEN 'false' ELSE 'true' END,
                    'output', CASE WHEN failed AND said IN ('""', '[]') THEN m -> '$.error' ELSE said END, 'extra', json_remove(m, '$.tool_call_id', '$.content'))
                WHEN role = 'assistant' AND json_type(m, '$.tool_calls[0]') IS NOT NULL AND said IN ('""', '[]')
                THEN json_fields('kind', '"calls"', 'extra', json_remove(m, '$.tool_calls'))
                ELSE json_fields('id', json_text(id), 'role', json_text(role), 'content', said,
                    'model', CASE role WHEN 'assistant' THEN m -> '$.model' END, 'extra', json_remove(m, '$.role', '$.content', '$.tool_calls')) END, n
    FROM (SELECT *, coalesce(json_type(m, '$.error'), 'null') <> 'null' AS failed,
                 CASE json_type(m, '$.content') WHEN 'array' THEN (
                     SELECT json_group_array(CASE WHEN b.type = 'object' AND json_type(b.value, '$.reasoning') = 'text' AND b.value ->> '$.type' = 'reasoning'
                                                  -- The conventions read a thought as "thinking".
                                                  THEN json('{"thinking":' || (b.value -> '$.reasoning') || ',' || substr(b.value, 2))
                                                  WHEN b.type IN ('object', 'array') THEN json(b.value) ELSE b.value END)
                     FROM json_each(m, '$.content') b)
                 ELSE coalesce(m -> '$.content', '""') END AS said
          FROM messages WHERE k = NEW.k AND n = NEW.n);
    INSERT INTO parts
    SELECT 'busy', ts, CASE WHEN c.type = 'object' THEN 'tool.called' ELSE 'import.record' END, x.id || '.call.' || c.key,
           CASE WHEN c.type = 'object' THEN json_fields('call_id', coalesce(c.value -> '$.id', json_text(x.id || '.' || c.key)),
               'tool', coalesce(c.value -> '$.function', '"unknown"'), 'input', c.value -> '$.arguments', 'message_id', json_text(x.id),
               'extra', json_remove(c.value, '$.id', '$.function', '$.arguments'))
           ELSE json_fields('kind', '"calls"', 'extra', x.m -> '$.tool_calls') END, n
    FROM messages x, json_each(x.m, '$.tool_calls') c WHERE x.k = NEW.k AND x.n = NEW.n AND role <> 'tool';
    DELETE FROM messages;
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    DELETE FROM ids;
    INSERT INTO now (j, s, main, source)
    SELECT j, j -> '$.value', CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.file' = '_journal/start.json' AND headed THEN 'record'
                WHEN coalesce(j ->> '$.at', j ->> '$.file') IN ('$', 'header.json', '_journal/start.json') AND json_type(j, '$.value') = 'object' THEN 'head'
                WHEN (j ->> '$.at' = '$.samples' OR j ->> '$.file' GLOB 'samples/*') AND json_type(j, '$.value.messages') = 'array' THEN 'sample'
                ELSE 'record' END,
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', CASE WHEN json_type(j, '$.value.uuid') = 'text' THEN j -> '$.value.uuid' END)
    FROM source, file, (SELECT NEW.json AS j);
    UPDATE file SET headed = 1, ts = coalesce(time_us(n.s ->> '$.eval.created'), file.ts), model = n.s ->> '$.eval.model', task = n.s ->> '$.eval.task',
        run = coalesce(n.s ->> '$.eval.eval_id', n.s ->> '$.eval.run_id', file.run)
    FROM now n WHERE n.main = 'head';
    -- The evaluation itself is a session of its own, without turns.
    UPDATE now SET ts = coalesce(time_us(CASE WHEN json_type(s, '$.started_at') = 'text' THEN s ->> '$.started_at' END), f.ts),
        session = CASE main WHEN 'sample' THEN coalesce(session_id(CASE WHEN json_type(s, '$.uuid') = 'text' THEN s ->> '$.uuid' END),
                                session_id(f.run || '-' || coalesce(s ->> '$.id', j ->> '$.index') || '-' || coalesce(s ->> '$.epoch', 1)))
                  ELSE session_id(f.run) END
    FROM file f;
    INSERT INTO parts
    SELECT CASE main WHEN 'unreadable' THEN 'note' WHEN 'record' THEN 'note' ELSE 'meta' END, n.ts,
           CASE main WHEN 'unreadable' THEN 'import.unreadable' WHEN 'record' THEN 'import.record' ELSE 'session.created' END,
           CASE WHEN main IN ('head', 'sample') THEN 'session.created' ELSE NEW.hash END,
           CASE main WHEN 'unreadable' THEN NEW.unreadable
           WHEN 'record' THEN json_fields('kind', CASE j ->> '$.file' WHEN '_journal/start.json' THEN '"start"' WHEN 'reductions.json' THEN '"reductions"'
               ELSE CASE WHEN j ->> '$.file' GLOB '_journal/config_updates/*' THEN '"config_updates"' ELSE '"line"' END END, 'extra', j)
           WHEN 'head' THEN json_fields('id', json_text(n.session), 'agent_id', '"inspect"', 'status', '"idle"', 'model', json_text(f.model),
               'title', json_text(f.task), 'extra', s -> '$.eval')
           ELSE json_fields('id', json_text(n.session), 'agent_id', '"inspect"', 'status', '"idle"', 'model', json_text(f.model), 'flow_id', json_text(f.run),
               'parent_session_id', json_text(session_id(f.run)),
               'extra', json_remove(j, '$.value.messages', '$.value.events', '$.value.model_usage')) END, NEW.n
    FROM now n, file f
    WHERE main NOT IN ('head', 'sample') OR NOT EXISTS (SELECT 1 FROM sessions t WHERE t.session = n.session);
    INSERT INTO parts
    SELECT 'note', n.ts, 'import.record', NEW.hash, json_fields('kind', '"head"', 'extra', json_remove(j, '$.value.eval')), NEW.n
    FROM now n WHERE main = 'head';
    INSERT INTO messages (k, id, ts, role, n, m)
    SELECT e.key, coalesce(CASE WHEN json_type(e.value, '$.id') = 'text' THEN e.value ->> '$.id' END, 'message.' || e.key), n.ts,
           e.value ->> '$.role', NEW.n, e.value
    FROM now n, json_each(n.s, '$.messages') e WHERE main = 'sample' AND e.type = 'object' AND json_type(e.value, '$.role') = 'text';
    INSERT INTO parts
    SELECT 'note', n.ts, 'import.record', 'message.' || e.key, json_fields('kind', '"line"', 'extra', n.s -> ('$.messages[' || e.key || ']')), NEW.n
    FROM now n, json_each(n.s, '$.messages') e WHERE main = 'sample' AND (e.type <> 'object' OR json_type(e.value, '$.role') IS NOT 'text');
    INSERT INTO parts
    SELECT 'note', n.ts, 'import.record', x.id, json_fields('kind', '"events"', 'extra', x.v), NEW.n
    FROM now n, (SELECT 'events' AS id, s -> '$.events' AS v FROM now UNION ALL SELECT 'model_usage', s -> '$.model_usage' FROM now) x
    WHERE main = 'sample' AND x.v IS NOT NULL AND (x.id = 'events' OR json_type(s, '$.model_usage') <> 'object'
        OR EXISTS (SELECT 1 FROM json_each(s, '$.model_usage') u WHERE u.type <> 'object' OR json_type(u.value, '$.total_tokens') IS NOT 'integer'));
    INSERT INTO parts
    SELECT 'note', n.ts, 'agent.turn.usage', 'usage.' || u.key,
           json_fields('model', json_text(u.key),
               'input_tokens', CASE WHEN json_type(u.value, '$.total_tokens') = 'integer' AND u.value ->> '$.total_tokens' >= u.value ->> '$.output_tokens'
                               THEN (u.value ->> '$.total_tokens') - coalesce(u.value ->> '$.output_tokens', 0) ELSE u.value -> '$.input_tokens' END,
               'output_tokens', u.value -> '$.output_tokens', 'cached_input_tokens', nullif(u.value -> '$.input_tokens_cache_read', 'null'),
               'cache_write_tokens', nullif(u.value -> '$.input_tokens_cache_write', 'null'),
               'reasoning_output_tokens', nullif(u.value -> '$.reasoning_tokens', 'null'), 'prompt_tokens', -1,
               'cost_usd', CASE WHEN u.value ->> '$.total_cost' > 0 THEN u.value -> '$.total_cost' END, 'extra', u.value), NEW.n
    FROM now n, json_each(n.s, '$.model_usage') u
    WHERE main = 'sample' AND u.type = 'object' AND (u.value ->> '$.input_tokens' > 0 OR u.value ->> '$.output_tokens' > 0 OR u.value ->> '$.total_tokens' > 0);
    INSERT INTO parts
    SELECT 'failed', n.ts, 'turn.failed', 'error', json_fields('error', s -> '$.error'), NEW.n
    FROM now n JOIN sessions t USING (session) WHERE main = 'sample' AND coalesce(json_type(s, '$.error'), 'null') <> 'null' AND t.turn IS NOT NULL;
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
