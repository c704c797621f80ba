#include "index/history.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <string.h>

/* Of forks that are asked for together: SQLite takes 500 SELECTs in one, and the rest doubles them. */
#define PARTS_MAX 200

struct reading {
    struct history *history;
    annal_slice session;
    annal_error *err;
};

static int add_part(void *arg, const annal_lineage_part *part)
{
    const struct reading *reading = arg;
    struct history *history = reading->history;
    if (history->count == history->room) {
        size_t room = history->room == 0 ? 8 : history->room * 2;
        struct history_part *bigger = annal__realloc_array(history->parts, room, sizeof *bigger);
        if (bigger == NULL)
            return annal__fail(reading->err, ANNAL_ERR_NOMEM, "a query");
        history->parts = bigger;
        history->room = room;
    }
    struct history_part *last = &history->parts[history->count++];
    *last = (struct history_part){.to_seq =
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
    annal_status status = annal_session_lineage(store, reading->session, add_part, reading, &why);
    /* What is wrong with a journal that is no fork is for others to say. */
    bool plain = status == ANNAL_ERR_CORRUPT &&
                 annal_session_info_get(store, reading->session, &info, NULL) == ANNAL_OK &&
                 info.fork_session[0] == '\0';
    if (plain || status == ANNAL_ERR_NOTFOUND)
        return add_part(reading, &(annal_lineage_part){.session = reading->session,
                                                       .from_seq = 1,
                                                       .to_seq = UINT64_MAX});
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

/* The slices point into the parts, which stay where they are from now on. */
static annal_status list_journals(struct history *history, annal_error *err)
{
    history->journals = annal__zalloc(history->count * sizeof *history->journals);
    if (history->journals == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "a query");
    for (size_t i = 0; i < history->count; i++) {
        annal_slice journal = annal_slice_of(history->parts[i].journal);
        size_t n = 0;
        while (n < history->journal_count &&
               (history->journals[n].len != journal.len ||
                memcmp(history->journals[n].ptr, journal.ptr, journal.len) != 0))
            n++;
        history->journals[n] = journal;
        history->journal_count += n == history->journal_count;
    }
    return ANNAL_OK;
}

annal_status annal__history_read(annal_store *store, const annal_slice *sessions, size_t count,
                                 struct history *out_history, annal_error *err)
{
    struct history history = {0};
    struct reading reading = {.history = &history};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < count; i++) {
        reading.session = sessions[i];
        status = add_session(store, &reading, err);
    }
    if (status == ANNAL_OK && history.forked && history.count > PARTS_MAX)
        status = annal__fail(err, ANNAL_ERR_LIMIT,
                             "a query over forks reads at most %d journals, and this one needs %zu",
                             PARTS_MAX, history.count);
    if (status == ANNAL_OK && history.count > 0)
        status = list_journals(&history, err);
    if (status < 0) {
        annal__history_done(&history);
        return status;
    }
    *out_history = history;
    return ANNAL_OK;
}

void annal__history_done(struct history *history)
{
    annal__free(history->parts);
    annal__free(history->journals);
    *history = (struct history){0};
}
