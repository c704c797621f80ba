/* SPDX-License-Identifier: Apache-2.0 */
/* The packs of a guarded append: which ones take part, and the values that they fill in. */
#include "index/guard/guard.h"
#include "index/pack/applier.h"

#include "journal/base/error.h"

bool annal__guard_is_of_interest(const struct pack_section *section, bool artifacts)
{
    if (artifacts)
        return section->kind == PACK_ARTIFACT;
    return section->kind == PACK_FILL || (section->kind == PACK_ON && section->guard != NULL);
}

bool annal__guard_cares(const struct guard_call *call, const annal_pack *pack, bool artifacts)
{
    if (pack == NULL || !annal__pack_feeds(pack, call->session, NULL))
        return false;
    if (call->options != NULL && call->options->reports && pack == call->index->core)
        return false;
    for (size_t i = 0; i < pack->section_count; i++) {
        if (!annal__guard_is_of_interest(&pack->sections[i], artifacts))
            continue;
        for (size_t j = 0; j < call->count; j++)
            if (annal__pack_section_takes(&pack->sections[i], call->given[j].type))
                return true;
    }
    return false;
}

struct follower *annal__guard_follower(const struct guard_call *call,
                                       const struct guard_database *database, size_t i)
{
    if (database->packs == NULL)
        return i == 0 ? &call->index->follower : NULL;
    return i < database->packs->fill_count ? &database->packs->fills[i].follower : NULL;
}

struct follower *annal__guard_next(const struct guard_call *call, struct guard_walk *walk)
{
    while (walk->database < call->database_count) {
        struct follower *follower =
            annal__guard_follower(call, &call->databases[walk->database], walk->follower++);
        if (follower == NULL)
            *walk = (struct guard_walk){.database = walk->database + 1};
        else if (follower->applier != NULL && annal__follower_feeds(follower, call->session))
            return follower;
    }
    return NULL;
}

annal_status annal__guard_fill(struct guard_call *call, size_t draft, const annal_event *event,
                               const annal_event *stored, annal_error *err)
{
    struct buf *data = &call->filled[draft];
    struct follower *follower;
    annal_status status = ANNAL_OK;
    annal__buf_clear(data);
    if (annal__buf_append_slice(data, call->plain[draft]) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "fill the data of an event: out of memory");
    for (struct guard_walk walk = {0};
         status >= 0 && (follower = annal__guard_next(call, &walk)) != NULL;)
        status = annal__applier_fill(follower->applier, call->session, event, stored, data, err);
    return status;
}
