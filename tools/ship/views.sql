-- What users query: the names and columns of the local tables, so that the same SELECT runs on all stores together (SET
-- search_path = annal), and store, which is the host's. They are computed from the events when they are asked; docs/ship.md
-- says in what they differ from the local tables.

-- data with what PostgreSQL's text cannot hold replaced by U+FFFD: \u0000, and half a surrogate pair. A single such escape
-- makes every -> and ->> of the value fail. An escaped backslash before it, \\u0000, is no escape.
CREATE OR REPLACE FUNCTION annal._mend(data text) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT regexp_replace(regexp_replace(data,
        '((?<!\\)(?:\\\\)*)\\u(?:0000|[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F]))', '\1\\ufffd', 'g'),
        '((?<!\\u[dD][89abAB][0-9a-fA-F]{2})(?<!\\)(?:\\\\)*)\\u[dD][c-fC-F][0-9a-fA-F]{2}', '\1\\ufffd', 'g')::json
$$;

CREATE OR REPLACE FUNCTION annal._data(data json) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN strpos(data::text, '\u0000') = 0 AND strpos(data::text, '\ud') = 0
                     AND strpos(data::text, '\uD') = 0 THEN data ELSE annal._mend(data::text) END
$$;

CREATE OR REPLACE FUNCTION annal._time(ts timestamptz) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_char(ts AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- A time as text; NULL if it is none.
CREATE OR REPLACE FUNCTION annal._when(text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE SET timezone = 'UTC' AS $$
BEGIN
    RETURN $1::timestamptz;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- A member as an integer: NULL where it is missing, 0 where it is no number or below lowest.
CREATE OR REPLACE FUNCTION annal._count(data json, member text, lowest numeric DEFAULT 0) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE json_typeof(data -> member)
        WHEN 'number' THEN CASE WHEN (data ->> member)::numeric BETWEEN lowest AND 1e15
                                THEN trunc((data ->> member)::numeric)::bigint ELSE 0 END
        WHEN 'null' THEN NULL
        ELSE CASE WHEN data -> member IS NOT NULL THEN 0 END END
$$;

-- The cost in millionths of a dollar; NULL where the event gives none.
CREATE OR REPLACE FUNCTION annal._cost(data json) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(annal._count(data, 'cost_microusd'),
                    CASE json_typeof(data -> 'cost_usd')
                        WHEN 'number' THEN round((data ->> 'cost_usd')::numeric * 1e6)::bigint
                        WHEN 'string' THEN 0 END)
$$;

CREATE OR REPLACE VIEW annal.heads AS
    SELECT store, session AS session_id, seq, lpad(to_hex(h), 16, '0') AS h, shipped_at FROM annal._heads;

CREATE OR REPLACE VIEW annal.events AS
    SELECT h.session AS session_id, e.seq, annal._time(e.ts) AS timestamp, e.type, e.id, e.cause, annal._data(e.data) AS data,
           h.store, e.ts, e.day AS arrived
    FROM annal._events e JOIN annal._heads h USING (key);

CREATE OR REPLACE VIEW annal.event_index AS
    SELECT h.session AS session_id, e.seq, e.type, annal._time(e.ts) AS timestamp, h.store
    FROM annal._events e JOIN annal._heads h USING (key);

CREATE OR REPLACE VIEW annal.forks AS
    SELECT session AS session_id, parent AS parent_session_id, forked_at AS forked_at_seq,
           annal._time(created_at) AS created_at, store
    FROM annal._heads WHERE parent IS NOT NULL;

-- ---- Turns ----

-- The events of turns, with the turn that they belong to (the one that they name, else the one that began last), and what
-- they add: the second end of a turn adds nothing.
CREATE OR REPLACE VIEW annal._turn_events AS
    SELECT key, seq, ts, type, begins, ends, data, turn,
           CASE WHEN counts THEN coalesce(annal._count(data, 'input_tokens', lowest), annal._count(data, 'inputTokens', lowest),
                                          CASE WHEN NOT ends THEN 0 END) END AS input_tokens,
           CASE WHEN counts THEN coalesce(annal._count(data, 'output_tokens', lowest), annal._count(data, 'outputTokens', lowest),
                                          CASE WHEN NOT ends THEN 0 END) END AS output_tokens,
           CASE WHEN counts THEN coalesce(annal._count(data, 'cached_input_tokens', lowest), CASE WHEN NOT ends THEN 0 END)
                END AS cached_input_tokens,
           CASE WHEN counts THEN coalesce(annal._count(data, 'cache_write_tokens', lowest), CASE WHEN NOT ends THEN 0 END)
                END AS cache_write_tokens,
           CASE WHEN counts THEN annal._cost(data) END AS cost_microusd
    FROM (SELECT *, CASE WHEN ends THEN 0 ELSE -1e15 END AS lowest,
                 CASE WHEN named IS NOT NULL THEN named
                      WHEN begins THEN '#' || seq
                      WHEN type <> 'agent.turn.usage' THEN substr(max(begun) OVER (PARTITION BY key ORDER BY seq), 21)
                      END AS turn,
                 CASE WHEN ends THEN named IS NULL
                                     OR count(*) FILTER (WHERE ends) OVER (PARTITION BY key, named ORDER BY seq) = 1
                      ELSE type = 'agent.turn.usage' END AS counts
          FROM (SELECT *, CASE WHEN begins THEN lpad(seq::text, 20, '0') || coalesce(named, '#' || seq) END AS begun
                FROM (SELECT key, seq, ts, type, type IN ('turn.started', 'turn_start') AS begins,
                             type IN ('turn.completed', 'turn.failed', 'turn.cancelled', 'turn_complete', 'turn_error') AS ends,
                             annal._data(data) AS data, annal._data(data) ->> 'turn_id' AS named
                      FROM annal._events
                      WHERE type IN ('turn.started', 'turn_start', 'turn.streaming', 'turn.completed', 'turn.failed',
                                     'turn.cancelled', 'turn_complete', 'turn_error', 'agent.turn.usage')) AS e) AS e) AS e;

CREATE OR REPLACE VIEW annal._turns AS
    SELECT key, turn, seq, coalesce(sequence, row_number() OVER (PARTITION BY key ORDER BY seq)) AS sequence, status,
           created_at, completed_at, error, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens,
           cost_microusd
    FROM (SELECT key, turn,
                 min(seq) FILTER (WHERE begins OR ends) AS seq,
                 max(annal._count(data, 'sequence')) FILTER (WHERE begins) AS sequence,
                 coalesce((array_agg(CASE WHEN type IN ('turn.failed', 'turn_error') THEN 'failed'
                                          WHEN type = 'turn.cancelled' THEN 'cancelled' ELSE 'completed' END
                                     ORDER BY seq) FILTER (WHERE ends))[1],
                          CASE WHEN bool_or(type = 'turn.streaming') THEN 'streaming' END,
                          max(data ->> 'status') FILTER (WHERE begins), 'started') AS status,
                 coalesce(min(annal._when(data ->> 'created_at')) FILTER (WHERE begins),
                          min(ts) FILTER (WHERE begins OR ends)) AS created_at,
                 min(ts) FILTER (WHERE ends) AS completed_at,
                 (array_agg(data ->> 'error' ORDER BY seq) FILTER (WHERE ends))[1] AS error,
                 sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
                 sum(cached_input_tokens)::bigint AS cached_input_tokens,
                 sum(cache_write_tokens)::bigint AS cache_write_tokens, sum(cost_microusd)::bigint AS cost_microusd
          FROM annal._turn_events WHERE turn IS NOT NULL GROUP BY key, turn) AS t
    WHERE seq IS NOT NULL;

CREATE OR REPLACE VIEW annal.turns AS
    SELECT h.session || ':' || t.turn AS id, h.session AS session_id, t.sequence, t.status,
           annal._time(t.created_at) AS created_at, annal._time(t.completed_at) AS completed_at, t.input_tokens,
           t.output_tokens, t.cost_microusd / 1e6::float8 AS cost_usd,
           CASE WHEN t.turn <> '#' || t.seq THEN t.turn END AS turn_id, t.cached_input_tokens,
           t.cache_write_tokens, t.cost_microusd, t.error, t.seq, h.store
    FROM annal._turns t JOIN annal._heads h USING (key);

-- ---- Sessions ----

-- What the last event that says it says of a session: session.created, or session.updated, which has it in set.
CREATE OR REPLACE FUNCTION annal._said(of_key bigint, member text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT said FROM (
        SELECT seq, coalesce(CASE WHEN type = 'session.updated' THEN data -> 'set' ->> member END, data ->> member) AS said
        FROM (SELECT seq, type, annal._data(data) AS data FROM annal._events
              WHERE key = of_key AND type IN ('session.created', 'session_start', 'session.updated')) AS e) AS e
    WHERE said IS NOT NULL ORDER BY seq DESC LIMIT 1
$$;

-- What the user said first, on one line. Messages that begin with a tag are what agents add to it.
CREATE OR REPLACE FUNCTION annal._first_words(of_key bigint) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT left(regexp_replace(btrim(said, E' \t\n\r'), '\s+', ' ', 'g'), 120) FROM (
        SELECT seq, CASE json_typeof(data -> 'content') WHEN 'string' THEN data ->> 'content' WHEN 'array' THEN (
                   SELECT part ->> 'text' FROM json_array_elements(data -> 'content') WITH ORDINALITY AS parts (part, n)
                   WHERE part ->> 'text' !~ '^\s*(<|$)' ORDER BY n LIMIT 1) END AS said
        FROM (SELECT seq, annal._data(data) AS data FROM annal._events WHERE key = of_key AND type = 'message.added') AS e
        WHERE data ->> 'role' = 'user') AS e
    WHERE said !~ '^\s*(<|$)' ORDER BY seq LIMIT 1
$$;

CREATE OR REPLACE VIEW annal._status_events AS
    SELECT key, seq, ts, type, annal._data(data) AS data,
           CASE WHEN type IN ('session.status_changed', 'session.transition') THEN annal._data(data) ->> 'to'
                WHEN type = 'session.updated'
                THEN coalesce(annal._data(data) -> 'set' ->> 'status', annal._data(data) ->> 'status')
                ELSE coalesce(annal._data(data) ->> 'status',
                              CASE WHEN type IN ('session.paused', 'session_pause') THEN 'paused'
                                   WHEN type IN ('session.resumed', 'session_resume') THEN 'idle'
                                   WHEN type IN ('session.ended', 'session_end') THEN 'ended' END) END AS status
    FROM annal._events
    WHERE type IN ('session.created', 'session_start', 'session.updated', 'session.status_changed', 'session.paused',
                   'session_pause', 'session.resumed', 'session_resume', 'session.ended', 'session_end',
                   'session.transition');

-- Each column is a subquery of its own, so that a SELECT pays for those that it names.
CREATE OR REPLACE VIEW annal.sessions AS
    SELECT h.session AS id,
           annal._said(h.key, 'flow_id') AS flow_id,
           coalesce(annal._said(h.key, 'agent_id'), '') AS agent_id,
           coalesce(annal._said(h.key, 'provider'), '') AS provider,
           coalesce(annal._said(h.key, 'model'),
                    (SELECT coalesce(e.data ->> 'model', e.data ->> 'model_id', e.data ->> 'modelId')
                     FROM annal._turn_events e WHERE e.key = h.key AND e.type = 'agent.turn.usage'
                     AND coalesce(e.data ->> 'model', e.data ->> 'model_id', e.data ->> 'modelId') IS NOT NULL
                     ORDER BY e.seq LIMIT 1), '') AS model,
           coalesce((SELECT e.status FROM annal._status_events e WHERE e.key = h.key AND e.status IS NOT NULL
                     ORDER BY e.seq DESC LIMIT 1), 'idle') AS status,
           annal._time(coalesce(annal._when(annal._said(h.key, 'created_at')),
                                (SELECT max(e.ts) FROM annal._status_events e WHERE e.key = h.key
                                 AND e.type IN ('session.created', 'session_start')),
                                (SELECT e.ts FROM annal._events e WHERE e.key = h.key ORDER BY e.seq LIMIT 1)))
               AS created_at,
           annal._time((SELECT max(e.ts) FROM annal._events e WHERE e.key = h.key)) AS updated_at,
           annal._time((SELECT max(e.ts) FROM annal._events e WHERE e.key = h.key AND e.type <> 'session.updated'))
               AS last_activity_at,
           (SELECT count(*) FROM annal._turns t WHERE t.key = h.key) AS total_turns,
           (SELECT coalesce(sum(e.input_tokens), 0) + coalesce(sum(e.output_tokens), 0)
            FROM annal._turn_events e WHERE e.key = h.key)::bigint AS total_tokens,
           (SELECT sum(e.cost_microusd) FROM annal._turn_events e WHERE e.key = h.key) / 1e6::float8 AS total_cost_usd,
           annal._said(h.key, 'working_directory') AS working_directory,
           annal._said(h.key, 'git_branch') AS git_branch,
           annal._said(h.key, 'parent_session_id') AS parent_session_id,
           coalesce(annal._said(h.key, 'title'), annal._first_words(h.key)) AS title,
           annal._time((SELECT CASE WHEN e.type IN ('session.ended', 'session_end') THEN e.ts
                                    WHEN e.type = 'session.transition' THEN annal._when(e.data ->> 'ended_at') END
                        FROM annal._status_events e WHERE e.key = h.key
                        AND (e.type IN ('session.ended', 'session_end', 'session.resumed', 'session_resume')
                             OR e.type = 'session.transition' AND e.data ->> 'ended_at' IS NOT NULL)
                        ORDER BY e.seq DESC LIMIT 1)) AS ended_at,
           (SELECT coalesce(sum(e.input_tokens), 0) FROM annal._turn_events e WHERE e.key = h.key)::bigint AS input_tokens,
           (SELECT coalesce(sum(e.output_tokens), 0) FROM annal._turn_events e WHERE e.key = h.key)::bigint AS output_tokens,
           (SELECT coalesce(sum(e.cached_input_tokens), 0) FROM annal._turn_events e WHERE e.key = h.key)::bigint
               AS cached_input_tokens,
           (SELECT coalesce(sum(e.cache_write_tokens), 0) FROM annal._turn_events e WHERE e.key = h.key)::bigint
               AS cache_write_tokens,
           (SELECT sum(e.cost_microusd) FROM annal._turn_events e WHERE e.key = h.key)::bigint AS cost_microusd,
           h.seq - coalesce(h.forked_at, 0) AS events,
           h.store
    FROM annal._heads h WHERE h.seq > coalesce(h.forked_at, 0);

-- ---- Calls of tools ----

-- A result belongs to the newest call with its call_id, and the first result counts.
CREATE OR REPLACE VIEW annal._tool_events AS
    SELECT key, seq, ts, type, is_call, data, call_id,
           greatest(1, count(*) FILTER (WHERE is_call) OVER (PARTITION BY key, call_id ORDER BY seq)) AS call
    FROM (SELECT key, seq, ts, type, type IN ('tool.called', 'tool_call') AS is_call, annal._data(data) AS data,
                 coalesce(annal._data(data) ->> 'call_id', '#' || seq) AS call_id
          FROM annal._events
          WHERE type IN ('tool.called', 'tool_call', 'tool.returned', 'tool.failed', 'tool_result', 'tool_error')) AS e;

CREATE OR REPLACE VIEW annal.tool_calls AS
    SELECT h.session AS session_id, c.call_id, coalesce(c.called_seq, c.result_seq) AS seq, c.called ->> 'tool' AS tool,
           coalesce(c.called ->> 'turn_id', c.result ->> 'turn_id') AS turn_id,
           CASE WHEN c.result_seq IS NULL THEN 'called'
                WHEN c.result_type IN ('tool.failed', 'tool_error') OR c.result ->> 'success' IN ('false', '0') THEN 'failed'
                ELSE 'returned' END AS status,
           annal._time(c.called_at) AS called_at, annal._time(c.returned_at) AS returned_at, c.result_seq,
           annal._count(c.result, 'duration_ms') AS duration_ms, annal._count(c.result, 'exit_code', -1e9) AS exit_code,
           coalesce(annal._count(c.result, 'output_bytes'), annal._count(c.result -> 'output_ref', 'bytes')) AS output_bytes,
           c.result -> 'output_ref' ->> 'sha256' AS output_sha256, h.store
    FROM (SELECT key, call_id,
                 min(seq) FILTER (WHERE is_call) AS called_seq, min(ts) FILTER (WHERE is_call) AS called_at,
                 (array_agg(data ORDER BY seq) FILTER (WHERE is_call))[1] AS called,
                 min(seq) FILTER (WHERE NOT is_call) AS result_seq,
                 (array_agg(ts ORDER BY seq) FILTER (WHERE NOT is_call))[1] AS returned_at,
                 (array_agg(type ORDER BY seq) FILTER (WHERE NOT is_call))[1] AS result_type,
                 (array_agg(data ORDER BY seq) FILTER (WHERE NOT is_call))[1] AS result
          FROM annal._tool_events GROUP BY key, call_id, call) AS c JOIN annal._heads h USING (key);

CREATE OR REPLACE VIEW annal.dangling AS
    SELECT session_id, call_id, seq, tool, turn_id, called_at, store FROM annal.tool_calls WHERE status = 'called';

CREATE OR REPLACE VIEW annal.tool_durations AS
    SELECT session_id, call_id, seq, tool, status, called_at, returned_at,
           coalesce(duration_ms,
                    CASE WHEN called_at IS NOT NULL
                         THEN greatest(0, round(extract(epoch FROM returned_at::timestamptz - called_at::timestamptz)
                                                * 1000)::bigint) END) AS duration_ms, store
    FROM annal.tool_calls WHERE status <> 'called';

CREATE OR REPLACE VIEW annal.tool_stats AS
    SELECT tool, count(*) AS calls, count(*) FILTER (WHERE status = 'returned') AS returned,
           count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'called') AS dangling,
           round(count(*) FILTER (WHERE status = 'failed')::numeric
                 / nullif(count(*) FILTER (WHERE status <> 'called'), 0), 4) AS failure_rate,
           percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms) AS p50_ms,
           percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95_ms,
           max(duration_ms) AS max_ms, sum(duration_ms)::bigint AS total_ms
    FROM (SELECT tool, status, duration_ms FROM annal.tool_durations
          UNION ALL SELECT tool, 'called', NULL FROM annal.dangling) AS calls
    GROUP BY tool;

INSERT INTO annal._schema (version) VALUES (4) ON CONFLICT (one_row) DO UPDATE SET version = excluded.version;
