/* SPDX-License-Identifier: Apache-2.0 */
/* annal ship: the verbs. */
#include "journal/base/error.h"
#include "journal/sys/cursor.h"
#include "tools/cli/fields.h"
#include "tools/cli/open.h"
#include "tools/cli/out.h"
#include "tools/cli/verbs.h"
#include "tools/ship/looking.h"
#include "tools/ship/shared.h"
#include "tools/ship/shipping.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

extern const char annal__sql_ship_schema[];

enum { TIMEOUT_S = 30 };

static bool is_postgres(const char *url)
{
    return strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0;
}

const struct ship_kind *ship_kind_of(const char *url)
{
#ifdef ANNAL_SHIP_POSTGRES
    if (is_postgres(url))
        return &ship_postgres;
#endif
#ifdef ANNAL_SHIP_NATS
    if (strncmp(url, "nats://", 7) == 0)
        return &ship_nats;
#endif
#ifdef ANNAL_SHIP_S3
    if (strncmp(url, "s3://", 5) == 0)
        return &ship_bucket;
#endif
    return strncmp(url, "file:///", 8) == 0 ? &ship_lake : NULL;
}

/* ---- What all verbs begin with ---- */

int ship_find_kind(const char *url, const struct ship_kind **out)
{
    *out = ship_kind_of(url);
#ifdef ANNAL_SHIP_S3
    if (*out == &ship_bucket && !ship_names_bucket(url))
        return fail_usage("'%s' names no bucket: s3://bucket/prefix", url);
#endif
    if (*out != NULL)
        return 0;
    if (is_postgres(url))
        return fail_refused("this annal was built without libpq, PostgreSQL's library: install "
                            "libpq-dev and build it again");
    if (strncmp(url, "s3://", 5) == 0)
        return fail_refused("this annal was built without libcurl: install libcurl4-openssl-dev "
                            "and build it again");
    if (strncmp(url, "nats://", 7) == 0)
        return fail_refused("this annal was built without libnats: install libnats-dev and build "
                            "it again");
    return fail_usage("'%.*s' is no target: it begins with postgresql://, file:///, s3:// or "
                      "nats://",
                      args_shown(url), url);
}

int fail_target(const annal_error *err)
{
    return err->status == ANNAL_ERR_BUSY ? fail_storage("%s", err->message) : fail_error(err);
}

/* HOST:PATH, unless --as says another name. */
static int find_name(const struct args *args, struct shipping *shipping)
{
    char host[HOST_NAME_MAX + 1] = "";
    const char *given = args_get(args, "as");
    if (given != NULL && (given[0] == '\0' || strlen(given) > 200))
        return fail_usage("--as needs a name of 1 to 200 bytes");
    if (given == NULL && gethostname(host, sizeof host - 1) < 0)
        return fail_storage("this machine has no name: give the store one with --as NAME");
    if (given != NULL)
        snprintf(shipping->name, sizeof shipping->name, "%s", given);
    else
        snprintf(shipping->name, sizeof shipping->name, "%s:%s", host,
                 annal_store_path(shipping->store));
    shipping->options.target.store = shipping->name;
    return 0;
}

int shipping_begin(const struct args *args, enum open_mode mode, struct shipping *shipping)
{
    struct ship_options *options = &shipping->options;
    *shipping = (struct shipping){0};
    options->target.url = args_get(args, "TARGET");
    options->target.quiet_ms = (uint32_t)args_count(args, "timeout", TIMEOUT_S) * 1000;
    options->glob = args_get(args, "session");
    options->wait_ms = args->wait_ms;
    options->json = args->json;
    int exit_status = ship_find_kind(options->target.url, &options->kind);
    if (exit_status == 0)
        exit_status = store_open(args, mode, 0, &shipping->store);
    if (exit_status != 0)
        return exit_status;
    store_wait_each(shipping->store);
    return find_name(args, shipping);
}

/* ---- to ---- */

static int run_to(const struct args *args)
{
    struct shipping shipping;
    int exit_status = shipping_begin(args, OPEN_READ, &shipping);
    if (exit_status == 0) {
        shipping.options.batch_events = args_count(args, "batch", 50000);
        shipping.options.follow = args_has(args, "follow");
        exit_status = ship_run(shipping.store, &shipping.options);
    }
    return store_close(shipping.store, out_finish(exit_status));
}

/* ---- status and check ---- */

static const struct column columns[] = {
    {.name = "session_id", .title = "SESSION", .flexible = true},
    {.name = "seq", .title = "HERE", .right = true},
    {.name = "target_seq", .title = "TARGET", .right = true},
    {.name = "behind", .title = "BEHIND", .right = true},
    {.name = "state", .title = "STATE"},
};

uint64_t looking_behind(const struct lane *lane)
{
    return lane->last_seq > lane->there.seq ? lane->last_seq - lane->there.seq : 0;
}

/* A shared session is here as far as it was brought. It has more only if the target lost events.
 * looking->err: the target did not say. */
static bool is_its_beginning(struct looking *looking, const struct lane *lane)
{
    annal_session_info info = {0};
    annal_cursor *cursor = NULL;
    uint64_t same_seq = 0;
    annal_store *store = looking->lanes.store;
    annal_slice session = annal_slice_of(lane->session);
    if (annal_session_info_get(store, session, &info, NULL) < 0)
        return false;
    if (info.last_seq > lane->there.seq && lane->has_head) {
        annal_status status = annal_cursor_open_at(store, session, lane->there.seq + 1,
                                                   lane->there.at, lane->there.h, &cursor, NULL);
        annal_cursor_close(cursor);
        return status >= 0;
    }
    const struct place last = {.seq = info.last_seq, .h = info.last_h};
    return looking->shipping->options.kind->homes->shared(looking->target, lane->session, &last, 1,
                                                          &same_seq, &looking->err) < 0 ||
           last.seq > lane->there.seq || same_seq == last.seq;
}

/* Whether the journal goes on from the head; err says why not. */
void looking_try_lane(struct looking *looking, struct lane *lane, annal_error *err)
{
    annal_cursor *cursor = NULL;
    if (lane->state == LANE_GOING && lane->has_head &&
        lane_open(&looking->lanes, lane, &cursor, err) < 0)
        lane->state = LANE_DAMAGED;
    annal_cursor_close(cursor);
    if (lane->state == LANE_SHARED && !is_its_beginning(looking, lane))
        lane->state = LANE_CONFLICT;
    looking->bad = looking->bad || lane->state == LANE_CONFLICT || lane->state == LANE_DAMAGED;
}

/* Of what the target lacks, the first event, after which the shipper goes on or stops. */
static void read_next(struct looking *looking, struct lane *lane)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status = lane_open(&looking->lanes, lane, &cursor, NULL);
    lane->next = lane->there;
    if (status == ANNAL_OK && !lane->has_head)
        lane->next.seq = annal__cursor_header(cursor).first_seq - 1;
    if (status == ANNAL_OK && lane_read(lane, cursor, &event, NULL) == ANNAL_ERR_CORRUPT)
        lane->state = LANE_DAMAGED;
    annal_cursor_close(cursor);
    looking->bad = looking->bad || lane->state == LANE_DAMAGED;
}

static const char *state_of(struct looking *looking, struct lane *lane)
{
    static const char *const names[] = {[LANE_CONFLICT] = "conflict",
                                        [LANE_DAMAGED] = "damaged",
                                        [LANE_AWAY] = "not at home",
                                        [LANE_SHARED] = "shared",
                                        [LANE_GONE] = "not here"};
    looking_try_lane(looking, lane, NULL);
    if (lane->state == LANE_GOING && lane->waits)
        read_next(looking, lane);
    if (lane->state != LANE_GOING)
        return names[lane->state];
    return looking_behind(lane) == 0 ? "equal" : lane->has_head ? "behind" : "new";
}

static int print_lane(void *arg, struct lane *lane)
{
    struct looking *looking = arg;
    const char *state = state_of(looking, lane);
    if (looking->err.status < 0)
        return 1;
    table_text(looking->table, annal_slice_of(lane->session));
    table_number(looking->table, lane->last_seq);
    table_number(looking->table, lane->there.seq);
    table_number(looking->table, looking_behind(lane));
    table_text(looking->table, annal_slice_of(state));
    table_row(looking->table);
    return out_wanted() ? 0 : 1;
}

static int find_lanes(struct looking *looking)
{
    const struct ship_options *options = &looking->shipping->options;
    looking->lanes = (struct lanes){.store = looking->shipping->store, .glob = options->glob};
    annal_status status =
        options->kind->open(&options->target, false, &looking->target, &looking->err);
    if (status >= 0)
        status = lanes_survey(&looking->lanes, options->kind, looking->target, &looking->err);
    if (status >= 0)
        lanes_learn_ends(&looking->lanes);
    return status < 0 ? fail_target(&looking->err) : 0;
}

static int with_lanes(const struct args *args, int (*fn)(struct looking *looking))
{
    struct shipping shipping;
    struct looking looking = {.shipping = &shipping, .want_artifacts = args_has(args, "artifacts")};
    int exit_status = shipping_begin(args, OPEN_READ, &shipping);
    if (exit_status == 0)
        exit_status = find_lanes(&looking);
    if (exit_status == 0)
        exit_status = fn(&looking);
    if (shipping.options.kind != NULL) {
        shipping.options.kind->close(looking.target);
        shipping.options.kind->close(looking.shared);
    }
    lanes_done(&looking.lanes);
    references_clear(&looking.references);
    return store_close(shipping.store, out_finish(exit_status));
}

/* Its head has another name than this store. */
static annal_status note_head(struct looking *looking, struct lane *lane, enum lane_state state,
                              annal_error *err)
{
    annal_status status = looking->shipping->options.kind->homes->head(
        looking->target, lane->session, &lane->there, err);
    lane->has_head = status >= 0 && lane->there.at > 0;
    lane->state = state;
    return status;
}

annal_status looking_note_shared(void *arg, annal_slice session, const struct home *home,
                                 annal_error *err)
{
    struct looking *looking = arg;
    annal_lease lease = {0};
    struct lane *lane = lane_find(&looking->lanes, session);
    if (lane->last_seq == 0 || strcmp(home->store, SHARED_STORE) != 0 ||
        annal_lease_get(looking->lanes.store, session, &lease, NULL) < 0 || !lease.shared)
        return ANNAL_OK;
    return note_head(looking, lane, LANE_SHARED, err);
}

static annal_status note_home(void *arg, annal_slice session, const struct home *home,
                              annal_error *err)
{
    struct looking *looking = arg;
    annal_lease lease = {0};
    struct lane *lane = lane_find(&looking->lanes, session);
    annal_status status = looking_note_shared(looking, session, home, err);
    bool has_lease = annal_lease_get(looking->lanes.store, session, &lease, NULL) == ANNAL_OK;
    if (lane->last_seq == 0)
        lane->state = LANE_GONE;
    else if (lane->state != LANE_SHARED &&
             (!home->is_ours || !has_lease || home->epoch != lease.epoch))
        status = note_head(looking, lane, LANE_AWAY, err);
    return status;
}

annal_status looking_ask_homes(struct looking *looking, home_fn fn)
{
    const struct home_kind *homes = looking->shipping->options.kind->homes;
    return homes == NULL
               ? ANNAL_OK
               : homes->each(looking->target, &looking->lanes, fn, looking, &looking->err);
}

/* Rows of sessions and turns come after the events. */
annal_status looking_say_rows(struct looking *looking)
{
    const struct ship_kind *kind = looking->shipping->options.kind;
    struct ship_rows rows = {0};
    if (kind->look_at_rows == NULL)
        return ANNAL_OK;
    annal_status status = kind->look_at_rows(looking->target, &rows, &looking->err);
    if (status >= 0 && rows.batches > 0)
        say("the rows of sessions and turns are %" PRIu64 " batch%s and %.1f s behind the events",
            rows.batches, rows.batches == 1 ? "" : "es", rows.seconds);
    return status;
}

static int print_status(struct looking *looking)
{
    if (looking_ask_homes(looking, note_home) < 0)
        return fail_target(&looking->err);
    looking->table = table_new(looking->shipping->options.json ? OUT_JSONL : OUT_TABLE, columns, 5);
    if (looking->table == NULL)
        return fail_storage("out of memory");
    looking->err.status = ANNAL_OK;
    (void)lanes_each(&looking->lanes, print_lane, looking);
    table_free(looking->table);
    if (looking->err.status < 0 || looking_say_rows(looking) < 0)
        return fail_target(&looking->err);
    return looking->bad ? EXIT_REFUSED : EXIT_DONE;
}

static int run_status(const struct args *args)
{
    return with_lanes(args, print_status);
}

/* ---- check ---- */

static int run_check(const struct args *args)
{
    const struct ship_kind *kind = ship_kind_of(args_get(args, "TARGET"));
    if (kind != NULL && kind->prove == NULL && kind->rows == NULL)
        return fail_usage("a stream is not checked here: 'annal tail --from' says what it lacks");
    return with_lanes(args, looking_check);
}

/* ---- compact ---- */

enum { KEEP_HOURS = 24 };

static int print_compacted(const struct shipping *shipping, const struct ship_compacted *done)
{
    if (shipping->options.json)
        printf("{\"read\":%" PRIu64 ",\"made\":%" PRIu64 ",\"removed\":%" PRIu64 "}\n", done->read,
               done->made, done->removed);
    else
        printf("%" PRIu64 " files became %" PRIu64 "; %" PRIu64
               " that were replaced earlier were removed\n",
               done->read, done->made, done->removed);
    return EXIT_DONE;
}

static int compact(const struct args *args, const struct shipping *shipping)
{
    const struct ship_kind *kind = shipping->options.kind;
    const struct ship_compact how = {.today = args_has(args, "today"),
                                     .keep_us = (int64_t)args_count(args, "keep", KEEP_HOURS) *
                                                3600 * 1000000};
    struct ship_compacted done = {0};
    struct ship_target *target = NULL;
    annal_error err = {0};
    if (kind->compact == NULL)
        return fail_usage("only a lake is compacted");
    annal_status status = kind->open(&shipping->options.target, true, &target, &err);
    if (status >= 0)
        status = kind->compact(target, &how, &done, &err);
    kind->close(target);
    return status < 0 ? fail_target(&err) : print_compacted(shipping, &done);
}

static int run_compact(const struct args *args)
{
    struct shipping shipping;
    int exit_status = shipping_begin(args, OPEN_READ, &shipping);
    if (exit_status == 0)
        exit_status = compact(args, &shipping);
    return store_close(shipping.store, out_finish(exit_status));
}

/* ---- tables ---- */

static int run_tables(const struct args *args)
{
    struct shipping shipping;
    int exit_status = shipping_begin(args, OPEN_READ, &shipping);
    shipping.options.follow = args_has(args, "follow");
    if (exit_status == 0 && shipping.options.kind->send_pack_tables == NULL)
        exit_status = fail_usage("this target has no tables of packs: they need postgresql://");
    else if (exit_status == 0)
        exit_status = shipping.options.kind->send_pack_tables(shipping.store, &shipping.options);
    return store_close(shipping.store, out_finish(exit_status));
}

/* ---- schema ---- */

static int run_schema(const struct args *args)
{
    (void)args;
    fputs(annal__sql_ship_schema, stdout);
    return out_finish(EXIT_DONE);
}

/* ---- The table ---- */

static const struct field to_fields[] = {
    TARGET_OPERAND, TARGET_OPTIONS,
    FLAG("follow", NULL, "go on with what is appended, until it is ended"),
    OPTION_WITH("batch", "N", FIELD_COUNT, NULL, "events of a transaction (50000)", .least = 1,
                .most = 10000000),
    FIELDS_END};

static const struct field tables_fields[] = {
    TARGET_OPERAND, TARGET_OPTIONS,
    FLAG("follow", NULL, "go on with what changes, until it is ended"), FIELDS_END};

static const struct field look_fields[] = {TARGET_OPERAND, TARGET_OPTIONS, FIELDS_END};

static const struct field check_fields[] = {
    TARGET_OPERAND, TARGET_OPTIONS,
    FLAG("artifacts", NULL, "also read every artifact that a shipped event names"), FIELDS_END};

static const struct field compact_fields[] = {
    TARGET_OPERAND, STORE_OPTIONS,
    FLAG("today", NULL, "also the files of the day that is not over"),
    OPTION_WITH("keep", "HOURS", FIELD_COUNT, NULL,
                "remove files that were replaced so long ago (24)", .least = 0, .most = 87600),
    FIELDS_END};

static const struct field no_fields[] = {FIELDS_END};

static const struct command verbs[] = {
    {.name = "to",
     .summary = "ship all sessions to a target, each event exactly once",
     .about = "Copies events to a PostgreSQL database (schema annal, which is made when it is\n"
              "missing and upgraded when it is older), or to a directory or bucket of Parquet\n"
              "files, which DuckDB's library writes. The word 'to' may be left out. Where a\n"
              "bucket is, and its keys, is in AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID\n"
              "and AWS_SECRET_ACCESS_KEY. nats://HOST is a stream of JetStream, which 'annal\n"
              "tail --from nats://HOST' follows; there events arrive at least once.\n"
              "\n"
              "The target decides what it takes. It has a head for each session, its last\n"
              "event there and its hash; only what continues a head is sent, and head and\n"
              "events are one transaction. So nothing is there twice or missing, however\n"
              "often shippers, networks and servers break, also with two shippers of one store.\n"
              "A session that has another history there is reported, and left alone.\n"
              "\n"
              "A database also gets the rows of sessions and turns, some seconds after the\n"
              "events: with --follow beside the shipping, else before the command ends.\n"
              "\n"
              "With --follow it goes on with what is appended, until it is ended. A target that\n"
              "is away is tried again, after a quarter of a second at first, half a minute at\n"
              "last; without --follow for as long as --wait says. Nothing waits for the target\n"
              "but this command: the journals are the buffer.\n"
              "\n"
              "The exit status is 1 when a session was not shipped, 3 when the target was away.\n"
              "docs/ship.md says how to set it up and what to do when something breaks.",
     .examples = "  annal ship to postgresql://db.example/fleet\n"
                 "  annal ship file:///mnt/lake\n"
                 "  annal ship s3://bucket/lake --follow\n"
                 "  annal ship postgresql://db.example/fleet --follow --as host7\n"
                 "  annal ship postgresql://db.example/fleet --session 'run-*' --json\n",
     .fields = to_fields,
     .run = run_to},
    {.name = "status",
     .summary = "show how far a target is behind, session by session",
     .about = "Prints for each session its last event here and at the target, and a state:\n"
              "equal, behind, new (nothing is there yet), conflict (another history is there),\n"
              "damaged (its next event cannot be read) or not here; and as 'annal help home'\n"
              "says, not at home (another store has it) or shared (stores decide it there).\n"
              "If the rows of sessions and turns of a database are behind its events, that is\n"
              "said on stderr. The exit status is 1 if one is in conflict or damaged.",
     .examples = "  annal ship status postgresql://db.example/fleet\n"
                 "  annal ship status postgresql://db.example/fleet --json | jq .behind\n",
     .fields = look_fields,
     .run = run_status},
    {.name = "check",
     .summary = "prove that a target has what the journals have",
     .about = "Reads every event of every session back from the database and compares it with\n"
              "the journal: seq, time, type, id, cause, data, hash. What was not shipped, and\n"
              "what retention dropped there, is counted. Of a lake, every file is compared with\n"
              "the hash in its manifest, and the heads with the journals. The exit status is 1\n"
              "when an event differs, is missing, or is there twice.\n"
              "\n"
              "With --artifacts it also reads all artifacts that these events name, and\n"
              "compares each with its hash. One that is missing there is an error, unless it\n"
              "cannot be shipped: it is larger than 16 MiB, or not here any more.",
     .examples = "  annal ship check postgresql://db.example/fleet\n"
                 "  annal ship check s3://bucket/lake --as host7 --artifacts\n",
     .fields = check_fields,
     .run = run_check},
    {.name = "compact",
     .summary = "make few large files of the many small ones of a lake",
     .about = "Merges the small Parquet files of each day that is over, and proves that the new\n"
              "file has the same rows. A manifest says which files it replaces. They stay for\n"
              "--keep, for readers that began before, and are removed by a later run. From then\n"
              "on the lake is read by the list of its files, as docs/ship.md shows: a pattern\n"
              "like *.parquet would find old and new files.",
     .examples = "  annal ship compact file:///mnt/lake\n"
                 "  annal ship compact s3://bucket/lake --keep 48\n",
     .fields = compact_fields,
     .run = run_compact},
    {.name = "tables",
     .summary = "send the rows of the tables of packs to a database",
     .about = "The tables of the packs that are on get a view each at the target, schema annal,\n"
              "with the same columns, and store: of all stores together. The rows are those\n"
              "of the tables here. Of a session all rows of a pack are sent again when it\n"
              "grew, and replace those of an earlier event; events must be there first, so run\n"
              "it after 'annal ship', or with --follow beside 'annal ship --follow'. It may be\n"
              "killed and repeated, and run in all stores that share a session.\n"
              "\n"
              "Which rows belong to a session is what the section '-- forget' of its pack would\n"
              "delete. Packs without it are left out, and views, triggers and indexes of packs.\n"
              "The exit status is 1 when a session has another history at the target or more\n"
              "than 64 MiB of rows in a pack, or when a pack cannot be asked.",
     .examples = "  annal ship tables postgresql://db.example/fleet\n"
                 "  annal ship tables postgresql://db.example/fleet --follow --as host7\n"
                 "  annal ship tables postgresql://db.example/fleet --session 'run_*' --json\n",
     .fields = tables_fields,
     .run = run_tables},
    {.name = "schema",
     .summary = "print the SQL that makes or upgrades the schema",
     .about = "For a database in which the shipper's role may not make it: its owner runs this.\n"
              "It may be run again.",
     .examples = "  annal ship schema | psql postgresql://owner@db.example/fleet\n",
     .fields = no_fields,
     .run = run_schema},
    {0}};

const struct noun noun_ship = {.name = "ship",
                               .summary = "events at other engines: PostgreSQL, Parquet, NATS",
                               .verbs = verbs,
                               .usual = "to"};
