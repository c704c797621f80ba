-- SPDX-License-Identifier: Apache-2.0
--
-- What was done after an error: annal fix. ?1: {"pattern": annal_pattern() of the error's message, "hits": [[session, seq
-- of a result], …]}, which a search for the words of the message found; ?2 and ?3: since, until; ?4: number of rows.
--
--  (1) A call failed with the error if the pattern of its output contains the pattern of the error.
--  (2) Its end is the next call in its session that succeeded and was the same call: of the same tool, and of the same
--      file, or of the same program and its subcommand (npm test). Among the next 30 calls of the tool that succeeded.
--  (3) Calls that failed with the error before the same end are one row: the first of them, and their number.
--  (4) The error occurred again if a later call failed with it: in the session, or in another session in its directory.
--  (5) First the errors that ended and did not occur again, then those that occurred again, then those without an end.
hits AS MATERIALIZED (
    SELECT value ->> 0 AS session_id, value ->> 1 AS seq FROM json_each(?1, '$.hits')),

outputs AS MATERIALIZED (
    SELECT e.session_id, e.seq, e.timestamp, e.data ->> '$.call_id' AS call_id,
           coalesce(e.data ->> '$.output[0].text', e.data ->> '$.output', e.data ->> '$.error.message', e.data ->> '$.error') AS text
    FROM hits h CROSS JOIN events e ON e.session_id = h.session_id AND e.seq = h.seq),

failed AS MATERIALIZED (
    SELECT t.session_id, t.seq, o.seq AS result_seq, t.tool, o.timestamp, annal_message(text) AS message
    FROM (SELECT session_id, seq, timestamp, call_id,
                 iif(json_valid(text) AND text GLOB '{*', coalesce(text ->> '$.output', text ->> '$.content', text), text) AS text FROM outputs) o
    CROSS JOIN tool_calls t ON t.session_id = o.session_id AND t.call_id = coalesce(o.call_id, '#' || o.seq)
         AND coalesce(t.result_seq, t.seq) = o.seq
    WHERE t.status = 'failed' AND instr(annal_pattern(text), ?1 ->> '$.pattern') > 0),

next AS MATERIALIZED (
    SELECT * FROM (
        SELECT f.session_id, f.result_seq, t.seq, row_number() OVER (PARTITION BY f.session_id, f.result_seq ORDER BY t.seq) AS n
        FROM failed f CROSS JOIN tool_calls t ON t.session_id = f.session_id
        WHERE t.tool IS f.tool AND t.seq > f.result_seq AND t.status = 'returned' AND t.called_at IS NOT NULL)
    WHERE n <= 30),

-- command: without what changes the directory or sets a variable before it.
inputs AS MATERIALIZED (
    SELECT session_id, seq, ltrim(iif(command GLOB 'cd * && *', substr(command, instr(command, ' && ') + 4), command)) || '  ' AS command,
           coalesce(input ->> '$.file_path', input ->> '$.path', input ->> '$.filePath', input ->> '$.notebook_path',
                    input ->> '$.target_file', '') AS path
    FROM (SELECT session_id, seq, input, replace(coalesce(input ->> '$.command[#-1]', input ->> '$.command', input ->> '$.cmd', ''),
                                                 char(10), ' ') AS command
          FROM (SELECT e.session_id, e.seq,
                       iif(json_type(e.data, '$.input') = 'text' AND json_valid(e.data ->> '$.input'), e.data ->> '$.input',
                           e.data -> '$.input') AS input
                FROM (SELECT session_id, seq FROM failed UNION SELECT session_id, seq FROM next) c
                CROSS JOIN events e ON e.session_id = c.session_id AND e.seq = c.seq))),

-- subject: what a call is about. The second word of a command is its subcommand unless it is an option or a file.
words AS (
    SELECT session_id, seq, path, program, iif(rest GLOB '-m *', substr(rest, 4), rest) AS rest
    FROM (SELECT *, substr(command, 1, instr(command, ' ') - 1) AS program,
                 ltrim(substr(command, instr(command, ' '))) || ' ' AS rest FROM inputs)),
subjects AS MATERIALIZED (
    SELECT session_id, seq, iif(program = '', path, program || iif(word GLOB '[A-Za-z]*' AND word NOT GLOB '*[^A-Za-z0-9:_-]*',
                                                                   ' ' || word, '')) AS subject
    FROM (SELECT *, substr(rest, 1, instr(rest, ' ') - 1) AS word FROM words)),

ends AS MATERIALIZED (
    SELECT f.*, s.subject,
           (SELECT min(n.seq) FROM next n JOIN subjects o ON o.session_id = n.session_id AND o.seq = n.seq
            WHERE n.session_id = f.session_id AND n.result_seq = f.result_seq AND o.subject = s.subject) AS end_seq
    FROM failed f JOIN subjects s ON s.session_id = f.session_id AND s.seq = f.seq),

errors AS MATERIALIZED (
    SELECT session_id, tool, end_seq, min(result_seq) AS seq, max(result_seq) AS last_seq, count(*) AS tries,
           min(timestamp) AS timestamp, s.working_directory AS directory
    FROM ends JOIN sessions s ON s.id = session_id
    WHERE (?2 IS NULL OR timestamp >= ?2) AND (?3 IS NULL OR timestamp < ?3)
    GROUP BY session_id, tool, subject, end_seq),

-- back: the first call that failed with the error after its end.
later AS MATERIALIZED (
    SELECT e.*, coalesce((SELECT json_array(f.session_id, min(f.result_seq)) FROM failed f
                          WHERE f.session_id = e.session_id AND f.result_seq > e.end_seq HAVING count(*) > 0),
                         (SELECT json_array(f.session_id, f.result_seq) FROM failed f JOIN sessions s ON s.id = f.session_id
                          WHERE f.session_id <> e.session_id AND e.end_seq IS NOT NULL AND s.working_directory = e.directory
                                AND f.timestamp > e.timestamp
                          ORDER BY f.timestamp, f.session_id, f.result_seq LIMIT 1)) AS back
    FROM errors e),
ranked AS MATERIALIZED (
    SELECT * FROM later ORDER BY end_seq IS NULL, back IS NOT NULL, timestamp DESC, session_id, seq LIMIT ?4),

-- Without an end, the next three calls; else the changes among the last ones before the end, and the last three calls.
steps AS MATERIALIZED (
    SELECT * FROM (
        SELECT r.session_id, r.seq AS of, r.end_seq, t.seq, t.tool,
               lower(t.tool) GLOB '*edit*' OR lower(t.tool) GLOB '*write*' OR lower(t.tool) GLOB '*patch*'
               OR lower(t.tool) GLOB '*replace*' OR lower(t.tool) GLOB '*create*' OR lower(t.tool) GLOB '*insert*' AS is_edit,
               row_number() OVER (PARTITION BY r.session_id, r.seq ORDER BY t.seq) AS place,
               row_number() OVER (PARTITION BY r.session_id, r.seq ORDER BY t.seq DESC) AS back
        FROM ranked r CROSS JOIN tool_calls t ON t.session_id = r.session_id
        WHERE t.seq > r.last_seq AND t.seq <= coalesce(r.end_seq, r.last_seq + 100) AND t.status = 'returned'
              AND t.called_at IS NOT NULL)
    WHERE iif(end_seq IS NULL, place <= 3, back <= 3 OR back <= 12 AND is_edit))

SELECT r.session_id, r.seq, r.timestamp,
       (SELECT message FROM failed f WHERE f.session_id = r.session_id AND f.result_seq = r.seq) AS said,
       (SELECT json_group_array(json_object('seq', seq, 'tool', tool, 'input', input)) FROM
           (SELECT * FROM told t WHERE t.session_id = r.session_id AND t.of = r.seq ORDER BY seq)) AS steps,
       coalesce(tool, 'the call') || iif(end_seq IS NULL, ' did not succeed again', ' succeeded at ' || end_seq) || iif(tries > 1, ' after ' || tries || ' failures', '')
       || coalesce('; the error occurred again ' || iif(back ->> 0 = r.session_id, 'at ', 'in ' || (back ->> 0) || ' at ') || (back ->> 1), '') AS fact,
       r.tool, r.tries, r.end_seq AS success_seq, back ->> 0 AS back_session_id, back ->> 1 AS back_seq
FROM ranked r ORDER BY end_seq IS NULL, back IS NOT NULL, r.timestamp DESC, r.session_id, r.seq
