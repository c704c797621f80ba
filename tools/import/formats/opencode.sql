-- importer opencode   version 6
-- SPDX-License-Identifier: Apache-2.0
-- files: *.json opencode*.db
-- split: $.messages
-- reads: message part session_message $.messages
-- records: session session_v2 project project_directory workspace account* migration* __drizzle_migrations control_account
-- records: credential todo permission session_share session_input session_entry session_context_epoch session_pending
-- records: event event_sequence instruction_entry instruction_checkpoint instruction_blob data_migration copy
-- records: idle agent-switched model-switched location-switched unfinished
-- recalls: session.created session.updated turn.started turn.rolled_back turn.restored
-- recalls: agent.turn.usage/partial.
-- places: $OPENCODE_DB $XDG_DATA_HOME/opencode/opencode*.db ~/.local/share/opencode/opencode*.db
--
-- Sessions of opencode: its database ~/.local/share/opencode/opencode.db, and the output of
-- `opencode export`: a document of info and messages, each with its parts. OpenCode 2 has the table
-- session_message instead of message and part, and session or session_v2. docs/events.md lists the
-- resulting events; annal/import.h describes the tables that an importer can read.
--
--  (1) A message with its parts is one line, in the document as in the tables message and part. The
--      session is the session in the message, else in the document.
--  (2) Texts, reasoning and files are the content of message.added; a tool part is a call, and a
--      result once its status shows one. Other parts are kept under "extra".
--  (3) OpenCode changes a message in place until its answer is complete. An answer that is not, and
--      that no other answer follows, is a record of kind unfinished: its tools that run, and its
--      tokens, become events, and the message is added once it is complete. Then, and if six hours
--      passed in the database after its last change, or an answer follows, it is a message, under
--      an id of its own: later changes are not recorded. Its tokens count as what it has at the end
--      of the import; what an earlier end counted is taken back.
--  (4) A user's message begins a turn; an answer belongs to the turn of its parent message. A
--      complete answer without a tool call ends the turn; the event is appended at the start of the
--      next turn or at the end of the log.
--  (5) opencode counts reasoning separately from output, and cached tokens separately from input.
--  (6) A row of session_message is converted to the line of (1). If a database contains a message
--      in both layouts (the same id or time, or the same text or tokens within two seconds), its
--      events are made from message and part; the id of the other row is kept as a record of kind
--      copy. A row idle ends the turn.
--  (7) A fork begins with copies of its parent's messages under new ids, which keep their times,
--      tokens and texts. A message of another session (record_owner) is a record. Sessions are
--      sorted by the id of their first message, which begins with its creation time, so a parent
--      precedes its forks.
--  (8) revert of a session names the message from which its user took it back: the turns from there
--      on are rolled back, and restored if revert is gone. OpenCode deletes them when the user
--      continues: a turn that an earlier import of the same file found, and that a whole document
--      or database lacks, is rolled back.
--  (9) The session has the title that the last import found; a name that OpenCode gives to a session
--      without a title is not a title.

-- detect
SELECT max(CASE
    WHEN json_type(json, '$.value.info.sessionID') = 'text' AND json_type(json, '$.value.parts') = 'array' THEN 95
    WHEN json ->> '$.at' = '$' AND json ->> '$.value.info.id' LIKE 'ses%' THEN 90
    WHEN json ->> '$.table' IN ('session', 'session_v2') AND json_type(json, '$.row.directory') = 'text'
         AND json_type(json, '$.row.project_id') IS NOT NULL THEN 90
    ELSE 0 END) FROM lines

-- tables
session session_v2

-- rows
SELECT json_object('at', CASE
        WHEN NOT json_valid(m.data) THEN '$.messages'
        WHEN m.data ->> '$.role' = 'assistant' AND json_type(m.data, '$.time.completed') IS NOT 'integer'
             AND json_type(m.data, '$.error') IS NOT 'object' AND NOT EXISTS (
                 SELECT 1 FROM message o WHERE o.session_id = m.session_id AND o.id > m.id AND json_valid(o.data)
                 AND o.data ->> '$.role' = 'assistant')
        THEN CASE WHEN (SELECT max(o.time_updated) FROM message o) - max(m.time_updated, coalesce(
                 (SELECT max(p.time_updated) FROM part p WHERE p.message_id = m.id), 0)) > 21600000
             THEN 'abandoned' ELSE 'unfinished' END
        ELSE '$.messages' END, 'value', json_object(
    'info', CASE WHEN json_valid(m.data) THEN json_set(m.data, '$.id', m.id, '$.sessionID', m.session_id)
            ELSE json_object('id', m.id, 'sessionID', m.session_id, 'data', m.data) END,
    'row', json_object('time_created', m.time_created, 'time_updated', m.time_updated),
    'parts', (SELECT json_group_array(json(part)) FROM (
        SELECT CASE WHEN json_valid(p.data) THEN json_set(p.data, '$.id', p.id, '$.messageID', p.message_id,
                   '$.row', json_object('time_created', p.time_created, 'time_updated', p.time_updated))
               ELSE json_object('id', p.id, 'data', p.data) END AS part
        FROM part p WHERE p.message_id = m.id ORDER BY p.id))))
FROM message m JOIN (SELECT session_id, min(id) AS first FROM message GROUP BY 1) f USING (session_id)
ORDER BY f.first, m.session_id, m.id;

-- rows
-- Both layouts: a message that message and part contain, too, is a copy.
SELECT json_object('at', CASE WHEN copy_of IS NOT NULL THEN 'copy' ELSE s.at END, 'value', CASE WHEN copy_of IS NOT NULL
    THEN json_object('info', json_object('id', s.id, 'sessionID', s.session_id, 'type', s.type, 'copy_of', copy_of,
                                         'time', json_object('created', s.created)))
    ELSE json_object(
    'info', json_set(CASE WHEN whole THEN json_remove(d, '$.content', CASE WHEN at IN ('$.messages', 'unfinished', 'abandoned') THEN '$.text' ELSE '$.content' END,
                                                      CASE WHEN s.type = 'compaction' THEN '$.summary' ELSE '$.content' END)
                     ELSE json_object('data', data) END,
        '$.id', s.id, '$.sessionID', s.session_id, '$.type', s.type, '$.seq', s.seq,
        '$.role', CASE WHEN s.type IN ('user', 'assistant') THEN s.type ELSE 'system' END,
        '$.time.created', s.created),
    'row', json_object('time_created', s.time_created, 'time_updated', s.time_updated),
    'parts', CASE WHEN at NOT IN ('$.messages', 'unfinished', 'abandoned') THEN NULL
        WHEN s.type = 'shell' THEN json_array(json_object('type', 'tool', 'tool', 'shell',
            'callID', coalesce(d ->> '$.shellID', d ->> '$.callID', s.id),
            'state', json_object('status', CASE WHEN d ->> '$.exit' <> 0 THEN 'error'
                                                WHEN d ->> '$.time.completed' > 0 THEN 'completed' ELSE 'running' END,
                                 'input', json_object('command', d -> '$.command'), 'output', d -> '$.output',
                                 'metadata', json_object('exit', d -> '$.exit'),
                                 'time', json_object('start', s.created, 'end', d -> '$.time.completed'))))
        ELSE (SELECT json_group_array(json(part)) FROM (
            SELECT 0 AS k, json_object('type', 'text', 'text', coalesce(d ->> '$.text', d ->> '$.summary')) AS part
            WHERE coalesce(d ->> '$.text', d ->> '$.summary') <> ''
            UNION ALL
            SELECT 1 + c.key, CASE WHEN c.type = 'object' AND c.value ->> '$.type' = 'tool' THEN
                json_set(json_remove(c.value, '$.id', '$.name', '$.state.content',
                                     CASE WHEN json_type(c.value, '$.state.content') IS NULL THEN '$.id' ELSE '$.state.output' END),
                    '$.callID', c.value ->> '$.id', '$.tool', c.value ->> '$.name',
                    CASE WHEN json_type(c.value, '$.state.content') IS NULL THEN '$.callID' ELSE '$.state.output' END,
                    CASE WHEN json_type(c.value, '$.state.content') IS NULL THEN c.value ->> '$.id'
                         ELSE c.value -> '$.state.content' END,
                    '$.state.time', json_object('start', coalesce(c.value ->> '$.time.ran', c.value ->> '$.time.created'),
                                                'end', c.value ->> '$.time.completed'))
                ELSE json_quote(json(c.value)) END
            FROM json_each(CASE WHEN json_type(d, '$.content') = 'array' THEN d -> '$.content' ELSE '[]' END) c
            ORDER BY k)) END) END)
FROM (SELECT m.*, (SELECT min(o.id) FROM message o WHERE o.session_id = m.session_id
                 AND (o.id = m.id OR o.time_created BETWEEN m.time_created - 2000 AND m.time_created + 2000)
                 AND json_valid(o.data) AND json_valid(m.data) AND o.data ->> '$.role' = m.type
                 AND (o.id = m.id OR o.data ->> '$.time.created' = m.data ->> '$.time.created'
                      OR o.data -> '$.tokens.output' = m.data -> '$.tokens.output'
                         AND o.data -> '$.tokens.input' = m.data -> '$.tokens.input'
                      OR m.data ->> '$.text' = (SELECT group_concat(t, char(10)) FROM (
                             SELECT p.data ->> '$.text' AS t FROM part p WHERE p.message_id = o.id
                             AND json_valid(p.data) AND p.data ->> '$.type' = 'text' ORDER BY p.id)))) AS copy_of,
             json_valid(m.data) AND json_type(CASE WHEN json_valid(m.data) THEN m.data ELSE '0' END) = 'object' AS whole,
             CASE WHEN json_valid(m.data) THEN m.data ELSE '{}' END AS d,
             CASE WHEN m.type IN ('idle', 'agent-switched', 'model-switched', 'location-switched') THEN m.type
                  WHEN json_valid(m.data) AND (m.type = 'assistant' AND json_type(m.data, '$.time.completed') IS NOT 'integer'
                           AND json_type(m.data, '$.error') IS NOT 'object'
                       OR m.type = 'compaction' AND m.data ->> '$.status' = 'running')
                       AND NOT EXISTS (SELECT 1 FROM session_message o WHERE o.session_id = m.session_id
                                       AND (o.seq, o.id) > (m.seq, m.id) AND o.type IN ('assistant', 'idle'))
                  THEN CASE WHEN (SELECT max(o.time_updated) FROM session_message o) - m.time_updated > 21600000
                       THEN 'abandoned' ELSE 'unfinished' END
                  ELSE '$.messages' END AS at,
             coalesce(CASE WHEN json_valid(m.data) THEN m.data ->> '$.time.created' END, m.time_created) AS created
      FROM session_message m) s JOIN (SELECT session_id, min(id) AS first FROM session_message GROUP BY 1) f USING (session_id)
ORDER BY f.first, s.session_id, s.seq, s.id;

-- rows
-- Only OpenCode 2.
SELECT json_object('at', CASE WHEN copy_of IS NOT NULL THEN 'copy' ELSE s.at END, 'value', CASE WHEN copy_of IS NOT NULL
    THEN json_object('info', json_object('id', s.id, 'sessionID', s.session_id, 'type', s.type, 'copy_of', copy_of,
                                         'time', json_object('created', s.created)))
    ELSE json_object(
    'info', json_set(CASE WHEN whole THEN json_remove(d, '$.content', CASE WHEN at IN ('$.messages', 'unfinished', 'abandoned') THEN '$.text' ELSE '$.content' END,
                                                      CASE WHEN s.type = 'compaction' THEN '$.summary' ELSE '$.content' END)
                     ELSE json_object('data', data) END,
        '$.id', s.id, '$.sessionID', s.session_id, '$.type', s.type, '$.seq', s.seq,
        '$.role', CASE WHEN s.type IN ('user', 'assistant') THEN s.type ELSE 'system' END,
        '$.time.created', s.created),
    'row', json_object('time_created', s.time_created, 'time_updated', s.time_updated),
    'parts', CASE WHEN at NOT IN ('$.messages', 'unfinished', 'abandoned') THEN NULL
        WHEN s.type = 'shell' THEN json_array(json_object('type', 'tool', 'tool', 'shell',
            'callID', coalesce(d ->> '$.shellID', d ->> '$.callID', s.id),
            'state', json_object('status', CASE WHEN d ->> '$.exit' <> 0 THEN 'error'
                                                WHEN d ->> '$.time.completed' > 0 THEN 'completed' ELSE 'running' END,
                                 'input', json_object('command', d -> '$.command'), 'output', d -> '$.output',
                                 'metadata', json_object('exit', d -> '$.exit'),
                                 'time', json_object('start', s.created, 'end', d -> '$.time.completed'))))
        ELSE (SELECT json_group_array(json(part)) FROM (
            SELECT 0 AS k, json_object('type', 'text', 'text', coalesce(d ->> '$.text', d ->> '$.summary')) AS part
            WHERE coalesce(d ->> '$.text', d ->> '$.summary') <> ''
            UNION ALL
            SELECT 1 + c.key, CASE WHEN c.type = 'object' AND c.value ->> '$.type' = 'tool' THEN
                json_set(json_remove(c.value, '$.id', '$.name', '$.state.content',
                                     CASE WHEN json_type(c.value, '$.state.content') IS NULL THEN '$.id' ELSE '$.state.output' END),
                    '$.callID', c.value ->> '$.id', '$.tool', c.value ->> '$.name',
                    CASE WHEN json_type(c.value, '$.state.content') IS NULL THEN '$.callID' ELSE '$.state.output' END,
                    CASE WHEN json_type(c.value, '$.state.content') IS NULL THEN c.value ->> '$.id'
                         ELSE c.value -> '$.state.content' END,
                    '$.state.time', json_object('start', coalesce(c.value ->> '$.time.ran', c.value ->> '$.time.created'),
                                                'end', c.value ->> '$.time.completed'))
                ELSE json_quote(json(c.value)) END
            FROM json_each(CASE WHEN json_type(d, '$.content') = 'array' THEN d -> '$.content' ELSE '[]' END) c
            ORDER BY k)) END) END)
FROM (SELECT m.*, NULL AS copy_of,
             json_valid(m.data) AND json_type(CASE WHEN json_valid(m.data) THEN m.data ELSE '0' END) = 'object' AS whole,
             CASE WHEN json_valid(m.data) THEN m.data ELSE '{}' END AS d,
             CASE WHEN m.type IN ('idle', 'agent-switched', 'model-switched', 'location-switched') THEN m.type
                  WHEN json_valid(m.data) AND (m.type = 'assistant' AND json_type(m.data, '$.time.completed') IS NOT 'integer'
                           AND json_type(m.data, '$.error') IS NOT 'object'
                       OR m.type = 'compaction' AND m.data ->> '$.status' = 'running')
                       AND NOT EXISTS (SELECT 1 FROM session_message o WHERE o.session_id = m.session_id
                                       AND (o.seq, o.id) > (m.seq, m.id) AND o.type IN ('assistant', 'idle'))
                  THEN CASE WHEN (SELECT max(o.time_updated) FROM session_message o) - m.time_updated > 21600000
                       THEN 'abandoned' ELSE 'unfinished' END
                  ELSE '$.messages' END AS at,
             coalesce(CASE WHEN json_valid(m.data) THEN m.data ->> '$.time.created' END, m.time_created) AS created
      FROM session_message m) s JOIN (SELECT session_id, min(id) AS first FROM session_message GROUP BY 1) f USING (session_id)
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'message')
ORDER BY f.first, s.session_id, s.seq, s.id;

-- copies
ids: SELECT session_id(id), id FROM session
ids: SELECT session_id(id), id FROM session_v2
session: id IN ids
session_v2: id IN ids
project: id IN (SELECT project_id FROM session WHERE id IN ids)
project: id IN (SELECT project_id FROM session_v2 WHERE id IN ids)
migration: 1
data_migration: 1
__drizzle_migrations: 1
*: session_id IN ids
*: aggregate_id IN ids

-- once
-- Texts that opencode adds before its user's messages. annal/import.h: said().
CREATE VIEW added (begins, ends) AS VALUES
    ('<system-reminder>', '</system-reminder>');

-- Names that OpenCode gives to sessions without a title.
CREATE VIEW unnamed (pattern) AS VALUES
    ('New session - [0-9][0-9][0-9][0-9]-*T*Z'), ('Child session - [0-9][0-9][0-9][0-9]-*T*Z'), ('');

CREATE TABLE file (session TEXT, ts INTEGER);
INSERT INTO file SELECT session_id(stem), 1 FROM source;

CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, rest TEXT, rest_error TEXT,
                       rest_ts INTEGER, rest_n INTEGER, rested INTEGER, parent TEXT, revert TEXT,
                       reverted INTEGER, title TEXT, changed INTEGER, line TEXT, line_n INTEGER) WITHOUT ROWID;
-- The turns of each session; gone: it is rolled back.
CREATE TABLE turns (session TEXT, turn TEXT, gone INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
-- The tokens of answers that are not complete, as the data of their event.
CREATE TABLE partial (session TEXT, mid TEXT, ts INTEGER, data TEXT, n INTEGER, PRIMARY KEY (session, mid)) WITHOUT ROWID;
-- The messages that are complete.
CREATE TABLE answers (session TEXT, mid TEXT, PRIMARY KEY (session, mid)) WITHOUT ROWID;
CREATE VIEW counted AS
SELECT session, data ->> '$.message_id' AS mid, max(ts) AS ts, data, count(*) AS times, sum(data ->> '$.input_tokens') AS input,
       sum(data ->> '$.output_tokens') AS output, sum(data ->> '$.cached_input_tokens') AS cached,
       sum(data ->> '$.cache_write_tokens') AS written, sum(data ->> '$.reasoning_output_tokens') AS reasoning,
       sum(coalesce(data ->> '$.cost_usd', 0)) AS cost, sum(data ->> '$.requests') AS requests
FROM recorded WHERE id GLOB 'partial.*' GROUP BY session, data ->> '$.message_id';
-- An unfinished answer of a document, until the next message shows that it stays so.
CREATE TABLE held (session TEXT, ts INTEGER, id TEXT, data TEXT, n INTEGER);
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER, formerly TEXT);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (mid TEXT, role TEXT, source TEXT, session TEXT, ts INTEGER, turn TEXT, is_new INTEGER, main TEXT,
                  origin TEXT, owner TEXT, complete INTEGER, j TEXT, v TEXT, info TEXT);

-- A message that waits, by the rowid of its event.
CREATE TABLE waits (event INTEGER, mid TEXT);
CREATE TRIGGER wait AFTER INSERT ON waits BEGIN
    INSERT INTO held SELECT session, ts, NEW.mid || '.message', data, n FROM out WHERE rowid = NEW.event;
    UPDATE out SET data = (SELECT json_fields('kind', '"unfinished"', 'source', source, 'extra', j) FROM now) WHERE rowid = NEW.event;
    DELETE FROM waits;
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, v, info, mid, role, source, complete, main)
    SELECT j, j -> '$.value', j -> '$.value.info', j ->> '$.value.info.id', j ->> '$.value.info.role',
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', coalesce(j -> '$.value.info.id', j -> '$.row.id')),
           complete,
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN at = '$' AND json_type(j, '$.value.info.id') = 'text' THEN 'meta'
                WHEN j ->> '$.table' IN ('session', 'session_v2') AND json_type(j, '$.row.id') = 'text' THEN 'row'
                WHEN at IN ('$.messages', 'unfinished', 'abandoned') AND json_type(j, '$.value.info.id') = 'text'
                     AND json_type(j, '$.value.parts') = 'array'
                THEN CASE WHEN at = 'unfinished' OR NOT complete AND container = 'document' THEN 'unfinished' ELSE 'message' END
                ELSE 'record' END
    FROM source, (SELECT NEW.json AS j, NEW.json ->> '$.at' AS at,
                         json_type(NEW.json, '$.value.info.time.completed') IS 'integer'
                         OR coalesce(json_type(NEW.json, '$.value.info.error'), 'null') <> 'null'
                         OR coalesce(NEW.json ->> '$.value.info.role', '') <> 'assistant' AS complete);
    UPDATE file SET session = coalesce(session_id((SELECT CASE main WHEN 'meta' THEN mid
                                                   WHEN 'row' THEN j ->> '$.row.id' END FROM now)), session);
    UPDATE now SET
        session = coalesce(session_id(coalesce(info ->> '$.sessionID', j ->> '$.row.session_id',
                                               j ->> '$.row.sessionID')), (SELECT session FROM file)),
        ts = CAST(coalesce(info ->> '$.time.created', j ->> '$.row.time_created', 0) AS INTEGER) * 1000;
    UPDATE file SET ts = CASE WHEN (SELECT ts FROM now) > 0 THEN (SELECT ts FROM now) ELSE ts END;
    UPDATE now SET ts = (SELECT ts FROM file) WHERE ts <= 0;
    UPDATE now SET is_new = NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = now.session);

    -- Rule (7). An incomplete message has no identity yet.
    UPDATE now SET origin = 'opencode ' || CASE WHEN role = 'system' THEN coalesce(info ->> '$.type', role) ELSE role END
        || ' ' || (info ->> '$.time.created') || ' ' || CASE role
        WHEN 'assistant' THEN (info ->> '$.time.completed') || coalesce(' ' || (info ->> '$.tokens.output'), '')
        ELSE coalesce((SELECT substr(p.value ->> '$.text', 1, 100) FROM json_each(v, '$.parts') p
                       WHERE p.value ->> '$.type' = 'text' LIMIT 1), '') END
    WHERE main IN ('message', 'unfinished');
    UPDATE now SET owner = nullif(record_owner(origin, session), session),
        source = substr(source, 1, length(source) - 1) || ',"origin":' || json_text(origin) || '}'
    WHERE origin IS NOT NULL;
    UPDATE now SET main = 'record', source = substr(source, 1, length(source) - 1) || ',"copied":true}'
    WHERE owner IS NOT NULL;

    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, session, ts, 'session.created', 'session.created',
           CASE main
           WHEN 'meta' THEN json_fields(
               'id', json_text(session), 'agent_id', '"opencode"', 'provider', info -> '$.model.providerID',
               'model', info -> '$.model.id', 'status', '"idle"', 'working_directory', info -> '$.directory',
               'title', CASE WHEN NOT EXISTS (SELECT 1 FROM unnamed WHERE info ->> '$.title' GLOB pattern) THEN info -> '$.title' END,
               'parent_session_id', json_text(session_id(info ->> '$.parentID')),
               'source', source, 'extra', json_remove(v, '$.info.directory', '$.info.title'))
           WHEN 'row' THEN json_fields(
               'id', json_text(session), 'agent_id', '"opencode"',
               'provider', CASE WHEN json_valid(j ->> '$.row.model') THEN j ->> '$.row.model' -> '$.providerID' END,
               'model', CASE WHEN json_valid(j ->> '$.row.model') THEN j ->> '$.row.model' -> '$.id' END, 'status', '"idle"',
               'working_directory', j -> '$.row.directory',
               'title', CASE WHEN NOT EXISTS (SELECT 1 FROM unnamed WHERE j ->> '$.row.title' GLOB pattern) THEN j -> '$.row.title' END,
               'parent_session_id', json_text(session_id(coalesce(
                   j ->> '$.row.parent_id', j ->> '$.row.fork_session_id'))), 'source', source,
               'extra', json_remove(j, '$.row.directory', '$.row.title'))
           ELSE json_fields('id', json_text(session), 'agent_id', '"opencode"', 'status', '"idle"',
                            'source', source) END, NEW.n
    FROM now WHERE is_new;
    UPDATE now SET main = 'record' WHERE main IN ('meta', 'row') AND NOT is_new;
    INSERT OR IGNORE INTO sessions (session, turns, rested, title, changed, line, line_n, parent, revert)
    SELECT session, 0, 0, coalesce(info ->> '$.title', j ->> '$.row.title'),
           1000 * CAST(coalesce(info ->> '$.time.updated', j ->> '$.row.time_updated', 0) AS INTEGER), source, NEW.n, coalesce(info ->> '$.parentID', j ->> '$.row.parent_id', j ->> '$.row.fork_session_id'),
           coalesce(info ->> '$.revert.messageID',
                    CASE WHEN json_valid(j ->> '$.row.revert') THEN j ->> '$.row.revert' ->> '$.messageID' END)
    FROM now WHERE is_new;
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, h.session, h.ts, 'message.added', h.id, h.data, NEW.n FROM held h, now
    WHERE h.session = now.session AND main IN ('message', 'unfinished');
    DELETE FROM held WHERE session = (SELECT session FROM now WHERE main IN ('message', 'unfinished'));
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 1, n.session, n.ts, 'session.updated', 'session.parent',
           json_fields('set', json_fields('parent_session_id', json_text(owner)),
                       'source', json_remove(source, '$.origin', '$.copied')), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE owner IS NOT NULL AND s.parent IS NULL;
    UPDATE sessions SET parent = coalesce(parent, (SELECT owner FROM now)),
        reverted = coalesce(reverted, (SELECT mid = revert FROM now WHERE mid = revert))
    WHERE session = (SELECT session FROM now);

    -- Turns.
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 1, n.session, CASE WHEN rest IS NOT NULL THEN rest_ts ELSE n.ts END,
           coalesce(rest, 'turn.completed'), CASE WHEN rested THEN s.turn || '.ended' ELSE mid || '.ends' END,
           json_fields('turn_id', json_text(s.turn),
                       'reason', CASE WHEN rest IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'error', CASE WHEN rest IS NOT NULL THEN rest_error END, 'source', source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE main = 'message' AND role = 'user' AND s.turn IS NOT NULL;
    UPDATE sessions SET turn = (SELECT mid FROM now), turns = turns + 1, rest = NULL, rested = 0
    WHERE session = (SELECT session FROM now WHERE main = 'message' AND role = 'user');
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 2, n.session, n.ts, 'turn.started', mid || '.begins',
           json_fields('turn_id', json_text(mid), 'sequence', s.turns, 'status', '"running"',
                       'prompt_ref', json_text(mid), 'source', source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE main = 'message' AND role = 'user';
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 5, n.session, n.ts, 'turn.rolled_back', mid || '.rolled_back',
           json_fields('turn_id', json_text(mid), 'reason', '"reverted"', 'source', source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE main = 'message' AND role = 'user' AND s.reverted;
    UPDATE sessions SET (rest, rest_error, rest_ts, rest_n) = (
        SELECT CASE WHEN info ->> '$.error.name' = 'MessageAbortedError' OR info ->> '$.error.type' = 'aborted' THEN 'turn.cancelled'
                    WHEN json_type(info, '$.error') = 'object' THEN 'turn.failed'
                    WHEN json_type(info, '$.time.completed') = 'integer' AND info ->> '$.finish' = 'stop'
                    THEN 'turn.completed' END,
               coalesce(info -> '$.error.data.message', info -> '$.error.name', info -> '$.error'),
               CAST(coalesce(info ->> '$.time.completed', n.ts / 1000) AS INTEGER) * 1000, NEW.n
        FROM now n)
    WHERE turn = (SELECT coalesce(info ->> '$.parentID', sessions.turn) FROM now
                  WHERE main IN ('message', 'unfinished') AND role = 'assistant' AND session = sessions.session);
    UPDATE sessions SET (rest, rest_error, rest_ts, rest_n) = (
        SELECT CASE info ->> '$.outcome' WHEN 'failed' THEN 'turn.failed' WHEN 'interrupted' THEN 'turn.cancelled'
               ELSE 'turn.completed' END, sessions.rest_error, n.ts, NEW.n FROM now n)
    WHERE turn IS NOT NULL AND session = (SELECT session FROM now WHERE j ->> '$.at' = 'idle');
    UPDATE sessions SET rested = 1 WHERE rest IS NOT NULL AND session = (SELECT session FROM now);
    UPDATE now SET turn = coalesce(info ->> '$.parentID',
                                   (SELECT s.turn FROM sessions s WHERE s.session = now.session));

    -- The event that contains the line.
    INSERT INTO out
    SELECT NEW.row, 3, session, ts,
           CASE main WHEN 'message' THEN 'message.added' WHEN 'unreadable' THEN 'import.unreadable'
                ELSE 'import.record' END,
           -- The parts of a prompt are written after it.
           CASE WHEN main = 'message' AND (complete AND (role <> 'user' OR json_type(v, '$.parts[0]') IS NOT NULL)
                                           OR NOT complete AND j ->> '$.at' = '$.messages') THEN mid || '.message'
                WHEN main = 'unfinished' THEN mid || '.unfinished' ELSE NEW.hash || '.3' END,
           CASE WHEN main = 'message' OR main = 'unfinished' AND j ->> '$.at' = '$.messages' THEN json_fields(
               'id', json_text(mid), 'role', json_text(coalesce(role, 'assistant')),
               'content', (SELECT json_group_array(json(p.value)) FROM json_each(v, '$.parts') p
                           WHERE p.value ->> '$.type' IN ('text', 'reasoning', 'file')),
               'said', CASE WHEN role = 'user' THEN said(
                   (SELECT json_group_array(json(p.value)) FROM json_each(v, '$.parts') p
                    WHERE p.value ->> '$.type' = 'text')) END,
               'model', coalesce(info -> '$.modelID', info -> '$.model.modelID', info -> '$.model.id'), 'turn_id', json_text(turn),
               'source', source,
               'extra', json_set(json_remove(v, '$.info.id', '$.info.role'), '$.parts',
                   (SELECT json_group_array(json(p.value)) FROM json_each(v, '$.parts') p
                    WHERE p.type <> 'object' OR p.value ->> '$.type' IS NULL
                       OR p.value ->> '$.type' NOT IN ('text', 'reasoning', 'file', 'tool'))))
           WHEN main = 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', coalesce(j -> '$.table', j -> '$.at', json_text(json_type(j))),
                            'source', source, 'extra', j) END, NEW.n,
           CASE WHEN main = 'message' THEN NEW.hash || '.3' END
    FROM now WHERE main NOT IN ('meta', 'row');
    INSERT INTO waits SELECT last_insert_rowid(), mid FROM now WHERE main = 'unfinished' AND j ->> '$.at' = '$.messages';

    -- Tools, and the cost of an answer.
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 10 + 2 * p.key, session,
           coalesce(CAST(p.value ->> '$.state.time.start' AS INTEGER) * 1000, ts), 'tool.called',
           'call.' || coalesce(p.value ->> '$.callID', p.value ->> '$.id', NEW.hash || p.key),
           json_fields('call_id', coalesce(p.value -> '$.callID', p.value -> '$.id', json_text(NEW.hash || p.key)),
                       'tool', p.value -> '$.tool', 'input', p.value -> '$.state.input', 'message_id', json_text(mid),
                       'turn_id', json_text(turn), 'source', source,
                       'extra', json_remove(p.value, '$.callID', '$.tool', '$.state.input',
                           CASE WHEN coalesce(p.value ->> '$.state.status', '') NOT IN ('completed', 'error') THEN '$.tool'
                                WHEN json_type(p.value, '$.state.output') IS NULL THEN '$.state.error'
                                ELSE '$.state.output' END)), NEW.n
    FROM now, json_each(v, '$.parts') p
    WHERE (main = 'message' OR main = 'unfinished' AND coalesce(p.value ->> '$.state.status', '') <> 'pending')
      AND p.type = 'object' AND p.value ->> '$.type' = 'tool';
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 11 + 2 * p.key, session,
           coalesce(CAST(p.value ->> '$.state.time.end' AS INTEGER) * 1000, ts),
           CASE WHEN p.value ->> '$.state.status' = 'error' OR p.value ->> '$.state.metadata.exit' <> 0
                THEN 'tool.failed' ELSE 'tool.returned' END,
           'result.' || coalesce(p.value ->> '$.callID', p.value ->> '$.id', NEW.hash || p.key),
           json_fields('call_id', coalesce(p.value -> '$.callID', p.value -> '$.id', json_text(NEW.hash || p.key)),
                       'success', CASE WHEN p.value ->> '$.state.status' = 'error' OR p.value ->> '$.state.metadata.exit' <> 0
                                       THEN 'false' ELSE 'true' END,
                       'output', coalesce(p.value -> '$.state.output', p.value -> '$.state.error'),
                       'exit_code', p.value -> '$.state.metadata.exit',
                       'duration_ms', p.value ->> '$.state.time.end' - p.value ->> '$.state.time.start',
                       'turn_id', json_text(turn), 'source', source), NEW.n
    FROM now, json_each(v, '$.parts') p
    WHERE main IN ('message', 'unfinished') AND p.type = 'object' AND p.value ->> '$.type' = 'tool'
      AND p.value ->> '$.state.status' IN ('completed', 'error');
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 1000000, session, coalesce(CAST(info ->> '$.time.completed' AS INTEGER) * 1000, ts),
           'agent.turn.usage', CASE WHEN complete THEN mid || '.usage' ELSE 'partial.' || mid END,
           json_fields('message_id', json_text(mid), 'model', coalesce(info -> '$.modelID', info -> '$.model.id'),
                       'input_tokens', CASE WHEN coalesce(info ->> '$.tokens.input', info ->> '$.tokens.cache.read',
                                                          info ->> '$.tokens.cache.write') IS NOT NULL
                           THEN CAST(coalesce(info ->> '$.tokens.input', 0) + coalesce(info ->> '$.tokens.cache.read', 0)
                                     + coalesce(info ->> '$.tokens.cache.write', 0) AS INTEGER) END,
                       'output_tokens', CASE WHEN coalesce(info ->> '$.tokens.output', info ->> '$.tokens.reasoning') IS NOT NULL
                           THEN CAST(coalesce(info ->> '$.tokens.output', 0) + coalesce(info ->> '$.tokens.reasoning', 0)
                                     AS INTEGER) END,
                       'cached_input_tokens', info -> '$.tokens.cache.read',
                       'cache_write_tokens', info -> '$.tokens.cache.write',
                       'reasoning_output_tokens', info -> '$.tokens.reasoning',
                       -- 0: the model has no price, or a subscription pays.
                       'cost_usd', CASE WHEN info ->> '$.cost' > 0 THEN info -> '$.cost' END,
                       'requests', CASE WHEN steps > 1 THEN steps END, 'prompt_tokens', CASE WHEN steps > 1 THEN -1 END,
                       'turn_id', json_text(turn), 'source', source), NEW.n
    -- Before opencode made a message of each step, a message had the tokens of its last step.
    FROM (SELECT main, session, ts, complete, mid, turn, source, steps,
                 CASE WHEN steps > 1 THEN json_set(info, '$.tokens', (
                     SELECT json_object('input', sum(p.value ->> '$.tokens.input'), 'output', sum(p.value ->> '$.tokens.output'),
                                        'reasoning', sum(p.value ->> '$.tokens.reasoning'),
                                        'cache', json_object('read', sum(p.value ->> '$.tokens.cache.read'), 'write', sum(p.value ->> '$.tokens.cache.write')))
                     FROM json_each(v, '$.parts') p WHERE p.type = 'object' AND p.value ->> '$.type' = 'step-finish')) ELSE info END AS info
          FROM (SELECT n.*, (SELECT count(*) FROM json_each(n.v, '$.parts') p
                             WHERE p.type = 'object' AND p.value ->> '$.type' = 'step-finish' AND json_type(p.value, '$.tokens') = 'object') AS steps
                FROM now n))
    WHERE main IN ('message', 'unfinished') AND json_type(info, '$.tokens') = 'object'
      -- OpenCode writes 0 if its provider reports no number.
      AND (info ->> '$.tokens.input' > 0 OR info ->> '$.tokens.output' > 0 OR info ->> '$.tokens.reasoning' > 0
           OR info ->> '$.tokens.cache.read' > 0 OR info ->> '$.tokens.cache.write' > 0 OR info ->> '$.cost' > 0)
      AND (coalesce(info ->> '$.type', '') <> 'compaction' OR info ->> '$.status' <> 'running'
           OR json_type(info, '$.time.completed') = 'integer');
END;

-- batch
INSERT OR IGNORE INTO turns SELECT session, data ->> '$.turn_id', 0 FROM out WHERE type = 'turn.started';
INSERT OR REPLACE INTO turns SELECT session, data ->> '$.turn_id', 1 FROM out WHERE type = 'turn.rolled_back';
INSERT OR IGNORE INTO answers SELECT session, substr(id, 1, length(id) - 8) FROM out WHERE type = 'message.added' AND id GLOB '*.message';
INSERT OR REPLACE INTO partial SELECT session, substr(id, 9), ts, data, n FROM out WHERE id GLOB 'partial.*';
DELETE FROM out WHERE id GLOB 'partial.*';
SELECT session, ts, type, id, NULL, data, n, formerly FROM out ORDER BY row, k;
DELETE FROM out;

-- end
-- What changed since an earlier import: the title, the turns that are rolled back, and the tokens of
-- answers that are not complete.
INSERT INTO out (row, k, session, ts, type, id, data, n)
SELECT 0, 0, session, max(changed, 1), 'session.updated', 'title.' || (1 + times),
       json_fields('set', json_fields('title', json_text(title)), 'source', line), line_n
FROM (SELECT s.*, (SELECT count(*) FROM recorded r WHERE r.session = s.session AND r.id GLOB 'title.*') AS times, (
          SELECT title FROM (
              SELECT max(r.n), coalesce(r.data ->> '$.set.title', r.data ->> '$.title', '') AS title FROM recorded r
              WHERE r.session = s.session AND (r.type = 'session.created' OR r.id GLOB 'title.*'))) AS before
      FROM sessions s)
WHERE title <> before AND NOT EXISTS (SELECT 1 FROM unnamed WHERE title GLOB pattern);
INSERT INTO out (row, k, session, ts, type, id, data, n)
SELECT 0, 1, session, max(changed, 1), CASE WHEN gone THEN 'turn.rolled_back' ELSE 'turn.restored' END,
       turn || CASE WHEN gone THEN '.rolled_back.' ELSE '.restored.' END || times,
       json_fields('turn_id', json_text(turn), 'reason', CASE WHEN gone THEN '"reverted"' ELSE '"unreverted"' END, 'source', line), line_n
FROM (SELECT s.session, s.changed, s.line, s.line_n, t.turn, coalesce(u.gone, 1) AS gone, t.was_gone, t.times
      FROM sessions s JOIN recorded_turns t USING (session)
      LEFT JOIN turns u ON u.session = t.session AND u.turn = t.turn
      WHERE u.turn IS NOT NULL OR s.turns > 0 AND t.file = (SELECT file FROM source) AND EXISTS (SELECT 1 FROM options WHERE name = ':whole'))
WHERE gone <> was_gone;
INSERT INTO out (row, k, session, ts, type, id, data, n)
SELECT 0, 2, session, ts, 'agent.turn.usage', 'partial.' || mid || '.' || times,
       json_remove(json_set(data, '$.input_tokens', input, '$.output_tokens', output, '$.cached_input_tokens', cached,
                            '$.cache_write_tokens', written, '$.reasoning_output_tokens', reasoning, '$.cost_usd', cost,
                            '$.prompt_tokens', 0, '$.requests', requests),
                   CASE WHEN times = 0 THEN '$.prompt_tokens' ELSE '$.none' END, '$.source.origin', CASE cost WHEN 0 THEN '$.cost_usd' ELSE '$.none' END), n
FROM (SELECT k.session, k.mid, coalesce(p.ts, c.ts) AS ts, coalesce(p.data, c.data) AS data, coalesce(p.n, s.line_n) AS n,
             coalesce(c.times, 0) AS times, coalesce(p.data ->> '$.input_tokens', 0) - coalesce(c.input, 0) AS input,
             coalesce(p.data ->> '$.output_tokens', 0) - coalesce(c.output, 0) AS output,
             coalesce(p.data ->> '$.cached_input_tokens', 0) - coalesce(c.cached, 0) AS cached,
             coalesce(p.data ->> '$.cache_write_tokens', 0) - coalesce(c.written, 0) AS written,
             coalesce(p.data ->> '$.reasoning_output_tokens', 0) - coalesce(c.reasoning, 0) AS reasoning,
             round(coalesce(p.data ->> '$.cost_usd', 0) - coalesce(c.cost, 0), 9) AS cost,
             (p.data IS NOT NULL) - coalesce(c.requests, 0) AS requests
      FROM (SELECT session, mid FROM partial UNION SELECT session, mid FROM counted) k LEFT JOIN partial p USING (session, mid)
      LEFT JOIN counted c USING (session, mid) LEFT JOIN sessions s USING (session)
      WHERE p.data IS NOT NULL OR EXISTS (SELECT 1 FROM answers a WHERE a.session = k.session AND a.mid = k.mid))
WHERE input <> 0 OR output <> 0 OR cached <> 0 OR written <> 0 OR cost <> 0;
SELECT session, ts, type, id, NULL, data, n, NULL FROM out ORDER BY k, n;
DELETE FROM out;
SELECT session, rest_ts, rest, turn || '.ended', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"', 'error', rest_error,
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', rest_n)), rest_n
FROM sessions, source WHERE turn IS NOT NULL AND rest IS NOT NULL ORDER BY rest_n;
