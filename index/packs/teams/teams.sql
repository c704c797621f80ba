-- pack teams   version 2   database state.db   sessions team_*
-- SPDX-License-Identifier: Apache-2.0
--
-- Teams and their messages, and data derived from the runs beside them (the tables of the pack
-- lionagi, in the same database). Each team is a session: team_<id>. All rows of a team are written
-- by its session, so the team's id is the part after team_ there, whatever data says.
--
--  (1) A member is a name: text, not empty, without a comma, and neither 'all' nor '*', which mean
--      all members. member_count is the length of members, whoever writes.
--  (2) recipient is 'all', or names joined by commas. data.to may be a name, a list of names,
--      "all", "*", ["*"] or missing. Sender and recipients need not be members: the sender checks.
--  (3) read_by are the names of x_team_reads, sorted; when each read is there (NULL: unknown).
--      data.read_by of an imported message is a list of names, or an object name -> time. A
--      message is marked once for a member: marking several marks all of them or none, so if two
--      processes read one inbox at once, one is refused, and reads it again.
--  (4) session_id is NULL where data.session_known is false: the sender checks; a handler cannot.
--  (5) A message's id belongs to one team; guards refuse it elsewhere. If events bypassed the
--      guards, the team whose id sorts first has the row, whatever the order in which sessions are
--      read.
--  (6) Staleness is derived when it is queried, and not stored: stale_at is the second after which
--      a running session counts as stale; a row of stale_thresholds for each kind, 'default' for
--      any other. An hour without a message is 'idle'.
--  (7) Of the six levels of a run's health (health_levels) the tables alone show healthy, idle and
--      stale. The others need a look at the run's process, artifacts and locks: on our connections
--      run_list is a view that includes it (index/query/run_health.c). Status NULL is an old row,
--      and counts as completed.

CREATE TABLE IF NOT EXISTS teams (
id TEXT PRIMARY KEY,
name TEXT NOT NULL,
created_at REAL NOT NULL,
updated_at REAL NOT NULL,
member_count INTEGER NOT NULL DEFAULT 0,
members JSON NOT NULL DEFAULT '[]', -- array of member name strings
node_metadata JSON, -- team config, coordination mode
status TEXT NOT NULL DEFAULT 'active' CHECK(
status IN ('active', 'archived')
)
);
CREATE INDEX IF NOT EXISTS idx_teams_name ON teams(name);
CREATE INDEX IF NOT EXISTS idx_teams_updated ON teams(updated_at DESC);
CREATE INDEX IF NOT EXISTS idx_teams_status ON teams(status);

CREATE TABLE IF NOT EXISTS team_messages (
id TEXT PRIMARY KEY,
team_id TEXT NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
created_at REAL NOT NULL,
sender TEXT NOT NULL, -- member name or "system"
recipient TEXT NOT NULL DEFAULT 'all', -- member name or "all"
content TEXT NOT NULL,
summary TEXT, -- one-line distillation for collapsed display
read_by JSON NOT NULL DEFAULT '[]', -- array of member names
session_id TEXT REFERENCES sessions(id), -- optional link to coordinating session
from_op TEXT -- ours: the operation of the message
);
CREATE INDEX IF NOT EXISTS idx_team_msgs_team ON team_messages(team_id);
CREATE INDEX IF NOT EXISTS idx_team_msgs_created ON team_messages(created_at);
CREATE INDEX IF NOT EXISTS idx_team_msgs_session ON team_messages(session_id)
WHERE session_id IS NOT NULL;

CREATE TABLE x_team_reads (
    message_id TEXT NOT NULL REFERENCES team_messages(id) ON DELETE CASCADE,
    member     TEXT NOT NULL,
    read_at    REAL,
    PRIMARY KEY (message_id, member)
) WITHOUT ROWID;

-- A second message with the same id in a team is ignored; for another team see rule 5.
CREATE TRIGGER team_message_once BEFORE INSERT ON team_messages
WHEN EXISTS (SELECT 1 FROM team_messages WHERE id = NEW.id AND team_id = NEW.team_id)
BEGIN
    SELECT RAISE(ABORT, 'a message with this id exists already');
END;
-- The id belongs to another team.
CREATE TRIGGER team_message_taken AFTER UPDATE OF team_id ON team_messages
WHEN NEW.team_id IS NOT OLD.team_id
BEGIN
    DELETE FROM x_team_reads WHERE message_id = OLD.id;
END;

CREATE TRIGGER teams_count_new AFTER INSERT ON teams
WHEN NEW.member_count IS NOT json_array_length(NEW.members)
BEGIN
    UPDATE teams SET member_count = json_array_length(NEW.members) WHERE id = NEW.id;
END;
CREATE TRIGGER teams_count_changed AFTER UPDATE OF members, member_count ON teams
WHEN NEW.member_count IS NOT json_array_length(NEW.members)
BEGIN
    UPDATE teams SET member_count = json_array_length(NEW.members) WHERE id = NEW.id;
END;

-- The team through which a session works.
CREATE VIEW team_sessions AS
SELECT team_id, session_id, count(*) AS messages, min(created_at) AS first_at,
       max(created_at) AS last_at
FROM team_messages WHERE session_id IS NOT NULL
GROUP BY team_id, session_id;

CREATE TABLE stale_thresholds (
    kind    TEXT PRIMARY KEY,
    seconds INTEGER NOT NULL
);
INSERT INTO stale_thresholds (kind, seconds) VALUES
    ('agent', 6 * 3600), ('play', 6 * 3600),
    ('flow', 12 * 3600), ('fanout', 12 * 3600), ('show-play', 12 * 3600),
    ('default', 6 * 3600);

-- The time of a session's last activity, and the time after which it is stale if it still runs.
CREATE VIEW session_activity AS
SELECT s.id AS session_id, s.status, s.invocation_kind,
       COALESCE(NULLIF(s.last_message_at, 0), NULLIF(s.updated_at, 0), 0) AS last_activity,
       COALESCE(NULLIF(s.last_message_at, 0), NULLIF(s.updated_at, 0), 0)
           + COALESCE((SELECT seconds FROM stale_thresholds WHERE kind = s.invocation_kind),
                      (SELECT seconds FROM stale_thresholds WHERE kind = 'default')) AS stale_at
FROM sessions s;

-- The worst of several runs is the run with the greatest severity.
CREATE TABLE health_levels (
    health   TEXT PRIMARY KEY,
    severity INTEGER NOT NULL,
    meaning  TEXT NOT NULL
);
INSERT INTO health_levels (health, severity, meaning) VALUES
    ('healthy',      0, 'active, or ended without leaving locks'),
    ('idle',         1, 'alive, and silent for more than an hour'),
    ('unresponsive', 2, 'alive, and silent for longer than its kind allows'),
    ('stale',        3, 'its process is dead, and it has messages or artifacts'),
    ('orphaned',     4, 'its process is dead, and it has neither messages nor artifacts'),
    ('zombie',       5, 'ended, and left locks');

-- A row of the runs list; see (7).
CREATE VIEW run_list AS
SELECT s.id AS session_id, s.name, s.invocation_kind, s.status,
       CASE WHEN s.status IS NOT 'running' THEN 'healthy'
            WHEN unixepoch() > a.stale_at THEN 'stale'
            WHEN unixepoch() > a.last_activity + 3600 THEN 'idle'
            ELSE 'healthy' END AS effective_health,
       s.last_message_at,
       COALESCE((SELECT MAX(ord) + 1 FROM progression_items
                 WHERE progression_id = s.progression_id), 0) AS message_count,
       s.created_at, s.started_at, s.ended_at,
       COALESCE(s.ended_at, CASE s.status WHEN 'running' THEN unixepoch() END) - s.started_at
           AS duration_seconds,
       a.last_activity, a.stale_at
FROM sessions s JOIN session_activity a ON a.session_id = s.id;

-- The cards of a dashboard, one row.
CREATE VIEW dashboard AS
SELECT (SELECT count(*) FROM sessions WHERE status = 'running') AS running,
       (SELECT count(*) FROM session_activity
        WHERE status = 'running' AND unixepoch() > stale_at) AS stale,
       (SELECT count(*) FROM sessions
        WHERE status = 'failed' AND ended_at >= unixepoch() - 24 * 3600) AS failed_24h,
       (SELECT count(*) FROM run_list
        WHERE status = 'running' AND duration_seconds > 30 * 60) AS slow,
       (SELECT COUNT(*) FROM teams WHERE status = 'active') AS teams_active;

-- A guard checks a condition by an UPDATE of this one row, which changes nothing.
CREATE TABLE teams_gate (id INTEGER PRIMARY KEY CHECK (id = 1));
INSERT INTO teams_gate VALUES (1);

-- on team.created, team.imported   guarded "the team exists already"
UPDATE teams_gate SET id = 1 WHERE NOT EXISTS (SELECT 1 FROM teams WHERE id = substr(:session, 6));

-- on team.created, team.imported, team.renamed   guarded "a team needs a name"
UPDATE teams_gate SET id = 1 WHERE $name <> '';

-- on team.created, team.imported   guarded "members must be different names, without commas, and not 'all' or '*'"
UPDATE teams_gate SET id = 1
WHERE COALESCE(json_type(:data, '$.members'), 'array') = 'array'
  AND NOT EXISTS (SELECT 1 FROM json_each(:data, '$.members')
                  WHERE type <> 'text' OR value IN ('', 'all', '*') OR instr(value, ','))
  AND (SELECT count(*) = count(DISTINCT value) FROM json_each(:data, '$.members'));

-- on team.members_changed, team.renamed, team.configured, team.archived, team.deleted, team.message, team.message_read   guarded "there is no such team"
UPDATE teams_gate SET id = 1 WHERE EXISTS (SELECT 1 FROM teams WHERE id = substr(:session, 6));

-- on team.members_changed, team.archived   guarded "the team is archived"
UPDATE teams_gate SET id = 1
WHERE EXISTS (SELECT 1 FROM teams WHERE id = substr(:session, 6) AND status = 'active');

-- on team.members_changed   guarded "a new member needs a name, without commas, that is neither 'all' nor '*'"
UPDATE teams_gate SET id = 1
WHERE NOT EXISTS (SELECT 1 FROM json_each(:data, '$.add')
                  WHERE type <> 'text' OR value IN ('', 'all', '*') OR instr(value, ','));

-- The summary of a long text is its beginning, unless its sender gives one.

-- fill team.message
SELECT CASE WHEN length($content) > 200 THEN substr($content, 1, 200) || '…' END AS summary;

-- on team.message   guarded "a message needs an id, a sender and content"
UPDATE teams_gate SET id = 1 WHERE $id <> '' AND $sender <> '' AND $content IS NOT NULL;

-- on team.message   guarded "a message with this id exists already"
UPDATE teams_gate SET id = 1 WHERE NOT EXISTS (SELECT 1 FROM team_messages WHERE id = $id);

-- on team.message   guarded "a name must not contain a comma: the sender's, or one in read_by"
UPDATE teams_gate SET id = 1
WHERE instr($sender, ',') = 0
  AND NOT EXISTS (SELECT 1 FROM json_each(CASE WHEN $read_by IS NULL THEN '[]'
                                               ELSE :data -> '$.read_by' END)
                  WHERE instr(CASE json_type(:data, '$.read_by') WHEN 'object' THEN key
                                   ELSE value END, ','));

-- The + before team_id makes SQLite look messages up by their ids, not scan all messages of the
-- team.

-- on team.message_read   guarded "there is no such message in this team"
UPDATE teams_gate SET id = 1
WHERE EXISTS (SELECT 1 FROM json_each(:data, '$.message_ids'))
  AND NOT EXISTS (SELECT 1 FROM json_each(:data, '$.message_ids') i
                  WHERE NOT EXISTS (SELECT 1 FROM team_messages m
                                    WHERE m.id = i.value AND +m.team_id = substr(:session, 6)));

-- on team.created, team.imported   guarded "the status of a team must be active or archived"
INSERT INTO teams (id, name, created_at, updated_at, members, node_metadata, status)
SELECT substr(:session, 6), $name,
       COALESCE(annal_unix($created_at), annal_unix(:ts)),
       COALESCE(annal_unix($updated_at), annal_unix($created_at), annal_unix(:ts)),
       COALESCE($members, '[]'), $node_metadata, COALESCE($status, 'active')
WHERE NOT EXISTS (SELECT 1 FROM teams WHERE id = substr(:session, 6))
  AND $name <> ''
  AND COALESCE(json_type(:data, '$.members'), 'array') = 'array'
  AND NOT EXISTS (SELECT 1 FROM json_each(:data, '$.members')
                  WHERE type <> 'text' OR value IN ('', 'all', '*') OR instr(value, ','))
  AND (SELECT count(*) = count(DISTINCT value) FROM json_each(:data, '$.members'));

-- on team.members_changed   guarded "this changes no member"
UPDATE teams SET
    members = (
        SELECT json_group_array(value) FROM (
            SELECT 0 AS side, key, value FROM json_each(teams.members)
            WHERE value NOT IN (SELECT value FROM json_each(:data, '$.remove') WHERE type = 'text')
            UNION ALL
            SELECT 1, min(key), value FROM json_each(:data, '$.add')
            WHERE value NOT IN (SELECT value FROM json_each(teams.members))
            GROUP BY value
            ORDER BY 1, 2)),
    updated_at = MAX(updated_at, annal_unix(:ts))
WHERE id = substr(:session, 6) AND status = 'active'
  AND NOT EXISTS (SELECT 1 FROM json_each(:data, '$.add')
                  WHERE type <> 'text' OR value IN ('', 'all', '*') OR instr(value, ','))
  AND (EXISTS (SELECT 1 FROM json_each(:data, '$.add')
               WHERE value NOT IN (SELECT value FROM json_each(teams.members)))
       OR EXISTS (SELECT 1 FROM json_each(:data, '$.remove')
                  WHERE value IN (SELECT value FROM json_each(teams.members))));

-- on team.renamed
UPDATE teams SET name = $name, updated_at = MAX(updated_at, annal_unix(:ts))
WHERE id = substr(:session, 6) AND $name <> '';

-- on team.configured
UPDATE teams SET node_metadata = $node_metadata, updated_at = MAX(updated_at, annal_unix(:ts))
WHERE id = substr(:session, 6);

-- on team.archived
UPDATE teams SET status = 'archived', updated_at = MAX(updated_at, annal_unix(:ts))
WHERE id = substr(:session, 6) AND status = 'active';

-- on team.deleted
DELETE FROM teams WHERE id = substr(:session, 6);
DELETE FROM x_team_reads
WHERE message_id IN (SELECT id FROM team_messages WHERE team_id = substr(:session, 6));
DELETE FROM team_messages WHERE team_id = substr(:session, 6);

-- on team.message   guarded "recipients must be 'all' or names without a comma"
INSERT INTO team_messages
    (id, team_id, created_at, sender, recipient, content, summary, session_id, from_op)
SELECT $id, t.id, COALESCE(annal_unix($created_at), annal_unix(:ts)), CASE WHEN instr($sender, ',') = 0 THEN NULLIF($sender, '') END,
       CASE COALESCE(json_type(:data, '$.to'), 'null')
           WHEN 'null' THEN 'all'
           WHEN 'text' THEN CASE WHEN $to IN ('*', 'all') THEN 'all'
                                 WHEN instr($to, ',') = 0 THEN NULLIF($to, '') END
           WHEN 'array' THEN
               CASE WHEN $to = '[]'
                         OR EXISTS (SELECT 1 FROM json_each(:data, '$.to')
                                    WHERE value IN ('*', 'all')) THEN 'all'
                    WHEN NOT EXISTS (SELECT 1 FROM json_each(:data, '$.to')
                                     WHERE type <> 'text' OR value = '' OR instr(value, ','))
                    THEN (SELECT group_concat(value, ',')
                          FROM (SELECT value FROM json_each(:data, '$.to')
                                GROUP BY value ORDER BY MIN(key)))
               END
       END,
       $content, $summary,
       CASE WHEN $session_known IS NOT 0 THEN $session_id END, $from_op
FROM teams t WHERE t.id = substr(:session, 6) AND $id <> ''
ON CONFLICT (id) DO UPDATE SET
    team_id = excluded.team_id, created_at = excluded.created_at, sender = excluded.sender,
    recipient = excluded.recipient, content = excluded.content, summary = excluded.summary,
    read_by = '[]', session_id = excluded.session_id, from_op = excluded.from_op
    WHERE excluded.team_id < team_id;
INSERT INTO x_team_reads (message_id, member, read_at)
SELECT $id, CASE json_type(:data, '$.read_by') WHEN 'object' THEN key ELSE value END,
       CASE json_type(:data, '$.read_by') WHEN 'object' THEN annal_unix(value) END
FROM json_each(CASE WHEN $read_by IS NULL THEN '[]' ELSE :data -> '$.read_by' END)
WHERE EXISTS (SELECT 1 FROM team_messages WHERE id = $id AND team_id = substr(:session, 6))
  AND CASE json_type(:data, '$.read_by') WHEN 'object' THEN key ELSE value END <> ''
  AND instr(CASE json_type(:data, '$.read_by') WHEN 'object' THEN key ELSE value END, ',') = 0
ON CONFLICT DO NOTHING;
UPDATE team_messages SET
    read_by = (SELECT json_group_array(member) FROM (
                   SELECT member FROM x_team_reads WHERE message_id = $id ORDER BY member))
WHERE $read_by IS NOT NULL AND id = $id AND +team_id = substr(:session, 6);
UPDATE teams SET
    updated_at = MAX(updated_at, COALESCE(annal_unix($created_at), annal_unix(:ts)))
WHERE id = substr(:session, 6) AND $id <> '';

-- on team.message_read   guarded "the name of a member must not contain a comma"
UPDATE teams_gate SET id = 1 WHERE $member IS NULL OR instr($member, ',') = 0;

-- on team.message_read   guarded "the member has read one of them already, or the name is missing"
INSERT INTO x_team_reads (message_id, member, read_at)
SELECT m.id, $member, COALESCE(annal_unix($read_at), annal_unix(:ts))
FROM team_messages m
WHERE +m.team_id = substr(:session, 6) AND $member <> '' AND instr($member, ',') = 0
  AND m.id IN (SELECT value FROM json_each(:data, '$.message_ids'))
  AND NOT EXISTS (SELECT 1 FROM x_team_reads r JOIN team_messages o ON o.id = r.message_id
                  WHERE r.member = $member AND +o.team_id = substr(:session, 6)
                    AND r.message_id IN (SELECT value FROM json_each(:data, '$.message_ids')));
UPDATE team_messages SET
    read_by = (SELECT json_group_array(member) FROM (
                   SELECT r.member FROM x_team_reads r WHERE r.message_id = team_messages.id
                   ORDER BY r.member))
WHERE +team_id = substr(:session, 6)
  AND id IN (SELECT value FROM json_each(:data, '$.message_ids'));

-- forget
DELETE FROM x_team_reads
WHERE message_id IN (SELECT id FROM team_messages WHERE team_id = substr(:session, 6));
DELETE FROM team_messages WHERE team_id = substr(:session, 6);
DELETE FROM teams WHERE id = substr(:session, 6);
