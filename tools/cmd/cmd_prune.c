/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/sys/seam.h"
#include "snapshot/sys/delete.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cmd/wipe.h"
#include "tools/export/bundle.h"
#include "tools/import/deleted.h"

#include <annal/pack.h>

#include <inttypes.h>
#include <unistd.h>

#define DAY_US         INT64_C(86400000000)
#define PRUNE_WAIT_MS  1000
#define KEPT_SHOWN_MAX 20

struct prune {
    const struct args *args;
    annal_store *store;
    annal_index *index;
    uint64_t keep_days;
    annal_prune_options options;
    uint64_t sessions, branches, progressions, messages, journals, kept;
    /* number of old sessions that are kept because messages of a team refer to them */
    uint64_t linked;
    /* number of sessions whose journal stays because another session needs their messages */
    uint64_t needed;
    /* number of sessions whose journal stays because it is in use or a fork needs it */
    uint64_t stayed;
    struct buf deleted; /* ids of the sessions whose journal was deleted, each followed by NUL */
    /* number of journals, snapshots and artifacts that could not be deleted now */
    uint64_t left;
    int failed; /* exit status of a failure to delete data of a session, or 0 */
};

/* ---- One session ---- */

/* Count or report the parts of a deleted session that remain. delete_journal() reports a session
 * that is not deleted. */
static void tell_deleted(void *arg, const annal_delete_note *note)
{
    struct prune *prune = arg;
    if (note->part == ANNAL_DELETE_SESSION)
        return;
    bool files = note->part == ANNAL_DELETE_SNAPSHOTS || note->part == ANNAL_DELETE_ARTIFACTS;
    if (files && note->error->status != ANNAL_ERR_BUSY) {
        prune->failed = fail_error(note->error);
        return;
    }
    prune->left += files;
    wipe_say_what_remains(note);
}

/* Delete a journal. A session that is in use or has a fork stays, which is not a failure. Return
 * the exit status. */
static int delete_journal(struct prune *prune, annal_slice session)
{
    annal_error err = {0};
    annal_status status = annal__delete_session(prune->index, session, tell_deleted, prune, &err);
    if (status == ANNAL_ERR_BUSY || status == ANNAL_ERR_CONFLICT) {
        prune->stayed++;
        prune->left++;
        say("session '%.*s' was removed from the tables, but the journal of the session stays: %s",
            ANNAL_FMT(session), err.message);
        return 0;
    }
    if (status < 0)
        return fail_error(&err);
    prune->journals++;
    deleted_note(prune->store, session);
    must_append_slice(&prune->deleted, session);
    must_append(&prune->deleted, "", 1);
    return prune->failed;
}

static void print_one(const struct prune *prune, const annal_pruned *pruned)
{
    if (!prune->args->json)
        return;
    out_json("{\"session_id\":?,\"pruned\":#,\"branches\":#,\"progressions\":#,\"messages\":#",
             pruned->session,
             annal_slice_of(pruned->kept == NULL && !prune->options.dry_run ? "true" : "false"),
             JSON_U64(pruned->branches), JSON_U64(pruned->progressions),
             JSON_U64(pruned->messages));
    if (pruned->needed_by.len > 0)
        out_json(",\"messages_needed\":#,\"needed_by\":?", JSON_U64(pruned->needed),
                 pruned->needed_by);
    if (pruned->linked_by.len > 0)
        out_json(",\"linked_by\":?", pruned->linked_by);
    puts("}");
}

static int note(void *arg, const annal_pruned *pruned)
{
    struct prune *prune = arg;
    print_one(prune, pruned);
    if (pruned->kept != NULL) {
        uint64_t *count = pruned->linked_by.len > 0 ? &prune->linked : &prune->kept;
        if ((*count)++ < KEPT_SHOWN_MAX)
            say("session '%.*s' is kept: %s", ANNAL_FMT(pruned->session), pruned->kept->message);
        return 0;
    }
    prune->sessions++;
    prune->branches += pruned->branches;
    prune->progressions += pruned->progressions;
    prune->messages += pruned->messages;
    if (!prune->options.delete_journals)
        return 0;
    if (pruned->needed_by.len > 0) {
        if (prune->needed++ < KEPT_SHOWN_MAX)
            say("the journal of session '%.*s' stays: session '%.*s' needs %" PRIu64
                " of its messages",
                ANNAL_FMT(pruned->session), ANNAL_FMT(pruned->needed_by), pruned->needed);
        return 0;
    }
    if (prune->options.dry_run) {
        prune->journals++;
        return 0;
    }
    return delete_journal(prune, pruned->session);
}

/* ---- All sessions ---- */

/* Append the operator's action to session _state, for the table admin_events. Return the exit
 * status. */
static int record(struct prune *prune)
{
    annal_error err = {0};
    annal_writer *writer = NULL;
    SCOPED_BUF data = {0};
    const char *actor = getlogin();
    must_printf(&data,
                "{\"action\":\"prune\",\"details\":{\"keep_days\":%" PRIu64 ",\"keep_n\":%" PRIu64
                ",\"orphan_progressions\":%s,\"sessions\":%" PRIu64 ",\"branches\":%" PRIu64
                ",\"progressions\":%" PRIu64 ",\"messages\":%" PRIu64 ",\"journals\":%" PRIu64
                ",\"journals_kept\":%" PRIu64 "}",
                prune->keep_days, prune->options.keep_n,
                prune->options.orphan_progressions ? "true" : "false", prune->sessions,
                prune->branches, prune->progressions, prune->messages, prune->journals,
                prune->needed + prune->stayed);
    if (actor != NULL)
        must_json(&data, ",\"actor\":?", annal_slice_of(actor));
    must_append_text(&data, "}");
    const annal_draft draft = {.type = ANNAL_SLICE("admin.recorded"),
                               .data = annal__buf_slice(&data)};
    annal_status status =
        annal_writer_open(prune->store, ANNAL_SLICE("_state"), NULL, &writer, &err);
    if (status >= 0) {
        annal__writer_spend_reserve(writer);
        status = annal_pack_append(prune->index, writer, &draft, 1, NULL, NULL, &err);
        /* the tables of packs must be rebuilt, because a session was deleted: do that, then
         * append */
        if (status == ANNAL_ERR_BUSY) {
            catch_up_wholly(prune->index);
            status = annal_pack_append(prune->index, writer, &draft, 1, NULL, NULL, &err);
        }
    }
    annal_writer_close(writer);
    if (status < 0 && annal__error_is_no_space(&err)) {
        say("cannot record in session '_state' what was pruned: %s", err.message);
        return 0;
    }
    return status < 0 ? fail_error(&err) : 0;
}

static void print_totals(const struct prune *prune)
{
    if (prune->args->json) {
        printf("{\"dry_run\":%s,\"sessions\":%" PRIu64 ",\"branches\":%" PRIu64
               ",\"progressions\":%" PRIu64 ",\"messages\":%" PRIu64 ",\"journals\":%" PRIu64
               ",\"journals_kept\":%" PRIu64 ",\"kept\":%" PRIu64 ",\"linked\":%" PRIu64 "}\n",
               prune->options.dry_run ? "true" : "false", prune->sessions, prune->branches,
               prune->progressions, prune->messages, prune->journals, prune->needed + prune->stayed,
               prune->kept, prune->linked);
        return;
    }
    printf("%s %" PRIu64 " session(s), %" PRIu64 " branch(es), %" PRIu64 " progression(s), %" PRIu64
           " message(s)\n",
           prune->options.dry_run ? "would prune" : "pruned", prune->sessions, prune->branches,
           prune->progressions, prune->messages);
    if (prune->journals > 0)
        printf("%s %" PRIu64 " journal(s)\n", prune->options.dry_run ? "would delete" : "deleted",
               prune->journals);
    if (prune->needed > 0)
        printf("%" PRIu64 " journal(s) stay: other sessions need their messages\n", prune->needed);
    if (prune->linked > 0)
        printf("%" PRIu64 " old session(s) stay: messages of teams refer to them\n", prune->linked);
}

static void wipe(struct prune *prune)
{
    annal_slice *sessions = must_zalloc(prune->journals * sizeof *sessions);
    size_t count = 0;
    for (size_t at = 0; at < prune->deleted.len; count++) {
        sessions[count] = annal_slice_of(prune->deleted.ptr + at);
        at += sessions[count].len + 1;
    }
    staging_remove_stale(prune->store);
    annal__delete_wipe(prune->index, sessions, count, tell_deleted, prune);
    annal__free(sessions);
}

static int prune_all(struct prune *prune)
{
    annal_error err = {0};
    annal_status status = annal_session_prune(prune->index, &prune->options, note, prune, &err);
    int exit_status = status < 0 ? fail_error(&err) : (int)status;
    if (prune->deleted.len > 0)
        wipe(prune);
    /* record also the sessions that were pruned before a failure */
    if (prune->sessions > 0 && !prune->options.dry_run) {
        int recorded = record(prune);
        exit_status = recorded > exit_status ? recorded : exit_status;
    }
    if (exit_status == 0)
        print_totals(prune);
    return exit_status == 0 && prune->kept + prune->left > 0 ? EXIT_REFUSED : exit_status;
}

static int run(const struct args *args)
{
    struct prune prune = {.args = args,
                          .keep_days = fields_count(args, "keep-days", 30),
                          .options = {.keep_n = fields_count(args, "keep-n", 100)}};
    annal_error err = {0};
    prune.options.before_us =
        annal__system_clock.wall_us(annal__system_clock.arg) - (int64_t)prune.keep_days * DAY_US;
    prune.options.dry_run = args_has(args, "dry-run");
    prune.options.orphan_progressions = args_has(args, "orphan-progressions");
    prune.options.delete_journals = args_has(args, "delete-journals");
    prune.options.wait_ms = PRUNE_WAIT_MS;
    int exit_status = store_open(args, OPEN_WRITE, PRUNE_WAIT_MS, &prune.store);
    if (exit_status == 0 && annal_index_open(prune.store, NULL, &prune.index, &err) < 0)
        exit_status = fail_error(&err);
    /* before journals are deleted, add all new events to the tables: without them, a session that
     * another session needs may seem unneeded */
    if (exit_status == 0 && prune.options.delete_journals)
        catch_up_wholly(prune.index);
    if (exit_status == 0)
        exit_status = out_finish(prune_all(&prune));
    annal__buf_done(&prune.deleted);
    annal_index_close(prune.index);
    return store_close(prune.store, exit_status);
}

static const struct field fields[] = {
    OPTION_WITH("keep-days", "N", FIELD_COUNT, NULL,
                "days without a change before a session is old (30)", .most = 100000),
    OPTION_WITH("keep-n", "N", FIELD_COUNT, NULL,
                "number of newest sessions that are always kept (100)", .most = INT64_MAX),
    FLAG("dry-run", NULL, "print the exact numbers, change nothing"),
    FLAG("orphan-progressions", NULL, "delete their progressions and the messages only in them"),
    FLAG("delete-journals", NULL, "delete their journals too, permanently"),
    FIELDS_END};

const struct command cmd_prune = {
    COMMAND("prune", "remove old sessions from the tables", prune, fields, run)};
