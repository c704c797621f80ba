-- SPDX-License-Identifier: Apache-2.0
SELECT tool, count(*), sum(status = 'failed'), median(duration_ms), percentile(duration_ms, 95), sum(duration_ms)
FROM calls GROUP BY tool ORDER BY 2 DESC, 1 LIMIT ?4
