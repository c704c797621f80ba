/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random events, valid and invalid, past the guards: with any journals, the tables equal a rebuild
 * that reads the sessions in any order. The test prints its seed; ANNAL_TEST_SEED repeats it.
 */
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 400, PIECES = 4 };

static const char *pick(struct random *random, const char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    return words[random_below(random, count)];
}

struct chance {
    char session[20];
    const char *type;
    char data[1200];
};

/* ---- Teams ---- */

static void some_team_event(struct chance *event, struct random *random)
{
    static const char *const names[] = {"\"alice\"", "\"bob\"", "\"carol\"", "\"zoë\"", "\"a,b\"",
                                        "\"all\"",   "\"\"",    "7",         "null",    NULL};
    static const char *const types[] = {
        "team.created", "team.created",      "team.imported",     "team.members_changed",
        "team.renamed", "team.configured",   "team.archived",     "team.deleted",
        "team.message", "team.message",      "team.message",      "team.message",
        "team.message", "team.message_read", "team.message_read", NULL};
    /* Ids are unique in a store; the guards ensure it. */
    unsigned team = (unsigned)random_below(random, 4), message = (unsigned)random_below(random, 12);
    const char *type = pick(random, types);
    snprintf(event->session, sizeof event->session, "team_t%u", team);
    if (random_below(random, 20) == 0)
        type = random_below(random, 2) == 0 ? "session.created" : "tool.called";
    snprintf(event->data, sizeof event->data,
             "{\"id\":\"m%u-%u\",\"name\":\"n%u\",\"members\":[%s,%s],\"add\":[%s],\"remove\":[%s],"
             "\"sender\":%s,\"to\":[%s],\"content\":\"c\",\"message_ids\":[\"m%u-%u\"],"
             "\"member\":%s,\"read_by\":%s,\"created_at\":%u,\"session_id\":\"s%u\",\"status\":%s}",
             team, message, message, pick(random, names), pick(random, names), pick(random, names),
             pick(random, names), pick(random, names), pick(random, names), team,
             (unsigned)random_below(random, 12), pick(random, names),
             random_below(random, 2) == 0 ? "{\"bob\":\"2026-05-21T15:06:00Z\",\"zoë\":null}"
                                          : "[\"carol\",\"alice\",\"\",3]",
             (unsigned)random_below(random, 2000000000), message,
             random_below(random, 6) == 0 ? "\"frozen\"" : "null");
    event->type = type;
    if (random_below(random, 50) == 0)
        strcpy(event->data, "[null]");
}

/* ---- Sessions ---- */

/* Each id belongs to a single session: the guards refuse an id of another session. */
static void some_session_event(struct chance *event, struct random *random)
{
    static const char *const types[] = {"session.created",
                                        "session.updated",
                                        "session.transition",
                                        "session.transition",
                                        "session.opened",
                                        "branch.created",
                                        "branch.forked",
                                        "branch.updated",
                                        "branch.system_set",
                                        "message.added",
                                        "message.added",
                                        "message.added",
                                        "message.amended",
                                        "progression.created",
                                        "progression.appended",
                                        "session.pruned",
                                        "message.content_pruned",
                                        "run.transition",
                                        NULL};
    static const char *const statuses[] = {"running",   "completed", "failed", "timed_out",
                                           "cancelled", "idle",      "odd",    NULL};
    static const char *const kinds[] = {"\"agent\"", "\"flow\"", "\"other\"", "null", NULL};
    unsigned s = (unsigned)random_below(random, 4), message = (unsigned)random_below(random, 10);
    unsigned branch = (unsigned)random_below(random, 4);
    const char *type = pick(random, types);
    snprintf(event->session, sizeof event->session, "s%u", s);
    snprintf(event->data, sizeof event->data,
             "{\"id\":\"%s%u-%u\",\"name\":\"n\",\"status\":\"%s\",\"to\":\"%s\",\"override\":%s,"
             "\"invocation_kind\":%s,\"role\":\"user\",\"content\":{\"n\":%u},"
             "\"branch_id\":\"b%u-%u\",\"parent_branch_id\":\"b%u-%u\",\"forked_at_ord\":%u,"
             "\"message_id\":\"m%u-%u\",\"progression_id\":\"p%u-%u\",\"set\":{\"name\":\"x\","
             "\"invocation_kind\":%s},\"reason_code\":\"run.%s.ok\",\"collection\":[\"m%u-1\"]}",
             strncmp(type, "branch", 6) == 0 ? "b"
             : strncmp(type, "prog", 4) == 0 ? "p"
                                             : "m",
             s, type[0] == 'b' ? branch : message, pick(random, statuses), pick(random, statuses),
             random_below(random, 3) == 0 ? "true" : "false", pick(random, kinds), message, s,
             branch, s, (unsigned)random_below(random, 4), (unsigned)random_below(random, 9), s,
             (unsigned)random_below(random, 10), s, (unsigned)random_below(random, 10),
             pick(random, kinds), pick(random, statuses), s);
    event->type = type;
}

/* ---- Comparing ---- */

typedef void (*event_fn)(struct chance *event, struct random *random);

/* Append in pieces, so that existing tables are continued. */
static void compare(const event_fn *events, size_t count, uint64_t seed)
{
    struct random random = random_init(seed);
    for (int piece = 0; piece < PIECES; piece++) {
        for (int i = 0; i < ROUNDS / PIECES; i++) {
            struct chance event;
            events[random_below(&random, count)](&event, &random);
            packs_append_past(&p, event.session, event.type, event.data);
        }
        packs_ck_rebuild(&p, "state.db", random_next(&random));
    }
}

START_TEST(tables_of_teams_and_sessions_equal_a_rebuild_in_any_order)
{
    static const event_fn events[] = {some_team_event, some_session_event};
    PACKS_ENABLE(&p, "lionagi", "teams");
    compare(events, 2, 20260521);
}
END_TEST

/* ---- Killed ---- */

enum { KILLS = 8 };

/* Append without Check, which a kill could interrupt. */
static bool append_quietly(annal_store *store, annal_index *index, const char *session,
                           const char *type, const char *data)
{
    annal_writer *writer = NULL;
    annal_appended appended = {0};
    uint64_t seq;
    const annal_draft draft = {.type = annal_slice_of(type), .data = annal_slice_of(data)};
    const annal_append_options options = {.level = ANNAL_LEVEL_SYNC};
    annal_status status = annal_writer_open(store, annal_slice_of(session), NULL, &writer, NULL);
    if (status == ANNAL_OK)
        status = index == NULL
                     ? annal_writer_append(writer, &draft, 1, &options, &seq, NULL)
                     : annal_pack_append(index, writer, &draft, 1, &options, &appended, NULL);
    annal_free(appended.data.ptr);
    annal_writer_close(writer);
    return status == ANNAL_OK || status == ANNAL_ERR_REFUSED;
}

/* In a process of its own, until a kill: append events through the guards and past them, and report
 * a byte for each guarded event. */
static _Noreturn void append_for_ever(const char *path, uint64_t seed, int said)
{
    struct random random = {seed};
    annal_store *store = NULL;
    annal_index *index = NULL;
    const annal_store_options options = {.no_keeper = true};
    bool good = annal_store_open(path, &options, &store, NULL) == ANNAL_OK &&
                annal_index_open(store, NULL, &index, NULL) == ANNAL_OK;
    for (unsigned i = 0; good; i++) {
        struct chance event;
        char session[20], data[200];
        unsigned team = (unsigned)random_below(&random, 3);
        const char *type = random_below(&random, 6) == 0 ? "team.created" : "team.message";
        snprintf(session, sizeof session, "team_t%u", team);
        snprintf(data, sizeof data,
                 "{\"name\":\"n\",\"id\":\"%u-%u-%u\",\"sender\":\"a\",\"content\":\"c\","
                 "\"read_by\":[\"a\"]}",
                 team, (unsigned)seed, i);
        good = append_quietly(store, index, session, type, data) && write(said, "", 1) == 1;
        some_team_event(&event, &random);
        if (good && random_below(&random, 2) == 0)
            good = append_quietly(store, NULL, event.session, event.type, event.data);
    }
    _exit(1);
}

START_TEST(after_a_kill_at_any_moment_the_tables_catch_up_to_a_rebuild)
{
    struct random random = random_init(9);
    PACKS_ENABLE(&p, "lionagi", "teams");
    ck_append(&p, "team_t0", "team.created", "{\"name\":\"n\"}");
    packs_reopen(&p); /* releases the session */
    for (int i = 0; i < KILLS; i++) {
        uint64_t seed = random_next(&random) % 1000000;
        int status = 0, said[2];
        char byte;
        ck_assert_int_eq(pipe(said), 0);
        pid_t child = fork();
        if (child == 0)
            append_for_ever(p.path, seed, said[1]);
        ck_assert_int_gt(child, 0);
        close(said[1]);
        for (uint64_t left = 1 + random_below(&random, 8); left > 0; left--)
            ck_assert_int_eq(read(said[0], &byte, 1), 1);
        usleep((useconds_t)random_below(&random, 5000));
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        close(said[0]);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSIGNALED(status), "the child failed");
        packs_reopen(&p); /* recovers the log of the dead process */
        packs_ck_rebuild(&p, "state.db", seed);
    }
    char *events = packs_rows(&p, "SELECT count(*) FROM event_index");
    ck_assert_int_gt(atoi(events), 20);
    free(events);
}
END_TEST

Suite *suite_random(void)
{
    Suite *suite = suite_create("random");
    TCase *tests = suite_case(suite, "random", packs_setup, packs_teardown);
    tcase_add_test(tests, tables_of_teams_and_sessions_equal_a_rebuild_in_any_order);
    tcase_add_test(tests, after_a_kill_at_any_moment_the_tables_catch_up_to_a_rebuild);
    return suite;
}
