-- SPDX-License-Identifier: Apache-2.0
-- base: $PI_CODING_AGENT_DIR ~/.pi/agent
--
-- A session of the pi coding agent: sessions/--<directory>--/<time>_<session id>.jsonl. pi shows an
-- answer of another model without its signatures, and gives its thoughts to the next model as text.

entries AS (
    SELECT i, at, json_object('role', who, 'timestamp', ms, 'content', json((
        SELECT json_group_array(json(block)) FROM (
            SELECT CASE what
                WHEN 'text' THEN json_object('type', 'text', 'text', json(c.text))
                WHEN 'thought' THEN json_object('type', 'thinking', 'thinking', json(c.text))
                WHEN 'image' THEN json_object('type', 'image', 'data', bytes, 'mimeType', mime)
                ELSE json_object('type', 'toolCall', 'id', call, 'name', tool, 'arguments', json(
                    CASE json_type(input) WHEN 'object' THEN input ELSE json_object('input', json(input)) END)) END AS block
            FROM conversation c WHERE c.g = m.g AND c.what <> 'result' ORDER BY c.i LIMIT -1)))) AS message, who, calls, model
    FROM messages m
    UNION ALL
    SELECT i, at, json_object('role', 'toolResult', 'toolCallId', call, 'toolName', tool,
        'content', json_array(json_object('type', 'text', 'text', json(text))),
        'isError', json(CASE WHEN failed THEN 'true' ELSE 'false' END), 'timestamp', ms), 'result', 0, NULL
    FROM conversation WHERE what = 'result'),
places AS (SELECT coalesce(to_path, base || 'sessions/--' || replace(replace(replace(ltrim(directory, '/'), '/', '-'), '\', '-'), ':', '-')
    || '--/' || strftime('%Y-%m-%dT%H-%M-%S-', now / 1000, 'unixepoch') || printf('%03dZ_', now % 1000) || id || '.jsonl') AS path, cd FROM task)

SELECT 'path' AS what, -1 AS n, path AS text FROM places WHERE EXISTS (SELECT 1 FROM conversation)
UNION ALL
SELECT 'resume', 0, cd || 'pi --session ''' || replace(path, '''', '''\''''') || '''' FROM places
UNION ALL
SELECT 'line', 0, json_object('type', 'session', 'version', 3, 'id', id,
    'timestamp', strftime('%Y-%m-%dT%H:%M:%fZ', now / 1000.0, 'unixepoch'), 'cwd', directory) FROM task
UNION ALL
SELECT 'line', i, json_object('type', 'message', 'id', printf('%08x', i),
    'parentId', CASE WHEN lag(i) OVER (ORDER BY i) > 0 THEN printf('%08x', lag(i) OVER (ORDER BY i)) END, 'timestamp', at,
    'message', json(CASE who WHEN 'assistant' THEN json_set(message, '$.api', CASE provider
            WHEN 'anthropic' THEN 'anthropic-messages' WHEN 'google' THEN 'google-generative-ai' ELSE 'openai-responses' END,
            '$.provider', coalesce(provider, 'unknown'), '$.model', e.model, '$.stopReason', CASE WHEN calls THEN 'toolUse' ELSE 'stop' END,
            '$.usage', json('{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,'
                            || '"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}'))
        ELSE message END)) FROM entries e, self
UNION ALL
SELECT 'left', n, text FROM left_out
ORDER BY n
