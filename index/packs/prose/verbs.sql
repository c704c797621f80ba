-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun prose   "runs of OpenProse programs"

-- verb prose init   appends run.started   "begin a run: its folder, its database, its program"
--   [RUN]           text  "the run's id (made: the time and six random letters)"
--   --program FILE  text  "the program; a copy is kept beside the database"
--   about    Makes runs/RUN/ with state.db, which the sqlite3 shell may write (give it
--            -cmd '.timeout 5000', or it fails when somebody else is writing), and a copy of
--            the program in program.prose. It stands in the store's folder prose, or where
--            'annal pack enable prose --at DIR' said.
--   example  annal prose init --program plan.prose
--            annal prose init 20260116-143052-a7b3c9

-- verb prose bind   appends binding.set   session prose_{RUN}   "give a name a value"
--   RUN                 text                                "the run's id"
--   NAME                text                "its name; - takes the next of anon_001, anon_002, ..."
--   [VALUE]             text                                "its value; - reads standard input"
--   --value-file FILE   text                                "a file with its value"
--   --kind KIND         text kind (input|output|let|const)  "input, output, let (default), const"
--   --execution ID      number execution_id                 "the block's execution (root)"
--   --source STATEMENT  text source_statement               "the statement that gave it"
--   --summary TEXT      text                           "what the table has in place of a large value"
--   about    Prints where it stands. A value of more than 100 KB goes into a file,
--            attachments/NAME.md beside the database, durable before the event.
--   example  annal prose bind R research "AI safety research covers ..."
--            annal prose bind R result --value-file out.md --execution 43
--            annal prose bind R - "of a session without a name"

-- verb prose get   selects   session prose_{RUN}   "what a name means, seen from an execution"
--   RUN             text    "the run's id"
--   NAME            text    "the binding"
--   --execution ID  number  "as seen from this execution (root)"
--   about    Looks in the execution, then in those that it is part of, then at the root.
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

-- verb prose resume   selects   session prose_{RUN}   "what is to be known to go on with a run"
--   RUN       text  "the run's id"
--   about    Prints the run, the position, what is under way, parallel blocks, where bindings
--            stand, and agents. That it goes on is recorded by 'annal prose continue'.
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

-- verb prose sync   runs   "bring what the sqlite3 shell wrote into the journal"
--   [RUN]     text  "the run's id (all runs, and all agents)"
--   about    Every look at a run does so, too.
--   example  annal prose sync

-- verb prose attachments   runs   session prose_{RUN}   "check the files of large values"
--   RUN        text  "the run's id"
--   --restore  flag  "write again what is missing or changed"
--   about    Compares them with what was stored with their events.
--   example  annal prose attachments R --restore

-- verb prose complete-run   appends run.completed   session prose_{RUN}
--      "end a run: everything is done"
--   RUN            text           "the run's id"
--   --error TEXT   text error     "why"
--   --override     flag override  "also when the run is over; needs --reason"
--   --reason TEXT  text reason    "why a final status is left"
--   says     run {RUN} completed
--   example  annal prose complete-run 20260116-143052-a7b3c9

-- verb prose fail-run   appends run.failed   session prose_{RUN}   "end a run: it failed"
--   RUN            text           "the run's id"
--   --error TEXT   text error     "why"
--   --override     flag override  "also when the run is over; needs --reason"
--   --reason TEXT  text reason    "why a final status is left"
--   says     run {RUN} failed
--   example  annal prose fail-run 20260116-143052-a7b3c9 --error "no budget left"

-- verb prose interrupt   appends run.interrupted   session prose_{RUN}
--      "say that a run stopped in the middle"
--   RUN            text           "the run's id"
--   --error TEXT   text error     "why"
--   --override     flag override  "also when the run is over; needs --reason"
--   --reason TEXT  text reason    "why a final status is left"
--   says     run {RUN} interrupted
--   example  annal prose interrupt 20260116-143052-a7b3c9

-- verb prose continue   appends run.resumed   session prose_{RUN}   "say that a run goes on"
--   RUN            text           "the run's id"
--   --error TEXT   text error     "why"
--   --override     flag override  "also when the run is over; needs --reason"
--   --reason TEXT  text reason    "why a final status is left"
--   says     run {RUN} goes on
--   about    What is to be done is what annal prose resume prints.
--   example  annal prose continue 20260116-143052-a7b3c9

-- verb prose exec   appends execution.started   session prose_{RUN}
--      "begin a statement, or a call of a block"
--   RUN              text                             "the run's id"
--   STATEMENT        body statement_text              "the statement's text"
--   --index N        number statement_index           "its place in the program"
--   --parent ID      number parent_id                 "the execution that it is part of"
--   --status STATUS  text status (pending|executing)  "pending or executing (executing)"
--   --metadata JSON  json metadata                    "anything else"
--   --max-depth N    number max_depth                 "how deep blocks may nest (100)"
--   --role ROLE      text role (vm|subagent)          "who asks: vm, subagent"
--   says     execution {execution_id} started
--   about    Prints the id of the execution: the next one, never one that was used before.
--   example  annal prose exec R 'let research = session: researcher' --index 3

-- verb prose executing   appends execution.executing   session prose_{RUN}
--      "begin what was pending"
--   RUN            text                     "the run's id"
--   ID             number execution_id      "the execution"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   --override     flag override            "also when it is over; needs --reason"
--   --reason TEXT  text reason              "why a final status is left"
--   says     execution {execution_id} is under way
--   example  annal prose executing R 4

-- verb prose complete   appends execution.completed   session prose_{RUN}
--      "end an execution: it is done"
--   RUN            text                     "the run's id"
--   ID             number execution_id      "the execution"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   --override     flag override            "also when it is over; needs --reason"
--   --reason TEXT  text reason              "why a final status is left"
--   says     execution {execution_id} completed
--   example  annal prose complete R 4

-- verb prose fail   appends execution.failed   session prose_{RUN}   "end an execution: it failed"
--   RUN            text                     "the run's id"
--   ID             number execution_id      "the execution"
--   ERROR          body error_message       "what went wrong"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   --override     flag override            "also when it is over; needs --reason"
--   --reason TEXT  text reason              "why a final status is left"
--   says     execution {execution_id} failed
--   example  annal prose fail R 4 "Connection timeout after 30s"

-- verb prose skip   appends execution.skipped   session prose_{RUN}
--      "end an execution: it is not needed"
--   RUN            text                     "the run's id"
--   ID             number execution_id      "the execution"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   --override     flag override            "also when it is over; needs --reason"
--   --reason TEXT  text reason              "why a final status is left"
--   says     execution {execution_id} skipped
--   example  annal prose skip R 4

-- verb prose retry   appends retry.attempted   session prose_{RUN}   "count one more attempt"
--   RUN           text                     "the run's id"
--   ID            number execution_id      "the execution"
--   --max N       number max_retries       "how many retries there may be"
--   --error TEXT  text error               "what the last attempt failed with"
--   --role ROLE   text role (vm|subagent)  "who asks: vm, subagent"
--   says     execution {execution_id}: retry {attempt}
--   example  annal prose retry R 4 --max 3 --error "rate limit"

-- verb prose metadata   appends execution.metadata_set   session prose_{RUN}
--      "put something into an execution's metadata"
--   RUN          text                     "the run's id"
--   ID           number execution_id      "the execution"
--   JSON         json set                 "an object, {"model":"…"}; @FILE reads it"
--   --role ROLE  text role (vm|subagent)  "who asks: vm, subagent"
--   says     execution {execution_id}: metadata set
--   example  annal prose metadata R 4 '{"tokens":812}'

-- verb prose parallel   appends parallel.started   session prose_{RUN}
--      "begin a parallel block with its branches"
--   RUN               text                                  "the run's id"
--   BRANCH            list branches                         "the names of its branches"
--   --parallel-id ID  text parallel_id                      "the block's id (p1, p2, …)"
--   --strategy S      text strategy (all|first|any)         "when it is decided (all)"
--   --count N         number count                          "with any: how many must succeed (1)"
--   --on-fail POLICY  text failure (fail-fast|continue|ignore)  "fail-fast, continue, ignore"
--   --statement TEXT  text statement_text                   "its text (parallel:)"
--   --index N         number statement_index                "its place in the program"
--   --parent ID       number parent_id                      "the execution that it is part of"
--   --role ROLE       text role (vm|subagent)               "who asks: vm, subagent"
--   says     parallel block {parallel_id} is execution {execution_id}
--   about    The branches get the ids behind the block's own, in the order given.
--   example  annal prose parallel R a b c --strategy any --count 2

-- verb prose branch   appends parallel.branch_completed   session prose_{RUN}
--      "end a branch of a parallel block"
--   RUN             text                     "the run's id"
--   PARALLEL        text parallel_id         "the block"
--   BRANCH          text branch              "the branch that is over"
--   --failed ERROR  text error_message       "it failed, with this"
--   --role ROLE     text role (vm|subagent)  "who asks: vm, subagent"
--   says     branch {branch} of {parallel_id} is over
--   example  annal prose branch R p1 a
--            annal prose branch R p1 b --failed "timeout"

-- verb prose join   appends parallel.joined   session prose_{RUN}
--      "end a parallel block, when its branches decide it"
--   RUN          text                     "the run's id"
--   PARALLEL     text parallel_id         "the block"
--   --role ROLE  text role (vm|subagent)  "who asks: vm, subagent"
--   says     parallel block {parallel_id}: {result}
--   about    Branches that are still open are cancelled: skipped.
--   example  annal prose join R p1

-- verb prose loop   appends loop.started   session prose_{RUN}   "begin a loop"
--   RUN               text                     "the run's id"
--   STATEMENT         body statement_text      "the statement's text"
--   --condition TEXT  text condition           "until, or while, what"
--   --max N           number max               "how many iterations there may be"
--   --loop-id ID      text loop_id             "the loop's id (l1, l2, …)"
--   --index N         number statement_index   "its place in the program"
--   --parent ID       number parent_id         "the execution that it is part of"
--   --role ROLE       text role (vm|subagent)  "who asks: vm, subagent"
--   says     loop {loop_id} is execution {execution_id}
--   example  annal prose loop R 'loop until **done** (max: 5):' --max 5

-- verb prose iterate   appends loop.iterated   session prose_{RUN}
--      "begin the next iteration of a loop"
--   RUN          text                     "the run's id"
--   LOOP         text loop_id             "the loop"
--   --role ROLE  text role (vm|subagent)  "who asks: vm, subagent"
--   says     loop {loop_id}: iteration {iteration}
--   example  annal prose iterate R l1

-- verb prose exit   appends loop.exited   session prose_{RUN}   "end a loop"
--   RUN            text                     "the run's id"
--   LOOP           text loop_id             "the loop"
--   --reason TEXT  text exit_reason         "why it ended (done)"
--   --role ROLE    text role (vm|subagent)  "who asks: vm, subagent"
--   says     loop {loop_id} is over
--   example  annal prose exit R l1 --reason "condition met"

-- verb prose remember   appends agent.memory_set   session prose_{RUN}   "set an agent's memory"
--   RUN            text                                  "the run's id"
--   AGENT          text name                             "the agent's name"
--   MEMORY         body memory                         "what it shall know; - reads standard input"
--   --scope SCOPE  text scope (execution|project|user|custom)
--                  "whose agent: execution (default), ..."
--   says     agent {name}: memory set
--   about    Agents of scope project and user stand in databases of their own, of the packs
--            prose-agents and prose-user, whatever RUN is.
--   example  annal prose remember R captain - < memory.md

-- verb prose segment   appends agent.segment_recorded   session prose_{RUN}
--      "record one invocation of an agent"
--   RUN             text                                  "the run's id"
--   AGENT           text agent_name                       "the agent's name"
--   --prompt TEXT   body prompt                           "what it was asked"
--   --scope SCOPE   text scope (execution|project|user|custom)
--                   "whose agent: execution (default), ..."
--   --summary TEXT  body summary                          "what came of it"
--   says     agent {agent_name}: segment {segment_number}
--   example  annal prose segment R captain --prompt "review" --summary "two bugs"

-- verb prose import   appends import.registered   session prose_{RUN}
--      "register an imported program"
--   RUN             text                 "the run's id"
--   ALIAS           text alias           "how the program calls it"
--   URL             text source_url      "where it comes from"
--   --inputs JSON   json inputs_schema   "what it takes"
--   --outputs JSON  json outputs_schema  "what it gives"
--   says     import {alias} registered
--   example  annal prose import R research https://example.org/research.prose
