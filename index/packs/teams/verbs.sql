-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun team   "teams of agents and their messages"

-- verb team create   appends team.created   "create a team"
--   NAME             text name           "display name"
--   --member NAME    list members        "name of a member; repeat"
--   --id ID          text id             "team id (12 random hex digits)"
--   --metadata JSON  json node_metadata  "configuration, coordination mode"
--   says     created team {id}: {name}
--   about    The name of a member contains no comma, and is neither 'all' nor '*'.
--   example  annal team create review --member alice --member bob

-- verb team send   appends team.message   "send a message to a team"
--   TEAM               text                  "team id, the beginning of it, or the team's name"
--   TEXT               body content          "the message; - reads standard input"
--   --from NAME        text sender = "_cli"  "sender (_cli)"
--   --to NAME          list to               "recipients; repeat, or separate by commas (all)"
--   --summary TEXT     text summary          "one line, for a long message"
--   --session SESSION  text                  "session of the work ($ANNAL_SESSION)"
--   --from-op OP       text from_op          "operation of the message"
--   --id ID            text id               "message id (12 random hex digits)"
--   says     sent message {id} to {to}
--   about    A message from or to a name that is not a member is stored, with a warning.
--            With --session, or $ANNAL_SESSION, the message is linked to the session of the
--            work: 'annal team timeline' shows both side by side.
--   example  annal team send review "approve?" --from alice --to bob
--            git diff | annal team send review - --summary "the diff"

-- verb team inbox   appends team.message_read
--      "print the unread messages of a member, and mark them as read"
--   TEAM       text  "team id, the beginning of it, or the team's name"
--   --as NAME  text  "read as this member; without it, nothing is marked"
--   --peek     flag  "mark nothing"
--   about    Each message is printed once, even if several processes read as the same
--            member. Without --as all messages are printed and none is marked.
--   example  annal team inbox review --as bob

-- verb team receive   appends team.message_read   "same as inbox"
--   TEAM       text  "team id, the beginning of it, or the team's name"
--   --as NAME  text  "read as this member; without it, nothing is marked"
--   --peek     flag  "mark nothing"
--   about    See 'annal team help inbox'.
--   example  annal team receive review --as bob

-- verb team read   appends team.message_read   "mark messages as read"
--   TEAM       text                  "team id, the beginning of it, or the team's name"
--   MESSAGE    list message_ids      "message ids"
--   --as NAME  text member required  "member that has read them"
--   says     {member} has read {message_ids}
--   about    All of them or none: refused if the member has read one of them already.
--   example  annal team read review 3f2a90c1d4e5 --as bob

-- verb team members   appends team.members_changed   "list, add and remove members of a team"
--   TEAM           text         "team id, the beginning of it, or the team's name"
--   --add NAME     list add     "member to add; repeat"
--   --remove NAME  list remove  "member to remove; repeat"
--   about    Without options: each member, with the number of messages sent and unread.
--   example  annal team members review --add carol --remove bob

-- verb team rename   appends team.renamed   "rename a team"
--   TEAM      text       "team id, the beginning of it, or the team's name"
--   NAME      text name  "new name"
--   says     renamed team {TEAM} to {name}
--   about    Its id stays.
--   example  annal team rename review reviewers

-- verb team archive   appends team.archived   "archive a team"
--   TEAM           text         "team id, the beginning of it, or the team's name"
--   --reason TEXT  text reason  "reason"
--   says     team {TEAM} is archived
--   about    Its messages stay; its members cannot change any more.
--   example  annal team archive review --reason "merged"

-- verb team delete   appends team.deleted   "delete a team and its messages from the tables"
--   TEAM           text         "team id, the beginning of it, or the team's name"
--   --reason TEXT  text reason  "reason"
--   says     deleted team {TEAM}
--   about    Its journal still contains the messages: 'annal delete' removes it.
--   example  annal team delete review --reason "made by mistake"

-- verb team ls   selects   "list the teams, the most recently active first"
--   --status STATUS  text (active|archived)  "active or archived (both)"
--   about    With their members, and the number of messages of each.
--   example  annal team ls --status active
SELECT id, name, status, member_count, members,
       (SELECT count(*) FROM team_messages m WHERE m.team_id = t.id) AS messages,
       strftime('%Y-%m-%dT%H:%M:%SZ', updated_at, 'unixepoch') AS updated
FROM teams t
WHERE ?1 IS NULL OR status = ?1
ORDER BY t.updated_at DESC, id;

-- verb team show   runs   "show a team with its messages"
--   TEAM      text  "team id, the beginning of it, or the team's name"
--   --full    flag  "full messages instead of their summaries"
--   about    Long messages show their summary, or their first 200 characters.
--   example  annal team show review --full

-- verb team timeline   runs   "show a team's events beside its sessions' events"
--   TEAM      text  "team id, the beginning of it, or the team's name"
--   about    Sorted by time, then by session and seq.
--   example  annal team timeline review

-- verb team runs   selects   "list the sessions that run or ran, with their health"
--   --health HEALTH  text (healthy|idle|unresponsive|stale|orphaned|zombie)  "only runs with this health"
--   --status STATUS  text                                  "only runs with this status: running, failed, ..."
--   about    Of the packs lionagi and teams. A run whose process is alive is idle after an
--            hour without a message, and unresponsive after 6 hours, or 12 for flow, fanout
--            and show-play (the table stale_thresholds). A run whose process is dead is
--            stale, or orphaned if it has neither messages nor artifacts. Without --pid it
--            is unknown whether a process is alive: after those hours the run is stale. A
--            run that ended is healthy, or a zombie if it left *.lock files in its
--            artifacts. 'annal doctor --transition-stale' ends runs whose process is dead.
--   example  annal team runs --health stale
SELECT session_id, name, invocation_kind, status, effective_health, last_message_at,
       message_count, duration_seconds
FROM run_list
WHERE (?1 IS NULL OR effective_health = ?1) AND (?2 IS NULL OR status = ?2)
ORDER BY last_activity DESC, session_id;

-- verb team health   selects   "show the health of runs: the worst run decides"
--   --by WHAT  text = "all" (all|kind|show|team)  "all, kind, show or team (all)"
--   about    One row for all runs, or for each kind, show or team. From the best to the
--            worst: healthy, idle, unresponsive, stale, orphaned, zombie. 'annal team help
--            runs' explains them.
--   example  annal team health --by team
WITH parts(id, session_id, health) AS (
    SELECT 'all', NULL, 'healthy' WHERE ?1 = 'all' -- of no runs the worst is healthy
    UNION ALL
    SELECT 'all', session_id, effective_health FROM run_list WHERE ?1 = 'all'
    UNION ALL
    SELECT invocation_kind, session_id, effective_health FROM run_list WHERE ?1 = 'kind'
    UNION ALL
    SELECT s.show_topic, r.session_id, r.effective_health
    FROM run_list r JOIN state.sessions s ON s.id = r.session_id
    WHERE ?1 = 'show' AND s.show_topic IS NOT NULL
    UNION ALL
    SELECT t.id, r.session_id, COALESCE(r.effective_health, 'healthy')
    FROM teams t LEFT JOIN team_sessions m ON m.team_id = t.id
                 LEFT JOIN run_list r ON r.session_id = m.session_id
    WHERE ?1 = 'team')
SELECT g.id, w.health AS effective_health,
       g.runs, g.idle, g.unresponsive, g.stale, g.orphaned, g.zombie
FROM (SELECT p.id, max(l.severity) AS worst, count(session_id) AS runs,
             count(session_id) FILTER (WHERE p.health = 'idle') AS idle,
             count(session_id) FILTER (WHERE p.health = 'unresponsive') AS unresponsive,
             count(session_id) FILTER (WHERE p.health = 'stale') AS stale,
             count(session_id) FILTER (WHERE p.health = 'orphaned') AS orphaned,
             count(session_id) FILTER (WHERE p.health = 'zombie') AS zombie
      FROM parts p JOIN health_levels l ON l.health = p.health
      GROUP BY p.id) g
JOIN health_levels w ON w.severity = g.worst
ORDER BY g.id;

-- verb team dashboard   selects   "count running, stale, failed and slow runs, and teams"
--   about    failed_24h: in the last 24 hours; slow: running for more than 30 minutes.
--   example  annal team dashboard --json
SELECT * FROM dashboard;

-- verb team import   appends team.imported   "import teams from JSON files"
--   FILE      list  "JSON files of teams, or directories of them"
--   about    A file contains one team: {"id","name","members","messages":[…]}. A repeated
--            import adds only new messages, and new marks of who has read them.
--   example  annal team import ~/.lionagi/teams

-- verb team export   runs   "write teams as JSON files"
--   [TEAM]    text  "team id, the beginning of it, or the team's name (all)"
--   --to DIR  text  "directory for the files <id>.json (standard output)"
--   about    Importing them again yields the same rows.
--   example  annal team export review > review.json
--            annal team export --to teams/
