-- SPDX-License-Identifier: Apache-2.0
-- base: $CODEX_HOME ~/.codex
--
-- A rollout of Codex: sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl. The model is given the
-- lines response_item; the screen shows the lines event_msg. Codex sends back thoughts only in the
-- form that OpenAI encrypted, and has no member that says that a call failed. It ignores the member
-- line, which makes each line unique: an import skips repeated lines.

entries AS (
    SELECT min(i) AS i, at, 'response_item' AS type, json_object('type', 'message', 'role', who, 'content', json_group_array(json(
        CASE WHEN what = 'image' THEN json_object('type', 'input_image', 'image_url', 'data:' || mime || ';base64,' || bytes)
             ELSE json_object('type', CASE who WHEN 'user' THEN 'input_text' ELSE 'output_text' END, 'text', json(text)) END)))
        AS payload
    FROM (SELECT * FROM conversation WHERE what IN ('text', 'image') ORDER BY i LIMIT -1)
    GROUP BY CASE who WHEN 'user' THEN -g ELSE i END
    UNION ALL
    SELECT i, at, 'response_item', CASE WHEN json_type(input) = 'text'
        THEN json_object('type', 'custom_tool_call', 'status', 'completed', 'call_id', call, 'name', tool, 'input', json(input))
        ELSE json_object('type', 'function_call', 'name', tool, 'arguments', input, 'call_id', call) END
    FROM conversation WHERE what = 'call'
    UNION ALL
    SELECT i, at, 'response_item', json_object(
        'type', CASE json_type(input) WHEN 'text' THEN 'custom_tool_call_output' ELSE 'function_call_output' END,
        'call_id', call, 'output', json(text))
    FROM conversation WHERE what = 'result'
    UNION ALL
    SELECT i + 0.5, at, 'event_msg', CASE who WHEN 'user'
        THEN json_object('type', 'user_message', 'message', json(text), 'images', json((
            SELECT json_group_array('data:' || mime || ';base64,' || bytes) FROM conversation c WHERE c.g = m.g AND c.what = 'image')),
            'local_images', json('[]'), 'text_elements', json('[]'))
        ELSE json_object('type', 'agent_message', 'message', json(text)) END
    FROM messages m WHERE NOT added AND text <> '""')

SELECT 'path' AS what, -1 AS n, coalesce(to_path, base || strftime('sessions/%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S-', now / 1000, 'unixepoch', 'localtime')
    || id || '.jsonl') AS text FROM task
WHERE EXISTS (SELECT 1 FROM conversation)
UNION ALL
SELECT 'resume', 0, cd || 'codex resume ' || id FROM task
UNION ALL
SELECT 'line', 0, json_object('timestamp', strftime('%Y-%m-%dT%H:%M:%fZ', now / 1000.0, 'unixepoch'), 'type', 'session_meta',
    'payload', json_object('id', id, 'timestamp', strftime('%Y-%m-%dT%H:%M:%fZ', now / 1000.0, 'unixepoch'), 'cwd', directory,
        'originator', 'annal', 'cli_version', '0.142.0', 'source', 'cli',
        'git', json_object('branch', git_branch))) FROM self
UNION ALL
SELECT 'line', i, json_object('timestamp', at, 'type', type, 'payload', json(payload), 'line', i) FROM entries
UNION ALL
SELECT 'left', count(*), 'thoughts' FROM conversation WHERE what = 'thought'
UNION ALL
SELECT 'left', count(*), 'marks that a call failed; the texts of the results stay' FROM conversation WHERE what = 'result' AND failed
UNION ALL
SELECT 'left', n, text FROM left_out
ORDER BY n
