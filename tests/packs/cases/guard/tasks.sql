-- pack tasks   version 1   database tasks.db
-- SPDX-License-Identifier: Apache-2.0
CREATE TABLE tasks (id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, state TEXT NOT NULL,
                    run TEXT, n INTEGER NOT NULL, at TEXT);
CREATE TABLE edges (from_state TEXT, to_state TEXT, PRIMARY KEY (from_state, to_state));
INSERT INTO edges VALUES ('ready', 'claimed'), ('claimed', 'ready'), ('claimed', 'done');
CREATE TABLE notes (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, body TEXT);
-- fill task.added
SELECT COALESCE(MAX(n), 0) + 1 AS n FROM tasks WHERE session_id = :session;
-- on task.added   guarded "there is a task of this id already"
INSERT INTO tasks VALUES ($id, :session, 'ready', NULL, $n, :ts);
-- on task.claimed   guarded "the task is not ready, or another run has claimed it"
UPDATE tasks SET state = 'claimed', run = $run WHERE id = $id AND state = 'ready'
  AND session_id = :session;
-- on task.moved   guarded "a task does not go that way"
UPDATE tasks SET state = $to WHERE id = $id AND EXISTS
  (SELECT 1 FROM edges WHERE from_state = state AND to_state = $to);
-- on task.moved, note.added
INSERT INTO notes VALUES ($note::id, :session, $note::body) ON CONFLICT DO NOTHING;
-- on name.taken   guarded "another session has that name"   reads *
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM notes WHERE id = $name);
INSERT INTO notes VALUES ($name, :session, 'name');
-- forget
DELETE FROM tasks WHERE session_id = :session;
DELETE FROM notes WHERE session_id = :session;
-- artifact note.added   text   over 1000
