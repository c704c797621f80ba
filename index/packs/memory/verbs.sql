-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun decision   "what holds for a project, and proposals (memory)"

-- verb decision propose   appends decision.proposed   session proj_{PROJECT}
--      "put a proposal into the inbox of a project"
--   PROJECT           text                      "the project"
--   TITLE             text title                "what it says, in a line"
--   --agent WHO       text agent_name required  "who proposes it"
--   --type TYPE       text type = "learning"    "architectural, scope, pattern, … (learning)"
--   --content TEXT    body content required     "all of it; - reads standard input"
--   --rationale TEXT  body rationale            "why"
--   --slug SLUG       text requested_slug       "its short name; another's gives SLUG--WHO"
--   --only-slug SLUG  text slug                 "its short name; another's is refused"
--   --id ENTRY        text entry_id             "its id (the next i1, i2, …)"
--   says     proposal {entry_id} ({slug}) is pending
--   about    An inbox stands between what an agent thinks and what holds for all. Proposals
--            stay for ever, merged or rejected. A slug names one proposal in the project,
--            whoever made it; without one it is made from the title. The same agent and slug
--            once more change the proposal while it is pending; the proposal of another agent
--            gets the slug SLUG--WHO, then SLUG--WHO--2.
--   example  annal decision propose shop "Use SQLite" --agent ada --type architectural \
--                --content "One file a tenant." --rationale "No server to run."

-- verb decision revise   appends decision.proposal_updated   session proj_{PROJECT}
--      "change a proposal that is pending"
--   PROJECT           text                      "the project"
--   ENTRY             text entry_id             "the proposal"
--   --agent NAME      text agent_name required  "who made it"
--   --type TYPE       text type                 "another type"
--   --title TEXT      text title                "another title"
--   --content TEXT    body content              "another content"
--   --rationale TEXT  body rationale            "another rationale"
--   says     proposal {ENTRY} is changed
--   about    Only the agent that made it may.
--   example  annal decision revise shop i1 --agent ada --title "Use SQLite 3.40"

-- verb decision promote   appends decision.promoted   session proj_{PROJECT}
--      "accept a proposal: it becomes a decision"
--   PROJECT    text              "the project"
--   ENTRY      text entry_id     "the proposal"
--   --by NAME  text by           "who accepts it"
--   --id ID    text decision_id  "of the decision (the next d1, d2, …)"
--   says     proposal {ENTRY} is decision {decision_id}
--   about    The decision is made and the proposal merged in one event, so neither is ever
--            there without the other. A second time is refused. The scribe may merge
--            learnings, patterns and updates only.
--   example  annal decision promote shop i1 --by bob

-- verb decision promote-all   appends decision.batch_promoted   session proj_{PROJECT}
--      "accept all that is pending and WHO may merge"
--   PROJECT   text                                  "the project"
--   --by WHO  text by (coordinator|scribe) required  "coordinator or scribe"
--   says     merged: {entries}
--   about    In one event. The coordinator merges architectural and scope, the scribe
--            learning, pattern and update; the table promotion_rules says so. When nothing
--            is pending nothing is appended.
--   example  annal decision promote-all shop --by scribe

-- verb decision reject   appends decision.rejected   session proj_{PROJECT}
--      "turn a proposal down; it stays in the inbox"
--   PROJECT        text           "the project"
--   ENTRY          text entry_id  "the proposal"
--   --reason TEXT  text reason    "why not"
--   says     proposal {ENTRY} is rejected
--   about    Rejected ones tell why something did not become a rule.
--   example  annal decision reject shop i2 --reason "we tried that"

-- verb decision create   appends decision.created   session proj_{PROJECT}
--      "make a decision without a proposal"
--   PROJECT           text                   "the project"
--   TITLE             text title             "what it says, in a line"
--   --type TYPE       text type required     "architectural, scope, …"
--   --content TEXT    body content required  "all of it; - reads standard input"
--   --rationale TEXT  body rationale         "why"
--   --agent NAME      text agent_name        "who decided"
--   --id ID           text decision_id       "its id (the next d1, d2, …)"
--   says     decision {decision_id} holds
--   about    Active architectural and scope decisions stand first in every context.
--   example  annal decision create shop "No cookies" --type scope --content "None."

-- verb decision supersede   appends decision.superseded   session proj_{PROJECT}
--      "another decision takes the place of one"
--   PROJECT   text                   "the project"
--   DECISION  text decision_id       "that holds no more"
--   BY        text superseded_by_id  "that takes its place"
--   says     decision {DECISION} is superseded by {BY}
--   about    The old one stays, so that it can be explained.
--   example  annal decision supersede shop d1 d4

-- verb decision ls   selects   "list the decisions of a project, oldest first"
--   PROJECT          text  "the project"
--   --status STATUS  text  "active or superseded (all)"
--   about    Superseded ones too.
--   example  annal decision ls shop --status active
SELECT id, type, title, status, superseded_by_id, agent_name, created_at
FROM memory.decisions
WHERE project_id = ?1 AND (?2 IS NULL OR status = ?2)
ORDER BY created_at, seq, id;

-- verb decision inbox   selects   "list the proposals of a project"
--   PROJECT          text  "the project"
--   --status STATUS  text  "pending, merged or rejected (all)"
--   about    Oldest first.
--   example  annal decision inbox shop --status pending
SELECT id, slug, type, title, agent_name, status, decision_id, reason
FROM memory.decision_inbox
WHERE project_id = ?1 AND (?2 IS NULL OR status = ?2)
ORDER BY created_at, seq, id;

-- noun memory   "what agents remember, and contexts from it (memory)"

-- verb memory note   appends memory.noted   session proj_{PROJECT}
--      "write down what an agent is to remember"
--   PROJECT            text                                  "the project"
--   AGENT              text agent_name                       "who remembers"
--   CONTENT            body content                          "what; - reads standard input"
--   --type TYPE        text type = "learning" (core_context|learning|pattern|update)
--                      "core_context, learning, pattern or update"
--   --importance WORD  text importance                       "high, medium or low (medium)"
--   --tag TAG          list tags                            "cross-team shares it with all; repeat"
--   --session ID       text session_id                       "the session context it comes from"
--   says     {AGENT} remembers {memory_id}
--   about    core_context is what an agent always needs, like a charter.
--   example  annal memory note shop ada "Tests run with make test" --importance high \
--                --tag cross-team

-- verb memory ls   selects   "list what agents of a project remember"
--   PROJECT       text  "the project"
--   --agent NAME  text  "only of this agent"
--   --tag TAG     text  "only with this tag"
--   about    A tag matches as a whole.
--   example  annal memory ls shop --agent ada
SELECT id, agent_name, type, importance, tags, content, created_at
FROM memory.agent_memory
WHERE project_id = ?1
  AND (?2 IS NULL OR agent_name = ?2)
  AND (?3 IS NULL OR instr(tags, ',' || ?3 || ',') > 0)
ORDER BY created_at, seq, id;

-- verb memory compile   runs   "the context of an agent: what is in it, and why"
--   PROJECT       text           "the project"
--   --agent NAME  text required  "for whom"
--   --items N     number         "at most so many memories (20)"
--   --tokens N    number         "of at most so many tokens, 4 characters each (4000)"
--   --child       flag           "boundaries only, for the child run of a coordinator"
--   --all         flag           "also what is left out, and why"
--   about    First all active architectural and scope decisions, oldest first. Then memories:
--            the agent's core context, and learnings and patterns of high importance that are
--            its own or tagged cross-team; high scores 3, medium 2, low 1, other 0; higher
--            scores first, then newer ones. They are taken until there are --items of them,
--            or until the first that does not fit into --tokens (a line costs its label, its
--            content and 6 characters); a smaller one behind it is not taken. Last the
--            current session. With --json one object a line, with place, layer, why, label,
--            title, content, score and cost.
--   example  annal memory compile shop --agent ada
--            annal memory compile shop --agent ada --items 5 --tokens 500 --json

-- noun context   "what a project works on now (memory)"

-- verb context start   appends session_context.started   session proj_{PROJECT}
--      "a project works on something else from now on"
--   PROJECT         text                   "the project"
--   [SESSION]       text session_id        "its id (the next c1, c2, …)"
--   --focus TEXT    text focus_area        "what is worked on"
--   --issues TEXT   body active_issues     "what is open"
--   --summary TEXT  body summary           "how far it is"
--   --state JSON    json serialized_state  "state of programs"
--   says     {PROJECT} works on session {session_id}
--   about    Ends what is open. An id is used once in a project, also when it has ended.
--   example  annal context start shop s7 --focus "the cart"

-- verb context update   appends session_context.updated   session proj_{PROJECT}
--      "change what is written about the current session"
--   PROJECT         text                   "the project"
--   --focus TEXT    text focus_area        "what is worked on"
--   --issues TEXT   body active_issues     "what is open"
--   --summary TEXT  body summary           "how far it is"
--   --state JSON    json serialized_state  "state of programs"
--   says     the current session of {PROJECT} is changed
--   about    Refused when none is open.
--   example  annal context update shop --summary "the cart remembers"

-- verb context end   appends session_context.ended   session proj_{PROJECT}
--      "end the current session"
--   PROJECT   text  "the project"
--   says     {PROJECT} has no current session
--   about    It stays in the list.
--   example  annal context end shop

-- verb context current   selects   "the current session of a project"
--   PROJECT   text  "the project"
--   about    The newest that has not ended.
--   example  annal context current shop --json
SELECT session_id, focus_area, active_issues, summary, serialized_state, started_at, updated_at
FROM memory.session_contexts_current
WHERE project_id = ?1;

-- verb context ls   selects   "list the sessions of a project, newest first"
--   PROJECT   text  "the project"
--   about    Also those that have ended.
--   example  annal context ls shop
SELECT session_id, focus_area, started_at, ended_at
FROM memory.session_contexts
WHERE project_id = ?1
ORDER BY started_at DESC, seq DESC;

-- noun plan   "what a coordinator plans (memory)"

-- verb plan spec   appends outcome_spec.created   session wf_{WORKFLOW}
--      "write down what a workflow run is to reach"
--   WORKFLOW           text             "the workflow run"
--   TITLE              text title       "what is to come of it, in a line"
--   --content TEXT     body content     "all of it; - reads standard input"
--   --project PROJECT  text project_id  "for which project"
--   --id ID            text spec_id     "its id (the next o1, o2, …)"
--   says     outcome spec {spec_id} is a draft
--   about    It is a draft until it is confirmed (annal plan spec-status).
--   example  annal plan spec w1 "A cart that remembers"

-- verb plan spec-status   appends outcome_spec.status_changed   session wf_{WORKFLOW}
--      "confirm or withdraw an outcome spec"
--   WORKFLOW         text           "the workflow run"
--   SPEC             text spec_id   "the outcome spec"
--   STATUS           text to        "draft, confirmed or withdrawn"
--   --expect STATUS  text expected  "refused unless it is that now"
--   says     outcome spec {SPEC} is {STATUS}
--   about    Compare and set, as the table plan_edges allows.
--   example  annal plan spec-status w1 o1 confirmed

-- verb plan create   appends work_plan.created   session wf_{WORKFLOW}
--      "begin a plan of a workflow run"
--   WORKFLOW           text                     "the workflow run"
--   --spec ID          text spec_id             "the outcome spec that it is to reach"
--   --project PROJECT  text project_id          "for which project"
--   --coordinator RUN  text coordinator_run_id  "the run that coordinates"
--   --branch NAME      text integration_branch  "where the parts come together"
--   --id ID            text plan_id             "its id (the next p1, p2, …)"
--   says     plan {plan_id} is planned
--   about    A plan owns its subtasks: they go when it goes.
--   example  annal plan create w1 --spec o1

-- verb plan status   appends work_plan.status_changed   session wf_{WORKFLOW}
--      "change the status of a plan"
--   WORKFLOW         text                 "the workflow run"
--   PLAN             text plan_id         "the plan"
--   STATUS           text to              "the new status"
--   --expect STATUS  text expected        "refused unless it is that now"
--   --stage WORD     text assembly_stage  "how far the assembly is"
--   --override       flag override        "although the edges do not allow it"
--   --reason TEXT    text reason          "why; an override needs one"
--   says     plan {PLAN} is {STATUS}
--   about    Compare and set, as the table plan_edges allows: of those who begin to assemble
--            (--expect awaiting_assembly) one wins.
--   example  annal plan status w1 p1 assembling --expect awaiting_assembly

-- verb plan delete   appends work_plan.deleted   session wf_{WORKFLOW}
--      "delete a plan with its subtasks"
--   WORKFLOW  text          "the workflow run"
--   PLAN      text plan_id  "the plan"
--   says     plan {PLAN} is deleted
--   about    The journal keeps that they were there.
--   example  annal plan delete w1 p1

-- verb plan add   appends subtask.created   session wf_{WORKFLOW}   "add a subtask to a plan"
--   WORKFLOW       text                 "the workflow run"
--   PLAN           text plan_id         "the plan"
--   TITLE          text title           "what is to be done, in a line"
--   --scope TEXT   body scope           "how far it goes"
--   --agent NAME   text assigned_agent  "who is to do it"
--   --model MODEL  text model_id        "with which model"
--   --id ID        text subtask_id      "its id (the next s1, s2, …)"
--   says     subtask {subtask_id} is pending
--   about    It is pending.
--   example  annal plan add w1 p1 "the cart's tables" --agent ada

-- verb plan subtask   appends subtask.status_changed   session wf_{WORKFLOW}
--      "change the status of a subtask"
--   WORKFLOW         text               "the workflow run"
--   SUBTASK          text subtask_id    "the subtask"
--   STATUS           text to            "the new status"
--   --expect STATUS  text expected      "refused unless it is that now"
--   --run RUN        text child_run_id  "the run that does it"
--   --override       flag override      "although the edges do not allow it"
--   --reason TEXT    text reason        "why; an override needs one"
--   says     subtask {SUBTASK} is {STATUS}
--   about    Compare and set, as the table plan_edges allows.
--   example  annal plan subtask w1 s1 dispatched --run r2

-- verb plan remove   appends subtask.deleted   session wf_{WORKFLOW}
--      "delete a subtask on which no other one depends"
--   WORKFLOW  text             "the workflow run"
--   SUBTASK   text subtask_id  "the subtask"
--   says     subtask {SUBTASK} is deleted
--   about    Else it is refused.
--   example  annal plan remove w1 s1

-- verb plan depend   appends subtask_dependency.added   session wf_{WORKFLOW}
--      "a subtask waits for another one of its plan"
--   WORKFLOW  text                "the workflow run"
--   SUBTASK   text subtask_id     "the subtask"
--   ON        text depends_on_id  "the one that comes first"
--   says     subtask {SUBTASK} waits for {ON}
--   about    Refused when it would wait for itself, through others or directly.
--   example  annal plan depend w1 s2 s1

-- verb plan undepend   appends subtask_dependency.removed   session wf_{WORKFLOW}
--      "a subtask does not wait for another one any more"
--   WORKFLOW  text                "the workflow run"
--   SUBTASK   text subtask_id     "the subtask"
--   ON        text depends_on_id  "the one that comes first"
--   says     subtask {SUBTASK} does not wait for {ON}
--   about    Refused when it did not.
--   example  annal plan undepend w1 s2 s1

-- verb plan ls   selects   "list the subtasks of a workflow run's plans"
--   WORKFLOW  text  "the workflow run"
--   about    With what each waits for.
--   example  annal plan ls w1
SELECT p.id AS plan, p.status AS plan_status, s.id, s.title, s.status, s.assigned_agent,
       s.child_run_id,
       (SELECT group_concat(depends_on_id) FROM memory.subtask_dependencies d
        WHERE d.workflow_run_id = s.workflow_run_id AND d.subtask_id = s.id) AS waits_for
FROM memory.work_plans p
LEFT JOIN memory.subtasks s ON s.workflow_run_id = p.workflow_run_id AND s.work_plan_id = p.id
WHERE p.workflow_run_id = ?1
ORDER BY p.created_at, p.id, s.created_at, s.id;

-- verb plan ready   selects   "list pending subtasks that wait for nothing any more"
--   WORKFLOW  text  "the workflow run"
--   about    What can be dispatched now.
--   example  annal plan ready w1 --json
SELECT work_plan_id AS plan, id, title, assigned_agent
FROM memory.subtasks_ready
WHERE workflow_run_id = ?1
ORDER BY work_plan_id, id;

-- noun steering   "guidance into workflow runs (memory)"

-- verb steering issue   appends steering.issued   session wf_{WORKFLOW}
--      "guide a workflow run that is under way"
--   WORKFLOW      text              "the workflow run"
--   KIND          text kind         "redirect, pause, stop or amend"
--   TEXT          body instruction  "what to do; - reads standard input"
--   --target RUN  text target       "the run it is for (all)"
--   --by NAME     text created_by   "who says so"
--   says     directive {id} is pending
--   about    A directive is pending, then queued, relayed, applied; never back.
--   example  annal steering issue w1 amend "leave the tests alone" --by bob

-- verb steering queue   appends steering.queued   session wf_{WORKFLOW}
--      "a directive waits for its run"
--   WORKFLOW  text     "the workflow run"
--   ID        text id  "the directive"
--   says     directive {ID} is queued
--   about    Refused when it has come further.
--   example  annal steering queue w1 g1

-- verb steering relay   appends steering.relayed   session wf_{WORKFLOW}
--      "a directive was handed on to its run"
--   WORKFLOW  text     "the workflow run"
--   ID        text id  "the directive"
--   says     directive {ID} is relayed
--   about    Refused when it has come further.
--   example  annal steering relay w1 g1

-- verb steering apply   appends steering.applied   session wf_{WORKFLOW}
--      "a directive has been followed"
--   WORKFLOW  text     "the workflow run"
--   ID        text id  "the directive"
--   says     directive {ID} is applied
--   about    Refused the second time.
--   example  annal steering apply w1 g1

-- verb steering ls   selects   "list the directives of a workflow run"
--   WORKFLOW  text  "the workflow run"
--   about    Oldest first.
--   example  annal steering ls w1
SELECT id, kind, target, instruction, created_by, status, created_at
FROM memory.steering_directives
WHERE workflow_run_id = ?1
ORDER BY created_at, id;
