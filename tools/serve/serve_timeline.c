/* SPDX-License-Identifier: Apache-2.0 */
/* What the index stores about one session (tools/show/timeline_rows.h). */
#include "tools/show/timeline_rows.h"

#include "tools/serve/serve.h"

#include <string.h>

/* Answer with the part of the timeline that the path ends with; fails if the session does not
 * exist. */
void serve_timeline_get(struct serve *serve, struct request *request)
{
    annal_error err = {0};
    annal_session_info info;
    uint64_t from = 0;
    if (!answer_number(request, "from", INT64_MAX, &from))
        return;
    annal_status status = annal_session_info_get(serve->store, request->id, &info, &err);
    if (status >= 0)
        status =
            timeline_part(filler_index(serve->filler, request->id), strrchr(request->path, '/') + 1,
                          request->id, from, &request->answer, &err);
    answer_json(request, status, &err);
}
