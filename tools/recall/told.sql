-- SPDX-License-Identifier: Apache-2.0
--
-- What a call is about, for people. The SELECT that follows, fix.sql or how.sql, has the calls in steps.
WITH told AS MATERIALIZED (
    SELECT session_id, of, seq, tool,
           annal_title(coalesce(i ->> '$.command[#-1]', i ->> '$.command', i ->> '$.cmd', i ->> '$.file_path', i ->> '$.path',
                                i ->> '$.filePath', i ->> '$.notebook_path', i ->> '$.target_file', i ->> '$.pattern',
                                i ->> '$.query', i ->> '$.url', iif(json_type(i) = 'text', i ->> '$', i))) AS input
    FROM (SELECT s.*, iif(json_type(e.data, '$.input') = 'text' AND json_valid(e.data ->> '$.input'), e.data ->> '$.input',
                          e.data -> '$.input') AS i
          FROM steps s CROSS JOIN events e ON e.session_id = s.session_id AND e.seq = s.seq)),

