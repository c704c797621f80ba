-- pack core   version 6   database sessions.db
--
-- What every store keeps: one row per session, per turn, per call of a tool, and what was stored
-- beside the journals. docs/packs/core.md is the page for users. The columns of sessions down to
-- git_branch, those of turns down to cost_usd, and the indexes stand as the gvAgent design prints
-- them; those below are additions.
--
-- Kept by C code (index/pack/apply.c), so no handler may read or write them:
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
-- usage holds the same tokens by day (of the event, in UTC) and model (the event's, else what the
-- session's is by then): its sums over a session are the session's.
--
-- Turns. turn_id is unique within its session; turns.id, which must be unique in the store, is
-- session:turn_id. An event about a turn that names none means the newest open turn. A turn that
-- has ended stays as it ended, and its tokens are not added twice. A missing or taken sequence
-- becomes the next free one. A turn that ends without having begun gets a row that begins and ends
-- there, so that a second end is known for one. What may follow what stands in turn_edges; a status
-- that is not there is some producer's word for started. An append through the pack refuses what
-- does not follow; an event that is there all the same changes nothing.
--
-- Tools. A call is a row from its tool.called on, which is written before the tool runs; a result
-- belongs to the newest call of its call_id, and the first result stays. A result of a call that
-- nobody announced has a row too, without called_at; if its tool.called comes later, as logs of
-- parallel calls have it, it takes over that row. dangling are the calls without a result.
--
-- Status changes only as said here: session.created ("idle" by default), session.status_changed,
-- session.paused ("paused"), session.resumed ("idle"), session.ended ("ended"), and session.updated
-- when it names one, session.transition. Where a word stands in brackets, data.status says another.
-- The title is what an event says, else what the user said first, or after commands such as /clear:
-- annal_said() knows what agents add to that. A title that an event gives later replaces it.
-- session.pruned takes the rows of a session out of all tables; what it appends later begins anew.
--
-- The types with an underscore are those of older producers.
--
-- annal_count(x, ...) is the first of them that is a number and not below 0, as an integer; 0 when
-- none is. annal_increment(x, ...) is the first that is a number: it may take back what was counted.
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
    events             INTEGER NOT NULL DEFAULT 0,
    time_from          TEXT -- 'of the file': an importer found no time in the log
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
    seq           INTEGER, -- of the event that began it
    UNIQUE(session_id, sequence)
);

CREATE INDEX idx_turns_session ON turns(session_id);

CREATE VIEW turn_edges (from_status, to_status) AS VALUES
    ('pending', 'started'), ('pending', 'streaming'), ('pending', 'completed'),
    ('pending', 'failed'), ('pending', 'cancelled'),
    ('started', 'streaming'), ('started', 'completed'), ('started', 'failed'),
    ('started', 'cancelled'),
    ('streaming', 'completed'), ('streaming', 'failed'), ('streaming', 'cancelled');

CREATE TABLE tool_calls (
    session_id    TEXT NOT NULL,
    call_id       TEXT NOT NULL,    -- '#' and the seq where the event names none
    seq           INTEGER NOT NULL, -- of tool.called; of the result where there was none
    tool          TEXT,
    turn_id       TEXT,
    status        TEXT NOT NULL,    -- called, returned, failed
    called_at     TEXT,
    returned_at   TEXT,
    result_seq    INTEGER,
    duration_ms   INTEGER,
    exit_code     INTEGER,
    output_bytes  INTEGER,
    output_sha256 TEXT,             -- of the artifact that holds the output
    PRIMARY KEY (session_id, call_id, seq)
) WITHOUT ROWID;

CREATE TABLE usage (
    session_id    TEXT NOT NULL,
    day           TEXT NOT NULL,    -- 2026-03-02
    model         TEXT NOT NULL,    -- '' where nobody said
    requests      INTEGER NOT NULL, -- events that carried tokens or a cost
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cost_microusd INTEGER NOT NULL,
    PRIMARY KEY (session_id, day, model)
) WITHOUT ROWID;

CREATE VIEW usage_by_day AS
    SELECT day, count(DISTINCT session_id) AS sessions, sum(requests) AS requests,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cached_input_tokens) AS cached_input_tokens,
           sum(cache_write_tokens) AS cache_write_tokens, sum(cost_microusd) / 1e6 AS cost_usd
    FROM usage GROUP BY day;

CREATE VIEW usage_by_model AS
    SELECT model, count(DISTINCT session_id) AS sessions, sum(requests) AS requests,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cached_input_tokens) AS cached_input_tokens,
           sum(cache_write_tokens) AS cache_write_tokens, sum(cost_microusd) / 1e6 AS cost_usd
    FROM usage GROUP BY model;

CREATE VIEW usage_by_session AS
    SELECT session_id, min(day) AS first_day, max(day) AS last_day, sum(requests) AS requests,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cached_input_tokens) AS cached_input_tokens,
           sum(cache_write_tokens) AS cache_write_tokens, sum(cost_microusd) / 1e6 AS cost_usd
    FROM usage GROUP BY session_id;

-- What a call took: as its result says, else from the times of the two events.
CREATE VIEW tool_durations AS
    SELECT session_id, call_id, seq, tool, status, called_at, returned_at,
           COALESCE(duration_ms,
                    max(0, CAST(round((julianday(returned_at) - julianday(called_at)) * 86400000)
                                AS INTEGER))) AS duration_ms
    FROM tool_calls WHERE status <> 'called';

-- Percentiles by nearest rank, over the calls whose duration is known.
CREATE VIEW tool_stats AS
    SELECT tool, count(*) AS calls, sum(status = 'returned') AS returned,
           sum(status = 'failed') AS failed, sum(status = 'called') AS dangling,
           round(1.0 * sum(status = 'failed') / NULLIF(sum(status <> 'called'), 0), 4)
               AS failure_rate,
           max(CASE WHEN place = (known + 1) / 2 THEN duration_ms END) AS p50_ms,
           max(CASE WHEN place = (known * 95 + 99) / 100 THEN duration_ms END) AS p95_ms,
           max(duration_ms) AS max_ms, sum(duration_ms) AS total_ms
    FROM (SELECT c.tool, c.status, d.duration_ms,
                 row_number() OVER (PARTITION BY c.tool
                                    ORDER BY d.duration_ms IS NULL, d.duration_ms) AS place,
                 count(d.duration_ms) OVER (PARTITION BY c.tool) AS known
          FROM tool_calls c LEFT JOIN tool_durations d USING (session_id, call_id, seq))
    GROUP BY tool;

CREATE VIEW errors_by_day AS
    SELECT day, sum(calls) AS tool_calls, sum(failed_calls) AS failed_tool_calls,
           round(1.0 * sum(failed_calls) / NULLIF(sum(calls), 0), 4) AS tool_failure_rate,
           sum(turns) AS turns, sum(failed_turns) AS failed_turns,
           round(1.0 * sum(failed_turns) / NULLIF(sum(turns), 0), 4) AS turn_failure_rate
    FROM (SELECT substr(COALESCE(called_at, returned_at), 1, 10) AS day, 1 AS calls,
                 status = 'failed' AS failed_calls, 0 AS turns, 0 AS failed_turns
          FROM tool_calls
          UNION ALL
          SELECT substr(created_at, 1, 10), 0, 0, 1, status = 'failed' FROM turns)
    GROUP BY day;

CREATE VIEW dangling AS
    SELECT session_id, call_id, seq, tool, turn_id, called_at
    FROM tool_calls WHERE status = 'called';

CREATE TABLE responses (
    session_id       TEXT NOT NULL,
    ref              TEXT NOT NULL, -- "$1", "$claude"
    seq              INTEGER NOT NULL,
    content_ref      TEXT,
    stored_at        TEXT NOT NULL,
    accesses         INTEGER NOT NULL DEFAULT 0,
    last_accessed_at TEXT,
    PRIMARY KEY (session_id, ref)
) WITHOUT ROWID;

CREATE TABLE artifacts (
    session_id  TEXT NOT NULL,
    path        TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    sha256      TEXT,
    bytes       INTEGER,
    media_type  TEXT,
    stored_at   TEXT NOT NULL,
    PRIMARY KEY (session_id, path)
) WITHOUT ROWID;

CREATE INDEX idx_artifacts_sha256 ON artifacts(sha256);

-- artifact tool.returned, tool.failed, tool_result, tool_error   output   over 102400

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
    title = COALESCE(annal_title($title), title),
    time_from = $time
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
    title = COALESCE(annal_title($set::title), annal_title($title), title),
    time_from = CASE WHEN $set::created_at IS NULL THEN time_from END
WHERE id = :session;

-- on session.status_changed
UPDATE sessions SET status = COALESCE($to, status) WHERE id = :session;

-- on session.paused, session_pause
UPDATE sessions SET status = COALESCE($status, 'paused') WHERE id = :session;

-- on session.resumed, session_resume
UPDATE sessions SET status = COALESCE($status, 'idle'), ended_at = NULL WHERE id = :session;

-- on session.ended, session_end
UPDATE sessions SET status = COALESCE($status, 'ended'), ended_at = :ts WHERE id = :session;

-- on session.transition
UPDATE sessions SET
    status = COALESCE($to, status),
    ended_at = COALESCE(annal_time($ended_at), ended_at)
WHERE id = :session;

-- on session.pruned
DELETE FROM tool_calls WHERE session_id = :session;
DELETE FROM usage WHERE session_id = :session;
DELETE FROM responses WHERE session_id = :session;
DELETE FROM artifacts WHERE session_id = :session;
DELETE FROM turns WHERE session_id = :session;
DELETE FROM sessions WHERE id = :session;

-- on turn.started, turn_start   guarded "the turn has begun already"
INSERT INTO turns (id, session_id, sequence, status, created_at, turn_id, seq)
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
        $turn_id,
        :seq)
ON CONFLICT (id) DO UPDATE SET status = excluded.status
WHERE completed_at IS NULL
  AND EXISTS (SELECT 1 FROM turn_edges
              WHERE from_status = turns.status AND to_status = excluded.status);
UPDATE sessions SET total_turns = total_turns + 1
WHERE id = :session
  AND EXISTS (SELECT 1 FROM turns
              WHERE id = :session || ':' || COALESCE($turn_id, '#' || :seq) AND seq = :seq);

-- on turn.streaming   guarded "the turn is not one that has begun and waits for an answer"
UPDATE turns SET status = 'streaming'
WHERE completed_at IS NULL AND status <> 'streaming'
  AND id = COALESCE(:session || ':' || $turn_id,
                    (SELECT id FROM turns WHERE session_id = :session AND completed_at IS NULL
                     ORDER BY sequence DESC LIMIT 1));

-- on turn.completed, turn.failed, turn.cancelled, turn_complete, turn_error   guarded "the turn has ended already"
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM turns
                           WHERE id = :session || ':' || $turn_id AND completed_at IS NOT NULL);
UPDATE sessions SET
    input_tokens = input_tokens + annal_count($input_tokens),
    output_tokens = output_tokens + annal_count($output_tokens),
    cached_input_tokens = cached_input_tokens + annal_count($cached_input_tokens),
    cache_write_tokens = cache_write_tokens + annal_count($cache_write_tokens),
    total_tokens = total_tokens + annal_count($input_tokens) + annal_count($output_tokens),
    cost_microusd = cost_microusd + annal_cost($cost_microusd, $cost_usd),
    total_cost_usd = (cost_microusd + annal_cost($cost_microusd, $cost_usd)) / 1e6
WHERE id = :session
  AND COALESCE($input_tokens, $output_tokens, $cached_input_tokens, $cache_write_tokens,
               $cost_microusd, $cost_usd) IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM turns
                  WHERE id = :session || ':' || $turn_id AND completed_at IS NOT NULL);
INSERT INTO usage (session_id, day, model, requests, input_tokens, output_tokens,
                   cached_input_tokens, cache_write_tokens, cost_microusd)
SELECT :session, substr(:ts, 1, 10),
       COALESCE($model, (SELECT model FROM sessions WHERE id = :session), ''), 1,
       annal_count($input_tokens), annal_count($output_tokens),
       annal_count($cached_input_tokens), annal_count($cache_write_tokens),
       annal_cost($cost_microusd, $cost_usd)
WHERE COALESCE($input_tokens, $output_tokens, $cached_input_tokens, $cache_write_tokens,
               $cost_microusd, $cost_usd) IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM turns
                  WHERE id = :session || ':' || $turn_id AND completed_at IS NOT NULL)
ON CONFLICT (session_id, day, model) DO UPDATE SET
    requests = requests + 1,
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    cost_microusd = cost_microusd + excluded.cost_microusd;
INSERT INTO turns (id, session_id, sequence, status, created_at, turn_id, seq)
SELECT :session || ':' || $turn_id, :session,
       (SELECT COALESCE(MAX(sequence), 0) + 1 FROM turns WHERE session_id = :session),
       'started', :ts, $turn_id, :seq
WHERE $turn_id IS NOT NULL
ON CONFLICT (id) DO NOTHING;
UPDATE sessions SET total_turns = total_turns + 1
WHERE id = :session
  AND EXISTS (SELECT 1 FROM turns WHERE id = :session || ':' || $turn_id AND seq = :seq);
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
    input_tokens = input_tokens + annal_increment($input_tokens, $inputTokens),
    output_tokens = output_tokens + annal_increment($output_tokens, $outputTokens),
    cached_input_tokens = cached_input_tokens + annal_increment($cached_input_tokens),
    cache_write_tokens = cache_write_tokens + annal_increment($cache_write_tokens),
    total_tokens = total_tokens + annal_increment($input_tokens, $inputTokens)
                                + annal_increment($output_tokens, $outputTokens),
    cost_microusd = cost_microusd + annal_cost($cost_microusd, $cost_usd),
    total_cost_usd = (cost_microusd + annal_cost($cost_microusd, $cost_usd)) / 1e6,
    model = CASE WHEN model = '' THEN COALESCE($model, $model_id, $modelId, '') ELSE model END
WHERE id = :session;
UPDATE turns SET
    input_tokens = COALESCE(input_tokens, 0) + annal_increment($input_tokens, $inputTokens),
    output_tokens = COALESCE(output_tokens, 0) + annal_increment($output_tokens, $outputTokens),
    cached_input_tokens = COALESCE(cached_input_tokens, 0) + annal_increment($cached_input_tokens),
    cache_write_tokens = COALESCE(cache_write_tokens, 0) + annal_increment($cache_write_tokens),
    cost_microusd = COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd),
    cost_usd = (COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd)) / 1e6
WHERE id = :session || ':' || $turn_id;

INSERT INTO usage (session_id, day, model, requests, input_tokens, output_tokens,
                   cached_input_tokens, cache_write_tokens, cost_microusd)
SELECT :session, substr(:ts, 1, 10),
       COALESCE($model, $model_id, $modelId,
                (SELECT model FROM sessions WHERE id = :session), ''), 1,
       annal_increment($input_tokens, $inputTokens),
       annal_increment($output_tokens, $outputTokens),
       annal_increment($cached_input_tokens), annal_increment($cache_write_tokens),
       annal_cost($cost_microusd, $cost_usd)
WHERE COALESCE($input_tokens, $inputTokens, $output_tokens, $outputTokens,
               $cached_input_tokens, $cache_write_tokens, $cost_microusd, $cost_usd) IS NOT NULL
ON CONFLICT (session_id, day, model) DO UPDATE SET
    requests = requests + 1,
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cached_input_tokens = cached_input_tokens + excluded.cached_input_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    cost_microusd = cost_microusd + excluded.cost_microusd;

-- on message.added
UPDATE sessions SET title = COALESCE(annal_said(:data), title)
WHERE id = :session AND (title IS NULL OR title GLOB '/*' AND title NOT GLOB '/*[ /]*');

-- on tool.called, tool_call
UPDATE tool_calls SET
    seq = :seq, tool = $tool, turn_id = COALESCE($turn_id, turn_id), called_at = :ts
WHERE session_id = :session AND call_id = $call_id AND called_at IS NULL;
INSERT INTO tool_calls (session_id, call_id, seq, tool, turn_id, status, called_at)
VALUES (:session, COALESCE($call_id, '#' || :seq), :seq, $tool, $turn_id, 'called', :ts)
ON CONFLICT (session_id, call_id, seq) DO NOTHING;

-- on tool.returned, tool.failed, tool_result, tool_error
INSERT INTO tool_calls (session_id, call_id, seq, turn_id, status, returned_at, result_seq,
                        duration_ms, exit_code, output_bytes, output_sha256)
VALUES (:session, COALESCE($call_id, '#' || :seq),
        COALESCE((SELECT MAX(seq) FROM tool_calls
                  WHERE session_id = :session AND call_id = $call_id), :seq),
        $turn_id,
        CASE WHEN :type IN ('tool.failed', 'tool_error') OR $success = 0 THEN 'failed'
             ELSE 'returned' END,
        :ts, :seq, $duration_ms, $exit_code, COALESCE($output_bytes, $output_ref::bytes),
        $output_ref::sha256)
ON CONFLICT (session_id, call_id, seq) DO UPDATE SET
    status = excluded.status, returned_at = excluded.returned_at,
    result_seq = excluded.result_seq, duration_ms = excluded.duration_ms,
    exit_code = excluded.exit_code, output_bytes = excluded.output_bytes,
    output_sha256 = excluded.output_sha256
WHERE status = 'called';

-- on response.stored, response_stored
INSERT INTO responses (session_id, ref, seq, content_ref, stored_at)
VALUES (:session, COALESCE($ref, '#' || :seq), :seq, $content_ref, :ts)
ON CONFLICT (session_id, ref) DO UPDATE SET
    seq = excluded.seq, content_ref = excluded.content_ref, stored_at = excluded.stored_at;

-- on response.accessed, response_access
UPDATE responses SET accesses = accesses + 1, last_accessed_at = :ts
WHERE session_id = :session AND ref = $ref;

-- on artifact.stored
INSERT INTO artifacts (session_id, path, seq, sha256, bytes, media_type, stored_at)
VALUES (:session, COALESCE($path, 'artifacts/' || :session || '/' || $sha256 || '.zst',
                           '#' || :seq),
        :seq, $sha256, $bytes, $media_type, :ts)
ON CONFLICT (session_id, path) DO UPDATE SET
    seq = excluded.seq, sha256 = excluded.sha256, bytes = excluded.bytes,
    media_type = excluded.media_type, stored_at = excluded.stored_at;
