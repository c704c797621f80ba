/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include <annal/packs/lifecycle.h>
#include <annal/process.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void setup(void)
{
    packs_setup();
    PACKS_ENABLE(&p, "lionagi", "teams");
}

/* Reports of the callback, a line each; it also replaces the journal of spoil by a directory. */
struct told {
    struct packs *packs;
    const char *spoil; /* NULL: none */
    struct text text;
};

static int add_stale(void *arg, const annal_stale *stale)
{
    static const char *const words[] = {"", "ended ", "left ", "error "};
    struct told *told = arg;
    text_add(&told->text, words[stale->result], strlen(words[stale->result]));
    text_add(&told->text, stale->session.ptr, stale->session.len);
    text_add(&told->text, "\n", 1);
    ck_assert_int_eq(stale->result == ANNAL_STALE_ERROR, stale->status < 0);
    ck_assert_str_ne(stale->reason, "");
    if (told->spoil != NULL) {
        char path[500];
        snprintf(path, sizeof path, "%s/events/%s.jsonl", told->packs->path, told->spoil);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    told->spoil = NULL;
    return 0;
}

static int stop(void *arg, const annal_stale *stale)
{
    (void)arg;
    (void)stale;
    return 7;
}

/* Create a long silent session with this process id, or with an unknown process (pid 0). */
static void begin(const char *session, int at, pid_t pid)
{
    char data[500], json[ANNAL_PROCESS_JSON_BYTES] = "null";
    annal_process process;
    ck_ok(annal_process_self(&process, err));
    if (pid != getpid() && pid != 0)
        process.start = 1;
    process.pid = (uint32_t)pid;
    snprintf(data, sizeof data,
             "{\"status\":\"running\",\"created_at\":%d,\"updated_at\":%d,\"started_at\":%d,"
             "\"process\":%s}",
             at, at, at, pid == 0 ? json : annal_process_json(&process, json));
    ck_append(&p, session, "session.created", data);
}

static pid_t dead_process(void)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return child;
}

START_TEST(a_program_ends_stale_sessions_and_receives_a_callback_for_each)
{
    struct told told = {.packs = &p};
    const annal_stale_options look = {.silence_s = 3600, .dry_run = true};
    const annal_stale_options operator= {.actor = ANNAL_SLICE("the \"operator\"")};
    pid_t dead = dead_process();
    begin("dead", 1000, dead);
    begin("alive", 2000, getpid());
    begin("unknown", 3000, 0);
    packs_reopen(&p); /* a writer would own the session */
    ck_ok(annal_transition_stale(p.index, &look, add_stale, &told, err));
    ck_assert_str_eq(told.text.ptr, "ended dead\nleft alive\nleft unknown\n");
    ck_packs(&p, "SELECT count(*) FROM state.sessions WHERE status = 'running'", "3\n");
    ck_assert_int_eq(annal_transition_stale(p.index, &look, stop, NULL, NULL), 7);
    ck_ok(annal_transition_stale(p.index, &operator, NULL, NULL, err));
    ck_packs(&p, "SELECT id FROM state.sessions WHERE status = 'failed'", "dead\n");
    ck_packs(&p, "SELECT actor, target_id FROM admin_events", "the \"operator\"|dead\n");
    ck_ok(annal_pack_disable(p.store, "teams", err));
    ck_fails(ANNAL_ERR_NOTFOUND, "pack teams is not enabled",
             annal_transition_stale(p.index, NULL, NULL, NULL, err));
    free(told.text.ptr);
}
END_TEST

/* Its process is dead, and this process writes the session without an event about that. */
START_TEST(a_stale_session_that_a_process_writes_is_not_ended)
{
    struct told told = {.packs = &p};
    begin("taken", 1000, dead_process());
    ck_ok(annal_transition_stale(p.index, NULL, add_stale, &told, err));
    ck_assert_str_eq(told.text.ptr, "left taken\n");
    ck_packs(&p, "SELECT status FROM state.sessions", "running\n");
    free(told.text.ptr);
}
END_TEST

/* Their events in _state once had the same id, and the second was a conflict. */
START_TEST(stale_sessions_whose_long_ids_differ_at_the_end_are_both_ended)
{
    char ids[2][ANNAL_SESSION_ID_BYTES_MAX + 1];
    pid_t dead = dead_process();
    for (int i = 0; i < 2; i++) {
        memset(ids[i], 'L', ANNAL_SESSION_ID_BYTES_MAX);
        ids[i][ANNAL_SESSION_ID_BYTES_MAX - 1] = (char)('a' + i);
        ids[i][ANNAL_SESSION_ID_BYTES_MAX] = '\0';
        begin(ids[i], 1000 + i, dead);
    }
    packs_reopen(&p);
    ck_ok(annal_transition_stale(p.index, NULL, NULL, NULL, err));
    ck_packs(&p, "SELECT count(*) FROM state.sessions WHERE status = 'failed'", "2\n");
    ck_packs(&p, "SELECT count(DISTINCT target_id) FROM admin_events", "2\n");
}
END_TEST

START_TEST(a_stale_session_that_fails_does_not_stop_the_others)
{
    struct told told = {.packs = &p, .spoil = "b"};
    pid_t dead = dead_process();
    begin("a", 1000, dead);
    begin("b", 2000, dead);
    begin("c", 3000, dead);
    packs_reopen(&p);
    ck_assert_int_lt(annal_transition_stale(p.index, NULL, add_stale, &told, NULL), 0);
    ck_assert_str_eq(told.text.ptr, "ended a\nerror b\nended c\n");
    free(told.text.ptr);
}
END_TEST

/* In another process: write session s and own it until go is closed. */
static int write_and_wait(const char *path, int ready, int go)
{
    annal_store *store = NULL;
    annal_writer *writer = NULL;
    uint64_t seq;
    char byte = 0;
    const annal_draft draft = {.type = ANNAL_SLICE("note"), .data = ANNAL_SLICE("{}")};
    annal_status status = annal_store_open(path, NULL, &store, NULL);
    if (status == ANNAL_OK)
        status = annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writer, NULL);
    if (status == ANNAL_OK)
        status = annal_writer_append(writer, &draft, 1, NULL, &seq, NULL);
    if (status < 0 || write(ready, "x", 1) != 1 || read(go, &byte, 1) != 0)
        return 1;
    annal_writer_close(writer);
    return annal_store_close(store, NULL) == ANNAL_OK ? 0 : 1;
}

START_TEST(a_run_taken_over_from_a_dead_process_is_judged_by_its_silence)
{
    static const char health[] = "SELECT effective_health FROM run_list";
    int ready[2], go[2], status = -1;
    char byte;
    begin("s", 1000, dead_process());
    ck_packs(&p, health, "orphaned\n"); /* this process owns the session itself */
    packs_reopen(&p);
    ck_packs(&p, health, "orphaned\n");
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        _exit(write_and_wait(p.path, ready[1], go[0]));
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_packs(&p, health, "stale\n");
    close(go[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_packs(&p, health, "orphaned\n");
    close(ready[0]);
    close(go[0]);
}
END_TEST

/* Another SQLite program reads the view of the database; both have the same columns. */
START_TEST(run_list_has_the_same_columns_over_our_connections_and_in_the_database)
{
    ck_packs(
        &p,
        "SELECT count(*), (SELECT count(*) FROM pragma_table_info('run_list', 'temp')) FROM "
        "pragma_table_info('run_list', 'state') s JOIN pragma_table_info('run_list', 'temp') t "
        "ON t.name = s.name AND t.cid = s.cid",
        "13|13\n");
}
END_TEST

Suite *suite_lifecycle(void)
{
    Suite *suite = suite_create("lifecycle");
    TCase *tcase = suite_case(suite, "lifecycle", setup, packs_teardown);
    tcase_add_test(tcase, a_run_taken_over_from_a_dead_process_is_judged_by_its_silence);
    tcase_add_test(tcase, run_list_has_the_same_columns_over_our_connections_and_in_the_database);
    tcase_add_test(tcase, a_program_ends_stale_sessions_and_receives_a_callback_for_each);
    tcase_add_test(tcase, a_stale_session_that_a_process_writes_is_not_ended);
    tcase_add_test(tcase, stale_sessions_whose_long_ids_differ_at_the_end_are_both_ended);
    tcase_add_test(tcase, a_stale_session_that_fails_does_not_stop_the_others);
    return suite;
}
