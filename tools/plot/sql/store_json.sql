-- SPDX-License-Identifier: Apache-2.0
-- The numbers of the charts of a store as lines of JSON: the periods that are not empty, in which ?2 <= timestamp < ?3. ?6: unit
-- of time, or NULL: hours for events, and days for tokens and cost.
SELECT json_object('plot', 'events', 'by', coalesce(?6, 'hour'), 'begin', begin, 'events', count(*))
FROM (SELECT annal_period_begin(timestamp, coalesce(?6, 'hour')) AS begin FROM event_index
      WHERE timestamp >= ?2 AND timestamp < ?3)
GROUP BY begin
UNION ALL
SELECT json_object('plot', 'usage', 'by', coalesce(?6, 'day'), 'begin', begin, 'input_tokens', coalesce(sum(input_tokens), 0),
                   'output_tokens', coalesce(sum(output_tokens), 0), 'cached_input_tokens', coalesce(sum(cached_input_tokens), 0),
                   'cache_write_tokens', coalesce(sum(cache_write_tokens), 0), 'cost_microusd',
                   coalesce(CAST(round(round(sum(cost_microusd) * 1e6) / 1e6) AS INTEGER), 0))
FROM (SELECT annal_period_begin(timestamp, coalesce(?6, 'day')) AS begin, * FROM usage_event_costs
      WHERE timestamp >= ?2 AND timestamp < ?3)
GROUP BY begin
