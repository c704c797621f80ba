/* SPDX-License-Identifier: Apache-2.0 */
/* The history of each session in a lake, as the entries of the manifests give it: the header of its
 * journal, and the files that contain its events. */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "tools/cli/must.h"

#include <inttypes.h>
#include <search.h>
#include <string.h>

/* ---- The header of a journal ---- */

void lake_print_header(const annal_session_info *info, struct buf *out)
{
    must_printf(out, ",\"file\":\"%s\",\"created_us\":%" PRId64, info->file, info->created_us);
    if (info->replaces[0] != '\0')
        must_printf(out, ",\"replaces\":\"%s\"", info->replaces);
    if (info->fork_session[0] != '\0')
        must_printf(out,
                    ",\"parent\":\"%s\",\"forked_at\":%" PRIu64 ",\"fork_h\":\"%016" PRIx64 "\"",
                    info->fork_session, info->fork_seq, info->fork_h);
}

/* Read what lake_print_header() printed. Returns false if the line does not continue with it. */
bool lake_take_header(struct outside *line, annal_session_info *out)
{
    if (!outside_has(line, ",\"file\":\""))
        return false;
    outside_hex(line, sizeof out->file - 1, out->file);
    outside_skip(line, "\",\"created_us\":");
    out->created_us = outside_time(line);
    if (outside_has(line, ",\"replaces\":\"")) {
        outside_hex(line, sizeof out->replaces - 1, out->replaces);
        outside_skip(line, "\"");
    }
    if (outside_has(line, ",\"parent\":\"")) {
        outside_session(line, out->fork_session);
        outside_skip(line, "\",\"forked_at\":");
        out->fork_seq = outside_number(line, OUTSIDE_SEQ_MAX);
        outside_skip(line, ",\"fork_h\":\"");
        out->fork_h = outside_hash(line);
        outside_skip(line, "\"");
    }
    out->first_seq = out->fork_seq + 1;
    return true;
}

/* ---- Histories: each session with the files that contain its events ---- */

static int compare_histories(const void *a, const void *b)
{
    return strcmp(((const struct lake_history *)a)->session,
                  ((const struct lake_history *)b)->session);
}

struct lake_history *lake_find_history(const struct ship_target *lake, const char *session)
{
    struct lake_history **found =
        tfind(&(struct lake_history){.session = (char *)(uintptr_t)session}, &lake->histories,
              compare_histories);
    return found != NULL ? *found : NULL;
}

static void free_history(void *arg)
{
    struct lake_history *history = arg;
    annal__free(history->session);
    annal__free(history->files);
    annal__free(history);
}

void lake_forget_histories(struct ship_target *lake)
{
    tdestroy(lake->histories, free_history);
    lake->histories = NULL;
    lake->has_histories = false;
}

static struct lake_history *add_history(struct ship_target *lake, const char *session)
{
    struct lake_history *history = must_zalloc(sizeof *history);
    history->session = must_strndup(session, strlen(session));
    must_true(tsearch(history, &lake->histories, compare_histories) != NULL);
    return history;
}

void lake_note_piece(struct ship_target *lake, const struct lake_piece *piece,
                     struct lake_file *file)
{
    struct lake_history *history = lake_find_history(lake, piece->session);
    if (history == NULL)
        history = add_history(lake, piece->session);
    struct lake_file **item = must_array_add(&history->files, &history->count, sizeof *item);
    *item = file;
    if (piece->has_header)
        history->info = piece->info;
}
