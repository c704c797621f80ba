/* annal prose: runs of OpenProse programs, of the pack prose. */
#include "tools/verbs/prose_run.h"

#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <annal/pack.h>

#include <string.h>

/* ---- The run ---- */

static const struct field init_fields[] = {
    OPERAND_MAYBE("RUN", FIELD_TEXT, NULL, "the run's id (made: the time and six random letters)"),
    OPTION("program", "FILE", FIELD_TEXT, NULL, "the program; a copy stands beside the database"),
    FIELDS_END};

/* The run's own row, what is under way, what to wait for, and where everything stands. */
static const char resume_sql[] =
    "SELECT 'run' AS what, NULL AS execution_id, id AS name, status, program_path AS detail "
    "FROM prose.run "
    "UNION ALL SELECT * FROM (SELECT 'position', id, statement_text, status, statement_index"
    " FROM prose.execution WHERE status = 'executing' ORDER BY id DESC LIMIT 1) "
    "UNION ALL SELECT what, execution_id, statement_text, status, metadata FROM prose.x_resume "
    "UNION ALL SELECT 'parallel', execution_id, parallel_id, COALESCE(result, status),"
    " pending || ' of ' || branches || ' branches open' FROM prose.x_parallel_join"
    " WHERE status = 'executing' "
    "UNION ALL SELECT 'binding', execution_id, name, kind,"
    " COALESCE(attachment_path, 'bindings table') FROM prose.bindings "
    "UNION ALL SELECT 'agent', NULL, name, scope, length(memory) || ' characters of memory'"
    " FROM prose.agents WHERE ?1 IS NOT NULL";

/* Up the call stack from an execution, and then the root. */
static const char get_sql[] =
    "WITH RECURSIVE up(id, parent_id, depth) AS ("
    " SELECT id, parent_id, 0 FROM prose.execution WHERE id = ?3"
    " UNION SELECT e.id, e.parent_id, depth + 1 FROM prose.execution e JOIN up ON e.id = "
    "up.parent_id"
    " WHERE depth < 100000) "
    "SELECT b.name, b.execution_id, b.kind, b.value, b.attachment_path FROM prose.bindings b "
    "LEFT JOIN up ON up.id = b.execution_id "
    "WHERE b.name = ?2 AND (b.execution_id IS NULL OR up.id IS NOT NULL) AND ?1 IS NOT NULL "
    "ORDER BY up.depth IS NULL, up.depth LIMIT 1";

static const struct field run_fields[] = {OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
                                          FIELDS_END};

static const struct field get_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("NAME", FIELD_TEXT, NULL, "the binding"),
    OPTION("execution", "ID", FIELD_NUMBER, NULL, "as seen from this execution (root)"),
    FIELDS_END};

static const struct field sync_fields[] = {
    OPERAND_MAYBE("RUN", FIELD_TEXT, NULL, "the run's id (all runs, and all agents)"), FIELDS_END};

static const struct field attachments_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    FLAG("restore", NULL, "write again what is missing or changed"), FIELDS_END};

static const struct field over_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPTION("error", "TEXT", FIELD_TEXT, "error", "why"),
    FLAG("override", "override", "also when the run is over; needs --reason"),
    OPTION("reason", "TEXT", FIELD_TEXT, "reason", "why a final status is left"), FIELDS_END};

/* ---- Bindings ---- */

static const struct field bind_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("NAME", FIELD_TEXT, NULL, "its name; - takes the next of anon_001, anon_002, ..."),
    OPERAND_MAYBE("VALUE", FIELD_TEXT, NULL, "its value; - reads standard input"),
    OPTION("value-file", "FILE", FIELD_TEXT, NULL, "a file with its value"),
    OPTION_WITH("kind", "KIND", FIELD_TEXT, "kind", "input, output, let (default), const",
                .choices = "input|output|let|const"),
    OPTION("execution", "ID", FIELD_NUMBER, "execution_id", "the block's execution (root)"),
    OPTION("source", "STATEMENT", FIELD_TEXT, "source_statement", "the statement that gave it"),
    OPTION("summary", "TEXT", FIELD_TEXT, NULL, "what stands in the table for a large value"),
    FIELDS_END};

/* ---- Executions ---- */

#define ROLE                                                                                       \
    OPTION_WITH("role", "ROLE", FIELD_TEXT, "role", "who asks: vm, subagent",                      \
                .choices = "vm|subagent")

static const struct field exec_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("STATEMENT", FIELD_BODY, "statement_text", "the statement's text"),
    OPTION("index", "N", FIELD_NUMBER, "statement_index", "its place in the program"),
    OPTION("parent", "ID", FIELD_NUMBER, "parent_id", "the execution that it is part of"),
    OPTION_WITH("status", "STATUS", FIELD_TEXT, "status", "pending or executing (executing)",
                .choices = "pending|executing"),
    OPTION("metadata", "JSON", FIELD_JSON, "metadata", "anything else"),
    OPTION("max-depth", "N", FIELD_NUMBER, "max_depth", "how deep blocks may nest (100)"),
    ROLE,
    FIELDS_END};

static const struct field end_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("ID", FIELD_NUMBER, "execution_id", "the execution"),
    ROLE,
    FLAG("override", "override", "also when it is over; needs --reason"),
    OPTION("reason", "TEXT", FIELD_TEXT, "reason", "why a final status is left"),
    FIELDS_END};

static const struct field fail_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("ID", FIELD_NUMBER, "execution_id", "the execution"),
    OPERAND("ERROR", FIELD_BODY, "error_message", "what went wrong"),
    ROLE,
    FLAG("override", "override", "also when it is over; needs --reason"),
    OPTION("reason", "TEXT", FIELD_TEXT, "reason", "why a final status is left"),
    FIELDS_END};

static const struct field retry_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("ID", FIELD_NUMBER, "execution_id", "the execution"),
    OPTION("max", "N", FIELD_NUMBER, "max_retries", "how many retries there may be"),
    OPTION("error", "TEXT", FIELD_TEXT, "error", "what the last attempt failed with"),
    ROLE,
    FIELDS_END};

static const struct field metadata_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("ID", FIELD_NUMBER, "execution_id", "the execution"),
    OPERAND("JSON", FIELD_JSON, "set", "an object, {\"model\":\"…\"}; @FILE reads it"), ROLE,
    FIELDS_END};

/* ---- Parallel blocks and loops ---- */

static const struct field parallel_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("BRANCH", FIELD_LIST, "branches", "the names of its branches"),
    OPTION("parallel-id", "ID", FIELD_TEXT, "parallel_id", "the block's id (p1, p2, …)"),
    OPTION_WITH("strategy", "S", FIELD_TEXT, "strategy", "when it is decided (all)",
                .choices = "all|first|any"),
    OPTION("count", "N", FIELD_NUMBER, "count", "with any: how many must succeed (1)"),
    OPTION_WITH("on-fail", "POLICY", FIELD_TEXT, "failure", "fail-fast, continue, ignore",
                .choices = "fail-fast|continue|ignore"),
    OPTION("statement", "TEXT", FIELD_TEXT, "statement_text", "its text (parallel:)"),
    OPTION("index", "N", FIELD_NUMBER, "statement_index", "its place in the program"),
    OPTION("parent", "ID", FIELD_NUMBER, "parent_id", "the execution that it is part of"),
    ROLE,
    FIELDS_END};

static const struct field branch_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("PARALLEL", FIELD_TEXT, "parallel_id", "the block"),
    OPERAND("BRANCH", FIELD_TEXT, "branch", "the branch that is over"),
    OPTION("failed", "ERROR", FIELD_TEXT, "error_message", "it failed, with this"),
    ROLE,
    FIELDS_END};

static int prepare_branch(struct verb_call *call)
{
    if (verb_text(call->args, "failed") != NULL)
        call->type = "parallel.branch_failed";
    return 0;
}

static const struct field join_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("PARALLEL", FIELD_TEXT, "parallel_id", "the block"), ROLE, FIELDS_END};

static const struct field loop_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("STATEMENT", FIELD_BODY, "statement_text", "the statement's text"),
    OPTION("condition", "TEXT", FIELD_TEXT, "condition", "until, or while, what"),
    OPTION("max", "N", FIELD_NUMBER, "max", "how many iterations there may be"),
    OPTION("loop-id", "ID", FIELD_TEXT, "loop_id", "the loop's id (l1, l2, …)"),
    OPTION("index", "N", FIELD_NUMBER, "statement_index", "its place in the program"),
    OPTION("parent", "ID", FIELD_NUMBER, "parent_id", "the execution that it is part of"),
    ROLE,
    FIELDS_END};

static const struct field iterate_fields[] = {OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
                                              OPERAND("LOOP", FIELD_TEXT, "loop_id", "the loop"),
                                              ROLE, FIELDS_END};

static const struct field exit_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("LOOP", FIELD_TEXT, "loop_id", "the loop"),
    OPTION("reason", "TEXT", FIELD_TEXT, "exit_reason", "why it ended (done)"), ROLE, FIELDS_END};

/* ---- Agents and imports ---- */

static int prepare_agent(struct verb_call *call)
{
    const char *scope = verb_text(call->args, "scope");
    if (scope == NULL || strcmp(scope, "execution") == 0 || strcmp(scope, "custom") == 0)
        return 0;
    const char *pack = strcmp(scope, "user") == 0 ? "prose-user" : "prose-agents";
    annal_error err = {0};
    annal_status status = annal_index_has_pack(call->index, pack, &err);
    if (status == ANNAL_ERR_NOTFOUND)
        return fail_storage("pack %s is not on in this store: annal pack enable %s", pack, pack);
    return status < 0 ? fail_error(&err) : verb_set_session(call, "pagent_%s", scope);
}

#define SCOPE                                                                                      \
    OPTION_WITH("scope", "SCOPE", FIELD_TEXT, "scope", "whose agent: execution (default), ...",    \
                .choices = "execution|project|user|custom")

static const struct field remember_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("AGENT", FIELD_TEXT, "name", "the agent's name"),
    OPERAND("MEMORY", FIELD_BODY, "memory", "what it shall know; - reads standard input"), SCOPE,
    FIELDS_END};

static const struct field segment_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("AGENT", FIELD_TEXT, "agent_name", "the agent's name"),
    OPTION("prompt", "TEXT", FIELD_BODY, "prompt", "what it was asked"),
    SCOPE,
    OPTION("summary", "TEXT", FIELD_BODY, "summary", "what came of it"),
    FIELDS_END};

static const struct field import_fields[] = {
    OPERAND("RUN", FIELD_TEXT, NULL, "the run's id"),
    OPERAND("ALIAS", FIELD_TEXT, "alias", "how the program calls it"),
    OPERAND("URL", FIELD_TEXT, "source_url", "where it comes from"),
    OPTION("inputs", "JSON", FIELD_JSON, "inputs_schema", "what it takes"),
    OPTION("outputs", "JSON", FIELD_JSON, "outputs_schema", "what it gives"),
    FIELDS_END};

/* ---- All of them ---- */

static const struct command prose_verbs[] = {
    {.name = "init",
     .summary = "begin a run: its folder, its database, its program",
     .about = "Makes runs/RUN/ with state.db, which the sqlite3 shell may write (give it\n"
              "-cmd '.timeout 5000', or it fails when somebody else is writing), and a copy of\n"
              "the program in program.prose. It stands in the store's folder prose, or where\n"
              "'annal pack enable prose --at DIR' said.",
     .examples = "  annal prose init --program plan.prose\n"
                 "  annal prose init 20260116-143052-a7b3c9\n",
     .fields = init_fields,
     .type = "run.started",
     .prepare = prose_prepare_init,
     .finish = prose_finish_init,
     .run = verb_append},
    {.name = "bind",
     .summary = "give a name a value",
     .about = "Prints where it stands. A value of more than 100 KB goes into a file,\n"
              "attachments/NAME.md beside the database, durable before the event.",
     .examples = "  annal prose bind R research \"AI safety research covers ...\"\n"
                 "  annal prose bind R result --value-file out.md --execution 43\n"
                 "  annal prose bind R - \"of a session without a name\"\n",
     .fields = bind_fields,
     .type = "binding.set",
     .session = "prose_{RUN}",
     .prepare = prose_prepare_bind,
     .finish = prose_finish_bind,
     .run = verb_append},
    {.name = "get",
     .summary = "what a name means, seen from an execution",
     .about = "Looks in the execution, then in those that it is part of, then at the root.",
     .examples = "  annal prose get R result --execution 43\n",
     .fields = get_fields,
     .session = "prose_{RUN}",
     .sql = get_sql,
     .run = verb_select},
    {.name = "resume",
     .summary = "what is to be known to go on with a run",
     .about = "Prints the run, the position, what is under way, parallel blocks, where bindings\n"
              "stand, and agents. That it goes on is recorded by 'annal prose continue'.",
     .examples = "  annal prose resume 20260116-143052-a7b3c9\n",
     .fields = run_fields,
     .session = "prose_{RUN}",
     .sql = resume_sql,
     .run = verb_select},
    {.name = "sync",
     .summary = "bring what the sqlite3 shell wrote into the journal",
     .about = "Every look at a run does so, too.",
     .examples = "  annal prose sync\n",
     .fields = sync_fields,
     .run = prose_sync},
    {.name = "attachments",
     .summary = "check the files of large values",
     .about = "Compares them with what was stored with their events.",
     .examples = "  annal prose attachments R --restore\n",
     .fields = attachments_fields,
     .session = "prose_{RUN}",
     .run = prose_attachments},
    {.name = "complete-run",
     .summary = "end a run: everything is done",
     .examples = "  annal prose complete-run 20260116-143052-a7b3c9\n",
     .fields = over_fields,
     .type = "run.completed",
     .session = "prose_{RUN}",
     .said = "run {RUN} completed",
     .run = verb_append},
    {.name = "fail-run",
     .summary = "end a run: it failed",
     .examples = "  annal prose fail-run 20260116-143052-a7b3c9 --error \"no budget left\"\n",
     .fields = over_fields,
     .type = "run.failed",
     .session = "prose_{RUN}",
     .said = "run {RUN} failed",
     .run = verb_append},
    {.name = "interrupt",
     .summary = "say that a run stopped in the middle",
     .examples = "  annal prose interrupt 20260116-143052-a7b3c9\n",
     .fields = over_fields,
     .type = "run.interrupted",
     .session = "prose_{RUN}",
     .said = "run {RUN} interrupted",
     .run = verb_append},
    {.name = "continue",
     .summary = "say that a run goes on",
     .about = "What is to be done is what annal prose resume prints.",
     .examples = "  annal prose continue 20260116-143052-a7b3c9\n",
     .fields = over_fields,
     .type = "run.resumed",
     .session = "prose_{RUN}",
     .said = "run {RUN} goes on",
     .run = verb_append},
    {.name = "exec",
     .summary = "begin a statement, or a call of a block",
     .about = "Prints the id of the execution: the next one, never one that was used before.",
     .examples = "  annal prose exec R 'let research = session: researcher' --index 3\n",
     .fields = exec_fields,
     .type = "execution.started",
     .session = "prose_{RUN}",
     .said = "execution {execution_id} started",
     .run = verb_append},
    {.name = "executing",
     .summary = "begin what was pending",
     .examples = "  annal prose executing R 4\n",
     .fields = end_fields,
     .type = "execution.executing",
     .session = "prose_{RUN}",
     .said = "execution {execution_id} is under way",
     .run = verb_append},
    {.name = "complete",
     .summary = "end an execution: it is done",
     .examples = "  annal prose complete R 4\n",
     .fields = end_fields,
     .type = "execution.completed",
     .session = "prose_{RUN}",
     .said = "execution {execution_id} completed",
     .run = verb_append},
    {.name = "fail",
     .summary = "end an execution: it failed",
     .examples = "  annal prose fail R 4 \"Connection timeout after 30s\"\n",
     .fields = fail_fields,
     .type = "execution.failed",
     .session = "prose_{RUN}",
     .said = "execution {execution_id} failed",
     .run = verb_append},
    {.name = "skip",
     .summary = "end an execution: it is not needed",
     .examples = "  annal prose skip R 4\n",
     .fields = end_fields,
     .type = "execution.skipped",
     .session = "prose_{RUN}",
     .said = "execution {execution_id} skipped",
     .run = verb_append},
    {.name = "retry",
     .summary = "count one more attempt",
     .examples = "  annal prose retry R 4 --max 3 --error \"rate limit\"\n",
     .fields = retry_fields,
     .type = "retry.attempted",
     .session = "prose_{RUN}",
     .said = "execution {execution_id}: retry {attempt}",
     .run = verb_append},
    {.name = "metadata",
     .summary = "put something into an execution's metadata",
     .examples = "  annal prose metadata R 4 '{\"tokens\":812}'\n",
     .fields = metadata_fields,
     .type = "execution.metadata_set",
     .session = "prose_{RUN}",
     .said = "execution {execution_id}: metadata set",
     .run = verb_append},
    {.name = "parallel",
     .summary = "begin a parallel block with its branches",
     .about = "The branches get the ids behind the block's own, in the order given.",
     .examples = "  annal prose parallel R a b c --strategy any --count 2\n",
     .fields = parallel_fields,
     .type = "parallel.started",
     .session = "prose_{RUN}",
     .said = "parallel block {parallel_id} is execution {execution_id}",
     .run = verb_append},
    {.name = "branch",
     .summary = "end a branch of a parallel block",
     .examples = "  annal prose branch R p1 a\n  annal prose branch R p1 b --failed \"timeout\"\n",
     .fields = branch_fields,
     .type = "parallel.branch_completed",
     .session = "prose_{RUN}",
     .said = "branch {branch} of {parallel_id} is over",
     .prepare = prepare_branch,
     .run = verb_append},
    {.name = "join",
     .summary = "end a parallel block, when its branches decide it",
     .about = "Branches that are still open are cancelled: skipped.",
     .examples = "  annal prose join R p1\n",
     .fields = join_fields,
     .type = "parallel.joined",
     .session = "prose_{RUN}",
     .said = "parallel block {parallel_id}: {result}",
     .run = verb_append},
    {.name = "loop",
     .summary = "begin a loop",
     .examples = "  annal prose loop R 'loop until **done** (max: 5):' --max 5\n",
     .fields = loop_fields,
     .type = "loop.started",
     .session = "prose_{RUN}",
     .said = "loop {loop_id} is execution {execution_id}",
     .run = verb_append},
    {.name = "iterate",
     .summary = "begin the next iteration of a loop",
     .examples = "  annal prose iterate R l1\n",
     .fields = iterate_fields,
     .type = "loop.iterated",
     .session = "prose_{RUN}",
     .said = "loop {loop_id}: iteration {iteration}",
     .run = verb_append},
    {.name = "exit",
     .summary = "end a loop",
     .examples = "  annal prose exit R l1 --reason \"condition met\"\n",
     .fields = exit_fields,
     .type = "loop.exited",
     .session = "prose_{RUN}",
     .said = "loop {loop_id} is over",
     .run = verb_append},
    {.name = "remember",
     .summary = "set an agent's memory",
     .about = "Agents of scope project and user stand in databases of their own, of the packs\n"
              "prose-agents and prose-user, whatever RUN is.",
     .examples = "  annal prose remember R captain - < memory.md\n",
     .fields = remember_fields,
     .type = "agent.memory_set",
     .session = "prose_{RUN}",
     .said = "agent {name}: memory set",
     .prepare = prepare_agent,
     .run = verb_append},
    {.name = "segment",
     .summary = "record one invocation of an agent",
     .examples = "  annal prose segment R captain --prompt \"review\" --summary \"two bugs\"\n",
     .fields = segment_fields,
     .type = "agent.segment_recorded",
     .session = "prose_{RUN}",
     .said = "agent {agent_name}: segment {segment_number}",
     .prepare = prepare_agent,
     .run = verb_append},
    {.name = "import",
     .summary = "register an imported program",
     .examples = "  annal prose import R research https://example.org/research.prose\n",
     .fields = import_fields,
     .type = "import.registered",
     .session = "prose_{RUN}",
     .said = "import {alias} registered",
     .run = verb_append},
    {0}};

const struct noun noun_prose = {.name = "prose",
                                .summary = "runs of OpenProse programs",
                                .pack = "prose",
                                .verbs = prose_verbs};
