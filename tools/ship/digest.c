#include "tools/ship/digest.h"

#include "journal/base/slice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add(struct digest *digest, int array, const char *item)
{
    struct buf *buf = &digest->arrays[array];
    if (annal__buf_printf(buf, "%s%s", buf->len == 0 ? "{" : ",", item) < 0)
        digest->failed = true;
}

static void add_number(struct digest *digest, int array, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    add(digest, array, text);
}

/* PostgreSQL has no year 0: it is the year 1 BC. */
static void add_time(struct digest *digest, int array, int64_t time_us)
{
    char text[ANNAL_TIME_BYTES + 3];
    annal_time_format(time_us, text);
    if (strncmp(text, "0000", 4) == 0) {
        text[3] = '1';
        strcat(text, " BC");
    }
    add(digest, array, text);
}

static void end_session(struct digest *digest)
{
    if (digest->key == 0)
        return;
    add_number(digest, 0, digest->key);
    add_number(digest, 1, (int64_t)digest->last_seq);
    add_time(digest, 2, digest->first_us);
    add_time(digest, 3, digest->updated_us);
    if (digest->is_active)
        add_time(digest, 4, digest->active_us);
    else
        add(digest, 4, "NULL");
    digest->key = 0;
}

static bool contains(annal_slice text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* More than annal._fold() uses, but not much. Of messages, only those that may be a user's. */
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
    if (changes_a_row(event)) {
        add_number(digest, 5, key);
        add_number(digest, 6, (int64_t)event->seq);
    }
}

bool digest_end(struct digest *digest)
{
    end_session(digest);
    for (int i = 0; i < DIGEST_ARRAYS; i++)
        if (annal__buf_printf(&digest->arrays[i], digest->arrays[i].len == 0 ? "{}" : "}") < 0)
            digest->failed = true;
    return !digest->failed;
}

void digest_clear(struct digest *digest)
{
    for (int i = 0; i < DIGEST_ARRAYS; i++)
        annal__buf_clear(&digest->arrays[i]);
    digest->key = 0;
    digest->failed = false;
}

void digest_done(struct digest *digest)
{
    for (int i = 0; i < DIGEST_ARRAYS; i++)
        annal__buf_done(&digest->arrays[i]);
}
