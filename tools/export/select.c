/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports a session with the SELECT of a format: the texts of its first column are printed one
 * after the other, and NULL prints nothing. The parameters are ?1, the session; ?2, the seq of the
 * last event; ?3, whether to export the tree; ?4, whether to cut nothing. The comment at the head
 * of a format may have two headers; other lines that begin with a word of a-z and a colon are
 * refused:
 *
 *     -- output: json    also escapes of halves of surrogate pairs become U+FFFD
 *     -- nothing: TEXT   what a session has for which the SELECT returns no row
 */
#include "index/sys/sql_functions.h"
#include "journal/base/error.h"
#include "journal/base/json_halves.h"
#include "journal/sys/say.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/export/export.h"
#include "tools/show/values.h"

#include <inttypes.h>
#include <string.h>

struct printing {
    struct buf text;
    bool json;           /* whether the head of the format says "-- output: json" */
    annal_slice nothing; /* the TEXT of "-- nothing: TEXT" */
    uint64_t rows;
    bool refused; /* whether the last row is neither a text nor NULL */
};

/* Print a row. Halves of surrogate pairs become U+FFFD, because strict readers refuse them: in JSON
 * also their escapes. */
static int print_row(void *arg, const annal_row *row)
{
    struct printing *printing = arg;
    annal_value_kind kind = row->values[0].kind;
    printing->rows++;
    printing->refused = kind != ANNAL_VALUE_TEXT && kind != ANNAL_VALUE_NULL;
    if (kind == ANNAL_VALUE_TEXT) {
        struct buf *text = &printing->text;
        annal__buf_clear(text);
        must_append_slice(text, row->values[0].bytes);
        annal__json_text_mend_halves(text->ptr, text->len);
        if (printing->json)
            (void)annal__json_mend_halves(text->ptr, text->len, true);
        out_slice(annal__buf_slice(text));
    }
    return out_wanted() && !printing->refused ? 0 : ANNAL_END;
}

/* Read the headers of a format. Return the exit status. */
static int read_head(const struct export *export, struct printing *printing)
{
    unsigned n = 1;
    for (const char *line = export->sql; strncmp(line, "--", 2) == 0; n++) {
        size_t len = strcspn(line, "\n");
        size_t word = 3 + (len > 3 ? strspn(line + 3, "abcdefghijklmnopqrstuvwxyz") : 0);
        if (len == 15 && strncmp(line, "-- output: json", len) == 0)
            printing->json = true;
        else if (len > 12 && strncmp(line, "-- nothing: ", 12) == 0)
            printing->nothing = (annal_slice){line + 12, len - 12};
        else if (word > 3 && word < len && line[2] == ' ' && line[word] == ':')
            return fail_usage("format '%s': line %u: '%.*s' is not a header: the headers are "
                              "'-- output: json' and '-- nothing: TEXT'",
                              export->format, n, (int)(len < 60 ? len : 60), line);
        line += len + (line[len] != '\0');
    }
    return EXIT_DONE;
}

int select_export(struct export *export)
{
    annal_error err = {0};
    annal_lag lag = {0};
    struct printing printing = {.nothing = ANNAL_SLICE("nothing that the format writes")};
    const annal_value params[] = {text_value(export->session),
                                  integer_value((int64_t) export->last_seq),
                                  integer_value(export->tree), integer_value(export->full)};
    const annal_sql_options options = {
        .params = params, .param_count = 4, .out_lag = &lag, .damages = true};
    int exit_status = read_head(export, &printing);
    if (exit_status == EXIT_DONE && export->index == NULL)
        exit_status = catch_up_open(export->store, NULL, &export->index);
    if (exit_status != EXIT_DONE)
        return exit_status;
    uint64_t damages = annal__store_damages_said(export->store);
    annal_status status = annal__view_select(export->index, annal_slice_of(export->sql), &options,
                                             select_functions, print_row, &printing, &err);
    export->damaged = export->damaged || annal__store_damages_said(export->store) > damages;
    annal__buf_done(&printing.text);
    if (printing.refused)
        return fail_usage("format '%s': row %" PRIu64 " of the SELECT is a number or a BLOB, and "
                          "only a text is printed: use CAST(x AS TEXT)",
                          export->format, printing.rows);
    if (status == ANNAL_ERR_SQL)
        annal__error_context(&err, "format '%s'", export->format);
    if (status < 0) /* the same SELECT would fail for every session */
        return fail_error(&err) == EXIT_STORAGE ? EXIT_STORAGE : EXIT_USAGE;
    catch_up_say_lag(&lag);
    if (printing.rows == 0)
        return fail_refused("export: session '%.*s' has %.*s, so it is left out",
                            ANNAL_FMT(export->session), ANNAL_FMT(printing.nothing));
    return lag.bytes > 0 ? EXIT_REFUSED : EXIT_DONE;
}
