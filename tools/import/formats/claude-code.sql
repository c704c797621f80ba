-- importer claude-code   version 4
-- SPDX-License-Identifier: Apache-2.0
-- records: attachment summary progress file-history-* system last-prompt pr-link queue-operation *-title permission-mode
-- records: bridge-session mode agent-* tag result started worktree-* content-replacement
-- session: sessionId of
-- beside: journal.jsonl history.jsonl
-- texts: tool-results/*.txt tool-results/*.json
--
-- The session logs of Claude Code: ~/.claude/projects/<directory>/<session id>.jsonl, sub-agents in
-- files of their own (agent-<id>.jsonl) or inline (isSidechain); long results of tools in texts of
-- their own. docs/events.md lists what comes out; annal/import.h says what an importer finds.
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
--      interruption, or with an answer. More lines of a message, and more work, may follow an answer, so
--      the event of its end comes where the next turn starts or the log ends, with the time of the
--      answer and an id made of the turn's. A turn without an answer ends where the next one starts.
--      What the API refuses ends a turn as failed.
--  (8) A line without time has the time of the line before it in the file; "time" in the data says so.
--      If no line before it has one, it is 1, which means no time. created_at of the session is its
--      first line's, or follows in a session.updated once a time, or an earlier one, is known. The time
--      inside a snapshot is not the line's.
--  (9) A session is called as its user calls it (custom-title), else as the program does (ai-title),
--      else as a summary says whose leaf is a line of that session. Most summaries at the head of a
--      file are about other sessions.
-- (10) A session that is gone on with may copy lines that it has, under other uuids. A call of a tool
--      that it has already, or its result, is a record: it was called once.

-- detect
-- Qwen Code has message.parts; iFlow ids of sessions that begin with session-, and results of tools as Gemini has them.
SELECT CASE WHEN max(json_type(json, '$.message.parts') IS NOT NULL OR json ->> '$.message.role' IS 'model'
                     OR json ->> '$.sessionId' LIKE 'session-%'
                     OR json_type(json, '$.message.content[0].content') IS 'object') THEN 0
    ELSE max(CASE
    WHEN json_type(json, '$.sessionId') = 'text' AND json ->> '$.type' IN ('user', 'assistant')
         AND json_type(json, '$.message.content') IN ('text', 'array') THEN 95
    WHEN json ->> '$.type' = 'summary' AND json_type(json, '$.leafUuid') = 'text' THEN 90
    WHEN json_type(json, '$.sessionId') = 'text' AND json_type(json, '$.projectHash') IS NULL
         AND (json ->> '$.type' IN ('system', 'progress', 'attachment', 'user', 'assistant', 'queue-operation', 'last-prompt',
                                    'custom-title', 'ai-title', 'permission-mode', 'pr-link', 'mode')
              OR json_type(json, '$.messageId') = 'text') THEN 60
    ELSE 0 END) END FROM lines

-- once
-- What Claude Code adds to what its user says, and a version that writes it. annal/import.h: said().
CREATE VIEW added (begins, ends, seen_in) AS VALUES
    ('<system-reminder>', '</system-reminder>', '1.0.98'),
    ('<ide_opened_file>', '</ide_opened_file>', '2.1.11'),
    ('<ide_selection>', '</ide_selection>', '2.1.11'),
    ('<ide_diagnostics>', '</ide_diagnostics>', '2.1.11'),
    ('<local-command-caveat>', '</local-command-caveat>', '2.1.109'),
    ('<local-command-stdout>', '</local-command-stdout>', '2.0.27'),
    ('<local-command-stderr>', '</local-command-stderr>', '2.0.27'),
    ('<bash-input>', '</bash-input>', '2.0.27'),
    ('<bash-stdout>', '</bash-stdout>', '2.0.27'),
    ('<bash-stderr>', '</bash-stderr>', '2.0.27'),
    ('<command-contents>', '</command-contents>', '2.0.27'),
    ('<task-notification>', '</task-notification>', '2.1.9'),
    ('<user-prompt-submit-hook>', '</user-prompt-submit-hook>', '2.0.27'),
    ('<uploaded_files>', '</uploaded_files>', '2.0.27'),
    ('Caveat: The messages below were generated by the user while running local commands', NULL, '1.0.98'),
    ('This session is being continued from a previous conversation', NULL, '1.0.98'),
    ('Your task is to create a detailed summary of the conversation', NULL, '2.1.6'),
    ('[Request interrupted by user', NULL, '2.1.6');

-- What is known of the file so far: its session and time. kind and name are JSON.
CREATE TABLE file (session TEXT, ts INTEGER, kind TEXT, name TEXT);
INSERT INTO file
SELECT session_id(coalesce((SELECT value FROM options WHERE name = 'session'), stem)), 1,
       json_text(kind), json_text(file) FROM source;

-- What is known of each session so far. dated: its earliest time; turn: the open one; turns: how
-- many have begun; leaf: its last message; rank: who gave the name, rule (9). rest: how the open
-- turn ends if nothing follows; rest_…: of the line that says so; rested: a line has said so.
CREATE TABLE sessions (
    session TEXT PRIMARY KEY, dated INTEGER, model TEXT, cwd TEXT, branch TEXT, name TEXT,
    rank INTEGER, turn TEXT, turns INTEGER, leaf TEXT, rest TEXT, rest_error TEXT, rest_ts INTEGER,
    rest_n INTEGER, rested INTEGER
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

-- Calls of tools ('c id') and their results ('r id').
CREATE TABLE calls (session TEXT, call TEXT, PRIMARY KEY (session, call)) WITHOUT ROWID;

-- What was found out about each line of the batch. said: the session of the file after it; blocks:
-- a letter for each block of its content, c for a call of a tool, r for a result, o for others; new_…:
-- what the session did not have before; more_…: what was not counted before; main: what the line
-- itself becomes; rest: how the turn ends if nothing follows, 'open' if it does not; end_…: of the
-- turn that ends here.
CREATE TABLE facts (
    row INTEGER PRIMARY KEY, n INTEGER, type TEXT, uuid TEXT, said TEXT, session TEXT, parent TEXT, agent TEXT,
    at INTEGER, ts INTEGER, blocks TEXT, interrupted INTEGER, human INTEGER, ended TEXT, turn TEXT,
    turns INTEGER, is_new INTEGER, dates INTEGER, new_model TEXT, new_cwd TEXT, new_branch TEXT,
    new_name TEXT, rank INTEGER, leaf TEXT, summary TEXT, message TEXT, input INTEGER,
    cached INTEGER, written INTEGER, output INTEGER, more_input INTEGER, more_cached INTEGER,
    more_written INTEGER, more_output INTEGER, call TEXT, main TEXT, rest TEXT, error TEXT,
    end_type TEXT, end_id TEXT, end_ts INTEGER, end_error TEXT
);

-- The events that a line may give, in their order.
CREATE TABLE kinds (k INTEGER PRIMARY KEY);
INSERT INTO kinds VALUES (0), (1), (2), (3), (4), (5), (6), (100000);

-- What each line of the batch says by itself.
CREATE VIEW said AS
SELECT row, n, hash, j IS NULL AS unreadable, j ->> '$.type' AS type, j ->> '$.subtype' AS subtype,
       j ->> '$.uuid' AS uuid, j ->> '$.parentUuid' AS up, j ->> '$.isSidechain' IS 1 AS side,
       j ->> '$.agentId' AS agent, session_id(nullif(j ->> '$.sessionId', '')) AS session,
       time_us(j ->> '$.timestamp') AS at,
       nullif(j ->> '$.message.model', '<synthetic>') AS model, j ->> '$.cwd' AS cwd,
       j ->> '$.gitBranch' AS branch, coalesce(j ->> '$.customTitle', j ->> '$.aiTitle') AS title,
       CASE WHEN j ->> '$.customTitle' <> '' THEN 3 WHEN j ->> '$.aiTitle' <> '' THEN 2 END AS rank,
       CASE WHEN j ->> '$.type' = 'summary' THEN j ->> '$.leafUuid' END AS leaf,
       CASE WHEN j ->> '$.type' = 'summary' THEN j ->> '$.summary' END AS summary,
       json_type(j, '$.leafUuid') IS 'text' AS has_leaf,
       j ->> '$.isMeta' IS 1 OR j ->> '$.isCompactSummary' IS 1 AS meta,
       json_type(j, '$.message.content') AS shape,
       substr(CASE json_type(j, '$.message.content')
                  WHEN 'text' THEN j ->> '$.message.content'
                  WHEN 'array' THEN j ->> '$.message.content[0].text' END, 1, 40) AS text,
       CASE WHEN json_type(j, '$.message.content') = 'array' THEN
           (SELECT group_concat(CASE WHEN b.type <> 'object' THEN 'o'
                                     WHEN b.value ->> '$.type' LIKE '%tool_use' THEN 'c'
                                     WHEN b.value ->> '$.type' LIKE '%tool_result' THEN 'r'
                                     ELSE 'o' END, '')
            FROM json_each(j, '$.message.content') b) END AS blocks,
       coalesce(j ->> '$.message.content[0].id', j ->> '$.message.content[0].tool_use_id') AS call,
       CASE WHEN json_type(j, '$.message.usage') = 'object'
           THEN coalesce(j ->> '$.message.id', j ->> '$.uuid', hash)
                || ' ' || coalesce(j ->> '$.requestId', '') END AS message,
       CAST(coalesce(j ->> '$.message.usage.input_tokens', 0) AS INTEGER) AS input,
       CAST(coalesce(j ->> '$.message.usage.cache_read_input_tokens', 0) AS INTEGER) AS cached,
       CAST(coalesce(j ->> '$.message.usage.cache_creation_input_tokens', 0) AS INTEGER) AS written,
       CAST(coalesce(j ->> '$.message.usage.output_tokens', 0) AS INTEGER) AS output,
       CASE WHEN j ->> '$.isApiErrorMessage' IS 1
                THEN coalesce(j -> '$.message.content[0].text', j -> '$.error', '"API error"')
            WHEN j ->> '$.type' = 'system' AND j ->> '$.subtype' = 'api_error'
                THEN coalesce(j -> '$.error.message', nullif(j -> '$.error', '{}'), '"API error"')
            END AS error,
       CASE WHEN j ->> '$.type' = 'assistant' THEN
           coalesce(j ->> '$.message.stop_reason',
                    CASE WHEN j ->> '$.message.content[0].type' = 'text' THEN 'end_turn' END, '')
           END AS stop
FROM (SELECT row, n, hash, line_json(row) AS j FROM lines) ORDER BY row;

-- One line after the other: whose it is, then what it changes there. A LIMIT makes SQLite compute a
-- column once, and not wherever the query around it uses it.
CREATE TRIGGER line INSTEAD OF INSERT ON said BEGIN
    INSERT INTO facts
    SELECT NEW.row, NEW.n, NEW.type, NEW.uuid, x.said, x.session, x.parent, NEW.agent, NEW.at, x.ts, NEW.blocks,
           x.interrupted, x.human, CASE WHEN x.ends THEN s.turn END,
           CASE WHEN x.human THEN coalesce(NEW.uuid, NEW.hash) ELSE s.turn END,
           coalesce(s.turns, 0) + x.human, s.session IS NULL,
           coalesce(NEW.at < coalesce(s.dated, NEW.at + 1), 0),
           CASE WHEN NEW.model IS NOT s.model THEN NEW.model END,
           CASE WHEN NEW.cwd IS NOT s.cwd THEN NEW.cwd END,
           CASE WHEN NEW.branch IS NOT s.branch THEN NEW.branch END,
           CASE WHEN x.name IS NOT s.name AND x.rank >= coalesce(s.rank, 0) THEN x.name END, x.rank,
           CASE WHEN x.summarizes IS NULL AND NEW.has_leaf THEN NEW.leaf END, NEW.summary,
           CASE WHEN NEW.output > coalesce(u.output, -1) THEN NEW.message END,
           NEW.input, NEW.cached, NEW.written, NEW.output,
           NEW.input - coalesce(u.input, 0), NEW.cached - coalesce(u.cached, 0),
           NEW.written - coalesce(u.written, 0), NEW.output - coalesce(u.output, 0),
           CASE WHEN NEW.blocks IN ('c', 'r') THEN NEW.blocks || ' ' || NEW.call END,
           CASE
           WHEN NEW.unreadable THEN 'unreadable'
           WHEN NEW.blocks IN ('c', 'r') AND EXISTS (
               SELECT 1 FROM calls c
               WHERE c.session = x.session AND c.call = NEW.blocks || ' ' || NEW.call) THEN 'record'
           WHEN NEW.type IN ('user', 'assistant') AND NEW.shape IS NOT NULL THEN
               CASE WHEN NEW.blocks <> '' AND trim(NEW.blocks, 'cr') = '' THEN 'tool' ELSE 'message' END
           WHEN NEW.type = 'tool-results' THEN 'text'
           WHEN NEW.type IS NOT 'system' THEN 'record'
           WHEN NEW.subtype = 'turn_duration' AND s.turn IS NOT NULL THEN 'turn'
           WHEN NEW.subtype = 'compact_boundary' THEN 'checkpoint'
           WHEN NEW.subtype = 'api_error' THEN 'failed'
           ELSE 'record' END,
           CASE WHEN NEW.error IS NOT NULL THEN 'turn.failed'
                WHEN NEW.blocks LIKE '%c%' OR NEW.blocks LIKE '%r%' THEN 'open'
                WHEN NEW.type = 'user' AND NEW.text LIKE '<local-command-std%' THEN 'turn.completed'
                WHEN NEW.stop IN ('end_turn', 'stop_sequence', 'refusal') THEN 'turn.completed'
                WHEN NEW.stop IS NOT NULL THEN 'open' END,
           NEW.error,
           CASE WHEN x.interrupted THEN 'turn.cancelled' ELSE coalesce(nullif(s.rest, 'open'), 'turn.completed') END,
           CASE WHEN s.rested THEN s.turn || '.ends' ELSE NEW.hash || '.2' END,
           CASE WHEN s.rest <> 'open' AND NOT x.interrupted THEN s.rest_ts ELSE x.ts END,
           CASE WHEN s.rest <> 'open' AND NOT x.interrupted THEN s.rest_error END
    FROM (
        SELECT w.*, CASE WHEN NEW.side THEN w.base END AS parent,
               CASE WHEN NOT NEW.side THEN w.base ELSE session_id(coalesce(
                   w.base || '.agent-' || coalesce(NEW.agent,
                       (SELECT substr(stem, 7) FROM source WHERE stem LIKE 'agent-_%')),
                   (SELECT c.session FROM chains c WHERE c.uuid = NEW.up),
                   w.base || '.side-' || coalesce(NEW.uuid, NEW.hash))) END AS session,
               w.human OR w.interrupted OR (NEW.type IS 'system' AND NEW.subtype IS 'turn_duration')
                   AS ends
        FROM (
            SELECT coalesce(NEW.session, f.session) AS said, coalesce(NEW.at, f.ts) AS ts,
                   coalesce(f.summarizes, NEW.session, f.session) AS base,
                   CASE WHEN m.leaf IS NOT NULL THEN m.summary
                        WHEN f.summarizes IS NOT NULL THEN NEW.summary ELSE NEW.title END AS name,
                   CASE WHEN coalesce(m.leaf, f.summarizes) IS NOT NULL THEN 1 ELSE NEW.rank END AS rank,
                   f.summarizes,
                   coalesce(NEW.type = 'user' AND NEW.text LIKE '[Request interrupted by user%', 0)
                       AS interrupted,
                   coalesce(NEW.type = 'user', 0) AND NEW.shape IS NOT NULL AND NOT NEW.side
                       AND NOT NEW.meta AND coalesce(NEW.blocks, '') NOT LIKE '%r%'
                       AND coalesce(NEW.text, '') NOT LIKE '[Request interrupted by user%'
                       AND coalesce(NEW.text, '') NOT LIKE '<local-command-%'
                       AND coalesce(NEW.text, '') NOT LIKE '<bash-%' AS human
            FROM (SELECT session, ts, CASE WHEN NEW.leaf IS NOT NULL THEN
                      (SELECT k.session FROM sessions k WHERE k.leaf = NEW.leaf) END AS summarizes
                  FROM file LIMIT 1) f
            LEFT JOIN summaries m ON m.leaf = NEW.uuid
            LIMIT 1) w
        LIMIT 1) x
    LEFT JOIN sessions s ON s.session = x.session
    LEFT JOIN usage u ON u.session = x.session AND u.message = NEW.message;
    INSERT INTO left_behind VALUES (NEW.row);
END;

-- What a line leaves behind. It is a trigger of its own because SQLite first puts aside the rows of
-- an INSERT into a table that its program has read.
CREATE VIEW left_behind (row) AS VALUES (0);
CREATE TRIGGER leave INSTEAD OF INSERT ON left_behind BEGIN
    UPDATE file SET (session, ts) = (SELECT said, ts FROM facts WHERE row = NEW.row);
    INSERT INTO sessions
    SELECT session, CASE WHEN dates THEN at END, new_model, new_cwd, new_branch, new_name,
           CASE WHEN new_name IS NOT NULL THEN rank END,
           CASE WHEN human OR ended IS NULL THEN turn END, turns,
           CASE WHEN type IN ('user', 'assistant') THEN uuid END,
           rest, error, ts, n, coalesce(rest <> 'open', 0)
    FROM facts WHERE row = NEW.row
    ON CONFLICT DO UPDATE SET
        dated = coalesce(excluded.dated, dated), model = coalesce(excluded.model, model),
        cwd = coalesce(excluded.cwd, cwd), branch = coalesce(excluded.branch, branch),
        name = coalesce(excluded.name, name), rank = coalesce(excluded.rank, rank),
        turn = excluded.turn, turns = excluded.turns, leaf = coalesce(excluded.leaf, leaf),
        rest = CASE WHEN excluded.turn IS turn THEN coalesce(excluded.rest, rest) END,
        rest_error = CASE WHEN excluded.rest IS NULL THEN rest_error ELSE excluded.rest_error END,
        rest_ts = CASE WHEN excluded.rest IS NULL THEN rest_ts ELSE excluded.rest_ts END,
        rest_n = CASE WHEN excluded.rest IS NULL THEN rest_n ELSE excluded.rest_n END,
        rested = excluded.turn IS turn AND (rested OR excluded.rested);
    INSERT OR REPLACE INTO usage
    SELECT session, message, input, cached, written, output FROM facts
    WHERE row = NEW.row AND message IS NOT NULL;
    INSERT OR IGNORE INTO calls SELECT session, call FROM facts WHERE row = NEW.row AND call IS NOT NULL;
    INSERT OR IGNORE INTO chains
    SELECT uuid, session FROM facts
    WHERE row = NEW.row AND parent IS NOT NULL AND agent IS NULL AND uuid IS NOT NULL;
    INSERT OR REPLACE INTO summaries
    SELECT leaf, summary FROM facts WHERE row = NEW.row AND leaf IS NOT NULL AND rank IS NULL;
END;

-- batch

INSERT INTO said SELECT * FROM said;

-- CROSS JOIN keeps the order: line, kind, block.
SELECT session, CASE type_k WHEN 2 THEN end_ts ELSE ts END, type, id, NULL,
       CASE WHEN at IS NULL AND ts > 1 AND (type_k <> 2 OR end_ts = ts)
           THEN substr(data, 1, length(data) - 1) || ',"time":"of the line before"}' ELSE data END, n
FROM (
    SELECT session, ts, at, w.n, end_ts, k.k AS type_k,
        CASE k.k
        WHEN 0 THEN 'session.created'
        WHEN 1 THEN 'session.updated'
        WHEN 2 THEN end_type
        WHEN 3 THEN 'turn.started'
        WHEN 4 THEN CASE main WHEN 'message' THEN 'message.added' WHEN 'checkpoint' THEN 'checkpoint.noted'
                              WHEN 'failed' THEN 'provider.failed' WHEN 'turn' THEN end_type
                              WHEN 'unreadable' THEN 'import.unreadable' WHEN 'text' THEN 'tool.output'
                              ELSE 'import.record' END
        WHEN 5 THEN CASE WHEN substr(blocks, b.key + 1, 1) = 'c' THEN 'tool.called'
                         WHEN b.value ->> '$.is_error' = 1 THEN 'tool.failed' ELSE 'tool.returned' END
        WHEN 6 THEN 'provider.failed'
        ELSE 'agent.turn.usage' END AS type,
        CASE k.k WHEN 0 THEN 'session.created' WHEN 100000 THEN hash || '.usage'
                 WHEN 2 THEN end_id WHEN 6 THEN hash || '.failed'
                 WHEN 5 THEN hash || '.' || (4 + length(replace(substr(blocks, 1, b.key + 1), 'o', '')))
                 ELSE hash || '.' || k.k END AS id,
        CASE k.k
        WHEN 0 THEN json_fields(
            'id', json_text(session), 'agent_id', '"claude-code"', 'provider', '"anthropic"',
            'model', json_text(new_model), 'status', '"idle"', 'working_directory', json_text(new_cwd),
            'git_branch', json_text(new_branch), 'parent_session_id', json_text(w.parent),
            'created_at', CASE WHEN dates THEN j -> '$.timestamp' END,
            'source', source)
        WHEN 1 THEN json_fields(
            'set', json_fields(
                'created_at', CASE WHEN dates THEN j -> '$.timestamp' END,
                'model', json_text(new_model), 'working_directory', json_text(new_cwd),
                'git_branch', json_text(new_branch), 'title', json_text(new_name)),
            'source', source)
        WHEN 2 THEN json_fields(
            'turn_id', json_text(ended),
            'reason', CASE WHEN interrupted THEN '"interrupted"' WHEN end_id = hash || '.2' THEN '"next_turn"'
                           ELSE '"answered"' END,
            'error', end_error, 'source', source)
        WHEN 3 THEN json_fields(
            'turn_id', turn_id, 'sequence', turns, 'status', '"running"',
            'prompt_ref', coalesce(j -> '$.uuid', json_text(hash)), 'source', source)
        -- The event that carries the line.
        WHEN 4 THEN CASE main
            WHEN 'message' THEN json_fields(
                'id', coalesce(j -> '$.uuid', json_text(hash)),
                'role', coalesce(j -> '$.message.role', json_text(w.type)),
                'content', CASE WHEN tools THEN
                        (SELECT json_group_array(j -> o.fullkey) FROM json_each(j, '$.message.content') o
                         WHERE substr(blocks, o.key + 1, 1) = 'o')
                    ELSE j -> '$.message.content' END,
                'said', CASE WHEN w.type = 'user' THEN said(j -> '$.message.content') END,
                'message_id', j -> '$.message.id', 'model', j -> '$.message.model',
                'stop_reason', j -> '$.message.stop_reason', 'turn_id', turn_id, 'source', source,
                'extra', CASE WHEN tools
                    THEN json_set(json_remove(j, '$.uuid', '$.message.role', '$.message.id',
                                              '$.message.model', '$.message.stop_reason'),
                                  '$.message.content', json(rest_blocks))
                    ELSE json_remove(j, '$.uuid', '$.message.role', '$.message.id', '$.message.model',
                                     '$.message.stop_reason', '$.message.content') END)
            WHEN 'turn' THEN json_fields(
                'turn_id', json_text(ended),
                'timing', json_fields('totalMs', j -> '$.durationMs'), 'error', end_error, 'source', source,
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
            WHEN 'text' THEN json_fields(
                'call_id', (SELECT json_text(stem) FROM source), 'output', j -> '$.text', 'source', source,
                'extra', json_remove(j, '$.text'))
            ELSE json_fields(
                'kind', j -> '$.type', 'turn_id', turn_id, 'source', source,
                'extra', CASE json_type(j) WHEN 'object' THEN json_remove(j, '$.type', '$.uuid') ELSE j END)
            END
        WHEN 5 THEN json_fields(
            'call_id', coalesce(j -> (b.fullkey || '.tool_use_id'), j -> (b.fullkey || '.id')),
            'tool', CASE WHEN substr(blocks, b.key + 1, 1) = 'c' THEN j -> (b.fullkey || '.name') END,
            'input', CASE WHEN substr(blocks, b.key + 1, 1) = 'c' THEN j -> (b.fullkey || '.input') END,
            'success', CASE WHEN substr(blocks, b.key + 1, 1) = 'c' THEN NULL
                            WHEN j ->> (b.fullkey || '.is_error') = 1 THEN 'false' ELSE 'true' END,
            'output', CASE WHEN substr(blocks, b.key + 1, 1) = 'r' THEN j -> (b.fullkey || '.content') END,
            'message_id', j -> '$.message.id', 'turn_id', turn_id, 'source', source,
            'extra', CASE WHEN main = 'tool' AND b.key = 0 THEN
                CASE WHEN blocks IN ('c', 'r')
                THEN json_remove(j, '$.uuid', '$.message.id', '$.message.content[0].id',
                                 '$.message.content[0].name', '$.message.content[0].input',
                                 '$.message.content[0].tool_use_id', '$.message.content[0].content')
                ELSE json_set(json_remove(j, '$.uuid', '$.message.id'),
                              '$.message.content', json(rest_blocks)) END END)
        WHEN 6 THEN json_fields(
            'provider', '"anthropic"', 'error', error, 'turn_id', turn_id, 'source', source)
        ELSE json_fields(
            'message_id', coalesce(j -> '$.message.id', j -> '$.uuid'), 'model', j -> '$.message.model',
            'input_tokens', more_input + more_cached + more_written, 'output_tokens', more_output,
            'cached_input_tokens', more_cached, 'cache_write_tokens', more_written,
            'total_tokens', more_input + more_cached + more_written + more_output,
            'turn_id', turn_id, 'source', source)
        END AS data
    FROM (
        SELECT f.*, l.hash, l.j, l.unreadable, json_text(f.turn) AS turn_id,
               f.blocks LIKE '%c%' OR f.blocks LIKE '%r%' AS tools,
               json_fields('kind', i.kind, 'file', i.name, 'line', f.n,
                           'record', l.j -> '$.uuid') AS source,
               CASE WHEN length(f.blocks) > 1 AND trim(f.blocks, 'o') <> '' THEN
                   (SELECT json_group_array(json_remove(l.j -> t.fullkey, '$.id', '$.name', '$.input',
                                                        '$.tool_use_id', '$.content'))
                    FROM json_each(l.j, '$.message.content') t
                    WHERE substr(f.blocks, t.key + 1, 1) <> 'o') END AS rest_blocks
        FROM (SELECT row, hash, unreadable, line_json(row) AS j FROM lines) l
        CROSS JOIN facts f USING (row) CROSS JOIN file i) w
    CROSS JOIN kinds k ON CASE k.k
        WHEN 0 THEN is_new
        WHEN 1 THEN new_name IS NOT NULL OR NOT is_new AND (dates OR
                    coalesce(new_model, new_cwd, new_branch) IS NOT NULL)
        WHEN 2 THEN ended IS NOT NULL AND main <> 'turn'
        WHEN 3 THEN human
        WHEN 4 THEN main <> 'tool'
        WHEN 5 THEN tools AND main <> 'record'
        WHEN 6 THEN error IS NOT NULL AND main = 'message'
        ELSE message IS NOT NULL AND (more_input <> 0 OR more_cached <> 0 OR more_written <> 0
                                      OR more_output <> 0) END
    LEFT JOIN json_each(CASE k.k WHEN 5 THEN j END, '$.message.content') b
        ON substr(blocks, b.key + 1, 1) <> 'o'
);

DELETE FROM facts;

-- end

SELECT s.session, rest_ts, rest, turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"', 'error', rest_error,
                   'source', json_fields('kind', f.kind, 'file', f.name, 'line', rest_n)), rest_n
FROM sessions s JOIN file f ON s.turn IS NOT NULL AND s.rest <> 'open'
ORDER BY rest_n;
