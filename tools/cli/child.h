/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a verb of annal as a process of its own: for work that prints while it runs, and that can be
 * killed without harm to the server. */
#pragma once

#include "journal/base/buf.h"

#include <annal/base.h>

#include <sys/types.h>

#define CHILD_WORDS_MAX 16

struct child_options {
    const char *variable; /* "NAME=value" to add to the environment of the process, or NULL */
    annal_slice input;    /* standard input of the process */
    uint32_t most_ms;     /* time limit in ms, after which the process is killed; 0 for none */
    /* socket of a client, which may be -1; if the client disconnects, the process is killed; 0 for
     * none */
    int socket;
    /* NULL, or a function that is called in place of watching the socket, whenever standard input
     * of this process can be read: 1: kill the process; 0: not yet; -1: call me no more */
    int (*is_unwanted)(void *arg);
    void *arg;
};

/* Run annal --store STORE with these words, of which the last is NULL, and append its standard
 * output to out. On failure, err contains the last line of its standard error: ANNAL_ERR_REFUSED
 * for exit status 1, ANNAL_ERR_LIMIT if the time limit was exceeded, ANNAL_ERR_CLOSED if the client
 * disconnected, otherwise ANNAL_ERR_IO. options may be NULL. */
annal_status child_run(const char *store, const char *const *words,
                       const struct child_options *options, struct buf *out, annal_error *err);

/* Start annal --store STORE with these words, of which the last is NULL, as a process that ends
 * with this one: fds are its standard input, output and error. The caller waits for its end. */
annal_status child_start(const char *store, const char *const *words, const int fds[3],
                         pid_t *out_pid, annal_error *err);

/* In a process that child_start() may have started: receive SIGTERM when the thread that started it
 * ends. Without effect in other processes. */
void child_end_with_parent(void);
