/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/listen.h"

#include "journal/base/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024

annal_status listen_given(int fd, struct place *out, annal_error *err)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    char host[INET6_ADDRSTRLEN] = "";
    *out = (struct place){.fd = fd};
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return annal__fail_errno(err, "serve: descriptor %d is not a socket", fd);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (address.ss_family == AF_UNIX) {
        out->is_unix = true;
        snprintf(out->host, sizeof out->host, "%s", ((struct sockaddr_un *)&address)->sun_path);
    } else if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(out->host, sizeof out->host, "[%s]", host);
        out->port = ntohs(six->sin6_port);
        out->is_loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    } else {
        const struct sockaddr_in *four = (struct sockaddr_in *)&address;
        inet_ntop(AF_INET, &four->sin_addr, out->host, sizeof out->host);
        out->port = ntohs(four->sin_port);
        out->is_loopback = (ntohl(four->sin_addr.s_addr) >> 24) == 127;
    }
    return ANNAL_OK;
}

static annal_status bound(int fd, const struct sockaddr *address, socklen_t len, const char *where,
                          struct place *out, annal_error *err)
{
    const int one = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, address, len) == 0 && listen(fd, BACKLOG) == 0)
        return listen_given(fd, out, err);
    annal__fail_errno(err, "serve: cannot listen at %s", where);
    close(fd);
    return ANNAL_ERR_IO;
}

/* Listen on a Unix socket. A socket of a server that has ended is replaced; fail if a server
 * answers on it. */
static annal_status listen_unix(const char *path, struct place *out, annal_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return annal__fail(err, ANNAL_ERR_LIMIT, "serve: the path '%s' is too long for a socket",
                           path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return annal__fail_errno(err, "serve: cannot create a socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        close(fd);
        return annal__fail(err, ANNAL_ERR_BUSY, "serve: another server is listening at '%s'", path);
    }
    struct stat info;
    if (errno == ECONNREFUSED && lstat(path, &info) == 0 && S_ISSOCK(info.st_mode))
        (void)unlink(path);
    mode_t mask = umask(077);
    annal_status status = bound(fd, (struct sockaddr *)&address, sizeof address, path, out, err);
    umask(mask);
    return status;
}

/* Split "HOST:PORT"; a text without a colon is a port on this host. */
static annal_status split(const char *where, char *host, size_t room, const char **out_port,
                          annal_error *err)
{
    const char *colon = strrchr(where, ':');
    const char *begin = where;
    size_t len = colon == NULL ? 0 : (size_t)(colon - where);
    *out_port = colon == NULL ? where : colon + 1;
    if (len >= 2 && where[0] == '[' && where[len - 1] == ']') {
        begin++;
        len -= 2;
    }
    if (len >= room || **out_port == '\0' || strspn(*out_port, "0123456789") != strlen(*out_port) ||
        atol(*out_port) > 65535)
        return annal__fail(
            err, ANNAL_ERR_INVALID,
            "--listen needs HOST:PORT, such as 127.0.0.1:7117, or unix:PATH, not '%s'", where);
    memcpy(host, begin, len);
    host[len] = '\0';
    return ANNAL_OK;
}

annal_status listen_at(const char *where, struct place *out, annal_error *err)
{
    static const char unix_prefix[] = "unix:";
    char host[256];
    const char *port;
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    if (strncmp(where, unix_prefix, sizeof unix_prefix - 1) == 0)
        return listen_unix(where + sizeof unix_prefix - 1, out, err);
    annal_status status = split(where, host, sizeof host, &port, err);
    if (status < 0)
        return status;
    int failed = getaddrinfo(host[0] == '\0' ? "127.0.0.1" : host, port, &hints, &found);
    if (failed != 0)
        return annal__fail(err, ANNAL_ERR_INVALID, "serve: listen at %s: %s", where,
                           gai_strerror(failed));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    status = fd < 0 ? annal__fail_errno(err, "serve: cannot create a socket")
                    : bound(fd, found->ai_addr, found->ai_addrlen, where, out, err);
    freeaddrinfo(found);
    return status;
}
