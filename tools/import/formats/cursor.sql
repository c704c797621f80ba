-- importer cursor   version 1
-- SPDX-License-Identifier: Apache-2.0
-- reads: cursorDiskKV ItemTable
-- records: bubble streaming
-- files: state.vscdb
-- recalls: session.created session.updated/title. turn.started turn.rolled_back turn.restored
-- places: ~/.config/Cursor/User/globalStorage/state.vscdb ~/Library/Application?Support/Cursor/User/globalStorage/state.vscdb
-- places: ~/.cursor-server/data/User/globalStorage/state.vscdb
--
-- Chats of Cursor: the rows composerData: and bubbleId: of the table cursorDiskKV in its state.vscdb.
-- docs/events.md lists the resulting events; annal/import.h describes the tables that an importer can
-- read.
--
-- The form was learnt from public readers of this database: getagentseal/codeburn ed8fa3af (MIT),
-- vshulcz/deja-vu b264ec72 (MIT), and tests of others that show its rows. No recorded database was found
-- in public: no number was compared with a recorded chat.
--
--  (1) A session is a composer, with the bubbles that its row lists, in that order. Bubbles that no
--      composer lists, as after a chat was taken back, are left out, and so are all other rows: they
--      are the state of the editor, with secrets, and no part of a chat.
--  (2) A bubble of type 1 is a message of the user and begins a turn; one of type 2 is an answer, a
--      thought or a tool with its result.
--  (3) A call failed if its status, or that of its additionalData, is error, cancelled or rejected, or
--      the result has an exit code other than 0.
--  (4) The last bubble of a composer that generates is one import.record until it is complete.
--  (5) What tokenCount counts is not known, and current versions leave it 0: tokens are unknown.
--  (6) The first event of a row contains the rest of the row under "extra".

-- detect
SELECT max(CASE
    WHEN json ->> '$.table' = 'composer' AND json_type(json, '$.row.composerId') = 'text' THEN 95
    WHEN json ->> '$.table' = 'bubble' AND json_type(json, '$.row.type') = 'integer' THEN 90
    ELSE 0 END) FROM lines

-- rows
SELECT json_object('table', 'composer', 'row', json(json_remove(CAST(value AS TEXT), '$.conversation', '$.fullConversationHeadersOnly')))
FROM cursorDiskKV
WHERE key >= 'composerData:' AND key < 'composerData;' AND json_valid(CAST(value AS TEXT)) AND json_type(CAST(value AS TEXT)) = 'object'
ORDER BY rowid;
SELECT json_object('table', 'bubble', 'composer', c.id, 'i', h.key, 'busy', json(CASE WHEN h.key = c.last AND c.status = 'generating' THEN 'true' ELSE 'false' END),
                   'row', json(CAST(b.value AS TEXT)))
FROM (SELECT rowid AS at, substr(key, 14) AS id, CAST(value AS TEXT) AS v, json_extract(CAST(value AS TEXT), '$.status') AS status,
             json_array_length(CAST(value AS TEXT), '$.fullConversationHeadersOnly') - 1 AS last
      FROM cursorDiskKV
      WHERE key >= 'composerData:' AND key < 'composerData;' AND json_valid(CAST(value AS TEXT)) AND json_type(CAST(value AS TEXT)) = 'object') c,
     json_each(c.v, '$.fullConversationHeadersOnly') h
JOIN cursorDiskKV b ON b.key = 'bubbleId:' || c.id || ':' || json_extract(h.value, '$.bubbleId')
WHERE h.type = 'object' AND json_valid(CAST(b.value AS TEXT)) AND json_type(CAST(b.value AS TEXT)) = 'object'
ORDER BY c.at, h.key;
-- Older chats have their bubbles in the row of the composer.
SELECT json_object('table', 'bubble', 'composer', c.id, 'i', h.key, 'busy', json('false'), 'row', json(h.value))
FROM (SELECT rowid AS at, substr(key, 14) AS id, CAST(value AS TEXT) AS v FROM cursorDiskKV
      WHERE key >= 'composerData:' AND key < 'composerData;' AND json_valid(CAST(value AS TEXT)) AND json_type(CAST(value AS TEXT)) = 'object') c,
     json_each(c.v, '$.conversation') h
WHERE h.type = 'object'
ORDER BY c.at, h.key;

-- rows
-- No row: the table has secrets, and nothing of a chat.
SELECT json_object('table', 'ItemTable') FROM ItemTable WHERE key IS NULL AND key IS NOT NULL;

-- copies
ids: SELECT session_id(substr(key, 14)), substr(key, 14) FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'
cursorDiskKV: rowid IN (SELECT k.rowid FROM ids JOIN cursorDiskKV k ON k.key = 'composerData:' || id UNION ALL SELECT k.rowid FROM ids, (VALUES ('bubbleId'), ('checkpointId'), ('codeBlockDiff'), ('messageRequestContext')) JOIN cursorDiskKV k ON k.key >= column1 || ':' || id || ':' AND k.key < column1 || ':' || id || ';')

-- once
-- rest_ts, rest_n: a finished answer is the last of the turn.
CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER, model TEXT) WITHOUT ROWID;
CREATE TABLE times (session TEXT PRIMARY KEY, ts INTEGER) WITHOUT ROWID;
-- The turns of the log, to find those that it no longer has.
CREATE TABLE live (session TEXT, turn TEXT, ts INTEGER, n INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE titles (session TEXT PRIMARY KEY, title TEXT, ts INTEGER, source TEXT, n INTEGER) WITHOUT ROWID;
CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, id TEXT, session TEXT, ts INTEGER, code INTEGER, source TEXT, t TEXT, j TEXT, r TEXT);

-- The events of a row. what: user: begins a turn; answer: may end it; busy: it continues; cancelled,
-- failed: it ends; meta: of the session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT n.session, NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(n.session), 'agent_id', '"cursor"', 'status', '"idle"', 'source', n.source), NEW.n
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
    INSERT OR IGNORE INTO live SELECT n.session, NEW.id, NEW.ts, NEW.n FROM now n WHERE NEW.what = 'user';
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

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, r, main, id, session, ts, t, source)
    SELECT j, r, CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.table' = 'composer' AND json_type(r, '$.composerId') = 'text' THEN 'meta'
                WHEN j ->> '$.table' = 'bubble' AND json_type(r, '$.type') = 'integer' THEN CASE WHEN j ->> '$.busy' THEN 'streaming' ELSE 'bubble' END
                ELSE 'record' END,
           coalesce(CASE WHEN json_type(r, '$.bubbleId') = 'text' THEN r ->> '$.bubbleId' END, NEW.hash) || CASE WHEN j ->> '$.busy' THEN '.streaming' ELSE '' END,
           coalesce(session_id(CASE j ->> '$.table' WHEN 'composer' THEN r ->> '$.composerId' ELSE j ->> '$.composer' END), session_id(stem)),
           coalesce(time_us(CASE WHEN json_type(r, '$.createdAt') = 'text' THEN r ->> '$.createdAt' END),
                    CASE WHEN json_type(r, '$.createdAt') = 'integer' AND r ->> '$.createdAt' > 1000000000000 THEN (r ->> '$.createdAt') * 1000 END,
                    CASE WHEN r ->> '$.timingInfo.clientStartTime' > 1000000000000 THEN CAST(r ->> '$.timingInfo.clientStartTime' AS INTEGER) * 1000 END),
           CASE json_type(r, '$.toolFormerData') WHEN 'object' THEN r -> '$.toolFormerData' END,
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', coalesce(CASE WHEN json_type(r, '$.bubbleId') = 'text' THEN r -> '$.bubbleId' END,
                                          CASE WHEN json_type(r, '$.composerId') = 'text' THEN r -> '$.composerId' END))
    FROM source, (SELECT j, j -> '$.row' AS r FROM (SELECT NEW.json AS j));
    INSERT OR IGNORE INTO times SELECT n.session, 1 FROM now n;
    UPDATE times SET ts = coalesce(n.ts, times.ts) FROM now n WHERE times.session = n.session;
    UPDATE now SET ts = (SELECT k.ts FROM times k WHERE k.session = now.session),
        code = CASE WHEN json_type(t, '$.result') = 'text' AND json_valid(t ->> '$.result') AND json_type(t ->> '$.result') = 'object'
                    THEN CASE WHEN json_type(t ->> '$.result', '$.exitCodeV2') = 'integer' THEN (t ->> '$.result') ->> '$.exitCodeV2'
                              WHEN json_type(t ->> '$.result', '$.exitCode') = 'integer' THEN (t ->> '$.result') ->> '$.exitCode' END END;
    INSERT INTO parts
    SELECT 'note', n.ts, 'session.updated', n.id || '.model', json_fields('set', json_fields('model', r -> '$.modelInfo.modelName')), NEW.n
    FROM now n WHERE main = 'bubble' AND json_type(r, '$.modelInfo.modelName') = 'text' AND r ->> '$.modelInfo.modelName' NOT IN ('', 'default')
      AND r ->> '$.modelInfo.modelName' IS NOT (SELECT s.model FROM sessions s WHERE s.session = n.session);
    UPDATE sessions SET model = (SELECT n.r ->> '$.modelInfo.modelName' FROM now n)
    WHERE session = (SELECT n.session FROM now n WHERE n.main = 'bubble' AND json_type(n.r, '$.modelInfo.modelName') = 'text'
                     AND n.r ->> '$.modelInfo.modelName' NOT IN ('', 'default'));
    INSERT INTO parts
    SELECT CASE WHEN main = 'meta' THEN 'meta' WHEN main <> 'bubble' THEN 'note' WHEN r ->> '$.type' = 1 THEN CASE WHEN said IS NULL THEN 'note' ELSE 'user' END
                WHEN t IS NOT NULL OR r ->> '$.text' = '' THEN 'busy' ELSE 'answer' END,
        ts,
        CASE main WHEN 'meta' THEN 'session.created' WHEN 'unreadable' THEN 'import.unreadable'
        WHEN 'bubble' THEN CASE WHEN said IS NULL THEN 'import.record' ELSE 'message.added' END ELSE 'import.record' END,
        CASE main WHEN 'meta' THEN 'session.created' WHEN 'record' THEN NEW.hash ELSE id END,
        CASE main
        WHEN 'meta' THEN json_fields('id', json_text(session), 'agent_id', '"cursor"', 'status', '"idle"',
            'title', CASE WHEN r ->> '$.name' <> '' THEN r -> '$.name' END,
            'model', CASE WHEN r ->> '$.modelConfig.modelName' NOT IN ('', 'default') THEN r -> '$.modelConfig.modelName' END, 'extra', r)
        WHEN 'unreadable' THEN NEW.unreadable
        WHEN 'bubble' THEN CASE WHEN said IS NULL
            THEN json_fields('kind', '"bubble"', 'extra', json_remove(r, '$.toolFormerData'))
            ELSE json_fields('id', json_text(id), 'role', CASE r ->> '$.type' WHEN 1 THEN '"user"' ELSE '"assistant"' END, 'content', said,
                'model', CASE WHEN r ->> '$.type' <> 1 AND r ->> '$.modelInfo.modelName' NOT IN ('', 'default') THEN r -> '$.modelInfo.modelName' END,
                'extra', json_remove(r, '$.text', '$.thinking.text', '$.toolFormerData')) END
        ELSE json_fields('kind', CASE main WHEN 'streaming' THEN '"streaming"' ELSE '"bubble"' END, 'extra', coalesce(r, j)) END, NEW.n
    FROM (SELECT n.*, CASE WHEN r ->> '$.thinking.text' <> '' THEN '[{"type":"thinking","thinking":' || (r -> '$.thinking.text') || '}'
                                || CASE WHEN r ->> '$.text' <> '' THEN ',{"type":"text","text":' || (r -> '$.text') || '}' ELSE '' END || ']'
                           WHEN r ->> '$.text' <> '' THEN r -> '$.text' END AS said
          FROM now n);
    INSERT INTO parts
    SELECT 'note', n.ts, 'import.record', n.id || '.tool', json_fields('kind', '"bubble"', 'extra', r -> '$.toolFormerData'), NEW.n
    FROM now n WHERE main = 'bubble' AND t IS NULL AND coalesce(json_type(r, '$.toolFormerData'), 'null') <> 'null';
    -- The title of a chat, which is known later than its first message.
    INSERT OR REPLACE INTO titles SELECT session, r ->> '$.name', ts, source, NEW.n
    FROM now WHERE main = 'meta' AND r ->> '$.name' <> '';
    INSERT INTO parts
    SELECT 'busy', ts, 'tool.called', id || '.call',
           json_fields('call_id', coalesce(t -> '$.toolCallId', json_text(id)), 'tool', coalesce(t -> '$.name', json_text(t ->> '$.tool'), '"unknown"'),
               'input', coalesce(CASE WHEN t ->> '$.rawArgs' <> '' THEN t -> '$.rawArgs' END, t -> '$.params'), 'message_id', json_text(id),
               'extra', json_remove(t, '$.toolCallId', '$.name', CASE WHEN t ->> '$.rawArgs' <> '' THEN '$.rawArgs' ELSE '$.params' END, '$.result')), NEW.n
    FROM now WHERE main = 'bubble' AND t IS NOT NULL;
    INSERT INTO parts
    SELECT 'busy', ts, CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END, id || '.result',
           json_fields('call_id', coalesce(t -> '$.toolCallId', json_text(id)), 'success', CASE WHEN failed THEN 'false' ELSE 'true' END,
               'output', coalesce(nullif(t -> '$.result', 'null'), t -> '$.error'), 'exit_code', code), NEW.n
    FROM (SELECT *, coalesce(code, 0) <> 0 OR coalesce(t ->> '$.status' IN ('error', 'cancelled', 'rejected'), 0)
                 OR coalesce(t ->> '$.additionalData.status' IN ('error', 'cancelled', 'rejected'), 0) AS failed FROM now)
    WHERE main = 'bubble' AND t IS NOT NULL AND (t ->> '$.status' IN ('completed', 'error', 'cancelled', 'rejected') OR coalesce(t ->> '$.result', '') <> '');
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
INSERT INTO out
SELECT t.session, t.ts, 'session.updated',
       'title.' || (1 + (SELECT count(*) FROM recorded r WHERE r.session = t.session AND r.id GLOB 'title.*')),
       json_fields('set', json_fields('title', json_text(title)), 'source', t.source), t.n
FROM titles t WHERE title <> (
    SELECT coalesce(before, '') FROM (
        SELECT max(r.n), coalesce(r.data ->> '$.set.title', r.data ->> '$.title') AS before FROM recorded r
        WHERE r.session = t.session AND (r.type = 'session.created' OR r.id GLOB 'title.*')));
-- Turns of earlier imports that the log no longer has were taken back.
INSERT INTO out SELECT session, ts, type, id, data, n FROM removed_turns;
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY rowid;
DELETE FROM out;
