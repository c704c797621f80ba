#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "tools/args.h"
#include "tools/import/detect.h"
#include "tools/import/directory.h"
#include "tools/import/import.h"
#include "tools/import/runs.h"
#include "tools/open.h"
#include "tools/out.h"
#include "tools/progress.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An importer is a few pages of SQL. */
#define SQL_BYTES_MAX ((size_t)16 << 20)

#define DIRECTORIES_DEEP_MAX 64

/* The logs that were found, in order of path. */
struct logs {
    struct log {
        char *path;
        uint64_t bytes;
    } * all;
    size_t count;
    size_t capacity;
    uint64_t bytes;
    const struct importer *importer; /* kind NULL: each log says itself which */
};

struct work {
    const struct args *args;
    annal_store *store;
    struct importer importer;     /* kind NULL: each log says itself which */
    annal_import_option *options; /* --map */
    size_t option_count;
    struct table *table;
    struct progress progress;
    const char *path; /* of the log under way */
    const char *kind; /* and what it is */
    uint64_t bytes;   /* of the logs that are done */
    uint64_t files, lines, skipped, unfinished, events, unknown;
};

/* ---- Which logs ---- */

static int add_log(struct logs *logs, const char *path, uint64_t bytes)
{
    if (logs->count == logs->capacity) {
        size_t capacity = logs->capacity * 2 + 64;
        struct log *all = annal__realloc_array(logs->all, capacity, sizeof *all);
        if (all == NULL)
            return fail_storage("out of memory");
        logs->all = all;
        logs->capacity = capacity;
    }
    char *copy = annal__strndup(path, strlen(path));
    if (copy == NULL)
        return fail_storage("out of memory");
    logs->all[logs->count++] = (struct log){copy, bytes};
    logs->bytes += bytes;
    return EXIT_DONE;
}

static int find_logs(struct logs *logs, const char *path, int depth);

static int find_in_directory(struct logs *logs, const char *path, int depth)
{
    struct dirent **names = NULL;
    struct buf below = {0};
    int exit_status = EXIT_DONE;
    int count = scandir(path, &names, NULL, alphasort);
    if (count < 0)
        return fail_refused("import '%s': %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        bool wanted = exit_status == EXIT_DONE && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
        annal__buf_clear(&below);
        if (wanted && annal__buf_printf(&below, "%s/%s", path, name) < 0)
            exit_status = fail_storage("out of memory");
        else if (wanted)
            exit_status = find_logs(logs, annal__buf_cstr(&below), depth + 1);
        free(names[i]);
    }
    free(names);
    annal__buf_done(&below);
    return exit_status;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_one_log(const struct logs *logs, const char *directory)
{
    if (logs->importer->kind == NULL)
        return detect_directory(directory);
    return importer_is_of_runs(logs->importer) ? run_is_here(directory)
                                               : directory_is_log(logs->importer, directory);
}

static bool wants_file(const struct logs *logs, const char *path)
{
    if (logs->importer->kind == NULL)
        return detect_wants_file(base_name(path));
    return !importer_is_of_runs(logs->importer) &&
           importer_wants_file(logs->importer, base_name(path));
}

static bool is_branch_of_run(const char *path)
{
    size_t len = strlen(path);
    return len > 5 && strcmp(path + len - 5, ".json") == 0;
}

/*
 * A directory that is no log itself stands for those below it, by their names; links in it are not
 * followed. A log that cannot be read is refused here, before anything is written.
 */
static int find_logs(struct logs *logs, const char *path, int depth)
{
    struct stat st;
    if ((depth == 0 ? stat(path, &st) : lstat(path, &st)) < 0)
        return fail_refused("import '%s': %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode) && is_one_log(logs, path))
        return add_log(logs, path, (uint64_t)st.st_size);
    if (S_ISDIR(st.st_mode))
        return depth < DIRECTORIES_DEEP_MAX
                   ? find_in_directory(logs, path, depth)
                   : fail_refused("import '%s': more than %d directories deep", path,
                                  DIRECTORIES_DEEP_MAX);
    if (depth > 0 && !(S_ISREG(st.st_mode) && wants_file(logs, path)))
        return EXIT_DONE;
    if (!S_ISREG(st.st_mode))
        return fail_refused("import '%s': neither a file nor a directory", path);
    if (logs->importer->kind != NULL && importer_is_of_runs(logs->importer) &&
        !is_branch_of_run(path))
        return fail_refused("import '%s': neither a run nor the .json of a branch", path);
    if (access(path, R_OK) != 0)
        return fail_refused("import '%s': %s", path, strerror(errno));
    return add_log(logs, path, (uint64_t)st.st_size);
}

static void logs_done(struct logs *logs)
{
    for (size_t i = 0; i < logs->count; i++)
        annal__free(logs->all[i].path);
    annal__free(logs->all);
}

/* ---- Which importer ---- */

static int read_importer(const char *path, struct buf *sql, struct importer *out_importer)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return fail_refused("importer '%s': %s", path, strerror(errno));
    int exit_status = EXIT_DONE;
    sql->limit = SQL_BYTES_MAX;
    while (exit_status == EXIT_DONE && !feof(file)) {
        if (annal__buf_reserve(sql, 65536) < 0)
            exit_status = fail_refused("importer '%s': larger than %zu bytes", path, SQL_BYTES_MAX);
        else
            sql->len += fread(sql->ptr + sql->len, 1, 65536, file);
        if (ferror(file))
            exit_status = fail_refused("importer '%s': %s", path, strerror(errno));
    }
    fclose(file);
    out_importer->sql = annal__buf_slice(sql);
    return exit_status;
}

static int fail_kind(const char *kind)
{
    struct buf kinds = {0};
    for (size_t i = 0; importer_texts[i].kind != NULL; i++)
        (void)annal__buf_printf(&kinds, "%s, ", importer_texts[i].kind);
    int exit_status = fail_usage("there is no importer '%s', only %.*sauto, or a file NAME.sql",
                                 kind, (int)kinds.len, kinds.ptr);
    annal__buf_done(&kinds);
    return exit_status;
}

/* KIND is a built-in importer, auto (none is chosen), or the path of a SQL file: "mine.sql" is of kind "mine". */
static int choose_importer(const char *kind, struct buf *sql, struct buf *name,
                           struct importer *out_importer)
{
    size_t len = strlen(kind);
    if (strcmp(kind, "auto") == 0)
        return EXIT_DONE;
    if (len <= 4 || strcmp(kind + len - 4, ".sql") != 0)
        return importer_find(kind, out_importer) ? EXIT_DONE : fail_kind(kind);
    const char *base = base_name(kind);
    if (annal__buf_append(name, base, strlen(base) - 4) < 0)
        return fail_storage("out of memory");
    out_importer->kind = annal__buf_cstr(name);
    return read_importer(kind, sql, out_importer);
}

/* ---- What became of them ---- */

static void print_json(const struct work *work, const struct import_report *report)
{
    const struct {
        const char *reason;
        uint64_t lines;
    } skips[] = {{"blank", report->blank},
                 {"duplicate", report->duplicate},
                 {"unfinished", report->unfinished}};
    fputs("{\"file\":", stdout);
    out_json_string(annal_slice_of(work->path));
    printf(",\"kind\":\"%s\",\"container\":\"%s\"", work->kind, report->container);
    fputs(",\"sessions\":[", stdout);
    for (size_t i = 0; i < report->session_count; i++) {
        fputs(i > 0 ? "," : "", stdout);
        out_json_string(annal_slice_of(report->sessions[i].id));
    }
    printf("],\"lines\":%" PRIu64 ",\"imported\":%" PRIu64 ",\"skipped\":%" PRIu64
           ",\"events\":%" PRIu64 ",\"skips\":[",
           report->lines, report->imported, report->blank + report->duplicate + report->unfinished,
           report->events);
    const char *comma = "";
    for (size_t i = 0; i < sizeof skips / sizeof skips[0]; i++) {
        if (skips[i].lines == 0)
            continue;
        printf("%s{\"reason\":\"%s\",\"lines\":%" PRIu64 "}", comma, skips[i].reason,
               skips[i].lines);
        comma = ",";
    }
    fputs("]}\n", stdout);
}

static void print_row(const struct work *work, const struct import_report *report)
{
    char sessions[HUMAN_BYTES];
    table_text(work->table, annal_slice_of(work->path));
    table_count(work->table, report->lines);
    table_count(work->table, report->imported);
    table_count(work->table, report->blank + report->duplicate + report->unfinished);
    table_count(work->table, report->events);
    if (report->session_count == 1) {
        table_text(work->table, annal_slice_of(report->sessions[0].id));
    } else {
        table_number(work->table, report->session_count);
        table_shown(work->table, "%s sessions", human_count(sessions, report->session_count));
    }
    table_row(work->table);
}

static void count(struct work *work, const struct import_report *report)
{
    work->files++;
    work->lines += report->lines;
    work->skipped += report->blank + report->duplicate + report->unfinished;
    work->unfinished += report->unfinished;
    work->events += report->events;
}

static void print_totals(const struct work *work)
{
    char files[HUMAN_BYTES], lines[HUMAN_BYTES], skipped[HUMAN_BYTES], events[HUMAN_BYTES];
    printf("%s file%s, %s line%s, %s of them skipped: %s event%s added\n",
           human_count(files, work->files), work->files == 1 ? "" : "s",
           human_count(lines, work->lines), work->lines == 1 ? "" : "s",
           human_count(skipped, work->skipped), human_count(events, work->events),
           work->events == 1 ? "" : "s");
    if (work->unfinished > 0)
        printf("%s unfinished last line%s: imported once whole\n",
               human_count(lines, work->unfinished), work->unfinished == 1 ? "" : "s");
}

/* ---- The work ---- */

static void show_progress(void *arg, uint64_t bytes_done)
{
    struct work *work = arg;
    progress_set(&work->progress, work->bytes + bytes_done, work->path);
}

/* The importer for a log. One that nobody knows is left out, with a remark. */
static int importer_of(struct work *work, const char *path, struct importer *out)
{
    struct detected detected;
    annal_error err = {0};
    *out = work->importer;
    if (out->kind != NULL)
        return EXIT_DONE;
    if (detect_log(path, &detected, &err) < 0)
        return fail_error(&err);
    *out = detected.importer;
    if (out->kind == NULL) {
        work->unknown++;
        progress_hide(&work->progress);
        say("'%s' is of no kind that is known: left out", path);
    }
    return EXIT_DONE;
}

static int import_log(struct work *work, const struct log *log)
{
    struct import_report report = {0};
    struct importer importer;
    annal_error err = {0};
    struct import_options options = {.progress = show_progress,
                                     .arg = work,
                                     .options = work->options,
                                     .option_count = work->option_count};
    work->path = log->path;
    int exit_status = importer_of(work, log->path, &importer);
    if (exit_status != EXIT_DONE || importer.kind == NULL)
        return exit_status;
    work->kind = importer.kind;
    annal_status status = import_file(work->store, &importer, log->path, &options, &report, &err);
    progress_hide(&work->progress);
    if (status >= 0 && work->args->json)
        print_json(work, &report);
    else if (status >= 0)
        print_row(work, &report);
    if (status >= 0)
        count(work, &report);
    work->bytes += log->bytes;
    import_report_done(&report);
    return status < 0 ? fail_error(&err) : EXIT_DONE;
}

static int import_logs(struct work *work, const struct logs *logs)
{
    static const struct column columns[] = {
        {.name = "file", .title = "FILE", .flexible = true, .cut_left = true},
        {.name = "lines", .title = "LINES", .right = true},
        {.name = "imported", .title = "IMPORTED", .right = true},
        {.name = "skipped", .title = "SKIPPED", .right = true},
        {.name = "events", .title = "EVENTS", .right = true},
        {.name = "sessions", .title = "SESSION", .flexible = true},
    };
    int exit_status = EXIT_DONE;
    if (!work->args->json)
        work->table = table_new(OUT_TABLE, columns, sizeof columns / sizeof columns[0]);
    if (!work->args->json && work->table == NULL)
        return fail_storage("out of memory");
    progress_begin(&work->progress, "import", logs->bytes);
    for (size_t i = 0; i < logs->count && exit_status == EXIT_DONE; i++)
        exit_status = import_log(work, &logs->all[i]);
    progress_hide(&work->progress);
    if (!work->args->json) {
        table_free(work->table);
        if (exit_status == EXIT_DONE || work->files > 0)
            print_totals(work);
    }
    return exit_status;
}

/* --map NAME=VALUE, as the importer's options. */
static int read_map(struct work *work)
{
    int at = 0;
    for (const char *text; (text = args_next(work->args, "map", &at)) != NULL;) {
        const char *equal = strchr(text, '=');
        if (equal == NULL || equal == text)
            return fail_usage("--map %s: it is NAME=VALUE, such as session=$.sid", text);
        void *grown =
            annal__realloc_array(work->options, work->option_count + 1, sizeof *work->options);
        if (grown == NULL)
            return fail_storage("out of memory");
        work->options = grown;
        work->options[work->option_count++] =
            (annal_import_option){{text, (size_t)(equal - text)}, annal_slice_of(equal + 1)};
    }
    return EXIT_DONE;
}

static int import(const struct args *args)
{
    struct work work = {.args = args};
    struct logs logs = {.importer = &work.importer};
    struct buf sql = {0}, name = {0};
    int exit_status = choose_importer(args->operands[0], &sql, &name, &work.importer);
    if (exit_status == EXIT_DONE)
        exit_status = read_map(&work);
    for (int i = 1; i < args->operand_count && exit_status == EXIT_DONE; i++)
        exit_status = find_logs(&logs, args->operands[i], 0);
    if (exit_status == EXIT_DONE && logs.count == 0)
        exit_status = fail_refused("import '%s': there is no log of kind %s in it",
                                   args->operands[1], args->operands[0]);
    if (exit_status == EXIT_DONE)
        exit_status = store_open(args, OPEN_CREATE, 0, &work.store);
    if (exit_status == EXIT_DONE)
        exit_status = store_close(work.store, out_finish(import_logs(&work, &logs)));
    if (exit_status == EXIT_DONE && work.unknown > 0 && work.files == 0)
        exit_status = EXIT_REFUSED;
    logs_done(&logs);
    annal__free(work.options);
    annal__buf_done(&sql);
    annal__buf_done(&name);
    return exit_status;
}

/* ---- Detecting ---- */

static int print_detected(const struct args *args, struct table *table, const char *path,
                          bool *out_known)
{
    struct detected detected;
    annal_error err = {0};
    (void)args;
    if (detect_log(path, &detected, &err) < 0)
        return fail_error(&err);
    *out_known = detected.importer.kind != NULL;
    table_text(table, annal_slice_of(path));
    if (*out_known) {
        table_text(table, annal_slice_of(detected.importer.kind));
        table_text(table, annal_slice_of(container_name(detected.container)));
        table_number(table, (uint64_t)detected.sure);
    } else {
        table_null(table);
        table_shown(table, "unknown");
        table_null(table);
        table_null(table);
    }
    table_row(table);
    return EXIT_DONE;
}

static int detect(const struct args *args)
{
    static const struct column columns[] = {
        {.name = "file", .title = "FILE", .flexible = true, .cut_left = true},
        {.name = "kind", .title = "KIND"},
        {.name = "container", .title = "CONTAINER"},
        {.name = "sure", .title = "SURE", .right = true},
    };
    const struct importer any = {0};
    struct logs logs = {.importer = &any};
    bool known = true, all_known = true;
    int exit_status = EXIT_DONE;
    for (int i = 0; i < args->operand_count && exit_status == EXIT_DONE; i++)
        exit_status = find_logs(&logs, args->operands[i], 0);
    struct table *table = table_new(args->json ? OUT_JSONL : OUT_TABLE, columns, 4);
    if (table == NULL)
        exit_status = fail_storage("out of memory");
    for (size_t i = 0; i < logs.count && exit_status == EXIT_DONE; i++) {
        exit_status = print_detected(args, table, logs.all[i].path, &known);
        all_known = all_known && known;
    }
    table_free(table);
    logs_done(&logs);
    if (exit_status == EXIT_DONE && (!all_known || logs.count == 0))
        exit_status = EXIT_REFUSED;
    return out_finish(exit_status);
}

static int run(const struct args *args)
{
    if (args_has(args, "detect"))
        return detect(args);
    if (args->operand_count < 2)
        return fail_usage("import wants KIND PATH..., such as 'annal import auto %s'",
                          args->operands[0]);
    return import(args);
}

static const struct option options[] = {
    {"map", "NAME=VALUE", "an option of the importer; may be given again", true},
    {"detect", NULL, "say what each PATH is, and import nothing", false},
    {"format", "FORMAT", "of new journals: jsonl (default) or msgpack", false},
    {NULL, NULL, NULL, false}};

const struct command cmd_import = {
    .name = "import",
    .operands = "KIND PATH...",
    .operands_min = 1,
    .operands_max = -1,
    .summary = "import the logs of agents; again, it adds only what is new",
    .about = "KIND is one of those below; auto, which looks at each log; or the path of an\n"
             "importer of your own, a SQL file NAME.sql (see annal/import.h). A PATH is a log:\n"
             "lines, a JSON document, a SQLite database or a directory, as the kind has them,\n"
             "also under zstd; or a directory that stands for all logs of that kind below it.\n"
             "The store is made when it is missing.\n"
             "\n"
             "Kinds: autogen, claude-code, codex, gemini-cli, goose, jsonl, langgraph,\n"
             "lionagi, mini-swe-agent, openai-agents, opencode, openhands, otel, pi,\n"
             "swe-agent, tau-bench. jsonl is plain JSON lines: --map session=$.run --map\n"
             "ts=$.at --map type=$.kind --map data=$.load says where in a line the parts of\n"
             "an event stand.\n"
             "\n"
             "Nothing is lost: what has no place in an event stays under its \"extra\", and a\n"
             "line that is not JSON becomes an event import.unreadable. Skipped are blank\n"
             "lines, lines whose bytes stood in the file before, and a last line that is not\n"
             "finished yet. With --json there is one object for each log, {\"file\", \"kind\",\n"
             "\"container\", \"sessions\", \"lines\", \"imported\", \"skipped\", \"events\",\n"
             "\"skips\"}; events counts those added now. Of two imports of one log at the same\n"
             "time both may report an event as added; it is there once.",
    .examples = "  annal import claude-code ~/.claude/projects\n"
                "  annal import codex ~/.codex/sessions --json\n"
                "  annal import --detect Downloads\n"
                "  annal import auto Downloads/session.json\n"
                "  annal import lionagi ~/.lionagi/runs\n"
                "  annal import jsonl --map session=nightly --map type=$.kind build.jsonl\n",
    .options = options,
    .run = run,
};
