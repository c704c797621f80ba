-- SPDX-License-Identifier: Apache-2.0
-- on branch.created, branch.forked   guarded "a branch needs an id"
SELECT 1 WHERE json_type(:data, '$.id') = 'text' AND $id <> '';

-- on branch.created, branch.forked   guarded "the branch or its progression belongs to another session"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM branches WHERE id = $id AND session_id <> :session)
  AND NOT EXISTS (SELECT 1 FROM progressions
                  WHERE id = COALESCE($progression_id, $id) AND session_id <> :session);

-- on branch.created, branch.forked   guarded "the id of the branch or its progression belonged to another session, which was pruned, and cannot be used again"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'branch' AND id = $id AND session_id <> :session)
  AND NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'progression' AND id = COALESCE($progression_id, $id)
                    AND session_id <> :session);

-- on branch.forked   guarded "the branch exists already"
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM branches WHERE id = $id);

-- on branch.forked   guarded "the session has no such parent branch"
SELECT 1
WHERE EXISTS (SELECT 1 FROM branches WHERE id = $parent_branch_id AND session_id = :session);

-- on branch.forked   guarded "forked_at_ord is not within the history of the parent"
SELECT 1
WHERE json_type(:data, '$.forked_at_ord') = 'integer' AND $forked_at_ord >= 0
  AND $forked_at_ord <= (SELECT length FROM branch_lengths
                         WHERE branch_id = $parent_branch_id);

-- A branch forks at the end of its parent, unless the event names a place.

-- fill branch.forked
SELECT COALESCE((SELECT length FROM branch_lengths WHERE branch_id = $parent_branch_id), 0)
       AS forked_at_ord;

-- on branch.created, branch.forked
INSERT INTO progressions (id, created_at, collection, session_id)
SELECT COALESCE($progression_id, $id), COALESCE(annal_unix($created_at), annal_unix(:ts)), '[]',
       :session
WHERE $id IS NOT NULL
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, collection = '[]', session_id = excluded.session_id
    WHERE excluded.session_id < session_id;
INSERT INTO branches (id, created_at, node_metadata, user, name, session_id, progression_id,
                      system_msg_id, parent_branch_id, forked_at_ord)
SELECT $id, COALESCE(annal_unix($created_at), annal_unix(:ts)),
       CASE WHEN :type = 'branch.forked'
            THEN json_set(CASE json_type(:data, '$.node_metadata') WHEN 'object'
                               THEN :data -> '$.node_metadata' ELSE '{}' END,
                          '$.parent_branch_id', $parent_branch_id,
                          '$.forked_at_ord', $forked_at_ord)
            ELSE NULLIF(COALESCE(:data -> '$.node_metadata', :data -> '$.metadata'), 'null') END,
       $user, $name, :session, COALESCE($progression_id, $id),
       COALESCE($system_msg_id, (SELECT system_msg_id FROM branches
                                 WHERE id = parent.id AND parent.ord > 0)),
       parent.id, CASE WHEN parent.id IS NOT NULL THEN parent.ord END
FROM (SELECT max(p.id) AS id,
             MAX(0, MIN(COALESCE($forked_at_ord, $node_metadata::forked_at_ord),
                        (SELECT length FROM branch_lengths
                         WHERE branch_id = COALESCE($parent_branch_id,
                                                    $node_metadata::parent_branch_id)))) AS ord
      FROM branches p
      WHERE p.id = COALESCE($parent_branch_id, $node_metadata::parent_branch_id)
        AND p.session_id = :session AND p.id <> $id) parent
WHERE $id IS NOT NULL
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, node_metadata = excluded.node_metadata,
    user = excluded.user, name = excluded.name, session_id = excluded.session_id,
    progression_id = excluded.progression_id, system_msg_id = excluded.system_msg_id,
    parent_branch_id = excluded.parent_branch_id, forked_at_ord = excluded.forked_at_ord
    WHERE excluded.session_id < session_id;
INSERT INTO branch_progressions (session_id, branch_id, progression_id)
SELECT :session, $id, COALESCE($progression_id, $id) WHERE $id IS NOT NULL
ON CONFLICT DO NOTHING;

-- on branch.updated   guarded "the session has no such branch"
SELECT 1
WHERE EXISTS (SELECT 1 FROM branches WHERE id = $id AND session_id = :session);

-- on branch.updated   guarded "set names a column that does not exist, or that cannot be set in this way"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM json_each(COALESCE(:data -> '$.set', '{}'))
                  WHERE key NOT IN ('name', 'user', 'node_metadata'));

-- A fork point cannot change.

-- on branch.updated
UPDATE branches SET
    name = CASE WHEN json_type(:data, '$.set.name') IS NULL THEN name ELSE $set::name END,
    user = CASE WHEN json_type(:data, '$.set.user') IS NULL THEN user ELSE $set::user END,
    node_metadata =
        CASE WHEN json_type(:data, '$.set.node_metadata') IS NULL THEN node_metadata
             WHEN parent_branch_id IS NULL THEN NULLIF(:data -> '$.set.node_metadata', 'null')
             ELSE json_set(CASE json_type(:data, '$.set.node_metadata') WHEN 'object'
                                THEN :data -> '$.set.node_metadata' ELSE '{}' END,
                           '$.parent_branch_id', parent_branch_id,
                           '$.forked_at_ord', forked_at_ord) END
WHERE id = $id AND session_id = :session;
UPDATE sessions SET updated_at = MAX(updated_at, annal_unix(:ts)) WHERE id = :session;

-- on branch.system_set   guarded "the session has no such branch, or there is no such message"
SELECT 1
WHERE EXISTS (SELECT 1 FROM branches
              WHERE id = COALESCE($id, $branch_id) AND session_id = :session)
  AND EXISTS (SELECT 1 FROM messages WHERE id = $message_id);

-- on branch.system_set
UPDATE branches SET system_msg_id = $message_id
WHERE id = COALESCE($id, $branch_id) AND session_id = :session;

-- on progression.created   guarded "a progression needs an id that no other session has"
SELECT 1
WHERE json_type(:data, '$.id') = 'text' AND $id <> ''
  AND NOT EXISTS (SELECT 1 FROM progressions WHERE id = $id AND session_id <> :session);

-- on progression.created   guarded "the id of the progression belonged to another session, which was pruned, and cannot be used again"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'progression' AND id = $id AND session_id <> :session);

-- on progression.created
INSERT INTO progressions (id, created_at, collection, session_id)
SELECT $id, COALESCE(annal_unix($created_at), annal_unix(:ts)),
       (SELECT json_group_array(value)
        FROM (SELECT value FROM json_each(COALESCE(:data -> '$.collection', '[]'))
              WHERE type = 'text' GROUP BY value ORDER BY MIN(key))),
       :session
WHERE $id IS NOT NULL
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, collection = excluded.collection,
    session_id = excluded.session_id
    WHERE excluded.session_id < session_id;

-- on progression.appended   guarded "the session has no such progression"
SELECT 1
WHERE $message_id <> ''
  AND EXISTS (SELECT 1 FROM progressions WHERE id = $progression_id AND session_id = :session);

-- on progression.appended
INSERT INTO progression_ends (session_id, progression_id, message_id)
SELECT :session, p.id, '' || $message_id
FROM progressions p
WHERE p.session_id = :session AND p.id = $progression_id AND $message_id IS NOT NULL;
