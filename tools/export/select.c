/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a session with a SELECT: the rows of its one column are printed one after the other. The
 * parameters are ?1, the session; ?2, the seq of the last event; ?3, whether to export the tree. */
#include "journal/base/json_halves.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/export/export.h"
#include "tools/show/values.h"

/* Print a row. Halves of surrogate pairs become U+FFFD, because strict readers of JSON refuse
 * them. */
static int print_row(void *arg, const annal_row *row)
{
    struct buf *text = arg;
    annal__buf_clear(text);
    if (row->values[0].kind == ANNAL_VALUE_TEXT)
        must_append_slice(text, row->values[0].bytes);
    annal__json_text_mend_halves(text->ptr, text->len);
    (void)annal__json_mend_halves(text->ptr, text->len, true);
    out_slice(annal__buf_slice(text));
    return out_wanted() ? 0 : ANNAL_END;
}

int select_export(struct export *export)
{
    annal_error err = {0};
    annal_lag lag = {0};
    struct buf text = {0};
    const annal_value params[] = {text_value(export->session),
                                  integer_value((int64_t) export->last_seq),
                                  integer_value(export->tree)};
    const annal_sql_options options = {
        .params = params, .param_count = 3, .out_lag = &lag, .damages = true};
    int exit_status =
        export->index == NULL ? catch_up_open(export->store, NULL, &export->index) : EXIT_DONE;
    if (exit_status != EXIT_DONE)
        return exit_status;
    annal_status status =
        annal_sql(export->index, annal_slice_of(export->sql), &options, print_row, &text, &err);
    bool printed = text.ptr != NULL;
    annal__buf_done(&text);
    if (status < 0)
        return fail_error(&err);
    catch_up_say_lag(&lag);
    if (!printed)
        return fail_refused(
            "export: session '%.*s' has no messages and no calls, so it is left out",
            ANNAL_FMT(export->session));
    putchar('\n');
    return lag.bytes > 0 ? EXIT_REFUSED : EXIT_DONE;
}
