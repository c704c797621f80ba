/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports and exports teams as JSON files, which is how teams were stored before annal:
 *
 *     {"id":"…","name":"…","members":["…"],"created_at":"…","messages":[
 *       {"id":"…","from":"…","to":["*"],"content":"…","timestamp":"…",
 *        "read_by":{"name":"time"}}]}
 *
 * read_by may be a list of names, its older form. SQL reads and writes the files.
 *
 * (1) An import can be repeated: a team, message or read mark that exists is unchanged, new ones
 *     become events, all of a file or none (in pieces, if there are thousands).
 * (2) Ids are unique in a store. So the id of a message that another team uses gets the id of its
 *     own team as a prefix.
 * (3) The file of a team is kept as an artifact of the team's session.
 * (4) A file without a team id is refused, because its name may change, and the team would then
 *     exist twice. The other files are imported.
 * (5) Exported files import to the same rows. A time that microseconds cannot represent exactly is
 *     written as a number of seconds.
 */
#include "tools/cli/must.h"
#include "tools/verbs/team.h"

#include "journal/base/alloc.h"
#include "journal/base/below.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"

#include <annal/artifact.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DRAFTS_MAX = 500 };

/* ---- Import ---- */

extern const char annal__sql_team_import[], annal__sql_team_export[]; /* team/ */

struct item {
    char *type;
    char *data;
    int64_t ts_us;
};

/* The events from one file. */
struct import {
    struct verb_call *call;
    const char *path;
    struct buf text;
    char team[TEAM_ID_BYTES_MAX + 1];
    size_t id_bytes; /* length of the team id in the file, which may be too long for team */
    char changed[ANNAL_TIME_BYTES];
    struct item *items;
    size_t count;
    uint64_t teams, messages, reads; /* numbers of new teams, messages and read marks */
    uint64_t there;                  /* number of messages in the file, new or not */
    struct buf source;               /* source of the imported team, as JSON */
};

static int64_t time_of(annal_slice text, const char *otherwise)
{
    int64_t time_us = 0;
    char number[40];
    if (annal_time_parse(text, &time_us, NULL) == ANNAL_OK)
        return time_us;
    snprintf(number, sizeof number, "%.*s", ANNAL_FMT(text));
    char *end;
    double seconds = strtod(number, &end);
    if (end != number && *end == '\0' && seconds > 0 && seconds < 1e11)
        return (int64_t)(seconds * 1e6);
    return annal_time_parse(annal_slice_of(otherwise), &time_us, NULL) == ANNAL_OK ? time_us : 0;
}

static int keep_item(void *arg, const annal_row *row)
{
    struct import *import = arg;
    annal_slice type = row->values[0].bytes, data = row->values[2].bytes;
    struct item *item = must_array_add(&import->items, &import->count, sizeof *item);
    *item = (struct item){.type = must_strndup(type.ptr, type.len),
                          .data = must_strndup(data.ptr, data.len),
                          .ts_us = time_of(row->values[1].bytes, import->changed)};
    import->teams += strcmp(item->type, "team.imported") == 0;
    import->messages += strcmp(item->type, "team.message") == 0;
    import->reads += strcmp(item->type, "team.message_read") == 0;
    return 0;
}

static int append_items(struct import *import)
{
    annal_draft drafts[DRAFTS_MAX];
    annal_error err = {0};
    for (size_t from = 0; from < import->count; from += DRAFTS_MAX) {
        size_t count = import->count - from < DRAFTS_MAX ? import->count - from : DRAFTS_MAX;
        for (size_t i = 0; i < count; i++) {
            const struct item *item = &import->items[from + i];
            drafts[i] = (annal_draft){.type = annal_slice_of(item->type),
                                      .data = annal_slice_of(item->data),
                                      .ts_us = ANNAL_TS(item->ts_us)};
        }
        if (verb_try_all(import->call, drafts, count, &err) < 0) {
            annal__error_context(&err, "import '%s'", import->path);
            return fail_error(&err);
        }
    }
    return 0;
}

static int keep_head(void *arg, const annal_row *row)
{
    struct import *import = arg;
    import->id_bytes = row->values[0].bytes.len;
    if (import->id_bytes <= TEAM_ID_BYTES_MAX)
        snprintf(import->team, sizeof import->team, "%.*s", ANNAL_FMT(row->values[0].bytes));
    import->there = (uint64_t)row->values[1].integer;
    return 0;
}

/* Read the text of the file, the time of its last change, and its team id. Returns 0 or an exit
 * status. */
static int read_head(struct import *import)
{
    static const char sql[] = "SELECT COALESCE(?1 ->> '$.id', '') || '', "
                              "(SELECT count(*) FROM json_each(?1, '$.messages'))";
    struct stat info;
    struct timespec changed = {0};
    int exit_status = verb_read_file(import->path, &import->text);
    if (exit_status != 0)
        return exit_status;
    if (stat(import->path, &info) == 0)
        changed = info.st_mtim;
    annal_time_format((int64_t)changed.tv_sec * 1000000 + changed.tv_nsec / 1000, import->changed);
    annal_slice text = annal__buf_slice(&import->text);
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[0]) != NULL)
        text = (annal_slice){text.ptr + 1, text.len - 1};
    if (text.len == 0 || text.ptr[0] != '{' ||
        annal__json_check(text, ANNAL_DATA_DEPTH_MAX, NULL) != JSON_VALID)
        return fail_refused("import '%s': the file does not contain a JSON object", import->path);
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = annal__buf_slice(&import->text)};
    exit_status = verbs_team_rows(import->call, sql, &param, 1, keep_head, import);
    if (exit_status != 0)
        return exit_status;
    if (import->id_bytes == 0)
        return fail_refused("import '%s': the team has no id", import->path);
    snprintf(import->call->session, sizeof import->call->session, "team_%s", import->team);
    if (import->team[0] == '\0' ||
        annal_session_id_check(annal_slice_of(import->call->session), NULL) < 0)
        return fail_refused(
            "import '%s': the id of the team is not a valid team id: use 1 to %d of "
            "A-Z a-z 0-9 . _ -",
            import->path, TEAM_ID_BYTES_MAX);
    return 0;
}

static int keep_known(void *arg, const annal_row *row)
{
    struct import *known = arg;
    (void)row;
    known->teams++;
    return 0;
}

/* Keep the file as an artifact (rule 3), and describe it in source. For a team that exists, only
 * the name of the file is noted. Returns 0 or an exit status. */
static int keep_source(struct import *import)
{
    static const char there[] = "SELECT id FROM teams WHERE id = ?1";
    annal_artifact_info info;
    annal_error err = {0};
    const char *name = strrchr(import->path, '/');
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(import->team)};
    struct import known = {0};
    int exit_status = verbs_team_rows(import->call, there, &param, 1, keep_known, &known);
    must_json(&import->source, "{\"file\":?",
              annal_slice_of(name == NULL ? import->path : name + 1));
    if (exit_status != 0)
        return exit_status;
    if (known.teams == 0) {
        if (annal_artifact_put(import->call->store, annal_slice_of(import->call->session),
                               annal__buf_slice(&import->text), &info, &err) < 0)
            return fail_error(&err);
        must_printf(&import->source,
                    ",\"sha256\":\"%s\",\"bytes\":%" PRIu64 ",\"path\":\"artifacts/%s/%s.zst\"",
                    info.sha256, info.bytes, info.session, info.sha256);
    }
    must_append_text(&import->source, "}");
    return 0;
}

static void print_import(const struct import *import)
{
    uint64_t skipped = import->there - import->messages;
    if (import->call->args->json) {
        out_json("{\"file\":?,\"team_id\":?,\"teams\":#,\"skipped_teams\":#,\"messages\":#,"
                 "\"skipped_messages\":#,\"reads\":#}\n",
                 annal_slice_of(import->path), annal_slice_of(import->team),
                 JSON_U64(import->teams), JSON_U64(1 - import->teams), JSON_U64(import->messages),
                 JSON_U64(skipped), JSON_U64(import->reads));
        return;
    }
    printf("team %s%s: %" PRIu64 " new message%s, %" PRIu64 " already in the store\n", import->team,
           import->teams > 0 ? "" : " existed", import->messages, import->messages == 1 ? "" : "s",
           skipped);
}

static int import_file(struct verb_call *call, const char *path)
{
    struct import import = {.call = call, .path = path};
    int exit_status = read_head(&import);
    if (exit_status == 0)
        exit_status = keep_source(&import);
    if (exit_status == 0) {
        const annal_value params[] = {
            {.kind = ANNAL_VALUE_TEXT, .bytes = annal__buf_slice(&import.text)},
            {.kind = ANNAL_VALUE_TEXT, .bytes = annal__buf_slice(&import.source)},
            {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(import.changed)},
            {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(import.team)}};
        exit_status = verbs_team_rows(call, annal__sql_team_import, params, 4, keep_item, &import);
    }
    if (exit_status == 0)
        exit_status = append_items(&import);
    if (exit_status == 0)
        print_import(&import);
    for (size_t i = 0; i < import.count; i++) {
        annal__free(import.items[i].type);
        annal__free(import.items[i].data);
    }
    annal__free(import.items);
    annal__buf_done(&import.text);
    annal__buf_done(&import.source);
    return exit_status;
}

static int is_team_file(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

/* Import the files *.json of a directory, in the order of their names. Returns an exit status. */
static int import_directory(struct verb_call *call, const char *path)
{
    struct dirent **entries = NULL;
    int exit_status = 0;
    int count = scandir(path, &entries, is_team_file, alphasort);
    if (count < 0)
        return fail_refused("read the file '%s': %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        struct buf file = {0};
        int imported = exit_status <= EXIT_REFUSED ? 0 : exit_status;
        must_printf(&file, "%s/%s", path, entries[i]->d_name);
        if (imported == 0)
            imported = import_file(call, file.ptr);
        exit_status = imported > exit_status ? imported : exit_status;
        annal__buf_done(&file);
        free(entries[i]);
    }
    free(entries);
    return exit_status;
}

int team_import(const struct args *args)
{
    struct verb_call call;
    const char *path;
    int exit_status = verb_open(&call, args);
    /* after a refused file, continue with the next file; after a failure of storage, stop, because
     * the next file would fail for the same reason */
    for (int at = 0;
         exit_status <= EXIT_REFUSED && (path = args_next(args, "FILE", &at)) != NULL;) {
        struct stat info;
        bool directory = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
        int imported = directory ? import_directory(&call, path) : import_file(&call, path);
        exit_status = imported > exit_status ? imported : exit_status;
    }
    return verb_close(&call, exit_status);
}

/* ---- Export ---- */

struct export
{
    const char *directory; /* path of --to; NULL for standard output */
    struct below below;
    struct buf path;
    uint64_t files;
};

/* Open the target directory of the export, and create it if it is missing. Returns 0 or an exit
 * status. */
static int open_directory(struct export *export)
{
    annal_error err = {0};
    if (export->directory == NULL)
        return 0;
    if (mkdir(export->directory, 0700) != 0 && errno != EEXIST)
        return fail_storage("create the directory '%s': %s", export->directory, strerror(errno));
    return annal__below_open(export->directory, &export->below, &err) < 0 ? fail_error(&err) : 0;
}

/* Write the file of a team, and replace an older one, completely or not at all. Returns 0 or an
 * exit status. */
static int write_file(struct export *export, annal_slice id, annal_slice json)
{
    static const struct below_mode mode = {.file = 0666, .sync = true};
    SCOPED_BUF text = {0};
    annal_error err = {0};
    int exit_status = 0;
    annal__buf_clear(&export->path);
    must_printf(&export->path, "%.*s.json", ANNAL_FMT(id));
    must_printf(&text, "%.*s\n", ANNAL_FMT(json));
    if (annal__below_replace(&export->below, export->path.ptr, annal__buf_slice(&text), &mode,
                             &err) < 0)
        exit_status = fail_error(&err);
    return exit_status;
}

static int export_row(void *arg, const annal_row *row)
{
    struct export *export = arg;
    export->files++;
    if (export->directory != NULL)
        return write_file(export, row->values[0].bytes, row->values[1].bytes);
    out_slice(row->values[1].bytes);
    printf("\n");
    return 0;
}

int team_export(const struct args *args)
{
    struct verb_call call;
    char team[TEAM_ID_BYTES_MAX + 1];
    struct export export = {.directory = args_get(args, "to")};
    const char *word = args_get(args, "TEAM");
    annal_value param = {.kind = ANNAL_VALUE_NULL};
    annal_error err = {0};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0 && word != NULL)
        exit_status = verbs_team_find(&call, word, team);
    if (exit_status == 0)
        exit_status = open_directory(&export);
    if (exit_status != 0)
        return verb_close(&call, exit_status);
    if (word != NULL)
        param = (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(team)};
    const annal_sql_options options = {.params = &param, .param_count = 1};
    annal_status status = annal_index_sql(call.index, annal_slice_of(annal__sql_team_export),
                                          &options, export_row, &export, &err);
    exit_status = status < 0 ? fail_error(&err) : (int)status;
    annal__below_close(&export.below);
    annal__buf_done(&export.path);
    if (exit_status == 0 && export.directory != NULL && !args->json)
        printf("%" PRIu64 " file%s in %s\n", export.files, export.files == 1 ? "" : "s",
               export.directory);
    return verb_close(&call, exit_status);
}
