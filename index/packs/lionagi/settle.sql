-- SPDX-License-Identifier: Apache-2.0
-- settle
UPDATE progressions SET
    collection = rtrim(collection, ']') || CASE collection WHEN '[]' THEN '' ELSE ',' END
        || (SELECT group_concat(json_quote(message_id), ',')
            FROM (SELECT message_id FROM progression_items
                  WHERE progression_id = behind.progression_id AND ord >= behind.ord
                  ORDER BY ord)) || ']'
FROM progressions_behind behind
WHERE behind.session_id = :session AND progressions.id = behind.progression_id;
DELETE FROM progressions_behind WHERE session_id = :session;
