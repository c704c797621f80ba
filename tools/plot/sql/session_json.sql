-- SPDX-License-Identifier: Apache-2.0
-- Lines of JSON.
SELECT line FROM (
    SELECT 0 AS place, 0 AS seq, 0 AS kind,
           iif(begins IS NULL, json_object('plot', 'session', 'session_id', ?1, 'events', 0, 'untimed_events', ?11 ->> 'untimed'),
               json_object('plot', 'session', 'session_id', ?1, 'events', ?11 ->> 'events', 'untimed_events', ?11 ->> 'untimed',
                           'from', begins, 'to', ends)) AS line
    FROM whole
    UNION ALL
    SELECT 0, 1, key, json_object('plot', 'pause', 'from', value ->> 'begins', 'to', value ->> 'ends') FROM json_each(?11, '$.pauses')
    UNION ALL
    SELECT place, seq, kind = 'failure',
           iif(kind = 'tokens',
               json_object('plot', kind, 'name', name, 'from', begins, 'to', ends, 'failed', json('false'), 'open', json('false'),
                           'input_tokens', input, 'output_tokens', output),
               json_object('plot', kind, 'name', name, 'from', begins, 'to', ends, 'failed', json(iif(failed, 'true', 'false')),
                           'open', json(iif(open, 'true', 'false'))))
    FROM happened)
ORDER BY place, seq, kind
