-- SPDX-License-Identifier: Apache-2.0
--
-- annal blame, after edits.sql. ?2: the text of the file; ?3, ?4: its first and last line to
-- explain; ?5: what `git blame -l -s` printed, or NULL.
--
--  (1) An edit and the file agree in runs of equal lines; a run weighs as much as its letters. A
--      line belongs to the edit that added it with the heaviest run around it, and of equal runs to
--      the last. A run of less than five letters decides nothing.

lines AS MATERIALIZED (
    SELECT l.key + 1 AS p, rtrim(l.value, char(13)) AS text FROM json_each('["' || replace(replace(
        substr(json_quote(?2), 2, length(json_quote(?2)) - 2), '\\', '\u005c'), '\n', '","') || '"]') l
    WHERE l.key + 1 BETWEEN ?3 - 40 AND ?4 + 40),
commits AS MATERIALIZED (
    SELECT l.key + 1 AS p, ltrim(substr(l.value, 1, instr(l.value, ' ') - 1), '^') AS hash FROM json_each('["' || replace(replace(
        substr(json_quote(?5), 2, length(json_quote(?5)) - 2), '\\', '\u005c'), '\n', '","') || '"]') l
    WHERE ?5 IS NOT NULL AND l.value <> '' AND l.value NOT GLOB '00000000*'),
pairs AS MATERIALIZED (
    SELECT p, e, place, k, added, length(trim(text)) AS letters FROM lines JOIN wrote USING (text)
    UNION ALL
    SELECT p, e, place, k, added, length(trim(w.text)) FROM lines l JOIN wrote w
        ON edge > 0 AND added AND length(trim(w.text)) > 3 AND w.text <> l.text AND CASE edge
            WHEN 1 THEN substr(l.text, -length(w.text)) = w.text WHEN 2 THEN substr(l.text, 1, length(w.text)) = w.text
            ELSE instr(l.text, w.text) END),
runs AS (
    SELECT *, sum(letters) OVER (PARTITION BY e, place, p - k, island) AS weight
    FROM (SELECT *, p - row_number() OVER (PARTITION BY e, place, p - k ORDER BY p) AS island FROM pairs)),
best AS MATERIALIZED (
    SELECT p, e FROM (SELECT p, e, row_number() OVER (PARTITION BY p ORDER BY weight DESC, e DESC) AS place
                      FROM runs WHERE added AND weight >= 5 AND p BETWEEN ?3 AND ?4) WHERE place = 1)

SELECT c.session_id, c.seq, (SELECT h.hash FROM events h WHERE h.session_id = c.session_id AND h.seq = c.seq) AS hash, min(p) AS first_line, max(p) AS last_line, c.timestamp, s.agent_id, c.tool, b.hash AS 'commit', (
    SELECT coalesce(nullif(m.data ->> '$.said', ''), CASE json_type(m.data, '$.content') WHEN 'text' THEN m.data ->> '$.content'
                    ELSE coalesce(m.data ->> '$.content[#-1].text', m.data ->> '$.content[0].text') END)
    FROM events m WHERE m.session_id = c.session_id AND m.type = 'message.added' AND m.seq < c.seq
      AND m.data ->> '$.role' = 'user' AND m.data ->> '$.said' IS NOT '' ORDER BY m.seq DESC LIMIT 1) AS said
FROM (SELECT p, e, hash, p - row_number() OVER (PARTITION BY e, hash ORDER BY p) AS run FROM best LEFT JOIN commits USING (p)) b
JOIN calls c USING (e) JOIN sessions s ON s.id = c.session_id
GROUP BY e, b.hash, run ORDER BY first_line
