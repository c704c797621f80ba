-- pack prose-user   version 1   database agents.db   in prose-user   sessions pagent_user   writable

-- Agents of a user, which survive projects: prose-agents.sql for another place and session.
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

-- on agent.memory_set   guarded "the agent has no name, or another scope than this database (user)"
INSERT INTO agents (name, scope, memory, created_at, updated_at)
SELECT $name, 'user', $memory, replace(substr(:ts, 1, 19), 'T', ' '),
       replace(substr(:ts, 1, 19), 'T', ' ')
WHERE $name <> '' AND COALESCE($scope, 'user') = 'user'
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
SELECT $agent_name, 'user', replace(substr(:ts, 1, 19), 'T', ' '),
       replace(substr(:ts, 1, 19), 'T', ' ')
WHERE EXISTS (SELECT 1 FROM agent_segments WHERE agent_name = $agent_name)
ON CONFLICT (name) DO NOTHING;
