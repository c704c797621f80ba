-- SPDX-License-Identifier: Apache-2.0
-- Stored rows of sessions and turns, so that queries about sessions need not read their events.
--
-- The transaction that adds events also records in _unfolded which of them must be read (digest.h). Some seconds
-- later a shipper calls annal._fold_queued(), which adds the events of the oldest batches to the rows and deletes
-- their records, in one transaction and in one process at a time. So rows may lag behind the events, but never miss
-- any. An event that is not after the last event of the row is ignored. views.sql shows the rows in the form of the
-- local tables. Columns with `said` in their names contain values that events state explicitly; these take precedence
-- over computed values.

-- seq: the last event included in the row. said: members of session.created and session.updated, the latest value of
-- each. words: the first text of the user. turn: the turn that began last.
CREATE TABLE IF NOT EXISTS annal._session_rows (
    key                  bigint PRIMARY KEY,
    seq                  bigint NOT NULL,
    first_at             timestamptz NOT NULL,
    created_at           timestamptz,
    updated_at           timestamptz NOT NULL,
    last_activity_at     timestamptz,
    ended_at             timestamptz,
    status               text,
    said                 jsonb NOT NULL,
    words                text,
    model                text,
    turn                 text,
    turns                bigint NOT NULL,
    input_tokens         bigint,
    output_tokens        bigint,
    cached_input_tokens  bigint,
    cache_write_tokens   bigint,
    cost_microusd        bigint
) WITH (fillfactor = 70);

-- seq: the event that began the turn; NULL while only later events of it are known. place: its number in the session.
-- sequence_said, created_said: from that event. status: its final status. counted: an end that names the turn has
-- added its tokens. taken: seq, new status and time of the last event that took it back or restored it.
CREATE TABLE IF NOT EXISTS annal._turn_rows (
    key                  bigint NOT NULL,
    turn                 text NOT NULL,
    seq                  bigint,
    place                bigint,
    sequence_said        bigint,
    status               text,
    streaming            boolean NOT NULL,
    status_said          text,
    begun_at             timestamptz,
    created_said         timestamptz,
    completed_at         timestamptz,
    error                text,
    input_tokens         bigint,
    output_tokens        bigint,
    cached_input_tokens  bigint,
    cache_write_tokens   bigint,
    cost_microusd        bigint,
    counted              boolean NOT NULL,
    timing               text,
    taken                text[],
    PRIMARY KEY (key, turn)
) WITH (fillfactor = 80);

-- Batches that are not included in the rows yet, one row per batch. For two batches with the same session, the ids
-- have the order of the events, because a batch locks its heads before it takes an id. For each session: key, seq of
-- the last new event, time of the first, latest time, latest time except session.updated; then key, first and last
-- seq of runs of events that may change more than these. All events arrived on the day since. size: the number of
-- sessions and events.
CREATE TABLE IF NOT EXISTS annal._unfolded (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    made_at     timestamptz NOT NULL DEFAULT now(),
    size        bigint NOT NULL,
    since       date NOT NULL,
    keys        bigint[] NOT NULL,
    lasts       bigint[] NOT NULL,
    firsts      timestamptz[] NOT NULL,
    latests     timestamptz[] NOT NULL,
    actives     timestamptz[] NOT NULL,
    event_keys  bigint[] NOT NULL,
    event_seqs  bigint[] NOT NULL,
    event_lasts bigint[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Compressing data that is read and deleted within seconds costs a batch more than it saves.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['keys', 'lasts', 'firsts', 'latests', 'actives', 'event_keys', 'event_seqs', 'event_lasts'] LOOP
        EXECUTE format('ALTER TABLE annal._unfolded ALTER %I SET STORAGE EXTERNAL', name);
    END LOOP;
END $$;

-- Queue the events of a batch, as the last step of the batch. Shippers may call it without owning the table.
CREATE OR REPLACE FUNCTION annal._queue(keys bigint[], lasts bigint[], firsts timestamptz[], latests timestamptz[],
                                        actives timestamptz[], event_keys bigint[], event_seqs bigint[], event_lasts bigint[])
    RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO annal._unfolded (size, since, keys, lasts, firsts, latests, actives, event_keys, event_seqs, event_lasts)
    VALUES (cardinality(keys) + (SELECT coalesce(sum(last - seq + 1), 0) FROM unnest(event_seqs, event_lasts) AS e (seq, last)),
            (now() AT TIME ZONE 'UTC')::date, keys, lasts, firsts, latests, actives, event_keys, event_seqs, event_lasts)
$$;

CREATE OR REPLACE FUNCTION annal._plus(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(a + b, a, b)
$$;

-- Read the events of these runs, which arrived from day `since` to day `until`. Planned at each call, only for the
-- partitions of these days.
CREATE OR REPLACE FUNCTION annal._read_events(event_keys bigint[], event_seqs bigint[], event_lasts bigint[], since date,
                                              until date)
    RETURNS TABLE (key bigint, seq bigint, ts timestamptz, type text, data json)
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    RETURN QUERY
    SELECT n.key, e.seq, e.ts, e.type, e.data
    FROM unnest(event_keys, event_seqs, event_lasts) AS n (key, first, last) CROSS JOIN LATERAL (
        SELECT e.seq, e.ts, e.type, e.data FROM annal._events e
        WHERE e.key = n.key AND e.seq BETWEEN n.first AND n.last AND e.day BETWEEN since AND until OFFSET 0) AS e;
END $$;

-- Add these events to the rows. The arguments are those of _unfolded, with each session once; the events arrived from
-- day `since` to day `until`. The caller holds the lock of the row makers. The plan does not depend on statistics:
-- rows are found by key (OFFSET 0 keeps that step separate), computed values by hash. The long statement is skipped
-- for sessions that have a row and no event that may change more than its times.
CREATE OR REPLACE FUNCTION annal._add_to_rows(keys bigint[], lasts bigint[], firsts timestamptz[], latests timestamptz[],
                                              actives timestamptz[], event_keys bigint[], event_seqs bigint[],
                                              event_lasts bigint[], since date, until date) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_nestloop = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    UPDATE annal._session_rows r SET seq = n.last, updated_at = greatest(r.updated_at, n.latest),
           last_activity_at = greatest(r.last_activity_at, n.active)
    FROM unnest(keys, lasts, latests, actives) AS n (key, last, latest, active)
    WHERE r.key = ANY (keys) AND r.key = n.key AND r.seq < n.last AND n.key NOT IN (SELECT unnest(event_keys));
    WITH old AS MATERIALIZED (
        SELECT n.*, coalesce(r.seq, h.forked_at, 0) AS seq, r.turn, coalesce(r.turns, 0) AS turns, r.words, r.ended_at
        FROM unnest(keys, lasts, firsts, latests, actives) AS n (key, to_seq, first_at, updated_at, active_at)
             CROSS JOIN LATERAL (SELECT h.forked_at FROM annal._heads h WHERE h.key = n.key OFFSET 0) AS h
             LEFT JOIN LATERAL (SELECT * FROM annal._session_rows r WHERE r.key = n.key OFFSET 0) AS r ON true
        WHERE n.to_seq > coalesce(r.seq, h.forked_at, 0)),
    fresh AS MATERIALIZED (
        SELECT e.key, e.seq, e.ts, e.type, o.turn AS turn_before,
               CASE WHEN e.type <> 'message.added' OR o.words IS NULL THEN annal._data(e.data) END AS data
        FROM annal._read_events(event_keys, event_seqs, event_lasts, since, until) AS e
             JOIN old o ON o.key = e.key AND e.seq > o.seq),

    -- An event belongs to the turn that it names, or else to the turn that began last; only events without a turn
    -- need that search. Usage that names no turn belongs to none.
    turn_events AS MATERIALIZED (
        SELECT *, named IS NULL AND NOT begins AND NOT uses AS is_loose, CASE WHEN ends THEN 0 ELSE -1e15 END AS lowest,
               CASE WHEN uses THEN 0 END AS least, type IN ('turn.rolled_back', 'turn.abandoned', 'turn.restored') AS takes
        FROM (SELECT key, seq, ts, type, turn_before, d.*, coalesce(d.model, d.model_id, d."modelId") AS used_model,
                     d.turn_id AS named, type IN ('turn.started', 'turn_start') AS begins, type = 'agent.turn.usage' AS uses,
                     type IN ('turn.completed', 'turn.failed', 'turn.cancelled', 'turn_complete', 'turn_error') AS ends
              FROM fresh CROSS JOIN LATERAL json_to_record(CASE json_typeof(data) WHEN 'object' THEN data ELSE '{}' END) AS d (
                  turn_id text, input_tokens json, "inputTokens" json, output_tokens json, "outputTokens" json,
                  cached_input_tokens json, cache_write_tokens json, cost_microusd json, cost_usd json, sequence json,
                  status text, created_at text, error text, timing text, model text, model_id text, "modelId" text)
              WHERE type IN ('turn.started', 'turn_start', 'turn.streaming', 'turn.completed', 'turn.failed', 'turn.cancelled',
                             'turn_complete', 'turn_error', 'agent.turn.usage', 'turn.rolled_back', 'turn.abandoned',
                             'turn.restored')) AS e),
    of_turns AS (
        SELECT *, CASE WHEN begins THEN '#' || seq END AS begun FROM turn_events WHERE NOT is_loose
        UNION ALL
        SELECT * FROM (
            SELECT *, coalesce(substr(max(CASE WHEN begins THEN lpad(seq::text, 20, '0') || coalesce(named, '#' || seq) END)
                                          OVER (PARTITION BY key ORDER BY seq), 21), turn_before)
            FROM turn_events WHERE key IN (SELECT key FROM turn_events WHERE is_loose)) AS e
        WHERE is_loose),
    amounts AS (
        SELECT *, coalesce(named, begun) AS turn, ends AND named IS NOT NULL AS ends_named,
               CASE WHEN ends OR uses THEN
                   coalesce(annal._number(input_tokens, lowest), annal._number("inputTokens", lowest),
                            CASE WHEN coalesce(input_tokens::text, "inputTokens"::text) IS NOT NULL THEN least END) END AS input,
               CASE WHEN ends OR uses THEN
                   coalesce(annal._number(output_tokens, lowest), annal._number("outputTokens", lowest),
                            CASE WHEN coalesce(output_tokens::text, "outputTokens"::text) IS NOT NULL THEN least END) END AS output,
               CASE WHEN ends OR uses THEN coalesce(annal._number(cached_input_tokens, lowest),
                   CASE WHEN cached_input_tokens IS NOT NULL THEN least END) END AS cached_input,
               CASE WHEN ends OR uses THEN coalesce(annal._number(cache_write_tokens, lowest),
                   CASE WHEN cache_write_tokens IS NOT NULL THEN least END) END AS cache_write,
               CASE WHEN ends OR uses THEN annal._cost(cost_microusd, cost_usd) END AS cost
        FROM of_turns),

    -- Usage of events without a turn is stored in the row whose turn is NULL. The first end that names a turn adds
    -- its values, unless an earlier batch had one: first_end. Of the statuses that begin a turn, a later one is also
    -- later in the alphabet: pending, started, streaming.
    new_turns AS MATERIALIZED (
        SELECT key, turn, min(seq) FILTER (WHERE begins OR ends) AS seq, max(seq) FILTER (WHERE begins) AS last_begin,
               min(ARRAY[seq, CASE WHEN sequence::text ~ '^-?\d{1,18}$' THEN sequence::text::bigint END])
                   FILTER (WHERE begins AND sequence IS NOT NULL) AS sequence,
               min(ARRAY[seq, CASE WHEN type IN ('turn.failed', 'turn_error') THEN 1 WHEN type = 'turn.cancelled' THEN 2
                                   ELSE 3 END]) FILTER (WHERE ends) AS ended,
               bool_or(type = 'turn.streaming') AS streaming,
               max(coalesce(status, 'started')) FILTER (WHERE begins) AS status_said,
               min(ts) FILTER (WHERE begins OR ends) AS begun_at,
               min(ARRAY[lpad(seq::text, 20, '0'), created_at]) FILTER (WHERE begins AND created_at IS NOT NULL) AS created,
               min(ts) FILTER (WHERE ends) AS completed_at,
               min(ARRAY[lpad(seq::text, 20, '0'), error]) FILTER (WHERE ends AND error IS NOT NULL) AS error,
               min(ARRAY[lpad(seq::text, 20, '0'), timing]) FILTER (WHERE ends AND timing IS NOT NULL) AS timing,
               max(ARRAY[lpad(seq::text, 20, '0'), substr(type, 6), ts::text]) FILTER (WHERE takes AND named IS NOT NULL) AS taken,
               min(ARRAY[lpad(seq::text, 20, '0'), used_model]) FILTER (WHERE uses AND used_model IS NOT NULL) AS model,
               sum(input) FILTER (WHERE NOT ends_named)::bigint AS input,
               sum(output) FILTER (WHERE NOT ends_named)::bigint AS output,
               sum(cached_input) FILTER (WHERE NOT ends_named)::bigint AS cached_input,
               sum(cache_write) FILTER (WHERE NOT ends_named)::bigint AS cache_write,
               sum(cost) FILTER (WHERE NOT ends_named)::bigint AS cost,
               min(ARRAY[seq, input, output, cached_input, cache_write, cost]) FILTER (WHERE ends_named) AS first_end
        FROM amounts GROUP BY key, turn),
    placed AS MATERIALIZED (
        SELECT n.*, CASE WHEN is_new THEN o.turns + row_number() OVER (PARTITION BY key, is_new ORDER BY n.seq) END AS place,
               annal._plus(input, first_end[2]) AS input_tokens, annal._plus(output, first_end[3]) AS output_tokens,
               annal._plus(cached_input, first_end[4]) AS cached_input_tokens,
               annal._plus(cache_write, first_end[5]) AS cache_write_tokens, annal._plus(cost, first_end[6]) AS cost_microusd
        FROM (SELECT n.key, n.turn, n.seq, last_begin, CASE WHEN sequence[1] = n.seq THEN sequence[2] END AS sequence_said,
                     ended[2] AS ended, streaming, status_said, begun_at,
                     CASE WHEN created[1]::bigint = n.seq THEN annal._when(created[2]) END AS created_said, completed_at,
                     CASE WHEN error[1]::bigint = ended[1] THEN error[2] END AS error,
                     CASE WHEN timing[1]::bigint = ended[1] THEN timing[2] END AS timing, model, taken,
                     input, output, cached_input, cache_write, cost, first_end IS NOT NULL AS counted,
                     CASE WHEN NOT coalesce(r.counted, false) THEN first_end END AS first_end,
                     n.turn IS NOT NULL AND n.seq IS NOT NULL AND r.seq IS NULL AS is_new
              FROM new_turns n LEFT JOIN LATERAL (
                  SELECT r.seq, r.counted FROM annal._turn_rows r WHERE r.key = n.key AND r.turn = n.turn OFFSET 0) AS r
                  ON true) AS n JOIN old o USING (key)),
    turns AS (
        INSERT INTO annal._turn_rows AS r
        SELECT key, turn, seq, place, sequence_said, (ARRAY['failed', 'cancelled', 'completed'])[ended], streaming,
               status_said, begun_at, created_said, completed_at, error, input_tokens, output_tokens, cached_input_tokens,
               cache_write_tokens, cost_microusd, counted, timing, taken
        FROM placed WHERE turn IS NOT NULL
        ON CONFLICT (key, turn) DO UPDATE SET
            seq = coalesce(r.seq, excluded.seq),
            place = coalesce(r.place, excluded.place),
            sequence_said = CASE WHEN r.seq IS NULL THEN excluded.sequence_said ELSE r.sequence_said END,
            status = coalesce(r.status, excluded.status),
            streaming = r.streaming OR excluded.streaming,
            status_said = greatest(r.status_said, excluded.status_said),
            begun_at = least(r.begun_at, excluded.begun_at),
            created_said = CASE WHEN r.seq IS NULL THEN excluded.created_said ELSE r.created_said END,
            completed_at = least(r.completed_at, excluded.completed_at),
            error = CASE WHEN r.status IS NULL THEN excluded.error ELSE r.error END,
            input_tokens = annal._plus(r.input_tokens, excluded.input_tokens),
            output_tokens = annal._plus(r.output_tokens, excluded.output_tokens),
            cached_input_tokens = annal._plus(r.cached_input_tokens, excluded.cached_input_tokens),
            cache_write_tokens = annal._plus(r.cache_write_tokens, excluded.cache_write_tokens),
            cost_microusd = annal._plus(r.cost_microusd, excluded.cost_microusd),
            counted = r.counted OR excluded.counted,
            timing = CASE WHEN r.status IS NULL THEN excluded.timing ELSE r.timing END,
            taken = coalesce(excluded.taken, r.taken)),
    used AS (
        SELECT key, (min(model))[2] AS model,
               substr(max(lpad(last_begin::text, 20, '0') || turn), 21) AS turn, count(place) AS turns,
               sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
               sum(cached_input_tokens)::bigint AS cached_input_tokens,
               sum(cache_write_tokens)::bigint AS cache_write_tokens, sum(cost_microusd)::bigint AS cost_microusd
        FROM placed GROUP BY key),

    -- session.updated has its values in the member set, other events have them at the top level.
    session_events AS MATERIALIZED (
        SELECT key, seq, ts, type, d.to, d.ended_at, coalesce(s.status, d.status) AS status,
               ARRAY[coalesce(s.flow_id, d.flow_id), coalesce(s.agent_id, d.agent_id), coalesce(s.provider, d.provider),
                     coalesce(s.model, d.model), coalesce(s.created_at, d.created_at),
                     coalesce(annal._title(s.title), annal._title(d.title)),
                     coalesce(s.working_directory, d.working_directory), coalesce(s.git_branch, d.git_branch),
                     coalesce(s.parent_session_id, d.parent_session_id), coalesce(s.time, d.time)] AS words
        FROM fresh CROSS JOIN LATERAL json_to_record(CASE json_typeof(data) WHEN 'object' THEN data ELSE '{}' END) AS d (
                 flow_id text, agent_id text, provider text, model text, created_at text, title text, working_directory text,
                 git_branch text, parent_session_id text, "time" text, status text, "to" text, ended_at text, "set" json)
             CROSS JOIN LATERAL json_to_record(
                 CASE WHEN type = 'session.updated' AND json_typeof("set") = 'object' THEN "set" ELSE '{}' END) AS s (
                 flow_id text, agent_id text, provider text, model text, created_at text, title text, working_directory text,
                 git_branch text, parent_session_id text, "time" text, status text)
        WHERE type IN ('session.created', 'session_start', 'session.updated', 'session.status_changed', 'session.paused',
                       'session_pause', 'session.resumed', 'session_resume', 'session.ended', 'session_end',
                       'session.transition')),
    said AS (
        SELECT key, jsonb_object_agg(member, value ORDER BY seq) AS said
        FROM session_events CROSS JOIN LATERAL unnest(ARRAY[
            'flow_id', 'agent_id', 'provider', 'model', 'created_at', 'title', 'working_directory', 'git_branch',
            'parent_session_id', 'time'], words) AS word (member, value)
        WHERE type IN ('session.created', 'session_start', 'session.updated') AND value IS NOT NULL GROUP BY key),
    new_status AS (
        SELECT key, max(ts) FILTER (WHERE type IN ('session.created', 'session_start')) AS created_at,
               (array_agg(status ORDER BY seq DESC) FILTER (WHERE status IS NOT NULL))[1] AS status,
               bool_or(about_end) AS about_end, (array_agg(ended_at ORDER BY seq DESC) FILTER (WHERE about_end))[1] AS ended_at
        FROM (SELECT key, seq, ts, type,
                     CASE WHEN type IN ('session.status_changed', 'session.transition') THEN "to"
                          ELSE coalesce(status, CASE WHEN type IN ('session.paused', 'session_pause') THEN 'paused'
                                                     WHEN type IN ('session.resumed', 'session_resume') THEN 'idle'
                                                     WHEN type IN ('session.ended', 'session_end') THEN 'ended' END)
                          END AS status,
                     type IN ('session.ended', 'session_end', 'session.resumed', 'session_resume')
                         OR type = 'session.transition' AND ended_at IS NOT NULL AS about_end,
                     CASE WHEN type IN ('session.ended', 'session_end') THEN ts
                          WHEN type = 'session.transition' THEN annal._when(ended_at) END AS ended_at
              FROM session_events) AS e
        GROUP BY key),

    -- The first text of the user. Messages that begin with a tag were added by agents.
    messages AS (
        SELECT key, seq, CASE json_typeof(content) WHEN 'string' THEN content #>> '{}' WHEN 'array' THEN (
                   SELECT part ->> 'text' FROM json_array_elements(content) WITH ORDINALITY AS parts (part, n)
                   WHERE part ->> 'text' !~ '^\s*(<|$)' ORDER BY n LIMIT 1) END AS said
        FROM fresh CROSS JOIN LATERAL json_to_record(CASE json_typeof(data) WHEN 'object' THEN data ELSE '{}' END) AS d (
            role text, content json)
        WHERE type = 'message.added' AND role = 'user'),
    words AS (
        SELECT DISTINCT ON (key) key, annal._title(said) AS words
        FROM messages WHERE said !~ '^\s*(<|$)' ORDER BY key, seq)
    INSERT INTO annal._session_rows AS r
    SELECT key, o.to_seq, o.first_at, s.created_at, o.updated_at, o.active_at,
           CASE WHEN s.about_end THEN s.ended_at ELSE o.ended_at END, s.status, coalesce(said.said, '{}'), w.words, u.model,
           u.turn, coalesce(u.turns, 0), u.input_tokens, u.output_tokens, u.cached_input_tokens, u.cache_write_tokens,
           u.cost_microusd
    FROM old o LEFT JOIN words w USING (key) LEFT JOIN new_status s USING (key) LEFT JOIN said USING (key)
         LEFT JOIN used u USING (key)
    ON CONFLICT (key) DO UPDATE SET
        seq = excluded.seq,
        created_at = greatest(r.created_at, excluded.created_at),
        updated_at = greatest(r.updated_at, excluded.updated_at),
        last_activity_at = greatest(r.last_activity_at, excluded.last_activity_at),
        ended_at = excluded.ended_at,
        status = coalesce(excluded.status, r.status),
        said = r.said || excluded.said,
        words = coalesce(r.words, excluded.words),
        model = coalesce(r.model, excluded.model),
        turn = coalesce(excluded.turn, r.turn),
        turns = r.turns + excluded.turns,
        input_tokens = annal._plus(r.input_tokens, excluded.input_tokens),
        output_tokens = annal._plus(r.output_tokens, excluded.output_tokens),
        cached_input_tokens = annal._plus(r.cached_input_tokens, excluded.cached_input_tokens),
        cache_write_tokens = annal._plus(r.cache_write_tokens, excluded.cache_write_tokens),
        cost_microusd = annal._plus(r.cost_microusd, excluded.cost_microusd);
END $$;

-- Do the same, also if an event cannot be computed with, for example because a sum overflows or a turn_id is too long
-- for an index: then its session only gets the times of these events, and other sessions are not delayed.
CREATE OR REPLACE FUNCTION annal._fold(keys bigint[], lasts bigint[], firsts timestamptz[], latests timestamptz[],
                                       actives timestamptz[], event_keys bigint[], event_seqs bigint[],
                                       event_lasts bigint[], since date, until date) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM annal._add_to_rows(keys, lasts, firsts, latests, actives, event_keys, event_seqs, event_lasts, since, until);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    FOR i IN 1 .. cardinality(keys) LOOP
        BEGIN
            PERFORM annal._add_to_rows(keys[i:i], lasts[i:i], firsts[i:i], latests[i:i], actives[i:i],
                                       coalesce(array_agg(e.key), '{}'), coalesce(array_agg(e.seq), '{}'),
                                       coalesce(array_agg(e.last), '{}'), since, until)
            FROM unnest(event_keys, event_seqs, event_lasts) AS e (key, seq, last) WHERE e.key = keys[i];
        EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
            RAISE WARNING 'session with key %: its rows get only the times of events up to %: %', keys[i], lasts[i], SQLERRM;
            PERFORM annal._add_to_rows(keys[i:i], lasts[i:i], firsts[i:i], latests[i:i], actives[i:i], '{}', '{}', '{}',
                                       since, until);
        END;
    END LOOP;
END $$;

-- Lock the rows: one process at a time builds rows. It need not lock heads: batches do not touch rows, and they only
-- add events after those in the queue.
CREATE OR REPLACE FUNCTION annal._lock_rows() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtext('annal'), hashtext('rows'))
$$;

-- Fold the oldest batches, about `most` sessions and events together, but at least one batch. Requires the lock.
CREATE OR REPLACE FUNCTION annal._fold_oldest(most bigint) RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids bigint[] := ARRAY(
        SELECT id FROM (SELECT id, sum(size) OVER (ORDER BY id) - size AS before
                        FROM (SELECT id, size FROM annal._unfolded ORDER BY id LIMIT 10000) AS q) AS q
        WHERE before < most);
BEGIN
    IF ids = '{}' THEN
        RETURN;
    END IF;
    PERFORM annal._fold(keys, lasts, firsts, latests, actives, coalesce(event_keys, '{}'), coalesce(event_seqs, '{}'),
                        coalesce(event_lasts, '{}'), since, until)
    FROM (SELECT array_agg(key) AS keys, array_agg(last) AS lasts, array_agg(first) AS firsts, array_agg(latest) AS latests,
                 array_agg(active) AS actives, min(since) AS since, max(until) AS until
          FROM (SELECT s.key, max(last) AS last, (array_agg(first ORDER BY id))[1] AS first, max(latest) AS latest,
                       max(active) AS active, min(since) AS since, max(since) AS until
                FROM annal._unfolded CROSS JOIN unnest(keys, lasts, firsts, latests, actives)
                     AS s (key, last, first, latest, active)
                WHERE id = ANY (ids) GROUP BY s.key) AS s) AS sessions,
         (SELECT array_agg(e.key) AS event_keys, array_agg(e.seq) AS event_seqs, array_agg(e.last) AS event_lasts
          FROM annal._unfolded CROSS JOIN unnest(event_keys, event_seqs, event_lasts) AS e (key, seq, last)
          WHERE id = ANY (ids)) AS events;
    DELETE FROM annal._unfolded WHERE id = ANY (ids);
END $$;

-- Fold all existing batches up to the last one that arrived before a day. Requires the lock.
CREATE OR REPLACE FUNCTION annal._fold_before(day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := (SELECT max(id) FROM annal._unfolded WHERE since < day);
BEGIN
    WHILE EXISTS (SELECT FROM annal._unfolded WHERE id <= newest) LOOP
        PERFORM annal._fold_oldest(50000);
    END LOOP;
END $$;

-- Return the lag of the rows: the number of batches not included, the age of the oldest, and the first and last id.
CREATE OR REPLACE FUNCTION annal.rows_behind(OUT batches bigint, OUT seconds float8, OUT first bigint, OUT last bigint)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(*), greatest(0, extract(epoch FROM clock_timestamp() - min(made_at)))::float8, min(id), max(id)
    FROM annal._unfolded
$$;

-- Build the rows of the oldest batches and return what remains. Does nothing if another process is building rows, or
-- if the oldest batch is younger than `min_age` seconds: many batches together cost little more than one. Shippers
-- may call it without owning the tables.
CREATE OR REPLACE FUNCTION annal._fold_queued(most bigint, min_age float8 DEFAULT 0, OUT batches bigint, OUT seconds float8,
                                              OUT first bigint, OUT last bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT * INTO batches, seconds, first, last FROM annal.rows_behind();
    IF batches = 0 OR seconds < min_age THEN
        RETURN;
    END IF;
    IF pg_try_advisory_xact_lock(hashtext('annal'), hashtext('rows')) THEN
        PERFORM annal._fold_oldest(most);
    END IF;
    SELECT * INTO batches, seconds, first, last FROM annal.rows_behind();
END $$;

-- Compute the rows again from the events in _events.
CREATE OR REPLACE FUNCTION annal._fold_again(of_keys bigint[]) RETURNS void LANGUAGE sql AS $$
    WITH events AS MATERIALIZED (
        SELECT e.key, e.seq, e.ts, e.type, h.seq AS head FROM annal._events e JOIN annal._heads h USING (key)
        WHERE e.key = ANY (of_keys)),
    sessions AS (
        SELECT key, head, (array_agg(ts ORDER BY seq))[1] AS first_at, max(ts) AS updated_at,
               max(ts) FILTER (WHERE type <> 'session.updated') AS active_at
        FROM events GROUP BY key, head),
    sums AS (
        SELECT array_agg(key) AS keys, array_agg(head) AS lasts, array_agg(first_at) AS firsts,
               array_agg(updated_at) AS latests, array_agg(active_at) AS actives
        FROM sessions),
    reads AS (
        SELECT coalesce(array_agg(key), '{}') AS keys, coalesce(array_agg(seq), '{}') AS seqs FROM events
        WHERE type LIKE 'session%' OR type LIKE 'turn%' OR type = 'agent.turn.usage' OR type = 'message.added')
    SELECT annal._fold(sums.keys, lasts, firsts, latests, actives, reads.keys, reads.seqs, reads.seqs, '-infinity', 'infinity')
    FROM sums, reads
$$;
