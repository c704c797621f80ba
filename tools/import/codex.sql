-- importer codex   version 1
--
-- The rollout files of the Codex CLI: ~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl.
-- docs/events.md lists what comes out; annal/import.h says what an importer finds.
--
--  (1) A line is judged by itself and by the lines before it, never by those behind it, so that what
--      the first lines gave stays when the file grows.
--  (2) The session is the thread that the first session_meta names; later ones are copied history of
--      a fork. Lines before it belong to the thread, or else the file, that the file name names.
--  (3) The first event made from a line carries the line under "extra", less what stands in the
--      fields of the line's events. Values are copied as JSON text (->), which keeps every digit and
--      every escape.
--  (4) An event's id is made of the bytes of its line, so the same line imported again, from a copy or
--      a slice of the file too, is the same event. session.created has an id of its own.
--  (5) What was said stands twice in a rollout. response_item is what the model saw and becomes
--      message.added, tool.called and tool.returned; its echoes in event_msg stay import.record.
--  (6) token_count is cumulative: the difference to the one before is an event. Where the count falls
--      it was begun anew, and counts as it stands. A fork goes on from its parent's count.
--  (7) A turn is what task_started and its kin say. Old files have none: there a user_message starts
--      one, and ends the one before.

-- detect
SELECT max(CASE WHEN json_type(json, '$.payload') = 'object' AND json ->> '$.type' IN
    ('session_meta', 'turn_context', 'response_item', 'event_msg', 'compacted') THEN 95 ELSE 0 END) FROM lines

-- once

-- What is known of the file so far. named: a session_meta has named the session.
CREATE TABLE file (session TEXT, ts INTEGER, named INTEGER);
INSERT INTO file
SELECT session_id(CASE WHEN stem GLOB '*-????????-????-????-????-????????????' THEN substr(stem, -36)
                  ELSE stem END), 1, 0
FROM source;

-- What is known of each session so far. turn: the open one; turns: how many have begun; marked: it
-- has task_started lines.
CREATE TABLE sessions (
    session TEXT PRIMARY KEY, model TEXT, cwd TEXT, turn TEXT, turns INTEGER, marked INTEGER,
    input INTEGER, cached INTEGER, written INTEGER, output INTEGER, reasoning INTEGER, total INTEGER
) WITHOUT ROWID;

-- What was found out about each line of the batch.
CREATE TABLE facts (
    row INTEGER PRIMARY KEY, n INTEGER, hash TEXT,
    type TEXT, kind TEXT, at INTEGER, session TEXT, ts INTEGER, is_new INTEGER, first_meta INTEGER,
    model TEXT, cwd TEXT, new_model TEXT, new_cwd TEXT,
    starts TEXT, ends TEXT, next_ends TEXT, turn TEXT, turns INTEGER,
    base INTEGER, input INTEGER, cached INTEGER, written INTEGER, output INTEGER,
    reasoning INTEGER, main TEXT
);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    -- What the line itself says.
    INSERT INTO facts (row, n, hash, type, kind, at, session, model, cwd)
    SELECT NEW.row, NEW.n, NEW.hash, j ->> '$.type', j ->> '$.payload.type',
           time_us(j ->> '$.timestamp'),
           CASE WHEN j ->> '$.type' = 'session_meta' THEN session_id(nullif(j ->> '$.payload.id', '')) END,
           CASE WHEN j ->> '$.type' = 'turn_context' THEN j ->> '$.payload.model' END,
           CASE WHEN j ->> '$.type' IN ('turn_context', 'session_meta') THEN j ->> '$.payload.cwd' END
    FROM (SELECT NEW.json AS j);
    UPDATE facts SET first_meta = 1
    WHERE row = NEW.row AND session IS NOT NULL AND NOT (SELECT named FROM file);
    UPDATE file SET
        session = coalesce((SELECT session FROM facts WHERE row = NEW.row AND first_meta), session),
        named = named OR EXISTS (SELECT 1 FROM facts WHERE row = NEW.row AND first_meta),
        ts = coalesce((SELECT at FROM facts WHERE row = NEW.row), ts);
    UPDATE facts SET session = (SELECT session FROM file), ts = (SELECT ts FROM file)
    WHERE row = NEW.row;

    -- What is new about the session.
    UPDATE facts SET is_new = 1
    WHERE row = NEW.row AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = facts.session);
    INSERT INTO sessions (session, turns, marked)
    SELECT session, 0, 0 FROM facts WHERE row = NEW.row AND is_new;
    UPDATE facts SET (new_model, new_cwd) = (
        SELECT CASE WHEN facts.model IS NOT s.model THEN facts.model END,
               CASE WHEN facts.cwd IS NOT s.cwd THEN facts.cwd END
        FROM sessions s WHERE s.session = facts.session)
    WHERE row = NEW.row AND (type = 'turn_context' OR first_meta);
    UPDATE sessions SET (model, cwd) = (
        SELECT coalesce(f.new_model, sessions.model), coalesce(f.new_cwd, sessions.cwd)
        FROM facts f WHERE f.row = NEW.row)
    WHERE session = (SELECT session FROM facts WHERE row = NEW.row);

    -- Turns: what this line starts, what it ends, and what it ends by starting another.
    UPDATE facts SET starts = coalesce(NEW.json ->> '$.payload.turn_id', hash)
    WHERE row = NEW.row AND type = 'event_msg' AND kind IN ('task_started', 'turn_started');
    UPDATE sessions SET marked = 1
    WHERE session = (SELECT session FROM facts WHERE row = NEW.row AND starts IS NOT NULL);
    UPDATE facts SET starts = hash
    WHERE row = NEW.row AND type = 'event_msg' AND kind = 'user_message'
      AND NOT (SELECT s.marked FROM sessions s WHERE s.session = facts.session);
    UPDATE facts SET ends = coalesce(NEW.json ->> '$.payload.turn_id',
                                     (SELECT s.turn FROM sessions s WHERE s.session = facts.session))
    WHERE row = NEW.row AND type = 'event_msg'
      AND kind IN ('task_complete', 'turn_complete', 'turn_aborted');
    UPDATE facts SET next_ends = (SELECT s.turn FROM sessions s WHERE s.session = facts.session)
    WHERE row = NEW.row AND starts IS NOT NULL;
    UPDATE facts SET turn = coalesce(starts, ends,
        (SELECT s.turn FROM sessions s WHERE s.session = facts.session))
    WHERE row = NEW.row;
    UPDATE sessions SET turn = NULL
    WHERE (session, turn) = (SELECT session, ends FROM facts WHERE row = NEW.row);
    UPDATE sessions SET turn = (SELECT starts FROM facts WHERE row = NEW.row), turns = turns + 1
    WHERE session = (SELECT session FROM facts WHERE row = NEW.row AND starts IS NOT NULL);
    UPDATE facts SET turns = (SELECT s.turns FROM sessions s WHERE s.session = facts.session),
                     model = (SELECT s.model FROM sessions s WHERE s.session = facts.session)
    WHERE row = NEW.row;

    -- What was used since the last count. base: 1 when the last count is to be taken off.
    UPDATE facts SET base = coalesce(
        (SELECT NEW.json ->> '$.payload.info.total_token_usage.total_tokens' >= s.total
         FROM sessions s WHERE s.session = facts.session), 0)
    WHERE row = NEW.row AND type = 'event_msg' AND kind = 'token_count'
      AND json_type(NEW.json, '$.payload.info.total_token_usage') = 'object';
    UPDATE facts SET (input, cached, written, output, reasoning) = (
        SELECT CAST(coalesce(u ->> '$.input_tokens', 0) AS INTEGER) - base * coalesce(s.input, 0),
               CAST(coalesce(u ->> '$.cached_input_tokens', 0) AS INTEGER) - base * coalesce(s.cached, 0),
               CAST(coalesce(u ->> '$.cache_write_input_tokens', 0) AS INTEGER)
                   - base * coalesce(s.written, 0),
               CAST(coalesce(u ->> '$.output_tokens', 0) AS INTEGER) - base * coalesce(s.output, 0),
               CAST(coalesce(u ->> '$.reasoning_output_tokens', 0) AS INTEGER)
                   - base * coalesce(s.reasoning, 0)
        FROM sessions s, (SELECT NEW.json -> '$.payload.info.total_token_usage' AS u)
        WHERE s.session = facts.session)
    WHERE row = NEW.row AND base IS NOT NULL;
    UPDATE sessions SET (input, cached, written, output, reasoning, total) = (
        SELECT f.input + f.base * coalesce(sessions.input, 0),
               f.cached + f.base * coalesce(sessions.cached, 0),
               f.written + f.base * coalesce(sessions.written, 0),
               f.output + f.base * coalesce(sessions.output, 0),
               f.reasoning + f.base * coalesce(sessions.reasoning, 0),
               coalesce(NEW.json ->> '$.payload.info.total_token_usage.total_tokens', 0)
        FROM facts f WHERE f.row = NEW.row)
    WHERE session = (SELECT session FROM facts WHERE row = NEW.row AND base IS NOT NULL);

    -- Which event carries the line.
    UPDATE facts SET main = CASE
        WHEN NEW.json IS NULL THEN 'unreadable'
        WHEN first_meta THEN 'meta'
        WHEN type = 'turn_context' AND (new_model IS NOT NULL OR new_cwd IS NOT NULL) THEN 'updated'
        WHEN type = 'compacted' THEN 'checkpoint'
        WHEN type = 'response_item' AND kind = 'message'
             AND json_type(NEW.json, '$.payload.content') IS NOT NULL THEN 'message'
        WHEN type = 'response_item' AND kind = 'reasoning' THEN 'reasoning'
        WHEN type = 'response_item' AND kind LIKE '%\_call' ESCAPE '\' THEN 'call'
        WHEN type = 'response_item' AND kind LIKE '%\_output' ESCAPE '\' THEN 'result'
        WHEN starts IS NOT NULL AND kind <> 'user_message' THEN 'start'
        WHEN ends IS NOT NULL THEN 'end'
        WHEN input <> 0 OR cached <> 0 OR written <> 0 OR output <> 0 THEN 'usage'
        ELSE 'record' END
    WHERE row = NEW.row;
END;

-- A line with its facts, and where it came from.
CREATE VIEW work AS
SELECT f.*, l.json AS j, l.unreadable,
       json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', f.n,
                   'record', coalesce(l.json -> '$.ordinal', nullif(l.json -> '$.payload.id', 'null')))
           AS source,
       json_text(f.turn) AS turn_id
FROM facts f JOIN lines l USING (row) CROSS JOIN source s;

-- batch

SELECT session, ts, type, id, cause, data, line FROM (
    SELECT row, 0 AS k, session, ts, 'session.created' AS type, 'session.created' AS id, NULL AS cause,
           json_fields('id', json_text(session), 'agent_id', '"codex"', 'status', '"idle"',
                       'source', source) AS data,
           n AS line
    FROM work WHERE is_new AND main <> 'meta'
    UNION ALL
    SELECT row, 0, session, ts, CASE WHEN is_new THEN 'session.created' ELSE 'session.updated' END,
           CASE WHEN is_new THEN 'session.created' ELSE hash || '.0' END, NULL,
           CASE WHEN is_new THEN json_fields(
               'id', json_text(session), 'agent_id', '"codex"', 'provider', m -> '$.model_provider',
               'status', '"idle"', 'working_directory', m -> '$.cwd', 'git_branch', m -> '$.git.branch',
               'parent_session_id', parent, 'created_at', m -> '$.timestamp', 'source', source,
               'extra', rest)
           ELSE json_fields(
               'set', json_fields('provider', m -> '$.model_provider', 'working_directory', m -> '$.cwd',
                                  'git_branch', m -> '$.git.branch', 'parent_session_id', parent,
                                  'created_at', m -> '$.timestamp'),
               'source', source, 'extra', rest) END, n
    FROM (SELECT w.*, m,
                 json_text(session_id(coalesce(m ->> '$.parent_thread_id',
                     m ->> '$.source.subagent.thread_spawn.parent_thread_id',
                     m ->> '$.forked_from_id'))) AS parent,
                 json_remove(j, '$.payload.model_provider', '$.payload.cwd', '$.payload.git.branch',
                             '$.payload.timestamp') AS rest
          FROM (SELECT *, j -> '$.payload' AS m FROM work WHERE main = 'meta') w)
    UNION ALL
    SELECT row, 1, session, ts, 'session.updated', hash || '.1', NULL,
           json_fields('set', json_fields('model', CASE WHEN new_model IS NOT NULL
                                                       THEN j -> '$.payload.model' END,
                                          'working_directory', CASE WHEN new_cwd IS NOT NULL
                                                                   THEN j -> '$.payload.cwd' END),
                       'turn_id', turn_id, 'source', source,
                       'extra', json_remove(j, CASE WHEN new_model IS NOT NULL THEN '$.payload.model'
                                                    ELSE '$." "' END,
                                            CASE WHEN new_cwd IS NOT NULL THEN '$.payload.cwd'
                                                 ELSE '$." "' END)), n
    FROM work WHERE main = 'updated'
    UNION ALL
    SELECT row, 2, session, ts, 'turn.completed', hash || '.2', NULL,
           json_fields('turn_id', json_text(next_ends), 'reason', '"next_turn"', 'source', source), n
    FROM work WHERE next_ends IS NOT NULL
    UNION ALL
    SELECT row, 3, session, ts, 'turn.started', hash || '.3', NULL,
           json_fields('turn_id', turn_id, 'sequence', turns, 'status', '"running"', 'source', source,
                       'extra', CASE WHEN main = 'start' THEN json_remove(j, '$.payload.turn_id') END), n
    FROM work WHERE starts IS NOT NULL
    UNION ALL
    SELECT row, 4, session, ts, 'agent.turn.usage', hash || '.usage', NULL,
           json_fields('turn_id', turn_id, 'model', json_text(model), 'input_tokens', input,
                       'output_tokens', output, 'cached_input_tokens', cached,
                       'cache_write_tokens', written, 'reasoning_output_tokens', reasoning,
                       'total_tokens', input + output, 'source', source, 'extra', j), n
    FROM work WHERE main = 'usage'
    UNION ALL
    -- The event that carries the line.
    SELECT row, 5, session, ts,
           CASE main
           WHEN 'message' THEN 'message.added' WHEN 'reasoning' THEN 'message.added'
           WHEN 'call' THEN 'tool.called'
           WHEN 'result' THEN CASE WHEN j ->> '$.payload.output.success' = 0 THEN 'tool.failed'
                              ELSE 'tool.returned' END
           WHEN 'checkpoint' THEN 'checkpoint.noted'
           WHEN 'end' THEN CASE WHEN kind = 'turn_aborted' THEN 'turn.cancelled'
                                WHEN coalesce(json_type(j, '$.payload.error'), 'null') <> 'null'
                                    THEN 'turn.failed'
                                ELSE 'turn.completed' END
           WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END,
           hash || '.5', NULL,
           CASE main
           WHEN 'message' THEN json_fields(
               'id', coalesce(nullif(j -> '$.payload.id', 'null'), json_text(hash)),
               'role', coalesce(j -> '$.payload.role', '"assistant"'), 'content', j -> '$.payload.content',
               'model', CASE WHEN j ->> '$.payload.role' = 'assistant' THEN json_text(model) END,
               'turn_id', turn_id, 'source', source,
               'extra', json_remove(j, '$.payload.id', '$.payload.role', '$.payload.content'))
           WHEN 'reasoning' THEN json_fields(
               'id', coalesce(nullif(j -> '$.payload.id', 'null'), json_text(hash)),
               'role', '"assistant"', 'content', '[' || (j -> '$.payload') || ']',
               'model', json_text(model), 'turn_id', turn_id, 'source', source,
               'extra', json_remove(j, '$.payload'))
           WHEN 'call' THEN json_fields(
               'call_id', coalesce(nullif(j -> '$.payload.call_id', 'null'),
                                   nullif(j -> '$.payload.id', 'null'), json_text(hash)),
               'tool', coalesce(j -> '$.payload.name', json_text(substr(kind, 1, length(kind) - 5))),
               'input', coalesce(j -> '$.payload.arguments', j -> '$.payload.input',
                                 j -> '$.payload.action'),
               'turn_id', turn_id, 'source', source,
               'extra', json_remove(j, '$.payload.call_id', '$.payload.name',
                   CASE WHEN json_type(j, '$.payload.arguments') IS NOT NULL THEN '$.payload.arguments'
                        WHEN json_type(j, '$.payload.input') IS NOT NULL THEN '$.payload.input'
                        ELSE '$.payload.action' END))
           WHEN 'result' THEN json_fields(
               'call_id', coalesce(nullif(j -> '$.payload.call_id', 'null'), json_text(hash)),
               'success', CASE WHEN json_type(j, '$.payload.output.success') IN ('true', 'false')
                   THEN j -> '$.payload.output.success' END,
               'output', j -> '$.payload.output', 'turn_id', turn_id, 'source', source,
               'extra', json_remove(j, '$.payload.call_id', '$.payload.output'))
           WHEN 'checkpoint' THEN json_fields(
               'note', '"compaction"', 'turn_id', turn_id, 'source', source, 'extra', j)
           WHEN 'end' THEN json_fields(
               'turn_id', json_text(ends), 'reason', j -> '$.payload.reason',
               'error', nullif(j -> '$.payload.error', 'null'),
               'timing', json_fields('totalMs', j -> '$.payload.duration_ms',
                                     'ttfeMs', j -> '$.payload.time_to_first_token_ms'),
               'source', source,
               'extra', json_remove(j, '$.payload.turn_id', '$.payload.reason', '$.payload.duration_ms',
                                    '$.payload.time_to_first_token_ms',
                                    CASE WHEN json_type(j, '$.payload.error') <> 'null'
                                        THEN '$.payload.error' ELSE '$." "' END))
           WHEN 'unreadable' THEN json_set(unreadable, '$.source', json(source))
           ELSE json_fields(
               'kind', j -> '$.type', 'turn_id', turn_id, 'source', source,
               'extra', CASE json_type(j) WHEN 'object' THEN json_remove(j, '$.type') ELSE j END)
           END, n
    FROM work WHERE main NOT IN ('meta', 'updated', 'start', 'usage')
)
ORDER BY row, k;

DELETE FROM facts;
