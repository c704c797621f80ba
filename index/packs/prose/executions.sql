-- SPDX-License-Identifier: Apache-2.0
-- ---- The run ----

-- on run.started   guarded "the run has been started before"
INSERT INTO run (id, program_path, program_source, started_at, updated_at, status, state_mode)
SELECT COALESCE($id, substr(:session, 7)), $program_path, $program_source,
       COALESCE($started_at, replace(substr(:ts, 1, 19), 'T', ' ')),
       COALESCE($started_at, replace(substr(:ts, 1, 19), 'T', ' ')),
       'running', COALESCE($state_mode, 'sqlite')
WHERE NOT EXISTS (SELECT 1 FROM run);

-- on run.completed   guarded "the run is not running (a final status needs override and a reason)"
UPDATE run SET status = 'completed', updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM prose_edges
              WHERE entity = 'run' AND was = run.status AND becomes = 'completed')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '');

-- on run.failed   guarded "the run has ended (a final status needs override and a reason)"
UPDATE run SET status = 'failed', updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM prose_edges
              WHERE entity = 'run' AND was = run.status AND becomes = 'failed')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '');

-- on run.interrupted   guarded "the run is not running (a final status needs override and a reason)"
UPDATE run SET status = 'interrupted', updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM prose_edges
              WHERE entity = 'run' AND was = run.status AND becomes = 'interrupted')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '');

-- on run.resumed   guarded "the run has ended (a final status needs override and a reason)"
UPDATE run SET status = 'running', updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM prose_edges
              WHERE entity = 'run' AND was = run.status AND becomes = 'running')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '');

-- ---- Executions: one row a statement, or a call of a block ----

-- on execution.started, execution.executing, execution.completed, execution.skipped, execution.failed, execution.metadata_set, parallel.started, parallel.branch_completed, parallel.branch_failed, parallel.joined, loop.started, loop.iterated, loop.exited, retry.attempted   guarded "only the VM writes executions"
UPDATE prose_gate SET id = 1 WHERE COALESCE($role, 'vm') <> 'subagent';

-- on execution.started, parallel.started, loop.started   guarded "execution_id is not the next id"
UPDATE prose_gate SET id = 1
WHERE $execution_id = MAX(COALESCE((SELECT MAX(id) FROM execution), 0),
           COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'execution'), 0)) + 1;

-- on execution.started, parallel.started, loop.started   guarded "the parent is unknown or not older"
UPDATE prose_gate SET id = 1
WHERE $parent_id IS NULL
   OR EXISTS (SELECT 1 FROM execution WHERE id = $parent_id AND id < $execution_id);

-- fill execution.started
SELECT MAX(COALESCE((SELECT MAX(id) FROM execution), 0),
           COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'execution'), 0)) + 1
       AS execution_id;

-- on execution.started   guarded "the block is nested deeper than max_depth (100), or the status is neither pending nor executing"
INSERT INTO execution (id, statement_index, statement_text, status, started_at, parent_id,
                       metadata, updated_at)
SELECT $execution_id, $statement_index, $statement_text, COALESCE($status, 'executing'),
       COALESCE($started_at, replace(substr(:ts, 1, 19), 'T', ' ')), $parent_id, $metadata,
       replace(substr(:ts, 1, 19), 'T', ' ')
WHERE COALESCE($role, 'vm') <> 'subagent'
  AND COALESCE($status, 'executing') IN ('pending', 'executing')
  AND $execution_id > COALESCE((SELECT MAX(id) FROM execution), 0)
  AND $execution_id = MAX(COALESCE((SELECT MAX(id) FROM execution), 0),
           COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'execution'), 0)) + 1
  AND ($parent_id IS NULL OR COALESCE($max_depth, 100) >= (
        WITH RECURSIVE up(id, parent_id, depth) AS (
            SELECT id, parent_id, 2 FROM execution WHERE id = $parent_id
            UNION ALL
            SELECT e.id, e.parent_id, depth + 1 FROM execution e JOIN up ON e.id = up.parent_id
            WHERE depth <= COALESCE($max_depth, 100))
        SELECT MAX(depth) FROM up));

-- on execution.executing   guarded "the execution is unknown or not pending"
UPDATE execution SET status = 'executing', updated_at = replace(substr(:ts, 1, 19), 'T', ' '),
    started_at = COALESCE(started_at, replace(substr(:ts, 1, 19), 'T', ' '))
WHERE id = $execution_id AND COALESCE($role, 'vm') <> 'subagent'
  AND (EXISTS (SELECT 1 FROM prose_edges
               WHERE entity = 'execution' AND was = execution.status AND becomes = 'executing')
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''));

-- on execution.completed   guarded "the execution is unknown or has ended (a final status needs override and a reason)"
UPDATE execution SET status = 'completed', updated_at = replace(substr(:ts, 1, 19), 'T', ' '),
    completed_at = COALESCE($completed_at, replace(substr(:ts, 1, 19), 'T', ' '))
WHERE id = $execution_id AND COALESCE($role, 'vm') <> 'subagent'
  AND (EXISTS (SELECT 1 FROM prose_edges
               WHERE entity = 'execution' AND was = execution.status AND becomes = 'completed')
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''));

-- on execution.skipped   guarded "the execution is unknown or has ended (a final status needs override and a reason)"
UPDATE execution SET status = 'skipped', updated_at = replace(substr(:ts, 1, 19), 'T', ' '),
    completed_at = COALESCE($completed_at, replace(substr(:ts, 1, 19), 'T', ' '))
WHERE id = $execution_id AND COALESCE($role, 'vm') <> 'subagent'
  AND (EXISTS (SELECT 1 FROM prose_edges
               WHERE entity = 'execution' AND was = execution.status AND becomes = 'skipped')
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''));

-- on execution.failed   guarded "the execution is unknown or has ended (a final status needs override and a reason)"
UPDATE execution SET status = 'failed', error_message = $error_message,
    updated_at = replace(substr(:ts, 1, 19), 'T', ' '),
    completed_at = COALESCE($completed_at, replace(substr(:ts, 1, 19), 'T', ' '))
WHERE id = $execution_id AND COALESCE($role, 'vm') <> 'subagent'
  AND (EXISTS (SELECT 1 FROM prose_edges
               WHERE entity = 'execution' AND was = execution.status AND becomes = 'failed')
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''));

-- set is an object, whose members are paths or names: {"$.current_iteration":2} or {"model":"…"}.
-- on execution.metadata_set   guarded "the execution is unknown, or its metadata is not a JSON object"
UPDATE execution SET updated_at = replace(substr(:ts, 1, 19), 'T', ' '),
    metadata = json_patch(COALESCE(metadata, '{}'),
        (SELECT json_group_object(CASE WHEN key GLOB '$.*' THEN substr(key, 3) ELSE key END,
                                  CASE WHEN type IN ('object', 'array') THEN json(value)
                                       WHEN type IN ('true', 'false') THEN json(type)
                                       ELSE value END)
         FROM json_each(:data, '$.set')))
WHERE id = $execution_id AND COALESCE($role, 'vm') <> 'subagent'
  AND json_valid(COALESCE(metadata, '{}')) AND json_type(COALESCE(metadata, '{}')) = 'object';

-- ---- Parallel blocks: a row for the block, followed by a row for each branch ----

-- fill parallel.started
SELECT e.next AS execution_id,
       'p' || (1 + (SELECT COUNT(*) FROM x_parallel_status)) AS parallel_id
FROM (SELECT MAX(COALESCE((SELECT MAX(id) FROM execution), 0),
                 COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'execution'), 0)) + 1
             AS next) e;

-- on parallel.started   guarded "parallel_id is taken, there are no branches or fewer than count, or strategy is not all, first or any, or failure is not fail-fast, continue or ignore"
INSERT INTO execution (id, statement_index, statement_text, status, started_at, parent_id,
                       metadata, updated_at)
SELECT $execution_id, $statement_index, COALESCE($statement_text, 'parallel:'), 'executing',
       replace(substr(:ts, 1, 19), 'T', ' '), $parent_id,
       json_patch(json_object('parallel_id', $parallel_id, 'strategy', COALESCE($strategy, 'all'),
                              'branches', (SELECT json_group_array(COALESCE(
                                               CASE WHEN type = 'object' THEN value ->> '$.name'
                                                    ELSE value END, key))
                                           FROM json_each(:data, '$.branches')),
                              'failure', COALESCE($failure, 'fail-fast')),
                  CASE WHEN $count IS NULL THEN '{}' ELSE json_object('count', $count) END),
       replace(substr(:ts, 1, 19), 'T', ' ')
WHERE COALESCE($role, 'vm') <> 'subagent'
  AND $parallel_id NOT IN (SELECT parallel_id FROM x_parallel_status)
  AND COALESCE($strategy, 'all') IN ('all', 'first', 'any')
  AND COALESCE($failure, 'fail-fast') IN ('fail-fast', 'continue', 'ignore')
  AND json_array_length(:data, '$.branches') >= COALESCE($count, 1)
  AND $execution_id = MAX(COALESCE((SELECT MAX(id) FROM execution), 0),
           COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'execution'), 0)) + 1
  AND ($parent_id IS NULL OR EXISTS (SELECT 1 FROM execution WHERE id = $parent_id));
INSERT INTO execution (id, statement_index, statement_text, status, started_at, parent_id,
                       metadata, updated_at)
SELECT $execution_id + 1 + b.key, $statement_index + 1 + b.key,
       CASE WHEN b.type = 'object' THEN b.value ->> '$.statement_text' END,
       'executing', replace(substr(:ts, 1, 19), 'T', ' '), $execution_id,
       json_object('parallel_id', $parallel_id,
                   'branch', CASE WHEN b.type = 'object' THEN COALESCE(b.value ->> '$.name', b.key)
                                  ELSE b.value END),
       replace(substr(:ts, 1, 19), 'T', ' ')
FROM json_each(:data, '$.branches') b
WHERE EXISTS (SELECT 1 FROM execution WHERE id = $execution_id
              AND metadata ->> '$.parallel_id' = $parallel_id AND metadata ->> '$.branch' IS NULL)
  AND NOT EXISTS (SELECT 1 FROM execution WHERE parent_id = $execution_id)
ORDER BY b.key;

-- fill parallel.branch_completed, parallel.branch_failed
SELECT id AS execution_id FROM execution
WHERE json_valid(metadata) AND metadata ->> '$.parallel_id' = $parallel_id
  AND metadata ->> '$.branch' = $branch
ORDER BY id DESC LIMIT 1;

-- on parallel.branch_completed, parallel.branch_failed   guarded "there is no such branch, or it has ended"
UPDATE execution SET
    status = CASE :type WHEN 'parallel.branch_failed' THEN 'failed' ELSE 'completed' END,
    error_message = COALESCE($error_message, error_message),
    completed_at = replace(substr(:ts, 1, 19), 'T', ' '),
    updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE id = $execution_id AND status IN ('pending', 'executing')
  AND COALESCE($role, 'vm') <> 'subagent'
  AND metadata ->> '$.parallel_id' = $parallel_id AND metadata ->> '$.branch' = $branch;

-- fill parallel.joined
SELECT execution_id, result FROM x_parallel_join WHERE parallel_id = $parallel_id;

-- Branches that are open when the block is decided are skipped.
-- on parallel.joined   guarded "there is no such parallel block, it has ended, or its branches do not decide it yet"
UPDATE execution SET status = $result, completed_at = replace(substr(:ts, 1, 19), 'T', ' '),
    updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE id = $execution_id AND status = 'executing' AND COALESCE($role, 'vm') <> 'subagent'
  AND $result = (SELECT result FROM x_parallel_join WHERE execution_id = $execution_id);
UPDATE execution SET status = 'skipped', completed_at = replace(substr(:ts, 1, 19), 'T', ' '),
    updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE parent_id = $execution_id AND status IN ('pending', 'executing')
  AND metadata ->> '$.parallel_id' = $parallel_id
  AND (SELECT status FROM execution WHERE id = $execution_id) IN ('completed', 'failed');

-- ---- Loops and retries ----

-- fill loop.started
SELECT e.next AS execution_id,
       'l' || (1 + (SELECT COUNT(*) FROM execution
                    WHERE json_valid(metadata) AND metadata ->> '$.loop_id' IS NOT NULL)) AS loop_id
FROM (SELECT MAX(COALESCE((SELECT MAX(id) FROM execution), 0),
                 COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'execution'), 0)) + 1
             AS next) e;

-- on loop.started   guarded "loop_id is taken"
INSERT INTO execution (id, statement_index, statement_text, status, started_at, parent_id,
                       metadata, updated_at)
SELECT $execution_id, $statement_index, $statement_text, 'executing',
       replace(substr(:ts, 1, 19), 'T', ' '), $parent_id,
       json_object('loop_id', $loop_id, 'max_iterations', $max, 'current_iteration', 0,
                   'condition', $condition),
       replace(substr(:ts, 1, 19), 'T', ' ')
WHERE COALESCE($role, 'vm') <> 'subagent'
  AND NOT EXISTS (SELECT 1 FROM execution
                  WHERE json_valid(metadata) AND metadata ->> '$.loop_id' = $loop_id)
  AND $execution_id = MAX(COALESCE((SELECT MAX(id) FROM execution), 0),
           COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'execution'), 0)) + 1
  AND ($parent_id IS NULL OR EXISTS (SELECT 1 FROM execution WHERE id = $parent_id));

-- fill loop.iterated, loop.exited
SELECT id AS execution_id,
       CASE :type WHEN 'loop.iterated'
            THEN COALESCE(metadata ->> '$.current_iteration', 0) + 1 END AS iteration
FROM execution WHERE json_valid(metadata) AND metadata ->> '$.loop_id' = $loop_id
ORDER BY id DESC LIMIT 1;

-- on loop.iterated   guarded "no such loop is running, iteration is not the next number, or it exceeds the loop's maximum"
UPDATE execution SET metadata = json_set(metadata, '$.current_iteration', $iteration),
    updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE id = $execution_id AND status = 'executing' AND COALESCE($role, 'vm') <> 'subagent'
  AND metadata ->> '$.loop_id' = $loop_id
  AND $iteration = COALESCE(metadata ->> '$.current_iteration', 0) + 1
  AND $iteration <= COALESCE(metadata ->> '$.max_iterations', $iteration);

-- on loop.exited   guarded "no such loop is running"
UPDATE execution SET status = 'completed',
    metadata = json_set(metadata, '$.exit_reason', COALESCE($exit_reason, 'done')),
    completed_at = replace(substr(:ts, 1, 19), 'T', ' '),
    updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE id = $execution_id AND status = 'executing' AND COALESCE($role, 'vm') <> 'subagent'
  AND metadata ->> '$.loop_id' = $loop_id;

-- fill retry.attempted
SELECT COALESCE(metadata ->> '$.retry_attempt', 0) + 1 AS attempt,
       metadata ->> '$.max_retries' AS max_retries
FROM execution WHERE id = $execution_id AND json_valid(COALESCE(metadata, '{}'));

-- on retry.attempted   guarded "the execution is unknown or has ended, attempt is not the next number, or it exceeds max_retries"
UPDATE execution SET
    metadata = json_set(COALESCE(metadata, '{}'), '$.retry_attempt', $attempt,
                        '$.max_retries', $max_retries),
    error_message = COALESCE($error, error_message),
    updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE id = $execution_id AND COALESCE($role, 'vm') <> 'subagent'
  AND status IN ('pending', 'executing')
  AND $attempt = COALESCE(metadata ->> '$.retry_attempt', 0) + 1
  AND $attempt <= COALESCE($max_retries, $attempt);

-- ---- Bindings ----

-- on binding.set, binding.anonymous   guarded "the execution is unknown"
UPDATE prose_gate SET id = 1
WHERE $execution_id IS NULL OR EXISTS (SELECT 1 FROM execution WHERE id = $execution_id);

-- on binding.set   guarded "the value of this name cannot change (input, const)"
UPDATE prose_gate SET id = 1
WHERE NOT EXISTS (SELECT 1 FROM bindings WHERE name = $name AND execution_id IS $execution_id
                  AND kind IN ('input', 'const'));

-- on binding.set   guarded "the name is empty, the kind is not input, output, let or const, or the attachment is not under attachments/"
INSERT INTO bindings (name, execution_id, kind, value, source_statement, created_at, updated_at,
                      attachment_path)
SELECT $name, $execution_id, COALESCE($kind, 'let'), COALESCE($value, $summary), $source_statement,
       COALESCE($created_at, replace(substr(:ts, 1, 19), 'T', ' ')),
       COALESCE($created_at, replace(substr(:ts, 1, 19), 'T', ' ')), $attachment_path
WHERE $name <> '' AND COALESCE($kind, 'let') IN ('input', 'output', 'let', 'const')
  AND ($execution_id IS NULL OR EXISTS (SELECT 1 FROM execution WHERE id = $execution_id))
  AND ($attachment_path IS NULL
       OR ($attachment_path GLOB 'attachments/?*' AND $attachment_path NOT GLOB '*..*'))
  AND NOT EXISTS (SELECT 1 FROM bindings WHERE name = $name AND execution_id IS $execution_id
                  AND kind IN ('input', 'const'))
ON CONFLICT (name, IFNULL(execution_id, -1)) DO UPDATE SET
    kind = excluded.kind, value = excluded.value, updated_at = excluded.updated_at,
    source_statement = COALESCE(excluded.source_statement, source_statement),
    attachment_path = excluded.attachment_path;
INSERT INTO attachments (path, sha256, bytes, written_at)
SELECT $attachment_path, $sha256, $bytes, replace(substr(:ts, 1, 19), 'T', ' ')
WHERE $attachment_path IS NOT NULL AND $sha256 IS NOT NULL
  AND EXISTS (SELECT 1 FROM bindings WHERE attachment_path = $attachment_path)
ON CONFLICT (path) DO UPDATE SET
    sha256 = excluded.sha256, bytes = excluded.bytes, written_at = excluded.written_at;

-- fill binding.anonymous
SELECT 'anon_' || printf('%03d', 1 + COALESCE(MAX(CAST(substr(name, 6) AS INTEGER)), 0)) AS name
FROM bindings WHERE name GLOB 'anon_[0-9][0-9][0-9]*';

-- on binding.anonymous   guarded "the name is not the next of anon_001, anon_002, …"
INSERT INTO bindings (name, execution_id, kind, value, source_statement, created_at, updated_at,
                      attachment_path)
SELECT $name, $execution_id, COALESCE($kind, 'let'), COALESCE($value, $summary), $source_statement,
       replace(substr(:ts, 1, 19), 'T', ' '), replace(substr(:ts, 1, 19), 'T', ' '),
       $attachment_path
WHERE $name = (SELECT 'anon_' || printf('%03d',
                      1 + COALESCE(MAX(CAST(substr(name, 6) AS INTEGER)), 0))
               FROM bindings WHERE name GLOB 'anon_[0-9][0-9][0-9]*')
  AND COALESCE($kind, 'let') IN ('input', 'output', 'let', 'const')
  AND ($attachment_path IS NULL
       OR ($attachment_path GLOB 'attachments/?*' AND $attachment_path NOT GLOB '*..*'))
  AND ($execution_id IS NULL OR EXISTS (SELECT 1 FROM execution WHERE id = $execution_id));
INSERT INTO attachments (path, sha256, bytes, written_at)
SELECT $attachment_path, $sha256, $bytes, replace(substr(:ts, 1, 19), 'T', ' ')
WHERE $attachment_path IS NOT NULL AND $sha256 IS NOT NULL
  AND EXISTS (SELECT 1 FROM bindings WHERE attachment_path = $attachment_path)
ON CONFLICT (path) DO UPDATE SET
    sha256 = excluded.sha256, bytes = excluded.bytes, written_at = excluded.written_at;

-- on attachment.written   guarded "the path is not under attachments/"
INSERT INTO attachments (path, sha256, bytes, written_at)
SELECT $path, $sha256, $bytes, replace(substr(:ts, 1, 19), 'T', ' ')
WHERE $path GLOB 'attachments/?*' AND $path NOT GLOB '*..*'
ON CONFLICT (path) DO UPDATE SET
    sha256 = excluded.sha256, bytes = excluded.bytes, written_at = excluded.written_at;
