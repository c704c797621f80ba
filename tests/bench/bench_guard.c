/*
 * What does a guard cost? Plain appends at level sync and guarded ones in turn, on one store and one
 * session; the medians of both, and their ratio.
 *
 *     bench_guard [ROUNDS [DIR]]
 *
 * The guard is a compare-and-set of one row: a task goes from ready to claimed and back. The store
 * is made in DIR (default: /tmp), which should be on a disk: over a sync that costs nothing every
 * ratio is large.
 */
#include "journal/base/clock.h"

#include <annal/journal.h>
#include <annal/pack.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS_MAX 100000

static const char pack[] = "-- pack tasks   version 1   database tasks.db\n"
                           "CREATE TABLE tasks (id TEXT PRIMARY KEY, state TEXT NOT NULL);\n"
                           "-- on task.added   guarded \"it is there already\"\n"
                           "INSERT INTO tasks VALUES ($id, 'ready');\n"
                           "-- on task.moved   guarded \"the task is not where it was expected\"\n"
                           "UPDATE tasks SET state = $to WHERE id = $id AND state = $from;\n";

static int64_t now_us(void)
{
    return annal__system_clock.monotonic_us(annal__system_clock.arg);
}

static void must(annal_status status, const annal_error *err)
{
    if (status == ANNAL_OK)
        return;
    fprintf(stderr, "%s: %s\n", annal_status_name(status), err->message);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static int64_t median(int64_t *times, unsigned count)
{
    qsort(times, count, sizeof *times, by_size);
    return times[count / 2];
}

static void write_pack(const char *dir)
{
    char path[700];
    snprintf(path, sizeof path, "%s/packs", dir);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/packs/tasks.sql", dir);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(pack, file) < 0 || fclose(file) != 0)
        perror(path);
}

int main(int argc, char **argv)
{
    static int64_t plain[ROUNDS_MAX], guarded[ROUNDS_MAX];
    static const char *const moves[] = {
        "{\"id\":\"a\",\"from\":\"ready\",\"to\":\"claimed\",\"run\":\"run_0123456789\"}",
        "{\"id\":\"a\",\"from\":\"claimed\",\"to\":\"ready\",\"run\":\"run_0123456789\"}"};
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2000;
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    char dir[600], command[700];
    uint64_t seq;
    if (rounds == 0 || rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    snprintf(dir, sizeof dir, "%s/annal-bench-guard-XXXXXX", argc > 2 ? argv[2] : "/tmp");
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    must(annal_store_open(dir, &(annal_store_options){.create = true}, &store, &err), &err);
    write_pack(dir);
    must(annal_index_open(store, NULL, &index, &err), &err);
    must(annal_writer_open(store, ANNAL_SLICE("proj"), NULL, &writer, &err), &err);
    const annal_draft add = {.type = ANNAL_SLICE("task.added"),
                             .data = ANNAL_SLICE("{\"id\":\"a\"}")};
    must(annal_pack_append(index, writer, &add, 1, NULL, NULL, &err), &err);
    for (unsigned i = 0; i < rounds; i++) {
        const annal_draft note = {.type = ANNAL_SLICE("note.added"),
                                  .data = annal_slice_of(moves[i % 2])};
        const annal_draft move = {.type = ANNAL_SLICE("task.moved"),
                                  .data = annal_slice_of(moves[i % 2])};
        int64_t begun = now_us();
        must(annal_writer_append(writer, &note, 1, NULL, &seq, &err), &err);
        int64_t between = now_us();
        must(annal_pack_append(index, writer, &move, 1, NULL, NULL, &err), &err);
        plain[i] = between - begun;
        guarded[i] = now_us() - between;
    }
    int64_t plain_us = median(plain, rounds), guarded_us = median(guarded, rounds);
    printf("plain sync append   %6lld us (median of %u)\n", (long long)plain_us, rounds);
    printf("guarded append      %6lld us, %.2f times\n", (long long)guarded_us,
           (double)guarded_us / (double)plain_us);
    annal_writer_close(writer);
    annal_index_close(index);
    must(annal_store_close(store, &err), &err);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command) == 0 ? 0 : 1;
}
