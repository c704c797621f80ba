-- SPDX-License-Identifier: Apache-2.0
-- The objects of changes_look().
, kept AS (
    SELECT session_id FROM told
    WHERE path NOT IN (SELECT path FROM looked WHERE presence = 'gone')
      AND NOT (gone AND path IN (SELECT path FROM looked WHERE presence = 'unreachable')))
SELECT json_object('session', session_id, 'path', path,
                   'is', iif(gone AND presence = 'unreachable', 'gone', presence), 'bytes', bytes,
                   'copy', json(iif(kind IS NULL, 'false', 'true')), 'unread', unread,
                   'since', since, 'lost', session_id NOT IN (SELECT session_id FROM kept))
FROM found WHERE presence <> 'there' OR unread > 0
UNION ALL
SELECT json_object('session', session_id, 'path', path, 'is', 'gone', 'copy', json('false'),
                   'lost', (SELECT state = 'deleted' FROM source_states s
                            WHERE s.session_id = l.session_id))
FROM source_logs l WHERE gone AND (session_id, path) NOT IN (SELECT session_id, path FROM known)
