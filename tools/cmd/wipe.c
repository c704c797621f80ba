/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cmd/wipe.h"

#include "tools/cli/out.h"

void say_what_remains(const annal_delete_note *note)
{
    const char *why = note->error->message;
    switch (note->part) {
    case ANNAL_DELETE_WORDS:
        say("words of session '%.*s' stay in search.db until 'annal search --rebuild': %s",
            ANNAL_FMT(note->session), why);
        break;
    case ANNAL_DELETE_SNAPSHOTS:
        say("session '%.*s' is deleted, and its snapshots are not yet: %s",
            ANNAL_FMT(note->session), why);
        break;
    case ANNAL_DELETE_ARTIFACTS:
        say("session '%.*s' is deleted, and its artifacts stay until 'annal artifact sweep': %s",
            ANNAL_FMT(note->session), why);
        break;
    case ANNAL_DELETE_DATABASES:
        say("content of what was deleted may remain in %s; 'annal checkpoint' removes it later",
            why);
        break;
    default:
        say("%s", why);
    }
}
