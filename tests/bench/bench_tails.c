/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of appends while tails follow the store.
 *
 *   bench_tails [DIR [APPENDS]]     DIR is on the disk to measure; default: the current directory
 *
 * One thread appends events of 1,000 bytes to eight sessions in turn, at level sync. The followers
 * are: none; one tail; 1,000 tails in this process, each in a thread; 1,000 descriptors in one
 * epoll loop; 200 processes. Half of the tails follow one session, half all sessions. Cases take
 * turns in rounds, so that other programs on a shared machine disturb all of them equally. Every
 * tail must get every event once, and checks that. Prints one JSON object: appends per second
 * (medians), their ratio to appends without followers, the number of events given, and the seconds
 * until the last tail had its last event.
 */
#include <annal/tail.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS     5
#define SESSIONS   8
#define TAILS      1000
#define PROCESSES  200
#define DATA_BYTES 1000

enum { NOBODY, ONE, THREADS, LOOP, PROCESSES_APART, KINDS };

static const char *const kinds[KINDS] = {"nobody", "one", "threads_1000", "epoll_1000",
                                         "processes_200"};
static const size_t tails_of[KINDS] = {0, 1, TAILS, TAILS, PROCESSES};

/* Shared with the processes. */
struct shared {
    _Atomic uint64_t ready;
    _Atomic uint64_t given;
    _Atomic uint64_t wrong;
    _Atomic uint64_t last_seq[SESSIONS]; /* what is appended, when done */
    _Atomic bool done;
};

static struct shared *shared;
static const char *path;
static annal_store *store;
static unsigned appends = 4000;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void die(const char *what, const annal_error *err)
{
    fprintf(stderr, "bench_tails: %s: %s\n", what, err == NULL ? "failed" : err->message);
    exit(3);
}

static annal_slice session_of(size_t i)
{
    static const char *const names[SESSIONS] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
    return annal_slice_of(names[i % SESSIONS]);
}

/* ---- One tail ---- */

struct follower {
    size_t number;
    annal_tail *tail;
    uint64_t next[SESSIONS];
    uint64_t given;
    pthread_t thread;
};

static bool follows(const struct follower *follower, size_t session)
{
    return follower->number % 2 == 0 || follower->number / 2 % SESSIONS == session;
}

static void follower_open(struct follower *follower, annal_store *of)
{
    annal_error err = {0};
    annal_slice one = session_of(follower->number / 2);
    annal_tail_options options = {.from_now = true};
    if (follower->number % 2 == 1) {
        options.sessions = &one;
        options.session_count = 1;
    }
    for (size_t i = 0; i < SESSIONS; i++) {
        annal_session_info info = {0};
        follower->next[i] = 1; /* for a session that does not exist yet */
        if (annal_session_info_get(of, session_of(i), &info, NULL) == ANNAL_OK)
            follower->next[i] = info.last_seq + 1;
    }
    if (annal_tail_open(of, &options, &follower->tail, &err) < 0)
        die("open a tail", &err);
    atomic_fetch_add(&shared->ready, 1);
}

/* Whether it has all that is appended. */
static bool has_all(const struct follower *follower)
{
    if (!atomic_load(&shared->done))
        return false;
    for (size_t i = 0; i < SESSIONS; i++) {
        if (follows(follower, i) && follower->next[i] <= atomic_load(&shared->last_seq[i]))
            return false;
    }
    return true;
}

static annal_status follower_next(struct follower *follower, uint32_t timeout_ms)
{
    annal_event event;
    annal_error err = {0};
    annal_status status = annal_tail_next(follower->tail, timeout_ms, &event, &err);
    if (status < 0)
        die("follow", &err);
    if (status == ANNAL_OK) {
        size_t session = (size_t)(annal_tail_session(follower->tail).ptr[1] - '0');
        if (event.seq != follower->next[session])
            atomic_fetch_add(&shared->wrong, 1);
        follower->next[session] = event.seq + 1;
        follower->given++;
    }
    return status;
}

static void follower_close(struct follower *follower)
{
    atomic_fetch_add(&shared->given, follower->given);
    annal_tail_close(follower->tail);
    follower->tail = NULL;
}

static void *follow(void *arg)
{
    struct follower *follower = arg;
    follower_open(follower, store);
    while (!has_all(follower))
        (void)follower_next(follower, 100);
    follower_close(follower);
    return NULL;
}

static void *follow_many(void *arg)
{
    struct follower *followers = arg;
    struct epoll_event ready[64];
    annal_error err = {0};
    int loop = epoll_create1(0);
    size_t left = TAILS;
    for (size_t i = 0; i < TAILS; i++) {
        int fd = -1;
        follower_open(&followers[i], store);
        if (annal_tail_fd(followers[i].tail, &fd, &err) < 0)
            die("a descriptor", &err);
        struct epoll_event on = {.events = EPOLLIN, .data.ptr = &followers[i]};
        if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &on) < 0)
            die("epoll", NULL);
    }
    while (left > 0) {
        int some = epoll_wait(loop, ready, 64, 100);
        for (int i = 0; i < some; i++) {
            while (follower_next(ready[i].data.ptr, 0) == ANNAL_OK)
                ;
        }
        for (size_t i = 0; i < TAILS && atomic_load(&shared->done); i++) {
            if (followers[i].tail != NULL && has_all(&followers[i])) {
                follower_close(&followers[i]);
                left--;
            }
        }
    }
    close(loop);
    return NULL;
}

static void follow_apart(size_t number)
{
    struct follower follower = {.number = number};
    annal_error err = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (annal_store_open(path, &(annal_store_options){.no_keeper = true}, &store, &err) < 0)
        die("open the store in a process", &err);
    (void)follow(&follower);
    annal_store_close(store, NULL);
    _exit(0);
}

/* ---- A round ---- */

struct result {
    double rates[ROUNDS];
    double drains[ROUNDS];
    uint64_t given;
};

static double append_all(void)
{
    static char data[DATA_BYTES];
    annal_writer *writers[SESSIONS] = {NULL};
    annal_error err = {0};
    memset(data, 'x', sizeof data);
    data[0] = data[sizeof data - 1] = '"';
    const annal_draft draft = {.type = ANNAL_SLICE("tool.returned"), .data = {data, sizeof data}};
    for (size_t i = 0; i < SESSIONS; i++)
        if (annal_writer_open(store, session_of(i), NULL, &writers[i], &err) < 0)
            die("open a writer", &err);
    double begun = now_s();
    for (unsigned i = 0; i < appends; i++) {
        uint64_t seq;
        if (annal_writer_append(writers[i % SESSIONS], &draft, 1, NULL, &seq, &err) < 0)
            die("append", &err);
        atomic_store(&shared->last_seq[i % SESSIONS], seq);
    }
    double rate = appends / (now_s() - begun);
    atomic_store(&shared->done, true);
    for (size_t i = 0; i < SESSIONS; i++)
        annal_writer_close(writers[i]);
    return rate;
}

static void wait_ready(size_t count)
{
    while (atomic_load(&shared->ready) < count)
        usleep(1000);
    usleep(100000);
}

static void run(int kind, int round, struct result *result)
{
    static struct follower followers[TAILS];
    static pid_t pids[PROCESSES];
    pthread_t loop = {0};
    annal_error err = {0};
    memset(followers, 0, sizeof followers);
    memset(shared, 0, sizeof *shared);
    for (size_t i = 0; kind == PROCESSES_APART && i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            follow_apart(i);
    }
    if (annal_store_open(path, &(annal_store_options){.create = true}, &store, &err) < 0)
        die("open the store", &err);
    for (size_t i = 0; i < TAILS; i++)
        followers[i].number = i;
    for (size_t i = 0; (kind == ONE || kind == THREADS) && i < tails_of[kind]; i++) {
        if (pthread_create(&followers[i].thread, NULL, follow, &followers[i]) != 0)
            die("start a thread", NULL);
    }
    if (kind == LOOP && pthread_create(&loop, NULL, follow_many, followers) != 0)
        die("start a thread", NULL);
    wait_ready(tails_of[kind]);
    result->rates[round] = append_all();
    double begun = now_s();
    for (size_t i = 0; (kind == ONE || kind == THREADS) && i < tails_of[kind]; i++)
        pthread_join(followers[i].thread, NULL);
    if (kind == LOOP)
        pthread_join(loop, NULL);
    for (size_t i = 0; kind == PROCESSES_APART && i < PROCESSES; i++)
        waitpid(pids[i], NULL, 0);
    result->drains[round] = now_s() - begun;
    result->given += atomic_load(&shared->given);
    if (atomic_load(&shared->wrong) > 0)
        die("an event was missed or came twice", NULL);
    if (annal_store_close(store, &err) < 0)
        die("close the store", &err);
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    static struct result results[KINDS];
    char root[4096], command[5000];
    snprintf(root, sizeof root, "%s/bench-tails-XXXXXX", argc > 1 ? argv[1] : ".");
    if (argc > 2)
        appends = (unsigned)strtoul(argv[2], NULL, 10);
    path = mkdtemp(root);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (path == NULL || shared == MAP_FAILED)
        die("make a directory", NULL);
    for (int round = 0; round < ROUNDS; round++) {
        for (int kind = 0; kind < KINDS; kind++)
            run(kind, round, &results[kind]);
    }
    printf("{\"appends\":%u", appends);
    double alone = median(results[NOBODY].rates);
    for (int kind = 0; kind < KINDS; kind++) {
        double rate = median(results[kind].rates);
        printf(
            ",\"%s\":{\"appends_s\":%.0f,\"share\":%.2f,\"events_given\":%llu,\"drained_s\":%.2f}",
            kinds[kind], rate, rate / alone, (unsigned long long)results[kind].given / ROUNDS,
            median(results[kind].drains));
    }
    printf("}\n");
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    return system(command) == 0 ? 0 : 3;
}
