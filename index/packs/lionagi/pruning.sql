-- SPDX-License-Identifier: Apache-2.0
-- Pruning: the session's row and its branches are deleted. What other sessions still need was
-- determined when the event was created: the session's progressions stay, and the messages that the
-- event lists in messages are deleted; with orphan_progressions all of both are deleted except
-- those listed in keep_....

-- on session.pruned   guarded "the session has changed since it was selected"
SELECT 1
WHERE $cutoff IS NULL
   OR EXISTS (SELECT 1 FROM sessions WHERE id = :session AND updated_at < annal_unix($cutoff));

-- on session.pruned
INSERT INTO pruned_ids (kind, id, session_id)
SELECT 'branch', id, session_id FROM branches WHERE session_id = :session
UNION ALL
SELECT 'progression', id, session_id FROM progressions
WHERE session_id = :session AND $orphan_progressions = 1
  AND id NOT IN (SELECT value FROM json_each(:data, '$.keep_progressions'))
UNION ALL
SELECT 'message', id, session_id FROM messages
WHERE session_id = :session
  AND CASE WHEN $orphan_progressions = 1
           THEN id NOT IN (SELECT value FROM json_each(:data, '$.keep_messages'))
           ELSE id IN (SELECT value FROM json_each(:data, '$.messages')) END;
DELETE FROM branches WHERE session_id = :session;
DELETE FROM branch_progressions WHERE session_id = :session;
INSERT INTO sessions_forgotten (session_id) VALUES (:session);
DELETE FROM status_transitions WHERE entity_type = 'session' AND entity_id = :session;
DELETE FROM sessions_forgotten;
DELETE FROM sessions WHERE id = :session;
DELETE FROM progressions
WHERE session_id = :session
  AND EXISTS (SELECT 1 FROM pruned_ids p WHERE p.kind = 'progression' AND p.id = progressions.id);
DELETE FROM messages
WHERE session_id = :session
  AND EXISTS (SELECT 1 FROM pruned_ids p WHERE p.kind = 'message' AND p.id = messages.id);
