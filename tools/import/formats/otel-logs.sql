-- importer otel-logs   version 3
-- SPDX-License-Identifier: Apache-2.0
-- records: *
-- files: *.json *.jsonl
--
-- Log records of OpenTelemetry (OTLP JSON, an export a line) of agent programs: Claude Code, Codex,
-- the Gemini CLI, and the events of the GenAI conventions. docs/events.md lists the resulting
-- events; annal/import.h describes the tables that an importer can read.
--
--  (1) A session is named by session.id, conversation.id or gen_ai.conversation.id, else by the
--      trace, else by the service. The time of an event is the time of its record.
--  (2) The kind of a record is its event name, or its attribute event.name: prompts and messages
--      become message.added, requests to a model agent.turn.usage, tools tool.called and
--      tool.returned or tool.failed. Other records are import.record.
--  (3) The id of an event contains a hash of the record's name, time and attributes, so a record
--      that is exported again adds nothing. The id of a record without a time contains its line.
--      The ids of version 1 are recognized. A record without a session that a session of another
--      file owns (record_owner) is an import.record.
--  (4) The first event of a record contains all of it under "extra"; the rest of the line is
--      import.record.
--  (5) The title is the user's first message.
--  (6) Claude Code, Codex and the Gemini CLI also write their own logs, which contain more. If the log
--      of a session is known (record_owner: "log" and its id), its log records become import.record.
--      If the log is imported later, its importer supersedes the events of these log records.
--  (7) The Gemini CLI reports each response twice: its event of the GenAI conventions becomes
--      import.record.
--  (8) A response may also be a span (otel.sql): its usage has the same id and origin, so it counts
--      once. Its record is an import.record.

-- detect
SELECT max(CASE WHEN json_type(v, '$.resourceLogs') = 'array' THEN 99 ELSE 0 END)
FROM (SELECT json, coalesce(json -> '$.value', json) AS v FROM lines)

-- once
CREATE TABLE file (home TEXT);
INSERT INTO file SELECT session_id(stem) FROM source;
CREATE TABLE sessions (session TEXT PRIMARY KEY, titled INTEGER DEFAULT 0) WITHOUT ROWID;
CREATE TABLE out (row INTEGER, i INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER,
                  formerly TEXT);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (source TEXT, main TEXT, j TEXT);

-- The records of the line: a has its attributes as an object, r the attributes of its resource;
-- class is its kind.
CREATE TABLE records (i INTEGER PRIMARY KEY, name TEXT, ts INTEGER, session TEXT, class TEXT, key TEXT, agent TEXT,
                      s TEXT, a TEXT, r TEXT, body TEXT, id TEXT, source TEXT, span TEXT, usage TEXT);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    DELETE FROM records;
    INSERT INTO now (j, source, main)
    SELECT NEW.json, json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n),
           CASE WHEN NEW.json IS NULL THEN 'unreadable'
                WHEN json_type(NEW.json, '$.resourceLogs') = 'array' THEN 'logs' ELSE 'record' END
    FROM source;
    INSERT INTO records (i, s, r)
    -- With a LIMIT the attributes of a resource are read once, and not for each of its records.
    SELECT row_number() OVER (), p.value, r.attributes
    FROM (SELECT e.value, coalesce(e.value -> '$.resource.attributes', '[]') AS attributes
          FROM now, json_each(j, '$.resourceLogs') e WHERE main = 'logs' LIMIT -1) r,
         json_each(r.value, '$.scopeLogs') c, json_each(c.value, '$.logRecords') p
    WHERE p.type = 'object' LIMIT 1000001;
    -- Millions of tiny records would take hours and gigabytes: keep such a line unchanged.
    UPDATE now SET main = 'record' WHERE EXISTS (SELECT 1 FROM records WHERE i > 1000000);
    DELETE FROM records WHERE EXISTS (SELECT 1 FROM records WHERE i > 1000000);
    UPDATE records SET
        a = (SELECT json_group_object(e.value ->> '$.key', json(coalesce(otlp_json(e.value -> '$.value'), 'null')))
             FROM json_each(CASE WHEN json_type(s, '$.attributes') = 'array' THEN s ELSE '{"attributes":[]}' END, '$.attributes') e
             WHERE e.type = 'object' AND json_type(e.value, '$.key') = 'text'),
        agent = (SELECT e.value ->> '$.value.stringValue' FROM json_each(r) e
                 WHERE e.type = 'object' AND e.value ->> '$.key' = 'service.name' LIMIT 1);
    UPDATE records SET
        name = coalesce(s ->> '$.eventName', a ->> '$."event.name"', s ->> '$.body.stringValue', ''),
        ts = CAST(coalesce(nullif(s ->> '$.timeUnixNano', '0'), s ->> '$.observedTimeUnixNano', 0) AS INTEGER) / 1000,
        session = coalesce(session_id(coalesce(a ->> '$."session.id"', a ->> '$."conversation.id"',
                                               a ->> '$."gen_ai.conversation.id"', nullif(s ->> '$.traceId', ''))),
                           session_id(agent), (SELECT home FROM file)),
        key = NEW.hash || '.' || i, id = NEW.hash || '.' || i,
        body = otlp_json(s -> '$.body');
    -- The text of a message that is an object.
    UPDATE records SET body = coalesce(body -> '$.message.content', body -> '$.content', body -> '$.message.parts', body -> '$.parts', body)
    WHERE json_type(body) = 'object' AND name GLOB 'gen_ai.*';
    UPDATE records SET ts = 1 WHERE ts <= 0 OR ts IS NULL;
    UPDATE records SET id = name || ' ' || coalesce(nullif(s ->> '$.timeUnixNano', '0'), s ->> '$.observedTimeUnixNano') || ' '
        || coalesce(s ->> '$.spanId', '') || ' ' || a || coalesce(body, '')
    WHERE ts > 1;
    UPDATE records SET name = substr(name, instr(name, '.') + 1)
    WHERE name GLOB 'claude_code.*' OR name GLOB 'codex.*' OR name GLOB 'gemini_cli.*' OR name GLOB 'qwen-code.*';
    UPDATE records SET class = CASE
        WHEN name = 'user_prompt' OR name = 'gen_ai.user.message' THEN 'user'
        WHEN name IN ('gen_ai.system.message', 'gen_ai.assistant.message', 'gen_ai.tool.message', 'gen_ai.choice') THEN 'message'
        WHEN name IN ('tool_result', 'tool_call') THEN 'tool'
        WHEN name = 'gen_ai.client.inference.operation.details' AND (agent GLOB 'gemini*' OR agent GLOB 'qwen*') THEN 'other'
        WHEN name IN ('api_request', 'api_response', 'sse_event', 'gen_ai.client.inference.operation.details')
             AND coalesce(a ->> '$."input_tokens"', a ->> '$."input_token_count"', a ->> '$."gen_ai.usage.input_tokens"',
                          a ->> '$."gen_ai.usage.prompt_tokens"', a ->> '$."output_tokens"', a ->> '$."output_token_count"',
                          a ->> '$."gen_ai.usage.output_tokens"') IS NOT NULL THEN 'usage'
        ELSE 'other' END;
    UPDATE records SET span = (s ->> '$.traceId') || '.' || (s ->> '$.spanId')
    WHERE class = 'usage' AND name GLOB 'gen_ai.*' AND s ->> '$.traceId' <> '' AND s ->> '$.spanId' <> '';
    UPDATE records SET usage = coalesce('response.' || nullif(a ->> '$."gen_ai.response.id"', ''), span) || '.usage'
    WHERE class = 'usage' AND name GLOB 'gen_ai.*';
    UPDATE records SET source = (SELECT CASE
        WHEN span IS NOT NULL THEN substr(source, 1, length(source) - 1) || CASE
            WHEN record_owner('otel ' || span, session) <> session THEN ',"copied":true}' ELSE ',"origin":' || json_text('otel ' || span) || '}' END
        WHEN class = 'other' OR session <> (SELECT home FROM file) OR ts <= 1 THEN source
        ELSE substr(source, 1, length(source) - 1) || ',"origin":' || json_text('otel-logs ' || substr(id, 1, 400)) || CASE
            WHEN record_owner('otel-logs ' || substr(id, 1, 400), session) <> session THEN ',"copied":true}' ELSE '}' END
        END FROM now);
    UPDATE records SET class = 'other', source = json_set(json_remove(source, '$.origin'), '$.copied', json('true'))
    WHERE source ->> '$.copied' OR session IN (
        SELECT r.session FROM (SELECT DISTINCT session FROM records) r WHERE record_owner('log ' || r.session, NULL) IS NOT NULL);
    UPDATE records SET key = key WHERE record_owner('telemetry ' || session, session) IS NULL;

    INSERT INTO out
    SELECT NEW.row, 0, 0, session, min(ts), 'session.created', 'session.created',
           json_fields('id', json_text(session), 'agent_id', json_text(coalesce(max(agent), 'otel')),
                       'provider', json_text(coalesce(max(a ->> '$."gen_ai.provider.name"'), max(a ->> '$."gen_ai.system"'),
                           CASE WHEN max(agent) GLOB 'claude*' THEN 'anthropic' WHEN max(agent) GLOB 'codex*' THEN 'openai' END)),
                       'model', json_text(coalesce(max(a ->> '$.model'), max(a ->> '$."gen_ai.request.model"'))),
                       'status', '"idle"', 'source', now.source), NEW.n, NULL
    FROM records, now WHERE session NOT IN (SELECT s.session FROM sessions s) GROUP BY session;
    INSERT OR IGNORE INTO sessions (session) SELECT session FROM records;
    INSERT INTO out
    SELECT NEW.row, 0, 1, session, min(ts), 'session.updated', 'titled',
           json_fields('set', json_fields('title', json_text(coalesce(a ->> '$.prompt', body ->> '$'))), 'source', now.source), NEW.n, NULL
    FROM records, now WHERE class = 'user' AND coalesce(a ->> '$.prompt', body ->> '$', '') NOT IN ('', '<REDACTED>', '[REDACTED]')
      AND EXISTS (SELECT 1 FROM sessions s WHERE s.session = records.session AND titled = 0) GROUP BY session;
    UPDATE sessions SET titled = 1 WHERE session IN (SELECT session FROM out WHERE type = 'session.updated');

    INSERT INTO out
    SELECT NEW.row, i, 2 + part, session, CASE class WHEN 'tool' THEN ts - 1000 * coalesce(CAST(a ->> '$.duration_ms' AS INTEGER), 0) ELSE ts END,
           CASE kind WHEN 'user' THEN 'message.added' WHEN 'message' THEN 'message.added' WHEN 'tool' THEN 'tool.called'
                WHEN 'usage' THEN 'agent.turn.usage' ELSE 'import.record' END, CASE part WHEN 0 THEN id || '.begins' ELSE usage END,
           CASE kind
           WHEN 'user' THEN json_fields('id', json_text(key), 'role', '"user"',
               'content', coalesce(a -> '$.prompt', body, '""'), 'source', t.source, 'extra', s)
           WHEN 'message' THEN json_fields('id', json_text(key),
               'role', CASE name WHEN 'gen_ai.system.message' THEN '"system"' WHEN 'gen_ai.tool.message' THEN '"tool"' ELSE '"assistant"' END,
               'content', coalesce(body, '""'), 'source', t.source, 'extra', s)
           WHEN 'tool' THEN json_fields('call_id', coalesce(a -> '$.call_id', a -> '$.tool_use_id', json_text(key)),
               'tool', coalesce(a -> '$.tool_name', a -> '$.function_name', '"tool"'),
               'input', coalesce(a -> '$.tool_parameters', a -> '$.arguments', a -> '$.tool_input', a -> '$.function_args'),
               'source', t.source, 'extra', s)
           WHEN 'usage' THEN json_fields(
               'model', coalesce(a -> '$."gen_ai.response.model"', a -> '$."gen_ai.request.model"', a -> '$.model'),
               'input_tokens', CASE WHEN inside THEN fresh
                                    WHEN coalesce(fresh, cached, written) IS NOT NULL
                                    THEN coalesce(fresh, 0) + coalesce(cached, 0) + coalesce(written, 0) END,
               'output_tokens', CAST(coalesce(a ->> '$."gen_ai.usage.output_tokens"', a ->> '$."gen_ai.usage.completion_tokens"',
                                              a ->> '$.output_tokens', a ->> '$.output_token_count') AS INTEGER)
                   -- The Gemini CLI counts the tokens of thoughts separately.
                   + coalesce(CAST(a ->> '$.thoughts_token_count' AS INTEGER), 0),
               'cached_input_tokens', cached, 'cache_write_tokens', written,
               'cost_usd', CASE WHEN json_valid(a ->> '$.cost_usd') THEN a ->> '$.cost_usd' END,
               'source', t.source, 'extra', CASE part WHEN 0 THEN s END)
           ELSE json_fields('kind', json_text(CASE name WHEN '' THEN 'log' ELSE name END),
                            'source', CASE WHEN usage IS NULL THEN t.source ELSE json_remove(t.source, '$.origin') END, 'extra', s) END, NEW.n,
           CASE part WHEN 0 THEN key ELSE id END || '.begins'
    FROM (SELECT *, CASE WHEN usage IS NULL OR part THEN class ELSE 'other' END AS kind,
        CAST(coalesce(a ->> '$."gen_ai.usage.input_tokens"', a ->> '$."gen_ai.usage.prompt_tokens"', a ->> '$.input_tokens',
                      a ->> '$.input_token_count') AS INTEGER)
            + CASE WHEN a ->> '$.cached_content_token_count' IS NOT NULL
                   THEN coalesce(CAST(a ->> '$.tool_token_count' AS INTEGER), 0) ELSE 0 END AS fresh,
        CAST(coalesce(a ->> '$."gen_ai.usage.cache_read.input_tokens"', a ->> '$.cache_read_tokens',
                      a ->> '$.cached_token_count', a ->> '$.cached_content_token_count') AS INTEGER) AS cached,
        CAST(coalesce(a ->> '$."gen_ai.usage.cache_creation.input_tokens"', a ->> '$."gen_ai.usage.cache_write.input_tokens"',
                      a ->> '$.cache_creation_tokens', a ->> '$.cache_write_tokens') AS INTEGER) AS written,
        a ->> '$.cache_read_tokens' IS NULL AS inside
        FROM records JOIN (SELECT 0 AS part UNION ALL SELECT 1) ON part = 0 OR class = 'usage' AND usage IS NOT NULL) t;
    INSERT INTO out
    SELECT NEW.row, i, 3, session, ts, CASE WHEN a ->> '$.success' IN ('false', 0) THEN 'tool.failed' ELSE 'tool.returned' END,
           id || '.ends',
           json_fields('call_id', coalesce(a -> '$.call_id', a -> '$.tool_use_id', json_text(key)),
               'success', CASE WHEN a ->> '$.success' IN ('false', 0) THEN 'false' ELSE 'true' END,
               'output', a -> '$.output', 'error', a -> '$.error', 'duration_ms', CAST(a ->> '$.duration_ms' AS INTEGER),
               'source', t.source), NEW.n, key || '.ends'
    FROM records t WHERE class = 'tool';
    -- The rest of the line: resources and scopes.
    INSERT INTO out
    SELECT NEW.row, 0, 2, session, ts, 'import.record', NEW.hash || '.line',
           json_fields('kind', '"logs"', 'source', source, 'extra', json_set(j, '$.resourceLogs',
               (SELECT json_group_array(json_set(json(r.value), '$.scopeLogs',
                   (SELECT json_group_array(json_remove(c.value, '$.logRecords')) FROM json_each(r.value, '$.scopeLogs') c)))
                FROM json_each(j, '$.resourceLogs') r))), NEW.n, NULL
    FROM now, (SELECT session, ts FROM records ORDER BY i LIMIT 1);
    -- Lines without a record.
    INSERT INTO out
    SELECT NEW.row, 0, 0, home, 1, 'session.created', 'session.created',
           json_fields('id', json_text(home), 'agent_id', '"otel"', 'status', '"idle"', 'source', source), NEW.n, NULL
    FROM now, file WHERE NOT EXISTS (SELECT 1 FROM records) AND home NOT IN (SELECT s.session FROM sessions s);
    INSERT OR IGNORE INTO sessions (session) SELECT home FROM file WHERE NOT EXISTS (SELECT 1 FROM records);
    INSERT INTO out
    SELECT NEW.row, 0, 1, home, 1, CASE main WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END, NEW.hash || '.line',
           CASE main WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', json_text(main), 'source', source, 'extra', j) END, NEW.n, NULL
    FROM now, file WHERE NOT EXISTS (SELECT 1 FROM records);
END;

-- batch
SELECT session, ts, type, id, NULL, data, n, formerly FROM out ORDER BY row, i, k;
DELETE FROM out;
