-- SPDX-License-Identifier: Apache-2.0
-- ---- Verbs ----

-- noun project   "workspaces with their settings (agentweaver)"

-- verb project create   appends project.created   session proj_{PROJECT}   "create a project"
--   PROJECT          text                    "the project"
--   --name NAME      text name               "its display name"
--   --location DIR   text location           "its workspace"
--   --branch NAME    text default_branch     "default branch"
--   --owner NAME     text owner              "owner of the project"
--   --model MODEL    text model              "default model of its runs"
--   --provider NAME  text provider           "default provider of its runs"
--   --workflow NAME  list allowed_workflows  "a workflow that may run in it; repeat"
--   --sandbox JSON   json sandbox_policy     "sandbox policy"
--   --review JSON    json review_policy      "review policy"
--   --settings JSON  json settings           "all other settings"
--   says     created project {PROJECT}
--   about    A project is a workspace with its settings. It has a backlog, decisions and
--            the memory of its agents. Its history is the session proj_PROJECT.
--   example  annal project create shop --name "The shop" --location ~/shop --branch main

-- verb project configure   appends project.configured   session proj_{PROJECT}
--      "change settings of a project"
--   PROJECT          text                    "the project"
--   --name NAME      text name               "its display name"
--   --location DIR   text location           "its workspace"
--   --branch NAME    text default_branch     "default branch"
--   --owner NAME     text owner              "owner of the project"
--   --model MODEL    text model              "default model of its runs"
--   --provider NAME  text provider           "default provider of its runs"
--   --workflow NAME  list allowed_workflows  "a workflow that may run in it; repeat"
--   --sandbox JSON   json sandbox_policy     "sandbox policy"
--   --review JSON    json review_policy      "review policy"
--   --settings JSON  json settings           "all other settings"
--   says     changed project {PROJECT}
--   about    Settings that are not given stay unchanged.
--   example  annal project configure shop --model gpt-5 --workflow review --workflow fix

-- verb project retire   appends project.delete_begun   session proj_{PROJECT}
--      "begin to delete a project: no more runs and tasks"
--   PROJECT   text  "the project"
--   says     project {PROJECT} accepts no more runs and tasks
--   about    The first step of deleting it: runs that are in progress may end.
--   example  annal project retire shop

-- verb project delete   appends project.deleted   session proj_{PROJECT}
--      "delete a project, with its backlog, decisions and memory"
--   PROJECT   text  "the project"
--   says     deleted project {PROJECT}
--   about    Its rows are deleted from the tables; its journal keeps its history. Its runs
--            stay.
--   example  annal project delete shop

-- verb project ls   selects   "list the projects"
--   about    Shows the number of open tasks and of runs in progress for each project.
--   example  annal project ls
SELECT p.id, p.name, p.state, p.location, p.default_branch,
       (SELECT count(*) FROM agentweaver.backlog_tasks t
        WHERE t.project_id = p.id AND t.archived_at IS NULL AND t.run_id IS NULL) AS tasks,
       (SELECT count(*) FROM agentweaver.runs r
        JOIN agentweaver.run_statuses s ON s.status = r.status
        WHERE r.project_id = p.id AND NOT s.terminal) AS open_runs
FROM agentweaver.projects p
ORDER BY p.id;

-- verb project export   writes   "write a project's memory as files, for people and agents"
--   PROJECT   text  "the project"
--   DIR       text  "workspace that receives the files"
--   needs    memory
--   none     there is no project '{PROJECT}'
--   about    Writes below DIR: .squad/decisions.md, .squad/decisions/inbox/SLUG.md for each
--            pending proposal, .squad/agents/AGENT/history.md, .squad/identity/now.md, and
--            .agentweaver/context/boundaries.md and patterns.md. The same tables yield the
--            same bytes. Files of proposals that are no longer pending are deleted first;
--            no other file is deleted. Symbolic links below DIR are not followed: a link
--            with the name of a file is an error. The files are a copy of the tables:
--            changes in them are not read back.
--   example  annal project export shop ~/shop

-- Equal tables yield equal bytes. A file of a proposal with a slug that the tables do not have was
-- not imported yet: it stays. line: a value in front matter, as JSON if the plain text could not be
-- read back unchanged.
WITH line AS (
    SELECT id, CASE WHEN instr(value, char(10)) > 0 OR value GLOB '"*' OR trim(value) <> value
                    THEN json_quote(value) ELSE value END AS text, name
    FROM (SELECT i.id, j.key AS name, j.value
          FROM memory.decision_inbox i,
               json_each(json_object('agent', i.agent_name, 'slug', i.slug, 'type', i.type,
                                     'title', i.title)) j
          WHERE i.project_id = ?1 AND i.status = 'pending')
),
files AS (
    SELECT '.squad/decisions/inbox' AS folder, slug AS name, '.md' AS suffix, NULL AS content
    FROM memory.decision_inbox
    WHERE project_id = ?1 AND status <> 'pending'
    UNION ALL
    SELECT '.squad', 'decisions', '.md',
           '# Decisions' || char(10) || COALESCE((
               SELECT group_concat(entry, '')
               FROM (SELECT char(10) || '## ' || id || ': ' || title || char(10, 10)
                            || '- type: ' || type || char(10) || '- status: ' || status
                            || COALESCE(' by ' || superseded_by_id, '') || char(10)
                            || COALESCE('- agent: ' || agent_name || char(10), '')
                            || '- date: ' || created_at || char(10, 10) || content || char(10)
                            || COALESCE(char(10) || '**Rationale:** ' || rationale || char(10), '')
                            AS entry
                     FROM memory.decisions
                     WHERE project_id = ?1
                     ORDER BY created_at, seq, id)), '')
    UNION ALL
    SELECT '.squad/decisions/inbox', slug, '.md',
           '---' || char(10)
           || (SELECT group_concat(name || ': ' || text || char(10), '')
               FROM line WHERE line.id = i.id)
           || '---' || char(10, 10) || content || char(10)
           || COALESCE(char(10) || '**Rationale:** ' || rationale || char(10), '')
    FROM memory.decision_inbox i
    WHERE project_id = ?1 AND status = 'pending'
    UNION ALL
    SELECT '.squad/agents', agent_name, '/history.md',
           '# ' || agent_name || char(10, 10) || group_concat(entry, '')
    FROM (SELECT agent_name,
                 '- ' || created_at || ' ' || type || ' (' || importance || ')'
                 || COALESCE(' [' || trim(tags, ',') || ']', '') || ': '
                 || replace(content, char(10), char(10) || '  ') || char(10) AS entry
          FROM memory.agent_memory
          WHERE project_id = ?1
          ORDER BY agent_name, created_at, seq, id)
    GROUP BY agent_name
    UNION ALL
    SELECT '.squad/identity', 'now', '.md',
           '# Now' || char(10, 10) || COALESCE((
               SELECT 'Session ' || session_id || ', since ' || started_at || char(10)
                      || COALESCE(char(10) || '## Focus' || char(10, 10) || focus_area
                                  || char(10), '')
                      || COALESCE(char(10) || '## Active issues' || char(10, 10)
                                  || active_issues || char(10), '')
                      || COALESCE(char(10) || '## Summary' || char(10, 10) || summary
                                  || char(10), '')
               FROM memory.session_contexts_current
               WHERE project_id = ?1), 'No session is open.' || char(10))
    UNION ALL
    SELECT '.agentweaver/context', 'boundaries', '.md',
           '# Boundaries' || char(10) || COALESCE((
               SELECT group_concat(entry, '')
               FROM (SELECT char(10) || '## ' || title || ' (' || type || ')' || char(10, 10)
                            || content || char(10) AS entry
                     FROM memory.memory_boundaries
                     WHERE project_id = ?1
                     ORDER BY created_at, seq, id)), '')
    UNION ALL
    SELECT '.agentweaver/context', 'patterns', '.md',
           '# Patterns' || char(10) || COALESCE((
               SELECT group_concat(entry, '')
               FROM (SELECT char(10) || '- ' || replace(content, char(10), char(10) || '  ')
                            || ' (' || agent_name || ')' AS entry
                     FROM memory.agent_memory
                     WHERE project_id = ?1 AND type = 'pattern'
                     ORDER BY created_at, seq, id)), '') || char(10)
)
SELECT folder, name, suffix, content
FROM files
WHERE ?1 IN (SELECT id FROM agentweaver.projects)
   OR ?1 IN (SELECT project_id FROM memory.decision_inbox
             UNION ALL SELECT project_id FROM memory.decisions
             UNION ALL SELECT project_id FROM memory.agent_memory);

-- verb project import   appends decision.proposed
--      "add proposals from files that are not in the inbox yet"
--   PROJECT   text  "the project"
--   DIR       text  "workspace that has the files"
--   needs    memory
--   about    Reads DIR/.squad/decisions/inbox/*.md: front matter with agent, slug, type and
--            title, then the content, and separately the text after **Rationale:**. A
--            proposal whose slug exists in the project stays unchanged; a file that cannot
--            be read in this way is reported and skipped.
--   example  annal project import shop ~/shop

-- noun cast   "proposals for the roles of agents (agentweaver)"

-- verb cast propose   appends cast.proposed   session proj_{PROJECT}
--      "store a proposal for the roles of agents"
--   PROJECT         text                "the project"
--   ID              text id             "id of the proposal"
--   JSON            json proposal_json  "the proposal; @FILE and - read it"
--   --owner NAME    text owner          "author of the proposal"
--   --expires TIME  time expires_at     "expiry time"
--   says     stored proposal {ID} of project {PROJECT}
--   about    A later proposal with the same ID replaces it.
--   example  annal cast propose shop c1 '{"lead":"ada"}' --owner bob

-- verb cast ls   selects   "list the proposals of a project"
--   PROJECT   text  "the project"
--   about    Sorted by id.
--   example  annal cast ls shop
SELECT id, owner, expires_at, proposal_json
FROM agentweaver.cast_proposals
WHERE project_id = ?1
ORDER BY id;

-- noun workflow   "jobs of several runs (agentweaver)"

-- verb workflow create   appends workflow_run.created   session wf_{WORKFLOW}
--      "create a workflow run, the envelope of a job"
--   WORKFLOW           text                  "the workflow run"
--   --project PROJECT  text project_id       "project of the job"
--   --task TEXT        body task             "task to be done"
--   --user NAME        text submitting_user  "user who requested it"
--   says     created workflow run {WORKFLOW}
--   about    It may have one or many runs. Its history is the session wf_WORKFLOW.
--   example  annal workflow create w1 --project shop --task "add a cart" --user bob

-- verb workflow worktree   appends workflow_run.worktree_set   session wf_{WORKFLOW}
--      "set the worktree that its runs share"
--   WORKFLOW  text                  "the workflow run"
--   PATH      text worktree_path    "the shared worktree"
--   [BRANCH]  text worktree_branch  "branch of the worktree"
--   says     workflow run {WORKFLOW} works in {PATH}
--   about    The worktree cannot be changed later: another path is refused.
--   example  annal workflow worktree w1 /tmp/w1 squad/w1

-- verb workflow checkpoint   appends checkpoint.saved   session wf_{WORKFLOW}
--      "store a checkpoint of a workflow run"
--   WORKFLOW           text                       "the workflow run"
--   ID                 text checkpoint_id         "checkpoint id"
--   JSON               json payload               "state to store; @FILE and - read it"
--   --store-name NAME  text store_name            "series of checkpoints (default)"
--   --parent ID        text parent_checkpoint_id  "previous checkpoint"
--   says     stored checkpoint {ID} of workflow run {WORKFLOW}
--   about    Large checkpoints are stored in artifacts/. The id of a checkpoint is unique
--            in its series.
--   example  annal workflow checkpoint w1 step-3 @state.json --parent step-2

-- verb workflow ls   selects   "list workflow runs"
--   [PROJECT]  text  "the project (all)"
--   about    Shows the number of runs of each.
--   example  annal workflow ls shop
SELECT w.id, w.project_id, w.task, w.worktree_path, w.created_at,
       (SELECT count(*) FROM agentweaver.runs r WHERE r.workflow_run_id = w.id) AS runs
FROM agentweaver.workflow_runs w
WHERE ?1 IS NULL OR w.project_id = ?1
ORDER BY w.created_at, w.id;

-- noun run   "executions of an agent (agentweaver)"

-- verb run create   appends run.created   session run_{RUN}
--      "create a run, one execution of an agent"
--   RUN                text                     "the run"
--   --project PROJECT  text project_id          "project of the run"
--   --task TEXT        body task                "task to be done"
--   --workflow ID      text workflow_run_id     "workflow run of which it is a part"
--   --shared           flag shared_worktree     "use the worktree of its workflow run"
--   --parent RUN       text parent_run_id       "run that started it"
--   --subtask ID       text subtask_id          "subtask that it works on"
--   --retry-of RUN     text retried_from        "run that it retries"
--   --agent NAME       text agent_name          "name of the agent"
--   --model MODEL      text model_id            "model of the agent"
--   --provider NAME    text provider            "provider of the model"
--   --user NAME        text submitting_user     "user who requested it"
--   --branch NAME      text originating_branch  "branch from which its worktree starts"
--   says     run {RUN} is pending
--   about    It is pending until run start. Its history is the session run_RUN. A run for a
--            task of the backlog is created by annal backlog claim.
--   example  annal run create r1 --project shop --task "add a cart" --user bob

-- verb run worktree   appends run.worktree_set   session run_{RUN}
--      "set the worktree of a run, before it starts"
--   RUN                text                  "the run"
--   PATH               text worktree_path    "worktree of the run"
--   BRANCH             text worktree_branch  "branch of the worktree"
--   --project PROJECT  text                  "project of its task, if another host claimed it"
--   --token N          number fencing_token  "fencing token; must be the latest"
--   says     run {RUN} works in {PATH}
--   about    A restarted program can find the worktree here, or create it again. It cannot
--            be changed later: the same worktree again changes nothing, another worktree is
--            refused.
--   example  annal run worktree r1 /tmp/r1 squad/r1

-- verb run start   appends run.started   session run_{RUN}   "start a pending run"
--   RUN            text                  "the run"
--   --path PATH    text worktree_path    "its worktree, if not set yet"
--   --branch NAME  text worktree_branch  "its branch, if not set yet"
--   --token N      number fencing_token  "fencing token; must be the latest"
--   says     run {RUN} is in progress
--   about    Refused while its worktree is unknown.
--   example  annal run start r1

-- verb run review-ready   appends run.review_ready   session run_{RUN}
--      "mark the result of a run as ready for review"
--   RUN               text                  "the run"
--   --tree HASH       text tree_hash        "tree that it produced"
--   --diff TEXT       body diff             "its changes; - reads standard input"
--   --diff-file FILE  file diff             "its changes, from a file"
--   --token N         number fencing_token  "fencing token; must be the latest"
--   says     run {RUN} awaits review
--   about    Allowed in any status that is not terminal. A tree that differs from the
--            previous tree removes approval and reviewer. A diff of more than 100 KB is
--            stored in artifacts/.
--   example  git diff main | annal run review-ready r1 --tree 4b825dc --diff -

-- verb run approve   appends run.approved   session run_{RUN}   "approve a tree of a run"
--   RUN              text                     "the run"
--   --tree HASH      text tree_hash required  "tree that was reviewed"
--   --reviewer NAME  text reviewer            "name of the reviewer"
--   says     approved tree {tree_hash} of run {RUN}
--   about    Refused unless that tree awaits review. Then no other tree can be merged.
--   example  annal run approve r1 --tree 4b825dc --reviewer bob

-- verb run transition   appends run.transition   session run_{RUN}
--      "change the status of a run, as the table run_edges allows"
--   RUN               text                     "the run"
--   STATUS            text to                  "the new status"
--   --expect STATUS   list expected            "a status that it must have now; repeat"
--   --operation NAME  text operation           "operation of run_edges that must allow it"
--   --result TEXT     body result              "result of the run"
--   --reviewer NAME   text reviewer            "name of the reviewer"
--   --tree HASH       text tree_hash           "tree that was reviewed"
--   --conflict FILE   list conflicts           "a file with a merge conflict; repeat"
--   --commit HASH     text merged_commit_hash  "commit of the merge"
--   --override        flag override            "allow a change that run_edges does not allow"
--   --reason TEXT     text reason              "reason; required with --override"
--   --token N         number fencing_token     "fencing token; must be the latest"
--   says     run {RUN} is {STATUS}
--   about    Compare and set: refused unless the status is one of --expect, and unless
--            run_edges has an edge from there to STATUS. Only --override with a reason,
--            which is stored in the run's row, leaves a terminal status or merges a tree
--            without approval.
--   example  annal run transition r1 declined --expect awaiting_review --reviewer bob
--            annal run transition r1 merged --expect merging --commit 1f2e3d
--            annal run transition r1 awaiting_review --override --reason "try again"

-- verb run merge   appends run.transition   session run_{RUN}
--      "start to merge a run that was reviewed"
--   RUN              text                  "the run"
--   --tree HASH      text tree_hash        "tree to merge; must be the approved one"
--   --reviewer NAME  text reviewer         "reviewer; must be the one who approved"
--   --token N        number fencing_token  "fencing token; must be the latest"
--   to = "merging"
--   expected = ["awaiting_review","committing"]
--   says     run {RUN} is merging
--   about    Refused unless the tree of the run is approved, and equals --tree. If several
--            callers try, one succeeds. Then do the merge, and end with annal run
--            transition RUN merged or merge_failed. To merge a tree without approval, use
--            annal run transition with --override.
--   example  annal run merge r1 --tree 4b825dc --reviewer bob

-- verb run archive   appends run.archived   session run_{RUN}   "archive a run"
--   RUN       text  "the run"
--   says     run {RUN} is archived
--   about    Its rows and its history stay.
--   example  annal run archive r1

-- verb run close   appends stream.closed   session run_{RUN}
--      "close the stream of a run: it accepts no more events"
--   RUN            text         "the run"
--   --reason TEXT  text reason  "reason"
--   says     the stream of run {RUN} is closed
--   about    A terminal event only tells tails to stop; a closed stream refuses further
--            events.
--   example  annal run close r1 --reason "no more events"

-- verb run recover   appends run.transition   each
--      "return runs to review that a restart interrupted"
--   --project PROJECT  text  "only runs of this project"
--   --status STATUS    text  "only runs in this status"
--   --open             flag  "only runs that have not ended"
--   about    For each run that is committing or merging it appends a run.transition,
--            guarded by the status in which the run was found.
--   example  annal run recover --project shop
SELECT 'run_' || id AS session,
       json_object('to', 'awaiting_review', 'expected', status, 'operation',
                   CASE status WHEN 'merging' THEN 'revert_merge' ELSE 'revert_commit' END) AS data,
       'run ' || id || ' was ' || status || ' and awaits review again' AS says,
       'run ' || id AS subject
FROM agentweaver.runs
WHERE status IN ('committing', 'merging')
  AND (?1 IS NULL OR project_id = ?1)
  AND (?2 IS NULL OR status = ?2)
ORDER BY id;

-- verb run ls   selects   "list runs"
--   --project PROJECT  text  "only runs of this project"
--   --status STATUS    text  "only runs in this status"
--   --open             flag  "only runs that have not ended"
--   about    Archived runs are not listed.
--   example  annal run ls --project shop --open
SELECT id, project_id, status, origin, task, agent_name, worktree_path, worktree_branch, tree_hash
FROM agentweaver.runs
WHERE archived_at IS NULL
  AND (?1 IS NULL OR project_id = ?1)
  AND (?2 IS NULL OR status = ?2)
  AND (?3 IS NULL OR status IN (SELECT status FROM agentweaver.run_statuses WHERE NOT terminal))
ORDER BY created_at, id;

-- verb run show   selects   "show a run"
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
--   --all       flag    "print the history to its end, and do not wait"
--   needs       memory
--   about    Every event once, in order: events from --from on, then each new event once it
--            is durable, whichever process appends it. It stops after an event that ends
--            the run (run.completed, run.failed, run.cancelled, run.assemble_ready,
--            merge.completed, merge.failed, review.declined, a run.transition to a terminal
--            status, stream.closed) if no event follows. With --all it prints all existing
--            events, including those after such an event, and does not wait.
--   example  annal run tail r1 --from 17

-- noun backlog   "tasks of a project, in their order (agentweaver)"

-- verb backlog add   appends backlog.captured   session proj_{PROJECT}
--      "add a task to the backlog of a project"
--   PROJECT             text                "the project"
--   TITLE               text title          "task to be done, in a line"
--   --description TEXT  body description    "longer description"
--   --id TASK           text task_id        "task id (the next t1, t2, …)"
--   --by NAME           text created_by     "author of the task"
--   --key KEY           text order_key      "order key; refused if it is taken"
--   --wish KEY          text requested_key  "order key, or the next free key after it"
--   says     added task {task_id} to the backlog of {PROJECT}
--   about    Each task has an order key, which is unique among the tasks in the same state.
--            Without a key the task is added at the end.
--   example  annal backlog add shop "Add a cart" --by ada

-- verb backlog edit   appends backlog.edited   session proj_{PROJECT}
--      "change title or description of a task"
--   PROJECT             text              "the project"
--   TASK                text task_id      "the task"
--   --title TEXT        text title        "new title"
--   --description TEXT  body description  "new description"
--   says     changed task {TASK}
--   about    Values that are not given stay unchanged.
--   example  annal backlog edit shop t1 --title "Add a cart that remembers"

-- verb backlog override   appends backlog.override_set   session proj_{PROJECT}
--      "set options for the run of a task"
--   PROJECT   text            "the project"
--   TASK      text task_id    "the task"
--   JSON      json overrides  "options for its run"
--   says     set options for the run of task {TASK}
--   about    Possible until a run has claimed the task.
--   example  annal backlog override shop t1 '{"model":"gpt-5"}'

-- verb backlog commit   appends backlog.committed   session proj_{PROJECT}
--      "mark a task as ready to be claimed"
--   PROJECT    text            "the project"
--   TASK       text task_id    "the task"
--   --key KEY  text order_key  "order key; refused if it is taken"
--   says     task {TASK} is ready
--   about    It is placed after the tasks that are ready, or at --key.
--   example  annal backlog commit shop t1

-- verb backlog commit-all   appends backlog.bulk_committed   session proj_{PROJECT}
--      "mark several tasks as ready, all or none"
--   PROJECT   text           "the project"
--   TASK      list task_ids  "the tasks"
--   says     the tasks are ready
--   about    They are placed after the tasks that are ready, in their previous order.
--   example  annal backlog commit-all shop t1 t2 t3

-- verb backlog return   appends backlog.returned   session proj_{PROJECT}
--      "return a task to the backlog"
--   PROJECT    text            "the project"
--   TASK       text task_id    "the task"
--   --key KEY  text order_key  "order key; refused if it is taken"
--   says     returned task {TASK} to the backlog
--   about    It is placed at the end of the backlog, or at --key.
--   example  annal backlog return shop t1

-- verb backlog move   appends backlog.reordered   session proj_{PROJECT}
--      "move a task to another place"
--   PROJECT       text                "the project"
--   TASK          text task_id        "the task"
--   --key KEY     text order_key      "order key; refused if it is taken"
--   --wish KEY    text requested_key  "order key, or the next free key after it"
--   --after TASK  text after          "place it after this task"
--   says     task {TASK} has order key {order_key}
--   about    With --wish, a taken key is replaced by the next greater free key; there are
--            five tries.
--   example  annal backlog move shop t3 --after t1

-- verb backlog claim   appends backlog.claimed   session proj_{PROJECT}
--      "claim a task and reserve its run, in one event"
--   PROJECT        text                         "the project"
--   [TASK]         text task_id                 "task (the first ready task)"
--   --run RUN      text run.id                  "id of its run (PROJECT-TASK)"
--   --prompt TEXT  body run.task                "task of the run (the title)"
--   --agent NAME   text run.agent_name          "name of the agent"
--   --model MODEL  text run.model_id            "model of the agent"
--   --user NAME    text run.submitting_user     "user who requested it"
--   --branch NAME  text run.originating_branch  "branch from which its worktree starts"
--   says     task {task_id} is claimed by run {run.id}
--   about    The task must be ready. If several callers try, one succeeds; the others are
--            refused, and nothing of theirs is stored. The run is in progress at once;
--            continue with annal run worktree.
--   example  annal backlog claim shop --user worker-7 --json
--            annal backlog claim shop t1 --run r1

-- verb backlog archive   appends backlog.archived   session proj_{PROJECT}
--      "archive a task, and its run"
--   PROJECT   text          "the project"
--   TASK      text task_id  "the task"
--   says     task {TASK} is archived
--   about    Its order key becomes free.
--   example  annal backlog archive shop t1

-- verb backlog delete   appends backlog.deleted   session proj_{PROJECT}
--      "delete a task that no run has claimed"
--   PROJECT   text          "the project"
--   TASK      text task_id  "the task"
--   says     deleted task {TASK}
--   about    The journal still shows the task.
--   example  annal backlog delete shop t1

-- verb backlog ls   selects   "list the tasks of a project, in their order"
--   PROJECT        text  "the project"
--   --state STATE  text  "backlog, ready or claimed (all)"
--   about    Archived tasks are not listed.
--   example  annal backlog ls shop --state ready
SELECT id, state, order_key, title, run_id
FROM agentweaver.backlog_tasks
WHERE project_id = ?1 AND archived_at IS NULL AND (?2 IS NULL OR state = ?2)
ORDER BY CASE state WHEN 'ready' THEN 0 WHEN 'backlog' THEN 1 ELSE 2 END, order_key;

-- noun revision   "feedback to runs, append-only (agentweaver)"

-- verb revision record   appends revision.recorded   session run_{RUN}
--      "record feedback to a run permanently"
--   RUN               text                    "the run"
--   COMMENT           body raw_comment        "feedback; - reads standard input"
--   --reviewer NAME   text reviewer_user      "name of the reviewer"
--   --sanitized TEXT  text sanitized_comment  "feedback that an agent may read"
--   --number N        number revision_number  "number of the revision (the next)"
--   says     recorded revision {revision_number} of run {RUN}
--   about    Revisions are only added: no event changes or deletes one. To send the run
--            back to work, continue with annal run transition RUN in_progress.
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

-- verb lease claim   appends lease.claimed   session run_{RUN}   "claim the execution of a run"
--   RUN                text             "the run"
--   OWNER              text owner_id    "name of the worker"
--   --for MS           number lease_ms  "duration in milliseconds (60000)"
--   --project PROJECT  text             "project of its task, if another host claimed it"
--   says     {OWNER} holds run {RUN} with token {fencing_token}
--   about    Refused while another worker holds the run. The new fencing token is the last
--            token plus one; events with an older token (--token) are refused from then on.
--            If another host claimed the task of the run, give --project, whose events are
--            read first.
--   example  annal lease claim r1 worker-7 --for 30000 --json

-- verb lease renew   appends lease.renewed   session run_{RUN}   "extend the lease on a run"
--   RUN       text                  "the run"
--   OWNER     text owner_id         "name of the worker"
--   TOKEN     number fencing_token  "fencing token of the claim"
--   --for MS  number lease_ms       "duration in milliseconds (60000)"
--   says     extended the lease of {OWNER} on run {RUN}
--   about    Refused if another worker has claimed the run in the meantime.
--   example  annal lease renew r1 worker-7 3

-- verb lease release   appends lease.released   session run_{RUN}   "release a run for other workers"
--   RUN       text                  "the run"
--   OWNER     text owner_id         "name of the worker"
--   TOKEN     number fencing_token  "fencing token of the claim"
--   says     released run {RUN}
--   about    Its token stays used: the next claim has a greater token.
--   example  annal lease release r1 worker-7 3

-- verb lease show   selects   "show the worker of a run"
--   RUN       text  "the run"
--   about    Prints nothing if no worker ever held it.
--   example  annal lease show r1
SELECT * FROM agentweaver.run_leases WHERE run_id = ?1;

-- noun usage   "tokens that runs used (agentweaver)"

-- verb usage record   appends agent.turn.usage   session run_{RUN}
--      "record the tokens that a turn of a run used"
--   RUN           text                 "the run"
--   MODEL         text modelId         "model that was used"
--   --input N     number inputTokens   "input tokens"
--   --output N    number outputTokens  "output tokens"
--   --total N     number totalTokens   "all tokens (their sum)"
--   --nano-aiu N  number totalNanoAiu  "cost in nano-AIU"
--   says     recorded usage of run {RUN}
--   about    Appends one event agent.turn.usage. Usage without a model would not be
--            counted.
--   example  annal usage record r1 gpt-5 --input 1200 --output 85

-- verb usage totals   selects   "tokens by run, workflow, project, model or hour, or of all"
--   --by WHAT     text = "run" (run|workflow|project|model|hour|app)
--                 "run, workflow, project, model, hour or app (run)"
--   --since TIME  time                                  "only usage at or after this time"
--   --until TIME  time                                  "only usage before this time"
--   about    Of all time, or of a period. The total of the application, --by app, is the
--            sum of its projects: usage without a project is not included.
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
