/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the session that owns a record, to recognize copies of the record in other sessions.
 *
 * (1) The first session that is imported with a record owns it. The journal of this session
 *     contains the record's event, and the pack core keeps source.origin of this event in
 *     record_origins.
 * (2) The records of this run are kept in memory, because the index is updated later. A record is
 *     represented by a hash of 64 bits.
 * (3) The index is caught up once in a run, and only if an importer asks for a record. If the
 *     store had no session at that time, the index is not read at all, because this run imported
 *     all records.
 * (4) If a run has more than RECORDS_MAX records, their events are synced, and they are freed and
 *     found in the index.
 * (5) Thousands of texts may belong to the same session. Its events are read once in a run, not
 *     for each text.
 * (6) A part of a session, such as a sub-agent, has an id that begins with the id of the session
 *     and a dot. If a part owns a record that the session itself has, the session owns it from the
 *     next pause on: until then each line of the record must find the part, and take the record
 *     from it. Other sessions find the session. The part, read again, finds itself.
 */
#include "tools/import/owners.h"

#include "index/sys/record_owner.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"
#include "tools/cli/places.h"

#include <pthread.h>
#include <string.h>

#define RECORDS_MAX ((size_t)1 << 18)

/* seeds of the hashes, so that a record, a name and an event with the same text have different
 * hashes */
enum { OF_RECORD, OF_NAME, OF_EVENT };

struct owners {
    pthread_mutex_t lock; /* guards records and names */
    annal_store *store;
    annal_index *index;
    /* query of the records in the store's index; NULL until the first query and after
     * owners_pause() */
    annal__records *known;
    bool caught_up;
    /* whether the store had no session when the import began, so that no record can be in it */
    bool alone;
    bool failed;
    annal_error err;
    /* hash table of records; its entries are indexes of names, the sessions that own the records */
    struct places records;
    /* as `records`, for the records that sessions took from their parts (rule 6) */
    struct places taken;
    struct places by_name;
    char **names;
    size_t name_count;
    size_t last; /* index in names of the session that was looked up last */

    struct places events; /* hashes of the ids of the events of session `read`, up to read_seq */
    char read[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t read_seq;
    int64_t read_us;
};

struct owners *owners_new(annal_store *store, annal_index *index)
{
    struct owners *owners = annal__zalloc(sizeof *owners);
    if (owners != NULL)
        *owners =
            (struct owners){.lock = PTHREAD_MUTEX_INITIALIZER, .store = store, .index = index};
    return owners;
}

static int note_session(void *arg, annal_slice session, uint64_t bytes)
{
    (void)session;
    (void)bytes;
    *(bool *)arg = false;
    return 1;
}

static annal_status open_records(struct owners *owners)
{
    annal_status status = ANNAL_OK;
    if (!owners->caught_up && owners->store != NULL) {
        owners->alone = true;
        status = annal_session_each(owners->store, note_session, &owners->alone, &owners->err);
    }
    if (!owners->caught_up && status >= 0 && !owners->alone)
        status = annal_index_catch_up(owners->index, (annal_slice){0}, NULL, &owners->err);
    owners->caught_up = true;
    return status < 0 || owners->alone
               ? status
               : annal__record_owner_open(owners->index, &owners->known, &owners->err);
}

/* Free the records of this run; the index is queried instead. */
static void forget_records(struct owners *owners)
{
    places_done(&owners->records);
    places_done(&owners->by_name);
    for (size_t i = 0; i < owners->name_count; i++)
        annal__free(owners->names[i]);
    annal__free(owners->names);
    owners->names = NULL;
    owners->name_count = 0;
    owners->alone = false;
    const annal_catch_up_options all = {.timeout_ms = ANNAL_NO_TIMEOUT};
    if ((owners->store != NULL && annal_store_sync(owners->store, &owners->err) < 0) ||
        annal_index_catch_up(owners->index, (annal_slice){0}, &all, &owners->err) < 0)
        owners->failed = true;
}

/* Return the owner of a record from the index; empty: no session of the store owns it. */
static annal_slice find_in_store(struct owners *owners, annal_slice origin, annal_slice session)
{
    annal_slice found = {0};
    if (owners->failed || owners->alone)
        return found;
    annal_status status = owners->known == NULL ? open_records(owners) : ANNAL_OK;
    if (status >= 0 && !owners->alone)
        status = annal__record_owner_find(owners->known, origin, session, &found, &owners->err);
    owners->failed = status < 0;
    return found;
}

/* Return the index of a session id in names, and add it if it is missing. SIZE_MAX: out of memory,
 * or too long. */
static size_t name_of(struct owners *owners, annal_slice session)
{
    size_t at = 0, index = owners->last;
    if (index < owners->name_count && annal__slice_is(session, owners->names[index]))
        return index;
    uint64_t hash = annal__hash(session.ptr, session.len, OF_NAME);
    while ((index = places_next(&owners->by_name, hash, &at)) != SIZE_MAX)
        if (annal__slice_is(session, owners->names[index]))
            return owners->last = index;
    if (session.len > ANNAL_SESSION_ID_BYTES_MAX)
        return SIZE_MAX;
    char *own = annal__strndup(session.ptr, session.len);
    char **name =
        own == NULL ? NULL : annal__array_add(&owners->names, &owners->name_count, sizeof *name);
    if (name == NULL) {
        annal__free(own);
        return SIZE_MAX;
    }
    *name = own;
    if (!places_add(&owners->by_name, hash, owners->name_count - 1))
        return SIZE_MAX;
    return owners->last = owners->name_count - 1;
}

static bool is_part(annal_slice part, annal_slice session)
{
    return session.len > 0 && part.len > session.len && part.ptr[session.len] == '.' &&
           memcmp(part.ptr, session.ptr, session.len) == 0;
}

/* Record that the session takes a record, given by its hash, from its part (rule 6). */
static void take(struct owners *owners, uint64_t hash, annal_slice session)
{
    size_t name = name_of(owners, session);
    if (name != SIZE_MAX && places_next(&owners->taken, hash, &(size_t){0}) == SIZE_MAX)
        (void)!places_add(&owners->taken, hash, name);
}

static void settle_taken(struct owners *owners)
{
    for (size_t i = 0; i < owners->taken.count; i++)
        if (owners->taken.all[i].index != 0)
            places_set(&owners->records, owners->taken.all[i].hash, owners->taken.all[i].index - 1);
    places_done(&owners->taken);
}

static annal_slice find_owner(struct owners *owners, annal_slice origin, annal_slice session)
{
    uint64_t hash = annal__hash(origin.ptr, origin.len, OF_RECORD);
    size_t index = places_next(&owners->records, hash, &(size_t){0});
    if (index != SIZE_MAX) {
        annal_slice known = annal_slice_of(owners->names[index]);
        if (is_part(known, session))
            take(owners, hash, session);
        else if (is_part(session, known) &&
                 annal__slice_same(find_in_store(owners, origin, session), session))
            return session;
        return known;
    }
    annal_slice found = find_in_store(owners, origin, session);
    if (session.len == 0)
        return found;
    if (is_part(found, session))
        take(owners, hash, session);
    size_t name = name_of(owners, found.len > 0 ? found : session);
    if (name != SIZE_MAX)
        (void)!places_add(&owners->records, hash, name);
    return found.len > 0 ? found : session;
}

annal_slice owners_find(void *arg, annal_slice origin, annal_slice session)
{
    struct owners *owners = arg;
    pthread_mutex_lock(&owners->lock);
    annal_slice found = find_owner(owners, origin, session);
    pthread_mutex_unlock(&owners->lock);
    return found;
}

annal_slice owners_guess(struct owners *owners, struct owners **own, annal_slice origin,
                         annal_slice session)
{
    size_t name = SIZE_MAX;
    if (*own == NULL && (*own = owners_new(NULL, NULL)) == NULL)
        return session;
    (*own)->alone = true; /* nothing is looked up in an index */
    pthread_mutex_lock(&owners->lock);
    size_t index =
        places_next(&owners->records, annal__hash(origin.ptr, origin.len, OF_RECORD), &(size_t){0});
    if (index != SIZE_MAX)
        name = name_of(*own, annal_slice_of(owners->names[index]));
    pthread_mutex_unlock(&owners->lock);
    return name != SIZE_MAX ? annal_slice_of((*own)->names[name])
                            : find_owner(*own, origin, session);
}

static annal_status read_events(struct owners *owners, annal_cursor *cursor, annal_error *err)
{
    annal_event event = {0};
    annal_status status;
    while ((status = annal_cursor_next(cursor, &event, err)) >= 0 && status != ANNAL_END) {
        if (status != ANNAL_OK)
            continue;
        if (event.id.len > 0 &&
            !places_add(&owners->events, annal__hash(event.id.ptr, event.id.len, OF_EVENT), 0))
            return annal__fail(err, ANNAL_ERR_NOMEM, "import: out of memory");
        owners->read_seq = event.seq;
        owners->read_us = event.ts_us;
    }
    return status;
}

annal_status owners_read(struct owners *owners, annal_store *store, annal_slice session,
                         int64_t *out_last_us, annal_error *err)
{
    annal_cursor *cursor = NULL;
    if (!annal__slice_is(session, owners->read)) {
        places_done(&owners->events);
        owners->read_seq = 0;
        owners->read_us = 0;
        memcpy(owners->read, session.ptr, session.len);
        owners->read[session.len] = '\0';
    }
    annal_status status = annal_cursor_open(store, session, owners->read_seq + 1, &cursor, err);
    if (status == ANNAL_OK)
        status = read_events(owners, cursor, err);
    annal_cursor_close(cursor);
    *out_last_us = owners->read_us;
    return status == ANNAL_ERR_NOTFOUND || status > 0 ? ANNAL_OK : status;
}

bool owners_has(const struct owners *owners, annal_slice id)
{
    return places_next(&owners->events, annal__hash(id.ptr, id.len, OF_EVENT), &(size_t){0}) !=
           SIZE_MAX;
}

void owners_pause(struct owners *owners)
{
    if (owners == NULL)
        return;
    annal__record_owner_close(owners->known);
    owners->known = NULL;
    pthread_mutex_lock(&owners->lock);
    settle_taken(owners);
    if (owners->records.used >= RECORDS_MAX)
        forget_records(owners);
    pthread_mutex_unlock(&owners->lock);
}

const annal_error *owners_failure(const struct owners *owners)
{
    return owners != NULL && owners->failed ? &owners->err : NULL;
}

void owners_free(struct owners *owners)
{
    if (owners == NULL)
        return;
    annal__record_owner_close(owners->known);
    places_done(&owners->records);
    places_done(&owners->taken);
    places_done(&owners->by_name);
    places_done(&owners->events);
    for (size_t i = 0; i < owners->name_count; i++)
        annal__free(owners->names[i]);
    annal__free(owners->names);
    annal__free(owners);
}
