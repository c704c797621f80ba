-- SPDX-License-Identifier: Apache-2.0
-- Faults of the relation draft (session_id, seq, type, data): what does not fit the fields in packs/core/type_fields.json (?1),
-- by the name of a type, which is known there. A kind that ends in ! means that the field is required; the type "*" has
-- the fields of every type. An event of a framework ("item": true, or an object) may have further members. NULL is as if
-- it were missing.
known AS MATERIALIZED (
    SELECT type.key AS type, field.key AS field, rtrim(field.value, '!') AS kinds, field.value GLOB '*!' AS is_required
    FROM json_each(?1) type
        JOIN json_each(CASE type.type WHEN 'object' THEN type.value ELSE ?1 -> ('$."' || type.value || '"') END) field
    UNION ALL
    SELECT type.key, NULL, NULL, false FROM json_each(?1) type WHERE type.key <> '*'),
member AS (
    SELECT draft.session_id, draft.seq, draft.type, key,
        coalesce(json_type(draft.data, '$.item') IN ('true', 'object'), false) AS is_item,
        CASE json_each.type WHEN 'true' THEN 'boolean' WHEN 'false' THEN 'boolean' WHEN 'real' THEN 'number'
            ELSE json_each.type END AS kind
    FROM draft JOIN json_each(draft.data)
    WHERE draft.type IN (SELECT type FROM known) AND json_type(draft.data) = 'object'),
fault AS (
    SELECT session_id, seq, member.type, CASE
        WHEN kinds IS NULL THEN json_quote(substr(key, 1, 60)) || ' is not a field of this type'
        ELSE json_quote(key) || ' is of kind ' || kind || ', and not ' || replace(kinds, '|', ' or ') END AS what
    FROM member LEFT JOIN known ON field = key AND known.type IN (member.type, '*')
    GROUP BY session_id, seq, key
    HAVING CASE WHEN max(kinds) IS NULL THEN NOT is_item
        ELSE kind <> 'null' AND NOT max('|' || kinds || '|' GLOB '*|' || kind || '|*' OR kinds = 'any'
            OR (kind = 'integer' AND kinds GLOB '*number*')) END
    UNION ALL
    SELECT session_id, seq, draft.type, json_quote(field) || ' is missing'
    FROM draft JOIN known ON known.type = draft.type AND is_required
    WHERE json_type(draft.data) IN ('object', 'null')
        AND coalesce(json_type(draft.data, '$."' || field || '"'), 'null') = 'null'
    UNION ALL
    SELECT session_id, seq, type, 'its data is not an object'
    FROM draft
    WHERE type IN (SELECT type FROM known) AND json_type(data) <> 'object' AND json_type(data) <> 'null')
