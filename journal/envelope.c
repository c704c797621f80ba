/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/envelope.h"

#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json.h"

annal_status annal_session_id_check(annal_slice session, annal_error *err)
{
    if (session.len == 0 || session.len > ANNAL_SESSION_ID_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "a session id must have 1 to %d bytes, this value has %zu",
                           ANNAL_SESSION_ID_BYTES_MAX, session.len);
    if (session.ptr[0] == '.' || session.ptr[0] == '-')
        return annal__fail(err, ANNAL_ERR_INVALID, "session id '%.*s' must not start with '%c'",
                           ANNAL_FMT(session), session.ptr[0]);
    for (size_t i = 0; i < session.len; i++) {
        char c = session.ptr[i];
        bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '_' || c == '-';
        if (!fits)
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "byte %zu of the session id is not one of [A-Za-z0-9._-]", i + 1);
    }
    return ANNAL_OK;
}

static bool type_fits(annal_slice type)
{
    bool fits = type.len > 0 && type.len <= ANNAL_TYPE_BYTES_MAX;
    for (size_t i = 0; fits && i < type.len; i++) {
        char c = type.ptr[i];
        fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    }
    return fits;
}

/* An id is written into its line unchanged, so it must be a JSON string without escapes. */
bool annal__envelope_id_fits(annal_slice id)
{
    bool plain = id.len <= ANNAL_ID_BYTES_MAX, ascii = true;
    for (size_t i = 0; plain && i < id.len; i++) {
        unsigned char c = (unsigned char)id.ptr[i];
        plain = c >= ' ' && c != '"' && c != '\\' && c != 127;
        ascii = ascii && c < 128;
    }
    return plain && (ascii || annal__json_is_utf8(id));
}

bool annal__envelope_cause_fits(annal_slice cause)
{
    size_t colon = cause.len;
    while (colon > 0 && cause.ptr[colon - 1] != ':')
        colon--;
    bool fits = cause.len <= ANNAL_CAUSE_BYTES_MAX && colon > 0 && colon < cause.len &&
                cause.len - colon <= 20 &&
                annal_session_id_check((annal_slice){cause.ptr, colon - 1}, NULL) == ANNAL_OK;
    for (size_t i = colon; fits && i < cause.len; i++)
        fits = cause.ptr[i] >= '0' && cause.ptr[i] <= '9';
    return fits;
}

const char *annal__envelope_fault(const annal_event *event)
{
    if (event->seq == 0 || event->seq > FRAME_SEQ_MAX)
        return "the seq of this event is not one that an event can have";
    if (annal__time_clamp(event->ts_us) != event->ts_us)
        return "the time of this event is not between the years 0000 and 9999";
    if (!type_fits(event->type))
        return "the type of this event does not have 1 to 64 bytes of [a-z0-9_.-]";
    if (!annal__envelope_id_fits(event->id))
        return "the id of this event is not valid: at most 200 bytes of UTF-8 without control "
               "characters";
    if (event->cause.len > 0 && !annal__envelope_cause_fits(event->cause))
        return "the cause of this event does not name an event as 'session:seq'";
    return NULL;
}

bool annal__envelope_header_fits(const struct frame_header *header)
{
    return annal_session_id_check(header->session, NULL) == ANNAL_OK &&
           annal__time_clamp(header->created_us) == header->created_us &&
           (header->fork.len == 0 || (annal_session_id_check(header->fork, NULL) == ANNAL_OK &&
                                      header->fork_seq > 0 && header->fork_seq < FRAME_SEQ_MAX));
}
