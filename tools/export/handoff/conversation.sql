-- SPDX-License-Identifier: Apache-2.0
--
-- What annal handoff writes of a session, in the same terms for every agent. The driver
-- (tools/cmd/cmd_handoff.c) runs this text, then the file of the target, as one SELECT: the file of
-- a target continues this WITH, and returns rows (what, n, text):
--
--   path    the file; n is -1, because it precedes the lines
--   id      the id of the new session, if it is not task.id
--   resume  the command that continues the session in its agent
--   line    a line of the file; n is its place
--   left    n things that the file does not have; text says which
--
-- Directives at the head of a target:
--
--   -- base: PLACE...   directory of its files: the first of $VAR/NAME whose variable is set, or
--                       ~/NAME; without this line, the current directory
--   -- reads: NAME      a file below the base, whose text becomes task.file
--
-- Texts, inputs and outputs are JSON: a target copies them, so every digit and escape stays.
--
--  (1) A turn that its user took back is left out, and so are thoughts that only their provider can
--      read, instructions of the program (system, developer), tokens, and costs.
--  (2) Thoughts, then texts and images, then calls are one answer. An answer ends at a result, at a
--      message of the user, and before anything but a call that follows a call.
--  (3) The result of a call follows the answer with the call, because no model accepts another
--      place. A result without a call is left out.

-- id: the id of the new session; directory: where the agent continues; hash: its SHA-256; file: the
-- text of the file of "-- reads:"; base: the directory of "-- base:", with a slash; to_path: the file
-- that the user named, or NULL; now: in ms; cd: the begin of the command that resumes.
WITH task (session, id, directory, hash, file, base, to_path, now, cd) AS MATERIALIZED (
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, CASE WHEN ?7 GLOB '/*' THEN ?7 ELSE ?8 || '/' || ?7 END, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
           'cd ''' || replace(?3, '''', '''\''''') || ''' && '),

self AS (
    SELECT s.agent_id, nullif(s.provider, '') AS provider, nullif(s.model, '') AS model, s.title, s.git_branch,
           s.created_at, t.*, CAST(strftime('%s', substr(s.created_at, 1, 19)) AS INTEGER) * 1000 AS created
    FROM sessions s JOIN task t ON s.id = t.session),

history AS MATERIALIZED (
    SELECT e.seq, substr(e.timestamp, 1, 23) || 'Z' AS at,
           CAST(strftime('%s', substr(e.timestamp, 1, 19)) AS INTEGER) * 1000 + substr(e.timestamp, 21, 3) AS ms,
           CASE WHEN e.type IN ('tool.called', 'tool_call') THEN 'call'
                WHEN e.type GLOB 'tool[._]*' THEN 'result' ELSE 'message' END AS kind, e.type, e.data,
           EXISTS (SELECT 1 FROM turns t WHERE t.id = l.ancestor_id || ':' || (e.data ->> '$.turn_id')
                   AND t.status IN ('rolled_back', 'abandoned')) AS taken_back
    FROM lineage l CROSS JOIN events e ON e.session_id = l.ancestor_id AND e.seq BETWEEN l.from_seq AND l.to_seq
    WHERE l.session_id = ?1
      AND e.type IN ('message.added', 'tool.called', 'tool.returned', 'tool.failed', 'tool_call', 'tool_result', 'tool_error')),

-- The blocks of the messages. A content that is one text is one block.
blocks AS (
    SELECT seq, k, who, instructs, added, model, at, ms, taken_back, coalesce(b ->> '$.type', '') AS type,
           CASE WHEN b IS NULL THEN text
                ELSE coalesce(data -> (fullkey || '.text'), data -> (fullkey || '.thinking'),
                              data -> (fullkey || '.summary[0].text')) END AS text,
           coalesce(b ->> '$.source.data', b ->> '$.inlineData.data', b ->> '$.data',
                    substr(url, instr(url, ';base64,') + 8)) AS bytes,
           coalesce(b ->> '$.source.media_type', b ->> '$.inlineData.mimeType', b ->> '$.mimeType',
                    substr(url, 6, instr(url, ';base64,') - 6)) AS mime,
           json_type(b, '$.functionCall') IS NOT NULL OR json_type(b, '$.functionResponse') IS NOT NULL AS repeats
    FROM (SELECT h.*, coalesce(e.key, 0) AS k, CASE h.data ->> '$.role' WHEN 'assistant' THEN 'assistant' ELSE 'user' END AS who,
                 h.data ->> '$.role' IN ('system', 'developer') AS instructs,
                 h.data ->> '$.said' IS '' OR h.data ->> '$.role' IS 'agent' AS added, h.data ->> '$.model' AS model,
                 e.fullkey, CASE WHEN e.type = 'object' THEN e.value END AS b,
                 CASE WHEN e.type = 'text' THEN h.data -> e.fullkey END AS text,
                 CASE WHEN e.type = 'object' THEN coalesce(e.value ->> '$.image_url', e.value ->> '$.url') END AS url
          FROM history h, json_each(h.data, '$.content') e WHERE h.kind = 'message')),

-- The blocks by kind: text, thought, image, or other.
said AS MATERIALIZED (
    SELECT seq, k, who, added, model, at, ms,
           CASE WHEN type IN ('thinking', 'reasoning', 'redacted_thinking', 'thought') THEN 'thought'
                WHEN type IN ('', 'text', 'input_text', 'output_text') AND text LIKE '"%' THEN 'text'
                WHEN mime LIKE 'image/%' AND bytes <> '' AND who = 'user' THEN 'image' ELSE 'other' END AS what,
           CASE WHEN NOT blank THEN text END AS text, mime, bytes, instructs, taken_back, blank
    FROM (SELECT *, trim(CASE WHEN text LIKE '"%' THEN text ->> '$' END, char(9, 10, 13, 32)) IS '' AS blank
          FROM blocks WHERE NOT repeats)),

-- A call of an ancestor may have its result there, or after the fork.
called AS MATERIALIZED (
    SELECT t.seq, t.call_id, t.tool, coalesce(CASE WHEN t.result_seq <= l.to_seq THEN t.result_seq END, (
               SELECT min(r.result_seq)
               FROM lineage a CROSS JOIN tool_calls r ON r.session_id = a.ancestor_id AND r.seq BETWEEN a.from_seq AND a.to_seq
               WHERE a.session_id = ?1 AND a.depth < l.depth AND r.call_id = t.call_id AND r.called_at IS NULL)) AS result_seq
    FROM lineage l CROSS JOIN tool_calls t ON t.session_id = l.ancestor_id AND t.seq BETWEEN l.from_seq AND l.to_seq
    WHERE l.session_id = ?1),

-- An input is an object, or a text that is not a JSON object.
calls AS MATERIALIZED (
    SELECT h.seq, h.at, h.ms, h.taken_back, t.result_seq,
           CASE WHEN t.tool GLOB '*[^a-zA-Z0-9_-]*'
               THEN replace(replace(replace(replace(t.tool, '.', '_'), ':', '_'), '/', '_'), ' ', '_')
               ELSE coalesce(nullif(t.tool, ''), 'unknown') END AS tool,
           CASE WHEN t.call_id GLOB '*[^a-zA-Z0-9_-]*' OR length(t.call_id) > 60
                     OR count(*) OVER (PARTITION BY t.call_id) > 1 THEN 'call_' || h.seq ELSE t.call_id END AS call,
           CASE WHEN json_type(h.data, '$.input') = 'text' AND json_valid(h.data ->> '$.input')
                     AND json_type(h.data ->> '$.input') = 'object' THEN json(h.data ->> '$.input')
                WHEN coalesce(json_type(h.data, '$.input'), 'null') = 'null' THEN '{}'
                ELSE h.data -> '$.input' END AS input
    FROM history h JOIN called t ON t.seq = h.seq
    WHERE h.kind = 'call'),

results AS MATERIALIZED (
    SELECT h.seq, h.at, h.ms, h.taken_back, c.seq AS call_seq, c.call, c.tool, c.input,
           h.type IN ('tool.failed', 'tool_error') OR h.data ->> '$.success' IS 0 AS failed,
           CASE coalesce(json_type(h.data, '$.output'), 'null')
               WHEN 'text' THEN h.data -> '$.output'
               WHEN 'array' THEN (
                   SELECT '"' || coalesce(group_concat(substr(text, 2, length(text) - 2), '\n'), '') || '"'
                   FROM (SELECT CASE WHEN b.type = 'text' THEN h.data -> b.fullkey
                                     WHEN b.type = 'object' THEN coalesce(
                                         h.data -> (b.fullkey || '.text'),
                                         h.data -> (b.fullkey || '.functionResponse.response.output'),
                                         h.data -> (b.fullkey || '.functionResponse.response.error'),
                                         json_quote(h.data ->> (b.fullkey || '.functionResponse.response'))) END AS text
                         FROM json_each(h.data, '$.output') b)
                   WHERE text LIKE '"%')
               WHEN 'null' THEN '""'
               ELSE json_quote(h.data ->> '$.output') END AS output,
           json_type(h.data, '$.output_ref') IS NOT NULL AS apart,
           CASE WHEN json_type(h.data, '$.output') = 'array' THEN (
               SELECT total(CASE WHEN b.type = 'object' THEN b.value ->> '$.type' IN ('image', 'input_image') END)
               FROM json_each(h.data, '$.output') b) ELSE 0 END AS images
    FROM history h LEFT JOIN calls c ON c.result_seq = h.seq
    WHERE h.kind = 'result'),

-- Rule (2): g is the number of the answer. A message of the user has a number of its own.
parts AS (
    SELECT seq, k, who, what, added, model, at, ms, text, mime, bytes, NULL AS call, NULL AS tool, NULL AS input
    FROM said WHERE (what = 'image' OR what IN ('text', 'thought') AND text LIKE '"%') AND NOT instructs AND NOT taken_back
    UNION ALL
    SELECT seq, 0, 'assistant', 'call', 0, NULL, at, ms, NULL, NULL, NULL, call, tool, input FROM calls WHERE NOT taken_back
    UNION ALL
    SELECT seq, 0, 'user', 'result', 0, NULL, at, ms, output, NULL, NULL, call, tool, input
    FROM results WHERE call_seq IS NOT NULL AND NOT taken_back),

numbered AS MATERIALIZED (
    SELECT *, sum(what = 'result' OR who = 'user' AND k = first OR who = 'assistant' AND before IN ('user text', 'user image')
                  OR who = 'assistant' AND what <> 'call' AND before = 'assistant call')
              OVER (ORDER BY seq, k ROWS UNBOUNDED PRECEDING) AS g
    FROM (SELECT *, min(k) OVER (PARTITION BY seq) AS first,
                 lag(who || ' ' || what, 1, '') OVER (ORDER BY seq, k) AS before FROM parts)),

ends AS MATERIALIZED (SELECT g, max(seq) AS place FROM numbered WHERE what <> 'result' GROUP BY g),

-- The conversation in its order: i counts the parts, g the messages. text is a JSON string; input,
-- also of a result, is the input of the call; failed is of a result.
conversation AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY place, after, seq, k) AS i, g, seq, who, what, added, at, ms, text, mime, bytes,
           call, tool, input, failed,
           coalesce(max(model) OVER (PARTITION BY g), (SELECT model FROM self), 'unknown') AS model
    FROM (SELECT n.*, 0 AS after, e.place, 0 AS failed FROM numbered n JOIN ends e USING (g) WHERE n.what <> 'result'
          UNION ALL
          SELECT r.*, 1, e.place, x.failed
          FROM results x JOIN numbered r ON r.seq = x.seq AND r.what = 'result'
          JOIN numbered c ON c.seq = x.call_seq AND c.what = 'call' JOIN ends e ON e.g = c.g)),

-- The messages, and the texts of each, joined, as one JSON string.
messages AS MATERIALIZED (
    SELECT g, min(i) AS i, max(i) AS last, who, max(added) AS added, max(what = 'call') AS calls, max(model) AS model,
           min(at) AS at, min(ms) AS ms, max(ms) AS ended,
           '"' || coalesce(group_concat(CASE WHEN what = 'text' THEN substr(text, 2, length(text) - 2) END, '\n\n'), '') || '"' AS text
    FROM (SELECT * FROM conversation WHERE what <> 'result' ORDER BY i LIMIT -1) GROUP BY g),

left_out (n, text) AS MATERIALIZED (
    SELECT count(*), 'messages and results of turns that were taken back' FROM (
        SELECT seq FROM history WHERE taken_back AND kind <> 'call')
    UNION ALL SELECT count(DISTINCT seq), 'instructions of the program' FROM said WHERE instructs AND NOT taken_back
    UNION ALL SELECT count(*), 'thoughts that only their provider can read' FROM said
        WHERE what = 'thought' AND coalesce(text NOT LIKE '"%', 1) AND NOT taken_back
    UNION ALL SELECT count(*), 'blocks other than texts, thoughts and images' FROM said
        WHERE what = 'other' AND NOT blank AND NOT instructs AND NOT taken_back
    UNION ALL SELECT count(*), 'results without a call' FROM results WHERE call_seq IS NULL AND NOT taken_back
    UNION ALL SELECT CAST(total(images) AS INTEGER), 'images in results' FROM results WHERE call_seq IS NOT NULL AND NOT taken_back
    UNION ALL SELECT count(*), 'outputs that are artifacts' FROM results WHERE apart AND NOT taken_back
    UNION ALL SELECT count(*), 'results that are moved to their call' FROM (
        SELECT what, seq < max(seq) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING) AS early FROM conversation) WHERE early
    UNION ALL SELECT count(*), 'sub-agents, which are sessions of their own' FROM sessions WHERE parent_session_id = ?1
    UNION ALL SELECT sum(events), 'reports of tokens and costs' FROM event_counts WHERE session_id = ?1 AND type = 'agent.turn.usage'
    UNION ALL SELECT sum(events), 'marks of a compaction; the whole history is written' FROM event_counts
        WHERE session_id = ?1 AND type = 'checkpoint.noted'),
