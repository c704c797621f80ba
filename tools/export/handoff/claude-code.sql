-- SPDX-License-Identifier: Apache-2.0
-- base: $CLAUDE_CONFIG_DIR ~/.claude
--
-- A session log of Claude Code: projects/<directory>/<session id>.jsonl. Each part of an answer is
-- a line, and so is each result. The last digits of the times differ, because two prompts with one
-- time and text are one prompt. Claude refuses thoughts without a signature of its own.

letters (n, c) AS (
    SELECT 0, '' UNION ALL SELECT n + 1, substr(directory, n + 1, 1) FROM letters, task WHERE n < length(directory)),

content AS (
    SELECT g, what = 'result' AS returned, CASE WHEN who = 'assistant' OR what = 'result' THEN i END AS alone, min(i) AS i,
           json_group_array(json(CASE what
               WHEN 'text' THEN json_object('type', 'text', 'text', json(text))
               WHEN 'image' THEN json_object('type', 'image', 'source', json_object('type', 'base64', 'media_type', mime, 'data', bytes))
               WHEN 'call' THEN json_object('type', 'tool_use', 'id', call, 'name', tool, 'input', json(
                   CASE json_type(input) WHEN 'object' THEN input ELSE json_object('input', json(input)) END))
               WHEN 'result' THEN json_object('type', 'tool_result', 'tool_use_id', call, 'content', json(text), 'is_error', json(
                   CASE WHEN failed THEN 'true' ELSE 'false' END)) END)) AS blocks, what, who, added, model, at
    FROM (SELECT * FROM conversation WHERE what <> 'thought' ORDER BY i LIMIT -1) GROUP BY g, alone),

entries AS (
    SELECT i, json_object(
        'parentUuid', substr(id, 1, 24) || CASE WHEN lag(i) OVER (ORDER BY i) > 0 THEN printf('%012x', lag(i) OVER (ORDER BY i)) END,
        'isSidechain', json('false'), 'isMeta', json(CASE WHEN added AND NOT returned THEN 'true' ELSE 'false' END),
        'userType', 'external', 'cwd', directory, 'sessionId', id, 'version', '2.1.0', 'gitBranch', coalesce(git_branch, ''),
        'type', who, 'uuid', substr(id, 1, 24) || printf('%012x', i), 'timestamp', substr(at, 1, 23) || printf('%03dZ', i % 1000),
        'message', CASE who WHEN 'user' THEN json_object('role', 'user', 'content', json(blocks))
            ELSE json_object('id', 'msg_' || replace(id, '-', '') || g, 'type', 'message', 'role', 'assistant', 'model', c.model,
                'content', json(blocks), 'stop_reason', CASE WHEN what = 'call' THEN 'tool_use'
                    WHEN NOT EXISTS (SELECT 1 FROM messages m WHERE m.g = c.g AND m.calls) THEN 'end_turn' END,
                'stop_sequence', NULL, 'usage', json_object('input_tokens', 0, 'cache_creation_input_tokens', 0,
                                                            'cache_read_input_tokens', 0, 'output_tokens', 0)) END) AS line
    FROM content c, self)

SELECT 'path' AS what, -1 AS n, coalesce(to_path, base || 'projects/' || (
    SELECT group_concat(CASE WHEN c GLOB '[a-zA-Z0-9]' THEN c WHEN unicode(c) > 65535 THEN '--' WHEN n > 0 THEN '-' ELSE '' END, '')
    FROM letters) || '/' || id || '.jsonl') AS text FROM task
WHERE EXISTS (SELECT 1 FROM conversation)
UNION ALL
SELECT 'resume', 0, cd || 'claude --resume ' || id FROM task
UNION ALL
SELECT 'line', 0, json_object('type', 'custom-title', 'customTitle', title, 'sessionId', id) FROM self
WHERE title IS NOT NULL AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = session AND s.title_from IS NULL)
UNION ALL
SELECT 'line', i, line FROM entries
UNION ALL
SELECT 'left', count(*), 'thoughts' FROM conversation WHERE what = 'thought'
UNION ALL
SELECT 'left', n, text FROM left_out WHERE n > 0
ORDER BY n
