-- pack prose   version 1   database runs/*/state.db   in prose   sessions prose_*   writable

-- One OpenProse run a database, which the run's VM and its subagents also write themselves, with
-- the stock sqlite3 shell. docs/packs/prose.md says what each event does.
--
-- The tables stand as the OpenProse document prints them, with two mends, without which its own SQL
-- does not run: execution has updated_at (its loop example sets it), and the key of bindings, which
-- is an expression, is a unique index.

CREATE TABLE IF NOT EXISTS run (
    id TEXT PRIMARY KEY,
    program_path TEXT,
    program_source TEXT,
    started_at TEXT DEFAULT (datetime('now')),
    updated_at TEXT DEFAULT (datetime('now')),
    status TEXT DEFAULT 'running',
    state_mode TEXT DEFAULT 'sqlite'
);

CREATE TABLE IF NOT EXISTS execution (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    statement_index INTEGER,
    statement_text TEXT,
    status TEXT,
    started_at TEXT,
    completed_at TEXT,
    error_message TEXT,
    parent_id INTEGER REFERENCES execution(id),
    metadata TEXT,
    updated_at TEXT
);

CREATE INDEX IF NOT EXISTS idx_execution_parent ON execution(parent_id);

CREATE TABLE IF NOT EXISTS bindings (
    name TEXT,
    execution_id INTEGER,
    kind TEXT,
    value TEXT,
    source_statement TEXT,
    created_at TEXT DEFAULT (datetime('now')),
    updated_at TEXT DEFAULT (datetime('now')),
    attachment_path TEXT
);

CREATE UNIQUE INDEX IF NOT EXISTS idx_bindings_scope ON bindings(name, IFNULL(execution_id, -1));

CREATE TABLE IF NOT EXISTS agents (
    name TEXT PRIMARY KEY,
    scope TEXT,
    memory TEXT,
    created_at TEXT DEFAULT (datetime('now')),
    updated_at TEXT DEFAULT (datetime('now'))
);

CREATE TABLE IF NOT EXISTS agent_segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_name TEXT REFERENCES agents(name),
    segment_number INTEGER,
    timestamp TEXT DEFAULT (datetime('now')),
    prompt TEXT,
    summary TEXT,
    UNIQUE(agent_name, segment_number)
);

CREATE TABLE IF NOT EXISTS imports (
    alias TEXT PRIMARY KEY,
    source_url TEXT,
    fetched_at TEXT,
    inputs_schema TEXT,
    outputs_schema TEXT
);

-- Files beside the database, as the events name them: what a check of them is made against.
CREATE TABLE IF NOT EXISTS attachments (
    path TEXT PRIMARY KEY,
    sha256 TEXT,
    bytes INTEGER,
    written_at TEXT
);

-- A guard asks for something by an UPDATE of this one row, which changes nothing.
CREATE TABLE IF NOT EXISTS prose_gate (id INTEGER PRIMARY KEY CHECK (id = 1));
INSERT INTO prose_gate VALUES (1);

-- What may become of what. A status that nothing leads out of is final: leaving it takes an event
-- with override and a reason.
CREATE VIEW IF NOT EXISTS prose_edges (entity, was, becomes) AS VALUES
    ('run', 'running', 'completed'),
    ('run', 'running', 'failed'),
    ('run', 'running', 'interrupted'),
    ('run', 'running', 'running'),
    ('run', 'interrupted', 'running'),
    ('run', 'interrupted', 'failed'),
    ('execution', 'pending', 'executing'),
    ('execution', 'pending', 'completed'),
    ('execution', 'pending', 'failed'),
    ('execution', 'pending', 'skipped'),
    ('execution', 'executing', 'completed'),
    ('execution', 'executing', 'failed'),
    ('execution', 'executing', 'skipped');

-- The state of every parallel block. The document's own count of what is pending counts the row of
-- the block too, and so never becomes 0 before the block is over; this one counts branches.
CREATE VIEW IF NOT EXISTS x_parallel_status AS
WITH rows AS (
    SELECT id, status, statement_text,
           CASE WHEN json_valid(metadata) THEN metadata ELSE '{}' END AS metadata
    FROM execution),
marked AS (
    SELECT id, status, metadata,
           metadata ->> '$.parallel_id' AS parallel_id, metadata ->> '$.branch' AS branch
    FROM rows WHERE metadata ->> '$.parallel_id' IS NOT NULL)
SELECT p.parallel_id, p.id AS execution_id, p.status,
       COALESCE(p.metadata ->> '$.strategy', 'all') AS strategy,
       COALESCE(p.metadata ->> '$.count', 1) AS count,
       COALESCE(p.metadata ->> '$.failure', 'fail-fast') AS failure,
       COUNT(b.id) AS branches,
       COUNT(b.id) FILTER (WHERE b.status IN ('pending', 'executing')) AS pending,
       COUNT(b.id) FILTER (WHERE b.status = 'completed') AS completed,
       COUNT(b.id) FILTER (WHERE b.status = 'failed') AS failed,
       COUNT(b.id) FILTER (WHERE b.status = 'skipped') AS skipped
FROM marked p LEFT JOIN marked b ON b.parallel_id = p.parallel_id AND b.branch IS NOT NULL
WHERE p.branch IS NULL
GROUP BY p.id;

-- How every parallel block ends: completed, failed, or NULL while it must go on.
--   all    every branch; any: count of them succeed; first: the first that ends decides
--   fail-fast   the first failure is the block's; continue: the others go on, and then it fails;
--   ignore      a failure is as good as a success
CREATE VIEW IF NOT EXISTS x_parallel_join AS
SELECT *, CASE
    WHEN strategy = 'any' AND completed + (failure = 'ignore') * failed >= count THEN 'completed'
    WHEN strategy = 'any' AND completed + (failure = 'ignore') * failed + pending < count
        THEN 'failed'
    WHEN strategy = 'any' THEN NULL
    WHEN failure = 'fail-fast' AND failed > 0 AND (strategy = 'all' OR completed = 0) THEN 'failed'
    WHEN strategy = 'first' AND completed + (failure = 'ignore') * failed > 0 THEN 'completed'
    WHEN pending > 0 THEN NULL
    WHEN strategy = 'first' THEN 'failed'
    WHEN failed > 0 AND failure <> 'ignore' THEN 'failed'
    ELSE 'completed' END AS result
FROM x_parallel_status;

-- To resume: the statements that were under way, outermost first, and the last one completed.
CREATE VIEW IF NOT EXISTS x_resume AS
SELECT 'open' AS what, id AS execution_id, parent_id, statement_index, statement_text, status,
       metadata
FROM execution WHERE status IN ('pending', 'executing')
UNION ALL
SELECT * FROM (
    SELECT 'last completed', id, parent_id, statement_index, statement_text, status, metadata
    FROM execution WHERE status = 'completed'
    ORDER BY COALESCE(completed_at, '') DESC, id DESC LIMIT 1);

-- A row that is its own ancestor would make every walk up the call stack endless. (A parent that
-- does not exist is let through: the document's own example writes one.)
CREATE TRIGGER IF NOT EXISTS prose_no_cycle_insert
BEFORE INSERT ON execution
WHEN NEW.parent_id IS NOT NULL
    AND (NEW.parent_id = NEW.id OR EXISTS (SELECT 1 FROM execution WHERE parent_id = NEW.id))
BEGIN
    SELECT RAISE(ABORT, 'an execution cannot be its own ancestor: check parent_id')
    WHERE NEW.id IN (
        WITH RECURSIVE up(id) AS (
            SELECT NEW.parent_id
            UNION
            SELECT e.parent_id FROM execution e JOIN up ON e.id = up.id)
        SELECT id FROM up WHERE id IS NOT NULL);
END;

CREATE TRIGGER IF NOT EXISTS prose_no_cycle_update
BEFORE UPDATE OF id, parent_id ON execution
WHEN NEW.parent_id IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'an execution cannot be its own ancestor: check parent_id')
    WHERE NEW.id IN (
        WITH RECURSIVE up(id) AS (
            SELECT NEW.parent_id
            UNION
            SELECT e.parent_id FROM execution e JOIN up ON e.id = up.id)
        SELECT id FROM up WHERE id IS NOT NULL);
END;

-- ---- The run ----

-- on run.started   guarded "the run has been started before"
INSERT INTO run (id, program_path, program_source, started_at, updated_at, status, state_mode)
SELECT COALESCE($id, substr(:session, 7)), $program_path, $program_source,
       COALESCE($started_at, replace(substr(:ts, 1, 19), 'T', ' ')),
       COALESCE($started_at, replace(substr(:ts, 1, 19), 'T', ' ')),
       'running', COALESCE($state_mode, 'sqlite')
WHERE NOT EXISTS (SELECT 1 FROM run);

-- on run.completed   guarded "the run is not running (a final status is left only with override and a reason)"
UPDATE run SET status = 'completed', updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM prose_edges
              WHERE entity = 'run' AND was = run.status AND becomes = 'completed')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '');

-- on run.failed   guarded "the run is over (a final status is left only with override and a reason)"
UPDATE run SET status = 'failed', updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM prose_edges
              WHERE entity = 'run' AND was = run.status AND becomes = 'failed')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '');

-- on run.interrupted   guarded "the run is not running (a final status is left only with override and a reason)"
UPDATE run SET status = 'interrupted', updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM prose_edges
              WHERE entity = 'run' AND was = run.status AND becomes = 'interrupted')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '');

-- on run.resumed   guarded "the run is over (a final status is left only with override and a reason)"
UPDATE run SET status = 'running', updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM prose_edges
              WHERE entity = 'run' AND was = run.status AND becomes = 'running')
   OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> '');

-- ---- Executions: one row a statement, or a call of a block ----

-- on execution.started, execution.executing, execution.completed, execution.skipped, execution.failed, execution.metadata_set, parallel.started, parallel.branch_completed, parallel.branch_failed, parallel.joined, loop.started, loop.iterated, loop.exited, retry.attempted   guarded "only the VM writes executions"
UPDATE prose_gate SET id = 1 WHERE COALESCE($role, 'vm') <> 'subagent';

-- on execution.started, parallel.started, loop.started   guarded "execution_id is not the next one"
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

-- on execution.completed   guarded "the execution is unknown or over (a final status is left only with override and a reason)"
UPDATE execution SET status = 'completed', updated_at = replace(substr(:ts, 1, 19), 'T', ' '),
    completed_at = COALESCE($completed_at, replace(substr(:ts, 1, 19), 'T', ' '))
WHERE id = $execution_id AND COALESCE($role, 'vm') <> 'subagent'
  AND (EXISTS (SELECT 1 FROM prose_edges
               WHERE entity = 'execution' AND was = execution.status AND becomes = 'completed')
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''));

-- on execution.skipped   guarded "the execution is unknown or over (a final status is left only with override and a reason)"
UPDATE execution SET status = 'skipped', updated_at = replace(substr(:ts, 1, 19), 'T', ' '),
    completed_at = COALESCE($completed_at, replace(substr(:ts, 1, 19), 'T', ' '))
WHERE id = $execution_id AND COALESCE($role, 'vm') <> 'subagent'
  AND (EXISTS (SELECT 1 FROM prose_edges
               WHERE entity = 'execution' AND was = execution.status AND becomes = 'skipped')
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''));

-- on execution.failed   guarded "the execution is unknown or over (a final status is left only with override and a reason)"
UPDATE execution SET status = 'failed', error_message = $error_message,
    updated_at = replace(substr(:ts, 1, 19), 'T', ' '),
    completed_at = COALESCE($completed_at, replace(substr(:ts, 1, 19), 'T', ' '))
WHERE id = $execution_id AND COALESCE($role, 'vm') <> 'subagent'
  AND (EXISTS (SELECT 1 FROM prose_edges
               WHERE entity = 'execution' AND was = execution.status AND becomes = 'failed')
       OR ($override AND trim($reason, ' ' || char(9, 10, 13)) <> ''));

-- set is an object, member by path or by name: {"$.current_iteration":2} or {"model":"…"}.
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

-- ---- Parallel blocks: a row for the block, and right behind it one for each branch ----

-- fill parallel.started
SELECT e.next AS execution_id,
       'p' || (1 + (SELECT COUNT(*) FROM x_parallel_status)) AS parallel_id
FROM (SELECT MAX(COALESCE((SELECT MAX(id) FROM execution), 0),
                 COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'execution'), 0)) + 1
             AS next) e;

-- on parallel.started   guarded "parallel_id is taken, there are no branches or fewer than count, or strategy or failure is none of all, first, any and fail-fast, continue, ignore"
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

-- on parallel.branch_completed, parallel.branch_failed   guarded "there is no such branch, or it is over"
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

-- What is still open when the block is decided is cancelled: skipped.
-- on parallel.joined   guarded "there is no such parallel block, it is over, or its branches do not decide it yet"
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

-- on loop.iterated   guarded "there is no such loop under way, iteration is not the next one, or it is beyond the loop's maximum"
UPDATE execution SET metadata = json_set(metadata, '$.current_iteration', $iteration),
    updated_at = replace(substr(:ts, 1, 19), 'T', ' ')
WHERE id = $execution_id AND status = 'executing' AND COALESCE($role, 'vm') <> 'subagent'
  AND metadata ->> '$.loop_id' = $loop_id
  AND $iteration = COALESCE(metadata ->> '$.current_iteration', 0) + 1
  AND $iteration <= COALESCE(metadata ->> '$.max_iterations', $iteration);

-- on loop.exited   guarded "there is no such loop under way"
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

-- on retry.attempted   guarded "the execution is unknown or over, attempt is not the next one, or it is beyond max_retries"
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

-- on binding.set   guarded "the name is bound for good (input, const)"
UPDATE prose_gate SET id = 1
WHERE NOT EXISTS (SELECT 1 FROM bindings WHERE name = $name AND execution_id IS $execution_id
                  AND kind IN ('input', 'const'));

-- on binding.set   guarded "the name is empty, the kind is none of input, output, let and const, or the attachment is not under attachments/"
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

-- ---- What users wrote with the shell ----

-- Such a row is a fact, and is not asked: it bypasses the guards above. These sections change
-- nothing; with them `annal verify` tells which rows a guard would have refused.

-- on sql.applied   guarded "the name is bound for good (input, const)"
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

-- on sql.applied   guarded "the status may not become this one"
UPDATE prose_gate SET id = 1
WHERE COALESCE($table, '') NOT IN ('run', 'execution') OR $op = 'delete' OR NOT EXISTS (
    SELECT 1 FROM (SELECT 'run' AS entity, id, status FROM run
                   UNION ALL SELECT 'execution', id, status FROM execution) AS stands
    WHERE entity = $table AND id = COALESCE($was::id, $row::id) AND status IS NOT $row::status
      AND NOT EXISTS (SELECT 1 FROM prose_edges AS edge
                      WHERE edge.entity = stands.entity AND was = stands.status
                        AND becomes = $row::status));

-- on sql.applied   guarded "segment_number is not the agent's next one"
UPDATE prose_gate SET id = 1
WHERE COALESCE($table, '') <> 'agent_segments' OR $op <> 'insert'
   OR $row::segment_number = (SELECT 1 + COALESCE(MAX(segment_number), 0) FROM agent_segments
                              WHERE agent_name = $row::agent_name);

-- ---- Agents of this run; those of project and user: pack prose-agents ----

-- on agent.memory_set   guarded "the name is empty, or the scope is not one that lives in the run (execution, custom)"
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

-- on agent.segment_recorded   guarded "segment_number is not the agent's next one, or there is no agent_name"
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

-- ---- Imports ----

-- on import.registered   guarded "the import has no alias"
INSERT INTO imports (alias, source_url, fetched_at, inputs_schema, outputs_schema)
SELECT $alias, $source_url, COALESCE($fetched_at, replace(substr(:ts, 1, 19), 'T', ' ')),
       $inputs_schema, $outputs_schema
WHERE $alias <> ''
ON CONFLICT (alias) DO UPDATE SET
    source_url = excluded.source_url, fetched_at = excluded.fetched_at,
    inputs_schema = excluded.inputs_schema, outputs_schema = excluded.outputs_schema;

-- ---- Verbs ----

-- noun prose   "runs of OpenProse programs"

-- verb prose init   appends run.started   "begin a run: its folder, its database, its program"
--   [RUN]           text  "the run's id (made: the time and six random letters)"
--   --program FILE  text  "the program; a copy stands beside the database"
--   about    Makes runs/RUN/ with state.db, which the sqlite3 shell may write (give it
--            -cmd '.timeout 5000', or it fails when somebody else is writing), and a copy of
--            the program in program.prose. It stands in the store's folder prose, or where
--            'annal pack enable prose --at DIR' said.
--   example  annal prose init --program plan.prose
--            annal prose init 20260116-143052-a7b3c9

-- verb prose bind   appends binding.set   session prose_{RUN}   "give a name a value"
--   RUN                 text                                "the run's id"
--   NAME                text                "its name; - takes the next of anon_001, anon_002, ..."
--   [VALUE]             text                                "its value; - reads standard input"
--   --value-file FILE   text                                "a file with its value"
--   --kind KIND         text kind (input|output|let|const)  "input, output, let (default), const"
--   --execution ID      number execution_id                 "the block's execution (root)"
--   --source STATEMENT  text source_statement               "the statement that gave it"
--   --summary TEXT      text                           "what stands in the table for a large value"
--   about    Prints where it stands. A value of more than 100 KB goes into a file,
--            attachments/NAME.md beside the database, durable before the event.
--   example  annal prose bind R research "AI safety research covers ..."
--            annal prose bind R result --value-file out.md --execution 43
--            annal prose bind R - "of a session without a name"

-- verb prose get   selects   session prose_{RUN}   "what a name means, seen from an execution"
--   RUN             text    "the run's id"
--   NAME            text    "the binding"
--   --execution ID  number  "as seen from this execution (root)"
--   about    Looks in the execution, then in those that it is part of, then at the root.
--   example  annal prose get R result --execution 43
WITH RECURSIVE up(id, parent_id, depth) AS ( -- the call stack, and then the root
    SELECT id, parent_id, 0 FROM prose.execution WHERE id = ?3
    UNION
    SELECT e.id, e.parent_id, depth + 1
    FROM prose.execution e JOIN up ON e.id = up.parent_id WHERE depth < 100000)
SELECT b.name, b.execution_id, b.kind, b.value, b.attachment_path
FROM prose.bindings b LEFT JOIN up ON up.id = b.execution_id
WHERE b.name = ?2 AND (b.execution_id IS NULL OR up.id IS NOT NULL) AND ?1 IS NOT NULL
ORDER BY up.depth IS NULL, up.depth LIMIT 1;

-- verb prose resume   selects   session prose_{RUN}   "what is to be known to go on with a run"
--   RUN       text  "the run's id"
--   about    Prints the run, the position, what is under way, parallel blocks, where bindings
--            stand, and agents. That it goes on is recorded by 'annal prose continue'.
--   example  annal prose resume 20260116-143052-a7b3c9
SELECT 'run' AS what, NULL AS execution_id, id AS name, status, program_path AS detail
FROM prose.run
UNION ALL
SELECT * FROM (SELECT 'position', id, statement_text, status, statement_index
               FROM prose.execution WHERE status = 'executing' ORDER BY id DESC LIMIT 1)
UNION ALL
SELECT what, execution_id, statement_text, status, metadata FROM prose.x_resume
UNION ALL
SELECT 'parallel', execution_id, parallel_id, COALESCE(result, status),
       pending || ' of ' || branches || ' branches open'
FROM prose.x_parallel_join WHERE status = 'executing'
UNION ALL
SELECT 'binding', execution_id, name, kind, COALESCE(attachment_path, 'bindings table')
FROM prose.bindings
UNION ALL
SELECT 'agent', NULL, name, scope, length(memory) || ' characters of memory'
FROM prose.agents WHERE ?1 IS NOT NULL;

-- verb prose sync   runs   "bring what the sqlite3 shell wrote into the journal"
--   [RUN]     text  "the run's id (all runs, and all agents)"
--   about    Every look at a run does so, too.
--   example  annal prose sync

-- verb prose attachments   runs   session prose_{RUN}   "check the files of large values"
--   RUN        text  "the run's id"
--   --restore  flag  "write again what is missing or changed"
--   about    Compares them with what was stored with their events.
--   example  annal prose attachments R --restore

-- verb prose complete-run   appends run.completed   session prose_{RUN}
--      "end a run: everything is done"
--   RUN            text           "the run's id"
--   --error TEXT   text error     "why"
--   --override     flag override  "also when the run is over; needs --reason"
--   --reason TEXT  text reason    "why a final status is left"
--   says     run {RUN} completed
--   example  annal prose complete-run 20260116-143052-a7b3c9

-- verb prose fail-run   appends run.failed   session prose_{RUN}   "end a run: it failed"
--   RUN            text           "the run's id"
--   --error TEXT   text error     "why"
--   --override     flag override  "also when the run is over; needs --reason"
--   --reason TEXT  text reason    "why a final status is left"
--   says     run {RUN} failed
--   example  annal prose fail-run 20260116-143052-a7b3c9 --error "no budget left"

-- verb prose interrupt   appends run.interrupted   session prose_{RUN}
--      "say that a run stopped in the middle"
--   RUN            text           "the run's id"
--   --error TEXT   text error     "why"
--   --override     flag override  "also when the run is over; needs --reason"
--   --reason TEXT  text reason    "why a final status is left"
--   says     run {RUN} interrupted
--   example  annal prose interrupt 20260116-143052-a7b3c9

-- verb prose continue   appends run.resumed   session prose_{RUN}   "say that a run goes on"
--   RUN            text           "the run's id"
--   --error TEXT   text error     "why"
--   --override     flag override  "also when the run is over; needs --reason"
--   --reason TEXT  text reason    "why a final status is left"
--   says     run {RUN} goes on
--   about    What is to be done is what annal prose resume prints.
--   example  annal prose continue 20260116-143052-a7b3c9

-- verb prose exec   appends execution.started   session prose_{RUN}
--      "begin a statement, or a call of a block"
--   RUN              text                             "the run's id"
--   STATEMENT        body statement_text              "the statement's text"
--   --index N        number statement_index           "its place in the program"
--   --parent ID      number parent_id                 "the execution that it is part of"
--   --status STATUS  text status (pending|executing)  "pending or executing (executing)"
--   --metadata JSON  json metadata                    "anything else"
--   --max-depth N    number max_depth                 "how deep blocks may nest (100)"
--   --role ROLE      text role (vm|subagent)          "who asks: vm, subagent"
--   says     execution {execution_id} started
--   about    Prints the id of the execution: the next one, never one that was used before.
--   example  annal prose exec R 'let research = session: researcher' --index 3

-- verb prose executing   appends execution.executing   session prose_{RUN}
--      "begin what was pending"
--   RUN            text                     "the run's id"
--   ID             number execution_id      "the execution"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   --override     flag override            "also when it is over; needs --reason"
--   --reason TEXT  text reason              "why a final status is left"
--   says     execution {execution_id} is under way
--   example  annal prose executing R 4

-- verb prose complete   appends execution.completed   session prose_{RUN}
--      "end an execution: it is done"
--   RUN            text                     "the run's id"
--   ID             number execution_id      "the execution"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   --override     flag override            "also when it is over; needs --reason"
--   --reason TEXT  text reason              "why a final status is left"
--   says     execution {execution_id} completed
--   example  annal prose complete R 4

-- verb prose fail   appends execution.failed   session prose_{RUN}   "end an execution: it failed"
--   RUN            text                     "the run's id"
--   ID             number execution_id      "the execution"
--   ERROR          body error_message       "what went wrong"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   --override     flag override            "also when it is over; needs --reason"
--   --reason TEXT  text reason              "why a final status is left"
--   says     execution {execution_id} failed
--   example  annal prose fail R 4 "Connection timeout after 30s"

-- verb prose skip   appends execution.skipped   session prose_{RUN}
--      "end an execution: it is not needed"
--   RUN            text                     "the run's id"
--   ID             number execution_id      "the execution"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   --override     flag override            "also when it is over; needs --reason"
--   --reason TEXT  text reason              "why a final status is left"
--   says     execution {execution_id} skipped
--   example  annal prose skip R 4

-- verb prose retry   appends retry.attempted   session prose_{RUN}   "count one more attempt"
--   RUN           text                     "the run's id"
--   ID            number execution_id      "the execution"
--   --max N       number max_retries       "how many retries there may be"
--   --error TEXT  text error               "what the last attempt failed with"
--   --role ROLE   text role (vm|subagent)  "who asks: vm, subagent"
--   says     execution {execution_id}: retry {attempt}
--   example  annal prose retry R 4 --max 3 --error "rate limit"

-- verb prose metadata   appends execution.metadata_set   session prose_{RUN}
--      "put something into an execution's metadata"
--   RUN          text                     "the run's id"
--   ID           number execution_id      "the execution"
--   JSON         json set                 "an object, {"model":"…"}; @FILE reads it"
--   --role ROLE  text role (vm|subagent)  "who asks: vm, subagent"
--   says     execution {execution_id}: metadata set
--   example  annal prose metadata R 4 '{"tokens":812}'

-- verb prose parallel   appends parallel.started   session prose_{RUN}
--      "begin a parallel block with its branches"
--   RUN               text                                  "the run's id"
--   BRANCH            list branches                         "the names of its branches"
--   --parallel-id ID  text parallel_id                      "the block's id (p1, p2, …)"
--   --strategy S      text strategy (all|first|any)         "when it is decided (all)"
--   --count N         number count                          "with any: how many must succeed (1)"
--   --on-fail POLICY  text failure (fail-fast|continue|ignore)  "fail-fast, continue, ignore"
--   --statement TEXT  text statement_text                   "its text (parallel:)"
--   --index N         number statement_index                "its place in the program"
--   --parent ID       number parent_id                      "the execution that it is part of"
--   --role ROLE       text role (vm|subagent)               "who asks: vm, subagent"
--   says     parallel block {parallel_id} is execution {execution_id}
--   about    The branches get the ids behind the block's own, in the order given.
--   example  annal prose parallel R a b c --strategy any --count 2

-- verb prose branch   appends parallel.branch_completed   session prose_{RUN}
--      "end a branch of a parallel block"
--   RUN             text                     "the run's id"
--   PARALLEL        text parallel_id         "the block"
--   BRANCH          text branch              "the branch that is over"
--   --failed ERROR  text error_message       "it failed, with this"
--   --role ROLE     text role (vm|subagent)  "who asks: vm, subagent"
--   says     branch {branch} of {parallel_id} is over
--   example  annal prose branch R p1 a
--            annal prose branch R p1 b --failed "timeout"

-- verb prose join   appends parallel.joined   session prose_{RUN}
--      "end a parallel block, when its branches decide it"
--   RUN          text                     "the run's id"
--   PARALLEL     text parallel_id         "the block"
--   --role ROLE  text role (vm|subagent)  "who asks: vm, subagent"
--   says     parallel block {parallel_id}: {result}
--   about    Branches that are still open are cancelled: skipped.
--   example  annal prose join R p1

-- verb prose loop   appends loop.started   session prose_{RUN}   "begin a loop"
--   RUN               text                     "the run's id"
--   STATEMENT         body statement_text      "the statement's text"
--   --condition TEXT  text condition           "until, or while, what"
--   --max N           number max               "how many iterations there may be"
--   --loop-id ID      text loop_id             "the loop's id (l1, l2, …)"
--   --index N         number statement_index   "its place in the program"
--   --parent ID       number parent_id         "the execution that it is part of"
--   --role ROLE       text role (vm|subagent)  "who asks: vm, subagent"
--   says     loop {loop_id} is execution {execution_id}
--   example  annal prose loop R 'loop until **done** (max: 5):' --max 5

-- verb prose iterate   appends loop.iterated   session prose_{RUN}
--      "begin the next iteration of a loop"
--   RUN          text                     "the run's id"
--   LOOP         text loop_id             "the loop"
--   --role ROLE  text role (vm|subagent)  "who asks: vm, subagent"
--   says     loop {loop_id}: iteration {iteration}
--   example  annal prose iterate R l1

-- verb prose exit   appends loop.exited   session prose_{RUN}   "end a loop"
--   RUN            text                     "the run's id"
--   LOOP           text loop_id             "the loop"
--   --reason TEXT  text exit_reason         "why it ended (done)"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   says     loop {loop_id} is over
--   example  annal prose exit R l1 --reason "condition met"

-- verb prose remember   appends agent.memory_set   session prose_{RUN}   "set an agent's memory"
--   RUN            text                                  "the run's id"
--   AGENT          text name                             "the agent's name"
--   MEMORY         body memory                         "what it shall know; - reads standard input"
--   --scope SCOPE  text scope (execution|project|user|custom)
--                  "whose agent: execution (default), ..."
--   says     agent {name}: memory set
--   about    Agents of scope project and user stand in databases of their own, of the packs
--            prose-agents and prose-user, whatever RUN is.
--   example  annal prose remember R captain - < memory.md

-- verb prose segment   appends agent.segment_recorded   session prose_{RUN}
--      "record one invocation of an agent"
--   RUN             text                                  "the run's id"
--   AGENT           text agent_name                       "the agent's name"
--   --prompt TEXT   body prompt                           "what it was asked"
--   --scope SCOPE   text scope (execution|project|user|custom)
--                   "whose agent: execution (default), ..."
--   --summary TEXT  body summary                          "what came of it"
--   says     agent {agent_name}: segment {segment_number}
--   example  annal prose segment R captain --prompt "review" --summary "two bugs"

-- verb prose import   appends import.registered   session prose_{RUN}
--      "register an imported program"
--   RUN             text                 "the run's id"
--   ALIAS           text alias           "how the program calls it"
--   URL             text source_url      "where it comes from"
--   --inputs JSON   json inputs_schema   "what it takes"
--   --outputs JSON  json outputs_schema  "what it gives"
--   says     import {alias} registered
--   example  annal prose import R research https://example.org/research.prose
