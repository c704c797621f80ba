/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a durable append costs, beside the least it can cost.
 *
 *   bench_append [DIR [SECONDS]]       DIR is on the disk to measure; default: the current
 *   directory
 *
 * In rounds, so that the neighbours of a shared machine disturb all three alike:
 *   bare      one thread: pwrite and fdatasync of 4096 bytes over a zero-filled file
 *   writer    one thread, one session, level sync
 *   threads   16 threads, a session each, level sync
 * Prints one JSON object: appends a second (medians over the rounds) and the two ratios.
 */
#include <annal/journal.h>
#include <annal/metrics.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS     9
#define THREADS    16
#define BARE_BYTES (4096 * 2048)
#define DATA_BYTES 1000 /* the median of real events */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void die(const char *what, const annal_error *err)
{
    fprintf(stderr, "bench_append: %s: %s\n", what, err == NULL ? "failed" : err->message);
    exit(3);
}

static double bare(const char *dir, double seconds)
{
    static char block[4096];
    char path[4096];
    snprintf(path, sizeof path, "%s/bench_append.bare", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        die(path, NULL);
    for (off_t at = 0; at < BARE_BYTES; at += (off_t)sizeof block) {
        if (pwrite(fd, block, sizeof block, at) != (ssize_t)sizeof block)
            die("fill", NULL);
    }
    fsync(fd);
    memset(block, 'x', DATA_BYTES);
    double start = now_s();
    long count = 0;
    while (now_s() - start < seconds) {
        off_t at = count % (BARE_BYTES / (off_t)sizeof block) * (off_t)sizeof block;
        if (pwrite(fd, block, sizeof block, at) != (ssize_t)sizeof block || fdatasync(fd) < 0)
            die("write", NULL);
        count++;
    }
    double rate = (double)count / (now_s() - start);
    close(fd);
    unlink(path);
    return rate;
}

struct worker {
    annal_store *store;
    char session[32];
    double until;
    long count;
};

static void *work(void *arg)
{
    struct worker *worker = arg;
    char data[DATA_BYTES + 16];
    annal_error err;
    annal_writer *writer;
    uint64_t seq;
    memset(data, 'x', sizeof data);
    memcpy(data, "{\"text\":\"", 9);
    memcpy(data + DATA_BYTES - 2, "\"}", 2);
    annal_draft draft = {.type = ANNAL_SLICE("message.added"), .data = {data, DATA_BYTES}};
    if (annal_writer_open(worker->store, annal_slice_of(worker->session), NULL, &writer, &err) < 0)
        die("open", &err);
    while (now_s() < worker->until) {
        if (annal_writer_append(writer, &draft, 1, NULL, &seq, &err) < 0)
            die("append", &err);
        worker->count++;
    }
    annal_writer_close(writer);
    return NULL;
}

static double writers(annal_store *store, int threads, double seconds)
{
    static struct worker workers[THREADS];
    pthread_t ids[THREADS];
    double start = now_s();
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){.store = store, .until = start + seconds};
        snprintf(workers[i].session, sizeof workers[i].session, "bench_%d_%d", threads, i);
        if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0)
            die("thread", NULL);
    }
    long count = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        count += workers[i].count;
    }
    return (double)count / (now_s() - start);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : ".";
    double seconds = argc > 2 ? atof(argv[2]) : 9;
    char path[4096];
    annal_error err;
    annal_store *store;
    snprintf(path, sizeof path, "%s/bench_append.store", dir);
    if (annal_store_open(path, &(annal_store_options){.create = true}, &store, &err) < 0)
        die("open", &err);

    double rates[3][ROUNDS], ratios[2][ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double slice = seconds / ROUNDS / 3;
        rates[0][i] = bare(dir, slice);
        rates[1][i] = writers(store, 1, slice);
        rates[2][i] = writers(store, THREADS, slice);
        ratios[0][i] = rates[1][i] / rates[0][i];
        ratios[1][i] = rates[2][i] / rates[1][i];
    }
    annal_metrics stats;
    annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &stats);
    if (annal_store_close(store, &err) < 0)
        die("close", &err);
    printf("{\"bare\":%.0f,\"writer\":%.0f,\"threads\":%.0f,\"writer_to_bare\":%.2f,"
           "\"threads_to_writer\":%.2f,\"groups\":%llu,\"events\":%llu,\"checkpoints\":%llu}\n",
           median(rates[0]), median(rates[1]), median(rates[2]), median(ratios[0]),
           median(ratios[1]), (unsigned long long)stats.groups, (unsigned long long)stats.events,
           (unsigned long long)stats.checkpoints);
    char remove[4200];
    snprintf(remove, sizeof remove, "rm -r '%s'", path);
    return system(remove) == 0 ? 0 : 3;
}
