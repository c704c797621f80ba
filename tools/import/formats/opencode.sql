-- importer opencode   version 5
-- SPDX-License-Identifier: Apache-2.0
-- files: *.json opencode*.db
-- split: $.messages
-- reads: message part session_message $.messages
-- records: session session_v2 project project_directory workspace account* migration* __drizzle_migrations control_account
-- records: credential todo permission session_share session_input session_entry session_context_epoch session_pending
-- records: event event_sequence instruction_entry instruction_checkpoint instruction_blob data_migration copy
-- records: idle agent-switched model-switched location-switched
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
--  (3) A message that changed since an earlier import is added again under its id; its calls,
--      results and tokens become events once. Tokens and cost count when the message is complete.
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
--      on are rolled back. OpenCode deletes them when the user continues.

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
SELECT json_object('at', '$.messages', 'value', json_object(
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
    'info', json_set(CASE WHEN whole THEN json_remove(d, '$.content', CASE WHEN at = '$.messages' THEN '$.text' ELSE '$.content' END,
                                                      CASE WHEN s.type = 'compaction' THEN '$.summary' ELSE '$.content' END)
                     ELSE json_object('data', data) END,
        '$.id', s.id, '$.sessionID', s.session_id, '$.type', s.type, '$.seq', s.seq,
        '$.role', CASE WHEN s.type IN ('user', 'assistant') THEN s.type ELSE 'system' END,
        '$.time.created', s.created),
    'row', json_object('time_created', s.time_created, 'time_updated', s.time_updated),
    'parts', CASE WHEN at <> '$.messages' THEN NULL
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
    'info', json_set(CASE WHEN whole THEN json_remove(d, '$.content', CASE WHEN at = '$.messages' THEN '$.text' ELSE '$.content' END,
                                                      CASE WHEN s.type = 'compaction' THEN '$.summary' ELSE '$.content' END)
                     ELSE json_object('data', data) END,
        '$.id', s.id, '$.sessionID', s.session_id, '$.type', s.type, '$.seq', s.seq,
        '$.role', CASE WHEN s.type IN ('user', 'assistant') THEN s.type ELSE 'system' END,
        '$.time.created', s.created),
    'row', json_object('time_created', s.time_created, 'time_updated', s.time_updated),
    'parts', CASE WHEN at <> '$.messages' THEN NULL
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
                  ELSE '$.messages' END AS at,
             coalesce(CASE WHEN json_valid(m.data) THEN m.data ->> '$.time.created' END, m.time_created) AS created
      FROM session_message m) s JOIN (SELECT session_id, min(id) AS first FROM session_message GROUP BY 1) f USING (session_id)
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'message')
ORDER BY f.first, s.session_id, s.seq, s.id;

-- once
-- Texts that opencode adds before its user's messages. annal/import.h: said().
CREATE VIEW added (begins, ends) AS VALUES
    ('<system-reminder>', '</system-reminder>');

CREATE TABLE file (session TEXT, ts INTEGER);
INSERT INTO file SELECT session_id(stem), 1 FROM source;

CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, rest TEXT, rest_error TEXT,
                       rest_ts INTEGER, rest_n INTEGER, rested INTEGER, parent TEXT, revert TEXT,
                       reverted INTEGER) WITHOUT ROWID;
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (mid TEXT, role TEXT, source TEXT, session TEXT, ts INTEGER, turn TEXT, is_new INTEGER, main TEXT,
                  origin TEXT, owner TEXT, j TEXT, v TEXT, info TEXT);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, v, info, mid, role, source, main)
    SELECT j, j -> '$.value', j -> '$.value.info', j ->> '$.value.info.id', j ->> '$.value.info.role',
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', coalesce(j -> '$.value.info.id', j -> '$.row.id')),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' AND json_type(j, '$.value.info.id') = 'text' THEN 'meta'
                WHEN j ->> '$.table' IN ('session', 'session_v2') AND json_type(j, '$.row.id') = 'text' THEN 'row'
                WHEN j ->> '$.at' = '$.messages' AND json_type(j, '$.value.info.id') = 'text'
                     AND json_type(j, '$.value.parts') = 'array' THEN 'message'
                ELSE 'record' END
    FROM source, (SELECT NEW.json AS j);
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
    WHERE main = 'message';
    UPDATE now SET owner = nullif(record_owner(origin, session), session),
        source = substr(source, 1, length(source) - 1) || ',"origin":' || json_text(origin) || '}'
    WHERE origin IS NOT NULL;
    UPDATE now SET main = 'record', source = substr(source, 1, length(source) - 1) || ',"copied":true}'
    WHERE owner IS NOT NULL;

    INSERT INTO out
    SELECT NEW.row, 0, session, ts, 'session.created', 'session.created',
           CASE main
           WHEN 'meta' THEN json_fields(
               'id', json_text(session), 'agent_id', '"opencode"', 'provider', info -> '$.model.providerID',
               'model', info -> '$.model.id', 'status', '"idle"', 'working_directory', info -> '$.directory',
               'title', info -> '$.title', 'parent_session_id', json_text(session_id(info ->> '$.parentID')),
               'source', source, 'extra', json_remove(v, '$.info.directory', '$.info.title'))
           WHEN 'row' THEN json_fields(
               'id', json_text(session), 'agent_id', '"opencode"',
               'provider', CASE WHEN json_valid(j ->> '$.row.model') THEN j ->> '$.row.model' -> '$.providerID' END,
               'model', CASE WHEN json_valid(j ->> '$.row.model') THEN j ->> '$.row.model' -> '$.id' END, 'status', '"idle"',
               'working_directory', j -> '$.row.directory', 'title', j -> '$.row.title',
               'parent_session_id', json_text(session_id(coalesce(
                   j ->> '$.row.parent_id', j ->> '$.row.fork_session_id'))), 'source', source,
               'extra', json_remove(j, '$.row.directory', '$.row.title'))
           ELSE json_fields('id', json_text(session), 'agent_id', '"opencode"', 'status', '"idle"',
                            'source', source) END, NEW.n
    FROM now WHERE is_new;
    UPDATE now SET main = 'record' WHERE main IN ('meta', 'row') AND NOT is_new;
    INSERT OR IGNORE INTO sessions (session, turns, rested, parent, revert)
    SELECT session, 0, 0, coalesce(info ->> '$.parentID', j ->> '$.row.parent_id', j ->> '$.row.fork_session_id'),
           coalesce(info ->> '$.revert.messageID',
                    CASE WHEN json_valid(j ->> '$.row.revert') THEN j ->> '$.row.revert' ->> '$.messageID' END)
    FROM now WHERE is_new;
    INSERT INTO out
    SELECT NEW.row, 1, n.session, n.ts, 'session.updated', 'session.parent',
           json_fields('set', json_fields('parent_session_id', json_text(owner)),
                       'source', json_remove(source, '$.origin', '$.copied')), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE owner IS NOT NULL AND s.parent IS NULL;
    UPDATE sessions SET parent = coalesce(parent, (SELECT owner FROM now)),
        reverted = coalesce(reverted, (SELECT mid = revert FROM now WHERE mid = revert))
    WHERE session = (SELECT session FROM now);

    -- Turns.
    INSERT INTO out
    SELECT NEW.row, 1, n.session, CASE WHEN rest IS NOT NULL THEN rest_ts ELSE n.ts END,
           coalesce(rest, 'turn.completed'), CASE WHEN rested THEN s.turn || '.ended' ELSE mid || '.ends' END,
           json_fields('turn_id', json_text(s.turn),
                       'reason', CASE WHEN rest IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'error', CASE WHEN rest IS NOT NULL THEN rest_error END, 'source', source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE main = 'message' AND role = 'user' AND s.turn IS NOT NULL;
    UPDATE sessions SET turn = (SELECT mid FROM now), turns = turns + 1, rest = NULL, rested = 0
    WHERE session = (SELECT session FROM now WHERE main = 'message' AND role = 'user');
    INSERT INTO out
    SELECT NEW.row, 2, n.session, n.ts, 'turn.started', mid || '.begins',
           json_fields('turn_id', json_text(mid), 'sequence', s.turns, 'status', '"running"',
                       'prompt_ref', json_text(mid), 'source', source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE main = 'message' AND role = 'user';
    INSERT INTO out
    SELECT NEW.row, 5, n.session, n.ts, 'turn.rolled_back', mid || '.rolled_back',
           json_fields('turn_id', json_text(mid), 'reason', '"reverted"', 'source', source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE main = 'message' AND role = 'user' AND s.reverted;
    UPDATE sessions SET (rest, rest_error, rest_ts, rest_n) = (
        SELECT CASE WHEN json_type(info, '$.error') = 'object' THEN 'turn.failed'
                    WHEN json_type(info, '$.time.completed') = 'integer' AND info ->> '$.finish' = 'stop'
                    THEN 'turn.completed' END,
               coalesce(info -> '$.error.data.message', info -> '$.error.name', info -> '$.error'),
               CAST(coalesce(info ->> '$.time.completed', n.ts / 1000) AS INTEGER) * 1000, NEW.n
        FROM now n)
    WHERE turn = (SELECT coalesce(info ->> '$.parentID', sessions.turn) FROM now
                  WHERE main = 'message' AND role = 'assistant' AND session = sessions.session);
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
                ELSE 'import.record' END, NEW.hash || '.3',
           CASE main
           WHEN 'message' THEN json_fields(
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
           WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', coalesce(j -> '$.table', j -> '$.at', json_text(json_type(j))),
                            'source', source, 'extra', j) END, NEW.n
    FROM now WHERE main NOT IN ('meta', 'row');

    -- Tools, and the cost of an answer.
    INSERT INTO out
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
    WHERE main = 'message' AND p.type = 'object' AND p.value ->> '$.type' = 'tool';
    INSERT INTO out
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
    WHERE main = 'message' AND p.type = 'object' AND p.value ->> '$.type' = 'tool'
      AND p.value ->> '$.state.status' IN ('completed', 'error');
    INSERT INTO out
    SELECT NEW.row, 1000000, session, coalesce(CAST(info ->> '$.time.completed' AS INTEGER) * 1000, ts),
           'agent.turn.usage', mid || '.usage',
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
                       'turn_id', json_text(turn), 'source', source), NEW.n
    FROM now WHERE main = 'message' AND json_type(info, '$.tokens') = 'object'
      -- OpenCode writes 0 if its provider reports no number.
      AND (info ->> '$.tokens.input' > 0 OR info ->> '$.tokens.output' > 0 OR info ->> '$.tokens.reasoning' > 0
           OR info ->> '$.tokens.cache.read' > 0 OR info ->> '$.tokens.cache.write' > 0 OR info ->> '$.cost' > 0)
      AND (json_type(info, '$.time.completed') = 'integer'
           OR info ->> '$.type' = 'compaction' AND info ->> '$.status' <> 'running');
END;

-- batch
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY row, k;
DELETE FROM out;

-- end
SELECT session, rest_ts, rest, turn || '.ended', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"', 'error', rest_error,
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', rest_n)), rest_n
FROM sessions, source WHERE turn IS NOT NULL AND rest IS NOT NULL ORDER BY rest_n;
