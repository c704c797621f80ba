-- importer codex   version 2
--
-- The rollout files of the Codex CLI: ~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl.
-- docs/events.md lists what comes out; annal/import.h says what an importer finds.
--
--  (1) A line is judged by itself and by the lines before it, never by those behind it, so that what
--      the first lines gave stays when the file grows.
--  (2) The session is the thread that the first session_meta names; later ones are copied history of
--      a fork. Lines before it belong to the thread, or else the file, that the file name names.
--  (3) The first event made from a line carries the line under "extra", less what is in the
--      fields of the line's events. Values are copied as JSON text (->), which keeps every digit and
--      every escape.
--  (4) An event's id is made of the bytes of its line, so the same line imported again, from a copy or
--      a slice of the file too, is the same event. session.created has an id of its own.
--  (5) What was said stands twice in a rollout. response_item is what the model saw and becomes
--      message.added, tool.called and tool.returned; its echoes in event_msg stay import.record.
--  (6) token_count is cumulative: the difference to the one before is an event. Where the count falls
--      it was begun anew, and counts as it stands. A fork goes on from its parent's count: the counts
--      among the lines that it copied from its parent are no events of usage, and its own first count
--      starts from the last of them, or, where there is none, counts what its last request took.
--  (7) A turn is what task_started and its kin say. Old files have none: there a user_message starts
--      one, and ends the one before.
--  (8) The copied lines of a fork were written again at once when it was made, so their timestamps are
--      of that moment. They end at the first task_started, turn_context or user_message that is the
--      fork's own: its turn_id is later than the id of the thread (both are UUIDs of version 7, which
--      begin with a time), or its started_at is not before the fork was made, or, where it says nothing, it was written a second or more
--      after the line before it. "copied" in the source of an event marks these lines.
--  (9) A line without time has the time of the line before it; "time" in the data says so.
-- (10) A call failed if its output says so: success, an exit code other than 0 in its head or its
--      metadata, or words in which Codex reports that it could not run a tool. exec_command_end and
--      patch_apply_end come before the output, and answer where it says nothing. A call that the
--      server runs has no output line: it is complete as it stands.

-- detect
SELECT max(CASE WHEN json_type(json, '$.payload') = 'object' AND json ->> '$.type' IN
    ('session_meta', 'turn_context', 'response_item', 'event_msg', 'compacted') THEN 95 ELSE 0 END) FROM lines

-- once

-- What is known of the file so far. named: a session_meta has named the session.
-- made: when the fork was made whose copied lines are being read; NULL: what comes is the file's own.
CREATE TABLE file (session TEXT, ts INTEGER, named INTEGER, made INTEGER);
INSERT INTO file
SELECT session_id(CASE WHEN stem GLOB '*-????????-????-????-????-????????????' THEN substr(stem, -36)
                  ELSE stem END), 1, 0, NULL
FROM source;

-- What is known of each session so far. turn: the open one; turns: how many have begun; marked: it
-- has task_started lines; forked: it goes on from its parent's count.
CREATE TABLE sessions (
    session TEXT PRIMARY KEY, model TEXT, cwd TEXT, turn TEXT, turns INTEGER, marked INTEGER,
    input INTEGER, cached INTEGER, written INTEGER, output INTEGER, reasoning INTEGER, total INTEGER,
    forked INTEGER
) WITHOUT ROWID;

-- What an event said of the end of a call before its output came.
CREATE TABLE ends (
    session TEXT, call TEXT, exit_code INTEGER, ms INTEGER, failed INTEGER,
    PRIMARY KEY (session, call)
) WITHOUT ROWID;

-- What was found out about each line of the batch.
CREATE TABLE facts (
    row INTEGER PRIMARY KEY, n INTEGER, hash TEXT,
    type TEXT, kind TEXT, at INTEGER, session TEXT, ts INTEGER, is_new INTEGER, first_meta INTEGER,
    model TEXT, cwd TEXT, new_model TEXT, new_cwd TEXT,
    starts TEXT, ends TEXT, next_ends TEXT, turn TEXT, turns INTEGER,
    base INTEGER, input INTEGER, cached INTEGER, written INTEGER, output INTEGER,
    reasoning INTEGER, main TEXT,
    before INTEGER, copied INTEGER, said TEXT, exit_code INTEGER, ms INTEGER, failed INTEGER
);

-- What an output says of its call: in lines before "Output:", or as {"output", "metadata"}.
CREATE VIEW outputs AS
SELECT row,
       coalesce(CASE WHEN head LIKE '%' || char(10) || 'Exit code: %'
                    THEN CAST(substr(head, instr(head, char(10) || 'Exit code: ') + 12) AS INTEGER)
                WHEN head LIKE '%' || char(10) || 'Process exited with code %'
                    THEN CAST(substr(head, instr(head, char(10) || 'Process exited with code ') + 26)
                              AS INTEGER) END,
                CASE WHEN json_type(meta, '$.exit_code') = 'integer' THEN meta ->> '$.exit_code' END)
           AS exit_code,
       CAST(round(1000 * coalesce(
                CASE WHEN head LIKE '%' || char(10) || 'Wall time: %'
                    THEN CAST(substr(head, instr(head, char(10) || 'Wall time: ') + 12) AS REAL) END,
                CASE WHEN json_type(meta, '$.duration_seconds') IN ('integer', 'real')
                    THEN meta ->> '$.duration_seconds' END)) AS INTEGER) AS ms,
       CASE WHEN said GLOB 'aborted*' OR said GLOB 'execution error*' OR said GLOB 'tool call error*'
                 OR said GLOB 'exec_command failed*' OR said GLOB 'write_stdin failed*'
                 OR said GLOB 'apply_patch verification failed*' OR said GLOB 'unsupported call*'
                 OR said GLOB 'failed to parse function arguments*'
            THEN 1 END AS refused
FROM (SELECT row, substr(said, 1, 100) AS said,
             CASE WHEN said GLOB 'Chunk ID: *' OR said GLOB 'Wall time: *' OR said GLOB 'Exit code: *'
                       OR said GLOB 'Process exited with code *'
                  THEN char(10) || substr(said, 1, coalesce(
                           nullif(instr(said, char(10) || 'Output:'), 0), 300)) END AS head,
             CASE WHEN substr(said, 1, 1) = '{' AND json_valid(said)
                  THEN coalesce(said -> '$.metadata', said -> '$') END AS meta
      FROM facts);

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
    UPDATE facts SET before = (SELECT ts FROM file) WHERE row = NEW.row;
    UPDATE file SET
        session = coalesce((SELECT session FROM facts WHERE row = NEW.row AND first_meta), session),
        named = named OR EXISTS (SELECT 1 FROM facts WHERE row = NEW.row AND first_meta),
        ts = coalesce((SELECT at FROM facts WHERE row = NEW.row), ts);
    UPDATE facts SET session = (SELECT session FROM file), ts = (SELECT ts FROM file)
    WHERE row = NEW.row;

    -- Whether it is a copy of a line of the parent.
    UPDATE file SET made = NULL
    WHERE (SELECT (f.type = 'turn_context' OR f.type = 'event_msg'
                   AND f.kind IN ('task_started', 'turn_started', 'user_message'))
                  AND f.ts >= file.made
                  AND CASE
                      WHEN f.session GLOB '????????-????-7*'
                           AND NEW.json ->> '$.payload.turn_id' GLOB '????????-????-7*'
                          THEN NEW.json ->> '$.payload.turn_id' > f.session
                      WHEN json_type(NEW.json, '$.payload.started_at') = 'integer'
                          THEN NEW.json ->> '$.payload.started_at' >= file.made / 1000000
                      ELSE f.ts - f.before >= 1000000 END
           FROM facts f WHERE f.row = NEW.row);
    UPDATE facts SET copied = 1 WHERE row = NEW.row AND (SELECT made FROM file) IS NOT NULL;
    UPDATE file SET made = coalesce(time_us(NEW.json ->> '$.payload.timestamp'), ts)
    WHERE nullif(NEW.json ->> '$.payload.forked_from_id', '') IS NOT NULL
      AND (SELECT first_meta FROM facts WHERE row = NEW.row);

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
    UPDATE sessions SET forked = 1
    WHERE session = (SELECT session FROM facts WHERE row = NEW.row AND first_meta)
      AND (SELECT made FROM file) IS NOT NULL;
    UPDATE sessions SET (input, cached, written, output, reasoning, total) = (
        SELECT coalesce(t ->> '$.input_tokens', 0) - coalesce(l ->> '$.input_tokens', 0),
               coalesce(t ->> '$.cached_input_tokens', 0) - coalesce(l ->> '$.cached_input_tokens', 0),
               coalesce(t ->> '$.cache_write_input_tokens', 0)
                   - coalesce(l ->> '$.cache_write_input_tokens', 0),
               coalesce(t ->> '$.output_tokens', 0) - coalesce(l ->> '$.output_tokens', 0),
               coalesce(t ->> '$.reasoning_output_tokens', 0)
                   - coalesce(l ->> '$.reasoning_output_tokens', 0), 0
        FROM (SELECT NEW.json -> '$.payload.info.total_token_usage' AS t,
                     NEW.json -> '$.payload.info.last_token_usage' AS l))
    WHERE forked AND (SELECT made FROM file) IS NULL
      AND session = (SELECT session FROM facts
                     WHERE row = NEW.row AND type = 'event_msg' AND kind = 'token_count')
      AND json_type(NEW.json, '$.payload.info.last_token_usage') = 'object';
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
    UPDATE sessions SET (forked, input, cached, written, output, reasoning, total) = (
        SELECT NULL, f.input + f.base * coalesce(sessions.input, 0),
               f.cached + f.base * coalesce(sessions.cached, 0),
               f.written + f.base * coalesce(sessions.written, 0),
               f.output + f.base * coalesce(sessions.output, 0),
               f.reasoning + f.base * coalesce(sessions.reasoning, 0),
               coalesce(NEW.json ->> '$.payload.info.total_token_usage.total_tokens', 0)
        FROM facts f WHERE f.row = NEW.row)
    WHERE session = (SELECT session FROM facts WHERE row = NEW.row AND base IS NOT NULL);

    -- How a call ended.
    INSERT OR REPLACE INTO ends
    SELECT f.session, p ->> '$.call_id',
           CASE WHEN json_type(p, '$.exit_code') = 'integer' THEN p ->> '$.exit_code' END,
           CAST(p ->> '$.duration.secs' * 1000 + p ->> '$.duration.nanos' / 1000000 AS INTEGER),
           coalesce(p ->> '$.exit_code' <> 0, p ->> '$.status' IN ('failed', 'declined'),
                    p ->> '$.success' = 0)
    FROM facts f, (SELECT NEW.json -> '$.payload' AS p)
    WHERE f.row = NEW.row AND f.type = 'event_msg' AND json_type(p, '$.call_id') = 'text'
      AND f.kind IN ('exec_command_end', 'patch_apply_end');
    UPDATE facts SET said = CASE json_type(NEW.json, '$.payload.output')
            WHEN 'text' THEN NEW.json ->> '$.payload.output'
            WHEN 'array' THEN NEW.json ->> '$.payload.output[0].text'
            WHEN 'object' THEN NEW.json ->> '$.payload.output.content' END
    WHERE row = NEW.row AND type = 'response_item' AND kind LIKE '%\_output' ESCAPE '\';
    UPDATE facts SET (exit_code, ms, failed) = (
        SELECT coalesce(o.exit_code, e.exit_code), coalesce(o.ms, e.ms),
               coalesce(CASE WHEN json_type(NEW.json, '$.payload.output.success') IN ('true', 'false')
                            THEN NOT NEW.json ->> '$.payload.output.success' END,
                        o.exit_code <> 0, o.refused, e.failed)
        FROM outputs o LEFT JOIN ends e
             ON e.session = facts.session AND e.call = NEW.json ->> '$.payload.call_id'
        WHERE o.row = NEW.row)
    WHERE row = NEW.row AND type = 'response_item' AND kind LIKE '%\_output' ESCAPE '\';

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
        WHEN copied IS NULL AND (input <> 0 OR cached <> 0 OR written <> 0 OR output <> 0)
            THEN 'usage'
        ELSE 'record' END
    WHERE row = NEW.row;
END;

-- A line with its facts, and where it came from.
CREATE VIEW work AS
SELECT f.*, l.json AS j, l.unreadable,
       json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', f.n,
                   'record', coalesce(l.json -> '$.ordinal', nullif(l.json -> '$.payload.id', 'null')),
                   'copied', CASE WHEN f.copied THEN 'true' END) AS source,
       json_text(f.turn) AS turn_id
FROM facts f JOIN lines l USING (row) CROSS JOIN source s;

-- batch

SELECT u.session, u.ts, u.type, id, cause,
       CASE WHEN f.at IS NULL AND u.ts > 1
           THEN substr(data, 1, length(data) - 1) || ',"time":"of the line before"}' ELSE data END, line
FROM (
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
           WHEN 'result' THEN CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END
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
               'success', CASE failed WHEN 0 THEN 'true' WHEN 1 THEN 'false' END,
               'output', j -> '$.payload.output', 'exit_code', exit_code, 'duration_ms', ms,
               'turn_id', turn_id, 'source', source,
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
    UNION ALL
    SELECT row, 6, session, ts,
           CASE WHEN j ->> '$.payload.status' IN ('failed', 'incomplete') THEN 'tool.failed'
                ELSE 'tool.returned' END,
           hash || '.6', NULL,
           json_fields(
               'call_id', coalesce(nullif(j -> '$.payload.call_id', 'null'),
                                   nullif(j -> '$.payload.id', 'null'), json_text(hash)),
               'success', CASE WHEN j ->> '$.payload.status' IN ('failed', 'incomplete') THEN 'false'
                               WHEN j ->> '$.payload.status' = 'completed' THEN 'true' END,
               'turn_id', turn_id, 'source', source), n
    FROM work
    WHERE main = 'call' AND coalesce(j ->> '$.payload.status', '') NOT IN ('in_progress', 'searching')
      AND kind IN ('web_search_call', 'image_generation_call', 'file_search_call',
                   'code_interpreter_call', 'mcp_call')
) u JOIN facts f USING (row)
ORDER BY row, k;

DELETE FROM facts;
