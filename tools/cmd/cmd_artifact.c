/* SPDX-License-Identifier: Apache-2.0 */
/* annal artifact: store, print, list and sweep content beside the journals. */
#include "journal/sys/artifact.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cli/verbs.h"

#include <annal/artifact.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- put ---- */

static int64_t read_file(void *arg, char *bytes, size_t room, annal_error *err)
{
    ssize_t got;
    do
        got = read(*(int *)arg, bytes, room);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        err->status = ANNAL_ERR_IO;
        snprintf(err->message, sizeof err->message, "read the file: %s", strerror(errno));
        return ANNAL_ERR_IO;
    }
    return got;
}

static int put_stream(struct verb_call *call, int fd, annal_artifact_info *out_info)
{
    annal_error err = {0};
    char path[ANNAL_SESSION_ID_BYTES_MAX + 100];
    if (annal_artifact_put_stream(call->store, annal_slice_of(call->session), read_file, &fd,
                                  out_info, &err) < 0)
        return fail_error(&err);
    snprintf(path, sizeof path, "artifacts/%s/%s.zst", out_info->session, out_info->sha256);
    verb_set_text(call, "sha256", annal_slice_of(out_info->sha256));
    verb_set(call, "bytes", JSON_U64(out_info->bytes));
    verb_set_text(call, "path", annal_slice_of(path));
    return 0;
}

static int put_file(struct verb_call *call)
{
    const char *path = args_get(call->args, "FILE");
    annal_artifact_info info;
    if (strcmp(path, "-") == 0)
        return put_stream(call, STDIN_FILENO, &info);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_refused("open the file '%s': %s", path, strerror(errno));
    const char *slash = strrchr(path, '/');
    int exit_status = put_stream(call, fd, &info);
    close(fd);
    if (exit_status == 0 && args_get(call->args, "name") == NULL)
        verb_set_text(call, "name", annal_slice_of(slash == NULL ? path : slash + 1));
    return exit_status;
}

/* Store a file and append its event. Until the event refers to the artifact, `hold` prevents a
 * sweep from removing the artifact. */
static int put(const struct args *args)
{
    struct verb_call call;
    annal__artifact_hold *hold = NULL;
    annal_error err = {0};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0 && annal__artifact_hold_new(call.store, &hold, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0)
        exit_status = put_file(&call);
    if (exit_status == 0)
        exit_status = verb_post(&call);
    annal__artifact_hold_free(hold);
    if (exit_status == 0)
        verb_print(&call);
    return verb_close(&call, exit_status);
}

/* ---- get ---- */

static int print_piece(void *arg, annal_slice piece)
{
    (void)arg;
    out_slice(piece);
    return out_wanted() ? 0 : ANNAL_END;
}

static int get(const struct args *args)
{
    annal_store *store = NULL;
    annal_error err = {0};
    annal_slice session = annal_slice_of(args_get(args, "SESSION"));
    annal_slice sha256 = annal_slice_of(args_get(args, "SHA256"));
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    /* Read the artifact twice: the first call checks the hash and prints nothing, because printed
     * bytes cannot be withdrawn. */
    if (exit_status == 0 &&
        (annal_artifact_read(store, session, sha256, NULL, NULL, NULL, &err) < 0 ||
         annal_artifact_read(store, session, sha256, print_piece, NULL, NULL, &err) < 0))
        exit_status = fail_error(&err);
    return store_close(store, out_finish(exit_status));
}

/* ---- ls ---- */

static const struct column columns[] = {
    {.name = "session_id", .title = "SESSION"},
    {.name = "sha256", .title = "SHA256", .flexible = true},
    {.name = "stored_bytes", .title = "STORED", .right = true},
    {.name = "stored_at", .title = "WHEN"},
};

static void put_row(struct table *table, const annal_artifact_info *info)
{
    char bytes[HUMAN_BYTES];
    table_text(table, annal_slice_of(info->session));
    table_text(table, annal_slice_of(info->sha256));
    table_number(table, info->stored_bytes);
    table_shown(table, "%s", human_bytes(bytes, info->stored_bytes));
    table_time(table, info->stored_us);
    table_row(table);
}

static int list_one(void *arg, const annal_artifact_info *info)
{
    put_row(arg, info);
    return out_wanted() ? 0 : ANNAL_END;
}

static int ls(const struct args *args)
{
    annal_store *store = NULL;
    annal_error err = {0};
    struct table *table = NULL;
    annal_slice session = annal_slice_of(args_get(args, "SESSION"));
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0) {
        table = table_new(args->json ? OUT_JSONL : OUT_TABLE, columns, 4);
        if (annal_artifact_each(store, session, list_one, table, &err) < 0)
            exit_status = fail_error(&err);
        table_free(table);
    }
    return store_close(store, out_finish(exit_status));
}

/* ---- sweep ---- */

static int print_swept(void *arg, const annal_artifact_info *info)
{
    put_row(arg, info);
    return 0;
}

static int sweep(const struct args *args)
{
    annal_store *store = NULL;
    annal_error err = {0};
    annal_artifact_sweep_result result = {0};
    annal_artifact_sweep_options options = {.dry_run = args_has(args, "dry-run")};
    char removed[HUMAN_BYTES], bytes[HUMAN_BYTES];
    struct table *table = table_new(args->json ? OUT_JSONL : OUT_TABLE, columns, 4);
    options.fn = print_swept;
    options.arg = table;
    options.older_than_us = fields_age(args, "older-than");
    if (args_has(args, "older-than") && options.older_than_us == 0)
        options.older_than_us = -1; /* -1: artifacts of any age */
    int exit_status = store_open(args, options.dry_run ? OPEN_READ : OPEN_WRITE, 0, &store);
    if (exit_status == 0 && annal_artifact_sweep(store, &options, &result, &err) < 0)
        exit_status = fail_error(&err);
    table_free(table);
    if (exit_status == 0 && !args->json)
        printf("%s %s of %" PRIu64 " artifacts, %s\n", options.dry_run ? "would remove" : "removed",
               human_count(removed, result.removed), result.artifacts,
               human_bytes(bytes, result.removed_bytes));
    return store_close(store, out_finish(exit_status));
}

/* ---- The table ---- */

static const struct field put_fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "session of the artifact"),
    OPERAND("FILE", FIELD_TEXT, NULL, "file with the content (-: standard input)"),
    OPTION("media-type", "TYPE", FIELD_TEXT, "media_type", "media type, such as application/pdf"),
    OPTION("name", "NAME", FIELD_TEXT, "name", "name of the artifact (default: name of the file)"),
    FIELDS_END};

static const struct field get_fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "session of the artifact"),
    OPERAND("SHA256", FIELD_TEXT, NULL, "hash of the content, 64 hex digits"), FIELDS_END};

static const struct field ls_fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSION, NULL, "session of the artifacts (all)"), FIELDS_END};

static const struct field sweep_fields[] = {
    OPTION("older-than", "AGE", FIELD_AGE, NULL, "minimum age of the artifact (1d)"),
    FLAG("dry-run", NULL, "list what would be removed, remove nothing"), FIELDS_END};

static const struct command verbs[] = {
    {.name = "put",
     .summary = "store a file beside a session, and append artifact.stored",
     HELP(artifact_put),
     .fields = put_fields,
     .type = "artifact.stored",
     .session = "{SESSION}",
     .said = "stored {bytes} bytes as {sha256}",
     .run = put},
    {COMMAND("get", "print an artifact, checked against its hash", artifact_get, get_fields, get)},
    {COMMAND("ls", "list artifacts", artifact_ls, ls_fields, ls)},
    {COMMAND("sweep", "remove the artifacts that no event names", artifact_sweep, sweep_fields,
             sweep)},
    {0}};

const struct noun noun_artifact = {
    .name = "artifact", .summary = "content too large for an event", .verbs = verbs};
