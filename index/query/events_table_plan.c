/* SPDX-License-Identifier: Apache-2.0 */
/* Composing the conditions of a SELECT from a query of the table events: xBestIndex; see
 * events_table.h. */
#include "index/query/events_table.h"

static const char *const column_names[] = {"session_id", "seq", "timestamp", "type"};

struct plan {
    sqlite3_index_info *info;
    sqlite3_str *where;
    sqlite3_str *types; /* SQL of the conditions that select some types by a range or pattern */
    sqlite3_str *damages;
    int used;   /* number of values that are passed to xFilter */
    int number; /* bits for idxNum: EVENT_IS_LIST, … */
    int limit;  /* index of the constraint that is the limit, or -1 */
    int offset;
    bool exact;    /* whether the conditions select exactly the rows that the query wants */
    bool equal[4]; /* for each column: whether a condition is an equality */
    bool range[4]; /* for each column: whether a condition is a range or a pattern */
};

static const char *operator_text(unsigned char op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return "=";
    case SQLITE_INDEX_CONSTRAINT_GT:
        return ">";
    case SQLITE_INDEX_CONSTRAINT_GE:
        return ">=";
    case SQLITE_INDEX_CONSTRAINT_LT:
        return "<";
    case SQLITE_INDEX_CONSTRAINT_LE:
        return "<=";
    case SQLITE_INDEX_CONSTRAINT_GLOB:
        return "GLOB";
    case SQLITE_INDEX_CONSTRAINT_LIKE:
        return "LIKE";
    default:
        return NULL;
    }
}

static void put_condition(const struct plan *plan, sqlite3_str *sql, int column, const char *text,
                          bool is_list)
{
    sqlite3_str_appendf(sql, is_list ? " AND %s IN (SELECT value FROM json_each(?%d))" : " AND %s ",
                        column_names[column], plan->used);
    if (!is_list)
        sqlite3_str_appendf(sql, "%s ?%d", text, plan->used);
}

/* Express SQLite's constraint i as a condition of the SELECT over event_index, if possible. Returns
 * whether the condition is exact, so that SQLite need not check the rows again. */
static bool take(struct plan *plan, int i)
{
    const struct sqlite3_index_constraint *asked = &plan->info->aConstraint[i];
    const char *text = operator_text(asked->op);
    int column = asked->iColumn;
    if (!asked->usable || column < EVENT_SESSION_ID || column > EVENT_TYPE || text == NULL ||
        plan->used == EVENT_VALUES_MAX ||
        sqlite3_stricmp(sqlite3_vtab_collation(plan->info, i), "BINARY") != 0)
        return false;
    bool is_equal = asked->op == SQLITE_INDEX_CONSTRAINT_EQ;
    bool is_pattern = text[0] == 'G' || text[0] == 'L';
    bool is_list = is_equal && sqlite3_vtab_in(plan->info, i, 1);
    plan->info->aConstraintUsage[i].argvIndex = ++plan->used;
    put_condition(plan, column == EVENT_TYPE && !is_equal ? plan->types : plan->where, column, text,
                  is_list);
    if (column == EVENT_SESSION_ID || column == EVENT_SEQ)
        put_condition(plan, plan->damages, column, text, is_list);
    if (is_list)
        plan->number |= EVENT_IS_LIST(plan->used - 1);
    if (column != EVENT_SEQ && !is_pattern)
        plan->number |= EVENT_IS_TEXT(plan->used - 1);
    if (is_equal)
        plan->equal[column] = true;
    else
        plan->range[column] = true;
    /* LIKE is not exact, because PRAGMA case_sensitive_like may change its meaning */
    return asked->op != SQLITE_INDEX_CONSTRAINT_LIKE;
}

/* Add the conditions on types that are ranges or patterns, as a comparison with the few existing
 * types, so that SQLite can still use an index by type and time. */
static void put_types(struct plan *plan)
{
    char *types = sqlite3_str_finish(plan->types);
    if (types != NULL)
        sqlite3_str_appendf(plan->where, " AND type IN (SELECT type FROM types WHERE 1%s)", types);
    sqlite3_free(types);
}

static void put_conditions(struct plan *plan)
{
    for (int i = 0; i < plan->info->nConstraint; i++) {
        unsigned char op = plan->info->aConstraint[i].op;
        if (op == SQLITE_INDEX_CONSTRAINT_LIMIT)
            plan->limit = i;
        else if (op == SQLITE_INDEX_CONSTRAINT_OFFSET)
            plan->offset = i;
        else if (!take(plan, i))
            plan->exact = false;
    }
}

static void put_order(struct plan *plan)
{
    sqlite3_index_info *info = plan->info;
    for (int i = 0; i < info->nOrderBy; i++)
        if (info->aOrderBy[i].iColumn < EVENT_SESSION_ID || info->aOrderBy[i].iColumn > EVENT_TYPE)
            return;
    for (int i = 0; i < info->nOrderBy; i++)
        sqlite3_str_appendf(plan->where, "%s%s%s", i == 0 ? " ORDER BY " : ", ",
                            column_names[info->aOrderBy[i].iColumn],
                            info->aOrderBy[i].desc ? " DESC" : "");
    info->orderByConsumed = info->nOrderBy > 0;
}

/*
 * Pass LIMIT to the SELECT over event_index, if its conditions and order are exact; otherwise
 * SQLite applies the limit. An OFFSET is added to the limit, because SQLite itself skips these
 * rows.
 */
static void put_limit(struct plan *plan)
{
    sqlite3_index_info *info = plan->info;
    bool ordered = info->nOrderBy == 0 || info->orderByConsumed;
    if (plan->limit < 0 || !plan->exact || !ordered || !info->aConstraint[plan->limit].usable ||
        (plan->offset >= 0 && !info->aConstraint[plan->offset].usable))
        return;
    info->aConstraintUsage[plan->limit].argvIndex = ++plan->used;
    sqlite3_str_appendf(plan->where, " LIMIT ?%d", plan->used);
    plan->number |= EVENT_LIMIT;
    if (plan->offset < 0)
        return;
    info->aConstraintUsage[plan->offset].argvIndex = ++plan->used;
    plan->number |= EVENT_OFFSET;
}

/*
 * Estimate how many rows a query returns, for a store with ten million events. Since SQLite assumes
 * a million rows in a table without statistics, a million sessions are assumed.
 */
static double estimate_rows(const struct plan *plan)
{
    double rows = 1e7;
    if (plan->equal[EVENT_SESSION_ID])
        rows /= 1e6;
    if (plan->equal[EVENT_SEQ])
        rows /= plan->equal[EVENT_SESSION_ID] ? 10 : 1000;
    else if (plan->range[EVENT_SEQ])
        rows /= 4;
    if (plan->equal[EVENT_TYPE])
        rows /= 30;
    else if (plan->range[EVENT_TYPE])
        rows /= 10;
    if (plan->range[EVENT_TIMESTAMP] || plan->equal[EVENT_TIMESTAMP])
        rows /= 20;
    return rows < 1 ? 1 : rows;
}

/*
 * Estimate the cost of a scan: the fixed cost of finding its beginning, the rows that are read, and
 * the rows that are returned, which cost more if their lines are read. A scan without a condition
 * on session, type or time reads all rows.
 */
static double estimate_cost(const struct plan *plan, double rows)
{
    double read = rows;
    if (!plan->equal[EVENT_SESSION_ID] && !plan->equal[EVENT_TYPE] && !plan->range[EVENT_TYPE] &&
        !plan->range[EVENT_TIMESTAMP] && !plan->equal[EVENT_TIMESTAMP])
        read = 1e7;
    return 20 + read + rows * ((plan->number & EVENT_LINES) != 0 ? 10 : 2);
}

int annal__events_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    struct plan plan = {.info = info,
                        .where = sqlite3_str_new(NULL),
                        .types = sqlite3_str_new(NULL),
                        .damages = sqlite3_str_new(NULL),
                        .limit = -1,
                        .offset = -1,
                        .exact = true};
    if ((info->colUsed &
         (1u << EVENT_ID | 1u << EVENT_CAUSE | 1u << EVENT_DATA | 1u << EVENT_HASH)) != 0)
        plan.number |= EVENT_LINES;
    sqlite3_str_appendall(plan.where, " WHERE 1");
    put_conditions(&plan);
    put_types(&plan);
    put_order(&plan);
    put_limit(&plan);
    char *damages = sqlite3_str_finish(plan.damages);
    sqlite3_str_appendf(plan.where, ";%s", damages == NULL ? "" : damages);
    sqlite3_free(damages);
    info->idxStr = sqlite3_str_finish(plan.where);
    if (info->idxStr == NULL)
        return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    info->idxNum = plan.number;
    double rows = estimate_rows(&plan);
    info->estimatedRows = (sqlite3_int64)rows;
    info->estimatedCost = estimate_cost(&plan, rows);
    if (plan.equal[EVENT_SESSION_ID] && plan.equal[EVENT_SEQ])
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    return SQLITE_OK;
}
