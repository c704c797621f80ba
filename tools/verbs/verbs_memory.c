/*
 * Pack memory on the command line: decisions and proposals for them, what agents remember, what a
 * project works on, plans, steering. What an event must look like to be taken is said by
 * index/packs/memory/memory.sql; here are only its words.
 */
#include "tools/cli/verbs.h"
#include "tools/verbs/agentweaver.h"

#define PROJECT OPERAND("PROJECT", FIELD_TEXT, NULL, "the project")

static const struct field project_only[] = {PROJECT, FIELDS_END};

/* ---- annal decision ---- */

#define ENTRY OPERAND("ENTRY", FIELD_TEXT, "entry_id", "the proposal")

static const struct field propose_fields[] = {
    PROJECT,
    OPERAND("TITLE", FIELD_TEXT, "title", "what it says, in a line"),
    OPTION_MUST("agent", "WHO", FIELD_TEXT, "agent_name", "who proposes it"),
    OPTION_WITH("type", "TYPE", FIELD_TEXT, "type", "architectural, scope, pattern, … (learning)",
                .preset = "\"learning\""),
    OPTION_MUST("content", "TEXT", FIELD_BODY, "content", "all of it; - reads standard input"),
    OPTION("rationale", "TEXT", FIELD_BODY, "rationale", "why"),
    OPTION("slug", "SLUG", FIELD_TEXT, "requested_slug",
           "its short name; another's gives SLUG--WHO"),
    OPTION("only-slug", "SLUG", FIELD_TEXT, "slug", "its short name; another's is refused"),
    OPTION("id", "ENTRY", FIELD_TEXT, "entry_id", "its id (the next i1, i2, …)"),
    FIELDS_END};
static const struct field revise_fields[] = {
    PROJECT,
    ENTRY,
    OPTION_MUST("agent", "NAME", FIELD_TEXT, "agent_name", "who made it"),
    OPTION("type", "TYPE", FIELD_TEXT, "type", "another type"),
    OPTION("title", "TEXT", FIELD_TEXT, "title", "another title"),
    OPTION("content", "TEXT", FIELD_BODY, "content", "another content"),
    OPTION("rationale", "TEXT", FIELD_BODY, "rationale", "another rationale"),
    FIELDS_END};
static const struct field promote_fields[] = {
    PROJECT, ENTRY, OPTION("by", "NAME", FIELD_TEXT, "by", "who accepts it"),
    OPTION("id", "ID", FIELD_TEXT, "decision_id", "of the decision (the next d1, d2, …)"),
    FIELDS_END};
static const struct field promote_all_fields[] = {
    PROJECT,
    OPTION_WITH("by", "WHO", FIELD_TEXT, "by", "coordinator or scribe", .required = true,
                .choices = "coordinator|scribe"),
    FIELDS_END};
static const struct field reject_fields[] = {
    PROJECT, ENTRY, OPTION("reason", "TEXT", FIELD_TEXT, "reason", "why not"), FIELDS_END};
static const struct field decide_fields[] = {
    PROJECT,
    OPERAND("TITLE", FIELD_TEXT, "title", "what it says, in a line"),
    OPTION_MUST("type", "TYPE", FIELD_TEXT, "type", "architectural, scope, …"),
    OPTION_MUST("content", "TEXT", FIELD_BODY, "content", "all of it; - reads standard input"),
    OPTION("rationale", "TEXT", FIELD_BODY, "rationale", "why"),
    OPTION("agent", "NAME", FIELD_TEXT, "agent_name", "who decided"),
    OPTION("id", "ID", FIELD_TEXT, "decision_id", "its id (the next d1, d2, …)"),
    FIELDS_END};
static const struct field supersede_fields[] = {
    PROJECT, OPERAND("DECISION", FIELD_TEXT, "decision_id", "that holds no more"),
    OPERAND("BY", FIELD_TEXT, "superseded_by_id", "that takes its place"), FIELDS_END};
static const struct field decision_ls_fields[] = {
    PROJECT, OPTION("status", "STATUS", FIELD_TEXT, NULL, "active or superseded (all)"),
    FIELDS_END};
static const struct field inbox_fields[] = {
    PROJECT, OPTION("status", "STATUS", FIELD_TEXT, NULL, "pending, merged or rejected (all)"),
    FIELDS_END};

static const struct command decision_verbs[] = {
    {.name = "propose",
     .summary = "put a proposal into the inbox of a project",
     .about = "An inbox stands between what an agent thinks and what holds for all. Proposals\n"
              "stay for ever, merged or rejected. A slug names one proposal in the project,\n"
              "whoever made it; without one it is made from the title. The same agent and slug\n"
              "once more change the proposal while it is pending; the proposal of another agent\n"
              "gets the slug SLUG--WHO, then SLUG--WHO--2.",
     .examples =
         "  annal decision propose shop \"Use SQLite\" --agent ada --type architectural \\\n"
         "      --content \"One file a tenant.\" --rationale \"No server to run.\"\n",
     .fields = propose_fields,
     .type = "decision.proposed",
     .session = "proj_{PROJECT}",
     .said = "proposal {entry_id} ({slug}) is pending",
     .run = verb_append},
    {.name = "revise",
     .summary = "change a proposal that is pending",
     .about = "Only the agent that made it may.",
     .examples = "  annal decision revise shop i1 --agent ada --title \"Use SQLite 3.40\"\n",
     .fields = revise_fields,
     .type = "decision.proposal_updated",
     .session = "proj_{PROJECT}",
     .said = "proposal {ENTRY} is changed",
     .run = verb_append},
    {.name = "promote",
     .summary = "accept a proposal: it becomes a decision",
     .about = "The decision is made and the proposal merged in one event, so neither is ever\n"
              "there without the other. A second time is refused. The scribe may merge\n"
              "learnings, patterns and updates only.",
     .examples = "  annal decision promote shop i1 --by bob\n",
     .fields = promote_fields,
     .type = "decision.promoted",
     .session = "proj_{PROJECT}",
     .said = "proposal {ENTRY} is decision {decision_id}",
     .run = verb_append},
    {.name = "promote-all",
     .summary = "accept all that is pending and WHO may merge",
     .about = "In one event. The coordinator merges architectural and scope, the scribe\n"
              "learning, pattern and update; the table promotion_rules says so. When nothing\n"
              "is pending nothing is appended.",
     .examples = "  annal decision promote-all shop --by scribe\n",
     .fields = promote_all_fields,
     .type = "decision.batch_promoted",
     .session = "proj_{PROJECT}",
     .said = "merged: {entries}",
     .run = promote_all},
    {.name = "reject",
     .summary = "turn a proposal down; it stays in the inbox",
     .about = "Rejected ones tell why something did not become a rule.",
     .examples = "  annal decision reject shop i2 --reason \"we tried that\"\n",
     .fields = reject_fields,
     .type = "decision.rejected",
     .session = "proj_{PROJECT}",
     .said = "proposal {ENTRY} is rejected",
     .run = verb_append},
    {.name = "create",
     .summary = "make a decision without a proposal",
     .about = "Active architectural and scope decisions stand first in every context.",
     .examples = "  annal decision create shop \"No cookies\" --type scope --content \"None.\"\n",
     .fields = decide_fields,
     .type = "decision.created",
     .session = "proj_{PROJECT}",
     .said = "decision {decision_id} holds",
     .run = verb_append},
    {.name = "supersede",
     .summary = "another decision takes the place of one",
     .about = "The old one stays, so that it can be explained.",
     .examples = "  annal decision supersede shop d1 d4\n",
     .fields = supersede_fields,
     .type = "decision.superseded",
     .session = "proj_{PROJECT}",
     .said = "decision {DECISION} is superseded by {BY}",
     .run = verb_append},
    {.name = "ls",
     .summary = "list the decisions of a project, oldest first",
     .about = "Superseded ones too.",
     .examples = "  annal decision ls shop --status active\n",
     .fields = decision_ls_fields,
     .sql = "SELECT id, type, title, status, superseded_by_id, agent_name, created_at FROM "
            "memory.decisions WHERE project_id = ?1 AND (?2 IS NULL OR status = ?2) ORDER BY "
            "created_at, seq, id",
     .run = verb_select},
    {.name = "inbox",
     .summary = "list the proposals of a project",
     .about = "Oldest first.",
     .examples = "  annal decision inbox shop --status pending\n",
     .fields = inbox_fields,
     .sql = "SELECT id, slug, type, title, agent_name, status, decision_id, reason FROM "
            "memory.decision_inbox WHERE project_id = ?1 AND (?2 IS NULL OR status = ?2) ORDER BY "
            "created_at, seq, id",
     .run = verb_select},
    {0}};

const struct noun noun_decision = {.name = "decision",
                                   .summary = "what holds for a project, and proposals (memory)",
                                   .pack = "memory",
                                   .verbs = decision_verbs};

/* ---- annal memory ---- */

static const struct field note_fields[] = {
    PROJECT,
    OPERAND("AGENT", FIELD_TEXT, "agent_name", "who remembers"),
    OPERAND("CONTENT", FIELD_BODY, "content", "what; - reads standard input"),
    OPTION_WITH("type", "TYPE", FIELD_TEXT, "type", "core_context, learning, pattern or update",
                .preset = "\"learning\"", .choices = "core_context|learning|pattern|update"),
    OPTION("importance", "WORD", FIELD_TEXT, "importance", "high, medium or low (medium)"),
    OPTION("tag", "TAG", FIELD_LIST, "tags", "cross-team shares it with all; repeat"),
    OPTION("session", "ID", FIELD_TEXT, "session_id", "the session context it comes from"),
    FIELDS_END};
static const struct field memory_ls_fields[] = {
    PROJECT, OPTION("agent", "NAME", FIELD_TEXT, NULL, "only of this agent"),
    OPTION("tag", "TAG", FIELD_TEXT, NULL, "only with this tag"), FIELDS_END};
static const struct field compile_fields[] = {
    PROJECT,
    OPTION_MUST("agent", "NAME", FIELD_TEXT, NULL, "for whom"),
    OPTION("items", "N", FIELD_NUMBER, NULL, "at most so many memories (20)"),
    OPTION("tokens", "N", FIELD_NUMBER, NULL,
           "of at most so many tokens, 4 characters each (4000)"),
    FLAG("child", NULL, "boundaries only, for the child run of a coordinator"),
    FLAG("all", NULL, "also what is left out, and why"),
    FIELDS_END};

static const struct command memory_verbs[] = {
    {.name = "note",
     .summary = "write down what an agent is to remember",
     .about = "core_context is what an agent always needs, like a charter.",
     .examples = "  annal memory note shop ada \"Tests run with make test\" --importance high \\\n"
                 "      --tag cross-team\n",
     .fields = note_fields,
     .type = "memory.noted",
     .session = "proj_{PROJECT}",
     .said = "{AGENT} remembers {memory_id}",
     .run = verb_append},
    {.name = "ls",
     .summary = "list what agents of a project remember",
     .about = "A tag matches as a whole.",
     .examples = "  annal memory ls shop --agent ada\n",
     .fields = memory_ls_fields,
     .sql = "SELECT id, agent_name, type, importance, tags, content, created_at FROM "
            "memory.agent_memory WHERE project_id = ?1 AND (?2 IS NULL OR agent_name = ?2) AND (?3 "
            "IS NULL OR instr(tags, ',' || ?3 || ',') > 0) ORDER BY created_at, seq, id",
     .run = verb_select},
    {.name = "compile",
     .summary = "the context of an agent: what is in it, and why",
     .about = "First all active architectural and scope decisions, oldest first. Then memories:\n"
              "the agent's core context, and learnings and patterns of high importance that are\n"
              "its own or tagged cross-team; high scores 3, medium 2, low 1, other 0; higher\n"
              "scores first, then newer ones. They are taken until there are --items of them,\n"
              "or until the first that does not fit into --tokens (a line costs its label, its\n"
              "content and 6 characters); a smaller one behind it is not taken. Last the\n"
              "current session. With --json one object a line, with place, layer, why, label,\n"
              "title, content, score and cost.",
     .examples = "  annal memory compile shop --agent ada\n"
                 "  annal memory compile shop --agent ada --items 5 --tokens 500 --json\n",
     .fields = compile_fields,
     .run = memory_compile},
    {0}};

const struct noun noun_memory = {.name = "memory",
                                 .summary = "what agents remember, and contexts from it (memory)",
                                 .pack = "memory",
                                 .verbs = memory_verbs};

/* ---- annal context ---- */

#define CONTEXT_FIELDS                                                                             \
    OPTION("focus", "TEXT", FIELD_TEXT, "focus_area", "what is worked on"),                        \
        OPTION("issues", "TEXT", FIELD_BODY, "active_issues", "what is open"),                     \
        OPTION("summary", "TEXT", FIELD_BODY, "summary", "how far it is"),                         \
        OPTION("state", "JSON", FIELD_JSON, "serialized_state", "state of programs")

static const struct field context_start_fields[] = {
    PROJECT, OPERAND_MAYBE("SESSION", FIELD_TEXT, "session_id", "its id (the next c1, c2, …)"),
    CONTEXT_FIELDS, FIELDS_END};
static const struct field context_update_fields[] = {PROJECT, CONTEXT_FIELDS, FIELDS_END};

static const struct command context_verbs[] = {
    {.name = "start",
     .summary = "a project works on something else from now on",
     .about = "Ends what is open. An id is used once in a project, also when it has ended.",
     .examples = "  annal context start shop s7 --focus \"the cart\"\n",
     .fields = context_start_fields,
     .type = "session_context.started",
     .session = "proj_{PROJECT}",
     .said = "{PROJECT} works on session {session_id}",
     .run = verb_append},
    {.name = "update",
     .summary = "change what is written about the current session",
     .about = "Refused when none is open.",
     .examples = "  annal context update shop --summary \"the cart remembers\"\n",
     .fields = context_update_fields,
     .type = "session_context.updated",
     .session = "proj_{PROJECT}",
     .said = "the current session of {PROJECT} is changed",
     .run = verb_append},
    {.name = "end",
     .summary = "end the current session",
     .about = "It stays in the list.",
     .examples = "  annal context end shop\n",
     .fields = project_only,
     .type = "session_context.ended",
     .session = "proj_{PROJECT}",
     .said = "{PROJECT} has no current session",
     .run = verb_append},
    {.name = "current",
     .summary = "the current session of a project",
     .about = "The newest that has not ended.",
     .examples = "  annal context current shop --json\n",
     .fields = project_only,
     .sql = "SELECT session_id, focus_area, active_issues, summary, serialized_state, started_at, "
            "updated_at FROM memory.session_contexts_current WHERE project_id = ?1",
     .run = verb_select},
    {.name = "ls",
     .summary = "list the sessions of a project, newest first",
     .about = "Also those that have ended.",
     .examples = "  annal context ls shop\n",
     .fields = project_only,
     .sql = "SELECT session_id, focus_area, started_at, ended_at FROM memory.session_contexts "
            "WHERE project_id = ?1 ORDER BY started_at DESC, seq DESC",
     .run = verb_select},
    {0}};

const struct noun noun_context = {.name = "context",
                                  .summary = "what a project works on now (memory)",
                                  .pack = "memory",
                                  .verbs = context_verbs};

/* ---- annal plan ---- */

#define WORKFLOW OPERAND("WORKFLOW", FIELD_TEXT, NULL, "the workflow run")
#define PLAN     OPERAND("PLAN", FIELD_TEXT, "plan_id", "the plan")
#define SUBTASK  OPERAND("SUBTASK", FIELD_TEXT, "subtask_id", "the subtask")
#define EXPECT   OPTION("expect", "STATUS", FIELD_TEXT, "expected", "refused unless it is that now")
#define OVERRIDE                                                                                   \
    FLAG("override", "override", "although the edges do not allow it"),                            \
        OPTION("reason", "TEXT", FIELD_TEXT, "reason", "why; an override needs one")

static const struct field spec_fields[] = {
    WORKFLOW,
    OPERAND("TITLE", FIELD_TEXT, "title", "what is to come of it, in a line"),
    OPTION("content", "TEXT", FIELD_BODY, "content", "all of it; - reads standard input"),
    OPTION("project", "PROJECT", FIELD_TEXT, "project_id", "for which project"),
    OPTION("id", "ID", FIELD_TEXT, "spec_id", "its id (the next o1, o2, …)"),
    FIELDS_END};
static const struct field spec_status_fields[] = {
    WORKFLOW, OPERAND("SPEC", FIELD_TEXT, "spec_id", "the outcome spec"),
    OPERAND("STATUS", FIELD_TEXT, "to", "draft, confirmed or withdrawn"), EXPECT, FIELDS_END};
static const struct field plan_create_fields[] = {
    WORKFLOW,
    OPTION("spec", "ID", FIELD_TEXT, "spec_id", "the outcome spec that it is to reach"),
    OPTION("project", "PROJECT", FIELD_TEXT, "project_id", "for which project"),
    OPTION("coordinator", "RUN", FIELD_TEXT, "coordinator_run_id", "the run that coordinates"),
    OPTION("branch", "NAME", FIELD_TEXT, "integration_branch", "where the parts come together"),
    OPTION("id", "ID", FIELD_TEXT, "plan_id", "its id (the next p1, p2, …)"),
    FIELDS_END};
static const struct field plan_status_fields[] = {
    WORKFLOW,
    PLAN,
    OPERAND("STATUS", FIELD_TEXT, "to", "the new status"),
    EXPECT,
    OPTION("stage", "WORD", FIELD_TEXT, "assembly_stage", "how far the assembly is"),
    OVERRIDE,
    FIELDS_END};
static const struct field plan_only[] = {WORKFLOW, PLAN, FIELDS_END};
static const struct field subtask_fields[] = {
    WORKFLOW,
    PLAN,
    OPERAND("TITLE", FIELD_TEXT, "title", "what is to be done, in a line"),
    OPTION("scope", "TEXT", FIELD_BODY, "scope", "how far it goes"),
    OPTION("agent", "NAME", FIELD_TEXT, "assigned_agent", "who is to do it"),
    OPTION("model", "MODEL", FIELD_TEXT, "model_id", "with which model"),
    OPTION("id", "ID", FIELD_TEXT, "subtask_id", "its id (the next s1, s2, …)"),
    FIELDS_END};
static const struct field subtask_status_fields[] = {
    WORKFLOW,
    SUBTASK,
    OPERAND("STATUS", FIELD_TEXT, "to", "the new status"),
    EXPECT,
    OPTION("run", "RUN", FIELD_TEXT, "child_run_id", "the run that does it"),
    OVERRIDE,
    FIELDS_END};
static const struct field subtask_only[] = {WORKFLOW, SUBTASK, FIELDS_END};
static const struct field depend_fields[] = {
    WORKFLOW, SUBTASK, OPERAND("ON", FIELD_TEXT, "depends_on_id", "the one that comes first"),
    FIELDS_END};
static const struct field workflow_only[] = {WORKFLOW, FIELDS_END};

static const struct command plan_verbs[] = {
    {.name = "spec",
     .summary = "write down what a workflow run is to reach",
     .about = "It is a draft until it is confirmed (annal plan spec-status).",
     .examples = "  annal plan spec w1 \"A cart that remembers\"\n",
     .fields = spec_fields,
     .type = "outcome_spec.created",
     .session = "wf_{WORKFLOW}",
     .said = "outcome spec {spec_id} is a draft",
     .run = verb_append},
    {.name = "spec-status",
     .summary = "confirm or withdraw an outcome spec",
     .about = "Compare and set, as the table plan_edges allows.",
     .examples = "  annal plan spec-status w1 o1 confirmed\n",
     .fields = spec_status_fields,
     .type = "outcome_spec.status_changed",
     .session = "wf_{WORKFLOW}",
     .said = "outcome spec {SPEC} is {STATUS}",
     .run = verb_append},
    {.name = "create",
     .summary = "begin a plan of a workflow run",
     .about = "A plan owns its subtasks: they go when it goes.",
     .examples = "  annal plan create w1 --spec o1\n",
     .fields = plan_create_fields,
     .type = "work_plan.created",
     .session = "wf_{WORKFLOW}",
     .said = "plan {plan_id} is planned",
     .run = verb_append},
    {.name = "status",
     .summary = "change the status of a plan",
     .about = "Compare and set, as the table plan_edges allows: of those who begin to assemble\n"
              "(--expect awaiting_assembly) one wins.",
     .examples = "  annal plan status w1 p1 assembling --expect awaiting_assembly\n",
     .fields = plan_status_fields,
     .type = "work_plan.status_changed",
     .session = "wf_{WORKFLOW}",
     .said = "plan {PLAN} is {STATUS}",
     .run = verb_append},
    {.name = "delete",
     .summary = "delete a plan with its subtasks",
     .about = "The journal keeps that they were there.",
     .examples = "  annal plan delete w1 p1\n",
     .fields = plan_only,
     .type = "work_plan.deleted",
     .session = "wf_{WORKFLOW}",
     .said = "plan {PLAN} is deleted",
     .run = verb_append},
    {.name = "add",
     .summary = "add a subtask to a plan",
     .about = "It is pending.",
     .examples = "  annal plan add w1 p1 \"the cart's tables\" --agent ada\n",
     .fields = subtask_fields,
     .type = "subtask.created",
     .session = "wf_{WORKFLOW}",
     .said = "subtask {subtask_id} is pending",
     .run = verb_append},
    {.name = "subtask",
     .summary = "change the status of a subtask",
     .about = "Compare and set, as the table plan_edges allows.",
     .examples = "  annal plan subtask w1 s1 dispatched --run r2\n",
     .fields = subtask_status_fields,
     .type = "subtask.status_changed",
     .session = "wf_{WORKFLOW}",
     .said = "subtask {SUBTASK} is {STATUS}",
     .run = verb_append},
    {.name = "remove",
     .summary = "delete a subtask on which no other one depends",
     .about = "Else it is refused.",
     .examples = "  annal plan remove w1 s1\n",
     .fields = subtask_only,
     .type = "subtask.deleted",
     .session = "wf_{WORKFLOW}",
     .said = "subtask {SUBTASK} is deleted",
     .run = verb_append},
    {.name = "depend",
     .summary = "a subtask waits for another one of its plan",
     .about = "Refused when it would wait for itself, through others or directly.",
     .examples = "  annal plan depend w1 s2 s1\n",
     .fields = depend_fields,
     .type = "subtask_dependency.added",
     .session = "wf_{WORKFLOW}",
     .said = "subtask {SUBTASK} waits for {ON}",
     .run = verb_append},
    {.name = "undepend",
     .summary = "a subtask does not wait for another one any more",
     .about = "Refused when it did not.",
     .examples = "  annal plan undepend w1 s2 s1\n",
     .fields = depend_fields,
     .type = "subtask_dependency.removed",
     .session = "wf_{WORKFLOW}",
     .said = "subtask {SUBTASK} does not wait for {ON}",
     .run = verb_append},
    {.name = "ls",
     .summary = "list the subtasks of a workflow run's plans",
     .about = "With what each waits for.",
     .examples = "  annal plan ls w1\n",
     .fields = workflow_only,
     .sql = "SELECT p.id AS plan, p.status AS plan_status, s.id, s.title, s.status, "
            "s.assigned_agent, s.child_run_id, (SELECT group_concat(depends_on_id) FROM "
            "memory.subtask_dependencies d WHERE d.workflow_run_id = s.workflow_run_id AND "
            "d.subtask_id = s.id) AS waits_for FROM memory.work_plans p LEFT JOIN memory.subtasks "
            "s ON s.workflow_run_id = p.workflow_run_id AND s.work_plan_id = p.id WHERE "
            "p.workflow_run_id = ?1 ORDER BY p.created_at, p.id, s.created_at, s.id",
     .run = verb_select},
    {.name = "ready",
     .summary = "list pending subtasks that wait for nothing any more",
     .about = "What can be dispatched now.",
     .examples = "  annal plan ready w1 --json\n",
     .fields = workflow_only,
     .sql = "SELECT work_plan_id AS plan, id, title, assigned_agent FROM memory.subtasks_ready "
            "WHERE workflow_run_id = ?1 ORDER BY work_plan_id, id",
     .run = verb_select},
    {0}};

const struct noun noun_plan = {.name = "plan",
                               .summary = "what a coordinator plans (memory)",
                               .pack = "memory",
                               .verbs = plan_verbs};

/* ---- annal steering ---- */

static const struct field issue_fields[] = {
    WORKFLOW,
    OPERAND("KIND", FIELD_TEXT, "kind", "redirect, pause, stop or amend"),
    OPERAND("TEXT", FIELD_BODY, "instruction", "what to do; - reads standard input"),
    OPTION("target", "RUN", FIELD_TEXT, "target", "the run it is for (all)"),
    OPTION("by", "NAME", FIELD_TEXT, "created_by", "who says so"),
    FIELDS_END};
static const struct field directive_fields[] = {
    WORKFLOW, OPERAND("ID", FIELD_TEXT, "id", "the directive"), FIELDS_END};

static const struct command steering_verbs[] = {
    {.name = "issue",
     .summary = "guide a workflow run that is under way",
     .about = "A directive is pending, then queued, relayed, applied; never back.",
     .examples = "  annal steering issue w1 amend \"leave the tests alone\" --by bob\n",
     .fields = issue_fields,
     .type = "steering.issued",
     .session = "wf_{WORKFLOW}",
     .said = "directive {id} is pending",
     .run = verb_append},
    {.name = "queue",
     .summary = "a directive waits for its run",
     .about = "Refused when it has come further.",
     .examples = "  annal steering queue w1 g1\n",
     .fields = directive_fields,
     .type = "steering.queued",
     .session = "wf_{WORKFLOW}",
     .said = "directive {ID} is queued",
     .run = verb_append},
    {.name = "relay",
     .summary = "a directive was handed on to its run",
     .about = "Refused when it has come further.",
     .examples = "  annal steering relay w1 g1\n",
     .fields = directive_fields,
     .type = "steering.relayed",
     .session = "wf_{WORKFLOW}",
     .said = "directive {ID} is relayed",
     .run = verb_append},
    {.name = "apply",
     .summary = "a directive has been followed",
     .about = "Refused the second time.",
     .examples = "  annal steering apply w1 g1\n",
     .fields = directive_fields,
     .type = "steering.applied",
     .session = "wf_{WORKFLOW}",
     .said = "directive {ID} is applied",
     .run = verb_append},
    {.name = "ls",
     .summary = "list the directives of a workflow run",
     .about = "Oldest first.",
     .examples = "  annal steering ls w1\n",
     .fields = workflow_only,
     .sql = "SELECT id, kind, target, instruction, created_by, status, created_at FROM "
            "memory.steering_directives WHERE workflow_run_id = ?1 ORDER BY created_at, id",
     .run = verb_select},
    {0}};

const struct noun noun_steering = {.name = "steering",
                                   .summary = "guidance into workflow runs (memory)",
                                   .pack = "memory",
                                   .verbs = steering_verbs};
