/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network that fails: a process between a shipper and a server. It listens on a port of its own
 * of the loopback, and connects to a Unix socket.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum proxy_mode {
    PROXY_PASS,
    PROXY_CUT,   /* every connection is closed, and so is each new connection */
    PROXY_STALL, /* connections stay, and nothing passes */
    PROXY_SLOW   /* a few bytes at a time */
};

struct proxy {
    pid_t pid;
    int port;
    struct proxy_shared *shared;
};

void proxy_start(struct proxy *proxy, const char *socket_path);
void proxy_set(struct proxy *proxy, enum proxy_mode mode);

/* After `bytes` more bytes, close all connections once. */
void proxy_cut_after(struct proxy *proxy, uint64_t bytes);
void proxy_stop(struct proxy *proxy);
