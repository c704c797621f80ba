-- SPDX-License-Identifier: Apache-2.0
-- The beginning of the statements of tools/import/changes.c.
--
-- told: the logs of the sessions that this host (?1) imported, and what their journals say of them.
WITH known AS MATERIALIZED (
    SELECT DISTINCT session_id, source_path AS path FROM session_sources
    WHERE source_host = ?1 AND source_path GLOB '/*'),
told AS MATERIALIZED (
    SELECT k.*, coalesce(l.gone, 0) AS gone
    FROM known k LEFT JOIN source_logs l USING (session_id, path))
