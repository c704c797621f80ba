-- SPDX-License-Identifier: Apache-2.0
SELECT count(DISTINCT kind), count(*), sum(bytes), sum(copies), sum(stored), sum(gone), sum(shrank), sum(replaced)
FROM sources LIMIT ?4
