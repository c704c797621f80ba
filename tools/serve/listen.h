/* SPDX-License-Identifier: Apache-2.0 */
/* Where the server listens: an address of TCP, or the path of a Unix socket, or a socket that
 * systemd made. */
#ifndef TOOLS_SERVE_LISTEN_H
#define TOOLS_SERVE_LISTEN_H

#include <annal/base.h>

struct place {
    int fd;
    bool is_unix;
    bool is_given;  /* systemd made it, and removes it */
    unsigned port;  /* that it has, also if 0 was asked for */
    char host[280]; /* "127.0.0.1", "[::1]"; of a Unix socket its path */
    bool is_loopback;
};

/* "127.0.0.1:7117", "[::1]:0", "localhost:7117", "7117", "unix:/run/annal.sock" */
annal_status listen_at(const char *where, struct place *out, annal_error *err);

/* A socket that was handed over, as sd_listen_fds(3) says. */
annal_status listen_given(int fd, struct place *out, annal_error *err);

#endif
