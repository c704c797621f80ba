-- pack core   version 1   database sessions.db
--
-- What every store keeps: one row per session, one per turn. The columns down to git_branch, and
-- the indexes, stand as the gvAgent design prints them; those below are additions.
--
-- Kept by C code (index/apply.c), so no handler may read or write them:
--   the row of a session is made by its first event, whatever its type: agent_id, provider and
--   model are '' and created_at is that event's ts until session.created says more;
--   events counts the events; updated_at is the latest ts of all of them, last_activity_at the
--   latest of all but session.updated.
--
-- Tokens. input_tokens includes what was read from or written to a cache (cached_input_tokens and
-- cache_write_tokens say how much of it), total_tokens = input + output. Two kinds of events carry
-- tokens, and both add to what is there, so a producer names each token in one event only:
--   agent.turn.usage   an increment, as often as the producer likes; with turn_id it also adds to
--                      that turn. Importers use this one, and give turn.completed no tokens.
--   turn.completed, turn.failed, turn.cancelled   what the turn used, for producers that know it
--                      then.
-- Money is added up in millionths of a dollar (cost_microusd, or cost_usd rounded to them), so that
-- the sum does not depend on the order; total_cost_usd and turns.cost_usd are shown from that.
--
-- Turns. turn_id is unique within its session; turns.id, which must be unique in the store, is
-- session:turn_id. An event about a turn that names none means the newest open turn. A turn that
-- has ended stays as it ended, and its tokens are not added twice. A missing or taken sequence
-- becomes the next free one.
--
-- Status changes only as said here: session.created ("idle" by default), session.status_changed,
-- session.paused ("paused"), session.resumed ("idle"), session.ended ("ended"), and session.updated
-- when it names one. Where a word stands in brackets, data.status says another.
--
-- annal_count(x, ...) is the first of them that is not NULL, as an integer; 0 when all are.
-- annal_cost(microusd, usd) is the cost in millionths of a dollar, 0 when neither is given.

CREATE TABLE sessions (
    id                 TEXT PRIMARY KEY,
    flow_id            TEXT,
    agent_id           TEXT NOT NULL,
    provider           TEXT NOT NULL,
    model              TEXT NOT NULL,
    status             TEXT NOT NULL DEFAULT 'idle',
    created_at         TEXT NOT NULL,
    updated_at         TEXT NOT NULL,
    last_activity_at   TEXT NOT NULL,
    total_turns        INTEGER DEFAULT 0,
    total_tokens       INTEGER DEFAULT 0,
    total_cost_usd     REAL DEFAULT 0,
    working_directory  TEXT,
    git_branch         TEXT,
    parent_session_id  TEXT,
    title              TEXT,
    ended_at           TEXT,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cached_input_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    cost_microusd      INTEGER NOT NULL DEFAULT 0,
    events             INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX idx_sessions_status ON sessions(status);
CREATE INDEX idx_sessions_flow ON sessions(flow_id);
CREATE INDEX idx_sessions_activity ON sessions(last_activity_at);

CREATE TABLE turns (
    id            TEXT PRIMARY KEY,
    session_id    TEXT NOT NULL REFERENCES sessions(id),
    sequence      INTEGER NOT NULL,
    status        TEXT NOT NULL,
    created_at    TEXT NOT NULL,
    completed_at  TEXT,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    cost_usd      REAL,
    turn_id       TEXT,
    cached_input_tokens INTEGER,
    cache_write_tokens INTEGER,
    cost_microusd INTEGER,
    error         TEXT,
    timing        TEXT,
    UNIQUE(session_id, sequence)
);

CREATE INDEX idx_turns_session ON turns(session_id);

-- on session.created, session_start
UPDATE sessions SET
    flow_id = COALESCE($flow_id, flow_id),
    agent_id = COALESCE($agent_id, agent_id),
    provider = COALESCE($provider, provider),
    model = COALESCE($model, model),
    status = COALESCE($status, status),
    created_at = COALESCE(annal_time($created_at), :ts),
    working_directory = COALESCE($working_directory, working_directory),
    git_branch = COALESCE($git_branch, git_branch),
    parent_session_id = COALESCE($parent_session_id, parent_session_id),
    title = COALESCE($title, title)
WHERE id = :session;

-- on session.updated
UPDATE sessions SET
    flow_id = COALESCE($set::flow_id, $flow_id, flow_id),
    agent_id = COALESCE($set::agent_id, $agent_id, agent_id),
    provider = COALESCE($set::provider, $provider, provider),
    model = COALESCE($set::model, $model, model),
    status = COALESCE($set::status, $status, status),
    created_at = COALESCE(annal_time($set::created_at), created_at),
    working_directory = COALESCE($set::working_directory, $working_directory, working_directory),
    git_branch = COALESCE($set::git_branch, $git_branch, git_branch),
    parent_session_id = COALESCE($set::parent_session_id, $parent_session_id, parent_session_id),
    title = COALESCE($set::title, $title, title)
WHERE id = :session;

-- on session.status_changed
UPDATE sessions SET status = COALESCE($to, status) WHERE id = :session;

-- on session.paused, session_pause
UPDATE sessions SET status = COALESCE($status, 'paused') WHERE id = :session;

-- on session.resumed, session_resume
UPDATE sessions SET status = COALESCE($status, 'idle'), ended_at = NULL WHERE id = :session;

-- on session.ended, session_end
UPDATE sessions SET status = COALESCE($status, 'ended'), ended_at = :ts WHERE id = :session;

-- on turn.started, turn_start
INSERT INTO turns (id, session_id, sequence, status, created_at, turn_id)
VALUES (:session || ':' || COALESCE($turn_id, '#' || :seq),
        :session,
        CASE WHEN typeof($sequence) = 'integer'
                  AND NOT EXISTS (SELECT 1 FROM turns
                                  WHERE session_id = :session AND sequence = $sequence)
             THEN $sequence
             ELSE (SELECT COALESCE(MAX(sequence), 0) + 1 FROM turns WHERE session_id = :session)
        END,
        COALESCE($status, 'started'),
        COALESCE(annal_time($created_at), :ts),
        $turn_id)
ON CONFLICT (id) DO NOTHING;
UPDATE sessions SET total_turns = total_turns + changes() WHERE id = :session;

-- on turn.streaming
UPDATE turns SET status = 'streaming'
WHERE completed_at IS NULL
  AND id = COALESCE(:session || ':' || $turn_id,
                    (SELECT id FROM turns WHERE session_id = :session AND completed_at IS NULL
                     ORDER BY sequence DESC LIMIT 1));

-- on turn.completed, turn.failed, turn.cancelled, turn_complete, turn_error
UPDATE sessions SET
    input_tokens = input_tokens + annal_count($input_tokens),
    output_tokens = output_tokens + annal_count($output_tokens),
    cached_input_tokens = cached_input_tokens + annal_count($cached_input_tokens),
    cache_write_tokens = cache_write_tokens + annal_count($cache_write_tokens),
    total_tokens = total_tokens + annal_count($input_tokens) + annal_count($output_tokens),
    cost_microusd = cost_microusd + annal_cost($cost_microusd, $cost_usd),
    total_cost_usd = (cost_microusd + annal_cost($cost_microusd, $cost_usd)) / 1e6
WHERE id = :session
  AND NOT EXISTS (SELECT 1 FROM turns
                  WHERE id = :session || ':' || $turn_id AND completed_at IS NOT NULL);
UPDATE turns SET
    status = CASE :type WHEN 'turn.failed' THEN 'failed' WHEN 'turn_error' THEN 'failed'
                        WHEN 'turn.cancelled' THEN 'cancelled' ELSE 'completed' END,
    completed_at = :ts,
    input_tokens = CASE WHEN $input_tokens IS NULL THEN input_tokens
                        ELSE COALESCE(input_tokens, 0) + annal_count($input_tokens) END,
    output_tokens = CASE WHEN $output_tokens IS NULL THEN output_tokens
                         ELSE COALESCE(output_tokens, 0) + annal_count($output_tokens) END,
    cached_input_tokens =
        CASE WHEN $cached_input_tokens IS NULL THEN cached_input_tokens
             ELSE COALESCE(cached_input_tokens, 0) + annal_count($cached_input_tokens) END,
    cache_write_tokens =
        CASE WHEN $cache_write_tokens IS NULL THEN cache_write_tokens
             ELSE COALESCE(cache_write_tokens, 0) + annal_count($cache_write_tokens) END,
    cost_microusd =
        CASE WHEN $cost_microusd IS NULL AND $cost_usd IS NULL THEN cost_microusd
             ELSE COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd) END,
    cost_usd =
        CASE WHEN $cost_microusd IS NULL AND $cost_usd IS NULL THEN cost_usd
             ELSE (COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd)) / 1e6 END,
    error = COALESCE($error, error),
    timing = COALESCE($timing, timing)
WHERE completed_at IS NULL
  AND id = COALESCE(:session || ':' || $turn_id,
                    (SELECT id FROM turns WHERE session_id = :session AND completed_at IS NULL
                     ORDER BY sequence DESC LIMIT 1));

-- on agent.turn.usage
UPDATE sessions SET
    input_tokens = input_tokens + annal_count($input_tokens, $inputTokens),
    output_tokens = output_tokens + annal_count($output_tokens, $outputTokens),
    cached_input_tokens = cached_input_tokens + annal_count($cached_input_tokens),
    cache_write_tokens = cache_write_tokens + annal_count($cache_write_tokens),
    total_tokens = total_tokens + annal_count($input_tokens, $inputTokens)
                                + annal_count($output_tokens, $outputTokens),
    cost_microusd = cost_microusd + annal_cost($cost_microusd, $cost_usd),
    total_cost_usd = (cost_microusd + annal_cost($cost_microusd, $cost_usd)) / 1e6,
    model = CASE WHEN model = '' THEN COALESCE($model, $model_id, $modelId, '') ELSE model END
WHERE id = :session;
UPDATE turns SET
    input_tokens = COALESCE(input_tokens, 0) + annal_count($input_tokens, $inputTokens),
    output_tokens = COALESCE(output_tokens, 0) + annal_count($output_tokens, $outputTokens),
    cached_input_tokens = COALESCE(cached_input_tokens, 0) + annal_count($cached_input_tokens),
    cache_write_tokens = COALESCE(cache_write_tokens, 0) + annal_count($cache_write_tokens),
    cost_microusd = COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd),
    cost_usd = (COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd)) / 1e6
WHERE id = :session || ':' || $turn_id;
