-- SPDX-License-Identifier: Apache-2.0
--
-- The times of session ?1 as JSON: the number of its events and the first and last time, its long pauses, and the segments of an
-- axis in `slots`. ?2, ?3: since and until, texts that compare as timestamps do. ?7: columns of the terminal; 0: an SVG.
--
-- (1) A fork shows its whole history.
-- (2) Times before 1970-01-02 are from logs without times: they are counted, and not drawn.
-- (3) The axis has as many slots as the picture has columns or pixels.
-- (4) Long pauses are cut out: the axis consists of segments, each with at least one slot, and of slots between them that represent
--     no time. The longest pauses are cut, as long as each would take more room than the mark of a cut: at most 6, because the
--     labels of more do not fit into 80 columns.
-- (5) The tools that were called most have a lane each; if there are more than 12, the 12th lane is for all others.
WITH RECURSIVE history (id, from_seq, to_seq, depth) AS (
    SELECT ?1, coalesce((SELECT forked_at_seq FROM forks WHERE session_id = ?1), 0) + 1, 9223372036854775807, 0
    UNION ALL
    SELECT f.parent_session_id,
           coalesce((SELECT a.forked_at_seq FROM forks a WHERE a.session_id = f.parent_session_id), 0) + 1, f.forked_at_seq, depth + 1
    FROM history JOIN forks f ON f.session_id = history.id AND f.forked_at_seq < to_seq),
parts AS MATERIALIZED (SELECT * FROM history),
times AS MATERIALIZED (
    SELECT x.timestamp AS at FROM parts p CROSS JOIN event_index x
    WHERE x.session_id = p.id AND x.seq BETWEEN p.from_seq AND p.to_seq AND x.timestamp < ?3
      AND (x.timestamp >= ?2 OR ?2 < '1970-01-02')),
whole AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE timed) AS events, count(*) FILTER (WHERE NOT timed) AS untimed,
           min(at) FILTER (WHERE timed) AS begins, max(at) FILTER (WHERE timed) AS ends
    FROM (SELECT at, at >= '1970-01-02' AS timed FROM times)),
pauses AS MATERIALIZED (
    SELECT begins, at AS ends, plot_us(at) - plot_us(begins) AS us
    FROM (SELECT at, lag(at) OVER (ORDER BY at) AS begins FROM times WHERE at >= '1970-01-02') WHERE us > 300000000),
tools AS MATERIALIZED (
    SELECT coalesce(tool, '') AS name, row_number() OVER (ORDER BY count(*) DESC, coalesce(tool, '')) AS place,
           count(*) OVER () AS count
    FROM parts p CROSS JOIN tool_calls c
    WHERE c.session_id = p.id AND c.seq BETWEEN p.from_seq AND p.to_seq AND called_at IS NOT NULL GROUP BY name),
room AS MATERIALIZED (
    SELECT iif(?7 > 0, max(?7 - label - 18, 10), 330) AS slots, iif(?7 > 0, 1, 5) AS cut, label
    FROM (SELECT min(max(coalesce(max(iif(count > 12 AND place = 12, 12, plot_width(name) + 0)), 0), 8), max(?7 / 4, 8)) AS label
          FROM tools WHERE place <= 12)),
cuts AS MATERIALIZED (
    SELECT p.begins, p.ends FROM (
        SELECT p.*, row_number() OVER longer AS n, min(us >= (rest - us) / 50) OVER longer AS worth
        FROM (SELECT p.*, plot_us(w.ends) - plot_us(w.begins) - sum(us) OVER (ORDER BY us DESC, p.begins) + us AS rest
              FROM pauses p, whole w) p WINDOW longer AS (ORDER BY us DESC, begins)) p, room
    WHERE worth AND n <= min(slots / (8 * cut), 6)),
segments AS (
    SELECT begins, ends, plot_us(ends) - plot_us(begins) AS us, row_number() OVER (ORDER BY begins) AS n
    FROM (SELECT begins, lead(cut, 1, last) OVER (ORDER BY begins) AS ends
          FROM (SELECT begins, NULL AS cut, ends AS last FROM whole WHERE events > 0
                UNION ALL SELECT c.ends, c.begins, w.ends FROM cuts c, whole w))),
-- Each segment has one slot, and a share of the others in proportion to its time.
shares AS (
    SELECT *, CAST(coalesce(1.0 * sum(us) OVER (ORDER BY n) / nullif(sum(us) OVER (), 0), 1)
                   * (slots - count(*) OVER () - (count(*) OVER () - 1) * cut) + 0.5 AS INTEGER) AS until
    FROM segments, room)
SELECT json_object('events', events, 'untimed', untimed, 'begins', begins, 'ends', ends, 'label', label, 'slots', slots, 'pauses',
                   (SELECT json_group_array(json_object('begins', begins, 'ends', ends)) FROM pauses), 'segments',
                   (SELECT json_group_array(json_array(begins, ends, us, before + (n - 1) * (1 + cut), 1 + until - before))
                    FROM (SELECT *, lag(until, 1, 0) OVER (ORDER BY n) AS before FROM shares)),
                   'tools', (SELECT json_group_array(name) FROM (SELECT name FROM tools ORDER BY place)))
FROM whole, room
