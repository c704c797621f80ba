/*
 * The keeper's chore: take snapshots of the sessions that this store object appends to.
 *
 * For each such session it remembers where the newest snapshot stands and since when events wait
 * for one; a session whose journal did not grow costs nothing. It works for a short while at a
 * time, only tries for the index, and comes again: appends, checkpoints and the index go on in
 * between. When nobody appends and much is to be folded, it works for longer, and it passes over
 * places on the way (policy.h), so that soon after a burst the newest state is near. However much
 * was appended meanwhile, a round looks at the journal's end as it is then: nothing is queued.
 */
#include "snapshot/take.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"

#include <stdlib.h>
#include <string.h>

#define PERIOD_MS  1000
#define BUDGET_US  50000
#define HURRY_US   200000 /* far behind, and nobody appends */
#define CLOSING_US 500000

struct entry {
    char *session;
    struct snapshot_mark last; /* the newest snapshot, or where the last attempt failed */
    uint64_t stride;           /* see policy.h */
    uint64_t patience;         /* see take.h */
    struct snapshot_mark end;  /* of the journal, when last looked at */
    bool known;                /* last has been looked up */
    bool changed;
    int64_t waiting_us; /* monotonic: since when events stand behind last; 0: none do */
};

struct annal_snapshots {
    annal_index *index;
    annal_store *store;
    annal_snapshot_policy policy;
    uint64_t since; /* see annal_store_changed() */
    _Atomic int64_t budget_us;
    struct entry *entries; /* sorted by session */
    size_t count;
    size_t cap;
    size_t next;         /* the entry to look at next, so that all get their turn */
    struct taker *taker; /* at work on a session, between two rounds too */
};

static int64_t now_us(void)
{
    return annal__system_clock.monotonic_us(annal__system_clock.arg);
}

/* ---- Which sessions ---- */

static size_t find(const annal_snapshots *snapshots, const char *session)
{
    size_t low = 0, high = snapshots->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(snapshots->entries[middle].session, session) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *add(annal_snapshots *snapshots, size_t at, const char *session)
{
    if (snapshots->count == snapshots->cap) {
        size_t cap = snapshots->cap == 0 ? 64 : 2 * snapshots->cap;
        struct entry *grown = annal__realloc_array(snapshots->entries, cap, sizeof *grown);
        if (grown == NULL)
            return NULL;
        snapshots->entries = grown;
        snapshots->cap = cap;
    }
    char *copy = annal__strndup(session, strlen(session));
    if (copy == NULL)
        return NULL;
    struct entry *entry = &snapshots->entries[at];
    memmove(entry + 1, entry, (snapshots->count - at) * sizeof *entry);
    *entry = (struct entry){.session = copy};
    snapshots->count++;
    return entry;
}

/* An annal_session_fn. */
static int note_changed(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    annal_snapshots *snapshots = arg;
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    memcpy(id, session.ptr, session.len);
    size_t at = find(snapshots, id);
    struct entry *entry = at < snapshots->count ? &snapshots->entries[at] : NULL;
    if (entry == NULL || strcmp(entry->session, id) != 0)
        entry = add(snapshots, at, id);
    if (entry == NULL)
        return ANNAL_ERR_NOMEM;
    entry->changed = true;
    return 0;
}

/* ---- Is one due ---- */

/*
 * Where the newest snapshot says that it stands; whether it counts is seen when the next one is
 * taken.
 */
static annal_status look_up_last(annal_snapshots *snapshots, struct entry *entry, annal_error *err)
{
    const struct shelf shelf = {.index = snapshots->index,
                                .store = snapshots->store,
                                .session = annal_slice_of(entry->session)};
    struct shelf_row row = {0};
    annal_status status = annal__shelf_row(&shelf, UINT64_MAX, &row, err);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return status;
    entry->known = true;
    entry->last = (struct snapshot_mark){0};
    entry->stride = entry->patience = 1;
    if (status >= 0 && row.problem == NULL) {
        entry->last = (struct snapshot_mark){row.header.seq, row.header.offset};
        entry->stride = row.header.stride == 0 ? 1 : row.header.stride;
    }
    annal__shelf_row_done(&row);
    return ANNAL_OK;
}

static annal_status look_at(annal_snapshots *snapshots, struct entry *entry, annal_error *err)
{
    annal_session_info info;
    annal_status status =
        annal_session_info_get(snapshots->store, annal_slice_of(entry->session), &info, err);
    if (status == ANNAL_OK && !entry->known)
        status = look_up_last(snapshots, entry, err);
    if (status == ANNAL_ERR_NOTFOUND) { /* the session was deleted */
        const struct shelf shelf = {.index = snapshots->index,
                                    .store = snapshots->store,
                                    .session = annal_slice_of(entry->session)};
        annal__shelf_sweep(&shelf);
        *entry = (struct entry){.session = entry->session};
        return ANNAL_OK;
    }
    if (status < 0)
        return status;
    entry->changed = false;
    entry->end = (struct snapshot_mark){info.last_seq, info.end_offset};
    if (entry->end.offset < entry->last.offset || entry->end.seq < entry->last.seq)
        entry->last = (struct snapshot_mark){0}; /* another journal now */
    if (entry->end.seq > entry->last.seq && entry->waiting_us == 0)
        entry->waiting_us = now_us();
    return ANNAL_OK;
}

/* ---- At work ---- */

static annal_status begin(annal_snapshots *snapshots, const struct entry *entry, bool by_time,
                          annal_error *err)
{
    struct taker *taker = annal__zalloc(sizeof *taker);
    if (taker == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "snapshots of session '%s'", entry->session);
    snapshots->taker = taker;
    annal_status status = annal__taker_init(taker, snapshots->index, annal_slice_of(entry->session),
                                            &snapshots->policy, by_time, 0, err);
    if (status >= 0) {
        taker->hurries = true;
        taker->patience = entry->patience;
        /* What was refused there is not tried again from there on. */
        if (entry->patience > 1 && entry->last.seq > taker->due.seq)
            taker->due = entry->last;
    }
    return status;
}

static void put_away(annal_snapshots *snapshots)
{
    if (snapshots->taker != NULL)
        annal__taker_done(snapshots->taker);
    annal__free(snapshots->taker);
    snapshots->taker = NULL;
}

/*
 * The taker has ended. If it failed, or what it took does not count, the session waits for as much
 * again before the next attempt.
 */
static void finish(annal_snapshots *snapshots, annal_status status)
{
    const struct taker *taker = snapshots->taker;
    size_t at = find(snapshots, taker->id);
    struct entry *entry = at < snapshots->count ? &snapshots->entries[at] : NULL;
    if (entry != NULL && strcmp(entry->session, taker->id) == 0) {
        entry->last = status < 0 ? entry->end : taker->due;
        entry->stride = taker->stride == 0 ? 1 : taker->stride;
        entry->patience = taker->patience == 0 ? 1 : taker->patience;
        entry->waiting_us = entry->end.seq > entry->last.seq ? now_us() : 0;
    }
    put_away(snapshots);
}

/* ANNAL_END: the time is over, or somebody else writes the index. */
static annal_status work(annal_snapshots *snapshots, annal_status status, int64_t stop_us,
                         annal_error *err)
{
    while (status == ANNAL_OK && now_us() < stop_us)
        status = annal__taker_step(snapshots->taker, err);
    if (status == ANNAL_OK)
        return ANNAL_END;
    if (status == ANNAL_ERR_BUSY) {
        if (snapshots->taker->cursor == NULL) /* it did not get so far as to begin */
            put_away(snapshots);
        return ANNAL_END;
    }
    if (snapshots->taker != NULL)
        finish(snapshots, status);
    return status < 0 ? status : ANNAL_OK;
}

static annal_status serve(annal_snapshots *snapshots, struct entry *entry, int64_t stop_us,
                          annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (entry->changed)
        status = look_at(snapshots, entry, err);
    if (status < 0 || entry->waiting_us == 0)
        return status;
    uint64_t waited_ms = (uint64_t)(now_us() - entry->waiting_us) / 1000;
    const annal_snapshot_policy policy =
        annal__snapshot_stretch(&snapshots->policy, entry->stride * entry->patience);
    bool by_time = annal__snapshot_due_by_time(&policy, entry->last, entry->end, waited_ms);
    if (!by_time && !annal__snapshot_due(&policy, entry->last, entry->end))
        return ANNAL_OK;
    status = begin(snapshots, entry, by_time, err);
    return work(snapshots, status, stop_us, err);
}

static bool is_work_left(const annal_snapshots *snapshots)
{
    bool left = snapshots->taker != NULL;
    for (size_t i = 0; !left && i < snapshots->count; i++)
        left = snapshots->entries[i].changed || snapshots->entries[i].waiting_us != 0;
    return left;
}

static bool is_far_behind(const annal_snapshots *snapshots)
{
    const struct taker *taker = snapshots->taker;
    return taker != NULL && annal__snapshot_far_behind(&snapshots->policy, taker->here, taker->end);
}

static annal_status run_chore(void *arg, annal_error *err)
{
    annal_snapshots *snapshots = arg;
    uint64_t since = snapshots->since;
    snapshots->since = annal_store_changed(snapshots->store, since, note_changed, snapshots);
    int64_t budget_us = snapshots->budget_us;
    if (budget_us < HURRY_US && snapshots->since == since && is_far_behind(snapshots))
        budget_us = HURRY_US;
    int64_t stop_us = now_us() + budget_us;
    annal_status status = ANNAL_OK;
    if (snapshots->taker != NULL)
        status = work(snapshots, ANNAL_OK, stop_us, err);
    for (size_t i = 0; status == ANNAL_OK && i < snapshots->count && now_us() < stop_us; i++) {
        if (snapshots->next >= snapshots->count)
            snapshots->next = 0;
        status = serve(snapshots, &snapshots->entries[snapshots->next++], stop_us, err);
    }
    return status < 0 ? status : is_work_left(snapshots) ? ANNAL_END : ANNAL_OK;
}

annal_status annal_snapshots_open(annal_index *index, const annal_snapshot_policy *policy,
                                  annal_snapshots **out_snapshots, annal_error *err)
{
    annal_store *store = annal_index_store(index);
    if (annal_store_is_read_only(store))
        return annal__fail(err, ANNAL_ERR_IO,
                           "take snapshots in store %s: it is open for reading only",
                           annal_store_path(store));
    annal_snapshots *snapshots = annal__zalloc(sizeof *snapshots);
    if (snapshots == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "take snapshots in store %s",
                           annal_store_path(store));
    *snapshots = (annal_snapshots){.index = index,
                                   .store = store,
                                   .policy = annal__snapshot_policy(policy),
                                   .budget_us = BUDGET_US};
    annal_status status = annal_chore_add(
        store,
        &(annal_chore){
            .name = "take snapshots", .period_ms = PERIOD_MS, .run = run_chore, .arg = snapshots},
        err);
    if (status < 0) {
        annal__free(snapshots);
        return status;
    }
    *out_snapshots = snapshots;
    return ANNAL_OK;
}

void annal_snapshots_close(annal_snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    snapshots->budget_us = CLOSING_US;
    annal_chore_remove(snapshots->store, snapshots);
    put_away(snapshots);
    for (size_t i = 0; i < snapshots->count; i++)
        annal__free(snapshots->entries[i].session);
    annal__free(snapshots->entries);
    annal__free(snapshots);
}
