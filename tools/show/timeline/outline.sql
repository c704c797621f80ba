-- SPDX-License-Identifier: Apache-2.0
-- Seq, type, time and length of all events. What telemetry said before the log of its session followed has the type of a
-- record, and so has a line that could not be read if a later import read it.
SELECT r.seq, CASE WHEN r.type NOT GLOB 'session.*' AND r.seq < (SELECT max(x.seq) FROM event_index x
                                                                WHERE x.session_id = ?1 AND x.type = 'telemetry.superseded')
                     OR r.type = 'import.unreadable' AND (r.session_id, r.seq) NOT IN
                        (SELECT x.session_id, x.seq FROM failures x WHERE x.what = 'line')
                   THEN 'import.record' ELSE r.type END, r.timestamp, r.length
FROM part CROSS JOIN event_index r
WHERE r.session_id = part.id AND r.seq BETWEEN max(part.from_seq, ?2) AND part.to_seq ORDER BY r.seq
