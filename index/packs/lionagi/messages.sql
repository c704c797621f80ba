-- SPDX-License-Identifier: Apache-2.0
-- The class that an event names is replaced by its number; none is 0. A class without a number must
-- be registered first: numbers are assigned in one place.

-- fill message.added, message.amended   reads _state
SELECT CASE WHEN COALESCE($lion_class, $node_metadata::lion_class, $metadata::lion_class, '') = ''
            THEN 0
            ELSE (SELECT type_id FROM message_types
                  WHERE lion_class = COALESCE($lion_class, $node_metadata::lion_class,
                                              $metadata::lion_class)) END AS type_id;

-- on message.added   guarded "a message needs an id, a role and content"
SELECT 1
WHERE json_type(:data, '$.id') = 'text' AND $id <> ''
  AND json_type(:data, '$.role') = 'text' AND $role <> ''
  AND ($content IS NOT NULL OR $content_ref IS NOT NULL);

-- on message.added, message.amended   guarded "this lion_class has no number yet: register it with message_type.registered in session _state"   reads _state
SELECT 1
WHERE EXISTS (SELECT 1 FROM message_types WHERE type_id = $type_id);

-- on message.added   guarded "the message belongs to another session"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM messages WHERE id = $id AND session_id <> :session);

-- on message.added   guarded "the id of the message belonged to another session, which was pruned, and cannot be used again"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'message' AND id = $id AND session_id <> :session);

-- on message.added   guarded "the session has no such branch or progression"
SELECT 1
WHERE ($branch_id IS NULL
       OR EXISTS (SELECT 1 FROM branches WHERE id = $branch_id AND session_id = :session))
  AND NOT EXISTS (SELECT 1 FROM json_each(:data, '$.append') a
                  WHERE NOT EXISTS (SELECT 1 FROM progressions p WHERE p.session_id = :session
                                    AND p.id = CASE a.type WHEN 'object'
                                                    THEN a.value ->> '$.progression_id'
                                                    ELSE a.value END));

-- The number of a class that the event lacks: a number above, which never changes, or 0.

-- on message.added
UPDATE sessions SET
    first_msg_id = COALESCE(first_msg_id, $id),
    last_msg_id = CASE WHEN EXISTS (SELECT 1 FROM progression_items
                                    WHERE message_id = '' || $id
                                      AND progression_id = sessions.progression_id)
                       THEN last_msg_id ELSE $id END,
    last_message_at = MAX(COALESCE(last_message_at, 0),
                          COALESCE(annal_unix($created_at), annal_unix(:ts))),
    updated_at = MAX(updated_at, COALESCE(annal_unix($created_at), annal_unix(:ts)))
WHERE id = :session AND $id IS NOT NULL;

-- on message.added
INSERT INTO messages (id, created_at, node_metadata, content, embedding, sender, recipient, channel,
                      role, lion_class, session_id)
SELECT $id,
       COALESCE(annal_unix($created_at), annal_unix(:ts)),
       NULLIF(COALESCE(:data -> '$.node_metadata', :data -> '$.metadata'), 'null'),
       CASE WHEN $content IS NULL AND $content_ref IS NOT NULL
            THEN json_object('content_ref', json(:data -> '$.content_ref'))
            ELSE NULLIF(:data -> '$.content', 'null') END,
       COALESCE(annal_blob($embedding_b64), annal_f32($embedding)),
       $sender, $recipient, $channel, $role,
       COALESCE($type_id,
                (SELECT type_id FROM message_types
                 WHERE type_id <= 5
                   AND lion_class = COALESCE($lion_class, $node_metadata::lion_class,
                                             $metadata::lion_class)),
                0),
       :session
WHERE $id IS NOT NULL
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, node_metadata = excluded.node_metadata,
    content = excluded.content, embedding = excluded.embedding, sender = excluded.sender,
    recipient = excluded.recipient, channel = excluded.channel, role = excluded.role,
    lion_class = excluded.lion_class, session_id = excluded.session_id
    WHERE excluded.session_id <= session_id;

-- The progressions of the message: those in append, else the session's and the branch's.

-- on message.added
INSERT INTO progression_ends (session_id, progression_id, message_id)
SELECT :session, p.id, '' || $id
FROM progressions p
WHERE p.session_id = :session AND $id IS NOT NULL
  AND p.id IN (SELECT CASE type WHEN 'object' THEN value ->> '$.progression_id' ELSE value END
               FROM json_each(:data, '$.append')
               UNION ALL
               SELECT progression_id FROM sessions
               WHERE id = :session AND json_type(:data, '$.append') IS NULL
               UNION ALL
               SELECT progression_id FROM branch_progressions
               WHERE session_id = :session AND branch_id = $branch_id
                 AND json_type(:data, '$.append') IS NULL);

-- on message.amended, message.content_pruned   guarded "the session has no such message"
SELECT 1
WHERE EXISTS (SELECT 1 FROM messages WHERE id = $id AND session_id = :session);

-- Values that the event lacks stay unchanged.

-- on message.amended
UPDATE messages SET
    created_at = COALESCE(annal_unix($created_at), created_at),
    node_metadata = CASE WHEN json_type(:data, '$.node_metadata') IS NULL THEN node_metadata
                         ELSE NULLIF(:data -> '$.node_metadata', 'null') END,
    content = COALESCE(NULLIF(:data -> '$.content', 'null'), content),
    embedding = COALESCE(annal_blob($embedding_b64), annal_f32($embedding), embedding),
    sender = CASE WHEN json_type(:data, '$.sender') IS NULL THEN sender ELSE $sender END,
    recipient = CASE WHEN json_type(:data, '$.recipient') IS NULL THEN recipient
                     ELSE $recipient END,
    channel = CASE WHEN json_type(:data, '$.channel') IS NULL THEN channel ELSE $channel END,
    role = CASE WHEN json_type(:data, '$.role') = 'text' THEN $role ELSE role END,
    lion_class = CASE WHEN COALESCE($lion_class, $node_metadata::lion_class,
                                    $metadata::lion_class, '') = '' THEN lion_class
                      ELSE COALESCE($type_id, lion_class) END
WHERE id = $id AND session_id = :session;
UPDATE sessions SET updated_at = MAX(updated_at, annal_unix(:ts)) WHERE id = :session;

-- on message.content_pruned
UPDATE messages SET
    content = json_object('pruned', json('true'), 'at', COALESCE($at, :ts),
                          'original_bytes', $original_bytes),
    embedding = NULL
WHERE id = $id AND session_id = :session;
