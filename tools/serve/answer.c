/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/args.h"
#include "tools/otlp/gzip.h"
#include "tools/serve/serve.h"
#include "tools/show/event_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A shorter answer fits into one packet anyway. */
#define COMPRESSED_BYTES_MIN 1400u

bool answer_no_memory(struct request *request)
{
    static const char text[] = "{\"error\":{\"code\":\"nomem\",\"message\":\"out of memory\"}}\n";
    annal__buf_done(&request->answer);
    request->constant = (annal_slice){text, sizeof text - 1};
    request->type = JSON_TYPE;
    request->status = 503;
    return false;
}

bool answer_error(struct request *request, unsigned status, const char *code, const char *format,
                  ...)
{
    char message[600];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    annal__buf_clear(&request->answer);
    request->status = status;
    request->type = JSON_TYPE;
    if (annal__json_put(&request->answer, "{\"error\":{\"code\":\"#\",\"message\":?}}\n",
                        annal_slice_of(code), annal_slice_of(message)) < 0)
        answer_no_memory(request);
    return false;
}

unsigned answer_failure_status(const annal_error *err)
{
    static const struct {
        annal_status status;
        unsigned http;
    } map[] = {{ANNAL_ERR_NOTFOUND, 404},    {ANNAL_ERR_INVALID, 400}, {ANNAL_ERR_SQL, 400},
               {ANNAL_ERR_CONFLICT, 409},    {ANNAL_ERR_REFUSED, 422}, {ANNAL_ERR_LIMIT, 413},
               {ANNAL_ERR_BUSY, 503},        {ANNAL_ERR_NOMEM, 503},   {ANNAL_ERR_CLOSED, 503},
               {ANNAL_ERR_UNSUPPORTED, 501}, {ANNAL_ERR_IO, 503},      {ANNAL_ERR_READONLY, 503},
               {ANNAL_ERR_DISK, 503}};
    unsigned http = 500;
    if (annal__error_is_no_space(err))
        return 507;
    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        http = map[i].status == err->status ? map[i].http : http;
    return http;
}

bool answer_failure(struct request *request, const annal_error *err)
{
    char code[32];
    snprintf(code, sizeof code, "%s", annal_status_name(err->status));
    for (char *space = code; (space = strchr(space, ' ')) != NULL;)
        *space = '_';
    return answer_error(request, answer_failure_status(err), code, "%s", err->message);
}

void answer_json(struct request *request, annal_status status, const annal_error *err)
{
    request->status = 200;
    request->type = JSON_TYPE;
    if (status < 0 && err != NULL && err->status < 0)
        answer_failure(request, err);
    else if (status < 0 || annal__buf_append(&request->answer, "\n", 1) < 0)
        answer_no_memory(request);
}

/* Return whether a list of codings accepts gzip: it names it without a weight of 0. */
static bool accepts_gzip(const char *codings)
{
    const char *found = codings == NULL ? NULL : strcasestr(codings, "gzip");
    if (found == NULL)
        return false;
    found += strlen("gzip");
    const char *weight = memmem(found, strcspn(found, ","), "q=", 2);
    return weight == NULL || strtod(weight + 2, NULL) > 0;
}

void answer_compress(struct request *request)
{
    struct buf packed = {0};
    annal_error err = {0};
    if (request->flow != NULL || request->fd >= 0 || request->constant.ptr != NULL ||
        request->answer.len < COMPRESSED_BYTES_MIN)
        return;
    (void)annal__buf_printf(&request->headers, "Vary: Accept-Encoding\n");
    if (!accepts_gzip(http_header(request, "Accept-Encoding")) ||
        gzip_deflate(annal__buf_slice(&request->answer), &packed, &err) < 0 ||
        annal__buf_printf(&request->headers, "Content-Encoding: gzip\n") < 0) {
        annal__buf_done(&packed);
        return;
    }
    annal__buf_done(&request->answer);
    request->answer = packed;
}

bool answer_number(struct request *request, const char *name, uint64_t most, uint64_t *out)
{
    const char *text = http_query(request, name);
    if (text == NULL)
        return true;
    if (fields_parse_number(text, out) && *out <= most)
        return true;
    return answer_error(request, 400, "invalid", "%s must be a whole number up to %" PRIu64, name,
                        most);
}

bool answer_limit(struct request *request, uint64_t most, uint64_t *out)
{
    if (!answer_number(request, "limit", most, out))
        return false;
    if (*out > 0 || http_query(request, "limit") == NULL)
        return true;
    return answer_error(request, 400, "invalid", "limit must be at least 1");
}

static bool query_time(struct request *request, const char *name, int64_t *out_us)
{
    const char *text = http_query(request, name);
    if (text == NULL || fields_parse_time(text, out_us))
        return true;
    return answer_error(request, 400, "invalid",
                        "%s must be a time such as 2026-01-06T07:24:00Z, or an age such as 2h",
                        name);
}

bool answer_range(struct request *request, struct time_range *out)
{
    int64_t unused_us;
    if (!query_time(request, "since", &unused_us) || !query_time(request, "until", &unused_us))
        return false;
    (void)fields_parse_range(http_query(request, "since"), http_query(request, "until"), out);
    if (!fields_range_is_backward(out))
        return true;
    return answer_error(request, 400, "invalid", "since is after until");
}

bool answer_choice(struct request *request, const char *name, const char *const *choices, int *out)
{
    char all[300] = "";
    const char *text = http_query(request, name);
    if (text == NULL)
        return true;
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *out = i;
            return true;
        }
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i == 0 ? "" : ", ",
                 choices[i]);
    }
    return answer_error(request, 400, "invalid", "%s must be one of %s", name, all);
}

struct list {
    annal_slice *items;
    size_t count, most;
};

static int add_item(void *arg, const char *value)
{
    struct list *list = arg;
    annal_slice *item = list->count < list->most
                            ? annal__array_add(&list->items, &list->count, sizeof *item)
                            : NULL;
    if (item == NULL)
        return 1;
    *item = annal_slice_of(value);
    return 0;
}

bool answer_list(struct request *request, const char *name, size_t most, annal_slice **out,
                 size_t *out_count)
{
    struct list list = {.most = most};
    if (http_query_each(request, name, add_item, &list) == 0) {
        *out = list.items;
        *out_count = list.count;
        return true;
    }
    annal__free(list.items);
    return answer_error(request, 400, "invalid", "%s may be given at most %zu times", name, most);
}

annal_status answer_event_json(struct buf *out, annal_slice session, const annal_event *event)
{
    char head[EVENT_HEAD_BYTES];
    size_t len = event_head(event, session, head);
    annal_status status = annal__buf_reserve(out, len + event->data.len + 1);
    if (status >= 0) {
        (void)annal__buf_append(out, head, len);
        (void)event_put_data(out, event->data);
        (void)annal__buf_append(out, "}", 1);
    }
    return status;
}

annal_status answer_damage_json(struct buf *out, annal_slice session, const annal_damage *damage)
{
    size_t before = out->len;
    annal_status status = annal__json_put(
        out,
        "{\"session_id\":\"#\",\"seq\":#,\"damage\":{\"offset\":#,\"length\":#,\"event_lost\":#,"
        "\"what\":?}}",
        session, JSON_U64(damage->seq), JSON_U64(damage->offset), JSON_U64(damage->length),
        annal_slice_of(damage->event_lost ? "true" : "false"), annal_slice_of(damage->what));
    if (status < 0)
        annal__buf_cut(out, before);
    return status;
}
