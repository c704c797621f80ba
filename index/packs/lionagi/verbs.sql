-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun lionagi   "sessions, branches and messages of lionagi"

-- verb lionagi session   appends session.created   session {SESSION}   "begin a session"
--   SESSION            text id                               "its id"
--   --name NAME        text name                             "what people call it"
--   --user USER        text user                             "whose it is"
--   --metadata JSON    json node_metadata                    "anything"
--   --progression ID   text progression_id                   "of its messages (the session's id)"
--   --kind KIND        text invocation_kind (agent|play|flow|fanout|show-play)  "what ran"
--   --agent NAME       text agent_name                       "which agent"
--   --playbook NAME    text playbook_name                    "which playbook"
--   --show-topic TEXT  text show_topic                       "of a show"
--   --show-play NAME   text show_play_name                   "the play in that show"
--   --artifacts DIR    text artifacts_path                   "where its artifacts are"
--   --status STATUS    text status = "running"
--                      (running|completed|failed|timed_out|aborted|cancelled)
--                      "running, unless it is given"
--   --created TIME     time created_at                       "now, unless it is given"
--   --started TIME     time started_at                       "when it began to run (when created)"
--   --pid PID          number                                "the process that runs it, such as $$"
--   says     session {SESSION} is {status}
--   about    Its row in the table sessions of state.db, and its progression. With --pid the
--            process is recorded, so that 'annal doctor --transition-stale' can prove its
--            death.
--   example  annal lionagi session run-1 --kind agent --agent analyst --pid $$

-- verb lionagi open   appends session.opened   session {SESSION}
--      "say which process runs a session from now on"
--   SESSION    text             "the session"
--   --pid PID  number required  "the process that runs it now, such as $$"
--   says     session {SESSION} is run by process {pid}
--   about    For a session that is taken up again: what was recorded of the process before is
--            replaced, so that nobody takes the session for one whose process died.
--   example  annal lionagi open run-1 --pid $$

-- verb lionagi set   appends session.updated   session {SESSION}
--      "change what a session is called and where it comes from"
--   SESSION          text                     "the session"
--   --name NAME      text set.name            "what people call it"
--   --user USER      text set.user            "whose it is"
--   --metadata JSON  json set.node_metadata   "in the place of what was there"
--   --agent NAME     text set.agent_name      "which agent"
--   --playbook NAME  text set.playbook_name   "which playbook"
--   --artifacts DIR  text set.artifacts_path  "where its artifacts are"
--   --health WORD    text set.health          "second axis of its state"
--   --delivery WORD  text set.delivery        "third axis of its state"
--   says     session {SESSION} is changed
--   about    Is no sign of life: last_message_at stays. Its status has a verb of its own,
--            transition.
--   example  annal lionagi set run-1 --name "tide table"

-- verb lionagi transition   appends session.transition   session {SESSION}
--      "change the status of a session"
--   SESSION             text                                  "the session"
--   STATUS              text to                               "its status from now on"
--   --expect STATUS     list expected                     "refuse unless it is this now; repeat it"
--   --reason-code CODE  text reason_code                      "why, for programs"
--   --reason TEXT       text reason_summary                   "why, for people"
--   --source WHO        text source = "executor" (executor|agent|admin|system)
--                       "who says so (executor)"
--   --actor NAME        text actor                            "their name"
--   --evidence JSON     json evidence_refs                    "what shows it"
--   --ended TIME        time ended_at                         "now, unless it is given"
--   --override          flag override              "also out of a status that ends; needs a reason"
--   says     session {SESSION} is {to}
--   about    Only running has a way on; what has ended stays so, unless --override is given
--            with a reason. STATUS is running, completed, failed, timed_out, aborted or
--            cancelled. Each change is kept in status_transitions.
--   example  annal lionagi transition run-1 completed --expect running
--            annal lionagi transition run-1 running --override --reason "was cut off"

-- verb lionagi branch   appends branch.created   session {SESSION}   "add a branch to a session"
--   SESSION           text                 "the session"
--   --id ID           text id              "the branch's id (a new UUID)"
--   --name NAME       text name            "what people call it"
--   --user USER       text user            "whose it is"
--   --metadata JSON   json node_metadata   "provider, model, tools, effort"
--   --progression ID  text progression_id  "of its messages (the branch's id)"
--   --system MESSAGE  text system_msg_id   "its system message"
--   says     branch {id} of {SESSION}
--   about    A branch is a progression with a name: messages in their order.
--   example  annal lionagi branch run-1 --id b1 --name main

-- verb lionagi fork   appends branch.forked   session {SESSION}   "fork a branch"
--   SESSION          text                   "the session"
--   BRANCH           text parent_branch_id  "from which it forks"
--   --at N           number forked_at_ord   "it has the first N of its history (all)"
--   --id ID          text id                "the new branch's id (a new UUID)"
--   --name NAME      text name              "what people call it"
--   --user USER      text user              "whose it is"
--   --metadata JSON  json node_metadata     "provider, model, tools, effort"
--   says     branch {id} has the first {forked_at_ord} messages of {BRANCH}
--   about    The new branch has the first N messages of the other's history, what that
--            inherits included. Nothing is copied.
--   example  annal lionagi fork run-1 b1 --at 4 --id b2

-- verb lionagi system   appends branch.system_set   session {SESSION}
--      "say which message is the system message of a branch"
--   SESSION   text             "the session"
--   BRANCH    text id          "the branch"
--   MESSAGE   text message_id  "its system message from now on"
--   says     system message of {BRANCH} is {MESSAGE}
--   about    The message itself stays where it is; the branch points at it.
--   example  annal lionagi system run-1 b1 m1

-- verb lionagi message   appends message.added   session {SESSION}
--      "add a message to a session, and to a branch"
--   SESSION           text                "the session"
--   CONTENT           json content        "JSON; @FILE and - read it"
--   --role ROLE       text role = "user"  "user, assistant, system, tool, ... (user)"
--   --branch ID       text branch_id      "the branch that it belongs to"
--   --id ID           text id             "the message's id (a new UUID)"
--   --sender ID       text sender         "who says it"
--   --recipient ID    text recipient      "to whom"
--   --channel NAME    text channel        "on which channel"
--   --class NAME      text lion_class     "its class, a path of Python"
--   --metadata JSON   json node_metadata  "anything"
--   --embedding JSON  json embedding      "an array of numbers"
--   --created TIME    time created_at     "now, unless it is given"
--   says     message {id} of {SESSION}
--   about    It is appended to the progression of the session and, with --branch, to that of
--            the branch. The same id again overwrites the message. A class that was never
--            seen gets the next number (message_types).
--   example  annal lionagi message run-1 '"hello"' --branch b1
--            annal lionagi message run-1 @answer.json --role assistant --sender b1

-- verb lionagi amend   appends message.amended   session {SESSION}   "change a message"
--   SESSION           text                "the session"
--   MESSAGE           text id             "the message"
--   --content JSON    json content        "its content from now on"
--   --role ROLE       text role           "its role from now on"
--   --sender ID       text sender         "who says it"
--   --recipient ID    text recipient      "to whom"
--   --channel NAME    text channel        "on which channel"
--   --class NAME      text lion_class     "its class, a path of Python"
--   --metadata JSON   json node_metadata  "anything"
--   --embedding JSON  json embedding      "an array of numbers"
--   --created TIME    time created_at     "now, unless it is given"
--   says     message {MESSAGE} is changed
--   about    What is not given stays. The journal keeps both.
--   example  annal lionagi amend run-1 m1 --content '"hello, world"'

-- verb lionagi class   appends message_type.registered   session _state
--      "give a class of messages its number"
--   CLASS     text lion_class  "a path of Python"
--   says     {CLASS} is number {type_id}
--   about    'annal lionagi message' does so by itself. A class that has a number is refused.
--   example  annal lionagi class my.module.Note

-- verb lionagi history   selects   "print what a branch has, with what it inherits"
--   BRANCH    text  "the branch"
--   about    The messages in their order. An id without a message is left out.
--   example  annal lionagi history b2
SELECT ord, id, role, sender, created_at, content
FROM branch_messages
WHERE branch_id = ?1
ORDER BY ord;

-- verb lionagi branches   selects   "list the branches of a session"
--   SESSION   text  "the session"
--   about    The oldest first, with how many messages each has of its own.
--   example  annal lionagi branches run-1
SELECT b.id, b.name, b.created_at, b.parent_branch_id, b.forked_at_ord,
       (SELECT COALESCE(MAX(ord) + 1, 0) FROM progression_items
        WHERE progression_id = b.progression_id) AS messages,
       b.system_msg_id
FROM branches b
WHERE b.session_id = ?1
ORDER BY b.created_at, b.id;

-- verb lionagi inbox   selects   "list the messages to somebody"
--   RECIPIENT       text  "to whom"
--   --channel NAME  text  "only on this channel"
--   about    Of all sessions, by time.
--   example  annal lionagi inbox b1 --channel review
SELECT id, created_at, sender, channel, role, content, session_id
FROM messages
WHERE recipient = ?1 AND (?2 IS NULL OR channel = ?2)
ORDER BY created_at, id;

-- verb lionagi similar   selects   "list the messages whose embeddings are nearest"
--   VECTOR     json         "an array of numbers; @FILE and - read it"
--   --limit N  number = 10  "at most so many (10)"
--   about    By cosine distance, among those of the same number of dimensions.
--   example  annal lionagi similar '[0.1, 0.9]' --limit 3
SELECT id, vec_distance_cosine(embedding, annal_f32(?1)) AS distance, session_id, content
FROM messages
WHERE length(embedding) = length(annal_f32(?1))
ORDER BY distance, id LIMIT ?2;
