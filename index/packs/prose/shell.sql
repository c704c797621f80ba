-- SPDX-License-Identifier: Apache-2.0
-- ---- Rows that users wrote with the shell ----

-- Such a row is a fact that bypasses the guards above. These sections change nothing; with them
-- `annal verify` reports which rows a guard would have refused.

-- on sql.applied   guarded "the value of this name cannot change (input, const)"
UPDATE prose_gate SET id = 1
WHERE COALESCE($table, '') <> 'bindings' OR NOT EXISTS (
    SELECT 1 FROM bindings
    WHERE kind IN ('input', 'const')
      AND ((name = $row::name AND execution_id IS $row::execution_id)
           OR (name = $was::name AND execution_id IS $was::execution_id))
      AND NOT ($op <> 'delete' AND name IS $row::name AND execution_id IS $row::execution_id
               AND kind IS $row::kind AND value IS $row::value
               AND attachment_path IS $row::attachment_path));

-- on sql.applied   guarded "the execution is unknown"
UPDATE prose_gate SET id = 1
WHERE COALESCE($table, '') <> 'bindings' OR $op = 'delete' OR $row::execution_id IS NULL
   OR EXISTS (SELECT 1 FROM execution WHERE id = $row::execution_id);

-- on sql.applied   guarded "the parent is unknown or not older"
UPDATE prose_gate SET id = 1
WHERE COALESCE($table, '') <> 'execution' OR $op = 'delete' OR $row::parent_id IS NULL
   OR EXISTS (SELECT 1 FROM execution WHERE id = $row::parent_id AND id < $row::id);

-- on sql.applied   guarded "the status cannot change to this status"
UPDATE prose_gate SET id = 1
WHERE COALESCE($table, '') NOT IN ('run', 'execution') OR $op = 'delete' OR NOT EXISTS (
    SELECT 1 FROM (SELECT 'run' AS entity, id, status FROM run
                   UNION ALL SELECT 'execution', id, status FROM execution) AS stands
    WHERE entity = $table AND id = COALESCE($was::id, $row::id) AND status IS NOT $row::status
      AND NOT EXISTS (SELECT 1 FROM prose_edges AS edge
                      WHERE edge.entity = stands.entity AND was = stands.status
                        AND becomes = $row::status));

-- on sql.applied   guarded "segment_number is not the agent's next number"
UPDATE prose_gate SET id = 1
WHERE COALESCE($table, '') <> 'agent_segments' OR $op <> 'insert'
   OR $row::segment_number = (SELECT 1 + COALESCE(MAX(segment_number), 0) FROM agent_segments
                              WHERE agent_name = $row::agent_name);
