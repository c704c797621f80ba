-- SPDX-License-Identifier: Apache-2.0
--
-- The charts of a store, as rows of plot/picture.h: events, tokens and cost in bars, a bar for each period of time. ?2, ?3: since
-- and until. ?7: columns of the terminal; 0: an SVG. ?8: the name of the time zone. ?9: the sentence about no events. ?10: whether
-- no range was given. ?11: what store_axis.sql returned.
WITH axis AS MATERIALIZED (
    SELECT ?11 ->> 'unit' AS unit, ?11 ->> 'merged' AS merged, ?11 ->> 'begins' AS begins, ?11 ->> 'ends' AS ends,
           json_array_length(?11, '$.bars') AS bars,
           iif(?7 > 0, min(max((?11 ->> 'room') / max(json_array_length(?11, '$.bars'), 1), 1), 6), 866) AS width),
points AS (
    SELECT annal_period_begin(timestamp, unit) AS at, count(*) AS events, 0 AS input, 0 AS cached, 0 AS output, 0 AS cost
    FROM axis CROSS JOIN event_index WHERE timestamp >= ?2 AND timestamp < ?3 GROUP BY at
    UNION ALL
    SELECT annal_period_begin(timestamp, unit) AS at, 0, sum(input_tokens), sum(cached_input_tokens), sum(output_tokens),
           sum(cost_microusd)
    FROM axis CROSS JOIN usage_event_costs WHERE timestamp >= ?2 AND timestamp < ?3 GROUP BY at),
-- Each point is in the last bar that begins at or before it.
sums AS MATERIALIZED (
    SELECT bar, max(own) AS at, coalesce(sum(events), 0) AS events, coalesce(sum(input), 0) AS input,
           coalesce(sum(cached), 0) AS cached, coalesce(sum(output), 0) AS output,
           coalesce(CAST(round(round(sum(cost) * 1e6) / 1e6) AS INTEGER), 0) AS cost
    FROM (SELECT *, max(begun) OVER (ORDER BY at, begun IS NULL) AS bar
          FROM (SELECT value AS at, key AS begun, value AS own, NULL AS events, NULL AS input, NULL AS cached, NULL AS output,
                       NULL AS cost FROM json_each(?11, '$.bars')
                UNION ALL SELECT at, NULL, NULL, events, input, cached, output, cost FROM points))
    WHERE bar IS NOT NULL GROUP BY bar),
labels AS (
    SELECT sums.*, axis.*,
           CASE WHEN unit = 'hour' AND substr(annal_period(at, 'hour'), 12, 2) <> '00'
                THEN substr(annal_period(at, 'hour'), 12, 2) || ':00'
                WHEN unit = 'month' THEN annal_period(at, 'month')
                WHEN julianday(ends) - julianday(begins) > 366 THEN annal_period(at, 'day')
                ELSE substr(annal_period(at, 'day'), 6) END AS label,
           CASE unit WHEN 'hour' THEN CAST(substr(annal_period(begins, 'hour'), 12, 2) AS INTEGER)
                     WHEN 'month' THEN substr(annal_period(begins, 'month'), 6) - 1 ELSE 0 END AS place
    FROM sums, axis),
-- The number of bars from one label to the next: enough for a label and two spaces, and so that labels of hours include midnight.
stepped AS (
    SELECT *, CASE WHEN unit IN ('day', 'week') THEN least
                   ELSE coalesce((SELECT min(value) FROM json_each(iif(unit = 'hour', '[1,2,3,6,12,24]', '[1,2,3,6,12]'))
                                  WHERE value >= least), least) END AS step
    FROM (SELECT *, iif(?7 > 0, (max(length(label)) OVER () + 1) / width + 1, 74 * bars / 866 + 1) AS least FROM labels)),
names (lane, what, usd, name, part_name) AS (
    VALUES (1, 'events', 0, NULL, NULL), (2, 'tokens', 0, 'input', 'from cache'), (3, 'tokens', 0, 'output', NULL),
           (4, 'cost', 1, NULL, NULL)),
cells AS (
    SELECT *, max(value) OVER own AS most, sum(value) OVER own AS total, sum(part) OVER own AS parts,
           max(lane = 2 AND value > 0) OVER () AS has_input
    FROM (SELECT *, CASE lane WHEN 1 THEN events WHEN 2 THEN input WHEN 3 THEN output ELSE cost END AS value,
                 iif(lane = 2, cached, 0) AS part,
                 iif(merged > 1 OR bars < 2 * step, 0, (step - place % step) % step) AS first
          FROM stepped CROSS JOIN names) WINDOW own AS (PARTITION BY lane)),
-- The scale of a lane ends with a round number.
scaled AS (
    SELECT *, iif(most <= 10, most + (most > 1) * most % 2,
                  (SELECT CAST(min(t.value * p.value) AS INTEGER) FROM json_each('[10,12,15,20,25,30,40,50,60,80]') t,
                          json_each('[1,10,100,1e3,1e4,1e5,1e6,1e7,1e8,1e9,1e10,1e11,1e12,1e13,1e14,1e15,1e16]') p
                   WHERE t.value * p.value >= most)) AS top
    FROM cells WHERE most > 0),
kinds (place, kind) AS (VALUES (0, 'panel'), (1, 'lane'), (2, 'bar'), (3, 'tick'))
SELECT kind, text, more, high, low, mark, at, until, value, part FROM (
    SELECT lane, kinds.place, kind,
           CASE kind WHEN 'panel' THEN
                    iif(lane = 3 AND has_input, NULL,
                        format('%s per %s, %s%s %s%s', what, iif(merged > 1, merged || ' ' || unit || 's', unit),
                               annal_period(begins, 'day'),
                               iif(julianday(ends) - julianday(begins) > 0.9999, ' to ' || annal_period(ends, 'day'), ''), ?8,
                               iif(name IS NULL, ': ' || plot_exact(total, usd), '')))
                WHEN 'lane' THEN name || ' ' || plot_exact(total, usd) WHEN 'tick' THEN label END AS text,
           CASE WHEN kind = 'lane' AND parts > 0 THEN plot_exact(parts, usd) || ' ' || part_name
                WHEN kind = 'bar' AND ?7 = 0 THEN
                    format('%s%s: %s %s%s',
                           CASE unit WHEN 'hour' THEN substr(annal_period(c.at, 'hour'), 1, 10) || ' '
                                                      || substr(annal_period(c.at, 'hour'), 12, 2) || ':00'
                                     WHEN 'month' THEN label ELSE iif(unit = 'week', 'week of ', '') || annal_period(c.at, 'day') END,
                           iif(merged > 1, format(' and %d %ss more', merged - 1, unit), ''), plot_exact(value, usd),
                           coalesce(name, what), iif(part > 0, ', ' || plot_exact(part, usd) || ' ' || part_name, ''))
           END AS more,
           iif(kind = 'lane', plot_short(top, usd), NULL) AS high,
           iif(kind = 'lane' AND top % 2 = 0, plot_short(top / 2, usd), NULL) AS low,
           iif(kind = 'tick', 'middle', NULL) AS mark,
           iif(kind = 'panel', bars, bar) AS at,
           iif(kind = 'panel', width, bar) AS until,
           CASE kind WHEN 'panel' THEN iif(?7 > 0, 6, 120) WHEN 'lane' THEN top ELSE value END AS value,
           iif(kind = 'panel', iif(?7 > 0, 7, 70), part) AS part
    FROM scaled c CROSS JOIN kinds
    WHERE CASE kind WHEN 'bar' THEN value > 0 WHEN 'tick' THEN bar >= first AND (bar - first) % step = 0 ELSE bar = 0 END
    UNION ALL
    SELECT 8, 0, 'note', ?9, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE ?11 ->> 'unit' IS NULL
    UNION ALL
    SELECT 9, 0, 'note', format('Not in the pictures: %,d event%s whose time is unknown or in the future.', count(*),
                                iif(count(*) = 1, '', 's')), NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL
    FROM event_index WHERE ?10 AND NOT (timestamp >= ?2 AND timestamp < ?3) HAVING count(*) > 0
    UNION ALL
    SELECT 9, 0, 'note', n.value, NULL, NULL, NULL, NULL, n.key + 1, NULL, NULL, NULL
    FROM (SELECT sum(tokens) AS tokens, sum(costed_tokens) AS costed, round(round(sum(computed_microusd) * 1e6) / 1e6) AS computed
          FROM usage_event_costs WHERE timestamp >= ?2 AND timestamp < ?3),
         json_each(json_array(
             iif(costed > 0 AND costed < tokens,
                 format('The cost covers %d %% of the tokens: the others have no price.', 100.0 * costed / tokens), NULL),
             iif(computed > 0,
                 format('$%.2f of the cost is computed from list prices: the logs contain none.', computed / 1e6), NULL))) n
    WHERE n.value IS NOT NULL)
ORDER BY lane, place, at
