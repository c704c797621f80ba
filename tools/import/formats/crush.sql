-- importer crush   version 1
-- SPDX-License-Identifier: Apache-2.0
-- reads: sessions messages
-- records: files read_files goose_db_version calls results streaming sessions
-- files: crush.db
-- recalls: session.created session.updated/title. turn.started turn.rolled_back turn.restored
-- places: ~/.crush
--
-- Sessions of Crush: the tables sessions and messages of .crush/crush.db, which each project has for
-- itself. docs/events.md lists the resulting events; annal/import.h describes the tables that an
-- importer can read.
--
-- The form was learnt from charmbracelet/crush 37f36e938 (FSL-1.1-MIT: internal/db/migrations,
-- internal/message/content.go, internal/agent/agent.go). Messages, calls, results, failures and ends were
-- compared with a recorded database of August 2025 in rnwolf/dbr ede01bf5 (MIT). It has no reasoning, no
-- shell_command and no sub-agent.
--
--  (1) A session is a row of sessions; a sub-agent names its parent. Times are seconds, or milliseconds
--      if they are too large for seconds.
--  (2) A message's parts: tool_call and tool_result become calls and results, a shell_command of the
--      user both; text and reasoning are the content of message.added, with the type in the part.
--  (3) A user's message begins a turn. The reason of its finish ends it: end_turn, canceled,
--      permission_denied or error.
--  (4) A result with is_error is a failure, and so is a command if a line "Exit code N" is at its end. A
--      result may lack the name of its tool, which is then taken from the call.
--  (5) A message of the assistant is read once it is finished, because its row changes until then.
--  (6) The tokens in a session's row count its last request alone, and its cost is a sum without the
--      requests: both are unknown here, and remain in the record.
--  (7) The first event of a row contains the rest of the row under "extra".

-- detect
SELECT max(CASE
    WHEN json ->> '$.table' = 'sessions' AND json_type(json, '$.row.prompt_tokens') IS NOT NULL
         AND json_type(json, '$.row.completion_tokens') IS NOT NULL AND json_type(json, '$.row.message_count') IS NOT NULL THEN 90
    WHEN json ->> '$.table' = 'messages' AND json_valid(json ->> '$.row.parts')
         AND json_type(json ->> '$.row.parts', '$[0].data') = 'object' THEN 90
    ELSE 0 END) FROM lines

-- tables
sessions messages

-- copies
ids: SELECT session_id(id), id FROM sessions
sessions: id IN ids
goose_db_version: 1
*: session_id IN ids

-- once
-- rest_ts, rest_n: a finished answer is the last of the turn.
CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER, model TEXT) WITHOUT ROWID;
CREATE TABLE calls (id TEXT PRIMARY KEY, tool TEXT) WITHOUT ROWID;
CREATE TABLE file (ts INTEGER);
INSERT INTO file VALUES (1);
-- The turns of the log, to find those that it no longer has.
CREATE TABLE live (session TEXT, turn TEXT, ts INTEGER, n INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE titles (session TEXT PRIMARY KEY, title TEXT, ts INTEGER, source TEXT, n INTEGER) WITHOUT ROWID;
CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, id TEXT, session TEXT, role TEXT, ts INTEGER, finish TEXT, source TEXT, p TEXT, j TEXT, r TEXT);

-- The events of a row. what: user: begins a turn; answer: may end it; busy: it continues; cancelled,
-- failed: it ends; meta: of the session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT n.session, NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(n.session), 'agent_id', '"crush"', 'status', '"idle"', 'source', n.source), NEW.n
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
    INSERT INTO now (j, r, main, id, session, role, ts, p, source)
    SELECT j, r, CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.table' = 'sessions' AND json_type(r, '$.id') = 'text' THEN 'meta'
                WHEN j ->> '$.table' = 'messages' AND json_type(r, '$.id') = 'text' AND json_type(r, '$.session_id') = 'text'
                     AND json_valid(r ->> '$.parts') AND json_type(r ->> '$.parts') = 'array' THEN 'message'
                ELSE 'record' END,
           CASE WHEN json_type(r, '$.id') = 'text' THEN r ->> '$.id' ELSE NEW.hash END,
           coalesce(session_id(CASE j ->> '$.table' WHEN 'sessions' THEN r ->> '$.id' ELSE CAST(r ->> '$.session_id' AS TEXT) END),
                    session_id(stem)),
           r ->> '$.role',
           coalesce(CASE WHEN t > 100000000000 THEN t * 1000 WHEN t > 0 THEN t * 1000000 END, f.ts),
           CASE WHEN json_valid(r ->> '$.parts') AND json_type(r ->> '$.parts') = 'array' THEN json(r ->> '$.parts') END,
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', CASE WHEN json_type(r, '$.id') = 'text' THEN r -> '$.id' END)
    FROM source, file f,
         (SELECT j, j -> '$.row' AS r, CAST(j ->> '$.row.created_at' AS INTEGER) AS t FROM (SELECT NEW.json AS j));
    UPDATE file SET ts = (SELECT n.ts FROM now n);
    UPDATE now SET finish = (SELECT e.value -> '$.data' FROM json_each(p) e WHERE e.type = 'object' AND e.value ->> '$.type' = 'finish')
    WHERE main = 'message';
    UPDATE now SET main = 'streaming', id = id || '.streaming'
    WHERE main = 'message' AND role = 'assistant' AND finish IS NULL AND coalesce(json_type(r, '$.finished_at'), 'null') = 'null';
    INSERT INTO parts
    SELECT 'note', n.ts, 'session.updated', n.id || '.model', json_fields('set', json_fields('model', r -> '$.model',
           'provider', CASE WHEN json_type(r, '$.provider') = 'text' AND r ->> '$.provider' <> '' THEN r -> '$.provider' END)), NEW.n
    FROM now n WHERE main = 'message' AND role = 'assistant' AND json_type(r, '$.model') = 'text' AND r ->> '$.model' <> ''
      AND r ->> '$.model' IS NOT (SELECT s.model FROM sessions s WHERE s.session = n.session);
    UPDATE sessions SET model = (SELECT n.r ->> '$.model' FROM now n)
    WHERE session = (SELECT n.session FROM now n WHERE n.main = 'message' AND n.role = 'assistant' AND json_type(n.r, '$.model') = 'text'
                     AND n.r ->> '$.model' <> '');
    INSERT INTO parts
    SELECT CASE WHEN main = 'meta' THEN 'meta' WHEN main <> 'message' THEN 'note' WHEN role = 'user' AND NOT summary THEN 'user'
                WHEN role = 'assistant' THEN CASE finish ->> '$.reason' WHEN 'canceled' THEN 'busy' WHEN 'permission_denied' THEN 'busy' WHEN 'error' THEN 'busy'
                                             ELSE CASE WHEN called THEN 'busy' ELSE 'answer' END END
                ELSE 'note' END,
        ts,
        CASE main WHEN 'meta' THEN 'session.created' WHEN 'unreadable' THEN 'import.unreadable'
        WHEN 'message' THEN CASE WHEN said <> '[]' THEN 'message.added' ELSE 'import.record' END ELSE 'import.record' END,
        CASE main WHEN 'meta' THEN 'session.created' WHEN 'record' THEN NEW.hash ELSE id END,
        CASE main
        WHEN 'meta' THEN json_fields('id', json_text(session), 'agent_id', '"crush"', 'status', '"idle"',
            'title', CASE WHEN r ->> '$.title' NOT IN ('', 'New Session', 'Untitled Session') THEN r -> '$.title' END,
            'parent_session_id', json_text(session_id(nullif(r ->> '$.parent_session_id', ''))), 'extra', r)
        WHEN 'unreadable' THEN NEW.unreadable
        WHEN 'message' THEN CASE WHEN said = '[]'
            THEN json_fields('kind', CASE role WHEN 'assistant' THEN '"calls"' ELSE '"results"' END,
                             'extra', CASE WHEN p = '[]' OR NOT called AND role <> 'tool' THEN r ELSE json_remove(r, '$.parts') END)
            ELSE json_fields('id', json_text(id), 'role', json_text(role), 'content', said,
                'said', CASE WHEN summary THEN '""' END,
                'model', CASE WHEN role = 'assistant' AND json_type(r, '$.model') = 'text' AND r ->> '$.model' <> '' THEN r -> '$.model' END,
                'stop_reason', finish -> '$.reason', 'extra', json_remove(r, '$.parts')) END
        ELSE json_fields('kind', CASE main WHEN 'streaming' THEN '"streaming"' ELSE coalesce(json_text(j ->> '$.table'), '"line"') END,
                         'extra', coalesce(r, j)) END, NEW.n
    FROM (SELECT n.*, coalesce(r ->> '$.is_summary_message', 0) AS summary,
                 EXISTS (SELECT 1 FROM json_each(p) e WHERE e.type = 'object' AND e.value ->> '$.type' = 'tool_call') AS called,
                 (SELECT json_group_array(json(CASE
                      WHEN json_type(e.value, '$.data') = 'object' AND e.value ->> '$.type' IN ('text', 'reasoning') AND e.value -> '$.data' <> '{}'
                      THEN '{"type":' || CASE e.value ->> '$.type' WHEN 'text' THEN '"text",' ELSE '"thinking",' END
                           || substr(e.value -> '$.data', 2) ELSE e.value END))
                  FROM json_each(p) e
                  WHERE e.type = 'object' AND coalesce(e.value ->> '$.type', '') NOT IN ('tool_call', 'tool_result', 'finish', 'shell_command')
                    AND NOT coalesce(e.value ->> '$.type' = 'reasoning' AND e.value ->> '$.data.thinking' = '', 0)
                    AND NOT coalesce(e.value ->> '$.type' = 'text' AND e.value ->> '$.data.text' = '', 0)) AS said
          FROM now n);
    -- The rest of a row: parts without words, and the end of an answer.
    INSERT INTO parts
    SELECT 'note', n.ts, 'import.record', n.id || '.part.' || e.key, json_fields('kind', '"calls"', 'extra', e.value), NEW.n
    FROM now n, json_each(p) e
    WHERE main = 'message' AND (e.type <> 'object' OR e.value ->> '$.type' = 'reasoning' AND e.value ->> '$.data.thinking' = ''
        OR e.value ->> '$.type' = 'finish' AND e.value ->> '$.data.reason' NOT IN ('canceled', 'permission_denied', 'error'));
    -- The title of a session, which is known later than its first message.
    INSERT OR REPLACE INTO titles SELECT session, r ->> '$.title', ts, source, NEW.n
    FROM now WHERE main = 'meta' AND r ->> '$.title' NOT IN ('', 'New Session', 'Untitled Session');
    INSERT INTO parts
    SELECT 'busy', n.ts, 'tool.called', n.id || '.call.' || e.key,
           json_fields('call_id', coalesce(e.value -> '$.data.id', json_text(n.id || '.' || e.key)),
               'tool', CASE e.value ->> '$.type' WHEN 'shell_command' THEN '"shell"' ELSE coalesce(e.value -> '$.data.name', '"unknown"') END,
               'input', CASE e.value ->> '$.type' WHEN 'shell_command' THEN e.value -> '$.data.command' ELSE e.value -> '$.data.input' END,
               'message_id', json_text(n.id),
               'extra', CASE e.value ->> '$.type' WHEN 'shell_command' THEN json_remove(e.value, '$.data.command', '$.data.output', '$.data.exit_code')
                        ELSE json_remove(e.value, '$.data.id', '$.data.name', '$.data.input') END), NEW.n
    FROM now n, json_each(p) e WHERE main = 'message' AND e.type = 'object' AND e.value ->> '$.type' IN ('tool_call', 'shell_command');
    INSERT OR REPLACE INTO calls SELECT e.value ->> '$.data.id', e.value ->> '$.data.name' FROM now n, json_each(p) e
    WHERE main = 'message' AND e.type = 'object' AND e.value ->> '$.type' = 'tool_call' AND json_type(e.value, '$.data.id') = 'text';
    INSERT INTO parts
    SELECT 'busy', ts, CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END, id || '.result.' || key,
           json_fields('call_id', coalesce(CASE type WHEN 'tool_result' THEN b -> '$.data.tool_call_id' ELSE b -> '$.data.id' END,
                                           json_text(id || '.' || key)),
               'success', CASE WHEN failed THEN 'false' ELSE 'true' END,
               'output', CASE type WHEN 'tool_result' THEN b -> '$.data.content' ELSE b -> '$.data.output' END, 'exit_code', code,
               'extra', CASE type WHEN 'tool_result' THEN json_remove(b, '$.data.tool_call_id', '$.data.content') END), NEW.n
    FROM (SELECT *, coalesce(b ->> '$.data.is_error', 0) OR coalesce(code, 0) <> 0 AS failed
          FROM (SELECT n.id, n.ts, e.key, e.value AS b, e.value ->> '$.type' AS type,
                       CASE WHEN e.value ->> '$.type' = 'shell_command'
                            THEN CASE WHEN json_type(e.value, '$.data.exit_code') = 'integer' THEN e.value ->> '$.data.exit_code' END
                            WHEN coalesce(nullif(e.value ->> '$.data.name', ''), (SELECT c.tool FROM calls c WHERE c.id = e.value ->> '$.data.tool_call_id'))
                                     IN ('bash', 'job_output')
                                 AND instr(char(10) || substr(e.value ->> '$.data.content', -400), char(10) || 'Exit code ') > 0
                            THEN CAST(substr(substr(e.value ->> '$.data.content', -400),
                                             instr(char(10) || substr(e.value ->> '$.data.content', -400), char(10) || 'Exit code ') + 10) AS INTEGER) END AS code
                FROM now n, json_each(p) e
                WHERE n.main = 'message' AND e.type = 'object' AND e.value ->> '$.type' IN ('tool_result', 'shell_command')));
    INSERT INTO parts
    SELECT CASE finish ->> '$.reason' WHEN 'error' THEN 'failed' ELSE 'cancelled' END, ts,
           CASE WHEN turn IS NULL THEN 'import.record' WHEN finish ->> '$.reason' = 'error' THEN 'turn.failed' ELSE 'turn.cancelled' END,
           n.id || '.finish',
           CASE WHEN turn IS NULL THEN json_fields('kind', '"calls"', 'extra', finish)
           ELSE json_fields('reason', CASE finish ->> '$.reason' WHEN 'canceled' THEN '"interrupted"' WHEN 'permission_denied' THEN '"refused"' END,
                            'error', CASE finish ->> '$.reason' WHEN 'error' THEN finish END,
                            'extra', CASE WHEN finish ->> '$.reason' <> 'error' THEN finish END) END, NEW.n
    FROM now n JOIN sessions s USING (session) WHERE main = 'message' AND finish ->> '$.reason' IN ('canceled', 'permission_denied', 'error');
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
