-- importer amp   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: calls results streaming head
-- files: T-*.json
-- recalls: session.created session.updated/title. turn.started turn.rolled_back turn.restored
-- split: $.messages
-- places: $AMP_DATA_HOME/threads $XDG_DATA_HOME/amp/threads ~/.local/share/amp/threads
--
-- Threads of Amp: ~/.local/share/amp/threads/T-<id>.json, one document that is rewritten as it grows.
-- docs/events.md lists the resulting events; annal/import.h describes the tables that an importer can
-- read.
--
-- The form was learnt from two recorded threads in git-ai-project/git-ai 55a1d728f (Apache-2.0), with
-- which turns, calls, results and tokens were compared, and from the reader in kenn-io/agentsview
-- 538600744 (MIT). Those threads have no failed call, no edited message and no thread that another one
-- began: such rules follow the reader, or are missing (relationships of threads).
--
--  (1) The session is the id of the document, else the file. A user's message has the time at which it
--      was sent, an answer the time of its usage, results the time of the message before.
--  (2) A user's message begins a turn, unless it passes results. An answer without a call ends it.
--  (3) A result follows once its run is finished; it is a failure if the status is not done, or an
--      exit code is not 0.
--  (4) Input contains what is read from and written to a cache. Models of OpenAI have no price for
--      writing: their uncached input is called cacheCreationInputTokens, and counts as plain input.
--  (5) The document is rewritten at each change: an event has the id of its message, and a message is
--      recorded again if its content has changed. A message that is still written
--      (state) is one import.record until it is complete.
--  (6) A message has a place in its thread as id, so copies in other threads are not recognized.
--  (7) The first event of a message contains the rest of it under "extra".

-- detect
SELECT max(CASE
    WHEN json ->> '$.at' = '$' AND json ->> '$.value.id' GLOB 'T-*' AND json_type(json, '$.value.messages') = 'array'
         AND json_type(json, '$.value.created') = 'integer' THEN 95
    ELSE 0 END) FROM lines

-- once
-- rest_ts, rest_n: an answer without a call is the last of the turn.
CREATE TABLE file (session TEXT, ts INTEGER, made INTEGER, model TEXT, turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER);
INSERT INTO file SELECT session_id(stem), 1, 0, NULL, NULL, 0, NULL, NULL FROM source;
CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID;
-- The turns of the log, to find those that it no longer has.
CREATE TABLE live (session TEXT, turn TEXT, ts INTEGER, n INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE titles (i INTEGER PRIMARY KEY, title TEXT, source TEXT, n INTEGER);
CREATE TABLE out (ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, id TEXT, role TEXT, called INTEGER, results INTEGER, ts INTEGER, source TEXT, said TEXT, c TEXT, j TEXT, m TEXT);

-- The events of a line. what: user: begins a turn; answer: may end it; busy: it continues; abort: it
-- is cancelled; meta: of the session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(f.session), 'agent_id', '"amp"', 'status', '"idle"', 'source', n.source), NEW.n
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
    INSERT OR IGNORE INTO live SELECT f.session, NEW.id, NEW.ts, NEW.n FROM file f WHERE NEW.what = 'user';
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
    INSERT INTO now (j, m, main, role, c, called, results, source)
    SELECT j, m, CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' AND json_type(m) = 'object' AND NOT f.made THEN 'meta'
                WHEN j ->> '$.at' = '$.messages' AND json_type(m, '$.role') = 'text' AND json_type(m, '$.content') = 'array'
                THEN CASE WHEN m ->> '$.state.type' = 'streaming' THEN 'streaming' ELSE 'message' END
                ELSE 'record' END,
           m ->> '$.role', CASE json_type(m, '$.content') WHEN 'array' THEN m -> '$.content' END,
           EXISTS (SELECT 1 FROM json_each(m, '$.content') b WHERE b.type = 'object' AND b.value ->> '$.type' = 'tool_use'),
           EXISTS (SELECT 1 FROM json_each(m, '$.content') b WHERE b.type = 'object' AND b.value ->> '$.type' = 'tool_result'),
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', CASE WHEN json_type(m, '$.messageId') IN ('integer', 'text') THEN json_text(m ->> '$.messageId') END)
    FROM source, file f, (SELECT j, j -> '$.value' AS m FROM (SELECT NEW.json AS j));
    UPDATE file SET session = CASE n.main WHEN 'meta' THEN coalesce(session_id(n.m ->> '$.id'), file.session) ELSE file.session END,
        ts = coalesce(CASE WHEN n.m ->> '$.meta.sentAt' > 1000000000000 THEN CAST(n.m ->> '$.meta.sentAt' AS INTEGER) * 1000
                           WHEN n.main = 'meta' AND n.m ->> '$.created' > 1000000000000 THEN CAST(n.m ->> '$.created' AS INTEGER) * 1000 END,
                      time_us(n.m ->> '$.usage.timestamp'), file.ts)
    FROM now n;
    UPDATE now SET ts = f.ts,
        id = CASE WHEN json_type(m, '$.messageId') IN ('integer', 'text') AND main IN ('message', 'streaming')
             THEN 'm.' || (m ->> '$.messageId') || CASE main WHEN 'streaming' THEN '.streaming' ELSE '.' || length(c) || '.' || text_hash(c) END ELSE NEW.hash END,
        said = CASE WHEN main = 'message' THEN (
            SELECT json_group_array(CASE b.type WHEN 'object' THEN json(b.value) WHEN 'array' THEN json(b.value) ELSE b.value END)
            FROM json_each(c) b WHERE b.type <> 'object' OR coalesce(b.value ->> '$.type', '') NOT IN ('tool_use', 'tool_result')
                AND NOT (coalesce(b.value ->> '$.type', '') = 'text' AND coalesce(trim(b.value ->> '$.text', char(9, 10, 13, 32)) = '', 0))) END
    FROM file f;
    UPDATE now SET said = NULL WHERE said = '[]';
    UPDATE now SET id = NEW.hash WHERE EXISTS (SELECT 1 FROM seen s WHERE s.id = now.id);
    INSERT OR IGNORE INTO seen SELECT n.id FROM now n;

    INSERT INTO parts
    SELECT 'note', n.ts, 'session.updated', n.id || '.model', json_fields('set', json_fields('model', m -> '$.usage.model')), NEW.n
    FROM now n, file f WHERE main = 'message' AND json_type(m, '$.usage.model') = 'text' AND m ->> '$.usage.model' IS NOT f.model;
    UPDATE file SET model = coalesce((SELECT n.m ->> '$.usage.model' FROM now n WHERE n.main = 'message'), model);
    INSERT INTO parts
    SELECT CASE WHEN main = 'meta' THEN 'meta' WHEN main <> 'message' THEN 'note'
                WHEN role = 'user' THEN CASE WHEN said IS NOT NULL AND NOT results THEN 'user' ELSE 'note' END
                WHEN called THEN 'busy' WHEN json_type(m, '$.state.type') = 'text' AND m ->> '$.state.type' <> 'complete' THEN 'busy'
                ELSE 'answer' END,
        ts,
        CASE main WHEN 'meta' THEN 'session.created' WHEN 'unreadable' THEN 'import.unreadable'
        WHEN 'message' THEN CASE WHEN said IS NOT NULL THEN 'message.added' ELSE 'import.record' END ELSE 'import.record' END,
        CASE main WHEN 'meta' THEN 'session.created' ELSE id END,
        CASE main
        WHEN 'meta' THEN json_fields('id', json_text(session), 'agent_id', '"amp"', 'status', '"idle"',
            'title', CASE WHEN json_type(m, '$.title') = 'text' THEN m -> '$.title' END,
            'working_directory', CASE WHEN m ->> '$.env.initial.trees[0].uri' LIKE 'file://%'
                                 THEN json_text(substr(m ->> '$.env.initial.trees[0].uri', 8)) END,
            'created_at', CASE WHEN ts > 1 THEN strftime('"%Y-%m-%dT%H:%M:%S', ts / 1000000, 'unixepoch') || printf('.%06dZ"', ts % 1000000) END,
            'extra', j)
        WHEN 'unreadable' THEN NEW.unreadable
        WHEN 'message' THEN CASE WHEN said IS NULL
            THEN json_fields('kind', CASE role WHEN 'user' THEN '"results"' ELSE '"calls"' END,
                             'extra', json_remove(j, CASE WHEN called OR results THEN '$.value.content' ELSE '$.none' END))
            ELSE json_fields('id', json_text(id), 'role', json_text(role), 'content', said,
                'model', CASE role WHEN 'assistant' THEN json_text(model) END, 'stop_reason', m -> '$.state.stopReason',
                'extra', json_remove(j, '$.value.content', '$.value.state.stopReason')) END
        WHEN 'streaming' THEN json_fields('kind', '"streaming"', 'extra', j)
        ELSE json_fields('kind', CASE WHEN j ->> '$.at' = '$' THEN '"head"' ELSE '"line"' END, 'extra', j) END, NEW.n
    FROM (SELECT n.*, f.model, f.session FROM now n, file f);
    -- The title of the thread, which is known later than its first message.
    INSERT OR REPLACE INTO titles SELECT 1, m ->> '$.title', source, NEW.n FROM now WHERE main = 'meta' AND m ->> '$.title' <> '';
    INSERT INTO parts
    SELECT 'note', n.ts, 'import.record', n.id || '.empty.' || b.key, json_fields('kind', '"calls"', 'extra', b.value), NEW.n
    FROM now n, json_each(n.c) b
    WHERE main = 'message' AND b.type = 'object' AND b.value ->> '$.type' = 'text' AND trim(b.value ->> '$.text', char(9, 10, 13, 32)) = '';
    INSERT INTO parts
    SELECT 'busy', n.ts, 'tool.called', 'call.' || coalesce(b.value ->> '$.id', n.id || '.' || b.key),
           json_fields('call_id', coalesce(b.value -> '$.id', json_text(n.id || '.' || b.key)),
               'tool', coalesce(b.value -> '$.name', '"unknown"'), 'input', b.value -> '$.input', 'message_id', json_text(n.id),
               'extra', json_remove(b.value, '$.id', '$.name', '$.input')), NEW.n
    FROM now n, json_each(n.c) b WHERE main = 'message' AND b.type = 'object' AND b.value ->> '$.type' = 'tool_use';
    INSERT INTO parts
    SELECT CASE WHEN ended THEN 'busy' ELSE 'note' END, ts,
           CASE WHEN NOT ended THEN 'import.record' WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END,
           CASE WHEN ended THEN 'result.' ELSE 'run.' || coalesce(b ->> '$.run.status', '') || '.' END || coalesce(b ->> '$.toolUseID', id || '.' || key),
           CASE WHEN NOT ended THEN json_fields('kind', '"results"', 'extra', b)
           ELSE json_fields('call_id', coalesce(b -> '$.toolUseID', json_text(id || '.' || key)),
               'success', CASE WHEN failed THEN 'false' ELSE 'true' END,
               'output', coalesce(nullif(b -> '$.run.result', 'null'), nullif(b -> '$.run.error', 'null'), b -> '$.run.reason'),
               'exit_code', CASE WHEN json_type(b, '$.run.result.exitCode') = 'integer' THEN b -> '$.run.result.exitCode' END,
               'extra', json_remove(b, '$.toolUseID', CASE WHEN coalesce(json_type(b, '$.run.result'), 'null') <> 'null' THEN '$.run.result'
                                                       WHEN coalesce(json_type(b, '$.run.error'), 'null') <> 'null' THEN '$.run.error' ELSE '$.run.reason' END)) END, NEW.n
    FROM (SELECT *, ended AND (b ->> '$.run.status' <> 'done' OR coalesce(b ->> '$.run.result.exitCode' <> 0, 0)) AS failed
          FROM (SELECT n.id, n.ts, e.key, e.value AS b, coalesce(e.value ->> '$.run.status', '') NOT IN ('', 'in-progress', 'queued', 'blocked-on-user') AS ended
                FROM now n, json_each(n.c) e WHERE n.main = 'message' AND e.type = 'object' AND e.value ->> '$.type' = 'tool_result'));
    INSERT INTO parts
    SELECT 'note', n.ts, 'agent.turn.usage', 'usage.' || n.id,
           json_fields('message_id', json_text(n.id), 'model', CASE WHEN json_type(u, '$.model') = 'text' THEN u -> '$.model' END,
               'input_tokens', CAST(coalesce(u ->> '$.inputTokens', 0) + coalesce(u ->> '$.cacheCreationInputTokens', 0)
                                    + coalesce(u ->> '$.cacheReadInputTokens', 0) AS INTEGER),
               'output_tokens', u -> '$.outputTokens', 'cached_input_tokens', u -> '$.cacheReadInputTokens',
               'cache_write_tokens', CASE WHEN NOT coalesce(u ->> '$.model' GLOB 'gpt*', 0) THEN u -> '$.cacheCreationInputTokens' END), NEW.n
    FROM now n, (SELECT CASE json_type(m, '$.usage') WHEN 'object' THEN m -> '$.usage' END AS u FROM now)
    WHERE main = 'message' AND (u ->> '$.inputTokens' > 0 OR u ->> '$.outputTokens' > 0 OR u ->> '$.cacheReadInputTokens' > 0
                                OR u ->> '$.cacheCreationInputTokens' > 0);
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
INSERT INTO out
SELECT t.ts, 'session.updated',
       'title.' || (1 + (SELECT count(*) FROM recorded r WHERE r.session = t.session AND r.id GLOB 'title.*')),
       json_fields('set', json_fields('title', json_text(title)), 'source', t.source), t.n
FROM (SELECT f.session, f.ts, t.title, t.source, t.n FROM titles t, file f) t WHERE title <> (
    SELECT coalesce(before, '') FROM (
        SELECT max(r.n), coalesce(r.data ->> '$.set.title', r.data ->> '$.title') AS before FROM recorded r
        WHERE r.session = t.session AND (r.type = 'session.created' OR r.id GLOB 'title.*')));
-- Turns of earlier imports that the log no longer has were taken back.
INSERT INTO out SELECT ts, type, id, data, n FROM removed_turns;
SELECT f.session, o.ts, o.type, o.id, NULL, o.data, o.n FROM out o, file f ORDER BY o.rowid;
DELETE FROM out;
