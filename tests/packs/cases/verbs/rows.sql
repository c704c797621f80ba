-- pack rows   version 1   database rows.db
-- SPDX-License-Identifier: Apache-2.0
CREATE TABLE rows (session_id TEXT, id TEXT, text TEXT, PRIMARY KEY (session_id, id));

-- on row.added   guarded "the row exists"
INSERT INTO rows VALUES (:session, $id, $text);

-- noun row   "rows"

-- verb row add   appends row.added   session rows   "add a row"
--   ID      text id         "its id"
--   [TEXT]  text text = ""  "its text"

-- verb row ls   selects   lines   "print the rows, and count the calls of the core pack"
SELECT id || ': ' || text || ', ' || (SELECT count(*) FROM tool_calls) FROM rows ORDER BY id;

-- verb row write   writes   "write a file for each row"
--   DIR     text            "the directory"
SELECT 'rows' AS folder, id AS name, '' AS suffix, nullif(text, 'gone') AS content FROM rows;
