/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_SECONDS 30

static bool find_in(const char *dirs, const char *program, char out_path[SERVER_PATH_BYTES])
{
    char pattern[SERVER_PATH_BYTES];
    for (const char *at = dirs; at != NULL && *at != '\0';) {
        const char *end = strchrnul(at, ':');
        glob_t found = {0};
        snprintf(pattern, sizeof pattern, "%.*s/%s", (int)(end - at), at, program);
        bool got = glob(pattern, 0, NULL, &found) == 0;
        if (got) /* of several versions the last one */
            snprintf(out_path, SERVER_PATH_BYTES, "%s", found.gl_pathv[found.gl_pathc - 1]);
        globfree(&found);
        if (got)
            return true;
        at = *end == ':' ? end + 1 : end;
    }
    return false;
}

bool server_find(const char *program, const char *package, char out_path[SERVER_PATH_BYTES],
                 char why[BENCH_WHY_BYTES])
{
    if (find_in(getenv("PATH"), program, out_path) ||
        find_in("/usr/sbin:/usr/lib/postgresql/*/bin", program, out_path))
        return true;
    snprintf(why, BENCH_WHY_BYTES, "there is no %s; the package is %s", program, package);
    return false;
}

void server_version(const char *program, char out[BENCH_VERSION_BYTES])
{
    char path[SERVER_PATH_BYTES], why[BENCH_WHY_BYTES], line[1024] = "";
    out[0] = '\0';
    if (!server_find(program, program, path, why))
        return;
    strncat(path, " --version", sizeof path - strlen(path) - 1);
    FILE *from = popen(path, "re");
    if (from != NULL && fgets(line, sizeof line, from) != NULL)
        sscanf(line, "%*[^0-9]%31[0-9.]", out);
    if (from != NULL)
        pclose(from);
}

static const struct passwd *other_user(const char *user)
{
    const struct passwd *found = user == NULL || geteuid() != 0 ? NULL : getpwnam(user);
    if (user != NULL && geteuid() == 0 && found == NULL)
        bench_fail("there is no user '%s' to run a server as", user);
    return found;
}

static _Noreturn void become(const struct place *place, const char *const *arguments,
                             const struct passwd *user, int death_signal)
{
    char log[4200];
    snprintf(log, sizeof log, "%s/server.log", place->dir);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0 ||
        chdir(place->dir) < 0)
        _exit(126);
    if (user != NULL && (initgroups(user->pw_name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
                         setuid(user->pw_uid) < 0))
        _exit(126);
    if (death_signal != 0) /* after the change of user, which forgets it */
        prctl(PR_SET_PDEATHSIG, death_signal);
    execv(arguments[0], (char *const *)arguments);
    _exit(127);
}

void server_start(struct place *place, const char *const *arguments, const char *user,
                  int death_signal)
{
    const struct passwd *other = other_user(user);
    place->server = fork();
    if (place->server < 0)
        bench_fail("fork: %m");
    if (place->server == 0)
        become(place, arguments, other, death_signal);
}

void server_run(struct place *place, const char *const *arguments, const char *user)
{
    const struct passwd *other = other_user(user);
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        become(place, arguments, other, SIGKILL);
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        bench_fail("%s ended with status %d", arguments[0], status);
}

void server_apart(struct place *place, void (*fn)(struct place *place))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fn(place);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        bench_fail("a server could not be made ready");
}

void server_check(struct place *place, const char *name)
{
    siginfo_t ended = {0}; /* the server may be the child of another process than this */
    if (kill(place->server, 0) < 0 ||
        (waitid(P_PID, (id_t)place->server, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == place->server))
        bench_fail("%s ended; see server.log", name);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

void server_stop(struct place *place, int with_signal)
{
    if (place->server <= 0)
        return;
    kill(place->server, with_signal);
    for (int i = 0; i < STOP_SECONDS * 100; i++) {
        if (waitpid(place->server, NULL, WNOHANG) != 0) {
            place->server = 0;
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(place->server, SIGKILL);
    waitpid(place->server, NULL, 0);
    place->server = 0;
}

unsigned server_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        bench_fail("no free port: %m");
    close(fd);
    return ntohs(address.sin_port);
}

void server_give(const char *dir, const char *user)
{
    const struct passwd *other = other_user(user);
    if (other != NULL && chown(dir, other->pw_uid, other->pw_gid) < 0)
        bench_fail("give %s to %s: %m", dir, user);
}
