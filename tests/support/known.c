/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/known.h"

#include "tests/support/journals.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static annal_slice keep(char **at, annal_slice slice)
{
    if (slice.len > 0)
        memcpy(*at, slice.ptr, slice.len);
    annal_slice kept = {*at, slice.len};
    *at += slice.len;
    return kept;
}

static void add(struct known *known, const annal_event *event)
{
    size_t count = known->count++;
    known->events = realloc(known->events, known->count * sizeof *known->events);
    known->bytes = realloc(known->bytes, known->count * sizeof *known->bytes);
    char *bytes = malloc(event->type.len + event->id.len + event->cause.len + event->data.len + 1);
    ck_assert(known->events != NULL && known->bytes != NULL && bytes != NULL);
    known->bytes[count] = bytes;
    known->events[count] = *event;
    known->events[count].type = keep(&bytes, event->type);
    known->events[count].id = keep(&bytes, event->id);
    known->events[count].cause = keep(&bytes, event->cause);
    known->events[count].data = keep(&bytes, event->data);
}

void known_read(struct known *known, annal_store *store, const char *session)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_error reason = {0};
    annal_status status;
    *known = (struct known){0};
    ck_ok(annal_cursor_open(store, annal_slice_of(session), 1, &cursor, err));
    while ((status = annal_cursor_next(cursor, &event, &reason)) == ANNAL_OK) {
        ck_assert_uint_eq(event.seq, known->count + 1);
        add(known, &event);
    }
    ck_assert_msg(status == ANNAL_END, "%s: %s", annal_status_name(status), reason.message);
    annal_cursor_close(cursor);
}

void known_done(struct known *known)
{
    for (size_t i = 0; i < known->count; i++)
        free(known->bytes[i]);
    free(known->bytes);
    free(known->events);
    *known = (struct known){0};
}

static bool same(annal_slice a, annal_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool known_same(const struct known *known, const annal_event *event)
{
    if (event->seq == 0 || event->seq > known->count)
        return false;
    const annal_event *was = &known->events[event->seq - 1];
    return event->ts_us == was->ts_us && same(event->type, was->type) && same(event->id, was->id) &&
           same(event->cause, was->cause) && same(event->data, was->data);
}

void known_walk(const struct known *known, annal_store *store, const char *session,
                uint64_t from_seq, const char *what, struct known_walk *walk)
{
    annal_cursor *cursor = NULL;
    annal_error err = {0};
    bool *came = walk->came;
    *walk = (struct known_walk){.came = came};
    if (came != NULL)
        memset(came, 0, known->count * sizeof *came);
    annal_status status =
        annal_cursor_open(store, annal_slice_of(session), from_seq, &cursor, &err);
    for (size_t steps = 0; status >= 0 && status != ANNAL_END; steps++) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, &err);
        ck_assert_msg(steps < 100000, "%s: reading does not end", what);
        walk->damages += status == ANNAL_DAMAGE;
        if (status != ANNAL_OK)
            continue;
        ck_assert_msg(event.seq > walk->last && event.seq >= from_seq && known_same(known, &event),
                      "%s: a wrong event %llu comes behind %llu: %.*s", what,
                      (unsigned long long)event.seq, (unsigned long long)walk->last,
                      ANNAL_FMT(event.data));
        walk->last = event.seq;
        walk->count++;
        if (came != NULL)
            came[event.seq - 1] = true;
    }
    ck_assert_msg(status == ANNAL_END, "%s: %s", what, err.message);
    walk->stood_at = annal_cursor_position(cursor).offset;
    annal_cursor_close(cursor);
}
