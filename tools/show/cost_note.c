/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/cost_note.h"

#include "tools/cli/out.h"
#include "tools/show/values.h"

#include <stdio.h>

enum { MODELS_SHOWN = 4 };

#define WITHOUT_PRICE(rows, time)                                                                  \
    "SELECT DISTINCT model FROM " rows " WHERE costed_tokens = 0 AND tokens > 0 AND " SCOPE_HAS(   \
        "session_id") " AND " SCOPE_TIME(time) " ORDER BY 1 = '', 1 LIMIT ?4"

int cost_percent(double share)
{
    int percent = (int)(100 * share);
    return percent == 0 && share > 0 ? 1 : percent;
}

const char *cost_text(char text[COST_TEXT_BYTES], const struct cost *cost, struct cost_signs *signs)
{
    if (cost->usd->kind != ANNAL_VALUE_REAL) {
        signs->unknown = signs->unknown || cost->tokens > 0;
        return "-";
    }
    double usd = cost->usd->real;
    const char *sign = cost->computed_usd->kind == ANNAL_VALUE_NULL ? "" : "~";
    bool part = cost->costed_tokens->integer < cost->tokens;
    signs->computed = signs->computed || *sign != '\0';
    signs->part = signs->part || part;
    int len = usd > 0 && usd < 0.01 ? snprintf(text, COST_TEXT_BYTES, "%s<$0.01", sign)
                                    : snprintf(text, COST_TEXT_BYTES, "%s$%.*f", sign,
                                               usd == 0 && !part ? 0 : 2, usd);
    if (part)
        snprintf(text + len, COST_TEXT_BYTES - (size_t)len, " of %d%%",
                 cost_percent((double)cost->costed_tokens->integer / (double)cost->tokens));
    return text;
}

static int print_model(void *arg, const annal_row *row)
{
    int *shown = arg;
    if (row->values[0].bytes.len == 0)
        return 0;
    if (*shown == MODELS_SHOWN) {
        fputs(", \u2026", stdout);
        return 0;
    }
    fputs((*shown)++ == 0 ? "No price is known for " : ", ", stdout);
    out_plain(row->values[0].bytes);
    return 0;
}

annal_status cost_note_print(annal_index *index, const struct cost_signs *signs,
                             const struct cost_scope *scope, annal_error *err)
{
    int shown = 0;
    const annal_value params[] = {text_or_null(scope->sessions), text_or_null(scope->since),
                                  text_or_null(scope->until), integer_value(MODELS_SHOWN + 1)};
    const annal_sql_options options = {.params = params, .param_count = 4, .as_indexed = true};
    if (signs->computed)
        puts("~   computed from list prices: the log gives no cost");
    if (signs->part)
        puts("of N%   the cost of N% of the tokens: the others have no price");
    if (signs->unknown)
        puts("-   unknown: the log gives no cost, and no price is known");
    if (!signs->part && !signs->unknown)
        return ANNAL_OK;
    bool ranged = scope->since.len > 0 || scope->until.len > 0;
    const char *sql = ranged ? WITHOUT_PRICE("usage_event_costs", "timestamp")
                             : WITHOUT_PRICE("usage_costs", "day");
    annal_status status =
        annal_index_sql(index, annal_slice_of(sql), &options, print_model, &shown, err);
    if (shown > 0)
        fputs("\nTo set a price, in dollars for a million tokens:\n"
              "echo '{\"model\":\"M\",\"input\":3,\"output\":15}' |"
              " annal append prices --type price.set\n",
              stdout);
    return status;
}
