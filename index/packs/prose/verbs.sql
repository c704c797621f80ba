-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun prose   "runs of OpenProse programs"

-- verb prose init   appends run.started   "create a run: its folder, its database, its program"
--   [RUN]           text  "run id (the time and six random letters)"
--   --program FILE  text  "the program; a copy is stored beside the database"
--   about    Creates runs/RUN/ with state.db, which the sqlite3 shell may write (use -cmd
--            '.timeout 5000', or it fails while another program is writing), and a copy of
--            the program in program.prose. The folder is below the store's folder prose, or
--            below the directory of 'annal pack enable prose --at DIR'.
--   example  annal prose init --program plan.prose
--            annal prose init 20260116-143052-a7b3c9

-- verb prose bind   appends binding.set   session prose_{RUN}   "set the value of a name"
--   RUN                 text                                "run id"
--   NAME                text                "the name; - uses the next of anon_001, anon_002, ..."
--   [VALUE]             text                                "the value; - reads standard input"
--   --value-file FILE   text                                "file with the value"
--   --kind KIND         text kind (input|output|let|const)  "input, output, let (default), const"
--   --execution ID      number execution_id                 "execution of the block (root)"
--   --source STATEMENT  text source_statement               "statement that computed it"
--   --summary TEXT      text                           "text for the table instead of a large value"
--   about    Prints where the value is stored. A value of more than 100 KB is stored in a
--            file, attachments/NAME.md beside the database, which is durable before the
--            event.
--   example  annal prose bind R research "AI safety research covers ..."
--            annal prose bind R result --value-file out.md --execution 43
--            annal prose bind R - "from an unnamed session"

-- verb prose get   selects   session prose_{RUN}   "print the value of a name in an execution"
--   RUN             text    "run id"
--   NAME            text    "the binding"
--   --execution ID  number  "execution in which it is used (root)"
--   about    Searches the execution, then its parents, then the root.
--   example  annal prose get R result --execution 43
WITH RECURSIVE up(id, parent_id, depth) AS ( -- the call stack, and then the root
    SELECT id, parent_id, 0 FROM prose.execution WHERE id = ?3
    UNION
    SELECT e.id, e.parent_id, depth + 1
    FROM prose.execution e JOIN up ON e.id = up.parent_id WHERE depth < 100000)
SELECT b.name, b.execution_id, b.kind, b.value, b.attachment_path
FROM prose.bindings b LEFT JOIN up ON up.id = b.execution_id
WHERE b.name = ?2 AND (b.execution_id IS NULL OR up.id IS NOT NULL) AND ?1 IS NOT NULL
ORDER BY up.depth IS NULL, up.depth LIMIT 1;

-- verb prose resume   selects   session prose_{RUN}   "print what is needed to continue a run"
--   RUN       text  "run id"
--   about    Prints the run, the position, executions in progress, parallel blocks, the
--            places of bindings, and agents. 'annal prose continue' records that the run
--            continues.
--   example  annal prose resume 20260116-143052-a7b3c9
SELECT 'run' AS what, NULL AS execution_id, id AS name, status, program_path AS detail
FROM prose.run
UNION ALL
SELECT * FROM (SELECT 'position', id, statement_text, status, statement_index
               FROM prose.execution WHERE status = 'executing' ORDER BY id DESC LIMIT 1)
UNION ALL
SELECT what, execution_id, statement_text, status, metadata FROM prose.x_resume
UNION ALL
SELECT 'parallel', execution_id, parallel_id, COALESCE(result, status),
       pending || ' of ' || branches || ' branches open'
FROM prose.x_parallel_join WHERE status = 'executing'
UNION ALL
SELECT 'binding', execution_id, name, kind, COALESCE(attachment_path, 'bindings table')
FROM prose.bindings
UNION ALL
SELECT 'agent', NULL, name, scope, length(memory) || ' characters of memory'
FROM prose.agents WHERE ?1 IS NOT NULL;

-- verb prose sync   runs   "append what the sqlite3 shell wrote to the journal"
--   [RUN]     text  "run id (all runs, and all agents)"
--   about    Every other verb that reads a run does so, too.
--   example  annal prose sync

-- verb prose attachments   runs   session prose_{RUN}   "check the files of large values"
--   RUN        text  "run id"
--   --restore  flag  "write missing or changed files again"
--   about    Compares the files with the values that were stored with their events.
--   example  annal prose attachments R --restore

-- verb prose complete-run   appends run.completed   session prose_{RUN}
--      "end a run as completed"
--   RUN            text           "run id"
--   --error TEXT   text error     "reason"
--   --override     flag override  "also if the run has ended; needs --reason"
--   --reason TEXT  text reason    "reason to leave a final status"
--   says     run {RUN} completed
--   example  annal prose complete-run 20260116-143052-a7b3c9

-- verb prose fail-run   appends run.failed   session prose_{RUN}   "end a run as failed"
--   RUN            text           "run id"
--   --error TEXT   text error     "reason"
--   --override     flag override  "also if the run has ended; needs --reason"
--   --reason TEXT  text reason    "reason to leave a final status"
--   says     run {RUN} failed
--   example  annal prose fail-run 20260116-143052-a7b3c9 --error "no budget left"

-- verb prose interrupt   appends run.interrupted   session prose_{RUN}
--      "record that a run was interrupted"
--   RUN            text           "run id"
--   --error TEXT   text error     "reason"
--   --override     flag override  "also if the run has ended; needs --reason"
--   --reason TEXT  text reason    "reason to leave a final status"
--   says     run {RUN} interrupted
--   example  annal prose interrupt 20260116-143052-a7b3c9

-- verb prose continue   appends run.resumed   session prose_{RUN}   "record that a run continues"
--   RUN            text           "run id"
--   --error TEXT   text error     "reason"
--   --override     flag override  "also if the run has ended; needs --reason"
--   --reason TEXT  text reason    "reason to leave a final status"
--   says     run {RUN} continues
--   about    'annal prose resume' prints what is left to do.
--   example  annal prose continue 20260116-143052-a7b3c9

-- verb prose exec   appends execution.started   session prose_{RUN}
--      "start a statement, or a call of a block"
--   RUN              text                             "run id"
--   STATEMENT        body statement_text              "text of the statement"
--   --index N        number statement_index           "place in the program"
--   --parent ID      number parent_id                 "execution of which it is a part"
--   --status STATUS  text status (pending|executing)  "pending or executing (executing)"
--   --metadata JSON  json metadata                    "all other data"
--   --max-depth N    number max_depth                 "maximum nesting of blocks (100)"
--   --role ROLE      text role (vm|subagent)          "caller: vm, subagent"
--   says     execution {execution_id} started
--   about    Prints the id of the execution: the next id, which was never used before.
--   example  annal prose exec R 'let research = session: researcher' --index 3

-- verb prose executing   appends execution.executing   session prose_{RUN}
--      "start a pending execution"
--   RUN            text                     "run id"
--   ID             number execution_id      "the execution"
--   --role ROLE    text role (vm|subagent)  "caller: vm, subagent"
--   --override     flag override            "also if it has ended; needs --reason"
--   --reason TEXT  text reason              "reason to leave a final status"
--   says     execution {execution_id} is executing
--   example  annal prose executing R 4

-- verb prose complete   appends execution.completed   session prose_{RUN}
--      "end an execution as completed"
--   RUN            text                     "run id"
--   ID             number execution_id      "the execution"
--   --role ROLE    text role (vm|subagent)  "caller: vm, subagent"
--   --override     flag override            "also if it has ended; needs --reason"
--   --reason TEXT  text reason              "reason to leave a final status"
--   says     execution {execution_id} completed
--   example  annal prose complete R 4

-- verb prose fail   appends execution.failed   session prose_{RUN}   "end an execution as failed"
--   RUN            text                     "run id"
--   ID             number execution_id      "the execution"
--   ERROR          body error_message       "error message"
--   --role ROLE    text role (vm|subagent)  "caller: vm, subagent"
--   --override     flag override            "also if it has ended; needs --reason"
--   --reason TEXT  text reason              "reason to leave a final status"
--   says     execution {execution_id} failed
--   example  annal prose fail R 4 "Connection timeout after 30s"

-- verb prose skip   appends execution.skipped   session prose_{RUN}
--      "end an execution as skipped"
--   RUN            text                     "run id"
--   ID             number execution_id      "the execution"
--   --role ROLE    text role (vm|subagent)  "caller: vm, subagent"
--   --override     flag override            "also if it has ended; needs --reason"
--   --reason TEXT  text reason              "reason to leave a final status"
--   says     execution {execution_id} skipped
--   example  annal prose skip R 4

-- verb prose retry   appends retry.attempted   session prose_{RUN}   "count another attempt"
--   RUN           text                     "run id"
--   ID            number execution_id      "the execution"
--   --max N       number max_retries       "maximum number of retries"
--   --error TEXT  text error               "error of the last attempt"
--   --role ROLE   text role (vm|subagent)  "caller: vm, subagent"
--   says     execution {execution_id}: retry {attempt}
--   example  annal prose retry R 4 --max 3 --error "rate limit"

-- verb prose metadata   appends execution.metadata_set   session prose_{RUN}
--      "add to the metadata of an execution"
--   RUN          text                     "run id"
--   ID           number execution_id      "the execution"
--   JSON         json set                 "an object, {"model":"…"}; @FILE reads it"
--   --role ROLE  text role (vm|subagent)  "caller: vm, subagent"
--   says     execution {execution_id}: metadata set
--   example  annal prose metadata R 4 '{"tokens":812}'

-- verb prose parallel   appends parallel.started   session prose_{RUN}
--      "start a parallel block with its branches"
--   RUN               text                                  "run id"
--   BRANCH            list branches                         "names of its branches"
--   --parallel-id ID  text parallel_id                      "block id (p1, p2, …)"
--   --strategy S      text strategy (all|first|any)         "when it ends (all)"
--   --count N         number count                          "with any: number that must succeed (1)"
--   --on-fail POLICY  text failure (fail-fast|continue|ignore)  "fail-fast, continue, ignore"
--   --statement TEXT  text statement_text                   "text of the statement (parallel:)"
--   --index N         number statement_index                "place in the program"
--   --parent ID       number parent_id                      "execution of which it is a part"
--   --role ROLE       text role (vm|subagent)               "caller: vm, subagent"
--   says     parallel block {parallel_id} is execution {execution_id}
--   about    The ids of the branches follow the id of the block, in the given order.
--   example  annal prose parallel R a b c --strategy any --count 2

-- verb prose branch   appends parallel.branch_completed   session prose_{RUN}
--      "end a branch of a parallel block"
--   RUN             text                     "run id"
--   PARALLEL        text parallel_id         "the block"
--   BRANCH          text branch              "branch that has ended"
--   --failed ERROR  text error_message       "error message, if it failed"
--   --role ROLE     text role (vm|subagent)  "caller: vm, subagent"
--   says     branch {branch} of {parallel_id} has ended
--   example  annal prose branch R p1 a
--            annal prose branch R p1 b --failed "timeout"

-- verb prose join   appends parallel.joined   session prose_{RUN}
--      "end a parallel block, once its branches decide it"
--   RUN          text                     "run id"
--   PARALLEL     text parallel_id         "the block"
--   --role ROLE  text role (vm|subagent)  "caller: vm, subagent"
--   says     parallel block {parallel_id}: {result}
--   about    Branches that are still open are skipped.
--   example  annal prose join R p1

-- verb prose loop   appends loop.started   session prose_{RUN}   "start a loop"
--   RUN               text                     "run id"
--   STATEMENT         body statement_text      "text of the statement"
--   --condition TEXT  text condition           "condition of until or while"
--   --max N           number max               "maximum number of iterations"
--   --loop-id ID      text loop_id             "loop id (l1, l2, …)"
--   --index N         number statement_index   "place in the program"
--   --parent ID       number parent_id         "execution of which it is a part"
--   --role ROLE       text role (vm|subagent)  "caller: vm, subagent"
--   says     loop {loop_id} is execution {execution_id}
--   example  annal prose loop R 'loop until **done** (max: 5):' --max 5

-- verb prose iterate   appends loop.iterated   session prose_{RUN}
--      "start the next iteration of a loop"
--   RUN          text                     "run id"
--   LOOP         text loop_id             "the loop"
--   --role ROLE  text role (vm|subagent)  "caller: vm, subagent"
--   says     loop {loop_id}: iteration {iteration}
--   example  annal prose iterate R l1

-- verb prose exit   appends loop.exited   session prose_{RUN}   "end a loop"
--   RUN            text                     "run id"
--   LOOP           text loop_id             "the loop"
--   --reason TEXT  text exit_reason         "reason of its end (done)"
--   --role ROLE    text role (vm|subagent)  "caller: vm, subagent"
--   says     loop {loop_id} has ended
--   example  annal prose exit R l1 --reason "condition met"

-- verb prose remember   appends agent.memory_set   session prose_{RUN}   "set an agent's memory"
--   RUN            text                                  "run id"
--   AGENT          text name                             "name of the agent"
--   MEMORY         body memory                         "what it is to know; - reads standard input"
--   --scope SCOPE  text scope (execution|project|user|custom)
--                  "scope of the agent (execution)"
--   says     agent {name}: memory set
--   about    Agents of scope project and user are stored in databases of their own, of the
--            packs prose-agents and prose-user, whatever RUN is.
--   example  annal prose remember R captain - < memory.md

-- verb prose segment   appends agent.segment_recorded   session prose_{RUN}
--      "record one invocation of an agent"
--   RUN             text                                  "run id"
--   AGENT           text agent_name                       "name of the agent"
--   --prompt TEXT   body prompt                           "prompt of the invocation"
--   --scope SCOPE   text scope (execution|project|user|custom)
--                   "scope of the agent (execution)"
--   --summary TEXT  body summary                          "result of the invocation"
--   says     agent {agent_name}: segment {segment_number}
--   example  annal prose segment R captain --prompt "review" --summary "two bugs"

-- verb prose import   appends import.registered   session prose_{RUN}
--      "register an imported program"
--   RUN             text                 "run id"
--   ALIAS           text alias           "name of the import in the program"
--   URL             text source_url      "URL of the program"
--   --inputs JSON   json inputs_schema   "schema of its inputs"
--   --outputs JSON  json outputs_schema  "schema of its outputs"
--   says     registered import {alias}
--   example  annal prose import R research https://example.org/research.prose
