/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a session: some of them as JSON (a page), or all as NDJSON. */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "tools/serve/produce.h"

#include <inttypes.h>
#include <string.h>

#define PAGE_USUAL 200u
#define PAGE_MAX   2000u
/* size in bytes at which a page ends; a page has at least one event */
#define PAGE_BYTES_MAX ((size_t)4 << 20)
#define TYPES_MAX      64u

struct wanted {
    annal_filter filter;
    annal_slice session;
    annal_slice *types;
};

static bool read_wanted(struct request *request, struct wanted *wanted)
{
    static const char *const orders[] = {"asc", "desc", NULL};
    annal_filter *filter = &wanted->filter;
    struct time_range range;
    int order = 0;
    wanted->session = request->id;
    filter->sessions = &wanted->session;
    filter->session_count = 1;
    if (!answer_number(request, "from", UINT64_MAX, &filter->from_seq) ||
        !answer_number(request, "to", UINT64_MAX, &filter->to_seq) ||
        !answer_limit(request, UINT64_MAX, &filter->limit) || !answer_range(request, &range) ||
        !answer_choice(request, "order", orders, &order) ||
        !answer_list(request, "type", TYPES_MAX, &wanted->types, &filter->type_count))
        return false;
    filter->since_us = range.since_us;
    filter->until_us = range.until_us;
    filter->types = wanted->types;
    filter->descending = order == 1;
    return true;
}

static bool wants_lines(const struct request *request)
{
    const char *accept = http_header(request, "Accept");
    return accept != NULL && strstr(accept, NDJSON_TYPE) != NULL;
}

/* Print an event, or, if the event could not be proved, the damage, as in `annal tail --json`. */
static annal_status add_event(struct buf *out, annal_status how, annal_slice session,
                              const annal_event *event)
{
    if (how == ANNAL_OK)
        return answer_event_json(out, session, event);
    return answer_damage_json(out, session,
                              &(annal_damage){.seq = event->seq,
                                              .offset = event->offset,
                                              .length = event->length,
                                              .event_lost = true,
                                              .what = "the journal does not prove this event"});
}

/* ---- A page ---- */

static annal_status fill_page(annal_query *query, struct buf *out, uint64_t limit,
                              uint64_t *out_next, annal_error *err)
{
    annal_slice session;
    annal_event event;
    annal_status status = ANNAL_OK;
    for (uint64_t count = 0;; count++) {
        annal_status how = annal_query_next(query, &session, &event, err);
        if (how < 0 || how == ANNAL_END)
            return how;
        if (count == limit || (count > 0 && out->len + event.data.len > PAGE_BYTES_MAX)) {
            *out_next = event.seq;
            return ANNAL_OK;
        }
        if (count > 0)
            status = annal__buf_append(out, ",\n", 2);
        if (status >= 0)
            status = add_event(out, how, session, &event);
        if (status < 0)
            return annal__fail(err, status, "the events are too large for one answer");
    }
}

static void answer_page(struct request *request, annal_query *query, uint64_t limit)
{
    annal_error err = {0};
    struct buf *out = &request->answer;
    uint64_t next = 0;
    annal_status status = annal__buf_append(out, "{\"events\":[", 11);
    if (status >= 0)
        status = fill_page(query, out, limit, &next, &err);
    if (status < 0) {
        answer_failure(request, &err);
        return;
    }
    request->status = 200;
    request->type = JSON_TYPE;
    if ((next > 0 ? annal__buf_printf(out, "],\"next\":%" PRIu64 "}\n", next)
                  : annal__buf_append(out, "],\"next\":null}\n", 15)) < 0)
        answer_no_memory(request);
}

/* ---- All events ---- */

static annal_status fill_lines(void *arg, struct buf *out)
{
    annal_slice session;
    annal_event event;
    annal_status status = ANNAL_OK;
    while (status >= 0 && out->len < FLOW_BYTES) {
        annal_status how = annal_query_next(arg, &session, &event, NULL);
        if (how < 0 || how == ANNAL_END)
            return how;
        status = add_event(out, how, session, &event);
        if (status >= 0)
            status = annal__buf_append(out, "\n", 1);
    }
    return status;
}

static void free_lines(void *arg)
{
    annal_query_close(arg);
}

void events_list(struct serve *serve, struct request *request)
{
    struct wanted wanted = {0};
    annal_error err = {0};
    annal_query *query = NULL;
    annal_session_info info;
    bool lines = wants_lines(request);
    if (!read_wanted(request, &wanted))
        goto done;
    uint64_t limit = wanted.filter.limit == 0 ? PAGE_USUAL : wanted.filter.limit;
    if (limit > PAGE_MAX)
        limit = PAGE_MAX;
    if (!lines)
        wanted.filter.limit = limit + 1;
    if (annal_session_info_get(serve->store, request->id, &info, &err) < 0 ||
        annal_query_open(serve->index, &wanted.filter, &query, &err) < 0) {
        answer_failure(request, &err);
    } else if (lines) {
        produce(serve, request, NDJSON_TYPE,
                &(struct producer){
                    .queue = QUEUE_QUICK, .arg = query, .fill = fill_lines, .free = free_lines});
        query = NULL;
    } else {
        answer_page(request, query, limit);
    }
done:
    annal_query_close(query);
    annal__free(wanted.types);
}
