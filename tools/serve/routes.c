#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/json.h"
#include "tools/serve/serve.h"
#include "tools/serve/streams.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define API "/api/v1"

static void healthz(struct serve *serve, struct request *request)
{
    static const char text[] = "{\"status\":\"ok\"}\n";
    (void)serve;
    request->status = 200;
    request->type = JSON_TYPE;
    request->still = (annal_slice){text, sizeof text - 1};
}

const struct route routes[] = {
    {"GET", "/healthz", RIGHT_NONE, LANE_QUICK, 0, healthz},
    {"GET", API "/sessions", RIGHT_READ, LANE_QUICK, 0, sessions_list},
    {"GET", API "/sessions/{}", RIGHT_READ, LANE_QUICK, 0, sessions_one},
    {"GET", API "/sessions/{}/events", RIGHT_READ, LANE_QUICK, 0, events_list},
    {"GET", API "/stream", RIGHT_READ, LANE_QUICK, 0, streams_open},
    {0}};

/* ---- Which route ---- */

/* Whether path is that of the route; what is in the place of {} is *out_id. */
static bool fits(const char *pattern, const char *path, annal_slice *out_id)
{
    const char *hole = strstr(pattern, "{}");
    if (hole == NULL)
        return strcmp(pattern, path) == 0;
    size_t before = (size_t)(hole - pattern), len = strlen(path), after = strlen(hole + 2);
    if (strncmp(pattern, path, before) != 0 || len <= before + after ||
        strcmp(path + len - after, hole + 2) != 0)
        return false;
    *out_id = (annal_slice){path + before, len - before - after};
    return memchr(out_id->ptr, '/', out_id->len) == NULL;
}

/* A HEAD is a GET whose body is not sent. */
static bool is_method(const char *method, const char *given)
{
    return strcmp(method, given) == 0 || (strcmp(given, "HEAD") == 0 && strcmp(method, "GET") == 0);
}

/* The route, or NULL: then *out_other says whether the path has others. */
static const struct route *find_route(struct request *request, bool *out_other)
{
    for (const struct route *route = routes; route->path != NULL; route++) {
        if (!fits(route->path, request->path, &request->id))
            continue;
        if (is_method(route->method, request->method))
            return route;
        *out_other = true;
    }
    request->id = (annal_slice){0};
    return NULL;
}

/* ---- Who may ---- */

/* The token of the header; EventSource cannot send one, so a stream may have it in its address. */
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
                     "this needs a token: Authorization: Bearer TOKEN");
    } else if (right < route->right) {
        answer_error(request, 403, "forbidden", "this token may only read");
    } else if (serve->read_only && route->right == RIGHT_WRITE) {
        answer_error(request, 403, "forbidden", "this server only reads");
    }
    return request->status == 0;
}

static bool is_ours(struct serve *serve, struct request *request)
{
    if (!access_host_is_ours(&serve->access, http_header(request, "Host")))
        answer_error(request, 421, "misdirected",
                     "this server is not known by that name: --host adds one");
    else if (!access_origin_is_ours(&serve->access, http_header(request, "Origin")))
        answer_error(request, 403, "forbidden",
                     "requests of pages of other origins are not answered");
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
    if (!is_ours(serve, request))
        return;
    request->route = find_route(request, &other);
    if (request->route == NULL && !other && is_method("GET", request->method) &&
        web_answer(request))
        return;
    if (request->route == NULL && other)
        answer_error(request, 405, "method", "this path is not asked with %.20s", request->method);
    else if (request->route == NULL)
        answer_error(request, 404, "not_found", "there is nothing at this path");
    else if (may(serve, request) && fits_body(request) && request->id.len > 0 &&
             annal_session_id_check(request->id, &err) < 0)
        answer_failure(request, &err);
}

/* Rule: no cache, no other site, no other type than the one that is said. */
void serve_admit(void *arg, struct request *request)
{
    request->program = arg;
    find(arg, request);
    (void)annal__buf_printf(&request->headers,
                            "X-Content-Type-Options: nosniff\nReferrer-Policy: no-referrer\n");
    if (request->still.ptr == NULL || request->type == NULL ||
        strcmp(request->type, JSON_TYPE) == 0)
        (void)annal__buf_printf(&request->headers, "Cache-Control: no-store\n");
}

/* ---- Running ---- */

static void run_job(void *arg)
{
    struct request *request = arg;
    request->route->run(request->program, request);
    http_answered(request);
}

bool serve_run(void *arg, struct request *request)
{
    struct serve *serve = arg;
    if (pool_submit(serve->pool, request->route->lane, run_job, request))
        return false;
    answer_error(request, 503, "busy", "too many requests wait already");
    return true;
}

/* {"time":…,"method":…,"path":…,"status":…,"ms":…,"bytes":…,"token":…} */
void serve_done(void *arg, const struct request *request, uint64_t bytes)
{
    const struct serve *serve = arg;
    struct buf line = {.limit = 65536};
    char time[ANNAL_TIME_BYTES];
    if (serve->log_fd < 0)
        return;
    annal_time_format(annal__system_clock.wall_us(NULL), time);
    if (annal__buf_printf(&line, "{\"time\":\"%s\",\"method\":", time) >= 0 &&
        annal__json_quote(&line, annal_slice_of(request->method)) >= 0 &&
        annal__buf_append(&line, ",\"path\":", 8) >= 0 &&
        annal__json_quote(&line, annal_slice_of(request->path)) >= 0 &&
        annal__buf_printf(&line, ",\"status\":%u,\"ms\":%.1f,\"bytes\":%" PRIu64 ",\"token\":%d}\n",
                          request->status,
                          (double)(annal__monotonic_us() - request->begun_us) / 1000, bytes,
                          request->token) >= 0)
        (void)!write(serve->log_fd, line.ptr, line.len);
    annal__buf_done(&line);
}
