-- SPDX-License-Identifier: Apache-2.0
SELECT timestamp, data->>'provider', coalesce(nullif(data->>'error', '{}'), 'no reason is given'), session_id, seq
FROM events
WHERE type IN ('provider.failed', 'provider_error') AND (?1 IS NULL OR session_id IN (SELECT value FROM json_each(?1)))
  AND (?2 IS NULL OR timestamp >= ?2) AND (?3 IS NULL OR timestamp < ?3)
ORDER BY timestamp DESC LIMIT ?4
