/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/places.h"

#include "journal/base/alloc.h"

static void put(struct places *places, struct place place)
{
    size_t at = place.hash & (places->count - 1);
    while (places->all[at].index != 0)
        at = (at + 1) & (places->count - 1);
    places->all[at] = place;
}

bool places_add(struct places *places, uint64_t hash, size_t index)
{
    /* keep at least half of the places empty, so that searches are short */
    if ((places->used + 1) * 2 > places->count) {
        struct places more = {.count = places->count == 0 ? 16 : places->count * 2};
        more.all = annal__zalloc(more.count * sizeof *more.all);
        if (more.all == NULL)
            return false;
        for (size_t i = 0; i < places->count; i++)
            if (places->all[i].index != 0)
                put(&more, places->all[i]);
        more.used = places->used;
        annal__free(places->all);
        *places = more;
    }
    put(places, (struct place){hash, index + 1});
    places->used++;
    return true;
}

size_t places_next(const struct places *places, uint64_t hash, size_t *at)
{
    while (places->count > 0) {
        const struct place *place = &places->all[(hash + (*at)++) & (places->count - 1)];
        if (place->index == 0)
            break;
        if (place->hash == hash)
            return place->index - 1;
    }
    return SIZE_MAX;
}

void places_set(struct places *places, uint64_t hash, size_t index)
{
    for (size_t at = 0; places->count > 0; at++) {
        struct place *place = &places->all[(hash + at) & (places->count - 1)];
        if (place->hash == hash && place->index != 0)
            place->index = index + 1;
        if (place->index == 0 || place->hash == hash)
            break;
    }
}

void places_done(struct places *places)
{
    annal__free(places->all);
    *places = (struct places){0};
}
