#include "tools/event_out.h"

#include "tools/command.h"
#include "tools/out.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum { END_WAITS = 20, END_WAIT_MS = 10, PIECE_BYTES = 65536 };

/* No member but data can hold a character that JSON would escape: the journal refuses them. */
static void print_member(const char *name, annal_slice text)
{
    if (text.len > 0)
        printf(",\"%s\":\"%.*s\"", name, ANNAL_FMT(text));
}

static void print_envelope(const annal_event *event, annal_slice session)
{
    char ts[ANNAL_TIME_BYTES];
    annal_time_format(event->ts_us, ts);
    fputc('{', stdout);
    if (session.len > 0)
        printf("\"session_id\":\"%.*s\",", ANNAL_FMT(session));
    printf("\"seq\":%" PRIu64 ",\"%s\":\"%s\",\"type\":\"%.*s\"", event->seq,
           session.len > 0 ? "timestamp" : "ts", ts, ANNAL_FMT(event->type));
    print_member("id", event->id);
    print_member("cause", event->cause);
    fputs(",\"data\":", stdout);
}

void event_print(const annal_event *event, annal_slice session)
{
    print_envelope(event, session);
    out_slice(event->data);
    fputs("}\n", stdout);
}

bool event_print_head(annal_cursor *cursor, const annal_event *event, uint64_t data_bytes,
                      annal_error *err)
{
    char piece[PIECE_BYTES];
    print_envelope(event, (annal_slice){0});
    out_slice(event->data);
    for (uint64_t at = event->data.len; at < data_bytes && out_wanted();) {
        size_t len = 0;
        if (annal_cursor_data(cursor, at, piece, sizeof piece, &len, err) < 0)
            return false;
        out_slice((annal_slice){piece, len});
        at += len;
    }
    fputs("}\n", stdout);
    return true;
}

void event_say_damage(annal_slice session, const annal_damage *damage)
{
    say("session '%.*s', event %" PRIu64 " at byte %" PRIu64 ": %s", ANNAL_FMT(session),
        damage->seq, damage->offset, damage->what);
}

int event_check_end(annal_store *store, annal_slice session, annal_position here, int *waits)
{
    annal_error err = {0};
    annal_session_info info;
    for (int i = 0; i < 2 || *waits < END_WAITS; i++) {
        if (i > 0) {
            (void)poll(NULL, 0, END_WAIT_MS);
            (*waits)++;
        }
        if (annal_session_info_get(store, session, &info, &err) < 0)
            return fail_error(&err);
        if (i == 0 && info.end_offset > here.offset)
            here = (annal_position){.seq = info.last_seq + 1, .offset = info.end_offset};
        if (info.bytes <= here.offset || info.end_offset > here.offset)
            return EXIT_DONE;
    }
    if (here.offset == 0)
        say("session '%.*s': its %" PRIu64
            " bytes prove nothing: the header is damaged; 'annal verify %.*s' tells more",
            ANNAL_FMT(session), info.bytes, ANNAL_FMT(session));
    else
        say("session '%.*s': %" PRIu64 " bytes at byte %" PRIu64 ", after event %" PRIu64
            ", prove nothing: a damaged or unfinished line; 'annal verify %.*s' tells more",
            ANNAL_FMT(session), info.bytes - here.offset, here.offset,
            here.seq > 0 ? here.seq - 1 : 0, ANNAL_FMT(session));
    return EXIT_REFUSED;
}
