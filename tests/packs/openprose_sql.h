/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL of the OpenProse document on SQLite state, statement by statement in its order, without
 * comments; and its lines for a shell, with their database. Ids follow the requirements.
 */
#pragma once

struct printed {
    const char *id;
    const char *sql; /* NULL: a shell's line */
    const char *line;
};

static const struct printed openprose[] = {
    {"S-P1a",
     "CREATE TABLE IF NOT EXISTS run (\n"
     "    id TEXT PRIMARY KEY,\n"
     "    program_path TEXT,\n"
     "    program_source TEXT,\n"
     "    started_at TEXT DEFAULT (datetime('now')),\n"
     "    updated_at TEXT DEFAULT (datetime('now')),\n"
     "    status TEXT DEFAULT 'running',\n"
     "    state_mode TEXT DEFAULT 'sqlite'\n"
     ");",
     NULL},
    {"S-P1b",
     "CREATE TABLE IF NOT EXISTS execution (\n"
     "    id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
     "    statement_index INTEGER,\n"
     "    statement_text TEXT,\n"
     "    status TEXT,\n"
     "    started_at TEXT,\n"
     "    completed_at TEXT,\n"
     "    error_message TEXT,\n"
     "    parent_id INTEGER REFERENCES execution(id),\n"
     "    metadata TEXT\n"
     ");",
     NULL},
    {"S-P1c",
     "CREATE TABLE IF NOT EXISTS bindings (\n"
     "    name TEXT,\n"
     "    execution_id INTEGER,\n"
     "    kind TEXT,\n"
     "    value TEXT,\n"
     "    source_statement TEXT,\n"
     "    created_at TEXT DEFAULT (datetime('now')),\n"
     "    updated_at TEXT DEFAULT (datetime('now')),\n"
     "    attachment_path TEXT,\n"
     "    PRIMARY KEY (name, IFNULL(execution_id, -1))\n"
     ");",
     NULL},
    {"S-P1d",
     "CREATE TABLE IF NOT EXISTS agents (\n"
     "    name TEXT PRIMARY KEY,\n"
     "    scope TEXT,\n"
     "    memory TEXT,\n"
     "    created_at TEXT DEFAULT (datetime('now')),\n"
     "    updated_at TEXT DEFAULT (datetime('now'))\n"
     ");",
     NULL},
    {"S-P1e",
     "CREATE TABLE IF NOT EXISTS agent_segments (\n"
     "    id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
     "    agent_name TEXT REFERENCES agents(name),\n"
     "    segment_number INTEGER,\n"
     "    timestamp TEXT DEFAULT (datetime('now')),\n"
     "    prompt TEXT,\n"
     "    summary TEXT,\n"
     "    UNIQUE(agent_name, segment_number)\n"
     ");",
     NULL},
    {"S-P1f",
     "CREATE TABLE IF NOT EXISTS imports (\n"
     "    alias TEXT PRIMARY KEY,\n"
     "    source_url TEXT,\n"
     "    fetched_at TEXT,\n"
     "    inputs_schema TEXT,\n"
     "    outputs_schema TEXT\n"
     ");",
     NULL},
    {"S-P2",
     "WITH RECURSIVE scope_chain AS (\n"
     "  SELECT id, parent_id FROM execution WHERE id = 43\n"
     "  UNION ALL\n"
     "  SELECT e.id, e.parent_id\n"
     "  FROM execution e\n"
     "  JOIN scope_chain s ON e.id = s.parent_id\n"
     ")\n"
     "SELECT b.* FROM bindings b\n"
     "LEFT JOIN scope_chain s ON b.execution_id = s.id\n"
     "WHERE b.name = 'result'\n"
     "  AND (b.execution_id IN (SELECT id FROM scope_chain) OR b.execution_id IS NULL)\n"
     "ORDER BY\n"
     "  CASE WHEN b.execution_id IS NULL THEN 1 ELSE 0 END,\n"
     "  s.id DESC NULLS LAST\n"
     "LIMIT 1;",
     NULL},
    {"S-P3",
     "SELECT * FROM bindings\n"
     "WHERE name = 'result'\n"
     "  AND (execution_id = 43 OR execution_id = 42 OR execution_id IS NULL)\n"
     "ORDER BY execution_id DESC NULLS LAST\n"
     "LIMIT 1;",
     NULL},
    {"S-P5", NULL,
     "sqlite3 .prose/runs/20260116-143052-a7b3c9/state.db \"\n"
     "  INSERT INTO execution (statement_index, statement_text, status, started_at)\n"
     "  VALUES (3, 'session \\\"Research AI safety\\\"', 'executing', datetime('now'))\n"
     "\""},
    {"S-P6", NULL,
     "sqlite3 -json .prose/runs/20260116-143052-a7b3c9/state.db \"\n"
     "  SELECT value FROM bindings WHERE name = 'research'\n"
     "\""},
    {"S-P7", NULL,
     "sqlite3 .prose/runs/20260116-143052-a7b3c9/state.db \"\n"
     "  SELECT statement_text, status FROM execution\n"
     "  WHERE json_extract(metadata, '$.parallel_id') = 'p1'\n"
     "\""},
    {"S-P8a", NULL,
     "sqlite3 .prose/runs/20260116-143052-a7b3c9/state.db \"\n"
     "  INSERT OR REPLACE INTO bindings (name, execution_id, kind, value, source_statement, "
     "updated_at)\n"
     "  VALUES (\n"
     "    'research',\n"
     "    NULL,\n"
     "    'let',\n"
     "    'AI safety research covers alignment, robustness...',\n"
     "    'let research = session: researcher',\n"
     "    datetime('now')\n"
     "  )\n"
     "\""},
    {"S-P8b", NULL,
     "sqlite3 .prose/runs/20260116-143052-a7b3c9/state.db \"\n"
     "  INSERT OR REPLACE INTO bindings (name, execution_id, kind, value, source_statement, "
     "updated_at)\n"
     "  VALUES (\n"
     "    'result',\n"
     "    43,\n"
     "    'let',\n"
     "    'Processed chunk into 3 sub-parts...',\n"
     "    'let result = session \\\"Process chunk\\\"',\n"
     "    datetime('now')\n"
     "  )\n"
     "\""},
    {"S-P8c", NULL,
     "sqlite3 -json .prose/runs/20260116-143052-a7b3c9/state.db \"SELECT memory FROM agents WHERE "
     "name = 'captain'\""},
    {"S-P8c", NULL,
     "sqlite3 .prose/runs/20260116-143052-a7b3c9/state.db \"UPDATE agents SET memory = '...', "
     "updated_at = datetime('now') WHERE name = 'captain'\""},
    {"S-P8c", NULL,
     "sqlite3 .prose/runs/20260116-143052-a7b3c9/state.db \"INSERT INTO agent_segments "
     "(agent_name, segment_number, prompt, summary) VALUES ('captain', 3, '...', '...')\""},
    {"S-P9a",
     "INSERT INTO execution (statement_index, statement_text, status, metadata)\n"
     "VALUES (5, 'parallel:', 'executing', '{\"parallel_id\": \"p1\", \"strategy\": \"all\", "
     "\"branches\": [\"a\", \"b\", \"c\"]}');",
     NULL},
    {"S-P9b",
     "INSERT INTO execution (statement_index, statement_text, status, parent_id, metadata)\n"
     "VALUES (6, 'a = session \"Task A\"', 'executing', 5, '{\"parallel_id\": \"p1\", \"branch\": "
     "\"a\"}');",
     NULL},
    {"S-P9c",
     "UPDATE execution SET status = 'completed', completed_at = datetime('now')\n"
     "WHERE json_extract(metadata, '$.parallel_id') = 'p1' AND json_extract(metadata, '$.branch') "
     "= 'a';",
     NULL},
    {"S-P9d",
     "SELECT COUNT(*) as pending FROM execution\n"
     "WHERE json_extract(metadata, '$.parallel_id') = 'p1' AND status != 'completed';",
     NULL},
    {"S-P10a",
     "INSERT INTO execution (statement_index, statement_text, status, metadata)\n"
     "VALUES (10, 'loop until **analysis complete** (max: 5):', 'executing',\n"
     "  '{\"loop_id\": \"l1\", \"max_iterations\": 5, \"current_iteration\": 0, \"condition\": "
     "\"**analysis complete**\"}');",
     NULL},
    {"S-P10b",
     "UPDATE execution\n"
     "SET metadata = json_set(metadata, '$.current_iteration', 2),\n"
     "    updated_at = datetime('now')\n"
     "WHERE json_extract(metadata, '$.loop_id') = 'l1';",
     NULL},
    {"S-P11a",
     "UPDATE execution\n"
     "SET status = 'failed',\n"
     "    error_message = 'Connection timeout after 30s',\n"
     "    completed_at = datetime('now')\n"
     "WHERE id = 15;",
     NULL},
    {"S-P11b",
     "UPDATE execution\n"
     "SET metadata = json_set(metadata, '$.retry_attempt', 2, '$.max_retries', 3)\n"
     "WHERE id = 15;",
     NULL},
    {"S-P12",
     "INSERT INTO bindings (name, kind, value, attachment_path, source_statement)\n"
     "VALUES (\n"
     "  'full_report',\n"
     "  'let',\n"
     "  'Full analysis report (847KB) - see attachment',\n"
     "  'attachments/full_report.md',\n"
     "  'let full_report = session \"Generate comprehensive report\"'\n"
     ");",
     NULL},
    {"S-P13a",
     "SELECT statement_index, statement_text, status\n"
     "FROM execution\n"
     "WHERE status = 'executing'\n"
     "ORDER BY id DESC LIMIT 1;",
     NULL},
    {"S-P13b", "SELECT name, kind, value, attachment_path FROM bindings;", NULL},
    {"S-P13c", "SELECT name, memory FROM agents;", NULL},
    {"S-P13d",
     "SELECT json_extract(metadata, '$.branch') as branch, status\n"
     "FROM execution\n"
     "WHERE json_extract(metadata, '$.parallel_id') IS NOT NULL\n"
     "  AND parent_id = (SELECT id FROM execution WHERE status = 'executing' AND statement_text "
     "LIKE 'parallel:%');",
     NULL},
    {"S-P14a",
     "CREATE TABLE x_metrics (\n"
     "    execution_id INTEGER REFERENCES execution(id),\n"
     "    metric_name TEXT,\n"
     "    metric_value REAL,\n"
     "    recorded_at TEXT DEFAULT (datetime('now'))\n"
     ");",
     NULL},
    {"S-P14b", "ALTER TABLE bindings ADD COLUMN token_count INTEGER;", NULL},
    {"S-P14c", "CREATE INDEX idx_execution_status ON execution(status);", NULL},
};
