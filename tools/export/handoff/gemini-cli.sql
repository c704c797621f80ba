-- SPDX-License-Identifier: Apache-2.0
-- base: $GEMINI_CLI_HOME/.gemini ~/.gemini
-- reads: projects.json
--
-- A chat of the Gemini CLI: tmp/<project>/chats/session-<time>-<id>.jsonl. The project is the name
-- that projects.json gives to the directory, else the hash of the directory, from which the CLI
-- copies chats when it names the directory.

replies AS (SELECT call, text, failed, at FROM conversation WHERE what = 'result')

SELECT 'path' AS what, -1 AS n, coalesce(to_path, base || 'tmp/' || coalesce((
        SELECT p.value FROM json_each(CASE WHEN json_valid(file) THEN file END, '$.projects') p
        WHERE p.key = directory AND p.type = 'text' AND p.value NOT GLOB '*/*' AND p.value <> '..'), hash)
    || '/chats/session-' || strftime('%Y-%m-%dT%H-%M-', now / 1000, 'unixepoch') || substr(id, 1, 8) || '.jsonl') AS text FROM task
WHERE EXISTS (SELECT 1 FROM conversation)
UNION ALL
SELECT 'resume', 0, cd || 'gemini --resume ' || id FROM task
UNION ALL
SELECT 'line', 0, json_object('sessionId', id, 'projectHash', hash, 'startTime', strftime('%Y-%m-%dT%H:%M:%fZ', now / 1000.0, 'unixepoch'),
    'lastUpdated', strftime('%Y-%m-%dT%H:%M:%fZ', now / 1000.0, 'unixepoch'), 'kind', 'main') FROM task
UNION ALL
SELECT 'line', i, CASE who
    WHEN 'user' THEN json_object('id', substr(id, 1, 24) || printf('%012x', i), 'timestamp', at, 'type', 'user', 'content', json((
        SELECT json_group_array(json(block)) FROM (
            SELECT CASE what WHEN 'text' THEN json_object('text', json(c.text))
                   ELSE json_object('inlineData', json_object('mimeType', mime, 'data', bytes)) END AS block
            FROM conversation c WHERE c.g = m.g ORDER BY c.i LIMIT -1))))
    ELSE json_object('id', substr(id, 1, 24) || printf('%012x', i), 'timestamp', at, 'type', 'gemini', 'content', json((
            SELECT json_group_array(json_object('text', json(text))) FROM (
                SELECT text FROM conversation c WHERE c.g = m.g AND c.what = 'text' ORDER BY c.i LIMIT -1))),
        'thoughts', json((SELECT json_group_array(json_object('subject', '', 'description', json(c.text), 'timestamp', c.at))
                          FROM conversation c WHERE c.g = m.g AND c.what = 'thought')),
        'model', model, 'toolCalls', json((SELECT json_group_array(json(block)) FROM (
            SELECT json_object('id', c.call, 'name', tool, 'args', json(
                       CASE json_type(input) WHEN 'object' THEN input ELSE json_object('input', json(input)) END),
                   'result', json(CASE WHEN r.text IS NOT NULL THEN json_array(json_object('functionResponse', json_object(
                       'id', c.call, 'name', tool, 'response', json_object('output', json(r.text))))) ELSE '[]' END),
                   'status', CASE WHEN r.text IS NULL THEN 'scheduled' WHEN r.failed THEN 'error' ELSE 'success' END,
                   'timestamp', coalesce(r.at, c.at)) AS block
            FROM (SELECT * FROM conversation WHERE what = 'call') c LEFT JOIN replies r USING (call)
            WHERE c.g = m.g ORDER BY c.i LIMIT -1)))) END
FROM messages m, task
UNION ALL
SELECT 'left', n, text FROM left_out
ORDER BY n
