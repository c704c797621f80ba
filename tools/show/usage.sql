-- SPDX-License-Identifier: Apache-2.0
--
-- What sessions used, for the page about usage and for `annal report`: rows of panels, one for each name. ?1: ids of
-- sessions as a JSON array, or NULL for all; ?2 and ?3: since, until; ?5: the unit of time of the panel `period`; ?6: the
-- wanted panels, each between spaces.
--
--  (1) The events are read once: u has what each session used of each model in each unit of time.
--  (2) An event whose time cannot be right counts at the time of the nearest event of its session whose time can be.
--  (3) Costs are in microdollars. They are rounded after they are summed up, so that each grouping of the same events
--      has the same cost.
WITH u AS MATERIALIZED (
    SELECT session_id, model, iif(instr(?6, ' period '), coalesce(annal_period(
               iif(timestamp >= '1970-01-02' AND timestamp < replace(datetime('now', '+1 day'), ' ', 'T'), timestamp, coalesce(
                   (SELECT x.timestamp FROM event_index x WHERE x.session_id = c.session_id AND x.seq < c.seq
                        AND x.timestamp >= '1970-01-02' AND x.timestamp < replace(datetime('now', '+1 day'), ' ', 'T')
                    ORDER BY x.seq DESC LIMIT 1),
                   (SELECT x.timestamp FROM event_index x WHERE x.session_id = c.session_id AND x.seq > c.seq
                        AND x.timestamp >= '1970-01-02' AND x.timestamp < replace(datetime('now', '+1 day'), ' ', 'T')
                    ORDER BY x.seq LIMIT 1))), ?5), 'no time'), '') AS period,
           sum(requests) AS requests, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cached_input_tokens) AS cached_input_tokens, sum(cache_write_tokens) AS cache_write_tokens,
           sum(cost_microusd) AS cost_microusd, sum(computed_microusd) AS computed_microusd,
           sum(costed_tokens) AS costed_tokens, sum(tokens) AS tokens
    FROM usage_event_costs c
    WHERE (?1 IS NULL OR session_id IN (SELECT value FROM json_each(?1)))
      AND (?2 IS NULL OR timestamp >= (SELECT annal_instant(?2))) AND (?3 IS NULL OR timestamp < (SELECT annal_instant(?3)))
    GROUP BY 1, 2, 3),

named AS (
    SELECT 'all' AS panel, '' AS name, u.* FROM u WHERE instr(?6, ' all ')
    UNION ALL SELECT 'period', period, u.* FROM u WHERE instr(?6, ' period ')
    UNION ALL SELECT 'model', model, u.* FROM u WHERE instr(?6, ' model ')
    UNION ALL SELECT 'session', session_id, u.* FROM u WHERE instr(?6, ' session ')
    UNION ALL SELECT 'agent', s.agent_id, u.* FROM u LEFT JOIN sessions s ON s.id = session_id WHERE instr(?6, ' agent ')
    UNION ALL SELECT 'dir', s.working_directory, u.* FROM u LEFT JOIN sessions s ON s.id = session_id
              WHERE instr(?6, ' dir ')
    UNION ALL SELECT 'project', j.project, u.* FROM u LEFT JOIN session_projects j ON j.session_id = u.session_id
              WHERE instr(?6, ' project ')
    UNION ALL SELECT 'host', o.source_host, u.* FROM u LEFT JOIN session_latest_sources o ON o.session_id = u.session_id
              WHERE instr(?6, ' host '))

SELECT panel, name, count(DISTINCT session_id) AS sessions, sum(requests) AS requests, sum(input_tokens) AS input_tokens,
       sum(output_tokens) AS output_tokens, sum(cached_input_tokens) AS cached_input_tokens,
       sum(cache_write_tokens) AS cache_write_tokens, round(round(sum(cost_microusd) * 1e6) / 1e6) AS cost_microusd,
       round(round(sum(computed_microusd) * 1e6) / 1e6) AS computed_microusd, sum(costed_tokens) AS costed_tokens,
       sum(tokens) AS tokens
FROM named GROUP BY panel, name
