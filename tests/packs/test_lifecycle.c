#include "tests/packs/fixture.h"

#include <annal/lifecycle.h>
#include <annal/process.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What was told, a line for each; in between the journal of spoil becomes a directory. */
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

/* A session that fell silent long ago; its process is dead, or this one, or not known (pid 0). */
static void begin(struct packs *p, const char *session, int at, pid_t pid)
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
    ck_append(p, session, "session.created", data);
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

START_TEST(a_program_ends_stale_sessions_and_hears_of_each)
{
    struct packs p;
    struct told told = {.packs = &p};
    const annal_stale_options look = {.silence_s = 3600, .dry_run = true};
    const annal_stale_options operator= {.actor = ANNAL_SLICE("the \"operator\"")};
    PACKS_INIT(&p, "lionagi", "teams");
    pid_t dead = dead_process();
    begin(&p, "dead", 1000, dead);
    begin(&p, "alive", 2000, getpid());
    begin(&p, "unknown", 3000, 0);
    packs_reopen(&p); /* a program that writes a session has it */
    ck_ok(annal_transition_stale(p.index, &look, add_stale, &told, err));
    ck_assert_str_eq(told.text.ptr, "ended dead\nleft alive\nleft unknown\n");
    ck_packs(&p, "SELECT count(*) FROM state.sessions WHERE status = 'running'", "3\n");
    ck_assert_int_eq(annal_transition_stale(p.index, &look, stop, NULL, NULL), 7);
    ck_ok(annal_transition_stale(p.index, &operator, NULL, NULL, err));
    ck_packs(&p, "SELECT id FROM state.sessions WHERE status = 'failed'", "dead\n");
    ck_packs(&p, "SELECT actor, target_id FROM admin_events", "the \"operator\"|dead\n");
    ck_ok(annal_pack_disable(p.store, "teams", err));
    ck_fails(ANNAL_ERR_NOTFOUND, "pack teams is not on",
             annal_transition_stale(p.index, NULL, NULL, NULL, err));
    free(told.text.ptr);
    packs_done(&p);
}
END_TEST

/* Their events in _state once had the same id, and the second was a conflict. */
START_TEST(stale_sessions_whose_long_ids_differ_at_the_end_are_both_ended)
{
    struct packs p;
    char ids[2][ANNAL_SESSION_ID_BYTES_MAX + 1];
    PACKS_INIT(&p, "lionagi", "teams");
    pid_t dead = dead_process();
    for (int i = 0; i < 2; i++) {
        memset(ids[i], 'L', ANNAL_SESSION_ID_BYTES_MAX);
        ids[i][ANNAL_SESSION_ID_BYTES_MAX - 1] = (char)('a' + i);
        ids[i][ANNAL_SESSION_ID_BYTES_MAX] = '\0';
        begin(&p, ids[i], 1000 + i, dead);
    }
    packs_reopen(&p);
    ck_ok(annal_transition_stale(p.index, NULL, NULL, NULL, err));
    ck_packs(&p, "SELECT count(*) FROM state.sessions WHERE status = 'failed'", "2\n");
    ck_packs(&p, "SELECT count(DISTINCT target_id) FROM admin_events", "2\n");
    packs_done(&p);
}
END_TEST

START_TEST(a_stale_session_that_fails_does_not_stop_the_others)
{
    struct packs p;
    struct told told = {.packs = &p, .spoil = "b"};
    PACKS_INIT(&p, "lionagi", "teams");
    pid_t dead = dead_process();
    begin(&p, "a", 1000, dead);
    begin(&p, "b", 2000, dead);
    begin(&p, "c", 3000, dead);
    packs_reopen(&p);
    ck_assert_int_lt(annal_transition_stale(p.index, NULL, add_stale, &told, NULL), 0);
    ck_assert_str_eq(told.text.ptr, "ended a\nerror b\nended c\n");
    free(told.text.ptr);
    packs_done(&p);
}
END_TEST

Suite *suite_lifecycle(void)
{
    Suite *suite = suite_create("lifecycle");
    TCase *tcase = tcase_create("lifecycle");
    tcase_add_test(tcase, a_program_ends_stale_sessions_and_hears_of_each);
    tcase_add_test(tcase, stale_sessions_whose_long_ids_differ_at_the_end_are_both_ended);
    tcase_add_test(tcase, a_stale_session_that_fails_does_not_stop_the_others);
    suite_add_tcase(suite, tcase);
    return suite;
}
