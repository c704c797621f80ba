-- importer kimi   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: metadata Step* Turn* MCP* Hook* Approval* Question* ToolCall* Notification Plan* Btw* StatusUpdate Subagent* Compaction*
-- records: config.* context.* cron.* forked full_compaction.* goal.* interaction.* interruptionReminder.* llm.* loop.* mcp.* permission.*
-- records: plan_mode.* plan.* plugin.* profile.* prompt.* runtime.* staleGuard.* swarm_mode.* task.* token_counting.* tools.* tower_mode.*
-- records: turn.* usage.*
-- files: wire.jsonl
-- beside: state.json context*.jsonl session_index.jsonl
-- resume: kimi -r
-- places: $KIMI_CODE_HOME/sessions ~/.kimi-code/sessions $KIMI_SHARE_DIR/sessions ~/.kimi/sessions
--
-- Sessions of Kimi Code, sessions/<project>/<session>/agents/<agent>/wire.jsonl, and of its predecessor
-- Kimi CLI, sessions/<project>/<session>/wire.jsonl, with sub-agents in <session>/subagents/<agent>/.
-- docs/events.md lists the resulting events; annal/import.h describes the tables that an importer can
-- read.
--
-- The form was learnt from the programs: MoonshotAI/kimi-code d723cc47e (0.38.0, MIT: wire protocol 1.5,
-- agent-core-v2) and MoonshotAI/kimi-cli 4a550effd (1.49.0, Apache-2.0: wire protocol 1.10). Calls,
-- results, failures and tokens were compared with the ten logs of Kimi CLI in the tests of the former,
-- which are parts of recorded sessions, and with its two of Kimi Code, written by hand. In a
-- recorded session of Kimi Code (protocol 1.4, a sub-agent) only the shape of the records was compared.
-- No recorded turn.ended, turn.cancel or StepInterrupted was found.
--
--  (1) The session is the directory. The directories agents and subagents name sub-agents: the agent
--      main is the session itself, any other <session>.<agent>. A SubagentEvent repeats what the
--      log of its sub-agent has; without an agent_id no such log exists, and the sub-agent is
--      <session>.agent-<call>.
--  (2) TurnBegin and turn.prompt begin a turn. A context.append_message with the same words repeats
--      it, and without turn.prompt's words it begins the turn itself; other messages in the name of the
--      user are the program's.
--  (3) TurnEnd, turn.ended and turn.cancel end a turn; Kimi Code before protocol 1.5 writes none, so a
--      step without a call may end it. A step is interrupted by an error.
--  (4) Arguments of a call may follow in ToolCallParts: the call is complete when they are JSON, or when
--      another line of its agent follows.
--  (5) StatusUpdate and usage.record have the tokens; a step.end repeats them. The logs of Kimi CLI
--      do not name the model.
--  (6) The first event of a line contains the rest of the line under "extra".

-- detect
SELECT max(CASE
    WHEN json_type(json, '$.message.payload') = 'object' AND json_type(json, '$.message.type') = 'text' AND json_type(json, '$.timestamp') IN ('real', 'integer')
    THEN CASE WHEN json ->> '$.message.type' IN ('TurnBegin', 'StepBegin', 'StatusUpdate', 'ContentPart', 'ToolCall', 'ToolResult', 'TurnEnd') THEN 95 ELSE 50 END
    WHEN json ->> '$.type' = 'metadata' AND json_type(json, '$.protocol_version') = 'text' THEN 60
    WHEN json ->> '$.type' = 'context.append_loop_event' AND json_type(json, '$.event.type') = 'text' THEN 95
    WHEN json ->> '$.type' = 'context.append_message' AND json_type(json, '$.message.role') = 'text' THEN 90
    WHEN json ->> '$.type' = 'turn.prompt' AND json_type(json, '$.input') = 'array' THEN 90
    ELSE 0 END) FROM lines

-- once
-- prompt: the words of the last turn.prompt. rest_ts, rest_n: a step without a call may be the last of
-- the turn. held: a call whose arguments are not complete.
CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, rest_ts INTEGER, rest_n INTEGER, model TEXT, cwd TEXT, prompt TEXT,
                       held TEXT, held_id TEXT, held_arguments TEXT) WITHOUT ROWID;
CREATE TABLE file (session TEXT, parent TEXT, ts INTEGER);
INSERT INTO file
SELECT session_id(CASE WHEN above NOT IN ('agents', 'subagents') OR session = '' THEN coalesce(nullif(own, ''), stem)
                       WHEN above = 'agents' AND own = 'main' THEN session ELSE session || CASE WHEN own GLOB 'agent-*' THEN '.' ELSE '.agent-' END || own END),
       CASE WHEN above IN ('agents', 'subagents') AND session <> '' AND (above = 'subagents' OR own <> 'main') THEN session_id(session) END, 1
FROM source, (SELECT own, above, substr(p, length(rtrim(p, replace(p, '/', ''))) + 1) AS session
              FROM (SELECT own, substr(p, length(rtrim(p, replace(p, '/', ''))) + 1) AS above, rtrim(rtrim(p, replace(p, '/', '')), '/') AS p
                    FROM (SELECT substr(p, length(rtrim(p, replace(p, '/', ''))) + 1) AS own, rtrim(rtrim(p, replace(p, '/', '')), '/') AS p
                          FROM (SELECT rtrim(rtrim(p, replace(p, '/', '')), '/') AS p
                                FROM (SELECT coalesce((SELECT value FROM options WHERE name = ':path'), '') AS p)))));
CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns are first: SQLite reads them without the columns after them.
CREATE TABLE now (main TEXT, type TEXT, id TEXT, session TEXT, parent TEXT, ts INTEGER, source TEXT, p TEXT, said TEXT, j TEXT);

-- The events of a line. what: user: begins a turn; answer: may end it; busy: it continues; end: it is
-- over; meta: of the session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT n.session, NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(n.session), 'agent_id', '"kimi"', 'status', '"idle"', 'parent_session_id', json_text(n.parent),
                       'source', n.source), NEW.n
    FROM now n WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = n.session);
    INSERT OR IGNORE INTO sessions (session, turns) SELECT n.session, 0 FROM now n;
    INSERT INTO out
    SELECT n.session, coalesce(s.rest_ts, NEW.ts), 'turn.completed', s.turn || '.ends',
           json_fields('turn_id', json_text(s.turn), 'reason', CASE WHEN s.rest_ts IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'source', n.source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE NEW.what = 'user' AND s.turn IS NOT NULL;
    INSERT INTO out
    SELECT n.session, NEW.ts, 'turn.started', NEW.id || '.begins',
           json_fields('turn_id', json_text(NEW.id), 'sequence', s.turns + 1, 'status', '"running"',
                       'prompt_ref', json_text(NEW.id), 'source', n.source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE NEW.what = 'user';
    UPDATE sessions SET turn = NEW.id, turns = turns + 1 WHERE NEW.what = 'user' AND session = (SELECT n.session FROM now n);
    INSERT INTO out
    SELECT n.session, NEW.ts, NEW.type, NEW.id,
           substr(NEW.data, 1, length(NEW.data) - 1)
           || CASE NEW.what WHEN 'meta' THEN '' ELSE coalesce(',"turn_id":' || json_text(s.turn), '') END
           || ',"source":' || n.source || '}', NEW.n
    FROM now n JOIN sessions s USING (session);
    UPDATE sessions SET turn = CASE WHEN NEW.what = 'end' THEN NULL ELSE turn END,
                        rest_ts = CASE NEW.what WHEN 'answer' THEN NEW.ts END, rest_n = NEW.n
    WHERE NEW.what IN ('user', 'answer', 'busy', 'end') AND session = (SELECT n.session FROM now n);
END;

-- A held call, once its arguments are complete.
CREATE TABLE releases (n INTEGER);
CREATE TRIGGER release AFTER INSERT ON releases BEGIN
    INSERT INTO parts
    SELECT 'busy', n.ts, 'tool.called', held_id || '.call',
           json_fields('call_id', coalesce(held -> '$.id', json_text(held_id)), 'tool', coalesce(held -> '$.function.name', '"unknown"'),
                       'input', CASE WHEN held_arguments <> '' THEN json_text(held_arguments) ELSE '""' END), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE held IS NOT NULL;
    UPDATE sessions SET held = NULL, held_id = NULL, held_arguments = NULL WHERE session = (SELECT n.session FROM now n);
    DELETE FROM releases;
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, type, p, main)
    SELECT j, type, p,
        CASE WHEN j IS NULL THEN 'unreadable'
        WHEN type IN ('TurnBegin', 'SteerInput') AND (json_type(p, '$.user_input') = 'text' OR json_type(p, '$.user_input[0]') IS NOT NULL)
        THEN CASE type WHEN 'TurnBegin' THEN 'user' ELSE 'steer' END
        WHEN type IN ('turn.prompt', 'turn.steer') AND json_type(p, '$.input[0]') IS NOT NULL THEN CASE type WHEN 'turn.prompt' THEN 'user' ELSE 'steer' END
        WHEN type = 'ContentPart' AND json_type(p, '$.type') = 'text' OR type = 'loop.content.part' AND json_type(p, '$.part') = 'object' THEN 'part'
        WHEN type = 'ToolCall' AND json_type(p, '$.function') = 'object' OR type = 'loop.tool.call' AND json_type(p, '$.name') = 'text' THEN 'call'
        WHEN type = 'ToolCallPart' AND json_type(p, '$.arguments_part') = 'text' THEN 'piece'
        WHEN type = 'ToolResult' AND json_type(p, '$.return_value') = 'object' OR type = 'loop.tool.result' AND json_type(p, '$.result') = 'object' THEN 'result'
        WHEN type = 'context.append_message' AND json_type(p, '$.message.role') = 'text' AND json_type(p, '$.message.content') = 'array'
        THEN CASE p ->> '$.message.role' WHEN 'tool' THEN 'result' ELSE 'message' END
        WHEN type = 'StatusUpdate' AND json_type(p, '$.token_usage') = 'object' OR type = 'usage.record' AND json_type(p, '$.usage') = 'object' THEN 'usage'
        WHEN type = 'loop.step.end' AND p ->> '$.finishReason' NOT IN ('tool_use', 'tool_calls') THEN 'step'
        WHEN type IN ('TurnEnd', 'turn.ended') THEN 'end'
        WHEN type = 'turn.cancel' AND coalesce(p ->> '$.target', 'active') = 'active' THEN 'abort' WHEN type = 'StepInterrupted' THEN 'failure'
        WHEN type IN ('CompactionEnd', 'context.apply_compaction') THEN 'compaction'
        WHEN type = 'StepRetry' THEN 'error' ELSE 'record' END
    FROM (SELECT j, CASE WHEN legacy AND nested THEN j ->> '$.message.payload.event.type' WHEN legacy THEN j ->> '$.message.type'
                         WHEN j ->> '$.type' = 'context.append_loop_event' AND json_type(j, '$.event.type') = 'text' THEN 'loop.' || (j ->> '$.event.type')
                         WHEN json_type(j, '$.type') = 'text' THEN j ->> '$.type' END AS type,
                 CASE WHEN legacy AND nested THEN j -> '$.message.payload.event.payload' WHEN legacy THEN j -> '$.message.payload'
                      WHEN j ->> '$.type' = 'context.append_loop_event' AND json_type(j, '$.event.type') = 'text' THEN j -> '$.event' ELSE j END AS p
          FROM (SELECT NEW.json AS j, coalesce(json_type(NEW.json, '$.message.payload') = 'object' AND json_type(NEW.json, '$.message.type') = 'text', 0) AS legacy,
                       coalesce(NEW.json ->> '$.message.type' = 'SubagentEvent' AND json_type(NEW.json, '$.message.payload.event.payload') = 'object'
                                AND json_type(NEW.json, '$.message.payload.event.type') = 'text'
                                AND coalesce(json_type(NEW.json, '$.message.payload.agent_id'), 'null') = 'null', 0) AS nested));
    UPDATE file SET ts = coalesce(CASE WHEN n.j ->> '$.timestamp' > 1000000000 THEN CAST(round((n.j ->> '$.timestamp') * 1000000) AS INTEGER)
                                       WHEN n.j ->> '$.time' > 1000000000000 THEN CAST(n.j ->> '$.time' AS INTEGER) * 1000
                                       WHEN n.j ->> '$.created_at' > 1000000000000 THEN CAST(n.j ->> '$.created_at' AS INTEGER) * 1000 END, file.ts)
    FROM now n;
    UPDATE now SET ts = f.ts, id = NEW.hash, session = f.session, parent = f.parent,
        source = json_fields('kind', json_text(s.kind), 'file', json_text(s.file), 'line', NEW.n)
    FROM file f, source s;
    UPDATE now SET session = session_id(session || '.agent-' || coalesce(j ->> '$.message.payload.parent_tool_call_id', j ->> '$.message.payload.task_tool_call_id')),
        parent = session
    WHERE j ->> '$.message.type' = 'SubagentEvent' AND type <> 'SubagentEvent'
      AND coalesce(j ->> '$.message.payload.parent_tool_call_id', j ->> '$.message.payload.task_tool_call_id') IS NOT NULL;
    UPDATE now SET said = CASE
        WHEN main IN ('user', 'steer') THEN coalesce(p -> '$.user_input', p -> '$.input')
        WHEN main = 'part' THEN (SELECT '[' || CASE WHEN json_type(b, '$.think') = 'text' THEN '{"thinking":' || (b -> '$.think') || ',' || substr(json_remove(b, '$.think'), 2)
                                                    ELSE b END || ']'
                                 FROM (SELECT CASE type WHEN 'ContentPart' THEN p ELSE p -> '$.part' END AS b))
        WHEN main = 'message' THEN p -> '$.message.content' END;
    -- Messages of the program in the name of the user, and repeated ones.
    UPDATE now SET main = CASE
        WHEN p ->> '$.message.role' <> 'user' THEN 'message'
        WHEN said = (SELECT s.prompt FROM sessions s WHERE s.session = now.session) THEN 'record'
        WHEN coalesce(p ->> '$.message.origin.kind', 'user') IN ('user', 'skill_activation', 'plugin_command') AND said <> '[]' THEN 'user' ELSE 'message' END
    WHERE main = 'message';
    INSERT INTO releases SELECT NEW.n FROM now JOIN sessions s USING (session) WHERE held IS NOT NULL AND main <> 'piece';
    INSERT INTO parts
    SELECT 'note', n.ts, 'session.updated', n.id || '.set',
           json_fields('set', json_fields('model', CASE WHEN x.model IS NOT NULL AND x.model IS NOT s.model THEN json_text(x.model) END,
                                          'working_directory', CASE WHEN x.cwd IS NOT NULL AND x.cwd IS NOT s.cwd THEN json_text(x.cwd) END)), NEW.n
    FROM now n LEFT JOIN sessions s USING (session),
         (SELECT CASE WHEN type = 'llm.request' AND json_type(j, '$.model') = 'text' THEN j ->> '$.model'
                      WHEN type IN ('config.update', 'profile.bind') AND json_type(j, '$.modelAlias') = 'text' THEN j ->> '$.modelAlias' END AS model,
                 CASE WHEN type IN ('config.update', 'profile.bind') THEN coalesce(
                          CASE WHEN json_type(j, '$.cwd') = 'text' THEN j ->> '$.cwd' END,
                          CASE WHEN json_type(j, '$.environmentDisclosure.cwd') = 'text' THEN j ->> '$.environmentDisclosure.cwd' END) END AS cwd FROM now) x
    WHERE x.model IS NOT NULL AND x.model IS NOT s.model OR x.cwd IS NOT NULL AND x.cwd IS NOT s.cwd;
    INSERT INTO parts
    SELECT CASE main WHEN 'user' THEN 'user' WHEN 'part' THEN 'busy' WHEN 'step' THEN 'answer' WHEN 'call' THEN 'busy' WHEN 'result' THEN 'busy'
               WHEN 'end' THEN CASE WHEN turn IS NULL THEN 'note' ELSE 'end' END WHEN 'abort' THEN CASE WHEN turn IS NULL THEN 'note' ELSE 'end' END
               WHEN 'failure' THEN CASE WHEN turn IS NULL THEN 'note' ELSE 'end' END
               WHEN 'message' THEN CASE WHEN p ->> '$.message.role' = 'assistant' THEN CASE WHEN called THEN 'busy' ELSE 'answer' END ELSE 'note' END
               ELSE 'note' END,
        ts,
        CASE main WHEN 'user' THEN 'message.added' WHEN 'steer' THEN 'message.added' WHEN 'part' THEN 'message.added'
            WHEN 'message' THEN CASE said WHEN '[]' THEN 'import.record' ELSE 'message.added' END
            WHEN 'call' THEN CASE WHEN held THEN 'import.record' ELSE 'tool.called' END
            WHEN 'result' THEN CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END
            WHEN 'usage' THEN 'agent.turn.usage'
            WHEN 'end' THEN CASE WHEN turn IS NULL THEN 'import.record' ELSE CASE p ->> '$.reason' WHEN 'cancelled' THEN 'turn.cancelled'
                                 WHEN 'failed' THEN 'turn.failed' WHEN 'blocked' THEN 'turn.failed' ELSE 'turn.completed' END END
            WHEN 'abort' THEN CASE WHEN turn IS NULL THEN 'import.record' ELSE 'turn.cancelled' END
            WHEN 'failure' THEN CASE WHEN turn IS NULL THEN 'import.record' ELSE 'turn.failed' END
            WHEN 'compaction' THEN 'checkpoint.noted' WHEN 'error' THEN 'provider.failed'
            WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END,
        id,
        CASE main
        WHEN 'user' THEN json_fields('id', json_text(id), 'role', '"user"', 'content', said,
            'extra', json_remove(j, '$.input', '$.message.content', '$.message.payload.user_input', '$.message.payload.event.payload.user_input'))
        WHEN 'steer' THEN json_fields('id', json_text(id), 'role', '"user"', 'content', said,
            'extra', json_remove(j, '$.input', '$.message.payload.user_input', '$.message.payload.event.payload.user_input'))
        WHEN 'part' THEN json_fields('id', json_text(id), 'role', '"assistant"', 'content', said, 'model', json_text(model),
            'extra', json_remove(j, CASE WHEN parent_call IS NOT NULL THEN '$.message.payload.event.payload' ELSE '$.message.payload' END, '$.event.part'))
        WHEN 'message' THEN CASE WHEN said = '[]' THEN json_fields('kind', json_text(type), 'extra', json_remove(j, '$.message.toolCalls'))
            ELSE json_fields('id', json_text(id), 'role', CASE p ->> '$.message.role' WHEN 'assistant' THEN '"assistant"' ELSE '"system"' END,
                'content', said, 'model', CASE p ->> '$.message.role' WHEN 'assistant' THEN json_text(model) END,
                'extra', json_remove(j, '$.message.content', '$.message.toolCalls')) END
        WHEN 'call' THEN CASE WHEN held THEN json_fields('kind', json_text(type), 'extra', j)
            ELSE json_fields('call_id', coalesce(p -> '$.id', p -> '$.toolCallId', json_text(id)), 'tool', coalesce(p -> '$.function.name', p -> '$.name', '"unknown"'),
                'input', coalesce(p -> '$.function.arguments', p -> '$.args'),
                'extra', CASE WHEN parent_call IS NOT NULL THEN j ELSE json_remove(j, '$.message.payload.id', '$.message.payload.function.name',
                    '$.message.payload.function.arguments', '$.event.toolCallId', '$.event.name', '$.event.args') END) END
        WHEN 'result' THEN json_fields('call_id', coalesce(p -> '$.tool_call_id', p -> '$.toolCallId', p -> '$.message.toolCallId', json_text(id)),
            'success', CASE WHEN failed THEN 'false' ELSE 'true' END, 'output', output,
            'exit_code', CASE WHEN failed AND instr(told, 'exit code: ') > 0 THEN CAST(CAST(substr(told, instr(told, 'exit code: ') + 11) AS INTEGER) AS TEXT) END,
            'extra', CASE WHEN parent_call IS NOT NULL THEN j ELSE json_remove(j, '$.message.payload.tool_call_id', '$.message.payload.return_value.output',
                '$.event.toolCallId', '$.event.result.output', '$.message.toolCallId', '$.message.content') END)
        WHEN 'usage' THEN json_fields('model', json_text(coalesce(model, p ->> '$.model')),
            'input_tokens', CAST(coalesce(u ->> '$.input_other', u ->> '$.inputOther', 0) + coalesce(u ->> '$.input_cache_read', u ->> '$.inputCacheRead', 0)
                                 + coalesce(u ->> '$.input_cache_creation', u ->> '$.inputCacheCreation', 0) AS INTEGER),
            'output_tokens', u -> '$.output', 'cached_input_tokens', coalesce(u -> '$.input_cache_read', u -> '$.inputCacheRead'),
            'cache_write_tokens', coalesce(u -> '$.input_cache_creation', u -> '$.inputCacheCreation'), 'extra', j)
        WHEN 'end' THEN CASE WHEN turn IS NULL THEN json_fields('kind', json_text(type), 'extra', j)
            ELSE json_fields('reason', CASE p ->> '$.reason' WHEN 'cancelled' THEN '"interrupted"' WHEN 'failed' THEN NULL WHEN 'blocked' THEN NULL ELSE '"answered"' END,
                'error', CASE WHEN p ->> '$.reason' IN ('failed', 'blocked') THEN coalesce(p -> '$.error', p -> '$.reason') END, 'extra', j) END
        WHEN 'abort' THEN CASE WHEN turn IS NULL THEN json_fields('kind', json_text(type), 'extra', j) ELSE json_fields('reason', '"interrupted"', 'extra', j) END
        WHEN 'failure' THEN CASE WHEN turn IS NULL THEN json_fields('kind', json_text(type), 'extra', j) ELSE json_fields('error', '"StepInterrupted"', 'extra', j) END
        WHEN 'compaction' THEN json_fields('note', '"compaction"', 'pre_tokens', p -> '$.tokensBefore', 'extra', j)
        WHEN 'error' THEN json_fields('provider', '"kimi"', 'error', p, 'extra', json_remove(j, '$.message.payload'))
        WHEN 'unreadable' THEN NEW.unreadable
        ELSE json_fields('kind', coalesce(json_text(type), '"line"'), 'extra', j) END, NEW.n
    FROM (SELECT n.*, s.turn, s.model,
                 CASE WHEN n.session <> f.session THEN 1 END AS parent_call,
                 json_type(p, '$.message.toolCalls[0]') IS NOT NULL AS called,
                 type = 'ToolCall' AND NOT (json_type(p, '$.function.arguments') = 'text' AND json_valid(p ->> '$.function.arguments')) AS held,
                 CASE json_type(p, '$.token_usage') WHEN 'object' THEN p -> '$.token_usage' ELSE p -> '$.usage' END AS u,
                 coalesce(p ->> '$.return_value.is_error', p ->> '$.result.isError', p ->> '$.message.isError', 0) AS failed,
                 CASE WHEN p ->> '$.return_value.output' IN ('', '[]') THEN p -> '$.return_value.message'
                      ELSE coalesce(p -> '$.return_value.output', p -> '$.result.output', p -> '$.message.content') END AS output,
                 substr(coalesce(p ->> '$.return_value.message', CASE json_type(p, '$.result.output') WHEN 'text' THEN p ->> '$.result.output' END), -80) AS told
          FROM now n LEFT JOIN sessions s USING (session), file f);
    UPDATE sessions SET
        prompt = CASE WHEN n.type = 'turn.prompt' THEN n.said ELSE prompt END,
        model = coalesce(CASE WHEN n.type = 'llm.request' AND json_type(n.j, '$.model') = 'text' THEN n.j ->> '$.model'
                              WHEN n.type IN ('config.update', 'profile.bind') AND json_type(n.j, '$.modelAlias') = 'text' THEN n.j ->> '$.modelAlias' END, model),
        cwd = coalesce(CASE WHEN n.type IN ('config.update', 'profile.bind') THEN coalesce(
                                CASE WHEN json_type(n.j, '$.cwd') = 'text' THEN n.j ->> '$.cwd' END,
                                CASE WHEN json_type(n.j, '$.environmentDisclosure.cwd') = 'text' THEN n.j ->> '$.environmentDisclosure.cwd' END) END, cwd),
        held = CASE WHEN n.main = 'call' AND n.type = 'ToolCall' AND NOT (json_type(n.p, '$.function.arguments') = 'text' AND json_valid(n.p ->> '$.function.arguments'))
                    THEN n.p ELSE held END,
        held_id = CASE n.main WHEN 'call' THEN n.id ELSE held_id END,
        held_arguments = CASE n.main WHEN 'call' THEN coalesce(n.p ->> '$.function.arguments', '') WHEN 'piece' THEN held_arguments || (n.p ->> '$.arguments_part')
                         ELSE held_arguments END
    FROM now n WHERE sessions.session = n.session;
    INSERT INTO releases SELECT NEW.n FROM now n JOIN sessions s USING (session) WHERE main = 'piece' AND held IS NOT NULL AND json_valid(held_arguments);
    INSERT INTO parts
    SELECT 'busy', n.ts, 'tool.called', n.id || '.call.' || c.key,
           json_fields('call_id', coalesce(c.value -> '$.id', json_text(n.id || '.' || c.key)),
               'tool', coalesce(c.value -> '$.name', c.value -> '$.function.name', '"unknown"'),
               'input', coalesce(c.value -> '$.arguments', c.value -> '$.function.arguments'), 'message_id', json_text(n.id), 'extra', c.value), NEW.n
    FROM now n, json_each(n.p, '$.message.toolCalls') c WHERE main = 'message' AND c.type = 'object';
    DELETE FROM parts;
END;

-- batch
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY rowid;
DELETE FROM out;

-- end
SELECT session, rest_ts, 'turn.completed', turn || '.ends', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', rest_n)), rest_n
FROM sessions, source WHERE turn IS NOT NULL AND rest_ts IS NOT NULL;
