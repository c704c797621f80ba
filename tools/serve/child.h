/*
 * A verb of this command, run as a process of its own: for work that prints as it goes, and that
 * may end with its process without harm to the server.
 */
#ifndef TOOLS_SERVE_CHILD_H
#define TOOLS_SERVE_CHILD_H

#include "journal/base/buf.h"

#include <annal/base.h>

#define CHILD_WORDS_MAX 16

/*
 * Run annal --store STORE with these words, which end with NULL. Its standard output is appended
 * to out. A failure has the last line that it wrote to standard error: ANNAL_ERR_REFUSED for exit
 * status 1, else ANNAL_ERR_IO.
 */
annal_status child_run(const char *store, const char *const *words, struct buf *out,
                       annal_error *err);

#endif
