-- importer atif   version 1
-- SPDX-License-Identifier: Apache-2.0
-- records: step head subagent
-- files: *.json
-- recalls: agent.turn.usage/usage.total
-- split: $.steps $.subagent_trajectories
--
-- Trajectories in the Agent Trajectory Interchange Format (ATIF) of Harbor, versions 1.0 to 1.8: one
-- document with the steps, and with the trajectories of sub-agents. docs/events.md lists the resulting
-- events; annal/import.h describes the tables that an importer can read.
--
-- The form was learnt from the models in the package atif 1.8.0 (MIT). Counts were compared with
-- trajectories that the converter of SREGym/SREGym ba07faf1 (MIT) makes of recorded sessions, and that
-- the models of atif accept. No trajectory that Harbor itself wrote was compared, and none with
-- embedded sub-agents.
--
--  (1) The session is the trajectory_id, else the session_id, else the file. The trajectory of a
--      sub-agent in the document is a session of its own, whose parent is the document; deeper ones
--      remain in its record.
--  (2) A step of the user with a message begins a turn. A step of the agent is a message, with its reasoning, then its
--      calls, then the results of its observation. An answer without a call ends the turn.
--  (3) A result without source_call_id belongs to the call of its step, if this has one call, and is
--      else a message of the role tool. A result is a failure if its extra says is_error.
--  (4) Metrics of a step are its tokens; input contains cached tokens. If no step has metrics, the
--      final_metrics of the document become one usage; what they grow by later is another.
--  (5) A step with is_copied_context is an import.record, without calls and tokens.
--  (6) The id of a step is its number, with its time or the length of its message.
--  (7) The first event of a step contains the rest of the step under "extra".

-- detect
SELECT max(CASE WHEN json ->> '$.at' = '$' AND json ->> '$.value.schema_version' GLOB 'ATIF-v*' THEN 98 ELSE 0 END) FROM lines

-- once
-- rest_ts, rest_n: an answer without a call is the last of the turn. total: the final metrics, until a
-- step has some; spoke: a step of the agent was read.
CREATE TABLE sessions (session TEXT PRIMARY KEY, parent TEXT, agent TEXT, model TEXT, made INTEGER, turn TEXT, turns INTEGER, rest_ts INTEGER,
                       rest_n INTEGER, total TEXT, spoke INTEGER) WITHOUT ROWID;
CREATE TABLE file (session TEXT, ts INTEGER);
INSERT INTO file SELECT log_session(stem), 1 FROM source;
CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
CREATE TABLE now (main TEXT, n INTEGER, session TEXT, source TEXT, copied INTEGER, j TEXT);

-- The events of a line. what: user: begins a turn; answer: may end it; busy: it continues; meta: of the
-- session.
CREATE TABLE parts (what TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT);
CREATE TRIGGER part AFTER INSERT ON parts BEGIN
    INSERT INTO out
    SELECT n.session, NEW.ts, 'session.created', 'session.created',
           json_fields('id', json_text(n.session), 'agent_id', '"atif"', 'status', '"idle"', 'source', n.source), n.n
    FROM now n WHERE NEW.what <> 'meta' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = n.session AND s.made);
    INSERT OR IGNORE INTO sessions (session, turns) SELECT n.session, 0 FROM now n;
    UPDATE sessions SET made = 1 WHERE session = (SELECT n.session FROM now n);
    INSERT INTO out
    SELECT n.session, coalesce(s.rest_ts, NEW.ts), 'turn.completed', s.turn || '.ends',
           json_fields('turn_id', json_text(s.turn), 'reason', CASE WHEN s.rest_ts IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'source', n.source), n.n
    FROM now n JOIN sessions s USING (session) WHERE NEW.what = 'user' AND s.turn IS NOT NULL;
    INSERT INTO out
    SELECT n.session, NEW.ts, 'turn.started', NEW.id || '.begins',
           json_fields('turn_id', json_text(NEW.id), 'sequence', s.turns + 1, 'status', '"running"',
                       'prompt_ref', json_text(NEW.id), 'source', n.source), n.n
    FROM now n JOIN sessions s USING (session) WHERE NEW.what = 'user';
    UPDATE sessions SET turn = NEW.id, turns = turns + 1 WHERE NEW.what = 'user' AND session = (SELECT n.session FROM now n);
    INSERT INTO out
    SELECT n.session, NEW.ts, NEW.type, NEW.id,
           substr(NEW.data, 1, length(NEW.data) - 1)
           || CASE NEW.what WHEN 'meta' THEN '' ELSE coalesce(',"turn_id":' || json_text(s.turn), '') END
           || ',"source":' || CASE WHEN n.copied THEN substr(n.source, 1, length(n.source) - 1) || ',"copied":true}' ELSE n.source END || '}', n.n
    FROM now n JOIN sessions s USING (session);
    UPDATE sessions SET rest_ts = CASE NEW.what WHEN 'answer' THEN NEW.ts END, rest_n = (SELECT n.n FROM now n)
    WHERE NEW.what IN ('user', 'answer', 'busy') AND session = (SELECT n.session FROM now n);
END;

-- The steps of the session in now. m: the step.
CREATE TABLE steps (k INTEGER, id TEXT, ts INTEGER, called INTEGER, m TEXT);
CREATE TRIGGER step AFTER INSERT ON steps BEGIN
    UPDATE file SET ts = coalesce(time_us(NEW.m ->> '$.timestamp'), file.ts);
    UPDATE now SET copied = coalesce(NEW.m ->> '$.is_copied_context', 0);
    UPDATE steps SET ts = (SELECT f.ts FROM file f), called = json_type(m, '$.tool_calls[0]') IS NOT NULL,
        id = 'step.' || coalesce(m ->> '$.step_id', NEW.k) || '.' || coalesce(m ->> '$.timestamp', length(m -> '$.message'));
    INSERT INTO parts
    SELECT 'note', s.ts, 'session.updated', s.id || '.model', json_fields('set', json_fields('model', m -> '$.model_name'))
    FROM steps s, now n JOIN sessions t USING (session)
    WHERE NOT n.copied AND json_type(m, '$.model_name') = 'text' AND m ->> '$.model_name' IS NOT t.model;
    UPDATE sessions SET model = coalesce(CASE WHEN json_type(NEW.m, '$.model_name') = 'text' THEN NEW.m ->> '$.model_name' END, model)
    WHERE session = (SELECT n.session FROM now n WHERE NOT n.copied);
    INSERT INTO parts
    SELECT CASE WHEN n.copied THEN 'note' WHEN role = 'user' THEN CASE WHEN said IS NULL THEN 'note' ELSE 'user' END
                WHEN role = 'agent' THEN CASE WHEN called THEN 'busy' ELSE 'answer' END ELSE 'note' END,
           s.ts, CASE WHEN said IS NULL OR n.copied THEN 'import.record' ELSE 'message.added' END, s.id,
           CASE WHEN n.copied THEN json_fields('kind', '"step"', 'extra', m)
           WHEN said IS NULL THEN json_fields('kind', '"step"', 'extra', json_remove(m, '$.tool_calls', '$.observation.results'))
           ELSE json_fields('id', json_text(s.id), 'role', CASE role WHEN 'agent' THEN '"assistant"' WHEN 'user' THEN '"user"' ELSE '"system"' END,
               'content', said, 'model', CASE role WHEN 'agent' THEN json_text(t.model) END,
               'extra', json_remove(m, '$.message', '$.reasoning_content', '$.tool_calls', '$.observation.results')) END
    FROM (SELECT s.*, m ->> '$.source' AS role, CASE WHEN text IS NULL OR m ->> '$.reasoning_content' IS NULL OR m ->> '$.reasoning_content' = '' THEN
                 CASE WHEN m ->> '$.reasoning_content' <> '' THEN '[{"type":"thinking","thinking":' || (m -> '$.reasoning_content') || '}]' ELSE text END
                 ELSE '[{"type":"thinking","thinking":' || (m -> '$.reasoning_content') || '},'
                      || CASE json_type(m, '$.message') WHEN 'array' THEN substr(text, 2) ELSE '{"type":"text","text":' || text || '}]' END END AS said
          FROM (SELECT s.*, CASE WHEN json_type(m, '$.message') = 'text' AND m ->> '$.message' <> '' THEN m -> '$.message'
                                 WHEN json_type(m, '$.message[0]') IS NOT NULL THEN m -> '$.message' END AS text FROM steps s) s) s,
         now n JOIN sessions t USING (session);
    INSERT INTO parts
    SELECT 'note', s.ts, 'import.record', s.id || '.' || e.key, json_fields('kind', '"step"', 'extra', json(m -> e.fullkey))
    FROM steps s, now n, json_each(s.m) e
    WHERE NOT n.copied AND (e.key = 'reasoning_content' AND e.type <> 'text' OR e.key = 'tool_calls' AND e.type NOT IN ('array', 'null')
           OR e.key = 'observation' AND json_type(e.value, '$.results') NOT IN ('array', 'null')
           OR e.key = 'message' AND NOT (e.type = 'text' OR e.type = 'array' AND e.value <> '[]' OR e.type = 'null'));
    INSERT INTO parts
    SELECT 'busy', s.ts, CASE WHEN c.type = 'object' THEN 'tool.called' ELSE 'import.record' END, s.id || '.call.' || c.key,
           CASE WHEN c.type = 'object' THEN json_fields('call_id', coalesce(c.value -> '$.tool_call_id', json_text(s.id || '.' || c.key)),
               'tool', coalesce(c.value -> '$.function_name', '"unknown"'), 'input', c.value -> '$.arguments', 'message_id', json_text(s.id),
               'extra', json_remove(c.value, '$.tool_call_id', '$.function_name', '$.arguments'))
           ELSE json_fields('kind', '"step"', 'extra', s.m -> '$.tool_calls') END
    FROM steps s, now n, json_each(s.m, '$.tool_calls') c WHERE NOT n.copied AND json_type(s.m, '$.tool_calls') = 'array';
    INSERT INTO parts
    SELECT CASE WHEN call IS NULL THEN 'note' ELSE 'busy' END, ts,
           CASE WHEN call IS NULL THEN CASE WHEN b -> '$.content' IS NOT NULL THEN 'message.added' ELSE 'import.record' END
                WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END,
           id || '.result.' || key,
           CASE WHEN call IS NOT NULL THEN json_fields('call_id', call, 'success', CASE WHEN failed THEN 'false' END,
                    'output', b -> '$.content', 'extra', json_remove(b, '$.source_call_id', '$.content'))
                WHEN b -> '$.content' IS NOT NULL THEN json_fields('id', json_text(id || '.result.' || key), 'role', '"tool"', 'content', b -> '$.content',
                    'extra', json_remove(b, '$.content'))
                ELSE json_fields('kind', '"step"', 'extra', b) END
    FROM (SELECT s.id, s.ts, e.key, CASE e.type WHEN 'object' THEN e.value ELSE json_fields('content', s.m -> ('$.observation.results[' || e.key || ']')) END AS b,
                 CASE WHEN e.type <> 'object' THEN NULL
                      WHEN coalesce(json_type(e.value, '$.source_call_id'), 'null') <> 'null' THEN e.value -> '$.source_call_id'
                      WHEN json_array_length(s.m, '$.tool_calls') = 1 AND json_array_length(s.m, '$.observation.results') = 1
                      THEN coalesce(s.m -> '$.tool_calls[0].tool_call_id', json_text(s.id || '.0')) END AS call,
                 CASE e.type WHEN 'object' THEN coalesce(e.value ->> '$.extra.is_error', 0) END AS failed
          FROM steps s, now n, json_each(s.m, '$.observation.results') e
          WHERE NOT n.copied AND json_type(s.m, '$.observation.results') = 'array');
    INSERT INTO parts
    SELECT 'note', s.ts, 'agent.turn.usage', s.id || '.usage',
           json_fields('message_id', json_text(s.id), 'model', json_text(t.model), 'input_tokens', nullif(x -> '$.prompt_tokens', 'null'),
               'output_tokens', nullif(x -> '$.completion_tokens', 'null'), 'cached_input_tokens', nullif(x -> '$.cached_tokens', 'null'),
               'cost_usd', CASE WHEN x ->> '$.cost_usd' > 0 THEN x -> '$.cost_usd' END,
               'requests', CASE WHEN m ->> '$.llm_call_count' > 1 THEN m -> '$.llm_call_count' END,
               'prompt_tokens', CASE WHEN m ->> '$.llm_call_count' > 1 THEN -1 END)
    FROM (SELECT s.*, CASE json_type(m, '$.metrics') WHEN 'object' THEN m -> '$.metrics' END AS x FROM steps s) s, now n JOIN sessions t USING (session)
    WHERE NOT n.copied AND (x ->> '$.prompt_tokens' > 0 OR x ->> '$.completion_tokens' > 0 OR x ->> '$.cost_usd' > 0);
    UPDATE sessions SET total = NULL
    WHERE session = (SELECT n.session FROM now n) AND NOT (SELECT n.copied FROM now n)
      AND (NEW.m ->> '$.metrics.prompt_tokens' > 0 OR NEW.m ->> '$.metrics.completion_tokens' > 0);
    UPDATE sessions SET spoke = 1
    WHERE NEW.m ->> '$.source' = 'agent' AND session = (SELECT n.session FROM now n WHERE NOT n.copied);
    UPDATE now SET copied = 0;
    DELETE FROM steps;
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now
    SELECT CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' AND json_type(j, '$.value') = 'object' THEN 'head'
                WHEN j ->> '$.at' = '$.steps' AND json_type(j, '$.value.source') = 'text' THEN 'step'
                WHEN j ->> '$.at' = '$.subagent_trajectories' AND json_type(j, '$.value') = 'object' THEN 'subagent'
                ELSE 'record' END, NEW.n, f.session,
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n,
                       'record', CASE WHEN json_type(j, '$.value.step_id') = 'integer' THEN json_text(j ->> '$.value.step_id') END), 0, j
    FROM source, file f, (SELECT NEW.json AS j);
    UPDATE file SET session = coalesce(session_id(coalesce(n.j ->> '$.value.trajectory_id', n.j ->> '$.value.session_id')), file.session)
    FROM now n WHERE n.main = 'head';
    UPDATE now SET session = CASE main WHEN 'subagent' THEN coalesce(session_id(j ->> '$.value.trajectory_id'),
                                 session_id(f.session || '.agent-' || (j ->> '$.index'))) ELSE f.session END FROM file f;
    INSERT OR IGNORE INTO sessions (session, parent, agent, model, made, turns, total)
    SELECT n.session, CASE n.main WHEN 'subagent' THEN nullif(f.session, n.session) END, n.j ->> '$.value.agent.name', n.j ->> '$.value.agent.model_name', 0, 0,
           CASE json_type(n.j, '$.value.final_metrics') WHEN 'object' THEN n.j -> '$.value.final_metrics' END
    FROM now n, file f WHERE n.main IN ('head', 'subagent');
    INSERT INTO parts
    SELECT 'meta', coalesce(time_us(j ->> '$.value.steps[0].timestamp'), f.ts), CASE WHEN s.made THEN 'import.record' ELSE 'session.created' END,
           CASE WHEN s.made THEN NEW.hash ELSE 'session.created' END,
           CASE WHEN s.made THEN json_fields('kind', json_text(main), 'extra', json_remove(j, '$.value.steps'))
           ELSE json_fields('id', json_text(n.session), 'agent_id', coalesce(json_text(s.agent), '"atif"'), 'status', '"idle"', 'model', json_text(s.model),
               'parent_session_id', json_text(s.parent), 'extra', CASE main WHEN 'subagent' THEN json_remove(j, '$.value.steps') ELSE j END) END
    FROM now n JOIN sessions s USING (session), file f WHERE main IN ('head', 'subagent');
    INSERT INTO parts
    SELECT 'note', f.ts, CASE main WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END, NEW.hash,
           CASE main WHEN 'unreadable' THEN NEW.unreadable ELSE json_fields('kind', '"line"', 'extra', j) END
    FROM now n, file f WHERE main IN ('unreadable', 'record');
    INSERT INTO parts
    SELECT 'note', f.ts, 'import.record', NEW.hash || '.steps', json_fields('kind', '"line"', 'extra', j -> '$.value.steps')
    FROM now n, file f
    WHERE main = 'subagent' AND json_type(j, '$.value.steps') IS NOT NULL
      AND (json_type(j, '$.value.steps') <> 'array'
           OR EXISTS (SELECT 1 FROM json_each(j, '$.value.steps') e WHERE e.type <> 'object' OR json_type(e.value, '$.source') IS NOT 'text'));
    INSERT INTO steps (k, m) SELECT coalesce(j ->> '$.index', 0) + 1, j -> '$.value' FROM now WHERE main = 'step';
    INSERT INTO steps (k, m)
    SELECT e.key + 1, e.value FROM now, json_each(j, '$.value.steps') e
    WHERE main = 'subagent' AND e.type = 'object' AND json_type(e.value, '$.source') = 'text';
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
INSERT INTO out
SELECT session, ts, 'agent.turn.usage', 'usage.total' || CASE WHEN times > 0 THEN '.' || (times + 1) ELSE '' END,
       json_fields('model', json_text(model), 'input_tokens', CASE WHEN input IS NOT NULL THEN input - had_input END,
           'output_tokens', CASE WHEN output IS NOT NULL THEN output - had_output END,
           'cached_input_tokens', CASE WHEN cached IS NOT NULL THEN cached - had_cached END,
           'cost_usd', CASE WHEN cost > had_cost THEN round(cost - had_cost, 9) END, 'prompt_tokens', -1,
           'requests', CASE WHEN times > 0 THEN 0 END,
           'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', 1)), 1
FROM (SELECT s.session, f.ts, s.model, c.kind, c.file, total ->> '$.total_prompt_tokens' AS input, total ->> '$.total_completion_tokens' AS output,
             total ->> '$.total_cached_tokens' AS cached, coalesce(total ->> '$.total_cost_usd', 0) AS cost, count(r.n) AS times,
             coalesce(sum(r.data ->> '$.input_tokens'), 0) AS had_input, coalesce(sum(r.data ->> '$.output_tokens'), 0) AS had_output,
             coalesce(sum(r.data ->> '$.cached_input_tokens'), 0) AS had_cached, round(coalesce(sum(r.data ->> '$.cost_usd'), 0), 9) AS had_cost
      FROM sessions s JOIN source c JOIN file f LEFT JOIN recorded r ON r.session = s.session AND r.type = 'agent.turn.usage'
      WHERE s.made AND s.spoke AND total IS NOT NULL GROUP BY s.session)
WHERE coalesce(input, 0) >= had_input AND coalesce(output, 0) >= had_output AND cost >= had_cost
  AND (input > had_input OR output > had_output OR cost > had_cost);
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY rowid;
DELETE FROM out;
