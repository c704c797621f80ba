/* A moment of a session's past, as people write one. */
#ifndef TOOLS_CLI_MOMENT_H
#define TOOLS_CLI_MOMENT_H

#include <annal/replay.h>

/* A seq, a time such as 2026-01-06T07:24:00Z, or an age such as 2h. False: it is none of these. */
bool parse_moment(const char *text, annal_moment *out);

/* What a moment may be, for the sentence that refuses something else. */
#define MOMENT_FORMS "a seq, a time such as 2026-01-06T07:24:00Z or an age such as 2h"

#endif
