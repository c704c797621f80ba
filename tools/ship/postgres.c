/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL as a target. schema.sql, tables.sql, packs.sql and views.sql define its schema.
 *
 * (1) Every wait has a limit: quiet_ms for an answer (ten minutes for a new schema), and one second
 *     more for each ANSWER_BYTES_A_SECOND of the answer; a server that exceeds it counts as
 *     unreachable. The server has the same limits for us, so a batch that we abandoned does not
 *     keep the heads locked.
 * (2) The server has no limit while it waits for the rows of a COPY. Shippers accept that. The
 *     decider of shared sessions inserts its events instead, so that a stopped process delays other
 *     processes no longer than (1).
 * (3) libpq reads each row as a whole, and a result without single-row mode as a whole, too. So the
 *     bytes that the server sent are counted before and after libpq reads them, and an answer that
 *     is too long ends the reading. libpq keeps reading as long as more bytes arrive, so a fast
 *     server can fill up to a gigabyte of memory, libpq's own limit for a message.
 * (4) A failure that may be temporary (connection, restart, lock, no space, standby) is
 *     ANNAL_ERR_BUSY; the SQLSTATE decides.
 */
#include "tools/ship/postgres.h"

#include "tools/cli/outside.h"
#include "tools/ship/ship_pack_tables.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "tools/ship/shared.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

extern const char annal__sql_ship_schema[];

#define SCHEMA_VERSION 1
#define LOCK_KEY       "hashtext('annal')"
#define COPY_BYTES     ((size_t)64 << 10)
#define ROW_BYTES_MAX  ((uint64_t)80 << 20) /* larger than any event */
/* maximum size of an answer that is kept in memory as a whole; the largest contains a home for each
 * session */
#define ANSWER_BYTES_MAX ((uint64_t)256 << 20)
/* maximum size of all that a server sends before the connection is established */
#define GREETING_BYTES_MAX    ((uint64_t)256 << 10)
#define ANSWER_BYTES_A_SECOND 65536 /* slower answers are abandoned */
enum { UPGRADE_QUIET_MS = 600000, REST_ROWS_MAX = 100000, RESULTS_MAX = 5000, SERVER_BYTES = 2000 };

/* ---- Failures ---- */

static bool may_pass(const char *state)
{
    static const char *const classes[] = {"08",    "40",    "53",    "57P0",
                                          "57014", "55P03", "25006", "25P03"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strncmp(state, classes[i], strlen(classes[i])) == 0)
            return true;
    return false;
}

static annal_status fail_lost(const struct ship_target *target, annal_error *err)
{
    const char *why = PQerrorMessage(target->conn);
    while (*why == '\n' || *why == ' ')
        why++;
    if (*why == '\0')
        why = "the connection was lost";
    return annal__fail(err, ANNAL_ERR_BUSY, "ship to %s: %.*s", target->name,
                       (int)strcspn(why, "\n"), why);
}

static annal_status fail_result(const struct ship_target *target, const PGresult *result,
                                annal_error *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *why = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (state == NULL || why == NULL)
        return fail_lost(target, err);
    if (strcmp(state, "42501") == 0)
        return annal__fail(
            err, ANNAL_ERR_REFUSED,
            "ship to %s: %s (role %s): the owner must run the SQL that 'annal ship schema' prints",
            target->name, why, PQuser(target->conn));
    return annal__fail(err, may_pass(state) ? ANNAL_ERR_BUSY : ANNAL_ERR_REFUSED, "ship to %s: %s",
                       target->name, why);
}

/* ---- Statements with a limit for each wait ---- */

/* Count the bytes that the server has sent, including the overhead of TLS. */
static uint64_t bytes_sent(const struct ship_target *target)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    int fd = PQsocket(target->conn), waiting = 0;
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
        return info.tcpi_bytes_received;
    return target->taken + (ioctl(fd, FIONREAD, &waiting) == 0 ? (uint64_t)waiting : 0);
}

/* The limits of an answer: its beginning, as a time and as the number of bytes that the server had
 * sent by then, and the number that it may have sent at its end. */
struct answer {
    int64_t from_us;
    uint64_t from, end;
};

static struct answer begin_answer(const struct ship_target *target, uint64_t bytes_max)
{
    uint64_t from = bytes_sent(target);
    return (struct answer){annal__clock_monotonic_us(), from, from + bytes_max};
}

/* Wait for the socket, within the time for the answer (rule 1). */
static annal_status wait_for(struct ship_target *target, short events, const struct answer *answer,
                             annal_error *err)
{
    struct pollfd fd = {.fd = PQsocket(target->conn), .events = events};
    uint64_t sent = fd.fd < 0 ? 0 : bytes_sent(target);
    int64_t more_ms =
        sent > answer->from ? (int64_t)((sent - answer->from) * 1000 / ANSWER_BYTES_A_SECOND) : 0;
    int64_t left_ms =
        target->quiet_ms + more_ms - (annal__clock_monotonic_us() - answer->from_us) / 1000;
    int ready = fd.fd < 0 ? -1 : poll(&fd, 1, left_ms > 0 ? (int)left_ms : 0);
    if (ready < 0 && errno == EINTR && fd.fd >= 0)
        return ANNAL_OK;
    if (ready == 0)
        return annal__fail(err, ANNAL_ERR_BUSY, "ship to %s: no answer for %d s", target->name,
                           (target->quiet_ms + 999) / 1000);
    if (ready > 0 && left_ms < 0)
        return annal__fail(err, ANNAL_ERR_BUSY,
                           "ship to %s: the answer has no end after %" PRId64 " s", target->name,
                           (target->quiet_ms + more_ms + 999) / 1000);
    return ready > 0 ? ANNAL_OK : fail_lost(target, err);
}

static annal_status refuse_long(const struct ship_target *target, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_LIMIT,
                       "ship to %s: the server sent a longer answer than any valid one",
                       target->name);
}

/* Let libpq read. ANNAL_ERR_BUSY or another failure if the server has then sent more bytes than the
 * answer may have (rule 3). */
static annal_status take_input(struct ship_target *target, const struct answer *answer,
                               annal_error *err)
{
    uint64_t sent = bytes_sent(target);
    if (sent <= answer->end) {
        target->taken = sent;
        if (PQconsumeInput(target->conn) == 0)
            return fail_lost(target, err);
        sent = bytes_sent(target);
    }
    return sent <= answer->end ? ANNAL_OK : refuse_long(target, err);
}

/* Send the queued data, and read what the server sends in the meantime, because it may explain a
 * failure. */
static annal_status flush(struct ship_target *target, annal_error *err)
{
    const struct answer answer = begin_answer(target, ANSWER_BYTES_MAX);
    for (int left; (left = PQflush(target->conn)) != 0;) {
        annal_status status =
            left < 0 ? fail_lost(target, err) : wait_for(target, POLLIN | POLLOUT, &answer, err);
        if (status >= 0)
            status = take_input(target, &answer, err);
        if (status < 0)
            return status;
    }
    return ANNAL_OK;
}

/* Read the next result, of at most bytes_max bytes; *out is NULL after the last one. */
static annal_status next_result(struct ship_target *target, uint64_t bytes_max, PGresult **out,
                                annal_error *err)
{
    const struct answer answer = begin_answer(target, bytes_max);
    annal_status status = flush(target, err);
    while (status >= 0 && PQisBusy(target->conn)) {
        status = wait_for(target, POLLIN, &answer, err);
        if (status >= 0)
            status = take_input(target, &answer, err);
    }
    if (status >= 0)
        *out = PQgetResult(target->conn);
    return status;
}

/* Read results up to the last one, the start of a COPY, or the first failed statement. *out (may be
 * NULL) receives the last result. */
static annal_status finish(struct ship_target *target, PGresult **out, annal_error *err)
{
    PGresult *last = NULL, *result = NULL;
    annal_status status;
    int results = 0;
    while ((status = next_result(target, ANSWER_BYTES_MAX, &result, err)) >= 0 && result != NULL) {
        ExecStatusType kind = PQresultStatus(result);
        if (kind == PGRES_COPY_IN) {
            PQclear(result);
            break;
        }
        PQclear(last);
        last = result;
        if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK) {
            status = fail_result(target, result, err);
            break;
        }
        if (++results > RESULTS_MAX) {
            status = refuse_long(target, err);
            break;
        }
    }
    if (status >= 0 && last == NULL)
        status = fail_lost(target, err);
    if (status < 0 || out == NULL) {
        PQclear(last);
        return status;
    }
    *out = last;
    return ANNAL_OK;
}

annal_status postgres_script(struct ship_target *target, const char *sql, PGresult **out,
                             annal_error *err)
{
    return PQsendQuery(target->conn, sql) == 1 ? finish(target, out, err) : fail_lost(target, err);
}

annal_status postgres_run(struct ship_target *target, const char *sql, const char *const *values,
                          int count, PGresult **out, annal_error *err)
{
    int sent = PQsendQueryParams(target->conn, sql, count, NULL, values, NULL, NULL, 0);
    return sent == 1 ? finish(target, out, err) : fail_lost(target, err);
}

/* Check the result of COMMIT: the server answers ROLLBACK if a statement of the transaction
 * failed. */
static annal_status check_commit(const struct ship_target *target, PGresult *result,
                                 annal_error *err)
{
    return strcmp(PQcmdStatus(result), "COMMIT") == 0
               ? ANNAL_OK
               : annal__fail(err, ANNAL_ERR_BUSY, "ship to %s: the server rolled the batch back",
                             target->name);
}

/* ---- Connecting ---- */

/* The servers of a URL: lists with commas. */
struct servers {
    char host[SERVER_BYTES], hostaddr[SERVER_BYTES], port[SERVER_BYTES];
};

static annal_status find_name(struct ship_target *target, const char *url, struct servers *out,
                              annal_error *err)
{
    char *why = NULL;
    const char *host = "", *port = "", *database = "", *hostaddr = "";
    PQconninfoOption *options = PQconninfoParse(url, &why);
    if (options == NULL) {
        why = why != NULL ? why : strdup("out of memory");
        annal__fail(err, ANNAL_ERR_INVALID, "ship: invalid PostgreSQL URL: %.*s",
                    (int)strcspn(why, "\n"), why);
        PQfreemem(why);
        return ANNAL_ERR_INVALID;
    }
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++) {
        const char *value = option->val != NULL ? option->val : "";
        host = strcmp(option->keyword, "host") == 0 ? value : host;
        hostaddr = strcmp(option->keyword, "hostaddr") == 0 ? value : hostaddr;
        port = strcmp(option->keyword, "port") == 0 ? value : port;
        database = strcmp(option->keyword, "dbname") == 0 ? value : database;
    }
    snprintf(target->name, sizeof target->name, "%s%s%s/%s", host, port[0] != '\0' ? ":" : "", port,
             database);
    bool fits = snprintf(out->host, SERVER_BYTES, "%s", host) < SERVER_BYTES &&
                snprintf(out->hostaddr, SERVER_BYTES, "%s", hostaddr) < SERVER_BYTES &&
                snprintf(out->port, SERVER_BYTES, "%s", port) < SERVER_BYTES;
    PQconninfoFree(options);
    return fits ? ANNAL_OK
                : annal__fail(err, ANNAL_ERR_INVALID,
                              "ship: the PostgreSQL URL has more than %d bytes of servers",
                              SERVER_BYTES - 1);
}

/* Ignore notices such as "… already exists, skipping". */
static void ignore_notice(void *arg, const PGresult *notice)
{
    (void)arg;
    (void)notice;
}

/* Copy the item `index` of a list, or its only item; "" for an empty list. Returns false after the
 * last item. */
static bool item_of(const char *list, int index, char out[SERVER_BYTES])
{
    const char *at = list;
    out[0] = '\0';
    for (int i = 0; i < index && strchr(list, ',') != NULL; i++) {
        at += strcspn(at, ",");
        if (*at == '\0')
            return false;
        at++;
    }
    snprintf(out, SERVER_BYTES, "%.*s", (int)strcspn(at, ","), at);
    return index == 0 || strchr(list, ',') != NULL;
}

/* Return whether the URL has a server `index`, and its host, address and port. */
static bool server_of(const struct servers *servers, int index, struct servers *out)
{
    bool has_host = item_of(servers->host, index, out->host);
    bool has_address = item_of(servers->hostaddr, index, out->hostaddr);
    (void)item_of(servers->port, index, out->port);
    return has_host || has_address;
}

/* Let libpq connect. PQconnectdb() would read without a limit what the server sends. */
static annal_status await_connection(struct ship_target *target, annal_error *err)
{
    const struct answer answer = begin_answer(target, GREETING_BYTES_MAX);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    annal_status status = ANNAL_OK;
    uint64_t sent;
    while (status >= 0 && state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED || PQstatus(target->conn) == CONNECTION_BAD)
            return fail_lost(target, err);
        status = wait_for(target, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, &answer, err);
        sent = status >= 0 ? bytes_sent(target) : 0;
        target->taken = sent;
        if (sent > answer.end)
            status = refuse_long(target, err);
        if (status >= 0)
            state = PQconnectPoll(target->conn);
    }
    return status;
}

static annal_status connect_one(struct ship_target *target, const char *url,
                                const struct servers *server, annal_error *err)
{
    char quiet_ms[16];
    snprintf(quiet_ms, sizeof quiet_ms, "%d", target->quiet_ms);
    /* A parameter in the URL takes precedence over one listed before "dbname". */
    const char *const names[] = {"tcp_user_timeout",
                                 "keepalives_idle",
                                 "target_session_attrs",
                                 "fallback_application_name",
                                 "dbname",
                                 "client_encoding",
                                 "host",
                                 "hostaddr",
                                 "port",
                                 NULL};
    const char *const values[] = {quiet_ms, "10",         "read-write",     "annal ship", url,
                                  "UTF8",   server->host, server->hostaddr, server->port, NULL};
    PQfinish(target->conn);
    target->taken = 0;
    target->conn = PQconnectStartParams(names, values, 1);
    if (target->conn == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship to %s: out of memory", target->name);
    PQsetNoticeReceiver(target->conn, ignore_notice, NULL);
    return await_connection(target, err);
}

/* Connect to the first server of the URL that answers. */
static annal_status connect_to(struct ship_target *target, const char *url,
                               const struct servers *servers, annal_error *err)
{
    struct servers server;
    annal_status status = ANNAL_ERR_BUSY;
    for (int i = 0; status == ANNAL_ERR_BUSY && server_of(servers, i, &server); i++)
        status = connect_one(target, url, &server, err);
    if (status < 0)
        return status;
    const char *encoding = PQparameterStatus(target->conn, "server_encoding");
    if (encoding == NULL || strcmp(encoding, "UTF8") != 0)
        return annal__fail(err, ANNAL_ERR_REFUSED,
                           "ship to %s: the encoding of the database is %s, but must be UTF8",
                           target->name, encoding != NULL ? encoding : "unknown");
    PQsetnonblocking(target->conn, 1);
    return ANNAL_OK;
}

static void postgres_close(struct ship_target *target)
{
    if (target == NULL)
        return;
    PQfinish(target->conn);
    annal__buf_done(&target->copy);
    digest_done(&target->digest);
    annal__free(target);
}

/* ---- The schema ---- */

static annal_status find_version(struct ship_target *target, long *out, annal_error *err)
{
    PGresult *result = NULL;
    *out = 0;
    annal_status status =
        postgres_script(target, "SELECT to_regclass('annal._schema') IS NOT NULL", &result, err);
    if (status < 0)
        return status;
    bool exists = postgres_text(result, 0, 0)[0] == 't';
    PQclear(result);
    if (!exists)
        return ANNAL_OK;
    status = postgres_script(target, "SELECT version FROM annal._schema", &result, err);
    if (status < 0)
        return status;
    *out = PQntuples(result) == 1 ? strtol(postgres_text(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return ANNAL_OK;
}

/* Create or upgrade the schema, with a longer limit for the answer: if each host gave up after
 * quiet_ms, a long upgrade would never finish (rule 1). */
static annal_status run_schema(struct ship_target *target, annal_error *err)
{
    int quiet_ms = target->quiet_ms;
    if (target->quiet_ms < UPGRADE_QUIET_MS)
        target->quiet_ms = UPGRADE_QUIET_MS;
    annal_status status = postgres_script(target, annal__sql_ship_schema, NULL, err);
    target->quiet_ms = quiet_ms;
    return status;
}

static annal_status make_schema(struct ship_target *target, annal_error *err)
{
    long version = 0;
    PGresult *result = NULL;
    char begin[150];
    snprintf(begin, sizeof begin,
             "BEGIN; SET LOCAL lock_timeout = %d; SELECT pg_advisory_xact_lock(" LOCK_KEY ");"
             " SET LOCAL lock_timeout = 0",
             target->quiet_ms);
    annal_status status = postgres_script(target, begin, NULL, err);
    if (status >= 0)
        status = find_version(target, &version, err);
    if (status >= 0 && version < SCHEMA_VERSION)
        status = run_schema(target, err);
    if (status >= 0)
        status = postgres_script(target, "COMMIT", &result, err);
    if (status >= 0)
        status = check_commit(target, result, err);
    PQclear(result);
    return status;
}

static annal_status check_schema(struct ship_target *target, bool to_write, annal_error *err)
{
    long version = 0;
    annal_status status = find_version(target, &version, err);
    if (status < 0)
        return status;
    if (version > SCHEMA_VERSION)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "ship to %s: a newer annal created the schema there (version %ld); this "
                           "annal supports version %d",
                           target->name, version, SCHEMA_VERSION);
    if (version == SCHEMA_VERSION)
        return ANNAL_OK;
    if (!to_write)
        return annal__fail(err, ANNAL_ERR_NOTFOUND,
                           version == 0 ? "ship: nothing was shipped to %s yet"
                                        : "ship: the schema at %s is older than this annal: run "
                                          "'annal ship' to this target first",
                           target->name);
    return make_schema(target, err);
}

static annal_status postgres_open(const struct ship_where *options, bool to_write,
                                  struct ship_target **out_target, annal_error *err)
{
    annal_status status = library_load(&library_pq, err);
    if (status < 0)
        return status;
    struct ship_target *target = annal__zalloc(sizeof *target);
    if (target == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    target->store = options->store;
    target->is_deciding = options->store != NULL && strcmp(options->store, SHARED_STORE) == 0;
    target->quiet_ms = (int)options->quiet_ms;
    struct servers servers;
    status = find_name(target, options->url, &servers, err);
    if (status >= 0)
        status = connect_to(target, options->url, &servers, err);
    if (status >= 0)
        status = check_schema(target, to_write, err);
    if (status < 0) {
        postgres_close(target);
        return status;
    }
    *out_target = target;
    return ANNAL_OK;
}

/* ---- Heads ---- */

const char *postgres_text(const PGresult *result, int row, int column)
{
    return row < PQntuples(result) && column < PQnfields(result) ? PQgetvalue(result, row, column)
                                                                 : "";
}

static bool read_number(const PGresult *result, int row, int column, int64_t *out)
{
    struct outside field = {.at = postgres_text(result, row, column)};
    *out = outside_signed(&field);
    *out = outside_end(&field) ? *out : 0;
    return outside_end(&field);
}

double postgres_seconds(const PGresult *result, int row, int column)
{
    static const double most = 1e12;
    double seconds = strtod(postgres_text(result, row, column), NULL);
    return seconds > -most && seconds < most ? seconds : 0; /* neither infinite nor NaN */
}

uint64_t postgres_number(const PGresult *result, int row, int column)
{
    int64_t number;
    (void)read_number(result, row, column, &number);
    return (uint64_t)number;
}

bool postgres_session(const PGresult *result, int row, int column,
                      char out[ANNAL_SESSION_ID_BYTES_MAX + 1])
{
    struct outside field = {.at = postgres_text(result, row, column)};
    outside_session(&field, out);
    return outside_end(&field);
}

bool postgres_place(const PGresult *result, int row, int column, struct place *out)
{
    int64_t seq, h, at;
    if (!read_number(result, row, column, &seq) || !read_number(result, row, column + 1, &h) ||
        !read_number(result, row, column + 2, &at) || seq < 0 || (uint64_t)seq > OUTSIDE_SEQ_MAX ||
        at < 0)
        return false;
    *out = (struct place){(uint64_t)seq, (uint64_t)h, (uint64_t)at};
    return true;
}

annal_status postgres_refuse(const char *what, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT, "the database returned invalid data about %s", what);
}

/* Call fn with each row of the result, until fn returns something other than ANNAL_OK. The
 * remaining rows are read and discarded, so that the connection can be used again, unless they are
 * too many. */
static annal_status each_row(struct ship_target *target, postgres_row_fn fn, void *arg,
                             annal_error *err)
{
    PGresult *result = NULL;
    annal_status status = ANNAL_OK, answer = ANNAL_OK;
    annal_error ignored;
    int rest = 0;
    uint64_t end = UINT64_MAX;
    PQsetSingleRowMode(target->conn);
    while ((status = next_result(target, ROW_BYTES_MAX, &result, answer < 0 ? &ignored : err)) >=
               0 &&
           result != NULL && rest < REST_ROWS_MAX && target->taken <= end) {
        ExecStatusType kind = PQresultStatus(result);
        rest += answer != ANNAL_OK;
        if (rest == 1)
            end = target->taken + ANSWER_BYTES_MAX;
        if (kind == PGRES_SINGLE_TUPLE && answer == ANNAL_OK)
            answer = fn(arg, result, err);
        else if (kind != PGRES_SINGLE_TUPLE && kind != PGRES_TUPLES_OK && answer == ANNAL_OK)
            answer = fail_result(target, result, err);
        PQclear(result);
        result = NULL;
    }
    PQclear(result);
    return answer < 0 ? answer : status < 0 ? status : ANNAL_OK;
}

struct heads {
    head_fn fn;
    void *arg;
};

static annal_status give_head(void *arg, const PGresult *row, annal_error *err)
{
    const struct heads *heads = arg;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct place there;
    if (!postgres_session(row, 0, 0, session) || !postgres_place(row, 0, 1, &there))
        return postgres_refuse("the last event of a session", err);
    return heads->fn(heads->arg, annal_slice_of(session), &there, err);
}

static annal_status postgres_heads(struct ship_target *target, head_fn fn, void *arg,
                                   annal_error *err)
{
    const char *const values[] = {target->store};
    return postgres_query(target, "SELECT session, seq, h, at FROM annal._heads WHERE store = $1",
                          values, 1, false, give_head, &(struct heads){fn, arg}, err);
}

/* ---- The start of a batch ---- */

annal_status postgres_run_arrays(struct ship_target *target, const char *sql,
                                 const char *const *values, int value_count, struct buf *arrays,
                                 int count, PGresult **out, annal_error *err)
{
    const char *all[POSTGRES_VALUES_MAX] = {0};
    annal_status status = ANNAL_OK;
    for (int i = 0; i < value_count; i++)
        all[i] = values[i];
    for (int i = 0; i < count && status >= 0; i++) {
        status = annal__buf_append(&arrays[i], "}", 1);
        all[value_count + i] = annal__buf_cstr(&arrays[i]);
        if (all[value_count + i] == NULL)
            status = ANNAL_ERR_NOMEM;
    }
    status = status >= 0 ? postgres_run(target, sql, all, value_count + count, out, err)
                         : annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    for (int i = 0; i < count; i++)
        annal__buf_done(&arrays[i]);
    return status;
}

static bool add_literal(struct buf *sql, PGconn *conn, const char *before, const char *text,
                        size_t len)
{
    char *literal = PQescapeLiteral(conn, text, len);
    bool added = literal != NULL && annal__buf_printf(sql, "%s%s", before, literal) == ANNAL_OK;
    PQfreemem(literal);
    return added;
}

/* Call a function with the name of the store and these arrays, which are freed, between the
 * statements before and after. All statements are one message, so that a batch waits for few
 * answers. */
static annal_status run_with(struct ship_target *target, const char *before, struct buf *arrays,
                             int count, const char *after, PGresult **out, annal_error *err)
{
    SCOPED_BUF sql = {0};
    bool added = annal__buf_printf(&sql, "%s", before) == ANNAL_OK &&
                 add_literal(&sql, target->conn, "(", target->store, strlen(target->store));
    for (int i = 0; i < count && added; i++)
        added = annal__buf_append(&arrays[i], "}", 1) == ANNAL_OK &&
                add_literal(&sql, target->conn, ", ", arrays[i].ptr, arrays[i].len);
    added = added && annal__buf_printf(&sql, "); %s", after) == ANNAL_OK &&
            annal__buf_cstr(&sql) != NULL;
    annal_status status = added ? postgres_script(target, sql.ptr, out, err)
                                : annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    for (int i = 0; i < count; i++)
        annal__buf_done(&arrays[i]);
    return status;
}

/* Set a shipment from its row of annal._begin_batch(). */
static annal_status take_shipment(struct shipment *shipment, const PGresult *result, int row,
                                  annal_error *err)
{
    struct place there = {0};
    bool is_new = postgres_text(result, row, 2)[0] == 't';
    shipment->is_elsewhere = postgres_text(result, row, 1)[0] == 't';
    shipment->key = (int64_t)postgres_number(result, row, 3);
    shipment->has_head = !is_new || (shipment->info != NULL && !shipment->is_elsewhere);
    shipment->is_new = is_new && shipment->has_head;
    if (!is_new && !postgres_place(result, row, 4, &there))
        return postgres_refuse("the last event of a session", err);
    shipment->head =
        shipment->is_new ? (struct place){.seq = shipment->info->first_seq - 1} : there;
    return ANNAL_OK;
}

/* The first bytes of COPY's binary format: signature, flags, and the length 0 of an extension. */
static const char copy_head[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";

static annal_status postgres_begin(struct ship_target *target, struct shipment **shipments,
                                   size_t count, annal_error *err)
{
    char begin[250];
    struct buf arrays[2] = {{0}};
    PGresult *result = NULL;
    for (size_t i = 0; i < count; i++) {
        postgres_add_text(&arrays[0], shipments[i]->session);
        postgres_add_number(&arrays[1], shipments[i]->epoch);
    }
    snprintf(begin, sizeof begin,
             "BEGIN; SET LOCAL lock_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = "
             "%d; SELECT * FROM annal._begin_batch",
             target->quiet_ms, target->quiet_ms * 2);
    const char *copy = target->is_deciding
                           ? ""
                           : "COPY annal._events (key, seq, day, ts, type, id, cause, data, h)"
                             " FROM STDIN (FORMAT binary)";
    annal_status status = run_with(target, begin, arrays, 2, copy, &result, err);
    target->is_copying = status >= 0 && !target->is_deciding;
    annal__buf_clear(&target->copy);
    digest_clear(&target->digest);
    if (status < 0)
        return status;
    target->day = (uint32_t)postgres_number(result, 0, 0);
    if ((size_t)PQntuples(result) != count)
        status = postgres_refuse("a batch of events", err);
    for (size_t i = 0; i < count && status >= 0; i++)
        status = take_shipment(shipments[i], result, (int)i, err);
    PQclear(result);
    return status < 0 ? status : annal__buf_append(&target->copy, copy_head, sizeof copy_head - 1);
}

/* ---- Rows ---- */

/* Append a field of COPY: its length, big-endian, and its bytes. The caller has reserved room. */
static void put_bytes(struct buf *buf, const void *bytes, size_t len)
{
    uint32_t be = htobe32((uint32_t)len);
    memcpy(buf->ptr + buf->len, &be, sizeof be);
    if (len > 0)
        memcpy(buf->ptr + buf->len + sizeof be, bytes, len);
    buf->len += sizeof be + len;
}

static void put_number(struct buf *buf, uint64_t value)
{
    uint64_t be = htobe64(value);
    put_bytes(buf, &be, sizeof be);
}

static void put_maybe(struct buf *buf, annal_slice text)
{
    if (text.len > 0) {
        put_bytes(buf, text.ptr, text.len);
    } else {
        memset(buf->ptr + buf->len, 0xff, 4); /* length -1 stands for NULL */
        buf->len += 4;
    }
}

static annal_status send_copy(struct ship_target *target, annal_error *err)
{
    int queued = PQputCopyData(target->conn, target->copy.ptr, (int)target->copy.len);
    annal__buf_clear(&target->copy);
    /* if sending fails, the result of the COPY explains why */
    return queued == 1 ? flush(target, err) : fail_lost(target, err);
}

static annal_status postgres_put(struct ship_target *target, const struct shipment *shipment,
                                 const annal_event *event, annal_error *err)
{
    static const uint16_t columns = 9;
    struct buf *copy = &target->copy;
    uint16_t columns_be = htobe16(columns);
    uint32_t day_be = htobe32(target->day);
    size_t most = event->type.len + event->id.len + event->cause.len + event->data.len + 128;
    digest_add(&target->digest, shipment->key, event);
    if (target->is_deciding)
        return postgres_home_insert(target, shipment->key, event, err);
    if (annal__buf_reserve(copy, most) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    memcpy(copy->ptr + copy->len, &columns_be, sizeof columns_be);
    copy->len += sizeof columns_be;
    put_number(copy, (uint64_t)shipment->key);
    put_number(copy, event->seq);
    put_bytes(copy, &day_be, sizeof day_be);
    put_number(copy, (uint64_t)(event->ts_us - EPOCH_US));
    put_bytes(copy, event->type.ptr, event->type.len);
    put_maybe(copy, event->id);
    put_maybe(copy, event->cause);
    put_bytes(copy, event->data.ptr, event->data.len);
    put_number(copy, event->h);
    return copy->len >= COPY_BYTES ? send_copy(target, err) : ANNAL_OK;
}

/* ---- The end of a batch ---- */

static annal_status end_copy(struct ship_target *target, annal_error *err)
{
    if (!target->is_copying)
        return ANNAL_OK;
    target->is_copying = false;
    annal_status status = annal__buf_append(&target->copy, "\377\377", 2);
    if (status >= 0)
        status = send_copy(target, err);
    if (status < 0)
        return status;
    if (PQputCopyEnd(target->conn, NULL) < 0)
        return fail_lost(target, err);
    return finish(target, NULL, err);
}

/* ---- Artifacts ---- */

static annal_status postgres_has(struct ship_target *target, const char *sha256, bool *out,
                                 annal_error *err)
{
    PGresult *result = NULL;
    const char *const values[] = {sha256};
    annal_status status = end_copy(target, err);
    if (status >= 0)
        status = postgres_run(target, "SELECT FROM annal.artifacts WHERE hash = $1", values, 1,
                              &result, err);
    if (status >= 0)
        *out = PQntuples(result) > 0;
    PQclear(result);
    return status;
}

static annal_status postgres_keep(struct ship_target *target, const char *sha256,
                                  annal_slice content, annal_error *err)
{
    const char *const values[] = {sha256, content.ptr != NULL ? content.ptr : ""};
    const int lengths[] = {0, (int)content.len}, formats[] = {0, 1};
    int sent = PQsendQueryParams(
        target->conn, "INSERT INTO annal.artifacts VALUES ($1, $2) ON CONFLICT DO NOTHING", 2, NULL,
        values, lengths, formats, 0);
    return sent == 1 ? finish(target, NULL, err) : fail_lost(target, err);
}

enum { HEAD_ARRAYS = 11 };

static void add_head(struct buf *arrays, const struct shipment *shipment)
{
    static const annal_session_info none;
    char created[ANNAL_TIME_BYTES] = "-infinity";
    const annal_session_info *info = shipment->is_new ? shipment->info : &none;
    if (shipment->is_new)
        annal_time_format(info->created_us, created);
    postgres_add_number(&arrays[0], (uint64_t)shipment->key);
    postgres_add_number(&arrays[1], shipment->head.seq);
    postgres_add_number(&arrays[2], shipment->head.h);
    postgres_add_number(&arrays[3], shipment->next.seq);
    postgres_add_number(&arrays[4], shipment->next.h);
    postgres_add_number(&arrays[5], shipment->next.at);
    postgres_add_text(&arrays[6], info->session);
    postgres_add_text(&arrays[7], info->file);
    postgres_add_text(&arrays[8], created);
    postgres_add_text(&arrays[9], info->fork_session);
    postgres_add_number(&arrays[10], info->fork_seq);
}

/* Write each session's last event (the heads), queue the batch for the rows of sessions and turns,
 * and commit. */
static annal_status postgres_commit(struct ship_target *target, struct shipment **shipments,
                                    size_t count, annal_error *err)
{
    struct buf arrays[HEAD_ARRAYS] = {{0}}, end = {0};
    PGresult *result = NULL;
    annal_status status = end_copy(target, err);
    if (status >= 0)
        status = postgres_queue_rows(target, &end, err);
    for (size_t i = 0; i < count && status >= 0; i++)
        if (shipments[i]->next.seq != shipments[i]->head.seq)
            add_head(arrays, shipments[i]);
    if (status >= 0 && arrays[0].len == 0)
        status = postgres_script(target, "COMMIT", &result, err);
    else if (status >= 0)
        status = run_with(target, "SELECT annal._move_heads", arrays, HEAD_ARRAYS,
                          annal__buf_cstr(&end), &result, err);
    if (status >= 0)
        status = check_commit(target, result, err);
    PQclear(result);
    annal__buf_done(&end);
    return status;
}

/* ---- Reading back: postgres_read.c ---- */

annal_status postgres_query(struct ship_target *target, const char *sql, const char *const *values,
                            int count, bool binary, postgres_row_fn fn, void *arg, annal_error *err)
{
    int sent = PQsendQueryParams(target->conn, sql, count, NULL, values, NULL, NULL, binary);
    return sent == 1 ? each_row(target, fn, arg, err) : fail_lost(target, err);
}

static const struct ship_source source = {.rows = postgres_rows,
                                          .find = postgres_find,
                                          .tree = postgres_tree,
                                          .has = postgres_has,
                                          .keep = postgres_keep,
                                          .fetch = postgres_fetch};
static const struct ship_database database = {.make_rows = postgres_make_rows,
                                              .look_at_rows = postgres_look_at_rows,
                                              .may_lack = postgres_may_lack,
                                              .send_pack_tables = ship_pack_tables_run};

const struct ship_kind ship_postgres = {.pace_ms = 100,
                                        .takes_two = true,
                                        .open = postgres_open,
                                        .close = postgres_close,
                                        .heads = postgres_heads,
                                        .begin = postgres_begin,
                                        .put = postgres_put,
                                        .commit = postgres_commit,
                                        .source = &source,
                                        .database = &database,
                                        .homes = &home_postgres};
