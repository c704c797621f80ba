-- pack whole   version 1   database whole.db
-- SPDX-License-Identifier: Apache-2.0
CREATE TABLE numbers (n INTEGER UNIQUE) STRICT;
-- on number.added
INSERT OR FAIL INTO numbers SELECT value FROM json_each(:data, '$.n');
-- on number.doubled
UPDATE numbers SET n = CASE n WHEN 2 THEN 'four' ELSE n * 10 END;
-- on number.chosen
INSERT OR ROLLBACK INTO numbers VALUES ($n);
