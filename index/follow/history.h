/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journals that contain the histories of some sessions: their own journals and, for forks, the
 * ancestors' journals up to the fork points.
 */
#pragma once

#include <annal/journal.h>

#include <sqlite3.h>

struct history_part {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* session whose history contains this part */
    char journal[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* session whose journal contains this part */
    int64_t from_seq, to_seq;
};

struct history {
    struct history_part *parts;
    size_t count;
    /* whether a session is a fork; if not, each part is the complete journal of its session */
    bool forked;
    /* the sessions in parts[].journal, each once; NULL (count 0): all journals */
    annal_slice *journals;
    size_t journal_count;
};

/*
 * Read the history from the headers of the journals. For a session without a journal, a part is
 * added, too. ANNAL_ERR_CORRUPT if an ancestor's journal is missing or was replaced.
 */
annal_status annal__history_read(annal_store *store, const annal_slice *sessions, size_t count,
                                 struct history *out_history, annal_error *err);

/*
 * Write the parts into a temporary table of this connection, temp.parts (session_id, from_seq,
 * to_seq, journal), so that the text of a SELECT does not grow with the number of parts.
 */
annal_status annal__history_put(const struct history *history, sqlite3 *db, annal_error *err);

void annal__history_done(struct history *history);
