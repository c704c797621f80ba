/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a verb of this command as a process of its own: for work that prints while it runs, and that
 * may end with its process without harm to the server. */
#ifndef TOOLS_SERVE_CHILD_H
#define TOOLS_SERVE_CHILD_H

#include "journal/base/buf.h"

#include <annal/base.h>

#define CHILD_WORDS_MAX 16

struct request;

struct child_options {
    const char *variable; /* "NAME=value", added to its environment, or NULL */
    annal_slice input;    /* standard input of the process */
    uint32_t most_ms;     /* time limit, after which it is killed; 0 for none */
    /* its process is killed if the client of this request disconnects */
    const struct request *request;
};

/* Run annal --store STORE with these words, which end with NULL. Its standard output is appended to
 * out. An error contains the last line of its standard error: ANNAL_ERR_REFUSED for exit status 1,
 * ANNAL_ERR_LIMIT if it exceeded its time limit, ANNAL_ERR_CLOSED if its client disconnected,
 * otherwise ANNAL_ERR_IO. options may be NULL. */
annal_status child_run(const char *store, const char *const *words,
                       const struct child_options *options, struct buf *out, annal_error *err);

#endif
