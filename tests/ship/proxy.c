/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ship/proxy.h"

#include "tests/support/runner.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 16, PIECE = 16384, SLOW_PIECE = 512 };

struct proxy_shared {
    atomic_int mode;
    atomic_llong left; /* bytes until all are cut; below 0: no such limit */
};

static int ends[PAIRS][2]; /* client, server; 0: free */

static void cut(int i)
{
    close(ends[i][0]);
    close(ends[i][1]);
    ends[i][0] = ends[i][1] = 0;
}

static void cut_all(void)
{
    for (int i = 0; i < PAIRS; i++)
        if (ends[i][0] != 0)
            cut(i);
}

static void join(int listener, const char *path, bool refuse)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int client = accept(listener, NULL, NULL);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    for (int i = 0; i < PAIRS && !refuse; i++) {
        if (ends[i][0] != 0)
            continue;
        if (connect(server, (struct sockaddr *)&address, sizeof address) < 0)
            break;
        ends[i][0] = client;
        ends[i][1] = server;
        return;
    }
    close(client);
    close(server);
}

/* False: the connection is over. */
static bool pass(struct proxy_shared *shared, int from, int to, bool slow)
{
    char bytes[PIECE];
    ssize_t len = read(from, bytes, slow ? SLOW_PIECE : sizeof bytes);
    if (len <= 0)
        return false;
    long long left = atomic_load(&shared->left);
    if (left >= 0) {
        atomic_store(&shared->left, left > len ? left - len : -1);
        if (left <= len) {
            (void)!write(to, bytes, (size_t)left); /* a part of a message arrives */
            return false;
        }
    }
    return send(to, bytes, (size_t)len, MSG_NOSIGNAL) == len;
}

static _Noreturn void run(struct proxy_shared *shared, int listener, const char *path)
{
    for (;;) {
        struct pollfd fds[1 + 2 * PAIRS] = {{.fd = listener, .events = POLLIN}};
        int mode = atomic_load(&shared->mode);
        if (mode == PROXY_CUT)
            cut_all();
        for (int i = 0; i < 2 * PAIRS; i++) {
            int fd = ends[i / 2][i % 2];
            fds[1 + i] =
                (struct pollfd){.fd = fd != 0 && mode != PROXY_STALL ? fd : -1, .events = POLLIN};
        }
        if (poll(fds, 1 + 2 * PAIRS, 20) < 0)
            _exit(1);
        for (int i = 0; i < 2 * PAIRS; i++)
            if (fds[1 + i].revents != 0 && ends[i / 2][0] != 0 &&
                !pass(shared, ends[i / 2][i % 2], ends[i / 2][1 - i % 2], mode == PROXY_SLOW))
                cut(i / 2);
        if ((fds[0].revents & POLLIN) != 0)
            join(listener, path, mode == PROXY_CUT);
        if (mode == PROXY_SLOW)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void proxy_start(struct proxy *proxy, const char *socket_path)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(listener, PAIRS), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    proxy->port = ntohs(address.sin_port);
    proxy->shared = mmap(NULL, sizeof *proxy->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(proxy->shared, MAP_FAILED);
    atomic_store(&proxy->shared->left, -1);
    proxy->pid = fork();
    ck_assert_int_ge(proxy->pid, 0);
    if (proxy->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(proxy->shared, listener, socket_path);
    }
    close(listener);
}

void proxy_set(struct proxy *proxy, enum proxy_mode mode)
{
    atomic_store(&proxy->shared->mode, (int)mode);
}

void proxy_cut_after(struct proxy *proxy, uint64_t bytes)
{
    atomic_store(&proxy->shared->left, (long long)bytes);
}

void proxy_stop(struct proxy *proxy)
{
    kill(proxy->pid, SIGKILL);
    waitpid(proxy->pid, NULL, 0);
    munmap(proxy->shared, sizeof *proxy->shared);
}
