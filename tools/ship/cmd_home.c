/* SPDX-License-Identifier: Apache-2.0 */
/* annal home: the verbs. */
#include "journal/base/error.h"
#include "tools/cli/decider.h"
#include "tools/cli/fields.h"
#include "tools/cli/open.h"
#include "tools/cli/out.h"
#include "tools/cli/verbs.h"
#include "tools/ship/home.h"
#include "tools/ship/shared.h"
#include "tools/ship/shipping.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { LEASE_SECONDS = 30, AWAY_US = 1000000 };

struct homing {
    struct shipping shipping;
    const struct home_kind *kind;
    struct ship_target *target;
    const char *session;
    annal_error err;
};

static int with_target(const struct args *args, enum open_mode mode,
                       int (*fn)(const struct args *, struct homing *))
{
    struct homing homing = {.session = args_get(args, "SESSION")};
    struct shipping *shipping = &homing.shipping;
    int exit_status = shipping_begin(args, mode, shipping);
    if (exit_status == 0) {
        homing.kind = shipping->options.kind->homes;
        if (homing.kind == NULL)
            exit_status = fail_usage("this target knows no homes: they need postgresql://");
    }
    if (exit_status == 0)
        exit_status = fn(args, &homing);
    if (homing.target != NULL)
        shipping->options.kind->close(homing.target);
    return store_close(shipping->store, out_finish(exit_status));
}

/* as: what the store is called there. 0 or an exit status. */
static int reach(struct homing *homing, const char *as)
{
    struct ship_options *options = &homing->shipping.options;
    options->target.store = as;
    return options->kind->open(&options->target, true, &homing->target, &homing->err) < 0
               ? fail_target(&homing->err)
               : 0;
}

/* ---- take ---- */

/* The journal does not go on from the head: what is late of it is kept (rule 3 of home.h). */
static int refuse_history(struct homing *homing, const struct place *head, uint64_t last_seq,
                          uint64_t lost_epoch)
{
    struct home_late late;
    annal_status status = home_keep_late(homing->shipping.store, homing->kind, homing->target,
                                         homing->session, lost_epoch, &late, &homing->err);
    if (status < 0)
        return fail_target(&homing->err);
    if (late.is_other)
        return fail_refused("session '%s' at the target is another one than here: a home is of a "
                            "name, which only one session of all stores may have",
                            homing->session);
    if (late.events == 0)
        return fail_refused("session '%s' ends with event %" PRIu64 " here, and with event %" PRIu64
                            " at the target: bring it here first, with 'annal pull'",
                            homing->session, last_seq, head->seq);
    return fail_refused("session '%s' has %" PRIu64 " event%s here after event %" PRIu64
                        " that the target does not have, which ends with event %" PRIu64
                        ": kept in '%s'. Delete '%s' here, and bring it again with 'annal pull'",
                        homing->session, late.events, late.events == 1 ? "" : "s", late.after_seq,
                        head->seq, late.name, homing->session);
}

/* Whether the journal goes on from the head. */
static int compare_head(struct homing *homing, uint64_t lost_epoch)
{
    struct place head = {0};
    annal_session_info info = {0};
    annal_cursor *cursor = NULL;
    annal_store *store = homing->shipping.store;
    annal_slice session = annal_slice_of(homing->session);
    annal_status status = annal_session_info_get(store, session, &info, &homing->err);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return fail_error(&homing->err);
    if (homing->kind->head(homing->target, homing->session, &head, &homing->err) < 0)
        return fail_target(&homing->err);
    if (head.at == 0)
        return 0; /* nothing of it is there yet */
    status =
        annal_cursor_open_at(store, session, head.seq + 1, head.at, head.h, &cursor, &homing->err);
    annal_cursor_close(cursor);
    if (status >= 0)
        return 0;
    return status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_NOTFOUND
               ? refuse_history(homing, &head, info.last_seq, lost_epoch)
               : fail_error(&homing->err);
}

/* Of a session that no store has: what cannot be had here stays as it is. One that was never taken
 * needs no lease. */
static int look_before(struct homing *homing, uint64_t lost_epoch)
{
    struct home home;
    if (home_find(homing->kind, homing->target, homing->session, &home, &homing->err) < 0)
        return fail_target(&homing->err);
    return home.store[0] != '\0' ? 0 : compare_head(homing, lost_epoch);
}

static int give(struct homing *homing, annal_lease *lease)
{
    snprintf(lease->giver, sizeof lease->giver, "%s", homing->kind->name(homing->target));
    if (annal_lease_set(homing->shipping.store, annal_slice_of(homing->session), lease,
                        &homing->err) < 0)
        return fail_error(&homing->err);
    return 0;
}

static int take(const struct args *args, struct homing *homing)
{
    struct home home;
    annal_lease old = {0}, lease = {.seconds = (uint32_t)args_count(args, "for", LEASE_SECONDS)};
    annal_status status = annal_lease_get(homing->shipping.store, annal_slice_of(homing->session),
                                          &old, &homing->err);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return fail_error(&homing->err);
    int exit_status = reach(homing, homing->shipping.name);
    if (exit_status == 0)
        exit_status = look_before(homing, old.epoch);
    if (exit_status != 0)
        return exit_status;
    int64_t asked_us = annal_lease_now();
    if (homing->kind->take(homing->target, homing->session, old.epoch, lease.seconds, &home,
                           &homing->err) < 0)
        return fail_target(&homing->err);
    if (!home.granted && strcmp(home.store, SHARED_STORE) == 0)
        return fail_refused("session '%s' is shared: no store has it alone until 'annal home "
                            "release'",
                            homing->session);
    if (!home.granted)
        return fail_refused("session '%s' is at home in store '%s' (epoch %" PRIu64
                            "), whose lease ends in %.0f s unless it is renewed",
                            homing->session, home.store, home.epoch, home.seconds_left);
    exit_status = compare_head(homing, old.epoch);
    if (exit_status != 0) { /* it is given back */
        struct home ignored;
        return homing->kind->release(homing->target, homing->session, home.epoch, &ignored,
                                     &homing->err) < 0
                   ? fail_target(&homing->err)
                   : exit_status;
    }
    lease.epoch = home.epoch;
    lease.until_us = asked_us + (int64_t)lease.seconds * 1000000;
    exit_status = give(homing, &lease);
    if (exit_status == 0 && args->json)
        printf("{\"session_id\":\"%s\",\"epoch\":%" PRIu64 ",\"seconds\":%" PRIu32 "}\n",
               homing->session, home.epoch, lease.seconds);
    else if (exit_status == 0)
        printf("session '%s' is at home here for %" PRIu32 " s (epoch %" PRIu64 ")\n",
               homing->session, lease.seconds, home.epoch);
    return exit_status;
}

static int run_take(const struct args *args)
{
    return with_target(args, OPEN_CREATE, take);
}

/* ---- share, join, leave ---- */

/* The store belongs to the cluster of the target, if that is there. */
static int join_cluster(struct homing *homing)
{
    annal_store *store = homing->shipping.store;
    const char *url = homing->shipping.options.target.url;
    if (shared_check_url(store, url, &homing->err) < 0)
        return fail_error(&homing->err);
    int exit_status = reach(homing, SHARED_STORE);
    if (exit_status == 0 && shared_set_url(store, url, &homing->err) < 0)
        exit_status = fail_error(&homing->err);
    return exit_status;
}

static int share(const struct args *args, struct homing *homing)
{
    annal_lease lease = {0};
    annal_store *store = homing->shipping.store;
    annal_slice session = annal_slice_of(homing->session);
    int exit_status = join_cluster(homing);
    if (exit_status != 0)
        return exit_status;
    const annal_decider *decider = decider_new(store);
    annal_status status = decider != NULL
                              ? decider->share(decider->arg, session, &homing->err)
                              : annal__fail(&homing->err, ANNAL_ERR_NOMEM, "out of memory");
    if (status >= 0)
        status = decider->bring(decider->arg, session, &homing->err);
    if (status >= 0)
        status = annal_lease_get(store, session, &lease, &homing->err);
    decider_free(decider);
    if (status < 0)
        return fail_error(&homing->err);
    if (args->json)
        printf("{\"session_id\":\"%s\",\"epoch\":%" PRIu64 ",\"shared\":true}\n", homing->session,
               lease.epoch);
    else
        printf("session '%s' is shared: its events are decided at %s (epoch %" PRIu64 ")\n",
               homing->session, lease.giver, lease.epoch);
    return EXIT_DONE;
}

static int run_share(const struct args *args)
{
    return with_target(args, OPEN_CREATE, share);
}

static int join(const struct args *args, struct homing *homing)
{
    int exit_status = join_cluster(homing);
    const char *name = exit_status == 0 ? homing->kind->name(homing->target) : "";
    if (exit_status == 0 && args->json)
        printf("{\"cluster\":\"%s\"}\n", name);
    else if (exit_status == 0)
        printf("this store belongs to the cluster of %s\n", name);
    return exit_status;
}

static int run_join(const struct args *args)
{
    return with_target(args, OPEN_CREATE, join);
}

static int run_leave(const struct args *args)
{
    annal_store *store = NULL;
    annal_error err = {0};
    char url[SHARED_URL_BYTES];
    uint64_t sessions = 0;
    int exit_status = store_open(args, OPEN_WRITE, 0, &store);
    if (exit_status != 0)
        return exit_status;
    annal_status status = shared_url(store, url, &err);
    if (status == ANNAL_ERR_NOTFOUND)
        exit_status = fail_refused("this store belongs to no cluster");
    else if ((status < 0 && status != ANNAL_ERR_UNSUPPORTED) ||
             shared_leave(store, &sessions, &err) < 0)
        exit_status = fail_error(&err);
    else if (args->json)
        printf("{\"sessions\":%" PRIu64 "}\n", sessions);
    else
        printf("this store belongs to no cluster now; %" PRIu64
               " session%s that it shared take%s no "
               "more events here\n",
               sessions, sessions == 1 ? "" : "s", sessions == 1 ? "s" : "");
    return store_close(store, out_finish(exit_status));
}

/* ---- release ---- */

/* From here on nothing is appended. */
static int end_lease(struct homing *homing, uint64_t epoch)
{
    return give(homing, &(annal_lease){.epoch = epoch});
}

/* Everything must be at the target: nobody else has what was not shipped. */
static int check_shipped(struct homing *homing)
{
    struct place head = {0};
    annal_session_info info = {0};
    annal_status status = annal_session_info_get(
        homing->shipping.store, annal_slice_of(homing->session), &info, &homing->err);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return fail_error(&homing->err);
    if (homing->kind->head(homing->target, homing->session, &head, &homing->err) < 0)
        return fail_target(&homing->err);
    if (info.last_seq > head.seq)
        return fail_refused("session '%s' has %" PRIu64 " event%s that the target has not: 'annal "
                            "ship' first, then release it again",
                            homing->session, info.last_seq - head.seq,
                            info.last_seq - head.seq == 1 ? "" : "s");
    return 0;
}

/* The target has this epoch, with another name. */
static int refuse_name(const struct homing *homing, const struct home *home)
{
    if (strcmp(home->store, SHARED_STORE) == 0)
        return fail_refused("session '%s' is shared, and not in this store: 'annal home share' "
                            "first, then release it",
                            homing->session);
    return fail_refused("session '%s' is at home in store '%s' (epoch %" PRIu64
                        "), not in '%s': --as is the name with which it was taken",
                        homing->session, home->store, home->epoch, homing->shipping.name);
}

/* A shared session is decided at the target, so it ends there first: what breaks off is tried again
 * as long as the lease here says that it is shared. */
static int release(const struct args *args, struct homing *homing)
{
    struct home home = {0};
    annal_lease lease = {0};
    annal_status status = annal_lease_get(homing->shipping.store, annal_slice_of(homing->session),
                                          &lease, &homing->err);
    if (status == ANNAL_ERR_NOTFOUND)
        return fail_refused("session '%s' was neither taken nor shared in this store: 'annal home "
                            "status' says who has it",
                            homing->session);
    if (status < 0)
        return fail_error(&homing->err);
    int exit_status = reach(homing, lease.shared ? SHARED_STORE : homing->shipping.name);
    if (exit_status == 0 && !lease.shared)
        exit_status = end_lease(homing, lease.epoch);
    if (exit_status == 0 && !lease.shared)
        exit_status = check_shipped(homing);
    if (exit_status == 0 && homing->kind->release(homing->target, homing->session, lease.epoch,
                                                  &home, &homing->err) < 0)
        exit_status = fail_target(&homing->err);
    if (exit_status == 0 && !home.granted && home.epoch == lease.epoch)
        return refuse_name(homing, &home);
    if (exit_status == 0 && lease.shared)
        exit_status = end_lease(homing, lease.epoch);
    if (exit_status != 0)
        return exit_status;
    if (args->json)
        printf("{\"session_id\":\"%s\",\"released\":%s}\n", homing->session,
               home.granted ? "true" : "false");
    else if (home.granted)
        printf("session '%s' has no home now: any store may take it\n", homing->session);
    else
        printf("session '%s' was not at home here any more\n", homing->session);
    return EXIT_DONE;
}

static int run_release(const struct args *args)
{
    return with_target(args, OPEN_READ, release);
}

/* ---- keep ---- */

static int keep(const struct args *args, struct homing *homing)
{
    (void)args;
    const struct ship_options *options = &homing->shipping.options;
    int exit_status = reach(homing, homing->shipping.name);
    if (exit_status != 0)
        return exit_status;
    while (out_wanted()) {
        int64_t begun_us = annal_lease_now(), third_us = INT64_MAX;
        annal_status status = ANNAL_OK;
        if (homing->target == NULL)
            status = options->kind->open(&options->target, true, &homing->target, &homing->err);
        if (status >= 0)
            status = home_renew(homing->shipping.store, homing->kind, homing->target, &third_us,
                                &homing->err);
        if (status < 0 && status != ANNAL_ERR_BUSY)
            return fail_error(&homing->err);
        if (status < 0) {
            options->kind->close(homing->target);
            homing->target = NULL;
            third_us = third_us < AWAY_US ? third_us : AWAY_US;
        }
        while (out_wanted() && annal_lease_now() < begun_us + home_pace(third_us))
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return EXIT_DONE;
}

static int run_keep(const struct args *args)
{
    return with_target(args, OPEN_READ, keep);
}

/* ---- status ---- */

static const struct column columns[] = {
    {.name = "session_id", .title = "SESSION", .flexible = true},
    {.name = "home", .title = "HOME", .flexible = true},
    {.name = "epoch", .title = "EPOCH", .right = true},
    {.name = "seconds_left", .title = "SECONDS LEFT", .right = true},
    {.name = "here", .title = "HERE"},
};

struct listing {
    struct homing *homing;
    struct lanes lanes; /* only its glob is used */
    struct table *table;
};

static const char *here(const struct listing *listing, annal_slice session, const struct home *home)
{
    annal_lease lease = {0};
    const struct homing *homing = listing->homing;
    bool has_lease = annal_lease_get(homing->shipping.store, session, &lease, NULL) >= 0 &&
                     strcmp(lease.giver, homing->kind->name(homing->target)) == 0;
    if (home->store[0] == '\0')
        return "";
    if (!has_lease)
        return home->is_ours ? "lost" : "";
    if (home->epoch != lease.epoch)
        return "lost";
    if (lease.shared)
        return "shared";
    return annal_lease_now() < lease.until_us ? "at home" : "ended";
}

static annal_status print_home(void *arg, annal_slice session, const struct home *home,
                               annal_error *err)
{
    const struct listing *listing = arg;
    (void)err;
    if (!lane_is_wanted(&listing->lanes, session))
        return ANNAL_OK;
    table_text(listing->table, session);
    table_text(listing->table, annal_slice_of(home->store));
    table_number(listing->table, home->epoch);
    if (strcmp(home->store, SHARED_STORE) == 0)
        table_null(listing->table);
    else
        table_number(listing->table, home->seconds_left > 0 ? (uint64_t)home->seconds_left : 0);
    table_text(listing->table, annal_slice_of(here(listing, session, home)));
    table_row(listing->table);
    return ANNAL_OK;
}

static int status(const struct args *args, struct homing *homing)
{
    struct listing listing = {.homing = homing, .lanes = {.glob = args_get(args, "session")}};
    const struct ship_options *options = &homing->shipping.options;
    if (options->kind->open(&options->target, false, &homing->target, &homing->err) < 0)
        return fail_target(&homing->err);
    listing.table = table_new(args->json ? OUT_JSONL : OUT_TABLE, columns, 5);
    if (listing.table == NULL)
        return fail_storage("out of memory");
    annal_status failed =
        homing->kind->each(homing->target, NULL, print_home, &listing, &homing->err);
    table_free(listing.table);
    return failed < 0 ? fail_target(&homing->err) : EXIT_DONE;
}

static int run_status(const struct args *args)
{
    return with_target(args, OPEN_READ, status);
}

/* ---- The table ---- */

#define SESSION_OPERAND OPERAND("SESSION", FIELD_ID, NULL, "the session, by its whole id")
#define HOME_OPERAND    OPERAND("TARGET", FIELD_TEXT, NULL, "postgresql://host/db")

static const struct field take_fields[] = {SESSION_OPERAND, HOME_OPERAND, STORE_OPTIONS,
                                           OPTION_WITH("for", "SECONDS", FIELD_COUNT, NULL,
                                                       "how long the lease is (30)", .least = 1,
                                                       .most = 86400),
                                           FIELDS_END};

static const struct field share_fields[] = {SESSION_OPERAND, HOME_OPERAND, TIMEOUT_OPTION,
                                            FIELDS_END};
static const struct field join_fields[] = {HOME_OPERAND, TIMEOUT_OPTION, FIELDS_END};
static const struct field leave_fields[] = {FIELDS_END};
static const struct field release_fields[] = {SESSION_OPERAND, HOME_OPERAND, STORE_OPTIONS,
                                              FIELDS_END};
static const struct field keep_fields[] = {HOME_OPERAND, STORE_OPTIONS, FIELDS_END};
static const struct field status_fields[] = {HOME_OPERAND, TARGET_OPTIONS, FIELDS_END};

static const struct command verbs[] = {
    {.name = "take",
     .summary = "make this store the home of a session",
     .about = "A session that moves between hosts has one home at a time. The target, a\n"
              "PostgreSQL database that 'annal ship' ships to, gives this store a lease with an\n"
              "epoch, if no other store has one. Until the lease ends, appends work here; after\n"
              "that they are refused, and once another store has taken the session, nothing of\n"
              "it is shipped from here. 'annal home keep' and 'annal ship --follow' renew the\n"
              "lease.\n"
              "\n"
              "The session here must go on from what the target has. If it does not, because\n"
              "this store appended after its lease was lost, these events are kept in a session\n"
              "of their own, SESSION.late-EPOCH, and the home is given back. 'annal ship' keeps\n"
              "them, too, when the target has other events in their place.\n"
              "\n"
              "A session that was never taken needs no lease. The exit status is 1 when another\n"
              "store has it.",
     .examples = "  annal home take run-7 postgresql://db.example/fleet\n"
                 "  annal home take run-7 postgresql://db.example/fleet --for 60 --as host7\n",
     .fields = take_fields,
     .run = run_take},
    {.name = "share",
     .summary = "let several stores append to a session, event by event",
     .about = "From then on no store is the home of the session. The target decides every event\n"
              "before it is appended, one after the other, whichever store it comes from: the\n"
              "guards of packs are asked here, over all events that the target has, and the\n"
              "event is a fact when the target has it. So of many hosts one gets a task of a\n"
              "backlog. While the target is away, nothing is appended to the session.\n"
              "\n"
              "Each store that is to append to it runs this once, and gets the events that the\n"
              "target has. It belongs to the cluster of the target then, as after 'annal home\n"
              "join'.",
     .examples = "  annal home share proj_shop postgresql://db.example/fleet\n",
     .fields = share_fields,
     .run = run_share},
    {.name = "join",
     .summary = "make this store belong to a cluster",
     .about = "The stores of a cluster share the sessions that packs name with 'scope cluster':\n"
              "those of the packs agentweaver and memory are proj_*, run_* and wf_*. They need\n"
              "no 'annal home share': a session is shared before its first append here. A store\n"
              "that took a session with 'annal home take' decides about it alone, and waits for\n"
              "nobody. Events that are here already must have been shipped.\n"
              "\n"
              "The address is kept in STORE/cluster; a password belongs into ~/.pgpass. Appends\n"
              "go through 'annal append', the verbs of packs, and 'annal serve'.",
     .examples = "  annal home join postgresql://db.example/fleet\n",
     .fields = join_fields,
     .run = run_join},
    {.name = "leave",
     .summary = "make this store belong to no cluster",
     .about = "Sessions that it shared stay shared in the other stores, and take no more events\n"
              "here.",
     .examples = "  annal home leave\n",
     .fields = leave_fields,
     .run = run_leave},
    {.name = "keep",
     .summary = "renew the leases of this store, until it is ended",
     .about = "Renews every lease that this target gave this store, each when a third of it is\n"
              "over. A session that another store has taken is reported, and its appends are\n"
              "refused from then on. 'annal ship --follow' does the same.",
     .examples = "  annal home keep postgresql://db.example/fleet --as host7\n",
     .fields = keep_fields,
     .run = run_keep},
    {.name = "release",
     .summary = "give the home of a session back",
     .about = "Appends are refused from here on. When the target has all events of the session,\n"
              "any store may take it. Until then release fails: ship, and release it again.\n"
              "A session that is shared is shared no more, in all stores.\n"
              "\n"
              "--as is the name with which it was taken.",
     .examples = "  annal home release run-7 postgresql://db.example/fleet\n",
     .fields = release_fields,
     .run = run_release},
    {.name = "status",
     .summary = "list the homes of sessions, and what this store has",
     .about = "HOME is the store that has the session, * if stores share it, or nothing: then\n"
              "any may take it. Sessions that were never taken or shared are not listed.\n"
              "\n"
              "HERE is what this store has of it: at home, ended (its lease was not renewed in\n"
              "time, nobody else took it), lost (another store has it now, or the lease is not\n"
              "here any more), shared, or nothing.",
     .examples = "  annal home status postgresql://db.example/fleet\n"
                 "  annal home status postgresql://db.example/fleet --session 'run-*' --json\n",
     .fields = status_fields,
     .run = run_status},
    {0}};

const struct noun noun_home = {
    .name = "home", .summary = "which host may write a session", .verbs = verbs};
