/*
 * The operational half of pack agentweaver on the command line: projects, runs, the backlog,
 * revisions, leases, token usage. What an event must look like to be taken is said by
 * index/packs/agentweaver/agentweaver.sql; here are only its words.
 */
#include "tools/cli/verbs.h"
#include "tools/verbs/agentweaver.h"

#define PROJECT OPERAND("PROJECT", FIELD_TEXT, NULL, "the project")
#define RUN     OPERAND("RUN", FIELD_TEXT, NULL, "the run")
#define TASK    OPERAND("TASK", FIELD_TEXT, "task_id", "the task")
#define TOKEN                                                                                      \
    OPTION("token", "N", FIELD_NUMBER, "fencing_token", "refused unless it is the last lease's")

/* ---- annal project ---- */

static const struct field project_fields[] = {
    PROJECT,
    OPTION("name", "NAME", FIELD_TEXT, "name", "what people call it"),
    OPTION("location", "DIR", FIELD_TEXT, "location", "its workspace"),
    OPTION("branch", "NAME", FIELD_TEXT, "default_branch", "its default branch"),
    OPTION("owner", "NAME", FIELD_TEXT, "owner", "who owns it"),
    OPTION("model", "MODEL", FIELD_TEXT, "model", "that its runs use by default"),
    OPTION("provider", "NAME", FIELD_TEXT, "provider", "that its runs use by default"),
    OPTION("workflow", "NAME", FIELD_LIST, "allowed_workflows", "that may be run in it; repeat"),
    OPTION("sandbox", "JSON", FIELD_JSON, "sandbox_policy", "its sandbox policy"),
    OPTION("review", "JSON", FIELD_JSON, "review_policy", "its review policy"),
    OPTION("settings", "JSON", FIELD_JSON, "settings", "everything else"),
    FIELDS_END};
static const struct field project_only[] = {PROJECT, FIELDS_END};
static const struct field export_fields[] = {
    PROJECT, OPERAND("DIR", FIELD_TEXT, NULL, "the workspace that gets the files"), FIELDS_END};
static const struct field import_fields[] = {
    PROJECT, OPERAND("DIR", FIELD_TEXT, NULL, "the workspace that has the files"), FIELDS_END};
static const struct field no_fields[] = {FIELDS_END};

static const struct command project_verbs[] = {
    {.name = "create",
     .summary = "begin a project",
     .about = "A project is a workspace with its settings; it has a backlog, decisions and\n"
              "what its agents remember. Its history is the session proj_PROJECT.",
     .examples =
         "  annal project create shop --name \"The shop\" --location ~/shop --branch main\n",
     .fields = project_fields,
     .type = "project.created",
     .session = "proj_{PROJECT}",
     .said = "project {PROJECT} is there",
     .run = verb_append},
    {.name = "configure",
     .summary = "change settings of a project",
     .about = "What is not named stays as it is.",
     .examples = "  annal project configure shop --model gpt-5 --workflow review --workflow fix\n",
     .fields = project_fields,
     .type = "project.configured",
     .session = "proj_{PROJECT}",
     .said = "project {PROJECT} is changed",
     .run = verb_append},
    {.name = "retire",
     .summary = "begin to delete a project: no more runs and tasks",
     .about = "The first half of deleting it: runs that are under way may end.",
     .examples = "  annal project retire shop\n",
     .fields = project_only,
     .type = "project.delete_begun",
     .session = "proj_{PROJECT}",
     .said = "project {PROJECT} takes no more runs and tasks",
     .run = verb_append},
    {.name = "delete",
     .summary = "delete a project, with its backlog, decisions and memory",
     .about = "Its rows leave the tables; its journal keeps what happened. Its runs stay.",
     .examples = "  annal project delete shop\n",
     .fields = project_only,
     .type = "project.deleted",
     .session = "proj_{PROJECT}",
     .said = "project {PROJECT} is deleted",
     .run = verb_append},
    {.name = "ls",
     .summary = "list the projects",
     .about = "With the number of their open tasks and of their runs that are under way.",
     .examples = "  annal project ls\n",
     .fields = no_fields,
     .sql = "SELECT p.id, p.name, p.state, p.location, p.default_branch, (SELECT count(*) FROM "
            "agentweaver.backlog_tasks t WHERE t.project_id = p.id AND t.archived_at IS NULL AND "
            "t.run_id IS NULL) AS tasks, (SELECT count(*) FROM agentweaver.runs r JOIN "
            "agentweaver.run_statuses s ON s.status = r.status WHERE r.project_id = p.id AND NOT "
            "s.terminal) AS open_runs FROM agentweaver.projects p ORDER BY p.id",
     .run = verb_select},
    {.name = "export",
     .summary = "write a project's memory as files, for people and agents",
     .about = "Writes below DIR: .squad/decisions.md, .squad/decisions/inbox/SLUG.md for\n"
              "what is pending, .squad/agents/AGENT/history.md, .squad/identity/now.md,\n"
              ".agentweaver/context/boundaries.md and patterns.md there. The same tables\n"
              "give the same bytes. Files of proposals that are pending no more are\n"
              "deleted first; nothing else is. Symbolic links below DIR are not followed:\n"
              "one in the way is an error. The tables are what counts: files are a mirror.",
     .examples = "  annal project export shop ~/shop\n",
     .fields = export_fields,
     .run = mirror_export},
    {.name = "import",
     .summary = "take proposals from files that are not in the inbox yet",
     .about = "Reads DIR/.squad/decisions/inbox/*.md: front matter with agent, slug, type and\n"
              "title, then the content, with what follows **Rationale:** apart. A slug that the\n"
              "project has stays untouched; a file that cannot be read so is named and passed\n"
              "over.",
     .examples = "  annal project import shop ~/shop\n",
     .fields = import_fields,
     .type = "decision.proposed",
     .run = mirror_import},
    {0}};

const struct noun noun_project = {.name = "project",
                                  .summary = "workspaces with their settings (agentweaver)",
                                  .pack = "agentweaver",
                                  .verbs = project_verbs};

/* ---- annal cast ---- */

static const struct field cast_fields[] = {
    PROJECT,
    OPERAND("ID", FIELD_TEXT, "id", "of the proposal"),
    OPERAND("JSON", FIELD_JSON, "proposal_json", "the proposal; @FILE and - read it"),
    OPTION("owner", "NAME", FIELD_TEXT, "owner", "who made it"),
    OPTION("expires", "TIME", FIELD_TIME, "expires_at", "until when it holds"),
    FIELDS_END};

static const struct command cast_verbs[] = {
    {.name = "propose",
     .summary = "keep a proposal for who does what",
     .about = "A second one of the same ID takes the place of the first.",
     .examples = "  annal cast propose shop c1 '{\"lead\":\"ada\"}' --owner bob\n",
     .fields = cast_fields,
     .type = "cast.proposed",
     .session = "proj_{PROJECT}",
     .said = "proposal {ID} of project {PROJECT} is kept",
     .run = verb_append},
    {.name = "ls",
     .summary = "list the proposals of a project",
     .about = "By their id.",
     .examples = "  annal cast ls shop\n",
     .fields = project_only,
     .sql = "SELECT id, owner, expires_at, proposal_json FROM agentweaver.cast_proposals WHERE "
            "project_id = ?1 ORDER BY id",
     .run = verb_select},
    {0}};

const struct noun noun_cast = {.name = "cast",
                               .summary = "proposals for who does what (agentweaver)",
                               .pack = "agentweaver",
                               .verbs = cast_verbs};

/* ---- annal workflow ---- */

#define WORKFLOW OPERAND("WORKFLOW", FIELD_TEXT, NULL, "the workflow run")

static const struct field workflow_create_fields[] = {
    WORKFLOW, OPTION("project", "PROJECT", FIELD_TEXT, "project_id", "that it works for"),
    OPTION("task", "TEXT", FIELD_BODY, "task", "what is to be done"),
    OPTION("user", "NAME", FIELD_TEXT, "submitting_user", "who asked for it"), FIELDS_END};
static const struct field workflow_worktree_fields[] = {
    WORKFLOW, OPERAND("PATH", FIELD_TEXT, "worktree_path", "the shared worktree"),
    OPERAND_MAYBE("BRANCH", FIELD_TEXT, "worktree_branch", "its branch"), FIELDS_END};
static const struct field checkpoint_fields[] = {
    WORKFLOW,
    OPERAND("ID", FIELD_TEXT, "checkpoint_id", "of the checkpoint"),
    OPERAND("JSON", FIELD_JSON, "payload", "what it holds; @FILE and - read it"),
    OPTION("store-name", "NAME", FIELD_TEXT, "store_name", "which series of them (default)"),
    OPTION("parent", "ID", FIELD_TEXT, "parent_checkpoint_id", "the one before"),
    FIELDS_END};
static const struct field workflow_ls_fields[] = {
    OPERAND_MAYBE("PROJECT", FIELD_TEXT, NULL, "the project (all)"), FIELDS_END};

static const struct command workflow_verbs[] = {
    {.name = "create",
     .summary = "begin a workflow run, the envelope of a job",
     .about = "It may have one or many runs. Its history is the session wf_WORKFLOW.",
     .examples = "  annal workflow create w1 --project shop --task \"add a cart\" --user bob\n",
     .fields = workflow_create_fields,
     .type = "workflow_run.created",
     .session = "wf_{WORKFLOW}",
     .said = "workflow run {WORKFLOW} is there",
     .run = verb_append},
    {.name = "worktree",
     .summary = "say which worktree its runs share",
     .about = "The first one stays: another path is refused.",
     .examples = "  annal workflow worktree w1 /tmp/w1 squad/w1\n",
     .fields = workflow_worktree_fields,
     .type = "workflow_run.worktree_set",
     .session = "wf_{WORKFLOW}",
     .said = "workflow run {WORKFLOW} works in {PATH}",
     .run = verb_append},
    {.name = "checkpoint",
     .summary = "keep a checkpoint of a workflow run",
     .about = "Large ones go to artifacts/. A checkpoint's id is given once in its series.",
     .examples = "  annal workflow checkpoint w1 step-3 @state.json --parent step-2\n",
     .fields = checkpoint_fields,
     .type = "checkpoint.saved",
     .session = "wf_{WORKFLOW}",
     .said = "checkpoint {ID} of workflow run {WORKFLOW} is kept",
     .run = verb_append},
    {.name = "ls",
     .summary = "list workflow runs",
     .about = "With the number of their runs.",
     .examples = "  annal workflow ls shop\n",
     .fields = workflow_ls_fields,
     .sql = "SELECT w.id, w.project_id, w.task, w.worktree_path, w.created_at, (SELECT count(*) "
            "FROM agentweaver.runs r WHERE r.workflow_run_id = w.id) AS runs FROM "
            "agentweaver.workflow_runs w WHERE ?1 IS NULL OR w.project_id = ?1 ORDER BY "
            "w.created_at, w.id",
     .run = verb_select},
    {0}};

const struct noun noun_workflow = {.name = "workflow",
                                   .summary = "jobs of several runs (agentweaver)",
                                   .pack = "agentweaver",
                                   .verbs = workflow_verbs};

/* ---- annal run ---- */

static const struct field run_create_fields[] = {
    RUN,
    OPTION("project", "PROJECT", FIELD_TEXT, "project_id", "that it works for"),
    OPTION("task", "TEXT", FIELD_BODY, "task", "what it is to do"),
    OPTION("workflow", "ID", FIELD_TEXT, "workflow_run_id", "the workflow run it belongs to"),
    FLAG("shared", "shared_worktree", "works in the worktree of its workflow run"),
    OPTION("parent", "RUN", FIELD_TEXT, "parent_run_id", "the run that began it"),
    OPTION("subtask", "ID", FIELD_TEXT, "subtask_id", "the subtask it works on"),
    OPTION("retry-of", "RUN", FIELD_TEXT, "retried_from", "the run it is a new try of"),
    OPTION("agent", "NAME", FIELD_TEXT, "agent_name", "who works"),
    OPTION("model", "MODEL", FIELD_TEXT, "model_id", "with which model"),
    OPTION("provider", "NAME", FIELD_TEXT, "provider", "of the model"),
    OPTION("user", "NAME", FIELD_TEXT, "submitting_user", "who asked for it"),
    OPTION("branch", "NAME", FIELD_TEXT, "originating_branch", "where its worktree begins"),
    FIELDS_END};
static const struct field run_worktree_fields[] = {
    RUN, OPERAND("PATH", FIELD_TEXT, "worktree_path", "where it works"),
    OPERAND("BRANCH", FIELD_TEXT, "worktree_branch", "the branch there"), TOKEN, FIELDS_END};
static const struct field run_start_fields[] = {
    RUN, OPTION("path", "PATH", FIELD_TEXT, "worktree_path", "its worktree, when not set yet"),
    OPTION("branch", "NAME", FIELD_TEXT, "worktree_branch", "its branch, when not set yet"), TOKEN,
    FIELDS_END};
static const struct field review_ready_fields[] = {
    RUN,
    OPTION("tree", "HASH", FIELD_TEXT, "tree_hash", "the tree that it produced"),
    OPTION("diff", "TEXT", FIELD_BODY, "diff", "what it changed; - reads standard input"),
    OPTION("diff-file", "FILE", FIELD_FILE, "diff", "the same, from a file"),
    TOKEN,
    FIELDS_END};
static const struct field approve_fields[] = {
    RUN, OPTION_MUST("tree", "HASH", FIELD_TEXT, "tree_hash", "the tree that was looked at"),
    OPTION("reviewer", "NAME", FIELD_TEXT, "reviewer", "who approves"), FIELDS_END};
static const struct field transition_fields[] = {
    RUN,
    OPERAND("STATUS", FIELD_TEXT, "to", "the new status"),
    OPTION("expect", "STATUS", FIELD_LIST, "expected", "refused unless it is that now; repeat"),
    OPTION("operation", "NAME", FIELD_TEXT, "operation", "that must allow it, of run_edges"),
    OPTION("result", "TEXT", FIELD_BODY, "result", "what came of it"),
    OPTION("reviewer", "NAME", FIELD_TEXT, "reviewer", "who decided"),
    OPTION("tree", "HASH", FIELD_TEXT, "tree_hash", "the tree it is about"),
    OPTION("conflict", "FILE", FIELD_LIST, "conflicts", "a file that does not merge; repeat"),
    OPTION("commit", "HASH", FIELD_TEXT, "merged_commit_hash", "the commit of the merge"),
    FLAG("override", "override", "although the edges do not allow it"),
    OPTION("reason", "TEXT", FIELD_TEXT, "reason", "why; an override needs one"),
    TOKEN,
    FIELDS_END};
static const struct field merge_fields[] = {
    RUN,
    OPTION("tree", "HASH", FIELD_TEXT, "tree_hash", "refused unless it is the approved one"),
    OPTION("reviewer", "NAME", FIELD_TEXT, "reviewer", "refused unless it is who approved"),
    TOKEN,
    CONSTANT("to", "\"merging\""),
    CONSTANT("expected", "[\"awaiting_review\",\"committing\"]"),
    FIELDS_END};
static const struct field run_only[] = {RUN, FIELDS_END};
static const struct field close_fields[] = {
    RUN, OPTION("reason", "TEXT", FIELD_TEXT, "reason", "why"), FIELDS_END};
static const struct field run_ls_fields[] = {
    OPTION("project", "PROJECT", FIELD_TEXT, NULL, "only of this project"),
    OPTION("status", "STATUS", FIELD_TEXT, NULL, "only in this status"),
    FLAG("open", NULL, "only those that have not ended"), FIELDS_END};
static const struct field tail_fields[] = {
    RUN, OPTION("from", "SEQ", FIELD_NUMBER, NULL, "begin with event SEQ (1)"),
    FLAG("all", NULL, "history to its end, and do not wait"), FIELDS_END};

#define RUN_COLUMNS                                                                                \
    "id, project_id, status, origin, task, agent_name, worktree_path, worktree_branch, tree_hash"

/* So that the project's last word is heard, should a crash have kept it from the tables. */
static int name_project(struct verb_call *call)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    if (verb_text(call->args, "project") == NULL)
        return 0;
    int exit_status = verb_session_id(call->args, "proj_{project}", session, sizeof session);
    if (exit_status != 0)
        return exit_status;
    return verb_set_text(call, "project_session", annal_slice_of(session));
}

static const struct command run_verbs[] = {
    {.name = "create",
     .summary = "begin a run, one execution of an agent",
     .about = "It is pending until run start. Its history is the session run_RUN. A run for a\n"
              "task of the backlog is made by annal backlog claim.",
     .examples = "  annal run create r1 --project shop --task \"add a cart\" --user bob\n",
     .fields = run_create_fields,
     .type = "run.created",
     .session = "run_{RUN}",
     .said = "run {RUN} is pending",
     .prepare = name_project,
     .run = verb_append},
    {.name = "worktree",
     .summary = "say where a run works, before it works",
     .about = "So that a restart can find or make anew what it works in. The first one stays:\n"
              "the same again changes nothing, another is refused.",
     .examples = "  annal run worktree r1 /tmp/r1 squad/r1\n",
     .fields = run_worktree_fields,
     .type = "run.worktree_set",
     .session = "run_{RUN}",
     .said = "run {RUN} works in {PATH}",
     .run = verb_append},
    {.name = "start",
     .summary = "a pending run begins to work",
     .about = "Refused as long as its worktree is not known.",
     .examples = "  annal run start r1\n",
     .fields = run_start_fields,
     .type = "run.started",
     .session = "run_{RUN}",
     .said = "run {RUN} is in progress",
     .run = verb_append},
    {.name = "review-ready",
     .summary = "what a run made can be reviewed",
     .about = "From any status that is not terminal. Another tree than before takes approval\n"
              "and reviewer away. A diff of more than 100 KB goes to artifacts/.",
     .examples = "  git diff main | annal run review-ready r1 --tree 4b825dc --diff -\n",
     .fields = review_ready_fields,
     .type = "run.review_ready",
     .session = "run_{RUN}",
     .said = "run {RUN} awaits review",
     .run = verb_append},
    {.name = "approve",
     .summary = "approve one tree of a run",
     .about = "Refused unless that tree awaits review. No other one can be merged then.",
     .examples = "  annal run approve r1 --tree 4b825dc --reviewer bob\n",
     .fields = approve_fields,
     .type = "run.approved",
     .session = "run_{RUN}",
     .said = "tree {tree_hash} of run {RUN} is approved",
     .run = verb_append},
    {.name = "transition",
     .summary = "change the status of a run, as the table run_edges allows",
     .about = "Compare and set: refused unless the status is one of --expect, and unless an\n"
              "edge leads from there to STATUS. Only --override with a reason, which stays in\n"
              "the run's row, leaves a terminal status or merges a tree that nobody\n"
              "approved.",
     .examples = "  annal run transition r1 declined --expect awaiting_review --reviewer bob\n"
                 "  annal run transition r1 merged --expect merging --commit 1f2e3d\n"
                 "  annal run transition r1 awaiting_review --override --reason \"try again\"\n",
     .fields = transition_fields,
     .type = "run.transition",
     .session = "run_{RUN}",
     .said = "run {RUN} is {STATUS}",
     .run = verb_append},
    {.name = "merge",
     .summary = "begin to merge a run that was reviewed",
     .about = "Refused unless the tree that the run has is approved, and is --tree. One of\n"
              "those who try wins. Then do the merge, and end with annal run transition RUN\n"
              "merged or merge_failed. What nobody approved needs annal run transition with\n"
              "--override.",
     .examples = "  annal run merge r1 --tree 4b825dc --reviewer bob\n",
     .fields = merge_fields,
     .type = "run.transition",
     .session = "run_{RUN}",
     .said = "run {RUN} is merging",
     .run = verb_append},
    {.name = "archive",
     .summary = "put a run aside",
     .about = "Its rows and its history stay.",
     .examples = "  annal run archive r1\n",
     .fields = run_only,
     .type = "run.archived",
     .session = "run_{RUN}",
     .said = "run {RUN} is archived",
     .run = verb_append},
    {.name = "close",
     .summary = "end the stream of a run: no more events",
     .about = "A terminal event only tells tails to stop; this is what refuses more events.",
     .examples = "  annal run close r1 --reason \"nothing comes after this\"\n",
     .fields = close_fields,
     .type = "stream.closed",
     .session = "run_{RUN}",
     .said = "the stream of run {RUN} is closed",
     .run = verb_append},
    {.name = "recover",
     .summary = "runs that a restart cut off while merging await review again",
     .about = "Those that are committing or merging: for each one run.transition, guarded by\n"
              "the status that it was seen in.",
     .examples = "  annal run recover --project shop\n",
     .fields = run_ls_fields,
     .type = "run.transition",
     .run = run_recover},
    {.name = "ls",
     .summary = "list runs",
     .about = "Those that were archived are left out.",
     .examples = "  annal run ls --project shop --open\n",
     .fields = run_ls_fields,
     .sql = "SELECT " RUN_COLUMNS " FROM agentweaver.runs WHERE archived_at IS NULL AND (?1 IS "
            "NULL OR project_id = ?1) AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR status "
            "IN (SELECT status FROM agentweaver.run_statuses WHERE NOT terminal)) ORDER BY "
            "created_at, id",
     .run = verb_select},
    {.name = "show",
     .summary = "one run",
     .about = "Its row, and the totals of its tokens.",
     .examples = "  annal run show r1 --json\n",
     .fields = run_only,
     .sql = "SELECT r.*, (SELECT total_tokens FROM agentweaver.token_usage_by_run u WHERE u.run_id "
            "= r.id) AS total_tokens FROM agentweaver.runs r WHERE r.id = ?1",
     .run = verb_select},
    {.name = "tail",
     .summary = "replay a run's events, then follow it until it ends",
     .about = "Every event once, in order: those from --from on, then each new one once it is\n"
              "durable, whichever process appends it. It stops behind an event that ends the\n"
              "run (run.completed, run.failed, run.cancelled, run.assemble_ready,\n"
              "merge.completed, merge.failed, review.declined, a run.transition to a terminal\n"
              "status, stream.closed) when nothing stands behind it. With --all it prints what\n"
              "is there, also behind such an event, and does not wait.",
     .examples = "  annal run tail r1 --from 17\n",
     .fields = tail_fields,
     .run = run_tail},
    {0}};

const struct noun noun_run = {.name = "run",
                              .summary = "executions of an agent (agentweaver)",
                              .pack = "agentweaver",
                              .verbs = run_verbs};

/* ---- annal revision ---- */

static const struct field revision_fields[] = {
    RUN,
    OPERAND("COMMENT", FIELD_BODY, "raw_comment", "what is to be changed; - reads standard input"),
    OPTION("reviewer", "NAME", FIELD_TEXT, "reviewer_user", "who says so"),
    OPTION("sanitized", "TEXT", FIELD_TEXT, "sanitized_comment", "as an agent may read it"),
    OPTION("number", "N", FIELD_NUMBER, "revision_number", "which one (the next)"),
    FIELDS_END};

static const struct command revision_verbs[] = {
    {.name = "record",
     .summary = "write down feedback to a run, for ever",
     .about = "Revisions are only added: no event changes or deletes one. To send the run back\n"
              "to work, follow with annal run transition RUN in_progress.",
     .examples = "  annal revision record r1 \"the cart forgets its items\" --reviewer bob\n",
     .fields = revision_fields,
     .type = "revision.recorded",
     .session = "run_{RUN}",
     .said = "revision {revision_number} of run {RUN} is recorded",
     .run = verb_append},
    {.name = "ls",
     .summary = "list the revisions of a run",
     .about = "In their order.",
     .examples = "  annal revision ls r1\n",
     .fields = run_only,
     .sql = "SELECT revision_number, reviewer_user, sanitized_comment, previous_tree_hash, "
            "created_at FROM agentweaver.run_revisions WHERE run_id = ?1 ORDER BY revision_number",
     .run = verb_select},
    {0}};

const struct noun noun_revision = {.name = "revision",
                                   .summary = "feedback to runs, append-only (agentweaver)",
                                   .pack = "agentweaver",
                                   .verbs = revision_verbs};

/* ---- annal lease ---- */

#define OWNER      OPERAND("OWNER", FIELD_TEXT, "owner_id", "who holds it")
#define LEASE_TIME OPTION("for", "MS", FIELD_NUMBER, "lease_ms", "for so many milliseconds (60000)")

static const struct field lease_claim_fields[] = {RUN, OWNER, LEASE_TIME, FIELDS_END};
static const struct field lease_renew_fields[] = {
    RUN, OWNER, OPERAND("TOKEN", FIELD_NUMBER, "fencing_token", "that claiming it gave"),
    LEASE_TIME, FIELDS_END};
static const struct field lease_release_fields[] = {
    RUN, OWNER, OPERAND("TOKEN", FIELD_NUMBER, "fencing_token", "that claiming it gave"),
    FIELDS_END};

static const struct command lease_verbs[] = {
    {.name = "claim",
     .summary = "be the one that executes a run",
     .about = "Refused while another holds it. The answer's fencing token is one more than the\n"
              "last; events that carry an older one (--token) are refused from then on.",
     .examples = "  annal lease claim r1 worker-7 --for 30000 --json\n",
     .fields = lease_claim_fields,
     .type = "lease.claimed",
     .session = "run_{RUN}",
     .said = "{OWNER} holds run {RUN} with token {fencing_token}",
     .run = verb_append},
    {.name = "renew",
     .summary = "hold a run longer",
     .about = "Refused when somebody else has claimed it meanwhile.",
     .examples = "  annal lease renew r1 worker-7 3\n",
     .fields = lease_renew_fields,
     .type = "lease.renewed",
     .session = "run_{RUN}",
     .said = "{OWNER} holds run {RUN} longer",
     .run = verb_append},
    {.name = "release",
     .summary = "let others execute a run",
     .about = "Its token stays used: the next claim gets a greater one.",
     .examples = "  annal lease release r1 worker-7 3\n",
     .fields = lease_release_fields,
     .type = "lease.released",
     .session = "run_{RUN}",
     .said = "run {RUN} is free",
     .run = verb_append},
    {.name = "show",
     .summary = "who executes a run",
     .about = "Empty when nobody ever did.",
     .examples = "  annal lease show r1\n",
     .fields = run_only,
     .sql = "SELECT * FROM agentweaver.run_leases WHERE run_id = ?1",
     .run = verb_select},
    {0}};

const struct noun noun_lease = {.name = "lease",
                                .summary = "one worker per run, with fencing tokens (agentweaver)",
                                .pack = "agentweaver",
                                .verbs = lease_verbs};

/* ---- annal usage ---- */

static const struct field usage_fields[] = {
    RUN,
    OPERAND("MODEL", FIELD_TEXT, "modelId", "that was asked"),
    OPTION("input", "N", FIELD_NUMBER, "inputTokens", "tokens that went in"),
    OPTION("output", "N", FIELD_NUMBER, "outputTokens", "tokens that came out"),
    OPTION("total", "N", FIELD_NUMBER, "totalTokens", "both (their sum)"),
    OPTION("nano-aiu", "N", FIELD_NUMBER, "totalNanoAiu", "what it cost"),
    FIELDS_END};
static const struct field totals_fields[] = {
    OPTION_WITH("by", "WHAT", FIELD_TEXT, NULL, "run, workflow, project, model, hour or app (run)",
                .preset = "\"run\"", .choices = "run|workflow|project|model|hour|app"),
    OPTION("since", "TIME", FIELD_TIME, NULL, "only from then on"),
    OPTION("until", "TIME", FIELD_TIME, NULL, "only before then"), FIELDS_END};

static const struct command usage_verbs[] = {
    {.name = "record",
     .summary = "write down what a turn of a run used",
     .about = "One agent.turn.usage event. Without a model it would not be counted.",
     .examples = "  annal usage record r1 gpt-5 --input 1200 --output 85\n",
     .fields = usage_fields,
     .type = "agent.turn.usage",
     .session = "run_{RUN}",
     .said = "usage of run {RUN} is recorded",
     .run = verb_append},
    {.name = "totals",
     .summary = "tokens by run, workflow, project, model or hour, or of all",
     .about = "Of all time, or of a window of time. The total of the application, --by app,\n"
              "is that of its projects: usage without a project is not in it.",
     .examples = "  annal usage totals --by project --since 7d\n",
     .fields = totals_fields,
     .sql = "SELECT CASE ?1 WHEN 'run' THEN run_id WHEN 'workflow' THEN workflow_run_id WHEN "
            "'project' THEN project_id WHEN 'model' THEN model_id WHEN 'hour' THEN "
            "substr(timestamp, 1, 13) ELSE 'app' END AS id, count(*) AS records, count(DISTINCT "
            "run_id) AS runs, sum(input_tokens) AS input_tokens, sum(output_tokens) AS "
            "output_tokens, sum(total_tokens) AS total_tokens, sum(total_nano_aiu) AS "
            "total_nano_aiu FROM agentweaver.token_usage WHERE (?2 IS NULL OR timestamp >= ?2) AND "
            "(?3 IS NULL OR timestamp < ?3) AND (?1 <> 'app' OR project_id IS NOT NULL) GROUP BY "
            "1 ORDER BY 1",
     .run = verb_select},
    {0}};

const struct noun noun_usage = {.name = "usage",
                                .summary = "tokens that runs used (agentweaver)",
                                .pack = "agentweaver",
                                .verbs = usage_verbs};

/* ---- annal backlog ---- */

#define KEY  OPTION("key", "KEY", FIELD_TEXT, "order_key", "its order key; refused if it is taken")
#define WISH OPTION("wish", "KEY", FIELD_TEXT, "requested_key", "or the next free one behind KEY")

static const struct field add_fields[] = {
    PROJECT,
    OPERAND("TITLE", FIELD_TEXT, "title", "what is to be done, in a line"),
    OPTION("description", "TEXT", FIELD_BODY, "description", "more of it"),
    OPTION("id", "TASK", FIELD_TEXT, "task_id", "its id (the next t1, t2, …)"),
    OPTION("by", "NAME", FIELD_TEXT, "created_by", "who asks for it"),
    KEY,
    WISH,
    FIELDS_END};
static const struct field edit_fields[] = {
    PROJECT, TASK, OPTION("title", "TEXT", FIELD_TEXT, "title", "another title"),
    OPTION("description", "TEXT", FIELD_BODY, "description", "another description"), FIELDS_END};
static const struct field task_only[] = {PROJECT, TASK, FIELDS_END};
static const struct field task_key_fields[] = {PROJECT, TASK, KEY, FIELDS_END};
static const struct field override_fields[] = {
    PROJECT, TASK, OPERAND("JSON", FIELD_JSON, "overrides", "settings for its run"), FIELDS_END};
static const struct field commit_all_fields[] = {
    PROJECT, OPERAND("TASK", FIELD_LIST, "task_ids", "the tasks"), FIELDS_END};
static const struct field move_fields[] = {
    PROJECT,   TASK, KEY, WISH, OPTION("after", "TASK", FIELD_TEXT, "after", "behind that task"),
    FIELDS_END};
static const struct field claim_fields[] = {
    PROJECT,
    OPERAND_MAYBE("TASK", FIELD_TEXT, "task_id", "the task (the first that is ready)"),
    OPTION("run", "RUN", FIELD_TEXT, "run.id", "the id of its run (PROJECT-TASK)"),
    OPTION("prompt", "TEXT", FIELD_BODY, "run.task", "what the run is to do (the title)"),
    OPTION("agent", "NAME", FIELD_TEXT, "run.agent_name", "who works"),
    OPTION("model", "MODEL", FIELD_TEXT, "run.model_id", "with which model"),
    OPTION("user", "NAME", FIELD_TEXT, "run.submitting_user", "who asked for it"),
    OPTION("branch", "NAME", FIELD_TEXT, "run.originating_branch", "where its worktree begins"),
    FIELDS_END};
static const struct field backlog_ls_fields[] = {
    PROJECT, OPTION("state", "STATE", FIELD_TEXT, NULL, "backlog, ready or claimed (all)"),
    FIELDS_END};

static const struct command backlog_verbs[] = {
    {.name = "add",
     .summary = "put a task into the backlog of a project",
     .about = "Tasks have an order key, which no other task in the same state has. Without one\n"
              "it goes to the end.",
     .examples = "  annal backlog add shop \"Add a cart\" --by ada\n",
     .fields = add_fields,
     .type = "backlog.captured",
     .session = "proj_{PROJECT}",
     .said = "task {task_id} is in the backlog of {PROJECT}",
     .run = verb_append},
    {.name = "edit",
     .summary = "change the words of a task",
     .about = "What is not named stays as it is.",
     .examples = "  annal backlog edit shop t1 --title \"Add a cart that remembers\"\n",
     .fields = edit_fields,
     .type = "backlog.edited",
     .session = "proj_{PROJECT}",
     .said = "task {TASK} is changed",
     .run = verb_append},
    {.name = "override",
     .summary = "settings for the run that will do a task",
     .about = "As long as no run has claimed it.",
     .examples = "  annal backlog override shop t1 '{\"model\":\"gpt-5\"}'\n",
     .fields = override_fields,
     .type = "backlog.override_set",
     .session = "proj_{PROJECT}",
     .said = "task {TASK} has settings of its own",
     .run = verb_append},
    {.name = "commit",
     .summary = "a task is ready to be claimed",
     .about = "It goes behind those that are ready, or where --key says.",
     .examples = "  annal backlog commit shop t1\n",
     .fields = task_key_fields,
     .type = "backlog.committed",
     .session = "proj_{PROJECT}",
     .said = "task {TASK} is ready",
     .run = verb_append},
    {.name = "commit-all",
     .summary = "several tasks are ready, all or none",
     .about = "They go behind those that are ready, in the order that they had.",
     .examples = "  annal backlog commit-all shop t1 t2 t3\n",
     .fields = commit_all_fields,
     .type = "backlog.bulk_committed",
     .session = "proj_{PROJECT}",
     .said = "the tasks are ready",
     .run = verb_append},
    {.name = "return",
     .summary = "a task is not ready after all",
     .about = "It goes to the end of the backlog, or where --key says.",
     .examples = "  annal backlog return shop t1\n",
     .fields = task_key_fields,
     .type = "backlog.returned",
     .session = "proj_{PROJECT}",
     .said = "task {TASK} is in the backlog again",
     .run = verb_append},
    {.name = "move",
     .summary = "give a task another place",
     .about = "With --wish, a key that is taken gives the next greater free one; five tries.",
     .examples = "  annal backlog move shop t3 --after t1\n",
     .fields = move_fields,
     .type = "backlog.reordered",
     .session = "proj_{PROJECT}",
     .said = "task {TASK} has order key {order_key}",
     .run = verb_append},
    {.name = "claim",
     .summary = "take a task and reserve its run, in one event",
     .about = "The task must be ready. One of those who try gets it; the others are refused,\n"
              "and nothing of theirs is there. The run is in progress at once; annal run\n"
              "worktree goes on from there.",
     .examples = "  annal backlog claim shop --user worker-7 --json\n"
                 "  annal backlog claim shop t1 --run r1\n",
     .fields = claim_fields,
     .type = "backlog.claimed",
     .session = "proj_{PROJECT}",
     .said = "task {task_id} is claimed by run {run.id}",
     .run = verb_append},
    {.name = "archive",
     .summary = "put a task aside, and its run with it",
     .about = "Its order key is free then.",
     .examples = "  annal backlog archive shop t1\n",
     .fields = task_only,
     .type = "backlog.archived",
     .session = "proj_{PROJECT}",
     .said = "task {TASK} is archived",
     .run = verb_append},
    {.name = "delete",
     .summary = "delete a task that no run has claimed",
     .about = "The journal keeps that it was there.",
     .examples = "  annal backlog delete shop t1\n",
     .fields = task_only,
     .type = "backlog.deleted",
     .session = "proj_{PROJECT}",
     .said = "task {TASK} is deleted",
     .run = verb_append},
    {.name = "ls",
     .summary = "list the tasks of a project, in their order",
     .about = "Those that were archived are left out.",
     .examples = "  annal backlog ls shop --state ready\n",
     .fields = backlog_ls_fields,
     .sql = "SELECT id, state, order_key, title, run_id FROM agentweaver.backlog_tasks WHERE "
            "project_id = ?1 AND archived_at IS NULL AND (?2 IS NULL OR state = ?2) ORDER BY CASE "
            "state WHEN 'ready' THEN 0 WHEN 'backlog' THEN 1 ELSE 2 END, order_key",
     .run = verb_select},
    {0}};

const struct noun noun_backlog = {.name = "backlog",
                                  .summary = "tasks of a project, in their order (agentweaver)",
                                  .pack = "agentweaver",
                                  .verbs = backlog_verbs};
