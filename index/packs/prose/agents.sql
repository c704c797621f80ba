-- SPDX-License-Identifier: Apache-2.0
-- ---- Agents of this run; those of project and user: pack prose-agents ----

-- on agent.memory_set   guarded "the name is empty, or the scope is not one of the run's scopes (execution, custom)"
INSERT INTO agents (name, scope, memory, created_at, updated_at)
SELECT $name, COALESCE($scope, 'execution'), $memory, replace(substr(:ts, 1, 19), 'T', ' '),
       replace(substr(:ts, 1, 19), 'T', ' ')
WHERE $name <> '' AND COALESCE($scope, 'execution') IN ('execution', 'custom')
ON CONFLICT (name) DO UPDATE SET
    scope = CASE WHEN $scope IS NULL THEN scope ELSE excluded.scope END,
    memory = excluded.memory, updated_at = excluded.updated_at;

-- fill agent.segment_recorded
SELECT 1 + COALESCE(MAX(segment_number), 0) AS segment_number FROM agent_segments
WHERE agent_name = $agent_name;

-- on agent.segment_recorded   guarded "segment_number is not the agent's next number, or agent_name is missing"
INSERT INTO agent_segments (agent_name, segment_number, timestamp, prompt, summary)
SELECT $agent_name, $segment_number,
       COALESCE($timestamp, replace(substr(:ts, 1, 19), 'T', ' ')), $prompt, $summary
WHERE $agent_name <> ''
  AND $segment_number = (SELECT 1 + COALESCE(MAX(segment_number), 0) FROM agent_segments
                         WHERE agent_name = $agent_name);
INSERT INTO agents (name, scope, created_at, updated_at)
SELECT $agent_name, COALESCE($scope, 'execution'), replace(substr(:ts, 1, 19), 'T', ' '),
       replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM agent_segments WHERE agent_name = $agent_name)
ON CONFLICT (name) DO NOTHING;
