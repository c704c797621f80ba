-- importer claude-code   version 3
-- session: sessionId
--
-- The session logs of Claude Code: ~/.claude/projects/<directory>/<session id>.jsonl, sub-agents in
-- files of their own (agent-<id>.jsonl) or inline (isSidechain). docs/events.md lists what comes out;
-- annal/import.h says what an importer finds.
--
--  (1) A line is judged by itself and by the lines before it, never by those behind it, so that what
--      the first lines gave stays when the file grows.
--  (2) A line belongs to the session that it names; one that names none to the session of the last
--      line that did, and before any did to the first session that is named after it (the option
--      session), or else to the one that the file is named after.
--  (3) A side chain is a child session: <session>.agent-<agent id>, or, when its lines name no agent,
--      <session>.side-<uuid of its first line>.
--  (4) The first event made from a line carries the line under "extra", less what is in the
--      fields of the line's events. Values are copied as JSON text (->), which keeps every digit and
--      every escape.
--  (5) An event's id is made of the bytes of its line, so the same line imported again, from a copy or
--      a slice of the file too, is the same event. session.created has an id of its own.
--  (6) Usage is repeated on every line of a message. The first line's counts; when a later line
--      has more output tokens, its usage replaces what was counted, and the difference is an event.
--  (7) A turn starts with what a human (or a task notice) said, and ends with turn_duration, with an
--      interruption, or, when the log has neither, where the next one starts.
--  (8) A line without time has the time of the line before it in the file; "time" in the data says so.
--      Where there is none it is 1, which is no time, and created_at of the session follows in a
--      session.updated once a time is known.
--  (9) A session is called as its user calls it (custom-title), else as the program does (ai-title),
--      else as a summary says whose leaf is a line of that session. Most summaries at the head of a
--      file are about other sessions.

-- detect
SELECT max(CASE
    WHEN json_type(json, '$.sessionId') = 'text' AND json ->> '$.type' IN ('user', 'assistant') THEN 95
    WHEN json ->> '$.type' = 'summary' AND json_type(json, '$.leafUuid') = 'text' THEN 90
    WHEN json_type(json, '$.sessionId') = 'text' AND json_type(json, '$.type') = 'text'
         AND json_type(json, '$.projectHash') IS NULL THEN 60
    ELSE 0 END) FROM lines

-- once

-- What is known of the file so far.
CREATE TABLE file (session TEXT, ts INTEGER);
INSERT INTO file
SELECT session_id(coalesce((SELECT value FROM options WHERE name = 'session'), stem)), 1 FROM source;

-- What is known of each session so far. turn: the open one; turns: how many have begun; leaf: its
-- last message; rank: who gave the name, rule (9).
CREATE TABLE sessions (
    session TEXT PRIMARY KEY, dated INTEGER, model TEXT, cwd TEXT, branch TEXT, name TEXT,
    turn TEXT, turns INTEGER, leaf TEXT, rank INTEGER
) WITHOUT ROWID;

-- Summaries whose leaf may come later.
CREATE TABLE summaries (leaf TEXT PRIMARY KEY, summary TEXT) WITHOUT ROWID;

-- Lines of inline side chains: which child session they belong to.
CREATE TABLE chains (uuid TEXT PRIMARY KEY, session TEXT) WITHOUT ROWID;

-- What was counted for each message.
CREATE TABLE usage (
    session TEXT, message TEXT, input INTEGER, cached INTEGER, written INTEGER, output INTEGER,
    PRIMARY KEY (session, message)
) WITHOUT ROWID;

-- What was found out about each line of the batch.
CREATE TABLE facts (
    row INTEGER PRIMARY KEY, n INTEGER, hash TEXT,
    type TEXT, subtype TEXT, uuid TEXT, up TEXT, side INTEGER, agent TEXT, parent TEXT, at INTEGER,
    model TEXT, cwd TEXT, branch TEXT, name TEXT, text TEXT, calls INTEGER, results INTEGER,
    others INTEGER, human INTEGER, interrupted INTEGER, message TEXT,
    input INTEGER, cached INTEGER, written INTEGER, output INTEGER,
    session TEXT, ts INTEGER, is_new INTEGER, dates INTEGER, new_model TEXT, new_cwd TEXT,
    new_branch TEXT, new_name TEXT, ended TEXT, turn TEXT, turns INTEGER, main TEXT,
    rank INTEGER
);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    -- What the line itself says.
    INSERT INTO facts (row, n, hash, type, subtype, uuid, up, side, agent, at, model, cwd, branch,
                       name, rank, text, message, input, cached, written, output, session)
    SELECT NEW.row, NEW.n, NEW.hash, j ->> '$.type', j ->> '$.subtype', j ->> '$.uuid',
           j ->> '$.parentUuid', coalesce(j ->> '$.isSidechain' = 1, 0), j ->> '$.agentId',
           coalesce(time_us(j ->> '$.timestamp'), time_us(j ->> '$.snapshot.timestamp')),
           nullif(j ->> '$.message.model', '<synthetic>'), j ->> '$.cwd', j ->> '$.gitBranch',
           coalesce(j ->> '$.customTitle', j ->> '$.aiTitle'),
           CASE WHEN j ->> '$.customTitle' <> '' THEN 3 WHEN j ->> '$.aiTitle' <> '' THEN 2 END,
           CASE json_type(j, '$.message.content')
               WHEN 'text' THEN j ->> '$.message.content'
               WHEN 'array' THEN j ->> '$.message.content[0].text' END,
           CASE WHEN json_type(j, '$.message.usage') = 'object'
               THEN coalesce(j ->> '$.message.id', j ->> '$.uuid', NEW.hash)
                    || ' ' || coalesce(j ->> '$.requestId', '') END,
           CAST(coalesce(j ->> '$.message.usage.input_tokens', 0) AS INTEGER),
           CAST(coalesce(j ->> '$.message.usage.cache_read_input_tokens', 0) AS INTEGER),
           CAST(coalesce(j ->> '$.message.usage.cache_creation_input_tokens', 0) AS INTEGER),
           CAST(coalesce(j ->> '$.message.usage.output_tokens', 0) AS INTEGER),
           session_id(nullif(j ->> '$.sessionId', ''))
    FROM (SELECT NEW.json AS j);

    UPDATE file SET
        session = coalesce((SELECT session FROM facts WHERE row = NEW.row), session),
        ts = coalesce((SELECT at FROM facts WHERE row = NEW.row), ts);
    UPDATE facts SET
        session = (SELECT session FROM file),
        ts = (SELECT ts FROM file)
    WHERE row = NEW.row;

    -- What a summary says of a session that is known, or of a line that comes later.
    UPDATE facts SET (session, name, rank) = (
        SELECT s.session, NEW.json ->> '$.summary', 1 FROM sessions s
        WHERE s.leaf = NEW.json ->> '$.leafUuid' LIMIT 1)
    WHERE row = NEW.row AND type = 'summary'
      AND EXISTS (SELECT 1 FROM sessions s WHERE s.leaf = NEW.json ->> '$.leafUuid');
    INSERT OR REPLACE INTO summaries
    SELECT NEW.json ->> '$.leafUuid', NEW.json ->> '$.summary'
    FROM facts WHERE row = NEW.row AND type = 'summary' AND rank IS NULL
      AND json_type(NEW.json, '$.leafUuid') = 'text';
    UPDATE facts SET (name, rank) = (SELECT summary, 1 FROM summaries WHERE leaf = facts.uuid)
    WHERE row = NEW.row AND uuid IN (SELECT leaf FROM summaries);

    -- Its content blocks: calls of tools, results of tools, others.
    UPDATE facts SET (calls, results, others) = (
        SELECT coalesce(sum(kind LIKE '%tool_use'), 0), coalesce(sum(kind LIKE '%tool_result'), 0),
               coalesce(sum(kind NOT LIKE '%tool_use' AND kind NOT LIKE '%tool_result'), 0)
        FROM (SELECT CASE WHEN type = 'object' THEN coalesce(value ->> '$.type', '') ELSE '' END AS kind
              FROM json_each(NEW.json, '$.message.content')))
    WHERE row = NEW.row AND json_type(NEW.json, '$.message.content') = 'array';

    -- Its session, when it is one of a side chain.
    UPDATE facts SET
        parent = session,
        session = session_id(coalesce(
            session || '.agent-' || coalesce(agent,
                (SELECT substr(stem, 7) FROM source WHERE stem LIKE 'agent-_%')),
            (SELECT c.session FROM chains c WHERE c.uuid = facts.up),
            session || '.side-' || coalesce(uuid, hash)))
    WHERE row = NEW.row AND side;
    INSERT OR IGNORE INTO chains
    SELECT uuid, session FROM facts WHERE row = NEW.row AND side AND agent IS NULL AND uuid IS NOT NULL;

    -- What is new about the session.
    UPDATE facts SET is_new = 1
    WHERE row = NEW.row AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = facts.session);
    INSERT INTO sessions (session, turns) SELECT session, 0 FROM facts WHERE row = NEW.row AND is_new;
    UPDATE facts SET (dates, new_model, new_cwd, new_branch, new_name) = (
        SELECT CASE WHEN s.dated IS NULL AND facts.ts > 1 THEN 1 END,
               CASE WHEN facts.model IS NOT s.model THEN facts.model END,
               CASE WHEN facts.cwd IS NOT s.cwd THEN facts.cwd END,
               CASE WHEN facts.branch IS NOT s.branch THEN facts.branch END,
               CASE WHEN facts.name IS NOT s.name AND facts.rank >= coalesce(s.rank, 0)
                   THEN facts.name END
        FROM sessions s WHERE s.session = facts.session)
    WHERE row = NEW.row;
    UPDATE sessions SET (dated, model, cwd, branch, name, rank, leaf) = (
        SELECT coalesce(dated, f.dates), coalesce(f.model, sessions.model), coalesce(f.cwd, sessions.cwd),
               coalesce(f.branch, sessions.branch), coalesce(f.new_name, sessions.name),
               CASE WHEN f.new_name IS NOT NULL THEN f.rank ELSE sessions.rank END,
               CASE WHEN f.type IN ('user', 'assistant') THEN coalesce(f.uuid, sessions.leaf)
                    ELSE sessions.leaf END
        FROM facts f WHERE f.row = NEW.row)
    WHERE session = (SELECT session FROM facts WHERE row = NEW.row);

    -- What it adds to what was counted for its message.
    UPDATE facts SET message = NULL
    WHERE row = NEW.row AND EXISTS (
        SELECT 1 FROM usage u
        WHERE u.session = facts.session AND u.message = facts.message AND u.output >= facts.output);
    INSERT OR IGNORE INTO usage
    SELECT session, message, 0, 0, 0, 0 FROM facts WHERE row = NEW.row AND message IS NOT NULL;
    UPDATE facts SET (input, cached, written, output) = (
        SELECT facts.input - u.input, facts.cached - u.cached, facts.written - u.written,
               facts.output - u.output
        FROM usage u WHERE u.session = facts.session AND u.message = facts.message)
    WHERE row = NEW.row AND message IS NOT NULL;
    UPDATE usage SET (input, cached, written, output) = (
        SELECT usage.input + f.input, usage.cached + f.cached, usage.written + f.written,
               usage.output + f.output
        FROM facts f WHERE f.row = NEW.row)
    WHERE (session, message) = (SELECT session, message FROM facts WHERE row = NEW.row);

    -- Turns.
    UPDATE facts SET interrupted = 1
    WHERE row = NEW.row AND type = 'user' AND text LIKE '[Request interrupted by user%';
    UPDATE facts SET human = 1
    WHERE row = NEW.row AND type = 'user' AND NOT side AND NOT coalesce(results, 0)
      AND interrupted IS NULL AND json_type(NEW.json, '$.message.content') IS NOT NULL
      AND coalesce(NEW.json ->> '$.isMeta', 0) IS NOT 1
      AND coalesce(NEW.json ->> '$.isCompactSummary', 0) IS NOT 1
      AND coalesce(text, '') NOT LIKE '<local-command-%' AND coalesce(text, '') NOT LIKE '<bash-%';
    UPDATE facts SET ended = (SELECT s.turn FROM sessions s WHERE s.session = facts.session)
    WHERE row = NEW.row
      AND (human OR interrupted OR (type = 'system' AND subtype = 'turn_duration'));
    UPDATE sessions SET turn = NULL
    WHERE turn = (SELECT ended FROM facts WHERE row = NEW.row)
      AND session = (SELECT session FROM facts WHERE row = NEW.row);
    UPDATE sessions SET
        turn = (SELECT coalesce(uuid, hash) FROM facts WHERE row = NEW.row),
        turns = turns + 1
    WHERE session = (SELECT session FROM facts WHERE row = NEW.row AND human);
    UPDATE facts SET (turn, turns) = (
        SELECT coalesce(s.turn, CASE WHEN facts.human IS NULL THEN facts.ended END), s.turns
        FROM sessions s WHERE s.session = facts.session)
    WHERE row = NEW.row;

    -- Which event carries the line.
    UPDATE facts SET main = CASE
        WHEN NEW.json IS NULL THEN 'unreadable'
        WHEN type IN ('user', 'assistant') AND json_type(NEW.json, '$.message.content') IS NOT NULL
            THEN CASE WHEN coalesce(others, 0) > 0 OR coalesce(calls + results, 0) = 0
                 THEN 'message' ELSE 'tool' END
        WHEN type = 'system' AND subtype = 'turn_duration' AND ended IS NOT NULL THEN 'turn'
        WHEN type = 'system' AND subtype = 'compact_boundary' THEN 'checkpoint'
        WHEN type = 'system' AND subtype = 'api_error' THEN 'failed'
        ELSE 'record' END
    WHERE row = NEW.row;
END;

-- A line with its facts, and where it came from.
CREATE VIEW work AS
SELECT f.*, l.json AS j, l.unreadable,
       json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', f.n,
                   'record', l.json -> '$.uuid') AS source,
       CASE WHEN f.turn IS NOT NULL THEN json_text(f.turn) END AS turn_id
FROM facts f JOIN lines l USING (row) CROSS JOIN source s;

-- The content blocks of a line that are calls or results of tools.
CREATE VIEW blocks AS
SELECT w.*, b.key AS at_block, w.j -> b.fullkey AS block,
       CASE WHEN b.value ->> '$.type' LIKE '%tool_use' THEN 'call' ELSE 'result' END AS kind,
       row_number() OVER (PARTITION BY w.row ORDER BY b.key) AS nth
FROM work w JOIN json_each(w.j, '$.message.content') b
WHERE w.calls + w.results > 0
  AND CASE WHEN b.type = 'object' THEN b.value ->> '$.type' LIKE '%tool_use'
                                    OR b.value ->> '$.type' LIKE '%tool_result' END;

-- What stays of a line's content when the tool blocks gave their values to events, and what of it is
-- the message.
CREATE VIEW contents AS
SELECT w.row,
       CASE WHEN coalesce(w.calls + w.results, 0) = 0 THEN w.j -> '$.message.content'
       ELSE (SELECT json_group_array(json(piece)) FROM (
                 SELECT w.j -> b.fullkey AS piece FROM json_each(w.j, '$.message.content') b
                 WHERE CASE WHEN b.type = 'object' THEN coalesce(b.value ->> '$.type', '') ELSE '' END
                           NOT LIKE '%tool_use'
                   AND CASE WHEN b.type = 'object' THEN coalesce(b.value ->> '$.type', '') ELSE '' END
                           NOT LIKE '%tool_result'
                 ORDER BY b.key)) END AS content,
       CASE WHEN w.calls + w.results > 0
       THEN (SELECT json_group_array(json(piece)) FROM (
                 SELECT json_remove(b.block, '$.id', '$.name', '$.input', '$.tool_use_id', '$.content')
                            AS piece
                 FROM blocks b WHERE b.row = w.row ORDER BY b.at_block)) END AS rest
FROM work w WHERE w.main IN ('message', 'tool');

-- batch

SELECT u.session, u.ts, u.type, id, cause,
       CASE WHEN f.at IS NULL AND u.ts > 1
           THEN substr(data, 1, length(data) - 1) || ',"time":"of the line before"}' ELSE data END, line
FROM (
    SELECT row, 0 AS k, session, ts, 'session.created' AS type, 'session.created' AS id, NULL AS cause,
           json_fields('id', json_text(session), 'agent_id', '"claude-code"', 'provider', '"anthropic"',
                       'model', json_text(model), 'status', '"idle"',
                       'working_directory', json_text(cwd), 'git_branch', json_text(branch),
                       'parent_session_id', json_text(parent),
                       'created_at', CASE WHEN at IS NOT NULL THEN
                           coalesce(j -> '$.timestamp', j -> '$.snapshot.timestamp') END,
                       'source', source) AS data,
           n AS line
    FROM work WHERE is_new
    UNION ALL
    SELECT row, 1, session, ts, 'session.updated', hash || '.1', NULL,
           json_fields('set', json_fields(
                           'created_at', CASE WHEN dates AND at IS NOT NULL THEN
                               coalesce(j -> '$.timestamp', j -> '$.snapshot.timestamp') END,
                           'model', json_text(new_model), 'working_directory', json_text(new_cwd),
                           'git_branch', json_text(new_branch), 'title', json_text(new_name)),
                       'source', source), n
    FROM work WHERE (is_new IS NULL AND (dates IS NOT NULL AND at IS NOT NULL OR new_model IS NOT NULL OR
                     new_cwd IS NOT NULL OR new_branch IS NOT NULL)) OR new_name IS NOT NULL
    UNION ALL
    SELECT row, 2, session, ts, CASE WHEN interrupted THEN 'turn.cancelled' ELSE 'turn.completed' END,
           hash || '.2', NULL,
           json_fields('turn_id', json_text(ended),
                       'reason', CASE WHEN interrupted THEN '"interrupted"' ELSE '"next_turn"' END,
                       'source', source), n
    FROM work WHERE ended IS NOT NULL AND main <> 'turn'
    UNION ALL
    SELECT row, 3, session, ts, 'turn.started', hash || '.3', NULL,
           json_fields('turn_id', turn_id, 'sequence', turns, 'status', '"running"',
                       'prompt_ref', coalesce(j -> '$.uuid', json_text(hash)), 'source', source), n
    FROM work WHERE human
    UNION ALL
    -- The event that carries the line.
    SELECT w.row, 4, session, ts,
           CASE main WHEN 'message' THEN 'message.added' WHEN 'checkpoint' THEN 'checkpoint.noted'
                     WHEN 'failed' THEN 'provider.failed' WHEN 'turn' THEN 'turn.completed'
                     WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END,
           hash || '.4', NULL,
           CASE main
           WHEN 'message' THEN json_fields(
               'id', coalesce(j -> '$.uuid', json_text(hash)),
               'role', coalesce(j -> '$.message.role', json_text(w.type)),
               'content', c.content, 'message_id', j -> '$.message.id', 'model', j -> '$.message.model',
               'stop_reason', j -> '$.message.stop_reason', 'turn_id', turn_id, 'source', source,
               'extra', CASE WHEN c.rest IS NULL
                   THEN json_remove(j, '$.uuid', '$.message.role', '$.message.id', '$.message.model',
                                    '$.message.stop_reason', '$.message.content')
                   ELSE json_set(json_remove(j, '$.uuid', '$.message.role', '$.message.id',
                                             '$.message.model', '$.message.stop_reason'),
                                 '$.message.content', json(c.rest)) END)
           WHEN 'turn' THEN json_fields(
               'turn_id', json_text(ended),
               'timing', json_fields('totalMs', j -> '$.durationMs'), 'source', source,
               'extra', json_remove(j, '$.uuid', '$.durationMs'))
           WHEN 'checkpoint' THEN json_fields(
               'note', '"compaction"', 'trigger', j -> '$.compactMetadata.trigger',
               'pre_tokens', j -> '$.compactMetadata.preTokens', 'turn_id', turn_id, 'source', source,
               'extra', json_remove(j, '$.uuid', '$.compactMetadata.trigger',
                                    '$.compactMetadata.preTokens'))
           WHEN 'failed' THEN json_fields(
               'provider', '"anthropic"', 'error', j -> '$.error', 'turn_id', turn_id, 'source', source,
               'extra', json_remove(j, '$.uuid', '$.error'))
           WHEN 'unreadable' THEN json_set(unreadable, '$.source', json(source))
           ELSE json_fields(
               'kind', j -> '$.type', 'turn_id', turn_id, 'source', source,
               'extra', CASE json_type(j) WHEN 'object' THEN json_remove(j, '$.type', '$.uuid') ELSE j END)
           END, n
    FROM work w LEFT JOIN contents c USING (row) WHERE main <> 'tool'
    UNION ALL
    SELECT b.row, 4 + nth, session, ts,
           CASE WHEN kind = 'call' THEN 'tool.called'
                WHEN block ->> '$.is_error' = 1 THEN 'tool.failed' ELSE 'tool.returned' END,
           hash || '.' || (4 + nth), NULL,
           json_fields(
               'call_id', coalesce(block -> '$.tool_use_id', block -> '$.id'),
               'tool', CASE WHEN kind = 'call' THEN block -> '$.name' END,
               'input', CASE WHEN kind = 'call' THEN block -> '$.input' END,
               'success', CASE WHEN kind = 'result' THEN
                   CASE WHEN block ->> '$.is_error' = 1 THEN 'false' ELSE 'true' END END,
               'output', CASE WHEN kind = 'result' THEN block -> '$.content' END,
               'message_id', j -> '$.message.id', 'turn_id', turn_id, 'source', source,
               'extra', CASE WHEN main = 'tool' AND nth = 1 THEN
                   json_set(json_remove(j, '$.uuid', '$.message.id'), '$.message.content', json(c.rest))
                   END), n
    FROM blocks b JOIN contents c USING (row)
    UNION ALL
    SELECT row, 100000, session, ts, 'agent.turn.usage', hash || '.usage', NULL,
           json_fields('message_id', coalesce(j -> '$.message.id', j -> '$.uuid'),
                       'model', j -> '$.message.model', 'input_tokens', input + cached + written,
                       'output_tokens', output, 'cached_input_tokens', cached,
                       'cache_write_tokens', written,
                       'total_tokens', input + cached + written + output,
                       'turn_id', turn_id, 'source', source), n
    FROM work
    WHERE message IS NOT NULL AND (input <> 0 OR cached <> 0 OR written <> 0 OR output <> 0)
) u JOIN facts f USING (row)
ORDER BY row, k;

DELETE FROM facts;
