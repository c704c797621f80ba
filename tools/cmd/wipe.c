/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cmd/wipe.h"

#include "tools/cli/out.h"

void wipe_say_what_remains(const annal_delete_note *note)
{
    const char *why = note->error->message;
    switch (note->part) {
    case ANNAL_DELETE_WORDS:
        say("words of session '%.*s' remain in search.db until 'annal search --rebuild': %s",
            ANNAL_FMT(note->session), why);
        break;
    case ANNAL_DELETE_SNAPSHOTS:
        say("session '%.*s' was deleted, but the snapshots of the session were not deleted yet: %s",
            ANNAL_FMT(note->session), why);
        break;
    case ANNAL_DELETE_ARTIFACTS:
        say("session '%.*s' was deleted, but its artifacts remain until 'annal artifact sweep': %s",
            ANNAL_FMT(note->session), why);
        break;
    case ANNAL_DELETE_SOURCES:
        say("session '%.*s' was deleted, but copies of its logs remain (sources/%.*s.*): %s",
            ANNAL_FMT(note->session), ANNAL_FMT(note->session), why);
        break;
    case ANNAL_DELETE_DATABASES:
        say("deleted content may remain in %s; 'annal checkpoint' removes it later", why);
        break;
    default:
        say("%s", why);
    }
}
