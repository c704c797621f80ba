-- SPDX-License-Identifier: Apache-2.0
-- The views for users. They have the names and columns of the local tables, so that the same SELECT runs on all
-- stores together (SET search_path = annal), and a column store. Sessions and turns show the rows stored by
-- tables.sql; the other views are computed from the events by each query. docs/ship.md lists the differences from the
-- local tables.

-- Replace what PostgreSQL's text cannot contain, \u0000 and unpaired surrogates, by U+FFFD. A single such escape
-- makes every -> and ->> of the value fail. After an escaped backslash, as in \\u0000, it is not an escape.
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

-- Convert a time to text; NULL if it is not a time.
CREATE OR REPLACE FUNCTION annal._when(text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT SET timezone = 'UTC' AS $$
BEGIN
    RETURN $1::timestamptz;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- Convert a value to an integer: NULL if it is missing, 0 if it is not a number or below lowest.
CREATE OR REPLACE FUNCTION annal._number(value json, lowest numeric DEFAULT 0) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE json_typeof(value)
        WHEN 'number' THEN CASE WHEN value::text::numeric BETWEEN lowest AND 1e15
                                THEN trunc(value::text::numeric)::bigint ELSE 0 END
        WHEN 'null' THEN NULL
        ELSE CASE WHEN value IS NOT NULL THEN 0 END END
$$;

-- Convert a member to an integer.
CREATE OR REPLACE FUNCTION annal._count(data json, member text, lowest numeric DEFAULT 0) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT annal._number(data -> member, lowest)
$$;

-- Return the cost in millionths of a dollar: NULL if the event has none, 0 if the value is not a cost.
CREATE OR REPLACE FUNCTION annal._cost(microusd json, usd json) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(annal._number(microusd, -1e15),
                    CASE json_typeof(usd) WHEN 'number' THEN CASE WHEN abs(usd::text::numeric) < 1e9
                             THEN round(usd::text::numeric * 1e6)::bigint ELSE 0 END WHEN 'string' THEN 0 END)
$$;

-- Put a text on one line and cut it between words at 120 characters; NULL if it is empty.
CREATE OR REPLACE FUNCTION annal._title(said text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    line text := btrim(regexp_replace(said, '[ \t-\r\u00a0]+', ' ', 'g'));
    words text;
BEGIN
    IF length(line) > 120 THEN
        words := substring(left(line, 121) FROM '^(.*) ');
        line := left(line, 120);
        RETURN CASE WHEN octet_length(words) > octet_length(line) / 2 THEN words ELSE line END || '…';
    END IF;
    RETURN nullif(line, '');
END $$;

CREATE OR REPLACE VIEW annal.heads AS
    SELECT store, session AS session_id, seq, lpad(to_hex(h), 16, '0') AS h, shipped_at, first_day AS first_arrived,
           last_day AS last_arrived
    FROM annal._heads;

CREATE OR REPLACE VIEW annal.events AS
    SELECT h.session AS session_id, e.seq, annal._time(e.ts) AS timestamp, e.type, e.id, e.cause, annal._data(e.data) AS data,
           h.store, e.ts, e.day AS arrived
    FROM annal._events e JOIN annal._heads h USING (key);

-- The events of sessions with this name in all stores, or in one store. The view events can be searched, too, but
-- then PostgreSQL plans a scan of each partition, because the query has no constant for the days of arrival. This
-- function passes them as constants.
CREATE OR REPLACE FUNCTION annal.session_events(of_session text, of_store text DEFAULT NULL) RETURNS SETOF annal.events
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    head annal.heads;
BEGIN
    FOR head IN SELECT * FROM annal.heads h
        WHERE h.session_id = of_session AND (of_store IS NULL OR h.store = of_store) ORDER BY h.store
    LOOP
        RETURN QUERY SELECT * FROM annal.events e WHERE e.store = head.store AND e.session_id = of_session
            AND e.arrived BETWEEN head.first_arrived AND head.last_arrived ORDER BY e.seq;
    END LOOP;
END $$;

CREATE OR REPLACE VIEW annal.event_index AS
    SELECT h.session AS session_id, e.seq, e.type, annal._time(e.ts) AS timestamp, h.store
    FROM annal._events e JOIN annal._heads h USING (key);

CREATE OR REPLACE VIEW annal.forks AS
    SELECT session AS session_id, parent AS parent_session_id, forked_at AS forked_at_seq,
           annal._time(created_at) AS created_at, store
    FROM annal._heads WHERE parent IS NOT NULL;

-- ---- Turns ----

CREATE OR REPLACE VIEW annal.turns AS
    SELECT h.session || ':' || t.turn AS id, h.session AS session_id, coalesce(t.sequence_said, t.place) AS sequence,
           coalesce(nullif(t.taken[2], 'restored'), t.status, CASE WHEN t.streaming THEN 'streaming' END, t.status_said,
                    'started') AS status,
           annal._time(coalesce(t.created_said, t.begun_at)) AS created_at,
           annal._time(t.completed_at) AS completed_at,
           t.input_tokens, t.output_tokens, t.cost_microusd / 1e6::float8 AS cost_usd,
           CASE WHEN t.turn <> '#' || t.seq THEN t.turn END AS turn_id, t.cached_input_tokens,
           t.cache_write_tokens, t.cost_microusd, t.error, t.seq, h.store, t.timing,
           CASE WHEN t.taken[2] <> 'restored' THEN coalesce(t.status, CASE WHEN t.streaming THEN 'streaming' END,
                                                             t.status_said, 'started') END AS live_status
    FROM annal._turn_rows t JOIN annal._heads h USING (key) WHERE t.seq IS NOT NULL;

-- ---- Sessions ----

CREATE OR REPLACE VIEW annal.sessions AS
    SELECT h.session AS id,
           s.said ->> 'flow_id' AS flow_id,
           coalesce(s.said ->> 'agent_id', '') AS agent_id,
           coalesce(s.said ->> 'provider', '') AS provider,
           coalesce(s.said ->> 'model', s.model, '') AS model,
           coalesce(s.status, 'idle') AS status,
           annal._time(coalesce(annal._when(s.said ->> 'created_at'), s.created_at, s.first_at)) AS created_at,
           annal._time(s.updated_at) AS updated_at,
           annal._time(s.last_activity_at) AS last_activity_at,
           s.turns AS total_turns,
           annal._plus(s.input_tokens, s.output_tokens) AS total_tokens,
           s.cost_microusd / 1e6::float8 AS total_cost_usd,
           s.said ->> 'working_directory' AS working_directory,
           s.said ->> 'git_branch' AS git_branch,
           s.said ->> 'parent_session_id' AS parent_session_id,
           coalesce(s.said ->> 'title', s.words) AS title,
           annal._time(s.ended_at) AS ended_at,
           s.input_tokens, s.output_tokens, s.cached_input_tokens, s.cache_write_tokens, s.cost_microusd,
           h.seq - coalesce(h.forked_at, 0) AS events,
           h.store,
           CASE WHEN s.said ->> 'created_at' IS NULL THEN s.said ->> 'time' END AS time_from,
           CASE WHEN s.said ->> 'title' IS NULL AND s.words IS NOT NULL THEN 'said' END AS title_from
    FROM annal._session_rows s JOIN annal._heads h USING (key);

COMMENT ON VIEW annal.sessions IS 'may lag some seconds behind annal.events: see annal.rows_behind()';
COMMENT ON VIEW annal.turns IS 'may lag some seconds behind annal.events: see annal.rows_behind()';

-- ---- Calls of tools ----

-- A result belongs to the newest call with its call_id, and only the first result counts. The query works session by
-- session: with GROUP BY session, PostgreSQL would compute the calls of all sessions before it selects the requested
-- ones.
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
    FROM annal._heads h CROSS JOIN LATERAL (
        SELECT call_id, min(seq) FILTER (WHERE is_call) AS called_seq, min(ts) FILTER (WHERE is_call) AS called_at,
               (array_agg(data ORDER BY seq) FILTER (WHERE is_call))[1] AS called,
               min(seq) FILTER (WHERE NOT is_call) AS result_seq,
               (array_agg(ts ORDER BY seq) FILTER (WHERE NOT is_call))[1] AS returned_at,
               (array_agg(type ORDER BY seq) FILTER (WHERE NOT is_call))[1] AS result_type,
               (array_agg(data ORDER BY seq) FILTER (WHERE NOT is_call))[1] AS result
        FROM (SELECT *, greatest(1, count(*) FILTER (WHERE is_call) OVER (PARTITION BY call_id ORDER BY seq)) AS call
              FROM (SELECT seq, ts, type, type IN ('tool.called', 'tool_call') AS is_call, annal._data(data) AS data,
                           coalesce(annal._data(data) ->> 'call_id', '#' || seq) AS call_id
                    FROM annal._events e
                    WHERE e.key = h.key
                          AND day BETWEEN h.first_day AND h.last_day
                          AND type IN ('tool.called', 'tool_call', 'tool.returned', 'tool.failed', 'tool_result',
                                       'tool_error')) AS e) AS e
        GROUP BY call_id, call) AS c;

CREATE OR REPLACE VIEW annal.dangling AS
    SELECT session_id, call_id, seq, tool, turn_id, called_at, store FROM annal.tool_calls WHERE status = 'called';

CREATE OR REPLACE VIEW annal.tool_durations AS
    SELECT session_id, call_id, seq, tool, status, called_at, returned_at,
           coalesce(duration_ms,
                    CASE WHEN called_at IS NOT NULL AND NOT EXISTS (
                              SELECT FROM annal._heads h JOIN annal._session_rows r USING (key)
                              WHERE h.store = c.store AND h.session = c.session_id AND r.said ->> 'time' = 'of the file'
                                    AND r.said ->> 'created_at' IS NULL)
                         THEN greatest(0, round(extract(epoch FROM returned_at::timestamptz - called_at::timestamptz)
                                                * 1000)::bigint) END) AS duration_ms, store
    FROM annal.tool_calls c WHERE status <> 'called';

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

CREATE OR REPLACE VIEW annal.errors_by_day AS
    SELECT day, count(call) AS tool_calls, count(*) FILTER (WHERE call = 'failed') AS failed_tool_calls,
           round(count(*) FILTER (WHERE call = 'failed')::numeric / nullif(count(call), 0), 4) AS tool_failure_rate,
           count(turn) AS turns, count(*) FILTER (WHERE turn = 'failed') AS failed_turns,
           round(count(*) FILTER (WHERE turn = 'failed')::numeric / nullif(count(turn), 0), 4) AS turn_failure_rate
    FROM (SELECT left(coalesce(called_at, returned_at), 10) AS day, status AS call, NULL AS turn FROM annal.tool_calls
          UNION ALL SELECT left(created_at, 10), NULL, status FROM annal.turns) AS calls_and_turns
    GROUP BY day;

INSERT INTO annal._schema (version) VALUES (1) ON CONFLICT (one_row) DO UPDATE SET version = excluded.version;
