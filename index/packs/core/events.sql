-- SPDX-License-Identifier: Apache-2.0

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
    title_from = CASE WHEN annal_title($title) IS NULL THEN title_from END,
    time_from = $time
WHERE id = :session;
INSERT INTO session_directories (session_id, seq, timestamp, directory)
SELECT :session, :seq, :ts, COALESCE(NULLIF(rtrim($working_directory, '/'), ''), '/')
WHERE $working_directory GLOB '?*';
INSERT INTO session_sources (session_id, seq, source_host, source_path)
SELECT :session, :seq, $source_host, $source_path
WHERE COALESCE($source_host, $source_path) GLOB '?*';
INSERT OR IGNORE INTO record_origins
SELECT :session, CASE $source::kind WHEN 'otel-logs' THEN 'telemetry ' ELSE 'log ' END || :session
WHERE $source::kind IN ('claude-code', 'codex', 'gemini-cli', 'otel-logs', 'pi');
INSERT OR IGNORE INTO record_origins SELECT :session, value FROM json_each($source_keys);

-- on telemetry.superseded
DELETE FROM tool_calls WHERE session_id = :session;
DELETE FROM usage_events WHERE session_id = :session;
DELETE FROM usage WHERE session_id = :session;
UPDATE sessions SET total_tokens = NULL, total_cost_usd = NULL, cost_microusd = NULL, input_tokens = NULL,
    output_tokens = NULL, cached_input_tokens = NULL, cache_write_tokens = NULL
WHERE id = :session;
INSERT OR IGNORE INTO record_origins VALUES (:session, 'log ' || :session);

-- on source.deleted, source.shrank, source.replaced, source.returned
INSERT INTO source_events (session_id, seq, what, path, kind, generation, bytes_before, bytes_after,
                           noticed_at)
VALUES (:session, :seq, substr(:type, 8), $path, $kind, $generation, $bytes_before, $bytes_after,
        COALESCE(annal_time($noticed_at), :ts));

-- on import.recovered
INSERT INTO log_recoveries (session_id, seq, lines, layouts)
VALUES (:session, :seq, COALESCE($lines, 0), COALESCE($layouts, 0));

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
    title_from = CASE WHEN COALESCE(annal_title($set::title), annal_title($title)) IS NULL
                      THEN title_from END,
    time_from = CASE WHEN $set::created_at IS NULL THEN time_from END
WHERE id = :session;
INSERT INTO session_directories (session_id, seq, timestamp, directory)
SELECT :session, :seq, :ts,
       COALESCE(NULLIF(rtrim(COALESCE($set::working_directory, $working_directory), '/'), ''), '/')
WHERE COALESCE($set::working_directory, $working_directory) GLOB '?*';
INSERT INTO session_sources (session_id, seq, source_host, source_path)
SELECT :session, :seq, $source_host, $source_path
WHERE COALESCE($source_host, $source_path) GLOB '?*';
INSERT OR IGNORE INTO record_origins SELECT :session, value FROM json_each($source_keys);

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

-- on price.set
INSERT INTO price_settings (session_id, model, since, tier, above, input, output, cache_read,
                            cache_write, cache_write_1h, web_search, source)
VALUES (:session, $model, COALESCE($since, ''), COALESCE($tier, ''), annal_count($above), $input,
        $output, $cache_read, $cache_write, $cache_write_1h, $web_search, $source)
ON CONFLICT (session_id, model, since, tier, above) DO UPDATE SET
    input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
    cache_write = excluded.cache_write, cache_write_1h = excluded.cache_write_1h,
    web_search = excluded.web_search, source = excluded.source;

-- on session.pruned
DELETE FROM tool_calls WHERE session_id = :session;
DELETE FROM usage_events WHERE session_id = :session;
DELETE FROM session_directories WHERE session_id = :session;
DELETE FROM session_sources WHERE session_id = :session;
DELETE FROM source_events WHERE session_id = :session;
DELETE FROM log_recoveries WHERE session_id = :session;
DELETE FROM usage WHERE session_id = :session;
DELETE FROM record_origins WHERE session_id = :session;
DELETE FROM price_settings WHERE session_id = :session;
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

-- on turn.streaming   guarded "the turn has not begun, or does not wait for an answer"
UPDATE turns SET status = 'streaming'
WHERE completed_at IS NULL AND status <> 'streaming' AND live_status IS NULL
  AND id = COALESCE(:session || ':' || $turn_id,
                    (SELECT id FROM turns WHERE session_id = :session AND completed_at IS NULL AND live_status IS NULL
                     ORDER BY sequence DESC LIMIT 1));

-- The tokens and the cost of a turn, before its end is recorded below.
-- on turn.completed, turn.failed, turn.cancelled, turn_complete, turn_error   when $input_tokens, $output_tokens, $cached_input_tokens, $cache_write_tokens, $cost_microusd, $cost_usd
UPDATE sessions SET
    input_tokens = CASE WHEN $input_tokens IS NULL THEN input_tokens
        ELSE COALESCE(input_tokens, 0) + annal_count($input_tokens) END,
    output_tokens = CASE WHEN $output_tokens IS NULL THEN output_tokens
        ELSE COALESCE(output_tokens, 0) + annal_count($output_tokens) END,
    cached_input_tokens = CASE WHEN $cached_input_tokens IS NULL THEN cached_input_tokens
        ELSE COALESCE(cached_input_tokens, 0) + annal_count($cached_input_tokens) END,
    cache_write_tokens = CASE WHEN $cache_write_tokens IS NULL THEN cache_write_tokens
        ELSE COALESCE(cache_write_tokens, 0) + annal_count($cache_write_tokens) END,
    total_tokens = CASE WHEN COALESCE($input_tokens, $output_tokens) IS NULL THEN total_tokens
        ELSE COALESCE(total_tokens, 0) + annal_count($input_tokens) + annal_count($output_tokens) END,
    cost_microusd =
        CASE WHEN COALESCE($cost_microusd, $cost_usd) IS NULL THEN cost_microusd
             ELSE COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd) END,
    total_cost_usd =
        CASE WHEN COALESCE($cost_microusd, $cost_usd) IS NULL THEN total_cost_usd
             ELSE (COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd)) / 1e6 END
WHERE id = :session
  AND NOT EXISTS (SELECT 1 FROM turns
                  WHERE id = :session || ':' || $turn_id AND completed_at IS NOT NULL);
INSERT INTO usage_events (session_id, seq, timestamp, model, tier, prompt_over, requests, input_tokens,
                          output_tokens, cached_input_tokens, cache_write_tokens,
                          cache_write_1h_tokens, web_searches, cost_microusd)
SELECT :session, :seq, :ts,
       COALESCE($model, (SELECT model FROM sessions WHERE id = :session), ''),
       COALESCE($tier, ''),
       annal_prompt_over($prompt_tokens, $input_tokens),
       1,
       CASE WHEN $input_tokens IS NOT NULL THEN annal_count($input_tokens) END,
       CASE WHEN $output_tokens IS NOT NULL THEN annal_count($output_tokens) END,
       CASE WHEN $cached_input_tokens IS NOT NULL THEN annal_count($cached_input_tokens) END,
       CASE WHEN $cache_write_tokens IS NOT NULL THEN annal_count($cache_write_tokens) END,
       CASE WHEN $cache_write_1h_tokens IS NOT NULL THEN annal_count($cache_write_1h_tokens) END,
       CASE WHEN $web_searches IS NOT NULL THEN annal_count($web_searches) END,
       CASE WHEN COALESCE($cost_microusd, $cost_usd) IS NOT NULL
            THEN annal_cost($cost_microusd, $cost_usd) END
WHERE NOT EXISTS (SELECT 1 FROM turns
                  WHERE id = :session || ':' || $turn_id AND completed_at IS NOT NULL);

-- on turn.completed, turn.failed, turn.cancelled, turn_complete, turn_error   when $turn_id
INSERT INTO turns (id, session_id, sequence, status, created_at, turn_id, seq)
VALUES (:session || ':' || $turn_id, :session,
        (SELECT COALESCE(MAX(sequence), 0) + 1 FROM turns WHERE session_id = :session),
        'started', :ts, $turn_id, :seq)
ON CONFLICT (id) DO NOTHING;
UPDATE sessions SET total_turns = total_turns + 1
WHERE id = :session
  AND EXISTS (SELECT 1 FROM turns WHERE id = :session || ':' || $turn_id AND seq = :seq);

-- on turn.completed, turn.failed, turn.cancelled, turn_complete, turn_error   guarded "the turn has ended already"
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM turns
                           WHERE id = :session || ':' || $turn_id AND completed_at IS NOT NULL);
UPDATE turns SET
    status = CASE WHEN live_status IS NOT NULL THEN status
                  WHEN :type IN ('turn.failed', 'turn_error') THEN 'failed'
                  WHEN :type = 'turn.cancelled' THEN 'cancelled' ELSE 'completed' END,
    live_status = CASE WHEN live_status IS NULL THEN NULL
                       WHEN :type IN ('turn.failed', 'turn_error') THEN 'failed'
                       WHEN :type = 'turn.cancelled' THEN 'cancelled' ELSE 'completed' END,
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
                    (SELECT id FROM turns WHERE session_id = :session AND completed_at IS NULL AND live_status IS NULL
                     ORDER BY sequence DESC LIMIT 1));

-- on turn.rolled_back, turn.abandoned
UPDATE turns SET
    live_status = COALESCE(live_status, status),
    status = CASE :type WHEN 'turn.abandoned' THEN 'abandoned' ELSE 'rolled_back' END
WHERE id = :session || ':' || $turn_id;

-- on turn.restored
UPDATE turns SET status = live_status, live_status = NULL
WHERE id = :session || ':' || $turn_id AND live_status IS NOT NULL;

-- on agent.turn.usage
UPDATE sessions SET
    input_tokens = CASE WHEN COALESCE($input_tokens, $inputTokens) IS NULL THEN input_tokens
        ELSE COALESCE(input_tokens, 0) + annal_increment($input_tokens, $inputTokens) END,
    output_tokens = CASE WHEN COALESCE($output_tokens, $outputTokens) IS NULL THEN output_tokens
        ELSE COALESCE(output_tokens, 0) + annal_increment($output_tokens, $outputTokens) END,
    cached_input_tokens = CASE WHEN $cached_input_tokens IS NULL THEN cached_input_tokens
        ELSE COALESCE(cached_input_tokens, 0) + annal_increment($cached_input_tokens) END,
    cache_write_tokens = CASE WHEN $cache_write_tokens IS NULL THEN cache_write_tokens
        ELSE COALESCE(cache_write_tokens, 0) + annal_increment($cache_write_tokens) END,
    total_tokens = CASE
        WHEN COALESCE($input_tokens, $inputTokens, $output_tokens, $outputTokens) IS NULL
        THEN total_tokens
        ELSE COALESCE(total_tokens, 0) + annal_increment($input_tokens, $inputTokens)
             + annal_increment($output_tokens, $outputTokens) END,
    cost_microusd =
        CASE WHEN COALESCE($cost_microusd, $cost_usd) IS NULL THEN cost_microusd
             ELSE COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd) END,
    total_cost_usd =
        CASE WHEN COALESCE($cost_microusd, $cost_usd) IS NULL THEN total_cost_usd
             ELSE (COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd)) / 1e6 END,
    model = CASE WHEN model = '' THEN COALESCE($model, $model_id, $modelId, '') ELSE model END
WHERE id = :session;
UPDATE turns SET
    input_tokens = CASE WHEN COALESCE($input_tokens, $inputTokens) IS NULL THEN input_tokens
        ELSE COALESCE(input_tokens, 0) + annal_increment($input_tokens, $inputTokens) END,
    output_tokens = CASE WHEN COALESCE($output_tokens, $outputTokens) IS NULL THEN output_tokens
        ELSE COALESCE(output_tokens, 0) + annal_increment($output_tokens, $outputTokens) END,
    cached_input_tokens = CASE WHEN $cached_input_tokens IS NULL THEN cached_input_tokens
        ELSE COALESCE(cached_input_tokens, 0) + annal_increment($cached_input_tokens) END,
    cache_write_tokens = CASE WHEN $cache_write_tokens IS NULL THEN cache_write_tokens
        ELSE COALESCE(cache_write_tokens, 0) + annal_increment($cache_write_tokens) END,
    cost_microusd =
        CASE WHEN COALESCE($cost_microusd, $cost_usd) IS NULL THEN cost_microusd
             ELSE COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd) END,
    cost_usd =
        CASE WHEN COALESCE($cost_microusd, $cost_usd) IS NULL THEN cost_usd
             ELSE (COALESCE(cost_microusd, 0) + annal_cost($cost_microusd, $cost_usd)) / 1e6 END
WHERE id = :session || ':' || $turn_id;

-- on agent.turn.usage   when $input_tokens, $inputTokens, $output_tokens, $outputTokens, $cached_input_tokens, $cache_write_tokens, $cost_microusd, $cost_usd
INSERT INTO usage_events (session_id, seq, timestamp, model, tier, prompt_over, requests, input_tokens,
                          output_tokens, cached_input_tokens, cache_write_tokens,
                          cache_write_1h_tokens, web_searches, cost_microusd)
VALUES (:session, :seq, :ts,
       COALESCE($model, $model_id, $modelId,
                (SELECT model FROM sessions WHERE id = :session), ''),
       COALESCE($tier, ''),
       annal_prompt_over($prompt_tokens, COALESCE($input_tokens, $inputTokens)),
       -- Without input it continues an answer that was counted.
       COALESCE($requests, COALESCE($input_tokens, $inputTokens, 1) IS NOT 0),
       CASE WHEN COALESCE($input_tokens, $inputTokens) IS NOT NULL THEN annal_increment($input_tokens, $inputTokens) END,
       CASE WHEN COALESCE($output_tokens, $outputTokens) IS NOT NULL THEN annal_increment($output_tokens, $outputTokens) END,
       CASE WHEN $cached_input_tokens IS NOT NULL THEN annal_increment($cached_input_tokens) END,
       CASE WHEN $cache_write_tokens IS NOT NULL THEN annal_increment($cache_write_tokens) END,
       CASE WHEN $cache_write_1h_tokens IS NOT NULL THEN annal_increment($cache_write_1h_tokens) END,
       CASE WHEN $web_searches IS NOT NULL THEN annal_increment($web_searches) END,
       CASE WHEN COALESCE($cost_microusd, $cost_usd) IS NOT NULL
            THEN annal_cost($cost_microusd, $cost_usd) END);

-- on message.added   when $role=user
UPDATE sessions SET title = COALESCE(annal_said(:data), title), title_from = 'said'
WHERE id = :session
  AND (title IS NULL OR title_from = 'said' AND title NOT GLOB '* *'
       AND (title GLOB '/*'
            -- A word of the scripts from U+0E00 on is shorter, and a sentence has no spaces.
            OR length(title) <= CASE WHEN title GLOB '*[' || char(3584, 45, 1114111) || ']*' THEN 3 ELSE 8 END
               AND (annal_said(:data) GLOB '* *'
                    OR length(annal_said(:data)) > CASE
                        WHEN annal_said(:data) GLOB '*[' || char(3584, 45, 1114111) || ']*' THEN 3 ELSE 8 END)));

-- on tool.called, tool_call
INSERT INTO tool_calls (session_id, call_id, seq, tool, turn_id, status, called_at)
VALUES (:session, COALESCE($call_id, '#' || :seq),
        COALESCE((SELECT seq FROM tool_calls INDEXED BY idx_tool_calls_uncalled
                  WHERE session_id = :session AND call_id = $call_id AND called_at IS NULL), :seq),
        $tool, $turn_id, 'called', :ts)
ON CONFLICT (session_id, call_id, seq) DO UPDATE SET
    seq = :seq, tool = excluded.tool, turn_id = COALESCE(excluded.turn_id, turn_id),
    called_at = excluded.called_at
WHERE called_at IS NULL;

-- on tool.returned, tool.failed, tool_result, tool_error
INSERT INTO tool_calls (session_id, call_id, seq, turn_id, status, returned_at, result_seq,
                        duration_ms, exit_code, output_bytes, output_sha256)
VALUES (:session, COALESCE($call_id, '#' || :seq),
        COALESCE((SELECT MAX(seq) FROM tool_calls
                  WHERE session_id = :session AND call_id = $call_id), :seq),
        $turn_id,
        CASE WHEN :type IN ('tool.failed', 'tool_error') OR $success = 0 THEN 'failed'
             ELSE 'returned' END,
        :ts, :seq,
        -- A text that is not a number counts as unknown.
        CASE WHEN $duration_ms = CAST($duration_ms AS NUMERIC) THEN $duration_ms END,
        CASE WHEN $exit_code = CAST($exit_code AS NUMERIC) THEN $exit_code END,
        COALESCE($output_bytes, $output_ref::bytes),
        $output_ref::sha256)
ON CONFLICT (session_id, call_id, seq) DO UPDATE SET
    status = excluded.status, returned_at = excluded.returned_at,
    result_seq = excluded.result_seq, duration_ms = excluded.duration_ms,
    exit_code = excluded.exit_code, output_bytes = excluded.output_bytes,
    output_sha256 = excluded.output_sha256
WHERE status = 'called';

-- on tool.updated
UPDATE tool_calls SET
    status = CASE $success WHEN 0 THEN 'failed' WHEN 1 THEN 'returned' ELSE status END,
    duration_ms = CASE WHEN $duration_ms = CAST($duration_ms AS NUMERIC) THEN $duration_ms
                       ELSE duration_ms END,
    exit_code = CASE WHEN $exit_code = CAST($exit_code AS NUMERIC) THEN $exit_code
                     ELSE exit_code END
WHERE session_id = :session AND call_id = $call_id AND status <> 'called'
  AND seq = (SELECT MAX(seq) FROM tool_calls WHERE session_id = :session AND call_id = $call_id);

-- on record.moved
UPDATE sessions SET total_turns = total_turns - 1
WHERE id = :session AND EXISTS (SELECT 1 FROM turns WHERE id = :session || ':' || $turn_id);
DELETE FROM turns WHERE id = :session || ':' || $turn_id;
DELETE FROM tool_calls
WHERE session_id = :session AND call_id IN (SELECT value FROM json_each(COALESCE(:data -> '$.call_ids', '[]')));

-- on turn.started, turn_start, agent.turn.usage, message.added, tool.called, tool_call   when $source::origin
INSERT OR IGNORE INTO record_origins VALUES (:session, $source::origin);

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
