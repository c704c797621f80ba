/* SPDX-License-Identifier: Apache-2.0 */
/* What the index stores about one session (tools/show/timeline_rows.h). */
#include "tools/show/timeline_rows.h"

#include "tools/serve/serve.h"

/* Answer with one part of the timeline; fails if the session does not exist. */
static void answer_part(struct serve *serve, struct request *request, timeline_part *part)
{
    annal_error err = {0};
    annal_session_info info;
    uint64_t from = 0;
    if (!answer_number(request, "from", INT64_MAX, &from))
        return;
    annal_status status = annal_session_info_get(serve->store, request->id, &info, &err);
    if (status >= 0)
        status = part(filler_index(serve->filler, request->id), request->id, from, &request->answer,
                      &err);
    answer_json(request, status, &err);
}

void serve_timeline_tools(struct serve *serve, struct request *request)
{
    answer_part(serve, request, timeline_tools);
}

void serve_timeline_turns(struct serve *serve, struct request *request)
{
    answer_part(serve, request, timeline_turns);
}

void serve_timeline_usage(struct serve *serve, struct request *request)
{
    answer_part(serve, request, timeline_usage);
}

void serve_timeline_outline(struct serve *serve, struct request *request)
{
    answer_part(serve, request, timeline_outline);
}
