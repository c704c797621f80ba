-- SPDX-License-Identifier: Apache-2.0
--
-- The sessions to prune, in a store without messages of teams.
, candidates AS MATERIALIZED (SELECT id FROM old),
