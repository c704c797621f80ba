-- SPDX-License-Identifier: Apache-2.0
--
-- What annal acp answers in place of an agent. ?1: {"message", "agent", "live"}: a request
-- session/list or session/load, the name of the agent, and whether the agent has the session. Rows
-- of messages, and whether they are for the agent.
--
--  (1) session/list: sessions of the same agent that annal acp recorded, newest first, 100 a page.
--  (2) session/load: the prompts and updates of the session, then its answer. If the agent does not
--      have the session, a request session/new under the same id goes to the agent in place of the
--      answer, and the answer to it becomes the answer.

WITH asked AS MATERIALIZED (
    SELECT ?1 -> '$.message.id' AS id, ?1 ->> '$.message.method' AS method, ?1 -> '$.message.params' AS params,
           ?1 ->> '$.agent' AS agent, ?1 ->> '$.live' AS live, CAST(coalesce(?1 ->> '$.message.params.cursor', 0) AS INTEGER) AS skipped),

listed AS MATERIALIZED (
    SELECT s.id, e.data ->> '$.source.record' AS acp, s.working_directory AS cwd, s.title, s.last_activity_at AS at, skipped
    FROM asked CROSS JOIN sessions s CROSS JOIN events e ON e.session_id = s.id AND e.seq = 1
    WHERE method = 'session/list' AND s.id >= 'acp-' AND s.id < 'acp.' AND s.agent_id = agent AND s.working_directory IS NOT NULL
          AND e.data ->> '$.source.record' IS NOT NULL AND e.data ->> '$.source.kind' = 'acp'
          AND (params ->> '$.cwd' IS NULL OR s.working_directory = params ->> '$.cwd')
    ORDER BY at DESC, s.id LIMIT 101 OFFSET (SELECT skipped FROM asked)),

loaded AS MATERIALIZED (
    SELECT e.session_id AS session, params ->> '$.sessionId' AS acp FROM asked CROSS JOIN sessions s CROSS JOIN events e
    ON e.session_id = s.id AND e.seq = 1
    WHERE method = 'session/load' AND s.id >= 'acp-' AND s.id < 'acp.' AND e.data ->> '$.source.kind' = 'acp'
          AND e.data ->> '$.source.record' = params ->> '$.sessionId'),

messages AS (
    SELECT 1 AS part, x.seq, e.data AS data, loaded.acp FROM loaded CROSS JOIN event_index x CROSS JOIN events e
    ON e.session_id = x.session_id AND e.seq = x.seq
    WHERE x.session_id = loaded.session AND x.type = 'import.record'
          AND e.data ->> '$.source.copied' IS NULL
          AND e.data ->> '$.kind' IN ('session/prompt', 'user_message_chunk', 'agent_message_chunk', 'agent_thought_chunk',
                                      'tool_call', 'tool_call_update', 'plan', 'current_mode_update'))

SELECT json_object('jsonrpc', '2.0', 'method', 'session/update', 'params', json_object('sessionId', m.acp, 'update',
           CASE WHEN p.value IS NULL THEN json(m.data -> '$.extra.message.params.update')
                ELSE json_object('sessionUpdate', 'user_message_chunk', 'content', json(p.value)) END)) AS message,
       0 AS to_agent, part, seq, p.key AS k
FROM messages m LEFT JOIN json_each(CASE m.data ->> '$.kind' WHEN 'session/prompt' THEN m.data END, '$.extra.message.params.prompt') p
WHERE m.data ->> '$.kind' <> 'session/prompt' OR p.type = 'object'
UNION ALL
SELECT CASE WHEN live THEN json_object('jsonrpc', '2.0', 'id', json(id), 'result', json('{}'))
            ELSE json_object('jsonrpc', '2.0', 'id', json(id), 'method', 'session/new', 'params', json_remove(params, '$.sessionId')) END,
       NOT live, 2, 0, 0
FROM asked, loaded
UNION ALL
SELECT json_object('jsonrpc', '2.0', 'id', json(id), 'error', json_object('code', -32002, 'message',
           'annal acp recorded no session with this id, and the agent cannot load sessions')), 0, 2, 0, 0
FROM asked WHERE method = 'session/load' AND NOT EXISTS (SELECT 1 FROM loaded)
UNION ALL
SELECT json_object('jsonrpc', '2.0', 'id', json(id), 'result', json_patch(
           CASE WHEN (SELECT count(*) FROM listed) > 100 THEN json_object('nextCursor', CAST(skipped + 100 AS TEXT)) ELSE '{}' END,
           json_object('sessions', (SELECT json_group_array(json(row)) FROM (
               SELECT json_patch('{}', json_object('sessionId', acp, 'cwd', cwd, 'title', title, 'updatedAt', at)) AS row
               FROM listed ORDER BY at DESC, id LIMIT 100))))), 0, 2, 0, 0
FROM asked WHERE method = 'session/list'
ORDER BY part, seq, k
