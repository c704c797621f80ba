-- SPDX-License-Identifier: Apache-2.0
-- ==== Memory ====

-- fill memory.noted
SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM agent_memory
                             WHERE project_id = substr(:session, 6) AND id = w.id)
            THEN w.id
            ELSE (SELECT 'm' || (1 + MAX(CAST(substr(id, 2) AS INTEGER))) FROM agent_memory
                  WHERE project_id = substr(:session, 6) AND id GLOB 'm[0-9]*') END AS memory_id
FROM (SELECT 'm' || (1 + COALESCE((SELECT CAST(substr(id, 2) AS INTEGER) FROM agent_memory
                                   WHERE project_id = substr(:session, 6)
                                   ORDER BY seq DESC LIMIT 1), 0)) AS id) w;

-- on memory.noted   guarded "a memory needs an agent, some content and one of the types core_context, learning, pattern, update"
INSERT INTO agent_memory (project_id, id, agent_name, session_id, type, importance, content, tags,
                          created_at, seq)
SELECT substr(:session, 6), $memory_id, $agent_name, $session_id, $type,
       COALESCE($importance, 'medium'), $content,
       (SELECT ',' || group_concat(tag, ',') || ','
        FROM (SELECT trim(value) AS tag
              FROM json_each('[' || replace(json_quote(
                       CASE WHEN NOT json_valid($tags) THEN $tags
                            WHEN json_type($tags) = 'array'
                            THEN (SELECT group_concat(value, ',') FROM json_each($tags))
                            ELSE $tags END), ',', '","') || ']')
              WHERE trim(value) <> '' GROUP BY trim(value) ORDER BY MIN(key))),
       COALESCE(annal_time($created_at), :ts), :seq
WHERE :session GLOB 'proj_?*' AND $agent_name <> '' AND trim($content) <> ''
  AND $type IN ('core_context', 'learning', 'pattern', 'update');

-- ==== Session contexts ====

-- fill session_context.started
SELECT w.row_id, COALESCE($session_id, w.row_id) AS session_id,
       (SELECT json_group_array(session_id) FROM session_contexts
        WHERE project_id = substr(:session, 6) AND ended_at IS NULL) AS closes
FROM (SELECT 'c' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS row_id
      FROM session_contexts WHERE project_id = substr(:session, 6) AND id GLOB 'c[0-9]*') w;

-- on session_context.started   guarded "the project has, or had, a session with this id"
INSERT INTO session_contexts (project_id, session_id, id, focus_area, active_issues, summary,
                              serialized_state, started_at, updated_at, seq)
SELECT substr(:session, 6), $session_id, COALESCE($row_id, $session_id), $focus_area,
       $active_issues, $summary, $serialized_state,
       COALESCE(annal_time($started_at), :ts), :ts, :seq
WHERE :session GLOB 'proj_?*' AND $session_id <> '';
UPDATE session_contexts SET ended_at = COALESCE(annal_time($started_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND ended_at IS NULL
  AND session_id <> $session_id;

-- on session_context.updated   guarded "the project has no open session, or another session is open"
UPDATE session_contexts SET
    focus_area = COALESCE($set::focus_area, $focus_area, focus_area),
    active_issues = COALESCE($set::active_issues, $active_issues, active_issues),
    summary = COALESCE($set::summary, $summary, summary),
    serialized_state = COALESCE($set::serialized_state, $serialized_state, serialized_state),
    ended_at = annal_time(COALESCE($set::ended_at, $ended_at)),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND ended_at IS NULL
  AND session_id = COALESCE($session_id, session_id)
  AND session_id = (SELECT c.session_id FROM session_contexts_current c
                    WHERE c.project_id = substr(:session, 6));

-- on session_context.ended   guarded "the project has no open session, or another session is open"
UPDATE session_contexts SET ended_at = COALESCE(annal_time($ended_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND ended_at IS NULL
  AND session_id = COALESCE($session_id, session_id)
  AND session_id = (SELECT c.session_id FROM session_contexts_current c
                    WHERE c.project_id = substr(:session, 6));
