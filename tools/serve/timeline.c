/* SPDX-License-Identifier: Apache-2.0 */
/* What the index knows of one session: tools/show/timeline_rows.h. */
#include "tools/show/timeline_rows.h"

#include "tools/serve/serve.h"

/* The session must be there. */
static void answer_part(struct serve *serve, struct request *request, timeline_part *part)
{
    annal_error err = {0};
    annal_session_info info;
    uint64_t from = 0;
    if (!query_number(request, "from", INT64_MAX, &from))
        return;
    annal_status status = annal_session_info_get(serve->store, request->id, &info, &err);
    if (status >= 0)
        status = part(serve->index, request->id, from, &request->answer, &err);
    answer_json(request, status, &err);
}

void session_tools(struct serve *serve, struct request *request)
{
    answer_part(serve, request, timeline_tools);
}

void session_turns(struct serve *serve, struct request *request)
{
    answer_part(serve, request, timeline_turns);
}

void session_usage(struct serve *serve, struct request *request)
{
    answer_part(serve, request, timeline_usage);
}

void session_outline(struct serve *serve, struct request *request)
{
    answer_part(serve, request, timeline_outline);
}
