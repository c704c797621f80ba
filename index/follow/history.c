/* SPDX-License-Identifier: Apache-2.0 */
#include "index/follow/history.h"

#include "index/db/db.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/lineage.h"

#include <stdlib.h>
#include <string.h>

struct reading {
    struct history *history;
    annal_slice session;
    annal__proved *proved;
    annal_error *err;
};

static int add_part(void *arg, const annal_lineage_part *part)
{
    const struct reading *reading = arg;
    struct history *history = reading->history;
    struct history_part *last = annal__array_add(&history->parts, &history->count, sizeof *last);
    if (last == NULL)
        return annal__fail(reading->err, ANNAL_ERR_NOMEM, "prepare a query: out of memory");
    *last = (struct history_part){.from_seq = (int64_t)part->from_seq,
                                  .to_seq =
                                      part->to_seq > INT64_MAX ? INT64_MAX : (int64_t)part->to_seq};
    memcpy(last->session, reading->session.ptr, reading->session.len);
    memcpy(last->journal, part->session.ptr, part->session.len);
    history->forked = history->forked || part->to_seq != UINT64_MAX;
    return 0;
}

static annal_status add_session(annal_store *store, struct reading *reading, annal_error *err)
{
    annal_error why = {0};
    reading->err = &why;
    annal_session_info info;
    annal_status status = annal_lineage_each(store, reading->session, add_part, reading, &why);
    /* Check the lineage: the hash of an event found through the index proves its bytes, but not
     * that the event belongs to this history. */
    if (status == ANNAL_OK)
        status = annal__lineage_check(store, reading->session, reading->proved, &why);
    /* a damaged journal of a session that is not a fork is one part of the history: its errors are
     * reported when it is read */
    bool plain = status == ANNAL_ERR_CORRUPT &&
                 annal_session_info_get(store, reading->session, &info, NULL) == ANNAL_OK &&
                 info.fork_session[0] == '\0';
    if (plain || status == ANNAL_ERR_NOTFOUND)
        return add_part(reading, &(annal_lineage_part){.session = reading->session,
                                                       .from_seq = 1,
                                                       .to_seq = UINT64_MAX});
    return annal__error_pass(err, status, &why);
}

static int compare_slices(const void *a, const void *b)
{
    const annal_slice *left = a, *right = b;
    /* the slices are names in the parts, each ended by a NUL */
    return strcmp(left->ptr, right->ptr);
}

/* List the journals, each once. The slices point into the parts, which must not be moved or changed
 * from now on. */
static annal_status list_journals(struct history *history, annal_error *err)
{
    annal_slice *journals = annal__zalloc(history->count * sizeof *journals);
    if (journals == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "prepare a query: out of memory");
    for (size_t i = 0; i < history->count; i++)
        journals[i] = annal_slice_of(history->parts[i].journal);
    qsort(journals, history->count, sizeof *journals, compare_slices);
    size_t kept = 1;
    for (size_t i = 1; i < history->count; i++) {
        if (compare_slices(&journals[i], &journals[kept - 1]) != 0)
            journals[kept++] = journals[i];
    }
    history->journals = journals;
    history->journal_count = kept;
    return ANNAL_OK;
}

annal_status annal__history_read(annal_store *store, const annal_slice *sessions, size_t count,
                                 struct history *out_history, annal_error *err)
{
    struct history history = {0};
    struct reading reading = {.history = &history,
                              .proved = count > 1 ? annal__lineage_proved_new() : NULL};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < count; i++) {
        reading.session = sessions[i];
        status = add_session(store, &reading, err);
    }
    annal__lineage_proved_free(reading.proved);
    if (status == ANNAL_OK && history.count > 0)
        status = list_journals(&history, err);
    if (status < 0) {
        annal__history_done(&history);
        return status;
    }
    *out_history = history;
    return ANNAL_OK;
}

/* Insert the parts of the history into the temporary table parts, once even if a session was given
 * twice. */
static annal_status insert_parts(const struct history *history, sqlite3 *db, annal_error *err)
{
    sqlite3_stmt *insert = NULL;
    annal_status status = annal__db_prepare(
        db, "INSERT OR IGNORE INTO temp.parts VALUES (?1, ?2, ?3, ?4)", &insert, err);
    for (size_t i = 0; status >= 0 && i < history->count; i++) {
        const struct history_part *part = &history->parts[i];
        annal__db_bind_text(insert, 1, annal_slice_of(part->session));
        sqlite3_bind_int64(insert, 2, part->from_seq);
        sqlite3_bind_int64(insert, 3, part->to_seq);
        annal__db_bind_text(insert, 4, annal_slice_of(part->journal));
        status = annal__db_run(insert, err);
    }
    sqlite3_finalize(insert);
    return status;
}

annal_status annal__history_put(const struct history *history, sqlite3 *db, annal_error *err)
{
    bool begins = sqlite3_get_autocommit(db) != 0;
    annal_status status = annal__db_begin(db, err);
    if (status >= 0)
        status = annal__db_exec(
            db,
            "CREATE TEMP TABLE parts (session_id TEXT NOT NULL, from_seq INTEGER NOT NULL, "
            "to_seq INTEGER NOT NULL, journal TEXT NOT NULL, PRIMARY KEY (session_id, from_seq)) "
            "WITHOUT ROWID",
            err);
    if (status >= 0)
        status = insert_parts(history, db, err);
    return status < 0 || !begins ? status : annal__db_exec(db, "COMMIT", err);
}

void annal__history_done(struct history *history)
{
    annal__free(history->parts);
    annal__free(history->journals);
    *history = (struct history){0};
}
