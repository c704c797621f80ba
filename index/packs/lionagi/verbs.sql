-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun lionagi   "sessions, branches and messages of lionagi"

-- verb lionagi session   appends session.created   session {SESSION}   "create a session"
--   SESSION            text id                               "session id"
--   --name NAME        text name                             "display name"
--   --user USER        text user                             "owner of the session"
--   --metadata JSON    json node_metadata                    "metadata, any JSON"
--   --progression ID   text progression_id                   "id of its message list (the session's id)"
--   --kind KIND        text invocation_kind (agent|play|flow|fanout|show-play)  "kind of run"
--   --agent NAME       text agent_name                       "name of the agent"
--   --playbook NAME    text playbook_name                    "name of the playbook"
--   --show-topic TEXT  text show_topic                       "topic of a show"
--   --show-play NAME   text show_play_name                   "play in that show"
--   --artifacts DIR    text artifacts_path                   "directory of its artifacts"
--   --status STATUS    text status = "running"
--                      (running|completed|failed|timed_out|aborted|cancelled)
--                      "status (running)"
--   --created TIME     time created_at                       "creation time (now)"
--   --started TIME     time started_at                       "start time (creation time)"
--   --pid PID          number                                "process that runs it, such as $$"
--   says     session {SESSION} is {status}
--   about    Adds its row to the table sessions of state.db, and its progression. With
--            --pid the process is recorded, so that 'annal doctor --transition-stale' can
--            prove that it is dead.
--   example  annal lionagi session run-1 --kind agent --agent analyst --pid $$

-- verb lionagi open   appends session.opened   session {SESSION}
--      "record a new process for a session"
--   SESSION    text             "the session"
--   --pid PID  number required  "process that runs it now, such as $$"
--   says     process {pid} runs session {SESSION}
--   about    For a session that is resumed: the record of the previous process is replaced,
--            so that the session does not count as one whose process died.
--   example  annal lionagi open run-1 --pid $$

-- verb lionagi set   appends session.updated   session {SESSION}
--      "change the name and origin of a session"
--   SESSION          text                     "the session"
--   --name NAME      text set.name            "display name"
--   --user USER      text set.user            "owner of the session"
--   --metadata JSON  json set.node_metadata   "metadata; replaces the existing metadata"
--   --agent NAME     text set.agent_name      "name of the agent"
--   --playbook NAME  text set.playbook_name   "name of the playbook"
--   --artifacts DIR  text set.artifacts_path  "directory of its artifacts"
--   --health WORD    text set.health          "second axis of its state"
--   --delivery WORD  text set.delivery        "third axis of its state"
--   says     changed session {SESSION}
--   about    This is not activity: last_message_at stays unchanged. To change the status,
--            use 'transition'.
--   example  annal lionagi set run-1 --name "tide table"

-- verb lionagi transition   appends session.transition   session {SESSION}
--      "change the status of a session"
--   SESSION             text                                  "the session"
--   STATUS              text to                               "new status"
--   --expect STATUS     list expected                     "a status that it must have now; repeat"
--   --reason-code CODE  text reason_code                      "reason, for programs"
--   --reason TEXT       text reason_summary                   "reason, for people"
--   --source WHO        text source = "executor" (executor|agent|admin|system)
--                       "origin of the change (executor)"
--   --actor NAME        text actor                            "name of the author"
--   --evidence JSON     json evidence_refs                    "evidence for the change"
--   --ended TIME        time ended_at                         "end time (now)"
--   --override          flag override              "also leave a final status; needs a reason"
--   says     session {SESSION} is {to}
--   about    Only running can be left; other statuses are final, unless --override is given
--            with a reason. STATUS is running, completed, failed, timed_out, aborted or
--            cancelled. Each change is stored in status_transitions.
--   example  annal lionagi transition run-1 completed --expect running
--            annal lionagi transition run-1 running --override --reason "was cut off"

-- verb lionagi branch   appends branch.created   session {SESSION}   "add a branch to a session"
--   SESSION           text                 "the session"
--   --id ID           text id              "branch id (a new UUID)"
--   --name NAME       text name            "display name"
--   --user USER       text user            "owner of the branch"
--   --metadata JSON   json node_metadata   "provider, model, tools, effort"
--   --progression ID  text progression_id  "id of its message list (the branch's id)"
--   --system MESSAGE  text system_msg_id   "its system message"
--   says     created branch {id} of {SESSION}
--   about    A branch is a progression with a name: messages in their order.
--   example  annal lionagi branch run-1 --id b1 --name main

-- verb lionagi fork   appends branch.forked   session {SESSION}   "fork a branch"
--   SESSION          text                   "the session"
--   BRANCH           text parent_branch_id  "branch to fork"
--   --at N           number forked_at_ord   "number of shared messages (all)"
--   --id ID          text id                "id of the new branch (a new UUID)"
--   --name NAME      text name              "display name"
--   --user USER      text user              "owner of the branch"
--   --metadata JSON  json node_metadata     "provider, model, tools, effort"
--   says     branch {id} shares the first {forked_at_ord} messages of {BRANCH}
--   about    The new branch shares the first N messages of the other branch's history,
--            including inherited messages. Nothing is copied.
--   example  annal lionagi fork run-1 b1 --at 4 --id b2

-- verb lionagi system   appends branch.system_set   session {SESSION}
--      "set the system message of a branch"
--   SESSION   text             "the session"
--   BRANCH    text id          "the branch"
--   MESSAGE   text message_id  "new system message"
--   says     the system message of {BRANCH} is {MESSAGE}
--   about    The message itself does not move; the branch refers to it.
--   example  annal lionagi system run-1 b1 m1

-- verb lionagi message   appends message.added   session {SESSION}
--      "add a message to a session, and to a branch"
--   SESSION           text                "the session"
--   CONTENT           json content        "JSON; @FILE and - read it"
--   --role ROLE       text role = "user"  "user, assistant, system, tool, ... (user)"
--   --branch ID       text branch_id      "branch of the message"
--   --id ID           text id             "message id (a new UUID)"
--   --sender ID       text sender         "sender"
--   --recipient ID    text recipient      "recipient"
--   --channel NAME    text channel        "channel"
--   --class NAME      text lion_class     "its class, a path of Python"
--   --metadata JSON   json node_metadata  "metadata, any JSON"
--   --embedding JSON  json embedding      "an array of numbers"
--   --created TIME    time created_at     "creation time (now)"
--   says     added message {id} to {SESSION}
--   about    It is appended to the progression of the session and, with --branch, to the
--            branch's. A message with the same id replaces it. A new class receives the
--            next number (message_types).
--   example  annal lionagi message run-1 '"hello"' --branch b1
--            annal lionagi message run-1 @answer.json --role assistant --sender b1

-- verb lionagi amend   appends message.amended   session {SESSION}   "change a message"
--   SESSION           text                "the session"
--   MESSAGE           text id             "the message"
--   --content JSON    json content        "new content"
--   --role ROLE       text role           "new role"
--   --sender ID       text sender         "sender"
--   --recipient ID    text recipient      "recipient"
--   --channel NAME    text channel        "channel"
--   --class NAME      text lion_class     "its class, a path of Python"
--   --metadata JSON   json node_metadata  "metadata, any JSON"
--   --embedding JSON  json embedding      "an array of numbers"
--   --created TIME    time created_at     "creation time (now)"
--   says     changed message {MESSAGE}
--   about    Values that are not given stay unchanged. The journal keeps both versions.
--   example  annal lionagi amend run-1 m1 --content '"hello, world"'

-- verb lionagi class   appends message_type.registered   session _state
--      "register a class of messages"
--   CLASS     text lion_class  "a path of Python"
--   says     {CLASS} has number {type_id}
--   about    'annal lionagi message' does so automatically. Refused if the class has a
--            number.
--   example  annal lionagi class my.module.Note

-- verb lionagi history   selects   "print the messages of a branch, including inherited ones"
--   BRANCH    text  "the branch"
--   about    The messages in their order. An id without a message is skipped.
--   example  annal lionagi history b2
SELECT ord, id, role, sender, created_at, content
FROM branch_messages
WHERE branch_id = ?1
ORDER BY ord;

-- verb lionagi branches   selects   "list the branches of a session"
--   SESSION   text  "the session"
--   about    The oldest first, with the number of messages of its own for each branch.
--   example  annal lionagi branches run-1
SELECT b.id, b.name, b.created_at, b.parent_branch_id, b.forked_at_ord,
       (SELECT COALESCE(MAX(ord) + 1, 0) FROM progression_items
        WHERE progression_id = b.progression_id) AS messages,
       b.system_msg_id
FROM branches b
WHERE b.session_id = ?1
ORDER BY b.created_at, b.id;

-- verb lionagi inbox   selects   "list the messages to a recipient"
--   RECIPIENT       text  "recipient"
--   --channel NAME  text  "only messages of this channel"
--   about    Of all sessions, by time.
--   example  annal lionagi inbox b1 --channel review
SELECT id, created_at, sender, channel, role, content, session_id
FROM messages
WHERE recipient = ?1 AND (?2 IS NULL OR channel = ?2)
ORDER BY created_at, id;

-- verb lionagi similar   selects   "list the messages whose embeddings are nearest"
--   VECTOR     json         "an array of numbers; @FILE and - read it"
--   --limit N  number = 10  "maximum number of messages (10)"
--   about    Sorted by cosine distance, among embeddings with the same number of
--            dimensions.
--   example  annal lionagi similar '[0.1, 0.9]' --limit 3
SELECT id, vec_distance_cosine(embedding, annal_f32(?1)) AS distance, session_id, content
FROM messages
WHERE length(embedding) = length(annal_f32(?1))
ORDER BY distance, id LIMIT ?2;
