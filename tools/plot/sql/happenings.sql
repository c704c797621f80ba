-- SPDX-License-Identifier: Apache-2.0
--
-- What happened in session ?1, for session.sql and session_json.sql, which follow. ?11: what session_axis.sql returned.
--
-- (1) A turn or call that was open at the fork point of a fork ends where the fork ended it, not where the ancestor did.
-- (2) Tokens are those of usage_events: what a turn that has ended reports again is not counted again.
WITH RECURSIVE history (id, from_seq, to_seq, depth) AS (
    SELECT ?1, coalesce((SELECT forked_at_seq FROM forks WHERE session_id = ?1), 0) + 1, 9223372036854775807, 0
    UNION ALL
    SELECT f.parent_session_id,
           coalesce((SELECT a.forked_at_seq FROM forks a WHERE a.session_id = f.parent_session_id), 0) + 1, f.forked_at_seq, depth + 1
    FROM history JOIN forks f ON f.session_id = history.id AND f.forked_at_seq < to_seq),
parts AS MATERIALIZED (
    SELECT *, iif(depth > 0, (SELECT max(timestamp) FROM event_index WHERE session_id = id AND seq BETWEEN from_seq AND to_seq), NULL) AS ends
    FROM history),
whole AS (SELECT ?11 ->> 'begins' AS begins, ?11 ->> 'ends' AS ends),
-- Turns and calls; ends is NULL for one that is open at the end of its part.
spans AS MATERIALIZED (
    SELECT 'turn' AS kind, t.seq, depth, turn_id AS id, turn_id AS name, status = 'failed' AS failed, created_at AS begins,
           iif(depth > 0 AND completed_at > p.ends, NULL, completed_at) AS ends
    FROM parts p CROSS JOIN turns t WHERE t.session_id = p.id AND t.seq BETWEEN p.from_seq AND p.to_seq
    UNION ALL
    SELECT 'call', c.seq, depth, call_id, tool, status = 'failed', min(coalesce(called_at, returned_at), coalesce(returned_at, called_at)),
           iif(result_seq > p.to_seq, NULL, returned_at)
    FROM parts p CROSS JOIN tool_calls c WHERE c.session_id = p.id AND c.seq BETWEEN p.from_seq AND p.to_seq),
held AS MATERIALIZED (
    SELECT kind, id, depth, seq, min(begins) AS begins, name FROM spans WHERE depth > 0 AND ends IS NULL GROUP BY kind, id),
joined AS MATERIALIZED (
    SELECT s.kind, s.seq, coalesce(nullif(s.name, ''), h.name) AS name, s.failed AND s.ends IS NOT NULL AS failed,
           coalesce(h.begins, s.begins) AS begins, s.ends
    FROM spans s LEFT JOIN held h ON h.kind = s.kind AND h.id = s.id AND h.depth > s.depth
    WHERE s.depth = 0 OR s.ends IS NOT NULL
    UNION ALL
    SELECT kind, seq, name, 0, begins, NULL FROM held h
    WHERE NOT EXISTS (SELECT 1 FROM spans s WHERE s.kind = h.kind AND s.id = h.id AND s.depth < h.depth)),
said AS MATERIALIZED (
    SELECT e.seq, e.timestamp AS at, iif(e.type = 'message.added', 'user', 'failure') AS kind,
           iif(e.type = 'message.added', NULL, e.type) AS name
    FROM parts p CROSS JOIN events e
    WHERE e.session_id = p.id AND e.seq BETWEEN p.from_seq AND p.to_seq
      AND e.type IN ('message.added', 'turn.completed', 'turn.failed', 'turn.cancelled', 'turn_complete', 'turn_error',
                     'provider.failed', 'provider_error')
      AND iif(e.type = 'message.added', e.data ->> '$.role' = 'user',
              e.type LIKE '%failed' OR e.type LIKE '%error' OR e.data -> '$.success' = 'false')),
used AS MATERIALIZED (
    SELECT u.seq, u.timestamp AS at, coalesce(u.input_tokens, 0) AS input, coalesce(u.output_tokens, 0) AS output
    FROM parts p CROSS JOIN usage_events u
    WHERE u.session_id = p.id AND u.seq BETWEEN p.from_seq AND p.to_seq AND coalesce(u.input_tokens, 0) <> -coalesce(u.output_tokens, 0)),
-- place: the order of kinds in JSON. A part of a span that is outside the times of the session is cut off.
happened AS (
    SELECT place, seq, kind, name, max(h.begins, w.begins) AS begins, min(max(h.begins, h.ends), w.ends) AS ends, failed, open, input, output
    FROM (SELECT iif(j.kind = 'turn', 1, 2) AS place, seq, iif(again, 'failure', j.kind) AS kind, name, iif(again, ends, begins) AS begins,
                 coalesce(ends, (SELECT ends FROM whole)) AS ends, failed, ends IS NULL AS open, NULL AS input, NULL AS output
          FROM joined j CROSS JOIN (SELECT 0 AS again UNION ALL SELECT 1) WHERE NOT again OR failed AND j.kind = 'call'
          UNION ALL SELECT 3, seq, kind, name, at, at, kind = 'failure', 0, NULL, NULL FROM said
          UNION ALL SELECT 3, seq, 'tokens', NULL, at, at, 0, 0, input, output FROM used) h JOIN whole w
    WHERE h.begins >= '1970-01-02' AND h.begins <= w.ends AND max(h.begins, h.ends) >= w.begins)
