/* SPDX-License-Identifier: Apache-2.0 */
/* A run of an OpenProse program on disk: its folder, the copy of its program, its attachments. */
#include "tools/verbs/prose_run.h"

#include "journal/base/below.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"

#include <annal/artifact.h>
#include <annal/pack.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* ---- Ids ---- */

#define RUN_BYTES 22

/* Return whether a text is a run id: YYYYMMDD-HHMMSS-random6, where random6 is six of [a-z0-9]. */
static bool is_run(const char *run)
{
    static const char shape[] = "dddddddd-dddddd-xxxxxx";
    size_t i = 0;
    for (; shape[i] != '\0' && run[i] != '\0'; i++) {
        bool digit = run[i] >= '0' && run[i] <= '9';
        bool letter = run[i] >= 'a' && run[i] <= 'z';
        if (shape[i] == '-' ? run[i] != '-' : shape[i] == 'd' ? !digit : !digit && !letter)
            return false;
    }
    return shape[i] == '\0' && run[i] == '\0';
}

/* Create a run id. Returns 0 or an exit status. */
static int make_run(char out[RUN_BYTES + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char bytes[6];
    struct tm now;
    time_t seconds = time(NULL);
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return fail_storage("cannot read random bytes from the system");
    if (gmtime_r(&seconds, &now) == NULL ||
        strftime(out, RUN_BYTES + 1, "%Y%m%d-%H%M%S-", &now) != RUN_BYTES - 6)
        return fail_storage("cannot read the time from the system");
    for (size_t i = 0; i < sizeof bytes; i++)
        out[RUN_BYTES - 6 + i] = letters[bytes[i] % (sizeof letters - 1)];
    out[RUN_BYTES] = '\0';
    return 0;
}

/* ---- Folders and files ---- */

struct place {
    const char *run;
    struct buf *out;
};

/* If the pack is prose, write the folder of the run: the path of its database,
 * STORE/prose/runs/STAR/state.db, up to STAR (the *), then the run. Returns 1 after that. */
static int take_folder(void *arg, const annal_pack_info *info)
{
    const struct place *place = arg;
    const char *star = info->database == NULL ? NULL : strchr(info->database, '*');
    if (strcmp(info->name, "prose") != 0 || star == NULL)
        return 0;
    must_printf(place->out, "%.*s%s", (int)(star - info->database), info->database, place->run);
    return 1;
}

/* Set out to the path of the folder of a run, with a NUL. The folder contains the run's state.db.
 * Returns 0 or an exit status. */
static int run_folder(struct verb_call *call, const char *run, struct buf *out)
{
    annal_error err = {0};
    struct place place = {.run = run, .out = out};
    annal__buf_clear(out);
    if (annal_pack_each(call->index, take_folder, &place, &err) < 0)
        return fail_error(&err);
    return out->len > 0
               ? 0
               : fail_storage(
                     "pack prose is not enabled in this store: run 'annal pack enable prose'");
}

/*
 * Open the directory that contains the files of a run: the store, or DIR of annal pack enable prose
 * --at DIR. *path is the path of the file in that directory. The VM and its subagents write below
 * it, so no link is followed below it. Returns 0 or an exit status.
 */
static int open_place(const struct verb_call *call, const char *folder, const char *name,
                      struct below *out_below, struct buf *root, struct buf *path)
{
    const char *store = annal_store_path(call->store), *runs = strrchr(folder, '/');
    annal_error err = {0};
    size_t len = strlen(store);
    if (strncmp(folder, store, len) != 0 || folder[len] != '/') {
        while (runs > folder && *--runs != '/') /* find DIR in DIR/runs/RUN */
            ;
        len = (size_t)(runs - folder);
    }
    for (;;) { /* find the longest part of DIR that exists; the directories after it are created */
        annal__buf_clear(root);
        must_printf(root, "%.*s", len == 0 ? 1 : (int)len, folder);
        annal_status status = annal__below_open(root->ptr, out_below, &err);
        if (status < 0 && (status != ANNAL_ERR_NOTFOUND || len == 0))
            return fail_error(&err);
        if (status == ANNAL_OK)
            break;
        while (len > 0 && folder[--len] != '/')
            ;
    }
    must_printf(path, "%s/%s", folder + len + 1, name);
    return 0;
}

/* Write a file in the folder of a run, or in a folder in it: complete and durable, or not at all. A
 * symbolic link with its name is not followed. Returns 0 or an exit status. */
static int write_file(const struct verb_call *call, const char *folder, const char *name,
                      annal_slice content)
{
    static const struct below_mode mode = {.file = 0600, .folder = 0700, .sync = true};
    struct below below = {0};
    SCOPED_BUF root = {0}, path = {0};
    annal_error err = {0};
    int exit_status = open_place(call, folder, name, &below, &root, &path);
    if (exit_status == 0 && annal__below_replace(&below, path.ptr, content, &mode, &err) < 0)
        exit_status = fail_error(&err);
    annal__below_close(&below);
    return exit_status;
}

/* ---- init ---- */

static int count_row(void *arg, const annal_row *row)
{
    (void)row;
    ++*(uint64_t *)arg;
    return 0;
}

/* Refuse with `why` if the SELECT has a row, before a file is written, so that a refused event
 * replaces no file. Returns 0 or an exit status. */
static int refuse_if(struct verb_call *call, const char *sql, const char *param, const char *why)
{
    annal_session_info info;
    annal_error err = {0};
    uint64_t count = 0;
    annal_slice session = annal_slice_of(call->session);
    const annal_value value = {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(param)};
    const annal_sql_options options = {.params = &value, .param_count = 1, .session = session};
    annal_status status = annal_session_info_get(call->store, session, &info, &err);
    if (status == ANNAL_ERR_NOTFOUND)
        return 0;
    if (status >= 0)
        status =
            annal_index_sql(call->index, annal_slice_of(sql), &options, count_row, &count, &err);
    if (status < 0)
        return fail_error(&err);
    return count > 0 ? fail_refused("%s", why) : 0;
}

/* Copy the program of the run (--program) to the folder of the run's database, before the run
 * begins. Returns 0 or an exit status. */
static int write_program(struct verb_call *call, const char *run)
{
    SCOPED_BUF folder = {0}, program = {0};
    const char *file = args_get(call->args, "program");
    if (file == NULL)
        return 0;
    int exit_status = refuse_if(call, "SELECT 1 FROM prose.run WHERE id = ?1", run,
                                "the run has been started before");
    if (exit_status == 0)
        exit_status = run_folder(call, run, &folder);
    if (exit_status == 0)
        exit_status = verb_read_file(file, &program);
    if (exit_status == 0)
        exit_status = write_file(call, folder.ptr, "program.prose", annal__buf_slice(&program));
    if (exit_status == 0)
        verb_set_text(call, "program_source", annal__buf_slice(&program));
    if (exit_status == 0 && strcmp(file, "-") != 0)
        verb_set_text(call, "program_path", annal_slice_of(file));
    return exit_status;
}

int prose_prepare_init(struct verb_call *call)
{
    char made[RUN_BYTES + 1];
    const char *run = args_get(call->args, "RUN");
    int exit_status = run == NULL ? make_run(made) : 0;
    if (run == NULL)
        run = made;
    if (exit_status == 0 && !is_run(run))
        exit_status = fail_usage("'%s' is not a valid run id: YYYYMMDD-HHMMSS-random6, for "
                                 "instance 20260116-143052-a7b3c9",
                                 run);
    if (exit_status == 0)
        exit_status = verb_set_session(call, "prose_%s", run);
    verb_set_text(call, "id", annal_slice_of(run));
    return exit_status == 0 ? write_program(call, run) : exit_status;
}

static int no_row(void *arg, const annal_row *row)
{
    (void)arg;
    (void)row;
    return 0;
}

/* Apply all events in the journal of a session to the tables of packs. Returns 0 or an exit
 * status. */
static int catch_up(struct verb_call *call, const char *session)
{
    annal_error err = {0};
    const annal_sql_options options = {.session = annal_slice_of(session)};
    annal_status status =
        annal_index_sql(call->index, ANNAL_SLICE("SELECT 1"), &options, no_row, NULL, &err);
    return status < 0 ? fail_error(&err) : 0;
}

int prose_finish_init(struct verb_call *call)
{
    SCOPED_BUF folder = {0};
    const char *run = call->session + strlen("prose_");
    int exit_status = catch_up(call, call->session);
    if (exit_status == 0)
        exit_status = run_folder(call, run, &folder);
    if (exit_status == 0)
        printf("Run: %s\nDatabase: %s/state.db\n", run, folder.ptr);
    return exit_status;
}

/* ---- bind ---- */

/* Write the name of an attachment to out: attachments/NAME.md, or attachments/NAME.43.md for a name
 * in execution 43. */
static void attachment_name(const char *name, const char *execution, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "attachments/");
    for (const char *c = name; *c != '\0' && len + 80 < size; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("-_.", *c) != NULL;
        /* Escape a dot that would hide the file, make "..", or make the name look as if it ended
         * with an execution id. */
        bool dot =
            *c == '.' && (c == name || c[-1] == '.' || c[1 + strspn(c + 1, "0123456789")] == '\0');
        len += (size_t)snprintf(out + len, size - len, plain && !dot ? "%c" : "%%%02X",
                                (unsigned char)*c);
    }
    if (execution != NULL)
        len += (size_t)snprintf(out + len, size - len, ".%.20s", execution);
    snprintf(out + len, size - len, ".md");
}

/*
 * Store a large value: in a file for people and other programs, and as an artifact in the store,
 * with which the file can be checked and restored. Both are durable before the event is appended.
 * Returns 0 or an exit status.
 */
static int attach(struct verb_call *call, const char *run, const char *name, annal_slice value)
{
    char path[500], number[32], summary[300], size[HUMAN_BYTES];
    annal_artifact_info info;
    annal_error err = {0};
    SCOPED_BUF folder = {0};
    attachment_name(name == NULL ? call->args->command->name : name,
                    args_get(call->args, "execution"), path, sizeof path);
    int exit_status = refuse_if(
        call,
        "SELECT 1 FROM prose.bindings WHERE attachment_path = ?1 AND kind IN ('input', 'const')",
        path, "the value of this name cannot change (input, const)");
    if (exit_status == 0)
        exit_status = run_folder(call, run, &folder);
    if (exit_status == 0)
        exit_status = write_file(call, folder.ptr, path, value);
    if (exit_status == 0 &&
        annal_artifact_put(call->store, annal_slice_of(call->session), value, &info, &err) < 0)
        exit_status = fail_error(&err);
    snprintf(number, sizeof number, "%zu", value.len);
    snprintf(summary, sizeof summary, "%.200s (%s) - see attachment", name == NULL ? "value" : name,
             human_bytes(size, value.len));
    if (exit_status == 0) {
        const char *given = args_get(call->args, "summary");
        verb_set_text(call, "attachment_path", annal_slice_of(path));
        verb_set_text(call, "sha256", annal_slice_of(info.sha256));
        verb_set(call, "bytes", annal_slice_of(number));
        verb_set_text(call, "value", annal_slice_of(given != NULL ? given : summary));
    }
    return exit_status;
}

int prose_prepare_bind(struct verb_call *call)
{
    SCOPED_BUF read = {0};
    const char *file = args_get(call->args, "value-file");
    const char *given = args_get(call->args, "VALUE");
    const char *name = args_get(call->args, "NAME");
    int exit_status = 0;
    if (file != NULL && given != NULL)
        exit_status = fail_usage("VALUE and --value-file cannot be used together");
    else if (file != NULL || (given != NULL && strcmp(given, "-") == 0))
        exit_status = verb_read_file(file != NULL ? file : "-", &read);
    if (exit_status == 0 && name != NULL && strcmp(name, "-") == 0) {
        call->type = "binding.anonymous";
        name = NULL;
    } else if (exit_status == 0) {
        verb_set_text(call, "name", annal_slice_of(name));
    }
    annal_slice value = file != NULL || (given != NULL && strcmp(given, "-") == 0)
                            ? annal__buf_slice(&read)
                            : annal_slice_of(given);
    if (exit_status == 0 && value.len > PROSE_INLINE_BYTES_MAX && name == NULL)
        exit_status = fail_refused("a value of more than 100 KB needs a name");
    else if (exit_status == 0 && value.len > PROSE_INLINE_BYTES_MAX)
        exit_status = attach(call, call->session + strlen("prose_"), name, value);
    else if (exit_status == 0 && (file != NULL || given != NULL))
        verb_set_text(call, "value", value);
    return exit_status;
}

/* Print the confirmation that the specification of OpenProse requires. */
int prose_finish_bind(struct verb_call *call)
{
    SCOPED_BUF folder = {0}, scratch = {0};
    char here[PATH_MAX];
    annal_slice name = {0}, id = annal__json_member(call->data, "execution_id");
    bool scoped = id.len > 0 && id.ptr[0] != 'n';
    int exit_status = run_folder(call, call->session + strlen("prose_"), &folder);
    must_status(annal__json_text(annal__json_member(call->data, "name"), &scratch, &name));
    if (exit_status == 0) {
        size_t skip = getcwd(here, sizeof here) == NULL ? 0 : strlen(here);
        bool below = skip > 1 && strncmp(folder.ptr, here, skip) == 0 && folder.ptr[skip] == '/';
        printf("Binding written: ");
        out_plain(name);
        printf("\nLocation: %s/state.db (bindings table, name='",
               folder.ptr + (below ? skip + 1 : 0));
        out_plain(name);
        printf("', execution_id=%.*s)\n", scoped ? (int)id.len : 4, scoped ? id.ptr : "NULL");
        if (scoped)
            printf("Execution ID: %.*s\n", ANNAL_FMT(id));
    }
    return exit_status;
}

/* ---- sync ---- */

int prose_sync(const struct args *args)
{
    struct verb_call call;
    annal_error err = {0};
    const annal_catch_up_options every = {.packs = true, .every_database = true};
    const char *run = args_get(args, "RUN");
    int exit_status = verb_open(&call, args);
    if (exit_status == 0 && run != NULL)
        exit_status = verb_set_session(&call, "prose_%s", run);
    if (exit_status == 0 && run != NULL)
        exit_status = catch_up(&call, call.session);
    else if (exit_status == 0 &&
             annal_index_catch_up(call.index, (annal_slice){0}, &every, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && args->json)
        printf("{\"synced\":true}\n");
    else if (exit_status == 0)
        printf("the rows written to %s are in the journal\n",
               run != NULL ? run : "the databases of all runs");
    return verb_close(&call, exit_status);
}

/* ---- attachments ---- */

struct checking {
    struct verb_call *call;
    const char *folder;
    bool restore;
    int exit_status;
};

/* Compare a file with its artifact. Returns what is wrong with the file, or NULL if they are
 * equal. */
static const char *check_file(const struct checking *checking, const char *name,
                              annal_slice content)
{
    struct below below = {0};
    SCOPED_BUF have = {.limit = content.len + 1}, root = {0}, path = {0};
    annal_error err = {0};
    const char *fault = "unreadable";
    if (open_place(checking->call, checking->folder, name, &below, &root, &path) == 0) {
        annal_status status = annal__below_read(&below, path.ptr, &have, &err);
        bool same = status == ANNAL_OK && annal__slice_same(annal__buf_slice(&have), content);
        fault = same                                              ? NULL
                : status == ANNAL_OK || status == ANNAL_ERR_LIMIT ? "changed"
                : status == ANNAL_ERR_NOTFOUND                    ? "missing"
                : err.os_errno == ELOOP                           ? "below a symbolic link"
                                                                  : "unreadable";
    }
    annal__below_close(&below);
    return fault;
}

static bool is_inside(const char *name)
{
    return strncmp(name, "attachments/", strlen("attachments/")) == 0 && strstr(name, "..") == NULL;
}

/* Check one attachment, from a row of path, sha256, bytes. */
static int check_attachment(void *arg, const annal_row *row)
{
    struct checking *checking = arg;
    char name[500];
    annal_slice content = {0};
    annal_error err = {0};
    const annal_value *values = row->values;
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(values[0].bytes));
    annal_status status =
        annal_artifact_get(checking->call->store, annal_slice_of(checking->call->session),
                           values[1].bytes, (uint64_t)values[2].integer, &content, &err);
    /* Users can write this table, so check that the path is below attachments/. */
    bool inside = values[0].bytes.len < sizeof name && is_inside(name);
    const char *fault = !inside      ? "not under attachments/"
                        : status < 0 ? "not in the store, so it cannot be checked"
                                     : check_file(checking, name, content);
    const char *did = fault == NULL ? "unchanged" : fault;
    if (fault != NULL && inside && status >= 0 && checking->restore &&
        write_file(checking->call, checking->folder, name, content) == 0)
        did = "restored";
    else if (fault != NULL)
        checking->exit_status = EXIT_REFUSED;
    if (checking->call->args->json) {
        out_json("{\"path\":?,\"bytes\":#,\"state\":\"#\"}\n", values[0].bytes,
                 JSON_I64(values[2].integer), annal_slice_of(did));
    } else {
        out_plain(values[0].bytes);
        printf(": %s\n", did);
    }
    annal_free(content.ptr);
    return 0;
}

int prose_attachments(const struct args *args)
{
    struct verb_call call;
    SCOPED_BUF folder = {0};
    annal_error err = {0};
    int exit_status = verb_open(&call, args);
    struct checking checking = {.call = &call, .restore = args_has(args, "restore")};
    if (exit_status == 0)
        exit_status = run_folder(&call, args_get(args, "RUN"), &folder);
    checking.folder = folder.ptr;
    const annal_sql_options options = {.session = annal_slice_of(call.session)};
    if (exit_status == 0 &&
        annal_index_sql(call.index,
                        ANNAL_SLICE("SELECT path, sha256, bytes FROM prose.attachments "
                                    "WHERE sha256 IS NOT NULL ORDER BY path"),
                        &options, check_attachment, &checking, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0)
        exit_status = checking.exit_status;
    return verb_close(&call, exit_status);
}
