-- importer codex   version 4
-- SPDX-License-Identifier: Apache-2.0
-- records: event_msg turn_context session_meta compacted
-- recalls: session.created turn.started turn.rolled_back
-- beside: history.jsonl session_index.jsonl
-- resume: codex resume
-- places: $CODEX_HOME/sessions $CODEX_HOME/archived_sessions ~/.codex/sessions ~/.codex/archived_sessions
--
-- The rollout files of the Codex CLI: ~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread
-- id>.jsonl. docs/events.md lists the resulting events; annal/import.h describes the tables that an
-- importer can read.
--
--  (1) A line is judged by itself and by the lines before it, never by later lines, so that the
--      events of the first lines stay the same when the file grows.
--  (2) The session is the thread of the first session_meta; later ones are the copied history of a
--      fork. Lines before it belong to the thread in the file name, or else to the file.
--  (3) The first event of a line contains the line under "extra", without the members that are
--      fields of the line's events. Values are copied as JSON text (->), which keeps every digit
--      and every escape.
--  (4) The id of an event contains the position of its line in the rollout: its time, its type, and
--      the number of earlier lines with this type and time. So the same line imported again, even
--      from a copy with a rewritten path, or with an ordinal that migrate-rollouts added, is the same
--      event. The id of a line
--      without a time contains a hash of the line, and session.created has an id of its own. The
--      ids of version 2 are recognized.
--  (5) A rollout contains each message twice. response_item is the message to or from the model and
--      becomes message.added, tool.called and tool.returned; its copy in event_msg stays
--      import.record.
--  (6) token_count is cumulative: the difference from the previous count is an event. If the count
--      falls, it was restarted, and the new count is used unchanged. A fork continues its parent's
--      count: counts in the lines copied from its parent are not usage events, and the fork's first
--      own count starts from the last copied count, or, without one, counts only its last request.
--  (7) task_started and its variants define the turns. Old files do not have them: there a
--      user_message starts a turn, and ends the turn before.
--  (8) A fork, or a sub-agent, begins with lines of its parent, announced by forked_from_id or a
--      second session_meta. They are import.record: they count nothing, and are not turns of the
--      thread. They end at the thread's own first task_started, turn_context or user_message. It is
--      the thread's own if its turn_id is later than the id of the thread (both are UUIDs of
--      version 7, which begin with a time), or if its started_at is not before the creation of the
--      thread. Without both it is the thread's own if it was written a second or more after the line
--      before it, or a tenth of a second if that is 8 times the longest pause between two copied
--      lines, or if its turn_id is a number and the copied ones are UUIDs. "copied" in the source of
--      an event marks the copied lines.
--  (9) A line without a time has the time of the line before it; "time" in the data says so.
-- (10) A call failed if its output says so: success, an exit code other than 0 in its head or its
--      metadata, isError of MCP, or a sentence in which Codex reports that it could not run a tool
--      (refusals). An event of the end of a call (exec_command_end, mcp_tool_call_end and others)
--      precedes the output, and decides if the output does not. If the command outlived the first
--      wait, its end follows later: tool.updated has the result. For a script that ran commands,
--      the first exit code other than 0 in its outputs, or in arrays and objects there, decides. A
--      call that the server runs has no output line: the line of the call is complete.
-- (11) A review ends with the id of entered_review_mode, which differs from the id of its
--      task_started: it ends the open turn.
-- (12) agent_message is a message from another agent: message.added with the role agent, if it is
--      readable.
-- (13) thread_rolled_back takes back the last num_turns live turns. A rollout that continues its own
--      thread from an ordinal (history_base) takes back the turns from there on of the other rollouts,
--      and their count; a line in the middle of a rollout does so for the turns before the line.
-- (14) The web searches of a thread are part of the usage that follows them.
-- (15) thread_settings_applied sets the service tier (priority, flex) of the requests after it.

-- detect
SELECT max(CASE WHEN json_type(json, '$.payload') = 'object' AND json ->> '$.type' IN
    ('session_meta', 'turn_context', 'response_item', 'event_msg', 'compacted') THEN 95 ELSE 0 END) FROM lines

-- once

-- The state of the file so far. named: a session_meta has named the session. made: creation time of
-- the fork whose copied lines are being read; NULL: the lines are the file's own. pause: longest time
-- between two copied lines; uuids: a copied line has a UUID as turn_id.
CREATE TABLE file (session TEXT, ts INTEGER, named INTEGER, made INTEGER, born INTEGER, parent TEXT,
                   pause INTEGER, uuids INTEGER);
INSERT INTO file
SELECT session_id(CASE WHEN stem GLOB '*-????????-????-????-????-????????????' THEN substr(stem, -36)
                  ELSE stem END), 1, 0, NULL, NULL, NULL, NULL, 0
FROM source;

-- The state of each session so far. turn: the open turn; turns: number of turns; marked: it has
-- task_started lines; forked: it continues its parent's count.
CREATE TABLE sessions (
    session TEXT PRIMARY KEY, review TEXT, model TEXT, cwd TEXT, turn TEXT, turns INTEGER, marked INTEGER,
    input INTEGER, cached INTEGER, written INTEGER, output INTEGER, reasoning INTEGER, total INTEGER,
    forked INTEGER, tier TEXT, searches INTEGER
) WITHOUT ROWID;

-- The number of lines with each time, type and kind; the turns so far, and whether each was taken
-- back.
CREATE TABLE seats (seat TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
CREATE TABLE turns (i INTEGER PRIMARY KEY, turn TEXT UNIQUE, gone INTEGER);
-- Rule (13): the rollouts of a thread that continue it from an ordinal.
CREATE TABLE bases (session TEXT, thread TEXT, ordinal INTEGER, name TEXT, ts INTEGER, n INTEGER);
-- Such a line in the middle of a rollout: the count continues from that ordinal, too.
CREATE TRIGGER based AFTER INSERT ON bases WHEN session_id(NEW.thread) = NEW.session BEGIN
    UPDATE sessions SET forked = 1 WHERE session = NEW.session;
END;
CREATE TABLE reverted (session TEXT, ts INTEGER, turn TEXT PRIMARY KEY, n INTEGER);

-- The types of event_msg; a record of another type is unknown.
CREATE TABLE event_types (type TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO event_types VALUES
    ('agent_message'), ('agent_message_content_delta'), ('agent_message_delta'), ('agent_reasoning'),
    ('agent_reasoning_delta'), ('agent_reasoning_raw_content'), ('agent_reasoning_raw_content_delta'),
    ('agent_reasoning_section_break'), ('apply_patch_approval_request'), ('background_event'),
    ('collab_agent_interaction_begin'), ('collab_agent_interaction_end'), ('collab_agent_spawn_begin'),
    ('collab_agent_spawn_end'), ('collab_close_begin'), ('collab_close_end'), ('collab_resume_begin'),
    ('collab_resume_end'), ('collab_waiting_begin'), ('collab_waiting_end'), ('context_compacted'),
    ('conversation_path'), ('deprecation_notice'), ('dynamic_tool_call_request'), ('dynamic_tool_call_response'),
    ('elicitation_request'), ('entered_review_mode'), ('error'), ('exec_approval_request'), ('exec_command_begin'),
    ('exec_command_end'), ('exec_command_output_delta'), ('exited_review_mode'), ('get_history_entry_response'),
    ('guardian_assessment'), ('guardian_warning'), ('hook_completed'), ('hook_started'), ('image_generation_begin'),
    ('image_generation_end'), ('item_completed'), ('item_started'), ('list_custom_prompts_response'),
    ('list_skills_response'), ('mcp_list_tools_response'), ('mcp_startup_complete'), ('mcp_startup_update'),
    ('mcp_tool_call_begin'), ('mcp_tool_call_end'), ('model_reroute'), ('model_verification'), ('patch_apply_begin'),
    ('patch_apply_end'), ('patch_apply_updated'), ('plan_delta'), ('plan_update'), ('raw_response_item'),
    ('realtime_conversation_closed'), ('realtime_conversation_list_voices_response'), ('realtime_conversation_realtime'),
    ('realtime_conversation_sdp'), ('realtime_conversation_started'), ('reasoning_content_delta'),
    ('reasoning_raw_content_delta'), ('request_permissions'), ('request_user_input'), ('session_configured'),
    ('shutdown_complete'), ('skills_update_available'), ('stream_error'), ('sub_agent_activity'), ('task_complete'),
    ('task_started'), ('terminal_interaction'), ('thread_goal_cleared'), ('thread_goal_updated'),
    ('thread_name_updated'), ('thread_rolled_back'), ('thread_settings_applied'), ('token_count'), ('turn_aborted'),
    ('turn_complete'), ('turn_diff'), ('turn_started'), ('undo_completed'), ('undo_started'), ('user_message'),
    ('view_image_tool_call'), ('warning'), ('web_search_begin'), ('web_search_end');

-- The end of a call according to an event before its output.
CREATE TABLE ends (
    session TEXT, call TEXT, exit_code INTEGER, ms INTEGER, failed INTEGER,
    PRIMARY KEY (session, call)
) WITHOUT ROWID;

-- Results that did not contain how the call ended.
CREATE TABLE waiting (session TEXT, call TEXT, PRIMARY KEY (session, call)) WITHOUT ROWID;

-- Texts that Codex and its applications add to their user's messages, and a version that writes them.
-- annal/import.h: said().
CREATE VIEW around (begins, opens, closes, seen_in) AS VALUES
    ('<codex_delegation>', '<input>', '</input>', '0.150.0');
CREATE VIEW added (begins, ends, seen_in) AS VALUES
    ('<environment_context>', '</environment_context>', '0.40.0'),
    ('<user_instructions>', '</user_instructions>', '0.40.0'),
    ('# AGENTS.md instructions', '</INSTRUCTIONS>', '0.121.0'),
    ('# ', char(10) || '## My request for Codex:' || char(10), '0.40.0'),
    ('# ', char(10) || '## My request:' || char(10), '0.150.0'),
    ('## My request for Codex:', ':', '0.150.0'),
    ('## My request:', ':', '0.150.0'),
    ('# AGENTS.md instructions', NULL, '0.40.0'),
    ('# Context from my IDE setup', NULL, '0.40.0'),
    ('<recommended_plugins>', '</recommended_plugins>', '0.145.0-alpha.18'),
    ('<subagent_notification>', '</subagent_notification>', '0.118.0'),
    ('<turn_aborted>', '</turn_aborted>', '0.118.0'),
    ('<user_action>', '</user_action>', '0.144.3'),
    ('<user_shell_command>', '</user_shell_command>', '0.50.0'),
    ('<permissions instructions>', '</permissions instructions>', '0.80.0'),
    ('<collaboration_mode>', '</collaboration_mode>', '0.90.0'),
    ('<apps_instructions>', '</apps_instructions>', '0.118.0'),
    ('<plugins_instructions>', '</plugins_instructions>', '0.118.0'),
    ('<skills_instructions>', '</skills_instructions>', '0.118.0'),
    ('<INSTRUCTIONS>', '</INSTRUCTIONS>', '0.118.0'),
    ('<git_context>', '</git_context>', '0.118.0'),
    ('<hook_context>', '</hook_context>', '0.118.0'),
    ('<hook_prompt>', '</hook_prompt>', '0.118.0'),
    ('<model_switch>', '</model_switch>', '0.100.0'),
    ('<realtime_conversation>', '</realtime_conversation>', '0.118.0'),
    ('<goal_context>', '</goal_context>', '0.145.0'),
    ('<codex_internal_context>', '</codex_internal_context>', '0.150.0'),
    ('<in-app-browser-context>', '</in-app-browser-context>', '0.150.0'),
    ('<heartbeat>', '</heartbeat>', '0.150.0'),
    ('<skill>', '</skill>', '0.80.0'),
    ('<image>', '>', '0.40.0'),
    ('</image>', '</image>', '0.40.0'),
    ('The following is the Codex agent history', NULL, '0.118.0'),
    ('A previous agent produced the plan below', NULL, '0.118.0');

-- The facts of each line of the batch. base and the columns after it describe a token count,
-- exit_code and the columns after it a result.
CREATE TABLE facts (
    row INTEGER PRIMARY KEY, n INTEGER, hash TEXT, kind TEXT, at INTEGER, session TEXT, ts INTEGER,
    made INTEGER, first_meta INTEGER, is_new INTEGER, copied INTEGER, model TEXT, new_model TEXT,
    new_cwd TEXT, starts TEXT, ends TEXT, next_ends TEXT, turn TEXT, turns INTEGER, marked INTEGER,
    main TEXT,
    base INTEGER, input INTEGER, cached INTEGER, written INTEGER, output INTEGER, reasoning INTEGER,
    exit_code INTEGER, ms INTEGER, failed INTEGER,
    seat TEXT, label TEXT, foreign_meta TEXT, taken TEXT, counts INTEGER, closes INTEGER, answers INTEGER,
    tier TEXT, supersedes INTEGER, searches INTEGER
);

-- Outputs in which Codex reports that it did not run a tool, or that a tool failed, as patterns of GLOB, and
-- a version that writes them. Codex writes them itself, so a text that only begins alike is an output.
CREATE VIEW refusals (form, seen_in) AS VALUES
    ('exec command rejected by user', '0.40.0'),
    ('patch rejected by user', '0.40.0'),
    ('rejected by user', '0.50.0'),
    ('patch rejected: *', '0.40.0'),
    ('aborted', '0.40.0'),
    ('aborted by user after [0-9]*s', '0.60.0'),
    ('Wall time: * seconds' || char(10) || 'aborted by user*', '0.80.0'),
    ('command timed out after [0-9]* milliseconds*', '0.40.0'),
    ('execution error: *', '0.50.0'),
    ('failed in sandbox * with execution error: *', '0.30.0'),
    ('exec_command failed: *', '0.60.0'),
    ('exec_command failed for `*', '0.80.0'),
    ('write_stdin failed: *', '0.60.0'),
    ('apply_patch verification failed: *', '0.40.0'),
    ('apply_patch handler received *', '0.50.0'),
    ('failed to parse function arguments: *', '0.40.0'),
    ('failed to parse exec_command arguments: *', '0.60.0'),
    ('failed to parse write_stdin arguments: *', '0.60.0'),
    ('unsupported call: *', '0.40.0'),
    ('unsupported custom tool call: *', '0.50.0'),
    ('unsupported payload for *', '0.60.0'),
    ('tool call error: *', '0.40.0'),
    ('err: "*', '0.40.0'),
    ('user rejected MCP tool call', '0.100.0'),
    ('user cancelled MCP tool call', '0.100.0'),
    ('resources/list failed: *', '0.50.0'),
    ('resources/templates/list failed: *', '0.50.0'),
    ('resources/read failed: *', '0.50.0'),
    ('approval policy is *; reject command *', '0.40.0'),
    ('Command blocked by PreToolUse hook: *', '0.118.0'),
    ('Tool call blocked by PreToolUse hook: *', '0.145.0'),
    ('This action was rejected due to unacceptable risk.*', '0.118.0'),
    ('unable to locate image at `*', '0.50.0'),
    ('unable to read image at `*', '0.80.0'),
    ('unable to process image at `*', '0.118.0'),
    ('image path `*` is not a file', '0.50.0'),
    ('view_image is not allowed because you do not support image inputs', '0.80.0'),
    ('collab spawn failed: *', '0.90.0'),
    ('collab tool failed: *', '0.90.0'),
    ('collab manager unavailable', '0.90.0'),
    ('agent with id * not found', '0.90.0'),
    ('agent with id * is closed', '0.90.0'),
    ('invalid agent id *', '0.90.0'),
    ('Agent depth limit reached. Solve the task yourself.', '0.90.0'),
    ('Unknown model `*` for spawn_agent. *', '0.118.0'),
    ('request_user_input is unavailable in *', '0.90.0'),
    ('request_user_input was cancelled before receiving a response', '0.90.0'),
    ('dynamic tool call was cancelled before receiving a response', '0.100.0'),
    ('Script failed' || char(10) || 'Wall time *', '0.118.0'),
    ('Script terminated' || char(10) || 'Wall time *', '0.118.0'),
    ('Script error:' || char(10) || '*', '0.118.0');

-- The same by their first word, which few outputs begin with.
CREATE TABLE refused (word TEXT, form TEXT, PRIMARY KEY (word, form)) WITHOUT ROWID;
INSERT INTO refused SELECT substr(form, 1, instr(form || ' ', ' ') - 1), form FROM refusals;

-- The events that a line may produce, in their order.
CREATE TABLE kinds (k INTEGER PRIMARY KEY);
INSERT INTO kinds VALUES (-1), (0), (1), (2), (3), (4), (5), (6), (7);

-- The facts of each line of the batch that need no other line. marks: it describes a task; says: it
-- may begin a turn.
CREATE VIEW said AS
SELECT row, n, hash, type, kind, time_us(j ->> '$.timestamp') AS at,
       time_us(j ->> '$.timestamp') || '.' || type || coalesce('.' || kind, '') AS seat,
       CASE WHEN type = 'session_meta' THEN session_id(nullif(j ->> '$.payload.id', '')) END AS session,
       CASE WHEN type = 'session_meta' THEN nullif(j ->> '$.payload.forked_from_id', '') END AS parent,
       CASE WHEN type = 'turn_context' THEN j ->> '$.payload.model' END AS model,
       CASE WHEN type IN ('turn_context', 'session_meta') THEN j ->> '$.payload.cwd' END AS cwd,
       CASE WHEN type IN ('turn_context', 'event_msg') THEN j ->> '$.payload.turn_id' END AS turn,
       type = 'event_msg' AND kind IN ('task_started', 'turn_started') AS marks,
       type = 'event_msg' AND kind = 'user_message' AS says,
       type = 'event_msg' AND kind IN ('task_complete', 'turn_complete', 'turn_aborted') AS ends,
       CASE WHEN j IS NULL THEN 'unreadable'
            WHEN type = 'compacted' THEN 'checkpoint'
            WHEN type = 'event_msg' AND kind = 'thread_name_updated'
                 AND json_type(j, '$.payload.thread_name') = 'text' THEN 'named'
            WHEN type IS NOT 'response_item' THEN 'record'
            WHEN kind = 'message' AND json_type(j, '$.payload.content') IS NOT NULL THEN 'message'
            WHEN kind = 'reasoning' THEN 'reasoning'
            WHEN kind = 'agent_message' AND json_type(j, '$.payload.content') = 'array'
                 AND instr(j -> '$.payload.content', '"encrypted_content"') = 0 THEN 'other'
            WHEN kind LIKE '%\_call' ESCAPE '\' THEN 'call'
            WHEN kind LIKE '%\_output' ESCAPE '\' THEN 'result'
            ELSE 'record' END AS main
FROM (SELECT row, n, hash, j, j ->> '$.type' AS type, j ->> '$.payload.type' AS kind
      FROM (SELECT row, n, hash, line_json(row) AS j FROM lines)) ORDER BY row;

-- Handle one line after the other: find its session, whether it is a copy of a line of the parent,
-- what is new about the session, and its effect on the turn. With a LIMIT SQLite computes a column
-- once. Triggers of facts handle rare lines: an INSERT of a SELECT into a view costs as much for no
-- row as for one.
CREATE TRIGGER line INSTEAD OF INSERT ON said BEGIN
    INSERT INTO facts (row, n, hash, kind, at, session, ts, made, first_meta, is_new, copied, model,
                       new_model, new_cwd, starts, ends, next_ends, turn, turns, marked, main,
                       seat, label, foreign_meta)
    SELECT NEW.row, NEW.n, NEW.hash, NEW.kind, NEW.at, x.session, x.ts,
           CASE WHEN x.first_meta AND NEW.parent IS NOT NULL
               THEN coalesce(time_us(line_json(NEW.row) ->> '$.payload.timestamp'), x.ts) ELSE x.made END,
           x.first_meta, s.session IS NULL, CASE WHEN x.made IS NOT NULL THEN 1 END,
           coalesce(CASE WHEN x.tells THEN NEW.model END, s.model),
           CASE WHEN x.tells AND NEW.model IS NOT s.model THEN NEW.model END,
           CASE WHEN x.tells AND NEW.cwd IS NOT s.cwd THEN NEW.cwd END,
           x.starts, x.ends, CASE WHEN x.starts IS NOT NULL THEN s.turn END,
           coalesce(x.starts, x.ends, s.turn), coalesce(s.turns, 0) + (x.starts IS NOT NULL),
           coalesce(s.marked, 0) OR NEW.marks IS 1,
           CASE WHEN x.first_meta THEN 'meta'
                WHEN x.made IS NOT NULL AND NEW.main <> 'unreadable' THEN 'record'
                WHEN NEW.main <> 'record' THEN NEW.main
                WHEN NEW.type = 'turn_context' AND (coalesce(NEW.model, s.model) IS NOT s.model
                                                   OR coalesce(NEW.cwd, s.cwd) IS NOT s.cwd) THEN 'updated'
                WHEN x.starts IS NOT NULL AND NOT NEW.says THEN 'start'
                WHEN x.ends IS NOT NULL THEN 'end'
                ELSE 'record' END,
           NEW.seat,
           coalesce(NEW.seat || coalesce('#' || (SELECT t.n FROM seats t WHERE t.seat = NEW.seat), ''), NEW.hash),
           CASE WHEN x.foreign_meta AND x.parent IS NULL THEN NEW.session END
    FROM (
        SELECT v.session, v.ts, v.first_meta, v.made, v.foreign_meta, v.parent,
               v.made IS NULL AND (v.first_meta OR NEW.type IS 'turn_context') AS tells,
               CASE WHEN v.made IS NULL THEN v.starts END AS starts, CASE WHEN v.made IS NULL THEN v.ends END AS ends
        FROM (
        SELECT w.session, w.ts, w.first_meta, w.foreign_meta, w.parent,
               CASE WHEN w.foreign_meta AND w.made IS NULL THEN coalesce(w.born, w.before)
                    WHEN NOT coalesce((NEW.type = 'turn_context' OR NEW.marks OR NEW.says)
                                      AND w.ts >= w.made
                                      AND CASE
                                          WHEN w.session GLOB '????????-????-7*'
                                               AND NEW.turn GLOB '????????-????-7*'
                                              THEN NEW.turn > w.session
                                          WHEN json_type(line_json(NEW.row), '$.payload.started_at') = 'integer'
                                              THEN line_json(NEW.row) ->> '$.payload.started_at' >= w.made / 1000000
                                          ELSE w.ts - w.before >= 1000000
                                               OR w.ts - w.before >= max(100000, 8 * w.pause)
                                               OR w.uuids AND NEW.turn NOT GLOB '*[^0-9]*' END, 0)
                   THEN w.made END AS made,
               CASE WHEN NEW.marks THEN coalesce(NEW.turn, NEW.hash)
                    WHEN NEW.says AND NOT coalesce((SELECT k.marked FROM sessions k
                                                    WHERE k.session = w.session), 0)
                        THEN NEW.hash END AS starts,
               CASE WHEN NEW.ends THEN coalesce(
                   CASE WHEN NEW.turn IS NOT (SELECT k.review FROM sessions k
                                              WHERE k.session = w.session) THEN NEW.turn END,
                   (SELECT k.turn FROM sessions k WHERE k.session = w.session)) END AS ends
        FROM (SELECT CASE WHEN named OR NEW.session IS NULL THEN session ELSE NEW.session END AS session,
                     coalesce(NEW.at, ts) AS ts, ts AS before, made, born, parent, pause, uuids,
                     NOT named AND NEW.session IS NOT NULL AS first_meta,
                     coalesce(named AND NEW.session <> session AND NOT EXISTS (SELECT 1 FROM turns), 0) AS foreign_meta
              FROM file LIMIT 1) w
        LIMIT 1) v LIMIT 1) x
    LEFT JOIN sessions s ON s.session = x.session;
    -- Record that the log of this session is imported.
    UPDATE facts SET supersedes = (record_owner('log ' || session, NULL) IS NULL
                                   AND record_owner('telemetry ' || session, NULL) IS NOT NULL)
                                  + 0 * (record_owner('log ' || session, session) IS NULL)
    WHERE row = NEW.row AND is_new;
    UPDATE facts SET taken = (
        SELECT nullif(json_group_array(turn), '[]') FROM (
            SELECT turn FROM turns WHERE NOT gone ORDER BY i DESC
            LIMIT max(0, coalesce(CAST(line_json(NEW.row) ->> '$.payload.num_turns' AS INTEGER), 0))))
    WHERE row = NEW.row AND copied IS NULL AND NEW.type = 'event_msg' AND NEW.kind LIKE '%rolled_back';
    INSERT INTO left_behind VALUES (NEW.row);
    UPDATE facts SET counts = 1 WHERE row = NEW.row AND NEW.type = 'event_msg' AND NEW.kind = 'token_count';
    UPDATE sessions SET tier = nullif(nullif(
        line_json(NEW.row) ->> '$.payload.thread_settings.service_tier', 'default'), 'auto')
    WHERE NEW.kind = 'thread_settings_applied' AND session = (SELECT session FROM file);
    UPDATE sessions SET searches = coalesce(searches, 0) + 1
    WHERE NEW.kind = 'web_search_call' AND NEW.main = 'call' AND session = (SELECT session FROM facts WHERE row = NEW.row AND copied IS NULL)
      AND coalesce(line_json(NEW.row) ->> '$.payload.action.type', 'search') = 'search';
    UPDATE sessions SET review = NEW.turn
    WHERE NEW.kind = 'entered_review_mode' AND session = (SELECT session FROM file);
    UPDATE facts SET closes = 1
    WHERE row = NEW.row AND NEW.type = 'event_msg'
      AND NEW.kind IN ('exec_command_end', 'patch_apply_end', 'mcp_tool_call_end', 'dynamic_tool_call_response');
    UPDATE facts SET answers = 1 WHERE row = NEW.row AND NEW.main = 'result';
END;

CREATE TRIGGER take AFTER UPDATE OF taken ON facts BEGIN
    UPDATE turns SET gone = 1 WHERE turn IN (SELECT t.value FROM json_each(NEW.taken) t);
END;

-- Store the effects of a line. This needs its own trigger, because SQLite first copies the rows of
-- an INSERT into a table that its program has read.
CREATE VIEW left_behind (row) AS VALUES (0);
CREATE TRIGGER leave INSTEAD OF INSERT ON left_behind BEGIN
    UPDATE file SET (session, ts, named, made, pause, uuids, born, parent) = (
        SELECT f.session, f.ts, named OR f.first_meta, f.made,
               CASE WHEN f.copied THEN max(coalesce(pause, 0), CASE WHEN pause IS NULL THEN 0 ELSE f.ts - file.ts END) END,
               CASE WHEN f.copied AND j ->> '$.payload.turn_id' GLOB '????????-????-*' THEN 1 ELSE uuids END,
               CASE WHEN f.first_meta THEN coalesce(time_us(j ->> '$.payload.timestamp'), f.ts) ELSE born END,
               CASE WHEN f.first_meta THEN coalesce(j ->> '$.payload.parent_thread_id',
                   j ->> '$.payload.source.subagent.thread_spawn.parent_thread_id', j ->> '$.payload.forked_from_id')
                    ELSE coalesce(parent, f.foreign_meta) END
        FROM facts f, (SELECT line_json(NEW.row) AS j) WHERE row = NEW.row);
    INSERT INTO seats SELECT seat, 1 FROM facts WHERE row = NEW.row AND seat IS NOT NULL
    ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO bases
    SELECT f.session, j ->> '$.payload.history_base.thread_id', j ->> '$.payload.history_base.end_ordinal_exclusive',
           (SELECT file FROM source), f.ts, f.n
    FROM facts f, (SELECT line_json(NEW.row) AS j)
    WHERE f.row = NEW.row AND (f.first_meta OR f.kind IS NULL AND f.seat GLOB '*.session_meta')
      AND json_type(j, '$.payload.history_base.end_ordinal_exclusive') = 'integer';
    INSERT OR IGNORE INTO turns (turn, gone) SELECT starts, 0 FROM facts WHERE row = NEW.row AND starts IS NOT NULL;
    INSERT INTO sessions (session, model, cwd, turn, turns, marked, forked)
    SELECT session, new_model, new_cwd, starts, turns, marked,
           CASE WHEN first_meta AND (made IS NOT NULL
                    OR json_type(line_json(NEW.row), '$.payload.history_base') = 'object') THEN 1 END
    FROM facts
    WHERE row = NEW.row AND (is_new OR first_meta
                             OR coalesce(new_model, new_cwd, starts, ends) IS NOT NULL)
    ON CONFLICT DO UPDATE SET
        model = coalesce(excluded.model, model), cwd = coalesce(excluded.cwd, cwd),
        turn = CASE WHEN excluded.turn IS NOT NULL THEN excluded.turn
                    WHEN turn IS NOT (SELECT ends FROM facts WHERE row = NEW.row) THEN turn END,
        turns = excluded.turns, marked = excluded.marked, forked = coalesce(excluded.forked, forked);
END;

-- Compute the usage since the last count. base: 1 if the last count must be subtracted.
CREATE TRIGGER count AFTER UPDATE OF counts ON facts BEGIN
    UPDATE sessions SET (input, cached, written, output, reasoning, total) = (
        SELECT coalesce(t ->> '$.input_tokens', 0) - coalesce(l ->> '$.input_tokens', 0),
               coalesce(t ->> '$.cached_input_tokens', 0) - coalesce(l ->> '$.cached_input_tokens', 0),
               coalesce(t ->> '$.cache_write_input_tokens', 0)
                   - coalesce(l ->> '$.cache_write_input_tokens', 0),
               coalesce(t ->> '$.output_tokens', 0) - coalesce(l ->> '$.output_tokens', 0),
               coalesce(t ->> '$.reasoning_output_tokens', 0)
                   - coalesce(l ->> '$.reasoning_output_tokens', 0), 0
        FROM (SELECT line_json(NEW.row) -> '$.payload.info.total_token_usage' AS t,
                     line_json(NEW.row) -> '$.payload.info.last_token_usage' AS l))
    WHERE session = (SELECT session FROM file WHERE made IS NULL) AND forked
      AND json_type(line_json(NEW.row), '$.payload.info.last_token_usage') = 'object';
    UPDATE facts SET (base, input, cached, written, output, reasoning) = (
        SELECT base, CAST(coalesce(u ->> '$.input_tokens', 0) AS INTEGER) - base * coalesce(input, 0),
               CAST(coalesce(u ->> '$.cached_input_tokens', 0) AS INTEGER) - base * coalesce(cached, 0),
               CAST(coalesce(u ->> '$.cache_write_input_tokens', 0) AS INTEGER)
                   - base * coalesce(written, 0),
               CAST(coalesce(u ->> '$.output_tokens', 0) AS INTEGER) - base * coalesce(output, 0),
               CAST(coalesce(u ->> '$.reasoning_output_tokens', 0) AS INTEGER)
                   - base * coalesce(reasoning, 0)
        FROM (SELECT s.*, u, coalesce(u ->> '$.total_tokens' >= s.total, 0) AS base
              FROM sessions s, (SELECT line_json(NEW.row) -> '$.payload.info.total_token_usage' AS u)
              WHERE s.session = facts.session))
    WHERE row = NEW.row AND json_type(line_json(NEW.row), '$.payload.info.total_token_usage') = 'object';
    UPDATE facts SET main = 'usage', (tier, searches) = (SELECT s.tier, s.searches FROM sessions s WHERE s.session = facts.session)
    WHERE row = NEW.row AND copied IS NULL AND (input <> 0 OR cached <> 0 OR written <> 0 OR output <> 0);
    UPDATE sessions SET searches = NULL WHERE session = (SELECT session FROM facts WHERE row = NEW.row AND main = 'usage');
    UPDATE sessions SET (forked, input, cached, written, output, reasoning, total) = (
        SELECT NULL, f.input + f.base * coalesce(sessions.input, 0),
               f.cached + f.base * coalesce(sessions.cached, 0),
               f.written + f.base * coalesce(sessions.written, 0),
               f.output + f.base * coalesce(sessions.output, 0),
               f.reasoning + f.base * coalesce(sessions.reasoning, 0),
               coalesce(line_json(NEW.row) ->> '$.payload.info.total_token_usage.total_tokens', 0)
        FROM facts f WHERE f.row = NEW.row)
    WHERE session = (SELECT session FROM facts WHERE row = NEW.row AND base IS NOT NULL);
END;

-- Find how a call ended.
CREATE TRIGGER end AFTER UPDATE OF closes ON facts BEGIN
    INSERT OR REPLACE INTO ends
    SELECT f.session, p ->> '$.call_id',
           CASE WHEN json_type(p, '$.exit_code') = 'integer' THEN p ->> '$.exit_code' END,
           CAST(p ->> '$.duration.secs' * 1000 + p ->> '$.duration.nanos' / 1000000 AS INTEGER),
           coalesce(p ->> '$.exit_code' <> 0, p ->> '$.status' IN ('failed', 'declined'),
                    p ->> '$.success' = 0, CASE WHEN json_type(p, '$.result') = 'object'
                        THEN json_type(p, '$.result.Err') IS NOT NULL
                             OR coalesce(p ->> '$.result.Ok.isError', p ->> '$.result.Ok.is_error', 0) = 1 END)
    FROM facts f, (SELECT line_json(NEW.row) -> '$.payload' AS p)
    WHERE f.row = NEW.row AND json_type(p, '$.call_id') = 'text';
    UPDATE facts SET main = 'late', (exit_code, ms, failed) = (
        SELECT exit_code, ms, failed FROM ends e
        WHERE e.session = facts.session AND e.call = line_json(NEW.row) ->> '$.payload.call_id')
    WHERE row = NEW.row AND copied IS NULL AND EXISTS (SELECT 1 FROM waiting w WHERE w.session = facts.session
                                    AND w.call = line_json(NEW.row) ->> '$.payload.call_id');
    DELETE FROM waiting WHERE session = (SELECT session FROM facts WHERE row = NEW.row)
        AND call = line_json(NEW.row) ->> '$.payload.call_id';
END;

-- Find the result of a call in its output: in lines before "Output:" (head), or as {"output",
-- "metadata"}. A head may follow the text of the command, a warning or a note about the length, which
-- do not count. With a LIMIT SQLite computes a column once.
CREATE TRIGGER result AFTER UPDATE OF answers ON facts BEGIN
    UPDATE facts SET (exit_code, ms, failed) = (
        SELECT coalesce(o.exit_code, e.exit_code), coalesce(o.ms, e.ms),
               coalesce(CASE WHEN json_type(line_json(NEW.row), '$.payload.output.success') IN ('true', 'false')
                            THEN NOT line_json(NEW.row) ->> '$.payload.output.success' END,
                        o.exit_code <> 0, o.refused, e.failed)
        FROM (SELECT coalesce(
                         CASE WHEN head LIKE '%' || char(10) || 'Exit code: %'
                                  THEN CAST(substr(head, instr(head, char(10) || 'Exit code: ') + 12) AS INTEGER)
                              WHEN head LIKE '%' || char(10) || 'Process exited with code %'
                                  THEN CAST(substr(head, instr(head, char(10) || 'Process exited with code ') + 26)
                                            AS INTEGER) END,
                         CASE WHEN json_type(line_json(NEW.row), '$.payload.output') = 'array' THEN (
                             SELECT c.value
                             FROM (SELECT b.value ->> '$.text' AS t FROM json_each(line_json(NEW.row), '$.payload.output') b
                                   WHERE b.type = 'object'),
                                  json_tree(CASE WHEN substr(t, 1, 1) IN ('{', '[') AND json_valid(t) THEN t END) c
                             WHERE t LIKE '%"exit_code"%' AND c.key = 'exit_code' AND c.type = 'integer'
                             ORDER BY c.value = 0 LIMIT 1) END,
                         CASE WHEN json_type(meta, '$.exit_code') = 'integer' THEN meta ->> '$.exit_code' END)
                         AS exit_code,
                     CAST(round(1000 * coalesce(
                         CASE WHEN head LIKE '%' || char(10) || 'Wall time%'
                             THEN CAST(ltrim(substr(head, instr(head, char(10) || 'Wall time') + 10), ': ') AS REAL) END,
                         CASE WHEN json_type(meta, '$.duration_seconds') IN ('integer', 'real')
                             THEN meta ->> '$.duration_seconds' END)) AS INTEGER) AS ms,
                     CASE WHEN EXISTS (SELECT 1 FROM refused r
                                       WHERE r.word = substr(begin, 1, instr(begin || ' ', ' ') - 1) AND begin GLOB r.form)
                               OR json_type(meta, '$.content') = 'array'
                                  AND coalesce(meta ->> '$.isError', meta ->> '$.is_error') = 1
                          THEN 1 END AS refused
              FROM (SELECT begin, meta, substr(rest, 1, coalesce(nullif(instr(rest, char(10) || 'Output:'), 0), 300)) AS head
                    FROM (SELECT begin,
                                 CASE WHEN begin GLOB 'Command: *' OR begin GLOB 'Warning: *'
                                           OR begin GLOB 'Total output lines: *'
                                     THEN substr(said, coalesce(nullif(instr(said, char(10) || 'Chunk ID: '), 0),
                                                                nullif(instr(said, char(10) || 'Wall time: '), 0)), 300)
                                     WHEN begin GLOB 'Chunk ID: *' || char(10) || 'Wall time*'
                                          OR begin GLOB 'Wall time*[0-9] seconds*'
                                          OR begin GLOB 'Exit code: *' || char(10) || 'Wall time*'
                                          OR begin GLOB 'Process exited with code *' || char(10) || 'Output:*'
                                          OR begin GLOB 'Script *' || char(10) || 'Wall time *'
                                     THEN char(10) || begin END AS rest,
                                 CASE WHEN substr(begin, 1, 1) = '{' AND json_valid(said)
                                     THEN coalesce(said -> '$.metadata', said -> '$') END AS meta
                          FROM (SELECT said, substr(said, 1, 300) AS begin
                                FROM (SELECT CASE json_type(line_json(NEW.row), '$.payload.output')
                                                 WHEN 'text' THEN line_json(NEW.row) ->> '$.payload.output'
                                                 WHEN 'array' THEN coalesce(
                                                     line_json(NEW.row) ->> '$.payload.output[0].text', (
                                                     SELECT b.value ->> '$.text'
                                                     FROM json_each(line_json(NEW.row), '$.payload.output') b
                                                     WHERE b.type = 'object' AND b.value ->> '$.text' IS NOT NULL LIMIT 1))
                                                 WHEN 'object' THEN line_json(NEW.row) ->> '$.payload.output.content'
                                             END AS said LIMIT 1) LIMIT 1) LIMIT 1) LIMIT 1) LIMIT 1) o
        LEFT JOIN ends e ON e.session = facts.session AND e.call = line_json(NEW.row) ->> '$.payload.call_id')
    WHERE row = NEW.row;
    INSERT OR IGNORE INTO waiting
    SELECT session, line_json(NEW.row) ->> '$.payload.call_id' FROM facts
    WHERE row = NEW.row AND coalesce(exit_code, failed) IS NULL
      AND json_type(line_json(NEW.row), '$.payload.call_id') = 'text';
END;

-- A line with its facts, and its source.
CREATE VIEW work AS
SELECT f.*, l.j, l.unreadable,
       json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', f.n,
                   'record', coalesce(l.j -> '$.ordinal', nullif(l.j -> '$.payload.id', 'null')),
                   'copied', CASE WHEN f.copied THEN 'true' END) AS source,
       json_text(f.turn) AS turn_id,
       json_text(session_id(coalesce(l.j ->> '$.payload.parent_thread_id',
           l.j ->> '$.payload.source.subagent.thread_spawn.parent_thread_id',
           l.j ->> '$.payload.forked_from_id'))) AS parent,
       json_remove(l.j, '$.payload.model_provider', '$.payload.cwd', '$.payload.git.branch',
                   '$.payload.timestamp') AS rest
FROM facts f CROSS JOIN (SELECT row, unreadable, line_json(row) AS j FROM lines) l USING (row) CROSS JOIN source s;

-- batch

INSERT INTO said SELECT * FROM said;

-- CROSS JOIN keeps the order: line, kind.
SELECT session, ts, type, id, NULL,
       CASE WHEN at IS NULL AND ts > 1
           THEN substr(data, 1, length(data) - 1) || ',"time":"of the line before"}' ELSE data END, n, formerly
FROM (
    SELECT session, ts, at, n,
           CASE WHEN k = 4 THEN hash || '.usage' WHEN k BETWEEN 0 AND 6 AND NOT (k = 0 AND is_new) THEN hash || '.' || k END AS formerly,
           CASE k
           WHEN -1 THEN 'telemetry.superseded'
           WHEN 0 THEN CASE WHEN is_new THEN 'session.created' ELSE 'session.updated' END
           WHEN 1 THEN 'session.updated'
           WHEN 2 THEN 'turn.completed'
           WHEN 3 THEN 'turn.started'
           WHEN 4 THEN 'agent.turn.usage'
           WHEN 7 THEN 'turn.rolled_back'
           WHEN 5 THEN
               CASE main
               WHEN 'message' THEN 'message.added' WHEN 'reasoning' THEN 'message.added'
               WHEN 'other' THEN 'message.added' WHEN 'named' THEN 'session.updated'
               WHEN 'late' THEN 'tool.updated'
               WHEN 'call' THEN 'tool.called'
               WHEN 'result' THEN CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END
               WHEN 'checkpoint' THEN 'checkpoint.noted'
               WHEN 'end' THEN CASE WHEN kind = 'turn_aborted' THEN 'turn.cancelled'
                                    WHEN coalesce(json_type(j, '$.payload.error'), 'null') <> 'null'
                                        THEN 'turn.failed'
                                    ELSE 'turn.completed' END
               WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END
           ELSE CASE WHEN j ->> '$.payload.status' IN ('failed', 'incomplete') THEN 'tool.failed'
                     ELSE 'tool.returned' END END AS type,
           CASE WHEN k = -1 THEN 'telemetry.superseded' WHEN k = 0 AND is_new THEN 'session.created' WHEN k = 4 THEN label || '.usage'
                WHEN k = 7 THEN label || '.' || b.value ELSE label || '.' || k END AS id,
           CASE k
           WHEN -1 THEN json_fields('source', source)
           WHEN 0 THEN
               CASE WHEN main <> 'meta' THEN json_fields(
                   'id', json_text(session), 'agent_id', '"codex"', 'status', '"idle"', 'source', source)
               WHEN is_new THEN json_fields(
                   'id', json_text(session), 'agent_id', '"codex"', 'provider', j -> '$.payload.model_provider',
                   'status', '"idle"', 'working_directory', j -> '$.payload.cwd',
                   'git_branch', j -> '$.payload.git.branch', 'parent_session_id', work.parent,
                   'created_at', j -> '$.payload.timestamp', 'source', source, 'extra', rest)
               ELSE json_fields(
                   'set', json_fields('provider', j -> '$.payload.model_provider',
                                      'working_directory', j -> '$.payload.cwd',
                                      'git_branch', j -> '$.payload.git.branch',
                                      'parent_session_id', work.parent, 'created_at', j -> '$.payload.timestamp'),
                   'source', source, 'extra', rest) END
           WHEN 1 THEN json_fields(
               'set', json_fields('model', CASE WHEN new_model IS NOT NULL THEN j -> '$.payload.model' END,
                                  'working_directory', CASE WHEN new_cwd IS NOT NULL
                                                           THEN j -> '$.payload.cwd' END,
                                  'parent_session_id', json_text(session_id(foreign_meta))),
               'turn_id', turn_id, 'source', source,
               'extra', CASE WHEN main = 'updated' THEN json_remove(j, CASE WHEN new_model IS NOT NULL THEN '$.payload.model'
                                            ELSE '$." "' END,
                                    CASE WHEN new_cwd IS NOT NULL THEN '$.payload.cwd' ELSE '$." "' END) END)
           WHEN 7 THEN json_fields('turn_id', json_text(b.value), 'reason', j -> '$.payload.type', 'source', source)
           WHEN 2 THEN json_fields(
               'turn_id', json_text(next_ends), 'reason', '"next_turn"', 'source', source)
           WHEN 3 THEN json_fields(
               'turn_id', turn_id, 'sequence', turns, 'status', '"running"', 'source', source,
               'extra', CASE WHEN main = 'start' THEN json_remove(j, '$.payload.turn_id') END)
           WHEN 4 THEN json_fields(
               'turn_id', turn_id, 'model', json_text(model),
               'input_tokens', CASE WHEN json_type(j, '$.payload.info.total_token_usage.input_tokens')
                                         IN ('integer', 'real') THEN input END,
               'output_tokens', CASE WHEN json_type(j, '$.payload.info.total_token_usage.output_tokens')
                                          IN ('integer', 'real') THEN output END,
               'cached_input_tokens', CASE WHEN json_type(j, '$.payload.info.total_token_usage.cached_input_tokens')
                                           IS NOT NULL THEN cached END,
               'cache_write_tokens', CASE WHEN json_type(j, '$.payload.info.total_token_usage.cache_write_input_tokens')
                                          IS NOT NULL THEN written END,
               'web_searches', searches, 'reasoning_output_tokens', reasoning, 'tier', json_text(tier),
               'prompt_tokens', CASE WHEN j ->> '$.payload.info.last_token_usage.input_tokens' <> input
                                     THEN j -> '$.payload.info.last_token_usage.input_tokens' END,
               'total_tokens', coalesce(input, 0) + coalesce(output, 0), 'source', source, 'extra', j)
           WHEN 5 THEN
           -- The event that contains the line.
           CASE main
           WHEN 'message' THEN json_fields(
               'id', coalesce(nullif(j -> '$.payload.id', 'null'), json_text(hash)),
               'role', coalesce(j -> '$.payload.role', '"assistant"'), 'content', j -> '$.payload.content',
               'said', CASE WHEN j ->> '$.payload.role' = 'user' THEN said(j -> '$.payload.content') END,
               'model', CASE WHEN j ->> '$.payload.role' = 'assistant' THEN json_text(model) END,
               'turn_id', turn_id, 'source', source,
               'extra', json_remove(j, '$.payload.id', '$.payload.role', '$.payload.content'))
           WHEN 'other' THEN json_fields(
               'id', coalesce(nullif(j -> '$.payload.id', 'null'), json_text(hash)), 'role', '"agent"',
               'author', j -> '$.payload.author', 'content', j -> '$.payload.content',
               'turn_id', turn_id, 'source', source,
               'extra', json_remove(j, '$.payload.id', '$.payload.author', '$.payload.content'))
           WHEN 'named' THEN json_fields(
               'set', json_fields('title', j -> '$.payload.thread_name'), 'source', source,
               'extra', json_remove(j, '$.payload.thread_name'))
           WHEN 'late' THEN json_fields(
               'call_id', j -> '$.payload.call_id',
               'success', CASE failed WHEN 0 THEN 'true' WHEN 1 THEN 'false' END,
               'exit_code', exit_code, 'duration_ms', ms, 'turn_id', turn_id, 'source', source,
               'extra', json_remove(j, '$.payload.call_id'))
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
               'kind', CASE WHEN j ->> '$.type' = 'event_msg' AND json_type(j, '$.payload') = 'object'
                                 AND NOT EXISTS (SELECT 1 FROM event_types e WHERE e.type = work.kind)
                            THEN json_text('event_msg.' || coalesce(work.kind, '')) ELSE j -> '$.type' END,
               'turn_id', turn_id, 'source', source,
               'extra', CASE json_type(j) WHEN 'object' THEN json_remove(j, '$.type') ELSE j END)
           END
           ELSE json_fields(
               'call_id', coalesce(nullif(j -> '$.payload.call_id', 'null'),
                                   nullif(j -> '$.payload.id', 'null'), json_text(hash)),
               'success', CASE WHEN j ->> '$.payload.status' IN ('failed', 'incomplete') THEN 'false'
                               WHEN j ->> '$.payload.status' = 'completed' THEN 'true' END,
               'turn_id', turn_id, 'source', source) END AS data
    FROM work CROSS JOIN kinds LEFT JOIN json_each(CASE k WHEN 7 THEN taken END) b
    WHERE CASE k
          WHEN -1 THEN supersedes
          WHEN 0 THEN is_new OR main = 'meta'
          WHEN 1 THEN main = 'updated' OR foreign_meta IS NOT NULL
          WHEN 7 THEN taken IS NOT NULL
          WHEN 2 THEN next_ends IS NOT NULL
          WHEN 3 THEN starts IS NOT NULL
          WHEN 4 THEN main = 'usage'
          WHEN 5 THEN main NOT IN ('meta', 'updated', 'start', 'usage')
          ELSE main = 'call' AND kind IN ('web_search_call', 'image_generation_call', 'file_search_call',
                                          'code_interpreter_call', 'mcp_call')
               AND coalesce(j ->> '$.payload.status', '') NOT IN ('in_progress', 'searching') END
);

DELETE FROM facts;

-- end
INSERT OR IGNORE INTO reverted
SELECT b.session, b.ts, t.data ->> '$.turn_id', b.n
FROM (SELECT session, thread, ordinal, name, ts, n FROM bases
      UNION ALL
      SELECT session, data ->> '$.extra.payload.history_base.thread_id', data ->> '$.extra.payload.history_base.end_ordinal_exclusive',
             data ->> '$.source.file', ts, 1
      FROM recorded WHERE type = 'session.created' AND json_type(data, '$.extra.payload.history_base') = 'object') b
JOIN recorded t ON t.session = b.session AND t.type = 'turn.started'
WHERE session_id(b.thread) = b.session AND (t.data ->> '$.source.file' <> b.name OR t.data ->> '$.source.line' < b.n) AND t.data ->> '$.source.record' >= b.ordinal
  AND NOT EXISTS (SELECT 1 FROM recorded r WHERE r.session = t.session AND r.type = 'turn.rolled_back'
                                             AND r.data ->> '$.turn_id' = t.data ->> '$.turn_id');
SELECT session, ts, 'turn.rolled_back', turn || '.reverted', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"thread_revert"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', n)), n
FROM reverted, source;
