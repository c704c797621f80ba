-- importer copilot-chat   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: head initial change push request
-- files: *.json *.jsonl
-- recalls: session.created session.updated/title. turn.started turn.rolled_back turn.restored
-- split: $.requests
-- places: ~/.config/*/User/workspaceStorage/*/chatSessions ~/.config/*/User/globalStorage/emptyWindowChatSessions
-- places: ~/.vscode-server/data/User/workspaceStorage/*/chatSessions
-- places: ~/.vscode-server/data/User/globalStorage/emptyWindowChatSessions
-- places: ~/Library/Application?Support/*/User/workspaceStorage/*/chatSessions
-- places: ~/Library/Application?Support/*/User/globalStorage/emptyWindowChatSessions
--
-- Chats of VS Code with Copilot: chatSessions/<session>.json, one document, and the newer
-- <session>.jsonl, a log of changes to such a document. docs/events.md lists the resulting events;
-- annal/import.h describes the tables that an importer can read.
--
-- The form was learnt from microsoft/vscode 047238f9 (MIT: objectMutationLog.ts,
-- chatSessionOperationLog.ts), microsoft/vscode-copilot-chat 31acd00a8 (MIT), and from chats in
-- git-ai-project/git-ai 55a1d728f (Apache-2.0), with which turns, calls and results were compared.
-- Those chats have no failed or cancelled request, and none was changed after it was written: such rules
-- follow the code.
--
--  (1) The session is the sessionId of the document, else the file. A request is a turn: the user's
--      message, and the rounds of the model's answer with their calls and results. A request without
--      rounds has the markdown of its response as answer.
--  (2) A log of changes begins with the document (kind 0). A change sets a member (1), appends to an
--      array, cut at i (2), or removes a member (3). The importer keeps each request until its state
--      says that it is complete; the program may replace the log by a new document, which adds nothing.
--      Requests that are cut are turns that were taken back.
--  (3) The state of a request: 1 is complete, 2 cancelled, 3 failed. A request of an older version
--      without a state is complete if it has a result; isCanceled or errorDetails say how it ended.
--  (4) A call failed if its result begins with an ERROR of the program.
--  (5) result.usage has the tokens of the last model request only: tokens are unknown.
--  (6) A request has the time at which it was sent; its answer that of its completion, if it is known.
--  (7) The line, or the first event of a request, contains the rest of it under "extra".

-- detect
SELECT max(CASE
    WHEN json ->> '$.at' = '$' AND json_type(json, '$.value.requests') = 'array'
         AND (json_type(json, '$.value.responderUsername') = 'text' OR json_type(json, '$.value.inputState') = 'object')
    THEN 90
    WHEN json ->> '$.kind' = 0 AND json_type(json, '$.kind') = 'integer' AND json_type(json, '$.v.requests') = 'array' THEN 95
    ELSE 0 END) FROM lines

-- repeats

-- once
-- rest_ts, rest_n: an answer without a call is the last of the turn.
CREATE TABLE file (session TEXT, ts INTEGER, made INTEGER, model TEXT, turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER);
INSERT INTO file SELECT session_id(stem), 1, 0, NULL, NULL, 0, NULL, NULL FROM source;
-- The requests of the document. whole: the line has all of it.
CREATE TABLE requests (i INTEGER PRIMARY KEY, r TEXT);
CREATE TABLE said (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE done (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE changed (i INTEGER PRIMARY KEY, whole INTEGER);
-- The turns of the log, to find those that it no longer has.
CREATE TABLE live (session TEXT, turn TEXT, ts INTEGER, n INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE titles (i INTEGER PRIMARY KEY, title TEXT, source TEXT, n INTEGER);
CREATE TABLE out (ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, n INTEGER, i INTEGER, path TEXT, source TEXT, j TEXT, v TEXT);

-- The events of a line. what: user: begins a turn; answer: may end it; busy: it continues; abort: it
-- is cancelled; meta: of the session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(f.session), 'agent_id', '"copilot-chat"', 'status', '"idle"', 'source', n.source), NEW.n
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

-- A request, whose message or end is new. rid: its id; state: as in rule (3); ended: its time.
CREATE VIEW request AS
SELECT c.i, c.whole, q.r, f.ts, coalesce(q.r ->> '$.requestId', f.session || '.' || c.i) AS rid, coalesce(q.r ->> '$.message.text', q.r ->> '$.message') AS text,
       CASE WHEN q.r ->> '$.modelState.value' IN (1, 2, 3) THEN q.r ->> '$.modelState.value'
            WHEN json_type(q.r, '$.modelState') IS NOT NULL THEN 0
            WHEN q.r ->> '$.isCanceled' THEN 2
            WHEN json_type(q.r, '$.result.errorDetails') = 'object' THEN 3
            WHEN json_type(q.r, '$.result') = 'object' THEN 1 ELSE 0 END AS state,
       coalesce(CASE WHEN q.r ->> '$.timestamp' > 1000000000000 THEN CAST(q.r ->> '$.timestamp' AS INTEGER) * 1000 END, f.ts) AS sent,
       coalesce(CASE WHEN q.r ->> '$.modelState.completedAt' > 1000000000000 THEN CAST(q.r ->> '$.modelState.completedAt' AS INTEGER) * 1000 END,
                CASE WHEN q.r ->> '$.timestamp' > 1000000000000
                     THEN CAST(q.r ->> '$.timestamp' + coalesce(q.r ->> '$.result.timings.totalElapsed', 0) AS INTEGER) * 1000 END, f.ts) AS ended
FROM changed c JOIN requests q USING (i), file f;

CREATE TABLE results (call TEXT PRIMARY KEY, result TEXT) WITHOUT ROWID;
CREATE TABLE answers (i INTEGER);
CREATE TRIGGER answer AFTER INSERT ON answers BEGIN
    INSERT INTO parts
    SELECT 'user', sent, 'message.added', rid,
           json_fields('id', json_text(rid), 'role', '"user"', 'content', coalesce(r -> '$.message.text', r -> '$.message'),
               'extra', CASE WHEN whole THEN json_remove(r, '$.message.text') END), (SELECT n.n FROM now n)
    FROM request WHERE i = NEW.i AND text IS NOT NULL AND rid NOT IN (SELECT s.id FROM said s);
    INSERT OR IGNORE INTO said SELECT rid FROM request WHERE i = NEW.i AND text IS NOT NULL;
    INSERT INTO parts
    SELECT 'note', sent, 'session.updated', rid || '.model', json_fields('set', json_fields('model', r -> '$.modelId')), (SELECT n.n FROM now n)
    FROM request, file f WHERE i = NEW.i AND json_type(r, '$.modelId') = 'text' AND r ->> '$.modelId' IS NOT f.model;
    UPDATE file SET model = coalesce((SELECT r ->> '$.modelId' FROM request WHERE i = NEW.i), model);
    DELETE FROM results;
    INSERT OR IGNORE INTO results
    SELECT e.key, e.value FROM request q, json_each(q.r, '$.result.metadata.toolCallResults') e WHERE q.i = NEW.i AND q.state > 0;
    -- The rounds of a complete answer: text, calls, results.
    INSERT INTO parts
    SELECT what, ended, type, event, data, (SELECT n.n FROM now n) FROM (
        SELECT k.key AS a, 0 AS b, CASE WHEN json_type(k.value, '$.toolCalls[0]') IS NULL THEN 'answer' ELSE 'busy' END AS what, ended,
               'message.added' AS type, coalesce(k.value ->> '$.id', rid || '.round.' || k.key) AS event,
               json_fields('id', json_text(coalesce(k.value ->> '$.id', rid || '.round.' || k.key)), 'role', '"assistant"',
                   'content', CASE WHEN k.value ->> '$.thinking.text' <> ''
                              THEN '[{"type":"thinking","thinking":' || (k.value -> '$.thinking.text') || '}'
                                   || CASE WHEN k.value ->> '$.response' <> '' THEN ',{"type":"text","text":' || (k.value -> '$.response') || '}' ELSE '' END || ']'
                              ELSE k.value -> '$.response' END,
                   'model', json_text(r ->> '$.modelId')) AS data
        FROM request, json_each(r, '$.result.metadata.toolCallRounds') k
        WHERE i = NEW.i AND state > 0 AND rid NOT IN (SELECT d.id FROM done d) AND k.type = 'object'
          AND (k.value ->> '$.response' <> '' OR k.value ->> '$.thinking.text' <> '')
        UNION ALL
        SELECT k.key, 1, 'busy', ended, 'tool.called', 'call.' || coalesce(c.value ->> '$.id', rid || '.' || k.key || '.' || c.key),
               json_fields('call_id', coalesce(c.value -> '$.id', json_text(rid || '.' || k.key || '.' || c.key)),
                   'tool', coalesce(c.value -> '$.name', '"unknown"'), 'input', c.value -> '$.arguments')
        FROM request, json_each(r, '$.result.metadata.toolCallRounds') k, json_each(k.value, '$.toolCalls') c
        WHERE i = NEW.i AND state > 0 AND rid NOT IN (SELECT d.id FROM done d) AND k.type = 'object' AND c.type = 'object'
        UNION ALL
        SELECT k.key, 2, 'busy', ended, CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END, 'result.' || call,
               json_fields('call_id', json_text(call), 'success', CASE WHEN failed THEN 'false' END, 'output', result)
        FROM (SELECT *, instr(result, '"ERROR while calling tool: ') > 0 OR instr(result, '"ERROR: Your input to the tool was invalid') > 0 AS failed
              FROM (SELECT q.ended, k.key, c.value ->> '$.id' AS call,
                           (SELECT v.result FROM results v WHERE v.call = c.value ->> '$.id') AS result
                    FROM request q, json_each(q.r, '$.result.metadata.toolCallRounds') k, json_each(k.value, '$.toolCalls') c
                    WHERE q.i = NEW.i AND q.state > 0 AND q.rid NOT IN (SELECT d.id FROM done d) AND k.type = 'object' AND c.type = 'object')
              WHERE result IS NOT NULL AND json_valid(result)) k
        UNION ALL
        -- Without rounds, the markdown.
        SELECT 0, 3, 'answer', ended, 'message.added', coalesce(r ->> '$.responseId', rid || '.response'),
               json_fields('id', json_text(coalesce(r ->> '$.responseId', rid || '.response')), 'role', '"assistant"',
                           'content', json_text(markdown), 'model', json_text(r ->> '$.modelId'))
        FROM (SELECT q.*, (SELECT group_concat(coalesce(p.value ->> '$.value', p.value ->> '$.content.value',
                                      '`' || coalesce(p.value ->> '$.name', p.value ->> '$.inlineReference.path') || '`'), '')
                           FROM json_each(q.r, '$.response') p
                           WHERE p.type = 'object' AND coalesce(p.value ->> '$.kind', '') IN ('', 'markdownContent', 'inlineReference')) AS markdown
              FROM request q)
        WHERE i = NEW.i AND state > 0 AND rid NOT IN (SELECT d.id FROM done d) AND markdown <> ''
          AND json_type(r, '$.result.metadata.toolCallRounds[0]') IS NULL
        ORDER BY 1, 2);
    INSERT INTO parts
    SELECT 'abort', ended, CASE state WHEN 2 THEN 'turn.cancelled' ELSE 'turn.failed' END, rid || '.state',
           json_fields('reason', CASE state WHEN 2 THEN '"interrupted"' END,
                       'error', CASE state WHEN 3 THEN r -> '$.result.errorDetails' END, 'extra', r -> '$.modelState'), (SELECT n.n FROM now n)
    FROM request, file f WHERE i = NEW.i AND state IN (2, 3) AND rid NOT IN (SELECT d.id FROM done d) AND f.turn = rid;
    INSERT OR IGNORE INTO done SELECT rid FROM request WHERE i = NEW.i AND state > 0;
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    DELETE FROM changed;
    INSERT INTO now (j, main, n, i, path, source, v)
    SELECT j, CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' AND json_type(j, '$.value') = 'object' THEN 'head'
                WHEN j ->> '$.at' = '$.requests' AND json_type(j, '$.value') = 'object' THEN 'request'
                WHEN json_type(j, '$.kind') IS NOT 'integer' THEN 'record'
                WHEN j ->> '$.kind' = 0 AND json_type(j, '$.v') = 'object' AND coalesce(json_type(j, '$.v.requests'), 'array') = 'array' THEN 'initial'
                WHEN j ->> '$.k[0]' = 'requests' AND json_array_length(j -> '$.k') = 1 AND j ->> '$.kind' = 2
                     AND coalesce(json_type(j, '$.v'), 'array') = 'array' THEN 'push'
                WHEN j ->> '$.k[0]' = 'requests' AND json_type(j, '$.k[1]') = 'integer' AND j ->> '$.kind' IN (1, 2, 3) THEN 'change'
                WHEN j ->> '$.kind' IN (1, 3) AND json_array_length(j -> '$.k') = 1 AND j ->> '$.k[0]' IN ('customTitle', 'sessionId') THEN 'head'
                ELSE 'record' END, NEW.n, j ->> '$.k[1]',
           CASE WHEN json_type(j, '$.k') = 'array' AND json_type(j, '$.k[2]') IS NOT NULL THEN (
               SELECT '$' || group_concat(CASE k.type WHEN 'integer' THEN '[' || k.value || ']' ELSE '.' || json_text(k.value) END, '')
               FROM json_each(j, '$.k') k WHERE k.key > 1) END,
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', CASE WHEN json_type(j, '$.value.requestId') = 'text' THEN j -> '$.value.requestId' END),
           coalesce(j -> '$.value', j -> '$.v')
    FROM source, (SELECT NEW.json AS j);
    UPDATE file SET session = CASE WHEN n.main IN ('head', 'initial') AND NOT file.made THEN coalesce(session_id(n.v ->> '$.sessionId'), file.session)
                              ELSE file.session END,
        ts = coalesce(CASE WHEN file.ts = 1 AND n.v ->> '$.creationDate' > 1000000000000 THEN CAST(n.v ->> '$.creationDate' AS INTEGER) * 1000 END, file.ts)
    FROM now n WHERE json_type(n.v) = 'object';
    -- Requests that the user took back.
    INSERT INTO parts
    SELECT 'meta', f.ts, 'turn.rolled_back', NEW.hash || '.back.' || q.i,
           json_fields('turn_id', json_text(coalesce(q.r ->> '$.requestId', f.session || '.' || q.i)), 'reason', '"edited"'), NEW.n
    FROM now n, file f, requests q WHERE n.main = 'push' AND q.i >= n.j ->> '$.i';
    -- Apply the change.
    DELETE FROM requests WHERE (SELECT n.main FROM now n) = 'initial'
        OR (SELECT n.main FROM now n) = 'push' AND i >= (SELECT n.j ->> '$.i' FROM now n);
    INSERT INTO changed
    SELECT coalesce(CASE main WHEN 'request' THEN j ->> '$.index' END, 0), 1 FROM now WHERE main = 'request'
    UNION ALL
    SELECT CASE main WHEN 'initial' THEN 0 ELSE coalesce((SELECT max(q.i) + 1 FROM requests q), 0) END + e.key, 1
    FROM now, json_each(CASE main WHEN 'initial' THEN v -> '$.requests' WHEN 'push' THEN v END) e
    WHERE main IN ('initial', 'push') AND e.type = 'object'
    UNION ALL
    SELECT i, path IS NULL FROM now WHERE main = 'change' AND (path IS NOT NULL OR json_type(v) = 'object');
    INSERT OR REPLACE INTO requests
    SELECT c.i, CASE n.main WHEN 'request' THEN n.v WHEN 'change' THEN n.v
                ELSE (CASE n.main WHEN 'initial' THEN n.v -> '$.requests' ELSE n.v END) -> ('$[' || (c.i - (SELECT min(x.i) FROM changed x)) || ']') END
    FROM now n, changed c WHERE n.main IN ('request', 'initial', 'push') OR n.main = 'change' AND n.path IS NULL;
    DELETE FROM requests WHERE r IS NULL;
    UPDATE requests SET r = CASE n.j ->> '$.kind'
        WHEN 1 THEN json_set(r, n.path, json(coalesce(n.v, 'null')))
        WHEN 3 THEN json_remove(r, n.path)
        ELSE json_set(r, n.path, json((
            SELECT json_group_array(json(x)) FROM (
                SELECT CASE e.type WHEN 'text' THEN json_text(e.value) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE e.value END AS x
                FROM json_each(requests.r, n.path) e WHERE json_type(n.j, '$.i') IS NULL OR e.key < n.j ->> '$.i'
                UNION ALL
                SELECT CASE e.type WHEN 'text' THEN json_text(e.value) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE e.value END
                FROM json_each(n.v) e)))) END
    FROM now n WHERE n.main = 'change' AND n.path IS NOT NULL AND requests.i = n.i;

    INSERT INTO parts
    SELECT CASE WHEN main IN ('head', 'initial') AND NOT made THEN 'meta' ELSE 'note' END, f.ts,
           CASE WHEN main IN ('head', 'initial') AND NOT made THEN 'session.created' WHEN main = 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END,
           CASE WHEN main IN ('head', 'initial') AND NOT made THEN 'session.created' ELSE NEW.hash END,
           CASE WHEN main IN ('head', 'initial') AND NOT made THEN json_fields('id', json_text(session), 'agent_id', '"copilot-chat"',
               'status', '"idle"', 'title', CASE WHEN v ->> '$.customTitle' <> '' THEN v -> '$.customTitle' END,
               'created_at', CASE WHEN f.ts > 1 THEN strftime('"%Y-%m-%dT%H:%M:%S', f.ts / 1000000, 'unixepoch') || printf('.%06dZ"', f.ts % 1000000) END,
               'extra', CASE main WHEN 'initial' THEN json_remove(j, '$.v.requests') ELSE j END)
           WHEN main = 'unreadable' THEN NEW.unreadable
           ELSE json_fields('kind', CASE main WHEN 'record' THEN CASE WHEN json_type(j, '$.kind') = 'integer' THEN '"change"' ELSE '"line"' END ELSE json_text(main) END,
                            'extra', CASE main WHEN 'initial' THEN json_remove(j, '$.v.requests') WHEN 'push' THEN json_remove(j, '$.v') ELSE j END) END, NEW.n
    FROM now n, file f
    -- A request that is new in this line says the rest of it itself.
    WHERE main <> 'request' OR NOT EXISTS (SELECT 1 FROM request q WHERE q.text IS NOT NULL AND q.rid NOT IN (SELECT s.id FROM said s));
    INSERT INTO parts
    SELECT 'note', f.ts, 'import.record', NEW.hash || '.' || e.key, json_fields('kind', '"change"', 'extra',
           CASE e.type WHEN 'object' THEN e.value WHEN 'array' THEN e.value WHEN 'text' THEN json_text(e.value) WHEN 'true' THEN 'true'
           WHEN 'false' THEN 'false' ELSE coalesce(e.value, 'null') END), NEW.n
    FROM now n, file f, json_each(CASE main WHEN 'initial' THEN v -> '$.requests' WHEN 'push' THEN v END) e
    WHERE main IN ('initial', 'push')
      AND (e.type <> 'object' OR coalesce(json_type(e.value, '$.message.text'), json_type(e.value, '$.message'), '') NOT IN ('text')
           OR e.value ->> '$.requestId' IN (SELECT s.id FROM said s) AND e.value ->> '$.requestId' NOT IN (SELECT d.id FROM done d));
    INSERT OR REPLACE INTO titles SELECT 1, title, (SELECT n.source FROM now n), NEW.n
    FROM (SELECT CASE WHEN main IN ('head', 'initial') AND json_type(v) = 'object' THEN v ->> '$.customTitle'
                              WHEN j ->> '$.k[0]' = 'customTitle' AND json_type(v) = 'text' THEN v ->> '$' END AS title FROM now)
    WHERE title <> '';
    INSERT INTO answers SELECT c.i FROM changed c ORDER BY c.i;
    DELETE FROM answers;
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
