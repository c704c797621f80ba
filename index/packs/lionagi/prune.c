/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pruning: old sessions are deleted from the tables, by an event session.pruned in the journal of
 * each session.
 *
 * (1) The old sessions, and what else is deleted with them, are determined once, by one SELECT,
 *     which a dry run uses as well. A session without session.created (_state, teams, projects,
 *     …) is never selected, nor is a session to which messages of a team refer: these are
 *     reported to the caller.
 * (2) session.pruned contains lists of ids, because which rows other sessions still need depends on
 *     the time of the pruning, and the tables of a rebuild must not depend on the order in which
 *     sessions are read. Without orphan_progressions it lists the messages to delete; with it, the
 *     progressions and messages that stay. So an event whose rows belong to another session with
 *     the same ids (see lionagi.sql) is right, too.
 * (3) The guard of session.pruned checks again whether the session is old enough: a session that
 *     was active in the meantime is kept.
 * (4) No journal is deleted: the journals stay until a user deletes them.
 * (5) A caller that wants to delete journals learns which journals are needed, because deleting a
 *     journal also deletes the messages that the tables would have kept. A session is needed if a
 *     progression of a session whose journal stays contains its messages, or if a session whose
 *     journal stays, or a branch of it, refers to its messages or progressions. The journal of a
 *     needed session stays, so sessions to which a needed session refers are needed, too. If the
 *     tables lack a part of the journals, they do not contain every such reference, and nothing is
 *     pruned.
 * (6) session.pruned may use the part of the disk that other appends leave free. If the disk is so
 *     full that it cannot be appended even there, a journal that is to be deleted is deleted
 *     without the event, so that a full disk can be emptied.
 */
#include "index/sys/open.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <annal/pack.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

extern const char annal__sql_prune_core[], annal__sql_prune_linked[], annal__sql_prune_sessions[],
    annal__sql_prune_sessions_teams[]; /* prune/ */

/*
 * The number of columns of a session to prune: its id; the numbers of branches, progressions and
 * messages to delete; ids of progressions that stay; ids of messages that stay or are deleted (rule
 * 2); the number of its messages that other sessions need; one of these sessions.
 */
enum { WORDS = 8 };

struct prune {
    annal_index *index;
    const annal_prune_options *options;
    char cutoff[ANNAL_TIME_BYTES];
    /* the WORDS columns of each session to prune, as text with a NUL after each */
    struct buf candidates;
    /* ids of each session that is kept for a team, and of the team, with a NUL after each */
    struct buf linked;
    bool has_state, has_teams;
    /* why the tables of pack lionagi cannot be queried; status 0 if they can be */
    annal_error unasked;
};

/* ---- Queries ---- */

/* Run a SELECT over the tables. With delete_journals it fails if the tables lack a part of the
 * journals: rule (5). */
static annal_status ask(struct prune *prune, annal_slice sql, annal_sql_options options,
                        annal_row_fn fn, annal_error *err)
{
    annal_lag lag = {0};
    options.out_lag = prune->options->delete_journals ? &lag : NULL;
    annal_status status = annal_index_sql(prune->index, sql, &options, fn, prune, err);
    return status < 0 || lag.bytes == 0
               ? status
               : annal__fail(err, ANNAL_ERR_BUSY,
                             "prune: cannot find out which journals are needed: %s", lag.message);
}

static int note_state(void *arg, const annal_pack_info *info)
{
    struct prune *prune = arg;
    if (strcmp(info->name, "lionagi") != 0 || (info->error == NULL && prune->has_state))
        return 0;
    return annal__fail(&prune->unasked, ANNAL_ERR_BUSY,
                       "prune: cannot find out which journals are needed, because the tables of "
                       "pack 'lionagi' cannot be queried%s%s",
                       info->error == NULL ? "" : ": ", info->error == NULL ? "" : info->error);
}

/* With delete_journals, fail if the pack lionagi is enabled but its tables cannot be queried. */
static annal_status check_state(struct prune *prune, annal_error *err)
{
    if (!prune->options->delete_journals)
        return ANNAL_OK;
    annal_status status = annal_pack_each(prune->index, note_state, prune, err);
    if (prune->unasked.status < 0 && err != NULL)
        *err = prune->unasked;
    return status;
}

/* ---- The sessions ---- */

static int note_table(void *arg, const annal_row *row)
{
    struct prune *prune = arg;
    annal_slice name = row->values[0].bytes;
    if (name.len == strlen("progressions"))
        prune->has_state = true;
    else
        prune->has_teams = true;
    return 0;
}

static int note_candidate(void *arg, const annal_row *row)
{
    struct prune *prune = arg;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < WORDS; i++) {
        if (row->values[i].kind == ANNAL_VALUE_INTEGER)
            status =
                annal__buf_printf(&prune->candidates, "%lld", (long long)row->values[i].integer);
        else
            status = annal__buf_append_slice(&prune->candidates, row->values[i].bytes);
        status = annal__buf_append(&prune->candidates, "", 1);
    }
    return status;
}

static int note_linked(void *arg, const annal_row *row)
{
    struct prune *prune = arg;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < 2; i++) {
        annal__buf_append_slice(&prune->linked, row->values[i].bytes);
        status = annal__buf_append(&prune->linked, "", 1);
    }
    return status;
}

static annal_status choose(struct prune *prune, annal_error *err)
{
    const annal_prune_options *options = prune->options;
    const annal_value params[5] = {
        {.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)options->keep_n},
        {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(prune->cutoff)},
        {.kind = ANNAL_VALUE_REAL, .real = (double)options->before_us / 1e6},
        {.kind = ANNAL_VALUE_INTEGER, .integer = options->orphan_progressions ? 1 : 0},
        {.kind = ANNAL_VALUE_INTEGER, .integer = options->delete_journals ? 1 : 0}};
    const annal_sql_options asked = {.params = params, .param_count = 5};
    annal_status status =
        ask(prune,
            ANNAL_SLICE("SELECT name FROM pragma_table_list WHERE schema = 'state' AND name "
                        "IN ('progressions', 'team_messages')"),
            (annal_sql_options){0}, note_table, err);
    if (status >= 0)
        status = check_state(prune, err);
    if (status < 0)
        return status;
    if (!prune->has_state)
        return ask(prune, annal_slice_of(annal__sql_prune_core), asked, note_candidate, err);
    if (prune->has_teams)
        status = ask(prune, annal_slice_of(annal__sql_prune_linked), asked, note_linked, err);
    return status < 0 ? status
                      : ask(prune,
                            annal_slice_of(prune->has_teams ? annal__sql_prune_sessions_teams
                                                            : annal__sql_prune_sessions),
                            asked, note_candidate, err);
}

/* ---- The event ---- */

static annal_status append(struct prune *prune, annal_pruned *pruned, const char *progressions,
                           const char *messages, annal_error *err)
{
    annal_writer *writer = NULL;
    SCOPED_BUF data = {0};
    annal__buf_printf(&data, "{\"cutoff\":\"%s\",\"keep_n\":%" PRIu64, prune->cutoff,
                      prune->options->keep_n);
    annal_status status =
        prune->options->orphan_progressions
            ? annal__buf_printf(&data,
                                ",\"orphan_progressions\":true,\"keep_progressions\":%s,"
                                "\"keep_messages\":%s}",
                                progressions, messages)
            : annal__buf_printf(&data, ",\"messages\":%s}", messages);
    if (status < 0) {
        status =
            annal__fail(err, status, "cannot prune session '%.*s'", ANNAL_FMT(pruned->session));
        goto done;
    }
    status = annal_writer_open(annal__index_store(prune->index), pruned->session,
                               &(annal_writer_options){.wait_ms = prune->options->wait_ms}, &writer,
                               err);
    if (status < 0)
        goto done;
    annal__writer_spend_reserve(writer);
    const annal_draft draft = {.type = ANNAL_SLICE("session.pruned"),
                               .data = annal__buf_slice(&data)};
    status = annal_pack_append(prune->index, writer, &draft, 1, NULL, NULL, err);

done:
    annal_writer_close(writer);
    return status;
}

/*
 * Decide what to do if the event session.pruned could not be appended, for the reason in why. If
 * the disk is full, and the journal is to be deleted and not needed (rule 6), check the guard's
 * condition in the journal, and continue without the event. Otherwise return the status of the
 * failure.
 */
static annal_status do_without(const struct prune *prune, const annal_pruned *pruned,
                               annal_error *why)
{
    annal_session_info info;
    if (!annal__error_is_no_space(why) || !prune->options->delete_journals || pruned->needed > 0)
        return why->status;
    annal_status status =
        annal_session_info_get(annal__index_store(prune->index), pruned->session, &info, why);
    if (status == ANNAL_OK && info.last_ts_us >= prune->options->before_us)
        status = annal__fail(why, ANNAL_ERR_REFUSED, "the session has changed in the meantime");
    return status;
}

/* Prune an old session, and call fn. If the session must be kept (refused or busy), fn receives the
 * reason, and this is not a failure. */
static annal_status prune_one(struct prune *prune, const char *words[WORDS], annal_prune_fn fn,
                              void *arg, annal_error *err)
{
    annal_error why = {0};
    annal_pruned pruned = {.session = annal_slice_of(words[0]),
                           .branches = strtoull(words[1], NULL, 10),
                           .progressions = strtoull(words[2], NULL, 10),
                           .messages = strtoull(words[3], NULL, 10),
                           .needed = strtoull(words[6], NULL, 10),
                           .needed_by = annal_slice_of(words[7])};
    annal_status status = ANNAL_OK;
    if (!prune->options->dry_run)
        status = append(prune, &pruned, words[4], words[5], &why);
    if (status < 0)
        status = do_without(prune, &pruned, &why);
    if (status == ANNAL_ERR_REFUSED || status == ANNAL_ERR_BUSY) {
        pruned = (annal_pruned){.session = pruned.session, .kept = &why};
        status = ANNAL_OK;
    }
    if (status < 0)
        return annal__error_pass(err, status, &why);
    return (annal_status)fn(arg, &pruned);
}

annal_status annal_session_prune(annal_index *index, const annal_prune_options *options,
                                 annal_prune_fn fn, void *arg, annal_error *err)
{
    struct prune prune = {.index = index, .options = options};
    annal_time_format(options->before_us, prune.cutoff);
    annal_status status = choose(&prune, err);
    for (size_t at = 0; status == ANNAL_OK && at < prune.candidates.len;) {
        const char *words[WORDS];
        for (int i = 0; i < WORDS; i++) {
            words[i] = prune.candidates.ptr + at;
            at += strlen(words[i]) + 1;
        }
        status = prune_one(&prune, words, fn, arg, err);
    }
    for (size_t at = 0; status == ANNAL_OK && at < prune.linked.len;) {
        annal_error why = {0};
        annal_pruned linked = {.session = annal_slice_of(prune.linked.ptr + at), .kept = &why};
        at += linked.session.len + 1;
        linked.linked_by = annal_slice_of(prune.linked.ptr + at);
        at += linked.linked_by.len + 1;
        (void)annal__fail(&why, ANNAL_ERR_REFUSED, "messages of team '%.*s' refer to the session",
                          ANNAL_FMT(linked.linked_by));
        status = (annal_status)fn(arg, &linked);
    }
    annal__buf_done(&prune.candidates);
    annal__buf_done(&prune.linked);
    return status;
}
