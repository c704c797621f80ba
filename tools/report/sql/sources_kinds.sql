-- SPDX-License-Identifier: Apache-2.0
SELECT kind, count(*), sum(bytes), sum(copies), sum(stored), sum(gone), sum(shrank), sum(replaced)
FROM sources GROUP BY kind ORDER BY 2 DESC, 1 LIMIT ?4
