/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run one test for CTest, and clean up after it.
 *
 *     run_test SECONDS PROGRAM [ARGUMENT…]
 *     run_test --clean
 *
 * (1) The test has a directory of its own in $TMPDIR, which becomes its $TMPDIR, and another one in
 *     /tmp, $ANNAL_TEST_SERVERS. Both are removed when the test passes; a test that fails keeps
 *     them for inspection. This program holds a lock on each directory. Each run of CTest begins
 *     with --clean, which removes directories that no process has locked: those of this build at
 *     once, those of other builds when they are an hour old.
 * (2) The test and all its descendants die with this program, which is two processes: the outer
 *     process, which CTest started, and its child, the keeper. The keeper adopts orphans. When the
 *     test ends, the keeper kills the descendants that still run. It does the same when the outer
 *     process dies; the outer process does it when the keeper dies.
 * (3) The test writes into a pipe of the keeper, which copies the output. No descendant of the
 *     test has the pipe of CTest, so none can keep CTest waiting.
 * (4) A test that takes longer than SECONDS has hung: the keeper lists its processes and kills
 *     them. The limit of CTest is a minute longer.
 * (5) The last line of the output says what the test cost: the processor time of all its
 *     processes, which depends little on what else the machine does. make test adds these up.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { PATH_BYTES = 400, HOUR = 3600, FAILED = 99 };

struct place {
    char path[PATH_BYTES];
    int fd; /* has the lock */
};

static _Noreturn void fail(const char *what, const char *on)
{
    fprintf(stderr, "run_test: %s %s: %s\n", what, on, strerror(errno));
    exit(FAILED);
}

/* ---- Directories ---- */

/* Of the path of this program, which each build has in another place. */
static void print_prefix(char *prefix, size_t bytes)
{
    char self[4096] = "";
    uint32_t hash = 2166136261u;
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        fail("read", "/proc/self/exe");
    for (const char *at = self; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    snprintf(prefix, bytes, "annal-%06x-", hash & 0xffffffu);
}

static void run(const char *const *words)
{
    pid_t pid;
    if (posix_spawnp(&pid, words[0], NULL, NULL, (char *const *)words, environ) == 0)
        waitpid(pid, NULL, 0);
}

static void remove_tree(const char *path)
{
    struct stat info;
    if (rmdir(path) == 0 || errno == ENOENT)
        return;
    run((const char *const[]){"chmod", "-R", "u+rwx", path, NULL});
    run((const char *const[]){"rm", "-rf", "--", path, NULL});
    if (lstat(path, &info) == 0)
        fprintf(stderr, "run_test: '%s' could not be removed\n", path);
}

/* A directory without its lock may be removed under our hands by --clean. */
static void make_place(struct place *place, const char *base)
{
    char prefix[32];
    struct stat ours, there;
    print_prefix(prefix, sizeof prefix);
    for (;;) {
        snprintf(place->path, sizeof place->path, "%s/%sXXXXXX", base, prefix);
        if (mkdtemp(place->path) == NULL)
            fail("create a directory in", base);
        place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (place->fd >= 0 && flock(place->fd, LOCK_EX) == 0 && fstat(place->fd, &ours) == 0 &&
            stat(place->path, &there) == 0 && ours.st_ino == there.st_ino)
            break;
        if (place->fd >= 0)
            close(place->fd);
    }
    if (fchmod(place->fd, 0711) < 0) /* servers run as another user */
        fail("open", place->path);
}

static bool is_place(const char *name)
{
    return strncmp(name, "annal-", 6) == 0 && strspn(name + 6, "0123456789abcdef") == 6 &&
           name[12] == '-' && strlen(name) == 19;
}

static void clean_one(const char *base, const char *name, const char *prefix)
{
    char path[PATH_BYTES + 32];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", base, name);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    bool stale = fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
                 flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                 (strncmp(name, prefix, strlen(prefix)) == 0 || info.st_mtime < time(NULL) - HOUR);
    if (stale)
        remove_tree(path);
    close(fd);
}

static void clean(const char *base)
{
    char prefix[32];
    DIR *entries = base == NULL ? NULL : opendir(base);
    const struct dirent *entry;
    print_prefix(prefix, sizeof prefix);
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        if (is_place(entry->d_name))
            clean_one(base, entry->d_name, prefix);
    if (entries != NULL)
        closedir(entries);
}

/* ---- Processes ---- */

/* The children of a process, one after the other: *at begins as 0. */
static pid_t next_child(pid_t parent, size_t *at)
{
    char path[64];
    pid_t child = 0;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)parent, (long)parent);
    FILE *file = fopen(path, "re");
    for (size_t i = 0; file != NULL && i <= *at; i++)
        if (fscanf(file, "%d", &child) != 1)
            child = 0;
    if (file != NULL)
        fclose(file);
    ++*at;
    return child;
}

static void list_processes(pid_t parent)
{
    size_t at = 0;
    pid_t child;
    while ((child = next_child(parent, &at)) > 0) {
        char path[64], state[200] = "";
        snprintf(path, sizeof path, "/proc/%ld/stat", (long)child);
        FILE *file = fopen(path, "re");
        if (file != NULL) {
            (void)!fgets(state, sizeof state, file);
            fclose(file);
        }
        printf("run_test: process %.60s…\n", state);
        list_processes(child);
    }
}

/* Orphans become children of the keeper when their parents end. */
static void kill_rest(pid_t test)
{
    pid_t pid;
    do {
        size_t at = 0;
        if (test > 0)
            kill(-test, SIGKILL);
        while ((pid = next_child(getpid(), &at)) > 0)
            kill(pid, SIGKILL);
        pid = waitpid(-1, NULL, 0);
    } while (pid > 0 || errno == EINTR);
}

static pid_t start_test(char **words, int output, const sigset_t *mask,
                        const struct place places[2])
{
    pid_t keeper = getpid(), pid = fork();
    if (pid < 0)
        fail("start", words[0]);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(FAILED);
    setsid();
    sigprocmask(SIG_SETMASK, mask, NULL);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    setenv("TMPDIR", places[0].path, 1);
    setenv("ANNAL_TEST_SERVERS", places[1].path, 0);
    execvp(words[0], words);
    fail("start", words[0]);
}

/* False: there is nothing more at the moment. */
static bool copy_output(int from)
{
    char bytes[65536];
    ssize_t got = read(from, bytes, sizeof bytes);
    for (ssize_t at = 0, put = 0; at < got && put >= 0; at += put)
        put = write(STDOUT_FILENO, bytes + at, (size_t)(got - at));
    return got > 0;
}

/* Whether the test ended; *how is its status then. */
static bool reap(pid_t test, int *how)
{
    bool ended = false;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        ended |= pid == test;
        if (pid == test)
            *how = status;
    }
    return ended;
}

/* The exit status of the test. */
static int watch(pid_t test, int output, int signals, int64_t seconds)
{
    const time_t end = time(NULL) + seconds;
    struct pollfd ready[2] = {{.fd = output, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    struct signalfd_siginfo signal_info;
    for (;;) {
        int how = 0;
        int64_t left = end - time(NULL);
        if (left <= 0) {
            printf("run_test: this took longer than %lld s, so it was killed\n",
                   (long long)seconds);
            list_processes(getpid());
            return FAILED;
        }
        (void)!poll(ready, 2, (int)left * 1000);
        if (ready[0].revents != 0 && !copy_output(output))
            ready[0].fd = -1; /* the test closed it */
        if (ready[1].revents == 0 ||
            read(signals, &signal_info, sizeof signal_info) != sizeof signal_info)
            continue;
        if (signal_info.ssi_signo != SIGCHLD)
            return FAILED;
        if (!reap(test, &how))
            continue;
        if (WIFSIGNALED(how))
            printf("run_test: the test was killed by signal %d\n", WTERMSIG(how));
        return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    }
}

static void print_cost(void)
{
    struct rusage cost;
    if (getrusage(RUSAGE_CHILDREN, &cost) == 0)
        printf("run_test: %.2f s of processor time\n",
               (double)(cost.ru_utime.tv_sec + cost.ru_stime.tv_sec) +
                   (double)(cost.ru_utime.tv_usec + cost.ru_stime.tv_usec) / 1e6);
}

static _Noreturn void keep(char **words, int64_t seconds, pid_t outer)
{
    const char *base = getenv("TMPDIR");
    struct place places[2];
    int ends[2];
    sigset_t all, before;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&all);
    for (size_t i = 0; i < 4; i++)
        sigaddset(&all, (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP}[i]);
    sigprocmask(SIG_BLOCK, &all, &before);
    if (getppid() != outer)
        exit(FAILED);
    int signals = signalfd(-1, &all, SFD_CLOEXEC);
    if (signals < 0 || pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
        fail("make", "a pipe");
    make_place(&places[0], base == NULL ? "/tmp" : base);
    make_place(&places[1], "/tmp");
    setvbuf(stdout, NULL, _IONBF, 0);

    pid_t test = start_test(words, ends[1], &before, places);
    close(ends[1]);
    int status = watch(test, ends[0], signals, seconds);
    kill_rest(test);
    while (copy_output(ends[0]))
        ;
    print_cost();
    for (size_t i = 0; i < 2; i++)
        if (status == 0 || status == 77 || rmdir(places[i].path) == 0)
            remove_tree(places[i].path);
        else
            printf("run_test: the test left '%s'\n", places[i].path);
    exit(status);
}

int main(int argc, char **argv)
{
    int status = 0;
    if (argc == 2 && strcmp(argv[1], "--clean") == 0) {
        clean("/tmp");
        clean("/dev/shm");
        clean("/var/tmp");
        clean(getenv("TMPDIR"));
        return 0;
    }
    if (argc < 3) {
        fprintf(stderr, "usage: run_test SECONDS PROGRAM [ARGUMENT…]\n       run_test --clean\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t outer = getpid(), keeper = fork();
    if (keeper == 0)
        keep(argv + 2, strtoll(argv[1], NULL, 10), outer);
    if (keeper < 0 || waitpid(keeper, &status, 0) != keeper)
        fail("start", argv[2]);
    kill_rest(0); /* nothing, unless the keeper was killed */
    return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}
