-- SPDX-License-Identifier: Apache-2.0
-- ==== Decisions ====

-- A slug belongs to one proposal. The agent that made the proposal changes it by proposing the slug
-- again, as long as it is pending. The proposal of another agent with this slug receives the slug
-- SLUG--AGENT (the agent's name in lower case, with - for what is neither a letter nor a digit), or
-- else SLUG--AGENT--2, and so on. That agent changes it by proposing SLUG again, too; a proposal
-- with $slug itself is not changed in this way.

-- fill decision.proposed
WITH wish(slug) AS (
         SELECT COALESCE($slug, $requested_slug, lower(replace(trim($title), ' ', '-')))),
     own(id, slug) AS (
         SELECT i.id, i.slug FROM decision_inbox i, wish
         WHERE i.agent_name = $agent_name
           AND ((i.project_id = substr(:session, 6) AND i.slug = wish.slug)
             OR (i.project_id = substr(:session, 6) AND i.requested_slug = wish.slug
                 AND i.status = 'pending' AND $slug IS NULL))
         ORDER BY i.slug = wish.slug DESC, i.seq LIMIT 1),
     spelled(rest, agent) AS (
         SELECT lower($agent_name), ''
         UNION ALL
         SELECT substr(rest, 2),
                agent || CASE WHEN substr(rest, 1, 1) GLOB '[a-z0-9]' THEN substr(rest, 1, 1)
                              WHEN agent GLOB '*-' THEN '' ELSE '-' END
         FROM spelled WHERE rest <> ''),
     other(slug) AS (
         SELECT wish.slug || '--' || COALESCE(NULLIF(trim(spelled.agent, '-'), ''), 'agent')
         FROM wish, spelled WHERE spelled.rest = ''),
     tries(n, slug) AS (
         SELECT 1, slug FROM wish
         UNION ALL
         SELECT n + 1, (SELECT slug FROM other) || CASE n WHEN 1 THEN '' ELSE '--' || n END
         FROM tries
         WHERE (SELECT id FROM own) IS NULL
           AND EXISTS (SELECT 1 FROM decision_inbox i
                       WHERE i.project_id = substr(:session, 6) AND i.slug = tries.slug))
SELECT COALESCE((SELECT id FROM own),
                (SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM decision_inbox
                                              WHERE project_id = substr(:session, 6)
                                                AND id = w.id)
                             THEN w.id
                             ELSE (SELECT 'i' || (1 + MAX(CAST(substr(id, 2) AS INTEGER)))
                                   FROM decision_inbox
                                   WHERE project_id = substr(:session, 6)
                                     AND id GLOB 'i[0-9]*') END
                 FROM (SELECT 'i' || (1 + COALESCE((SELECT CAST(substr(id, 2) AS INTEGER)
                                                    FROM decision_inbox
                                                    WHERE project_id = substr(:session, 6)
                                                    ORDER BY seq DESC LIMIT 1), 0)) AS id) w))
           AS entry_id,
       COALESCE((SELECT slug FROM own), (SELECT slug FROM tries ORDER BY n DESC LIMIT 1)) AS slug,
       (SELECT slug FROM wish) AS requested_slug;

-- on decision.proposed   guarded "the agent's proposal with this slug is merged or rejected already"
UPDATE gate SET id = id
WHERE NOT EXISTS (SELECT 1 FROM decision_inbox
                  WHERE project_id = substr(:session, 6) AND id = $entry_id AND slug = $slug
                    AND agent_name = $agent_name AND status <> 'pending');

-- on decision.proposed   guarded "the proposal needs agent_name, type, title and content, and a slug that no other proposal of the project has"
INSERT INTO decision_inbox (project_id, id, agent_name, slug, type, title, content, rationale,
                            created_at, updated_at, seq, requested_slug)
SELECT substr(:session, 6), $entry_id, $agent_name, $slug, $type, $title, $content, $rationale,
       COALESCE(annal_time($created_at), :ts), :ts, :seq, $requested_slug
WHERE :session GLOB 'proj_?*' AND $slug <> '' AND $agent_name <> '' AND $type <> ''
  AND $title <> '' AND $content <> ''
ON CONFLICT (project_id, id) DO UPDATE SET
    type = excluded.type, title = excluded.title, content = excluded.content,
    rationale = excluded.rationale, updated_at = excluded.updated_at
    WHERE status = 'pending' AND agent_name = excluded.agent_name AND slug = excluded.slug;

-- on decision.proposal_updated, decision.promoted, decision.rejected   guarded "there is no such proposal"
UPDATE decision_inbox SET id = id
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id;

-- on decision.proposal_updated, decision.promoted, decision.rejected   guarded "the proposal is merged or rejected already"
UPDATE decision_inbox SET id = id
WHERE project_id = substr(:session, 6) AND id = $entry_id AND status = 'pending';

-- on decision.proposal_updated   guarded "only the agent that made the proposal may change it"
UPDATE decision_inbox SET
    type = COALESCE($type, type), title = COALESCE($title, title),
    content = COALESCE($content, content), rationale = COALESCE($rationale, rationale),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id
  AND status = 'pending' AND agent_name = $agent_name;

-- A promotion copies the proposal into the event: the decision is exactly what was accepted.
-- fill decision.promoted
SELECT (SELECT 'd' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) FROM decisions
        WHERE project_id = substr(:session, 6) AND id GLOB 'd[0-9]*') AS decision_id,
       i.type AS "decision::type", i.title AS "decision::title", i.content AS "decision::content",
       i.rationale AS "decision::rationale", i.agent_name AS "decision::agent_name"
FROM decision_inbox i WHERE i.project_id = substr(:session, 6) AND i.id = $entry_id;

-- on decision.promoted   guarded "the scribe may merge only learnings, patterns and updates"
UPDATE gate SET id = id
WHERE $by IS NOT 'scribe'
   OR EXISTS (SELECT 1 FROM promotion_rules r
                   JOIN decision_inbox i ON i.project_id = substr(:session, 6) AND i.id = $entry_id
              WHERE r.by = 'scribe' AND r.type = i.type);

-- on decision.promoted   guarded "the id of the decision is taken"
UPDATE decision_inbox SET
    status = 'merged', decision_id = $decision_id, merged_by = $by,
    merged_at = COALESCE(annal_time($merged_at), :ts), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id
  AND status = 'pending' AND $decision_id IS NOT NULL;
INSERT INTO decisions (project_id, id, type, title, content, rationale, agent_name, inbox_entry_id,
                       created_at, updated_at, seq)
SELECT project_id, decision_id, COALESCE($decision::type, type), COALESCE($decision::title, title),
       COALESCE($decision::content, content), COALESCE($decision::rationale, rationale),
       COALESCE($decision::agent_name, agent_name), id, merged_at, :ts, :seq
FROM decision_inbox
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id
  AND status = 'merged' AND decision_id = $decision_id;

-- All proposals that the rules let this role merge, in one event.
-- fill decision.batch_promoted
SELECT (SELECT json_group_array(json_object('entry_id', id, 'decision_id', 'd' || (base + place)))
        FROM (SELECT i.id, ROW_NUMBER() OVER (ORDER BY i.seq, i.id) AS place,
                     (SELECT COALESCE(MAX(CAST(substr(d.id, 2) AS INTEGER)), 0) FROM decisions d
                      WHERE d.project_id = substr(:session, 6) AND d.id GLOB 'd[0-9]*') AS base
              FROM decision_inbox i JOIN promotion_rules r ON r.by = $by AND r.type = i.type
              WHERE i.project_id = substr(:session, 6) AND i.status = 'pending'
              ORDER BY place)) AS entries;

-- on decision.batch_promoted   guarded "there is no pending proposal that this role may merge"
UPDATE decision_inbox SET
    status = 'merged', merged_by = $by, merged_at = COALESCE(annal_time($merged_at), :ts),
    decision_id = (SELECT value ->> 'decision_id' FROM json_each($entries)
                   WHERE value ->> 'entry_id' = decision_inbox.id),
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND status = 'pending'
  AND id IN (SELECT value ->> 'entry_id' FROM json_each($entries))
  AND type IN (SELECT type FROM promotion_rules WHERE by = $by);
INSERT INTO decisions (project_id, id, type, title, content, rationale, agent_name, inbox_entry_id,
                       created_at, updated_at, seq)
SELECT i.project_id, i.decision_id, i.type, i.title, i.content, i.rationale, i.agent_name, i.id,
       i.merged_at, :ts, :seq
FROM decision_inbox i
WHERE i.project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND i.status = 'merged'
  AND i.decision_id IN (SELECT value ->> 'decision_id' FROM json_each($entries)
                        WHERE value ->> 'entry_id' = i.id)
  AND NOT EXISTS (SELECT 1 FROM decisions d
                  WHERE d.project_id = i.project_id AND d.inbox_entry_id = i.id)
ORDER BY i.seq, i.id;

-- on decision.rejected   guarded "the proposal is merged or rejected already"
UPDATE decision_inbox SET
    status = 'rejected', rejected_at = COALESCE(annal_time($rejected_at), :ts), reason = $reason,
    updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $entry_id
  AND status = 'pending';

-- fill decision.created
SELECT 'd' || (1 + COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0)) AS decision_id FROM decisions
WHERE project_id = substr(:session, 6) AND id GLOB 'd[0-9]*';

-- on decision.created   guarded "the decision needs type, title and content, and an unused id"
INSERT INTO decisions (project_id, id, type, title, content, rationale, agent_name, created_at,
                       updated_at, seq)
SELECT substr(:session, 6), $decision_id, $type, $title, $content, $rationale, $agent_name,
       COALESCE(annal_time($created_at), :ts), :ts, :seq
WHERE :session GLOB 'proj_?*' AND $decision_id <> '' AND $type <> '' AND $title <> ''
  AND $content <> '';

-- on decision.updated, decision.superseded   guarded "there is no such decision"
UPDATE decisions SET id = id
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $decision_id;

-- on decision.updated
UPDATE decisions SET
    type = COALESCE($type, type), title = COALESCE($title, title),
    content = COALESCE($content, content), rationale = COALESCE($rationale, rationale),
    agent_name = COALESCE($agent_name, agent_name), updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $decision_id;

-- on decision.superseded   guarded "the decision that replaces it does not exist, is the same, or is superseded itself"
UPDATE decisions SET
    status = 'superseded', superseded_by_id = $superseded_by_id, updated_at = :ts
WHERE project_id = substr(:session, 6) AND :session GLOB 'proj_?*' AND id = $decision_id
  AND id <> $superseded_by_id
  AND EXISTS (SELECT 1 FROM decisions o
              WHERE o.project_id = decisions.project_id AND o.id = $superseded_by_id
                AND o.status = 'active');
