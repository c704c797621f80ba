/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of annal home: a session's home is the only store that may append to it. */
#include "tools/cli/decider.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cli/verbs.h"
#include "tools/ship/home.h"
#include "tools/ship/shared.h"
#include "tools/ship/shipping.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { LEASE_SECONDS = 30, UNREACHABLE_US = 1000000 };

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
    int exit_status = ship_begin(args, mode, shipping);
    if (exit_status == 0) {
        homing.kind = shipping->options.kind->homes;
        if (homing.kind == NULL)
            exit_status = fail_usage(
                "only a target that begins with postgresql:// records the homes of sessions");
    }
    if (exit_status == 0)
        exit_status = fn(args, &homing);
    if (homing.target != NULL)
        shipping->options.kind->close(homing.target);
    return store_close(shipping->store, out_finish(exit_status));
}

/* Connect to the target under the store name `as`. Returns 0 or an exit status. */
static int reach(struct homing *homing, const char *as)
{
    struct ship_options *options = &homing->shipping.options;
    options->target.store = as;
    return options->kind->open(&options->target, true, &homing->target, &homing->err) < 0
               ? ship_fail_target(&homing->err)
               : 0;
}

/* ---- take ---- */

/* Refuse to take the session, because its local journal does not continue after the target's last
 * event. Its local events were appended after the lease expired: save them as another session
 * (home.h, rule 3: late events are kept). */
static int refuse_history(struct homing *homing, const struct place *head, uint64_t last_seq,
                          uint64_t lost_epoch)
{
    struct home_late late;
    annal_status status = home_late_keep(homing->shipping.store, homing->kind, homing->target,
                                         homing->session, lost_epoch, &late, &homing->err);
    if (status < 0)
        return ship_fail_target(&homing->err);
    if (late.is_other)
        return fail_refused("the target already has a different session named '%s': a session name "
                            "must be unique in a cluster",
                            homing->session);
    if (late.events == 0)
        return fail_refused("session '%s' ends with event %" PRIu64
                            " in this store, but with event %" PRIu64
                            " at the target: download the session first, with 'annal pull'",
                            homing->session, last_seq, head->seq);
    return fail_refused("session '%s': the target lacks %" PRIu64
                        " local event%s after event %" PRIu64
                        "; at the target the session ends with event %" PRIu64
                        ". The local events are saved as session '%s'; delete session '%s' in this "
                        "store, then download the session with 'annal pull'",
                        homing->session, late.events, late.events == 1 ? "" : "s", late.after_seq,
                        head->seq, late.name, homing->session);
}

/* Check that the local journal continues after the last event at the target. */
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
        return ship_fail_target(&homing->err);
    if (head.at == 0)
        return 0; /* nothing to compare: the target has no events of this session */
    status =
        annal_cursor_open_at(store, session, head.seq + 1, head.at, head.h, &cursor, &homing->err);
    annal_cursor_close(cursor);
    if (status >= 0)
        return 0;
    return status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_NOTFOUND
               ? refuse_history(homing, &head, info.last_seq, lost_epoch)
               : fail_error(&homing->err);
}

/* Check that the local journal agrees with the target before a session is taken that has no home
 * (no store owns it), so that a refusal changes nothing. */
static int look_before(struct homing *homing, uint64_t lost_epoch)
{
    struct home home;
    if (home_find(homing->kind, homing->target, homing->session, &home, &homing->err) < 0)
        return ship_fail_target(&homing->err);
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
    annal_lease old = {0}, lease = {.seconds = (uint32_t)fields_count(args, "for", LEASE_SECONDS)};
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
        return ship_fail_target(&homing->err);
    if (!home.granted && strcmp(home.store, SHARED_STORE) == 0)
        return fail_refused(
            "session '%s' is shared: no store can take it before 'annal home release'",
            homing->session);
    if (!home.granted)
        return fail_refused("session '%s' is at home in store '%s' (epoch %" PRIu64
                            "), whose lease ends in %.0f s unless it is renewed",
                            homing->session, home.store, home.epoch, home.seconds_left);
    exit_status = compare_head(homing, old.epoch);
    if (exit_status != 0) { /* this store took the session but cannot use it: give it back */
        struct home ignored;
        return homing->kind->release(homing->target, homing->session, home.epoch, &ignored,
                                     &homing->err) < 0
                   ? ship_fail_target(&homing->err)
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

/* ---- share, join, leave ---- */

/* Add the store to the cluster of the target, if the target exists. */
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
    must_true(decider != NULL);
    annal_status status = decider->share(decider->arg, session, &homing->err);
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
        printf("session '%s' is shared: %s decides about its events (epoch %" PRIu64 ")\n",
               homing->session, lease.giver, lease.epoch);
    return EXIT_DONE;
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
        exit_status =
            fail_refused("this store does not belong to a cluster: 'annal home join' joins one");
    else if ((status < 0 && status != ANNAL_ERR_UNSUPPORTED) ||
             shared_leave(store, &sessions, &err) < 0)
        exit_status = fail_error(&err);
    else if (args->json)
        printf("{\"sessions\":%" PRIu64 "}\n", sessions);
    else
        printf("this store has left its cluster; %" PRIu64
               " session%s that it shared accept%s no more events here\n",
               sessions, sessions == 1 ? "" : "s", sessions == 1 ? "s" : "");
    return store_close(store, out_finish(exit_status));
}

/* ---- release ---- */

/* End the lease. Appends are refused from here on. */
static int end_lease(struct homing *homing, uint64_t epoch)
{
    return give(homing, &(annal_lease){.epoch = epoch});
}

/* Check that the target has all local events of the session, so that the next store to take it has
 * them too. */
static int check_shipped(struct homing *homing)
{
    struct place head = {0};
    annal_session_info info = {0};
    annal_status status = annal_session_info_get(
        homing->shipping.store, annal_slice_of(homing->session), &info, &homing->err);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return fail_error(&homing->err);
    if (homing->kind->head(homing->target, homing->session, &head, &homing->err) < 0)
        return ship_fail_target(&homing->err);
    if (info.last_seq > head.seq)
        return fail_refused(
            "session '%s' has %" PRIu64
            " event%s that the target lacks: run 'annal ship', then release the session again",
            homing->session, info.last_seq - head.seq, info.last_seq - head.seq == 1 ? "" : "s");
    return 0;
}

/* Refuse to release the session: the target names another store as its home. */
static int refuse_name(const struct homing *homing, const struct home *home)
{
    if (strcmp(home->store, SHARED_STORE) == 0)
        return fail_refused("session '%s' is shared, but not in this store: run 'annal home share' "
                            "first, then release the session",
                            homing->session);
    return fail_refused("session '%s' is at home in store '%s' (epoch %" PRIu64
                        "), not in '%s': set --as to the name with which it was taken",
                        homing->session, home->store, home->epoch, homing->shipping.name);
}

/* End the sharing of a shared session at the target first, because the target decides about its
 * events; then end the local lease. If this fails, it can be repeated as long as the local lease is
 * marked as shared. */
static int release(const struct args *args, struct homing *homing)
{
    struct home home = {0};
    annal_lease lease = {0};
    annal_status status = annal_lease_get(homing->shipping.store, annal_slice_of(homing->session),
                                          &lease, &homing->err);
    if (status == ANNAL_ERR_NOTFOUND)
        return fail_refused("session '%s' was neither taken nor shared in this store: 'annal home "
                            "status' prints its home",
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
        exit_status = ship_fail_target(&homing->err);
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
        printf("session '%s' was no longer at home here\n", homing->session);
    return EXIT_DONE;
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
            third_us = third_us < UNREACHABLE_US ? third_us : UNREACHABLE_US;
        }
        while (out_wanted() && annal_lease_now() < begun_us + home_pace(third_us))
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return EXIT_DONE;
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
    struct shipments shipments; /* only the member glob is used */
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
    if (!shipment_is_wanted(&listing->shipments, session))
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
    struct listing listing = {.homing = homing, .shipments = {.glob = args_get(args, "session")}};
    const struct ship_options *options = &homing->shipping.options;
    if (options->kind->open(&options->target, false, &homing->target, &homing->err) < 0)
        return ship_fail_target(&homing->err);
    listing.table = table_new(args->json ? OUT_JSONL : OUT_TABLE, columns, 5);
    annal_status failed =
        homing->kind->each(homing->target, NULL, print_home, &listing, &homing->err);
    table_free(listing.table);
    return failed < 0 ? ship_fail_target(&homing->err) : EXIT_DONE;
}

/* ---- The table ---- */

/* Run a verb that needs the target. */
static int run(const struct args *args)
{
    static const struct {
        const char *verb;
        enum open_mode mode;
        int (*fn)(const struct args *args, struct homing *homing);
    } verbs[] = {{"take", OPEN_CREATE, take}, {"share", OPEN_CREATE, share},
                 {"join", OPEN_CREATE, join}, {"release", OPEN_READ, release},
                 {"keep", OPEN_READ, keep},   {"status", OPEN_READ, status}};
    size_t i = 0;
    while (strcmp(verbs[i].verb, args->command->name) != 0)
        i++;
    return with_target(args, verbs[i].mode, verbs[i].fn);
}

#define SESSION_OPERAND OPERAND("SESSION", FIELD_ID, NULL, "full name of the session")
#define HOME_OPERAND    OPERAND("TARGET", FIELD_TEXT, NULL, "postgresql://host/db")

static const struct field take_fields[] = {SESSION_OPERAND, HOME_OPERAND, STORE_OPTIONS,
                                           OPTION_WITH("for", "SECONDS", FIELD_COUNT, NULL,
                                                       "duration of the lease (30)", .least = 1,
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
    {COMMAND("take", "make this store the home of a session", home_take, take_fields, run)},
    {COMMAND("share", "let several stores append to a session, event by event", home_share,
             share_fields, run)},
    {COMMAND("join", "add this store to a cluster", home_join, join_fields, run)},
    {COMMAND("leave", "remove this store from its cluster", home_leave, leave_fields, run_leave)},
    {COMMAND("keep", "renew the leases of this store until interrupted", home_keep, keep_fields,
             run)},
    {COMMAND("release", "release a session so that another store can take it", home_release,
             release_fields, run)},
    {COMMAND("status", "list the homes of sessions, and the role of this store", home_status,
             status_fields, run)},
    {0}};

const struct noun noun_home = {
    .name = "home", .summary = "choose which host may write a session", .verbs = verbs};
