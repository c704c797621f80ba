-- importer claude-code   version 6
-- SPDX-License-Identifier: Apache-2.0
-- records: attachment summary progress file-history-* system last-prompt pr-link queue-operation *-title permission-mode
-- records: bridge-session mode agent-* tag result started worktree-* content-replacement
-- session: sessionId of
-- beside: journal.jsonl history.jsonl
-- texts: tool-results/*.txt tool-results/*.json
-- resume: claude --resume
-- places: $CLAUDE_CONFIG_DIR/projects ~/.claude/projects ~/.config/claude/projects
--
-- The session logs of Claude Code: ~/.claude/projects/<directory>/<session id>.jsonl, with
-- sub-agents in separate files (agent-<id>.jsonl) or inline (isSidechain), and long tool results in
-- separate texts. docs/events.md lists the resulting events; annal/import.h describes the tables
-- that an importer can read.
--
--  (1) A line is judged by itself and by the lines before it, never by later lines, so that the
--      events of the first lines stay the same when the file grows.
--  (2) A line belongs to the session in its sessionId, or session_id (--output-format stream-json); a
--      line without one belongs to the session of
--      the last line with one, before any such line to the first session that is named later (the
--      option session), or else to the session that the file is named after.
--  (3) A side chain is a child session: <session>.agent-<agent id>, or, if its lines have no agent
--      id, <session>.side-<uuid of its first line>.
--  (4) The first event of a line contains the line under "extra", without the members that are
--      fields of the line's events. Values are copied as JSON text (->), which keeps every digit
--      and every escape.
--  (5) The id of an event contains the uuid of its line, or a hash of a line without uuid, so the
--      same line imported again, from a copy, a slice or a moved project, is the same event, even
--      if a path in it was rewritten. session.created has an id of its own; the id of usage
--      contains the message and the request. The ids of version 4 are recognized.
--  (6) Usage is repeated on every line of a message. The first line's usage counts; if a number of a
--      later line's usage is larger, its usage replaces the counted usage, and the difference is an
--      event. Tokens of other models or of a compaction (iterations) are not part of the message's
--      usage, but an event of their own. The usage of a copied line is counted in the session that
--      has it; what a continuation has more of the same message is counted here.
--  (7) A turn starts with a message of a human (or a task notice), and ends with turn_duration,
--      with an interruption, or with an answer. More lines of a message, and more work, may follow
--      an answer, so the event of its end is appended at the start of the next turn or at the end
--      of the log, with the time of the answer and an id that contains the turn's id. A turn
--      without an answer ends at the start of the next turn. A request that the API refuses ends a
--      turn as failed.
--  (8) A line without a time has the time of the line before it in the file; "time" in the data
--      says so. If no line before it has a time, the time is 1, which means no time. created_at of
--      the session is the time of its first line, or follows in a session.updated once a time, or
--      an earlier time, is known. The time inside a snapshot is not the line's time.
--  (9) A message of the user that the program adds (isMeta) is not said by the user. The title of a
--      session is the user's title (custom-title), else its name as an agent (agent-name), else the
--      program's title (ai-title), else the summary whose leaf is a line of that session. Most
--      summaries at the head of a file are about other sessions.
-- (10) A continued session may copy lines: its own with other uuids, or another session's with its
--      own id. These are records, and count nothing: a tool call or result that the session already
--      has, a line with a known uuid, a prompt with the same time and text, and a message of
--      another session: forkedFrom names it, or record_owner finds the message and request, the time
--      and uuid, or the time and text. parent_session_id names the session that had them first. But
--      a sub-agent is never the origin of its parent's lines: if its log, which may begin with the
--      parent's history, was imported before the parent's, the parent takes them back. They count in
--      the parent, and record.moved and negative usage say so in the sub-agent. A prompt after a
--      call without a result, which only such a history ends with, is the sub-agent's title.
-- (11) The lines are a tree (parentUuid). A prompt that continues from a point before the last turn
--      marks the turns after that point as abandoned, and the turns on its path to the root as
--      live. Copied lines have no turn here: a prompt that continues from a copied line abandons
--      all turns.
-- (12) If telemetry of the session (otel-logs) was imported before its log, telemetry.superseded says
--      that the events of the telemetry no longer count.

-- detect
-- Qwen Code has message.parts or systemPayload; iFlow has session ids that begin with session-, and
-- tool results in the form of Gemini.
SELECT CASE WHEN max(json_type(json, '$.message.parts') IS NOT NULL OR json ->> '$.message.role' IS 'model'
                     OR json_type(json, '$.systemPayload') IS NOT NULL
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

-- repeats
"customTitle"
"aiTitle"
"agentName"

-- once
-- Texts that Claude Code adds to its user's messages, and a version that writes them.
-- annal/import.h: said().
CREATE VIEW around (begins, opens, closes, seen_in) AS VALUES
    ('<teammate-message>', '>', '</teammate-message>', '2.1.32'),
    ('<channel>', '>', '</channel>', '2.1.80');
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
    ('<pasted_content>', '</pasted_content>', '2.1.80'),
    ('Caveat: The messages below were generated by the user while running local commands', NULL, '1.0.98'),
    ('This session is being continued from a previous conversation', NULL, '1.0.98'),
    ('Your task is to create a detailed summary of the conversation', NULL, '2.1.6'),
    ('[Request interrupted by user', NULL, '2.1.6');

-- The state of the file so far: its session and time. kind and name are JSON.
CREATE TABLE file (session TEXT, ts INTEGER, kind TEXT, name TEXT);
INSERT INTO file
SELECT session_id(coalesce((SELECT value FROM options WHERE name = 'session'), stem)), 1,
       json_text(kind), json_text(file) FROM source;

-- The state of each session so far. dated: its earliest time; turn: the open turn; turns: number of
-- turns; leaf: its last message; calls: that message calls a tool; rank: source of the name, rule
-- (9). rest: how the open turn ends
-- if nothing follows; rest_…: columns of the line that decides it; rested: a line has decided it.
CREATE TABLE sessions (
    session TEXT PRIMARY KEY, dated INTEGER, model TEXT, cwd TEXT, branch TEXT, name TEXT,
    rank INTEGER, turn TEXT, turns INTEGER, leaf TEXT, rest TEXT, rest_error TEXT, rest_ts INTEGER,
    rest_n INTEGER, rested INTEGER, last_turn TEXT, parent TEXT, calls INTEGER
) WITHOUT ROWID;

-- The lines so far: the last turn at each line; copied: another session owns it.
CREATE TABLE nodes (uuid TEXT PRIMARY KEY, turn TEXT, copied INTEGER) WITHOUT ROWID;

-- The turns of the tree: the turn that each continues, whether it was abandoned, and its prompt.
CREATE TABLE branches (turn TEXT PRIMARY KEY, session TEXT, up TEXT, gone INTEGER) WITHOUT ROWID;
CREATE INDEX branches_live ON branches(session, gone);
CREATE TABLE prompts (key TEXT PRIMARY KEY) WITHOUT ROWID;

-- Summaries whose leaf may follow later.
CREATE TABLE summaries (leaf TEXT PRIMARY KEY, summary TEXT) WITHOUT ROWID;

-- Lines of inline side chains, and the child session of each.
CREATE TABLE chains (uuid TEXT PRIMARY KEY, session TEXT) WITHOUT ROWID;

-- The counted usage of each message.
CREATE TABLE usage (
    session TEXT, message TEXT, input INTEGER, cached INTEGER, written INTEGER, output INTEGER,
    hour INTEGER, searches INTEGER, others TEXT,
    PRIMARY KEY (session, message)
) WITHOUT ROWID;

-- The lines of the batch that the log of a sub-agent has, too.
CREATE TABLE parts (row INTEGER PRIMARY KEY);

-- Tool calls ('c id') and their results ('r id').
CREATE TABLE calls (session TEXT, call TEXT, PRIMARY KEY (session, call)) WITHOUT ROWID;

-- The facts of each line of the batch. said: the session of the file after it; blocks: a letter for
-- each block of its content, c for a tool call, r for a result, o for others; new_…: values that
-- are new to the session; more_…: tokens that were not counted before; main: kind of the line's own
-- event; rest: how the turn ends if nothing follows, 'open' if it does not end; end_…: columns of
-- the turn that ends here.
CREATE TABLE facts (
    row INTEGER PRIMARY KEY, n INTEGER, type TEXT, uuid TEXT, said TEXT, session TEXT, parent TEXT, agent TEXT,
    at INTEGER, ts INTEGER, blocks TEXT, interrupted INTEGER, human INTEGER, ended TEXT, turn TEXT,
    turns INTEGER, is_new INTEGER, dates INTEGER, new_model TEXT, new_cwd TEXT, new_branch TEXT,
    new_name TEXT, rank INTEGER, leaf TEXT, summary TEXT, message TEXT, input INTEGER,
    cached INTEGER, written INTEGER, output INTEGER, more_input INTEGER, more_cached INTEGER,
    more_written INTEGER, more_output INTEGER, call TEXT, main TEXT, rest TEXT, error TEXT,
    end_type TEXT, end_id TEXT, end_ts INTEGER, end_error TEXT, label TEXT, origin TEXT, up TEXT,
    rooted INTEGER, copied INTEGER, new_parent TEXT, last_turn TEXT, from_turn TEXT, taken TEXT, prompt TEXT,
    hour INTEGER, searches INTEGER, others TEXT, more_hour INTEGER, more_searches INTEGER,
    told_others TEXT, size INTEGER, again INTEGER, branches INTEGER, leaves INTEGER, supersedes INTEGER,
    counts INTEGER, said_at TEXT, usage_origin TEXT, part TEXT
);

-- The events that a line may produce, in their order.
CREATE TABLE kinds (k INTEGER PRIMARY KEY);
INSERT INTO kinds VALUES (-1), (0), (1), (2), (3), (4), (5), (6), (7), (99999), (100000), (100001);

-- The facts of each line of the batch that need no other line.
CREATE VIEW said AS
SELECT row, n, hash, j IS NULL AS unreadable, type, j ->> '$.subtype' AS subtype,
       uuid, j ->> '$.parentUuid' AS up, j ->> '$.isSidechain' IS 1 AS side,
       j ->> '$.agentId' AS agent, session_id(coalesce(nullif(j ->> '$.sessionId', ''), nullif(j ->> '$.session_id', ''))) AS session,
       time_us(j ->> '$.timestamp') AS at,
       nullif(j ->> '$.message.model', '<synthetic>') AS model, j ->> '$.cwd' AS cwd,
       j ->> '$.gitBranch' AS branch, coalesce(j ->> '$.customTitle', CASE WHEN type = 'agent-name' THEN j ->> '$.agentName' END, j ->> '$.aiTitle') AS title,
       CASE WHEN j ->> '$.customTitle' <> '' THEN 4 WHEN type = 'agent-name' AND j ->> '$.agentName' <> '' THEN 3
            WHEN j ->> '$.aiTitle' <> '' THEN 2 END AS rank,
       CASE WHEN type = 'summary' THEN j ->> '$.leafUuid' END AS leaf,
       CASE WHEN type = 'summary' THEN j ->> '$.summary' END AS summary,
       json_type(j, '$.leafUuid') IS 'text' AS has_leaf,
       j ->> '$.isMeta' IS 1 OR j ->> '$.isCompactSummary' IS 1 AS meta,
       shape,
       substr(CASE shape
                  WHEN 'text' THEN j ->> '$.message.content'
                  WHEN 'array' THEN j ->> '$.message.content[0].text' END, 1, 40) AS text,
       CASE WHEN type = 'user' THEN text_hash(CASE shape
                  WHEN 'text' THEN j ->> '$.message.content'
                  WHEN 'array' THEN j ->> '$.message.content[0].text' END) END AS words,
       CASE WHEN shape = 'array' THEN
           (SELECT group_concat(CASE WHEN b.type <> 'object' THEN 'o'
                                     WHEN b.value ->> '$.type' LIKE '%tool_use' THEN 'c'
                                     WHEN b.value ->> '$.type' LIKE '%tool_result' THEN 'r'
                                     ELSE 'o' END, '')
            FROM json_each(j, '$.message.content') b) END AS blocks,
       coalesce(j ->> '$.message.content[0].id', j ->> '$.message.content[0].tool_use_id') AS call,
       CASE WHEN u IS NOT NULL THEN coalesce(j ->> '$.message.id', uuid, hash)
                || ' ' || coalesce(j ->> '$.requestId', '') END AS message,
       j ->> '$.message.id' || ' ' || coalesce(j ->> '$.requestId', j ->> '$.timestamp') AS response,
       session_id(j ->> '$.forkedFrom.sessionId') AS forked,
       CAST(u ->> '$.input_tokens' AS INTEGER) AS input,
       CAST(u ->> '$.cache_read_input_tokens' AS INTEGER) AS cached,
       CAST(u ->> '$.cache_creation_input_tokens' AS INTEGER) AS written,
       CAST(u ->> '$.output_tokens' AS INTEGER) AS output,
       CAST(nullif(u ->> '$.cache_creation.ephemeral_1h_input_tokens', 0) AS INTEGER) AS hour,
       CAST(nullif(u ->> '$.server_tool_use.web_search_requests', 0) AS INTEGER) AS searches,
       json_type(u, '$.iterations') AS iterations,
       CASE WHEN u IS NOT NULL AND json_type(j, '$.message.usage.iterations') = 'array'
                 AND EXISTS (SELECT 1 FROM json_each(j, '$.message.usage.iterations') i
                             WHERE i.value ->> '$.type' <> 'message') THEN u -> '$.iterations' END AS others,
       json_type(j, '$.parentUuid') IS 'null' AS rooted, j ->> '$.logicalParentUuid' AS logical_up,
       CASE WHEN j ->> '$.isApiErrorMessage' IS 1
                THEN coalesce(j -> '$.message.content[0].text', j -> '$.error', '"API error"')
            WHEN type = 'system' AND j ->> '$.subtype' = 'api_error'
                THEN coalesce(j -> '$.error.message', nullif(j -> '$.error', '{}'), '"API error"')
            END AS error,
       CASE WHEN type = 'assistant' THEN
           coalesce(j ->> '$.message.stop_reason',
                    CASE WHEN j ->> '$.message.content[0].type' = 'text' THEN 'end_turn' END, '')
           END AS stop
FROM (SELECT row, n, hash, j, j ->> '$.type' AS type, j ->> '$.uuid' AS uuid, json_type(j, '$.message.content') AS shape,
             CASE WHEN json_type(j, '$.message.usage') = 'object' THEN j -> '$.message.usage' END AS u
      FROM (SELECT row, n, hash, line_json(row) AS j FROM lines ORDER BY row LIMIT -1) LIMIT -1) LIMIT -1;

-- Handle one line after the other: find its session, then its changes to that session. With a LIMIT
-- SQLite computes a column once, and not at each use in the outer query.
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
           CASE WHEN x.name IS NOT s.name AND x.rank >= coalesce(s.rank, 0) THEN x.name
                WHEN NEW.side AND s.calls AND NEW.up = s.leaf AND NEW.type = 'user' AND NOT x.interrupted
                     AND coalesce(NEW.blocks, '') NOT LIKE '%r%'
                THEN (SELECT coalesce(said(c) ->> '$', CASE NEW.shape WHEN 'text' THEN c ->> '$' ELSE c ->> '$[0].text' END)
                      FROM (SELECT line_json(NEW.row) -> '$.message.content' AS c)) END, x.rank,
           CASE WHEN x.summarizes IS NULL AND NEW.has_leaf THEN NEW.leaf END, NEW.summary,
           CASE WHEN NOT x.seen_before
                     AND (u.message IS NULL OR coalesce(NEW.output > coalesce(u.output, 0), 0)
                          OR coalesce(NEW.input > coalesce(u.input, 0), 0)
                          OR coalesce(NEW.cached > coalesce(u.cached, 0), 0)
                          OR coalesce(NEW.written > coalesce(u.written, 0), 0)
                          OR coalesce(NEW.hour > coalesce(u.hour, 0), 0)
                          OR coalesce(NEW.searches > coalesce(u.searches, 0), 0)
                          OR NEW.others <> coalesce(u.others, '')) THEN NEW.message END,
           NEW.input, NEW.cached, NEW.written, NEW.output,
           NEW.input - coalesce(u.input, 0), NEW.cached - coalesce(u.cached, 0),
           NEW.written - coalesce(u.written, 0), NEW.output - coalesce(u.output, 0),
           CASE WHEN NOT x.copied AND NEW.blocks IN ('c', 'r') THEN NEW.blocks || ' ' || NEW.call END,
           CASE
           WHEN NEW.unreadable THEN 'unreadable'
           WHEN x.copied THEN 'record'
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
           CASE WHEN x.copied THEN NULL
                WHEN NEW.error IS NOT NULL THEN 'turn.failed'
                WHEN NEW.blocks LIKE '%c%' OR NEW.blocks LIKE '%r%' THEN 'open'
                WHEN NEW.type = 'user' AND NEW.text LIKE '<local-command-std%' THEN 'turn.completed'
                WHEN NEW.stop IN ('end_turn', 'stop_sequence', 'refusal') THEN 'turn.completed'
                WHEN NEW.stop IS NOT NULL THEN 'open' END,
           NEW.error,
           CASE WHEN x.interrupted THEN 'turn.cancelled' ELSE coalesce(nullif(s.rest, 'open'), 'turn.completed') END,
           CASE WHEN s.rested THEN s.turn || '.ends' ELSE x.label || '.2' END,
           CASE WHEN s.rest <> 'open' AND NOT x.interrupted THEN s.rest_ts ELSE x.ts END,
           CASE WHEN s.rest <> 'open' AND NOT x.interrupted THEN s.rest_error END,
           x.label, CASE WHEN NOT x.copied THEN x.origin END, coalesce(NEW.up, NEW.logical_up), NEW.rooted, x.copied,
           CASE WHEN x.owner <> x.session AND x.owner IS NOT coalesce(s.parent, x.parent)
                     AND s.parent IS NULL AND x.parent IS NULL AND x.foreigner THEN x.owner END,
           CASE WHEN x.human THEN coalesce(NEW.uuid, NEW.hash) ELSE s.last_turn END, s.last_turn, NULL, x.prompt,
           NEW.hour, NEW.searches,
           NEW.others, NEW.hour - coalesce(u.hour, 0), NEW.searches - coalesce(u.searches, 0), u.others,
           CASE WHEN NEW.iterations = 'array' THEN
               (SELECT max(coalesce(i.value ->> '$.input_tokens', 0) + coalesce(i.value ->> '$.cache_read_input_tokens', 0)
                           + coalesce(i.value ->> '$.cache_creation_input_tokens', 0))
                FROM json_each(line_json(NEW.row), '$.message.usage.iterations') i
                WHERE i.value ->> '$.type' = 'message') END,
           u.message IS NOT NULL, NULL, NULL, NULL, NOT x.copied, x.said_at, NULL,
           CASE WHEN x.owner <> x.session AND NOT x.foreigner THEN x.owner END
    FROM (
        SELECT y.*, coalesce(y.owner <> y.session AND substr(y.owner || '.', 1, length(y.session) + 1) <> y.session || '.', 0) AS foreigner,
               y.seen_before OR coalesce(y.owner <> y.session AND substr(y.owner || '.', 1, length(y.session) + 1) <> y.session || '.', 0)
                    OR (coalesce(NEW.blocks LIKE '%r%', 0) OR NEW.type IS 'system') AND coalesce(y.up_copied, 0)
                    AS copied,
               y.talks AND NOT y.seen_before AND NOT coalesce(y.owner <> y.session AND substr(y.owner || '.', 1, length(y.session) + 1) <> y.session || '.', 0) AS human,
               y.talks AND NOT y.seen_before AND NOT coalesce(y.owner <> y.session AND substr(y.owner || '.', 1, length(y.session) + 1) <> y.session || '.', 0)
                   OR y.interrupted AND NOT y.seen_before OR NOT coalesce(y.up_copied, 0)
                   AND (NEW.type IS 'system' AND NEW.subtype IS 'turn_duration') AS ends
        FROM (
        SELECT v.*, CASE WHEN NEW.forked <> v.session AND NOT NEW.side THEN NEW.forked
                         WHEN v.said_at IS NULL THEN record_owner(v.origin, v.session)
                         ELSE coalesce(nullif(record_owner(v.origin, v.session), v.session),
                                       record_owner(v.said_at, v.session)) END AS owner,
               EXISTS (SELECT 1 FROM nodes d WHERE d.uuid = NEW.uuid)
                   OR EXISTS (SELECT 1 FROM prompts p WHERE p.key = v.prompt) AS seen_before,
               (SELECT d.copied FROM nodes d WHERE d.uuid = NEW.up) AS up_copied
        FROM (
        SELECT w.*, CASE WHEN NEW.side THEN w.base END AS parent,
               CASE WHEN NOT NEW.side THEN w.base ELSE session_id(coalesce(
                   w.base || '.agent-' || coalesce(NEW.agent,
                       (SELECT substr(stem, 7) FROM source WHERE stem LIKE 'agent-_%')),
                   (SELECT c.session FROM chains c WHERE c.uuid = NEW.up),
                   w.base || '.side-' || coalesce(NEW.uuid, NEW.hash))) END AS session,
               CASE WHEN NEW.uuid IN (SELECT d.uuid FROM nodes d) THEN NEW.hash ELSE coalesce(NEW.uuid, NEW.hash) END
                   AS label,
               CASE NEW.type WHEN 'assistant' THEN coalesce('claude ' || NEW.response, 'claude ' || NEW.uuid || ' ' || NEW.at)
                    WHEN 'user' THEN CASE WHEN coalesce(NEW.blocks, '') NOT LIKE '%r%'
                                          THEN 'claude ' || NEW.uuid || coalesce(' ' || NEW.at, '') END END AS origin,
               CASE WHEN w.talks AND NEW.at IS NOT NULL THEN w.base || NEW.at || NEW.text END AS prompt,
               CASE WHEN w.talks THEN 'claude said ' || NEW.at || ' ' || NEW.words END AS said_at
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
                       AND coalesce(NEW.text, '') NOT LIKE '<bash-%' AS talks
            FROM (SELECT session, ts, CASE WHEN NEW.leaf IS NOT NULL THEN
                      (SELECT k.session FROM sessions k WHERE k.leaf = NEW.leaf) END AS summarizes
                  FROM file LIMIT 1) f
            LEFT JOIN summaries m ON m.leaf = NEW.uuid
            LIMIT 1) w
        LIMIT 1) v LIMIT 1) y LIMIT 1) x
    LEFT JOIN sessions s ON s.session = x.session
    LEFT JOIN usage u ON u.session = x.session AND u.message = NEW.message;
    -- Record that the log of this session is imported.
    UPDATE facts SET supersedes = (record_owner('log ' || session, NULL) IS NULL
                                   AND record_owner('telemetry ' || session, NULL) IS NOT NULL)
                                  + 0 * (record_owner('log ' || session, session) IS NULL)
    WHERE row = NEW.row AND is_new;
    UPDATE facts SET branches = 1
    WHERE row = NEW.row AND human AND from_turn IS NOT NULL
      AND (rooted OR EXISTS (SELECT 1 FROM nodes d WHERE d.uuid = facts.up
                                      AND (d.turn <> from_turn OR d.turn IS NULL AND d.copied)));
    UPDATE facts SET leaves = 1 WHERE row = NEW.row;
END;

-- Rule (11): find the turns that a prompt abandons, and the turns that it restores. A prompt with
-- an unknown parent continues the last turn.
CREATE TRIGGER branch AFTER UPDATE OF branches ON facts BEGIN
    UPDATE facts SET from_turn = CASE
        WHEN EXISTS (SELECT 1 FROM nodes d WHERE d.uuid = facts.up AND (d.turn IS NOT NULL OR d.copied))
            THEN (SELECT d.turn FROM nodes d WHERE d.uuid = facts.up)
        WHEN NOT rooted THEN from_turn END
    WHERE row = NEW.row;
    UPDATE facts SET taken = (
        WITH RECURSIVE way (turn) AS (
            SELECT facts.from_turn WHERE facts.from_turn IS NOT NULL
            UNION SELECT b.up FROM way JOIN branches b USING (turn) WHERE b.up IS NOT NULL)
        SELECT nullif(json_group_array(json_array(b.turn, CASE WHEN b.gone THEN 'turn.restored' ELSE 'turn.abandoned' END)), '[]')
        FROM branches b LEFT JOIN way USING (turn)
        WHERE b.session = facts.session AND b.gone = (way.turn IS NOT NULL))
    WHERE row = NEW.row;
    UPDATE branches SET gone = NOT gone
    WHERE turn IN (SELECT t.value ->> 0 FROM facts f, json_each(f.taken) t WHERE f.row = NEW.row);
END;

-- Store the effects of a line. This needs its own trigger, because SQLite first copies the rows of
-- an INSERT into a table that its program has read.
CREATE TRIGGER leave AFTER UPDATE OF leaves ON facts BEGIN
    UPDATE file SET session = NEW.said, ts = NEW.ts;
    INSERT INTO sessions
    SELECT NEW.session, CASE WHEN NEW.dates THEN NEW.at END, NEW.new_model, NEW.new_cwd, NEW.new_branch, NEW.new_name,
           CASE WHEN NEW.new_name IS NOT NULL THEN NEW.rank END,
           CASE WHEN NEW.human OR NEW.ended IS NULL THEN NEW.turn END, NEW.turns,
           CASE WHEN NEW.type IN ('user', 'assistant') THEN NEW.uuid END,
           NEW.rest, NEW.error, NEW.ts, NEW.n, coalesce(NEW.rest <> 'open', 0), NEW.last_turn, NEW.new_parent,
           instr(NEW.blocks, 'c') > 0
    WHERE true
    ON CONFLICT DO UPDATE SET
        calls = CASE WHEN excluded.leaf IS NULL THEN calls ELSE excluded.calls END,
        last_turn = excluded.last_turn, parent = coalesce(excluded.parent, parent),
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
    SELECT NEW.session, NEW.message, NEW.input, NEW.cached, NEW.written, NEW.output, NEW.hour, NEW.searches,
           coalesce(NEW.others, NEW.told_others)
    WHERE NEW.message IS NOT NULL;
    INSERT OR IGNORE INTO nodes SELECT NEW.uuid, NEW.last_turn, NEW.copied WHERE NEW.uuid IS NOT NULL;
    INSERT OR IGNORE INTO calls SELECT NEW.session, NEW.call WHERE NEW.call IS NOT NULL;
END;
-- Only few lines are prompts, summaries, side chains, or have more usage. Additional usage of a
-- message is counted once in all sessions.
CREATE TRIGGER leave_more AFTER UPDATE OF leaves ON facts WHEN NEW.human OR NEW.prompt IS NOT NULL OR NEW.parent IS NOT NULL
    OR NEW.leaf IS NOT NULL OR NEW.again AND NEW.message IS NOT NULL OR NEW.part IS NOT NULL
BEGIN
    UPDATE facts SET (usage_origin, counts, part) = (
        SELECT o, owner = NEW.session OR part IS NOT NULL, part
        FROM (SELECT o, owner, CASE WHEN substr(owner, 1, length(NEW.session) + 1) = NEW.session || '.' THEN owner END AS part
              FROM (SELECT o, record_owner(o, NEW.session) AS owner FROM (SELECT 'claude ' || NEW.message || ' +' || coalesce(NEW.output, 0) || '+'
                     || (coalesce(NEW.input, 0) + coalesce(NEW.cached, 0) + coalesce(NEW.written, 0))
                     || coalesce('+' || length(NEW.others), '') AS o LIMIT 1) LIMIT 1) LIMIT 1))
    WHERE row = NEW.row AND NEW.again AND NEW.message IS NOT NULL;
    INSERT INTO parts SELECT row FROM facts WHERE row = NEW.row AND part IS NOT NULL;
    INSERT OR IGNORE INTO branches SELECT NEW.turn, NEW.session, NEW.from_turn, 0 WHERE NEW.human;
    INSERT OR IGNORE INTO prompts SELECT NEW.prompt WHERE NEW.prompt IS NOT NULL;
    INSERT OR IGNORE INTO chains
    SELECT NEW.uuid, NEW.session WHERE NEW.parent IS NOT NULL AND NEW.agent IS NULL AND NEW.uuid IS NOT NULL;
    INSERT OR REPLACE INTO summaries SELECT NEW.leaf, NEW.summary WHERE NEW.leaf IS NOT NULL AND NEW.rank IS NULL;
END;

-- batch

INSERT INTO said SELECT * FROM said;

-- CROSS JOIN keeps the order: line, kind, block.
SELECT session, CASE type_k WHEN 2 THEN end_ts ELSE ts END, type, CASE WHEN at_once THEN id ELSE label || id END, NULL,
       CASE WHEN at IS NULL AND ts > 1 AND (type_k <> 2 OR end_ts = ts)
           THEN substr(data, 1, length(data) - 1) || ',"time":"of the line before"}' ELSE data END, n,
       CASE WHEN NOT at_once THEN hash || id WHEN type_k = 100000 THEN hash || '.usage'
            WHEN type_k = 2 AND id = label || '.2' THEN hash || '.2' END
FROM (
    SELECT session, ts, at, w.n, end_ts, k.k AS type_k, w.label, w.hash, k.k IN (-1, 0, 2, 99999, 100000, 100001) AS at_once,
        CASE k.k
        WHEN -1 THEN 'telemetry.superseded'
        WHEN 0 THEN 'session.created'
        WHEN 1 THEN 'session.updated'
        WHEN 2 THEN end_type
        WHEN 3 THEN 'turn.started'
        WHEN 4 THEN CASE main WHEN 'message' THEN 'message.added' WHEN 'checkpoint' THEN 'checkpoint.noted'
                              WHEN 'failed' THEN 'provider.failed' WHEN 'turn' THEN end_type
                              WHEN 'unreadable' THEN 'import.unreadable' WHEN 'text' THEN 'tool.output'
                              ELSE 'import.record' END
        WHEN 5 THEN CASE WHEN substr(blocks, b.key + 1, 1) = 'c' THEN 'tool.called'
                         WHEN j ->> (b.fullkey || '.is_error') = 1 OR j ->> (b.fullkey || '.content.return_code') <> 0
                              OR j ->> (b.fullkey || '.content.type') LIKE '%\_error' ESCAPE '\' THEN 'tool.failed'
                         ELSE 'tool.returned' END
        WHEN 6 THEN 'provider.failed'
        WHEN 7 THEN 'tool.updated'
        WHEN 99999 THEN b.value ->> 1
        ELSE 'agent.turn.usage' END AS type,
        CASE k.k WHEN -1 THEN 'telemetry.superseded' WHEN 0 THEN 'session.created'
                 WHEN 100000 THEN message || '.usage' || CASE WHEN NOT again THEN '' WHEN more_output > 0 THEN '.' || output
                     ELSE '.' || coalesce(output, 0) || '.' || (coalesce(input, 0) + coalesce(cached, 0) + coalesce(written, 0)) END
                 WHEN 100001 THEN message || '.usage#' || b.key
                     || CASE WHEN json_type(told_others, '$[' || b.key || ']') = 'object'
                             THEN '.' || coalesce(b.value ->> '$.output_tokens', 0) ELSE '' END
                 WHEN 99999 THEN (b.value ->> 0) || substr(b.value ->> 1, 5) || '.' || w.turn
                 WHEN 2 THEN end_id WHEN 6 THEN '.failed'
                 WHEN 5 THEN '.' || (4 + length(replace(substr(blocks, 1, b.key + 1), 'o', '')))
                 ELSE '.' || k.k END AS id,
        CASE k.k
        WHEN -1 THEN json_fields('source', source)
        WHEN 0 THEN json_fields(
            'id', json_text(session), 'agent_id', '"claude-code"', 'provider', '"anthropic"',
            'model', json_text(new_model), 'status', '"idle"', 'working_directory', json_text(new_cwd),
            'git_branch', json_text(new_branch), 'parent_session_id', json_text(coalesce(w.parent, new_parent)),
            'created_at', CASE WHEN dates THEN j -> '$.timestamp' END,
            'source', source)
        WHEN 1 THEN json_fields(
            'set', json_fields(
                'created_at', CASE WHEN dates THEN j -> '$.timestamp' END,
                'model', json_text(new_model), 'working_directory', json_text(new_cwd),
                'git_branch', json_text(new_branch), 'title', json_text(new_name),
                'parent_session_id', CASE WHEN NOT is_new THEN json_text(new_parent) END),
            'source', source)
        WHEN 2 THEN json_fields(
            'turn_id', json_text(ended),
            'reason', CASE WHEN interrupted THEN '"interrupted"' WHEN end_id = w.label || '.2' THEN '"next_turn"'
                           ELSE '"answered"' END,
            'error', end_error, 'source', source)
        WHEN 3 THEN json_fields(
            'turn_id', turn_id, 'sequence', turns, 'status', '"running"',
            'prompt_ref', coalesce(j -> '$.uuid', json_text(hash)),
            'source', CASE WHEN said_at IS NULL THEN source
                           ELSE substr(source, 1, length(source) - 1) || ',"origin":' || json_text(said_at) || '}' END)
        -- The event that contains the line.
        WHEN 4 THEN CASE main
            WHEN 'message' THEN json_fields(
                'id', coalesce(j -> '$.uuid', json_text(hash)),
                'role', coalesce(j -> '$.message.role', json_text(w.type)),
                'content', CASE WHEN tools THEN
                        (SELECT json_group_array(j -> o.fullkey) FROM json_each(j, '$.message.content') o
                         WHERE substr(blocks, o.key + 1, 1) = 'o')
                    ELSE j -> '$.message.content' END,
                'said', CASE WHEN w.type = 'user' THEN
                    CASE WHEN j ->> '$.isMeta' IS 1 THEN '""' ELSE said(j -> '$.message.content') END END,
                'message_id', j -> '$.message.id', 'model', j -> '$.message.model',
                'stop_reason', j -> '$.message.stop_reason', 'turn_id', turn_id,
                'source', CASE WHEN w.type = 'user' AND origin IS NOT NULL THEN with_origin ELSE source END,
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
                'kind', j -> '$.type', 'turn_id', turn_id,
                'source', CASE WHEN copied THEN substr(source, 1, length(source) - 1) || ',"copied":true}' ELSE source END,
                'extra', CASE json_type(j) WHEN 'object' THEN json_remove(j, '$.type', '$.uuid') ELSE j END)
            END
        WHEN 5 THEN json_fields(
            'call_id', coalesce(j -> (b.fullkey || '.tool_use_id'), j -> (b.fullkey || '.id')),
            'tool', CASE WHEN substr(blocks, b.key + 1, 1) = 'c' THEN j -> (b.fullkey || '.name') END,
            'input', CASE WHEN substr(blocks, b.key + 1, 1) = 'c' THEN j -> (b.fullkey || '.input') END,
            'success', CASE WHEN substr(blocks, b.key + 1, 1) = 'c' THEN NULL
                            WHEN j ->> (b.fullkey || '.is_error') = 1 OR j ->> (b.fullkey || '.content.return_code') <> 0
                                 OR j ->> (b.fullkey || '.content.type') LIKE '%\_error' ESCAPE '\' THEN 'false' ELSE 'true' END,
            'exit_code', CASE WHEN substr(blocks, b.key + 1, 1) = 'r' THEN coalesce(
                j -> (b.fullkey || '.content.return_code'),
                CASE WHEN j ->> (b.fullkey || '.is_error') = 1 THEN (
                    SELECT CAST(substr(t, 11) AS INTEGER) FROM (
                        SELECT coalesce(j ->> (b.fullkey || '.content[0].text'), j ->> (b.fullkey || '.content')) AS t)
                    WHERE t GLOB 'Exit code [0-9]*') END) END,
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
        WHEN 7 THEN json_fields(
            'call_id', json_text(substr(notice, instr(notice, '<tool-use-id>') + 13,
                                        instr(notice, '</tool-use-id>') - instr(notice, '<tool-use-id>') - 13)),
            'success', CASE WHEN instr(notice, '<status>failed<') > 0 THEN 'false' ELSE 'true' END,
            'exit_code', CASE WHEN notice GLOB '*exit code [0-9]*'
                         THEN CAST(substr(notice, instr(notice, 'exit code ') + 10) AS INTEGER) END,
            'turn_id', turn_id, 'source', source)
        WHEN 99999 THEN json_fields('turn_id', b.value -> 0, 'reason', '"edited"', 'source', source)
        WHEN 100001 THEN json_fields(
            'message_id', coalesce(j -> '$.message.id', j -> '$.uuid'),
            'model', coalesce(nullif(b.value -> '$.model', 'null'), j -> '$.message.model'), 'kind', b.value -> '$.type',
            'input_tokens', CASE WHEN coalesce(b.value ->> '$.input_tokens', b.value ->> '$.cache_read_input_tokens',
                                               b.value ->> '$.cache_creation_input_tokens') IS NOT NULL
                THEN coalesce(b.value ->> '$.input_tokens' - coalesce(told_others ->> ('$[' || b.key || '].input_tokens'), 0), 0)
                     + coalesce(b.value ->> '$.cache_read_input_tokens' - coalesce(told_others ->> ('$[' || b.key || '].cache_read_input_tokens'), 0), 0)
                     + coalesce(b.value ->> '$.cache_creation_input_tokens' - coalesce(told_others ->> ('$[' || b.key || '].cache_creation_input_tokens'), 0), 0) END,
            'output_tokens', b.value ->> '$.output_tokens' - coalesce(told_others ->> ('$[' || b.key || '].output_tokens'), 0),
            'cached_input_tokens', b.value ->> '$.cache_read_input_tokens' - coalesce(told_others ->> ('$[' || b.key || '].cache_read_input_tokens'), 0),
            'cache_write_tokens', b.value ->> '$.cache_creation_input_tokens' - coalesce(told_others ->> ('$[' || b.key || '].cache_creation_input_tokens'), 0),
            'cache_write_1h_tokens', b.value ->> '$.cache_creation.ephemeral_1h_input_tokens' - coalesce(told_others ->> ('$[' || b.key || '].cache_creation.ephemeral_1h_input_tokens'), 0),
            'requests', CASE WHEN json_type(told_others, '$[' || b.key || ']') = 'object' THEN 0 END,
            'tier', tier, 'turn_id', turn_id, 'source', source)
        ELSE json_fields(
            'message_id', coalesce(j -> '$.message.id', j -> '$.uuid'), 'model', j -> '$.message.model',
            'input_tokens', CASE WHEN coalesce(more_input, more_cached, more_written) IS NOT NULL
                THEN coalesce(more_input, 0) + coalesce(more_cached, 0) + coalesce(more_written, 0) END,
            'output_tokens', more_output, 'cached_input_tokens', more_cached, 'cache_write_tokens', more_written,
            'total_tokens', coalesce(more_input, 0) + coalesce(more_cached, 0) + coalesce(more_written, 0)
                            + coalesce(more_output, 0),
            'cache_write_1h_tokens', nullif(more_hour, 0), 'web_searches', nullif(more_searches, 0), 'tier', tier,
            'prompt_tokens', CASE WHEN again THEN coalesce(input, 0) + coalesce(cached, 0) + coalesce(written, 0)
                                  ELSE nullif(size, coalesce(input, 0) + coalesce(cached, 0) + coalesce(written, 0)) END,
            'requests', CASE WHEN again THEN 0
                             WHEN coalesce(input, 0) + coalesce(cached, 0) + coalesce(written, 0) = 0 THEN 1 END,
            'turn_id', turn_id,
            'source', CASE WHEN usage_origin IS NULL THEN coalesce(with_origin, source)
                           ELSE substr(source, 1, length(source) - 1) || ',"origin":' || json_text(usage_origin) || '}' END)
        END AS data
    FROM (
        SELECT *, substr(source, 1, length(source) - 1) || ',"origin":' || json_text(origin) || '}' AS with_origin FROM (
        SELECT f.*, l.hash, l.j, l.unreadable, json_text(f.turn) AS turn_id,
               CASE WHEN f.message IS NOT NULL THEN json_text(nullif(trim(
                   CASE WHEN l.j ->> '$.message.usage.speed' = 'fast' THEN 'fast'
                        ELSE coalesce(nullif(l.j ->> '$.message.usage.service_tier', 'standard'), '') END
                   || CASE WHEN l.j ->> '$.message.usage.inference_geo' = 'us' THEN ' us' ELSE '' END), '')) END AS tier,
               f.blocks LIKE '%c%' OR f.blocks LIKE '%r%' AS tools,
               -- A command in the background ended: its call, its status, and its exit code.
               CASE WHEN NOT f.copied AND f.type IN ('user', 'attachment') THEN (
                   SELECT substr(t, 1, instr(t, '</summary>')) FROM (
                       SELECT coalesce(l.j ->> '$.attachment.prompt',
                           CASE json_type(l.j, '$.message.content') WHEN 'text' THEN l.j ->> '$.message.content' END) AS t)
                   WHERE t GLOB '<task-notification>*<tool-use-id>?*</tool-use-id>*'
                     AND (instr(t, '<status>failed<') > 0 OR instr(t, '<status>completed<') > 0)) END AS notice,
               json_fields('kind', i.kind, 'file', i.name, 'line', f.n,
                           'record', l.j -> '$.uuid') AS source,
               CASE WHEN length(f.blocks) > 1 AND trim(f.blocks, 'o') <> '' THEN
                   (SELECT json_group_array(json_remove(l.j -> t.fullkey, '$.id', '$.name', '$.input',
                                                        '$.tool_use_id', '$.content'))
                    FROM json_each(l.j, '$.message.content') t
                    WHERE substr(f.blocks, t.key + 1, 1) <> 'o') END AS rest_blocks
        FROM (SELECT row, hash, unreadable, line_json(row) AS j FROM lines) l
        CROSS JOIN facts f USING (row) CROSS JOIN file i LIMIT -1)) w
    CROSS JOIN kinds k ON CASE k.k
        WHEN -1 THEN supersedes
        WHEN 0 THEN is_new
        WHEN 1 THEN new_name IS NOT NULL OR NOT is_new AND (dates OR
                    coalesce(new_model, new_cwd, new_branch, new_parent) IS NOT NULL)
        WHEN 2 THEN ended IS NOT NULL AND main <> 'turn'
        WHEN 3 THEN human
        WHEN 4 THEN main <> 'tool'
        WHEN 5 THEN tools AND main <> 'record'
        WHEN 6 THEN error IS NOT NULL AND main = 'message'
        WHEN 7 THEN notice IS NOT NULL
        WHEN 99999 THEN taken IS NOT NULL
        WHEN 100000 THEN counts AND message IS NOT NULL AND (more_input <> 0 OR more_cached <> 0 OR more_written <> 0
                                                  OR more_output <> 0 OR more_hour <> 0 OR more_searches <> 0)
        ELSE counts AND message IS NOT NULL AND others <> coalesce(told_others, '') END
    LEFT JOIN json_each(CASE k.k WHEN 99999 THEN taken WHEN 5 THEN j WHEN 100001 THEN j END,
                        CASE k.k WHEN 99999 THEN '$' WHEN 5 THEN '$.message.content' ELSE '$.message.usage.iterations' END) b
        ON CASE k.k WHEN 5 THEN substr(blocks, b.key + 1, 1) <> 'o' WHEN 99999 THEN 1
           ELSE b.value ->> '$.type' <> 'message'
                AND (json_type(told_others, '$[' || b.key || ']') IS NULL
                     OR b.value ->> '$.output_tokens' - coalesce(told_others ->> ('$[' || b.key || '].output_tokens'), 0) > 0
                     OR b.value ->> '$.input_tokens' - coalesce(told_others ->> ('$[' || b.key || '].input_tokens'), 0) > 0
                     OR b.value ->> '$.cache_read_input_tokens' - coalesce(told_others ->> ('$[' || b.key || '].cache_read_input_tokens'), 0) > 0
                     OR b.value ->> '$.cache_creation_input_tokens' - coalesce(told_others ->> ('$[' || b.key || '].cache_creation_input_tokens'), 0) > 0) END
);

-- Rule (10): a sub-agent does not have these lines any more, nor their tokens.
SELECT part, ts, 'record.moved', label || '.moved', NULL,
       json_fields('to', json_text(session), 'record', json_text(uuid),
           'call_ids', (SELECT nullif(json_group_array(b.value ->> '$.id'), '[]') FROM json_each(line_json(row), '$.message.content') b
                        WHERE substr(blocks, b.key + 1, 1) = 'c'),
           'source', json_fields('kind', kind, 'file', name, 'line', n)), n, NULL
FROM parts CROSS JOIN facts USING (row) CROSS JOIN (SELECT kind, name FROM file)
UNION ALL
SELECT part, ts, 'agent.turn.usage', label || '.moved.usage' || coalesce('#' || i, ''), NULL,
       json_fields('message_id', coalesce(j -> '$.message.id', j -> '$.uuid'), 'model', model,
           'input_tokens', -(coalesce(fresh, 0) + coalesce(read, 0) + coalesce(wrote, 0)), 'output_tokens', -said,
           'cached_input_tokens', -read, 'cache_write_tokens', -wrote, 'cache_write_1h_tokens', -nullif(for_hour, 0),
           'web_searches', -nullif(found, 0), 'requests', CASE WHEN more THEN 0 ELSE -1 END,
           'prompt_tokens', prompt, 'tier', json_text(nullif(trim(
               CASE WHEN j ->> '$.message.usage.speed' = 'fast' THEN 'fast'
               ELSE coalesce(nullif(j ->> '$.message.usage.service_tier', 'standard'), '') END
               || CASE WHEN j ->> '$.message.usage.inference_geo' = 'us' THEN ' us' ELSE '' END), '')),
           'source', json_fields('kind', kind, 'file', name, 'line', n)), n, NULL
FROM (SELECT part, ts, n, label, line_json(row) AS j, NULL AS i, line_json(row) -> '$.message.model' AS model, again AS more,
             more_input AS fresh, more_cached AS read, more_written AS wrote, more_output AS said, more_hour AS for_hour,
             more_searches AS found, coalesce(size, coalesce(input, 0) + coalesce(cached, 0) + coalesce(written, 0)) AS prompt
      FROM parts CROSS JOIN facts USING (row) WHERE counts AND message IS NOT NULL
      UNION ALL
      SELECT part, ts, n, label, line_json(row), key, coalesce(nullif(v -> '$.model', 'null'), line_json(row) -> '$.message.model'),
             o IS NOT NULL, v ->> '$.input_tokens' - coalesce(o ->> '$.input_tokens', 0),
             v ->> '$.cache_read_input_tokens' - coalesce(o ->> '$.cache_read_input_tokens', 0),
             v ->> '$.cache_creation_input_tokens' - coalesce(o ->> '$.cache_creation_input_tokens', 0),
             v ->> '$.output_tokens' - coalesce(o ->> '$.output_tokens', 0),
             v ->> '$.cache_creation.ephemeral_1h_input_tokens' - coalesce(o ->> '$.cache_creation.ephemeral_1h_input_tokens', 0),
             NULL, v ->> '$.input_tokens' + coalesce(v ->> '$.cache_read_input_tokens', 0)
                   + coalesce(v ->> '$.cache_creation_input_tokens', 0)
      FROM (SELECT f.*, b.key, b.value AS v, told_others -> ('$[' || b.key || ']') AS o
            FROM parts CROSS JOIN facts f USING (row) CROSS JOIN json_each(line_json(row), '$.message.usage.iterations') b
            WHERE counts AND others <> coalesce(told_others, '') AND b.value ->> '$.type' <> 'message')),
     (SELECT kind, name FROM file)
WHERE coalesce(nullif(fresh, 0), nullif(read, 0), nullif(wrote, 0), nullif(said, 0), nullif(for_hour, 0), nullif(found, 0)) IS NOT NULL;

DELETE FROM facts;
DELETE FROM parts;

-- end

SELECT s.session, rest_ts, rest, turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"', 'error', rest_error,
                   'source', json_fields('kind', f.kind, 'file', f.name, 'line', rest_n)), rest_n
FROM sessions s JOIN file f ON s.turn IS NOT NULL AND s.rest <> 'open'
ORDER BY rest_n;
