-- importer swe-agent   version 4
-- SPDX-License-Identifier: Apache-2.0
-- records: history environment
-- recalls: agent.turn.usage/usage
-- files: *.traj
-- split: $.history $.trajectory
--
-- Trajectories of SWE-agent: <instance>.traj, one document with the steps (trajectory), the model's
-- input (history), and the outcome (info). docs/events.md lists the resulting events;
-- annal/import.h describes the tables that an importer can read.
--
--  (1) The session is named after the file (log_session). The log has no times.
--  (2) A step is the model's answer (message.added), its action (tool.called; the tool is the first
--      word of the action) and the result (tool.returned).
--  (3) The history repeats the steps: from it, the first messages of the system and the user are
--      message.added, the rest is import.record. SWE-agent 1 calls the task an observation, too.
--      The user's text in a demonstration (is_demo) is from another session: "said" is empty.
--  (4) Tokens and cost are sums in info.model_stats. If they have changed since an earlier import,
--      the difference is an event of the end.
--  (5) The first event of a line contains the rest of the line under "extra".

-- detect
SELECT max(CASE WHEN json_type(json, '$.value.info.model_stats') = 'object' AND json ->> '$.at' = '$'
                     AND json_type(json, '$.value.trajectory') = 'array' THEN 95
                WHEN json ->> '$.at' = '$.trajectory' AND json_type(json, '$.value.action') IS NOT NULL
                     AND json_type(json, '$.value.observation') IS NOT NULL THEN 85
           ELSE 0 END) FROM lines

-- once
-- Texts that SWE-agent adds before its user's messages. annal/import.h: said().
CREATE VIEW added (begins, ends, seen_in) AS VALUES
    ('We''re currently solving the following issue within our repository. Here''s the issue text:', 'ISSUE:', '0.7'),
    ('<uploaded_files>', '</uploaded_files>', '1.0'),
    ('I''ve uploaded a python code repository in the directory', '<pr_description>', '1.0');

-- Messages of SWE-agent about commands that it stopped or refused.
CREATE VIEW failures (pattern, seen_in) AS VALUES
    ('EXECUTION TIMED OUT*', '0.7'),
    ('The command * was cancelled because it took more than *', '1.0'),
    ('Operation * is not supported by this environment*', '1.0'),
    ('Your bash command contained syntax errors and was NOT executed*', '1.0');

CREATE TABLE file (session TEXT, made INTEGER, asked INTEGER);
INSERT INTO file SELECT log_session(stem), 0, 0 FROM source;
-- The data of the event of the sums.
CREATE TABLE sums (usage TEXT);
CREATE TABLE out (row INTEGER, k INTEGER, session TEXT, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (source TEXT, main TEXT, j TEXT, v TEXT);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (j, v, source, main)
    SELECT j, j -> '$.value', json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n),
           CASE WHEN j IS NULL THEN 'unreadable'
                WHEN j ->> '$.at' = '$' AND json_type(j, '$.value') = 'object' THEN 'meta'
                WHEN j ->> '$.at' = '$.trajectory' AND json_type(j, '$.value') = 'object' THEN 'step'
                WHEN j ->> '$.at' = '$.history' AND j ->> '$.value.role' = 'system' THEN 'told'
                WHEN j ->> '$.at' = '$.history' AND j ->> '$.value.role' = 'user'
                     AND NOT (SELECT asked FROM file)
                     AND NOT (coalesce(j ->> '$.value.message_type', '') = 'observation'
                              AND coalesce(j ->> '$.value.is_demo', 0)) THEN 'told'
                WHEN j ->> '$.at' = '$.history' THEN 'history'
                ELSE 'record' END
    FROM source, (SELECT NEW.json AS j);
    UPDATE file SET asked = 1
    WHERE (SELECT j ->> '$.at' = '$.history' AND v ->> '$.role' = 'assistant'
                  AND NOT coalesce(v ->> '$.is_demo', 0) FROM now);
    INSERT INTO out
    SELECT NEW.row, 0, session, 'session.created', 'session.created',
           CASE main WHEN 'meta' THEN json_fields(
               'id', json_text(session), 'agent_id', '"swe-agent"', 'status', '"idle"',
               'model', coalesce(v -> '$.replay_config.agent.model.name',
                   CASE WHEN json_valid(v ->> '$.replay_config')
                        THEN (v ->> '$.replay_config') -> '$.agent.model.name' END),
               'title', CASE WHEN v ->> '$.environment' NOT IN ('main', 'swe_main') THEN v -> '$.environment' END, 'source', source, 'extra', CASE WHEN v ->> '$.environment' IN ('main', 'swe_main') THEN v ELSE json_remove(v, '$.environment') END)
           ELSE json_fields('id', json_text(session), 'agent_id', '"swe-agent"', 'status', '"idle"',
                            'source', source) END, NEW.n
    FROM file, now WHERE NOT made;
    UPDATE file SET made = 1;
    INSERT INTO out
    SELECT NEW.row, 1, session, 'agent.turn.usage', 'usage',
           -- 0: the number is unknown to SWE-agent.
           json_fields('input_tokens', CASE WHEN v ->> '$.info.model_stats.tokens_sent' > 0
                                            THEN v -> '$.info.model_stats.tokens_sent' END,
                       'output_tokens', CASE WHEN v ->> '$.info.model_stats.tokens_received' > 0
                                             THEN v -> '$.info.model_stats.tokens_received' END,
                       'cost_usd', CASE WHEN v ->> '$.info.model_stats.instance_cost' > 0
                                        THEN v -> '$.info.model_stats.instance_cost' END,
                       'requests', CASE WHEN v ->> '$.info.model_stats.api_calls' > 0
                                        THEN v -> '$.info.model_stats.api_calls' END,
                       'source', source), NEW.n
    FROM file, now WHERE main = 'meta' AND (v ->> '$.info.model_stats.tokens_sent' > 0
        OR v ->> '$.info.model_stats.tokens_received' > 0 OR v ->> '$.info.model_stats.instance_cost' > 0);
    INSERT INTO out
    SELECT NEW.row, 2, session, CASE main WHEN 'unreadable' THEN 'import.unreadable'
               WHEN 'step' THEN 'message.added' WHEN 'told' THEN 'message.added' ELSE 'import.record' END,
           NEW.hash || '.2',
           CASE main
           WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           WHEN 'told' THEN json_fields('id', json_text(NEW.hash), 'role', v -> '$.role', 'content', v -> '$.content',
                                        'said', CASE WHEN v ->> '$.is_demo' THEN '""'
                                                     WHEN v ->> '$.role' = 'user' THEN said(v -> '$.content') END,
                                        'source', source, 'extra', json_remove(v, '$.role', '$.content'))
           WHEN 'step' THEN json_fields(
               'id', json_text(NEW.hash), 'role', '"assistant"',
               'content', coalesce(v -> '$.response', v -> '$.thought', '""'), 'source', source,
               'extra', json_remove(v, '$.response', '$.action', '$.observation',
                   CASE WHEN v ->> '$.thought' = v ->> '$.response' THEN '$.thought' ELSE '$." "' END))
           ELSE json_fields('kind', json_text(main), 'source', source, 'extra', j) END, NEW.n
    FROM file, now WHERE main <> 'meta';
    INSERT INTO out
    SELECT NEW.row, 3, session, 'tool.called', NEW.hash || '.3',
           json_fields('call_id', json_text(NEW.hash),
                       'tool', json_text(coalesce(nullif(substr(a, 1, instr(a || ' ', ' ') - 1), ''), 'none')),
                       'input', v -> '$.action', 'message_id', json_text(NEW.hash), 'source', source), NEW.n
    FROM file, now, (SELECT trim(replace(coalesce(NEW.json ->> '$.value.action', ''), char(10), ' ')) AS a)
    WHERE main = 'step' AND json_type(v, '$.action') IS NOT NULL;
    INSERT INTO out
    SELECT NEW.row, 4, session,
           CASE WHEN EXISTS (SELECT 1 FROM failures WHERE trim(v ->> '$.observation', char(10) || ' ') GLOB pattern)
                THEN 'tool.failed' ELSE 'tool.returned' END, NEW.hash || '.4',
           json_fields('call_id', json_text(NEW.hash), 'output', v -> '$.observation',
                       'duration_ms', CAST(round(1000 * (v ->> '$.execution_time')) AS INTEGER), 'source', source), NEW.n
    FROM file, now WHERE main = 'step' AND json_type(v, '$.observation') IS NOT NULL;
END;

-- batch
INSERT INTO sums SELECT data FROM out WHERE id = 'usage';
SELECT session, 1, type, id, NULL, data, n FROM out ORDER BY row, k;
DELETE FROM out;

-- end
INSERT INTO out
SELECT 0, 0, session, 'agent.turn.usage', 'usage.' || (times + 1),
       json_fields('input_tokens', nullif(input, 0), 'output_tokens', nullif(output, 0), 'cost_usd', nullif(cost, 0),
                   'requests', requests, 'source', usage -> '$.source'), usage ->> '$.source.line'
FROM (SELECT f.session, f.usage, c.times, f.usage ->> '$.input_tokens' - c.input AS input, f.usage ->> '$.output_tokens' - c.output AS output,
             round(f.usage ->> '$.cost_usd' - c.cost, 9) AS cost, coalesce(f.usage ->> '$.requests' - c.requests, 0) AS requests
      FROM (SELECT session, usage FROM file, sums) f, (SELECT count(*) AS times, sum(coalesce(data ->> '$.input_tokens', 0)) AS input,
                           sum(coalesce(data ->> '$.output_tokens', 0)) AS output, sum(coalesce(data ->> '$.cost_usd', 0)) AS cost,
                           sum(coalesce(data ->> '$.requests', 1)) AS requests
                    FROM recorded WHERE type = 'agent.turn.usage' AND (id = 'usage' OR id GLOB 'usage.*')) c)
WHERE times > 0 AND (input <> 0 OR output <> 0 OR cost <> 0 OR requests <> 0);
SELECT session, 1, type, id, NULL, data, n FROM out;
DELETE FROM out;
