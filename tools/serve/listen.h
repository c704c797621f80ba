/* SPDX-License-Identifier: Apache-2.0 */
/* Listens at a TCP address, at the path of a Unix socket, or on a socket from systemd. */
#ifndef TOOLS_SERVE_LISTEN_H
#define TOOLS_SERVE_LISTEN_H

#include <annal/base.h>

struct place {
    int fd;
    bool is_unix;
    bool is_given;  /* created, and removed, by systemd */
    unsigned port;  /* actual port, also if 0 was requested */
    char host[280]; /* "127.0.0.1", "[::1]"; the path of a Unix socket */
    bool is_loopback;
};

/* Listen at "127.0.0.1:7117", "[::1]:0", "localhost:7117", "7117" or "unix:/run/annal.sock". */
annal_status listen_at(const char *where, struct place *out, annal_error *err);

/* Use a socket that was passed to this process as in sd_listen_fds(3). */
annal_status listen_given(int fd, struct place *out, annal_error *err);

#endif
