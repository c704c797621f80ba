#include "tools/show/cost_note.h"

#include "tools/cli/out.h"

#include <stdio.h>

enum { MODELS_SHOWN = 4 };

static const char without_price[] = "SELECT DISTINCT model FROM usage_costs WHERE costed_tokens = 0"
                                    " AND input_tokens + output_tokens > 0"
                                    " AND (?1 IS NULL OR session_id IN (SELECT value FROM "
                                    "json_each(?1))) ORDER BY 1 = '', 1 LIMIT ?2";

static int print_model(void *arg, const annal_row *row)
{
    int *shown = arg;
    if (*shown == 0)
        puts("-   not known: the log gives no cost, and there is no price");
    if (row->values[0].bytes.len == 0)
        return 0;
    if (*shown == MODELS_SHOWN) {
        fputs(", \u2026", stdout);
        return 0;
    }
    fputs((*shown)++ == 0 ? "There is no price for " : ", ", stdout);
    out_plain(row->values[0].bytes);
    return 0;
}

annal_status cost_note_print(annal_index *index, const struct cost_signs *signs,
                             annal_slice sessions, annal_error *err)
{
    int shown = 0;
    const annal_value params[] = {
        {.kind = sessions.len > 0 ? ANNAL_VALUE_TEXT : ANNAL_VALUE_NULL, .bytes = sessions},
        {.kind = ANNAL_VALUE_INTEGER, .integer = MODELS_SHOWN + 1}};
    const annal_sql_options options = {.params = params, .param_count = 2, .as_indexed = true};
    if (signs->computed)
        puts("~   computed from list prices: the log gives no cost");
    if (signs->part)
        puts("of N%   the cost of so many of the tokens: the others have no price");
    if (!signs->part && !signs->unknown)
        return ANNAL_OK;
    annal_status status =
        annal_sql(index, annal_slice_of(without_price), &options, print_model, &shown, err);
    if (shown > 0)
        fputs("\nTo set one, in dollars for a million tokens:\n"
              "echo '{\"model\":\"M\",\"input\":3,\"output\":15}' |"
              " annal append prices --type price.set\n",
              stdout);
    return status;
}
