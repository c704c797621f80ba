-- importer droid   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: todo_state session_end agent_turn_outcome calls results
-- files: *.jsonl
-- places: $FACTORY_DIR/sessions ~/.factory/sessions
--
-- Sessions of Factory's Droid: ~/.factory/sessions/<project>/<session>.jsonl. docs/events.md lists the
-- resulting events; annal/import.h describes the tables that an importer can read.
--
-- The form was learnt from a recorded session in git-ai-project/git-ai 55a1d728f (Apache-2.0), with which
-- turns, calls and results were compared, and from the reader in getagentseal/codeburn ed8fa3af (MIT).
-- That session has no failed call, compaction, thought or sub-agent.
--
--  (1) The session is the id of session_start, else the file. A sub-agent names its caller
--      (callingSessionId), a fork its parent.
--  (2) tool_use and tool_result are calls and results; a result with is_error is a failure.
--  (3) A user's message begins a turn, unless it only passes results or reminders of the program. An
--      answer without a call ends it.
--  (4) Tokens and the model are sums in <session>.settings.json, a file without lines: they are
--      unknown, unless a message names its model.
--  (5) A message of another session (record_owner: its id) is an import.record without its calls;
--      parent_session_id names that session. If that session is a fork of this one, which was
--      imported first, the message counts here, and record.moved says so in the fork.
--  (6) The first event of a line contains the rest of the line under "extra".

-- detect
SELECT max(CASE
    WHEN json ->> '$.type' = 'session_start' AND json_type(json, '$.id') = 'text' AND json_type(json, '$.cwd') = 'text' THEN 90
    WHEN json ->> '$.type' = 'message' AND json_type(json, '$.message.content[0].type') = 'text'
         AND json ->> '$.message.content[0].type' IN ('tool_use', 'tool_result') AND json_type(json, '$.id') = 'text'
         AND json_type(json, '$.sessionId') IS NULL THEN 60
    ELSE 0 END) FROM lines

-- once
-- Texts that Droid adds before its user's messages. annal/import.h: said().
CREATE VIEW added (begins, ends) AS VALUES ('<system-reminder>', '</system-reminder>');

-- rest_ts, rest_n: an answer without a call is the last of the turn.
CREATE TABLE file (session TEXT, named INTEGER, ts INTEGER, made INTEGER, model TEXT, turn TEXT, turns INTEGER, rest_ts INTEGER,
                   rest_n INTEGER, continued INTEGER);
INSERT INTO file SELECT session_id(stem), 0, 1, 0, NULL, NULL, 0, NULL, NULL, 0 FROM source;
CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE copied (call TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE out (ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The messages that count here, and no longer in a fork.
CREATE TABLE moved (fork TEXT, ts INTEGER, id TEXT, c TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, id TEXT, role TEXT, called INTEGER, ts INTEGER, owner TEXT, source TEXT, said TEXT, c TEXT, j TEXT);

-- The events of a line. what: user: begins a turn; answer: may end it; busy: it continues; abort: it
-- is cancelled; meta: of the session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(f.session), 'agent_id', '"droid"', 'status', '"idle"', 'source', n.source), NEW.n
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
    INSERT INTO now (j, main, id, role, c, called)
    SELECT j, CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.type' = 'session_start' AND NOT f.named AND NOT f.made THEN 'meta'
                WHEN j ->> '$.type' = 'message' AND json_type(j, '$.message.role') = 'text'
                     AND json_type(j, '$.message.content') IN ('array', 'text') THEN 'message'
                WHEN j ->> '$.type' = 'compaction_state' THEN 'compaction'
                ELSE 'record' END,
           CASE WHEN json_type(j, '$.id') = 'text' AND j ->> '$.type' <> 'session_start' AND NOT EXISTS (SELECT 1 FROM seen s WHERE s.id = j ->> '$.id')
                THEN j ->> '$.id' ELSE NEW.hash END,
           j ->> '$.message.role', CASE json_type(j, '$.message.content') WHEN 'array' THEN j -> '$.message.content' END,
           EXISTS (SELECT 1 FROM json_each(j, '$.message.content') b WHERE b.type = 'object' AND b.value ->> '$.type' = 'tool_use')
    FROM file f, (SELECT NEW.json AS j);
    UPDATE file SET session = CASE n.main WHEN 'meta' THEN coalesce(session_id(n.j ->> '$.id'), file.session) ELSE file.session END,
        named = file.named OR n.main = 'meta', ts = coalesce(time_us(n.j ->> '$.timestamp'), file.ts),
        model = coalesce(n.j ->> '$.message.model', file.model)
    FROM now n;
    INSERT OR IGNORE INTO seen SELECT n.id FROM now n;
    UPDATE now SET ts = f.ts,
        -- The content without calls and results.
        said = CASE WHEN main = 'message' THEN CASE WHEN c IS NULL THEN j -> '$.message.content' ELSE (
            SELECT json_group_array(CASE b.type WHEN 'object' THEN json(b.value) WHEN 'array' THEN json(b.value) ELSE b.value END)
            FROM json_each(c) b WHERE b.type <> 'object' OR coalesce(b.value ->> '$.type', '') NOT IN ('tool_use', 'tool_result')) END END
    FROM file f;
    UPDATE now SET said = NULL WHERE said = '[]';
    UPDATE now SET owner = nullif(record_owner('droid ' || id, (SELECT f.session FROM file f)), (SELECT f.session FROM file f))
    WHERE main = 'message' AND json_type(j, '$.id') = 'text';
    INSERT INTO moved
    SELECT n.owner, n.ts, n.id, n.c, NEW.n FROM now n, file f
    WHERE owner IS NOT NULL AND record_owner('droid fork ' || owner || ' of ' || f.session, NULL) IS NOT NULL;
    UPDATE now SET owner = NULL WHERE id IN (SELECT m.id FROM moved m WHERE m.n = NEW.n);
    INSERT OR IGNORE INTO copied
    SELECT b.value ->> '$.id' FROM now, json_each(c) b
    WHERE owner IS NOT NULL AND b.type = 'object' AND b.value ->> '$.type' = 'tool_use' AND b.value ->> '$.id' IS NOT NULL;
    UPDATE now SET source = json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', NEW.n,
        'record', CASE WHEN json_type(now.j, '$.id') = 'text' THEN now.j -> '$.id' END,
        'origin', CASE WHEN main = 'message' AND owner IS NULL AND json_type(now.j, '$.id') = 'text' THEN json_text('droid ' || id) END,
        'copied', CASE WHEN owner IS NOT NULL THEN 'true' END)
    FROM source s;
    INSERT INTO parts
    SELECT 'note', n.ts, 'session.updated', 'session.continues', json_fields('set', json_fields('parent_session_id', json_text(owner))), NEW.n
    FROM now n, file f WHERE owner IS NOT NULL AND NOT f.continued;
    UPDATE file SET continued = 1 WHERE (SELECT n.owner FROM now n) IS NOT NULL;
    INSERT INTO parts
    SELECT CASE WHEN main = 'meta' THEN 'meta' WHEN owner IS NOT NULL OR main <> 'message' THEN 'note'
                WHEN role = 'user' THEN CASE WHEN begins THEN 'user' ELSE 'note' END
                WHEN called THEN 'busy' ELSE 'answer' END,
        ts,
        CASE main WHEN 'meta' THEN 'session.created' WHEN 'compaction' THEN 'checkpoint.noted' WHEN 'unreadable' THEN 'import.unreadable'
        WHEN 'message' THEN CASE WHEN owner IS NULL AND said IS NOT NULL THEN 'message.added' ELSE 'import.record' END
        ELSE 'import.record' END,
        CASE main WHEN 'meta' THEN 'session.created' ELSE id END,
        CASE main
        WHEN 'meta' THEN json_fields('id', json_text(session_id(j ->> '$.id')), 'agent_id', '"droid"', 'status', '"idle"',
            'title', CASE WHEN json_type(j, '$.sessionTitle') = 'text' AND j ->> '$.sessionTitle' NOT IN ('', 'New Session') THEN j -> '$.sessionTitle'
                          WHEN json_type(j, '$.title') = 'text' AND j ->> '$.title' <> '' THEN j -> '$.title' END,
            'working_directory', CASE WHEN json_type(j, '$.cwd') = 'text' THEN j -> '$.cwd' END,
            'parent_session_id', json_text(session_id(coalesce(j ->> '$.callingSessionId', j ->> '$.parent'))),
            'source_keys', CASE WHEN j ->> '$.parent' <> '' AND record_owner('droid fork ' || session_id(j ->> '$.id') || ' of ' || session_id(j ->> '$.parent'), session_id(j ->> '$.id')) <> ''
                           THEN json_array('droid fork ' || session_id(j ->> '$.id') || ' of ' || session_id(j ->> '$.parent')) END, 'extra', j)
        WHEN 'compaction' THEN json_fields('note', '"compaction"', 'extra', j)
        WHEN 'unreadable' THEN NEW.unreadable
        WHEN 'message' THEN CASE WHEN owner IS NOT NULL THEN json_fields('kind', '"message"', 'extra', j)
            WHEN said IS NULL THEN json_fields('kind', CASE role WHEN 'user' THEN '"results"' ELSE '"calls"' END,
                                               'extra', json_remove(j, '$.message.content'))
            ELSE json_fields('id', json_text(id), 'role', json_text(role), 'content', said,
                'said', CASE role WHEN 'user' THEN said(said) END,
                'model', CASE role WHEN 'assistant' THEN json_text(model) END, 'extra', json_remove(j, CASE json_type(j, '$.id') WHEN 'text' THEN '$.id' ELSE '$.message.content' END, '$.message.content')) END
        ELSE json_fields('kind', coalesce(json_text(j ->> '$.type'), '"line"'), 'extra', j) END, NEW.n
    FROM (SELECT n.*, f.model,
                 said IS NOT NULL AND coalesce(said(said) <> '""', 1)
                     AND NOT EXISTS (SELECT 1 FROM json_each(n.c) b WHERE b.type = 'object' AND b.value ->> '$.type' = 'tool_result') AS begins
          FROM now n, file f);
    INSERT INTO parts
    SELECT 'busy', n.ts,
           CASE WHEN b.value ->> '$.type' = 'tool_use' THEN 'tool.called' WHEN b.value ->> '$.is_error' THEN 'tool.failed' ELSE 'tool.returned' END,
           n.id || '.tool.' || b.key,
           CASE b.value ->> '$.type'
           WHEN 'tool_use' THEN json_fields('call_id', coalesce(b.value -> '$.id', json_text(n.id || '.' || b.key)),
               'tool', coalesce(b.value -> '$.name', '"unknown"'), 'input', b.value -> '$.input', 'message_id', json_text(n.id),
               'extra', json_remove(b.value, '$.id', '$.name', '$.input'))
           ELSE json_fields('call_id', coalesce(b.value -> '$.tool_use_id', json_text(n.id || '.' || b.key)),
               'success', CASE WHEN b.value ->> '$.is_error' THEN 'false' END, 'output', b.value -> '$.content',
               'extra', json_remove(b.value, '$.tool_use_id', '$.content')) END, NEW.n
    FROM now n, json_each(n.c) b
    WHERE main = 'message' AND owner IS NULL AND b.type = 'object'
      AND (b.value ->> '$.type' = 'tool_use'
           OR b.value ->> '$.type' = 'tool_result' AND coalesce(b.value ->> '$.tool_use_id', '') NOT IN (SELECT k.call FROM copied k));
    INSERT INTO parts
    SELECT 'note', n.ts, 'import.record', n.id || '.copy.' || b.key, json_fields('kind', '"results"', 'extra', b.value), NEW.n
    FROM now n, json_each(n.c) b
    WHERE main = 'message' AND owner IS NULL AND b.type = 'object' AND b.value ->> '$.type' = 'tool_result'
      AND b.value ->> '$.tool_use_id' IN (SELECT k.call FROM copied k);
    DELETE FROM parts;
END;

-- batch
SELECT f.session, o.ts, o.type, o.id, NULL, o.data, o.n FROM out o, file f ORDER BY o.rowid;
SELECT fork, m.ts, 'record.moved', id || '.moved', NULL,
       json_fields('record', json_text(id), 'to', json_text(f.session), 'turn_id', json_text(id),
                   'call_ids', (SELECT json_group_array(b.value ->> '$.id') FROM json_each(c) b
                                WHERE b.type = 'object' AND b.value ->> '$.type' = 'tool_use' AND b.value ->> '$.id' IS NOT NULL),
                   'source', json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', n)), n
FROM moved m, file f, source s;
DELETE FROM out;
DELETE FROM moved;

-- end
SELECT session, rest_ts, 'turn.completed', turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', rest_n)), rest_n
FROM file, source WHERE turn IS NOT NULL AND rest_ts IS NOT NULL;
