-- importer lionagi   version 4
-- SPDX-License-Identifier: Apache-2.0
-- split: $.messages.collections
-- keeps: run.json branches/*.json
-- places: ~/.lionagi/runs
--
-- The run directories of lionagi: runs/<run>/run.json and runs/<run>/branches/*.json, or a single
-- branch file. docs/events.md lists the resulting events; annal/import.h describes the tables that
-- an importer can read.
--
-- A run is read as lines that runs.c writes from its files, each file unchanged except for line
-- breaks:
--     {"run":{"id":…,"ctime":…,"mtime":…,"artifacts":…},"manifest":{…}}      first
--     {"file":{"stem":…,"mtime":…},"branch":{…}}                             the oldest first
--
--  (1) The session is the run. The id of an event names its source (run, branch:ID,
--      message:BRANCH:ID), so a second import adds only new branches and new messages of branches.
--  (2) status is the manifest's status, in the words of the pack; without one it is derived from
--      the exit code; else completed. Times are ISO 8601 or seconds; missing times are taken from
--      the files. Events never take the time of a file, because a copied file is younger than its
--      content: an event without a time has 1.
--  (3) Messages are in the order of the branch's progression; without one, in the order of its
--      collection. A message that is missing in the progression is an import.record.
--  (4) Nothing is lost: the manifest, and a branch without its messages, are kept under "extra". A
--      file that is not JSON becomes import.unreadable.
--  (5) Tokens are taken from a message's metadata.model_response, once a response: forked branches
--      repeat it, and so does a branch file that is imported alone (record_owner: the id of the
--      response).
--  (6) A message that requests an action is a call, too; the message that answers it is its result,
--      which failed if the output is an error.
--  (7) A message of another session (record_owner: its id), as in a copy of a run or in a branch file
--      beside its run, is an import.record without its call and tokens; parent_session_id names that
--      session.

-- detect
SELECT max(CASE
    WHEN json ->> '$.at' = '$' AND json_type(json, '$.value.messages.progression') = 'object' THEN 95
    WHEN json ->> '$.at' = '$.messages.collections' AND json_type(json, '$.value.metadata.lion_class') = 'text' THEN 95
    ELSE 0 END) FROM lines

-- once

CREATE TABLE run (session TEXT, manifest TEXT, began INTEGER);
INSERT INTO run SELECT session_id(stem), NULL, 1 FROM source;

CREATE TRIGGER run_line AFTER INSERT ON lines WHEN json_type(NEW.json, '$.run') = 'object' BEGIN
    UPDATE run SET
        session = session_id(NEW.json ->> '$.run.id'),
        manifest = NEW.json -> '$.manifest',
        began = coalesce(
            CASE json_type(NEW.json, '$.manifest.started_at')
                 WHEN 'text' THEN coalesce(time_us(NEW.json ->> '$.manifest.started_at'),
                                           time_us((NEW.json ->> '$.manifest.started_at') || 'Z'))
                 WHEN 'integer' THEN CAST((NEW.json ->> '$.manifest.started_at') * 1e6 AS INTEGER)
                 WHEN 'real' THEN CAST((NEW.json ->> '$.manifest.started_at') * 1e6 AS INTEGER)
            END, 1);
END;

-- The messages of the branches, and the session that has each: rule (7).
CREATE TABLE continued (session TEXT);
CREATE TABLE told (session TEXT, n INTEGER, branch_id TEXT, place INTEGER, m TEXT, ts INTEGER, source TEXT, owner TEXT);

-- batch

INSERT INTO told
SELECT session, n, branch_id, place, m, ts, source, record_owner('lionagi message ' || (m ->> '$.id'), session)
FROM (SELECT run.session, l.n, l.branch_id, coalesce(o.key, c.key) AS place, c.value AS m,
             coalesce(time_us(c.value ->> '$.created_at'), CAST((c.value ->> '$.created_at') * 1e6 AS INTEGER), run.began) AS ts,
             json_fields('kind', json_text(source.kind), 'file', json_text(l.stem), 'line', CAST(l.n AS TEXT)) AS source
      FROM run, source,
           (SELECT n, json -> '$.branch' AS b, json ->> '$.file.stem' AS stem,
                   coalesce(nullif(json ->> '$.branch.id', ''), json ->> '$.file.stem') AS branch_id
            FROM lines WHERE json_type(json, '$.file') = 'object') l,
           json_each(l.b, '$.messages.collections') c
           LEFT JOIN json_each(l.b, '$.messages.progression.order') o ON o.value = c.value ->> '$.id'
      WHERE c.type = 'object' AND c.value ->> '$.id' IS NOT NULL
        AND (o.key IS NOT NULL OR coalesce(json_array_length(l.b, '$.messages.progression.order'), 0) = 0)
      ORDER BY l.n, place);

SELECT session, ts, type, id, NULL, data, n FROM (
    SELECT run.session, run.began AS ts, 'session.created' AS type, 'run' AS id, l.n, 0 AS part,
           json_fields(
               'id', json_text(run.session),
               'name', json_text(coalesce(nullif(m ->> '$.kind', ''), 'agent')),
               'created_at', j -> '$.run.mtime',
               'updated_at', ended,
               'started_at', CASE WHEN run.began > 1 THEN printf('%.6f', run.began / 1e6)
                             ELSE j -> '$.run.ctime' END,
               'ended_at', CASE WHEN status <> 'running' THEN ended END,
               'status', json_text(status),
               'source_kind', '"imported_fs"',
               'invocation_kind', json_text(CASE WHEN lower(m ->> '$.kind') IN
                   ('agent', 'play', 'flow', 'fanout', 'show-play') THEN lower(m ->> '$.kind') END),
               'playbook_name', json_text(coalesce(nullif(m ->> '$.playbook_name', ''),
                                                   nullif(m ->> '$.playbook', ''))),
               'agent_name', json_text(coalesce(nullif(m ->> '$.agent_name', ''),
                                                nullif(m ->> '$.agent', ''))),
               'artifacts_path', json_text(coalesce(m ->> '$.artifact_root', m ->> '$.artifacts_path',
                                                    j ->> '$.run.artifacts')),
               'agent_id', json_text(coalesce(nullif(m ->> '$.agent_name', ''), 'lionagi')),
               'provider', json_text(nullif(m ->> '$.provider', '')),
               'model', json_text(nullif(m ->> '$.model', '')),
               'source', json_fields('kind', json_text(source.kind), 'file', json_text(source.file),
                                     'line', CAST(l.n AS TEXT)),
               'extra', nullif(m, 'null')) AS data
    FROM run, source,
         (SELECT n, json AS j, json -> '$.manifest' AS m,
                 CASE
                 WHEN json_type(json, '$.manifest.status') NOT IN ('null') THEN
                     CASE lower(json ->> '$.manifest.status')
                     WHEN 'running' THEN 'running' WHEN 'failed' THEN 'failed'
                     WHEN 'error' THEN 'failed' WHEN 'aborted' THEN 'aborted'
                     WHEN 'timed_out' THEN 'timed_out' WHEN 'timeout' THEN 'timed_out'
                     WHEN 'cancelled' THEN 'cancelled' WHEN 'canceled' THEN 'cancelled'
                     ELSE 'completed' END
                 WHEN json_type(json, '$.manifest.exit_code') NOT IN ('null') THEN
                     CASE json ->> '$.manifest.exit_code'
                     WHEN 0 THEN 'completed' WHEN 124 THEN 'timed_out' WHEN 130 THEN 'aborted'
                     WHEN 143 THEN 'cancelled' ELSE 'failed' END
                 ELSE 'completed' END AS status,
                 coalesce(
                     CASE json_type(json, '$.manifest.ended_at')
                     WHEN 'text' THEN nullif(printf('%.6f', coalesce(
                         time_us(json ->> '$.manifest.ended_at'),
                         time_us((json ->> '$.manifest.ended_at') || 'Z')) / 1e6), '0.000000')
                     WHEN 'integer' THEN json -> '$.manifest.ended_at'
                     WHEN 'real' THEN json -> '$.manifest.ended_at' END,
                     json -> '$.run.mtime') AS ended
          FROM lines WHERE json_type(json, '$.run') = 'object') l

    UNION ALL
    SELECT run.session, coalesce(time_us(b ->> '$.created_at'),
                                 CAST((b ->> '$.created_at') * 1e6 AS INTEGER), run.began),
           'branch.created', 'branch:' || branch_id, n, -1,
           json_fields(
               'id', json_text(branch_id),
               'created_at', coalesce(nullif(b -> '$.created_at', 'null'), j -> '$.file.mtime'),
               'name', json_text(coalesce(entry ->> '$.name', run.manifest ->> '$.kind',
                                          b ->> '$.name')),
               'user', nullif(b -> '$.user', 'null'),
               'node_metadata', nullif(json_fields(
                   'provider', json_text(coalesce(entry ->> '$.provider',
                                                  run.manifest ->> '$.provider')),
                   'model', json_text(coalesce(entry ->> '$.model', run.manifest ->> '$.model'))),
                   '{}'),
               'system_msg_id', json_text((
                   SELECT c.value ->> '$.id' FROM json_each(b, '$.messages.collections') c
                   LEFT JOIN json_each(b, '$.messages.progression.order') o
                          ON o.value = c.value ->> '$.id'
                   WHERE c.value ->> '$.role' = 'system'
                   ORDER BY o.key, c.key LIMIT 1)),
               'source', json_fields('kind', json_text(source.kind), 'file', json_text(j ->> '$.file.stem'),
                                     'line', CAST(n AS TEXT)),
               'extra', json_remove(b, '$.messages.collections'))
    FROM run, source,
         (SELECT n, json AS j, json -> '$.branch' AS b,
                 coalesce(nullif(json ->> '$.branch.id', ''), json ->> '$.file.stem') AS branch_id,
                 (SELECT value FROM json_each((SELECT manifest FROM run), '$.branches')
                  WHERE value ->> '$.id' = lines.json ->> '$.branch.id') AS entry
          FROM lines WHERE json_type(json, '$.file') = 'object')

    UNION ALL
    SELECT session, ts, CASE WHEN owner = session THEN 'message.added' ELSE 'import.record' END,
           'message:' || branch_id || ':' || (m ->> '$.id'), n, place,
           CASE WHEN owner = session THEN json_fields(
               'id', json_text(m ->> '$.id'),
               'role', json_text(coalesce(m ->> '$.role', 'unknown')),
               'content', coalesce(nullif(m -> '$.content', 'null'), '{}'),
               'created_at', nullif(m -> '$.created_at', 'null'),
               'node_metadata', coalesce(nullif(m -> '$.metadata', 'null'),
                                         nullif(m -> '$.node_metadata', 'null')),
               'embedding', nullif(m -> '$.embedding', 'null'),
               'sender', nullif(m -> '$.sender', 'null'),
               'recipient', nullif(m -> '$.recipient', 'null'),
               'channel', nullif(m -> '$.channel', 'null'),
               'branch_id', json_text(branch_id),
               'source', substr(source, 1, length(source) - 1) || ',"origin":' || json_text('lionagi message ' || (m ->> '$.id')) || '}',
               'extra', nullif(json_remove(m, '$.id', '$.role', '$.content', '$.created_at', '$.embedding',
                   '$.sender', '$.recipient', '$.channel',
                   CASE WHEN coalesce(json_type(m, '$.metadata'), 'null') <> 'null' THEN '$.metadata'
                        ELSE '$.node_metadata' END), '{}'))
           ELSE json_fields('kind', '"message"', 'branch_id', json_text(branch_id),
                            'source', substr(source, 1, length(source) - 1) || ',"copied":true}', 'extra', m) END
    FROM told

    UNION ALL
    SELECT session, ts, 'session.updated', 'session.continues', n, -0.5,
           json_fields('set', json_fields('parent_session_id', json_text(owner)), 'source', source)
    FROM (SELECT * FROM told WHERE owner <> session ORDER BY n, place LIMIT 1)
    WHERE NOT EXISTS (SELECT 1 FROM continued)

    UNION ALL
    SELECT session, ts, 'agent.turn.usage', 'usage:' || coalesce(nullif(r ->> '$.id', ''), m ->> '$.id'), n, place + 0.5,
           json_fields('message_id', m -> '$.id', 'model', nullif(r -> '$.model', 'null'),
               'input_tokens', coalesce(nullif(u -> '$.prompt_tokens', 'null'),
                   (u ->> '$.input_tokens') + coalesce(u ->> '$.cache_read_input_tokens', 0)
                                            + coalesce(u ->> '$.cache_creation_input_tokens', 0)),
               'output_tokens', coalesce(nullif(u -> '$.completion_tokens', 'null'), nullif(u -> '$.output_tokens', 'null')),
               'cached_input_tokens', nullif(coalesce(u -> '$.prompt_tokens_details.cached_tokens',
                                                      u -> '$.cache_read_input_tokens'), 'null'),
               'cache_write_tokens', nullif(u -> '$.cache_creation_input_tokens', 'null'),
               'reasoning_output_tokens', nullif(u -> '$.completion_tokens_details.reasoning_tokens', 'null'),
               'source', json_fields('kind', json_text(kind), 'file', json_text(stem), 'line', CAST(n AS TEXT),
                                     'origin', json_text('lionagi ' || nullif(r ->> '$.id', ''))))
    FROM (SELECT run.session, source.kind, l.stem, l.n, coalesce(o.key, c.key) AS place, c.value AS m,
                 c.value -> '$.metadata.model_response' AS r, c.value -> '$.metadata.model_response.usage' AS u,
                 coalesce(time_us(c.value ->> '$.created_at'), CAST((c.value ->> '$.created_at') * 1e6 AS INTEGER),
                          run.began) AS ts
          FROM run, source,
               (SELECT n, json -> '$.branch' AS b, json ->> '$.file.stem' AS stem
                FROM lines WHERE json_type(json, '$.file') = 'object') l,
               json_each(l.b, '$.messages.collections') c
               LEFT JOIN json_each(l.b, '$.messages.progression.order') o ON o.value = c.value ->> '$.id'
          WHERE c.type = 'object' AND json_type(c.value, '$.id') = 'text')
    WHERE 'integer' IN (json_type(u, '$.prompt_tokens'), json_type(u, '$.input_tokens'),
                        json_type(u, '$.completion_tokens'), json_type(u, '$.output_tokens'))
      AND coalesce(record_owner('lionagi ' || nullif(r ->> '$.id', ''), session), session) = session
      AND coalesce(record_owner('lionagi message ' || (m ->> '$.id'), NULL), session) = session

    UNION ALL
    SELECT session, ts, CASE WHEN NOT answers THEN 'tool.called'
                             WHEN json_type(a, '$.output.error') = 'text' THEN 'tool.failed' ELSE 'tool.returned' END,
           CASE WHEN answers THEN 'result:' ELSE 'call:' END || branch_id || ':' || (m ->> '$.id'), n, place + 0.7,
           CASE WHEN answers THEN json_fields(
               'call_id', json_text(coalesce(m ->> '$.content.action_request_id', m ->> '$.id')),
               'success', CASE WHEN json_type(a, '$.output.error') = 'text' THEN 'false' END,
               'output', a -> '$.output', 'source', source)
           ELSE json_fields(
               'call_id', m -> '$.id', 'tool', a -> '$.function', 'input', a -> '$.arguments', 'message_id', m -> '$.id',
               'source', source) END
    FROM (SELECT session, n, branch_id, place, m, ts, source,
                 json_type(m, '$.content.action_request_id') IS 'text'
                     OR json_type(m, '$.content.action_response') IS 'object' AS answers,
                 coalesce(CASE WHEN json_type(m, '$.content.action_response') = 'object'
                               THEN m -> '$.content.action_response' END,
                          CASE WHEN json_type(m, '$.content.action_request') = 'object'
                               THEN m -> '$.content.action_request' END, m -> '$.content') AS a
          FROM told WHERE owner = session AND json_type(m, '$.id') = 'text' AND m ->> '$.role' = 'action')
    WHERE json_type(a, '$.function') = 'text'

    UNION ALL
    SELECT run.session, run.began, 'import.record',
           'untold:' || branch_id || ':' || CASE c.type WHEN 'object' THEN coalesce(c.value ->> '$.id', c.key)
                                            ELSE c.key END, n, c.key,
           json_fields('kind', '"message"', 'branch_id', json_text(branch_id), 'extra', l.b -> c.fullkey)
    FROM run,
         (SELECT n, json -> '$.branch' AS b,
                 coalesce(nullif(json ->> '$.branch.id', ''), json ->> '$.file.stem') AS branch_id
          FROM lines WHERE json_type(json, '$.file') = 'object') l,
         json_each(l.b, '$.messages.collections') c
    WHERE CASE WHEN c.type <> 'object' OR c.value ->> '$.id' IS NULL THEN 1
          ELSE coalesce(json_array_length(l.b, '$.messages.progression.order'), 0) > 0
               AND NOT EXISTS (SELECT 1 FROM json_each(l.b, '$.messages.progression.order') o
                               WHERE o.value = c.value ->> '$.id') END

    UNION ALL
    SELECT run.session, run.began, 'import.unreadable', 'unreadable:' || l.hash, l.n, 0,
           json_patch(l.unreadable, json_fields('source', json_fields(
               'kind', json_text(source.kind), 'file', json_text(source.file),
               'line', CAST(l.n AS TEXT))))
    FROM run, source, lines l WHERE l.json IS NULL

    UNION ALL
    SELECT run.session, run.began, 'import.record', 'record:' || l.hash, l.n, 0,
           json_fields('kind', '"unknown"', 'extra', l.json)
    FROM run, lines l
    WHERE l.json IS NOT NULL AND json_type(l.json, '$.run') IS NOT 'object'
      AND json_type(l.json, '$.file') IS NOT 'object')
ORDER BY n, part;

INSERT INTO continued SELECT owner FROM told WHERE owner <> session AND NOT EXISTS (SELECT 1 FROM continued) LIMIT 1;
DELETE FROM told;
