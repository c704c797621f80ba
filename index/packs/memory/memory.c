/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of an agent, chosen from the tables of pack memory.
 *
 * (1) First come all active architectural and scope decisions, the oldest first, because they bind
 *     all agents. The current session is last, because it overrides nothing.
 * (2) Memories are between them: the agent's core context, and learnings and patterns of high
 *     importance that are its own or tagged cross-team. Memories with a higher score are first,
 *     then newer memories.
 * (3) Memories are added in the order of (2) until their number reaches the limit, or until the
 *     first memory that exceeds the remaining budget of characters. No memory after it is added,
 *     however small, so that less important memories never replace a more important one.
 */
#include "index/packs/need.h"

#include <annal/packs/memory.h>
#include <annal/query.h>

enum { ITEMS_DEFAULT = 20, TOKENS_DEFAULT = 4000, TOKEN_CHARACTERS = 4 };

/*
 * Parameters: ?1 project, ?2 agent, ?3 largest number of memories, ?4 budget in characters, ?5
 * whether memories and the session are included (else only decisions), ?6 whether omitted memories
 * are returned, too.
 */
static const char SELECT[] =
    "WITH candidates AS (SELECT m.*, CASE WHEN type = 'core_context' THEN 'core' WHEN agent_name = "
    "?2 THEN type ELSE type || ' from ' || agent_name END AS label FROM memory.memory_scored m "
    "WHERE ?5 AND project_id = ?1 AND (agent_name = ?2 OR (cross_team AND type <> "
    "'core_context'))), "
    "placed AS (SELECT *, length(label) + length(content) + 6 AS cost, row_number() OVER w AS n, "
    "sum(length(label) + length(content) + 6) OVER w AS used FROM candidates WINDOW w AS (ORDER BY "
    "score DESC, created_at DESC, seq DESC, id ROWS UNBOUNDED PRECEDING)), "
    "memories AS (SELECT *, n <= ?3 AND used <= ?4 AS taken FROM placed), "
    "items AS ("
    "SELECT 1 AS layer, row_number() OVER (ORDER BY created_at, seq, id) AS n, "
    "id, type AS label, title, content, rationale, NULL AS score, NULL AS cost, created_at, 1 AS "
    "taken, 'active ' || type || ' decision: binds everybody' AS why FROM "
    "memory.memory_boundaries WHERE project_id = ?1 "
    "UNION ALL "
    "SELECT 2, n, id, label, NULL, content, NULL, score, cost, created_at, taken, CASE "
    "WHEN type = 'core_context' THEN 'core context of ' || agent_name WHEN agent_name = ?2 THEN "
    "'its own ' || type ELSE type || ' of ' || agent_name || ', tagged cross-team' END || ', "
    "importance ' || importance || ': score ' || score || CASE WHEN taken THEN '' WHEN n > ?3 THEN "
    "'; left out: more than ' || ?3 || ' items' WHEN used - cost <= ?4 THEN '; left out: costs ' "
    "|| cost || ' characters, and ' || (?4 - used + cost) || ' are left' ELSE '; left out: one "
    "before it did not fit' END FROM memories "
    "UNION ALL "
    "SELECT 3, 1, session_id, 'session', focus_area, trim(COALESCE('Issues: ' || "
    "active_issues || char(10), '') || COALESCE(summary, ''), char(10)), NULL, NULL, NULL, "
    "started_at, 1, 'the current session: last, for it overrides nothing' FROM "
    "memory.session_contexts_current WHERE ?5 AND project_id = ?1) "
    "SELECT row_number() OVER (ORDER BY layer, n), layer, id, label, title, "
    "content, rationale, score, cost, created_at, taken, why FROM items WHERE taken OR "
    "?6 ORDER BY layer, n";

enum { PLACE, LAYER, ID, LABEL, TITLE, CONTENT, RATIONALE, SCORE, COST, CREATED, INCLUDED, WHY };

struct compiled {
    annal_memory_fn fn;
    void *arg;
};

static int take_row(void *arg, const annal_row *row)
{
    const struct compiled *compiled = arg;
    const annal_value *values = row->values;
    const annal_memory_item item = {.place = (uint64_t)values[PLACE].integer,
                                    .layer = (annal_memory_layer)values[LAYER].integer,
                                    .id = annal__need_text_or_none(&values[ID]),
                                    .label = annal__need_text_or_none(&values[LABEL]),
                                    .title = annal__need_text_or_none(&values[TITLE]),
                                    .content = annal__need_text_or_none(&values[CONTENT]),
                                    .rationale = annal__need_text_or_none(&values[RATIONALE]),
                                    .created = annal__need_text_or_none(&values[CREATED]),
                                    .score = values[SCORE].integer,
                                    .cost = values[COST].integer,
                                    .included = values[INCLUDED].integer != 0,
                                    .why = annal__need_text_or_none(&values[WHY])};
    return compiled->fn(compiled->arg, &item);
}

annal_status annal_memory_compile(annal_index *index, annal_slice project, annal_slice agent,
                                  const annal_memory_options *options, annal_memory_fn fn,
                                  void *arg, annal_error *err)
{
    struct compiled compiled = {fn, arg};
    const annal_memory_options none = {0}, *how = options != NULL ? options : &none;
    int64_t items = how->items != 0 ? how->items : ITEMS_DEFAULT;
    int64_t tokens = how->tokens != 0 ? how->tokens : TOKENS_DEFAULT;
    const annal_value params[] = {
        {.kind = ANNAL_VALUE_TEXT, .bytes = project},
        {.kind = ANNAL_VALUE_TEXT, .bytes = agent},
        {.kind = ANNAL_VALUE_INTEGER, .integer = items},
        {.kind = ANNAL_VALUE_INTEGER, .integer = tokens * TOKEN_CHARACTERS},
        {.kind = ANNAL_VALUE_INTEGER, .integer = !how->child},
        {.kind = ANNAL_VALUE_INTEGER, .integer = how->all}};
    const annal_sql_options sql = {.params = params, .param_count = sizeof params / sizeof *params};
    annal_status status = annal__need_pack(index, "memory", err);
    if (status == ANNAL_OK)
        status = annal_sql(index, annal_slice_of(SELECT), &sql, take_row, &compiled, err);
    return status;
}
