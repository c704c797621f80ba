-- importer tau-bench   version 2
-- SPDX-License-Identifier: Apache-2.0
-- files: *.jsonl *.json
-- split: $
--
-- Results of tau-bench: each run is an object, on a line of its own or in an array, with the
-- conversation in traj. docs/events.md lists the resulting events; annal/import.h describes the
-- tables that an importer can read.
--
--  (1) Each run is a session (log_session), named after the file, the task (else the line) and the trial. The log
--      has no times.
--  (2) session.created contains the run, without its conversation, under "extra".
--  (3) A user's message begins a turn. A run has its reward once it is over, so its last turn has
--      ended.

-- detect
SELECT max(CASE WHEN json_type(v, '$.traj') = 'array' AND json_type(v, '$.reward') IS NOT NULL
                     AND json_type(v, '$.task_id') IS NOT NULL THEN 95 ELSE 0 END)
FROM (SELECT coalesce(json -> '$.value', json) AS v FROM lines)

-- once
CREATE TABLE file (stem TEXT);
INSERT INTO file SELECT stem FROM source;
CREATE TABLE out (row INTEGER, i INTEGER, k INTEGER, session TEXT, type TEXT, id TEXT, data TEXT, n INTEGER);
-- The small columns come first: SQLite reads them without the columns after them.
CREATE TABLE now (source TEXT, session TEXT, main TEXT, v TEXT);
-- Beginnings of the results of failed calls.
CREATE VIEW failures (pattern) AS VALUES ('Error: *'), ('Unknown action *');
CREATE TABLE messages (i INTEGER PRIMARY KEY, m TEXT, role TEXT, turn INTEGER);

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    DELETE FROM messages;
    INSERT INTO now (v, source, session, main)
    SELECT v, json_fields('kind', json_text(kind), 'file', json_text(file), 'line', NEW.n),
           CASE WHEN json_type(v, '$.traj') = 'array'
                THEN log_session(stem || coalesce('-task-' || (v ->> '$.task_id'), '-line-' || NEW.n)
                                 || coalesce('-trial-' || (v ->> '$.trial'), ''), NEW.hash)
                ELSE log_session(stem) END,
           CASE WHEN v IS NULL THEN 'unreadable' WHEN json_type(v, '$.traj') = 'array' THEN 'run' ELSE 'record' END
    FROM source, (SELECT CASE WHEN json_type(NEW.json, '$.at') = 'text' THEN NEW.json -> '$.value' ELSE NEW.json END AS v);
    INSERT INTO messages
    SELECT m.key, m.value, m.value ->> '$.role', NULL FROM now, json_each(v, '$.traj') m WHERE main = 'run' AND m.type = 'object';
    UPDATE messages SET turn = (SELECT count(*) FROM messages p WHERE p.role = 'user' AND p.i <= messages.i);
    INSERT INTO out
    SELECT NEW.row, -1, 0, session, CASE main WHEN 'run' THEN 'session.created' WHEN 'unreadable' THEN 'import.unreadable'
                                    ELSE 'import.record' END,
           CASE main WHEN 'run' THEN 'session.created' ELSE NEW.hash END,
           CASE main
           WHEN 'run' THEN json_fields('id', json_text(session), 'agent_id', '"tau-bench"', 'status', '"idle"',
               'title', coalesce(v -> '$.info.task.instruction', json_text('task ' || (v ->> '$.task_id'))),
               'source', source, 'extra', json_set(v, '$.traj',
                   (SELECT json_group_array(json(CASE e.type WHEN 'object' THEN '{}' ELSE e.value END))
                    FROM json_each(v, '$.traj') e WHERE e.type <> 'object')))
           WHEN 'unreadable' THEN json_set(NEW.unreadable, '$.source', json(source))
           ELSE json_fields('kind', '"line"', 'source', source, 'extra', v) END, NEW.n
    FROM now;
    INSERT INTO out
    SELECT NEW.row, i, 1, session, 'turn.completed', NEW.hash || '.ends.' || i,
           json_fields('turn_id', json_text(CAST(turn - 1 AS TEXT)), 'reason', '"next_turn"', 'source', source), NEW.n
    FROM now, messages WHERE role = 'user' AND turn > 1;
    INSERT INTO out
    SELECT NEW.row, i, 2, session, 'turn.started', NEW.hash || '.begins.' || i,
           json_fields('turn_id', json_text(CAST(turn AS TEXT)), 'sequence', turn, 'status', '"running"',
                       'prompt_ref', json_text(NEW.hash || '.' || i), 'source', source), NEW.n
    FROM now, messages WHERE role = 'user';
    INSERT INTO out
    SELECT NEW.row, i, 3, session,
           CASE WHEN role <> 'tool' OR role IS NULL THEN 'message.added'
                WHEN EXISTS (SELECT 1 FROM failures WHERE m ->> '$.content' GLOB pattern) THEN 'tool.failed'
                ELSE 'tool.returned' END,
           NEW.hash || '.' || i,
           CASE role
           WHEN 'tool' THEN json_fields('call_id', coalesce(m -> '$.tool_call_id', json_text(NEW.hash || i)),
               'output', m -> '$.content', 'turn_id', json_text(CAST(turn AS TEXT)), 'source', source,
               'extra', json_remove(m, '$.tool_call_id', '$.content'))
           ELSE json_fields('id', json_text(NEW.hash || '.' || i), 'role', coalesce(m -> '$.role', '"assistant"'),
               'content', coalesce(nullif(m -> '$.content', 'null'), '""'),
               'turn_id', CASE WHEN turn > 0 THEN json_text(CAST(turn AS TEXT)) END, 'source', source,
               'extra', nullif(json_remove(m, '$.role', '$.content',
                   CASE WHEN json_type(m, '$.tool_calls') IN ('array', 'null')
                             AND NOT EXISTS (SELECT 1 FROM json_each(m, '$.tool_calls') c WHERE c.type <> 'object')
                   THEN '$.tool_calls' ELSE '$.role' END), '{}')) END, NEW.n
    FROM now, messages;
    INSERT INTO out
    SELECT NEW.row, max(i) + 1, 0, session, 'turn.completed', NEW.hash || '.ends', json_fields('turn_id', json_text(CAST(max(turn) AS TEXT)),
           'reason', '"answered"', 'source', source), NEW.n
    FROM now, messages HAVING max(turn) > 0;
    INSERT INTO out
    SELECT NEW.row, i, 4 + c.key, session, 'tool.called', NEW.hash || '.' || i || '.call.' || c.key,
           json_fields('call_id', coalesce(c.value -> '$.id', json_text(NEW.hash || i || c.key)),
                       'tool', c.value -> '$.function.name', 'input', c.value -> '$.function.arguments',
                       'message_id', json_text(NEW.hash || '.' || i), 'turn_id', json_text(CAST(turn AS TEXT)),
                       'source', source, 'extra', json_remove(c.value, '$.id', '$.function.name', '$.function.arguments')), NEW.n
    FROM now, messages, json_each(m, '$.tool_calls') c WHERE c.type = 'object';
END;

-- batch
SELECT session, 1, type, id, NULL, data, n FROM out ORDER BY row, i, k;
DELETE FROM out;
