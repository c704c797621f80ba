-- SPDX-License-Identifier: Apache-2.0
-- ==== Token usage ====

-- on agent.turn.usage
INSERT OR IGNORE INTO token_usage_records (id, run_id, workflow_run_id, project_id, model_id,
                                           input_tokens, output_tokens, total_tokens,
                                           total_nano_aiu, timestamp)
SELECT substr(:session, 5) || ':' || :seq,
       CASE WHEN :session GLOB '*-rai' THEN substr(:session, 5, length(:session) - 8)
            WHEN :session GLOB '*-scribe' THEN substr(:session, 5, length(:session) - 11)
            ELSE substr(:session, 5) END,
       COALESCE($workflow_run_id, $workflowRunId,
                (SELECT workflow_run_id FROM run_rows WHERE id = substr(:session, 5))),
       COALESCE($project_id, $projectId,
                (SELECT project_id FROM run_rows WHERE id = substr(:session, 5))),
       COALESCE($modelId, $model_id),
       annal_count($inputTokens, $input_tokens), annal_count($outputTokens, $output_tokens),
       annal_count($totalTokens, $total_tokens,
                   annal_count($inputTokens, $input_tokens)
                       + annal_count($outputTokens, $output_tokens)),
       annal_count($totalNanoAiu, $total_nano_aiu),
       COALESCE(annal_time($timestamp), :ts)
WHERE :session GLOB 'run_?*' AND COALESCE($modelId, $model_id, '') <> '';
