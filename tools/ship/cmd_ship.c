/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of annal ship. */
#include "journal/sys/cursor.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cli/verbs.h"
#include "tools/ship/inspection.h"
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

/* ---- Common parts ---- */

int ship_find_kind(const char *url, const struct ship_kind **out)
{
    *out = ship_kind_of(url);
#ifdef ANNAL_SHIP_S3
    if (*out == &ship_bucket && !lake_s3_names_bucket(url))
        return fail_usage("the target '%s' has no bucket name: write s3://bucket/prefix", url);
#endif
    if (*out != NULL)
        return 0;
    if (is_postgres(url))
        return fail_refused("this annal was built without libpq, the library of PostgreSQL: "
                            "install libpq-dev and build annal again");
    if (strncmp(url, "s3://", 5) == 0)
        return fail_refused("this annal was built without libcurl: install libcurl4-openssl-dev "
                            "and build annal again");
    if (strncmp(url, "nats://", 7) == 0)
        return fail_refused(
            "this annal was built without libnats: install libnats-dev and build annal again");
    return fail_usage("'%.*s' is not a valid target: a target must begin with postgresql://, "
                      "file:///, s3:// or nats://",
                      args_shown(url), url);
}

int ship_fail_target(const annal_error *err)
{
    return err->status == ANNAL_ERR_BUSY ? fail_storage("%s", err->message) : fail_error(err);
}

/* Set the name of the store to HOST:PATH or to --as. */
static int find_name(const struct args *args, struct shipping *shipping)
{
    char host[HOST_NAME_MAX + 1] = "";
    const char *given = args_get(args, "as");
    if (given != NULL && (given[0] == '\0' || strlen(given) > 200))
        return fail_usage("--as needs a name of 1 to 200 bytes");
    if (given == NULL && gethostname(host, sizeof host - 1) < 0)
        return fail_storage("this machine has no host name that could name the store: name the "
                            "store with --as NAME");
    if (given != NULL)
        snprintf(shipping->name, sizeof shipping->name, "%s", given);
    else
        snprintf(shipping->name, sizeof shipping->name, "%s:%s", host,
                 annal_store_path(shipping->store));
    shipping->options.target.store = shipping->name;
    return 0;
}

int ship_begin(const struct args *args, enum open_mode mode, struct shipping *shipping)
{
    struct ship_options *options = &shipping->options;
    *shipping = (struct shipping){0};
    options->target.url = args_get(args, "TARGET");
    options->target.quiet_ms = (uint32_t)fields_count(args, "timeout", TIMEOUT_S) * 1000;
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
    int exit_status = ship_begin(args, OPEN_READ, &shipping);
    if (exit_status == 0) {
        shipping.options.batch_events = fields_count(args, "batch", 50000);
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

uint64_t ship_inspection_behind(const struct shipment *shipment)
{
    return shipment->last_seq > shipment->head.seq ? shipment->last_seq - shipment->head.seq : 0;
}

/* Check that the local events of a shared session are the first events of the target's history. The
 * session has more local events than the target only if the target lost some. If the target cannot
 * be read, inspection->err is set. */
static bool is_its_beginning(struct inspection *inspection, const struct shipment *shipment)
{
    annal_session_info info = {0};
    annal_cursor *cursor = NULL;
    uint64_t same_seq = 0;
    annal_store *store = inspection->shipments.store;
    annal_slice session = annal_slice_of(shipment->session);
    if (annal_session_info_get(store, session, &info, NULL) < 0)
        return false;
    if (info.last_seq > shipment->head.seq && shipment->has_head) {
        annal_status status =
            annal_cursor_open_at(store, session, shipment->head.seq + 1, shipment->head.at,
                                 shipment->head.h, &cursor, NULL);
        annal_cursor_close(cursor);
        return status >= 0;
    }
    const struct place last = {.seq = info.last_seq, .h = info.last_h};
    return inspection->shipping->options.kind->homes->shared(
               inspection->target, shipment->session, &last, 1, &same_seq, &inspection->err) < 0 ||
           last.seq > shipment->head.seq || same_seq == last.seq;
}

/* Check that the journal continues after the last event at the target; on failure err has the
 * reason. */
void ship_inspection_try(struct inspection *inspection, struct shipment *shipment, annal_error *err)
{
    annal_cursor *cursor = NULL;
    if (shipment->state == SHIPMENT_ACTIVE && shipment->has_head &&
        shipment_open(&inspection->shipments, shipment, &cursor, err) < 0)
        shipment->state = SHIPMENT_DAMAGED;
    annal_cursor_close(cursor);
    if (shipment->state == SHIPMENT_SHARED && !is_its_beginning(inspection, shipment))
        shipment->state = SHIPMENT_CONFLICT;
    inspection->bad = inspection->bad || shipment->state == SHIPMENT_CONFLICT ||
                      shipment->state == SHIPMENT_DAMAGED;
}

/* Check that the first event that the target lacks can be read from the journal: if not, shipping
 * cannot continue, and the shipment is damaged. */
static void read_next(struct inspection *inspection, struct shipment *shipment)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status = shipment_open(&inspection->shipments, shipment, &cursor, NULL);
    shipment->next = shipment->head;
    if (status == ANNAL_OK && !shipment->has_head)
        shipment->next.seq = annal__cursor_header(cursor).first_seq - 1;
    if (status == ANNAL_OK && shipment_read(shipment, cursor, &event, NULL) == ANNAL_ERR_CORRUPT)
        shipment->state = SHIPMENT_DAMAGED;
    annal_cursor_close(cursor);
    inspection->bad = inspection->bad || shipment->state == SHIPMENT_DAMAGED;
}

static const char *state_of(struct inspection *inspection, struct shipment *shipment)
{
    static const char *const names[] = {[SHIPMENT_CONFLICT] = "conflict",
                                        [SHIPMENT_DAMAGED] = "damaged",
                                        [SHIPMENT_ELSEWHERE] = "not at home",
                                        [SHIPMENT_SHARED] = "shared",
                                        [SHIPMENT_GONE] = "not here"};
    ship_inspection_try(inspection, shipment, NULL);
    if (shipment->state == SHIPMENT_ACTIVE && shipment->is_queued)
        read_next(inspection, shipment);
    if (shipment->state != SHIPMENT_ACTIVE)
        return names[shipment->state];
    return ship_inspection_behind(shipment) == 0 ? "equal" : shipment->has_head ? "behind" : "new";
}

static int print_shipment(void *arg, struct shipment *shipment)
{
    struct inspection *inspection = arg;
    const char *state = state_of(inspection, shipment);
    if (inspection->err.status < 0)
        return 1;
    table_text(inspection->table, annal_slice_of(shipment->session));
    table_number(inspection->table, shipment->last_seq);
    table_number(inspection->table, shipment->head.seq);
    table_number(inspection->table, ship_inspection_behind(shipment));
    table_text(inspection->table, annal_slice_of(state));
    table_row(inspection->table);
    return out_wanted() ? 0 : 1;
}

static int find_shipments(struct inspection *inspection)
{
    const struct ship_options *options = &inspection->shipping->options;
    inspection->shipments =
        (struct shipments){.store = inspection->shipping->store, .glob = options->glob};
    annal_status status =
        options->kind->open(&options->target, false, &inspection->target, &inspection->err);
    if (status >= 0)
        status = shipments_survey(&inspection->shipments, options->kind, inspection->target,
                                  &inspection->err);
    if (status >= 0)
        shipments_learn_ends(&inspection->shipments);
    return status < 0 ? ship_fail_target(&inspection->err) : 0;
}

static int with_shipments(const struct args *args, int (*fn)(struct inspection *inspection))
{
    struct shipping shipping;
    struct inspection inspection = {.shipping = &shipping,
                                    .want_artifacts = args_has(args, "artifacts")};
    int exit_status = ship_begin(args, OPEN_READ, &shipping);
    if (exit_status == 0)
        exit_status = find_shipments(&inspection);
    if (exit_status == 0)
        exit_status = fn(&inspection);
    if (shipping.options.kind != NULL) {
        shipping.options.kind->close(inspection.target);
        shipping.options.kind->close(inspection.shared);
    }
    shipments_done(&inspection.shipments);
    references_clear(&inspection.references);
    return store_close(shipping.store, out_finish(exit_status));
}

/* Read the head (last event at the target) of a session that was shipped under another store name,
 * and set its state. */
static annal_status note_head(struct inspection *inspection, struct shipment *shipment,
                              enum shipment_state state, annal_error *err)
{
    annal_status status = inspection->shipping->options.kind->homes->head(
        inspection->target, shipment->session, &shipment->head, err);
    shipment->has_head = status >= 0 && shipment->head.at > 0;
    shipment->state = state;
    return status;
}

annal_status ship_inspection_note_shared(void *arg, annal_slice session, const struct home *home,
                                         annal_error *err)
{
    struct inspection *inspection = arg;
    annal_lease lease = {0};
    struct shipment *shipment = shipment_find(&inspection->shipments, session);
    if (shipment->last_seq == 0 || strcmp(home->store, SHARED_STORE) != 0 ||
        annal_lease_get(inspection->shipments.store, session, &lease, NULL) < 0 || !lease.shared)
        return ANNAL_OK;
    return note_head(inspection, shipment, SHIPMENT_SHARED, err);
}

static annal_status note_home(void *arg, annal_slice session, const struct home *home,
                              annal_error *err)
{
    struct inspection *inspection = arg;
    annal_lease lease = {0};
    struct shipment *shipment = shipment_find(&inspection->shipments, session);
    annal_status status = ship_inspection_note_shared(inspection, session, home, err);
    bool has_lease =
        annal_lease_get(inspection->shipments.store, session, &lease, NULL) == ANNAL_OK;
    if (shipment->last_seq == 0)
        shipment->state = SHIPMENT_GONE;
    else if (shipment->state != SHIPMENT_SHARED &&
             (!home->is_ours || !has_lease || home->epoch != lease.epoch))
        status = note_head(inspection, shipment, SHIPMENT_ELSEWHERE, err);
    return status;
}

annal_status ship_inspection_ask_homes(struct inspection *inspection, home_fn fn)
{
    const struct home_kind *homes = inspection->shipping->options.kind->homes;
    return homes == NULL ? ANNAL_OK
                         : homes->each(inspection->target, &inspection->shipments, fn, inspection,
                                       &inspection->err);
}

/* Print how far the rows of sessions and turns lag behind the events. */
annal_status ship_inspection_say_rows(struct inspection *inspection)
{
    const struct ship_kind *kind = inspection->shipping->options.kind;
    struct ship_rows rows = {0};
    if (kind->database == NULL)
        return ANNAL_OK;
    annal_status status = kind->database->look_at_rows(inspection->target, &rows, &inspection->err);
    if (status >= 0 && rows.batches > 0)
        say("at the target, the rows of sessions and turns lag %" PRIu64
            " batch%s and %.1f s behind the events",
            rows.batches, rows.batches == 1 ? "" : "es", rows.seconds);
    return status;
}

static int print_status(struct inspection *inspection)
{
    if (ship_inspection_ask_homes(inspection, note_home) < 0)
        return ship_fail_target(&inspection->err);
    inspection->table =
        table_new(inspection->shipping->options.json ? OUT_JSONL : OUT_TABLE, columns, 5);
    inspection->err.status = ANNAL_OK;
    (void)shipments_each(&inspection->shipments, print_shipment, inspection);
    table_free(inspection->table);
    if (inspection->err.status < 0 || ship_inspection_say_rows(inspection) < 0)
        return ship_fail_target(&inspection->err);
    return inspection->bad ? EXIT_REFUSED : EXIT_DONE;
}

static int run_status(const struct args *args)
{
    return with_shipments(args, print_status);
}

/* ---- check ---- */

static int run_check(const struct args *args)
{
    const struct ship_kind *kind = ship_kind_of(args_get(args, "TARGET"));
    if (kind != NULL && kind->source == NULL)
        return fail_usage("annal ship check does not support streams: 'annal tail --from' reports "
                          "what a stream lacks");
    return with_shipments(args, check_target);
}

/* ---- compact ---- */

enum { KEEP_HOURS = 24 };

static int print_compacted(const struct shipping *shipping, const struct ship_compacted *done)
{
    if (shipping->options.json)
        printf("{\"read\":%" PRIu64 ",\"made\":%" PRIu64 ",\"removed\":%" PRIu64 "}\n", done->read,
               done->made, done->removed);
    else
        printf("merged %" PRIu64 " files into %" PRIu64 "; removed %" PRIu64
               " files that were replaced earlier\n",
               done->read, done->made, done->removed);
    return EXIT_DONE;
}

static int compact(const struct args *args, const struct shipping *shipping)
{
    const struct ship_kind *kind = shipping->options.kind;
    const struct ship_compact how = {.today = args_has(args, "today"),
                                     .keep_us = (int64_t)fields_count(args, "keep", KEEP_HOURS) *
                                                3600 * 1000000};
    struct ship_compacted done = {0};
    struct ship_target *target = NULL;
    annal_error err = {0};
    if (kind->files == NULL)
        return fail_usage("only a lake can be compacted: write file:/// or s3://");
    annal_status status = kind->open(&shipping->options.target, true, &target, &err);
    if (status >= 0)
        status = kind->files->compact(target, &how, &done, &err);
    kind->close(target);
    return status < 0 ? ship_fail_target(&err) : print_compacted(shipping, &done);
}

static int run_compact(const struct args *args)
{
    struct shipping shipping;
    int exit_status = ship_begin(args, OPEN_READ, &shipping);
    if (exit_status == 0)
        exit_status = compact(args, &shipping);
    return store_close(shipping.store, out_finish(exit_status));
}

/* ---- tables ---- */

static int run_tables(const struct args *args)
{
    struct shipping shipping;
    int exit_status = ship_begin(args, OPEN_READ, &shipping);
    shipping.options.follow = args_has(args, "follow");
    if (exit_status == 0 && shipping.options.kind->database == NULL)
        exit_status =
            fail_usage("only a target that begins with postgresql:// has tables of packs");
    else if (exit_status == 0)
        exit_status =
            shipping.options.kind->database->send_pack_tables(shipping.store, &shipping.options);
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
    FLAG("follow", NULL, "keep shipping new events until interrupted"),
    OPTION_WITH("batch", "N", FIELD_COUNT, NULL, "maximum number of events per transaction (50000)",
                .least = 1, .most = 10000000),
    FIELDS_END};

static const struct field tables_fields[] = {
    TARGET_OPERAND, TARGET_OPTIONS,
    FLAG("follow", NULL, "keep sending changed rows until interrupted"), FIELDS_END};

static const struct field look_fields[] = {TARGET_OPERAND, TARGET_OPTIONS, FIELDS_END};

static const struct field check_fields[] = {
    TARGET_OPERAND, TARGET_OPTIONS,
    FLAG("artifacts", NULL, "also read every artifact that a shipped event refers to"), FIELDS_END};

static const struct field compact_fields[] = {
    TARGET_OPERAND, STORE_OPTIONS, FLAG("today", NULL, "also merge the files of the current day"),
    OPTION_WITH("keep", "HOURS", FIELD_COUNT, NULL,
                "age after which replaced files are removed (24)", .least = 0, .most = 87600),
    FIELDS_END};

static const struct field no_fields[] = {FIELDS_END};

static const struct command verbs[] = {
    {COMMAND("to", "copy all sessions to a target, each event exactly once", ship_to, to_fields,
             run_to)},
    {COMMAND("status", "show how far a target lags, session by session", ship_status, look_fields,
             run_status)},
    {COMMAND("check", "prove that a target contains what the journals contain", ship_check,
             check_fields, run_check)},
    {COMMAND("compact", "merge the many small files of a lake into a few large ones", ship_compact,
             compact_fields, run_compact)},
    {COMMAND("tables", "copy the rows of pack tables to a database", ship_tables, tables_fields,
             run_tables)},
    {COMMAND("schema", "print the SQL that creates or upgrades the schema", ship_schema, no_fields,
             run_schema)},
    {0}};

const struct noun noun_ship = {.name = "ship",
                               .summary = "copy events to PostgreSQL, Parquet files or NATS",
                               .verbs = verbs,
                               .usual = "to"};
