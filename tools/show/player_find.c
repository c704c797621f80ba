/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/player_find.h"

#include "journal/base/slice.h"
#include "journal/sys/cursor.h"
#include "tools/show/event_out.h"

#include <strings.h>

static bool holds(annal_slice raw, const char *text)
{
    size_t len = strlen(text);
    for (size_t at = 0; at + len <= raw.len; at++) {
        if (strncasecmp(raw.ptr + at, text, len) == 0)
            return true;
    }
    return false;
}

/* Return whether an event contains a text, in the members that people see: not in those that
 * importers add. */
static bool says(const annal_event *event, const char *text)
{
    static const char *const members[] = {"content",   "prompt", "tool",  "input",
                                          "arguments", "output", "error", "reason"};
    if (event_fact_of(event) == FACT_OTHER)
        return holds(event->type, text) || holds(event->data, text);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (holds(event_member(event, members[i]), text))
            return true;
    }
    return false;
}

static bool is_sought(const struct search *search, const annal_event *event)
{
    if (!conversation_shows(search->talk, event))
        return false;
    switch (search->sought) {
    case SOUGHT_TURN:
        return annal__slice_is(event_message_role(event), "\"user\"");
    case SOUGHT_FAILURE:
        return event_failed(event);
    case SOUGHT_TEXT:
        return says(event, search->text);
    default:
        return true;
    }
}

annal_status player_find(annal_store *store, annal_slice session, const struct search *search,
                         uint64_t from_seq, uint64_t to_seq, bool backwards, uint64_t *out_seq,
                         annal_error *err)
{
    annal_cursor *cursor = NULL;
    SCOPED_BUF data = {0};
    annal_event event;
    uint64_t data_bytes;
    annal_status status = annal_cursor_open(store, session, from_seq, &cursor, err);
    *out_seq = 0;
    while (status >= 0 && status != ANNAL_END && (*out_seq == 0 || backwards)) {
        status = annal__cursor_next_head(cursor, &event, &data_bytes, err);
        if (status == ANNAL_OK && event.seq > to_seq)
            break;
        if (status == ANNAL_OK)
            status = event_read_data(cursor, &event, data_bytes, &data, err);
        if (status == ANNAL_OK && is_sought(search, &event))
            *out_seq = event.seq;
    }
    annal_cursor_close(cursor);
    return status < 0 ? status : ANNAL_OK;
}
