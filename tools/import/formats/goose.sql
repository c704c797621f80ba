-- importer goose   version 4
-- SPDX-License-Identifier: Apache-2.0
-- reads: sessions messages usage_ledger
-- records: schema_version schema_info thread* provider* usage* sessions
-- recalls: session.created session.updated agent.turn.usage/usage.accumulated
-- recalls: turn.started turn.rolled_back turn.restored
-- files: sessions.db *.jsonl
-- places: $GOOSE_PATH_ROOT/data/sessions $XDG_DATA_HOME/goose/sessions ~/.local/share/goose/sessions
-- places: ~/.local/share/Block/goose/sessions ~/.goose/sessions
--
-- Sessions of goose: the tables sessions, messages and usage_ledger of its sessions.db, and the
-- older files with a line of metadata and a line for each message. docs/events.md lists the
-- resulting events; annal/import.h describes the tables that an importer can read.
--
--  (1) A session is a row of sessions, or a file. Times are seconds, or milliseconds if they are
--      too large for seconds.
--  (2) A message's content is blocks: toolRequest and toolResponse become calls and results, the
--      other blocks are the content of message.added.
--  (3) A user's message begins a turn, unless it only passes results to the model. An answer without
--      a call ends it. A turn of an earlier import that the database no longer has was taken back.
--  (4) Tokens are taken from usage_ledger, once for each row. The sums of a session's row, or of the
--      first line of a file, as far as they exceed its rows there, are an event of the end. If they
--      changed since an earlier import, the difference is an event; so is another title.
--  (5) The first event of a line contains the rest of the line under "extra".
--  (6) A session that was copied, or exported and imported, contains the messages of another
--      session with new ids: a message that is older than its session is recognized by its role, its
--      time and its content (record_owner), its tokens by their time and numbers. Data of another session is a record. A
--      copy with more tokens than its original counts all of them, because the log does not contain
--      its initial number.
--  (7) Rows without a session belong to the session before them. Lines of a file have no identity
--      but their place: lines with the same bytes are messages of their own.

-- detect
SELECT max(CASE
    WHEN json ->> '$.table' = 'sessions' AND json_type(json, '$.row.working_dir') IS NOT NULL THEN 90
    WHEN json ->> '$.table' = 'messages' AND json_type(json, '$.row.content_json') IS NOT NULL THEN 90
    WHEN json_type(json, '$.working_dir') = 'text' AND json_type(json, '$.message_count') IS NOT NULL THEN 90
    WHEN json_type(json, '$.created') = 'integer' AND json_type(json, '$.content') = 'array'
         AND json ->> '$.content[0].type' IN ('text', 'toolRequest', 'toolResponse') THEN 60
    ELSE 0 END) FROM lines

-- tables
sessions messages usage_ledger

-- rows
SELECT json_object('table', 'schema_version', 'row', json_object('version', version))
FROM schema_version WHERE EXISTS (SELECT 1 FROM sessions);

-- copies
ids: SELECT session_id(id), id FROM sessions
sessions: id IN ids
schema_version: 1
*: session_id IN ids

-- repeats

-- once
-- Names that goose gives to sessions without a name.
CREATE VIEW unnamed (pattern) AS VALUES ('CLI Session'), ('New Chat'), ('New session [0-9]*'), ('New session'), ('');

CREATE TABLE file (session TEXT, ts INTEGER);
INSERT INTO file SELECT session_id(stem), 1 FROM source;
-- rest_ts, rest_n: an answer without a call is the last of the turn.
CREATE TABLE sessions (session TEXT PRIMARY KEY, turn TEXT, turns INTEGER, parent TEXT, rest_ts INTEGER, rest_n INTEGER) WITHOUT ROWID;
-- When a session was created.
CREATE TABLE births (session TEXT PRIMARY KEY, ts INTEGER) WITHOUT ROWID;
-- The sums of a session, and what usage_ledger has of them. t: the time of the last message.
CREATE TABLE sums (session TEXT PRIMARY KEY, ts INTEGER, title TEXT, t INTEGER, input INTEGER, output INTEGER, cached INTEGER,
                   written INTEGER, cost REAL, source TEXT, n INTEGER,
                   ledger_input INTEGER DEFAULT 0, ledger_output INTEGER DEFAULT 0, ledger_cached INTEGER DEFAULT 0,
                   ledger_written INTEGER DEFAULT 0, ledger_cost REAL DEFAULT 0) WITHOUT ROWID;
CREATE VIEW rest AS
SELECT session, max(ts, coalesce(CASE WHEN t > 100000000000 THEN t * 1000 ELSE t * 1000000 END, 1)) AS ts, source, n,
       input > 0 OR output > 0 AS any,
       max(0, input - ledger_input) AS input, max(0, output - ledger_output) AS output, max(0, cached - ledger_cached) AS cached,
       max(0, written - ledger_written) AS written, max(0, round(cost - ledger_cost, 9)) AS cost,
       'goose usage ' || t || '  ' || coalesce(input, '') || ' ' || coalesce(output, '') AS origin
FROM sums;
CREATE VIEW counted AS
SELECT session, count(*) AS times, max(ts) AS ts, sum(coalesce(data ->> '$.input_tokens', 0)) AS input,
       sum(coalesce(data ->> '$.output_tokens', 0)) AS output, sum(coalesce(data ->> '$.cached_input_tokens', 0)) AS cached,
       sum(coalesce(data ->> '$.cache_write_tokens', 0)) AS written, round(sum(coalesce(data ->> '$.cost_usd', 0)), 9) AS cost
FROM recorded WHERE type = 'agent.turn.usage' AND id GLOB 'usage.accumulated*' GROUP BY session;
-- The turns of the log, to find those that it no longer has.
CREATE TABLE live (session TEXT, turn TEXT, ts INTEGER, n INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER, formerly TEXT);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (role TEXT, mid TEXT, source TEXT, session TEXT, ts INTEGER, turn TEXT, is_new INTEGER,
                  human INTEGER, main TEXT, named TEXT, t INTEGER, origin TEXT, owner TEXT, j TEXT, r TEXT, content TEXT);

CREATE TRIGGER note_session AFTER UPDATE OF named ON now WHEN NEW.main = 'meta' BEGIN
    INSERT INTO sums (session, ts, title, input, output, cached, written, cost, source, n)
    VALUES (NEW.session, coalesce(time_us(replace(NEW.r ->> '$.updated_at', ' ', 'T')), NEW.ts),
            coalesce(nullif(NEW.r ->> '$.description', ''), NEW.r ->> '$.name'), NEW.r ->> '$.accumulated_input_tokens',
            NEW.r ->> '$.accumulated_output_tokens', NEW.r ->> '$.accumulated_cache_read_tokens',
            NEW.r ->> '$.accumulated_cache_write_tokens', nullif(NEW.r ->> '$.accumulated_cost', 0), NEW.source, NEW.source ->> '$.line')
    ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER note_time AFTER UPDATE OF named ON now WHEN NEW.main = 'message' AND NEW.t > 0 BEGIN
    UPDATE sums SET t = max(coalesce(t, 0), NEW.t) WHERE session = NEW.session;
END;
CREATE TRIGGER note_ledger AFTER UPDATE OF named ON now WHEN NEW.main = 'usage' BEGIN
    UPDATE sums SET ledger_input = ledger_input + coalesce(NEW.r ->> '$.input_tokens', 0),
        ledger_output = ledger_output + coalesce(NEW.r ->> '$.output_tokens', 0),
        ledger_cached = ledger_cached + coalesce(NEW.r ->> '$.cache_read_tokens', 0),
        ledger_written = ledger_written + coalesce(NEW.r ->> '$.cache_write_tokens', 0),
        ledger_cost = ledger_cost + coalesce(NEW.r ->> '$.cost', NEW.r ->> '$.cost_usd', 0)
    WHERE session = NEW.session;
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, r, t, content, role, mid, source, session, ts, main)
    SELECT j, r, nullif(t, 0),
           CASE WHEN json_valid(r ->> '$.content_json') THEN json(r ->> '$.content_json')
                WHEN json_type(r, '$.content') = 'array' THEN r -> '$.content' END,
           r ->> '$.role', coalesce(r ->> '$.message_id', CAST(r ->> '$.id' AS TEXT), NEW.hash),
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n, 'record', r -> '$.id'),
           session_id(coalesce(CASE j ->> '$.table' WHEN 'sessions' THEN CAST(r ->> '$.id' AS TEXT)
                               ELSE CAST(r ->> '$.session_id' AS TEXT) END, f.session)),
           coalesce(time_us(replace(r ->> '$.created_at', ' ', 'T')), time_us(replace(r ->> '$.timestamp', ' ', 'T')),
                    CASE WHEN t > 100000000000 THEN t * 1000 WHEN t > 0 THEN t * 1000000 END, f.ts),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.table' = 'sessions' OR (NEW.n = 1 AND json_type(j, '$.working_dir') IS NOT NULL) THEN 'meta'
                WHEN j ->> '$.table' = 'usage_ledger' THEN 'usage'
                WHEN json_type(r, '$.role') = 'text' AND (json_valid(r ->> '$.content_json')
                     OR json_type(r, '$.content') = 'array') THEN 'message'
                ELSE 'record' END
    FROM source, file f,
         (SELECT j, CASE WHEN json_type(j, '$.table') = 'text' THEN j -> '$.row' ELSE j END AS r,
                 CAST(coalesce(j ->> '$.row.created_timestamp', j ->> '$.row.created', j ->> '$.created') AS INTEGER) AS t
          FROM (SELECT NEW.json AS j));
    -- A line with an id is the same record at each place.
    UPDATE now SET named = CASE WHEN mid = NEW.hash THEN NEW.hash ELSE substr(NEW.hash, 1, 32) END;
    UPDATE file SET (session, ts) = (SELECT session, ts FROM now);
    UPDATE now SET origin = CASE main
        WHEN 'message' THEN 'goose ' || role || ' ' || t || ' ' || length(content) || ' ' || substr(content, 1, 200)
        WHEN 'usage' THEN 'goose usage ' || t || ' ' || coalesce(r ->> '$.model', '') || ' ' || coalesce(r ->> '$.input_tokens', '')
            || ' ' || coalesce(r ->> '$.output_tokens', '') END;
    UPDATE now SET owner = nullif(record_owner(origin, session), session),
        source = substr(source, 1, length(source) - 1) || ',"origin":' || json_text(origin) || '}'
    WHERE origin IS NOT NULL;
    INSERT OR IGNORE INTO births
    SELECT session, time_us(replace(r ->> '$.created_at', ' ', 'T')) FROM now WHERE main = 'meta';
    UPDATE now SET owner = NULL
    WHERE main = 'message' AND t > 0 AND ts >= (SELECT b.ts FROM births b WHERE b.session = now.session);
    UPDATE now SET main = 'record', source = substr(source, 1, length(source) - 1) || ',"copied":true}'
    WHERE owner IS NOT NULL;
    UPDATE now SET is_new = NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session = now.session),
        human = main = 'message' AND role = 'user'
            AND EXISTS (SELECT 1 FROM json_each(content) b WHERE b.type = 'object' AND b.value ->> '$.type' <> 'toolResponse');
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, session, ts, 'session.created', 'session.created',
           CASE main WHEN 'meta' THEN json_fields(
               'id', json_text(session), 'agent_id', '"goose"', 'status', '"idle"', 'provider', nullif(r -> '$.provider_name', 'null'),
               'model', CASE WHEN json_valid(r ->> '$.model_config_json') THEN (r ->> '$.model_config_json') -> '$.model_name' END,
               'working_directory', r -> '$.working_dir',
               'title', CASE WHEN NOT EXISTS (SELECT 1 FROM unnamed
                                              WHERE coalesce(nullif(r ->> '$.description', ''), r ->> '$.name') GLOB pattern)
                        THEN coalesce(nullif(r -> '$.description', '""'), nullif(r -> '$.name', '""')) END,
               'parent_session_id', json_text(session_id(r ->> '$.parent_session_id')), 'source', source, 'extra', r)
           ELSE json_fields('id', json_text(session), 'agent_id', '"goose"', 'status', '"idle"', 'source', source) END, NEW.n
    FROM now WHERE is_new;
    UPDATE now SET main = 'record' WHERE main = 'meta' AND NOT is_new;
    INSERT OR IGNORE INTO sessions (session, turns) SELECT session, 0 FROM now;
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 1, n.session, n.ts, 'session.updated', 'session.parent',
           json_fields('set', json_fields('parent_session_id', json_text(owner)),
                       'source', json_remove(source, '$.origin', '$.copied')), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE owner IS NOT NULL AND s.parent IS NULL;
    UPDATE sessions SET parent = coalesce(parent, (SELECT owner FROM now)) WHERE session = (SELECT session FROM now);
    INSERT INTO out
    SELECT NEW.row, 1, n.session, coalesce(s.rest_ts, n.ts), 'turn.completed', s.turn || '.ended',
           json_fields('turn_id', json_text(s.turn), 'reason', CASE WHEN s.rest_ts IS NULL THEN '"next_turn"' ELSE '"answered"' END,
                       'source', source), NEW.n, mid || '.ends'
    FROM now n JOIN sessions s USING (session) WHERE human AND s.turn IS NOT NULL;
    UPDATE sessions SET turn = (SELECT mid FROM now), turns = turns + 1 WHERE session = (SELECT session FROM now WHERE human);
    INSERT OR IGNORE INTO live SELECT session, mid, ts, NEW.n FROM now WHERE human;
    UPDATE sessions SET (rest_ts, rest_n) = (
        SELECT CASE WHEN role = 'assistant' AND NOT EXISTS (
                   SELECT 1 FROM json_each(content) b WHERE b.type = 'object' AND b.value ->> '$.type' = 'toolRequest') THEN ts END, NEW.n FROM now)
    WHERE session = (SELECT session FROM now WHERE main = 'message');
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 2, n.session, n.ts, 'turn.started', mid || '.begins',
           json_fields('turn_id', json_text(mid), 'sequence', s.turns, 'status', '"running"', 'prompt_ref', json_text(mid),
                       'source', source), NEW.n
    FROM now n JOIN sessions s USING (session) WHERE human;
    UPDATE now SET turn = (SELECT s.turn FROM sessions s WHERE s.session = now.session);
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 3, session, ts, CASE main WHEN 'message' THEN 'message.added' WHEN 'usage' THEN 'agent.turn.usage'
               WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END,
           named || '.3',
           CASE main
           WHEN 'message' THEN json_fields('id', json_text(mid), 'role', json_text(role),
               'content', (SELECT json_group_array(json(b.value)) FROM json_each(content) b
                           WHERE b.type = 'object' AND coalesce(b.value ->> '$.type', '') NOT IN ('toolRequest', 'toolResponse')),
               'turn_id', json_text(turn), 'source', source, 'extra', json_remove(r, '$.content', '$.content_json'))
           WHEN 'usage' THEN json_fields('model', nullif(coalesce(r -> '$.model', r -> '$.model_name'), 'null'),
               'input_tokens', nullif(r -> '$.input_tokens', 'null'),
               'output_tokens', nullif(r -> '$.output_tokens', 'null'),
               'cached_input_tokens', nullif(r -> '$.cache_read_tokens', 'null'),
               'cache_write_tokens', nullif(r -> '$.cache_write_tokens', 'null'),
               'cost_usd', CASE WHEN coalesce(r ->> '$.cost', r ->> '$.cost_usd') > 0
                           THEN coalesce(nullif(r -> '$.cost', 'null'), r -> '$.cost_usd') END, 'source', source, 'extra', r)
           WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', coalesce(j -> '$.table', '"line"'), 'source', source, 'extra', j) END, NEW.n
    FROM now WHERE main <> 'meta';
    INSERT INTO out (row, k, session, ts, type, id, data, n)
    SELECT NEW.row, 4 + b.key, session, ts,
           CASE WHEN b.value ->> '$.type' = 'toolRequest' THEN 'tool.called'
                WHEN b.value ->> '$.toolResult.status' = 'error'
                     OR coalesce(b.value ->> '$.toolResult.value.isError', b.value ->> '$.toolResult.value.is_error', 0)
                     OR coalesce(b.value ->> '$.toolResult.value.structuredContent.exit_code', 0) <> 0 THEN 'tool.failed'
                ELSE 'tool.returned' END, named || '.tool.' || b.key,
           CASE b.value ->> '$.type'
           WHEN 'toolRequest' THEN json_fields('call_id', coalesce(b.value -> '$.id', json_text(NEW.hash || b.key)),
               'tool', coalesce(b.value -> '$.toolCall.value.name', '"unknown"'), 'input', b.value -> '$.toolCall.value.arguments',
               'message_id', json_text(mid), 'turn_id', json_text(turn), 'source', source,
               'extra', json_remove(b.value, '$.id', '$.toolCall.value.name', '$.toolCall.value.arguments'))
           ELSE json_fields('call_id', coalesce(b.value -> '$.id', json_text(NEW.hash || b.key)),
               'exit_code', CASE WHEN json_type(b.value, '$.toolResult.value.structuredContent.exit_code') = 'integer'
                            THEN b.value ->> '$.toolResult.value.structuredContent.exit_code' END,
               'output', coalesce(b.value -> '$.toolResult.value', b.value -> '$.toolResult.error', b.value -> '$.toolResult'),
               'turn_id', json_text(turn), 'source', source,
               'extra', json_remove(b.value, '$.id', '$.toolResult.value', '$.toolResult.error')) END, NEW.n
    FROM now, json_each(content) b
    WHERE main = 'message' AND b.type = 'object' AND b.value ->> '$.type' IN ('toolRequest', 'toolResponse');
END;

-- batch
SELECT session, ts, type, id, NULL, data, n, formerly FROM out ORDER BY row, k;
DELETE FROM out;

-- end
INSERT INTO out (row, k, session, ts, type, id, data, n)
SELECT n, 0, s.session, s.ts, 'session.updated',
       'title.' || (1 + (SELECT count(*) FROM recorded r WHERE r.session = s.session AND r.id GLOB 'title.*')),
       json_fields('set', json_fields('title', json_text(s.title)), 'source', s.source), n
FROM sums s WHERE NOT EXISTS (SELECT 1 FROM unnamed WHERE s.title GLOB pattern) AND s.title <> (
    SELECT coalesce(title, '') FROM (
        SELECT max(n), coalesce(r.data ->> '$.set.title', r.data ->> '$.title') AS title FROM recorded r
        WHERE r.session = s.session AND (r.type = 'session.created' OR r.id GLOB 'title.*')));
INSERT INTO out (row, k, session, ts, type, id, data, n)
SELECT n, 1, r.session, r.ts, 'agent.turn.usage', 'usage.accumulated' || coalesce('.' || (c.times + 1), ''),
       json_fields('input_tokens', nullif(r.input - coalesce(c.input, 0), -(c.times IS NULL)),
                   'output_tokens', nullif(r.output - coalesce(c.output, 0), -(c.times IS NULL)),
                   'cached_input_tokens', nullif(r.cached - coalesce(c.cached, 0), -(c.times IS NULL)),
                   'cache_write_tokens', nullif(r.written - coalesce(c.written, 0), -(c.times IS NULL)),
                   -- The tokens are a sum: the length of each prompt is unknown.
                   'prompt_tokens', -1, 'requests', CASE WHEN c.times > 0 THEN 0 END,
                   'cost_usd', nullif(round(r.cost - coalesce(c.cost, 0), 9), 0),
                   'source', coalesce(substr(r.source, 1, length(r.source) - 1) || ',"origin":' || json_text(r.origin) || '}', r.source)), n
FROM rest r LEFT JOIN counted c USING (session)
WHERE CASE WHEN c.times > 0 THEN (r.ts = 1 OR r.ts >= c.ts)
        AND (r.input, r.output, r.cached, r.written, r.cost) IS NOT (
            CASE WHEN r.input IS NOT NULL THEN c.input END, CASE WHEN r.output IS NOT NULL THEN c.output END,
            CASE WHEN r.cached IS NOT NULL THEN c.cached END, CASE WHEN r.written IS NOT NULL THEN c.written END,
            CASE WHEN r.cost IS NOT NULL THEN c.cost END)
      ELSE r.any AND (r.input > 0 OR r.output > 0) AND coalesce(record_owner(r.origin, r.session), r.session) = r.session END;
-- Turns of earlier imports that the log no longer has were taken back.
INSERT INTO out (row, k, session, ts, type, id, data, n) SELECT n, 2, session, ts, type, id, data, n FROM removed_turns;
SELECT session, ts, type, id, NULL, data, n, formerly FROM out ORDER BY row, k;
DELETE FROM out;
SELECT session, rest_ts, 'turn.completed', turn || '.ended', NULL,
       json_fields('turn_id', json_text(turn), 'reason', '"answered"',
                   'source', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', rest_n)), rest_n
FROM sessions, source WHERE turn IS NOT NULL AND rest_ts IS NOT NULL ORDER BY rest_n;
