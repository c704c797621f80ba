-- importer mini-swe-agent   version 3
-- SPDX-License-Identifier: Apache-2.0
-- files: *.traj.json
-- split: $.messages
-- recalls: agent.turn.usage/usage
-- places: $MSWEA_GLOBAL_CONFIG_DIR $XDG_CONFIG_HOME/mini-swe-agent ~/.config/mini-swe-agent
--
-- Trajectories of mini-swe-agent: <instance>.traj.json, one document with the messages and info.
-- docs/events.md lists the resulting events; annal/import.h describes the tables that an importer
-- can read.
--
--  (1) The session is the instance in the document, else the file (log_session). A message has the time of its
--      response, else the time of the message before. The session's created_at follows in a
--      session.updated once a time is known.
--  (2) The model's answer is message.added; the command in it (the block of bash, or tool calls) is
--      tool.called, and the next message, which has the result, tool.returned, or tool.failed if it
--      begins with a <returncode> other than 0, or with a text of the view failures.
--  (3) Each response contains its tokens. The cost is a sum in info.model_stats. If it
--      has changed since an earlier import, the difference is an event of the end.
--  (4) The first event of a line contains the rest of the line under "extra".
--  (5) An answer of another session (record_owner: the id of the response), as in a copy of the file,
--      is an import.record without call and tokens; parent_session_id names that session.

-- detect
SELECT max(CASE WHEN json ->> '$.value.trajectory_format' LIKE 'mini-swe-agent%' THEN 98
                WHEN json_type(json, '$.value.info.mini_version') IS NOT NULL THEN 90
           ELSE 0 END) FROM lines

-- once
-- Texts that mini-swe-agent adds before its user's messages. annal/import.h: said().
CREATE VIEW added (begins, ends, seen_in) AS VALUES
    ('<pr_description>', 'Consider the following PR description:', '1.0');

-- Messages of mini-swe-agent about commands that it stopped.
CREATE VIEW failures (pattern, seen_in) AS VALUES
    ('The last command <command>*</command> timed out and has been killed.*', '1.0'),
    ('<exception>*</exception>*', '2.0');

-- The cost of the document.
CREATE TABLE sums (cost REAL, line TEXT);
CREATE TABLE file (session TEXT, ts INTEGER, made INTEGER, call TEXT, model TEXT);
INSERT INTO file
SELECT log_session(CASE WHEN stem LIKE '%.traj' THEN substr(stem, 1, length(stem) - 5) ELSE stem END), 1, 0, NULL, NULL
FROM source;
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, ts INTEGER, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (role TEXT, source TEXT, main TEXT, command TEXT, owner TEXT, j TEXT, v TEXT);
CREATE TABLE copied_calls (call TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE continued (session TEXT);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, v, role, source, main, command)
    SELECT j, j -> '$.value', j ->> '$.value.role',
           json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' AND json_type(j, '$.value') = 'object' THEN 'meta'
                WHEN j ->> '$.at' = '$.messages' AND json_type(j, '$.value.role') = 'text'
                THEN CASE WHEN j ->> '$.value.role' = 'tool'
                            OR (j ->> '$.value.role' = 'user' AND (SELECT call FROM file) IS NOT NULL) THEN 'result'
                     ELSE 'message' END
                ELSE 'record' END,
           CASE WHEN j ->> '$.value.role' = 'assistant' AND json_type(j, '$.value.tool_calls') IS NULL
                     AND instr(j ->> '$.value.content', '```bash' || char(10)) > 0
                THEN (SELECT substr(t, 1, instr(t || char(10) || '```', char(10) || '```') - 1)
                      FROM (SELECT substr(j ->> '$.value.content',
                                          instr(j ->> '$.value.content', '```bash' || char(10)) + 8) AS t)) END
    FROM source, (SELECT NEW.json AS j);
    UPDATE file SET
        session = coalesce((SELECT log_session(v ->> '$.instance_id') FROM now WHERE main = 'meta'), session),
        model = coalesce((SELECT v ->> '$.info.config.model.model_name' FROM now WHERE main = 'meta'), model),
        ts = coalesce((SELECT CAST(coalesce(v ->> '$.extra.response.created', v ->> '$.extra.timestamp') AS REAL) * 1000000
                       FROM now WHERE v ->> '$.extra.response.created' > 0 OR v ->> '$.extra.timestamp' > 0), ts);
    UPDATE file SET ts = CAST(ts AS INTEGER);
    UPDATE now SET owner = record_owner('mini-swe-agent ' || (v ->> '$.extra.response.id'), (SELECT session FROM file)),
        source = substr(source, 1, length(source) - 1) || ',"origin":' || json_text('mini-swe-agent ' || (v ->> '$.extra.response.id')) || '}'
    WHERE main = 'message' AND role = 'assistant' AND v ->> '$.extra.response.id' <> '';
    UPDATE now SET owner = nullif(owner, (SELECT session FROM file));
    INSERT OR IGNORE INTO copied_calls
    SELECT c.value ->> '$.id' FROM now, json_each(v, '$.tool_calls') c
    WHERE owner IS NOT NULL AND c.type = 'object' AND c.value ->> '$.id' IS NOT NULL;
    UPDATE now SET main = 'copy', source = json_set(json_remove(source, '$.origin'), '$.copied', json('true'))
    WHERE owner IS NOT NULL
       OR main = 'result' AND coalesce(v ->> '$.tool_call_id', (SELECT call FROM file)) IN (SELECT c.call FROM copied_calls c);
    -- A command in the text has no id: the next message is its result.
    INSERT OR IGNORE INTO copied_calls SELECT NEW.hash FROM now WHERE owner IS NOT NULL AND command IS NOT NULL;
    INSERT INTO out
    SELECT NEW.row, 0, session, ts, 'session.created', 'session.created',
           CASE main WHEN 'meta' THEN json_fields(
               'id', json_text(session), 'agent_id', '"mini-swe-agent"', 'status', '"idle"', 'model', json_text(model),
               'working_directory', v -> '$.info.config.environment.cwd', 'source', source, 'extra', v)
           ELSE json_fields('id', json_text(session), 'agent_id', '"mini-swe-agent"', 'status', '"idle"',
                            'source', source) END, NEW.n
    FROM file, now WHERE NOT made;
    INSERT INTO out
    SELECT NEW.row, 0, session, ts, 'session.updated', 'session.dated',
           json_fields('set', json_fields('created_at', strftime('"%Y-%m-%dT%H:%M:%S', ts / 1000000, 'unixepoch') || printf('.%06dZ"', ts % 1000000)),
                       'source', source), NEW.n
    FROM file, now WHERE made = 1 AND ts > 1;
    -- 1: created, before any time was known; 2: created_at was set.
    UPDATE file SET made = CASE WHEN ts > 1 THEN 2 ELSE 1 END;
    INSERT INTO out
    SELECT NEW.row, 0, session, ts, 'session.updated', 'session.continues',
           json_fields('set', json_fields('parent_session_id', json_text(owner)), 'source', source), NEW.n
    FROM file, now WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM continued);
    INSERT INTO continued SELECT owner FROM now WHERE owner IS NOT NULL;
    INSERT INTO out
    SELECT NEW.row, 1, session, ts, 'agent.turn.usage', 'usage',
           json_fields('model', json_text(model), 'requests', 0,
                       'cost_usd', v -> '$.info.model_stats.instance_cost', 'source', source), NEW.n
    -- 0: the price is unknown.
    FROM file, now WHERE main = 'meta' AND json_type(v, '$.info.model_stats.instance_cost') IN ('real', 'integer')
      AND v ->> '$.info.model_stats.instance_cost' > 0;
    INSERT INTO out
    SELECT NEW.row, 2, session, ts, CASE main WHEN 'unreadable' THEN 'import.unreadable' WHEN 'message' THEN 'message.added'
               WHEN 'result' THEN CASE WHEN failed THEN 'tool.failed' ELSE 'tool.returned' END
               ELSE 'import.record' END, NEW.hash || '.2',
           CASE main
           WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           WHEN 'message' THEN json_fields(
               'id', json_text(NEW.hash), 'role', v -> '$.role', 'content', coalesce(v -> '$.content', '""'),
               'said', CASE WHEN role = 'user' THEN said(v -> '$.content') END,
               'model', CASE WHEN role = 'assistant' THEN coalesce(v -> '$.extra.response.model', json_text(model)) END,
               'source', source, 'extra', json_remove(v, '$.role', '$.content'))
           WHEN 'result' THEN json_fields(
               'call_id', coalesce(v -> '$.tool_call_id', json_text(call)),
               'success', CASE WHEN failed THEN 'false' WHEN code = 0 THEN 'true' END,
               'output', v -> '$.content', 'exit_code', code, 'source', source,
               'extra', json_remove(v, '$.content', '$.tool_call_id'))
           ELSE json_fields('kind', json_text(main), 'source', source, 'extra', j) END, NEW.n
    FROM file, now, (SELECT code, code <> 0 OR code IS NULL AND EXISTS (SELECT 1 FROM failures WHERE c GLOB pattern) AS failed
                     FROM (SELECT c, CASE WHEN said IS NOT NULL THEN said
                                     WHEN c GLOB '<returncode>[-0-9]*' THEN CAST(substr(c, 13) AS INTEGER)
                                     WHEN c GLOB '{*' AND json_valid(c) AND json_type(c, '$.returncode') = 'integer'
                                     THEN c ->> '$.returncode' END AS code
                           FROM (SELECT coalesce(v ->> '$.content[0].text', v ->> '$.content') AS c,
                                        CASE WHEN json_type(v, '$.extra.returncode') = 'integer'
                                             THEN v ->> '$.extra.returncode' END AS said FROM now WHERE main = 'result' LIMIT 1)
                           UNION ALL SELECT NULL, NULL FROM now WHERE main <> 'result' LIMIT 1))
    WHERE main <> 'meta';
    INSERT INTO out
    SELECT NEW.row, 3, session, ts, 'tool.called', NEW.hash || '.3',
           json_fields('call_id', json_text(NEW.hash), 'tool', '"bash"', 'input', json_text(command),
                       'message_id', json_text(NEW.hash), 'source', source), NEW.n
    FROM file, now WHERE main = 'message' AND command IS NOT NULL;
    INSERT INTO out
    SELECT NEW.row, 4 + c.key, session, ts, 'tool.called', NEW.hash || '.call.' || c.key,
           json_fields('call_id', coalesce(c.value -> '$.id', json_text(NEW.hash || c.key)),
                       'tool', coalesce(c.value -> '$.function.name', '"bash"'),
                       'input', c.value -> '$.function.arguments', 'message_id', json_text(NEW.hash), 'source', source), NEW.n
    FROM file, now, json_each(v, '$.tool_calls') c WHERE main = 'message' AND c.type = 'object';
    UPDATE file SET call = CASE WHEN (SELECT main IN ('message', 'copy') AND command IS NOT NULL FROM now) THEN NEW.hash END;
    INSERT INTO out
    SELECT NEW.row, 1000000, session, ts, 'agent.turn.usage', NEW.hash || '.usage',
           json_fields('message_id', json_text(NEW.hash), 'model', coalesce(v -> '$.extra.response.model', json_text(model)),
                       'input_tokens', u -> '$.prompt_tokens', 'output_tokens', u -> '$.completion_tokens',
                       'cached_input_tokens', u -> '$.prompt_tokens_details.cached_tokens',
                       'reasoning_output_tokens', u -> '$.completion_tokens_details.reasoning_tokens',
                       'source', source), NEW.n
    FROM file, now, (SELECT NEW.json -> '$.value.extra.response.usage' AS u)
    WHERE main = 'message' AND json_type(u, '$.prompt_tokens') = 'integer';
END;

-- batch
INSERT INTO sums SELECT data ->> '$.cost_usd', data -> '$.source' FROM out WHERE id = 'usage';
SELECT session, ts, type, id, NULL, data, n FROM out ORDER BY row, k;
DELETE FROM out;

-- end
INSERT INTO out
SELECT 0, 0, f.session, f.ts, 'agent.turn.usage', 'usage.' || (c.times + 1),
       json_fields('model', json_text(f.model), 'requests', 0, 'cost_usd', round(s.cost - c.cost, 9), 'source', s.line),
       s.line ->> '$.line'
FROM file f, sums s, (SELECT count(*) AS times, round(sum(data ->> '$.cost_usd'), 9) AS cost FROM recorded
                      WHERE type = 'agent.turn.usage' AND (id = 'usage' OR id GLOB 'usage.*')) c
WHERE c.times > 0 AND s.cost > 0 AND round(s.cost, 9) <> c.cost;
SELECT session, ts, type, id, NULL, data, n FROM out;
DELETE FROM out;
