-- SPDX-License-Identifier: Apache-2.0
--
-- annal log --git, after edits.sql. ?1: what `git log -p -U0` printed, in which a commit begins with
-- the line "commit HASH TIME SUBJECT".
--
--  (1) A line that a commit adds belongs to the session of which the commit has the most added lines
--      of that file, among the sessions that added such a line.
--  (2) A session with less than twenty letters in a commit is not listed, unless these are all
--      letters that the commit adds.

printed AS MATERIALIZED (
    SELECT key AS n, rtrim(value, char(13)) AS line FROM json_each('["' || replace(replace(
        substr(json_quote(?1), 2, length(json_quote(?1)) - 2), '\\', '\u005c'), '\n', '","') || '"]')),
heads AS MATERIALIZED (
    SELECT n, substr(line, 8, 40) AS hash, substr(line, 49, 25) AS at, substr(line, 75) AS subject FROM printed WHERE line GLOB 'commit *'),
added AS MATERIALIZED (
    SELECT n, head, substr(p.line, 7) AS file, substr(l, 2) AS text, length(trim(substr(l, 2))) AS letters
    FROM (SELECT n, line AS l, max(CASE WHEN line GLOB 'commit *' THEN n END) OVER (ORDER BY n) AS head,
                 max(CASE WHEN line GLOB '+++ b/*' THEN n END) OVER (ORDER BY n) AS name FROM printed) a
    JOIN (SELECT n AS at, line FROM printed) p ON p.at = a.name
    WHERE l GLOB '+*' AND n > name AND letters > 4),
equal AS (
    SELECT a.head, a.n, a.file, a.letters, w.e FROM added a JOIN wrote w ON w.file = a.file AND w.text = a.text AND w.added
    UNION ALL
    SELECT a.head, a.n, a.file, a.letters, w.e FROM added a JOIN wrote w
        ON w.file = a.file AND edge > 0 AND w.added AND length(trim(w.text)) > 3 AND w.text <> a.text AND CASE edge
            WHEN 1 THEN substr(a.text, -length(w.text)) = w.text WHEN 2 THEN substr(a.text, 1, length(w.text)) = w.text
            ELSE instr(a.text, w.text) END),
matched AS MATERIALIZED (
    SELECT head, n, file, letters, session_id, max(e) AS e FROM equal JOIN calls USING (e) GROUP BY n, session_id),
chosen AS (
    SELECT head, n, letters, session_id, e, row_number() OVER (PARTITION BY n ORDER BY weight DESC, e DESC) AS place
    FROM (SELECT *, sum(letters) OVER (PARTITION BY head, file, session_id) AS weight FROM matched)),
totals AS (SELECT head, count(*) AS lines, sum(letters) AS letters FROM added GROUP BY head),
found AS (
    SELECT h.head, session_id, count(*) AS lines, count(DISTINCT h.e) AS edits, min(c.seq) AS first_seq, max(c.seq) AS last_seq
    FROM chosen h JOIN calls c USING (e, session_id) JOIN totals t ON t.head = h.head WHERE place = 1
    GROUP BY h.head, session_id HAVING sum(h.letters) >= 20 OR sum(h.letters) >= max(t.letters))

SELECT hash AS 'commit', at AS committed_at, subject, f.session_id, s.agent_id, f.lines, coalesce(t.lines, 0) AS of_lines, edits,
       first_seq, last_seq, s.title
FROM heads h LEFT JOIN totals t ON t.head = h.n LEFT JOIN found f ON f.head = h.n LEFT JOIN sessions s ON s.id = f.session_id
ORDER BY h.n, f.lines DESC
