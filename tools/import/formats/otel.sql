-- importer otel   version 7
-- SPDX-License-Identifier: Apache-2.0
-- records: *
-- recalls: agent.turn.usage import.record/below.
-- files: *.json *.jsonl
-- split: $.resourceSpans $.spans $.observations $
-- session: value.context.trace_id value.trace_id
--
-- Traces of OpenTelemetry with GenAI attributes: OTLP JSON (one export a line, or a document), the
-- spans of any-agent and SMOLTRACE, and traces exported by Langfuse. docs/events.md lists the
-- resulting events; annal/import.h describes the tables that an importer can read.
--
--  (1) A session is named by gen_ai.conversation.id or session.id, else by the trace. A span's
--      events have the begin and end of the span as their times. The id of an event contains trace
--      and span, so a repeated span adds nothing. A session that is created before any time is
--      known (from the head of a document) receives its created_at in a session.updated; the
--      created_at of a trace is set again if a later span began earlier.
--  (2) A tool span is a call and its result; a model span is its new input messages, its answer,
--      and its tokens; an agent span is a turn. Other spans are import.record.
--  (3) Tokens are taken from model spans and embeddings, because agent spans sum up the tokens of
--      the spans below them. An agent span, a span with another operation, and one without a name of
--      its operation is the source of tokens only if no span below it has any, which is known at the
--      end of the log. A span of another session (record_owner: its trace and id) counts there.
--      Spans with the same gen_ai.response.id are one response, seen twice: the first of them counts
--      and is the message. A model span around other model spans, without a tool or an agent between
--      them, is their sum or their repetition, unless both name responses, and different ones: it
--      counts as far as it has more tokens than they have; if it has no more, it is no message.
--  (4) The names of attributes have changed and keep changing: rule (2) looks for all of them.
--      Messages are an attribute, events of the span, or attributes with a number in their names.
--  (5) The first event of a span contains all of it under "extra".
--  (6) The title is the input of the first span with an input, without the text that an agent adds
--      before it, else the name of the trace in Langfuse. The name of a span is not a title. The head
--      of a document, which names no trace, belongs to the first trace after it (the option
--      session).
--  (7) Children end first, so exporters send them first. The spans of a line are handled in the
--      order of their begin, outer spans before inner spans, and their events are appended in the
--      order of time.
--  (8) A trace may be in several logs: rule (3) holds for all of them, whichever is imported first.
--      A log whose spans with tokens have a parent that the log lacks has a record "below" of it.

-- detect
SELECT max(CASE
    WHEN json_type(v, '$.resourceSpans') = 'array' OR json_type(v, '$.scopeSpans') = 'array' THEN 98
    WHEN json_type(v, '$.resourceLogs') = 'array' THEN 40
    WHEN json_type(v, '$.observations') = 'array' AND json_type(v, '$.trace') = 'object' THEN 95
    WHEN json ->> '$.at' = '$.spans' AND json_type(v, '$.context.span_id') IS NOT NULL THEN 95
    WHEN json_type(v, '$.spans') = 'array' AND json_type(v, '$.trace_id') IS NOT NULL THEN 95
    ELSE 0 END)
FROM (SELECT json, coalesce(json -> '$.value', json) AS v FROM lines)

-- once
-- Texts that agents add before their users' messages. annal/import.h: said().
CREATE VIEW added (begins, ends) AS VALUES
    ('New task:', char(10)); -- smolagents

CREATE TABLE file (session TEXT, ts INTEGER, home TEXT);
INSERT INTO file
SELECT NULL, 1, session_id(coalesce((SELECT value FROM options WHERE name = 'session'), stem)) FROM source;
-- dated: the created_at of an event; 0: none yet; NULL: a session that other logs may have begun,
-- with a time. titled: 2 by its input, 1 by the name of the trace, 0 not yet.
CREATE TABLE sessions (session TEXT PRIMARY KEY, dated INTEGER, titled INTEGER DEFAULT 0) WITHOUT ROWID;
CREATE INDEX undated ON sessions (session) WHERE dated = 0;
CREATE TABLE earlier (session TEXT PRIMARY KEY, dated INTEGER, t0 INTEGER) WITHOUT ROWID;
-- The span that has the response with this id.
CREATE TABLE responses (session TEXT, id TEXT, key TEXT, PRIMARY KEY (session, id)) WITHOUT ROWID;
CREATE TABLE asked (session TEXT, m TEXT, PRIMARY KEY (session, m)) WITHOUT ROWID;
CREATE TABLE out (row INTEGER, i INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER, formerly TEXT);
CREATE INDEX out_usage ON out(row, i) WHERE type = 'agent.turn.usage';
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (source TEXT, main TEXT, j TEXT, v TEXT);

-- The spans of the line: a has its attributes as an object, class is model, tool, agent or other.
CREATE TABLE spans (i INTEGER PRIMARY KEY, place INTEGER, trace TEXT, id TEXT, name TEXT, t0 INTEGER, t1 INTEGER, op TEXT,
                    class TEXT, failed INTEGER, session TEXT, key TEXT, s TEXT, a TEXT, input TEXT, output TEXT,
                    up TEXT, response TEXT, around TEXT, tin INTEGER, tout INTEGER, below_in INTEGER, below_out INTEGER);
CREATE TABLE inputs (span INTEGER, i INTEGER, m TEXT);
-- Attributes of model spans that are a part of a message, by their names.
CREATE TABLE parts (span INTEGER, name TEXT, json TEXT, PRIMARY KEY (span, name)) WITHOUT ROWID;
-- The first input of a session in this line, and the name of the first of its spans with a name.
CREATE TABLE titles (session TEXT PRIMARY KEY, text TEXT, name TEXT) WITHOUT ROWID;

-- Rule (3): all spans, the parent of each, and whether it has tokens; the usage of agent spans. tin,
-- tout: tokens of a model span; rest_in, rest_out: those that no model span below it has.
CREATE TABLE tree (key TEXT PRIMARY KEY, up TEXT, used INTEGER, n INTEGER, session TEXT, class TEXT, response TEXT, model TEXT,
                   tin INTEGER, tout INTEGER, rest_in INTEGER, rest_out INTEGER) WITHOUT ROWID;
CREATE INDEX tree_up ON tree(up);
CREATE TABLE agents (key TEXT PRIMARY KEY, session TEXT, ts INTEGER, data TEXT, n INTEGER) WITHOUT ROWID;
-- The events of the end; last: the last line with tokens below the agent.
CREATE TABLE ends (session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER, last INTEGER);

-- The input of a trace or a span: an object or an array, or its text.
CREATE VIEW told AS
SELECT i, session, name, CASE WHEN json_type(x) = 'text' AND substr(trim(x ->> '$'), 1, 1) NOT IN ('[', '{')
                     THEN CASE WHEN class IN ('model', 'agent') THEN x ->> '$' END
       ELSE coalesce(
           CASE WHEN json_type(x, '$.contents') = 'text' THEN x ->> '$.contents' END,
           x ->> '$.prompt', x ->> '$.task', x ->> '$.question', x ->> '$.instruction', x ->> '$.new_message.parts[0].text',
           (SELECT coalesce(CASE WHEN json_type(m.value, '$.content') = 'text' THEN m.value ->> '$.content' END,
                            m.value ->> '$.content[0].text', m.value ->> '$.parts[0].text', m.value ->> '$.parts[0].content')
            FROM json_each(CASE WHEN json_type(x) = 'array' THEN x ELSE coalesce(x -> '$.messages',
                           CASE WHEN json_type(x, '$.contents') = 'array' THEN x -> '$.contents' END, '[]') END) m
            WHERE m.type = 'object' AND coalesce(m.value ->> '$.role', 'user') = 'user' LIMIT 1)) END AS text
FROM (SELECT i, session, CASE i WHEN 0 THEN name END AS name, class, CASE WHEN json_type(input) = 'text' AND json_valid(input ->> '$') THEN input ->> '$' ELSE input END AS x
      FROM (SELECT i, session, name, class, coalesce(a -> '$."gen_ai.input.messages"', a -> '$.prompt', input, 'null') AS input
            FROM spans WHERE class <> 'tool'
            UNION ALL
            SELECT 0, (SELECT session FROM file), v ->> '$.trace.name', 'agent', coalesce(v -> '$.trace.input', 'null')
            FROM now WHERE json_type(v, '$.trace') = 'object'));

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    DELETE FROM spans;
    DELETE FROM inputs;
    DELETE FROM parts;
    DELETE FROM titles;
    INSERT INTO now (j, v, source, main)
    SELECT j, v, json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN json_type(v, '$.resourceSpans') = 'array' AND json_array_length(v, '$.resourceSpans') > 0 THEN 'otlp'
                WHEN json_type(v, '$.scopeSpans') = 'array' THEN 'resource'
                WHEN json_type(v, '$.spans') = 'array' AND json_array_length(v, '$.spans') > 0 THEN 'trace'
                WHEN json_type(v, '$.context.span_id') IS NOT NULL THEN 'span'
                WHEN j ->> '$.at' = '$.observations' THEN 'observation'
                ELSE 'record' END
    FROM source, (SELECT NEW.json AS j, CASE WHEN json_type(NEW.json, '$.at') = 'text' AND json_type(NEW.json, '$.value') IS NOT NULL
                                        THEN NEW.json -> '$.value' ELSE NEW.json END AS v);
    UPDATE file SET session = coalesce((SELECT session_id(coalesce(v ->> '$.trace.sessionId', v ->> '$.trace.id')) FROM now
                                        WHERE json_type(v, '$.trace') = 'object'), session);
    INSERT INTO spans (i, place, s)
    SELECT row_number() OVER (ORDER BY t0, t1 DESC, place), place, s FROM (SELECT s, row_number() OVER () AS place,
        coalesce(time_us(s ->> '$.startTime'), CAST(coalesce(s ->> '$.startTimeUnixNano', s ->> '$.start_time') AS INTEGER) / 1000) AS t0,
        coalesce(time_us(s ->> '$.endTime'), CAST(coalesce(s ->> '$.endTimeUnixNano', s ->> '$.end_time') AS INTEGER) / 1000) AS t1 FROM (
        SELECT p.value AS s FROM now, json_each(v, '$.resourceSpans') r, json_each(r.value, '$.scopeSpans') c, json_each(c.value, '$.spans') p
        WHERE main = 'otlp' AND p.type = 'object'
        UNION ALL
        SELECT p.value FROM now, json_each(v, '$.scopeSpans') c, json_each(c.value, '$.spans') p
        WHERE main = 'resource' AND p.type = 'object'
        UNION ALL
        SELECT p.value FROM now, json_each(v, '$.spans') p WHERE main = 'trace' AND p.type = 'object'
        UNION ALL
        SELECT v FROM now WHERE main IN ('span', 'observation') LIMIT 1000001));
    -- Millions of tiny records would take hours and gigabytes: keep such a line unchanged.
    UPDATE now SET main = 'record' WHERE EXISTS (SELECT 1 FROM spans WHERE i > 1000000);
    DELETE FROM spans WHERE EXISTS (SELECT 1 FROM spans WHERE i > 1000000);
    UPDATE spans SET
        a = CASE json_type(s, '$.attributes')
            WHEN 'object' THEN s -> '$.attributes'
            WHEN 'array' THEN (SELECT json_group_object(e.value ->> '$.key', json(coalesce(otlp_json(e.value -> '$.value'), 'null')))
                FROM json_each(s, '$.attributes') e WHERE e.type = 'object' AND json_type(e.value, '$.key') = 'text')
            ELSE coalesce(CASE WHEN json_valid(s ->> '$.metadata') THEN (s ->> '$.metadata') -> '$.attributes' END, '{}') END,
        trace = coalesce(s -> '$.context.trace_id', s -> '$.traceId', s -> '$.trace_id'),
        id = coalesce(s -> '$.context.span_id', s -> '$.spanId', s -> '$.span_id', s -> '$.id', json_text(NEW.hash || place)),
        name = coalesce(s ->> '$.name', ''),
        t0 = coalesce(time_us(s ->> '$.startTime'),
                      CAST(coalesce(s ->> '$.startTimeUnixNano', s ->> '$.start_time') AS INTEGER) / 1000),
        t1 = coalesce(time_us(s ->> '$.endTime'),
                      CAST(coalesce(s ->> '$.endTimeUnixNano', s ->> '$.end_time') AS INTEGER) / 1000),
        failed = coalesce(CAST(s ->> '$.status.code' AS TEXT) IN ('2', 'STATUS_CODE_ERROR') OR s ->> '$.status.status_code' = 'error'
                          OR s ->> '$.level' = 'ERROR', 0);
    UPDATE spans SET failed = 1 WHERE a ->> '$."error.type"' <> '';
    -- The members of such an event besides the attributes; of two values of a name the first is
    -- read.
    UPDATE spans SET a = (SELECT CASE WHEN a = '{}' THEN more WHEN more = '{}' THEN a ELSE substr(a, 1, length(a) - 1) || ',' || substr(more, 2) END
        FROM (SELECT json_group_object(x.value ->> '$.key', json(coalesce(otlp_json(x.value -> '$.value'), 'null'))) AS more
              FROM json_each(s, '$.events') e, json_each(e.value, '$.attributes') x
              WHERE e.value ->> '$.name' = 'gen_ai.client.inference.operation.details' AND json_type(x.value, '$.key') = 'text'))
    WHERE EXISTS (SELECT 1 FROM json_each(s, '$.events') e
                  WHERE e.type = 'object' AND e.value ->> '$.name' = 'gen_ai.client.inference.operation.details');
    UPDATE spans SET trace = trim(trace, '"'), id = trim(id, '"'), t1 = coalesce(nullif(t1, 0), t0),
        op = lower(coalesce(a ->> '$."gen_ai.operation.name"', a ->> '$."openinference.span.kind"',
            a ->> '$."llm.request.type"', a ->> '$."traceloop.span.kind"', s ->> '$.type', ''));
    UPDATE spans SET
        class = CASE
            WHEN op IN ('execute_tool', 'tool') THEN 'tool'
            WHEN op IN ('chat', 'text_completion', 'generate_content', 'call_llm', 'llm', 'generation', 'completion')
                THEN 'model'
            WHEN op IN ('invoke_agent', 'agent') THEN 'agent'
            WHEN op IN ('embeddings', 'embedding') THEN 'embedding'
            WHEN op = '' AND coalesce(a -> '$."gen_ai.usage.input_tokens"', a -> '$."gen_ai.usage.prompt_tokens"',
                                      a -> '$."gen_ai.usage.output_tokens"', a -> '$."gen_ai.usage.completion_tokens"',
                                      a -> '$."llm.token_count.prompt"', a -> '$."llm.token_count.completion"') IS NOT NULL
                 AND coalesce(a -> '$."gen_ai.request.model"', a -> '$."gen_ai.response.model"', a -> '$."llm.model_name"') IS NOT NULL
                 AND a -> '$."gen_ai.agent.name"' IS NULL THEN 'model'
            ELSE 'other' END,
        session = coalesce(session_id(coalesce(a ->> '$."gen_ai.conversation.id"', a ->> '$."session.id"')), (SELECT session FROM file),
                           session_id(trace)),
        key = coalesce(trace, '') || '.' || id,
        input = coalesce(a -> '$."gen_ai.tool.call.arguments"', a -> '$."tool.args"', a -> '$."gen_ai.tool.args"',
                         a -> '$."input.value"', nullif(s -> '$.input', 'null')),
        output = coalesce(a -> '$."gen_ai.tool.call.result"', a -> '$."gen_ai.output.messages"', a -> '$."gen_ai.output"',
                          a -> '$."output.value"', a -> '$."gen_ai.completion"', nullif(s -> '$.output', 'null'));
    UPDATE spans SET session = (SELECT home FROM file) WHERE session IS NULL;
    INSERT OR IGNORE INTO responses
    SELECT session, a ->> '$."gen_ai.response.id"', key FROM spans
    WHERE class = 'model' AND a ->> '$."gen_ai.response.id"' <> '' ORDER BY i;
    UPDATE spans SET class = 'repeated'
    WHERE class = 'model' AND key <> (SELECT r.key FROM responses r
                                      WHERE r.session = spans.session AND r.id = spans.a ->> '$."gen_ai.response.id"');
    UPDATE spans SET output = coalesce(
        (SELECT coalesce(
            (SELECT x.value -> '$.value.stringValue' FROM json_each(e.value, '$.attributes') x
             WHERE x.value ->> '$.key' IN ('content', 'message', 'gen_ai.event.content', 'gen_ai.completion') LIMIT 1),
            e.value -> '$.attributes')
         FROM json_each(s, '$.events') e
         WHERE e.type = 'object' AND e.value ->> '$.name' IN ('gen_ai.choice', 'gen_ai.content.completion') LIMIT 1),
        a -> '$."gen_ai.completion.0.content"', a -> '$."llm.output_messages.0.message.content"')
    WHERE class = 'model' AND output IS NULL;
    -- Answers of a model, as JSON or the text of it: their parts.
    UPDATE spans SET output = (
        SELECT json_group_array(CASE WHEN p.type IN ('object', 'array') THEN json(p.value)
                                     ELSE json_object('type', 'text', 'text', p.value) END)
        FROM json_each(CASE json_type(output) WHEN 'text' THEN output ->> '$' ELSE output END) m,
             json_each(CASE WHEN json_type(m.value, '$.parts') = 'array' THEN m.value -> '$.parts'
                            WHEN json_type(m.value, '$.content') = 'array' THEN m.value -> '$.content'
                            ELSE json_array(m.value ->> '$.content') END) p
        WHERE m.type = 'object' AND p.type <> 'null')
    WHERE class = 'model' AND json_valid(CASE json_type(output) WHEN 'text' THEN output ->> '$' ELSE output END)
      AND json_type(CASE json_type(output) WHEN 'text' THEN output ->> '$' ELSE output END, '$[0].role') = 'text';
    UPDATE file SET ts = coalesce((SELECT max(t0) FROM spans WHERE t0 > 0),
                                  (SELECT time_us(v ->> '$.trace.timestamp') FROM now), ts);
    UPDATE spans SET t0 = (SELECT ts FROM file), t1 = (SELECT ts FROM file) WHERE t0 IS NULL;

    -- Model spans around model spans of this line or of lines before it.
    UPDATE spans SET up = coalesce(trace, '') || '.' || coalesce(s ->> '$.parentSpanId', s ->> '$.parent_id', s ->> '$.context.parent_id',
                                                                 s ->> '$.parent_span_id', s ->> '$.parentObservationId', '');
    UPDATE spans SET response = a ->> '$."gen_ai.response.id"', tin = coalesce(CAST(coalesce(a ->> '$."gen_ai.usage.input_tokens"', a ->> '$."gen_ai.usage.prompt_tokens"', a ->> '$."llm.token_count.prompt"',
                      s ->> '$.inputUsage', s ->> '$.usageDetails.input') AS INTEGER), 0), tout = coalesce(CAST(coalesce(a ->> '$."gen_ai.usage.output_tokens"', a ->> '$."gen_ai.usage.completion_tokens"',
                      a ->> '$."llm.token_count.completion"', s ->> '$.outputUsage', s ->> '$.usageDetails.output') AS INTEGER), 0)
    WHERE class = 'model';
    INSERT OR IGNORE INTO tree (key, up, used, n, session, class, response, model, tin, tout)
    SELECT key, up, 0, NEW.n, session, class, response,
           coalesce(a -> '$."gen_ai.response.model"', a -> '$."gen_ai.request.model"', a -> '$."llm.model_name"', nullif(s -> '$.model', 'null')),
           tin, tout FROM spans;
    UPDATE spans SET (below_in, below_out) = (
        WITH RECURSIVE down (key, class, response, tin, tout) AS (
            SELECT t.key, t.class, t.response, t.tin, t.tout FROM tree t WHERE t.up = spans.key
            UNION SELECT t.key, t.class, t.response, t.tin, t.tout FROM down JOIN tree t ON t.up = down.key
            WHERE down.class NOT IN ('model', 'tool', 'agent'))
        SELECT coalesce(sum(tin), 0), coalesce(sum(tout), 0) FROM down
        WHERE class = 'model' AND coalesce(down.response = spans.response, 1))
    WHERE class = 'model' AND op <> '' AND (tin > 0 OR tout > 0);
    UPDATE spans SET class = 'repeated'
    WHERE class = 'model' AND (below_in > 0 OR below_out > 0) AND tin <= below_in AND tout <= below_out;
    -- Model spans below a model span of a line before this line.
    UPDATE spans SET around = (
        WITH RECURSIVE above (key, up, class, depth) AS (
            SELECT t.key, t.up, t.class, 1 FROM tree t WHERE t.key = spans.up
            UNION SELECT t.key, t.up, t.class, depth + 1 FROM above JOIN tree t ON t.key = above.up
            WHERE above.class NOT IN ('model', 'tool', 'agent') AND depth < 100)
        SELECT t.key FROM above JOIN tree t USING (key)
        WHERE above.class = 'model' AND t.n < NEW.n AND (t.rest_in > 0 OR t.rest_out > 0)
          AND coalesce(t.response = spans.response, 1))
    WHERE class = 'model' AND (tin > 0 OR tout > 0) AND key IN (SELECT t.key FROM tree t WHERE t.key = spans.key AND t.n = NEW.n);
    UPDATE spans SET class = 'repeated'
    WHERE around IS NOT NULL AND EXISTS (SELECT 1 FROM tree t WHERE t.key = spans.around AND t.rest_in = spans.tin AND t.rest_out = spans.tout);
    INSERT INTO out (row, i, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, 3, session, t1, 'agent.turn.usage', key || '.within.' || inner_key,
           json_fields('message_id', json_text(key), 'model', model, 'prompt_tokens', tin,
                       'input_tokens', min(rest_in, had_in) - min(rest_in, all_in), 'output_tokens', min(rest_out, had_out) - min(rest_out, all_out),
                       'requests', CASE WHEN all_in >= rest_in AND all_out >= rest_out AND (had_in < rest_in OR had_out < rest_out) THEN -1 ELSE 0 END,
                       'source', source), NEW.n
    FROM now, (SELECT t.session, t.key, t.model, t.tin, t.rest_in, t.rest_out, p.t1, p.key AS inner_key,
                      sum(p.tin) OVER w AS all_in, sum(p.tin) OVER w - p.tin AS had_in, sum(p.tout) OVER w AS all_out, sum(p.tout) OVER w - p.tout AS had_out
               FROM spans p JOIN tree t ON t.key = p.around WHERE p.class = 'model'
               WINDOW w AS (PARTITION BY p.around ORDER BY p.i))
    WHERE had_in < rest_in OR had_out < rest_out;
    UPDATE tree SET (rest_in, rest_out) = (
        SELECT max(0, tree.rest_in - sum(p.tin)), max(0, tree.rest_out - sum(p.tout)) FROM spans p WHERE p.around = tree.key)
    WHERE key IN (SELECT around FROM spans WHERE around IS NOT NULL);
    UPDATE tree SET (rest_in, rest_out) = (SELECT max(0, p.tin - p.below_in), max(0, p.tout - p.below_out) FROM spans p WHERE p.key = tree.key)
    WHERE n = NEW.n AND key IN (SELECT key FROM spans WHERE class = 'model' AND below_in IS NOT NULL);

    INSERT INTO out (row, i, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, 0, session, min(t0), 'session.created', 'session.created',
           json_fields('id', json_text(session), 'agent_id', json_text(coalesce(max(a ->> '$."gen_ai.agent.name"'), 'otel')),
                       'provider', json_text(coalesce(max(a ->> '$."gen_ai.provider.name"'), max(a ->> '$."gen_ai.system"'), max(a ->> '$."llm.system"'))),
                       'status', '"idle"', 'source', source), NEW.n
    FROM spans, now WHERE session NOT IN (SELECT s.session FROM sessions s) GROUP BY session;
    INSERT OR IGNORE INTO sessions (session, dated)
    SELECT session, CASE WHEN min(t0) <= 1 THEN 0 WHEN session = session_id(trace) THEN min(t0) END FROM spans GROUP BY session;
    DELETE FROM earlier;
    INSERT INTO earlier
    SELECT session, dated, min(t0) FROM (
        SELECT s.session, s.dated, p.t0 FROM spans p JOIN sessions s USING (session)
        WHERE p.t0 > 1 AND (s.dated = 0 OR p.t0 < s.dated)
        UNION ALL
        SELECT s.session, 0, (SELECT min(p.t0) FROM spans p WHERE p.t0 > 1) FROM sessions s
        WHERE EXISTS (SELECT 1 FROM spans p WHERE p.t0 > 1) AND s.dated = 0
          AND s.session NOT IN (SELECT o.session FROM spans o)) GROUP BY session;
    INSERT INTO out (row, i, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, 0, session, t0, 'session.updated', 'session.dated' || CASE dated WHEN 0 THEN '' ELSE '.' || t0 END,
           json_fields('set', json_fields('created_at', strftime('"%Y-%m-%dT%H:%M:%S', t0 / 1000000, 'unixepoch') || printf('.%06dZ"', t0 % 1000000)),
                       'source', source), NEW.n
    FROM now, earlier;
    UPDATE sessions SET dated = (SELECT e.t0 FROM earlier e WHERE e.session = sessions.session)
    WHERE session IN (SELECT e.session FROM earlier e);
    -- Anything but spans: the rest of a document, logs, lines of another kind.
    INSERT INTO out (row, i, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, 0, coalesce(session, (SELECT home FROM file)), ts, 'session.created', 'session.created',
           json_fields('id', json_text(coalesce(session, (SELECT home FROM file))), 'agent_id', '"otel"', 'status', '"idle"',
                       'source', source), NEW.n
    FROM now, file WHERE NOT EXISTS (SELECT 1 FROM spans)
      AND coalesce(session, (SELECT home FROM file)) NOT IN (SELECT s.session FROM sessions s);
    INSERT OR IGNORE INTO sessions (session, dated)
    SELECT coalesce(session, (SELECT home FROM file)), CASE WHEN ts > 1 THEN NULL ELSE 0 END FROM file WHERE NOT EXISTS (SELECT 1 FROM spans);
    INSERT INTO out (row, i, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, 1, coalesce((SELECT session FROM spans ORDER BY i LIMIT 1), session, (SELECT home FROM file)), ts,
           CASE main WHEN 'unreadable' THEN 'import.unreadable' ELSE 'import.record' END, NEW.hash || '.line',
           CASE main WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', json_text(main), 'source', source, 'extra', CASE main
               WHEN 'otlp' THEN json_set(j, CASE WHEN json_type(j, '$.at') = 'text' THEN '$.value.resourceSpans' ELSE '$.resourceSpans' END,
                   (SELECT json_group_array(json_set(json(r.value), '$.scopeSpans',
                       (SELECT json_group_array(json_remove(c.value, '$.spans')) FROM json_each(r.value, '$.scopeSpans') c)))
                    FROM json_each(v, '$.resourceSpans') r))
               WHEN 'resource' THEN json_set(j, '$.value.scopeSpans',
                   (SELECT json_group_array(json_remove(c.value, '$.spans')) FROM json_each(v, '$.scopeSpans') c))
               WHEN 'trace' THEN json_remove(j, '$.value.spans', '$.spans')
               ELSE j END) END, NEW.n
    FROM now, file WHERE main NOT IN ('span', 'observation');

    -- The title.
    INSERT INTO titles (session, text)
    SELECT session, coalesce(said(json_text(text)) ->> '$', text) FROM (SELECT session, text, min(i) FROM told WHERE text <> '' AND session IS NOT NULL GROUP BY session);
    INSERT INTO titles (session, name)
    SELECT session, name FROM (SELECT session, name, min(i) FROM told WHERE name <> '' AND session IS NOT NULL GROUP BY session)
    WHERE true ON CONFLICT (session) DO UPDATE SET name = excluded.name;
    INSERT INTO out (row, i, k, session, ts, type, id, data, n)
    SELECT NEW.row, 0, 2, session, t0, 'session.updated', NEW.hash || '.title',
           json_fields('set', json_fields('title', json_text(coalesce(text, name))), 'source', source), NEW.n
    FROM now, (SELECT session, (SELECT coalesce((SELECT min(t0) FROM spans WHERE t0 > 0), ts) FROM file) AS t0, text, name
               FROM titles t JOIN sessions s USING (session) WHERE titled < 2 AND (text IS NOT NULL OR titled < 1));
    UPDATE sessions SET titled = (SELECT CASE WHEN text IS NOT NULL THEN 2 ELSE 1 END FROM titles t WHERE t.session = sessions.session)
    WHERE titled < 2 AND session IN (SELECT t.session FROM titles t);
    -- The input of a model, as far as it is new to the session.
    INSERT INTO inputs
    SELECT p.i, e.key, e.value FROM spans p,
        json_each(CASE WHEN json_valid(coalesce(p.a ->> '$."gen_ai.input.messages"', p.a ->> '$."gen_ai.prompt"'))
                       THEN coalesce(p.a ->> '$."gen_ai.input.messages"', p.a ->> '$."gen_ai.prompt"') ELSE '[]' END) e
    WHERE class = 'model' AND e.type = 'object';
    -- Messages as events of the span, and as attributes with a number in their name.
    INSERT INTO inputs
    SELECT p.i, 100000 + e.key, json_fields(
        'role', json_text(CASE e.value ->> '$.name' WHEN 'gen_ai.content.prompt' THEN 'user'
                          ELSE substr(e.value ->> '$.name', 8, length(e.value ->> '$.name') - 15) END),
        'content', (SELECT x.value -> '$.value.stringValue' FROM json_each(e.value, '$.attributes') x
                    WHERE x.value ->> '$.key' IN ('content', 'gen_ai.event.content', 'gen_ai.prompt') LIMIT 1))
    FROM spans p, json_each(p.s, '$.events') e
    WHERE class = 'model' AND e.type = 'object'
      AND e.value ->> '$.name' IN ('gen_ai.user.message', 'gen_ai.system.message', 'gen_ai.assistant.message',
                                   'gen_ai.tool.message', 'gen_ai.content.prompt');
    INSERT OR IGNORE INTO parts
    SELECT p.i, e.key, json_quote(CASE WHEN e.type IN ('object', 'array') THEN json(e.value)
                                       WHEN e.type IN ('true', 'false') THEN json(e.type) ELSE e.value END)
    FROM spans p, json_each(p.a) e
    WHERE class = 'model' AND (e.key GLOB 'gen_ai.prompt.[0-9]*' OR e.key GLOB 'llm.input_messages.[0-9]*');
    INSERT INTO inputs
    SELECT span, 200000 + n, json_fields(
        'role', coalesce((SELECT r.json FROM parts r WHERE r.span = k.span AND r.name = before || n || after || 'role'), '"user"'),
        'content', (SELECT c.json FROM parts c WHERE c.span = k.span AND c.name = before || n || after || 'content'))
    FROM (SELECT p.span, k.before, k.after, CAST(substr(p.name, length(k.before) + 1) AS INTEGER) AS n
          FROM (SELECT 'gen_ai.prompt.' AS before, '.' AS after UNION ALL SELECT 'llm.input_messages.', '.message.') k, parts p
          WHERE p.name GLOB k.before || '[0-9]*' || k.after || 'content') k;
    INSERT INTO out (row, i, k, session, ts, type, id, data, n)
    SELECT NEW.row, i, 10 + place, session, t0, 'message.added', key || '.in.' || place,
           json_fields('id', json_text(key || '.in.' || place), 'role', coalesce(m -> '$.role', '"user"'),
               'content', coalesce(m -> '$.parts', m -> '$.content', '""'), 'source', source,
               'extra', json_remove(m, '$.role', '$.parts', '$.content')), NEW.n
    FROM (SELECT p.i, p.session, p.t0, p.key, x.i AS place, x.m,
                 row_number() OVER (PARTITION BY p.session, x.m ORDER BY p.i, x.i) AS times
          FROM inputs x JOIN spans p ON p.i = x.span) AS fresh, now
    WHERE times = 1 AND NOT EXISTS (SELECT 1 FROM asked q WHERE q.session = fresh.session AND q.m = fresh.m);
    INSERT OR IGNORE INTO asked SELECT p.session, x.m FROM inputs x JOIN spans p ON p.i = x.span;

    -- Each span.
    INSERT INTO out (row, i, k, session, ts, type, id, data, n)
    SELECT NEW.row, i, 1000000, session, CASE class WHEN 'model' THEN t1 ELSE t0 END,
           CASE class WHEN 'tool' THEN 'tool.called' WHEN 'model' THEN 'message.added' WHEN 'agent' THEN 'turn.started'
                ELSE 'import.record' END, key || '.begins',
           CASE class
           WHEN 'tool' THEN json_fields('call_id', coalesce(a -> '$."gen_ai.tool.call.id"', json_text(key)),
               'tool', coalesce(a -> '$."gen_ai.tool.name"', a -> '$."tool.name"', json_text(name)), 'input', input,
               'source', source, 'extra', s)
           WHEN 'model' THEN json_fields('id', json_text(key), 'role', '"assistant"', 'content', coalesce(output, '""'),
               'model', coalesce(a -> '$."gen_ai.response.model"', a -> '$."gen_ai.request.model"', a -> '$."llm.model_name"',
                                 nullif(s -> '$.model', 'null')),
               'source', source, 'extra', s)
           WHEN 'agent' THEN json_fields('turn_id', json_text(key), 'status', '"running"', 'source', source, 'extra', s)
           ELSE json_fields('kind', json_text(name), 'source', source, 'extra', s) END, NEW.n
    FROM spans, now;
    INSERT INTO out (row, i, k, session, ts, type, id, data, n)
    SELECT NEW.row, i, 1000001, session, t1, CASE WHEN class = 'agent' THEN CASE WHEN failed THEN 'turn.failed' ELSE 'turn.completed' END
               WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END, key || '.ends',
           CASE class
           WHEN 'agent' THEN json_fields('turn_id', json_text(key), 'error', CASE WHEN failed THEN coalesce(s -> '$.status', s -> '$.statusMessage') END,
               'timing', json_fields('totalMs', (t1 - t0) / 1000), 'source', source)
           ELSE json_fields('call_id', coalesce(a -> '$."gen_ai.tool.call.id"', json_text(key)),
               'success', CASE WHEN failed THEN 'false' ELSE 'true' END, 'output', output, 'duration_ms', (t1 - t0) / 1000,
               'source', source) END, NEW.n
    FROM spans, now WHERE class IN ('agent', 'tool');
    INSERT INTO out
    SELECT NEW.row, i, 1000002, session, t1, 'agent.turn.usage',
           CASE WHEN class = 'model' THEN coalesce('response.' || nullif(a ->> '$."gen_ai.response.id"', ''), key) ELSE key END || '.usage',
           json_fields('message_id', json_text(key),
               'model', coalesce(a -> '$."gen_ai.response.model"', a -> '$."gen_ai.request.model"', a -> '$."llm.model_name"',
                                 nullif(s -> '$.model', 'null')),
               -- The tokens of an agent span are a sum: the length of each prompt is unknown.
               'prompt_tokens', CASE WHEN class IN ('agent', 'other') THEN -1 WHEN below_in > 0 THEN input_tokens END,
               'input_tokens', max(0, input_tokens - coalesce(below_in, 0)),
               'output_tokens', max(0, output_tokens - coalesce(below_out, 0)) + hidden,
               'reasoning_output_tokens', nullif(hidden, 0),
               'cache_write_tokens', CAST(written AS INTEGER),
               'cached_input_tokens', CAST(coalesce(CASE WHEN below_in > 0 THEN 0 END, cached) AS INTEGER),
               'cost_usd', coalesce((a ->> '$."gen_ai.usage.input_cost"') + (a ->> '$."gen_ai.usage.output_cost"'),
                                    a -> '$."gen_ai.usage.cost"', nullif(s -> '$.totalCost', 'null')),
               'source', substr(source, 1, length(source) - 1) || ',"origin":' || json_text('otel ' || key) || '}'), NEW.n, key || '.usage'
    FROM now, (SELECT *, max(0, coalesce(total - others, total - input_tokens - output_tokens, 0)) AS hidden FROM (
        -- Anthropic's own input_tokens are without the cached ones: then there are fewer of them.
        SELECT s.*, told + CASE WHEN class = 'model' AND told < coalesce(CAST(cached AS INTEGER), 0) + coalesce(CAST(written AS INTEGER), 0)
                         THEN coalesce(CAST(cached AS INTEGER), 0) + coalesce(CAST(written AS INTEGER), 0) ELSE 0 END AS input_tokens
        FROM (SELECT *,
        coalesce(a ->> '$."gen_ai.usage.cache_read.input_tokens"', a ->> '$."gen_ai.usage.cache_read_input_tokens"',
                 a ->> '$."llm.token_count.prompt_details.cache_read"', s ->> '$.usageDetails.input_cached_tokens',
                 s ->> '$.usageDetails.input_cache_read', s ->> '$.usageDetails.cache_read_input_tokens') AS cached,
        coalesce(a ->> '$."gen_ai.usage.cache_creation.input_tokens"',
                 a ->> '$."gen_ai.usage.cache_write.input_tokens"', a ->> '$."gen_ai.usage.cache_creation_input_tokens"',
                 a ->> '$."llm.token_count.prompt_details.cache_write"', s ->> '$.usageDetails.input_cache_creation',
                 s ->> '$.usageDetails.cache_creation_input_tokens') AS written,
        -- A total may be larger than its parts: thoughts are not in the output. Langfuse names all
        -- parts.
        CAST(coalesce(a ->> '$."gen_ai.usage.total_tokens"', a ->> '$."llm.token_count.total"', s ->> '$.usageDetails.total')
             AS INTEGER) AS total,
        CASE WHEN json_type(s, '$.usageDetails') = 'object' THEN
            (SELECT CAST(sum(u.value) AS INTEGER) FROM json_each(s, '$.usageDetails') u
             WHERE u.key <> 'total' AND u.type IN ('integer', 'real')) END AS others,
        CAST(coalesce(a ->> '$."gen_ai.usage.input_tokens"', a ->> '$."gen_ai.usage.prompt_tokens"', a ->> '$."llm.token_count.prompt"',
                      s ->> '$.inputUsage', s ->> '$.usageDetails.input') AS INTEGER) AS told,
        CAST(coalesce(a ->> '$."gen_ai.usage.output_tokens"', a ->> '$."gen_ai.usage.completion_tokens"',
                      a ->> '$."llm.token_count.completion"', s ->> '$.outputUsage', s ->> '$.usageDetails.output') AS INTEGER)
            AS output_tokens FROM spans) s))
    WHERE class NOT IN ('tool', 'repeated') AND (input_tokens > 0 OR output_tokens > 0)
      AND record_owner('otel ' || key, session) = session;
    UPDATE tree SET used = 1
    WHERE key IN (SELECT p.key FROM spans p WHERE p.class <> 'embedding' AND EXISTS (
                      SELECT 1 FROM out o WHERE o.row = NEW.row AND o.i = p.i AND o.type = 'agent.turn.usage' AND o.k = 1000002));
    INSERT OR IGNORE INTO agents
    SELECT p.key, o.session, o.ts, o.data, o.n FROM spans p JOIN out o ON o.row = NEW.row AND o.i = p.i
    WHERE (p.class IN ('agent', 'other') OR p.op = '') AND o.type = 'agent.turn.usage';
    DELETE FROM out WHERE row = NEW.row AND type = 'agent.turn.usage' AND i IN (SELECT i FROM spans WHERE class IN ('agent', 'other') OR op = '');
END;

-- batch
SELECT session, ts, type, id, NULL, data, n, formerly FROM out
ORDER BY row, i > 0, CASE WHEN i > 0 THEN ts END,
         CASE type WHEN 'turn.started' THEN 0 WHEN 'turn.completed' THEN 2 WHEN 'turn.failed' THEN 2 ELSE 1 END,
         CASE WHEN type IN ('turn.completed', 'turn.failed') THEN -i ELSE i END, k;
DELETE FROM out;

-- end

-- Spans below an agent may follow it, and follow an earlier end: then the tokens of that end are
-- taken back. Rule (8): so they may in another log, which has a record "below" of the parent that it
-- lacks; or an agent before, whose usage names the spans that were below it.
DELETE FROM ends;
INSERT INTO ends
SELECT session, ts, 'agent.turn.usage', key || '.usage',
       CASE WHEN below -> '$[1][0]' IS NULL THEN data ELSE json_set(data, '$.source.below', json(below -> '$[1]')) END, n, below ->> '$[0]'
FROM (SELECT a.*, (WITH RECURSIVE down (key, used, n) AS (
                       SELECT t.key, t.used, t.n FROM tree t WHERE t.up = a.key
                       UNION SELECT t.key, t.used, t.n FROM down JOIN tree t ON t.up = down.key)
                   SELECT json_array(max(CASE WHEN used THEN n END),
                                     CASE WHEN max(used) THEN json('[]') ELSE json_group_array(key) END) FROM down) AS below
      FROM agents a);
DELETE FROM ends WHERE last <= n OR last IS NULL AND EXISTS (
    SELECT 1 FROM recorded r JOIN (SELECT data ->> '$.message_id' AS key UNION ALL SELECT value FROM json_each(data, '$.source.below'))
    WHERE r.session = ends.session AND r.id = 'below.' || key);
INSERT INTO ends
SELECT session, ts, type, id || '.below', data, n, NULL FROM ends WHERE last > n;
INSERT INTO ends
WITH RECURSIVE above (session, up) AS (
    SELECT session, up FROM tree WHERE used
    UNION SELECT above.session, t.up FROM above JOIN tree t ON t.key = above.up)
SELECT session, 1, 'import.record', 'below.' || up,
       json_fields('kind', '"below"', 'source', json_fields('kind', json_text(kind), 'file', json_text(file)), 'span', json_text(up)),
       (SELECT max(n) FROM tree), NULL
FROM above, source WHERE up NOT GLOB '*.' AND up NOT IN (SELECT t.key FROM tree t);
INSERT INTO ends
SELECT r.session, r.ts, r.type, r.id || '.below', json_remove(r.data, '$.source.below'), (SELECT max(n) FROM tree), NULL
FROM recorded r
WHERE r.type = 'agent.turn.usage' AND r.data ->> '$.prompt_tokens' = -1 AND r.id = (r.data ->> '$.message_id') || '.usage'
  AND r.data ->> '$.message_id' NOT IN (SELECT t.key FROM tree t)
  AND EXISTS (SELECT 1 FROM ends e JOIN (SELECT r.data ->> '$.message_id' AS key UNION ALL SELECT value FROM json_each(r.data, '$.source.below'))
              WHERE e.session = r.session AND e.id = 'below.' || key);
UPDATE ends SET data = json_remove(json_set(data, '$.input_tokens', -(data ->> '$.input_tokens'), '$.output_tokens', -(data ->> '$.output_tokens'),
                                            '$.cached_input_tokens', -(data ->> '$.cached_input_tokens'),
                                            '$.cache_write_tokens', -(data ->> '$.cache_write_tokens'), '$.requests', -1),
                                   '$.source.origin', '$.cost_usd')
WHERE id GLOB '*.usage.below';
SELECT session, ts, type, id, NULL, data, n FROM ends ORDER BY 7, 4;
