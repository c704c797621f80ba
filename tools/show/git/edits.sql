-- SPDX-License-Identifier: Apache-2.0
--
-- The lines that sessions wrote into files, from the inputs of calls: annal blame and annal log run
-- this text, then their own, as one SELECT. ?1: the names of the files in their repository, as
-- lines "+++ b/NAME" of a patch.
--
--  (1) An edit is a call that did not fail, with a path and a new text, with an old text or without
--      one, or with several (edits); or a patch of Codex, also in a command.
--  (2) The path of an edit names a file if one of the two paths ends with the other, at a slash.
--  (3) A line of an edit is added if its old text does not contain it; of a text that replaces a
--      file, if no earlier edit of that file contains it. The other lines say where the edit was.
--  (4) Edits are found by what they wrote. Their times only say which of them was first.
WITH files AS MATERIALIZED (
    SELECT DISTINCT substr(value, 7) AS file, substr(value, 6) AS tail FROM json_each('["' || replace(replace(
        substr(json_quote(?1), 2, length(json_quote(?1)) - 2), '\\', '\u005c'), '\n', '","') || '"]') WHERE value GLOB '+++ b/?*'),

calls AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY e.timestamp, t.session_id, t.seq) AS e, t.session_id, t.seq, e.timestamp, t.tool,
           CASE WHEN json_type(e.data, '$.input') = 'text' AND json_valid(e.data ->> '$.input')
                     AND json_type(e.data ->> '$.input') = 'object' THEN e.data ->> '$.input'
                ELSE e.data -> '$.input' END AS input
    FROM tool_calls t CROSS JOIN events e ON e.session_id = t.session_id AND e.seq = t.seq
    WHERE t.called_at IS NOT NULL AND t.status <> 'failed'
      AND (lower(t.tool) GLOB '*edit*' OR lower(t.tool) GLOB '*write*' OR lower(t.tool) GLOB '*patch*'
           OR lower(t.tool) GLOB '*replace*' OR lower(t.tool) GLOB '*create*' OR lower(t.tool) GLOB '*insert*'
           OR lower(t.tool) IN ('shell', 'local_shell', 'exec_command'))),

items AS (
    SELECT c.e, coalesce(input ->> '$.file_path', input ->> '$.path', input ->> '$.filePath', input ->> '$.notebook_path',
                         input ->> '$.target_file') AS path, i.value AS item
    FROM calls c, json_each(CASE json_type(input, '$.edits') WHEN 'array' THEN input -> '$.edits' ELSE json_array(json(input)) END) i
    WHERE json_type(input) = 'object' AND i.type = 'object'),

-- place: the item, or the hunk of a patch; whole: it replaces the file.
texts AS MATERIALIZED (
    SELECT row_number() OVER () AS place, e, f.file,
           json_quote(coalesce(item ->> '$.old_string', item ->> '$.oldText', item ->> '$.oldString', item ->> '$.old_str', '')) AS old,
           json_quote(coalesce(item ->> '$.new_string', item ->> '$.newText', item ->> '$.newString', item ->> '$.new_str',
                               item ->> '$.new_source', item ->> '$.insert_text',
                               item ->> '$.content', item ->> '$.file_text', item ->> '$.contents')) AS new,
           coalesce(item ->> '$.old_string', item ->> '$.oldText', item ->> '$.oldString', item ->> '$.old_str',
                    item ->> '$.insert_text') IS NULL AS whole
    FROM items JOIN files f ON path = file OR '/' || path LIKE '%' || tail OR tail LIKE '%/' || path),

patches AS MATERIALIZED (
    SELECT c.e, l.key AS n, l.value AS line, CASE WHEN l.value GLOB '[*][*][*] Add File: *' THEN substr(l.value, 15)
           WHEN l.value GLOB '[*][*][*] Update File: *' THEN substr(l.value, 18) END AS path,
           sum(l.value GLOB '@@*' OR l.value GLOB '[*][*][*]*') OVER (PARTITION BY c.e, t.id ORDER BY l.key) AS hunk, t.id
    FROM calls c, json_tree(c.input) t, json_each('["' || replace(replace(
        substr(json_quote(t.value), 2, length(json_quote(t.value)) - 2), '\\', '\u005c'), '\n', '","') || '"]') l
    WHERE c.input LIKE '%*** Begin Patch%' AND t.type = 'text' AND t.value LIKE '%*** Begin Patch%'),
patched AS MATERIALIZED (
    SELECT p.*, f.file FROM (
        SELECT e, n, line, hunk, id, (
            SELECT o.path FROM patches o WHERE o.e = p.e AND o.id = p.id AND o.n < p.n AND o.path IS NOT NULL ORDER BY o.n DESC LIMIT 1) AS path
        FROM patches p WHERE line GLOB '[+ ]*') p
    JOIN files f ON p.path = file OR '/' || p.path LIKE '%' || tail OR tail LIKE '%/' || p.path),

olds AS MATERIALIZED (
    SELECT place, rtrim(l.value, char(13)) AS text FROM texts, json_each('["' || replace(replace(
        substr(old, 2, length(old) - 2), '\\', '\u005c'), '\n', '","') || '"]') l),

-- edge: the line may be a part of a line of the file. 1: its end, 2: its beginning, 3: either.
wrote AS MATERIALIZED (
    SELECT e, file, place, k, text, edge, CASE WHEN whole THEN e = min(e) OVER (PARTITION BY file, text)
           ELSE added END AS added
    FROM (SELECT t.e, t.file, t.place, l.key AS k, rtrim(l.value, char(13)) AS text, whole,
                 CASE WHEN whole THEN 0 ELSE (l.key = 0) + 2 * (l.key = json_array_length('["' || replace(replace(
                     substr(new, 2, length(new) - 2), '\\', '\u005c'), '\n', '","') || '"]') - 1) END AS edge,
                 NOT EXISTS (SELECT 1 FROM olds o WHERE o.place = t.place AND o.text = rtrim(l.value, char(13))) AS added
          FROM texts t, json_each('["' || replace(replace(
              substr(new, 2, length(new) - 2), '\\', '\u005c'), '\n', '","') || '"]') l
          WHERE new <> 'null'
          UNION ALL
          SELECT e, file, -id - 1000000 * hunk, row_number() OVER (PARTITION BY e, id, hunk ORDER BY n),
                 rtrim(substr(line, 2), char(13)), 0, 0, line GLOB '+*'
          FROM patched)),
