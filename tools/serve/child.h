/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verb of this command, run as a process of its own: for work that prints as it goes, and that
 * may end with its process without harm to the server.
 */
#ifndef TOOLS_SERVE_CHILD_H
#define TOOLS_SERVE_CHILD_H

#include "journal/base/buf.h"

#include <annal/base.h>

#define CHILD_WORDS_MAX 16

struct request;

struct child_options {
    const char *variable;          /* "NAME=value", added to its environment; NULL: none */
    annal_slice input;             /* its standard input */
    uint32_t most_ms;              /* then it is killed; 0: no limit */
    const struct request *request; /* whose client waits for it: it is killed if that leaves */
};

/*
 * Run annal --store STORE with these words, which end with NULL. Its standard output is appended to
 * out. A failure has the last line that it wrote to standard error: ANNAL_ERR_REFUSED for exit
 * status 1, ANNAL_ERR_LIMIT if it was killed for its time, ANNAL_ERR_CLOSED if its client left,
 * else ANNAL_ERR_IO. options may be NULL.
 */
annal_status child_run(const char *store, const char *const *words,
                       const struct child_options *options, struct buf *out, annal_error *err);

#endif
