-- pack prose   version 1   database runs/*/state.db   in prose   sessions prose_*   writable
-- SPDX-License-Identifier: Apache-2.0

-- One database for each OpenProse run, which the run's VM and its subagents also write directly,
-- with the stock sqlite3 shell. docs/packs/prose.md describes the effect of each event.
--
-- The tables are as the OpenProse document prints them, with two corrections, without which its own
-- SQL does not run: execution has updated_at (its loop example sets it), and the key of bindings,
-- which is an expression, is a unique index.

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

-- Files beside the database, as the events describe them: a check compares the files with these
-- rows.
CREATE TABLE IF NOT EXISTS attachments (
    path TEXT PRIMARY KEY,
    sha256 TEXT,
    bytes INTEGER,
    written_at TEXT
);

-- A guard checks a condition by an UPDATE of this one row, which changes nothing.
CREATE TABLE IF NOT EXISTS prose_gate (id INTEGER PRIMARY KEY CHECK (id = 1));
INSERT INTO prose_gate VALUES (1);

-- The allowed changes. A status without an outgoing edge is final: only an event with override and
-- a reason can leave it.
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

-- The state of every parallel block. The document's own count of pending rows includes the row of
-- the block, and so never becomes 0 before the block has ended; this view counts branches.
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
--   fail-fast   the first failure fails the block; continue: the other branches run, then it fails;
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

-- To resume: the statements that were running, outermost first, and the last one completed.
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
-- does not exist is accepted: the document's own example writes one.)
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
