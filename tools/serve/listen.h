/* SPDX-License-Identifier: Apache-2.0 */
/* Listens at a TCP address, at the path of a Unix socket, or on a socket that systemd passed. */
#pragma once

#include <annal/base.h>

struct place {
    int fd;
    bool is_unix;
    bool is_given; /* whether systemd created the socket, and removes it */
    /* port of the socket; if port 0 was requested, the port that the system chose */
    unsigned port;
    char host[280]; /* host such as "127.0.0.1" or "[::1]", or the path of a Unix socket */
    bool is_loopback;
};

/* Listen at "127.0.0.1:7117", "[::1]:0", "localhost:7117", "7117" or "unix:/run/annal.sock". */
annal_status listen_at(const char *where, struct place *out, annal_error *err);

/* Use a socket that was passed to this process as in sd_listen_fds(3). */
annal_status listen_given(int fd, struct place *out, annal_error *err);
