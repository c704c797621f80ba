/*
 * Events by chance, sensible ones and others, past the guards: whatever stands in the journals, the
 * tables are those that a rebuild gives, in whatever order the sessions are read. The seed is
 * printed; ANNAL_TEST_SEED runs it again.
 */
#include "tests/packs/fixture.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 400, PIECES = 4 };

static const char *pick(struct random *random, const char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    return words[random_below(random, count)];
}

/* ---- Teams ---- */

static void some_team_event(struct packs *p, struct random *random)
{
    static const char *const names[] = {"\"alice\"", "\"bob\"", "\"carol\"", "\"zoë\"", "\"a,b\"",
                                        "\"all\"",   "\"\"",    "7",         "null",    NULL};
    static const char *const types[] = {
        "team.created", "team.created",      "team.imported",     "team.members_changed",
        "team.renamed", "team.configured",   "team.archived",     "team.deleted",
        "team.message", "team.message",      "team.message",      "team.message",
        "team.message", "team.message_read", "team.message_read", NULL};
    char session[20], data[1000];
    /* Ids are unique in a store, as the guards see to it. */
    unsigned team = (unsigned)random_below(random, 4), message = (unsigned)random_below(random, 12);
    const char *type = pick(random, types);
    snprintf(session, sizeof session, "team_t%u", team);
    if (random_below(random, 20) == 0)
        type = random_below(random, 2) == 0 ? "session.created" : "tool.called";
    snprintf(data, sizeof data,
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
    packs_append_past(p, session, type, random_below(random, 50) == 0 ? "[null]" : data);
}

/* ---- Sessions ---- */

/* Ids are of one session each: the guards refuse one that another session has. */
static void some_session_event(struct packs *p, struct random *random)
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
    char session[20], data[1200];
    unsigned s = (unsigned)random_below(random, 4), message = (unsigned)random_below(random, 10);
    unsigned branch = (unsigned)random_below(random, 4);
    const char *type = pick(random, types);
    snprintf(session, sizeof session, "s%u", s);
    snprintf(data, sizeof data,
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
    packs_append_past(p, session, type, data);
}

/* ---- Comparing ---- */

typedef void (*event_fn)(struct packs *p, struct random *random);

/* In pieces, so that tables that were there already are gone on with. */
static void compare(struct packs *p, const event_fn *events, size_t count, uint64_t seed)
{
    struct random random = random_init(seed);
    for (int piece = 0; piece < PIECES; piece++) {
        for (int i = 0; i < ROUNDS / PIECES; i++)
            events[random_below(&random, count)](p, &random);
        packs_ck_rebuild(p, "state.db", random_next(&random));
    }
    packs_done(p);
}

START_TEST(teams_and_sessions_equal_a_rebuild_whatever_the_order)
{
    static const event_fn events[] = {some_team_event, some_session_event};
    struct packs p;
    PACKS_INIT(&p, "lionagi", "teams");
    compare(&p, events, 2, 20260521);
}
END_TEST

Suite *suite_random(void)
{
    Suite *suite = suite_create("random");
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, teams_and_sessions_equal_a_rebuild_whatever_the_order);
    suite_add_tcase(suite, tests);
    return suite;
}
