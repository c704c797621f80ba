/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/clock.h"
#include "journal/base/json.h"
#include "tools/mcp/mcp.h"
#include "tools/serve/durable.h"
#include "tools/serve/intake.h"
#include "tools/serve/serve.h"
#include "tools/serve/serve_otlp.h"
#include "tools/serve/streams.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define API "/api/v1"
/* time after which a waiting request is dropped if its client has closed its sending side, in us */
#define PATIENCE_US      1000000
#define APPEND_BYTES_MAX ((size_t)80 << 20)
#define OTLP_BYTES_MAX   ((size_t)16 << 20)
/* large, because a bundle is received into a file, not into memory */
#define BUNDLE_BYTES_MAX ((size_t)1 << 40)

static void healthz(struct serve *serve, struct request *request)
{
    static const char text[] = "{\"status\":\"ok\"}\n";
    (void)serve;
    request->status = 200;
    request->type = JSON_TYPE;
    request->constant = (annal_slice){text, sizeof text - 1};
}

extern const char annal__sql_openapi[]; /* openapi.json, embedded */

static void openapi(struct serve *serve, struct request *request)
{
    (void)serve;
    request->status = 200;
    request->type = JSON_TYPE;
    request->constant = annal_slice_of(annal__sql_openapi);
}

/* Answer {"version":…,"store":…,"read_only":…,"rights":…,"imports":…,"now":…,"unread":…}. imports:
 * whether the client may import the logs of this machine. */
static void info_get(struct serve *serve, struct request *request)
{
    char now[ANNAL_TIME_BYTES];
    struct buf *out = &request->answer;
    bool imports =
        !serve->read_only && strcmp(request->right, "write") == 0 && intake_is_near(serve, request);
    annal_time_format(annal__system_clock.wall_us(NULL), now);
    annal_status status = annal__json_put(
        out,
        "{\"version\":\"#\",\"store\":?,\"read_only\":#,\"rights\":\"#\",\"imports\":#,"
        "\"now\":\"#\",\"unread\":",
        annal_slice_of(annal_version()), annal_slice_of(annal_store_path(serve->store)),
        annal_slice_of(serve->read_only ? "true" : "false"),
        annal_slice_of(serve->read_only ? "read" : request->right),
        annal_slice_of(imports ? "true" : "false"), annal_slice_of(now));
    if (status >= 0)
        status = filler_json(serve->filler, out);
    if (status >= 0)
        status = annal__buf_append(out, "}", 1);
    answer_json(request, status, NULL);
}

const struct route routes[] = {
    {"GET", "/healthz", RIGHT_NONE, QUEUE_QUICK, 0, healthz, ""},
    {"GET", API "/sessions", RIGHT_READ, QUEUE_QUICK, 0, serve_sessions_list,
     " status agent model provider dir since until q limit sort cursor parent tree failed starred "
     "tag "},
    {"GET", API "/sessions/{}", RIGHT_READ, QUEUE_QUICK, 0, serve_sessions_one, ""},
    {"GET", API "/sessions/{}/events", RIGHT_READ, QUEUE_QUICK, 0, events_list,
     " from to type* since until limit order "},
    {"POST", API "/sessions/{}/events", RIGHT_WRITE, QUEUE_QUICK, APPEND_BYTES_MAX,
     serve_append_events, " level type format "},
    {"POST", API "/sessions/{}/fork", RIGHT_WRITE, QUEUE_QUICK, 4096, serve_append_fork, ""},
    {"GET", API "/sessions/{}/bundle", RIGHT_READ, QUEUE_SLOW, 0, transfer_get, ""},
    {"PUT", API "/bundle", RIGHT_WRITE, QUEUE_SLOW, BUNDLE_BYTES_MAX, transfer_put, " upload "},
    {"GET", API "/bundle", RIGHT_WRITE, QUEUE_QUICK, 0, transfer_received, " upload "},
    {"POST", API "/verify", RIGHT_READ, QUEUE_SLOW, 4096, serve_verify_run, " session* "},
    {"POST", "/v1/traces", RIGHT_WRITE, QUEUE_QUICK, OTLP_BYTES_MAX, serve_otlp_traces, ""},
    {"POST", "/v1/logs", RIGHT_WRITE, QUEUE_QUICK, OTLP_BYTES_MAX, serve_otlp_logs, ""},
    {"POST", "/mcp", RIGHT_READ, QUEUE_SLOW, MCP_MESSAGE_BYTES, serve_mcp_post, " all "},
    {"GET", "/metrics", RIGHT_READ, QUEUE_QUICK, 0, serve_metrics_get, ""},
    {"GET", API "/sessions/{}/events/{}/proof", RIGHT_READ, QUEUE_QUICK, 0, serve_proof_get, ""},
    {"GET", API "/sessions/{}/outline", RIGHT_READ, QUEUE_QUICK, 0, serve_timeline_get, " from "},
    {"GET", API "/sessions/{}/share", RIGHT_READ, QUEUE_QUICK, 0, share_get, " tree "},
    {"GET", API "/sessions/{}/tools", RIGHT_READ, QUEUE_QUICK, 0, serve_timeline_get, " from "},
    {"GET", API "/sessions/{}/turns", RIGHT_READ, QUEUE_QUICK, 0, serve_timeline_get, " from "},
    {"GET", API "/sessions/{}/usage", RIGHT_READ, QUEUE_QUICK, 0, serve_timeline_get, " from "},
    {"GET", API "/sessions/{}/children", RIGHT_READ, QUEUE_QUICK, 0, serve_sessions_children,
     " status agent model provider dir since until q limit sort cursor "},
    {"GET", API "/sessions/{}/state", RIGHT_READ, QUEUE_QUICK, 0, serve_state_state,
     " seq time rows "},
    {"GET", API "/sessions/{}/diff", RIGHT_READ, QUEUE_SLOW, 0, serve_state_diff, " a b "},
    {"GET", API "/diff", RIGHT_READ, QUEUE_SLOW, 0, ask_diff, " a b "},
    {"GET", API "/facets", RIGHT_READ, QUEUE_QUICK, 0, serve_sessions_facets, ""},
    {"GET", API "/info", RIGHT_READ, QUEUE_QUICK, 0, info_get, ""},
    {"GET", API "/watch", RIGHT_READ, QUEUE_SLOW, 0, serve_watch_get, ""},
    {"GET", API "/logs", RIGHT_WRITE, QUEUE_SLOW, 0, intake_logs, ""},
    {"GET", API "/import", RIGHT_WRITE, QUEUE_QUICK, 0, intake_state, ""},
    {"POST", API "/import", RIGHT_WRITE, QUEUE_QUICK, 4096, intake_import, ""},
    {"GET", API "/schema", RIGHT_READ, QUEUE_SLOW, 0, ask_schema, ""},
    {"GET", API "/search", RIGHT_READ, QUEUE_SLOW, 0, ask_search,
     " q session* status agent model dir type* role tool since until order limit places "},
    {"GET", API "/usage", RIGHT_READ, QUEUE_SLOW, 0, ask_usage, " by since until zone "},
    {"POST", API "/sql", RIGHT_READ, QUEUE_SQL, 1 << 20, question_post, " zone "},
    {"GET", API "/openapi.json", RIGHT_READ, QUEUE_QUICK, 0, openapi, ""},
    {"GET", API "/stream", RIGHT_READ, QUEUE_QUICK, 0, streams_open,
     " session* type* from token last_event_id "},
    {"GET", DURABLE_PATH "{*}", RIGHT_READ, QUEUE_QUICK, 0, durable_read_get, NULL},
    {"PUT", DURABLE_PATH "{*}", RIGHT_WRITE, QUEUE_QUICK, DURABLE_BODY_BYTES, durable_write_put,
     NULL},
    {"POST", DURABLE_PATH "{*}", RIGHT_WRITE, QUEUE_QUICK, DURABLE_BODY_BYTES, durable_write_post,
     NULL},
    {"DELETE", DURABLE_PATH "{*}", RIGHT_WRITE, QUEUE_QUICK, 0, durable_write_delete, NULL},
    {"OPTIONS", DURABLE_PATH "{*}", RIGHT_NONE, QUEUE_QUICK, 0, durable_read_options, NULL},
    {0}};

/* ---- Finding the route ---- */

/* Return whether path matches a pattern in which {} stands for one name. *out_id is the name at the
 * first {}, *out_item the name at the second. */
static bool fits(const char *pattern, const char *path, annal_slice *out_id, annal_slice *out_item)
{
    annal_slice holes[2] = {{0}};
    int count = 0;
    while (*pattern != '\0') {
        if (*pattern == '{') {
            size_t len = pattern[1] == '*' ? strlen(path) : strcspn(path, "/");
            holes[count++] = (annal_slice){path, len};
            if (len == 0)
                return false;
            path += len;
            pattern += strcspn(pattern, "}") + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    *out_id = holes[0];
    *out_item = holes[1];
    return *path == '\0';
}

/* Return whether a route's method fits the request's. HEAD is a GET whose body is not sent. */
static bool is_method(const char *method, const char *given)
{
    return strcmp(method, given) == 0 || (strcmp(given, "HEAD") == 0 && strcmp(method, "GET") == 0);
}

static bool is_stream(const struct route *route)
{
    return strncmp(route->path, DURABLE_PATH, sizeof DURABLE_PATH - 1) == 0;
}

static bool is_served(const struct request *request, const struct route *route)
{
    return !is_stream(route) || ((const struct serve *)request->program)->durable != NULL;
}

/* Add the header Allow with the methods of the path, as in Allow: GET, HEAD, POST. */
static void put_allow(struct request *request)
{
    annal_slice id, item;
    const char *before = "Allow: ";
    for (const struct route *route = routes; route->path != NULL; route++) {
        if (!is_served(request, route) || !fits(route->path, request->path, &id, &item))
            continue;
        (void)annal__buf_printf(&request->headers, "%s%s%s", before, route->method,
                                strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
        before = ", ";
    }
    (void)annal__buf_printf(&request->headers, "\n");
}

/* Find the route of a request. Returns NULL if no route fits; *out_other is then true if the path
 * allows other methods. */
static const struct route *find_route(struct request *request, bool *out_other)
{
    for (const struct route *route = routes; route->path != NULL; route++) {
        if (!is_served(request, route) ||
            !fits(route->path, request->path, &request->id, &request->item))
            continue;
        if (is_method(route->method, request->method))
            return route;
        *out_other = true;
    }
    request->id = (annal_slice){0};
    return NULL;
}

/* ---- Checking parameters ---- */

struct params {
    const struct route *route;
    struct request *request;
    /* a bit for each of the first 32 parameters in the list of the route: set if it was given */
    uint32_t seen;
};

/* Answer with an error if the route does not know the parameter, or if the parameter was given
 * before and may be given only once. Returns 0 if the parameter is valid. */
static int check_param(void *arg, const char *name, const char *value)
{
    struct params *params = arg;
    const char *known = params->route->params;
    size_t len = strlen(name);
    uint32_t bit = 1;
    (void)value;
    for (const char *at = known; *at == ' ' && at[1] != '\0'; at += 1 + strcspn(at + 1, " ")) {
        if (len > 0 && strncmp(at + 1, name, len) == 0 && strchr(" *", at[1 + len]) != NULL) {
            if (at[1 + len] == '*' || (params->seen & bit) == 0) {
                params->seen |= bit;
                return 0;
            }
            answer_error(params->request, 400, "invalid", "the parameter %.64s was given twice",
                         name);
            return 1;
        }
        bit <<= 1;
    }
    answer_error(params->request, 400, "invalid", "this path has no parameter '%.64s'", name);
    return 1;
}

static bool knows_params(struct request *request)
{
    struct params params = {.route = request->route, .request = request};
    return request->route->params == NULL || http_query_all(request, check_param, &params) == 0;
}

/* ---- Checking access ---- */

/* Return the token of a request, or NULL. It is in a header; for a stream it may be a parameter,
 * because EventSource cannot send the header. */
static const char *token_of(const struct request *request)
{
    static const char bearer[] = "Bearer ";
    const char *header = http_header(request, "Authorization");
    if (header != NULL && strncasecmp(header, bearer, sizeof bearer - 1) == 0)
        return header + sizeof bearer - 1;
    return request->route->run == streams_open ? http_query(request, "token") : NULL;
}

static bool may(struct serve *serve, struct request *request)
{
    const struct route *route = request->route;
    enum right right = serve->access.trusts_all
                           ? RIGHT_WRITE
                           : access_right(&serve->access, token_of(request), &request->token);
    request->right = right == RIGHT_WRITE ? "write" : right == RIGHT_READ ? "read" : "";
    if (right < route->right && right == RIGHT_NONE) {
        (void)annal__buf_printf(&request->headers, "WWW-Authenticate: Bearer realm=\"annal\"\n");
        answer_error(request, 401, "unauthorized",
                     "this request needs a token: Authorization: Bearer TOKEN");
    } else if (right < route->right) {
        answer_error(request, 403, "forbidden", "this token has only the right to read");
    } else if (serve->read_only && route->right == RIGHT_WRITE) {
        answer_error(request, 403, "forbidden", "this server is read-only");
    }
    return request->status == 0;
}

static bool is_ours(struct serve *serve, struct request *request)
{
    if (!access_host_is_ours(&serve->access, http_header(request, "Host")))
        answer_error(request, 421, "misdirected",
                     "the server is not known by this name: --host adds a name");
    else if (!access_origin_is_ours(&serve->access, http_header(request, "Origin"),
                                    http_header(request, "Host")))
        answer_error(request, 403, "forbidden", "cross-origin requests are not allowed");
    return request->status == 0;
}

static bool fits_body(struct request *request)
{
    uint64_t length = 0;
    const char *text = http_header(request, "Content-Length");
    request->body_limit = request->route->body_max;
    request->body.limit = request->body_limit;
    for (; text != NULL && *text >= '0' && *text <= '9' && length <= request->body_limit; text++)
        length = 10 * length + (uint64_t)(*text - '0');
    if (length > request->body_limit)
        answer_error(request, 413, "limit", "the body is longer than %zu bytes",
                     request->body_limit);
    return request->status == 0;
}

static void find(struct serve *serve, struct request *request)
{
    annal_error err = {0};
    bool other = false;
    if (http_is_ambiguous(request)) {
        answer_error(
            request, 400, "invalid",
            "the request has two hosts, two lengths, or a transfer coding other than 'chunked'");
        (void)annal__buf_printf(&request->headers, "Connection: close\n");
        return;
    }
    if (!is_ours(serve, request))
        return;
    if (request->too_long) {
        answer_error(request, 414, "limit", "the address is too long, or has too many parameters");
        return;
    }
    request->route = find_route(request, &other);
    if (request->route == NULL && !other && is_method("GET", request->method) &&
        web_answer(request))
        return;
    if (request->route == NULL && other) {
        put_allow(request);
        answer_error(request, 405, "method", "method %.20s is not allowed here", request->method);
    } else if (request->route == NULL)
        answer_error(request, 404, "not_found", "this path does not exist");
    else if (may(serve, request) && knows_params(request) && fits_body(request) &&
             is_stream(request->route))
        durable_state_admit(request);
    else if (request->status == 0 && request->id.len > 0 &&
             annal_session_id_check(request->id, &err) < 0)
        answer_failure(request, &err);
    if (request->status == 0 && request->route->run == transfer_put)
        transfer_admit(serve, request);
}

/* Add a header that says how many sessions an answer may lack: Annal-Unread: 2358 of 3049. */
static void put_unread(struct serve *serve, struct request *request)
{
    struct filler_left left = filler_left(serve->filler);
    if (left.sessions > 0)
        (void)annal__buf_printf(&request->headers, "Annal-Unread: %" PRIu64 " of %" PRIu64 "\n",
                                left.sessions, left.of);
}

static void resume(struct request *request);

/* Find the route, check the request, and add headers that forbid caching, sending the address to
 * other sites, and guessing the type. */
void routes_admit(void *arg, struct request *request)
{
    request->program = arg;
    request->resume = resume;
    find(arg, request);
    (void)annal__buf_printf(&request->headers,
                            "X-Content-Type-Options: nosniff\nReferrer-Policy: no-referrer\n");
    put_unread(arg, request);
    if (request->constant.ptr == NULL || request->type == NULL ||
        strcmp(request->type, JSON_TYPE) == 0)
        (void)annal__buf_printf(&request->headers, "Cache-Control: no-store\n");
}

/* ---- Running ---- */

/* Run a request, in a thread of the pool. If its client has disconnected while it waited, it is
 * skipped, so that it does not delay other requests. */
static void run_job(void *arg)
{
    struct request *request = arg;
    if (annal__clock_monotonic_us() - request->whole_us > PATIENCE_US && http_client_left(request))
        answer_error(request, 503, "left",
                     "the client disconnected before the request was processed");
    else
        request->route->run(request->program, request);
    if (request->park != NULL) {
        request->park(request); /* another thread may have answered the request when this returns */
        return;
    }
    answer_compress(request);
    http_answered(request);
}

static void resume(struct request *request)
{
    struct serve *serve = request->program;
    request->park = NULL;
    if (pool_submit(serve->pool, request->route->queue, run_job, request))
        return;
    answer_error(request, 503, "busy", "too many requests are waiting: try again later");
    http_answered(request);
}

static void refuse_body(struct request *request)
{
    if (request->body_refused == 413)
        answer_error(request, 413, "limit", "the body is longer than %zu bytes",
                     request->body_limit);
    else if (request->body_refused == 507)
        answer_error(request, 507, "io", "the store cannot save the upload");
    else
        answer_error(request, 503, "busy",
                     "too many request bodies are in memory: try again later");
}

bool routes_run(void *arg, struct request *request)
{
    struct serve *serve = arg;
    if (request->body_refused != 0) {
        refuse_body(request);
        return true;
    }
    if (pool_submit(serve->pool, request->route->queue, run_job, request))
        return false;
    answer_error(request, 503, "busy", "too many requests are waiting: try again later");
    return true;
}

/* Log {"time":…,"method":…,"path":…,"status":…,"ms":…,"bytes":…,"token":…}. */
void routes_done(void *arg, const struct request *request, uint64_t bytes)
{
    const struct serve *serve = arg;
    SCOPED_BUF line = {.limit = 65536};
    char time[ANNAL_TIME_BYTES];
    if (serve->log_fd < 0)
        return;
    annal_time_format(annal__system_clock.wall_us(NULL), time);
    if (annal__json_put(&line, "{\"time\":?,\"method\":?,\"path\":?", annal_slice_of(time),
                        annal_slice_of(request->method), annal_slice_of(request->path)) >= 0 &&
        annal__buf_printf(&line, ",\"status\":%u,\"ms\":%.1f,\"bytes\":%" PRIu64 ",\"token\":%d}\n",
                          request->status,
                          (double)(annal__clock_monotonic_us() - request->begun_us) / 1000, bytes,
                          request->token) >= 0)
        (void)!write(serve->log_fd, line.ptr, line.len);
}
