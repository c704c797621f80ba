-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun team   "teams of agents and what they say to each other"

-- verb team create   appends team.created   "make a team"
--   NAME             text name           "what people call it"
--   --member NAME    list members        "a member; repeat it"
--   --id ID          text id             "its id (12 random hex digits)"
--   --metadata JSON  json node_metadata  "configuration, coordination mode"
--   says     team {id}: {name}
--   about    Names of members have no comma, and are neither 'all' nor '*'.
--   example  annal team create review --member alice --member bob

-- verb team send   appends team.message   "say something to a team"
--   TEAM               text                  "its id, the beginning of it, or its name"
--   TEXT               body content          "what to say; - reads standard input"
--   --from NAME        text sender = "_cli"  "who says it (_cli)"
--   --to NAME          list to               "to whom; repeat it, or separate by commas (all)"
--   --summary TEXT     text summary          "one line, for what is long"
--   --session SESSION  text                  "whose work it is about ($ANNAL_SESSION)"
--   --from-op OP       text from_op          "the operation it belongs to"
--   --id ID            text id               "the message's id (12 random hex digits)"
--   says     message {id} to {to}
--   about    A sender or recipient who is no member is remarked on, and the message stored.
--            With --session, or $ANNAL_SESSION, it is linked to the session whose work it is
--            about: 'annal team timeline' shows both side by side.
--   example  annal team send review "approve?" --from alice --to bob
--            git diff | annal team send review - --summary "the diff"

-- verb team inbox   appends team.message_read
--      "print what a member has not read, and mark it as read"
--   TEAM       text  "its id, the beginning of it, or its name"
--   --as NAME  text  "read as this member; else all are shown, none marked"
--   --peek     flag  "mark nothing"
--   about    Each message is handed out once, also when several processes read as the same
--            member. Without --as all messages are printed and none is marked.
--   example  annal team inbox review --as bob

-- verb team receive   appends team.message_read   "the same as inbox"
--   TEAM       text  "its id, the beginning of it, or its name"
--   --as NAME  text  "read as this member; else all are shown, none marked"
--   --peek     flag  "mark nothing"
--   about    See 'annal team help inbox'.
--   example  annal team receive review --as bob

-- verb team read   appends team.message_read   "mark messages as read"
--   TEAM       text                  "its id, the beginning of it, or its name"
--   MESSAGE    list message_ids      "the ids of messages"
--   --as NAME  text member required  "who has read them"
--   says     {member} has read {message_ids}
--   about    All of them or none: when the member has read one already, it is refused.
--   example  annal team read review 3f2a90c1d4e5 --as bob

-- verb team members   appends team.members_changed   "who is in a team; who joins and leaves"
--   TEAM           text         "its id, the beginning of it, or its name"
--   --add NAME     list add     "who joins; repeat it"
--   --remove NAME  list remove  "who leaves; repeat it"
--   about    Without options: each member, with what was sent and what is not read.
--   example  annal team members review --add carol --remove bob

-- verb team rename   appends team.renamed   "give a team another name"
--   TEAM      text       "its id, the beginning of it, or its name"
--   NAME      text name  "the new name"
--   says     team {TEAM} is {name} now
--   about    Its id stays.
--   example  annal team rename review reviewers

-- verb team archive   appends team.archived   "put a team away"
--   TEAM           text         "its id, the beginning of it, or its name"
--   --reason TEXT  text reason  "why"
--   says     team {TEAM} is archived
--   about    Its messages stay; its members do not change any more.
--   example  annal team archive review --reason "merged"

-- verb team delete   appends team.deleted   "take a team and its messages out of the tables"
--   TEAM           text         "its id, the beginning of it, or its name"
--   --reason TEXT  text reason  "why"
--   says     team {TEAM} is deleted
--   about    Its journal stays, and with it what was said: 'annal delete' removes that.
--   example  annal team delete review --reason "made by mistake"

-- verb team ls   selects   "list the teams, the last active one first"
--   --status STATUS  text (active|archived)  "active or archived (both)"
--   about    With their members, and how many messages each has.
--   example  annal team ls --status active
SELECT id, name, status, member_count, members,
       (SELECT count(*) FROM team_messages m WHERE m.team_id = t.id) AS messages,
       strftime('%Y-%m-%dT%H:%M:%SZ', updated_at, 'unixepoch') AS updated
FROM teams t
WHERE ?1 IS NULL OR status = ?1
ORDER BY t.updated_at DESC, id;

-- verb team show   runs   "one team with its messages"
--   TEAM      text  "its id, the beginning of it, or its name"
--   --full    flag  "messages in full, not their summaries"
--   about    Long messages show their summary, or their first 200 characters.
--   example  annal team show review --full

-- verb team timeline   runs   "a team's events beside those of its sessions"
--   TEAM      text  "its id, the beginning of it, or its name"
--   about    By time; of the same time by session and seq.
--   example  annal team timeline review

-- verb team runs   selects   "list the sessions that run or ran, with their health"
--   --health HEALTH  text (healthy|idle|unresponsive|stale|orphaned|zombie)  "only these"
--   --status STATUS  text                                  "only these: running, failed, ..."
--   about    Of the packs lionagi and teams. A run whose process is alive is idle after an
--            hour without a message, and unresponsive after 6 hours, or 12 for flow, fanout
--            and show-play (the table stale_thresholds). One whose process is dead is stale,
--            or orphaned when it has neither messages nor artifacts. Without --pid nobody
--            knows whether a process is alive: after those hours the run is stale. A run
--            that ended is healthy, and a zombie when it left *.lock files in its artifacts.
--            'annal doctor --transition-stale' ends those whose process is dead.
--   example  annal team runs --health stale
SELECT session_id, name, invocation_kind, status, effective_health, last_message_at,
       message_count, duration_seconds
FROM run_list
WHERE (?1 IS NULL OR effective_health = ?1) AND (?2 IS NULL OR status = ?2)
ORDER BY last_activity DESC, session_id;

-- verb team health   selects   "how runs are: the worst of them decides"
--   --by WHAT  text = "all" (all|kind|show|team)  "all, kind, show or team (all)"
--   about    One row for all runs, or for each kind, show or team. From the best to the
--            worst: healthy, idle, unresponsive, stale, orphaned, zombie. 'annal team help
--            runs' says what they mean.
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

-- verb team dashboard   selects   "count what runs, is stale, failed, is slow, and the teams"
--   about    failed_24h: in the last 24 hours; slow: running for more than 30 minutes.
--   example  annal team dashboard --json
SELECT * FROM dashboard;

-- verb team import   appends team.imported   "take over teams from JSON files"
--   FILE      list  "JSON files of teams, or directories of them"
--   about    A file holds one team: {"id","name","members","messages":[…]}. Doing it again
--            adds only what is new: messages, and marks of who has read them.
--   example  annal team import ~/.lionagi/teams

-- verb team export   runs   "write teams as JSON files"
--   [TEAM]    text  "its id, the beginning of it, or its name (all)"
--   --to DIR  text  "write DIR/<id>.json (standard output)"
--   about    They import again to the same rows.
--   example  annal team export review > review.json
--            annal team export --to teams/
