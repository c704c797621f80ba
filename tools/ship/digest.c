/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/digest.h"

#include "journal/base/slice.h"
#include "tools/ship/postgres.h"

#include <string.h>

static void add_number(struct digest *digest, int array, uint64_t number)
{
    postgres_add_number(&digest->arrays[array], number);
}

/* Format a time for PostgreSQL. Its calendar has no year 0, which is the year 1 BC. */
void digest_time(int64_t time_us, char out[POSTGRES_TIME_BYTES])
{
    annal_time_format(time_us, out);
    if (strncmp(out, "0000", 4) == 0) {
        out[3] = '1';
        strcat(out, " BC");
    }
}

static void add_time(struct digest *digest, int array, int64_t time_us)
{
    char text[POSTGRES_TIME_BYTES];
    digest_time(time_us, text);
    postgres_add_text(&digest->arrays[array], text);
}

static void end_run(struct digest *digest)
{
    if (digest->run_first == 0)
        return;
    add_number(digest, 5, (uint64_t)digest->key);
    add_number(digest, 6, digest->run_first);
    add_number(digest, 7, digest->run_last);
    digest->run_first = 0;
}

static void end_session(struct digest *digest)
{
    if (digest->key == 0)
        return;
    end_run(digest);
    add_number(digest, 0, (uint64_t)digest->key);
    add_number(digest, 1, digest->last_seq);
    add_time(digest, 2, digest->first_us);
    add_time(digest, 3, digest->updated_us);
    if (digest->is_active)
        add_time(digest, 4, digest->active_us);
    else
        postgres_add_null(&digest->arrays[4]);
    digest->key = 0;
}

static bool contains(annal_slice text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* Return whether annal._fold() may use the event. Some events too many are selected; messages only
 * if they may be from a user. */
static bool changes_a_row(const annal_event *event)
{
    return annal__slice_begins(event->type, "session") ||
           annal__slice_begins(event->type, "turn") ||
           annal__slice_begins(event->type, "agent.turn.usage") ||
           (annal__slice_begins(event->type, "message.added") &&
            (contains(event->data, "user") || contains(event->data, "\\u00")));
}

void digest_add(struct digest *digest, int64_t key, const annal_event *event)
{
    if (key != digest->key) {
        end_session(digest);
        digest->key = key;
        digest->first_us = digest->updated_us = event->ts_us;
        digest->is_active = false;
    }
    digest->last_seq = event->seq;
    if (event->ts_us > digest->updated_us)
        digest->updated_us = event->ts_us;
    if (!annal__slice_is(event->type, "session.updated")) {
        if (!digest->is_active || event->ts_us > digest->active_us)
            digest->active_us = event->ts_us;
        digest->is_active = true;
    }
    if (!changes_a_row(event))
        return;
    if (digest->run_first == 0 || digest->run_last + 1 != event->seq) {
        end_run(digest);
        digest->run_first = event->seq;
    }
    digest->run_last = event->seq;
}

bool digest_end(struct digest *digest)
{
    end_session(digest);
    bool is_whole = true;
    for (int i = 0; i < DIGEST_ARRAYS && is_whole; i++) {
        struct buf *array = &digest->arrays[i];
        is_whole = (array->len > 0 || annal__buf_append(array, "{", 1) == ANNAL_OK) &&
                   annal__buf_append(array, "}", 1) == ANNAL_OK;
    }
    return is_whole;
}

void digest_clear(struct digest *digest)
{
    for (int i = 0; i < DIGEST_ARRAYS; i++) {
        annal__buf_clear(&digest->arrays[i]);
        digest->arrays[i].limit = 0;
    }
    digest->key = 0;
    digest->run_first = 0;
}

void digest_done(struct digest *digest)
{
    for (int i = 0; i < DIGEST_ARRAYS; i++)
        annal__buf_done(&digest->arrays[i]);
}
