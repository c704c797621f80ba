-- importer gemini-cli   version 5
-- SPDX-License-Identifier: Apache-2.0
-- records: info error warning $set $rewindTo
-- files: session-*.json *.jsonl
-- recalls: session.created session.updated turn.started turn.rolled_back turn.restored
-- split: $.messages
-- places: $GEMINI_CLI_HOME/.gemini/tmp ~/.gemini/tmp
--
-- Chats of the Gemini CLI: ~/.gemini/tmp/<project>/chats/session-*.jsonl, and the older
-- session-*.json, which is one document that is rewritten as it grows. docs/events.md lists the
-- resulting events; annal/import.h describes the tables that an importer can read.
--
--  (1) The session is the session in the header, else the file. A message is a line of its own, or
--      is in the "$set" of a line, or in the document's array. A message without content, calls and
--      tokens has an unknown layout: it is an import.record.
--  (2) A later message with the same id replaces the earlier one: it becomes another message.added
--      only if its content changed. Calls, results and tokens become events once each; if a later
--      line has other token numbers, the difference is an event.
--  (3) The first event of a line contains the rest of the line under "extra".
--  (4) A user's message begins a turn, except messages that only pass results to the model, and the
--      context that the program adds at the start. An answer without a tool call ends the turn,
--      too; the event is appended at the start of the next turn or at the end of the log.
--  (5) "$rewindTo" takes back the message with its id and all later messages: the turns that began
--      there are rolled back. It is an import.record, too.
--  (6) A message of another session (record_owner: its id) is an import.record, without its calls
--      and tokens; parent_session_id names that session.
--  (7) The event of a message has an id that contains the message's id if it is the first event of
--      that message in the file, so the two kinds of files of one session add each message once. The
--      ids of version 3 are recognized.
--  (8) A command has failed if the lines after its output say so: an exit code other than 0, a
--      signal, or that it could not be started.
--  (9) A chat of a sub-agent is in a directory with the name of its parent session.
-- (10) summary is the title of the session. displayContent is the prompt as the user typed it. A turn
--      that a document lacks, which an earlier state of it had, is rolled back.

-- detect
SELECT max(CASE
    WHEN json_type(coalesce(json -> '$.value', json), '$.projectHash') = 'text'
         AND json_type(coalesce(json -> '$.value', json), '$.sessionId') = 'text' THEN 95
    WHEN json ->> '$.type' = 'gemini' AND json_type(json, '$.id') = 'text' THEN 80
    ELSE 0 END) FROM lines

-- repeats
"summary"
"$rewindTo"

-- once
-- Texts that the Gemini CLI adds before its user's messages. annal/import.h: said().
CREATE VIEW added (begins, ends) AS VALUES
    ('<session_context>', '</session_context>'),
    ('<hook_context>', '</hook_context>'),
    ('This is the Gemini CLI. We are setting up the context for our chat', NULL);

CREATE TABLE file (session TEXT, ts INTEGER, named INTEGER, made INTEGER, turn TEXT, turns INTEGER,
                   rest_ts INTEGER, rest_n INTEGER, rested INTEGER, title TEXT, n INTEGER);
INSERT INTO file SELECT session_id(stem), 1, 0, 0, NULL, 0, NULL, NULL, 0, NULL, NULL FROM source;

CREATE TABLE turns (i INTEGER PRIMARY KEY, turn TEXT UNIQUE, gone INTEGER);
CREATE TABLE places (id TEXT PRIMARY KEY, turn INTEGER) WITHOUT ROWID; -- the turn of each message
CREATE TABLE continued (session TEXT);
CREATE TABLE seen (id TEXT PRIMARY KEY, content TEXT, input INTEGER, output INTEGER, cached INTEGER)
    WITHOUT ROWID;
CREATE TABLE calls (id TEXT PRIMARY KEY, returned INTEGER) WITHOUT ROWID;

-- The lines that may follow the output of a command, in their order.
CREATE VIEW trailers (rank, pattern) AS VALUES
    (1, 'Error: *'), (2, 'Exit Code: *'), (3, 'Signal: *'), (4, 'Background PIDs: *'), (5, 'Process Group PGID: *'),
    (6, '</untrusted_context>');

-- The results in messages; said: the lines after the output of a command; code: its exit code.
CREATE VIEW results AS
SELECT i, id, key, c, code, c ->> '$.status' = 'success' AND coalesce(code, 0) = 0
       AND NOT coalesce(c ->> '$.result[0].functionResponse.response.isError' = 1, 0)
       AND (said IS NULL OR said NOT GLOB '*' || char(10) || 'Error: spawn*'
                            AND said NOT GLOB '*' || char(10) || 'Signal: [A-Z1-9]*') AS success
FROM (SELECT i, id, key, c, said, CASE WHEN at > 0 AND substr(said, at + 12, 1) GLOB '[-0-9]'
                                       THEN CAST(substr(said, at + 12, 12) AS INTEGER) END AS code
      FROM (SELECT i, id, key, c, said, instr(said, char(10) || 'Exit Code: ') AS at
            FROM (SELECT m.i, m.id, e.key, e.value AS c,
                         CASE WHEN e.value ->> '$.name' = 'run_shell_command' THEN (
                             WITH RECURSIVE peel (rest, rank, said) AS (
                                 SELECT rtrim(substr(e.value ->> '$.result[0].functionResponse.response.output', -2000), char(10)), 7, ''
                                 UNION ALL
                                 -- rtrim() with all its letters but line breaks removes the last line.
                                 SELECT rtrim(rtrim(rest, replace(rest, char(10), '')), char(10)), t.rank,
                                        char(10) || substr(rest, length(rtrim(rest, replace(rest, char(10), ''))) + 1) || said
                                 FROM peel JOIN trailers t ON t.rank < peel.rank
                                     AND substr(rest, length(rtrim(rest, replace(rest, char(10), ''))) + 1) GLOB t.pattern)
                             SELECT said FROM peel ORDER BY rank LIMIT 1) END AS said
                  FROM messages m, json_each(m.m, '$.toolCalls') e
                  WHERE m.owner IS NULL AND e.type = 'object'
                    AND e.value ->> '$.status' IN ('success', 'error', 'cancelled'))));
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER,
                  formerly TEXT);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (source TEXT, main TEXT, j TEXT);

-- The messages of the line. i: position; fresh: the content is new; human: it begins a turn.
CREATE TABLE messages (i INTEGER PRIMARY KEY, m TEXT, id TEXT, role TEXT, fresh INTEGER, human INTEGER,
                       owner TEXT);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    DELETE FROM messages;
    INSERT INTO now (j, source, main)
    SELECT j, json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                          'record', coalesce(j -> '$.value.id', j -> '$.id')),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' THEN 'meta'
                WHEN j ->> '$.at' = '$.messages' AND known THEN 'message'
                WHEN json_type(j, '$.sessionId') = 'text' AND json_type(j, '$.type') IS NULL THEN 'meta'
                WHEN json_type(j, '$."$set".messages') = 'array' THEN 'set'
                WHEN json_type(j, '$.id') = 'text' AND json_type(j, '$.type') = 'text' AND known THEN 'message'
                ELSE 'record' END
    FROM source, (SELECT NEW.json AS j, coalesce(v -> '$.content', v -> '$.toolCalls', v -> '$.tokens') IS NOT NULL AS known
                  FROM (SELECT coalesce(NEW.json -> '$.value', NEW.json) AS v));
    INSERT INTO messages (i, m)
    SELECT 0, coalesce(j -> '$.value', j) FROM now WHERE main = 'message'
    UNION ALL
    SELECT e.key, e.value FROM now, json_each(j, '$."$set".messages') e WHERE main = 'set' AND e.type = 'object';
    UPDATE messages SET id = coalesce(m ->> '$.id', NEW.hash || '.' || i),
        role = CASE m ->> '$.type' WHEN 'user' THEN 'user' WHEN 'gemini' THEN 'assistant' ELSE 'system' END;
    UPDATE messages SET
        fresh = NOT EXISTS (SELECT 1 FROM seen s WHERE s.id = messages.id
                            AND s.content IS coalesce(m -> '$.content', '')),
        human = role = 'user'
            AND NOT EXISTS (SELECT 1 FROM json_each(m, '$.content') p WHERE p.type = 'object'
                            AND json_type(p.value, '$.functionResponse') IS NOT NULL)
            AND coalesce(CASE json_type(m, '$.content') WHEN 'array' THEN m ->> '$.content[0].text'
                         ELSE m ->> '$.content' END, '') NOT LIKE '<session_context>%';
    UPDATE file SET
        ts = coalesce((SELECT max(time_us(m ->> '$.timestamp')) FROM messages),
                      time_us(coalesce(NEW.json -> '$.value', NEW.json) ->> '$.startTime'),
                      time_us(NEW.json ->> '$."$set".lastUpdated'), ts),
        session = CASE WHEN named OR (SELECT main FROM now) <> 'meta' THEN session
                  ELSE coalesce(session_id(coalesce(NEW.json -> '$.value', NEW.json) ->> '$.sessionId'), session) END,
        named = named OR (SELECT main FROM now) = 'meta', n = NEW.n,
        title = coalesce(nullif(NEW.json ->> '$."$set".summary', ''), CASE WHEN (SELECT main FROM now) = 'meta'
                         THEN nullif(coalesce(NEW.json -> '$.value', NEW.json) ->> '$.summary', '') END, title);

    UPDATE messages SET owner = nullif(record_owner('gemini ' || (m ->> '$.id'), (SELECT session FROM file)),
                                       (SELECT session FROM file));
    UPDATE messages SET fresh = 0, human = 0 WHERE owner IS NOT NULL;

    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, f.session, f.ts, 'session.created', 'session.created',
           CASE main WHEN 'meta' THEN json_fields(
               'id', json_text(f.session), 'agent_id', '"gemini-cli"', 'provider', '"google"',
               'status', '"idle"', 'created_at', coalesce(j -> '$.value', j) -> '$.startTime', 'title', json_text(f.title),
               'parent_session_id', CASE WHEN coalesce(j -> '$.value', j) ->> '$.kind' = 'subagent' THEN json_text(session_id(
                   (SELECT value FROM options WHERE name = ':directory' AND value <> 'chats'))) END, 'source', n.source,
               'extra', json_remove(j, '$.startTime', '$.value.startTime'))
           ELSE json_fields('id', json_text(f.session), 'agent_id', '"gemini-cli"', 'provider', '"google"',
                            'status', '"idle"', 'source', n.source) END, NEW.n
    FROM file f, now n WHERE NOT f.made;
    -- Record that the log of this session is imported.
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, -1, f.session, f.ts, 'telemetry.superseded', 'telemetry.superseded', json_fields('source', n.source), NEW.n
    FROM file f, now n
    WHERE NOT f.made AND (record_owner('log ' || f.session, NULL) IS NULL
                          AND record_owner('telemetry ' || f.session, NULL) IS NOT NULL)
                         + 0 * (record_owner('log ' || f.session, f.session) IS NULL);
    UPDATE now SET main = 'record' WHERE main = 'meta' AND (SELECT made FROM file);
    UPDATE file SET made = 1;
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, f.session, f.ts, 'session.updated', 'session.continues',
           json_fields('set', json_fields('parent_session_id', json_text(m.owner)), 'source', n.source), NEW.n
    FROM file f, now n, messages m WHERE m.owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM continued) LIMIT 1;
    INSERT INTO continued SELECT owner FROM messages WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM continued) LIMIT 1;

    -- Turns: if one line has several messages, only the turn of the last one stays open.
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 10 * m.i + 1, f.session,
           CASE WHEN p.id IS NULL AND f.rest_ts IS NOT NULL THEN f.rest_ts ELSE f.ts END, 'turn.completed',
           CASE WHEN p.id IS NULL AND f.rested THEN f.turn || '.ends' ELSE NEW.hash || '.ends.' || m.i END,
           json_fields('turn_id', json_text(coalesce(p.id, f.turn)),
                       'reason', CASE WHEN p.id IS NULL AND f.rest_ts IS NOT NULL THEN '"answered"'
                                 ELSE '"next_turn"' END, 'source', n.source), NEW.n
    FROM file f, now n, messages m LEFT JOIN messages p
        ON p.i = (SELECT max(q.i) FROM messages q WHERE q.human AND q.fresh AND q.i < m.i)
    WHERE m.human AND m.fresh AND (f.turn IS NOT NULL OR p.id IS NOT NULL);
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 10 * m.i + 2, f.session, f.ts, 'turn.started', NEW.hash || '.begins.' || m.i,
           json_fields('turn_id', json_text(m.id),
                       'sequence', f.turns + (SELECT count(*) FROM messages p WHERE p.human AND p.fresh AND p.i <= m.i),
                       'status', '"running"', 'prompt_ref', json_text(m.id), 'source', n.source), NEW.n
    FROM file f, now n, messages m WHERE m.human AND m.fresh;
    UPDATE file SET turns = turns + (SELECT count(*) FROM messages WHERE human AND fresh),
        turn = coalesce((SELECT id FROM messages WHERE human AND fresh ORDER BY i DESC LIMIT 1), turn);
    INSERT OR IGNORE INTO turns (turn, gone) SELECT id, 0 FROM messages WHERE human AND fresh ORDER BY i;
    INSERT OR IGNORE INTO places
    SELECT m.id, (SELECT max(t.i) FROM turns t) FROM messages m WHERE NOT (m.human AND m.fresh);
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 1000001 + t.i, f.session, f.ts, 'turn.rolled_back', NEW.hash || '.back.' || t.turn,
           json_fields('turn_id', json_text(t.turn), 'reason', '"rewind"', 'source', n.source), NEW.n
    FROM file f, now n, turns t
    WHERE NOT t.gone AND t.i >= coalesce((SELECT k.i FROM turns k WHERE k.turn = n.j ->> '$."$rewindTo"'),
                                         (SELECT p.turn + 1 FROM places p WHERE p.id = n.j ->> '$."$rewindTo"'));
    UPDATE turns SET gone = 1
    WHERE i >= coalesce((SELECT k.i FROM turns k, now n WHERE k.turn = n.j ->> '$."$rewindTo"'),
                        (SELECT p.turn + 1 FROM places p, now n WHERE p.id = n.j ->> '$."$rewindTo"'));
    UPDATE file SET rest_ts = NULL, rested = 0 WHERE EXISTS (SELECT 1 FROM messages WHERE human AND fresh);
    UPDATE file SET (rest_ts, rest_n) = (
        SELECT CASE WHEN m.role = 'assistant' AND json_type(m.m, '$.toolCalls[0]') IS NULL
                         AND coalesce(m.m ->> '$.content', '') <> ''
                    THEN coalesce(time_us(m.m ->> '$.timestamp'), file.ts) END, NEW.n
        FROM messages m WHERE m.role <> 'system' ORDER BY m.i DESC LIMIT 1)
    WHERE EXISTS (SELECT 1 FROM messages WHERE role <> 'system');
    UPDATE file SET rested = 1 WHERE rest_ts IS NOT NULL;

    -- The messages, and the rest of the line.
    INSERT INTO out
    SELECT NEW.row, 10 * m.i + 3, f.session, coalesce(time_us(m ->> '$.timestamp'), f.ts),
           CASE WHEN m.fresh THEN 'message.added' ELSE 'import.record' END,
           CASE WHEN m.fresh AND NOT EXISTS (SELECT 1 FROM seen s WHERE s.id = m.id) THEN 'message.' || m.id
                ELSE NEW.hash || '.message.' || m.i END,
           CASE WHEN m.fresh THEN json_fields(
               'id', json_text(m.id), 'role', json_text(m.role), 'content', coalesce(m -> '$.content', '""'),
               'said', CASE WHEN m.role = 'user' THEN coalesce(
                   json_text(nullif(substr(coalesce(m ->> '$.displayContent[0].text', CASE json_type(m, '$.displayContent')
                       WHEN 'text' THEN m ->> '$.displayContent' ELSE m ->> '$.displayContent.text' END), 1, 100), '')),
                   said(m -> '$.content')) END,
               'model', m -> '$.model', 'turn_id', json_text(f.turn),
               'source', CASE WHEN m ->> '$.id' IS NULL THEN n.source
                         ELSE substr(n.source, 1, length(n.source) - 1) || ',"origin":' || json_text('gemini ' || m.id) || '}' END,
               'extra', json_remove(m, '$.id', '$.content', '$.model',
                       CASE WHEN json_type(m, '$.toolCalls') = 'array'
                                 AND NOT EXISTS (SELECT 1 FROM json_each(m, '$.toolCalls') x WHERE x.type <> 'object')
                            THEN '$.toolCalls' ELSE '$.content' END))
           WHEN m.owner IS NOT NULL THEN json_fields('kind', '"message"',
               'source', substr(n.source, 1, length(n.source) - 1) || ',"copied":true}', 'extra', m)
           ELSE json_fields('kind', '"message"', 'turn_id', json_text(f.turn), 'source', n.source,
                            'extra', json_remove(m, '$.content',
                       CASE WHEN json_type(m, '$.toolCalls') = 'array'
                                 AND NOT EXISTS (SELECT 1 FROM json_each(m, '$.toolCalls') x WHERE x.type <> 'object')
                            THEN '$.toolCalls' ELSE '$.content' END)) END, NEW.n, NEW.hash || '.message.' || m.i
    FROM file f, now n, messages m;
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 1000000, f.session, f.ts,
           CASE main WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END, NEW.hash || '.line',
           CASE main
           WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(n.source))
           WHEN 'set' THEN json_fields('kind', '"$set"', 'source', n.source,
                                       'extra', json_remove(j, '$."$set".messages'))
           ELSE json_fields('kind', coalesce(j -> '$.type', j -> '$.value.type', json_text((SELECT key FROM json_each(j) LIMIT 1))),
                            'turn_id', json_text(f.turn), 'source', n.source, 'extra', j) END, NEW.n
    FROM file f, now n WHERE main IN ('unreadable', 'set', 'record');

    -- Calls and their results.
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 10 * m.i + 4, f.session, coalesce(time_us(c.value ->> '$.timestamp'), f.ts), 'tool.called',
           'call.' || coalesce(c.value ->> '$.id', NEW.hash || '.' || m.i || '.' || c.key),
           json_fields('call_id', coalesce(c.value -> '$.id', json_text(NEW.hash || '.' || m.i || '.' || c.key)),
                       'tool', c.value -> '$.name', 'input', c.value -> '$.args', 'message_id', json_text(m.id),
                       'turn_id', json_text(f.turn), 'source', n.source,
                       'extra', json_remove(c.value, '$.id', '$.name', '$.args',
                           CASE WHEN c.value ->> '$.status' IN ('success', 'error', 'cancelled')
                           THEN '$.result' ELSE '$.id' END)), NEW.n
    FROM file f, now n, messages m, json_each(m.m, '$.toolCalls') c
    WHERE m.owner IS NULL AND c.type = 'object' AND NOT EXISTS (SELECT 1 FROM calls k WHERE k.id = c.value ->> '$.id');
    INSERT OR IGNORE INTO calls
    SELECT c.value ->> '$.id', 0 FROM messages m, json_each(m.m, '$.toolCalls') c
    WHERE c.type = 'object' AND c.value ->> '$.id' IS NOT NULL;
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 10 * i + 5, f.session, coalesce(time_us(c ->> '$.timestamp'), f.ts),
           CASE WHEN success THEN 'tool.returned' ELSE 'tool.failed' END,
           'result.' || coalesce(c ->> '$.id', NEW.hash || '.' || i || '.' || key),
           json_fields('call_id', coalesce(c -> '$.id', json_text(NEW.hash || '.' || i || '.' || key)),
                       'success', CASE WHEN success THEN 'true' ELSE 'false' END, 'exit_code', code,
                       'output', c -> '$.result', 'turn_id', json_text(f.turn), 'source', n.source), NEW.n
    FROM file f, now n, results
    WHERE NOT EXISTS (SELECT 1 FROM calls k WHERE k.id = c ->> '$.id' AND k.returned);
    UPDATE calls SET returned = 1
    WHERE id IN (SELECT c.value ->> '$.id' FROM messages m, json_each(m.m, '$.toolCalls') c
                 WHERE c.type = 'object' AND c.value ->> '$.status' IN ('success', 'error', 'cancelled'));

    -- Tokens of the message that were not counted before.
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 10 * i + 6, session, ts, 'agent.turn.usage',
           CASE WHEN before IS NULL THEN mid || '.usage' ELSE NEW.hash || '.usage.' || i END,
           json_fields('message_id', json_text(mid), 'model', model,
                       'input_tokens', CASE WHEN says_input THEN input - coalesce(before, 0) END,
                       'output_tokens', CASE WHEN says_output THEN output - coalesce(output_before, 0) END,
                       'cached_input_tokens', CASE WHEN says_cached THEN cached - coalesce(cached_before, 0) END,
                       'reasoning_output_tokens', thoughts,
                       'prompt_tokens', CASE WHEN before IS NOT NULL THEN input END,
                       'requests', CASE WHEN before IS NOT NULL THEN 0 END, 'turn_id', json_text(turn), 'source', source), NEW.n
    FROM (SELECT m.i, f.session, coalesce(time_us(m.m ->> '$.timestamp'), f.ts) AS ts, m.id AS mid, m.m -> '$.model' AS model,
                 CAST(coalesce(m.m ->> '$.tokens.input', 0) + coalesce(m.m ->> '$.tokens.tool', 0) AS INTEGER) AS input,
                 CAST(coalesce(m.m ->> '$.tokens.output', 0) + coalesce(m.m ->> '$.tokens.thoughts', 0) AS INTEGER)
                     AS output,
                 CAST(coalesce(m.m ->> '$.tokens.cached', 0) AS INTEGER) AS cached, m.m -> '$.tokens.thoughts' AS thoughts,
                 coalesce(m.m ->> '$.tokens.input', m.m ->> '$.tokens.tool') IS NOT NULL AS says_input,
                 coalesce(m.m ->> '$.tokens.output', m.m ->> '$.tokens.thoughts') IS NOT NULL AS says_output,
                 m.m ->> '$.tokens.cached' IS NOT NULL AS says_cached,
                 s.input AS before, s.output AS output_before, s.cached AS cached_before, f.turn, n.source
          FROM file f, now n, messages m LEFT JOIN seen s ON s.id = m.id
          WHERE m.owner IS NULL AND json_type(m.m, '$.tokens') = 'object')
    WHERE input IS NOT coalesce(before, 0) OR output IS NOT coalesce(output_before, 0);
    INSERT INTO seen
    SELECT id, coalesce(m -> '$.content', ''),
           CAST(coalesce(m ->> '$.tokens.input', 0) + coalesce(m ->> '$.tokens.tool', 0) AS INTEGER),
           CAST(coalesce(m ->> '$.tokens.output', 0) + coalesce(m ->> '$.tokens.thoughts', 0) AS INTEGER),
           CAST(coalesce(m ->> '$.tokens.cached', 0) AS INTEGER)
    FROM messages WHERE true
    ON CONFLICT (id) DO UPDATE SET content = excluded.content,
        input = CASE WHEN excluded.input > 0 THEN excluded.input ELSE input END,
        output = CASE WHEN excluded.output > 0 THEN excluded.output ELSE output END,
        cached = CASE WHEN excluded.input > 0 THEN excluded.cached ELSE cached END;
    UPDATE seen SET input = NULL, output = NULL, cached = NULL
    WHERE id IN (SELECT id FROM messages) AND input = 0 AND output = 0;
END;

-- batch
SELECT session, ts, type, id, NULL, data, n, formerly FROM out ORDER BY row, k;
DELETE FROM out;

-- end
SELECT session, rest_ts, 'turn.completed', turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(s.file), 'line', rest_n)), rest_n
FROM file, source s WHERE turn IS NOT NULL AND rest_ts IS NOT NULL;
INSERT INTO out (row, k, session, ts, type, id, data, n)
SELECT 0, 0, f.session, f.ts, 'session.updated',
       'title.' || (1 + (SELECT count(*) FROM recorded r WHERE r.session = f.session AND r.id GLOB 'title.*')),
       json_fields('set', json_fields('title', json_text(title)), 'source', json_fields('kind', json_text(kind), 'file', json_text(s.file),
                                                                                        'line', n)), n
FROM file f, source s WHERE title <> (
    SELECT coalesce(before, '') FROM (
        SELECT max(n), coalesce(r.data ->> '$.set.title', r.data ->> '$.title') AS before FROM recorded r
        WHERE r.session = f.session AND (r.type = 'session.created' OR r.id GLOB 'title.*')));
INSERT INTO out (row, k, session, ts, type, id, data, n)
SELECT 0, 1, session, ts, CASE WHEN gone THEN 'turn.rolled_back' ELSE 'turn.restored' END,
       turn || CASE WHEN gone THEN '.removed.' ELSE '.restored.' END || times,
       json_fields('turn_id', json_text(turn), 'reason', '"rewritten"', 'source', json_fields('kind', json_text(kind), 'file', json_text(file),
                                                                                            'line', n)), n
FROM (SELECT f.session, f.ts, f.n, t.turn, coalesce(u.gone, 1) AS gone, t.was_gone, t.times, t.file, s.kind
      FROM file f, source s JOIN recorded_turns t ON t.session = f.session AND t.file = s.file
      LEFT JOIN turns u ON u.turn = t.turn
      WHERE f.turns > 0 AND EXISTS (SELECT 1 FROM options WHERE name = ':whole'))
WHERE gone <> was_gone;
SELECT session, ts, type, id, NULL, data, n, NULL FROM out ORDER BY k, n;
DELETE FROM out;
