/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs that run the SELECT of a pack: they print its rows, append an event for each row, or write
 * the rows as files (index/pack/pack_verbs.c).
 *
 * (1) All rows are read before the first event is appended or the first file is changed, so that
 *     they are of one moment.
 * (2) Files are deleted before others are written. A file that has the content already is not
 *     written.
 * (3) In the name of a file, each byte that is not safe (a slash, for example) is written as %XX.
 *     Nothing is read, written or deleted outside the given directory, even if other programs
 *     create symbolic links in it: a component of a path that is a link is an error.
 */
#include "journal/base/alloc.h"
#include "journal/base/below.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/cli/overdue.h"
#include "tools/cli/rows.h"
#include "tools/cli/verb_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PARAMS_MAX = 16, TEXTS_MAX = 4, PATH_BYTES_MAX = 8192 };

/* ---- The SELECT ---- */

/* Decode the JSON string in json. *out points into json, whose text may be replaced. */
static void unquote(struct buf *json, annal_slice *out)
{
    struct buf text = {0};
    must_status(annal__json_text(annal__buf_slice(json), &text, out));
    if (text.len > 0) {
        annal__buf_done(json);
        *json = text;
    } else {
        annal__buf_done(&text);
    }
}

static annal_value number_value(const char *text)
{
    errno = 0;
    long long whole = strtoll(text, NULL, 10);
    if (errno == 0 && text[strspn(text, "-0123456789")] == '\0')
        return (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = whole};
    return (annal_value){.kind = ANNAL_VALUE_REAL, .real = strtod(text, NULL)};
}

/* Read a field as a parameter of SQL; a text points into json. Returns 0 or an exit status. */
static int read_param(const struct args *args, const struct field *field, struct buf *json,
                      annal_value *out)
{
    int exit_status = verb_field_json(args, field, json);
    *out = (annal_value){.kind = ANNAL_VALUE_NULL};
    if (exit_status != 0 || json->len == 0)
        return exit_status;
    const char *text = must_cstr(json);
    *out = (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = annal__buf_slice(json)};
    if (text[0] == '"')
        unquote(json, &out->bytes);
    else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        *out = (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = text[0] == 't'};
    else if (strchr("-0123456789", text[0]) != NULL)
        *out = number_value(text);
    return exit_status;
}

/* Run the verb's SELECT. Returns 0 or an exit status. */
static int ask(struct verb_call *call, annal_row_fn columns, annal_row_fn fn, void *arg)
{
    struct buf json[PARAMS_MAX] = {{0}};
    annal_value params[PARAMS_MAX];
    size_t count = 0;
    annal_error err = {0};
    const struct command *verb = call->args->command;
    int exit_status = 0;
    bool of_user = call->args->noun != NULL && call->args->noun->of_user;
    annal_limits limits = of_user ? limits_usual : (annal_limits){0};
    if (of_user)
        overdue_watch(&limits);
    ANNAL_ASSERT(verb->params <= PARAMS_MAX);
    for (; exit_status == 0 && count < verb->params; count++)
        exit_status = read_param(call->args, &verb->fields[count], &json[count], &params[count]);
    const annal_sql_options options = {.params = params,
                                       .param_count = count,
                                       .columns = columns,
                                       .limits = limits,
                                       .session = annal_slice_of(call->session)};
    if (exit_status == 0 &&
        annal_index_sql(call->index, annal_slice_of(verb->sql), &options, fn, arg, &err) < 0)
        exit_status = fail_error(&err);
    for (size_t i = 0; i < count; i++)
        annal__buf_done(&json[i]);
    return exit_status;
}

/* ---- Printing the rows ---- */

int verb_select(const struct args *args)
{
    struct verb_call call;
    struct rows rows = {.format = args->json ? OUT_JSONL : OUT_TABLE};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = ask(&call, rows_columns, rows_row, &rows);
    rows_done(&rows);
    return verb_close(&call, exit_status);
}

static int print_line(void *arg, const annal_row *row)
{
    const struct args *args = arg;
    annal_row all_but_last = *row;
    all_but_last.count--;
    if (args->json) {
        printf("{");
        rows_print_members(&all_but_last);
        printf("}\n");
    } else {
        const annal_value *last = &row->values[all_but_last.count];
        if (last->kind == ANNAL_VALUE_TEXT)
            out_slice(last->bytes);
        else if (last->kind != ANNAL_VALUE_NULL)
            rows_print_value(last);
        printf("\n");
    }
    return out_wanted() ? 0 : ANNAL_END;
}

int verb_lines(const struct args *args)
{
    struct verb_call call;
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = ask(&call, NULL, print_line, (void *)args);
    return verb_close(&call, exit_status);
}

/* ---- Keeping the rows (rule 1) ---- */

struct kept_column {
    const char *name;
    bool optional; /* whether the column may be missing, or NULL in a row */
    bool nullable; /* whether it may be NULL in a row */
    bool bytes;    /* whether its text may contain a NUL byte */
};

struct kept_row {
    annal_slice texts[TEXTS_MAX]; /* owned; ptr NULL if the column is missing or NULL */
};

struct kept_rows {
    const struct kept_column *columns;
    size_t at[TEXTS_MAX]; /* place of each column in a row; SIZE_MAX: missing */
    struct kept_row *rows;
    size_t count;
    int exit_status;
};

static int find_columns(void *arg, const annal_row *row)
{
    struct kept_rows *kept = arg;
    for (size_t i = 0; i < TEXTS_MAX; i++) {
        size_t at = 0;
        while (at < row->count && strcmp(row->names[at], kept->columns[i].name) != 0)
            at++;
        kept->at[i] = at < row->count ? at : SIZE_MAX;
        if (at == row->count && !kept->columns[i].optional)
            kept->exit_status =
                fail_refused("the SELECT of this verb needs a column '%s'", kept->columns[i].name);
    }
    return kept->exit_status == 0 ? 0 : ANNAL_END;
}

/* Check a value of a column. Returns 0 or an exit status. */
static int check_value(const struct kept_rows *kept, const struct kept_column *column,
                       const annal_value *value)
{
    static const char *const kinds[] = {
        [ANNAL_VALUE_NULL] = "is NULL, not a text",
        [ANNAL_VALUE_INTEGER] = "is a number, not a text: use CAST(… AS TEXT)",
        [ANNAL_VALUE_REAL] = "is a number, not a text: use CAST(… AS TEXT)",
        [ANNAL_VALUE_BLOB] = "is a BLOB, not a text: use CAST(… AS TEXT)"};
    const char *wrong = NULL;
    if (value->kind == ANNAL_VALUE_NULL && (column->optional || column->nullable))
        return 0;
    if (value->kind != ANNAL_VALUE_TEXT)
        wrong = kinds[value->kind];
    else if (!column->bytes && memchr(value->bytes.ptr, '\0', value->bytes.len) != NULL)
        wrong = "has a NUL byte";
    return wrong == NULL ? 0
                         : fail_refused("row %zu of the SELECT of this verb: column '%s' %s",
                                        kept->count, column->name, wrong);
}

static int keep_row(void *arg, const annal_row *row)
{
    struct kept_rows *kept = arg;
    struct kept_row *to = must_array_add(&kept->rows, &kept->count, sizeof *to);
    for (size_t i = 0; kept->exit_status == 0 && i < TEXTS_MAX; i++) {
        if (kept->at[i] == SIZE_MAX)
            continue;
        const annal_value *value = &row->values[kept->at[i]];
        kept->exit_status = check_value(kept, &kept->columns[i], value);
        if (value->kind == ANNAL_VALUE_TEXT)
            to->texts[i] =
                (annal_slice){must_strndup(value->bytes.ptr, value->bytes.len), value->bytes.len};
    }
    return kept->exit_status == 0 ? 0 : ANNAL_END;
}

static void free_rows(struct kept_rows *kept)
{
    for (size_t i = 0; i < kept->count * TEXTS_MAX; i++)
        annal__free((void *)kept->rows[i / TEXTS_MAX].texts[i % TEXTS_MAX].ptr);
    annal__free(kept->rows);
}

static int keep_rows(struct verb_call *call, struct kept_rows *kept)
{
    int exit_status = ask(call, find_columns, keep_row, kept);
    return exit_status == 0 ? kept->exit_status : exit_status;
}

static int print_text(annal_slice text)
{
    out_plain(text);
    printf("\n");
    return 0;
}

static int refuse_text(annal_slice text)
{
    return fail_refused("%.*s", ANNAL_FMT(text));
}

/* Call tell with the verb's sentence for the case that its SELECT returned no row, if it has one.
 * Returns an exit status. */
static int say_none(const struct args *args, int (*tell)(annal_slice text))
{
    SCOPED_BUF text = {0};
    int exit_status = 0;
    if (args->command->none != NULL)
        exit_status = verb_fill_in(args, args->command->none, &text);
    if (exit_status == 0 && text.len > 0)
        exit_status = tell(annal__buf_slice(&text));
    return exit_status;
}

/* ---- An event for each row ---- */

enum { SESSION, DATA, SAYS, SUBJECT };

static int append_row(struct verb_call *call, const struct kept_row *row)
{
    annal_error err = {0};
    const annal_draft draft = {.type = annal_slice_of(call->type),
                               .data = row->texts[DATA],
                               .id = annal_slice_of(args_get(call->args, "event-id")),
                               .cause = annal_slice_of(args_get(call->args, "cause"))};
    int exit_status = verb_set_session(call, "%.*s", ANNAL_FMT(row->texts[SESSION]));
    if (exit_status != 0)
        return exit_status;
    annal_status status = verb_try_all(call, &draft, 1, &err);
    if (status == ANNAL_ERR_REFUSED && row->texts[SUBJECT].ptr != NULL) {
        say("%.*s: %s", ANNAL_FMT(row->texts[SUBJECT]), err.message);
        return 0;
    }
    if (status < 0)
        return fail_error(&err);
    if (!call->args->json && row->texts[SAYS].ptr != NULL)
        return print_text(row->texts[SAYS]);
    verb_print(call);
    return 0;
}

int verb_append_each(const struct args *args)
{
    static const struct kept_column columns[TEXTS_MAX] = {{.name = "session"},
                                                          {.name = "data"},
                                                          {.name = "says", .optional = true},
                                                          {.name = "subject", .optional = true}};
    struct verb_call call;
    struct kept_rows kept = {.columns = columns};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = keep_rows(&call, &kept);
    for (size_t i = 0; exit_status == 0 && i < kept.count; i++)
        exit_status = append_row(&call, &kept.rows[i]);
    if (exit_status == 0 && kept.count == 0 && !args->json)
        exit_status = say_none(args, print_text);
    free_rows(&kept);
    return verb_close(&call, exit_status);
}

/* ---- Files ---- */

enum { FOLDER, NAME, SUFFIX, CONTENT };

struct writing {
    struct below below;
    bool json;
    uint64_t written, deleted, unchanged;
};

/* Set path to the path of a row's file: rule (3). The suffix may contain a slash. */
static int set_path(struct buf *path, const struct kept_row *row)
{
    annal_slice name = row->texts[NAME];
    annal__buf_clear(path);
    must_append_slice(path, row->texts[FOLDER]);
    must_append_text(path, row->texts[FOLDER].len > 0 ? "/" : "");
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c > ' ' && c != '/' && c != '%' && c != 0x7f && c != '\\' && (i > 0 || c != '.'))
            must_append(path, name.ptr + i, 1);
        else
            must_printf(path, "%%%02X", c);
    }
    must_append_slice(path, row->texts[SUFFIX]);
    return path->len < PATH_BYTES_MAX
               ? 0
               : fail_refused("the name of a file is too long: '%.*s'", ANNAL_FMT(name));
}

/* Print why a path below DIR cannot be used. Returns an exit status: a link, a file or a directory
 * in its place is wrong input, as a wrong path is. */
static int fail_path(const annal_error *err)
{
    static const int wrong[] = {ELOOP, ENOTDIR, EISDIR, ENOENT, ENAMETOOLONG};
    int exit_status = fail_error(err);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        exit_status = err->os_errno == wrong[i] ? EXIT_REFUSED : exit_status;
    return exit_status;
}

static bool holds(const struct below *below, const char *path, annal_slice content)
{
    SCOPED_BUF have = {.limit = content.len + 1};
    return annal__below_read(below, path, &have, NULL) == ANNAL_OK &&
           annal__slice_same(annal__buf_slice(&have), content);
}

/* Write or delete the file of a row: rule (2). Returns 0 or an exit status. */
static int write_row(struct writing *writing, const char *path, annal_slice content)
{
    static const struct below_mode as_usual = {.file = 0666, .folder = 0777};
    annal_error err = {0};
    annal_status status = ANNAL_OK;
    bool changed = content.ptr == NULL || !holds(&writing->below, path, content);
    if (content.ptr == NULL)
        status = annal__below_delete(&writing->below, path, &changed, &err);
    else if (changed)
        status = annal__below_replace(&writing->below, path, content, &as_usual, &err);
    if (status < 0)
        return fail_path(&err);
    *(content.ptr == NULL ? &writing->deleted
      : changed           ? &writing->written
                          : &writing->unchanged) += changed || content.ptr != NULL;
    if (changed && writing->json)
        out_json("{\"#\":?}\n", annal_slice_of(content.ptr == NULL ? "deleted" : "written"),
                 annal_slice_of(path));
    return 0;
}

static int write_rows(struct writing *writing, const struct kept_rows *kept)
{
    SCOPED_BUF path = {0};
    int exit_status = 0;
    for (size_t i = 0; exit_status == 0 && i < 2 * kept->count; i++) {
        const struct kept_row *row = &kept->rows[i % kept->count];
        if ((row->texts[CONTENT].ptr == NULL) != (i < kept->count))
            continue;
        exit_status = set_path(&path, row);
        if (exit_status == 0)
            exit_status = write_row(writing, must_cstr(&path), row->texts[CONTENT]);
    }
    return exit_status;
}

int verb_write_files(const struct args *args)
{
    static const struct kept_column columns[TEXTS_MAX] = {
        {.name = "folder"},
        {.name = "name", .bytes = true},
        {.name = "suffix"},
        {.name = "content", .nullable = true, .bytes = true}};
    struct verb_call call;
    struct kept_rows kept = {.columns = columns};
    struct writing writing = {.json = args->json};
    annal_error err = {0};
    const char *directory = args_get(args, "DIR");
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = keep_rows(&call, &kept);
    if (exit_status == 0 && kept.count == 0)
        exit_status = say_none(args, refuse_text);
    if (exit_status != 0)
        goto done;
    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        (void)annal__fail_errno(&err, "cannot make directory '%s'", directory);
    else
        (void)annal__below_open(directory, &writing.below, &err);
    exit_status = err.status < 0 ? fail_path(&err) : write_rows(&writing, &kept);
    annal__below_close(&writing.below);
    if (exit_status == 0 && !args->json)
        printf("%" PRIu64 " file%s written, %" PRIu64 " deleted, %" PRIu64 " unchanged\n",
               writing.written, writing.written == 1 ? "" : "s", writing.deleted,
               writing.unchanged);

done:
    free_rows(&kept);
    return verb_close(&call, exit_status);
}
