/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal-bench: Annal beside its alternatives, in one run, on this machine.
 *
 * Contenders take turns in each workload several times, so that other programs on a shared machine
 * disturb all of them equally. Their events are read back and compared.
 */
#include "tests/bench/compare/bench.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: annal-bench [--quick] [--only NAME,…] [--runs N] [--dir DIR] [--out DIR]\n"
    "                   [--seed N] [--half] [--no-fill] [--list] [--growth [--long]]\n"
    "\n"
    "  --quick      short runs, under three minutes on a machine that does nothing else; memory "
    "is\n"
    "               filled only in part\n"
    "  --only       these workloads, curves and contenders: --only A1,A2-threads,annal,raw\n"
    "  --runs N     of each, medians of which are reported; default 3, with --quick 1\n"
    "  --dir DIR    on the disk to measure; default: the current directory\n"
    "  --out DIR    where results.json and results.md go; default: only to stdout, as Markdown\n"
    "  --seed N     other payloads\n"
    "  --half       payloads of 1.6 KB on average instead of 3.1 KB\n"
    "  --no-fill    leave free memory as it is; by default it is filled with clean page cache\n"
    "  --list       name the workloads and contenders, and those that cannot run here\n"
    "  --growth     instead: how rates change with sessions, processes, events and sizes, as\n"
    "               pictures in --out; once each, unless --runs says more\n"
    "  --long       with --growth: up to 30,000,000 events, which takes hours and 40 GB\n";

#define QUICK_READS                                                                                \
    .quick_events = 10000, .tiny_events = 2000, .quick_seconds = 0.4, .tiny_sessions = 2

/* Numbers of events and seconds for a whole run, for --quick, and for --tiny. */
struct plan {
    struct workload workload;
    uint64_t quick_events, tiny_events;
    double quick_seconds;
    unsigned tiny_sessions;
};

#define APPENDS .kind = WORKLOAD_APPEND, .batch = 1, .stretch = 1, .seconds = 5
#define READS                                                                                      \
    .processes = 1, .threads = 1, .sessions = 10, .batch = 1000, .stretch = 10, .events = 200000

static struct plan plans[] = {
    {{.name = "A1",
      .title = "one writer, each event durable",
      .processes = 1,
      .threads = 1,
      .sessions = 1,
      APPENDS},
     .quick_seconds = 0.4},
    {{.name = "A2-threads",
      .title = "16 writers with a session each, threads of one process",
      .processes = 1,
      .threads = 16,
      .sessions = 16,
      APPENDS},
     .quick_seconds = 0.4},
    {{.name = "A2-processes",
      .title = "16 writers with a session each, as 16 processes",
      .processes = 16,
      .threads = 1,
      .sessions = 16,
      APPENDS},
     .quick_seconds = 0.4},
    {{.name = "A3",
      .title = "bulk over 100 sessions, durable every 1,000 events",
      .kind = WORKLOAD_APPEND,
      .processes = 1,
      .threads = 1,
      .sessions = 100,
      .batch = 1000,
      .stretch = 10,
      .events = 1000000,
      .settled = true},
     .quick_events = 20000,
     .tiny_events = 2000,
     .tiny_sessions = 10},
    {{.name = "A4",
      .title = "1,000 sessions in turn, one durable point a round",
      .kind = WORKLOAD_APPEND,
      .processes = 1,
      .threads = 1,
      .sessions = 1000,
      .batch = 1000,
      .stretch = 1,
      .seconds = 5},
     .quick_seconds = 0.4,
     .tiny_sessions = 20},
    {{.name = "R1",
      .title = "replay: 10 sessions of 20,000 events, each from its first",
      .kind = WORKLOAD_REPLAY,
      READS},
     .quick_events = 10000,
     .tiny_events = 2000,
     .tiny_sessions = 2},
    {{.name = "R2",
      .title = "50 events at a random place of 10 sessions",
      .kind = WORKLOAD_RANGE,
      READS,
      .seconds = 3},
     QUICK_READS},
    {{.name = "R3-window",
      .title = "events of one type in a hundredth of the time, with payload",
      .kind = WORKLOAD_WINDOW,
      READS,
      .seconds = 3},
     QUICK_READS},
    {{.name = "R3-count",
      .title = "how many events of a type there are, a question counting as one event",
      .kind = WORKLOAD_COUNT,
      READS,
      .seconds = 3},
     QUICK_READS},
    {{.name = "T1",
      .title = "from the begin of an append to another process's eyes",
      .kind = WORKLOAD_FOLLOW,
      .processes = 1,
      .threads = 1,
      .sessions = 1,
      .batch = 1,
      .stretch = 1,
      .seconds = 5},
     .quick_seconds = 0.4},
};
#define PLANS (sizeof plans / sizeof *plans)

#define SESSIONS_MAX 10000u

/* ---- The requested workloads and contenders ---- */

static bool is_workload(const char *name, size_t len)
{
    for (size_t i = 0; i < PLANS; i++)
        if (strlen(plans[i].workload.name) == len &&
            strncmp(plans[i].workload.name, name, len) == 0)
            return true;
    for (size_t i = 0; growth_name(i) != NULL; i++)
        if (strlen(growth_name(i)) == len && strncmp(growth_name(i), name, len) == 0)
            return true;
    return false;
}

static bool is_contender(const char *name, size_t len)
{
    for (const struct contender *const *at = contenders; *at != NULL; at++)
        if (strlen((*at)->name) == len && strncmp((*at)->name, name, len) == 0)
            return true;
    return false;
}

/* Read a list that has only names of workloads and contenders; report which of the two it has. */
static bool read_only_list(const char *list, bool *out_workloads, bool *out_contenders)
{
    for (const char *at = list; at != NULL && *at != '\0';) {
        const char *comma = strchrnul(at, ',');
        size_t len = (size_t)(comma - at);
        bool workload = is_workload(at, len), contender = is_contender(at, len);
        if (!workload && !contender) {
            fprintf(stderr, "annal-bench: --only: there is no '%.*s'; --list names all\n", (int)len,
                    at);
            return false;
        }
        *out_workloads |= workload;
        *out_contenders |= contender;
        at = *comma == ',' ? comma + 1 : comma;
    }
    return true;
}

static struct workload sized(const struct plan *plan, enum bench_size size)
{
    struct workload workload = plan->workload;
    if (size == WHOLE)
        return workload;
    if (workload.events != 0)
        workload.events = size == QUICK ? plan->quick_events : plan->tiny_events;
    if (size == TINY && plan->tiny_sessions != 0)
        workload.sessions = plan->tiny_sessions;
    if (workload.seconds > 0)
        workload.seconds = size == QUICK ? plan->quick_seconds : TINY_SECONDS;
    return workload;
}

static int parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"quick", no_argument, NULL, 'q'},      {"only", required_argument, NULL, 'o'},
        {"runs", required_argument, NULL, 'r'}, {"dir", required_argument, NULL, 'd'},
        {"out", required_argument, NULL, 'O'},  {"seed", required_argument, NULL, 's'},
        {"half", no_argument, NULL, 'H'},       {"no-fill", no_argument, NULL, 'n'},
        {"list", no_argument, NULL, 'l'},       {"growth", no_argument, NULL, 'g'},
        {"long", no_argument, NULL, 'L'},       {"tiny", no_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) >= 0;) {
        switch (option) {
        case 'q':
            options->size = QUICK;
            break;
        case 't':
            options->size = TINY;
            break; /* for the test of this program */
        case 'o':
            options->only = optarg;
            break;
        case 'r':
            options->runs = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'd':
            options->dir = optarg;
            break;
        case 'O':
            options->out = optarg;
            break;
        case 's':
            options->seed = strtoull(optarg, NULL, 10);
            break;
        case 'H':
            options->half = true;
            break;
        case 'n':
            options->no_fill = true;
            break;
        case 'l':
            options->list = true;
            break;
        case 'g':
            options->growth = true;
            break;
        case 'L':
            options->longest = true;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            return -1;
        }
    }
    if (options->runs == 0)
        options->runs = options->size == WHOLE && !options->growth ? 3 : 1;
    if (options->growth && options->out == NULL && !options->list) {
        fputs("annal-bench: --growth draws into --out, which is not given\n", stderr);
        return -1;
    }
    return optind == argc ? 0 : -1;
}

/* ---- Running ---- */

static struct workload workloads[PLANS];
static bool wanted[PLANS];

/* Returns how many failed; -1: no memory. */
static int run_all(struct bench *bench)
{
    int failed = 0;
    for (size_t i = 0; i < PLANS; i++) {
        for (unsigned n = 1; wanted[i] && n <= bench->options.runs; n++) {
            int more = bench_turn(bench, &workloads[i], bench->payloads, n);
            if (more < 0)
                return -1;
            failed += more;
        }
    }
    return failed;
}

static int list_all(void)
{
    for (size_t i = 0; i < PLANS; i++)
        printf("%-14s %s\n", workloads[i].name, workloads[i].title);
    fputs("with --growth:\n", stdout);
    for (size_t i = 0; growth_name(i) != NULL; i++)
        printf("%s\n", growth_name(i));
    putchar('\n');
    for (const struct contender *const *at = contenders; *at != NULL; at++) {
        char why[BENCH_WHY_BYTES], version[BENCH_VERSION_BYTES] = "-";
        if ((*at)->find != NULL && !(*at)->find(why))
            printf("%-14s cannot run here: %s\n", (*at)->name, why);
        else {
            if ((*at)->version != NULL)
                (*at)->version(version);
            printf("%-14s %-8s acknowledged: %s\n", (*at)->name, version, (*at)->promise);
        }
    }
    return 0;
}

/* ---- Results ---- */

static bool write_file(const struct bench *bench, const char *name,
                       void (*write)(const struct report *, FILE *))
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", bench->options.out, name);
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        fprintf(stderr, "annal-bench: write %s: %s\n", path, strerror(errno));
        return false;
    }
    write(&bench->report, file);
    return fclose(file) == 0;
}

static bool write_results(const struct bench *bench)
{
    if (bench->options.out == NULL) {
        report_markdown(&bench->report, stdout);
        return true;
    }
    if (mkdir(bench->options.out, 0777) < 0 && errno != EEXIST) {
        fprintf(stderr, "annal-bench: make %s: %s\n", bench->options.out, strerror(errno));
        return false;
    }
    return write_file(bench, "results.json", report_json) &&
           write_file(bench, "results.md", report_markdown);
}

static char *join(int argc, char **argv)
{
    size_t len = 1;
    for (int i = 0; i < argc; i++)
        len += strlen(argv[i]) + 1;
    char *command = calloc(1, len);
    for (int i = 0; command != NULL && i < argc; i++) {
        const char *slash = strrchr(argv[i], '/');
        strcat(command, i == 0 && slash != NULL ? slash + 1 : argv[i]);
        if (i + 1 < argc)
            strcat(command, " ");
    }
    return command;
}

static bool prepare(struct bench *bench, int argc, char **argv)
{
    if (!read_only_list(bench->options.only, &bench->some_workloads, &bench->some_contenders))
        return false;
    for (size_t i = 0; i < PLANS; i++) {
        workloads[i] = sized(&plans[i], bench->options.size);
        wanted[i] =
            !bench->some_workloads || bench_names(bench->options.only, plans[i].workload.name);
    }
    bench->payloads = payloads_new(
        bench->options.seed, bench->options.half ? PAYLOADS_HALF_MIX : PAYLOADS_MIX, SESSIONS_MAX);
    bench->report.command = join(argc, argv);
    if (bench->payloads == NULL || bench->report.command == NULL) {
        fputs("annal-bench: no memory\n", stderr);
        return false;
    }
    bench->report.seed = bench->options.seed;
    bench->report.filled = !bench->options.no_fill;
    bench->report.mean_bytes = payloads_mean_bytes(bench->payloads);
    return true;
}

#define MAKING_EVENTS 20000

/* What it costs to make an event, which is in every figure of processor time. */
static double measure_making(const struct payloads *payloads)
{
    struct batch batch = {0};
    uint64_t begin = cpu_self_us();
    for (uint64_t seq = 1; seq <= MAKING_EVENTS; seq++)
        batch_make(&batch, payloads, &(struct batch_key){0, seq}, 1);
    double spent = (double)(cpu_self_us() - begin);
    batch_done(&batch);
    return spent / MAKING_EVENTS;
}

static bool make_dir(struct bench *bench)
{
    char *dir = realpath(bench->options.dir, NULL);
    snprintf(bench->dir, sizeof bench->dir, "%s/annal-bench-XXXXXX", dir == NULL ? "" : dir);
    bool made = dir != NULL && mkdtemp(bench->dir) != NULL && chmod(bench->dir, 0755) == 0;
    if (!made)
        fprintf(stderr, "annal-bench: %s: %s\n", bench->options.dir, strerror(errno));
    free(dir);
    return made;
}

/* A file for each of 10,000 sessions, and then some. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void interrupt(int number)
{
    (void)number;
    run_interrupted = 1;
}

/* What is under way ends, and what it left is removed. */
static void heed_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.options = {.dir = ".", .seed = 1}};
    if (parse(argc, argv, &bench.options) < 0 || !prepare(&bench, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (bench.options.list)
        return list_all();
    raise_limit();
    heed_signals();
    if (!make_dir(&bench))
        return 3;
    bench.report.making_us = measure_making(bench.payloads);
    machine_look(bench.dir, &bench.report.machine);
    int failed = bench.options.growth ? growth_run(&bench) : run_all(&bench);
    remove_tree(bench.dir);
    if (run_interrupted)
        return 3;
    bool written = write_results(&bench);
    report_done(&bench.report);
    payloads_free(bench.payloads);
    return failed < 0 || !written ? 3 : failed > 0 ? 1 : 0;
}
