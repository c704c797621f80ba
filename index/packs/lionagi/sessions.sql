-- SPDX-License-Identifier: Apache-2.0
-- on session.created, session.imported   guarded "invocation_kind must be agent, play, flow, fanout or show-play"
SELECT 1
WHERE $invocation_kind IS NULL
   OR $invocation_kind IN ('agent', 'play', 'flow', 'fanout', 'show-play');

-- on session.created, session.imported   guarded "source_kind must be live or imported_fs"
SELECT 1
WHERE $source_kind IS NULL OR $source_kind IN ('live', 'imported_fs');

-- on session.created, session.imported   guarded "a session cannot have this status"
SELECT 1
WHERE $status IS NULL OR $status IN ('idle', 'paused', 'ended')
   OR $status IN (SELECT status FROM session_statuses);

-- on session.created, session.imported   guarded "the session exists already"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = :session AND source_kind IS NOT NULL);

-- on session.created, session.imported   guarded "the progression belongs to another session"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM progressions
                  WHERE id = COALESCE($progression_id, :session) AND session_id <> :session);

-- on session.created, session.imported   guarded "the id of the progression belonged to another session, which was pruned, and cannot be used again"
SELECT 1
WHERE NOT EXISTS (SELECT 1 FROM pruned_ids
                  WHERE kind = 'progression' AND id = COALESCE($progression_id, :session) AND session_id <> :session);

-- A status of another vocabulary (the core pack's idle, say) counts as missing.

-- on session.created, session.imported
INSERT INTO progressions (id, created_at, collection, session_id)
VALUES (COALESCE($progression_id, :session), COALESCE(annal_unix($created_at), annal_unix(:ts)),
        '[]', :session)
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at, collection = '[]', session_id = excluded.session_id
    WHERE excluded.session_id < session_id;
INSERT INTO sessions (id, created_at, node_metadata, name, user, progression_id, updated_at,
                      playbook_name, agent_name, invocation_kind, show_topic, show_play_name,
                      artifacts_path, source_kind, status, started_at, ended_at, last_message_at,
                      health, delivery, reason_codes, process)
VALUES (:session,
        COALESCE(annal_unix($created_at), annal_unix(:ts)),
        NULLIF(COALESCE(:data -> '$.node_metadata', :data -> '$.metadata'), 'null'),
        $name, $user,
        COALESCE($progression_id, :session),
        COALESCE(annal_unix($updated_at), annal_unix(:ts)),
        $playbook_name, $agent_name,
        CASE WHEN $invocation_kind IN ('agent', 'play', 'flow', 'fanout', 'show-play')
             THEN $invocation_kind END,
        $show_topic, $show_play_name, $artifacts_path,
        CASE WHEN json_type(:data, '$.source_kind') = 'null' THEN NULL
             WHEN $source_kind IN ('live', 'imported_fs') THEN $source_kind
             WHEN :type = 'session.imported' THEN 'imported_fs' ELSE 'live' END,
        (SELECT status FROM session_statuses WHERE status = $status),
        annal_unix($started_at), annal_unix($ended_at),
        COALESCE(annal_unix($started_at), annal_unix($created_at), annal_unix(:ts)),
        $health, $delivery,
        COALESCE(NULLIF(:data -> '$.reason_codes', 'null'), '[]'),
        NULLIF(:data -> '$.process', 'null'))
ON CONFLICT (id) DO UPDATE SET
    created_at = excluded.created_at,
    node_metadata = COALESCE(excluded.node_metadata, node_metadata),
    name = COALESCE(excluded.name, name),
    user = COALESCE(excluded.user, user),
    progression_id = COALESCE($progression_id, progression_id),
    updated_at = MAX(updated_at, excluded.updated_at),
    playbook_name = COALESCE(excluded.playbook_name, playbook_name),
    agent_name = COALESCE(excluded.agent_name, agent_name),
    invocation_kind = COALESCE(excluded.invocation_kind, invocation_kind),
    show_topic = COALESCE(excluded.show_topic, show_topic),
    show_play_name = COALESCE(excluded.show_play_name, show_play_name),
    artifacts_path = COALESCE(excluded.artifacts_path, artifacts_path),
    source_kind = excluded.source_kind,
    status = COALESCE(status, excluded.status),
    started_at = COALESCE(excluded.started_at, started_at),
    ended_at = COALESCE(excluded.ended_at, ended_at),
    last_message_at = MAX(last_message_at, excluded.last_message_at),
    process = COALESCE(excluded.process, process);

-- A session that began without session.created is a session, too.

-- on message.added, branch.created, branch.forked, progression.created, session.transition, run.transition, session.opened
INSERT INTO progressions (id, created_at, collection, session_id)
SELECT :session, annal_unix(:ts), '[]', :session
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = :session)
  AND NOT (:type = 'run.transition' AND :session GLOB 'run_*')
ON CONFLICT (id) DO NOTHING;
INSERT INTO sessions (id, created_at, progression_id, updated_at, source_kind, last_message_at)
SELECT :session, annal_unix(:ts), :session, annal_unix(:ts), NULL, annal_unix(:ts)
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE id = :session)
  AND NOT (:type = 'run.transition' AND :session GLOB 'run_*')
ON CONFLICT (id) DO NOTHING;

-- The process that has the session open; see annal/process.h.

-- on session.opened
UPDATE sessions SET
    process = COALESCE(NULLIF(:data -> '$.process', 'null'), process),
    updated_at = MAX(updated_at, annal_unix(:ts))
WHERE id = :session;

-- on session.updated   guarded "set names a column that does not exist, or that cannot be set in this way"
SELECT 1
WHERE NOT EXISTS (
    SELECT 1 FROM json_each(COALESCE(:data -> '$.set', '{}'))
    WHERE key NOT IN ('name', 'user', 'node_metadata', 'playbook_name', 'agent_name',
                      'invocation_kind', 'show_topic', 'show_play_name', 'artifacts_path',
                      'source_kind', 'started_at', 'ended_at', 'updated_at', 'health', 'delivery',
                      'reason_codes', 'process',
                      'flow_id', 'agent_id', 'provider', 'model', 'created_at', 'title',
                      'working_directory', 'git_branch', 'parent_session_id')
      AND NOT (key = 'status' AND NOT EXISTS (SELECT 1 FROM sessions
                                              WHERE id = :session AND status IS NOT NULL)));

-- on session.updated   guarded "invocation_kind or source_kind has an unknown value"
SELECT 1
WHERE ($set::invocation_kind IS NULL
       OR $set::invocation_kind IN ('agent', 'play', 'flow', 'fanout', 'show-play'))
  AND ($set::source_kind IS NULL OR $set::source_kind IN ('live', 'imported_fs'));

-- A session that has ended stays ended for the pack core, too, whose sessions these events change.

-- on session.status_changed, session.paused, session.resumed, session.updated, session_pause, session_resume   guarded "the session has ended; only a session.transition with override can change that"
SELECT 1
WHERE (:type = 'session.updated' AND COALESCE($status, $set::status) IS NULL)
   OR NOT EXISTS (SELECT 1 FROM sessions s JOIN session_statuses t ON t.status = s.status
                  WHERE s.id = :session AND t.terminal);

-- Does not change last_message_at: a change of the row is not activity.

-- on session.updated
UPDATE sessions SET
    name = CASE WHEN json_type(:data, '$.set.name') IS NULL THEN name ELSE $set::name END,
    user = CASE WHEN json_type(:data, '$.set.user') IS NULL THEN user ELSE $set::user END,
    node_metadata = CASE WHEN json_type(:data, '$.set.node_metadata') IS NULL THEN node_metadata
                         ELSE NULLIF(:data -> '$.set.node_metadata', 'null') END,
    playbook_name = CASE WHEN json_type(:data, '$.set.playbook_name') IS NULL THEN playbook_name
                         ELSE $set::playbook_name END,
    agent_name = CASE WHEN json_type(:data, '$.set.agent_name') IS NULL THEN agent_name
                      ELSE $set::agent_name END,
    invocation_kind =
        CASE WHEN json_type(:data, '$.set.invocation_kind') = 'null' THEN NULL
             WHEN $set::invocation_kind IN ('agent', 'play', 'flow', 'fanout', 'show-play')
             THEN $set::invocation_kind ELSE invocation_kind END,
    show_topic = CASE WHEN json_type(:data, '$.set.show_topic') IS NULL THEN show_topic
                      ELSE $set::show_topic END,
    show_play_name = CASE WHEN json_type(:data, '$.set.show_play_name') IS NULL THEN show_play_name
                          ELSE $set::show_play_name END,
    artifacts_path = CASE WHEN json_type(:data, '$.set.artifacts_path') IS NULL THEN artifacts_path
                          ELSE $set::artifacts_path END,
    source_kind = CASE WHEN json_type(:data, '$.set.source_kind') = 'null' THEN NULL
                       WHEN $set::source_kind IN ('live', 'imported_fs') THEN $set::source_kind
                       ELSE source_kind END,
    started_at = CASE WHEN json_type(:data, '$.set.started_at') IS NULL THEN started_at
                      ELSE annal_unix($set::started_at) END,
    ended_at = CASE WHEN json_type(:data, '$.set.ended_at') IS NULL THEN ended_at
                    ELSE annal_unix($set::ended_at) END,
    health = CASE WHEN json_type(:data, '$.set.health') IS NULL THEN health
                  ELSE $set::health END,
    delivery = CASE WHEN json_type(:data, '$.set.delivery') IS NULL THEN delivery
                    ELSE $set::delivery END,
    reason_codes = COALESCE(NULLIF(:data -> '$.set.reason_codes', 'null'), reason_codes),
    process = CASE WHEN json_type(:data, '$.set.process') IS NULL THEN process
                   ELSE NULLIF(:data -> '$.set.process', 'null') END,
    updated_at = COALESCE(annal_unix($set::updated_at), MAX(updated_at, annal_unix(:ts)))
WHERE id = :session;

-- run.transition means the same, except in the session of a run (pack agentweaver).

-- on session.transition, run.transition   guarded "there is no such session"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR EXISTS (SELECT 1 FROM sessions WHERE id = :session);

-- on session.transition, run.transition   guarded "to is not a status of a session"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR EXISTS (SELECT 1 FROM session_statuses WHERE status = $to);

-- on session.transition, run.transition   guarded "source must be executor, agent, admin or system"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR $source IS NULL OR $source IN ('executor', 'agent', 'admin', 'system');

-- on session.transition, run.transition   guarded "reason_code must be three lower-case words separated by dots: session.stale.no_heartbeat"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR $reason_code IS NULL OR $reason_code = 'legacy.imported'
   OR ($reason_code GLOB '[a-z]*.[a-z]*.[a-z]*' AND NOT $reason_code GLOB '*[^a-z0-9_.]*'
       AND NOT $reason_code GLOB '*.*.*.*' AND NOT $reason_code GLOB '*..*');

-- quiet_since: the time of the last look, if a caller ends a session because it was silent.

-- on session.transition, run.transition   guarded "the session has been active since quiet_since"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR $quiet_since IS NULL
   OR EXISTS (SELECT 1 FROM sessions
              WHERE id = :session AND $quiet_since >=
                    COALESCE(NULLIF(last_message_at, 0), NULLIF(updated_at, 0), 0));

-- on session.transition, run.transition   guarded "the status of the session differs from the expected status"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR json_type(:data, '$.expected') IS NULL
   OR EXISTS (SELECT 1 FROM sessions s, json_each(:data, '$.expected') e
              WHERE s.id = :session AND s.status IS e.value);

-- on session.transition, run.transition   guarded "the session cannot change from its status to this one; a final status needs override and a reason"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR EXISTS (SELECT 1 FROM sessions s JOIN session_edges e ON e.from_status = s.status
              WHERE s.id = :session AND e.to_status = $to)
   OR ($override = 1
       AND trim(COALESCE($reason_code, '') || COALESCE($reason_summary, ''),
                ' ' || char(9, 10, 13)) <> '');

-- on session.transition, run.transition   guarded "an admin may end a session only as failed, aborted or cancelled"
SELECT 1
WHERE (:type = 'run.transition' AND :session GLOB 'run_*')
   OR $source IS NOT 'admin'
   OR EXISTS (SELECT 1 FROM session_statuses WHERE status = $to AND admin_target)
   OR ($override = 1
       AND trim(COALESCE($reason_code, '') || COALESCE($reason_summary, ''),
                ' ' || char(9, 10, 13)) <> '');

-- on session.transition, run.transition
INSERT INTO status_transitions (id, entity_type, entity_id, from_status, to_status, reason_code,
                                reason_summary, evidence_refs, source, actor, override, metadata,
                                created_at)
SELECT :session || ':' || :seq, 'session', :session, s.status, $to, $reason_code, $reason_summary,
       NULLIF(COALESCE(:data -> '$.evidence_refs', :data -> '$.evidence'), 'null'), $source, $actor,
       COALESCE($override = 1, 0), NULLIF(:data -> '$.metadata', 'null'), annal_unix(:ts)
FROM sessions s
WHERE s.id = :session AND $to IN (SELECT status FROM session_statuses);
UPDATE sessions SET
    status = $to,
    started_at = CASE WHEN $to = 'running' THEN COALESCE(started_at, annal_unix(:ts))
                      ELSE started_at END,
    ended_at = CASE WHEN $to = 'running' THEN NULL
                    ELSE COALESCE(annal_unix($ended_at), annal_unix(:ts)) END,
    status_reason_code = $reason_code,
    status_reason_summary = $reason_summary,
    status_evidence_refs =
        NULLIF(COALESCE(:data -> '$.evidence_refs', :data -> '$.evidence'), 'null'),
    updated_at = MAX(updated_at, annal_unix(:ts))
WHERE id = :session AND $to IN (SELECT status FROM session_statuses);
