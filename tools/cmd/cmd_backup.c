/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"
#include "tools/cli/store_open.h"

#include <annal/backup.h>

#include <inttypes.h>

static int show(void *arg, uint64_t bytes_done, uint64_t bytes_total)
{
    struct progress *progress = arg;
    progress->total = bytes_total;
    progress_set(progress, bytes_done, NULL);
    return 0;
}

static void print_result(const struct args *args, const char *done, const char *directory,
                         const annal_backup_result *result)
{
    char sessions[HUMAN_BYTES], artifacts[HUMAN_BYTES], bytes[HUMAN_BYTES];
    if (args->json) {
        out_json("{\"directory\":?,\"sessions\":#,\"artifacts\":#,\"files\":#,\"bytes\":#}\n",
                 annal_slice_of(directory), JSON_U64(result->sessions), JSON_U64(result->artifacts),
                 JSON_U64(result->files), JSON_U64(result->bytes));
    } else {
        printf("%s ", done);
        out_plain(annal_slice_of(directory));
        printf(": %s session%s, %s artifact%s, %s\n", human_count(sessions, result->sessions),
               result->sessions == 1 ? "" : "s", human_count(artifacts, result->artifacts),
               result->artifacts == 1 ? "" : "s", human_bytes(bytes, result->bytes));
    }
}

/* Create a backup; without an index, check one. */
static int save(const struct args *args, annal_index *index)
{
    bool checks = index == NULL;
    const char *directory = args->operands[0];
    annal_error err = {0};
    annal_backup_result result;
    struct progress progress;
    const annal_backup_options options = {.progress = show, .arg = &progress};
    progress_begin(&progress, checks ? "check" : "backup", 0);
    annal_status status = checks ? annal_backup_check(directory, &options, &result, &err)
                                 : annal_backup_create(index, directory, &options, &result, &err);
    progress_hide(&progress);
    if (status < 0)
        return fail_error(&err);
    print_result(args, checks ? "sound:" : "saved to", directory, &result);
    return out_finish(EXIT_DONE);
}

static int run(const struct args *args)
{
    return args_has(args, "check") ? save(args, NULL) : store_with_index(args, OPEN_READ, save);
}

static const struct field fields[] = {
    OPERAND("DIR", FIELD_TEXT, NULL, "directory of the backup"),
    FLAG("check", NULL, "compare the backup in DIR with its manifest"), FIELDS_END};

const struct command cmd_backup = {
    COMMAND("backup", "copy the store, also while it is in use", backup, fields, run)};

static int run_restore(const struct args *args)
{
    annal_error err = {0};
    annal_backup_result result;
    struct progress progress;
    const annal_backup_options how = {.progress = show, .arg = &progress};
    char *path = store_path(args);
    if (path == NULL)
        return fail_usage("$HOME is not set, so the default store is unknown: give --store DIR");
    progress_begin(&progress, "restore", 0);
    annal_status status = annal_backup_restore(args->operands[0], path, &how, &result, &err);
    progress_hide(&progress);
    int exit_status = EXIT_DONE;
    if (status < 0)
        exit_status = fail_error(&err);
    else
        print_result(args, "restored", path, &result);
    annal__free(path);
    return out_finish(exit_status);
}

static const struct field restore_fields[] = {OPERAND("DIR", FIELD_TEXT, NULL, "the backup"),
                                              FIELDS_END};

const struct command cmd_restore = {
    COMMAND("restore", "create a store from a backup", restore, restore_fields, run_restore)};
