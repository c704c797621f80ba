-- SPDX-License-Identifier: Apache-2.0
-- ---- Imports ----

-- on import.registered   guarded "the import has no alias"
INSERT INTO imports (alias, source_url, fetched_at, inputs_schema, outputs_schema)
SELECT $alias, $source_url, COALESCE($fetched_at, replace(substr(:ts, 1, 19), 'T', ' ')),
       $inputs_schema, $outputs_schema
WHERE $alias <> ''
ON CONFLICT (alias) DO UPDATE SET
    source_url = excluded.source_url, fetched_at = excluded.fetched_at,
    inputs_schema = excluded.inputs_schema, outputs_schema = excluded.outputs_schema;
