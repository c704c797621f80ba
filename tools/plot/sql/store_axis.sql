-- SPDX-License-Identifier: Apache-2.0
--
-- The axis of the charts of a store as JSON: `unit` (NULL without events), how many units a bar has (`merged`), when the first
-- begins and the last ends, and where each bar begins. ?2, ?3: since and until. ?4, ?5: first and last time of the axis, or NULL:
-- of the events. ?6: unit of time, or NULL. ?7: columns of the terminal; 0: an SVG.
--
-- Periods follow each other without a gap. If there are more than the picture has room for, neighbours are added up. Without a
-- unit, an SVG has the bars of a terminal of 80 columns.
WITH RECURSIVE
units (unit, name, seconds) AS (VALUES (1, 'hour', 3600), (2, 'day', 86400), (3, 'week', 7 * 86400), (4, 'month', 31 * 86400)),
chosen AS MATERIALIZED (
    SELECT name, seconds, room, annal_period_begin(first, name) AS begins, annal_period_begin(last, name) AS latest
    FROM (SELECT *, unixepoch(substr(last, 1, 19)) - unixepoch(substr(first, 1, 19)) AS lasts,
                 CASE WHEN ?7 > 0 THEN max(?7 - 9, 10) WHEN ?6 IS NULL THEN 71 ELSE 280 END AS room
          FROM (SELECT coalesce(?4, min(timestamp)) AS first, coalesce(?5, max(timestamp)) AS last, count(*) AS events
                FROM event_index WHERE timestamp >= ?2 AND timestamp < ?3) WHERE events > 0) JOIN units
      ON unit >= coalesce(instr('hdwm', substr(?6, 1, 1)), iif(lasts <= 3 * 86400, 1, 2))
     AND (unit = 4 OR lasts / seconds < iif(?6 IS NULL, room, 200001))
    ORDER BY unit LIMIT 1),
counted AS MATERIALIZED (
    SELECT *, (count + room - 1) / room AS merged
    FROM (SELECT *, 1 + iif(name = 'month',
                            12 * (substr(annal_period(latest, 'month'), 1, 4) - substr(annal_period(begins, 'month'), 1, 4))
                            + substr(annal_period(latest, 'month'), 6) - substr(annal_period(begins, 'month'), 6),
                            (unixepoch(latest) - unixepoch(begins) + seconds / 2) / seconds) AS count
          FROM chosen)),
-- The next bar is the period that contains a time in its middle, so that periods may have an hour or some days more or less.
steps (merged, one, one_month, bar, bar_months) AS MATERIALIZED (
    SELECT merged, format('+%d seconds', iif(name = 'month', 15 * 86400, seconds * 3 / 2)), iif(name = 'month', '+1 months', '+0 months'),
           format('+%d seconds', iif(name = 'month', 15 * 86400, seconds * merged + seconds / 2)),
           format('+%d months', iif(name = 'month', merged, 0))
    FROM counted),
bars (at, latest) AS (
    SELECT begins, latest FROM counted
    UNION ALL
    SELECT annal_period_begin(strftime('%Y-%m-%dT%H:%M:%S.000000Z', at, bar, bar_months), (SELECT name FROM chosen)) AS next, latest
    FROM bars JOIN steps WHERE next <= latest)
SELECT json_object('unit', name, 'merged', merged, 'begins', begins, 'ends',
                   coalesce(strftime('%Y-%m-%dT%H:%M:%S.000000Z',
                                     annal_period_begin(strftime('%Y-%m-%dT%H:%M:%S.000000Z', latest, one, one_month), name),
                                     '-1 second'), '9999-12-31T23:59:59.000000Z'),
                   'bars', (SELECT json_group_array(at) FROM bars), 'room', room)
FROM counted JOIN steps USING (merged)
