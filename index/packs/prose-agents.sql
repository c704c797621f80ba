-- pack prose-agents   version 1   database agents.db   in prose   sessions pagent_project   writable

-- Agents of a project, which survive its runs: their own file, with these two tables alone.
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

-- on agent.memory_set   guarded "the agent has no name, or another scope than this database (project)"
INSERT INTO agents (name, scope, memory, created_at, updated_at)
SELECT $name, 'project', $memory, replace(substr(:ts, 1, 19), 'T', ' '),
       replace(substr(:ts, 1, 19), 'T', ' ')
WHERE $name <> '' AND COALESCE($scope, 'project') = 'project'
ON CONFLICT (name) DO UPDATE SET memory = excluded.memory, updated_at = excluded.updated_at;

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
SELECT $agent_name, 'project', replace(substr(:ts, 1, 19), 'T', ' '),
       replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM agent_segments WHERE agent_name = $agent_name)
ON CONFLICT (name) DO NOTHING;
