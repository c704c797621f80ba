/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shipping while shippers, networks and servers fail. A writer appends all the time; after each
 * fault it rests, the target catches up by itself, and must be what the journals are.
 */
#include "tests/ship/pg.h"
#include "tests/ship/proxy.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <annal/journal.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A shipper that has nothing to do looks at all heads after a minute: it must not take that. */
enum { SESSIONS = 4, DATA_MAX = 3000, CATCH_UP_S = 45 };

static void rest_ms(unsigned ms)
{
    nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
}

/* ---- The writer: a process of its own ---- */

struct writing {
    atomic_bool rest, rests;
    atomic_ullong events;
};

static void append_some(annal_store *store, struct writing *writing, struct random *random)
{
    static char data[DATA_MAX + 3];
    char session[20];
    annal_writer *writer = NULL;
    annal_draft drafts[3];
    uint64_t seq = 0, count = 1 + random_below(random, 3), len = random_below(random, DATA_MAX);
    memset(data, 'x', sizeof data);
    data[0] = data[len + 1] = '"';
    bool is_new = random_below(random, 50) == 0;
    snprintf(session, sizeof session, is_new ? "n%llu" : "s%llu",
             (unsigned long long)random_below(random, is_new ? 1000000 : SESSIONS));
    for (uint64_t i = 0; i < count; i++)
        drafts[i] = (annal_draft){.type = ANNAL_SLICE("fault.test"), .data = {data, len + 2}};
    const annal_writer_options options = {.level = ANNAL_LEVEL_BATCH};
    if (annal_writer_open(store, annal_slice_of(session), &options, &writer, NULL) < 0 ||
        annal_writer_append(writer, drafts, count, NULL, &seq, NULL) < 0)
        _exit(3);
    annal_writer_close(writer);
    atomic_fetch_add(&writing->events, count);
}

static _Noreturn void write_on(const char *path, struct writing *writing, struct random random)
{
    annal_store *store = NULL;
    const annal_store_options options = {.create = true};
    if (annal_store_open(path, &options, &store, NULL) < 0)
        _exit(2);
    for (unsigned appends = 0;;) {
        if (atomic_load(&writing->rest)) {
            if (!atomic_load(&writing->rests) && annal_store_sync(store, NULL) < 0)
                _exit(4);
            atomic_store(&writing->rests, true);
            rest_ms(2);
            appends = 0;
            continue;
        }
        atomic_store(&writing->rests, false);
        append_some(store, writing, &random);
        rest_ms(2 + appends++ / 20); /* a long round has not many more events than a short one */
    }
}

/* ---- The scene ---- */

static struct scene {
    struct pg pg;
    struct proxy proxy;
    struct random random;
    struct writing *writing;
    pid_t writer, shipper, second, pooler;
    char url[200];
    char socket[120]; /* a link to the socket of the server or the pooler */
    bool has_dump;    /* in the directory of the server */
} scene;

/* With --json the shipper ends when its output has no reader any more, also after a failure of this
 * process. */
static pid_t start_shipper(const char *batch)
{
    int in, out;
    const char *const words[] = {"ship", scene.url, "--as", "h1",     "--follow", "--timeout",
                                 "1",    "--batch", batch,  "--json", NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    close(in);
    return pid;
}

static void end(pid_t *pid)
{
    if (*pid > 0) {
        kill(*pid, SIGKILL);
        waitpid(*pid, NULL, 0);
    }
    *pid = 0;
}

static void point_at(const char *name)
{
    char path[120];
    snprintf(path, sizeof path, "%s/%s", scene.pg.dir, name);
    (void)unlink(scene.socket);
    ck_assert_int_eq(symlink(path, scene.socket), 0);
}

static bool begin(void)
{
    cli_setup();
    scene = (struct scene){.random = random_init(1)};
    if (!pg_start(&scene.pg))
        return false;
    snprintf(scene.socket, sizeof scene.socket, "%s", tmpdir_path(&cli.dir, "server"));
    point_at(".s.PGSQL.5432");
    pg_do(&scene.pg, "postgres", "CREATE DATABASE fleet");
    DONE(&cli, "ship", "schema");
    pg_do(&scene.pg, "fleet", cli.out);
    proxy_start(&scene.proxy, scene.socket);
    snprintf(scene.url, sizeof scene.url, "postgresql://boss@127.0.0.1:%d/fleet", scene.proxy.port);
    scene.writing = mmap(NULL, sizeof *scene.writing, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(scene.writing, MAP_FAILED);
    scene.writer = fork();
    ck_assert_int_ge(scene.writer, 0);
    if (scene.writer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_on(cli.store, scene.writing, scene.random);
    }
    while (atomic_load(&scene.writing->events) == 0)
        rest_ms(5);
    scene.shipper = start_shipper("50");
    return true;
}

static void finish(void)
{
    if (scene.pg.dir[0] != '\0') {
        end(&scene.shipper);
        end(&scene.second);
        end(&scene.writer);
        end(&scene.pooler);
        proxy_stop(&scene.proxy);
        munmap(scene.writing, sizeof *scene.writing);
    }
    pg_stop(&scene.pg);
    cli_teardown();
}

/* ---- Faults ---- */

static unsigned some(unsigned most)
{
    return (unsigned)random_below(&scene.random, most);
}

static void kill_the_shipper(void)
{
    rest_ms(some(150));
    end(&scene.shipper);
    rest_ms(some(100));
    scene.shipper = start_shipper("50");
}

static void cut_the_network(void)
{
    proxy_cut_after(&scene.proxy, some(60000));
    rest_ms(100);
    proxy_set(&scene.proxy, PROXY_CUT);
    rest_ms(some(400));
}

static void stall_the_network(void)
{
    proxy_set(&scene.proxy, PROXY_STALL);
    rest_ms(800 + some(800)); /* shorter and longer than the shipper waits */
}

static void slow_the_network(void)
{
    proxy_set(&scene.proxy, PROXY_SLOW);
    rest_ms(some(500));
}

static void kill_the_server(void)
{
    pg_kill(&scene.pg, some(2) == 0 ? SIGQUIT : SIGKILL);
    rest_ms(some(300));
    pg_restart(&scene.pg);
}

static void end_the_connections(void)
{
    for (unsigned i = some(4); i > 0; i--) {
        pg_do(&scene.pg, "postgres",
              "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'fleet'");
        rest_ms(some(60));
    }
}

static void ship_twice_at_once(void)
{
    scene.second = start_shipper("7");
    rest_ms(some(500));
    end(some(2) == 0 ? &scene.second : &scene.shipper);
    if (scene.shipper == 0) {
        scene.shipper = scene.second;
        scene.second = 0;
    }
}

static const char *dump(void)
{
    static char path[120];
    snprintf(path, sizeof path, "%s/dump", scene.pg.dir);
    return path;
}

static void take_a_dump(void)
{
    const char *const words[] = {"-h", scene.pg.dir, "-U", "boss", "-Fc", "fleet", NULL};
    pg_program(&scene.pg, "pg_dump", words, dump());
    scene.has_dump = true;
}

static void wait_until(const char *sql, const char *want, const char *fault)
{
    char *got = NULL;
    for (int i = 0; i < CATCH_UP_S * 50; i++) {
        free(got);
        got = pg_ask(&scene.pg, "fleet", sql);
        if (strcmp(got, want) == 0)
            break;
        rest_ms(20);
    }
    ck_assert_msg(strcmp(got, want) == 0, "%s: the target has %s events, not %s", fault, got, want);
    free(got);
}

/* A session that arrived after the dump, and in which nothing happens any more. */
static void ship_a_quiet_session(void)
{
    char session[40], sql[120];
    snprintf(session, sizeof session, "quiet-%llu",
             (unsigned long long)atomic_load(&scene.writing->events));
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", session);
    atomic_fetch_add(&scene.writing->events, 1);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM annal._heads WHERE session = '%s' AND seq = 1",
             session);
    wait_until(sql, "1", "before a restore");
}

/* As docs/ship.md says: beside it, then renamed. The dump is of now, or of some rounds ago. */
static void restore_the_target(void)
{
    const char *const words[] = {"-h", scene.pg.dir, "-U", "boss", "-d", "fleet_new", dump(), NULL};
    if (!scene.has_dump || some(2) == 0)
        take_a_dump();
    ship_a_quiet_session();
    rest_ms(some(300));
    pg_do(&scene.pg, "postgres", "CREATE DATABASE fleet_new");
    pg_program(&scene.pg, "pg_restore", words, NULL);
    pg_do(&scene.pg, "postgres", "DROP DATABASE fleet WITH (FORCE)");
    pg_do(&scene.pg, "postgres", "ALTER DATABASE fleet_new RENAME TO fleet");
}

/* A new standby takes over, which has all, or lacks the newest. */
static void fail_over(void)
{
    struct pg standby;
    pg_start_standby(&scene.pg, &standby);
    rest_ms(some(300));
    if (some(2) == 0) {
        pg_do(&standby, "postgres", "ALTER SYSTEM SET primary_conninfo = ''");
        pg_do(&standby, "postgres", "SELECT pg_reload_conf()");
        rest_ms(some(500));
    }
    standby.clock = scene.pg.clock;
    pg_stop(&scene.pg);
    scene.pg = standby;
    scene.has_dump = false;
    rest_ms(some(200));
    pg_promote(&scene.pg);
    point_at(".s.PGSQL.5432");
}

/* The disk of the server is full: it refuses, or it ends. */
static void fill_the_disk(void)
{
    char path[120];
    snprintf(path, sizeof path, "%s/ballast", scene.pg.dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    off_t len = 0;
    for (off_t step = 16 << 20; step >= 4096;)
        if (posix_fallocate(fd, len, step) == 0)
            len += step;
        else
            step /= 2;
    rest_ms(300 + some(700));
    close(fd);
    ck_assert_int_eq(unlink(path), 0);
    pg_restart(&scene.pg);
}

/* Set the clock of the server, so that days of arrival repeat out of order, and the clock of a
 * shipper. */
static void set_a_clock(void)
{
    static const char *const offsets[] = {"-1h", "+1h", "+25h", NULL};
    scene.pg.clock = offsets[some(4)];
    pg_kill(&scene.pg, SIGQUIT);
    pg_restart(&scene.pg);
    end(&scene.shipper);
    clock_set(offsets[some(2)]);
    scene.shipper = start_shipper("50");
    clock_set(NULL);
}

static void put_a_pooler_between(void)
{
    scene.pooler = pg_start_pooler(&scene.pg);
    point_at(".s.PGSQL.6432");
    proxy_set(&scene.proxy, PROXY_CUT);
    rest_ms(100);
    proxy_set(&scene.proxy, PROXY_PASS);
    rest_ms(some(500));
    if (some(2) == 0) {
        end(&scene.pooler);
        rest_ms(some(200));
        scene.pooler = pg_start_pooler(&scene.pg);
    }
}

static void remove_the_pooler(void)
{
    if (scene.pooler == 0)
        return;
    end(&scene.pooler);
    point_at(".s.PGSQL.5432");
}

static const struct fault {
    const char *name;
    void (*fn)(void);
} faults[] = {{"shipper killed", kill_the_shipper},
              {"network cut", cut_the_network},
              {"network stalled", stall_the_network},
              {"network slow", slow_the_network},
              {"server killed", kill_the_server},
              {"connections ended", end_the_connections},
              {"two shippers", ship_twice_at_once},
              {"target restored", restore_the_target},
              /* These take long, or need what make test-cluster installs. */
              {"failover", fail_over},
              {"clock", set_a_clock},
              {"pooler", put_a_pooler_between},
              {"disk full", fill_the_disk}};

enum { FAULTS = sizeof faults / sizeof *faults, LONG_FAULTS = 4 };

/* ---- What must hold after each ---- */

static void assert_caught_up(const char *fault)
{
    char want[100];
    snprintf(want, sizeof want, "%llu", (unsigned long long)atomic_load(&scene.writing->events));
    wait_until("SELECT coalesce((SELECT sum(seq) FROM annal._heads), 0)", want, fault);
}

static void assert_equal(const char *fault)
{
    char want[200];
    unsigned long long events = atomic_load(&scene.writing->events);
    snprintf(want, sizeof want, "{\"events\":%llu,\"behind\":0,\"dropped\":0,\"sound\":true}\n",
             events);
    CLI(&cli, NULL, "ship", "check", scene.url, "--as", "h1", "--json");
    ck_assert_msg(strcmp(cli.out, want) == 0, "%s: %s, not %s; %s", fault, cli.out, want, cli.err);
    snprintf(want, sizeof want, "%llu", events);
    ck_text(pg_ask(&scene.pg, "fleet", "SELECT count(*) FROM annal._events"), want);
    wait_until("SELECT count(*) FROM annal._heads h LEFT JOIN annal._session_rows r USING (key)"
               " WHERE r.seq IS DISTINCT FROM h.seq",
               "0", fault);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void run_round(const struct fault *fault)
{
    atomic_store(&scene.writing->rest, false);
    rest_ms(some(100));
    fault->fn();
    proxy_cut_after(&scene.proxy, UINT64_MAX);
    proxy_set(&scene.proxy, PROXY_PASS);
    rest_ms(some(50));
    atomic_store(&scene.writing->rest, true);
    while (!atomic_load(&scene.writing->rests)) {
        ck_assert_int_eq(waitpid(scene.writer, NULL, WNOHANG), 0);
        rest_ms(2);
    }
    ck_assert_msg(waitpid(scene.shipper, NULL, WNOHANG) == 0, "%s: the shipper ended", fault->name);
    assert_caught_up(fault->name);
    assert_equal(fault->name);
    remove_the_pooler();
}

START_TEST(after_each_fault_the_target_equals_the_journals)
{
    unsigned usual = FAULTS - LONG_FAULTS, rounds = full_or(200, usual),
             kinds = full_or(FAULTS, usual);
    if (kinds == FAULTS && !pg_make_small_disk()) {
        fprintf(stderr, "SKIPPED: disk full: only root can make a file system for it\n");
        kinds--;
    }
    struct {
        unsigned rounds;
        uint64_t ms;
    } done[FAULTS] = {0};
    bool there = begin();
    for (unsigned i = 0; there && i < rounds; i++) {
        unsigned kind = i < kinds ? i : some(kinds);
        uint64_t began = now_ms();
        run_round(&faults[kind]);
        done[kind].rounds++;
        done[kind].ms += now_ms() - began;
        if ((i + 1) % 20 == 0)
            printf("%u rounds, %llu events\n", i + 1,
                   (unsigned long long)atomic_load(&scene.writing->events));
    }
    for (unsigned i = 0; there && i < kinds; i++)
        printf("%-20s %3u rounds %6.1f s\n", faults[i].name, done[i].rounds,
               (double)done[i].ms / 1e3);
    finish();
}
END_TEST

/* ---- A primary that fails ---- */

#define SUM_OF_HEADS "SELECT coalesce(sum(seq), 0) FROM annal._heads"

static void wait_at(const struct pg *pg, const char *sql, const char *want)
{
    struct pg before = scene.pg;
    scene.pg = *pg;
    wait_until(sql, want, "failover");
    scene.pg = before;
}

/* Its last events had not arrived at the standby, which goes back in time with them. */
START_TEST(a_promoted_standby_receives_the_events_it_missed)
{
    struct pg standby;
    cli_setup();
    scene = (struct scene){0};
    if (!pg_start(&scene.pg)) {
        cli_teardown();
        return;
    }
    pg_do(&scene.pg, "postgres", "CREATE DATABASE fleet");
    pg_start_standby(&scene.pg, &standby);
    snprintf(scene.url, sizeof scene.url, "postgresql:///fleet?host=%s,%s&user=boss", scene.pg.dir,
             standby.dir);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE(&cli, "ship", scene.url, "--as", "h1");
    wait_at(&standby, SUM_OF_HEADS, "1");
    scene.shipper = start_shipper("50");
    pg_do(&standby, "postgres", "ALTER SYSTEM SET primary_conninfo = ''");
    pg_do(&standby, "postgres", "SELECT pg_reload_conf()");
    rest_ms(500);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s2");
    wait_at(&scene.pg, SUM_OF_HEADS, "3");
    pg_stop(&scene.pg);
    ck_text(pg_ask(&standby, "fleet", "SELECT count(*) FROM annal._events"), "1");
    pg_do(&standby, "postgres", "SELECT pg_promote()");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":3}\n", "append", "s1");
    wait_at(&standby, SUM_OF_HEADS, "4");
    wait_at(&standby, "SELECT count(*) FROM annal._unfolded", "0"); /* else the check says so */
    DONE(&cli, "ship", "check", scene.url, "--as", "h1", "--json");
    ck_assert_str_eq(cli.out, "{\"events\":4,\"behind\":0,\"dropped\":0,\"sound\":true}\n");
    end(&scene.shipper);
    pg_stop(&standby);
    cli_teardown();
}
END_TEST

Suite *suite_faults(void)
{
    Suite *suite = suite_create("faults");
    TCase *cases = suite_case(suite, "faults", NULL, NULL);
    tcase_set_timeout(cases, 1700);
    tcase_add_test(cases, after_each_fault_the_target_equals_the_journals);
    cases = suite_case(suite, "failover", NULL, NULL);
    tcase_add_long_test(cases, a_promoted_standby_receives_the_events_it_missed);
    return suite;
}
