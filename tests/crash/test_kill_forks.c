/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that fork their own and each other's sessions, and are killed with SIGKILL. Every
 * acknowledged fork exists, and every fork that exists is sound, with all its ancestors.
 */
#include "tests/support/journals.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS 2
#define ROUNDS  8

/* A fork that was acknowledged. */
struct made {
    char session[32];
    uint64_t fork_seq;
};

/* Run in a child process until the parent kills it. */
_Noreturn static void play(const char *path, int writer, int round, int out)
{
    static const annal_level levels[] = {ANNAL_LEVEL_SYNC, ANNAL_LEVEL_BATCH, ANNAL_LEVEL_OS};
    annal_store *store = NULL;
    char last[32] = "s";
    if (annal_store_open(path, &(annal_store_options){.wait_ms = 2000}, &store, NULL) < 0)
        _exit(2);
    for (unsigned i = 0;; i++) {
        struct made made = {.fork_seq = 0};
        annal_session_info info;
        uint64_t seq;
        (void)!append_number(store, last, i, 30, levels[i % 3], &seq, NULL);
        (void)!append_number(store, "s", i, 30, levels[(i + 1) % 3], &seq, NULL);
        snprintf(made.session, sizeof made.session, "f%d-%d-%u", writer, round, i);
        if (annal_session_fork(store, annal_slice_of(i % 2 == 0 ? "s" : last), ANNAL_FORK_LAST,
                               annal_slice_of(made.session), NULL, &info, NULL) != ANNAL_OK)
            continue;
        made.fork_seq = info.fork_seq;
        if (write(out, &made, sizeof made) != (ssize_t)sizeof made)
            _exit(3);
        snprintf(last, sizeof last, "%s", made.session);
    }
}

static int check_session(void *arg, annal_slice session, uint64_t bytes)
{
    annal_store *store = arg;
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    annal_verify_result result;
    annal_session_info info;
    (void)bytes;
    memcpy(id, session.ptr, session.len);
    ck_ok(annal_session_verify(store, session, NULL, NULL, &result, err));
    ck_assert_msg(result.findings == 0, "session %s", id);
    ck_ok(annal_session_info_get(store, session, &info, err));
    ck_assert_uint_eq(read_session(store, id, NULL, NULL), info.last_seq);
    return 0;
}

START_TEST(acknowledged_forks_survive_kill_9)
{
    struct random random = random_init(15);
    unsigned forks = 0;
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    store_close(store);
    for (int round = 0; round < ROUNDS; round++) {
        int pipes[2];
        pid_t pids[WRITERS];
        struct made made;
        ck_assert_int_eq(pipe(pipes), 0);
        for (int i = 0; i < WRITERS; i++) {
            pids[i] = fork();
            ck_assert_int_ge(pids[i], 0);
            if (pids[i] == 0)
                play(path, i, round, pipes[1]);
        }
        close(pipes[1]);
        usleep((useconds_t)(20000 + random_below(&random, 150000)));
        for (int i = 0; i < WRITERS; i++) {
            ck_assert_int_eq(kill(pids[i], SIGKILL), 0);
            ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
        }
        store = store_open(path);
        while (read(pipes[0], &made, sizeof made) == (ssize_t)sizeof made) {
            annal_session_info info;
            ck_ok(annal_session_info_get(store, annal_slice_of(made.session), &info, err));
            ck_assert_uint_eq(info.fork_seq, made.fork_seq);
            forks++;
        }
        close(pipes[0]);
        ck_ok(annal_session_each(store, check_session, store, err));
        store_close(store);
    }
    printf("forks acknowledged before kill -9: %u\n", forks);
}
END_TEST

Suite *suite_kill_forks(void)
{
    Suite *suite = suite_create("kill_forks");
    TCase *kills = suite_case(suite, "kill", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(kills, acknowledged_forks_survive_kill_9);
    return suite;
}
