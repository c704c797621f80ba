-- SPDX-License-Identifier: Apache-2.0
-- ==== Events of runs ====

-- on run.created, run.worktree_set, run.started, run.review_ready, run.approved, run.transition, run.archived, run.workflow_graph, run.outcome, run.degraded, run.completed, run.failed, run.cancelled, run.assemble_ready, revision.recorded, lease.claimed, lease.renewed, lease.released, merge.completed, merge.failed, review.declined, review.requested, agent.message, agent.message.delta, agent.intent, agent.question_asked, agent.question_answered, tool.call, tool.result, tool.error, tool.approval_required, workflow.step, rai.verdict   guarded "the stream of this session is closed"
UPDATE gate SET id = id WHERE NOT EXISTS (SELECT 1 FROM closed_streams WHERE session_id = :session);

-- on *
INSERT INTO RunEvents (RunId, Sequence, EventType, PayloadJson, CreatedAt)
SELECT substr(:session, 5), :seq, :type, :data, :ts WHERE :session GLOB 'run_?*';

-- on stream.closed   guarded "the stream of this session is closed"
INSERT INTO closed_streams (session_id, reason, closed_at) VALUES (:session, $reason, :ts);
