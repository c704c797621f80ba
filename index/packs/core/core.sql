-- pack core   version 17  database sessions.db
-- SPDX-License-Identifier: Apache-2.0
--
-- What every store keeps: one row per session, per turn, per call of a tool, and what was stored
-- beside the journals. docs/packs/core.md is the page for users. The columns of sessions down to
-- git_branch, the columns of turns down to cost_usd, and the indexes are as the gvAgent design
-- prints them; the columns after these are additions.
--
-- Written by C code (index/pack/applier.c), so no handler may read or write them:
--   the row of a session is created by its first event, whatever its type: agent_id, provider and
--   model are '' and created_at is that event's ts until session.created says more;
--   events counts the events; updated_at is the latest ts of all of them, last_activity_at the
--   latest of all but session.updated.
--
-- Tokens. input_tokens includes tokens that were read from or written to a cache
-- (cached_input_tokens and cache_write_tokens are their numbers), total_tokens = input + output. Two
-- kinds of events have tokens, and both are added to the sum, so a producer reports each token in
-- one event only:
--   agent.turn.usage   an increment, any number of times; with turn_id it also adds to that turn.
--                      Importers use this event, and give turn.completed no tokens.
--   turn.completed, turn.failed, turn.cancelled   the usage of the turn, for producers that know it
--                      only then.
-- Money is added up in millionths of a dollar (cost_microusd, or cost_usd rounded to them), so that
-- the sum does not depend on the order; total_cost_usd and turns.cost_usd are computed from it. A
-- cost that no event reported is NULL, not 0, and so is a number of tokens that no event reported.
-- usage_events has a row for each event with tokens or a cost, with its time: a range of times, and
-- days of any zone, are sums over it. usage has the same tokens by day (of the event, in UTC) and
-- model (the event's, else the session's at that time), separately for events with and without a
-- cost, for each tier of service, and for prompts above a length from which some models cost more:
-- its sums over a session are the session's. usage_costs adds what can be computed from prices;
-- usage_event_costs does so for each event.
--
-- Turns. turn_id is unique within its session; turns.id, which must be unique in the store, is
-- session:turn_id. An event about a turn without a turn_id means the newest open turn. A turn that
-- has ended does not change any more, and its tokens are not added twice. A missing or taken
-- sequence becomes the next free number. A turn that ends without a beginning receives a row that
-- begins and ends there, so that a second end is recognized. turn_edges lists the allowed changes;
-- a status that it does not list is a producer's word for started. An append through the pack
-- refuses other changes; such an event that is in the journal nevertheless changes nothing.
-- A turn that is taken back (turn.rolled_back, turn.abandoned) keeps its row, its time and its
-- tokens, which were used; live_status is its previous status, which turn.restored restores.
--
-- Records. record_origins says which records of other logs a session has, by the identity that their
-- source gave them (data.source.origin), so that an importer finds the session that has one already;
-- and which sessions are known from the log of their agent, and which from its telemetry. An agent's log
-- says more: its telemetry is not counted any more after the event telemetry.superseded of the session.
-- After record.moved, a record of a sub-agent counts in its parent only: the parent's importer found that
-- the sub-agent's log began with a copy of it, and appends the negative usage, too.
--
-- Tools. A call has a row from its tool.called on, which is written before the tool runs. A result
-- belongs to the newest call with its call_id, and only the first result is kept. A result without
-- a call has a row too, without called_at; if its tool.called follows later, as in logs of parallel
-- calls, it uses that row. tool.updated says how a call ended whose result preceded its end.
-- dangling lists the calls without a result.
--
-- Status changes only with these events: session.created ("idle" by default),
-- session.status_changed, session.paused ("paused"), session.resumed ("idle"), session.ended
-- ("ended"), session.updated with a status, and session.transition. data.status replaces the
-- word in brackets.
-- The title is the title in an event, else the user's first words, or the first later ones that are
-- more than a single word such as "hi"; a command such as /clear is replaced by any later words. In
-- a script without spaces four letters are more than a word. If agents add text to the words, "said"
-- has the user's words. A title in a later event replaces it.
-- session.pruned deletes the rows of a session from all tables; events that it appends later start
-- from nothing.
--
-- The types with an underscore are from older producers.
--
-- annal_count(x, ...) is the first argument that is a number and not below 0, as an integer; 0 if
-- there is none. annal_increment(x, ...) is the first that is a number: it may correct an earlier
-- count. annal_cost(microusd, usd) is the cost in millionths of a dollar, 0 if neither is given.

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
    total_tokens       INTEGER DEFAULT 0, -- NULL until an event reports it
    total_cost_usd     REAL DEFAULT 0,    -- as total_tokens
    working_directory  TEXT,
    git_branch         TEXT,
    parent_session_id  TEXT,
    title              TEXT,
    ended_at           TEXT,
    input_tokens       INTEGER,
    output_tokens      INTEGER,
    cached_input_tokens INTEGER,
    cache_write_tokens INTEGER,
    cost_microusd      INTEGER,
    events             INTEGER NOT NULL DEFAULT 0,
    time_from          TEXT, -- 'of the file': an importer found no time in the log
    title_from         TEXT  -- 'said': the title is the user's words
);

CREATE INDEX idx_sessions_status ON sessions(status);
CREATE INDEX idx_sessions_flow ON sessions(flow_id);
CREATE INDEX idx_sessions_activity ON sessions(last_activity_at);
CREATE INDEX idx_sessions_parent ON sessions(parent_session_id, id)
    WHERE parent_session_id IS NOT NULL;
CREATE INDEX idx_sessions_time_from ON sessions(time_from) WHERE time_from IS NOT NULL;

-- The directories in which a session worked: a row for each time that an event named another
-- directory.
CREATE TABLE session_directories (
    session_id    TEXT NOT NULL,
    seq           INTEGER NOT NULL,
    timestamp     TEXT NOT NULL,
    directory     TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

-- The logs from which a session was imported, and the hosts that imported them: the log with which
-- it began, and each other log that added events, as after a project was moved.
CREATE TABLE session_sources (
    session_id    TEXT NOT NULL,
    seq           INTEGER NOT NULL,
    source_host   TEXT,
    source_path   TEXT,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

CREATE INDEX idx_session_sources_path ON session_sources(source_path);

CREATE VIEW session_latest_sources AS
    SELECT session_id, source_host, source_path FROM session_sources s
    WHERE seq = (SELECT max(seq) FROM session_sources o WHERE o.session_id = s.session_id);

-- Changes of the logs of imported sessions. Such an event has the time of the event before it, so it
-- changes no time of the session; noticed_at is when the change was noticed.
CREATE TABLE source_events (
    session_id    TEXT NOT NULL,
    seq           INTEGER NOT NULL,
    what          TEXT NOT NULL,    -- deleted, shrank, replaced, returned
    path          TEXT,
    kind          TEXT,             -- of the log: claude-code
    generation    INTEGER,          -- of the copy with the bytes before
    bytes_before  INTEGER,
    bytes_after   INTEGER,
    noticed_at    TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

-- Documents that an import found incomplete, and a later import whole: how many of the session's
-- events import.unreadable and import.unknown before it no longer tell of the log.
CREATE TABLE log_recoveries (
    session_id    TEXT NOT NULL,
    seq           INTEGER NOT NULL,
    lines         INTEGER NOT NULL,
    layouts       INTEGER NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

-- A log of a session to which something happened; gone: it was deleted, and has not returned.
CREATE VIEW source_logs AS
    SELECT session_id, path, max(kind) AS kind, sum(what = 'deleted') > sum(what = 'returned') AS gone,
           sum(what = 'deleted') AS deleted, sum(what = 'shrank') AS shrank,
           sum(what = 'replaced') AS replaced, max(noticed_at) AS noticed_at
    FROM source_events GROUP BY session_id, path;

-- One word for each of these sessions: deleted if none of its logs exists, as far as is known.
CREATE VIEW source_states AS
    SELECT session_id,
           CASE WHEN max(gone) AND NOT EXISTS (
                    SELECT 1 FROM session_sources s
                    LEFT JOIN source_logs o ON o.session_id = s.session_id AND o.path = s.source_path
                    WHERE s.session_id = l.session_id AND NOT coalesce(o.gone, 0))
                THEN 'deleted'
                WHEN sum(shrank) > 0 THEN 'shrank' WHEN sum(replaced) > 0 THEN 'replaced'
                WHEN NOT max(gone) THEN 'returned' END AS state,
           max(noticed_at) AS noticed_at
    FROM source_logs l GROUP BY session_id;

-- The project of each session: the directory in which it began, under its latest name. A directory
-- was moved if a session began in it and ended in another directory, neither of them is within the
-- other, no session began in it after that, and none began in the other directory before: then both
-- existed, and the session only changed to the other.
CREATE VIEW session_projects AS
    WITH RECURSIVE ends AS MATERIALIZED (
        SELECT a.session_id, a.directory AS begun, a.timestamp AS begun_at,
               z.directory AS ended, z.timestamp AS ended_at
        FROM (SELECT session_id, min(seq) AS first, max(seq) AS last FROM session_directories
              GROUP BY session_id) s
        JOIN session_directories a ON a.session_id = s.session_id AND a.seq = s.first
        JOIN session_directories z ON z.session_id = s.session_id AND z.seq = s.last),
    moves AS MATERIALIZED (
        SELECT begun, ended, max(ended_at) AS at FROM ends AS e
        WHERE begun <> ended AND substr(ended, 1, length(begun) + 1) <> begun || '/'
          AND substr(begun, 1, length(ended) + 1) <> ended || '/'
          AND NOT EXISTS (SELECT 1 FROM ends AS o
                          WHERE o.begun = e.begun AND o.begun_at > e.ended_at)
          AND NOT EXISTS (SELECT 1 FROM ends AS o JOIN ends AS p ON p.begun = e.begun AND p.begun_at > o.begun_at
                          WHERE o.begun = e.ended)
        GROUP BY begun),
    names (directory, name, depth) AS (
        SELECT DISTINCT begun, begun, 0 FROM ends
        UNION ALL
        SELECT n.directory, m.ended, n.depth + 1 FROM names n JOIN moves m ON m.begun = n.name
        WHERE n.depth < 20),
    latest AS MATERIALIZED (SELECT directory, name, max(depth) FROM names GROUP BY directory)
    -- one row of ends for each session; with GROUP BY, SQLite joins this view by an index, not by a scan
    SELECT e.session_id, l.name AS project, e.begun AS directory
    FROM ends e JOIN latest l ON l.directory = e.begun GROUP BY e.session_id;

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
    seq           INTEGER, -- seq of the event that began it
    live_status   TEXT,    -- previous status of a turn that was taken back
    UNIQUE(session_id, sequence)
);

CREATE INDEX idx_turns_session ON turns(session_id);
-- An event about a turn that names none means the newest open one.
CREATE INDEX idx_turns_open ON turns(session_id, sequence)
    WHERE completed_at IS NULL AND live_status IS NULL;

CREATE VIEW turn_edges (from_status, to_status) AS VALUES
    ('pending', 'started'), ('pending', 'streaming'), ('pending', 'completed'),
    ('pending', 'failed'), ('pending', 'cancelled'),
    ('started', 'streaming'), ('started', 'completed'), ('started', 'failed'),
    ('started', 'cancelled'),
    ('streaming', 'completed'), ('streaming', 'failed'), ('streaming', 'cancelled');

CREATE TABLE tool_calls (
    session_id    TEXT NOT NULL,
    call_id       TEXT NOT NULL,    -- '#' and the seq if the event has none
    seq           INTEGER NOT NULL, -- of tool.called, else of the result
    tool          TEXT,
    turn_id       TEXT,
    status        TEXT NOT NULL,    -- called, returned, failed
    called_at     TEXT,
    returned_at   TEXT,
    result_seq    INTEGER,
    duration_ms   INTEGER,
    exit_code     INTEGER,
    output_bytes  INTEGER,
    output_sha256 TEXT,             -- of the artifact that contains the output
    PRIMARY KEY (session_id, call_id, seq)
) WITHOUT ROWID;

-- The results whose call did not come yet.
CREATE INDEX idx_tool_calls_uncalled ON tool_calls(session_id, call_id) WHERE called_at IS NULL;

CREATE TABLE usage_events (
    session_id    TEXT NOT NULL,
    seq           INTEGER NOT NULL,
    timestamp     TEXT NOT NULL,
    model         TEXT NOT NULL,    -- '' if no event names it
    tier          TEXT NOT NULL,    -- '': standard; fast, batch, flex, priority, us
    prompt_over   INTEGER NOT NULL, -- 0, 32000, 128000, 200000, 256000, 272000: the prompts had more
                                    -- tokens; below 0: so had their sum, which is all that is known
    requests      INTEGER NOT NULL, -- answers for which tokens or a cost were reported
    input_tokens  INTEGER,          -- NULL: not reported; also below
    output_tokens INTEGER,
    cached_input_tokens INTEGER,
    cache_write_tokens INTEGER,
    cache_write_1h_tokens INTEGER,  -- the part of cache_write_tokens kept for an hour
    web_searches  INTEGER,
    cost_microusd INTEGER,          -- NULL if the event has none
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

-- As usage_events, by day.
CREATE TABLE usage (
    session_id    TEXT NOT NULL,
    day           TEXT NOT NULL,    -- 2026-03-02
    model         TEXT NOT NULL,    -- '' if no event names it
    tier          TEXT NOT NULL,    -- '': standard; fast, batch, flex, priority, us
    prompt_over   INTEGER NOT NULL, -- 0, 32000, 128000, 200000, 256000, 272000: the prompts had more
                                    -- tokens; below 0: so had their sum, which is all that is known
    requests      INTEGER NOT NULL, -- answers for which tokens or a cost were reported
    input_tokens  INTEGER,          -- NULL: not reported; also below
    output_tokens INTEGER,
    cached_input_tokens INTEGER,
    cache_write_tokens INTEGER,
    cache_write_1h_tokens INTEGER,  -- the part of cache_write_tokens kept for an hour
    web_searches  INTEGER,
    has_cost      INTEGER NOT NULL, -- 1: of events with a cost; 0: of others
    cost_microusd INTEGER,          -- NULL where has_cost is 0
    PRIMARY KEY (session_id, day, model, tier, prompt_over, has_cost)
) WITHOUT ROWID;

CREATE TABLE record_origins (
    session_id    TEXT NOT NULL,
    origin        TEXT NOT NULL,
    PRIMARY KEY (session_id, origin)
) WITHOUT ROWID;

CREATE INDEX idx_record_origins ON record_origins(origin);
CREATE TRIGGER usage_by_days AFTER INSERT ON usage_events BEGIN
    INSERT INTO usage (session_id, day, model, tier, prompt_over, requests, input_tokens,
                       output_tokens, cached_input_tokens, cache_write_tokens,
                       cache_write_1h_tokens, web_searches, has_cost, cost_microusd)
    VALUES (NEW.session_id, substr(NEW.timestamp, 1, 10), NEW.model, NEW.tier, NEW.prompt_over,
            NEW.requests, NEW.input_tokens, NEW.output_tokens, NEW.cached_input_tokens,
            NEW.cache_write_tokens, NEW.cache_write_1h_tokens, NEW.web_searches,
            NEW.cost_microusd IS NOT NULL, NEW.cost_microusd)
    ON CONFLICT (session_id, day, model, tier, prompt_over, has_cost) DO UPDATE SET
        requests = requests + excluded.requests,
        input_tokens = coalesce(input_tokens + excluded.input_tokens, input_tokens,
                                excluded.input_tokens),
        output_tokens = coalesce(output_tokens + excluded.output_tokens, output_tokens,
                                 excluded.output_tokens),
        cached_input_tokens = coalesce(cached_input_tokens + excluded.cached_input_tokens,
                                       cached_input_tokens, excluded.cached_input_tokens),
        cache_write_tokens = coalesce(cache_write_tokens + excluded.cache_write_tokens,
                                      cache_write_tokens, excluded.cache_write_tokens),
        cache_write_1h_tokens = coalesce(cache_write_1h_tokens + excluded.cache_write_1h_tokens,
                                         cache_write_1h_tokens, excluded.cache_write_1h_tokens),
        web_searches = coalesce(web_searches + excluded.web_searches, web_searches,
                                excluded.web_searches),
        cost_microusd = cost_microusd + excluded.cost_microusd;
END;

-- Prices from price.set events: dollars for a million tokens. They override the list in prices.sql.
CREATE TABLE price_settings (
    session_id    TEXT NOT NULL,
    model         TEXT NOT NULL,    -- a pattern with * and ?, of the name without its provider
    since         TEXT NOT NULL,    -- 2026-03-02; '': always
    tier          TEXT NOT NULL,    -- of service; '': standard
    above         INTEGER NOT NULL, -- for prompts with more tokens than this
    input         REAL NOT NULL,
    output        REAL NOT NULL,
    cache_read    REAL,             -- NULL: as input
    cache_write   REAL,
    cache_write_1h REAL,            -- NULL: twice the input
    web_search    REAL,             -- dollars for a thousand searches
    source        TEXT,
    PRIMARY KEY (session_id, model, since, tier, above)
) WITHOUT ROWID;

-- list_prices is in prices.sql.
CREATE VIEW prices AS
    SELECT model, since, tier, above, input, output, cache_read, cache_write,
           coalesce(cache_write_1h, 2 * input) AS cache_write_1h, web_search, source, 1 AS is_set
    FROM price_settings
    UNION ALL
    SELECT model, since, tier, above, input, output, cache_read, cache_write, cache_write_1h,
           web_search, source, 0
    FROM list_prices;

-- What a token costs in millionths of a dollar, for all that was used without a cost: by a price that
-- was set before one of the list, the longest pattern, the longest prompts, the newest that held on that
-- day. Of a sum of prompts, only what long ones and short ones cost alike has a price.
CREATE VIEW usage_rates AS
    WITH days AS MATERIALIZED (
        SELECT model, day, tier, prompt_over, abs(prompt_over) AS prompt FROM usage WHERE NOT has_cost
        UNION
        SELECT model, day, tier, prompt_over, 0 FROM usage WHERE NOT has_cost AND prompt_over < 0),
    priced AS MATERIALIZED (
        SELECT n.name, p.* FROM (SELECT DISTINCT model AS name FROM days) n JOIN prices p
        ON n.name GLOB p.model OR n.name GLOB '*[/.:]' || p.model),
    ranked AS (
        SELECT d.day, d.prompt_over, p.*, row_number() OVER (
            PARTITION BY d.model, d.day, d.tier, d.prompt_over, d.prompt
            ORDER BY p.is_set DESC, length(p.model) DESC, p.above DESC, p.since DESC) AS place
        FROM days d JOIN priced p ON p.name = d.model AND p.since <= d.day
             AND p.tier = d.tier AND p.above <= d.prompt)
    SELECT name AS model, day, tier, prompt_over, input, output,
           coalesce(cache_read, input) AS cache_read, coalesce(cache_write, input) AS cache_write,
           cache_write_1h, web_search
    FROM ranked WHERE place = 1
    GROUP BY name, day, tier, prompt_over HAVING min(input) = max(input) AND min(output) = max(output);

-- Nothing. SQLite expects at most 100 rows of a query with GROUP BY, such as usage_rates, and then
-- reads all of them for each row that it joins. With this view beside it, it builds an index of them.
CREATE VIEW no_rates AS
    SELECT model, day, tier, prompt_over, 0 AS input, 0 AS output, 0 AS cache_read, 0 AS cache_write,
           0 AS cache_write_1h, 0 AS web_search
    FROM usage WHERE 0;

-- The sessions whose log reports its cost in events without tokens: it is the cost of all their
-- tokens.
CREATE VIEW usage_totals AS
    SELECT session_id FROM usage WHERE has_cost GROUP BY session_id
    HAVING sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) = 0;

-- usage with its cost. If the log did not report it, it is computed from usage_rates. A tier, a
-- cache or a search without a price leaves the cost unknown: then cost_microusd is NULL.
-- costed_tokens is the part of tokens that the cost covers. Computed costs are not rounded here:
-- their sums are rounded to six digits of a microdollar and then to microdollars, so that each
-- grouping of the same events has the same cost. round(x * 1e6) / 1e6 differs from round(x, 6), for
-- which SQLite prints the number and reads it again, only near ties of the seventh digit of the
-- fraction, and after the fifteenth digit of the number.
CREATE VIEW usage_costs AS
    WITH totals AS MATERIALIZED (SELECT session_id FROM usage_totals),
    rates AS MATERIALIZED (SELECT * FROM usage_rates UNION ALL SELECT * FROM no_rates),
    computed AS (
        SELECT u.*, u.session_id IN (SELECT session_id FROM totals) AS in_total,
               coalesce(u.input_tokens, 0) + coalesce(u.output_tokens, 0) AS tokens,
               (coalesce(u.input_tokens, 0) - coalesce(u.cached_input_tokens, 0)
                - coalesce(u.cache_write_tokens, 0)) * r.input
               + coalesce(u.cached_input_tokens, 0) * r.cache_read
               + (coalesce(u.cache_write_tokens, 0) - coalesce(u.cache_write_1h_tokens, 0))
                 * r.cache_write
               + CASE WHEN u.cache_write_1h_tokens <> 0
                      THEN u.cache_write_1h_tokens * r.cache_write_1h ELSE 0 END
               + CASE WHEN u.web_searches <> 0
                      THEN u.web_searches * 1000 * r.web_search ELSE 0 END
               + coalesce(u.output_tokens, 0) * r.output AS computed_microusd
        FROM usage u LEFT JOIN rates r
             ON NOT u.has_cost AND r.model = u.model AND r.day = u.day
             AND r.tier = u.tier AND r.prompt_over = u.prompt_over
             AND u.session_id NOT IN (SELECT session_id FROM totals))
    SELECT session_id, day, model, tier, prompt_over, requests, input_tokens, output_tokens,
           cached_input_tokens, cache_write_tokens, cache_write_1h_tokens, web_searches,
           coalesce(cost_microusd, computed_microusd) AS cost_microusd, computed_microusd,
           CASE WHEN in_total OR coalesce(cost_microusd, computed_microusd) IS NOT NULL
                THEN tokens ELSE 0 END AS costed_tokens,
           tokens
    FROM computed;

-- As usage_costs, for each event.
CREATE VIEW usage_event_costs AS
    WITH totals AS MATERIALIZED (SELECT session_id FROM usage_totals),
    rates AS MATERIALIZED (SELECT * FROM usage_rates UNION ALL SELECT * FROM no_rates),
    computed AS (
        SELECT u.*, u.session_id IN (SELECT session_id FROM totals) AS in_total,
               coalesce(u.input_tokens, 0) + coalesce(u.output_tokens, 0) AS tokens,
               (coalesce(u.input_tokens, 0) - coalesce(u.cached_input_tokens, 0)
                - coalesce(u.cache_write_tokens, 0)) * r.input
               + coalesce(u.cached_input_tokens, 0) * r.cache_read
               + (coalesce(u.cache_write_tokens, 0) - coalesce(u.cache_write_1h_tokens, 0))
                 * r.cache_write
               + CASE WHEN u.cache_write_1h_tokens <> 0
                      THEN u.cache_write_1h_tokens * r.cache_write_1h ELSE 0 END
               + CASE WHEN u.web_searches <> 0
                      THEN u.web_searches * 1000 * r.web_search ELSE 0 END
               + coalesce(u.output_tokens, 0) * r.output AS computed_microusd
        FROM usage_events u LEFT JOIN rates r
             ON u.cost_microusd IS NULL AND r.model = u.model AND r.day = substr(u.timestamp, 1, 10)
             AND r.tier = u.tier AND r.prompt_over = u.prompt_over
             AND u.session_id NOT IN (SELECT session_id FROM totals))
    SELECT session_id, seq, timestamp, model, tier, prompt_over, requests, input_tokens, output_tokens,
           cached_input_tokens, cache_write_tokens, cache_write_1h_tokens, web_searches,
           coalesce(cost_microusd, computed_microusd) AS cost_microusd, computed_microusd,
           CASE WHEN in_total OR coalesce(cost_microusd, computed_microusd) IS NOT NULL
                THEN tokens ELSE 0 END AS costed_tokens,
           tokens
    FROM computed;

CREATE VIEW usage_by_day AS
    SELECT day, count(DISTINCT session_id) AS sessions, sum(requests) AS requests,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cached_input_tokens) AS cached_input_tokens,
           sum(cache_write_tokens) AS cache_write_tokens,
           round(round(sum(cost_microusd) * 1e6) / 1e6) / 1e6 AS cost_usd,
           round(round(sum(computed_microusd) * 1e6) / 1e6) / 1e6 AS computed_cost_usd,
           sum(costed_tokens) AS costed_tokens
    FROM usage_costs GROUP BY day;

CREATE VIEW usage_by_model AS
    SELECT model, count(DISTINCT session_id) AS sessions, sum(requests) AS requests,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cached_input_tokens) AS cached_input_tokens,
           sum(cache_write_tokens) AS cache_write_tokens,
           round(round(sum(cost_microusd) * 1e6) / 1e6) / 1e6 AS cost_usd,
           round(round(sum(computed_microusd) * 1e6) / 1e6) / 1e6 AS computed_cost_usd,
           sum(costed_tokens) AS costed_tokens
    FROM usage_costs GROUP BY model;

CREATE VIEW usage_by_session AS
    SELECT session_id, min(day) AS first_day, max(day) AS last_day, sum(requests) AS requests,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cached_input_tokens) AS cached_input_tokens,
           sum(cache_write_tokens) AS cache_write_tokens,
           round(round(sum(cost_microusd) * 1e6) / 1e6) / 1e6 AS cost_usd,
           round(round(sum(computed_microusd) * 1e6) / 1e6) / 1e6 AS computed_cost_usd,
           sum(costed_tokens) AS costed_tokens
    FROM usage_costs GROUP BY session_id;

-- The duration of a call: from its result, else from the times of the two events, if the log has
-- times. A duration below 0, or of more than 31 days between two events, is a fault of a clock, and
-- counts as unknown.
CREATE VIEW tool_durations AS
    SELECT session_id, call_id, seq, tool, status, called_at, returned_at,
           CASE WHEN said_ms >= 0 THEN said_ms
                WHEN said_ms IS NULL AND between_ms BETWEEN 0 AND 31 * 86400000 THEN between_ms
           END AS duration_ms
    FROM (SELECT *, duration_ms AS said_ms,
                 CASE WHEN session_id NOT IN (SELECT id FROM sessions
                                              WHERE time_from IS 'of the file')
                      THEN CAST(round((julianday(returned_at) - julianday(called_at))
                                      * 86400000) AS INTEGER) END AS between_ms
          FROM tool_calls WHERE status <> 'called');

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
