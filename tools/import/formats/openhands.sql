-- importer openhands   version 3
-- SPDX-License-Identifier: Apache-2.0
-- records: PauseEvent message state recall* agent_state_changed change_agent_state run null head *StateUpdateEvent
-- files: *.json *.jsonl
-- recalls: turn.started turn.rolled_back turn.restored
-- directory: base_state.json events/event-*.json event-*.json
-- split: $
-- places: $OPENHANDS_CONVERSATIONS_DIR $OPENHANDS_PERSISTENCE_DIR/conversations ~/.openhands/conversations
--
-- Conversations of OpenHands: a directory with a file for each event (and base_state.json), an
-- array of events as older versions save them, and the output.jsonl of evaluations, whose lines are
-- whole runs. docs/events.md lists the resulting events; annal/import.h describes the tables that
-- an importer can read.
--
--  (1) The session is the conversation's id in base_state.json, the instance of a run, else the
--      directory or file. Times without a zone are in the
--      zone of the reader (TZ, --zone), or in the zone of --map timezone=+02:00.
--  (2) Events of both generations are read: with kind (MessageEvent, ActionEvent, ObservationEvent,
--      …), and with action or observation. A tool action is tool.called, and the thought before it
--      message.added; observations are results.
--  (3) Tokens are stored outside the events, in the state and in the metrics of a run, as lists of
--      uses; each use becomes an event once, by the id of its response. Without such a list the
--      tokens of the responses that the events repeat (tool_call_metadata.model_response) are used,
--      once each.
--  (4) The first event of a line contains the rest of the line under "extra". If event numbers are
--      missing in a directory, the next event records it (gap_before).
--  (5) A session that begins before any time is known receives its created_at in a session.updated,
--      at the first event with a time.
--  (6) A conversation that was saved twice, or continued under another name, has events of another
--      session: events with the same id and time, and tokens with the same id of the response
--      (record_owner). These events, and the results of their calls, are import.record;
--      parent_session_id names that session.
--  (7) A command that ended with an exit code other than 0, and an observation without success, have
--      failed.
--  (8) A user's message begins a turn. A turn that a document lacks, which an earlier state of it had,
--      is rolled back.

-- detect
SELECT max(CASE
    WHEN json_type(v, '$.kind') = 'text' AND v ->> '$.kind' LIKE '%Event' AND json_type(v, '$.source') = 'text' THEN 95
    WHEN json_type(v, '$.source') = 'text' AND json_type(v, '$.timestamp') = 'text'
         AND (json_type(v, '$.action') = 'text' OR json_type(v, '$.observation') = 'text') THEN 85
    WHEN json_type(v, '$.instance_id') = 'text' AND json_type(v, '$.history') = 'array'
         AND json_type(v, '$.metadata.agent_class') IS NOT NULL THEN 90
    WHEN json ->> '$.file' = 'base_state.json' THEN 60
    ELSE 0 END)
FROM (SELECT json, coalesce(json -> '$.value', json) AS v FROM lines)

-- once
-- Texts that OpenHands adds before its user's messages. annal/import.h: said().
CREATE VIEW added (begins, ends) AS VALUES
    ('<RUNTIME_INFORMATION>', '</RUNTIME_INFORMATION>'),
    ('<REPOSITORY_INFO>', '</REPOSITORY_INFO>'),
    ('<REPOSITORY_INSTRUCTIONS>', '</REPOSITORY_INSTRUCTIONS>'),
    ('<EXTRA_INFO>', '</EXTRA_INFO>');

CREATE TABLE file (base TEXT, session TEXT, ts INTEGER, zone TEXT, last INTEGER, listed INTEGER, turn TEXT);
INSERT INTO file
SELECT CASE container WHEN 'directory' THEN session_id(file) ELSE log_session(stem) END, NULL, 1,
       coalesce((SELECT value FROM options WHERE name = 'timezone'), ''), -1, 0, NULL FROM source;
UPDATE file SET session = base;
CREATE TABLE made (session TEXT PRIMARY KEY, dated INTEGER) WITHOUT ROWID;
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (source TEXT, main TEXT, gap INTEGER, j TEXT, v TEXT);

-- The events of the line. kind: action, observation, message, or record.
CREATE TABLE events (i INTEGER PRIMARY KEY, e TEXT, kind TEXT, role TEXT, name TEXT, call TEXT, ts INTEGER,
                     origin TEXT, owner TEXT, source TEXT, turn TEXT);
CREATE TABLE turns (session TEXT, turn TEXT, n INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
-- The prompts of the line: their turns, and the turns before them.
CREATE TABLE prompts (i INTEGER PRIMARY KEY, turn TEXT, before TEXT);
CREATE TABLE copied_calls (call TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE continued (session TEXT);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    DELETE FROM events;
    DELETE FROM prompts;
    INSERT INTO now (j, v, source, main, gap)
    SELECT j, v, json_fields('kind', json_text(kind), 'file', json_text(coalesce(j ->> '$.file', file)), 'line', NEW.n,
                             'record', v -> '$.id'),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' AND json_type(j, '$.index') IS NULL THEN 'head'
                WHEN j ->> '$.file' LIKE '%base_state.json' AND json_type(v) = 'object' THEN 'state'
                WHEN json_type(v, '$.history') = 'array' AND json_type(v, '$.instance_id') = 'text' THEN 'run'
                WHEN json_type(v) = 'object' AND (json_type(v, '$.kind') = 'text' OR json_type(v, '$.action') = 'text'
                     OR json_type(v, '$.observation') IS NOT NULL) THEN 'event'
                ELSE 'record' END, NULL
    FROM source, (SELECT NEW.json AS j, CASE WHEN json_type(NEW.json, '$.value') IS NOT NULL
                      AND (json_type(NEW.json, '$.at') = 'text' OR json_type(NEW.json, '$.file') = 'text')
                  THEN NEW.json -> '$.value' ELSE NEW.json END AS v);
    UPDATE file SET session = CASE (SELECT main FROM now)
        WHEN 'run' THEN log_session((SELECT v ->> '$.instance_id' FROM now), NEW.hash)
        WHEN 'state' THEN coalesce(session_id(nullif((SELECT v ->> '$.id' FROM now), '')), session) ELSE session END;
    -- The file name of an event contains its number.
    UPDATE now SET gap = (SELECT CAST(substr(j ->> '$.file', instr(j ->> '$.file', 'event-') + 6) AS INTEGER) - f.last - 1 FROM file f)
    WHERE j ->> '$.file' LIKE '%event-%';
    UPDATE file SET last = last + 1 + (SELECT gap FROM now) WHERE (SELECT gap FROM now) IS NOT NULL;
    INSERT INTO events (i, e)
    SELECT 0, v FROM now WHERE main = 'event'
    UNION ALL
    SELECT h.key, h.value FROM now, json_each(v, '$.history') h WHERE main = 'run' AND h.type = 'object';
    UPDATE events SET
        ts = CASE WHEN substr(e ->> '$.timestamp', 12) GLOB '*[Zz+-]*' THEN time_us(e ->> '$.timestamp')
                  WHEN (SELECT zone FROM file) <> '' THEN time_us((e ->> '$.timestamp') || (SELECT zone FROM file))
                  ELSE time_us(e ->> '$.timestamp') + 1000000 * coalesce(unixepoch(substr(e ->> '$.timestamp', 1, 19), 'utc')
                                                                        - unixepoch(substr(e ->> '$.timestamp', 1, 19)), 0) END,
        kind = CASE
            WHEN e ->> '$.kind' = 'ActionEvent' THEN 'action'
            WHEN e ->> '$.kind' IN ('ObservationEvent', 'UserRejectObservation', 'AgentErrorEvent') THEN 'observation'
            WHEN e ->> '$.kind' IN ('MessageEvent', 'SystemPromptEvent') THEN 'message'
            WHEN json_type(e, '$.kind') = 'text' THEN 'record'
            WHEN e ->> '$.action' IN ('message', 'system') THEN 'message'
            WHEN e ->> '$.action' IN ('change_agent_state', 'recall', 'null') OR e ->> '$.observation' IN
                 ('agent_state_changed', 'null', 'recall') OR json_type(e, '$.observation') = 'null' THEN 'record'
            WHEN json_type(e, '$.action') = 'text' THEN 'action'
            WHEN json_type(e, '$.observation') = 'text' THEN 'observation'
            ELSE 'record' END,
        role = CASE WHEN e ->> '$.kind' = 'SystemPromptEvent' OR e ->> '$.action' = 'system' THEN 'system'
                    ELSE coalesce(e ->> '$.llm_message.role', CASE e ->> '$.source' WHEN 'user' THEN 'user'
                         WHEN 'agent' THEN 'assistant' ELSE 'system' END) END,
        name = coalesce(e ->> '$.tool_name', e ->> '$.tool_call_metadata.function_name', e ->> '$.action',
                        e ->> '$.observation'),
        call = coalesce(e ->> '$.tool_call_id', e ->> '$.tool_call_metadata.tool_call_id',
                        CAST(coalesce(e ->> '$.cause', e ->> '$.id') AS TEXT));
    UPDATE file SET ts = coalesce((SELECT max(ts) FROM events WHERE ts > 0), ts);
    UPDATE events SET origin = 'openhands ' || (e ->> '$.id') || ' ' || (e ->> '$.timestamp')
        || coalesce(' ' || (e ->> '$.tool_call_metadata.model_response.id'), '')
    WHERE kind IN ('action', 'message') AND ts IS NOT NULL;
    UPDATE events SET ts = (SELECT ts FROM file) WHERE ts IS NULL;
    UPDATE events SET owner = nullif(record_owner(origin, (SELECT session FROM file)), (SELECT session FROM file))
    WHERE origin IS NOT NULL;
    INSERT OR IGNORE INTO copied_calls SELECT call FROM events WHERE kind = 'action' AND owner IS NOT NULL AND call IS NOT NULL;
    UPDATE events SET source = (SELECT CASE
        WHEN owner IS NOT NULL OR kind = 'observation' AND call IN (SELECT c.call FROM copied_calls c)
            THEN substr(source, 1, length(source) - 1) || ',"copied":true}'
        WHEN origin IS NULL THEN source
        ELSE substr(source, 1, length(source) - 1) || ',"origin":' || json_text(origin) || '}' END FROM now);
    UPDATE events SET kind = 'record' WHERE source ->> '$.copied';
    UPDATE file SET turn = NULL WHERE (SELECT main = 'run' FROM now);
    INSERT INTO prompts (i, turn, before)
    SELECT i, NEW.hash || '.' || i, coalesce(NEW.hash || '.' || lag(i) OVER (ORDER BY i), (SELECT turn FROM file))
    FROM events WHERE kind = 'message' AND role = 'user';
    UPDATE events SET turn = coalesce((SELECT p.turn FROM prompts p WHERE p.i <= events.i ORDER BY p.i DESC LIMIT 1), (SELECT turn FROM file));
    UPDATE file SET turn = coalesce((SELECT turn FROM prompts ORDER BY i DESC LIMIT 1), turn);
    INSERT OR IGNORE INTO turns SELECT session, prompts.turn, NEW.n FROM file, prompts;
    INSERT INTO out
    SELECT NEW.row, 9.1 + 4 * p.i, session, e.ts, 'turn.completed', p.turn || '.ends',
           json_fields('turn_id', json_text(p.before), 'reason', '"next_turn"', 'source', now.source), NEW.n
    FROM file, now, prompts p JOIN events e USING (i) WHERE p.before IS NOT NULL
    UNION ALL
    SELECT NEW.row, 9.2 + 4 * p.i, session, e.ts, 'turn.started', p.turn || '.turn',
           json_fields('turn_id', json_text(p.turn), 'status', '"running"',
                       'prompt_ref', json_text(CAST(coalesce(e ->> '$.id', NEW.hash || '.' || i) AS TEXT)), 'source', now.source), NEW.n
    FROM file, now, prompts p JOIN events e USING (i);

    INSERT INTO out
    SELECT NEW.row, 0, session, coalesce((SELECT min(ts) FROM events), file.ts), 'session.created', 'session.created',
           json_fields('id', json_text(session), 'agent_id', '"openhands"', 'status', '"idle"',
               'model', coalesce(v -> '$.metadata.llm_config.model', v -> '$.agent.llm.model'),
               'title', CASE main WHEN 'run' THEN v -> '$.instance_id' END, 'source', source), NEW.n
    FROM file, now WHERE NOT EXISTS (SELECT 1 FROM made m WHERE m.session = file.session);
    INSERT OR IGNORE INTO made SELECT session, coalesce((SELECT min(ts) FROM events), ts) > 1 FROM file;
    INSERT INTO out
    SELECT NEW.row, 0, session, e.ts, 'session.updated', 'session.dated',
           json_fields('set', json_fields('created_at', strftime('"%Y-%m-%dT%H:%M:%S', e.ts / 1000000, 'unixepoch') || printf('.%06dZ"', e.ts % 1000000)),
                       'source', source), NEW.n
    FROM file, now, (SELECT min(ts) AS ts FROM events WHERE ts > 1) e
    WHERE e.ts IS NOT NULL AND EXISTS (SELECT 1 FROM made m WHERE m.session = file.session AND NOT m.dated);
    UPDATE made SET dated = 1 WHERE session = (SELECT session FROM file) AND EXISTS (SELECT 1 FROM events WHERE ts > 1);
    INSERT INTO out
    SELECT NEW.row, 1, session, ts, CASE main WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END,
           NEW.hash || '.line',
           CASE main WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', json_text(main), 'source', source,
                            'extra', CASE main WHEN 'run' THEN json_remove(v, '$.history') ELSE j END) END, NEW.n
    FROM file, now WHERE main <> 'event';

    INSERT INTO out
    SELECT NEW.row, 0, session, e.ts, 'session.updated', 'session.continues',
           json_fields('set', json_fields('parent_session_id', json_text(owner)), 'source', now.source), NEW.n
    FROM file, now, (SELECT owner, ts FROM events WHERE owner IS NOT NULL ORDER BY i LIMIT 1) e
    WHERE NOT EXISTS (SELECT 1 FROM continued);
    INSERT INTO continued
    SELECT owner FROM events WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM continued) ORDER BY i LIMIT 1;

    -- The messages, and the thoughts before actions.
    INSERT INTO out
    SELECT NEW.row, 10 + 4 * i, session, events.ts,
           CASE kind WHEN 'record' THEN 'import.record' WHEN 'observation'
               THEN CASE WHEN e ->> '$.observation.is_error' OR e ->> '$.kind' IN ('AgentErrorEvent', 'UserRejectObservation')
                              OR e ->> '$.observation' = 'error' OR json_type(e, '$.success') = 'false'
                              -- -1: the exit code is unknown, because the command still runs.
                              OR coalesce(e ->> '$.observation.exit_code', e ->> '$.extras.metadata.exit_code', e ->> '$.extras.exit_code') NOT IN (0, -1)
                         THEN 'tool.failed' ELSE 'tool.returned' END
               ELSE 'message.added' END, NEW.hash || '.' || i,
           CASE kind
           WHEN 'record' THEN json_fields('kind', coalesce(e -> '$.kind', e -> '$.action', e -> '$.observation'),
               'gap_before', CASE WHEN gap > 0 THEN gap END, 'source', events.source, 'extra', e)
           WHEN 'observation' THEN json_fields('call_id', json_text(call),
               'output', coalesce(e -> '$.observation.content', e -> '$.content', e -> '$.error', e -> '$.rejection_reason'),
               'exit_code', coalesce(e -> '$.observation.exit_code', e -> '$.extras.metadata.exit_code', e -> '$.extras.exit_code'),
               'gap_before', CASE WHEN gap > 0 THEN gap END, 'turn_id', json_text(events.turn), 'source', events.source,
               'extra', json_remove(e, '$.observation.content', '$.content', '$.error', '$.rejection_reason'))
           WHEN 'action' THEN json_fields('id', json_text(CAST(coalesce(e ->> '$.id', NEW.hash || '.' || i) AS TEXT)),
               'role', '"assistant"', 'content', coalesce(e -> '$.thought', e -> '$.args.thought', e -> '$.message', '""'),
               'gap_before', CASE WHEN gap > 0 THEN gap END, 'turn_id', json_text(events.turn), 'source', events.source,
               'extra', json_remove(e, '$.thought', '$.args', '$.action',
                   CASE WHEN json_type(e, '$.args.thought') IS NULL AND json_type(e, '$.thought') IS NULL THEN '$.message'
                   ELSE '$." "' END, '$.tool_name', '$.tool_call_id', '$.tool_call'))
           ELSE json_fields('id', json_text(CAST(coalesce(e ->> '$.id', NEW.hash || '.' || i) AS TEXT)),
               'role', json_text(role),
               'content', coalesce(e -> '$.llm_message.content', e -> '$.system_prompt.text', e -> '$.args.content',
                                   e -> '$.message', '""'),
               'said', CASE WHEN role = 'user' THEN said(coalesce(e -> '$.llm_message.content', e -> '$.args.content',
                                                                  e -> '$.message')) END,
               'gap_before', CASE WHEN gap > 0 THEN gap END, 'turn_id', json_text(events.turn), 'source', events.source,
               'extra', json_remove(e, '$.llm_message.content',
                   CASE WHEN json_type(e, '$.llm_message.content') IS NULL THEN '$.system_prompt.text' ELSE '$." "' END)) END,
           NEW.n
    FROM file, now, events;
    INSERT INTO out
    SELECT NEW.row, 11 + 4 * i, session, events.ts, 'tool.called', NEW.hash || '.call.' || i,
           json_fields('call_id', json_text(call), 'tool', json_text(name),
               'input', CASE json_type(e, '$.action') WHEN 'object' THEN e -> '$.action' ELSE e -> '$.args' END,
               'message_id', json_text(CAST(coalesce(e ->> '$.id', NEW.hash || '.' || i) AS TEXT)),
               'turn_id', json_text(events.turn), 'source', events.source,
               'extra', json_fields('tool_call', e -> '$.tool_call', 'action', CASE json_type(e, '$.action') WHEN 'text'
                                    THEN e -> '$.action' END)), NEW.n
    FROM file, now, events WHERE kind = 'action';

    -- The usage.
    INSERT INTO out
    SELECT NEW.row, 10000000 + u.key, session, file.ts, 'agent.turn.usage',
           'usage.' || coalesce(nullif(u.value ->> '$.response_id', ''), u.key),
           json_fields('model', u.value -> '$.model', 'message_id', nullif(u.value -> '$.response_id', '""'),
               'input_tokens', u.value -> '$.prompt_tokens', 'output_tokens', u.value -> '$.completion_tokens',
               'cached_input_tokens', u.value -> '$.cache_read_tokens', 'cache_write_tokens', u.value -> '$.cache_write_tokens',
               'reasoning_output_tokens', u.value -> '$.reasoning_tokens',
               'source', CASE WHEN u.value ->> '$.response_id' <> ''
                         THEN substr(source, 1, length(source) - 1) || ',"origin":' || json_text('openhands ' || (u.value ->> '$.response_id')) || '}'
                         ELSE source END), NEW.n
    FROM file, now, json_each(v, '$.metrics.token_usages') u WHERE main = 'run' AND u.type = 'object'
      AND coalesce(record_owner('openhands ' || nullif(u.value ->> '$.response_id', ''), session), session) = session
    UNION ALL
    SELECT NEW.row, 10000000 + u.key, session, file.ts, 'agent.turn.usage',
           'usage.' || coalesce(nullif(u.value ->> '$.response_id', ''), s.key || '.' || u.key),
           json_fields('model', u.value -> '$.model', 'message_id', nullif(u.value -> '$.response_id', '""'),
               'input_tokens', u.value -> '$.prompt_tokens', 'output_tokens', u.value -> '$.completion_tokens',
               'cached_input_tokens', u.value -> '$.cache_read_tokens', 'cache_write_tokens', u.value -> '$.cache_write_tokens',
               'reasoning_output_tokens', u.value -> '$.reasoning_tokens',
               'source', CASE WHEN u.value ->> '$.response_id' <> ''
                         THEN substr(source, 1, length(source) - 1) || ',"origin":' || json_text('openhands ' || (u.value ->> '$.response_id')) || '}'
                         ELSE source END), NEW.n
    FROM file, now, json_each(v, '$.stats.usage_to_metrics') s, json_each(s.value, '$.token_usages') u
    WHERE main = 'state' AND s.type = 'object' AND u.type = 'object'
      AND coalesce(record_owner('openhands ' || nullif(u.value ->> '$.response_id', ''), session), session) = session;
    UPDATE file SET listed = 1 WHERE (SELECT main = 'state' AND EXISTS (SELECT 1 FROM json_each(v, '$.stats.usage_to_metrics') s
        WHERE s.type = 'object' AND json_array_length(s.value, '$.token_usages') > 0) FROM now);
    INSERT INTO out
    SELECT NEW.row, 15000000 + i, session, events.ts, 'agent.turn.usage',
           'usage.' || coalesce(nullif(r ->> '$.id', ''),
                                printf('%s.%s.%s', r ->> '$.created', u ->> '$.prompt_tokens', u ->> '$.completion_tokens')),
           json_fields('model', nullif(r -> '$.model', 'null'), 'message_id', nullif(nullif(r -> '$.id', '""'), 'null'),
               'input_tokens', nullif(u -> '$.prompt_tokens', 'null'), 'output_tokens', nullif(u -> '$.completion_tokens', 'null'),
               'cached_input_tokens', nullif(coalesce(u -> '$.prompt_tokens_details.cached_tokens',
                                                      u -> '$.cache_read_input_tokens'), 'null'),
               'cache_write_tokens', nullif(u -> '$.cache_creation_input_tokens', 'null'),
               'reasoning_output_tokens', nullif(u -> '$.completion_tokens_details.reasoning_tokens', 'null'),
               'source', CASE WHEN r ->> '$.id' <> ''
                         THEN substr(source, 1, length(source) - 1) || ',"origin":' || json_text('openhands ' || (r ->> '$.id')) || '}'
                         ELSE source END), NEW.n
    FROM file, now, (SELECT i, ts, e -> '$.tool_call_metadata.model_response' AS r,
                            e -> '$.tool_call_metadata.model_response.usage' AS u FROM events) AS events
    WHERE NOT listed AND coalesce(json_array_length(v, '$.metrics.token_usages'), 0) = 0
      AND 'integer' IN (json_type(u, '$.prompt_tokens'), json_type(u, '$.completion_tokens'))
      AND coalesce(record_owner('openhands ' || nullif(r ->> '$.id', ''), session), session) = session;
    INSERT INTO out
    SELECT NEW.row, 20000000 + u.key, session, file.ts, 'agent.turn.usage', 'cost.' || u.key,
           json_fields('model', u.value -> '$.model', 'requests', 0,
                       'cost_usd', u.value -> '$.cost', 'source', source), NEW.n
    FROM file, now, json_each(v, '$.metrics.costs') u WHERE main = 'run' AND u.type = 'object'
    UNION ALL
    SELECT NEW.row, 20000000 + u.key, session, file.ts, 'agent.turn.usage', 'cost.' || s.key || '.' || u.key,
           json_fields('model', u.value -> '$.model', 'requests', 0,
                       'cost_usd', u.value -> '$.cost', 'source', source), NEW.n
    FROM file, now, json_each(v, '$.stats.usage_to_metrics') s, json_each(s.value, '$.costs') u
    WHERE main = 'state' AND s.type = 'object' AND u.type = 'object';
END;

-- batch
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY row, k;
DELETE FROM out;

-- end
-- Rule (8). Compute all events before the first is returned.
INSERT INTO out
SELECT 0, 0, session, ts, CASE WHEN gone THEN 'turn.rolled_back' ELSE 'turn.restored' END,
       turn || CASE WHEN gone THEN '.removed.' ELSE '.restored.' END || times,
       json_fields('turn_id', json_text(turn), 'reason', '"rewritten"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', n)), n
FROM (SELECT t.*, s.kind, m.n, NOT EXISTS (SELECT 1 FROM turns u WHERE u.session = t.session AND u.turn = t.turn) AS gone
      FROM source s, (SELECT session, max(n) AS n FROM turns GROUP BY session) m JOIN recorded_turns t ON t.session = m.session AND t.file = s.file
      WHERE EXISTS (SELECT 1 FROM options WHERE name = ':whole'))
WHERE gone <> was_gone;
SELECT session, ts, type, id, NULL, data, n FROM out;
DELETE FROM out;
