-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun decision   "decisions of a project, and proposals (memory)"

-- verb decision propose   appends decision.proposed   session proj_{PROJECT}
--      "put a proposal into the inbox of a project"
--   PROJECT           text                      "the project"
--   TITLE             text title                "the proposal, in a line"
--   --agent WHO       text agent_name required  "agent that proposes it"
--   --type TYPE       text type = "learning"    "architectural, scope, pattern, … (learning)"
--   --content TEXT    body content required     "the full text; - reads standard input"
--   --rationale TEXT  body rationale            "rationale"
--   --slug SLUG       text requested_slug       "short name; SLUG--WHO if taken"
--   --only-slug SLUG  text slug                 "short name; refused if taken"
--   --id ENTRY        text entry_id             "id (the next i1, i2, …)"
--   says     proposal {entry_id} ({slug}) is pending
--   about    Proposals wait in the inbox until they are accepted as decisions or rejected,
--            and stay there permanently. A slug is the unique short name of a proposal in
--            the project; without one it is derived from the title. If the same agent
--            proposes the same slug again, the pending proposal is changed; the proposal of
--            another agent receives the slug SLUG--WHO, then SLUG--WHO--2.
--   example  annal decision propose shop "Use SQLite" --agent ada --type architectural \
--                --content "One file a tenant." --rationale "No server to run."

-- verb decision revise   appends decision.proposal_updated   session proj_{PROJECT}
--      "change a proposal that is pending"
--   PROJECT           text                      "the project"
--   ENTRY             text entry_id             "the proposal"
--   --agent NAME      text agent_name required  "agent that proposed it"
--   --type TYPE       text type                 "new type"
--   --title TEXT      text title                "new title"
--   --content TEXT    body content              "new content"
--   --rationale TEXT  body rationale            "new rationale"
--   says     changed proposal {ENTRY}
--   about    Only the agent that proposed it may change it.
--   example  annal decision revise shop i1 --agent ada --title "Use SQLite 3.40"

-- verb decision promote   appends decision.promoted   session proj_{PROJECT}
--      "accept a proposal as a decision"
--   PROJECT    text              "the project"
--   ENTRY      text entry_id     "the proposal"
--   --by NAME  text by           "name of the person or role that accepts it"
--   --id ID    text decision_id  "id of the decision (the next d1, d2, …)"
--   says     accepted proposal {ENTRY} as decision {decision_id}
--   about    One event creates the decision and marks the proposal as merged. A second time
--            is refused. The scribe may merge only learnings, patterns and updates.
--   example  annal decision promote shop i1 --by bob

-- verb decision promote-all   appends decision.batch_promoted   each
--      "accept all pending proposals that WHO may merge"
--   PROJECT   text                                "the project"
--   --by WHO  text (coordinator|scribe) required  "role: coordinator or scribe"
--   none     no pending proposal may be merged by the {by}
--   about    In one event. The coordinator merges the types architectural and scope, the
--            scribe learning, pattern and update, as the table promotion_rules says. If no
--            proposal is pending, no event is appended.
--   example  annal decision promote-all shop --by scribe
SELECT 'proj_' || ?1 AS session, json_object('by', ?2) AS data,
       'merged ' || pending || ' proposals' AS says
FROM (SELECT count(*) AS pending
      FROM memory.decision_inbox i
      JOIN memory.promotion_rules r ON r.type = i.type
      WHERE i.project_id = ?1 AND r.by = ?2 AND i.status = 'pending')
WHERE pending > 0;

-- verb decision reject   appends decision.rejected   session proj_{PROJECT}
--      "reject a proposal; it stays in the inbox"
--   PROJECT        text           "the project"
--   ENTRY          text entry_id  "the proposal"
--   --reason TEXT  text reason    "reason"
--   says     rejected proposal {ENTRY}
--   about    Rejected proposals explain why something did not become a rule.
--   example  annal decision reject shop i2 --reason "we tried that"

-- verb decision create   appends decision.created   session proj_{PROJECT}
--      "create a decision without a proposal"
--   PROJECT           text                   "the project"
--   TITLE             text title             "the decision, in a line"
--   --type TYPE       text type required     "architectural, scope, …"
--   --content TEXT    body content required  "the full text; - reads standard input"
--   --rationale TEXT  body rationale         "rationale"
--   --agent NAME      text agent_name        "agent that decided"
--   --id ID           text decision_id       "id (the next d1, d2, …)"
--   says     created decision {decision_id}
--   about    Active architectural and scope decisions are the first part of every context.
--   example  annal decision create shop "No cookies" --type scope --content "None."

-- verb decision supersede   appends decision.superseded   session proj_{PROJECT}
--      "replace a decision by another one"
--   PROJECT   text                   "the project"
--   DECISION  text decision_id       "decision to replace"
--   BY        text superseded_by_id  "decision that replaces it"
--   says     decision {BY} supersedes {DECISION}
--   about    The old decision stays, so that it can be explained.
--   example  annal decision supersede shop d1 d4

-- verb decision ls   selects   "list the decisions of a project, oldest first"
--   PROJECT          text  "the project"
--   --status STATUS  text  "active or superseded (all)"
--   about    Includes superseded decisions.
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

-- noun memory   "memory of agents, and contexts from it (memory)"

-- verb memory note   appends memory.noted   session proj_{PROJECT}
--      "record something for an agent to remember"
--   PROJECT            text                                  "the project"
--   AGENT              text agent_name                       "agent that remembers it"
--   CONTENT            body content                          "the text; - reads standard input"
--   --type TYPE        text type = "learning" (core_context|learning|pattern|update)
--                      "core_context, learning, pattern or update"
--   --importance WORD  text importance                       "high, medium or low (medium)"
--   --tag TAG          list tags                            "cross-team shares it with all agents; repeat"
--   --session ID       text session_id                       "session context of its origin"
--   says     {AGENT} remembers {memory_id}
--   about    core_context is what an agent always needs, like a charter.
--   example  annal memory note shop ada "Tests run with make test" --importance high \
--                --tag cross-team

-- verb memory ls   selects   "list what agents of a project remember"
--   PROJECT       text  "the project"
--   --agent NAME  text  "only memories of this agent"
--   --tag TAG     text  "only memories with this tag"
--   about    A tag must match completely.
--   example  annal memory ls shop --agent ada
SELECT id, agent_name, type, importance, tags, content, created_at
FROM memory.agent_memory
WHERE project_id = ?1
  AND (?2 IS NULL OR agent_name = ?2)
  AND (?3 IS NULL OR instr(tags, ',' || ?3 || ',') > 0)
ORDER BY created_at, seq, id;

-- verb memory compile   selects   lines   "compile the context of an agent, with reasons"
--   PROJECT       text           "the project"
--   --agent NAME  text required  "name of the agent"
--   --items N     number = 20 (1..4294967295)
--                 "maximum number of memories (20)"
--   --tokens N    number = 4000 (1..4294967295)
--                 "maximum tokens of memories, 4 characters each (4000)"
--   --child       flag           "boundaries only, for the child run of a coordinator"
--   --all         flag           "also show what is omitted, and why"
--   about    First all active architectural and scope decisions, oldest first. Then
--            memories: the agent's core context, and learnings and patterns of high
--            importance that are its own or tagged cross-team. High scores 3, medium 2, low
--            1, other 0; higher scores are first, then newer memories. They are added until
--            there are --items of them, or until the first that does not fit into --tokens
--            (a line costs its label, its content and 6 characters); smaller memories after
--            it are omitted, too. The current session is last. With --json it prints one
--            object a line, with place, layer, why, label, title, content, score and cost.
--   example  annal memory compile shop --agent ada
--            annal memory compile shop --agent ada --items 5 --tokens 500 --json

-- All active boundaries come first, because they bind all agents; the current session is last,
-- because it overrides nothing. A less important memory never replaces a more important one.
WITH candidates AS (
    SELECT m.*, CASE WHEN type = 'core_context' THEN 'core'
                     WHEN agent_name = ?2 THEN type
                     ELSE type || ' from ' || agent_name END AS label
    FROM memory.memory_scored m
    WHERE ?5 IS NULL AND project_id = ?1
      AND (agent_name = ?2 OR (cross_team AND type <> 'core_context'))
),
placed AS (
    SELECT *, length(label) + length(content) + 6 AS cost, row_number() OVER w AS n,
           sum(length(label) + length(content) + 6) OVER w AS used
    FROM candidates
    WINDOW w AS (ORDER BY score DESC, created_at DESC, seq DESC, id ROWS UNBOUNDED PRECEDING)
),
memories AS (
    SELECT *, n <= ?3 AND used <= 4 * ?4 AS taken FROM placed
),
items AS (
    SELECT 1 AS layer, row_number() OVER (ORDER BY created_at, seq, id) AS n, id, type AS label,
           title, content, rationale, NULL AS score, NULL AS cost, created_at, 1 AS taken,
           'active ' || type || ' decision: binds everybody' AS why
    FROM memory.memory_boundaries
    WHERE project_id = ?1
    UNION ALL
    SELECT 2, n, id, label, NULL, content, NULL, score, cost, created_at, taken,
           CASE WHEN type = 'core_context' THEN 'core context of ' || agent_name
                WHEN agent_name = ?2 THEN 'its own ' || type
                ELSE type || ' of ' || agent_name || ', tagged cross-team' END
           || ', importance ' || importance || ': score ' || score
           || CASE WHEN taken THEN ''
                   WHEN n > ?3 THEN '; left out: more than ' || ?3 || ' items'
                   WHEN used - cost <= 4 * ?4
                   THEN '; left out: costs ' || cost || ' characters, and '
                        || (4 * ?4 - used + cost) || ' are left'
                   ELSE '; left out: one before it did not fit' END
    FROM memories
    UNION ALL
    SELECT 3, 1, session_id, 'session', focus_area,
           trim(COALESCE('Issues: ' || active_issues || char(10), '') || COALESCE(summary, ''),
                char(10)),
           NULL, NULL, NULL, started_at, 1, 'the current session: last, for it overrides nothing'
    FROM memory.session_contexts_current
    WHERE ?5 IS NULL AND project_id = ?1
)
SELECT row_number() OVER (ORDER BY layer, n) AS place,
       CASE layer WHEN 1 THEN 'boundary' WHEN 2 THEN 'memory' ELSE 'session' END AS layer,
       id, label, title, content, rationale, score, cost, created_at, taken AS included, why,
       CASE WHEN lag(layer) OVER (ORDER BY layer, n) IS layer THEN ''
            ELSE iif(row_number() OVER (ORDER BY layer, n) = 1, '', char(10)) || '## '
                 || CASE layer WHEN 1 THEN 'Boundaries' WHEN 2 THEN 'Memory'
                               ELSE 'Current session' END || char(10) END
       || iif(taken, '- ', 'x ') || label || ': ' || replace(replace(replace(COALESCE(title, ''), char(13), ' '), char(10), ' '), char(9), ' ')
       || iif(title <> '' AND content <> '', ' - ', '') || replace(replace(replace(COALESCE(content, ''), char(13), ' '), char(10), ' '), char(9), ' ')
       || COALESCE(char(10) || '    rationale: ' || replace(replace(replace(rationale, char(13), ' '), char(10), ' '), char(9), ' '), '')
       || char(10) || '    why: ' || replace(replace(replace(why, char(13), ' '), char(10), ' '), char(9), ' ') AS line
FROM items
WHERE taken OR ?6
ORDER BY layer, n;

-- noun context   "the current work of a project (memory)"

-- verb context start   appends session_context.started   session proj_{PROJECT}
--      "start a session context of a project"
--   PROJECT         text                   "the project"
--   [SESSION]       text session_id        "session id (the next c1, c2, …)"
--   --focus TEXT    text focus_area        "current work"
--   --issues TEXT   body active_issues     "open issues"
--   --summary TEXT  body summary           "progress so far"
--   --state JSON    json serialized_state  "state of programs"
--   says     {PROJECT} works on session {session_id}
--   about    Ends the open session. An id can be used only once in a project.
--   example  annal context start shop s7 --focus "the cart"

-- verb context update   appends session_context.updated   session proj_{PROJECT}
--      "change the description of the current session"
--   PROJECT         text                   "the project"
--   --focus TEXT    text focus_area        "current work"
--   --issues TEXT   body active_issues     "open issues"
--   --summary TEXT  body summary           "progress so far"
--   --state JSON    json serialized_state  "state of programs"
--   says     changed the current session of {PROJECT}
--   about    Refused if no session is open.
--   example  annal context update shop --summary "the cart remembers"

-- verb context end   appends session_context.ended   session proj_{PROJECT}
--      "end the current session"
--   PROJECT   text  "the project"
--   says     {PROJECT} has no current session
--   about    It stays in the list.
--   example  annal context end shop

-- verb context current   selects   "show the current session of a project"
--   PROJECT   text  "the project"
--   about    The newest session that has not ended.
--   example  annal context current shop --json
SELECT session_id, focus_area, active_issues, summary, serialized_state, started_at, updated_at
FROM memory.session_contexts_current
WHERE project_id = ?1;

-- verb context ls   selects   "list the sessions of a project, newest first"
--   PROJECT   text  "the project"
--   about    Includes sessions that have ended.
--   example  annal context ls shop
SELECT session_id, focus_area, started_at, ended_at
FROM memory.session_contexts
WHERE project_id = ?1
ORDER BY started_at DESC, seq DESC;

-- noun plan   "plans of a coordinator (memory)"

-- verb plan spec   appends outcome_spec.created   session wf_{WORKFLOW}
--      "define the outcome of a workflow run"
--   WORKFLOW           text             "the workflow run"
--   TITLE              text title       "the outcome, in a line"
--   --content TEXT     body content     "the full text; - reads standard input"
--   --project PROJECT  text project_id  "project of the outcome"
--   --id ID            text spec_id     "id (the next o1, o2, …)"
--   says     outcome spec {spec_id} is a draft
--   about    It is a draft until it is confirmed (annal plan spec-status).
--   example  annal plan spec w1 "A cart that remembers"

-- verb plan spec-status   appends outcome_spec.status_changed   session wf_{WORKFLOW}
--      "confirm or withdraw an outcome spec"
--   WORKFLOW         text           "the workflow run"
--   SPEC             text spec_id   "the outcome spec"
--   STATUS           text to        "draft, confirmed or withdrawn"
--   --expect STATUS  text expected  "status that it must have now"
--   says     outcome spec {SPEC} is {STATUS}
--   about    Compare and set, as the table plan_edges allows.
--   example  annal plan spec-status w1 o1 confirmed

-- verb plan create   appends work_plan.created   session wf_{WORKFLOW}
--      "create a plan of a workflow run"
--   WORKFLOW           text                     "the workflow run"
--   --spec ID          text spec_id             "outcome spec of the plan"
--   --project PROJECT  text project_id          "project of the plan"
--   --coordinator RUN  text coordinator_run_id  "run that coordinates"
--   --branch NAME      text integration_branch  "branch into which the parts are merged"
--   --id ID            text plan_id             "id (the next p1, p2, …)"
--   says     created plan {plan_id}
--   about    A plan owns its subtasks: they are deleted with it.
--   example  annal plan create w1 --spec o1

-- verb plan status   appends work_plan.status_changed   session wf_{WORKFLOW}
--      "change the status of a plan"
--   WORKFLOW         text                 "the workflow run"
--   PLAN             text plan_id         "the plan"
--   STATUS           text to              "the new status"
--   --expect STATUS  text expected        "status that it must have now"
--   --stage WORD     text assembly_stage  "stage of the assembly"
--   --override       flag override        "allow a change that plan_edges does not allow"
--   --reason TEXT    text reason          "reason; required with --override"
--   says     plan {PLAN} is {STATUS}
--   about    Compare and set, as the table plan_edges allows: if several callers begin to
--            assemble (--expect awaiting_assembly), one succeeds.
--   example  annal plan status w1 p1 assembling --expect awaiting_assembly

-- verb plan delete   appends work_plan.deleted   session wf_{WORKFLOW}
--      "delete a plan with its subtasks"
--   WORKFLOW  text          "the workflow run"
--   PLAN      text plan_id  "the plan"
--   says     deleted plan {PLAN}
--   about    The journal still shows the plan.
--   example  annal plan delete w1 p1

-- verb plan add   appends subtask.created   session wf_{WORKFLOW}   "add a subtask to a plan"
--   WORKFLOW       text                 "the workflow run"
--   PLAN           text plan_id         "the plan"
--   TITLE          text title           "subtask to be done, in a line"
--   --scope TEXT   body scope           "scope of the subtask"
--   --agent NAME   text assigned_agent  "agent that is to do it"
--   --model MODEL  text model_id        "model of the agent"
--   --id ID        text subtask_id      "id (the next s1, s2, …)"
--   says     subtask {subtask_id} is pending
--   about    Its first status is pending.
--   example  annal plan add w1 p1 "the cart's tables" --agent ada

-- verb plan subtask   appends subtask.status_changed   session wf_{WORKFLOW}
--      "change the status of a subtask"
--   WORKFLOW         text               "the workflow run"
--   SUBTASK          text subtask_id    "the subtask"
--   STATUS           text to            "the new status"
--   --expect STATUS  text expected      "status that it must have now"
--   --run RUN        text child_run_id  "run that does it"
--   --override       flag override      "allow a change that plan_edges does not allow"
--   --reason TEXT    text reason        "reason; required with --override"
--   says     subtask {SUBTASK} is {STATUS}
--   about    Compare and set, as the table plan_edges allows.
--   example  annal plan subtask w1 s1 dispatched --run r2

-- verb plan remove   appends subtask.deleted   session wf_{WORKFLOW}
--      "delete a subtask on which no other subtask depends"
--   WORKFLOW  text             "the workflow run"
--   SUBTASK   text subtask_id  "the subtask"
--   says     deleted subtask {SUBTASK}
--   about    Refused if another subtask depends on it.
--   example  annal plan remove w1 s1

-- verb plan depend   appends subtask_dependency.added   session wf_{WORKFLOW}
--      "let a subtask wait for another subtask of its plan"
--   WORKFLOW  text                "the workflow run"
--   SUBTASK   text subtask_id     "the subtask"
--   ON        text depends_on_id  "subtask to wait for"
--   says     subtask {SUBTASK} waits for {ON}
--   about    Refused if it would wait for itself, directly or through others.
--   example  annal plan depend w1 s2 s1

-- verb plan undepend   appends subtask_dependency.removed   session wf_{WORKFLOW}
--      "end the wait of a subtask for another subtask"
--   WORKFLOW  text                "the workflow run"
--   SUBTASK   text subtask_id     "the subtask"
--   ON        text depends_on_id  "subtask to wait for"
--   says     subtask {SUBTASK} does not wait for {ON}
--   about    Refused if it did not wait.
--   example  annal plan undepend w1 s2 s1

-- verb plan ls   selects   "list the subtasks of a workflow run's plans"
--   WORKFLOW  text  "the workflow run"
--   about    Shows for each the subtasks that it waits for.
--   example  annal plan ls w1
SELECT p.id AS plan, p.status AS plan_status, s.id, s.title, s.status, s.assigned_agent,
       s.child_run_id,
       (SELECT group_concat(depends_on_id) FROM memory.subtask_dependencies d
        WHERE d.workflow_run_id = s.workflow_run_id AND d.subtask_id = s.id) AS waits_for
FROM memory.work_plans p
LEFT JOIN memory.subtasks s ON s.workflow_run_id = p.workflow_run_id AND s.work_plan_id = p.id
WHERE p.workflow_run_id = ?1
ORDER BY p.created_at, p.id, s.created_at, s.id;

-- verb plan ready   selects   "list pending subtasks that no longer wait for others"
--   WORKFLOW  text  "the workflow run"
--   about    These subtasks can be dispatched now.
--   example  annal plan ready w1 --json
SELECT work_plan_id AS plan, id, title, assigned_agent
FROM memory.subtasks_ready
WHERE workflow_run_id = ?1
ORDER BY work_plan_id, id;

-- noun steering   "directives to workflow runs (memory)"

-- verb steering issue   appends steering.issued   session wf_{WORKFLOW}
--      "give a directive to a workflow run that is in progress"
--   WORKFLOW      text              "the workflow run"
--   KIND          text kind         "redirect, pause, stop or amend"
--   TEXT          body instruction  "the directive; - reads standard input"
--   --target RUN  text target       "run that must follow it (all)"
--   --by NAME     text created_by   "author of the directive"
--   says     directive {id} is pending
--   about    A directive is pending, then queued, relayed, applied, and never returns to an
--            earlier status.
--   example  annal steering issue w1 amend "leave the tests alone" --by bob

-- verb steering queue   appends steering.queued   session wf_{WORKFLOW}
--      "mark a directive as queued for its run"
--   WORKFLOW  text     "the workflow run"
--   ID        text id  "the directive"
--   says     directive {ID} is queued
--   about    Refused if its status is later than that.
--   example  annal steering queue w1 g1

-- verb steering relay   appends steering.relayed   session wf_{WORKFLOW}
--      "mark a directive as relayed to its run"
--   WORKFLOW  text     "the workflow run"
--   ID        text id  "the directive"
--   says     directive {ID} is relayed
--   about    Refused if its status is later than that.
--   example  annal steering relay w1 g1

-- verb steering apply   appends steering.applied   session wf_{WORKFLOW}
--      "mark a directive as applied"
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
