-- exporter atif
-- SPDX-License-Identifier: Apache-2.0
-- output: json
-- nothing: no messages and no calls
--
-- A session as a trajectory in the Agent Trajectory Interchange Format (ATIF) of Harbor, version 1.8:
-- one JSON document on one line. The driver, tools/export/select.c, prints the rows one after the
-- other. ?1 is the session, ?2 the seq of its last event, ?3 whether its sub-agents are written, too.
-- The validator of harbor 0.26.0 and the models of atif 1.8.0 accepted every document that was tried.
--
--  (1) A message of the user or of the program is a step. Thoughts, then texts, then calls of the agent
--      are one step, with the results of the calls, wherever they are. The step ends before a message
--      that follows a call, and at a result.
--  (2) Arguments are an object: other inputs are its member "input". A result without a call is an
--      observation of a step of the system. A failed result has extra.is_error.
--  (3) A report of tokens belongs to the step before it. The final metrics count the whole session;
--      with events left out at its end, they are unknown.
--  (4) ATIF has only paths of images. extra.blocks of a step keeps all blocks that are neither texts
--      nor thoughts.
--  (5) With ?3, all descendants of the session are its subagent_trajectories.

WITH RECURSIVE members (id, depth, made) AS MATERIALIZED (
    SELECT id, 0, created_at FROM sessions WHERE id = ?1
    UNION
    SELECT s.id, m.depth + 1, s.created_at FROM members m JOIN sessions s ON s.parent_session_id = m.id WHERE ?3 AND m.depth < 64),

-- What belongs to each of them: events of its own, and those of its ancestors up to the fork.
pieces AS MATERIALIZED (
    SELECT m.id AS session, l.ancestor_id AS owner, l.depth, l.from_seq, CASE m.depth WHEN 0 THEN min(l.to_seq, ?2) ELSE l.to_seq END AS to_seq
    FROM members m CROSS JOIN lineage l ON l.session_id = m.id),

-- Without data, so that memory does not grow with the size of the events.
history (session, owner, seq, at, who) AS (
    SELECT p.session, p.owner, e.seq, e.timestamp,
           CASE WHEN e.type = 'message.added' THEN CASE WHEN e.data ->> '$.role' IN ('assistant', 'user') THEN e.data ->> '$.role' ELSE 'system' END
                WHEN e.type IN ('tool.called', 'tool_call') THEN 'call' WHEN e.type = 'agent.turn.usage' THEN 'usage' ELSE 'result' END
    FROM pieces p CROSS JOIN events e ON e.session_id = p.owner AND e.seq BETWEEN p.from_seq AND p.to_seq
    WHERE e.type IN ('message.added', 'tool.called', 'tool.returned', 'tool.failed', 'tool_call', 'tool_result', 'tool_error', 'agent.turn.usage')),

-- A call of an ancestor may have its result there, or after the fork.
called AS MATERIALIZED (
    SELECT session, seq, call_id, tool, answerer, CAST(min(result_seq) AS INTEGER) AS result_seq, exit_code, failed FROM (
        SELECT p.session, t.seq, t.call_id, t.tool, p.owner AS answerer, CASE WHEN t.result_seq <= p.to_seq THEN t.result_seq END AS result_seq,
               t.exit_code, t.status = 'failed' AS failed
        FROM pieces p CROSS JOIN tool_calls t ON t.session_id = p.owner AND t.seq BETWEEN p.from_seq AND p.to_seq
        WHERE t.seq IS NOT t.result_seq -- else a result without a call
        UNION ALL
        SELECT p.session, t.seq, t.call_id, t.tool, a.owner, r.result_seq, r.exit_code, r.status = 'failed'
        FROM pieces p JOIN pieces a ON a.session = p.session AND a.depth < p.depth
        CROSS JOIN tool_calls t ON t.session_id = p.owner AND t.seq BETWEEN p.from_seq AND p.to_seq AND t.seq IS NOT t.result_seq
        CROSS JOIN tool_calls r ON r.session_id = a.owner AND r.call_id = t.call_id AND r.called_at IS NULL AND r.seq BETWEEN a.from_seq AND a.to_seq)
    GROUP BY session, seq),
answered AS MATERIALIZED (SELECT DISTINCT session, result_seq AS seq FROM called WHERE result_seq IS NOT NULL),

-- Rule (1). The result of a call belongs to the step of the call, and does not begin a step.
acts AS MATERIALIZED (
    SELECT h.session, h.owner, h.seq, h.at, CASE WHEN h.who = 'result' AND a.seq IS NULL THEN 'orphan' ELSE h.who END AS who
    FROM history h LEFT JOIN answered a ON a.session = h.session AND a.seq = h.seq),
numbered AS (
    SELECT *, sum(who IN ('user', 'system', 'orphan') OR before IS NULL OR before NOT IN ('assistant', 'call') OR before = 'call' AND who = 'assistant')
              OVER (PARTITION BY session ORDER BY seq ROWS UNBOUNDED PRECEDING) AS step
    FROM (SELECT *, lag(who) OVER (PARTITION BY session ORDER BY seq) AS before FROM acts WHERE who <> 'usage')),
-- messages: [owner, seq] of each; calls: [owner, seq, seq of the result, id, tool, exit code, whether it failed, owner of the result].
steps AS MATERIALIZED (
    SELECT n.session, min(n.seq) AS first, min(n.at) AS at, max(who) AS who,
           json_group_array(json_array(n.owner, n.seq)) FILTER (WHERE who <> 'call') AS messages,
           json_group_array(json_array(n.owner, n.seq, c.result_seq, coalesce(c.call_id, n.owner || '.' || n.seq), c.tool, c.exit_code, c.failed, c.answerer))
               FILTER (WHERE who = 'call') AS calls
    FROM numbered n LEFT JOIN called c ON c.session = n.session AND c.seq = n.seq
    WHERE who <> 'result' GROUP BY n.session, step),
-- Rule (3): the step of each report of tokens. Reports before the first step of the agent belong to it.
used AS MATERIALIZED (
    SELECT session, coalesce(step, (SELECT min(s.first) FROM steps s WHERE s.session = u.session AND s.who IN ('assistant', 'call'))) AS first,
           json_group_array(json_array(owner, seq)) AS usages
    FROM (SELECT session, owner, seq, max(CASE WHEN who IS NULL THEN seq END) OVER (PARTITION BY session ORDER BY seq ROWS UNBOUNDED PRECEDING) AS step, who
          FROM (SELECT session, owner, seq, who FROM acts WHERE who = 'usage'
                UNION ALL SELECT session, NULL, first, NULL FROM steps WHERE who IN ('assistant', 'call'))) u
    WHERE who = 'usage' GROUP BY 1, 2),
places AS MATERIALIZED (
    SELECT s.*, s.who IN ('assistant', 'call') AS by_agent, u.usages, row_number() OVER (PARTITION BY s.session ORDER BY s.first) AS n
    FROM steps s LEFT JOIN used u ON u.session = s.session AND u.first = s.first),

-- The rows without their text, which the last SELECT creates: nothing large is sorted. The end of the
-- session itself is after its sub-agents.
parts AS (
    SELECT depth, made, id, 0 AS part, row_number() OVER (ORDER BY depth > 0, made, id) AS n, NULL AS at, NULL AS who, NULL AS by_agent,
           NULL AS messages, NULL AS calls, NULL AS usages
    FROM members m WHERE id IN (SELECT session FROM places)
    UNION ALL
    SELECT m.depth, m.made, m.id, 1, k.n, k.at, k.who, k.by_agent, k.messages, k.calls, k.usages FROM places k JOIN members m ON m.id = k.session
    UNION ALL
    SELECT depth, made, id, 2, (SELECT count(*) FROM places k WHERE k.session = m.id), NULL, NULL, NULL, NULL, NULL, NULL
    FROM members m WHERE id IN (SELECT session FROM places)
    UNION ALL
    SELECT NULL, '', '', 3, (SELECT count(DISTINCT session) FROM places), NULL, NULL, NULL, NULL, NULL, NULL)

SELECT CASE p.part
    WHEN 0 THEN CASE p.depth WHEN 0 THEN '' ELSE CASE p.n WHEN 2 THEN ',"subagent_trajectories":[' ELSE ',' END END
        || '{"schema_version":"ATIF-v1.8","session_id":' || json_quote(?1) || ',"trajectory_id":' || json_quote(p.id)
        || ',"agent":' || (SELECT json_patch(json_object('name', coalesce(nullif(s.agent_id, ''), 'unknown'), 'version', 'unknown'),
                                             json_object('model_name', nullif(s.model, ''), 'extra', json(nullif(json_patch('{}', json_object(
                                                 'provider', nullif(s.provider, ''), 'working_directory', s.working_directory, 'git_branch', s.git_branch,
                                                 'parent_session_id', s.parent_session_id)), '{}'))))
                           FROM sessions s WHERE s.id = p.id)
        || ',"steps":['
    WHEN 1 THEN CASE p.n WHEN 1 THEN '' ELSE ',' END || '{"step_id":' || p.n
        || ',"timestamp":' || json_quote(p.at)
        || ',"source":' || CASE WHEN p.by_agent THEN '"agent"' WHEN p.who = 'user' THEN '"user"' ELSE '"system"' END
        || (SELECT ',"message":' || json_quote(coalesce(group_concat(CASE WHEN what = 'text' THEN text END, char(10, 10)), ''))
                || CASE WHEN p.by_agent AND max(what = 'thought') THEN ',"reasoning_content":'
                        || json_quote(group_concat(CASE WHEN what = 'thought' THEN text END, char(10, 10))) ELSE '' END
                || CASE WHEN p.by_agent AND max(model) IS NOT NULL THEN ',"model_name":' || json_quote(max(model)) ELSE '' END
                || CASE WHEN max(what = 'block') THEN ',"extra":{"blocks":[' || group_concat(CASE WHEN what = 'block' THEN text END, ',') || ']}' ELSE '' END
            FROM (SELECT model, what, CASE WHEN what = 'block' THEN block WHEN t = 'text' THEN value ELSE words END AS text
                  FROM (SELECT x.*,
                         CASE WHEN t = 'text' THEN 'text' WHEN t = 'null' OR words = '' THEN 'nothing'
                              WHEN p.by_agent AND words IS NOT NULL AND (thinks OR type IN ('reasoning', 'thought')) THEN 'thought'
                              WHEN type IN ('', 'text', 'input_text', 'output_text') AND words IS NOT NULL THEN 'text' ELSE 'block' END AS what
                  FROM (SELECT e.seq, b.key, b.type AS t, b.value, e.data ->> '$.model' AS model,
                               CASE b.type WHEN 'object' THEN coalesce(b.value ->> '$.type', '') END AS type,
                               CASE b.type WHEN 'object' THEN json_type(b.value, '$.thinking') = 'text' END AS thinks,
                               CASE b.type WHEN 'object' THEN coalesce(
                                   CASE json_type(b.value, '$.thinking') WHEN 'text' THEN b.value ->> '$.thinking' END,
                                   CASE json_type(b.value, '$.text') WHEN 'text' THEN b.value ->> '$.text' END,
                                   CASE json_type(b.value, '$.summary') WHEN 'array' THEN (
                                       SELECT group_concat(s.value ->> '$.text', char(10, 10)) FROM json_each(b.value, '$.summary') s WHERE s.type = 'object') END) END AS words,
                               CASE WHEN b.type IN ('object', 'array') THEN b.value ELSE json_quote(b.value) END AS block
                        FROM json_each(p.messages) o CROSS JOIN events e ON e.session_id = o.value ->> 0 AND e.seq = o.value ->> 1
                        CROSS JOIN json_each(CASE json_type(e.data, '$.content') WHEN 'object' THEN '[' || (e.data -> '$.content') || ']' ELSE e.data -> '$.content' END) b
                        WHERE p.who <> 'orphan') x
                  ORDER BY seq, key LIMIT -1)))
        || CASE WHEN p.calls <> '[]' THEN
            (SELECT ',"tool_calls":[' || group_concat('{"tool_call_id":' || json_quote(call_id) || ',"function_name":' || json_quote(coalesce(nullif(tool, ''), 'unknown'))
                        || ',"arguments":' || CASE
                            WHEN json_type(data, '$.input') = 'object' THEN data -> '$.input'
                            WHEN json_type(data, '$.input') = 'text' AND json_valid(data ->> '$.input') AND json_type(data ->> '$.input') = 'object'
                            THEN json(data ->> '$.input')
                            WHEN coalesce(json_type(data, '$.input'), 'null') = 'null' THEN '{}' ELSE '{"input":' || (data -> '$.input') || '}' END || '}') || ']'
             FROM (SELECT o.value ->> 3 AS call_id, o.value ->> 4 AS tool, e.data
                   FROM json_each(p.calls) o CROSS JOIN events e ON e.session_id = o.value ->> 0 AND e.seq = o.value ->> 1
                   ORDER BY e.seq LIMIT -1)) ELSE '' END
        || coalesce(CASE WHEN p.by_agent OR p.who = 'orphan' THEN
            (SELECT ',"observation":{"results":[' || group_concat('{' || CASE WHEN call_id IS NULL THEN '' ELSE '"source_call_id":' || json_quote(call_id) || ',' END
                        || '"content":' || json_quote(CASE coalesce(json_type(data, '$.output'), 'null') WHEN 'text' THEN data ->> '$.output' WHEN 'null' THEN ''
                               WHEN 'array' THEN (SELECT CASE WHEN min(CASE b.type WHEN 'text' THEN 1 WHEN 'object' THEN b.value ->> '$.type' IN ('text', 'input_text', 'output_text')
                                                                       AND json_type(b.value, '$.text') = 'text' ELSE 0 END)
                                                         THEN group_concat(CASE b.type WHEN 'text' THEN b.value WHEN 'object' THEN b.value ->> '$.text' END, char(10))
                                                         ELSE '' || (data -> '$.output') END
                                                  FROM json_each(data, '$.output') b)
                               ELSE '' || (data -> '$.output') END)
                        || CASE WHEN failed THEN ',"extra":{"is_error":true' || coalesce(',"exit_code":' || exit_code, '') || '}' ELSE '' END || '}') || ']}'
             FROM (SELECT o.value ->> 3 AS call_id, o.value ->> 6 AS failed, o.value ->> 5 AS exit_code, e.data
                   FROM json_each(p.calls) o CROSS JOIN events e ON e.session_id = o.value ->> 7 AND e.seq = o.value ->> 2
                   UNION ALL
                   SELECT NULL, e.type IN ('tool.failed', 'tool_error'), NULL, e.data
                   FROM json_each(p.messages) o CROSS JOIN events e ON e.session_id = o.value ->> 0 AND e.seq = o.value ->> 1
                   WHERE p.who = 'orphan')
             HAVING count(*) > 0) END, '')
        || coalesce(CASE WHEN p.by_agent THEN
            (SELECT ',"metrics":' || json_patch('{}', json_object('prompt_tokens', sum(e.data ->> '$.input_tokens'), 'completion_tokens', sum(e.data ->> '$.output_tokens'),
                        'cached_tokens', sum(e.data ->> '$.cached_input_tokens'),
                        'cost_usd', coalesce(sum(e.data ->> '$.cost_usd'), sum(e.data ->> '$.cost_microusd') / 1e6),
                        'extra', json(nullif(json_patch('{}', json_object('cache_write_tokens', sum(e.data ->> '$.cache_write_tokens'),
                                                                           'reasoning_tokens', sum(e.data ->> '$.reasoning_output_tokens'))), '{}'))))
                    || ',"llm_call_count":' || sum(coalesce(e.data ->> '$.requests', 1))
             FROM json_each(p.usages) o CROSS JOIN events e ON e.session_id = o.value ->> 0 AND e.seq = o.value ->> 1
             HAVING count(*) > 0) END, '')
        || '}'
    WHEN 2 THEN ']' || ',"final_metrics":' || (
            SELECT json_patch('{}', CASE WHEN p.depth = 0 AND EXISTS (SELECT 1 FROM events e WHERE e.session_id = p.id AND e.seq > ?2)
                THEN json_object('total_steps', p.n)
                ELSE json_object('total_prompt_tokens', s.input_tokens, 'total_completion_tokens', s.output_tokens,
                                 'total_cached_tokens', s.cached_input_tokens, 'total_cost_usd', s.total_cost_usd, 'total_steps', p.n) END)
            FROM sessions s WHERE s.id = p.id)
        || coalesce((SELECT ',"extra":{"title":' || json_quote(s.title) || '}' FROM sessions s WHERE s.id = p.id AND s.title <> ''), '')
        || CASE p.depth WHEN 0 THEN '' ELSE '}' END
    ELSE CASE WHEN p.n > 1 THEN ']}' ELSE '}' END || char(10) END
FROM (SELECT * FROM parts WHERE EXISTS (SELECT 1 FROM places k WHERE k.session = ?1)
      ORDER BY depth IS NULL, depth > 0, made, id, part, n LIMIT -1) p;
