#include "tools/event_out.h"

#include "tools/out.h"

#include <inttypes.h>
#include <stdio.h>

/* No member but data can hold a character that JSON would escape: the journal refuses them. */
static void print_member(const char *name, annal_slice text)
{
    if (text.len > 0)
        printf(",\"%s\":\"%.*s\"", name, ANNAL_FMT(text));
}

void event_print(const annal_event *event, annal_slice session)
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
    out_slice(event->data);
    fputs("}\n", stdout);
}

void event_say_damage(annal_slice session, const annal_damage *damage)
{
    say("session '%.*s', event %" PRIu64 " at byte %" PRIu64 ": %s", ANNAL_FMT(session),
        damage->seq, damage->offset, damage->what);
}
