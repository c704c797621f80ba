-- pack two   version 1   database two.db
-- SPDX-License-Identifier: Apache-2.0
CREATE TABLE a (id TEXT PRIMARY KEY, session_id TEXT);
CREATE TABLE b (id TEXT NOT NULL, session_id TEXT);
-- on thing.added   guarded "it is there"
INSERT INTO a VALUES ($id, :session);
-- on thing.added
INSERT INTO b VALUES ($other, :session);
