-- importer acp   version 1
-- SPDX-License-Identifier: Apache-2.0
--
-- Messages of the Agent Client Protocol, version 1, between an editor and an agent. annal acp gives
-- each message as a line {"from","at","message"}: from is client, agent or annal, at is in
-- microseconds. Bytes that are not a message have "reason" and "text" or "base64" in place of
-- "message". docs/acp.md lists the resulting events; annal/import.h describes the tables.
--
--  (1) Each message is an import.record that contains it unchanged; further events have its meaning. A
--      message that names no session, or with an escape \u, belongs to the session of the connection.
--  (2) The chunks of a message are joined into an event when another update follows.
--  (3) A call is an event when it has its input or runs; its result when it is completed or failed.
--  (4) A session that the store has is continued. While an agent loads it, the agent repeats messages:
--      these are import.record only. So is a prompt that an agent repeats within its turn.
--  (5) Events of two types are not appended. acp.pass: pass its data on in place of the message.
--      acp.answer: do not pass the message on; answer.sql answers it.
--  (6) An agent that cannot load sessions continues a loaded session as a new one of its own, whose
--      id is in sessions.agents: ids are exchanged in both directions.

-- once
-- name: of the connection; connection: its session.
CREATE TABLE proxy (name TEXT, connection TEXT, agent TEXT, lists INTEGER, loads INTEGER);
INSERT INTO proxy SELECT file, session_id('acp-connection-' || file), o.value, 1, 1 FROM source, options o WHERE o.name = 'agent';

-- Requests without an answer, the newest 256 of each side: id and cwd are JSON. instead: annal answers it.
CREATE TABLE requests (side TEXT, id TEXT, method TEXT, acp TEXT, cwd TEXT, instead INTEGER, n INTEGER, PRIMARY KEY (side, id)) WITHOUT ROWID;
CREATE INDEX requests_newest ON requests (side, n);

-- acp: the client's id of a session; agents: the agent's, if it is another; part, part_id: what the
-- chunks are of, and their message; repeats: the agent repeats what the store has.
CREATE TABLE sessions (acp TEXT PRIMARY KEY, session TEXT, agents TEXT, turn TEXT, part TEXT, part_id TEXT, part_ts INTEGER,
                       part_bytes INTEGER, repeats INTEGER, cost REAL, model TEXT) WITHOUT ROWID;
CREATE TABLE chunks (k INTEGER PRIMARY KEY, acp TEXT, text TEXT, content TEXT);
CREATE TABLE calls (acp TEXT, id TEXT, tool TEXT, title TEXT, input TEXT, output TEXT, called INTEGER, ended INTEGER,
                    PRIMARY KEY (acp, id)) WITHOUT ROWID;

CREATE TABLE out (session TEXT, ts INTEGER, type TEXT, data TEXT, n INTEGER);

-- The message. method: of a request or notification; asked: the method that it answers; kind: what an
-- update is of; call: the path of a call that it describes.
CREATE TABLE now (n INTEGER, ts INTEGER, side TEXT, id TEXT, method TEXT, asked TEXT, instead INTEGER, acp TEXT, cwd TEXT,
                  kind TEXT, part TEXT, call TEXT, seen INTEGER, session TEXT, turn TEXT, agents TEXT, repeats INTEGER, source TEXT);

-- A message ends.
CREATE TRIGGER flush AFTER UPDATE OF part ON sessions WHEN OLD.part IS NOT NULL BEGIN
    INSERT INTO out
    SELECT NEW.session, OLD.part_ts, 'message.added', json_fields(
               'id', json_text(name || '.' || first), 'role', CASE OLD.part WHEN 'user_message_chunk' THEN '"user"' ELSE '"assistant"' END,
               'content', CASE WHEN NOT texts THEN blocks WHEN OLD.part = 'agent_thought_chunk'
                   THEN '[{"type":"thinking","thinking":' || json_text(joined) || '}]' ELSE json_text(joined) END,
               'message_id', json_text(OLD.part_id), 'turn_id', json_text(NEW.turn), 'source', now.source), now.n
    FROM now, proxy, (SELECT min(k) AS first, count(text) = count(*) AS texts, group_concat(text, '') AS joined,
                      json_group_array(json(content)) AS blocks
                      FROM (SELECT * FROM chunks WHERE acp = NEW.acp ORDER BY k))
    WHERE first IS NOT NULL;
    DELETE FROM chunks WHERE acp = NEW.acp;
END;

CREATE TRIGGER line AFTER INSERT ON lines BEGIN
    DELETE FROM now;
    INSERT INTO now (n, ts, side, id, method, asked, instead, acp, cwd, kind)
    SELECT NEW.n, NEW.json ->> '$.at', v.side, v.id, v.method, r.method, r.instead,
           CASE WHEN r.method IN ('session/new', 'session/fork') THEN given
                WHEN r.id IS NOT NULL THEN r.acp
                WHEN v.side = 'agent' THEN coalesce((SELECT s.acp FROM sessions s WHERE s.agents = named), named) ELSE named END,
           CASE WHEN r.id IS NOT NULL THEN r.cwd WHEN json_type(NEW.json, '$.message.params.cwd') = 'text' THEN NEW.json -> '$.message.params.cwd' END,
           CASE WHEN v.method = 'session/update' AND v.side = 'agent' THEN NEW.json ->> '$.message.params.update.sessionUpdate' END
    FROM (SELECT NEW.json ->> '$.from' AS side, NEW.json -> '$.message.id' AS id,
                 CASE json_type(NEW.json, '$.message.method') WHEN 'text' THEN NEW.json ->> '$.message.method' END AS method,
                 CASE WHEN instr(NEW.json -> '$.message.params.sessionId', '\u') = 0 AND json_type(NEW.json, '$.message.params.sessionId') = 'text'
                      THEN nullif(NEW.json ->> '$.message.params.sessionId', '') END AS named,
                 CASE WHEN instr(NEW.json -> '$.message.result.sessionId', '\u') = 0 AND json_type(NEW.json, '$.message.result.sessionId') = 'text'
                      THEN nullif(NEW.json ->> '$.message.result.sessionId', '') END AS given) v
    LEFT JOIN requests r ON v.method IS NULL AND r.side = CASE v.side WHEN 'agent' THEN 'client' ELSE 'agent' END AND r.id = v.id;
    DELETE FROM requests WHERE (side, id) = (SELECT CASE now.side WHEN 'agent' THEN 'client' ELSE 'agent' END, now.id FROM now WHERE asked IS NOT NULL);

    UPDATE now SET seen = EXISTS (SELECT 1 FROM sessions s WHERE s.acp = now.acp),
        part = CASE WHEN kind IN ('user_message_chunk', 'agent_message_chunk', 'agent_thought_chunk')
                         AND json_type(NEW.json, '$.message.params.update.content') = 'object' THEN kind END,
        call = CASE WHEN kind IN ('tool_call', 'tool_call_update') AND json_type(NEW.json, '$.message.params.update.toolCallId') = 'text'
                    THEN '$.message.params.update'
                    WHEN method = 'session/request_permission' AND json_type(NEW.json, '$.message.params.toolCall.toolCallId') = 'text'
                    THEN '$.message.params.toolCall' END,
        source = json_fields('kind', '"acp"', 'file', (SELECT json_text(name) FROM proxy), 'line', n, 'record', id);

    UPDATE now SET acp = NULL FROM proxy
    WHERE method = 'session/load' AND NOT loads AND NOT seen AND record_owner(session_id('acp-' || acp), NULL) IS NULL;

    -- The session, and the end of the message of which the chunks are.
    INSERT INTO out
    SELECT connection, ts, 'session.created', json_fields('id', json_text(connection), 'agent_id', json_text(agent), 'status', '"idle"',
               'title', '"connection of an editor"', 'source', source), n
    FROM now, proxy WHERE n = 1;
    INSERT INTO out
    SELECT session_id('acp-' || acp), ts, 'session.created', json_fields(
               'id', json_text(session_id('acp-' || acp)), 'agent_id', json_text(agent), 'status', '"idle"', 'flow_id', json_text(connection),
               'working_directory', cwd, 'source', json_set(source, '$.record', acp)), n
    FROM now, proxy WHERE NOT seen AND acp IS NOT NULL AND record_owner(session_id('acp-' || acp), NULL) IS NULL;
    INSERT INTO sessions (acp, session, repeats)
    SELECT acp, session_id('acp-' || acp), 0 FROM now WHERE NOT seen AND acp IS NOT NULL;
    UPDATE sessions SET repeats = 0 WHERE acp = (SELECT acp FROM now WHERE asked = 'session/load');
    UPDATE sessions SET repeats = 1
    WHERE acp = (SELECT now.acp FROM now WHERE method = 'session/load'
                 AND (seen OR record_owner(session_id('acp-' || now.acp), NULL) IS NOT NULL));
    UPDATE now SET (session, turn, agents, repeats) = (SELECT s.session, s.turn, s.agents,
            s.repeats OR now.part IS 'user_message_chunk' AND s.turn IS NOT NULL FROM sessions s WHERE s.acp = now.acp);
    UPDATE sessions SET part = NULL
    WHERE part IS NOT NULL AND ((SELECT side FROM now) = 'annal' OR acp = (
        SELECT now.acp FROM now WHERE now.part IS NOT NULL AND (now.part IS NOT sessions.part OR sessions.part_bytes > 4000000
                    OR sessions.part_id IS NOT NEW.json ->> '$.message.params.update.messageId')
               OR call IS NOT NULL OR kind = 'plan' OR method IN ('session/prompt', 'session/load')
               OR asked IN ('session/prompt', 'session/load')));

    -- The message itself.
    INSERT INTO out
    SELECT coalesce(session, connection), ts, CASE WHEN json_type(NEW.json, '$.message') IS NULL THEN 'import.unreadable' ELSE 'import.record' END,
           CASE WHEN json_type(NEW.json, '$.message') IS NULL
                THEN json_fields('reason', w -> '$.reason', 'text', w -> '$.text', 'base64', w -> '$.base64', 'from', json_text(side), 'source', source)
                ELSE json_fields('kind', json_text(coalesce(kind, method, asked || ' answer', CASE side WHEN 'annal' THEN 'end' END, 'unknown')),
                                 'turn_id', json_text(turn),
                                 'source', CASE WHEN repeats THEN json_set(source, '$.copied', json('true')) ELSE source END,
                                 'extra', json_fields('from', json_text(side), 'message', NEW.json -> '$.message')) END, n
    FROM (SELECT *, coalesce(NEW.json, NEW.unreadable) AS w FROM now), proxy;
    INSERT OR REPLACE INTO requests
    SELECT side, id, method, acp, cwd, side = 'client' AND method = 'session/load' AND NOT loads AND NOT seen, n
    FROM now, proxy WHERE method IS NOT NULL AND id IS NOT NULL;
    DELETE FROM requests WHERE side = (SELECT side FROM now) AND n <= (
        SELECT r.n FROM requests r WHERE r.side = (SELECT side FROM now) ORDER BY r.n DESC LIMIT 1 OFFSET 256);

    -- Chunks of a message.
    UPDATE sessions SET part = now.part, part_id = NEW.json ->> '$.message.params.update.messageId', part_ts = now.ts,
        part_bytes = CASE WHEN sessions.part IS NULL THEN 0 ELSE sessions.part_bytes END + length(NEW.json)
    FROM now WHERE sessions.acp = now.acp AND now.part IS NOT NULL AND NOT now.repeats AND sessions.part IS NULL;
    UPDATE sessions SET part_ts = now.ts, part_bytes = sessions.part_bytes + length(NEW.json)
    FROM now WHERE sessions.acp = now.acp AND now.part IS NOT NULL AND NOT now.repeats;
    INSERT INTO chunks (k, acp, text, content)
    SELECT n, acp, CASE WHEN NEW.json ->> '$.message.params.update.content.type' = 'text' THEN NEW.json ->> '$.message.params.update.content.text' END,
           NEW.json -> '$.message.params.update.content'
    FROM now WHERE part IS NOT NULL AND NOT repeats;

    -- A prompt begins a turn, its answer ends it.
    INSERT INTO out
    SELECT session, ts, 'turn.completed', json_fields('turn_id', json_text(turn), 'reason', '"next_turn"', 'source', source), n
    FROM now WHERE method = 'session/prompt' AND session IS NOT NULL AND turn IS NOT NULL AND side = 'client';
    UPDATE now SET turn = (SELECT name FROM proxy) || '.' || n WHERE method = 'session/prompt' AND session IS NOT NULL AND side = 'client';
    UPDATE sessions SET turn = now.turn FROM now WHERE sessions.acp = now.acp AND method = 'session/prompt' AND side = 'client';
    INSERT INTO out
    SELECT session, ts, 'turn.started', json_fields('turn_id', json_text(turn), 'status', '"running"', 'prompt_ref', json_text(turn), 'source', source), n
    FROM now WHERE method = 'session/prompt' AND session IS NOT NULL AND side = 'client';
    INSERT INTO out
    SELECT session, ts, 'message.added', json_fields('id', json_text(turn), 'role', '"user"', 'content', NEW.json -> '$.message.params.prompt',
                                                     'turn_id', json_text(turn), 'source', source), n
    FROM now WHERE method = 'session/prompt' AND session IS NOT NULL AND side = 'client' AND json_type(NEW.json, '$.message.params.prompt') = 'array';

    -- Calls.
    INSERT INTO calls (acp, id)
    SELECT acp, NEW.json ->> (call || '.toolCallId') FROM now WHERE call IS NOT NULL AND NOT repeats AND session IS NOT NULL
    ON CONFLICT DO NOTHING;
    UPDATE calls SET
        tool = coalesce(u ->> '$.name', calls.tool, u ->> '$.kind'), title = coalesce(u ->> '$.title', title),
        input = coalesce(CASE WHEN u -> '$.rawInput' NOT IN ('null', '{}') THEN u -> '$.rawInput' END, input),
        output = coalesce(CASE json_type(u, '$.content') WHEN 'array' THEN nullif((SELECT json_group_array(
                     json(CASE c.value ->> '$.type' WHEN 'content' THEN coalesce(c.value -> '$.content', 'null') ELSE c.value END))
                     FROM json_each(u, '$.content') c WHERE c.type = 'object'), '[]') END,
                     CASE WHEN u -> '$.rawOutput' <> 'null' THEN u -> '$.rawOutput' END, output)
    FROM (SELECT acp AS of, NEW.json ->> (call || '.toolCallId') AS call_id, NEW.json -> call AS u FROM now WHERE call IS NOT NULL AND NOT repeats)
    WHERE calls.acp = of AND calls.id = call_id;
    INSERT INTO out
    SELECT now.session, ts, 'tool.called', json_fields('call_id', json_text(c.id), 'tool', coalesce(json_text(tool), '"other"'), 'input', input,
               'title', json_text(title), 'turn_id', json_text(turn), 'source', source), n
    FROM now, calls c
    WHERE c.acp = now.acp AND NOT coalesce(called, 0) AND (asked = 'session/prompt' OR c.id = NEW.json ->> (call || '.toolCallId') AND
          (input IS NOT NULL OR coalesce(NEW.json ->> (call || '.status'), 'pending') <> 'pending'));
    UPDATE calls SET called = 1
    FROM now WHERE calls.acp = now.acp AND (asked = 'session/prompt' OR calls.id = NEW.json ->> (call || '.toolCallId') AND
          (input IS NOT NULL OR coalesce(NEW.json ->> (call || '.status'), 'pending') <> 'pending'));
    INSERT INTO out
    SELECT now.session, ts, CASE status WHEN 'failed' THEN 'tool.failed' ELSE 'tool.returned' END, json_fields(
               'call_id', json_text(c.id), 'success', CASE status WHEN 'failed' THEN 'false' ELSE 'true' END, 'output', output,
               'turn_id', json_text(turn), 'source', source), n
    FROM (SELECT *, NEW.json ->> (call || '.status') AS status FROM now WHERE call LIKE '%.update') now
    JOIN calls c ON c.acp = now.acp AND c.id = NEW.json ->> (call || '.toolCallId')
    WHERE status IN ('completed', 'failed') AND ended IS NULL;
    UPDATE calls SET ended = 1, output = NULL
    FROM now WHERE calls.acp = now.acp AND call LIKE '%.update' AND calls.id = NEW.json ->> (call || '.toolCallId')
                   AND NEW.json ->> (call || '.status') IN ('completed', 'failed');

    -- The plan, what was used, the title, the model, the end of the turn.
    INSERT INTO out
    SELECT session, ts, 'plan.updated', json_fields('entries', NEW.json -> '$.message.params.update.entries', 'turn_id', json_text(turn), 'source', source), n
    FROM now WHERE kind = 'plan' AND session IS NOT NULL AND NOT repeats AND json_type(NEW.json, '$.message.params.update.entries') = 'array';
    INSERT INTO out
    SELECT now.session, ts, 'agent.turn.usage', json_fields('cost_usd', json_text(amount - coalesce(cost, 0)) ->> '$',
               'requests', 0, 'turn_id', json_text(now.turn), 'source', source), n
    FROM (SELECT *, NEW.json ->> '$.message.params.update.cost.amount' AS amount FROM now
          WHERE kind = 'usage_update' AND NEW.json ->> '$.message.params.update.cost.currency' = 'USD'
                AND json_type(NEW.json, '$.message.params.update.cost.amount') IN ('integer', 'real') AND NOT repeats) now
    JOIN sessions s USING (acp) WHERE amount > coalesce(cost, 0);
    UPDATE sessions SET cost = NEW.json ->> '$.message.params.update.cost.amount'
    FROM now WHERE sessions.acp = now.acp AND kind = 'usage_update'
                   AND json_type(NEW.json, '$.message.params.update.cost.amount') IN ('integer', 'real');
    INSERT INTO out
    SELECT session, ts, 'agent.turn.usage', json_fields(
               'input_tokens', CAST(u ->> '$.inputTokens' + coalesce(u ->> '$.cachedReadTokens', 0) + coalesce(u ->> '$.cachedWriteTokens', 0) AS INTEGER),
               'output_tokens', u -> '$.outputTokens', 'cached_input_tokens', nullif(u -> '$.cachedReadTokens', 'null'),
               'cache_write_tokens', nullif(u -> '$.cachedWriteTokens', 'null'), 'reasoning_output_tokens', nullif(u -> '$.thoughtTokens', 'null'),
               'prompt_tokens', 0, 'turn_id', json_text(turn), 'source', source), n
    FROM (SELECT *, NEW.json -> '$.message.result.usage' AS u FROM now WHERE asked = 'session/prompt' AND session IS NOT NULL) now
    WHERE json_type(u, '$.inputTokens') = 'integer' AND json_type(u, '$.outputTokens') = 'integer';
    INSERT INTO out
    SELECT session, ts, 'session.updated', json_fields('set', json_fields('title', NEW.json -> '$.message.params.update.title'), 'source', source), n
    FROM now WHERE kind = 'session_info_update' AND NEW.json ->> '$.message.params.update.title' <> '' AND session IS NOT NULL;
    INSERT INTO out
    SELECT now.session, ts, 'session.updated', json_fields('set', json_fields('model', json_text(found)), 'source', source), n
    FROM (SELECT *, coalesce(NEW.json ->> '$.message.result.models.currentModelId', (
              SELECT o.value ->> '$.currentValue' FROM json_each(NEW.json, CASE WHEN method IS NULL THEN '$.message.result.configOptions'
                                                                           ELSE '$.message.params.update.configOptions' END) o
              WHERE o.type = 'object' AND o.value ->> '$.category' = 'model' LIMIT 1)) AS found
          FROM now WHERE session IS NOT NULL AND (kind = 'config_option_update' OR asked LIKE 'session/%')) now
    JOIN sessions s USING (acp) WHERE found <> '' AND found IS NOT s.model;
    UPDATE sessions SET model = (SELECT data ->> '$.set.model' FROM out WHERE type = 'session.updated' AND data ->> '$.set.model' <> '')
    WHERE acp = (SELECT acp FROM now) AND EXISTS (SELECT 1 FROM out WHERE type = 'session.updated' AND data ->> '$.set.model' <> '');
    INSERT INTO out
    SELECT session, ts, CASE WHEN json_type(NEW.json, '$.message.error') IS NOT NULL THEN 'turn.failed'
                             WHEN NEW.json ->> '$.message.result.stopReason' = 'cancelled' THEN 'turn.cancelled' ELSE 'turn.completed' END,
           json_fields('turn_id', json_text(turn), 'reason', NEW.json -> '$.message.result.stopReason', 'error', NEW.json -> '$.message.error',
                       'source', source), n
    FROM now WHERE asked = 'session/prompt' AND turn IS NOT NULL;
    UPDATE sessions SET turn = NULL WHERE acp = (SELECT acp FROM now WHERE asked = 'session/prompt');
    DELETE FROM calls WHERE acp = (SELECT acp FROM now WHERE asked = 'session/prompt');

    -- Answers of annal.
    UPDATE proxy SET agent = coalesce(nullif(NEW.json ->> '$.message.result.agentInfo.name', ''), agent),
        lists = json_type(NEW.json, '$.message.result.agentCapabilities.sessionCapabilities.list') IS 'object',
        loads = coalesce(NEW.json -> '$.message.result.agentCapabilities.loadSession', '') = 'true'
    FROM now WHERE asked = 'initialize' AND NEW.json ->> '$.message.result.protocolVersion' = 1;
    INSERT INTO out
    SELECT connection, ts, 'acp.pass', json_patch(NEW.json -> '$.message', json_object('result', json_object('agentCapabilities', json_patch(
               CASE WHEN loads THEN '{}' ELSE '{"loadSession":true}' END,
               CASE WHEN lists THEN '{}' ELSE '{"sessionCapabilities":{"list":{}}}' END)))), n
    FROM now, proxy WHERE asked = 'initialize' AND NEW.json ->> '$.message.result.protocolVersion' = 1 AND NOT (lists AND loads);
    INSERT INTO out
    SELECT coalesce(session, connection), ts, 'acp.answer',
           json_object('message', json(NEW.json -> '$.message'), 'agent', agent, 'live', json(CASE WHEN seen THEN 'true' ELSE 'false' END)), n
    FROM now, proxy
    WHERE side = 'client' AND id IS NOT NULL AND (method = 'session/list' AND NOT lists OR method = 'session/load' AND NOT loads);
    DELETE FROM requests WHERE (side, id) = (SELECT now.side, now.id FROM now, proxy WHERE now.side = 'client'
        AND (method = 'session/list' AND NOT lists OR method = 'session/load' AND NOT loads AND (seen OR now.acp IS NULL)));
    UPDATE sessions SET agents = NEW.json ->> '$.message.result.sessionId'
    WHERE acp = (SELECT acp FROM now WHERE instead AND json_type(NEW.json, '$.message.result.sessionId') = 'text');
    -- The agent refused the new session: it still does not have this one.
    DELETE FROM sessions WHERE acp = (SELECT acp FROM now WHERE instead AND json_type(NEW.json, '$.message.error') IS NOT NULL);
    INSERT INTO out
    SELECT session, ts, 'acp.pass', json_remove(NEW.json -> '$.message', '$.result.sessionId'), n FROM now WHERE instead;
    INSERT INTO out
    SELECT session, ts, 'acp.pass', json_set(NEW.json -> '$.message', '$.params.sessionId', CASE side WHEN 'client' THEN agents ELSE acp END), n
    FROM now WHERE agents IS NOT NULL AND method IS NOT NULL AND NOT (method = 'session/load' AND side = 'client');
END;

-- batch
SELECT session, ts, type, NULL, NULL, data, n FROM out ORDER BY rowid;
DELETE FROM out;
