-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun project   "workspaces with their settings (agentweaver)"

-- verb project create   appends project.created   session proj_{PROJECT}   "begin a project"
--   PROJECT          text                    "the project"
--   --name NAME      text name               "what people call it"
--   --location DIR   text location           "its workspace"
--   --branch NAME    text default_branch     "its default branch"
--   --owner NAME     text owner              "who owns it"
--   --model MODEL    text model              "that its runs use by default"
--   --provider NAME  text provider           "that its runs use by default"
--   --workflow NAME  list allowed_workflows  "that may be run in it; repeat"
--   --sandbox JSON   json sandbox_policy     "its sandbox policy"
--   --review JSON    json review_policy      "its review policy"
--   --settings JSON  json settings           "everything else"
--   says     project {PROJECT} is there
--   about    A project is a workspace with its settings; it has a backlog, decisions and
--            what its agents remember. Its history is the session proj_PROJECT.
--   example  annal project create shop --name "The shop" --location ~/shop --branch main

-- verb project configure   appends project.configured   session proj_{PROJECT}
--      "change settings of a project"
--   PROJECT          text                    "the project"
--   --name NAME      text name               "what people call it"
--   --location DIR   text location           "its workspace"
--   --branch NAME    text default_branch     "its default branch"
--   --owner NAME     text owner              "who owns it"
--   --model MODEL    text model              "that its runs use by default"
--   --provider NAME  text provider           "that its runs use by default"
--   --workflow NAME  list allowed_workflows  "that may be run in it; repeat"
--   --sandbox JSON   json sandbox_policy     "its sandbox policy"
--   --review JSON    json review_policy      "its review policy"
--   --settings JSON  json settings           "everything else"
--   says     project {PROJECT} is changed
--   about    What is not named stays as it is.
--   example  annal project configure shop --model gpt-5 --workflow review --workflow fix

-- verb project retire   appends project.delete_begun   session proj_{PROJECT}
--      "begin to delete a project: no more runs and tasks"
--   PROJECT   text  "the project"
--   says     project {PROJECT} takes no more runs and tasks
--   about    The first half of deleting it: runs that are under way may end.
--   example  annal project retire shop

-- verb project delete   appends project.deleted   session proj_{PROJECT}
--      "delete a project, with its backlog, decisions and memory"
--   PROJECT   text  "the project"
--   says     project {PROJECT} is deleted
--   about    Its rows leave the tables; its journal keeps what happened. Its runs stay.
--   example  annal project delete shop

-- verb project ls   selects   "list the projects"
--   about    With the number of their open tasks and of their runs that are under way.
--   example  annal project ls
SELECT p.id, p.name, p.state, p.location, p.default_branch,
       (SELECT count(*) FROM agentweaver.backlog_tasks t
        WHERE t.project_id = p.id AND t.archived_at IS NULL AND t.run_id IS NULL) AS tasks,
       (SELECT count(*) FROM agentweaver.runs r
        JOIN agentweaver.run_statuses s ON s.status = r.status
        WHERE r.project_id = p.id AND NOT s.terminal) AS open_runs
FROM agentweaver.projects p
ORDER BY p.id;

-- verb project export   runs   "write a project's memory as files, for people and agents"
--   PROJECT   text  "the project"
--   DIR       text  "the workspace that gets the files"
--   about    Writes below DIR: .squad/decisions.md, .squad/decisions/inbox/SLUG.md for
--            what is pending, .squad/agents/AGENT/history.md, .squad/identity/now.md,
--            .agentweaver/context/boundaries.md and patterns.md there. The same tables
--            give the same bytes. Files of proposals that are pending no more are
--            deleted first; nothing else is. Symbolic links below DIR are not followed:
--            one in the way is an error. The tables are what counts: files are a mirror.
--   example  annal project export shop ~/shop

-- verb project import   appends decision.proposed
--      "take proposals from files that are not in the inbox yet"
--   PROJECT   text  "the project"
--   DIR       text  "the workspace that has the files"
--   about    Reads DIR/.squad/decisions/inbox/*.md: front matter with agent, slug, type and
--            title, then the content, with what follows **Rationale:** apart. A slug that the
--            project has stays untouched; a file that cannot be read so is named and passed
--            over.
--   example  annal project import shop ~/shop

-- noun cast   "proposals for who does what (agentweaver)"

-- verb cast propose   appends cast.proposed   session proj_{PROJECT}
--      "keep a proposal for who does what"
--   PROJECT         text                "the project"
--   ID              text id             "of the proposal"
--   JSON            json proposal_json  "the proposal; @FILE and - read it"
--   --owner NAME    text owner          "who made it"
--   --expires TIME  time expires_at     "until when it holds"
--   says     proposal {ID} of project {PROJECT} is kept
--   about    A second one of the same ID takes the place of the first.
--   example  annal cast propose shop c1 '{"lead":"ada"}' --owner bob

-- verb cast ls   selects   "list the proposals of a project"
--   PROJECT   text  "the project"
--   about    By their id.
--   example  annal cast ls shop
SELECT id, owner, expires_at, proposal_json
FROM agentweaver.cast_proposals
WHERE project_id = ?1
ORDER BY id;

-- noun workflow   "jobs of several runs (agentweaver)"

-- verb workflow create   appends workflow_run.created   session wf_{WORKFLOW}
--      "begin a workflow run, the envelope of a job"
--   WORKFLOW           text                  "the workflow run"
--   --project PROJECT  text project_id       "that it works for"
--   --task TEXT        body task             "what is to be done"
--   --user NAME        text submitting_user  "who asked for it"
--   says     workflow run {WORKFLOW} is there
--   about    It may have one or many runs. Its history is the session wf_WORKFLOW.
--   example  annal workflow create w1 --project shop --task "add a cart" --user bob

-- verb workflow worktree   appends workflow_run.worktree_set   session wf_{WORKFLOW}
--      "say which worktree its runs share"
--   WORKFLOW  text                  "the workflow run"
--   PATH      text worktree_path    "the shared worktree"
--   [BRANCH]  text worktree_branch  "its branch"
--   says     workflow run {WORKFLOW} works in {PATH}
--   about    The first one stays: another path is refused.
--   example  annal workflow worktree w1 /tmp/w1 squad/w1

-- verb workflow checkpoint   appends checkpoint.saved   session wf_{WORKFLOW}
--      "keep a checkpoint of a workflow run"
--   WORKFLOW           text                       "the workflow run"
--   ID                 text checkpoint_id         "of the checkpoint"
--   JSON               json payload               "what it holds; @FILE and - read it"
--   --store-name NAME  text store_name            "which series of them (default)"
--   --parent ID        text parent_checkpoint_id  "the one before"
--   says     checkpoint {ID} of workflow run {WORKFLOW} is kept
--   about    Large ones go to artifacts/. A checkpoint's id is given once in its series.
--   example  annal workflow checkpoint w1 step-3 @state.json --parent step-2

-- verb workflow ls   selects   "list workflow runs"
--   [PROJECT]  text  "the project (all)"
--   about    With the number of their runs.
--   example  annal workflow ls shop
SELECT w.id, w.project_id, w.task, w.worktree_path, w.created_at,
       (SELECT count(*) FROM agentweaver.runs r WHERE r.workflow_run_id = w.id) AS runs
FROM agentweaver.workflow_runs w
WHERE ?1 IS NULL OR w.project_id = ?1
ORDER BY w.created_at, w.id;

-- noun run   "executions of an agent (agentweaver)"

-- verb run create   appends run.created   session run_{RUN}
--      "begin a run, one execution of an agent"
--   RUN                text                     "the run"
--   --project PROJECT  text project_id          "that it works for"
--   --task TEXT        body task                "what it is to do"
--   --workflow ID      text workflow_run_id     "the workflow run it belongs to"
--   --shared           flag shared_worktree     "works in the worktree of its workflow run"
--   --parent RUN       text parent_run_id       "the run that began it"
--   --subtask ID       text subtask_id          "the subtask it works on"
--   --retry-of RUN     text retried_from        "the run it is a new try of"
--   --agent NAME       text agent_name          "who works"
--   --model MODEL      text model_id            "with which model"
--   --provider NAME    text provider            "of the model"
--   --user NAME        text submitting_user     "who asked for it"
--   --branch NAME      text originating_branch  "where its worktree begins"
--   says     run {RUN} is pending
--   about    It is pending until run start. Its history is the session run_RUN. A run for a
--            task of the backlog is made by annal backlog claim.
--   example  annal run create r1 --project shop --task "add a cart" --user bob

-- verb run worktree   appends run.worktree_set   session run_{RUN}
--      "say where a run works, before it works"
--   RUN                text                  "the run"
--   PATH               text worktree_path    "where it works"
--   BRANCH             text worktree_branch  "the branch there"
--   --project PROJECT  text                  "whose task it is, if another host claimed it"
--   --token N          number fencing_token  "refused unless it is the last lease's"
--   says     run {RUN} works in {PATH}
--   about    So that a restart can find or make anew what it works in. The first one stays:
--            the same again changes nothing, another is refused.
--   example  annal run worktree r1 /tmp/r1 squad/r1

-- verb run start   appends run.started   session run_{RUN}   "a pending run begins to work"
--   RUN            text                  "the run"
--   --path PATH    text worktree_path    "its worktree, when not set yet"
--   --branch NAME  text worktree_branch  "its branch, when not set yet"
--   --token N      number fencing_token  "refused unless it is the last lease's"
--   says     run {RUN} is in progress
--   about    Refused as long as its worktree is not known.
--   example  annal run start r1

-- verb run review-ready   appends run.review_ready   session run_{RUN}
--      "what a run made can be reviewed"
--   RUN               text                  "the run"
--   --tree HASH       text tree_hash        "the tree that it produced"
--   --diff TEXT       body diff             "what it changed; - reads standard input"
--   --diff-file FILE  file diff             "the same, from a file"
--   --token N         number fencing_token  "refused unless it is the last lease's"
--   says     run {RUN} awaits review
--   about    From any status that is not terminal. Another tree than before takes approval
--            and reviewer away. A diff of more than 100 KB goes to artifacts/.
--   example  git diff main | annal run review-ready r1 --tree 4b825dc --diff -

-- verb run approve   appends run.approved   session run_{RUN}   "approve one tree of a run"
--   RUN              text                     "the run"
--   --tree HASH      text tree_hash required  "the tree that was looked at"
--   --reviewer NAME  text reviewer            "who approves"
--   says     tree {tree_hash} of run {RUN} is approved
--   about    Refused unless that tree awaits review. No other one can be merged then.
--   example  annal run approve r1 --tree 4b825dc --reviewer bob

-- verb run transition   appends run.transition   session run_{RUN}
--      "change the status of a run, as the table run_edges allows"
--   RUN               text                     "the run"
--   STATUS            text to                  "the new status"
--   --expect STATUS   list expected            "refused unless it is that now; repeat"
--   --operation NAME  text operation           "that must allow it, of run_edges"
--   --result TEXT     body result              "what came of it"
--   --reviewer NAME   text reviewer            "who decided"
--   --tree HASH       text tree_hash           "the tree it is about"
--   --conflict FILE   list conflicts           "a file that does not merge; repeat"
--   --commit HASH     text merged_commit_hash  "the commit of the merge"
--   --override        flag override            "although the edges do not allow it"
--   --reason TEXT     text reason              "why; an override needs one"
--   --token N         number fencing_token     "refused unless it is the last lease's"
--   says     run {RUN} is {STATUS}
--   about    Compare and set: refused unless the status is one of --expect, and unless an
--            edge leads from there to STATUS. Only --override with a reason, which stays in
--            the run's row, leaves a terminal status or merges a tree that nobody
--            approved.
--   example  annal run transition r1 declined --expect awaiting_review --reviewer bob
--            annal run transition r1 merged --expect merging --commit 1f2e3d
--            annal run transition r1 awaiting_review --override --reason "try again"

-- verb run merge   appends run.transition   session run_{RUN}
--      "begin to merge a run that was reviewed"
--   RUN              text                  "the run"
--   --tree HASH      text tree_hash        "refused unless it is the approved one"
--   --reviewer NAME  text reviewer         "refused unless it is who approved"
--   --token N        number fencing_token  "refused unless it is the last lease's"
--   to = "merging"
--   expected = ["awaiting_review","committing"]
--   says     run {RUN} is merging
--   about    Refused unless the tree that the run has is approved, and is --tree. One of
--            those who try wins. Then do the merge, and end with annal run transition RUN
--            merged or merge_failed. What nobody approved needs annal run transition with
--            --override.
--   example  annal run merge r1 --tree 4b825dc --reviewer bob

-- verb run archive   appends run.archived   session run_{RUN}   "put a run aside"
--   RUN       text  "the run"
--   says     run {RUN} is archived
--   about    Its rows and its history stay.
--   example  annal run archive r1

-- verb run close   appends stream.closed   session run_{RUN}
--      "end the stream of a run: no more events"
--   RUN            text         "the run"
--   --reason TEXT  text reason  "why"
--   says     the stream of run {RUN} is closed
--   about    A terminal event only tells tails to stop; this is what refuses more events.
--   example  annal run close r1 --reason "nothing comes after this"

-- verb run recover   appends run.transition
--      "runs that a restart cut off while merging await review again"
--   --project PROJECT  text  "only of this project"
--   --status STATUS    text  "only in this status"
--   --open             flag  "only those that have not ended"
--   about    Those that are committing or merging: for each one run.transition, guarded by
--            the status that it was seen in.
--   example  annal run recover --project shop

-- verb run ls   selects   "list runs"
--   --project PROJECT  text  "only of this project"
--   --status STATUS    text  "only in this status"
--   --open             flag  "only those that have not ended"
--   about    Those that were archived are left out.
--   example  annal run ls --project shop --open
SELECT id, project_id, status, origin, task, agent_name, worktree_path, worktree_branch, tree_hash
FROM agentweaver.runs
WHERE archived_at IS NULL
  AND (?1 IS NULL OR project_id = ?1)
  AND (?2 IS NULL OR status = ?2)
  AND (?3 IS NULL OR status IN (SELECT status FROM agentweaver.run_statuses WHERE NOT terminal))
ORDER BY created_at, id;

-- verb run show   selects   "one run"
--   RUN       text  "the run"
--   about    Its row, and the totals of its tokens.
--   example  annal run show r1 --json
SELECT r.*,
       (SELECT total_tokens FROM agentweaver.token_usage_by_run u
        WHERE u.run_id = r.id) AS total_tokens
FROM agentweaver.runs r
WHERE r.id = ?1;

-- verb run tail   runs   "replay a run's events, then follow it until it ends"
--   RUN         text    "the run"
--   --from SEQ  number  "begin with event SEQ (1)"
--   --all       flag    "history to its end, and do not wait"
--   about    Every event once, in order: those from --from on, then each new one once it is
--            durable, whichever process appends it. It stops behind an event that ends the
--            run (run.completed, run.failed, run.cancelled, run.assemble_ready,
--            merge.completed, merge.failed, review.declined, a run.transition to a terminal
--            status, stream.closed) when nothing stands behind it. With --all it prints what
--            is there, also behind such an event, and does not wait.
--   example  annal run tail r1 --from 17

-- noun backlog   "tasks of a project, in their order (agentweaver)"

-- verb backlog add   appends backlog.captured   session proj_{PROJECT}
--      "put a task into the backlog of a project"
--   PROJECT             text                "the project"
--   TITLE               text title          "what is to be done, in a line"
--   --description TEXT  body description    "more of it"
--   --id TASK           text task_id        "its id (the next t1, t2, …)"
--   --by NAME           text created_by     "who asks for it"
--   --key KEY           text order_key      "its order key; refused if it is taken"
--   --wish KEY          text requested_key  "or the next free one behind KEY"
--   says     task {task_id} is in the backlog of {PROJECT}
--   about    Tasks have an order key, which no other task in the same state has. Without one
--            it goes to the end.
--   example  annal backlog add shop "Add a cart" --by ada

-- verb backlog edit   appends backlog.edited   session proj_{PROJECT}
--      "change the words of a task"
--   PROJECT             text              "the project"
--   TASK                text task_id      "the task"
--   --title TEXT        text title        "another title"
--   --description TEXT  body description  "another description"
--   says     task {TASK} is changed
--   about    What is not named stays as it is.
--   example  annal backlog edit shop t1 --title "Add a cart that remembers"

-- verb backlog override   appends backlog.override_set   session proj_{PROJECT}
--      "settings for the run that will do a task"
--   PROJECT   text            "the project"
--   TASK      text task_id    "the task"
--   JSON      json overrides  "settings for its run"
--   says     task {TASK} has settings of its own
--   about    As long as no run has claimed it.
--   example  annal backlog override shop t1 '{"model":"gpt-5"}'

-- verb backlog commit   appends backlog.committed   session proj_{PROJECT}
--      "a task is ready to be claimed"
--   PROJECT    text            "the project"
--   TASK       text task_id    "the task"
--   --key KEY  text order_key  "its order key; refused if it is taken"
--   says     task {TASK} is ready
--   about    It goes behind those that are ready, or where --key says.
--   example  annal backlog commit shop t1

-- verb backlog commit-all   appends backlog.bulk_committed   session proj_{PROJECT}
--      "several tasks are ready, all or none"
--   PROJECT   text           "the project"
--   TASK      list task_ids  "the tasks"
--   says     the tasks are ready
--   about    They go behind those that are ready, in the order that they had.
--   example  annal backlog commit-all shop t1 t2 t3

-- verb backlog return   appends backlog.returned   session proj_{PROJECT}
--      "a task is not ready after all"
--   PROJECT    text            "the project"
--   TASK       text task_id    "the task"
--   --key KEY  text order_key  "its order key; refused if it is taken"
--   says     task {TASK} is in the backlog again
--   about    It goes to the end of the backlog, or where --key says.
--   example  annal backlog return shop t1

-- verb backlog move   appends backlog.reordered   session proj_{PROJECT}
--      "give a task another place"
--   PROJECT       text                "the project"
--   TASK          text task_id        "the task"
--   --key KEY     text order_key      "its order key; refused if it is taken"
--   --wish KEY    text requested_key  "or the next free one behind KEY"
--   --after TASK  text after          "behind that task"
--   says     task {TASK} has order key {order_key}
--   about    With --wish, a key that is taken gives the next greater free one; five tries.
--   example  annal backlog move shop t3 --after t1

-- verb backlog claim   appends backlog.claimed   session proj_{PROJECT}
--      "take a task and reserve its run, in one event"
--   PROJECT        text                         "the project"
--   [TASK]         text task_id                 "the task (the first that is ready)"
--   --run RUN      text run.id                  "the id of its run (PROJECT-TASK)"
--   --prompt TEXT  body run.task                "what the run is to do (the title)"
--   --agent NAME   text run.agent_name          "who works"
--   --model MODEL  text run.model_id            "with which model"
--   --user NAME    text run.submitting_user     "who asked for it"
--   --branch NAME  text run.originating_branch  "where its worktree begins"
--   says     task {task_id} is claimed by run {run.id}
--   about    The task must be ready. One of those who try gets it; the others are refused,
--            and nothing of theirs is there. The run is in progress at once; annal run
--            worktree goes on from there.
--   example  annal backlog claim shop --user worker-7 --json
--            annal backlog claim shop t1 --run r1

-- verb backlog archive   appends backlog.archived   session proj_{PROJECT}
--      "put a task aside, and its run with it"
--   PROJECT   text          "the project"
--   TASK      text task_id  "the task"
--   says     task {TASK} is archived
--   about    Its order key is free then.
--   example  annal backlog archive shop t1

-- verb backlog delete   appends backlog.deleted   session proj_{PROJECT}
--      "delete a task that no run has claimed"
--   PROJECT   text          "the project"
--   TASK      text task_id  "the task"
--   says     task {TASK} is deleted
--   about    The journal keeps that it was there.
--   example  annal backlog delete shop t1

-- verb backlog ls   selects   "list the tasks of a project, in their order"
--   PROJECT        text  "the project"
--   --state STATE  text  "backlog, ready or claimed (all)"
--   about    Those that were archived are left out.
--   example  annal backlog ls shop --state ready
SELECT id, state, order_key, title, run_id
FROM agentweaver.backlog_tasks
WHERE project_id = ?1 AND archived_at IS NULL AND (?2 IS NULL OR state = ?2)
ORDER BY CASE state WHEN 'ready' THEN 0 WHEN 'backlog' THEN 1 ELSE 2 END, order_key;

-- noun revision   "feedback to runs, append-only (agentweaver)"

-- verb revision record   appends revision.recorded   session run_{RUN}
--      "record feedback to a run permanently"
--   RUN               text                    "the run"
--   COMMENT           body raw_comment        "what is to be changed; - reads standard input"
--   --reviewer NAME   text reviewer_user      "who says so"
--   --sanitized TEXT  text sanitized_comment  "as an agent may read it"
--   --number N        number revision_number  "which one (the next)"
--   says     revision {revision_number} of run {RUN} is recorded
--   about    Revisions are only added: no event changes or deletes one. To send the run back
--            to work, follow with annal run transition RUN in_progress.
--   example  annal revision record r1 "the cart forgets its items" --reviewer bob

-- verb revision ls   selects   "list the revisions of a run"
--   RUN       text  "the run"
--   about    In their order.
--   example  annal revision ls r1
SELECT revision_number, reviewer_user, sanitized_comment, previous_tree_hash, created_at
FROM agentweaver.run_revisions
WHERE run_id = ?1
ORDER BY revision_number;

-- noun lease   "one worker per run, with fencing tokens (agentweaver)"

-- verb lease claim   appends lease.claimed   session run_{RUN}   "be the one that executes a run"
--   RUN                text             "the run"
--   OWNER              text owner_id    "who holds it"
--   --for MS           number lease_ms  "for so many milliseconds (60000)"
--   --project PROJECT  text             "whose task it is, if another host claimed it"
--   says     {OWNER} holds run {RUN} with token {fencing_token}
--   about    Refused while another holds it. The answer's fencing token is one more than the
--            last; events that carry an older one (--token) are refused from then on.
--            If another host claimed the task of the run, say --project, which is read first.
--   example  annal lease claim r1 worker-7 --for 30000 --json

-- verb lease renew   appends lease.renewed   session run_{RUN}   "hold a run longer"
--   RUN       text                  "the run"
--   OWNER     text owner_id         "who holds it"
--   TOKEN     number fencing_token  "that claiming it gave"
--   --for MS  number lease_ms       "for so many milliseconds (60000)"
--   says     {OWNER} holds run {RUN} longer
--   about    Refused when somebody else has claimed it meanwhile.
--   example  annal lease renew r1 worker-7 3

-- verb lease release   appends lease.released   session run_{RUN}   "let others execute a run"
--   RUN       text                  "the run"
--   OWNER     text owner_id         "who holds it"
--   TOKEN     number fencing_token  "that claiming it gave"
--   says     run {RUN} is free
--   about    Its token stays used: the next claim gets a greater one.
--   example  annal lease release r1 worker-7 3

-- verb lease show   selects   "who executes a run"
--   RUN       text  "the run"
--   about    Empty when nobody ever did.
--   example  annal lease show r1
SELECT * FROM agentweaver.run_leases WHERE run_id = ?1;

-- noun usage   "tokens that runs used (agentweaver)"

-- verb usage record   appends agent.turn.usage   session run_{RUN}
--      "write down what a turn of a run used"
--   RUN           text                 "the run"
--   MODEL         text modelId         "that was asked"
--   --input N     number inputTokens   "tokens that went in"
--   --output N    number outputTokens  "tokens that came out"
--   --total N     number totalTokens   "both (their sum)"
--   --nano-aiu N  number totalNanoAiu  "what it cost"
--   says     usage of run {RUN} is recorded
--   about    One agent.turn.usage event. Without a model it would not be counted.
--   example  annal usage record r1 gpt-5 --input 1200 --output 85

-- verb usage totals   selects   "tokens by run, workflow, project, model or hour, or of all"
--   --by WHAT     text = "run" (run|workflow|project|model|hour|app)
--                 "run, workflow, project, model, hour or app (run)"
--   --since TIME  time                                  "only from then on"
--   --until TIME  time                                  "only before then"
--   about    Of all time, or of a window of time. The total of the application, --by app,
--            is that of its projects: usage without a project is not in it.
--   example  annal usage totals --by project --since 7d
SELECT CASE ?1 WHEN 'run' THEN run_id
               WHEN 'workflow' THEN workflow_run_id
               WHEN 'project' THEN project_id
               WHEN 'model' THEN model_id
               WHEN 'hour' THEN substr(timestamp, 1, 13)
               ELSE 'app' END AS id,
       count(*) AS records, count(DISTINCT run_id) AS runs,
       sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
       sum(total_tokens) AS total_tokens, sum(total_nano_aiu) AS total_nano_aiu
FROM agentweaver.token_usage
WHERE (?2 IS NULL OR timestamp >= ?2)
  AND (?3 IS NULL OR timestamp < ?3)
  AND (?1 <> 'app' OR project_id IS NOT NULL)
GROUP BY 1
ORDER BY 1;
