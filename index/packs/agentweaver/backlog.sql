-- SPDX-License-Identifier: Apache-2.0
-- ==== Backlog ====

-- fill backlog.captured
SELECT 't' || CASE WHEN NOT EXISTS (SELECT 1 FROM backlog_tasks
                                    WHERE project_id = p.id AND id = 't' || p.next_task)
                   THEN p.next_task
                   ELSE (SELECT 1 + MAX(CAST(substr(id, 2) AS INTEGER)) FROM backlog_tasks
                         WHERE project_id = p.id AND id GLOB 't[0-9]*') END AS task_id,
       CASE WHEN $requested_key IS NULL THEN
           (SELECT stem || printf('%010d', number + 1000) FROM backlog_ends
            WHERE project_id = p.id AND state = 'backlog')
       ELSE
           (SELECT k FROM (SELECT 0 AS n, '' || $requested_key AS k
                           UNION ALL SELECT 1, $requested_key || 'n'
                           UNION ALL SELECT 2, $requested_key || 'nn'
                           UNION ALL SELECT 3, $requested_key || 'nnn'
                           UNION ALL SELECT 4, $requested_key || 'nnnn'
                           UNION ALL SELECT 5, $requested_key || 'nnnnn')
            WHERE NOT EXISTS (SELECT 1 FROM backlog_order o
                              WHERE o.project_id = p.id AND o.state = 'backlog'
                                AND o.order_key = k)
            ORDER BY n LIMIT 1) END AS order_key
FROM projects p WHERE p.id = substr(:session, 6);

-- on backlog.captured   guarded "there is no such project, or it is being deleted"
UPDATE projects SET next_task = next_task + 1
WHERE id = substr(:session, 6) AND :session GLOB 'proj_?*' AND state = 'active';

-- on backlog.captured   guarded "the task has no title, or its id or order key is taken"
INSERT INTO backlog_tasks (project_id, id, title, description, state, order_key, overrides,
                           created_by, created_at, updated_at)
SELECT p.id, $task_id, $title, $description, 'backlog', '' || $order_key, $overrides, $created_by,
       COALESCE(annal_time($created_at), :ts), :ts
FROM projects p
WHERE p.id = substr(:session, 6) AND :session GLOB 'proj_?*' AND p.state = 'active'
  AND COALESCE($title, '') <> '';

-- on backlog.edited   guarded "there is no such task in the backlog"
UPDATE backlog_tasks SET
    title = COALESCE($set::title, $title, title),
    description = COALESCE($set::description, $description, description),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND archived_at IS NULL;

-- on backlog.override_set   guarded "there is no such task, or it is claimed already"
UPDATE backlog_tasks SET overrides = $overrides, updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND archived_at IS NULL AND state IN ('backlog', 'ready');

-- fill backlog.committed
SELECT stem || printf('%010d', number + 1000) AS order_key FROM backlog_ends
WHERE project_id = substr(:session, 6) AND state = 'ready';

-- on backlog.committed   guarded "the task is not in the backlog, or its order key is taken"
UPDATE backlog_tasks SET
    state = 'ready', order_key = '' || COALESCE($order_key, order_key),
    committed_at = COALESCE(annal_time($committed_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state = 'backlog' AND archived_at IS NULL;

-- Items are [{task_id, order_key}]. Tasks in task_ids are placed after the ready tasks, in their
-- previous order.
-- fill backlog.bulk_committed
SELECT (SELECT json_group_array(json_object('task_id', id, 'order_key',
                   e.stem || printf('%010d', e.number + 1000 * place)))
        FROM (SELECT t.id, ROW_NUMBER() OVER (ORDER BY t.order_key IS NULL, t.order_key, j.key)
                               AS place
              FROM (SELECT key, value AS id FROM json_each($task_ids)) j
                   LEFT JOIN backlog_tasks t
                       ON t.project_id = substr(:session, 6) AND t.id = j.id
              ORDER BY place)) AS items
FROM backlog_ends e
WHERE e.project_id = substr(:session, 6) AND e.state = 'ready' AND json_valid($task_ids);

-- on backlog.bulk_committed   guarded "not all of these tasks are in the backlog, or an order key is taken"
UPDATE backlog_tasks SET
    state = 'ready',
    order_key = (SELECT '' || (value ->> 'order_key') FROM json_each($items)
                 WHERE value ->> 'task_id' = backlog_tasks.id),
    committed_at = COALESCE(annal_time($committed_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*'
  AND id IN (SELECT value ->> 'task_id' FROM json_each($items))
  AND (SELECT COUNT(*) FROM backlog_tasks t
       WHERE t.project_id = substr(:session, 6) AND t.state = 'backlog' AND t.archived_at IS NULL
         AND t.id IN (SELECT value ->> 'task_id' FROM json_each($items)))
      = (SELECT COUNT(*) FROM json_each($items));

-- fill backlog.returned
SELECT stem || printf('%010d', number + 1000) AS order_key FROM backlog_ends
WHERE project_id = substr(:session, 6) AND state = 'backlog';

-- on backlog.returned   guarded "the task is not ready, or its order key is taken"
UPDATE backlog_tasks SET
    state = 'backlog', order_key = '' || COALESCE($order_key, order_key), committed_at = NULL,
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state = 'ready' AND run_id IS NULL AND archived_at IS NULL;

-- After the task $after, or at $requested_key or the next free keys after it.
-- fill backlog.reordered
SELECT (SELECT k FROM (SELECT 0 AS n, '' || $requested_key AS k
                       UNION ALL SELECT 1, w.base || 'n'
                       UNION ALL SELECT 2, w.base || CASE WHEN $after IS NULL THEN 'nn' ELSE 'g' END
                       UNION ALL SELECT 3, w.base || CASE WHEN $after IS NULL THEN 'nnn' ELSE 'd' END
                       UNION ALL SELECT 4, w.base || CASE WHEN $after IS NULL THEN 'nnnn' ELSE 'b' END
                       UNION ALL SELECT 5, w.base || CASE WHEN $after IS NULL THEN 'nnnnn' ELSE 'an' END)
        WHERE k IS NOT NULL
          AND ($after IS NULL
               OR k < COALESCE((SELECT MIN(o.order_key) FROM backlog_order o
                                WHERE o.project_id = w.project_id AND o.state = w.state
                                  AND o.order_key > w.base AND o.id <> w.id), k || 'n'))
          AND NOT EXISTS (SELECT 1 FROM backlog_order o
                          WHERE o.project_id = w.project_id AND o.state = w.state
                            AND o.order_key = k AND o.id <> w.id)
        ORDER BY n LIMIT 1) AS order_key
FROM (SELECT t.project_id, t.state, t.id,
             COALESCE('' || $requested_key,
                      (SELECT a.order_key FROM backlog_order a
                       WHERE a.project_id = t.project_id AND a.state = t.state AND a.id = $after))
                 AS base
      FROM backlog_tasks t WHERE t.project_id = substr(:session, 6) AND t.id = $task_id) w;

-- on backlog.reordered   guarded "the task is not in the expected state, or there is no free order key at this place"
UPDATE backlog_tasks SET order_key = '' || $order_key, updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state = COALESCE($expected, $expect::state, state) AND state IN ('backlog', 'ready')
  AND run_id IS NULL AND archived_at IS NULL AND $order_key IS NOT NULL;

-- Without a task, the first ready task; without a run, the run receives a name.
-- fill backlog.claimed
SELECT w.task_id, w.run_id AS "run::id",
       CASE WHEN EXISTS (SELECT 1 FROM run_rows r WHERE r.id = w.run_id)
                 OR EXISTS (SELECT 1 FROM run_reservations b WHERE b.run_id = w.run_id)
            THEN 1 END AS run_taken
FROM (SELECT task_id, COALESCE($run::id, substr(:session, 6) || '-' || task_id) AS run_id
      FROM (SELECT COALESCE($task_id,
                            (SELECT id FROM backlog_tasks
                             WHERE project_id = substr(:session, 6) AND state = 'ready'
                               AND state IN ('backlog', 'ready') AND archived_at IS NULL
                             ORDER BY order_key LIMIT 1)) AS task_id)) w;

-- on backlog.claimed   guarded "there is no such project, or it is being deleted"
UPDATE projects SET id = id
WHERE id = substr(:session, 6) AND :session GLOB 'proj_?*' AND state = 'active';

-- on backlog.claimed   guarded "a run with this name exists already"
UPDATE projects SET id = id
WHERE id = substr(:session, 6) AND :session GLOB 'proj_?*' AND $run_taken IS NULL
  AND NOT EXISTS (SELECT 1 FROM run_reservations
                  WHERE project_id = substr(:session, 6) AND run_id = $run::id);

-- on backlog.claimed   guarded "the task is not ready, or another run has claimed it"
UPDATE backlog_tasks SET
    state = 'claimed', run_id = $run::id, claimed_at = COALESCE(annal_time($claimed_at), :ts),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state = 'ready' AND run_id IS NULL AND archived_at IS NULL
  AND $run::id IS NOT NULL AND $run_taken IS NULL
  AND EXISTS (SELECT 1 FROM projects WHERE id = substr(:session, 6) AND state = 'active');
INSERT INTO run_reservations (project_id, run_id, task_id, workflow_run_id, parent_run_id,
                              subtask_id, retried_from, origin, task, agent_name, model_id,
                              provider, submitting_user, originating_branch, worktree_path,
                              worktree_branch, reserved_at)
SELECT t.project_id, t.run_id, t.id, $run::workflow_run_id, $run::parent_run_id, $run::subtask_id,
       $run::retried_from, COALESCE($origin, $run::origin, 'backlog_pickup'),
       COALESCE($run::task, $run::prompt, t.title), $run::agent_name,
       COALESCE($run::model_id, $run::model), $run::provider, $run::submitting_user,
       $run::originating_branch, $run::worktree_path, $run::worktree_branch, t.claimed_at
FROM backlog_tasks t
WHERE t.project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND t.id = $task_id
  AND t.run_id = $run::id
ON CONFLICT (project_id, run_id) DO NOTHING;

-- on backlog.archived   guarded "there is no such task, or it is archived already"
UPDATE backlog_tasks SET archived_at = COALESCE(annal_time($archived_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND archived_at IS NULL;
UPDATE run_reservations SET archived_at = COALESCE(annal_time($archived_at), :ts)
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND task_id = $task_id
  AND archived_at IS NULL;

-- on backlog.deleted   guarded "there is no such task, or a run has claimed it"
DELETE FROM backlog_tasks
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $task_id
  AND state IN ('backlog', 'ready') AND run_id IS NULL;
