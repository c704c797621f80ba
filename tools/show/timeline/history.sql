-- SPDX-License-Identifier: Apache-2.0
--
-- The journals that contain the history of session ?1, and the range of seq in each. ?2 is the first seq that is wanted.
-- The SELECTs beside this file follow it.
WITH RECURSIVE part (id, from_seq, to_seq) AS (
    SELECT ?1, coalesce((SELECT forked_at_seq FROM forks WHERE session_id = ?1), 0) + 1, 9223372036854775807
    UNION
    SELECT f.parent_session_id,
           coalesce((SELECT a.forked_at_seq FROM forks a WHERE a.session_id = f.parent_session_id), 0) + 1,
           min(f.forked_at_seq, part.to_seq)
    FROM part JOIN forks f ON f.session_id = part.id)
