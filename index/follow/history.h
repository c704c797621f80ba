/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journals that contain the histories of some sessions: their own journals and, for forks, the
 * ancestors' journals up to the fork points.
 */
#ifndef INDEX_FOLLOW_HISTORY_H
#define INDEX_FOLLOW_HISTORY_H

#include <annal/journal.h>

#include <sqlite3.h>

struct history_part {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* session whose history this is */
    char journal[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* session whose journal contains it */
    int64_t from_seq, to_seq;
};

struct history {
    struct history_part *parts;
    size_t count;
    bool forked;           /* whether any session is a fork; if none is, the parts add nothing */
    annal_slice *journals; /* each journal once; NULL and 0: all */
    size_t journal_count;
};

/*
 * Read the history from the headers of the journals. A session without a journal is a part, too.
 * ANNAL_ERR_CORRUPT if an ancestor's journal is missing or was replaced.
 */
annal_status annal__history_read(annal_store *store, const annal_slice *sessions, size_t count,
                                 struct history *out_history, annal_error *err);

/*
 * Write the parts into a table of this connection, temp.parts (session_id, from_seq, to_seq,
 * journal), so that the text of a SELECT does not grow with their number.
 */
annal_status annal__history_put(const struct history *history, sqlite3 *db, annal_error *err);

void annal__history_done(struct history *history);

#endif
