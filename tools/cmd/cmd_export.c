/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/sessions.h"
#include "tools/cli/store_open.h"
#include "tools/cli/target.h"
#include "tools/cli/whole_file.h"
#include "tools/export/bundle.h"
#include "tools/export/export.h"
#include "tools/export/html.h"
#include "tools/import/importers.h"
#include "tools/show/event_out.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { SQL_BYTES_MAX = 1 << 20 };

/* The values of --format, in this order: the formats in C, then tools/export/<format>.sql. */
#define FORMATS "jsonl|markdown|otlp|bundle|html|" SELECT_CHOICES "|FILE.sql"
enum { JSONL, MARKDOWN, OTLP, BUNDLE, HTML, SELECTS };

/* NULL: the format writes all sessions at once. */
static int (*const streams[SELECTS])(struct export *export) = {
    [JSONL] = jsonl_export, [MARKDOWN] = markdown_export, [OTLP] = otlp_export};

/* Find the last event to export: --at, or the last sound event. Return the exit status. */
static int find_end(const struct args *args, struct export *export, annal_session_info *info)
{
    annal_error err = {0};
    uint64_t at = fields_count(args, "at", 0);
    if (annal_session_info_get(export->store, export->session, info, &err) < 0)
        return fail_error(&err);
    export->last_seq = args_has(args, "at") ? at : info->last_seq;
    if (export->last_seq > info->last_seq)
        return fail_refused("session '%s' has no event %" PRIu64
                            ": the session ends with event %" PRIu64,
                            info->session, at, info->last_seq);
    return EXIT_DONE;
}

static int export_one(const struct args *args, int format, struct export *export)
{
    annal_session_info info;
    int waits = 0;
    int exit_status = find_end(args, export, &info);
    if (exit_status != EXIT_DONE)
        return exit_status;
    exit_status = format < SELECTS ? streams[format](export) : select_export(export);
    if (export->sql != NULL)
        *export->bytes_done += info.bytes;
    progress_hide(export->progress);
    if (exit_status == EXIT_DONE && !args_has(args, "at"))
        exit_status = event_check_end(
            export->store, export->session,
            (annal_position){.seq = info.last_seq + 1, .offset = info.end_offset}, &waits);
    export->damaged = export->damaged || exit_status == EXIT_REFUSED;
    return exit_status == EXIT_REFUSED ? EXIT_DONE : exit_status;
}

static int export_all(const struct args *args, int format, const char *sql, annal_store *store,
                      const struct session_list *list)
{
    struct progress progress;
    uint64_t bytes_done = 0;
    struct export export = {.store = store,
                            .many = list->count > 1,
                            .full = args_has(args, "full"),
                            .tree = args_has(args, "tree"),
                            .format = args_get(args, "format"),
                            .sql = sql,
                            .progress = &progress,
                            .bytes_done = &bytes_done};
    struct target target;
    int exit_status = target_begin(&target, args_get(args, "to"));
    if (exit_status != EXIT_DONE)
        return exit_status;
    progress_begin(&progress, "export", list->bytes);
    if (format == BUNDLE)
        exit_status = bundle_export(store, list);
    if (format == HTML)
        exit_status = html_export(store, annal_slice_of(list->names[0].id), args_has(args, "tree"));
    bool one_by_one = format >= SELECTS || streams[format] != NULL;
    for (size_t i = 0; one_by_one && i < list->count && exit_status == EXIT_DONE && out_wanted();
         i++) {
        export.session = annal_slice_of(list->names[i].id);
        exit_status = export_one(args, format, &export);
    }
    progress_hide(&progress);
    annal_index_close(export.index);
    int at_end = target_end(&target, exit_status == EXIT_DONE);
    exit_status = exit_status == EXIT_DONE ? at_end : exit_status;
    return exit_status == EXIT_DONE && export.damaged ? EXIT_REFUSED : exit_status;
}

/* Read the SELECT of a format that the user wrote. Return the exit status. */
static int read_format(const char *path, struct buf *sql)
{
    return whole_file_read(path, SQL_BYTES_MAX, sql)
               ? EXIT_DONE
               : fail_refused("read the format '%s': %s", path, strerror(errno));
}

static int run(const struct args *args)
{
    int choice = fields_choice(args, "format");
    int format = choice < 0 ? JSONL : choice;
    const char *select = format < SELECTS ? NULL : export_texts[format - SELECTS].sql;
    struct session_list list = {0};
    SCOPED_BUF sql = {0};
    annal_store *store = NULL;
    int exit_status = EXIT_DONE;
    event_keep_bytes(args_has(args, "raw"));
    if (args_has(args, "at") && args->operand_count != 1)
        exit_status = fail_usage("--at needs exactly one SESSION");
    if (exit_status == EXIT_DONE && format == BUNDLE &&
        (args_has(args, "at") || args_has(args, "full")))
        exit_status =
            fail_usage("--at and --full cannot be used with a bundle, which holds whole journals");
    if (exit_status == EXIT_DONE && format == HTML &&
        (args->operand_count != 1 || args_has(args, "at") || args_has(args, "full")))
        exit_status = fail_usage("--format html needs exactly one SESSION, and no --at or --full");
    if (exit_status == EXIT_DONE && args_has(args, "tree") && format < HTML)
        exit_status = fail_usage(
            "--tree cannot be used with --format jsonl (the default), markdown, otlp or bundle");
    if (exit_status == EXIT_DONE && format == BUNDLE && !args_has(args, "to") &&
        isatty(STDOUT_FILENO))
        exit_status = fail_usage("a bundle is binary: use --to FILE to write it to a file");
    if (exit_status == EXIT_DONE && format >= SELECTS && select == NULL) {
        exit_status = read_format(args_get(args, "format"), &sql);
        select = must_cstr(&sql);
    }
    if (exit_status == EXIT_DONE)
        exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == EXIT_DONE)
        exit_status = sessions_collect(store, args, &list);
    if (exit_status == EXIT_DONE)
        exit_status = export_all(args, format, select, store, &list);
    sessions_done(&list);
    return store_close(store, out_finish(exit_status));
}

static const struct field fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSIONS, NULL, "the sessions (all)"),
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "output format (jsonl)",
                .choices = FORMATS),
    OPTION("to", "FILE", FIELD_TEXT, NULL, "output file, which appears when it is complete"),
    OPTION("at", "SEQ", FIELD_COUNT, NULL, "last event to export"),
    FLAG("full", NULL, "markdown: every event, and results in full"),
    FLAG("tree", NULL, "add sub-agents (not with jsonl, markdown, otlp, bundle)"),
    RAW_OPTION,
    FIELDS_END};

const struct command cmd_export = {
    COMMAND("export", "write a session for other programs, or for people", export, fields, run)};
