/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a guard. For each pack, plain and guarded appends at level sync in turn, on one store
 * and one session: the medians of both, their ratio, and the processor time of each.
 *
 *     bench_guard [ROUNDS [DIR [CASE]]]
 *
 * The user's pack is a compare-and-set of one row: a task goes from ready to claimed and back. The
 * store is created in DIR (default: /tmp), which should be on a disk: beside a sync that costs
 * nothing, every ratio is large. CASE is the first word of a line; under callgrind it counts
 * instructions.
 */
#include "journal/base/clock.h"

#include <annal/journal.h>
#include <annal/pack.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 100000
#define STEPS_MAX  3

static const char pack[] = "-- pack tasks   version 1   database tasks.db\n"
                           "CREATE TABLE tasks (id TEXT PRIMARY KEY, state TEXT NOT NULL);\n"
                           "-- on task.added   guarded \"it is there already\"\n"
                           "INSERT INTO tasks VALUES ($id, 'ready');\n"
                           "-- on task.moved   guarded \"the task is not where it was expected\"\n"
                           "UPDATE tasks SET state = $to WHERE id = $id AND state = $from;\n";

/* One event; %u in data is the number of the round. */
struct step {
    const char *type;
    const char *data;
};

struct bench {
    const char *name;
    const char *pack; /* NULL: none is switched on */
    const char *session;
    struct step before[STEPS_MAX]; /* once */
    struct step each[STEPS_MAX];   /* in each round, not timed */
    struct step even, odd;         /* what is timed; odd.type NULL: even in all rounds */
};

static const struct bench benches[] = {
    {.name = "core: turn.started",
     .session = "sess_bench",
     .before = {{"session.created", "{\"agent_id\":\"a\"}"}},
     .even = {"turn.started", "{\"turn_id\":\"t%u\"}"}},
    {.name = "teams: team.message",
     .pack = "teams",
     .session = "team_bench",
     .before = {{"team.created", "{\"name\":\"n\",\"members\":[\"a\",\"b\"]}"}},
     .even = {"team.message", "{\"id\":\"m%u\",\"sender\":\"a\",\"content\":\"It is done.\"}"}},
    {.name = "lionagi: message.added",
     .pack = "lionagi",
     .session = "sess_lion",
     .before = {{"session.created", "{\"agent_id\":\"a\"}"}},
     .even = {"message.added",
              "{\"id\":\"m%u\",\"role\":\"user\",\"content\":{\"text\":\"What is next?\"}}"}},
    {.name = "agentweaver: backlog.claimed",
     .pack = "agentweaver",
     .session = "proj_bench",
     .before = {{"project.created", "{\"name\":\"P\"}"}},
     .each = {{"backlog.captured", "{\"task_id\":\"t%u\",\"title\":\"task\"}"},
              {"backlog.committed", "{\"task_id\":\"t%u\"}"}},
     .even = {"backlog.claimed", "{\"task_id\":\"t%u\",\"run\":{\"id\":\"run%u\"}}"}},
    {.name = "prose: binding.set",
     .pack = "prose",
     .session = "prose_20261120-120000-abcdef",
     .before = {{"run.started",
                 "{\"id\":\"20261120-120000-abcdef\",\"program_path\":\"p.prose\"}"}},
     .even = {"binding.set", "{\"name\":\"b%u\",\"value\":\"a finding of some words\"}"}},
    {.name = "user: compare and set",
     .session = "sess_user",
     .before = {{"task.added", "{\"id\":\"a\"}"}},
     .even = {"task.moved", "{\"id\":\"a\",\"from\":\"ready\",\"to\":\"claimed\"}"},
     .odd = {"task.moved", "{\"id\":\"a\",\"from\":\"claimed\",\"to\":\"ready\"}"}},
};

static int64_t now_us(void)
{
    return annal__system_clock.monotonic_us(annal__system_clock.arg);
}

/* Of the whole process: the thread that writes the journal counts, too. */
static int64_t cpu_us(void)
{
    struct timespec time = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
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

static long long median(int64_t *times, unsigned count)
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

/* Append one event, asking guards when there is an index. */
static void append(annal_index *index, annal_writer *writer, const char *type, const char *format,
                   unsigned round)
{
    char data[400];
    annal_error err = {0};
    uint64_t seq;
    size_t len = 0;
    for (; *format != '\0' && len + 16 < sizeof data; format++)
        if (format[0] == '%' && format[1] == 'u') {
            len += (size_t)snprintf(data + len, 16, "%u", round);
            format++;
        } else {
            data[len++] = *format;
        }
    const annal_draft draft = {.type = annal_slice_of(type), .data = {data, len}};
    if (index == NULL)
        must(annal_writer_append(writer, &draft, 1, NULL, &seq, &err), &err);
    else
        must(annal_pack_append(index, writer, &draft, 1, NULL, NULL, &err), &err);
}

static void append_all(annal_index *index, annal_writer *writer, const struct step *steps,
                       unsigned round)
{
    for (size_t i = 0; i < STEPS_MAX && steps[i].type != NULL; i++)
        append(index, writer, steps[i].type, steps[i].data, round);
}

static void measure(annal_store *store, annal_index *index, const struct bench *bench,
                    unsigned rounds)
{
    static int64_t plain[ROUNDS_MAX], guarded[ROUNDS_MAX];
    annal_error err = {0};
    annal_writer *writer = NULL;
    int64_t plain_cpu = 0, guarded_cpu = 0;
    must(annal_writer_open(store, annal_slice_of(bench->session), NULL, &writer, &err), &err);
    append_all(index, writer, bench->before, 0);
    for (unsigned i = 0; i < rounds; i++) {
        const struct step *step =
            i % 2 == 1 && bench->odd.type != NULL ? &bench->odd : &bench->even;
        append_all(index, writer, bench->each, i);
        int64_t cpu = cpu_us(), begun = now_us();
        append(NULL, writer, "note.added", step->data, i);
        int64_t cpu_between = cpu_us(), between = now_us();
        append(index, writer, step->type, step->data, i);
        plain[i] = between - begun;
        guarded[i] = now_us() - between;
        plain_cpu += cpu_between - cpu;
        guarded_cpu += cpu_us() - cpu_between;
    }
    annal_writer_close(writer);
    long long plain_us = median(plain, rounds), guarded_us = median(guarded, rounds);
    printf("%-30s %8lld %8lld %6.2f %8lld %8lld\n", bench->name, plain_us, guarded_us,
           (double)guarded_us / (double)plain_us, (long long)plain_cpu / rounds,
           (long long)guarded_cpu / rounds);
    fflush(stdout);
}

/* In a store of its own. */
static int run(const struct bench *bench, const char *parent, unsigned rounds)
{
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    char dir[600], command[700];
    snprintf(dir, sizeof dir, "%s/annal-bench-guard-XXXXXX", parent);
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    must(annal_store_open(dir, &(annal_store_options){.create = true}, &store, &err), &err);
    write_pack(dir);
    if (bench->pack != NULL)
        must(annal_pack_enable(store, bench->pack, NULL, &err), &err);
    must(annal_index_open(store, NULL, &index, &err), &err);
    measure(store, index, bench, rounds);
    annal_index_close(index);
    must(annal_store_close(store, &err), &err);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
    const char *parent = argc > 2 ? argv[2] : "/tmp";
    const char *wanted = argc > 3 ? argv[3] : "";
    int failed = 0;
    if (rounds == 0 || rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    printf("%-30s %8s %8s %6s %8s %8s\n", "us, medians; cpu: means", "plain", "guarded", "ratio",
           "cpu", "cpu");
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        if (strncmp(benches[i].name, wanted, strlen(wanted)) == 0)
            failed |= run(&benches[i], parent, rounds);
    return failed;
}
