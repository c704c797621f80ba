-- SPDX-License-Identifier: Apache-2.0
--
-- A document as `opencode export` prints it, which `opencode import` reads. OpenCode sorts messages
-- and parts by their ids, which begin with a time: these begin before now.

named AS (
    SELECT *, substr(replace(id, '-', ''), 9, 14) AS tail, (SELECT max(i) FROM conversation) AS parts,
           'ses_' || printf('%012x', 281474976710655 - (now * 4096 & 281474976710655)) || substr(replace(id, '-', ''), 9, 14) AS session_id
    FROM self),
ids AS MATERIALIZED (
    SELECT i, printf('%012x', (now - parts - 1 + i) * 4096 & 281474976710655) || tail AS part FROM conversation, named),
replies AS (SELECT call, text, failed, ms FROM conversation WHERE what = 'result'),
bodies AS (
    SELECT m.*, 'msg_' || part AS message_id, (
        SELECT json_group_array(json(block)) FROM (
            SELECT substr(head, 1, length(head) - 1) || ',' || substr(body, 2) AS block
            FROM (
                SELECT json_object('id', 'prt_' || d.part, 'sessionID', session_id, 'messageID', 'msg_' || o.part, 'type', CASE what
                        WHEN 'thought' THEN 'reasoning' WHEN 'image' THEN 'file' WHEN 'call' THEN 'tool' ELSE 'text' END) AS head,
                    CASE what
                    WHEN 'text' THEN json_object('text', json(c.text), 'synthetic', json(CASE WHEN c.added THEN 'true' ELSE 'false' END))
                    WHEN 'thought' THEN json_object('text', json(c.text), 'time', json_object('start', c.ms, 'end', c.ms))
                    WHEN 'image' THEN json_object('mime', mime, 'url', 'data:' || mime || ';base64,' || bytes)
                    ELSE json_object('callID', c.call, 'tool', tool, 'state', json(CASE
                        WHEN r.text IS NULL THEN json_object('status', 'running', 'input', json(given), 'time', json_object('start', c.ms))
                        WHEN r.failed THEN json_object('status', 'error', 'input', json(given), 'error', json(r.text),
                            'time', json_object('start', c.ms, 'end', r.ms))
                        ELSE json_object('status', 'completed', 'input', json(given), 'output', json(r.text), 'title', '',
                            'metadata', json('{}'), 'time', json_object('start', c.ms, 'end', r.ms)) END)) END AS body, c.i
                FROM (SELECT *, CASE json_type(input) WHEN 'object' THEN input ELSE json_object('input', json(input)) END AS given
                      FROM conversation) c
                JOIN ids d ON d.i = c.i LEFT JOIN replies r ON c.what = 'call' AND r.call = c.call
                WHERE c.g = m.g AND c.what <> 'result' ORDER BY c.i LIMIT -1))) AS parts
    FROM messages m JOIN ids o ON o.i = m.i, named)

SELECT 'path' AS what, -1 AS n, coalesce(to_path, base || session_id || '.json') AS text FROM named WHERE parts > 0
UNION ALL
SELECT 'resume', 0, cd || 'opencode import ''' || replace(coalesce(to_path, base || session_id || '.json'), '''', '''\''''')
    || ''' && opencode --session ' || session_id FROM named
UNION ALL SELECT 'id', -1, session_id FROM named
UNION ALL
SELECT 'line', 0, '{"info":' || json_object('id', session_id, 'slug', 'handoff', 'projectID', 'global', 'directory', directory,
    'title', coalesce(title, 'handoff'), 'version', '1.17.11', 'time', json_object('created', created, 'updated', now)) || ',"messages":['
FROM named
UNION ALL
SELECT 'line', i, json_object('info', json(CASE who
    WHEN 'user' THEN json_object('id', message_id, 'sessionID', session_id, 'role', 'user', 'time', json_object('created', ms),
        'agent', 'build', 'model', json_object('providerID', coalesce(provider, 'unknown'), 'modelID', b.model))
    ELSE json_object('id', message_id, 'sessionID', session_id, 'role', 'assistant', 'parentID', coalesce((
            SELECT message_id FROM bodies u WHERE u.who = 'user' AND u.i < b.i ORDER BY u.i DESC LIMIT 1), message_id),
        'time', json_object('created', ms, 'completed', ended), 'modelID', b.model, 'providerID', coalesce(provider, 'unknown'),
        'mode', 'build', 'agent', 'build', 'path', json_object('cwd', directory, 'root', directory), 'cost', 0, 'tokens', json_object(
            'input', 0, 'output', 0, 'reasoning', 0, 'cache', json('{"read":0,"write":0}')),
        'finish', CASE WHEN calls THEN 'tool-calls' ELSE 'stop' END) END), 'parts', json(b.parts))
    || CASE WHEN i < (SELECT max(i) FROM messages) THEN ',' ELSE '' END
FROM bodies b, named
UNION ALL SELECT 'line', 9e9, ']}'
UNION ALL
SELECT 'left', n, text FROM left_out
ORDER BY n
