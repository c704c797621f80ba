/*
 * annal memory compile: the context of an agent, chosen from the tables of pack memory.
 *
 * (1) Active architectural and scope decisions come first, oldest first, all of them: they bind
 *     everybody. The current session comes last: it is useful, and overrides nothing.
 * (2) Between them memories: the agent's core context, and learnings and patterns of high importance
 *     that are its own or tagged cross-team. A higher score first, then the newer one.
 * (3) They are taken in that order until there are enough, or until the first one that does not fit
 *     into what is left of the budget. None behind it is taken, however small: what an agent is told
 *     never depends on how long something less important is.
 */
#include "tools/agentweaver.h"
#include "tools/rows.h"
#include "tools/verbs.h"

#include <inttypes.h>
#include <string.h>

enum { ITEMS_DEFAULT = 20, TOKENS_DEFAULT = 4000, TOKEN_CHARACTERS = 4 };

/* ?1 project, ?2 agent, ?3 items, ?4 characters, ?5 not only boundaries, ?6 also what is left out */
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
    "SELECT 1 AS layer, row_number() OVER (ORDER BY created_at, seq, id) AS n, 'boundary' AS kind, "
    "id, type AS label, title, content, rationale, NULL AS score, NULL AS cost, created_at, 1 AS "
    "taken, 'active ' || type || ' decision: binds everybody' AS why FROM "
    "memory.memory_boundaries WHERE project_id = ?1 "
    "UNION ALL "
    "SELECT 2, n, 'memory', id, label, NULL, content, NULL, score, cost, created_at, taken, CASE "
    "WHEN type = 'core_context' THEN 'core context of ' || agent_name WHEN agent_name = ?2 THEN "
    "'its own ' || type ELSE type || ' of ' || agent_name || ', tagged cross-team' END || ', "
    "importance ' || importance || ': score ' || score || CASE WHEN taken THEN '' WHEN n > ?3 THEN "
    "'; left out: more than ' || ?3 || ' items' WHEN used - cost <= ?4 THEN '; left out: costs ' "
    "|| cost || ' characters, and ' || (?4 - used + cost) || ' are left' ELSE '; left out: one "
    "before it did not fit' END FROM memories "
    "UNION ALL "
    "SELECT 3, 1, 'session', session_id, 'session', focus_area, trim(COALESCE('Issues: ' || "
    "active_issues || char(10), '') || COALESCE(summary, ''), char(10)), NULL, NULL, NULL, "
    "started_at, 1, 'the current session: last, for it overrides nothing' FROM "
    "memory.session_contexts_current WHERE ?5 AND project_id = ?1) "
    "SELECT row_number() OVER (ORDER BY layer, n) AS place, kind AS layer, id, label, title, "
    "content, rationale, score, cost, created_at, taken AS included, why FROM items WHERE taken OR "
    "?6 ORDER BY layer, n";

enum { PLACE, LAYER, ID, LABEL, TITLE, CONTENT, RATIONALE, SCORE, COST, CREATED, INCLUDED, WHY };

struct compiled {
    bool json;
    char layer; /* first letter of the last one printed */
};

static void print_text(const annal_row *row)
{
    const annal_value *values = row->values;
    annal_slice title = values[TITLE].bytes, content = values[CONTENT].bytes;
    printf("%s%.*s: ", values[INCLUDED].integer != 0 ? "- " : "x ", ANNAL_FMT(values[LABEL].bytes));
    out_plain(title);
    if (title.len > 0 && content.len > 0)
        printf(" - ");
    out_plain(content);
    printf("\n");
    if (values[RATIONALE].kind == ANNAL_VALUE_TEXT) {
        printf("    rationale: ");
        out_plain(values[RATIONALE].bytes);
        printf("\n");
    }
    printf("    why: ");
    out_plain(values[WHY].bytes);
    printf("\n");
}

static int print_row(void *arg, const annal_row *row)
{
    struct compiled *compiled = arg;
    char layer = row->values[LAYER].bytes.ptr[0];
    if (compiled->json) {
        printf("{");
        rows_print_members(row);
        printf("}\n");
        return 0;
    }
    if (layer != compiled->layer)
        printf("%s## %s\n", compiled->layer == '\0' ? "" : "\n",
               layer == 'b'   ? "Boundaries"
               : layer == 'm' ? "Memory"
                              : "Current session");
    compiled->layer = layer;
    print_text(row);
    return 0;
}

/* A count that is at least 1, and whose product with 4 is still a number. */
static int read_count(const struct args *args, const char *name, uint64_t *out)
{
    int exit_status = args_number(args, name, out);
    if (exit_status == 0 && (*out == 0 || *out > UINT32_MAX))
        exit_status = fail_usage("--%s is a number from 1 to %u", name, UINT32_MAX);
    return exit_status;
}

int memory_compile(const struct args *args)
{
    struct verb_call call;
    uint64_t items = ITEMS_DEFAULT, tokens = TOKENS_DEFAULT;
    annal_error err = {0};
    struct compiled compiled = {.json = args->json};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = read_count(args, "items", &items);
    if (exit_status == 0)
        exit_status = read_count(args, "tokens", &tokens);
    if (exit_status == 0) {
        const annal_value params[] = {
            {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(verb_text(args, "PROJECT"))},
            {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(args_get(args, "agent"))},
            {.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)items},
            {.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)tokens * TOKEN_CHARACTERS},
            {.kind = ANNAL_VALUE_INTEGER, .integer = !args_has(args, "child")},
            {.kind = ANNAL_VALUE_INTEGER, .integer = args_has(args, "all")}};
        const annal_sql_options options = {.params = params,
                                           .param_count = sizeof params / sizeof *params};
        if (annal_sql(call.index, annal_slice_of(SELECT), &options, print_row, &compiled, &err) < 0)
            exit_status = fail_error(&err);
    }
    return verb_close(&call, exit_status);
}
