/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The background task of the keeper, which indexes what this process appends in sessions.db, the
 * databases of packs and search.db.
 *
 * (1) A round never waits for a lock, and stops after CHORE_MS, or when the keeper is needed for a
 *     batch or a checkpoint. It returns ANNAL_END if not everything is indexed; the next round
 *     continues.
 * (2) A pack that the task has not caught up before is first caught up on all journals, in several
 *     rounds, so that the tables of a newly enabled pack are filled. After that the task reads only
 *     sessions that changed.
 * (3) Databases that users write are skipped: catching up on such a database appends the users'
 *     rows to a journal, and a task must not append, because its keeper serves appends. Instead, an
 *     index that follows turns the users' rows into events when it is opened and closed, and
 *     annal_pack_append() does so before each append.
 * (4) search.db is last, and is skipped until a user has searched once.
 */
#include "index/follow/plan.h"
#include "index/index.h"
#include "index/sys/open.h"
#include "journal/base/error.h"
#include "journal/sys/keeper_task.h"
#include "journal/sys/seam.h"

#define CHORE_MS 200

/* The data of one round of the task. */
struct round {
    annal_index *index;
    struct plan changed;
    annal_status status; /* result of listing the changed sessions */
    int64_t stop_us;
    bool left; /* whether some changed sessions were not indexed in this round */
};

static int note_changed(void *arg, annal_slice session, uint64_t bytes)
{
    struct round *round = arg;
    round->status =
        annal__plan_add(&round->changed, session, (annal_position){.seq = 1}, bytes, false);
    return round->status;
}

static annal_status work_off(struct round *round, struct follower *follower, struct plan *plan,
                             annal_error *err)
{
    annal_index_progress progress = {0};
    annal_status status = ANNAL_OK;
    bool over = annal__deadline_passed(round->stop_us);
    plan->next = 0;
    plan->in_task = true;
    while (status >= 0 && plan->next < plan->count && !over) {
        status = annal__indexer_batch(follower, plan, 0, round->stop_us, false, &progress, err);
        over =
            annal__deadline_passed(round->stop_us) || annal__keeper_is_needed(round->index->store);
    }
    round->left = round->left || plan->next < plan->count || follower->was_emptied;
    return status;
}

/* Catch up a pack on all journals (rule 2). fill->met becomes true when this is complete. */
static annal_status meet(struct round *round, struct pack_fill *fill, annal_error *err)
{
    struct plan all = {0};
    annal_status status = annal__plan_make(&fill->follower, NULL, 0, NULL, 0, &all, err);
    if (status >= 0)
        status = work_off(round, &fill->follower, &all, err);
    fill->met = status >= 0 && all.next == all.count && !fill->follower.was_emptied;
    if (!fill->met)
        round->left = true;
    fill->follower.was_emptied = false;
    annal__plan_done(&all);
    return status;
}

/* Index the changed sessions that the follower reads. */
static annal_status follow_changed(struct round *round, struct follower *follower, annal_error *err)
{
    struct plan fed = {0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < round->changed.count; i++) {
        const struct plan_entry *entry = &round->changed.entries[i];
        annal_slice session = annal__plan_session(&round->changed, entry);
        if (annal__follower_feeds(follower, session))
            status = annal__plan_add(&fed, session, entry->from, entry->target, false);
    }
    if (status >= 0)
        status = work_off(round, follower, &fed, err);
    annal__plan_done(&fed);
    return status;
}

/* Index the changed sessions in a database of packs. A failure is not reported here, where the
 * report would repeat every 100 ms: callers that use the pack receive the failure. */
static void follow_database(struct round *round, struct pack_database *database)
{
    for (size_t i = 0; !database->derived.rollback && i < database->fill_count; i++) {
        struct pack_fill *fill = &database->fills[i];
        annal_error why = {0};
        annal_status status = ANNAL_OK;
        if (fill->left_out)
            continue;
        if (database->star == NULL && !fill->met)
            status = meet(round, fill, &why);
        else
            status = follow_changed(round, &fill->follower, &why);
        /* the next round catches up on all sessions again */
        if (status < 0 || fill->follower.was_emptied)
            fill->met = false;
        fill->follower.was_emptied = false;
        round->left = round->left || status == ANNAL_ERR_BUSY;
    }
}

static annal_status follow_packs(struct round *round, annal_error *err)
{
    annal_index *index = round->index;
    struct pack_set *set = NULL;
    annal_status status = annal__packs_get(index, &set, err);
    struct pack_database *database = status < 0 ? NULL : annal__packs_next(index, set, NULL);
    for (; database != NULL; database = annal__packs_next(index, set, database))
        follow_database(round, database);
    for (size_t i = 0; status >= 0 && i < set->slot_count; i++) {
        struct pack_slot *slot = &set->slots[i];
        if (slot->pack == NULL || !annal__packs_slot_has_star(slot))
            continue;
        for (size_t j = 0; status >= 0 && j < round->changed.count; j++) {
            annal_slice session = annal__plan_session(&round->changed, &round->changed.entries[j]);
            status = annal__packs_database(index, set, slot, session, &database, err);
            if (status >= 0 && database != NULL && database->fills[0].slot == slot)
                follow_database(round, database);
        }
    }
    annal__packs_put(index, set);
    return status;
}

/* Index the changed sessions in search.db. A failure is not reported here, because the callers that
 * search receive it. */
static void follow_search(struct round *round)
{
    struct search *search = &round->index->search;
    if (round->changed.count == 0 || !annal__search_is_kept(search))
        return;
    if (follow_changed(round, &search->follower, NULL) == ANNAL_ERR_BUSY)
        round->left = true;
}

bool annal__index_lags(const annal_index *index)
{
    return index->lags;
}

annal_status annal__index_follow(void *arg, annal_error *err)
{
    annal_index *index = arg;
    struct round round = {.index = index, .stop_us = annal__deadline_after(CHORE_MS)};
    uint64_t now =
        annal__session_list_changed(index->store, index->changed_since, note_changed, &round);
    annal_status status = round.status;
    if (status < 0)
        annal__fail(err, status, "cannot list the sessions to index");
    if (status >= 0)
        status = work_off(&round, &index->follower, &round.changed, err);
    if (status >= 0)
        status = follow_packs(&round, err);
    if (status >= 0)
        follow_search(&round);
    if (status >= 0 && !round.left)
        index->changed_since = now;
    else if (status >= 0 || status == ANNAL_ERR_BUSY)
        status = ANNAL_END; /* not everything is indexed */
    index->lags = status == ANNAL_END;
    annal__plan_done(&round.changed);
    return status;
}
