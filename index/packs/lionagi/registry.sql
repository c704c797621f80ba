-- SPDX-License-Identifier: Apache-2.0
-- on message_type.registered   guarded "message types must be registered in session _state"
SELECT 1 WHERE :session = '_state';

-- on message_type.registered   guarded "this lion_class has a number already"
SELECT 1
WHERE $lion_class <> '' AND NOT EXISTS (SELECT 1 FROM message_types
                                        WHERE lion_class = $lion_class);

-- on message_type.registered   guarded "type_id is not the next number"
SELECT 1
WHERE $type_id = (SELECT MAX(type_id) + 1 FROM message_types);

-- fill message_type.registered
SELECT MAX(type_id) + 1 AS type_id FROM message_types;

-- on message_type.registered
INSERT INTO message_types (type_id, lion_class)
SELECT $type_id, $lion_class
WHERE :session = '_state' AND typeof($type_id) = 'integer' AND $type_id > 5
  AND $lion_class IS NOT NULL
ON CONFLICT DO NOTHING;

-- on admin.recorded   guarded "an action of an operator must be recorded in session _state, with its name"
SELECT 1
WHERE :session = '_state'
  AND $action IN ('transition', 'prune', 'checkpoint', 'vacuum', 'classify', 'import');

-- on admin.recorded
INSERT INTO admin_events (id, created_at, action, target_id, details, actor)
SELECT :session || ':' || :seq, annal_unix(:ts), COALESCE($action, ''), $target_id,
       NULLIF(:data -> '$.details', 'null'), $actor
WHERE :session = '_state';
