-- SPDX-License-Identifier: Apache-2.0
-- The first line of a text, index/sys/row_text.h, rule (2).
SELECT json_object(
    'annal_rows', 1,
    'encoding', (SELECT encoding FROM pragma_encoding),
    'user_version', (SELECT user_version FROM pragma_user_version),
    'application_id', (SELECT application_id FROM pragma_application_id),
    'tables', (SELECT json_group_array(sql) FROM (
        SELECT s.sql FROM sqlite_schema s JOIN pragma_table_list l ON l.schema = 'main' AND l.name = s.name
        WHERE s.type = 'table' AND s.name NOT GLOB 'sqlite_*' AND (l.type = 'table' OR l.type = 'virtual' AND s.sql LIKE '% USING fts5%')
        ORDER BY s.rowid)),
    'others', (SELECT json_group_array(sql) FROM (
        SELECT sql FROM sqlite_schema WHERE type IN ('index', 'view', 'trigger') AND sql IS NOT NULL
        ORDER BY type = 'trigger', rowid)))
