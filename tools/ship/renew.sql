-- SPDX-License-Identifier: Apache-2.0
--
-- Renew the leases of store $1: sessions $2, epochs $3, seconds $4. A row for each, in their order: whether it was renewed.
WITH mine AS MATERIALIZED (SELECT home.session, seconds FROM annal._homes AS home,
 unnest($2::text[], $3::bigint[], $4::int[]) AS mine (session, epoch, seconds)
 WHERE home.session = mine.session AND home.store = $1 AND home.epoch = mine.epoch
 ORDER BY home.session FOR NO KEY UPDATE OF home),
 kept AS (UPDATE annal._homes AS home SET until = clock_timestamp() + make_interval(secs => seconds)
  FROM mine WHERE home.session = mine.session RETURNING home.session)
 SELECT kept.session IS NOT NULL FROM unnest($2::text[]) WITH ORDINALITY AS mine
 (session, n) LEFT JOIN kept USING (session) ORDER BY n
