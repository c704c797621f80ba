/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "snapshot/sys/delete.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cmd/wipe.h"
#include "tools/export/bundle.h"
#include "tools/import/deleted.h"

#include <inttypes.h>
#include <unistd.h>

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_IDS, NULL, "the sessions"),
    FLAG("yes", NULL, "delete without asking, even on a terminal"), FIELDS_END};

/* Return whether the user wants the deletion. Ask only on a terminal; elsewhere nobody can answer,
 * and the command line counts as a yes. */
static bool is_wanted(const struct args *args)
{
    char answer[16];
    if (args_has(args, "yes") || !isatty(STDIN_FILENO))
        return true;
    fprintf(stderr, "delete ");
    for (int i = 0; i < args->operand_count; i++)
        fprintf(stderr, "%s%s", i == 0 ? "" : ", ", args->operands[i]);
    fprintf(stderr, " permanently? [y/N] ");
    fflush(stderr);
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static void print_deleted(bool json, const annal_session_info *info)
{
    char events[HUMAN_BYTES], bytes[HUMAN_BYTES];
    /* events of the session itself; a fork's shared events remain */
    uint64_t count = info->last_seq - info->fork_seq;
    if (json)
        printf("{\"session_id\":\"%s\",\"deleted\":true,\"events\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"file\":\"%s\"}\n",
               info->session, count, info->bytes, info->file);
    else
        printf("deleted %s: %s event%s, %s\n", info->session, human_count(events, count),
               count == 1 ? "" : "s", human_bytes(bytes, info->bytes));
}

/* Print a deleted session, and report the parts of it that remain. The caller reports a session
 * that is not deleted. */
static void tell(void *arg, const annal_delete_note *note)
{
    const bool *json = arg;
    if (note->part != ANNAL_DELETE_SESSION) {
        wipe_say_what_remains(note);
    } else if (note->error == NULL) {
        print_deleted(*json, note->info);
        (void)out_flush();
    }
}

static int delete_all(const struct args *args, annal_store *store)
{
    annal_index *index = NULL;
    int exit_status = EXIT_DONE;
    bool json = args->json;
    int64_t begun_us = annal__clock_monotonic_us();
    annal_slice *deleted = must_zalloc((size_t)args->operand_count * sizeof *deleted);
    size_t count = 0;
    for (int i = 0; i < args->operand_count && exit_status != EXIT_STORAGE; i++) {
        annal_error err = {0};
        annal_slice session = annal_slice_of(args->operands[i]);
        if (index == NULL && annal_index_open(store, NULL, &index, &err) < 0) {
            exit_status = fail_error(&err);
            break;
        }
        if (annal__delete_session(index, session, tell, &json, &err) < 0)
            exit_status = fail_error(&err);
        else {
            deleted_note(store, session);
            deleted[count++] = session;
        }
    }
    if (count > 0) {
        store_wait_within(args, store, begun_us);
        staging_remove_stale(store);
        annal__delete_wipe(index, deleted, count, tell, &json);
    }
    annal__free(deleted);
    annal_index_close(index);
    return out_finish(exit_status);
}

static int run(const struct args *args)
{
    annal_store *store = NULL;
    int exit_status = store_open(args, OPEN_WRITE, 0, &store);
    if (exit_status == 0 && !is_wanted(args))
        exit_status = fail_refused("the deletion was not confirmed, nothing was deleted");
    if (exit_status == 0)
        exit_status = delete_all(args, store);
    return store_close(store, exit_status);
}

const struct command cmd_delete = {
    COMMAND("delete", "delete sessions permanently", delete, fields, run)};
