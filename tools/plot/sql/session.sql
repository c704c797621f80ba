-- SPDX-License-Identifier: Apache-2.0
--
-- The timeline of a session, as rows of plot/picture.h: a lane for each kind of thing that takes time, above one axis in UTC. ?7:
-- columns of the terminal; 0: an SVG. ?9: the sentence about no events. The things that begin in a slot are one bar.
,
segments AS MATERIALIZED (
    SELECT key AS n, value ->> 0 AS begins, value ->> 1 AS ends, value ->> 2 AS us, value ->> 3 AS first, value ->> 4 AS slots,
           coalesce(json_extract(?11, '$.segments[' || (key + 1) || '][0]'), ':') AS next
    FROM json_each(?11, '$.segments')),
lanes AS MATERIALIZED (
    SELECT 10 + min(key, 11) AS lane, 'call' AS kind, value AS name,
           iif(key >= 11 AND count > 12, format('others (%d)', count - 11), iif(value = '', '(no name)', value)) AS label
    FROM (SELECT key, value, json_array_length(?11, '$.tools') AS count FROM json_each(?11, '$.tools'))
    UNION ALL VALUES (1, 'event', '', 'events'), (2, 'turn', '', 'turns'), (3, 'user', '', 'user'), (30, 'tokens', '', 'tokens'),
                     (40, 'failure', '', 'failures')),
found AS (
    SELECT kind, iif(kind = 'call', coalesce(name, ''), '') AS name, begins, ends, failed, open,
           coalesce(input, 0) + coalesce(output, 0) AS amount FROM happened
    UNION ALL
    SELECT 'event', '', at, at, 0, 0, 1
    FROM (SELECT x.timestamp AS at FROM parts p CROSS JOIN event_index x
          WHERE x.session_id = p.id AND x.seq BETWEEN p.from_seq AND p.to_seq) JOIN whole
    WHERE at BETWEEN begins AND ends
      AND NOT EXISTS (SELECT 1 FROM spans s, whole w WHERE kind = 'turn' AND s.begins <= w.ends AND coalesce(s.ends, w.ends) >= w.begins)),
slotted AS (
    SELECT f.*,
           a.first + min(a.slots - 1, coalesce((plot_us(f.begins) - plot_us(a.begins)) * a.slots / nullif(a.us, 0), 0)) AS at,
           z.first + min(z.slots - 1, coalesce((plot_us(f.ends) - plot_us(z.begins)) * z.slots / nullif(z.us, 0), 0)) AS until
    FROM found f CROSS JOIN segments a ON f.begins >= a.begins AND f.begins < a.next
                 CROSS JOIN segments z ON f.ends >= z.begins AND f.ends < z.next),
-- The duration of a call without a result is unknown, so it has one slot.
bars AS (
    SELECT coalesce(lane, 29) AS lane, coalesce(label, 'others') AS label, s.kind, at,
           max(iif(open AND s.kind = 'call', at, until)) AS until, max(iif(failed, until, -1)) AS failed_until,
           count(*) AS count, sum(failed) AS failed, sum(open) AS open, sum(amount) AS amount, min(begins) AS begins,
           max(ends) AS ends
    FROM slotted s LEFT JOIN lanes l ON l.kind = s.kind AND l.name = s.name GROUP BY 1, at),
summed AS (
    SELECT *, row_number() OVER (PARTITION BY lane ORDER BY at) = 1 AS is_first, sum(count) OVER own AS sum_count,
           sum(failed) OVER own AS sum_failed, sum(amount) OVER own AS sum_amount, max(amount) OVER own AS most
    FROM bars WINDOW own AS (PARTITION BY lane)),
cuts AS MATERIALIZED (
    SELECT a.first + a.slots AS at, b.first - 1 AS until, a.ends AS begins, b.begins AS ends
    FROM segments a JOIN segments b ON b.n = a.n + 1)
SELECT kind, text, more, high, low, mark, at, until, value, part FROM (
    SELECT 0 AS lane, 0 AS place, 'panel' AS kind, ?1 AS text,
           format('%,d event%s, %s', ?11 ->> 'events', iif(?11 ->> 'events' = 1, '', 's'), plot_times(begins, ends)) AS more,
           NULL AS high, NULL AS low, NULL AS mark, ?11 ->> 'slots' AS at, iif(?7 > 0, 1, 660) AS until, iif(?7 > 0, 1, 14) AS value,
           iif(?7 > 0, ?11 ->> 'label', 156) AS part
    FROM whole WHERE begins IS NOT NULL
    UNION ALL
    SELECT lane, 1 + is_bar, iif(is_bar, 'bar', 'lane'), iif(is_bar, NULL, label),
           CASE WHEN NOT is_bar AND kind IN ('event', 'tokens') THEN plot_short(sum_amount, 0)
                WHEN NOT is_bar AND kind IN ('turn', 'call') AND sum_failed > 0 AND sum_failed < sum_count
                THEN format('%,d (%,d ×)', sum_count, sum_failed)
                WHEN NOT is_bar THEN format('%,d', sum_count)
                WHEN ?7 = 0 THEN
                    format('%s%s, %s%s%s%s', iif(kind = 'user', 'user message', label), iif(count > 1, ': ' || count, ''),
                           plot_times(begins, ends), iif(kind IN ('event', 'tokens'), format(': %,d', amount), ''),
                           iif(failed > 0 AND kind <> 'failure', format(iif(count > 1, ', %d failed', ', failed'), failed), ''),
                           CASE WHEN open = 0 THEN '' WHEN kind = 'call' THEN ', no result' ELSE ', not ended' END) END,
           NULL, NULL,
           CASE WHEN failed > 0 AND (?7 = 0 OR failed_until >= until) THEN 'failed' WHEN kind = 'call' AND open = count THEN 'open' END,
           at, until, iif(kind IN ('event', 'tokens'), iif(is_bar, amount, most), NULL), iif(is_bar, failed_until, 0)
    FROM summed CROSS JOIN (SELECT 0 AS is_bar UNION ALL SELECT 1)
    WHERE is_bar OR is_first
    UNION ALL
    SELECT 50, 1, 'lane', 'pauses', format('%,d, %s', count(*), plot_span(sum(plot_us(ends) - plot_us(begins)))), NULL, NULL, NULL, NULL,
           NULL, NULL, 0
    FROM cuts HAVING count(*) > 0
    UNION ALL
    SELECT 50, 2, 'bar', NULL, 'pause, ' || plot_times(begins, ends), NULL, NULL, 'cut', at, until, NULL, -1 FROM cuts
    UNION ALL
    SELECT 60, 3, 'tick', iif(substr(t.time, 1, 10) = substr(w.begins, 1, 10), substr(t.time, 12, 8),
                              substr(t.time, 6, 5) || ' ' || substr(t.time, 12, 5)), NULL, NULL, NULL, mark, slot, NULL, NULL, NULL
    FROM whole w, (SELECT first AS slot, begins AS time, 'left' AS mark FROM segments
                   UNION ALL SELECT -1, ends, 'right' FROM whole WHERE ends > begins) t
    UNION ALL
    SELECT 60, 4, 'key', column2, NULL, NULL, NULL, column1, column3, NULL, NULL, NULL
    FROM whole, (VALUES ('bar', 'under way', 0), ('failed', 'failed', 1), ('open', 'no result', 2), ('cut', 'pause, cut out', 3))
    WHERE begins IS NOT NULL
    UNION ALL
    SELECT 70, 5, 'note', CASE WHEN begins IS NOT NULL THEN format('Not in the picture: %,d event%s without a time.', ?11 ->> 'untimed',
                                                                   iif(?11 ->> 'untimed' = 1, '', 's'))
                               WHEN ?11 ->> 'untimed' > 0 THEN 'The log of this session has no times.'
                               ELSE ?9 END, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM whole WHERE begins IS NULL OR ?11 ->> 'untimed' > 0)
ORDER BY lane, place, at
