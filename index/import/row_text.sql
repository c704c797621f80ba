-- SPDX-License-Identifier: Apache-2.0
-- How the rows of table ?1 are written and read, index/sys/row_text.h, rule (3): two statements, which begin
-- with SELECT line FROM and INSERT ... VALUES (, and the ORDER BY of the former.
WITH columns (name, quoted, cid, pk) AS (
    SELECT name, '"' || replace(name, '"', '""') || '"', cid, pk FROM pragma_table_xinfo(?1) WHERE hidden = 0),
-- The name of the rowid; NULL: the table has none.
rowids (quoted) AS (
    SELECT CASE WHEN NOT wr THEN (SELECT column1 FROM (VALUES ('rowid'), ('_rowid_'), ('oid'))
                                  WHERE NOT EXISTS (SELECT 1 FROM columns WHERE name = column1 COLLATE NOCASE) LIMIT 1) END
    FROM pragma_table_list WHERE schema = 'main' AND name = ?1),
keys (quoted, place) AS (
    SELECT quoted, pk FROM columns WHERE pk > 0
    UNION ALL
    SELECT quoted, seqno
    FROM pragma_index_info((SELECT name FROM pragma_index_list(?1) WHERE "unique" AND origin = 'u' AND NOT partial ORDER BY name LIMIT 1))
         JOIN columns USING (name)
    WHERE NOT EXISTS (SELECT 1 FROM columns WHERE pk > 0)),
-- quote() ends a text at a NUL, and knows no infinity.
literals (kind, literal, place) AS (
    SELECT kind, replace('CASE WHEN typeof(@) = ''text'' AND instr(@, char(0)) > 0 THEN ''CAST(X'''''' || hex(@) || '''''' AS TEXT)''
                               WHEN typeof(@) = ''real'' AND abs(@) > 1.7976931348623157e308 THEN CASE WHEN @ > 0 THEN ''9e999'' ELSE ''-9e999'' END
                               ELSE quote(@) END', '@', quoted), place
    FROM (SELECT 'key' AS kind, quoted, place FROM keys
          UNION ALL SELECT 'value', quoted, -1 FROM rowids WHERE quoted IS NOT NULL
          UNION ALL SELECT 'value', quoted, cid FROM columns))
SELECT 'SELECT json_quote(' || quote(?1) || ') || '','' || json_quote(' ||
       coalesce((SELECT group_concat(literal, ' || '','' || ') FROM (SELECT literal FROM literals WHERE kind = 'key' ORDER BY place)), quoted) ||
       -- NULL is equal to no other NULL.
       coalesce(' || CASE WHEN ' || (SELECT group_concat(k.quoted || ' IS NULL', ' OR ') FROM keys k)
                || ' THEN '','' || ' || quoted || ' ELSE '''' END', '') ||
       ') || char(9) || json_quote(' ||
       (SELECT group_concat(literal, ' || '','' || ') FROM (SELECT literal FROM literals WHERE kind = 'value' ORDER BY place)) ||
       ') FROM "' || replace(?1, '"', '""') || '"',
       'INSERT OR REPLACE INTO "' || replace(?1, '"', '""') || '" (' || coalesce(quoted || ',', '') ||
       (SELECT group_concat(quoted) FROM (SELECT quoted FROM columns ORDER BY cid)) || ') VALUES (',
       coalesce(quoted, (SELECT group_concat(quoted) FROM (SELECT quoted FROM keys ORDER BY place)))
FROM rowids
